/*
 * Questions of the box's own processes (protocol/inquiry.h): each has one descriptor, one message and one answer. A box can
 * ask as often as it likes, so few may wait at a time, and few are answered per second: the answer is made on this thread.
 */
#include "protocol/inquiry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "supervisor/network/live.h"

#define INQUIRY_BURST    16u
#define INQUIRY_EVERY_US 200000u /* one more */

static void drop_inquiry(struct inquiries *q, unsigned i)
{
    (void)close(q->fds[i]);
    memmove(q->fds + i, q->fds + i + 1, (--q->n - i) * sizeof *q->fds);
}

void inquiry_take(struct box *b, int fd)
{
    struct inquiries *q = &b->inquiries;
    if (!b->spec || !b->spec->answer || b->stage >= STAGE_ENDING) {
        (void)close(fd);
        return;
    }
    if (q->n == INQUIRIES_MAX)
        drop_inquiry(q, 0);
    q->fds[q->n++] = fd;
}

void inquiry_poll(const struct box *b, struct pollfd p[INQUIRIES_MAX])
{
    for (unsigned i = 0; i < INQUIRIES_MAX; i++)
        p[i] = (struct pollfd){.fd = i < b->inquiries.n ? b->inquiries.fds[i] : -1, .events = POLLIN};
}

static bool passes(struct inquiries *q, uint64_t now)
{
    if (q->full_at <= now)
        q->full_at = now;
    if (q->full_at - now > (uint64_t)(INQUIRY_BURST - 1) * INQUIRY_EVERY_US)
        return false;
    q->full_at += INQUIRY_EVERY_US;
    return true;
}

static void answer_inquiry(struct box *b, int fd, uint64_t now)
{
    struct inquiry asked;
    struct inquiry_answer a = {.verdict = -1};
    ssize_t n = recv(fd, &asked, sizeof asked, MSG_DONTWAIT | MSG_TRUNC);
    if (n != sizeof asked)
        return;
    asked.act[sizeof asked.act - 1] = asked.target[sizeof asked.target - 1] = 0;
    if (!passes(&b->inquiries, now))
        snprintf(a.reason, sizeof a.reason, "this box asks too often; ask again in a second");
    else if (same(asked.act, INQUIRY_OPEN))
        question_browser(b, asked.target, &a);
    else
        b->spec->answer(b->spec->answer_ctx, asked.act, asked.target, &a);
    (void)send(fd, &a, sizeof a, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void inquiry_ready(struct box *b, const struct pollfd p[INQUIRIES_MAX], uint64_t now)
{
    struct inquiries *q = &b->inquiries;
    for (unsigned i = q->n; i-- > 0;) {
        if (p[i].fd != q->fds[i] || !p[i].revents)
            continue;
        answer_inquiry(b, q->fds[i], now);
        drop_inquiry(q, i);
    }
}

void inquiries_end(struct box *b)
{
    while (b->inquiries.n)
        drop_inquiry(&b->inquiries, b->inquiries.n - 1);
}
