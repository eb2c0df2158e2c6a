/* What pid 1 does for a command, in a plain run and in a session: starts it, leads its terminal, reports how it ended.
   init.c and session.c decide when; here is how. */
#include "runtime/command.h"
#include "sys/poll.h"

int send_frame(int control, const struct frame *f, int fd)
{
    long n = sys_send_fd(control, f, sizeof *f, fd, 0);
    return n < 0 ? (int)n : 0;
}

_Noreturn void give_up(int control, uint32_t where, int e)
{
    const struct frame f = {.kind = FRAME_VERDICT, .a = where, .b = (uint32_t)-e};
    (void)send_frame(control, &f, -1);
    sys_exit(125);
}

void command_failed(int control, const struct outcome *o)
{
    struct frame f = {.kind = FRAME_EXEC_FAILED, .b = (uint32_t)o->no};
    if (o->where != WHERE_EXEC) {
        f.kind = FRAME_VERDICT;
        f.a = o->where;
    }
    (void)send_frame(control, &f, -1);
}

static uint64_t microseconds(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The number in column `name` of the lines that begin with `group`: a line of names, then one of numbers (proc(5)). */
static uint64_t counter(const char *text, const char *group, const char *name)
{
    const char *names = strstr(text, group), *numbers = names ? strstr(names + 1, group) : NULL;
    const char *at = names ? strstr(names, name) : NULL;
    uint64_t v = 0;
    if (!numbers || !at || at > numbers)
        return 0;
    for (const char *p = names; p < at && numbers; p++) {
        if (*p == ' ')
            numbers = strchr(numbers + 1, ' ');
    }
    for (numbers = numbers ? numbers + 1 : ""; *numbers >= '0' && *numbers <= '9'; numbers++)
        v = v * 10 + (uint64_t)(*numbers - '0');
    return v;
}

/* An unreachable address, or a resolver at a loopback address. */
bool counts_network_tries(const char *text)
{
    return counter(text, "Ip: ", "OutNoRoutes") || counter(text, "Udp: ", "NoPorts");
}

/* Whether the box tried to use a network that it does not have. The kernel counts that, so nothing needs watching; called only for a
   command that failed. */
static bool looked_for_network(void)
{
    char text[4096];
    (void)sys_read_text(AT_FDCWD, "/proc/net/snmp", text, sizeof text);
    return counts_network_tries(text);
}

int report_exit(int control, const struct job *job, int status, const struct rusage *u)
{
    const struct frame f = {.kind = FRAME_EXIT,
                            .a = (uint32_t)job->session,
                            .b = (uint32_t)status,
                            .c = status && !job->of_session && looked_for_network() ? EXIT_OFFLINE : EXIT_ITSELF,
                            .utime_us = microseconds(&u->ru_utime),
                            .stime_us = microseconds(&u->ru_stime),
                            .maxrss_kib = (uint64_t)u->ru_maxrss,
                            .inblock = (uint64_t)u->ru_inblock,
                            .oublock = (uint64_t)u->ru_oublock,
                            .stdin_at = job->stdin_at < 0 ? -1 : sys_lseek(job->stdio[0], 0, SEEK_CUR)};
    return send_frame(control, &f, -1);
}

void report_stop(int control, int status)
{
    const struct frame f = {.kind = FRAME_STOPPED, .b = (uint32_t)WSTOPSIG(status)};
    (void)send_frame(control, &f, -1);
}

int command_start(const struct runner *r, const struct job *job, int slave, struct outcome *o)
{
    *o = (struct outcome){0};
    /* The child writes to it. A compiler that sees all of this at once (clang) must not keep it in registers: to it the child's
       way ends in command_child(). */
    __asm__ volatile("" : "+r"(o) : : "memory");
    int pid = sys_vfork();
    if (pid == 0)
        command_child(r, job, slave, o);
    if (o->script)
        sys_unmap(o->script, o->script_bytes);
    return pid;
}

/*
 * When a session leader exits the kernel hangs up the terminal and discards what the pty has not yet passed to its
 * master (pty_flush_buffer() in drivers/tty/pty.c): on a busy machine, a command's last output. So the leader stays
 * until pinfold has read it and ends the box.
 */
static _Noreturn void terminal_ends(const struct runner *r, int control, const struct job *job, int status,
                                    const struct rusage *usage)
{
    struct job told = *job;
    if (job->of_session)
        told.session = sys_getpid();
    if (r->plan->namespaces & CLONE_NEWPID && !job->of_session)
        (void)sys_kill(-1, SIGKILL);
    if (report_exit(control, &told, status, usage) < 0)
        sys_exit(125);
    for (;;)
        (void)sys_poll(NULL, 0, NULL);
}

_Noreturn void leader_main(const struct runner *r, const struct job *job, int slave, int control)
{
    struct outcome o;
    struct rusage usage;
    int status, pid = sys_setsid();
    if (pid >= 0)
        pid = sys_ioctl(slave, TIOCSCTTY, NULL);
    if (pid < 0)
        give_up(control, WHERE_PTY, pid);
    pid = command_start(r, job, slave, &o);
    if (pid < 0)
        give_up(control, WHERE_CHILD, pid);
    if (o.no)
        command_failed(control, &o);
    slave = sys_shut(slave); /* otherwise the terminal would never be seen to be closed by all */
    for (int i = 0; i < 3 && job->of_session; i++)
        sys_shut(job->stdio[i]); /* likewise a pipe */
    for (;;) {
        int got = sys_wait4(pid, &status, WUNTRACED, &usage);
        if (got == pid && WIFSTOPPED(status)) {
            report_stop(control, status);
        } else if (got == pid) {
            terminal_ends(r, control, job, status, &usage);
        } else if (got != -EINTR) {
            give_up(control, WHERE_CHILD, got);
        }
    }
}

int terminal_give(int control, const struct job *job, int master)
{
    struct winsize size = {.ws_row = job->rows, .ws_col = job->columns};
    const struct frame f = {.kind = FRAME_TTY};
    const int e = size.ws_row ? sys_ioctl(master, TIOCSWINSZ, &size) : 0;
    return e < 0 ? e : send_frame(control, &f, master);
}

void terminal_resize(int master, const struct frame *f)
{
    struct winsize size = {.ws_row = (unsigned short)(f->a >> 16), .ws_col = (unsigned short)f->a};
    (void)sys_ioctl(master, TIOCSWINSZ, &size);
}

void signal_foreground(int master, int signal)
{
    int group = 0;
    if (sys_ioctl(master, TIOCGPGRP, &group) == 0 && group > 1)
        (void)sys_kill(-group, signal);
}

int terminal_open(int pty[2])
{
    int unlock = 0;
    own_fd int master = sys_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
    if (master < 0)
        return master;
    int e = sys_ioctl(master, TIOCSPTLCK, &unlock);
    if (e < 0)
        return e;
    int slave = (int)sys_call(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
    if (slave < 0)
        return slave;
    pty[0] = sys_taken(&master);
    pty[1] = slave;
    return 0;
}

_Noreturn void init_leave(const struct runner *r, int status)
{
    if (r->plan->tier)
        hunt_down(r);
    sys_exit(status);
}
