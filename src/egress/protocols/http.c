/* Parses HTTP/1: request heads, their framing, and the guess whether unknown data could be a request.
   What two servers could read differently is refused. */
#include "egress/protocols/proto.h"

#include <string.h>
#include <strings.h>

static const char methods[][12] = {"GET ",     "HEAD ",   "POST ",     "PUT ",       "DELETE ", "OPTIONS ", "PATCH ",
                                   "CONNECT ", "TRACE ",  "PROPFIND ", "PROPPATCH ", "MKCOL ",  "COPY ",    "MOVE ",
                                   "LOCK ",    "UNLOCK ", "REPORT ",   "SEARCH ",    "PURGE ",  "LINK ",    "UNLINK "};

bool http_looks_like(struct str in)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct str m = str_of(methods[i]);
        size_t n = in.n < m.n ? in.n : m.n;
        if (n && memcmp(in.p, m.p, n) == 0)
            return true;
    }
    return false;
}

static bool is_token_char(char byte)
{
    unsigned char c = (unsigned char)byte;
    return c > 0x20 && c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_token_char(s.p[i]))
            return false;
    }
    return s.n > 0;
}

/* Bytes that some server treats as whitespace between the parts of a request line. */
bool http_is_gap(char byte)
{
    unsigned char c = (unsigned char)byte;
    return c == '\t' || c == 0x0b || c == 0x0c || (c >= 0x1c && c <= ' ') || c == 0x85 || c == 0xa0;
}

static bool says_version(struct str line)
{
    for (size_t i = 0; i + 5 <= line.n; i++) {
        if (strncasecmp(line.p + i, "HTTP/", 5) == 0)
            return true;
    }
    return false;
}

int http_guess(struct str in, size_t *ret_safe, size_t *ret_empty)
{
    size_t at = 0;
    while (at < in.n && (in.p[at] == '\r' || in.p[at] == '\n' || http_is_gap(in.p[at])))
        at++;
    *ret_empty = at;
    struct str rest = str_skip(in, at), method = {rest.p, 0};
    while (method.n < rest.n && is_token_char(rest.p[method.n]))
        method.n++;
    *ret_safe = at + method.n;
    at = method.n;
    while (at < rest.n && http_is_gap(rest.p[at]))
        at++;
    if (at == rest.n)
        return 0;
    bool connect = method.n == 7 && strncasecmp(method.p, "CONNECT", 7) == 0;
    unsigned char first = (unsigned char)rest.p[at];
    if (at == method.n || (connect ? first <= 0x20 || first == '{' : !first || !strchr("/*hH", first)))
        return -1;
    const char *lf = memchr(rest.p, '\n', rest.n);
    bool letter = (rest.p[0] | 0x20) >= 'a' && (rest.p[0] | 0x20) <= 'z';
    if (!letter &&
        memchr(rest.p, 0, lf ? (size_t)(lf - rest.p) : rest.n)) /* git's own protocol, which waits for an answer */
        return -1;
    if (!lf)
        return 0;
    struct str line = {rest.p, (size_t)(lf - rest.p)};
    return connect || says_version(line) || http_looks_like(line) || memmem(line.p, line.n, "://", 3) ? 1 : -1;
}

bool http_begins(struct str in)
{
    static const char version[] = "HTTP/1.";
    size_t at = 0, start;
    while (at < in.n && is_token_char(in.p[at]))
        at++;
    if (at == in.n)
        return at <= MAX_HTTP_METHOD;
    if (at == 0 || at > MAX_HTTP_METHOD || in.p[at] != ' ')
        return false;
    bool connect = at == 7 && memcmp(in.p, "CONNECT", 7) == 0;
    start = ++at;
    if (at < in.n && !connect && !memchr("/*hH", in.p[at], 4))
        return false;
    while (at < in.n && (unsigned char)in.p[at] > ' ' && in.p[at] != 0x7f)
        at++;
    if (at == in.n)
        return true;
    if (at == start || in.p[at++] != ' ')
        return false;
    struct str rest = str_skip(in, at);
    size_t n = rest.n < sizeof version - 1 ? rest.n : sizeof version - 1;
    return memcmp(rest.p, version, n) == 0 && (rest.n < 8 || rest.p[7] == '0' || rest.p[7] == '1') &&
           (rest.n < 9 || rest.p[8] == '\r') && (rest.n < 10 || rest.p[9] == '\n');
}

/* The authority of a URI, without user information (it hides the host from people and from some parsers). */
int http_authority(struct str s, uint16_t fallback_port, struct host *host, uint16_t *port)
{
    if (memchr(s.p, '@', s.n) || memchr(s.p, '%', s.n))
        return -EBADMSG;
    if (s.n && s.p[s.n - 1] == ':')
        s.n--;
    return host_port_parse(s, fallback_port, host, port) < 0 ? -EBADMSG : 0;
}

static int request_line(struct str line, uint16_t fallback_port, struct http_head *h)
{
    h->method = str_until(&line, ' ');
    h->target = str_until(&line, ' ');
    h->version = line;
    if (!is_token(h->method) || h->method.n > MAX_HTTP_METHOD || h->target.n == 0 ||
        (!str_is(line, "HTTP/1.1") && !str_is(line, "HTTP/1.0")))
        return -EBADMSG;
    for (size_t i = 0; i < h->target.n; i++) {
        unsigned char c = (unsigned char)h->target.p[i];
        if (c <= 0x20 || c == 0x7f)
            return -EBADMSG;
    }
    if (str_is(h->method, "CONNECT")) {
        h->form = HTTP_AUTHORITY;
        return http_authority(h->target, 0, &h->host, &h->port);
    }
    if (h->target.p[0] == '/') {
        h->form = HTTP_ORIGIN;
        return 0;
    }
    if (str_is(h->target, "*")) {
        h->form = HTTP_ASTERISK;
        return 0;
    }
    if (h->target.n < 7 || strncasecmp(h->target.p, "http://", 7) != 0)
        return -EBADMSG;
    h->form = HTTP_ABSOLUTE;
    struct str rest = str_skip(h->target, 7);
    size_t n = 0;
    while (n < rest.n && !strchr("/?#", rest.p[n]))
        n++;
    h->origin_target = str_skip(rest, n);
    if (h->origin_target.n && h->origin_target.p[0] != '/')
        return -EBADMSG;
    if (h->origin_target.n == 0)
        h->origin_target = STR("/");
    return http_authority((struct str){rest.p, n}, fallback_port ? fallback_port : 80, &h->host, &h->port);
}

static int content_length(struct str value, struct http_head *h)
{
    uint64_t v = 0;
    if (h->has_length || value.n == 0 || value.n > 18)
        return -EBADMSG;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return -EBADMSG;
        v = v * 10 + (uint64_t)(value.p[i] - '0');
    }
    h->has_length = true;
    h->length = v;
    return 0;
}

static int host_field(struct str value, uint16_t fallback_port, struct http_head *h)
{
    struct host host;
    uint16_t port;
    if (h->has_host || http_authority(value, fallback_port ? fallback_port : 80, &host, &port) < 0)
        return -EBADMSG;
    h->has_host = true;
    if (h->form == HTTP_AUTHORITY) /* with CONNECT, Host may omit the port */
        return host_same(&host, &h->host) ? 0 : -EBADMSG;
    if (h->form == HTTP_ABSOLUTE)
        return host_same(&host, &h->host) && port == h->port ? 0 : -EBADMSG;
    h->host = host;
    h->port = port;
    return 0;
}

/* `upgrade`: Connection says that the field is meant for us. */
static void connection_field(struct str value, struct http_head *h, bool *upgrade)
{
    while (value.n) {
        struct str one = str_trim(str_until(&value, ','));
        h->close = h->close || str_is_nocase(one, "close");
        *upgrade = *upgrade || str_is_nocase(one, "upgrade");
    }
}

static int field_line(struct str line, uint16_t fallback_port, struct http_head *h, bool *upgrade)
{
    if (line.p[0] == ' ' || line.p[0] == '\t' || !memchr(line.p, ':', line.n))
        return -EBADMSG;
    struct str name = str_until(&line, ':'), value = str_trim(line);
    if (!is_token(name))
        return -EBADMSG;
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return -EBADMSG;
    }
    if (str_is_nocase(name, "Host"))
        return host_field(value, fallback_port, h);
    if (str_is_nocase(name, "Content-Length"))
        return content_length(value, h);
    if (str_is_nocase(name, "Transfer-Encoding")) {
        if (h->chunked || !str_is_nocase(value, "chunked"))
            return -EBADMSG;
        h->chunked = true;
    } else if (str_is_nocase(name, "Upgrade")) {
        h->upgrade = true;
    } else if (str_is_nocase(name, "Connection") || str_is_nocase(name, "Proxy-Connection")) {
        connection_field(value, h, upgrade);
    }
    return 0;
}

ssize_t http_head_parse(struct str in, uint16_t fallback_port, struct http_head *ret)
{
    struct http_head h = {0};
    struct str rest = in;
    bool first = true, upgrade = false;
    const char *fields = NULL;

    while (true) {
        const char *lf = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
        if (!lf) {
            if (in.n >= MAX_HTTP_HEAD)
                return -EMSGSIZE;
            return 0;
        }
        struct str line = {rest.p, (size_t)(lf - rest.p)};
        if (line.n == 0 || line.p[line.n - 1] != '\r' || memchr(line.p, '\r', line.n - 1) || memchr(line.p, 0, line.n))
            return -EBADMSG;
        line.n--;
        rest = str_skip(rest, line.n + 2);
        if ((size_t)(rest.p - in.p) > MAX_HTTP_HEAD)
            return -EMSGSIZE;
        int r = 0;
        if (first) {
            r = request_line(line, fallback_port, &h);
            fields = rest.p;
            first = false;
        } else if (line.n == 0) {
            h.fields = (struct str){fields, (size_t)(line.p - fields)};
            break;
        } else {
            r = field_line(line, fallback_port, &h, &upgrade);
        }
        if (r < 0)
            return r;
    }
    bool old = str_is(h.version, "HTTP/1.0");
    bool named = h.form == HTTP_ABSOLUTE || h.form == HTTP_AUTHORITY; /* HTTP/1.0 needs no Host field then */
    if ((h.chunked && (h.has_length || old)) || (!h.has_host && (!old || !named)))
        return -EBADMSG;
    h.upgrade = h.upgrade && upgrade;
    h.close = h.close || old;
    *ret = h;
    return rest.p - in.p;
}

void http_body_begin(struct http_body *b, const struct http_head *h)
{
    *b = (struct http_body){.state = BODY_NONE};
    if (h->chunked)
        b->state = BODY_CHUNK_SIZE;
    else if (h->has_length && h->length) {
        b->state = BODY_LENGTH;
        b->left = h->length;
    }
}

/* One byte of chunk-size lines, chunk ends and trailers: refuses bare LF, extensions and over-long lines. */
static int chunk_byte(struct http_body *b, char c)
{
    if (b->cr) {
        if (c != '\n')
            return -EBADMSG;
        b->cr = b->extension = false;
        if (b->state == BODY_CHUNK_SIZE) {
            if (b->line == 0)
                return -EBADMSG;
            b->state = b->left ? BODY_CHUNK_DATA : BODY_TRAILER;
        } else if (b->state == BODY_CHUNK_END) {
            b->state = BODY_CHUNK_SIZE;
        } else if (b->line == 0) {
            b->state = BODY_NONE;
        }
        b->line = 0;
        return 0;
    }
    if (c == '\r') {
        b->cr = true;
        return 0;
    }
    if (c == '\n' || ++b->line > 1024)
        return -EBADMSG;
    if (b->extension || (b->extensions && b->state == BODY_CHUNK_SIZE && b->line > 1 && (c == ';' || c == ' '))) {
        b->extension = true;
        return 0;
    }
    if (b->state == BODY_CHUNK_END)
        return -EBADMSG;
    if (b->state == BODY_CHUNK_SIZE) {
        int d = hex_digit(c);
        if (d < 0 || b->line > 15)
            return -EBADMSG;
        b->left = b->left << 4 | (uint64_t)d;
    }
    return 0;
}

ssize_t http_body_eat(struct http_body *b, struct str in)
{
    size_t at = 0;
    while (at < in.n && b->state != BODY_NONE) {
        if (b->state == BODY_LENGTH || b->state == BODY_CHUNK_DATA) {
            size_t n = in.n - at < b->left ? in.n - at : (size_t)b->left;
            at += n;
            b->left -= n;
            if (b->left == 0)
                b->state = b->state == BODY_LENGTH ? BODY_NONE : BODY_CHUNK_END;
            continue;
        }
        int r = chunk_byte(b, in.p[at]);
        if (r < 0)
            return r;
        at++;
    }
    return (ssize_t)at;
}
