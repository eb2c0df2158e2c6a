/*
 * The memory of what boxes could write. And which links count for that.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "survey/written.h"
#include "match/path.h"
#include "sys/file.h"

struct tree {
    char top[64], memory[96];
    struct arena *mem;
};

static const char *in(struct tree *t, const char *rest)
{
    return path_join(t->mem, t->top, rest);
}

static void make_dir(struct tree *t, const char *rest)
{
    assert_int_equal(mkdir(in(t, rest), 0755), 0);
}

static void make_link(struct tree *t, const char *rest, const char *target)
{
    assert_int_equal(symlink(target, in(t, rest)), 0);
}

static void remember(struct tree *t, const char *rest)
{
    struct err e = {0};
    struct sys_stat st;
    assert_int_equal(sys_stat_at(AT_FDCWD, in(t, rest), 0, SYS_STAT_BASIC | SYS_STAT_BORN, &st), 0);
    const struct written_id id = {written_device(st.major, st.minor), st.inode, sys_stat_born(&st)};
    if (written_remember(t->memory, in(t, rest), &id, &e) < 0)
        fail_msg("%s", e.text);
}

static int begin(void **state)
{
    struct tree *t = calloc(1, sizeof *t);
    strcpy(t->top, "/tmp/written-test-XXXXXX");
    assert_non_null(mkdtemp(t->top));
    t->mem = arena_new(1u << 20);
    snprintf(t->memory, sizeof t->memory, "%s/state/pinfold/written", t->top);
    make_dir(t, "work");
    make_dir(t, "work/deep");
    make_dir(t, "else");
    *state = t;
    return 0;
}

static int end(void **state)
{
    struct tree *t = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", t->top);
    assert_int_equal(system(command), 0);
    t->mem = arena_free(t->mem);
    free(t);
    return 0;
}

static void a_root_covers_what_is_below(void **state)
{
    struct tree *t = *state;
    assert_false(written_covers(t->memory, in(t, "work")));
    remember(t, "work");
    remember(t, "work");
    assert_true(written_covers(t->memory, in(t, "work")));
    assert_true(written_covers(t->memory, in(t, "work/deep")));
    assert_true(written_covers(t->memory, in(t, "work/no/such")));
    assert_false(written_covers(t->memory, in(t, "works")));
    assert_false(written_covers(t->memory, in(t, "else")));
    assert_false(written_covers(t->memory, in(t, "")));
    assert_false(written_covers(t->memory, "/"));
}

static void a_root_is_known_by_inode_and_by_path(void **state)
{
    struct tree *t = *state;
    remember(t, "work");
    assert_int_equal(rename(in(t, "work"), in(t, "moved")), 0);
    assert_true(written_covers(t->memory, in(t, "moved/deep")));
    make_dir(t, "work");
    assert_true(written_covers(t->memory, in(t, "work")));
}

/* The number of a directory that is gone is given to the next one. */
static void another_of_the_same_inode_does_not_count(void **state)
{
    struct tree *t = *state;
    struct err e = {0};
    struct sys_stat st;
    assert_int_equal(sys_stat_at(AT_FDCWD, in(t, "else"), 0, SYS_STAT_BASIC | SYS_STAT_BORN, &st), 0);
    if (!sys_stat_born(&st))
        skip();
    const struct written_id gone = {written_device(st.major, st.minor), st.inode, sys_stat_born(&st) - 1};
    assert_int_equal(written_remember(t->memory, in(t, "gone"), &gone, &e), 0);
    assert_false(written_covers(t->memory, in(t, "else")));
}

static void what_pinfold_keeps_for_boxes_counts(void **state)
{
    struct tree *t = *state;
    remember(t, "work");
    assert_true(written_covers(t->memory, in(t, "state/pinfold/sessions/x/stored")));
    assert_true(written_covers(t->memory, in(t, "state/pinfold")));
    assert_false(written_covers(t->memory, in(t, "state/pinfolder")));
}

/* Unknown is yes, but for what nobody but root can have made. */
static void without_a_memory_all_counts(void **state)
{
    struct tree *t = *state;
    char closed[PATH_MAX];
    snprintf(closed, sizeof closed, "%s", in(t, "file/state/written"));
    int fd = open(in(t, "file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    const char *const memories[] = {NULL, closed};
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        assert_int_equal(written_remember(memories[i], in(t, "work"), &(struct written_id){1, 2, 3}, &e), 0);
        assert_true(written_covers(memories[i], in(t, "else")));
        assert_true(written_covers(memories[i], "/tmp"));
        assert_false(written_covers(memories[i], "/usr/bin"));
        assert_false(written_covers(memories[i], "/"));
    }
}

static int walk(struct tree *t, const char *path, char real[PATH_MAX], int *ret_fd, struct err *e)
{
    *e = (struct err){0};
    return written_walk(t->memory, "--rw", path, real, ret_fd, e);
}

static void a_walk_refuses_what_a_box_may_have_made(void **state)
{
    struct tree *t = *state;
    char real[PATH_MAX];
    struct err e;
    make_link(t, "work/l", in(t, "else"));
    make_link(t, "mine", "work/deep");
    make_link(t, "twice", "work/l");
    make_link(t, "loop", "loop");
    make_link(t, "gone", "no/such");
    auto_fd int fd = -1;
    assert_int_equal(walk(t, in(t, "work/l/x"), real, &fd, &e), 0);
    assert_string_equal(real, in(t, "else/x"));
    assert_int_equal(fd, -1);
    remember(t, "work");
    static const char *const planted[] = {"work/l", "work/l/x", "work/./deep/../l", "twice/x", "mine/../l"};
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        if (walk(t, in(t, planted[i]), real, &fd, &e) != -EPERM)
            fail_msg("%s was not refused", planted[i]);
        assert_non_null(strstr(e.text, "'l' is a symbolic link in "));
        assert_non_null(strstr(e.text, in(t, "else")));
    }
    assert_int_equal(walk(t, in(t, "mine"), real, &fd, &e), 0);
    assert_string_equal(real, in(t, "work/deep"));
    struct stat a, b;
    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(stat(in(t, "work/deep"), &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    fd = close_fd(fd);
    assert_int_equal(walk(t, in(t, "loop"), real, &fd, &e), -ELOOP);
    assert_int_equal(walk(t, in(t, "gone/x"), real, &fd, &e), 0);
    assert_string_equal(real, in(t, "no/such/x"));
    assert_int_equal(walk(t, in(t, "gone/../x"), real, &fd, &e), -ENOENT);
}

/* Where a filter answers openat2 with ENOSYS, as older container engines' do. */
static void without_openat2_a_link_at_the_end_is_refused_too(void **state)
{
    struct tree *t = *state;
    make_link(t, "work/l", in(t, "else"));
    assert_int_equal(sys_open_by_parts(AT_FDCWD, in(t, "work/l"), O_PATH | O_CLOEXEC), -ELOOP);
    assert_int_equal(sys_open_by_parts(AT_FDCWD, in(t, "work/l/x"), O_PATH | O_CLOEXEC), -ELOOP);
    auto_fd int link = sys_open_by_parts(AT_FDCWD, in(t, "work/l"), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int dir = sys_open_by_parts(AT_FDCWD, in(t, "work/deep"), O_PATH | O_CLOEXEC);
    assert_true(link >= 0 && dir >= 0);
    static const char *const absolute[] = {"/", "//", "/proc", "//proc/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++) {
        struct stat by_parts, whole;
        auto_fd int fd = sys_open_by_parts(AT_FDCWD, absolute[i], O_PATH | O_CLOEXEC);
        const bool over_link = i == 4;
        assert_int_equal(fd < 0 ? fd : 0, over_link ? -ELOOP : 0);
        assert_true(over_link || (fstat(fd, &by_parts) == 0 && stat(absolute[i], &whole) == 0 &&
                                  by_parts.st_ino == whole.st_ino && by_parts.st_dev == whole.st_dev));
    }
    char name[258] = "/";
    memset(name + 1, 'n', 255);
    assert_int_equal(sys_open_by_parts(AT_FDCWD, name, O_PATH | O_CLOEXEC), -ENOENT);
    name[256] = 'n';
    assert_int_equal(sys_open_by_parts(AT_FDCWD, name, O_PATH | O_CLOEXEC), -ENAMETOOLONG);
}

static void a_walk_ends_at_descriptors(void **state)
{
    struct tree *t = *state;
    char real[PATH_MAX], path[64];
    struct err e;
    int ends[2];
    auto_fd int fd = -1;
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(walk(t, path, real, &fd, &e), 0);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    close(ends[0]);
    close(ends[1]);
}

static void what_is_gone_is_forgotten(void **state)
{
    struct tree *t = *state;
    remember(t, "work");
    remember(t, "else");
    assert_int_equal(rmdir(in(t, "else")), 0);
    assert_int_equal(written_tidy(t->memory), 0); /* not yet */
    char command[PATH_MAX];
    snprintf(command, sizeof command, "touch -h -d '40 days ago' %s/*", t->memory);
    assert_int_equal(system(command), 0);
    assert_int_equal(written_tidy(t->memory), 2);
    assert_true(written_covers(t->memory, in(t, "work")));
    assert_false(written_covers(t->memory, in(t, "else")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_root_covers_what_is_below, begin, end),
        cmocka_unit_test_setup_teardown(a_root_is_known_by_inode_and_by_path, begin, end),
        cmocka_unit_test_setup_teardown(another_of_the_same_inode_does_not_count, begin, end),
        cmocka_unit_test_setup_teardown(what_pinfold_keeps_for_boxes_counts, begin, end),
        cmocka_unit_test_setup_teardown(without_a_memory_all_counts, begin, end),
        cmocka_unit_test_setup_teardown(a_walk_refuses_what_a_box_may_have_made, begin, end),
        cmocka_unit_test_setup_teardown(without_openat2_a_link_at_the_end_is_refused_too, begin, end),
        cmocka_unit_test_setup_teardown(a_walk_ends_at_descriptors, begin, end),
        cmocka_unit_test_setup_teardown(what_is_gone_is_forgotten, begin, end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
