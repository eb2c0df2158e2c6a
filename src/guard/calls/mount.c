/*
 * mount and fsopen, in boxes that permit user namespaces. A file system mounted by a nested namespace must contain only
 * its own data: an overlay would make the kernel write to the box's directories, and read from them, without a call
 * that we see. bind, move, remount and propagation add no file system; the filter recognises them by their flags and
 * lets them pass. The type of a new file system is text in the caller's memory, which may change, so the call cannot
 * continue in the kernel: the guard copies the text, judges it, and mounts for the caller.
 *
 * It does so in a new process that shares its memory with nobody, enters the caller's namespaces, and has the caller's
 * capabilities there: so the kernel decides as for the caller. For /proc there is one more process, in the caller's pid
 * namespace, because a proc file system belongs to the namespace of its opener. The caller can see and stop that
 * process, so the worker that waits for it does not receive calls.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "sys/caps.h"
#include "sys/mount.h"
#include "sys/fd.h"
#include "sys/process.h"

/* Flags of mount(2); <sys/mount.h> and the kernel's header exclude each other. */
enum {
    RDONLY = 1,
    SYNCHRONOUS = 16,
    MANDLOCK = 64,
    DIRSYNC = 128,
    LAZYTIME = 1 << 25,
    MAGIC = (int)0xc0ed0000,
    MAGIC_MASK = (int)0xffff0000
};
enum { OPTIONS = 4096 }; /* a page: what the kernel takes */

static const struct mount_kind {
    const char *name;
    const char *space; /* the additional namespace that it belongs to, below /proc/PID/ns */
} kinds[] = {{"tmpfs", NULL}, {"devpts", NULL}, {"proc", "pid"}, {"mqueue", "ipc"}, {"sysfs", "net"}};

struct mounting {
    const struct mount_kind *kind;
    int user, mounts, space; /* of the caller; `space` -1: not needed, or ours */
    uint64_t caps;
    int target; /* where to mount; or -1: the context goes to `into` */
    int into;
    unsigned flags;
    const char *source; /* or NULL */
    char *options;
};

/* ---- in the process that mounts ---- */

/* One option, "key" or "key=value". */
static int set_option(int fs, char *option)
{
    char *value = strchr(option, '=');
    if (value)
        *value++ = 0;
    return sys_fsconfig(fs, value ? SYS_FS_STRING : SYS_FS_FLAG, option, value, 0);
}

/* Options are separated by commas; in tmpfs a comma before a digit belongs to a list of memory nodes. */
static int set_options(int fs, char *text)
{
    int no = 0;
    for (char *p = text, *from = text; no == 0 && p; from = p) {
        do
            p = strchr(p, ',');
        while (p && p[1] >= '0' && p[1] <= '9' && p++);
        if (p)
            *p++ = 0;
        if (*from)
            no = set_option(fs, from);
    }
    return no;
}

static int set_flags(int fs, unsigned flags)
{
    static const struct {
        unsigned bit;
        const char *name;
    } known[] = {
        {RDONLY, "ro"}, {SYNCHRONOUS, "sync"}, {MANDLOCK, "mand"}, {DIRSYNC, "dirsync"}, {LAZYTIME, "lazytime"}};
    int no = 0;
    for (size_t i = 0; no == 0 && i < sizeof known / sizeof *known; i++)
        if (flags & known[i].bit)
            no = sys_fsconfig(fs, SYS_FS_FLAG, known[i].name, NULL, 0);
    return no;
}

/* The same for a single mount: MS_* as MOUNT_ATTR_*. */
static unsigned attributes(unsigned flags)
{
    unsigned a = flags & (SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
    a |= flags & 1u << 24 ? 0x20u : flags & 1024 ? 0x10u : 0; /* strictatime, noatime */
    return a | (flags & 2048 ? 0x80u : 0) | (flags & 256 ? 0x200000u : 0);
}

/* Closes all that it opens: the descriptor table is shared and outlives this process. */
static int mount_now(const struct mounting *m)
{
    auto_fd int fs = sys_fsopen(m->kind->name), made = -1;
    if (fs < 0 || m->target < 0)
        return fs < 0 ? fs : sys_dup3(fs, m->into, O_CLOEXEC);
    int no = m->source ? sys_fsconfig(fs, SYS_FS_STRING, "source", m->source, 0) : 0;
    if (no == 0)
        no = set_flags(fs, m->flags);
    if (no == 0)
        no = set_options(fs, m->options);
    if (no == 0)
        no = sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
    if (no == 0)
        no = made = sys_fsmount(fs, attributes(m->flags));
    return no < 0 ? no : sys_move_mount(made, "", m->target, "", SYS_MOVE_FROM_EMPTY | SYS_MOVE_TO_EMPTY);
}

static void innermost(void *arg)
{
    int no = mount_now(arg);
    sys_exit(no < 0 ? -no : 0);
}

static void within(void *arg)
{
    static _Alignas(16) char stack[32 << 10];
    const struct mounting *m = arg;
    const bool proc = m->space >= 0 && strcmp(m->kind->space, "pid") == 0;
    int no = sys_setns(m->user, CLONE_NEWUSER);
    if (no == 0)
        no = sys_setns(m->mounts, CLONE_NEWNS);
    if (no == 0 && m->space >= 0)
        no = sys_setns(m->space, 0);
    if (no == 0)
        no = sys_caps_keep(m->caps);
    if (no == 0)
        no = proc ? apart_wait(innermost, arg, stack, sizeof stack) : mount_now(m);
    sys_exit(no < 0 ? -no : 0);
}

/* ---- in the guard ---- */

static void spaces_drop(struct mounting *m)
{
    m->user = close_fd(m->user);
    m->mounts = close_fd(m->mounts);
    m->space = close_fd(m->space);
}

/* Whether the caller may mount: it has the capability, in its own mount namespace. */
static int may_mount(struct guard *g, struct mounting *m)
{
    int no = target_caps(g, &m->caps);
    if (no == 0 && !(m->caps >> CAP_ADMIN & 1))
        no = -EPERM;
    if (no == 0)
        no = space_of(g, "user", &m->user);
    if (no == 0)
        no = space_of(g, "mnt", &m->mounts);
    return no < 0 ? no : m->user < 0 || m->mounts < 0 ? -EPERM : 0;
}

static int kind_of(struct guard *g, const char *name, struct mounting *m)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            m->kind = &kinds[i];
    if (!m->kind) {
        (void)deny(g, DENIAL_MOUNT, NULL, str_of(name),
                   "file systems other than tmpfs, proc, devpts, mqueue and sysfs could show hidden files or change "
                   "guarded ones");
        return -EPERM;
    }
    return m->kind->space ? space_of(g, m->kind->space, &m->space) : 0;
}

static int mount_perform(struct guard *g, struct mounting *m)
{
    static _Alignas(16) char stack[32 << 10];
    int no = target_valid(g);
    return no < 0 ? no : apart_wait(within, m, stack, sizeof stack);
}

/* Copies the options, at most a page, up to the first NUL. */
static int options_read(struct guard *g, uint64_t at, char text[OPTIONS])
{
    size_t have = 0;
    text[0] = 0;
    while (at && have < OPTIONS - 1) {
        size_t n = OPTIONS - ((at + have) & (OPTIONS - 1));
        if (n > OPTIONS - 1 - have)
            n = OPTIONS - 1 - have;
        if (target_bytes(g, at + have, text + have, n) < 0)
            break;
        if (memchr(text + have, 0, n))
            return 0;
        have += n;
    }
    text[have] = 0;
    return at && !have ? -EFAULT : 0;
}

/* Opens the directory that the caller names, in its own mount namespace. */
static int target_find_at(struct guard *g, uint64_t path)
{
    int no = target_string(g, path, g->text[0]);
    no = no < 0 ? no : look_found(g, AT_FDCWD, g->text[0], true, false);
    if (no == 0)
        place_drop(&g->from);
    return no;
}

long mount_call(struct guard *g, uint64_t source, uint64_t target, uint64_t type, uint64_t flags, uint64_t data)
{
    char *const name = g->bytes, *const from = name + PATH_MAX;
    struct mounting m = {.user = -1, .mounts = -1, .space = -1, .target = -1, .into = -1, .flags = (unsigned)flags};
    if ((m.flags & (unsigned)MAGIC_MASK) == (unsigned)MAGIC)
        m.flags &= 0xffff;
    int no = may_mount(g, &m);
    if (no == 0)
        no = type ? target_string(g, type, name) : -EINVAL;
    if (no >= 0)
        no = kind_of(g, name, &m);
    if (no == 0 && source)
        no = target_string(g, source, from);
    m.source = source ? from : NULL;
    m.options = from + PATH_MAX;
    if (no >= 0)
        no = options_read(g, data, m.options);
    if (no == 0)
        no = target_find_at(g, target);
    if (no == 0) {
        no = guard_may_block(g);
        if (no == 0) {
            m.target = g->object.fd;
            no = mount_perform(g, &m);
        }
        object_drop(&g->object);
    }
    spaces_drop(&m);
    return no;
}

long fsopen_call(struct guard *g, uint64_t type, unsigned flags)
{
    struct mounting m = {.user = -1, .mounts = -1, .space = -1, .target = -1, .into = -1};
    if (flags & ~1u) /* FSOPEN_CLOEXEC */
        return -EINVAL;
    int no = may_mount(g, &m);
    if (no == 0)
        no = target_string(g, type, g->bytes);
    if (no >= 0)
        no = kind_of(g, g->bytes, &m);
    if (no == 0)
        no = guard_may_block(g);
    if (no == 0) {
        auto_fd int fd = sys_fcntl(g->self_fd, F_DUPFD_CLOEXEC, 0);
        m.into = fd;
        no = fd < 0 ? fd : mount_perform(g, &m);
        if (no == 0)
            no = descriptor_install(g, fd, flags & 1 ? O_CLOEXEC : 0);
    }
    spaces_drop(&m);
    return no;
}
