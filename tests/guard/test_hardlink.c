/*
 * Files of the host with names outside of the workspace: whatever a box does to one under its name in the workspace, the
 * file outside keeps bytes, mode, owner, times and attributes, and in the box the call has done what it says. What has no
 * name but those made in the box stays one file.
 */
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#define STORED  "as it was stored\n"
#define PATCHED "changedas stored\n"
#define MODE    0640
#define TIME    1000000000

static char *ws, *store;

static char *in_store(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", store, name);
    return path;
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool holds(const char *path, const char *text)
{
    char bytes[100] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes - 1);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)strlen(text) && memcmp(bytes, text, (size_t)n) == 0;
}

static struct stat st_of(const char *path)
{
    struct stat st = {0};
    (void)lstat(path, &st);
    return st;
}

static bool writes(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    bool ok = fd >= 0 && write(fd, "changed", 7) == 7;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* ---- one file each: the name is that of the attempt ---- */

static bool open_write(const char *f)
{
    return writes(f, O_WRONLY) && holds(f, PATCHED) && st_of(f).st_nlink == 1 && st_of(f).st_mode == (S_IFREG | MODE);
}
static bool open_append(const char *f)
{
    return writes(f, O_WRONLY | O_APPEND) && holds(f, STORED "changed");
}
static bool open_create(const char *f)
{
    return writes(f, O_RDWR | O_CREAT) && st_of(f).st_size == sizeof STORED - 1;
}
static bool open_empty(const char *f)
{
    return writes(f, O_WRONLY | O_CREAT | O_TRUNC) && holds(f, "changed") && st_of(f).st_mode == (S_IFREG | MODE);
}
static bool open_read_empty(const char *f)
{
    int fd = open(f, O_RDONLY | O_TRUNC);
    return fd >= 0 && close(fd) == 0 && st_of(f).st_size == 0;
}
static bool open_map(const char *f)
{
    int fd = open(f, O_RDWR);
    char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return false;
    memcpy(p, "maps", 4);
    return munmap(p, 4) == 0 && close(fd) == 0;
}
static bool open_link(const char *f)
{
    return symlink(f, "way") == 0 && writes("way", O_WRONLY) && unlink("way") == 0 && st_of(f).st_nlink == 1;
}
static bool open_second(const char *f) /* a second name of it, made in the box, is one more name of the file outside */
{
    return link(f, "second") == 0 && writes("second", O_WRONLY) && holds(f, STORED) && unlink("second") == 0;
}
static bool open_moved(const char *f)
{
    return rename(f, "moved") == 0 && writes("moved", O_WRONLY) && rename("moved", f) == 0;
}
static const char *by_fd(const char *f, int flags)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(f, flags));
    return path;
}
static bool reopen(const char *f)
{
    return writes(by_fd(f, O_RDONLY), O_WRONLY) && st_of(f).st_nlink == 1;
}
static bool reopen_path(const char *f)
{
    return writes(by_fd(f, O_PATH), O_RDWR | O_TRUNC) && holds(f, "changed");
}
static bool reopen_lost(const char *f) /* the one name left is the one outside */
{
    const char *path = by_fd(f, O_RDONLY);
    return unlink(f) == 0 && !writes(path, O_WRONLY) && errno == EACCES && truncate(path, 0) < 0 &&
           chmod(path, 0777) < 0;
}
static bool cut(const char *f)
{
    return truncate(f, 2) == 0 && holds(f, "as");
}
static bool cut_all(const char *f)
{
    return truncate(f, 0) == 0 && holds(f, "");
}
static bool mode(const char *f)
{
    return chmod(f, 0755) == 0 && st_of(f).st_mode == (S_IFREG | 0755) && holds(f, STORED) && st_of(f).st_mtime == TIME;
}
static bool mode_same(const char *f) /* is so already: no copy */
{
    return chmod(f, MODE) == 0 && st_of(f).st_nlink == 2;
}
static bool mode_fd(const char *f)
{
    int fd = open(f, O_RDONLY);
    return fchmod(fd, 0700) == 0 && close(fd) == 0 && st_of(f).st_mode == (S_IFREG | 0700);
}
static bool mode_path_fd(const char *f)
{
    int fd = open(f, O_PATH);
    if (fchmod(fd, 0700) == 0 || errno != EBADF)
        return false;
    long r = syscall(SYS_fchmodat2, fd, "", 0700, AT_EMPTY_PATH);
    return (r == 0 ? st_of(f).st_mode == (S_IFREG | 0700) : errno == ENOSYS) && close(fd) == 0;
}
static bool mode_lost_fd(const char *f)
{
    int fd = open(f, O_RDONLY);
    return unlink(f) == 0 && fchmod(fd, 0700) < 0 && errno == EACCES && futimens(fd, NULL) < 0 &&
           fsetxattr(fd, "user.box", "x", 1, 0) < 0 && fchown(fd, (uid_t)-1, getgid()) < 0 && close(fd) == 0;
}
static bool owner(const char *f)
{
    return chown(f, getuid(), getgid()) == 0 && lchown(f, (uid_t)-1, (gid_t)-1) == 0;
}
static bool times(const char *f)
{
    struct utimbuf t = {5, 5};
    return utime(f, &t) == 0 && st_of(f).st_mtime == 5 && holds(f, STORED);
}
static bool times_now(const char *f)
{
    return utimensat(AT_FDCWD, f, NULL, 0) == 0 && st_of(f).st_mtime > TIME;
}
static bool times_fd(const char *f)
{
    struct timespec t[2] = {{7, 0}, {7, 0}};
    int fd = open(f, O_RDONLY);
    return futimens(fd, t) == 0 && close(fd) == 0 && st_of(f).st_mtime == 7;
}
static bool attribute(const char *f)
{
    char value[8] = "";
    return setxattr(f, "user.stored", "no", 2, 0) == 0 && getxattr(f, "user.stored", value, 8) == 2;
}
static bool attribute_fd(const char *f)
{
    int fd = open(f, O_RDONLY);
    return fsetxattr(fd, "user.stored", "no", 2, 0) == 0 && close(fd) == 0;
}
static bool attribute_gone(const char *f)
{
    char value[8];
    return removexattr(f, "user.stored") == 0 && getxattr(f, "user.stored", value, 8) < 0 && holds(f, STORED);
}
static bool attribute_kept(const char *f)
{
    char value[8];
    return writes(f, O_WRONLY) && getxattr(f, "user.stored", value, 8) == 3 && memcmp(value, "yes", 3) == 0;
}
static bool mode_closed(const char *f) /* a file that cannot be written is not copied for the attempt */
{
    return chmod(f, 0440) == 0 && (writes(f, O_WRONLY) ? getuid() == 0 : errno == EACCES) && st_of(f).st_nlink == 1;
}
static bool dir_closed(const char *f) /* no room for a copy beside it: the kernel's error */
{
    char dir[64], in[80];
    snprintf(dir, sizeof dir, "%s.d", f);
    snprintf(in, sizeof in, "%s/f", dir);
    return mkdir(dir, 0755) == 0 && rename(f, in) == 0 && chmod(dir, 0555) == 0 && !writes(in, O_WRONLY) &&
           errno == EACCES && chmod(dir, 0755) == 0;
}
static bool reads(const char *f)
{
    return holds(f, STORED) && st_of(f).st_nlink == 2;
}
static bool goes(const char *f)
{
    return unlink(f) == 0;
}
static bool replaced(const char *f)
{
    return put("new", "new") && rename("new", f) == 0 && holds(f, "new") && writes(f, O_WRONLY);
}

static const struct attempt {
    const char *name;
    bool (*run)(const char *f);
} attempts[] = {{"open-write", open_write},
                {"open-append", open_append},
                {"open-create", open_create},
                {"open-empty", open_empty},
                {"open-read-empty", open_read_empty},
                {"open-map", open_map},
                {"open-link", open_link},
                {"open-second", open_second},
                {"open-moved", open_moved},
                {"reopen", reopen},
                {"reopen-path", reopen_path},
                {"reopen-lost", reopen_lost},
                {"cut", cut},
                {"cut-all", cut_all},
                {"mode", mode},
                {"mode-same", mode_same},
                {"mode-fd", mode_fd},
                {"mode-path-fd", mode_path_fd},
                {"mode-lost-fd", mode_lost_fd},
                {"owner", owner},
                {"times", times},
                {"times-now", times_now},
                {"times-fd", times_fd},
                {"attribute", attribute},
                {"attribute-fd", attribute_fd},
                {"attribute-gone", attribute_gone},
                {"attribute-kept", attribute_kept},
                {"mode-closed", mode_closed},
                {"dir-closed", dir_closed},
                {"reads", reads},
                {"goes", goes},
                {"replaced", replaced}};
#define N_ATTEMPTS (sizeof attempts / sizeof *attempts)

static int all(void *ctx)
{
    int bad = 0;
    for (size_t i = 0; i < N_ATTEMPTS; i++) {
        errno = 0;
        if (!attempts[i].run(attempts[i].name)) {
            fprintf(stderr, "in the box: %s (%s)\n", attempts[i].name, strerror(errno));
            bad = 1;
        }
    }
    (void)ctx;
    return bad;
}

static void stored(const char *name)
{
    char second[300];
    const char *path = in_store(name);
    const struct timespec t[2] = {{TIME, 0}, {TIME, 0}};
    snprintf(second, sizeof second, "%s/%s", ws, name);
    CHECK(put(path, STORED) && chmod(path, MODE) == 0 && setxattr(path, "user.stored", "yes", 3, 0) == 0);
    CHECK(utimensat(AT_FDCWD, path, t, 0) == 0 && link(path, second) == 0, "%s", second);
}

static void as_stored(const char *name)
{
    char value[8] = "";
    const char *path = in_store(name);
    struct stat st = st_of(path);
    CHECK(holds(path, STORED), "%s", name);
    CHECK(st.st_mode == (S_IFREG | MODE) && st.st_mtime == TIME && st.st_uid == getuid(), "%s: %o", name, st.st_mode);
    CHECK(getxattr(path, "user.stored", value, sizeof value) == 3 && memcmp(value, "yes", 3) == 0, "%s", name);
    CHECK(listxattr(path, NULL, 0) == sizeof "user.stored", "%s", name);
}

/* ---- a link ---- */

static int link_itself(void *ctx)
{
    struct timespec t[2] = {{7, 0}, {7, 0}};
    char text[32] = "";
    (void)ctx;
    return utimensat(AT_FDCWD, "link", t, AT_SYMLINK_NOFOLLOW) == 0 && st_of("link").st_mtime == 7 &&
                   readlink("link", text, sizeof text) == 9 && strcmp(text, "somewhere") == 0 &&
                   st_of("link").st_nlink == 1
               ? 0
               : 1;
}

/* ---- files with all their names here ---- */

static int own(void *ctx)
{
    struct stat a;
    int fd;
    (void)ctx;
    if (!put("a", "1") || link("a", "b") < 0 || link("b", "c") < 0)
        return 1;
    a = st_of("a");
    if (!writes("b", O_WRONLY) || !holds("a", "changed") || chmod("c", 0600) < 0 ||
        st_of("a").st_mode != (S_IFREG | 0600))
        return 2;
    if (st_of("b").st_ino != a.st_ino || unlink("a") < 0 || !writes("c", O_WRONLY | O_APPEND) ||
        st_of("b").st_nlink != 2)
        return 3;
    if (!put("over", "x") || rename("over", "c") < 0 || !writes("b", O_WRONLY | O_TRUNC) ||
        st_of("b").st_ino != a.st_ino)
        return 4;
    /* What is held by descriptor, when its names have gone, and when they are the box's own. */
    if (link("b", "d") < 0 || (fd = open("d", O_RDONLY)) < 0 || unlink("d") < 0 || fchmod(fd, 0644) < 0 ||
        st_of("b").st_mode != (S_IFREG | 0644) || unlink("b") < 0 || fchmod(fd, 0600) < 0 || close(fd) < 0)
        return 5;
    /* A nameless file that gets its names here. */
    fd = open(".", O_TMPFILE | O_RDWR, 0600);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, AT_FDCWD, "t", AT_SYMLINK_FOLLOW) < 0 || link("t", "u") < 0 || !writes("u", O_WRONLY) ||
        !holds("t", "changed"))
        return 6;
    return 0;
}

/* The host makes a name of a file that the box made two of: it is the host's as well from then on. */
static int shared(void *ctx)
{
    (void)ctx;
    if (!put("s1", STORED) || link("s1", "s2") < 0 || !put("ask", ""))
        return 1;
    for (int i = 0; i < 4500 && access("done", F_OK) < 0; i++)
        usleep(20000);
    return writes("s2", O_WRONLY) && holds("s1", STORED) ? 0 : 2;
}

static void host_links(int signal)
{
    char from[300], to[300];
    (void)signal;
    snprintf(from, sizeof from, "%s/ask", ws);
    for (int i = 0; i < 4500 && access(from, F_OK) < 0; i++)
        usleep(20000);
    snprintf(from, sizeof from, "%s/s1", ws);
    snprintf(to, sizeof to, "%s/backup", store);
    if (link(from, to) == 0) {
        snprintf(to, sizeof to, "%s/done", ws);
        (void)put(to, "");
    }
}

/* A private tree is the box's alone. */
static int private_tree(void *ctx)
{
    (void)ctx;
    return put("/tmp/a", "1") && link("/tmp/a", "/tmp/b") == 0 && writes("/tmp/b", O_WRONLY) &&
                   holds("/tmp/a", "changed")
               ? 0
               : 1;
}

/* A large one, by several at once: each has written to the one copy. */
static int large(void *ctx)
{
    char byte[2];
    (void)ctx;
    for (int i = 0; i < 4; i++) {
        if (fork() != 0)
            continue;
        int fd = open("large", O_RDWR);
        _exit(fd < 0 || pwrite(fd, "w", 1, 4096 * i) != 1);
    }
    for (int status, i = 0; i < 4; i++)
        if (wait(&status) < 0 || status)
            return 1;
    int fd = open("large", O_RDONLY);
    for (int i = 0; i < 4; i++)
        if (pread(fd, byte, 1, 4096 * i) != 1 || byte[0] != 'w')
            return 2;
    return lseek(fd, 0, SEEK_END) == (8 << 20) && st_of("large").st_blocks < 8 << 11 ? 0 : 3; /* with its holes */
}

static char longest[NAME_MAX + 1];

/* The longest name that a file can have, reached by a descriptor. */
static int long_name(void *ctx)
{
    char path[64];
    (void)ctx;
    int fd = open(longest, O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int writer = fd < 0 ? -1 : open(path, O_WRONLY);
    return writer >= 0 && write(writer, "w", 1) == 1 ? 0 : 1;
}

static int run(int (*inside)(void *))
{
    struct box box = {.workspace = ws, .rules = box_default_rules, .n_rules = box_default_n};
    struct box_result r;
    box_run(&box, inside, NULL, &r);
    return r.status;
}

int main(void)
{
    char second[300];
    ws = box_workspace();
    store = box_workspace();
    for (size_t i = 0; i < N_ATTEMPTS; i++)
        stored(attempts[i].name);
    CHECK(run(all) == 0);
    for (size_t i = 0; i < N_ATTEMPTS; i++)
        as_stored(attempts[i].name);

    struct timespec t[2] = {{TIME, 0}, {TIME, 0}};
    snprintf(second, sizeof second, "%s/link", ws);
    CHECK(symlink("somewhere", in_store("link")) == 0 && link(in_store("link"), second) == 0);
    CHECK(utimensat(AT_FDCWD, second, t, AT_SYMLINK_NOFOLLOW) == 0);
    CHECK(run(link_itself) == 0);
    CHECK(st_of(in_store("link")).st_mtime == TIME);

    int status = run(own);
    CHECK(status == 0, "%d", status);
    CHECK(run(private_tree) == 0);

    pid_t host = fork();
    if (host == 0) {
        host_links(0);
        _exit(0);
    }
    CHECK(run(shared) == 0);
    CHECK(waitpid(host, NULL, 0) == host && holds(in_store("backup"), STORED));

    snprintf(second, sizeof second, "%s/large", ws);
    CHECK(put(in_store("large"), "") && truncate(in_store("large"), 8 << 20) == 0 &&
          link(in_store("large"), second) == 0);
    CHECK(run(large) == 0);
    CHECK(st_of(in_store("large")).st_blocks == 0);

    memset(longest, 'n', NAME_MAX);
    CHECK(chdir(ws) == 0 && put(in_store("long"), STORED) && link(in_store("long"), longest) == 0);
    CHECK(run(long_name) == 0 && holds(in_store("long"), STORED));

    char command[400];
    snprintf(command, sizeof command, "cd %s && test -z \"$(find . -name '.pinfold*')\"", ws);
    CHECK(system(command) == 0, "nothing of the guard's stays");
    box_workspace_end(store);
    box_workspace_end(ws);
    return check_report("guard hardlink");
}
