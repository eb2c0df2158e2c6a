/* The order of one run, from start to result. */
#include "supervisor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "supervisor/network/live.h"

#define LASTING_US    1000000u /* from when on a command is no short one, however slow its start was */
#define CAPTURE_SLACK 4096     /* room a buffer takes beyond what may be captured */

/* The caller's umask. A CLI may ask by setting it; a library reads it from /proc, since other threads make files. */
static uint32_t umask_now(bool foreground)
{
    if (!foreground) {
        char text[512];
        auto_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[n < 0 ? 0 : n] = 0;
        const char *p = strstr(text, "\nUmask:\t");
        if (p)
            return (uint32_t)strtoul(p + 8, NULL, 8) & 0777;
    }
    mode_t mask = umask(077);
    (void)umask(mask);
    return mask;
}

static void new_id(char ret[17])
{
    unsigned char random[8] = {0};
    uint64_t now = now_us();
    /* Only has to differ from other runs; before the kernel's pool is ready, time and pid do. */
    if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        now ^= (uint64_t)getpid() << 44;
        memcpy(random, &now, sizeof random);
    }
    for (int i = 0; i < 8; i++)
        snprintf(ret + (size_t)i * 2, 3, "%02x", random[i]);
}

/* Every box begins here: the engine's start, in the group that its limits have. */
static int start_engine(struct box *b, struct start_request *request)
{
    const struct engine *engine = b->ask->engine;
    struct means *m = &b->means;
    int r;
    b->began = now_us();
    if (m->kind == CGROUP_V2_SYSTEMD) {
        r = systemd_start(m, b->limits, engine->start, request, &b->started, b->err);
    } else {
        request->cgroup = m->join;
        r = engine->start(request, &b->started, b->err);
        if (r == 0 && b->ask->plan->facts->machine) /* what it boots may have been made, and its start took seconds */
            watcher_disk_from_now(&m->watcher);
    }
    b->lasting_at = b->ask->lasting ? b->began + LASTING_US : NEVER;
    if (r == 0)
        limits_started(m, &b->started);
    return r;
}

static int start(struct box *b)
{
    struct io *io = &b->io;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct start_request request = {.plan = b->ask->plan,
                                    .argv = b->ask->argv,
                                    .net_kept = b->ask->net_kept,
                                    .spare = b->ask->spare,
                                    .n_spare = b->ask->n_spare};

    if (io->term.fd >= 0)
        (void)sys_tty_size(io->term.fd, &size);
    for (int i = 0; i < 3; i++)
        request.stdio[i] = io->give[i];
    request.tty = io->tty;
    request.no_echo = io->tty_in >= 0 && io->relays[io->tty_in].line_mode;
    request.rows = size.ws_row;
    request.columns = size.ws_col;
    request.umask = umask_now(b->ask->foreground);
    request.parent_death_signal = b->ask->foreground;
    request.cgroup = (struct cgroup_join){.v2_dir = -1};
    request.egress = b->egress.sockets;
    request.publish = b->publish.sockets;
    int r = start_engine(b, &request);
    if (r < 0)
        return r;
    uint64_t timeout = b->limits->timeout.value; /* milliseconds */
    /* A machine boots first, for seconds: the command's time begins after that. */
    uint64_t from = b->ask->plan->facts->machine ? now_us() : b->began;
    b->deadline = timeout > NEVER / 2000 ? NEVER : from + timeout * 1000;
    io_started(io);
    return 0;
}

/* A captured text that was cut is cut between characters, so that it stays UTF-8 when it was. */
static void trim(struct buf *b, bool truncated)
{
    size_t n = b->n;
    if (!truncated || !n)
        return;
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        unsigned char c = (unsigned char)b->p[n - back];
        size_t length = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
        if (length == 0)
            continue; /* in the middle of one */
        if (length > back)
            b->n = n - back;
        break;
    }
    b->p[b->n] = 0;
}

/* How it ended, from what was seen: our own reasons first, then the command's own end. */
static void conclude(struct box *b)
{
    struct box_result *r = b->result;
    bool disk_signal = r->status_known && r->by_signal && r->code == SIGXFSZ && b->means.disk_asked;

    if (b->hit.limit == BOX_LIMIT_NONE && disk_signal)
        b->hit.limit = BOX_LIMIT_DISK;
    if (b->timed_out && b->hit.limit == BOX_LIMIT_NONE) {
        b->hit.limit = BOX_LIMIT_TIMEOUT;
        b->hit.seen = r->wall_us / 1000;
    }
    r->limit = b->hit.limit;
    bool failed = !r->status_known || r->by_signal || r->code != 0;
    if (r->limit == BOX_LIMIT_TIMEOUT)
        r->end = BOX_TIMED_OUT;
    else if (r->limit == BOX_LIMIT_PROCESSES && !failed)
        r->end = BOX_EXITED; /* fork failed now and then, and the command coped */
    else if (r->limit != BOX_LIMIT_NONE)
        r->end = BOX_LIMIT;
    else
        r->end = !r->status_known ? BOX_LOST : r->by_signal ? BOX_SIGNALED : BOX_EXITED;
    if (r->end == BOX_SIGNALED && b->ask->foreground && (r->code == SIGINT || r->code == SIGQUIT) &&
        (b->signals.terminal_signal == r->code || b->io.term.may_raw))
        r->reraise = r->code;
    r->output_errno = b->io.output_errno;
    trim(&r->out, r->out_truncated);
    trim(&r->err, r->err_truncated);
    if (r->limit != BOX_LIMIT_NONE)
        denial_limit(b, &b->hit);
}

static int run_box(struct box *b)
{
    int r = signals_begin(&b->signals, b->ask->foreground, b->err);
    if (r == 0)
        r = limits_begin(&b->means, b->ask->plan, b->err);
    if (r == 0)
        r = io_begin(&b->io, b->ask, b->limits, b->result, b->err);
    if (r == 0)
        r = egress_begin(b);
    if (r == 0)
        r = publish_begin(b);
    if (r == 0)
        r = start(b);
    egress_started(b);
    publish_started(b);
    if (r == 0 && b->live)
        feed_begin(b);
    if (r == 0)
        r = loop(b);
    return r == 0 ? b->failed : r;
}

static struct box box_of(const struct box_ask *ask, const struct limits *limits, struct box_result *result,
                         struct err *e)
{
    return (struct box){.ask = ask,
                        .limits = limits,
                        .result = result,
                        .err = e,
                        .started = {.pid = -1, .pidfd = -1, .control = -1, .builder = -1},
                        .signals = {.fd = -1},
                        .deadline = NEVER,
                        .lasting_at = NEVER,
                        .stop_deadline = NEVER};
}

int box_run(const struct box_ask *ask, struct box_result *ret, struct err *e)
{
    struct box_result result = {.out = BUF(ask->capture_max + CAPTURE_SLACK),
                                .err = BUF(ask->capture_max + CAPTURE_SLACK)};
    struct box b = box_of(ask, &ask->plan->policy->limits, &result, e);

    new_id(result.id);
    io_none(&b.io);
    limits_none(&b.means);
    egress_none(&b);
    publish_none(&b);
    int r = run_box(&b);
    b.started.leave_builder = b.all_gone && (ask->foreground || ask->leave); /* a library waits for its children */
    if (b.started.pid > 0)
        ask->engine->finish(&b.started);
    result.wall_us = b.began ? now_us() - b.began : 0;
    limits_end(&b.means, &result, &b.hit);
    egress_end(&b);
    publish_end(&b);
    io_end(&b.io);
    if (r == 0)
        conclude(&b);
    signals_end(&b.signals);
    network_end(&b);
    denial_end(&b);
    live_end(&b);
    if (r < 0) {
        box_result_free(&result);
        return r;
    }
    if (ask->foreground) /* the command has ended, and its caller waits for this process */
        arenas_leave_to_exit();
    *ret = result;
    return 0;
}

/* ---- a box without a command ---- */

static int start_kept(struct box *b)
{
    struct start_request request = {.plan = b->ask->plan,
                                    .spare = b->ask->spare,
                                    .n_spare = b->ask->n_spare,
                                    .stdio = {-1, -1, -1},
                                    .umask = umask_now(true),
                                    .cgroup = {.v2_dir = -1},
                                    .parent_death_signal = true};
    int r = signals_begin(&b->signals, false, b->err);
    if (r == 0)
        r = limits_begin(&b->means, b->ask->plan, b->err);
    if (r == 0)
        r = egress_begin(b);
    if (r == 0)
        r = publish_begin(b);
    request.egress = b->egress.sockets;
    request.publish = b->publish.sockets;
    if (r == 0)
        r = start_engine(b, &request);
    egress_started(b);
    publish_started(b);
    if (r == 0 && b->live)
        feed_begin(b);
    if (r == 0)
        r = loop(b);
    return r == 0 ? b->failed : r;
}

void box_keep_end(struct box *b)
{
    loop_end_box(b);
}

int box_keep_files(struct box *b, int end)
{
    return engine_files_give(&b->started, end);
}

int box_keep(const struct box_ask *ask, struct box **ret_box, struct box_result *ret, struct err *e)
{
    struct box_result result = {.out = BUF(CAPTURE_SLACK), .err = BUF(CAPTURE_SLACK)};
    struct box b = box_of(ask, &ask->plan->policy->limits, &result, e);

    new_id(result.id);
    io_none(&b.io);
    limits_none(&b.means);
    egress_none(&b);
    publish_none(&b);
    *ret_box = &b;
    int r = start_kept(&b);
    *ret_box = NULL;
    if (b.started.pid > 0)
        ask->engine->finish(&b.started);
    result.wall_us = b.began ? now_us() - b.began : 0;
    limits_end(&b.means, &result, &b.hit);
    egress_end(&b);
    publish_end(&b);
    result.limit = b.hit.limit;
    result.end = result.limit ? BOX_LIMIT : BOX_LOST;
    if (r == 0 && result.limit != BOX_LIMIT_NONE)
        denial_limit(&b, &b.hit);
    signals_end(&b.signals);
    network_end(&b);
    denial_end(&b);
    live_end(&b);
    if (r < 0)
        box_result_free(&result);
    else
        *ret = result;
    return r;
}

/* Twice over the lines: first whether they can be read, then they are put in. */
static int each_rule(struct live *l, struct str lines, bool put, bool *ret_new, struct err *e)
{
    while (lines.n) {
        struct str line = str_until(&lines, '\n'), verb = str_until(&line, ' ');
        enum rule_verb way = str_is(verb, "allow") ? RULE_ALLOW : RULE_DENY;
        struct host_rule *list = NULL;
        size_t n;
        if (!str_is(verb, "allow") && !str_is(verb, "deny"))
            return err_say(e, ERR_POLICY, "'%.*s' is neither 'allow' nor 'deny'", (int)(verb.n < 60 ? verb.n : 60),
                           verb.p);
        int r = put ? rules_add(l, line, way, FROM_CONTROL, 0, ret_new, e) : rules_parse(line, way, &list, &n, e);
        free(list);
        if (r < 0)
            return err_wrap(e, r, "%.*s", (int)(line.n < 200 ? line.n : 200), line.p);
    }
    return 0;
}

int box_keep_rules(struct box *b, const char *lines, struct err *e)
{
    bool changed = false;
    uint32_t ticket;
    if (!b->live)
        return err_say(e, ERR_POLICY,
                       "no network rules to change: the session's network is not 'allow' (recreate it with: pinfold "
                       "session start NAME --net allow --recreate)");
    int r = each_rule(b->live, str_of(lines), false, NULL, e);
    if (r == 0)
        r = each_rule(b->live, str_of(lines), true, &changed, e);
    if (r == 0 && changed)
        r = rules_send(b, &ticket);
    return r < 0 && !e->text[0] ? err_sys(e, ERR_SYSTEM, -r, "cannot update the session's egress proxy") : r;
}

void box_sweep_groups(void)
{
    struct cgroup_place place;
    cgroup_find(&place);
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (place.parent[c][0])
            group_sweep(place.parent[c]);
    }
}

/* ---- one command in somebody else's box ---- */

static int hand_over(struct box *b)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    const struct box_exec *x = b->exec;
    if (b->io.term.fd >= 0)
        (void)sys_tty_size(b->io.term.fd, &size);
    b->began = now_us();
    int r = x->send(x->send_ctx, b->io.give, b->io.tty, size.ws_row, size.ws_col, umask_now(b->ask->foreground),
                    &b->started.control, b->err);
    uint64_t timeout = b->limits->timeout.value; /* milliseconds */
    b->deadline = timeout > NEVER / 2000 ? NEVER : b->began + timeout * 1000;
    io_started(&b->io);
    return r;
}

static int exec(struct box *b)
{
    int r = signals_begin(&b->signals, b->ask->foreground, b->err);
    if (r == 0)
        r = io_begin(&b->io, b->ask, b->limits, b->result, b->err);
    for (unsigned i = 0; r == 0 && i < b->io.n_relays; i++) {
        b->io.relays[i].output = b->exec->output;
        b->io.relays[i].output_ctx = b->exec->output_ctx;
    }
    if (r == 0)
        r = hand_over(b);
    if (r == 0)
        r = loop(b);
    return r == 0 ? b->failed : r;
}

int box_exec(const struct box_exec *ask, struct box_result *ret, struct err *e)
{
    struct box_result result = {.out = BUF(ask->ask.capture_max + CAPTURE_SLACK),
                                .err = BUF(ask->ask.capture_max + CAPTURE_SLACK)};
    struct box b = box_of(&ask->ask, ask->limits, &result, e);
    const struct frame told = {.kind = FRAME_END, .a = 1};

    b.exec = ask;
    new_id(result.id);
    io_none(&b.io);
    limits_none(&b.means);
    egress_none(&b);
    publish_none(&b);
    int r = exec(&b);
    if (b.io.tty) /* all was read: the terminal's session may go */
        box_send(&b, &told);
    b.started.control = close_fd(b.started.control);
    result.wall_us = b.began ? now_us() - b.began : 0;
    result.limits_by = b.means.watcher.on ? "watcher" : "the session's";
    result.peak_is_largest_process = true;
    if (b.means.watcher.peak > result.peak_bytes)
        result.peak_bytes = b.means.watcher.peak;
    io_end(&b.io);
    if (r == 0)
        conclude(&b);
    signals_end(&b.signals);
    denial_end(&b);
    if (r < 0)
        box_result_free(&result);
    else
        *ret = result;
    return r;
}

void box_result_free(struct box_result *r)
{
    if (!r)
        return;
    denial_free_all(r);
    told_free_all(r);
    network_free(r);
    buf_free(&r->out);
    buf_free(&r->err);
    *r = (struct box_result){0};
}
