/*
 * flock(2) of the box. Guards lock directories with it (hold.c), and any process that may read a directory could lock
 * it too, for as long as it likes: every box that needs that lock would be refused meanwhile. So locks on directories
 * that others see are refused. All other locks are made on a duplicate of the caller's descriptor, which shares its
 * open file description: the lock belongs to the caller. Unlocking needs no guard.
 *
 * To wait for a lock, another process of the guard retries: the kernel's queue would keep that process waiting even if
 * the caller has gone, and then get a lock without an owner. A signal that the caller would see ends the wait.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include "base/fd.h"
#include "guard/inside.h"
#include "sys/poll.h"

#define PAUSE_MOST 20 /* ms */

static int is_refused(struct guard *g, int fd, const struct sys_stat *st)
{
    char path[PLACE_PATH];
    size_t n;
    if (!S_ISDIR(st->mode))
        return 0;
    /* In a mount made by the caller the path was chosen by it: the place in the box counts. */
    int no = mount_ours(g, st->mount) ? path_of(g, fd, path, &n) : nested_path(g, fd, st, path, &n);
    if (no == 0 && n && rules_private(&g->rules, (struct str){path, n}))
        return 0;
    return deny(g, DENIAL_CHANGE, NULL, no == 0 ? (struct str){n ? path : "/", n ? n : 1} : STR("a directory"),
                "a lock on a directory, which would block other boxes; lock a file");
}

static uint64_t signals(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

/* Only fatal signals interrupt a caller whose call is being performed (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV). */
static bool is_signalled(const struct target *t)
{
    char text[4096];
    auto_fd int fd = sys_openat(t->proc, "status", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, text, sizeof text - 1);
    if (n <= 0)
        return true;
    text[n] = 0;
    return (signals(text, "\nSigPnd:\t") | signals(text, "\nShdPnd:\t")) & ~signals(text, "\nSigBlk:\t");
}

static int try_lock(int fd, int operation)
{
    return (int)sys_call(SYS_flock, fd, operation | LOCK_NB, 0, 0, 0, 0);
}

static int wait_lock(struct guard *g, int fd, int operation)
{
    struct pollfd end = {.fd = g->init_pidfd, .events = POLLIN};
    int no = -EWOULDBLOCK;
    for (int pause = 1; no == -EWOULDBLOCK; pause = pause < PAUSE_MOST ? 2 * pause : PAUSE_MOST) {
        if (sys_poll_ms(&end, 1, pause) > 0)
            return -EINTR;
        no = target_valid(g);
        if (no == 0)
            no = is_signalled(g->who) ? -EINTR : try_lock(fd, operation);
    }
    return no;
}

long flock_call(struct guard *g, int fd, int operation)
{
    struct sys_stat st;
    auto_fd int own = target_fd(g, fd);
    int no = own < 0 ? own : sys_stat_at(own, "", AT_EMPTY_PATH, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st);
    if (no == 0)
        no = is_refused(g, own, &st);
    if (no == 0)
        no = target_valid(g);
    if (no < 0)
        return no;
    no = try_lock(own, operation);
    if (no != -EWOULDBLOCK || (operation & LOCK_NB))
        return no;
    no = guard_may_block(g);
    return no < 0 ? no : no == GONE_ON ? ANSWERED : wait_lock(g, own, operation);
}
