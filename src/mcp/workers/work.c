/*
 * Worker processes: one per call, started and watched by the server. They carry out what may take long or fail badly,
 * so that the process that talks goes on.
 */
#include "mcp/workers/work.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "mcp/tools/tool.h"
#include "mcp/tools/tool_resource.h"

#define SPARE          1    /* workers that wait for calls              */
#define IDLE           4    /* more than these are let go */
#define WORK_IDLE_MS   1000 /* ... when nothing was to do for so long */
#define PLENTY         16   /* of so many, one that rests is waited for rather than another one made */
#define MAX_LIVE       64   /* processes, those that are ending included */
#define OF_ONE_SESSION 4    /* workers that know one session: its box has a few connections for files */
#define CALLS_OF_ONE   4096 /* then a worker makes room for a fresh one */

struct worker {
    struct loop_source source;
    struct work *work;
    struct worker *next;
    struct task *task; /* NULL: free */
    pid_t pid;
    unsigned calls;
    uint64_t affinity; /* the session that it knows, or 0 */
    bool ending;       /* its last call is done */
    bool resting;      /* until it says FRAME_RESTED */
    bool reaped;
    struct buf in;
};

struct task {
    struct work *work;
    struct task *next; /* in line */
    struct worker *worker;
    struct task_events events;
    void *ctx;
    struct buf call;
    uint64_t affinity; /* of its session, or 0 */
    bool rests;
};

struct work {
    struct loop *loop;
    const struct job_place *place;
    struct worker *workers;
    struct task *line, **line_end;
    unsigned n_workers, n_busy;
    uint64_t idle_from; /* milliseconds, of loop_now(); 0: not idle */
};

struct work *work_new(struct loop *loop, const struct job_place *place)
{
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->loop = loop;
    w->place = place;
    w->line_end = &w->line;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return w;
}

/* ---- in the worker */

/* Tools in no list: no client can call them by name. */
static const struct tool *find_tool(const char *name)
{
    static const struct tool *const inner[] = {&tool_begin, &tool_resource_list, &tool_resource_read,
                                               &tool_resource_look, &tool_resource_complete};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        if (same(name, inner[i]->name))
            return inner[i];
    }
    return mcp_tool_find(name);
}

static enum tool_offers offers_of(const struct tool *t)
{
    for (const struct tool_argument *a = t->arguments; a->name; a++) {
        if (same(a->name, "options"))
            return OFFERS_CALL;
        if (same(a->name, "directory")) /* an agent's box has the agent's policy */
            return OFFERS_SERVER;
    }
    return t->sessions && mcp_tool_find(t->name) ? OFFERS_SESSION : OFFERS_SERVER; /* a resource is no tool's */
}

static bool carry_out(const struct job_place *place, int socket, struct str call)
{
    char why[128];
    auto_value json_t *c = value_read(call, why, sizeof why);
    struct mcp_job j = {.place = place,
                        .socket = socket,
                        .number = (unsigned)json_integer_value(json_object_get(c, "number")),
                        .arguments = json_object_get(c, "arguments"),
                        .client = value_text(c, "client", NULL),
                        .can_ask = json_is_true(json_object_get(c, "can_ask")),
                        .text = BUF(MCP_MAX_ANSWER),
                        .structured = BUF(MCP_MAX_ANSWER),
                        .pixels = BUF(MCP_MAX_ANSWER)};
    const char *name = value_text(c, "tool", NULL);
    const struct tool *t = name ? find_tool(name) : NULL;

    if (!t)
        return false;
    j.tool = t->name;
    j.offers = offers_of(t);
    t->work(&j);
    bool sent = job_finish(&j) == 0;
    buf_free(&j.text);
    buf_free(&j.structured);
    buf_free(&j.pixels);
    pinfold_result_free(j.result);
    pinfold_policy_free(j.policy);
    if (t->rests) { /* processes that only tidy up after a box */
        while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
            ;
        sent = sent && frame_send(socket, FRAME_RESTED, (struct str){0}) == 0;
    }
    return sent;
}

static void only_what_it_needs(int *socket)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (*socket != 3) {
        (void)dup3(*socket, 3, O_CLOEXEC);
        *socket = 3;
    }
    if (null >= 0) {
        (void)dup2(null, 0);
        (void)dup2(null, 1);
    }
    (void)syscall(SYS_close_range, 4, ~0u, 0);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void serve_calls(const struct job_place *place, int socket, pid_t parent)
{
    bool more = true;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before */
        _exit(125);
    only_what_it_needs(&socket);
    arenas_reuse();
    while (more) {
        auto_buf struct buf call = BUF(2 * (size_t)MCP_MAX_MESSAGE + (1u << 20));
        uint32_t type;
        if (frame_receive(socket, &type, &call) < 0 || type != FRAME_CALL)
            break;
        more = carry_out(place, socket, buf_view(&call));
    }
    _exit(0);
}

/* ---- in the talking process */

static void hand_out(struct work *w);

/* What boxes leave while they are tidied up comes to us (PR_SET_CHILD_SUBREAPER). */
static void reap_all(struct work *w)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (struct worker *k = w->workers; k; k = k->next)
            k->reaped = k->reaped || k->pid == pid;
    }
}

static void worker_free(struct worker *k)
{
    struct work *w = k->work;
    for (struct worker **at = &w->workers; *at; at = &(*at)->next) {
        if (*at == k) {
            *at = k->next;
            break;
        }
    }
    loop_remove(w->loop, &k->source);
    (void)close_fd(k->source.fd);
    if (!k->reaped) /* else the number may be another's by now */
        (void)kill(k->pid, SIGKILL);
    while (!k->reaped && waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    buf_free(&k->in);
    w->n_workers--;
    free(k);
}

static void task_free(struct task *t)
{
    buf_free(&t->call);
    free(t);
}

static void unbind(struct task *t)
{
    if (!t->worker)
        return;
    t->worker->task = NULL;
    t->work->n_busy--;
    t->worker = NULL;
}

/* One frame of a worker; false: the worker is gone. */
static bool take_frame(struct worker *k, uint32_t type, struct str bytes)
{
    struct task *t = k->task;
    struct work *w = k->work;
    uint32_t patience = 0;

    if (type == FRAME_RESTED) {
        k->resting = false;
        hand_out(w);
        return true;
    }
    if (!t)
        return true;
    switch (type) {
    case FRAME_SAY:
        if (bytes.n)
            t->events.say(t->ctx, (enum say_level)bytes.p[0], str_skip(bytes, 1));
        return true;
    case FRAME_DENIED:
        if (t->events.denied)
            t->events.denied(t->ctx, bytes);
        return true;
    case FRAME_PROGRESS:
        t->events.progress(t->ctx, bytes);
        return true;
    case FRAME_QUESTION:
        memcpy(&patience, bytes.p, bytes.n < sizeof patience ? bytes.n : sizeof patience);
        t->events.question(t->ctx, str_skip(bytes, sizeof patience), patience);
        return true;
    case FRAME_CHANGED:
        t->events.changed(t->ctx);
        return true;
    case FRAME_FAULT:
    case FRAME_RESULT:
        k->ending = ++k->calls >= CALLS_OF_ONE;
        k->resting = t->rests;
        if (k->ending)
            (void)shutdown(k->source.fd, SHUT_WR); /* it ends by itself, too */
        unbind(t);
        if (type == FRAME_RESULT) {
            t->events.result(t->ctx, bytes);
        } else {
            int32_t code = -32603;
            memcpy(&code, bytes.p, bytes.n < sizeof code ? bytes.n : sizeof code);
            t->events.fault(t->ctx, code, str_skip(bytes, sizeof code));
        }
        task_free(t);
        hand_out(w);
        return true;
    default:
        return true;
    }
}

static void take_frames(struct worker *k)
{
    size_t at = 0;
    struct job_frame head;

    while (k->in.n - at >= sizeof head) {
        memcpy(&head, k->in.p + at, sizeof head);
        if (head.n > MCP_MAX_ANSWER) {
            k->in.n = 0;
            return;
        }
        if (k->in.n - at - sizeof head < head.n)
            break;
        struct str bytes = {k->in.p + at + sizeof head, head.n};
        at += sizeof head + head.n;
        (void)take_frame(k, head.type, bytes);
    }
    if (at) {
        memmove(k->in.p, k->in.p + at, k->in.n - at);
        k->in.n -= at;
        if (k->in.n == 0 && k->in.room > 1u << 16)
            buf_free(&k->in);
    }
}

static void worker_ready(struct loop_source *s, short revents)
{
    struct worker *k = (struct worker *)(void *)s;
    struct work *w = k->work;
    ssize_t n = -1;

    (void)revents;
    char *to = buf_space(&k->in, 1u << 16);
    if (to)
        n = recv(s->fd, to, 1u << 16, MSG_DONTWAIT);
    if (n < 0 && to && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_grew(&k->in, (size_t)n);
        take_frames(k);
        return;
    }
    struct task *t = k->task;
    if (t)
        unbind(t);
    worker_free(k);
    if (t) {
        t->events.lost(t->ctx);
        task_free(t);
    }
    hand_out(w);
}

static struct worker *worker_new(struct work *w)
{
    int pair[2];
    struct worker *k = calloc(1, sizeof *k);
    pid_t self = getpid();

    if (!k || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(k);
        return NULL;
    }
    *k = (struct worker){.source = {.fd = pair[0], .events = POLLIN, .ready = worker_ready},
                         .work = w,
                         .in = BUF(MCP_MAX_ANSWER + (1u << 17))};
    if (loop_add(w->loop, &k->source) == 0) {
        k->pid = fork();
        if (k->pid == 0)
            serve_calls(w->place, pair[1], self);
        if (k->pid > 0) {
            (void)close(pair[1]);
            k->next = w->workers;
            w->workers = k;
            w->n_workers++;
            return k;
        }
        loop_remove(w->loop, &k->source);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    free(k);
    return NULL;
}

static bool is_free(const struct worker *k)
{
    return !k->task && !k->ending && !k->resting;
}

/* One that waits and knows this session (0: none). */
static struct worker *free_worker(const struct work *w, uint64_t affinity)
{
    for (struct worker *k = w->workers; k; k = k->next) {
        if (is_free(k) && k->affinity == affinity)
            return k;
    }
    return NULL;
}

static unsigned knowing(const struct work *w, uint64_t affinity)
{
    unsigned n = 0;
    for (const struct worker *k = w->workers; k; k = k->next)
        n += k->affinity == affinity && !k->ending;
    return n;
}

/* It tidies up after a box whose processes are gone: a matter of milliseconds. */
static bool one_rests(const struct work *w)
{
    for (const struct worker *k = w->workers; k; k = k->next) {
        if (k->resting && !k->task && !k->ending)
            return true;
    }
    return false;
}

/* Makes room by ending one that knows a session nobody asks about now. */
static bool make_room(struct work *w)
{
    for (struct worker *k = w->workers; k; k = k->next) {
        if (is_free(k) && k->affinity) {
            worker_free(k);
            return true;
        }
    }
    return false;
}

/* Who shall carry it out; NULL: nobody yet. */
static struct worker *worker_for(struct work *w, const struct task *t)
{
    struct worker *k = free_worker(w, t->affinity);
    if (k || (t->affinity && knowing(w, t->affinity) >= OF_ONE_SESSION))
        return k;
    k = free_worker(w, 0);
    if (!k && w->n_workers >= PLENTY && one_rests(w))
        return NULL;
    if (!k && (w->n_workers < MAX_LIVE || make_room(w)))
        k = worker_new(w);
    return k;
}

static void hand_out(struct work *w)
{
    for (struct task **at = &w->line; *at && w->n_busy < MCP_MAX_WORKERS;) {
        struct task *t = *at;
        struct worker *k = worker_for(w, t);
        if (!k) { /* the end of another one calls again */
            at = &t->next;
            continue;
        }
        *at = t->next;
        if (!*at)
            w->line_end = at;
        t->next = NULL;
        t->worker = k;
        k->task = t;
        k->affinity = t->affinity;
        w->n_busy++;
        /* A dead worker is seen when its socket is read; one that has not got its call ends, and is seen then. */
        if (frame_send(k->source.fd, FRAME_CALL, buf_view(&t->call)) < 0)
            (void)shutdown(k->source.fd, SHUT_WR);
        buf_free(&t->call);
    }
}

int work_idle(struct work *w, uint64_t now)
{
    unsigned n = 0, spare = 0;
    reap_all(w);
    if (w->n_busy)
        w->idle_from = 0;
    else if (!w->idle_from)
        w->idle_from = now;
    const bool idle = w->idle_from && now - w->idle_from >= WORK_IDLE_MS;
    for (struct worker *k = w->workers; k; k = k->next) {
        spare += !k->task && !k->ending && !k->affinity;
        if (is_free(k) && !k->affinity && ++n > IDLE && idle) {
            k->ending = true;
            (void)shutdown(k->source.fd, SHUT_WR); /* so that it ends */
        }
    }
    if (spare < SPARE && w->n_workers < MAX_LIVE)
        (void)worker_new(w);
    return n > IDLE && w->idle_from && !idle ? (int)(WORK_IDLE_MS - (now - w->idle_from)) : -1;
}

void work_renew(struct work *w)
{
    for (struct worker *k = w->workers; k; k = k->next) {
        if (is_free(k)) {
            k->ending = true;
            (void)shutdown(k->source.fd, SHUT_WR); /* so that it ends */
        }
    }
}

struct task *work_start(struct work *w, struct str call, bool rests, uint64_t affinity,
                        const struct task_events *events, void *ctx)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    *t = (struct task){.work = w,
                       .events = *events,
                       .ctx = ctx,
                       .call = BUF(2 * (size_t)MCP_MAX_MESSAGE + (1u << 20)),
                       .affinity = affinity,
                       .rests = rests};
    buf_str(&t->call, call);
    if (!buf_ok(&t->call)) {
        task_free(t);
        return NULL;
    }
    *w->line_end = t;
    w->line_end = &t->next;
    hand_out(w);
    return t;
}

void work_answer(struct task *t, bool yes)
{
    if (t->worker)
        (void)frame_send(t->worker->source.fd, FRAME_ANSWER, yes ? STR("1") : STR("0"));
}

void work_cancel(struct task *t)
{
    struct work *w = t->work;
    struct worker *k = t->worker;

    for (struct task **at = &w->line; !k && *at; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            if (w->line_end == &t->next)
                w->line_end = at;
            break;
        }
    }
    if (k) {
        unbind(t);
        worker_free(k);
    }
    task_free(t);
    hand_out(w);
}

void work_free(struct work *w)
{
    if (!w)
        return;
    while (w->line) {
        struct task *t = w->line;
        w->line = t->next;
        task_free(t);
    }
    while (w->workers) {
        struct task *t = w->workers->task;
        if (t) {
            unbind(t);
            task_free(t);
        }
        worker_free(w->workers);
    }
    free(w);
}
