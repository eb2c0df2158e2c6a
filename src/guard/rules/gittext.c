/* Examines a directory as git would: whether it is a repository, and the content of a configuration.
   Bytes come from here, gitconfig.c and gitindex.c judge them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include "git/gitconfig.h"
#include "guard/rules/rules.h"

bool git_is_nothing(int no)
{
    return no == -ENOENT || no == -ENOTDIR;
}

/* Or may exist: the directory's owner could remove its search permission, act by a descriptor, and restore it. */
static bool stands(int dir, const char *name)
{
    struct sys_stat st;
    return !git_is_nothing(sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st));
}

bool git_is_common(int dir)
{
    return dir < 0 ? !git_is_nothing(dir) : stands(dir, "objects") && stands(dir, "refs");
}

int git_text_read(int fd, enum gitconfig_kind kind, char **ret, size_t *ret_n)
{
    struct sys_stat st;
    int no = sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (!S_ISREG(st.mode))
        return -EINVAL;
    if (st.size > (kind == GITCONFIG_INDEX ? GITINDEX_MAX_BYTES : GITCONFIG_MAX_BYTES))
        return -EFBIG;
    size_t room = st.size + 1, n = 0; /* one more, to notice a file that grows or is too large */
    char *bytes = malloc(room);
    long got = bytes ? 1 : -ENOMEM;
    while (got > 0 && n < room) {
        got = sys_pread(fd, bytes + n, room - n, n);
        if (got > 0)
            n += (size_t)got;
    }
    if (got != 0) {
        free(bytes);
        return got < 0 ? (int)got : -EFBIG;
    }
    *ret = bytes;
    *ret_n = n;
    return 0;
}

int git_text_open(int dir, const char *name)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    /* A file mounted over the name does not count. */
    int fd = sys_openat2(dir, name, (uint64_t)flags, 0, RESOLVE_NO_XDEV);
    return fd == -ENOSYS ? sys_openat(dir, name, flags, 0) : fd;
}
