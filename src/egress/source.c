/* Event sources: the lowest layer of the egress proxy.
   Each has a descriptor and what epoll(7) waits for; connections' are edge-triggered, which saves a call for each change. */
#include <errno.h>
#include <unistd.h>
#include "egress/conn.h"

struct egress_world world;

int source_add(struct wake_source *s, enum source_kind kind, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};
    *s = (struct wake_source){.kind = kind, .fd = fd, .armed = events, .set = true};
    return epoll_ctl(world.epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void source_edge(struct wake_source *s, enum source_kind kind, int fd)
{
    *s = (struct wake_source){.kind = kind, .fd = fd, .edge = true};
}

static bool ask_for(struct wake_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events | (s->edge ? EPOLLET | EPOLLRDHUP | EPOLLPRI : 0u), .data.ptr = s};
    if (epoll_ctl(world.epoll, s->set ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e) < 0)
        return false;
    s->set = true;
    return true;
}

bool source_arm(struct wake_source *s, uint32_t events)
{
    uint32_t before = s->armed;
    if (s->fd < 0 || (before == events && s->set))
        return true;
    s->armed = events;
    return (s->edge && s->set && !(events & ~before)) || ask_for(s, events);
}

void source_rest(struct wake_source *s)
{
    s->armed = 0;
}

void source_again(struct wake_source *s)
{
    if (s->fd >= 0)
        (void)ask_for(s, s->armed);
}

void source_abort(int fd)
{
    struct linger now = {.l_onoff = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void source_close(struct wake_source *s)
{
    if (s->fd >= 0)
        close(s->fd); /* the last descriptor: leaves the epoll set */
    s->fd = -1;
    s->set = false;
}
