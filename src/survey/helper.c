/* Where pinfold looks for its other programs. Only this file knows the prefix, so another prefix recompiles one file. */
#include "survey/helper.h"
#include <string.h>

#include "match/path.h"

#ifndef PINFOLD_HELPERS
#define PINFOLD_HELPERS "/usr/local/libexec/pinfold"
#endif

static const char *beside_own(struct arena *mem, const char *own, const char *name)
{
    const char *slash = strrchr(own, '/');
    return slash ? arena_printf(mem, "%.*s/%s", (int)(slash - own), own, name) : NULL;
}

/* DIR/libexec/pinfold of a program in DIR/bin, unless that is where this build installs it. */
static const char *relative(struct arena *mem, const char *own)
{
    const char *bin = path_dir(mem, own), *prefix = bin ? path_dir(mem, bin) : NULL;
    const char *at = prefix && strcmp(path_name(bin), "bin") == 0 ? path_join(mem, prefix, "libexec/pinfold") : NULL;
    return at && strcmp(at, PINFOLD_HELPERS) != 0 ? at : NULL;
}

void helper_places(struct arena *mem, const char *own, const char *name, const char *ret[N_HELPER_PLACES])
{
    const char *moved = relative(mem, own);
    ret[0] = beside_own(mem, own, name);
    ret[1] = moved ? path_join(mem, moved, name) : NULL;
    ret[2] = arena_printf(mem, PINFOLD_HELPERS "/%s", name);
}

void helper_guarded(struct arena *mem, const char *own, bool is_clone, const char *ret[N_HELPERS])
{
    static const char names[][16] = {"pinfold-init", "pinfold-sqlite", "pinfold-login", "pinfold-bwrap", "agent-shell"};
    enum { NAMES = sizeof names / sizeof *names };
    _Static_assert(NAMES + 2 == N_HELPERS, "each helper, and two directories");
    for (size_t i = 0; i < N_HELPERS; i++)
        ret[i] = NULL;
    for (size_t i = 0; i < NAMES && !is_clone; i++)
        ret[i] = beside_own(mem, own, names[i]);
    if (is_clone)
        ret[0] = path_dir(mem, own);
    ret[NAMES] = relative(mem, own);
    ret[NAMES + 1] = PINFOLD_HELPERS;
}
