/*
 * The table of engines: in the order of `auto`, and by name. An engine that is not in it does not exist for the rest
 * of pinfold.
 */
#include "backends/container/container.h"
#include "backends/engine.h"

/*
 * In the order of `auto`: first what needs no other program; then what enforces all of native's rules; then what is
 * slower to start; last what runs as root for everybody.
 */
const struct engine *const engines[] = {&engine_native,   &engine_bwrap,    &engine_nsjail,
                                        &engine_firejail, &engine_vm,       &engine_podman,
                                        &engine_docker,   &engine_seatbelt, NULL};

const struct engine *engine_by_name(const char *name)
{
    for (size_t i = 0; engines[i]; i++) {
        if (same(engines[i]->name, name))
            return engines[i];
    }
    return NULL;
}
