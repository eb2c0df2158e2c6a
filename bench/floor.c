/*
 * The floor: the default box made with nothing but the system calls it takes. No C library, no policy, no planning, no
 * words. Its steps are those of the plan that `pinfold explain` prints for the bench's project: bench/bench writes them
 * into floor-plan.h as constants. What pinfold costs above this program is its own work; what this program costs above
 * a bare exec is the kernel's.
 *
 *     floor [-w WORKSPACE] [-r READONLY]... [-n host] -- COMMAND [ARG...]
 *
 * It makes the same three processes as the native engine (docs/INTERNALS.md): the caller waits; a builder with user,
 * mount, network, IPC and UTS namespaces builds the tree and stays as the supervisor of notified calls; pid 1 locks
 * itself down, starts the command and reaps. All three share one memory, which a program without a C library may do.
 *
 * It is no sandbox to be used: the supervisor answers "continue" to whatever it is asked, symbolic links in its
 * arguments are followed, and a failure is a number.
 */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/stat.h>
#include <asm/fcntl.h>
#include <asm/ioctls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/filter.h"
#include "sys/sys.h"
#include "protocol/step.h"

/* One step: what STEPS of protocol/step.h says, with strings and slots in place. */
struct floor_step {
    uint8_t kind, flags;
    uint16_t mode;
    int slot; /* or the resource of RLIMIT */
    const char *path;
    uint64_t value; /* of RLIMIT */
};
#include "floor-plan.h" /* plan[], FLOOR_WORKSPACE, FLOOR_SLOTS */

#define CALL(nr, ...)                    CALL_(SYS_##nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_(nr, a, b, c, d, e, f, ...) sys_raw(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define AT_FDCWD                         -100
#define AT_EMPTY_PATH                    0x1000
#define AT_RECURSIVE                     0x8000
#define MAX_READONLY                     4096

/* ---- what a C library would bring ---- */

void *memset(void *to, int byte, size_t n)
{
    for (char *p = to; n--;)
        *p++ = (char)byte;
    return to;
}
void *memcpy(void *to, const void *from, size_t n)
{
    const char *f = from;
    for (char *p = to; n--;)
        *p++ = *f++;
    return to;
}
static size_t length(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}
static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}
static char *append(char *at, const char *s)
{
    while (*s)
        *at++ = *s++;
    *at = 0;
    return at;
}
static char *append_number(char *at, unsigned long n)
{
    char digits[24], *d = digits + 23;
    *d = 0;
    do
        *--d = (char)('0' + n % 10);
    while (n /= 10);
    return append(at, d);
}

static _Noreturn void leave(int status)
{
    for (;;)
        CALL(exit_group, status);
}
/* "floor: WHERE: ERRNO", status 125. */
static _Noreturn void give_up(const char *where, long error)
{
    char line[160], *at = append(append(append(line, "floor: "), where), ": error ");
    at = append(append_number(at, (unsigned long)-error), "\n");
    CALL(write, 2, line, at - line);
    leave(125);
}
#define MUST(call)                                                                                                     \
    __extension__({                                                                                                    \
        long must_ = (call);                                                                                           \
        if (must_ < 0)                                                                                                 \
            give_up(#call, must_);                                                                                     \
        must_;                                                                                                         \
    })

/* clone or clone3 (their first two arguments) into a function that never returns, on a stack of its own. */
long clone_into(long nr, long a, long b, void (*run)(void *), void *arg);
#if defined __x86_64__
__asm__(".globl clone_into\nclone_into:\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %r9\n xor %edx, %edx\n xor %r10d, %r10d\n"
        "syscall\n test %rax, %rax\n jz 1f\n ret\n"
        "1: xor %ebp, %ebp\n mov %r8, %rdi\n call *%r9\n ud2\n"
        ".globl _start\n_start:\n xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n ud2\n");
#else
__asm__(".globl clone_into\nclone_into:\n"
        "mov x8, x0\n mov x0, x1\n mov x1, x2\n mov x10, x3\n mov x11, x4\n mov x2, #0\n mov x3, #0\n mov x4, #0\n"
        "svc #0\n cbz x0, 1f\n ret\n"
        "1: mov x29, #0\n mov x0, x11\n blr x10\n brk #0\n"
        ".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl start\n brk #0\n");
#endif

#define STACK 65536
static char builder_stack[STACK] __attribute__((aligned(16)));
static char init_stack[STACK] __attribute__((aligned(16)));
static char command_stack[STACK] __attribute__((aligned(16)));

static long clone_on(char *stack, uint64_t flags, void (*run)(void *))
{
    struct clone_args args = {.flags = flags | CLONE_VM,
                              .exit_signal = 17 /* SIGCHLD */,
                              .stack = (uint64_t)(uintptr_t)stack,
                              .stack_size = STACK};
    return clone_into(SYS_clone3, (long)&args, sizeof args, run, NULL);
}
/* The same under the filter, which has no clone3. */
static long vfork_on(char *stack, void (*run)(void *))
{
    return clone_into(SYS_clone, CLONE_VM | CLONE_VFORK | 17, (long)(stack + STACK), run, NULL);
}

/* ---- what is asked ---- */

static struct {
    const char *workspace;
    const char *readonly[MAX_READONLY];
    int n_readonly;
    unsigned long uid, gid;
    bool host_net;
    char **argv, **envp;
} ask;
static int tell[2]; /* the builder sends the status when pid 1, and with it the whole box, is dead; its own end is
                       only the kernel's tidying up, which nobody needs to wait for */
static int pass[2]; /* pid 1 sends the listener to the builder */

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
static int device_slots[sizeof devices / sizeof *devices];
static int readonly_slots[MAX_READONLY];
static int slots[FLOOR_SLOTS + 1];

/* ---- builder ---- */

static void write_file(const char *path, const char *text)
{
    long fd = MUST(CALL(openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC));
    MUST(CALL(write, fd, text, length(text)));
    CALL(close, fd);
}

static void map_ids(unsigned long uid, unsigned long gid)
{
    char line[64];
    write_file("/proc/self/setgroups", "deny");
    append(append_number(append(append_number(line, uid), " "), uid), " 1\n");
    write_file("/proc/self/uid_map", line);
    append(append_number(append(append_number(line, gid), " "), gid), " 1\n");
    write_file("/proc/self/gid_map", line);
}

static int clone_tree(const char *path, bool recursive)
{
    return (int)MUST(
        CALL(open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0)));
}
static void set_attributes(int mount, uint64_t set)
{
    struct mount_attr a = {.attr_set = set, .propagation = 1 << 18 /* MS_PRIVATE */};
    MUST(CALL(mount_setattr, mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof a));
}
static void attach(int mount, const char *to)
{
    MUST(CALL(move_mount, mount, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH));
}

static void enter_root(int root)
{
    attach(root, "/");
    MUST(CALL(fchdir, root));
    MUST(CALL(pivot_root, ".", "."));
    MUST(CALL(umount2, ".", 2 /* MNT_DETACH */));
}

static uint64_t attributes(unsigned flags)
{
    return (flags & STEP_RDONLY ? MOUNT_ATTR_RDONLY : 0) | (flags & STEP_NOSUID ? MOUNT_ATTR_NOSUID : 0) |
           (flags & STEP_NODEV ? MOUNT_ATTR_NODEV : 0) | (flags & STEP_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
}
static unsigned long mount_flags(unsigned flags)
{
    return (flags & STEP_RDONLY ? MS_RDONLY : 0) | (flags & STEP_NOSUID ? MS_NOSUID : 0) |
           (flags & STEP_NODEV ? MS_NODEV : 0) | (flags & STEP_NOEXEC ? MS_NOEXEC : 0);
}

/* The plan's workspace stands for the one that was asked for. */
static const char *place(const char *path)
{
    return ask.workspace && same(path, FLOOR_WORKSPACE) ? ask.workspace : path;
}

/* Makes the directories of `path` that the one made before it did not need. */
static void make_parents(int dir, const char *path, const char *before)
{
    char name[512], *at = name;
    bool known = true;
    for (const char *p = path; *p; p++) {
        known = known && *before && *p == *before++;
        if (*p == '/' && !known)
            CALL(mkdirat, dir, name, 0755);
        *at++ = *p;
        *at = 0;
    }
}

static void make_stub(int dir, const char *name, unsigned stub)
{
    if (stub == STUB_LINK) /* the text follows the name */
        MUST(CALL(symlinkat, name + length(name) + 1, dir, name));
    else if (stub == STUB_ABSENT)
        MUST(CALL(mknodat, dir, name, 0020000 /* S_IFCHR 0/0: a whiteout */, 0));
    else if (stub == STUB_DENIED_DIR || stub == STUB_POINT_DIR)
        MUST(CALL(mkdirat, dir, name, stub == STUB_POINT_DIR ? 0755 : 0));
    else /* the plan's listing does not say what a file of the box's own has in it */
        MUST(CALL(mknodat, dir, name, 0100000 | (stub == STUB_POINT_FILE || stub == STUB_TEXT_FILE ? 0644 : 0), 0));
}

/* A tmpfs of our own for layers and stubs, below what will be the private /tmp: it need not be taken away. */
static int own_layers(void)
{
    MUST(CALL(mount, "own", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"));
    int own = (int)MUST(CALL(openat, AT_FDCWD, "/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC));
    make_stub(own, "denied", STUB_DENIED_DIR);
    make_stub(own, "denied-file", STUB_DENIED_FILE);
    return own;
}

/* A read-only overlay: the first layer stubs, the second the directory itself. Returns the steps it took. */
static size_t veil(int own, const struct floor_step *s)
{
    static char name[] = "a";
    const char *before = "";
    char layers[512];
    MUST(CALL(mkdirat, own, name, 0755));
    int layer = (int)MUST(CALL(openat, own, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
    size_t n = 1;
    bool optional = true; /* all its stubs: left out where mounts lie below */
    for (; s[n].kind == STEP_STUB; n++) {
        optional = optional && s[n].flags & 32;
        make_parents(layer, s[n].path, before);
        before = s[n].path;
        make_stub(layer, s[n].path, s[n].mode);
    }
    char *at = append_number(append(layers, "lowerdir=/proc/self/fd/"), (unsigned long)layer); /* /tmp may be covered */
    append(append(at, ":"), s->path);
    long mounted = CALL(mount, "veil", s->path, "overlay", mount_flags(s->flags), layers);
    if (mounted != -22 /* EINVAL */ || !optional)
        MUST(mounted);
    name[0]++;
    return n;
}

static void deny(int own, const struct floor_step *s)
{
    int stub = (int)MUST(CALL(open_tree, own, s->mode == STUB_DENIED_DIR ? "denied" : "denied-file",
                              OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    set_attributes(stub, MOUNT_ATTR_RDONLY);
    attach(stub, s->path);
    CALL(close, stub);
}

static void devices_at_dev(unsigned flags)
{
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    MUST(CALL(mount, "dev", "/dev", "tmpfs", mount_flags(flags & ~STEP_RDONLY), "mode=755"));
    int dev = (int)MUST(CALL(openat, AT_FDCWD, "/dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        char path[64];
        append(append(path, "/dev/"), devices[i]);
        MUST(CALL(mknodat, AT_FDCWD, path, 0100600, 0));
        attach(device_slots[i], path);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        MUST(CALL(symlinkat, links[i][0], AT_FDCWD, links[i][1]));
    MUST(CALL(mkdirat, AT_FDCWD, "/dev/shm", 0755));
    MUST(CALL(mkdirat, AT_FDCWD, "/dev/pts", 0755));
    if (flags & STEP_RDONLY) {
        struct mount_attr readonly = {.attr_set = MOUNT_ATTR_RDONLY};
        MUST(CALL(mount_setattr, dev, "", AT_EMPTY_PATH, &readonly, sizeof readonly));
    }
    CALL(close, dev);
    MUST(CALL(mount, "shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"));
}

static void tmpfs(const struct floor_step *s)
{
    char mode[16] = "mode=", digits[] = {(char)('0' + (s->mode >> 9 & 7)), (char)('0' + (s->mode >> 6 & 7)),
                                         (char)('0' + (s->mode >> 3 & 7)), (char)('0' + (s->mode & 7)), 0};
    append(mode + 5, digits);
    MUST(CALL(mount, "tmpfs", s->path, "tmpfs", mount_flags(s->flags), mode));
}

static void lo_up(void)
{
    struct { /* struct ifreq, whose header wants a C library */
        char name[16];
        short flags;
        char rest[22];
    } r = {.name = "lo", .flags = 1 /* IFF_UP */};
    long s = MUST(CALL(socket, 2 /* AF_INET */, 2 | O_CLOEXEC, 0));
    MUST(CALL(ioctl, s, 0x8914 /* SIOCSIFFLAGS */, &r));
    CALL(close, s);
}

/* A private layer over a host directory, made while the host's places are still writable; path is
 * "DST\0LOWER\0UPPER\0WORK". */
static int overlay(const struct floor_step *s)
{
    static const char *const keys[] = {"lowerdir", "upperdir", "workdir"};
    const char *value = s->path;
    static int tries;
    int fs = (int)MUST(CALL(fsopen, "overlay", FSOPEN_CLOEXEC));
    MUST(CALL(fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", 0, 0));
    for (int i = 0; i < 3; i++) {
        value += length(value) + 1;
        MUST(CALL(fsconfig, fs, FSCONFIG_SET_STRING, keys[i], value, 0));
    }
    /* Several floors at once work on the same directories, where pinfold has a set for each: one may be in another's way. */
    if (CALL(fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0) < 0) {
        CALL(close, fs);
        if (++tries > 100)
            give_up("overlay", -1);
        return overlay(s);
    }
    int tree = (int)MUST(CALL(fsmount, fs, FSMOUNT_CLOEXEC, attributes(s->flags)));
    CALL(close, fs);
    return tree;
}

/* One private layer over what the step's directory shows by now; path is "DST\0DIRECTORY", of which a clone was taken. */
static const char *layer_of;
static int layer(const struct floor_step *s)
{
    static const char *const keys[] = {"lowerdir+", "upperdir", "workdir"};
    const int fds[] = {(int)MUST(CALL(openat, AT_FDCWD, s->path, O_PATH | O_DIRECTORY | O_CLOEXEC)),
                       (int)MUST(CALL(openat, slots[s->slot], "upper", O_PATH | O_DIRECTORY | O_CLOEXEC)),
                       (int)MUST(CALL(openat, slots[s->slot], "work", O_PATH | O_DIRECTORY | O_CLOEXEC))};
    long e = -1;
    for (int tries = 0; e < 0; tries++) { /* as for overlay() */
        int fs = (int)MUST(CALL(fsopen, "overlay", FSOPEN_CLOEXEC));
        MUST(CALL(fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", 0, 0));
        for (int i = 0; i < 3; i++)
            MUST(CALL(fsconfig, fs, FSCONFIG_SET_FD, keys[i], 0, fds[i]));
        e = CALL(fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
        if (e < 0 && tries > 100)
            give_up("layer", e);
        if (e == 0)
            e = MUST(CALL(fsmount, fs, FSMOUNT_CLOEXEC, attributes(s->flags)));
        CALL(close, fs);
    }
    layer_of = s->path;
    return (int)e;
}

static void part(int layer, const char *path)
{
    int tree = (int)MUST(CALL(open_tree, layer, path + length(layer_of) + 1, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    attach(tree, path);
    CALL(close, tree);
}

/* The clones that must be taken before the root changes and that the plan counts as part of a step. */
static int clones_before(const struct floor_step *root)
{
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        char path[64];
        append(append(path, "/dev/"), devices[i]);
        device_slots[i] = clone_tree(path, false);
    }
    for (int i = 0; i < ask.n_readonly; i++) {
        readonly_slots[i] = clone_tree(ask.readonly[i], true);
        set_attributes(readonly_slots[i], MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID);
    }
    for (const struct floor_step *s = plan; s->kind != STEP_NONE; s++) {
        if (s->kind == STEP_OVERLAY)
            slots[s->slot] = overlay(s);
        if (s->kind == STEP_LAYER)
            slots[s->slot] = clone_tree(s->path + length(s->path) + 1, false);
    }
    int tree = clone_tree("/", true);
    set_attributes(tree, attributes(root->flags));
    return tree;
}

static void build(void)
{
    int root = -1, own = -1, home = -1;
    for (const struct floor_step *s = plan; s->kind != STEP_NONE; s++) {
        switch (s->kind) {
        case STEP_ROOT:
            root = clones_before(s);
            break;
        case STEP_SOURCE:
            slots[s->slot] = clone_tree(place(s->path), true);
            break;
        case STEP_ENTER:
            enter_root(root);
            own = own_layers();
            break;
        case STEP_DEVICES:
            devices_at_dev(s->flags);
            break;
        case STEP_VEIL:
            s += veil(own, s) - 1;
            break;
        case STEP_DENY:
            deny(own, s);
            break;
        case STEP_ATTACH:
            set_attributes(slots[s->slot], attributes(s->flags));
            attach(slots[s->slot], place(s->path));
            break;
        case STEP_OVERLAY:
            attach(slots[s->slot], s->path);
            break;
        case STEP_LAYER:
            home = layer(s);
            break;
        case STEP_PART:
            part(home, s->path);
            break;
        case STEP_TMPFS:
            tmpfs(s);
            break;
        case STEP_DIR:
            MUST(CALL(mkdirat, AT_FDCWD, s->path, s->mode));
            break;
        case STEP_LOOPBACK:
            if (!ask.host_net)
                lo_up();
            break;
        case STEP_HOSTNAME:
            MUST(CALL(sethostname, s->path, length(s->path)));
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < ask.n_readonly; i++)
        attach(readonly_slots[i], ask.readonly[i]);
}

/* Answers until every process under the filter is gone (the listener hangs up). */
static void supervise(int listener)
{
    struct seccomp_notif ask_in;
    struct pollfd {
        int fd;
        short events, revents;
    } p = {.fd = listener, .events = 1 /* POLLIN */};
    CALL(ioctl, listener, _IOW('!', 4, uint64_t) /* NOTIF_SET_FLAGS */, 1 /* SYNC_WAKE_UP */);
    for (;;) {
        long n = CALL(ppoll, &p, 1, 0, 0, 0);
        if (n < 0 && n != -4 /* EINTR */)
            give_up("ppoll", n);
        if (p.revents & 0x10 /* POLLHUP */)
            return;
        memset(&ask_in, 0, sizeof ask_in);
        if (CALL(ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &ask_in) < 0)
            continue;
        struct seccomp_notif_resp answer = {.id = ask_in.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        CALL(ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

/* ---- pid 1 ---- */

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        MUST(CALL(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0));
    MUST(CALL(prctl, PR_SET_SECUREBITS, 0xef /* all and their locks, without KEEP_CAPS */, 0, 0, 0));
    MUST(CALL(capset, &header, none));
}

static int install_filter(uint32_t bits)
{
    struct sock_fprog program = {.len = filters[bits].n};
    const struct sock_filter *code = filter_code + filters[bits].at;
    memcpy(&program.filter, &code, sizeof program.filter);
    uint64_t flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | 32 /* WAIT_KILLABLE_RECV */;
    return (int)MUST(CALL(seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

struct one_fd { /* a control message with one descriptor */
    struct {
        size_t n;
        int level, type;
        int fd, pad;
    } control;
    char byte;
    struct {
        void *at;
        size_t n;
    } data;
    struct {
        void *name;
        int name_n;
        void *data;
        size_t data_n;
        void *control;
        size_t control_n;
        int flags;
    } message;
};
static void one_fd_point(struct one_fd *m, int fd)
{
    memset(m, 0, sizeof *m);
    m->control.n = 20, m->control.level = 1 /* SOL_SOCKET */, m->control.type = 1 /* SCM_RIGHTS */, m->control.fd = fd;
    m->data.at = &m->byte, m->data.n = 1;
    m->message.data = &m->data, m->message.data_n = 1;
    m->message.control = &m->control, m->message.control_n = sizeof m->control;
}

static void run_command(void *unused)
{
    (void)unused;
    char path[512];
    CALL(setsid, 0);
    CALL(close_range, 3, ~0u, 0);
    for (const struct floor_step *s = plan; s->kind != STEP_NONE; s++) {
        uint64_t limit[2] = {s->value, s->value};
        if (s->kind == STEP_RLIMIT && CALL(prlimit64, 0, s->slot, limit, 0) < 0) {
            CALL(prlimit64, 0, s->slot, 0, limit);
            limit[0] = limit[1];
            CALL(prlimit64, 0, s->slot, limit, 0);
        }
    }
    CALL(chdir, ask.workspace ? ask.workspace : FLOOR_WORKSPACE);
    long error = -2;
    const char *name = ask.argv[0], *search = "/usr/local/bin:/usr/bin:/bin";
    for (const char *p = name; *p; p++) {
        if (*p == '/')
            search = "";
    }
    if (!*search)
        error = CALL(execve, name, ask.argv, ask.envp);
    while (*search) {
        char *at = path;
        while (*search && *search != ':')
            *at++ = *search++;
        *at++ = '/';
        append(at, name);
        error = CALL(execve, path, ask.argv, ask.envp);
        search += *search == ':';
    }
    give_up("execve", error);
}

/* What speaks of the machine in /proc becomes read-only: clones taken while all of it is. */
static void lock_proc(void)
{
    static const char *const machine[] = {"/proc/sys",  "/proc/sysrq-trigger", "/proc/irq",  "/proc/bus",
                                          "/proc/fs",   "/proc/acpi",          "/proc/scsi", "/proc/driver",
                                          "/proc/mtrr", "/proc/asound"};
    struct mount_attr on = {.attr_set = MOUNT_ATTR_RDONLY}, off = {.attr_clr = MOUNT_ATTR_RDONLY};
    enum { N = sizeof machine / sizeof *machine };
    long trees[N];
    MUST(CALL(mount_setattr, AT_FDCWD, "/proc", 0, &on, sizeof on));
    for (int i = 0; i < N; i++)
        trees[i] = CALL(open_tree, AT_FDCWD, machine[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    MUST(CALL(mount_setattr, AT_FDCWD, "/proc", 0, &off, sizeof off));
    for (int i = 0; i < N; i++) {
        if (trees[i] >= 0)
            attach((int)trees[i], machine[i]);
    }
}

/* Scopes only: abstract sockets and signals. */
static void restrict_scopes(void)
{
    struct {
        uint64_t files, network, scopes;
    } handled = {0, 0, 3};
    long ruleset = MUST(CALL(landlock_create_ruleset, &handled, sizeof handled, 0));
    MUST(CALL(landlock_restrict_self, ruleset, 0));
    CALL(close, ruleset);
}

static int inside(void)
{
    int listener = -1;
    for (const struct floor_step *s = plan; s->kind != STEP_NONE; s++) {
        switch (s->kind) {
        case STEP_PROC:
            MUST(CALL(mount, "proc", s->path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0));
            break;
        case STEP_PROC_LOCK:
            lock_proc();
            break;
        case STEP_DEVPTS:
            MUST(CALL(mount, "devpts", s->path, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=666,mode=620"));
            break;
        case STEP_MQUEUE:
            MUST(CALL(mount, "mqueue", s->path, "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0));
            break;
        case STEP_KEYRING:
            CALL(keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0);
            break;
        case STEP_NO_CAPS:
            drop_capabilities();
            break;
        case STEP_NO_NEW_PRIVS:
            MUST(CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
            break;
        case STEP_RULESET:
            restrict_scopes();
            break;
        case STEP_UNDUMPABLE:
            MUST(CALL(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
            break;
        case STEP_FILTER:
            listener = install_filter(FILTER_GUARD);
            break;
        default:
            break;
        }
    }
    return listener;
}

static void pid1(void *unused)
{
    (void)unused;
    struct one_fd message;
    CALL(prctl, PR_SET_PDEATHSIG, 9, 0, 0, 0);
    int listener = inside();
    /* The command is on its way before the supervisor wakes up; what it asks meanwhile waits. */
    long child = MUST(vfork_on(command_stack, run_command));
    one_fd_point(&message, listener);
    MUST(CALL(sendmsg, pass[1], &message.message, 0));
    CALL(close, listener);
    for (;;) {
        int status = 0;
        long pid = CALL(wait4, -1, &status, 0x40000000 /* __WALL */, 0);
        if (pid == child)
            leave(status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff);
    }
}

static void builder(void *unused)
{
    (void)unused;
    struct one_fd message;
    CALL(prctl, PR_SET_PDEATHSIG, 9, 0, 0, 0);
    map_ids(ask.uid, ask.gid);
    MUST(CALL(socketpair, 1, 5 | O_CLOEXEC, 0, pass));
    build();
    long init = MUST(clone_on(init_stack, CLONE_NEWPID | CLONE_NEWCGROUP, pid1));
    one_fd_point(&message, -1);
    CALL(close, pass[1]);
    if (CALL(recvmsg, pass[0], &message.message, O_CLOEXEC) == 1)
        supervise(message.control.fd);
    int status = 0;
    CALL(wait4, init, &status, 0x40000000, 0);
    CALL(write, tell[1], &status, sizeof status);
    leave(0);
}

/* ---- the caller ---- */

static void parse(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && !same(argv[i], "--"); i++) {
        if (same(argv[i], "-w") && i + 1 < argc)
            ask.workspace = argv[++i];
        else if (same(argv[i], "-r") && i + 1 < argc && ask.n_readonly < MAX_READONLY)
            ask.readonly[ask.n_readonly++] = argv[++i];
        else if (same(argv[i], "-n") && i + 1 < argc)
            ask.host_net = same(argv[++i], "host");
        else
            give_up("usage: floor [-w DIR] [-r PATH]... [-n host] -- COMMAND", -22);
    }
    if (i + 1 >= argc)
        give_up("no command", -22);
    ask.argv = argv + i + 1;
    ask.envp = argv + argc + 1;
}

__attribute__((used)) _Noreturn void start(long *stack)
{
    parse((int)stack[0], (char **)(stack + 1));
    if (ask.n_readonly > 500) {
        struct {
            uint64_t now, most;
        } limit;
        CALL(prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, &limit);
        limit.now = limit.most;
        CALL(prlimit64, 0, 7, &limit, 0);
    }
    ask.uid = (unsigned long)CALL(geteuid, 0), ask.gid = (unsigned long)CALL(getegid, 0);
    MUST(CALL(pipe2, tell, O_CLOEXEC));
    uint64_t net = ask.host_net ? 0 : CLONE_NEWNET;
    MUST(clone_on(builder_stack, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | net, builder));
    int status = 125 << 8;
    CALL(close, tell[1]);
    CALL(read, tell[0], &status, sizeof status);
    leave(status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff);
}
