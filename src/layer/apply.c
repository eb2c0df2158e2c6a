/*
 * Decides which changes of a layer land in the workspace and in which order, and takes an apply back. transact.c
 * carries it out, with a journal, so that a kill at any point leaves the old or the new.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "layer/change.h"
#include "layer/repo/repo.h"
#include "match/path.h"
#include "sys/fd.h"

#define RECORDS_KEPT 16 /* applies of a layer that can be taken back */

struct making_ops {
    const struct layer_trees *t;
    struct arena *mem;
    struct transaction x;
    struct ledger ledger;
    struct apply_outcome *ret;
    struct err *e;
};

static int apply_no_memory(const struct layer_trees *t, struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
}

static int refuse_path(struct making_ops *m, const char *path, const char *why)
{
    return outcome_refuse(m->mem, m->ret, path, why) < 0 ? apply_no_memory(m->t, m->e) : 0;
}

static struct op *add_op(struct making_ops *m, enum op_kind kind, const char *path)
{
    struct op *op = arena_push(m->mem, &m->x.ops, &m->x.n, sizeof *op);
    if (op)
        *op = (struct op){.kind = kind, .path = path, .from = path};
    return op;
}

/* ---- in which order ---- */

/* A directory that is as the layer knows it may be changed by apply without that being a change by the host. */
static int add_parent(struct making_ops *m, const char *path)
{
    const size_t n = strlen(path);
    const char *name;
    struct layer_object now;
    for (size_t i = m->x.n; i-- > 0;) { /* they come in order, so the same one is close */
        if (m->x.ops[i].kind == OP_PARENT && same(m->x.ops[i].path, path))
            return 0;
        if (m->x.n - i > 64)
            break;
    }
    own_fd int dir = n ? object_parent(m->t->workspace, path, &name) : -1;
    int e = n ? dir < 0 ? dir : object_look(dir, name, &now) : object_look(m->t->workspace, "", &now);
    if (e < 0 || !now.mode)
        return 0;
    const struct ledger_entry *known = ledger_find(&m->ledger, path);
    if (now.changed >= m->t->since &&
        !(known && object_same_inode(&known->now, &now) && known->now.changed == now.changed))
        return 0;
    struct op *op = add_op(m, OP_PARENT, path);
    if (!op)
        return apply_no_memory(m->t, m->e);
    op->old = now;
    return 0;
}

static int add_parents(struct making_ops *m, const struct changes *all, const bool *take)
{
    for (size_t i = 0; i < all->n; i++) {
        const char *path = all->all[i].path, *slash = take[i] ? strrchr(path, '/') : NULL;
        const char *above = slash ? arena_str(m->mem, (struct str){path, (size_t)(slash - path)}) : "";
        if (take[i] && (!above || add_parent(m, above) < 0))
            return above ? -ENOMEM : apply_no_memory(m->t, m->e);
    }
    return add_parent(m, "");
}

static bool is_closed(const struct layer_object *o)
{
    return object_is(o, S_IFDIR) && (o->mode & 0700) != 0700;
}

/* A directory that can be written to only when it has its new mode gets it before its entries, not after them. */
static bool opens(const struct layer_object *old, const struct layer_object *new)
{
    return is_closed(old) && object_is(new, S_IFDIR) && !is_closed(new);
}

/* Directories that go, and may not be written to as they are; those that may be only as they will be. */
static int add_opened(struct making_ops *m, const struct changes *all, const bool *take)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        const bool goes = c->kind == CHANGE_DELETED || (c->kind == CHANGE_EDITED && c->what & CHANGED_TYPE);
        if (take[i] && c->kind == CHANGE_EDITED && opens(&c->old, &c->new)) {
            struct op *open = add_op(m, OP_MODE, c->path);
            if (!open)
                return apply_no_memory(m->t, m->e);
            open->old = c->old;
            open->new = c->new;
        }
        if (!take[i] || !goes || !is_closed(&c->old))
            continue;
        struct op *op = add_op(m, OP_MODE, c->path);
        if (!op)
            return apply_no_memory(m->t, m->e);
        op->from = "";
        op->old = op->new = c->old;
        op->new.mode |= 0700;
    }
    return 0;
}

/* `made`: for each change the index of the operation that makes its object, plus 1. */
static int add_changes(struct making_ops *m, const struct changes *all, const bool *take, size_t *made)
{
    for (size_t i = all->n; i-- > 0;) {
        const struct change *c = &all->all[i];
        struct op *op = take[i] && c->kind == CHANGE_DELETED ? add_op(m, OP_DELETE, c->path) : NULL;
        if (op)
            op->old = c->old;
    }
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        const bool attributes = c->kind == CHANGE_EDITED && object_is(&c->old, S_IFDIR) && object_is(&c->new, S_IFDIR);
        if (!take[i] || c->kind == CHANGE_DELETED || attributes)
            continue;
        struct op *op = add_op(m, c->kind == CHANGE_ADDED ? OP_CREATE : OP_REPLACE, c->path);
        if (!op)
            return apply_no_memory(m->t, m->e);
        op->old = c->old;
        op->new = c->new;
        op->keep = c->keep;
        op->part = c->part != NULL;
        op->merged = c->merged;
        op->from = c->part ? c->part : c->path;
        op->judged = str_of(c->new_link);
        op->link = c->linked && made[c->linked - 1] ? made[c->linked - 1] : 0;
        if (object_is(&c->new, S_IFDIR))
            op->new.mode |= 0700;
        made[i] = m->x.n;
        if (c->linked && !made[c->linked - 1])
            made[c->linked - 1] = m->x.n; /* the first of them that is taken */
    }
    for (size_t i = all->n; i-- > 0;) {
        const struct change *c = &all->all[i];
        const bool attributes = c->kind == CHANGE_EDITED && object_is(&c->old, S_IFDIR);
        if (!take[i] || c->kind == CHANGE_DELETED || !object_is(&c->new, S_IFDIR) ||
            (attributes && opens(&c->old, &c->new)))
            continue;
        struct op *op = add_op(m, OP_MODE, c->path);
        if (!op)
            return apply_no_memory(m->t, m->e);
        op->new = c->new;
        if (attributes)
            op->old = c->old;
        else
            op->link = made[i];
    }
    return arena_failed(m->mem) ? apply_no_memory(m->t, m->e) : 0;
}

/* ---- repositories ---- */

static bool changes_repository(const struct changes *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (repo_part_of(all->all[i].path) == REPO_UNIT && repo_is_top(all->all[i].path))
            return true;
    return false;
}

static int add_more(struct making_ops *m, const struct apply_more *more)
{
    for (size_t i = 0; i < more->n; i++) {
        struct op *op = add_op(m, more->ops[i].kind, more->ops[i].path);
        if (!op)
            return apply_no_memory(m->t, m->e);
        *op = more->ops[i];
    }
    return 0;
}

/* New directories between a repository's own and a submodule's in it. */
static int add_ways(struct making_ops *m, const struct changes *all, const char *git)
{
    for (const char *slash = strchr(git, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *way = arena_str(m->mem, (struct str){git, (size_t)(slash - git)});
        const struct change *c = way && repo_is_way(way) ? changes_find(all, way) : NULL;
        bool made = !c || !c->born || c->conflict;
        for (size_t i = 0; i < m->x.n && !made; i++)
            made = m->x.ops[i].kind == OP_CREATE && same(m->x.ops[i].path, way);
        struct op *op = made ? NULL : add_op(m, OP_CREATE, way);
        if (op) {
            op->new = c->new;
            op->new.mode =
                S_IFDIR | 0700 | (c->new.mode & 0777); /* git makes none that is setgid, unless the one above is */
        }
    }
    return arena_failed(m->mem) ? apply_no_memory(m->t, m->e) : 0;
}

/* New files that are called .git: those of submodules, after the repositories that they name. */
static int add_files(struct making_ops *m, const struct changes *all, const struct apply_ask *ask)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < all->n; i++) {
        const struct change *c = &all->all[i];
        struct str judged = {0};
        bool exact;
        if (!repo_is_file(c) || !path_wanted(c->path, ask->paths, &exact))
            continue;
        const char *why = c->alarms & ALARM_SETUID ? "it is setuid or setgid"
                          : !exact && repo_guarded(m->t, c->path)
                              ? "it lies below a guarded name; to apply it, name it itself"
                              : repo_file_why_not(m->t, c, m->x.ops, m->x.n, m->mem, &judged);
        struct op *op = why ? NULL : add_op(m, OP_CREATE, c->path);
        if (op) {
            op->new = c->new;
            op->judged = judged;
        }
        r = why ? refuse_path(m, c->path, why) : op ? 0 : apply_no_memory(m->t, m->e);
    }
    return r;
}

/* The one whose own directory is `git`. */
static int add_inside(struct making_ops *m, const struct changes *all, const struct apply_ask *ask, const char *git,
                      size_t *parts)
{
    struct repo_within in;
    struct apply_more more = {.parts = *parts};
    const struct apply_outcome before = *m->ret;
    int r = repo_enter(m->t, all, git, m->mem, &in);
    if (r == 0 && in.why)
        r = outcome_refuse(m->mem, m->ret, REPO_DIR, in.why);
    else if (r == 0)
        r = ask->repository(ask->ctx, &in.t, &in.all, m->mem, &more, m->ret, m->e);
    if (r == 0)
        r = repo_name_within(&in, &more, &before, m->ret, m->mem);
    repo_leave(&in);
    *parts = more.parts;
    if (r == 0 && more.n)
        r = add_ways(m, all, git);
    return r == -ENOMEM ? apply_no_memory(m->t, m->e) : r < 0 ? r : add_more(m, &more);
}

static int add_repositories(struct making_ops *m, const struct changes *all, const struct apply_ask *ask)
{
    struct apply_more more = {0};
    const char **inside;
    size_t n;
    if (!ask->repository || ask->choices)
        return 0;
    int r = repos_inside(all, m->mem, &inside, &n) < 0 ? apply_no_memory(m->t, m->e) : 0;
    if (r == 0 && path_wanted(REPO_DIR, ask->paths, NULL) && changes_repository(all))
        r = ask->repository(ask->ctx, m->t, all, m->mem, &more, m->ret, m->e);
    if (r == 0)
        r = add_more(m, &more);
    for (size_t i = 0; r == 0 && i < n; i++) {
        bool exact;
        if (!path_wanted(inside[i], ask->paths, &exact))
            continue;
        const char *holds = arena_str(m->mem, (struct str){inside[i], repo_inside(inside[i])});
        if (!holds)
            return apply_no_memory(m->t, m->e);
        if (!exact && repo_guarded(m->t, holds))
            r = refuse_path(m, inside[i], "it lies below a guarded name; to apply it, name its .git itself");
        else
            r = add_inside(m, all, ask, inside[i], &more.parts);
    }
    return r < 0 ? r : add_files(m, all, ask);
}

/* Of the repository only what has a name for people is told. */
static bool comes_along(const struct op *op)
{
    const char *rest = op->path + repo_dir(op->path);
    if (!op->why && op->part && object_is(&op->new, S_IFDIR) && repo_part_of(op->path) != REPO_NOT)
        return true;
    return !op->why && repo_part_of(op->path) == REPO_UNIT &&
           (repo_is_object(op->path) || str_starts(str_of(rest), STR("/logs")) || object_is(&op->new, S_IFDIR));
}

/* ---- what came of it ---- */

static int tell_outcome(struct making_ops *m)
{
    for (size_t i = 0; i < m->x.n; i++) {
        const struct op *op = &m->x.ops[i];
        if (op->kind == OP_PARENT || (op->kind == OP_MODE && (op->link || !*op->from)) || comes_along(op))
            continue;
        if (op->why) {
            if (refuse_path(m, op->path, op->why) < 0)
                return -ENOMEM;
            continue;
        }
        const char **slot = arena_push(m->mem, &m->ret->done, &m->ret->n_done, sizeof *slot);
        if (!slot)
            return apply_no_memory(m->t, m->e);
        *slot = op->path;
    }
    m->ret->number = m->ret->n_done ? m->x.number : 0;
    return 0;
}

static int resume_first(struct making_ops *m)
{
    struct transaction before;
    int r = transaction_resume(m->t, m->mem, &before, m->e);
    m->ret->resumed = r > 0 && before.phase != PHASE_STAGE;
    return r < 0 ? r : transaction_prune(m->t, RECORDS_KEPT, m->e);
}

static int next_number(struct making_ops *m)
{
    uint64_t *numbers;
    size_t n;
    int r = transaction_numbers(m->t, m->mem, &numbers, &n, m->e);
    m->x.number = r == 0 && n ? numbers[n - 1] + 1 : 1;
    m->x.when = (int64_t)time(NULL);
    return r;
}

static int choose_asked(const struct layer_trees *t, struct changes *all, const struct apply_ask *ask,
                        struct arena *mem, bool **ret_take, struct apply_outcome *ret, struct err *e)
{
    return ask->choices ? hunks_choose(t, all, ask, mem, ret_take, ret, e)
           : ask->base  ? elsewhere_choose(ask->base, t, all, ask->paths, mem, ret_take, ret, e)
                        : layer_choose(t, all, ask->paths, ask->repository != NULL, mem, ret_take, ret, e);
}

int layer_apply(const struct layer_trees *t, const struct apply_ask *ask, struct arena *mem, struct apply_outcome *ret,
                struct err *e)
{
    struct making_ops m = {.t = t, .mem = mem, .ret = ret, .e = e, .x = {.kind = TRANSACTION_APPLY}};
    struct changes all;
    *ret = (struct apply_outcome){0};
    int r = resume_first(&m);
    if (r == 0)
        r = changes_read(t, mem, &all, e);
    if (r == 0 && ask->merge)
        r = ask->merge(ask->ctx, t, &all, ask->paths, mem, ret, e);
    if (r == 0)
        r = ledger_of(t, mem, &m.ledger, e);
    if (r == 0)
        r = next_number(&m);
    if (r < 0)
        return r;
    bool *take;
    size_t *made = arena_zero(mem, (all.n + 1) * sizeof *made);
    if (!made)
        return apply_no_memory(t, e);
    r = choose_asked(t, &all, ask, mem, &take, ret, e);
    if (r == 0)
        r = lfs_stage(t, &all, take, mem, ret, e);
    if (r == 0)
        r = add_parents(&m, &all, take);
    const size_t parents = m.x.n;
    if (r == 0)
        r = add_opened(&m, &all, take);
    if (r == 0)
        r = add_changes(&m, &all, take, made);
    if (r == 0)
        r = add_repositories(&m, &all, ask);
    const bool any = r == 0 && m.x.n > parents;
    if (any)
        r = transaction_run(t, t->upper, &m.x, mem, e);
    if (ask->choices)
        hunks_clear(t);
    if (ask->repository)
        repo_parts_clear(t);
    if (ask->merge)
        merges_clear(t);
    lfs_clear(t);
    if (!any)
        return r;
    if (r == 0)
        r = tell_outcome(&m);
    return r < 0 ? r : transaction_prune(t, RECORDS_KEPT, e);
}

int layer_apply_more(const struct layer_trees *t, const struct apply_more *more, struct arena *mem,
                     struct apply_outcome *ret, struct err *e)
{
    struct making_ops m = {.t = t, .mem = mem, .ret = ret, .e = e, .x = {.kind = TRANSACTION_APPLY}};
    int r = resume_first(&m);
    if (r == 0)
        r = next_number(&m);
    if (r == 0)
        r = add_more(&m, more);
    if (r == 0 && m.x.n)
        r = transaction_run(t, t->upper, &m.x, mem, e);
    repo_parts_clear(t);
    if (r == 0)
        r = tell_outcome(&m);
    return r < 0 ? r : transaction_prune(t, RECORDS_KEPT, e);
}

/* ---- undo ---- */

/* What apply has put there must be there still; an undo of a later apply may have put it back, at another time. */
static const char *still_there(const struct layer_trees *t, const struct ledger *ledger, struct op *op)
{
    const struct ledger_entry *known = ledger_find(ledger, op->path);
    const char *name;
    struct layer_object now = {0};
    own_fd int dir = object_parent(t->workspace, op->path, &name);
    /* A file may stand now where the directory was that holds it: undo puts that back first, or refuses. */
    const bool nowhere = dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP;
    if (nowhere ? false : dir < 0 || object_look(dir, name, &now) < 0)
        return "it cannot be reached any more";
    if (!op->at.mode)
        return now.mode ? "the host made something there after it was applied" : NULL;
    if (!now.mode)
        return "the host removed it after it was applied";
    const bool other_mode = now.mode != op->at.mode || now.uid != op->at.uid || now.gid != op->at.gid;
    const bool ours = known && object_same_inode(&known->now, &now) && known->now.changed == now.changed;
    if (!object_untouched(&op->at, &now) || (!object_is(&now, S_IFDIR) && op->at.changed != now.changed && !ours) ||
        (op->kind == OP_MODE && other_mode))
        return "the host changed it after it was applied";
    if (ours && !object_is(&now, S_IFDIR))
        op->at = now;
    return NULL;
}

/* Objects stay: what the host has made since may stand on them, and git removes those that nothing needs. They go with the whole
   repository. */
static bool undone_here(const struct op *op, const char *const *paths)
{
    return !op->why && (op->along || !repo_is_object(op->path)) && op->kind != OP_PARENT &&
           path_wanted(op->path, paths, NULL);
}

/* The paths that come, change or go, other than by their mode alone. */
static int objects_of(struct making_ops *m, const struct transaction *record, struct ledger *ret)
{
    *ret = (struct ledger){.entries = arena_zero(m->mem, (record->n + 1) * sizeof *ret->entries)};
    if (!ret->entries)
        return apply_no_memory(m->t, m->e);
    for (size_t i = 0; i < record->n; i++) {
        if (record->ops[i].kind != OP_MODE)
            ret->entries[ret->n++].path = record->ops[i].path;
    }
    ledger_sort(ret);
    return 0;
}

/* The first entry at or below the directory `path` of the workspace that is not in `all`; "": there is none, or -errno. */
static int find_other(struct making_ops *m, const char *path, const struct ledger *all, unsigned depth,
                      const char **ret)
{
    char room[4096] __attribute__((aligned(8)));
    const char *name;
    own_fd int parent = object_parent(m->t->workspace, path, &name);
    own_fd int dir = parent < 0 ? parent : object_open_as_is(parent, name, S_IFDIR);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    int e = dir == -ENOENT || dir == -ENOTDIR || dir == -ESTALE ? 0 : dir < 0 ? dir : depth ? 0 : -ELOOP;
    for (const struct sys_dirent *d; e == 0 && dir >= 0 && !**ret && (d = sys_next_entry(&entries));) {
        const char *entry = arena_printf(m->mem, "%s/%s", path, d->name);
        struct layer_object o;
        if (!entry)
            return -ENOMEM;
        if (!ledger_find(all, entry))
            *ret = entry;
        else if (object_look(dir, d->name, &o) == 0 && object_is(&o, S_IFDIR))
            e = find_other(m, entry, all, depth - 1, ret);
    }
    return e < 0 ? e : dir < 0 ? 0 : entries.no;
}

static bool has_head(const struct ledger *all, const char *directory)
{
    char head[LAYER_PATH_MAX];
    const int n = snprintf(head, sizeof head, "%s/HEAD", directory);
    return n < (int)sizeof head && ledger_find(all, head);
}

/* A repository that this apply has made goes as a whole, its objects too, unless the host has made something in it. */
static int take_along(struct making_ops *m, struct transaction *record, const struct ledger *all,
                      const char *const *paths)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct op *made = &record->ops[i];
        const size_t n = strlen(made->path);
        const char *other = "";
        if (made->why || made->kind != OP_CREATE || !object_is(&made->at, S_IFDIR) || !repo_is_dir(made->path) ||
            !has_head(all, made->path) || !path_wanted(made->path, paths, NULL))
            continue;
        if (find_other(m, made->path, all, LAYER_DEPTH_MAX, &other) < 0)
            other = made->path;
        if (*other && refuse_path(m, other, "the host has worked in the repository since it was applied") < 0)
            return -ENOMEM;
        for (size_t k = 0; k < record->n && !*other; k++)
            record->ops[k].along |= strncmp(record->ops[k].path, made->path, n) == 0 && record->ops[k].path[n] == '/';
    }
    return 0;
}

/* What stands at the path of an index now, where that goes whatever git has noted in it. */
static void take_index(struct making_ops *m, struct op *op)
{
    const char *name;
    struct layer_object now;
    own_fd int dir = object_parent(m->t->workspace, op->path, &name);
    if (dir >= 0 && object_look(dir, name, &now) == 0 && object_is(&now, S_IFREG))
        op->at = now;
}

static int check_undo(struct making_ops *m, struct transaction *record, const struct ledger *others,
                      const char *const *paths)
{
    for (size_t i = 0; i < record->n; i++) {
        struct op *op = &record->ops[i];
        /* Of a directory that another operation of the record is about, too, that one tells. */
        if (!undone_here(op, paths) || (op->kind == OP_MODE && (!op->old.mode || ledger_find(others, op->path))))
            continue;
        if (op->along && repo_is_index(op->path))
            take_index(m, op);
        const char *why = still_there(m->t, &m->ledger, op);
        /* git writes its index even when it only looks. Without the old one nothing is lost: git reset makes it anew. */
        if (why && repo_is_index(op->path)) {
            const char **said = arena_push(m->mem, &m->ret->said, &m->ret->n_said, sizeof *said);
            if (said)
                *said = "the index stays, because the host has written it since; git reset makes it that of HEAD";
            op->why = why;
            continue;
        }
        if (why && refuse_path(m, op->path, why) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* A directory gets back the permissions that it had: before its entries if it has to be opened for them, or after them. */
static void reverse_modes(struct making_ops *m, const struct transaction *record, const struct ledger *others,
                          const char *const *paths, bool first)
{
    for (size_t i = 0; i < record->n; i++) {
        const struct op *op = &record->ops[i];
        const bool kept = op->kind == OP_MODE && op->old.mode && undone_here(op, paths);
        struct op *to = kept && opens(&op->at, &op->old) == first && !ledger_find(others, op->path)
                            ? add_op(m, OP_MODE, op->path)
                            : NULL;
        if (to) {
            to->from = op->from;
            to->old = op->at;
            to->new = op->old;
        }
    }
}

/* Back to what stood there; returns whether that is a directory, which gets its permissions last. */
static bool reverse_op(struct making_ops *m, const struct op *op)
{
    const enum op_kind kind = op->kind == OP_CREATE ? OP_DELETE : op->kind == OP_REPLACE ? OP_REPLACE : OP_CREATE;
    struct op *to = add_op(m, kind, op->path);
    if (!to)
        return false;
    to->old = op->at;
    to->new = op->old;
    to->from = op->from;
    to->merged = op->merged;
    if (!object_is(&to->new, S_IFDIR))
        return false;
    to->new.mode |= 0700;
    return kind != OP_DELETE;
}

/* The reverse of each, in reverse order; directories are opened up first and get their permissions last. */
static int reverse_ops(struct making_ops *m, const struct transaction *record, const struct ledger *others,
                       const char *const *paths)
{
    size_t *made = arena_zero(m->mem, (record->n + 1) * sizeof *made); /* of restored directories: index plus 1 */
    for (size_t i = 0; i < record->n; i++) {
        const struct op *op = &record->ops[i];
        struct op *to =
            undone_here(op, paths) && is_closed(&op->at) && op->kind != OP_MODE ? add_op(m, OP_MODE, op->path) : NULL;
        if (to) {
            to->from = "";
            to->old = to->new = op->at;
            to->new.mode |= 0700;
        }
    }
    reverse_modes(m, record, others, paths, true);
    for (size_t i = record->n; made && i-- > 0;) {
        const struct op *op = &record->ops[i];
        if (undone_here(op, paths) && op->kind != OP_MODE && reverse_op(m, op))
            made[i] = m->x.n;
    }
    for (size_t i = 0; made && i < record->n; i++) { /* the deepest first */
        struct op *to = made[i] ? add_op(m, OP_MODE, record->ops[i].path) : NULL;
        if (to) {
            to->link = made[i];
            to->from = "";
            to->new = record->ops[i].old;
        }
    }
    reverse_modes(m, record, others, paths, false);
    return arena_failed(m->mem) ? apply_no_memory(m->t, m->e) : 0;
}

static int open_record(const struct layer_trees *t, uint64_t number, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, UNDO "/%llu", (unsigned long long)number);
    int fd = sys_openat(t->store, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return fd < 0 ? err_sys(e, ERR_SYSTEM, -fd, "layer %s: cannot open '%s'", t->id, path) : fd;
}

static int undo_parents(struct making_ops *m, const struct transaction *record, const char *const *paths)
{
    for (size_t i = 0; i < record->n; i++) {
        const char *path = record->ops[i].path, *slash = strrchr(path, '/');
        const char *above = slash ? arena_str(m->mem, (struct str){path, (size_t)(slash - path)}) : "";
        if (undone_here(&record->ops[i], paths) && (!above || add_parent(m, above) < 0))
            return above ? -ENOMEM : apply_no_memory(m->t, m->e);
    }
    return add_parent(m, "");
}

int layer_undo(const struct layer_trees *t, uint64_t number, const char *const *paths, struct arena *mem,
               struct apply_outcome *ret, struct err *e)
{
    struct making_ops m = {.t = t, .mem = mem, .ret = ret, .e = e, .x = {.kind = TRANSACTION_UNDO}};
    struct transaction record;
    struct ledger others;
    *ret = (struct apply_outcome){0};
    int r = resume_first(&m);
    /* What an apply that was killed had prepared. */
    hunks_clear(t);
    repo_parts_clear(t);
    merges_clear(t);
    lfs_clear(t);
    if (r == 0)
        r = transaction_record(t, number, mem, &record, e);
    if (r == 0)
        r = ledger_of(t, mem, &m.ledger, e);
    if (r == 0)
        r = objects_of(&m, &record, &others);
    if (r == 0)
        r = take_along(&m, &record, &others, paths);
    if (r == 0)
        r = check_undo(&m, &record, &others, paths);
    if (r < 0 || ret->n_refused)
        return r;
    m.x.number = record.number;
    m.x.when = record.when;
    r = undo_parents(&m, &record, paths);
    const size_t parents = m.x.n;
    if (r == 0)
        r = reverse_ops(&m, &record, &others, paths);
    if (r < 0 || m.x.n == parents)
        return r;
    own_fd int source = open_record(t, record.number, e);
    r = source < 0 ? source : transaction_run(t, source, &m.x, mem, e);
    if (r == 0)
        r = tell_outcome(&m);
    return r < 0 ? r : transaction_prune(t, RECORDS_KEPT, e);
}
