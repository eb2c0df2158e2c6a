/* Merges what a policy says about paths: access, mounts and storage. One rule per path, a later text's in place of an
   earlier one's. */
#include "policy/merge.h"

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
    static const char names[][8] = {"hide", "ro", "rw", "protect", "cache"};
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
        return merge_say(m, ERR_POLICY, s, "the workspace '%s' is also declared %s%s", p->workspace,
                         access_name(m->here), m->text->flags ? " by another option; leave out one of them" : "");
    if (!m->text->trusted && a == PATH_RW && p->workspace_read_only)
        return tighten_refuse(m, s, "would make the workspace writable");
    if (!m->text->trusted && a == PATH_RW)
        return 0;
    m->here = a;
    m->here_text = m->text_no;
    p->workspace_read_only = a == PATH_RO;
    p->read_only_origin = merge_origin(m, s);
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
                                          access_name(p->paths[*at].access), merge_text_name(m, before))
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
                                       .absent = s->bits & SAID_ABSENT,
                                       .origin = merge_origin(m, s)};
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

int merge_path(struct merge *m, const struct said *s, enum path_access a)
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

int merge_mount(struct merge *m, const struct said *s)
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
        return merge_say(m, ERR_POLICY, s, "'%.*s' is relative; the path inside the box must be absolute", (int)s->b.n,
                         s->b.p);
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
    rule.origin = merge_origin(m, s);
    *slot = rule;
    return 0;
}

/* The path of a statement, which is no pattern. */
int merge_literal(struct merge *m, const struct said *s, struct path_text *ret)
{
    struct path_context c = merge_context(m, m->text);
    struct err why;
    int r = path_expand(&c, s->a, path_forms_of(false, s->bits & SAID_FLAG), m->p->mem, ret, &why);
    return r < 0 ? merge_say(m, ERR_POLICY, s, "%s", why.text) : 0;
}

int merge_new(struct merge *m, const struct said *s, struct table *known, const char *path)
{
    bool fresh;
    if (!m->text->trusted) {
        int r = table_find(known, 0, str_of(path)) ? 0 : tighten_check(m, s, NULL);
        return r < 0 ? r : 0;
    }
    return table_put(known, 0, str_of(path), 0, &fresh) ? fresh : merge_no_memory(m);
}

int merge_storage(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    struct path_text t;

    int r = merge_literal(m, s, &t);
    if (r < 0)
        return r;
    if (same(t.path, "/"))
        return merge_say(m, ERR_POLICY, s, "'/' is the whole file system; name directories below it");
    r = merge_new(m, s, &m->storages, t.path);
    if (r <= 0)
        return r;
    struct storage_rule *slot = arena_push(p->mem, &p->storages, &p->n_storages, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct storage_rule){t.path, merge_origin(m, s)};
    return 0;
}
