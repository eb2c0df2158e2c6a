/*
 * The process of the guard. The builder may run in pinfold's memory, and shares it with pid 1 in any case. What the
 * guard reads for a box is hostile, so before the first byte of it the builder executes the running program again, by a
 * descriptor: it stays the same process, with its parent, its namespaces and its descriptors, and gets new memory, which
 * holds nothing but the plan. A command that asks for nothing never pays for that.
 *
 * Until execve this file uses sys/ only, like the builder. The plan and the descriptors' numbers lie in a memfd.
 */
#include "guard/supervise.h"

#include <poll.h>
#include <stdlib.h>
#include "base/str.h"
#include "guard/places/places.h"
#include "base/text.h"
#include "sys/fault.h"
#include "sys/fd.h"
#include "sys/notify.h"
#include "sys/poll.h"
#include "sys/process.h"

#define GUARD_OPTION "--guard-process" /* not to be taken for the option --guard */

struct guard_handed { /* at the beginning of the memfd; the plan follows */
    char mark[8];
    struct guard_ask ask; /* what points into memory is set anew */
    struct builder_end end;
    uint64_t plan_bytes;
};
static const char handed_mark[8] = "guarded";
_Static_assert(sizeof(struct guard_handed) % 8 == 0, "the plan is aligned");

static int keep_open(int fd)
{
    return fd < 0 ? 0 : sys_fcntl(fd, F_SETFD, 0);
}

static int execute(int program, int memory)
{
    char number[12];
    const char *argv[] = {"pinfold", GUARD_OPTION, number, NULL};
    put_number(number, (uint32_t)memory);
#ifdef PINFOLD_FAULTS /* calls are counted on */
    char faults[sizeof FAULT_FD_NAME + sizeof number];
    const char *envp[] = {faults, NULL};
    put_number(put_text(faults, FAULT_FD_NAME "="), (uint32_t)sys_fault_fd);
    (void)keep_open(sys_fault_fd);
#else
    const char *envp[] = {NULL};
#endif
    return sys_exec_fd(program, argv, envp);
}

/* Returns -errno. */
static int become(const struct guard_ask *ask, const struct builder_end *end, int program)
{
    struct guard_handed h = {.ask = *ask, .end = *end, .plan_bytes = ask->plan->bytes};
    const int memory = sys_memory("pinfold-guard");
    const int fds[] = {ask->notify, ask->host_proc, ask->report, ask->init_pidfd, ask->begun, memory};
    h.ask.plan = NULL;
    h.ask.files = NULL;
    h.ask.text = guard_text();
    memcpy(h.mark, handed_mark, sizeof handed_mark);
    int e = memory < 0 ? memory : sys_write_all(memory, &h, sizeof h);
    if (e == 0)
        e = sys_write_all(memory, ask->plan, h.plan_bytes);
    for (unsigned i = 0; e == 0 && i < sizeof fds / sizeof *fds; i++)
        e = keep_open(fds[i]);
    return e < 0 ? e : execute(program, memory);
}

/* Waits until there is something for the guard to do; false: the box has ended. A call that was received for that is in `ask->first`. */
static bool asked(struct builder *b, struct guard_ask *ask)
{
    const bool begins = (b->plan->filter & (FILTER_MONITOR | FILTER_READS)) == FILTER_MONITOR;
    struct guard_beginning beginning = {0};
    if (begins)
        (void)sys_notify_flags(ask->notify, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP); /* Linux 6.6 */
    while (guard_asked(ask, b->runner.stack)) {
        struct pollfd p = {.fd = ask->notify, .events = POLLIN};
        if (!begins || sys_poll_ms(&p, 1, 0) <= 0 || !(p.revents & POLLIN))
            return true;
        ask->first = (struct seccomp_notif){0};
        if (sys_notify_receive(ask->notify, &ask->first) < 0)
            continue; /* the caller has died */
        if (!guard_begins(&beginning, ask, &ask->first))
            return true;
        (void)sys_notify_answer(ask->notify, ask->first.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
        ask->first = (struct seccomp_notif){0};
        builder_settle_in_time(b, ask->notify, ask->init_pidfd);
    }
    return false;
}

int guard_supervise(struct builder *b, int notify, int host_proc, int init)
{
    struct guard_ask ask = {.plan = b->plan,
                            .notify = notify,
                            .host_proc = host_proc,
                            .report = b->report,
                            .files = guard_files,
                            .init_pidfd = init,
                            .begun = b->pass[0]};
    if (b->program < 0)
        return guard_serve(&ask);
    if (!(b->plan->filter & FILTER_READS) && !asked(b, &ask))
        return guard_end_of_init(init);
    int e = builder_yield(b);
    const struct builder_end end = builder_end(b);
    return e < 0 ? e : become(&ask, &end, b->program);
}

/* ---- in the executed program ---- */

/* What become() left in descriptor `fd`, or NULL. */
static const struct guard_handed *take(int fd)
{
    struct sys_stat st;
    if (sys_stat_fd(fd, SYS_STAT_BASIC, &st) < 0 || st.size < sizeof(struct guard_handed))
        return NULL;
    const struct guard_handed *h = sys_map(st.size, PROT_READ, MAP_PRIVATE, fd);
    return h && memcmp(h->mark, handed_mark, sizeof handed_mark) == 0 && st.size - sizeof *h == h->plan_bytes ? h
                                                                                                              : NULL;
}

void guard_main(int argc, char **argv, const char *name)
{
    char *rest;
    long fd = argc == 3 && same(argv[1], GUARD_OPTION) ? strtol(argv[2], &rest, 10) : -1;
    const struct guard_handed *h = fd < 0 || fd > INT_MAX || *rest ? NULL : take((int)fd);
    if (!h)
        return; /* somebody has typed it */
    sys_shut((int)fd);
    struct guard_ask ask = h->ask;
    ask.plan = (const void *)(h + 1);
    ask.files = guard_files;
    int e = builder_resume(&h->end);
    (void)sys_prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0); /* it was executed under a number */
    builder_finish(&h->end, e < 0 ? e : guard_serve(&ask));
}
