/*
 * pinfold-init as the first process of a virtual machine. It loads the modules from the initramfs, mounts what the host
 * shares (9p: the files as the box around the machine sees them), sets up the network, and starts the plan's box inside
 * as pinfold-init does elsewhere: a builder, and below it pid 1 of a pid namespace, which serves jobs
 * (runtime/session.c). Then it only relays jobs, frames and data between pid 1 and the line to the host (pump/pump.h).
 *
 * The host is trusted here, commands are not: they run in the pid namespace, without capabilities, under the plan's
 * filter, and see nothing of this process, the initramfs or the machine's devices.
 */
#include "guest/guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/builder.h"
#include "pump/pump.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "sys/tty.h"
#include "protocol/job.h"
#include "protocol/vm.h"

struct job_state {
    uint32_t number;
    int reply;
    bool tty, no_echo;
    bool ending, told;    /* ending: `last` is sent once its output has been; told: for a terminal, it was */
    unsigned long killed; /* processes of the box killed for lack of memory, before it began */
    struct frame last;
};

struct guest {
    struct pump pump;
    struct mux_config config;
    struct plan_image *plan;
    int control, report; /* of pid 1, and of the builder */
    struct job_state *jobs;
    size_t n_jobs;
};

/* Prints on the console, which the host shows if the machine does not start, and stops. */
static _Noreturn void stop(const char *what, int no)
{
    fprintf(stderr, "pinfold-init: %s%s%s\n", what, no ? ": " : "", no ? strerror(no) : "");
    fflush(stderr);
    sync();
    (void)reboot(RB_AUTOBOOT);
    for (;;)
        pause();
}

static void mount_or_stop(const char *what, const char *where, const char *type, unsigned long flags, const char *data)
{
    (void)mkdir(where, 0755);
    if (mount(what, where, type, flags, data) < 0)
        stop(where, errno);
}

/* ---- the machine ---- */

static void load_modules(void)
{
    char path[64];
    for (int i = 0;; i++) {
        unsigned char head[4] = {0};
        snprintf(path, sizeof path, "/modules/%02d", i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        bool plain = read(fd, head, 4) == 4 && memcmp(head, "\177ELF", 4) == 0;
        /* MODULE_INIT_COMPRESSED_FILE (Linux 5.17): the kernel unpacks it */
        if (syscall(SYS_finit_module, fd, "", plain ? 0 : 4) < 0 && errno != EEXIST)
            stop(path, errno);
        (void)close(fd);
        (void)unlink(path); /* frees its memory for the box */
    }
}

static int open_line(void)
{
    for (int tries = 0; tries < 2000; tries++) {
        int fd = open("/dev/vport0p1", O_RDWR | O_CLOEXEC | O_NONBLOCK);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (fd >= 0) {
            while (poll(&p, 1, 10) >= 0 && p.revents & POLLHUP) { /* the host has not opened its end yet */
                struct timespec moment = {.tv_nsec = 2000000};
                (void)nanosleep(&moment, NULL);
            }
            return fd;
        }
        struct timespec moment = {.tv_nsec = 5000000};
        (void)nanosleep(&moment, NULL);
    }
    stop("no connection to the host", 0);
}

static void address(struct sockaddr *to, const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
        stop("an address", EINVAL);
    memcpy(to, &in, sizeof in);
}

/* Configures qemu's user network: fixed addresses, no DHCP. */
static void network_up(void)
{
    struct ifreq r = {.ifr_name = "eth0"};
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    address(&r.ifr_addr, VM_ADDRESS);
    int e = s < 0 ? -1 : ioctl(s, SIOCSIFADDR, &r);
    address(&r.ifr_netmask, "255.255.255.0");
    if (e == 0)
        e = ioctl(s, SIOCSIFNETMASK, &r);
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    if (e == 0)
        e = ioctl(s, SIOCSIFFLAGS, &r);
    address(&route.rt_gateway, VM_GATEWAY);
    address(&route.rt_dst, "0.0.0.0");
    address(&route.rt_genmask, "0.0.0.0");
    if (e == 0)
        e = ioctl(s, SIOCADDRT, &route);
    if (e < 0)
        stop("the network", errno);
    (void)close(s);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        stop(path, errno);
    (void)close(fd);
}

/* For limits below the machine's size: a control group of the box. */
static void group_make(const struct mux_config *c)
{
    char text[64];
    mount_or_stop("cgroup2", "/group", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    write_text("/group/cgroup.subtree_control", "+memory +pids +cpu");
    if (mkdir("/group/box", 0755) < 0)
        stop("/group/box", errno);
    if (c->memory != UINT64_MAX) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)c->memory);
        write_text("/group/box/memory.max", text);
    }
    if (c->processes != UINT64_MAX) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)c->processes);
        write_text("/group/box/pids.max", text);
    }
    if (c->cpus != UINT64_MAX) {
        snprintf(text, sizeof text, "%llu 100000", (unsigned long long)c->cpus * 100);
        write_text("/group/box/cpu.max", text);
    }
}

/* ---- the box ---- */

static void resolver_here(void)
{
    int fd = open("/resolv.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const char text[] = "nameserver " VM_RESOLVER "\noptions timeout:5 attempts:2\n";
    if (fd < 0 || write(fd, text, sizeof text - 1) != sizeof text - 1 || close(fd) < 0)
        stop("/resolv.conf", errno);
    if (mount("/resolv.conf", "/root/etc/resolv.conf", NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
        stop("/etc/resolv.conf", errno);
}

/* Mounts the machine's file systems under the names they have in the box. */
static void mount_files(const struct mux_config *c)
{
    mount_or_stop("root", "/root", "9p", MS_NOSUID, "trans=virtio,version=9p2000.L,msize=512000,cache=mmap");
    if (c->network)
        resolver_here();
    mount_or_stop("dev", "/root/dev", "devtmpfs", MS_NOSUID, NULL);
    mount_or_stop("proc", "/root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    (void)mount("sys", "/root/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL);
}

static int no_guard(struct builder *b, int notify, int host_proc, int init)
{
    (void)b;
    (void)notify;
    (void)host_proc;
    (void)init;
    return -EBADMSG; /* a machine's plan has none: the guard is in the box around it */
}

static _Noreturn void builder_main(struct guest *g, int control, int report)
{
    static struct builder b;
    int *slots = calloc(runner_room(g->plan) + 1, sizeof *slots);
    write_text("/group/box/cgroup.procs", "0");
    if (!slots || unshare(CLONE_NEWNS) < 0 || chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 ||
        chroot(".") < 0)
        stop("the files of the host", errno);
    builder_begin(&b, g->plan, slots);
    b.foreign = true;
    b.supervise = no_guard;
    b.control = control;
    b.report = report;
    b.job = (struct job){.stdio = {-1, -1, -1}, .stdin_at = -1, .umask = 022};
    int e = builder_forget(&b);
    if (e < 0)
        builder_give_up(&b, WHERE_CHILD, e);
    builder_run(&b);
}

static void box_start(struct guest *g)
{
    int control[2], report[2];
    if (sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
        sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
        stop("a socket pair", 0);
    int pid = fork();
    if (pid == 0)
        builder_main(g, control[1], report[1]);
    if (pid < 0)
        stop("fork", errno);
    (void)close(control[1]);
    (void)close(report[1]);
    g->control = control[0];
    g->report = report[0];
}

/* ---- jobs ---- */

/* Number of processes of the box that the kernel killed for lack of memory. */
static unsigned long killed_for_memory(void)
{
    char text[512];
    own_fd int fd = open("/group/box/memory.events", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    const char *p = strstr(text, "oom_kill ");
    return p ? strtoul(p + 9, NULL, 10) : 0;
}

static struct job_state *job_of(const struct guest *g, uint32_t number)
{
    for (size_t i = 0; i < g->n_jobs; i++) {
        if (g->jobs[i].number == number)
            return &g->jobs[i];
    }
    return NULL;
}

static void job_remove(struct guest *g, struct job_state *j)
{
    sys_drop(&j->reply);
    *j = g->jobs[--g->n_jobs];
}

static int tell_host(struct guest *g, uint32_t job, const struct frame *f)
{
    return pump_send(&g->pump, MUX_FRAME, job, 0, f, sizeof *f, NULL, 0);
}

static int refuse(struct guest *g, uint32_t job, int no)
{
    const struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_CHILD, .b = (uint32_t)no};
    return tell_host(g, job, &f);
}

/* Sends FRAME_EXEC to pid 1, with the image in a memfd. */
static int send_exec(const struct guest *g, const void *image, uint32_t n, const int *fds, int n_fds)
{
    struct frame f = {.kind = FRAME_EXEC, .a = n, .b = 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(JOB_FDS * sizeof(int))];
    } c = {.bytes = {0}};
    int all[JOB_FDS];
    own_fd int file = (int)syscall(SYS_memfd_create, "job", 1 /* MFD_CLOEXEC */);
    if (file < 0 || write(file, image, n) != (ssize_t)n)
        return -ENOMEM;
    all[0] = file;
    memcpy(all + 1, fds, (size_t)n_fds * sizeof *fds);
    struct iovec v = {&f, sizeof f};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &c,
                       .msg_controllen = CMSG_SPACE((size_t)(n_fds + 1) * sizeof(int))};
    c.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN((size_t)(n_fds + 1) * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&c.head), all, (size_t)(n_fds + 1) * sizeof(int));
    long r = sys_sendmsg(g->control, &m, MSG_NOSIGNAL);
    return r < 0 ? (int)r : 0;
}

/* Pipes for a job's streams that are no terminal: pid 1's ends go to `theirs`, `*n` of them; ours become lanes. */
static int job_pipes(struct guest *g, uint32_t job, uint32_t flags, int *theirs, int *n)
{
    int back = -1, e = 0;
    for (int i = 0; e == 0 && i < 3; i++) {
        int ends[2];
        const bool both = i == 0 && flags & JOB_DUPLEX;
        if (!(job_streams(flags) >> i & 1))
            continue;
        if (i == 2 && flags & JOB_ONE_OUTPUT) { /* shares standard output's */
            e = theirs[*n] = sys_fcntl(theirs[*n - 1], F_DUPFD_CLOEXEC, 3);
            *n += e >= 0;
            e = e < 0 ? e : 0;
            continue;
        }
        e = both ? sys_socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : sys_pipe(ends, O_CLOEXEC);
        if (e < 0)
            return e;
        theirs[(*n)++] = ends[i != 0];
        if (both)
            e = back = sys_fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
        if (e >= 0)
            e = pump_lane(&g->pump, job, (enum mux_stream)i, i != 0, ends[i == 0]);
        else
            sys_shut(ends[1]);
    }
    return e == 0 && back >= 0 ? pump_lane(&g->pump, job, MUX_BACK, true, back) : e;
}

static int job_start(struct guest *g, uint32_t number, const void *image, uint32_t n)
{
    const struct job_image *j = image;
    int fds[4] = {-1, -1, -1, -1}, reply[2] = {-1, -1}, n_fds = 1;
    if (job_image_check(image, n) < 0 || job_of(g, number))
        return -EBADMSG;
    struct job_state *grown = realloc(g->jobs, (g->n_jobs + 1) * sizeof *grown);
    if (!grown)
        return refuse(g, number, ENOMEM);
    g->jobs = grown;
    bool tty = j->flags & JOB_TTY;
    int e = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reply);
    fds[0] = reply[1];
    if (e == 0)
        e = job_pipes(g, number, j->flags, fds, &n_fds);
    if (e == 0)
        e = send_exec(g, image, n, fds, n_fds);
    for (int i = 0; i < 4; i++)
        sys_shut(fds[i]);
    if (e < 0) {
        sys_shut(reply[0]);
        pump_close(&g->pump, number);
        return refuse(g, number, -e);
    }
    g->jobs[g->n_jobs++] = (struct job_state){.number = number,
                                              .reply = reply[0],
                                              .tty = tty,
                                              .no_echo = j->flags & JOB_NO_ECHO,
                                              .killed = killed_for_memory()};
    return 0;
}

static int take_terminal(struct guest *g, const struct job_state *j, int master)
{
    const tcflag_t echo = ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
    struct termios t;
    if (j->no_echo && sys_tty_modes(master, &t) == 0) {
        t.c_lflag &= ~echo;
        (void)sys_tty_set_modes(master, &t);
    }
    int second = sys_fcntl(master, F_DUPFD_CLOEXEC, 3);
    int e = pump_lane(&g->pump, j->number, MUX_TTY_OUT, true, master);
    if (e == 0)
        e = pump_lane(&g->pump, j->number, MUX_TTY_IN, false, second);
    else
        sys_shut(second);
    return e;
}

/* If a peer exits with unread frames of ours, the first read gives ECONNRESET, before what it had still sent: how a
   command ended. */
static long receive_frame(int from, struct frame *f, int *ret_fd)
{
    long n;
    do
        n = sys_recv_fd(from, f, sizeof *f, ret_fd, MSG_DONTWAIT);
    while (n == -ECONNRESET || n == -EINTR);
    return n;
}

/* A frame of pid 1 about one job. */
static int job_hear(struct guest *g, struct job_state *j)
{
    struct frame f;
    int fd = -1;
    long n = receive_frame(j->reply, &f, &fd);
    if (n == -EAGAIN)
        return 0;
    if (n != (long)sizeof f) {
        sys_shut(fd);
        j->reply = sys_shut(j->reply);
        if (!j->ending && !j->told)
            j->last = (struct frame){.kind = FRAME_VERDICT, .a = WHERE_CHILD, .b = EIO};
        j->ending = true;
        return 0;
    }
    if (f.kind == FRAME_TTY && fd >= 0) {
        int e = take_terminal(g, j, fd);
        return e < 0 ? refuse(g, j->number, -e) : tell_host(g, j->number, &f);
    }
    sys_shut(fd);
    if (f.kind == FRAME_EXIT) { /* first its last output */
        j->last = f;
        j->last.stdin_at = -1;
        j->ending = true;
        return 0;
    }
    f.stdin_at = -1;
    return tell_host(g, j->number, &f);
}

/* Reports the exits of commands whose output has been read. */
static int jobs_end(struct guest *g)
{
    int e = 0;
    for (size_t i = g->n_jobs; e == 0 && i-- > 0;) {
        struct job_state *j = &g->jobs[i];
        if (!j->ending || !pump_quiet(&g->pump, j->number))
            continue;
        sync(); /* makes written files visible on the host */
        if (j->last.kind == FRAME_EXIT && killed_for_memory() > j->killed)
            j->last.c = EXIT_MEMORY;
        uint32_t number = j->number;
        e = j->told ? 0 : tell_host(g, number, &j->last);
        if (j->tty && !j->told && j->reply >= 0) { /* pid 1 keeps its terminal until the host has read it */
            j->ending = false;
            j->told = true;
            continue;
        }
        job_remove(g, j);
        pump_close(&g->pump, number);
    }
    return e;
}

static int on_message(void *ctx, const struct mux_head *h, void *p)
{
    struct guest *g = ctx;
    struct job_state *j = job_of(g, h->job);
    struct frame f;
    switch (h->kind) {
    case MUX_CONFIG:
        if (g->plan || !(g->plan = malloc(h->n)))
            return -EBADMSG;
        memcpy(&g->config, p, sizeof g->config);
        memcpy(g->plan, (char *)p + sizeof g->config, h->n - sizeof g->config);
        return g->config.magic == MUX_MAGIC && plan_image_check(g->plan, h->n - sizeof g->config) == 0 ? 0 : -EBADMSG;
    case MUX_JOB:
        return g->plan ? job_start(g, h->job, p, h->n) : -EBADMSG;
    case MUX_FRAME:
        memcpy(&f, p, sizeof f);
        if (j && j->reply >= 0)
            (void)sys_send_fd(j->reply, &f, sizeof f, -1, MSG_DONTWAIT);
        return 0;
    case MUX_GONE: /* the caller of the job is gone: pid 1 ends it */
        if (j) {
            job_remove(g, j);
            pump_close(&g->pump, h->job);
        }
        return 0;
    default:
        return -EBADMSG;
    }
}

/* ---- all of it ---- */

/* Handles frames of the builder and of pid 1 itself; -EPIPE when the box has ended. */
static int box_hear(struct guest *g, int from)
{
    struct frame f;
    int fd = -1;
    long n = receive_frame(from, &f, &fd);
    if (n == -EAGAIN)
        return 0;
    sys_shut(fd);
    return n == (long)sizeof f ? tell_host(g, 0, &f) : -EPIPE;
}

static int serve(struct guest *g)
{
    struct pollfd *p = NULL;
    for (int e = 0; e == 0;) {
        struct pollfd *grown = realloc(p, (g->n_jobs + 2) * sizeof *grown);
        bool ending = false;
        size_t n = g->n_jobs;
        if (!grown)
            return -ENOMEM;
        p = grown;
        p[0] = (struct pollfd){.fd = g->report, .events = POLLIN};
        p[1] = (struct pollfd){.fd = g->control, .events = POLLIN};
        for (size_t i = 0; i < n; i++) {
            p[2 + i] = (struct pollfd){.fd = g->jobs[i].reply, .events = POLLIN};
            ending |= g->jobs[i].ending;
        }
        e = pump_turn(&g->pump, p, (unsigned)n + 2, ending ? 1 : -1);
        for (size_t i = n; e == 0 && i-- > 0;) {
            if (p[2 + i].revents && i < g->n_jobs && g->jobs[i].reply == p[2 + i].fd)
                e = job_hear(g, &g->jobs[i]);
        }
        if (e == 0 && p[0].revents)
            e = box_hear(g, g->report);
        if (e == 0 && p[1].revents)
            e = box_hear(g, g->control);
        if (e == 0)
            e = jobs_end(g);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (e < 0)
            return e;
    }
    return 0;
}

_Noreturn void guest_main(void)
{
    static struct guest g = {.control = -1, .report = -1};
    struct mux_hello hello = {.magic = MUX_MAGIC, .version = PINFOLD_VERSION};
    (void)umask(0);
    mount_or_stop("dev", "/dev", "devtmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR | O_CLOEXEC);
    for (int i = 0; console >= 0 && i < 3; i++)
        (void)dup2(console, i);
    (void)signal(SIGPIPE, SIG_IGN);
    mount_or_stop("proc", "/proc", "proc", 0, NULL);
    load_modules();
    pump_begin(&g.pump, open_line(), true, &g, on_message);
    int e = pump_send(&g.pump, MUX_HELLO, 0, 0, &hello, sizeof hello, NULL, 0);
    while (e == 0 && !g.plan)
        e = pump_turn(&g.pump, NULL, 0, -1);
    if (e < 0)
        stop("cannot communicate with the host", -e);
    const struct timeval now = {.tv_sec = g.config.seconds};
    (void)settimeofday(&now, NULL);
    int up = loopback_up();
    if (up < 0)
        stop("lo", -up);
    if (g.config.network)
        network_up();
    e = g.config.network ? guest_reach(g.plan, g.config.published) : 0;
    if (e < 0)
        stop("services of the host's, and published ports", -e);
    group_make(&g.config);
    e = g.config.network == MUX_NET_HOST ? guest_loopback("/group/box") : 0;
    if (e < 0)
        stop("net host: the way to the host's 127.0.0.1, for which the kernel needs CONFIG_CGROUP_BPF", -e);
    mount_files(&g.config);
    box_start(&g);
    e = serve(&g);
    stop("the box has ended", e == -EPIPE ? 0 : -e);
}
