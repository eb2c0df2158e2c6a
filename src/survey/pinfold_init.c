/* See pinfold_init.h. Only this file depends on the prefix, so that changing it compiles one file again. */
#include "survey/pinfold_init.h"
#include <string.h>

#ifndef PINFOLD_INIT
#define PINFOLD_INIT "/usr/local/libexec/pinfold/pinfold-init"
#endif

void pinfold_init_places(struct arena *mem, const char *own, const char *ret[2])
{
    const char *slash = strrchr(own, '/');
    ret[0] = slash ? arena_printf(mem, "%.*s/pinfold-init", (int)(slash - own), own) : NULL;
    ret[1] = PINFOLD_INIT;
}
