/* What every unit test includes: cmocka and its prerequisites. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/*
 * How often a test of random input tries: fewer times where each takes ten times as long, on an emulated machine and with
 * sanitizers (run.py).
 */
static inline int tries(int often)
{
    const char *by = getenv("PINFOLD_TEST_TRIES_BY");
    int n = by ? atoi(by) : 1;
    return n > 1 ? often / n : often;
}

/*
 * fork() for a child whose status is read. cmocka's own handlers would end one that faults with a small number, which cannot
 * be told from an answer; in this child a fault is a signal.
 */
static inline pid_t fork_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        static const int caught[] = {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGSYS};
        for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
            (void)signal(caught[i], SIG_DFL);
    }
    return pid;
}
