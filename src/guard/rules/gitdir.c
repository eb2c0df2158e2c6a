/*
 * Repositories, recognised by content instead of name: git uses the configuration and hooks of any directory that has
 * `objects` and `refs` (setup.c, is_git_directory; with `commondir`, of the directory that file names), whether it is
 * `.git`, `x.git`, `.git/modules/x` or whatever a `.git` file points to.
 *
 * Replacing a configuration: the box renames (or links) its new content onto the name, as git does with config.lock.
 * The guard reads the content by descriptor, judges it, writes it into a new file that nobody else has ever had open,
 * and renames that into place. So the file contains what was judged.
 *
 * .gitmodules is a tracked file, which a checkout writes in place. The writer gets a nameless file, and each time it is
 * closed a judged copy takes the name. This is a moment later than the close, but before any other call that the guard
 * sees; git writes its index afterwards, so the file is in place when git is done. stat(2) and opens for reading are
 * not notified, and git uses them to look at what it has just written. So if the name was free, a placeholder has it
 * meanwhile: an empty file with a lease (fcntl(2)), which makes an open wait until the judged content is in it, or it
 * is known that the writer is not done.
 * libgit2 (cargo) also creates the configuration of a new repository in place, empty at first: if there is none, an
 * empty file takes the name at once.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <time.h>
#include "base/fd.h"
#include "git/gitconfig.h"
#include "guard/calls/calls.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"

#define HOOKS_MAX 512 /* entries; git's templates hold 14 */

bool git_hooks_inert(int dir, const char *name)
{
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd == -ENOENT;
    _Alignas(8) char records[8192];
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    unsigned seen = 0;
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));)
        if (!str_ends(str_of(d->name), STR(".sample")) || ++seen > HOOKS_MAX)
            return false;
    return entries.no == 0;
}

void guard_temp_name(const struct guard *g, char text[64])
{
    /* by the time, because other guards create such names, too, and a file API call has no number */
    (void)snprintf(text, 64, GUARD_TEMP "%x-%llx-%lx", g->n.pid, (unsigned long long)g->n.id,
                   (unsigned long)exact_ns());
}

/* Moves all but "." and "..", up to HOOKS_MAX. */
static int move_entries(int from, int to)
{
    _Alignas(8) char records[8192];
    auto_fd int list = sys_openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct sys_entries entries = SYS_ENTRIES(list, records);
    unsigned seen = 0;
    if (list < 0)
        return list;
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        const int no = ++seen > HOOKS_MAX ? -EACCES : sys_rename_new(from, d->name, to, d->name);
        if (no < 0)
            return no;
    }
    return entries.no;
}

/* Replaces the open directory `old`, which has the name, by `fresh`, which has a name of the guard's. */
static int renew_from(int dir, const char *name, int old, const char *temp)
{
    struct sys_stat st;
    auto_fd int fresh = sys_openat(dir, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    int no = fresh < 0 ? fresh : sys_stat_fd(old, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = move_entries(old, fresh);
    if (no == 0 && !git_hooks_inert(dir, temp))
        no = -EACCES;
    if (no == 0)
        no = sys_fchmod(fresh, st.mode & 0777);
    if (no == 0)
        no = sys_unlinkat(dir, name, AT_REMOVEDIR); /* fails while there is anything in it */
    if (no == 0)
        return sys_rename_new(dir, temp, dir, name);
    if (fresh >= 0)
        (void)move_entries(fresh, old);
    return no;
}

int git_hooks_renew(struct guard *g, int dir, const char *name)
{
    char temp[64];
    auto_fd int old = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (old < 0)
        return old == -ENOENT ? 0 : -EACCES;
    if (!git_hooks_inert(dir, name))
        return -EACCES;
    guard_temp_name(g, temp);
    if (sys_mkdirat(dir, temp, 0700) < 0)
        return -EACCES;
    int no = renew_from(dir, name, old, temp);
    if (no < 0)
        (void)sys_unlinkat(dir, temp, AT_REMOVEDIR);
    return no < 0 ? -EACCES : 0;
}

static struct str directory_of(struct str path)
{
    while (path.n > 1 && path.p[path.n - 1] != '/')
        path.n--;
    return (struct str){path.p, path.n > 1 ? path.n - 1 : path.n};
}

bool git_config_inert(struct guard *g, int dir, const char *name, struct str path)
{
    auto_fd int fd = git_text_open(dir, name);
    char *bytes;
    size_t n;
    if (fd < 0)
        return fd == -ENOENT;
    if (git_text_read(fd, gitconfig_kind_of(path), &bytes, &n) < 0)
        return false;
    struct gitconfig_ask ask = {.kind = gitconfig_kind_of(path),
                                .new_text = {bytes, n},
                                .directory = directory_of(path),
                                .root = rules_root(&g->rules, path)};
    bool inert = git_judge(&ask, NULL) == 0;
    free(bytes);
    return inert;
}

/* Not for every user to write, whatever the box made it; on some file systems modes cannot be chosen, and mean nothing. */
static int give_mode(int fd, unsigned mode)
{
    const int no = sys_fchmod(fd, mode & 0775);
    return no == -EPERM ? sys_fchmod(fd, mode & 0777) : no;
}

/* Writes a new file beside `name` with these bytes and this mode and time (by which git tells what may have changed since an
   index was written), then puts it in place. */
static int put_in_place(struct guard *g, int dir, const char *name, struct str bytes, const struct sys_stat *like,
                        bool replace)
{
    char temp[64];
    guard_temp_name(g, temp);
    auto_fd int fd = sys_openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fd;
    int no = sys_write_all(fd, bytes.p, bytes.n);
    if (no == 0)
        no = give_mode(fd, like->mode);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = like->modified.seconds, .tv_nsec = like->modified.nanoseconds}};
    if (no == 0)
        no = sys_utimensat(fd, NULL, times, 0);
    if (no == 0)
        no = replace ? sys_renameat2(dir, temp, dir, name, 0) : sys_rename_new(dir, temp, dir, name);
    if (no < 0)
        (void)sys_unlinkat(dir, temp, 0);
    return no;
}

/* The same with a submodule's absolute path made relative, so that it stays right when the work tree moves. */
static int put_relative_path(struct guard *g, int dir, const char *name, struct str path, struct str bytes,
                             const struct sys_stat *like, bool replace)
{
    auto_buf struct buf relative = BUF(2 * GITCONFIG_MAX_BYTES);
    int no = gitconfig_kind_of(path) == GITCONFIG_REPOSITORY
                 ? gitconfig_relative(bytes, directory_of(path), rules_root(&g->rules, path), &relative)
                 : 0;
    return no < 0 ? no : put_in_place(g, dir, name, no ? buf_view(&relative) : bytes, like, replace);
}

/* Whether this configuration leaves protected branches where they are judged (branches.c). */
static bool keeps_branches(struct guard *g, struct str directory, struct str text)
{
    static const char word[] = "refstorage";
    bool ours = false;
    for (size_t i = 0; i < g->rules.n_branches; i++)
        ours |= fold_eq(directory, g->rules.branches[i].below);
    for (size_t at = 0; ours && at + sizeof word - 1 <= text.n; at++)
        if (fold_eq((struct str){text.p + at, sizeof word - 1}, STR(word)))
            return false;
    return true;
}

/* Judges the content: keys, and where paths of submodules lead now. */
static int judge_text(struct guard *g, const struct gitconfig_ask *ask, struct buf *why)
{
    int no = git_judge(ask, why);
    if (no == 0 && ask->kind == GITCONFIG_REPOSITORY && !keeps_branches(g, ask->directory, ask->new_text)) {
        if (why)
            buf_text(why, "extensions.refStorage, where branches are checked (git.verify: required)");
        no = -EACCES;
    }
    if (no == 0 && ask->kind == GITCONFIG_REPOSITORY &&
        !module_text_fits(g, ask->directory, ask->old_text, ask->new_text)) {
        if (why)
            buf_text(why, "core.worktree goes through a link, or to a guarded name");
        no = -EACCES;
    }
    return no;
}

/* Writes into an empty file that nobody else has open. */
static int fill(int fd, struct str bytes, unsigned mode)
{
    int no = sys_write_all(fd, bytes.p, bytes.n);
    return no < 0 ? no : give_mode(fd, mode);
}

/* Judges the content of `source` as the new content of `to`, and puts it there; into `stand_in` unless that is -1. */
static int judge_and_put(struct guard *g, int source, const struct place *to, const struct rule *rule, bool replace,
                         int stand_in)
{
    char *new_bytes = NULL, *old_bytes = NULL;
    size_t new_n = 0, old_n = 0;
    struct sys_stat st;
    const enum gitconfig_kind kind = gitconfig_kind_of(place_path(to));
    /* An index is judged by itself. */
    auto_fd int old = stand_in >= 0 || kind == GITCONFIG_INDEX ? -ENOENT : git_text_open(to->dir, to->name);
    int no = sys_stat_fd(source, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = git_text_read(source, kind, &new_bytes, &new_n);
    if (no == -EINVAL || no == -EFBIG)
        no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to),
                  kind == GITCONFIG_INDEX ? "an index of git that is not a file of at most 64 MiB"
                                          : "git configuration that is not a file of at most 1 MiB");
    if (no == 0 && old != -ENOENT && (old < 0 || git_text_read(old, kind, &old_bytes, &old_n) < 0))
        no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), "the present git configuration cannot be read");
    if (no == 0) {
        struct buf why = BUF(1024);
        struct gitconfig_ask ask = {.kind = kind,
                                    .old_text = {old_bytes, old_n},
                                    .new_text = {new_bytes, new_n},
                                    .directory = place_dir(to),
                                    .root = rules_root(&g->rules, place_path(to))};
        if (judge_text(g, &ask, &why) < 0)
            no = deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), buf_cstr(&why));
        buf_free(&why);
    }
    if (no == 0 && stand_in >= 0)
        no = fill(stand_in, (struct str){new_bytes, new_n}, st.mode);
    else if (no == 0)
        no = put_relative_path(g, to->dir, to->name, place_path(to), (struct str){new_bytes, new_n}, &st, replace);
    free(new_bytes);
    free(old_bytes);
    return no;
}

int git_config_adopt(struct guard *g, int dir, const char *name, struct str directory)
{
    char *bytes = NULL;
    size_t n = 0;
    struct sys_stat st;
    auto_buf struct buf path = BUF(PLACE_PATH + 8);
    auto_fd int fd = git_text_open(dir, name);
    if (fd < 0)
        return fd == -ENOENT ? 0 : -EACCES;
    buf_str(&path, directory);
    buf_char(&path, '/');
    buf_text(&path, name);
    struct gitconfig_ask ask = {.kind = gitconfig_kind_of(buf_view(&path)), .directory = directory};
    int no =
        !buf_ok(&path) || git_text_read(fd, ask.kind, &bytes, &n) < 0 ? -EACCES : sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    ask.root = rules_root(&g->rules, buf_view(&path));
    ask.new_text = (struct str){bytes, n};
    if (no == 0 && judge_text(g, &ask, NULL) < 0)
        no = -EACCES;
    if (no == 0)
        no = put_relative_path(g, dir, name, buf_view(&path), ask.new_text, &st, true);
    free(bytes);
    return no;
}

int git_config_replace(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                       bool keep_source)
{
    auto_fd int source = git_text_open(from->dir, from->name);
    if (source == -ELOOP)
        return deny(g, DENIAL_GIT_CONFIG, rule, place_path(to), "a link in place of git configuration");
    if (source < 0)
        return source;
    int no = judge_and_put(g, source, to, rule, !keep_source, -1);
    if (no == 0 && !keep_source)
        (void)sys_unlinkat(from->dir, from->name, 0);
    return no;
}

int git_put_refs(struct guard *g, const struct place *from, const struct place *to, struct str text)
{
    struct sys_stat st;
    int no = sys_stat_at(from->dir, from->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = put_in_place(g, to->dir, to->name, text, &st, true);
    if (no == 0)
        (void)sys_unlinkat(from->dir, from->name, 0);
    return no;
}

/* ---- what is written in place: .gitmodules, when git checks out a tree, and the first configuration ---- */

/* The file for the caller to write: nameless, with the present content (unless truncated) and permissions. */
static int nameless(const struct place *p, int flags, unsigned mode, int old)
{
    char *bytes = NULL;
    size_t n = 0;
    int fd = sys_openat(p->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (fd < 0) /* a file system without O_TMPFILE */
        fd = sys_memory(".gitmodules");
    if (fd < 0 || old < 0)
        return fd;
    struct sys_stat st;
    int no = sys_stat_fd(old, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = sys_fchmod(fd, st.mode & 0777);
    if (no == 0 && !(flags & O_TRUNC))
        no = git_text_read(old, gitconfig_kind_of(place_path(p)), &bytes, &n);
    if (no == 0 && bytes)
        no = sys_write_all(fd, bytes, n);
    free(bytes);
    return no < 0 ? close_fd(fd), no : fd;
}

#define UNBORN    (-1)
#define SETTLE_MS 10000 /* for a watcher that hangs in a dead file system; this delays, but weakens nothing */

static void woken(int signal)
{
    (void)signal;
}

static void wait_told(struct watcher *w, uint32_t seen)
{
    const struct timespec t = {.tv_nsec = 20 * 1000 * 1000};
    (void)sys_call(SYS_futex, &w->told, FUTEX_WAIT, seen, &t, 0, 0);
}

void git_modules_settle(struct guard *g)
{
    struct shared *s = g->shared;
    for (struct watcher *w = s->watchers; w < s->watchers + WATCHERS; w++) {
        uint32_t asked = 0;
        table_lock(s);
        int32_t pid = w->pid;
        if (pid) {
            asked = atomic_fetch_add(&w->asked, 1) + 1;
            if (pid != UNBORN)
                (void)sys_kill(pid, SIGUSR1);
        }
        table_unlock(s);
        for (uint64_t until = now_ms() + SETTLE_MS; pid && now_ms() < until;) {
            uint32_t told = atomic_load(&w->told);
            if ((int32_t)(told - asked) >= 0)
                break;
            wait_told(w, told);
        }
    }
}

/* Reserves an entry before the watcher exists, so that it finds earlier requests. NULL: none is free. */
static struct watcher *watcher_enter(struct shared *s)
{
    struct watcher *w = NULL;
    table_lock(s);
    for (size_t i = 0; i < WATCHERS && !w; i++)
        w = s->watchers[i].pid ? NULL : &s->watchers[i];
    if (w) {
        w->pid = UNBORN;
        atomic_fetch_add(&s->watching, 1);
    }
    table_unlock(s);
    return w;
}

static void watcher_tell(struct watcher *w, uint32_t asked)
{
    atomic_store(&w->told, asked);
    (void)sys_call(SYS_futex, &w->told, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

static void watcher_born(struct shared *s, struct watcher *w)
{
    table_lock(s);
    w->pid = sys_getpid();
    table_unlock(s);
}

static void watcher_leave(struct shared *s, struct watcher *w)
{
    table_lock(s);
    w->pid = 0;
    atomic_fetch_sub(&s->watching, 1);
    table_unlock(s);
    watcher_tell(w, atomic_load(&w->asked));
}

/* Creates the placeholder at a free name, with its lease; -1 without. An opener waits for the lease. */
static int stand_in_make(const struct place *p)
{
    auto_fd int fd = sys_openat(p->dir, p->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && sys_fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
        (void)sys_unlinkat(p->dir, p->name, 0);
        return -1;
    }
    return fd < 0 ? -1 : take_fd(&fd);
}

static bool stand_in_named(const struct place *p, int fd)
{
    struct sys_stat here;
    return sys_stat_fd(fd, SYS_STAT_BASIC, &here) == 0 && sys_is_at(p->dir, p->name, &here);
}

/* Whether nobody else has it open: with a waiting reader the lease's target is a read lease. */
static bool stand_in_ours(const struct place *p, int fd)
{
    int lease = fd < 0 ? F_UNLCK : sys_fcntl(fd, F_GETLEASE, 0);
    return (lease == F_WRLCK || lease == F_RDLCK) && stand_in_named(p, fd);
}

/* The name lock is held exclusively. */
static void watched_close(struct guard *g, struct place *p, const struct rule *rule, int file, int *stand_in)
{
    bool ours = stand_in_ours(p, *stand_in);
    int no = hold_place(g, p, DENIAL_GIT_CONFIG);
    if (no == 0)
        no = judge_and_put(g, file, p, rule, true, ours ? *stand_in : -1);
    if (no < 0 && *stand_in >= 0 && stand_in_named(p, *stand_in))
        (void)sys_unlinkat(p->dir, p->name, 0);
    holds_drop(g);
    *stand_in = close_fd(*stand_in); /* closes the lease, too */
}

/* In a separate process: each time a writer closes the file, judges its content and puts a copy in place. */
static _Noreturn void watch(struct guard *g, struct place *p, const struct rule *rule, int file, int events,
                            struct watcher *w, int stand_in)
{
    uint64_t open = 0;
    g->watches = true;
    (void)sys_sigmask_swap(SIG_BLOCK, SYS_SIGNAL_BIT(SIGUSR1) | SYS_SIGNAL_BIT(SIGIO), &open);
    (void)signal(SIGUSR1, woken); /* via libc, because a handler needs its restorer */
    (void)signal(SIGIO, woken);
    if (stand_in >= 0)
        (void)sys_fcntl(stand_in, F_SETOWN, sys_getpid());
    if (w)
        watcher_born(g->shared, w);
    for (bool ended = false, due = false;;) {
        char bytes[4096];
        uint32_t asked = w ? atomic_load(&w->asked) : 0;
        /* Check this first: an opener that comes after the writer's close finds that close reported. */
        bool opened = stand_in >= 0 && sys_fcntl(stand_in, F_GETLEASE, 0) != F_WRLCK;
        due |= sys_read(events, bytes, sizeof bytes) > 0;
        bool closed = due && names_lock(g, true) == 0;
        if (closed) {
            due = false;
            watched_close(g, p, rule, file, &stand_in);
            names_unlock(g);
        } else if (opened && !due) {
            stand_in = close_fd(stand_in); /* opened before the writer is done: it is still empty */
        }
        /* A read lease is granted once there is no writer (fcntl(2)). */
        bool over = ended || (closed && sys_fcntl(file, F_SETLEASE, F_RDLCK) == 0);
        if (w && over)
            watcher_leave(g->shared, w);
        else if (w)
            watcher_tell(w, asked);
        if (over) {
            atomic_fetch_sub(&g->shared->watched, 1);
            guard_leave(g);
        }
        struct pollfd wait[] = {{.fd = events, .events = POLLIN}, {.fd = g->init_pidfd, .events = POLLIN}};
        /* All writers end with pid 1; what was closed counts. */
        ended = sys_poll_masked(wait, 2, open) > 0 && wait[1].revents;
    }
}

long git_in_place_open(struct guard *g, struct place *p, const struct rule *rule, int flags, unsigned mode)
{
    char room[12];
    auto_fd int old = git_text_open(p->dir, p->name);
    if (old < 0 && old != -ENOENT)
        return old == -ELOOP ? deny(g, DENIAL_GIT_CONFIG, rule, place_path(p), "a link in place of git configuration")
                             : old;
    if (old >= 0 && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (old < 0 && !(flags & O_CREAT))
        return -ENOENT;
    int no = target_umask(g);
    if (no == 0 && gitconfig_kind_of(place_path(p)) == GITCONFIG_REPOSITORY) {
        auto_fd int empty = sys_openat(p->dir, p->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        no = empty < 0 ? empty : 0;
    }
    auto_fd int file = no < 0 ? no : nameless(p, flags, mode, old);
    if (file < 0)
        return file;
    auto_fd int events = sys_inotify(IN_CLOEXEC | IN_NONBLOCK);
    /* A read-only descriptor for the watcher, so that closing it triggers no event. */
    auto_fd int reading = own_reopen(g, file, O_RDONLY);
    auto_fd int giving = own_reopen(g, file, flags & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    file = close_fd(file);
    if (reading < 0 || giving < 0)
        return giving < 0 ? giving : reading; /* its permissions forbid writing or judging it */
    if (events < 0 || sys_inotify_add(events, decimal(room, reading), IN_CLOSE_WRITE) < 0)
        return -ENOMEM;
    auto_fd int stand_in = old < 0 && gitconfig_kind_of(place_path(p)) != GITCONFIG_REPOSITORY ? stand_in_make(p) : -1;
    struct watcher *w = watcher_enter(g->shared);
    no = atomic_fetch_add(&g->shared->watched, 1) < WATCHED_MAX ? guard_child(g) : -EMFILE;
    if (no < 0) {
        atomic_fetch_sub(&g->shared->watched, 1);
        if (w)
            watcher_leave(g->shared, w);
        if (stand_in >= 0)
            (void)sys_unlinkat(p->dir, p->name, 0);
        return no;
    }
    if (no == 1) {
        giving = close_fd(giving);
        watch(g, p, rule, reading, events, w, take_fd(&stand_in));
    }
    holds_drop(g);
    return descriptor_install(g, giving, flags & O_CLOEXEC);
}
