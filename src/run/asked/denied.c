/* Tells the caller of a run of a refusal: pinfold_run_options.denied with struct pinfold_denial. */
#include "run/asked/denied.h"

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void say_denied(const struct pinfold_run_options *o, const struct denial *d)
{
    const struct pinfold_denial told = {.size = sizeof told,
                                        .kind = d->kind,
                                        .action = d->action,
                                        .target = d->target,
                                        .rule = or_empty(d->rule),
                                        .origin = or_empty(d->origin),
                                        .how = or_empty(d->how),
                                        .command = or_empty(d->command),
                                        .address = or_empty(d->address),
                                        .why = or_empty(d->why),
                                        .pid = d->pid,
                                        .command_line = or_empty(d->argv),
                                        .host = or_empty(d->host),
                                        .remedy = or_empty(d->remedy),
                                        .error = or_empty(box_errno_name(d->no)),
                                        .count = d->count,
                                        .monitor = d->seen,
                                        .guess = d->guess};
    if (o->denied)
        o->denied(o->denied_ctx, &told);
}
