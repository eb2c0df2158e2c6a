/*
 * What a layer stands on: found, and held while a box uses it. A layer that others stand on is neither applied nor
 * removed.
 */
#include "layer/stack/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "match/path.h"

int stack_open(const char *state, const struct layer *l, struct arena *mem, struct layer_stack *ret, struct err *e)
{
    const struct layer *above = l;
    *ret = (struct layer_stack){.n = 0};
    while (above->from) {
        struct err none = {0};
        const size_t i = ret->n;
        if (i == LAYER_STACK_MAX)
            return err_hint(e, err_say(e, ERR_REFUSED, "more than %d layers are stacked", LAYER_STACK_MAX),
                            "apply the lower ones, then begin with a new layer");
        int r = layer_open(state, above->from, "/", mem, &ret->layers[i], &none);
        if (r == 0 && !same(ret->layers[i].id, above->from)) {
            layer_close(&ret->layers[i]);
            r = -ENOENT;
        }
        if (r < 0)
            return err_hint(
                e, err_say(e, ERR_REFUSED, "a layer stands on layer %s, which cannot be read any more", above->from),
                "remove the upper one: pinfold discard");
        ret->locks[i] = -1;
        ret->below[i] = (struct layer_below){.upper = layer_upper(&ret->layers[i]),
                                             .store = ret->layers[i].dir,
                                             .since = ret->layers[i].since,
                                             .id = ret->layers[i].id};
        ret->n++;
        if (ret->below[i].upper < 0)
            return err_sys(e, ERR_SYSTEM, -ret->below[i].upper, "layer %s: cannot open 'upper'", ret->layers[i].id);
        above = &ret->layers[i];
    }
    return 0;
}

void stack_close(struct layer_stack *s)
{
    while (s->n) {
        const size_t i = --s->n;
        s->locks[i] = close_fd(s->locks[i]);
        s->below[i].upper = close_fd(s->below[i].upper);
        layer_close(&s->layers[i]);
    }
}

int stack_hold(struct layer_stack *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct layer *l = &s->layers[i];
        if (layer_is_doubtful(l))
            return err_hint(
                e,
                err_say(e, ERR_REFUSED,
                        "layer %s, which is below, may be damaged, because the machine stopped before it was "
                        "written to the disk",
                        l->id),
                "look at it with pinfold diff, and remove what stands on it, then it: pinfold discard");
        int r = layer_share(l, &s->locks[i], e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- what stands on a layer ---- */

struct standing {
    const char *id;
    char found[17];
};

static void look_on(void *ctx, const struct layer *l)
{
    struct standing *s = ctx;
    if (l->from && strcmp(l->from, s->id) == 0)
        memcpy(s->found, l->id, sizeof s->found);
}

int stack_check_free(const char *state, const struct layer *l, struct arena *mem, struct err *e)
{
    struct standing s = {.id = l->id};
    int r = layer_each(state, mem, look_on, NULL, &s, e);
    if (r < 0 || !s.found[0])
        return r;
    (void)err_say(e, ERR_REFUSED, "layer %s stays as it is: layer %s stands on it", l->id, s.found);
    return err_hint(e, -EBUSY, "remove that one first: pinfold discard %.8s", s.found);
}
