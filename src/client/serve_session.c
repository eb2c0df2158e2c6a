/* Serves the shared library's requests about sessions, commands in them and jobs. */
#include "client/serving.h"

#include "client/server.h"
#include "session/session.h"

static int take_name(struct request *q, struct pinfold_session_options *o)
{
    o->size = sizeof *o;
    return serve_text_argument(q, &o->name) < 0 || serve_text_argument(q, &o->scope) < 0 ? -EBADMSG : 0;
}

static int ensure(struct request *q)
{
    struct pinfold_session_options o = {0};
    struct pinfold_policy *policy;
    struct pinfold_session *session;
    uint64_t recreate;
    int r = serve_policy_argument(q, &policy);
    if (r < 0)
        return r;
    if (take_name(q, &o) < 0 || serve_number(q, &recreate) < 0) {
        pinfold_policy_free(policy);
        return serve_bad(q);
    }
    o.recreate = recreate != 0;
    o.say = serve_say;
    r = pinfold_session_ensure(policy, &o, &session, q->error);
    if (r == 0) { /* each command's own, which come back with each command */
        const struct limits *l = &session->policy.limits;
        message_number(q->answer, TAG_RESULT, l->timeout.value);
        message_number(q->answer, TAG_RESULT, l->grace.value);
        message_number(q->answer, TAG_RESULT, l->output.value);
        pinfold_session_free(session);
    }
    pinfold_policy_free(policy);
    return r;
}

static int list_sessions(struct request *q)
{
    struct pinfold_session_options o = {0};
    uint64_t some;
    char *text = NULL;
    if (take_name(q, &o) < 0 || serve_number(q, &some) < 0)
        return serve_bad(q);
    int r = pinfold_session_list(some ? &o : NULL, &text, q->error);
    return serve_answer_text(q, r, text);
}

static int stop(struct request *q)
{
    struct pinfold_session_options o = {0};
    uint64_t remove;
    if (take_name(q, &o) < 0 || serve_number(q, &remove) < 0)
        return serve_bad(q);
    return pinfold_session_stop(&o, remove != 0, q->error);
}

static void pass_output(void *ctx, int which, const char *bytes, size_t n)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    (void)ctx;
    message_number(&m, TAG_OUTPUT, (uint64_t)which);
    message_bytes(&m, TAG_OUTPUT, (struct str){bytes, n});
    (void)message_send(SERVE_SOCKET, &m, NULL, 0);
}

static int read_limits(struct request *q, struct limits *l)
{
    struct limit *const own[3] = {&l->timeout, &l->grace, &l->output};
    for (unsigned i = 0; i < 3; i++) {
        uint64_t value;
        if (serve_number(q, &value) < 0)
            return -EBADMSG;
        if (value) /* 0: the session's */
            *own[i] = (struct limit){.value = value, .asked = true, .origin = 1};
    }
    return 0;
}

static int take_command(struct request *q, struct pinfold_session *session, struct pinfold_exec_options *o,
                        uint64_t *ret_cancel)
{
    uint64_t capture, capture_max, timeout, tty, output;
    *o = (struct pinfold_exec_options){
        .size = sizeof *o, .use_fds = 1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    if (serve_list(q, &o->argv) < 0 || serve_list(q, &o->env) < 0 || serve_text_argument(q, &o->cwd) < 0 ||
        serve_text_argument(q, &o->shell) < 0 || serve_number(q, &capture) < 0 || serve_number(q, &capture_max) < 0 ||
        serve_number(q, &timeout) < 0 || serve_number(q, &tty) < 0 || serve_number(q, &o->memory_max) < 0 ||
        serve_number(q, &o->processes_max) < 0 || serve_number(q, &output) < 0 || serve_number(q, ret_cancel) < 0 ||
        read_limits(q, &session->policy.limits) < 0)
        return -EBADMSG;
    o->capture = capture != 0;
    o->capture_max = capture_max;
    o->timeout_ms = (uint32_t)timeout;
    o->tty = tty ? (tty == 2) + 1 : 0;
    o->output = output ? pass_output : NULL;
    return 0;
}

static int exec(struct request *q, struct pinfold_session *session)
{
    struct pinfold_exec_options o;
    struct pinfold_result *result;
    uint64_t mask, cancel;
    unsigned next = 0;
    int *const into[3] = {&o.stdin_fd, &o.stdout_fd, &o.stderr_fd};
    if (take_command(q, session, &o, &cancel) < 0 || serve_number(q, &mask) < 0)
        return serve_bad(q);
    for (unsigned i = 0; i < 3; i++) {
        if (mask >> i & 1)
            *into[i] = q->fds[next++];
    }
    if (cancel && (o.cancel_fd = q->fds[next]) < 0)
        return serve_bad(q);
    serve_end_with_caller(true);
    int r = pinfold_exec(session, &o, &result, q->error);
    serve_end_with_caller(false);
    if (r == 0)
        serve_answer_result(q, result);
    return r;
}

static int job_start(struct request *q, struct pinfold_session *session)
{
    struct pinfold_exec_options o;
    uint64_t cancel, given;
    uint32_t job;
    if (take_command(q, session, &o, &cancel) < 0 || serve_number(q, &given) < 0)
        return serve_bad(q);
    if (given)
        o.stdin_fd = q->fds[0];
    int r = pinfold_job_start(session, &o, &job, q->error);
    if (r == 0)
        message_number(q->answer, TAG_RESULT, job);
    return r;
}

static int job_output(struct request *q, struct pinfold_session *session)
{
    uint64_t job, at, room, first = 0;
    int ended = 0;
    if (serve_number(q, &job) < 0 || serve_number(q, &at) < 0 || serve_number(q, &room) < 0)
        return serve_bad(q);
    room = room < (1u << 20) ? room : 1u << 20;
    char *bytes = arena_zero(q->mem, room + 1);
    if (!bytes)
        return serve_bad(q);
    int64_t n = pinfold_job_output(session, (uint32_t)job, at, bytes, room, &first, &ended, q->error);
    if (n < 0)
        return (int)n;
    message_bytes(q->answer, TAG_RESULT, (struct str){bytes, (size_t)n});
    message_number(q->answer, TAG_RESULT, first);
    message_number(q->answer, TAG_RESULT, (uint64_t)ended);
    return 0;
}

static int job_kill(struct request *q, struct pinfold_session *session)
{
    uint64_t job, number;
    if (serve_number(q, &job) < 0 || serve_number(q, &number) < 0)
        return serve_bad(q);
    return pinfold_job_kill(session, (uint32_t)job, (int)number, q->error);
}

static int list_jobs(struct request *q, struct pinfold_session *session)
{
    char *text = NULL;
    int r = pinfold_job_list(session, &text, q->error);
    return serve_answer_text(q, r, text);
}

static int update(struct request *q, struct pinfold_session *session)
{
    const char *const *allow, *const *deny;
    if (serve_list(q, &allow) < 0 || serve_list(q, &deny) < 0)
        return serve_bad(q);
    return pinfold_session_update(session, allow, deny, q->error);
}

static int prune_left(struct request *q)
{
    char *text = NULL;
    uint64_t look;
    if (serve_number(q, &look) < 0)
        return serve_bad(q);
    int r = look ? pinfold_session_left(&text, q->error) : pinfold_session_prune(&text, q->error);
    return serve_answer_text(q, r, text);
}

static int in_session(struct request *q, uint64_t op)
{
    struct pinfold_session_options o = {0};
    struct pinfold_session *session;
    if (take_name(q, &o) < 0)
        return serve_bad(q);
    int r = pinfold_session_open(&o, &session, q->error);
    if (r < 0)
        return r;
    switch (op) {
    case OP_SESSION_OPEN:
        break;
    case OP_EXEC:
        r = exec(q, session);
        break;
    case OP_JOB_START:
        r = job_start(q, session);
        break;
    case OP_JOB_LIST:
        r = list_jobs(q, session);
        break;
    case OP_JOB_OUTPUT:
        r = job_output(q, session);
        break;
    case OP_JOB_KILL:
        r = job_kill(q, session);
        break;
    case OP_SESSION_UPDATE:
        r = update(q, session);
        break;
    case OP_SESSION_FILES:
        r = serve_session_files(q, session);
        break;
    default:
        r = serve_bad(q);
    }
    pinfold_session_free(session);
    return r;
}

int serve_session(struct request *q, uint64_t op)
{
    switch (op) {
    case OP_SESSION_ENSURE:
        return ensure(q);
    case OP_SESSION_STOP:
        return stop(q);
    case OP_SESSION_LIST:
        return list_sessions(q);
    case OP_SESSION_PRUNE:
        return prune_left(q);
    default:
        return in_session(q, op);
    }
}
