/*
 * A pid 1 that serves, on the native engine: commands one by one and at once, terminals, signals, the end of a reply
 * socket, images that are none. And job images, written and read.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/engine.h"
#include "run/direct.h"
#include "run/private.h"
#include "protocol/control.h"
#include "protocol/job.h"

#define PATIENCE_MS 90000

static struct pinfold_policy *policy;
static struct prepared prepared;
static struct started box;
static struct private_dirs dirs = {.lock = -1};

static int begin_box(void **state)
{
    struct pinfold_error error = {0};
    struct err e = {0};
    static char dir[] = "/tmp/pinfold-test-serve-XXXXXX";
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    const struct pinfold_option options[] = {{"workspace", dir}, {NULL, NULL}};
    struct pinfold_policy_options o = {.size = sizeof o, .options = options, .no_layers = 1, .cwd = dir};
    if (pinfold_policy_load(&o, &policy, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    const char *environment[] = {"PATH=/usr/bin:/bin", "HOME=/root", NULL};
    struct plan_ask ask = {.cwd = dir, .environ = environment, .cache_slot = 200, .instance = "test-serve"};
    if (prepare(policy, &ask, false, &prepared, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    if (private_begin(&dirs, prepared.plan, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    struct start_request request = {.plan = prepared.plan,
                                    .stdio = {-1, -1, -1},
                                    .umask = 022,
                                    .egress = -1,
                                    .publish = -1,
                                    .cgroup = {.v2_dir = -1},
                                    .parent_death_signal = true};
    if (engine_native.start(&request, &box, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return -1;
    }
    return 0;
}

static int end_box(void **state)
{
    (void)state;
    engine_native.finish(&box);
    private_end(&dirs);
    prepared_free(&prepared);
    (void)rmdir(policy->policy->workspace);
    pinfold_policy_free(policy);
    return 0;
}

static bool next_frame(int from, struct frame *f, int *ret_fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = {f, sizeof *f};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct pollfd p = {.fd = from, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (ret_fd)
        *ret_fd = -1;
    if (c && ret_fd)
        memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    return n == (ssize_t)sizeof *f;
}

static void send_image(const void *image, size_t n, bool apart, const int *fds, int n_fds)
{
    struct frame f = {.kind = FRAME_EXEC, .a = (uint32_t)n, .b = apart};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(8 * sizeof(int))];
    } control = {0};
    int all[8], k = 0, file = -1;
    if (apart) {
        file = memfd_create("job", MFD_CLOEXEC);
        assert_true(file >= 0 && write(file, image, n) == (ssize_t)n);
        all[k++] = file;
    }
    for (int i = 0; i < n_fds; i++)
        all[k++] = fds[i];
    struct iovec io[2] = {{&f, sizeof f}, {(void *)(uintptr_t)image, n}};
    struct msghdr m = {.msg_iov = io,
                       .msg_iovlen = apart ? 1 : 2,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE((size_t)k * sizeof(int))};
    if (k == 0)
        m.msg_control = NULL, m.msg_controllen = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c) {
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)k * sizeof(int));
        memcpy(CMSG_DATA(c), all, (size_t)k * sizeof(int));
    }
    assert_true(sendmsg(box.control, &m, MSG_NOSIGNAL) > 0);
    if (file >= 0)
        (void)close(file);
}

struct one { /* a command under way */
    int reply, out;
};

static struct one begin(const char *text, uint32_t flags, bool apart)
{
    const char *argv[] = {"sh", "-c", text, NULL}, *envp[] = {"PATH=/usr/bin:/bin", "A=b c", NULL};
    struct job_parts parts = {.argv = argv, .envp = envp, .cwd = "/usr", .flags = flags, .umask = 027};
    struct buf image = BUF(JOB_MAX_BYTES);
    int pair[2], out[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(job_image_write(&parts, &image), 0);
    assert_int_equal(job_image_check(image.p, image.n), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    const int fds[] = {pair[1], null, out[1], out[1]};
    send_image(image.p, image.n, apart, fds, flags & JOB_TTY ? 1 : 4);
    (void)close(pair[1]);
    (void)close(out[1]);
    (void)close(null);
    buf_free(&image);
    return (struct one){pair[0], out[0]};
}

static void read_all(int from, char *to, size_t room)
{
    size_t n = 0;
    ssize_t got;
    while (n < room - 1 && (got = read(from, to + n, room - 1 - n)) > 0)
        n += (size_t)got;
    to[n] = 0;
}

static int finish(struct one *o, char *text, size_t room)
{
    struct frame f = {0};
    if (text)
        read_all(o->out, text, room);
    do
        assert_true(next_frame(o->reply, &f, NULL));
    while (f.kind == FRAME_STARTED);
    (void)close(o->reply);
    (void)close(o->out);
    return f.kind == FRAME_EXIT ? (int)f.b : -(int)f.kind;
}

static void is_ready(void **state)
{
    struct frame f;
    (void)state;
    if (!next_frame(box.control, &f, NULL)) {
        struct err e = {0};
        if (next_frame(box.builder, &f, NULL))
            (void)engine_verdict(prepared.plan, f.a, (int)f.b, &e);
        fail_msg("the box failed: %s", e.text);
    }
    assert_int_equal(f.kind, FRAME_READY);
}

static void commands(void **state)
{
    char text[256];
    (void)state;
    for (int apart = 0; apart < 2; apart++) {
        struct one o = begin("echo \"$A\"; pwd; umask; exit 7", 0, apart);
        assert_int_equal(WEXITSTATUS(finish(&o, text, sizeof text)), 7);
        assert_string_equal(text, "b c\n/usr\n0027\n");
    }
    struct one o = begin("kill -9 $$", 0, false);
    int status = finish(&o, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    /* nothing of pid 1's; built-in words alone, so that the shell itself opens nothing */
    o = begin("for i in 3 4 5 6 7 8 9 10 11 12; do test ! -e /proc/$$/fd/$i || echo $i; done; echo end", 0, false);
    assert_int_equal(finish(&o, text, sizeof text), 0);
    assert_string_equal(text, "end\n");
}

static void at_once(void **state)
{
    enum { N = 60 };
    struct one o[N];
    char text[64], command[64], expected[64];
    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(command, sizeof command, "sleep 0.%d; echo %d; exit %d", i % 3, i, i);
        o[i] = begin(command, i % 2 ? JOB_TELL_START : 0, false);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(WEXITSTATUS(finish(&o[i], text, sizeof text)), i);
        snprintf(expected, sizeof expected, "%d\n", i);
        assert_string_equal(text, expected);
    }
}

/* Closing the reply socket ends the whole session of the command, also groups of their own. */
static void left(void **state)
{
    char text[64];
    (void)state;
    struct one o = begin("exec bash -c 'set -m; sleep 1000 & sleep 1000 & echo on; wait'", 0, false);
    assert_int_equal(read(o.out, text, sizeof text), 3);
    (void)close(o.reply);
    read_all(o.out, text, sizeof text); /* ends when the last holder has gone */
    (void)close(o.out);
}

static void signals(void **state)
{
    char text[64];
    (void)state;
    struct one o = begin("trap 'echo got; exit 3' TERM; echo on; while :; do sleep 0.05; done", 0, false);
    assert_int_equal(read(o.out, text, sizeof text), 3);
    const struct frame f = {.kind = FRAME_SIGNAL, .a = SIGTERM, .b = SIGNAL_COMMAND};
    assert_true(send(o.reply, &f, sizeof f, 0) > 0);
    assert_int_equal(WEXITSTATUS(finish(&o, text, sizeof text)), 3);
    assert_string_equal(text, "got\n");
    o = begin("sleep 1000; echo not reached", 0, false);
    const struct frame end = {.kind = FRAME_END};
    assert_true(send(o.reply, &end, sizeof end, 0) > 0);
    assert_int_equal(WTERMSIG(finish(&o, text, sizeof text)), SIGKILL);
    assert_string_equal(text, "");
}

static void terminal(void **state)
{
    char text[256];
    struct frame f;
    int master = -1;
    size_t n = 0;
    (void)state;
    struct one o = begin("stty size; test -t 0 && tty; exit 5", JOB_TTY, false);
    assert_true(next_frame(o.reply, &f, &master));
    assert_int_equal(f.kind, FRAME_TTY);
    assert_true(master >= 0);
    assert_true(next_frame(o.reply, &f, NULL));
    assert_int_equal(f.kind, FRAME_EXIT);
    assert_int_equal(WEXITSTATUS(f.b), 5);
    struct pollfd p = {.fd = master, .events = POLLIN};
    text[0] = 0;
    while (n < sizeof text - 1 && !strstr(text, "/dev/pts/") && poll(&p, 1, PATIENCE_MS) == 1) {
        ssize_t got = read(master, text + n, sizeof text - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = 0;
    }
    assert_non_null(strstr(text, "/dev/pts/"));
    const struct frame told = {.kind = FRAME_END, .a = 1};
    assert_true(send(o.reply, &told, sizeof told, 0) > 0);
    (void)close(o.reply);
    (void)close(o.out);
    (void)close(master);
}

static void nonsense(void **state)
{
    static const char junk[64] = "no image";
    struct job_image image = {.magic = JOB_MAGIC, .bytes = sizeof image};
    struct frame f;
    int pair[2];
    char text[64];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const int fds[] = {pair[1], pair[1], pair[1], pair[1], pair[1], pair[1]};
    send_image(junk, sizeof junk, false, fds, 4);
    send_image(&image, sizeof image, false, fds, 4);
    send_image(junk, sizeof junk, true, fds, 1);
    send_image(junk, sizeof junk, false, NULL, 0);
    send_image(junk, sizeof junk, false, fds, 6); /* more descriptors than there is room for */
    for (int i = 0; i < 3; i++) {
        assert_true(next_frame(pair[0], &f, NULL));
        assert_int_equal(f.kind, FRAME_VERDICT);
        assert_int_equal(f.a, WHERE_CHECK);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    struct one o = begin("echo alive", 0, false); /* and it serves on */
    assert_int_equal(finish(&o, text, sizeof text), 0);
    assert_string_equal(text, "alive\n");
}

static void not_there(void **state)
{
    const char *argv[] = {"/no/such/program", NULL};
    struct job_parts parts = {.argv = argv};
    struct buf image = BUF(JOB_MAX_BYTES);
    struct frame f;
    int pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)state;
    for (int i = 0; i < 2; i++) {
        parts.cwd = i ? "/no/such/place" : NULL;
        assert_int_equal(job_image_write(&parts, &image), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        const int fds[] = {pair[1], null, null, null};
        send_image(image.p, image.n, false, fds, 4);
        assert_true(next_frame(pair[0], &f, NULL));
        assert_int_equal(f.kind, i ? FRAME_VERDICT : FRAME_EXEC_FAILED);
        assert_int_equal(f.b, ENOENT);
        if (i)
            assert_int_equal(f.a, WHERE_CWD);
        (void)close(pair[0]);
        (void)close(pair[1]);
        buf_free(&image);
    }
    (void)close(null);
}

/* An image cut or changed anywhere is refused or harmless to look at. */
static void images(void **state)
{
    const char *argv[] = {"a", "bb", NULL}, *envp[] = {"X=1", NULL};
    struct job_rlimit limit = {.what = RLIMIT_CPU, .value = 5};
    struct job_parts parts = {.argv = argv, .envp = envp, .cwd = "/x", .rlimits = &limit, .n_rlimits = 1};
    struct buf image = BUF(JOB_MAX_BYTES);
    (void)state;
    assert_int_equal(job_image_write(&parts, &image), 0);
    const struct job_image *j = (const void *)image.p;
    assert_int_equal(job_image_check(j, image.n), 0);
    assert_string_equal(job_string(j, job_list(j, j->argv_at)[1]), "bb");
    assert_string_equal(job_string(j, job_list(j, j->envp_at)[0]), "X=1");
    assert_string_equal(job_string(j, j->cwd), "/x");
    assert_int_equal(job_rlimits(j)->value, 5);
    for (size_t n = 0; n < image.n; n++)
        assert_int_equal(job_image_check(image.p, n), -EBADMSG);
    buf_free(&image);
    argv[0] = NULL;
    assert_int_equal(job_image_write(&parts, &image), 0);
    assert_int_equal(job_image_check(image.p, image.n), -EBADMSG);
    buf_free(&image);
    assert_true(job_env_has(envp, "X=2") && !job_env_has(envp, "XY=2") && !job_env_has(envp, "=X"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_ready), cmocka_unit_test(commands),  cmocka_unit_test(at_once),
        cmocka_unit_test(left),     cmocka_unit_test(signals),   cmocka_unit_test(terminal),
        cmocka_unit_test(nonsense), cmocka_unit_test(not_there), cmocka_unit_test(images),
    };
    return cmocka_run_group_tests(tests, begin_box, end_box);
}
