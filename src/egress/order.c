/*
 * Orders of pinfold while the box runs: new rules, answers to questions, identified clients, and the host's resolver
 * configuration. Texts and rules come in a memfd that nobody else writes; the proxy opens no file.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/conn.h"
#include "base/fd.h"
#include "egress/parts.h"

static struct egress_ask live; /* the present state; world.ask */
static void *rules, *hosts;    /* received by orders, owned */

void orders_begin(const struct egress_ask *ask)
{
    live = *ask;
    world.ask = &live;
}

static void answered(uint32_t ticket, uint32_t answer)
{
    question_over(ticket, answer == ANSWER_YES);
    conn_answered(ticket, answer <= ANSWER_NOBODY ? (enum egress_answer)answer : ANSWER_NO);
}

/* Reads the content of a descriptor from its beginning and closes it; NULL if it is incomplete. */
static void *order_take(int fd, uint32_t bytes)
{
    char *p = bytes <= EGRESS_MAX_ORDER ? malloc(bytes + 1u) : NULL;
    const bool whole = p && fd_read_exactly(fd, p, bytes) == 0;
    (void)close(fd);
    if (whole)
        return p;
    free(p);
    return NULL;
}

static void take_rules(const struct egress_order *o, void *p)
{
    if (!p || o->bytes % sizeof(struct host_rule)) { /* invalid: neither old nor new rules are what pinfold expects */
        free(p);
        _exit(1);
    }
    free(rules);
    rules = p;
    live.rules = p;
    live.n_rules = o->bytes / sizeof(struct host_rule);
    egress_tell_rules(o->ticket, conn_judge_again());
}

/* New queries go to the new servers; cached results are dropped. */
static void take_text(const struct egress_order *o, void *p)
{
    struct str text = {p, p ? o->bytes : 0};
    if (!p)
        return;
    memset(world.cache, 0, sizeof world.cache);
    if (o->kind == ORDER_RESOLV) {
        nat64_forget();
        resolv_parse(text, &live.resolver);
        free(p);
        return;
    }
    free(hosts);
    hosts = p;
    live.resolver.hosts = text;
}

/* Of a process of published ports: connections to it lead to a port of the box. */
static void take_listener(const struct egress_order *o, int fd)
{
    int one = 1;
    if (fd < 0)
        return;
    if (!live.publish || live.n_reach == EGRESS_MAX_REACH || !o->ticket || o->ticket > UINT16_MAX) {
        (void)close(fd);
        return;
    }
    live.reach[live.n_reach] = (struct egress_reach){.addr = {.b = {127, 0, 0, 1}},
                                                     .also = {.v6 = true, .b = {[15] = 1}},
                                                     .both = true,
                                                     .port = (uint16_t)o->ticket,
                                                     .listener = fd};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (source_add(&world.reach[live.n_reach], SOURCE_REACH, fd, EPOLLIN) < 0)
        (void)close(fd);
    else
        live.n_reach++;
}

static void obey(const struct egress_order *o, int fd)
{
    if (o->kind == ORDER_LISTEN) {
        take_listener(o, fd);
        return;
    }
    void *p = fd >= 0 ? order_take(fd, o->bytes) : NULL;
    switch ((enum egress_order_kind)o->kind) {
    case ORDER_RULES:
        take_rules(o, p);
        return;
    case ORDER_RESOLV:
    case ORDER_HOSTS:
        take_text(o, p);
        return;
    case ORDER_ANSWER:
        answered(o->ticket, o->answer);
        break;
    case ORDER_SEEN:
        conn_seen(o->ticket);
        dns_seen(o->ticket);
        break;
    case ORDER_LISTEN:
        break;
    }
    free(p);
}

enum orders orders_ready(void)
{
    for (;;) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct egress_order o;
        struct iovec io = {&o, sizeof o};
        struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        int fd = -1;
        ssize_t n = recvmsg(live.events, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return ORDERS_MORE;
        if (n <= 0)
            return ORDERS_END;
        if (n == 1)
            return ORDERS_LEAVE;
        const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
        if (n == sizeof o)
            obey(&o, fd);
        else if (fd >= 0)
            (void)close(fd);
    }
}
