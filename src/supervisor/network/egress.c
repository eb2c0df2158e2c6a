/*
 * The egress proxy of net allow. It is started before the box exists, in memory of its own (apart.h), waits for the sockets that the builder creates in
 * the box's network namespace, locks itself down, and only then reads what the box sends (egress/). Decisions come back
 * as events; closing their socket ends it. If it exits by itself its sockets are closed: the box has no network.
 */
#include "egress/egress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/network/apart.h"
#include "supervisor/network/live.h"
#include "sys/fd.h"

enum { MAX_RESOLVER_TEXT = 1 << 20 };

struct egress_memory {
    struct egress_ask ask;
    struct host_rule *rules;
};

void egress_none(struct box *b)
{
    b->egress = (struct egress_process){.pid = -1, .pidfd = -1, .sockets = -1, .events = -1};
}

static int add_egress_rule(struct box *b, const struct net_rule *said)
{
    char text[16];
    struct str form = str_of(said->text);
    if (said->verb == NET_RULE_DENY_PORT) {
        snprintf(text, sizeof text, "*:%s", said->text);
        form = str_of(text);
    }
    int e = rules_add(b->live, form, said->verb == NET_RULE_ALLOW ? RULE_ALLOW : RULE_DENY, FROM_POLICY, said->origin,
                      NULL, b->err);
    if (e < 0) {
        char where[256];
        return err_wrap(b->err, e, "%s", policy_origin(b->spec->start.plan->policy, said->origin, where, sizeof where));
    }
    return 0;
}

static int fill_memory(struct box *b, struct egress_memory *m)
{
    const struct policy *p = b->spec->start.plan->policy;
    const struct plan_image *image = b->spec->start.plan->image;
    const struct step *s = plan_steps(image);
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->n_net_rules; i++) {
        enum net_verb verb = p->net_rules[i].verb;
        if (verb == NET_RULE_ALLOW || verb == NET_RULE_DENY || verb == NET_RULE_DENY_PORT)
            r = add_egress_rule(b, &p->net_rules[i]);
    }
    m->ask.way = b->spec->start.plan->catch;
    for (uint32_t i = 0; i < image->n_steps; i++) {
        if (s[i].kind == STEP_LISTEN && m->ask.n_ports < EGRESS_MAX_PORTS)
            m->ask.ports[m->ask.n_ports++] = -1;
        if (s[i].kind != STEP_REACH || m->ask.n_reach == EGRESS_MAX_REACH)
            continue;
        struct egress_reach *reach = &m->ask.reach[m->ask.n_reach++];
        *reach = (struct egress_reach){.addr = {.v6 = s[i].a}, .port = (uint16_t)s[i].b, .listener = -1};
        reach->addr.b[s[i].a ? 15 : 0] = s[i].a ? 1 : 127;
        reach->addr.b[3] = s[i].a ? 0 : 1;
    }
    m->rules = rules_held(b->live, &m->ask.n_rules);
    if (r == 0 && !m->rules)
        r = err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot start the egress proxy");
    feed_read("/etc/resolv.conf", &b->live->resolv);
    feed_read("/etc/hosts", &b->live->hosts);
    m->ask.proxies = b->spec->start.plan->proxies;
    m->ask.rules = m->rules;
    m->ask.resolver.hosts = buf_view(&b->live->hosts);
    resolv_parse(buf_view(&b->live->resolv), &m->ask.resolver);
    m->ask.who = true;
    m->ask.ask_ms = p->net_ask || b->spec->on_question ? p->net_ask_ms : 0;
    return r;
}

static bool wanted(const struct plan *p)
{
    if (!p->image)
        return false;
    if (p->proxy_socket)
        return true;
    const struct step *s = plan_steps(p->image);
    for (uint32_t i = 0; i < p->image->n_steps; i++) {
        if (s[i].kind == STEP_CATCH)
            return true;
    }
    return false;
}

/*
 * Without a network namespace there is nothing to receive: the proxy's socket is made here, in the directory of this run
 * that the command may use, and the rest of the egress has no sockets at all.
 */
static int listen_unix(struct box *b, struct egress_memory *m)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *path = b->spec->start.plan->proxy_socket;
    if (strlen(path) >= sizeof at.sun_path)
        return err_say(b->err, ERR_CANNOT, "'%s' is too long for a socket's path", path);
    strcpy(at.sun_path, path);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || chmod(path, 0600) < 0 || listen(fd, 1024) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create the egress proxy's socket '%s'", path);
    for (int i = 0; i < EGRESS_SOCKETS; i++)
        m->ask.sockets[i] = -1;
    m->ask.sockets[EGRESS_PROXY] = take_fd(&fd);
    return 0;
}

/* What speaks to an egress is wrong where there is none. */
static int egress_needless(struct box *b)
{
    if (b->spec->control_fd > 0)
        return err_say(b->err, ERR_POLICY,
                       "--control-fd: no network rules to change: the network is not 'allow' (use --net allow)");
    return 0;
}

int egress_begin(struct box *b)
{
    int sockets[2], events[2];
    if (!wanted(b->spec->start.plan))
        return egress_needless(b);
    struct egress_memory *m = calloc(1, sizeof *m);
    b->egress.memory = m;
    b->live = live_new();
    if (!m || !b->live)
        return err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot start the egress proxy");
    int r = control_begin(b);
    if (r == 0)
        r = question_begin(b);
    if (r == 0)
        r = fill_memory(b, m);
    if (r == 0 && b->spec->start.plan->proxy_socket)
        r = listen_unix(b, m);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the egress proxy");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0) {
        r = err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the egress proxy");
        (void)close(sockets[0]);
        (void)close(sockets[1]);
        return r;
    }
    const bool made = m->ask.way == CATCH_SOCKET; /* the proxy's socket, instead of those that the builder sends */
    struct net_process a = {.ask = &m->ask, .sockets = made ? -1 : sockets[1]};
    m->ask.events = events[1];
    int pid = apart_start(&a, b->err);
    r = pid < 0 ? err_wrap(b->err, pid, "cannot start the egress proxy") : 0;
    (void)close(sockets[1]);
    (void)close(events[1]);
    if (made)
        m->ask.sockets[EGRESS_PROXY] = close_fd(m->ask.sockets[EGRESS_PROXY]);
    b->egress.pid = pid;
    b->egress.sockets = sockets[0];
    b->egress.events = events[0];
    return r;
}

void egress_started(struct box *b)
{
    b->egress.sockets = close_fd(b->egress.sockets);
}

bool egress_read(struct box *b)
{
    for (;;) {
        struct egress_event v;
        ssize_t n = recv(b->egress.events, &v, sizeof v, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        if (n != sizeof v)
            continue;
        v.name[sizeof v.name - 1] = v.address[sizeof v.address - 1] = v.reason[sizeof v.reason - 1] = 0;
        network_event(b, &v);
    }
}

void egress_end(struct box *b)
{
    struct egress_memory *m = b->egress.memory;
    egress_started(b);
    if (b->egress.events >= 0)
        (void)egress_read(b);
    b->egress.events = close_fd(b->egress.events);
    if (b->egress.pid > 0 &&
        !(b->command->foreground && b->all_gone)) { /* it ends by itself now: as with the builder */
        while (waitpid(b->egress.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (m) {
        if (m->ask.counts) {
            network_counts(b, m->ask.counts);
            apart_end(m->ask.counts);
        }
        free(m->rules);
        free(m);
    }
    egress_none(b);
    if (b->live) {
        question_drop_all(b, ANSWER_NOBODY);
        control_end(b);
        feed_end(b);
    }
}

struct live *live_new(void)
{
    struct live *l = calloc(1, sizeof *l);
    if (l)
        *l = (struct live){.policy_allows = true,
                           .prompt.d.fd = -1,
                           .control.fd = -1,
                           .feed = {.notify = -1, .begins_at = NEVER},
                           .resolv = BUF(MAX_RESOLVER_TEXT),
                           .hosts = BUF(MAX_RESOLVER_TEXT)};
    return l;
}

void live_end(struct box *b)
{
    struct live *l = b->live;
    if (!l)
        return;
    prompt_end(b);
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++)
        free(l->questions[i].url);
    for (size_t i = 0; i < l->n_rules; i++)
        free(l->rules[i].text);
    free(l->rules);
    buf_free(&l->resolv);
    buf_free(&l->hosts);
    free(l);
    b->live = NULL;
}
