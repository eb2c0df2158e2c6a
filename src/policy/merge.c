/* Merges the layers of a policy into one, remembers where each rule comes from and refuses contradictions. Rules for paths
   are in merge_paths.c, keys of the ssh-agent and gpg-agent in merge_keys.c. */
#include "policy/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "match/host.h"
#include "policy/domain.h"

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
    struct arena *mem = m->scratch;

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
    m->env_text = arena_zero(mem, room.env * sizeof *m->env_text);
    p->net_rules = arena_zero(mem, room.net * sizeof *p->net_rules);
    if (arena_failed(mem) || !table_reserve(&m->paths, room.paths) || !table_reserve(&m->guards, room.guards) ||
        !table_reserve(&m->env, room.env))
        return merge_no_memory(m);
    p->origins[0] = (struct origin){.layer = LAYER_BUILTIN, .file = "built in"};
    p->n_origins = 1;
    p->engine = "auto";
    p->hostname = "pinfold";
    p->net_ask_ms = 30000;
    for (size_t i = 0; i < N_LIMITS; i++)
        p->limits.each[i].value = LIMIT_NONE;
    return 0;
}

static int merge_guard(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char *name = merge_keep(m, s->a);
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
        p->guards[*at].origin = merge_origin(m, s);
    p->guards[*at].deep |= (s->bits & SAID_DEEP) != 0;
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

/* `publish: none` takes back what was published before it. */
static int unpublish(struct merge *m)
{
    struct policy *p = m->p;
    size_t n = 0;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        if (p->net_rules[i].verb != NET_RULE_PUBLISH)
            p->net_rules[n++] = p->net_rules[i];
    }
    p->n_net_rules = n;
    m->unpublished++; /* so that the same ports are new again */
    return 0;
}

static int merge_net_rule(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    const char *text;
    bool fresh;
    int r;

    if (s->key == KEY_PUBLISH && str_is(s->a, "none"))
        return unpublish(m);
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
        return place_wrap(m->e, r, merge_text_name(m, s), s->line, s->column);
    enum net_verb verb = s->key == KEY_ALLOW        ? NET_RULE_ALLOW
                         : s->key == KEY_DENY       ? NET_RULE_DENY
                         : s->key == KEY_DENY_PORTS ? NET_RULE_DENY_PORT
                         : s->key == KEY_PUBLISH    ? NET_RULE_PUBLISH
                                                    : NET_RULE_REACH;
    const uint32_t kind = verb + (verb == NET_RULE_PUBLISH ? m->unpublished << 8 : 0);
    if (!m->text->trusted && key_tightening(s->key) == TIGHTEN_NEVER)
        return table_find(&m->net, kind, str_of(text)) ? 0 : tighten_check(m, s, NULL);
    if (!table_put(&m->net, kind, str_of(text), 0, &fresh))
        return merge_no_memory(m);
    if (s->key == KEY_ALLOW || s->key == KEY_REACH)
        m->allow_said = s;
    if (fresh)
        p->net_rules[p->n_net_rules++] = (struct net_rule){.verb = verb, .text = text, .origin = merge_origin(m, s)};
    return 0;
}

static int merge_socket(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct path_text t;

    int r = merge_literal(m, s, &t);
    if (r == 0)
        r = merge_new(m, s, &m->sockets, t.path);
    if (r <= 0)
        return r;
    size_t n = p->n_unix_sockets;
    const char **slot = arena_push(p->mem, &p->unix_sockets, &p->n_unix_sockets, sizeof *slot);
    uint32_t *origin = arena_push(m->scratch, &m->socket_origin, &n, sizeof *origin);
    if (!slot || !origin)
        return merge_no_memory(m);
    *slot = t.path;
    *origin = merge_origin(m, s);
    return 0;
}

/* What a pattern removes, earlier texts may have passed or set by its name; what this text says by its name counts. */
static void remove_named(struct merge *m, struct str pattern, uint32_t origin)
{
    if (!pattern.n || pattern.p[pattern.n - 1] != '*')
        return;
    pattern.n--;
    for (size_t i = 0; i < m->p->n_env; i++) {
        struct env_rule *r = &m->p->env[i];
        if (m->env_text[i] != m->text_no && !r->remove && str_starts(str_of(r->name), pattern))
            *r = (struct env_rule){.name = r->name, .remove = true, .origin = origin};
    }
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
    const char *name = merge_keep(m, s->a);
    const char *value = s->key == KEY_ENV_SET ? merge_keep(m, s->b) : NULL;
    if (!name || (s->key == KEY_ENV_SET && !value))
        return merge_no_memory(m);
    uint32_t *at = table_put(&m->env, 0, (struct str){name, s->a.n}, (uint32_t)p->n_env, &fresh);
    if (!at)
        return merge_no_memory(m);
    p->n_env += fresh;
    p->env[*at] = (struct env_rule){
        .name = name, .value = value, .remove = s->key == KEY_ENV_REMOVE, .origin = merge_origin(m, s)};
    m->env_text[*at] = m->text_no;
    if (s->key == KEY_ENV_REMOVE)
        remove_named(m, s->a, p->env[*at].origin);
    return 0;
}

static int merge_limit(struct merge *m, const struct said *s)
{
    struct limit *l = &m->p->limits.each[s->key - KEY_MEMORY];
    uint64_t v;

    int r = limit_value(s->key, s->a, &v, m->e);
    if (r < 0)
        return place_wrap(m->e, r, merge_text_name(m, s), s->line, s->column);
    if (!m->text->trusted) {
        if (v == l->value)
            return 0;
        r = tighten_check(m, s, NULL);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    *l = (struct limit){.value = v, .origin = merge_origin(m, s), .asked = !m->text->defaults};
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
            return place_wrap(m->e, r, merge_text_name(m, s), s->line, s->column);
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
    const char *text = merge_keep(m, s->a);
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
        return place_wrap(m->e, r, merge_text_name(m, s), s->line, s->column);
    if (!m->text->trusted && v != m->p->net_ask_ms)
        return tighten_check(m, s, NULL);
    m->p->net_ask_ms = (uint32_t)v;
    return 0;
}

#define OF_BRANCHES 0xffffffffu /* in the table of guarded names, whose salts are small */

/* As long as no branch is named all are protected, so that the first name protects fewer. */
static int merge_branch(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    bool new;
    if (!m->text->trusted && p->git.n_branches == 0)
        return 0;
    const char *pattern = merge_keep(m, s->a);
    if (!pattern || !table_put(&m->guards, OF_BRANCHES, (struct str){pattern, s->a.n}, 0, &new))
        return merge_no_memory(m);
    if (!new)
        return 0;
    struct branch_rule *slot = arena_push(p->mem, &p->git.branches, &p->git.n_branches, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct branch_rule){pattern, merge_origin(m, s)};
    return 0;
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
    uint32_t origin = merge_origin(m, s);
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

/* workspace_read_only; in a command line it may not contradict a rule for the workspace itself (merge_here()). */
static int read_only(struct merge *m, const struct said *s, bool on)
{
    struct policy *p = m->p;
    const enum path_access here = on ? PATH_RO : PATH_RW;
    if (m->text->flags && m->here_text == m->text_no && m->here != here)
        return merge_say(m, ERR_POLICY, s,
                         "the workspace '%s' is also declared %s by another option; leave out one of them",
                         p->workspace, on ? "rw" : "ro");
    m->here = here;
    m->here_text = m->text->flags ? m->text_no : m->here_text;
    p->workspace_read_only = on;
    p->read_only_origin = merge_origin(m, s);
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
        return read_only(m, s, on);
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
        p->net_origin = merge_origin(m, s);
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
        p->net_ask_origin = merge_origin(m, s);
        if (on)
            m->allow_said = s;
        break;
    case KEY_GPG_CONFIRM:
        p->gpg_confirm = on;
        p->gpg_confirm_origin = merge_origin(m, s);
        break;
    case KEY_SSH_CONFIRM:
        p->ssh_confirm = on;
        p->ssh_confirm_origin = merge_origin(m, s);
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
        p->monitor_origin = merge_origin(m, s);
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

/* Decided before everything else (build.c), or first of all by merge_text(). */
static int merge_nothing(struct merge *m, const struct said *s)
{
    (void)m;
    (void)s;
    return 0;
}

static int merge_extends(struct merge *m, const struct said *s)
{
    return m->text->trusted ? 0 : tighten_check(m, s, NULL);
}

/* How each key of the table is merged; a key without a line here does not build. */
#define MERGE_VERSION        merge_nothing
#define MERGE_EXTENDS        merge_extends
#define MERGE_WORKSPACE      merge_nothing
#define MERGE_READ_ONLY      merge_simple
#define MERGE_RW             merge_place
#define MERGE_RO             merge_place
#define MERGE_HIDE           merge_place
#define MERGE_PROTECT        merge_place
#define MERGE_CACHE          merge_place
#define MERGE_MOUNTS         merge_mount
#define MERGE_STORAGE        merge_storage
#define MERGE_EXPAND         merge_simple
#define MERGE_ENV_FILES      merge_simple
#define MERGE_COW            merge_simple
#define MERGE_GUARD          merge_simple
#define MERGE_GUARD_ROOT     merge_guard
#define MERGE_GUARD_DAILY    merge_guard
#define MERGE_GUARD_ANY      merge_guard
#define MERGE_GUARD_GIT      merge_guard
#define MERGE_GUARD_ALLOW    merge_nothing
#define MERGE_GUARD_EVERYDAY merge_simple
#define MERGE_GIT_VERIFY     merge_git
#define MERGE_GIT_PROTECT    merge_git
#define MERGE_GIT_FORCE      merge_git
#define MERGE_GIT_DELETE     merge_git
#define MERGE_NET            merge_simple
#define MERGE_ALLOW          merge_net_rule
#define MERGE_DENY           merge_net_rule
#define MERGE_DENY_PORTS     merge_net_rule
#define MERGE_NET_ASK        merge_simple
#define MERGE_NET_ASK_TIME   merge_ask_time
#define MERGE_PUBLISH        merge_net_rule
#define MERGE_REACH          merge_net_rule
#define MERGE_CATCH          merge_simple
#define MERGE_UNIX_SOCKETS   merge_socket
#define MERGE_SSH_AGENT      merge_agent_keys
#define MERGE_GPG_AGENT      merge_agent_keys
#define MERGE_GPG_CONFIRM    merge_simple
#define MERGE_SSH_CONFIRM    merge_simple
#define MERGE_MEMORY         merge_limit
#define MERGE_CPUS           merge_limit
#define MERGE_PIDS           merge_limit
#define MERGE_DISK           merge_limit
#define MERGE_TIMEOUT        merge_limit
#define MERGE_GRACE          merge_limit
#define MERGE_OUTPUT         merge_limit
#define MERGE_OPEN_FILES     merge_limit
#define MERGE_ENV_PASS       merge_env
#define MERGE_ENV_SET        merge_env
#define MERGE_ENV_REMOVE     merge_env
#define MERGE_USER           merge_text_value
#define MERGE_TTY            merge_simple
#define MERGE_ENGINE         merge_text_value
#define MERGE_UNSANDBOXED    merge_simple
#define MERGE_IMAGE          merge_text_value
#define MERGE_VM_KERNEL      merge_file
#define MERGE_VM_MODULES     merge_file
#define MERGE_SEATBELT_BASE  merge_simple
#define MERGE_SEATBELT_FILE  merge_file
#define MERGE_PULL           merge_simple
#define MERGE_ENTRYPOINT     merge_simple
#define MERGE_PLATFORM       merge_text_value
#define MERGE_RUNTIME        merge_text_value
#define MERGE_DOCKER_HOST    merge_text_value
#define MERGE_DOCKER_CONTEXT merge_text_value
#define MERGE_HOSTNAME       merge_text_value
#define MERGE_NESTED_USERNS  merge_simple
#define MERGE_MONITOR        merge_simple
#define MERGE_MAY_LOSE       merge_simple
#define MERGE_MUST_HAVE      merge_simple

static int merge_said(struct merge *m, const struct said *s)
{
#define X(id, ...)                                                                                                     \
    case KEY_##id:                                                                                                     \
        return MERGE_##id(m, s);
    switch ((enum key_id)s->key) {
        POLICY_KEYS(X)
    case KEY_COUNT:
        break;
    }
#undef X
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
        p->net_origin = merge_origin(m, m->allow_said);
        return 0;
    }
    if (p->net != NET_ALLOW)
        return merge_say(m, ERR_POLICY, m->allow_said, "%s needs the network 'allow', not '%.*s' (%s)",
                         m->allow_said->key == KEY_REACH     ? "reaching a service"
                         : m->allow_said->key == KEY_NET_ASK ? "asking for hosts"
                                                             : "allowing hosts",
                         (int)m->net_said->a.n, m->net_said->a.p,
                         m->text->flags ? "use --net allow, or leave --net out" : "use mode: allow");
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
    if (r == 0 && (arena_failed(m->p->mem) || arena_failed(m->scratch)))
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
    merge_order(m);
    return arena_failed(p->mem) || arena_failed(m->scratch) ? merge_no_memory(m) : 0;
}
