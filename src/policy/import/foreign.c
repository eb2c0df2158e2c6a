/*
 * What translates settings of other sandboxes into statements. Everything that cannot be honoured goes to list->ignored.
 * So do unknown keys, unless one is so near to a known key that it must be a typing error: then it is an error, because
 * a rule that silently has no effect is worse than a refused file. Each format has a file beside this one.
 */
#include <errno.h>

#include "policy/domain.h"
#include "policy/import/foreign.h"

/* dive's and mycode's image where their settings name none. */
#define FOREIGN_IMAGE "ubuntu:22.04"

int foreign_no_memory(const struct foreign *f)
{
    return err_sys(f->src->e, ERR_SYSTEM, ENOMEM, "%s", f->src->file);
}

int foreign_ignore(struct foreign *f, const char *key, const char *why, enum loss loss, const struct node *at)
{
    struct said_list *l = f->src->list;
    if (f->strict && loss == LOSS_OF_NOTHING)
        return 0;
    if (f->strict && loss == LOSS_OF_MEANING)
        return place_say(f->src->e, ERR_POLICY, f->src->file, at->line, at->column, "%s%s cannot be honoured: %s",
                         f->prefix, key, why);
    struct foreign_key *slot = arena_push(l->mem, &l->ignored, &l->n_ignored, sizeof *slot);
    char *full = arena_printf(l->mem, "%s%s", f->prefix, key);
    if (!slot || !full)
        return foreign_no_memory(f);
    *slot = (struct foreign_key){.key = full, .why = why, .line = at->line, .column = at->column};
    return 0;
}

int foreign_ignore_value(struct foreign *f, const char *key, struct str value, const char *why, enum loss loss,
                         const struct node *at)
{
    char *text = arena_printf(f->src->list->mem, "%s '%.*s'", key, STR_SAID(value));
    return text ? foreign_ignore(f, text, why, loss, at) : foreign_no_memory(f);
}

int foreign_wrong(struct foreign *f, const char *key, const struct node *n, const char *wanted)
{
    struct str name = str_of(f->prefix);
    if (!*key && name.n)
        name.n--; /* "filesystem." itself */
    if (n->kind == NODE_SCALAR && !node_is_null(n))
        return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column, "%.*s%s must be %s, not '%.*s'",
                         (int)name.n, name.p, key, wanted, STR_SAID(n->text));
    return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column, "%.*s%s must be %s, not %s", (int)name.n,
                     name.p, key, wanted, node_is_null(n) ? "empty" : node_kind_name(n));
}

int foreign_say(struct foreign *f, enum key_id id, const struct node *at, struct str a, struct str b, unsigned bits)
{
    return said_add(
        f->src,
        (struct said){
            .key = (uint16_t)id, .bits = (uint16_t)bits, .line = at->line, .column = at->column, .a = a, .b = b});
}

int foreign_say_text(struct foreign *f, enum key_id id, const struct node *at, const char *text)
{
    return text ? foreign_say(f, id, at, str_of(text), STR(""), 0) : foreign_no_memory(f);
}

/* Reads a mapping with its table of keys. */
int foreign_map(struct foreign *f, const char *prefix, const struct node *map, const struct foreign_spec *specs)
{
    const char *before = f->prefix;

    f->prefix = prefix;
    if (map->kind != NODE_MAP)
        return foreign_wrong(f, "", map, "a mapping");
    for (size_t i = 0; i < map->n; i++) {
        const struct node *key = &map->items[2 * i], *value = key + 1;
        const struct foreign_spec *spec = specs, *near = NULL;
        unsigned nearest = 99;
        int r = 0;
        for (; spec->name && !str_is(key->text, spec->name); spec++) {
            unsigned d = str_distance(key->text, str_of(spec->name));
            if (d < nearest) {
                nearest = d;
                near = spec;
            }
        }
        if (spec->name && spec->read)
            r = spec->read(f, value);
        else if (spec->name)
            r = spec->why ? foreign_ignore(f, spec->name, spec->why, spec->loss, key) : 0;
        else if (near && is_near(nearest, key->text))
            r = place_say(f->src->e, ERR_POLICY, f->src->file, key->line, key->column,
                          "unknown key '%s%.*s' (did you mean '%s'?)", prefix, STR_SAID(key->text), near->name);
        else {
            char *name = arena_printf(f->src->list->mem, "%.*s", STR_SAID(key->text));
            r = name
                    ? foreign_ignore(f, name,
                                     f->strict ? "it is not a key of sandbox-runtime 0.0.78; remove it" : "unknown key",
                                     LOSS_OF_MEANING, key)
                    : foreign_no_memory(f);
        }
        if (r < 0)
            return r;
    }
    f->prefix = before;
    return 0;
}

int foreign_bool(struct foreign *f, const char *key, const struct node *n, bool *ret)
{
    if (n->kind != NODE_SCALAR || !n->plain || !(str_is(n->text, "true") || str_is(n->text, "false")))
        return foreign_wrong(f, key, n, "true or false");
    *ret = str_is(n->text, "true");
    return 0;
}

/* Calls `each` for every text of a list. */
int foreign_each(struct foreign *f, const char *key, const struct node *list,
                 int (*each)(struct foreign *f, const struct node *item, int arg), int arg)
{
    if (list->kind != NODE_LIST)
        return foreign_wrong(f, key, list, "a list");
    for (size_t i = 0; i < list->n; i++) {
        const struct node *item = &list->items[i];
        if (item->kind != NODE_SCALAR || node_is_null(item)) {
            if (!(item->kind == NODE_SCALAR && str_is(item->text, "~")))
                return foreign_wrong(f, key, item, "a list of strings");
        }
        int r = each(f, item, arg);
        if (r < 0)
            return r;
    }
    return 0;
}

int foreign_say_item(struct foreign *f, const struct node *item, int key)
{
    if (key == KEY_ALLOW && domain_is_loopback(item->text)) { /* loopback is the box's own: no effect */
        const char *before = f->prefix;
        f->prefix = "";
        int r = foreign_ignore_value(
            f, "the allowed host", item->text,
            f->strict ? "inside the box this is the box itself; a service of this machine is localhost:PORT"
                      : DOMAIN_LOOPBACK,
            LOSS_OF_A_GRANT, item);
        f->prefix = before;
        return r;
    }
    return foreign_say(f, (enum key_id)key, item, item->text, STR(""), 0);
}

int foreign_say_optional(struct foreign *f, const struct node *item, int key)
{
    unsigned told = key == KEY_RW ? SAID_TOLD : 0;
    return foreign_say(f, (enum key_id)key, item, item->text, STR(""), SAID_OPTIONAL | told);
}

/* The image of the chosen container engine, if the settings leave it to their program. */
int foreign_say_image(struct foreign *f)
{
    return f->container_at && !f->image_said ? foreign_say_text(f, KEY_IMAGE, f->container_at, FOREIGN_IMAGE) : 0;
}

int foreign_disabled(struct foreign *f, const struct node *n)
{
    return place_say(f->src->e, ERR_POLICY, f->src->file, n->line, n->column,
                     "%senabled is false: pinfold never runs a command without a box (set it to true)", f->prefix);
}

int foreign_nearest(const struct foreign *f, const char *path, unsigned lists, bool below_only)
{
    size_t longest = 0;
    int found = -1;

    for (size_t i = 0; i < f->n_paths; i++) {
        const struct gathered *g = &f->paths[i];
        if (!(lists & 1u << g->list) || g->at.any_depth || g->at.pattern || !path_at_or_below(path, g->at.path) ||
            (below_only && same(path, g->at.path)))
            continue;
        size_t n = strlen(g->at.path);
        if (found < 0 || n > longest || (n == longest && (int)g->list > found)) {
            longest = n;
            found = (int)g->list;
        }
    }
    return found;
}

int foreign_enabled(struct foreign *f, const struct node *n)
{
    bool on = false;
    int r = foreign_bool(f, "enabled", n, &on);
    return r < 0 || on ? r : foreign_disabled(f, n);
}

int foreign_image(struct foreign *f, const struct node *n)
{
    if (n->kind != NODE_SCALAR || node_is_null(n))
        return foreign_wrong(f, "image", n, "text");
    f->image_said = n->text.n;
    return f->image_said ? foreign_say(f, KEY_IMAGE, n, n->text, STR(""), 0) : 0;
}
