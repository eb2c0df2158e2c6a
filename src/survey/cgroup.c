/*
 * Finds a place for control groups: cgroup.h explains the rules of the kernel.
 *
 * /proc/self/cgroup says where we are, one line per hierarchy ("4:memory:/a/b", "0::/a/b" for version 2). The mount
 * points are the conventional ones: /sys/fs/cgroup for version 2 alone, /sys/fs/cgroup/CONTROLLER for version 1
 * (cgroups(7), systemd's "CGROUP_DELEGATION"). Reading mountinfo instead would cost 136 us and find nothing more on
 * conventional machines.
 */
#include "survey/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/fd.h"

#define CGROUP_ROOT       "/sys/fs/cgroup"
#define CGROUP2_MAGIC     0x63677270 /* CGROUP2_SUPER_MAGIC, linux/magic.h */
#define SELF_CGROUP_MAX   16384
#define CONTROLLERS_MAX   1024
#define ALL_CONTROLLERS   ((1u << CGROUP_CONTROLLERS) - 1)
#define NEEDED_FOR_EXACT  ((1u << CGROUP_MEMORY) | (1u << CGROUP_PIDS))
#define SYSTEMD_IS_BOOTED "/run/systemd/system" /* sd_booted(3) */

static const char *const controllers[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu"};

const char *cgroup_controller_name(enum cgroup_controller c)
{
    return controllers[c];
}

/* Reads a small kernel file; returns its size (text is NUL-terminated), or -errno. */
static ssize_t slurp(const char *path, char *text, size_t room)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    if (fd < 0)
        return -errno;
    while (n < room - 1) {
        ssize_t r = read(fd, text + n, room - 1 - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        n += (size_t)r;
    }
    text[n] = 0;
    return (ssize_t)n;
}

/* Puts dir + "/" + name into `path`; false if it does not fit. */
static bool join(char *path, size_t n, const char *dir, const char *name)
{
    int k = snprintf(path, n, "%s/%s", dir, name);
    return k > 0 && (size_t)k < n;
}

static ssize_t slurp_in(const char *dir, const char *name, char *text, size_t room)
{
    char path[CGROUP_PATH_MAX + 64];
    return join(path, sizeof path, dir, name) ? slurp(path, text, room) : -ENAMETOOLONG;
}

static bool writable(const char *dir, const char *name)
{
    char path[CGROUP_PATH_MAX + 64];
    if (!name)
        return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0;
    return join(path, sizeof path, dir, name) && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* Whether `list`, words separated by `sep` or whitespace, contains `word`. */
static bool list_has(const char *list, size_t n, const char *word, char sep)
{
    size_t k = strlen(word);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && list[end] != sep && list[end] != ' ' && list[end] != '\n')
            end++;
        if (end - i == k && memcmp(list + i, word, k) == 0)
            return true;
        i = end + 1;
    }
    return false;
}

static unsigned controllers_in(const char *list, size_t n, char sep)
{
    unsigned found = 0;
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (list_has(list, n, controllers[c], sep))
            found |= 1u << c;
    }
    return found;
}

/*
 * Copies into `ret` the path of the hierarchy of `controller` ("" for version 2) from the text of /proc/self/cgroup;
 * -ENOENT if there is none. A path that leads out of our cgroup namespace ("/..") cannot be used: -EXDEV.
 */
static int cgroup_path_in(const char *text, const char *controller, char *ret, size_t n)
{
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        if (path) {
            size_t list_n = (size_t)(path - list - 1), path_n = (size_t)(end - path - 1);
            bool mine = *controller ? list_has(list + 1, list_n, controller, ',') : list_n == 0;
            if (mine && path_n >= n)
                return -ENAMETOOLONG;
            if (mine && (strncmp(path + 1, "/..", 3) == 0 || path[1] != '/'))
                return -EXDEV;
            if (mine) {
                memcpy(ret, path + 1, path_n);
                ret[path_n] = 0;
                return 0;
            }
        }
        line = *end ? end + 1 : end;
    }
    return -ENOENT;
}

int cgroup_path_v2(int pid, char *ret, size_t n)
{
    char text[SELF_CGROUP_MAX], path[40];
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    ssize_t r = slurp(path, text, sizeof text);
    return r < 0 ? (int)r : cgroup_path_in(text, "", ret, n);
}

static bool is_v2(void)
{
    struct statfs fs;
    return statfs(CGROUP_ROOT, &fs) == 0 && (unsigned)fs.f_type == CGROUP2_MAGIC;
}

static bool has_no_members(const char *dir)
{
    char text[32];
    return slurp_in(dir, "cgroup.procs", text, sizeof text) == 0;
}

/* Whether groups for boxes can be created below `dir`; fills in the usable controllers. */
static bool usable_parent(const char *dir, struct cgroup_place *ret)
{
    char text[CONTROLLERS_MAX];

    if (!writable(dir, NULL) || !writable(dir, "cgroup.procs"))
        return false;
    ssize_t n = slurp_in(dir, "cgroup.controllers", text, sizeof text);
    unsigned have = n < 0 ? 0 : controllers_in(text, (size_t)n, ' ');
    /* Every group except the true root has a type; the root of a cgroup namespace is not the true root. */
    n = slurp_in(dir, "cgroup.type", text, sizeof text);
    bool root = n == -ENOENT;
    if (!root && (n < 0 || strcmp(text, "domain\n") != 0))
        return false;
    if (!root && !has_no_members(dir))
        return false;
    if (!writable(dir, "cgroup.subtree_control")) {
        n = slurp_in(dir, "cgroup.subtree_control", text, sizeof text);
        have &= n < 0 ? 0 : controllers_in(text, (size_t)n, ' ');
    }
    if (!have)
        return false;
    ret->controllers = have;
    return true;
}

static void find_v2(struct cgroup_place *ret, const char *self)
{
    char dir[CGROUP_PATH_MAX];
    int n = snprintf(dir, sizeof dir, "%s%s", CGROUP_ROOT, strcmp(self, "/") == 0 ? "" : self);

    if (n < 0 || (size_t)n >= sizeof dir)
        return;
    if (access(dir, F_OK) < 0) /* a container that shows only the root of its own tree */
        strcpy(dir, CGROUP_ROOT);
    for (;;) {
        if (usable_parent(dir, ret)) {
            ret->kind = CGROUP_V2;
            ret->pin = access(SYSTEMD_IS_BOOTED, F_OK) == 0;
            strcpy(ret->parent[0], dir);
            return;
        }
        char *slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(CGROUP_ROOT) || !slash)
            return;
        *slash = 0;
    }
}

/* Whether the caller's own service manager can provide a delegated scope, and with which controllers. */
static bool systemd_user(struct cgroup_place *ret)
{
    char path[CGROUP_PATH_MAX], text[CONTROLLERS_MAX];
    unsigned uid = (unsigned)geteuid();

    snprintf(path, sizeof path, "/run/user/%u/systemd/private", uid);
    if (uid == 0 || access(SYSTEMD_IS_BOOTED, F_OK) < 0 || access(path, W_OK) < 0)
        return false;
    snprintf(path, sizeof path, CGROUP_ROOT "/user.slice/user-%u.slice/user@%u.service", uid, uid);
    ssize_t n = slurp_in(path, "cgroup.controllers", text, sizeof text);
    ret->controllers = n < 0 ? 0 : controllers_in(text, (size_t)n, ' ');
    if (ret->controllers == 0)
        return false;
    ret->kind = CGROUP_V2_SYSTEMD;
    return true;
}

static void find_v1(struct cgroup_place *ret, const char *text)
{
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        char self[CGROUP_PATH_MAX], *dir = ret->parent[c];
        if (cgroup_path_in(text, controllers[c], self, sizeof self) < 0)
            continue;
        int n = snprintf(dir, CGROUP_PATH_MAX, CGROUP_ROOT "/%s%s", controllers[c], strcmp(self, "/") == 0 ? "" : self);
        if (n < 0 || n >= CGROUP_PATH_MAX || access(dir, F_OK) < 0)
            snprintf(dir, CGROUP_PATH_MAX, CGROUP_ROOT "/%s", controllers[c]);
        if (writable(dir, NULL) && writable(dir, "tasks"))
            ret->controllers |= 1u << c;
        else
            dir[0] = 0;
    }
    if (ret->controllers)
        ret->kind = CGROUP_V1;
}

/* Why nobody can write there, if so: containers show their groups read-only, or none. Neither being root nor a service manager helps. */
static const char *closed_to_all(bool v2)
{
    struct statfs fs;
    char dir[64] = CGROUP_ROOT;
    bool found = v2;
    for (unsigned c = 0; !found && c < CGROUP_CONTROLLERS; c++)
        found = join(dir, sizeof dir, CGROUP_ROOT, controllers[c]) && access(dir, F_OK) == 0;
    if (!found)
        return "no control groups are mounted on /sys/fs/cgroup";
    return statfs(dir, &fs) == 0 && (fs.f_flags & ST_RDONLY)
               ? "the control groups below /sys/fs/cgroup are read-only here, as in a container"
               : NULL;
}

static void explain_place(struct cgroup_place *ret, bool v2)
{
    if ((ret->controllers & ALL_CONTROLLERS) == ALL_CONTROLLERS)
        return;
    if (ret->kind != CGROUP_NONE) {
        ret->why_not = ret->controllers & (1u << CGROUP_CPU)
                           ? "the memory or pids controller is not available to this user's control groups"
                           : "the cpu controller is not available to this user's control groups";
        ret->remedy = v2 ? "sudo systemctl set-property user@$(id -u).service Delegate='cpu memory pids'" : NULL;
        return;
    }
    ret->why_not = closed_to_all(v2);
    if (ret->why_not)
        return;
    if (v2 && access(SYSTEMD_IS_BOOTED, F_OK) == 0) {
        ret->why_not = "no control group is delegated to this user and there is no systemd user manager to ask";
        ret->remedy = "sudo loginctl enable-linger $(id -un)";
    } else {
        ret->why_not = v2 ? "no control group is delegated to this user"
                          : "the control groups (version 1) below /sys/fs/cgroup are not writable for this user";
        if (!v2 && geteuid() != 0)
            ret->remedy = "start pinfold as root, or boot with systemd.unified_cgroup_hierarchy=1 for version 2";
    }
}

void cgroup_find(struct cgroup_place *ret)
{
    char text[SELF_CGROUP_MAX], self[CGROUP_PATH_MAX];
    bool v2 = is_v2();

    memset(ret, 0, sizeof *ret);
    if (slurp("/proc/self/cgroup", text, sizeof text) < 0) {
        ret->why_not = "/proc/self/cgroup cannot be read";
        return;
    }
    if (v2 && cgroup_path_in(text, "", self, sizeof self) == 0)
        find_v2(ret, self);
    if (v2 && ret->kind == CGROUP_NONE)
        systemd_user(ret);
    if (!v2)
        find_v1(ret, text);
    explain_place(ret, v2);
}

static void note_lack(struct facts *f, enum feature what, const char *why, const char *remedy)
{
    f->can &= ~((features)1 << what);
    f->why_not[what] = why;
    f->remedy[what] = remedy;
}

void cgroup_probe(struct facts *f, bool asked, struct arena *mem)
{
    struct cgroup_place at = {.kind = CGROUP_NONE, .why_not = "no requested limit needs a control group"};
    if (asked)
        cgroup_find(&at);
    const char *why = at.why_not ? arena_text(mem, at.why_not) : NULL;
    const char *remedy = at.remedy ? arena_text(mem, at.remedy) : NULL;
    /* The watcher counts through /proc; with hidepid, a user sees nothing of a non-dumpable pid 1. */
    const bool proc = access("/proc/1/stat", R_OK) == 0;
    const char *unseen = proc || access("/proc/self", F_OK) == 0
                             ? "no control group, and /proc hides processes (hidepid)"
                             : "no control group, and /proc is not mounted";

    f->cgroup = at.kind;
    f->can |= F(CGROUP_LIMITS) | F(LIMIT_MEMORY) | F(LIMIT_CPU) | F(LIMIT_PROCESSES) | F(LIMIT_DISK);
    if ((at.controllers & NEEDED_FOR_EXACT) != NEEDED_FOR_EXACT)
        note_lack(f, FEATURE_CGROUP_LIMITS, why, remedy);
    f->cpu_by_group = at.controllers & (1u << CGROUP_CPU);
    if (!proc && !f->cpu_by_group)
        note_lack(f, FEATURE_LIMIT_CPU, unseen, remedy);
    if (!proc && !(at.controllers & (1u << CGROUP_MEMORY)))
        note_lack(f, FEATURE_LIMIT_MEMORY, unseen, remedy);
    if (!proc && !(at.controllers & (1u << CGROUP_PIDS)))
        note_lack(f, FEATURE_LIMIT_PROCESSES, unseen, remedy);
}
