/*
 * The umask that the caller has set, which commands get. One that takes rights from the owner himself (`umask 177`, for a secret that a
 * redirection makes) would make directories of pinfold's own that it cannot enter, and that stay so: for itself a program of
 * ours begins without that part.
 */
#pragma once

void umask_begin(void);
/* The bits that umask_begin() has taken from the process's umask; 0 where it was not called (in libpinfold). */
unsigned umask_taken(void);
