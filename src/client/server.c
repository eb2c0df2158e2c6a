/*
 * The program's side of the shared library: reads one request, calls the function of that name, and answers. The
 * library starts it for each request, because only a static program can start boxes from a process with threads.
 */
#include "client/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/serving.h"

int serve_load(struct request *q, const struct message_load *a, struct message_policy *ret)
{
    const struct pinfold_policy_options o = {.size = sizeof o,
                                             .profile = a->profile,
                                             .files = a->files,
                                             .settings = a->settings,
                                             .settings_format = a->settings_format,
                                             .text = a->text,
                                             .settings_text = a->settings_text,
                                             .cwd = a->cwd,
                                             .no_layers = a->no_layers != 0,
                                             .options = a->options,
                                             .wishes = a->wishes};
    struct pinfold_policy *p;
    int r = pinfold_policy_load(&o, &p, q->error);
    if (r < 0)
        return r;
    q->packed = BUF(MAX_REQUEST_BYTES / 2);
    layers_pack(&p->layers, &q->packed);
    pinfold_policy_free(p);
    ret->policy = buf_view(&q->packed);
    return buf_ok(&q->packed) ? 0 : serve_bad(q);
}

static int unpack(struct request *q, struct str packed, struct pinfold_policy **ret)
{
    struct err e = {0};
    return tell(q->error, &e, policy_of_layers(packed, ret, &e));
}

int serve_print(struct request *q, const struct message_print *a, struct message_text *ret)
{
    struct pinfold_policy *p;
    char *text = NULL;
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    r = pinfold_policy_text(p, (int)a->how, &text, q->error);
    pinfold_policy_free(p);
    return serve_text(q, r, text, ret);
}

static enum pinfold_explain_format explain_format_of(const struct message_explain *a)
{
    return a->format <= PINFOLD_EXPLAIN_BRIEF ? (enum pinfold_explain_format)a->format : PINFOLD_EXPLAIN_TEXT;
}

int serve_explain(struct request *q, const struct message_explain *a, struct message_text *ret)
{
    struct pinfold_policy *p;
    char *text = NULL;
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    r = pinfold_explain(p, explain_format_of(a), a->show_values != 0, &text, q->error);
    pinfold_policy_free(p);
    return serve_text(q, r, text, ret);
}

int serve_explain_refused(struct request *q, const struct message_explain *a, struct message_text *ret)
{
    struct pinfold_policy *p;
    char *text = NULL;
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    r = pinfold_explain_refused(p, explain_format_of(a), a->show_values != 0, &text, q->error);
    pinfold_policy_free(p);
    return serve_text(q, r, text, ret);
}

int serve_explain_report(struct request *q, const struct message_explain *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    struct pinfold_policy *p;
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    r = pinfold_explain_report(p, a->show_values != 0, &report, q->error);
    pinfold_policy_free(p);
    return serve_report(q, r, report, ret);
}

int serve_why(struct request *q, const struct message_why *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    struct pinfold_policy *p = NULL;
    int r = a->policy.n ? unpack(q, a->policy, &p) : 0;
    if (r < 0)
        return r;
    r = pinfold_why(p, a->action, a->target, &report, q->error);
    pinfold_policy_free(p);
    return serve_report(q, r, report, ret);
}

int serve_wrap(struct request *q, const struct message_wrap *a, struct message_words *ret)
{
    struct pinfold_policy *p;
    char **wrapped = NULL;
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    r = pinfold_wrap(p, a->argv, &wrapped, q->error);
    pinfold_policy_free(p);
    q->kept[0] = wrapped;
    ret->words = (const char *const *)wrapped;
    return r;
}

/* The caller answers on the socket: for that time its bytes, too, must not end us; its end still does. */
static enum pinfold_answer ask_caller(void *ctx, const struct pinfold_question *q)
{
    auto_arena struct arena *mem = arena_new(1u << 12);
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf reply = BUF(4096);
    const struct message_question asked = {
        .target = q->target, .how = q->how, .command = q->command, .pid = q->pid, .timeout_ms = q->timeout_ms};
    struct message_reply said;
    (void)ctx;
    message_put(&m, TAG_QUESTION, SHAPE_question, &asked);
    serve_end_with_caller(false);
    if (message_send(SERVE_SOCKET, &m, NULL, 0) < 0 || message_receive(SERVE_SOCKET, &reply, NULL) < 0)
        _exit(125);
    struct str rest = buf_view(&reply);
    if (message_take(&rest, TAG_REPLY, SHAPE_reply, mem, &said) < 0 || said.answer > PINFOLD_ALWAYS)
        said.answer = PINFOLD_NO;
    serve_end_with_caller(true);
    return (enum pinfold_answer)said.answer;
}

int serve_run(struct request *q, const struct message_run *a, struct message_result *ret)
{
    struct pinfold_run_options o = {.size = sizeof o,
                                    .argv = a->argv,
                                    .env = a->env,
                                    .cwd = a->cwd,
                                    .cow = a->cow,
                                    .cow_from = a->cow_from,
                                    .id = a->id,
                                    .guess_all = a->guess_all != 0,
                                    .ask_writes = a->ask_writes != 0,
                                    .use_fds = 1,
                                    .stdin_fd = -1,
                                    .stdout_fd = -1,
                                    .stderr_fd = -1,
                                    .capture = a->capture != 0,
                                    .capture_max = a->capture_max,
                                    .say = a->say ? serve_say : NULL,
                                    .ask = a->ask ? ask_caller : NULL,
                                    .events = a->events,
                                    .denied = a->denied ? serve_denied : NULL,
                                    .output = a->output ? serve_output : NULL};
    struct pinfold_result *result = NULL;
    struct pinfold_policy *p;
    unsigned next = serve_fds(q, a->fds, (int *const[3]){&o.stdin_fd, &o.stdout_fd, &o.stderr_fd});
    if (a->control && (o.control_fd = q->fds[next]) < 0)
        return serve_bad(q);
    int r = unpack(q, a->policy, &p);
    if (r < 0)
        return r;
    serve_end_with_caller(true);
    r = pinfold_run(p, &o, &result, q->error);
    serve_end_with_caller(false);
    pinfold_policy_free(p);
    return serve_result(q, r, result, ret);
}

int serve_schema(struct request *q, const struct message_schema *a, struct message_text *ret)
{
    char *text = NULL;
    (void)a;
    int r = pinfold_policy_schema(&text, q->error);
    return serve_text(q, r, text, ret);
}

int serve_trust(struct request *q, const struct message_trust *a, struct message_text *ret)
{
    char *text = NULL;
    if (!a->path)
        return serve_bad(q);
    int r = pinfold_trust(a->path, a->withdraw != 0, &text, q->error);
    return serve_text(q, r, text, ret);
}

int serve_judge(struct request *q, const struct message_judge *a, struct message_text *ret)
{
    char *text = NULL;
    if (!a->what || !a->path)
        return serve_bad(q);
    int r = pinfold_path_judge(a->what, a->path, &text, q->error);
    return serve_text(q, r, text, ret);
}

int serve_names(struct request *q, const struct message_schema *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    (void)a;
    int r = pinfold_names_report(&report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_doctor(struct request *q, const struct message_doctor *a, struct message_text *ret)
{
    char *text = NULL;
    int r = pinfold_doctor(a->format == PINFOLD_EXPLAIN_JSON ? PINFOLD_EXPLAIN_JSON : PINFOLD_EXPLAIN_TEXT,
                           a->verify != 0, &text, q->error);
    return serve_text(q, r, text, ret);
}

int serve_doctor_report(struct request *q, const struct message_doctor *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_doctor_report(a->verify != 0, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_log(struct request *q, const struct message_log *a, struct message_nothing *ret)
{
    (void)ret;
    if (q->fds[0] < 0)
        return serve_bad(q);
    serve_end_with_caller(true);
    const struct pinfold_log_options o = {.size = sizeof o,
                                          .fd = q->fds[0],
                                          .follow = a->follow != 0,
                                          .session = a->session,
                                          .since = a->since,
                                          .verify = a->verify != 0,
                                          .head = a->head != 0,
                                          .head_was = a->head_was};
    int r = pinfold_log_select(&o, q->error);
    serve_end_with_caller(false);
    return r;
}

/* ---- one request ---- */

#define CALLER(name, request_, answer_)                                                                                \
    static int call_##name(struct request *q, const void *a, void *ret)                                                \
    {                                                                                                                  \
        return serve_##name(q, a, ret);                                                                                \
    }
MESSAGE_REQUESTS(CALLER)

#define CALLED(name, request_, answer_) [REQUEST_##name] = call_##name,
static int (*const callers[REQUEST_COUNT])(struct request *q, const void *a, void *ret) = {MESSAGE_REQUESTS(CALLED)};

static int serve_request(struct request *q, struct str message, uint64_t *ret_op, void **ret)
{
    if (!q->mem || message_take_number(&message, TAG_REQUEST, ret_op) < 0 || *ret_op >= REQUEST_COUNT)
        return serve_bad(q);
    const enum message_shape_id shape = message_requests[*ret_op].request;
    void *fields = arena_zero(q->mem, message_shapes[shape].bytes);
    *ret = arena_zero(q->mem, message_shapes[message_requests[*ret_op].answer].bytes);
    if (!fields || !*ret || message_take(&message, TAG_REQUEST, shape, q->mem, fields) < 0 || message.n)
        return serve_bad(q);
    return callers[*ret_op](q, fields, *ret);
}

int serve(void)
{
    auto_buf struct buf message = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    struct pinfold_error error = {0};
    struct request q = {.mem = mem, .error = &error};
    uint64_t op = 0;
    void *fields = NULL;

    (void)fcntl(SERVE_SOCKET, F_SETFD, FD_CLOEXEC);
    if (message_receive(SERVE_SOCKET, &message, q.fds) < 0)
        return 2;
    int r = serve_request(&q, buf_view(&message), &op, &fields);
    const struct message_outcome outcome = {
        .returned = (uint64_t)(int64_t)r, .kind = error.kind, .no = (uint64_t)error.no, .text = error.text};
    message_put(&answer, TAG_OUTCOME, SHAPE_outcome, &outcome);
    if (r >= 0)
        message_put(&answer, TAG_ANSWER, message_requests[op].answer, fields);
    buf_free(&q.packed);
    free(q.kept[0]);
    free(q.kept[1]);
    pinfold_result_free(q.result);
    pinfold_report_free(q.report);
    return message_send(SERVE_SOCKET, &answer, NULL, 0) < 0 ? 125 : 0;
}
