/*
 * Reports refusals: a frame to pinfold, sent without waiting. A box that provokes denials in a loop would flood the
 * socket and the audit log. So a token bucket lets DENIAL_BURST through at once and refills by DENIAL_RATE per second;
 * the next frame that passes says how many were dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "protocol/moves.h"
#include "sys/fd.h"
#include "sys/socket.h"

#define DENIAL_BURST 256u
#define DENIAL_RATE  64u /* per second */

bool denial_passes(struct shared *s, struct bucket *b, uint32_t *ret_dropped)
{
    table_lock(s);
    uint64_t now = now_ms(), earned = (now - b->ms) * DENIAL_RATE / 1000;
    if (b->ms == 0) {
        b->left = DENIAL_BURST;
        b->ms = now;
    } else if (earned) {
        b->left = earned > DENIAL_BURST - b->left ? DENIAL_BURST : b->left + (uint32_t)earned;
        b->ms = now;
    }
    const bool one = b->left > 0;
    *ret_dropped = one ? b->dropped : 0;
    b->dropped = one ? 0 : b->dropped + 1;
    b->left -= one;
    table_unlock(s);
    return one;
}

/* The waiting process's own pid, as in the network's denials; 0: it is gone. */
uint32_t pid_inside(struct guard *g)
{
    struct target *t = g->who;
    return t && (t->tgid || target_status(g, t) == 0) && t->own_tgid > 0 ? (uint32_t)t->own_tgid : 0;
}

/* Sends a frame of `kind` without waiting; what does not pass is counted in `b`. */
static void report(struct guard *g, uint32_t kind, struct bucket *b, enum denial_action action, const struct rule *rule,
                   struct str path, const char *why)
{
    uint32_t dropped = 0;
    if (g->report < 0 || !denial_passes(g->shared, b, &dropped))
        return;
    struct denial_frame f = {.kind = kind,
                             .action = action,
                             .pid = pid_inside(g),
                             .session = g->who ? target_session(g) : 0,
                             .origin = rule ? rule->said->origin : 0,
                             .rule = rule ? rule->index : UINT32_MAX,
                             .lost = dropped};
    const int longest = action == DENIAL_GIT_BRANCH ? MOVES_WHY : 400; /* what hooks have said */
    size_t room = sizeof f.text - (size_t)longest - 112 - DENIAL_ARGV;
    size_t n = path.n < room ? path.n : room;
    memcpy(f.text, path.p, n);
    const int more = snprintf(f.text + n + 1, (size_t)longest + 100, "%.*s", longest, why);
    f.n = (uint32_t)(n + 1 + (size_t)more + 1);
    f.argv = g->who ? target_line(g, f.text + f.n) : 0;
    if (sys_send(g->report, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        table_lock(g->shared);
        b->dropped += dropped + 1;
        table_unlock(g->shared);
    }
}

int report_pair(struct guard *g, uint32_t kind, const void *first, size_t n, int fd)
{
    const struct frame f = {.kind = kind};
    int ends[2];
    const int no = g->report < 0 ? -EPIPE : sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (no < 0)
        return no;
    auto_fd int own = ends[0], theirs = ends[1]; /* theirs, once closed here: pinfold's, or the end of waiting */
    if ((n && sys_send_fd(own, first, n, fd, MSG_DONTWAIT) != (long)n) ||
        sys_send_fd(g->report, &f, sizeof f, theirs, MSG_DONTWAIT) != sizeof f)
        return -EPIPE;
    return take_fd(&own);
}

int deny(struct guard *g, enum denial_action action, const struct rule *rule, struct str path, const char *why)
{
    if (g->ours) {
        (void)snprintf(g->why, sizeof g->why, "%s", why);
        g->why_rule = rule;
        return -EACCES; /* the caller gets the error; the box did not cause it */
    }
    g->told = true;
    report(g, FRAME_DENIAL, &g->shared->denials, action, rule, path, why);
    return -EACCES;
}

void deny_built(struct guard *g, enum denial_action action, struct str path)
{
    if (!g->ours && !(g->plan->filter & FILTER_MONITOR)) /* which tells every such call */
        report(g, FRAME_BUILT, &g->shared->built, action, NULL, path, "");
}

void deny_root_map(struct guard *g)
{
    if (!g->ours) /* also in a monitored box: the monitor sees calls, and not what write(2) gets */
        report(g, FRAME_BUILT, &g->shared->built, DENIAL_NAMESPACE, NULL, STR(DENIAL_ROOT_MAP), "");
}

int deny_namespace(struct guard *g)
{
    deny_built(g, DENIAL_NAMESPACE, STR("a new namespace"));
    return -EPERM;
}
