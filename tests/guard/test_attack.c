/*
 * Attacks on the guard, each a small program. First in a box without guard, where it must succeed (else it would prove
 * nothing), then with it, where it must not. Whether it did is looked up outside, afterwards, by reading the tree.
 */
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define SECRET "the secret\n"
#define TRIES  1000 /* or PINFOLD_RACE_TRIES; the soak takes more */

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        perror(path);
    close(fd);
}

/* The tree every attack begins with. */
static void prepare(const char *ws)
{
    if (chdir(ws) < 0)
        perror(ws);
    mkdir(".git", 0755);
    mkdir(".git/hooks", 0755);
    mkdir(".git/objects", 0755);
    mkdir(".git/refs", 0755);
    put(".git/HEAD", "ref: refs/heads/main\n");
    put(".git/config", "[core]\n\tbare = false\n");
    put(".git/hooks/pre-push", "original");
    mkdir("keep", 0755);
    put("keep/file", "original");
    mkdir("keep/sub", 0755);
    put("keep/sub/file", "original");
    mkdir("hide", 0755);
    put("hide/secret", SECRET);
    put("x.env", "");
    put(".env", SECRET);
    if (link("keep/file", "second-name") < 0 || link("hide/secret", "second-secret") < 0)
        perror("link");
    mkdir("a", 0755);
    mkdir("a/b", 0755);
    if (symlink(".", "here") < 0)
        perror("symlink");
    if (chdir("/") < 0)
        perror("/");
}

static const struct box_rule rules_any[] = {
    {GUARD_RULE_NAME, ".git/hooks", GUARD_ANY_DEPTH, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_NAME, ".git/config", GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, false, NULL},
    {GUARD_RULE_NAME, ".vscode", GUARD_ANY_DEPTH, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_NAME, ".envrc", GUARD_ANY_DEPTH, GUARD_REFUSE, false, NULL},
    {GUARD_RULE_NAME, "x/y/z", GUARD_ANY_DEPTH, GUARD_REFUSE, false, NULL},
    {GUARD_RULE_HIDE_NAME, ".env", GUARD_ANY_DEPTH, GUARD_REFUSE, false, "/var/tmp"},
    {GUARD_RULE_PROTECT, NULL /* WS/keep */, GUARD_ROOT, GUARD_REFUSE, true, NULL},
    {GUARD_RULE_HIDE, NULL /* WS/hide */, GUARD_ROOT, GUARD_REFUSE, true, NULL},
};
#define N_RULES (sizeof rules_any / sizeof *rules_any)

/* ---- was there harm? read from outside ---- */

static char harm[256];
static bool file_is(const char *path, const char *text)
{
    char have[64] = "";
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof have - 1);
    close(fd);
    return n == (ssize_t)strlen(text) && memcmp(have, text, (size_t)n) == 0;
}
static int look(const char *path, const struct stat *st, int type, struct FTW *f)
{
    const char *name = path + f->base, *hooks = strstr(path, ".git/hooks/");
    bool bad = strcasecmp(name, ".vscode") == 0 || strcasecmp(name, ".envrc") == 0;
    bad |= hooks && !strstr(hooks, "pre-push") && !strstr(hooks, ".sample");
    size_t n = strlen(path);
    bad |= n > 5 && strcmp(path + n - 5, "x/y/z") == 0;
    bad |= strncmp(name, ".pinfold", 8) == 0;
    (void)st;
    (void)type;
    if (bad && !*harm)
        snprintf(harm, sizeof harm, "%s exists", path);
    return 0;
}
static bool harmed(const char *ws)
{
    struct stat st;
    *harm = 0;
    if (chdir(ws) < 0)
        return true;
    (void)nftw(".", look, 16, FTW_PHYS);
    if (!*harm && !file_is(".git/hooks/pre-push", "original"))
        strcpy(harm, "pre-push changed");
    if (!*harm && !file_is("keep/file", "original"))
        strcpy(harm, "keep/file changed");
    if (!*harm && !file_is("keep/sub/file", "original"))
        strcpy(harm, "keep/sub/file changed");
    if (!*harm && !file_is("hide/secret", SECRET))
        strcpy(harm, "hide/secret changed");
    if (!*harm && stat("keep/file", &st) == 0 && (st.st_mode & 0777) != 0644)
        strcpy(harm, "mode of keep/file");
    char value[8];
    if (!*harm && getxattr("keep/file", "user.x", value, sizeof value) >= 0)
        strcpy(harm, "attribute of keep/file");
    /* It may be gone (it said nothing), but not say anything else. */
    if (!*harm && access(".git/config", F_OK) == 0 && !file_is(".git/config", "[core]\n\tbare = false\n"))
        strcpy(harm, ".git/config changed");
    if (!*harm && file_is("loot", SECRET))
        strcpy(harm, "the secret was read");
    if (chdir("/") < 0)
        perror("/");
    return *harm;
}

/* ---- attacks: run inside, in the workspace ---- */

static void loot_fd(int fd)
{
    char text[64];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n > 0) {
        text[n] = 0;
        put("loot", text);
    }
}
static void write_fd(int fd)
{
    if (fd >= 0 && write(fd, "owned", 5) != 5)
        perror("write");
}
static int proc_fd(int fd, int flags)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, flags);
}

static void a_create(void)
{
    put(".envrc", "x");
}
static void a_create_deep(void)
{
    put("a/b/.envrc", "x");
}
static void a_openat_dir(void)
{
    int d = open(".git/hooks", O_RDONLY | O_DIRECTORY);
    write_fd(openat(d, "post-commit", O_WRONLY | O_CREAT, 0777));
}
static void a_path_dir(void)
{
    int d = open(".git/hooks", O_PATH);
    write_fd(openat(d, "post-commit", O_WRONLY | O_CREAT, 0777));
}
static void a_chdir(void)
{
    if (chdir(".git/hooks") == 0)
        put("post-commit", "x");
}
static void a_fchdir(void)
{
    int d = open(".git/hooks", O_PATH);
    if (fchdir(d) == 0)
        put("./post-commit", "x");
}
static void a_proc_cwd(void)
{
    if (chdir(".git/hooks") == 0)
        put("/proc/self/cwd/post-commit", "x");
}
static void a_proc_thread(void)
{
    if (chdir(".git/hooks") == 0)
        put("/proc/thread-self/cwd/post-commit", "x");
}
static void a_proc_root(void)
{
    char cwd[256], path[600];
    snprintf(path, sizeof path, "/proc/self/root/%s/.envrc", getcwd(cwd, sizeof cwd));
    put(path, "x");
}
static void a_proc_fd_dir(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/post-commit", open(".git/hooks", O_PATH));
    put(path, "x");
}
static void a_dots(void)
{
    put("./a/../.git//hooks/.././hooks/post-commit", "x");
}
static void a_slash(void)
{
    mkdir(".vscode/", 0777);
}
static void a_slashes(void)
{
    mkdir("a//.vscode////", 0777);
}
static void a_link_dir(void)
{
    put("here/here/.envrc", "x");
}
static void a_link_last(void)
{
    (void)!symlink(".envrc", "s");
    put("s", "x");
}
static void a_link_absolute(void)
{
    char cwd[256], path[300];
    snprintf(path, sizeof path, "%s/here/.git/hooks/post-commit", getcwd(cwd, sizeof cwd));
    (void)!symlink(path, "s");
    put("s", "x");
}
static void a_creat(void)
{
    write_fd(creat(".envrc", 0666));
}
static void a_mkdir(void)
{
    mkdir("a/.vscode", 0777);
}
static void a_mknod(void)
{
    mknod("a/.envrc", S_IFREG | 0777, 0);
}
static void a_mkfifo(void)
{
    mkfifo(".envrc", 0777);
}
static void a_symlink(void)
{
    (void)!symlink("/bin/true", ".git/hooks/post-commit");
}
static void a_link(void)
{
    put("p", "x");
    (void)!link("p", ".git/hooks/post-commit");
}
static void a_rename(void)
{
    put("p", "x");
    rename("p", ".git/hooks/post-commit");
}
static void a_rename_over(void)
{
    put("p", "x");
    rename("p", "keep/file");
}
static void a_exchange(void)
{
    put("p", "x");
    syscall(SYS_renameat2, AT_FDCWD, "p", AT_FDCWD, "keep/file", RENAME_EXCHANGE);
}
static void a_exchange_back(void)
{
    put("p", "x");
    syscall(SYS_renameat2, AT_FDCWD, "keep/file", AT_FDCWD, "p", RENAME_EXCHANGE);
}
static void prepared(const char *name)
{
    char path[256];
    mkdir(name, 0777);
    snprintf(path, sizeof path, "%s/hooks", name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/hooks/post-commit", name);
    put(path, "x");
}
static void a_exchange_ancestor(void)
{
    prepared("p");
    syscall(SYS_renameat2, AT_FDCWD, "p", AT_FDCWD, ".git", RENAME_EXCHANGE);
}
static void a_exchange_ancestor_back(void)
{
    prepared("p");
    syscall(SYS_renameat2, AT_FDCWD, ".git", AT_FDCWD, "p", RENAME_EXCHANGE);
}
static void a_move_tree(void)
{
    prepared("p");
    rename("p", "a/.git");
}
static void a_move_away(void)
{
    rename(".git", "old");
    prepared(".git");
}
static void a_move_hooks(void)
{
    rename(".git/hooks", "old");
    mkdir(".git/hooks", 0777);
    put(".git/hooks/post-commit", "x");
}
static void a_move_protected_parent(void)
{
    rename("keep", "old");
}
static void a_move_three(void)
{
    mkdir("q", 0777);
    mkdir("q/y", 0777);
    put("q/y/z", "x");
    rename("q", "a/x");
}
static void a_move_three_inner(void)
{
    mkdir("a/x", 0777);
    mkdir("q", 0777);
    put("q/z", "x");
    rename("q", "a/x/y");
}
static void a_link_three(void)
{
    mkdir("q", 0777);
    mkdir("q/y", 0777);
    put("q/y/z", "x");
    (void)!symlink("q", "x");
    put("loot", access("x/y/z", F_OK) == 0 ? SECRET : "");
}
static void a_link_git(void)
{
    prepared("p");
    (void)!symlink("../p", "a/.git");
    put("loot", access("a/.git/hooks/post-commit", F_OK) == 0 ? SECRET : "");
}
static void a_tmpfile(void)
{
    char name[64];
    int fd = open(".", O_TMPFILE | O_RDWR, 0777);
    write_fd(fd);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    linkat(AT_FDCWD, name, AT_FDCWD, ".git/hooks/post-commit", AT_SYMLINK_FOLLOW);
}
static void a_tmpfile_in_hooks(void)
{
    char name[64];
    int fd = open(".git/hooks", O_TMPFILE | O_RDWR, 0777);
    write_fd(fd);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    linkat(AT_FDCWD, name, open(".git/hooks", O_PATH), "post-commit", AT_SYMLINK_FOLLOW);
}
static void a_tmpfile_empty_path(void)
{
    int fd = open(".", O_TMPFILE | O_RDWR, 0777);
    write_fd(fd);
    linkat(fd, "", AT_FDCWD, ".git/hooks/post-commit", AT_EMPTY_PATH);
}
static void a_dir_fd_later(void)
{
    mkdir("p", 0777);
    int d = open("p", O_PATH);
    rename("p", "a/.git");
    mkdirat(d, "hooks", 0777);
    write_fd(openat(d, "hooks/post-commit", O_WRONLY | O_CREAT, 0777));
}
static void a_write(void)
{
    write_fd(open("keep/file", O_WRONLY));
}
static void a_append(void)
{
    write_fd(open("keep/sub/file", O_WRONLY | O_APPEND));
}
static void a_truncate(void)
{
    (void)!truncate("keep/file", 0);
}
static void a_open_truncate(void)
{
    open("keep/file", O_RDONLY | O_TRUNC);
}
static void a_second_name(void)
{
    write_fd(open("second-name", O_WRONLY));
}
static void a_second_truncate(void)
{
    (void)!truncate("second-name", 1);
}
static void a_own_link(void)
{
    (void)!link("keep/file", "third");
    write_fd(open("third", O_WRONLY));
}
static void a_reopen(void)
{
    write_fd(proc_fd(open("keep/file", O_RDONLY), O_WRONLY));
}
static void a_reopen_path(void)
{
    write_fd(proc_fd(open("keep/file", O_PATH), O_WRONLY));
}
static void a_reopen_second(void)
{
    int fd = open("second-name", O_RDONLY);
    unlink("second-name");
    write_fd(proc_fd(fd, O_WRONLY));
}
static void a_reopen_truncate(void)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", open("keep/file", O_RDONLY));
    (void)!truncate(name, 0);
}
static void a_chmod(void)
{
    chmod("keep/file", 0777);
}
static void a_fchmod(void)
{
    fchmod(open("keep/file", O_RDONLY), 0777);
}
static void a_fchmod_second(void)
{
    fchmod(open("second-name", O_RDONLY), 0777);
}
static void a_fchmodat2(void)
{
    syscall(452, open("keep/file", O_PATH), "", 0777, AT_EMPTY_PATH);
}
static void a_chmod_proc(void)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", open("keep/file", O_PATH));
    chmod(name, 0777);
}
static void a_xattr(void)
{
    setxattr("keep/file", "user.x", "1", 1, 0);
}
static void a_fxattr(void)
{
    fsetxattr(open("keep/file", O_RDONLY), "user.x", "1", 1, 0);
}
static void a_unlink(void)
{
    unlink("keep/file");
}
static void a_unlinkat(void)
{
    unlinkat(open("keep", O_PATH), "file", 0);
}
static void a_replace(void)
{
    unlink(".git/hooks/pre-push");
    put(".git/hooks/pre-push", "owned");
}
static void a_bind(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = ".envrc"};
    bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, sizeof a);
}
static void a_upper(void)
{
    mkdir(".VSCode", 0777);
}
static void a_read(void)
{
    loot_fd(open("hide/secret", O_RDONLY));
}
static void a_read_env(void)
{
    loot_fd(open("here/.env", O_RDONLY));
}
static void a_read_second(void)
{
    loot_fd(open("second-secret", O_RDONLY));
}
static void a_read_path(void)
{
    loot_fd(proc_fd(open("hide/secret", O_PATH), O_RDONLY));
}
static void a_read_path_second(void)
{
    int fd = open("second-secret", O_PATH);
    unlink("second-secret");
    loot_fd(proc_fd(fd, O_RDONLY));
}
static void a_read_link(void)
{
    (void)!link("hide/secret", "mine");
    loot_fd(open("mine", O_RDONLY));
}
static void a_read_link_env(void)
{
    (void)!link(".env", "mine");
    loot_fd(open("mine", O_RDONLY));
}
static void a_read_rename(void)
{
    rename(".env", "mine");
    loot_fd(open("mine", O_RDONLY));
    rename("mine", ".env");
}
static void a_read_rename_dir(void)
{
    rename("hide", "mine");
    loot_fd(open("mine/secret", O_RDONLY));
    rename("mine", "hide");
}
static void a_read_dirfd(void)
{
    int d = open("hide", O_PATH);
    loot_fd(openat(d, "secret", O_RDONLY));
}
static void a_config(void)
{
    put(".git/config", "[core]\n\tfsmonitor = x\n");
}
static void a_config_rename(void)
{
    put("c", "[core]\n\tfsmonitor = x\n");
    rename("c", ".git/config");
}
static void a_config_link(void)
{
    put("c", "[core]\n\tfsmonitor = x\n");
    unlink(".git/config");
    (void)!link("c", ".git/config");
}
static void a_config_late_write(void)
{
    put("c", "[core]\n\tbare = false\n");
    int fd = open("c", O_WRONLY);
    rename("c", ".git/config");
    write_fd(fd); /* what was judged must be another inode */
}
static void a_handle(void)
{
    union {
        struct file_handle h;
        char room[256];
    } u;
    int mount_id;
    u.h.handle_bytes = 128;
    if (name_to_handle_at(AT_FDCWD, "keep/file", &u.h, &mount_id, 0) == 0)
        put("loot", SECRET); /* a handle is a name that no rule knows */
}
static void a_openat2(void)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_WRONLY | O_CREAT, 0666, 0};
    write_fd((int)syscall(SYS_openat2, AT_FDCWD, ".envrc", &how, sizeof how));
}
static void a_deep(void)
{
    /* A path longer than any that can be judged. */
    char name[201];
    memset(name, 'd', 200);
    name[200] = 0;
    for (int i = 0; i < 25; i++)
        if (mkdir(name, 0777) < 0 || chdir(name) < 0)
            return;
    mkdir(".vscode", 0777);
}
static void a_deep_clean(void)
{
    /* The same from above: nftw outside cannot see so deep, so the directory is brought up. */
    char name[201], up[512];
    memset(name, 'd', 200);
    name[200] = 0;
    int top = open(".", O_PATH);
    for (int i = 0; i < 25; i++)
        if (mkdir(name, 0777) < 0 || chdir(name) < 0)
            return;
    mkdir("n", 0777);
    mkdir("n/.vscode", 0777);
    snprintf(up, sizeof up, "n");
    renameat(AT_FDCWD, up, top, "brought");
}
static void a_whiteout(void)
{
    syscall(SYS_renameat2, AT_FDCWD, ".git/hooks/pre-push", AT_FDCWD, "w", 4);
}
static void a_temp_name(void)
{
    put(".pinfold-guard-1", "x");
}
static void a_child_fd(void)
{
    int d = open(".git/hooks", O_PATH);
    if (fork() == 0) {
        write_fd(openat(d, "post-commit", O_WRONLY | O_CREAT, 0777));
        _exit(0);
    }
    wait(NULL);
}
static void a_core(void)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    char pattern[64] = "";
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
    (void)!read(fd, pattern, sizeof pattern - 1);
    if (fork() == 0) {
        setrlimit(RLIMIT_CORE, &all);
        abort();
    }
    wait(NULL);
    (void)pattern;
    put("loot", access("core", F_OK) == 0 ? SECRET : "");
}
static void a_nested_mount(void)
{
    /* Another mount namespace: .git/hooks under another name. */
    char text[64];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return;
    put("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", uid);
    put("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %u 1", gid);
    put("/proc/self/gid_map", text);
    if (syscall(SYS_mount, ".git/hooks", "a", NULL, 4096 /* MS_BIND */, NULL) == 0) {
        int d = open("a", O_PATH);
        write_fd(openat(d, "post-commit", O_WRONLY | O_CREAT, 0777));
        if (chdir("a") == 0)
            put("post-commit", "x");
    }
}
static void a_foreign_root(void)
{
    int d = open("/proc/1/root", O_PATH);
    char cwd[256], path[300];
    snprintf(path, sizeof path, "%s/.envrc", getcwd(cwd, sizeof cwd) + 1);
    write_fd(openat(d, path, O_WRONLY | O_CREAT, 0777));
    write_fd(openat(AT_FDCWD, ".envrc", O_WRONLY | O_CREAT, 0777));
}

/* ---- races: a second thread changes what the guard looks at ---- */

static volatile int stop;
static char shared_path[256];
static void *flip_path(void *ctx)
{
    const char **two = ctx;
    while (!stop) {
        strcpy(shared_path, two[0]);
        strcpy(shared_path, two[1]);
    }
    return NULL;
}
#define SEEN "a/b/.seen"
/* The workspace where no guard is: there a race only has to show that it can be won. */
static const char *unguarded;
/* In a process of its own, which stands in its own place. seen: what a race makes itself when it has won, as what it does meanwhile may look so. */
static bool won(const char *seen)
{
    char path[256];
    int status = 0;
    snprintf(path, sizeof path, "%s/%s", unguarded, seen ? seen : "");
    if (seen)
        return access(path, F_OK) == 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(harmed(unguarded));
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}
static void race(void *(*other)(void *), void *ctx, void (*once)(int), const char *seen)
{
    pthread_t thread;
    stop = 0;
    pthread_create(&thread, NULL, other, ctx);
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    const char *said = getenv("PINFOLD_RACE_TRIES");
    const int tries = said ? atoi(said) : TRIES;
    /* On a busy machine the other thread needs time to run at all. */
    for (int i = 0;; i++) {
        once(i);
        clock_gettime(CLOCK_MONOTONIC, &now);
        bool enough =
            unguarded ? i >= 64 && (i & (i - 1)) == 0 && won(seen) : i > tries && now.tv_sec - from.tv_sec > 1;
        if (now.tv_sec - from.tv_sec > 20 || enough) {
            printf("    %d tries\n", i);
            break;
        }
    }
    stop = 1;
    pthread_join(thread, NULL);
}
static void open_shared(int i)
{
    (void)i;
    int fd = open(shared_path, O_WRONLY | O_CREAT, 0666);
    close(fd);
}
static void a_race_path(void)
{
    const char *two[] = {"a/harmless", "a/.envrc"};
    race(flip_path, two, open_shared, NULL);
}
static void *flip_directory(void *ctx)
{
    (void)ctx;
    while (!stop)
        syscall(SYS_renameat2, AT_FDCWD, "swap-dir", AT_FDCWD, "swap-link", RENAME_EXCHANGE);
    return NULL;
}
static void through_swapped(int i)
{
    char name[64];
    snprintf(name, sizeof name, "swap-dir/post-%d", i);
    close(open(name, O_WRONLY | O_CREAT, 0666));
}
static void a_race_link(void)
{
    mkdir("swap-dir", 0777);
    (void)!symlink(".git/hooks", "swap-link");
    race(flip_directory, NULL, through_swapped, NULL);
}
static int flipping;
static void *flip_fd(void *ctx)
{
    int *two = ctx;
    while (!stop) {
        dup2(two[0], flipping);
        dup2(two[1], flipping);
    }
    return NULL;
}
static void through_fd(int i)
{
    char name[64];
    snprintf(name, sizeof name, "post-%d", i);
    close(openat(flipping, name, O_WRONLY | O_CREAT, 0666));
}
static void a_race_dup(void)
{
    int two[] = {open("a", O_PATH), open(".git/hooks", O_PATH)};
    flipping = dup(two[0]);
    race(flip_fd, two, through_fd, NULL);
}
static void *flip_parent(void *ctx)
{
    (void)ctx;
    while (!stop) {
        rename("a/p", "a/.git");
        rename("a/.git", "a/p");
    }
    return NULL;
}
static void into_parent(int i)
{
    (void)i;
    mkdir("a/p/hooks", 0777);
    close(open("a/p/hooks/post-commit", O_WRONLY | O_CREAT, 0666));
    if (access("a/.git/hooks/post-commit", F_OK) == 0)
        put(SEEN, "x");
    unlink("a/p/hooks/post-commit");
    rmdir("a/p/hooks");
}
static void a_race_parent(void)
{
    mkdir("a/p", 0777);
    race(flip_parent, NULL, into_parent, SEEN);
    put("loot", access(SEEN, F_OK) == 0 ? SECRET : "");
}
static void *flip_mode(void *ctx)
{
    (void)ctx;
    while (!stop) {
        unlink("target");
        (void)!symlink("keep/file", "target");
        unlink("target");
        put("target", "mine");
    }
    return NULL;
}
static void write_target(int i)
{
    (void)i;
    int fd = open("target", O_WRONLY);
    write_fd(fd);
    close(fd);
    chmod("target", 0777);
}
static void a_race_target(void)
{
    race(flip_mode, NULL, write_target, NULL);
}

/* Where somebody stands, and what the guard keeps open for the next call with the same text, gets another name. */
static void a_kept_renamed(void)
{
    mkdir("a/p", 0777);
    if (chdir("a/p") < 0)
        return;
    for (char name[] = "x0"; name[1] < '4'; name[1]++)
        put(name, "");
    mkdir("hooks", 0777);
    for (char name[] = "hooks/x0"; name[7] < '4'; name[7]++) {
        put(name, "");
        unlink(name);
    }
    rename("../p", "../.git");
    put("hooks/post-commit", "x");
    mkdir("hooks", 0777);
    put("hooks/post-commit", "x");
    put(".vscode", "x");
}
static void a_kept_descriptor(void)
{
    int at = open("a", O_PATH), hooks = open(".git/hooks", O_PATH);
    for (char name[] = "x0"; name[1] < '4'; name[1]++)
        close(openat(at, name, O_WRONLY | O_CREAT, 0666));
    dup2(hooks, at);
    close(openat(at, "x4", O_WRONLY | O_CREAT, 0666));
}
static void *flip_stand(void *ctx)
{
    const int *two = ctx;
    while (!stop) {
        (void)!fchdir(two[0]);
        (void)!fchdir(two[1]);
    }
    return NULL;
}
static void where_it_stands(int i)
{
    char name[64];
    snprintf(name, sizeof name, "post-%d", i);
    close(open(name, O_WRONLY | O_CREAT, 0666));
    unlink(name);
    close(open(name, O_WRONLY | O_CREAT, 0666));
}
static void a_race_stand(void)
{
    int two[] = {open("a", O_PATH), open(".git/hooks", O_PATH)};
    race(flip_stand, two, where_it_stands, NULL);
}
static int race_top;
static void *flip_under(void *ctx)
{
    (void)ctx;
    while (!stop) {
        renameat(race_top, "a/p", race_top, "a/.git");
        renameat(race_top, "a/.git", race_top, "a/p");
    }
    return NULL;
}
static void stands_under(int i)
{
    (void)i;
    mkdir("hooks", 0777);
    close(open("hooks/post-commit", O_WRONLY | O_CREAT, 0666));
    if (faccessat(race_top, "a/.git/hooks/post-commit", F_OK, 0) == 0)
        close(openat(race_top, SEEN, O_WRONLY | O_CREAT, 0666));
    unlink("hooks/post-commit");
    rmdir("hooks");
}
static void a_race_under(void)
{
    mkdir("a/p", 0777);
    race_top = open(".", O_PATH);
    if (chdir("a/p") < 0)
        return;
    race(flip_under, NULL, stands_under, SEEN);
    if (fchdir(race_top) == 0)
        put("loot", access(SEEN, F_OK) == 0 ? SECRET : "");
}
static void *flip_link(void *ctx)
{
    (void)ctx;
    while (!stop) {
        rename("way", "way-2");
        (void)!symlink(".git/hooks", "way");
        unlink("way");
        rename("way-2", "way");
    }
    return NULL;
}
static void by_link(int i)
{
    char name[64];
    for (int more = 0; more < 3; more++) {
        snprintf(name, sizeof name, "way/post-%d-%d", i, more);
        close(open(name, O_WRONLY | O_CREAT, 0666));
    }
}
static void a_race_kept_link(void)
{
    mkdir("way", 0777);
    race(flip_link, NULL, by_link, NULL);
}

/*
 * A rename that hangs: whoever writes holds the lock of the file's inode, and gets no time to go on. Meanwhile the directory it
 * leads into is to get a name below which that place is guarded.
 */
#define SLOW_BYTES (256u << 20)
static pid_t apart(void (*run)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(14);
        run();
        _exit(0);
    }
    return pid;
}
/* The writer and those who take its time share a processor: the others stay free. */
static void slow_pin(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    (void)!sched_setaffinity(0, sizeof one, &one);
}
static void slow_spin(void)
{
    volatile int i = 0;
    slow_pin();
    raise(SIGSTOP); /* until the writer has begun */
    while (i >= 0)
        i = !i;
}
/* Callers that queue up: then more than one of the guard's workers receives. */
static void slow_crowd(void)
{
    char name[32];
    snprintf(name, sizeof name, "a/b/%d", (int)getpid());
    for (;;)
        if (mkdir(name, 0777) == 0)
            rmdir(name);
}
static void slow_write(void)
{
    struct sched_param none = {0};
    int fd = open("b/f", O_WRONLY);
    void *bytes = mmap(NULL, SLOW_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    slow_pin();
    setpriority(PRIO_PROCESS, 0, 19);
    sched_setscheduler(0, SCHED_IDLE, &none);
    (void)!write(fd, bytes, SLOW_BYTES);
    (void)!ftruncate(fd, 0);
}
static void slow_arrive(void)
{
    rename("b/f", "a/p/y/z");
}
static void a_slow_rename(void)
{
    enum { CROWD = 8, SPIN = 11, ALL = 13 };
    pid_t all[ALL];
    struct stat st = {0};
    mkdir("b", 0777);
    mkdir("a/p", 0777);
    mkdir("a/p/y", 0777);
    put("b/f", "");
    for (int i = 0; i < CROWD; i++)
        all[i] = apart(slow_crowd);
    for (int i = CROWD; i < SPIN; i++) {
        all[i] = apart(slow_spin);
        waitpid(all[i], NULL, WUNTRACED);
    }
    usleep(300 * 1000);
    all[SPIN] = apart(slow_write);
    while (stat("b/f", &st) == 0 && st.st_size == 0 && waitpid(all[SPIN], NULL, WNOHANG) == 0)
        usleep(200);
    for (int i = CROWD; i < SPIN; i++)
        kill(all[i], SIGCONT);
    all[SPIN + 1] = apart(slow_arrive);
    usleep(1000 * 1000);
    rename("a/p", "a/x");
    for (int i = 0; i < SPIN; i++)
        kill(all[i], SIGKILL);
    for (int i = 0; i < ALL; i++)
        waitpid(all[i], NULL, 0);
}

static struct sockaddr_un shared_address;
static void *flip_address(void *ctx)
{
    const char **two = ctx;
    while (!stop) {
        strcpy(shared_address.sun_path, two[0]);
        strcpy(shared_address.sun_path, two[1]);
    }
    return NULL;
}
static void bind_shared(int i)
{
    (void)i;
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(s, (void *)&shared_address, sizeof shared_address);
    close(s);
    unlink("a/harmless");
}
static void a_race_bind(void)
{
    const char *two[] = {"a/harmless", "a/.envrc"};
    shared_address.sun_family = AF_UNIX;
    race(flip_address, two, bind_shared, NULL);
}

struct attack {
    const char *name;
    void (*run)(void);
    int kind; /* 1: reads are notified; 2: does not work outside either, or not here: only that it does not inside */
};
#define A(name)                                                                                                        \
    {                                                                                                                  \
#name, a_##name, 0                                                                                             \
    }
#define READS(name)                                                                                                    \
    {                                                                                                                  \
#name, a_##name, 1                                                                                             \
    }
#define ONLY_INSIDE(name)                                                                                              \
    {                                                                                                                  \
#name, a_##name, 2                                                                                             \
    }
static const struct attack attacks[] = {
    A(create),
    A(create_deep),
    A(openat_dir),
    A(path_dir),
    A(chdir),
    A(fchdir),
    A(proc_cwd),
    A(proc_thread),
    A(proc_root),
    A(proc_fd_dir),
    A(dots),
    A(slash),
    A(slashes),
    A(link_dir),
    A(link_last),
    A(link_absolute),
    A(creat),
    A(mkdir),
    A(mknod),
    A(mkfifo),
    A(symlink),
    A(link),
    A(rename),
    A(rename_over),
    A(exchange),
    A(exchange_back),
    A(exchange_ancestor),
    A(exchange_ancestor_back),
    A(move_tree),
    A(move_away),
    A(move_hooks),
    A(move_protected_parent),
    A(move_three),
    A(move_three_inner),
    A(link_three),
    A(link_git),
    A(tmpfile),
    A(tmpfile_in_hooks),
    ONLY_INSIDE(tmpfile_empty_path),
    A(dir_fd_later),
    A(write),
    A(append),
    A(truncate),
    A(open_truncate),
    A(second_name),
    A(second_truncate),
    A(own_link),
    A(reopen),
    A(reopen_path),
    A(reopen_second),
    A(reopen_truncate),
    A(chmod),
    A(fchmod),
    A(fchmod_second),
    A(fchmodat2),
    A(chmod_proc),
    A(xattr),
    A(fxattr),
    A(unlink),
    A(unlinkat),
    A(replace),
    A(bind),
    A(upper),
    READS(read),
    READS(read_env),
    READS(read_second),
    READS(read_path),
    READS(read_path_second),
    READS(read_link),
    READS(read_link_env),
    READS(read_rename),
    READS(read_rename_dir),
    READS(read_dirfd),
    A(config),
    A(config_rename),
    A(config_link),
    A(config_late_write),
    A(handle),
    A(openat2),
    ONLY_INSIDE(deep),
    A(deep_clean),
    A(whiteout),
    A(temp_name),
    A(child_fd),
    ONLY_INSIDE(core),
    A(nested_mount),
    ONLY_INSIDE(foreign_root),
    A(race_path),
    A(race_link),
    A(race_dup),
    A(race_parent),
    A(kept_renamed),
    A(kept_descriptor),
    A(race_stand),
    A(race_under),
    A(race_kept_link),
    A(race_target),
    A(race_bind),
    A(slow_rename),
};

static int run_attack(void *ctx)
{
    const struct attack *a = ctx;
    umask(022);
    a->run();
    fflush(stdout);
    return 0;
}

static bool attack_works(const struct attack *a, bool guarded, struct box_result *r)
{
    char *ws = box_workspace(), keep[256], hide[256];
    struct box_rule rules[N_RULES];
    memcpy(rules, rules_any, sizeof rules);
    snprintf(keep, sizeof keep, "%s/keep", ws);
    snprintf(hide, sizeof hide, "%s/hide", ws);
    rules[N_RULES - 2].text = keep;
    rules[N_RULES - 1].text = hide;
    prepare(ws);
    unguarded = guarded ? NULL : ws;
    struct box box = {
        .workspace = ws, .rules = rules, .n_rules = N_RULES, .unguarded = !guarded, .reads = a->kind == 1};
    box_run(&box, run_attack, (void *)(uintptr_t)a, r);
    bool yes = harmed(ws);
    if (chdir(ws) == 0)
        (void)!system("rm -rf ddd* 2>/dev/null");
    (void)!chdir("/");
    box_workspace_end(ws);
    return yes;
}

int main(int argc, char **argv)
{
    size_t n = sizeof attacks / sizeof *attacks;
    for (size_t i = 0; i < n; i++) {
        const struct attack *a = &attacks[i];
        if (argc > 1 && strcmp(a->name, argv[1]) != 0)
            continue;
        struct box_result r = {0};
        bool raced = strncmp(a->name, "race", 4) == 0;
        if (argc < 2 && (raced || strncmp(a->name, "slow", 4) == 0) && box_left_to_user())
            continue;
        if (a->kind != 2)
            CHECK(attack_works(a, false, &r), "%s: does not work without the guard (status %d)", a->name, r.status);
        uint64_t from = now_ns();
        CHECK(!attack_works(a, true, &r), "%s: %s (status %d)", a->name, harm, r.status);
        CHECK(r.status == 0, "%s: status %d", a->name, r.status);
        if (raced)
            printf("%s: lost every try in %.1f s\n", a->name, (double)(now_ns() - from) / 1e9);
    }
    return check_report("guard attacks");
}
