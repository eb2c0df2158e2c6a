/*
 * TLS ClientHellos, cut anywhere. The name found does not depend on how the bytes were cut into pieces or records.
 */
#include "egress/protocols/proto.h"
#include "fuzz.h"

static void same_hello(const struct tls_hello *a, const struct tls_hello *b)
{
    MUST(a->has_name == b->has_name && a->ech == b->ech);
    MUST(!a->has_name || same(a->name.name, b->name.name));
}

/* The handshake bytes of the records in `in`, again in records of `step` bytes. */
static size_t cut_again(struct str in, size_t step, uint8_t *out, size_t room)
{
    uint8_t *all = malloc(in.n + 1);
    size_t n = 0, m = 0;
    MUST(all != NULL);
    for (size_t at = 0; at + 5 <= in.n;) {
        size_t len = (size_t)((uint8_t)in.p[at + 3] << 8 | (uint8_t)in.p[at + 4]);
        size_t got = in.n - at - 5 < len ? in.n - at - 5 : len;
        memcpy(all + n, in.p + at + 5, got);
        n += got;
        at += 5 + got;
    }
    for (size_t at = 0; at < n; at += step) {
        size_t len = n - at < step ? n - at : step;
        if (m + 5 + len > room)
            break;
        memcpy(out + m, (uint8_t[]){0x16, 3, 1, (uint8_t)(len >> 8), (uint8_t)len}, 5);
        memcpy(out + m + 5, all + at, len);
        m += 5 + len;
    }
    free(all);
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct tls_hello h = {0}, again = {0};
    static uint8_t records[1 << 16];
    ssize_t n = tls_hello_parse(in, &h);

    (void)tls_looks_like(in);
    MUST(n <= (ssize_t)size && (n >= 0 || n == -EBADMSG));
    if (n < 0) {
        /* Refused is refused, whatever follows. */
        char *more = calloc(1, size + 64);
        MUST(more != NULL);
        memcpy(more, data, size);
        MUST(tls_hello_parse((struct str){more, size + 64}, &again) < 0);
        free(more);
    }
    if (n <= 0)
        return 0;
    if (h.has_name) {
        struct host host;
        MUST(h.name.kind == HOST_NAME && host_parse(str_of(h.name.name), &host) == 0 && same(host.name, h.name.name));
    }
    MUST(tls_looks_like(in));
    MUST(tls_hello_parse((struct str){in.p, (size_t)n}, &again) == n);
    same_hello(&h, &again);
    for (size_t i = 0; i < (size_t)n; i += 1 + (size_t)n / 64) {
        ssize_t early = tls_hello_parse((struct str){in.p, i}, &again);
        MUST(early >= 0);
        if (early)
            same_hello(&h, &again);
    }
    size_t m = cut_again((struct str){in.p, (size_t)n}, 1 + data[size - 1], records, sizeof records);
    MUST(tls_hello_parse((struct str){(char *)records, m}, &again) > 0);
    same_hello(&h, &again);
    return 0;
}
