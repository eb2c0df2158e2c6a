/*
 * The login of the host into a session's state. What was in the box's hands is opened for that, so processes of their own do it:
 * without capabilities, bound by Landlock to the directories at hand, and with an end in time. Databases are pinfold-sqlite's
 * (database.c), files are copied here. Each says over a socket how it went.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agents/agents.h"
#include "agents/confine.h"
#include "base/fd.h"
#include "sys/file.h"
#include "sys/socket.h"
#include "user/own_dirs.h"

enum { STATES_MAX = 16, FILES_MAX = 64 };

/* What the process says: a word, a name, or in the end the error. */
struct word {
    char kind; /* 'f' first, 'r' refreshed, 'm' missing, 'e' the end */
    int no;
    struct err e;
    char name[512];
};

struct sync {
    const struct agent *agent;
    struct agent_dirs dirs[STATES_MAX];
    int files[FILES_MAX]; /* of the host, in the definition's order: a person's files may be links to anywhere */
    int say;
};

static void tell(const struct sync *s, char kind, const char *state, const char *file)
{
    struct word w = {.kind = kind};
    snprintf(w.name, sizeof w.name, "%s/%s", state, file);
    (void)sys_send(s->say, &w, sizeof w, MSG_NOSIGNAL);
}

/* ---- files ---- */

int agent_file_open(int dir, const char *name, bool follow)
{
    int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
    return fd < 0 ? -errno : fd;
}

int agent_file_read(int fd, char **ret, size_t *ret_n)
{
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EINVAL;
    if (st.st_size > AGENT_FILE_MAX)
        return -EFBIG;
    char *bytes = malloc((size_t)st.st_size + 1);
    size_t n = 0;
    if (!bytes)
        return -ENOMEM;
    for (long got = 1; got > 0 && n < (size_t)st.st_size; n += (size_t)got) {
        got = sys_pread(fd, bytes + n, (size_t)st.st_size - n, n);
        if (got < 0) {
            free(bytes);
            return (int)got;
        }
    }
    *ret = bytes;
    *ret_n = n;
    return 0;
}

int agent_file_put(int dir, const char *name, const char *bytes, size_t n)
{
    char temp[300];
    snprintf(temp, sizeof temp, ".pinfold-%ld-%s", (long)getpid(), name);
    (void)unlinkat(dir, temp, 0);
    auto_fd int fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int no = fd < 0 ? -errno : 0;
    for (size_t at = 0; no == 0 && at < n;) {
        long wrote = sys_write(fd, bytes + at, n - at);
        no = wrote < 0 ? (int)wrote : 0;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (no == 0)
        no = sys_renameat2(dir, temp, dir, name, 0);
    if (no < 0)
        (void)unlinkat(dir, temp, 0);
    return no;
}

/* The login that its owner renews outside: a session gets it without what renews it, as a box of the agent by name. */
static const struct agent_kept *renewed_outside(const struct agent *a, const struct agent_state *state,
                                                const struct agent_file *f)
{
    for (size_t i = 0; i < a->start.n_layers; i++) {
        const struct agent_layer *l = &a->start.layers[i];
        for (size_t k = 0; strcmp(l->at, state->at) == 0 && k < l->n_files; k++) {
            if (l->files[k].renew && strcmp(l->files[k].name, f->name) == 0)
                return &l->files[k];
        }
    }
    return NULL;
}

/* In place of what was read; -ENOENT: it is no login. */
static int without_what_renews(const struct agent_kept *f, char **bytes, size_t *n)
{
    char *shown = NULL;
    size_t shown_n = 0;
    int no = agent_json_shown(f, "", (struct str){*bytes, *n}, &shown, &shown_n);
    free(*bytes);
    *bytes = shown;
    *n = shown_n;
    return no == -EINVAL ? -ENOENT : no;
}

static int sync_file(const struct sync *s, const struct agent_state *state, const struct agent_dirs *d,
                     const struct agent_file *f, int from, struct err *e)
{
    char *bytes = NULL, *old = NULL;
    size_t n = 0, old_n = 0;
    struct stat st;
    bool there = fstatat(d->session, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && !f->each_time)
        return 0;
    const struct agent_kept *renewed = renewed_outside(s->agent, state, f);
    int no = agent_file_read(from, &bytes, &n);
    if (no == 0 && renewed)
        no = without_what_renews(renewed, &bytes, &n);
    if (no == -ENOENT) {
        tell(s, 'm', state->name, f->name);
        return 0;
    }
    auto_fd int present = no == 0 && there ? agent_file_open(d->session, f->name, false) : -1;
    bool equal = agent_file_read(present, &old, &old_n) == 0 && n == old_n && memcmp(bytes, old, n) == 0;
    if (no == 0 && !equal)
        no = agent_file_put(d->session, f->name, bytes, n);
    if (no == 0 && !equal)
        tell(s, there ? 'r' : 'f', state->name, f->name);
    free(bytes);
    free(old);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot copy the host's %s into the session", f->name) : 0;
}

static int sync_state(const struct sync *s, const struct agent_state *state, const struct agent_dirs *d,
                      const int **from, struct err *e)
{
    int no = 0;
    for (size_t i = 0; no == 0 && i < state->n_files; i++)
        no = sync_file(s, state, d, &state->files[i], *(*from)++, e);
    return no;
}

/* ---- the process ---- */

/* Nothing but the session's directories: the host's files are open already. */
static int lock_in(const struct sync *s)
{
    struct agent_rules r;
    int no = agent_rules_begin(&r);
    for (size_t i = 0; no == 0 && i < s->agent->n_state; i++)
        no = agent_rules_allow(&r, s->dirs[i].session, AGENT_WRITES);
    return no < 0 ? no : agent_confine(&r);
}

static _Noreturn void work(struct sync *s)
{
    struct word last = {.kind = 'e'};
    const int *from = s->files;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    last.no = lock_in(s);
    if (last.no < 0)
        (void)err_sys(&last.e, ERR_SYSTEM, -last.no, "cannot lock files in the process that copies a login");
    for (size_t i = 0; last.no == 0 && i < s->agent->n_state; i++)
        last.no = sync_state(s, &s->agent->state[i], &s->dirs[i], &from, &last.e);
    (void)sys_send(s->say, &last, sizeof last, MSG_NOSIGNAL);
    _exit(0);
}

/* ---- in pinfold ---- */

static void put_line(struct agent_synced *ret, char kind, const char *text)
{
    struct buf *b = kind == 'f' ? &ret->first : kind == 'r' ? &ret->refreshed : &ret->missing;
    buf_text(b, text);
    buf_char(b, '\n');
}

static int listen_to(int from, struct agent_synced *ret, struct err *e)
{
    int64_t until = agent_patience();
    for (;;) {
        struct word w;
        long got = agent_hear(from, until, &w, sizeof w);
        if (got == -ETIMEDOUT)
            return err_sys(e, ERR_SYSTEM, ETIMEDOUT, "cannot copy the login into the session");
        if (got != (long)sizeof w)
            return err_say(e, ERR_SYSTEM,
                           "the process that copies the login into the session died; the session's state is not what "
                           "its agent wrote");
        w.name[sizeof w.name - 1] = w.e.text[sizeof w.e.text - 1] = 0;
        if (w.kind == 'e') {
            if (w.no < 0 && e)
                *e = w.e;
            return w.no;
        }
        put_line(ret, w.kind, w.name);
    }
}

static int databases(const struct sync *s, agent_opener *open_sqlite, struct agent_synced *ret, struct err *e)
{
    for (size_t i = 0; i < s->agent->n_state; i++) {
        const struct agent_state *state = &s->agent->state[i];
        for (size_t k = 0; k < state->n_databases; k++) {
            char name[512];
            int no = agent_database(&s->dirs[i], &state->databases[k], open_sqlite, e);
            if (no < 0 && no != -ENOENT)
                return no;
            snprintf(name, sizeof name, "%s/%s", state->name, state->databases[k].name);
            put_line(ret, no == -ENOENT ? 'm' : no == 1 ? 'f' : 'r', name);
        }
    }
    return 0;
}

static int dirs_open(const struct agent *a, enum agent_os os, int home, int state, struct sync *s, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_state; i++)
        n += a->state[i].n_files;
    if (a->n_state > STATES_MAX || n > FILES_MAX)
        return err_say(e, ERR_POLICY, "%s has too many states or files", a->title);
    n = 0;
    for (size_t i = 0; i < a->n_state; i++) {
        const struct agent_state *one = &a->state[i];
        s->dirs[i].host = s->dirs[i].session = -1;
        if (mkdirat(state, one->name, 0700) < 0 && errno != EEXIST)
            return err_sys(e, ERR_SYSTEM, errno, "cannot create the session's %s", one->name);
        s->dirs[i].session = openat(state, one->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->dirs[i].session < 0)
            return err_sys(e, ERR_SYSTEM, errno, "the session's %s", one->name);
        if (one->from[os])
            s->dirs[i].host = openat(home, one->from[os] + 2, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t k = 0; k < one->n_files; k++)
            s->files[n++] = s->dirs[i].host < 0 ? -ENOENT : agent_file_open(s->dirs[i].host, one->files[k].name, true);
    }
    return 0;
}

static int start_copying(struct sync *s, struct agent_synced *ret, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    s->say = pair[1];
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        work(s);
    }
    (void)close(pair[1]);
    int no = pid < 0 ? err_sys(e, ERR_SYSTEM, errno, "cannot start the process that copies the login")
                     : listen_to(pair[0], ret, e);
    (void)close(pair[0]);
    if (pid > 0) {
        int status;
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    return no;
}

int agent_sync(const struct agent *a, enum agent_os os, const char *host_home, const char *state,
               agent_opener *open_sqlite, struct agent_synced *ret, struct err *e)
{
    struct sync s = {.agent = a};
    *ret = (struct agent_synced){BUF(1 << 16), BUF(1 << 16), BUF(1 << 16)};
    for (size_t i = 0; i < STATES_MAX; i++)
        s.dirs[i].host = s.dirs[i].session = -1;
    for (size_t i = 0; i < FILES_MAX; i++)
        s.files[i] = -1;
    auto_fd int home = open(host_home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot use the home %s", host_home);
    int made = own_dirs_make(state);
    if (made < 0)
        return err_sys(e, ERR_SYSTEM, -made, "cannot create %s", state);
    auto_fd int dir = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "%s", state);
    int no = st.st_uid == geteuid() ? dirs_open(a, os, home, dir, &s, e)
                                    : err_say(e, ERR_REFUSED, "%s belongs to another user", state);
    if (no == 0)
        no = databases(&s, open_sqlite, ret, e);
    if (no == 0)
        no = start_copying(&s, ret, e);
    for (size_t i = 0; i < STATES_MAX; i++) {
        (void)close_fd(s.dirs[i].host);
        (void)close_fd(s.dirs[i].session);
    }
    for (size_t i = 0; i < FILES_MAX; i++)
        (void)close_fd(s.files[i]);
    return no;
}

void agent_synced_free(struct agent_synced *s)
{
    buf_free(&s->first);
    buf_free(&s->refreshed);
    buf_free(&s->missing);
}
