/*
 * A view of what lies below a stacked layer: an overlay of directories that are open, mounted nowhere and gone with its descriptor. An
 * ordinary user may mount one only in a user namespace, so a child makes it there, in the descriptors of this process.
 */
#include <linux/limits.h>
#include <string.h>

#include "layer/stack/stack.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/process.h"

#define FD_LAYER sizeof "/proc/self/fd/2147483647:"

static char *put_number(char *to, unsigned n)
{
    char digits[12];
    int k = 0;
    do
        digits[k++] = (char)('0' + n % 10);
    while (n /= 10);
    while (k)
        *to++ = digits[--k];
    *to = 0;
    return to;
}

static char *put_text(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    *to = 0;
    return to;
}

/* By descriptor since Linux 6.13; before by path. */
static int name_lower(int fs, const int *dirs, size_t n, bool by_path)
{
    char paths[(LAYER_STACK_MAX + 1) * FD_LAYER], *to = paths;
    int e = 0;
    for (size_t i = 0; !by_path && e == 0 && i < n; i++)
        e = sys_fsconfig(fs, SYS_FS_FD, "lowerdir+", NULL, dirs[i]);
    for (size_t i = 0; by_path && i < n; i++)
        to = put_number(put_text(to, i ? ":/proc/self/fd/" : "/proc/self/fd/"), (unsigned)dirs[i]);
    return by_path ? sys_fsconfig(fs, SYS_FS_STRING, "lowerdir", paths, 0) : e;
}

static int mount_view(const int *dirs, size_t n)
{
    int e = -EINVAL;
    for (int by_path = 0; by_path < 2; by_path++) {
        own_fd int fs = sys_fsopen("overlay");
        e = fs < 0 ? fs : sys_fsconfig(fs, SYS_FS_FLAG, "userxattr", NULL, 0);
        if (e == 0)
            e = name_lower(fs, dirs, n, by_path);
        if (e == 0)
            e = sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
        if (e == 0)
            return sys_fsmount(fs, SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
        if (!sys_layer_by_path(e))
            break;
    }
    return e;
}

static int write_word(const char *path, const char *text)
{
    own_fd int fd = sys_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    const long n = (long)strlen(text);
    const long done = fd < 0 ? fd : sys_write(fd, text, (size_t)n);
    return done == n ? 0 : done < 0 ? (int)done : -EIO;
}

/* The caller's own ids, so that its files are its own there, too. */
static int map_ids(unsigned uid, unsigned gid)
{
    char map[48];
    (void)put_text(put_number(put_text(put_number(map, uid), " "), uid), " 1");
    int e = write_word("/proc/self/uid_map", map);
    if (e == 0)
        e = write_word("/proc/self/setgroups", "deny");
    (void)put_text(put_number(put_text(put_number(map, gid), " "), gid), " 1");
    return e < 0 ? e : write_word("/proc/self/gid_map", map);
}

/* overlayfs takes no directory that was opened in another mount namespace: the same one anew, by the name that it has. */
static int reopen(int dir)
{
    char link[FD_LAYER], path[PATH_MAX];
    struct layer_object was, is;
    (void)put_number(put_text(link, "/proc/self/fd/"), (unsigned)dir);
    const long n = sys_readlinkat(AT_FDCWD, link, path, sizeof path - 1);
    if (n < 0)
        return (int)n;
    path[n] = 0;
    own_fd int again = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (again < 0 || object_look(dir, "", &was) < 0 || object_look(again, "", &is) < 0)
        return again < 0 ? again : -EIO;
    return object_same_inode(&was, &is) ? sys_taken(&again) : -ESTALE;
}

/* Its answer: the number of the descriptor, or -errno. */
static _Noreturn void child(const int *dirs, size_t n, unsigned uid, unsigned gid, int answer)
{
    int here[LAYER_STACK_MAX + 1], r = map_ids(uid, gid);
    size_t opened = 0;
    /* The files in /proc of a process that has run a box are root's until it may be looked at again. */
    if (r == -EACCES && sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0)
        r = map_ids(uid, gid);
    for (; r == 0 && opened < n; opened++) {
        here[opened] = reopen(dirs[opened]);
        if (here[opened] < 0) {
            r = here[opened];
            break;
        }
    }
    if (r == 0)
        r = mount_view(here, n);
    while (opened) /* in the descriptors of the parent */
        sys_shut(here[--opened]);
    (void)sys_write(answer, &r, sizeof r);
    sys_exit(0);
}

static int in_child(const int *dirs, size_t n)
{
    const struct sys_clone how = {.flags = CLONE_FILES | CLONE_NEWUSER | CLONE_NEWNS, .exit_signal = SIGCHLD};
    const unsigned uid = (unsigned)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    const unsigned gid = (unsigned)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    int ends[2], r = -EIO, e = sys_pipe(ends, O_CLOEXEC);
    if (e < 0)
        return e;
    const int pid = sys_clone3(&how);
    if (pid == 0)
        child(dirs, n, uid, gid, ends[1]);
    /* It shares our descriptors, so the pipe has no end that closes: its exit is waited for first. */
    int status;
    while (pid > 0 && (e = sys_wait4(pid, &status, 0, NULL)) == -EINTR)
        ;
    if (pid < 0)
        r = pid;
    else if (e < 0 || sys_fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || sys_read(ends[0], &r, sizeof r) != sizeof r)
        r = -EIO;
    sys_drop(&ends[0]);
    sys_drop(&ends[1]);
    return r;
}

int stack_view(const struct layer_trees *t)
{
    int dirs[LAYER_STACK_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < t->n_below; i++)
        dirs[n++] = t->below[i].upper;
    dirs[n++] = t->workspace;
    const int r = sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) == 0 ? mount_view(dirs, n) : -EPERM;
    return r == -EPERM ? in_child(dirs, n) : r;
}
