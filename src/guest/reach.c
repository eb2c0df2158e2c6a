/*
 * Loopback connections of a virtual machine, whose 127.0.0.1 is its own. One process accepts connections, and one per
 * connection relays the data:
 *
 *   services of the host's 127.0.0.1   a listener at the machine's 127.0.0.1 for each forwards to the gateway of qemu's
 *                                      network, and so to the loopback of the box around the machine, which decides
 *   published ports                    qemu forwards them to the machine's address; a listener there forwards to the
 *                                      port of 127.0.0.1 or ::1, as everywhere (supervisor/network/publish.c)
 */
#include "guest/guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/vm.h"

enum { MOST_SERVICES = 64, MOST_AT_ONCE = 256 };

struct service {
    bool published;
    uint32_t port; /* where the connection is forwarded to */
};

struct services {
    struct pollfd p[MOST_SERVICES + EGRESS_MAX_REACH];
    struct service s[MOST_SERVICES + EGRESS_MAX_REACH];
    unsigned n;
};

struct half { /* one direction of a connection */
    int from, to;
    char bytes[16384];
    size_t at, n;
    bool over;
};

static struct sockaddr_in place(const char *address, uint32_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)inet_pton(AF_INET, address, &in.sin_addr);
    return in;
}

/* Passes on the end of the stream, too. */
static void half_turn(struct half *h, short from, short to)
{
    if (from && h->n == 0 && !h->over) {
        ssize_t n = recv(h->from, h->bytes, sizeof h->bytes, MSG_DONTWAIT);
        if (n > 0) {
            h->at = 0;
            h->n = (size_t)n;
            to = POLLOUT;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            h->over = true;
            (void)shutdown(h->to, SHUT_WR);
        }
    }
    if (to && h->n) {
        ssize_t n = send(h->to, h->bytes + h->at, h->n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            _exit(0);
        h->at += n > 0 ? (size_t)n : 0;
        h->n -= n > 0 ? (size_t)n : 0;
    }
}

static int connect_socket(const struct sockaddr *to, socklen_t n)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, to, n) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static int connect_on(const struct service *s)
{
    const struct sockaddr_in four = place(s->published ? "127.0.0.1" : VM_GATEWAY, s->port);
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)s->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = connect_socket((const struct sockaddr *)&four, sizeof four);
    return fd < 0 && s->published ? connect_socket((const struct sockaddr *)&six, sizeof six) : fd;
}

static _Noreturn void pass(int one, const struct service *s)
{
    static struct half out, in;
    int other = connect_on(s);
    if (other < 0) {
        const struct linger reset = {.l_onoff = 1};
        (void)setsockopt(one, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        _exit(0);
    }
    out = (struct half){.from = one, .to = other};
    in = (struct half){.from = other, .to = one};
    while (!out.over || !in.over || out.n || in.n) {
        struct pollfd p[2] = {{.fd = one}, {.fd = other}};
        p[0].events = (short)((!out.over && !out.n ? POLLIN : 0) | (in.n ? POLLOUT : 0));
        p[1].events = (short)((!in.over && !in.n ? POLLIN : 0) | (out.n ? POLLOUT : 0));
        for (int i = 0; i < 2; i++) {
            if (!p[i].events)
                p[i].fd = -1; /* poll would return at once for a broken one */
        }
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            _exit(0);
        half_turn(&out, p[0].revents & (POLLIN | POLLHUP | POLLERR), p[1].revents & (POLLOUT | POLLERR));
        half_turn(&in, p[1].revents & (POLLIN | POLLHUP | POLLERR), p[0].revents & (POLLOUT | POLLERR));
    }
    _exit(0);
}

static _Noreturn void take_connections(struct services *all)
{
    struct pollfd *p = all->p;
    for (unsigned children = 0;;) {
        if (poll(p, all->n, -1) < 0 && errno != EINTR)
            _exit(1);
        while (waitpid(-1, NULL, children < MOST_AT_ONCE ? WNOHANG : 0) > 0)
            children--;
        for (unsigned i = 0; i < all->n; i++) {
            int one = p[i].revents ? accept4(p[i].fd, NULL, NULL, SOCK_CLOEXEC) : -1;
            int pid = one < 0 ? -1 : fork();
            if (pid == 0)
                pass(one, &all->s[i]);
            children += pid > 0;
            if (one >= 0)
                (void)close(one);
        }
    }
}

static int serve_at(struct services *all, const char *address, uint32_t port, struct service s)
{
    const int yes = 1;
    const struct sockaddr_in here = place(address, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(fd, (const struct sockaddr *)&here, sizeof here) < 0 || listen(fd, SOMAXCONN) < 0)
        return -errno;
    all->p[all->n] = (struct pollfd){.fd = fd, .events = POLLIN};
    all->s[all->n++] = s;
    return 0;
}

int guest_reach(const struct plan_image *plan, const uint16_t published[EGRESS_MAX_REACH])
{
    static struct services all;
    const struct step *s = plan_steps(plan);
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < plan->n_steps && all.n < MOST_SERVICES; i++) {
        if (s[i].kind == STEP_REACH && !s[i].a)
            e = serve_at(&all, "127.0.0.1", s[i].b, (struct service){.port = s[i].b});
    }
    for (uint32_t i = 0; e == 0 && i < EGRESS_MAX_REACH && published[i]; i++)
        e = serve_at(&all, VM_ADDRESS, VM_PUBLISHED + i, (struct service){.published = true, .port = published[i]});
    if (e < 0)
        return e;
    int pid = all.n ? fork() : 1;
    if (pid == 0)
        take_connections(&all);
    for (unsigned i = 0; i < all.n; i++)
        (void)close(all.p[i].fd);
    return pid < 0 ? -errno : 0;
}
