/* The user and group that this program was started as, which the kernel has told it: getauxval(3) makes no call. */
#pragma once
#include <sys/auxv.h>
#include <sys/types.h>

/* The real user. Not for processes that take another identity or enter a user namespace. */
static inline uid_t own_uid(void)
{
    return (uid_t)getauxval(AT_UID);
}

/* The effective ones, likewise. */
static inline uid_t own_euid(void)
{
    return (uid_t)getauxval(AT_EUID);
}

static inline gid_t own_egid(void)
{
    return (gid_t)getauxval(AT_EGID);
}
