/* Reads arguments of the shared library's requests and writes the answers. */
#include "client/serving.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/server.h"

int serve_bad(struct request *q)
{
    *q->error = (struct pinfold_error){
        .kind = PINFOLD_ERROR_BUG,
        .no = EBADMSG,
        .text = "cannot read the library's request; are library and program of the same version?"};
    return -EBADMSG;
}

int serve_text_argument(struct request *q, const char **ret)
{
    return message_take_text(&q->rest, TAG_ARGUMENT, q->mem, ret);
}
int serve_number(struct request *q, uint64_t *ret)
{
    return message_take_number(&q->rest, TAG_ARGUMENT, ret);
}
int serve_list(struct request *q, const char *const **ret)
{
    return message_take_list(&q->rest, TAG_ARGUMENT, q->mem, ret);
}

int serve_policy_argument(struct request *q, struct pinfold_policy **ret)
{
    struct str packed;
    struct err e = {0};
    if (message_take_view(&q->rest, TAG_POLICY, &packed) < 0)
        return serve_bad(q);
    return tell(q->error, &e, policy_of_layers(packed, ret, &e));
}

int serve_answer_text(struct request *q, int r, char *text)
{
    if (r >= 0) {
        message_bytes(q->answer, TAG_RESULT, str_of(text));
        free(text);
    }
    return r;
}

/* The pairs that follow under `tag`, ended by a NULL name. */
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

void serve_answer_result(struct request *q, struct pinfold_result *result)
{
    size_t n_out, n_err;
    const char *out = pinfold_result_stdout(result, &n_out);
    const char *err = pinfold_result_stderr(result, &n_err);
    message_number(q->answer, TAG_RESULT, pinfold_result_end(result));
    message_number(q->answer, TAG_RESULT, (uint64_t)pinfold_result_code(result));
    message_number(q->answer, TAG_RESULT, (uint64_t)pinfold_result_status(result));
    message_bytes(q->answer, TAG_RESULT, (struct str){out, n_out});
    message_bytes(q->answer, TAG_RESULT, (struct str){err, n_err});
    message_text(q->answer, TAG_RESULT, pinfold_result_json(result));
    message_text(q->answer, TAG_RESULT, pinfold_result_note(result));
    pinfold_result_free(result);
}

void serve_say(void *ctx, enum pinfold_say what, const char *sentence)
{
    auto_buf struct buf m = BUF(MAX_REQUEST_BYTES);
    (void)ctx;
    message_number(&m, TAG_SAY, what);
    message_text(&m, TAG_SAY, sentence);
    (void)message_send(SERVE_SOCKET, &m, NULL, 0);
}
