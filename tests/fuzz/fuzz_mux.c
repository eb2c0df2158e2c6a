/*
 * The line from a virtual machine, as the bridge reads it: whatever comes, messages are found at the same places however the
 * bytes are cut, nothing is passed on that its head's rules forbid, and no lane gets more than its window.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "pump/pump.h"
#include "protocol/control.h"

struct seen {
    uint32_t n, sum;
};

static int note(void *ctx, const struct mux_head *h, void *p)
{
    struct seen *s = ctx;
    MUST(mux_head_check(h, true));
    MUST(h->kind == MUX_HELLO || h->kind == MUX_FRAME);
    MUST(((uintptr_t)p & 15) == 0);
    const unsigned char *b = p;
    for (uint32_t i = 0; i < h->n; i++)
        s->sum = s->sum * 31 + b[i];
    s->n++;
    return 0;
}

/* The bytes in pieces of `piece`; what pump_turn() said last. */
static int run(const uint8_t *data, size_t size, size_t piece, struct seen *s)
{
    struct pump p;
    int line[2], e = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    MUST(null >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, line) == 0);
    pump_begin(&p, line[0], false, s, note);
    MUST(pump_lane(&p, 1, MUX_OUT, false, null) == 0);
    for (size_t at = 0; e == 0 && at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        MUST(write(line[1], data + at, n) == (ssize_t)n);
        e = pump_turn(&p, NULL, 0, 0);
        for (size_t i = 0; i < p.n_lanes; i++)
            MUST(p.lanes[i].n <= MUX_WINDOW);
    }
    MUST(e == 0 || e == -EBADMSG);
    pump_end(&p);
    close(line[1]);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, cut = {0};
    struct mux_head h;
    size_t want;
    if (size > 60000)
        return 0;
    long n = mux_next(data, size, true, &h, &want);
    MUST(n == 0 || n == -EBADMSG || (n == (long)(sizeof h + h.n) && (size_t)n <= size && mux_head_check(&h, true)));
    MUST(n != 0 || want > size);
    int a = run(data, size, size ? size : 1, &whole), b = run(data, size, 7, &cut);
    MUST(a == b && whole.n == cut.n && whole.sum == cut.sum);
    return 0;
}
