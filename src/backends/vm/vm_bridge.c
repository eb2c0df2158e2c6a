/*
 * The bridge between pinfold and a virtual machine: a process on the host, outside of the box around qemu. It plays the
 * part of pid 1 towards pinfold (frames and descriptors of protocol/control.h) and speaks protocol/mux.h with
 * pinfold-init in the machine. What it reads there may be hostile: it trusts no number, opens no file, and starts
 * nothing.
 *
 * It exits, and the machine with it, when pinfold says so or exits, when qemu exits, or when the line closes.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "backends/vm/vm.h"
#include "pump/pump.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "sys/tty.h"
#include "protocol/control.h"
#include "protocol/job.h"

#define MAX_ERRNO 4095 /* of Linux */

/* The only path that may be opened, for terminals. The filter compares its address. */
static const char ptmx[] = "/dev/ptmx";

struct bridge_job {
    uint32_t number;
    int reply; /* owned; the control stream itself for the one command of a plain run */
    bool tty, ending;
    bool shown; /* its terminal has one here */
    struct frame last;
};

struct bridging {
    const struct bridge *ask;
    struct pump pump;
    struct bridge_job *jobs;
    size_t n_jobs;
    uint32_t next;
    bool hello, up; /* up: pinfold was told */
    char text[900]; /* the last output of qemu and the console */
    size_t n_text;
};

/* A failure before the machine is up is reported with its text; later the stream just closes. */
static _Noreturn void leave_machine(struct bridging *b, uint32_t where, int no)
{
    struct bridge_word w = {.kind = FRAME_VERDICT, .a = where, .b = (uint32_t)no};
    if (!b->up) {
        memcpy(w.text, b->text, b->n_text);
        (void)sys_send_fd(b->ask->control, &w, sizeof w, -1, 0);
    }
    sys_exit(no ? 125 : 0);
}

static void tell_machine(int to, const struct frame *f, int fd)
{
    (void)sys_send_fd(to, f, sizeof *f, fd, 0);
}

/* ---- sending ---- */

static void keep_words(struct bridging *b)
{
    char text[512];
    long n = sys_read(b->ask->words, text, sizeof text);
    for (long i = 0; i < n; i++) {
        char c = text[i] == '\n' || (text[i] >= ' ' && text[i] < 127) ? text[i] : ' ';
        if (b->n_text == sizeof b->text - 1) {
            memmove(b->text, b->text + 1, --b->n_text);
        }
        b->text[b->n_text++] = c;
    }
}

/* ---- jobs ---- */

static struct bridge_job *job_of(const struct bridging *b, uint32_t number)
{
    for (size_t i = 0; i < b->n_jobs; i++) {
        if (b->jobs[i].number == number)
            return &b->jobs[i];
    }
    return NULL;
}

static void job_end(struct bridging *b, struct bridge_job *j)
{
    uint32_t number = j->number;
    if (j->reply != b->ask->control)
        sys_drop(&j->reply);
    *j = b->jobs[--b->n_jobs];
    pump_close(&b->pump, number);
}

/* Starts a job: its image, and the descriptors of its streams, which become lanes. `reply` and `fds` are owned. */
static int job_begin(struct bridging *b, const struct job_image *image, int reply, const int *fds)
{
    int back = -1, at = 0;
    struct bridge_job *grown = realloc(b->jobs, (b->n_jobs + 1) * sizeof *grown);
    uint32_t number = ++b->next;
    int e = grown ? 0 : -ENOMEM;
    if (grown)
        b->jobs = grown;
    if (e == 0 && image->flags & JOB_DUPLEX)
        e = back = sys_fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++) {
        if (!(job_streams(image->flags) >> i & 1))
            continue;
        if (e >= 0 && !(i == 2 && image->flags & JOB_ONE_OUTPUT))
            e = pump_lane(&b->pump, number, (enum mux_stream)i, i == 0, fds[at++]);
        else
            sys_shut(fds[at++]);
    }
    if (e >= 0 && back >= 0)
        e = pump_lane(&b->pump, number, MUX_BACK, false, sys_taken(&back));
    sys_shut(back);
    if (e >= 0)
        e = pump_send(&b->pump, MUX_JOB, number, 0, image, image->bytes, NULL, 0);
    if (e >= 0)
        b->jobs[b->n_jobs++] = (struct bridge_job){.number = number, .reply = reply, .tty = image->flags & JOB_TTY};
    else
        pump_close(&b->pump, number);
    return e;
}

/* The job's terminal is in the machine; a raw pseudo-terminal of the host represents it. */
static int terminal_for(struct bridging *b, const struct bridge_job *j)
{
    const struct frame f = {.kind = FRAME_TTY};
    struct termios t;
    int pty[2], unlock = 0, e = pty[0] = sys_openat(AT_FDCWD, ptmx, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
    if (e >= 0)
        e = sys_ioctl(pty[0], TIOCSPTLCK, &unlock);
    if (e >= 0)
        e = pty[1] = (int)sys_call(SYS_ioctl, pty[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (e < 0) {
        sys_shut(pty[0]);
        return e;
    }
    e = sys_tty_modes(pty[1], &t);
    if (e == 0) {
        t.c_iflag = t.c_oflag = t.c_lflag = 0;
        t.c_cflag |= CS8;
        t.c_cc[VMIN] = 1;
        t.c_cc[VTIME] = 0;
        e = sys_tty_set_modes(pty[1], &t);
    }
    int second = e < 0 ? e : sys_fcntl(pty[1], F_DUPFD_CLOEXEC, 3);
    if (second < 0) {
        sys_shut(pty[0]);
        sys_shut(pty[1]);
        return second;
    }
    tell_machine(j->reply, &f, pty[0]);
    sys_shut(pty[0]);
    e = pump_lane(&b->pump, j->number, MUX_TTY_OUT, false, pty[1]);
    int e2 = pump_lane(&b->pump, j->number, MUX_TTY_IN, true, second);
    return e < 0 ? e : e2;
}

/* ---- from the machine ---- */

static int greet(struct bridging *b, const void *p)
{
    struct mux_hello hello;
    memcpy(&hello, p, sizeof hello);
    if (b->hello || hello.magic != MUX_MAGIC || strncmp(hello.version, PINFOLD_VERSION, sizeof hello.version) != 0)
        return -EBADMSG;
    b->hello = true;
    return pump_send(&b->pump, MUX_CONFIG, 0, 0, &b->ask->config, sizeof b->ask->config, b->ask->guest,
                     b->ask->guest->bytes);
}

static int begin_command(struct bridging *b)
{
    const struct start_request *ask = b->ask->ask;
    const struct job_parts parts = {.argv = ask->argv,
                                    .envp = (const char *const *)ask->plan->env,
                                    .flags =
                                        job_flags(ask->tty, ask->stdio) | (ask->tty && ask->no_echo ? JOB_NO_ECHO : 0),
                                    .umask = ask->umask,
                                    .rows = ask->rows,
                                    .columns = ask->columns};
    auto_buf struct buf image = BUF(JOB_MAX_BYTES + 1);
    int fds[3] = {-1, -1, -1}, n = 0, e = job_image_write(&parts, &image);
    for (int i = 0; i < 3; i++) {
        if (b->ask->stdio[i] >= 0)
            fds[n++] = b->ask->stdio[i];
    }
    return e < 0 ? e : job_begin(b, (const void *)image.p, b->ask->control, fds);
}

/* A frame of the builder or pid 1 in the machine. */
static int box_frame(struct bridging *b, const struct frame *f)
{
    const struct bridge_word w = {.kind = FRAME_READY};
    if (f->kind == FRAME_VERDICT)
        leave_machine(b, f->a, (int)f->b);
    if (f->kind != FRAME_READY || b->up)
        return f->kind == FRAME_GONE ? -EPIPE : 0;
    int e = b->ask->ask->argv ? begin_command(b) : 0;
    if (e < 0)
        leave_machine(b, WHERE_CHILD, -e);
    (void)sys_send_fd(b->ask->control, &w, sizeof w, -1, 0);
    b->up = true;
    if (!b->ask->ask->argv)
        tell_machine(b->ask->control, f, -1);
    return 0;
}

/*
 * What a machine says of a start that failed. Of its own places and errors alone: for those of the box around it pinfold plans anew and runs
 * the command once more (backends/failure.c), which no machine may bring about.
 */
static struct frame verdict_of(const struct frame *f)
{
    const bool known =
        f->a == WHERE_CHILD || f->a == WHERE_STDIO || f->a == WHERE_PTY || f->a == WHERE_CHECK || f->a == WHERE_CWD;
    struct frame said = {.kind = FRAME_VERDICT, .a = known ? f->a : WHERE_CHILD, .b = f->b, .stdin_at = -1};
    if (said.b == 0 || said.b == ENGINE_STALE || said.b > MAX_ERRNO)
        said.b = EIO;
    return said;
}

static int job_frame(struct bridging *b, struct bridge_job *j, const struct frame *f)
{
    if (f->kind == FRAME_TTY) { /* once: there are few terminals, for all users of the host */
        if (!j->tty || j->shown)
            return -EBADMSG;
        j->shown = true;
        return terminal_for(b, j);
    }
    if (f->kind == FRAME_EXIT) { /* after its last output is delivered */
        j->last = *f;
        j->last.stdin_at = -1;
        j->ending = true;
        return 0;
    }
    struct frame said = *f;
    said.stdin_at = -1;
    switch (f->kind) {
    case FRAME_STARTED:
    case FRAME_EXEC_FAILED:
    case FRAME_STOPPED:
    case FRAME_EXIT:
        tell_machine(j->reply, &said, -1);
        return 0;
    case FRAME_VERDICT:
        said = verdict_of(f);
        tell_machine(j->reply, &said, -1);
        return 0;
    default:
        return -EBADMSG;
    }
}

static int on_message(void *ctx, const struct mux_head *h, void *p)
{
    struct bridging *b = ctx;
    struct bridge_job *j = job_of(b, h->job);
    struct frame f;
    if (h->kind == MUX_HELLO)
        return greet(b, p);
    if (h->kind != MUX_FRAME || !b->hello)
        return -EBADMSG;
    memcpy(&f, p, sizeof f);
    return h->job == 0 ? box_frame(b, &f) : j ? job_frame(b, j, &f) : 0;
}

/* ---- from pinfold ---- */

struct bridge_arrival {
    struct frame frame;
    char image[JOB_INLINE];
};

static void take_exec(struct bridging *b, const struct bridge_arrival *a, long n, const int *fds, int n_fds)
{
    const bool apart = a->frame.b == 1;
    const int first = apart ? 1 : 0;
    auto_buf struct buf whole = BUF(JOB_MAX_BYTES + 1);
    const void *image = a->image;
    uint32_t bytes = (uint32_t)(n - (long)sizeof a->frame);
    if (apart && n_fds > 0) {
        char *at = a->frame.a <= JOB_MAX_BYTES ? buf_space(&whole, a->frame.a) : NULL;
        long got = at ? sys_pread(fds[0], at, a->frame.a, 0) : -1;
        image = at;
        bytes = got == (long)a->frame.a ? a->frame.a : 0;
        sys_shut(fds[0]);
    }
    const struct job_image *j = image;
    int reply = n_fds > first ? fds[first] : -1, e = -EBADMSG;
    if (bytes && image && job_image_check(image, bytes) == 0 && n_fds == first + 1 + (int)job_n_streams(j->flags))
        e = job_begin(b, image, reply, fds + first + 1);
    else
        for (int i = first + 1; i < n_fds; i++)
            sys_shut(fds[i]);
    if (e < 0 && reply >= 0) {
        const struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_CHECK, .b = (uint32_t)-e};
        tell_machine(reply, &f, -1);
        sys_shut(reply);
    }
}

/* Handles a frame; false: the box must end. */
static bool obey(struct bridging *b)
{
    static struct bridge_arrival a;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(JOB_FDS * sizeof(int))];
    } c = {.bytes = {0}};
    struct iovec v = {&a, sizeof a};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_LEN(JOB_FDS * sizeof(int))};
    int fds[JOB_FDS], n_fds = 0;
    long n = sys_recvmsg(b->ask->control, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == -EAGAIN || n == -EINTR)
        return true;
    if (n < (long)sizeof a.frame || a.frame.kind == FRAME_END)
        return false;
    if (m.msg_controllen >= CMSG_LEN(0) && c.head.cmsg_type == SCM_RIGHTS) {
        n_fds = (int)((c.head.cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(&c.head), (size_t)n_fds * sizeof(int));
    }
    if (a.frame.kind == FRAME_EXEC) {
        take_exec(b, &a, n, fds, n_fds);
        return true;
    }
    for (int i = 0; i < n_fds; i++)
        sys_shut(fds[i]);
    if ((a.frame.kind == FRAME_SIGNAL || a.frame.kind == FRAME_WINSIZE) && b->n_jobs && b->ask->ask->argv)
        (void)pump_send(&b->pump, MUX_FRAME, b->jobs[0].number, 0, &a.frame, sizeof a.frame, NULL, 0);
    return true;
}

/* Handles a message from the caller of a job. */
static void hear_reply(struct bridging *b, struct bridge_job *j)
{
    struct frame f;
    int fd = -1;
    long n = sys_recv_fd(j->reply, &f, sizeof f, &fd, MSG_DONTWAIT);
    sys_shut(fd);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n == (long)sizeof f) {
        (void)pump_send(&b->pump, MUX_FRAME, j->number, 0, &f, sizeof f, NULL, 0);
        return;
    }
    (void)pump_send(&b->pump, MUX_GONE, j->number, MUX_REPLY, NULL, 0, NULL, 0);
    job_end(b, j);
}

static void jobs_end(struct bridging *b)
{
    for (size_t i = b->n_jobs; i-- > 0;) {
        struct bridge_job *j = &b->jobs[i];
        if (!j->ending || !pump_quiet(&b->pump, j->number))
            continue;
        tell_machine(j->reply, &j->last, -1);
        if (j->tty) /* its terminal is read to the end first; then the caller closes */
            j->ending = false;
        else
            job_end(b, j);
    }
}

/* ---- all of it ---- */

#if defined __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/*
 * Before the first byte of the machine is read: permits no opening of files except new terminals, no starting or
 * affecting of processes, no sockets. Other calls fail.
 */
static void lock_in(void)
{
    static const int allowed[] = {SYS_read,    SYS_write,         SYS_recvmsg,        SYS_sendmsg,    SYS_recvfrom,
                                  SYS_sendto,  SYS_close,         SYS_ppoll,          SYS_fcntl,      SYS_ioctl,
                                  SYS_pread64, SYS_mmap,          SYS_munmap,         SYS_mremap,     SYS_madvise,
                                  SYS_brk,     SYS_clock_gettime, SYS_exit,           SYS_exit_group, SYS_rt_sigreturn,
                                  SYS_futex,   SYS_getrandom,     SYS_restart_syscall};
    enum { N = sizeof allowed / sizeof *allowed };
    const uint64_t at = (uint64_t)(uintptr_t)ptmx;
    struct sock_filter f[N + 12];
    unsigned n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < N; i++, n++) /* jumps to the last instruction but one: allow */
        f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], (uint8_t)(N - i + 5), 0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)at, 0, 2);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(at >> 32), 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sys_rlimit files;
    if (sys_prlimit(RLIMIT_NOFILE, NULL, &files) == 0) { /* what sys_send_fds() cannot do later */
        files.soft = files.hard;
        (void)sys_prlimit(RLIMIT_NOFILE, &files, NULL);
    }
    (void)sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sys_seccomp_filter(f, (unsigned short)n, 0) < 0)
        sys_exit(125);
}

static int turn(struct bridging *b)
{
    static struct pollfd *p;
    struct pollfd *grown = realloc(p, (b->n_jobs + 3) * sizeof *grown);
    size_t n = b->n_jobs;
    if (!grown)
        return -ENOMEM;
    p = grown;
    p[0] = (struct pollfd){.fd = b->ask->control, .events = POLLIN};
    p[1] = (struct pollfd){.fd = b->ask->box, .events = POLLIN};
    p[2] = (struct pollfd){.fd = b->ask->words, .events = POLLIN};
    for (size_t i = 0; i < n; i++)
        p[3 + i] = (struct pollfd){.fd = b->jobs[i].reply == b->ask->control ? -1 : b->jobs[i].reply, .events = POLLIN};
    int e = pump_turn(&b->pump, p, (unsigned)n + 3, -1);
    if (p[2].revents & POLLIN)
        keep_words(b);
    if (e < 0)
        return e;
    for (size_t i = n; i-- > 0;) {
        if (p[3 + i].revents && i < b->n_jobs && b->jobs[i].reply == p[3 + i].fd)
            hear_reply(b, &b->jobs[i]);
    }
    jobs_end(b);
    if (p[0].revents && !obey(b))
        leave_machine(b, 0, 0);
    return p[1].revents ? -ECHILD : 0; /* qemu has exited, or could not be started */
}

/* Reads qemu's last output. */
static void last_words(struct bridging *b)
{
    struct pollfd p = {.fd = b->ask->words, .events = POLLIN};
    const struct timespec moment = {.tv_sec = 2};
    while (b->n_text < sizeof b->text && sys_call(SYS_ppoll, &p, 1, &moment, 0, 0, 0) == 1 && p.revents & POLLIN)
        keep_words(b);
}

_Noreturn void bridge_main(const struct bridge *ask)
{
    static struct bridging b;
    struct frame f;
    int e = 0, fd = -1;
    b.ask = ask;
    lock_in();
    pump_begin(&b.pump, ask->line, false, &b, on_message);
    while (e == 0)
        e = turn(&b);
    last_words(&b);
    if (e == -ECHILD && sys_recv_fd(ask->box, &f, sizeof f, &fd, MSG_DONTWAIT) == (long)sizeof f) {
        if (f.kind == FRAME_VERDICT)
            leave_machine(&b, f.a, (int)f.b);
        if (f.kind == FRAME_EXEC_FAILED)
            leave_machine(&b, WHERE_MACHINE, (int)f.b);
    }
    leave_machine(&b, WHERE_MACHINE, e == -EBADMSG ? EBADMSG : e == -ENOMEM ? ENOMEM : EPIPE);
}
