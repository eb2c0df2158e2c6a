/*
 * Follows client data of an unknown protocol while it is passed on: could a server read an HTTP request in it? Some
 * accept any bytes as a method (Python's wsgiref), any third word as a version (Java's HttpServer), or RTSP and ICE as
 * HTTP (node). All need a line with a version, or a Host field, and none acts before the end of the line; so only the
 * value of such a field has to be kept.
 */
#include <string.h>
#include "egress/protocols/proto.h"

static bool gap(char byte)
{
    return byte == '\r' || http_is_gap(byte);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* How many bytes of `word` have matched in a row, including this one. */
static uint8_t further(uint8_t at, char c, const char *word)
{
    if (lower(c) == word[at])
        return (uint8_t)(at + 1);
    return 0;
}

enum { NO_FIELD = 0xff, FIELD_NAME = 4, PROXY_NAME = 5 };

/* A line of two words is an HTTP/0.9 request to the host in it. */
static bool whole_request(const struct http_text *t)
{
    return t->first && t->words == 2 && t->absolute == 3;
}

/* Processes one byte of a line: -EBADMSG if it completes a request line; true: it is the colon of a Host field. */
static int line_byte(struct http_text *t, char c)
{
    static const char version[] = "http/", field[] = "host", proxy[] = "PROXY", absolute[] = "://";
    if (t->version || t->gap)
        t->version = further(t->version, c, version);
    if (t->version == sizeof version - 1)
        return -EBADMSG;
    if (t->absolute < sizeof absolute - 1)
        t->absolute = further(t->absolute, c, absolute);
    t->gap = gap(c);
    t->words = t->words < 3 && !t->gap && !t->in_word ? (uint8_t)(t->words + 1) : t->words;
    t->in_word = !t->gap;
    if (c == '\r') { /* the end of the line, to some servers */
        t->field = 0;
        return whole_request(t) ? -EBADMSG : 0;
    }
    if (t->first && t->proxy < PROXY_NAME)
        t->proxy = t->proxy != NO_FIELD && c == proxy[t->proxy] ? (uint8_t)(t->proxy + 1) : (uint8_t)NO_FIELD;
    else if (t->first && t->proxy == PROXY_NAME && t->gap)
        return -EBADMSG; /* the PROXY protocol: what follows is read like the beginning */
    if (t->field == FIELD_NAME && c == ':')
        return 1;
    if (t->gap && (t->field == 0 || t->field == FIELD_NAME)) /* before a field's name, and after it */
        return 0;
    t->field = t->field < FIELD_NAME && lower(c) == field[t->field] ? (uint8_t)(t->field + 1) : (uint8_t)NO_FIELD;
    return 0;
}

static int line_ends(struct http_text *t)
{
    bool empty = t->words == 0;
    if (whole_request(t))
        return -EBADMSG;
    t->over = t->first && !empty && t->words < 2; /* a single word is no request to any server */
    t->first = t->first && empty;
    t->words = t->field = t->version = t->proxy = t->absolute = 0;
    t->gap = t->in_word = false;
    return 0;
}

/* The value of the field, after its colon: its bytes with the end of the line, 0 for more. */
static ssize_t field_value(struct str in, struct host *ret)
{
    uint16_t port;
    const char *lf = memchr(in.p, '\n', in.n);
    if (!lf)
        return in.n > TEXT_FIELD ? -EBADMSG : 0;
    struct str value = {in.p, (size_t)(lf - in.p)};
    if (value.n && value.p[value.n - 1] == '\r')
        value.n--;
    if (http_authority(str_trim(value), 80, ret, &port) < 0)
        return -EBADMSG;
    return lf + 1 - in.p;
}

void http_text_begin(struct http_text *t)
{
    *t = (struct http_text){.first = true};
}

ssize_t http_text_eat(struct http_text *t, struct str in, http_judge *may, void *context)
{
    size_t at = 0;
    while (at < in.n && !t->over) {
        char c = in.p[at];
        if (t->value) {
            ssize_t n = field_value(str_skip(in, at), &t->said);
            if (n < 0)
                return n;
            if (n == 0)
                break;
            if (!may(context, &t->said))
                return -EACCES;
            at += (size_t)n;
            t->value = false;
            t->folds = true;
            (void)line_ends(t);
            continue;
        }
        if (t->folds && gap(c) && c != '\r')
            return -EBADMSG; /* the rest of the value, to some servers */
        t->folds = false;
        at++;
        int r = c == '\n' ? line_ends(t) : line_byte(t, c);
        if (r < 0)
            return r;
        t->value = r > 0; /* the colon of a Host field */
    }
    return (ssize_t)(t->over ? in.n : at);
}
