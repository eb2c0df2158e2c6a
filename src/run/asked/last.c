/*
 * The audit log for people: selected, checked, and the last refusal in it. Lines are read as text and not as JSON: a
 * damaged one is passed over, and says so under --verify.
 */
#include "run/asked/last.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "run/options.h"
#include "supervisor/audit.h"

#define MAX_LOGGED_ARENA (1u << 20)

/* ---- lines ---- */

/* The character of "uXXXX" at `at`, which is moved to its last byte; two of them are one where JSON has it so. */
static uint32_t take_code(struct str text, size_t *at)
{
    uint32_t code = 0, low = 0;
    char digits[5] = {0};
    memcpy(digits, text.p + *at + 1, 4);
    code = (uint32_t)strtoul(digits, NULL, 16);
    *at += 4;
    if (code >> 10 != 0x36 || *at + 6 >= text.n || text.p[*at + 1] != '\\' || text.p[*at + 2] != 'u')
        return code;
    memcpy(digits, text.p + *at + 3, 4);
    low = (uint32_t)strtoul(digits, NULL, 16);
    if (low >> 10 != 0x37)
        return code;
    *at += 6;
    return 0x10000 + ((code & 0x3FF) << 10 | (low & 0x3FF));
}

/* As UTF-8, which is never longer than its escape; the number of bytes. */
static size_t put_code(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((0xF00u >> n & 0xF0) | code);
    return n;
}

/* The text behind the quote at the start of *rest, unescaped; *rest is moved behind it. NULL: it is none. */
static const char *take_string(struct str *rest, struct arena *mem)
{
    char *text = rest->n && rest->p[0] == '"' ? arena_zero(mem, rest->n) : NULL;
    size_t n = 0, at = 1;
    if (!text)
        return NULL;
    for (; at < rest->n && rest->p[at] != '"'; at++) {
        char c = rest->p[at];
        if (c != '\\') {
            text[n++] = c;
            continue;
        }
        if (++at >= rest->n)
            return NULL;
        static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
        const char *known = memchr(from, rest->p[at], 5);
        if (rest->p[at] == 'u' && at + 4 < rest->n) {
            n += put_code(text + n, take_code(*rest, &at));
        } else {
            text[n++] = known ? to[known - from] : rest->p[at];
        }
    }
    if (at >= rest->n)
        return NULL;
    *rest = str_skip(*rest, at + 1);
    return text;
}

bool logged_read(struct str line, struct arena *mem, struct logged *ret)
{
    struct logged found = {0};
    const struct {
        const char *name;
        const char **to;
    } texts[] = {
        {"t", &found.t},           {"id", &found.id},         {"session", &found.session},    {"kind", &found.kind},
        {"action", &found.action}, {"target", &found.target}, {"workspace", &found.workspace}};
    struct str rest = str_skip(line, 1);
    if (line.n < 2 || line.p[0] != '{')
        return false;
    for (;;) {
        const char *name = take_string(&rest, mem), *value = NULL;
        if (!name || !rest.n || rest.p[0] != ':')
            return false;
        rest = str_skip(rest, 1);
        if (rest.n && rest.p[0] == '"') {
            value = take_string(&rest, mem);
            if (!value)
                return false;
        } else {
            while (rest.n && rest.p[0] != ',' && rest.p[0] != '}')
                rest = str_skip(rest, 1);
        }
        for (size_t i = 0; value && i < sizeof texts / sizeof *texts; i++) {
            if (same(texts[i].name, name))
                *texts[i].to = value;
        }
        if (!rest.n || rest.p[0] != ',')
            break;
        rest = str_skip(rest, 1);
    }
    *ret = found;
    return found.t && found.kind && found.action && found.target;
}

/* ---- the last one ---- */

struct last_search {
    const char *workspace;
    struct buf line;
};

static bool is_refusal(const struct logged *v)
{
    return !same(v->kind, "network-allowed") && !same(v->kind, "left") && !same(v->kind, "log");
}

static bool remember_line(void *ctx, struct str line)
{
    struct last_search *s = ctx;
    struct arena *mem = arena_new(MAX_LOGGED_ARENA);
    struct logged v;
    if (mem && logged_read(line, mem, &v) && same(v.workspace, s->workspace) && is_refusal(&v)) {
        buf_free(&s->line);
        s->line = BUF(2 * AUDIT_LINE_MAX);
        buf_str(&s->line, line);
    }
    (void)arena_free(mem);
    return true;
}

int logged_last(const char *workspace, struct arena *mem, struct logged *ret, struct err *e)
{
    struct last_search s = {.workspace = workspace, .line = BUF(2 * AUDIT_LINE_MAX)};
    *ret = (struct logged){0};
    int r = audit_read(false, remember_line, &s, e);
    if (r == 0 && s.line.n)
        (void)logged_read(buf_view(&s.line), mem, ret);
    buf_free(&s.line);
    return r;
}

/* ---- printing ---- */

struct log_copy {
    const char *session, *since;
    int fd, no;
    bool named; /* the log has an event of that session, at any time */
};

/* Our own lines begin with the version and the time, then the run and its session. */
static bool is_selected(struct log_copy *c, struct str line)
{
    static const char head[] = "{\"v\":1,\"t\":\"";
    if (!c->session && !c->since)
        return true;
    if (!str_starts(line, str_of(head)))
        return false;
    struct str t = str_skip(line, sizeof head - 1);
    size_t n = c->since ? strlen(c->since) : 0;
    const bool old = n && (t.n < n || memcmp(t.p, c->since, n) < 0);
    if (!c->session || (old && c->named))
        return !old;
    struct arena *mem = arena_new(MAX_LOGGED_ARENA);
    struct logged v;
    bool is = mem && logged_read(line, mem, &v) && same(v.session, c->session);
    (void)arena_free(mem);
    c->named |= is;
    return is && !old;
}

static bool put_log(struct log_copy *c, struct str text)
{
    auto_buf struct buf line = BUF(4 * AUDIT_LINE_MAX);
    buf_str(&line, text);
    buf_char(&line, '\n');
    errno = 0;
    if (buf_ok(&line) && write(c->fd, line.p, line.n) != (ssize_t)line.n)
        c->no = errno ? errno : ENOSPC;
    return c->no == 0;
}

static bool copy_logged(void *ctx, struct str line)
{
    struct log_copy *c = ctx;
    return !is_selected(c, line) || put_log(c, line);
}

/* "90s", "10m", "2h", "3d": so long ago, as the log writes times; otherwise a date or time as written there. */
static int since_text(const char *said, char ret[40], struct err *e)
{
    static const char units[] = "smhd";
    static const time_t seconds[] = {1, 60, 3600, 86400};
    char *end;
    unsigned long n = strtoul(said, &end, 10);
    const char *unit = *end && end > said && !end[1] ? strchr(units, *end) : NULL;
    size_t k = strlen(said);
    if (unit && n <= 1000000) {
        struct timespec now;
        struct tm tm;
        clock_gettime(CLOCK_REALTIME, &now);
        time_t then = now.tv_sec - (time_t)n * seconds[unit - units];
        gmtime_r(&then, &tm);
        strftime(ret, 40, "%Y-%m-%dT%H:%M:%S", &tm);
        return 0;
    }
    static const char shape[] = "0000-00-00T00:00:00.000";
    static const struct {
        size_t at; /* month, day, hour, minute, second */
        int low, high;
    } parts[] = {{5, 1, 12}, {8, 1, 31}, {11, 0, 23}, {14, 0, 59}, {17, 0, 60}};
    bool good = k >= 4 && k < sizeof shape + 1;
    if (good && said[k - 1] == 'Z')
        k--;
    good = good && k < sizeof shape;
    for (size_t i = 0; good && i < k; i++)
        good = shape[i] == '0' ? said[i] >= '0' && said[i] <= '9' : said[i] == shape[i];
    for (size_t i = 0; good && i < sizeof parts / sizeof *parts && parts[i].at + 2 <= k; i++) {
        const int v = (said[parts[i].at] - '0') * 10 + said[parts[i].at + 1] - '0';
        good = v >= parts[i].low && v <= parts[i].high;
    }
    if (!good) {
        int r = err_say(e, ERR_POLICY, "--since: '%s' is not a time", said);
        return err_hint(e, r, "write 90s, 10m, 2h, 3d, or a time in UTC: 2026-01-31, 2026-01-31T12:00:00Z");
    }
    memcpy(ret, said, k);
    ret[k] = 0;
    return 0;
}

static int head_of_log(struct log_copy *c, struct err *e)
{
    auto_buf struct buf word = BUF(4096);
    int r = audit_head(&word, e);
    if (r == 0)
        (void)put_log(c, buf_view(&word));
    return r;
}

static int verify_log(struct log_copy *c, const char *head_was, struct err *e)
{
    struct audit_check found;
    auto_buf struct buf words = BUF(4096);
    int r = audit_verify(&found, e);
    if (r < 0)
        return r;
    struct audit_since since = {0};
    r = head_was ? audit_since_head(head_was, &since, e) : 0;
    if (r < 0)
        return r;
    bool bad = found.damaged || found.missing || since.changed;
    buf_printf(&words, "%llu event%s of %llu run%s: %s", (unsigned long long)found.events, found.events == 1 ? "" : "s",
               (unsigned long long)found.runs, found.runs == 1 ? "" : "s",
               bad ? "" : "none is damaged or missing between others");
    if (bad)
        buf_printf(&words, "%llu damaged line%s, %llu missing event%s", (unsigned long long)found.damaged,
                   found.damaged == 1 ? "" : "s", (unsigned long long)found.missing, found.missing == 1 ? "" : "s");
    if (found.begun)
        buf_printf(&words, "; the first events of %llu run%s are gone (rotated away, or removed)",
                   (unsigned long long)found.begun, found.begun == 1 ? "" : "s");
    if (found.unchained)
        buf_printf(&words, "; %llu event%s not in a chain, so changes to them cannot be seen",
                   (unsigned long long)found.unchained, found.unchained == 1 ? " is" : "s are");
    if (since.changed)
        buf_printf(&words, "; since that head the log was cut off, changed or removed");
    else if (head_was)
        buf_printf(&words, "; all that it had at that head is there%s",
                   since.rotated ? ", but for what was rotated away" : "");
    (void)put_log(c, buf_view(&words));
    return bad;
}

/* What the options select, or ask of the log; 1: --verify has found something. */
static int select_logged(const struct pinfold_log_options *o, struct log_copy *c, struct err *e)
{
    char since[40];
    int r = o->since ? since_text(o->since, since, e) : 0;
    c->since = o->since ? since : NULL;
    if (r == 0 && o->verify && (o->session || o->since || o->follow))
        r = err_say(e, ERR_POLICY, "--verify reads the whole log: leave out --session, --since and --follow");
    if (r == 0 && o->head && (o->verify || o->session || o->since || o->follow || o->head_was))
        r = err_say(e, ERR_POLICY, "--head takes no other option of log");
    if (r == 0 && o->head_was && !o->verify)
        r = err_say(e, ERR_POLICY, "--head-was is for --verify");
    if (r == 0)
        r = o->head     ? head_of_log(c, e)
            : o->verify ? verify_log(c, o->head_was, e)
                        : audit_read(o->follow != 0, copy_logged, c, e);
    if (r >= 0 && c->no)
        r = err_sys(e, ERR_SYSTEM, c->no, "cannot write the audit");
    c->since = NULL;
    return r;
}

int logged_print(const struct pinfold_log_options *o, bool *ret_named, struct err *e)
{
    struct log_copy c = {.fd = o->fd, .session = o->session};
    const int r = select_logged(o, &c, e);
    *ret_named = c.named;
    return r;
}
