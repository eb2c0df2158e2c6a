/*
 * Writes a file beside the one that it is to replace, and renames it once it is on the disk. After the rename the directory is written, too,
 * so what has been answered with success stays.
 */
#include "user/replace.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "sys/fd.h"

static int make_beside(int dir, const char *name, struct str bytes, unsigned mode, bool synced)
{
    (void)sys_unlinkat(dir, name, 0);
    own_fd int fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fd;
    int no = sys_write_all(fd, bytes.p, bytes.n);
    if (no == 0 && mode != 0600)
        no = sys_fchmod(fd, mode);
    if (no == 0 && synced)
        no = sys_fsync(fd);
    if (no < 0)
        (void)sys_unlinkat(dir, name, 0);
    return no;
}

int file_make(int dir, const char *name, struct str bytes, unsigned mode)
{
    return make_beside(dir, name, bytes, mode, true);
}

/* A directory that may be searched and not read cannot be written by itself; nor is every file system able to. */
static int sync_directory_of(int dir, const char *name)
{
    char path[PATH_MAX] = ".";
    const char *slash = strrchr(name, '/');
    if (slash && !str_copy((struct str){name, slash == name ? 1 : (size_t)(slash - name)}, path, sizeof path))
        return -ENAMETOOLONG;
    own_fd int fd = sys_openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    const int no = fd == -EACCES ? 0 : fd < 0 ? fd : sys_fsync(fd);
    return no == -EINVAL ? 0 : no;
}

static int give_name(int dir, const char *beside, const char *name)
{
    const int no = sys_renameat2(dir, beside, dir, name, 0);
    if (no < 0)
        (void)sys_unlinkat(dir, beside, 0);
    return no;
}

int file_take_place(int dir, const char *beside, const char *name)
{
    const int no = give_name(dir, beside, name);
    return no < 0 ? no : sync_directory_of(dir, name);
}

int file_replace(int dir, const char *name, const char *beside, struct str bytes, unsigned mode)
{
    const int no = file_make(dir, beside, bytes, mode);
    return no < 0 ? no : file_take_place(dir, beside, name);
}

int file_replace_unsynced(int dir, const char *name, const char *beside, struct str bytes, unsigned mode)
{
    const int no = make_beside(dir, beside, bytes, mode, false);
    return no < 0 ? no : give_name(dir, beside, name);
}
