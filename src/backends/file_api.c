/*
 * Passes the guard's file socket from the box to the process that uses it: one end of a pair goes by the builder to
 * the guard, so that no path leads to it.
 */
#include <errno.h>
#include "backends/engine.h"
#include "sys/fd.h"
#include "sys/socket.h"
#include "protocol/control.h"

int engine_files_give(const struct started *s, int end)
{
    const struct frame f = {.kind = FRAME_FILES};
    long n = sys_send_fd(s->builder, &f, sizeof f, end, MSG_DONTWAIT);
    return n < 0 ? (int)n : 0;
}

int engine_files(const struct started *s, int *ret, struct err *e)
{
    int pair[2];
    int no = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot create a socket pair for the box's files");
    no = engine_files_give(s, pair[1]);
    (void)sys_close(pair[1]);
    if (no < 0) {
        (void)sys_close(pair[0]);
        return err_sys(e, ERR_SYSTEM, -no, "cannot ask the box's guard for its files");
    }
    *ret = pair[0];
    return 0;
}
