/*
 * Unit tests of box/ as a CLI uses it: signals forwarded, the terminal raw and put back whatever happens, job control.
 * Each test forks a process that leads a session on a pty of the test's, and runs a box in the foreground there.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include "box_engine.h"

#define SILENCE_MS 90000 /* of a machine that has no time */

struct report { /* what the box's caller saw */
    int r, end, code, reraise, limit;
    char out[64];
};

struct session {
    int master, pid, report;
    struct termios before;
};

struct how {
    const char *script;
    enum tty_mode tty;
    bool capture;
    int out, in;     /* instead of the terminal, or 0 */
    bool background; /* the box's caller is not in the foreground process group */
    int ignored;     /* a signal that the caller ignores */
    uint64_t output_limit;
};

static _Noreturn void caller(const struct how *how, int slave, int report)
{
    struct test_plan *t = test_plan();
    struct run_spec ask = {
        .engine = &engine_test,
        .start = {.plan = &t->plan, .argv = (const char *const[]){"sh", "-c", how->script, NULL}},
        .command = {.stdio = {how->in ? how->in : slave, how->out ? how->out : slave, how->out ? how->out : slave},
                    .capture = how->capture,
                    .capture_max = 1000,
                    .tty = how->tty,
                    .foreground = true}};
    struct box_result r;
    struct report said = {0};
    struct err e = {0};
    t->policy.limits.timeout.value = 180000; /* a test that hangs ends */
    if (how->ignored)
        signal(how->ignored, SIG_IGN);
    said.r = box_run(&ask, &r, &e);
    if (said.r == 0) {
        said.end = (int)r.end;
        said.code = r.code;
        said.reraise = r.reraise;
        said.limit = (int)r.limit;
        if (how->capture)
            snprintf(said.out, sizeof said.out, "%s", buf_cstr(&r.out));
    }
    ssize_t n = write(report, &said, sizeof said);
    if (said.r == 0)
        box_reraise(&r);
    _exit(n < 0 ? 99 : said.r < 0 ? 125 : box_result_status(&r));
}

static struct session begin(const struct how *how)
{
    struct session s;
    int ends[2];
    s.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(s.master >= 0);
    unlockpt(s.master);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    char name[64];
    assert_int_equal(ptsname_r(s.master, name, sizeof name), 0);
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct winsize size = {.ws_row = 30, .ws_col = 100};
    ioctl(s.master, TIOCSWINSZ, &size);
    tcgetattr(slave, &s.before);
    fflush(NULL);
    s.pid = fork_child();
    if (s.pid == 0) {
        close(s.master);
        close(ends[0]);
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        if (how->background) {
            int pid = fork_child();
            if (pid == 0) {
                setpgid(0, 0);
                caller(how, slave, ends[1]);
            }
            setpgid(pid, pid);
            int status;
            while (waitpid(pid, &status, 0) < 0)
                ;
            _exit(WEXITSTATUS(status));
        }
        /* The session's leader is a shell's stand-in: the caller has a group of its own, or a stop would be dropped. */
        int pid = fork_child();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setpgid(0, 0);
            signal(SIGTTOU, SIG_IGN);
            tcsetpgrp(slave, getpid());
            signal(SIGTTOU, SIG_DFL);
            caller(how, slave, ends[1]);
        }
        int told[2] = {pid, 0}, status;
        (void)!write(ends[1], told, sizeof told);
        signal(SIGHUP, SIG_IGN);
        for (;;) {
            if (waitpid(pid, &status, WUNTRACED) < 0)
                continue;
            if (WIFSTOPPED(status)) {
                told[1] = WSTOPSIG(status);
                (void)!write(ends[1], told, sizeof told);
                continue;
            }
            break;
        }
        if (WIFSIGNALED(status))
            _exit(200 + WTERMSIG(status));
        _exit(WEXITSTATUS(status));
    }
    close(slave);
    close(ends[1]);
    s.report = ends[0];
    return s;
}

/* The pid of the box's caller, as the shell's stand-in tells it first. */
static int caller_pid(const struct session *s)
{
    int told[2];
    assert_int_equal(read(s->report, told, sizeof told), sizeof told);
    return told[0];
}

/* Waits until the caller was stopped; its signal. */
static int stopped(const struct session *s)
{
    int told[2];
    struct pollfd p = {.fd = s->report, .events = POLLIN};
    assert_int_equal(poll(&p, 1, SILENCE_MS), 1);
    assert_int_equal(read(s->report, told, sizeof told), sizeof told);
    return told[1];
}

static struct report end(struct session *s, int *ret_status)
{
    struct report r = {.r = -1};
    int status;
    ssize_t n = read(s->report, &r, sizeof r);
    waitpid(s->pid, &status, 0);
    close(s->report);
    close(s->master);
    if (n != (ssize_t)sizeof r)
        fail_msg("no report, status %x", (unsigned)status);
    if (ret_status)
        *ret_status = WEXITSTATUS(status);
    return r;
}

/* Reads from the terminal until `text` was seen; false after SILENCE_MS without a byte. All that was read goes to `seen`. */
static bool sees(const struct session *s, const char *text, char *seen, size_t room)
{
    size_t n = 0;
    struct pollfd p = {.fd = s->master, .events = POLLIN};
    seen[0] = 0;
    while (poll(&p, 1, SILENCE_MS) > 0 && n < room - 1) {
        ssize_t k = read(s->master, seen + n, room - 1 - n);
        if (k <= 0)
            return false;
        n += (size_t)k;
        seen[n] = 0;
        if (strstr(seen, text))
            return true;
    }
    return false;
}

static void type(const struct session *s, const char *text)
{
    assert_int_equal(write(s->master, text, strlen(text)), (int)strlen(text));
}

static bool is_raw(const struct session *s)
{
    struct termios t;
    return tcgetattr(s->master, &t) == 0 && !(t.c_lflag & (ICANON | ECHO | ISIG)) && !(t.c_oflag & OPOST);
}

static bool is_as_before(const struct session *s)
{
    struct termios t;
    return tcgetattr(s->master, &t) == 0 && t.c_lflag == s->before.c_lflag && t.c_iflag == s->before.c_iflag &&
           t.c_oflag == s->before.c_oflag && t.c_cflag == s->before.c_cflag && memcmp(t.c_cc, s->before.c_cc, 19) == 0;
}

static bool within(const struct session *s, bool (*what)(const struct session *s), int ms)
{
    for (int i = 0; i < ms; i++) {
        if (what(s))
            return true;
        usleep(1000);
    }
    return false;
}

static void raw_while_it_runs_and_back_after(void **state)
{
    (void)state;
    char seen[4096];
    struct session s =
        begin(&(struct how){.script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes; stty size; read x; echo got $x"});
    caller_pid(&s);
    assert_true(sees(&s, "30 100", seen, sizeof seen));
    assert_non_null(strstr(seen, "yes\r\n"));
    assert_true(is_raw(&s));
    type(&s, "word\r");
    assert_true(sees(&s, "got word", seen, sizeof seen));
    int status;
    struct report r = end(&s, &status);
    assert_int_equal(r.end, BOX_EXITED);
    assert_int_equal(status, 0);
}

static void restored_after_every_ending(void **state)
{
    (void)state;
    static const char *const scripts[] = {"echo up; read x; exit 3", "echo up; read x; kill -9 $$",
                                          "echo up; read x; kill -TERM $$"};
    for (size_t i = 0; i < 3; i++) {
        char seen[4096];
        struct session s = begin(&(struct how){.script = scripts[i]});
        caller_pid(&s);
        assert_true(sees(&s, "up", seen, sizeof seen));
        assert_true(within(&s, is_raw, 60000));
        type(&s, "\r");
        assert_true(within(&s, is_as_before, 60000));
        end(&s, NULL);
    }
}

static void a_killed_pinfold_leaves_the_terminal_as_it_was(void **state)
{
    (void)state;
    char seen[4096];
    struct session s = begin(&(struct how){.script = "echo pid $$ up; sleep 1000"});
    int pid = caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    assert_true(within(&s, is_raw, 60000));
    kill(pid, SIGKILL);
    assert_true(within(&s, is_as_before, 60000));
    int inside = atoi(strstr(seen, "pid ") + 4), gone = 0;
    for (int i = 0; i < 60000 && !(gone = kill(inside, 0) < 0); i++)
        usleep(1000);
    assert_true(gone); /* and the box is, too */
    int status;
    waitpid(s.pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 200 + SIGKILL);
    close(s.report);
    close(s.master);
}

static void a_shell_that_set_its_own_modes_is_left_alone(void **state)
{
    (void)state;
    char seen[4096];
    struct termios own;
    struct session s = begin(&(struct how){.script = "echo up; sleep 1000"});
    int pid = caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    assert_true(within(&s, is_raw, 60000));
    kill(pid, SIGSTOP); /* so that the modes change before it can end */
    tcgetattr(s.master, &own);
    own.c_cc[VMIN] = 7;
    tcsetattr(s.master, TCSANOW, &own);
    kill(pid, SIGKILL);
    usleep(200000);
    tcgetattr(s.master, &own);
    assert_int_equal(own.c_cc[VMIN], 7);
    waitpid(s.pid, NULL, 0);
    close(s.report);
    close(s.master);
}

static void the_size_follows(void **state)
{
    (void)state;
    char seen[4096];
    struct session s =
        begin(&(struct how){.script = "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.05; done"});
    caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    struct winsize size = {.ws_row = 11, .ws_col = 22};
    ioctl(s.master, TIOCSWINSZ, &size);
    assert_true(sees(&s, "11 22", seen, sizeof seen));
    assert_int_equal(end(&s, NULL).code, 0);
}

static void end_of_file_is_passed(void **state)
{
    (void)state;
    char seen[4096];
    struct session s = begin(&(struct how){.script = "cat; echo over"});
    caller_pid(&s);
    assert_true(within(&s, is_raw, 60000));
    type(&s, "line\r");
    assert_true(sees(&s, "line\r\nline", seen, sizeof seen)); /* the box's pty echoes, then cat answers */
    type(&s, "\x04");
    assert_true(sees(&s, "over", seen, sizeof seen));
    assert_int_equal(end(&s, NULL).code, 0);
}

static void an_interrupt_key_in_raw_mode(void **state)
{
    (void)state;
    char seen[4096];
    int status;
    struct session s = begin(&(struct how){.script = "echo up; exec sleep 1000"});
    caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    usleep(50000);
    type(&s, "\x03");
    struct report r = end(&s, &status);
    assert_int_equal(r.end, BOX_SIGNALED);
    assert_int_equal(r.code, SIGINT);
    assert_int_equal(status, 200 + SIGINT); /* pinfold ended by the signal itself */
}

static void an_interrupt_key_without_a_pty_comes_once(void **state)
{
    (void)state;
    char seen[4096];
    int ends[2];
    struct session s;
    int status;
    assert_int_equal(pipe2(ends, 0), 0);
    struct how how = {.script = "n=0; trap 'echo INT; n=1' INT; echo up; while [ $n = 0 ]; do sleep 0.05; done; "
                                "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done; exit 7",
                      .tty = TTY_NEVER,
                      .out = ends[1]};
    s = begin(&how);
    close(ends[1]);
    caller_pid(&s);
    struct session pipe_end = {.master = ends[0]};
    assert_true(sees(&pipe_end, "up", seen, sizeof seen));
    type(&s, "\x03");
    struct report r = end(&s, &status);
    ssize_t n = read(ends[0], seen, sizeof seen - 1);
    seen[n < 0 ? 0 : n] = 0;
    assert_string_equal(seen, "INT\n");
    assert_int_equal(r.code, 7);
    assert_int_equal(r.reraise, 0); /* the command dealt with it */
    close(ends[0]);
}

static void a_key_that_ends_the_command_ends_pinfold(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int sig;
    } keys[] = {{"\x03", SIGINT}, {"\x1c", SIGQUIT}};
    for (int i = 0; i < 2; i++) {
        char seen[4096];
        int ends[2], status;
        assert_int_equal(pipe2(ends, 0), 0);
        struct session s =
            begin(&(struct how){.script = "ulimit -c 0; echo up; exec sleep 1000", .tty = TTY_NEVER, .out = ends[1]});
        close(ends[1]);
        caller_pid(&s);
        struct session pipe_end = {.master = ends[0]};
        assert_true(sees(&pipe_end, "up", seen, sizeof seen));
        usleep(50000);
        type(&s, keys[i].key);
        struct report r = end(&s, &status);
        assert_int_equal(r.code, keys[i].sig);
        assert_int_equal(r.reraise, keys[i].sig);
        assert_int_equal(status, 200 + keys[i].sig);
        close(ends[0]);
    }
}

static void signals_from_processes_are_forwarded(void **state)
{
    (void)state;
    static const int sigs[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
    for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
        char script[200], seen[4096];
        int ends[2];
        assert_int_equal(pipe2(ends, 0), 0);
        snprintf(script, sizeof script, "trap 'echo GOT; exit 9' %d; echo up; while :; do sleep 0.02; done", sigs[i]);
        struct session s = begin(&(struct how){.script = script, .tty = TTY_NEVER, .out = ends[1]});
        close(ends[1]);
        int pid = caller_pid(&s);
        struct session pipe_end = {.master = ends[0]};
        assert_true(sees(&pipe_end, "up", seen, sizeof seen));
        kill(pid, sigs[i]);
        assert_true(sees(&pipe_end, "GOT", seen, sizeof seen));
        struct report r = end(&s, NULL);
        assert_int_equal(r.code, 9);
        close(ends[0]);
    }
}

static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    char seen[4096];
    int ends[2];
    assert_int_equal(pipe2(ends, 0), 0);
    struct session s = begin(&(struct how){.script = "trap 'echo HUP' HUP; echo up; sleep 0.3; echo end",
                                           .tty = TTY_NEVER,
                                           .out = ends[1],
                                           .ignored = SIGHUP});
    close(ends[1]);
    int pid = caller_pid(&s);
    struct session pipe_end = {.master = ends[0]};
    assert_true(sees(&pipe_end, "up", seen, sizeof seen));
    kill(pid, SIGHUP);
    assert_true(sees(&pipe_end, "end", seen, sizeof seen));
    assert_null(strstr(seen, "HUP"));
    end(&s, NULL);
    close(ends[0]);
}

static void the_stop_key_without_a_pty(void **state)
{
    (void)state;
    char seen[4096];
    int ends[2];
    assert_int_equal(pipe2(ends, 0), 0);
    struct session s = begin(
        &(struct how){.script = "echo up; while :; do sleep 0.05; echo more; done", .tty = TTY_NEVER, .out = ends[1]});
    close(ends[1]);
    int pid = caller_pid(&s);
    struct session pipe_end = {.master = ends[0]};
    assert_true(sees(&pipe_end, "up", seen, sizeof seen));
    type(&s, "\x1a");
    assert_int_equal(stopped(&s), SIGTSTP);
    /* The box is stopped, too: after what is on its way nothing more comes. */
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    bool quiet = false;
    for (int i = 0; i < 20 && !(quiet = poll(&p, 1, 500) == 0); i++)
        assert_true(read(ends[0], seen, sizeof seen) > 0);
    assert_true(quiet);
    kill(pid, SIGCONT);
    assert_true(sees(&pipe_end, "more", seen, sizeof seen));
    kill(pid, SIGTERM);
    assert_int_equal(end(&s, NULL).code, SIGTERM);
    close(ends[0]);
}

static void a_command_that_stops_in_the_pty(void **state)
{
    (void)state;
    char seen[4096];
    struct session s = begin(&(struct how){.script = "echo up; read x; kill -STOP $$; echo again; read x"});
    int pid = caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    type(&s, "\r");
    assert_int_equal(stopped(&s), SIGTSTP);
    assert_true(is_as_before(&s));
    kill(pid, SIGCONT);
    assert_true(sees(&s, "again", seen, sizeof seen));
    assert_true(within(&s, is_raw, 60000));
    type(&s, "\r");
    assert_int_equal(end(&s, NULL).code, 0);
}

static void in_the_background_the_terminal_is_not_touched(void **state)
{
    (void)state;
    char seen[4096];
    struct session s = begin(&(struct how){.script = "echo up; sleep 0.3; echo down", .background = true});
    assert_true(sees(&s, "up", seen, sizeof seen));
    assert_true(is_as_before(&s));
    type(&s, "for somebody else\n");
    assert_true(sees(&s, "down", seen, sizeof seen));
    struct report r = end(&s, NULL);
    assert_int_equal(r.end, BOX_EXITED);
}

static void in_a_pipeline_the_terminal_is_shared(void **state)
{
    (void)state;
    char seen[4096];
    int ends[2];
    assert_int_equal(pipe2(ends, 0), 0);
    struct session s =
        begin(&(struct how){.script = "echo up; read x; echo got $x; read y; echo and $y", .out = ends[1]});
    close(ends[1]);
    caller_pid(&s);
    struct session pipe_end = {.master = ends[0]};
    assert_true(sees(&pipe_end, "up", seen, sizeof seen));
    assert_true(is_as_before(&s)); /* not raw */
    type(&s, "one\n");
    assert_true(sees(&pipe_end, "got one", seen, sizeof seen));
    struct termios pager = s.before; /* a pager takes the terminal: its keys are not ours */
    pager.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(s.master, TCSANOW, &pager);
    type(&s, "q");
    usleep(400000);
    int left = 0;
    char name[64];
    ptsname_r(s.master, name, sizeof name);
    int slave = open(name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(ioctl(slave, FIONREAD, &left), 0);
    assert_int_equal(left, 1); /* still there, for the pager */
    assert_int_equal(read(slave, seen, 1), 1);
    close(slave);
    tcsetattr(s.master, TCSANOW, &s.before);
    type(&s, "two\n");
    assert_true(sees(&pipe_end, "and two", seen, sizeof seen));
    end(&s, NULL);
    close(ends[0]);
}

static void a_hung_up_terminal_ends_the_box(void **state)
{
    (void)state;
    char seen[4096];
    int status;
    struct session s = begin(&(struct how){.script = "echo up; exec sleep 1000"});
    caller_pid(&s);
    assert_true(sees(&s, "up", seen, sizeof seen));
    usleep(50000);
    close(s.master);
    struct report r;
    assert_int_equal(read(s.report, &r, sizeof r), sizeof r);
    waitpid(s.pid, &status, 0);
    assert_int_equal(r.end, BOX_SIGNALED);
    assert_int_equal(r.code, SIGHUP);
    close(s.report);
}

static void much_output_through_the_pty(void **state)
{
    (void)state;
    static char block[1 << 16];
    size_t n = 0;
    struct session s = begin(&(struct how){.script = "head -c 4000000 /dev/zero | tr '\\0' x; echo; echo EN''D"});
    caller_pid(&s);
    struct pollfd p = {.fd = s.master, .events = POLLIN};
    bool over = false;
    while (!over && poll(&p, 1, SILENCE_MS) > 0) {
        ssize_t k = read(s.master, block, sizeof block - 1);
        if (k <= 0)
            break;
        block[k] = 0;
        for (ssize_t i = 0; i < k; i++)
            n += block[i] == 'x';
        over = strchr(block, 'D') != NULL;
    }
    assert_int_equal(n, 4000000);
    end(&s, NULL);
}

static void a_pty_on_request_for_pipes(void **state)
{
    (void)state;
    int in[2], status;
    assert_int_equal(pipe2(in, 0), 0);
    assert_int_equal(write(in[1], "word\n", 5), 5);
    close(in[1]);
    /* stdin ends: the pty says so, and cat is done */
    struct session s =
        begin(&(struct how){.script = "[ -t 0 ] && [ -t 1 ] && cat", .tty = TTY_ALWAYS, .capture = true, .in = in[0]});
    close(in[0]);
    caller_pid(&s);
    struct report r = end(&s, &status);
    assert_int_equal(r.end, BOX_EXITED);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "word\r\nword\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_while_it_runs_and_back_after),
        cmocka_unit_test(restored_after_every_ending),
        cmocka_unit_test(a_killed_pinfold_leaves_the_terminal_as_it_was),
        cmocka_unit_test(a_shell_that_set_its_own_modes_is_left_alone),
        cmocka_unit_test(the_size_follows),
        cmocka_unit_test(end_of_file_is_passed),
        cmocka_unit_test(an_interrupt_key_in_raw_mode),
        cmocka_unit_test(an_interrupt_key_without_a_pty_comes_once),
        cmocka_unit_test(a_key_that_ends_the_command_ends_pinfold),
        cmocka_unit_test(signals_from_processes_are_forwarded),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(the_stop_key_without_a_pty),
        cmocka_unit_test(a_command_that_stops_in_the_pty),
        cmocka_unit_test(in_the_background_the_terminal_is_not_touched),
        cmocka_unit_test(in_a_pipeline_the_terminal_is_shared),
        cmocka_unit_test(a_hung_up_terminal_ends_the_box),
        cmocka_unit_test(much_output_through_the_pty),
        cmocka_unit_test(a_pty_on_request_for_pipes),
    };
    signal(SIGPIPE, SIG_IGN);
    const char *only = getenv("ONLY");
    if (only)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
