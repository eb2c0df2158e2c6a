/*
 * Starts a session: there is no system daemon, whoever starts a session forks its session daemon. The caller waits
 * until the box is up, or gets the error as if it had started it itself.
 */
#include "session/session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/asked/denied.h"
#include "run/asked/inquiry.h"
#include "run/asked/monitor.h"
#include "backends/engine.h"
#include "sessiond/sessiond.h"
#include "session/inside.h"
#include "run/planned.h"
#include "run/waits.h"
#include "run/keys/ssh.h"
#include "run/moves.h"
#include "run/nested.h"
#include "session/storage.h"
#include "run/layer/cow.h"
#include "plan/plan.h"
#include "sys/poll.h"
#include "sys/process.h"

extern char **environ;

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
    waits_end();
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
    struct plan_ask ask = {.session = b->place->name, .piped = true};
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
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), said = fcntl(2, F_DUPFD_CLOEXEC, 3);
    if (said > 2)
        waits_begin(said, b->report);
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

int session_begin(struct pinfold_policy *policy, const struct session_place *p, const struct pinfold_session_options *o,
                  int lock, struct err *e)
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
        pid = fork();
        if (pid < 0) {
            struct err e2 = {0};
            (void)err_no_process(&e2, err_sys(&e2, ERR_SYSTEM, errno, "cannot start the session"));
            sessiond_report(&b.report, -e2.no, &e2);
        }
        if (pid != 0)
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
        return err_no_process(e, err_sys(e, ERR_SYSTEM, no, "cannot start the session"));
    if (n < sizeof said)
        return err_say(e, ERR_SYSTEM, "the session daemon died while starting");
    if (said.r < 0) {
        *e = said.err;
        if (!before)
            unmake(p, record);
        return nested_no_proc(e, said.r);
    }
    return said.r;
}
