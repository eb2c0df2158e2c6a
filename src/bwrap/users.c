/*
 * User namespaces: the map of ids, a second one in which no more can be made, and proof of that. --disable-userns is
 * the second, --assert-userns-disabled the third.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/process.h"

static int write_text(int proc, const char *path, const char *text)
{
    own_fd int fd = sys_openat(proc, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long n = sys_write(fd, text, strlen(text));
    return n < 0 ? (int)n : 0;
}

void bw_map_ids(int proc, uint32_t uid, uint32_t outer_uid, uint32_t gid, uint32_t outer_gid)
{
    char map[64];
    snprintf(map, sizeof map, "%u %u 1\n", uid, outer_uid);
    int e = write_text(proc, "self/uid_map", map);
    if (e < 0)
        bw_die_sys(e, "setting up uid map");
    e = write_text(proc, "self/setgroups", "deny\n");
    if (e < 0 && e != -ENOENT)
        bw_die_sys(e, "error writing to setgroups");
    snprintf(map, sizeof map, "%u %u 1\n", gid, outer_gid);
    e = write_text(proc, "self/gid_map", map);
    if (e < 0)
        bw_die_sys(e, "setting up gid map");
}

void bw_nest_users(const struct bw_line *l, int proc, uint32_t uid, uint32_t gid)
{
    if (l->userns2 >= 0) {
        int e = sys_setns(l->userns2, CLONE_NEWUSER);
        if (e < 0)
            bw_die_sys(e, "Setting userns2 failed");
    }
    if (!l->disable_userns)
        return;
    /* The limit counts namespaces of the outer one, which the inner one has no right to raise again. */
    int e = write_text(proc, "sys/user/max_user_namespaces", "1\n");
    if (e < 0)
        bw_die_sys(e, "cannot write to /proc/sys/user/max_user_namespaces");
    e = sys_unshare(CLONE_NEWUSER);
    if (e < 0)
        bw_die_sys(e, "unshare user ns");
    bw_map_ids(proc, uid, uid, gid, gid);
}

/* A process of its own tries, because what succeeds could not be taken back. */
void bw_assert_no_users(void)
{
    const struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    int pid = sys_clone3(&how);
    if (pid == 0)
        sys_exit(0);
    if (pid > 0) {
        while (sys_wait4(pid, NULL, 0, NULL) == -EINTR)
            ;
        bw_die("creation of new user namespaces was not disabled as requested");
    }
}
