/*
 * The umask of the caller, and the one that pinfold has for itself. Files of pinfold's own are always private; the
 * command gets the caller's.
 */
#include "user/umask.h"

#include <sys/stat.h>

static struct {
    bool begun;
    mode_t mask;
} asked;

void umask_begin(void)
{
    asked.mask = umask(077);
    asked.begun = true;
    (void)umask(asked.mask & 077);
}

bool umask_asked(uint32_t *ret)
{
    if (asked.begun)
        *ret = asked.mask;
    return asked.begun;
}

unsigned umask_leaves(unsigned mode)
{
    return mode & ~(asked.begun ? (unsigned)asked.mask & 077 : 077);
}
