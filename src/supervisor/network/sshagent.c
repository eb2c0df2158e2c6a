/*
 * The filter of the ssh-agent (ssh/): started before the box, in memory of its own (apart.h), so that it holds nothing of it. It
 * asks here for a connection to the agent for each of its clients, because it can make none itself, and asks a person where the
 * policy says so. Closing its socket ends it; if it exits by itself, the box's socket answers nobody.
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

void sshagent_none(struct box *b)
{
    b->ssh = (struct ssh_process){.pid = -1, .events = -1};
}

/* Somebody to ask, where each signature needs an answer. */
static int asker_begin(struct box *b)
{
    const struct policy *p = b->spec->start.plan->policy;
    char room[512];
    if (!b->live)
        b->live = live_new();
    if (!b->live)
        return err_sys(b->err, ERR_SYSTEM, ENOMEM, "cannot start the ssh-agent's filter");
    if (b->spec->on_question || control_there(b) || prompt_possible(b))
        return 0;
    return err_say(b->err, ERR_CANNOT,
                   "ssh_confirm (%s): no terminal to ask at; run it from a terminal, or with --control-fd N",
                   policy_origin(p, p->ssh_confirm_origin, room, sizeof room));
}

int sshagent_begin(struct box *b)
{
    const struct box_ssh *said = b->spec->ssh;
    int events[2];
    if (!said)
        return 0;
    int r = said->rules.confirm ? asker_begin(b) : 0;
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        return err_sys(b->err, ERR_SYSTEM, errno, "cannot create a socket pair for the ssh-agent's filter");
    const struct ssh_filter filter = {.rules = said->rules, .listener = said->listener, .events = events[1]};
    struct net_process a = {.ssh = &filter, .sockets = -1};
    int pid = apart_start(&a, b->err);
    r = pid < 0 ? err_wrap(b->err, pid, "cannot start the ssh-agent's filter") : 0;
    (void)close(events[1]);
    b->ssh.pid = pid;
    b->ssh.events = events[0];
    return r;
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

static void answer_connect(struct box *b, uint32_t id)
{
    const struct ssh_order o = {.kind = SSH_ORDER_AGENT, .id = id};
    own_fd int fd = agent_connection(b->spec->ssh->agent);
    (void)sys_send_fd(b->ssh.events, &o, sizeof o, fd, MSG_DONTWAIT);
}

/* What was signed goes to the audit log alone; its key is in the place of the reason. */
static void tell_decision(struct box *b, const struct ssh_event *v)
{
    const struct policy *p = b->spec->start.plan->policy;
    const bool signs = v->kind == SSH_EVENT_SIGNED;
    char kind[16], action[sizeof v->action], target[sizeof v->target], why[sizeof v->why], origin[512], room[512];
    char rule[] = "ssh_agent", how[] = "filter";
    snprintf(kind, sizeof kind, "%s", signs ? "ssh-signed" : "ssh-agent");
    memcpy(action, v->action, sizeof action);
    memcpy(target, v->target, sizeof target);
    memcpy(why, v->why, sizeof why);
    snprintf(origin, sizeof origin, "%s",
             policy_origin(p, p->n_ssh_keys ? p->ssh_keys[0].origin : 0, room, sizeof room));
    struct denial d = {
        .kind = kind, .action = action, .target = target, .rule = rule, .origin = origin, .how = how, .why = why};
    if (signs)
        denial_log(b, &d);
    else
        denial_keep(b, &d);
}

bool sshagent_read(struct box *b)
{
    for (int i = 0; i < 64; i++) { /* the box decides how many come: others are served in between */
        struct ssh_event v;
        ssize_t n = recv(b->ssh.events, &v, sizeof v, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        if (n != sizeof v)
            continue;
        v.action[sizeof v.action - 1] = v.target[sizeof v.target - 1] = v.why[sizeof v.why - 1] = 0;
        if (v.kind == SSH_EVENT_CONNECT)
            answer_connect(b, v.id);
        else if (v.kind == SSH_EVENT_ASK)
            question_ssh(b, v.id, v.action, v.target);
        else
            tell_decision(b, &v);
    }
    return true;
}

void sshagent_end(struct box *b)
{
    if (b->ssh.events >= 0)
        (void)sshagent_read(b);
    b->ssh.events = close_fd(b->ssh.events);
    while (b->ssh.pid > 0 && waitpid(b->ssh.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    sshagent_none(b);
}
