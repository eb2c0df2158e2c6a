/*
 * The program that git starts for the remote `host`, in two boxes. In that of a branch it connects to the host's side and hands on
 * bytes. In the box at the other end (host_remote.c) it starts git, and judges the names that a push asks for before git sees them.
 * Both are confined already, and neither is trusted by the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "git/gitpush.h"
#include "project/branch.h"
#include "project/rules.h"
#include "sys/process.h"

#define PUSH  'P'
#define FETCH 'F'

enum { PIECE = 65536, STDERR_KEPT = 2048 };

bool remote_named(const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    return name && same(slash ? slash + 1 : name, &REMOTE_HELPER[1]);
}

static void tell(const char *text)
{
    (void)!write(2, text, strlen(text));
}

/* ---- in the box of a branch ---- */

static int connect_host(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = REMOTE_IN_BOX "/socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    tell("pinfold: the remote 'host' is not served; on the host, run 'pinfold start' for this project and branch\n");
    return close_fd(fd);
}

/* Hands on what comes, in both directions; the host's end of file is the end. */
static int hand_on(int host)
{
    static char piece[PIECE];
    bool sending = true;
    for (;;) {
        struct pollfd of[] = {{.fd = host, .events = POLLIN}, {.fd = sending ? 0 : -1, .events = POLLIN}};
        if (poll(of, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return 1;
        }
        if (of[1].revents) {
            ssize_t n = read(0, piece, sizeof piece);
            sending = n > 0 && fd_write_all(host, piece, (size_t)n) == 0;
            if (!sending)
                (void)shutdown(host, SHUT_WR);
        }
        if (of[0].revents) {
            ssize_t n = read(host, piece, sizeof piece);
            if (n <= 0 || fd_write_all(1, piece, (size_t)n) < 0)
                return n == 0 ? 0 : 1;
        }
    }
}

/* ---- at the host's side ---- */

/* git's output goes to the client, its words too if it said nothing else. */
static _Noreturn void hand_back(int out, int err)
{
    static char piece[PIECE];
    char kept[STDERR_KEPT + 1];
    size_t n_kept = 0;
    bool said = false;
    while (out >= 0 || err >= 0) {
        struct pollfd of[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
        if (poll(of, 2, -1) < 0 && errno != EINTR)
            break;
        ssize_t n = of[1].revents ? read(err, piece, sizeof piece) : -1;
        for (ssize_t i = 0; i < n && n_kept < STDERR_KEPT; i++)
            kept[n_kept++] = piece[i];
        if (of[1].revents && n <= 0)
            err = close_fd(err);
        if (!of[0].revents)
            continue;
        n = read(out, piece, sizeof piece);
        if (n <= 0 || fd_write_all(1, piece, (size_t)n) < 0)
            out = close_fd(out);
        said |= n > 0;
    }
    if (!said && n_kept) {
        auto_buf struct buf line = BUF(4096), packet = BUF(8192);
        buf_printf(&line, "ERR %.*s", (int)n_kept, kept);
        gitpush_put(&packet, 0, buf_view(&line));
        (void)fd_write_all(1, packet.p, packet.n);
    }
    _exit(0);
}

struct served {
    pid_t git, back; /* git, and who hands its output back */
    int to_git;
};

static bool start_git(const char *const *argv, struct served *ret)
{
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        return false;
    ret->git = fork();
    if (ret->git == 0) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)dup2(err[1], 2);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        tell("git cannot be started on the host's side\n");
        _exit(127);
    }
    ret->back = fork();
    if (ret->back == 0) {
        (void)close(in[0]);
        (void)close(in[1]);
        (void)close(out[1]);
        (void)close(err[1]);
        (void)close(0);
        hand_back(out[0], err[0]);
    }
    (void)close(in[0]);
    (void)close(out[0]);
    (void)close(out[1]);
    (void)close(err[0]);
    (void)close(err[1]);
    ret->to_git = in[1];
    return ret->git > 0 && ret->back > 0;
}

/*
 * Whether the repository, which is the working directory, has this name as another's: git would move what it stands for. A loose ref is
 * a file; in a table of refs git finds it.
 */
static bool is_alias(struct str ref)
{
    char name[1024], said[8] = "";
    if (ref.n >= sizeof name)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)ref.n, ref.p);
    if (access("reftable", F_OK) == 0) {
        const char *const argv[] = {"git", "symbolic-ref", "-q", "--", name, NULL};
        int status = 0;
        pid_t git = fork();
        if (git == 0) {
            auto_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
            (void)dup2(nothing, 0);
            (void)dup2(nothing, 1);
            (void)dup2(nothing, 2);
            (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
            _exit(127);
        }
        return git < 0 || waitpid(git, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 1;
    }
    auto_fd int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR;
    ssize_t n = read(fd, said, sizeof said - 1);
    return n < 0 ? errno != EISDIR : strncmp(said, "ref:", 4) == 0;
}

static const char *refusal(const struct gitpush_rules *rules, const struct gitpush_command *c)
{
    const char *why = gitpush_refusal(rules, c);
    return why ? why : is_alias(c->ref) ? "a name that stands for another branch; push that one" : NULL;
}

/* The answer of a git that carries out nothing: all of a push is refused when one of its names is. */
static void report(const struct gitpush_rules *rules, struct str commands, const char *reason, struct str wants)
{
    auto_buf struct buf status = BUF(2 * GITPUSH_MAX_BYTES), out = BUF(4 * GITPUSH_MAX_BYTES);
    struct gitpush_command c;
    bool band = gitpush_wants(wants, "side-band-64k");
    if (!gitpush_wants(wants, "report-status") && !gitpush_wants(wants, "report-status-v2"))
        return;
    gitpush_put(&status, 0, STR("unpack ok\n"));
    for (int r; (r = gitpush_next(&commands, &c)) > GITPUSH_MORE && r != GITPUSH_FLUSH;) {
        auto_buf struct buf line = BUF(8192);
        const char *own = r == GITPUSH_COMMAND ? refusal(rules, &c) : NULL;
        if (r != GITPUSH_COMMAND)
            continue;
        buf_printf(&line, "ng %.*s %s\n", (int)c.ref.n, c.ref.p, own ? own : reason);
        gitpush_put(&status, 0, buf_view(&line));
    }
    buf_text(&status, "0000");
    struct str rest = buf_view(&status);
    while (band && rest.n) {
        struct str piece = {rest.p, rest.n < 60000 ? rest.n : 60000};
        gitpush_put(&out, 1, piece);
        rest = str_skip(rest, piece.n);
    }
    if (band)
        buf_text(&out, "0000");
    else
        buf_str(&out, rest);
    if (buf_ok(&out) && buf_ok(&status))
        (void)fd_write_all(1, out.p, out.n);
}

struct push {
    const struct gitpush_rules *rules;
    struct buf text; /* of the commands */
    struct str wants;
    const char *reason; /* why one of them is refused */
    bool packs;         /* objects follow */
    bool rewrites;      /* every branch of it may be moved to whatever commit */
};

/* Reads all commands. 0: git may have them; 1: refused, with the reason; -errno: no push. */
static int judge(struct push *p)
{
    struct gitpush_command c = {.ref = {0}};
    p->rewrites = true;
    for (size_t at = 0;;) {
        struct str rest = str_skip(buf_view(&p->text), at);
        int r = gitpush_next(&rest, &c);
        if (r == GITPUSH_MORE) {
            char *to = p->text.n < GITPUSH_MAX_BYTES ? buf_space(&p->text, 4096) : NULL;
            ssize_t n = to ? read(0, to, 4096) : -1;
            if (n <= 0)
                return n == 0 && !p->text.n ? 0 : -EBADMSG; /* a client that only looked */
            buf_grew(&p->text, (size_t)n);
            continue;
        }
        if (r < 0)
            return r;
        at = p->text.n - rest.n;
        if (r == GITPUSH_FLUSH)
            break;
        if (r == GITPUSH_COMMAND) {
            p->packs |= !gitpush_deletes(&c);
            p->rewrites &= gitpush_deletes(&c) || gitpush_may_rewrite(p->rules, &c);
            if (!p->reason)
                p->reason = refusal(p->rules, &c);
        }
    }
    struct str again = buf_view(&p->text);
    while (gitpush_next(&again, &c) == GITPUSH_OTHER)
        ;
    p->wants = c.wants;
    return p->reason ? 1 : 0;
}

/* Until the client or git has ended: a client that only waits then holds nothing. */
static void pass_rest(const struct served *s)
{
    static char piece[PIECE];
    auto_fd int git = sys_pidfd_open(s->git, 0);
    for (;;) {
        struct pollfd of[] = {{.fd = 0, .events = POLLIN}, {.fd = git, .events = POLLIN}};
        if (poll(of, 2, -1) < 0 && errno != EINTR)
            return;
        ssize_t n = of[0].revents ? read(0, piece, sizeof piece) : 0;
        if ((of[0].revents && n <= 0) || (n > 0 && fd_write_all(s->to_git, piece, (size_t)n) < 0) ||
            (!of[0].revents && of[1].revents))
            return;
    }
}

/* What the client still sends after it was told no; one that waits for the end of what it is told gets that. */
static void drain(void)
{
    static char piece[PIECE];
    (void)shutdown(1, SHUT_WR);
    (void)close(1);
    while (read(0, piece, sizeof piece) > 0)
        ;
}

/* Starts receive-pack. What the checkout's own configuration says otherwise does not hold for a box. */
static bool start_receive(const struct push *p, bool advertise, struct served *ret)
{
    const char *argv[32] = {"git"};
    size_t n = 1;
    const char *const config[] = {"receive.denyCurrentBranch=refuse",
                                  "receive.denyDeleteCurrent=refuse",
                                  "transfer.fsckObjects=true",
                                  "receive.fsckObjects=true",
                                  "receive.autogc=false",
                                  p->rewrites && !advertise ? "receive.denyNonFastForwards=false"
                                                            : "receive.denyNonFastForwards=true",
                                  p->rules->allow_delete ? "receive.denyDeletes=false" : "receive.denyDeletes=true"};
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        argv[n++] = "-c";
        argv[n++] = config[i];
    }
    argv[n++] = "receive-pack";
    argv[n++] = "--stateless-rpc";
    if (advertise)
        argv[n++] = "--advertise-refs";
    argv[n++] = ".";
    return start_git(argv, ret);
}

static int end_git(struct served *s, bool kill_it)
{
    int status = 0;
    if (kill_it)
        (void)kill(s->git, SIGKILL);
    (void)close(s->to_git);
    (void)waitpid(s->git, &status, 0);
    (void)waitpid(s->back, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What git is to accept depends on what is asked for: one git tells what there is, another carries it out. */
static int serve_push(const struct gitpush_rules *rules)
{
    struct push p = {.rules = rules, .text = BUF(GITPUSH_MAX_BYTES + 8192)};
    struct served s;
    if (!start_receive(&p, true, &s) || end_git(&s, false) != 0)
        return 1;
    int r = judge(&p), status = r != 0;
    if (r == 1) {
        report(rules, buf_view(&p.text), "refused with the others", p.wants);
        if (p.packs)
            drain();
    } else if (r == 0 && p.text.n && p.text.n != 4) {
        if (start_receive(&p, false, &s)) {
            bool sent = fd_write_all(s.to_git, p.text.p, p.text.n) == 0;
            if (sent)
                pass_rest(&s);
            status = end_git(&s, !sent);
        }
    }
    buf_free(&p.text);
    return status;
}

static int serve_git(const struct gitpush_rules *rules)
{
    static const char *const fetch[] = {"git", "upload-pack", "--strict", ".", NULL};
    char service;
    (void)signal(SIGPIPE, SIG_IGN);
    if (read(0, &service, 1) != 1)
        return 1;
    if (service == PUSH)
        return serve_push(rules);
    if (service != FETCH)
        return 1;
    (void)execvp(fetch[0], (char *const *)(uintptr_t)fetch);
    return 127;
}

int remote_main(int argc, char **argv)
{
    struct gitpush_rules rules;
    if (argc > 2 && same(argv[1], "--answer") && push_rules_said(argv + 2, &rules))
        return serve_git(&rules);
    bool fetch = argc == 3 && same(argv[1], "--fetch");
    if (argc != 2 && !fetch) {
        tell("pinfold: this is started by git, for the remote 'host'\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    const char service = fetch ? FETCH : PUSH;
    auto_fd int host = connect_host();
    if (host < 0 || fd_write_all(host, &service, 1) < 0)
        return 1;
    return hand_on(host);
}
