/*
 * Writes the sentence about something that was refused to a box, with the option that allows it. Only what a plan
 * with that option would allow is offered; for some things there is nothing to offer.
 */
#include "run/words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "protocol/egress.h"
#include "protocol/guard_table.h"
#include "match/host.h"
#include "match/path.h"
#include "pinfold.h"

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
    static const char *const opened[] = {EGRESS_AT_PRIVATE, EGRESS_AT_RESERVED, EGRESS_AT_OWN, EGRESS_AT_UNKNOWN};
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
    static const char by_default[][24] = {"default", "the answer was no", "nobody answered in time",
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
                                        "the guard may not read this program's memory",
                                        "a link in a directory that programs outside of the box use",
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
    static const char names[][24] = {".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"};
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

/* Not where a rule of its own, of the guard for example, refused something of it. */
static bool is_read_only_workspace(const struct denial *d, const struct policy *policy)
{
    return policy && policy->workspace_read_only && path_at_or_below(d->target, policy->workspace) &&
           (same(d->how, "mount") || same(d->rule, policy->workspace));
}

/* --rw for a workspace contradicts --read-only; a line of a policy it overrides. */
static void writable_workspace(const char *origin, const char *workspace, struct buf *out)
{
    if (str_starts(str_of(origin), STR("--"))) {
        buf_printf(out, "leave out %s, or do it outside the box", origin);
        return;
    }
    buf_text(out, "allow with --rw ");
    words_shell(out, workspace);
}

/* Its cookies are logins: a browser in a box needs a profile, but not this one, which --rw would show. */
static bool is_browsers_profile(const char *target)
{
    static const char names[][24] = {"/.mozilla",
                                     "/.config/mozilla",
                                     "/.config/chromium",
                                     "/.config/google-chrome",
                                     "/.config/BraveSoftware",
                                     "/.config/microsoft-edge",
                                     "/.config/vivaldi",
                                     "/.config/opera"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strstr(target, names[i]))
            return true;
    }
    return false;
}

static const char own_profile[] =
    "give the browser a profile of its own: --env HOME=/tmp, or an option of the browser's";

/* A name that a rule hides, at a place that is read-only besides: --rw for what is around it would not show it. */
static void hidden_name(const struct policy *policy, const struct path_rule *rule, const char *target, struct buf *out,
                        size_t *ret_offer)
{
    char text[512];
    const char *origin = policy_origin(policy, rule->origin, text, sizeof text);
    buf_text(out, "' failed: it is hidden in the box (");
    words_safe(out, origin);
    buf_char(out, ')');
    begin_offer(out, ret_offer);
    if (str_starts(str_of(origin), STR("--"))) {
        buf_printf(out, "leave out %s, or do it outside the box", origin);
        return;
    }
    buf_text(out, is_browsers_profile(target)
                      ? own_profile
                      : "do it outside the box, or, if this machine has it, allow it with --rw PATH");
}

/*
 * Makes `dir` the nearest directory on the way to it that this machine has, because --rw would refuse another: the command makes
 * several, or the box has made some as a way to a place of its own. Whether it had to change `dir`.
 */
static bool to_existing(char *dir)
{
    bool changed = false;
    char *slash;
    while (access(dir, F_OK) < 0 && errno == ENOENT && (slash = strrchr(dir, '/'))) {
        slash[slash == dir] = 0;
        changed = true;
        if (slash == dir)
            break;
    }
    return changed;
}

/* ~/.config, ~/.local/share: of all programs, and what is made in some of their names is run later. `above`: all of ~/.NAME. */
static bool is_of_all_programs(const char *home, const char *dir, bool above)
{
    static const char *const shared[] = {".cache",     ".config",      ".local",      ".local/bin",
                                         ".local/lib", ".local/share", ".local/state"};
    const size_t n = home ? strlen(home) : 0;
    if (!n || !path_at_or_below(dir, home) || dir[n] != '/')
        return false;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (same(dir + n + 1, shared[i]))
            return true;
    }
    return above && dir[n + 1] == '.' && !strchr(dir + n + 1, '/');
}

/* How long the part of `dir` is that one program keeps in the home: ~/.NAME, ~/.config/NAME, ~/.local/share/NAME; 0 if it is in none. */
static size_t programs_directory(const char *home, const char *dir)
{
    static const char shared[][16] = {".config/", ".local/share/", ".local/state/", ".var/app/"};
    const size_t n = home ? strlen(home) : 0;
    if (!n || !path_at_or_below(dir, home) || dir[n] != '/' || dir[n + 1] != '.')
        return 0;
    const char *name = dir + n + 1;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (str_starts(str_of(name), str_of(shared[i]))) {
            name += strlen(shared[i]);
            return *name ? (size_t)(name - dir) + strcspn(name, "/") : 0;
        }
    }
    const size_t end = (size_t)(name - dir) + strcspn(name, "/");
    char top[PATH_MAX];
    snprintf(top, sizeof top, "%.*s", (int)end, dir);
    return is_of_all_programs(home, top, false) ? 0 : end;
}

/* --rw for a directory; for one of a program in the home rather a private layer of it, which programs outside do not follow. */
static void writable_directory(const char *home, const char *dir, bool itself, struct buf *out)
{
    const size_t n = itself ? 0 : programs_directory(home, dir);
    char top[PATH_MAX];
    if (n > 0) {
        snprintf(top, sizeof top, "%.*s", (int)n, dir);
        buf_text(out, "allow with --cache ");
        words_shell(out, top);
        buf_text(out, ", which keeps the changes in a private layer of this project, or with --rw ");
        words_shell(out, dir);
        buf_text(out, ", which changes your own files");
        return;
    }
    buf_text(out, "allow with --rw ");
    words_shell(out, dir);
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
    if (is_read_only_workspace(d, policy)) {
        const char *by = policy_origin(policy, policy->read_only_origin, origin, sizeof origin);
        buf_text(out, "' failed: the workspace is read-only in this box (");
        words_safe(out, by);
        buf_char(out, ')');
        begin_offer(out, ret_offer);
        writable_workspace(by, policy->workspace, out);
        return;
    }
    const enum path_access access = policy ? policy_access(policy, d->target, &rule) : PATH_RO;
    if (access == PATH_HIDE && rule) {
        hidden_name(policy, rule, d->target, out, ret_offer);
        return;
    }
    if (access == PATH_RO && rule) {
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
    if (is_browsers_profile(d->target)) {
        buf_text(out, own_profile);
        return;
    }
    char real[PATH_MAX];
    const char *home = getenv("HOME");
    if (home && realpath(home, real)) /* targets are real paths; HOME may be a link, or written otherwise */
        home = real;
    const bool above = !itself && to_existing(dir);
    if (!itself && (!n || !strchr(dir + 1, '/') || (home && path_at_or_below(home, dir)) ||
                    is_of_all_programs(home, dir, above))) { /* that would be too much to allow */
        buf_text(out, "do it outside the box");
        if (same(d->action, "create")) /* of a lock or a temporary file --rw would be no help: no path is named */
            buf_text(out, ", or create what the command needs there first and allow that with --rw PATH");
        return;
    }
    writable_directory(home, dir, itself, out);
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
    static const char types[][16] = {[SOCK_STREAM] = "SOCK_STREAM",
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
    if (type > 0 && type < (int)(sizeof types / sizeof *types) && types[type][0])
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

/* Of a daemon that starts programs, or machines, with any file of the host in them. */
static bool is_a_managers(const char *socket)
{
    static const char names[][20] = {"docker.sock", "podman.sock",    "containerd.sock",
                                     "crio.sock",   "buildkitd.sock", "libvirt-sock"};
    const char *slash = socket ? strrchr(socket, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++) {
        if (same(slash + 1, names[i]))
            return true;
    }
    return false;
}

/* What ends an act of git's that a refused file of its state has stopped, because git says the name of no command then; "" if none. */
static const char *git_way_out(const char *rule)
{
    static const char *const acts[][2] = {
        {"rebase-merge/", "undo what git has begun ('git rebase --abort'); then "},
        {"rebase-apply/", "undo what git has begun ('git am --abort' or 'git rebase --abort'); then "},
        {"sequencer/", "undo what git has begun ('git cherry-pick --abort' or 'git revert --abort'); then "}};
    for (size_t i = 0; rule && i < sizeof acts / sizeof *acts; i++) {
        if (str_starts(str_of(rule), str_of(acts[i][0])))
            return acts[i][1];
    }
    return "";
}

/* The option that lets a box use one key of the agent that listens there; NULL if it is none that is known. */
static const char *agent_with_keys(const char *target)
{
    const char *name = strrchr(target, '/'), *ssh = getenv("SSH_AUTH_SOCK");
    if ((name && same(name, "/S.gpg-agent.ssh")) || (ssh && same(ssh, target)))
        return "ssh-agent";
    return name && same(name, "/S.gpg-agent") ? "gpg-agent" : NULL;
}

/* What allows a refusal by a rule, after the sentence's beginning. */
static void rule_offer(const struct denial *d, const struct policy *policy, bool succeeded, struct buf *out)
{
    if (d->origin && strstr(d->origin, OWN_ORIGIN)) {
        buf_text(out, "it cannot be changed in a box; change it outside");
    } else if (d->origin && strstr(d->origin, ENV_ORIGIN)) {
        buf_text(out, "show such files with --env-files");
    } else if (d->rule && same(d->origin, "--read-only")) { /* of a session, the policy is not here */
        writable_workspace(d->origin, d->rule, out);
    } else if (same(d->kind, "file") && same(d->action, "mount")) {
        buf_text(out, "no option allows it: mount a directory instead, or do the mount outside the box");
    } else if (same(d->kind, "socket")) {
        const char *agent = agent_with_keys(d->target);
        if (agent)
            buf_printf(
                out,
                "let it use one key of yours with --%s KEY; all that the agent can do is allowed with --unix-socket ",
                agent);
        else
            buf_text(out, "allow with --unix-socket ");
        words_shell(out, d->target);
        if (is_a_managers(d->target))
            buf_text(out, ", which lets the command do on this machine all that the daemon may, without the box");
    } else if (same(d->origin, "built in") && d->rule && d->rule[0] == '/') {
        buf_text(out, "it cannot be changed in a box; change it outside");
    } else if (is_guarded_name(policy, d) || same(d->origin, "built in")) {
        const bool name = is_guarded_name(policy, d), one = name && !is_repositorys(d->rule);
        const bool all = !one && !is_no_names(d->rule);
        if (all && succeeded) {
            buf_text(out, "the command succeeded without it; if it is needed, do it outside the box");
            return;
        }
        buf_text(out, name ? git_way_out(d->rule) : "");
        buf_text(out, "do it outside the box");
        if (one) {
            buf_text(out, ", or allow this name with --guard-allow ");
            words_shell(out, d->rule);
        } else if (all) {
            buf_text(out, ", or run with --guard off");
        }
    } else {
        rule_remedy(d, out);
    }
}

/* The set of hosts of a package manager among the first words of the command line ("node /usr/bin/npm ci"), or NULL. */
static const char *hosts_of(const char *line)
{
    static const char *const known[][2] = {{"npm", "@npm"},      {"npx", "@npm"},         {"yarn", "@npm"},
                                           {"pnpm", "@npm"},     {"pip", "@pypi"},        {"pip3", "@pypi"},
                                           {"uv", "@pypi"},      {"poetry", "@pypi"},     {"cargo", "@cargo"},
                                           {"go", "@go"},        {"mvn", "@maven"},       {"gradle", "@maven"},
                                           {"gem", "@rubygems"}, {"bundle", "@rubygems"}, {"composer", "@packagist"}};
    for (int i = 0; line && i < 3; i++) {
        line += strspn(line, " '");
        struct str word = {line, strcspn(line, " '")};
        line += word.n;
        for (size_t c = word.n; c > 0; c--) {
            if (word.p[c - 1] == '/') {
                word = str_skip(word, c);
                break;
            }
        }
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (str_is(word, known[k][0]))
                return known[k][1];
        }
    }
    return NULL;
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
    } else if (same(d->kind, "file") && d->target[0] == '/' &&
               (same(d->how, "mount") || (!same(d->action, "read") && is_read_only_workspace(d, policy)))) {
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
        const char *set = hosts_of(d->argv);
        if (set)
            buf_printf(out, " (its package registry: %s)", set);
    } else if (same(d->kind, "ssh-agent") || same(d->kind, "gpg-agent")) {
        agent_denial(d, out, ret_offer);
    } else {
        return false;
    }
    return true;
}

size_t words_denial(const struct denial *d, const struct policy *policy, bool succeeded, struct buf *out)
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
    rule_offer(d, policy, succeeded, out);
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
