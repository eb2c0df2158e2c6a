/*
 * Parses a Seatbelt profile like the macOS compiler, as far as its structure goes: an s-expression per rule. Our own
 * profiles may only use what this table knows, so that a misspelt operation is found on any system.
 */
#include "backends/seatbelt/seatbelt.h"

#include <stdio.h>

enum { MAX_DEPTH = 64 };

static const char *const operations[] = {"default",
                                         "appleevent-send",
                                         "distributed-notification-post",
                                         "dynamic-code-generation",
                                         "file*",
                                         "file-ioctl",
                                         "file-link",
                                         "file-map-executable",
                                         "file-read*",
                                         "file-read-data",
                                         "file-read-metadata",
                                         "file-read-xattr",
                                         "file-write*",
                                         "file-write-create",
                                         "file-write-data",
                                         "file-write-flags",
                                         "file-write-mode",
                                         "file-write-owner",
                                         "file-write-setugid",
                                         "file-write-times",
                                         "file-write-unlink",
                                         "file-write-xattr",
                                         "iokit-open",
                                         "ipc-posix-sem",
                                         "ipc-posix-shm",
                                         "job-creation",
                                         "lsopen",
                                         "mach-lookup",
                                         "mach-priv-task-port",
                                         "mach-register",
                                         "network*",
                                         "network-bind",
                                         "network-inbound",
                                         "network-outbound",
                                         "process-exec*",
                                         "process-fork",
                                         "process-info*",
                                         "pseudo-tty",
                                         "signal",
                                         "sysctl-read",
                                         "sysctl-write",
                                         "system-socket",
                                         "user-preference-read",
                                         NULL};

/* What a rule or filter may contain. */
enum takes { TAKES_STRINGS, TAKES_PATH, TAKES_FILTERS, TAKES_ONE_FILTER, TAKES_END, TAKES_TARGET, TAKES_DOMAIN };
static const struct known_filter {
    const char *name;
    enum takes takes;
} filters[] = {{"literal", TAKES_PATH},
               {"subpath", TAKES_PATH},
               {"prefix", TAKES_PATH},
               {"regex", TAKES_STRINGS},
               {"global-name", TAKES_STRINGS},
               {"local-name", TAKES_STRINGS},
               {"sysctl-name", TAKES_STRINGS},
               {"sysctl-name-prefix", TAKES_STRINGS},
               {"iokit-registry-entry-class", TAKES_STRINGS},
               {"require-all", TAKES_FILTERS},
               {"require-any", TAKES_FILTERS},
               {"require-not", TAKES_ONE_FILTER},
               {"local", TAKES_END},
               {"remote", TAKES_END},
               {"target", TAKES_TARGET},
               {"socket-domain", TAKES_DOMAIN}};

struct profile_reader {
    struct str s;
    size_t at;
    unsigned line, depth;
    bool ours;
    struct err *e;
};

enum token { END, OPEN, CLOSE, STRING, WORD };
struct read {
    enum token kind;
    struct str text;
};

static int wrong(struct profile_reader *r, const char *what)
{
    return err_say(r->e, ERR_POLICY, "line %u: %s", r->line, what);
}

static void skip_blank(struct profile_reader *r)
{
    for (; r->at < r->s.n; r->at++) {
        char c = r->s.p[r->at];
        if (c == ';') {
            while (r->at + 1 < r->s.n && r->s.p[r->at + 1] != '\n')
                r->at++;
            continue;
        }
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
        r->line += c == '\n';
    }
}

static int read_string(struct profile_reader *r, bool raw, struct read *ret)
{
    size_t from = ++r->at;
    for (; r->at < r->s.n && r->s.p[r->at] != '"'; r->at++) {
        r->line += r->s.p[r->at] == '\n';
        if (r->s.p[r->at] == '\\' && r->at + 1 < r->s.n)
            r->at++;
        else if (r->ours && ((unsigned char)r->s.p[r->at] < 32 || (unsigned char)r->s.p[r->at] > 126))
            return wrong(r, "a generated string contains a special byte");
    }
    if (r->at >= r->s.n)
        return wrong(r, "an unterminated string");
    *ret = (struct read){STRING, {r->s.p + from, r->at - from}};
    r->at++;
    return raw && r->ours ? wrong(r, "a raw string, which ours do not need") : 0;
}

static bool ends_word(char c)
{
    return c == '(' || c == ')' || c == '"' || c == ';' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int next(struct profile_reader *r, struct read *ret)
{
    skip_blank(r);
    if (r->at >= r->s.n) {
        *ret = (struct read){END, {NULL, 0}};
        return 0;
    }
    char c = r->s.p[r->at];
    if (c == '(' || c == ')') {
        *ret = (struct read){c == '(' ? OPEN : CLOSE, {r->s.p + r->at, 1}};
        r->at++;
        return 0;
    }
    if (c == 0)
        return wrong(r, "a NUL byte");
    if (c == '"')
        return read_string(r, false, ret);
    if (c == '#' && r->at + 1 < r->s.n && r->s.p[r->at + 1] == '"') {
        r->at++;
        return read_string(r, true, ret);
    }
    size_t from = r->at;
    while (r->at < r->s.n && !ends_word(r->s.p[r->at]) && r->s.p[r->at])
        r->at++;
    *ret = (struct read){WORD, {r->s.p + from, r->at - from}};
    return 0;
}

/* Skips the rest of an open list. */
static int skip_list(struct profile_reader *r)
{
    unsigned open = 1;
    struct read t;
    while (open) {
        int e = next(r, &t);
        if (e < 0)
            return e;
        if (t.kind == END)
            return wrong(r, "a parenthesis is not closed");
        open += t.kind == OPEN;
        open -= t.kind == CLOSE;
        if (open > MAX_DEPTH)
            return wrong(r, "parentheses nested too deeply");
    }
    return 0;
}

static int need(struct profile_reader *r, enum token kind, struct read *ret, const char *what)
{
    int e = next(r, ret);
    return e < 0 ? e : ret->kind == kind ? 0 : wrong(r, what);
}

static int filter(struct profile_reader *r);

/* "..." or (param "..."), then the end of the filter. */
static int read_path_rest(struct profile_reader *r)
{
    struct read t;
    int e = next(r, &t);
    if (e < 0)
        return e;
    if (t.kind == OPEN) {
        e = need(r, WORD, &t, "a path is a string or (param \"NAME\")");
        if (e == 0 && !str_is(t.text, "param"))
            e = wrong(r, "a path is a string or (param \"NAME\")");
        if (e == 0)
            e = need(r, STRING, &t, "param takes a string");
        if (e == 0)
            e = need(r, CLOSE, &t, "param takes one string");
    } else if (t.kind != STRING || t.text.n == 0 || t.text.p[0] != '/') {
        e = wrong(r, "a path is absolute");
    }
    return e < 0 ? e : need(r, CLOSE, &t, "a path filter takes one path");
}

static int strings_rest(struct profile_reader *r)
{
    struct read t;
    int e = need(r, STRING, &t, "the filter takes strings");
    while (e == 0 && t.kind == STRING)
        e = t.text.n ? next(r, &t) : wrong(r, "an empty string matches nothing");
    return e < 0 ? e : t.kind == CLOSE ? 0 : wrong(r, "the filter takes strings only");
}

/* (remote ip "localhost:80"), (local unix-socket FILTER): the host is * or localhost. */
static int end_rest(struct profile_reader *r)
{
    struct read t;
    int e = need(r, WORD, &t, "local and remote take ip, tcp, udp or unix-socket");
    if (e < 0)
        return e;
    if (str_is(t.text, "unix-socket")) {
        e = need(r, OPEN, &t, "unix-socket takes a path filter");
        if (e == 0)
            e = filter(r);
        return e < 0 ? e : need(r, CLOSE, &t, "unix-socket takes one path filter");
    }
    if (!str_is(t.text, "ip") && !str_is(t.text, "tcp") && !str_is(t.text, "udp"))
        return wrong(r, "local and remote take ip, tcp, udp or unix-socket");
    e = need(r, STRING, &t, "an address is a string");
    if (e < 0)
        return e;
    struct str host = str_until(&t.text, ':');
    bool port = t.text.n > 0 && t.text.n <= 5;
    unsigned number = 0;
    for (size_t i = 0; i < t.text.n && port && !str_is(t.text, "*"); i++) {
        port = t.text.p[i] >= '0' && t.text.p[i] <= '9';
        number = number * 10 + (unsigned)(t.text.p[i] - '0');
    }
    if (!port || (!str_is(t.text, "*") && (number == 0 || number > 65535)) ||
        (!str_is(host, "*") && !str_is(host, "localhost")))
        return wrong(r, "an address is localhost:PORT or *:PORT");
    return need(r, CLOSE, &t, "local and remote take one address");
}

static int word_rest(struct profile_reader *r, const char *const *words)
{
    struct read t;
    int e = need(r, WORD, &t, "the filter takes a word");
    bool known = false;
    for (; e == 0 && *words; words++)
        known |= str_is(t.text, *words);
    if (e == 0 && !known)
        return wrong(r, "the filter does not know this word");
    return e < 0 ? e : need(r, CLOSE, &t, "the filter takes one word");
}

/* A filter after its opening parenthesis. */
static int filter(struct profile_reader *r)
{
    static const char *const targets[] = {"self", "same-sandbox", "others", "children", NULL};
    static const char *const domains[] = {"AF_UNIX", "AF_SYSTEM", "AF_INET", "AF_INET6", NULL};
    const struct known_filter *f = NULL;
    struct read t;
    size_t n = 0;
    int e = need(r, WORD, &t, "a filter begins with its name");
    if (e == 0 && ++r->depth > MAX_DEPTH)
        e = wrong(r, "filters nested too deeply");
    if (e < 0)
        return e;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        f = str_is(t.text, filters[i].name) ? &filters[i] : f;
    if (!f)
        return wrong(r, "unknown filter");
    switch (f->takes) {
    case TAKES_PATH:
        e = read_path_rest(r);
        break;
    case TAKES_STRINGS:
        e = strings_rest(r);
        break;
    case TAKES_END:
        e = end_rest(r);
        break;
    case TAKES_TARGET:
        e = word_rest(r, targets);
        break;
    case TAKES_DOMAIN:
        e = word_rest(r, domains);
        break;
    case TAKES_FILTERS:
    case TAKES_ONE_FILTER:
        do {
            e = next(r, &t);
            if (e == 0 && t.kind == OPEN)
                e = filter(r);
            else if (e == 0 && t.kind != CLOSE)
                e = wrong(r, "only filters are allowed here");
        } while (e == 0 && t.kind == OPEN && ++n);
        if (e == 0 && (n == 0 || (f->takes == TAKES_ONE_FILTER && n != 1)))
            e = wrong(r, "a filter of filters with the wrong number of them");
        break;
    }
    r->depth--;
    return e;
}

/* The rest of (allow OPERATION... FILTER...). */
static int rule_rest(struct profile_reader *r)
{
    size_t n = 0;
    struct read t;
    for (;;) {
        bool known = false;
        int e = next(r, &t);
        if (e < 0)
            return e;
        if (t.kind != WORD)
            break;
        for (const char *const *o = operations; *o && !known; o++)
            known = str_is(t.text, *o);
        if (!known)
            return wrong(r, "unknown operation");
        n++;
    }
    if (n == 0)
        return wrong(r, "a rule without an operation");
    while (t.kind == OPEN) {
        int e = filter(r);
        if (e == 0)
            e = next(r, &t);
        if (e < 0)
            return e;
    }
    return t.kind == CLOSE ? 0 : wrong(r, "only filters may follow the operations");
}

static int expression(struct profile_reader *r, size_t number)
{
    struct read t;
    int e = need(r, WORD, &t, "an expression begins with a word");
    if (e < 0)
        return e;
    if (number == 0) {
        if (!str_is(t.text, "version"))
            return wrong(r, "a profile begins with (version 1)");
        e = need(r, WORD, &t, "a profile begins with (version 1)");
        if (e == 0 && !str_is(t.text, "1"))
            return wrong(r, "only version 1 of the language is known");
        return e < 0 ? e : need(r, CLOSE, &t, "a profile begins with (version 1)");
    }
    if (!r->ours)
        return skip_list(r);
    if (!str_is(t.text, "allow") && !str_is(t.text, "deny"))
        return wrong(r, "neither allow nor deny");
    return rule_rest(r);
}

int seatbelt_check(struct str text, bool ours, struct err *e)
{
    struct profile_reader r = {.s = text, .line = 1, .ours = ours, .e = e};
    for (size_t n = 0;; n++) {
        struct read t;
        int k = next(&r, &t);
        if (k < 0)
            return k;
        if (t.kind == END)
            return n ? 0 : wrong(&r, "an empty profile");
        if (t.kind != OPEN)
            return wrong(&r, "something is outside all parentheses");
        k = expression(&r, n);
        if (k < 0)
            return k;
    }
}
