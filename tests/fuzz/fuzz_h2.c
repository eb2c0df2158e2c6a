/*
 * HTTP/2 in the clear: what is passed on and what is refused does not depend on how the bytes were cut into pieces, and nobody
 * is asked for whom nothing was said.
 */
#include "egress/protocols/proto.h"
#include "fuzz.h"

struct seen {
    unsigned n;
    uint32_t sum;
};

/* Yes to all but names that begin with "x". */
static bool may(void *context, const struct host *h)
{
    struct seen *s = context;
    MUST(h->kind == HOST_NAME || h->kind == HOST_ADDR);
    s->n++;
    for (const char *p = h->kind == HOST_NAME ? h->name : ""; *p; p++)
        s->sum = s->sum * 31 + (uint8_t)*p;
    return h->kind == HOST_ADDR || h->name[0] != 'x';
}

/* Fed as the egress does: what was dealt with is gone, the rest comes again with more behind it. */
static ssize_t feed(struct str in, size_t step, struct seen *seen)
{
    static struct h2 h;
    size_t at = 0, have = 0;
    h2_begin(&h);
    while (true) {
        size_t before = at;
        ssize_t n = h2_eat(&h, (struct str){in.p + at, have - at}, may, seen);
        MUST(n <= (ssize_t)(have - at));
        MUST(h.size <= h.most && h.n <= H2_ENTRIES && h.n * 32u <= h.size);
        if (n < 0)
            return n;
        at += (size_t)n;
        if (have == in.n && at == before)
            return (ssize_t)at;
        have = in.n - have < step ? in.n : have + step;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    /* The preface is no news: it is put in front. */
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    char *all = malloc(size + sizeof preface);
    MUST(all != NULL);
    memcpy(all, preface, H2_PREFACE_BYTES);
    memcpy(all + H2_PREFACE_BYTES, data + 1, size - 1);
    struct str in = {all, H2_PREFACE_BYTES + size - 1};
    struct seen once = {0}, pieces = {0}, bytes = {0};

    ssize_t whole = feed(in, in.n, &once);
    MUST(feed(in, 1u + data[0], &pieces) == whole);
    MUST(feed(in, 1, &bytes) == whole);
    MUST(once.n == pieces.n && once.sum == pieces.sum && once.n == bytes.n && once.sum == bytes.sum);
    MUST(whole != -EACCES || once.n);
    MUST(h2_looks_like(in, 15));
    free(all);
    return 0;
}
