/*
 * What the requests of the shared library have in common: their answers, and what is said before. The caller may die
 * at any time; then this process and its box end, too.
 */
#include "client/serving.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/server.h"
#include "run/report.h"

int serve_bad(struct request *q)
{
    *q->error = (struct pinfold_error){
        .kind = PINFOLD_ERROR_BUG,
        .no = EBADMSG,
        .text = "cannot read the library's request; are library and program of the same version?"};
    return -EBADMSG;
}

int serve_text(struct request *q, int r, char *text, struct message_text *ret)
{
    if (r >= 0) {
        q->kept[0] = text;
        ret->text = str_of(text);
    }
    return r;
}

int serve_report(struct request *q, int r, struct pinfold_report *report, struct message_report *ret)
{
    if (r >= 0) {
        q->report = report;
        ret->value = value_image(values_whole(&report->values));
    }
    return r;
}

int serve_result(struct request *q, int r, struct pinfold_result *result, struct message_result *ret)
{
    if (r < 0)
        return r;
    q->result = result;
    const struct value_node *value = result_values(result);
    if (!value) {
        *q->error =
            (struct pinfold_error){.kind = PINFOLD_ERROR_SYSTEM, .no = ENOMEM, .text = "cannot hold the result"};
        return -ENOMEM;
    }
    *ret = (struct message_result){.end = pinfold_result_end(result),
                                   .code = (uint64_t)pinfold_result_code(result),
                                   .status = (uint64_t)pinfold_result_status(result),
                                   .value = value_image(value),
                                   .note = pinfold_result_note(result)};
    ret->out.p = pinfold_result_stdout(result, &ret->out.n);
    ret->err.p = pinfold_result_stderr(result, &ret->err.n);
    return r;
}

unsigned serve_fds(const struct request *q, uint64_t mask, int *const into[3])
{
    unsigned next = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (mask >> i & 1)
            *into[i] = q->fds[next++];
    }
    return next;
}

/*
 * While a command runs nobody reads the socket, and the caller may die: then the kernel's SIGIO, whose default action is
 * to terminate, ends this process and by that the box (fcntl(2), O_ASYNC; the other end's close is POLL_HUP).
 */
void serve_end_with_caller(bool on)
{
    int flags = fcntl(SERVE_SOCKET, F_GETFL);
    char byte;
    (void)fcntl(SERVE_SOCKET, F_SETOWN, getpid());
    (void)fcntl(SERVE_SOCKET, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
    if (on && recv(SERVE_SOCKET, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) /* it was gone before */
        _exit(125);
}

void serve_say(void *ctx, enum pinfold_say what, const char *sentence)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    const struct message_said said = {.what = what, .sentence = sentence};
    (void)ctx;
    message_put(&m, TAG_SAID, SHAPE_said, &said);
    (void)message_send(SERVE_SOCKET, &m, NULL, 0);
}

void serve_denied(void *ctx, const struct pinfold_denial *d)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    const struct message_refusal told = {.kind = d->kind,
                                         .action = d->action,
                                         .target = d->target,
                                         .rule = d->rule,
                                         .origin = d->origin,
                                         .how = d->how,
                                         .command = d->command,
                                         .address = d->address,
                                         .why = d->why,
                                         .pid = d->pid,
                                         .command_line = d->command_line,
                                         .host = d->host,
                                         .remedy = d->remedy,
                                         .error = d->error,
                                         .count = d->count,
                                         .monitor = d->monitor != 0,
                                         .guess = d->guess != 0};
    (void)ctx;
    message_put(&m, TAG_REFUSAL, SHAPE_refusal, &told);
    (void)message_send(SERVE_SOCKET, &m, NULL, 0);
}

void serve_output(void *ctx, int which, const char *bytes, size_t n)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    const struct message_output written = {.which = (uint64_t)which, .bytes = {bytes, n}};
    (void)ctx;
    message_put(&m, TAG_OUTPUT, SHAPE_output, &written);
    (void)message_send(SERVE_SOCKET, &m, NULL, 0);
}
