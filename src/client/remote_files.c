/*
 * Files of sessions, and agents, for the shared library. A session's files are accessed from the caller's own process,
 * on a socket whose other end a server passes to the session's guard; so not every call needs a server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "client/remote.h"
#include "session/session_files.h"

int session_files(struct pinfold_session *s, bool again, int *ret, struct err *e)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    struct str rest;
    int pair[2];
    if (again)
        s->files = close_fd(s->files);
    *ret = s->files;
    if (s->files >= 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair for the session's files");
    message_number(&request, TAG_OP, OP_SESSION_FILES);
    message_text(&request, TAG_ARGUMENT, s->name);
    message_text(&request, TAG_ARGUMENT, s->scope);
    int r = remote_ask(&request, &pair[1], 1, NULL, &answer, &rest, e);
    (void)close_fd(pair[1]);
    if (r < 0) {
        (void)close_fd(pair[0]);
        return r;
    }
    *ret = s->files = pair[0];
    return 0;
}

int tell_error(struct pinfold_error *to, const struct err *from, int r)
{
    return remote_tell(to, from, r);
}

/* ---- agents ---- */

int pinfold_agent_list(char **ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    message_number(&request, TAG_OP, OP_AGENT_LIST);
    return remote_ask_text(&request, NULL, 0, ret, error);
}

static int put_ask(struct buf *request, enum message_op op, const struct pinfold_agent_options *options, struct err *e)
{
    struct pinfold_agent_options o;
    int r = remote_options(&o, sizeof o, options, options ? options->size : 0, e);
    if (r < 0)
        return r;
    const char *const texts[] = {o.agent, o.state, o.home, o.directory, o.prompt, o.profile, o.model, o.response};
    message_number(request, TAG_OP, op);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        message_text(request, TAG_ARGUMENT, texts[i]);
    message_number(request, TAG_ARGUMENT, o.resume != 0);
    message_number(request, TAG_ARGUMENT, o.unattended != 0);
    return 0;
}

/* A list in one piece of memory: room for `n` pointers and what follows, then the texts. */
static char **one_piece(const char *const *list, size_t n, size_t pointers)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(list[i]) + 1;
    char **made = calloc(1, pointers * sizeof *made + bytes);
    char *to = made ? (char *)(made + pointers) : NULL;
    for (size_t i = 0; made && i < n; i++) {
        made[i] = to;
        to = stpcpy(to, list[i]) + 1;
    }
    return made;
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

int pinfold_agent_prepare(const struct pinfold_agent_options *options, struct pinfold_option **ret_options, char **ret,
                          struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    const char *const *flags = NULL;
    const char *json = NULL;
    struct str rest;
    struct err e = {0};
    int r = put_ask(&request, OP_AGENT_PREPARE, options, &e);
    if (r == 0)
        r = remote_ask(&request, NULL, 0, NULL, &answer, &rest, &e);
    if (r == 0 && (!mem || message_take_list(&rest, TAG_RESULT, mem, &flags) < 0 ||
                   message_take_text(&rest, TAG_RESULT, mem, &json) < 0 || count(flags) % 2 || !json))
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return remote_tell(error, &e, r);
    size_t n = count(flags);
    /* A pair of pointers is an option; the pair behind them, of zeros, the end. */
    _Static_assert(sizeof(struct pinfold_option) == 2 * sizeof(char *), "options must come in pairs of name and value");
    char **pairs = ret_options ? one_piece(flags, n, n + 2) : NULL;
    char *text = ret ? strdup(json) : NULL;
    if ((ret_options && !pairs) || (ret && !text)) {
        free(pairs);
        free(text);
        return remote_tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "agent"));
    }
    if (ret_options)
        *ret_options = (struct pinfold_option *)(void *)pairs;
    if (ret)
        *ret = text;
    return 0;
}

int pinfold_agent_argv(const struct pinfold_agent_options *options, char ***ret, struct pinfold_error *error)
{
    auto_buf struct buf request = BUF(MAX_REQUEST_BYTES);
    auto_buf struct buf answer = BUF(MAX_ANSWER_BYTES);
    auto_arena struct arena *mem = arena_new(MAX_REQUEST_BYTES);
    const char *const *argv = NULL;
    struct str rest;
    struct err e = {0};
    int r = put_ask(&request, OP_AGENT_ARGV, options, &e);
    if (r == 0)
        r = remote_ask(&request, NULL, 0, NULL, &answer, &rest, &e);
    if (r == 0 && (!mem || message_take_list(&rest, TAG_RESULT, mem, &argv) < 0 || !argv))
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return remote_tell(error, &e, r);
    *ret = one_piece(argv, count(argv), count(argv) + 1);
    return *ret ? 0 : remote_tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "agent"));
}
