/*
 * Hunks of text files: what can be applied in parts, and the file that comes of some of its hunks. That one is made in the layer's own
 * directory, parts/, from where an apply stages it as it does with files of the layer. What is not taken is a change still, because the
 * layer keeps the whole file.
 */
#include <errno.h>
#include <sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/hex.h"

#include "layer/change.h"
#include "layer/lines.h"
#include "layer/side.h"
#include "layer/text.h"
#include "sys/fd.h"
#include "sys/remove.h"

#define PARTS     "parts"
#define HUNKS_MAX 100000

struct split_text {
    struct line_diff diff; /* its lines are those of the two sides */
    struct line_hunk *hunks;
    size_t n;
};

void hunks_word(const struct change *c, char ret[HUNKS_WORD])
{
    SHA1_CTX context;
    uint8_t digest[SHA1_DIGEST_LENGTH];
    auto_buf struct buf text = BUF(LAYER_PATH_MAX * 4);
    text_put_object(&text, &c->old);
    text_put_object(&text, &c->new);
    text_put_rest(&text, c->path);
    SHA1Init(&context);
    SHA1Update(&context, (const uint8_t *)buf_cstr(&text), text.n);
    SHA1Final(digest, &context);
    hex_digits(digest, sizeof digest, ret);
}

/* Why it is applied whole, as far as that can be said without its content. */
static const char *why_whole(const struct change *c)
{
    if (c->kind != CHANGE_EDITED)
        return c->kind == CHANGE_ADDED ? "it is new" : "it is deleted";
    if (!object_is(&c->old, S_IFREG) || !object_is(&c->new, S_IFREG))
        return "it is not a file, or was not one";
    if (c->what != CHANGED_CONTENT)
        return "more than its content changes";
    if (c->linked || c->old.links > 1 || c->new.links > 1)
        return "it has several names";
    return NULL;
}

static const char *why_unsplit(int e)
{
    return e == -EFBIG ? "it is too large" : e == -EBADMSG ? "it is binary" : e == -ENOMEM ? NULL : "it cannot be read";
}

/* -EBADMSG: no text; -EFBIG: too much of it; -ESTALE: it is changing. */
static int split_change(const struct layer_trees *t, const struct change *c, struct arena *mem, struct side *old,
                        struct side *new, struct split_text *ret)
{
    int r = side_read(t, t->workspace, c->path, &c->old, NULL, mem, old);
    if (r == 0)
        r = side_read(t, t->upper, c->path, &c->new, NULL, mem, new);
    if (r == 0 && (!side_is_text(old) || !side_is_text(new)))
        r = -EBADMSG;
    if (r == 0)
        r = lines_compare(old->bytes, new->bytes, mem, &ret->diff);
    if (r == 0)
        ret->hunks = lines_hunks(&ret->diff, mem, &ret->n);
    if (r == 0 && (!ret->hunks || ret->n > HUNKS_MAX))
        r = ret->hunks ? -EFBIG : arena_failed(mem) ? -ENOMEM : -ESTALE;
    return r;
}

int hunks_of(const struct layer_trees *t, const struct change *c, struct arena *mem, struct change_hunks *ret)
{
    auto_arena struct arena *own = arena_new(LAYER_READ_MAX * 4);
    struct side old, new;
    struct split_text s = {.n = 0};
    *ret = (struct change_hunks){.whole = why_whole(c)};
    if (ret->whole)
        return 0;
    int r = own ? split_change(t, c, own, &old, &new, &s) : -ENOMEM;
    if (r < 0) {
        ret->whole = why_unsplit(r);
        return ret->whole ? 0 : r;
    }
    ret->texts = arena_zero(mem, (s.n + 1) * sizeof *ret->texts);
    for (size_t i = 0; ret->texts && i < s.n; i++) {
        auto_buf struct buf text = BUF(SIDE_MAX * 4);
        lines_put_hunk(&s.diff, &s.hunks[i], &text);
        const struct str all = buf_view(&text);
        const bool cut = all.n > HUNK_SHOWN;
        ret->texts[i] = arena_printf(mem, "%.*s%s", (int)(cut ? HUNK_SHOWN : all.n), all.p,
                                     cut ? "\n... (more of this hunk is not shown)\n" : "");
        if (!buf_ok(&text) || !ret->texts[i])
            return -ENOMEM;
    }
    ret->n = s.n;
    return ret->texts ? 0 : -ENOMEM;
}

/* ---- some of them ---- */

/* "1,3": a mark for each; false: they are none of `n`. */
static bool take_numbers(const char *text, size_t n, bool *take)
{
    while (*text) {
        char *end;
        const unsigned long number = strtoul(text, &end, 10);
        if (end == text || *text == '-' || *text == '+' || number < 1 || number > n || (*end && *end != ','))
            return false;
        take[number - 1] = true;
        text = end + (*end == ',');
    }
    return true;
}

bool part_unchanged(int top, const char *path, const struct layer_object *before)
{
    const char *name;
    struct layer_object now;
    own_fd int dir = object_parent(top, path, &name);
    return dir >= 0 && object_look(dir, name, &now) == 0 && object_untouched(before, &now) &&
           before->changed == now.changed;
}

int part_write(const struct layer_trees *t, const struct change *c, int parts, const char *name,
               const struct str content)
{
    const char *last;
    struct timespec now;
    own_fd int dir = object_parent(t->workspace, c->path, &last);
    own_fd int from = dir < 0 ? dir : object_open_as_is(dir, last, S_IFREG);
    own_fd int fd =
        from < 0 ? from : sys_openat(parts, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = fd < 0 ? fd : 0;
    for (size_t done = 0; e == 0 && done < content.n;) {
        const long k = sys_write(fd, content.p + done, content.n - done);
        e = k < 0 ? (int)k : 0;
        done += k > 0 ? (size_t)k : 0;
    }
    if (e == 0)
        e = object_copy_attributes(from, fd);
    struct layer_object as = c->old;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    as.modified = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return e < 0 ? e : object_dress(parts, name, &as);
}

static int make_part(const struct layer_trees *t, struct change *c, const char *numbers, int parts, const char *name,
                     struct err *e)
{
    auto_arena struct arena *own = arena_new(LAYER_READ_MAX * 4);
    struct side old, new;
    struct split_text s = {.n = 0};
    auto_buf struct buf content = BUF(SIDE_MAX * 2);
    int r = own ? split_change(t, c, own, &old, &new, &s) : -ENOMEM;
    bool *take = r == 0 ? arena_zero(own, s.n) : NULL;
    if (r == 0 && !take)
        r = -ENOMEM;
    if (r == 0 && !take_numbers(numbers, s.n, take))
        return err_say(e, ERR_POLICY, "'%.300s' has %zu hunk%s; '%.100s' does not name any of them", c->path, s.n,
                       s.n == 1 ? "" : "s", numbers);
    if (r == 0)
        lines_merge(&s.diff, s.hunks, s.n, take, &content);
    if (r == 0)
        r = buf_ok(&content) ? part_write(t, c, parts, name, buf_view(&content)) : -ENOMEM;
    if (r == 0 && (!part_unchanged(t->workspace, c->path, &c->old) || !part_unchanged(t->upper, c->path, &c->new)))
        r = -ESTALE;
    if (r == 0)
        r = object_look(parts, name, &c->new);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "layer %s: cannot put hunks of '%.300s' together", t->id, c->path) : 0;
}

void hunks_clear(const struct layer_trees *t)
{
    remove_tree(t->store, PARTS);
}

static int open_parts(const struct layer_trees *t, struct err *e)
{
    hunks_clear(t);
    int no = sys_mkdirat(t->store, PARTS, 0700);
    int fd = no < 0 ? no : sys_openat(t->store, PARTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return fd < 0 ? err_sys(e, ERR_SYSTEM, -fd, "layer %s: cannot make '" PARTS "'", t->id) : fd;
}

/* The choice that is about `c`: what follows its word, or NULL. */
static const char *find_choice(const struct change *c, const char *const *choices, bool *met)
{
    char word[HUNKS_WORD];
    hunks_word(c, word);
    for (size_t i = 0; choices[i]; i++) {
        const char *rest = choices[i] + HUNKS_WORD - 1;
        if (strncmp(choices[i], word, HUNKS_WORD - 1) == 0 && (!*rest || *rest == ':')) {
            met[i] = true;
            return rest;
        }
    }
    return NULL;
}

int hunks_choose(const struct layer_trees *t, struct changes *all, const struct apply_ask *ask, struct arena *mem,
                 bool **ret_take, struct apply_outcome *ret, struct err *e)
{
    size_t n = 0;
    own_fd int parts = open_parts(t, e);
    while (ask->choices[n])
        n++;
    bool *met = arena_zero(mem, n + 1), exact;
    *ret_take = arena_zero(mem, (all->n + 1) * sizeof **ret_take);
    if (parts < 0 || !met || !*ret_take)
        return parts < 0 ? parts : err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
    for (size_t i = 0; i < all->n; i++) {
        struct change *c = &all->all[i];
        const char *numbers = path_wanted(c->path, ask->paths, &exact) ? find_choice(c, ask->choices, met) : NULL;
        const char *why = numbers ? layer_why_not(c, exact) : NULL;
        if (!why && numbers && *numbers)
            why = why_whole(c);
        (*ret_take)[i] = numbers && !why;
        if (why && outcome_refuse(mem, ret, c->path, why) < 0)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
        if (why || !numbers || !*numbers)
            continue;
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        const int r = make_part(t, c, numbers + 1, parts, name, e);
        if (r < 0)
            return r;
        if (!(c->part = arena_printf(mem, PARTS "/%s", name)))
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
    }
    for (size_t i = 0; i < n; i++) {
        if (!met[i])
            return err_hint(
                e,
                err_say(e, ERR_REFUSED, "layer %s: it or the workspace has changed since its hunks were listed", t->id),
                "look again");
    }
    choose_above(all, *ret_take);
    return 0;
}
