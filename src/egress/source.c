/*
 * What can be woken, and what is told: the ground that the rest of the egress stands on.
 */
#include <errno.h>
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

static void send_event(struct egress_event *e, const struct host *host, const struct host_addr *addr,
                       const char *reason)
{
    if (host && host->kind == HOST_NAME)
        strcpy(e->name, host->name);
    if (host && host->kind == HOST_ADDR)
        addr_print(&host->addr, e->address);
    if (addr)
        addr_print(addr, e->address);
    strncpy(e->reason, reason, sizeof e->reason - 1);
    (void)send(world.ask->events, e, sizeof *e, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void egress_tell(bool allowed, enum egress_how how, const struct host *host, uint16_t port,
                 const struct host_addr *addr, uint32_t rule, const char *reason)
{
    struct egress_event e = {
        .what = allowed ? EGRESS_ALLOWED : EGRESS_DENIED, .how = (uint8_t)how, .port = port, .rule = rule};
    send_event(&e, host, addr, reason);
}

void egress_tell_of(enum egress_what what, const struct conn *c, const struct host_addr *addr, const char *reason)
{
    struct egress_event e = {
        .what = (uint8_t)what, .how = c->how, .by_proxy = c->parent != NULL, .port = c->port, .rule = c->rule};
    send_event(&e, c->host, addr, reason);
}
