/*
 * Where a client of a session daemon is (sessiond/peer.c): by its PID namespace. With processes in namespaces that
 * the test makes.
 */
#include "unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sessiond/parts.h"

/* The number of one that has ended is another process's: here it is our own, as if it had been given away. */
static void number_given_away(void **state)
{
    (void)state;
    uint64_t dev = 1, ino = 1;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork_child();
    if (child == 0) {
        char c;
        (void)close(ends[1]);
        _exit(read(ends[0], &c, 1) != 0);
    }
    auto_fd int process = (int)syscall(SYS_pidfd_open, child, 0);
    struct stat st;
    assert_true(process >= 0);
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    assert_true(peer_pid_namespace(process, child, &dev, &ino));
    assert_int_equal(dev, st.st_dev);
    assert_int_equal(ino, st.st_ino);
    (void)close(ends[1]);
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    dev = ino = 1;
    assert_false(peer_pid_namespace(process, getpid(), &dev, &ino));
    assert_true(dev == 1 && ino == 1);
    /* Without a descriptor the number is all there is. */
    assert_true(peer_pid_namespace(-1, getpid(), &dev, &ino));
    assert_int_equal(ino, st.st_ino);
    assert_false(peer_pid_namespace(-1, child, &dev, &ino));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(number_given_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
