/*
 * Connections. The kernel identifies the client (unix(7), SO_PEERCRED): it must be the same user, and a process of our
 * own pid namespace, which no process in a box is. Then one request, bounded in size and time.
 *
 * Who wants to run a command connects before it has put its request together (session_open_soon()). Until that comes the kernel is made to
 * look anew at the host's files (supervisor/fresh.c), so that both happen at once on two processors. The caller had been asked for the
 * command by then, so what the host did before is seen. For a request that comes late that is done again (FRESH_US). The connection of
 * one who has not sent anything by then is passed on to pid 1 (command_pass()), which reads what it understands, and gives the rest back.
 *
 * In a box that keeps sessions of its own the guard around it makes every connection, and is seen as process 0. There it is the request
 * that tells who sent it (SCM_CREDENTIALS, and from Linux 6.5 on SCM_PIDFD), as the kernel adds it.
 */
#include <signal.h>
#include <stdio.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/json.h"
#include "sessiond/parts.h"
#include "sys/poll.h"

#define PEER_PIDFD    77 /* SO_PEERPIDFD, Linux 6.5 */
#define MESSAGE_PIDFD 4  /* SCM_PIDFD, which comes with PASS_PIDFD */
#define NO_PIDFD      (-1)
#define PROCESS_GONE  (-2)
/* Descriptors, who sent them, and a descriptor of that process. */
#define CONTROL_ROOM                                                                                                   \
    (CMSG_SPACE((KEEP_FDS + 1) * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)))

static _Alignas(8) char message[KEEP_MESSAGE + 8];

void ask_begin(struct sessiond *k)
{
    struct stat st;
    for (unsigned i = 0; i < MAX_CONNECTIONS; i++)
        k->connections[i].fd = -1;
    if (stat("/proc/self/ns/pid", &st) == 0) {
        k->pid_ns_dev = st.st_dev;
        k->pid_ns_ino = st.st_ino;
    }
}

/* process: a descriptor of it; -1: none. */
static bool is_user(const struct sessiond *k, int process, const struct ucred *who)
{
    uint64_t dev, ino;
    return who->uid == geteuid() && who->pid > 0 && peer_pid_namespace(process, (int)who->pid, &dev, &ino) &&
           dev == k->pid_ns_dev && ino == k->pid_ns_ino;
}

/* *ret_pid 0: the request will tell. */
static bool is_ours(const struct sessiond *k, int fd, int *ret_pid)
{
    struct ucred who;
    socklen_t n = sizeof who, n_client = sizeof(int);
    int client = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return false;
    *ret_pid = (int)who.pid;
    if (who.pid == 0)
        return k->ask->nested;
    auto_fd int process = getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &client, &n_client) == 0 ? client : -1;
    return is_user(k, process, &who);
}

static void drop(struct sessiond *k, unsigned i)
{
    k->connections[i].fd = close_fd(k->connections[i].fd);
    k->n_connections--;
}

static void refuse_stranger(int fd)
{
    struct err e = {0};
    int r = err_say(&e, ERR_REFUSED, "only the session's user can control it, and only from outside boxes");
    answer_refused(fd, &e, r);
}

/* The content of the memfd, NUL-terminated; malloc()ed. */
static char *fetch(int fd, size_t n)
{
    char *p = malloc(n + 1);
    for (size_t at = 0; p && at < n;) {
        ssize_t k = pread(fd, p + at, n - at, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            free(p);
            return NULL;
        }
        at += (size_t)k;
    }
    if (p)
        p[n] = 0;
    return p;
}

static void show(struct sessiond *k, struct session_request *q)
{
    auto_buf struct buf text = BUF(KEEP_MESSAGE * 4u);
    struct json j = JSON(&text);
    json_object(&j, NULL);
    json_uint(&j, "up_ms", (sessiond_now() - k->began) / 1000);
    json_uint(&j, "commands", k->commands);
    json_uint(&j, "jobs_running", jobs_running());
    /* For whoever finds no record of it. */
    json_text(&j, "name", k->ask->box.session);
    json_text(&j, "scope", k->ask->box.scope);
    json_text(&j, "workspace", k->ask->box.start.plan->workspace ? k->ask->box.start.plan->workspace : "");
    json_array(&j, "running");
    running_put(k->builder, &j);
    json_array_end(&j);
    json_object_end(&j);
    answer_bytes(q->from, text.p, text.n, 0, 0, 0);
}

static void update(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    int r = k->box ? box_keep_rules(k->box, q->payload, &e) : err_say(&e, ERR_SYSTEM, "the session is ending");
    if (r < 0)
        answer_refused(q->from, &e, r);
    else
        answer_bytes(q->from, "", 0, 0, 0, 0);
}

static void fresh(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    int r = k->box ? box_keep_fresh(k->box, &e) : err_say(&e, ERR_SYSTEM, "the session is ending");
    if (r < 0)
        answer_refused(q->from, &e, r);
    else
        answer_bytes(q->from, "", 0, 0, 0, 0);
}

static void dispatch(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    /* Whoever asked has given up meanwhile; nobody wants a command begun that he believes has not. */
    if ((q->head.op == KEEP_EXEC || q->head.op == KEEP_JOB || q->head.op == KEEP_SHELL) && sys_hung_up(q->from))
        return;
    switch (q->head.op) {
    case KEEP_EXEC:
        command_exec(k, q);
        break;
    case KEEP_JOB:
        jobs_start(k, q);
        break;
    case KEEP_SHELL:
        shells_ask(k, q);
        break;
    case KEEP_JOBS:
        jobs_list(k, q);
        break;
    case KEEP_OUTPUT:
        jobs_output(k, q);
        break;
    case KEEP_KILL:
        jobs_kill(k, q);
        break;
    case KEEP_ATTACH:
        jobs_attach(k, q);
        break;
    case KEEP_SHOW:
        show(k, q);
        break;
    case KEEP_UPDATE:
        update(k, q);
        break;
    case KEEP_FRESH:
        fresh(k, q);
        break;
    case KEEP_STOP:
        q->from = -1; /* closed by our exit, which is the answer */
        if (k->box)
            box_keep_end(k->box);
        sessiond_leave(k);
        break;
    case KEEP_DENIALS:
        (q->head.b == KEEP_OF_JOB ? jobs_denials : denied_answer)(k, q);
        break;
    case KEEP_FILES: /* the answer comes on that socket */
        if (k->box && q->n_fds == 1 && box_keep_fresh(k->box, &e) == 0)
            (void)box_keep_files(k->box, q->fds[0]);
        break;
    default:
        answer_refused(q->from, &e, err_say(&e, ERR_CANNOT, "unknown request to the session daemon"));
    }
}

/* Parses the message and serves it; closes descriptors that nobody took over. */
static void serve(struct sessiond *k, struct session_request *q, size_t n, int *fds, unsigned n_fds)
{
    struct err e = {0};
    char *fetched = NULL;
    unsigned first = 0;
    if (keep_request_check(message, n, n_fds) < 0) {
        answer_refused(q->from, &e,
                       err_say(&e, ERR_REFUSED,
                               "the session was started by pinfold " PINFOLD_VERSION
                               " and does not understand this version's request; "
                               "stop it with: pinfold session stop"));
    } else {
        memcpy(&q->head, message, sizeof q->head);
        first = q->head.apart;
        if (first)
            fetched = fetch(fds[0], q->head.bytes);
        message[n] = 0;
        q->payload = first ? fetched : message + sizeof q->head;
        for (unsigned i = first; i < n_fds; i++) {
            q->fds[q->n_fds++] = fds[i];
            fds[i] = -1;
        }
        if (!q->payload)
            answer_refused(q->from, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot read a request"));
        else
            dispatch(k, q);
    }
    for (unsigned i = 0; i < n_fds; i++)
        (void)close_fd(fds[i]);
    for (unsigned i = 0; i < q->n_fds; i++)
        (void)close_fd(q->fds[i]);
    free(fetched);
}

/* Of a request that did not come whole: the kernel leaves out descriptors for which there is no room (recvmsg(2)). */
static int cut_off(const struct msghdr *m, struct err *e)
{
    if (m->msg_flags & MSG_TRUNC)
        return err_say(e, ERR_BUG, "the request is too long");
    return err_hint(
        e,
        err_say(e, ERR_SYSTEM, "too many clients are connected to the session, or too many commands run in it at once"),
        "try again when some have ended");
}

/* Receives one request, if there is one; false if the connection stays open. `looked`: as in struct session_request. */
static bool take_message(struct sessiond *k, int fd, int pid, uint64_t looked)
{
    union {
        struct cmsghdr align;
        char room[CONTROL_ROOM];
    } control;
    int fds[sizeof control.room / sizeof(int)]; /* whatever comes; keep_request_check() counts them */
    struct ucred who = {0};
    struct iovec v = {message, KEEP_MESSAGE};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct session_request q = {.from = fd, .pid = pid, .looked = looked};
    unsigned n_fds = 0;
    auto_fd int sender = NO_PIDFD;
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof who))
            memcpy(&who, CMSG_DATA(c), sizeof who);
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == MESSAGE_PIDFD && c->cmsg_len == CMSG_LEN(sizeof sender)) {
            memcpy(&sender, CMSG_DATA(c), sizeof sender);
            sender = sender < 0 ? PROCESS_GONE : sender; /* an errno: it was waited for already */
        }
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(c), n_fds * sizeof(int));
    }
    const bool stranger = n > 0 && pid == 0 && (sender == PROCESS_GONE || !is_user(k, sender, &who));
    if (pid == 0)
        q.pid = (int)who.pid;
    if (n <= 0 || stranger || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        struct err e = {0};
        for (unsigned i = 0; i < n_fds; i++)
            (void)close(fds[i]);
        if (stranger)
            refuse_stranger(fd);
        else if (n > 0)
            answer_refused(fd, &e, cut_off(&m, &e));
    } else {
        serve(k, &q, (size_t)n, fds, n_fds);
        fd = q.from;
    }
    (void)close_fd(fd);
    return true;
}

/* 0: that failed, and the command will say so, or the box has ended. */
static uint64_t look_meanwhile(const struct sessiond *k)
{
    const uint64_t began = sessiond_now();
    struct err ignored = {0};
    return k->box && box_keep_fresh(k->box, &ignored) == 0 ? began : 0;
}

/* Whether a signal waits that asks for the end: a client that came after it gets no answer, and waits for that end. */
static bool is_reported(void)
{
    sigset_t waits;
    sigemptyset(&waits);
    return sigpending(&waits) == 0 &&
           (sigismember(&waits, SIGTERM) > 0 || sigismember(&waits, SIGINT) > 0 || sigismember(&waits, SIGHUP) > 0);
}

/* Until the request comes. */
static void wait_for_client(struct sessiond *k, int fd, int pid, uint64_t looked)
{
    unsigned i = 0;
    while (i < MAX_CONNECTIONS && k->connections[i].fd >= 0)
        i++;
    if (i == MAX_CONNECTIONS || sessiond_watch(k, fd, EPOLLIN, TICKET(SOURCE_CONNECTION, i)) < 0) {
        /* What was sent by now is served; later it cannot be sent, and the caller connects again. */
        (void)shutdown(fd, SHUT_RD);
        while (!take_message(k, fd, pid, looked))
            ;
        return;
    }
    k->connections[i] =
        (struct connection){.fd = fd, .pid = pid, .until = sessiond_now() + SILENT_US, .looked = looked};
    k->n_connections++;
}

void ask_back(void *ctx, int fd, uint32_t stream)
{
    struct sessiond *k = ctx;
    struct err e = {0};
    int pid = 0;
    if (!command_passed(k, fd) || !is_ours(k, fd, &pid)) {
        (void)close(fd);
        return;
    }
    k->commands--;
    if (stream) {
        answer_refused(fd, &e, command_refused(stream - 1, &e));
        (void)close(fd);
    } else if (!take_message(k, fd, pid, 0)) {
        wait_for_client(k, fd, pid, 0);
    }
}

static void listen_for(struct sessiond *k, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.u64 = TICKET(SOURCE_LISTEN, 0)};
    (void)epoll_ctl(k->epoll, EPOLL_CTL_MOD, k->listener, &wanted);
}

bool ask_accept(struct sessiond *k)
{
    for (int most = 32; most > 0; most--) {
        int pid = 0;
        int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            listen_for(k, 0); /* it would be ready, and fail, again and again */
            k->accept_at = sessiond_now() + STARVED_US;
        }
        if (fd < 0)
            return false;
        if (is_reported()) {
            (void)close(fd);
            return false;
        }
        if (!is_ours(k, fd, &pid)) {
            refuse_stranger(fd);
            (void)close(fd);
            continue;
        }
        if (take_message(k, fd, pid, 0))
            continue;
        const uint64_t looked = pid > 0 ? look_meanwhile(k) : 0; /* 0: nobody has said yet who it is */
        if (take_message(k, fd, pid, looked))
            continue;
        if (command_pass(k, fd, looked))
            (void)close(fd);
        else
            wait_for_client(k, fd, pid, looked);
    }
    return true;
}

void ask_ready(struct sessiond *k, unsigned i)
{
    struct connection *c = i < MAX_CONNECTIONS ? &k->connections[i] : NULL;
    if (!c || c->fd < 0)
        return;
    int fd = c->fd;
    /* Remove it from the set before it is taken over: it may stay open elsewhere. */
    (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, fd, NULL);
    if (take_message(k, fd, c->pid, c->looked)) {
        c->fd = -1;
        k->n_connections--;
    } else if (sessiond_watch(k, fd, EPOLLIN, TICKET(SOURCE_CONNECTION, i)) < 0) {
        drop(k, i);
    }
}

uint64_t ask_next(const struct sessiond *k)
{
    uint64_t next = k->accept_at ? k->accept_at : NEVER;
    for (unsigned i = 0; k->n_connections && i < MAX_CONNECTIONS; i++) {
        if (k->connections[i].fd >= 0 && k->connections[i].until < next)
            next = k->connections[i].until;
    }
    return next;
}

void ask_due(struct sessiond *k, uint64_t now)
{
    if (k->accept_at && k->accept_at <= now) {
        k->accept_at = 0;
        listen_for(k, EPOLLIN);
    }
    for (unsigned i = 0; k->n_connections && i < MAX_CONNECTIONS; i++) {
        if (k->connections[i].fd >= 0 && k->connections[i].until <= now) {
            (void)shutdown(k->connections[i].fd, SHUT_RD); /* as in ask_accept() */
            ask_ready(k, i);
        }
    }
}
