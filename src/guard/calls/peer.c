/*
 * Calls that name a process by number, without a pid namespace between box and host (the Landlock tier): limits,
 * scheduling and priority. The kernel lets a user change all of the user's processes, and Landlock does not restrict
 * that.
 *
 * A call about the caller itself continues: the caller stays alive while it waits, so its number stays its own. For
 * another process of the box the guard performs the call; its only capability is for looking (runtime/builder.c), so
 * the kernel checks it like the caller. Landlock tells which tasks belong to the box: the guard is in the outermost of
 * the box's domains, so it may look into processes in that domain or one below, and into no others, whatever their user
 * is. It asks by the task's directory in /proc, and uses the number in the next call. (In between, the task would have
 * to exit, be waited for, and its number be reused after all others.)
 */
#include <errno.h>
#include <limits.h>
#include <sys/resource.h>
#include "base/fd.h"
#include "guard/calls/calls.h"

/* The kernel's struct rlimit64, which newer C libraries lack. */
struct resource_limit {
    uint64_t now, most;
};

enum { WHO_PROCESS = 1 /* IOPRIO_WHO_PROCESS */, MASK_BYTES = 8192, ATTR_BYTES = 4096, ATTR_FIRST = 48 };

/* Whether `who`, in the caller's numbering, is the caller or its process. */
static bool is_caller(struct guard *g, pid_t who)
{
    struct target *t = g->who;
    if (t->tgid == 0 && target_status(g, t) < 0)
        return false;
    return who == t->own_tid || who == t->own_tgid;
}

/* Whether the task belongs to the box and is not pinfold's own. Call with the capability hidden. */
static int is_of_box(struct guard *g, int task, pid_t tid)
{
    char text[PATH_MAX];
    if (tid == g->main_pid || tid == sys_getpid())
        return -EPERM; /* a process may look at itself; pid 1 and the other workers are not dumpable */
    long n = sys_readlinkat(task, "cwd", text, sizeof text);
    return n >= 0 ? 0 : n == -EACCES || n == -EPERM ? -EPERM : -ESRCH;
}

bool peer_of_box(struct guard *g, pid_t who)
{
    auto_fd int task = task_of(g, who);
    if (task < 0)
        return false;
    ptrace_hide(g, true);
    const bool is = is_of_box(g, task, who) == 0;
    ptrace_hide(g, false);
    return is;
}

/* Copies the call's argument from the caller's memory into g->bytes; returns its size. */
static int argument_read(struct guard *g)
{
    const __u64 *a = g->n.data.args;
    uint32_t n = sizeof(int);
    switch (g->n.data.nr) {
    case SYS_sched_setaffinity:
        n = (uint32_t)a[1] < MASK_BYTES ? (uint32_t)a[1] : MASK_BYTES;
        break;
    case SYS_sched_setattr:
        if (target_bytes(g, a[1], &n, sizeof n) < 0)
            return -EFAULT;
        n = n ? n : ATTR_FIRST;
        if (n < ATTR_FIRST || n > ATTR_BYTES)
            return -E2BIG;
        break;
    case SYS_prlimit64:
        n = sizeof(struct resource_limit);
        break;
    default:
        break;
    }
    const int at = g->n.data.nr == SYS_sched_setparam || g->n.data.nr == SYS_sched_setattr ? 1 : 2;
    return target_bytes(g, a[at], g->bytes, n) < 0 ? -EFAULT : (int)n;
}

static long limit_set(struct guard *g, pid_t tid)
{
    const __u64 *a = g->n.data.args;
    struct resource_limit old;
    long no = sys_call(SYS_prlimit64, tid, a[1], g->bytes, &old, 0, 0);
    if (no < 0 || !a[3])
        return no;
    return target_write(g, a[3], &old, sizeof old);
}

static long peer_perform(struct guard *g, pid_t tid, int bytes)
{
    const __u64 *a = g->n.data.args;
    switch (g->n.data.nr) {
    case SYS_prlimit64:
        return limit_set(g, tid);
    case SYS_sched_setaffinity:
        return sys_call(SYS_sched_setaffinity, tid, bytes, g->bytes, 0, 0, 0);
    case SYS_sched_setattr:
        return sys_call(SYS_sched_setattr, tid, g->bytes, a[2], 0, 0, 0);
    case SYS_sched_setparam:
        return sys_call(SYS_sched_setparam, tid, g->bytes, 0, 0, 0, 0);
    case SYS_sched_setscheduler:
        return sys_call(SYS_sched_setscheduler, tid, a[1], g->bytes, 0, 0, 0);
    case SYS_setpriority:
        return sys_call(SYS_setpriority, PRIO_PROCESS, tid, a[2], 0, 0, 0);
    case SYS_ioprio_set:
        return sys_call(SYS_ioprio_set, WHO_PROCESS, tid, a[2], 0, 0, 0);
    default:
        return -ENOSYS;
    }
}

long peer_call(struct guard *g)
{
    const __u64 *a = g->n.data.args;
    const bool values = g->n.data.nr == SYS_setpriority || g->n.data.nr == SYS_ioprio_set; /* passed by value */
    const pid_t who = (pid_t)a[values];
    if (who <= 0)
        return -ESRCH;
    if (is_caller(g, who) || (g->n.data.nr == SYS_prlimit64 && !a[2]))
        return CONTINUE;
    if (g->who->own_tid != g->who->tid)
        return -EPERM; /* in its own pid namespace: its numbers differ from ours */
    int bytes = values ? 0 : argument_read(g);
    if (bytes < 0)
        return bytes;
    auto_fd int task = task_of(g, who);
    if (task < 0)
        return -ESRCH;
    int no = target_valid(g);
    if (no < 0)
        return no;
    ptrace_hide(g, true);
    long r = is_of_box(g, task, who);
    if (r == 0)
        r = peer_perform(g, who, bytes);
    ptrace_hide(g, false);
    return r;
}
