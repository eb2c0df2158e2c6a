/* Removes trees that a box may have written: by descriptors, over no link, to a bounded depth.
   Each directory is opened below the one before. */
#include "sys/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/file.h"

enum {
    MAX_REMOVE_DEPTH = 256 /* descriptors that are open at one time */
};

/* A directory that its owner may not read (mode 0) is made readable by descriptor, so that no link is followed. */
static int open_directory(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES)
        return fd;
    auto_fd int shut = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char itself[32];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", shut);
    if (shut < 0 || chmod(itself, 0700) < 0)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct removing {
    int top;         /* what is removed, open */
    unsigned moved;  /* how many deep directories have been brought up to it */
    uint64_t *bytes; /* or NULL */
};

/* Before its last name goes. */
static void count(const struct removing *r, int dir, const char *name)
{
    struct stat st;
    if (r->bytes && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 1)
        *r->bytes += (uint64_t)st.st_blocks * 512;
}

/* A box may nest directories as deep as it likes: what lies too deep is moved up, to be met again. */
static void bring_up(struct removing *r, int dir, const char *name)
{
    char fresh[32];
    snprintf(fresh, sizeof fresh, ".deep-%u", r->moved);
    const int no = sys_rename_new(dir, name, r->top, fresh);
    if (no == 0 || no == -EEXIST)
        r->moved++;
}

static void remove_below(struct removing *r, int dir, const char *name, unsigned depth)
{
    count(r, dir, name);
    if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    int fd = open_directory(dir, name);
    if (fd >= 0 && depth > MAX_REMOVE_DEPTH) {
        (void)close_fd(fd);
        bring_up(r, dir, name);
        return;
    }
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        (void)close_fd(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (!same(e->d_name, ".") && !same(e->d_name, ".."))
            remove_below(r, fd, e->d_name, depth + 1);
    }
    (void)closedir(d);
    (void)unlinkat(dir, name, AT_REMOVEDIR);
}

void remove_tree(int dir, const char *name)
{
    remove_tree_counted(dir, name, NULL);
}

void remove_tree_counted(int dir, const char *name, uint64_t *bytes)
{
    struct removing r = {.top = -1, .bytes = bytes};
    if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return;
    r.top = open_directory(dir, name);
    for (unsigned before = 0;;) {
        remove_below(&r, dir, name, 0);
        if (r.moved == before)
            break;
        before = r.moved;
    }
    (void)close_fd(r.top);
}
