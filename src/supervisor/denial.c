/*
 * Denials: from the guard's frames, the egress proxy (network.c) and limits, to the result and the audit log.
 *
 * The box decides how many there are, so everything is bounded: equal denials are kept once, at most MAX_DENIALS are
 * kept, the rest is counted. Only kept ones are reported and logged, and at the end how many more there were. A session begins
 * anew an hour after the first of those that it keeps, so that nothing that a box did makes its log blind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/audit.h"
#include "supervisor/parts.h"
#include "supervisor/sink.h"
#include "protocol/guard_image.h"

#define AGAIN_MS 3600000u

static const char *const actions[] = {
    [DENIAL_CREATE] = "create",
    [DENIAL_WRITE] = "write",
    [DENIAL_RENAME] = "rename",
    [DENIAL_LINK] = "link",
    [DENIAL_REMOVE] = "remove",
    [DENIAL_CHANGE] = "change",
    [DENIAL_READ] = "read",
    [DENIAL_CONNECT] = "connect",
    [DENIAL_BIND] = "bind",
    [DENIAL_GIT_CONFIG] = "git-config",
    [DENIAL_MOUNT] = "mount",
    [DENIAL_OWNER] = "owner",
    [DENIAL_GIT_BRANCH] = "git-branch",
};

/* There is no option for it: what does not pass is mended, or is the person's to decide. */
#define COMMIT_REMEDY                                                                                                  \
    "amend the commit so that the hooks pass it (git commit --amend), or move the branch outside the box"
#define BRANCH_REMEDY "move the branch by a command of git's, or do it outside the box"

static uint64_t now_ms_real(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void free_denial(struct denial *d)
{
    free(d->kind);
    free(d->action);
    free(d->target);
    free(d->rule);
    free(d->origin);
    free(d->how);
    free(d->address);
    free(d->command);
    free(d->why);
    free(d->remedy);
    free(d->argv);
    free(d->host);
    *d = (struct denial){0};
}

void denial_free_all(struct box_result *r)
{
    for (size_t i = 0; i < r->n_denials; i++)
        free_denial(&r->denials[i]);
    for (size_t i = 0; i < r->n_permissions; i++)
        free(r->permissions[i].target);
    for (size_t i = 0; i < r->n_pending; i++) {
        free(r->pending[i].target);
        free(r->pending[i].argv);
    }
    free(r->denials);
    r->denials = NULL;
    r->n_denials = r->n_permissions = r->n_pending = 0;
}

static bool was_told(const struct box_result *r, const struct denial *d)
{
    for (size_t i = 0; i < r->n_denials; i++) {
        const struct denial *o = &r->denials[i];
        if (same(o->target, d->target) && same(o->action, d->action) && same(o->kind, d->kind) &&
            same(o->rule, d->rule) && same(o->why ? o->why : "", d->why ? d->why : ""))
            return true;
    }
    return false;
}

bool denial_is_new(const struct box *b, const struct denial *d)
{
    return !was_told(b->result, d);
}

struct audit_event denial_event(struct box_result *r, const struct denial *d)
{
    return (struct audit_event){.id = r->id,
                                .caller_id = r->caller_id,
                                .kind = d->kind,
                                .action = d->action,
                                .target = d->target,
                                .rule = d->rule,
                                .origin = d->origin,
                                .how = d->how,
                                .address = d->address,
                                .command = d->command,
                                .why = d->why,
                                .argv = d->argv,
                                .host = d->host,
                                .remedy = d->remedy,
                                .no = box_errno_name(d->no),
                                .guess = d->guess,
                                .chain = &r->chain,
                                .count = d->count,
                                .pid = d->pid};
}

void denial_log(struct box *b, const struct denial *d)
{
    struct audit_event event = denial_event(b->result, d);
    event.session = b->spec ? b->spec->session : b->exec->session;
    event.scope = b->spec ? b->spec->scope : b->exec->scope;
    event.workspace = b->spec ? b->spec->start.plan->workspace : b->exec->workspace;
    event.monitor = d->seen;
    if (b->spec)
        sink_event(b->spec->sink, &event);
    /* A box in a box has no log: that is the host's, and no box writes it. */
    if (b->audit_given_up || audit_is_nowhere() || (b->spec && b->spec->start.plan->facts->around))
        return;
    int r = b->audit ? 0 : audit_open((struct audit_log **)&b->audit);
    if (r == 0)
        r = audit_write(b->audit, &event);
    if (r < 0) {
        b->result->audit_errno = -r;
        b->audit_given_up = true;
    }
}

bool box_result_deny(struct box_result *r, const struct denial *d)
{
    if (was_told(r, d))
        return false;
    if (r->n_denials < MAX_DENIALS && !r->denials)
        r->denials = calloc(MAX_DENIALS, sizeof *r->denials);
    if (r->n_denials == MAX_DENIALS || !r->denials) {
        r->denials_dropped++;
        return false;
    }
    struct denial mine = {strdup(d->kind), strdup(d->action), strdup(d->target),
                          strdup(d->rule), strdup(d->origin), strdup(d->how),
                          d->pid};
    mine.ruled = d->ruled;
    mine.address = d->address ? strdup(d->address) : NULL;
    mine.command = d->command ? strdup(d->command) : NULL;
    mine.why = d->why ? strdup(d->why) : NULL;
    mine.remedy = d->remedy ? strdup(d->remedy) : NULL;
    mine.argv = d->argv ? strdup(d->argv) : NULL;
    mine.host = d->host ? strdup(d->host) : NULL;
    mine.seen = d->seen;
    mine.soft = d->soft;
    mine.key = d->key;
    mine.count = d->count;
    mine.when_ms = d->when_ms ? d->when_ms : now_ms_real();
    mine.guess = d->guess;
    mine.option = d->option;
    mine.no = d->no;
    if (!mine.kind || !mine.action || !mine.target || !mine.rule || !mine.origin || !mine.how ||
        (d->address && !mine.address) || (d->command && !mine.command) || (d->why && !mine.why) ||
        (d->remedy && !mine.remedy) || (d->argv && !mine.argv) || (d->host && !mine.host)) {
        free_denial(&mine);
        r->denials_dropped++;
        return false;
    }
    r->denials[r->n_denials++] = mine;
    return true;
}

/* The log does not say less than there was without saying so. */
static void log_dropped(struct box *b)
{
    char kind[] = "log", action[] = "dropped", target[64], rule[] = "256 refusals of a run, or of an hour of a session",
         origin[] = "every box", how[] = "limit";
    snprintf(target, sizeof target, "%zu more refusal%s", b->result->denials_dropped,
             b->result->denials_dropped == 1 ? "" : "s");
    if (b->result->denials_dropped && b->spec)
        denial_log(b, &(struct denial){kind, action, target, rule, origin, how, 0});
}

static void begin_anew(struct box *b)
{
    struct box_result *r = b->result;
    if (!b->sessiond || r->n_denials < MAX_DENIALS || now_ms_real() - r->denials[0].when_ms < AGAIN_MS)
        return;
    log_dropped(b);
    for (size_t i = 0; i < r->n_denials; i++)
        free_denial(&r->denials[i]);
    r->n_denials = r->denials_dropped = 0;
}

void denial_keep(struct box *b, const struct denial *d)
{
    struct box_result *r = b->result;
    begin_anew(b);
    if (b->sessiond && b->sessiond->denied)
        b->sessiond->denied(b->sessiond->ctx, d);
    if (!box_result_deny(r, d))
        return;
    if (b->spec && b->spec->on_denial)
        b->spec->on_denial(b->spec->ctx, &r->denials[r->n_denials - 1]);
    denial_log(b, &r->denials[r->n_denials - 1]);
}

/* The rule as it was written, or the reason the guard gave for what is built in; malloc()ed, or NULL. */
static char *rule_text(const struct plan_image *image, uint32_t rule, const char *reason)
{
    if (image && image->guard_bytes >= sizeof(struct guard_table)) {
        const struct guard_table *t = (const void *)((const char *)image + image->guard_at);
        auto_buf struct buf said = BUF(2 * PATH_MAX);
        if (rule < t->n_rules) {
            guard_rule_said(image, &t->rules[rule], &said);
            return buf_take(&said);
        }
    }
    return strdup(*reason ? reason : "default");
}

/* The command line in a frame, malloc()ed, or NULL. */
static char *frame_line(const struct denial_frame *f, size_t n)
{
    const size_t text = n < sizeof *f ? n - offsetof(struct denial_frame, text) : sizeof f->text;
    const bool whole = f->n <= text && f->argv <= DENIAL_ARGV && f->argv <= text - f->n;
    return whole ? box_command_line(f->text + f->n, f->argv) : NULL;
}

/* Of a monitored box: what would allow it. */
static void take_remedy(struct box *b, const struct denial_frame *f, const char *target, struct arena *mem,
                        struct denial *d)
{
    const struct failed_call call = {(enum denial_action)f->action, 0, target};
    struct denial said = {0};
    const char *action = NULL;
    d->no = EACCES;
    if (b->spec->explain(b->spec->explain_ctx, &call, mem, &said, &action) != EXPLAINED_DENIAL)
        return;
    d->remedy = said.remedy;
    d->option = said.option;
}

void denial_frame(struct box *b, const struct denial_frame *f, size_t n)
{
    struct denial_frame copy;
    char origin[512];
    size_t text_n = n - offsetof(struct denial_frame, text);

    /* The bytes come from a process beside hostile ones: ends are made sure of here. */
    memcpy(&copy, f, n < sizeof copy ? n : sizeof copy);
    char *argv = frame_line(&copy, n);
    if (text_n > sizeof copy.text - 2)
        text_n = sizeof copy.text - 2;
    if (copy.n < text_n)
        text_n = copy.n;
    copy.text[text_n] = copy.text[text_n + 1] = 0;
    const char *target = copy.text, *reason = copy.text + strlen(copy.text) + 1;
    b->result->denials_dropped += copy.lost;
    if (!*target) { /* the end of a flood */
        free(argv);
        return;
    }
    bool known_action = copy.action < sizeof actions / sizeof *actions && actions[copy.action];
    bool socket = copy.action == DENIAL_CONNECT || copy.action == DENIAL_BIND;
    const bool branch = copy.action == DENIAL_GIT_BRANCH;
    char kind[8], action[16], how[8], amend[] = COMMIT_REMEDY, otherwise[] = BRANCH_REMEDY;
    const bool pin = same(reason, GUARD_WHY_PIN);
    snprintf(kind, sizeof kind, "%s", socket ? "socket" : "file");
    snprintf(action, sizeof action, "%s", known_action ? actions[copy.action] : "change");
    snprintf(how, sizeof how, "guard");
    char *rule = branch ? strdup("git.verify: required") : rule_text(b->spec->start.plan->image, copy.rule, reason);
    char *said = strdup(target);
    if (rule && said) {
        struct denial d = {kind, action, said, rule, NULL, how, copy.pid};
        d.session = copy.session;
        d.argv = argv;
        auto_arena struct arena *mem = b->spec->explain ? arena_new(EXPLAIN_ARENA) : NULL;
        if (mem)
            take_remedy(b, &copy, said, mem, &d);
        if (branch)
            d.remedy = str_starts(str_of(reason), STR("commit ")) ? amend : otherwise;
        else if (pin)
            d.remedy = NULL; /* a rule for this path alone changes nothing */
        d.why = (branch || pin || copy.action == DENIAL_GIT_CONFIG) && !same(rule, reason) && *reason ? strdup(reason)
                                                                                                      : NULL;
        d.origin =
            strcpy(origin, policy_origin(b->spec->start.plan->policy, copy.origin, (char[512]){0}, sizeof origin));
        denial_keep(b, &d);
        free(d.why);
    } else {
        b->result->denials_dropped++;
    }
    free(rule);
    free(said);
    free(argv);
}

void denial_limit(struct box *b, const struct limits_hit *hit)
{
    const struct limits *l = b->limits;
    char kind[] = "limit", how[] = "limit", action[16], target[96], rule[32], origin[512];
    const struct limit *said = hit->limit == BOX_LIMIT_MEMORY      ? &l->memory
                               : hit->limit == BOX_LIMIT_PROCESSES ? &l->processes
                               : hit->limit == BOX_LIMIT_DISK      ? &l->disk
                               : hit->limit == BOX_LIMIT_TIMEOUT   ? &l->timeout
                                                                   : &l->output;
    const char *unit = hit->limit == BOX_LIMIT_PROCESSES ? "processes"
                       : hit->limit == BOX_LIMIT_TIMEOUT ? "ms"
                                                         : "bytes";

    snprintf(action, sizeof action, "%s", box_limit_name(hit->limit));
    if (said->value == LIMIT_NONE) /* a command's, in a session's machine that has no more */
        snprintf(target, sizeof target, "all of the session's");
    else if (hit->seen)
        snprintf(target, sizeof target, "%llu of %llu %s", (unsigned long long)hit->seen,
                 (unsigned long long)said->value, unit);
    else
        snprintf(target, sizeof target, "%llu %s", (unsigned long long)said->value, unit);
    snprintf(rule, sizeof rule, "limits.%s", action);
    char room[512];
    /* Of a command in a session: its own limits have an origin, the others are the session's. */
    const char *where = b->spec        ? policy_origin(b->spec->start.plan->policy, said->origin, room, sizeof room)
                        : said->origin ? "the command's options"
                                       : "the session";
    snprintf(origin, sizeof origin, "%s", where);
    struct denial d = {kind, action, target, rule, origin, how, 0};
    denial_keep(b, &d);
}

/*
 * Whether the caller could change what is at `path`, or make it: otherwise the box is not why it failed. *ret_way, if not NULL:
 * whether it is in a directory that this machine lacks.
 */
static bool is_callers(const char *path, uint32_t action, bool *ret_way)
{
    char dir[DENIAL_TEXT];
    bool way = false;
    snprintf(dir, sizeof dir, "%s", path);
    if (action != DENIAL_WRITE && action != DENIAL_CHANGE) {
        char *slash = strrchr(dir, '/');
        if (slash)
            slash[slash == dir] = 0;
        /* A directory that only the box has, made as a way to a place of its own: the caller could make it. */
        while (dir[1] && access(dir, F_OK) < 0 && errno == ENOENT && (slash = strrchr(dir, '/'))) {
            slash[slash == dir] = 0;
            way = true;
        }
    }
    if (ret_way)
        *ret_way = way;
    return faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0;
}

/* Told to the session daemon, which keeps it for the command's end. */
static void built_in_session(struct box *b, const struct denial_frame *f, size_t n, char *path)
{
    char file[] = "file", action[16], rule[16] = "read-only", origin[] = "every box", how[] = "mount";
    const bool known = f->action < sizeof actions / sizeof *actions && actions[f->action] && path[0] == '/';
    if (!known || !b->sessiond->denied || (f->action != DENIAL_OWNER && !is_callers(path, f->action, NULL)))
        return;
    snprintf(action, sizeof action, "%s", actions[f->action]);
    if (f->action == DENIAL_OWNER)
        snprintf(rule, sizeof rule, "user");
    struct denial d = {file, action, path, rule, origin, how, f->pid};
    d.session = f->session;
    d.soft = true;
    d.argv = frame_line(f, n);
    b->sessiond->denied(b->sessiond->ctx, &d);
    free(d.argv);
}

/*
 * Namespaces that the box refuses, or that root's box has and the kernel maps no ids in. `f`: of a session's, whose daemon keeps it for
 * the command's end; NULL: of a run, which has failed.
 */
static void keep_namespace(struct box *b, bool map, const struct denial_frame *f, char *argv)
{
    char kind[] = "namespace", action[8], target[24], rule[] = "nested-userns", origin[] = "every box", how[8],
         option[32];
    struct denial d = {kind, action, target, rule, origin, how, f ? f->pid : map ? b->built.map_pid : 0};
    snprintf(action, sizeof action, "%s", map ? "map" : "create");
    snprintf(target, sizeof target, "%s", map ? "user 0" : "a new namespace");
    snprintf(how, sizeof how, "%s", map ? "kernel" : "guard");
    snprintf(option, sizeof option, "%s", map ? "--user 1000:1000" : "--allow-nested-userns");
    d.no = EPERM;
    d.remedy = option;
    d.option = true;
    d.argv = argv;
    if (!f) {
        denial_keep(b, &d);
        return;
    }
    d.session = f->session;
    d.soft = true;
    if (b->sessiond->denied)
        b->sessiond->denied(b->sessiond->ctx, &d);
}

static void built_namespace(struct box *b, const struct denial_frame *f, size_t n, bool map)
{
    char *argv = frame_line(f, n);
    if (b->sessiond) {
        keep_namespace(b, map, f, argv);
        free(argv);
    } else if (map) {
        free(b->built.map_argv);
        b->built.map_argv = argv;
        b->built.map_pid = f->pid;
        b->built.root_map = true;
    } else {
        free(b->built.namespace_argv); /* the last one: a pinfold in the box tries before its command does */
        b->built.namespace_argv = argv;
        b->built.namespaces = true;
    }
}

void built_frame(struct box *b, const struct denial_frame *f, size_t n)
{
    char path[DENIAL_TEXT];
    size_t text_n = n - offsetof(struct denial_frame, text);
    /* Where a box has made a way to a cache, programs try this and that in passing: it displaces no other refusal. */
    bool way = false;
    /* The bytes come from a process beside hostile ones. */
    snprintf(path, sizeof path, "%.*s", (int)(text_n < sizeof path ? text_n : sizeof path - 1), f->text);
    if (f->action == DENIAL_NAMESPACE) {
        built_namespace(b, f, n, same(path, DENIAL_ROOT_MAP));
    } else if (b->sessiond) {
        built_in_session(b, f, n, path);
    } else if (f->action < sizeof actions / sizeof *actions && path[0] == '/' && actions[f->action] &&
               (f->action == DENIAL_OWNER || is_callers(path, f->action, &way)) &&
               !(way && b->built.path && !b->built.way)) {
        b->built.way = way;
        free(b->built.path);
        b->built.path = strdup(path);
        free(b->built.argv);
        b->built.argv = frame_line(f, n);
        b->built.action = f->action;
        b->built.pid = f->pid;
    }
}

void denial_built(struct box *b, bool failed)
{
    char file[] = "file", action[16], rule[] = "read-only", origin[] = "every box", how[] = "mount";
    if (failed && b->built.path) {
        snprintf(action, sizeof action, "%s", actions[b->built.action]);
        if (b->built.action == DENIAL_OWNER)
            snprintf(rule, sizeof rule, "user");
        struct denial d = {file, action, b->built.path, rule, origin, how, b->built.pid};
        d.argv = b->built.argv;
        denial_keep(b, &d);
    }
    if (failed && b->built.namespaces)
        keep_namespace(b, false, NULL, b->built.namespace_argv);
    if (failed && b->built.root_map)
        keep_namespace(b, true, NULL, b->built.map_argv);
    free(b->built.path);
    free(b->built.argv);
    free(b->built.map_argv);
    free(b->built.namespace_argv);
    b->built.path = b->built.argv = b->built.map_argv = b->built.namespace_argv = NULL;
}

/* Whether the box has no network, and what says so. */
static bool is_offline(const struct plan *p, char origin[512])
{
    char room[512];
    if (!p || p->policy->net != NET_NONE || p->facts->unsandboxed || p->image->tier != TIER_NAMESPACES)
        return false;
    snprintf(origin, 512, "%s", policy_origin(p->policy, p->policy->net_origin, room, sizeof room));
    return true;
}

void box_keep_log(struct box *b, const struct denial *d)
{
    denial_log(b, d);
}

void offline_in_session(struct box *b, const struct denial_frame *f)
{
    char kind[] = "network", action[] = "connect", rule[] = "net none", how[] = "none", target[DENIAL_TEXT],
         origin[512];
    if (f->action != DENIAL_CONNECT || f->no != ENETUNREACH || !b->sessiond->denied ||
        !is_offline(b->spec->start.plan, origin))
        return;
    snprintf(target, sizeof target, "%s", f->text);
    struct denial d = {kind, action, target, rule, origin, how, f->pid};
    d.session = f->session;
    d.soft = true;
    d.no = (int)f->no;
    d.argv = box_command_line(f->text + f->n, f->argv);
    b->sessiond->denied(b->sessiond->ctx, &d);
    free(d.argv);
}

void denial_offline(struct box *b, bool told)
{
    const struct plan *p = b->spec ? b->spec->start.plan : NULL;
    char kind[] = "network", action[] = "connect", target[] = "(not seen)", rule[] = "net none", how[] = "none",
         origin[512];
    for (size_t i = 0; i < b->result->n_denials; i++)
        told |= same(b->result->denials[i].kind, "network");
    if (told || !is_offline(p, origin))
        return;
    denial_keep(b, &(struct denial){kind, action, target, rule, origin, how, 0});
}

void denial_end(struct box *b)
{
    log_dropped(b);
    b->audit = audit_close(b->audit);
}
