/*
 * The builder collects texts and flags as statements, then merges them in this order:
 *
 *   the profile with what it extends, from the base up; system; user; project; --policy and --settings files; flags; wishes
 *
 * The files that a text extends come before it, in its own layer. The profile that it extends becomes the base of all:
 * a flag's choice wins over a project's, a project's over a user's, a user's over the system's. The default is
 * `workspace`.
 */
#include "policy/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/merge.h"
#include "policy/settings.h"
#include "policy/profile.h"

#define DEFAULT_PROFILE "workspace"
#define GROUND          "none" /* the base of every profile: only generous limits */

struct policy_text {
    struct layer_text t;
    const struct said *extends; /* the statement, or NULL */
    const char *profile;        /* the built-in profile, or NULL */
    bool settings;              /* added by policy_add_settings() */
};

/* Statements, and how each was written. */
struct option_list {
    struct said_list said;
    const char **names;
    size_t n_names;
};

struct policy_builder {
    struct policy_world world;
    struct arena *mem;
    struct policy_text *texts;
    size_t n_texts, n_rules;
    struct option_list flags, wishes;
};

struct policy_builder *policy_builder_new(const struct policy_world *world)
{
    struct policy_builder *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->world = *world;
    b->mem = arena_new(3 * (size_t)MAX_POLICY_BYTES); /* with what is only needed to merge */
    if (!b->mem)
        return policy_builder_free(b);
    b->flags.said.mem = b->wishes.said.mem = b->mem;
    return b;
}

struct policy_builder *policy_builder_free(struct policy_builder *b)
{
    if (!b)
        return NULL;
    b->mem = arena_free(b->mem);
    free(b);
    return NULL;
}

static int no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
}

/*
 * The base of a file's relative paths: its directory; for a project's .pinfold/policy.yaml the project's. A name that
 * is no path ("policy text", "-") uses the caller's directory, and so do srt's settings, whose paths are relative to
 * the current directory according to its manual.
 */
static const char *base_of(struct policy_builder *b, enum policy_layer layer, enum policy_format format,
                           const char *file)
{
    const char *slash = strrchr(file, '/');
    if (!slash || format == POLICY_SRT || format == POLICY_SRT_STRICT || format == POLICY_BWRAP)
        return path_clean_at(b->mem, "/", str_of(b->world.cwd));
    struct str dir = {file, slash == file ? 1 : (size_t)(slash - file)};
    const char *base = dir.p[0] == '~' && (dir.n == 1 || dir.p[1] == '/') && b->world.home
                           ? path_clean_at(b->mem, b->world.home, str_skip(dir, dir.n == 1 ? 1 : 2))
                           : path_clean_at(b->mem, b->world.cwd, dir);
    if (base && layer == LAYER_PROJECT && str_ends(str_of(base), STR("/.pinfold")))
        base = arena_str(b->mem, (struct str){base, strlen(base) - strlen("/.pinfold")});
    return base && !base[0] ? "/" : base;
}

static const struct said *find_said(const struct said *said, size_t n, enum key_id id)
{
    const struct said *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (said[i].key == id)
            found = &said[i];
    }
    return found;
}

static int take_profile(struct policy_text *ret, const struct profile *p, enum policy_layer layer, const char *file,
                        struct arena *mem, struct err *e)
{
    const struct said *said = profile_statements(p, mem);
    if (!said)
        return no_memory(e);
    *ret = (struct policy_text){.t = {.layer = layer,
                                      .file = file,
                                      .base = "/",
                                      .trusted = true,
                                      .lasting = true,
                                      .defaults = same(p->name, GROUND),
                                      .profile = true,
                                      .said = said,
                                      .n = p->n},
                                .extends = find_said(said, p->n, KEY_EXTENDS),
                                .profile = p->name};
    return 0;
}

/* Reads a text into statements. */
static int read_policy_text(struct policy_builder *b, enum policy_layer layer, enum policy_format format,
                            const char *file, struct str text, bool trusted, struct policy_text *ret, struct err *e)
{
    auto_arena struct arena *nodes = arena_new(2 * (size_t)MAX_POLICY_BYTES);
    struct said_list list = {.mem = b->mem};
    const char *name = arena_text(b->mem, file);
    const char *base = base_of(b, layer, format, file);
    struct node root;

    if (!nodes || !name || !base)
        return no_memory(e);
    /* Statements point into the nodes' texts; those that are kept are copied below. */
    int r =
        node_read(name, text, format == POLICY_YAML ? "; a policy needs at least 'version: 1'" : "", nodes, &root, e);
    struct source src = {.file = name, .list = &list, .e = e, .world = &b->world};
    if (r == 0)
        r = format == POLICY_YAML ? read_policy(&src, &root) : read_foreign(&src, format, &root);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.n; i++) {
        list.items[i].a.p = arena_str(b->mem, list.items[i].a);
        list.items[i].b.p = arena_str(b->mem, list.items[i].b);
    }
    if (arena_failed(b->mem))
        return no_memory(e);
    *ret = (struct policy_text){.t = {.layer = layer,
                                      .file = name,
                                      .base = base,
                                      .trusted = trusted || layer != LAYER_PROJECT,
                                      .profile = layer == LAYER_BUILTIN,
                                      .said = list.items,
                                      .n = list.n,
                                      .ignored = list.ignored,
                                      .n_ignored = list.n_ignored},
                                .extends = find_said(list.items, list.n, KEY_EXTENDS)};
    return 0;
}

int policy_add_text(struct policy_builder *b, enum policy_layer layer, enum policy_format format, const char *file,
                    struct str text, bool trusted, struct err *e)
{
    const struct profile *known = layer == LAYER_BUILTIN && format == POLICY_YAML ? profile_by_text(text) : NULL;
    struct policy_text t = {0};

    if (known) {
        const char *name = arena_text(b->mem, file);
        int r = name ? take_profile(&t, known, layer, name, b->mem, e) : no_memory(e);
        if (r < 0)
            return r;
    } else {
        int r = read_policy_text(b, layer, format, file, text, trusted, &t, e);
        if (r < 0)
            return r;
    }
    b->n_rules += t.t.n + t.t.n_ignored;
    if (b->n_rules > MAX_POLICY_RULES)
        return err_say(e, ERR_POLICY, "%s: too many rules (a policy can have %d)", file, MAX_POLICY_RULES);
    struct policy_text *slot = arena_push(b->mem, &b->texts, &b->n_texts, sizeof *slot);
    if (!slot)
        return no_memory(e);
    *slot = t;
    return 0;
}

int policy_add_settings(struct policy_builder *b, enum policy_format format, const char *file, struct str text,
                        struct err *e)
{
    struct layer_text **texts = arena_zero(b->mem, (b->n_texts + 1) * sizeof *texts);
    struct settings_before before = {.texts = texts, .world = &b->world};
    struct policy_text rest = {.extends = NULL};

    int r = texts ? policy_add_text(b, LAYER_FLAGS, format, file, text, true, e) : no_memory(e);
    if (r < 0)
        return r;
    struct policy_text *own = &b->texts[b->n_texts - 1];
    own->settings = true;
    for (size_t i = 0; i + 1 < b->n_texts; i++) {
        if (b->texts[i].settings)
            texts[before.n++] = &b->texts[i].t;
    }
    if (before.n == 0)
        return 0;
    r = settings_divide(&before, &own->t, &rest.t, b->mem, e);
    if (r < 0)
        return r;
    own->extends = find_said(own->t.said, own->t.n, KEY_EXTENDS);
    rest.extends = find_said(rest.t.said, rest.t.n, KEY_EXTENDS);
    rest.settings = true;
    struct policy_text *slot = arena_push(b->mem, &b->texts, &b->n_texts, sizeof *slot);
    if (!slot)
        return no_memory(e);
    *slot = rest;
    return 0;
}

static int unknown_flag(const char *key, const char *said, struct err *e)
{
    const char *near = NULL;
    unsigned nearest = 99;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        unsigned d = key_table[i].flag ? str_distance(str_of(key), str_of(key_table[i].flag)) : 99;
        if (d < nearest) {
            nearest = d;
            near = key_table[i].flag;
        }
    }
    int r = near && is_near(nearest, str_of(key)) ? err_say(e, ERR_POLICY, "unknown option (did you mean --%s?)", near)
                                                  : err_say(e, ERR_POLICY, "unknown option");
    return place_wrap(e, r, said, 0, 0);
}

static int add_option(struct policy_builder *b, struct option_list *to, const char *key, const char *value,
                      const char *said, struct err *e)
{
    const struct policy_key *k = policy_key_by_flag(key);
    const char *name = arena_text(b->mem, said);
    size_t before = to->said.n;

    if (!name)
        return no_memory(e);
    if (!k)
        return unknown_flag(key, said, e);
    if (!value && k->takes_value)
        return place_say(e, ERR_POLICY, said, 0, 0, "needs a value, %s", k->value);
    const char *copy = arena_text(b->mem, value ? value : "true");
    if (!copy)
        return no_memory(e);
    struct source src = {.file = name, .list = &to->said, .e = e, .world = &b->world};
    int r = read_flag(&src, (enum key_id)(k - key_table), str_of(copy));
    if (r < 0)
        return r;
    if (++b->n_rules > MAX_POLICY_RULES)
        return place_say(e, ERR_POLICY, said, 0, 0, "too many rules (a policy can have %d)", MAX_POLICY_RULES);
    const char **slot = to->said.n > before ? arena_push(b->mem, &to->names, &to->n_names, sizeof *slot) : NULL;
    if (!slot)
        return no_memory(e);
    *slot = name;
    return 0;
}

int policy_add_flag(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e)
{
    return add_option(b, &b->flags, key, value, said, e);
}

int policy_add_wish(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e)
{
    const struct policy_key *k = policy_key_by_flag(key);
    if (k == &key_table[KEY_EXTENDS])
        return place_say(e, ERR_REFUSED, said, 0, 0, "would choose another profile, which only the user may do");
    return add_option(b, &b->wishes, key, value, said, e);
}

/* The order of merging, under construction. */
struct sequence {
    struct policy_builder *b;
    struct arena *mem; /* of the chain being followed; lives as long as the builder */
    struct err *e;
    struct policy_text *texts;
    size_t n;
    struct room room;
};

static int append_said(struct sequence *s, const struct policy_text *t)
{
    struct policy_text *slot = arena_push(s->mem, &s->texts, &s->n, sizeof *slot);
    if (!slot)
        return no_memory(s->e);
    *slot = *t;
    merge_room(&s->room, &t->t);
    if (s->room.origins > MAX_POLICY_RULES)
        return err_say(s->e, ERR_POLICY, "%s: too many rules (a policy can have %d)", t->t.file, MAX_POLICY_RULES);
    return 0;
}

static bool is_path(struct str name)
{
    return memchr(name.p, '/', name.n) || (name.n && (name.p[0] == '~' || name.p[0] == '.'));
}

/* Reports an error at a statement. */
static int say_at(struct sequence *s, const struct policy_text *t, const struct said *at, const char *sentence)
{
    return place_say(s->e, ERR_POLICY, t->t.flags ? t->t.flags[at - t->t.said] : t->t.file, at->line, at->column, "%s",
                     sentence);
}

static int unknown_profile(struct sequence *s, const struct policy_text *t, const struct said *at)
{
    char sentence[512], list[256] = "";
    const char *near = NULL;
    unsigned nearest = 99;
    size_t n = 0;

    for (const char *const *name = profile_names(); *name; name++) {
        unsigned d = str_distance(at->a, str_of(*name));
        if (d < nearest) {
            nearest = d;
            near = *name;
        }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", *name);
    }
    if (near && is_near(nearest, at->a))
        snprintf(sentence, sizeof sentence, "unknown profile '%.*s' (did you mean '%s'?)",
                 (int)(at->a.n < 120 ? at->a.n : 120), at->a.p, near);
    else
        snprintf(sentence, sizeof sentence, "unknown profile '%.*s' (known: %s; write a file as ./FILE)",
                 (int)(at->a.n < 120 ? at->a.n : 120), at->a.p, list);
    return say_at(s, t, at, sentence);
}

static const struct profile *profile_said(const struct said *extends)
{
    const struct profile *p = profile_table;
    while (p->name && !str_is(extends->a, p->name))
        p++;
    return p->name ? p : NULL;
}

/* The text for `extends` of `t`: a built-in one, or what the caller has under that name. */
static int follow(struct sequence *s, const struct policy_text *t, enum policy_layer layer, struct policy_text *ret)
{
    const struct said *at = t->extends;
    struct policy_builder *b = s->b;
    const char *name = arena_str(s->mem, at->a), *file;
    struct str text;

    if (!name)
        return no_memory(s->e);
    if (is_path(at->a)) {
        struct path_context c = {.world = &b->world, .base = t->t.base};
        struct path_text path;
        struct err why;
        int r = path_expand(&c, at->a, path_forms_of(false, at->bits & SAID_FLAG), s->mem, &path, &why);
        if (r < 0)
            return say_at(s, t, at, why.text);
        name = path.path;
    } else {
        const struct profile *p = profile_by_name(name);
        const char *said = p ? arena_printf(s->mem, "profile %s", name) : NULL;
        if (p && !said)
            return no_memory(s->e);
        if (p)
            return take_profile(ret, p, layer, said, s->mem, s->e);
    }
    int r = b->world.fetch ? b->world.fetch(b->world.ctx, name, t->t.file, &file, &text, s->e) : -ENOENT;
    if (r == -ENOENT && !is_path(at->a))
        return unknown_profile(s, t, at);
    if (r == -ENOENT) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "the file that this extends does not exist: %.400s", name);
        return say_at(s, t, at, sentence);
    }
    if (r < 0)
        return r;
    r = read_policy_text(b, layer, POLICY_YAML, file, text, t->t.trusted, ret, s->e);
    ret->t.trusted = t->t.trusted;
    return r;
}

/* A text and the files that it extends, nearest first. */
struct profile_chain {
    struct policy_text *links;
    size_t n;
};

/*
 * Follows what `t` extends, up to a built-in name, which selects the base (`whole` false); or, for a profile, all the
 * way to the base.
 */
static int make_chain(struct sequence *s, const struct policy_text *t, bool whole, struct profile_chain *ret)
{
    struct profile_chain c = {.links = arena_zero(s->mem, (MAX_POLICY_EXTENDS + 3) * sizeof *c.links)};

    if (!c.links)
        return no_memory(s->e);
    c.links[c.n++] = *t;
    for (;;) {
        const struct policy_text *last = &c.links[c.n - 1];
        const struct said *at = last->extends;
        if (!at || !last->t.trusted || (!whole && !is_path(at->a)))
            break;
        if (c.n > MAX_POLICY_EXTENDS)
            return say_at(s, last, at, "too many levels of 'extends'");
        int r = follow(s, last, t->t.layer, &c.links[c.n]);
        if (r < 0)
            return r;
        for (size_t i = 0; i < c.n; i++) {
            if (same(c.links[i].t.file, c.links[c.n].t.file))
                return say_at(s, last, at, "'extends' forms a loop");
        }
        c.n++;
    }
    int r = 0;
    if (whole && !same(c.links[c.n - 1].profile, GROUND))
        r = take_profile(&c.links[c.n++], profile_by_name(GROUND), LAYER_BUILTIN, "profile " GROUND, s->mem, s->e);
    *ret = c;
    return r;
}

static int append_chain(struct sequence *s, const struct profile_chain *c)
{
    int r = 0;
    for (size_t i = c->n; r == 0 && i > 0; i--)
        r = append_said(s, &c->links[i - 1]);
    return r;
}

static int append_ground(struct sequence *s, const struct policy_text *ground, const char **ret_name)
{
    struct profile_chain c;
    int r = make_chain(s, ground, true, &c);
    if (r < 0)
        return r;
    for (size_t i = 0; i < c.n; i++) {
        c.links[i].t.profile = true;
        c.links[i].t.trusted = true;
    }
    *ret_name = ground->profile ? ground->profile : ground->t.file;
    return append_chain(s, &c);
}

/* Adds the base profile; `chains` are those of all other texts, in rising order of authority. */
static int add_ground(struct sequence *s, const struct policy_text *flags, const struct profile_chain *chains, size_t n,
                      const char **ret_name)
{
    struct policy_builder *b = s->b;
    const struct policy_text *chosen = flags->extends ? flags : NULL, *given = NULL;
    struct policy_text ground;

    for (size_t i = 0; i < b->n_texts; i++) {
        if (b->texts[i].t.layer == LAYER_BUILTIN)
            given = &b->texts[i];
    }
    /* A profile passed by name was requested, unless it is the default. */
    if (!chosen && given && !same(given->profile, DEFAULT_PROFILE))
        return append_ground(s, given, ret_name);
    for (size_t i = n; i > 0 && !chosen; i--) {
        const struct policy_text *last = &chains[i - 1].links[chains[i - 1].n - 1];
        if (last->extends && last->t.trusted)
            chosen = last;
    }
    if (chosen) {
        int r = follow(s, chosen, LAYER_BUILTIN, &ground);
        return r < 0 ? r : append_ground(s, &ground, ret_name);
    }
    if (given)
        return append_ground(s, given, ret_name);
    int r = take_profile(&ground, profile_by_name(DEFAULT_PROFILE), LAYER_BUILTIN, "profile " DEFAULT_PROFILE, s->mem,
                         s->e);
    return r < 0 ? r : append_ground(s, &ground, ret_name);
}

static int make_sequence(struct sequence *s, const struct policy_text *flags, const char **ret_profile)
{
    struct policy_builder *b = s->b;
    struct profile_chain *chains = arena_zero(s->mem, (b->n_texts + 1) * sizeof *chains);
    size_t n = 0;
    int r = chains ? 0 : no_memory(s->e);

    for (int layer = LAYER_SYSTEM; r == 0 && layer < LAYER_COUNT; layer++) {
        for (size_t i = 0; r == 0 && i < b->n_texts; i++) {
            if ((int)b->texts[i].t.layer == layer)
                r = make_chain(s, &b->texts[i], false, &chains[n++]);
        }
    }
    /* An unknown name is an error even if a higher layer chooses another profile. */
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct policy_text *last = &chains[i].links[chains[i].n - 1];
        struct policy_text ignored;
        if (last->extends && last->t.trusted && !profile_said(last->extends))
            r = follow(s, last, LAYER_BUILTIN, &ignored);
    }
    if (r == 0)
        r = add_ground(s, flags, chains, n, ret_profile);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = append_chain(s, &chains[i]);
    if (r == 0 && flags->t.n)
        r = append_said(s, flags);
    return r;
}

/* Decides about the workspace before any path is expanded: ${WORKSPACE} stands for it, and it is the most specific
   rule of its path. */
static int choose_workspace(struct sequence *s, struct policy *p)
{
    const struct policy_text *by = NULL;
    const struct said *at = NULL;
    const char *home = s->b->world.home ? path_clean_at(p->mem, "/", str_of(s->b->world.home)) : NULL;
    char sentence[512];

    for (size_t i = 0; i < s->n; i++) {
        const struct said *said = find_said(s->texts[i].t.said, s->texts[i].t.n, KEY_WORKSPACE);
        if (said && s->texts[i].t.trusted) {
            at = said;
            by = &s->texts[i];
        }
    }
    p->workspace = path_clean_at(p->mem, "/", str_of(s->b->world.cwd));
    if (at) {
        struct path_context c = {.world = &s->b->world, .base = by->t.base};
        struct path_text path;
        struct err why;
        int r = path_expand(&c, at->a, path_forms_of(false, at->bits & SAID_FLAG), p->mem, &path, &why);
        if (r < 0)
            return say_at(s, by, at, why.text);
        p->workspace = path.path;
        p->workspace_origin = (uint32_t)p->n_origins;
        p->origins[p->n_origins++] = (struct origin){.layer = by->t.layer,
                                                     .file = by->t.flags ? by->t.flags[at - by->t.said] : by->t.file,
                                                     .line = at->line,
                                                     .column = at->column};
    }
    if (arena_failed(p->mem) || !p->workspace)
        return no_memory(s->e);
    if (same(p->workspace, "/"))
        snprintf(sentence, sizeof sentence,
                 WORKSPACE_TOO_WIDE "'/', the whole file system; change to a project's directory or use "
                                    "--workspace DIR");
    else if (home && same(p->workspace, home))
        snprintf(sentence, sizeof sentence,
                 WORKSPACE_TOO_WIDE
                 "your whole home directory; change to a project's directory or use --workspace DIR");
    else if (home && path_at_or_below(home, p->workspace))
        snprintf(sentence, sizeof sentence,
                 "the workspace '%.200s' contains your home directory; change to a project's directory or use "
                 "--workspace DIR",
                 p->workspace);
    else
        return 0;
    return at ? say_at(s, by, at, sentence) : err_say(s->e, ERR_POLICY, "%s", sentence);
}

/* An untrusted project may name itself as the workspace, nothing else. */
static int check_untrusted_workspace(struct sequence *s, struct merge *m)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct policy_text *t = &s->texts[i];
        const struct said *at = t->t.trusted ? NULL : find_said(t->t.said, t->t.n, KEY_WORKSPACE);
        struct path_context c = {.world = &s->b->world, .base = t->t.base};
        struct path_text path;
        struct err why;
        if (!at)
            continue;
        int r = path_expand(&c, at->a, path_forms_of(false, at->bits & SAID_FLAG), m->p->mem, &path, &why);
        if (r < 0)
            return say_at(s, t, at, why.text);
        m->text = &t->t;
        r = same(path.path, m->p->workspace) ? 0 : tighten_refuse(m, at, "would choose another workspace");
        if (r < 0)
            return r;
    }
    return 0;
}

/* Copies strings that the policy keeps but the builder owns. */
static int keep_names(struct sequence *s, struct policy *p)
{
    for (size_t i = 0; i < s->n; i++) {
        struct layer_text *t = &s->texts[i].t;
        t->file = arena_text(p->mem, t->file);
        if (t->flags) {
            const char **copy = arena_zero(p->mem, (t->n + 1) * sizeof *copy);
            for (size_t k = 0; copy && k < t->n; k++)
                copy[k] = arena_text(p->mem, t->flags[k]);
            t->flags = copy;
        }
    }
    return arena_failed(p->mem) ? no_memory(s->e) : 0;
}

static struct policy_text text_of_options(struct policy_builder *b, const struct option_list *from, const char *file,
                                          bool trusted)
{
    return (struct policy_text){.t = {.layer = LAYER_FLAGS,
                                      .file = file,
                                      .base = path_clean_at(b->mem, "/", str_of(b->world.cwd)),
                                      .trusted = trusted,
                                      .said = from->said.items,
                                      .flags = from->names,
                                      .n = from->said.n},
                                .extends = find_said(from->said.items, from->said.n, KEY_EXTENDS)};
}

static int fill_policy(struct policy_builder *b, struct policy *p, struct err *e)
{
    struct sequence s = {.b = b, .mem = b->mem, .e = e};
    struct merge m = {.world = &b->world, .scratch = b->mem};
    const char *profile = NULL;
    struct policy_text flags = text_of_options(b, &b->flags, "flags", true);
    struct policy_text wishes = text_of_options(b, &b->wishes, "wishes", false);

    if (!flags.t.base || !wishes.t.base)
        return no_memory(e);
    int r = make_sequence(&s, &flags, &profile);
    if (r == 0 && wishes.t.n)
        r = append_said(&s, &wishes);
    if (r == 0)
        r = keep_names(&s, p);
    if (r == 0)
        r = merge_begin(&m, p, s.room, e);
    if (r == 0)
        r = choose_workspace(&s, p);
    if (r == 0)
        r = check_untrusted_workspace(&s, &m);
    for (size_t i = 0; r == 0 && i < s.n; i++)
        r = merge_text(&m, &s.texts[i].t);
    if (r == 0)
        r = merge_end(&m);
    if (r == 0) {
        p->profile = arena_text(p->mem, profile);
        r = p->profile ? 0 : no_memory(e);
    }
    return r;
}

int policy_build(struct policy_builder *b, struct policy **ret, struct err *e)
{
    struct arena *mem = arena_new(MAX_POLICY_BYTES);
    struct policy *p = mem ? arena_zero(mem, sizeof *p) : NULL;

    if (!p) {
        arena_free(mem);
        return no_memory(e);
    }
    p->mem = mem;
    int r = fill_policy(b, p, e);
    if (r < 0) {
        policy_free(p);
        return r;
    }
    *ret = p;
    return 0;
}
