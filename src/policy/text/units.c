/*
 * Sizes, durations, processors, counts. Arithmetic is on integers with the remainder checked, so that "0.1" is exactly
 * a hundred thousandths; other values are rounded down.
 */
#include "policy/build.h"

#include <errno.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at the start of `s` and advances. -EINVAL without a digit, -ERANGE beyond 64 bits. */
static int eat_number(struct str *s, uint64_t *ret)
{
    struct str at = *s;
    uint64_t v = 0;
    bool over = false;

    while (at.n && is_digit(at.p[0])) {
        uint64_t digit = (uint64_t)(at.p[0] - '0');
        over = over || v > (UINT64_MAX - digit) / 10;
        v = v * 10 + digit;
        at = str_skip(at, 1);
    }
    if (at.n == s->n)
        return -EINVAL;
    if (over)
        return -ERANGE;
    *s = at;
    *ret = v;
    return 0;
}

/* Reads ".25" at the start of `s` as millionths, if present, and advances. Digits after the sixth are dropped. */
static int eat_fraction(struct str *s, uint64_t *ret_millionths)
{
    uint64_t v = 0, scale = 100000;
    struct str at = *s;

    if (!at.n || at.p[0] != '.') {
        *ret_millionths = 0;
        return 0;
    }
    at = str_skip(at, 1);
    if (!at.n || !is_digit(at.p[0]))
        return -EINVAL;
    for (; at.n && is_digit(at.p[0]); at = str_skip(at, 1), scale /= 10)
        v += (uint64_t)(at.p[0] - '0') * scale;
    *s = at;
    *ret_millionths = v;
    return 0;
}

/* whole.millionths * unit */
static int scaled(uint64_t whole, uint64_t millionths, uint64_t unit, uint64_t *ret)
{
    /* unit is at most 2^40, a fraction less than 10^6: their product fits into 64 bits. */
    uint64_t part = millionths * (unit / 1000000) + millionths * (unit % 1000000) / 1000000;
    if (whole > (UINT64_MAX - part) / unit)
        return -ERANGE;
    *ret = whole * unit + part;
    return 0;
}

int parse_size(struct str s, uint64_t *ret_bytes)
{
    static const char letters[] = "KMGT";
    uint64_t whole, part, unit = 1;
    int r = eat_number(&s, &whole);
    if (r == 0)
        r = eat_fraction(&s, &part);
    if (r < 0)
        return r;
    if (s.n) {
        char c = s.p[0] >= 'a' && s.p[0] <= 'z' ? (char)(s.p[0] - 'a' + 'A') : s.p[0];
        const char *at = c ? strchr(letters, c) : NULL;
        if (at) {
            unit = (uint64_t)1 << 10 * (at - letters + 1);
            s = str_skip(s, 1);
            if (s.n && s.p[0] == 'i')
                s = s.n == 1 ? s : str_skip(s, 1); /* "Mi" is only valid as "MiB" */
        }
        if (s.n == 1 && (s.p[0] == 'B' || s.p[0] == 'b'))
            s = str_skip(s, 1);
    }
    if (s.n || (unit == 1 && part))
        return -EINVAL;
    return scaled(whole, part, unit, ret_bytes);
}

int parse_duration(struct str s, uint64_t *ret_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    uint64_t total = 0;
    size_t least = 0; /* units must decrease: 1h30m, not 30m1h or 1m1m */
    bool bare = true;

    if (!s.n)
        return -EINVAL;
    while (s.n) {
        uint64_t whole, part, ms;
        size_t u;
        int r = eat_number(&s, &whole);
        if (r == 0)
            r = eat_fraction(&s, &part);
        if (r < 0)
            return r;
        if (!s.n && bare) { /* a bare number is seconds */
            r = scaled(whole, part, 1000, &ms);
            if (r == 0)
                *ret_ms = ms;
            return r;
        }
        bare = false;
        size_t n = 0;
        while (n < s.n && s.p[n] >= 'a' && s.p[n] <= 'z')
            n++;
        for (u = least; u < sizeof units / sizeof *units && !str_is((struct str){s.p, n}, units[u].name); u++)
            ;
        if (u == sizeof units / sizeof *units || (part && units[u].ms == 1))
            return -EINVAL;
        r = scaled(whole, part, units[u].ms, &ms);
        if (r < 0)
            return r;
        if (total > UINT64_MAX - ms)
            return -ERANGE;
        total += ms;
        least = u + 1;
        s = str_skip(s, n);
    }
    *ret_ms = total;
    return 0;
}

int parse_cpus(struct str s, uint64_t *ret_thousandths)
{
    uint64_t whole, part, unit = 1000;
    int r = eat_number(&s, &whole);
    if (r == 0)
        r = eat_fraction(&s, &part);
    if (r < 0)
        return r;
    if (s.n == 1 && s.p[0] == '%') {
        unit = 10;
        s = str_skip(s, 1);
    }
    if (s.n)
        return -EINVAL;
    return scaled(whole, part, unit, ret_thousandths);
}

int parse_count(struct str s, uint64_t *ret)
{
    uint64_t v;
    int r = eat_number(&s, &v);
    if (r < 0)
        return r;
    if (s.n)
        return -EINVAL;
    *ret = v;
    return 0;
}
