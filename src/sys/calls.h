/* Which system calls this process may still make: for processes that read hostile bytes and need few of them. */
#pragma once
#include <stdbool.h>

enum { SYS_CALLS_MAX = 64 };

/*
 * From now on this process may make these `n` calls and no others: any other one kills it, and so does one of another architecture.
 * With `internet` also socket(2) for IPv4 and IPv6. It gains no privileges, is not dumpable, and can neither write files nor start
 * processes. 0 or -errno.
 */
int sys_calls_only(const int *calls, unsigned n, bool internet);
