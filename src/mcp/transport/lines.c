/* Splits a byte stream into lines with a maximum length. */
#include "mcp/transport/pipe.h"

static void take_whole(struct lines *l, void (*line)(void *ctx, struct str text), void *ctx)
{
    struct str rest = buf_view(&l->in);
    const char *end;

    while (rest.n > l->looked && (end = memchr(rest.p + l->looked, '\n', rest.n - l->looked))) {
        struct str text = {rest.p, (size_t)(end - rest.p)};
        rest = str_skip(rest, text.n + 1);
        l->looked = 0;
        if (text.n && text.p[text.n - 1] == '\r')
            text.n--;
        if (text.n)
            line(ctx, text);
    }
    l->looked = rest.n;
    if (rest.n == l->in.n)
        return;
    if (rest.n == 0 && l->in.room > 1u << 17) {
        buf_free(&l->in);
        return;
    }
    memmove(l->in.p, rest.p, rest.n);
    l->in.n = rest.n;
}

void lines_take(struct lines *l, struct str bytes, void (*line)(void *ctx, struct str text),
                void (*too_long)(void *ctx), void *ctx)
{
    if (!l->in.max)
        l->in = BUF(2 * l->max + (1u << 20));
    while (bytes.n) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        if (l->skipping) {
            bytes = end ? str_skip(bytes, (size_t)(end - bytes.p) + 1) : str_skip(bytes, bytes.n);
            l->skipping = !end;
            continue;
        }
        buf_str(&l->in, bytes);
        bytes = str_skip(bytes, bytes.n);
        take_whole(l, line, ctx);
        if (l->in.n > l->max || !buf_ok(&l->in)) {
            buf_free(&l->in);
            l->in = BUF(2 * l->max + (1u << 20));
            l->looked = 0;
            l->skipping = true;
            too_long(ctx);
        }
    }
}
