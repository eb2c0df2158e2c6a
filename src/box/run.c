/*
 * One run: the table of contents.
 */
#include "box/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "box/live.h"

#define CAPTURE_SLACK 4096 /* room a buffer takes beyond what may be captured */

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

static int start(struct box *b)
{
    struct io *io = &b->io;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct start_request request = {.plan = b->ask->plan, .argv = b->ask->argv};

    if (io->term.fd >= 0)
        (void)sys_tty_size(io->term.fd, &size);
    for (int i = 0; i < 3; i++)
        request.stdio[i] = io->give[i];
    request.tty = io->tty;
    request.rows = size.ws_row;
    request.columns = size.ws_col;
    request.umask = umask_now(b->ask->foreground);
    request.parent_death_signal = b->ask->foreground;
    request.cgroup = (struct cgroup_join){.v2_dir = -1};
    request.egress = b->egress.sockets;
    request.publish = b->publish.sockets;
    b->began = now_us();
    int r = limits_start(&b->means, b->limits, b->ask->engine, &request, &b->started, b->err);
    if (r < 0)
        return r;
    uint64_t timeout = b->limits->timeout.value; /* milliseconds */
    b->deadline = timeout > NEVER / 2000 ? NEVER : b->began + timeout * 1000;
    limits_started(&b->means, &b->started);
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

static int run(struct box *b)
{
    int r = signals_begin(&b->signals, b->ask->foreground, b->err);
    if (r == 0)
        r = limits_begin(&b->means, b->ask->plan, b->err);
    if (r == 0)
        r = io_begin(&b->io, b->ask, b->result, b->err);
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

int box_run(const struct box_ask *ask, struct box_result *ret, struct err *e)
{
    struct box_result result = {.out = BUF(ask->capture_max + CAPTURE_SLACK),
                                .err = BUF(ask->capture_max + CAPTURE_SLACK)};
    struct box b = {.ask = ask,
                    .limits = &ask->plan->policy->limits,
                    .result = &result,
                    .err = e,
                    .started = {.pid = -1, .pidfd = -1, .control = -1, .builder = -1},
                    .deadline = NEVER,
                    .stop_deadline = NEVER};

    new_id(result.id);
    io_none(&b.io);
    limits_none(&b.means);
    b.signals.fd = -1;
    egress_none(&b);
    publish_none(&b);
    int r = run(&b);
    b.started.leave_builder = b.all_gone && ask->foreground; /* a library waits for its children */
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

void box_result_free(struct box_result *r)
{
    if (!r)
        return;
    denial_free_all(r);
    network_free(r);
    buf_free(&r->out);
    buf_free(&r->err);
    *r = (struct box_result){0};
}
