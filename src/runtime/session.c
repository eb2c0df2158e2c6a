/*
 * Pid 1 of a session: it has no command of its own but runs those it is sent. Each comes with descriptors and a reply
 * socket (protocol/job.h), is started like the command of a plain run, and reports on that socket. pinfold wrote the
 * image; it is still checked, and a malformed one gets an error reply and is never fatal, because other commands depend
 * on the box.
 *
 * A caller need not wait for the session daemon: that passes on the connection while the request is still being written (FRAME_CALLER),
 * having found out who it is and looked anew at the host's files. What pid 1 then reads itself is a command without environment, directory
 * or limits of its own, in one message and in time. It judges image and descriptors by the daemon's own functions. Everything else
 * goes back to the daemon, unread.
 *
 * Closing a reply socket kills its command's whole session. Processes that left that session (setsid) or outlived their
 * command end with the box.
 */
#include "runtime/command.h"
#include "protocol/keep.h"
#include "sys/poll.h"

enum { MAX_TASKS = 4096, LIST_ROOM = 2048, KILL_ROUNDS = 20, MAX_CALLERS = 8 };

struct session_task {
    int pid, reply, master; /* -1: none (any more) */
    bool tty, told;
};

struct serving {
    const struct runner *r;
    int control, signals, proc;
    uint32_t umask, n;
    uint32_t number;                 /* of the last command, to be told when nothing runs any more; 0: no need */
    uint32_t waiting;                /* callers */
    const struct job_image *session; /* of FRAME_SESSION, or NULL */
};

/* polled[i + CALLERS] belongs to until[i], polled[i + FIRST] to tasks[i]. Pages are only allocated on use. */
enum { CONTROL, SIGNALS, CALLERS, FIRST = CALLERS + MAX_CALLERS };
static uint64_t until[MAX_CALLERS]; /* FRAME_CALLER's */
static struct session_task tasks[MAX_TASKS];
static struct pollfd polled[MAX_TASKS + FIRST];
static _Alignas(8) char image_room[JOB_INLINE], session_room[JOB_INLINE];
static const char *list_room[LIST_ROOM];

struct arrival { /* one FRAME_EXEC, as received */
    struct frame frame;
    int fds[1 + JOB_FDS]; /* of a caller's command: its connection, and what came on that */
    int n_fds;
    size_t n; /* size of the image that came with it */
};

static void reply_to(int reply, uint32_t kind, uint32_t a, uint32_t b)
{
    const struct frame f = {.kind = kind, .a = a, .b = b};
    if (reply >= 0)
        (void)sys_send_fd(reply, &f, sizeof f, -1, MSG_DONTWAIT);
}

/* ---- signals ---- */

static int number_of(const char *name)
{
    int v = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        v = v * 10 + *name - '0';
    return *name ? 0 : v;
}

/* Sends `signal` to every process of session `leader`, including the leader if `itself`; returns how many there
   were. */
static int sweep_session(int proc, int leader, bool itself, int signal)
{
    static _Alignas(8) char list[4096];
    struct sys_entries entries = SYS_ENTRIES(proc, list);
    int found = 0;
    if (itself)
        (void)sys_kill(-leader, signal);
    if (proc < 0 || sys_lseek(proc, 0, SEEK_SET) < 0)
        return 0;
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        const int pid = number_of(d->name);
        if (pid > 0 && (itself || pid != leader) && sys_call(SYS_getsid, pid, 0, 0, 0, 0, 0) == leader) {
            (void)sys_kill(pid, signal);
            found++;
        }
    }
    return found;
}

static void signal_session(const struct serving *s, int leader, bool itself, int signal)
{
    int rounds = signal == SIGKILL ? KILL_ROUNDS : 1;
    while (rounds-- > 0 && sweep_session(s->proc, leader, itself, signal) > 0)
        ;
}

static void signal_task(const struct serving *s, const struct session_task *t, int signal, uint32_t target)
{
    if (target == SIGNAL_EVERYONE || target == SIGNAL_CHILDREN) {
        signal_session(s, t->pid, target == SIGNAL_EVERYONE, signal);
    } else if (t->tty) {
        signal_foreground(t->master, signal);
    } else {
        (void)sys_kill(target == SIGNAL_FOREGROUND ? -t->pid : t->pid, signal);
    }
}

/* ---- one command ---- */

static void drop_all(struct arrival *a, int from)
{
    for (int i = from; i < a->n_fds; i++)
        sys_drop(&a->fds[i]);
}

/* Pointers to the strings of an image, and to those of the environment in `of`; `ret_pages`, of `ret_bytes`, must be freed. */
static const char **list_of(const struct job_image *j, const struct job_image *of, const char ***ret_envp,
                            void **ret_pages, size_t *ret_bytes)
{
    size_t n = (size_t)j->n_argv + of->n_envp + 2;
    const char **list = list_room;
    if (n > LIST_ROOM) {
        *ret_bytes = n * sizeof *list;
        list = sys_pages(*ret_bytes);
        *ret_pages = (void *)list;
        if (!list)
            return NULL;
    }
    for (uint32_t i = 0; i < j->n_argv; i++)
        list[i] = job_string(j, job_list(j, j->argv_at)[i]);
    list[j->n_argv] = NULL;
    *ret_envp = list + j->n_argv + 1;
    for (uint32_t i = 0; i < of->n_envp; i++)
        (*ret_envp)[i] = job_string(of, job_list(of, of->envp_at)[i]);
    (*ret_envp)[of->n_envp] = NULL;
    return list;
}

static _Noreturn void lead(const struct serving *s, const struct job *job, int slave, int reply)
{
    int kept[] = {slave, reply, job->stdio[0], job->stdio[1], job->stdio[2]};
    /* above all other commands' reply sockets and terminals, whose closing must be noticed */
    (void)close_others(kept, sizeof kept / sizeof *kept);
    leader_main(s->r, job, slave, reply);
}

static int start_on_terminal(const struct serving *s, const struct job *job, struct session_task *t)
{
    int pty[2];
    int e = terminal_open(pty);
    if (e < 0)
        return e;
    t->master = pty[0];
    e = terminal_give(t->reply, job, t->master);
    int pid = e < 0 ? e : (int)sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
    if (pid == 0)
        lead(s, job, pty[1], t->reply);
    sys_drop(&pty[1]);
    t->pid = pid;
    return pid < 0 ? pid : 0;
}

static int start_plain(const struct serving *s, const struct job *job, struct session_task *t)
{
    struct outcome o;
    int pid = command_start(s->r, job, -1, &o);
    if (pid > 0 && o.no)
        command_failed(t->reply, &o);
    t->pid = pid;
    return pid < 0 ? pid : 0;
}

/* poll(2) takes no more entries than files may be open, and fails for all commands if it gets more. */
static bool is_full(const struct serving *s)
{
    const uint64_t most = s->r->own_files;
    return s->n == MAX_TASKS || (most && FIRST + s->n >= most);
}

/* `of`: whose environment and directory it has. */
static void run_task(struct serving *s, const struct job_image *j, const struct job_image *of, struct arrival *a,
                     int first)
{
    const char **envp = NULL;
    void *pages = NULL;
    size_t bytes = 0;
    const bool tty = j->flags & JOB_TTY;
    struct session_task t = {.pid = -1, .reply = a->fds[first], .master = -1, .tty = tty};
    struct job job = {.cwd = of->cwd ? job_string(of, of->cwd) : NULL,
                      .stdio = {-1, -1, -1},
                      .tty = tty,
                      .rows = j->rows,
                      .columns = j->columns,
                      .umask = j->umask,
                      .own_umask = j->umask != s->umask,
                      .stdin_at = -1,
                      .of_session = true,
                      .rlimits = job_rlimits(j),
                      .n_rlimits = j->n_rlimits};
    for (int i = 0, at = first + 1; i < 3; i++) {
        if (job_streams(j->flags) >> i & 1)
            job.stdio[i] = a->fds[at++];
    }
    job.argv = list_of(j, of, &envp, &pages, &bytes);
    job.envp = envp;
    int e = !job.argv ? -ENOMEM : is_full(s) ? -EAGAIN : 0;
    if (e == 0)
        e = tty ? start_on_terminal(s, &job, &t) : start_plain(s, &job, &t);
    if (pages)
        sys_unmap(pages, bytes);
    if (e < 0) {
        reply_to(t.reply, FRAME_VERDICT, tty ? WHERE_PTY : WHERE_CHILD, (uint32_t)-e);
        sys_drop(&t.master);
        return;
    }
    a->fds[first] = -1; /* owned by the task from now on */
    if (j->flags & JOB_TELL_START)
        reply_to(t.reply, FRAME_STARTED, (uint32_t)t.pid, 0);
    polled[FIRST + s->n] = (struct pollfd){.fd = t.reply, .events = POLLIN};
    tasks[s->n++] = t;
}

/* ---- messages on `control`, and requests ---- */

union arrival_fds {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(JOB_FDS * sizeof(int))];
};

/* A message of a head and what follows it. Returns its size, 0 at the end of the stream, -errno. */
static long receive(int from, void *head, size_t head_bytes, struct arrival *a)
{
    struct iovec v[2] = {{.iov_base = head, .iov_len = head_bytes},
                         {.iov_base = image_room, .iov_len = sizeof image_room}};
    union arrival_fds c = {.bytes = {0}};
    struct msghdr m = {
        .msg_iov = v, .msg_iovlen = 2, .msg_control = &c, .msg_controllen = CMSG_LEN(JOB_FDS * sizeof(int))};
    a->n_fds = 0;
    long n = sys_recvmsg(from, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n >= 0 && m.msg_controllen >= CMSG_LEN(0) && c.head.cmsg_level == SOL_SOCKET &&
        c.head.cmsg_type == SCM_RIGHTS) {
        a->n_fds = (int)((c.head.cmsg_len - CMSG_LEN(0)) / sizeof(int));
        __builtin_memcpy(a->fds, CMSG_DATA(&c.head), (size_t)a->n_fds * sizeof(int));
    }
    if (n > 0 && m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
        drop_all(a, 0);
        a->n_fds = 0;
    }
    a->n = n > (long)head_bytes ? (size_t)n - head_bytes : 0;
    return n;
}

/* Copies the image from its memfd into our own pages, where nobody can change it any more. */
static void *fetch(int fd, size_t n)
{
    char *pages = n >= sizeof(struct job_image) && n <= JOB_MAX_BYTES ? sys_pages(n) : NULL;
    for (size_t at = 0; pages && at < n;) {
        long got = sys_pread(fd, pages + at, n - at, at);
        if (got == -EINTR)
            continue;
        if (got <= 0) {
            sys_unmap(pages, n);
            return NULL;
        }
        at += (size_t)got;
    }
    return pages;
}

static void take_exec(struct serving *s, struct arrival *a)
{
    const bool apart = a->frame.b == 1;
    const int first = apart ? 1 : 0;
    void *fetched = apart && a->n_fds > 0 ? fetch(a->fds[0], a->frame.a) : NULL;
    const struct job_image *j = apart ? fetched : (const void *)image_room;
    const size_t n = apart ? a->frame.a : a->n;
    int reply = a->n_fds > first ? a->fds[first] : -1;

    s->number = sys_getpid() == 1 ? a->frame.c : 0; /* others have no overlays that are looked at anew */
    if (apart && a->n_fds > 0)
        sys_drop(&a->fds[0]);
    if (!j || job_image_check(j, n) < 0 || a->n_fds != first + 1 + (int)job_n_streams(j->flags))
        reply_to(reply, FRAME_VERDICT, WHERE_CHECK, apart && !j ? ENOMEM : EBADMSG);
    else if (!sys_hung_up(reply)) /* or who wanted it has given up while this process did not run */
        run_task(s, j, j, a, first);
    drop_all(a, first);
    if (fetched)
        sys_unmap(fetched, a->frame.a);
}

/* ---- callers ---- */

/* To the session daemon. If it cannot take it the connection ends, and its caller connects again. */
static void hand_back(int control, int fd, uint32_t stream)
{
    const struct frame f = {.kind = FRAME_CALLER, .b = stream};
    (void)sys_send_fd(control, &f, sizeof f, fd, MSG_DONTWAIT);
}

/* Looks at what a caller has sent: the size of a command that is for pid 1, or -EBADMSG; -EAGAIN if there is nothing yet. */
static long look_at(uint32_t i)
{
    struct keep_request q;
    struct iovec v[2] = {{.iov_base = &q, .iov_len = sizeof q}, {.iov_base = image_room, .iov_len = sizeof image_room}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    const struct job_image *j = (const void *)image_room;
    struct timespec now = {0};
    const long n = sys_recvmsg(polled[CALLERS + i].fd, &m, MSG_PEEK | MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return -EAGAIN;
    if (n <= (long)sizeof q || m.msg_flags & MSG_TRUNC || q.magic != KEEP_MAGIC || q.op != KEEP_EXEC || q.apart ||
        q.bytes != (size_t)n - sizeof q || job_image_check(image_room, q.bytes) < 0)
        return -EBADMSG;
    if (j->n_envp || j->cwd || j->n_rlimits)
        return -EBADMSG;
    (void)sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u < until[i] ? n : -EBADMSG;
}

/* 1 to 3: that stream must not enter the box; 0. */
static uint32_t refused_stream(uint32_t flags, const struct arrival *a)
{
    for (int i = 0, at = 1; i < 3; i++) {
        if (job_streams(flags) >> i & 1 && stdio_way(a->fds[at++]) != STDIO_PASS)
            return (uint32_t)i + 1;
    }
    return 0;
}

static void hear_caller(struct serving *s, uint32_t i)
{
    const struct job_image *j = (const void *)image_room;
    struct keep_request q;
    struct arrival a = {.n_fds = 1};
    uint32_t stream = 0;
    const int fd = polled[CALLERS + i].fd;
    const long seen = look_at(i);
    bool same = true; /* nobody else reads there */
    if (seen == -EAGAIN)
        return;
    polled[CALLERS + i].fd = -1;
    s->waiting--;
    a.fds[0] = fd;
    if (seen > 0) {
        same = receive(fd, &q, sizeof q, &a) == seen;
        for (int n = a.n_fds++; n >= 0; n--)
            a.fds[n] = n ? a.fds[n - 1] : fd;
    }
    if (seen > 0 && (!same || a.n_fds != 1 + (int)job_n_streams(j->flags)))
        reply_to(fd, FRAME_VERDICT, WHERE_CHECK, EBADMSG);
    else if (seen < 0 || (stream = refused_stream(j->flags, &a)) != 0)
        hand_back(s->control, fd, stream);
    else if (!sys_hung_up(fd))
        run_task(s, j, s->session, &a, 0);
    drop_all(&a, 0);
}

static void take_caller(struct serving *s, struct arrival *a)
{
    uint32_t i = 0;
    while (i < MAX_CALLERS && polled[CALLERS + i].fd >= 0)
        i++;
    s->number = sys_getpid() == 1 ? a->frame.a : 0;
    if (a->n_fds != 1 || !s->session || i == MAX_CALLERS) {
        hand_back(s->control, a->n_fds ? a->fds[0] : -1, 0);
        drop_all(a, 0);
        return;
    }
    until[i] = a->frame.utime_us;
    polled[CALLERS + i] = (struct pollfd){.fd = a->fds[0], .events = POLLIN};
    s->waiting++;
    hear_caller(s, i);
}

static void take_session(struct serving *s, const struct arrival *a)
{
    if (s->session || job_image_check(image_room, a->n) < 0)
        return;
    __builtin_memcpy(session_room, image_room, a->n);
    s->session = (const void *)session_room;
}

static void obey_sessiond(struct serving *s)
{
    for (int most = 16; most > 0; most--) { /* check on children in between */
        struct arrival a;
        long n = receive(s->control, &a.frame, sizeof a.frame, &a);
        if (n == -EAGAIN || n == -EINTR)
            return;
        if (n <= 0 || (n == (long)sizeof a.frame && a.frame.kind == FRAME_END))
            init_leave(s->r, 128 + SIGKILL);
        if (n >= (long)sizeof a.frame && a.frame.kind == FRAME_EXEC)
            take_exec(s, &a);
        else if (n == (long)sizeof a.frame && a.frame.kind == FRAME_CALLER)
            take_caller(s, &a);
        else if (n >= (long)sizeof a.frame && a.frame.kind == FRAME_SESSION && a.n_fds == 0)
            take_session(s, &a);
        else
            drop_all(&a, 0);
    }
}

/* ---- tasks ---- */

static void remove_task(struct serving *s, uint32_t i)
{
    sys_drop(&tasks[i].reply);
    sys_drop(&tasks[i].master);
    s->n--;
    tasks[i] = tasks[s->n];
    polled[FIRST + i] = polled[FIRST + s->n];
}

/* Nobody listens to this command any more: kills it. */
static void left_alone(const struct serving *s, uint32_t i)
{
    struct session_task *t = &tasks[i];
    polled[FIRST + i].fd = t->reply = sys_shut(t->reply);
    if (t->told)
        (void)sys_kill(t->pid, SIGKILL); /* the leader, which waited for that */
    else
        signal_session(s, t->pid, true, SIGKILL);
}

static void hear(const struct serving *s, uint32_t i)
{
    struct session_task *t = &tasks[i];
    struct frame f;
    int fd = -1;
    long n = sys_recv_fd(t->reply, &f, sizeof f, &fd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    sys_drop(&fd);
    if (n == (long)sizeof f && f.kind == FRAME_SIGNAL && f.a > 0 && f.a <= 64) {
        signal_task(s, t, (int)f.a, f.b);
    } else if (n == (long)sizeof f && f.kind == FRAME_WINSIZE && t->master >= 0) {
        terminal_resize(t->master, &f);
    } else if (n == (long)sizeof f && f.kind == FRAME_END && f.a == 1 && t->tty) {
        t->told = true;
        left_alone(s, i);
    } else if (n == (long)sizeof f && f.kind == FRAME_END) { /* its exit is still reported */
        signal_session(s, t->pid, true, SIGKILL);
    } else if (n <= 0) {
        left_alone(s, i);
    }
}

static void ended(struct serving *s, uint32_t i, int status, const struct rusage *usage)
{
    const struct session_task *t = &tasks[i];
    const struct job nothing = {.stdin_at = -1, .session = t->pid, .of_session = true};
    if (WIFSTOPPED(status)) {
        if (!t->tty) /* a leader stopped from inside does not concern the caller */
            reply_to(t->reply, FRAME_STOPPED, 0, (uint32_t)WSTOPSIG(status));
        return;
    }
    /* A leader has reported how the command ended, unless it was killed first. */
    if (t->reply >= 0 && (!t->tty || WIFSIGNALED(status)))
        (void)report_exit(t->reply, &nothing, status, usage);
    remove_task(s, i);
}

static void reap_tasks(struct serving *s)
{
    struct rusage usage;
    int status;
    for (;;) {
        int pid = sys_wait4(-1, &status, WNOHANG | WUNTRACED | __WALL, &usage);
        if (pid == -ECHILD && s->number && !s->waiting) {
            reply_to(s->control, FRAME_IDLE, s->number, 0);
            s->number = 0;
        }
        if (pid <= 0 && pid != -EINTR)
            return;
        for (uint32_t i = 0; pid > 0 && i < s->n; i++) {
            if (tasks[i].pid == pid) {
                ended(s, i, status, &usage);
                break;
            }
        }
    }
}

/* Checks that this /proc is of our pid namespace: in another the same numbers name other processes. */
static int own_proc(int proc)
{
    char text[16];
    long n = proc < 0 ? proc : sys_readlinkat(proc, "self", text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && number_of(text) == sys_getpid() ? proc : sys_shut(proc);
}

_Noreturn void serve_main(const struct runner *r, int control, int signals, int proc, uint32_t umask)
{
    struct serving s = {.r = r, .control = control, .signals = signals, .proc = own_proc(proc), .umask = umask};
    for (size_t i = 0; i < r->n_spare; i++) /* needed only for the start */
        sys_unmap(r->spare[i].at, r->spare[i].bytes);
    reply_to(control, FRAME_READY, 0, 0);
    polled[CONTROL] = (struct pollfd){.fd = control, .events = POLLIN};
    polled[SIGNALS] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (uint32_t i = 0; i < MAX_CALLERS; i++)
        polled[CALLERS + i].fd = -1;
    for (;;) {
        int n = sys_poll(polled, FIRST + s.n, NULL);
        if (n < 0 && n != -EINTR)
            init_leave(r, 125);
        if (n < 0)
            continue;
        if (polled[SIGNALS].revents) {
            char ignored[sizeof(struct signalfd_siginfo)];
            (void)sys_read(signals, ignored, sizeof ignored);
        }
        /* From the end, because a removed entry is replaced by the last one, which was already handled. */
        for (uint32_t i = s.n; i-- > 0;) {
            if (polled[FIRST + i].revents && tasks[i].reply >= 0)
                hear(&s, i);
        }
        for (uint32_t i = 0; i < MAX_CALLERS; i++) {
            if (polled[CALLERS + i].fd >= 0 && polled[CALLERS + i].revents)
                hear_caller(&s, i);
        }
        reap_tasks(&s);
        if (polled[CONTROL].revents)
            obey_sessiond(&s);
    }
}
