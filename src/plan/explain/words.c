/*
 * The words of `pinfold explain` for places, networks and guard rules. One function per kind, so that the text and
 * JSON say the same.
 */
#include "plan/explain/words.h"

#include <inttypes.h>
#include <linux/sched.h>

#include "base/json.h"

const struct named_bit namespace_names[] = {
    {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},       {CLONE_NEWNET, "network"},
    {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},  {CLONE_NEWCGROUP, "cgroup"}, {0, NULL}};

const struct named_bit filter_names[] = {
    {FILTER_GUARD, "guard"},     {FILTER_READS, "reads"},     {FILTER_NO_INET, "no-inet"},
    {FILTER_USERNS, "userns"},   {FILTER_PEERS, "peers"},     {FILTER_DEVICES, "devices"},
    {FILTER_LAYERED, "layered"}, {FILTER_MONITOR, "monitor"}, {0, NULL}};

const char *word_access(const struct plan_place *p)
{
    if (p->act == ACT_NOT_THERE)
        return "not there";
    switch ((enum place_kind)p->kind) {
    case PLACE_ROOT:
        return "read-only";
    case PLACE_TMPFS:
    case PLACE_DEVICES:
    case PLACE_PROC:
    case PLACE_DIR:
    case PLACE_FILE:
    case PLACE_LINK:
        return "private";
    case PLACE_STORAGE:
        return "storage";
    case PLACE_SOCKET:
        return "socket";
    case PLACE_PATTERN:
        return p->hides ? "hidden" : "protected";
    case PLACE_RW:
        return "writable";
    case PLACE_CACHE:
        return "cache";
    case PLACE_RO:
        return "read-only";
    case PLACE_PROTECT:
        return "protected";
    case PLACE_HIDE:
        return "hidden";
    }
    return "";
}

static const char *how_private(const struct plan_place *p)
{
    switch ((enum place_kind)p->kind) {
    case PLACE_TMPFS:
        return "empty tmpfs";
    case PLACE_DEVICES:
        return "the usual nodes only";
    case PLACE_PROC:
        return "the box's own processes only";
    case PLACE_STORAGE:
        return "empty; in a session it is kept until the session is removed";
    default:
        return "";
    }
}

const char *word_how(const struct plan_place *p)
{
    switch ((enum act)p->act) {
    case ACT_NONE:
        return p->kind == PLACE_RO || p->kind == PLACE_PROTECT || p->kind == PLACE_SOCKET || p->kind == PLACE_PATTERN
                   ? "same as its parent directory"
               : p->link && p->entered       ? "a link: what it leads to is hidden"
               : p->kind == PLACE_HIDE       ? "inside something hidden"
               : p->region == REGION_PRIVATE ? "every box has it"
                                             : "inside something writable";
    case ACT_ROOT:
        return "clone of the host's tree";
    case ACT_ATTACH:
        if (p->mount)
            return "clone of another tree";
        if (p->kind == PLACE_SOCKET)
            return "this socket only: a newly created one is not seen";
        if (p->kind == PLACE_RW && p->type == PATH_FILE)
            return "this file only: if the host replaces it, the new file is not seen";
        return p->under_writable && p->region == REGION_READ_ONLY ? "read-only clone, and the guard"
                                                                  : "clone of the tree";
    case ACT_STUB:
        return p->kind == PLACE_PATTERN      ? "names created later are not shown"
               : p->administrators           ? "absent, now and later (later not where mounts lie beside it)"
               : p->stub == STUB_ABSENT      ? (p->type == PATH_MISSING ? "absent, now and later" : "absent in the box")
               : p->stub == STUB_DENIED_DIR  ? "denied directory in a mask"
               : p->stub == STUB_DENIED_FILE ? "denied name in a mask"
                                             : "";
    case ACT_DENY:
        return "denied by a mount";
    case ACT_GUARD:
        return p->kind == PLACE_HIDE || (p->kind == PLACE_PATTERN && p->hides) ? "guard, on every open" : "guard";
    case ACT_HOLLOW:
        return "empty except for what is allowed below";
    case ACT_PRIVATE:
    case ACT_MAKE:
        return how_private(p);
    case ACT_OVERLAY:
        if (p->kind != PLACE_CACHE)
            return "copy-on-write: changes go to a layer";
        return "private layer over the host's";
    case ACT_PART:
        return "private layer over the host's";
    case ACT_WHITEOUT:
        return "absent, now and later";
    case ACT_MQUEUE:
        return "message queues of the box";
    case ACT_VOLUME:
        return "the session's own volume";
    case ACT_LINKED:
    case ACT_PRIVATE_DIR:
        if (p->kind == PLACE_STORAGE)
            return "the session's own directory";
        return "private, starts empty";
    case ACT_LANDLOCK:
        return "Landlock";
    case ACT_REDIRECT:
        return p->upper ? "redirected by a variable" : "stays read-only";
    case ACT_NOT_THERE:
        return "nothing of the host is visible there";
    case ACT_REFUSED:
        return "already refused by permissions";
    }
    return "";
}

const char *word_net(const struct policy *p)
{
    return p->net == NET_HOST ? "host" : p->net == NET_ALLOW ? "allow" : "none";
}

const char *word_catch(enum catch_way way)
{
    static const char *const names[] = {
        [CATCH_TPROXY] = "nftables, every connection",
        [CATCH_ROUTES] = "local routes, listed ports only",
        [CATCH_LOOPBACK] = "fake IPs in 127.64.0.0/10, names and listed ports only",
        [CATCH_SOCKET] = "proxy on a Unix socket only",
    };
    return names[way];
}

const char *word_guard_mode(enum guard_mode mode)
{
    return mode == GUARD_STRICT ? "strict" : mode == GUARD_EXISTING ? "existing" : "off";
}

const char *word_guard_rule(enum guard_rule_kind kind)
{
    static const char names[][12] = {
        [GUARD_RULE_ROOT] = "root",     [GUARD_RULE_NAME] = "name",           [GUARD_RULE_PROTECT] = "protect",
        [GUARD_RULE_HIDE] = "hide",     [GUARD_RULE_HIDE_NAME] = "hide-name", [GUARD_RULE_PIN] = "pin",
        [GUARD_RULE_SOCKET] = "socket", [GUARD_RULE_PRIVATE] = "private",     [GUARD_RULE_BRANCH] = "branch"};
    return kind <= GUARD_RULE_BRANCH ? names[kind] : "?";
}

const char *word_guard_judge(const struct guard_rule *r)
{
    return r->judge == GUARD_GIT_CONFIG ? "git-config" : "refuse";
}

bool place_is_telling(const struct plan_place *p)
{
    return p->kind != PLACE_ROOT && p->kind != PLACE_DIR && p->kind != PLACE_FILE && p->kind != PLACE_LINK;
}

/* What a container or a machine allows is not known here. */
static struct limit files_got(const struct plan *p)
{
    struct limit l = p->policy->limits.open_files;
    if (!p->facts->container && !p->facts->machine && !p->facts->unsandboxed)
        l.value = step_open_files(l.value, p->most_files);
    return l;
}

void limits_of(const struct plan *p, struct named_limit ret[N_LIMITS])
{
    const struct limits *l = &p->policy->limits;
    const struct named_limit all[] = {
        {"memory", l->memory, UNIT_BYTES},       {"cpus", l->cpus, UNIT_CPUS},
        {"processes", l->processes, UNIT_COUNT}, {"disk", l->disk, UNIT_BYTES},
        {"timeout", l->timeout, UNIT_MS},        {"grace", l->grace, UNIT_MS},
        {"output", l->output, UNIT_BYTES},       {"open_files", files_got(p), UNIT_COUNT}};
    _Static_assert(sizeof all / sizeof *all == N_LIMITS, "each limit of policy/policy.h has its name here");
    memcpy(ret, all, sizeof all);
    ret[N_LIMITS - 1].less = ret[N_LIMITS - 1].limit.value != l->open_files.value;
}

void put_limit(struct buf *out, const struct named_limit *l)
{
    uint64_t v = l->limit.value;
    static const char units[] = "KMGT";
    unsigned unit = 0;
    switch (l->unit) {
    case UNIT_BYTES:
        while (v && v % 1024 == 0 && unit < 4) {
            v /= 1024;
            unit++;
        }
        buf_printf(out, "%" PRIu64, v);
        if (unit)
            buf_char(out, units[unit - 1]);
        break;
    case UNIT_CPUS:
        buf_printf(out, "%" PRIu64, v / 1000);
        if (v % 1000)
            buf_printf(out, ".%0*" PRIu64,
                       v % 100 == 0  ? 1
                       : v % 10 == 0 ? 2
                                     : 3,
                       v % 1000 /
                           (v % 100 == 0  ? 100
                            : v % 10 == 0 ? 10
                                          : 1));
        break;
    case UNIT_COUNT:
        buf_printf(out, "%" PRIu64, v);
        break;
    case UNIT_MS:
        if (v % 1000)
            buf_printf(out, "%" PRIu64 "ms", v);
        else
            buf_printf(out, "%" PRIu64 "s", v / 1000);
        break;
    }
}

enum { PATH_COLUMN = 14, HOW_COLUMN = 56, ORIGIN_COLUMN = 92 };

void pad(struct buf *out, size_t line, size_t column)
{
    size_t at = out->n - line;
    do
        buf_char(out, ' ');
    while (!out->broken && ++at < column);
}

void put_row(struct buf *out, const char *word, const char *path, const char *how, const char *origin)
{
    size_t line = out->n;
    buf_printf(out, "  %s", word);
    pad(out, line, PATH_COLUMN);
    utf8_safe(out, str_of(path));
    if (how[0]) {
        if (out->n - line >= HOW_COLUMN && out->n - line + strlen(how) + strlen(origin) + 4 > COLUMNS) {
            buf_char(out, '\n');
            line = out->n;
        }
        pad(out, line, HOW_COLUMN);
        buf_text(out, how);
    }
    if (origin[0]) {
        if (out->n - line + 2 + strlen(origin) > COLUMNS) {
            buf_char(out, '\n');
            line = out->n;
        }
        size_t room = strlen(origin) + ORIGIN_COLUMN > COLUMNS ? COLUMNS - strlen(origin) : ORIGIN_COLUMN;
        pad(out, line, strlen(origin) >= COLUMNS ? 0 : room);
        utf8_safe(out, str_of(origin));
    }
    buf_char(out, '\n');
}
