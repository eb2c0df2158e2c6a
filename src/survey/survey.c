/*
 * The survey's order: where pinfold's own files are, then the paths of the policy (asked.c), links on the way (planted.c),
 * other names of pinfold's own (aliases.c), the clone it was built in (clone.c), what guarded names lead to (targets.c), patterns (patterns.c), and for the
 * Landlock tier directories (directories.c). walk.h has the nodes that they share.
 */
#include "survey/path.h"
#include "survey/survey.h"
#include "survey/helper.h"
#include "survey/runtime_dir.h"
#include "survey/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include "base/fd.h"
#include "match/path.h"
#include "sys/file.h"
#include "sys/process.h"

/* The variable of the base directory specification, or `below` the home directory if it is unset or invalid. */
static const char *xdg(struct surveyor *s, const struct facts *f, const char *variable, const char *below)
{
    const char *said = getenv(variable);
    if (said && said[0] == '/')
        return path_clean(s->mem, said);
    return f->home && f->home[0] == '/' ? path_join(s->mem, f->home, below) : NULL;
}

/*
 * File systems that overlayfs refuses for an upper layer (ovl_mount_dir_noesc() in fs/overlayfs/params.c: those that
 * may change by themselves or look names up in their own way), or that would be a third layer.
 */
static bool carries_uppers(const char *path)
{
    static const unsigned never[] = {SYS_OVERLAYFS,         SYS_ECRYPTFS,           0x6969 /* NFS */,
                                     0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */,  0x517b /* SMB */,
                                     0x65735546 /* FUSE */, 0x01021997 /* 9p */,    0x00c36400 /* Ceph */,
                                     0x5346414f /* AFS */,  0x6b414653 /* kAFS */,  0x73757245 /* Coda */,
                                     0x4d44 /* FAT */,      0x2011bab0 /* exFAT */, 0x7366746e /* NTFS */};
    char at[PATH_MAX];
    struct statfs fs;
    if (!path || strlen(path) >= sizeof at)
        return true; /* there is no state directory, which is reported elsewhere */
    strcpy(at, path);
    while (statfs(at, &fs) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return true;
        *slash = 0;
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        if ((unsigned)fs.f_type == never[i])
            return false;
    }
    return true;
}

static int survey_own(struct surveyor *s, struct facts *f)
{
    if (!f->state_home)
        f->state_home = xdg(s, f, "XDG_STATE_HOME", ".local/state");
    if (!f->runtime)
        f->runtime = runtime_in_tmp(s->mem);
    /* In a box its caches are layers already, and overlays can be stacked only twice. */
    const char *in_box = getenv("PINFOLD"); /* "1"; somebody else's variable says nothing */
    f->uppers = !(in_box && same(in_box, "1")) && carries_uppers(f->state_home);
    f->layers &= f->uppers;
    struct statfs groups;
    f->cgroup_trees = statfs("/sys/fs/cgroup", &groups) == 0 && (unsigned)groups.f_type != 0x63677270 /* cgroup2 */;
    if (!f->config_home)
        f->config_home = xdg(s, f, "XDG_CONFIG_HOME", ".config");
    if (!f->program) {
        ssize_t n = sys_readlink("/proc/self/exe", s->text, sizeof s->text);
        if (n > 0 && (size_t)n < sizeof s->text)
            f->program = arena_str(s->mem, (struct str){s->text, (size_t)n});
    }
    if (!f->helpers[0] && f->program) {
        f->is_clone = helper_is_in_clone(s->mem, f->program);
        helper_guarded(s->mem, f->program, f->is_clone, f->helpers);
    }
    return arena_failed(s->mem) ? -ENOMEM : 0;
}

/*
 * A limit of 1 keeps the kernel from starting a program of core_pattern ("|..."); a hard limit of 0 cannot be raised to it. A socket
 * there ("@...", Linux 6.16) is connected to whatever the limit is (coredump_socket() in fs/coredump.c). Only explain says it.
 */
static int survey_core(const struct surveyor *s, struct facts *f)
{
    struct sys_rlimit limit;
    char text[256];
    if (!f->thorough)
        return 0;
    auto_fd int fd = sys_openat(AT_FDCWD, "/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, text, sizeof text - 1);
    if (n <= 0 || (text[0] != '|' && text[0] != '@'))
        return 0;
    if (text[0] == '|' && (sys_prlimit(RLIMIT_CORE, NULL, &limit) < 0 || limit.hard != 0))
        return 0;
    text[n - (text[n - 1] == '\n')] = 0;
    f->core_handler = arena_text(s->mem, text);
    return f->core_handler ? 0 : -ENOMEM;
}

int survey(const struct policy *p, struct facts *f, struct arena *mem, struct err *e)
{
    enum { FIRST_BUCKETS = 512 };
    struct surveyor *s = arena_zero(mem, sizeof *s);
    if (!s)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot survey the policy's paths");
    s->mem = mem;
    s->uid = f->uid;
    s->memory = f->written;
    s->n_buckets = FIRST_BUCKETS;
    s->buckets = arena_zero(mem, FIRST_BUCKETS * sizeof *s->buckets);
    s->root = arena_zero(mem, sizeof *s->root);
    int r = s->buckets && s->root ? 0 : -ENOMEM;
    if (r == 0) {
        *s->root = (struct survey_node){.parent = s->root, .name = "", .real = "/"};
        r = survey_look(s, s->root);
    }
    if (r == 0)
        r = survey_core(s, f);
    if (r == 0)
        r = survey_own(s, f);
    if (r == 0)
        r = survey_paths(s, p, f);
    if (e)
        e->kind = ERR_NONE;
    if (r == 0)
        r = survey_judge_links(s, p, f, e);
    if (r == 0 && (r = survey_mounts(s)) < 0)
        return err_sys(e, ERR_SYSTEM, -r,
                       "cannot read /proc/self/mountinfo, which tells at what paths hidden files are");
    if (r == 0)
        r = survey_clone(s, p, f);
    if (r == 0)
        r = survey_targets(p, f, mem);
    if (r == 0)
        r = survey_patterns(s, p, f, e);
    if (r == 0)
        r = survey_aliases(s, p, f);
    if (r == 0 && f->tier == TIER_LANDLOCK)
        r = survey_dirs(s, p, f);
    if (r < 0 && (!e || e->kind == ERR_NONE))
        return err_sys(e, ERR_SYSTEM, -r, "cannot survey the policy's paths");
    return r;
}
