/*
 * Messages between the shared library and the program it starts: tagged fields, and descriptors beside them. Only the
 * form; client/messages.h has what each message holds.
 */
#include "run/message.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "sys/fd.h"

enum field_type { FIELD_NULL, FIELD_TEXT, FIELD_BYTES, FIELD_NUMBER, FIELD_LIST };
struct field {
    uint16_t tag, type;
    uint32_t zero;
    uint64_t bytes; /* FIELD_LIST: number of FIELD_TEXTs that follow */
};

static void put_field(struct buf *b, uint16_t tag, enum field_type type, uint64_t n, const void *bytes)
{
    struct field f = {.tag = tag, .type = (uint16_t)type, .bytes = n};
    buf_put(b, &f, sizeof f);
    if (bytes)
        buf_put(b, bytes, (size_t)n);
}

void message_text(struct buf *b, uint16_t tag, const char *text)
{
    if (text)
        put_field(b, tag, FIELD_TEXT, strlen(text), text);
    else
        put_field(b, tag, FIELD_NULL, 0, NULL);
}

void message_bytes(struct buf *b, uint16_t tag, struct str bytes)
{
    put_field(b, tag, FIELD_BYTES, bytes.n, bytes.n ? bytes.p : NULL);
}

void message_number(struct buf *b, uint16_t tag, uint64_t value)
{
    put_field(b, tag, FIELD_NUMBER, sizeof value, &value);
}

void message_list(struct buf *b, uint16_t tag, const char *const *list)
{
    uint64_t n = 0;
    if (!list) {
        put_field(b, tag, FIELD_NULL, 0, NULL);
        return;
    }
    while (list[n])
        n++;
    put_field(b, tag, FIELD_LIST, n, NULL);
    for (uint64_t i = 0; i < n; i++)
        message_text(b, tag, list[i]);
}

/* The field at the start of `s` with its bytes in `ret`, or FIELD type -1 when there is none that is whole. */
static int look_field(struct str s, uint16_t tag, struct field *ret, struct str *ret_bytes)
{
    struct field f;
    if (s.n < sizeof f)
        return -EBADMSG;
    memcpy(&f, s.p, sizeof f);
    if (f.tag != tag || f.zero != 0 || f.type > FIELD_LIST)
        return -EBADMSG;
    s = str_skip(s, sizeof f);
    if (f.type != FIELD_LIST && f.bytes > s.n)
        return -EBADMSG;
    *ret = f;
    *ret_bytes = (struct str){s.p, f.type == FIELD_LIST ? 0 : (size_t)f.bytes};
    return 0;
}

uint16_t message_peek(struct str rest)
{
    uint16_t tag = 0;
    if (rest.n >= sizeof(struct field))
        memcpy(&tag, rest.p, sizeof tag);
    return tag;
}

static void advance(struct str *rest, struct str bytes)
{
    *rest = str_skip(*rest, sizeof(struct field) + bytes.n);
}

int message_take_text(struct str *rest, uint16_t tag, struct arena *mem, const char **ret)
{
    struct field f;
    struct str bytes;
    const char *copy = NULL;

    if (look_field(*rest, tag, &f, &bytes) < 0 || (f.type != FIELD_TEXT && f.type != FIELD_NULL))
        return -EBADMSG;
    if (f.type == FIELD_TEXT && (memchr(bytes.p, 0, bytes.n) || !(copy = arena_str(mem, bytes))))
        return -EBADMSG;
    advance(rest, bytes);
    *ret = copy;
    return 0;
}

int message_take_view(struct str *rest, uint16_t tag, struct str *ret)
{
    struct field f;
    struct str bytes;

    if (look_field(*rest, tag, &f, &bytes) < 0 || f.type != FIELD_BYTES)
        return -EBADMSG;
    advance(rest, bytes);
    *ret = bytes;
    return 0;
}

int message_take_bytes(struct str *rest, uint16_t tag, struct arena *mem, struct str *ret)
{
    struct str bytes, at = *rest;
    if (message_take_view(&at, tag, &bytes) < 0)
        return -EBADMSG;
    const char *copy = arena_str(mem, bytes);
    if (!copy)
        return -EBADMSG;
    *rest = at;
    *ret = (struct str){copy, bytes.n};
    return 0;
}

int message_take_number(struct str *rest, uint16_t tag, uint64_t *ret)
{
    struct field f;
    struct str bytes;

    if (look_field(*rest, tag, &f, &bytes) < 0 || f.type != FIELD_NUMBER || bytes.n != sizeof *ret)
        return -EBADMSG;
    memcpy(ret, bytes.p, sizeof *ret);
    advance(rest, bytes);
    return 0;
}

int message_take_list(struct str *rest, uint16_t tag, struct arena *mem, const char *const **ret)
{
    struct field f;
    struct str bytes, at = *rest;

    if (look_field(at, tag, &f, &bytes) < 0 || (f.type != FIELD_LIST && f.type != FIELD_NULL))
        return -EBADMSG;
    advance(&at, bytes);
    const char **list = NULL;
    if (f.type == FIELD_LIST) {
        if (f.bytes > at.n / sizeof f) /* each entry has a field of its own */
            return -EBADMSG;
        list = arena_zero(mem, (size_t)(f.bytes + 1) * sizeof *list);
        if (!list)
            return -EBADMSG;
        for (uint64_t i = 0; i < f.bytes; i++) {
            if (message_take_text(&at, tag, mem, &list[i]) < 0 || !list[i])
                return -EBADMSG;
        }
    }
    *rest = at;
    *ret = list;
    return 0;
}

union message_control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS)];
};

int message_send(int socket, const struct buf *b, const int *fds, unsigned n_fds)
{
    uint64_t size = b->n;
    size_t sent = 0, whole = sizeof size + b->n;
    union message_control control = {0};

    if (!buf_ok(b))
        return -ENOMEM;
    while (sent < whole) {
        struct iovec part[2] = {{&size, sizeof size}, {b->p, b->n}};
        struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};
        size_t skip = sent < sizeof size ? sent : sizeof size;
        part[0].iov_base = (char *)&size + skip;
        part[0].iov_len -= skip;
        part[1].iov_base = b->p ? b->p + (sent - skip) : NULL;
        part[1].iov_len -= sent - skip;
        if (sent == 0 && n_fds > 0) {
            m.msg_control = &control;
            m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
            struct cmsghdr *c = CMSG_FIRSTHDR(&m);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
            memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        }
        const long n = sys_send_fds(socket, &m, MSG_NOSIGNAL);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return (int)n;
        sent += (size_t)n;
    }
    return 0;
}

static void keep_fds(struct msghdr *m, int *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (unsigned i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (fds && i < MESSAGE_FDS && fds[i] < 0)
                fds[i] = fd;
            else
                (void)close_fd(fd);
        }
    }
}

/* Exactly `n` bytes. */
static int receive(int socket, void *to, size_t n, int *fds)
{
    size_t got = 0;
    while (got < n) {
        union message_control control;
        struct iovec part = {(char *)to + got, n - got};
        struct msghdr m = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t r = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        keep_fds(&m, fds);
        if (r == 0)
            return -ECONNRESET;
        got += (size_t)r;
    }
    return 0;
}

int message_receive(int socket, struct buf *b, int *fds)
{
    uint64_t size;
    for (unsigned i = 0; fds && i < MESSAGE_FDS; i++)
        fds[i] = -1;
    int r = receive(socket, &size, sizeof size, fds);
    if (r < 0)
        return r;
    if (size > b->max)
        return -EBADMSG;
    char *space = buf_space(b, (size_t)size);
    if (!space)
        return -ENOMEM;
    r = receive(socket, space, (size_t)size, fds);
    if (r == 0)
        buf_grew(b, (size_t)size);
    return r;
}
