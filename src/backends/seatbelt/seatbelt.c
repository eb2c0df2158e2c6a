/*
 * Generates the text of a profile. The last matching rule decides, so it goes from the general to the specific:
 *
 *     base        everything refused except what a process needs; or everything allowed; or a user's own profile
 *     files       places by depth: writable, readable, protected, hidden; private directories
 *     own         pinfold's own files, which no rule makes accessible, except the box's private directories
 *     names       the guarded names below every writable tree, and patterns: they only ever deny
 *     network     closed, to the egress proxy's port, or open; Unix sockets by name
 *
 * Paths are passed as parameters (-D NAME=PATH), which need no quoting, and as regular expressions where a rule is
 * about names. Those ignore case, like the file systems of macOS, and accept anything for a character that could be
 * encoded in two ways. A deny rule may cover more than it must, never less.
 *
 * Something denied in a writable tree could be moved away with a directory above it: those cannot be unlinked or
 * renamed (pins). A file that may not be written may not be linked either, because its other name could be written.
 */
#include "backends/seatbelt/seatbelt.h"

#include <stdio.h>
#include <stdlib.h>
#include "backends/engine.h"
#include "match/path.h"

#define MAX_PROFILE (512u << 10) /* macOS accepts 1 MiB of arguments and environment */

#define READS  "file-read* file-map-executable process-exec*"
#define WRITES "file-write* file-link"

static const char base_restrictive[] =
    "(deny default)\n"
    "; what a process is\n"
    "(allow process-exec* process-fork)\n"
    "(allow signal (target same-sandbox))\n"
    "(allow process-info* (target same-sandbox))\n"
    "(allow mach-priv-task-port (target same-sandbox))\n"
    "(allow user-preference-read)\n"
    "(allow ipc-posix-sem ipc-posix-shm)\n"
    "(allow pseudo-tty)\n"
    "(allow iokit-open (iokit-registry-entry-class \"RootDomainUserClient\"))\n"
    "(allow mach-lookup\n"
    "  (global-name \"com.apple.PowerManagement.control\")\n"
    "  (global-name \"com.apple.bsd.dirhelper\")\n"
    "  (global-name \"com.apple.logd\")\n"
    "  (global-name \"com.apple.system.logger\")\n"
    "  (global-name \"com.apple.system.notification_center\")\n"
    "  (global-name \"com.apple.system.opendirectoryd.libinfo\")\n"
    "  (global-name \"com.apple.system.opendirectoryd.membership\"))\n"
    "(allow sysctl-read\n"
    "  (sysctl-name-prefix \"hw.\")\n"
    "  (sysctl-name-prefix \"machdep.cpu.\")\n"
    "  (sysctl-name-prefix \"kern.proc.pgrp.\")\n"
    "  (sysctl-name-prefix \"kern.proc.pid.\")\n"
    "  (sysctl-name-prefix \"net.routetable.\")\n"
    "  (sysctl-name \"kern.argmax\" \"kern.hostname\" \"kern.maxfilesperproc\" \"kern.maxproc\" \"kern.ngroups\"\n"
    "    \"kern.osproductversion\" \"kern.osrelease\" \"kern.ostype\" \"kern.osvariant_status\" \"kern.osversion\"\n"
    "    \"kern.secure_kernel\" \"kern.usrstack64\" \"kern.version\" \"sysctl.proc_cputype\" \"vm.loadavg\"))\n";

static const char base_permissive[] = "(allow default)\n"
                                      "; what would act outside in the box's name\n"
                                      "(deny appleevent-send job-creation lsopen)\n"
                                      "(deny signal)\n"
                                      "(allow signal (target same-sandbox))\n"
                                      "(deny process-info*)\n"
                                      "(allow process-info* (target same-sandbox))\n"
                                      "(deny " WRITES ")\n";

static const char devices[] =
    "; devices\n"
    "(allow file-read* file-write-data file-ioctl\n"
    "  (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/random\") (literal \"/dev/urandom\")\n"
    "  (literal \"/dev/tty\") (literal \"/dev/ptmx\") (literal \"/dev/dtracehelper\")\n"
    "  (regex \"^/dev/ttys[0-9]+$\") (subpath \"/dev/fd\"))\n";

enum sight { SEEN, WRITABLE, HIDDEN };

struct spot {
    const char *path;
    enum path_access access;
    bool own;
};

struct param {
    const char *name, *value;
};

struct profile_text {
    const struct seatbelt_ask *ask;
    const struct policy *policy;
    struct arena *mem;
    struct buf out;
    struct spot *spots; /* parents first */
    size_t n_spots;
    const char **roots; /* writable trees */
    size_t n_roots;
    const char *own; /* directory of private directories, or NULL */
    struct param *params;
    size_t n_params;
    bool full; /* out of memory */
};

/* ---- output ---- */

static void quoted(struct buf *out, const char *s)
{
    buf_char(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_char(out, '\\');
        buf_char(out, *s);
    }
    buf_char(out, '"');
}

/* (param "DIR_3"): a path is passed only once. */
static void param(struct profile_text *t, const char *path)
{
    size_t i = 0;
    while (i < t->n_params && !same(t->params[i].value, path))
        i++;
    if (i == t->n_params) {
        struct param *p = arena_push(t->mem, &t->params, &t->n_params, sizeof *p);
        char *name = arena_printf(t->mem, "DIR_%u", (unsigned)i);
        if (!p || !name) {
            t->full = true;
            return;
        }
        *p = (struct param){name, path};
    }
    buf_printf(&t->out, "(param \"%s\")", t->params[i].name);
}

static void add_param(struct profile_text *t, const char *name, const char *value)
{
    struct param *p = arena_push(t->mem, &t->params, &t->n_params, sizeof *p);
    if (p)
        *p = (struct param){name, value};
    t->full |= !p;
}

static void rule(struct profile_text *t, const char *verb, const char *filter, const char *path)
{
    buf_printf(&t->out, "(%s (%s ", verb, filter);
    param(t, path);
    buf_text(&t->out, "))\n");
}

/* ---- regular expressions ---- */

static void put_byte(struct buf *out, unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        buf_printf(out, "[%c%c]", c | 32, c & ~32);
    else if (strchr("\\^$.*+?()[]{}|", c))
        buf_printf(out, "\\%c", c);
    else
        buf_char(out, (char)c);
}

static bool odd(unsigned char c)
{
    return c < 32 || c > 126;
}

/* The literal `s`, ignoring case; runs of non-ASCII match any part of a name. */
static void put_bytes(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!odd((unsigned char)s.p[i]))
            put_byte(out, (unsigned char)s.p[i]);
        else if (i == 0 || !odd((unsigned char)s.p[i - 1]))
            buf_text(out, "[^/]+");
    }
}

static void put_literal(struct buf *out, const char *s)
{
    put_bytes(out, str_of(s));
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether a member of a set can be written in an expression, in both cases: letters, digits, ranges. */
static bool plain_member(uint32_t low, uint32_t high)
{
    if (low >= 127 || high >= 127)
        return false;
    const char a = (char)low, b = (char)high;
    if (low == high)
        return letter(a) || digit(a) || a == '_' || a == '.';
    return digit(a) ? digit(b) : letter(a) && letter(b) && ((low ^ high) & 32) == 0;
}

static void put_member(struct buf *out, uint32_t low, uint32_t high, bool other_case)
{
    const uint32_t turn = other_case && letter((char)low) ? 32 : 0;
    if (other_case && !turn)
        return;
    buf_char(out, (char)(low ^ turn));
    if (low != high)
        buf_printf(out, "-%c", (char)(high ^ turn));
}

static const char ONE[] = "[^/][^/]?[^/]?[^/]?"; /* a character has up to four bytes */

/* A set, ignoring case as the rule means it; any character where the expression would have another meaning. */
static void put_set(struct buf *out, const struct glob_part *part)
{
    uint32_t low, high;
    bool plain = !part->negated; /* what is outside of it in one case may be inside in the other, and beyond ASCII */
    for (struct str m = part->members; plain && glob_member(&m, &low, &high);)
        plain = plain_member(low, high);
    if (!plain) {
        buf_text(out, ONE);
        return;
    }
    buf_char(out, '[');
    for (int other = 0; other < 2; other++)
        for (struct str m = part->members; glob_member(&m, &low, &high);)
            put_member(out, low, high, other);
    buf_char(out, ']');
}

/* A pattern, whose wildcards do not match slashes; non-ASCII matches any part of a name. */
static void put_pattern(struct buf *out, struct str s)
{
    struct glob_part part;
    bool odd_before = false, odd_now;
    for (enum glob_kind kind; (kind = glob_next(&s, &part)) != GLOB_END; odd_before = odd_now) {
        odd_now = kind == GLOB_CHARACTER && (part.character < 32 || part.character > 126);
        if (kind == GLOB_WRONG) { /* policies contain no invalid patterns */
            buf_text(out, "[^/]*");
            return;
        }
        if (kind == GLOB_MANY)
            buf_text(out, "[^/]*");
        else if (kind == GLOB_ONE)
            buf_text(out, ONE);
        else if (kind == GLOB_SET)
            put_set(out, &part);
        else if (!odd_now)
            put_byte(out, (unsigned char)part.character);
        else if (!odd_before)
            buf_text(out, "[^/]+");
    }
}

/* Names separated by slashes; the last one may be a pattern. */
static void put_name_rules(struct buf *out, const char *names, bool pattern)
{
    const struct str last = str_of(path_name(names));
    put_bytes(out, (struct str){names, pattern ? (size_t)(last.p - names) : strlen(names)});
    if (pattern)
        put_pattern(out, last);
}

/* A literal directory: patterns in it apply nowhere else. */
static void put_dir(struct buf *out, const char *dir)
{
    buf_char(out, '^');
    for (const char *s = same(dir, "/") ? "" : dir; *s; s++) {
        char one[2] = {*s, 0};
        if ((*s | 32) >= 'a' && (*s | 32) <= 'z')
            buf_char(out, *s);
        else if (!odd((unsigned char)*s) || s == dir || !odd((unsigned char)s[-1]))
            put_literal(out, one);
    }
    buf_char(out, '/');
}

/* (VERB (regex "...")) with the expression in `b`, which is emptied. */
static void matched(struct profile_text *t, const char *verb, struct buf *b)
{
    t->full |= !buf_ok(b);
    buf_printf(&t->out, "(%s (regex ", verb);
    quoted(&t->out, buf_cstr(b));
    buf_text(&t->out, "))\n");
    buf_free(b);
}

/* ---- places ---- */

static const char *real_path(const struct profile_text *t, const char *path)
{
    const struct path_fact *f = facts_path(t->ask->plan->facts, path);
    return f && f->real ? f->real : path;
}

static void spot(struct profile_text *t, const char *path, enum path_access access, bool own)
{
    const char *real = real_path(t, path);
    struct spot *s = arena_push(t->mem, &t->spots, &t->n_spots, sizeof *s);
    t->full |= !s;
    if (!s)
        return;
    size_t i = t->n_spots - 1; /* parents first; of equals the later rule comes later */
    for (; i > 0 && path_order(t->spots[i - 1].path, real) > 0; i--)
        t->spots[i] = t->spots[i - 1];
    t->spots[i] = (struct spot){real, access, own};
}

static bool is_own(const struct policy *p, uint32_t origin)
{
    return origin < p->n_origins && same(p->origins[origin].file, OWN_ORIGIN);
}

static void gather(struct profile_text *t)
{
    const struct policy *p = t->policy;
    spot(t, p->workspace, p->workspace_read_only ? PATH_RO : PATH_RW, false);
    for (size_t i = 0; i < p->n_mounts; i++) {
        if (same(p->mounts[i].from, p->mounts[i].to))
            spot(t, p->mounts[i].to, p->mounts[i].read_only ? PATH_RO : PATH_RW, false);
    }
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        if (!r->any_depth && !r->pattern)
            spot(t, r->path, r->access == PATH_CACHE ? PATH_RO : r->access, is_own(p, r->origin));
    }
    for (size_t i = 0; i < t->n_spots; i++) {
        const char **root =
            t->spots[i].access == PATH_RW ? arena_push(t->mem, &t->roots, &t->n_roots, sizeof *root) : NULL;
        if (root)
            *root = t->spots[i].path;
    }
    if (t->ask->plan->facts->state_home)
        t->own = path_join(t->mem, t->ask->plan->facts->state_home, "pinfold");
}

/* The access directly around spots[i], from the spots above it. */
static enum sight sight_around(const struct profile_text *t, size_t i)
{
    enum sight r = SEEN;
    for (size_t k = 0; k < i; k++) {
        const struct spot *s = &t->spots[k];
        if (!path_below(t->spots[i].path, s->path))
            continue;
        if (s->access == PATH_RW)
            r = WRITABLE;
        else if (s->access == PATH_HIDE)
            r = HIDDEN;
        else if (s->access == PATH_RO || r == WRITABLE)
            r = r == HIDDEN && s->access == PATH_PROTECT ? HIDDEN : SEEN;
    }
    return r;
}

/* Whether a directory above `path` is in a writable place, so that it could be moved away. */
static bool movable(const struct profile_text *t, const char *path)
{
    for (size_t k = 0; k < t->n_roots; k++) {
        if (path_at_or_below(path, t->roots[k]))
            return true;
    }
    return false;
}

/* Directories between `path` and the root cannot be moved. */
static void pins(struct profile_text *t, const char *path)
{
    for (const char *dir = path_dir(t->mem, path); dir && dir[1]; dir = path_dir(t->mem, dir)) {
        if (!movable(t, dir))
            return;
        rule(t, "deny file-write-unlink", "literal", dir);
    }
}

/* A visible place inside a hidden one needs a way to it. */
static void way_to(struct profile_text *t, const char *path)
{
    for (const char *dir = path_dir(t->mem, path); dir && dir[1]; dir = path_dir(t->mem, dir))
        rule(t, "allow file-read-metadata", "literal", dir);
}

/* The same place under names that file systems treat as equal. */
static void by_any_name(struct profile_text *t, const char *verb, const char *path)
{
    struct buf b = BUF(8u << 10);
    buf_char(&b, '^');
    put_literal(&b, path);
    buf_text(&b, "(/.*)?$");
    matched(t, verb, &b);
}

static void put_spot(struct profile_text *t, size_t i)
{
    const struct spot *s = &t->spots[i];
    enum sight r = sight_around(t, i);
    bool custom = t->ask->custom;
    switch (s->access) {
    case PATH_RW:
        if (r == HIDDEN)
            way_to(t, s->path);
        if (!custom || r == HIDDEN)
            rule(t, "allow " READS " " WRITES, "subpath", s->path);
        else
            rule(t, "allow " WRITES, "subpath", s->path);
        break;
    case PATH_RO:
    case PATH_CACHE:
        rule(t, "deny " WRITES, "subpath", s->path);
        if (r == HIDDEN) {
            way_to(t, s->path);
            rule(t, "allow " READS, "subpath", s->path);
        }
        break;
    case PATH_PROTECT:
        rule(t, "deny " WRITES, "subpath", s->path);
        break;
    case PATH_HIDE:
        rule(t, "deny file* process-exec*", "subpath", s->path);
        break;
    }
    if (s->access == PATH_RW || !movable(t, s->path))
        return;
    by_any_name(t, s->access == PATH_HIDE ? "deny file* process-exec*" : "deny " WRITES, s->path);
    pins(t, s->path);
}

static void put_file_rules(struct profile_text *t)
{
    buf_text(&t->out, "; files\n");
    if (!t->ask->custom)
        buf_text(&t->out, "(allow " READS ")\n");
    else
        buf_text(&t->out, "(deny " WRITES ")\n");
    for (size_t i = 0; i < t->n_spots; i++) {
        if (!t->spots[i].own)
            put_spot(t, i);
    }
    buf_text(&t->out, devices);
}

/* ---- names ---- */

/* NAME at any depth below `dir`; with several components also those above it, so that they cannot be moved into
   place. */
static void at_any_depth(struct profile_text *t, const char *verb, const char *dir, const char *name, bool pattern,
                         bool top)
{
    struct buf b = BUF(16u << 10);
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *head = arena_str(t->mem, (struct str){name, (size_t)(slash - name)});
        t->full |= !head;
        put_dir(&b, dir);
        buf_text(&b, top ? "" : "(.*/)?");
        put_literal(&b, head ? head : "");
        buf_char(&b, '$');
        matched(t, "deny file-write-create file-write-unlink", &b);
    }
    put_dir(&b, dir);
    buf_text(&b, top ? "" : "(.*/)?");
    put_name_rules(&b, name, pattern);
    buf_text(&b, "(/.*)?$");
    matched(t, verb, &b);
}

static const char *verb_of(enum path_access a)
{
    return a == PATH_HIDE ? "deny file* process-exec*" : "deny " WRITES;
}

/* Applies in writable trees, too, because things could be moved there. */
static void put_any_depth(struct profile_text *t, const struct path_rule *r)
{
    at_any_depth(t, verb_of(r->access), real_path(t, r->below), r->path, r->pattern, false);
    for (size_t i = 0; i < t->n_roots; i++) {
        if (!same(r->below, "/") && !path_at_or_below(t->roots[i], r->below))
            at_any_depth(t, verb_of(r->access), t->roots[i], r->path, r->pattern, false);
    }
    if (t->own && !same(r->below, "/"))
        at_any_depth(t, verb_of(r->access), t->own, r->path, r->pattern, false);
}

static void put_patterns(struct profile_text *t)
{
    const struct policy *p = t->policy;
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        struct buf b = BUF(16u << 10);
        if (r->any_depth) {
            put_any_depth(t, r);
        } else if (r->pattern) {
            const char *dir = path_dir(t->mem, r->path);
            t->full |= !dir;
            put_dir(&b, dir ? real_path(t, dir) : "/");
            put_pattern(&b, str_of(path_name(r->path)));
            buf_text(&b, "(/.*)?$");
            matched(t, verb_of(r->access), &b);
            if (dir && movable(t, dir))
                pins(t, arena_printf(t->mem, "%s/x", real_path(t, dir)));
        }
    }
}

static void put_guards(struct profile_text *t)
{
    const struct policy *p = t->policy;
    if (p->guard == GUARD_OFF || p->n_guards == 0)
        return;
    buf_text(&t->out, "; guarded names\n");
    for (size_t i = 0; i < p->n_guards; i++) {
        if (p->guards[i].everyday && p->everyday == EVERYDAY_ALLOW)
            continue;
        /* In private directories, too: a directory with such a name in it could be moved out of them. */
        if (t->own && p->guards[i].place == GUARD_ANY_DEPTH)
            at_any_depth(t, "deny " WRITES, t->own, p->guards[i].name, false, false);
        for (size_t k = 0; k < t->n_roots; k++)
            at_any_depth(t,
                         p->guard == GUARD_STRICT
                             ? "deny " WRITES
                             : "deny file-write-data file-write-unlink file-write-mode file-write-owner "
                               "file-write-xattr file-write-flags file-write-times file-link",
                         t->roots[k], p->guards[i].name, p->guards[i].pattern, p->guards[i].place == GUARD_ROOT);
    }
}

static void put_own(struct profile_text *t)
{
    buf_text(&t->out, "; pinfold's own\n");
    for (size_t i = 0; i < t->n_spots; i++) {
        if (t->spots[i].own)
            put_spot(t, i);
    }
    for (size_t i = 0; i < t->ask->plan->n_make_dirs; i++) { /* below its state directory, and the box's */
        if (!t->ask->plan->make_dirs[i].whiteout) {
            way_to(t, t->ask->plan->make_dirs[i].path);
            rule(t, "allow " READS " " WRITES, "subpath", t->ask->plan->make_dirs[i].path);
        }
    }
}

/* ---- network ---- */

/* The last port in "[ADDR:][HOST:]BOX" or "HOST:PORT". */
static unsigned last_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    return (unsigned)strtoul(colon ? colon + 1 : text, NULL, 10);
}

static void put_ports(struct profile_text *t)
{
    const struct policy *p = t->policy;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        const struct net_rule *r = &p->net_rules[i];
        if (r->verb == NET_RULE_REACH)
            buf_printf(&t->out, "(allow network-outbound (remote ip \"localhost:%u\"))\n", last_port(r->text));
        else if (r->verb == NET_RULE_PUBLISH)
            buf_printf(&t->out, "(allow network-bind network-inbound (local ip \"localhost:%u\"))\n",
                       last_port(r->text));
    }
}

static void put_network_rules(struct profile_text *t)
{
    const struct policy *p = t->policy;
    buf_text(&t->out, "; network\n");
    if (p->net == NET_HOST) {
        buf_text(&t->out, "(allow network*)\n(allow system-socket)\n"
                          "(allow mach-lookup\n"
                          "  (global-name \"com.apple.SystemConfiguration.configd\")\n"
                          "  (global-name \"com.apple.networkd\")\n"
                          "  (global-name \"com.apple.trustd.agent\"))\n");
    } else {
        buf_text(&t->out, "(deny network*)\n");
        if (p->net == NET_ALLOW) {
            buf_printf(&t->out, "(allow network-outbound (remote ip \"localhost:%u\"))\n", t->ask->proxy_port);
            put_ports(t);
        }
    }
    if (p->n_unix_sockets || t->ask->plan->n_make_dirs)
        buf_text(&t->out, "(allow system-socket (socket-domain AF_UNIX))\n");
    for (size_t i = 0; i < t->ask->plan->n_make_dirs; i++) { /* the box's own sockets */
        const char *dir = t->ask->plan->make_dirs[i].path;
        if (t->ask->plan->make_dirs[i].whiteout)
            continue;
        buf_text(&t->out, "(allow network-bind network-inbound (local unix-socket (subpath ");
        param(t, dir);
        buf_text(&t->out, ")))\n(allow network-outbound (remote unix-socket (subpath ");
        param(t, dir);
        buf_text(&t->out, ")))\n");
    }
    for (size_t i = 0; i < p->n_unix_sockets; i++) {
        buf_text(&t->out, "(allow network-outbound (remote unix-socket (subpath ");
        param(t, real_path(t, p->unix_sockets[i]));
        buf_text(&t->out, ")))\n");
    }
}

/* ---- all of it ---- */

/* A directory of the run: the temporary one, or the private layer over the home's directory of that name. */
static const char *made_dir(const struct plan *plan, const char *of_home)
{
    for (size_t i = 0; i < plan->n_make_dirs; i++) {
        const struct plan_dir *d = &plan->make_dirs[i];
        if (of_home ? str_ends(str_of(d->path), str_of(of_home)) : d->temporary)
            return d->path;
    }
    return "/dev/null";
}

static void put_base(struct profile_text *t)
{
    const struct policy *p = t->policy;
    const struct plan *plan = t->ask->plan;
    if (!t->ask->custom) {
        buf_text(&t->out, "(version 1)\n");
        buf_text(&t->out, p->seatbelt_base == SEATBELT_PERMISSIVE ? base_permissive : base_restrictive);
        return;
    }
    buf_text(&t->out, t->ask->custom);
    buf_text(&t->out, "\n");
    add_param(t, "TARGET_DIR", real_path(t, p->workspace)); /* a parameter that other tools pass to such profiles */
    add_param(t, "HOME_DIR", plan->facts->home ? real_path(t, plan->facts->home) : "/var/empty");
    add_param(t, "TMP_DIR", made_dir(plan, NULL));
    add_param(t, "CACHE_DIR", made_dir(plan, "/.cache/upper"));
    size_t n = 0;
    for (size_t i = 0; i < t->n_roots; i++) {
        if (!same(t->roots[i], real_path(t, p->workspace)))
            add_param(t, arena_printf(t->mem, "ALLOWED_DIR_%u", (unsigned)n++), t->roots[i]);
    }
    while (n < 5)
        add_param(t, arena_printf(t->mem, "ALLOWED_DIR_%u", (unsigned)n++), "/dev/null");
}

static int put_argv(struct profile_text *t, const char *profile, struct seatbelt *ret)
{
    const char *const *command = t->ask->argv;
    size_t n = 0, at = 0;
    while (command[n])
        n++;
    const char **argv = arena_zero(t->mem, (n + 2 * t->n_params + 6) * sizeof *argv);
    if (!argv)
        return -ENOMEM;
    argv[at++] = SEATBELT_PROGRAM;
    argv[at++] = "-p";
    argv[at++] = profile;
    for (size_t i = 0; i < t->n_params; i++) {
        argv[at++] = "-D";
        argv[at] = arena_printf(t->mem, "%s=%s", t->params[i].name, t->params[i].value);
        if (!argv[at++])
            return -ENOMEM;
    }
    argv[at++] = "--";
    for (size_t i = 0; i < n; i++)
        argv[at++] = command[i];
    *ret = (struct seatbelt){.profile = profile, .argv = argv};
    return 0;
}

int seatbelt_make(const struct seatbelt_ask *ask, struct arena *mem, struct seatbelt *ret, struct err *e)
{
    struct profile_text t = {.ask = ask, .policy = ask->plan->policy, .mem = mem, .out = BUF(MAX_PROFILE)};
    int r = ask->custom ? seatbelt_check(str_of(ask->custom), false, e) : 0;
    if (r < 0)
        return err_wrap(e, r, "seatbelt.file '%s'", t.policy->seatbelt_file ? t.policy->seatbelt_file : "");
    gather(&t);
    put_base(&t);
    put_file_rules(&t);
    put_own(&t);
    put_guards(&t);
    put_patterns(&t);
    put_network_rules(&t);
    const char *profile = buf_ok(&t.out) ? arena_str(mem, buf_view(&t.out)) : NULL;
    bool long_one = !buf_ok(&t.out);
    buf_free(&t.out);
    if (long_one)
        return err_say(e, ERR_CANNOT, "seatbelt: the profile is longer than %u KiB; use fewer rules about names",
                       MAX_PROFILE >> 10);
    if (!profile || t.full || arena_failed(mem) || put_argv(&t, profile, ret) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make the Seatbelt profile");
    r = seatbelt_check(str_of(profile), !ask->custom, e);
    return r < 0 ? err_wrap(e, r, "the generated profile") : 0;
}

void seatbelt_facts(struct facts *f)
{
    static const struct {
        enum feature what;
        const char *why;
    } cannot[] = {
        {FEATURE_REMAP, "Seatbelt checks paths and cannot mount"},
        {FEATURE_NETWORK_TRANSPARENT, "macOS has no network namespaces: programs must use the proxy"},
        {FEATURE_NETWORK_PORTS, "macOS has no network namespaces: programs must use the proxy"},
        {FEATURE_NETWORK_ADDRESSES, "macOS has no network namespaces: programs must use the proxy"},
        {FEATURE_PID_NAMESPACE, "macOS has no process namespaces; other processes can be listed, not signalled"},
        {FEATURE_PRIVATE_IPC, "macOS has no IPC namespaces"},
        {FEATURE_PRIVATE_TMP, "/tmp cannot be written; TMPDIR names a directory of the run"},
        {FEATURE_FRESH_PROC, "macOS has no /proc"},
        {FEATURE_NO_SURVIVORS, "macOS has no process namespaces; a process that left its session can live on"},
        {FEATURE_CGROUP_LIMITS, "macOS has no control groups"},
        {FEATURE_LIMIT_MEMORY, "macOS has no control groups"},
        {FEATURE_LIMIT_CPU, "macOS has no control groups"},
        {FEATURE_LIMIT_PROCESSES, "macOS has no control groups"},
        {FEATURE_LIMIT_DISK, "macOS has no control groups"},
        {FEATURE_USER_ROOT, "macOS has no user namespaces"},
    };
    f->engine = "seatbelt";
    f->tier = TIER_LANDLOCK; /* paths are judged in place */
    f->can = ~(features)0;
    for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++) {
        f->can &= ~((features)1 << cannot[i].what);
        f->why_not[cannot[i].what] = cannot[i].why;
        f->remedy[cannot[i].what] = NULL;
    }
    f->cgroup = CGROUP_NONE;
    f->catch = CATCH_SOCKET;
    f->notify = true; /* the profile does what the guard would */
    f->landlock_abi = 6;
    f->host_loopback = true;
}

/* ---- the engine ---- */

/* Reads the user's own profile. */
static int read_profile(const char *path, struct arena *mem, const char **ret, struct err *e)
{
    auto_buf struct buf text = BUF(MAX_PROFILE);
    char piece[4096];
    FILE *f = fopen(path, "re");
    if (!f)
        return err_sys(e, ERR_POLICY, errno, "seatbelt.file '%s'", path);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_put(&text, piece, n);
    int no = ferror(f) ? EIO : !buf_ok(&text) ? EFBIG : 0;
    (void)fclose(f);
    if (no)
        return err_sys(e, ERR_POLICY, no, "seatbelt.file '%s'", path);
    *ret = arena_str(mem, buf_view(&text));
    return *ret ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "seatbelt.file");
}

static int seatbelt_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    (void)thorough;
    seatbelt_facts(f);
    if (!f->policy || !same(f->policy->engine, "seatbelt"))
        return err_say(e, ERR_CANNOT, "Seatbelt exists on macOS only");
    f->tool = SEATBELT_PROGRAM;
    return f->policy->seatbelt_file ? read_profile(f->policy->seatbelt_file, mem, &f->seatbelt_custom, e) : 0;
}

static int seatbelt_argv(const struct plan *plan, const struct tool_ask *tool, struct arena *mem,
                         const char *const **ret, struct err *e)
{
    static const char *const command[] = {"COMMAND", NULL};
    const struct seatbelt_ask ask = {
        .plan = plan, .argv = command, .custom = plan->facts->seatbelt_custom, .proxy_port = EGRESS_PROXY_PORT};
    struct seatbelt made;
    (void)tool;
    int r = seatbelt_make(&ask, mem, &made, e);
    if (r == 0)
        *ret = made.argv;
    return r;
}

static int seatbelt_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    (void)ask;
    (void)ret;
    return err_say(
        e, ERR_CANNOT,
        "Seatbelt exists on macOS only: 'pinfold show-run --engine seatbelt' prints the command line for macOS");
}

static void seatbelt_finish(struct started *s)
{
    (void)s; /* none was started */
}

const struct engine engine_seatbelt = {.name = "seatbelt",
                                       .program = "sandbox-exec",
                                       .probe = seatbelt_probe,
                                       .argv = seatbelt_argv,
                                       .start = seatbelt_start,
                                       .finish = seatbelt_finish};
