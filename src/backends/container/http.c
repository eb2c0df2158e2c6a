/*
 * An HTTP/1.0 client: the answer ends with the connection, so there are no chunks to parse. Used only for the engines'
 * daemons on this machine.
 */
#include "backends/container/http.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include "base/fd.h"

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int wait_for(int fd, short events, long until)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        long left = until - now_ms();
        int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

static int connect_to(const char *path, long until)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path, path, n + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        int e = errno == EINTR ? 0 : errno == EAGAIN ? -EAGAIN : -errno;
        if (e == -EAGAIN && now_ms() < until) { /* its queue is full */
            (void)poll(NULL, 0, 5);
            e = 0;
        }
        if (e < 0) {
            (void)close(fd);
            return e;
        }
    }
    return fd;
}

static int send_all(int fd, const struct buf *b, long until)
{
    for (size_t at = 0; at < b->n;) {
        ssize_t n = send(fd, b->p + at, b->n - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (n < 0) {
            int e = wait_for(fd, POLLOUT, until);
            if (e < 0)
                return e;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int receive_all(int fd, struct buf *b, long until)
{
    enum { PIECE = 16384 };
    for (;;) {
        char *to = buf_space(b, PIECE);
        if (!to)
            return -EMSGSIZE;
        ssize_t n = recv(fd, to, PIECE, 0);
        if (n == 0)
            return 0;
        if (n > 0) {
            buf_grew(b, (size_t)n);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int e = wait_for(fd, POLLIN, until);
        if (e < 0)
            return e;
    }
}

int http_get(const char *socket_path, const char *target, int timeout_ms, struct buf *ret, int *ret_status)
{
    long until = now_ms() + timeout_ms;
    auto_buf struct buf ask = BUF(8192), answer = BUF(ret->max + 65536);
    buf_printf(&ask, "GET %s HTTP/1.0\r\nHost: docker\r\nUser-Agent: pinfold\r\n\r\n", target);
    if (!buf_ok(&ask))
        return -ENAMETOOLONG;
    auto_fd int fd = connect_to(socket_path, until);
    if (fd < 0)
        return fd;
    int e = send_all(fd, &ask, until);
    if (e == 0)
        e = receive_all(fd, &answer, until);
    if (e < 0)
        return e;
    const char *text = buf_cstr(&answer), *body = strstr(text, "\r\n\r\n");
    if (strncmp(text, "HTTP/1.", 7) != 0 || strlen(text) < 12 || !body)
        return -EBADMSG;
    *ret_status = atoi(text + 9);
    buf_put(ret, body + 4, answer.n - (size_t)(body + 4 - text));
    return buf_ok(ret) ? 0 : -EMSGSIZE;
}

void http_path(struct str text, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:@";
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] && strchr(plain, text.p[i]))
            buf_char(out, text.p[i]);
        else
            buf_printf(out, "%%%02X", (unsigned char)text.p[i]);
    }
}
