/*
 * Starts and ends the checker of protected branches, which is this program again. It is a process of its own because
 * it starts boxes while the box that it judges runs (moves.h).
 */
#include "run/moves.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/engine.h"
#include "base/buf.h"
#include "base/fd.h"
#include "layer/layer.h"
#include "protocol/control.h"
#include "protocol/moves.h"
#include "sys/fd.h"
#include "user/replace.h"

/* In the child. Nothing of the caller's goes along but its directory and environment. `given`: what becomes 3 and so on, or -1. */
static _Noreturn void execute(const int given[3], const char *cwd, char **argv)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), moved[3], last = MOVES_SOCKET;
    sigset_t none;
    for (int i = 0; i < 3; i++)
        moved[i] = given[i] < 0 ? -1 : fcntl(given[i], F_DUPFD, MOVES_INDEX + 1);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    for (int i = 0; i < 3; i++) {
        if (given[i] >= 0 && dup2(moved[i], last++) < 0)
            _exit(127);
    }
    if (null < 0 || sys_close_range((unsigned)last, ~0u) < 0)
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
static const char **words_of(const struct pinfold_policy *p, const struct plan *plan, struct arena *mem)
{
    const struct git_rules *git = &p->policy->git;
    const struct layers *l = &p->layers;
    size_t n = 0;
    const char **words = arena_zero(mem, (8 + git->n_branches + 2 * l->n_asked) * sizeof *words);
    if (!words)
        return NULL;
    words[n++] = plan->workspace;
    words[n++] = l->world.cwd;
    for (size_t i = 0; i < git->n_branches; i++)
        words[n++] = git->branches[i].pattern;
    words[n++] = "--";
    for (size_t i = 0; i < l->n_asked; i++) {
        if (l->asked[i].wish || !l->asked[i].value)
            continue; /* names of variables; what makes no box smaller */
        words[n++] = l->asked[i].name;
        words[n++] = l->asked[i].value;
    }
    return words;
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

int moves_start(char *const *words, const int *more, struct moves_checker *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_LAYERS_BYTES);
    int ends[2];
    size_t n = 0, at = 0;
    while (words[n])
        n++;
    const char **argv = mem ? arena_zero(mem, (n + 4) * sizeof *argv) : NULL;
    if (!argv || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, ERR_SYSTEM, argv ? errno : ENOMEM, "git.verify");
    argv[at++] = "pinfold";
    argv[at++] = MOVES_PROGRAM;
    argv[at++] = more ? MOVES_MORE : "";
    for (size_t i = 0; i < n; i++)
        argv[at++] = words[i];
    *ret = (struct moves_checker){.socket = ends[0], .pid = fork()};
    if (ret->pid == 0)
        execute((const int[]){ends[1], more ? more[0] : -1, more ? more[1] : -1}, words[1], (char **)(uintptr_t)argv);
    (void)close(ends[1]);
    int r = ret->pid < 0 ? err_sys(e, ERR_SYSTEM, errno, "git.verify") : wait_ready(ret, e);
    if (r < 0)
        moves_end(ret);
    return r;
}

/* In the layer: that a checker with these words has to be asked when it is applied (run/layer/verify.c). */
static int note_words(const struct layer *l, const char *const *words, struct err *e)
{
    auto_buf struct buf text = BUF(LAYER_VERIFY_MAX);
    for (size_t i = 0; words[i]; i++)
        buf_str(&text, (struct str){words[i], strlen(words[i]) + 1});
    const int no =
        buf_ok(&text) ? file_replace(l->dir, LAYER_VERIFY, LAYER_VERIFY ".new", buf_view(&text), 0600) : -ENOMEM;
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "git.verify: layer %s: cannot write '" LAYER_VERIFY "'", l->id) : 0;
}

int moves_begin(const struct pinfold_policy *p, const struct plan *plan, const struct layer *layer,
                struct moves_checker *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_LAYERS_BYTES);
    *ret = (struct moves_checker){.socket = 0};
    if (!plan->verifies)
        return 0;
    if (!p->layers.asked_whole) {
        int r = err_say(e, ERR_CANNOT, "git.verify: required cannot be enforced for a policy that is given as a text");
        return err_hint(e, r, "write the policy into a file, and name that");
    }
    const char **words = mem ? words_of(p, plan, mem) : NULL;
    if (!words)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "git.verify");
    if (layer)
        return note_words(layer, words, e);
    /* Its boxes may have met what the plan assumes of this machine, and what a thorough look then says is the better reason. */
    return moves_start((char *const *)(uintptr_t)words, NULL, ret, e) < 0 ? -ENGINE_STALE : 0;
}

int moves_ask(const struct moves_checker *c, struct str lines, struct moves_answer *ret)
{
    const struct frame f = {.kind = FRAME_MOVES};
    int ends[2];
    ssize_t n;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    auto_fd int own = ends[0], theirs = ends[1];
    if (send(own, lines.p, lines.n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)lines.n ||
        sys_send_fd(c->socket, &f, sizeof f, theirs, 0) != sizeof f)
        return -EPIPE;
    theirs = close_fd(theirs);
    do
        n = recv(own, ret, sizeof *ret, 0);
    while (n < 0 && errno == EINTR);
    ret->why[sizeof ret->why - 1] = 0;
    return n == (ssize_t)sizeof *ret ? 0 : -EPIPE;
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
