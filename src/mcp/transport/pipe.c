/*
 * The transport over standard input and output: one message a line. It never blocks in a write, however slowly the
 * client reads.
 */
#include "mcp/transport/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define FINISH_MS  10000                        /* for answers to what was asked before the client's end */
#define MAX_UNREAD ((size_t)MCP_MAX_ANSWER * 2) /* of what a client does not read; then it is as good as gone */

struct pipe {
    struct loop_source in, out;
    struct server *server;
    struct peer *peer;
    struct lines lines;
    struct buf unsent;
    size_t sent; /* of it */
    bool socket, over;
    uint64_t ended; /* when the client did; 0: it has not */
};

static void give_up(struct pipe *s)
{
    s->over = true;
    s->server->loop.done = true;
}

/* Writes what the pipe takes; poll() has said or will say when. */
static void push_unsent(struct pipe *s)
{
    while (s->sent < s->unsent.n && !s->over) {
        const char *at = s->unsent.p + s->sent;
        size_t left = s->unsent.n - s->sent;
        ssize_t n = s->socket ? send(s->out.fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : write(s->out.fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            give_up(s);
        if (n < 0)
            break;
        s->sent += (size_t)n;
    }
    if (s->sent == s->unsent.n) {
        s->sent = s->unsent.n = 0;
        if (s->unsent.room > 1u << 18)
            buf_free(&s->unsent);
    }
    s->out.events = s->unsent.n ? POLLOUT : 0;
}

static void out_ready(struct loop_source *source, short revents)
{
    struct pipe *s = (struct pipe *)(void *)((char *)source - offsetof(struct pipe, out));
    if (revents & POLLOUT)
        push_unsent(s);
    else /* the reader is gone */
        give_up(s);
}

static void send_line(void *ctx, uint64_t tag, struct str message, bool last)
{
    struct pipe *s = ctx;
    (void)tag;
    (void)last;
    if (!message.n || s->over)
        return;
    if (s->sent > 1u << 20) {
        memmove(s->unsent.p, s->unsent.p + s->sent, s->unsent.n - s->sent);
        s->unsent.n -= s->sent;
        s->sent = 0;
    }
    buf_str(&s->unsent, message);
    buf_char(&s->unsent, '\n');
    if (!buf_ok(&s->unsent))
        give_up(s);
    else
        push_unsent(s);
}

static void take_message(void *ctx, struct str text)
{
    struct pipe *s = ctx;
    struct rpc_fault f;
    auto_value json_t *root = peer_read(s->peer, text, &f);
    if (root) {
        (void)peer_take(s->peer, root, 0);
    } else {
        struct id_search search = {0};
        id_search(&search, text); /* without its id the client would wait for the answer for ever */
        peer_refuse(s->peer, &f, id_found(&search), 0);
    }
}

static void too_long(void *ctx, struct str id)
{
    struct pipe *s = ctx;
    peer_too_long(s->peer, id, 0);
}

static void in_ready(struct loop_source *source, short revents)
{
    struct pipe *s = (struct pipe *)(void *)source;
    char bytes[READ_STEP];
    (void)revents;
    ssize_t n = read(s->in.fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        give_up(s);
    } else if (n == 0) {
        lines_take(&s->lines, STR("\n"), take_message, too_long, s); /* a last line may lack it */
        s->ended = loop_now();
        loop_remove(&s->server->loop, &s->in);
    } else {
        lines_take(&s->lines, (struct str){bytes, (size_t)n}, take_message, too_long, s);
    }
}

int pipe_tick(struct pipe *s, uint64_t now)
{
    const int next = peer_tick(s->peer, now);
    if (!s->ended)
        return next;
    const int left = (int)(s->ended + FINISH_MS - now);
    if (left <= 0 || (!peer_busy(s->peer) && !s->unsent.n))
        give_up(s);
    return s->over ? 0 : next < 0 || left < next ? left : next;
}

/*
 * A descriptor for writing that does not block and shares that with nobody: a pipe is opened anew, a socket is told at each send.
 * What is neither (a file, a terminal) takes what it is given.
 */
static int own_output(bool *ret_socket)
{
    struct stat st;
    if (fstat(1, &st) == 0 && S_ISSOCK(st.st_mode)) {
        *ret_socket = true;
        return fcntl(1, F_DUPFD_CLOEXEC, 3);
    }
    int fd = S_ISFIFO(st.st_mode) ? open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    return fd >= 0 ? fd : fcntl(1, F_DUPFD_CLOEXEC, 3);
}

struct pipe *pipe_new(struct server *server)
{
    struct pipe *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct pipe){.in = {.fd = 0, .events = POLLIN, .ready = in_ready},
                       .out = {.ready = out_ready},
                       .server = server,
                       .lines = {.max = MCP_MAX_MESSAGE},
                       .unsent = BUF(MAX_UNREAD)};
    s->out.fd = own_output(&s->socket);
    s->peer = peer_new(server, "stdio", send_line, s);
    if (s->out.fd < 0 || !s->peer || loop_add(&server->loop, &s->in) < 0 || loop_add(&server->loop, &s->out) < 0)
        return pipe_free(s);
    return s;
}

struct pipe *pipe_free(struct pipe *s)
{
    if (!s)
        return NULL;
    push_unsent(s);
    loop_remove(&s->server->loop, &s->in);
    loop_remove(&s->server->loop, &s->out);
    peer_free(s->peer);
    (void)close_fd(s->out.fd);
    buf_free(&s->lines.in);
    buf_free(&s->unsent);
    free(s);
    return NULL;
}
