/* Merges the layers of a policy into one, remembers where each rule comes from and refuses contradictions. */
#include "policy/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "match/host.h"
#include "policy/domain.h"

static int merge_no_memory(const struct merge *m)
{
    return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
}

static const char *file_of(const struct merge *m, const struct said *s)
{
    return m->text->flags ? m->text->flags[s - m->text->said] : m->text->file;
}

int merge_say(const struct merge *m, enum err_kind kind, const struct said *s, const char *format, ...)
{
    char text[sizeof m->e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* "file:3:5: files.rw: ..." but "--rw: ...", which includes the key. */
    return place_say(m->e, kind, file_of(m, s), s->line, s->column, "%s%s%s", s->line ? key_table[s->key].path : "",
                     s->line ? ": " : "", text);
}

struct path_context merge_context(const struct merge *m, const struct layer_text *text)
{
    return (struct path_context){.world = m->world, .base = text->base, .workspace = m->p->workspace};
}

void merge_room(struct room *room, const struct layer_text *text)
{
    room->texts += 2; /* a text may imply the network's mode, and move the workspace */
    room->origins += text->n + text->n_ignored;
    for (size_t i = 0; i < text->n; i++) {
        enum key_id id = text->said[i].key;
        room->paths += id >= KEY_RW && id <= KEY_CACHE;
        room->guards += id >= KEY_GUARD_ROOT && id <= KEY_GUARD_GIT;
        room->env += id >= KEY_ENV_PASS && id <= KEY_ENV_REMOVE;
        room->net += id >= KEY_ALLOW && id <= KEY_REACH;
    }
}

int merge_begin(struct merge *m, struct policy *p, struct room room, struct err *e)
{
    struct arena *mem = p->mem;

    m->p = p;
    m->e = e;
    m->paths.mem = m->env.mem = m->guards.mem = m->net.mem = m->mounts.mem = m->storages.mem = m->sockets.mem = mem;
    int r = moved_find(m);
    if (r < 0)
        return r;
    room.origins += m->n_moved * room.paths;
    room.paths += m->n_moved * room.paths;
    room.paths += OWN_ROOM + (m->world->env_files ? MAX_ENV_FILES : 0) + MAX_SSH_FILES;
    for (const char *const *w = m->world->own_hidden; w && *w; w++)
        room.paths++;
    for (const char *const *w = m->world->own_read_only; w && *w; w++)
        room.paths++;
    p->origins = arena_zero(mem, (room.origins + OWN_ROOM + room.texts) * sizeof *p->origins);
    p->paths = arena_zero(mem, room.paths * sizeof *p->paths);
    m->path_text = arena_zero(mem, room.paths * sizeof *m->path_text);
    m->path_said = arena_zero(mem, room.paths * sizeof *m->path_said);
    p->guards = arena_zero(mem, room.guards * sizeof *p->guards);
    m->guard_gone = arena_zero(mem, room.guards * sizeof *m->guard_gone);
    p->env = arena_zero(mem, room.env * sizeof *p->env);
    p->net_rules = arena_zero(mem, room.net * sizeof *p->net_rules);
    if (arena_failed(mem) || !table_reserve(&m->paths, room.paths) || !table_reserve(&m->guards, room.guards) ||
        !table_reserve(&m->env, room.env))
        return merge_no_memory(m);
    p->origins[0] = (struct origin){.layer = LAYER_BUILTIN, .file = "built in"};
    p->n_origins = 1;
    p->engine = "auto";
    p->hostname = "pinfold";
    p->net_ask_ms = 30000;
    for (struct limit *l = &p->limits.memory; l <= &p->limits.open_files; l++)
        l->value = LIMIT_NONE;
    return 0;
}

/* The origin of a statement; cannot fail, because the array has room for all. */
static uint32_t origin_of(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    p->origins[p->n_origins] =
        (struct origin){.layer = m->text->layer, .file = file_of(m, s), .line = s->line, .column = s->column};
    return (uint32_t)p->n_origins++;
}

/* A copy that lives as long as the policy. */
static const char *keep(struct merge *m, struct str s)
{
    if (m->text->lasting && s.p[s.n] == 0)
        return s.p;
    return arena_str(m->p->mem, s);
}

/* The key of a path rule in the table. Clean paths contain no "//", so keys are unambiguous. */
static struct str path_key(struct merge *m, const struct path_text *t)
{
    if (!t->any_depth && !t->pattern)
        return str_of(t->path);
    return str_of(t->any_depth ? arena_printf(m->p->mem, "%s//%s%s", t->below, t->pattern ? "*" : "", t->path)
                               : arena_printf(m->p->mem, "//%s", t->path));
}

static const char *access_name(enum path_access a)
{
    static const char *const names[] = {"hide", "ro", "rw", "protect", "cache"};
    return names[a];
}

static int check_place(struct merge *m, const struct said *s, enum path_access a, const struct path_text *t)
{
    if (same(t->path, "/") && !t->any_depth && a != PATH_RO)
        return merge_say(m, ERR_POLICY, s, "'/' is the whole file system; name directories below it");
    return 0;
}

/* A rule for the workspace itself and workspace_read_only mean the same; the later one counts. */
static int merge_here(struct merge *m, const struct said *s, enum path_access a)
{
    struct policy *p = m->p;

    if (a == PATH_CACHE && m->text->profile)
        return 0; /* a workspace inside a cache: it is a workspace now */
    if (a == PATH_HIDE && m->text->profile)
        return merge_say(
            m, ERR_POLICY, s,
            "the workspace '%s' is hidden by this profile; change to another directory or use --workspace DIR",
            p->workspace);
    if (a != PATH_RW && a != PATH_RO)
        return merge_say(m, ERR_POLICY, s, "'%s' is the workspace itself%s", p->workspace,
                         a == PATH_HIDE ? "" : " (use workspace_read_only to keep it unchanged)");
    if (m->here_text == m->text_no && m->here != a)
        return merge_say(m, ERR_POLICY, s, "'%s' is also declared %s", p->workspace, access_name(m->here));
    if (!m->text->trusted && a == PATH_RW && p->workspace_read_only)
        return tighten_refuse(m, s, "would make the workspace writable");
    if (!m->text->trusted && a == PATH_RW)
        return 0;
    m->here = a;
    m->here_text = m->text_no;
    p->workspace_read_only = a == PATH_RO;
    p->read_only_origin = origin_of(m, s);
    p->workspace_named |= m->text->trusted && !m->text->profile;
    return 0;
}

/* Adds a rule for a place, or replaces an earlier text's. */
static int put_path(struct merge *m, const struct said *s, enum path_access a, const struct path_text *t)
{
    struct policy *p = m->p;
    bool patterns = a == PATH_HIDE || a == PATH_PROTECT, fresh;

    int r = check_place(m, s, a, t);
    if (r == 0 && !t->any_depth && !t->pattern && same(t->path, p->workspace))
        return merge_here(m, s, a);
    if (r == 0 && !m->text->trusted)
        r = tighten_check(m, s, t);
    if (r != 0)
        return r < 0 ? r : 0;
    struct str key = path_key(m, t);
    uint32_t *at = key.p ? table_put(&m->paths, 0, key, (uint32_t)p->n_paths, &fresh) : NULL;
    if (!at)
        return merge_no_memory(m);
    if (fresh) {
        p->n_paths++;
    } else if (m->path_text[*at] == m->text_no && p->paths[*at].access != a) {
        const struct said *before = m->path_said[*at];
        return m->text->flags ? merge_say(m, ERR_POLICY, s, "'%s' is also declared %s by %s", p->paths[*at].path,
                                          access_name(p->paths[*at].access), file_of(m, before))
                              : merge_say(m, ERR_POLICY, s, "'%s' is also declared %s in line %u", p->paths[*at].path,
                                          access_name(p->paths[*at].access), before->line);
    }
    bool optional = (s->bits & SAID_OPTIONAL) || m->text->profile || patterns || a == PATH_CACHE;
    p->paths[*at] = (struct path_rule){.access = a,
                                       .path = t->path,
                                       .any_depth = t->any_depth,
                                       .pattern = t->pattern,
                                       .below = t->below,
                                       .optional = optional,
                                       .told = optional && (s->bits & SAID_TOLD),
                                       .origin = origin_of(m, s)};
    m->path_text[*at] = m->text_no;
    m->path_said[*at] = s;
    return 0;
}

/* A built-in hide must not hide the caller's own home, if root or a user with an unusual home runs it. */
static bool has_home(const struct merge *m, const char *path)
{
    return m->world->home && path_at_or_below(m->world->home, path);
}

/* What a built-in rule hides is also hidden where the caller's variables have it. */
static int put_moved(struct merge *m, const struct said *s, const char *path)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n_moved; i++) {
        const struct path_text t = {.path = moved_place(m, path, i)};
        if (t.path && !has_home(m, t.path))
            r = put_path(m, s, PATH_HIDE, &t);
    }
    return r;
}

static int merge_path(struct merge *m, const struct said *s, enum path_access a)
{
    struct policy *p = m->p;
    struct path_context c = merge_context(m, m->text);
    struct path_text t;
    struct err why;
    bool patterns = a == PATH_HIDE || a == PATH_PROTECT;

    int r = path_expand(&c, s->a, path_forms_of(patterns, s->bits & SAID_FLAG), p->mem, &t, &why);
    if (r < 0)
        return merge_say(m, ERR_POLICY, s, "%s", why.text);
    if (m->text->lasting && a == PATH_HIDE && !t.any_depth && !t.pattern && has_home(m, t.path))
        return 0;
    r = put_path(m, s, a, &t);
    if (r == 0 && m->text->lasting && a == PATH_HIDE && !t.any_depth && !t.pattern)
        r = put_moved(m, s, t.path);
    return r;
}

static int merge_mount(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct path_context c = merge_context(m, m->text);
    struct path_text from, to;
    struct err why;
    bool fresh;

    enum path_forms forms = path_forms_of(false, s->bits & SAID_FLAG);
    int r = path_expand(&c, s->a, forms, p->mem, &from, &why);
    if (r == 0)
        r = path_expand(&c, s->b, forms, p->mem, &to, &why);
    if (r < 0)
        return merge_say(m, ERR_POLICY, s, "%s", why.text);
    if (s->b.p[0] != '/' && s->b.p[0] != '~' && (s->b.p[0] != '$' || s->bits & SAID_FLAG))
        return merge_say(m, ERR_POLICY, s, "'%s' is relative; the path inside the box must be absolute", to.path);
    if (same(to.path, "/") || same(from.path, "/"))
        return merge_say(m, ERR_POLICY, s, "'/' is the whole file system; name directories below it");
    uint32_t *at = table_put(&m->mounts, 0, str_of(to.path), (uint32_t)p->n_mounts, &fresh);
    if (!at)
        return merge_no_memory(m);
    struct mount_rule rule = {from.path, to.path, s->bits & SAID_READ_ONLY, s->bits & SAID_NO_LINKS, 0};
    if (!fresh && !m->text->trusted && same(p->mounts[*at].from, rule.from) &&
        p->mounts[*at].read_only == rule.read_only && p->mounts[*at].no_links == rule.no_links)
        return 0;
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    struct mount_rule *slot = fresh ? arena_push(p->mem, &p->mounts, &p->n_mounts, sizeof *slot) : &p->mounts[*at];
    if (!slot)
        return merge_no_memory(m);
    rule.origin = origin_of(m, s);
    *slot = rule;
    return 0;
}

/* The path of a statement, which is no pattern. */
static int literal_path(struct merge *m, const struct said *s, struct path_text *ret)
{
    struct path_context c = merge_context(m, m->text);
    struct err why;
    int r = path_expand(&c, s->a, path_forms_of(false, s->bits & SAID_FLAG), m->p->mem, ret, &why);
    return r < 0 ? merge_say(m, ERR_POLICY, s, "%s", why.text) : 0;
}

static int merge_storage(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct path_text t;
    bool fresh;

    int r = literal_path(m, s, &t);
    if (r < 0)
        return r;
    if (same(t.path, "/"))
        return merge_say(m, ERR_POLICY, s, "'/' is the whole file system; name directories below it");
    if (!m->text->trusted)
        return table_find(&m->storages, 0, str_of(t.path)) ? 0 : tighten_check(m, s, NULL);
    if (!table_put(&m->storages, 0, str_of(t.path), 0, &fresh))
        return merge_no_memory(m);
    struct storage_rule *slot = fresh ? arena_push(p->mem, &p->storages, &p->n_storages, sizeof *slot) : NULL;
    if (fresh && !slot)
        return merge_no_memory(m);
    if (fresh)
        *slot = (struct storage_rule){t.path, origin_of(m, s)};
    return 0;
}

static int merge_guard(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char *name = keep(m, s->a);
    bool directory = s->bits & SAID_DIRECTORY, fresh;
    uint32_t *at = name ? table_put(&m->guards, s->key * 2u + directory, s->a, (uint32_t)p->n_guards, &fresh) : NULL;

    if (!at)
        return merge_no_memory(m);
    if (fresh)
        p->guards[p->n_guards++] = (struct guard_name){
            .name = name,
            .place = s->key == KEY_GUARD_ROOT || s->key == KEY_GUARD_DAILY ? GUARD_ROOT : GUARD_ANY_DEPTH,
            .judge = s->key == KEY_GUARD_GIT ? GUARD_GIT_CONFIG : GUARD_REFUSE,
            .directory = directory,
            .pattern = str_starts(s->a, STR("*")),
            .everyday = s->key == KEY_GUARD_DAILY};
    if (fresh || m->guard_gone[*at])
        p->guards[*at].origin = origin_of(m, s);
    m->guard_gone[*at] = false;
    return 0;
}

static int merge_guard_allow(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char *near = NULL;
    bool found = false;
    unsigned nearest = 99;

    for (size_t i = 0; i < p->n_guards; i++) {
        unsigned d = str_distance(str_of(p->guards[i].name), s->a);
        if (str_is(s->a, p->guards[i].name)) {
            found = true;
            if (!m->guard_gone[i] && !m->text->trusted)
                return tighten_check(m, s, NULL);
            m->guard_gone[i] = true;
        } else if (d < nearest) {
            nearest = d;
            near = p->guards[i].name;
        }
    }
    for (size_t i = 0; i < m->text->n; i++) {
        const struct said *o = &m->text->said[i];
        if ((o->key >= KEY_GUARD_ROOT && o->key <= KEY_GUARD_GIT) && str_eq(o->a, s->a))
            return merge_say(m, ERR_POLICY, s, "'%.*s' is both guarded and allowed here", (int)s->a.n, s->a.p);
    }
    if (found)
        return 0;
    if (near && is_near(nearest, s->a))
        return merge_say(m, ERR_POLICY, s, "'%.*s' is not a guarded name (did you mean '%s'?)", (int)s->a.n, s->a.p,
                         near);
    return merge_say(m, ERR_POLICY, s, "'%.*s' is not a guarded name; list them with: pinfold policy print",
                     (int)s->a.n, s->a.p);
}

static int merge_net_rule(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char *text;
    bool fresh;
    int r;

    switch (s->key) {
    case KEY_PUBLISH:
        r = publish_form(s->a, p->mem, &text, m->e);
        break;
    case KEY_REACH:
        r = reach_form(s->a, p->mem, &text, m->e);
        break;
    case KEY_DENY_PORTS:
        r = port_rule_form(s->a, p->mem, &text, m->e);
        break;
    default:
        r = domain_rule_form(s->a, p->mem, &text, m->e);
    }
    if (r < 0)
        return place_wrap(m->e, r, file_of(m, s), s->line, s->column);
    enum net_verb verb = s->key == KEY_ALLOW        ? NET_RULE_ALLOW
                         : s->key == KEY_DENY       ? NET_RULE_DENY
                         : s->key == KEY_DENY_PORTS ? NET_RULE_DENY_PORT
                         : s->key == KEY_PUBLISH    ? NET_RULE_PUBLISH
                                                    : NET_RULE_REACH;
    if (!m->text->trusted && key_tightening(s->key) == TIGHTEN_NEVER)
        return table_find(&m->net, verb, str_of(text)) ? 0 : tighten_check(m, s, NULL);
    if (!table_put(&m->net, verb, str_of(text), 0, &fresh))
        return merge_no_memory(m);
    if (s->key == KEY_ALLOW || s->key == KEY_REACH)
        m->allow_said = s;
    if (fresh)
        p->net_rules[p->n_net_rules++] = (struct net_rule){.verb = verb, .text = text, .origin = origin_of(m, s)};
    return 0;
}

static int merge_socket(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct path_text t;
    bool fresh;

    int r = literal_path(m, s, &t);
    if (r < 0)
        return r;
    if (!m->text->trusted)
        return table_find(&m->sockets, 0, str_of(t.path)) ? 0 : tighten_check(m, s, NULL);
    if (!table_put(&m->sockets, 0, str_of(t.path), 0, &fresh))
        return merge_no_memory(m);
    if (!fresh)
        return 0;
    size_t n = p->n_unix_sockets;
    const char **slot = arena_push(p->mem, &p->unix_sockets, &p->n_unix_sockets, sizeof *slot);
    uint32_t *origin = arena_push(p->mem, &m->socket_origin, &n, sizeof *origin);
    if (!slot || !origin)
        return merge_no_memory(m);
    *slot = t.path;
    *origin = origin_of(m, s);
    return 0;
}

/* A path is recognised by how it begins; a fingerprint or a comment never begins so. */
static int ssh_key_name(struct merge *m, const struct said *s, struct str key, const char **ret)
{
    if (key.p[0] != '/' && !str_starts(key, STR("~/")) && !str_starts(key, STR("./")) && !str_starts(key, STR("../"))) {
        *ret = keep(m, key);
        return *ret ? 0 : merge_no_memory(m);
    }
    struct said part = *s;
    struct path_text t;
    part.a = key;
    int r = literal_path(m, &part, &t);
    if (r == 0)
        *ret = t.path;
    return r;
}

/* One KEY or KEY=HOST of a list with commas. */
static int merge_ssh_key(struct merge *m, const struct said *s, struct str one)
{
    struct policy *p = m->p;
    struct host_rule rule;
    struct err why;
    const char *equals = memrchr(one.p, '=', one.n), *key, *host = NULL;
    struct str name = {one.p, equals ? (size_t)(equals - one.p) : one.n};
    struct str at = equals ? str_skip(one, name.n + 1) : (struct str){0};

    if (!name.n || (equals && !at.n))
        return merge_say(m, ERR_POLICY, s,
                         "'%.*s' is not KEY or KEY=HOST; KEY is a fingerprint (SHA256:...), a public key file or the "
                         "comment that 'ssh-add -l' shows",
                         STR_SAID(one));
    int r = ssh_key_name(m, s, name, &key);
    if (r < 0)
        return r;
    if (equals && !str_is(at, "git") && host_rule_parse(at, RULE_ALLOW, &rule, &why) < 0)
        return merge_say(m, ERR_POLICY, s, "ssh key for '%.*s': %s", STR_SAID(at), why.text);
    if (equals && !(host = keep(m, at)))
        return merge_no_memory(m);
    for (size_t i = 0; i < p->n_ssh_keys; i++) {
        if (same(p->ssh_keys[i].key, key) && same(p->ssh_keys[i].host, host))
            return 0;
    }
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    struct ssh_key_rule *slot = arena_push(p->mem, &p->ssh_keys, &p->n_ssh_keys, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct ssh_key_rule){key, host, origin_of(m, s)};
    return 0;
}

/* Which key that is, only gpg knows (run/keys/gpg.c). */
static int merge_gpg_key(struct merge *m, const struct said *s, struct str one)
{
    struct policy *p = m->p;
    const char *key = keep(m, one);
    if (!key)
        return merge_no_memory(m);
    if (one.n < 3 || one.n > 200 || one.p[0] == '-')
        return merge_say(m, ERR_POLICY, s,
                         "'%.*s' is no key of gpg's: a keygrip, a fingerprint, a user id or its address, as "
                         "'gpg --list-secret-keys --with-keygrip' shows them",
                         STR_SAID(one));
    for (size_t i = 0; i < p->n_gpg_keys; i++) {
        if (same(p->gpg_keys[i].key, key))
            return 0;
    }
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    struct gpg_key_rule *slot = arena_push(p->mem, &p->gpg_keys, &p->n_gpg_keys, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct gpg_key_rule){key, origin_of(m, s)};
    return 0;
}

static int merge_agent_keys(struct merge *m, const struct said *s)
{
    int (*const one)(struct merge *, const struct said *, struct str) =
        s->key == KEY_SSH_AGENT ? merge_ssh_key : merge_gpg_key;
    struct str rest = s->a;
    int r = rest.n ? 0 : one(m, s, rest);
    while (r == 0 && rest.n)
        r = one(m, s, str_until(&rest, ','));
    return r;
}

static int merge_env(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    bool fresh;

    if (!m->text->trusted) {
        const uint32_t *at = table_find(&m->env, 0, s->a);
        const struct env_rule *now = at ? &p->env[*at] : NULL;
        bool holds = now && (s->key == KEY_ENV_PASS  ? !now->remove && !now->value
                             : s->key == KEY_ENV_SET ? now->value && str_is(s->b, now->value)
                                                     : now->remove);
        if (holds)
            return 0;
        int r = tighten_check(m, s, NULL);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    const char *name = keep(m, s->a);
    const char *value = s->key == KEY_ENV_SET ? keep(m, s->b) : NULL;
    if (!name || (s->key == KEY_ENV_SET && !value))
        return merge_no_memory(m);
    uint32_t *at = table_put(&m->env, 0, (struct str){name, s->a.n}, (uint32_t)p->n_env, &fresh);
    if (!at)
        return merge_no_memory(m);
    p->n_env += fresh;
    p->env[*at] =
        (struct env_rule){.name = name, .value = value, .remove = s->key == KEY_ENV_REMOVE, .origin = origin_of(m, s)};
    return 0;
}

static int merge_limit(struct merge *m, const struct said *s)
{
    struct limit *l = &m->p->limits.memory + (s->key - KEY_MEMORY);
    uint64_t v;

    int r = limit_value(s->key, s->a, &v, m->e);
    if (r < 0)
        return place_wrap(m->e, r, file_of(m, s), s->line, s->column);
    if (!m->text->trusted) {
        if (v == l->value)
            return 0;
        r = tighten_check(m, s, NULL);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    *l = (struct limit){.value = v, .origin = origin_of(m, s), .asked = !m->text->defaults};
    return 0;
}

static enum tty_mode tty_of(int choice)
{
    return choice == 0 ? TTY_NEVER : choice == 1 ? TTY_AUTO : TTY_ALWAYS;
}

/* The member for a text without a form of its own. */
static const char **text_slot(struct policy *p, enum key_id key)
{
    switch (key) {
    case KEY_ENGINE:
        return &p->engine;
    case KEY_IMAGE:
        return &p->image;
    case KEY_PLATFORM:
        return &p->platform;
    case KEY_RUNTIME:
        return &p->runtime;
    case KEY_DOCKER_HOST:
        return &p->docker_host;
    case KEY_DOCKER_CONTEXT:
        return &p->docker_context;
    default:
        return &p->hostname;
    }
}

static int merge_text_value(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    enum user_mode mode;
    uint32_t uid, gid;

    if (s->key == KEY_USER) {
        int r = user_value(s->a, &mode, &uid, &gid, m->e);
        if (r < 0)
            return place_wrap(m->e, r, file_of(m, s), s->line, s->column);
        if (!m->text->trusted && mode == p->user && uid == p->uid && gid == p->gid)
            return 0;
    } else if (!m->text->trusted) {
        const char *now = *text_slot(p, s->key);
        if (now && str_is(s->a, now))
            return 0;
    }
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    if (s->key == KEY_USER) {
        p->user = mode;
        p->uid = uid;
        p->gid = gid;
        return 0;
    }
    const char *text = keep(m, s->a);
    if (!text)
        return merge_no_memory(m);
    *text_slot(p, s->key) = text;
    return 0;
}

/* Files and directories for an engine: absolute, or relative to the text's directory. */
static int merge_file(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char **to = s->key == KEY_VM_KERNEL    ? &p->vm_kernel
                      : s->key == KEY_VM_MODULES ? &p->vm_modules
                                                 : &p->seatbelt_file;
    struct path_context c = merge_context(m, m->text);
    struct path_text path;
    struct err why;
    int r = path_expand(&c, s->a, path_forms_of(false, s->bits & SAID_FLAG), p->mem, &path, &why);
    if (r < 0)
        return merge_say(m, ERR_POLICY, s, "%s", why.text);
    if (!m->text->trusted)
        return same(*to, path.path) ? 0 : tighten_check(m, s, NULL);
    *to = path.path;
    return 0;
}

static int merge_ask_time(struct merge *m, const struct said *s)
{
    uint64_t v;
    int r = limit_value(KEY_NET_ASK_TIME, s->a, &v, m->e);
    if (r < 0)
        return place_wrap(m->e, r, file_of(m, s), s->line, s->column);
    if (!m->text->trusted && v != m->p->net_ask_ms)
        return tighten_check(m, s, NULL);
    m->p->net_ask_ms = (uint32_t)v;
    return 0;
}

static struct branch_rule *branch_rule_of(const struct policy *p, struct str pattern)
{
    for (size_t i = 0; i < p->git.n_branches; i++) {
        if (str_is(pattern, p->git.branches[i].pattern))
            return &p->git.branches[i];
    }
    return NULL;
}

/* As long as no branch is named all are protected, so that the first name protects fewer. */
static int merge_branch(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    if (branch_rule_of(p, s->a) || (!m->text->trusted && p->git.n_branches == 0))
        return 0;
    struct branch_rule *slot = arena_push(p->mem, &p->git.branches, &p->git.n_branches, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct branch_rule){keep(m, s->a), origin_of(m, s)};
    return slot->pattern ? 0 : merge_no_memory(m);
}

static int merge_git(struct merge *m, const struct said *s)
{
    struct git_rules *g = &m->p->git;
    bool on = str_is(s->a, "true");
    if (s->key == KEY_GIT_PROTECT)
        return merge_branch(m, s);
    if (!m->text->trusted) {
        int r = tighten_check(m, s, NULL);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    uint32_t origin = origin_of(m, s);
    if (s->key == KEY_GIT_VERIFY) {
        int choice = key_choice(s->key, s->a);
        g->verify = choice == 0 ? GIT_VERIFY_REQUIRED : choice == 1 ? GIT_VERIFY_TOLD : GIT_VERIFY_OFF;
        g->verify_origin = origin;
    } else if (s->key == KEY_GIT_FORCE) {
        g->allow_force = on;
        g->force_origin = origin;
    } else {
        g->allow_delete = on;
        g->delete_origin = origin;
    }
    return 0;
}

/* Scalars with choices, and sets of guarantees. */
static int merge_simple(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    int choice = key_table[s->key].choices ? key_choice(s->key, s->a) : 0;
    bool on = str_is(s->a, "true");

    if (!m->text->trusted) {
        int r = tighten_check(m, s, NULL);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    switch (s->key) {
    case KEY_READ_ONLY:
        p->workspace_read_only = on;
        p->read_only_origin = origin_of(m, s);
        break;
    case KEY_EXPAND:
        p->expand = choice == 0 ? EXPAND_NEVER : EXPAND_START;
        break;
    case KEY_GUARD:
        p->guard = choice == 0 ? GUARD_STRICT : choice == 1 ? GUARD_EXISTING : GUARD_OFF;
        break;
    case KEY_GUARD_EVERYDAY:
        p->everyday = choice == 0 ? EVERYDAY_GUARD : EVERYDAY_ALLOW;
        break;
    case KEY_NET:
        p->net = choice == 0 ? NET_NONE : choice == 1 ? NET_ALLOW : NET_HOST;
        p->net_origin = origin_of(m, s);
        m->net_said = s;
        break;
    case KEY_CATCH:
        p->net_catch = (enum net_catch)choice;
        break;
    case KEY_SEATBELT_BASE:
        p->seatbelt_base = choice == 0 ? SEATBELT_RESTRICTIVE : SEATBELT_PERMISSIVE;
        break;
    case KEY_NET_ASK:
        p->net_ask = on;
        p->net_ask_origin = origin_of(m, s);
        if (on)
            m->allow_said = s;
        break;
    case KEY_GPG_CONFIRM:
        p->gpg_confirm = on;
        p->gpg_confirm_origin = origin_of(m, s);
        break;
    case KEY_SSH_CONFIRM:
        p->ssh_confirm = on;
        p->ssh_confirm_origin = origin_of(m, s);
        break;
    case KEY_TTY:
        p->tty = tty_of(choice);
        break;
    case KEY_PULL:
        p->pull = (enum pull_mode)choice;
        break;
    case KEY_ENTRYPOINT:
        p->entrypoint = choice ? ENTRYPOINT_IMAGE : ENTRYPOINT_NONE;
        break;
    case KEY_ENV_FILES:
        p->env_files = on;
        break;
    case KEY_COW:
        p->cow = on;
        break;
    case KEY_NESTED_USERNS:
        p->allow_nested_userns = on;
        break;
    case KEY_MONITOR:
        p->monitor = on;
        p->monitor_origin = origin_of(m, s);
        break;
    case KEY_UNSANDBOXED:
        if (on && m->text->layer == LAYER_PROJECT && !m->text->flags)
            return merge_say(m, ERR_REFUSED, s,
                             "a project's policy cannot let commands run outside a box, even if trusted");
        p->unsandboxed_fallback = on;
        break;
    default: { /* may_lose, must_have: the form was checked when it was read */
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)s->a.n, s->a.p);
        int f = feature_find(name);
        const features bit = f >= 0 ? (features)1 << f : 0;
        const bool lose = s->key == KEY_MAY_LOSE;
        p->may_lose = lose ? p->may_lose | bit : p->may_lose & ~bit;
        p->must_have = lose ? p->must_have & ~bit : p->must_have | bit;
    }
    }
    return 0;
}

static int merge_place(struct merge *m, const struct said *s)
{
    static const enum path_access asked[] = {[KEY_RW] = PATH_RW,
                                             [KEY_RO] = PATH_RO,
                                             [KEY_HIDE] = PATH_HIDE,
                                             [KEY_PROTECT] = PATH_PROTECT,
                                             [KEY_CACHE] = PATH_CACHE};
    return merge_path(m, s, asked[s->key]);
}

static int merge_said(struct merge *m, const struct said *s)
{
    switch ((enum key_id)s->key) {
    case KEY_VERSION:
    case KEY_WORKSPACE:   /* decided before everything else (build.c) */
    case KEY_GUARD_ALLOW: /* done first, by merge_text() */
    case KEY_COUNT:
    case KEY_EXTENDS:
        return s->key != KEY_EXTENDS || m->text->trusted ? 0 : tighten_check(m, s, NULL);
    case KEY_RW:
    case KEY_RO:
    case KEY_HIDE:
    case KEY_PROTECT:
    case KEY_CACHE:
        return merge_place(m, s);
    case KEY_MOUNTS:
        return merge_mount(m, s);
    case KEY_STORAGE:
    case KEY_UNIX_SOCKETS:
        return s->key == KEY_STORAGE ? merge_storage(m, s) : merge_socket(m, s);
    case KEY_GUARD_ROOT:
    case KEY_GUARD_DAILY:
    case KEY_GUARD_ANY:
    case KEY_GUARD_GIT:
        return merge_guard(m, s);
    case KEY_ALLOW:
    case KEY_DENY:
    case KEY_DENY_PORTS:
    case KEY_PUBLISH:
    case KEY_REACH:
        return merge_net_rule(m, s);
    case KEY_GIT_VERIFY:
    case KEY_GIT_PROTECT:
    case KEY_GIT_FORCE:
    case KEY_GIT_DELETE:
        return merge_git(m, s);
    case KEY_SSH_AGENT:
    case KEY_GPG_AGENT:
    case KEY_NET_ASK_TIME:
        return s->key == KEY_NET_ASK_TIME ? merge_ask_time(m, s) : merge_agent_keys(m, s);
    case KEY_MEMORY:
    case KEY_CPUS:
    case KEY_PIDS:
    case KEY_DISK:
    case KEY_TIMEOUT:
    case KEY_GRACE:
    case KEY_OUTPUT:
    case KEY_OPEN_FILES:
        return merge_limit(m, s);
    case KEY_ENV_PASS:
    case KEY_ENV_SET:
    case KEY_ENV_REMOVE:
        return merge_env(m, s);
    case KEY_USER:
    case KEY_ENGINE:
    case KEY_IMAGE:
    case KEY_PLATFORM:
    case KEY_RUNTIME:
    case KEY_DOCKER_HOST:
    case KEY_DOCKER_CONTEXT:
    case KEY_HOSTNAME:
        return merge_text_value(m, s);
    case KEY_VM_KERNEL:
    case KEY_VM_MODULES:
    case KEY_SEATBELT_FILE:
        return merge_file(m, s);
    case KEY_SEATBELT_BASE:
    case KEY_READ_ONLY:
    case KEY_EXPAND:
    case KEY_GUARD:
    case KEY_GUARD_EVERYDAY:
    case KEY_NET:
    case KEY_CATCH:
    case KEY_NET_ASK:
    case KEY_GPG_CONFIRM:
    case KEY_SSH_CONFIRM:
    case KEY_TTY:
    case KEY_PULL:
    case KEY_ENTRYPOINT:
    case KEY_ENV_FILES:
    case KEY_COW:
    case KEY_NESTED_USERNS:
    case KEY_MONITOR:
    case KEY_UNSANDBOXED:
    case KEY_MAY_LOSE:
    case KEY_MUST_HAVE:
        return merge_simple(m, s);
    }
    return 0;
}

/* Allowing hosts implies the mode allow, if the same text sets no other. */
static int settle_network(struct merge *m)
{
    struct policy *p = m->p;

    if (!m->allow_said || !m->text->trusted)
        return 0;
    if (!m->net_said) {
        p->net = NET_ALLOW;
        p->net_origin = origin_of(m, m->allow_said);
        return 0;
    }
    if (p->net != NET_ALLOW)
        return merge_say(m, ERR_POLICY, m->allow_said, "%s although the network is '%.*s' (use allow)",
                         m->allow_said->key == KEY_REACH     ? "a service is reached"
                         : m->allow_said->key == KEY_NET_ASK ? "hosts are allowed by asking"
                                                             : "hosts are allowed",
                         (int)m->net_said->a.n, m->net_said->a.p);
    return 0;
}

static int merge_ignored(struct merge *m, const struct layer_text *text)
{
    struct policy *p = m->p;
    for (size_t i = 0; i < text->n_ignored; i++) {
        const struct foreign_key *f = &text->ignored[i];
        struct ignored *slot = arena_push(p->mem, &p->ignored, &p->n_ignored, sizeof *slot);
        const char *key = arena_text(p->mem, f->key);
        if (!slot || !key)
            return merge_no_memory(m);
        *slot = (struct ignored){.key = key, .why = f->why, .origin = (uint32_t)p->n_origins};
        p->origins[p->n_origins++] =
            (struct origin){.layer = text->layer, .file = text->file, .line = f->line, .column = f->column};
    }
    return 0;
}

int merge_text(struct merge *m, const struct layer_text *text)
{
    int r = 0;

    m->text = text;
    m->text_no++;
    m->net_said = m->allow_said = NULL;
    /* In one text, names removed from lower layers' lists are removed first, whatever the order in the text. */
    for (size_t i = 0; r >= 0 && i < text->n; i++) {
        if (text->said[i].key == KEY_GUARD_ALLOW)
            r = merge_guard_allow(m, &text->said[i]);
    }
    for (size_t i = 0; r >= 0 && i < text->n; i++)
        r = merge_said(m, &text->said[i]);
    r = r > 0 ? 0 : r;
    if (r == 0)
        r = settle_network(m);
    if (r == 0)
        r = merge_ignored(m, text);
    if (r == 0 && arena_failed(m->p->mem))
        r = merge_no_memory(m);
    return r;
}

/* Hosts allowed by a lower text have no effect if the mode is another now. */
static void settle_hosts(struct policy *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        enum net_verb verb = p->net_rules[i].verb;
        if (p->net == NET_ALLOW || (verb != NET_RULE_ALLOW && verb != NET_RULE_REACH))
            p->net_rules[kept++] = p->net_rules[i];
    }
    p->n_net_rules = kept;
    p->net_ask = p->net_ask && p->net == NET_ALLOW;
}

static void settle_guards(struct merge *m)
{
    struct policy *p = m->p;
    size_t kept = 0;
    for (size_t i = 0; i < p->n_guards; i++) {
        if (!m->guard_gone[i])
            p->guards[kept++] = p->guards[i];
    }
    p->n_guards = kept;
}

/* What was allowed for unprotected branches must not be without effect, unsaid. */
static int settle_git(struct merge *m)
{
    const struct policy *p = m->p;
    const struct git_rules *g = &p->git;
    char where[512];
    if (g->n_branches || !(g->allow_force || g->allow_delete))
        return 0;
    return err_say(m->e, ERR_POLICY,
                   "%s: git.allow_%s allows nothing, because without git.protect_branches all branches are protected; "
                   "name the protected ones, such as main",
                   policy_origin(p, g->allow_force ? g->force_origin : g->delete_origin, where, sizeof where),
                   g->allow_force ? "force" : "delete");
}

/*
 * Sorts by place, so that equal policies are equal arrays and rules are found by bisection (policy_access). A merge
 * sort of existing runs: the built-in profiles are already sorted (profile_compile), and libc's qsort has no bound on
 * hostile input.
 */
typedef int order_fn(const void *a, const void *b);

static int by_path(const void *a, const void *b)
{
    const struct path_rule *x = a, *y = b;
    if (x->any_depth != y->any_depth)
        return x->any_depth ? 1 : -1;
    if (x->pattern != y->pattern)
        return x->pattern ? 1 : -1;
    int r = x->any_depth ? strcmp(x->below, y->below) : 0;
    return r ? r : strcmp(x->path, y->path);
}
static int by_mount(const void *a, const void *b)
{
    return strcmp(((const struct mount_rule *)a)->to, ((const struct mount_rule *)b)->to);
}
static int by_storage(const void *a, const void *b)
{
    return strcmp(((const struct storage_rule *)a)->path, ((const struct storage_rule *)b)->path);
}
static int by_guard(const void *a, const void *b)
{
    const struct guard_name *x = a, *y = b;
    int r = strcmp(x->name, y->name);
    if (r == 0)
        r = (int)x->place - (int)y->place;
    if (r == 0)
        r = (int)x->judge - (int)y->judge;
    if (r == 0)
        r = (int)x->everyday - (int)y->everyday;
    return r ? r : (int)x->directory - (int)y->directory;
}
static int by_net(const void *a, const void *b)
{
    const struct net_rule *x = a, *y = b;
    return x->verb != y->verb ? (int)x->verb - (int)y->verb : strcmp(x->text, y->text);
}
static int by_env(const void *a, const void *b)
{
    return strcmp(((const struct env_rule *)a)->name, ((const struct env_rule *)b)->name);
}
static int by_ssh_key(const void *a, const void *b)
{
    const struct ssh_key_rule *x = a, *y = b;
    int r = strcmp(x->key, y->key);
    return r ? r : strcmp(x->host ? x->host : "", y->host ? y->host : "");
}
static int by_gpg_key(const void *a, const void *b)
{
    return strcmp(((const struct gpg_key_rule *)a)->key, ((const struct gpg_key_rule *)b)->key);
}
static int by_branch(const void *a, const void *b)
{
    return strcmp(((const struct branch_rule *)a)->pattern, ((const struct branch_rule *)b)->pattern);
}
static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Merges the runs [a, mid) and [mid, end) of `from` into `to`; all are indices of items. */
static void merge_runs(const char *items, size_t size, order_fn *order, const uint32_t *from, uint32_t *to, size_t a,
                       size_t mid, size_t end)
{
    size_t b = mid;
    for (size_t k = a; k < end; k++) {
        bool left = a < mid && (b >= end || order(items + from[a] * size, items + from[b] * size) <= 0);
        to[k] = from[left ? a++ : b++];
    }
}

/* The sorted items in a new array; `items` itself if sorted already, or out of memory (see the arena). */
static void *sort(struct arena *mem, void *items, size_t n, size_t size, order_fn *order)
{
    const char *p = items;
    size_t n_runs = 0, i = 1;

    while (i < n && order(p + (i - 1) * size, p + i * size) <= 0)
        i++;
    if (i >= n)
        return items;
    uint32_t *from = arena_zero(mem, n * sizeof *from), *to = arena_zero(mem, n * sizeof *to);
    uint32_t *runs = arena_zero(mem, (n + 1) * sizeof *runs); /* start of each run, and the end of the last */
    char *sorted = arena_zero(mem, n * size);
    if (!from || !to || !runs || !sorted)
        return items;
    for (size_t k = 0; k < n; k++) {
        from[k] = (uint32_t)k;
        if (k == 0 || (k >= i && order(p + (k - 1) * size, p + k * size) > 0))
            runs[n_runs++] = (uint32_t)k;
    }
    runs[n_runs] = (uint32_t)n;
    while (n_runs > 1) {
        size_t kept = 0;
        for (size_t k = 0; k < n_runs; k += 2) {
            size_t mid = runs[k + 1], end = k + 1 < n_runs ? runs[k + 2] : mid;
            merge_runs(p, size, order, from, to, runs[k], mid, end);
            runs[kept++] = runs[k];
        }
        runs[kept] = (uint32_t)n;
        n_runs = kept;
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    for (size_t k = 0; k < n; k++)
        memcpy(sorted + k * size, p + from[k] * size, size);
    return sorted;
}

int merge_end(struct merge *m)
{
    struct policy *p = m->p;

    settle_hosts(p);
    settle_guards(m);
    int r = settle_git(m);
    if (r == 0)
        r = own_rules(m);
    if (r == 0)
        r = env_rules(m);
    if (r == 0)
        r = ssh_rules(m);
    if (r < 0)
        return r;
    p->paths = sort(p->mem, p->paths, p->n_paths, sizeof *p->paths, by_path);
    p->mounts = sort(p->mem, p->mounts, p->n_mounts, sizeof *p->mounts, by_mount);
    p->storages = sort(p->mem, p->storages, p->n_storages, sizeof *p->storages, by_storage);
    p->guards = sort(p->mem, p->guards, p->n_guards, sizeof *p->guards, by_guard);
    p->net_rules = sort(p->mem, p->net_rules, p->n_net_rules, sizeof *p->net_rules, by_net);
    p->env = sort(p->mem, p->env, p->n_env, sizeof *p->env, by_env);
    p->git.branches = sort(p->mem, p->git.branches, p->git.n_branches, sizeof *p->git.branches, by_branch);
    p->gpg_keys = sort(p->mem, p->gpg_keys, p->n_gpg_keys, sizeof *p->gpg_keys, by_gpg_key);
    p->ssh_keys = sort(p->mem, p->ssh_keys, p->n_ssh_keys, sizeof *p->ssh_keys, by_ssh_key);
    p->unix_sockets = sort(p->mem, p->unix_sockets, p->n_unix_sockets, sizeof *p->unix_sockets, by_text);
    return arena_failed(p->mem) ? merge_no_memory(m) : 0;
}
