#include "user/umask.h"

#include <sys/stat.h>

static mode_t taken;

void umask_begin(void)
{
    const mode_t mask = umask(077);
    taken = mask & 0700;
    (void)umask(mask & 077);
}

unsigned umask_taken(void)
{
    return taken;
}
