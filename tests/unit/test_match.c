/*
 * match/: what patterns, addresses, ports and paths mean. One by one, and against a slow reference.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "glob_reference.h"
#include "match/addr.h"
#include "match/glob.h"
#include "match/manifest.h"
#include "match/path.h"
#include "match/proctext.h"
#include "match/spelling.h"
#include "match/url.h"

/* ---- patterns ---- */

static const struct {
    const char *pattern, *name;
    bool exact, any_case;
} MEANINGS[] = {
    {"", "", true, true},
    {"*", "", true, true},
    {"*", ".x", true, true},
    {"?", "", false, false},
    {"?", ".", true, true},
    {"?", "/", false, false},
    {"*", "a/b", false, false},
    {"[!a]", "/", false, false},
    {"*.pem", "x.pem", true, true},
    {"*.pem", "x.PEM", false, true},
    {"*.pem", "x.pem.old", false, false},
    {"a*b*c", "axxbyyc", true, true},
    {"a*b*c", "axxbyy", false, false},
    {"*a", "aaaaaaaaab", false, false},
    {"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, false},
    /* Sets: folding only ever matches more. */
    {"a[!b]c", "aBc", true, true},
    {"a[!b]c", "abc", false, true},
    {"a[!bB]c", "abc", false, false},
    {"a[!bB]c", "aBc", false, false},
    {"[a-c]x", "Bx", false, true},
    {"[A-Z]", "q", false, true},
    {"[^a-c]x", "dx", true, true},
    {"[!!]", "!", false, false},
    {"[a!]", "!", true, true},
    {"[]a]", "]", true, true},
    {"[!]a]", "]", false, false},
    {"[!]a]", "b", true, true},
    {"[a-]", "-", true, true},
    {"[-a]", "-", true, true},
    {"[a-c-e]", "-", true, true},
    {"[a-c-e]", "d", false, false},
    {"[a-c-e]", "e", true, true},
    {"[--0]", "0", true, true}, /* from - to 0, where '/' never matches */
    {"[--0]", "/", false, false},
    {"[Z-a]", "_", true, true},
    /* Backslashes, also in sets. */
    {"\\*", "*", true, true},
    {"\\*", "x", false, false},
    {"[\\]]x*", "]x1", true, true},
    {"[a\\]b]", "]", true, true},
    {"[a\\-c]", "b", false, false},
    {"[a\\-c]", "-", true, true},
    {"[\\!a]", "!", true, true},
    {"[\\[:]", ":", true, true},
    {"\\a", "A", false, true},
    /* Characters are code points; a byte that is none is one by itself. */
    {"?", "\xc3\xa9", true, true},
    {"??", "\xc3\xa9", false, false},
    {"[\xc3\xa9]", "\xc3\xa9", true, true},
    {"[\xc3\xa9]", "\xc3\xa8", false, false},
    {"[\xd0\xb0-\xd1\x8f]", "\xd0\xb6", true, true},
    {"?", "\xff", true, true},
    {"\xff?", "\xff\xfe", true, true},
    {"[\xff]", "\xff", true, true},
    {"[!a]", "\xff", true, true},
    {"?", "\xc0\xaf", false, false}, /* overlong: two bytes that are no character */
    {"??", "\xc0\xaf", true, true},
    {"???", "\xed\xa0\x80", true, true},    /* a surrogate */
    {"\xc3\x89", "\xc3\xa9", false, false}, /* letters beyond ASCII have no other case */
};

static void patterns_mean_one_thing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++) {
        struct str pattern = str_of(MEANINGS[i].pattern), name = str_of(MEANINGS[i].name);
        if (glob_wrong(pattern))
            fail_msg("'%s' %s", pattern.p, glob_wrong(pattern));
        if (glob_match(pattern, name, GLOB_EXACT) != MEANINGS[i].exact ||
            glob_match(pattern, name, GLOB_ANY_CASE) != MEANINGS[i].any_case)
            fail_msg("'%s' on '%s'", pattern.p, name.p);
    }
}

/* A line is no name: '/' is a character as others. */
static void patterns_of_lines(void **state)
{
    static const struct {
        const char *pattern, *line;
        bool fits;
    } lines[] = {{"*", "files.rw: ~/a/b", true}, {"files.*: *secret*", "files.ro: /x/secret/y", true},
                 {"a?b", "a/b", true},           {"a[!x]b", "a/b", true},
                 {"a[+-9]b", "a/b", true},       {"a[/]b", "a/b", true},
                 {"~/x/*", "~/x/y/z", true},     {"~/x/*", "~/y", false},
                 {"a/b", "a/B", false},          {"net.allow: *.x:*", "net.allow: a.b.x:443", true},
                 {"~/a\\[b]", "~/a[b]", true},   {"a*", "", false}};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct str pattern = str_of(lines[i].pattern), line = str_of(lines[i].line);
        if (glob_wrong_line(pattern) || glob_match(pattern, line, GLOB_LINE) != lines[i].fits)
            fail_msg("'%s' on '%s'", pattern.p, line.p);
    }
    assert_non_null(glob_wrong_line(STR("a[/")));
    assert_false(glob_match(STR("a[/"), STR("a[/"), GLOB_LINE));
}

static void what_is_no_pattern_says_why(void **state)
{
    static const char *const said[][2] = {{"a[", "without a ']'; write \\["},
                                          {"[a", "without a ']'"},
                                          {"[]", "without a ']'"},
                                          {"[!]", "without a ']'"},
                                          {"[a\\", "without a ']'"},
                                          {"[a\\]", "without a ']'"},
                                          {"a\\", "ends in a backslash"},
                                          {"[z-a]", "ends before it begins"},
                                          {"[[:alpha:]]", "classes such as"},
                                          {"[a[=b=]]", "classes such as"},
                                          {"[[.a.]]", "classes such as"},
                                          {"[a-[:x:]]", "classes such as"},
                                          {"[\xff-\xfe]", "not UTF-8 at an end"},
                                          {"[a-\xff]", "not UTF-8"},
                                          {"[a/b]", "a '/'"},
                                          {"a/b", "a '/'"}};
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const char *wrong = glob_wrong(str_of(said[i][0]));
        if (!wrong || !strstr(wrong, said[i][1]))
            fail_msg("'%s': %s", said[i][0], wrong ? wrong : "is taken");
        /* What no loader lets through would forbid more and allow less. */
        assert_true(glob_match(str_of(said[i][0]), STR("a"), GLOB_ANY_CASE) || said[i][0][0] == 'a');
    }
    assert_non_null(glob_wrong((struct str){"a\0b", 3}));
}

static void what_is_literal_stays_so(void **state)
{
    (void)state;
    for (unsigned c = 1; c < 256; c++) {
        auto_buf struct buf alone = BUF(64), in_set = BUF(64);
        const char name[] = {(char)c, 0};
        if (c == '/')
            continue;
        glob_put_literal(&alone, (char)c);
        buf_text(&in_set, "[q");
        glob_put_literal(&in_set, (char)c);
        buf_text(&in_set, "z]");
        for (unsigned other = 1; other < 256; other++) {
            const char one[] = {(char)other, 0};
            bool set = glob_match(buf_view(&in_set), str_of(one), GLOB_EXACT);
            assert_int_equal(glob_match(buf_view(&alone), str_of(one), GLOB_EXACT), other == c);
            if (other != '/' && set != (other == c || other == 'q' || other == 'z'))
                fail_msg("'%s' on %#x", buf_cstr(&in_set), other);
        }
        assert_true(glob_match(buf_view(&alone), str_of(name), GLOB_ANY_CASE));
    }
}

/* ---- patterns against the reference ---- */

static const char *const PIECES[] = {"a", "B", "b", "/",    "*",    "?",    "[",        "]",  "!",  "^",   "-",    "\\",
                                     ".", ":", "c", "\x80", "\xc3", "\xa9", "\xc3\xa9", "[!", "[^", "a-c", "[a-c]"};
enum { N_PIECES = sizeof PIECES / sizeof *PIECES };

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static unsigned random_below(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % n);
}

static size_t random_text(char *out, unsigned most, bool name)
{
    static const unsigned char plain[] = {0, 1, 2, 3, 7, 10, 12, 14, 15, 16, 17, 18};
    size_t n = 0;
    for (unsigned k = random_below(most + 1); k; k--) {
        unsigned i = name && random_below(4) ? plain[random_below(sizeof plain)] : random_below(N_PIECES);
        size_t width = strlen(PIECES[i]);
        memcpy(out + n, PIECES[i], width);
        n += width;
    }
    return n;
}

static unsigned letters_in(const char *s, size_t n)
{
    unsigned count = 0;
    for (size_t i = 0; i < n; i++)
        count += reference_is_letter((unsigned char)s[i]);
    return count;
}

static void patterns_match_as_the_reference_does(void **state)
{
    enum { SECONDS = 8, NAMES = 12 };
    unsigned long pairs = 0, matched = 0, wrong = 0;
    char pattern[64], name[64];
    const clock_t until = clock() + SECONDS * CLOCKS_PER_SEC;
    const unsigned long most = (unsigned long)tries(3000000);
    (void)state;
    while (pairs + wrong < most && clock() < until) {
        struct str p = {pattern, random_text(pattern, 7, false)};
        struct reference_pattern slow = reference_parse(p.p, p.n);
        if (slow.wrong != (glob_wrong(p) != NULL))
            fail_msg("'%.*s' is %s pattern", (int)p.n, p.p, slow.wrong ? "no" : "a");
        wrong += slow.wrong;
        for (unsigned i = 0; i < NAMES && !slow.wrong; i++) {
            struct str s = {name, random_text(name, 5, true)};
            if (letters_in(s.p, s.n) > REFERENCE_LETTERS)
                continue;
            for (int any_case = 0; any_case < 2; any_case++) {
                bool is = glob_match(p, s, any_case ? GLOB_ANY_CASE : GLOB_EXACT);
                if (is != reference_match(&slow, s.p, s.n, any_case))
                    fail_msg("'%.*s' on '%.*s', %s: %d", (int)p.n, p.p, (int)s.n, s.p,
                             any_case ? "any case" : "exactly", is);
                matched += is;
            }
            pairs++;
        }
        reference_free(&slow);
    }
    print_message("%lu pairs, %lu matches, %lu that are no pattern\n", pairs, matched, wrong);
    assert_true(pairs > 100000 && matched > pairs / 50);
}

/* ---- paths ---- */

static bool fits(const char *said, bool pattern, const char *path)
{
    size_t end = 99;
    bool is = names_fit(str_of(said), pattern, str_of(path), 0, &end);
    assert_true(!is || end <= strlen(path));
    return is;
}

static void names_fit_one_after_the_other(void **state)
{
    (void)state;
    assert_true(fits("keys/*.pem", true, "/KEYS/a.Pem/below"));
    assert_false(fits("keys/*.pem", true, "/keys"));
    assert_false(fits("keys/*.pem", false, "/keys/a.pem"));
    assert_true(fits("[x]/*.pem", true, "/[x]/a.pem")); /* only the last one is a pattern */
    assert_false(fits("[x]/*.pem", true, "/x/a.pem"));
    assert_true(fits("a*b/c", false, "a*b/c"));
    assert_false(fits("a*b/c", false, "axb/c"));
    assert_true(name_fits(STR(".ENV"), false, STR(".env")));
    assert_true(path_in(STR("/W/p/x"), STR("/w/P")) && !path_in_exactly(STR("/W/p/x"), STR("/w/P")));
    assert_true(path_in_exactly(STR("/w/p"), STR("/w/p")) && path_in_exactly(STR("/w/p/x"), STR("/w/p")));
    assert_false(path_in_exactly(STR("/w/pp"), STR("/w/p")) || path_in(STR("/w/pp"), STR("/w/p")));
    assert_true(path_in_exactly(STR("/x"), STR("/")));
}

static void paths_have_one_clean_form(void **state)
{
    static const char *const said[][3] = {{"/b", "x", "/b/x"},          {"/b", "/x//y/", "/x/y"}, {"/b", "../..", "/"},
                                          {"/b/c", "./../x/.", "/b/x"}, {"/b", "", "/b"},         {"/", "", "/"},
                                          {"/b", "...", "/b/..."},      {"/b", "\\x", "/b/\\x"}};
    auto_arena struct arena *mem = arena_new(1 << 20);
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        assert_string_equal(path_clean_at(mem, said[i][0], str_of(said[i][1])), said[i][2]);
    assert_string_equal(path_clean(mem, "/a/./b//../c/"), "/a/c");
}

static void links_into_processes_are_known(void **state)
{
    static const char *const into[] = {"/proc/self/root",
                                       "/proc/self/root/etc",
                                       "//proc/./12//cwd/x",
                                       "/proc/thread-self/cwd",
                                       "/proc/1/root",
                                       "/proc/12/fd/0",
                                       "/proc/self/fd/3",
                                       "/proc/self/fd/0/x",
                                       "/proc/self/fd/0/..",
                                       "/proc/12/task/12/root/x",
                                       "/proc/self/task/7/fd/0",
                                       "/dev/fd/9/x",
                                       "/dev/stdin/x",
                                       "/usr/../proc/12/root",
                                       "/var/run/../proc/12/cwd",
                                       "../proc/12/root",
                                       "../../../../proc/self/../12/root/tmp",
                                       "x/../../proc/12/root"};
    static const char *const not_into[] = {"/proc",
                                           "/proc/self",
                                           "/proc/self/fd",
                                           "/proc/self/fd/2",
                                           "/proc/1/fd/1",
                                           "/proc/mounts",
                                           "../proc/self/mounts",
                                           "/proc/self/exe",
                                           "/proc/net/tcp",
                                           "/dev/fd",
                                           "/dev/stdin",
                                           "/dev/null",
                                           "../dev/fd/x",
                                           "/dev/fd/1",
                                           "proc/12/root",
                                           "/work/proc/12/root",
                                           "../x/12/root",
                                           "/",
                                           "..",
                                           "/proc/kcore",
                                           "/proc/sys/fs/root",
                                           ""};
    (void)state;
    for (size_t i = 0; i < sizeof into / sizeof *into; i++)
        assert_true(path_into_process(str_of(into[i])));
    for (size_t i = 0; i < sizeof not_into / sizeof *not_into; i++)
        assert_false(path_into_process(str_of(not_into[i])));
    auto_buf struct buf deep = BUF(8192);
    for (size_t i = 0; i < 2000; i++)
        buf_text(&deep, "a/");
    buf_text(&deep, "../proc/1/cwd");
    assert_true(path_into_process(buf_view(&deep)));
    for (size_t i = 0; i < 200; i++)
        buf_text(&deep, "/b");
    assert_true(path_into_process(buf_view(&deep)));

    assert_true(path_climbs_again(STR("a/..")) && path_climbs_again(STR("../a/./../b")) &&
                path_climbs_again(STR("/a/../b")));
    assert_false(path_climbs_again(STR("../../a/b")) || path_climbs_again(STR("./../a")) ||
                 path_climbs_again(STR("/..")) || path_climbs_again(STR("a/...")) || path_climbs_again(STR("")));
}

/* ---- addresses and ports ---- */

static void addresses_have_one_spelling(void **state)
{
    static const char *const yes[][2] = {{"192.0.2.10", "192.0.2.10"},
                                         {"0.0.0.0", "0.0.0.0"},
                                         {"::", "::"},
                                         {"2001:DB8::0:1", "2001:db8::1"},
                                         {"::ffff:192.0.2.10", "192.0.2.10"},
                                         {"::FFFF:c000:20a", "192.0.2.10"},
                                         {"0:0:0:0:0:ffff:192.0.2.10", "192.0.2.10"},
                                         {"::192.0.2.10", "::c000:20a"},
                                         {"1:0:0:2:0:0:0:3", "1:0:0:2::3"}};
    static const char *const no[] = {"",           "192.0.2.010",      "192.0.2.00", "0x7f.1",
                                     "127.1",      "2130706433",       "0177.0.0.1", "017700000001",
                                     "0x7f000001", "256.1.1.1",        "1.2.3",      "1.2.3.4.",
                                     "1.2.3.4.5",  "1..1.1",           " 1.2.3.4",   "1.2.3.4 ",
                                     "::1%lo",     "fe80::1%eth0",     "[::1]",      ":::",
                                     "1::2::3",    "1:2:3:4:5:6:7",    "12345::",    "::1.2.3.4.5",
                                     "::01.2.3.4", "1:2:3:4:5:6:7:8::"};
    char text[46];
    struct host_addr a;
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (addr_parse(str_of(yes[i][0]), &a) < 0)
            fail_msg("%s", yes[i][0]);
        addr_print(&a, text);
        assert_string_equal(text, yes[i][1]);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (addr_parse(str_of(no[i]), &a) != -EINVAL)
            fail_msg("'%s' is taken", no[i]);
    }
}

static void ranges_begin_with_their_first_address(void **state)
{
    static const char *const no[][2] = {{"10.0.0.1/8", "first address"},  {"10.0.0.0/33", "0 to 32"},
                                        {"10.0.0.0/08", "0 to 32"},       {"10.0.0.0/", "0 to 32"},
                                        {"fd00::/129", "0 to 128"},       {"::ffff:10.0.0.0/104", "as 10.0.0.0/8"},
                                        {"10.0.0.010/8", "leading zero"}, {"fe80::%eth0/64", "zone"},
                                        {"10.0.0.0./8", "ends in a dot"}, {"10.0/16", "not a complete address"},
                                        {"fd00:::/8", "not an IPv6"},     {"10.0.0.0/8/8", "0 to 32"}};
    struct host_addr a, in;
    uint8_t prefix;
    const char *wrong;
    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        int r = addr_range_parse(str_of(no[i][0]), &a, &prefix, &wrong);
        if (r != -EINVAL || !wrong || !strstr(wrong, no[i][1]))
            fail_msg("%s: %s", no[i][0], r ? wrong : "is taken");
    }
    assert_int_equal(addr_range_parse(STR("10.0.0.0/8"), &a, &prefix, &wrong), 0);
    assert_int_equal(prefix, 8);
    assert_int_equal(addr_parse(STR("::ffff:10.9.8.7"), &in), 0);
    assert_true(addr_within(&in, &a, prefix));
    assert_int_equal(addr_range_parse(STR("::ffff:10.9.8.7"), &a, &prefix, &wrong), 0);
    assert_int_equal(prefix, 32);
    assert_int_equal(addr_range_parse(STR("::/0"), &a, &prefix, &wrong), 0);
    assert_false(addr_within(&in, &a, prefix)); /* IPv4 is not below it */
}

static void ports_are_plain_numbers(void **state)
{
    static const char *const no[] = {"",   "0", "080",   "65536", "99999999999", "-1", "+1",
                                     "1-", "-", "1-2-3", "0x50",  "80 ",         "00"};
    uint16_t low, high;
    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(ports_parse(str_of(no[i]), &low, &high), -EINVAL);
    assert_int_equal(ports_parse(STR("90-80"), &low, &high), -ERANGE);
    assert_int_equal(ports_parse(STR("80-090"), &low, &high), -EINVAL);
    assert_true(ports_parse(STR("7-65535"), &low, &high) == 0 && low == 7 && high == 65535);
    assert_true(port_parse(STR("443"), &low) == 0 && low == 443);
}

/* ---- addresses for a browser ---- */

#define LOGIN "https://login.example.com"

static void addresses_for_a_browser_are_of_the_plainest_form(void **state)
{
    static const char *const hosts[] = {"login.example.com", "id.example.com", NULL};
    static const struct {
        const char *url;
        int port; /* -1: refused */
    } rows[] = {
        {LOGIN, 0},
        {LOGIN "/", 0},
        {LOGIN ":443/a?b=c&d=%41,~#e", 0},
        {"https://LOGIN.Example.com./a", 0},
        {LOGIN "/a?redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fcallback&x=1", 1455},
        {LOGIN "/a?x=1&redirect_uri=http://127.0.0.1:65535", 65535},
        {LOGIN "/a?redirect_uri=https%3A%2F%2Fid.example.com%2Fdone", 0},
        {LOGIN "/a#redirect_uri=http://localhost:22/", 0},
        {"", -1},
        {"https://", -1},
        {"HTTPS://login.example.com/", -1},
        {"http://login.example.com/", -1},
        {"https:login.example.com/", -1},
        {"https:///login.example.com/", -1},
        {"file:///etc/passwd", -1},
        {"javascript:alert(1)", -1},
        {"--new-window", -1},
        {"https://example.com/", -1},
        {"https://a.login.example.com/", -1},
        {"https://login.example.com.evil.org/", -1},
        {"https://evil.org/login.example.com", -1},
        {"https://evil.org#login.example.com", -1},
        {"https://evil.org?login.example.com", -1},
        {"https://evil.org@login.example.com/", -1},
        {"https://login.example.com@evil.org/", -1},
        {"https://login.example.com:evil.org/", -1},
        {"https://login.example.com:8443/", -1},
        {"https://127.0.0.1/", -1},
        {"https://[::1]/", -1},
        {LOGIN "/a b", -1},
        {LOGIN "/\n", -1},
        {LOGIN "/\x1b[2J", -1},
        {LOGIN "/\xc3\xa4", -1},
        {LOGIN "/$(id)", -1},
        {LOGIN "/`id`", -1},
        {LOGIN "/a;b", -1},
        {LOGIN "/a|b", -1},
        {LOGIN "/\\", -1},
        {LOGIN "/\"", -1},
        {LOGIN "/'", -1},
        {LOGIN "/%", -1},
        {LOGIN "/%4", -1},
        {LOGIN "/%g0", -1},
        {LOGIN "/?redirect_uri", -1},
        {LOGIN "/?redirect_uri=", -1},
        {LOGIN "/?redirect_uri=https%3A%2F%2Fevil.org%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Fevil.org%3A2000%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%3A80%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%3A65536%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%3A2000%40evil.org%2F", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%3A2000%00", -1},
        {LOGIN "/?redirect_uri=http%3A%2F%2Flocalhost%3A2000%2F&redirect_uri=http%3A%2F%2Flocalhost%3A2001%2F", -1},
        {LOGIN "/?redirect%5Furi=http%3A%2F%2Flocalhost%3A22%2F", -1},
    };
    struct url_asked asked;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = "";
        int r = url_judge(str_of(rows[i].url), hosts, &asked, &why);
        if (rows[i].port < 0 ? r != -EINVAL || !*why : r != 0 || asked.port != rows[i].port)
            fail_msg("%s: %d %s", rows[i].url, r, r ? why : "is taken");
    }
    char *text = calloc(1, URL_MAX + 2);
    const char *why = "";
    const size_t head = (size_t)sprintf(text, LOGIN "/");
    memset(text + head, 'a', URL_MAX - head);
    assert_int_equal(url_judge(str_of(text), hosts, &asked, &why), 0);
    text[URL_MAX] = 'a';
    assert_int_equal(url_judge(str_of(text), hosts, &asked, &why), -EINVAL);
    free(text);
    assert_int_equal(url_judge(STR(LOGIN "/"), NULL, &asked, &why), -EINVAL);
    assert_int_equal(url_judge(STR(LOGIN "/"), hosts + 2, &asked, &why), -EINVAL);
    assert_int_equal(url_judge((struct str){LOGIN "/\0x", sizeof LOGIN + 2}, hosts, &asked, &why), -EINVAL);
}

/* Pairs by Unicode's CaseFolding.txt and by what FAT ignores; the rest stays as it is. */
static void names_have_one_plain_spelling(void **state)
{
    static const struct {
        const char *path, *plain;
        size_t from;
    } rows[] = {{"/p/.v\xc5\xbf"
                 "code/x",
                 "/p/.vscode/x", 2},
                {"/p/.g\xe2\x80\x8cit/hoo\xe2\x84\xaas", "/p/.git/hooks", 2},
                {"/p/.gitcon\xef\xac\x81g", "/p/.gitconfig", 2},
                {"/p/o\xef\xac\x83"
                 "ce/\xef\xac\x86/\xc3\x9f/\xe1\xba\x9e",
                 "/p/office/st/ss/ss", 2},
                {"/p/.git./.envrc . .", "/p/.git/.envrc", 2},
                {"/stra\xc3\x9f"
                 "e./\xc3\x9f",
                 "/stra\xc3\x9f"
                 "e./ss",
                 9},
                {"/p/.git/config:", "/p/.git/config", 2},
                {"/p/.git::$INDEX_ALLOCATION/hooks:x:y/a", "/p/.git/hooks/a", 2},
                {"/p/.git\\hooks\\post-commit", "/p/.git/hooks/post-commit", 2},
                {"/p/:/:a/..:", NULL, 2},
                {"/p/.git\xef\xb8\x8f\xf3\xa0\x81\xa1", "/p/.git", 2},
                {"/p/\xe2\x80\x8c/.../a.b/x y", NULL, 2},
                {"/p/\xc3\xa9t\xc3\xa9/\xe6\x97\xa5/\xf0\x9f\x98\x80", NULL, 2},
                {"/p/\xc5/\xe2\x84/\xff\xc0\xaf\xc5", NULL, 2},
                {"/", NULL, 0},
                {"/p", NULL, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char to[128];
        size_t n = 0;
        const bool other = path_respell(str_of(rows[i].path), rows[i].from, to, &n);
        assert_int_equal(other, rows[i].plain != NULL);
        assert_string_equal(to, rows[i].plain ? rows[i].plain : rows[i].path);
        assert_int_equal(n, strlen(to));
    }
    /* Never longer, whatever the bytes; and a plain spelling is its own. */
    srandom(1);
    for (int i = 0; i < 200000; i++) {
        static const char *const parts[] = {"\xc5\xbf", "\xef\xac\x83", "\xe2\x80\x8c",     ".", " ", "a", "/",
                                            "\xc3",     "\x9f",         "\xf3\xa0\x81\xa1", ":", "\\"};
        char path[128] = "/", to[sizeof path], again[sizeof path];
        size_t n, m;
        for (int k = 0; k < 12; k++)
            strcat(path, parts[(size_t)random() % (sizeof parts / sizeof *parts)]);
        (void)path_respell(str_of(path), 0, to, &n);
        assert_true(n <= strlen(path) && to[n] == 0);
        (void)path_respell(str_of(to), 0, again, &m);
        assert_true(m <= n);
    }
}

/* ---- texts of /proc ---- */

static void numbers_stand_behind_their_labels(void **state)
{
    (void)state;
    static const char text[] = "Name:\tPid:\t7\nUmask:\t0027\nState:\tt (tracing stop)\nPid:\t12\nTracerPid:\t0\n"
                               "NStgid:\t12\t3\t1\nNSpid:\t12\nNSsid:\nSigBlk:\tf000000000000001\n";
    assert_int_equal(proc_number(text, "\nPid:\t", 10), 12); /* not what the process calls itself */
    assert_int_equal(proc_number(text, "\nUmask:\t", 8), 027);
    assert_int_equal(proc_number(text, "\nTracerPid:\t", 10), 0);
    assert_int_equal(proc_number(text, "\nState:\t", 10), -1);
    assert_int_equal(proc_number(text, "\nPpid:\t", 10), -1);
    assert_int_equal(proc_second_number(text, "\nNStgid:\t"), 3);
    assert_int_equal(proc_last_number(text, "\nNStgid:\t"), 1);
    assert_int_equal(proc_second_number(text, "\nNSpid:\t"), 12);
    assert_int_equal(proc_last_number(text, "\nNSpid:\t"), 12);
    assert_int_equal(proc_second_number(text, "\nNSppid:\t"), -1);
    assert_true(proc_set(text, "\nSigBlk:\t") == 0xf000000000000001ull);
    assert_true(proc_set(text, "\nSigPnd:\t") == 0);
}

static void mounts_are_lines_of_words(void **state)
{
    (void)state;
    char text[] = "22 1 0:20 / /a\\040b\\134c rw - x y z\n23 22 8:1 /d\\012e /f rw\nnothing\n24 1 0:1 / /cut";
    char *at = text;
    struct proc_mount m;
    assert_true(proc_next_mount(&at, &m));
    assert_true(m.id == 22 && m.major == 0 && m.minor == 20);
    assert_string_equal(m.root, "/");
    assert_string_equal(m.at, "/a b\\c");
    assert_true(proc_next_mount(&at, &m));
    assert_true(m.id == 23 && m.major == 8 && m.minor == 1);
    assert_string_equal(m.root, "/d\ne");
    assert_string_equal(m.at, "/f");
    assert_false(proc_next_mount(&at, &m)); /* no line of that kind */
    assert_false(proc_next_mount(&at, &m)); /* no whole line */
}

static void sockets_are_lines_of_words(void **state)
{
    (void)state;
    struct proc_socket s = proc_socket_line(STR("0000000000000000: 00000002 00000000 00010000 0001 01 4711 @a b"));
    assert_true(s.listens && !s.connected && s.type == 1 && s.inode == 4711);
    assert_true(str_is(s.name, "@a b"));
    s = proc_socket_line(STR("0000000000000000: 00000003 00000000 00000000 0005 03   815"));
    assert_true(!s.listens && s.connected && s.type == 5 && s.inode == 815 && s.name.n == 0);
    s = proc_socket_line(STR("short"));
    assert_true(s.inode == 0 && !s.listens && s.name.n == 0);
}

static void paths_of_processes_have_numbers(void **state)
{
    (void)state;
    struct str rest;
    assert_int_equal(proc_path_number(STR("/proc/12/task/13/mem"), &rest), 12);
    assert_true(str_is(rest, "task/13/mem"));
    assert_int_equal(proc_path_number(STR("/proc/12"), &rest), 12);
    assert_int_equal(proc_path_number(STR("/proc/1x/mem"), &rest), 0);
    assert_int_equal(proc_path_number(STR("/proc/99999999999999999999/mem"), &rest), 0);
    assert_int_equal(proc_path_number(STR("/procs/12"), &rest), 0);
    assert_int_equal(proc_path_number(STR("/proc/"), &rest), 0);
    assert_true(proc_is_public(STR("status")) && proc_is_public(STR("cmdline")));
    assert_false(proc_is_public(STR("mem")) || proc_is_public(STR("environ")) || proc_is_public(STR("")));
    static const char *const out[] = {"/proc/1/root/x", "/proc/1/cwd", "/proc/self/fd/3/x", "/proc/../etc",
                                      "/proc/1/root"};
    static const char *const in[] = {"/proc/1/fd/3", "/proc/1/maps", "/proc/rootx", "/etc/root/x",
                                     "/proc/1/task/2/stat"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_true(proc_leaves(out[i]) && !proc_leaves(in[i]));
}

static void keys_of_hooks_are_compared(void **state)
{
#define LINT "\"lint-staged\":{\"*.js\":[\"a\",\"b\"]}"
    static const struct {
        const char *before, *after, *changed; /* NULL: not */
    } rows[] = {
        {"", "", NULL},
        {"", "{}", NULL},
        {"{\"name\":\"x\"}", "{\"name\":\"y\",\"scripts\":{\"lint-staged\":\"z\"}}", NULL},
        {"{" LINT "}", "\xef\xbb\xbf { \"a\" : 1,\n \"lint-staged\" : { \"*.js\" : [ \"a\" ,\t\"b\" ] } }\n", NULL},
        {"{" LINT "}", "{\"lint-staged\":{\"*.js\":[\"a\",\"b \"]}}", "lint-staged"},
        {"{" LINT "}", "{}", "lint-staged"},
        {"", "{" LINT ",\"husky\":{},\"x\":\"}\"}", "lint-staged, husky"},
        {"{" LINT "}", "{" LINT ",\"a\":\"\\\"\",\"lint-staged\":1}", "lint-staged"}, /* the last one counts */
        {"{\"prettier\":\"a\\\"b\"}", "{\"prettier\":\"a\\\\\" }", "prettier"},
        {"{}", "{\"lint\\u002dstaged\":1}", "it cannot be read"},
        {"{}", "[]", "it cannot be read"},
        {"{}", "{\"a\":\"", "it cannot be read"},
        {"{}", "{\"a\":[1}", "it cannot be read"},
        {"{}", "{\"husky\"", "it cannot be read"},
        {"{}", "{\"husky\":", "it cannot be read"},
        {"{}", "{", "it cannot be read"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        auto_buf struct buf keys = BUF(1024);
        const bool changed = manifest_changed(str_of(rows[i].before), str_of(rows[i].after), &keys);
        if (changed != !!rows[i].changed || (changed && !same(buf_cstr(&keys), rows[i].changed)))
            fail_msg("%s -> %s: %s", rows[i].before, rows[i].after, changed ? buf_cstr(&keys) : "nothing");
    }
#undef LINT
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_stand_behind_their_labels),
                                       cmocka_unit_test(mounts_are_lines_of_words),
                                       cmocka_unit_test(sockets_are_lines_of_words),
                                       cmocka_unit_test(paths_of_processes_have_numbers),
                                       cmocka_unit_test(patterns_mean_one_thing),
                                       cmocka_unit_test(patterns_of_lines),
                                       cmocka_unit_test(what_is_no_pattern_says_why),
                                       cmocka_unit_test(what_is_literal_stays_so),
                                       cmocka_unit_test(patterns_match_as_the_reference_does),
                                       cmocka_unit_test(names_fit_one_after_the_other),
                                       cmocka_unit_test(paths_have_one_clean_form),
                                       cmocka_unit_test(links_into_processes_are_known),
                                       cmocka_unit_test(addresses_have_one_spelling),
                                       cmocka_unit_test(ranges_begin_with_their_first_address),
                                       cmocka_unit_test(ports_are_plain_numbers),
                                       cmocka_unit_test(addresses_for_a_browser_are_of_the_plainest_form),
                                       cmocka_unit_test(names_have_one_plain_spelling),
                                       cmocka_unit_test(keys_of_hooks_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
