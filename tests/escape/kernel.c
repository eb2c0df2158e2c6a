/*
 * Attacks on the kernel's wider surface. Each makes a call in a form that does no harm where it is permitted: the wrong
 * magic number, no module, an unknown command. What counts is whether the call passed the question "may you?": everything
 * but EPERM, EACCES and ENOSYS means that it did.
 */
#include "attack.h"
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define OP(name)         static int name(int n __attribute__((unused)), char **args __attribute__((unused)))
#define AT_RECURSIVE_ALL 0x8000
#define TREE_CLONE       1

static int passed(long r)
{
    if (r >= 0)
        return 0;
    return errno == EPERM || errno == EACCES || errno == ENOSYS ? -errno : 0;
}
/* Runs in a child, so that what it wins (a namespace) does not change the rest of the attack. */
static int in_child(int (*what)(void *), void *arg)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(-what(arg));
    int status = 0;
    if (waitpid(pid, &status, 0) != pid)
        return -errno;
    if (WIFSIGNALED(status)) {
        (void)kill(getpid(), WTERMSIG(status));
        return -EINTR;
    }
    return -WEXITSTATUS(status);
}

/* ---- namespaces */
static int do_unshare(void *flags)
{
    return done(unshare((int)(intptr_t)flags));
}
OP(op_unshare_user)
{
    return in_child(do_unshare, (void *)(intptr_t)CLONE_NEWUSER);
}
OP(op_unshare_mount)
{
    return in_child(do_unshare, (void *)(intptr_t)CLONE_NEWNS);
}
OP(op_unshare_net)
{
    return in_child(do_unshare, (void *)(intptr_t)CLONE_NEWNET);
}
OP(op_unshare_user_mount)
{
    return in_child(do_unshare, (void *)(intptr_t)(CLONE_NEWUSER | CLONE_NEWNS));
}
OP(op_clone_user)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    (void)waitpid((pid_t)pid, NULL, 0);
    return 0;
}
OP(op_clone3_user)
{
    struct clone_args c = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &c, sizeof c);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    (void)waitpid((pid_t)pid, NULL, 0);
    return 0;
}

/* ---- mounts */
OP(op_mount_tmpfs)
{
    return done(mount("none", args[0], "tmpfs", 0, NULL));
}
OP(op_mount_bind)
{
    return done(mount(args[0], args[1], NULL, MS_BIND, NULL));
}
OP(op_mount_proc)
{
    return done(mount("proc", args[0], "proc", 0, NULL));
}
OP(op_remount_rw)
{
    return done(mount(NULL, args[0], NULL, MS_REMOUNT | MS_BIND, NULL));
}
OP(op_umount)
{
    return done(umount2(args[0], MNT_DETACH));
}
OP(op_open_tree)
{
    return done_fd((int)syscall(SYS_open_tree, AT_FDCWD, args[0], TREE_CLONE | AT_RECURSIVE_ALL));
}
OP(op_move_mount)
{
    return passed(syscall(SYS_move_mount, AT_FDCWD, args[0], AT_FDCWD, args[1], 0));
}
OP(op_fsopen)
{
    return done_fd((int)syscall(SYS_fsopen, "tmpfs", 0));
}
OP(op_fspick)
{
    return done_fd((int)syscall(SYS_fspick, AT_FDCWD, args[0], 0));
}
OP(op_mount_setattr)
{
    struct {
        uint64_t set, clear, propagation, userns;
    } attr = {.clear = 1 /* MOUNT_ATTR_RDONLY */};
    return done(syscall(SYS_mount_setattr, AT_FDCWD, args[0], AT_RECURSIVE_ALL, &attr, sizeof attr));
}
OP(op_pivot_root)
{
    return passed(syscall(SYS_pivot_root, args[0], args[0]));
}
OP(op_chroot)
{
    return done(chroot(args[0]));
}

/* ---- programs and memory of the kernel */
OP(op_bpf)
{
    union bpf_attr attr = {0};
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4;
    attr.value_size = 8;
    attr.max_entries = 1;
    return passed(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}
OP(op_perf)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK};
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return passed(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}
OP(op_io_uring)
{
    char params[120] = {0};
    return passed(syscall(SYS_io_uring_setup, 4, params));
}
OP(op_userfaultfd)
{
    return passed(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
}
OP(op_kexec)
{
    return passed(syscall(SYS_kexec_load, 0, 0, NULL, 7));
}
OP(op_kexec_file)
{
    return passed(syscall(SYS_kexec_file_load, -1, -1, 0, "", 7));
}
OP(op_init_module)
{
    return passed(syscall(SYS_init_module, NULL, 0, ""));
}
OP(op_finit_module)
{
    return passed(syscall(SYS_finit_module, -1, "", 0));
}
OP(op_delete_module)
{
    return passed(syscall(SYS_delete_module, "pinfold_no_such_module", O_NONBLOCK));
}
OP(op_syslog)
{
    char text[256];
    return passed(syscall(SYS_syslog, 3, text, sizeof text));
}
OP(op_syslog_clear)
{
    return passed(syscall(SYS_syslog, 8 /* console level */, NULL, 99));
}

/* ---- the machine */
OP(op_reboot)
{
    return passed(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x12345678, NULL));
}
OP(op_swapon)
{
    return passed(syscall(SYS_swapon, "/pinfold/no/such/swap", 0));
}
OP(op_swapoff)
{
    return passed(syscall(SYS_swapoff, "/pinfold/no/such/swap"));
}
OP(op_acct)
{
    return passed(syscall(SYS_acct, "/pinfold/no/such/file"));
}
OP(op_quotactl)
{
    return passed(syscall(SYS_quotactl, 0x80000200 /* Q_QUOTAON */, "/pinfold/no/such/disk", 0, NULL));
}
OP(op_settime)
{
    struct timespec now = {0}; /* the time that is already: a step of a microsecond at most */
    clock_gettime(CLOCK_REALTIME, &now);
    return passed(syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
}
OP(op_adjtime)
{
    union {
        unsigned modes;
        char room[256];
    } timex = {0};
    if (syscall(SYS_adjtimex, &timex) < 0) /* modes 0 only asks */
        return -errno;
    timex.modes = 0x0010; /* ADJ_STATUS: the status that is there already */
    return passed(syscall(SYS_adjtimex, &timex));
}
OP(op_sethostname)
{
    char name[256];
    gethostname(name, sizeof name);
    return passed(syscall(SYS_sethostname, name, strlen(name)));
}
OP(op_vhangup)
{
    return passed(syscall(SYS_vhangup));
}
OP(op_fanotify)
{
    return passed(syscall(SYS_fanotify_init, 0x0000000c /* FAN_CLASS_PRE_CONTENT */, O_RDONLY));
}
OP(op_name_to_handle)
{
    char room[256] = {0};
    int mount_id;
    *(unsigned *)(void *)room = 128;
    return passed(syscall(SYS_name_to_handle_at, AT_FDCWD, args[0], room, &mount_id, 0));
}
OP(op_open_by_handle)
{
    char room[256] = {0};
    int mount_id;
    *(unsigned *)(void *)room = 128;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, args[0], room, &mount_id, 0) < 0) {
        /* Refused here already, or a file system without handles: ask with a made-up one. */
        unsigned *head = (unsigned *)(void *)room;
        head[0] = 8;
        head[1] = 1;
    }
    int root = open("/", O_RDONLY | O_DIRECTORY);
    return passed(syscall(SYS_open_by_handle_at, root, room, O_RDONLY));
}
OP(op_personality_old)
{
    /* PER_LINUX32 with an old release number and executable data: widens what exploits can use. */
    return passed(syscall(SYS_personality, 0x0008 | READ_IMPLIES_EXEC | UNAME26 | ADDR_COMPAT_LAYOUT));
}

/* ---- keyrings (the kernel does not put them in namespaces) */
OP(op_add_key)
{
    return passed(syscall(SYS_add_key, "user", "pinfold:attack", "x", 1, -3 /* session */));
}
OP(op_keyctl_user_ring)
{
    /* KEYCTL_GET_KEYRING_ID of the user's keyring: shared by all of this user's processes. */
    return passed(syscall(SYS_keyctl, 0, -4, 0));
}
OP(op_keyctl_read)
{
    char text[256] = "";
    long r = syscall(SYS_keyctl, 11 /* KEYCTL_READ */, atoi(args[0]), text, sizeof text - 1);
    if (r < 0)
        return -errno;
    fprintf(stderr, "leak: %s\n", text);
    return 0;
}
OP(op_request_key)
{
    long r = syscall(SYS_request_key, "user", args[0], NULL, 0);
    if (r < 0)
        return -errno;
    char *parts[] = {(char[32]){0}};
    snprintf(parts[0], 32, "%ld", r);
    return op_keyctl_read(1, parts);
}

/* ---- doors of other instruction sets */
OP(op_i386_unshare)
{
#if defined __x86_64__
    pid_t pid = fork();
    if (pid == 0) {
        int r;
        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"(310 /* unshare */), "b"(0x10000000 /* CLONE_NEWUSER */)
                         : "memory");
        _exit(r < 0 ? -r : 0);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGSEGV) {
            cannot_why = "this kernel has no i386 entry";
            return CANNOT;
        }
        return -EPERM; /* killed for it */
    }
    return -WEXITSTATUS(status);
#else
    cannot_why = "no second instruction set here";
    return CANNOT;
#endif
}
OP(op_i386_getpid)
{
#if defined __x86_64__
    pid_t pid = fork();
    if (pid == 0) {
        int r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20 /* getpid */) : "memory");
        _exit(r < 0 ? -r : 0);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGSEGV) {
            cannot_why = "this kernel has no i386 entry";
            return CANNOT;
        }
        return -EPERM;
    }
    return -WEXITSTATUS(status);
#else
    cannot_why = "no second instruction set here";
    return CANNOT;
#endif
}
OP(op_x32)
{
#if defined __x86_64__
    return done(syscall(0x40000000 + 39 /* getpid */));
#else
    cannot_why = "no second instruction set here";
    return CANNOT;
#endif
}
OP(op_iopl)
{
#ifdef SYS_iopl
    return passed(syscall(SYS_iopl, 3));
#else
    cannot_why = "no ports on this machine";
    return CANNOT;
#endif
}
OP(op_ioperm)
{
#ifdef SYS_ioperm
    return passed(syscall(SYS_ioperm, 0x80, 1, 1));
#else
    cannot_why = "no ports on this machine";
    return CANNOT;
#endif
}
OP(op_modify_ldt)
{
#ifdef SYS_modify_ldt
    char room[64];
    return passed(syscall(SYS_modify_ldt, 0, room, sizeof room));
#else
    cannot_why = "no descriptor tables on this machine";
    return CANNOT;
#endif
}

/* ---- capabilities */
OP(op_capset)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    data[0].effective = data[0].permitted = data[0].inheritable = 1u << CAP_SYS_CHROOT;
    return done(syscall(SYS_capset, &head, data));
}
OP(op_bounding)
{
    for (int cap = 0; cap < 64; cap++) {
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            return 0;
    }
    return -EPERM;
}
OP(op_new_privs)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -EPERM : 0;
}
/* Memory that the kernel itself is kept out of; and pages of other processes' choice. */
OP(op_move_pages)
{
    void *page = NULL;
    int status = 0;
    return done(syscall(SYS_move_pages, atoi(args[0]), 1, &page, NULL, &status, 0));
}
OP(op_lookup_cookie)
{
#ifdef SYS_lookup_dcookie
    char room[64];
    return passed(syscall(SYS_lookup_dcookie, 1ull, room, sizeof room));
#else
    cannot_why = "this kernel never had it";
    return CANNOT;
#endif
}

const struct entry kernel_entries[] = {
    {"unshare-user", 0, op_unshare_user},
    {"unshare-mount", 0, op_unshare_mount},
    {"unshare-net", 0, op_unshare_net},
    {"unshare-user-mount", 0, op_unshare_user_mount},
    {"clone-user", 0, op_clone_user},
    {"clone3-user", 0, op_clone3_user},
    {"mount-tmpfs", 1, op_mount_tmpfs},
    {"mount-bind", 2, op_mount_bind},
    {"mount-proc", 1, op_mount_proc},
    {"remount-rw", 1, op_remount_rw},
    {"umount", 1, op_umount},
    {"open-tree", 1, op_open_tree},
    {"move-mount", 2, op_move_mount},
    {"fsopen", 0, op_fsopen},
    {"fspick", 1, op_fspick},
    {"mount-setattr", 1, op_mount_setattr},
    {"pivot-root", 1, op_pivot_root},
    {"chroot", 1, op_chroot},
    {"bpf", 0, op_bpf},
    {"perf", 0, op_perf},
    {"io-uring", 0, op_io_uring},
    {"userfaultfd", 0, op_userfaultfd},
    {"kexec", 0, op_kexec},
    {"kexec-file", 0, op_kexec_file},
    {"init-module", 0, op_init_module},
    {"finit-module", 0, op_finit_module},
    {"delete-module", 0, op_delete_module},
    {"syslog", 0, op_syslog},
    {"syslog-clear", 0, op_syslog_clear},
    {"reboot", 0, op_reboot},
    {"swapon", 0, op_swapon},
    {"swapoff", 0, op_swapoff},
    {"acct", 0, op_acct},
    {"quotactl", 0, op_quotactl},
    {"settime", 0, op_settime},
    {"adjtime", 0, op_adjtime},
    {"sethostname", 0, op_sethostname},
    {"vhangup", 0, op_vhangup},
    {"fanotify", 0, op_fanotify},
    {"name-to-handle", 1, op_name_to_handle},
    {"open-by-handle", 1, op_open_by_handle},
    {"personality-old", 0, op_personality_old},
    {"add-key", 0, op_add_key},
    {"keyctl-user-ring", 0, op_keyctl_user_ring},
    {"keyctl-read", 1, op_keyctl_read},
    {"request-key", 1, op_request_key},
    {"i386-unshare", 0, op_i386_unshare},
    {"i386-getpid", 0, op_i386_getpid},
    {"x32", 0, op_x32},
    {"iopl", 0, op_iopl},
    {"ioperm", 0, op_ioperm},
    {"modify-ldt", 0, op_modify_ldt},
    {"capset", 0, op_capset},
    {"bounding", 0, op_bounding},
    {"new-privs", 0, op_new_privs},
    {"move-pages", 1, op_move_pages},
    {"lookup-cookie", 0, op_lookup_cookie},
    {NULL, 0, NULL},
};
