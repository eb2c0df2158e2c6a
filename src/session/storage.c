/*
 * Creates and removes the storage of sessions: directories in the state directory, or volumes of a container engine.
 * Removed is only what carries this instance's and this session's labels.
 */
#include "session/storage.h"

#include <errno.h>
#include <string.h>

#include "backends/container/container_left.h"

int storage_plan(const struct session_place *p, struct plan_ask *ask, struct arena *mem, struct err *e)
{
    ask->storage = arena_printf(mem, "%s/storage", p->state);
    ask->volume = arena_printf(mem, "pinfold-%s", p->hash);
    return ask->storage && ask->volume ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
}

/* STATE/sessions/HASH */
const char *storage_state(const struct session_place *p, struct arena *mem)
{
    size_t n = strlen(p->state);
    for (int up = 0; up < 2 && n; up++) {
        while (n && p->state[n - 1] != '/')
            n--;
        n -= n > 0;
    }
    return arena_str(mem, (struct str){p->state, n});
}

static struct container_daemon daemon_of(const struct kept *k)
{
    return (struct container_daemon){.podman = same(k->engine, "podman"),
                                     .host = k->host[0] ? k->host : NULL,
                                     .context = k->context[0] ? k->context : NULL};
}

int storage_make(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e)
{
    struct owner owner;
    const char *state = NULL;
    int no = 0;
    for (size_t i = 0; no == 0 && i < r->n_kept; i++) {
        const struct kept *k = &r->kept[i];
        if (!k->what.volume || !k->what.path[0])
            continue;
        const struct container_daemon d = daemon_of(k);
        if (!state) {
            state = storage_state(p, mem);
            if (!state)
                return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the session");
            owner_of_this(state, &owner);
        }
        container_note(state, &d);
        no = container_volume(&d, k->what.at, p->hash, &owner, mem, e);
    }
    return no;
}

/* Only what carries the labels of this instance and of this session. */
static int remove_one(const struct session_place *p, const struct kept *k, const char *instance, struct arena *mem,
                      struct err *e)
{
    const struct container_daemon d = daemon_of(k);
    struct container_thing *all = NULL;
    size_t n = 0;
    int r = container_list(&d, instance, mem, &all, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (all[i].volume && same(all[i].name, k->what.at) && same(all[i].session, p->hash))
            r = container_remove(&d, &all[i], mem, e);
    }
    return r;
}

int storage_remove(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e)
{
    char instance[OWNER_ID];
    const char *state = storage_state(p, mem);
    if (!state)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot remove the session");
    bool known = instance_id(state, false, instance);
    for (size_t i = 0; known && i < r->n_kept; i++) {
        const struct kept *k = &r->kept[i];
        int no = k->what.volume ? remove_one(p, k, instance, mem, e) : 0;
        if (no < 0)
            return err_wrap(e, no, "its volume %s is %s's", k->what.at, k->engine);
    }
    return 0;
}
