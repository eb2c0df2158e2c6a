/*
 * The egress's loop: one epoll set, deadlines only for what is not open yet, and the locking in before the first byte.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "egress/conn.h"

static void accept_all(struct source *s, size_t reach_index)
{
    for (int i = 0; i < 64; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            source_arm(s, 0); /* it would be ready, and fail, again and again */
            world.accepts_at = world.now + STARVED_MS;
        }
        if (fd < 0)
            return;
        if (s->kind == SOURCE_DNS_TCP)
            dns_conn_accept(fd);
        else
            conn_accept(s->kind, fd, reach_index);
    }
}

/*
 * The box is gone. What its servers had written last is on its way to clients of published ports; everything else has no
 * reader any more.
 */
static void end(void)
{
    if (!world.ask->publish)
        return;
    source_close(&world.listeners[EGRESS_SOCKETS]);
    for (size_t i = 0; i < world.ask->n_reach; i++)
        source_close(&world.reach[i]);
    world.ends_at = world.now + ENDING_MS;
}

/* Descriptors had run out: perhaps some are back. */
static void accept_again(void)
{
    world.accepts_at = 0;
    for (int i = 0; i < EGRESS_SOCKETS; i++) {
        if (world.ask->sockets[i] >= 0)
            source_arm(&world.listeners[i], EPOLLIN);
    }
    for (size_t i = 0; i < world.ask->n_reach; i++)
        source_arm(&world.reach[i], EPOLLIN);
}

static void dispatch(struct source *s, uint32_t events)
{
    switch (s->kind) {
    case SOURCE_EVENTS: /* its end is ours; a word before it: there is a moment to end in */
        switch (orders_ready()) {
        case ORDERS_MORE:
            break;
        case ORDERS_END:
            _exit(0);
        case ORDERS_LEAVE:
            end();
        }
        break;
    case SOURCE_DNS_UDP:
        dns_udp_ready();
        break;
    case SOURCE_DNS_CONN:
        dns_conn_ready(s);
        break;
    case SOURCE_LOOKUP:
        lookup_ready((struct lookup *)s);
        break;
    case SOURCE_CLIENT:
        conn_ready((struct conn *)(void *)((char *)s - offsetof(struct conn, client)), true, events);
        break;
    case SOURCE_SERVER:
        conn_ready((struct conn *)(void *)((char *)s - offsetof(struct conn, server)), false, events);
        break;
    case SOURCE_REACH:
        accept_all(s, (size_t)(s - world.reach));
        break;
    default:
        accept_all(s, 0);
    }
}

static void clock_read(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    world.now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Ends what is late; the milliseconds until the next deadline, or -1. */
static int deadlines(void)
{
    uint64_t next = dns_late();
    if (world.ends_at && world.ends_at < next)
        next = world.ends_at;
    if (world.accepts_at && world.accepts_at <= world.now)
        accept_again();
    if (world.accepts_at && world.accepts_at < next)
        next = world.accepts_at;
    for (struct lookup *l = world.lookups, *after; l; l = after) {
        after = l->next;
        if (l->deadline <= world.now) {
            lookup_late(l);
            return 0; /* the list may have changed: look again */
        }
        next = l->deadline < next ? l->deadline : next;
    }
    for (struct conn *c = world.conns, *after; c; c = after) {
        after = c->next;
        if (c->deadline <= world.now) {
            conn_late(c);
            return 0;
        }
        next = c->deadline < next ? c->deadline : next;
    }
    if (next == UINT64_MAX)
        return -1;
    return next > world.now ? (int)(next - world.now) : 0;
}

static int receive_one(int from, struct egress_socket_frame *f)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = {f, sizeof *f};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    int fd;
    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *c = n == sizeof *f ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof fd))
        return -EBADMSG;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

int egress_receive(struct egress_ask *ask, int from)
{
    uint32_t first = ask->way == CATCH_TPROXY ? 0 : EGRESS_CATCH + 1;
    ask->sockets[EGRESS_CATCH] = -1;
    for (uint32_t i = first; i < EGRESS_SOCKETS + ask->n_reach + ask->n_ports; i++) {
        struct egress_socket_frame f;
        int fd = receive_one(from, &f);
        if (fd < 0 || f.index != i)
            return -EBADMSG;
        if (i < EGRESS_SOCKETS)
            ask->sockets[i] = fd;
        else if (i < EGRESS_SOCKETS + ask->n_reach)
            ask->reach[i - EGRESS_SOCKETS].listener = fd;
        else
            ask->ports[i - EGRESS_SOCKETS - ask->n_reach] = fd;
        ask->v6 = f.v6;
    }
    return 0;
}

/*
 * Two descriptors for each connection, and some for the rest: beyond what may be had, new ones are reset. The hard limit
 * is raised where that is allowed (root).
 */
static unsigned connections_allowed(void)
{
    const rlim_t rest = 64 + EGRESS_MAX_REACH + EGRESS_MAX_PORTS, most = rest + 2 * (rlim_t)MAX_CONNECTIONS;
    struct rlimit l = {most, most};
    if (setrlimit(RLIMIT_NOFILE, &l) < 0) {
        if (getrlimit(RLIMIT_NOFILE, &l) < 0)
            return 0;
        l.rlim_cur = l.rlim_max < most ? l.rlim_max : most;
        if (setrlimit(RLIMIT_NOFILE, &l) < 0)
            return 0;
    }
    return l.rlim_cur <= rest ? 1 : (unsigned)((l.rlim_cur - rest) / 2);
}

void egress_serve(const struct egress_ask *ask)
{
    static const enum source_kind kinds[EGRESS_SOCKETS] = {SOURCE_CATCH, SOURCE_PROXY, SOURCE_DNS_UDP, SOURCE_DNS_TCP};
    orders_begin(ask);
    world.max_conns = connections_allowed();
    world.epoll = epoll_create1(EPOLL_CLOEXEC);
    world.reach = calloc(ask->n_reach + 1, sizeof *world.reach);
    if (world.epoll < 0 || !world.reach ||
        source_add(&world.listeners[EGRESS_SOCKETS], SOURCE_EVENTS, ask->events, EPOLLIN) < 0)
        _exit(1);
    for (int i = 0; i < EGRESS_SOCKETS; i++) {
        if (ask->sockets[i] >= 0 && source_add(&world.listeners[i], kinds[i], ask->sockets[i], EPOLLIN) < 0)
            _exit(1);
    }
    for (size_t i = 0; i < ask->n_reach; i++) {
        if (source_add(&world.reach[i], SOURCE_REACH, ask->reach[i].listener, EPOLLIN) < 0)
            _exit(1);
    }
    for (size_t i = 0; i < ask->n_ports; i++) {
        if (source_add(&world.ports[i], SOURCE_CATCH, ask->ports[i], EPOLLIN) < 0)
            _exit(1);
    }
    if (egress_lock() < 0)
        _exit(1);
    while (true) {
        struct epoll_event ready[64];
        clock_read();
        int n = epoll_wait(world.epoll, ready, 64, deadlines());
        clock_read();
        for (int i = 0; i < n; i++)
            dispatch(ready[i].data.ptr, ready[i].events);
        conn_bury();
        lookup_bury();
        if (world.ends_at && (world.now >= world.ends_at || conn_all_told()))
            _exit(0);
    }
}
