/*
 * Makes a branch of what a layer changes: git in a box of its own writes the files as they are (no filter, no hook) over the commit that
 * the workspace stands on, and gives back a pack, which lands with the new ref as the repository of a layer does.
 */
#include "run/layer/branch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "layer/side.h"
#include "layer/text.h"
#include "run/layer/gitbox.h"
#include "run/layer/verify.h"
#include "run/world.h"

#define CONFIG_MAX (1u << 20)

struct branching {
    const struct layer_trees *t;
    const struct layer_branch_ask *ask;
    struct arena *mem;
    struct apply_outcome *out;
    struct err *e;
    int fd;
    struct buf modes, hashed, names, unnamed, gone; /* lists for git, in the same order */
    size_t n, digits;                               /* files; of a hash */
    const char *who, *mail;
};

static int branch_no_memory(struct branching *b)
{
    return err_sys(b->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot make the branch", b->t->id);
}

/* ---- who commits ---- */

/* As git would find it: the repository's own configuration wins over the person's. What it includes is not read. */
static int find_identity(struct branching *b)
{
    const char *files[2] = {arena_printf(b->mem, "%s/.config/git/config", b->ask->home),
                            arena_printf(b->mem, "%s/.gitconfig", b->ask->home)};
    struct str text;
    int no = 0;
    for (size_t i = 0; no >= 0 && i < 2; i++) {
        struct err unsaid = {0};
        if (files[i] && read_whole(b->mem, files[i], CONFIG_MAX, FILE_OWN, false, true, &text, &unsaid) == 0)
            no = repo_identity(text, b->mem, &b->who, &b->mail);
    }
    if (repo_text(b->t, b->t->workspace, REPO_DIR "/config", b->mem, &text, NULL) == 0)
        no = repo_identity(text, b->mem, &b->who, &b->mail);
    if (no == -ENOMEM || arena_failed(b->mem))
        return branch_no_memory(b);
    if (b->who && b->mail)
        return 0;
    return err_hint(b->e,
                    err_say(b->e, ERR_POLICY, "--branch: git has no name or e-mail address of yours for the commit"),
                    "git config --global user.name NAME, and user.email");
}

/* ---- what is in it ---- */

/* A path that is gone; with a directory git's index has nothing but what was in it. */
static void put_gone(struct branching *b, const char *path)
{
    buf_printf(&b->gone, "0 %0*d\t", (int)b->digits, 0);
    patch_put_name(&b->gone, "", path);
    buf_char(&b->gone, '\n');
}

static int put_content(struct branching *b, const struct change *c)
{
    auto_arena struct arena *mem = arena_new(SIDES_ROOM);
    struct side side;
    char name[64];
    int no = mem ? side_read(b->t, b->t->upper, c->path, &c->new, c->new_link, mem, &side) : -ENOMEM;
    snprintf(name, sizeof name, "in/b/%zu", b->n);
    if (no == 0)
        no = bundle_bytes(b->fd, name, side.bytes);
    if (no < 0)
        return err_sys(b->e, ERR_SYSTEM, -no, "layer %s: cannot read '%.300s'", b->t->id, c->path);
    buf_printf(&b->modes, "%06o\n", patch_mode(&c->new));
    buf_printf(&b->hashed, "/work/in/b/%zu\n", b->n++);
    patch_put_name(&b->names, "", c->path);
    buf_char(&b->names, '\n');
    buf_put(&b->unnamed, c->path, strlen(c->path) + 1);
    return 0;
}

static int put_branch_changes(struct branching *b, const struct changes *all, const bool *take)
{
    int no = 0;
    for (size_t i = 0; no == 0 && i < all->n; i++) {
        const struct change *c = &all->all[i];
        if (!take[i])
            continue;
        const bool was = in_patches(&c->old), is = in_patches(&c->new);
        if (was && !is)
            put_gone(b, c->path);
        if (is)
            no = put_content(b, c);
        else if (c->new.mode && !object_is(&c->new, S_IFDIR))
            no = outcome_refuse(b->mem, b->out, c->path, "git holds files and links only");
        if (no == 0 && (was || is)) {
            const char **slot = arena_push(b->mem, &b->out->done, &b->out->n_done, sizeof *slot);
            if (!slot)
                return branch_no_memory(b);
            *slot = c->path;
        }
    }
    return no;
}

static int put_lists(struct branching *b)
{
    const char *message = arena_printf(b->mem, "Changes of layer %s\n", b->t->id);
    struct str exclude;
    const struct {
        const char *name;
        struct str text;
    } lists[] = {{"in/modes", buf_view(&b->modes)}, {"in/hashed", buf_view(&b->hashed)},
                 {"in/names", buf_view(&b->names)}, {"in/gone", buf_view(&b->gone)},
                 {"in/name", str_of(b->who)},       {"in/mail", str_of(b->mail)},
                 {"in/message", str_of(message)},   {"in/unnamed", buf_view(&b->unnamed)}};
    int no = message && buf_ok(&b->modes) && buf_ok(&b->names) && buf_ok(&b->gone) && buf_ok(&b->unnamed) ? 0 : -ENOMEM;
    for (size_t i = 0; no == 0 && i < sizeof lists / sizeof *lists - !b->ask->everything; i++)
        no = bundle_bytes(b->fd, lists[i].name, lists[i].text);
    if (no == 0 && repo_text(b->t, b->t->workspace, REPO_DIR "/info/exclude", b->mem, &exclude, NULL) == 0)
        no = bundle_bytes(b->fd, "in/exclude", exclude);
    return no < 0 ? err_sys(b->e, ERR_SYSTEM, -no, "layer %s: cannot write a file for git", b->t->id) : 0;
}

/* ---- what git made of it ---- */

static bool in_zeros(struct str list, const char *path)
{
    const struct str wanted = {path, strlen(path)};
    while (list.n)
        if (str_eq(str_until(&list, 0), wanted))
            return true;
    return false;
}

/* What git ignores is told as left out. */
static int leave_ignored(struct branching *b, int answer)
{
    struct str list;
    size_t n = 0;
    if (!bundle_text(answer, "ignored", (size_t)64 << 20, b->mem, &list) || !list.n)
        return 0;
    for (size_t i = 0; i < b->out->n_done; i++) {
        if (!in_zeros(list, b->out->done[i]))
            b->out->done[n++] = b->out->done[i];
        else if (outcome_refuse(b->mem, b->out, b->out->done[i],
                                "git ignores it; to commit it, name this path itself") < 0)
            return branch_no_memory(b);
    }
    b->out->n_done = n;
    return 0;
}

static int land_branch(struct branching *b, struct repo *r, int answer)
{
    struct apply_more more = {0};
    struct apply_outcome landed = {0};
    struct str hash;
    const char *full = arena_printf(b->mem, "refs/heads/%s", b->ask->name);
    struct repo_ref ref = {.name = full, .lands = full};
    if (!bundle_text(answer, "commit", 256, b->mem, &hash) || hash.n != r->digits + 1)
        return err_say(b->e, ERR_SYSTEM, "layer %s: git's answer about the branch is damaged", b->t->id);
    if (!full || !(ref.new = arena_str(b->mem, (struct str){hash.p, r->digits})))
        return branch_no_memory(b);
    r->refs = &ref;
    r->n = 1;
    int no = verify_landing(b->t, r, answer, b->mem, b->e);
    if (no == 0)
        no = repo_land(b->t, r, answer, b->mem, &more, &landed, b->e);
    if (no == 0)
        no = layer_apply_more(b->t, &more, b->mem, &landed, b->e);
    if (no == 0 && landed.n_refused)
        no = err_say(b->e, ERR_REFUSED, "--branch %s: %s", b->ask->name, landed.refused[0].why);
    b->out->number = landed.number;
    const char **said = no == 0 ? arena_push(b->mem, &b->out->said, &b->out->n_said, sizeof *said) : NULL;
    if (said)
        *said = arena_printf(b->mem, "branch %s: new, %.12s, on %.12s", b->ask->name, ref.new, r->head_old);
    return no < 0 ? no : said && *said ? leave_ignored(b, answer) : branch_no_memory(b);
}

static int check_branch_name(struct branching *b, const struct repo *r)
{
    struct layer_object o;
    struct str text;
    const char *full = arena_printf(b->mem, "refs/heads/%s", b->ask->name);
    const char *path = full ? arena_printf(b->mem, REPO_DIR "/%s", full) : NULL;
    if (!path)
        return branch_no_memory(b);
    if (!r->digits)
        return err_say(b->e, ERR_POLICY, "--branch: '%s' has no repository", b->t->path);
    if (r->why)
        return err_say(b->e, ERR_CANNOT, "--branch: %s", r->why);
    if (!r->head_old)
        return err_say(b->e, ERR_POLICY, "--branch: the repository has no commit yet, on which the branch could stand");
    if (!repo_ref_ok(full))
        return err_say(b->e, ERR_POLICY, "--branch %.200s: this is not a valid name for a branch", b->ask->name);
    if (repo_text(b->t, b->t->workspace, path, b->mem, &text, &o) != -ENOENT)
        return err_say(b->e, ERR_POLICY, "--branch %s: a branch of this name already exists", b->ask->name);
    for (struct str rest = r->packed, line; text_line(&rest, &line);) {
        (void)str_until(&line, ' ');
        if (str_is(line, full))
            return err_say(b->e, ERR_POLICY, "--branch %s: a branch of this name already exists", b->ask->name);
    }
    return 0;
}

static int make_branch(struct branching *b, const struct changes *all, const bool *take)
{
    static const struct changes none;
    struct repo r;
    int no = repo_read(b->t, &none, b->mem, &r, b->e);
    if (no == 0)
        no = check_branch_name(b, &r);
    if (no == 0)
        no = find_identity(b);
    if (no < 0)
        return no;
    auto_fd int ask = gitbox_file(b->t->store), answer = gitbox_file(b->t->store);
    if (ask < 0 || answer < 0)
        return err_sys(b->e, ERR_SYSTEM, errno, "layer %s: cannot make a file for git", b->t->id);
    b->fd = ask;
    b->digits = r.digits;
    no = put_branch_changes(b, all, take);
    if (no < 0 || !b->out->n_done)
        return no;
    no = put_lists(b);
    if (no == 0)
        no = repo_ask(b->t, &none, &r, ask, b->e);
    if (no == 0 && (no = bundle_end(ask)) < 0)
        no = err_sys(b->e, ERR_SYSTEM, -no, "layer %s: cannot write a file for git", b->t->id);
    if (no == 0)
        no = gitbox_run(b->t, &r, GITBOX_BRANCH, ask, answer, b->mem, b->e);
    return no < 0 ? no : land_branch(b, &r, answer);
}

int branch_make(const struct layer_trees *t, const struct changes *all, const bool *take,
                const struct layer_branch_ask *ask, struct arena *mem, struct apply_outcome *out, struct err *e)
{
    struct branching b = {.t = t,
                          .ask = ask,
                          .mem = mem,
                          .out = out,
                          .e = e,
                          .modes = BUF(LAYER_READ_MAX),
                          .hashed = BUF(LAYER_READ_MAX),
                          .names = BUF(LAYER_READ_MAX),
                          .unnamed = BUF(LAYER_READ_MAX),
                          .gone = BUF(LAYER_READ_MAX)};
    const int no = make_branch(&b, all, take);
    buf_free(&b.modes);
    buf_free(&b.hashed);
    buf_free(&b.names);
    buf_free(&b.unnamed);
    buf_free(&b.gone);
    return no;
}
