/*
 * Prepares the directories and cache slots that a plan needs, and gives them back. A plan names them; two boxes at
 * once need two slots, so a plan may be made a second time with another one.
 */
#include "run/planned.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/ids.h"
#include "base/sha256.h"

#include "survey/written.h"
#include "supervisor/audit.h"
#include "user/own_dirs.h"
#include "sys/remove.h"
#include "run/private.h"
#include "run/waits.h"
#include "run/world.h"
#include "policy/path.h"
#include "sys/process.h"

const char *planned_directory(const struct pinfold_policy *p)
{
    const char *here = p->layers.world.cwd, *chosen = p->policy->workspace;
    return p->policy->workspace_origin && !path_at_or_below(here, chosen) ? chosen : here;
}

int planned_file_limit(struct err *e)
{
    enum { NEEDED = 64 << 10 };
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur >= NEEDED)
        return 0;
    return err_say(
        e, ERR_CANNOT,
        "the limit of a file's size (ulimit -f) is %llu bytes here, and pinfold's own files need %d; raise it, "
        "and limit the command alone: pinfold run -- sh -c 'ulimit -f %llu; exec COMMAND'",
        (unsigned long long)most.rlim_cur, NEEDED, (unsigned long long)most.rlim_cur / 512);
}

extern char **environ;

/*
 * A home that is not there, that cannot be written (a system user's, a read-only file system, a box around this one) or that is not root's has no place for private
 * layers. Then they go to a directory in /tmp that goes with the run. Only our own processes come here and change their
 * environment: a program that uses the shared library is served by another one.
 */
static char moved_state[32];
static unsigned n_moved; /* boxes that have it now: a process may run several */

static bool move_state(struct private_dirs *dirs)
{
    char path[] = "/tmp/pinfold-XXXXXX";
    if (dirs->moved)
        return true;
    /* The same name once more, which the environment has; unless somebody else has taken it. */
    const bool again = moved_state[0] && (n_moved || mkdir(moved_state, 0700) == 0);
    if (!again && !mkdtemp(path))
        return false;
    if (!again) {
        memcpy(moved_state, path, sizeof path);
        audit_nowhere(); /* what is refused is told after that directory is gone */
    }
    n_moved++;
    dirs->moved = true;
    return again || setenv("XDG_STATE_HOME", path, 1) == 0;
}

void planned_end(struct private_dirs *dirs)
{
    private_end(dirs);
    if (dirs->moved && --n_moved == 0)
        remove_tree(AT_FDCWD, moved_state);
    dirs->moved = false;
}

/*
 * Where the plan's slots of the caches will be, as long as the workspace is named by its real path (plan/making.c,
 * cache_dir()). Of many boxes at once only one could have the first: theirs would be planned twice, were it found out
 * after the first time.
 */
static void guess_slot(const struct pinfold_policy *p, char slots[PATH_MAX], struct private_dirs *dirs)
{
    char sum[65];
    sha256_hex(str_of(p->policy->workspace), sum);
    if (dirs->lock < 0 && snprintf(slots, PATH_MAX, "%s/caches/%.32s", p->layers.world.state, sum) < PATH_MAX)
        private_guess(dirs, slots);
}

/* A plan with directories of its own: made again when its slot of the caches is another box's. */
static int plan_with_slot(const struct pinfold_policy *p, struct plan_ask *ask, bool thorough,
                          struct private_dirs *dirs, struct prepared *ret, struct err *e)
{
    char slots[PATH_MAX];
    guess_slot(p, slots, dirs);
    ask->cache_slot = dirs->slot;
    int r = prepare(p, ask, thorough, ret, e);
    if (r == 0)
        r = private_begin(dirs, ret->plan, e);
    if (r == -EBUSY) {
        prepared_free(ret);
        ask->cache_slot = dirs->slot;
        r = prepare(p, ask, thorough, ret, e);
        if (r == 0)
            r = private_begin(dirs, ret->plan, e);
    }
    private_unguess(dirs);
    return r;
}

static int remember(const char *memory, const struct facts *f, const char *asked, struct err *e)
{
    const struct path_fact *fact = facts_path(f, asked);
    if (!fact || fact->type != PATH_DIR)
        return 0;
    const struct written_id id = {fact->dev, fact->ino, fact->born};
    return written_remember(memory, fact->real, &id, e);
}

/* What this box may write is known to the next one, whose paths are judged by it. */
static int remember_roots(const struct policy *p, const struct facts *f, struct err *e)
{
    int r = p->workspace_read_only ? 0 : remember(f->written, f, p->workspace, e);
    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        if (p->paths[i].access == PATH_RW && !p->paths[i].any_depth && !p->paths[i].pattern)
            r = remember(f->written, f, p->paths[i].path, e);
    }
    for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
        r = p->mounts[i].read_only ? 0 : remember(f->written, f, p->mounts[i].from, e);
    return r;
}

static int plan_here(const struct pinfold_policy *p, struct plan_ask *ask, bool thorough, struct private_dirs *dirs,
                     struct prepared *ret, struct err *e)
{
    bool own_environment = ask->environ == (const char *const *)environ;
    /* Root could write there; others are told by the first call that makes something. */
    const bool never = moved_state[0] || (own_euid() == 0 && own_dirs_allowed(p->layers.world.state) < 0);
    int r = never ? -EPERM : plan_with_slot(p, ask, thorough, dirs, ret, e);
    bool no_place = never || (ret->plan && (err_is_refused(r) || r == -EROFS || r == -ENOTDIR || r == -ENOENT));

    if (!no_place)
        return r;
    if (!move_state(dirs)) /* both have been tried; what else helps is said already of some */
        return e && e->no == EROFS && e->text[0] && e->text[strlen(e->text) - 1] != ')'
                   ? err_hint(e, r,
                              "/tmp cannot be written either, where a box has what goes with it: make one of them "
                              "writable, or set XDG_STATE_HOME to a directory of yours outside of the workspace")
                   : r;
    if (own_environment) /* setenv() may have moved it */
        ask->environ = (const char *const *)environ;
    ask->state_home = moved_state;
    private_end(dirs);
    prepared_free(ret);
    return plan_with_slot(p, ask, thorough, dirs, ret, e);
}

int planned_make(const struct pinfold_policy *p, struct plan_ask *ask, bool thorough, struct private_dirs *dirs,
                 struct prepared *ret, struct err *e)
{
    int r = plan_here(p, ask, thorough, dirs, ret, e);
    return r < 0 || dirs->moved ? r : remember_roots(p->policy, &ret->facts, e);
}

enum {
    STACK_USED = 96 << 10
}; /* as deep as a plan's making goes; below a main thread's stack is nothing else for longer than that */

/* The command has run for a while: what was needed to come so far is given back. */
void planned_give_back(void *ctx)
{
    const struct planned_memory *m = ctx;
    struct prepared *p = m->prepared;
    struct arena *kept = plan_settle_down(p->plan) ? arena_new(MAX_PLAN_ARENA) : NULL;
    if (kept && facts_move(&p->facts, kept)) {
        arena_trim(kept);
        (void)arena_free(p->mem);
        p->mem = kept;
    } else {
        (void)arena_free(kept);
    }
    arena_trim(m->policy->mem);
    arena_trim(m->policy->policy->mem);
    waits_forget();
    sys_stack_back((char *)__builtin_frame_address(0) - STACK_USED);
}

/* All that was read, parsed and planned but for the image of the plan; `room` spans at most. */
size_t planned_spare(const struct planned_memory *m, struct span *ret, size_t room)
{
    const struct plan *plan = m->prepared->plan;
    size_t n = arena_spans(plan->mem, plan->image, plan->image->bytes, ret, room);
    n += arena_spans(m->prepared->mem, NULL, 0, ret + n, room - n);
    n += arena_spans(m->policy->policy->mem, NULL, 0, ret + n, room - n);
    return n + arena_spans(m->policy->mem, NULL, 0, ret + n, room - n);
}

struct run_spec planned_spec(struct planned_memory *m)
{
    return (struct run_spec){
        .engine = m->prepared->engine,
        .start = {.plan = m->prepared->plan, .spare = m->spare, .n_spare = planned_spare(m, m->spare, PLANNED_SPANS)},
        .lasting = planned_give_back,
        .lasting_ctx = m};
}
