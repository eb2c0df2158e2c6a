/*
 * The timeouts of a run, and messages to pid 1. It gets these by its control connection: signals, the terminal's
 * size, the end.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/parts.h"

/* The first call by the vdso takes ten times as long as one of the kernel (page faults, and a search for the symbol), and few follow. */
uint64_t now_us(void)
{
    struct timespec t;
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

void box_send(struct box *b, const struct frame *f)
{
    if (b->started.control < 0)
        return;
    /* Full or closed: pid 1 is past listening, and the deadlines below take care of it. */
    ssize_t n;
    do
        n = send(b->started.control, f, sizeof *f, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
}

void box_resize(struct box *b)
{
    struct winsize size;
    io_resize(&b->io);
    if (b->spec && !b->spec->start.plan->facts->machine) /* what a session's box is, is not known here */
        return;
    if (b->io.master < 0 || b->io.term.fd < 0 || sys_tty_size(b->io.term.fd, &size) < 0)
        return;
    const struct frame f = {.kind = FRAME_WINSIZE, .a = (uint32_t)size.ws_row << 16 | size.ws_col};
    box_send(b, &f);
}

void box_signal(struct box *b, int sig, enum signal_target target)
{
    struct frame f = {.kind = FRAME_SIGNAL, .a = (uint32_t)sig, .b = target};
    box_send(b, &f);
}
