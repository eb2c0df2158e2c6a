/*
 * Persistent shells: one bash (sh if there is none) per name, whose standard input is a socket for commands and
 * statuses. During a command its caller has copies of our ends: the socket and the two output pipes. One command at a
 * time; if its caller disconnects before the end the shell is killed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "sessiond/parts.h"
#include "sys/fd.h"

struct shell {
    char name[KEEP_MAX_NAME + 1]; /* "": free */
    int reply;                    /* to pid 1; -1: the shell has ended */
    int commands, out, err;
    int caller;       /* connection of the present caller, or -1 */
    uint32_t session; /* its session id in the box's numbering; 0: unknown */
    bool lost;        /* a shell of this name had been started, and has ended */
};

static struct shell shells[MAX_SHELLS];

void shells_begin(void)
{
    for (unsigned i = 0; i < MAX_SHELLS; i++)
        shells[i] = (struct shell){.reply = -1, .commands = -1, .out = -1, .err = -1, .caller = -1};
}

static struct shell *find_shell(const char *name)
{
    struct shell *free_one = NULL, *ended = NULL;
    for (unsigned i = 0; i < MAX_SHELLS; i++) {
        struct shell *s = &shells[i];
        if (strcmp(s->name, name) == 0)
            return s;
        if (!s->name[0])
            free_one = s;
        else if (s->reply < 0 && s->caller < 0)
            ended = s;
    }
    if (!free_one)
        free_one = ended;
    if (free_one) {
        memset(free_one->name, 0, sizeof free_one->name);
        free_one->lost = false;
    }
    return free_one;
}

/* Closes our ends; closing the reply socket kills the shell's processes. */
static void shell_end(struct shell *s)
{
    s->reply = close_fd(s->reply);
    s->commands = close_fd(s->commands);
    s->out = close_fd(s->out);
    s->err = close_fd(s->err);
    s->session = 0;
    s->lost = true;
}

static int make_pipe(int *ours, int *theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *ours = ends[0];
    *theirs = ends[1];
    return 0;
}

static int make_shell_ends(struct shell *s, int theirs[4], struct err *e)
{
    int reply[2], commands[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reply) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start a shell");
    s->reply = reply[0];
    theirs[3] = reply[1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start a shell");
    s->commands = commands[0];
    theirs[0] = commands[1];
    int r = make_pipe(&s->out, &theirs[1]);
    if (r == 0)
        r = make_pipe(&s->err, &theirs[2]);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot start a shell") : 0;
}

static int start_shell(struct sessiond *k, struct shell *s, const struct job_image *image, struct err *e)
{
    int theirs[4] = {-1, -1, -1, -1};
    bool lost = s->lost;
    int r = make_shell_ends(s, theirs, e);
    if (r == 0)
        r = command_send(k, image, JOB_DUPLEX | JOB_TELL_START, theirs[3], theirs, 3, e);
    if (r == 0)
        r = sessiond_watch(k, s->reply, EPOLLIN, TICKET(SOURCE_SHELL, s - shells));
    for (int i = 0; i < 4; i++)
        (void)close_fd(theirs[i]);
    if (r < 0)
        shell_end(s);
    s->lost = lost;
    return r;
}

static int hand_out(struct shell *s, bool fresh)
{
    const int fds[] = {s->commands, s->out, s->err};
    struct frame f = {
        .kind = FRAME_ANSWER, .b = (uint32_t)(s - shells) + 1, .c = (fresh ? 1u : 0) | (fresh && s->lost ? 2u : 0)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof fds)];
    } c = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fds)}};
    struct iovec v = {&f, sizeof f};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    memcpy(CMSG_DATA(&c.align), fds, sizeof fds);
    const long r = sys_send_fds(s->caller, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    return r < 0 ? (int)r : 0;
}

void shells_ask(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    size_t n = strnlen(q->payload, q->head.bytes);
    /* The image begins at the next multiple of eight. */
    size_t at = (n + 8) / 8 * 8;
    bool good = n < q->head.bytes && at < q->head.bytes && keep_shell_name(q->payload, n);
    struct shell *s = good ? find_shell(q->payload) : NULL;
    int r = !good ? err_say(&e, ERR_POLICY, "a shell's name must have 1 to %d letters, digits or -_.", KEEP_MAX_NAME)
            : !s  ? err_say(&e, ERR_SYSTEM, "the session already has %d shells", MAX_SHELLS)
                  : 0;
    if (r < 0 || !s) {
        answer_refused(q->from, &e, r);
        return;
    }
    if (s->caller >= 0) /* the next caller may be heard before the end of the previous one */
        shells_heard(k, (unsigned)(s - shells));
    if (s->caller >= 0) {
        (void)err_say(&e, ERR_REFUSED,
                      "shell '%s' is already running a command; wait for it to end, or use another shell", q->payload);
        r = -EBUSY;
    }
    if (r == 0)
        r = command_fresh(k, q, &e);
    bool fresh = r == 0 && s->reply < 0;
    if (fresh) {
        char *copy = aligned_alloc(8, (q->head.bytes - at + 7) / 8 * 8);
        if (copy)
            memcpy(copy, q->payload + at, q->head.bytes - at);
        const struct job_image *image = copy ? command_image(copy, q->head.bytes - at, &e) : NULL;
        r = image  ? start_shell(k, s, image, &e)
            : copy ? -EBADMSG
                   : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot start a shell");
        free(copy);
    }
    if (r == 0) {
        snprintf(s->name, sizeof s->name, "%s", q->payload);
        s->caller = q->from;
        r = hand_out(s, fresh);
        if (r == 0)
            r = sessiond_watch(k, s->caller, EPOLLIN, TICKET(SOURCE_SHELL_CALLER, s - shells));
        if (fresh && r == 0)
            s->lost = false;
        if (r < 0)
            s->caller = -1;
    }
    if (r < 0)
        answer_refused(q->from, &e, r);
    else
        q->from = -1;
}

/* From pid 1: the shell has ended. A waiting caller is told how. */
void shells_frame(struct sessiond *k, unsigned i)
{
    struct shell *s = i < MAX_SHELLS ? &shells[i] : NULL;
    while (s && s->reply >= 0) {
        struct frame f;
        auto_fd int fd = -1;
        ssize_t n = answer_receive(s->reply, &f, sizeof f, &fd);
        if (n == -EAGAIN)
            return;
        if (n == (ssize_t)sizeof f && f.kind == FRAME_STARTED) /* a machine has its own pids */
            s->session = k->ask->box.start.plan->facts->machine ? 0 : f.a;
        bool over = n <= 0 || f.kind == FRAME_EXIT || f.kind == FRAME_EXEC_FAILED || f.kind == FRAME_VERDICT;
        if (n == (ssize_t)sizeof f && over && s->caller >= 0)
            (void)send(s->caller, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (over)
            shell_end(s);
    }
}

uint32_t shells_session(struct sessiond *k, uint32_t number)
{
    if (number == 0 || number > MAX_SHELLS)
        return 0;
    shells_frame(k, number - 1); /* its start was told, but perhaps not read */
    return shells[number - 1].session;
}

/* From the caller of a command in it: signals, the end of the command, or a disconnect. */
void shells_heard(struct sessiond *k, unsigned i)
{
    struct shell *s = i < MAX_SHELLS ? &shells[i] : NULL;
    struct frame f;
    if (!s || s->caller < 0)
        return;
    ssize_t n = recv(s->caller, &f, sizeof f, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool whole = n == (ssize_t)sizeof f;
    if (whole && f.kind == FRAME_SIGNAL) {
        (void)send(s->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
    }
    if (whole && f.kind == FRAME_END && f.a == 0) { /* the caller asks to kill it */
        (void)send(s->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
    }
    if (!(whole && f.kind == FRAME_END) && s->reply >= 0)
        shell_end(s);
    (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, s->caller, NULL);
    s->caller = close_fd(s->caller);
}
