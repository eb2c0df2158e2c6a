/*
 * Writes the lines and sentences about a run that a person sees: the header before it, the line after it, warnings.
 * Names in them may be a box's, and are made safe for a terminal first.
 */
#include "run/words.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/json.h"
#include "policy/proxy.h"
#include "protocol/control.h"
#include "protocol/egress.h"
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
    } else if (command[0] == '-' && command[1]) {
        buf_text(out, "; options of pinfold go before '--'");
    } else if (str_starts(str_of(command), STR("\xe2\x80")) || str_starts(str_of(command), STR("\xe2\x88\x92"))) {
        buf_text(out, "; if that was to be an option, type its dashes as '-': copied text has others");
    } else if (strchr("/.~", command[0]) && strchr(command, ':')) {
        buf_text(out,
                 "; -v is --verbose here: to let the box see a directory use --rw PATH, --ro PATH or --mount SRC:DST");
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
        if (r->exec_errno == ENOENT && strchr(command, '/'))
            buf_text(out, " (the file itself, or the interpreter that its first line names)");
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
    if (same(l->kind, "name")) {
        buf_text(out, "left '");
        words_safe(out, l->path);
        buf_text(out, "', which programs of the repository around it run by themselves; inspect it before you commit");
        return;
    }
    const bool replaces = l->what && str_starts(str_of(l->what), STR(TOLD_REPLACES));
    buf_text(out, same(l->kind, "repository") ? "made in the new repository '"
                  : same(l->kind, "link")     ? "created a link that leads out of the workspace: '"
                  : replaces                  ? "left a replacement of an object in '"
                  : same(l->kind, "ref")      ? "left a branch or tag whose name git would take as an option in '"
                                              : "left a FIFO in the workspace: '");
    words_safe(out, l->path);
    buf_text(out, "'");
    if (!l->what)
        return;
    buf_text(out, same(l->kind, "link") ? " -> '" : ": ");
    words_safe(out, l->what);
    buf_text(out, replaces ? "; git shows another object in the place of this one, and pushes this one: look with git "
                             "--no-replace-objects, remove it with git replace -d"
                  : same(l->kind, "ref")
                      ? "; scripts that pass the name to git would set that option: remove it with git update-ref -d"
                  : same(l->kind, "link") ? "'"
                                          : "; these run automatically when you open it there: inspect them first");
}
