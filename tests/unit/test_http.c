/*
 * backends/container/http.h against a server of this test's own. What is answered, cut short, late, or no HTTP.
 */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/container/http.h"

static char path[64];

/* Serves one connection in a child: reads the request, sends `text` byte by byte or at once, then ends. */
static pid_t serve(const char *text, bool slowly)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "/tmp/pinfold-test-http-%d", (int)getpid());
    strcpy(at.sun_path, path);
    (void)unlink(path);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s, 1), 0);
    pid_t pid = fork_child();
    if (pid == 0) {
        char ask[4096];
        int c = accept(s, NULL, NULL);
        ssize_t n = read(c, ask, sizeof ask);
        bool asked = n > 4 && memcmp(ask, "GET /", 5) == 0;
        size_t k = strlen(text);
        for (size_t i = 0; text && asked && i < k; i += slowly ? 1 : k)
            (void)!write(c, text + i, slowly ? 1 : k);
        if (!text[0])
            pause();
        _exit(0);
    }
    close(s);
    return pid;
}

static int get(const char *text, bool slowly, int timeout, struct buf *ret, int *status)
{
    pid_t pid = serve(text, slowly);
    int r = http_get(path, "/info", timeout, ret, status);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(path);
    return r;
}

static void answers(void **state)
{
    (void)state;
    auto_buf struct buf b = BUF(4096), c = BUF(4096), d = BUF(4096), f = BUF(8);
    int status = 0;
    assert_int_equal(get("HTTP/1.0 200 OK\r\nX: y\r\n\r\n{\"a\": 1}", false, 5000, &b, &status), 0);
    assert_int_equal(status, 200);
    assert_string_equal(buf_cstr(&b), "{\"a\": 1}");
    assert_int_equal(get("HTTP/1.1 404 Not Found\r\n\r\nno", true, 5000, &c, &status), 0);
    assert_int_equal(status, 404);
    assert_string_equal(buf_cstr(&c), "no");
    assert_int_equal(get("SSH-2.0-OpenSSH\r\n\r\n", false, 5000, &d, &status), -EBADMSG);
    assert_int_equal(get("HTTP/1.0 200 OK\r\n\r\nmore than eight", false, 5000, &f, &status), -EMSGSIZE);
}

static void silence(void **state)
{
    (void)state;
    auto_buf struct buf b = BUF(4096);
    int status = 0;
    assert_int_equal(get("", false, 200, &b, &status), -ETIMEDOUT);
    assert_int_equal(http_get("/nowhere/at/all", "/info", 200, &b, &status), -ENOENT);
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(http_get(longest, "/info", 200, &b, &status), -ENAMETOOLONG);
}

static void paths(void **state)
{
    (void)state;
    auto_buf struct buf b = BUF(4096);
    http_path(STR("team/tool:1.2@sha256:ab?x#y z\n"), &b);
    assert_string_equal(buf_cstr(&b), "team/tool:1.2@sha256:ab%3Fx%23y%20z%0A");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers), cmocka_unit_test(silence), cmocka_unit_test(paths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
