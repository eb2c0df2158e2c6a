/*
 * The logins of an agent's box. A box gets what lasts for a while; what renews it stays with the host, whose file the owner of logins
 * (pinfold-login, agents/owner.c) alone changes. A process beside the box looks when that file changes or its login is about to end:
 * it has it renewed, and puts the new one, without what renews it, into the box's copy. It ends with pinfold, however that ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agents/expires.h"
#include "backends/tools/tool.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "run/agent/starting.h"
#include "sys/fd.h"

enum {
    AHEAD_S = 600, /* before a login ends; the agents themselves begin five minutes before, or later */
    LOOK_S = 60,   /* how long it sleeps at most: a machine that was suspended */
    FIRST_S = 1,   /* a box that ends sooner is not watched for */
    LOOK_BLIND_S = 5,
    AGAIN_S = 15, /* after a failure; doubled each time */
    AGAIN_MOST_S = 600,
    KEPT_MAX = 16,
    UP = 3,
    HIGH = 64 /* above what is open here */
};

struct kept_login {
    size_t layer;
    const struct agent_kept *file;
    const struct agent_renew *renew; /* of several logins in the file this one's; NULL: none is renewed */
    const char *path;                /* the host's */
    struct stat seen;
    int64_t ends, again, wait; /* again: not before; wait: the next one */
    bool lost;                 /* only another file changes that */
};
struct keeper {
    struct starting *s;
    struct kept_login logins[KEPT_MAX];
    size_t n;
    int up, notify;
};

static int open_login_owner(struct err *e)
{
    auto_arena struct arena *mem = arena_new(1 << 16);
    int fd = -1;
    int r = mem ? tool_helper(mem, "pinfold-login", NULL, &fd, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "login");
    if (r == -ENOENT)
        (void)err_hint(e, r, "install all of pinfold; it is built where libcurl4-openssl-dev is");
    return r < 0 ? r : fd;
}

/* ---- the owner ---- */

/* pinfold-agents/.logins/HASH: no agent has such a name, and every policy hides it. */
static int open_kept(const struct starting *s, const char *dir, const char *name, struct arena *mem, struct err *e)
{
    char real[PATH_MAX], sum[65];
    const char *what = realpath(dir, real) ? arena_printf(mem, "%s/%s", real, name) : NULL;
    sha256_hex(str_of(what ? what : ""), sum);
    const char *at = arena_printf(mem, "%s/.local/state/pinfold-agents/.logins/%.32s", s->world.home, sum);
    int r = what && at ? make_private_directories(at, e) : err_sys(e, ERR_SYSTEM, errno, "%s", dir);
    if (r < 0)
        return r;
    int fd = open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, ERR_SYSTEM, errno, "%s", at) : fd;
}

/* "answer", "answer1" ...: of the first login in the file, the second. */
static const char *answer_name(const struct agent_kept *f, const struct agent_renew *renew, struct arena *mem)
{
    size_t n = 0;
    for (const struct agent_renew *w = f->renew; w && w != renew; w = w->next)
        n++;
    return n ? arena_printf(mem, "answer%zu", n) : "answer";
}

static int owner_at(const struct starting *s, size_t i, const struct agent_kept *f, const struct agent_renew *renew,
                    int new_login, int stop, bool if_kept, int64_t *ret_expires, struct err *e)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    const char *path = mem ? starting_host_file(s, i, f) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *dir = slash ? arena_printf(mem, "%.*s", (int)(slash - path), path) : NULL;
    if (!dir)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "login");
    int made = new_login >= 0 ? make_private_directories(dir, e) : 0; /* the agent was never started here */
    if (made < 0)
        return made;
    auto_fd int host = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (host < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open %s", dir);
    auto_fd int kept = open_kept(s, dir, slash + 1, mem, e);
    if (kept < 0)
        return kept;
    const char *answer = answer_name(f, renew, mem), *word = NULL;
    if (if_kept && faccessat(kept, answer, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    int found = renew->program_word && new_login < 0 ? agent_program_word(&s->program, renew, mem, &word, e) : 0;
    if (found < 0)
        return err_wrap(e, found, "the login in %s is not renewed", path);
    const struct agent_owner_ask ask = {.renew = renew,
                                        .program_word = word,
                                        .answer = answer,
                                        .shown = path,
                                        .name = slash + 1,
                                        .host = host,
                                        .kept = kept,
                                        .new_login = new_login,
                                        .stop = stop,
                                        .ahead = AHEAD_S,
                                        .open_program = open_login_owner};
    return agent_owner(&ask, ret_expires, e);
}

int keep_owner(const struct starting *s, size_t i, const struct agent_kept *f, const struct agent_renew *renew,
               int new_login, int64_t *ret_expires, struct err *e)
{
    return owner_at(s, i, f, renew, new_login, -1, false, ret_expires, e);
}

/* Of the person's own file; 0 also where there is none. */
static int64_t ends_at(const char *path, const char *place, struct stat *ret)
{
    char *bytes = NULL;
    size_t n = 0;
    int64_t ends = 0;
    auto_fd int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    memset(ret, 0, sizeof *ret);
    if (fd >= 0 && fstat(fd, ret) == 0 && agent_file_read(fd, &bytes, &n) == 0)
        ends = agent_login_expires((struct str){bytes, n}, place);
    free(bytes);
    return ends;
}

static void renew_now(struct starting *s, size_t i, const struct agent_kept *f, const struct agent_renew *renew)
{
    struct stat st;
    struct err e = {0};
    const char *path = starting_host_file(s, i, f);
    int64_t ends = ends_at(path, renew->expires, &st);
    if (!path || !st.st_ino)
        return;
    const bool due = ends && ends < (int64_t)time(NULL) + AHEAD_S;
    int r = owner_at(s, i, f, renew, -1, -1, !due, &ends, &e);
    if (r < 0 && due) {
        s->renewal_told = true;
        buf_printf(&s->notes, "%s\n", e.text);
    }
}

void keep_renew(struct starting *s)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            const struct agent_kept *f = &s->agent.start.layers[i].files[k];
            for (const struct agent_renew *w = f->renew; w; w = w->next)
                renew_now(s, i, f, w);
        }
    }
}

/* ---- the process beside the box ---- */

static void tell_up(const struct keeper *k, const char *text)
{
    (void)send(k->up, text, strlen(text) + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool changed(const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_dev != b->st_dev || a->st_size != b->st_size ||
           memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) != 0 ||
           memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) != 0;
}

/* Puts what the host has into the box's copies. The host's files are opened anew: each is another one after a change. */
static void hand_in(struct keeper *k)
{
    struct err e = {0};
    auto_buf struct buf said = BUF(1 << 16);
    auto_fd int lock = -1;
    struct starting *s = k->s;
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t n = 0; n < s->agent.start.layers[i].n_files; n++)
            s->layers.open[i].files[n] = close_fd(s->layers.open[i].files[n]);
    }
    int r = starting_open(s, &e);
    if (r == 0)
        r = starting_hold(s, "lock", LOCK_EX, &lock, &e);
    if (r == 0 && starting_logged_out(s))
        return;
    if (r < 0 || agent_layers_do(&s->layers, AGENT_LOGINS, NULL, &said, &e) < 0)
        tell_up(k, e.text);
}

static void renew_one(struct keeper *k, struct kept_login *l, int64_t now)
{
    struct err e = {0};
    int64_t ends = 0;
    int r = owner_at(k->s, l->layer, l->file, l->renew, -1, k->up, false, &ends, &e);
    if (r == -ECANCELED)
        _exit(0);
    if (r >= 0) {
        l->wait = 0;
        l->again = now + AGAIN_S; /* if the file does not say that it lasts longer now */
        tell_up(k, "");
        return;
    }
    l->lost = r == -EKEYREVOKED || r == -ENOKEY;
    l->wait = !l->wait ? AGAIN_S : l->wait * 2 < AGAIN_MOST_S ? l->wait * 2 : AGAIN_MOST_S;
    l->again = now + l->wait;
    tell_up(k, e.text);
}

static int64_t due_at(const struct kept_login *l)
{
    int64_t due = l->ends - AHEAD_S;
    if (!l->renew || !l->ends || l->lost)
        return INT64_MAX;
    return due > l->again ? due : l->again;
}

static const char *expires_of(const struct kept_login *l)
{
    return l->renew ? l->renew->expires : l->file->expires;
}

/* One look: whether any of the host's files is another one than the box has. */
static bool look_at_login(struct keeper *k)
{
    bool news = false;
    for (size_t i = 0; i < k->n; i++) {
        struct kept_login *l = &k->logins[i];
        struct stat st = {0};
        if (stat(l->path, &st) < 0)
            st.st_ino = 0;
        if (!changed(&st, &l->seen))
            continue;
        l->ends = ends_at(l->path, expires_of(l), &l->seen);
        l->lost = false;
        l->again = l->wait = 0;
        news = true;
    }
    return news;
}

static void sleep_until(const struct keeper *k, int64_t due)
{
    char room[4096];
    int64_t now = (int64_t)time(NULL), most = k->notify < 0 ? LOOK_BLIND_S : LOOK_S,
            seconds = due <= now         ? 0
                      : due - now < most ? due - now
                                         : most;
    struct pollfd p[2] = {{.fd = k->up, .events = POLLIN}, {.fd = k->notify, .events = POLLIN}};
    if (poll(p, 2, (int)seconds * 1000) > 0 && p[0].revents)
        _exit(0);
    while (k->notify >= 0 && read(k->notify, room, sizeof room) > 0)
        ;
}

static void watch(struct keeper *k)
{
    k->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (size_t i = 0; i < k->n && k->notify >= 0; i++) {
        const char *path = k->logins[i].path;
        char dir[PATH_MAX];
        snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
        if (inotify_add_watch(k->notify, dir, IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR) < 0)
            k->notify = close_fd(k->notify);
    }
}

/* The kernel takes some ten milliseconds to end a watch, and pinfold waits for this process: a command that ends at once has none. */
static _Noreturn void keep_logins(struct keeper *k)
{
    sleep_until(k, (int64_t)time(NULL) + FIRST_S);
    watch(k);
    for (;;) {
        int64_t due = INT64_MAX, now = (int64_t)time(NULL);
        if (look_at_login(k))
            hand_in(k);
        for (size_t i = 0; i < k->n; i++)
            due = due_at(&k->logins[i]) < due ? due_at(&k->logins[i]) : due;
        sleep_until(k, due);
        for (size_t i = 0; i < k->n; i++) {
            now = (int64_t)time(NULL);
            if (due_at(&k->logins[i]) <= now)
                renew_one(k, &k->logins[i], now);
        }
    }
}

/* Nothing of pinfold's is left open: neither a terminal, nor what others wait for the end of. */
static _Noreturn void become_keeper(struct keeper *k, int up, int live, int lock)
{
    (void)setsid();
    may_fail(chdir("/")); /* no directory is held */
    for (const int *s = (const int[]){SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, 0}; *s; s++)
        (void)signal(*s, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int own[] = {up, live, lock}, last = UP;
    const size_t n_own = sizeof own / sizeof *own;
    for (size_t i = 0; i < n_own; i++) /* first above all of them */
        own[i] = own[i] < 0 ? -1 : fcntl(own[i], F_DUPFD_CLOEXEC, HIGH);
    if (null < 0 || own[0] < 0)
        _exit(1);
    for (int i = 0; i < UP; i++)
        (void)dup2(null, i);
    for (size_t i = 0; i < n_own; i++) {
        if (own[i] >= 0 && dup3(own[i], last++, O_CLOEXEC) < 0)
            _exit(1);
    }
    (void)sys_close_range((unsigned)last, ~0u);
    k->up = UP;
    for (size_t i = 0; i < AGENT_LAYERS_MAX; i++) { /* these numbers are others' now */
        k->s->layers.open[i].box = k->s->layers.open[i].seeds = -1;
        for (size_t n = 0; n < AGENT_KEPT_MAX; n++)
            k->s->layers.open[i].files[n] = -1;
    }
    keep_logins(k);
}

/* As the box got it: what changes from then on is news. */
static void note_login(struct kept_login *ret, int fd, const struct kept_login *l)
{
    char *bytes = NULL;
    size_t n = 0;
    *ret = *l;
    if (fd >= 0 && fstat(fd, &ret->seen) == 0 && agent_file_read(fd, &bytes, &n) == 0)
        ret->ends = agent_login_expires((struct str){bytes, n}, expires_of(l));
    if (ret->ends && ret->ends - AHEAD_S <= (int64_t)time(NULL))
        ret->again = (int64_t)time(NULL) + AGAIN_S; /* it was tried just now */
    free(bytes);
}

static struct keeper keeper_of(const struct starting *s)
{
    struct keeper k = {.s = (struct starting *)(uintptr_t)s, .notify = -1, .up = -1};
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t n = 0; n < s->agent.start.layers[i].n_files && k.n < KEPT_MAX; n++) {
            const struct agent_kept *f = &s->agent.start.layers[i].files[n];
            const char *path = f->login ? starting_host_file(s, i, f) : NULL;
            const struct agent_renew *w = f->renew;
            for (bool first = true; path && (first || w) && k.n < KEPT_MAX; first = false, w = w ? w->next : NULL)
                note_login(&k.logins[k.n++], s->layers.open[i].files[n],
                           &(struct kept_login){.layer = i, .file = f, .renew = w, .path = path});
        }
    }
    return k;
}

int keep_begin(const struct starting *s, struct agent_begun *ret, struct err *e)
{
    struct keeper k = keeper_of(s);
    int pair[2];
    if (!k.n)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    pid_t pid = fork();
    if (pid == 0)
        become_keeper(&k, pair[1], -1, -1);
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return err_sys(e, ERR_SYSTEM, errno, "cannot start the process that keeps the login");
    }
    ret->keeper = pid;
    ret->up = pair[0];
    return 0;
}

static const char keeper_lock[] = "keeper"; /* in the layer: held by who keeps the logins of a session */

bool keep_is_kept(const struct starting *s)
{
    auto_fd int lock = -1;
    return access(s->layer, F_OK) == 0 && starting_hold(s, keeper_lock, LOCK_SH | LOCK_NB, &lock, NULL) == -EWOULDBLOCK;
}

int keep_session(const struct starting *s, int session, struct err *e)
{
    struct keeper k = keeper_of(s);
    auto_fd int lock = -1;
    int r = starting_hold(s, keeper_lock, LOCK_EX | LOCK_NB, &lock, e);
    if (r < 0)
        return r == -EWOULDBLOCK ? 0 : r;
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        become_keeper(&k, session, s->live, lock);
    }
    if (pid < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start the process that keeps the login");
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}
