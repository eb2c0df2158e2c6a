/*
 * Long answers on a terminal go through the person's own pager (PAGER, else less). It gets text that this program has made safe: colours
 * are the only control characters in it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"

bool has_colours(int fd)
{
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && has_sequences(fd);
}

static const char *pager_of(const struct ask *a)
{
    const char *pager = getenv("PAGER");
    if (a->no_pager || !isatty(0) || !isatty(1))
        return NULL;
    if (!pager)
        pager = "less";
    return *pager && !same(pager, "cat") ? pager : NULL;
}

/* The other end of its standard input; -1: it could not be started. */
static int start_pager(const char *pager, pid_t *ret)
{
    int ends[2];
    if (pipe(ends) < 0)
        return -1;
    *ret = fork();
    if (*ret == 0) {
        (void)dup2(ends[0], 0);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)setenv("LESS", "FRX", 0); /* as git: stay only if it is more than a screen, pass colours on */
        (void)execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[0]);
    if (*ret > 0)
        return ends[1];
    (void)close(ends[1]);
    return -1;
}

int print_paged(const struct ask *a, const struct buf *out)
{
    struct sigaction before, none = {.sa_handler = SIG_IGN};
    const char *pager = pager_of(a);
    pid_t child = -1;
    int status = 0;
    if (!buf_ok(out)) {
        complain("out of memory for so many changes");
        return STATUS_NO;
    }
    (void)sigaction(SIGPIPE, &none, &before); /* whoever has seen enough ends it */
    const int to = pager ? start_pager(pager, &child) : -1;
    if (to >= 0) {
        (void)fd_write_all(to, out->p ? out->p : "", out->n);
        (void)close(to);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)sigaction(SIGPIPE, &before, NULL);
    /* A pager that could not be started (126, 127) has shown nothing. */
    if (to < 0 || (WIFEXITED(status) && WEXITSTATUS(status) >= 126))
        return print(buf_cstr(out));
    return STATUS_YES;
}

/* ---- patches ---- */

static const char *colour_of_line(struct str line)
{
    return str_starts(line, STR("+++")) || str_starts(line, STR("---")) || str_starts(line, STR("diff ")) ? "1"
           : str_starts(line, STR("+"))                                                                   ? "32"
           : str_starts(line, STR("-"))                                                                   ? "31"
           : str_starts(line, STR("@@"))                                                                  ? "36"
                                                                                                          : NULL;
}

void put_patch(struct str text, bool colours, struct buf *out)
{
    while (text.n) {
        struct str line = str_until(&text, '\n');
        const char *colour = colours ? colour_of_line(line) : NULL;
        if (colour)
            buf_printf(out, "\033[%sm", colour);
        while (line.n) {
            const char *tab = memchr(line.p, '\t', line.n);
            const size_t n = tab ? (size_t)(tab - line.p) : line.n;
            utf8_safe(out, (struct str){line.p, n});
            if (tab)
                buf_char(out, '\t');
            line = str_skip(line, n + (tab != NULL));
        }
        buf_text(out, colour ? "\033[0m\n" : "\n");
    }
}
