/*
 * The start of a monitored box's first command. Its calls wait as all others do, but there is nothing to look at: pid 1's child changes its
 * directory and executes, in pid 1's memory, before anything of the box's runs; then the loader of a dynamic program opens its cache and
 * the libraries that it found there, before the program's first instruction. The builder lets these go on, and does not become the guard
 * for them (supervise.c): a command that opens nothing itself never pays for a process of the guard's.
 *
 * The builder still shares memory with pid 1 here, so nothing that the box wrote is read: no path, only numbers, which are compared. Whoever
 * makes them look like a loader's has one event less, of what it opened before anything else.
 */
#include <fcntl.h>
#include <linux/auxvec.h>

#include "base/fd.h"
#include "guard/workers.h"

#define LOADER_MOST                                                                                                    \
    (256u << 10)     /* bytes of the C library's loader in memory; musl's is its whole library, most of it further on */
#define AUXV_MOST 64 /* pairs of numbers; Linux 6.18 has 24 */

/* Where the loader of the calling process begins, as the kernel told the process itself; 0: it has none, or that cannot be read. */
static uint64_t loader_of(const struct guard_ask *ask, pid_t tid)
{
    char name[12 + sizeof "/auxv"];
    uint64_t pairs[2 * AUXV_MOST];
    put_text(put_number(name, (uint32_t)tid), "/auxv");
    auto_fd int fd = sys_openat(ask->host_proc, name, O_RDONLY | O_CLOEXEC, 0);
    const long got = fd < 0 ? fd : sys_read(fd, pairs, sizeof pairs);
    for (long i = 0; i + 1 < got / (long)sizeof *pairs; i += 2) {
        if (pairs[i] == AT_BASE)
            return pairs[i + 1];
    }
    return 0;
}

static bool is_near(uint64_t address, uint64_t base)
{
    return address >= base && address - base < LOADER_MOST;
}

/* The first is of the cache, whose name is a text of the loader's; the others are made by the same instruction. */
static bool by_loader(struct guard_beginning *b, const struct guard_ask *ask, const struct seccomp_notif *n)
{
    const __u64 *a = n->data.args;
    if (n->data.nr != SYS_openat || (int)a[0] != AT_FDCWD || (int)a[2] != (O_RDONLY | O_CLOEXEC))
        return false;
    if (b->opens)
        return (pid_t)n->pid == b->tid && n->data.instruction_pointer == b->opens;
    const uint64_t base = loader_of(ask, (pid_t)n->pid);
    if (!base || !is_near(n->data.instruction_pointer, base) || !is_near(a[1], base))
        return false;
    b->tid = (pid_t)n->pid;
    b->opens = n->data.instruction_pointer;
    return true;
}

bool guard_begins(struct guard_beginning *b, const struct guard_ask *ask, const struct seccomp_notif *n)
{
    if (b->executed)
        return by_loader(b, ask, n);
    b->executed = n->data.nr == SYS_execve;
    return b->executed || n->data.nr == SYS_chdir;
}
