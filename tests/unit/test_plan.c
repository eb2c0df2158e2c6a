/*
 * The parts of plan/ apart from whole plans: paths, sorting, the image and its check, digests. Whole plans are golden
 * (test_plan_golden.c).
 */
#include "unit.h"

#include <time.h>

#include "plan/make.h"
#include "policy/build.h"
#include "test_plan_host.h"

static void paths(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(1u << 20);
    assert_true(path_order("/a", "/a/b") < 0);
    assert_true(path_order("/a/b", "/a-b") < 0); /* all of /a before its neighbour */
    assert_true(path_order("/a\377", "/a/z") > 0);
    assert_int_equal(path_order("/x/y", "/x/y"), 0);
    assert_true(path_below("/a/b", "/a"));
    assert_true(path_below("/a", "/"));
    assert_false(path_below("/", "/"));
    assert_false(path_below("/ab", "/a"));
    assert_false(path_below("/a", "/a"));
    assert_false(path_below("/a", "/a/b"));
    assert_true(path_at_or_below("/a", "/a"));
    assert_string_equal(path_rest("/a/b/c", "/a"), "b/c");
    assert_string_equal(path_rest("/a", "/"), "a");
    assert_string_equal(path_rest("/a", "/a"), "");
    assert_string_equal(path_name("/a/b"), "b");
    assert_string_equal(path_join(mem, "/", "a"), "/a");
    assert_string_equal(path_join(mem, "/a", "b/c"), "/a/b/c");
    assert_string_equal(path_join(mem, "/a", ""), "/a");
    assert_null(path_join(mem, NULL, "x"));
    assert_string_equal(path_dir(mem, "/a/b"), "/a");
    assert_string_equal(path_dir(mem, "/a"), "/");
    assert_string_equal(path_dir(mem, "/"), "/");
    assert_string_equal(path_clean(mem, "//a/./b/../c//"), "/a/c");
    assert_string_equal(path_clean(mem, "/../.."), "/");
    assert_string_equal(path_moved(mem, "/a/b", "/a", "/x/y"), "/x/y/b");
    assert_string_equal(path_moved(mem, "/a", "/a", "/"), "/");
}

static const char *nth(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

static void find_above(void **state)
{
    (void)state;
    static const char *const list[] = {"/a", "/a/b", "/a/b/c", "/a-b", "/a-b/c", "/x"};
    assert_int_equal(path_find_above("/a/b/c/d", 6, nth, list), 2);
    assert_int_equal(path_find_above("/a/b/c", 6, nth, list), 1);
    assert_int_equal(path_find_above("/a/z/c", 6, nth, list), 0);
    assert_int_equal(path_find_above("/a-b/c", 6, nth, list), 3);
    assert_int_equal(path_find_above("/a", 6, nth, list), SIZE_MAX);
    assert_int_equal(path_find_above("/y/z", 6, nth, list), SIZE_MAX);
    assert_int_equal(path_find_above("/", 6, nth, list), SIZE_MAX);
    static const char *const root[] = {"/"};
    assert_int_equal(path_find_above("/y/z", 1, nth, root), 0);
    assert_int_equal(path_find_above("/", 1, nth, root), SIZE_MAX);
}

static int by_first(const void *a, const void *b)
{
    const int *const *x = a, *const *y = b;
    return **x - **y;
}

/* Against the plain definition: in order, and equal ones as they came. */
static void sorting(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(8u << 20);
    static int values[300][2];
    const void *at[300];
    unsigned seed = 1;
    for (size_t n = 0; n < 300; n = n < 40 ? n + 1 : n + 37) {
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            values[i][0] = n % 3 ? (int)(seed >> 16 & 31) : (int)i;
            values[i][1] = (int)i;
            at[i] = values[i];
        }
        assert_int_equal(sort_pointers(mem, at, n, by_first), 0);
        for (size_t i = 1; i < n; i++) {
            const int *before = at[i - 1], *here = at[i];
            assert_true(before[0] < here[0] || (before[0] == here[0] && before[1] < here[1]));
        }
    }
}

static struct plan *plan_from(struct host *h, const char *text)
{
    struct plan *p = NULL;
    struct err e = {0};
    host_begin(h);
    assert_true(host_read(h, text));
    int r = plan_make(&h->policy, &h->facts, &h->ask, &p, &e);
    if (r < 0)
        fail_msg("%s", e.text);
    return p;
}

static const char *const rich = "dir /home/u/.ssh\nhide /home/u/.ssh\nhide /home/u/.kube\ncache /home/u/.npm\n"
                                "name .git/hooks any dir\nrw /data\ndir /data\nhide **/.env\nlimit open_files 100\n";

/* Whatever one byte of an image becomes, the check answers, and what it accepts can be printed without harm. */
static void image_check(void **state)
{
    (void)state;
    struct host h;
    struct plan *p = plan_from(&h, rich);
    size_t n = p->image->bytes;
    assert_int_equal(plan_image_check(p->image, n), 0);
    assert_int_equal(plan_image_check(p->image, n - 1), -EBADMSG);
    assert_int_equal(plan_image_check(p->image, 0), -EBADMSG);
    unsigned char *copy = malloc(n);
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(copy, p->image, n);
        copy[i] ^= i % 2 ? 0xff : 0x01;
        if (plan_image_check(copy, n) < 0) {
            refused++;
            continue;
        }
        auto_buf struct buf out = BUF(1u << 20);
        const struct plan_image *image = (const void *)copy;
        for (uint32_t k = 0; k < image->n_steps; k++)
            step_print(image, &plan_steps(image)[k], &out);
        assert_true(buf_ok(&out));
    }
    assert_true(refused > n / 10);
    free(copy);
    plan_free(p);
    host_end(&h);
}

/* One thing wrong at a time, each refused. */
static void image_faults(void **state)
{
    (void)state;
    struct host h;
    struct plan *p = plan_from(&h, rich);
    size_t n = p->image->bytes;
    uint32_t first[STEP_COUNT] = {0};
    for (uint32_t i = p->image->n_steps; i-- > 0;)
        first[plan_steps(p->image)[i].kind] = i;
    uint32_t words = p->image->strings_bytes;
    for (int what = 0; what < 14; what++) {
        struct plan_image *image = malloc(n);
        memcpy(image, p->image, n);
        struct step *s = (void *)((char *)image + image->steps_at);
        struct guard_table *t = (void *)((char *)image + image->guard_at);
        switch (what) {
        case 0:
            image->magic++;
            break;
        case 1:
            image->n_steps = 0x20000000;
            break;
        case 2:
            image->strings_at = (uint32_t)n;
            break;
        case 3:
            image->guard_at = 2;
            break;
        case 4:
            image->tier = 2;
            break;
        case 5:
            s[first[STEP_ATTACH]].a = words;
            break;
        case 6:
            s[first[STEP_ATTACH]].a = 0; /* no absolute path */
            break;
        case 7:
            s[first[STEP_VEIL]].b += 1;
            break;
        case 8:
            s[first[STEP_STUB]].kind = STEP_ENTER;
            break;
        case 9:
            s[first[STEP_SOURCE]].b = 0xffff;
            break;
        case 10:
            s[first[STEP_FILTER]].a = FILTER_VARIANTS;
            break;
        case 11:
            s[0].kind = STEP_COUNT;
            break;
        case 12:
            t->n_rules = 1000000;
            break;
        case 13:
            t->rules[0].text = words + 1;
            break;
        }
        if (plan_image_check(image, n) != -EBADMSG)
            fail_msg("fault %d was accepted", what);
        free(image);
    }
    plan_free(p);
    host_end(&h);
}

/* A stub or destination that climbs is no path of a plan. */
static void image_climbing(void **state)
{
    (void)state;
    struct host h;
    struct plan *p = plan_from(&h, "dir /home/u/.aa\nhide /home/u/.aa\n");
    size_t n = p->image->bytes;
    char *copy = malloc(n);
    memcpy(copy, p->image, n);
    struct plan_image *image = (void *)copy;
    char *name = copy + image->strings_at, *end = name + image->strings_bytes;
    bool found = false;
    for (; name < end; name += strlen(name) + 1) {
        if (strcmp(name, ".aa") == 0) {
            memcpy(name, "../", 3);
            found = true;
        }
    }
    assert_true(found);
    assert_int_equal(plan_image_check(copy, n), -EBADMSG);
    free(copy);
    plan_free(p);
    host_end(&h);
}

static void strings_once(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct image_writer w;
    assert_int_equal(image_begin(&w, mem), 0);
    assert_int_equal(image_string(&w, ""), 0);
    assert_int_equal(image_string(&w, NULL), 0);
    static uint32_t at[20000];
    char text[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, "/path/%d", i);
        at[i] = image_string(&w, text);
        assert_int_not_equal(at[i], UINT32_MAX);
    }
    size_t bytes = w.n_strings;
    for (int i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, "/path/%d", i);
        assert_int_equal(image_string(&w, text), at[i]);
        assert_string_equal(w.strings + at[i], text);
    }
    assert_int_equal(w.n_strings, bytes);
}

static struct policy *policy_of(const char *text, const char *home)
{
    struct policy_world world = {.home = home, .cwd = "/home/u/proj", .user_name = "u"};
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;
    struct err e = {0};
    int r = policy_add_text(b, LAYER_USER, POLICY_YAML, "/home/u/policy.yaml", str_of(text), true, &e);
    if (r == 0)
        r = policy_build(b, &p, &e);
    policy_builder_free(b);
    if (r < 0)
        fail_msg("%s", e.text);
    return p;
}

static void digests_of(struct policy *policy, const char *const *variables, char plan[65], char of_policy[65])
{
    struct host h;
    struct plan *p = NULL;
    struct err e = {0};
    host_begin(&h);
    struct policy own = h.policy;
    h.policy = *policy;
    assert_true(host_read(&h, "dir /home/u/.ssh\n"));
    h.ask.environ = variables;
    if (plan_make(&h.policy, &h.facts, &h.ask, &p, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(plan_digests(p, &e), 0);
    assert_int_equal(strlen(p->digest), 64);
    memcpy(plan, p->digest, 65);
    memcpy(of_policy, p->policy_digest, 65);
    plan_free(p);
    h.policy = own;
    host_end(&h);
}

/* The policy's digest is the policy's alone; the plan's changes with what is done and with names of variables. */
static void digests(void **state)
{
    (void)state;
    const char *const none[] = {NULL}, *const a[] = {"TERM=xterm", NULL}, *const b[] = {"TERM=vt100", NULL};
    struct policy *one = policy_of("version: 1\nextends: workspace\n", "/home/u");
    struct policy *two = policy_of("version: 1\nextends: workspace\nfiles:\n  hide: [/data]\n", "/home/u");
    char plan[4][65], policy[4][65];
    digests_of(one, none, plan[0], policy[0]);
    digests_of(one, a, plan[1], policy[1]);
    digests_of(one, b, plan[2], policy[2]);
    digests_of(two, none, plan[3], policy[3]);
    assert_string_equal(policy[0], policy[1]);
    assert_string_not_equal(policy[0], policy[3]);
    assert_string_not_equal(plan[0], plan[1]);
    assert_string_equal(plan[1], plan[2]); /* values are nobody's business */
    assert_string_not_equal(plan[0], plan[3]);
    static const char *const set[] = {"A: x", "A: y", "B: x"};
    char values[3][65];
    for (int i = 0; i < 3; i++) {
        char text[80];
        snprintf(text, sizeof text, "version: 1\nextends: workspace\nenv:\n  set:\n    %s\n", set[i]);
        struct policy *p = policy_of(text, "/home/u");
        digests_of(p, none, plan[i], policy[i]);
        policy_values_digest(p, "salt", values[i]);
        policy_free(p);
    }
    assert_string_equal(policy[0], policy[1]);
    assert_string_equal(plan[0], plan[1]);
    assert_string_not_equal(policy[0], policy[2]);
    assert_string_not_equal(values[0], values[1]);
    assert_string_not_equal(values[0], values[2]);
    policy_free(one);
    policy_free(two);
}

/* The default profile makes a plan whatever of what it names exists. */
static void default_profile(void **state)
{
    (void)state;
    struct policy *policy = policy_of("version: 1\nextends: workspace\n", "/home/u");
    struct host h;
    struct plan *p = NULL;
    struct err e = {0};
    host_begin(&h);
    h.policy = *policy;
    assert_true(
        host_read(&h, "dir /home/u/.ssh\ndir /home/u/.cache\ndir /home/u/.config/gh\nfile /etc/shadow refused\n"));
    if (plan_make(&h.policy, &h.facts, &h.ask, &p, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(plan_image_check(p->image, p->image->bytes), 0);
    assert_int_equal(p->lost & ~F(CGROUP_LIMITS) & ~F(LIMIT_CPU), 0);
    assert_null(p->read_on_every_open); /* nothing in it costs every open */
    size_t veils = 0;
    for (uint32_t i = 0; i < p->image->n_steps; i++) {
        const struct step *s = &plan_steps(p->image)[i];
        veils += s->kind == STEP_VEIL || s->kind == STEP_COVER;
        assert_int_not_equal(s->kind, STEP_ROOT_EMPTY);
    }
    assert_int_equal(veils, 2); /* of the home, and of /etc for the hosts file */
    plan_free(p);
    policy_free(policy);
    h.policy = (struct policy){0};
    host_end(&h);
}

/* A plan that cannot be made leaves its output alone and says something, also when nobody listens. */
static void failing(void **state)
{
    (void)state;
    struct host h;
    struct plan *const mark = (struct plan *)(uintptr_t)8, *p = mark;
    host_begin(&h);
    assert_true(host_read(&h, "workspace /nowhere\n"));
    assert_int_equal(plan_make(&h.policy, &h.facts, &h.ask, &p, NULL), -ENOENT);
    assert_ptr_equal(p, mark);
    assert_null(plan_free(NULL));
    host_end(&h);
}

static void facts_found(void **state)
{
    (void)state;
    struct path_fact list[] = {{.asked = "/a"}, {.asked = "/a b"}, {.asked = "/a/b"}, {.asked = "/z"}};
    struct facts f = {.paths = list, .n_paths = 4};
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(facts_path(&f, list[i].asked), &list[i]);
    assert_null(facts_path(&f, "/"));
    assert_null(facts_path(&f, "/zz"));
}

static void step_names(void **state)
{
    (void)state;
    assert_string_equal(step_name(STEP_PROC_LOCK), "proc-lock");
    assert_string_equal(step_name(STEP_COUNT), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),        cmocka_unit_test(find_above),   cmocka_unit_test(sorting),
        cmocka_unit_test(image_check),  cmocka_unit_test(image_faults), cmocka_unit_test(image_climbing),
        cmocka_unit_test(strings_once), cmocka_unit_test(digests),      cmocka_unit_test(default_profile),
        cmocka_unit_test(failing),      cmocka_unit_test(facts_found),  cmocka_unit_test(step_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
