/*
 * A download is bytes that nobody in here looks at: splice(2) hands the pages of one socket to the other, by way of a pipe,
 * for less than half of what reading and writing them costs. What the other side cannot take yet stays in the pipe, which
 * is that connection's until it is empty; when all are taken, others read and write as they would without.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "egress/conn.h"

static struct {
    int out, in; /* 0: not made yet */
    bool taken;
} pipes[BULK_PIPES];
static bool never; /* pipes or splicing are refused here */

static int pipe_of(void)
{
    for (int i = 0; i < BULK_PIPES && !never; i++) {
        int ends[2];
        if (pipes[i].taken)
            continue;
        if (pipes[i].in > 0)
            return i;
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
            break;
        (void)fcntl(ends[1], F_SETPIPE_SZ, BULK_ROOM); /* or less, when the user has too many (pipe(7)) */
        pipes[i].out = ends[0];
        pipes[i].in = ends[1];
        return i;
    }
    return -1;
}

int bulk_take(int from, uint8_t *ret_pipe)
{
    int i = pipe_of();
    if (i < 0)
        return -ENOBUFS;
    ssize_t n = splice(from, NULL, pipes[i].in, NULL, BULK_ROOM, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n < 0 && errno == EINVAL) {
        never = true;
        return -ENOBUFS;
    }
    if (n > 0) {
        pipes[i].taken = true;
        *ret_pipe = (uint8_t)(i + 1);
    }
    return n < 0 ? -errno : (int)n;
}

int bulk_give(uint8_t pipe, int to, uint32_t n)
{
    ssize_t m = splice(pipes[pipe - 1].out, NULL, to, NULL, n, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    return m < 0 ? -errno : (int)m;
}

void bulk_done(uint8_t pipe, bool empty)
{
    int i = pipe - 1;
    pipes[i].taken = false;
    if (empty)
        return;
    (void)close(pipes[i].in);
    (void)close(pipes[i].out);
    pipes[i].in = pipes[i].out = 0;
}
