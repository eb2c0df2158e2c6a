/*
 * Profiles for macOS. tests/golden/seatbelt/NAME.in describes a policy and a host (test_plan_host.h), "# custom: TEXT" a
 * profile of the person's own; the profile and the command line must be NAME.out to the byte (GOLDEN_UPDATE=1 writes it).
 * Since no macOS is at hand, judge() reads the profiles as its kernel would: of the rules that match the last decides.
 */
#include "unit.h"

#include <regex.h>

#include "backends/seatbelt/seatbelt.h"
#include "golden.h"
#include "test_plan_host.h"

struct made {
    struct host h;
    struct plan *plan;
    struct arena *mem;
    struct seatbelt s;
    struct err e;
    int r;
};

static void make(struct made *m, const char *text)
{
    static const char *const command[] = {"/bin/sh", "-c", "echo 'a b'", NULL};
    const char *custom = strstr(text, "# custom: ");
    char line[512] = "";
    if (custom)
        snprintf(line, sizeof line, "%.*s", (int)strcspn(custom + 10, "\n"), custom + 10);
    *m = (struct made){.mem = arena_new(16u << 20)};
    host_begin(&m->h);
    char *copy = strdup(text);
    if (!host_read(&m->h, copy))
        fail_msg("%s", m->h.error);
    seatbelt_facts(&m->h.facts);
    m->r = plan_make(&m->h.policy, &m->h.facts, &m->h.ask, &m->plan, &m->e);
    const struct seatbelt_ask ask = {
        .plan = m->plan, .argv = command, .custom = custom ? line : NULL, .proxy_port = EGRESS_PROXY_PORT};
    if (m->r == 0)
        m->r = seatbelt_make(&ask, m->mem, &m->s, &m->e);
    free(copy);
}

static void end(struct made *m)
{
    plan_free(m->plan);
    arena_free(m->mem);
    host_end(&m->h);
}

/* ---- what a profile says ---- */

static const char *value_of(const struct made *m, const char *name, size_t n)
{
    for (const char *const *a = m->s.argv; *a; a++) {
        if (strncmp(*a, name, n) == 0 && (*a)[n] == '=')
            return *a + n + 1;
    }
    fail_msg("no parameter %.*s", (int)n, name);
    return "";
}

static const char *blank(const char *p)
{
    for (; *p == ' ' || *p == '\n' || *p == ';'; p++) {
        if (*p == ';')
            p += strcspn(p, "\n");
    }
    return p;
}

/* A string at `p`, without its escapes; returns where it ends. */
static const char *string(const char *p, char *to)
{
    for (p++; *p != '"'; p++) {
        p += *p == '\\';
        *to++ = *p;
    }
    *to = 0;
    return p + 1;
}

static const char *after_list(const char *p) /* from its opening parenthesis */
{
    int open = 0;
    do {
        char ignored[8192];
        if (*p == '"') {
            p = string(p, ignored);
            continue;
        }
        open += *p == '(';
        open -= *p == ')';
        p++;
    } while (open);
    return p;
}

static bool filter_matches(const struct made *m, const char *p, const char *path)
{
    char text[8192];
    size_t n = strcspn(p, " )");
    bool sub = strncmp(p, "subpath", n) == 0, literal = strncmp(p, "literal", n) == 0;
    const char *arg = blank(p + n);
    if (strncmp(p, "regex", n) == 0) {
        regex_t re;
        (void)string(arg, text);
        assert_int_equal(regcomp(&re, text, REG_EXTENDED | REG_NOSUB), 0);
        bool yes = regexec(&re, path, 0, NULL, 0) == 0;
        regfree(&re);
        return yes;
    }
    if (!sub && !literal)
        return false;
    (void)string(*arg == '(' ? blank(arg + 6) : arg, text);
    const char *against = *arg == '(' ? value_of(m, text, strlen(text)) : text;
    return sub ? path_at_or_below(path, against) : same(path, against);
}

static bool covers(const char *word, size_t n, const char *operation)
{
    if (strncmp(word, "default", n) == 0)
        return true;
    return word[n - 1] == '*' ? strncmp(word, operation, n - 1) == 0
                              : strlen(operation) == n && strncmp(word, operation, n) == 0;
}

/* Whether `operation` on `path` is allowed. */
static bool judge(const struct made *m, const char *operation, const char *path)
{
    bool allowed = true;
    for (const char *p = blank(m->s.profile), *end; *p; p = blank(end)) {
        bool allow = strncmp(p, "(allow ", 7) == 0, ours = false, matches;
        end = after_list(p);
        if (!allow && strncmp(p, "(deny ", 6) != 0)
            continue;
        p = blank(p + (allow ? 7 : 6));
        for (size_t n; *p != '(' && *p != ')'; p = blank(p + n)) {
            n = strcspn(p, " )\n");
            ours |= covers(p, n, operation);
        }
        for (matches = *p == ')'; *p == '('; p = blank(after_list(p)))
            matches |= ours && filter_matches(m, p + 1, path);
        allowed = ours && matches ? allow : allowed;
    }
    return allowed;
}

/* "rw" as far as both are allowed: "rw", "r", "w", "". */
static const char *rights(const struct made *m, const char *path)
{
    bool r = judge(m, "file-read-data", path), w = judge(m, "file-write-create", path);
    assert_true(w == judge(m, "file-write-data", path) || !w);
    return r && w ? "rw" : r ? "r" : w ? "w" : "";
}

/* ---- tests ---- */

static const char host[] =
    "dir /home/u/.ssh\ndir /home/u/proj/.git\nhide /home/u/.ssh builtin\nhide /home/u/.netrc builtin\n"
    "ro /home/u/.ssh/config\nrw /srv/data\ndir /srv/data\nfile /home/u/.ssh/config\n"
    "ro /home/u/proj/vendor\nrw /home/u/proj/vendor/out\ndir /home/u/proj/vendor/out\n"
    "hide /home/u/proj/sub/secret\nprotect /home/u/proj/keep/me\nhide **/.env\n"
    "hide /home/u/proj/k/*.pem\ndir /home/u/proj/k\nhide /home/u/.local/state/pinfold own\n"
    "name .git/hooks any dir\nname .envrc any\nname .vscode root dir\nstate /home/u/.local/state\n"
    "cache /home/u/.cache optional builtin\n";

static void decisions(void **state)
{
    (void)state;
    static const struct {
        const char *path, *rights;
    } cases[] = {{"/etc/passwd", "r"},
                 {"/home/u/proj/a.c", "rw"},
                 {"/home/u/proj", "rw"},
                 {"/home/u/project", "r"},
                 {"/srv/data/x/y", "rw"},
                 {"/home/u/.ssh/id_rsa", ""},
                 {"/home/u/.ssh", ""},
                 {"/home/u/.ssh/config", "r"},
                 {"/home/u/.netrc", ""},
                 {"/home/u/proj/vendor/lib", "r"},
                 {"/home/u/proj/vendor/out/x", "rw"},
                 {"/home/u/proj/sub/secret/x", ""},
                 {"/home/u/proj/SUB/Secret", ""},
                 {"/home/u/proj/sub/other", "rw"},
                 {"/home/u/proj/keep/me", "r"},
                 {"/home/u/proj/keep/ME", "r"},
                 {"/home/u/proj/keep/you", "rw"},
                 {"/home/u/proj/.env", ""},
                 {"/home/u/proj/a/b/.ENV", ""},
                 {"/srv/data/.env", ""},
                 {"/home/u/proj/xenv", "rw"},
                 {"/home/u/proj/k/a.pem", ""},
                 {"/home/u/proj/k/a.Pem", ""},
                 {"/home/u/proj/k/a.pem/below", ""},
                 {"/home/u/proj/k/a.pen", "rw"},
                 {"/home/u/proj/.git/hooks/post-checkout", "r"},
                 {"/home/u/proj/x/.GIT/Hooks/post-checkout", "r"},
                 {"/home/u/proj/.git/index", "rw"},
                 {"/home/u/proj/.vscode/tasks.json", "r"},
                 {"/home/u/proj/x/.vscode/tasks.json", "rw"},
                 {"/srv/data/.envrc", "r"},
                 {"/home/u/.cache/x", "r"},
                 {"/home/u/.local/state/pinfold/tmp/0/x", "rw"},
                 {"/home/u/.local/state/pinfold/trust", ""}};
    static const char *const more[] = {"", "seatbelt_base permissive\n"};
    for (size_t k = 0; k < 2; k++) {
        struct made m;
        char text[4096];
        snprintf(text, sizeof text, "%s%s", host, more[k]);
        make(&m, text);
        if (m.r < 0)
            fail_msg("%s", m.e.text);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            if (!same(rights(&m, cases[i].path), cases[i].rights))
                fail_msg("%s: '%s' and not '%s'", cases[i].path, rights(&m, cases[i].path), cases[i].rights);
        }
        assert_false(judge(&m, "file-write-unlink", "/home/u/proj/sub")); /* or the secret would move along */
        assert_false(judge(&m, "file-write-unlink", "/home/u/proj"));
        assert_false(judge(&m, "file-write-unlink", "/home/u/proj/.git")); /* or hooks could be moved into place */
        assert_false(judge(&m, "file-write-create", "/home/u/proj/new/.git"));
        assert_true(judge(&m, "file-write-unlink", "/home/u/proj/sub/other"));
        assert_false(judge(&m, "file-link", "/home/u/proj/keep/me"));
        assert_false(judge(&m, "file-link", "/etc/passwd"));
        assert_true(judge(&m, "file-link", "/home/u/proj/a.c"));
        assert_false(judge(&m, "process-exec", "/home/u/.ssh/x"));
        assert_true(judge(&m, "process-exec", "/bin/sh"));
        assert_true(judge(&m, "file-read-metadata", "/home/u/.ssh")); /* the way to what is visible in it */
        assert_false(judge(&m, "network-outbound", "10.0.0.1:80"));
        assert_false(judge(&m, "appleevent-send", "x"));
        end(&m);
    }
}

/* A profile of the person's own decides what may be read, and nothing beyond the policy is written with it. */
static void custom(void **state)
{
    (void)state;
    struct made m;
    char text[4096];
    snprintf(text, sizeof text, "%sseatbelt_file /p.sb\n# custom: (version 1) (allow default) (define x #\"a.b\")\n",
             host);
    make(&m, text);
    assert_int_equal(m.r, 0);
    assert_string_equal(rights(&m, "/etc/passwd"), "r");
    assert_string_equal(rights(&m, "/home/u/proj/x"), "rw");
    assert_string_equal(rights(&m, "/home/u/.ssh/x"), "");
    assert_string_equal(rights(&m, "/home/u/proj/.env"), "");
    assert_string_equal(value_of(&m, "TARGET_DIR", 10), "/home/u/proj");
    assert_string_equal(value_of(&m, "ALLOWED_DIR_4", 13), "/dev/null");
    assert_false(judge(&m, "network-outbound", "10.0.0.1:80"));
    end(&m);
    snprintf(text, sizeof text, "%sseatbelt_file /p.sb\n# custom: (version 1) (deny default\n", host);
    make(&m, text);
    assert_int_equal(m.r, -EINVAL);
    assert_string_equal(m.e.text, "seatbelt.file '/p.sb': line 1: a parenthesis is not closed");
    end(&m);
    snprintf(text, sizeof text, "%sseatbelt_file /p.sb\n# custom: (version 1) (deny default)\n", host);
    make(&m, text);
    assert_int_equal(m.r, 0);
    assert_string_equal(rights(&m, "/etc/passwd"), ""); /* what it refuses to read stays refused */
    end(&m);
}

/* What stands in the argument vector is not read by anything on its way. */
static void awkward_paths(void **state)
{
    (void)state;
    struct made m;
    make(&m, "workspace /home/u/a\\040\"b\\134)(c\\012\ndir /home/u/a\\040\"b\\134)(c\\012\nhide "
             "/home/u/a\\040\"b\\134)(c\\012/\\303\\251\"\\\\x\n");
    if (m.r < 0)
        fail_msg("%s", m.e.text);
    assert_string_equal(rights(&m, m.h.policy.workspace), "rw");
    assert_string_equal(rights(&m, m.h.policy.paths[0].path), "");
    end(&m);
}

static void checker(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wrong;
    } cases[] = {
        {"(version 1)\n(deny default)", NULL},
        {"(version 1)(allow file-read* (subpath \"/a\") (require-not (literal (param \"X\"))))", NULL},
        {"; c\n(version 1) ; d\n(allow network-outbound (remote ip \"localhost:80\"))", NULL},
        {"(version 1)(allow network* (local unix-socket (subpath \"/s\")))", NULL},
        {"(version 1)(allow signal (target same-sandbox))", NULL},
        {"", "line 1: an empty profile"},
        {"(deny default)", "line 1: a profile begins with (version 1)"},
        {"(version 2)", "line 1: only version 1 of the language is known"},
        {"(version 1)\n(allow file-raed*)", "line 2: unknown operation"},
        {"(version 1)\n(permit file-read*)", "line 2: neither allow nor deny"},
        {"(version 1)\n(allow)", "line 2: a rule without an operation"},
        {"(version 1)\n(allow file-read* (sub \"/a\"))", "line 2: unknown filter"},
        {"(version 1)\n(allow file-read* (subpath \"a\"))", "line 2: a path is absolute"},
        {"(version 1)\n(allow file-read* (subpath \"/a\" \"/b\"))", "line 2: a path filter takes one path"},
        {"(version 1)\n(allow file-read* (subpath (parm \"X\")))", "line 2: a path is a string or (param \"NAME\")"},
        {"(version 1)\n(allow file-read* \"/a\")", "line 2: only filters may follow the operations"},
        {"(version 1)\n(allow file-read* (require-not))", "line 2: a filter of filters with the wrong number of them"},
        {"(version 1)\n(allow file-read* (regex))", "line 2: the filter takes strings"},
        {"(version 1)\n(allow network* (remote ip \"10.0.0.1:80\"))", "line 2: an address is localhost:PORT or *:PORT"},
        {"(version 1)\n(allow network* (remote ip \"localhost:0\"))", "line 2: an address is localhost:PORT or *:PORT"},
        {"(version 1)\n(allow network* (remote ip \"localhost:65536\"))",
         "line 2: an address is localhost:PORT or *:PORT"},
        {"(version 1)\n(allow signal (target me))", "line 2: the filter does not know this word"},
        {"(version 1)\n(allow file-read* (subpath \"/a))", "line 2: an unterminated string"},
        {"(version 1)\n(allow file-read* (subpath \"/\001\"))", "line 2: a generated string contains a special byte"},
        {"(version 1)\n)", "line 2: something is outside all parentheses"},
        {"(version 1)\n(allow file-read*", "line 2: only filters may follow the operations"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        int r = seatbelt_check(str_of(cases[i].text), true, &e);
        if ((r == 0) != !cases[i].wrong || !same(e.text, cases[i].wrong ? cases[i].wrong : ""))
            fail_msg("%s: %s", cases[i].text, e.text);
    }
}

/* ---- golden ---- */

static void write_profile(const char *name, const char *text, struct buf *out)
{
    struct made m;
    (void)name;
    make(&m, text);
    if (m.r < 0)
        buf_printf(out, "error: %s\n", m.e.text);
    for (const char *const *a = m.s.argv; m.r == 0 && *a; a++)
        buf_printf(out, "%s\n", *a);
    end(&m);
}

static void golden(void **state)
{
    (void)state;
    golden_folder("/seatbelt", "out", 6, write_profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decisions), cmocka_unit_test(custom),
                                       cmocka_unit_test(awkward_paths), cmocka_unit_test(checker),
                                       cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
