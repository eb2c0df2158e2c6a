/*
 * Removes layers that nobody needs any more: those that change nothing, and on request old ones. A layer that is in
 * use, or that another stands on, stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "layer/spare.h"
#include "layer/stack/stack.h"
#include "run/layer/cow.h"
#include "run/layer/landing.h"
#include "run/report.h"
#include "run/world.h"

#define TAKEN_BACK 86400 /* what was applied within a day can still be taken back */

struct pruned {
    const char *id, *from;
    bool gone;
};
struct layers_pruning {
    const char *state;
    struct arena *mem;
    struct pruned *all;
    size_t n, kept;
    uint64_t older;
    bool look;
    struct json *j;
};

static void remember_layer(void *ctx, const struct layer *l)
{
    struct layers_pruning *p = ctx;
    struct pruned *slot = arena_push(p->mem, &p->all, &p->n, sizeof *slot);
    if (slot)
        *slot = (struct pruned){.id = arena_text(p->mem, l->id), .from = l->from};
}

static bool is_built_upon(const struct layers_pruning *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (!p->all[i].gone && same(p->all[i].from, id))
            return true;
    return false;
}

/* Seconds since a file of the layer was written; -1: there is none. */
static int64_t age_of(const struct layer *l, const char *name)
{
    struct stat st;
    const int64_t now = (int64_t)time(NULL);
    if (fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return now > st.st_mtim.tv_sec ? now - st.st_mtim.tv_sec : 0;
}

/* Why it may go, or NULL. */
static const char *why_prune(const struct layers_pruning *p, const struct layer *l)
{
    const int64_t used = age_of(l, "record"), applied = age_of(l, "applied");
    if (p->older && used >= 0 && (uint64_t)used >= p->older && (applied < 0 || (uint64_t)applied >= p->older))
        return "old";
    if (applied >= 0 && applied < TAKEN_BACK)
        return NULL;
    if (layer_is_empty(l))
        return "empty";
    return layer_has_landed(l->id) ? "landed" : NULL;
}

/* 1: it is gone, or would be. */
static int prune_one(struct layers_pruning *p, struct pruned *one)
{
    struct layer l = {.dir = -1};
    struct err e = {0};
    if (layer_open(p->state, one->id, "/", p->mem, &l, &e) < 0 || !same(l.id, one->id)) {
        layer_close(&l);
        return 0;
    }
    const uint64_t bytes = layer_bytes(&l);
    const char *why = layer_is_used(&l) ? NULL : why_prune(p, &l);
    const char *path = why ? arena_printf(p->mem, "%s/" LAYERS "/%s", p->state, l.id) : NULL;
    const bool gone = path && (p->look || layer_discard(p->state, &l, path, p->mem, &e) == 0);
    if (gone) {
        json_object(p->j, NULL);
        json_text(p->j, "id", l.id);
        json_text_or_null(p->j, "name", l.name);
        json_text(p->j, "workspace", l.workspace);
        json_uint(p->j, "bytes", bytes);
        json_text(p->j, "why", why);
        json_object_end(p->j);
    }
    one->gone = gone;
    layer_close(&l);
    return gone;
}

/* Those on top first, so that what they stand on can go, too. */
static void prune_all(struct layers_pruning *p)
{
    bool again = true;
    while (again) {
        again = false;
        for (size_t i = 0; i < p->n; i++) {
            if (!p->all[i].gone && p->all[i].id && !is_built_upon(p, p->all[i].id) && prune_one(p, &p->all[i]))
                again = true;
        }
    }
    for (size_t i = 0; i < p->n; i++)
        p->kept += !p->all[i].gone;
}

/* What is no layer: the one kept ready, and what ended or was never finished. */
static void sweep_unfinished(const char *state)
{
    char path[PATH_MAX];
    auto_fd int layers = (size_t)snprintf(path, sizeof path, "%s/" LAYERS, state) < sizeof path
                             ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                             : -1;
    if (layers >= 0)
        layer_sweep(layers);
}

int pinfold_layers_prune_report(uint64_t older, int look, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    struct pinfold_report *report = report_new();
    struct layers_pruning p = {.mem = mem, .older = older, .look = look != 0};
    struct err e = {0};
    int r = mem ? world_state(mem, &p.state, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot list the layers");
    if (r == 0)
        r = layer_each(p.state, mem, remember_layer, NULL, &p, &e);
    if (r < 0 || !report)
        return report_give(report, r, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    p.j = &j;
    json_object(&j, NULL);
    json_array(&j, "removed");
    prune_all(&p);
    if (!look)
        sweep_unfinished(p.state);
    json_array_end(&j);
    json_uint(&j, "kept", p.kept);
    json_object_end(&j);
    return report_give(report, 0, &e, ret, error);
}
