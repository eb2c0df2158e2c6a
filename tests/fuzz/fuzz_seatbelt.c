/*
 * Seatbelt profiles. The checker reads anything; what it lets through as ours has closed parentheses by another count, and
 * stays right with a comment put before it. With the first byte odd the rest is the paths of a policy, one a line: the
 * profile made of them is one the checker knows, whatever bytes they have, and no path of theirs stands in it unquoted.
 */
#include <string.h>

#include "backends/seatbelt/seatbelt.h"
#include "fuzz.h"

static void check_text(struct str s)
{
    struct err e = {0};
    int ours = seatbelt_check(s, true, &e);
    MUST(ours == 0 || e.text[0]);
    if (ours < 0)
        return;
    MUST(seatbelt_check(s, false, &e) == 0);
    long open = 0;
    bool text = false, comment = false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (comment) {
            comment = c != '\n';
        } else if (text) {
            i += c == '\\';
            text = c != '"';
        } else {
            comment = c == ';';
            text = c == '"';
            open += (c == '(') - (c == ')');
            MUST(open >= 0);
        }
    }
    MUST(open == 0 && !text);
}

static void check_policy(struct str s)
{
    static const char *const command[] = {"x", NULL};
    struct arena *mem = arena_new(16u << 20);
    struct path_rule rules[32];
    struct policy policy = {.workspace = "/w", .paths = rules, .profile = "x"};
    struct facts facts = {.home = "/h", .state_home = "/h/s"};
    struct plan plan = {.policy = &policy, .facts = &facts};
    struct seatbelt made;
    struct err e = {0};
    MUST(mem);
    for (uint8_t how = 0; s.n && policy.n_paths < 32;) {
        struct str line = str_until(&s, '\n');
        if (line.n < 2 || line.n > 4000 || memchr(line.p, 0, line.n))
            continue;
        how = (uint8_t)line.p[0];
        struct path_rule *r = &rules[policy.n_paths++];
        *r = (struct path_rule){.access = (enum path_access)(how % 5), .any_depth = how & 8, .below = "/w"};
        r->pattern = !r->any_depth && how & 16;
        r->path = arena_printf(mem, "%s%.*s", r->any_depth ? "" : "/", (int)line.n - 1, line.p + 1);
        MUST(r->path);
    }
    const struct seatbelt_ask ask = {.plan = &plan, .argv = command, .proxy_port = 1};
    int r = seatbelt_make(&ask, mem, &made, &e);
    MUST(r == 0 || (e.kind == ERR_CANNOT && e.text[0]));
    if (r == 0)
        MUST(made.argv[0] && same(made.argv[2], made.profile) && seatbelt_check(str_of(made.profile), true, &e) == 0);
    arena_free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    if (size && data[0] & 1)
        check_policy(str_skip(in, 1));
    else
        check_text(size ? str_skip(in, 1) : in);
    return 0;
}
