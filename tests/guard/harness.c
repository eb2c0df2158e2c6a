/* See harness.h. The three processes are those of docs/INTERNALS.md: test (P), builder and guard (B), pid 1 (I). */
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "guard/guard.h"
#include "protocol/notified.h"
#include "protocol/step.h"

int checks, failures;

void check_that(bool holds, const char *file, int line, const char *what, const char *format, ...)
{
    checks++;
    if (holds)
        return;
    failures++;
    fprintf(stderr, "%s:%d: %s", file, line, what);
    if (format[1]) { /* it begins with a space */
        va_list args;
        va_start(args, format);
        fputs(":", stderr);
        vfprintf(stderr, format, args);
        va_end(args);
    }
    fputc('\n', stderr);
}

int check_report(const char *name)
{
    printf("%s: %d checks, %d failures\n", name, checks, failures);
    return failures || !checks;
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- rules ---- */

#define NAME(text, where, dir)                                                                                         \
    {                                                                                                                  \
        GUARD_RULE_NAME, text, where, GUARD_REFUSE, dir, NULL                                                          \
    }
#define NAMES(where)                                                                                                   \
    NAME(".git/hooks", where, true), {GUARD_RULE_NAME, ".git/config", where, GUARD_GIT_CONFIG, false, NULL},           \
        {GUARD_RULE_NAME, ".gitmodules", where, GUARD_GIT_CONFIG, false, NULL},                                        \
        {GUARD_RULE_NAME, "rebase-merge/git-rebase-todo", where, GUARD_GIT_CONFIG, false, NULL},                       \
        {GUARD_RULE_NAME, "rebase-merge/strategy", where, GUARD_GIT_CONFIG, false, NULL},                              \
        {GUARD_RULE_NAME, "rebase-merge/msgnum", where, GUARD_GIT_CONFIG, false, NULL},                                \
        {GUARD_RULE_NAME, "rebase-merge/end", where, GUARD_GIT_CONFIG, false, NULL},                                   \
        {GUARD_RULE_NAME, "rebase-merge/update-refs", where, GUARD_GIT_CONFIG, false, NULL},                           \
        {GUARD_RULE_NAME, "rebase-merge/head-name", where, GUARD_GIT_CONFIG, false, NULL},                             \
        {GUARD_RULE_NAME, "sequencer/opts", where, GUARD_GIT_CONFIG, false, NULL},                                     \
        {GUARD_RULE_NAME, "sequencer/todo", where, GUARD_GIT_CONFIG, false, NULL}, NAME(".husky", where, true),        \
        NAME(".vscode", where, true), NAME(".idea", where, true), NAME(".mcp.json", where, false),                     \
        NAME(".claude", where, true), NAME(".codex", where, true), NAME(".cursor", where, true),                       \
        NAME(".gemini", where, true), NAME(".envrc", where, false), NAME(".bashrc", where, false),                     \
        NAME(".bash_profile", where, false), NAME(".profile", where, false), NAME(".zshrc", where, false),             \
        NAME(".zshenv", where, false), NAME(".vimrc", where, false), NAME(".nvimrc", where, false),                    \
        NAME(".exrc", where, false), NAME(".npmrc", where, false),                                                     \
        NAME(".agent-precommit/user-context.json", where, false), NAME(".devcontainer", where, true),                  \
        NAME(".tool-versions", where, false), NAME(".ripgreprc", where, false), NAME("CLAUDE.local.md", where, false)

const struct box_rule box_default_rules[] = {NAMES(GUARD_ANY_DEPTH)};
const size_t box_default_n = sizeof box_default_rules / sizeof *box_default_rules;
const struct box_rule box_fixed_rules[] = {NAMES(GUARD_ROOT)};
const size_t box_fixed_n = sizeof box_fixed_rules / sizeof *box_fixed_rules;

struct image {
    char *bytes;
    size_t n, strings_at;
};

static uint32_t put(struct image *im, const char *text)
{
    size_t at = im->n, n = strlen(text) + 1;
    memcpy(im->bytes + at, text, n);
    im->n += n;
    return (uint32_t)(at - im->strings_at);
}

static struct plan_image *image_make(const struct box *box)
{
    size_t most = box->n_rules + 3, table = sizeof(struct guard_table) + most * sizeof(struct guard_rule);
    struct image im = {.bytes = calloc(1, sizeof(struct plan_image) + table + (1 << 20))};
    struct plan_image *plan = (void *)im.bytes;
    struct guard_table *t = (void *)(im.bytes + sizeof *plan);
    im.n = im.strings_at = sizeof *plan + table;
    (void)put(&im, "");
    t->rules[t->n_rules++] = (struct guard_rule){.kind = GUARD_RULE_ROOT, .text = put(&im, box->workspace)};
    t->rules[t->n_rules++] = (struct guard_rule){.kind = GUARD_RULE_PRIVATE, .text = put(&im, "/tmp")};
    t->rules[t->n_rules++] = (struct guard_rule){.kind = GUARD_RULE_PRIVATE, .text = put(&im, "/dev/shm")};
    for (size_t i = 0; i < box->n_rules; i++) {
        const struct box_rule *r = &box->rules[i];
        t->rules[t->n_rules] = (struct guard_rule){
            .kind = (uint8_t)r->kind,
            .place = (uint8_t)r->place,
            .judge = (uint8_t)r->judge,
            .flags = (uint8_t)((r->directory ? GUARD_RULE_DIRECTORY : 0) | (r->pattern ? GUARD_RULE_PATTERN : 0)),
            .text = put(&im, r->text),
            .below = put(&im, r->below ? r->below : ""),
            .origin = (uint32_t)i};
        t->n_rules++;
    }
    t->mode = box->mode;
    *plan = (struct plan_image){.magic = PLAN_MAGIC,
                                .bytes = (uint32_t)im.n,
                                .strings_at = (uint32_t)im.strings_at,
                                .strings_bytes = (uint32_t)(im.n - im.strings_at),
                                .guard_at = sizeof *plan,
                                .guard_bytes = (uint32_t)table,
                                .filter = FILTER_GUARD | (box->reads ? FILTER_READS : 0),
                                .namespaces = box->host_network ? 0 : CLONE_NEWNET,
                                .uid = getuid(),
                                .gid = getgid()};
    return plan;
}

/* ---- filter ---- */

struct row {
    long nr;
    unsigned filter, error;
    struct {
        unsigned test, arg, mask, value;
    } when[2];
};
#ifndef OPEN_TREE_CLONE /* glibc before 2.36 */
#define OPEN_TREE_CLONE         1
#define OPEN_TREE_CLOEXEC       O_CLOEXEC
#define MOVE_MOUNT_F_EMPTY_PATH 4
#define MOUNT_ATTR_RDONLY       1
#define MOUNT_ATTR_NOSUID       2
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat    463
#define __NR_getxattrat    464
#define __NR_listxattrat   465
#define __NR_removexattrat 466
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif
#define ROW(...) ROW_(__VA_ARGS__)
#define ROW_(name, bit, error, t1, a1, m1, v1, t2, a2, m2, v2)                                                         \
    {__NR_##name, bit, error, {{t1, a1, m1, v1}, {t2, a2, m2, v2}}},
static const struct row rows[] = {NOTIFIED_COMMON(ROW)
#if defined __x86_64__
                                      NOTIFIED_X86_64(ROW)
#endif
};
#define N_ROWS (sizeof rows / sizeof *rows)

static struct sock_filter code[4096];
static unsigned short code_n;
static void emit(unsigned short op, unsigned k, unsigned char yes, unsigned char no)
{
    code[code_n++] = (struct sock_filter){op, yes, no, k};
}

static unsigned row_length(const struct row *r)
{
    unsigned n = 1;
    for (int i = 0; i < 2; i++)
        n += r->when[i].test == NOTIFIED_TEST_NONE ? 0 : r->when[i].test == NOTIFIED_TEST_IS ? 3 : 2;
    return n;
}

/* One row: conditions jump over what is left of it when they fail. */
static void emit_row(const struct row *r)
{
    unsigned left = row_length(r);
    for (int i = 0; i < 2; i++) {
        unsigned at = (unsigned)offsetof(struct seccomp_data, args) + 8 * r->when[i].arg;
        switch (r->when[i].test) {
        case NOTIFIED_TEST_NONE:
            continue;
        case NOTIFIED_TEST_IS:
            emit(BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
            emit(BPF_ALU | BPF_AND | BPF_K, r->when[i].mask, 0, 0);
            left -= 3;
            emit(BPF_JMP | BPF_JEQ | BPF_K, r->when[i].value, 0, (unsigned char)left);
            continue;
        default:
            emit(BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
            left -= 2;
            if (r->when[i].test == NOTIFIED_TEST_HAS)
                emit(BPF_JMP | BPF_JSET | BPF_K, r->when[i].mask, 0, (unsigned char)left);
            else
                emit(BPF_JMP | BPF_JSET | BPF_K, r->when[i].mask, (unsigned char)left, 0);
        }
    }
    emit(BPF_RET | BPF_K, r->error == NOTIFIED_CALL ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | r->error, 0, 0);
}

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static void filter_make(unsigned bits)
{
    code_n = 0;
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    emit(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    emit(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    emit(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
#if defined __x86_64__
    emit(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    emit(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
#endif
    for (size_t i = 0; i < N_ROWS; i++) {
        size_t end = i;
        unsigned length = 0;
        for (; end < N_ROWS && rows[end].nr == rows[i].nr; end++)
            if (rows[end].filter & bits)
                length += row_length(&rows[end]);
        /* The calls of a group: else over all of it, which may be far. */
        emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rows[i].nr, 1, 0);
        emit(BPF_JMP | BPF_JA, length + 1, 0, 0);
        for (size_t k = i; k < end; k++)
            if (rows[k].filter & bits)
                emit_row(&rows[k]);
        emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
        i = end - 1;
    }
    emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* ---- processes ---- */

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "harness: %s: %s\n", what, strerror(errno));
    _exit(125);
}

static void must(int r, const char *what)
{
    if (r < 0)
        die(what);
}

static void put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die(path);
    close(fd);
}

static void fd_send(int sock, int fd)
{
    char byte = 0;
    struct iovec v = {&byte, 1};
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {0};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    *CMSG_FIRSTHDR(&m) =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
    must((int)sendmsg(sock, &m, 0), "sendmsg");
}

static int fd_receive(int sock)
{
    char byte;
    int fd = -1;
    struct iovec v = {&byte, 1};
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {0};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&m))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

struct cap_header {
    uint32_t version;
    int pid;
};
struct cap_data {
    uint32_t effective, permitted, inheritable;
};
static void caps_keep(uint32_t caps)
{
    struct cap_header h = {0x20080522, 0};
    struct cap_data d[2] = {{caps, caps, 0}, {0, 0, 0}};
    must((int)syscall(SYS_capset, &h, d), "capset");
}

static _Noreturn void pid1(const struct box *box, int sock, int (*inside)(void *), void *ctx)
{
    must(prctl(PR_SET_PDEATHSIG, SIGKILL), "pdeathsig");
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL), "mount /proc");
    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) < 0)
            break;
    caps_keep(0);
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    must(prctl(PR_SET_DUMPABLE, 0), "dumpable");
    struct rlimit none = {0, 0};
    must(setrlimit(RLIMIT_CORE, &none), "RLIMIT_CORE");
    if (!box->unguarded) {
        filter_make(FILTER_GUARD | (box->reads ? FILTER_READS : 0));
        struct sock_fprog prog = {code_n, code};
        unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | (box->quiet ? 0 : 1u << 5);
        int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
        must(fd, "seccomp");
        fd_send(sock, fd);
        close(fd);
    }
    close(sock);
    pid_t command = fork();
    must(command, "fork");
    if (command == 0) {
        must(prctl(PR_SET_DUMPABLE, 1), "dumpable");
        must(setsid(), "setsid");
        must(chdir(box->workspace), "chdir");
        _exit(inside(ctx));
    }
    for (int status;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid == command)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
}

static _Noreturn void builder(const struct box *box, int report, int (*inside)(void *), void *ctx)
{
    char text[64];
    unsigned uid = getuid(), gid = getgid();
    must(prctl(PR_SET_PDEATHSIG, SIGKILL), "pdeathsig");
    must(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | (box->host_network ? 0 : CLONE_NEWNET)), "unshare");
    put_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    put_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    put_file("/proc/self/gid_map", text);
    int host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, box->workspace, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    must(tree, "open_tree");
    struct {
        uint64_t set, clear, propagation, userns;
    } ro = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, MS_PRIVATE, 0};
    must((int)syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &ro, sizeof ro), "mount_setattr");
    must((int)syscall(SYS_move_mount, tree, "", AT_FDCWD, box->workspace, MOVE_MOUNT_F_EMPTY_PATH), "move_mount");
    /* A workspace below /tmp would be covered: it lies elsewhere. */
    must(mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"), "mount /tmp");
    must(mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"), "mount /dev/shm");
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
    int pidfd = -1;
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } how = {.flags = CLONE_NEWPID | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    must(pid, "clone3");
    if (pid == 0) {
        close(pair[0]);
        close(report);
        close(host_proc);
        pid1(box, pair[1], inside, ctx);
    }
    close(pair[1]);
    if (box->unguarded) {
        int status;
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
    }
    int notify = fd_receive(pair[0]);
    close(pair[0]);
    caps_keep(1u << 19); /* CAP_SYS_PTRACE */
    must(notify, "the listener");
    struct guard_ask ask = {image_make(box), notify, host_proc, report, pidfd, .begun = -1};
    int status = guard_serve(&ask);
    if (status < 0) {
        errno = -status;
        die("guard_serve");
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void take_denials(int fd, struct box_result *ret)
{
    struct denial_frame f;
    while (recv(fd, &f, sizeof f, MSG_DONTWAIT) > 0) {
        if (f.kind == FRAME_BUILT || f.kind == FRAME_SEEN) /* no denials: how the box is made, and calls that failed */
            continue;
        if (ret->n_denials < DENIALS_KEPT)
            ret->denials[ret->n_denials] = f;
        ret->n_denials++;
    }
}

void box_run(const struct box *box, int (*inside)(void *ctx), void *ctx, struct box_result *ret)
{
    int report[2], big = 1 << 20, status;
    static struct box_result own;
    if (!ret)
        ret = &own;
    *ret = (struct box_result){0};
    fflush(NULL);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report), "socketpair");
    (void)setsockopt(report[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof big);
    pid_t pid = fork();
    must(pid, "fork");
    if (pid == 0) {
        close(report[0]);
        builder(box, report[1], inside, ctx);
    }
    close(report[1]);
    for (;;) {
        struct pollfd p = {report[0], POLLIN, 0};
        (void)poll(&p, 1, 20);
        take_denials(report[0], ret);
        if (waitpid(pid, &status, WNOHANG) == pid)
            break;
    }
    take_denials(report[0], ret);
    close(report[0]);
    ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (getenv("GUARD_VERBOSE"))
        for (size_t i = 0; i < ret->n_denials && i < DENIALS_KEPT; i++)
            fprintf(stderr, "denied %u: %s: %s\n", ret->denials[i].action, ret->denials[i].text,
                    ret->denials[i].text + strlen(ret->denials[i].text) + 1);
}

static int run_shell(void *ctx)
{
    execl("/bin/bash", "bash", "-c", ctx, (char *)NULL);
    return 127;
}

int box_shell(const struct box *box, const char *command, struct box_result *ret)
{
    static struct box_result own;
    if (!ret)
        ret = &own;
    char *copy = strdup(command);
    box_run(box, run_shell, copy, ret);
    free(copy);
    return ret->status;
}

bool box_denied(const struct box_result *r, const char *path_end)
{
    size_t n = strlen(path_end);
    for (size_t i = 0; i < r->n_denials && i < DENIALS_KEPT; i++) {
        size_t have = strlen(r->denials[i].text);
        if (have >= n && strcmp(r->denials[i].text + have - n, path_end) == 0)
            return true;
    }
    return false;
}

bool box_left_to_user(void)
{
    const char *next = getenv("PINFOLD_TEST_USER"), *all = getenv("PINFOLD_TEST_ALL");
    return geteuid() == 0 && next && *next && !(all && *all == '1');
}

/* Workspaces lie on a tmpfs of the tests' own, where the machine's disk does not spoil the figures. */
static void base_mount(const char *base)
{
    static bool done;
    char text[64];
    unsigned uid = getuid(), gid = getgid();
    if (done || getenv("GUARD_ON_DISK"))
        return;
    done = true;
    must(unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)), "unshare");
    if (uid) {
        put_file("/proc/self/setgroups", "deny");
        snprintf(text, sizeof text, "%u %u 1", uid, uid);
        put_file("/proc/self/uid_map", text);
        snprintf(text, sizeof text, "%u %u 1", gid, gid);
        put_file("/proc/self/gid_map", text);
    }
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount private");
    must(mount("guard", base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700"), "mount tmpfs");
}

char *box_workspace(void)
{
    char base[64];
    snprintf(base, sizeof base, "/var/tmp/pinfold-test-guard-%u", getuid());
    (void)mkdir(base, 0700);
    base_mount(base);
    char *path = malloc(128);
    snprintf(path, 128, "%s/XXXXXX", base);
    if (!mkdtemp(path))
        die("mkdtemp");
    return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    (void)remove(path);
    return 0;
}

void box_workspace_end(char *path)
{
    (void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    free(path);
}
