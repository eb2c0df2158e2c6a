/*
 * Serves the shared library's requests about copy-on-write layers (remote_layer.c). Each function takes a message
 * apart and calls the one of pinfold.h with that name.
 */
#include "client/serving.h"

static struct pinfold_layer_options layer_options(const struct message_layer *a)
{
    return (struct pinfold_layer_options){.size = sizeof(struct pinfold_layer_options),
                                          .layer = a->layer,
                                          .cwd = a->cwd,
                                          .paths = a->paths,
                                          .all = a->all != 0,
                                          .to = a->to,
                                          .choices = a->choices,
                                          .chosen = a->chosen != 0,
                                          .branch = a->branch,
                                          .merge = (int)a->merge};
}

int serve_layer_diff(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    int r = pinfold_layer_diff_report(&o, a->number != 0, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layer_patch(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    if (q->fds[0] < 0)
        return serve_bad(q);
    int r = pinfold_layer_patch(&o, q->fds[0], &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layer_hunks(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    int r = pinfold_layer_hunks_report(&o, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layer_apply(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    int r = pinfold_layer_apply_report(&o, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layer_undo(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    int r = pinfold_layer_undo_report(&o, a->number, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layer_discard(struct request *q, const struct message_layer *a, struct message_report *ret)
{
    const struct pinfold_layer_options o = layer_options(a);
    struct pinfold_report *report = NULL;
    int r = pinfold_layer_discard_report(&o, &report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layers(struct request *q, const struct message_schema *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    (void)a;
    int r = pinfold_layers_report(&report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_layers_prune(struct request *q, const struct message_sweep *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    int r = pinfold_layers_prune_report(a->older, a->look != 0, &report, q->error);
    return serve_report(q, r, report, ret);
}
