/*
 * Starts pinfold-sqlite (sqlite/), which copies an agent's database into a session's state or brings its login up to date, and
 * hears how it went. What answers has read a box's bytes: its answer is taken for no more than a number and a sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agents/agents.h"
#include "base/fd.h"
#include "protocol/database.h"
#include "user/packages.h"

/* What it said, or how it ended without a word. */
static int answer_of(long got, struct database_answer *answer, int status, const char *name, struct err *e)
{
    if (got == -ETIMEDOUT)
        return err_sys(e, ERR_SYSTEM, ETIMEDOUT, "cannot copy %s into the session", name);
    if (got != (long)sizeof *answer && WIFEXITED(status) && WEXITSTATUS(status) == AGENT_NOT_STARTED)
        return err_say(e, ERR_CANNOT,
                       "cannot copy %s into the session: pinfold-sqlite does not start (it needs the library "
                       "libsqlite3.so.0: %s)",
                       name, package_install("libsqlite3-0", (char[PACKAGE_WORDS]){0}));
    if (got != (long)sizeof *answer)
        return err_say(e, ERR_SYSTEM,
                       "the process that copies %s into the session died; the session's state is not what its agent "
                       "wrote",
                       name);
    answer->e.text[sizeof answer->e.text - 1] = 0;
    if (answer->result == DATABASE_REFRESHED || answer->result == DATABASE_FIRST)
        return answer->result;
    if (e && (unsigned)answer->e.kind <= ERR_BUG)
        *e = answer->e;
    return answer->result < 0 && answer->result >= -4095 ? answer->result : -EIO;
}

static int ask(int program, const struct agent_dirs *dirs, const struct agent_file *file, struct err *e)
{
    const char *argv[32] = {"pinfold-sqlite", PINFOLD_VERSION, file->name};
    struct database_answer answer;
    int pair[2], status = 0;
    for (size_t i = 0; file->refresh && file->refresh[i]; i++) {
        if (i + 4 >= sizeof argv / sizeof *argv)
            return err_say(e, ERR_POLICY, "%s: too many tables", file->name);
        argv[i + 3] = file->refresh[i];
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    pid_t pid = fork();
    int no = pid < 0 ? -errno : 0;
    if (pid == 0)
        agent_become(program, (const int[]){pair[1], dirs->host, dirs->session}, DATABASE_FDS - DATABASE_SOCKET, argv,
                     (const char *const[]){NULL}, false);
    (void)close(pair[1]);
    long got = no == 0 ? agent_hear(pair[0], agent_patience(), &answer, sizeof answer) : 0;
    (void)close(pair[0]);
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot start pinfold-sqlite");
    if (got > 0 || got == -ETIMEDOUT)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return answer_of(got, &answer, status, file->name, e);
}

int agent_database(const struct agent_dirs *dirs, const struct agent_file *file, agent_opener *open_program,
                   struct err *e)
{
    struct stat st;
    if (dirs->host < 0 || fstatat(dirs->host, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -ENOENT;
    auto_fd int program = open_program(e);
    if (program < 0) /* -ENOENT would say that the host has no database */
        return err_wrap(e, program == -ENOENT ? -EOPNOTSUPP : program, "the login in %s is not copied", file->name);
    int no = -EBUSY;
    /* An agent of the host that began just now has files that the program's Landlock was not told of. */
    for (int tries = 0; tries < 3 && (no == -EIO || no == -EBUSY); tries++)
        no = ask(program, dirs, file, e);
    return no;
}

/* ---- conversations, from one database to another ---- */

struct database_carrier {
    pid_t pid;
    int answers; /* a socket */
};

static int carrier_start(int program, int dir, int pipe_end, const char *how, const struct agent_database_carrying *ask,
                         struct database_carrier *ret, struct err *e)
{
    const char *argv[] = {"pinfold-sqlite", PINFOLD_VERSION, ask->name, DATABASE_CARRY, how, ask->workspace, NULL};
    int pair[2];
    *ret = (struct database_carrier){.pid = -1, .answers = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair");
    pid_t pid = fork();
    if (pid == 0)
        agent_become(program, (const int[]){pair[1], dir, pipe_end}, DATABASE_FDS - DATABASE_SOCKET, argv,
                     (const char *const[]){NULL}, false);
    (void)close(pair[1]);
    *ret = (struct database_carrier){.pid = pid, .answers = pair[0]};
    return pid < 0 ? err_sys(e, ERR_SYSTEM, errno, "cannot start pinfold-sqlite") : 0;
}

static int carrier_end(struct database_carrier *c, const char *name, struct err *e)
{
    struct database_answer answer = {0};
    int status = 0;
    long got = c->answers < 0 ? 0 : agent_hear(c->answers, agent_patience(), &answer, sizeof answer);
    (void)close_fd(c->answers);
    if (c->pid <= 0)
        return -EIO; /* which has been said */
    if (got > 0 || got == -ETIMEDOUT)
        (void)kill(c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return answer_of(got, &answer, status, name, e);
}

int agent_database_carry(const struct agent_database_carrying *ask, agent_opener *open_program, struct err *e)
{
    struct database_carrier from, to;
    struct err said = {0}, other = {0};
    int ends[2];
    auto_fd int program = open_program(e);
    if (program < 0)
        return err_wrap(e, program == -ENOENT ? -EOPNOTSUPP : program, "the conversations in %s stay where they are",
                        ask->name);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a pipe");
    int no = carrier_start(program, ask->from, ends[1],
                           !ask->from_host    ? "from-box"
                           : ask->with_schema ? "from-host+schema"
                                              : "from-host",
                           ask, &from, e);
    (void)close(ends[1]);
    if (no == 0)
        no = carrier_start(program, ask->to, ends[0], ask->with_schema ? "to+schema" : "to", ask, &to, e);
    else
        to = (struct database_carrier){.pid = -1, .answers = -1};
    (void)close(ends[0]);
    const int read = carrier_end(&from, ask->name, &said), wrote = carrier_end(&to, ask->name, &other);
    if (no < 0)
        return no;
    if (e && (read < 0 || wrote < 0)) /* -EPIPE: the other one was first */
        *e = read < 0 && (read != -EPIPE || wrote >= 0) ? said : other;
    return read < 0 ? read : wrote < 0 ? wrote : 0;
}
