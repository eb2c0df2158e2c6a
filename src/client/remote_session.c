/*
 * Sessions for the shared library. An object only holds the session's name; every request starts its own server, and
 * session daemons are children of neither.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "client/remote.h"

static int no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "session");
}

static int options_of(const struct pinfold_session_options *from, struct pinfold_session_options *to, struct err *e)
{
    return remote_options(to, sizeof *to, from, from ? from->size : 0, e);
}

static void put_name(struct buf *request, const char *name, const char *scope)
{
    message_text(request, TAG_ARGUMENT, name);
    message_text(request, TAG_ARGUMENT, scope);
}

static void session_request(struct buf *request, enum message_op op, const struct pinfold_session *s)
{
    message_number(request, TAG_OP, op);
    put_name(request, s->name, s->scope);
}

static struct pinfold_session *object(const struct pinfold_session_options *o)
{
    struct pinfold_session *s = calloc(1, sizeof *s);
    if (s)
        s->files = -1;
    if (s && o->name)
        s->name = strdup(o->name);
    if (s && o->scope)
        s->scope = strdup(o->scope);
    if (s && s->name && (!o->scope || s->scope))
        return s;
    pinfold_session_free(s);
    return NULL;
}

void pinfold_session_free(struct pinfold_session *s)
{
    if (!s)
        return;
    s->files = close_fd(s->files);
    free(s->name);
    free(s->scope);
    free(s);
}

/* A request whose answer is that it went well; `ret` (may be NULL) gets an object then. */
static int ask_plain(const struct buf *request, const struct pinfold_session_options *o, struct pinfold_session **ret,
                     struct err *e)
{
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct str rest;
    int r = remote_ask(request, NULL, 0, NULL, &answer, &rest, e);
    if (r < 0 || !ret)
        return r;
    *ret = object(o);
    return *ret ? 0 : no_memory(e);
}

int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                           struct pinfold_session **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct pinfold_session_options o;
    struct err e = {0};
    int r = options_of(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    message_number(&request, TAG_OP, OP_SESSION_ENSURE);
    message_bytes(&request, TAG_POLICY, buf_view(&policy->layers));
    put_name(&request, o.name, o.scope);
    message_number(&request, TAG_ARGUMENT, o.recreate != 0);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct str rest;
    uint64_t limits[3] = {0};
    const struct sayer sayer = {.say = o.say, .ctx = o.say_ctx};
    r = remote_ask(&request, NULL, 0, &sayer, &answer, &rest, &e);
    for (unsigned i = 0; r == 0 && i < 3; i++) {
        if (message_take_number(&rest, TAG_RESULT, &limits[i]) < 0)
            r = remote_broken(&e, -EBADMSG);
    }
    if (r < 0)
        return remote_tell(error, &e, r);
    *ret = object(&o);
    if (!*ret)
        return remote_tell(error, &e, no_memory(&e));
    memcpy((*ret)->limits, limits, sizeof limits);
    return 0;
}

int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                         struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct pinfold_session_options o;
    struct err e = {0};
    int r = options_of(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    message_number(&request, TAG_OP, OP_SESSION_OPEN);
    put_name(&request, o.name, o.scope);
    return remote_tell(error, &e, ask_plain(&request, &o, ret, &e));
}

int pinfold_session_stop(const struct pinfold_session_options *options, int remove, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct pinfold_session_options o;
    struct err e = {0};
    int r = options_of(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    message_number(&request, TAG_OP, OP_SESSION_STOP);
    put_name(&request, o.name, o.scope);
    message_number(&request, TAG_ARGUMENT, remove != 0);
    return remote_tell(error, &e, ask_plain(&request, &o, NULL, &e));
}

int pinfold_session_list(const struct pinfold_session_options *options, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct pinfold_session_options o;
    struct err e = {0};
    int r = options_of(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    message_number(&request, TAG_OP, OP_SESSION_LIST);
    put_name(&request, o.name, o.scope);
    message_number(&request, TAG_ARGUMENT, options != NULL);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

/* What a command needs of its options, but for descriptors. */
static void put_command(struct buf *request, const struct pinfold_session *s, const struct pinfold_exec_options *o)
{
    message_list(request, TAG_ARGUMENT, o->argv);
    message_list(request, TAG_ARGUMENT, o->env);
    message_text(request, TAG_ARGUMENT, o->cwd);
    message_text(request, TAG_ARGUMENT, o->shell);
    message_number(request, TAG_ARGUMENT, o->capture != 0);
    message_number(request, TAG_ARGUMENT, o->capture_max);
    message_number(request, TAG_ARGUMENT, o->timeout_ms);
    message_number(request, TAG_ARGUMENT, o->tty ? (uint64_t)(o->tty == 2) + 1 : 0);
    message_number(request, TAG_ARGUMENT, o->memory_max);
    message_number(request, TAG_ARGUMENT, o->processes_max);
    message_number(request, TAG_ARGUMENT, o->output != NULL);
    message_number(request, TAG_ARGUMENT, o->cancel_fd > 0);
    for (unsigned i = 0; i < 3; i++)
        message_number(request, TAG_ARGUMENT, s->limits[i]);
}

static int exec_options(const struct pinfold_exec_options *options, struct pinfold_exec_options *o, struct err *e)
{
    int r = remote_options(o, sizeof *o, options, options ? options->size : 0, e);
    if (r == 0 && o->foreground)
        r = err_say(e, ERR_CANNOT,
                    "the shared library supports neither terminal nor signals (foreground); start: pinfold exec");
    return r;
}

int pinfold_exec(struct pinfold_session *session, const struct pinfold_exec_options *options,
                 struct pinfold_result **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct pinfold_exec_options o;
    struct str rest;
    struct err e = {0};
    int fds[MESSAGE_FDS];
    uint64_t mask;

    int r = exec_options(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    unsigned n =
        remote_fds((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, o.capture != 0, fds, &mask);
    const struct sayer sayer = {.output = o.output, .output_ctx = o.ctx};
    session_request(&request, OP_EXEC, session);
    put_command(&request, session, &o);
    message_number(&request, TAG_ARGUMENT, mask);
    if (o.cancel_fd > 0)
        fds[n++] = o.cancel_fd;
    r = remote_ask(&request, fds, n, &sayer, &answer, &rest, &e);
    if (r == 0 && (r = remote_result(rest, ret)) < 0)
        r = remote_broken(&e, r);
    return remote_tell(error, &e, r);
}

static int prune(bool look, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    message_number(&request, TAG_OP, OP_SESSION_PRUNE);
    message_number(&request, TAG_ARGUMENT, look);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int pinfold_session_prune(char **ret, struct pinfold_error *error)
{
    return prune(false, ret, error);
}

int pinfold_session_left(char **ret, struct pinfold_error *error)
{
    return prune(true, ret, error);
}

int pinfold_session_update(struct pinfold_session *session, const char *const *allow, const char *const *deny,
                           struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct err e = {0};
    session_request(&request, OP_SESSION_UPDATE, session);
    message_list(&request, TAG_ARGUMENT, allow);
    message_list(&request, TAG_ARGUMENT, deny);
    return remote_tell(error, &e, ask_plain(&request, NULL, NULL, &e));
}

int pinfold_job_start(struct pinfold_session *session, const struct pinfold_exec_options *options, uint32_t *ret_job,
                      struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct pinfold_exec_options o;
    struct str rest;
    struct err e = {0};
    uint64_t job;

    int r = exec_options(options, &o, &e);
    if (r < 0)
        return remote_tell(error, &e, r);
    bool given = o.use_fds && o.stdin_fd >= 0;
    session_request(&request, OP_JOB_START, session);
    put_command(&request, session, &o);
    message_number(&request, TAG_ARGUMENT, given);
    r = remote_ask(&request, &o.stdin_fd, given, NULL, &answer, &rest, &e);
    if (r == 0 && message_take_number(&rest, TAG_RESULT, &job) < 0)
        r = remote_broken(&e, -EBADMSG);
    if (r == 0)
        *ret_job = (uint32_t)job;
    return remote_tell(error, &e, r);
}

int pinfold_job_list(struct pinfold_session *session, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    session_request(&request, OP_JOB_LIST, session);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

int64_t pinfold_job_output(struct pinfold_session *session, uint32_t job, uint64_t at, char *to, size_t room,
                           uint64_t *ret_first, int *ret_ended, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct str rest, bytes;
    struct err e = {0};
    uint64_t ended = 0;

    session_request(&request, OP_JOB_OUTPUT, session);
    message_number(&request, TAG_ARGUMENT, job);
    message_number(&request, TAG_ARGUMENT, at);
    message_number(&request, TAG_ARGUMENT, room);
    int r = remote_ask(&request, NULL, 0, NULL, &answer, &rest, &e);
    if (r == 0 &&
        (message_take_view(&rest, TAG_RESULT, &bytes) < 0 || bytes.n > room ||
         message_take_number(&rest, TAG_RESULT, ret_first) < 0 || message_take_number(&rest, TAG_RESULT, &ended) < 0))
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return remote_tell(error, &e, r);
    *ret_ended = ended != 0;
    memcpy(to, bytes.p, bytes.n);
    return (int64_t)bytes.n;
}

int pinfold_job_kill(struct pinfold_session *session, uint32_t job, int signal, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    struct err e = {0};
    session_request(&request, OP_JOB_KILL, session);
    message_number(&request, TAG_ARGUMENT, job);
    message_number(&request, TAG_ARGUMENT, (uint64_t)signal);
    return remote_tell(error, &e, ask_plain(&request, NULL, NULL, &e));
}
