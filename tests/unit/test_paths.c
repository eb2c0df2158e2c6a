/*
 * protocol/paths.c: names of the host and of the box. Mounts in mounts, and what has no name on the other side.
 */
#include "unit.h"
#include <errno.h>
#include <stdio.h>
#include "protocol/paths.h"

struct mount {
    char kind;
    const char *host, *box;
};

static struct {
    struct arena *mem;
    struct buf bytes;
    struct path_table table;
} t;

static int load(const struct mount *m, size_t n)
{
    arena_free(t.mem);
    buf_free(&t.bytes);
    t.mem = arena_new(1 << 20);
    t.bytes = BUF(1 << 20);
    for (size_t i = 0; i < n; i++) {
        buf_char(&t.bytes, m[i].kind);
        buf_put(&t.bytes, m[i].host, strlen(m[i].host) + 1);
        buf_put(&t.bytes, m[i].box, strlen(m[i].box) + 1);
    }
    return paths_load(&t.table, t.bytes.p, t.bytes.n, t.mem);
}
#define LOAD(mounts) assert_int_equal(load(mounts, sizeof(mounts) / sizeof *(mounts)), 0)

struct line {
    const char *from, *to;
    int mapped;
};

static void check(enum path_way way, const struct line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf out = BUF(1 << 16);
        int r = paths_translate(&t.table, way, str_of(lines[i].from), &out);
        if (r != lines[i].mapped || strcmp(buf_cstr(&out), lines[i].to) != 0)
            fail_msg("%s: %d \"%s\", not %d \"%s\"", lines[i].from, r, buf_cstr(&out), lines[i].mapped, lines[i].to);
        buf_free(&out);
    }
}
#define CHECK(way, lines) check(way, lines, sizeof(lines) / sizeof *(lines))

/* A box as `run` makes it, with the workspace under a name of its own, a mount in a mount, and one over a mount. */
static const struct mount usual[] = {
    {'r', "/", "/"},
    {'w', "/home/u/proj", "/workspace"},
    {'w', "/srv/data", "/workspace/data"},
    {'r', "/srv/data/public", "/public"},
    {'p', "", "/tmp"},
    {'w', "/srv/scratch", "/tmp/scratch"},
    {'p', "", "/workspace/.cache"},
};

static void test_to_box(void **state)
{
    (void)state;
    static const struct line lines[] = {
        {"/home/u/proj", "/workspace", 1},
        {"/home/u/proj/", "/workspace/", 1},
        {"/home/u/proj/a/b.c", "/workspace/a/b.c", 1},
        {"/home/u/project", "/home/u/project", 1},
        {"/home/u/proj/../proj/x", "/workspace/x", 1},
        {"/home/u/./proj//x", "/workspace/x", 1},
        {"/home/u/proj/..", "/home/u", 1},
        {"/srv/data/x", "/workspace/data/x", 1},
        {"/srv/data/public/x", "/public/x", 1},
        {"/srv/scratch/x", "/tmp/scratch/x", 1},
        {"/etc/hosts", "/etc/hosts", 1},
        {"/", "/", 1},
        {"/../..", "/", 1},
        /* The mount is covered there: the same file by the host's own name. */
        {"/home/u/proj/data/x", "/home/u/proj/data/x", 1},
        {"/home/u/proj/.cache/x", "/home/u/proj/.cache/x", 1},
        /* The box has another /tmp. */
        {"/tmp/x", "/tmp/x", 0},
        {"rel/x", "rel/x", 0},
        {"", "", 0},
    };
    LOAD(usual);
    CHECK(PATH_TO_BOX, lines);
}

static void test_to_host(void **state)
{
    (void)state;
    static const struct line lines[] = {
        {"/workspace", "/home/u/proj", 1},
        {"/workspace/", "/home/u/proj/", 1},
        {"/workspace/a", "/home/u/proj/a", 1},
        {"/workspaces/a", "/workspaces/a", 1},
        {"/workspace/data", "/srv/data", 1},
        {"/workspace/data/a/..", "/srv/data", 1},
        {"/workspace/data/..", "/home/u/proj", 1},
        {"/workspace/../etc/hosts", "/etc/hosts", 1},
        {"/public/../workspace/x/", "/home/u/proj/x/", 1},
        {"/tmp/scratch/x", "/srv/scratch/x", 1},
        {"/tmp/x", "/tmp/x", 0},
        {"/workspace/.cache", "/workspace/.cache", 0},
        {"//workspace///a", "/home/u/proj/a", 1},
        {"a", "a", 0},
    };
    LOAD(usual);
    CHECK(PATH_TO_HOST, lines);
}

/* daycare: the user's home under the name the box has for it; the rest of the image is its own. */
static void test_daycare(void **state)
{
    (void)state;
    static const struct mount mounts[] = {{'w', "/data/users/u1/home", "/home/u1"}};
    static const struct line to_box[] = {
        {"/data/users/u1/home/desktop/project/file.ts", "/home/u1/desktop/project/file.ts", 1},
        {"/data/users/u1/home", "/home/u1", 1},
        {"/data/users/u1/homework", "/data/users/u1/homework", 0},
        {"/data/users/u2/home/x", "/data/users/u2/home/x", 0},
        {"/data/users/u1/home/../../u2/home/x", "/data/users/u1/home/../../u2/home/x", 0},
    };
    static const struct line to_host[] = {
        {"/home/u1/desktop", "/data/users/u1/home/desktop", 1},
        {"/home/u1/../u2/x", "/home/u1/../u2/x", 0},
        {"/home/u12/x", "/home/u12/x", 0},
        {"/etc/passwd", "/etc/passwd", 0},
    };
    LOAD(mounts);
    CHECK(PATH_TO_BOX, to_box);
    CHECK(PATH_TO_HOST, to_host);
}

static void test_layers(void **state)
{
    (void)state;
    /* The host's directory at two places; one of them covered whole by another mount. */
    static const struct mount twice[] = {{'r', "/", "/"}, {'w', "/p", "/p"}, {'w', "/p", "/w"}};
    static const struct mount covered[] = {{'w', "/p", "/w"}, {'w', "/q", "/w"}, {'r', "/p/in", "/in"}};
    static const struct line a[] = {{"/p/x", "/w/x", 1}};
    static const struct line b[] = {{"/p/x", "/p/x", 0}, {"/q/x", "/w/x", 1}, {"/p/in/x", "/in/x", 1}};
    static const struct line c[] = {{"/w/x", "/q/x", 1}};
    /* The host's root below a place of the box, and a directory of the host as its root. */
    static const struct mount roots[] = {{'w', "/srv/image", "/"}, {'r', "/", "/host"}};
    static const struct line d[] = {{"/", "/host", 1},
                                    {"/srv/image/bin", "/bin", 1},
                                    {"/srv", "/host/srv", 1},
                                    {"/srv/image/", "/", 1},
                                    {"/srv/image/host/x", "/host/srv/image/host/x", 1}};
    static const struct line e[] = {{"/host", "/", 1}, {"/host/", "/", 1}, {"/bin/", "/srv/image/bin/", 1}};
    LOAD(twice);
    CHECK(PATH_TO_BOX, a);
    LOAD(covered);
    CHECK(PATH_TO_BOX, b);
    CHECK(PATH_TO_HOST, c);
    LOAD(roots);
    CHECK(PATH_TO_BOX, d);
    CHECK(PATH_TO_HOST, e);
}

static void test_values(void **state)
{
    (void)state;
    static const struct line lines[] = {
        {"/home/u/proj/bin:/usr/bin:/home/u/proj/lib/", "/workspace/bin:/usr/bin:/workspace/lib/", 1},
        {"/home/u/proj", "/workspace", 1},
        {"/usr/bin//x/../y", "/usr/bin//x/../y", 0},
        {"http://host/home/u/proj", "http://host/home/u/proj", 0},
        {":/home/u/proj:", ":/workspace:", 1},
        {"--prefix=/home/u/proj", "--prefix=/home/u/proj", 0},
        {"", "", 0},
    };
    LOAD(usual);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf out = BUF(1 << 16);
        assert_int_equal(paths_value(&t.table, PATH_TO_BOX, str_of(lines[i].from), &out), lines[i].mapped);
        assert_string_equal(buf_cstr(&out), lines[i].to);
        buf_free(&out);
    }
}

/* By either side's names: what the box has a mount at stays, whatever the host calls so. */
static void test_enter(void **state)
{
    (void)state;
    static const struct mount mounts[] = {{'r', "/", "/"},
                                          {'w', "/home/u/proj", "/home/u/proj"},
                                          {'w', "/home/u/proj", "/workspace"},
                                          {'w', "/data/u1", "/home/u1"},
                                          {'r', "/srv/x", "/data"},
                                          {'p', "", "/tmp"},
                                          {'w', "/tmp/of-host", "/shared"}};
    static const struct line lines[] = {
        {"/home/u/proj/bin", "/home/u/proj/bin", 0}, /* there under its own name */
        {"/workspace/a", "/workspace/a", 0},
        {"/data/u1/desktop/", "/data/u1/desktop/", 0}, /* the box's own /data */
        {"/srv/x/y:/usr/bin", "/data/y:/usr/bin", 1},
        {"/tmp/of-host/f", "/shared/f", 1}, /* more than the box's own /tmp */
        {"/tmp/of-box/f", "/tmp/of-box/f", 0},
        {"/home/u1/x", "/home/u1/x", 0},
        {"relative/srv/x", "relative/srv/x", 0},
        {"", "", 0},
    };
    static const struct mount image[] = {{'w', "/data/u1", "/home/u1"}, {'p', "", "/tmp"}};
    static const struct line there[] = {{"/data/u1/desktop/:/data/u1", "/home/u1/desktop/:/home/u1", 1},
                                        {"/data/u2", "/data/u2", 0},
                                        {"/tmp/x", "/tmp/x", 0}};
    LOAD(mounts);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf out = BUF(1 << 16);
        assert_int_equal(paths_enter(&t.table, str_of(lines[i].from), &out), lines[i].mapped);
        assert_string_equal(buf_cstr(&out), lines[i].to);
        buf_free(&out);
    }
    LOAD(image);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        struct buf out = BUF(1 << 16);
        assert_int_equal(paths_enter(&t.table, str_of(there[i].from), &out), there[i].mapped);
        assert_string_equal(buf_cstr(&out), there[i].to);
        buf_free(&out);
    }
}

static void test_long(void **state)
{
    (void)state;
    char path[8192], host[4000];
    memset(host, 'h', sizeof host);
    host[0] = '/';
    host[sizeof host - 1] = 0;
    const struct mount mounts[] = {{'w', host, "/w"}};
    LOAD(mounts);
    memset(path, 'x', sizeof path);
    memcpy(path, "/w/", 3);
    for (size_t n = 1; n < 8000; n += n < 200 ? 1 : 97) {
        struct buf out = BUF(1 << 16);
        int r = paths_translate(&t.table, PATH_TO_HOST, (struct str){path, n}, &out);
        assert_int_equal(r, n >= 2 && n - 2 + sizeof host < 4096 ? 1 : 0);
        if (!r)
            assert_true(str_eq(buf_view(&out), (struct str){path, n}));
        buf_free(&out);
    }
}

static void test_bad_tables(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"w", 1},      {"w/a", 3},    {"w/a\0/b", 6}, {"x/a\0/b", 7},
               {"wa\0/b", 6}, {"w/a\0b", 6}, {"p/a\0/b", 7}, {"w\0/b", 5}};
    struct arena *mem = arena_new(1 << 16);
    struct path_table table;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(paths_load(&table, bad[i].bytes, bad[i].n, mem), -EBADMSG);
    assert_int_equal(paths_load(&table, "", 0, mem), 0);
    arena_free(mem);
}

/* The table of a plan image. */
static void test_of_plan(void **state)
{
    (void)state;
    struct {
        struct plan_image head;
        struct step steps[6];
        char strings[64];
    } image = {.head = {.n_steps = 6, .namespaces = 1}};
    image.head.steps_at = (uint32_t)((char *)image.steps - (char *)&image);
    image.head.strings_at = (uint32_t)((char *)image.strings - (char *)&image);
    memcpy(image.strings, "\0/home/u/p\0/w\0/tmp\0/ro", 23);
    image.steps[0] = (struct step){.kind = STEP_SOURCE, .a = 1, .b = 7};
    image.steps[1] = (struct step){.kind = STEP_ROOT};
    image.steps[2] = (struct step){.kind = STEP_ATTACH, .a = 11, .b = 7};
    image.steps[3] = (struct step){.kind = STEP_TMPFS, .a = 14};
    image.steps[4] = (struct step){.kind = STEP_ATTACH, .a = 19, .b = 7, .flags = STEP_RDONLY};
    image.steps[5] = (struct step){.kind = STEP_NO_CAPS};
    struct buf out = BUF(1 << 16);
    assert_int_equal(paths_of_plan(&image.head, &out), 0);
    static const char want[] = "r/\0/\0w/home/u/p\0/w\0p\0/tmp\0r/home/u/p\0/ro";
    assert_int_equal(out.n, sizeof want);
    assert_memory_equal(out.p, want, sizeof want);
    buf_free(&out);
    /* The Landlock tier has one view for both. */
    image.head.n_steps = 0;
    image.head.tier = 1;
    out = BUF(1 << 16);
    assert_int_equal(paths_of_plan(&image.head, &out), 0);
    assert_int_equal(out.n, 5);
    assert_memory_equal(out.p, "w/\0/", 5);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_box), cmocka_unit_test(test_to_host),    cmocka_unit_test(test_daycare),
        cmocka_unit_test(test_layers), cmocka_unit_test(test_values),     cmocka_unit_test(test_enter),
        cmocka_unit_test(test_long),   cmocka_unit_test(test_bad_tables), cmocka_unit_test(test_of_plan)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(t.mem);
    buf_free(&t.bytes);
    return failed;
}
