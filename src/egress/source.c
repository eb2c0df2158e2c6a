/*
 * What can be woken, and what is told: the ground that the rest of the egress stands on.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/conn.h"

struct world world;

int source_add(struct source *s, enum source_kind kind, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    *s = (struct source){.kind = kind, .fd = fd, .armed = events};
    return epoll_ctl(world.epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void source_arm(struct source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    if (s->fd < 0 || (s->armed == events && !s->out) || (s->out && !events))
        return;
    s->armed = events;
    (void)epoll_ctl(world.epoll, s->out ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd, &e);
    s->out = false;
}

void source_rest(struct source *s)
{
    if (s->fd < 0 || s->out)
        return;
    (void)epoll_ctl(world.epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->armed = 0;
    s->out = true;
}

void source_close(struct source *s)
{
    if (s->fd >= 0)
        close(s->fd); /* leaves the epoll set with its last descriptor */
    s->fd = -1;
}

/* v4 addresses mapped into v6, so that both meet the same comparison. */
static void put_end(const struct sockaddr *a, uint8_t addr[16], uint16_t *port)
{
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)(const void *)a;
        memcpy(addr, &s->sin6_addr, 16);
        *port = ntohs(s->sin6_port);
    } else if (a->sa_family == AF_INET) {
        const struct sockaddr_in *s = (const struct sockaddr_in *)(const void *)a;
        addr[10] = addr[11] = 0xff;
        memcpy(addr + 12, &s->sin_addr, 4);
        *port = ntohs(s->sin_port);
    }
}

static void fill(struct egress_event *e, const struct host *host, const struct host_addr *addr, const char *reason,
                 const struct told *who)
{
    if (host && host->kind == HOST_NAME)
        strcpy(e->name, host->name);
    if (host && host->kind == HOST_ADDR)
        addr_print(&host->addr, e->address);
    if (addr)
        addr_print(addr, e->address);
    strncpy(e->reason, reason, sizeof e->reason - 1);
    if (who && who->from && who->to) {
        e->udp = who->udp;
        put_end(who->from, e->from, &e->from_port);
        put_end(who->to, e->to, &e->to_port);
    }
}

/* A box decides how many there are; what pinfold does not take in time is counted instead. */
static bool send_event(struct egress_event *e)
{
    e->lost = world.lost;
    if (send(world.ask->events, e, sizeof *e, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *e) {
        world.lost = 0;
        return true;
    }
    world.lost += e->said == SAID_DECISION;
    return false;
}

void egress_tell(bool allowed, enum egress_how how, const struct host *host, uint16_t port,
                 const struct host_addr *addr, uint32_t rule, const char *reason)
{
    struct egress_event e = {
        .what = allowed ? EGRESS_ALLOWED : EGRESS_DENIED, .how = (uint8_t)how, .port = port, .rule = rule};
    fill(&e, host, addr, reason, NULL);
    (void)send_event(&e);
}

void egress_tell_allowed(const struct conn *c)
{
    struct egress_event e = {
        .what = EGRESS_ALLOWED, .how = c->how, .by_proxy = c->parent != NULL, .port = c->port, .rule = c->rule};
    fill(&e, c->host, c->parent ? NULL : &c->addrs[c->at_addr - 1], "", NULL);
    (void)send_event(&e);
}

static uint32_t refused(struct egress_event *e, const struct told *who)
{
    if (world.ask->who && world.holds < HOLDS && who->from) {
        world.holds++;
        e->ticket = ++world.tickets;
    }
    return send_event(e) ? e->ticket : 0;
}

uint32_t egress_tell_refused(enum egress_what what, const struct conn *c, const struct host *said,
                             const struct host_addr *addr, const char *reason, const struct told *who)
{
    struct egress_event e = {
        .what = (uint8_t)what, .how = c->how, .by_proxy = c->parent != NULL, .port = c->port, .rule = c->rule};
    fill(&e, said, addr, reason, who);
    return refused(&e, who);
}

uint32_t egress_tell_no_name(const struct host *host, uint32_t rule, const struct told *who)
{
    struct egress_event e = {.how = HOW_DNS, .rule = rule};
    fill(&e, host, NULL, "", who);
    return refused(&e, who);
}

uint32_t egress_tell_question(enum egress_how how, const struct host *host, uint16_t port, const struct told *who)
{
    struct egress_event e = {.said = SAID_ASK, .how = (uint8_t)how, .port = port, .rule = EGRESS_RULE_ASKED};
    fill(&e, host, NULL, "", who);
    e.ticket = ++world.tickets;
    return send_event(&e) ? e.ticket : 0;
}

void egress_tell_rules(uint32_t ticket, uint32_t closed)
{
    struct egress_event e = {.said = SAID_RULES, .ticket = ticket, .count = closed, .lost = world.lost};
    world.lost = 0; /* this one is waited for: pinfold reads as long as it lives */
    while (send(world.ask->events, &e, sizeof e, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}
