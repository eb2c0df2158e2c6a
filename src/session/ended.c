/*
 * The end of sessions: whether one still runs and can be connected to, what has become of it, and stopping it. A
 * record without a living owner is a session that ended, whatever it says.
 */
#include "session/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "backends/engine.h"
#include "survey/owner.h"
#include "session/ask.h"
#include "run/words.h"
#include "sys/process.h"
#include "protocol/keep.h"
#include "session/storage.h"
#include "sys/poll.h"

#define OVER_TRIES         1000  /* of 10 ms */
#define REBIND_TRIES       1000  /* of 10 ms */
#define STOP_PATIENCE_MS   60000 /* longer than a box may take to end (supervisor/loop.c) */
#define STOPPED_MS         5000  /* then one that is still stopped, by a tracer, is waited for no longer */
#define ANSWER_PATIENCE_MS 10000

const char *session_shown(const struct session_place *p, char room[80])
{
    auto_buf struct buf b = BUF(4 * MAX_SESSION_NAME + 64);
    words_safe(&b, p->name ? p->name : p->hash);
    snprintf(room, 80, b.n > 60 ? "%.57s..." : "%.60s", buf_cstr(&b));
    return room;
}

/* Which limit ended it, if one did: the lines that its session daemon has left (sessiond/sessiond.c). */
static bool ended_by(const struct session_place *p, struct session_limit *ret)
{
    char path[PATH_MAX];
    *ret = (struct session_limit){0};
    snprintf(path, sizeof path, "%s/stopped", p->state);
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? 0 : read(fd, ret->text, sizeof ret->text - 1);
    struct str rest = {ret->text, n > 0 ? (size_t)n : 0}, first = str_until(&rest, '\n'), name = str_until(&first, ' ');
    for (enum box_limit l = BOX_LIMIT_MEMORY; l <= BOX_LIMIT_DISK; l++) {
        if (str_is(name, box_limit_name(l)))
            ret->limit = l;
    }
    ret->value = strtoull(first.n ? first.p : "0", NULL, 10);
    ret->used = str_until(&rest, '\n');
    ret->origin = str_until(&rest, '\n');
    return ret->limit != BOX_LIMIT_NONE;
}

bool session_over(const struct session_place *p, struct arena *mem, struct session_limit *ret)
{
    const struct timespec pause = {0, 10000000};
    const struct keep_request any = {.op = KEEP_DENIALS, .number = UINT64_MAX};
    auto_buf struct buf said = BUF(KEEP_MAX);
    struct record r;
    struct err ignored = {0};
    *ret = (struct session_limit){0};
    /* A session daemon that is at its end answers nobody. */
    auto_fd int fd = place_connect(p);
    if (fd >= 0 && ask_send(fd, any, STR(""), NULL, 0, &ignored) == 0 && ask_answer(fd, NULL, &said, &ignored) == 0)
        return false;
    if (record_read(p, mem, &r, &ignored) < 0)
        return true;
    for (int i = 0; i < OVER_TRIES && record_is_alive(&r); i++)
        (void)nanosleep(&pause, NULL);
    (void)ended_by(p, ret);
    return true;
}

int session_unrecorded(const struct session_place *p)
{
    char record[PATH_MAX];
    struct ucred who = {0};
    socklen_t n = sizeof who;
    snprintf(record, sizeof record, "%s/record", p->state);
    auto_fd int fd = !place_is_of_here(p) || access(record, F_OK) == 0 ? -1 : place_connect(p);
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.pid : 0;
}

int session_gone(const struct session_place *p, struct arena *mem, struct err *e)
{
    char name[80];
    struct session_limit limit;
    struct record r;
    int no = record_read(p, mem, &r, e);
    session_shown(p, name);
    const int pid = no == -ENOENT ? session_unrecorded(p) : 0;
    if (pid > 0) {
        (void)err_say(e, ERR_SYSTEM,
                      "session '%s' runs (process %d), but its record in '%s' was removed; it ends by itself within a "
                      "minute; end it now: pinfold session stop '%s'",
                      name, pid, p->state, name);
        return -ESTALE;
    }
    if (no == -ENOENT) {
        (void)err_say(e, ERR_POLICY,
                      "there is no session '%s'; list sessions with: pinfold session list; start it with: pinfold "
                      "session start '%s'",
                      name, name);
        return -ENOENT;
    }
    if (no < 0)
        return no;
    if (!record_is_of_boot(&r))
        (void)err_say(e, ERR_SYSTEM,
                      "session '%s' ended when this machine was restarted; start it with: pinfold session start '%s'",
                      name, name);
    else if (!record_is_alive(&r) && ended_by(p, &limit))
        (void)err_say(
            e, ERR_SYSTEM,
            "session '%s' exceeded its limit of %s and was stopped; start it with: pinfold session start '%s'", name,
            box_limit_name(limit.limit), name);
    else if (!record_is_alive(&r))
        (void)err_say(
            e, ERR_SYSTEM,
            "session '%s' is gone: its session daemon (process %d) and its box have ended; start it with: pinfold "
            "session start '%s'",
            name, r.pid, name);
    else
        (void)err_say(
            e, ERR_SYSTEM,
            "session '%s' does not answer: its session daemon (process %d) is running but has no socket in '%s'; "
            "stop it with: pinfold session stop '%s'",
            name, r.pid, p->run, name);
    return -ESTALE;
}

/* Until what the descriptor stands for has ended, or has something to read. */
static int wait_for_end(int pidfd, int ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    const struct timespec patience = {ms / 1000, ms % 1000 * 1000000};
    int n;
    do
        n = sys_poll(&p, 1, &patience);
    while (n == -EINTR);
    return n == 1 ? 0 : -ETIMEDOUT;
}

/*
 * The socket's name is gone, its owner is not: asked by a signal, it makes a new one. A session that is being started
 * looks the same, so the lock is waited for first (not by who has it: `locked`).
 */
int session_rebind(const struct session_place *p, struct arena *mem, bool locked)
{
    struct record r;
    struct err ignored = {0};
    auto_fd int lock = -1;
    if (record_read(p, mem, &r, &ignored) < 0)
        return -ENOENT;
    if (!locked) {
        int fd = place_lock(p, &lock, &ignored) < 0 ? -ESTALE : place_connect(p);
        if (fd >= 0 || lock < 0)
            return fd;
        if (record_read(p, mem, &r, &ignored) < 0)
            return -ENOENT;
    }
    auto_fd int owner = sys_pidfd_open(r.pid, 0);
    if (owner < 0 || !record_is_alive(&r))
        return -ESTALE;
    if (make_private_directories(p->run, &ignored) < 0)
        return -ESTALE;
    int fd = -ESTALE;
    for (int i = 0; i < REBIND_TRIES && fd < 0; i++) {
        /* Again now and then: it may have vanished anew. */
        if ((i % 10 == 0 && sys_pidfd_kill(owner, SIGUSR1) < 0) || wait_for_end(owner, 10) == 0)
            return -ESTALE;
        fd = place_connect(p);
    }
    return fd;
}

int session_connect(const struct session_place *p, struct arena *mem, int *ret, struct err *e)
{
    int fd = place_connect(p);
    if (fd < 0)
        fd = session_rebind(p, mem, false);
    if (fd < 0)
        return session_gone(p, mem, e);
    *ret = fd;
    return 0;
}

bool session_serves(int fd)
{
    const struct keep_request any = {.op = KEEP_DENIALS, .number = UINT64_MAX};
    struct err ignored = {0};
    char first;
    return ask_send(fd, any, STR(""), NULL, 0, &ignored) == 0 &&
           (wait_for_end(fd, ANSWER_PATIENCE_MS) < 0 || recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

int session_end(const struct session_place *p, struct arena *mem, struct err *e)
{
    struct record r;
    char name[80];
    int no = record_read(p, mem, &r, e);
    const int pid = no == 0 ? r.pid : no == -ENOENT ? session_unrecorded(p) : 0;
    if (no < 0 && no != -ENOENT)
        return no;
    auto_fd int owner = pid > 0 ? sys_pidfd_open(pid, 0) : -1;
    /* In this order: the descriptor is of the process that was judged. */
    if (owner < 0 || (no == 0 ? !record_is_alive(&r) : session_unrecorded(p) != pid))
        return 0;
    if (sys_pidfd_kill(owner, SIGTERM) == 0 && sys_pidfd_kill(owner, SIGCONT) == 0 &&
        (wait_for_end(owner, STOPPED_MS) == 0 ||
         (!process_is_stopped(pid) && wait_for_end(owner, STOP_PATIENCE_MS) == 0)))
        return 0;
    (void)sys_pidfd_kill(owner, SIGKILL); /* and the box with it */
    if (wait_for_end(owner, STOP_PATIENCE_MS) == 0)
        return 0;
    return err_sys(e, ERR_SYSTEM, ETIMEDOUT, "session '%s': cannot end its session daemon (process %d)",
                   session_shown(p, name), pid);
}

/* One whose record was removed is ended, and nothing of it is kept. -ENOENT: there is none. */
static int stop_unrecorded(const struct session_place *p, struct arena *mem, struct err *e)
{
    auto_fd int lock = -1;
    if (session_unrecorded(p) <= 0)
        return -ENOENT;
    int r = place_lock(p, &lock, e);
    if (r == 0)
        r = session_end(p, mem, e);
    if (r == 0)
        place_remove(p);
    return r;
}

/* In good order: what it stored waits for the next of that name. */
void session_mark_stopped(const struct session_place *p)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/stopped", p->state);
    (void)close_fd(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

bool session_is_stopped(const struct session_place *p)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/stopped", p->state);
    return access(path, F_OK) == 0;
}

/* Who wants it to end is not told how to start it. */
static int nothing_to_stop(const struct session_place *p, bool was, struct err *e)
{
    char name[80];
    session_shown(p, name);
    if (was)
        (void)err_say(e, ERR_SYSTEM, "session '%s' has ended already; delete it with: pinfold session rm '%s'", name,
                      name);
    else
        (void)err_say(e, ERR_POLICY, "there is no session '%s'; list sessions with: pinfold session list", name);
    return -ENOENT;
}

int pinfold_session_stop(const struct pinfold_session_options *options, int remove, struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    auto_fd int lock = -1;
    bool there = false;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    struct pinfold_session *s = r < 0 ? NULL : session_object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    r = record_read(&s->place, s->mem, &s->record, &e);
    if (r == -ENOENT) {
        r = stop_unrecorded(&s->place, s->mem, &e);
        there = r == 0;
    } else if (r == 0) {
        r = place_lock(&s->place, &lock, &e);
        there = r == 0 && (remove || record_is_alive(&s->record));
    }
    const bool recorded = lock >= 0;
    if (r == 0 && there && recorded)
        r = session_end(&s->place, s->mem, &e);
    if (r == 0 && there && recorded && remove) {
        r = storage_remove(&s->place, &s->record, s->mem, &e);
        if (r == 0)
            place_remove(&s->place);
        else
            r = err_wrap(&e, r, "the session has ended but was not removed");
    }
    if (r == 0 && there && recorded && !remove)
        session_mark_stopped(&s->place);
    if (r == -ENOENT || (r == 0 && !there))
        r = nothing_to_stop(&s->place, r == 0, &e);
    pinfold_session_free(s);
    return tell(error, &e, r);
}
