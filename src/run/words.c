/* Writes the lines and sentences about a run that a person sees. */
#include "run/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "policy/proxy.h"
#include "protocol/control.h"
#include "protocol/egress.h"
#include "protocol/guard_table.h"
#include "match/path.h"
#include "pinfold.h"

void words_safe(struct buf *out, const char *text)
{
    utf8_safe(out, str_of(text));
}

void words_shell(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (*text && !text[strspn(text, plain)]) {
        buf_text(out, text);
        return;
    }
    buf_char(out, '\'');
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "'");
        utf8_safe(out, (struct str){at, n});
        at += n;
        if (*at && at++)
            buf_text(out, "'\\''");
    }
    buf_char(out, '\'');
}

void words_duration(struct buf *out, uint64_t us)
{
    uint64_t ms = us / 1000;
    if (ms < 10)
        buf_printf(out, "%" PRIu64 ".%" PRIu64 " ms", ms, us % 1000 / 100);
    else if (ms < 1000)
        buf_printf(out, "%" PRIu64 " ms", ms);
    else if (ms < 100000)
        buf_printf(out, "%" PRIu64 ".%" PRIu64 " s", ms / 1000, ms % 1000 / 100);
    else
        buf_printf(out, "%" PRIu64 "m%02" PRIu64 "s", ms / 60000, ms / 1000 % 60);
}

void words_features(struct buf *out, features what)
{
    const char *comma = "";
    for (int f = 0; f < FEATURE_COUNT; f++) {
        if (what >> f & 1) {
            buf_printf(out, "%s%s", comma, feature_name((enum feature)f));
            comma = ", ";
        }
    }
}

static void header_limits(const struct limits *l, struct buf *out)
{
    const char *comma = "; limits ";
    if (l->memory.asked && l->memory.value != LIMIT_NONE) {
        buf_printf(out, "%smemory ", comma);
        buf_amount(out, l->memory.value);
        comma = ", ";
    }
    if (l->cpus.asked && l->cpus.value != LIMIT_NONE) {
        buf_printf(out, "%scpus %" PRIu64 ".%02" PRIu64, comma, l->cpus.value / 1000, l->cpus.value % 1000 / 10);
        comma = ", ";
    }
    if (l->processes.asked && l->processes.value != LIMIT_NONE) {
        buf_printf(out, "%s%" PRIu64 " process%s", comma, l->processes.value, l->processes.value == 1 ? "" : "es");
        comma = ", ";
    }
    if (l->disk.asked && l->disk.value != LIMIT_NONE) {
        buf_printf(out, "%sdisk ", comma);
        buf_amount(out, l->disk.value);
        comma = ", ";
    }
    if (l->timeout.asked && l->timeout.value != LIMIT_NONE) {
        buf_printf(out, "%stime ", comma);
        words_duration(out, l->timeout.value * 1000);
        comma = ", ";
    }
    if (l->output.asked && l->output.value != LIMIT_NONE) {
        buf_printf(out, "%soutput ", comma);
        buf_amount(out, l->output.value);
    }
}

/* The proxies that the caller's environment names, which the box's connections go through. */
static void header_proxy(const struct proxies *all, struct buf *out)
{
    char plain[PROXY_TEXT], other[PROXY_TEXT];
    if (!all)
        return;
    const struct proxy *first = all->other.variable ? &all->other : &all->plain;
    buf_printf(out, " by the proxy %s", proxy_print(first, other));
    if (all->plain.variable && !same(proxy_print(&all->plain, plain), other))
        buf_printf(out, " and %s", plain);
    buf_printf(out, " (%s)", first->variable);
}

static void header_ports(const struct policy *p, struct buf *out)
{
    const char *comma = "published ";
    for (size_t i = 0; i < p->n_net_rules; i++) {
        if (p->net_rules[i].verb != NET_RULE_PUBLISH)
            continue;
        buf_text(out, comma);
        words_safe(out, p->net_rules[i].text);
        comma = ", ";
    }
    if (comma[0] == ',')
        buf_text(out, "; ");
}

void words_unsandboxed(const struct plan *plan, struct buf *out)
{
    buf_text(out, "WARNING: this command runs WITHOUT A BOX, with all your rights (--unsandboxed-fallback)");
    if (plan->facts->n_others) {
        buf_text(out, ": ");
        words_safe(out, plan->facts->others[0].why);
    }
}

void words_around(const struct plan *plan, struct buf *out)
{
    if (plan->facts->around && plan->image->tier == TIER_LANDLOCK)
        buf_text(out,
                 "this already runs in a box: the command runs in the same one, confined further by Landlock; it sees "
                 "the other processes there, and temporary files go to $TMPDIR");
}

void words_header(const struct plan *plan, struct buf *out)
{
    static const char *const nets[] = {[NET_NONE] = "none", [NET_ALLOW] = "allow", [NET_HOST] = "the host's"};
    static const char *const guards[] = {
        [GUARD_STRICT] = "strict", [GUARD_EXISTING] = "existing names only", [GUARD_OFF] = "off"};
    const struct policy *p = plan->policy;

    static const char *const ways[] = {[CATCH_TPROXY] = "",
                                       [CATCH_ROUTES] = " (local routes: listed ports only)",
                                       [CATCH_LOOPBACK] = " (127.64.0.0/10: names at listed ports only)",
                                       [CATCH_SOCKET] = " (proxy on a Unix socket only)"};
    buf_printf(out, "%s%s; network %s%s", plan->facts->engine,
               plan->image->tier == TIER_LANDLOCK ? " (Landlock only)" : "", nets[p->net],
               p->net == NET_ALLOW ? ways[plan->catch] : "");
    if (p->net_ask)
        buf_text(out, ", asking for other hosts");
    header_proxy(plan->proxies, out);
    buf_text(out, "; ");
    header_ports(p, out);
    words_safe(out, plan->workspace ? plan->workspace : p->workspace);
    buf_text(out, plan->layered ? " in a copy-on-write layer" : p->workspace_read_only ? " read-only" : " writable");
    if (p->guard != GUARD_STRICT)
        buf_printf(out, "; guard %s", guards[p->guard]);
    header_limits(&p->limits, out);
    /* What was asked for is said as what it is. */
    const features lost = plan->lost & ~(F(HOST_NETWORK) | F(NESTED_USERNS));
    if (plan->lost & F(NESTED_USERNS))
        buf_text(out, "; nested namespaces allowed");
    if (lost) {
        buf_text(out, "; without ");
        words_features(out, lost);
    }
    if (plan->read_on_every_open && plan->read_on_every_open[0]) {
        buf_text(out, "; every open is checked (");
        words_safe(out, plan->read_on_every_open[0]);
        buf_text(out, plan->read_on_every_open[1] ? ", ...)" : ")");
    }
}

void words_ignored(const struct policy *p, struct buf *out)
{
    enum { NAMED = 12 };
    for (size_t i = 0; i < p->n_ignored && i < NAMED; i++) {
        const struct ignored *g = &p->ignored[i];
        char origin[512];
        buf_text(out, i ? "; " : "not enforced: ");
        words_safe(out, g->key);
        buf_text(out, " (");
        words_safe(out, policy_origin(p, g->origin, origin, sizeof origin));
        buf_printf(out, ": %s)", g->why);
    }
    if (p->n_ignored > NAMED)
        buf_printf(out, "; and %zu more, see pinfold explain", p->n_ignored - NAMED);
}

void words_missing(const struct policy *p, struct buf *out)
{
    const char *first = NULL;
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        char origin[512];
        if (!rule->told || access(rule->path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
            continue;
        buf_text(out, first ? "; " : "not writable, because nothing exists there: ");
        words_safe(out, rule->path);
        buf_text(out, " (");
        words_safe(out, policy_origin(p, rule->origin, origin, sizeof origin));
        buf_char(out, ')');
        first = first ? first : rule->path;
    }
    if (!first)
        return;
    buf_text(out, "; create it, or give the box a private one with --storage ");
    words_safe(out, first);
}

/* Of what the image's own program may count on. */
static void image_terms(const struct plan *plan, const struct image_fact *image, struct buf *out)
{
    if (image->workdir && image->workdir[0] && !same(image->workdir, plan->cwd)) {
        buf_text(out, "the image's WORKDIR '");
        words_safe(out, image->workdir);
        buf_text(out, "' is not used: the command starts in '");
        words_safe(out, plan->cwd);
        buf_text(out, "'; choose with --cwd");
    }
    if (plan_has_image_user(plan))
        return;
    buf_text(out, out->n ? "; the image's USER '" : "the image's USER '");
    words_safe(out, image->user);
    buf_printf(out, "' is not used: the command runs as %u:%u, so that files in the workspace stay yours",
               plan->image->uid, plan->image->gid);
}

void words_image_start(const struct plan *plan, bool own, struct buf *out)
{
    const struct image_fact *image = plan->facts->image;
    const bool has = image && image->entrypoint && image->entrypoint[0];
    if (own || (has && plan->policy->entrypoint == ENTRYPOINT_IMAGE)) {
        if (image)
            image_terms(plan, image, out);
        return;
    }
    if (!has || plan->policy->entrypoint != ENTRYPOINT_UNSAID)
        return;
    buf_text(out, "the image's ENTRYPOINT '");
    words_safe(out, image->entrypoint[0]);
    buf_text(out, image->entrypoint[1] ? " ...' is not run" : "' is not run");
    buf_text(out, "; run the command by it with --entrypoint image, or leave it out silently with --entrypoint none");
}

void words_closing(const struct box_result *r, struct buf *out)
{
    switch (r->end) {
    case BOX_EXITED:
        buf_printf(out, "exit %d", r->code);
        break;
    case BOX_SIGNALED:
        buf_printf(out, "signal %d", r->code);
        break;
    case BOX_TIMED_OUT:
        buf_text(out, "timeout");
        break;
    case BOX_LIMIT:
        buf_text(out, "limit");
        break;
    case BOX_LOST:
        buf_text(out, "box lost");
        break;
    }
    buf_text(out, "; ");
    words_duration(out, r->wall_us);
    buf_text(out, " wall, ");
    words_duration(out, r->cpu_us);
    buf_text(out, " cpu, ");
    buf_amount(out, r->peak_bytes);
    buf_text(out, r->peak_is_largest_process ? " in the largest process" : " peak");
    /* Refusals by a mount or a plain errno raise no event, so nothing is ever said to be none. */
    size_t denied = r->denials_dropped;
    for (size_t i = 0; i < r->n_denials; i++) {
        const struct denial *d = &r->denials[i];
        denied +=
            !same(d->kind, "limit") && !same(d->action, "dial") && !same(d->how, "none") && !same(d->how, "mount");
    }
    if (denied > 0)
        buf_printf(out, "; %zu denied", denied);
}

/* What was no program's name is often a line of a shell, or one of its own words. */
static void shells_words(const char *command, struct buf *out)
{
    static const char *const own[] = {"cd",    "export", "source", ".",    "alias", "ulimit",
                                      "umask", "set",    "unset",  "eval", "exec"};
    bool word = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        word |= same(command, own[i]);
    if (word) {
        buf_text(out, "; it is a word of the shell's own: sh -c '");
        words_safe(out, command);
        buf_text(out, " ...'");
    } else if (strpbrk(command, " \t\n|&;<>")) {
        buf_text(out, "; that is a line for a shell: sh -c ");
        words_shell(out, command);
    }
}

void words_errors(const struct box_result *r, const char *command, struct buf *out)
{
    if (r->end == BOX_LOST) {
        buf_text(out, "the box ended before the command's result was known");
        return;
    }
    if (r->exec_errno) {
        words_safe(out, command);
        buf_printf(out, ": %s in the box",
                   r->exec_errno == ENOENT && !strchr(command, '/') ? "command not found" : strerror(r->exec_errno));
        if (r->exec_errno == ENOENT)
            shells_words(command, out);
        return;
    }
    if (r->output_errno)
        buf_printf(out, "part of the command's output was lost: %s", strerror(r->output_errno));
    if (r->audit_errno)
        buf_printf(out, "%sthe audit log could not be written: %s", out->n ? "; " : "", strerror(r->audit_errno));
    if (r->events_errno)
        buf_printf(out, "%sevents could not be written (--events): %s", out->n ? "; " : "", strerror(r->events_errno));
}

/* It was the session's, which is over. */
static void session_limit(const struct box_result *r, struct buf *out)
{
    const char *flag = r->limit == BOX_LIMIT_PROCESSES ? "pids" : box_limit_name(r->limit);
    buf_printf(out, "%s: the session exceeded its limit of ", box_limit_name(r->limit));
    if (r->limit == BOX_LIMIT_PROCESSES)
        buf_printf(out, "%" PRIu64 " process%s", r->session_limit, r->session_limit == 1 ? "" : "es");
    else
        buf_amount(out, r->session_limit);
    buf_text(out, " and was stopped, with this command; start it again with a higher limit: pinfold session start '");
    words_safe(out, r->session);
    buf_printf(out, "' --as-before --%s ", flag);
    if (r->limit == BOX_LIMIT_PROCESSES)
        buf_printf(out, "%" PRIu64, r->session_limit * 2);
    else
        buf_amount(out, r->session_limit * 2);
}

void words_limit(const struct box_result *r, const struct limits *l, struct buf *out)
{
    if (r->session_limit) {
        session_limit(r, out);
        return;
    }
    const char *who = r->session ? "command" : "box"; /* a command in a session has limits of its own */

    switch (r->limit) {
    case BOX_LIMIT_NONE: /* a full file system of the box's own raises no event */
        if (r->end == BOX_EXITED && r->code != 0 && l->disk.asked && l->disk.value != LIMIT_NONE && !r->session) {
            buf_text(out,
                     "disk: a file of the box, and its /tmp and other private places together, hold no more than ");
            buf_amount(out, l->disk.value);
            buf_text(out, "; if the command had no space left, allow more with --disk ");
            buf_amount(out, l->disk.value * 2);
        }
        return;
    case BOX_LIMIT_MEMORY:
        if (l->memory.value == LIMIT_NONE) { /* of a command: its session's machine has no more */
            buf_text(out, "memory: the command used all of its session's memory and was ended; recreate the session "
                          "with more: pinfold session start '");
            words_safe(out, r->session ? r->session : "NAME");
            buf_text(out, "' --as-before --recreate --memory SIZE");
            return;
        }
        buf_printf(out, "memory: the %s used more than ", who);
        buf_amount(out, l->memory.value);
        buf_text(out, " and was ended; allow more with --memory ");
        buf_amount(out, l->memory.value * 2);
        return;
    case BOX_LIMIT_PROCESSES:
        buf_printf(out, "processes: the %s made more than %" PRIu64 "; allow more with --%s %" PRIu64, who,
                   l->processes.value, r->session ? "processes" : "pids", l->processes.value * 2);
        return;
    case BOX_LIMIT_DISK:
        buf_text(out, "disk: the box wrote more than ");
        buf_amount(out, l->disk.value);
        if (r->limit_seen > l->disk.value) { /* the workspace's growth is looked at now and then */
            buf_text(out, " (");
            buf_amount(out, r->limit_seen);
            buf_text(out, " when that was seen)");
        }
        buf_text(out, " and was ended; allow more with --disk ");
        buf_amount(out, l->disk.value * 2);
        return;
    case BOX_LIMIT_OUTPUT:
        buf_text(out, "output: the command wrote more than ");
        buf_amount(out, l->output.value);
        buf_text(out, " and was ended; allow more with --output ");
        buf_amount(out, l->output.value * 2);
        return;
    case BOX_LIMIT_TIMEOUT:
        buf_text(out, "timeout: the command ran longer than ");
        words_duration(out, l->timeout.value * 1000);
        buf_printf(out, " and was ended; allow more with --timeout %" PRIu64 "s", (l->timeout.value * 2 + 999) / 1000);
        return;
    }
}

static bool is_guarded_name(const struct policy *p, const struct denial *d)
{
    for (size_t i = 0; p && d->rule && i < p->n_guards; i++) {
        if (same(p->guards[i].name, d->rule))
            return true;
    }
    /* Of a session the policy is not here: of the built-in rules those without a path are guarded names. */
    return !p && d->rule && d->origin && d->rule[0] && d->rule[0] != '/' && d->rule[0] != '~' &&
           same(d->kind, "file") && !same(d->action, "read") && str_starts(str_of(d->origin), STR("built in (profile"));
}

/* The port of "host:port", "[v6]:port"; "" when there is none. */
static const char *port_of(const char *target)
{
    const char *colon = strrchr(target, ':');
    return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? colon : "";
}

/* What follows is the remedy. */
static void begin_offer(struct buf *out, size_t *ret_offer)
{
    buf_text(out, "; ");
    *ret_offer = out->n;
}

/* A host that no line suggests to allow, whatever refused it. */
#define OF_METADATA "it hands out a machine's credentials: give the command some of its own"
static bool never_allowed(const char *target, struct buf *out, size_t *ret_offer)
{
    struct host h;
    uint16_t port;
    if (host_port_parse(str_of(target), 0, &h, &port) < 0)
        return false;
    const bool address = h.kind == HOST_ADDR;
    const bool local = !address && (same(h.name, "localhost") || str_ends(str_of(h.name), STR(".localhost")));
    const enum addr_class class = address ? addr_classify(&h.addr) : local ? ADDR_LOOPBACK : ADDR_PUBLIC;
    if (class != ADDR_METADATA && class != ADDR_LOOPBACK)
        return false;
    begin_offer(out, ret_offer);
    if (class == ADDR_METADATA)
        buf_text(out, OF_METADATA);
    else
        buf_printf(out, "for a service of this machine: --reach %s:%u", target[0] == '[' ? "[::1]" : "127.0.0.1", port);
    return true;
}

/* What the address is that a name led to, and what would open that one: rules for names never do. */
static bool address_remedy(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    static const char *const opened[] = {EGRESS_AT_PRIVATE, EGRESS_AT_RESERVED, EGRESS_AT_OWN};
    const char *at = d->address ? d->address : "", *port = port_of(d->target);
    if (str_starts(str_of(d->rule), str_of(EGRESS_AT_LOOPBACK))) {
        bool v6 = strchr(at, ':') != NULL;
        buf_text(out, EGRESS_AT_LOOPBACK ")");
        begin_offer(out, ret_offer);
        buf_printf(out, "for a service of this machine: --reach %s%s", v6 ? "[::1]" : "127.0.0.1",
                   *port ? port : ":PORT");
        return true;
    }
    if (str_starts(str_of(d->rule), str_of(EGRESS_AT_METADATA))) {
        buf_text(out, EGRESS_AT_METADATA ")");
        begin_offer(out, ret_offer);
        buf_text(out, OF_METADATA);
        return true;
    }
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
        if (!*at || !str_starts(str_of(d->rule), str_of(opened[i])))
            continue;
        buf_printf(out, "%s)", opened[i]);
        begin_offer(out, ret_offer);
        buf_printf(out, strchr(at, ':') ? "allow with --allow [%s]%s" : "allow with --allow %s%s", at, port);
        return true;
    }
    return false;
}

/* A port that carries one protocol alone. */
static bool protocol_remedy(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    if (!same(d->rule, EGRESS_ONLY_TLS) && !same(d->rule, EGRESS_ONLY_HTTP))
        return false;
    buf_printf(out, "%s)", d->rule);
    begin_offer(out, ret_offer);
    buf_text(out, "allow other protocols with --allow ");
    words_safe(out, d->target);
    buf_text(out, "/tcp");
    return true;
}

static void network_remedy(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    static const char *const by_default[] = {"default", "the answer was no", "nobody answered in time",
                                             "nobody could be asked", "too many open questions"};
    if (address_remedy(d, out, ret_offer) || protocol_remedy(d, out, ret_offer))
        return;
    words_safe(out, d->rule);
    if (d->ruled) {
        buf_text(out, ", ");
        words_safe(out, d->origin ? d->origin : "");
        buf_char(out, ')');
        begin_offer(out, ret_offer);
        buf_text(out, "a deny rule overrides every --allow: remove the deny rule to allow it");
        return;
    }
    buf_text(out, ")");
    if (never_allowed(d->target, out, ret_offer))
        return;
    for (size_t i = 0; i < sizeof by_default / sizeof *by_default; i++) {
        if (same(d->rule, by_default[i])) {
            begin_offer(out, ret_offer);
            buf_text(out, "allow with --allow ");
            words_safe(out, d->target);
        }
    }
}

/* Refusals that are no guarded name's, and that --guard off would not lift. */
static bool is_no_names(const char *rule)
{
    static const char *const rules[] = {"a name that belongs to pinfold",
                                        "it is in a mount that does not belong",
                                        "the host moved the directory",
                                        "it is not at its path",
                                        GUARD_WHY_PIN,
                                        "a directory that a rule for hidden names"};
    for (size_t i = 0; rule && i < sizeof rules / sizeof *rules; i++) {
        if (str_starts(str_of(rule), str_of(rules[i])))
            return true;
    }
    return false;
}

static bool in_kernels_tree(const char *path)
{
    return path_at_or_below(path, "/dev") || path_at_or_below(path, "/proc") || path_at_or_below(path, "/sys");
}

/* A name by which the guard also knows a repository's own parts: these it keeps when the name is allowed. */
static bool is_repositorys(const char *rule)
{
    static const char *const names[] = {".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (same(rule, names[i]))
            return true;
    }
    return false;
}

/* What lifts a rule about files: the same path cannot have two rules of options, and no path lifts a pattern. */
static void rule_remedy(const struct denial *d, struct buf *out)
{
    const char *slash = strrchr(d->target, '/');
    const bool pattern = d->rule && (d->rule[0] != '/' || strpbrk(d->rule, "*?["));
    const bool inside = same(d->action, "create") && !same(d->target, d->rule) && slash && slash > d->target;
    const size_t n = inside ? (size_t)(slash - d->target) : strlen(d->target);
    const bool own = d->rule && strlen(d->rule) == n && memcmp(d->rule, d->target, n) == 0;
    const bool pin = d->why && same(d->why, GUARD_WHY_PIN);
    if (pattern || pin || (own && d->origin && str_starts(str_of(d->origin), STR("--")))) {
        buf_text(out, "change that rule, or do it outside the box");
        return;
    }
    char object[4096];
    snprintf(object, sizeof object, "%.*s", (int)n, d->target);
    buf_text(out, same(d->action, "read") ? "allow with --ro " : "allow with --rw ");
    words_shell(out, object);
}

/* A place that is read-only because no rule makes it writable, which the caller could change: the nearest remedy. */
static void read_only_place(const struct denial *d, const struct policy *policy, struct buf *out, size_t *ret_offer)
{
    const struct path_rule *rule = NULL;
    bool itself = same(d->action, "write") || same(d->action, "change");
    size_t n = itself ? strlen(d->target) : (size_t)(strrchr(d->target, '/') - d->target);
    char dir[4096], origin[512];

    if (path_git_directory(d->target)) { /* git writes in many places of it */
        n = path_git_directory(d->target);
        itself = false;
    }
    snprintf(dir, sizeof dir, "%.*s", (int)(n ? n : 1), d->target);
    buf_printf(out, "file: %s '", d->action);
    words_safe(out, d->target);
    if (policy && policy->workspace_read_only && path_at_or_below(d->target, policy->workspace)) {
        buf_text(out,
                 "' failed: the workspace is read-only in this box (--read-only, or workspace_read_only of a policy)");
        return;
    }
    if (policy && policy_access(policy, d->target, &rule) == PATH_RO && rule) {
        buf_text(out, "' failed: it is read-only in the box (");
        words_safe(out, policy_origin(policy, rule->origin, origin, sizeof origin));
        buf_char(out, ')');
        begin_offer(out, ret_offer);
        buf_text(out, "change that rule to rw to allow it");
        return;
    }
    if (in_kernels_tree(d->target)) {
        buf_text(out, "' failed: it is the kernel's, and read-only in every box");
        begin_offer(out, ret_offer);
        buf_text(out, "do it outside the box");
        return;
    }
    buf_text(out, "' failed: it is outside the workspace, and read-only in the box");
    begin_offer(out, ret_offer);
    const char *home = getenv("HOME");
    if (!itself &&
        (!n || !strchr(dir + 1, '/') || (home && path_at_or_below(home, dir)))) { /* that would be too much to allow */
        buf_text(out, "do it outside the box, or allow a directory in it with --rw DIR");
        return;
    }
    buf_text(out, "allow with --rw ");
    words_shell(out, dir);
}

/* A system call's numbers as programs write them: "socket(2, 1)" is socket(AF_INET, SOCK_STREAM). */
static void put_target(const char *target, struct buf *out)
{
    static const struct {
        int family;
        const char *name;
    } families[] = {{AF_UNIX, "AF_UNIX"},     {AF_INET, "AF_INET"},           {AF_INET6, "AF_INET6"},
                    {AF_PACKET, "AF_PACKET"}, {AF_NETLINK, "AF_NETLINK"},     {AF_ALG, "AF_ALG"},
                    {AF_VSOCK, "AF_VSOCK"},   {AF_BLUETOOTH, "AF_BLUETOOTH"}, {AF_CAN, "AF_CAN"}};
    static const char *const types[] = {[SOCK_STREAM] = "SOCK_STREAM",
                                        [SOCK_DGRAM] = "SOCK_DGRAM",
                                        [SOCK_RAW] = "SOCK_RAW",
                                        [SOCK_SEQPACKET] = "SOCK_SEQPACKET"};
    int family, type;
    if (sscanf(target, "socket(%d, %d)", &family, &type) != 2) {
        words_safe(out, target);
        return;
    }
    buf_text(out, "socket(");
    size_t i = 0;
    while (i < sizeof families / sizeof *families && families[i].family != family)
        i++;
    if (i < sizeof families / sizeof *families)
        buf_text(out, families[i].name);
    else
        buf_printf(out, "%d", family);
    if (type > 0 && type < (int)(sizeof types / sizeof *types) && types[type])
        buf_printf(out, ", %s)", types[type]);
    else
        buf_printf(out, ", %d)", type);
}

/* A refusal that raised no event: what the command's own error text leads to, or what the monitor saw. */
static void words_guess(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    buf_printf(out, "%s: %s%s '", d->kind, d->guess ? "probably " : "", d->action);
    put_target(d->target, out);
    buf_text(out, "' was refused: ");
    words_safe(out, d->why ? d->why : d->how);
    buf_text(out, " (");
    words_safe(out, d->rule);
    buf_text(out, ", ");
    words_safe(out, d->origin);
    buf_char(out, ')');
    if (!d->remedy)
        return;
    begin_offer(out, ret_offer);
    if (d->option)
        buf_text(out, "allow with ");
    words_safe(out, d->remedy);
}

/* What would have let the agent's filter pass it. */
static void agent_denial(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    const char *offer =
        same(d->kind, "gpg-agent") && same(d->why, GPG_WHY_KEY) ? "allow the key with --gpg-agent KEY"
        : same(d->why, SSH_WHY_KEY)                             ? "allow the key with --ssh-agent KEY"
        : same(d->why, SSH_WHY_HOST)
            ? "allow the host with --ssh-agent KEY=HOST, and connect to it once outside the box so that "
              "known_hosts has its key"
        : same(d->why, SSH_WHY_OTHER_HOST) ? "allow it with --ssh-agent KEY=HOST"
        : same(d->why, SSH_WHY_NOT_GIT)    ? "allow it with --ssh-agent KEY=git"
                                           : NULL;
    buf_printf(out, "%s: %s '", d->kind, d->action);
    words_safe(out, d->target);
    buf_text(out, "' denied: ");
    words_safe(out, d->why ? d->why : d->rule);
    if (!offer)
        return;
    begin_offer(out, ret_offer);
    buf_text(out, offer);
}

/* A protected branch that hooks keep where it is. */
static void branch_denial(const struct denial *d, struct buf *out, size_t *ret_offer)
{
    buf_text(out, "git: '");
    words_safe(out, d->target);
    buf_text(out, "' stays as it is (");
    words_safe(out, d->rule);
    buf_text(out, ", ");
    words_safe(out, d->origin);
    buf_text(out, "): ");
    words_safe(out, d->why ? d->why : "its commits were not passed");
    if (!d->remedy)
        return;
    begin_offer(out, ret_offer);
    words_safe(out, d->remedy);
}

/* What allows a refusal by a rule, after the sentence's beginning. */
static void rule_offer(const struct denial *d, const struct policy *policy, struct buf *out)
{
    if (d->origin && strstr(d->origin, OWN_ORIGIN)) {
        buf_text(out, "it cannot be changed in a box; change it outside");
    } else if (d->origin && strstr(d->origin, ENV_ORIGIN)) {
        buf_text(out, "show such files with --env-files");
    } else if (same(d->kind, "file") && same(d->action, "mount")) {
        buf_text(out, "no option allows it: mount a directory instead, or do the mount outside the box");
    } else if (same(d->kind, "socket")) {
        buf_text(out, "allow with --unix-socket ");
        words_shell(out, d->target);
    } else if (same(d->origin, "built in") && d->rule && d->rule[0] == '/') {
        buf_text(out, "it cannot be changed in a box; change it outside");
    } else if (is_guarded_name(policy, d) || same(d->origin, "built in")) {
        const bool name = is_guarded_name(policy, d);
        buf_text(out, "do it outside the box");
        if (name && !is_repositorys(d->rule)) {
            buf_text(out, ", or allow this name with --guard-allow ");
            words_shell(out, d->rule);
        } else if (!is_no_names(d->rule)) {
            buf_text(out, ", or run with --guard off");
        }
    } else {
        rule_remedy(d, out);
    }
}

/* Of kinds that are no rule's; false: it is one. */
static bool special_denial(const struct denial *d, const struct policy *policy, struct buf *out, size_t *ret_offer)
{
    if (d->guess || (d->seen && !same(d->how, "none"))) {
        words_guess(d, out, ret_offer);
    } else if (same(d->kind, "file") && same(d->action, "owner")) {
        buf_text(out, "file: the owner of '");
        words_safe(out, d->target);
        buf_text(out, "' was not changed: the box has no other users and groups than the command's own");
        begin_offer(out, ret_offer);
        buf_text(out, "change it outside the box");
    } else if (same(d->kind, "file") && same(d->how, "mount") && d->target[0] == '/') {
        read_only_place(d, policy, out, ret_offer);
    } else if (same(d->action, "git-branch")) {
        branch_denial(d, out, ret_offer);
    } else if (same(d->kind, "namespace") && same(d->action, "map")) {
        buf_text(out, "namespace: the command failed after it tried to map ids in a namespace of its own (browsers and "
                      "other sandboxes do): without CAP_SETFCAP the kernel does not map root a second time");
        begin_offer(out, ret_offer);
        buf_text(out,
                 "start pinfold as an ordinary user, or switch that program's own sandbox off, as the box confines it "
                 "already; for browsers another user in the box is enough: --user 1000:1000");
    } else if (same(d->kind, "namespace")) {
        buf_text(out, "namespace: the command failed after it tried to create a namespace (browsers and other "
                      "sandboxes do), which the box refuses");
        begin_offer(out, ret_offer);
        buf_text(out, "allow with --allow-nested-userns, which opens more of the kernel to the command; hidden and "
                      "guarded names hold there, too");
    } else if (same(d->kind, "network") && same(d->action, "dial")) { /* the rules allow it: no option would help */
        buf_text(out, "network: '");
        words_safe(out, d->target);
        buf_text(out, "' is allowed but was not reached: ");
        words_safe(out, d->rule);
    } else if (same(d->kind, "network") && same(d->how, "none")) {
        buf_text(out, "network: the command failed after it tried to use a network; the box has none (");
        words_safe(out, d->origin);
        buf_char(out, ')');
        begin_offer(out, ret_offer);
        buf_text(out, "allow hosts with --allow HOST");
    } else if (same(d->kind, "ssh-agent") || same(d->kind, "gpg-agent")) {
        agent_denial(d, out, ret_offer);
    } else {
        return false;
    }
    return true;
}

size_t words_denial(const struct denial *d, const struct policy *policy, struct buf *out)
{
    size_t offer = 0;
    if (special_denial(d, policy, out, &offer))
        return offer ? offer : out->n;
    buf_printf(out, "%s: %s '", d->kind, d->action);
    words_safe(out, d->target);
    buf_text(out, "' denied (");
    if (same(d->kind, "network")) {
        network_remedy(d, out, &offer);
        return offer ? offer : out->n;
    }
    words_safe(out, d->rule ? d->rule : "default");
    if (d->origin && !same(d->origin, d->rule)) {
        buf_text(out, ", ");
        words_safe(out, d->origin);
    }
    if (d->why) {
        buf_text(out, ": ");
        words_safe(out, d->why);
    }
    buf_char(out, ')');
    begin_offer(out, &offer);
    rule_offer(d, policy, out);
    return offer;
}

/* The option that a sentence offers, after "with" or a colon; "" if none. */
static void offered_option(const char *sentence, char name[32])
{
    const char *last = NULL;
    for (const char *at = strstr(sentence, " --"); at; at = strstr(at + 1, " --")) {
        if ((at - sentence >= 4 && memcmp(at - 4, "with", 4) == 0) || (at > sentence && at[-1] == ':'))
            last = at + 3;
    }
    const size_t n = last ? strspn(last, "abcdefghijklmnopqrstuvwxyz-") : 0;
    snprintf(name, 32, "%.*s", (int)n, n ? last : "");
}

void words_in_session(const struct denial *d, const char *session, enum net_mode net, struct buf *out)
{
    const struct pinfold_option_info *o = NULL;
    auto_buf struct buf way = BUF(1024);
    char name[32];
    offered_option(buf_cstr(out), name);
    for (size_t i = 0; name[0] && (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && same(o->name, name))
            break;
    }
    if (!o)
        return;
    if (same(name, "allow") && same(d->kind, "network") && net == NET_ALLOW) {
        buf_text(&way, " (an option of: pinfold session update '");
        words_safe(&way, session);
        buf_text(&way, "')");
    } else if (str_starts(str_of(session), STR("agent-sandbox-"))) { /* of a project, which starts it from its policy */
        buf_printf(&way, " (in .pinfold/policy.yaml: %s; then end the session: pinfold stop)", o->key);
    } else {
        buf_text(&way, " (an option of: pinfold session start '");
        words_safe(&way, session);
        buf_text(&way, "' --as-before --recreate)");
    }
    if (buf_ok(&way) && !str_ends(buf_view(out), buf_view(&way))) /* a remedy may have said so itself */
        buf_str(out, buf_view(&way));
}

void words_left(const struct left_behind *l, struct buf *out)
{
    if (l->what && same(l->what, TOLD_CLOSED)) {
        buf_text(out, "left '");
        words_safe(out, l->path);
        buf_text(out, "', which " TOLD_CLOSED "; inspect it before you use it");
        return;
    }
    if (same(l->kind, "replaced")) {
        buf_text(out, "'");
        words_safe(out, l->path);
        buf_text(out, "' was replaced on the host while the box ran, and the new file was not hidden in it; to hide "
                      "such a name in any case, which makes each open slower: --hide ");
        words_safe(out, l->path);
        return;
    }
    buf_text(out, same(l->kind, "repository") ? "made in the new repository '"
                  : same(l->kind, "link")     ? "created a link that leads out of the workspace: '"
                  : same(l->kind, "ref")      ? "left a branch or tag whose name git would take as an option in '"
                                              : "left a FIFO in the workspace: '");
    words_safe(out, l->path);
    buf_text(out, "'");
    if (!l->what)
        return;
    buf_text(out, same(l->kind, "link") ? " -> '" : ": ");
    words_safe(out, l->what);
    buf_text(out, same(l->kind, "ref")
                      ? "; scripts that pass the name to git would set that option: remove it with git update-ref -d"
                  : same(l->kind, "link") ? "'"
                                          : "; these run automatically when you open it there: inspect them first");
}
