/*
 * What several threads of a library's caller do at once: each has an answer of its own session daemon, and counts the processes of its own
 * box. Both with what the test makes itself, in a circle.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "protocol/control.h"
#include "session/ask.h"
#include "supervisor/parts.h"

enum { THREADS = 2, ANSWERS = 5000, BYTES = 20000, SAMPLES = 1000 };

struct circle {
    pthread_t thread;
    char letter;
    pid_t builder;
    unsigned processes, wrong;
};

static void all_at_once(struct circle *circles, void *(*run)(void *))
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&circles[i].thread, NULL, run, &circles[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(circles[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(circles[i].wrong, 0);
}

static void *take_answers(void *ctx)
{
    struct circle *c = ctx;
    struct {
        struct frame f;
        char text[BYTES];
    } m = {.f = {.kind = FRAME_ANSWER, .a = BYTES}};
    int pair[2];
    memset(m.text, c->letter, sizeof m.text);
    c->wrong += socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0;
    for (int i = 0; i < ANSWERS && !c->wrong; i++) {
        auto_buf struct buf out = BUF(KEEP_MAX);
        struct err e = {0};
        c->wrong += send(pair[0], &m, sizeof m, 0) != (ssize_t)sizeof m || ask_answer(pair[1], NULL, &out, &e) < 0 ||
                    out.n != BYTES || memcmp(buf_cstr(&out), m.text, BYTES) != 0;
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    return NULL;
}

static void answers(void **state)
{
    (void)state;
    struct circle circles[THREADS] = {{.letter = 'a'}, {.letter = 'b'}};
    all_at_once(circles, take_answers);
}

/* An emulator makes threads of its own in a new process before the process goes on. */
static _Noreturn void wait_for_end(int told)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)!write(told, "", 1);
    for (;;)
        (void)pause();
}

/* A process with one child, which has `n` more. */
static pid_t make_tree(unsigned n)
{
    int ends[2];
    char up;
    assert_int_equal(pipe(ends), 0);
    const pid_t builder = fork_child();
    if (builder == 0) {
        if (fork() == 0) {
            for (unsigned i = 0; i < n; i++)
                if (fork() == 0)
                    wait_for_end(ends[1]);
            wait_for_end(ends[1]);
        }
        wait_for_end(ends[1]);
    }
    for (unsigned i = 0; i < n + 2; i++)
        assert_int_equal(read(ends[0], &up, 1), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return builder;
}

static void *take_samples(void *ctx)
{
    struct circle *c = ctx;
    struct limit_watcher w = {.on = true,
                              .builder = c->builder,
                              .memory = LIMIT_NONE,
                              .processes = c->processes,
                              .disk = LIMIT_NONE,
                              .disk_fd = -1,
                              .tmp_fd = -1};
    for (int i = 0; i < SAMPLES && !c->wrong; i++)
        c->wrong += watcher_sample(&w, 0) != BOX_LIMIT_NONE;
    w.processes--; /* all are there */
    c->wrong += watcher_sample(&w, 0) != BOX_LIMIT_PROCESSES;
    watcher_end(&w);
    return NULL;
}

/* What one thread counts, while there is no other: an emulator has threads of its own in each process. */
static unsigned count_alone(pid_t builder)
{
    struct limit_watcher w = {.on = true,
                              .builder = builder,
                              .memory = LIMIT_NONE,
                              .processes = 0,
                              .disk = LIMIT_NONE,
                              .disk_fd = -1,
                              .tmp_fd = -1};
    assert_int_equal(watcher_sample(&w, 0), BOX_LIMIT_PROCESSES);
    const unsigned seen = (unsigned)w.seen_processes;
    watcher_end(&w);
    return seen;
}

static void samples(void **state)
{
    (void)state;
    struct circle circles[THREADS] = {{.processes = 3}, {.processes = 20}}; /* at first: how many are made */
    for (int i = 0; i < THREADS; i++) {
        circles[i].builder = make_tree(circles[i].processes);
        circles[i].processes = count_alone(circles[i].builder);
    }
    all_at_once(circles, take_samples);
    for (int i = 0; i < THREADS; i++) {
        (void)kill(circles[i].builder, SIGKILL);
        assert_int_equal(waitpid(circles[i].builder, NULL, 0), circles[i].builder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers), cmocka_unit_test(samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
