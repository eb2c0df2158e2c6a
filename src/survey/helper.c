/* Where pinfold looks for its other programs. Only this file knows the prefix, so another prefix recompiles one file. */
#include "survey/helper.h"
#include <string.h>

#ifndef PINFOLD_HELPERS
#define PINFOLD_HELPERS "/usr/local/libexec/pinfold"
#endif

static const char *beside_own(struct arena *mem, const char *own, const char *name)
{
    const char *slash = strrchr(own, '/');
    return slash ? arena_printf(mem, "%.*s/%s", (int)(slash - own), own, name) : NULL;
}

void helper_places(struct arena *mem, const char *own, const char *name, const char *ret[2])
{
    ret[0] = beside_own(mem, own, name);
    ret[1] = arena_printf(mem, PINFOLD_HELPERS "/%s", name);
}

void helper_guarded(struct arena *mem, const char *own, const char *ret[3])
{
    ret[0] = beside_own(mem, own, "pinfold-init");
    ret[1] = beside_own(mem, own, "pinfold-sqlite");
    ret[2] = PINFOLD_HELPERS;
}
