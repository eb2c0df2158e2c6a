/*
 * The vm engine: qemu's microvm in a box of the native engine. The plan is native's: the box around qemu, whose
 * descriptors qemu uses, decides what of the host may be read, written and reached. In the machine pinfold-init runs
 * the rest of the plan (guest/guest.c): private trees, users, limits, the filter. The bridge connects the two.
 *
 *     pinfold ── bridge ──(serial line)── qemu, in a box ══ pinfold-init, pid 1 of the box, commands
 *        └───────── builder and guard of the box around qemu
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kvm.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "backends/probe.h"
#include "backends/tools/tool.h"
#include "backends/vm/vm.h"
#include "runtime/builder.h"
#include "runtime/runner.h"
#include "match/path.h"
#include "policy/domain.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "protocol/control.h"
#include "protocol/vm.h"
#include "user/packages.h"

#define QEMU            "qemu-system-x86_64"
#define KERNEL_MIB      192 /* of the machine's memory, for its kernel and page cache */
#define DEFAULT_MIB     2048
#define VM_PATIENCE_MS  120000
#define PATIENCE_KVM_MS 30000

/* ---- what is available ---- */

/* /dev/kvm may exist and still not work (nested virtualization): that shows at boot, and is remembered. */
static const char *why_no_kvm(void)
{
    auto_fd int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (kvm < 0)
        return errno == ENOENT ? "there is no /dev/kvm" : "/dev/kvm cannot be opened (sudo usermod -aG kvm $USER)";
    auto_fd int machine = sys_ioctl(kvm, KVM_CREATE_VM, NULL);
    return machine < 0 ? "KVM cannot create a virtual machine here" : NULL;
}

/* Notes, for this boot of the host, that KVM does not work. */
static bool kvm_mark(const char *dir, bool set)
{
    char boot[64] = "", seen[64] = "", path[PATH_MAX];
    auto_fd int id = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (id < 0 || read(id, boot, 36) != 36 || (size_t)snprintf(path, sizeof path, "%s/no-kvm", dir) >= sizeof path)
        return false;
    auto_fd int fd = open(path, (set ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    return set ? write(fd, boot, 36) == 36 : read(fd, seen, 36) == 36 && memcmp(boot, seen, 36) == 0;
}

/*
 * An emulated machine uses this machine's time-stamp counter. If its kernel is told the rate it need not measure it by
 * timer ticks, which come so late on a busy host that it would not boot.
 */
static unsigned tsc_khz(void)
{
#ifdef __x86_64__
    const struct timespec moment = {.tv_nsec = 10000000};
    struct timespec from, to;
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    uint64_t began = __builtin_ia32_rdtsc();
    (void)nanosleep(&moment, NULL);
    uint64_t ended = __builtin_ia32_rdtsc();
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &to);
    int64_t us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    return us > 0 ? (unsigned)((ended - began) * 1000 / (uint64_t)us) : 0;
#else
    return 0;
#endif
}

static const char *state_dir(const struct facts *f, struct arena *mem)
{
    const char *state = getenv("XDG_STATE_HOME");
    if (state && state[0] == '/')
        return arena_printf(mem, "%s/pinfold/vm", state);
    return f->home ? arena_printf(mem, "%s/.local/state/pinfold/vm", f->home) : NULL;
}

static int machine_fact(struct facts *f, struct arena *mem, struct err *e)
{
    struct machine_fact *m = arena_zero(mem, sizeof *m);
    struct sysinfo info;
    if (!m || !f->policy)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "vm");
    const char *dir = state_dir(f, mem), *why = why_no_kvm();
    if (!why && dir && kvm_mark(dir, false))
        why = "KVM was tried, and the virtual machine did not start";
    int r = machine_find(f->policy, why != NULL, mem, m, e);
    if (r < 0)
        return r;
    m->emulated = why;
    m->kvm = !m->emulated;
    m->tsc_khz = m->kvm ? 0 : tsc_khz();
    m->memory_mib = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit >> 21 : 1024;
    if (m->memory_mib > DEFAULT_MIB) /* half of the host's, and no more than a kernel initialises quickly */
        m->memory_mib = DEFAULT_MIB;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    m->cpus = cpus > 0 ? (unsigned)cpus : 1;
    f->machine = m;
    return 0;
}

static int vm_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    int r = native_probe(f, mem, thorough, e);
    f->engine = "vm";
    if (r < 0)
        return r;
    if (f->tier != TIER_NAMESPACES)
        return err_say(e, ERR_CANNOT, "vm runs qemu in a namespace box, and namespaces are refused here: %s",
                       f->why_not[FEATURE_PID_NAMESPACE] ? f->why_not[FEATURE_PID_NAMESPACE] : "by the kernel");
    f->tool = tool_find(mem, QEMU);
    if (!f->tool)
        return err_say(e, ERR_CANNOT, "vm: " QEMU " is not installed (%s)",
                       package_install("qemu-system-x86", (char[PACKAGE_WORDS]){0}));
    r = machine_fact(f, mem, e);
    if (r < 0)
        return r;
    f->can |=
        F(CGROUP_LIMITS) | F(LIMIT_MEMORY) | F(LIMIT_CPU) | F(LIMIT_PROCESSES) | F(LIMIT_DISK) | F(ABSTRACT_SOCKETS);
    f->cgroup = CGROUP_NONE;
    return 0;
}

/* ---- the command line ---- */

static uint64_t memory_mib(const struct plan *p)
{
    const struct limit *l = &p->policy->limits.memory;
    uint64_t most = p->facts->machine->memory_mib, asked = l->value >> 20;
    if (l->value != LIMIT_NONE && (l->asked || asked < most))
        most = asked + (l->value & 0xfffff ? 1 : 0);
    return most + KERNEL_MIB;
}

static unsigned cpus(const struct plan *p)
{
    uint64_t asked = p->policy->limits.cpus.value;
    unsigned most = p->facts->machine->cpus;
    return asked == LIMIT_NONE || (asked + 999) / 1000 > most ? most : (unsigned)((asked + 999) / 1000);
}

/* The published ports of the box, in the order of their rules; returns how many. */
static size_t published(const struct plan *p, uint16_t ports[EGRESS_MAX_REACH])
{
    size_t n = 0;
    for (size_t i = 0; i < p->policy->n_net_rules && n < EGRESS_MAX_REACH; i++) {
        struct publish out;
        const struct net_rule *r = &p->policy->net_rules[i];
        if (r->verb == NET_RULE_PUBLISH && publish_parse(str_of(r->text), &out, NULL) == 0)
            ports[n++] = out.box;
    }
    return n;
}

static void put_network(const struct plan *p, struct tool_words *w)
{
    auto_buf struct buf text = BUF(16u << 10);
    uint16_t ports[EGRESS_MAX_REACH];
    size_t n = published(p, ports);
    buf_text(&text, "user,id=net,ipv6=off");
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, ",hostfwd=tcp:127.0.0.1:%zu-" VM_ADDRESS ":%zu", VM_PUBLISHED + i, VM_PUBLISHED + i);
    tool_two(w, "-netdev", arena_text(w->mem, buf_cstr(&text)));
    tool_two(w, "-device", "virtio-net-device,netdev=net");
}

static bool has_network(const struct plan *p)
{
    uint16_t ports[EGRESS_MAX_REACH];
    return p->policy->net != NET_NONE || published(p, ports) > 0;
}

static int vm_argv(const struct plan *p, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                   struct err *e)
{
    const struct machine_fact *m = p->facts->machine;
    struct tool_words w = {.mem = mem};
    tool_word(&w, ask->program);
    /*
     * qemu before 8.1 translates code without a lock on its page, so that with a thread for each processor a kernel that
     * patches its code while another processor runs it dies ("Fatal exception in interrupt"). One thread for all of
     * them costs what runs at once (ENGINES in the manual), and it holds for every qemu: what a version is, its
     * name does not say.
     */
    tool_two(&w, "-accel", m->kvm ? "kvm" : "tcg,thread=single");
    tool_two(&w, "-cpu", m->kvm ? "host" : "max");
    tool_two(&w, "-M", "microvm,acpi=on,rtc=on");
    tool_two(&w, "-m", arena_printf(mem, "%lluM", (unsigned long long)memory_mib(p)));
    tool_number(&w, "-smp", cpus(p));
    tool_word(&w, "-nodefaults");
    tool_word(&w, "-no-user-config");
    tool_word(&w, "-no-reboot");
    tool_two(&w, "-display", "none");
    tool_two(&w, "-kernel", arena_printf(mem, VM_FILES "/kernel-%s", m->key));
    tool_two(&w, "-initrd", arena_printf(mem, VM_FILES "/initrd-%s", m->key));
    tool_two(&w, "-append",
             arena_printf(mem, "console=ttyS0 quiet panic=-1 reboot=t cryptomgr.notests%s",
                          m->kvm || !m->tsc_khz ? "" : arena_printf(mem, " tsc_early_khz=%u", m->tsc_khz)));
    tool_two(&w, "-chardev", "file,id=console,path=/proc/self/fd/2");
    tool_two(&w, "-serial", "chardev:console");
    tool_two(&w, "-device", "virtio-serial-device");
    tool_two(&w, "-chardev", "socket,id=line,fd=0");
    tool_two(&w, "-device", "virtserialport,chardev=line,name=pinfold");
    tool_two(&w, "-fsdev", "local,id=root,path=/,security_model=none,multidevs=remap");
    tool_two(&w, "-device", "virtio-9p-device,fsdev=root,mount_tag=root");
    if (has_network(p))
        put_network(p, &w);
    const char **end = arena_push(mem, &w.at, &w.n, sizeof *end);
    if (!end || w.failed)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build qemu's command line");
    *ret = w.at;
    return 0;
}

/* ---- two plans ---- */

static struct plan_image *copy_of(const struct plan_image *from)
{
    struct plan_image *to = malloc(from->bytes);
    if (to)
        memcpy(to, from, from->bytes);
    return to;
}

static struct step *steps_in(struct plan_image *p)
{
    return (void *)((char *)p + p->steps_at);
}

/* Whether this step creates a hidden directory with something visible in it: nothing is written there, and 9p shows
   it. */
static bool is_hollow(const struct plan_image *p, const struct step *tmpfs)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; tmpfs->kind == STEP_TMPFS && i < p->n_steps; i++) {
        if (s[i].kind == STEP_READONLY && same(plan_string(p, s[i].a), plan_string(p, tmpfs->a)))
            return true;
    }
    return false;
}

/* Whether `path` is in a tree that the machine creates itself, so that the host's must be attached again. */
static bool in_private(const struct plan_image *p, const char *path)
{
    const struct step *s = plan_steps(p), *tree = NULL; /* the innermost one */
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const char *at = s[i].kind == STEP_TMPFS || s[i].kind == STEP_DEVICES ? plan_string(p, s[i].a) : NULL;
        if (at && path_below(path, at) && (!tree || path_below(at, plan_string(p, tree->a))))
            tree = &s[i];
    }
    return tree && !is_hollow(p, tree);
}

/*
 * The plan of qemu's box, without the limits of single processes, which are the command's. qemu must be able to read
 * the directories it walks through, so a hidden one contains only the names of what is visible in it.
 */
static void image_around(struct plan_image *p)
{
    struct step *s = steps_in(p);
    p->outer = 0;
    p->machine = 1;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        s[i].flags &= (uint8_t)~STEP_TOOL;
        if (s[i].kind == STEP_RLIMIT) {
            s[i].a = RLIMIT_CORE;
            s[i].b = 0;
        }
        if (is_hollow(p, &s[i]) || (s[i].kind == STEP_DIR && !in_private(p, plan_string(p, s[i].a))))
            s[i].mode |= 0444;
    }
}

/* Whether the machine runs steps of this kind itself; results of the others it sees through 9p. */
static bool is_inside(uint8_t kind)
{
    switch (kind) {
    case STEP_TMPFS:
    case STEP_DEVICES:
    case STEP_DIR:
    case STEP_FILE:
    case STEP_SYMLINK:
    case STEP_LOOPBACK:
    case STEP_HOSTNAME:
    case STEP_PROC:
    case STEP_PROC_LOCK:
    case STEP_DEVPTS:
    case STEP_MQUEUE:
    case STEP_KEYRING:
    case STEP_NO_CAPS:
    case STEP_NO_NEW_PRIVS:
    case STEP_UNDUMPABLE:
    case STEP_FILTER:
    case STEP_RLIMIT:
    case STEP_CWD:
        return true;
    default:
        return false;
    }
}

/* /dev is the machine's own, made read-only like the box's once it has what was requested. */
static bool is_devices(const struct plan_image *p, const char *path)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (s[i].kind == STEP_DEVICES && same(plan_string(p, s[i].a), path))
            return true;
    }
    return false;
}

static bool is_seen_in_machine(const struct plan_image *p, const struct step *s)
{
    switch (s->kind) {
    case STEP_TMPFS:
        return is_hollow(p, s);
    case STEP_DIR:
    case STEP_FILE:
    case STEP_SYMLINK:
        return !in_private(p, plan_string(p, s->a));
    case STEP_READONLY:
        return !is_devices(p, plan_string(p, s->a));
    default:
        return !is_inside(s->kind);
    }
}

static void image_within(struct plan_image *p)
{
    struct step *s = steps_in(p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (is_seen_in_machine(p, &s[i]))
            s[i].flags |= STEP_TOOL;
        if (s[i].kind == STEP_FILTER)
            s[i].a &= ~(uint32_t)(FILTER_GUARD | FILTER_READS | FILTER_MONITOR);
        const char *at = s[i].kind == STEP_ATTACH ? plan_string(p, s[i].a) : NULL;
        if (!at || !in_private(p, at) || same(at, VM_FILES) || same(at, "/dev/kvm"))
            continue;
        s[i].flags &= (uint8_t)~STEP_TOOL;
        for (uint32_t k = 0; k < p->n_steps; k++) { /* its source is what the box around the machine has there */
            if (s[k].kind == STEP_SOURCE && s[k].b == s[i].b) {
                s[k].a = s[i].a;
                s[k].flags &= (uint8_t)~STEP_TOOL;
            }
        }
    }
    p->outer = p->namespaces & ~(uint32_t)CLONE_NEWPID;
    p->filter &= ~(uint32_t)(FILTER_GUARD | FILTER_READS | FILTER_MONITOR);
}

/* ---- start ---- */

struct launch {
    const struct start_request *ask;
    struct plan outer;
    struct plan_image *around, *within;
    const char *const *argv;
    int line[2], words[2], control[2];
    struct started box; /* of the native engine */
    int bridge, bridge_pidfd;
};

static void launch_free(struct launch *l)
{
    for (int i = 0; i < 2; i++) {
        sys_drop(&l->line[i]);
        sys_drop(&l->words[i]);
        sys_drop(&l->control[i]);
    }
    free(l->around);
    free(l->within);
}

static struct mux_config config_of(const struct plan *p)
{
    const struct limits *l = &p->policy->limits;
    const uint64_t processes = l->processes.value;
    struct mux_config c = {.magic = MUX_MAGIC,
                           .network = p->policy->net == NET_HOST ? MUX_NET_HOST
                                      : has_network(p)           ? MUX_NET_OWN
                                                                 : MUX_NET_NONE,
                           .memory = l->memory.value,
                           .cpus = l->cpus.value,
                           .processes = processes == LIMIT_NONE ? LIMIT_NONE : processes + 2, /* builder and pid 1 */
                           .seconds = (int64_t)time(NULL)};
    (void)published(p, c.published);
    return c;
}

static _Noreturn void bridge_child(struct launch *l)
{
    struct bridge b = {.control = l->control[1],
                       .box = l->box.control,
                       .line = l->line[0],
                       .words = l->words[0],
                       .stdio = {l->ask->stdio[0], l->ask->stdio[1], l->ask->stdio[2]},
                       .ask = l->ask,
                       .guest = l->within,
                       .config = config_of(l->ask->plan)};
    int keep[8] = {b.control, b.box, b.line, b.words, b.stdio[0], b.stdio[1], b.stdio[2], -1};
    for (int i = 0; i < 3; i++) { /* each lane owns its descriptor, and two may be the same */
        if (b.stdio[i] >= 0)
            keep[4 + i] = b.stdio[i] = sys_fcntl(b.stdio[i], F_DUPFD_CLOEXEC, 3);
    }
    if (close_others(keep, 8) < 0)
        sys_exit(125);
    for (int s = 1; s < 32; s++)
        (void)sys_signal_default(s);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sys_sigmask(SIG_SETMASK, 0);
    (void)sys_setpgid(0, 0);
    if (l->ask->parent_death_signal)
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    bridge_main(&b);
}

static int launch_parts(struct launch *l, struct arena *mem, struct err *e)
{
    const struct plan *p = l->ask->plan;
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    l->around = copy_of(p->image);
    l->within = copy_of(p->image);
    if (!l->around || !l->within)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "vm");
    image_around(l->around);
    image_within(l->within);
    l->outer = *p;
    l->outer.image = l->around;
    l->outer.env = (const char **)(uintptr_t)env;
    const struct tool_ask tool = {.program = p->facts->tool};
    int r = vm_argv(p, &tool, mem, &l->argv, e);
    if (r < 0)
        return r;
    r = sys_socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->line);
    if (r == 0)
        r = sys_fcntl(l->line[0], F_SETFL, O_RDWR | O_NONBLOCK);
    if (r == 0)
        r = sys_pipe(l->words, O_CLOEXEC);
    if (r == 0)
        r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l->control);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "vm: cannot create a socket pair") : 0;
}

/* Starts the native box with qemu in it, and the bridge. */
static int launch_run(struct launch *l, struct err *e)
{
    struct start_request ask = *l->ask;
    ask.plan = &l->outer;
    ask.argv = l->argv;
    ask.stdio[0] = l->line[1];
    ask.stdio[1] = ask.stdio[2] = l->words[1];
    ask.tty = false;
    ask.umask = 0; /* processes in the machine have their own */
    int r = engine_native.start(&ask, &l->box, e);
    sys_drop(&l->line[1]);
    sys_drop(&l->words[1]);
    if (r < 0)
        return r;
    const struct sys_clone how = {.flags = SYS_CLONE_PIDFD | SYS_CLONE_CLEAR_SIGHAND,
                                  .pidfd = (uint64_t)(uintptr_t)&l->bridge_pidfd};
    l->bridge = sys_clone3(&how);
    if (l->bridge == 0)
        bridge_child(l);
    sys_drop(&l->control[1]);
    sys_drop(&l->line[0]);
    sys_drop(&l->words[0]);
    l->box.control = sys_shut(l->box.control); /* the bridge's now: closing it ends the box */
    return l->bridge < 0 ? err_sys(e, ERR_SYSTEM, -l->bridge, "vm: cannot start the bridge") : 0;
}

/* The last lines of output; only pinfold-init's own if there are any. */
static void put_words(struct err *e, const char *text)
{
    static const char init[] = "pinfold-init: ";
    const char *own = strstr(text, init);
    if (own) {
        own += sizeof init - 1;
        (void)err_hint(e, 0, "it said: %.*s", (int)strcspn(own, "\n"), own);
        return;
    }
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    size_t from = n;
    for (int lines = 0; from > 0 && lines < 4; from--)
        lines += text[from - 1] == '\n' && n - from > 0;
    from += from > 0;
    if (n > from)
        (void)err_hint(e, 0, "it said: %.*s", (int)(n - from), text + from);
    for (char *p = e ? e->text : NULL; p && (p = strchr(p, '\n'));)
        *p = ' ';
}

/* Waits for the bridge's message, or a verdict of the box around qemu. */
static int launch_wait(struct launch *l, bool kvm, struct err *e)
{
    const int patience = kvm ? PATIENCE_KVM_MS : VM_PATIENCE_MS;
    struct bridge_word w;
    sigset_t waiting;
    for (int waited = 0; waited < patience; waited += 100) {
        struct pollfd p[2] = {{.fd = l->control[0], .events = POLLIN}, {.fd = l->box.builder, .events = POLLIN}};
        const struct timespec moment = {.tv_nsec = 100000000};
        struct frame f = {0};
        int n = sys_poll(p, 2, &moment);
        if (n < 0 && n != -EINTR)
            return err_sys(e, ERR_SYSTEM, -n, "vm: cannot wait for the machine");
        if (p[1].revents && sys_recv(l->box.builder, &f, sizeof f, MSG_DONTWAIT) == (long)sizeof f &&
            f.kind == FRAME_VERDICT)
            return engine_verdict(&l->outer, f.a, (int)f.b, e);
        /* What qemu is refused in the box around it is of no interest to the person; left there, it would end the wait. */
        if (p[0].revents) {
            int fd = -1;
            long got = sys_recv_fd(l->control[0], &w, sizeof w, &fd, 0);
            if (got == (long)sizeof w && w.kind == FRAME_READY)
                return 0;
            int r = got == (long)sizeof w ? engine_verdict(&l->outer, w.a, (int)w.b, e)
                                          : err_say(e, ERR_SYSTEM, "the bridge to the virtual machine ended");
            w.text[sizeof w.text - 1] = 0;
            if (got == (long)sizeof w && w.a == WHERE_MACHINE) /* a step of the plan needs no further text */
                put_words(e, w.text);
            return r;
        }
        if (sigpending(&waiting) == 0 && (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 ||
                                          sigismember(&waiting, SIGHUP) == 1))
            return err_sys(e, ERR_SYSTEM, EINTR, "cannot start the virtual machine");
    }
    return err_sys(e, ERR_CANNOT, ETIME, "the virtual machine did not start");
}

static void vm_finish(struct started *s)
{
    siginfo_t info;
    s->control = sys_shut(s->control); /* the bridge closes the box around qemu */
    engine_native.finish(s);
    if (s->tool_pidfd >= 0) {
        (void)sys_pidfd_kill(s->tool_pidfd, SIGKILL);
        while (sys_waitid(SYS_OF_PIDFD, s->tool_pidfd, &info, WEXITED | __WALL) == -EINTR)
            ;
        s->tool_pidfd = sys_shut(s->tool_pidfd);
    }
    s->tool = 0;
}

static int launch(const struct start_request *ask, bool kvm, struct started *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(8u << 20);
    struct launch l = {.ask = ask,
                       .line = {-1, -1},
                       .words = {-1, -1},
                       .control = {-1, -1},
                       .box = {.pidfd = -1, .control = -1, .builder = -1},
                       .bridge_pidfd = -1};
    int r = mem ? launch_parts(&l, mem, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "vm");
    if (r == 0)
        r = launch_run(&l, e);
    if (r == 0)
        r = launch_wait(&l, kvm, e);
    struct started s = {.pid = l.box.pid,
                        .pidfd = l.box.pidfd,
                        .control = sys_taken(&l.control[0]),
                        .builder = l.box.builder,
                        .tool = l.bridge > 0 ? l.bridge : 0,
                        .tool_pidfd = l.bridge_pidfd,
                        .tool_output = -1};
    launch_free(&l);
    if (r == 0)
        *ret = s;
    else
        vm_finish(&s);
    return r;
}

static int vm_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(512u << 20);
    const struct plan *p = ask->plan;
    const struct machine_fact *m = p->facts->machine;
    const char *dir = mem && p->facts->state_home ? arena_printf(mem, "%s/pinfold/vm", p->facts->state_home) : NULL;
    if (!dir)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "vm");
    int r = machine_files(m, dir, mem, e);
    if (r == 0)
        r = launch(ask, m->kvm, ret, e);
    if (r == 0 || !m->kvm || e->no == EINTR)
        return r;
    (void)kvm_mark(dir, true); /* a machine that does not start with KVM here will start emulated: plan again */
    return -ENGINE_STALE;
}

const struct engine engine_vm = {.name = "vm",
                                 .program = QEMU,
                                 .package = "qemu-system-x86",
                                 .probe = vm_probe,
                                 .argv = vm_argv,
                                 .start = vm_start,
                                 .finish = vm_finish};
