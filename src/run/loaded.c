/*
 * A loaded policy: made from what a caller names, or from packed layers. The second is for the program that the
 * shared library starts, which reads no file again.
 */
#include <stdlib.h>

#include "run/direct.h"

void pinfold_policy_free(struct pinfold_policy *p)
{
    if (!p || --p->users > 0)
        return;
    p->policy = policy_free(p->policy);
    for (size_t i = 0; i < p->n_extended; i++)
        (void)policy_free(p->extended[i]);
    net_kept_end(&p->net_kept);
    p->mem = arena_free(p->mem);
    free(p);
}

static struct pinfold_policy *policy_object(void)
{
    struct pinfold_policy *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->users = 1;
    p->net_kept = NET_KEPT;
    p->mem = arena_new(MAX_POLICY_ARENA);
    p->pins = p->mem ? arena_zero(p->mem, sizeof *p->pins) : NULL;
    if (!p->pins) {
        (void)arena_free(p->mem);
        free(p);
        return NULL;
    }
    p->pins->mem = p->mem;
    return p;
}

int pinfold_policy_load(const struct pinfold_policy_options *options, struct pinfold_policy **ret,
                        struct pinfold_error *error)
{
    struct err e = {0};
    struct pinfold_policy_options o;
    struct pinfold_policy *p = policy_object();

    int r = p ? take_options(&o, sizeof o, options, options ? options->size : 0, &e)
              : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot load the policy");
    if (r == 0)
        r = layers_load(&o, p->mem, &p->layers, &p->policy, &e);
    if (r < 0) {
        pinfold_policy_free(p);
        return tell(error, &e, r);
    }
    *ret = p;
    return 0;
}

int policy_of_layers(struct str packed, struct pinfold_policy **ret, struct err *e)
{
    struct pinfold_policy *p = policy_object();
    int r = p ? layers_unpack(packed, p->mem, &p->layers) : -ENOMEM;
    if (r < 0)
        (void)err_sys(e, ERR_BUG, -r, "cannot read the library's policy");
    else
        r = layers_build(&p->layers, &p->policy, e);
    if (r < 0) {
        pinfold_policy_free(p);
        return r;
    }
    *ret = p;
    return 0;
}
