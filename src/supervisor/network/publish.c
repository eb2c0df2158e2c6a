/*
 * Published ports. The host's ports are bound here, before anything starts, so that a port in use is an early error. A
 * separate process accepts connections and connects inside: it enters the box's user and network namespaces, which the
 * builder sends as its first act, drops every capability, locks itself down, and then runs the egress proxy's loop with
 * only these listeners (egress/). So it works without an egress proxy, and can reach only the box's network.
 * Connections that come before a server in the box listens are reset, as without a box.
 *
 * The box of a login has that process without any port, too: which port the answer comes to is known when the person has said
 * that an address may be opened (browser.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/network/apart.h"
#include "supervisor/network/live.h"
#include "policy/domain.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "protocol/vm.h"

void publish_none(struct box *b)
{
    b->publish = (struct publish_process){.pid = -1, .sockets = -1, .events = -1};
}

static int say_taken(struct box *b, const struct net_rule *rule, const struct publish *p, int no)
{
    char origin[256], at[INET6_ADDRSTRLEN];
    (void)policy_origin(b->spec->start.plan->policy, rule->origin, origin, sizeof origin);
    (void)inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, at, sizeof at);
    const char *open = p->v6 ? "[" : "", *close = p->v6 ? "]" : "";
    if (no == EADDRINUSE)
        return err_say(
            b->err, ERR_CANNOT,
            "publish %s (%s): port %u is in use on %s%s%s; end what has it (ss -ltnp), or choose another with "
            "--publish PORT:%u",
            rule->text, origin, p->host, open, at, close, p->box);
    if (no == EADDRNOTAVAIL)
        return err_say(b->err, ERR_CANNOT, "publish %s (%s): %s is not an address of this machine", rule->text, origin,
                       at);
    if (no == EACCES)
        return err_say(
            b->err, ERR_CANNOT,
            "publish %s (%s): port %u is reserved for system services; choose one from 1024 with --publish PORT:%u",
            rule->text, origin, p->host, p->box);
    if (no == EAFNOSUPPORT)
        return err_say(b->err, ERR_CANNOT, "publish %s (%s): this machine has no IPv6", rule->text, origin);
    return err_sys(b->err, ERR_SYSTEM, no, "publish %s (%s)", rule->text, origin);
}

/* A listener at the host's port, or -errno. */
static int listen_at(const struct publish *p)
{
    int one = 1;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(p->host)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(p->host)};
    memcpy(&six.sin6_addr, p->addr, 16);
    memcpy(&four.sin_addr, p->addr, 4);
    auto_fd int fd = socket(p->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (p->v6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    int r = p->v6 ? bind(fd, (struct sockaddr *)&six, sizeof six) : bind(fd, (struct sockaddr *)&four, sizeof four);
    return r < 0 || listen(fd, SOMAXCONN) < 0 ? -errno : take_fd(&fd);
}

/* `i`: the how manieth. A virtual machine has a way of its own to its ports, which begins there. */
static int bind_port(struct box *b, const struct net_rule *rule, size_t i, struct egress_reach *ret)
{
    const bool machine = b->spec->start.plan->facts->machine;
    struct publish p;
    int r = publish_parse(str_of(rule->text), &p, b->err);
    if (r < 0)
        return r;
    auto_fd int fd = listen_at(&p);
    if (fd < 0)
        return say_taken(b, rule, &p, -fd);
    *ret = (struct egress_reach){.addr = {.b = {127, 0, 0, 1}},
                                 .also = {.v6 = true, .b = {[15] = 1}},
                                 .both = true,
                                 .port = machine ? (uint16_t)(VM_PUBLISHED + i) : p.box,
                                 .listener = take_fd(&fd)};
    return 0;
}

static int receive_namespace(int from, int kind)
{
    char byte;
    int fd = -1;
    long n = sys_recv_fd(from, &byte, 1, &fd, 0);
    if (n != 1 || fd < 0)
        return -EBADMSG;
    /* A container of root's shares this process's user namespace, which cannot be entered again. */
    struct stat own, other;
    bool same_one = kind == CLONE_NEWUSER && fstat(fd, &other) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
                    own.st_dev == other.st_dev && own.st_ino == other.st_ino;
    int r = !same_one && setns(fd, kind) < 0 ? -errno : 0;
    (void)close(fd);
    return r;
}

_Noreturn void publish_serve(struct egress_ask *ask, int sockets)
{
    int r = receive_namespace(sockets, CLONE_NEWUSER);
    if (r == 0)
        r = receive_namespace(sockets, CLONE_NEWNET);
    if (r == 0)
        r = sys_caps_keep(0);
    if (r < 0)
        _exit(1);
    (void)close(sockets);
    egress_serve(ask);
}

static int begin_publishing(struct box *b, struct egress_ask *ask)
{
    int sockets[2], events[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the published ports");
    b->publish.sockets = sockets[0];
    auto_fd int theirs = sockets[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the published ports");
    b->publish.events = events[0];
    ask->events = events[1];
    struct net_process a = {.ask = ask, .sockets = theirs};
    b->publish.pid = apart_start(&a, b->err);
    int r = b->publish.pid < 0 ? err_wrap(b->err, b->publish.pid, "cannot start forwarding the published ports") : 0;
    (void)close(events[1]);
    return r;
}

static struct egress_ask *new_ask(void)
{
    struct egress_ask *ask = calloc(1, sizeof *ask);
    if (ask)
        ask->publish = true;
    for (int k = 0; ask && k < EGRESS_SOCKETS; k++)
        ask->sockets[k] = -1;
    return ask;
}

/* Ports may follow. Only where this process can hand listeners on to the network of the box. */
static bool ports_follow(const struct box *b)
{
    const struct plan *plan = b->spec->start.plan;
    return b->spec->browser && plan->policy->net == NET_ALLOW && same(plan->facts->engine, "native") &&
           plan->facts->tier != TIER_LANDLOCK;
}

int publish_begin(struct box *b)
{
    const struct policy *p = b->spec->start.plan->policy;
    int r = 0;
    if (ports_follow(b) && !(b->publish.ask = new_ask()))
        return err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot publish ports");
    for (size_t i = 0; r == 0 && i < p->n_net_rules; i++) {
        if (p->net_rules[i].verb != NET_RULE_PUBLISH)
            continue;
        struct egress_ask *ask = b->publish.ask ? b->publish.ask : new_ask();
        if (!ask)
            return err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot publish ports");
        b->publish.ask = ask;
        if (ask->n_reach == EGRESS_MAX_REACH)
            return err_say(b->err, ERR_CANNOT, "publish: more than %d ports", EGRESS_MAX_REACH);
        r = bind_port(b, &p->net_rules[i], ask->n_reach, &ask->reach[ask->n_reach]);
        ask->n_reach += r == 0;
    }
    return r < 0 || !b->publish.ask ? r : begin_publishing(b, b->publish.ask);
}

void publish_started(struct box *b)
{
    struct egress_ask *ask = b->publish.ask;
    b->publish.sockets = close_fd(b->publish.sockets);
    for (size_t i = 0; ask && i < ask->n_reach; i++)
        (void)close(ask->reach[i].listener);
    free(ask);
    b->publish.ask = NULL;
}

/* Whether the policy publishes it there: it is there since the start. */
static bool published_at(const struct box *b, uint16_t port)
{
    static const uint8_t here[4] = {127, 0, 0, 1};
    const struct policy *p = b->spec->start.plan->policy;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        struct publish one;
        if (p->net_rules[i].verb == NET_RULE_PUBLISH && publish_parse(str_of(p->net_rules[i].text), &one, NULL) == 0 &&
            !one.v6 && memcmp(one.addr, here, sizeof here) == 0 && one.host == port && one.box == port)
            return true;
    }
    return false;
}

bool publish_can(const struct box *b, uint16_t port)
{
    return published_at(b, port) || (ports_follow(b) && b->publish.pid > 0 && b->publish.events >= 0);
}

/* "localhost" is also ::1, where another user's program may listen: it is ours as well, if the machine has it. */
int publish_more(struct box *b, uint16_t port)
{
    const struct publish at[2] = {{.addr = {127, 0, 0, 1}, .host = port, .box = port},
                                  {.v6 = true, .addr = {[15] = 1}, .host = port, .box = port}};
    int fds[2] = {-1, -1}, r = 0;
    if (published_at(b, port))
        return 0;
    for (int i = 0; r == 0 && i < 2; i++) {
        fds[i] = listen_at(&at[i]);
        if (fds[i] < 0 && !(i == 1 && (fds[i] == -EADDRNOTAVAIL || fds[i] == -EAFNOSUPPORT)))
            r = fds[i];
    }
    for (int i = 0; i < 2; i++) {
        const struct egress_order o = {.kind = ORDER_LISTEN, .ticket = port};
        if (r == 0 && fds[i] >= 0 && sys_send_fd(b->publish.events, &o, sizeof o, fds[i], MSG_DONTWAIT) != sizeof o)
            r = -EPIPE;
        (void)close_fd(fds[i]);
    }
    return r;
}

void publish_end(struct box *b)
{
    publish_started(b);
    if (b->publish.events >= 0) /* an end in order; without this word, of a pinfold that was killed, it ends at once */
        (void)send(b->publish.events, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    b->publish.events = close_fd(b->publish.events);
    while (b->publish.pid > 0 && waitpid(b->publish.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    publish_none(b);
}
