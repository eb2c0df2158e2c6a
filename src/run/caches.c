/*
 * A project is gone if its path does not exist while the file system it was on is still mounted; so an unmounted disk
 * does not lose its caches. A note is valid only in the directory named by its hash. Every slot is locked before
 * removal (prune.c), as a box locks the one it uses (private.c).
 */
#include "run/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "run/world.h"
#include "sys/file.h"

#define NOTE                                                                                                           \
    "project" /* beside the slots, whose names are numbers: the project, NUL, where what it is on is mounted, NUL */

/* Where the file system with `path` is mounted, in `room`; "" when the kernel does not say. */
static void find_mount(const char *path, char room[PATH_MAX])
{
    struct sys_stat st;
    snprintf(room, PATH_MAX, "%s", path);
    for (;;) {
        char *slash = strrchr(room, '/');
        if (sys_stat_at(AT_FDCWD, room, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) < 0 ||
            !(st.attributes_mask & SYS_STAT_MOUNTED))
            break;
        if (st.attributes & SYS_STAT_MOUNTED)
            return;
        if (!slash || !room[1])
            break;
        slash[slash == room] = 0;
    }
    room[0] = 0;
}

void caches_note(const char *directory, const char *workspace)
{
    char path[PATH_MAX], mount[PATH_MAX], text[CACHES_NOTE_MAX];
    size_t n = strlen(workspace) + 1;
    int length = snprintf(path, sizeof path, "%s/" NOTE, directory);
    if ((size_t)length >= sizeof path || n > PATH_MAX)
        return;
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) /* as a rule it is there */
        return;
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur < sizeof text) { /* a write would be SIGXFSZ */
        (void)unlink(path);
        return;
    }
    find_mount(workspace, mount);
    memcpy(text, workspace, n);
    memcpy(text + n, mount, strlen(mount) + 1);
    n += strlen(mount) + 1;
    if (write(fd, text, n) != (ssize_t)n)
        (void)unlink(path);
}

#define SECRET       "secret"
#define SECRET_BYTES 32

static int read_secret(int dir, const char *path, unsigned char number[SECRET_BYTES])
{
    auto_fd int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, number, SECRET_BYTES);
    return fd < 0 ? -errno : n == SECRET_BYTES ? 0 : -EBADMSG;
}

/* Complete before it has its name: whoever reads it never finds a part. */
static int make_secret(int dir, unsigned char number[SECRET_BYTES])
{
    char name[40];
    uint64_t unique;
    if (getrandom(number, SECRET_BYTES, 0) != SECRET_BYTES || getrandom(&unique, sizeof unique, 0) != sizeof unique)
        return -errno;
    snprintf(name, sizeof name, SECRET ".%016llx", (unsigned long long)unique);
    auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int no = fd < 0 ? -errno : write(fd, number, SECRET_BYTES) == SECRET_BYTES ? 0 : -ENOSPC;
    if (no == 0 && linkat(dir, name, dir, SECRET, 0) < 0)
        no =
            errno == EPERM || errno == EOPNOTSUPP ? sys_rename_new(dir, name, dir, SECRET) : -errno; /* FAT: no links */
    if (no == -EEXIST)
        no = read_secret(dir, SECRET, number);
    if (fd >= 0)
        (void)unlinkat(dir, name, 0);
    return no;
}

int caches_secret(const char *state, const char *workspace, char name[sizeof SECRET_CACHES + CACHES_HASH])
{
    unsigned char number[SECRET_BYTES];
    char text[SECRET_BYTES + PATH_MAX], path[PATH_MAX], sum[65];
    const size_t n = strlen(workspace);
    if (n > PATH_MAX || (size_t)snprintf(path, sizeof path, "%s/" SECRET, state) >= sizeof path)
        return -ENAMETOOLONG;
    int no = read_secret(AT_FDCWD, path, number);
    if (no == -ENOENT) {
        auto_fd int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        no = dir < 0 ? -errno : make_secret(dir, number);
    }
    if (no < 0)
        return no;
    memcpy(text, number, sizeof number);
    memcpy(text + sizeof number, workspace, n);
    sha256_hex((struct str){text, sizeof number + n}, sum);
    snprintf(name, sizeof SECRET_CACHES + CACHES_HASH, SECRET_CACHES "%.*s", CACHES_HASH, sum);
    return 0;
}

const char *caches_gone(int dir, const char *hash, char text[CACHES_NOTE_MAX])
{
    struct sys_stat st;
    char sum[65];
    auto_fd int fd = openat(dir, NOTE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)2 * PATH_MAX);
    text[n > 0 ? n : 0] = text[n > 0 ? n + 1 : 1] = 0;
    const char *mount = text + strlen(text) + 1;
    sha256_hex(str_of(text), sum);
    if (text[0] != '/' || strncmp(sum, hash, CACHES_HASH) != 0 || mount[0] != '/')
        return NULL;
    int no = sys_stat_at(AT_FDCWD, text, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no != -ENOENT && no != -ENOTDIR)
        return NULL;
    no = sys_stat_at(AT_FDCWD, mount, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    return no == 0 && st.attributes & SYS_STAT_MOUNTED ? text : NULL;
}
