/*
 * Moves bytes between descriptors and the multiplexed connection to a virtual machine. Both ends run this:
 * vm_bridge.c outside, guest/guest.c inside.
 */
#include "pump/pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/poll.h"

void pump_begin(struct pump *p, int line, bool guest, void *ctx,
                int (*on_message)(void *ctx, const struct mux_head *h, void *bytes))
{
    *p = (struct pump){.line = line, .guest = guest, .ctx = ctx, .on_message = on_message};
}

static void lane_close(struct lane *l)
{
    sys_drop(&l->fd);
    free(l->hold);
    l->hold = NULL;
}

void pump_end(struct pump *p)
{
    for (size_t i = 0; i < p->n_lanes; i++)
        lane_close(&p->lanes[i]);
    free(p->lanes);
    free(p->in);
    free(p->out);
    free(p->polled);
    sys_drop(&p->line);
    *p = (struct pump){.line = -1};
}

static bool room_for(char **at, size_t *room, size_t n)
{
    size_t more = *room ? *room : 4096;
    while (more < n)
        more *= 2;
    char *grown = more > *room ? realloc(*at, more) : *at;
    if (!grown)
        return false;
    *at = grown;
    *room = more;
    return true;
}

int pump_send(struct pump *p, enum mux_kind kind, uint32_t job, uint32_t stream, const void *a, size_t n_a,
              const void *b, size_t n_b)
{
    const struct mux_head h = {.kind = kind, .job = job, .stream = stream, .n = (uint32_t)(n_a + n_b)};
    if (p->out_at && p->out_at == p->out_n)
        p->out_at = p->out_n = 0;
    if (!room_for(&p->out, &p->out_room, p->out_n + sizeof h + h.n))
        return -ENOMEM;
    memcpy(p->out + p->out_n, &h, sizeof h);
    if (n_a)
        memcpy(p->out + p->out_n + sizeof h, a, n_a);
    if (n_b)
        memcpy(p->out + p->out_n + sizeof h + n_a, b, n_b);
    p->out_n += sizeof h + h.n;
    return 0;
}

/* ---- lanes ---- */

static struct lane *lane_of(const struct pump *p, uint32_t job, uint32_t stream)
{
    for (size_t i = 0; i < p->n_lanes; i++) {
        if (p->lanes[i].job == job && p->lanes[i].stream == stream)
            return &p->lanes[i];
    }
    return NULL;
}

int pump_lane(struct pump *p, uint32_t job, enum mux_stream stream, bool source, int fd)
{
    if (fd < 0)
        return fd;
    if (p->n_lanes == p->lanes_room) {
        size_t room = p->lanes_room ? p->lanes_room * 2 : 16;
        struct lane *grown = room <= PUMP_LANES ? realloc(p->lanes, room * sizeof *grown) : NULL;
        if (!grown) {
            sys_shut(fd);
            return -ENOMEM;
        }
        p->lanes = grown;
        p->lanes_room = room;
    }
    p->lanes[p->n_lanes++] = (struct lane){
        .job = job, .stream = (uint8_t)stream, .source = source, .fd = fd, .credit = source ? MUX_WINDOW : 0};
    return 0;
}

void pump_close(struct pump *p, uint32_t job)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n_lanes; i++) {
        if (p->lanes[i].job == job)
            lane_close(&p->lanes[i]);
        else
            p->lanes[kept++] = p->lanes[i];
    }
    p->n_lanes = kept;
}

/* Whether the job's output lanes are quiet; `back`: including MUX_BACK, which otherwise waits for the others. */
static bool is_quiet(const struct pump *p, uint32_t job, bool back)
{
    for (size_t i = 0; i < p->n_lanes; i++) {
        const struct lane *l = &p->lanes[i];
        if (l->job != job || l->fd < 0 || mux_inward(l->stream) || (l->stream == MUX_BACK && !back))
            continue;
        if (l->source ? !l->ended && !l->quiet : l->n > 0)
            return false;
    }
    return true;
}

bool pump_quiet(const struct pump *p, uint32_t job)
{
    return is_quiet(p, job, true);
}

/* Whether MUX_BACK may move: the job's other sources are empty, or its other sinks hold nothing. */
static bool back_may(const struct pump *p, const struct lane *back)
{
    for (size_t i = 0; i < p->n_lanes; i++) {
        const struct lane *l = &p->lanes[i];
        if (l->job == back->job && l->source == back->source && l != back && l->fd >= 0 &&
            (l->source ? l->credit == 0 : l->n > 0))
            return false;
    }
    return true;
}

/*
 * A terminal that nobody has open any more answers EIO. The kernel looks for bytes first and for the end after that, so
 * what was written and closed in between is not seen by this call; the next one finds it (n_tty_read in Linux).
 */
static long read_lane(int fd, char *bytes, size_t most)
{
    const long n = sys_read(fd, bytes, most);
    return n == -EIO ? sys_read(fd, bytes, most) : n;
}

/* Reads once from a source that has data, or has ended. */
static int lane_read(struct pump *p, struct lane *l)
{
    static char bytes[MUX_CHUNK];
    size_t most = l->credit < sizeof bytes ? l->credit : sizeof bytes;
    long n = read_lane(l->fd, bytes, most);
    if (n == -EAGAIN || n == -EINTR)
        return 0;
    if (n <= 0) {
        l->ended = true;
        sys_drop(&l->fd);
        return pump_send(p, MUX_EOF, l->job, l->stream, NULL, 0, NULL, 0);
    }
    l->credit -= (uint32_t)n;
    return pump_send(p, MUX_DATA, l->job, l->stream, bytes, (size_t)n, NULL, 0);
}

static int lane_give_back(struct pump *p, struct lane *l, bool all)
{
    const struct mux_credit c = {.bytes = l->credit};
    if (l->credit == 0 || (!all && l->credit < MUX_WINDOW / 4))
        return 0;
    l->credit = 0;
    return pump_send(p, MUX_CREDIT, l->job, l->stream, &c, sizeof c, NULL, 0);
}

static int lane_lost(struct pump *p, struct lane *l)
{
    sys_drop(&l->fd);
    l->n = 0;
    return l->ended ? 0 : pump_send(p, MUX_GONE, l->job, l->stream, NULL, 0, NULL, 0);
}

/* Writes what a sink holds; a little at a time, because the descriptor may block (pipe(7), PIPE_BUF). */
static int lane_write(struct pump *p, struct lane *l)
{
    enum { LITTLE = 4096 };
    uint32_t n = MUX_WINDOW - l->at < l->n ? MUX_WINDOW - l->at : l->n;
    long wrote = n ? sys_write(l->fd, l->hold + l->at, n < LITTLE ? n : LITTLE) : 0;
    if (wrote == -EAGAIN || wrote == -EINTR)
        return 0;
    if (wrote < 0)
        return lane_lost(p, l);
    l->at = (l->at + (uint32_t)wrote) % MUX_WINDOW;
    l->n -= (uint32_t)wrote;
    l->credit += (uint32_t)wrote;
    if (l->n == 0 && l->ended)
        sys_drop(&l->fd);
    return l->ended ? 0 : lane_give_back(p, l, l->n == 0);
}

/* Data for a sink. More than its window is a protocol error. */
static int lane_take(struct lane *l, const char *bytes, uint32_t n)
{
    if (l->source || l->ended || n > MUX_WINDOW - l->n)
        return -EBADMSG;
    if (l->fd < 0)
        return 0; /* it has no reader; the other end is told */
    if (!l->hold && !(l->hold = malloc(MUX_WINDOW)))
        return -ENOMEM;
    uint32_t to = (l->at + l->n) % MUX_WINDOW, first = MUX_WINDOW - to < n ? MUX_WINDOW - to : n;
    memcpy(l->hold + to, bytes, first);
    memcpy(l->hold, bytes + first, n - first);
    l->n += n;
    return 0;
}

/* ---- the line ---- */

static int obey_frame(struct pump *p, const struct mux_head *h, char *bytes)
{
    struct lane *l;
    struct mux_credit c;
    if (h->kind < MUX_DATA || (h->kind == MUX_GONE && h->stream == MUX_REPLY))
        return p->on_message(p->ctx, h, bytes);
    l = lane_of(p, h->job, h->stream);
    if (!l)
        return 0; /* closed a moment ago */
    switch (h->kind) {
    case MUX_DATA:
        return lane_take(l, bytes, h->n);
    case MUX_CREDIT:
        memcpy(&c, bytes, sizeof c);
        if (!l->source || c.bytes > MUX_WINDOW - l->credit)
            return -EBADMSG;
        l->credit += c.bytes;
        return 0;
    case MUX_EOF:
        if (l->source)
            return -EBADMSG;
        l->ended = true;
        if (l->n == 0)
            sys_drop(&l->fd);
        return 0;
    default: /* MUX_GONE */
        if (!l->source)
            return -EBADMSG;
        l->ended = true;
        sys_drop(&l->fd);
        return 0;
    }
}

static int line_read(struct pump *p)
{
    size_t want = 0, at = 0;
    struct mux_head h;
    if (!room_for(&p->in, &p->in_room, p->in_n + (64u << 10)))
        return -ENOMEM;
    long n = sys_read(p->line, p->in + p->in_n, p->in_room - p->in_n);
    if (n == -EAGAIN || n == -EINTR)
        return 0;
    if (n <= 0)
        return -EPIPE;
    p->in_n += (size_t)n;
    for (;;) {
        long k = mux_next(p->in + at, p->in_n - at, !p->guest, &h, &want);
        if (k < 0)
            return (int)k;
        if (k == 0)
            break;
        char *bytes = p->in + at + sizeof h;
        if (at % 16 && h.kind < MUX_DATA) { /* its content is read in place, so it must be aligned */
            memmove(p->in, p->in + at, p->in_n - at);
            p->in_n -= at;
            at = 0;
            bytes = p->in + sizeof h;
        }
        int e = obey_frame(p, &h, bytes);
        if (e < 0)
            return e;
        at += (size_t)k;
    }
    memmove(p->in, p->in + at, p->in_n - at);
    p->in_n -= at;
    return room_for(&p->in, &p->in_room, want) ? 0 : -ENOMEM;
}

static int line_write(struct pump *p)
{
    while (p->out_at < p->out_n) {
        long n = sys_write(p->line, p->out + p->out_at, p->out_n - p->out_at);
        if (n == -EAGAIN || n == -EINTR)
            return 0;
        if (n <= 0)
            return -EPIPE;
        p->out_at += (size_t)n;
    }
    return 0;
}

/* ---- one turn ---- */

static size_t fill(struct pump *p, const struct pollfd *others, unsigned n)
{
    size_t k = 0;
    bool waits = p->out_n > p->out_at;
    p->polled[k++] = (struct pollfd){.fd = p->line, .events = (short)(POLLIN | (waits ? POLLOUT : 0))};
    for (unsigned i = 0; i < n; i++)
        p->polled[k++] = others[i];
    for (size_t i = 0; i < p->n_lanes; i++) {
        struct lane *l = &p->lanes[i];
        bool ready = l->source ? l->credit > 0 && p->out_n - p->out_at < PUMP_QUEUE : l->n > 0;
        if (l->stream == MUX_BACK && ready)
            ready = back_may(p, l);
        /* A sink is also watched for its reader closing. */
        short events = !ready ? 0 : l->source ? POLLIN : POLLOUT;
        p->polled[k++] = (struct pollfd){.fd = l->source && !ready ? -1 : l->fd, .events = events};
        l->quiet = false;
    }
    return k;
}

static int lanes_turn(struct pump *p, const struct pollfd *polled, size_t n)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < n && i < p->n_lanes; i++) {
        struct lane *l = &p->lanes[i];
        if (polled[i].fd < 0 || l->fd != polled[i].fd)
            continue;
        if (l->source && polled[i].revents && l->stream == MUX_BACK && !is_quiet(p, l->job, false))
            continue; /* after what was written before it */
        if (l->source && polled[i].revents)
            e = lane_read(p, l);
        else if (l->source)
            l->quiet = true;
        else if (polled[i].revents & POLLOUT)
            e = lane_write(p, l);
        else if (polled[i].revents) /* its reader has closed */
            e = lane_lost(p, l);
    }
    return e;
}

int pump_turn(struct pump *p, struct pollfd *others, unsigned n, int ms)
{
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    size_t need = 1 + n + p->n_lanes;
    if (need > p->polled_room) {
        struct pollfd *grown = realloc(p->polled, need * 2 * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        p->polled = grown;
        p->polled_room = need * 2;
    }
    size_t k = fill(p, others, n), lanes = k - 1 - n;
    int e = sys_poll(p->polled, (unsigned)k, ms < 0 ? NULL : &wait);
    if (e < 0 && e != -EINTR)
        return e;
    for (unsigned i = 0; i < n; i++)
        others[i].revents = e < 0 ? 0 : p->polled[1 + i].revents;
    if (e < 0)
        return 0;
    e = lanes_turn(p, p->polled + 1 + n, lanes); /* before data from the line can change them */
    if (e == 0 && p->polled[0].revents & (POLLIN | POLLHUP | POLLERR))
        e = line_read(p);
    return e < 0 ? e : line_write(p);
}
