/*
 * A push at the host's side: its commands are judged before git sees them, and handed to the git that carries them
 * out. Both run in a box of their own (push.h), because the bytes come from another one.
 */
#include "project/push/push.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/process.h"

enum { STDERR_KEPT = 2048 };

/* ---- files ---- */

bool push_keep(const char *path, struct str text)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && fd_write_all(fd, text.p, text.n) == 0;
}

bool push_recall(const char *path, struct buf *to)
{
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fd_read_all(fd, to) == 0;
}

/* ---- git ---- */

pid_t push_git(const char *const *argv, const char *dir, int in, int out, int err)
{
    pid_t git = fork();
    if (git != 0)
        return git;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(in < 0 ? nothing : in, 0);
    (void)dup2(out < 0 ? nothing : out, 1);
    (void)dup2(err < 0 ? nothing : err, 2);
    if (dir) {
        (void)setenv("GIT_DIR", dir, 1);
        (void)setenv("GIT_NO_REPLACE_OBJECTS", "1", 1);
        (void)setenv("GIT_GRAFT_FILE", "/dev/null", 1);
        (void)setenv("GIT_NO_LAZY_FETCH", "1", 1);
        if (same(dir, ".") && access(MORE_IN_BOX, F_OK) == 0)
            (void)setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", MORE_IN_BOX, 1);
    }
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    static const char why[] = "git cannot be started on the host's side\n";
    (void)!write(2, why, sizeof why - 1);
    _exit(127);
}

int push_wait(pid_t git)
{
    int status = 0;
    if (git < 0)
        return 127;
    while (waitpid(git, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* git's output goes to the client, its words too if it said nothing else. */
static _Noreturn void hand_back(int out, int err)
{
    static char piece[PUSH_PIECE];
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
    ret->git = push_git(argv, NULL, in[0], out[1], err[1]);
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

static int end_git(struct served *s, bool kill_it)
{
    if (kill_it)
        (void)kill(s->git, SIGKILL);
    (void)close(s->to_git);
    int status = push_wait(s->git);
    (void)push_wait(s->back);
    return status;
}

/* ---- what is asked for ---- */

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
        return push_wait(push_git(argv, NULL, -1, -1, -1)) != 1;
    }
    auto_fd int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT && errno != ENOTDIR;
    ssize_t n = read(fd, said, sizeof said - 1);
    return n < 0 ? errno != EISDIR : strncmp(said, "ref:", 4) == 0;
}

const char *push_refusal(const void *ctx, const struct gitpush_command *c)
{
    const char *why = gitpush_refusal(ctx, c);
    return why ? why : is_alias(c->ref) ? "a symbolic name for another branch; push that branch" : NULL;
}

/* The next command from `rest` on; false: there is none. */
static bool next_command(struct str *rest, struct gitpush_command *ret)
{
    for (int r; (r = gitpush_next(rest, ret)) > GITPUSH_MORE && r != GITPUSH_FLUSH;) {
        if (r == GITPUSH_COMMAND)
            return true;
    }
    return false;
}

int push_read(struct push *p, int fd)
{
    struct gitpush_command c = {.ref = {0}};
    size_t n_commands = 0;
    for (size_t at = 0;;) {
        struct str rest = str_skip(buf_view(&p->text), at);
        int r = gitpush_next(&rest, &c);
        if (r == GITPUSH_MORE) {
            char *to = p->text.n < GITPUSH_MAX_BYTES ? buf_space(&p->text, 4096) : NULL;
            ssize_t n = to ? read(fd, to, 4096) : -1;
            if (n <= 0)
                return n == 0 && !p->text.n ? 0 : -EBADMSG; /* a client that only looked */
            buf_grew(&p->text, (size_t)n);
            continue;
        }
        if (r < 0)
            return r;
        at = p->text.n - rest.n;
        p->end = at;
        if (r == GITPUSH_FLUSH)
            break;
        if (r == GITPUSH_COMMAND) {
            p->packs |= !gitpush_deletes(&c);
            n_commands++;
        }
    }
    struct str again = buf_view(&p->text);
    if (next_command(&again, &c))
        p->wants = c.wants;
    return n_commands > 0;
}

const char *push_judge(const struct push *p, const struct gitpush_rules *rules)
{
    struct str rest = {p->text.p, p->end};
    struct gitpush_command c;
    const char *why = NULL;
    while (!why && next_command(&rest, &c))
        why = push_refusal(rules, &c);
    return why;
}

/* Whether every branch of it may be moved to whatever commit. */
static bool rewrites(const struct push *p, const struct gitpush_rules *rules)
{
    struct str rest = {p->text.p, p->end};
    struct gitpush_command c;
    while (next_command(&rest, &c)) {
        if (!gitpush_deletes(&c) && !gitpush_may_rewrite(rules, &c))
            return false;
    }
    return true;
}

/* ---- what is told ---- */

static void put_banded(struct buf *out, unsigned band, struct str text)
{
    while (text.n) {
        struct str piece = {text.p, text.n < 60000 ? text.n : 60000};
        gitpush_put(out, band, piece);
        text = str_skip(text, piece.n);
    }
}

void push_say(int fd, const struct push *p, struct str text)
{
    auto_buf struct buf out = BUF(1u << 20);
    if (!gitpush_wants(p->wants, "side-band-64k"))
        return;
    put_banded(&out, 2, text);
    if (buf_ok(&out))
        (void)fd_write_all(fd, out.p, out.n);
}

void push_report(int fd, const struct push *p, const char *unpack, push_reason *why, const void *ctx)
{
    auto_buf struct buf status = BUF(2 * GITPUSH_MAX_BYTES), out = BUF(4 * GITPUSH_MAX_BYTES);
    struct str rest = {p->text.p, p->end};
    struct gitpush_command c;
    bool band = gitpush_wants(p->wants, "side-band-64k");
    if (!gitpush_wants(p->wants, "report-status") && !gitpush_wants(p->wants, "report-status-v2"))
        return;
    auto_buf struct buf first = BUF(1024);
    buf_printf(&first, "unpack %.500s\n", unpack);
    gitpush_put(&status, 0, buf_view(&first));
    while (next_command(&rest, &c)) {
        auto_buf struct buf line = BUF(8192);
        const char *own = why(ctx, &c);
        buf_printf(&line, "ng %.*s %s\n", (int)c.ref.n, c.ref.p, own ? own : "refused with the others");
        gitpush_put(&status, 0, buf_view(&line));
    }
    buf_text(&status, "0000");
    if (band)
        put_banded(&out, 1, buf_view(&status));
    buf_str(&out, band ? STR("0000") : buf_view(&status));
    if (buf_ok(&out) && buf_ok(&status))
        (void)fd_write_all(fd, out.p, out.n);
}

/* ---- what is carried out ---- */

/* A client that only waits then holds nothing. */
void push_pass(pid_t child, int to)
{
    static char piece[PUSH_PIECE];
    auto_fd int git = sys_pidfd_open(child, 0);
    for (;;) {
        struct pollfd of[] = {{.fd = 0, .events = POLLIN}, {.fd = git, .events = POLLIN}};
        if (poll(of, 2, -1) < 0 && errno != EINTR)
            return;
        ssize_t n = of[0].revents ? read(0, piece, sizeof piece) : 0;
        if ((of[0].revents && n <= 0) || (n > 0 && fd_write_all(to, piece, (size_t)n) < 0) ||
            (!of[0].revents && of[1].revents))
            return;
    }
}

/* One that waits for the end of what it is told gets that. */
void push_drain(void)
{
    static char piece[PUSH_PIECE];
    (void)shutdown(1, SHUT_WR);
    (void)close(1);
    while (read(0, piece, sizeof piece) > 0)
        ;
}

/* Starts receive-pack. What the checkout's own configuration says otherwise does not hold for a box. `p`: NULL to tell what there is. */
static bool start_receive(const struct push *p, const struct gitpush_rules *rules, struct served *ret)
{
    const char *argv[32] = {"git"};
    size_t n = 1;
    const char *const config[] = {"receive.denyCurrentBranch=refuse",
                                  "receive.denyDeleteCurrent=refuse",
                                  "transfer.fsckObjects=true",
                                  "receive.fsckObjects=true",
                                  "receive.autogc=false",
                                  p && rewrites(p, rules) ? "receive.denyNonFastForwards=false"
                                                          : "receive.denyNonFastForwards=true",
                                  rules->allow_delete ? "receive.denyDeletes=false" : "receive.denyDeletes=true"};
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        argv[n++] = "-c";
        argv[n++] = config[i];
    }
    argv[n++] = "receive-pack";
    argv[n++] = "--stateless-rpc";
    if (!p)
        argv[n++] = "--advertise-refs";
    argv[n++] = ".";
    return start_git(argv, ret);
}

bool push_advertise(const struct gitpush_rules *rules)
{
    struct served s;
    return start_receive(NULL, rules, &s) && end_git(&s, false) == 0;
}

static bool send_file(int from, int to)
{
    static char piece[PUSH_PIECE];
    for (ssize_t n; (n = read(from, piece, sizeof piece)) != 0;) {
        if (n < 0 || fd_write_all(to, piece, (size_t)n) < 0)
            return false;
    }
    return true;
}

int push_carry_out(const struct push *p, const struct gitpush_rules *rules, int objects)
{
    struct served s;
    if (!start_receive(p, rules, &s))
        return 1;
    bool sent = fd_write_all(s.to_git, p->text.p, objects < 0 ? p->text.n : p->end) == 0;
    if (sent && objects < 0)
        push_pass(s.git, s.to_git);
    else if (sent)
        sent = send_file(objects, s.to_git);
    return end_git(&s, !sent);
}

/* What git is to accept depends on what is asked for: one git tells what there is, another carries it out. */
int push_serve(const struct gitpush_rules *rules)
{
    struct push p = PUSH_EMPTY;
    if (!push_advertise(rules))
        return 1;
    int r = push_read(&p, 0), status = r < 0;
    if (r > 0 && push_judge(&p, rules)) {
        push_report(1, &p, "ok", push_refusal, rules);
        status = 1;
        if (p.packs)
            push_drain();
    } else if (r > 0) {
        status = push_carry_out(&p, rules, -1);
    }
    buf_free(&p.text);
    return status;
}
