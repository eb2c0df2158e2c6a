/*
 * Background commands. The session daemon is their caller: it reads their output into a bounded log, whose oldest part
 * is dropped first, and remembers how they ended. An attached client gets the log and then new output, as fast as it
 * reads; a slow one misses what the log has dropped by then, and delays nobody.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include "base/json.h"
#include "sessiond/parts.h"

#define LOG_FIRST       4096u
#define LOG_MAX         (1u << 20)
#define MAX_ENDED       64 /* ended jobs that are remembered */
#define MAX_ANSWER_JSON (8u << 20)
#define MAX_LIST_JSON   (192u << 20) /* less than whoever asks for it takes */
#define MAX_SHOWN_ARGV  (8u << 10)
#define MAX_SHOWN_WORD  (1u << 10)
#define AGAIN_US        20000u /* retry interval while a terminal's input is full */
#define DEFAULT_GRACE   2000u  /* milliseconds */

struct attached {
    int fd; /* -1: free */
    unsigned job;
    uint64_t at;
    bool full;  /* it takes no more at the moment */
    char *held; /* typed, but not taken by the terminal yet */
    size_t held_n;
    uint64_t try_at; /* time of the next attempt */
};

struct session_job {
    uint32_t id; /* 0: free */
    bool tty, ended, asked_to_end;
    int reply, out; /* -1: closed */
    uint64_t until; /* end of its timeout, then of its grace period */
    char *log;
    size_t room;
    uint64_t first, end; /* oldest byte that is kept, and bytes ever written */
    char *argv;          /* as JSON */
    struct box_result result;
    char failed[sizeof((struct err *)0)->text];
    uint64_t began;
    uint64_t again; /* no process has its terminal open: when to check again; 0 */
    bool timed_out;
};

static struct session_job jobs[MAX_JOBS];
static struct attached attached[MAX_ATTACHED];
static uint32_t last_id;

static struct session_job *find_job(uint32_t id)
{
    for (unsigned i = 0; id && i < MAX_JOBS; i++) {
        if (jobs[i].id == id)
            return &jobs[i];
    }
    return NULL;
}

static void forget(struct session_job *j)
{
    (void)close_fd(j->reply);
    (void)close_fd(j->out);
    free(j->log);
    free(j->argv);
    box_result_free(&j->result);
    *j = (struct session_job){.reply = -1, .out = -1};
}

static bool is_read(const struct session_job *j)
{
    for (unsigned i = 0; i < MAX_ATTACHED; i++) {
        if (attached[i].fd >= 0 && &jobs[attached[i].job] == j)
            return true;
    }
    return false;
}

static struct session_job *oldest_ended(unsigned *ret_n)
{
    struct session_job *oldest = NULL;
    *ret_n = 0;
    for (unsigned i = 0; i < MAX_JOBS; i++) {
        if (!jobs[i].id || !jobs[i].ended || is_read(&jobs[i]))
            continue;
        ++*ret_n;
        if (!oldest || jobs[i].id < oldest->id)
            oldest = &jobs[i];
    }
    return oldest;
}

/* A free entry; if needed the job that ended longest ago is dropped. */
static struct session_job *make_room(void)
{
    unsigned n;
    for (struct session_job *j = oldest_ended(&n); n >= MAX_ENDED; j = oldest_ended(&n))
        forget(j);
    for (unsigned i = 0; i < MAX_JOBS; i++) {
        if (!jobs[i].id)
            return &jobs[i];
    }
    struct session_job *j = oldest_ended(&n);
    if (j)
        forget(j);
    return j;
}

/* A zeroed table is an empty one: writing to it would only allocate its pages. */
void jobs_begin(void)
{
    for (unsigned i = 0; i < MAX_ATTACHED; i++)
        attached[i].fd = -1;
}

/* ---- the log ---- */

static bool keep_bytes(struct session_job *j, const char *p, size_t n)
{
    while (j->room < LOG_MAX && j->end + n > j->room) {
        size_t room = j->room ? j->room * 2 : LOG_FIRST;
        char *grown = realloc(j->log, room);
        if (!grown)
            break;
        j->log = grown;
        j->room = room;
    }
    if (!j->room)
        return false;
    if (j->end + n > j->room && j->room < LOG_MAX)
        return false; /* out of memory: nothing more is kept */
    for (size_t i = 0; i < n;) {
        size_t at = (size_t)(j->end % j->room), part = j->room - at < n - i ? j->room - at : n - i;
        memcpy(j->log + at, p + i, part);
        j->end += part;
        i += part;
    }
    if (j->end - j->first > j->room)
        j->first = j->end - j->room;
    return true;
}

/* Copies at most `room` bytes from `*at`, which first moves up to the oldest byte kept. */
static size_t log_read(const struct session_job *j, uint64_t *at, char *to, size_t room)
{
    if (*at < j->first)
        *at = j->first;
    size_t n = 0;
    while (n < room && *at + n < j->end) {
        size_t from = (size_t)((*at + n) % j->room), part = j->room - from;
        if (part > j->end - *at - n)
            part = (size_t)(j->end - *at - n);
        if (part > room - n)
            part = room - n;
        memcpy(to + n, j->log + from, part);
        n += part;
    }
    return n;
}

/* ---- attached clients ---- */

static void detach(struct sessiond *k, unsigned i)
{
    struct attached *a = &attached[i];
    (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, a->fd, NULL);
    (void)close(a->fd);
    free(a->held);
    *a = (struct attached){.fd = -1};
}

static struct frame exit_frame(const struct session_job *j)
{
    const struct box_result *r = &j->result;
    struct frame f = {.kind = FRAME_EXIT, .stdin_at = -1};
    f.b = r->status_known ? (uint32_t)(r->by_signal ? r->code : r->code << 8) : 125u << 8;
    f.c = (uint32_t)box_result_status(r);
    return f;
}

/* What it is waited for now. While it may send nothing and is sent nothing it is not watched at all: that it has hung up would be told
   again and again. */
static void attend(struct sessiond *k, unsigned i)
{
    const struct attached *a = &attached[i];
    struct epoll_event wanted = {.events = (a->held_n ? 0 : EPOLLIN) | (a->full ? EPOLLOUT : 0u),
                                 .data.u64 = TICKET(SOURCE_ATTACHED, i)};
    if (!wanted.events)
        (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, a->fd, NULL);
    else if (epoll_ctl(k->epoll, EPOLL_CTL_MOD, a->fd, &wanted) < 0 && errno == ENOENT &&
             epoll_ctl(k->epoll, EPOLL_CTL_ADD, a->fd, &wanted) < 0)
        detach(k, i); /* it would not be heard any more */
}

/* False: it could not be sent. A client that is only slow gets it once it has read something. */
static bool push_message(struct sessiond *k, unsigned i, const void *p, size_t n)
{
    struct attached *a = &attached[i];
    if (send(a->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    a->full = errno == EAGAIN;
    if (a->full)
        attend(k, i);
    else
        detach(k, i);
    return false;
}

static void push(struct sessiond *k, unsigned i)
{
    struct {
        struct frame f;
        char bytes[KEEP_DATA];
    } m;
    struct attached *a = &attached[i];
    const struct session_job *j = &jobs[a->job];
    for (;;) {
        size_t n = log_read(j, &a->at, m.bytes, sizeof m.bytes);
        if (n == 0)
            break;
        m.f = (struct frame){.kind = FRAME_DATA, .a = (uint32_t)n};
        if (!push_message(k, i, &m, sizeof m.f + n))
            return;
        a->at += n;
    }
    if (j->ended) {
        const struct frame f = exit_frame(j);
        if (push_message(k, i, &f, sizeof f))
            detach(k, i);
        return;
    }
    if (a->full) {
        a->full = false;
        attend(k, i);
    }
}

static void push_all(struct sessiond *k, const struct session_job *j)
{
    for (unsigned i = 0; i < MAX_ATTACHED; i++) {
        if (attached[i].fd >= 0 && &jobs[attached[i].job] == j && !attached[i].full)
            push(k, i);
    }
}

static void type_held(struct sessiond *k, unsigned i)
{
    struct attached *a = &attached[i];
    struct session_job *j = &jobs[a->job];
    ssize_t n = j->tty && j->out >= 0 ? write(j->out, a->held, a->held_n) : (ssize_t)a->held_n;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        n = (ssize_t)a->held_n;
    if (n > 0) {
        memmove(a->held, a->held + n, a->held_n - (size_t)n);
        a->held_n -= (size_t)n;
    }
    a->try_at = a->held_n ? sessiond_now() + AGAIN_US : 0;
    attend(k, i);
}

void jobs_heard(struct sessiond *k, unsigned i)
{
    struct {
        struct frame f;
        char bytes[KEEP_DATA];
    } m;
    struct attached *a = &attached[i];
    if (i >= MAX_ATTACHED || a->fd < 0)
        return;
    if (a->full)
        push(k, i);
    if (a->fd < 0 || a->held_n)
        return;
    ssize_t n = recv(a->fd, &m, sizeof m, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct session_job *j = &jobs[a->job];
    if (n < (ssize_t)sizeof m.f) {
        detach(k, i);
    } else if (m.f.kind == FRAME_DATA && j->tty) {
        size_t typed = (size_t)n - sizeof m.f;
        free(a->held);
        a->held = malloc(typed + 1);
        a->held_n = a->held ? typed : 0;
        if (a->held)
            memcpy(a->held, m.bytes, typed);
        type_held(k, i);
    } else if (m.f.kind == FRAME_SIGNAL || m.f.kind == FRAME_WINSIZE) {
        (void)send(j->reply, &m.f, sizeof m.f, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

void jobs_attach(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    struct session_job *j = find_job(q->head.job);
    unsigned i = 0;
    while (i < MAX_ATTACHED && attached[i].fd >= 0)
        i++;
    int r = !j                  ? err_say(&e, ERR_POLICY, "the session has no job %u", q->head.job)
            : i == MAX_ATTACHED ? err_say(&e, ERR_SYSTEM, "already %d attached", MAX_ATTACHED)
                                : sessiond_watch(k, q->from, EPOLLIN, TICKET(SOURCE_ATTACHED, i));
    if (r < 0) {
        answer_refused(q->from, &e, r);
        return;
    }
    attached[i] = (struct attached){.fd = q->from, .job = (unsigned)(j - jobs), .at = q->head.number};
    q->from = -1;
    const struct frame f = {.kind = FRAME_ANSWER, .c = j->tty};
    (void)send(attached[i].fd, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
    push(k, i);
}

/* ---- frames and bytes of a job ---- */

static void over(struct sessiond *k, struct session_job *j)
{
    j->ended = true;
    j->until = NEVER;
    j->result.wall_us = sessiond_now() - j->began;
    if (j->timed_out) {
        j->result.end = BOX_TIMED_OUT;
        j->result.limit = BOX_LIMIT_TIMEOUT;
    } else {
        j->result.end = !j->result.status_known ? BOX_LOST : j->result.by_signal ? BOX_SIGNALED : BOX_EXITED;
    }
    if (j->result.command)
        denied_add(k, j->began, &j->result);
    /* Processes it left behind may still write; its own output is in the pipe by now. */
    jobs_bytes(k, (unsigned)(j - jobs));
    if (j->tty) {
        const struct frame f = {.kind = FRAME_END, .a = 1};
        (void)send(j->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        j->out = close_fd(j->out);
    }
    j->reply = close_fd(j->reply);
    push_all(k, j);
}

static void status(struct session_job *j, int status)
{
    j->result.status_known = true;
    j->result.by_signal = WIFSIGNALED(status);
    j->result.code = j->result.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void take_frame(struct sessiond *k, struct session_job *j, const struct frame *f, int *fd)
{
    struct err e = {0};
    switch (f->kind) {
    case FRAME_TTY:
        if (j->tty && j->out < 0 && *fd >= 0) {
            j->out = take_fd(fd);
            (void)fcntl(j->out, F_SETFL, O_RDWR | O_NONBLOCK);
            (void)sessiond_watch(k, j->out, EPOLLIN, TICKET(SOURCE_JOB_OUT, j - jobs));
        }
        break;
    case FRAME_EXEC_FAILED:
        j->result.exec_errno = (int)f->b;
        status(j, (f->b == ENOENT || f->b == ENOTDIR ? 127 : 126) << 8);
        over(k, j);
        break;
    case FRAME_VERDICT:
        (void)box_exec_verdict(f->a, (int)f->b, NULL, &e);
        snprintf(j->failed, sizeof j->failed, "%s", e.text);
        over(k, j);
        break;
    case FRAME_STARTED: /* a virtual machine has its own pids, and the guard around it sees qemu */
        j->result.command = k->ask->box.start.plan->facts->machine ? 0 : f->a;
        if (j->result.command) /* it runs before pid 1 sends this, and may have been refused things */
            denied_early(j->began, &j->result);
        break;
    case FRAME_EXIT:
        j->result.cpu_us = f->utime_us + f->stime_us;
        j->result.peak_bytes = f->maxrss_kib << 10;
        j->result.read_bytes = f->inblock * 512;
        j->result.written_bytes = f->oublock * 512;
        status(j, (int)f->b);
        over(k, j);
        break;
    default:
        break;
    }
}

void jobs_frame(struct sessiond *k, unsigned i)
{
    struct session_job *j = i < MAX_JOBS ? &jobs[i] : NULL;
    while (j && j->id && j->reply >= 0) {
        struct frame f;
        auto_fd int fd = -1;
        ssize_t n = answer_receive(j->reply, &f, sizeof f, &fd);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            over(k, j);
            return;
        }
        if (n == (ssize_t)sizeof f)
            take_frame(k, j, &f, &fd);
    }
}

void jobs_bytes(struct sessiond *k, unsigned i)
{
    char bytes[16384];
    struct session_job *j = i < MAX_JOBS ? &jobs[i] : NULL;
    for (int most = 16; j && j->id && j->out >= 0 && most > 0; most--) {
        ssize_t n = read(j->out, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && j->tty && !j->ended) { /* EIO: no process has it open, and poll would return at once */
            (void)epoll_ctl(k->epoll, EPOLL_CTL_DEL, j->out, NULL);
            j->again = sessiond_now() + 100000;
            break;
        }
        if (n <= 0) {
            j->out = close_fd(j->out);
            break;
        }
        (void)keep_bytes(j, bytes, (size_t)n);
    }
    if (j && j->id)
        push_all(k, j);
}

/* ---- requests ---- */

static char *argv_json(const struct job_image *image)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_JSON);
    struct json j = JSON(&out);
    json_array(&j, NULL);
    for (uint32_t i = 0; i < image->n_argv && out.n < MAX_SHOWN_ARGV; i++) {
        const char *word = job_string(image, job_list(image, image->argv_at)[i]);
        json_str(&j, NULL, (struct str){word, strnlen(word, MAX_SHOWN_WORD)});
    }
    json_array_end(&j);
    return buf_take(&out);
}

/* Creates the streams: the command's ends go to `fds`, ours to the job. */
static int make_job_ends(struct session_job *j, const struct session_request *q, int fds[3], int *ret_reply,
                         struct err *e)
{
    int pair[2], ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start a job");
    j->reply = pair[0];
    *ret_reply = pair[1];
    if (j->tty)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot start a job");
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    j->out = ends[0];
    fds[1] = fds[2] = ends[1];
    fds[0] = q->n_fds ? fcntl(q->fds[0], F_DUPFD_CLOEXEC, 3) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fds[0] < 0 ? err_sys(e, ERR_SYSTEM, errno, "cannot start a job") : 0;
}

void jobs_start(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    const struct job_image *image = command_image(q->payload, q->head.bytes, &e);
    struct session_job *j = image ? make_room() : NULL;
    int fds[3] = {-1, -1, -1}, reply = -1;
    int r = !image ? -EBADMSG : !j ? err_say(&e, ERR_SYSTEM, "the session already runs %d jobs", MAX_JOBS) : 0;
    if (r == 0 && image->flags & JOB_TTY && job_n_streams(image->flags))
        r = err_say(&e, ERR_BUG, "a job with a terminal came with descriptors");
    if (r == 0) {
        *j = (struct session_job){.id = last_id + 1,
                                  .tty = image->flags & JOB_TTY,
                                  .reply = -1,
                                  .out = -1,
                                  .began = sessiond_now(),
                                  .argv = argv_json(image)};
        j->until = q->head.number && q->head.number < KEEP_MAX_WAIT ? j->began + q->head.number * 1000 : NEVER;
        r = j->argv ? make_job_ends(j, q, fds, &reply, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot start a job");
    }
    if (r == 0)
        r = command_fresh(k, q, &e);
    if (r == 0)
        r = command_send(k, image, JOB_TELL_START | (j->tty ? 0u : JOB_ONE_OUTPUT), reply, fds, j->tty ? 0 : 3, &e);
    if (r == 0)
        r = sessiond_watch(k, j->reply, EPOLLIN, TICKET(SOURCE_JOB, j - jobs));
    if (r == 0 && j->out >= 0)
        r = sessiond_watch(k, j->out, EPOLLIN, TICKET(SOURCE_JOB_OUT, j - jobs));
    (void)close_fd(reply);
    (void)close_fd(fds[0]);
    (void)close_fd(fds[1]);
    if (r < 0) {
        if (j)
            forget(j);
        answer_refused(q->from, &e, r);
        return;
    }
    j->result.session = k->ask->box.session;
    last_id = j->id;
    answer_bytes(q->from, "", 0, j->id, 0, 0);
}

static void put_job(struct json *out, const struct session_job *j, const struct box_terms *terms)
{
    auto_buf struct buf result = BUF(MAX_ANSWER_JSON);
    json_object(out, NULL);
    json_uint(out, "job", j->id);
    json_raw(out, "argv", str_of(j->argv));
    json_bool(out, "tty", j->tty);
    json_text(out, "state", j->ended ? "ended" : "running");
    json_uint(out, "output_first", j->first);
    json_uint(out, "output_end", j->end);
    if (j->failed[0])
        json_text(out, "error", j->failed);
    if (j->ended && box_result_json(&j->result, terms, false, &result) == 0)
        json_raw(out, "result", buf_view(&result));
    else
        json_null(out, "result");
    json_object_end(out);
}

void jobs_list(struct sessiond *k, struct session_request *q)
{
    auto_buf struct buf text = BUF(MAX_LIST_JSON);
    struct err e = {0};
    const struct run_spec *box = &k->ask->box;
    struct box_terms terms = box_terms(box->start.plan);
    struct json out = JSON(&text);
    terms.offer = box->offer;
    terms.start_name = box->scope && box->scope[0] ? NULL : box->session;
    terms.policy = NULL; /* its memory was given back */
    json_object(&out, NULL);
    json_array(&out, "jobs");
    for (uint32_t id = 1; id <= last_id; id++) {
        const struct session_job *j = find_job(id);
        if (j)
            put_job(&out, j, &terms);
    }
    json_array_end(&out);
    json_object_end(&out);
    if (buf_ok(&text))
        answer_bytes(q->from, buf_cstr(&text), text.n, 0, 0, 0);
    else
        answer_refused(q->from, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot list the jobs"));
}

void jobs_output(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    const struct session_job *j = find_job(q->head.job);
    uint64_t at = q->head.number;
    (void)k;
    if (!j) {
        answer_refused(q->from, &e, err_say(&e, ERR_POLICY, "the session has no job %u", q->head.job));
        return;
    }
    size_t room = q->head.b < LOG_MAX ? q->head.b : LOG_MAX;
    char *bytes = malloc(room + 1);
    size_t n = bytes ? log_read(j, &at, bytes, room) : 0;
    /* Numbers: start of these bytes, the oldest that is kept; 1: no more will come. */
    answer_bytes(q->from, bytes ? bytes : "", n, j->ended && at + n == j->end, at, j->first);
    free(bytes);
}

void jobs_kill(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    const struct session_job *j = find_job(q->head.job);
    const struct frame f = {.kind = FRAME_SIGNAL, .a = q->head.b, .b = SIGNAL_EVERYONE};
    (void)k;
    int r = !j                                 ? err_say(&e, ERR_POLICY, "the session has no job %u", q->head.job)
            : j->ended                         ? err_say(&e, ERR_POLICY, "job %u has already ended", q->head.job)
            : q->head.b == 0 || q->head.b > 64 ? err_say(&e, ERR_POLICY, "%u is not a signal", q->head.b)
                                               : 0;
    if (r == 0 && send(j->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        r = err_sys(&e, ERR_SYSTEM, errno, "job %u", q->head.job);
    if (r < 0)
        answer_refused(q->from, &e, r);
    else
        answer_bytes(q->from, "", 0, 0, 0, 0);
}

/* The message that it has started may still be unread when its first denial arrives. */
static void hear_of_start(struct sessiond *k, struct session_job *j)
{
    struct frame f;
    while (!j->result.command && recv(j->reply, &f, sizeof f, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof f &&
           (f.kind == FRAME_TTY || f.kind == FRAME_STARTED)) {
        auto_fd int fd = -1;
        if (answer_receive(j->reply, &f, sizeof f, &fd) == (ssize_t)sizeof f)
            take_frame(k, j, &f, &fd);
        if (k->ask->box.start.plan->facts->machine)
            return;
    }
}

void jobs_denied(struct sessiond *k, const struct denial *d)
{
    for (unsigned i = 0; last_id && i < MAX_JOBS; i++) {
        struct session_job *j = &jobs[i];
        if (!j->id || j->ended)
            continue;
        hear_of_start(k, j);
        if (j->result.command == d->session)
            (void)box_result_deny(&j->result, d);
    }
}

void jobs_denials(struct sessiond *k, struct session_request *q)
{
    struct buf b = BUF(KEEP_MAX);
    const struct session_job *j = find_job(q->head.job);
    (void)k;
    for (size_t i = 0; j && j->ended && i < j->result.n_denials; i++)
        denied_put(&b, &j->result.denials[i]);
    answer_bytes(q->from, buf_ok(&b) ? buf_cstr(&b) : "", b.n, 0, 0, 0);
    buf_free(&b);
}

unsigned jobs_running(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < MAX_JOBS; i++)
        n += jobs[i].id && !jobs[i].ended;
    return n;
}

/* ---- timeouts ---- */

uint64_t jobs_next(void)
{
    uint64_t next = NEVER;
    for (unsigned i = 0; last_id && i < MAX_JOBS; i++) {
        if (jobs[i].id && !jobs[i].ended && jobs[i].until < next)
            next = jobs[i].until;
        if (jobs[i].again && jobs[i].again < next)
            next = jobs[i].again;
    }
    for (unsigned i = 0; last_id && i < MAX_ATTACHED; i++) {
        if (attached[i].fd >= 0 && attached[i].try_at && attached[i].try_at < next)
            next = attached[i].try_at;
    }
    return next;
}

void jobs_due(struct sessiond *k, uint64_t now)
{
    const uint64_t said = k->ask->box.start.plan->policy->limits.grace.value;
    for (unsigned i = 0; last_id && i < MAX_JOBS; i++) {
        struct session_job *j = &jobs[i];
        struct frame f = {.kind = FRAME_SIGNAL, .a = SIGTERM, .b = SIGNAL_EVERYONE};
        if (j->again && j->again <= now) {
            j->again = 0;
            if (j->out >= 0)
                (void)sessiond_watch(k, j->out, EPOLLIN, TICKET(SOURCE_JOB_OUT, i));
        }
        if (!j->id || j->ended || j->until > now)
            continue;
        if (j->timed_out)
            f = (struct frame){.kind = FRAME_END};
        (void)send(j->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (!j->timed_out) {
            f = (struct frame){.kind = FRAME_SIGNAL, .a = SIGCONT, .b = SIGNAL_EVERYONE};
            (void)send(j->reply, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        j->until = j->timed_out ? NEVER : now + (said == UINT64_MAX ? DEFAULT_GRACE : said) * 1000;
        j->timed_out = true;
    }
    for (unsigned i = 0; last_id && i < MAX_ATTACHED; i++) {
        if (attached[i].fd >= 0 && attached[i].try_at && attached[i].try_at <= now)
            type_held(k, i);
    }
}
