/*
 * The umask that the caller has set, which commands get. One that takes rights from the owner himself (`umask 177`, for a secret that a
 * redirection makes) would make directories of pinfold's own that it cannot enter, and that stay so: for itself a program of
 * ours begins without that part.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

void umask_begin(void);
/* The caller's, whole; false where umask_begin() was not called (in libpinfold). */
bool umask_asked(uint32_t *ret);
/* What it leaves of the rights of a new file that is not private. */
unsigned umask_leaves(unsigned mode);
