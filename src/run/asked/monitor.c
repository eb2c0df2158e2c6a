/*
 * Explains the failed calls of a monitored box. The guard has seen a path, an address or a number, and an errno; `why` is asked
 * about the same on the plan that the box runs. Only what it says the sandbox refuses, with that errno, is a refusal: what does
 * not exist on the host either, or what ordinary permissions refuse, is none. The targets are the box's own words: they
 * can make us look at names, never open a file, and everything is bounded.
 */
#include "run/asked/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "match/host.h"
#include "match/path.h"
#include "run/asked/denied.h"
#include "run/asked/reason.h"

#define MAX_REMEDIES 24 /* that are tried; each one plans a few times */

/* ---- calls of the filter ---- */

/* Which only need a capability that the caller lacks on the host as well. */
static bool is_for_root(const char *call, int no)
{
    static const char *const others[] = {"perf_event_open", "userfaultfd", "fanotify_init",
                                         "add_key",         "request_key", "keyctl"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (same(call, others[i]))
            return false;
    }
    return no == EPERM;
}

static enum explained of_call(const struct monitoring *m, const struct failed_call *c, struct arena *mem,
                              struct denial *ret)
{
    int family = 0, type = 0;
    const bool socket = sscanf(c->target, "socket(%d, %d)", &family, &type) == 2;
    if (m->plan->facts->uid != 0 && is_for_root(c->target, c->no))
        return EXPLAINED_PERMISSION;
    ret->kind = arena_text(mem, "syscall");
    ret->action = arena_text(mem, "call");
    ret->rule = arena_text(mem, "system call filter");
    ret->origin = arena_text(mem, "every box");
    ret->how = arena_text(mem, "seccomp");
    ret->why =
        arena_text(mem, socket ? "a kind of socket that boxes do not allow" : "a system call that boxes do not allow");
    ret->remedy = arena_text(mem, "do it outside the box: no option allows it");
    if (socket && c->no == EAFNOSUPPORT && (family == AF_INET || family == AF_INET6) &&
        m->plan->policy->net != NET_HOST) {
        char room[512];
        ret->kind = arena_text(mem, "network");
        ret->action = arena_text(mem, "connect");
        ret->rule = arena_text(mem, "net none");
        ret->origin = arena_text(mem, policy_origin(m->plan->policy, m->plan->policy->net_origin, room, sizeof room));
        ret->why = arena_text(mem, "the box has no network");
        ret->remedy = arena_text(mem, "allow hosts with --allow HOST");
    }
    return EXPLAINED_DENIAL;
}

static enum explained of_namespace(struct arena *mem, struct denial *ret)
{
    ret->kind = arena_text(mem, "namespace");
    ret->action = arena_text(mem, "create");
    ret->rule = arena_text(mem, "nested-userns");
    ret->origin = arena_text(mem, "every box");
    ret->how = arena_text(mem, "guard");
    ret->why = arena_text(mem, "the box cannot create namespaces");
    ret->remedy = arena_text(mem, "--allow-nested-userns");
    ret->option = true;
    return EXPLAINED_DENIAL;
}

/* ---- what the host has ---- */

/* Whether a line of a table of the kernel's fits. */
static bool table_has(const char *table, bool (*fits)(const char *line, const void *what), const void *what)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(table, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = fits(line, what);
    if (f)
        (void)fclose(f);
    return found;
}

static bool listens_at(const char *line, const void *what)
{
    unsigned at, state;
    return sscanf(line, " %*[^:]: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &at, &state) == 2 && state == 10 /* TCP_LISTEN */ &&
           at == *(const uint16_t *)what;
}

static bool is_abstract(const char *line, const void *what)
{
    const char *name = strrchr(line, ' ');
    return name && name[1] == '@' && strncmp(name + 1, what, strlen(what)) == 0 && name[1 + strlen(what)] == '\n';
}

/* Whether this machine has the address: then somebody can be bound to it. */
static bool has_address(const struct host_addr *a)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    memcpy(&v6.sin6_addr, a->b, 16);
    memcpy(&v4.sin_addr, a->b, 4);
    auto_fd int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, a->v6 ? (const void *)&v6 : (const void *)&v4, a->v6 ? sizeof v6 : sizeof v4) == 0;
}

/* ---- sockets ---- */

static enum explained of_network(const struct monitoring *m, struct arena *mem, struct denial *ret, const char *kind,
                                 const char *action, const char *why, const char *remedy)
{
    const struct policy *p = m->plan->policy;
    char room[512];
    ret->kind = arena_text(mem, kind);
    ret->action = arena_text(mem, action);
    ret->rule = arena_text(mem, p->net == NET_ALLOW ? "net allow" : "net none");
    ret->origin = arena_text(mem, policy_origin(p, p->net_origin, room, sizeof room));
    ret->how = arena_text(mem, "network namespace of the box");
    ret->why = arena_text(mem, why);
    ret->remedy = arena_text(mem, remedy);
    return EXPLAINED_DENIAL;
}

/* Those that `why` has no question for. EXPLAINED_FOR_LOG: ask it. */
static enum explained of_address(const struct monitoring *m, const struct failed_call *c, struct arena *mem,
                                 struct denial *ret)
{
    struct host h;
    uint16_t port;
    if (c->target[0] == '@')
        return table_has("/proc/net/unix", is_abstract, c->target)
                   ? of_network(
                         m, mem, ret, "socket", "connect",
                         "the box sees its own abstract sockets only, and the host has one of that name",
                         "no option shares it: let the server listen on a path, and allow that with --unix-socket")
                   : EXPLAINED_NOT;
    if (strchr(c->target, '/'))
        return EXPLAINED_FOR_LOG;
    if (host_port_parse(str_of(c->target), 0, &h, &port) < 0 || h.kind != HOST_ADDR)
        return EXPLAINED_NOT;
    if (c->action == DENIAL_BIND)
        return has_address(&h.addr)
                   ? of_network(
                         m, mem, ret, "network", "bind", "the box has no address of the host's",
                         "listen at 127.0.0.1 or 0.0.0.0 in the box, and let others reach it with --publish PORT")
                   : EXPLAINED_NOT;
    if (port == 53 && m->plan->policy->net == NET_NONE) {
        (void)of_network(m, mem, ret, "network", "resolve", "the box has no network, and so no resolver",
                         "allow the host with --allow HOST");
        ret->how = arena_text(mem, "none");
        return EXPLAINED_DENIAL;
    }
    const bool near = addr_classify(&h.addr) == ADDR_LOOPBACK;
    if (near && !table_has("/proc/net/tcp", listens_at, &port) && !table_has("/proc/net/tcp6", listens_at, &port))
        return EXPLAINED_NOT; /* nobody is there on the host, either */
    return EXPLAINED_FOR_LOG;
}

/* ---- what `why` can answer ---- */

static enum why_act act_of(enum denial_action action)
{
    switch (action) {
    case DENIAL_READ:
        return WHY_READ;
    case DENIAL_EXEC:
        return WHY_EXEC;
    case DENIAL_CONNECT:
        return WHY_CONNECT;
    case DENIAL_SIGNAL:
        return WHY_SIGNAL;
    case DENIAL_CREATE:
    case DENIAL_LINK:
    case DENIAL_RENAME:
    case DENIAL_BIND:
        return WHY_CREATE;
    default:
        return WHY_WRITE;
    }
}

static const char *action_name(enum denial_action action, const struct why *said)
{
    switch (action) {
    case DENIAL_LINK:
        return "link";
    case DENIAL_RENAME:
        return "rename";
    case DENIAL_REMOVE:
        return "remove";
    case DENIAL_CHANGE:
    case DENIAL_OWNER:
        return "change";
    case DENIAL_BIND:
        return "bind";
    case DENIAL_WRITE:
        return said->missing ? "create" : "write";
    default:
        return why_act_name(act_of(action));
    }
}

/* Whether the errno is the one of that refusal. */
static bool fits_errno(const struct why *said, int no)
{
    return no == 0 || said->no == no || said->no == 0 || (no == EPERM && said->no == EACCES) ||
           ((no == ENOENT || no == EROFS) && said->cause == WHY_CAUSE_HIDDEN);
}

/* Whether the caller could do it where the box does not forbid it. */
static bool is_callers_own(enum why_act act, const struct why *said)
{
    const char *at = said->missing ? said->above : said->host;
    return said->cause != WHY_CAUSE_READ_ONLY || (act != WHY_WRITE && act != WHY_CREATE) || !at ||
           faccessat(AT_FDCWD, at, W_OK, AT_EACCESS) == 0;
}

/* What a remedy was found for: the missing names of a directory are one object. */
static const char *object_of_remedy(const struct why *said)
{
    return said->missing && said->above ? said->above : said->target;
}

static bool is_as_before(const struct monitoring *m, enum why_act act, const struct why *said)
{
    return m->last_object[0] && m->last_act == act && m->last_cause == said->cause &&
           m->last_missing == said->missing && same(m->last_object, object_of_remedy(said)) &&
           same(m->last_rule, said->rule ? said->rule : "");
}

static bool keep_text(char *room, size_t size, const char *text)
{
    return (size_t)snprintf(room, size, "%s", text ? text : "") < size;
}

/* For the next call: a command that looks for a dozen names in one hidden directory has one remedy. */
static void keep_remedy(struct monitoring *m, enum why_act act, const struct why *said, const struct why_remedy *remedy)
{
    const char *object = object_of_remedy(said);
    /* An option that names what is missing helps no other name. */
    const bool others =
        !said->missing || !remedy->flag || remedy->value[0] != '/' || path_at_or_below(object, remedy->value);
    m->last_act = act;
    m->last_cause = said->cause;
    m->last_missing = said->missing;
    if (!others || (!remedy->flag && !remedy->outside) || !keep_text(m->last_flag, sizeof m->last_flag, remedy->flag) ||
        !keep_text(m->last_value, sizeof m->last_value, remedy->value) ||
        !keep_text(m->last_outside, sizeof m->last_outside, remedy->outside) ||
        !keep_text(m->last_rule, sizeof m->last_rule, said->rule) ||
        !keep_text(m->last_object, sizeof m->last_object, object))
        m->last_object[0] = 0;
}

/* The remedy as text; tried, unless it is that of the call before or many have been tried. */
static void find_remedy(struct monitoring *m, enum why_act act, const char *target, const struct why *said,
                        struct arena *mem, struct denial *ret)
{
    struct why_remedy remedy = {0};
    struct err ignored = {0};
    if (is_as_before(m, act, said)) {
        remedy = m->last_flag[0] ? (struct why_remedy){m->last_flag, m->last_value, NULL}
                                 : (struct why_remedy){NULL, NULL, m->last_outside};
    } else if (m->remedies++ >= MAX_REMEDIES) {
        ret->remedy = arena_printf(mem, "ask for it with: pinfold why %s %s", why_act_name(act), target);
        return;
    } else if (reason_remedy(m->policy, act, target, said, mem, &remedy, &ignored) < 0) {
        return;
    } else {
        keep_remedy(m, act, said, &remedy);
    }
    ret->option = remedy.flag != NULL;
    ret->remedy = remedy.flag ? arena_printf(mem, "--%s%s%s", remedy.flag, remedy.value[0] ? " " : "", remedy.value)
                              : arena_text_or_null(mem, remedy.outside);
}

/* The directory of a path: a name is removed from that. */
static const char *above(struct arena *mem, const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? NULL : slash == path ? "/" : arena_str(mem, (struct str){path, (size_t)(slash - path)});
}

/* The kernel's own files: `why` does not look into them. */
static enum explained of_proc(const struct monitoring *m, struct arena *mem, struct denial *ret)
{
    if (m->plan->facts->uid != 0)
        return EXPLAINED_PERMISSION;
    ret->kind = arena_text(mem, "file");
    ret->action = arena_text(mem, "write");
    ret->rule = arena_text(mem, "/proc");
    ret->origin = arena_text(mem, "every box");
    ret->how = arena_text(mem, "read-only mount");
    ret->why = arena_text(mem, "the kernel's settings are read-only in every box");
    ret->remedy = arena_text(mem, "do it outside the box: no option allows it");
    return EXPLAINED_DENIAL;
}

static enum explained by_why(struct monitoring *m, const struct failed_call *c, struct arena *mem, struct denial *ret,
                             const char **ret_action)
{
    struct why said;
    struct err ignored = {0};
    const enum why_act act = act_of(c->action);
    const char *object = c->action == DENIAL_REMOVE ? above(mem, c->target) : c->target;
    if (!object || why_ask(m->plan, act, object, mem, &said, &ignored) < 0 || said.verdict != WHY_REFUSED)
        return EXPLAINED_NOT;
    *ret_action = action_name(c->action, &said);
    const bool permission = c->no == EACCES || c->no == EPERM;
    if (said.cause == WHY_CAUSE_HOST)
        return permission && act != WHY_CONNECT && act != WHY_SIGNAL ? EXPLAINED_PERMISSION : EXPLAINED_NOT;
    if (!fits_errno(&said, c->no))
        return permission && said.cause == WHY_CAUSE_READ_ONLY ? EXPLAINED_PERMISSION : EXPLAINED_NOT;
    if (!is_callers_own(act, &said))
        return EXPLAINED_PERMISSION;
    const bool local = act == WHY_CONNECT && strchr(c->target, '/');
    const char *kind = act == WHY_SIGNAL ? "process" : act != WHY_CONNECT ? "file" : local ? "socket" : "network";
    ret->kind = arena_text(mem, kind);
    ret->action = arena_text(mem, *ret_action);
    ret->target = arena_text(mem, object == c->target ? said.target : c->target);
    ret->rule = arena_text(mem, said.rule ? said.rule : "default");
    ret->origin = arena_text(mem, said.origin ? said.origin : "every box");
    ret->how = arena_text(mem, said.mechanism ? said.mechanism : "");
    ret->why = arena_text(mem, said.reason);
    ret->host = said.host && !same(said.host, said.target) ? arena_text(mem, said.host) : NULL;
    find_remedy(m, act, object, &said, mem, ret);
    return c->no == ENOENT && !m->names ? EXPLAINED_FOR_LOG : EXPLAINED_DENIAL;
}

enum explained monitor_explain(void *ctx, const struct failed_call *c, struct arena *mem, struct denial *ret,
                               const char **ret_action)
{
    struct monitoring *m = ctx;
    enum explained as = EXPLAINED_FOR_LOG;
    ret->target = arena_text(mem, c->target);
    ret->no = c->no;
    *ret_action = "call";
    if (c->action == DENIAL_CALL)
        as = of_call(m, c, mem, ret);
    else if (c->action == DENIAL_NAMESPACE)
        as = of_namespace(mem, ret);
    else if (c->action == DENIAL_CONNECT || (c->action == DENIAL_BIND && c->target[0] != '/'))
        as = of_address(m, c, mem, ret);
    if (c->no == EROFS && str_starts(str_of(c->target), STR("/proc/")))
        as = of_proc(m, mem, ret);
    else if (as == EXPLAINED_FOR_LOG)
        as = by_why(m, c, mem, ret, ret_action);
    if (as == EXPLAINED_NOT && c->action == DENIAL_OWNER && m->plan->facts->uid != 0) {
        as = EXPLAINED_PERMISSION; /* nobody but root gives files away */
        *ret_action = "owner";
    } else if (as == EXPLAINED_NOT && c->action == DENIAL_OWNER) {
        ret->kind = arena_text(mem, "file");
        ret->action = arena_text(mem, "owner");
        ret->rule = arena_text(mem, "user");
        ret->origin = arena_text(mem, "every box");
        ret->how = arena_text(mem, "user namespace");
        ret->why = arena_text(mem, "the box has no other users and groups than the command's own");
        ret->remedy = arena_text(mem, "change it outside the box");
        as = EXPLAINED_DENIAL;
    }
    if (as == EXPLAINED_DENIAL)
        ret->remedy = denied_remedy(ret, m->start_name, m->plan->policy->net, mem);
    return arena_failed(mem) ? EXPLAINED_NOT : as;
}
