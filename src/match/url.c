/* Judges an address that a box wants opened in a browser outside. What is not known to be harmless is refused; nothing is repaired. */
#include "match/url.h"

#include <errno.h>
#include <string.h>
#include "match/host.h"

#define CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#&=%+,"
#define HTTPS      STR("https://")
#define LOWEST     1024 /* a port that needs no privilege */

static bool all_plain(struct str url)
{
    for (size_t i = 0; i < url.n; i++) {
        if (!url.p[i] || !strchr(CHARACTERS, url.p[i]))
            return false;
        if (url.p[i] == '%' && (i + 2 >= url.n || hex_digit(url.p[i + 1]) < 0 || hex_digit(url.p[i + 2]) < 0))
            return false;
    }
    return true;
}

/* The part before the first of `ends`; what is from there on in `ret_rest`. */
static struct str part(struct str s, const char *ends, struct str *ret_rest)
{
    size_t n = 0;
    while (n < s.n && !strchr(ends, s.p[n]))
        n++;
    *ret_rest = str_skip(s, n);
    return (struct str){s.p, n};
}

/* Behind "https://": the host in `hosts`, at its own port. */
static bool is_of(struct str rest, const char *const *hosts)
{
    struct host h;
    uint16_t port;
    const struct str authority = part(rest, "/?#", &rest);
    if (host_port_parse(authority, 443, &h, &port) < 0 || h.kind != HOST_NAME || port != 443)
        return false;
    for (; hosts && *hosts; hosts++) {
        if (str_is(str_of(h.name), *hosts))
            return true;
    }
    return false;
}

/* http://localhost:PORT/...: PORT; 0: it is none of this machine. */
static uint16_t port_here(struct str rest)
{
    static const char *const names[] = {"http://localhost:", "http://127.0.0.1:"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint16_t port;
        struct str behind;
        if (!str_starts(rest, str_of(names[i])))
            continue;
        const struct str digits = part(str_skip(rest, strlen(names[i])), "/?#", &behind);
        return port_parse(digits, &port) == 0 && port >= LOWEST ? port : 0;
    }
    return 0;
}

/* Without its escapes; false: it does not fit, or would hide something. */
static bool decoded(struct str value, char ret[URL_MAX + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < value.n; i++, n++) {
        ret[n] = value.p[i];
        if (value.p[i] == '%') {
            ret[n] = (char)(hex_digit(value.p[i + 1]) << 4 | hex_digit(value.p[i + 2]));
            i += 2;
        }
    }
    ret[n] = 0;
    return all_plain(str_of(ret)) && strlen(ret) == n;
}

/* Where the answer goes, if the address says it: at most once. */
static int judge_answer(struct str url, const char *const *hosts, struct url_asked *ret)
{
    struct str query;
    bool seen = false;
    char to[URL_MAX + 1];
    (void)part(url, "?#", &query);
    if (!query.n || query.p[0] != '?')
        return 0;
    query = str_skip(query, 1);
    query = part(query, "#", &(struct str){0});
    while (query.n) {
        struct str value, pair = str_until(&query, '&');
        const struct str key = part(pair, "=", &value);
        if (memchr(key.p, '%', key.n)) /* it might be that word */
            return -EINVAL;
        if (!str_is(key, "redirect_uri"))
            continue;
        if (seen || !value.n || !decoded(str_skip(value, 1), to))
            return -EINVAL;
        seen = true;
        ret->port = port_here(str_of(to));
        if (!ret->port && !(str_starts(str_of(to), HTTPS) && is_of(str_skip(str_of(to), HTTPS.n), hosts)))
            return -EINVAL;
    }
    return 0;
}

int url_judge(struct str url, const char *const *hosts, struct url_asked *ret, const char **ret_why)
{
    struct url_asked found = {0};
    if (url.n > URL_MAX)
        *ret_why = "it is too long";
    else if (!str_starts(url, HTTPS))
        *ret_why = "it does not begin with https://";
    else if (!all_plain(url))
        *ret_why = "it has characters that no such address needs";
    else if (!is_of(str_skip(url, HTTPS.n), hosts))
        *ret_why = "the agent does not log in at this host";
    else if (judge_answer(url, hosts, &found) < 0)
        *ret_why = "its redirect_uri leads elsewhere";
    else
        return *ret = found, 0;
    return -EINVAL;
}
