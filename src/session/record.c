/*
 * Reads and writes a session's record and decides whether its owner is still alive. Lines of a key and a value; keys
 * that this version does not know are passed over.
 */
#include "session/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "protocol/keep.h"
#include "survey/owner.h"
#include "run/world.h"
#include "session/replaced.h"
#include "user/replace.h"

#define MAX_RECORD (1u << 20)

/*  X(member, key) */
#define TEXTS(X)                                                                                                       \
    X(name, "name")                                                                                                    \
    X(scope, "scope")                                                                                                  \
    X(version, "version")                                                                                              \
    X(machine, "machine")                                                                                              \
    X(boot, "boot")                                                                                                    \
    X(engine, "engine")                                                                                                \
    X(policy_digest, "policy")                                                                                         \
    X(plan_digest, "plan")                                                                                             \
    X(values_digest, "values")                                                                                         \
    X(workspace, "workspace")                                                                                          \
    X(cwd, "cwd")                                                                                                      \
    X(profile, "profile")                                                                                              \
    X(monitor, "monitor")                                                                                              \
    X(verifies, "verifies")                                                                                            \
    X(reads, "reads")                                                                                                  \
    X(image, "image")                                                                                                  \
    X(layer, "layer")                                                                                                  \
    X(layer_name, "layer_name")                                                                                        \
    X(workspace_is, "workspace_is")                                                                                    \
    X(hidden_once, "hidden_once")                                                                                      \
    X(asked_in, "asked_in")
#define NUMBERS(X)                                                                                                     \
    X(start, "start")                                                                                                  \
    X(pidns, "pidns")                                                                                                  \
    X(created, "created")                                                                                              \
    X(lost, "lost")                                                                                                    \
    X(timeout_ms, "timeout")                                                                                           \
    X(grace_ms, "grace")                                                                                               \
    X(output, "output")
#define SMALLS(X)                                                                                                      \
    X(revision, "protocol")                                                                                            \
    X(pid, "pid")                                                                                                      \
    X(tier, "tier")                                                                                                    \
    X(net, "net")                                                                                                      \
    X(tty, "tty")                                                                                                      \
    X(remapped, "remapped")

/* A line ends at a newline: that, and `%`, are written as %XX. */
static void put_escaped(struct buf *out, const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == '%')
            buf_printf(out, "%%%02X", (unsigned char)*s);
        else
            buf_char(out, *s);
    }
}

static char *unescaped(struct arena *mem, struct str s)
{
    char *text = arena_zero(mem, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; text && i < s.n; i++) {
        unsigned v;
        char hex[3] = {0};
        if (s.p[i] == '%' && i + 2 < s.n) {
            memcpy(hex, s.p + i + 1, 2);
            if (sscanf(hex, "%x", &v) == 1 && v) {
                text[n++] = (char)v;
                i += 2;
                continue;
            }
        }
        text[n++] = s.p[i];
    }
    return text;
}

/* The engine's daemon as it is asked again when the session is removed. */
static int make_kept(const struct plan *plan, struct arena *mem, struct record *r)
{
    const struct container_fact *c = plan->facts->container;
    for (size_t i = 0; i < plan->n_stored; i++) {
        const struct stored *s = &plan->stored[i];
        struct kept *k = arena_push(mem, &r->kept, &r->n_kept, sizeof *k);
        if (!k)
            return -ENOMEM;
        *k = (struct kept){.what = *s, .engine = plan->facts->engine, .host = "", .context = ""};
        if (s->volume && c && c->socket)
            k->host = c->socket;
        else if (s->volume && c) {
            k->host = c->host ? c->host : "";
            k->context = c->context ? c->context : "";
        }
    }
    return 0;
}

int record_add_asked(struct record *r, const char *name, const char *value, bool unkept, struct arena *mem,
                     struct err *e)
{
    struct asked_option *slot = arena_push(mem, &r->asked, &r->n_asked, sizeof *slot);
    if (!slot)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the session's record");
    *slot = (struct asked_option){name, value, unkept};
    return 0;
}

int record_inherit(struct record *r, const struct record *before, struct arena *mem, struct err *e)
{
    for (size_t i = 0; i < before->n_kept; i++) {
        const struct kept *old = &before->kept[i];
        bool used = !old->what.volume;
        for (size_t k = 0; k < r->n_kept; k++)
            used |= same(r->kept[k].what.at, old->what.at) && same(r->kept[k].engine, old->engine) &&
                    same(r->kept[k].host, old->host) && same(r->kept[k].context, old->context);
        struct kept *slot = used ? NULL : arena_push(mem, &r->kept, &r->n_kept, sizeof *slot);
        if (!used && !slot)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the session's record");
        if (slot) {
            *slot = *old;
            slot->what.path = ""; /* shown nowhere now */
        }
    }
    return 0;
}

void record_values(const struct record *r, const struct policy *policy, char ret[65])
{
    char salt[96];
    snprintf(salt, sizeof salt, "%llu %d %s", (unsigned long long)r->created, r->pid, r->boot ? r->boot : "");
    policy_values_digest(policy, salt, ret);
}

int record_make(const struct session_place *p, const struct plan *plan, struct arena *mem, struct record *ret,
                struct err *e)
{
    const struct limits *l = &plan->policy->limits;
    char boot[40], machine[80], values[65];
    owner_boot(boot);
    owner_machine(machine);
    *ret = (struct record){.name = p->name,
                           .scope = p->scope,
                           .version = PINFOLD_VERSION,
                           .revision = KEEP_REVISION,
                           .pid = (int)getpid(),
                           .start = process_start_time(0),
                           .boot = arena_text(mem, boot),
                           .machine = arena_text(mem, machine),
                           .pidns = owner_namespace(),
                           .created = (uint64_t)time(NULL),
                           .engine = plan->facts->engine,
                           .policy_digest = plan->policy_digest,
                           .plan_digest = plan->digest,
                           .workspace = plan->workspace ? plan->workspace : "",
                           .cwd = plan->cwd ? plan->cwd : "",
                           .profile = plan->policy->profile ? plan->policy->profile : "",
                           .tier = (enum tier)(plan->image ? plan->image->tier : plan->facts->tier),
                           .net = plan->policy->net,
                           .lost = plan->lost,
                           .enforced = plan->enforced,
                           .n_enforced = plan->n_enforced,
                           .timeout_ms = l->timeout.value,
                           .grace_ms = l->grace.value,
                           .output = l->output.value,
                           .tty = plan->policy->tty,
                           .monitor = plan->policy->monitor ? "yes" : "",
                           .verifies = plan->policy->git.verify == GIT_VERIFY_REQUIRED ? "yes" : "",
                           .reads = plan->policy->workspace_read_only ? "yes" : "",
                           .workspace_is = replaced_identity(plan->workspace, mem),
                           .hidden_once = replaced_watch(plan, mem),
                           .image = plan->facts->image ? plan->facts->image->id : ""};
    record_values(ret, plan->said ? plan->said : plan->policy, values);
    ret->values_digest = arena_text(mem, values);
    return make_kept(plan, mem, ret) < 0 || arena_failed(mem)
               ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the session's record")
               : 0;
}

static void print_record(const struct record *r, struct buf *out)
{
    buf_text(out, "v=1\n");
#define X(member, key)                                                                                                 \
    buf_text(out, key "=");                                                                                            \
    put_escaped(out, r->member ? r->member : "");                                                                      \
    buf_char(out, '\n');
    TEXTS(X)
#undef X
#define X(member, key) buf_printf(out, key "=%" PRIu64 "\n", (uint64_t)r->member);
    NUMBERS(X)
    SMALLS(X)
#undef X
    for (size_t i = 0; i < r->n_enforced; i++) {
        buf_printf(out, "enforced=%s ", feature_name(r->enforced[i].what));
        put_escaped(out, r->enforced[i].by);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < r->n_asked; i++) {
        buf_text(out, r->asked[i].unkept ? "asked_variable=" : "asked=");
        put_escaped(out, r->asked[i].unkept ? r->asked[i].value : r->asked[i].name);
        if (!r->asked[i].unkept && r->asked[i].value) {
            buf_char(out, '\t');
            put_escaped(out, r->asked[i].value);
        }
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < r->n_kept; i++) {
        const struct kept *k = &r->kept[i];
        const char *const parts[] = {
            k->what.volume ? "volume" : "directory", k->what.path, k->what.at, k->engine, k->host, k->context};
        buf_text(out, "kept=");
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            put_escaped(out, parts[p]);
            buf_char(out, p + 1 < sizeof parts / sizeof *parts ? '\t' : '\n');
        }
    }
}

int record_write(const struct session_place *p, const struct record *r, struct err *e)
{
    auto_buf struct buf out = BUF(MAX_RECORD);
    char path[PATH_MAX], fresh[PATH_MAX];
    snprintf(path, sizeof path, "%s/record", p->state);
    snprintf(fresh, sizeof fresh, "%s/record.%d", p->state, (int)getpid());
    print_record(r, &out);
    const int no = buf_ok(&out) ? file_replace_unsynced(AT_FDCWD, path, fresh, buf_view(&out), 0600) : -ENOMEM;
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot write the session's record '%s'", path) : 0;
}

static void take_enforced(struct record *r, struct str value, struct arena *mem)
{
    char name[64] = "";
    struct str rest = value, head = str_until(&rest, ' ');
    if (head.n < sizeof name)
        memcpy(name, head.p, head.n);
    int what = feature_find(name);
    struct enforcement *f = what < 0 ? NULL : arena_push(mem, &r->enforced, &r->n_enforced, sizeof *f);
    if (f)
        *f = (struct enforcement){(enum feature)what, unescaped(mem, rest)};
}

static void take_asked(struct record *r, struct str value, bool variable, struct arena *mem)
{
    struct err ignored = {0};
    const bool bare = !memchr(value.p, '\t', value.n);
    struct str name = str_until(&value, '\t');
    if (variable)
        (void)record_add_asked(r, "env", unescaped(mem, name), true, mem, &ignored);
    else
        (void)record_add_asked(r, unescaped(mem, name), bare ? NULL : unescaped(mem, value), false, mem, &ignored);
}

static void take_kept(struct record *r, struct str value, struct arena *mem)
{
    struct kept k = {.what.volume = false};
    const char **const parts[] = {&k.what.path, &k.what.at, &k.engine, &k.host, &k.context};
    k.what.volume = str_is(str_until(&value, '\t'), "volume");
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        *parts[p] = unescaped(mem, str_until(&value, '\t'));
        if (!*parts[p])
            return;
    }
    struct kept *slot = arena_push(mem, &r->kept, &r->n_kept, sizeof *slot);
    if (slot)
        *slot = k;
}

static void take_record_line(struct record *r, struct str key, struct str value, struct arena *mem)
{
    if (str_is(key, "enforced")) { /* every second line */
        take_enforced(r, value, mem);
        return;
    }
#define X(member, k)                                                                                                   \
    if (str_is(key, k))                                                                                                \
        r->member = unescaped(mem, value);
    TEXTS(X)
#undef X
#define X(member, k)                                                                                                   \
    if (str_is(key, k))                                                                                                \
        r->member = strtoull(value.p, NULL, 10);
    NUMBERS(X)
#undef X
#define X(member, k)                                                                                                   \
    if (str_is(key, k))                                                                                                \
        r->member = (unsigned)strtoul(value.p, NULL, 10) & 0x7fffffff;
    SMALLS(X)
#undef X
    if (str_is(key, "kept"))
        take_kept(r, value, mem);
    if (str_is(key, "asked") || str_is(key, "asked_variable"))
        take_asked(r, value, str_is(key, "asked_variable"), mem);
}

int record_read(const struct session_place *p, struct arena *mem, struct record *ret, struct err *e)
{
    char path[PATH_MAX];
    struct str text, value = {NULL, 0};
    snprintf(path, sizeof path, "%s/record", p->state);
    int r = read_whole(mem, path, MAX_RECORD, FILE_OWN, false, true, &text, e);
    if (r < 0)
        return r;
    *ret = (struct record){.timeout_ms = LIMIT_NONE, .grace_ms = LIMIT_NONE, .output = LIMIT_NONE};
    while (text.n) {
        value = str_until(&text, '\n');
        struct str key = str_until(&value, '=');
        take_record_line(ret, key, value, mem);
    }
    if (!ret->name || !ret->scope || !ret->boot || !ret->engine || !ret->policy_digest || ret->pid <= 0)
        return err_say(e, ERR_SYSTEM, "'%s' is not a session record; remove it with: pinfold session prune", path);
    if (p->name && (!same(p->name, ret->name) || !same(p->scope, ret->scope)))
        return err_say(e, ERR_REFUSED, "'%s' belongs to a session with another name", path);
    return arena_failed(mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the session's record") : 0;
}

bool record_is_of_boot(const struct record *r)
{
    char boot[40];
    owner_boot(boot);
    return same(boot, r->boot);
}

bool record_is_of_here(const struct record *r)
{
    char machine[80];
    owner_machine(machine);
    if (r->machine && r->machine[0] && !same(r->machine, machine))
        return false;
    return !record_is_of_boot(r) || !r->pidns || r->pidns == owner_namespace();
}

bool record_is_alive(const struct record *r)
{
    return record_is_of_boot(r) && process_lives(r->pid, r->start);
}
