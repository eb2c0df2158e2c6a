/*
 * The copy-on-write layer of a run. It is made before the plan, which mounts it, and held until its box has ended; then
 * all of its file system is written out (syncfs), because the overlay itself writes nothing to the disk, and its record
 * says that it is whole.
 */
#include "run/layer/cow.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/remove.h"
#include "match/path.h"
#include "run/caches.h"
#include "run/layer/elsewhere.h"
#include "layer/repo/repo.h"
#include "layer/stack/stack.h"
#include "run/nested.h"
#include "run/report.h"
#include "run/world.h"
#include "survey/survey.h"

#define MAX_COW_WORDS 4096

_Static_assert(LAYER_STACK_MAX <= OVERLAY_BETWEEN, "a step takes all that a layer stands on");

/* Directories of changes of the layers below, the uppermost first. */
static const char *const *paths_below(const char *state, const struct layer_stack *s, struct arena *mem)
{
    const char **paths = arena_zero(mem, (s->n + 1) * sizeof *paths);
    for (size_t i = 0; paths && i < s->n; i++) {
        const struct layer *l = &s->layers[i];
        const char *name =
            l->hidden && faccessat(l->dir, l->hidden, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? l->hidden : "upper";
        if (!(paths[i] = arena_printf(mem, "%s/" LAYERS "/%s/%s", state, l->id, name)))
            return NULL;
    }
    return paths;
}

/* `path` as it is, if one look finds no link on the way: realpath(3) asks for each directory. NULL and errno if it is not there. */
static const char *without_links(const char *path, struct arena *mem)
{
    auto_fd int there =
        path_is_clean(str_of(path)) ? sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS) : -ELOOP;
    if (there >= 0)
        return arena_text(mem, path);
    char *real = realpath(path, NULL);
    const char *text = real ? arena_text(mem, real) : NULL;
    free(real);
    return text;
}

int cow_begin(const struct pinfold_policy *p, const struct pinfold_run_options *o, const char *scope, struct arena *mem,
              struct layer_held *held, struct plan_ask *ask, struct err *e)
{
    *held = LAYER_HELD;
    if (!o->cow)
        return 0;
    const char *workspace = without_links(p->policy->workspace, mem);
    if (!workspace)
        return err_sys(e, ERR_POLICY, errno, "--cow: the workspace '%s'", p->policy->workspace);
    /* Before anything else is asked of it: an image, a daemon. */
    const char *engine = p->policy->engine;
    if (!same(engine, "auto") && !same(engine, "native"))
        return err_hint(e,
                        err_say(e, ERR_CANNOT,
                                "--cow: the workspace %s cannot get a copy-on-write layer: only the engine native "
                                "supports that, not %s",
                                workspace, engine),
                        "use --engine native, or run without --cow to let the box change it");
    const struct layer_ask wanted = {.workspace = workspace,
                                     .name = o->cow[0] ? arena_text(mem, o->cow) : NULL,
                                     .from = o->cow_from ? arena_text(mem, o->cow_from) : NULL,
                                     .session = ask->session,
                                     .scope = scope && *scope ? scope : NULL,
                                     .command = o->argv};
    char secret[sizeof SECRET_CACHES + CACHES_HASH];
    int r = layer_hold(p->layers.world.state, &wanted, mem, held, e);
    if (r < 0)
        return nested_keeps_nothing(e, r);
    ask->layer = held->path;
    ask->layer_hidden = held->layer.hidden;
    if (held->stack && !(ask->layer_below = paths_below(p->layers.world.state, held->stack, mem))) {
        layer_release(held);
        return err_sys(e, ERR_SYSTEM, ENOMEM, "--cow");
    }
    int no = caches_secret(p->layers.world.state, workspace, secret);
    ask->secret = no < 0 ? NULL : arena_text(mem, secret);
    if (ask->secret)
        return 0;
    layer_release(held);
    return err_sys(e, ERR_SYSTEM, no < 0 ? -no : ENOMEM, "--cow: cannot use 'secret' in '%s'", p->layers.world.state);
}

const char *cow_limit(const char *workspace, struct arena *mem)
{
    const char *real = elsewhere_git(mem, workspace);
    if (!real)
        return NULL;
    auto_buf struct buf shown = BUF(MAX_COW_WORDS * 4);
    utf8_safe(&shown, str_of(real));
    return arena_printf(
        mem,
        "--cow: the repository of this workspace lies outside of it (%.300s), so git can look there, and can "
        "neither stage nor commit; commit after the changes are applied, or start in the checkout that has it",
        buf_cstr(&shown));
}

int cow_shown(const struct pinfold_policy *p, struct plan_ask *ask)
{
    if (!p->policy->cow)
        return 0;
    ask->layer = arena_printf(p->mem, "%s/" LAYERS "/NEW", p->layers.world.state);
    ask->layer_hidden = "upper.HIDDEN";
    ask->secret = SECRET_CACHES "HIDDEN";
    return ask->layer ? 0 : -ENOMEM;
}

/* The record goes first: without it there is no layer. */
static void remove_layer(const struct layer *l, const char *path)
{
    (void)unlinkat(l->dir, "record", 0);
    remove_tree(AT_FDCWD, path);
}

/* Begins and ends with a whole character; what is left out is counted only. */
static void keep_waiting(const char *path, struct box_layer *ret)
{
    auto_buf struct buf shown = BUF(MAX_COW_WORDS * 4);
    utf8_safe(&shown, str_of(path));
    const char *text = buf_cstr(&shown);
    const size_t n = strlen(text) + 1;
    if (ret->waiting++ == 0)
        snprintf(ret->waits, sizeof ret->waits, "%s", n <= sizeof ret->waits ? text : "");
    if (n == 1 || n > sizeof ret->all_waits - ret->all_waits_n)
        return;
    memcpy(ret->all_waits + ret->all_waits_n, text, n);
    ret->all_waits_n += n;
}

static void count_changes(const struct changes *all, struct box_layer *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        const enum repo_part part = repo_part_of(c->path);
        ret->repository |= part == REPO_UNIT && !object_is(&c->new, S_IFDIR);
        if (part == REPO_UNIT || part == REPO_PASSING || c->born)
            continue;
        ret->edited += c->kind == CHANGE_EDITED;
        ret->added += c->kind == CHANGE_ADDED;
        ret->deleted += c->kind == CHANGE_DELETED;
        if (change_waits(c))
            keep_waiting(c->path, ret);
    }
}

int layer_guarded_names(const struct policy *policy, const struct layer *l, const char *home, struct arena *mem,
                        struct layer_guarded **ret, size_t *ret_n)
{
    const char *const *targets;
    size_t n = 0, n_targets;
    int r = survey_led_to(policy, home, mem, &targets, &n_targets);
    struct layer_guarded *names = r < 0 ? NULL : arena_zero(mem, (policy->n_guards + n_targets + 2) * sizeof *names);
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < n_targets; i++)
        if (path_below(targets[i], l->workspace))
            names[n++] = (struct layer_guarded){.name = path_rest(targets[i], l->workspace)};
    for (size_t i = 0; i < policy->n_guards; i++) {
        const struct guard_name *g = &policy->guards[i];
        if (!g->everyday || policy->everyday == EVERYDAY_GUARD)
            names[n++] = (struct layer_guarded){
                .name = g->name, .any_depth = g->place == GUARD_ANY_DEPTH, .deep = g->deep, .pattern = g->pattern};
    }
    names[n++] = (struct layer_guarded){.name = ".pinfold"};
    *ret = names;
    *ret_n = n;
    return 0;
}

static int read_changes(const struct pinfold_policy *p, const struct layer *l, const struct layer_stack *stack,
                        struct arena *mem, struct changes *ret, struct err *e)
{
    auto_fd int upper = layer_upper(l);
    auto_fd int workspace = open(l->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct layer_guarded *names;
    struct layer_trees t = {.upper = upper,
                            .workspace = workspace,
                            .store = l->dir,
                            .since = l->since,
                            .id = l->id,
                            .path = l->workspace,
                            .below = stack ? stack->below : NULL,
                            .n_below = stack ? stack->n : 0};
    if (upper < 0 || workspace < 0)
        return err_sys(e, ERR_SYSTEM, upper < 0 ? -upper : errno, "layer %s: cannot open it and its workspace", l->id);
    if (layer_guarded_names(p->policy, l, p->layers.world.home, mem, &names, &t.n_guarded) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s", l->id);
    t.guarded = names;
    if (stack) /* what the box began with is not what the workspace has: no base is noted */
        return stack_changes(&t, mem, NULL, ret, e);
    const int r = changes_read(&t, mem, ret, e);
    if (r == 0)
        (void)merge_note(&t, ret);
    return r;
}

/* Runs in a process of its own, beside the box. */
static bool note_base(void *ctx)
{
    const struct layer *l = ctx;
    auto_arena struct arena *mem = arena_new(LAYER_READ_MAX);
    auto_fd int upper = layer_upper(l);
    auto_fd int workspace = open(l->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct layer_trees t = {
        .upper = upper, .workspace = workspace, .store = l->dir, .since = l->since, .id = l->id, .path = l->workspace};
    struct changes all;
    struct stat st;
    struct err untold = {0};
    return mem && upper >= 0 && fstat(workspace, &st) == 0 && st.st_dev == l->device && st.st_ino == l->ino &&
           changes_read(&t, mem, &all, &untold) == 0 && merge_note(&t, &all);
}

#define WATCHED_MAX  1024 /* directories of a layer; what is in others is looked at by the clock */
#define WATCHED_HERE (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)
#define WATCHED      (WATCHED_HERE | IN_DONT_FOLLOW)

/* One event of each: a box that writes without end costs the kernel nothing more. */
static void watch_upper(int dir, int inotify, unsigned depth, unsigned *left)
{
    char path[32], room[4096] __attribute__((aligned(8)));
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    if (!*left || depth > LAYER_DEPTH_MAX)
        return;
    --*left;
    snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    if (sys_inotify_add(inotify, path, WATCHED_HERE | IN_ONESHOT) < 0)
        return;
    for (const struct sys_dirent *d; *left && (d = sys_next_entry(&entries));) {
        if (d->type != DT_DIR && d->type != DT_UNKNOWN)
            continue;
        auto_fd int below = sys_openat(dir, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (below >= 0)
            watch_upper(below, inotify, depth + 1, left);
    }
}

/* Where the box copies up what it changes: at that moment it is known what the workspace had there (note_base()). */
static void watch_layer(void *ctx, int inotify, bool deep)
{
    const struct layer *l = ctx;
    unsigned left = WATCHED_MAX;
    /* By name, as this is done at each start, where the name may change at this moment (hide_upper() in runtime/layer.c). */
    const char *const names[] = {l->hidden ? l->hidden : "upper", "upper", l->hidden ? l->hidden : "upper"};
    char path[128];
    for (size_t i = 0, e = 1; !deep && e && i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d/%s", l->dir, names[i]);
        e = sys_inotify_add(inotify, path, WATCHED | IN_ONESHOT) < 0;
    }
    if (!deep)
        return;
    auto_fd int upper = layer_upper(l);
    if (upper >= 0)
        watch_upper(upper, inotify, 0, &left);
}

#define LASTS_US 20000u

static uint64_t do_beside(void *ctx)
{
    struct cow_beside *b = ctx;
    if (layer_tend(&b->tending))
        return 0;
    if (!b->lasts) {
        b->lasts = true;
        return b->base->from < 0 ? RUN_IDLE_NEVER : LASTS_US;
    }
    return repo_base_step(b->base) ? 0 : RUN_IDLE_NEVER;
}

void cow_beside(struct run_spec *spec, struct layer_held *held, struct cow_beside *ret)
{
    *ret = (struct cow_beside){.tending = LAYER_TENDING};
    if (!held)
        return;
    struct layer *l = &held->layer;
    ret->tending.layer = l->dir;
    ret->base = &held->base;
    spec->idle = do_beside;
    spec->idle_ctx = ret;
    layer_wait(held);
    if (l->from) /* of a stacked layer the base is a layer's */
        return;
    spec->meanwhile = note_base;
    spec->meanwhile_watch = watch_layer;
    spec->meanwhile_ctx = l;
    spec->meanwhile_fd = l->dir;
}

void cow_beside_end(struct cow_beside *b)
{
    layer_tend_end(&b->tending);
}

void cow_say(const struct pinfold_run_options *o, const struct box_layer *n)
{
    auto_buf struct buf words = BUF(MAX_COW_WORDS);
    if (!o->say || !n->id[0] || !n->kept || !(n->edited + n->added + n->deleted + n->repository))
        return;
    buf_printf(&words, "layer %.8s: %llu changed, %llu new, %llu deleted", n->id, (unsigned long long)n->edited,
               (unsigned long long)n->added, (unsigned long long)n->deleted);
    if (n->repository)
        buf_text(&words, "; the repository changed");
    if (n->waiting == 1 && n->waits[0])
        buf_printf(&words, "; %s must be applied by name", n->waits);
    else if (n->waiting)
        buf_printf(&words, "; %llu of them must be applied by name%s%s", (unsigned long long)n->waiting,
                   n->waits[0] ? ", such as " : "", n->waits);
    o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
    buf_free(&words);
    buf_printf(
        &words,
        "nothing has reached the workspace yet: pinfold diff %.8s, pinfold apply %.8s --all, pinfold discard %.8s",
        n->id, n->id, n->id);
    o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
}

/* No message tells the name that no box may learn: a model may read it that writes in another box. */
static void keep_secret(struct err *e)
{
    const size_t first = sizeof SECRET_CACHES - 1;
    for (char *at = e->text; (at = strstr(at, SECRET_CACHES)); at += first) {
        size_t n = strspn(at + first, "0123456789abcdef");
        if (n == CACHES_HASH)
            memset(at + first, '*', n);
    }
}

int cow_end(const struct pinfold_policy *p, const struct pinfold_run_options *o, struct arena *mem,
            struct layer_held *held, int r, struct box_layer *ret, struct err *e)
{
    struct layer *l = &held->layer;
    struct changes all = {0};
    struct err why = {0};
    *ret = (struct box_layer){.kept = true};
    if (r < 0)
        keep_secret(e);
    if (l->dir < 0)
        return r;
    memcpy(ret->id, l->id, sizeof ret->id);
    if ((!l->name || (r < 0 && held->fresh)) && layer_drop_empty(l)) {
        if (!layer_set_aside(l))
            remove_layer(l, held->path);
        ret->kept = false;
        layer_release(held);
        return r;
    }
    int sealed = layer_seal(held, &why);
    /* The command has run: that its changes cannot be counted is no reason to lose its result. */
    if (sealed == 0 && r >= 0) {
        struct err untold = {0};
        if (read_changes(p, l, held->stack, mem, &all, &untold) == 0) {
            count_changes(&all, ret);
        } else if (o->say) {
            o->say(o->say_ctx, PINFOLD_SAY_WARNING, untold.text);
        }
    } else if (sealed < 0 && r >= 0) {
        r = err_wrap(e, (*e = why, sealed),
                     "the command has ended, but its changes may be lost when the machine stops");
    }
    layer_release(held);
    return r;
}

/* ---- layers as a list, and without them ---- */

#define BYTES_DEPTH 200 /* descriptors that are open at one time; what lies deeper is not counted */

/* On the disk, of the directory `name` in `dir` and what is below it; a file of several names counts once in all. */
static uint64_t tree_bytes(int dir, const char *name, unsigned depth)
{
    uint64_t bytes = 0;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        (void)close_fd(fd);
        return 0;
    }
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (same(e->d_name, ".") || same(e->d_name, "..") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bytes += (uint64_t)st.st_blocks * 512 / (S_ISDIR(st.st_mode) ? 1 : (uint64_t)st.st_nlink);
        if (S_ISDIR(st.st_mode) && depth < BYTES_DEPTH)
            bytes += tree_bytes(fd, e->d_name, depth + 1);
    }
    (void)closedir(d);
    return bytes;
}

void layer_put(struct json *j, const struct layer *l)
{
    json_object(j, "layer");
    json_text(j, "id", l->id);
    json_text_or_null(j, "name", l->name);
    json_text(j, "workspace", l->workspace);
    json_int(j, "created", l->created);
    json_text_or_null(j, "from", l->from);
    json_object_end(j);
}

bool layer_stands_on(const char *id, const char *from)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    const char *state = NULL;
    struct layer l = {.dir = -1}, below = {.dir = -1};
    struct err e = {0};
    const bool stands = mem && world_state(mem, &state, &e) == 0 && layer_open(state, id, "/", mem, &l, &e) == 0 &&
                        layer_open(state, from, "/", mem, &below, &e) == 0 && same(l.id, id) && same(l.from, below.id);
    layer_close(&l);
    layer_close(&below);
    return stands;
}

void layer_put_size(struct json *j, const char *id)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    const char *state = NULL;
    struct layer l = {.dir = -1};
    struct err e = {0};
    const bool known =
        mem && world_state(mem, &state, &e) == 0 && layer_open(state, id, "/", mem, &l, &e) == 0 && same(l.id, id);
    auto_fd int upper = known ? layer_upper(&l) : -1;
    if (upper >= 0) {
        json_uint(j, "layer_bytes", tree_bytes(upper, ".", 0));
        json_int(j, "layer_created", l.created);
    } else {
        json_null(j, "layer_bytes");
        json_null(j, "layer_created");
    }
    layer_close(&l);
}

const char *layer_left(const char *id, struct arena *mem)
{
    char room[4096] __attribute__((aligned(8)));
    const char *state = NULL;
    struct layer l = {.dir = -1};
    struct err e = {0};
    const bool known =
        world_state(mem, &state, &e) == 0 && layer_open(state, id, "/", mem, &l, &e) == 0 && same(l.id, id);
    auto_fd int upper = known ? layer_upper(&l) : -1;
    struct sys_entries entries = {.dir = upper, .room = room, .bytes = sizeof room};
    const char *left =
        upper < 0 || !sys_next_entry(&entries)
            ? NULL
            : arena_printf(
                  mem,
                  "what was changed in it before is in layer %.8s, which it does not have now%s; look: pinfold "
                  "diff %.8s",
                  l.id,
                  layer_is_doubtful(&l)
                      ? " and which may be damaged, because the machine stopped before it was written to the disk"
                      : "",
                  l.id);
    layer_close(&l);
    return left;
}

uint64_t layer_bytes(const struct layer *l)
{
    auto_fd int upper = layer_upper(l);
    return upper < 0 ? 0 : tree_bytes(upper, ".", 0);
}

static const char *layer_state(const struct layer *l)
{
    return layer_is_used(l) ? "used" : layer_is_doubtful(l) ? "doubtful" : l->synced ? "kept" : "unsynced";
}

/* What undo could take back, and what that takes on the disk. */
static void list_undo(struct json *j, const struct layer *l)
{
    auto_arena struct arena *mem = arena_new(1u << 24);
    const struct layer_trees t = {.store = l->dir, .id = l->id};
    auto_fd int undo = openat(l->dir, UNDO, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct err untold = {0};
    uint64_t *records = NULL, bytes = 0;
    size_t n = 0;
    if (!mem || undo < 0 || transaction_list(&t, mem, &records, &n, &untold) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++)
        bytes += transaction_bytes(undo, records[i]);
    json_uint(j, "applies", n);
    json_uint(j, "undo_bytes", bytes);
}

struct layers_list {
    struct json *j;
    struct arena *mem;
    const char **damaged; /* paths */
    size_t n_damaged;
};

static void list_layer(void *ctx, const struct layer *l)
{
    struct json *j = ((struct layers_list *)ctx)->j;
    json_object(j, NULL);
    json_text(j, "id", l->id);
    json_text_or_null(j, "name", l->name);
    json_text(j, "workspace", l->workspace);
    json_int(j, "created", l->created);
    json_text_or_null(j, "from", l->from);
    json_text(j, "state", layer_state(l));
    json_uint(j, "bytes", layer_bytes(l));
    list_undo(j, l);
    json_object_end(j);
}

static void list_damaged(void *ctx, const char *path)
{
    struct layers_list *list = ctx;
    const char **slot = arena_push(list->mem, &list->damaged, &list->n_damaged, sizeof *slot);
    if (slot)
        *slot = path;
}

int pinfold_layers_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    struct pinfold_report *report = report_new();
    const char *state = NULL;
    struct err e = {0};
    int r = mem ? world_state(mem, &state, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot list the layers");
    if (r < 0 || !report)
        return report_give(report, r, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    json_array(&j, "layers");
    struct layers_list list = {.j = &j, .mem = mem};
    r = layer_each(state, mem, list_layer, list_damaged, &list, &e);
    json_array_end(&j);
    json_array(&j, "damaged");
    for (size_t i = 0; i < list.n_damaged; i++)
        json_text(&j, NULL, list.damaged[i]);
    json_array_end(&j);
    json_object_end(&j);
    return report_give(report, r, &e, ret, error);
}

/* Against boxes, then against an apply. */
int layer_discard(const char *state, const struct layer *l, const char *path, struct arena *mem, struct err *e)
{
    const struct layer_trees t = {.store = l->dir, .id = l->id};
    auto_fd int lock = -1;
    int r =
        stack_check_free(state, l, mem, e); /* before the lock, which a box that stands on it holds, for the sentence */
    if (r == 0)
        r = layer_take(l, true, &lock, e);
    if (r == 0)
        r = stack_check_free(state, l, mem, e);
    if (r < 0)
        return r;
    auto_fd int applying = transaction_lock(&t, e);
    if (applying < 0)
        return applying;
    remove_layer(l, path);
    return 0;
}

int pinfold_layer_discard_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                                 struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    struct pinfold_report *report = report_new();
    struct pinfold_layer_options o;
    struct layer l = {.dir = -1};
    struct world world;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0 && (!mem || !report))
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot remove the layer");
    if (r == 0 && o.paths && o.paths[0])
        r = err_say(&e, ERR_POLICY, "discard removes a whole layer, and '%s' is a path", o.paths[0]);
    if (r == 0)
        r = world_look(mem, o.cwd, &world, &e);
    if (r == 0)
        r = layer_open(world.state, o.layer, world.cwd, mem, &l, &e);
    const char *path = r == 0 ? arena_printf(mem, "%s/" LAYERS "/%s", world.state, l.id) : NULL;
    if (r == 0)
        r = path ? layer_discard(world.state, &l, path, mem, &e)
                 : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot remove the layer");
    if (r == 0) {
        struct json j = JSON_TREE(&report->values);
        json_object(&j, NULL);
        layer_put(&j, &l);
        json_object_end(&j);
    }
    layer_close(&l);
    return report_give(report, r, &e, ret, error);
}
