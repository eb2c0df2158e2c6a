/* Starts and ends the checker of protected branches, which is this program again. */
#include "run/moves.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "protocol/moves.h"
#include "sys/fd.h"

/* In the child. Nothing of the caller's goes along but its directory and environment. */
static _Noreturn void execute(int socket, const char *cwd, char **argv)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    socket = fcntl(socket, F_DUPFD, MOVES_SOCKET + 1);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    if (socket < 0 || null < 0 || dup2(socket, MOVES_SOCKET) < 0 || sys_close_range(MOVES_SOCKET + 1, ~0u) < 0)
        _exit(127);
    for (int s = 1; s < 32; s++)
        (void)signal(s, SIG_DFL);
    (void)setsid(); /* what a terminal sends is for the command */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(cwd) == 0)
        (void)execv("/proc/self/exe", argv);
    _exit(127);
}

/* WORKSPACE CWD, the patterns of branches, "--", and the options of the policy by pairs. */
static char **words_of(const struct pinfold_policy *p, const struct plan *plan, struct arena *mem)
{
    const struct git_rules *git = &p->policy->git;
    const struct layers *l = &p->layers;
    size_t n = 0;
    const char **argv = arena_zero(mem, (8 + git->n_branches + 2 * l->n_asked) * sizeof *argv);
    if (!argv)
        return NULL;
    argv[n++] = "pinfold";
    argv[n++] = MOVES_PROGRAM;
    argv[n++] = plan->workspace;
    argv[n++] = l->world.cwd;
    for (size_t i = 0; i < git->n_branches; i++)
        argv[n++] = git->branches[i].pattern;
    argv[n++] = "--";
    for (size_t i = 0; i < l->n_asked; i++) {
        if (l->asked[i].wish || !l->asked[i].value)
            continue; /* names of variables; what makes no box smaller */
        argv[n++] = l->asked[i].name;
        argv[n++] = l->asked[i].value;
    }
    return (char **)(uintptr_t)argv;
}

static int wait_ready(struct moves_checker *c, struct err *e)
{
    struct moves_answer a = {.passed = 0};
    ssize_t n;
    do
        n = recv(c->socket, &a, sizeof a, 0);
    while (n < 0 && errno == EINTR);
    a.why[sizeof a.why - 1] = 0;
    if (n == sizeof a && a.passed)
        return 0;
    return err_say(e, ERR_CANNOT, "git.verify: required: %s",
                   n == sizeof a ? a.why : "the process that has hooks judge commits has failed");
}

int moves_begin(const struct pinfold_policy *p, const struct plan *plan, struct moves_checker *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_LAYERS_BYTES);
    int ends[2];
    *ret = (struct moves_checker){.socket = 0};
    if (!plan->verifies)
        return 0;
    if (!p->layers.asked_whole) {
        int r = err_say(e, ERR_CANNOT, "git.verify: required cannot be enforced for a policy that is given as a text");
        return err_hint(e, r, "write the policy into a file, and name that");
    }
    char **argv = mem ? words_of(p, plan, mem) : NULL;
    if (!argv)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "git.verify");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "git.verify");
    ret->socket = ends[0];
    ret->pid = fork();
    if (ret->pid == 0)
        execute(ends[1], p->layers.world.cwd, argv);
    (void)close(ends[1]);
    int r = ret->pid < 0 ? err_sys(e, ERR_SYSTEM, errno, "git.verify") : wait_ready(ret, e);
    if (r < 0)
        moves_end(ret);
    return r;
}

void moves_end(struct moves_checker *c)
{
    if (!c->socket)
        return;
    (void)close(c->socket);
    while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *c = (struct moves_checker){.socket = 0};
}
