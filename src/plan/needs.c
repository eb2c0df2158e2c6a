/*
 * What the plan needs, what is lost, and how each guarantee is enforced. If something cannot be enforced, the error
 * lists all of it at once; a loss must be permitted by name (`may_lose`), or by a key with no other meaning (net host).
 */
#include "plan/make.h"
#include "base/buf.h"
#include "plan/explain/words.h"

#include <stdio.h>

static bool limited(const struct limit *l)
{
    return l->value != LIMIT_NONE;
}

/*
 * Limits that were requested are needed. Generous defaults only become losses, and no control group is created for
 * them: rlimits and the watcher enforce them.
 */
static features limit_features(const struct limits *l, bool asked)
{
    const struct {
        const struct limit *limit;
        features bits;
    } all[] = {{&l->memory, F(LIMIT_MEMORY) | F(CGROUP_LIMITS)},
               {&l->cpus, F(LIMIT_CPU) | F(CGROUP_LIMITS)},
               {&l->processes, F(LIMIT_PROCESSES) | F(CGROUP_LIMITS)},
               {&l->disk, F(LIMIT_DISK)}};
    features found = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (limited(all[i].limit) && all[i].limit->asked == asked)
            found |= asked ? all[i].bits : all[i].bits & ~F(CGROUP_LIMITS);
    }
    return found;
}

static bool host_tmp(const struct making *m)
{
    const struct path_fact *tmp = facts_path(m->facts, "/tmp");
    for (size_t i = 0; tmp && i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (strcmp(p->dst, tmp->real) == 0)
            return p->said && p->src;
    }
    return false;
}

static features needs_of(struct making *m)
{
    const struct policy *p = m->policy;
    features n = F(FILES) | F(UNIX_SOCKETS) | F(ABSTRACT_SOCKETS) | F(PID_NAMESPACE) | F(SIGNALS) | F(PRIVATE_IPC) |
                 F(FRESH_PROC) | F(NO_SURVIVORS) | F(SECCOMP) | F(SANDBOX);
    n |= m->any_hide ? F(HIDES) : 0;
    n |= m->any_depth_hide ? F(HIDES_ANY_DEPTH) : 0;
    n |= m->n_mounts || p->n_mounts || p->n_storages ? F(REMAP) : 0;
    n |= (p->n_guards && p->guard != GUARD_OFF) || m->any_protect ? F(GUARD) : 0;
    n |= m->needs_cache ? F(CACHES) : 0;
    n |= p->user == USER_ROOT ? F(USER_ROOT) : 0;
    n |= limit_features(&p->limits, true);
    if (p->net == NET_HOST)
        m->asked_losses |= F(HOST_NETWORK);
    else
        n |= F(NETWORK);
    n |= egress_needs(p) & (m->plan->catch == CATCH_SOCKET ? F(NETWORK_TRANSPARENT) : ~(features)0);
    if (p->allow_nested_userns)
        m->asked_losses |= F(NESTED_USERNS);
    else
        n |= F(NESTED_USERNS);
    if (host_tmp(m))
        m->asked_losses |= F(PRIVATE_TMP);
    else
        n |= F(PRIVATE_TMP);
    return n;
}

/* Features that the plan can do without, as opposed to what it was asked for. */
static features wishes_of(const struct making *m)
{
    return limit_features(&m->policy->limits, false) | (m->any_cache ? F(CACHES) : 0);
}

/* Removes what the way of redirecting connections cannot do; what the tier cannot do has its reason already. */
static features can_catch(const struct making *m, features can, const char **why)
{
    enum catch_way way = m->plan->catch;
    bool said = m->policy->net_catch != NET_CATCH_AUTO;
    const char *reason = m->facts->catch_why;
    if (way == CATCH_TPROXY || way == CATCH_SOCKET)
        return can;
    why[FEATURE_NETWORK_PORTS] =
        said || !reason
            ? "connections are redirected at listed ports only (net.catch): list the ports, as in --allow HOST:443"
            : reason;
    why[FEATURE_NETWORK_ADDRESSES] =
        said || !reason
            ? "only connections to fake IPs of names are redirected (net.catch): allow names, as in --allow HOST:443"
            : reason;
    can &= ~F(NETWORK_PORTS);
    return way == CATCH_LOOPBACK ? can & ~F(NETWORK_ADDRESSES) : can;
}

/* What the guard of the box around this one makes possible, or takes from Landlock, which it is not subject to. */
static features can_around(struct making *m, features can, features judged, const char **why)
{
    features theirs = F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH);
    if (m->facts->tier == TIER_LANDLOCK && !m->facts->unsandboxed) {
        judged |= F(HIDES);
        /* Truncating what only the outer box can write is refused by its mounts; older kernels lack just that right. */
        if (m->facts->landlock_abi >= ABI_REFER)
            theirs |= F(FILES) | F(HIDES);
        theirs |= F(SIGNALS) | F(ABSTRACT_SOCKETS);
        judged |= (F(SIGNALS) | F(ABSTRACT_SOCKETS)) & ~can;
    }
    const features held = around_holds(m, why);
    m->around = held & judged & (m->facts->can | theirs);
    return (can & ~judged) | m->around;
}

/* What this plan needs can differ from what the engine was asked in general. */
static features can_here(struct making *m, const char **why)
{
    features can = m->facts->can;
    if (m->facts->tier == TIER_NAMESPACES && m->policy->net != NET_HOST)
        can |= F(ABSTRACT_SOCKETS); /* a network namespace has its own */
    if (m->facts->tier == TIER_LANDLOCK && !m->facts->unsandboxed)
        can |= F(CACHES); /* by variables */
    if (m->policy->net == NET_HOST && m->facts->landlock_abi < 6 && can & F(ABSTRACT_SOCKETS)) {
        can &= ~F(ABSTRACT_SOCKETS);
        why[FEATURE_ABSTRACT_SOCKETS] = "with the host's network it needs Landlock scopes (Linux 6.12)";
    }
    const struct limit *cpus = &m->policy->limits.cpus;
    if (limited(cpus) && cpus->asked && !m->facts->cpu_by_group && !m->facts->machine && !m->facts->container &&
        can & F(CGROUP_LIMITS)) {
        can &= ~F(CGROUP_LIMITS);
        why[FEATURE_CGROUP_LIMITS] =
            "no control group can limit processor time here: the box is stopped and continued instead";
    }
    can = can_catch(m, can, why);
    features judged = F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH) | (m->n_reads ? F(HIDES) : 0);
    if (m->facts->tier == TIER_LANDLOCK) /* Landlock does not cover modes, owners, times, attributes */
        judged |= F(FILES);
    if (!m->facts->notify && can & judged) {
        for (int i = 0; i < FEATURE_COUNT; i++) {
            if (can & judged & (features)1 << i)
                why[i] = m->facts->why_not[FEATURE_GUARD] ? m->facts->why_not[FEATURE_GUARD]
                                                          : "it needs seccomp user notification";
        }
        can &= ~judged;
    }
    return !m->facts->notify && m->facts->around ? can_around(m, can, judged, why) : can;
}

static int add_refused(struct making *m, const char *text)
{
    const char **slot = arena_push(m->mem, &m->refused, &m->n_refused, sizeof *slot);
    const char *own = slot ? arena_text(m->mem, text) : NULL;
    if (!own)
        return no_memory(m);
    *slot = own;
    return 0;
}

/* An error that would end a run's plan is one line of explain's output. */
static int or_refused(struct making *m, int r)
{
    if (r >= 0 || !m->ask->so_far || m->e->kind != ERR_CANNOT)
        return r;
    r = add_refused(m, m->e->text);
    if (r == 0)
        *m->e = (struct err){0};
    return r;
}

/* One line for each missing feature. */
static int refuse(struct making *m, features missing, const char *const *why)
{
    char text[1200];
    int r = 0;
    for (int i = 0; r == 0 && i < FEATURE_COUNT; i++) {
        if (!(missing & (features)1 << i))
            continue;
        const char *name = feature_name((enum feature)i), *reason = why[i] ? why[i] : m->facts->why_not[i],
                   *remedy = m->facts->remedy[i];
        snprintf(text, sizeof text, "%s: %s%s%s%s; to run without it: --may-lose %s", name,
                 reason ? reason : "not here", remedy ? " (" : "", remedy ? remedy : "", remedy ? ")" : "", name);
        r = add_refused(m, text);
    }
    return r;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && same(a, b));
}

/* The reason with the names of all that it is for, and each remedy where it is said last: once, also where it helps against several. */
static int say_cannot(struct making *m, features missing, const char *const *why)
{
    char without[160] = "";
    auto_buf struct buf text = BUF(8192);
    size_t w = 0;
    features said = 0;
    const char *reasons[FEATURE_COUNT] = {0}, *const *remedies = m->facts->remedy;
    for (int i = 0; i < FEATURE_COUNT; i++)
        reasons[i] = why[i] ? why[i] : m->facts->why_not[i] ? m->facts->why_not[i] : "not here";
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (!(missing & (features)1 << i))
            continue;
        int k = w < sizeof without
                    ? snprintf(without + w, sizeof without - w, " --may-lose %s", feature_name((enum feature)i))
                    : 0;
        w += k > 0 ? (size_t)k : 0;
        if (said & (features)1 << i)
            continue;
        buf_printf(&text, "%s%s", text.n ? "; " : "", feature_name((enum feature)i));
        bool later = false;
        for (int j = i + 1; j < FEATURE_COUNT; j++) {
            if (!(missing & (features)1 << j))
                continue;
            if (same_text(reasons[i], reasons[j]) && same_text(remedies[i], remedies[j])) {
                buf_printf(&text, ", %s", feature_name((enum feature)j));
                said |= (features)1 << j;
            } else if (!(said & (features)1 << j)) {
                later |= same_text(remedies[i], remedies[j]);
            }
        }
        buf_printf(&text, ": %s", reasons[i]);
        if (remedies[i] && !later)
            buf_printf(&text, " (%s)", remedies[i]);
    }
    return err_say(m->e, ERR_CANNOT, "%s cannot enforce the policy here: %.800s; to run without:%s", m->facts->engine,
                   buf_ok(&text) ? buf_cstr(&text) : "several guarantees are missing", without);
}

static int check_network(struct making *m)
{
    const struct policy *p = m->policy;
    const struct net_rule *first = NULL;
    for (size_t i = 0; !first && i < p->n_net_rules; i++) {
        enum net_verb verb = p->net_rules[i].verb;
        first = verb == NET_RULE_REACH ? &p->net_rules[i] : NULL;
    }
    if (!first || m->facts->can & F(NETWORK_TRANSPARENT) || (m->facts->host_loopback && p->net != NET_HOST))
        return 0;
    if (p->net == NET_HOST)
        return note(m, "net host: the box uses the host's network; the rules about hosts and ports are not applied");
    const char *what = "reach";
    const char *why = m->facts->why_not[FEATURE_NETWORK_TRANSPARENT];
    int r = err_say(m->e, ERR_CANNOT, "%s %s (%s): %s needs a network namespace of the box's own: %s", what,
                    first->text, origin_of(m, first->origin), what, why ? why : "not here");
    return err_hint(m->e, r, "--net none for no network, --net host for the host's");
}

static const char *cgroup_name(enum cgroup_kind kind)
{
    switch (kind) {
    case CGROUP_V1:
        return "cgroup v1";
    case CGROUP_V2:
        return "cgroup v2";
    case CGROUP_V2_SYSTEMD:
        return "cgroup v2, by systemd";
    case CGROUP_NONE:
        break;
    }
    return NULL;
}

static const char *guard_name(const struct policy *p)
{
    return p->guard == GUARD_STRICT     ? "guard (seccomp notification), strict"
           : p->guard == GUARD_EXISTING ? "guard (seccomp notification), existing names"
                                        : "guard (seccomp notification), for rules only";
}

static const char *hides_by(const struct making *m, bool landlock)
{
    bool names = false;
    for (size_t i = 0; i < m->n_places; i++) {
        enum act act = m->places[i].act;
        names |= m->places[i].kind == PLACE_HIDE &&
                 (act == ACT_STUB || act == ACT_HOLLOW || act == ACT_DENY || act == ACT_LANDLOCK);
    }
    if (landlock)
        return m->n_reads ? "Landlock file rules; guard on every open in writable places" : "Landlock file rules";
    if (m->n_reads)
        return names ? "masks over denied names; guard on every open in writable places" : "guard on every open";
    return "masks over denied names";
}

static const char *network_by(const struct making *m, bool landlock)
{
    if (m->policy->net != NET_ALLOW)
        return landlock ? "seccomp filter, no inet sockets" : "network namespace, loopback only";
    if (landlock)
        return m->plan->proxies
                   ? "seccomp filter, no inet sockets; egress at a Unix socket, the proxy of your environment"
                   : "seccomp filter, no inet sockets; egress at a Unix socket";
    return m->plan->proxies ? "network namespace, egress, the proxy of your environment" : "network namespace, egress";
}

/* The same for a container; NULL: as elsewhere. */
static const char *enforced_in_container(const struct making *m, enum feature f)
{
    switch (f) {
    case FEATURE_FILES:
        return "container, read-only root";
    case FEATURE_HIDES:
        return m->n_reads ? "not in the image; guard on every open" : "not in the image";
    case FEATURE_REMAP:
        return "bind mount";
    case FEATURE_CGROUP_LIMITS:
    case FEATURE_LIMIT_MEMORY:
    case FEATURE_LIMIT_PROCESSES:
    case FEATURE_LIMIT_CPU:
        return "the container's cgroup";
    case FEATURE_USER_ROOT:
        return "container, no capabilities";
    case FEATURE_CACHES:
        return "private directories";
    case FEATURE_SANDBOX:
        return "container, seccomp";
    default:
        return NULL;
    }
}

/* What enforces a guarantee in a virtual machine. */
static const char *machine_by(enum feature f)
{
    switch (f) {
    case FEATURE_GUARD:
    case FEATURE_HIDES_ANY_DEPTH:
        return "guard (seccomp notification) around the machine";
    case FEATURE_UNIX_SOCKETS:
    case FEATURE_ABSTRACT_SOCKETS:
    case FEATURE_PID_NAMESPACE:
    case FEATURE_SIGNALS:
    case FEATURE_PRIVATE_IPC:
    case FEATURE_FRESH_PROC:
        return "a kernel of its own";
    case FEATURE_SANDBOX:
        return "virtual machine in a box of namespaces, seccomp";
    case FEATURE_CGROUP_LIMITS:
    case FEATURE_LIMIT_MEMORY:
    case FEATURE_LIMIT_CPU:
    case FEATURE_LIMIT_PROCESSES:
        return "size of the machine, cgroup v2 in it";
    default:
        return NULL;
    }
}

/* The same for what the box around this one enforces, or helps with. */
static const char *around_by(const struct making *m, enum feature f)
{
    if (f == FEATURE_FILES)
        return "Landlock file rules; mounts and guard of the box around this one";
    if (f == FEATURE_HIDES && !m->n_reads)
        return "Landlock file rules";
    if (f == FEATURE_SIGNALS || f == FEATURE_ABSTRACT_SOCKETS)
        return "namespaces of the box around this one";
    return "guard of the box around this one";
}

static const char *enforced_by(const struct making *m, enum feature f)
{
    if (m->facts->machine && machine_by(f))
        return machine_by(f);
    if (m->facts->host_loopback)
        return "Seatbelt profile";
    if (m->around & (features)1 << f)
        return around_by(m, f);
    const struct policy *p = m->policy;
    bool landlock = m->facts->tier == TIER_LANDLOCK;
    const char *cgroup = cgroup_name(m->facts->cgroup);
    const char *container = m->facts->image ? enforced_in_container(m, f) : NULL;
    if (container)
        return container;
    switch (f) {
    case FEATURE_FILES:
        return landlock ? "Landlock file rules; guard for modes, owners, times and attributes"
                        : "mount namespace, read-only root";
    case FEATURE_HIDES:
        return hides_by(m, landlock);
    case FEATURE_HIDES_ANY_DEPTH:
        return "guard on every open";
    case FEATURE_GUARD:
        return guard_name(p);
    case FEATURE_UNIX_SOCKETS:
        return "guard (seccomp notification)";
    case FEATURE_ABSTRACT_SOCKETS:
        return landlock || p->net == NET_HOST ? "Landlock scope" : "network namespace";
    case FEATURE_NETWORK:
        return network_by(m, landlock);
    case FEATURE_NETWORK_TRANSPARENT:
    case FEATURE_NETWORK_PORTS:
    case FEATURE_NETWORK_ADDRESSES:
        return word_catch(m->plan->catch);
    case FEATURE_PID_NAMESPACE:
        return "pid namespace";
    case FEATURE_SIGNALS:
        return !landlock          ? "pid namespace"
               : m->facts->notify ? "Landlock scope; guard for limits and scheduling"
                                  : "Landlock scope; filter for limits and scheduling";
    case FEATURE_PRIVATE_IPC:
        return "IPC namespace";
    case FEATURE_PRIVATE_TMP:
        return "tmpfs";
    case FEATURE_FRESH_PROC:
        return "own procfs";
    case FEATURE_NO_SURVIVORS:
        return "pid namespace";
    case FEATURE_CGROUP_LIMITS:
        return cgroup ? cgroup : "cgroup";
    case FEATURE_LIMIT_MEMORY:
    case FEATURE_LIMIT_PROCESSES:
        return cgroup ? cgroup : "watcher";
    case FEATURE_LIMIT_CPU:
        return cgroup && m->facts->cpu_by_group ? cgroup : "pauses of all processes, approximate";
    case FEATURE_LIMIT_DISK:
        return landlock ? "file size limit and watcher" : "size of private storage, file size limit and watcher";
    case FEATURE_REMAP:
        return "mount namespace";
    case FEATURE_SECCOMP:
    case FEATURE_NESTED_USERNS:
        return "seccomp filter";
    case FEATURE_USER_ROOT:
        return "user namespace";
    case FEATURE_CACHES:
        return landlock                                ? "redirected variables"
               : m->facts->overlay && m->facts->uppers ? "overlay"
                                                       : "private directories";
    case FEATURE_SANDBOX:
        return landlock ? "Landlock and seccomp" : "namespaces, seccomp";
    case FEATURE_HOST_NETWORK:
    case FEATURE_EXPAND_START:
    case FEATURE_PROXY_ADDRESS:
    case FEATURE_COUNT:
        break;
    }
    return "policy";
}

/* Fails if a key requests a loss that must_have excludes. */
static int check_asked(struct making *m)
{
    static const struct {
        features bit;
        const char *key;
    } keys[] = {{F(HOST_NETWORK), "net: host"},
                {F(NESTED_USERNS), "allow_nested_userns"},
                {F(PRIVATE_TMP), "a rule for /tmp"},
                {F(EXPAND_START), "expand: start"},
                {F(PROXY_ADDRESS), "the caller's own proxy"}};
    features both = m->asked_losses & m->policy->must_have;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (both & keys[i].bit)
            return err_say(m->e, ERR_CANNOT, "%s gives up what must_have requires: %s; remove one of the two",
                           keys[i].key, feature_name((enum feature)__builtin_ctzll(keys[i].bit)));
    }
    return 0;
}

/* The guard sees the calls of this kernel's processes. */
static int check_monitor(struct making *m)
{
    const struct policy *p = m->policy;
    const struct facts *f = m->facts;
    const bool elsewhere = f->machine || strcmp(f->engine, "seatbelt") == 0;
    const char *why = elsewhere ? "its processes' calls are another kernel's" : f->why_not[FEATURE_GUARD];
    if (!p->monitor || f->unsandboxed || (f->notify && !elsewhere))
        return 0;
    int r = err_say(m->e, ERR_CANNOT, "monitor (%s): the engine %s cannot report refusals while they happen: %s",
                    origin_of(m, p->monitor_origin), f->engine, why ? why : "no guard here");
    return err_hint(m->e, r, "--engine native, or leave --monitor out");
}

int needs_make(struct making *m)
{
    const char *why[FEATURE_COUNT] = {NULL};
    struct plan *plan = m->plan;
    int r = or_refused(m, check_network(m));
    if (r == 0)
        r = or_refused(m, publish_check(m));
    if (r == 0)
        r = or_refused(m, check_monitor(m));
    if (r == 0)
        r = or_refused(m, branches_plan(m));
    if (r < 0)
        return r;
    features can = can_here(m, why), needs = needs_of(m);
    r = or_refused(m, check_asked(m));
    if (r < 0)
        return r;
    needs |= wishes_of(m) & m->policy->must_have;
    features missing = needs & ~can, refused = m->facts->unsandboxed ? 0 : missing & ~m->policy->may_lose;
    if (refused)
        r = m->ask->so_far ? refuse(m, refused, why) : say_cannot(m, refused, why);
    if (r < 0)
        return r;
    plan->needs = needs;
    plan->lost = (m->asked_losses | missing | (wishes_of(m) & ~can)) & ~refused;
    features held = (needs | wishes_of(m)) & ~plan->lost & ~refused;
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (!(held & (features)1 << i))
            continue;
        struct enforcement *e = arena_push(m->mem, &plan->enforced, &plan->n_enforced, sizeof *e);
        if (!e)
            return no_memory(m);
        *e = (struct enforcement){(enum feature)i, enforced_by(m, (enum feature)i)};
    }
    return 0;
}
