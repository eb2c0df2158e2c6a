/*
 * The lifecycle of a box and its command, from start to result. Run, session and exec all go through it; what differs
 * is in struct run_spec.
 */
#include "supervisor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hex.h"
#include "supervisor/network/live.h"
#include "sys/fd.h"
#include "user/umask.h"

#define LASTING_US    1000000u /* from when on a command is no short one, however slow its start was */
#define CAPTURE_SLACK 4096     /* room a buffer takes beyond what may be captured */

/* The caller's umask. A CLI may ask by setting it; a library reads it from /proc, since other threads make files. */
static uint32_t umask_now(bool foreground)
{
    uint32_t asked;
    if (umask_asked(&asked))
        return asked;
    if (!foreground) {
        char text[512];
        (void)sys_read_text(AT_FDCWD, "/proc/self/status", text, sizeof text);
        const char *p = strstr(text, "\nUmask:\t");
        if (p)
            return (uint32_t)(strtoul(p + 8, NULL, 8) & 0777);
    }
    mode_t mask = umask(077);
    (void)umask(mask);
    return mask;
}

void box_new_id(char ret[17])
{
    unsigned char random[8] = {0};
    /* Only has to differ from other runs; before the kernel's pool is ready, time and pid do. */
    if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        uint64_t now = now_us();
        now ^= (uint64_t)getpid() << 44;
        memcpy(random, &now, sizeof random);
    }
    hex_digits(random, sizeof random, ret);
}

/* Every box begins here: the engine's start, in the group that its limits have. */
static int start_engine(struct box *b, struct start_request *request)
{
    const struct engine *engine = b->spec->engine;
    struct means *m = &b->means;
    int r;
    b->began = now_us();
    if (m->kind == CGROUP_V2_SYSTEMD) {
        r = systemd_start(m, b->limits, engine->start, request, &b->started, b->err);
    } else {
        request->cgroup = m->join;
        r = engine->start(request, &b->started, b->err);
        /* Machines and containers take seconds to start, and what they start from may have been made or copied. */
        const struct facts *facts = b->spec->start.plan->facts;
        if (r == 0 && (facts->machine || facts->container))
            watcher_disk_from_now(&m->watcher);
    }
    b->lasting_at = b->spec->lasting ? b->began + LASTING_US : NEVER;
    b->idle_at = b->spec->idle ? b->began : NEVER;
    meanwhile_begin(b);
    if (r == 0)
        limits_started(m, &b->started);
    return r;
}

static struct winsize size_of(const struct term *t)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (t->fd >= 0)
        (void)sys_tty_size(t->fd, &size);
    return size;
}

static void time_begins(struct box *b, uint64_t from)
{
    uint64_t timeout = b->limits->timeout.value; /* milliseconds */
    b->deadline = timeout > NEVER / 2000 ? NEVER : from + timeout * 1000;
}

/* The box's own engine is given what the caller asked for, with what was made here. */
static int start_in_engine(struct box *b)
{
    const struct io *io = &b->io;
    const struct winsize size = size_of(&io->term);
    const bool own_process = b->command->foreground || b->sessiond; /* otherwise it is a library's caller's */
    struct start_request request = b->spec->start;

    memcpy(request.stdio, io->give, sizeof request.stdio);
    request.tty = io->tty;
    request.no_echo = io->tty_in >= 0 && io->relays[io->tty_in].line_mode;
    request.rows = size.ws_row;
    request.columns = size.ws_col;
    request.umask = umask_now(own_process);
    request.parent_death_signal = own_process;
    request.not_ignored = b->signals.not_ignored;
    request.cgroup = (struct cgroup_join){.v2_dir = -1};
    request.egress = b->egress.sockets;
    request.publish = b->publish.sockets;
    int r = start_engine(b, &request);
    /* A machine boots first, for seconds: the command's time begins after that. */
    if (r == 0 && !b->sessiond)
        time_begins(b, b->spec->start.plan->facts->machine ? now_us() : b->began);
    return r;
}

/* In somebody else's box the session daemon is given the command. */
static int hand_over(struct box *b)
{
    const struct box_exec *x = b->exec;
    const struct winsize size = size_of(&b->io.term);
    b->began = now_us();
    int r = x->send(x->send_ctx, b->io.give, b->io.tty, size.ws_row, size.ws_col, umask_now(b->command->foreground),
                    &b->started.control, b->err);
    time_begins(b, b->began);
    return r;
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
static void conclude_run(struct box *b)
{
    struct box_result *r = b->result;
    /* Of the command itself, or of one that a shell started. */
    bool disk_signal = r->status_known && b->means.disk_asked && r->code == (r->by_signal ? SIGXFSZ : 128 + SIGXFSZ);

    if (b->hit.limit == BOX_LIMIT_NONE && disk_signal)
        b->hit.limit = BOX_LIMIT_DISK;
    if (b->timed_out && b->hit.limit == BOX_LIMIT_NONE) {
        b->hit.limit = BOX_LIMIT_TIMEOUT;
        b->hit.seen = r->wall_us / 1000;
    }
    r->limit = b->hit.limit;
    r->limit_seen = b->hit.seen;
    bool failed = !r->status_known || r->by_signal || r->code != 0;
    if (r->limit == BOX_LIMIT_TIMEOUT)
        r->end = BOX_TIMED_OUT;
    else if (r->limit == BOX_LIMIT_PROCESSES && !failed)
        r->end = BOX_EXITED; /* fork failed now and then, and the command coped */
    else if (r->limit != BOX_LIMIT_NONE)
        r->end = BOX_LIMIT;
    else
        r->end = !r->status_known ? BOX_LOST : r->by_signal ? BOX_SIGNALED : BOX_EXITED;
    if (r->end == BOX_SIGNALED && b->command->foreground && (r->code == SIGINT || r->code == SIGQUIT) &&
        (b->signals.terminal_signal == r->code || b->io.term.may_raw))
        r->reraise = r->code;
    r->output_errno = b->io.output_errno;
    trim(&r->out, r->out_truncated);
    trim(&r->err, r->err_truncated);
    if (r->limit != BOX_LIMIT_NONE)
        denial_limit(b, &b->hit);
    denial_built(b, r->limit == BOX_LIMIT_NONE && failed);
}

/* ---- one lifecycle ---- */

static int begin_and_wait(struct box *b)
{
    const struct run_spec *spec = b->spec;
    int r = signals_begin(&b->signals, b->command->foreground, b->err);
    if (r == 0 && spec)
        r = limits_begin(&b->means, spec->start.plan, b->err);
    if (r == 0 && !b->sessiond)
        r = io_begin(&b->io, b->command, spec != NULL, b->limits, b->result, b->err);
    if (r == 0 && spec)
        r = egress_begin(b);
    if (r == 0 && spec)
        r = publish_begin(b);
    if (r == 0 && spec)
        r = filters_begin(b);
    if (r == 0)
        r = spec ? start_in_engine(b) : hand_over(b);
    if (r == 0)
        io_started(&b->io);
    egress_started(b);
    publish_started(b);
    if (r == 0 && b->live && b->egress.pid > 0)
        feed_begin(b);
    if (r == 0)
        r = loop(b);
    return r == 0 ? b->failed : r;
}

/* Nothing is left of the box, and its result has what the limits counted. */
static void finish_own(struct box *b)
{
    const bool exits = b->command->foreground || b->spec->leave; /* a library waits for its children */
    b->started.leave_builder = b->all_gone && exits;
    b->started.exits = b->command->foreground;
    if (b->started.pid > 0)
        b->spec->engine->finish(&b->started);
    b->result->wall_us = b->began ? now_us() - b->began : 0;
    limits_end(&b->means, b->result, &b->hit);
}

/* The box lives on. */
static void leave_others(struct box *b)
{
    const struct frame told = {.kind = FRAME_END, .a = 1};
    struct box_result *r = b->result;
    if (b->io.tty) /* all was read: the terminal's session may go */
        box_send(b, &told);
    b->started.control = close_fd(b->started.control);
    r->wall_us = b->woken > b->began ? b->woken - b->began : 0;
    r->limits_by = b->means.watcher.on ? "watcher" : "the session's";
    r->peak_is_largest_process = true;
    if (b->means.watcher.peak > r->peak_bytes)
        r->peak_bytes = b->means.watcher.peak;
}

/*
 * From start to result, for all three: box_run() and box_keep() begin and end a box (`spec`), of which the second has no
 * command; box_exec() has a command in a box that stays (`exec`). Parts that did not begin have nothing to end.
 */
static int box_live(struct box *b, struct box **ret_box, struct box_result *ret)
{
    const size_t room = b->command->capture_max + CAPTURE_SLACK;
    struct box_result result = {.out = BUF(room), .err = BUF(room)};

    b->result = &result;
    b->started = (struct started){.pid = -1, .pidfd = -1, .control = -1, .builder = -1};
    b->signals.fd = -1;
    b->deadline = b->lasting_at = b->stop_deadline = b->unheard_at = b->meanwhile.at = b->idle_at = b->idle_look =
        NEVER;
    b->meanwhile.watch = -1;
    box_new_id(result.id);
    if (b->command->caller_id)
        snprintf(result.caller_id, sizeof result.caller_id, "%s", b->command->caller_id);
    io_none(&b->io);
    limits_none(&b->means);
    egress_none(b);
    publish_none(b);
    filters_none(b);
    if (ret_box)
        *ret_box = b;
    int r = begin_and_wait(b);
    if (ret_box)
        *ret_box = NULL;
    meanwhile_end(b);
    fresh_end(b);
    if (b->spec)
        finish_own(b);
    else
        leave_others(b);
    egress_end(b);
    publish_end(b);
    filters_end(b);
    io_end(&b->io);
    if (r == 0)
        conclude_run(b);
    signals_end(&b->signals);
    network_end(b);
    inquiries_end(b);
    denial_end(b);
    live_end(b);
    if (r < 0)
        box_result_free(&result);
    else
        *ret = result;
    return r;
}

int box_run(const struct run_spec *spec, struct box_result *ret, struct err *e)
{
    struct box b = {.spec = spec, .command = &spec->command, .limits = &spec->start.plan->policy->limits, .err = e};
    if (spec->command.foreground) /* this process only waits from now on */
        arenas_reuse_end();
    int r = box_live(&b, NULL, ret);
    if (r == 0 && spec->command.foreground) /* the command has ended, and its caller waits for this process */
        arenas_leave_to_exit();
    return r;
}

int box_exec(const struct box_exec *exec, struct box_result *ret, struct err *e)
{
    struct box b = {.exec = exec, .command = &exec->command, .limits = exec->limits, .err = e};
    int r = box_live(&b, NULL, ret);
    if (r == 0 && exec->command.foreground)
        arenas_leave_to_exit();
    return r;
}

/* ---- a box without a command ---- */

int box_keep(const struct run_spec *spec, const struct box_sessiond *sessiond, struct box **ret_box,
             struct box_result *ret, struct err *e)
{
    static const struct box_command none = {.stdio = {-1, -1, -1}};
    struct box b = {
        .spec = spec, .command = &none, .sessiond = sessiond, .limits = &spec->start.plan->policy->limits, .err = e};
    int r = box_live(&b, ret_box, ret);
    return r;
}

void box_keep_end(struct box *b)
{
    loop_end_box(b);
}

int box_keep_files(struct box *b, int end)
{
    b->fresh_given = true;
    b->idle_until = 0;
    b->idle_look = NEVER;
    return engine_files_give(&b->started, end);
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
    if (!b->live || b->egress.pid <= 0)
        return err_say(e, ERR_POLICY,
                       "no network rules to change: the session's network is not 'allow' (recreate it with: pinfold "
                       "session start NAME --as-before --net allow --recreate)");
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
