/*
 * Ends sessions that a client or a dead server left behind, in a process that survives the server. It learns of the
 * server's death by the end of a pipe, also after SIGKILL.
 */
#include "mcp/workers/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mcp/tools/directory.h"
#include "mcp/workers/owner.h"
#include "mcp/protocol/answer.h"
#include "pinfold.h"

static void say_session(const char *name, const char *what)
{
    auto_buf struct buf line = BUF(1u << 16);
    buf_text(&line, "pinfold: mcp: session '");
    for (const unsigned char *p = (const unsigned char *)name; *p && line.n < 200; p++) {
        if (*p >= ' ' && *p != 0x7F)
            buf_char(&line, (char)*p);
    }
    buf_printf(&line, "' %s\n", what);
    if (buf_ok(&line))
        (void)!write(2, line.p, line.n);
}

typedef bool chosen_fn(const char *scope, const char *with);

/* Ends every session whose scope is chosen; the number. */
static unsigned stop_all(chosen_fn *chosen, const char *with, const char *saying)
{
    struct pinfold_session_options every = {.size = sizeof every};
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    unsigned n = 0;

    if (pinfold_session_list_report(&every, &report, &error) < 0)
        return 0;
    EACH_ANSWER(s, pinfold_value_get(pinfold_report_value(report), "sessions"))
    {
        const char *name = answer_text(s, "name"), *scope = answer_text(s, "scope");
        struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
        if (!name || !scope || !chosen(scope, with))
            continue;
        int r = pinfold_session_stop(&o, 1, &error);
        n += r == 0;
        if (saying && r == 0)
            say_session(name, saying);
        else if (r < 0 && r != -ENOENT)
            say_session(name, error.text);
    }
    return n;
}

static bool of_the_dead(const char *scope, const char *with)
{
    (void)with;
    return owner_is_dead(scope);
}
static bool of_client(const char *scope, const char *with)
{
    return strcmp(scope, with) == 0;
}
static bool of_instance(const char *scope, const char *with)
{
    size_t n = strlen(with);
    return strncmp(scope, with, n) == 0 && scope[n] == '/';
}

unsigned owner_orphans(void)
{
    unsigned n = stop_all(of_the_dead, NULL, "was left by a server that died; it is stopped");
    directory_forget_dead(owner_is_dead);
    return n;
}

/* ---- the janitor's own process */

static void clients(int fd, const char *instance)
{
    char bytes[512];
    auto_buf struct buf in = BUF(1u << 20);

    for (;;) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        buf_put(&in, bytes, (size_t)n);
        for (const char *end; in.n && (end = memchr(in.p, '\n', in.n));) {
            auto_buf struct buf scope = BUF(1024);
            size_t length = (size_t)(end - in.p);
            in.p[length] = 0;
            owner_scope(&scope, instance, in.p);
            (void)stop_all(of_client, buf_cstr(&scope), NULL);
            memmove(in.p, in.p + length + 1, in.n - length - 1);
            in.n -= length + 1;
        }
    }
}

static _Noreturn void clean(int fd, const char *instance)
{
    const struct timespec moment = {0, 100000000};

    (void)setsid(); /* what ends the server's group must not end this */
    for (int s = 1; s < 32; s++)
        (void)signal(s, s == SIGTERM || s == SIGINT || s == SIGHUP || s == SIGPIPE ? SIG_IGN : SIG_DFL);
    if (fd != 3) {
        (void)dup2(fd, 3);
        fd = 3;
    }
    (void)syscall(SYS_close_range, 4, ~0u, 0);
    clients(fd, instance);
    /* One may be starting while its server dies: what is found is looked for again. */
    for (int i = 0; i < 50 && stop_all(of_instance, instance, NULL); i++)
        (void)nanosleep(&moment, NULL);
    directory_forget(instance);
    _exit(0);
}

int janitor_begin(struct janitor *j, const char *instance)
{
    int ends[2];
    if (j->pid)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    j->pid = fork();
    if (j->pid == 0)
        clean(ends[0], instance);
    int no = errno;
    (void)close(ends[0]);
    if (j->pid < 0) {
        j->pid = 0;
        (void)close(ends[1]);
        return -no;
    }
    j->fd = ends[1];
    return 0;
}

void janitor_forget(struct janitor *j, const char *client)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%s\n", client);
    if (j->pid)
        (void)!write(j->fd, line, (size_t)n);
}

void janitor_end(struct janitor *j)
{
    if (!j->pid)
        return;
    (void)close(j->fd);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    j->pid = 0;
}
