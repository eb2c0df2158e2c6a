/*
 * supervisor/: every ending, streams, closed descriptors, limits that need no privilege, the result in words. With an
 * engine of the test's own (box_engine.c), so that no box is needed.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/audit.h"
#include "protocol/control.h"
#include "box_engine.h"

static struct run_spec ask_for(const struct test_plan *t, const char *const *argv)
{
    return (struct run_spec){
        .engine = &engine_test,
        .start = {.plan = &t->plan, .argv = argv},
        .command = {.stdio = {-1, -1, -1}, .capture = true, .capture_max = 1 << 20, .tty = TTY_NEVER}};
}

#define SH(script) ((const char *const[]){"sh", "-c", script, NULL})

static struct box_result run_captured(const struct test_plan *t, const char *script)
{
    struct run_spec ask = ask_for(t, SH(script));
    struct box_result r;
    struct err e = {0};
    int k = box_run(&ask, &r, &e);
    if (k < 0)
        fail_msg("box_run: %d %s", k, e.text);
    return r;
}

/* Descriptors and children that this process has: a run must leave both as they were. */
static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int fds_before;
static int note_manners(void **state)
{
    (void)state;
    fds_before = count_fds();
    return 0;
}
static int check_manners(void **state)
{
    (void)state;
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert_int_equal(count_fds(), fds_before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_false(sigismember(&mask, SIGPIPE));
    assert_false(sigismember(&mask, SIGINT));
    return 0;
}

static void exit_codes_are_exact(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 255};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char script[32];
        snprintf(script, sizeof script, "exit %d", codes[i]);
        struct box_result r = run_captured(test_plan(), script);
        assert_int_equal(r.end, BOX_EXITED);
        assert_int_equal(r.code, codes[i]);
        assert_int_equal(box_result_status(&r), codes[i]);
        assert_int_equal(r.limit, BOX_LIMIT_NONE);
        box_result_free(&r);
    }
}

static void signals_are_exact(void **state)
{
    (void)state;
    for (int sig = 1; sig < 32; sig++) {
        if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU || sig == SIGCHLD || sig == SIGCONT ||
            sig == SIGURG || sig == SIGWINCH)
            continue; /* these do not end a process */
        char script[40];
        snprintf(script, sizeof script, "ulimit -c 0; kill -%d $$", sig);
        struct box_result r = run_captured(test_plan(), script);
        assert_int_equal(r.end, BOX_SIGNALED);
        assert_int_equal(r.code, sig);
        assert_int_equal(box_result_status(&r), 128 + sig);
        assert_int_equal(r.reraise, 0); /* a library's caller is not to be killed */
        box_result_free(&r);
    }
}

static void streams_are_separate_and_exact(void **state)
{
    (void)state;
    struct box_result r = run_captured(test_plan(), "printf 'a\\0b\\n'; printf 'err\\377' >&2; printf c");
    assert_int_equal(r.out.n, 5);
    assert_memory_equal(r.out.p, "a\0b\nc", 5);
    assert_int_equal(r.err.n, 4);
    assert_memory_equal(r.err.p, "err\377", 4);
    assert_false(r.out_truncated);
    box_result_free(&r);
}

static void capture_is_bounded_and_goes_on_reading(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("head -c 3000000 /dev/zero | tr '\\0' 'x'; printf done >&2"));
    ask.command.capture_max = 1000;
    struct box_result r;
    struct err e = {0};
    assert_int_equal(box_run(&ask, &r, &e), 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.out.n, 1000);
    assert_true(r.out_truncated);
    assert_false(r.err_truncated);
    assert_string_equal(buf_cstr(&r.err), "done");
    box_result_free(&r);
}

static void exactly_the_bound_is_not_truncated(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("printf 0123456789"));
    ask.command.capture_max = 10;
    struct box_result r;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(r.out.n, 10);
    assert_false(r.out_truncated);
    box_result_free(&r);
}

static void a_cut_is_between_characters(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("printf 'abc\\303\\244def'"));
    ask.command.capture_max = 4; /* in the middle of the umlaut */
    struct box_result r;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_string_equal(buf_cstr(&r.out), "abc");
    assert_true(r.out_truncated);
    box_result_free(&r);
}

/* A pipe that a child of ours fills with `n` bytes. */
static int filled_pipe(size_t n, int *ret_pid)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int pid = fork_child();
    if (pid == 0) {
        static char block[65536];
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (char)('a' + i % 26);
        close(ends[0]);
        for (size_t left = n; left;) {
            ssize_t k = write(ends[1], block, left < sizeof block ? left : sizeof block);
            if (k <= 0)
                _exit(1);
            left -= (size_t)k;
        }
        _exit(0);
    }
    close(ends[1]);
    *ret_pid = pid;
    return ends[0];
}

static void huge_stdin_with_capture_does_not_deadlock(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("tee /dev/stderr | wc -c"));
    struct box_result r;
    int pid;
    ask.command.stdio[0] = filled_pipe(100u << 20, &pid);
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    close(ask.command.stdio[0]);
    waitpid(pid, NULL, 0);
    assert_int_equal(atoi(buf_cstr(&r.out)), 100 << 20);
    assert_true(r.err_truncated);
    assert_int_equal(r.err.n, 1 << 20);
    box_result_free(&r);
}

static void a_deleted_file_as_stdin_is_relayed(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("[ -p /dev/stdin ] && wc -c"));
    struct box_result r;
    int fd = memfd_create("stdin", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 3 << 20), 0);
    ask.command.stdio[0] = fd;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(atoi(buf_cstr(&r.out)), 3 << 20);
    box_result_free(&r);
    close(fd);
}

static void a_pipe_of_the_builder_is_filled_from_the_file(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    char name[] = "/tmp/pinfold-test-stdin-XXXXXX";
    struct run_spec ask = ask_for(t, SH("[ -p /dev/stdin ] && cat"));
    struct box_result r;
    int fd = mkostemp(name, O_CLOEXEC);
    assert_int_equal(write(fd, "hello\n", 6), 6);
    close(fd);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    ask.command.stdio[0] = fd;
    test_fault = TEST_STDIN_IS_PIPE;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_string_equal(buf_cstr(&r.out), "hello\n");
    box_result_free(&r);
    close(fd);
    unlink(name);
}

static void files_get_their_output_at_the_shared_offset(void **state)
{
    (void)state;
    for (int append = 0; append < 2; append++) {
        struct test_plan *t = test_plan();
        char name[] = "/tmp/pinfold-test-stdout-XXXXXX", text[64] = "";
        int fd = mkostemp(name, O_CLOEXEC | (append ? O_APPEND : 0));
        assert_int_equal(write(fd, "before ", 7), 7);
        struct run_spec ask = ask_for(t, SH("printf 'out '; printf 'err ' >&2; printf 'end '; [ -p /dev/stdout ]"));
        struct box_result r;
        ask.command.capture = false;
        ask.command.stdio[1] = fd;
        ask.command.stdio[2] = dup(fd); /* 2>&1: one description, so the order is kept */
        assert_int_equal(box_run(&ask, &r, NULL), 0);
        assert_int_equal(r.code, 0);
        assert_int_equal(write(fd, "after", 5), 5);
        assert_int_equal(pread(fd, text, sizeof text - 1, 0), 24);
        assert_string_equal(text, "before out err end after");
        box_result_free(&r);
        close(ask.command.stdio[2]);
        close(fd);
        unlink(name);
    }
}

static void pipes_are_passed_straight_through(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    int ends[2];
    char said[64] = "", mine[64];
    struct box_result r;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct run_spec ask = ask_for(t, SH("readlink /proc/self/fd/1"));
    ask.command.capture = false;
    ask.command.stdio[1] = ends[1];
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    struct stat st;
    fstat(ends[1], &st);
    snprintf(mine, sizeof mine, "pipe:[%lu]\n", (unsigned long)st.st_ino);
    assert_string_equal(said, mine);
    box_result_free(&r);
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_leaves_is_a_broken_pipe(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.output.value = 1u << 30; /* counted, hence relayed */
    int ends[2];
    struct box_result r;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    struct run_spec ask = ask_for(t, (const char *const[]){"cat", "/dev/zero", NULL});
    ask.command.capture = false;
    ask.command.stdio[1] = ends[1];
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(r.end, BOX_SIGNALED);
    assert_int_equal(r.code, SIGPIPE);
    assert_int_equal(r.output_errno, 0);
    box_result_free(&r);
    close(ends[1]);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct box_result r;
    t->policy.limits.output.value = 1u << 30;
    struct run_spec ask = ask_for(t, SH("trap '' PIPE; sleep 0.1; echo x"));
    ask.command.capture = false;
    ask.command.stdio[1] = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(r.output_errno, ENOSPC);
    box_result_free(&r);
    close(ask.command.stdio[1]);
}

static void closed_descriptors_stay_closed_inside(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    const int closed = 900; /* no such descriptor */
    struct box_result r;
    struct run_spec ask = ask_for(t, SH("cat; echo $? >&2; echo x; echo $? >&2"));
    int ends[2];
    char said[256] = "";
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    ask.command.capture = false;
    ask.command.stdio[0] = closed;
    ask.command.stdio[1] = closed;
    ask.command.stdio[2] = ends[1];
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    assert_true(n > 0);
    /* cat's read and sh's write both failed with EBADF */
    assert_non_null(strstr(said, "Bad file descriptor"));
    assert_int_equal(r.code, 0); /* of the last echo, to stderr */
    char *second = strstr(strstr(said, "Bad file descriptor") + 1, "I/O error");
    assert_non_null(second);
    box_result_free(&r);
    close(ends[0]);
    close(ends[1]);
}

static void no_descriptor_means_the_null_device(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("cat && echo x && echo y >&2"));
    struct box_result r;
    ask.command.capture = false;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(r.code, 0);
    box_result_free(&r);
}

static void dangerous_descriptors_are_refused(void **state)
{
    (void)state;
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int fds[] = {open("/", O_RDONLY | O_CLOEXEC),
                 open("/etc/passwd", O_PATH | O_CLOEXEC),
                 open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
                 udp,
                 epoll_create1(EPOLL_CLOEXEC),
                 (int)syscall(SYS_pidfd_open, getpid(), 0)};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        struct run_spec ask = ask_for(test_plan(), SH("true"));
        struct box_result r;
        struct err e = {0};
        assert_true(fds[i] >= 0);
        ask.command.capture = i % 2;
        ask.command.stdio[0] = fds[i];
        assert_int_equal(box_run(&ask, &r, &e), -EPERM);
        assert_int_equal(e.kind, ERR_REFUSED);
        assert_non_null(strstr(e.text, "stdin is "));
        assert_non_null(strstr(e.text, "redirect"));
        close(fds[i]);
    }
}

static uint64_t elapsed_ms(const struct timespec *from)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000);
}

static void timeout_asks_first(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.timeout.value = 2000; /* the shell has set its trap by then */
    t->policy.limits.grace.value = 60000;
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct box_result r = run_captured(t, "trap 'echo tidy; exit 3' TERM; while :; do sleep 0.02; done");
    assert_true(elapsed_ms(&from) < 30000); /* the grace is not waited for */
    assert_int_equal(r.end, BOX_TIMED_OUT);
    assert_int_equal(r.limit, BOX_LIMIT_TIMEOUT);
    assert_int_equal(box_result_status(&r), 124);
    assert_string_equal(buf_cstr(&r.out), "tidy\n");
    box_result_free(&r);
}

static void timeout_ends_what_does_not_listen(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.timeout.value = 2000;
    t->policy.limits.grace.value = 200;
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct box_result r =
        run_captured(t, "trap '' TERM; (trap '' TERM; setsid sleep 1000) & while :; do sleep 1; done");
    uint64_t ms = elapsed_ms(&from);
    assert_true(ms >= 2200 && ms < 120000);
    assert_int_equal(r.end, BOX_TIMED_OUT);
    assert_int_equal(box_result_status(&r), 124);
    box_result_free(&r);
}

static void timeout_wakes_the_stopped(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.timeout.value = 200;
    t->policy.limits.grace.value = 60000;
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct box_result r = run_captured(t, "kill -STOP $$");
    assert_true(elapsed_ms(&from) < 30000); /* the grace is not waited for */
    assert_int_equal(r.end, BOX_TIMED_OUT);
    box_result_free(&r);
}

static void a_deaf_init_is_killed(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.timeout.value = 100;
    t->policy.limits.grace.value = 100;
    test_fault = TEST_DEAF;
    struct box_result r = run_captured(t, "exec sleep 1000");
    assert_int_equal(r.end, BOX_TIMED_OUT);
    box_result_free(&r);
}

static void output_limit_ends_the_box(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.output.value = 100000;
    struct box_result r = run_captured(t, "yes");
    assert_int_equal(r.end, BOX_LIMIT);
    assert_int_equal(r.limit, BOX_LIMIT_OUTPUT);
    assert_int_equal(box_result_status(&r), 137);
    assert_int_equal(r.out.n, 100000);
    assert_int_equal(r.n_denials, 1);
    assert_string_equal(r.denials[0].kind, "limit");
    assert_string_equal(r.denials[0].action, "output");
    box_result_free(&r);
}

static void output_of_exactly_the_limit_is_fine(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.output.value = 12;
    struct box_result r = run_captured(t, "printf 123456; printf 123456 >&2");
    assert_int_equal(r.end, BOX_EXITED);
    assert_int_equal(r.limit, BOX_LIMIT_NONE);
    box_result_free(&r);
}

static void a_verdict_is_an_error_with_words(void **state)
{
    (void)state;
    struct run_spec ask = ask_for(test_plan(), SH("true"));
    struct box_result r;
    struct err e = {0};
    test_fault = TEST_VERDICT;
    assert_int_equal(box_run(&ask, &r, &e), -ENOENT);
    assert_non_null(strstr(e.text, "step 0"));
    test_fault = TEST_START_FAILS;
    assert_int_equal(box_run(&ask, &r, &e), -EAGAIN);
    assert_non_null(strstr(e.text, "clone"));
}

static void a_lost_box_is_said(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct run_spec ask = ask_for(t, SH("sleep 1000"));
    struct box_result r;
    test_fault = TEST_INIT_DIES;
    assert_int_equal(box_run(&ask, &r, NULL), 0);
    assert_int_equal(r.end, BOX_LOST);
    assert_int_equal(box_result_status(&r), 125);
    box_result_free(&r);
}

/* ---- a command in a session ---- */

struct session_pid1 {
    struct frame says; /* kind 0: nothing */
    int end;
};

static int give_socket(void *ctx, const int stdio[3], bool tty, unsigned rows, unsigned columns, uint32_t umask,
                       int *ret_socket, struct err *e)
{
    struct session_pid1 *p = ctx;
    int ends[2];
    (void)stdio, (void)tty, (void)rows, (void)columns, (void)umask, (void)e;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    p->end = ends[0];
    *ret_socket = ends[1];
    if (p->says.kind)
        assert_int_equal(send(p->end, &p->says, sizeof p->says, 0), sizeof p->says);
    return 0;
}

static int exec_told(struct frame says, struct box_result *ret, struct err *e)
{
    struct session_pid1 pid1 = {.says = says, .end = -1};
    struct limits limits = test_plan()->policy.limits;
    limits.timeout = (struct limit){.value = 50, .asked = true, .origin = 1};
    limits.grace.value = 20;
    const struct box_exec x = {.command = {.stdio = {-1, -1, -1}, .capture = true, .capture_max = 1000},
                               .limits = &limits,
                               .cancel_fd = -1,
                               .send = give_socket,
                               .send_ctx = &pid1};
    int r = box_exec(&x, ret, e);
    assert_int_equal(close(pid1.end), 0);
    return r;
}

/* There is no plan of its box, whatever pid 1 says of the command. */
static void a_command_in_a_session_has_no_plan(void **state)
{
    (void)state;
    struct box_result r;
    struct err e = {0};
    assert_int_equal(exec_told((struct frame){.kind = FRAME_EXIT, .b = 7 << 8, .c = EXIT_OFFLINE}, &r, &e), 0);
    assert_int_equal(r.end, BOX_EXITED);
    assert_int_equal(r.code, 7);
    assert_int_equal(r.n_denials, 0); /* whether the box has a network is not known here */
    assert_string_equal(r.limits_by, "the session's");
    box_result_free(&r);
    assert_true(exec_told((struct frame){.kind = FRAME_VERDICT, .b = EACCES}, &r, &e) < 0);
    assert_true(e.text[0] != 0);
    assert_int_equal(exec_told((struct frame){0}, &r, &e), 0);
    assert_int_equal(r.end, BOX_TIMED_OUT);
    assert_int_equal(r.n_denials, 1);
    assert_string_equal(r.denials[0].origin, "the command's options");
    box_result_free(&r);
}

static void nothing_survives(void **state)
{
    (void)state;
    struct box_result r =
        run_captured(test_plan(), "trap '' HUP TERM; setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'");
    int pid = atoi(buf_cstr(&r.out));
    assert_true(pid > 1);
    assert_int_equal(kill(pid, 0), -1);
    box_result_free(&r);
}

static void memory_is_watched(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.memory.value = 60u << 20;
    t->policy.limits.memory.asked = true;
    struct box_result r = run_captured(t, "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}");
    assert_int_equal(r.end, BOX_LIMIT);
    assert_int_equal(r.limit, BOX_LIMIT_MEMORY);
    assert_int_equal(box_result_status(&r), 137);
    assert_true(r.peak_bytes > 60u << 20);
    assert_true(r.peak_is_largest_process);
    assert_string_equal(r.limits_by, "rlimits and watcher");
    box_result_free(&r);
}

static void processes_are_watched(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    t->policy.limits.processes.value = 5;
    t->policy.limits.processes.asked = true;
    struct box_result r = run_captured(t, "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait");
    assert_int_equal(r.limit, BOX_LIMIT_PROCESSES);
    assert_int_equal(r.end, BOX_LIMIT);
    box_result_free(&r);
}

static void disk_growth_is_watched(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    char dir[] = "/tmp/pinfold-test-disk-XXXXXX", script[200];
    assert_non_null(mkdtemp(dir));
    t->plan.workspace = dir;
    t->policy.limits.disk.value = 20u << 20;
    t->policy.limits.disk.asked = true;
    /* It goes on: what somebody else removes from this disk meanwhile is room again. */
    snprintf(
        script, sizeof script,
        "i=0; while [ $i -lt 400 ]; do head -c 8000000 /dev/zero >%s/$i; i=$((i + 1)); sleep 0.05; done; echo survived",
        dir);
    struct box_result r = run_captured(t, script);
    assert_int_equal(r.limit, BOX_LIMIT_DISK);
    assert_int_equal(r.out.n, 0);
    box_result_free(&r);
    snprintf(script, sizeof script, "rm -r %s", dir);
    assert_int_equal(system(script), 0);
}

static void denials_are_kept_once(void **state)
{
    (void)state;
    char dir[] = "/tmp/pinfold-test-audit-XXXXXX", path[300], text[8192] = "";
    struct test_plan *t = test_plan();
    assert_non_null(mkdtemp(dir));
    setenv("XDG_STATE_HOME", dir, 1);
    test_fault = TEST_DENIES;
    struct box_result r = run_captured(t, "true");
    assert_int_equal(r.audit_errno, 0);
    assert_int_equal(r.n_denials, 3);
    assert_string_equal(r.denials[0].target, "/w/.git/hooks/x");
    assert_string_equal(r.denials[0].kind, "file");
    assert_string_equal(r.denials[0].action, "create");
    assert_string_equal(r.denials[0].rule, "guarded name");
    assert_string_equal(r.denials[2].kind, "socket");
    assert_string_equal(r.denials[2].action, "connect");
    snprintf(path, sizeof path, "%s/pinfold/audit/" AUDIT_FILE_NAME, dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_non_null(strstr(text, "\"target\":\"/w/.envrc\""));
    assert_non_null(strstr(text, r.id));
    box_result_free(&r);
    /* A run without events opens nothing. */
    unlink(path);
    r = run_captured(test_plan(), "true");
    assert_int_equal(access(path, F_OK), -1);
    box_result_free(&r);
    snprintf(path, sizeof path, "rm -r %s", dir);
    assert_int_equal(system(path), 0);
}

static void json_has_the_one_schema(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct box_terms terms;
    struct box_result r = run_captured(t, "printf hi; exit 3");
    r.wall_us = 12345, r.cpu_us = 2000, r.peak_bytes = 1024, r.read_bytes = 512, r.written_bytes = 0;
    struct buf out = BUF(1 << 20);
    terms = box_terms(&t->plan);
    assert_int_equal(box_result_json(&r, &terms, true, &out), 0);
    assert_string_equal(
        buf_cstr(&out),
        "{\"v\":1,\"success\":false,\"exit_code\":3,\"signal\":null,\"ended\":\"exit\",\"limit\":null,\"stdout\":"
        "\"hi\",\"stderr\":\"\","
        "\"stdout_truncated\":false,\"stderr_truncated\":false,\"encoding\":\"utf8\",\"usage\":{\"wall_ms\":12,\"cpu_"
        "ms\":2,"
        "\"peak_bytes\":1024,\"read_bytes\":512,\"written_bytes\":0},\"denials\":[],\"monitor\":false,"
        "\"denials_not_seen\":[\"read-only "
        "and hiding mounts\","
        "\"system calls refused by seccomp with an errno\",\"connections in a network without routes\","
        "\"ordinary permissions and "
        "rlimits\"],\"left\":[],\"left_not_kept\":0,\"network\":null,\"enforced\":{\"seccomp\":\"nothing, this "
        "is a "
        "test\"},\"lost\":[\"fresh-proc\"],"
        "\"engine\":\"test\",\"engines_not_taken\":{},\"session\":null,\"policy_digest\":\"d2\",\"plan_digest\":"
        "\"d1\"}");
    buf_free(&out);
    box_result_free(&r);
}

static void json_of_other_endings(void **state)
{
    (void)state;
    struct test_plan *t = test_plan();
    struct box_terms terms;
    struct box_result r = run_captured(t, "printf '\\377'; kill -9 $$");
    struct buf out = BUF(1 << 20);
    terms = box_terms(&t->plan);
    assert_int_equal(box_result_json(&r, &terms, true, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\"exit_code\":null,\"signal\":9,\"ended\":\"signal\""));
    assert_non_null(strstr(buf_cstr(&out), "\"stdout\":\"/w==\",\"stderr\":\"\""));
    assert_non_null(strstr(buf_cstr(&out), "\"encoding\":\"base64\""));
    buf_free(&out);
    out = BUF(1 << 20);
    terms = box_terms(&t->plan);
    assert_int_equal(box_result_json(&r, &terms, false, &out), 0);
    assert_non_null(strstr(buf_cstr(&out), "\"stdout\":null,\"stderr\":null"));
    buf_free(&out);
    box_result_free(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, note_manners, check_manners)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(exit_codes_are_exact),
        T(signals_are_exact),
        T(streams_are_separate_and_exact),
        T(capture_is_bounded_and_goes_on_reading),
        T(exactly_the_bound_is_not_truncated),
        T(a_cut_is_between_characters),
        T(huge_stdin_with_capture_does_not_deadlock),
        T(a_deleted_file_as_stdin_is_relayed),
        T(a_pipe_of_the_builder_is_filled_from_the_file),
        T(files_get_their_output_at_the_shared_offset),
        T(pipes_are_passed_straight_through),
        T(a_reader_that_leaves_is_a_broken_pipe),
        T(a_full_disk_is_said),
        T(closed_descriptors_stay_closed_inside),
        T(no_descriptor_means_the_null_device),
        T(dangerous_descriptors_are_refused),
        T(timeout_asks_first),
        T(timeout_ends_what_does_not_listen),
        T(timeout_wakes_the_stopped),
        T(a_deaf_init_is_killed),
        T(output_limit_ends_the_box),
        T(output_of_exactly_the_limit_is_fine),
        T(a_verdict_is_an_error_with_words),
        T(a_lost_box_is_said),
        T(a_command_in_a_session_has_no_plan),
        T(nothing_survives),
        T(memory_is_watched),
        T(processes_are_watched),
        T(disk_growth_is_watched),
        T(denials_are_kept_once),
        T(json_has_the_one_schema),
        T(json_of_other_endings),
    };
    char dir[] = "/tmp/pinfold-test-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    setenv("XDG_STATE_HOME", dir, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char remove[64];
    snprintf(remove, sizeof remove, "rm -rf %s", dir);
    return system(remove) != 0 ? 1 : failed;
}
