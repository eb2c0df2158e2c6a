/*
 * What stage.c, pull.c and step.c all ask git, and how they read what it says. Up to a ceiling, and only lines of the
 * expected form: what git prints is about a box's objects.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/push/push.h"
#include "project/push/stage.h"
#include "sys/process.h"

bool stage_refuse(struct staging *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    return false;
}

bool stage_ask(const char *const *argv, const char *dir, struct str in, struct buf *out)
{
    int pipe_of[2];
    auto_fd int given = sys_memory("asked");
    if (given < 0 || fd_write_all(given, in.p, in.n) < 0 || lseek(given, 0, SEEK_SET) < 0 ||
        pipe2(pipe_of, O_CLOEXEC) < 0)
        return false;
    pid_t git = push_git(argv, dir, given, pipe_of[1], -1);
    (void)close(pipe_of[1]);
    bool good = fd_read_all(pipe_of[0], out) == 0;
    (void)close(pipe_of[0]);
    return push_wait(git) == 0 && good && buf_ok(out);
}

bool ready_begin(const char *const *argv, const char *dir, int out, struct ready_git *ret)
{
    int to[2], from[2] = {-1, -1};
    *ret = (struct ready_git){.git = -1, .in = -1, .out = -1};
    if (pipe2(to, O_CLOEXEC) < 0)
        return false;
    if (out < 0 && pipe2(from, O_CLOEXEC) < 0) {
        (void)close(to[0]);
        (void)close(to[1]);
        return false;
    }
    *ret =
        (struct ready_git){.git = push_git(argv, dir, to[0], out < 0 ? from[1] : out, -1), .in = to[1], .out = from[0]};
    (void)close(to[0]);
    (void)close_fd(from[1]);
    return ret->git > 0;
}

bool ready_say(struct ready_git *a, struct str text)
{
    const bool good = a->in >= 0 && fd_write_all(a->in, text.p, text.n) == 0;
    a->in = close_fd(a->in);
    return good;
}

bool ready_end(struct ready_git *a, struct buf *out)
{
    a->in = close_fd(a->in);
    const bool good = !out || (a->out >= 0 && fd_read_all(a->out, out) == 0 && buf_ok(out));
    a->out = close_fd(a->out);
    const pid_t git = a->git;
    a->git = -1;
    return git > 0 && push_wait(git) == 0 && good;
}

bool stage_is_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
    }
    return s.n == 40 || s.n == 64;
}

bool stage_has_line(struct str lines, const char *before, struct str id)
{
    char word[80];
    snprintf(word, sizeof word, "%s%.*s\n", before, (int)id.n, id.p);
    return memmem(lines.p, lines.n, word, strlen(word)) != NULL;
}

bool stage_cut_line(char *line, char *ret[LIST_WORDS])
{
    line[strcspn(line, "\n")] = 0;
    ret[0] = line;
    for (size_t i = 1; i < LIST_WORDS; i++) {
        char *space = strchr(ret[i - 1], ' ');
        if (!space)
            return false;
        *space = 0;
        ret[i] = space + 1;
    }
    return true;
}

void stage_say_commit(const char *commit)
{
    auto_buf struct buf message = BUF(COMMITS_MAX);
    char path[PATH_MAX];
    snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%s", commit);
    (void)push_recall(path, &message);
    struct str rest = buf_view(&message), subject = str_until(&rest, '\n');
    printf("%s %.*s\n", commit, (int)(subject.n < 200 ? subject.n : 200), subject.p);
}
