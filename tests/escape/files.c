/*
 * Attacks on files: names, contents, attributes, descriptors. Each operation returns 0 when it got through, or -errno
 * (attack.h).
 */
#include "attack.h"
#include <dirent.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

OP(op_read)
{
    return leak_fd(open(args[0], O_RDONLY | O_NONBLOCK | O_NOCTTY));
}
OP(op_list)
{
    DIR *d = opendir(args[0]);
    if (!d)
        return -errno;
    for (struct dirent *e; (e = readdir(d));)
        fprintf(stderr, "leak: %s\n", e->d_name);
    closedir(d);
    return 0;
}
OP(op_readlink)
{
    char text[512];
    ssize_t got = readlink(args[0], text, sizeof text);
    if (got < 0)
        return -errno;
    fprintf(stderr, "leak: %.*s\n", (int)got, text);
    return 0;
}
OP(op_readlink_fd)
{
    char text[512];
    int fd = open(args[0], O_PATH | O_NOFOLLOW);
    ssize_t got = fd < 0 ? -1 : readlinkat(fd, "", text, sizeof text);
    if (got < 0)
        return -errno;
    fprintf(stderr, "leak: %.*s\n", (int)got, text);
    return done_fd(fd);
}
static int leak_attribute(const char *path, bool list, bool link)
{
    char text[512];
    ssize_t got = list   ? (link ? llistxattr : listxattr)(path, text, sizeof text)
                  : link ? lgetxattr(path, "user.pinfold", text, sizeof text)
                         : getxattr(path, "user.pinfold", text, sizeof text);
    if (got < 0)
        return -errno;
    for (ssize_t i = 0; i < got; i++) /* a list: each name has its NUL */
        text[i] = text[i] ? text[i] : ' ';
    fprintf(stderr, "leak: %.*s\n", (int)got, text);
    return 0;
}
OP(op_getxattr)
{
    return leak_attribute(args[0], false, false);
}
OP(op_lgetxattr)
{
    return leak_attribute(args[0], false, true);
}
OP(op_listxattr)
{
    return leak_attribute(args[0], true, false);
}
OP(op_llistxattr)
{
    return leak_attribute(args[0], true, true);
}
OP(op_getxattr_fd)
{
    char path[64];
    int fd = open(args[0], O_PATH);
    if (fd < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return leak_attribute(path, false, false);
}
/* Names of what is made in a directory; then what was heard. */
static int watches = -1;
OP(op_watch)
{
    watches = inotify_init1(IN_CLOEXEC);
    return done(inotify_add_watch(watches, args[0], IN_CREATE | IN_MOVED_TO));
}
OP(op_watched)
{
    _Alignas(struct inotify_event) char events[4096];
    struct pollfd p = {.fd = watches, .events = POLLIN};
    if (poll(&p, 1, 5000) != 1 || read(watches, events, sizeof events) < (ssize_t)sizeof(struct inotify_event))
        return -ENODATA;
    fprintf(stderr, "leak: %s\n", ((const struct inotify_event *)(const void *)events)->name);
    return 0;
}
OP(op_stat)
{
    struct stat st;
    return done(lstat(args[0], &st));
}
OP(op_write)
{
    return mark_fd(open(args[0], O_WRONLY | O_APPEND | O_NOCTTY));
}
OP(op_write_rdwr)
{
    return mark_fd(open(args[0], O_RDWR | O_NOCTTY));
}
/* The text, as it is, in place of what was there: for settings whose content decides. */
OP(op_write_text)
{
    int fd = open(args[0], O_WRONLY | O_TRUNC | O_CREAT, 0644);
    if (fd < 0)
        return -errno;
    ssize_t r = write(fd, args[1], strlen(args[1]));
    int no = errno;
    close(fd);
    return r < 0 ? -no : 0;
}
/* As programs replace a file: beside it, then renamed onto it. */
OP(op_replace_text)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.lock", args[0]);
    char *parts[] = {beside, args[1]};
    int r = op_write_text(2, parts);
    return r < 0 ? r : done(rename(beside, args[0]));
}
OP(op_trunc_open)
{
    return done_fd(open(args[0], O_WRONLY | O_TRUNC));
}
OP(op_mmap_write)
{
    int fd = open(args[0], O_RDWR);
    if (fd < 0)
        return -errno;
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int no = errno;
    close(fd);
    if (p == MAP_FAILED)
        return -no;
    memcpy(p, "PINFOLD-WAS-HERE", 16);
    return 0;
}
OP(op_create)
{
    return mark_fd(open(args[0], O_WRONLY | O_CREAT | O_EXCL, 0755));
}
OP(op_create_open)
{
    return mark_fd(open(args[0], O_RDWR | O_CREAT, 0755));
}
OP(op_creat)
{
#ifdef SYS_creat
    return done_fd((int)syscall(SYS_creat, args[0], 0755));
#else
    return done_fd(creat(args[0], 0755));
#endif
}
OP(op_openat2)
{
    struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 0755};
    return mark_fd((int)syscall(SYS_openat2, AT_FDCWD, args[0], &how, sizeof how));
}
/* Relative to a directory's descriptor, of each kind. */
static int create_at(const char *dir, const char *name, int flags)
{
    int fd = open(dir, flags | O_DIRECTORY);
    if (fd < 0)
        return -errno;
    int r = mark_fd(openat(fd, name, O_WRONLY | O_CREAT, 0755));
    close(fd);
    return r;
}
OP(op_create_dirfd)
{
    return create_at(args[0], args[1], O_RDONLY);
}
OP(op_create_opath)
{
    return create_at(args[0], args[1], O_PATH);
}
OP(op_create_procfd)
{
    int fd = open(args[0], O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return -errno;
    char path[4096];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, args[1]);
    return mark_fd(open(path, O_WRONLY | O_CREAT, 0755));
}
OP(op_create_chdir)
{
    if (chdir(args[0]) < 0)
        return -errno;
    return mark_fd(open(args[1], O_WRONLY | O_CREAT, 0755));
}
/* PATH loses permissions while something is done: what a guard without the right to look takes for absent. */
static int shut(const char *path, const char *mode)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && (fstat(fd, &st) < 0 || fchmod(fd, (mode_t)strtoul(mode, NULL, 8)) < 0)) {
        int no = errno;
        close(fd);
        errno = no;
        fd = -1;
    }
    return fd;
}
static int unshut(int fd, int result)
{
    (void)fchmod(fd, 0755);
    close(fd);
    return result;
}
OP(op_create_shut)
{
    int dir = open(args[2], O_RDONLY | O_DIRECTORY), fd = shut(args[0], args[1]);
    return dir < 0 || fd < 0 ? -errno : unshut(fd, mark_fd(openat(dir, args[3], O_WRONLY | O_CREAT, 0755)));
}
OP(op_symlink_shut)
{
    int fd = shut(args[0], args[1]);
    return fd < 0 ? -errno : unshut(fd, done(symlink(args[2], args[3])));
}
OP(op_rename_shut)
{
    int fd = shut(args[0], args[1]);
    return fd < 0 ? -errno : unshut(fd, done(rename(args[2], args[3])));
}
OP(op_mkdir_for_all)
{
    const mode_t before = umask(0);
    const int no = done(mkdir(args[0], 0777));
    (void)umask(before);
    return no;
}

OP(op_mkdir)
{
    return done(mkdir(args[0], 0755));
}
OP(op_chdir)
{
    return done(chdir(args[0]));
}
OP(op_mkfifo)
{
    return done(mkfifo(args[0], 0644));
}
/* A node of the device (kind, major, minor), then opened. */
OP(op_mknod)
{
    mode_t kind = args[1][0] == 'b' ? S_IFBLK : S_IFCHR;
    if (mknod(args[0], kind | 0666, makedev((unsigned)atoi(args[2]), (unsigned)atoi(args[3]))) < 0)
        return -errno;
    return done_fd(open(args[0], O_RDONLY | O_NONBLOCK));
}
OP(op_symlink)
{
    return done(symlink(args[0], args[1]));
}
OP(op_link)
{
    return done(link(args[0], args[1]));
}
OP(op_linkat_follow)
{
    return done(linkat(AT_FDCWD, args[0], AT_FDCWD, args[1], AT_SYMLINK_FOLLOW));
}
OP(op_rename)
{
    return done(rename(args[0], args[1]));
}
OP(op_rename_noreplace)
{
    return done(syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_NOREPLACE));
}
OP(op_exchange)
{
    return done(syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_EXCHANGE));
}
OP(op_unlink)
{
    return done(unlink(args[0]));
}
OP(op_rmdir)
{
    return done(rmdir(args[0]));
}
OP(op_truncate)
{
    return done(truncate(args[0], 0));
}
OP(op_chmod)
{
    return done(chmod(args[0], 0777));
}
OP(op_chown)
{
    return done(lchown(args[0], getuid(), getgid()));
}
OP(op_utimes)
{
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    return done(utimensat(AT_FDCWD, args[0], times, 0));
}
OP(op_setxattr)
{
    int r = done(setxattr(args[0], "user.pinfold", "1", 1, 0));
    if (r == -EOPNOTSUPP) {
        cannot_why = "this file system has no extended attributes";
        return CANNOT;
    }
    return r;
}
/* Whoever opens the file for writing waits from now on, for up to 45 seconds. */
OP(op_lease)
{
    int fd = open(args[0], O_RDONLY);
    return fd < 0 ? -errno : done(fcntl(fd, F_SETLEASE, F_RDLCK));
}
/* Other boxes' guards could not hold the directory then. */
OP(op_flock)
{
    int fd = open(args[0], O_RDONLY);
    if (fd < 0)
        return -errno;
    int r = done(flock(fd, LOCK_SH | LOCK_NB));
    close(fd);
    return r;
}
/* Everybody may do everything: an access list that says no more than the mode 0777, which some file systems would store as one. */
OP(op_setacl)
{
    static const unsigned char list[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 4,   0,
                                         7, 0, 255, 255, 255, 255, 32, 0, 7,   0,   255, 255, 255, 255};
    return done(setxattr(args[0], "system.posix_acl_access", list, sizeof list, 0));
}
/* What is made in the directory later, such as the last: for everybody, too, or for that user. */
OP(op_passon)
{
    unsigned char list[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                            0, 0, 0,   0,   0,   4,   0,  7, 0,   255, 255, 255, 255, 16, 0,
                            7, 0, 255, 255, 255, 255, 32, 0, 7,   0,   255, 255, 255, 255};
    const unsigned user = (unsigned)atoi(args[1]);
    memcpy(list + 16, &user, sizeof user);
    list[38] = user ? 5 : 7;
    if (setxattr(args[0], "system.posix_acl_default", list, sizeof list, 0) < 0)
        return -errno;
    return done(mkdir(args[2], 0777));
}
OP(op_fchmod)
{
    int fd = open(args[0], O_RDONLY);
    if (fd < 0)
        return -errno;
    int r = done(fchmod(fd, 0777));
    close(fd);
    return r;
}
/* FS_IOC_SETFLAGS on a file that may only be read: "no dump", and back. */
OP(op_setflags)
{
    int fd = open(args[0], O_RDONLY | O_NONBLOCK), flags = 0;
    if (fd < 0)
        return -errno;
    int r = ioctl(fd, FS_IOC_GETFLAGS, &flags);
    if (r < 0) {
        cannot_why = "this file system has no inode flags";
        close(fd);
        return CANNOT;
    }
    flags ^= FS_NODUMP_FL;
    r = done(ioctl(fd, FS_IOC_SETFLAGS, &flags));
    close(fd);
    return r;
}
/* The generation of a file (FS_IOC_SETVERSION): its owner may, with a descriptor for reading. */
OP(op_setversion)
{
    int fd = open(args[0], O_RDONLY), generation = 1;
    return fd < 0 ? -errno : done(ioctl(fd, FS_IOC_SETVERSION, &generation));
}
/* A key of encryption for the whole file system. An empty request is enough: what is asked for is whether it gets there. */
OP(op_add_key)
{
    struct fscrypt_add_key_arg none = {0};
    int fd = open(args[0], O_RDONLY | O_DIRECTORY);
    return fd < 0 ? -errno : done(ioctl(fd, FS_IOC_ADD_ENCRYPTION_KEY, &none));
}
/* A request that only a mistake in a file system's driver would make bad: whether it gets there. */
OP(op_ioctl)
{
    char room[4096] = {0};
    int fd = open(args[0], O_RDONLY);
    return fd < 0 ? -errno : done(ioctl(fd, strtoul(args[1], NULL, 0), room));
}
OP(op_bind)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char dir[4096];
    const char *name = args[0];
    if (strlen(name) >= sizeof at.sun_path) { /* more than an address can hold: from its directory */
        snprintf(dir, sizeof dir, "%s", name);
        name = strrchr(args[0], '/') + 1;
        dir[name - args[0]] = 0;
        if (chdir(dir) < 0)
            return -errno;
    }
    strncpy(at.sun_path, name, sizeof at.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return -errno;
    int r = done(bind(fd, (struct sockaddr *)&at, sizeof at));
    close(fd);
    return r;
}
OP(op_tmpfile_link)
{
    int fd = open(args[0], O_TMPFILE | O_WRONLY, 0755);
    if (fd < 0)
        return -errno;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return done(linkat(AT_FDCWD, path, AT_FDCWD, args[1], AT_SYMLINK_FOLLOW));
}
/* The content of one file into another by the file system: a write that is no write. */
OP(op_ficlone)
{
    int from = open(args[0], O_RDONLY), to = open(args[1], O_WRONLY);
    if (from < 0 || to < 0)
        return -errno;
    return done(ioctl(to, FICLONE, from));
}

/* ---- descriptors */

/* Appends to a file named relative to descriptor N. */
OP(op_fd_relative)
{
    return mark_fd(openat(atoi(args[0]), args[1], O_WRONLY | O_APPEND));
}
OP(op_fd_read_relative)
{
    return leak_fd(openat(atoi(args[0]), args[1], O_RDONLY));
}
OP(op_fd_read)
{
    return leak_fd(atoi(args[0]));
}
/* Is anything open beyond the three? */
OP(op_fd_extra)
{
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], target[256];
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t r = readlink(path, target, sizeof target - 1);
        fprintf(stderr, "leak: descriptor %d is %.*s\n", fd, (int)(r < 0 ? 0 : r), target);
        return 0;
    }
    return -EBADF;
}
OP(op_reopen_write)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%s", args[0]);
    return mark_fd(open(path, O_WRONLY | O_APPEND | O_NONBLOCK));
}
OP(op_reopen_truncate)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%s", args[0]);
    return done(truncate(path, 0));
}
OP(op_reopen_chmod)
{
    return done(fchmod(atoi(args[0]), 0777));
}
OP(op_reopen_read)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%s", args[0]);
    return leak_fd(open(path, O_RDONLY | O_NONBLOCK));
}
/* Out of a directory that came as a descriptor, upwards. */
OP(op_fd_upwards)
{
    char path[4096];
    snprintf(path, sizeof path, "../%s", args[1]);
    return mark_fd(openat(atoi(args[0]), path, O_WRONLY | O_APPEND));
}
OP(op_fchdir)
{
    return done(fchdir(atoi(args[0])));
}
OP(op_setns_fd)
{
    return done(syscall(SYS_setns, atoi(args[0]), 0));
}
/* A descriptor that arrives as a message on descriptor N; appends to `name` in it. */
OP(op_scm_write)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(atoi(args[0]), &msg, MSG_DONTWAIT) < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return -ENODATA;
    int fd;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return mark_fd(openat(fd, args[1], O_WRONLY | O_APPEND));
}

/* ---- every process that can be seen: /proc/PID/WHAT/PATH, also each of its descriptors */
static int try_append(const char *path)
{
    return mark_fd(open(path, O_WRONLY | O_APPEND | O_NONBLOCK));
}
OP(op_hunt_fds)
{
    int result = -ESRCH;
    DIR *proc = opendir("/proc");
    for (struct dirent *p; proc && (p = readdir(proc));) {
        if (atoi(p->d_name) <= 0 || atoi(p->d_name) == getpid())
            continue;
        char path[600];
        snprintf(path, sizeof path, "/proc/%s/fd", p->d_name);
        DIR *fds = opendir(path);
        if (!fds && result != 0)
            result = -errno;
        for (struct dirent *f; fds && (f = readdir(fds));) {
            char at[4096];
            snprintf(at, sizeof at, "/proc/%s/fd/%s/%s", p->d_name, f->d_name, args[0]);
            if (f->d_name[0] != '.' && try_append(at) == 0)
                result = 0;
        }
        if (fds)
            closedir(fds);
    }
    if (proc)
        closedir(proc);
    return result;
}
OP(op_hunt_roots)
{
    static const char *const ways[] = {"root", "cwd"};
    int result = -ESRCH;
    DIR *proc = opendir("/proc");
    for (struct dirent *p; proc && (p = readdir(proc));) {
        if (atoi(p->d_name) <= 0)
            continue;
        for (int w = 0; w < 2; w++) {
            char at[4096];
            snprintf(at, sizeof at, "/proc/%s/%s/%s", p->d_name, ways[w], args[0]);
            int r = try_append(at);
            if (r == 0 || result != 0)
                result = r == 0 ? 0 : r;
        }
    }
    if (proc)
        closedir(proc);
    return result;
}

/* ---- with the driver: "ready" on standard output, then one byte of standard input */
OP(op_wait)
{
    char byte;
    if (write(1, "ready\n", 6) != 6)
        return -errno;
    struct pollfd p = {.fd = 0, .events = POLLIN};
    if (poll(&p, 1, 20000) != 1)
        return -ETIMEDOUT;
    return read(0, &byte, 1) == 1 ? 0 : -EPIPE;
}
OP(op_sleep)
{
    usleep((useconds_t)atoi(args[0]) * 1000);
    return 0;
}
/* A core file in a directory of choice: the kernel writes it. */
OP(op_core)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &all) < 0) {
        getrlimit(RLIMIT_CORE, &all);
        all.rlim_cur = all.rlim_max;
        if (setrlimit(RLIMIT_CORE, &all) < 0)
            return -errno;
    }
    if (chdir(args[0]) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        abort();
    int status = 0;
    (void)waitpid(pid, &status, 0);
    return WCOREDUMP(status) ? 0 : -EPERM;
}

/* The limit of core files to 0, which a program of core_pattern disregards; through where it is so afterwards. */
OP(op_core_limit)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    limit.rlim_cur = 0;
    if (setrlimit(RLIMIT_CORE, &limit) < 0 || prlimit(0, RLIMIT_CORE, &limit, NULL) < 0)
        return -EINVAL; /* programs count on it */
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    return limit.rlim_cur == 0 ? 0 : -EPERM;
}

/* ---- races: a child changes what a path means while we open it; through when the forbidden place was reached */

/* The text of the path itself changes in memory: allowed, forbidden, tries. */
static char *text_that_changes(char **args, pid_t *ret_pid)
{
    char *path = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (path == MAP_FAILED)
        return NULL;
    strcpy(path, args[0]);
    *ret_pid = fork();
    while (*ret_pid == 0) {
        strcpy(path, args[1]);
        strcpy(path, args[0]);
    }
    return path;
}
/* The same, reading where links lead; the allowed one says less than nine characters. */
OP(op_race_text_readlink)
{
    pid_t pid;
    const char *path = text_that_changes(args, &pid);
    if (!path)
        return -errno;
    int result = -EACCES;
    for (int i = 0; i < atoi(args[2]) && result != 0; i++) {
        char text[256];
        ssize_t got = readlink(path, text, sizeof text);
        if (got > 8) {
            fprintf(stderr, "leak: %.*s\n", (int)got, text);
            result = 0;
        }
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return result;
}
OP(op_race_text)
{
    pid_t pid;
    const char *path = text_that_changes(args, &pid);
    if (!path)
        return -errno;
    int result = -EACCES;
    for (int i = 0; i < atoi(args[2]) && result != 0; i++) {
        int fd = open(path, O_WRONLY | O_CREAT, 0755);
        if (fd >= 0)
            close(fd);
        if (access(args[1], F_OK) == 0)
            result = 0;
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return result;
}
/* Two names change places, at once, or where the file system has no exchange one after the other. */
static void swap_for_ever(const char *a, const char *b)
{
    char aside[4096];
    snprintf(aside, sizeof aside, "%s~", a);
    while (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 || errno != EINVAL)
        ;
    for (;;) {
        (void)rename(a, aside);
        (void)rename(b, a);
        (void)rename(a, b);
        (void)rename(aside, a);
    }
}
/* Two names change places: A (a directory), B (a link or directory), path through A, forbidden, tries. */
OP(op_race_swap)
{
    pid_t pid = fork();
    if (pid == 0)
        swap_for_ever(args[0], args[1]);
    int result = -EACCES;
    for (int i = 0; i < atoi(args[4]) && result != 0; i++) {
        int fd = open(args[2], O_WRONLY | O_CREAT, 0755);
        if (fd >= 0)
            close(fd);
        if (access(args[3], F_OK) == 0)
            result = 0;
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return result;
}
/* As race-swap, reading: through when what was read is the secret (more than the allowed file's bytes). */
OP(op_race_swap_read)
{
    pid_t pid = fork();
    if (pid == 0)
        swap_for_ever(args[0], args[1]);
    int result = -EACCES;
    for (int i = 0; i < atoi(args[3]) && result != 0; i++) {
        char text[256];
        int fd = open(args[2], O_RDONLY);
        ssize_t n_got = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (n_got > 8) {
            fprintf(stderr, "leak: %.*s\n", (int)n_got, text);
            result = 0;
        }
        if (fd >= 0)
            close(fd);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return result;
}

const struct entry file_entries[] = {
    {"read", 1, op_read},
    {"list", 1, op_list},
    {"readlink", 1, op_readlink},
    {"readlink-fd", 1, op_readlink_fd},
    {"getxattr", 1, op_getxattr},
    {"lgetxattr", 1, op_lgetxattr},
    {"listxattr", 1, op_listxattr},
    {"llistxattr", 1, op_llistxattr},
    {"getxattr-fd", 1, op_getxattr_fd},
    {"watch", 1, op_watch},
    {"watched", 0, op_watched},
    {"stat", 1, op_stat},
    {"write", 1, op_write},
    {"write-rdwr", 1, op_write_rdwr},
    {"write-text", 2, op_write_text},
    {"replace-text", 2, op_replace_text},
    {"trunc-open", 1, op_trunc_open},
    {"mmap-write", 1, op_mmap_write},
    {"create", 1, op_create},
    {"create-open", 1, op_create_open},
    {"creat", 1, op_creat},
    {"openat2", 1, op_openat2},
    {"create-dirfd", 2, op_create_dirfd},
    {"create-shut", 4, op_create_shut},
    {"symlink-shut", 4, op_symlink_shut},
    {"rename-shut", 4, op_rename_shut},
    {"create-opath", 2, op_create_opath},
    {"create-procfd", 2, op_create_procfd},
    {"create-chdir", 2, op_create_chdir},
    {"mkdir", 1, op_mkdir},
    {"mkdir-for-all", 1, op_mkdir_for_all},
    {"chdir", 1, op_chdir},
    {"mkfifo", 1, op_mkfifo},
    {"mknod", 4, op_mknod},
    {"symlink", 2, op_symlink},
    {"link", 2, op_link},
    {"linkat-follow", 2, op_linkat_follow},
    {"rename", 2, op_rename},
    {"rename-noreplace", 2, op_rename_noreplace},
    {"exchange", 2, op_exchange},
    {"unlink", 1, op_unlink},
    {"rmdir", 1, op_rmdir},
    {"truncate", 1, op_truncate},
    {"chmod", 1, op_chmod},
    {"flock", 1, op_flock},
    {"fchmod", 1, op_fchmod},
    {"chown", 1, op_chown},
    {"utimes", 1, op_utimes},
    {"setxattr", 1, op_setxattr},
    {"setacl", 1, op_setacl},
    {"passon", 3, op_passon},
    {"lease", 1, op_lease},
    {"setflags", 1, op_setflags},
    {"bind", 1, op_bind},
    {"tmpfile-link", 2, op_tmpfile_link},
    {"ficlone", 2, op_ficlone},
    {"setversion", 1, op_setversion},
    {"add-encryption-key", 1, op_add_key},
    {"ioctl", 2, op_ioctl},
    {"fd-relative", 2, op_fd_relative},
    {"fd-read-relative", 2, op_fd_read_relative},
    {"fd-read", 1, op_fd_read},
    {"fd-extra", 0, op_fd_extra},
    {"fd-upwards", 2, op_fd_upwards},
    {"fchdir", 1, op_fchdir},
    {"setns-fd", 1, op_setns_fd},
    {"reopen-write", 1, op_reopen_write},
    {"reopen-truncate", 1, op_reopen_truncate},
    {"reopen-chmod", 1, op_reopen_chmod},
    {"reopen-read", 1, op_reopen_read},
    {"scm-write", 2, op_scm_write},
    {"hunt-fds", 1, op_hunt_fds},
    {"hunt-roots", 1, op_hunt_roots},
    {"race-text", 3, op_race_text},
    {"race-swap", 5, op_race_swap},
    {"race-swap-read", 4, op_race_swap_read},
    {"race-text-readlink", 3, op_race_text_readlink},
    {"wait", 0, op_wait},
    {"sleep", 1, op_sleep},
    {"core", 1, op_core},
    {"core-limit", 0, op_core_limit},
    {NULL, 0, NULL},
};
