/*
 * The command's descriptors 0, 1 and 2, and the relays that they need.
 *
 *   pipe, connected Unix stream socket, /dev/null etc.   passed on as they are
 *   regular file, readable, with a name                  passed on; the builder reopens it through the box's mounts
 *   writable regular file, deleted file, memfd,          a pipe, relayed here: the box never has a descriptor that can do
 *   inet socket, other device                            more than carry data (an inet socket could be connected again on
 *                                                        the host's network, a file truncated or read)
 *   terminal                                             a pty in the box; the caller's terminal never enters
 *   captured output, counted output                      a pipe
 *   closed                                               /dev/null opened in the other direction: gives the same EBADF
 *   directory, O_PATH, block device, namespace,          refused
 *   pidfd, event descriptors
 *
 * If stdin is a terminal but stdout leads into a pipeline, another program there (a pager) probably uses the terminal:
 * then it is not made raw, and is read only while it is in line mode; so `git log | less` in a box keeps its keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/file.h"
#include "sys/process.h"

#define MEMORY_DEVICES 1          /* major of null, zero, full, random, urandom: admin-guide/devices.txt */
#define NSFS           0x6e736673 /* linux/magic.h */
#define PIDFS          0x50494446
#define ANON_INODE     0x09041934
#define SECRETMEM      0x5345434d

static const char *const fd_names[3] = {"stdin", "stdout", "stderr"};

enum kind { KIND_CLOSED, KIND_NONE, KIND_DIRECT, KIND_FILE, KIND_RELAYED, KIND_SOCKET, KIND_TTY };

struct look { /* what one of the caller's descriptors is */
    enum kind kind;
    int flags; /* F_GETFL */
    bool append, regular, socket;
    bool pipeline; /* pipe or socket: somebody is at its other end */
};

static int refuse_stdio(struct err *e, int i, const char *what)
{
    return err_say(e, ERR_REFUSED,
                   "%s is %s, which cannot be passed into a box (redirect %s from or to a file, a pipe or /dev/null)",
                   fd_names[i], what, fd_names[i]);
}

static int look_at_socket(int i, int fd, struct look *ret, struct err *e)
{
    int domain = 0, type = 0;
    socklen_t n = sizeof domain;
    struct sockaddr_storage peer;
    socklen_t peer_n = sizeof peer;

    (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n);
    n = sizeof type;
    (void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n);
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_n) < 0)
        return refuse_stdio(e, i, "a socket that is not connected");
    if (domain == AF_UNIX && (type == SOCK_STREAM || type == SOCK_SEQPACKET))
        ret->kind = KIND_DIRECT; /* once connected it can go nowhere else: unix(7) */
    else if (type == SOCK_STREAM)
        ret->kind = KIND_SOCKET;
    else
        return refuse_stdio(e, i, "a datagram socket");
    return 0;
}

static int look_at_file(int i, int fd, const struct stat *st, struct look *ret, struct err *e)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "%s: fstatfs", fd_names[i]);
    if (fs.f_type == NSFS)
        return refuse_stdio(e, i, "a namespace");
    if (fs.f_type == PIDFS)
        return refuse_stdio(e, i, "a process descriptor");
    if (fs.f_type == ANON_INODE || fs.f_type == SECRETMEM)
        return refuse_stdio(e, i, "a kernel object that is not a file");
    ret->regular = true;
    if (i > 0 && (ret->flags & O_ACCMODE) == O_RDONLY)
        ret->kind = KIND_CLOSED; /* cannot be written: EBADF outside, so inside */
    else if (i == 0 && (ret->flags & O_ACCMODE) == O_RDONLY && st->st_nlink > 0)
        ret->kind = KIND_FILE;
    else
        ret->kind = KIND_RELAYED;
    return 0;
}

static int look_at_fd(int i, int fd, struct look *ret, struct err *e)
{
    struct stat st;

    *ret = (struct look){.kind = KIND_NONE};
    if (fd < 0)
        return 0;
    ret->flags = fcntl(fd, F_GETFL);
    if (ret->flags < 0 || fstat(fd, &st) < 0) {
        if (errno != EBADF)
            return err_sys(e, ERR_SYSTEM, errno, "cannot use %s", fd_names[i]);
        ret->kind = KIND_CLOSED;
        return 0;
    }
    if (ret->flags & O_PATH)
        return refuse_stdio(e, i, "a descriptor opened with O_PATH");
    ret->append = ret->flags & O_APPEND;
    ret->socket = S_ISSOCK(st.st_mode);
    ret->pipeline = S_ISFIFO(st.st_mode) || ret->socket;
    if (S_ISFIFO(st.st_mode))
        ret->kind = KIND_DIRECT;
    else if (S_ISSOCK(st.st_mode))
        return look_at_socket(i, fd, ret, e);
    else if (S_ISREG(st.st_mode))
        return look_at_file(i, fd, &st, ret, e);
    else if (S_ISCHR(st.st_mode))
        ret->kind = major(st.st_rdev) == MEMORY_DEVICES && minor(st.st_rdev) != 1 && minor(st.st_rdev) != 2
                        ? KIND_DIRECT
                    : sys_is_tty(fd) ? KIND_TTY
                                     : KIND_RELAYED;
    else if (S_ISDIR(st.st_mode))
        return refuse_stdio(e, i, "a directory");
    else if (S_ISBLK(st.st_mode))
        return refuse_stdio(e, i, "a block device");
    else
        return refuse_stdio(e, i, "a kernel object that is not a file");
    return 0;
}

bool box_wants_tty(enum tty_mode tty, const int stdio[3], bool capture)
{
    if (tty != TTY_AUTO)
        return tty == TTY_ALWAYS;
    if (capture)
        return false;
    for (int i = 0; i < 3; i++) {
        if (stdio[i] >= 0 && sys_is_tty(stdio[i]))
            return true;
    }
    return false;
}

int bytes_in_memory(struct str bytes)
{
    auto_fd int fd = sys_memory("pinfold");
    for (size_t at = 0; fd >= 0 && at < bytes.n;) { /* by position: the reader's is that of the same description */
        const long n = sys_pwrite(fd, bytes.p + at, bytes.n - at, at);
        if (n < 0 && n != -EINTR)
            return (int)n;
        at += n > 0 ? (size_t)n : 0;
    }
    return take_fd(&fd);
}

/* Our numbers stay above 2, so that a caller's closed 0, 1 or 2 is not taken by one of them. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    (void)close(fd);
    return high;
}

static int make_pipe(int *ret_read, int *ret_write, int ours, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a pipe for the box");
    ends[0] = above_standard(ends[0]);
    ends[1] = above_standard(ends[1]);
    if (ends[0] < 0 || ends[1] < 0) {
        int no = errno;
        (void)close_fd(ends[0]);
        (void)close_fd(ends[1]);
        return err_sys(e, ERR_SYSTEM, no, "cannot create a pipe for the box");
    }
    (void)fcntl(ends[ours], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[ours], F_SETPIPE_SZ, RELAY_PIPE);
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static int give_null(struct io *io, int i, int flags, struct err *e)
{
    int fd = above_standard(open("/dev/null", flags | O_CLOEXEC));
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open /dev/null as %s", fd_names[i]);
    io->give[i] = fd;
    io->own_give[i] = true;
    return 0;
}

static struct relay *add_relay(struct io *io, enum relay_kind kind, int from, int to)
{
    struct relay *r = &io->relays[io->n_relays++];
    *r = (struct relay){.kind = kind, .from = from, .to = to};
    return r;
}

/*
 * A descriptor of our own for the object behind the caller's, so that we can use it without waiting; the caller's
 * itself, and small writes, where it cannot be opened again (a terminal of another user after `su`).
 */
static int reopen(int fd, int mode, bool *ret_own)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int mine = above_standard(open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    *ret_own = mine >= 0;
    return mine >= 0 ? mine : fd;
}

static void set_target(struct relay *r, int fd, const struct look *l)
{
    r->to = fd;
    r->to_socket = l->socket;
    if (l->regular || r->to_socket)
        return;
    r->to = reopen(fd, O_WRONLY, &r->own_to);
    r->small_writes = !r->own_to;
}

/* A pipe to the caller's descriptor `i` as the command's output. */
static int output_pipe(struct io *io, const struct box_command *command, int i, const struct look *l, struct err *e)
{
    int from, to, r = make_pipe(&from, &to, 0, e);
    if (r < 0)
        return r;
    struct relay *relay = add_relay(io, RELAY_OUT, from, -1);
    relay->own_from = true;
    set_target(relay, command->stdio[i], l);
    relay->splice = !l->append && !relay->to_socket && (l->regular || l->pipeline) && !relay->small_writes;
    io->give[i] = to;
    io->own_give[i] = true;
    return 0;
}

static void set_capture(struct relay *r, const struct box_command *command, struct box_result *result, int i)
{
    r->capture = i == 2 ? &result->err : &result->out;
    r->capture_max = command->capture_max;
    r->output = command->output;
    r->output_ctx = command->output_ctx;
    r->truncated = i == 2 ? &result->err_truncated : &result->out_truncated;
}

static int capture_pipe(struct io *io, const struct box_command *command, struct box_result *result, int i,
                        struct err *e)
{
    int from, to, r = make_pipe(&from, &to, 0, e);
    if (r < 0)
        return r;
    struct relay *relay = add_relay(io, RELAY_CAPTURE, from, -1);
    relay->own_from = true;
    relay->which = i;
    set_capture(relay, command, result, i);
    io->give[i] = to;
    io->own_give[i] = true;
    return 0;
}

static int input_pipe(struct io *io, const struct box_command *command, const struct look *l, struct err *e)
{
    int from, to, r = make_pipe(&from, &to, 1, e);
    if (r < 0)
        return r;
    struct relay *relay = add_relay(io, RELAY_IN, command->stdio[0], to);
    relay->own_to = true;
    relay->from_socket = l->socket;
    relay->splice = l->regular;
    relay->line_mode = l->kind == KIND_TTY;
    if (l->kind == KIND_TTY)
        relay->from = reopen(command->stdio[0], O_RDONLY, &relay->own_from);
    io->give[0] = from;
    io->own_give[0] = true;
    return 0;
}

/* Whether two descriptors share one open description (`>f 2>&1`): then one pipe keeps the order of what is written. */
static bool same_description(int a, int b)
{
    const pid_t self = getpid();
    long r = syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
    if (r >= 0)
        return r == 0;
    struct stat x, y; /* a kernel without kcmp: the same file at the same place */
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           fcntl(a, F_GETFL) == fcntl(b, F_GETFL) && lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

static int give_output(struct io *io, const struct box_command *command, struct box_result *result,
                       const struct look looks[3], int i, struct err *e)
{
    const struct look *l = &looks[i];

    if (command->capture)
        return capture_pipe(io, command, result, i, e);
    if (l->kind == KIND_NONE)
        return give_null(io, i, O_WRONLY, e);
    if (l->kind == KIND_CLOSED)
        return give_null(io, i, O_RDONLY, e); /* writing to it is EBADF, as it would be */
    bool relayed = l->kind == KIND_RELAYED || l->kind == KIND_SOCKET || l->kind == KIND_TTY || io->all_output_passes;
    if (!relayed) {
        bool one = i == 2 && io->give[1] == command->stdio[1] && looks[1].kind == l->kind &&
                   same_description(command->stdio[1], command->stdio[2]);
        io->give[i] = command->stdio[one ? 1 : i];
        return 0;
    }
    if (i == 2 && io->own_give[1] && looks[1].kind == l->kind &&
        same_description(command->stdio[1], command->stdio[2])) {
        io->give[2] = io->give[1];
        return 0;
    }
    return output_pipe(io, command, i, l, e);
}

static int give_input(struct io *io, const struct box_command *command, bool own_box, const struct look *l,
                      struct err *e)
{
    switch (l->kind) {
    case KIND_NONE:
        return give_null(io, 0, O_RDONLY, e);
    case KIND_CLOSED:
        return give_null(io, 0, O_WRONLY, e); /* reading it is EBADF, as it would be */
    case KIND_FILE:
        if (!own_box) /* nobody opens it anew */
            return input_pipe(io, command, l, e);
        __attribute__((fallthrough));
    case KIND_DIRECT:
        io->stdin_is_file = l->kind == KIND_FILE;
        io->give[0] = command->stdio[0];
        return 0;
    default:
        return input_pipe(io, command, l, e);
    }
}

/* The pty's two directions; their box end comes with the master. */
static void give_pty(struct io *io, const struct box_command *command, struct box_result *result,
                     const struct look looks[3])
{
    bool all = command->tty == TTY_ALWAYS, tty_in = looks[0].kind == KIND_TTY;
    int out = looks[1].kind == KIND_TTY ? 1 : looks[2].kind == KIND_TTY ? 2 : all ? 1 : 0;

    for (int i = 0; i < 3; i++) {
        if (looks[i].kind == KIND_TTY || all)
            io->give[i] = -1;
    }
    if (command->stdio[out] < 0 || looks[out].kind == KIND_CLOSED)
        out = tty_in ? 0 : -1;
    io->tty_out = (int)io->n_relays;
    struct relay *r = add_relay(io, command->capture ? RELAY_CAPTURE : RELAY_OUT, -1, -1);
    r->pty = true;
    r->which = 1;
    if (command->capture)
        set_capture(r, command, result, 1);
    else if (out >= 0)
        set_target(r, command->stdio[out], &looks[out]);
    if (command->stdio[0] < 0 || looks[0].kind == KIND_CLOSED || (!all && !tty_in))
        return;
    io->tty_in = (int)io->n_relays;
    r = add_relay(io, RELAY_IN, -1, -1);
    r->pty = true;
    r->from_socket = looks[0].socket;
    io->term.may_raw = tty_in && command->foreground && !command->capture && !looks[1].pipeline;
    r->line_mode = tty_in && !io->term.may_raw;
    r->terminal = tty_in;
}

void io_none(struct io *io)
{
    *io = (struct io){.give = {-1, -1, -1}, .master = -1, .tty_out = -1, .tty_in = -1};
    io->term = (struct term){.fd = -1, .watcher_pipe = -1};
}

int io_begin(struct io *io, const struct box_command *command, bool own_box, const struct limits *limits,
             struct box_result *result, struct err *e)
{
    struct look looks[3];
    int r;

    io_none(io);
    io->stdin_fd = command->stdio[0];
    io->all_output_passes = limits->output.value != LIMIT_NONE;
    io->tty = box_wants_tty(command->tty, command->stdio, command->capture);
    for (int i = 0; i < 3; i++) {
        r = command->capture && i > 0 ? 0 : look_at_fd(i, command->stdio[i], &looks[i], e);
        if (command->capture && i > 0)
            looks[i] = (struct look){.kind = KIND_NONE};
        if (r < 0)
            return r;
        if (looks[i].kind == KIND_TTY && io->term.fd < 0)
            io->term.fd = command->stdio[i];
    }
    if (io->tty)
        give_pty(io, command, result, looks);
    for (int i = 0; i < 3; i++) {
        if (io->tty && (looks[i].kind == KIND_TTY || command->tty == TTY_ALWAYS))
            continue;
        r = i == 0 ? give_input(io, command, own_box, &looks[0], e) : give_output(io, command, result, looks, i, e);
        if (r < 0)
            return r;
    }
    io->term.signals = io->tty && !own_box;
    return term_raw(&io->term, e);
}

void io_started(struct io *io)
{
    for (int i = 0; i < 3; i++) {
        if (io->own_give[i] && !(i == 2 && io->give[2] == io->give[1]))
            (void)close_fd(io->give[i]);
    }
    for (int i = 0; i < 3; i++) {
        io->give[i] = -1;
        io->own_give[i] = false;
    }
}

/*
 * A fresh pty has the kernel's modes. What people expect of their terminal (its special characters, UTF-8) is copied from
 * theirs, unless the command has already set modes itself. When the terminal stays in line mode it echoes; then the pty must not.
 */
static void master_modes(struct io *io)
{
    struct termios mine = {0}, theirs = {0};
    const tcflag_t fresh = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN; /* tty_std_termios */

    if (io->term.fd < 0 || sys_tty_modes(io->master, &mine) < 0 || mine.c_lflag != fresh)
        return;
    if (io->term.raw)
        theirs = *term_before(&io->term);
    else if (sys_tty_modes(io->term.fd, &theirs) < 0)
        return;
    memcpy(mine.c_cc, theirs.c_cc, 19); /* NCCS of the kernel */
    mine.c_iflag = (mine.c_iflag & ~(tcflag_t)IUTF8) | (theirs.c_iflag & IUTF8);
    if (io->tty_in >= 0 && io->relays[io->tty_in].line_mode)
        mine.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE);
    (void)sys_tty_set_modes(io->master, &mine);
}

void io_master(struct io *io, int master)
{
    if (!io->tty || io->master >= 0) {
        (void)close_fd(master);
        return;
    }
    io->master = master;
    (void)fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
    master_modes(io);
    io->relays[io->tty_out].from = master;
    if (io->tty_in < 0)
        return;
    struct relay *in = &io->relays[io->tty_in];
    in->to = master;
    in->from = in->from_socket ? io->stdin_fd : reopen(io->stdin_fd, O_RDONLY, &in->own_from);
    if (io->term.raw && ioctl(io->stdin_fd, FIONREAD, &in->ahead) == 0)
        in->ahead_eof = (char)term_before(&io->term)->c_cc[VEOF];
}

void io_pipe(struct io *io, unsigned which, int end)
{
    if (which != 0 || !io->stdin_is_file || io->n_relays == 4) {
        (void)close(end);
        return;
    }
    io->stdin_is_file = false;
    (void)fcntl(end, F_SETFL, O_WRONLY | O_NONBLOCK);
    struct relay *r = add_relay(io, RELAY_IN, io->stdin_fd, end);
    r->own_to = true;
    r->splice = true;
}

void io_stdin_at(const struct io *io, int64_t at)
{
    if (io->stdin_is_file && at >= 0)
        (void)lseek(io->stdin_fd, at, SEEK_SET);
}

bool io_hung_up(const struct io *io)
{
    return io->master >= 0 &&
           (relay_done(&io->relays[io->tty_out]) || (io->tty_in >= 0 && io->relays[io->tty_in].hung_up));
}

void io_hang_up(struct io *io)
{
    if (io->tty_in >= 0)
        relay_close(&io->relays[io->tty_in]);
    relay_stop(&io->relays[io->tty_out]);
    io->master = close_fd(io->master);
}

void io_resize(struct io *io)
{
    struct winsize size;
    if (io->master >= 0 && io->term.fd >= 0 && sys_tty_size(io->term.fd, &size) == 0)
        (void)sys_tty_set_size(io->master, &size);
}

bool io_last_words(struct io *io)
{
    if (io->master < 0 || io->relays[io->tty_out].from < 0)
        return false;
    io->relays[io->tty_out].drain = true;
    io->relays[io->tty_out].sleep_until = 0;
    return true;
}

void io_box_gone(struct io *io)
{
    for (unsigned i = 0; i < io->n_relays; i++) {
        struct relay *r = &io->relays[i];
        if (r->kind == RELAY_IN)
            relay_close(r);
        else
            r->drain = true;
        r->sleep_until = 0;
    }
}

void io_end(struct io *io)
{
    term_end(&io->term);
    io_started(io);
    for (unsigned i = 0; i < io->n_relays; i++) {
        if (io->relays[i].broken && !io->output_errno && io->relays[i].kind != RELAY_IN)
            io->output_errno = io->relays[i].broken;
        relay_close(&io->relays[i]);
    }
    io->master = close_fd(io->master);
}
