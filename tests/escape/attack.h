/*
 * The attack program: one small attack per operation. `attack OP ARGS... , OP ARGS...` performs operations in turn: all
 * but the last prepare and must work everywhere; the last is the attack. It says on standard error how that went:
 *     attack: through            it worked
 *     attack: refused EPERM      the last operation got this errno
 *     attack: setup OP EPERM     a preparing operation failed
 *     attack: cannot WHY         the attack means nothing on this machine
 * and what it could read as "leak: ...". tests/escape/run runs each outside a box first, where it must get through.
 * Static, of one file's weight, and without helpers, so that it runs in any box.
 */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Returned by an operation that cannot be tried here; `cannot_why` says more. */
#define CANNOT 1
extern const char *cannot_why;

/* 0: through; negative errno: refused; CANNOT. */
typedef int operation(int n, char **args);
struct entry {
    const char *name;
    int args; /* at least */
    operation *run;
};
extern const struct entry file_entries[], process_entries[], kernel_entries[], network_entries[], terminal_entries[],
    resource_entries[], nested_entries[];

/* The last system call's result as an operation's. */
static inline int done(long r)
{
    return r < 0 ? -errno : 0;
}
/* Closes and returns 0, or -errno. */
static inline int done_fd(int fd)
{
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}
/* Reads from `fd` and tells it as a leak; closes. */
int leak_fd(int fd);
/* Writes the mark that the driver looks for; closes. */
int mark_fd(int fd);
