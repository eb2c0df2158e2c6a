/*
 * Serves the shared library's requests about sessions, commands in them, jobs and files. Descriptors come beside the
 * message; the session is opened anew for each request, since a program of its own serves it.
 */
#include "client/serving.h"

#include "client/server.h"
#include "session/session.h"
#include "session/replaced.h"
#include "session/session_files.h"

int serve_ensure(struct request *q, const struct message_ensure *a, struct message_limits *ret)
{
    const struct pinfold_session_options o = {.size = sizeof o,
                                              .name = a->name,
                                              .scope = a->scope,
                                              .recreate = a->recreate != 0,
                                              .say = serve_say,
                                              .cow = a->cow,
                                              .cow_from = a->cow_from,
                                              .cwd = a->cwd};
    struct pinfold_session *session;
    struct pinfold_policy *policy;
    struct err e = {0};
    int r = tell(q->error, &e, policy_of_layers(a->policy, &policy, &e));
    if (r < 0)
        return r;
    r = pinfold_session_ensure(policy, &o, &session, q->error);
    pinfold_policy_free(policy);
    if (r < 0)
        return r;
    /* Each command's own, which come back with each command. */
    const struct limits *l = &session->limits;
    *ret = (struct message_limits){.timeout = l->timeout.value, .grace = l->grace.value, .output = l->output.value};
    pinfold_session_free(session);
    return r;
}

static int enter(struct request *q, const char *name, const char *scope, struct pinfold_session **ret)
{
    const struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
    return pinfold_session_open(&o, ret, q->error);
}

int serve_open(struct request *q, const struct message_open *a, struct message_nothing *ret)
{
    struct pinfold_session *session;
    (void)ret;
    int r = enter(q, a->name, a->scope, &session);
    if (r == 0)
        pinfold_session_free(session);
    return r;
}

int serve_stop(struct request *q, const struct message_stop *a, struct message_nothing *ret)
{
    const struct pinfold_session_options o = {.size = sizeof o, .name = a->name, .scope = a->scope};
    (void)ret;
    return pinfold_session_stop(&o, a->remove != 0, q->error);
}

int serve_list(struct request *q, const struct message_list *a, struct message_report *ret)
{
    const struct pinfold_session_options o = {.size = sizeof o, .name = a->name, .scope = a->scope};
    struct pinfold_report *report = NULL;
    int r = pinfold_session_list_report(a->some ? &o : NULL, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_prune(struct request *q, const struct message_prune *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_session_prune_report(a->look != 0, &report, q->error);
    return serve_report(q, r, report, ret);
}

static void set_own(struct limit *limit, uint64_t value)
{
    if (value) /* 0: the session's */
        *limit = (struct limit){.value = value, .asked = true, .origin = 1};
}

/* The session, and the command's options but for descriptors. */
static int take_command(struct request *q, const struct message_exec *a, struct pinfold_session **ret,
                        struct pinfold_exec_options *o)
{
    int r = enter(q, a->name, a->scope, ret);
    if (r < 0)
        return r;
    set_own(&(*ret)->limits.timeout, a->own_timeout);
    set_own(&(*ret)->limits.grace, a->own_grace);
    set_own(&(*ret)->limits.output, a->own_output);
    *o = (struct pinfold_exec_options){.size = sizeof *o,
                                       .argv = a->argv,
                                       .env = a->env,
                                       .cwd = a->cwd,
                                       .shell = a->shell,
                                       .use_fds = 1,
                                       .stdin_fd = -1,
                                       .stdout_fd = -1,
                                       .stderr_fd = -1,
                                       .capture = a->capture != 0,
                                       .capture_max = a->capture_max,
                                       .timeout_ms = (uint32_t)a->timeout_ms,
                                       .tty = a->tty ? (a->tty == 2) + 1 : 0,
                                       .memory_max = a->memory_max,
                                       .processes_max = a->processes_max,
                                       .output = a->output ? serve_output : NULL,
                                       .id = a->id};
    return 0;
}

int serve_exec(struct request *q, const struct message_exec *a, struct message_result *ret)
{
    struct pinfold_exec_options o;
    struct pinfold_result *result = NULL;
    struct pinfold_session *session;
    int r = take_command(q, a, &session, &o);
    if (r < 0)
        return r;
    unsigned next = serve_fds(q, a->fds, (int *const[3]){&o.stdin_fd, &o.stdout_fd, &o.stderr_fd});
    if (a->cancel && (o.cancel_fd = q->fds[next]) < 0) {
        r = serve_bad(q);
    } else {
        serve_end_with_caller(true);
        r = pinfold_exec(session, &o, &result, q->error);
        serve_end_with_caller(false);
    }
    pinfold_session_free(session);
    return serve_result(q, r, result, ret);
}

int serve_job_start(struct request *q, const struct message_exec *a, struct message_job *ret)
{
    struct pinfold_exec_options o;
    struct pinfold_session *session;
    uint32_t job = 0;
    int r = take_command(q, a, &session, &o);
    if (r < 0)
        return r;
    (void)serve_fds(q, a->fds & 1, (int *const[3]){&o.stdin_fd, &o.stdout_fd, &o.stderr_fd});
    r = pinfold_job_start(session, &o, &job, q->error);
    pinfold_session_free(session);
    ret->job = job;
    return r;
}

int serve_job_list(struct request *q, const struct message_open *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    struct pinfold_session *session;
    int r = enter(q, a->name, a->scope, &session);
    if (r < 0)
        return r;
    r = pinfold_job_list_report(session, &report, q->error);
    pinfold_session_free(session);
    return serve_report(q, r, report, ret);
}

int serve_job_output(struct request *q, const struct message_job_output *a, struct message_written *ret)
{
    struct pinfold_session *session;
    int ended = 0, r = enter(q, a->name, a->scope, &session);
    if (r < 0)
        return r;
    size_t room = a->room < (1u << 20) ? a->room : 1u << 20;
    char *bytes = arena_zero(q->mem, room + 1);
    int64_t n = !bytes
                    ? serve_bad(q)
                    : pinfold_job_output(session, (uint32_t)a->job, a->at, bytes, room, &ret->first, &ended, q->error);
    pinfold_session_free(session);
    if (n < 0)
        return (int)n;
    ret->bytes = (struct str){bytes, (size_t)n};
    ret->ended = (uint64_t)ended;
    return 0;
}

int serve_job_kill(struct request *q, const struct message_job_kill *a, struct message_nothing *ret)
{
    struct pinfold_session *session;
    int r = enter(q, a->name, a->scope, &session);
    (void)ret;
    if (r < 0)
        return r;
    r = pinfold_job_kill(session, (uint32_t)a->job, (int)a->signal, q->error);
    pinfold_session_free(session);
    return r;
}

int serve_update(struct request *q, const struct message_update *a, struct message_nothing *ret)
{
    struct pinfold_session *session;
    int r = enter(q, a->name, a->scope, &session);
    (void)ret;
    if (r < 0)
        return r;
    r = pinfold_session_update(session, a->allow, a->deny, q->error);
    pinfold_session_free(session);
    return r;
}

int serve_files(struct request *q, const struct message_open *a, struct message_nothing *ret)
{
    struct pinfold_session *session;
    struct err e = {0};
    (void)ret;
    int r = enter(q, a->name, a->scope, &session);
    if (r < 0)
        return r;
    /* Without a descriptor: before a call on the socket of an earlier request. */
    r = replaced_workspace(session, NULL, NULL, &e); /* the path is not told */
    if (r == 0)
        r = q->fds[0] < 0 ? session_files_fresh(session, &e) : session_files_give(session, q->fds[0], &e);
    r = tell(q->error, &e, r);
    pinfold_session_free(session);
    return r;
}
