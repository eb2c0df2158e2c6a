/*
 * The filters of the ssh-agent (ssh/) and the gpg-agent (gpg/): started before the box, in memory of their own (apart.h), so that they
 * hold nothing of it. They ask here for a connection to the agent for each of their clients, because they can make none themselves, and have a person asked where the policy
 * says so. Closing its socket ends a filter; if it exits by itself, the box's socket answers nobody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/network/apart.h"
#include "supervisor/network/live.h"
#include "sys/fd.h"

static const char *const agent_names[FILTERS] = {[FILTER_SSH] = "ssh-agent", [FILTER_GPG] = "gpg-agent"};

void filters_none(struct box *b)
{
    for (int kind = 0; kind < FILTERS; kind++)
        b->filters[kind] = (struct agent_filter){.pid = -1, .events = -1};
}

/* Somebody to ask, where each signature needs an answer. */
static int asker_begin(struct box *b, enum filter_kind kind)
{
    const struct policy *p = b->spec->start.plan->policy;
    char room[512];
    if (!b->live)
        b->live = live_new();
    if (!b->live)
        return err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot start the %s's filter", agent_names[kind]);
    if (b->spec->on_question || control_there(b) || prompt_possible(b))
        return 0;
    return err_say(
        b->err, ERR_CANNOT, "%s_confirm (%s): no terminal to ask at; run it from a terminal, or with --control-fd N",
        kind == FILTER_SSH ? "ssh" : "gpg",
        policy_origin(p, kind == FILTER_SSH ? p->ssh_confirm_origin : p->gpg_confirm_origin, room, sizeof room));
}

static int filter_begin(struct box *b, enum filter_kind kind, bool confirm)
{
    int events[2];
    int r = confirm ? asker_begin(b, kind) : 0;
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the %s's filter", agent_names[kind]);
    const struct box_ssh *ssh = kind == FILTER_SSH ? b->spec->ssh : NULL;
    const struct box_gpg *gpg = kind == FILTER_GPG ? b->spec->gpg : NULL;
    const struct ssh_filter of_ssh =
        ssh ? (struct ssh_filter){.rules = ssh->rules, .listener = ssh->listener, .events = events[1]}
            : (struct ssh_filter){0};
    const struct gpg_filter of_gpg =
        gpg ? (struct gpg_filter){.rules = gpg->rules, .listener = gpg->listener, .events = events[1]}
            : (struct gpg_filter){0};
    struct net_process a = {.ssh = ssh ? &of_ssh : NULL, .gpg = gpg ? &of_gpg : NULL, .sockets = -1};
    int pid = apart_start(&a, b->err);
    r = pid < 0 ? err_wrap(b->err, pid, "cannot start the %s's filter", agent_names[kind]) : 0;
    (void)close(events[1]);
    b->filters[kind] = (struct agent_filter){.pid = pid, .events = events[0]};
    return r;
}

int filters_begin(struct box *b)
{
    int r = b->spec->ssh ? filter_begin(b, FILTER_SSH, b->spec->ssh->rules.confirm) : 0;
    return r == 0 && b->spec->gpg ? filter_begin(b, FILTER_GPG, b->spec->gpg->rules.confirm) : r;
}

/* A full queue of the agent's is no reason to wait: the client is told that there is no agent. */
static int agent_connection(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return -1;
    memcpy(at.sun_path, path, strlen(path) + 1);
    own_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -1;
    return sys_taken(&fd);
}

static void connect_filter(struct box *b, enum filter_kind kind, uint32_t id)
{
    const struct ssh_order o = {.kind = SSH_ORDER_AGENT, .id = id};
    own_fd int fd = agent_connection(kind == FILTER_SSH ? b->spec->ssh->agent : b->spec->gpg->agent);
    (void)sys_send_fd(b->filters[kind].events, &o, sizeof o, fd, MSG_DONTWAIT);
}

/* What was signed goes to the audit log alone; its key is in the place of the reason. */
static void tell_decision(struct box *b, enum filter_kind filter, const struct ssh_event *v)
{
    const struct policy *p = b->spec->start.plan->policy;
    const bool signs = v->kind == SSH_EVENT_SIGNED;
    char kind[16], action[sizeof v->action], target[sizeof v->target], why[sizeof v->why], origin[512], room[512];
    char rule[16], how[] = "filter";
    snprintf(rule, sizeof rule, "%s", filter == FILTER_SSH ? "ssh_agent" : "gpg_agent");
    snprintf(kind, sizeof kind, "%.3s-%s", agent_names[filter], signs ? "signed" : "agent");
    memcpy(action, v->action, sizeof action);
    memcpy(target, v->target, sizeof target);
    memcpy(why, v->why, sizeof why);
    snprintf(origin, sizeof origin, "%s",
             policy_origin(p,
                           filter == FILTER_GPG ? (p->n_gpg_keys ? p->gpg_keys[0].origin : 0)
                           : p->n_ssh_keys      ? p->ssh_keys[0].origin
                                                : 0,
                           room, sizeof room));
    struct denial d = {
        .kind = kind, .action = action, .target = target, .rule = rule, .origin = origin, .how = how, .why = why};
    if (signs)
        denial_log(b, &d);
    else
        denial_keep(b, &d);
}

bool filter_read(struct box *b, enum filter_kind kind)
{
    for (int i = 0; i < 64; i++) { /* the box decides how many come: others are served in between */
        struct ssh_event v;
        ssize_t n = recv(b->filters[kind].events, &v, sizeof v, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        if (n != sizeof v)
            continue;
        v.action[sizeof v.action - 1] = v.target[sizeof v.target - 1] = v.why[sizeof v.why - 1] = 0;
        if (v.kind == SSH_EVENT_CONNECT)
            connect_filter(b, kind, v.id);
        else if (v.kind == SSH_EVENT_ASK)
            question_filter(b, kind, v.id, v.action, v.target);
        else
            tell_decision(b, kind, &v);
    }
    return true;
}

void filter_end(struct box *b, enum filter_kind kind)
{
    struct agent_filter *f = &b->filters[kind];
    if (f->events >= 0)
        (void)filter_read(b, kind);
    f->events = close_fd(f->events);
    while (f->pid > 0 && waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *f = (struct agent_filter){.pid = -1, .events = -1};
}

void filters_end(struct box *b)
{
    filter_end(b, FILTER_SSH);
    filter_end(b, FILTER_GPG);
}
