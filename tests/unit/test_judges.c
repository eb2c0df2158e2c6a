/*
 * One rule, one path, and everybody who judges: the policy (path_rule_covers()), the survey of a real directory, the guard
 * with what the planner compiled for it, for hiding and for protecting, and the slow reference on the text as it was said.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "survey/survey.h"
#include "glob_reference.h"
#include "judge/judge.h"
#include "policy/path.h"
#include "test_plan_host.h"

#define PROJECT "/home/u/proj"

static const char *const FOLDERS[] = {"", "d/", "[d]/", "D/", "a*/", "d/d/", "**/"};
static const char *const NAMES[] = {"a",    "b",         "B",    "ab",   "aB",  "AB",      "abc", "aBc",      "axc",
                                    "a]c",  "]",         "]x",   "-",    "a-c", "!",       "^a",  "*",        "?",
                                    "\\",   "[",         "[a",   "a[b]", ".a",  "a.b",     ".b",  "\xc3\xa9", "\xff",
                                    "\xc3", "a\xc3\xa9", "\x80", "c",    ":a",  "\xc3\x89"};
enum { N_FOLDERS = sizeof FOLDERS / sizeof *FOLDERS, N_NAMES = sizeof NAMES / sizeof *NAMES };

/* ---- the reference on the text that was said ---- */

struct said_part {
    struct str raw; /* of the last one */
    char name[256]; /* without its backslashes */
    size_t n;
    bool pattern;
};

/* A component of the text from *at on; false at its end. */
static bool said_part(struct str text, size_t *at, struct said_part *ret)
{
    *ret = (struct said_part){.raw = {text.p + *at, 0}};
    for (; *at < text.n && text.p[*at] != '/'; ++*at) {
        char c = text.p[*at];
        ret->raw.n++;
        if (c == '\\' && *at + 1 < text.n) {
            ret->raw.n++;
            c = text.p[++*at];
        } else if (c == '*' || c == '?' || c == '[') {
            ret->pattern = true;
        }
        ret->name[ret->n++] = c;
    }
    *at += *at < text.n;
    return ret->raw.n > 0;
}

static bool means_name(const struct said_part *part, struct str name)
{
    struct reference_pattern p = {0};
    if (!part->pattern) { /* as a pattern in which all is literal */
        char quoted[512];
        size_t n = 0;
        for (size_t i = 0; i < part->n; i++) {
            if ((part->name[i] & 0x80) == 0)
                quoted[n++] = '\\';
            quoted[n++] = part->name[i];
        }
        p = reference_parse(quoted, n);
    } else {
        p = reference_parse(part->raw.p, part->raw.n);
    }
    bool is = reference_match(&p, name.p, name.n, true);
    reference_free(&p);
    return is;
}

/* Whether the components of `said` are the first of `path`. `place`: all but the last name one place, by their bytes. */
static bool means_here(struct str said, struct str path, bool place)
{
    struct said_part part;
    struct str name;
    size_t at = 0, here = 0;
    while (said_part(said, &at, &part))
        if (!part_next(path, &here, &name) || !means_name(&part, name) ||
            (place && at < said.n && !str_eq(name, (struct str){part.name, part.n})))
            return false;
    return true;
}

/*
 * `looked`: as who looks at the start where the rule's directory is. One that judges paths later holds a directory for the same in
 * any case of letters.
 */
static bool means(struct str said, struct str path, bool looked)
{
    struct str name;
    size_t at = 0;
    bool deep = str_starts(said, STR("**/"));
    if (str_starts(said, STR("d/**/"))) {
        if (!part_next(path, &at, &name) || !(looked ? str_is(name, "d") : fold_eq(name, STR("d"))))
            return false;
        said = str_skip(said, 2);
        deep = true;
    }
    if (!deep)
        return means_here(said, path, looked);
    said = str_skip(said, 3);
    do {
        if (means_here(said, str_skip(path, at), false))
            return true;
    } while (part_next(path, &at, &name));
    return false;
}

/* ---- rules at random ---- */

static uint64_t random_state = 0x2545f4914f6cdd1du;
static unsigned random_below(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % n);
}

static struct str random_rule(char *out, size_t room)
{
    static const char *const heads[] = {"", "", "**/", "**/", "d/**/"};
    static const char *const folders[] = {"", "", "", "d/", "\\[d\\]/", "D/", "a\\*/", "\\*\\*/"};
    static const char *const pieces[] = {"a",    "B", "b",        "c",     "*",   "?",     "[!b]", "[!",
                                         "[^a",  "]", "[a-c]",    "[\\]]", "\\*", "\\[",   "[",    "-",
                                         "\\\\", ".", "\xc3\xa9", "\xff",  "!",   "[B-b]", "[:"};
    size_t n = (size_t)snprintf(out, room, "%s%s", heads[random_below(sizeof heads / sizeof *heads)],
                                folders[random_below(sizeof folders / sizeof *folders)]);
    for (unsigned k = 1 + random_below(3); k; k--)
        n += (size_t)snprintf(out + n, room - n, "%s", pieces[random_below(sizeof pieces / sizeof *pieces)]);
    return (struct str){out, n};
}

/* ---- the judges ---- */

static struct path_rule rule_at(struct arena *mem, struct str said, const char *base, bool *ret_is)
{
    static const struct policy_world world = {.home = "/home/u", .cwd = PROJECT};
    struct path_context c = {.world = &world, .base = base};
    struct path_text t = {0};
    struct err e = {0};
    int r = path_expand(&c, said, PATH_FLAG_PATTERN, mem, &t, &e);
    *ret_is = r == 0;
    assert_true(r == 0 || (e.text[0] && strchr(e.text, '\'')));
    /* "**" + "/x" said at a flag means everywhere; here: in the project. */
    if (t.any_depth && same(t.below, "/"))
        t.below = base;
    return (struct path_rule){
        .access = PATH_HIDE, .path = t.path, .below = t.below, .any_depth = t.any_depth, .pattern = t.pattern};
}

static struct facts surveyed(struct arena *mem, const char *top, const struct path_rule *rule)
{
    struct policy policy = {.workspace = top, .expand = EXPAND_START};
    struct facts facts = {.uid = getuid(), .home = path_join(mem, top, "../home")};
    struct err e = {0};
    facts.home = path_clean(mem, facts.home);
    facts.state_home = path_join(mem, facts.home, "state");
    facts.config_home = path_join(mem, facts.home, "config");
    facts.written = path_join(mem, facts.home, "written");
    *(struct path_rule *)arena_push(mem, &policy.paths, &policy.n_paths, sizeof *rule) = *rule;
    if (survey(&policy, &facts, mem, &e) < 0)
        fail_msg("%s", e.text);
    return facts;
}

static bool was_found(const struct facts *f, const char *path)
{
    for (size_t i = 0; i < f->n_matches; i++)
        if (path_at_or_below(path, f->matches[i].real))
            return true;
    return false;
}

struct compiled {
    struct host h;
    struct plan *plan;
    struct rules rules;
};

static void compile(struct compiled *c, struct str said, enum path_access access)
{
    struct err e = {0};
    bool is;
    host_begin(&c->h);
    struct path_rule *rule = arena_push(c->h.mem, &c->h.policy.paths, &c->h.policy.n_paths, sizeof *rule);
    *rule = rule_at(c->h.mem, said, PROJECT, &is);
    rule->access = access;
    rule->origin = host_origin(&c->h, 1, LAYER_USER);
    assert_true(host_read(&c->h, "dir " PROJECT "/d\ndir " PROJECT "/D\ndir " PROJECT "/[d]\ndir " PROJECT
                                 "/a*\ndir " PROJECT "/**\n"));
    c->h.facts.n_matches = 0; /* names that come later, which the guard alone judges */
    if (plan_make(&c->h.policy, &c->h.facts, &c->h.ask, &c->plan, &e) < 0)
        fail_msg("%.*s: %s", (int)said.n, said.p, e.text);
    const struct plan_image *p = c->plan->image;
    assert_true(p->guard_bytes > 0);
    assert_int_equal(rules_load(&c->rules, (const void *)((const char *)p + p->guard_at), p->guard_bytes,
                                (const char *)p + p->strings_at, p->strings_bytes, c->h.mem),
                     0);
}

static void end(struct compiled *c)
{
    c->plan = plan_free(c->plan);
    host_end(&c->h);
}

static void judged_alike(const char *top, struct str said, unsigned long *pairs, unsigned long *meant)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct compiled hides = {0}, protects = {0};
    bool is;
    struct path_rule here = rule_at(mem, said, top, &is);
    if (!is || (!here.any_depth && !here.pattern))
        return;
    struct facts facts = surveyed(mem, top, &here);
    compile(&hides, said, PATH_HIDE);
    compile(&protects, said, PATH_PROTECT);
    for (size_t i = 0; i < N_FOLDERS * N_NAMES; i++) {
        const char *rest = arena_printf(mem, "%s%s", FOLDERS[i / N_NAMES], NAMES[i % N_NAMES]);
        const char *real = path_join(mem, top, rest), *inside = path_join(mem, PROJECT, rest);
        size_t end_at;
        const bool looked = means(said, str_of(rest), true), found = was_found(&facts, real);
        const bool all[] = {means(said, str_of(rest), false), path_rule_covers(&here, real),
                            rules_hidden(&hides.rules, str_of(inside)) != NULL,
                            rules_guarded(&protects.rules, str_of(inside), &end_at) != NULL};
        for (size_t k = 1; k < sizeof all; k++)
            if (all[k] != all[0] || found != looked)
                fail_msg("'%.*s' on '%s': reference %d (%d), policy %d, survey %d, hidden %d, protected %d",
                         (int)said.n, said.p, rest, all[0], looked, all[1], found, all[2], all[3]);
        ++*pairs;
        *meant += all[0];
    }
    end(&hides);
    end(&protects);
}

static void make_tree(char *top)
{
    struct arena *mem = arena_new(1 << 20);
    for (size_t i = 0; i < N_FOLDERS; i++) {
        const char *folder = path_clean(mem, path_join(mem, top, FOLDERS[i]));
        assert_true(mkdir(folder, 0755) == 0 || errno == EEXIST);
        for (size_t k = 0; k < N_NAMES; k++) {
            int fd = open(path_join(mem, folder, NAMES[k]), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
            assert_true(fd >= 0);
            close(fd);
        }
    }
    arena_free(mem);
}

static void everybody_judges_alike(void **state)
{
    enum { SECONDS = 6 };
    static const char *const first[] = {"a[!b]c", "[\\]]x*", "**/\\[d\\]/*", "**/\\*\\*/?", "d/**/[!b]", "**/\\*",
                                        "?",      "*",       "**/a\\*/b",    "[d]"};
    char folder[] = "/tmp/judges-test-XXXXXX", top[64], command[96], text[128];
    unsigned long pairs = 0, meant = 0, rules = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(top, sizeof top, "%s/p", folder);
    make_tree(top);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        judged_alike(top, str_of(first[i]), &pairs, &meant);
    /* PINFOLD_JUDGES_RULES: so many, however long it takes, and others each time */
    const char *many = getenv("PINFOLD_JUDGES_RULES");
    if (many)
        random_state ^= (uint64_t)time(NULL) << 20;
    const clock_t until = clock() + SECONDS * CLOCKS_PER_SEC;
    const unsigned long most = many ? strtoul(many, NULL, 10) : (unsigned long)tries(2000);
    for (; rules < most && (many || clock() < until); rules++)
        judged_alike(top, random_rule(text, sizeof text), &pairs, &meant);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    print_message("%lu rules, %lu pairs, %lu of them meant\n", rules, pairs, meant);
    assert_true(pairs > 1000 && meant > pairs / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everybody_judges_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
