/*
 * HTTP/1 heads and bodies, as strangers send them. What the egress relays must be read by the server as we read it: so a
 * head is accepted only where it is whole, its slices lie in it, and its lines say host and length once.
 */
#include <strings.h>

#include "egress/protocols/proto.h"
#include "fuzz.h"

static bool inside(struct str part, struct str whole)
{
    return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static size_t lines_named(struct str fields, const char *name)
{
    size_t n = 0, len = strlen(name);
    for (size_t i = 0; i + len < fields.n; i++) {
        bool start = i == 0 || fields.p[i - 1] == '\n';
        n += start && strncasecmp(fields.p + i, name, len) == 0 && fields.p[i + len] == ':';
    }
    return n;
}

static void check_head(struct str in, const struct http_head *h, size_t n)
{
    struct str head = {in.p, n};
    struct http_head again;
    MUST(in.p && n <= in.n && n <= MAX_HTTP_HEAD + 2 && n >= 4 && memcmp(in.p + n - 4, "\r\n\r\n", 4) == 0);
    MUST(inside(h->method, head) && inside(h->target, head) && inside(h->version, head) && inside(h->fields, head));
    MUST(h->method.n && h->target.n && !memchr(h->method.p, ' ', h->method.n) &&
         !memchr(h->target.p, ' ', h->target.n));
    MUST(!memchr(in.p, 0, n) && !memmem(in.p, n, "\n\n", 2) && !memmem(in.p, n, "\r\r", 2) &&
         !memmem(in.p, n, "\n ", 2));
    size_t hosts = lines_named(h->fields, "host"), lengths = lines_named(h->fields, "content-length");
    size_t codings = lines_named(h->fields, "transfer-encoding");
    MUST(hosts == h->has_host && lengths <= 1 && codings <= 1 && lengths + codings <= 1);
    MUST(h->has_length == (lengths == 1) && h->chunked == (codings == 1));
    if (h->form == HTTP_AUTHORITY || h->form == HTTP_ABSOLUTE || h->has_host)
        MUST(h->port != 0);
    /* What follows changes nothing, and no shorter piece is taken for a whole head. */
    MUST(http_head_parse(head, 80, &again) == (ssize_t)n);
    MUST(http_head_parse((struct str){in.p, n - 1}, 80, &again) == 0);
    MUST(http_head_parse((struct str){in.p, n / 2}, 80, &again) == 0);
}

/* A body in one piece or in two ends at the same byte, and never beyond what is there. */
static void check_body(struct str rest, const struct http_head *h)
{
    struct http_body one, two;
    http_body_begin(&one, h);
    http_body_begin(&two, h);
    MUST((one.state == BODY_NONE) == (!h->chunked && (!h->has_length || h->length == 0)));
    ssize_t whole = http_body_eat(&one, rest);
    size_t cut = rest.n ? (unsigned char)rest.p[0] % rest.n : 0;
    ssize_t first = http_body_eat(&two, (struct str){rest.p, cut});
    ssize_t second = first == (ssize_t)cut ? http_body_eat(&two, str_skip(rest, cut)) : 0;
    MUST(whole <= (ssize_t)rest.n && first <= (ssize_t)cut);
    if (whole < 0) {
        MUST(first < 0 || second < 0);
        return;
    }
    MUST(first >= 0 && second >= 0 && first + second == whole);
    MUST(one.state == two.state && one.left == two.left && one.cr == two.cr && one.line == two.line);
    MUST(one.state != BODY_NONE || h->has_length == false || (uint64_t)whole == h->length);
    MUST(whole == (ssize_t)rest.n || one.state == BODY_NONE);
}

/* What is a request for our own parser is one for the guess, too; and a shorter piece is never surer than a longer one. */
static void check_guess(struct str in, ssize_t parsed)
{
    size_t safe, empty, part;
    int guess = http_guess(in, &safe, &empty);
    MUST(safe <= in.n && empty <= safe);
    if (parsed > 0)
        MUST(guess == 1 && empty == 0);
    for (size_t i = 0; i <= in.n && parsed > 0; i++) /* what becomes a request is never refused before */
        MUST(http_begins((struct str){in.p, i}));
    if (!http_begins(in))
        MUST(parsed <= 0);
    for (size_t i = 0; i < in.n; i += 1 + in.n / 50) {
        int early = http_guess((struct str){in.p, i}, &part, &empty);
        MUST(early == 0 || early == guess);
        MUST(part <= safe || guess != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct http_head h;
    ssize_t n = http_head_parse(in, 80, &h);
    if (n > 0) {
        check_head(in, &h, (size_t)n);
        check_body(str_skip(in, (size_t)n), &h);
    } else if (n < 0 && size < MAX_HTTP_HEAD) {
        /* Refused is refused: more bytes do not help. */
        char more[MAX_HTTP_HEAD + 8];
        memcpy(more, in.p, size);
        memcpy(more + size, "\r\n\r\n", 4);
        MUST(http_head_parse((struct str){more, size + 4}, 80, &h) < 0);
    }
    check_guess(in, n);
    return 0;
}
