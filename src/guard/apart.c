/*
 * The guard's own process (guard.h). The builder may run in pinfold's memory, and shares it with pid 1 in any case.
 * What it reads for a box is hostile, so before the first byte of it the process executes the program again: it stays
 * the same process, with its parent, its namespaces and descriptors, and gets new memory, which holds nothing but the
 * plan. A command that asks for nothing never pays for that.
 *
 * Until execve this file uses sys/ only, like the builder. The plan and the descriptors' numbers lie in a memfd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "guard/inside.h"
#include "sys/fault.h"
#include "sys/fd.h"
#include "sys/process.h"

#define GUARD_OPTION "--guard"

struct left { /* at the beginning of the memfd; the plan follows */
    int notify, host_proc, report, init_pidfd, begun;
    uint32_t files, kept_bytes, plan_bytes;
    uint64_t text;
    _Alignas(8) char kept[GUARD_KEPT];
};

static int keep_open(int fd)
{
    return fd < 0 ? 0 : sys_fcntl(fd, F_SETFD, 0);
}

static int write_whole(int fd, const void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        long wrote = sys_write(fd, (const char *)p + at, n - at);
        if (wrote <= 0)
            return wrote < 0 ? (int)wrote : -EIO;
        at += (size_t)wrote;
    }
    return 0;
}

/* Decimal text of a descriptor's number, in `to`, which has room for it. */
static void put_fd(char *to, int fd)
{
    char digits[12];
    int n = 0;
    for (unsigned v = (unsigned)fd; v || !n; v /= 10)
        digits[n++] = (char)('0' + v % 10);
    while (n)
        *to++ = digits[--n];
    *to = 0;
}

static int execute(int program, int memory)
{
    char number[16];
    const char *argv[] = {"pinfold", GUARD_OPTION, number, NULL};
#ifdef PINFOLD_FAULTS /* calls are counted on */
    char faults[] = FAULT_FD_NAME "=00000000000";
    const char *envp[] = {faults, NULL};
    put_fd(faults + sizeof FAULT_FD_NAME, sys_fault_fd);
    (void)keep_open(sys_fault_fd);
#else
    const char *envp[] = {NULL};
#endif
    put_fd(number, memory);
    return sys_exec_fd(program, argv, envp);
}

int guard_become(const struct guard_ask *ask)
{
    struct left l = {.notify = ask->notify,
                     .host_proc = ask->host_proc,
                     .report = ask->report,
                     .init_pidfd = ask->init_pidfd,
                     .begun = ask->begun,
                     .files = ask->files != NULL,
                     .kept_bytes = ask->kept_bytes,
                     .plan_bytes = ask->plan->bytes,
                     .text = guard_text()};
    const int fds[] = {l.notify, l.host_proc, l.report, l.init_pidfd, l.begun};
    if (l.kept_bytes > sizeof l.kept)
        return -E2BIG;
    memcpy(l.kept, ask->kept, l.kept_bytes);
    int memory = sys_memory("pinfold-guard");
    if (memory < 0)
        return memory;
    int e = write_whole(memory, &l, sizeof l);
    if (e == 0)
        e = write_whole(memory, ask->plan, l.plan_bytes);
    for (unsigned i = 0; e == 0 && i < sizeof fds / sizeof *fds; i++)
        e = keep_open(fds[i]);
    if (e == 0)
        e = keep_open(memory);
    return e < 0 ? e : execute(ask->program, memory);
}

int guard_word(int argc, char **argv)
{
    char *end;
    if (argc != 3 || !same(argv[1], GUARD_OPTION))
        return -1;
    long fd = strtol(argv[2], &end, 10);
    return end == argv[2] || *end || fd < 0 || fd > INT_MAX ? -1 : (int)fd;
}

int guard_resume(int fd, struct guard_ask *ret, void *kept, uint32_t kept_bytes)
{
    struct sys_stat st;
    int e = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (e < 0)
        return e;
    long p = st.size < sizeof(struct left) ? -EBADMSG : sys_call(SYS_mmap, 0, st.size, 1, 2 /* private */, fd, 0);
    if (p < 0 && p > -4096)
        return (int)p;
    sys_shut(fd);
    const struct left *l = (const void *)p; // NOLINT(performance-no-int-to-ptr)
    if (l->kept_bytes != kept_bytes || st.size - sizeof *l != l->plan_bytes)
        return -EBADMSG;
    memcpy(kept, l->kept, kept_bytes);
    *ret = (struct guard_ask){.plan = (const void *)(l + 1),
                              .notify = l->notify,
                              .host_proc = l->host_proc,
                              .report = l->report,
                              .init_pidfd = l->init_pidfd,
                              .begun = l->begun,
                              .files = l->files ? guard_files : NULL,
                              .program = -1,
                              .text = l->text};
    return 0;
}
