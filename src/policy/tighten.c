/*
 * What an untrusted project's file may say. The workspace, and the policy in it, may be hostile: it can restrict the
 * box, never extend it. Whatever cannot be shown to restrict is refused, with the command that would permit it.
 */
#include "policy/merge.h"
#include <errno.h>

/* Settings after others (policy/settings.h) go on without what would loosen; it is told with the keys that cannot be
   honoured. */
static int not_honoured(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct ignored *slot = arena_push(p->mem, &p->ignored, &p->n_ignored, sizeof *slot);
    const char *key = arena_printf(p->mem, "%s %.*s", key_table[s->key].path, (int)s->a.n, s->a.p);
    if (!slot || !key)
        return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
    *slot = (struct ignored){
        .key = key, .why = "the settings before these do not allow it", .origin = (uint32_t)p->n_origins};
    p->origins[p->n_origins++] =
        (struct origin){.layer = m->text->layer, .file = m->text->file, .line = s->line, .column = s->column};
    return 1;
}

int tighten_refuse(struct merge *m, const struct said *s, const char *does)
{
    if (m->text->flags)
        return place_say(m->e, ERR_REFUSED, m->text->flags[s - m->text->said], 0, 0,
                         "%s; options can only restrict the policy", does);
    if (m->text->layer == LAYER_FLAGS)
        return not_honoured(m, s);
    const struct policy_world *w = m->world;
    const char *key = key_table[s->key].path, *file = m->text->file;
    switch (w->untrusted ? w->untrusted(w->ctx, file) : UNTRUSTED) {
    case UNTRUSTED_IN_BOX:
        return place_say(m->e, ERR_REFUSED, file, s->line, s->column,
                         "%s %s, and no project is trusted in a box; run it outside, or with a policy of its own: "
                         "pinfold run --policy-text 'version: 1'",
                         key, does);
    case UNTRUSTED_CHANGED:
        return place_say(m->e, ERR_REFUSED, file, s->line, s->column,
                         "%s %s, and this file has changed since you trusted it, so it can only tighten the policy; if "
                         "you trust it as it is now: pinfold trust %s",
                         key, does, file);
    case UNTRUSTED:
        break;
    }
    return place_say(
        m->e, ERR_REFUSED, file, s->line, s->column,
        "%s %s, and an untrusted project can only tighten the policy; if you trust this file: pinfold trust %s", key,
        does, file);
}

/* The rank of the present value, in the order of the key's choices. */
static int rank_now(const struct policy *p, enum key_id id)
{
    switch (id) {
    case KEY_NET:
        return p->net == NET_NONE ? 0 : p->net == NET_ALLOW ? 1 : 2;
    case KEY_GUARD:
        return p->guard == GUARD_STRICT ? 0 : p->guard == GUARD_EXISTING ? 1 : 2;
    case KEY_GUARD_EVERYDAY:
        return p->everyday == EVERYDAY_GUARD ? 0 : 1;
    case KEY_EXPAND:
        return p->expand == EXPAND_NEVER ? 0 : 1;
    case KEY_SEATBELT_BASE:
        return p->seatbelt_base == SEATBELT_RESTRICTIVE ? 0 : 1;
    case KEY_PULL:
        return (int)p->pull;
    case KEY_ENTRYPOINT:
        return p->entrypoint == ENTRYPOINT_IMAGE;
    case KEY_GIT_VERIFY:
        return p->git.verify == GIT_VERIFY_REQUIRED ? 0 : p->git.verify == GIT_VERIFY_TOLD ? 1 : 2;
    case KEY_TTY:
        return p->tty == TTY_NEVER ? 0 : p->tty == TTY_AUTO ? 1 : 2;
    default:
        return -1;
    }
}

static int reads(enum path_access a)
{
    return a != PATH_HIDE;
}
/* 2: the host's files, 1: a private layer, 0: nothing */
static int writes(enum path_access a)
{
    return a == PATH_RW ? 2 : a == PATH_CACHE ? 1 : 0;
}

/* The fixed rule for exactly this path, or NULL. */
static const struct path_rule *rule_at(const struct merge *m, struct str place)
{
    const uint32_t *at = table_find(&m->paths, 0, place);
    return at ? &m->p->paths[*at] : NULL;
}

enum path_access merge_access(const struct merge *m, const char *path)
{
    const struct policy *p = m->p;
    enum path_access a = PATH_RO;

    for (size_t n = strlen(path);;) {
        struct str here = {path, n ? n : 1};
        const struct path_rule *r = rule_at(m, here);
        if (r || str_is(here, p->workspace)) {
            a = r ? r->access : p->workspace_read_only ? PATH_RO : PATH_RW;
            break;
        }
        if (n <= 1)
            break;
        while (n > 0 && path[--n] != '/')
            ;
    }
    for (size_t i = 0; i < p->n_paths && a != PATH_HIDE; i++) {
        const struct path_rule *r = &p->paths[i];
        if ((r->any_depth || r->pattern) && path_rule_covers(r, path))
            a = r->access == PATH_HIDE || writes(a) ? r->access : a;
    }
    return a;
}

static int check_path(struct merge *m, const struct said *s, const struct path_text *t)
{
    enum path_access wanted = s->key == KEY_RW        ? PATH_RW
                              : s->key == KEY_RO      ? PATH_RO
                              : s->key == KEY_HIDE    ? PATH_HIDE
                              : s->key == KEY_PROTECT ? PATH_PROTECT
                                                      : PATH_CACHE;
    bool fixed = !t->any_depth && !t->pattern;
    const struct path_rule *exact = NULL;

    for (size_t i = 0; i < m->p->n_paths && !exact; i++) {
        const struct path_rule *r = &m->p->paths[i];
        if (r->any_depth == t->any_depth && r->pattern == t->pattern && same(r->path, t->path) &&
            same(r->below, t->below))
            exact = r;
    }
    if (exact && exact->access == wanted)
        return 1;
    if (wanted == PATH_HIDE)
        return 0;
    if (!fixed) /* protect: a new rule only forbids, but a hide stays a hide */
        return exact && exact->access == PATH_HIDE ? 1 : 0;

    enum path_access now = merge_access(m, t->path);
    if (reads(wanted) > reads(now))
        return tighten_refuse(m, s, "would show something hidden");
    if (writes(wanted) > writes(now))
        return tighten_refuse(m, s, "would make something writable");
    /* Something writable already gains nothing, and must not be exempted from what guards its surroundings. */
    if (wanted == PATH_RW)
        return 1;
    if (wanted == PATH_CACHE)
        return tighten_refuse(m, s, "would give the box its own storage");
    return exact && !writes(exact->access) ? 1 : 0;
}

int tighten_check(struct merge *m, const struct said *s, const struct path_text *path)
{
    const struct policy *p = m->p;
    uint64_t v;

    switch (key_tightening(s->key)) {
    case TIGHTEN_SKIP:
    case TIGHTEN_ADD:
        return 0;
    case TIGHTEN_RANK:
        return key_choice(s->key, s->a) <= rank_now(p, s->key) ? 0 : tighten_refuse(m, s, "would allow more");
    case TIGHTEN_LESS:
        if (limit_value(s->key, s->a, &v, NULL) == 0 && v <= p->limits.each[s->key - KEY_MEMORY].value)
            return 0;
        return tighten_refuse(m, s, "would raise a limit");
    case TIGHTEN_TRUE:
        if (str_is(s->a, "true"))
            return 0;
        if (s->key == KEY_GPG_CONFIRM)
            return p->gpg_confirm ? tighten_refuse(m, s, "would allow more") : 1;
        if (s->key == KEY_SSH_CONFIRM)
            return p->ssh_confirm ? tighten_refuse(m, s, "would allow more") : 1;
        if (s->key == KEY_MONITOR)
            return p->monitor ? tighten_refuse(m, s, "would leave refusals untold") : 1;
        if (s->key == KEY_COW)
            return p->cow ? tighten_refuse(m, s, "would let the box change the workspace itself") : 1;
        return p->workspace_read_only ? tighten_refuse(m, s, "would make the workspace writable") : 1;
    case TIGHTEN_FALSE:
        if (str_is(s->a, "false"))
            return 0;
        return (s->key == KEY_NET_ASK       ? p->net_ask
                : s->key == KEY_ENV_FILES   ? p->env_files
                : s->key == KEY_GIT_FORCE   ? p->git.allow_force
                : s->key == KEY_GIT_DELETE  ? p->git.allow_delete
                : s->key == KEY_UNSANDBOXED ? p->unsandboxed_fallback
                                            : p->allow_nested_userns)
                   ? 1
                   : tighten_refuse(m, s, "would allow more");
    case TIGHTEN_PATH:
        return check_path(m, s, path);
    case TIGHTEN_NEVER:
        break;
    }
    if (s->key == KEY_MAY_LOSE) {
        for (int f = 0; f < FEATURE_COUNT; f++) {
            if (str_is(s->a, feature_name(f)) && (p->may_lose & (features)1 << f))
                return 1;
        }
    }
    return tighten_refuse(m, s, "would change what the box may do");
}
