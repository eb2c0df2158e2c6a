/*
 * A rename that replaces nothing. File systems of a network and those in user space (NFS, 9p, FUSE) mostly know none and answer EINVAL.
 * There the name is taken first, by a call that fails if it exists, and what took it is replaced: no name is lost,
 * though for a moment others see an empty object.
 */
#include <stdbool.h>

#include "base/fd.h"
#include "sys/file.h"

/* Takes a name by an empty object of the kind that will replace it: -EEXIST if it has one. */
static int take_name(int dir, const char *name, bool is_directory, struct sys_stat *ret)
{
    int fd = -1, no;
    if (is_directory)
        no = sys_mkdirat(dir, name, 0700);
    else
        no = fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, ret);
    (void)close_fd(fd);
    return no;
}

/* Gives it back, unless somebody has put another object there, or something into it. */
static void free_name(int dir, const char *name, bool is_directory, const struct sys_stat *taken)
{
    struct sys_stat st;
    if (is_directory)
        (void)sys_unlinkat(dir, name, AT_REMOVEDIR);
    else if (sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0 && sys_same(&st, taken) &&
             st.size == 0)
        (void)sys_unlinkat(dir, name, 0);
}

int sys_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
    struct sys_stat st, taken = {0};
    int no = sys_renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
    if (no != -EINVAL)
        return no;
    no = sys_stat_at(from_dir, from, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    const bool is_directory = S_ISDIR(st.mode);
    no = take_name(to_dir, to, is_directory, &taken);
    if (no < 0)
        return no;
    no = sys_renameat2(from_dir, from, to_dir, to, 0);
    if (no < 0)
        free_name(to_dir, to, is_directory, &taken);
    return no;
}
