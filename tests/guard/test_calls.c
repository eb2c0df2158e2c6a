/*
 * The guard performs what the kernel would have done: every line below runs once natively and once guarded, in equal
 * trees, and must give the same result, the same errno, and in the end the same tree.
 */
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static bool has_fchmodat2; /* fchmodat2(2) is of Linux 6.6; the guard answers it everywhere */

static int out;
static int line;

static void say(const char *what, long r)
{
    dprintf(out, "%3d %s = %ld%s%s\n", ++line, what, r < 0 ? -1 : r, r < 0 ? " " : "",
            r < 0 ? strerrorname_np(errno) : "");
}
#define L(call) say(#call, (long)(errno = 0, (call)))
/* A descriptor's number is part of the contract: the lowest free one. */
#define O(call)                                                                                                        \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        int fd_ = (call);                                                                                              \
        say(#call, fd_);                                                                                               \
        if (fd_ >= 0) {                                                                                                \
            struct stat st_;                                                                                           \
            fstat(fd_, &st_);                                                                                          \
            dprintf(out, "    flags %o fd %d mode %o size %ld links %ld\n", (unsigned)fcntl(fd_, F_GETFL),             \
                    fcntl(fd_, F_GETFD), st_.st_mode, (long)st_.st_size, (long)st_.st_nlink);                          \
            close(fd_);                                                                                                \
        }                                                                                                              \
    } while (0)

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        dprintf(out, "cannot put %s\n", path);
    close(fd);
}

static void opens(void)
{
    O(open("new", O_WRONLY | O_CREAT | O_EXCL, 0666));
    O(open("new", O_WRONLY | O_CREAT | O_EXCL, 0666));
    O(open("new", O_RDWR | O_CREAT, 0600));
    O(open("new2", O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | O_NONBLOCK, 04751));
    O(open("none", O_WRONLY));
    O(open("none/none", O_WRONLY | O_CREAT, 0666));
    O(open("new/none", O_WRONLY | O_CREAT, 0666));
    O(open("dir", O_WRONLY));
    O(open("dir", O_RDWR | O_CREAT, 0666));
    O(open("dir/", O_WRONLY | O_CREAT, 0666));
    O(open("new/", O_WRONLY));
    O(open("new/", O_WRONLY | O_CREAT, 0666));
    O(open("none/", O_WRONLY | O_CREAT, 0666));
    O(open(".", O_WRONLY));
    O(open("..", O_WRONLY | O_CREAT, 0666));
    O(open("/", O_WRONLY | O_CREAT, 0666));
    O(open("//", O_RDWR));
    O(open("", O_WRONLY | O_CREAT, 0666));
    O(open((char *)8, O_WRONLY | O_CREAT, 0666)); // NOLINT
    O(open("link-file", O_WRONLY));
    O(open("link-file", O_WRONLY | O_NOFOLLOW));
    O(open("link-file", O_WRONLY | O_CREAT | O_NOFOLLOW, 0666));
    O(open("link-file", O_WRONLY | O_CREAT | O_EXCL, 0666));
    O(open("link-dir", O_WRONLY | O_NOFOLLOW | O_DIRECTORY));
    O(open("link-dir/", O_RDWR));
    O(open("link-dangling", O_WRONLY));
    O(open("link-dangling", O_WRONLY | O_CREAT | O_EXCL, 0666));
    O(open("link-dangling", O_WRONLY | O_CREAT, 0604));
    O(open("link-dangling2", O_WRONLY | O_CREAT | O_NOFOLLOW, 0604));
    O(open("link-loop", O_WRONLY | O_CREAT, 0666));
    O(open("link-chain0", O_WRONLY));
    O(open("link-chain39", O_WRONLY));
    O(open("link-dir/in-dir", O_WRONLY | O_CREAT, 0666));
    O(open("link-abs/in-dir", O_RDWR));
    O(open("link-slash", O_WRONLY));
    O(open("link-slash-none", O_WRONLY | O_CREAT, 0666));
    O(open("dir/../dir/./in-dir", O_RDWR));
    O(open("dir//in-dir", O_WRONLY | O_TRUNC));
    O(open("full", O_WRONLY | O_TRUNC));
    O(open("full2", O_RDONLY | O_TRUNC));
    O(open("full3", O_RDONLY | O_CREAT | O_TRUNC, 0666));
    O(open("read-only", O_WRONLY));
    O(open("read-only", O_RDONLY | O_CREAT, 0666));
    O(open("closed/x", O_WRONLY | O_CREAT, 0666));
    O(open("readable/x", O_WRONLY | O_CREAT, 0666));
    O(open("readable/is", O_WRONLY | O_CREAT, 0666));
    O(open("/usr/none", O_WRONLY | O_CREAT, 0666));
    O(open("/etc/passwd", O_WRONLY));
    O(open("/etc/passwd", O_RDONLY | O_CREAT, 0666));
    O(open("fifo", O_RDWR));
    O(open("fifo", O_WRONLY | O_NONBLOCK));
    O(open("socket", O_RDWR));
    O(open("/dev/null", O_WRONLY));
    O(open("/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0666));
    O(open("/dev/tty", O_RDWR));
    O(open("new", O_WRONLY | O_DIRECTORY));
    O(open("dir", O_RDWR | O_DIRECTORY));
    O(open("new", 3));
    O(open("new", O_WRONLY | O_NOATIME));
    O(open("new", O_WRONLY | O_DIRECT));
    O(open("new", O_WRONLY | O_SYNC | O_NOCTTY));
    O(openat(-1, "new", O_WRONLY));
    O(openat(-1, "/dev/null", O_WRONLY));
    O(openat(99, "new", O_WRONLY));
    O(openat(out, "new", O_WRONLY));
    int dir = open("dir", O_RDONLY | O_DIRECTORY), path = open("dir", O_PATH);
    O(openat(dir, "by-fd", O_WRONLY | O_CREAT, 0666));
    O(openat(path, "by-path-fd", O_WRONLY | O_CREAT, 0666));
    O(openat(path, "../new", O_WRONLY));
    close(dir);
    close(path);
    O((int)syscall(SYS_openat, AT_FDCWD, "bits", O_WRONLY | O_CREAT | 0x40000000, 0666));
#ifdef SYS_creat
    O((int)syscall(SYS_creat, "created", 0640));
#endif
    O(open("/proc/self/comm", O_WRONLY));
    O(open("/proc/thread-self/comm", O_RDWR));
    O(open("/proc/self/task/none", O_WRONLY));
    O(open("/proc/1/mem", O_RDWR));
    O(open("/proc/1/comm", O_WRONLY));
    O(open("/proc/self/mem", O_RDWR));
    O(open("/proc/self/oom_score_adj", O_WRONLY));
    O(open("/proc/sys/kernel/hostname", O_WRONLY | O_CREAT, 0666));
    O(open("/proc/self/cwd/by-proc", O_WRONLY | O_CREAT, 0666));
    O(open("/proc/self/root/dev/null", O_WRONLY));
    O(open("/proc/1/root/dev/null", O_WRONLY));
    O(open("/proc/1/cwd/x", O_WRONLY | O_CREAT, 0666));
    O(open("/proc/1/fd/0", O_WRONLY));
    char name[64];
    int held = open("new", O_RDONLY);
    snprintf(name, sizeof name, "/proc/self/fd/%d", held);
    O(open(name, O_WRONLY));
    O(open(name, O_WRONLY | O_NOFOLLOW));
    O(open(name, O_WRONLY | O_CREAT, 0666));
    O(open(name, O_WRONLY | O_CREAT | O_EXCL, 0666));
    snprintf(name, sizeof name, "/dev/fd/%d", held);
    O(open(name, O_WRONLY | O_TRUNC));
    close(held);
    int pair[2];
    if (pipe(pair) == 0) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", pair[1]);
        O(open(name, O_WRONLY));
        snprintf(name, sizeof name, "/proc/self/fd/%d/x", pair[1]);
        O(open(name, O_WRONLY | O_CREAT, 0666));
        close(pair[0]);
        close(pair[1]);
    }
    int memory = memfd_create("m", 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
    O(open(name, O_RDWR));
    close(memory);
    char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(edge + 4096, 4096);
    memcpy(edge + 4096 - 5, "edge", 5);
    O(open(edge + 4096 - 5, O_WRONLY | O_CREAT, 0666));
    memset(edge, 'x', 4096);
    O(open(edge, O_WRONLY | O_CREAT, 0666));
    char longer[5000];
    memset(longer, 'x', sizeof longer);
    longer[4999] = 0;
    O(open(longer, O_WRONLY | O_CREAT, 0666));
    longer[256] = 0;
    O(open(longer, O_WRONLY | O_CREAT, 0666));
    longer[255] = 0;
    O(open(longer, O_WRONLY | O_CREAT, 0666));
    memset(longer, '/', 4090);
    strcpy(longer + 4090, "dev");
    O(open(longer, O_WRONLY));
    O(open("\xff\xfe\n \"'\\", O_WRONLY | O_CREAT, 0666));
    umask(077);
    O(open("masked", O_WRONLY | O_CREAT, 0666));
    umask(0);
    O(open("unmasked", O_WRONLY | O_CREAT, 0777));
    umask(022);
    if (fork() == 0) {
        umask(027);
        O(open("masked-child", O_WRONLY | O_CREAT, 0666));
        _exit(0);
    }
    wait(NULL);
    O(open("masked-parent", O_WRONLY | O_CREAT, 0666));
    /* Two processes that have one mask (CLONE_FS), as of ones that were made by hand. */
    if (syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0) == 0) {
        umask(077);
        O(open("masked-by-one", O_WRONLY | O_CREAT, 0666));
        _exit(0);
    }
    wait(NULL);
    O(open("masked-by-another", O_WRONLY | O_CREAT, 0666));
    umask(022);
}

static void names(void)
{
    L(mkdir("d", 0777));
    L(mkdir("d", 0777));
    L(mkdir("d/", 0777));
    L(mkdir("e/", 01777));
    L(mkdir("none/d", 0777));
    L(mkdir(".", 0777));
    L(mkdir("..", 0777));
    L(mkdir("d/.", 0777));
    L(mkdir("d/..", 0777));
    L(mkdir("/", 0777));
    L(mkdir("", 0777));
    L(mkdir("link-dangling3", 0777));
    L(mkdir("link-dir/sub", 0777));
    L(mkdir("closed/d", 0777));
    L(mkdir("/usr/none", 0777));
    L(mkdir("/usr", 0777));
    L(mkdirat(-1, "x", 0777));
    L(mkfifo("fifo2", 0644));
    L(mkfifo("fifo2", 0644));
    L(mkfifo("fifo3/", 0644));
    L(mknod("reg", S_IFREG | 0600, 0));
    L(mknod("reg0", 0600, 0));
    L(mknod("sock", S_IFSOCK | 0755, 0));
    L(mknod("null", S_IFCHR | 0666, 0x103));
    L(mknod("dirnode", S_IFDIR | 0777, 0));
    L(mknod("odd", 0170000 | 0777, 0));
    L(symlink("anything", "s"));
    L(symlink("anything", "s"));
    L(symlink("", "s2"));
    L(symlink("x", "s3/"));
    L(symlink("x", "none/s"));
    L(symlink("x", "."));
    L(symlink((char *)8, "s4")); // NOLINT
    L(link("new", "hard"));
    L(link("new", "hard"));
    L(link("none", "hard2"));
    L(link("new", "none/hard"));
    L(link("new/", "hard3"));
    L(link("dir", "hard4"));
    L(link("link-file", "hard5"));
    L(linkat(AT_FDCWD, "link-file", AT_FDCWD, "hard6", AT_SYMLINK_FOLLOW));
    L(linkat(AT_FDCWD, "link-dangling3", AT_FDCWD, "hard7", AT_SYMLINK_FOLLOW));
    L(linkat(AT_FDCWD, "new", AT_FDCWD, "hard8", 0x4000));
    L(link("new", "hard9/"));
    L(link("/usr/bin/env", "hard10"));
    L(link("new", "/tmp/hard11"));
    L(link("new", "."));
    char name[64];
    int temp = open(".", O_TMPFILE | O_WRONLY, 0640);
    snprintf(name, sizeof name, "/proc/self/fd/%d", temp);
    L(linkat(AT_FDCWD, name, AT_FDCWD, "from-tmpfile", AT_SYMLINK_FOLLOW));
    L(linkat(AT_FDCWD, name, AT_FDCWD, "from-tmpfile2", 0));
    close(temp);
    L(rename("reg", "reg2"));
    L(rename("none", "reg3"));
    L(rename("reg2", "none/reg"));
    L(rename("reg2", "d"));
    L(rename("d", "reg2"));
    L(rename("d", "dir"));
    L(rename("dir", "d"));
    L(rename("d/in-dir", "d/./in-dir2"));
    L(rename("d", "d/x"));
    L(rename("d", "."));
    L(rename("..", "x"));
    L(rename("reg2/", "reg4"));
    L(rename("reg2", "reg4/"));
    L(rename("link-dir2/", "reg4"));
    L(rename("link-dir2", "link-dir3"));
    L(rename("reg2", "/tmp/reg"));
    L(rename("/usr/bin/env", "env"));
    L(rename("hard", "new"));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "reg2", AT_FDCWD, "s", RENAME_NOREPLACE));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "reg2", AT_FDCWD, "s", RENAME_EXCHANGE));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "reg2", AT_FDCWD, "none", RENAME_EXCHANGE));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "reg2", AT_FDCWD, "s", RENAME_EXCHANGE | RENAME_NOREPLACE));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "reg2", AT_FDCWD, "s", 64));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "s", RENAME_EXCHANGE));
    L(unlink("fifo2"));
    L(unlink("fifo2"));
    L(unlink("e"));
    L(unlink("e/"));
    L(unlink("new/"));
    L(unlink("link-dir3/"));
    L(unlink("."));
    L(unlink("/"));
    L(unlink("/etc/passwd"));
    L(unlink("closed/is"));
    L(rmdir("e"));
    L(rmdir("s"));
    L(rmdir("new"));
    L(rmdir("."));
    L(rmdir(".."));
    L(rmdir("s/."));
    L(rmdir("link-dir3"));
    L(rmdir("link-dir3/"));
    L(unlinkat(AT_FDCWD, "new2", 1));
    L(unlinkat(AT_FDCWD, "none", AT_REMOVEDIR));
}

/*
 * One text again and again, which means another directory each time: the guard keeps open what the last one led to (last_dir_is() in
 * guard/places/resolve.c). The tree shows in which of them each name is.
 */
static void make_three(int dir, const char *text, const char *name)
{
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s%d", text, name, i);
        O(openat(dir, path, O_WRONLY | O_CREAT | O_EXCL, 0666));
    }
    L(unlinkat(dir, path, 0));
}
static void *stand_in_two(void *unused)
{
    (void)unused;
    (void)!chdir("../two");
    return NULL;
}
static void same_text_stand(void)
{
    pthread_t other;
    L(chdir("t/one"));
    make_three(AT_FDCWD, "", "standing");
    if (pthread_create(&other, NULL, stand_in_two, NULL) == 0) /* threads have one working directory */
        pthread_join(other, NULL);
    make_three(AT_FDCWD, "", "another-thread-went");
    if (fork() == 0) {
        L(chdir("../one"));
        make_three(AT_FDCWD, "", "child");
        _exit(0);
    }
    wait(NULL);
    make_three(AT_FDCWD, "", "parent");
    L(rename("../two", "../moved"));
    make_three(AT_FDCWD, "", "moved-under-it");
    L(chdir("../.."));
}
static void same_text_descriptor(void)
{
    int one = open("t/one", O_PATH), two = open("t/moved", O_RDONLY), file = open("full", O_RDONLY);
    make_three(one, "", "descriptor");
    make_three(two, "", "descriptor");
    L(dup2(two, one) == one);
    make_three(one, "", "replaced");
    L(dup2(file, one) == one);
    O(openat(one, "file", O_WRONLY | O_CREAT, 0666));
    L(mkdirat(one, "file", 0777));
    close(one);
    O(openat(one, "closed", O_WRONLY | O_CREAT, 0666));
    L(mkdirat(one, "closed", 0777));
    close(two);
    close(file);
}
static void same_text(void)
{
    const int top = open(".", O_PATH | O_DIRECTORY);
    L(mkdir("t", 0777));
    L(mkdir("t/one", 0777));
    L(mkdir("t/two", 0777));
    make_three(AT_FDCWD, "t/one/", "first");
    L(rename("t/one", "t/gone"));
    O(open("t/one/nowhere", O_WRONLY | O_CREAT, 0666));
    L(rename("t/two", "t/one"));
    make_three(AT_FDCWD, "t/one/", "second");
    L(rename("t/one", "t/two"));
    L(symlink("gone", "t/one"));
    make_three(AT_FDCWD, "t/one/", "by-link");
    L(unlink("t/one"));
    L(mkdir("t/one", 0777));
    make_three(AT_FDCWD, "t/one/", "third");
    L(unlink("t/one/third0"));
    L(unlink("t/one/third1"));
    L(rmdir("t/one"));
    L(mkdir("t/one", 0777)); /* with the number that was the other's, if that is free */
    make_three(AT_FDCWD, "t/one/", "new");
    L(chmod("t", 0));
    O(open("t/one/shut", O_WRONLY | O_CREAT, 0666));
    L(chmod("t", 0755));
    L(chmod("t/one", 0));
    O(open("t/one/shut", O_WRONLY | O_CREAT, 0666));
    L(chmod("t/one", 0755));
    L((int)syscall(SYS_renameat2, AT_FDCWD, "t/one", AT_FDCWD, "t/gone", RENAME_EXCHANGE));
    make_three(AT_FDCWD, "t/one/", "exchanged");
    L(mkdir("t/rid", 0777));
    L(chdir("t/rid"));
    make_three(AT_FDCWD, "./", "dot");
    L(unlink("dot0"));
    L(unlink("dot1"));
    L(rmdir("../rid"));
    O(open("removed", O_WRONLY | O_CREAT, 0666));
    O(open("./removed", O_WRONLY | O_CREAT, 0666));
    L(fchdir(top));
    close(top);
    same_text_stand();
    same_text_descriptor();
}

/* What the guard found at the first open is found for the next: each has a description, flags and refusals of its own. */
static void null_device(void)
{
    const int kept = open("/dev/null", O_WRONLY);
    L(fcntl(kept, F_SETFL, O_APPEND | O_NONBLOCK));
    for (int i = 0; i < 2; i++) {
        O(open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666));
        O(open("/dev/null", O_RDWR | O_APPEND | O_CLOEXEC));
        O(open("/dev/null", O_RDONLY | O_TRUNC));
        O(open("/dev/null", O_WRONLY | O_CREAT | O_EXCL, 0666));
        O(open("/dev/null", O_WRONLY | O_DIRECTORY));
        O(open("/dev/null/", O_WRONLY));
        O(open("//dev/./null", O_WRONLY));
        O(creat("/dev/null", 0600));
        O(open("/dev/zero", O_WRONLY | O_CREAT | O_TRUNC, 0666));
        O(open("/dev/full", O_WRONLY));
    }
    L(fcntl(kept, F_GETFL));
    L(write(kept, "text", 4));
    close(kept);
}

static void attributes(void)
{
    struct timespec t[2] = {{1000, 1}, {2000, 2}}, bad[2] = {{1000, 1}, {2000, 2000000000}},
                    omit[2] = {{0, UTIME_OMIT}, {3000, 0}};
    struct timeval v[2] = {{1, 1}, {2, 2}}, badv[2] = {{1, 1}, {2, 2000000}};
    struct utimbuf u = {5, 6};
    static char big[70000];
    int fd = open("new", O_RDONLY), path = open("new", O_PATH);
    L(truncate("new", 100));
    L(truncate("none", 100));
    L(truncate("dir2", 1));
    L(truncate("new", -1));
    L(truncate("link-file", 7));
    L(truncate("read-only", 7));
    L(chmod("new", 0751));
    L(chmod("none", 0751));
    L(chmod("link-file", 0640));
    L(chmod("/etc/passwd", 0640));
    L(chmod("link-dangling3", 0640));
    L(fchmod(fd, 0604));
    L(fchmod(path, 0604));
    L(fchmod(99, 0604));
    L(fchmodat(AT_FDCWD, "new", 0644, 0));
    if (has_fchmodat2) {
        L((int)syscall(452, AT_FDCWD, "new", 0654, 0));
        L((int)syscall(452, AT_FDCWD, "link-file", 0654, AT_SYMLINK_NOFOLLOW));
        L((int)syscall(452, path, "", 0645, AT_EMPTY_PATH));
        L((int)syscall(452, AT_FDCWD, "", 0645, 0));
    }
    L(chown("new", getuid(), getgid()));
    L(chown("new", (uid_t)-1, (gid_t)-1));
    L(chown("new", 4242, (gid_t)-1));
    L(lchown("link-dangling3", (uid_t)-1, getgid()));
    L(chown("link-dangling3", (uid_t)-1, getgid()));
    L(fchown(fd, getuid(), (gid_t)-1));
    L(fchown(path, getuid(), (gid_t)-1));
    L(fchownat(path, "", getuid(), (gid_t)-1, AT_EMPTY_PATH));
    L(fchownat(AT_FDCWD, "new", getuid(), (gid_t)-1, 4));
    L(utimensat(AT_FDCWD, "new", t, 0));
    L(utimensat(AT_FDCWD, "new", NULL, 0));
    L(utimensat(AT_FDCWD, "new", omit, 0));
    L(utimensat(AT_FDCWD, "new", bad, 0));
    L(utimensat(AT_FDCWD, "none", t, 0));
    L(utimensat(AT_FDCWD, "link-dangling3", t, AT_SYMLINK_NOFOLLOW));
    L(utimensat(AT_FDCWD, "link-dangling3", t, 0));
    L((int)syscall(SYS_utimensat, fd, NULL, t, 0));
    L((int)syscall(SYS_utimensat, path, NULL, t, 0));
    L((int)syscall(SYS_utimensat, AT_FDCWD, NULL, t, 0));
    L((int)syscall(SYS_utimensat, fd, NULL, t, AT_SYMLINK_NOFOLLOW));
    L((int)syscall(SYS_utimensat, fd, "", t, AT_EMPTY_PATH));
    L((int)syscall(SYS_utimensat, AT_FDCWD, "new", (void *)8, 0)); // NOLINT
    L((int)syscall(SYS_utimensat, AT_FDCWD, "new", t, 77));
#ifdef SYS_utimes
    L((int)syscall(SYS_utimes, "new", v));
    L((int)syscall(SYS_utimes, "new", badv));
    L((int)syscall(SYS_utime, "new", &u));
    L((int)syscall(SYS_utime, "none", &u));
    L((int)syscall(SYS_futimesat, AT_FDCWD, "new", v));
    L((int)syscall(SYS_futimesat, fd, NULL, v));
#endif
    (void)v;
    (void)badv;
    (void)u;
    L(setxattr("new", "user.a", "value", 5, 0));
    L(setxattr("new", "user.a", "value", 5, XATTR_CREATE));
    L(setxattr("new", "user.b", "value", 5, XATTR_REPLACE));
    L(setxattr("new", "", "value", 5, 0));
    L(setxattr("new", "odd.a", "value", 5, 0));
    L(setxattr("new", "user.a", big, sizeof big, 0));
    L(setxattr("none", "user.a", "value", 5, 0));
    L(lsetxattr("link-file", "user.a", "value", 5, 0));
    L(setxattr("link-file", "user.c", "value", 5, 0));
    L(fsetxattr(fd, "user.d", "v", 1, 0));
    L(fsetxattr(path, "user.d", "v", 1, 0));
    L(removexattr("new", "user.a"));
    L(removexattr("new", "user.none"));
    L(lremovexattr("link-file", "user.none"));
    L(fremovexattr(fd, "user.d"));
    L(fremovexattr(99, "user.d"));
    close(fd);
    close(path);
    struct rlimit limit = {50, 50}, old;
    getrlimit(RLIMIT_FSIZE, &old);
    limit.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    L(truncate("new", 1000));
    L(truncate("new", 40));
    setrlimit(RLIMIT_FSIZE, &old);
    struct rlimit files = {8, 8};
    getrlimit(RLIMIT_NOFILE, &old);
    files.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int many[16], n = 0;
    while (n < 16 && (many[n] = open("/", O_PATH)) >= 0)
        n++;
    O(open("too-many", O_WRONLY | O_CREAT | O_EXCL, 0666));
    L(access("too-many", F_OK));
    while (n)
        close(many[--n]);
    setrlimit(RLIMIT_NOFILE, &old);
}

static struct sockaddr_un un(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, path, sizeof a.sun_path - 1);
    return a;
}

static void sockets(void)
{
    struct sockaddr_un a = un("sock-here"), b = un("none/sock"), c = un("new"), d = un("sock-here/x"), back;
    struct sockaddr_un abstract = {.sun_family = AF_UNIX, .sun_path = "\0abstract"};
    socklen_t size = sizeof a, n = sizeof back;
    int s = socket(AF_UNIX, SOCK_STREAM, 0), t = socket(AF_UNIX, SOCK_STREAM, 0), u = socket(AF_UNIX, SOCK_STREAM, 0);
    L(bind(s, (void *)&b, size));
    L(bind(s, (void *)&c, size));
    L(bind(s, (void *)&a, size));
    L(bind(s, (void *)&a, size));
    L(bind(t, (void *)&a, size));
    memset(&back, 0, sizeof back);
    L(getsockname(s, (void *)&back, &n));
    dprintf(out, "    %s %u\n", back.sun_path, (unsigned)n);
    L(connect(t, (void *)&a, size));
    L(listen(s, 5));
    L(connect(t, (void *)&a, size));
    L(connect(t, (void *)&a, size));
    L(connect(u, (void *)&b, size));
    L(connect(u, (void *)&c, size));
    L(connect(u, (void *)&d, size));
    L(connect(u, (void *)&a, 1));
    L(connect(u, (void *)&a, 200));
    L(connect(u, (void *)8, size)); // NOLINT
    L(connect(99, (void *)&a, size));
    L(connect(0, (void *)&a, size));
    L(bind(u, (void *)&abstract, offsetof(struct sockaddr_un, sun_path) + 9));
    L(listen(u, 5));
    int v = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    L(connect(v, (void *)&abstract, offsetof(struct sockaddr_un, sun_path) + 9));
    close(v);
    int i = socket(AF_INET, SOCK_STREAM, 0);
    struct {
        unsigned short family, port;
        unsigned char ip[4], zero[8];
    } inet = {AF_INET, 0x901f, {127, 0, 0, 1}, {0}};
    L(connect(i, (void *)&inet, 16));
    L(bind(i, (void *)&inet, 3));
    close(i);
    int g = socket(AF_INET, SOCK_DGRAM, 0);
    L(connect(g, (void *)&inet, 16));
    close(g);
    close(s);
    close(t);
    close(u);
}

static int tree_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    char target[64] = "";
    (void)f;
    if (type == FTW_SL)
        (void)!readlink(path, target, sizeof target - 1);
    dprintf(out, "tree %s %o %ld %ld %s\n", path, st->st_mode, (long)st->st_nlink,
            S_ISDIR(st->st_mode) ? 0 : (long)st->st_size, target);
    return 0;
}

/* Length or error of a link, and what of the text is the same in every box. */
static void link_at(const char *what, int dir, const char *path, long room, bool told)
{
    char text[4096] = "";
    errno = 0;
    long n = syscall(SYS_readlinkat, dir, path, text, room);
    say(what, n);
    if (n > 0 && told)
        dprintf(out, "    %.*s\n", (int)n, text);
}

static void links(void)
{
    char path[64], long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    link_at("link", AT_FDCWD, "link-dir", 4096, true);
    link_at("link cut", AT_FDCWD, "link-dir", 2, true);
    link_at("link room 0", AT_FDCWD, "link-dir", 0, true);
    link_at("link room -1", AT_FDCWD, "link-dir", -1, true);
    link_at("link slash", AT_FDCWD, "link-dir/", 4096, true);
    link_at("link dangling", AT_FDCWD, "link-dangling", 4096, true);
    link_at("link loop", AT_FDCWD, "link-loop", 4096, true);
    link_at("link through loop", AT_FDCWD, "link-loop/x", 4096, true);
    link_at("no link", AT_FDCWD, "full", 4096, true);
    link_at("nothing", AT_FDCWD, "none", 4096, true);
    link_at("below a file", AT_FDCWD, "full/x", 4096, true);
    link_at("long name", AT_FDCWD, long_name, 4096, true);
    link_at("empty", AT_FDCWD, "", 4096, true);
    link_at("no descriptor", 99, "x", 4096, true);
    link_at("no descriptor, empty", 99, "", 4096, true);
    L(syscall(SYS_readlinkat, AT_FDCWD, NULL, path, sizeof path));
    L(syscall(SYS_readlinkat, AT_FDCWD, "link-dir", NULL, 10));
    L(syscall(SYS_readlinkat, AT_FDCWD, "link-dir", 8, 10));
    int fd = open("link-dir", O_PATH | O_NOFOLLOW);
    link_at("by descriptor", fd, "", 4096, true);
    close(fd);
    fd = open("full", O_RDONLY);
    link_at("by descriptor of a file", fd, "", 4096, true);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    link_at("own descriptor cut", AT_FDCWD, path, 4, true);
    close(fd);
    link_at("descriptor that is closed", AT_FDCWD, path, 4096, true);
    link_at("exe cut", AT_FDCWD, "/proc/self/exe", 1, true);
    link_at("root", AT_FDCWD, "/proc/thread-self/root", 4096, true);
    link_at("mounts", AT_FDCWD, "/proc/mounts", 4096, true);
    link_at("file of /proc", AT_FDCWD, "/proc/self/status", 4096, true);
    link_at("no process", AT_FDCWD, "/proc/4194303/exe", 4096, true);
    char number[16] = "";
    CHECK(readlink("/proc/self", number, sizeof number - 1) > 0 && atoi(number) == getpid());
    fd = open("/proc/self", O_PATH | O_NOFOLLOW);
    memset(number, 0, sizeof number);
    CHECK(readlinkat(fd, "", number, sizeof number - 1) > 0 && atoi(number) == getpid());
    close(fd);
}

static void attributes_read(void)
{
    char value[256];
    (void)!setxattr("full", "user.read", "value", 5, 0);
    L(getxattr("full", "user.read", value, sizeof value));
    L(getxattr("full", "user.read", value, 0));
    L(getxattr("full", "user.read", value, 2));
    L(syscall(SYS_getxattr, "full", "user.read", NULL, 10));
    L(getxattr("full", "user.none", value, sizeof value));
    L(getxattr("full", "", value, sizeof value));
    L(getxattr("full", "none", value, sizeof value));
    L(getxattr("none", "user.read", value, sizeof value));
    L(getxattr("link-dir", "user.read", value, sizeof value));
    L(lgetxattr("link-dir", "user.read", value, sizeof value));
    L(llistxattr("link-dir", value, sizeof value));
    L(lgetxattr("full", "user.read", value, sizeof value));
    L(listxattr("full", value, sizeof value) > 0);
    L(listxattr("full", value, 2));
    L(listxattr("none", value, 2));
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    L(inotify_add_watch(fd, "dir", IN_CREATE));
    L(inotify_add_watch(fd, "./dir", IN_CREATE));
    L(inotify_add_watch(fd, "link-dir", IN_CREATE | IN_DONT_FOLLOW));
    L(inotify_add_watch(fd, "full", IN_OPEN | IN_ONLYDIR));
    L(inotify_add_watch(fd, "none", IN_OPEN));
    L(inotify_add_watch(fd, "dir", 0));
    L(inotify_add_watch(99, "dir", IN_OPEN));
    put("dir/watched", "x");
    L(read(fd, value, sizeof value));
    (void)unlink("dir/watched");
    (void)removexattr("full", "user.read");
    close(fd);
}

/* ---- locks ---- */

#define LOCKERS 200

static void on_alarm(int signal)
{
    (void)signal;
}

static int lock_waited(int how, int said)
{
    int fd = open("lock", O_RDWR | O_CLOEXEC);
    (void)!write(said, "", 1);
    return fd >= 0 && flock(fd, how) == 0 ? 0 : errno;
}

static int lock_interrupted(void)
{
    struct sigaction act = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 100000}, {0, 200000}};
    sigaction(SIGALRM, &act, NULL);
    int fd = open("lock", O_RDWR | O_CLOEXEC);
    setitimer(ITIMER_REAL, &soon, NULL);
    return fd >= 0 && flock(fd, LOCK_EX) == 0 ? 0 : errno;
}

static int ended(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Many wait for one lock: all get it, a signal ends the wait, and who has ended holds nothing. */
static void locks_waited(void)
{
    pid_t pids[LOCKERS], one;
    int said[2], fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char byte;
    L(pipe2(said, O_CLOEXEC));
    L(flock(fd, LOCK_EX));
    for (int i = 0; i < LOCKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(lock_waited(i % 20 ? LOCK_SH : LOCK_EX, said[1]));
    }
    for (int i = 0; i < LOCKERS; i++)
        (void)!read(said[0], &byte, 1);
    usleep(300000);
    one = fork();
    if (one == 0)
        _exit(lock_interrupted());
    L(ended(one) == EINTR);
    L(waitpid(-1, NULL, WNOHANG));
    one = fork();
    if (one == 0)
        _exit(lock_waited(LOCK_EX, said[1]));
    usleep(50000);
    kill(one, SIGKILL);
    L(ended(one));
    L(flock(fd, LOCK_UN));
    int got = 0;
    for (int i = 0; i < LOCKERS; i++)
        got += ended(pids[i]) == 0;
    L(got);
    L(flock(fd, LOCK_EX | LOCK_NB));
    close(fd);
    close(said[0]);
    close(said[1]);
    unlink("lock");
}

static int all(void *ctx)
{
    out = *(int *)ctx;
    char name[32], to[32];
    umask(022);
    mkdir("dir", 0755);
    mkdir("dir2", 0755);
    put("full", "content");
    put("full2", "content");
    put("full3", "content");
    put("read-only", "content");
    chmod("read-only", 0444);
    mkdir("closed", 0755);
    put("closed/is", "x");
    chmod("closed", 0000);
    mkdir("readable", 0755);
    put("readable/is", "x");
    chmod("readable", 0555);
    mkfifo("fifo", 0644);
    mknod("socket", S_IFSOCK | 0644, 0);
    (void)!symlink("new", "link-file");
    (void)!symlink("dir", "link-dir");
    (void)!symlink("dir", "link-dir2");
    (void)!symlink("dangled", "link-dangling");
    (void)!symlink("dangled2", "link-dangling2");
    (void)!symlink("dangled3", "link-dangling3");
    (void)!symlink("link-loop", "link-loop");
    (void)!symlink("dir/", "link-slash");
    (void)!symlink("none/", "link-slash-none");
    char cwd[256];
    (void)!symlink(strcat(getcwd(cwd, 200), "/dir"), "link-abs");
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "link-chain%d", i);
        snprintf(to, sizeof to, i == 59 ? "new" : "link-chain%d", i + 1);
        (void)!symlink(to, name);
    }
    links();
    attributes_read();
    opens();
    names();
    same_text();
    null_device();
    attributes();
    sockets();
    locks_waited();
    chmod("closed", 0755);
    nftw(".", tree_one, 16, FTW_PHYS);
    return 0;
}

struct lines {
    char *text;
    size_t n;
};

static struct lines run(bool guarded, bool reads, bool quiet)
{
    /* The same path for both: it is part of what is compared. */
    char *base = box_workspace(), ws[64];
    snprintf(ws, sizeof ws, "/var/tmp/pinfold-test-guard-%u/w", getuid());
    if (mkdir(ws, 0755) < 0)
        perror(ws);
    char log[96];
    snprintf(log, sizeof log, "%s/log", base);
    int fd = open(log, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    struct box box = {.workspace = ws,
                      .rules = box_default_rules,
                      .n_rules = box_default_n,
                      .unguarded = !guarded,
                      .reads = reads,
                      .quiet = quiet};
    struct box_result r;
    box_run(&box, all, &fd, &r);
    CHECK(r.status == 0, "status %d", r.status);
    CHECK(r.n_denials == 0, "%zu denials, first %s: %s", r.n_denials, r.denials[0].text,
          r.denials[0].text + strlen(r.denials[0].text) + 1);
    struct stat st;
    fstat(fd, &st);
    struct lines l = {malloc((size_t)st.st_size + 1), (size_t)st.st_size};
    if (pread(fd, l.text, l.n, 0) != (ssize_t)l.n)
        l.n = 0;
    l.text[l.n] = 0;
    close(fd);
    box_workspace_end(strdup(ws));
    box_workspace_end(base);
    return l;
}

static void differ(const struct lines *native, struct lines guarded, const char *what)
{
    char *a = strdup(native->text), *save_a, *save_b;
    char *x = strtok_r(a, "\n", &save_a), *y = strtok_r(guarded.text, "\n", &save_b);
    int n = 0;
    for (; x && y; x = strtok_r(NULL, "\n", &save_a), y = strtok_r(NULL, "\n", &save_b)) {
        CHECK(strcmp(x, y) == 0, "%s\n  native:  %s\n  guarded: %s", what, x, y);
        if (failures > 20)
            break;
        n++;
    }
    CHECK(!x && !y, "one has more lines: %s / %s", x ? x : "", y ? y : "");
    CHECK(n > 250, "%d lines", n);
    free(a);
    free(guarded.text);
}

int main(void)
{
    has_fchmodat2 = syscall(452, -1, "", 0, 0) < 0 && errno != ENOSYS;
    struct lines native = run(false, false, false);
    differ(&native, run(true, false, false), "guarded");
    differ(&native, run(true, true, false), "guarded, reads too");
    differ(&native, run(true, false, true), "guarded, without WAIT_KILLABLE_RECV");
    free(native.text);
    return check_report("guard calls");
}
