/*
 * Repositories, by what they are and not by what they are called: git takes the configuration and the hooks of any
 * directory that holds `objects` and `refs` (setup.c, is_git_directory; with `commondir` the directory that file
 * names), whether it is `.git`, `x.git`, `.git/modules/x` or whatever a `.git` file points to.
 *
 * A configuration is replaced like this: the box renames (or links) its new content onto the name, as git does with
 * config.lock. The guard reads those bytes by descriptor, judges them, writes them into a fresh file that nobody else
 * has ever had open, and renames that one into place. So what was judged is what stands there.
 *
 * .gitmodules is a tracked file, which a checkout writes in place. Its writer gets a nameless file instead, and whenever
 * it is closed a judged copy takes the name: what stands there has always been judged, a moment later than it was said.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include "base/fd.h"
#include "guard/gitconfig.h"
#include "guard/inside.h"

static bool stands(int dir, const char *name)
{
    struct sys_stat st;
    return sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0;
}

bool git_is_common(int dir)
{
    return stands(dir, "objects") && stands(dir, "refs");
}

struct record { /* struct linux_dirent64 */
    uint64_t inode, next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

#define HOOKS_MAX 512 /* entries; git's templates hold 14 */

bool git_hooks_inert(int dir, const char *name)
{
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -ENOENT;
    _Alignas(8) char records[8192];
    for (unsigned seen = 0;;) {
        long n = sys_getdents64(fd, records, sizeof records);
        if (n <= 0)
            return n == 0;
        for (long at = 0; at < n;) {
            const struct record *r = (const void *)(records + at);
            struct str entry = str_of(r->name);
            if (!str_is(entry, ".") && !str_is(entry, "..") && !str_ends(entry, STR(".sample")))
                return false;
            if (++seen > HOOKS_MAX)
                return false;
            at += r->bytes;
        }
    }
}

/* All bytes of a regular file; malloc()ed. */
static int read_all(int fd, char **ret, size_t *ret_n)
{
    struct sys_stat st;
    int no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (!S_ISREG(st.mode))
        return -EINVAL;
    char *bytes = malloc(GITCONFIG_MAX_BYTES + 1);
    size_t n = 0;
    long got = bytes ? 1 : -ENOMEM;
    while (got > 0 && n <= GITCONFIG_MAX_BYTES) {
        got = sys_pread(fd, bytes + n, GITCONFIG_MAX_BYTES + 1 - n, n);
        if (got > 0)
            n += (size_t)got;
    }
    if (got != 0 || n > GITCONFIG_MAX_BYTES) {
        free(bytes);
        return got < 0 ? (int)got : -EFBIG;
    }
    *ret = bytes;
    *ret_n = n;
    return 0;
}

/* O_NONBLOCK: a FIFO in its place must not hold us. */
static int open_read(int dir, const char *name)
{
    return sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
}

static enum gitconfig_kind kind_of(struct str path)
{
    return path.n >= 12 && fold_eq(str_skip(path, path.n - 12), STR("/.gitmodules")) ? GITCONFIG_MODULES
                                                                                     : GITCONFIG_REPOSITORY;
}

static struct str directory_of(struct str path)
{
    while (path.n > 1 && path.p[path.n - 1] != '/')
        path.n--;
    return (struct str){path.p, path.n > 1 ? path.n - 1 : path.n};
}

bool git_config_inert(struct guard *g, int dir, const char *name, struct str path)
{
    auto_fd int fd = open_read(dir, name);
    char *bytes;
    size_t n;
    if (fd < 0)
        return fd == -ENOENT;
    if (read_all(fd, &bytes, &n) < 0)
        return false;
    bool inert =
        gitconfig_inert(kind_of(path), (struct str){bytes, n}, directory_of(path), rules_root(&g->rules, path));
    free(bytes);
    return inert;
}

static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        long done = sys_write(fd, bytes, n);
        if (done == -EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? (int)done : -EIO;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* A fresh file beside `to`, with these bytes and this mode, then in its place. */
static int put_in_place(struct guard *g, const struct place *to, const char *bytes, size_t n, unsigned mode,
                        bool replace)
{
    char temp[64];
    (void)snprintf(temp, sizeof temp, GUARD_TEMP "%x-%llx", g->n.pid, (unsigned long long)g->n.id);
    auto_fd int fd = sys_openat(to->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fd;
    int no = write_all(fd, bytes, n);
    if (no == 0)
        no = sys_fchmod(fd, mode & 0777);
    if (no == 0)
        no = sys_renameat2(to->dir, temp, to->dir, to->name, replace ? 0 : RENAME_NOREPLACE);
    if (no < 0)
        (void)sys_unlinkat(to->dir, temp, 0);
    return no;
}

/* Judges the bytes behind `source` as the new content of `to`, and puts them there. */
static int judge_and_put(struct guard *g, int source, const struct place *to, const struct rule *rule, bool replace)
{
    char *new_bytes = NULL, *old_bytes = NULL;
    size_t new_n = 0, old_n = 0;
    struct sys_stat st;
    auto_fd int old = open_read(to->dir, to->name);
    int no = sys_stat_at(source, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = read_all(source, &new_bytes, &new_n);
    if (no == -EINVAL || no == -EFBIG)
        no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), "git configuration that is no file of at most 1 MiB");
    if (no == 0 && old != -ENOENT && (old < 0 || read_all(old, &old_bytes, &old_n) < 0))
        no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), "the present git configuration cannot be read");
    if (no == 0) {
        struct buf why = BUF(1024);
        struct gitconfig_ask ask = {.kind = kind_of(place_path(to)),
                                    .old_text = {old_bytes, old_n},
                                    .new_text = {new_bytes, new_n},
                                    .directory = place_dir(to),
                                    .root = rules_root(&g->rules, place_path(to))};
        if (gitconfig_judge(&ask, &why) < 0)
            no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), buf_cstr(&why));
        buf_free(&why);
    }
    if (no == 0)
        no = put_in_place(g, to, new_bytes, new_n, st.mode, replace);
    free(new_bytes);
    free(old_bytes);
    return no;
}

int git_config_replace(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                       bool keep_source)
{
    auto_fd int source = open_read(from->dir, from->name);
    if (source == -ELOOP)
        return deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), "git configuration as a link");
    if (source < 0)
        return source;
    int no = judge_and_put(g, source, to, rule, !keep_source);
    if (no == 0 && !keep_source)
        (void)sys_unlinkat(from->dir, from->name, 0);
    return no;
}

/* ---- .gitmodules, which git writes in place when it checks out a tree ---- */

const struct rule *git_modules_rule(struct guard *g, const struct place *p)
{
    size_t end;
    const struct rule *rule = rules_guarded(&g->rules, place_path(p), &end);
    return rule && g->rules.mode == GUARD_STRICT && end == p->n && rule_is_git_config(rule) &&
                   kind_of(place_path(p)) == GITCONFIG_MODULES
               ? rule
               : NULL;
}

/* The file the caller writes: nameless, with the present content unless it asked for none. */
static int nameless(struct guard *g, const struct place *p, int flags, unsigned mode, int old)
{
    char *bytes = NULL;
    size_t n = 0;
    int fd = sys_openat(p->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (fd < 0) /* a file system without O_TMPFILE */
        fd = (int)sys_call(SYS_memfd_create, ".gitmodules", MFD_CLOEXEC, 0, 0, 0, 0);
    int no = fd < 0 || old < 0 || (flags & O_TRUNC) ? 0 : read_all(old, &bytes, &n);
    if (no == 0 && bytes)
        no = write_all(fd, bytes, n);
    free(bytes);
    (void)g;
    return no < 0 ? close_fd(fd), no : fd;
}

/* In a process of its own: each time a writer closes the file, its bytes are judged and a copy takes the name. */
static _Noreturn void watch(struct guard *g, const struct place *p, const struct rule *rule, int file, int events)
{
    for (;;) {
        struct pollfd wait[] = {{.fd = events, .events = POLLIN}, {.fd = g->init_pidfd, .events = POLLIN}};
        char bytes[4096];
        if (poll(wait, 2, -1) < 0)
            continue;
        if (wait[1].revents)
            _exit(0);
        (void)sys_read(events, bytes, sizeof bytes);
        names_lock(g, true);
        (void)judge_and_put(g, file, p, rule, true);
        names_unlock(g);
        /* A lease for reading is to be had when nobody writes (fcntl(2)). */
        if (sys_fcntl(file, F_SETLEASE, F_RDLCK) == 0)
            guard_leave(g);
    }
}

long git_modules_open(struct guard *g, const struct place *p, const struct rule *rule, int flags, unsigned mode)
{
    char room[12];
    auto_fd int old = open_read(p->dir, p->name);
    if (old < 0 && old != -ENOENT)
        return old == -ELOOP ? deny(g, DENIAL_GIT_CONFIG, rule, place_path(p), "git configuration as a link") : old;
    if (old >= 0 && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (old < 0 && !(flags & O_CREAT))
        return -ENOENT;
    int no = target_umask(g);
    auto_fd int file = no < 0 ? no : nameless(g, p, flags, mode, old);
    if (file < 0)
        return file;
    auto_fd int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* For the watcher: its own descriptor is for reading, so that closing it tells nothing. */
    auto_fd int reading = sys_openat(g->self_fd, decimal(room, file), O_RDONLY | O_CLOEXEC, 0);
    auto_fd int giving =
        sys_openat(g->self_fd, decimal(room, file), (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_CLOEXEC, 0);
    file = close_fd(file);
    if (events < 0 || reading < 0 || giving < 0 ||
        inotify_add_watch(events, decimal(room, reading), IN_CLOSE_WRITE) < 0)
        return -ENOMEM;
    no = guard_child(g);
    if (no < 0)
        return no;
    if (no == 1) {
        giving = close_fd(giving);
        watch(g, p, rule, reading, events);
    }
    return sys_notify_install(g->notify, g->n.id, giving, flags & O_CLOEXEC);
}
