/*
 * The audit log: whole lines of bounded size from many writers, rotation, following. Writers are processes, as they
 * are outside.
 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "plan/facts.h"
#include "plan/plan.h"
#include "supervisor/audit.h"
#include "supervisor/parts.h"
#include "supervisor/run.h"

static char state_dir[] = "/tmp/pinfold-test-audit-XXXXXX";

static int fresh(void **state)
{
    (void)state;
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s/pinfold", state_dir);
    return system(command);
}

static const struct audit_event event = {.id = "0123456789abcdef",
                                         .kind = "file",
                                         .action = "write",
                                         .target = "/w/\"odd\"\nname",
                                         .rule = "**/.env",
                                         .origin = "policy.yaml:3:5",
                                         .how = "guard",
                                         .pid = 12};

struct lines {
    size_t n, longest, stop_at;
    char last[AUDIT_LINE_MAX + 1];
};
static bool count(void *ctx, struct str text)
{
    struct lines *l = ctx;
    l->n++;
    if (text.n > l->longest)
        l->longest = text.n;
    memcpy(l->last, text.p, text.n);
    l->last[text.n] = 0;
    return l->n != l->stop_at;
}

static void an_event_is_one_line_of_json(void **state)
{
    (void)state;
    struct audit_log *log;
    struct lines l = {0};
    char dir[200];
    struct stat st;
    assert_int_equal(audit_open(&log), 0);
    assert_int_equal(audit_write(log, &event), 0);
    assert_null(audit_close(log));
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, 1);
    assert_memory_equal(l.last, "{\"v\":1,\"t\":\"20", 14);
    assert_string_equal(strchr(l.last + 14, 'Z'),
                        "Z\",\"id\":\"0123456789abcdef\",\"session\":null,\"kind\":\"file\",\"action\":\"write\","
                        "\"target\":\"/w/\\\"odd\\\"\\nname\",\"rule\":\"**/"
                        ".env\",\"origin\":\"policy.yaml:3:5\",\"how\":\"guard\",\"pid\":12}");
    assert_int_equal(audit_dir(dir, sizeof dir), 0);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    strcat(dir, "/" AUDIT_FILE_NAME);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Three events of one run and one of another, chained. */
static void write_chained(void)
{
    struct audit_log *log;
    struct audit_chain one = {0}, two = {0};
    struct audit_event v = event;
    assert_int_equal(audit_open(&log), 0);
    for (int i = 0; i < 4; i++) {
        v.id = i == 2 ? "fedcba9876543210" : event.id;
        v.chain = i == 2 ? &two : &one;
        assert_int_equal(audit_write(log, &v), 0);
    }
    assert_int_equal(one.seq, 3);
    assert_int_equal(strlen(one.sum), 32);
    assert_null(audit_close(log));
}

static size_t read_log(char *ret, size_t room, bool truncate, int *ret_fd)
{
    char path[300];
    assert_int_equal(audit_dir(path, sizeof path), 0);
    strcat(path, "/" AUDIT_FILE_NAME);
    *ret_fd = open(path, truncate ? O_RDWR | O_TRUNC : O_RDWR);
    assert_true(*ret_fd >= 0);
    ssize_t n = truncate ? 0 : read(*ret_fd, ret, room);
    assert_true(n >= 0);
    return (size_t)n;
}

static void rewrite_log(const char *text, size_t n)
{
    int fd;
    (void)read_log(NULL, 0, true, &fd);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    close(fd);
}

static void chains_show_damage_and_gaps(void **state)
{
    (void)state;
    static char text[16384];
    struct audit_check found;
    int fd;
    write_chained();
    assert_int_equal(audit_verify(&found, NULL), 0);
    assert_int_equal(found.events, 4);
    assert_int_equal(found.runs, 2);
    assert_int_equal(found.damaged + found.missing + found.unchained + found.begun, 0);
    size_t n = read_log(text, sizeof text, false, &fd);
    close(fd);
    char *second = (char *)memchr(text, '\n', n) + 1, *third = strchr(second, '\n') + 1;
    size_t first_n = (size_t)(second - text), rest = n - (size_t)(third - text);
    /* each byte of the second event's line changed alone */
    for (char *at = second; at < third - 1; at++) {
        *at ^= 1;
        rewrite_log(text, n);
        assert_int_equal(audit_verify(&found, NULL), 0);
        if (found.damaged + found.missing + found.unchained + found.begun == 0)
            fail_msg("byte %zu can be changed", (size_t)(at - second));
        *at ^= 1;
    }
    memmove(second, third, rest);
    rewrite_log(text, first_n + rest);
    assert_int_equal(audit_verify(&found, NULL), 0);
    assert_int_equal(found.missing, 1);
    rewrite_log(second, rest); /* the beginning is gone */
    assert_int_equal(audit_verify(&found, NULL), 0);
    assert_int_equal(found.begun, 1);
}

/* A writer that was killed within a line takes no other event with it. */
static void a_torn_line_stays_alone(void **state)
{
    (void)state;
    static char text[16384];
    struct audit_check found;
    struct lines l = {0};
    int fd;
    write_chained();
    size_t n = read_log(text, sizeof text, false, &fd);
    close(fd);
    for (size_t cut = 1; cut < 120; cut += 7) {
        l = (struct lines){0};
        rewrite_log(text, n - cut);
        struct audit_log *log;
        assert_int_equal(audit_open(&log), 0);
        assert_int_equal(audit_write(log, &event), 0);
        assert_null(audit_close(log));
        assert_int_equal(audit_read(false, count, &l, NULL), 0);
        assert_int_equal(l.n, 5);
        assert_string_equal(strstr(l.last, "\"pid\""), "\"pid\":12}");
        assert_int_equal(audit_verify(&found, NULL), 0);
        assert_int_equal(found.damaged, cut > 1);
    }
}

static void a_long_target_is_shortened(void **state)
{
    (void)state;
    static char target[20000], rule[20000];
    struct audit_event v = event;
    struct audit_log *log;
    struct lines l = {0};
    memset(target, '\1', sizeof target - 1); /* six bytes each in JSON */
    memset(rule, 'r', sizeof rule - 1);
    v.target = target;
    assert_int_equal(audit_open(&log), 0);
    assert_int_equal(audit_write(log, &v), 0);
    v.rule = rule;
    assert_int_equal(audit_write(log, &v), 0);
    audit_close(log);
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, 2);
    assert_true(l.longest < AUDIT_LINE_MAX);
}

static void an_empty_log_is_no_error(void **state)
{
    (void)state;
    struct lines l = {0};
    char dir[200];
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, 0);
    audit_dir(dir, sizeof dir);
    assert_int_equal(access(dir, F_OK), -1); /* and reading makes nothing */
}

static void many_writers_and_rotation_lose_nothing(void **state)
{
    (void)state;
    enum { WRITERS = 4, EACH = 9000 };
    char command[200];
    static char target[1500];
    memset(target, 'x', sizeof target - 1);
    for (int w = 0; w < WRITERS; w++) {
        if (fork_child() == 0) {
            struct audit_event v = event;
            struct audit_log *log;
            if (audit_open(&log) < 0)
                _exit(1);
            v.target = target;
            for (int i = 0; i < EACH; i++)
                if (audit_write(log, &v) < 0)
                    _exit(1);
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    /* 36,000 lines of 1.7 KiB are four files, of which none is over the size; lines are whole. */
    struct lines l = {0};
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, WRITERS * EACH);
    assert_int_equal(l.longest, strlen(l.last));
    snprintf(command, sizeof command,
             "cd %s/pinfold/audit && [ $(ls | wc -l) = 4 ] && [ $(find . -size +16500k | wc -l) = 0 ]", state_dir);
    assert_int_equal(system(command), 0);
}

/* A full file; returns the directory, locked as by somebody who rotates. */
static int full_and_locked(struct audit_log **ret)
{
    char path[200];
    static const char line[] = "{}\n";
    assert_int_equal(audit_open(ret), 0);
    audit_dir(path, sizeof path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = openat(dir, AUDIT_FILE_NAME, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, line, 3, AUDIT_FILE_MAX), 3);
    close(file);
    assert_int_equal(flock(dir, LOCK_EX), 0);
    return dir;
}

static void a_rotation_that_is_held_up_is_waited_for(void **state)
{
    (void)state;
    struct audit_log *log;
    struct stat st;
    int done[2];
    char byte;
    int dir = full_and_locked(&log);
    assert_int_equal(pipe(done), 0);
    pid_t pid = fork_child();
    if (pid == 0) {
        close(dir);
        for (int i = 0; i < 200; i++)
            if (audit_write(log, &event) < 0)
                _exit(1);
        _exit(write(done[1], "", 1) != 1);
    }
    usleep(50000); /* the writer has come to the lock by now; if not, the row shows less and does not fail */
    assert_int_equal(fstatat(dir, AUDIT_FILE_NAME, &st, 0), 0);
    assert_int_equal(st.st_size, AUDIT_FILE_MAX + 3); /* nothing was written meanwhile */
    assert_int_equal(flock(dir, LOCK_UN), 0);
    assert_int_equal(read(done[0], &byte, 1), 1);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(fstatat(dir, "audit.1.jsonl", &st, 0), 0);
    assert_int_equal(st.st_size, AUDIT_FILE_MAX + 3);
    close(dir);
    close(done[0]);
    close(done[1]);
    audit_close(log);
}

static void a_lock_that_is_kept_costs_a_writer_one_wait(void **state)
{
    (void)state;
    struct audit_log *log;
    struct timespec before, after;
    int dir = full_and_locked(&log);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(audit_write(log, &event), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= AUDIT_WAIT_MS);
    alarm(AUDIT_WAIT_MS / 1000 * 20); /* a wait for each of these would be 100 times that long */
    for (int i = 0; i < 100; i++)
        assert_int_equal(audit_write(log, &event), 0);
    alarm(0);
    close(dir);
    audit_close(log);
}

static void following_sees_new_events_through_a_rotation(void **state)
{
    (void)state;
    int pid = fork_child();
    if (pid == 0) {
        struct audit_log *log;
        char from[200], to[200];
        usleep(100000);
        if (audit_open(&log) < 0)
            _exit(1);
        for (int i = 0; i < 3; i++)
            audit_write(log, &event);
        usleep(100000);
        audit_dir(from, sizeof from);
        audit_dir(to, sizeof to);
        strcat(from, "/" AUDIT_FILE_NAME);
        strcat(to, "/audit.1.jsonl");
        rename(from, to);
        if (audit_open(&log) < 0)
            _exit(1);
        for (int i = 0; i < 2; i++)
            audit_write(log, &event);
        _exit(0);
    }
    struct lines l = {.stop_at = 5};
    alarm(90);
    assert_int_equal(audit_read(true, count, &l, NULL), 0);
    alarm(0);
    assert_int_equal(l.n, 5);
    waitpid(pid, NULL, 0);
}

static void a_link_in_its_place_is_refused(void **state)
{
    (void)state;
    struct audit_log *log;
    char path[200];
    assert_int_equal(audit_open(&log), 0);
    audit_close(log);
    audit_dir(path, sizeof path);
    strcat(path, "/" AUDIT_FILE_NAME);
    unlink(path);
    assert_int_equal(symlink("/tmp/elsewhere", path), 0);
    assert_true(audit_open(&log) < 0);
}

static void deny_some(struct box *b, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        char kind[] = "file", action[] = "write", target[32], rule[] = "r", origin[] = "o", how[] = "guard";
        snprintf(target, sizeof target, "/w/%u", i);
        denial_keep(b, &(struct denial){kind, action, target, rule, origin, how, 1});
    }
}

static void a_flood_does_not_make_the_log_blind(void **state)
{
    (void)state;
    struct lines l = {0};
    struct facts facts = {0};
    struct plan plan = {.workspace = "/w", .facts = &facts};
    struct run_spec spec = {.session = "s"};
    struct box_sessiond sessiond = {0};
    struct box_result result = {0};
    struct box b = {.spec = &spec, .sessiond = &sessiond, .result = &result};
    spec.start.plan = &plan;
    deny_some(&b, 0, MAX_DENIALS + 3);
    assert_int_equal(result.denials_dropped, 3);
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, MAX_DENIALS);
    /* An hour later: how many there were more, then the next. */
    result.denials[0].when_ms -= 3600000;
    deny_some(&b, 1000, 1);
    l = (struct lines){0};
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, MAX_DENIALS + 2);
    assert_non_null(strstr(l.last, "/w/1000"));
    /* A run: at its end. */
    b.sessiond = NULL;
    deny_some(&b, 2000, MAX_DENIALS + 1);
    denial_end(&b);
    l = (struct lines){0};
    assert_int_equal(audit_read(false, count, &l, NULL), 0);
    assert_int_equal(l.n, 2 * MAX_DENIALS + 2);
    assert_non_null(strstr(l.last, "\"kind\":\"log\",\"action\":\"dropped\",\"target\":\"2 more refusals\""));
    denial_free_all(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_event_is_one_line_of_json, fresh),
        cmocka_unit_test_setup(chains_show_damage_and_gaps, fresh),
        cmocka_unit_test_setup(a_torn_line_stays_alone, fresh),
        cmocka_unit_test_setup(a_long_target_is_shortened, fresh),
        cmocka_unit_test_setup(an_empty_log_is_no_error, fresh),
        cmocka_unit_test_setup(many_writers_and_rotation_lose_nothing, fresh),
        cmocka_unit_test_setup(a_rotation_that_is_held_up_is_waited_for, fresh),
        cmocka_unit_test_setup(a_lock_that_is_kept_costs_a_writer_one_wait, fresh),
        cmocka_unit_test_setup(following_sees_new_events_through_a_rotation, fresh),
        cmocka_unit_test_setup(a_link_in_its_place_is_refused, fresh),
        cmocka_unit_test_setup(a_flood_does_not_make_the_log_blind, fresh),
    };
    if (!mkdtemp(state_dir))
        return 1;
    setenv("XDG_STATE_HOME", state_dir, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", state_dir);
    return system(command) != 0 ? 1 : failed;
}
