/* The program's side of the shared library: reads one request and calls the function it names. */
#include "client/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/serving.h"

static int take_pairs(struct request *q, uint16_t tag, const struct pinfold_option **ret)
{
    struct pinfold_option *options = NULL;
    size_t n = 0;

    while (message_peek(q->rest) == tag) {
        struct pinfold_option *f = arena_push(q->mem, &options, &n, sizeof *f);
        if (!f || message_take_text(&q->rest, tag, q->mem, &f->name) < 0 ||
            message_take_text(&q->rest, tag, q->mem, &f->value) < 0 || !f->name)
            return -EBADMSG;
    }
    if (!arena_push(q->mem, &options, &n, sizeof *options))
        return -ENOMEM;
    *ret = options;
    return 0;
}

static int serve_load(struct request *q)
{
    struct pinfold_policy_options o = {.size = sizeof o};
    struct pinfold_policy *p;
    uint64_t no_layers;

    if (serve_text_argument(q, &o.profile) < 0 || serve_list(q, &o.files) < 0 ||
        serve_text_argument(q, &o.settings) < 0 || serve_text_argument(q, &o.settings_format) < 0 ||
        serve_text_argument(q, &o.text) < 0 || serve_text_argument(q, &o.settings_text) < 0 ||
        serve_text_argument(q, &o.cwd) < 0 || serve_number(q, &no_layers) < 0)
        return serve_bad(q);
    if (take_pairs(q, TAG_OPTION, &o.options) < 0 || take_pairs(q, TAG_WISH, &o.wishes) < 0)
        return serve_bad(q);
    o.no_layers = no_layers != 0;
    int r = pinfold_policy_load(&o, &p, q->error);
    if (r < 0)
        return r;
    auto_buf struct buf packed = BUF(MAX_REQUEST_BYTES / 2);
    layers_pack(&p->layers, &packed);
    pinfold_policy_free(p);
    if (!buf_ok(&packed))
        return serve_bad(q);
    message_bytes(q->answer, TAG_POLICY, buf_view(&packed));
    return 0;
}

static int serve_text(struct request *q, struct pinfold_policy *p)
{
    char *text = NULL;
    uint64_t origins;
    if (serve_number(q, &origins) < 0)
        return serve_bad(q);
    int r = pinfold_policy_text(p, (int)origins, &text, q->error);
    return serve_answer_text(q, r, text);
}

static int serve_explain(struct request *q, struct pinfold_policy *p)
{
    char *text = NULL;
    uint64_t format, values;
    if (serve_number(q, &format) < 0 || serve_number(q, &values) < 0)
        return serve_bad(q);
    int r =
        pinfold_explain(p, format <= PINFOLD_EXPLAIN_BRIEF ? (enum pinfold_explain_format)format : PINFOLD_EXPLAIN_TEXT,
                        values != 0, &text, q->error);
    return serve_answer_text(q, r, text);
}

static int serve_wrap(struct request *q, struct pinfold_policy *p)
{
    const char *const *argv;
    char **wrapped;
    if (serve_list(q, &argv) < 0)
        return serve_bad(q);
    int r = pinfold_wrap(p, argv, &wrapped, q->error);
    if (r < 0)
        return r;
    message_list(q->answer, TAG_RESULT, (const char *const *)wrapped);
    free(wrapped);
    return 0;
}

/* The caller answers on the socket: for that time its bytes, too, must not end us; its end still does. */
static enum pinfold_answer ask(void *ctx, const struct pinfold_question *q)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf reply = BUF(4096);
    uint64_t answer = PINFOLD_NO;
    (void)ctx;
    message_text(&m, TAG_ASK, q->target);
    message_text(&m, TAG_ASK, q->how);
    message_text(&m, TAG_ASK, q->command);
    message_number(&m, TAG_ASK, q->pid);
    message_number(&m, TAG_ASK, q->timeout_ms);
    serve_end_with_caller(false);
    if (message_send(SERVE_SOCKET, &m, NULL, 0) < 0 || message_receive(SERVE_SOCKET, &reply, NULL) < 0)
        _exit(125);
    struct str rest = buf_view(&reply);
    if (message_take_number(&rest, TAG_ASK, &answer) < 0 || answer > PINFOLD_ALWAYS)
        answer = PINFOLD_NO;
    serve_end_with_caller(true);
    return (enum pinfold_answer)answer;
}

static int serve_run(struct request *q, struct pinfold_policy *p)
{
    struct pinfold_run_options o = {
        .size = sizeof o, .use_fds = 1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .foreground = 0};
    struct pinfold_result *result;
    uint64_t mask, capture, capture_max, wants_say, wants_ask, control;
    unsigned next = 0;
    int *const into[3] = {&o.stdin_fd, &o.stdout_fd, &o.stderr_fd};

    if (serve_list(q, &o.argv) < 0 || serve_list(q, &o.env) < 0 || serve_text_argument(q, &o.cwd) < 0 ||
        serve_number(q, &mask) < 0 || serve_number(q, &capture) < 0 || serve_number(q, &capture_max) < 0 ||
        serve_number(q, &wants_say) < 0 || serve_number(q, &wants_ask) < 0 || serve_number(q, &control) < 0)
        return serve_bad(q);
    for (unsigned i = 0; i < 3; i++) {
        if (mask >> i & 1)
            *into[i] = q->fds[next++];
    }
    o.capture = capture != 0;
    o.capture_max = capture_max;
    o.say = wants_say ? serve_say : NULL;
    o.ask = wants_ask ? ask : NULL;
    if (control && (o.control_fd = q->fds[next]) < 0)
        return serve_bad(q);
    serve_end_with_caller(true);
    int r = pinfold_run(p, &o, &result, q->error);
    serve_end_with_caller(false);
    if (r < 0)
        return r;
    serve_answer_result(q, result);
    return 0;
}

static int serve_policy(struct request *q, uint64_t op)
{
    struct pinfold_policy *p;
    int r = serve_policy_argument(q, &p);
    if (r < 0)
        return r;
    r = op == OP_TEXT      ? serve_text(q, p)
        : op == OP_EXPLAIN ? serve_explain(q, p)
        : op == OP_RUN     ? serve_run(q, p)
                           : serve_wrap(q, p);
    pinfold_policy_free(p);
    return r;
}

static int serve_other(struct request *q, uint64_t op)
{
    char *text = NULL;
    const char *path;
    uint64_t a, b;
    int r;

    switch (op) {
    case OP_SCHEMA:
        r = pinfold_policy_schema(&text, q->error);
        break;
    case OP_TRUST:
        if (serve_text_argument(q, &path) < 0 || serve_number(q, &a) < 0 || !path)
            return serve_bad(q);
        r = pinfold_trust(path, a != 0, &text, q->error);
        break;
    case OP_DOCTOR:
        if (serve_number(q, &a) < 0 || serve_number(q, &b) < 0)
            return serve_bad(q);
        r = pinfold_doctor(a ? PINFOLD_EXPLAIN_JSON : PINFOLD_EXPLAIN_TEXT, b != 0, &text, q->error);
        break;
    case OP_LOG:
        if (serve_number(q, &a) < 0 || q->fds[0] < 0)
            return serve_bad(q);
        serve_end_with_caller(true);
        r = pinfold_log(q->fds[0], a != 0, q->error);
        serve_end_with_caller(false);
        message_bytes(q->answer, TAG_RESULT, STR(""));
        return r;
    default:
        return serve_bad(q);
    }
    return serve_answer_text(q, r, text);
}

static int serve_request(struct request *q)
{
    uint64_t op;
    if (!q->mem || message_take_number(&q->rest, TAG_OP, &op) < 0)
        return serve_bad(q);
    if (op == OP_LOAD)
        return serve_load(q);
    if (op == OP_TEXT || op == OP_EXPLAIN || op == OP_RUN || op == OP_WRAP)
        return serve_policy(q, op);
    if (op >= OP_AGENT_LIST && op <= OP_AGENT_ARGV)
        return serve_agent(q, op);
    if (op >= OP_SESSION_ENSURE && op <= OP_SESSION_FILES)
        return serve_session(q, op);
    return serve_other(q, op);
}

int serve(void)
{
    auto_buf struct buf message = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf rest = BUF(MAX_ANSWER_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    struct pinfold_error error = {0};
    struct request q = {.mem = mem, .answer = &rest, .error = &error};

    (void)fcntl(SERVE_SOCKET, F_SETFD, FD_CLOEXEC);
    if (message_receive(SERVE_SOCKET, &message, q.fds) < 0)
        return 2;
    q.rest = buf_view(&message);
    int r = serve_request(&q);
    message_number(&answer, TAG_ERROR, (uint64_t)(int64_t)r);
    message_number(&answer, TAG_ERROR, error.kind);
    message_number(&answer, TAG_ERROR, (uint64_t)error.no);
    message_text(&answer, TAG_ERROR, error.text);
    if (r >= 0)
        buf_str(&answer, buf_view(&rest));
    return message_send(SERVE_SOCKET, &answer, NULL, 0) < 0 ? 125 : 0;
}
