/*
 * Parses HTTP/1.1 request heads, chunked bodies, and the headers Accept and Host. Pure and strict: what two servers
 * could read differently is an error (RFC 9112).
 */
#include "mcp/transport/http.h"

#include <strings.h>

static bool is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr(marks, c))))
            return false;
    }
    return s.n > 0;
}

static bool is_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

static int take_length(struct mcp_http_head *h, struct str v)
{
    uint64_t n = 0;
    if (!v.n || v.n > 15 || h->has_length)
        return -400;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return -400;
        n = n * 10 + (uint64_t)(v.p[i] - '0');
    }
    h->has_length = true;
    h->length = n;
    return 0;
}

static int take_connection(struct mcp_http_head *h, struct str v)
{
    while (v.n) {
        struct str one = str_trim(str_until(&v, ','));
        h->close = h->close || str_is_nocase(one, "close");
    }
    return 0;
}

static int take_field(struct mcp_http_head *h, struct str name, struct str v)
{
    const struct {
        const char *name;
        struct str *to;
    } texts[] = {{"host", &h->host},
                 {"origin", &h->origin},
                 {"authorization", &h->authorization},
                 {"accept", &h->accept},
                 {"content-type", &h->content_type},
                 {"mcp-session-id", &h->session},
                 {"mcp-protocol-version", &h->version},
                 {"last-event-id", &h->last_event}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!str_is_nocase(name, texts[i].name))
            continue;
        if (texts[i].to->p) /* said twice: which one would count? */
            return -400;
        *texts[i].to = v;
        return 0;
    }
    if (str_is_nocase(name, "content-length"))
        return take_length(h, v);
    if (str_is_nocase(name, "connection"))
        return take_connection(h, v);
    if (str_is_nocase(name, "transfer-encoding")) {
        if (!str_is_nocase(v, "chunked") || h->chunked)
            return -501;
        h->chunked = true;
    }
    if (str_is_nocase(name, "expect")) {
        if (!str_is_nocase(v, "100-continue"))
            return -417;
        h->expects = true;
    }
    return 0;
}

/* A line without its end; false when it is not whole. A bare line feed ends one, too; a bare carriage return is an error. */
static bool take_head_line(struct str *bytes, struct str *ret)
{
    const char *end = bytes->n ? memchr(bytes->p, '\n', bytes->n) : NULL;
    if (!end)
        return false;
    *ret = (struct str){bytes->p, (size_t)(end - bytes->p)};
    *bytes = str_skip(*bytes, ret->n + 1);
    if (ret->n && ret->p[ret->n - 1] == '\r')
        ret->n--;
    return true;
}

static int first_line(struct mcp_http_head *h, struct str line)
{
    h->method = str_until(&line, ' ');
    h->target = str_until(&line, ' ');
    if (!is_token(h->method) || !h->target.n || !is_value(h->target) || !str_starts(line, STR("HTTP/")))
        return -400;
    if (!str_is(line, "HTTP/1.1") && !str_is(line, "HTTP/1.0"))
        return -505;
    h->close = str_is(line, "HTTP/1.0");
    return 0;
}

int http_head(struct str bytes, struct mcp_http_head *ret)
{
    struct str rest = bytes, line;
    unsigned fields = 0;
    int r = 0;

    *ret = (struct mcp_http_head){0};
    while (rest.n && (rest.p[0] == '\r' || rest.p[0] == '\n') && bytes.n - rest.n < 4) /* empty lines before it */
        rest = str_skip(rest, 1);
    if (!take_head_line(&rest, &line))
        return bytes.n > HTTP_MAX_HEAD ? -431 : 0;
    r = first_line(ret, line);
    const bool old = ret->close; /* HTTP/1.0 */
    while (r == 0) {
        if (!take_head_line(&rest, &line))
            return bytes.n > HTTP_MAX_HEAD ? -431 : 0;
        if (bytes.n - rest.n > HTTP_MAX_HEAD)
            return -431;
        if (!line.n)
            break;
        if (++fields > HTTP_MAX_FIELDS)
            return -431;
        struct str value = line, name = str_until(&value, ':');
        if (name.n == line.n || !is_token(name) || !is_value(value))
            return -400;
        r = take_field(ret, name, str_trim(value));
    }
    if (r == 0 && ret->chunked &&
        (ret->has_length || old)) /* two lengths, or one that a proxy would not see: ways to smuggle */
        r = -400;
    return r < 0 ? r : (int)(bytes.n - rest.n);
}

/* A line of a chunked body without its end: 1; 0: not whole; -400: it does not end as it must, or has other bytes than text. */
static int take_chunk_line(struct str *bytes, struct str *ret)
{
    const char *end = bytes->n ? memchr(bytes->p, '\n', bytes->n) : NULL;
    if (!end)
        return 0;
    size_t n = (size_t)(end - bytes->p);
    if (!n || bytes->p[n - 1] != '\r')
        return -400;
    *ret = (struct str){bytes->p, n - 1};
    *bytes = str_skip(*bytes, n + 1);
    return is_value(*ret) ? 1 : -400;
}

static int chunk_size(struct str line, uint64_t *ret)
{
    uint64_t n = 0;
    size_t digits = 0;

    for (; digits < line.n && hex_digit(line.p[digits]) >= 0; digits++) {
        if (digits > 10)
            return -400;
        n = n * 16 + (uint64_t)hex_digit(line.p[digits]);
    }
    struct str rest = str_trim(str_skip(line, digits));
    *ret = n;
    return digits && (!rest.n || rest.p[0] == ';') ? 0 : -400;
}

int http_chunks(struct str *bytes, struct buf *body, size_t max)
{
    while (bytes->n) {
        struct str rest = *bytes, line;
        uint64_t n;
        int r = take_chunk_line(&rest, &line);
        if (r <= 0)
            return r < 0 || bytes->n > 4096 ? -400 : 0;
        if (chunk_size(line, &n) < 0)
            return -400;
        if (n == 0) { /* fields may follow; an empty line ends them */
            do {
                r = take_chunk_line(&rest, &line);
                if (r <= 0)
                    return r < 0 || bytes->n > HTTP_MAX_HEAD ? -400 : 0;
            } while (line.n);
            *bytes = rest;
            return 1;
        }
        if (n > max - (body->n < max ? body->n : max))
            return -413;
        if (rest.n < n + 2)
            return rest.n > n && rest.p[n] != '\r' ? -400 : 0;
        struct str data = {rest.p, n};
        rest = str_skip(rest, n);
        if (rest.p[0] != '\r' || rest.p[1] != '\n')
            return -400;
        buf_str(body, data);
        *bytes = str_skip(rest, 2);
    }
    return 0;
}

bool http_accepts(struct str accept, const char *type)
{
    const char *slash = strchr(type, '/');
    if (!accept.n)
        return true;
    while (accept.n) {
        struct str one = str_until(&accept, ','), name = str_trim(str_until(&one, ';'));
        bool zero = false;
        for (struct str q = one; q.n;) {
            struct str p = str_trim(str_until(&q, ';'));
            zero = zero || str_is_nocase(p, "q=0") || str_is_nocase(p, "q=0.0");
        }
        bool group = name.n == (size_t)(slash - type) + 2 && strncasecmp(name.p, type, name.n - 1) == 0 &&
                     name.p[name.n - 1] == '*';
        if (!zero && (str_is_nocase(name, type) || str_is_nocase(name, "*/*") || group))
            return true;
    }
    return false;
}

bool http_is_here(struct str host)
{
    struct str name = host, port = {0};
    if (host.n && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        if (!end)
            return false;
        name.n = (size_t)(end - host.p) + 1;
        port = str_skip(host, name.n);
    } else {
        const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
        if (colon) {
            name.n = (size_t)(colon - host.p);
            port = str_skip(host, name.n);
        }
    }
    if (port.n && port.p[0] != ':')
        return false;
    for (size_t i = 1; i < port.n; i++) {
        if (port.p[i] < '0' || port.p[i] > '9')
            return false;
    }
    return str_is_nocase(name, "localhost") || str_is_nocase(name, "127.0.0.1") || str_is_nocase(name, "[::1]");
}

bool http_origin_is_here(struct str origin)
{
    static const struct str schemes[] = {{"http://", 7}, {"https://", 8}};
    for (size_t i = 0; i < 2; i++) {
        if (str_starts(origin, schemes[i]))
            return http_is_here(str_skip(origin, schemes[i].n));
    }
    return false;
}

bool same_secret(struct str given, const char *secret)
{
    size_t n = strlen(secret);
    unsigned differ = given.n != n;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)secret[i] ^ (unsigned char)(i < given.n ? given.p[i] : 0);
    return differ == 0;
}
