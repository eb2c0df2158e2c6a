/* The loop of an agent's filter: who waits for what, new clients, and what the supervisor orders. One request of a client at a time. */
#include "ssh/clients.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sys/fd.h"
#include "sys/poll.h"

enum { MAX_CLIENTS = 16, MAX_REFUSALS = 256 };

static struct key_client *client_at(const struct key_filter *f, unsigned i)
{
    return (struct key_client *)(void *)(f->clients + i * f->protocol->client_bytes);
}

void key_client_drop(struct key_client *c)
{
    sys_drop(&c->box);
    sys_drop(&c->agent);
    c->state = CLIENT_FREE;
}

void key_filter_refused(struct key_filter *f, const struct ssh_event *v)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != f->second) {
        f->second = now.tv_sec;
        f->refusals = 0;
    }
    if (f->refusals++ < MAX_REFUSALS)
        (void)send(f->events, v, sizeof *v, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool key_filter_asks(const struct key_filter *f, struct key_client *c, const struct ssh_event *v)
{
    if (send(f->events, v, sizeof *v, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof *v)
        return false;
    c->state = CLIENT_ASKED;
    return true;
}

void key_filter_signed(const struct key_filter *f, const struct ssh_event *v)
{
    if (send(f->events, v, sizeof *v, MSG_NOSIGNAL) != (ssize_t)sizeof *v)
        _exit(1);
}

int key_client_write(int fd, const char *bytes, size_t n, size_t *at)
{
    while (*at < n) {
        ssize_t put = send(fd, bytes + *at, n - *at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put <= 0)
            return put < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        *at += (size_t)put;
    }
    return 1;
}

/* The first client in that state, and with that id unless it is 0. */
static struct key_client *client_in(const struct key_filter *f, enum client_state state, uint32_t id)
{
    for (unsigned i = 0; i < f->protocol->clients; i++) {
        struct key_client *c = client_at(f, i);
        if (c->state == state && (!id || c->id == id))
            return c;
    }
    return NULL;
}

static void accept_client(struct key_filter *f)
{
    struct key_client *c = client_in(f, CLIENT_FREE, 0);
    int fd = c ? accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd < 0)
        return;
    char *room = c->room;
    memset(c, 0, f->protocol->client_bytes);
    if (++f->ids == 0)
        f->ids = 1;
    *c = (struct key_client){.state = CLIENT_WAITS, .box = fd, .agent = -1, .id = f->ids, .room = room};
    const struct ssh_event v = {.kind = SSH_EVENT_CONNECT, .id = c->id};
    if (send(f->events, &v, sizeof v, MSG_NOSIGNAL) != (ssize_t)sizeof v)
        key_client_drop(c);
}

static void take_order(struct key_filter *f)
{
    struct ssh_order o;
    own_fd int fd = -1;
    long n = sys_recv_fd(f->events, &o, sizeof o, &fd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0)
        _exit(0); /* the supervisor is gone, and with it the box */
    if (n != (long)sizeof o || !o.id)
        return;
    const bool agent = o.kind == SSH_ORDER_AGENT;
    struct key_client *c = client_in(f, agent ? CLIENT_WAITS : CLIENT_ASKED, o.id);
    if (c && agent) {
        c->agent = sys_taken(&fd);
        f->protocol->given(f, c);
    } else if (c && o.kind == SSH_ORDER_ANSWER) {
        f->protocol->answered(f, c, o.allow != 0, o.run != 0);
    }
}

static struct pollfd waits(const struct key_client *c)
{
    switch (c->state) {
    case CLIENT_READ:
        return (struct pollfd){.fd = c->box, .events = POLLIN};
    case CLIENT_SEND:
        return (struct pollfd){.fd = c->agent, .events = POLLOUT};
    case CLIENT_AGENT:
        return (struct pollfd){.fd = c->agent, .events = POLLIN};
    case CLIENT_REPLY:
        return (struct pollfd){.fd = c->box, .events = POLLOUT};
    default:
        return (struct pollfd){.fd = -1};
    }
}

static void step_client(struct key_filter *f, struct key_client *c)
{
    int r = 1;
    while (r > 0 && waits(c).fd >= 0)
        r = f->protocol->step(f, c);
    if (r < 0)
        key_client_drop(c);
}

static void begin_clients(struct key_filter *f)
{
    const struct key_protocol *p = f->protocol;
    const size_t all = p->clients * p->client_bytes;
    char *rooms =
        mmap(NULL, all + p->clients * p->room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->clients > MAX_CLIENTS || rooms == MAP_FAILED || ssh_lock() < 0)
        _exit(1);
    f->clients = rooms;
    for (unsigned i = 0; i < p->clients; i++)
        *client_at(f, i) = (struct key_client){.box = -1, .agent = -1, .room = rooms + all + i * p->room_bytes};
}

_Noreturn void key_filter_serve(struct key_filter *f)
{
    const unsigned n = f->protocol->clients;
    begin_clients(f);
    for (;;) {
        struct pollfd p[MAX_CLIENTS + 2];
        for (unsigned i = 0; i < n; i++)
            p[i] = waits(client_at(f, i));
        p[n] = (struct pollfd){.fd = f->events, .events = POLLIN};
        p[n + 1] = (struct pollfd){.fd = client_in(f, CLIENT_FREE, 0) ? f->listener : -1, .events = POLLIN};
        int r = sys_poll(p, n + 2, NULL);
        if (r < 0 && r != -EINTR)
            _exit(1);
        if (p[n].revents)
            take_order(f);
        if (p[n + 1].revents)
            accept_client(f);
        for (unsigned i = 0; i < n; i++) {
            if (p[i].revents)
                step_client(f, client_at(f, i));
        }
    }
}
