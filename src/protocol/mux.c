/*
 * Checks and splits frames of the multiplexed connection to a virtual machine. The other end may be hostile: a frame
 * that is not well formed ends the connection.
 */
#include "protocol/mux.h"

#include <errno.h>
#include <string.h>
#include "protocol/control.h"

bool mux_head_check(const struct mux_head *h, bool from_guest)
{
    if (h->kind == 0 || h->kind >= MUX_KINDS || h->stream >= MUX_STREAMS)
        return false;
    switch ((enum mux_kind)h->kind) {
    case MUX_HELLO:
        return from_guest && h->job == 0 && h->n == sizeof(struct mux_hello);
    case MUX_CONFIG:
        return !from_guest && h->job == 0 && h->n > sizeof(struct mux_config) && h->n <= MUX_MAX_CONFIG;
    case MUX_JOB:
        return !from_guest && h->job != 0 && h->n >= sizeof(struct job_image) && h->n <= JOB_MAX_BYTES;
    case MUX_FRAME:
        return h->n == sizeof(struct frame);
    case MUX_DATA: /* standard input comes from the host, the rest from the machine */
        return h->job != 0 && h->n > 0 && h->n <= MUX_CHUNK && h->stream != MUX_REPLY &&
               mux_inward(h->stream) == !from_guest;
    case MUX_CREDIT:
        return h->job != 0 && h->n == sizeof(struct mux_credit) && h->stream != MUX_REPLY &&
               mux_inward(h->stream) == from_guest;
    case MUX_EOF:
        return h->job != 0 && h->n == 0 && h->stream != MUX_REPLY && mux_inward(h->stream) == !from_guest;
    case MUX_GONE:
        return h->job != 0 && h->n == 0 && (h->stream == MUX_REPLY ? !from_guest : mux_inward(h->stream) == from_guest);
    case MUX_KINDS:
        break;
    }
    return false;
}

long mux_next(const void *p, size_t n, bool from_guest, struct mux_head *ret, size_t *ret_want)
{
    struct mux_head h;
    if (ret_want)
        *ret_want = sizeof h;
    if (n < sizeof h)
        return 0;
    memcpy(&h, p, sizeof h);
    if (!mux_head_check(&h, from_guest))
        return -EBADMSG;
    if (ret_want)
        *ret_want = sizeof h + h.n;
    if (n - sizeof h < h.n)
        return 0;
    *ret = h;
    return (long)(sizeof h + h.n);
}
