/*
 * Sessions for the shared library. An object only holds the session's name; every request starts its own server, and
 * session daemons are children of neither.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "client/remote.h"

static int session_options_of(const struct pinfold_session_options *from, struct pinfold_session_options *to,
                              struct err *e)
{
    return take_options(to, sizeof *to, from, from ? from->size : 0, e);
}

static struct message_open naming(const struct pinfold_session *s)
{
    return (struct message_open){.name = s->name, .scope = s->scope};
}

static int session_handle(const struct pinfold_session_options *o, struct pinfold_session **ret, struct err *e)
{
    struct pinfold_session *s = calloc(1, sizeof *s);
    if (s)
        s->files = -1;
    if (s && o->name)
        s->name = strdup(o->name);
    if (s && o->scope)
        s->scope = strdup(o->scope);
    if (!s || !s->name || (o->scope && !s->scope)) {
        pinfold_session_free(s);
        return err_sys(e, ERR_SYSTEM, ENOMEM, "session");
    }
    *ret = s;
    return 0;
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

int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                           struct pinfold_session **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct pinfold_session_options o;
    struct message_limits limits;
    struct err e = {0};
    int r = session_options_of(options, &o, &e);
    if (r < 0)
        return tell(error, &e, r);
    const struct message_ensure ask = {.policy = buf_view(&policy->layers),
                                       .name = o.name,
                                       .scope = o.scope,
                                       .recreate = o.recreate != 0,
                                       .cow = o.cow,
                                       .cow_from = o.cow_from,
                                       .cwd = o.cwd};
    const struct remote_along along = {.say = o.say, .say_ctx = o.say_ctx};
    r = remote_call(REQUEST_ensure, &ask, &along, &answer, &limits, &e);
    if (r == 0)
        r = session_handle(&o, ret, &e);
    if (r == 0)
        memcpy((*ret)->limits, (const uint64_t[3]){limits.timeout, limits.grace, limits.output}, sizeof(*ret)->limits);
    return tell(error, &e, r);
}

int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                         struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    int r = session_options_of(options, &o, &e);
    if (r == 0)
        r = remote_plain(REQUEST_open, &(struct message_open){.name = o.name, .scope = o.scope}, NULL, &e);
    if (r == 0)
        r = session_handle(&o, ret, &e);
    return tell(error, &e, r);
}

int pinfold_session_stop(const struct pinfold_session_options *options, int remove, struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    int r = session_options_of(options, &o, &e);
    if (r == 0) {
        const struct message_stop ask = {.name = o.name, .scope = o.scope, .remove = remove != 0};
        r = remote_plain(REQUEST_stop, &ask, NULL, &e);
    }
    return tell(error, &e, r);
}

int pinfold_session_list_report(const struct pinfold_session_options *options, struct pinfold_report **ret,
                                struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    int r = session_options_of(options, &o, &e);
    if (r < 0)
        return tell(error, &e, r);
    const struct message_list ask = {.name = o.name, .scope = o.scope, .some = options != NULL};
    return remote_report(REQUEST_list, &ask, ret, error);
}

int pinfold_session_prune_report(int look, struct pinfold_report **ret, struct pinfold_error *error)
{
    return remote_report(REQUEST_prune, &(struct message_prune){.look = look != 0}, ret, error);
}

/* What a command needs of its options, but for descriptors. */
static struct message_exec command(const struct pinfold_session *s, const struct pinfold_exec_options *o)
{
    return (struct message_exec){.name = s->name,
                                 .scope = s->scope,
                                 .argv = o->argv,
                                 .env = o->env,
                                 .cwd = o->cwd,
                                 .shell = o->shell,
                                 .capture = o->capture != 0,
                                 .capture_max = o->capture_max,
                                 .timeout_ms = o->timeout_ms,
                                 .tty = o->tty ? (uint64_t)(o->tty == 2) + 1 : 0,
                                 .memory_max = o->memory_max,
                                 .processes_max = o->processes_max,
                                 .output = o->output != NULL,
                                 .cancel = o->cancel_fd > 0,
                                 .own_timeout = s->limits[0],
                                 .own_grace = s->limits[1],
                                 .own_output = s->limits[2],
                                 .id = o->id};
}

static int exec_options(const struct pinfold_exec_options *options, struct pinfold_exec_options *o, struct err *e)
{
    int r = take_options(o, sizeof *o, options, options ? options->size : 0, e);
    if (r == 0 && o->foreground)
        r = err_say(e, ERR_CANNOT,
                    "the shared library supports neither terminal nor signals (foreground); start: pinfold exec");
    return r;
}

int pinfold_exec(struct pinfold_session *session, const struct pinfold_exec_options *options,
                 struct pinfold_result **ret, struct pinfold_error *error)
{
    struct pinfold_exec_options o;
    struct err e = {0};
    int fds[MESSAGE_FDS];

    int r = exec_options(options, &o, &e);
    if (r < 0)
        return tell(error, &e, r);
    struct message_exec ask = command(session, &o);
    unsigned n =
        remote_fds((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, o.capture != 0, fds, &ask.fds);
    if (o.cancel_fd > 0)
        fds[n++] = o.cancel_fd;
    const struct remote_along along = {.fds = fds, .n_fds = n, .output = o.output, .output_ctx = o.ctx};
    return remote_result(REQUEST_exec, &ask, &along, ret, error);
}

int pinfold_session_update(struct pinfold_session *session, const char *const *allow, const char *const *deny,
                           struct pinfold_error *error)
{
    struct err e = {0};
    const struct message_update ask = {.name = session->name, .scope = session->scope, .allow = allow, .deny = deny};
    return tell(error, &e, remote_plain(REQUEST_update, &ask, NULL, &e));
}

/* ---- jobs ---- */

int pinfold_job_start(struct pinfold_session *session, const struct pinfold_exec_options *options, uint32_t *ret_job,
                      struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct pinfold_exec_options o;
    struct message_job started;
    struct err e = {0};

    int r = exec_options(options, &o, &e);
    if (r < 0)
        return tell(error, &e, r);
    bool given = o.use_fds && o.stdin_fd >= 0;
    struct message_exec ask = command(session, &o);
    ask.fds = given;
    const struct remote_along along = {.fds = &o.stdin_fd, .n_fds = given};
    r = remote_call(REQUEST_job_start, &ask, &along, &answer, &started, &e);
    if (r == 0)
        *ret_job = (uint32_t)started.job;
    return tell(error, &e, r);
}

int pinfold_job_list_report(struct pinfold_session *session, struct pinfold_report **ret, struct pinfold_error *error)
{
    const struct message_open ask = naming(session);
    return remote_report(REQUEST_job_list, &ask, ret, error);
}

int64_t pinfold_job_output(struct pinfold_session *session, uint32_t job, uint64_t at, char *to, size_t room,
                           uint64_t *ret_first, int *ret_ended, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    const struct message_job_output ask = {
        .name = session->name, .scope = session->scope, .job = job, .at = at, .room = room};
    struct message_written found;
    struct err e = {0};

    int r = remote_call(REQUEST_job_output, &ask, NULL, &answer, &found, &e);
    if (r == 0 && found.bytes.n > room)
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return tell(error, &e, r);
    *ret_first = found.first;
    *ret_ended = found.ended != 0;
    memcpy(to, found.bytes.p, found.bytes.n);
    return (int64_t)found.bytes.n;
}

int pinfold_job_kill(struct pinfold_session *session, uint32_t job, int signal, struct pinfold_error *error)
{
    struct err e = {0};
    const struct message_job_kill ask = {
        .name = session->name, .scope = session->scope, .job = job, .signal = (uint64_t)signal};
    return tell(error, &e, remote_plain(REQUEST_job_kill, &ask, NULL, &e));
}

int pinfold_job_attach(struct pinfold_session *session, const struct pinfold_attach_options *options, char **ret_notes,
                       struct pinfold_error *error)
{
    struct err e = {0};
    (void)session;
    (void)options;
    (void)ret_notes;
    (void)err_say(&e, ERR_CANNOT, "the shared library takes no terminal; start: pinfold job attach");
    return tell(error, &e, -EOPNOTSUPP);
}
