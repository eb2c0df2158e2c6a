/*
 * Units, addresses, domains, patterns. Against the C library where it knows the same, and against themselves.
 */
#include <arpa/inet.h>
#include <fnmatch.h>

#include "fuzz.h"
#include "match/addr.h"
#include "match/glob.h"
#include "policy/build.h"
#include "policy/domain.h"
#include "policy/path.h"

static void check_number(struct str s, int (*parse)(struct str, uint64_t *), bool percent)
{
    uint64_t v = 4711, again = 0;
    char text[32];
    int r = parse(s, &v);
    MUST(r == 0 || (v == 4711 && (r == -EINVAL || r == -ERANGE)));
    if (r == 0 && !percent && v <= UINT64_MAX / 1000) {
        snprintf(text, sizeof text, "%llu%s", (unsigned long long)v, parse == parse_duration ? "ms" : "");
        MUST(parse(str_of(text), &again) == 0 && again == v);
    }
}

static void check_addresses(const char *text)
{
    struct host_addr ours;
    uint8_t theirs[16];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    int r6 = inet_pton(AF_INET6, text, theirs), r = addr_parse(str_of(text), &ours);
    if (r6 == 1 && memcmp(theirs, mapped, 12) == 0)
        MUST(r == 0 && !ours.v6 && memcmp(ours.b, theirs + 12, 4) == 0);
    else if (r6 == 1)
        MUST(r == 0 && ours.v6 && memcmp(ours.b, theirs, 16) == 0);
    else
        MUST((r == 0) == (inet_pton(AF_INET, text, theirs) == 1) && (r < 0 || memcmp(ours.b, theirs, 4) == 0));
}

static void check_form(struct str s, int (*form)(struct str, struct arena *, const char **, struct err *))
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    const char *once = NULL, *twice = NULL;
    struct err e;
    if (form(s, mem, &once, &e) < 0) {
        MUST(!once && e.text[0]);
        return;
    }
    MUST(form(str_of(once), mem, &twice, &e) == 0 && same(once, twice));
    for (const char *c = once; *c; c++)
        MUST(*c > ' ' && *c < 0x7F);
}

/* "pattern\nname": where fnmatch() has no classes and no slashes to differ about. */
static void check_pattern(const char *text)
{
    const char *end = strchr(text, '\n');
    if (!end || strpbrk(text, "[]/\\"))
        return;
    char *pattern = strndup(text, (size_t)(end - text));
    bool ascii = true; /* fnmatch() counts characters of the locale, file names are bytes */
    for (const char *c = text; *c; c++)
        ascii = ascii && (unsigned char)*c < 0x80;
    if (ascii)
        MUST(glob_match(str_of(pattern), str_of(end + 1), GLOB_EXACT) == (fnmatch(pattern, end + 1, 0) == 0));
    free(pattern);
}

static void check_path(struct str s)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    static const struct policy_world world = {.home = "/home/u", .cwd = "/home/u/p"};
    struct path_context c = {.world = &world, .base = "/home/u/p", .workspace = "/w"};
    struct path_text t, again;
    struct err e;
    if (path_expand(&c, s, PATH_PATTERNS, mem, &t, &e) < 0)
        return;
    struct buf text = BUF(1 << 20);
    MUST(t.any_depth ? t.below[0] == '/' && t.path[0] != '/' : t.path[0] == '/');
    path_write(t.path, t.below, t.any_depth, t.pattern, &text);
    MUST(path_expand(&c, buf_view(&text), PATH_PATTERNS, mem, &again, &e) == 0);
    MUST(same(t.path, again.path) && same(t.below, again.below) && t.any_depth == again.any_depth &&
         t.pattern == again.pattern);
    MUST(path_expand(NULL, s, PATH_PATTERNS, mem, NULL, &e) == 0);
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s = {(const char *)data, size};
    char *text = strndup(s.p ? s.p : "", size);

    check_number(s, parse_size, false);
    check_number(s, parse_duration, false);
    check_number(s, parse_count, false);
    check_number(s, parse_cpus, true);
    check_addresses(text);
    check_form(s, domain_rule_form);
    check_form(s, port_rule_form);
    check_form(s, publish_form);
    check_form(s, reach_form);
    check_form(s, hostname_form);
    check_pattern(text);
    check_path(s);
    free(text);
    return 0;
}
