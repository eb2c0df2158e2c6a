/*
 * The event loop: one epoll set, deadlines only for connections that are not open yet. Locks down before the first byte
 * is read.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "egress/conn.h"

/* Accepts one connection if they come one at a time, because looking for another costs as much; more if each of the
   last rounds had one. */
static void accept_some(struct wake_source *s, size_t reach_index)
{
    bool again = s->burst && s->round + 1 == world.round;
    s->burst = (uint8_t)(!again ? 1 : s->burst < MOST_AT_ONCE ? s->burst * 2 : MOST_AT_ONCE);
    s->round = world.round;
    for (int i = 0; i < s->burst; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            (void)source_arm(s, 0); /* it would be ready, and fail, again and again */
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

/* The box has ended. For published ports the last data of its servers is still passed on; nothing else has a reader
   any more. */
static void end(void)
{
    if (!world.ask->publish)
        return;
    source_close(&world.listeners[EGRESS_SOCKETS]);
    for (size_t i = 0; i < world.ask->n_reach; i++)
        source_close(&world.reach[i]);
    world.ends_at = world.now + ENDING_MS;
}

/* Descriptors were exhausted: tries again. */
static void accept_again(void)
{
    world.accepts_at = 0;
    for (int i = 0; i < EGRESS_SOCKETS; i++) {
        if (world.ask->sockets[i] >= 0)
            (void)source_arm(&world.listeners[i], EPOLLIN);
    }
    for (size_t i = 0; i < world.ask->n_reach; i++)
        (void)source_arm(&world.reach[i], EPOLLIN);
    for (size_t i = 0; i < world.ask->n_ports; i++)
        (void)source_arm(&world.ports[i], EPOLLIN);
}

static void dispatch(struct wake_source *s, uint32_t events)
{
    switch (s->kind) {
    case SOURCE_EVENTS: /* when it closes we exit; a message before that leaves some time */
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
        accept_some(s, (size_t)(s - world.reach));
        break;
    default:
        accept_some(s, 0);
    }
}

static void clock_read(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* some ms late; no deadline is that close */
    world.now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Ends one late connection: false, there may be more. Otherwise updates the time of the next one. */
static bool conns_late(void)
{
    uint64_t next = UINT64_MAX;
    for (struct conn *c = world.conns; c; c = c->next) {
        if (c->deadline <= world.now) {
            conn_late(c);
            return false;
        }
        next = c->deadline < next ? c->deadline : next;
    }
    world.conns_at = next;
    return true;
}

/* Handles deadlines; returns the ms until the next one, or -1. */
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
            const uint64_t was = l->deadline;
            lookup_ready(l); /* an answer may have come while this process got no processor */
            if (l->conn && l->deadline == was)
                lookup_late(l);
            return 0; /* the list may have changed: look again */
        }
        next = l->deadline < next ? l->deadline : next;
    }
    if (world.conns_at <= world.now && !conns_late())
        return 0;
    next = world.conns_at < next ? world.conns_at : next;
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

/* Two descriptors per connection, and some for the rest: excess connections are reset. Raises the hard limit if
   permitted (root). */
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
    world.max_files = (unsigned)l.rlim_cur;
    return l.rlim_cur <= rest ? 1 : (unsigned)((l.rlim_cur - rest) / 2);
}

static uint64_t microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/*
 * Sleeping and waking up takes longer than most steps of a new local tunnel. So while tunnels are being created the
 * loop polls actively for the next event, as long as such waits are short (like KVM's halt polling). Not for data that
 * flows.
 */
static int wait_for(struct epoll_event *ready, int room)
{
    static uint64_t patience;
    int timeout = deadlines(), n = 0;
    if (!world.polls || !timeout || world.now > world.made_at + POLL_AFTER_MS)
        return epoll_wait(world.epoll, ready, room, timeout);
    uint64_t began = microseconds(), waited = 0;
    do {
        n = epoll_wait(world.epoll, ready, room, 0);
        if (n)
            return n;
        waited = microseconds() - began;
    } while (waited < patience);
    n = epoll_wait(world.epoll, ready, room, timeout);
    waited = microseconds() - began;
    if (waited > POLL_MOST_US)
        patience /= 2;
    else
        patience = patience < POLL_LEAST_US ? POLL_LEAST_US : patience < POLL_MOST_US / 2 ? patience * 2 : POLL_MOST_US;
    return n;
}

/* A listener; connections accepted from it inherit TCP_NODELAY (tcp(7)). */
static void listens(struct wake_source *s, enum source_kind kind, int fd)
{
    int one = 1;
    if (kind != SOURCE_DNS_UDP)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (source_add(s, kind, fd, EPOLLIN) < 0)
        _exit(1);
}

void egress_serve(const struct egress_ask *ask)
{
    static const enum source_kind kinds[EGRESS_SOCKETS] = {SOURCE_CATCH, SOURCE_PROXY, SOURCE_DNS_UDP, SOURCE_DNS_TCP};
    cpu_set_t cpus;
    orders_begin(ask);
    world.conns_at = UINT64_MAX;
    world.polls =
        /* on a single processor polling would take time from the peer */
        sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1;
    world.max_conns = connections_allowed();
    world.epoll = epoll_create1(EPOLL_CLOEXEC);
    world.reach = calloc((ask->publish ? EGRESS_MAX_REACH : ask->n_reach) + 1, sizeof *world.reach);
    if (world.epoll < 0 || !world.reach ||
        source_add(&world.listeners[EGRESS_SOCKETS], SOURCE_EVENTS, ask->events, EPOLLIN) < 0)
        _exit(1);
    for (int i = 0; i < EGRESS_SOCKETS; i++) {
        if (ask->sockets[i] >= 0)
            listens(&world.listeners[i], kinds[i], ask->sockets[i]);
    }
    for (size_t i = 0; i < ask->n_reach; i++)
        listens(&world.reach[i], SOURCE_REACH, ask->reach[i].listener);
    for (size_t i = 0; i < ask->n_ports; i++)
        listens(&world.ports[i], SOURCE_CATCH, ask->ports[i]);
    if (egress_lock() < 0)
        _exit(1);
    while (true) {
        struct epoll_event ready[64];
        clock_read();
        int n = wait_for(ready, 64);
        clock_read();
        world.round++;
        for (int i = 0; i < n; i++)
            dispatch(ready[i].data.ptr, ready[i].events);
        conn_bury();
        lookup_bury();
        if (world.ends_at && (world.now >= world.ends_at || conn_all_told()))
            _exit(0);
    }
}
