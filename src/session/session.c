/*
 * Finds sessions, starts them (once, however many callers ask at once), ends and lists them. There is no system daemon:
 * whoever starts a session forks its session daemon. Whether a session runs depends on that process (record.h) and its
 * socket; all changes happen under the lock of its runtime directory.
 */
#include "session/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "run/asked/denied.h"
#include "run/asked/inquiry.h"
#include "run/asked/monitor.h"
#include "run/report.h"
#include "session/said.h"
#include "backends/engine.h"
#include "survey/owner.h"
#include "survey/survey.h"
#include "sessiond/sessiond.h"
#include "session/ask.h"
#include "session/inside.h"
#include "run/planned.h"
#include "run/keys/ssh.h"
#include "run/moves.h"
#include "run/nested.h"
#include "session/storage.h"
#include "run/layer/cow.h"
#include "run/words.h"
#include "plan/plan.h"
#include "sys/poll.h"
#include "sys/process.h"
#include "protocol/keep.h"

#define STOP_PATIENCE_MS   60000 /* longer than a box may take to end (supervisor/loop.c) */
#define STOPPED_MS         5000  /* then one that is still stopped, by a tracer, is waited for no longer */
#define OVER_TRIES         1000  /* of 10 ms */
#define REBIND_TRIES       1000  /* of 10 ms */
#define KEEPER_PATIENCE_S  10
#define ANSWER_PATIENCE_MS 10000

extern char **environ;

/* ---- objects ---- */

static struct pinfold_session *object(const char *name, const char *scope, struct err *e)
{
    struct pinfold_session *s = calloc(1, sizeof *s);
    if (s) {
        s->files = -1;
        s->mem = arena_new(MAX_SESSION_ARENA);
    }
    if (!s || !s->mem) {
        free(s);
        (void)err_sys(e, ERR_SYSTEM, ENOMEM, "cannot find the session");
        return NULL;
    }
    if (place_named(name, scope, s->mem, &s->place, e) < 0) {
        pinfold_session_free(s);
        return NULL;
    }
    return s;
}

void pinfold_session_free(struct pinfold_session *s)
{
    if (!s)
        return;
    s->files = close_fd(s->files);
    s->mem = arena_free(s->mem);
    free(s);
}

void session_seen(const struct pinfold_session *s, int *ret_pid, bool *ret_no_mounts)
{
    *ret_pid = record_is_alive(&s->record) ? s->record.pid : 0;
    *ret_no_mounts = s->record.lost & (features)1 << FEATURE_REMAP;
}

static int take_record(struct pinfold_session *s, struct err *e)
{
    struct record *r = &s->record;
    int no = record_read(&s->place, s->mem, r, e);
    if (no < 0)
        return no;
    const struct limit none = {.value = LIMIT_NONE};
    s->limits = (struct limits){none, none, none, none, none, none, none, none};
    s->limits.timeout.value = r->timeout_ms;
    s->limits.grace.value = r->grace_ms;
    s->limits.output.value = r->output;
    return 0;
}

/* A name for people: what a terminal would obey, or is long, is not shown as it is. */
static const char *shown(const struct session_place *p, char room[80])
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

int session_gone(const struct session_place *p, struct arena *mem, struct err *e)
{
    char name[80];
    struct session_limit limit;
    struct record r;
    int no = record_read(p, mem, &r, e);
    shown(p, name);
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
static int rebind(const struct session_place *p, struct arena *mem, bool locked)
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
        fd = rebind(p, mem, false);
    if (fd < 0)
        return session_gone(p, mem, e);
    *ret = fd;
    return 0;
}

/* ---- the session daemon's process ---- */

struct session_birth {
    struct pinfold_policy *policy;
    const struct session_place *place;
    const char *cow, *cow_from, *cwd; /* as in struct pinfold_session_options */
    const char *cow_asked;            /* the same, where a policy has not chosen it */
    struct layer_held *layer;         /* which it then holds; NULL: none */
    int lock, report;
};

/* The plan lets go of values (planned_give_back); commands to come need them. */
static const char *const *own_environment(const struct plan *plan, struct arena *mem)
{
    size_t n = 0;
    while (plan->env && plan->env[n])
        n++;
    const char **list = arena_zero(mem, (n + 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++)
        list[i] = arena_text(mem, plan->env[i]);
    return list;
}

static int keep_planned(const struct session_birth *b, struct prepared *prepared, const struct ssh_ready *ssh,
                        struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct planned_memory memory = {.prepared = prepared, .policy = b->policy};
    struct keep_ask keep = {.box = planned_spec(&memory), .report = b->report, .lock = b->lock};
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
    keep.box.ssh = ssh_box(ssh);
    keep.box.gpg = gpg_box(ssh);
    const bool owned = b->place->scope && b->place->scope[0];
    struct monitoring monitoring = {
        .policy = b->policy, .plan = prepared->plan, .start_name = owned ? NULL : b->place->name};
    keep.box.offer = denied_offer;
    if (b->policy->policy->monitor) {
        keep.box.explain = monitor_explain;
        keep.box.explain_ctx = &monitoring;
        keep.box.lasting = NULL; /* the plan is asked while commands run */
    }
    keep.box.answer = inquiry_answer;
    keep.nested = nested_in_box();
    keep.box.answer_ctx = b->policy;
    keep.env = own_environment(prepared->plan, mem);
    keep.cwd = arena_text(mem, prepared->plan->cwd);
    keep.box.session = arena_text(mem, b->place->name);
    keep.box.scope = arena_text(mem, b->place->scope);
    keep.run = arena_text(mem, b->place->run);
    keep.record = arena_printf(mem, "%s/record", b->place->state);
    keep.stopped = arena_printf(mem, "%s/stopped", b->place->state);
    if (arena_failed(mem))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
    arena_trim(mem);
    struct moves_checker checker;
    int r = moves_begin(b->policy, prepared->plan, b->layer ? &b->layer->layer : NULL, &checker, e);
    if (r < 0)
        return r;
    keep.box.moves = checker.socket;
    struct cow_beside beside;
    cow_beside(&keep.box, b->layer, &beside);
    r = sessiond_run(&keep, e);
    cow_beside_end(&beside);
    moves_end(&checker);
    return r;
}

/* By which the session can be started again, with its policy made anew. */
static int record_asked(const struct session_birth *b, struct record *record, struct arena *mem, struct err *e)
{
    const struct layers *l = &b->policy->layers;
    const struct asked_option own[] = {
        {"cow", b->cow_asked, false}, {"cow-from", b->cow_from, false}, {"cwd", b->cwd, false}};
    int r = 0;
    if (!l->asked_whole)
        return 0;
    record->asked_in = l->world.cwd;
    for (size_t i = 0; r == 0 && i < l->n_asked; i++)
        r = record_add_asked(record, l->asked[i].name, l->asked[i].value, l->asked[i].wish, mem, e);
    for (size_t i = 0; r == 0 && i < sizeof own / sizeof *own; i++) {
        const char *value = own[i].value;
        if (value)
            r = record_add_asked(record, own[i].name, value[0] ? value : NULL, false, mem, e);
    }
    return r;
}

/* The record of what is about to live, with what an earlier session of the name left; then its volumes. */
static int begin_record(const struct session_birth *b, const struct plan *plan, struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct record record, before = {0};
    struct err ignored = {0};
    int r =
        mem ? record_make(b->place, plan, mem, &record, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
    if (r == 0 && record_read(b->place, mem, &before, &ignored) == 0)
        r = record_inherit(&record, &before, mem, e);
    if (r == 0)
        r = record_asked(b, &record, mem, e);
    if (r == 0 && b->layer) {
        record.layer = b->layer->layer.id;
        record.layer_name = b->layer->layer.name;
    }
    if (r == 0)
        r = inside_write(b->place, plan, &record, e);
    if (r == 0)
        r = record_write(b->place, &record, e);
    return r < 0 ? r : storage_make(b->place, &record, mem, e);
}

static int keep_box(const struct session_birth *b, struct plan_ask ask, bool thorough, struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct private_dirs dirs = PRIVATE_DIRS;
    struct prepared prepared = {0};
    struct ssh_ready ssh = SSH_READY;
    char instance[16];
    ask.cwd = b->cwd ? b->cwd : planned_directory(b->policy);
    ask.cwd_said = b->cwd != NULL;
    ask.environ = (const char *const *)environ;
    ask.instance = instance;
    ask.session = b->place->name;
    snprintf(instance, sizeof instance, "%d", (int)getpid());
    int r = mem ? storage_plan(b->place, &ask, mem, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
    if (r == 0)
        r = ssh_begin(b->policy, &ssh, e);
    if (r == 0)
        r = planned_make(b->policy, &ask, thorough, &dirs, &prepared, e);
    bool planned = r == 0;
    if (planned && prepared.facts.unsandboxed)
        r = err_say(e, ERR_CANNOT, "a session needs a box (--unsandboxed-fallback is for run and shell): %s",
                    prepared.facts.others[0].why);
    if (r == 0)
        r = ssh_digest(&ssh, prepared.plan, e);
    if (r == 0)
        r = plan_digests(prepared.plan, e);
    if (r == 0)
        r = begin_record(b, prepared.plan, e);
    mem = arena_free(mem);
    if (r == 0) {
        r = keep_planned(b, &prepared, &ssh, e);
        r = r < 0 ? engine_after(b->policy, &ask, prepared.engine, r, e) : r;
    }
    planned_end(&dirs);
    ssh_end(b->policy, &ssh);
    if (planned)
        prepared_free(&prepared);
    return r;
}

/* The layer, if it was asked for, is this process's until the box has ended, and is written to the disk then. */
static int keep_under(struct session_birth *b, bool thorough, struct err *e)
{
    const struct pinfold_run_options layered = {.size = sizeof layered, .cow = b->cow, .cow_from = b->cow_from};
    auto_arena struct arena *mem = b->cow ? arena_new(MAX_SESSION_ARENA) : NULL;
    struct plan_ask ask = {.session = b->place->name};
    struct layer_held held;
    struct box_layer left;
    if (!b->cow)
        return keep_box(b, ask, thorough, e);
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
    int r = cow_begin(b->policy, &layered, b->place->scope, mem, &held, &ask, e);
    b->layer = r == 0 ? &held : NULL;
    if (r == 0)
        r = keep_box(b, ask, thorough, e);
    b->layer = NULL;
    return cow_end(b->policy, &layered, mem, &held, r, &left, e);
}

static _Noreturn void sessiond_main(struct session_birth *b)
{
    struct err first = {0}, e = {0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
    int r = keep_under(b, false, &first);
    if (r == -ENGINE_STALE) {
        r = keep_under(b, true, &e);
        if (r == -ENGINE_STALE)
            e = first;
    } else {
        e = first;
    }
    if (r < 0)
        sessiond_report(&b->report, r, &e);
    _exit(r < 0 ? 125 : 0);
}

/* Nothing of the caller's goes along: its descriptors above all, which others wait to see closed. */
static void forget_caller(struct session_birth *b)
{
    b->report = fcntl(b->report, F_DUPFD, 3);
    b->lock = fcntl(b->lock, F_DUPFD, b->report + 1);
    int keep = b->report;
    (void)setsid();
    for (int s = 1; s < 32; s++)
        (void)signal(s, SIG_DFL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    /* Who misses the socket sends it: not before it is watched. */
    (void)sys_sigmask(SIG_SETMASK, 1ull << (SIGUSR1 - 1));
    if (keep > 3)
        (void)sys_call(SYS_close_range, 3, (unsigned)keep - 1, 0, 0, 0, 0);
    if (b->lock > keep + 1)
        (void)sys_call(SYS_close_range, (unsigned)keep + 1, (unsigned)b->lock - 1, 0, 0, 0, 0);
    (void)sys_call(SYS_close_range, (unsigned)(b->lock > keep ? b->lock : keep) + 1, ~0u, 0, 0, 0, 0);
    (void)fcntl(keep, F_SETFD, FD_CLOEXEC);
    if (b->lock > keep)
        (void)fcntl(b->lock, F_SETFD, FD_CLOEXEC);
}

/* A session that never came to be leaves no record, or it would be said to have ended, and no directories. Storage is noted
   in the record before it is made. */
static void unmake(const struct session_place *p, const char *record)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct record r;
    struct err ignored = {0};
    if (access(record, F_OK) < 0 && errno == ENOENT)
        place_remove(p);
    else if (mem && record_read(p, mem, &r, &ignored) == 0 && storage_remove(p, &r, mem, &ignored) == 0)
        place_remove(p);
}

/* Forks the session daemon, no child of ours, and waits for its word. The lock is held by the caller. */
static int start_keeping(struct pinfold_policy *policy, const struct session_place *p,
                         const struct pinfold_session_options *o, int lock, struct err *e)
{
    struct session_birth b = {.policy = policy, .place = p, .cwd = o->cwd, .lock = lock};
    b.cow = o->cow ? o->cow : policy->policy->cow || o->cow_from ? "" : NULL;
    b.cow_from = o->cow_from;
    b.cow_asked = o->cow;
    char stopped[PATH_MAX], record[PATH_MAX];
    snprintf(record, sizeof record, "%s/record", p->state);
    const bool before = access(record, F_OK) == 0;
    snprintf(stopped, sizeof stopped, "%s/stopped", p->state);
    (void)unlink(stopped);
    struct keep_report said = {.r = -ECHILD};
    int pipe_ends[2], status;
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start the session");
    b.report = pipe_ends[1];
    pid_t pid = fork();
    if (pid == 0) {
        forget_caller(&b);
        if (fork() != 0)
            _exit(0);
        sessiond_main(&b);
    }
    int no = errno;
    (void)close(pipe_ends[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    size_t n = 0;
    while (pid > 0 && n < sizeof said) {
        ssize_t k = read(pipe_ends[0], (char *)&said + n, sizeof said - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    (void)close(pipe_ends[0]);
    if (pid < 0)
        return err_sys(e, ERR_SYSTEM, no, "cannot start the session");
    if (n < sizeof said)
        return err_say(e, ERR_SYSTEM, "the session daemon died while starting");
    if (said.r < 0) {
        *e = said.err;
        if (!before)
            unmake(p, record);
    }
    return said.r;
}

/* ---- ensure, open ---- */

enum { FOUND, OTHER_POLICY, OTHER_IMAGE, OTHER_VERSION, OTHER_LAYER, NOT_THERE };

/* Whether what was asked for is what the session runs under; an image's name may have come to mean another one. */
static int compare(const struct pinfold_session *s, const struct policy *policy, int *ret, struct err *e)
{
    char digest[65], values[65];
    const char *asked = policy->engine, *id = NULL;
    const char *name = asked && !same(asked, "auto") ? asked : s->record.engine;
    const struct engine *engine = engine_by_name(name);
    int r = engine && engine->image_id ? engine->image_id(policy, s->mem, &id, e) : 0;
    if (r == 0)
        r = policy_digest(policy, name, id, digest, e);
    if (r < 0)
        return r;
    *ret = same(digest, s->record.policy_digest) ? FOUND : OTHER_POLICY;
    record_values(&s->record, policy, values);
    const char *kept = s->record.values_digest;
    if (*ret == FOUND && kept && kept[0] && !same(values, kept))
        *ret = OTHER_POLICY;
    if (*ret == FOUND || !id || !s->record.image || same(id, s->record.image))
        return 0;
    r = policy_digest(policy, name, s->record.image, digest, e);
    if (r == 0 && same(digest, s->record.policy_digest))
        *ret = OTHER_IMAGE;
    return r;
}

static int other_version(const struct pinfold_session *s, struct err *e)
{
    const struct record *r = &s->record;
    bool known = r->version && r->version[0];
    char name[80];
    shown(&s->place, name);
    (void)err_say(e, ERR_REFUSED,
                  "session '%s' was started by %s%s, and this is pinfold " PINFOLD_VERSION ", which cannot talk to it; "
                  "stop it with: pinfold session stop '%s'",
                  name, known ? "pinfold " : "an earlier version of pinfold", known ? r->version : "", name);
    return -ESTALE;
}

/* Without --cow any will do: the command is one more in that box. */
static bool has_layer(const struct record *r, const struct pinfold_session_options *o)
{
    const char *cow = o->cow;
    if (o->cow_from && (!r->layer || !r->layer[0] || !layer_stands_on(r->layer, o->cow_from)))
        return false;
    return !cow || (r->layer && r->layer[0] && same(r->layer_name ? r->layer_name : "", cow));
}

static int other_layer(const struct pinfold_session *s, struct err *e)
{
    char name[80];
    const bool some = s->record.layer && s->record.layer[0];
    (void)err_say(e, ERR_REFUSED,
                  "session '%s' runs %s; recreate it with: --cow --recreate, or run in it as it is, without --cow",
                  shown(&s->place, name), some ? "with another copy-on-write layer" : "without a copy-on-write layer");
    return -ESTALE;
}

/* One whose box is ending answers nobody. One that is stopped, has no time, or refuses the question, lives. */
static bool still_serves(int fd)
{
    const struct keep_request any = {.op = KEEP_DENIALS, .number = UINT64_MAX};
    struct err ignored = {0};
    char first;
    return ask_send(fd, any, STR(""), NULL, 0, &ignored) == 0 &&
           (wait_for_end(fd, ANSWER_PATIENCE_MS) < 0 || recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

static int look_for(struct pinfold_session *s, const struct pinfold_policy *policy,
                    const struct pinfold_session_options *o, bool locked, int *ret, struct err *e)
{
    int fd = place_connect(&s->place);
    char name[80];
    *ret = NOT_THERE;
    if (fd < 0)
        fd = rebind(&s->place, s->mem, locked);
    if (fd < 0)
        return 0;
    const bool serves = still_serves(fd);
    (void)close(fd);
    if (!serves)
        return 0;
    int r = take_record(s, e);
    if (r == -ENOENT) /* removed by hand, or this is not the directory that its daemon sees */
        (void)err_say(e, ERR_SYSTEM,
                      "session '%s' runs, and '%s' has no record of it; end the process that has '%s/" KEEP_SOCKET "'",
                      shown(&s->place, name), s->place.state, s->place.run);
    if (r == 0 && s->record.revision != KEEP_REVISION)
        *ret = OTHER_VERSION;
    else if (r == 0)
        r = compare(s, policy->policy, ret, e);
    if (r == 0 && *ret == FOUND && !has_layer(&s->record, o))
        *ret = OTHER_LAYER;
    return r;
}

static int stop_living(const struct session_place *p, struct arena *mem, struct err *e);

static int make_under_lock(struct pinfold_session *s, struct pinfold_policy *policy, int lock,
                           const struct pinfold_session_options *o, struct err *e)
{
    char name[80];
    const int recreate = o->recreate;
    struct record before;
    struct err ignored = {0};
    int found, r = look_for(s, policy, o, true, &found, e);
    if (r < 0 || found == FOUND)
        return r;
    if (found == OTHER_VERSION && !recreate)
        return other_version(s, e);
    if (found == OTHER_LAYER && !recreate)
        return other_layer(s, e);
    if (found == OTHER_IMAGE && !recreate) {
        (void)err_say(
            e, ERR_REFUSED,
            "session '%s' runs an older version of the image '%s' (%.19s); recreate the session with: --recreate",
            shown(&s->place, name), policy->policy->image, s->record.image);
        return -ESTALE;
    }
    if (found == OTHER_POLICY && !recreate) {
        (void)err_say(e, ERR_REFUSED,
                      "session '%s' runs with another policy, engine or image (time-outs may differ); run with the "
                      "session's own policy: pinfold exec '%s' COMMAND, end it: pinfold session stop '%s', or "
                      "recreate the session with: --recreate",
                      shown(&s->place, name), name, name);
        return -ESTALE;
    }
    /* What prints names shows such a one in other bytes, and by those nobody finds it. */
    if (!utf8_valid(str_of(s->place.name)))
        return err_say(e, ERR_POLICY, "a session's name must be UTF-8; '%s' is not", shown(&s->place, name));
    r = planned_file_limit(e);
    /* Also one that is ending: a stop may have been killed before it has. */
    if (r == 0 && (found != NOT_THERE || record_read(&s->place, s->mem, &before, &ignored) == 0))
        r = stop_living(&s->place, s->mem, e);
    if (r == 0)
        r = start_keeping(policy, &s->place, o, lock, e);
    return r < 0 ? r : take_record(s, e);
}

/* What is each command's own is as this policy says, for the commands of this object. */
static void adopt_limits(struct pinfold_session *s, const struct limits *l)
{
    struct limits *mine = &s->limits;
    mine->timeout = (struct limit){.value = l->timeout.value, .asked = l->timeout.asked, .origin = 1};
    mine->grace = (struct limit){.value = l->grace.value, .asked = l->grace.asked, .origin = 1};
    mine->output = (struct limit){.value = l->output.value, .asked = l->output.asked, .origin = 1};
}

/* What a run says before its command, and that a new session's commands do not say each time. */
static void say_start(const struct pinfold_policy *policy, const struct pinfold_session_options *o)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    const char *notes[4] = {egress_names_denied(policy->policy)};
    if (mem && survey_repository(policy->policy, policy->layers.world.home, mem, notes + 1) < 0)
        notes[1] = notes[2] = NULL;
    if (mem && (o->cow || o->cow_from || policy->policy->cow))
        notes[3] = cow_limit(policy->policy->workspace, mem);
    auto_buf struct buf not_enforced = BUF(MAX_WORDS);
    words_ignored(policy->policy, &not_enforced);
    if (not_enforced.n)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&not_enforced));
    auto_buf struct buf missing = BUF(MAX_WORDS);
    words_missing(policy->policy, &missing);
    if (missing.n)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&missing));
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        auto_buf struct buf words = BUF(MAX_WORDS);
        if (!notes[i])
            continue;
        words_safe(&words, notes[i]);
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
    }
}

int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                           struct pinfold_session **ret, struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    auto_fd int lock = -1;
    int found;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    struct pinfold_session *s = r < 0 ? NULL : object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    if (r == 0 && o.cwd && o.cwd[0] != '/')
        r = err_say(&e, ERR_POLICY, "cwd: write an absolute path, as the box sees it: /tmp");
    if (r == 0)
        r = look_for(s, policy, &o, false, &found, &e);
    if (r == 0 && found != FOUND) {
        r = place_lock(&s->place, &lock, &e);
        if (r == 0)
            r = make_under_lock(s, policy, lock, &o, &e);
        if (r == 0 && o.say)
            say_start(policy, &o);
    }
    if (r < 0) {
        pinfold_session_free(s);
        return tell(error, &e, r);
    }
    adopt_limits(s, &policy->policy->limits);
    *ret = s;
    return 0;
}

int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                         struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    struct pinfold_session *s = r < 0 ? NULL : object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    r = take_record(s, &e);
    if (r == -ENOENT || (r == 0 && !record_is_alive(&s->record))) {
        r = session_gone(&s->place, s->mem, &e);
        r = r == -ESTALE ? -ENOENT : r;
    } else if (r == 0 && s->record.revision != KEEP_REVISION) {
        r = other_version(s, &e);
    }
    if (r < 0) {
        pinfold_session_free(s);
        return tell(error, &e, r);
    }
    *ret = s;
    return 0;
}

/* ---- stop ---- */

/* Ends the session daemon that the record names; 0 also when there is none (any more). */
static int stop_living(const struct session_place *p, struct arena *mem, struct err *e)
{
    struct record r;
    char name[80];
    int no = record_read(p, mem, &r, e);
    if (no == -ENOENT)
        return 0;
    if (no < 0)
        return no;
    auto_fd int owner = sys_pidfd_open(r.pid, 0);
    if (owner < 0 || !record_is_alive(&r)) /* in this order: the descriptor is of the process that was judged */
        return 0;
    if (sys_pidfd_kill(owner, SIGTERM) == 0 && sys_pidfd_kill(owner, SIGCONT) == 0 &&
        (wait_for_end(owner, STOPPED_MS) == 0 ||
         (!process_is_stopped(r.pid) && wait_for_end(owner, STOP_PATIENCE_MS) == 0)))
        return 0;
    (void)sys_pidfd_kill(owner, SIGKILL); /* and the box with it */
    if (wait_for_end(owner, STOP_PATIENCE_MS) == 0)
        return 0;
    return err_sys(e, ERR_SYSTEM, ETIMEDOUT, "session '%s': cannot end its session daemon (process %d)", shown(p, name),
                   r.pid);
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
    shown(p, name);
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
    struct pinfold_session *s = r < 0 ? NULL : object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    r = record_read(&s->place, s->mem, &s->record, &e);
    if (r == 0) {
        r = place_lock(&s->place, &lock, &e);
        there = r == 0 && (remove || record_is_alive(&s->record));
    }
    if (r == 0 && there)
        r = stop_living(&s->place, s->mem, &e);
    if (r == 0 && there && remove) {
        r = storage_remove(&s->place, &s->record, s->mem, &e);
        if (r == 0)
            place_remove(&s->place);
        else
            r = err_wrap(&e, r, "the session has ended but was not removed");
    }
    if (r == 0 && there && !remove)
        session_mark_stopped(&s->place);
    if (r == -ENOENT || (r == 0 && !there))
        r = nothing_to_stop(&s->place, r == 0, &e);
    pinfold_session_free(s);
    return tell(error, &e, r);
}

/* ---- list ---- */

static void put_time(struct json *j, const char *name, uint64_t seconds)
{
    char text[32];
    time_t t = (time_t)seconds;
    struct tm tm;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        json_text(j, name, text);
    else
        json_null(j, name);
}

static void put_storage(struct json *j, const struct record *r)
{
    json_array(j, "storage");
    for (size_t i = 0; i < r->n_kept; i++) {
        const struct kept *k = &r->kept[i];
        json_object(j, NULL);
        if (k->what.path[0])
            json_text(j, "path", k->what.path);
        else
            json_null(j, "path");
        json_text(j, k->what.volume ? "volume" : "directory", k->what.at);
        if (k->what.volume)
            json_text(j, "engine", k->engine);
        json_object_end(j);
    }
    json_array_end(j);
}

/* What it was started with, which the next start without options takes up (cli/session/again.c). */
static void put_asked(struct json *j, const struct record *r)
{
    if (!r->asked_in || !r->asked_in[0]) {
        json_null(j, "started_with");
        return;
    }
    json_object(j, "started_with");
    json_text(j, "directory", r->asked_in);
    json_array(j, "options");
    for (size_t i = 0; i < r->n_asked; i++) {
        if (r->asked[i].unkept || !r->asked[i].name)
            continue;
        json_object(j, NULL);
        json_text(j, "name", r->asked[i].name);
        json_text_or_null(j, "value", r->asked[i].value);
        json_object_end(j);
    }
    json_array_end(j);
    json_array(j, "variables_not_kept");
    for (size_t i = 0; i < r->n_asked; i++) {
        if (r->asked[i].unkept && r->asked[i].value)
            json_text(j, NULL, r->asked[i].value);
    }
    json_array_end(j);
    json_object_end(j);
}

/* What its session daemon says of it; null when that does not answer. */
static void put_now(struct json *j, const struct session_place *p, int pid)
{
    const struct timeval patience = {KEEPER_PATIENCE_S, 0};
    auto_buf struct buf said = BUF(MAX_ANSWER_TEXT);
    struct err ignored = {0};
    auto_fd int fd = process_is_stopped(pid) ? -1 : place_connect(p);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        ask_send(fd, (struct keep_request){.op = KEEP_SHOW}, STR(""), NULL, 0, &ignored) < 0 ||
        ask_answer(fd, NULL, &said, &ignored) < 0 || said_put(j, "now", buf_view(&said)) < 0)
        json_null(j, "now");
}

static void put_session(struct json *j, const struct session_place *p, const struct record *r, bool whole)
{
    bool alive = record_is_alive(r);
    json_object(j, NULL);
    json_text(j, "name", r->name);
    json_text(j, "scope", r->scope);
    json_text(j, "id", p->hash);
    json_text(j, "state", alive ? "running" : record_is_of_boot(r) ? "ended" : "ended by a restart of the machine");
    json_uint(j, "pid", alive ? (uint64_t)r->pid : 0);
    json_text(j, "engine", r->engine);
    json_text(j, "profile", r->profile);
    json_text(j, "workspace", r->workspace);
    json_text(j, "cwd", r->cwd);
    json_text_or_null(j, "layer", r->layer && r->layer[0] ? r->layer : NULL);
    if (r->layer && r->layer[0])
        layer_put_size(j, r->layer);
    put_time(j, "created", r->created);
    json_text(j, "policy_digest", r->policy_digest);
    if (alive)
        put_now(j, p, r->pid);
    if (whole) {
        json_text(j, "plan_digest", r->plan_digest);
        json_text(j, "state_dir", p->state);
        json_text(j, "runtime_dir", p->run);
        json_object(j, "enforced");
        for (size_t i = 0; i < r->n_enforced; i++)
            json_text(j, feature_name(r->enforced[i].what), r->enforced[i].by);
        json_object_end(j);
        json_array(j, "lost");
        for (int f = 0; f < FEATURE_COUNT; f++) {
            if (r->lost & ((features)1 << f))
                json_text(j, NULL, feature_name((enum feature)f));
        }
        json_array_end(j);
        put_storage(j, r);
        put_asked(j, r);
    }
    json_object_end(j);
}

static int list_all(struct arena *mem, const char *scope, struct json *j, struct err *e)
{
    const char *run, *state;
    int r = place_roots(mem, &run, &state, e);
    if (r < 0)
        return r;
    struct dirent **names = NULL;
    int n = scandir(state, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        auto_arena struct arena *one = arena_new(MAX_SESSION_ARENA);
        struct session_place p = {.name = NULL};
        struct record record;
        struct err ignored = {0};
        if (one && place_is_hash(names[i]->d_name) && place_of_hash(names[i]->d_name, one, &p, &ignored) == 0 &&
            record_read(&p, one, &record, &ignored) == 0 && (!scope || same(scope, record.scope)))
            put_session(j, &p, &record, false);
        free(names[i]);
    }
    free(names);
    return 0;
}

int pinfold_session_list_report(const struct pinfold_session_options *options, struct pinfold_report **ret,
                                struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct pinfold_report *report = report_new();
    struct pinfold_session_options o;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0 && (!mem || !report))
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot list the sessions");
    if (r < 0 || !report)
        return report_give(report, r, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    if (!o.name) {
        json_object(&j, NULL);
        json_array(&j, "sessions");
        r = list_all(mem, options ? o.scope : NULL, &j, &e);
        json_array_end(&j);
        json_object_end(&j);
    } else {
        struct session_place p;
        struct record record;
        r = place_named(o.name, o.scope, mem, &p, &e);
        if (r == 0)
            r = record_read(&p, mem, &record, &e);
        if (r == -ENOENT)
            r = session_gone(&p, mem, &e);
        if (r == 0)
            put_session(&j, &p, &record, true);
    }
    return report_give(report, r, &e, ret, error);
}
