/* The guard of a builder: what it is given, for the programs whose builders become one (guard/supervise.h). */
#include "guard/supervise.h"

#include "guard/guard.h"

int guard_supervise(const struct builder *b, int notify, int host_proc, int init)
{
    const struct builder_end end = builder_end(b);
    const struct guard_ask ask = {.plan = b->plan,
                                  .notify = notify,
                                  .host_proc = host_proc,
                                  .report = b->report,
                                  .files = guard_files,
                                  .init_pidfd = init,
                                  .begun = b->pass[0],
                                  .program = b->program,
                                  .kept = &end,
                                  .kept_bytes = sizeof end};
    return guard_serve(&ask);
}
