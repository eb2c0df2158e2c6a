/*
 * Checks requests to the session daemon: sizes, how many descriptors come along, and whether an operation has a
 * payload. What passes can be taken apart without another check of its length.
 */
#include "protocol/keep.h"

#include <errno.h>
#include <string.h>

static const struct {
    unsigned fds;
    bool payload;
} ops[KEEP_OP_COUNT] = {
#define X(id, fds, payload) [KEEP_##id] = {fds, payload},
    KEEP_OPS(X)
#undef X
};

int keep_request_check(const void *bytes, size_t n, unsigned n_fds)
{
    struct keep_request q;
    if (n < sizeof q || n > KEEP_MESSAGE)
        return -EBADMSG;
    memcpy(&q, bytes, sizeof q);
    if (q.magic != KEEP_MAGIC || q.op == KEEP_NONE || q.op >= KEEP_OP_COUNT || q.apart > 1 || q.bytes > KEEP_MAX)
        return -EBADMSG;
    if (q.apart ? n != sizeof q || n_fds == 0 : q.bytes != n - sizeof q)
        return -EBADMSG;
    if (n_fds > ops[q.op].fds + q.apart || ops[q.op].payload != (q.bytes > 0))
        return -EBADMSG;
    return 0;
}

bool keep_shell_name(const char *name, size_t n)
{
    if (n == 0 || n > KEEP_MAX_NAME)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
              c == '.'))
            return false;
    }
    return true;
}
