/*
 * Messages of the client library: the first byte says which, the rest is one; and the values that lie in some of
 * them. No bytes may lead a reader out of the message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "client/messages.h"
#include "fuzz.h"

static void read_values(struct str bytes)
{
    auto_buf struct buf aligned = BUF(1u << 20), text = BUF(1u << 22);
    buf_str(&aligned, bytes);
    const struct value_node *v = aligned.n ? value_check(buf_view(&aligned)) : NULL;
    if (v)
        json_put(&JSON(&text), NULL, v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena *mem = arena_new(1 << 22);
    auto_buf struct buf again = BUF(1u << 22);
    union {
        struct message_exec largest;
        char room[512];
    } taken;
    if (size == 0)
        return 0;
    const enum message_shape_id id = data[0] % SHAPE_COUNT;
    const struct str bytes = {(const char *)data + 1, size - 1};
    struct str rest = bytes;
    if (message_shapes[id].bytes > sizeof taken)
        abort();
    if (message_take(&rest, TAG_ANSWER, id, mem, &taken) == 0) {
        message_put(&again, TAG_ANSWER, id, &taken);
        /* What was understood is written as it was: there is one way to write a message. */
        if (again.n != bytes.n - rest.n || memcmp(again.p, bytes.p, again.n) != 0)
            abort();
    }
    read_values(bytes);
    return 0;
}
