/* Says in sentences what a layer did to the repository at the top of the workspace: branches, index, objects. From bytes; no git runs. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "layer/change.h"
#include "sys/fd.h"

#define REF_MAX    512
#define SHOWN_MAX  50 /* branches that are named */
#define SHOWN_HASH 12

struct view {
    const struct layer_trees *t;
    struct buf *out;
    size_t refs, objects, packs, others;
    bool index, head, stash;
};

/* The first line of a small file; "" if there is none. */
static void first_line(const struct view *v, int top, const char *path, char ret[REF_MAX])
{
    const char *name;
    own_fd int dir = object_parent(top, path, &name);
    own_fd int fd = dir < 0                  ? dir
                    : top == v->t->workspace ? object_open_as_is(dir, name, S_IFREG)
                                             : object_open(dir, name, S_IFREG);
    long n = fd < 0 ? 0 : sys_pread(fd, ret, REF_MAX - 1, 0);
    ret[n > 0 ? n : 0] = 0;
    ret[strcspn(ret, "\n")] = 0;
}

static void put_said(struct buf *out, const char *text, size_t n)
{
    utf8_safe(out, (struct str){text, strnlen(text, n)});
}

static void put_side(const struct view *v, const struct layer_object *o, int top, const char *path)
{
    char line[REF_MAX];
    if (!o->mode) {
        buf_text(v->out, "nothing");
        return;
    }
    first_line(v, top, path, line);
    put_said(v->out, line, str_starts(str_of(line), STR("ref: ")) ? REF_MAX : SHOWN_HASH);
}

static void say_ref(struct view *v, const struct change *c, const char *what, const char *name)
{
    if (v->refs++ >= SHOWN_MAX)
        return;
    buf_printf(v->out, "%s", what);
    put_said(v->out, name, REF_MAX);
    buf_text(v->out, c->kind == CHANGE_ADDED ? ": new, " : c->kind == CHANGE_DELETED ? ": deleted, was " : ": ");
    if (c->kind != CHANGE_ADDED)
        put_side(v, &c->old, v->t->workspace, c->path);
    if (c->kind == CHANGE_EDITED)
        buf_text(v->out, " -> ");
    if (c->kind != CHANGE_DELETED)
        put_side(v, &c->new, v->t->upper, c->path);
    buf_char(v->out, '\n');
}

static bool under(const char *path, const char *dir, const char **ret_rest)
{
    const size_t n = strlen(dir);
    if (strncmp(path, dir, n) != 0)
        return false;
    *ret_rest = path + n;
    return true;
}

static void look_at(struct view *v, const struct change *c)
{
    const char *path = c->path + 5, *name;
    if (object_is(&c->new, S_IFDIR) || (c->kind == CHANGE_DELETED && object_is(&c->old, S_IFDIR)))
        return;
    if (under(path, "refs/heads/", &name))
        say_ref(v, c, "branch ", name);
    else if (under(path, "refs/tags/", &name))
        say_ref(v, c, "tag ", name);
    else if (same(path, "refs/stash"))
        v->stash = true;
    else if (under(path, "refs/", &name))
        say_ref(v, c, "ref ", name);
    else if (same(path, "HEAD"))
        say_ref(v, c, "HEAD", "");
    else if (same(path, "index"))
        v->index = true;
    else if (under(path, "objects/pack/", &name))
        v->packs += c->kind == CHANGE_ADDED && str_ends(str_of(name), STR(".pack"));
    else if (under(path, "objects/", &name))
        v->objects += c->kind == CHANGE_ADDED;
    else if (!under(path, "logs/", &name) && !str_ends(str_of(path), STR("_HEAD")) && !same(path, "COMMIT_EDITMSG"))
        v->others++;
}

int gitview_put(const struct layer_trees *t, const struct changes *changes, struct buf *out, struct err *e)
{
    struct view v = {.t = t, .out = out};
    for (size_t i = 0; i < changes->n; i++) {
        if (str_starts(str_of(changes->all[i].path), STR(".git/")))
            look_at(&v, &changes->all[i]);
    }
    if (v.refs > SHOWN_MAX)
        buf_printf(out, "%zu more branches, tags and refs\n", v.refs - SHOWN_MAX);
    if (v.stash)
        buf_text(out, "the stash changed\n");
    if (v.index)
        buf_text(out, "the index changed\n");
    if (v.objects || v.packs)
        buf_printf(out, "%zu new objects and %zu new packs\n", v.objects, v.packs);
    if (v.others)
        buf_printf(out, "%zu other files of the repository changed, as configuration and hooks\n", v.others);
    return buf_ok(out) ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot describe its repository", t->id);
}
