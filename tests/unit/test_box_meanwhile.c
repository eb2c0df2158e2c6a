/* When a caller's work beside a box is done (supervisor/meanwhile.c): by what it watches, and by a clock that this test tells; and what
   comes to a process with a message. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit.h"

#include "supervisor/parts.h"
#include "sys/fd.h"

#define SECOND 1000000u
#define BEGAN  (50ull * SECOND)

static char top[] = "/tmp/meanwhile-XXXXXX";
static int pipe_ends[2];

/* In a process of its own: says that it is at work. */
static bool look(void *ctx)
{
    (void)ctx;
    return write(pipe_ends[1], "x", 1) != 1;
}

static void watch(void *ctx, int inotify, bool deep)
{
    char path[128];
    (void)ctx;
    snprintf(path, sizeof path, "%s/deep", top);
    assert_true(inotify_add_watch(inotify, deep ? path : top, IN_CREATE | IN_ONESHOT) >= 0);
}

static bool is_readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void make(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", top, name);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* Until its process has ended: while it has not, there is no next one. */
static void await_look(const struct box *b)
{
    char byte;
    siginfo_t info;
    assert_true(is_readable(pipe_ends[0], 60000));
    assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    assert_int_equal(waitid(P_PID, (id_t)b->meanwhile.pid, &info, WEXITED | WNOWAIT | __WALL), 0);
}

static struct box *begun(struct run_spec *spec, struct box *b)
{
    assert_int_equal(pipe(pipe_ends), 0);
    *spec = (struct run_spec){.meanwhile = look, .meanwhile_watch = watch, .meanwhile_fd = pipe_ends[1]};
    *b = (struct box){.spec = spec, .began = BEGAN, .stage = STAGE_RUNNING};
    meanwhile_begin(b);
    return b;
}

static void ended(struct box *b)
{
    meanwhile_end(b);
    assert_int_equal(meanwhile_poll(b), -1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void looks_when_something_changes(void **state)
{
    struct run_spec spec;
    struct box b;
    uint64_t now = BEGAN + SECOND / 4;
    char deep[128];
    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(deep, sizeof deep, "%s/deep", top);
    assert_int_equal(mkdir(deep, 0700), 0);
    begun(&spec, &b);
    assert_int_equal(meanwhile_poll(&b), -1); /* a shorter command does not wait for the end of a watch */
    meanwhile_due(&b, now - 1);
    assert_false(is_readable(pipe_ends[0], 0));
    meanwhile_due(&b, now);
    await_look(&b);
    const int fd = meanwhile_poll(&b);
    assert_true(fd >= 0);
    assert_false(is_readable(fd, 0));
    make("one");
    assert_true(is_readable(fd, 0));
    now += SECOND / 4;
    meanwhile_told(&b, now);
    assert_int_equal(meanwhile_poll(&b), -1); /* what follows is no news before the next look */
    assert_true(b.meanwhile.at > now && b.meanwhile.at <= now + SECOND / 20);
    now = b.meanwhile.at;
    meanwhile_due(&b, now);
    await_look(&b);
    assert_int_equal(meanwhile_poll(&b), fd);
    /* The look has watched anew, and elsewhere. A part of a file may come later: it looks again and again, less and less often. */
    assert_true(b.meanwhile.at <= now + SECOND / 20);
    make("deep/two");
    assert_true(is_readable(fd, 0));
    ended(&b);
}

static void never_more_than_its_share(void **state)
{
    struct run_spec spec;
    struct box b;
    const uint64_t now = BEGAN + SECOND / 4;
    (void)state;
    begun(&spec, &b);
    b.meanwhile.began = now - SECOND;
    b.meanwhile.least = 10u * SECOND; /* the last one took a fifth of a second of the processor */
    meanwhile_told(&b, now);
    meanwhile_due(&b, now + SECOND);
    assert_false(is_readable(pipe_ends[0], 0));
    assert_true(b.meanwhile.at <= now + 9u * SECOND);
    meanwhile_due(&b, now + 9u * SECOND);
    await_look(&b);
    ended(&b);
}

static void looks_by_the_clock_alone(void **state)
{
    struct run_spec spec;
    struct box b;
    (void)state;
    begun(&spec, &b);
    meanwhile_end(&b);
    spec.meanwhile_watch = NULL;
    meanwhile_begin(&b);
    assert_int_equal(meanwhile_poll(&b), -1);
    assert_int_equal(b.meanwhile.at, BEGAN + SECOND);
    meanwhile_due(&b, BEGAN + SECOND);
    await_look(&b);
    assert_true(b.meanwhile.at <= BEGAN + 2 * SECOND);
    ended(&b);
}

static int open_here(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A peer may send more descriptors than are asked for. None stays that nobody knows of. */
static void one_descriptor_comes_with_a_message(void **state)
{
    (void)state;
    int ends[2], fd = -1, sent[2] = {0, 0};
    _Alignas(struct cmsghdr) char word = 'x', room[CMSG_SPACE(sizeof sent)];
    struct cmsghdr *c = (struct cmsghdr *)room;
    struct iovec v = {&word, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof sent), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), sent, sizeof sent);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const int before = open_here();
    assert_int_equal(sendmsg(ends[0], &m, 0), 1);
    assert_int_equal(sys_recv_fd(ends[1], &word, 1, &fd, 0), 1);
    assert_true(fd >= 0);
    assert_int_equal(open_here(), before + 1);
    (void)close(fd);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_descriptor_comes_with_a_message), cmocka_unit_test(looks_when_something_changes),
        cmocka_unit_test(never_more_than_its_share), cmocka_unit_test(looks_by_the_clock_alone)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command) ? 1 : failed;
}
