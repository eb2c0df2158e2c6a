/*
 * Moves data in one direction, without ever blocking.
 *
 * Our own ends of pipes and the pty's master are non-blocking. The caller's descriptors are not changed, because their
 * flags belong to an open file description that others share (a non-blocking terminal breaks the shell). So the
 * caller's terminals and pipes are opened again if permitted (io.c), sockets are used with MSG_DONTWAIT, regular files
 * do not block, and the rest gets small writes when it polls writable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "supervisor/parts.h"

#define SMALL_WRITE    256     /* n_tty polls writable when at least so many bytes fit (WAKEUP_CHARS) */
#define STEPS_PER_WAKE 16      /* chunks moved before the others get their turn */
#define SLEEP_US       200000u /* how long to leave a descriptor alone that polls ready but has nothing for us */
#define EOF_CHAR       '\x04'  /* VEOF of a fresh pty */

void relay_stop(struct relay *r)
{
    if (r->own_from)
        (void)close_fd(r->from);
    r->from = -1;
}

void relay_close(struct relay *r)
{
    relay_stop(r);
    if (r->own_to)
        (void)close_fd(r->to);
    r->to = -1;
    free(r->hold);
    r->hold = NULL;
    r->at = r->n = 0;
}

/* The reader is gone: what the box wants to write from now on finds a broken pipe, as it would without us. */
static void broke(struct relay *r, int no)
{
    if (no != EPIPE && no != EIO && no != ECONNRESET)
        r->broken = no;
    r->at = r->n = 0;
    relay_stop(r);
    if (r->own_to)
        (void)close_fd(r->to);
    r->to = -1;
}

static bool write_held(struct relay *r)
{
    while (r->at < r->n) {
        size_t n = r->n - r->at;
        if (r->small_writes && n > SMALL_WRITE)
            n = SMALL_WRITE;
        ssize_t k = r->to_socket ? send(r->to, r->hold + r->at, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : write(r->to, r->hold + r->at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return false;
        if (k < 0) {
            broke(r, errno);
            return true;
        }
        r->at += (size_t)k;
        if (r->small_writes && r->at < r->n)
            return false; /* poll again before more */
    }
    r->at = r->n = 0;
    return true;
}

static bool have_hold(struct relay *r)
{
    if (!r->hold)
        r->hold = malloc(RELAY_CHUNK);
    if (!r->hold)
        broke(r, ENOMEM);
    return r->hold != NULL;
}

/*
 * The input has ended. A pipe to the box is closed; a pty is told by its end-of-file character, twice when a line is
 * unfinished (termios(3): the first one only passes on the line), and only while it is in line mode.
 */
static void input_ended(struct relay *r)
{
    relay_stop(r);
    if (!r->pty) {
        if (r->own_to)
            (void)close_fd(r->to);
        r->to = -1;
        return;
    }
    struct termios t = {0};
    if (sys_tty_modes(r->to, &t) < 0 || !(t.c_lflag & ICANON) || !have_hold(r))
        return;
    r->n = 0;
    r->hold[r->n++] = EOF_CHAR;
    if (r->last != '\n')
        r->hold[r->n++] = EOF_CHAR;
    (void)write_held(r);
}

static void ended(struct relay *r, int no, uint64_t now)
{
    if (r->kind == RELAY_IN && r->terminal && (no || !r->line_mode)) {
        r->hung_up = true; /* a raw terminal has no end of file */
        relay_stop(r);
    } else if (r->kind == RELAY_IN)
        input_ended(r);
    else if (r->pty && no == EIO && !r->drain)
        r->sleep_until = now + SLEEP_US; /* no slave is open just now; another may be opened */
    else
        relay_stop(r);
}

/* Whether somebody else (a pager in our pipeline) has put the shared terminal into a mode of its own. */
static bool terminal_is_lent(const struct relay *r)
{
    struct termios t = {0};
    return r->line_mode && sys_tty_modes(r->from, &t) == 0 && !(t.c_lflag & ICANON);
}

/* One read into `to_p`; >0 bytes, 0 when there is nothing now or the relay has ended. */
static size_t fetch_bytes(struct relay *r, char *to_p, size_t n, uint64_t now)
{
    for (;;) {
        ssize_t k = r->from_socket ? recv(r->from, to_p, n, MSG_DONTWAIT) : read(r->from, to_p, n);
        if (k > 0) {
            r->last = to_p[k - 1];
            return (size_t)k;
        }
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !r->drain)
            return 0;
        ended(r, k < 0 ? errno : 0, now);
        return 0;
    }
}

/* Reads into the captured bytes as long as they have room; afterwards reads and forgets, so that nobody blocks. */
static size_t capture_step(struct relay *r, size_t room, uint64_t now)
{
    /* Much output comes in pieces of a pipe, but most commands say little or nothing: no pages are got for that. */
    const size_t most = r->capture->n ? RELAY_CHUNK : FIRST_CHUNK;
    size_t want = r->capture_max - r->capture->n;
    if (want > most)
        want = most;
    if (want > room)
        want = room;
    char *space = want && buf_ok(r->capture) ? buf_space(r->capture, want) : NULL;
    if (space) {
        size_t k = fetch_bytes(r, space, want, now);
        if (k)
            buf_grew(r->capture, k);
        if (k && r->output)
            r->output(r->output_ctx, r->which, r->capture->p + r->capture->n - k, k);
        return k;
    }
    if (!have_hold(r))
        return 0;
    size_t k = fetch_bytes(r, r->hold, room < RELAY_CHUNK ? room : RELAY_CHUNK, now);
    if (k)
        *r->truncated = true;
    if (k && r->output)
        r->output(r->output_ctx, r->which, r->hold, k);
    return k;
}

/* Returns bytes moved; clears r->splice when this pair cannot be spliced. */
static size_t splice_step(struct relay *r, size_t room, uint64_t now)
{
    r->want_out = false;
    for (;;) {
        ssize_t k = splice(r->from, NULL, r->to, NULL, room < RELAY_PIPE ? room : RELAY_PIPE,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (k > 0)
            return (size_t)k;
        if (k == 0) {
            ended(r, 0, now);
            return 0;
        }
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN) {
            /* Which side? Poll says: when there is something to read, the other end is full. */
            struct pollfd p = {.fd = r->from, .events = POLLIN};
            r->want_out = poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
            if (!r->want_out && r->drain)
                relay_stop(r);
            return 0;
        }
        if (errno == EINVAL)
            r->splice = false;
        else
            broke(r, errno);
        return 0;
    }
}

/* A terminal's driver keeps an end of file as a 0, which is read as that once the terminal is raw; the pty is told what was typed. */
static void tell_ends(struct relay *r, size_t n)
{
    for (size_t i = 0; i < n && r->ahead > 0; i++, r->ahead--) {
        if (!r->hold[i])
            r->hold[i] = r->ahead_eof;
    }
}

static size_t copy_step(struct relay *r, size_t room, uint64_t now)
{
    if (!have_hold(r))
        return 0;
    size_t k = fetch_bytes(r, r->hold, room < RELAY_CHUNK ? room : RELAY_CHUNK, now);
    if (k) {
        tell_ends(r, k);
        r->at = 0;
        r->n = k;
        (void)write_held(r);
    }
    return k;
}

size_t relay_step(struct relay *r, size_t room, uint64_t now)
{
    size_t taken = 0;

    if (r->at < r->n && !write_held(r))
        return 0;
    for (int i = 0; i < STEPS_PER_WAKE && r->from >= 0 && r->at == r->n && taken < room; i++) {
        size_t left = room - taken, k;
        if (terminal_is_lent(r)) {
            r->sleep_until = now + SLEEP_US;
            break;
        }
        if (r->kind == RELAY_CAPTURE)
            k = capture_step(r, left, now);
        else if (r->splice)
            k = splice_step(r, left, now);
        else
            k = copy_step(r, left, now);
        if (k == 0)
            break;
        taken += k;
        if (r->kind == RELAY_IN && (r->line_mode || (!r->own_from && !r->from_socket)))
            break; /* the caller's own descriptor may block: one read for one wake */
    }
    return taken;
}

unsigned relay_poll(const struct relay *r, uint64_t now, struct pollfd *ret, uint64_t *ret_sleep)
{
    if (relay_done(r))
        return 0;
    if (r->sleep_until > now) {
        if (*ret_sleep > r->sleep_until)
            *ret_sleep = r->sleep_until;
        return 0;
    }
    if (r->at < r->n || r->want_out)
        *ret = (struct pollfd){.fd = r->to, .events = POLLOUT};
    else
        *ret = (struct pollfd){.fd = r->from, .events = POLLIN};
    return 1;
}
