/*
 * The survey against a real directory tree of its own making. What it says of each path is compared with what was
 * made.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "survey/listing.h"
#include "survey/survey.h"
#include "match/path.h"
#include "policy/build.h"

struct tree {
    char top[64];
    struct arena *mem;
    struct policy policy;
    struct facts facts;
};

static char *in(struct tree *t, const char *rest)
{
    return path_join(t->mem, t->top, rest);
}

static void make_dir(struct tree *t, const char *rest)
{
    for (char *p = in(t, rest), *slash = p + strlen(t->top) + 1; slash;) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = 0;
        assert_true(mkdir(p, 0755) == 0 || errno == EEXIST);
        if (slash)
            *slash++ = '/';
    }
}

static void make_file(struct tree *t, const char *rest)
{
    int fd = open(in(t, rest), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static void make_link(struct tree *t, const char *rest, const char *target)
{
    assert_int_equal(symlink(target, in(t, rest)), 0);
}

static int begin(void **state)
{
    struct tree *t = calloc(1, sizeof *t);
    strcpy(t->top, "/tmp/survey-test-XXXXXX");
    assert_non_null(mkdtemp(t->top));
    assert_int_equal(chmod(t->top, 0755), 0);
    t->mem = arena_new(256u << 20);
    t->policy.workspace = t->top;
    t->facts.home = in(t, "home");
    t->facts.state_home = in(t, "home/.local/state");
    t->facts.config_home = in(t, "home/.config");
    t->facts.written = in(t, "home/.local/state/pinfold/written");
    t->facts.uid = getuid();
    make_dir(t, "home");
    *state = t;
    return 0;
}

static int end(void **state)
{
    struct tree *t = *state;
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", t->top, t->top);
    assert_int_equal(system(command), 0);
    t->mem = arena_free(t->mem);
    free(t);
    return 0;
}

static void add(struct tree *t, enum path_access access, const char *path)
{
    struct path_rule *r = arena_push(t->mem, &t->policy.paths, &t->policy.n_paths, sizeof *r);
    *r = (struct path_rule){.access = access, .path = path, .below = "/"};
    r->pattern = strpbrk(path, "*?[") != NULL;
}

static const struct path_fact *surveyed(struct tree *t, const char *rest)
{
    struct err e = {0};
    if (!t->facts.paths && survey(&t->policy, &t->facts, t->mem, &e) < 0)
        fail_msg("%s", e.text);
    const struct path_fact *f = facts_path(&t->facts, in(t, rest));
    assert_non_null(f);
    return f;
}

static void check(struct tree *t, const char *asked, enum path_type type, const char *real, const char *parent)
{
    const struct path_fact *f = surveyed(t, asked);
    assert_int_equal(f->type, type);
    assert_string_equal(f->real, in(t, real));
    assert_string_equal(f->parent, in(t, parent));
}

static void kinds(void **state)
{
    struct tree *t = *state;
    make_dir(t, "d/e");
    make_file(t, "d/f");
    assert_int_equal(mkfifo(in(t, "d/p"), 0600), 0);
    static const char *const asked[] = {"d", "d/e", "d/f", "d/p", "d/none", "d/none/deep/er", "d/f/below", "d/f/b/c"};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        add(t, PATH_HIDE, in(t, asked[i]));
    check(t, "d", PATH_DIR, "d", "");
    check(t, "d/e", PATH_DIR, "d/e", "d");
    check(t, "d/f", PATH_FILE, "d/f", "d");
    check(t, "d/p", PATH_OTHER, "d/p", "d");
    check(t, "d/none", PATH_MISSING, "d/none", "d");
    check(t, "d/none/deep/er", PATH_MISSING, "d/none/deep/er", "d");
    check(t, "d/f/below", PATH_MISSING, "d/f/below", "d");
    check(t, "d/f/b/c", PATH_MISSING, "d/f/b/c", "d");
    assert_int_equal(surveyed(t, "d/f/below")->no, ENOTDIR);
    assert_int_equal(surveyed(t, "d/none")->no, ENOENT);
    assert_null(surveyed(t, "d")->link);
    struct stat st;
    assert_int_equal(stat(in(t, "d/f"), &st), 0);
    const struct path_fact *f = surveyed(t, "d/f");
    assert_int_equal(f->ino, st.st_ino);
    assert_int_equal(f->mode, 0644);
    assert_int_equal(f->uid, getuid());
}

static void links(void **state)
{
    struct tree *t = *state;
    make_dir(t, "real/sub");
    make_file(t, "real/sub/file");
    make_link(t, "abs", in(t, "real"));
    make_link(t, "rel", "./real/../real/sub");
    make_link(t, "chain", "rel");
    make_link(t, "dangling", "gone/away");
    make_link(t, "self", "self");
    make_link(t, "ping", "pong");
    make_link(t, "pong", "ping");
    make_link(t, "real/up", "..");
    make_link(t, "tofile", "real/sub/file");
    static const char *const asked[] = {"abs",        "abs/sub", "rel/file", "chain",   "chain/new",       "dangling",
                                        "dangling/x", "self",    "ping/x",   "real/up", "real/up/real/up", "tofile",
                                        "tofile/x"};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        add(t, PATH_HIDE, in(t, asked[i]));
    check(t, "abs", PATH_DIR, "real", "");
    assert_string_equal(surveyed(t, "abs")->link, in(t, "abs"));
    check(t, "abs/sub", PATH_DIR, "real/sub", "real");
    assert_null(surveyed(t, "abs/sub")->link);
    check(t, "rel/file", PATH_FILE, "real/sub/file", "real/sub");
    check(t, "chain", PATH_DIR, "real/sub", "real");
    assert_string_equal(surveyed(t, "chain")->link, in(t, "chain"));
    check(t, "chain/new", PATH_MISSING, "real/sub/new", "real/sub");
    check(t, "dangling", PATH_MISSING, "gone/away", "");
    assert_null(surveyed(t, "dangling/x")->link);
    check(t, "dangling/x", PATH_MISSING, "gone/away/x", "");
    assert_string_equal(surveyed(t, "real/up")->real, t->top);
    assert_string_equal(surveyed(t, "real/up")->parent, "/tmp");
    check(t, "tofile/x", PATH_MISSING, "real/sub/file/x", "real/sub");
    /* A loop: the first link of it is where the path ends. */
    check(t, "self", PATH_MISSING, "self", "");
    assert_int_equal(surveyed(t, "self")->no, ELOOP);
    check(t, "ping/x", PATH_MISSING, "ping/x", "");
}

static void odd_names(void **state)
{
    struct tree *t = *state;
    static const char *const names[] = {"a b", "new\nline", "\xff\xfe", "quote'\"", "\033[2J", "-rf", "..."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        make_dir(t, names[i]);
        add(t, PATH_RO, in(t, names[i]));
        t->policy.paths[i].pattern = false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check(t, names[i], PATH_DIR, names[i], "");
}

/* As somebody who may not search a directory: the fact names it, and nothing below is claimed to be missing. */
static void unreadable(void **state)
{
    struct tree *t = *state;
    make_dir(t, "closed/in");
    make_file(t, "secret");
    assert_int_equal(chmod(in(t, "secret"), 0600), 0);
    assert_int_equal(chmod(in(t, "closed"), 0700), 0);
    add(t, PATH_HIDE, in(t, "closed/in"));
    add(t, PATH_HIDE, in(t, "closed"));
    add(t, PATH_HIDE, in(t, "secret"));
    if (getuid() != 0)
        skip();
    pid_t pid = fork_child();
    if (pid == 0) {
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(9);
        t->facts.uid = 65534;
        struct err e = {0};
        if (survey(&t->policy, &t->facts, t->mem, &e) < 0)
            _exit(1);
        const struct path_fact *deep = facts_path(&t->facts, in(t, "closed/in"));
        const struct path_fact *dir = facts_path(&t->facts, in(t, "closed"));
        const struct path_fact *file = facts_path(&t->facts, in(t, "secret"));
        bool good = deep->type == PATH_UNREADABLE && deep->no == EACCES && same(deep->parent, in(t, "closed")) &&
                    dir->type == PATH_DIR && dir->refused && dir->foreign && file->refused && file->type == PATH_FILE;
        _exit(good ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void through_mounts(void **state)
{
    struct tree *t = *state;
    make_dir(t, "host/made");
    make_dir(t, "place");
    struct mount_rule m[] = {{.from = in(t, "host"), .to = in(t, "place")},
                             {.from = in(t, "host/made"), .to = in(t, "place/x")}};
    t->policy.mounts = m;
    t->policy.n_mounts = 2;
    add(t, PATH_RO, in(t, "place/made"));
    add(t, PATH_RO, in(t, "place/x/y"));
    check(t, "place/made", PATH_DIR, "host/made", "host");
    check(t, "place/x/y", PATH_MISSING, "host/made/y", "host/made");
    check(t, "place/x", PATH_MISSING, "host/x", "host"); /* a target in a target lies in its tree */
    check(t, "place", PATH_DIR, "place", "");
}

static void patterns(void **state)
{
    struct tree *t = *state;
    make_dir(t, "p/sub/deep");
    make_dir(t, "p/k.d");
    make_file(t, "p/a.key");
    make_file(t, "p/b.txt");
    make_file(t, "p/sub/c.key");
    make_file(t, "p/sub/deep/.env");
    make_link(t, "p/sub/loop", "..");
    add(t, PATH_HIDE, in(t, "p/*.key"));
    add(t, PATH_HIDE, in(t, "none/*.key"));
    struct path_rule *any = arena_push(t->mem, &t->policy.paths, &t->policy.n_paths, sizeof *any);
    *any = (struct path_rule){.access = PATH_HIDE, .path = "deep/.env", .any_depth = true, .below = in(t, "p")};
    t->policy.expand = EXPAND_START;
    (void)surveyed(t, "p");
    assert_int_equal(t->facts.n_matches, 2);
    assert_string_equal(t->facts.matches[0].real, in(t, "p/a.key"));
    assert_int_equal(t->facts.matches[0].rule, 0);
    assert_int_equal(t->facts.matches[0].type, PATH_FILE);
    assert_string_equal(t->facts.matches[1].real, in(t, "p/sub/deep/.env"));
    assert_int_equal(t->facts.matches[1].rule, 2);
}

static void add_start(struct tree *t, const char *name, const char *below)
{
    struct path_rule *any = arena_push(t->mem, &t->policy.paths, &t->policy.n_paths, sizeof *any);
    *any = (struct path_rule){.access = PATH_HIDE, .path = name, .any_depth = true, .below = in(t, below)};
    any->pattern = strpbrk(name, "*?[") != NULL;
    static struct origin flags = {.layer = LAYER_FLAGS, .file = "--policy"};
    t->policy.origins = &flags;
    t->policy.n_origins = 1;
    t->policy.expand = EXPAND_START;
}

static void make_many(struct tree *t, const char *dir, int n)
{
    char name[280];
    const char *first = NULL;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/%0200d", dir, i);
        /* Names of one file: a file of its own for each takes ten times as long to make. */
        if (!first || link(first, in(t, name)) < 0) {
            make_file(t, name);
            first = in(t, name);
        }
    }
}

/* The walk takes memory for what matches alone. */
static void walk_is_cheap(void **state)
{
    struct tree *t = *state;
    make_dir(t, "many/sub");
    make_many(t, "many/sub", 4000);
    make_file(t, "many/sub/.env");
    struct arena *all = t->mem;
    add_start(t, ".env", "many");
    t->mem = arena_new(512u << 10); /* the paths would take twice that */
    struct err e = {0};
    int r = survey(&t->policy, &t->facts, t->mem, &e);
    size_t found = t->facts.n_matches;
    t->mem = arena_free(t->mem);
    t->mem = all;
    assert_int_equal(r, 0);
    assert_int_equal(found, 1);
}

static void refused(struct tree *t, const char *part)
{
    struct err e = {0};
    assert_true(survey(&t->policy, &t->facts, t->mem, &e) < 0);
    if (!strstr(e.text, part) || !strstr(e.text, "expand: never") || !strstr(e.text, "hide **/"))
        fail_msg("%s", e.text);
}

/* The bounds of a walk name the rule, themselves and the remedy. */
static void walk_too_deep(void **state)
{
    struct tree *t = *state;
    char path[400] = "deep";
    for (int i = 0; i < 130; i++)
        strcat(path, "/d");
    make_dir(t, path);
    add_start(t, ".env", "deep");
    refused(t, "more than 128 levels of directories");
}

static void walk_too_many(void **state)
{
    struct tree *t = *state;
    make_dir(t, "many");
    make_many(t, "many", 10001);
    add_start(t, "0*", "many");
    refused(t, "more than 10000 names");
}

static void walk_too_long(void **state)
{
    struct tree *t = *state;
    char name[201];
    memset(name, 'n', 200);
    name[200] = 0;
    make_dir(t, "long");
    int dir = open(in(t, "long"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; dir >= 0 && i < 25; i++) {
        assert_int_equal(mkdirat(dir, name, 0755), 0);
        int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = next;
    }
    assert_true(dir >= 0);
    close(dir);
    add_start(t, ".env", "long");
    refused(t, "paths of more than 4095 bytes");
}

/* Nothing is walked unless asked. */
static void no_walk(void **state)
{
    struct tree *t = *state;
    make_file(t, ".env");
    struct path_rule *any = arena_push(t->mem, &t->policy.paths, &t->policy.n_paths, sizeof *any);
    *any = (struct path_rule){.access = PATH_HIDE, .path = ".env", .any_depth = true, .below = t->top};
    (void)surveyed(t, "");
    assert_int_equal(t->facts.n_matches, 0);
    assert_int_equal(t->facts.n_dirs, 0);
}

static void listings(void **state)
{
    struct tree *t = *state;
    make_dir(t, "l/hidden");
    make_dir(t, "l/b");
    make_file(t, "l/a");
    make_link(t, "l/link", "b");
    add(t, PATH_HIDE, in(t, "l/hidden"));
    t->facts.tier = TIER_LANDLOCK;
    (void)surveyed(t, "l/hidden");
    const struct dir_fact *found = NULL;
    for (size_t i = 0; i < t->facts.n_dirs; i++) {
        if (i)
            assert_true(path_order(t->facts.dirs[i - 1].path, t->facts.dirs[i].path) < 0);
        if (same(t->facts.dirs[i].path, in(t, "l")))
            found = &t->facts.dirs[i];
    }
    assert_non_null(found);
    assert_int_equal(found->n_entries, 3);
    assert_string_equal(found->entries[0].name, "a");
    assert_false(found->entries[0].directory);
    assert_string_equal(found->entries[1].name, "b");
    assert_true(found->entries[1].directory);
    assert_string_equal(found->entries[2].name, "hidden");
    assert_string_equal(t->facts.dirs[0].path, "/");
}

/* Of this process alone, whatever else the machine does. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A thousand paths, half of them there; the bound leaves room for sanitizers and emulation. */
static void thousand(void **state)
{
    struct tree *t = *state;
    char name[64];
    make_dir(t, "many/deep/er");
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "many/deep/er/n%d", i);
        if (i % 2)
            make_dir(t, name);
        add(t, PATH_RO, in(t, name));
    }
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        auto_arena struct arena *mem = arena_new(64u << 20);
        struct facts f = {.home = t->facts.home, .uid = getuid()};
        double start = seconds();
        assert_int_equal(survey(&t->policy, &f, mem, NULL), 0);
        double took = seconds() - start;
        best = took < best ? took : best;
        assert_true(f.n_paths >= 1000);
    }
    print_message("1,000 paths: %.0f us\n", best * 1e6);
    assert_true(best < 0.05);
}

/* The default profile on this machine, as every run does it. */
static void default_profile(void **state)
{
    struct tree *t = *state;
    const char *home = getenv("HOME") ? getenv("HOME") : "/";
    struct policy_world world = {.home = home, .cwd = t->top, .user_name = "u"};
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;
    struct err e = {0};
    assert_int_equal(
        policy_add_text(b, LAYER_USER, POLICY_YAML, "/x", STR("version: 1\nextends: workspace\n"), true, &e), 0);
    assert_int_equal(policy_build(b, &p, &e), 0);
    policy_builder_free(b);
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        auto_arena struct arena *mem = arena_new(64u << 20);
        struct facts f = {.home = home, .uid = getuid()};
        double start = seconds();
        assert_int_equal(survey(p, &f, mem, &e), 0);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    print_message("default profile: %zu rules, %.0f us\n", p->n_paths, best * 1e6);
    assert_true(best < 0.05);
    policy_free(p);
}

static void no_room(void **state)
{
    struct tree *t = *state;
    for (size_t bytes = 0; bytes < 200000; bytes += 1777) {
        auto_arena struct arena *mem = arena_new(bytes);
        struct facts f = {.home = "/root", .uid = getuid()};
        struct err e = {0};
        int r = survey(&t->policy, &f, mem, &e);
        if (r < 0) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(e.kind, ERR_SYSTEM);
        }
    }
}

static void a_listing_never_denies_what_is_there(void **state)
{
    struct tree *t = *state;
    struct dir_listing l;
    char name[64];
    unsigned absent = 0;
    make_dir(t, "names");
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "names/.File-%d", i);
        make_file(t, name);
    }
    assert_true(listing_read(in(t, "names"), &l));
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, ".File-%d", i);
        assert_true(listing_may_have(&l, str_of(name)));
        snprintf(name, sizeof name, ".fILE-%d", i); /* a directory may fold case */
        assert_true(listing_may_have(&l, str_of(name)));
        snprintf(name, sizeof name, "absent-%d", i);
        absent += !listing_may_have(&l, str_of(name));
    }
    assert_true(absent > 130);
    assert_true(listing_may_have(&l, str_of("\xc3\xa9"))); /* nothing is known of names beyond ASCII */
}

static void a_listing_says_when_it_cannot_tell(void **state)
{
    struct tree *t = *state;
    struct dir_listing l;
    char name[256];
    make_dir(t, "large");
    for (int i = 0; i < 120; i++) {
        snprintf(name, sizeof name, "large/%0200d", i);
        make_file(t, name);
    }
    assert_false(listing_read(in(t, "large"), &l));
    make_dir(t, "beyond");
    make_file(t, "beyond/\xe2\x84\xaa"); /* the Kelvin sign, which folds to k */
    assert_false(listing_read(in(t, "beyond"), &l));
    assert_false(listing_read(in(t, "missing"), &l));
    assert_false(listing_read("/proc/self", &l));
    make_link(t, "link", in(t, "home"));
    assert_false(listing_read(in(t, "link"), &l));
}

/* As what a policy names in a home of many files: what is there is found, and nothing else. */
static void names_of_a_home(void **state)
{
    struct tree *t = *state;
    char name[64];
    for (int i = 0; i < 40; i += 4) {
        snprintf(name, sizeof name, "home/.tool%d", i);
        make_file(t, name);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "home/.tool%d", i);
        add(t, PATH_HIDE, in(t, name));
    }
    (void)surveyed(t, "home/.tool0");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "home/.tool%d", i);
        assert_int_equal(facts_path(&t->facts, in(t, name))->type, i % 4 ? PATH_MISSING : PATH_FILE);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(kinds),
                                       TEST(links),
                                       TEST(odd_names),
                                       TEST(unreadable),
                                       TEST(through_mounts),
                                       TEST(patterns),
                                       TEST(no_walk),
                                       TEST(walk_is_cheap),
                                       TEST(walk_too_deep),
                                       TEST(walk_too_many),
                                       TEST(walk_too_long),
                                       TEST(listings),
                                       TEST(thousand),
                                       TEST(no_room),
                                       TEST(default_profile),
                                       TEST(a_listing_never_denies_what_is_there),
                                       TEST(a_listing_says_when_it_cannot_tell),
                                       TEST(names_of_a_home)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
