/*
 * The checker of protected branches (git.verify: required) beside a box that can write the repository itself. pinfold starts it with the
 * box, and it ends when pinfold closes its end. Each question of the guard's (protocol/moves.h) has a process here, which has the
 * commits judged in boxes as those of a push (checks.c), a few at a time. What passed once passes again while this box lives.
 *
 * After a question the process of the next one is begun, and waits with its box, in which nothing has been read: who commits once does so
 * again, and then has no start of a box to wait for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "project/checks.h"
#include "project/rules.h"
#include "protocol/control.h"
#include "protocol/moves.h"
#include "sys/fd.h"

enum { AT_ONCE = 4, PASSED_MAX = 256, PASSED_TEXT = 512, OPTIONS_MAX = 512, WAITS_MS = 600000 /* for a question */ };

struct judging {
    pid_t pid;    /* 0: none */
    int fd;       /* of who asks; -1: nobody yet */
    int box, own; /* the standard input of its box; its own socket: the question, then one answer */
    char *moves;
    dev_t dev; /* of the repository when it was begun */
    ino_t ino;
};
struct checker {
    struct shelf shelf;
    char top[PATH_MAX], git[PATH_MAX];
    int held; /* the lock on `top` */
    struct push_rules rules;
    struct checks checks;
    struct pinfold_option options[OPTIONS_MAX + 1];
    struct judging asked[AT_ONCE];
    struct judging next_one;              /* it waits */
    char passed[PASSED_MAX][PASSED_TEXT]; /* lines, the oldest is overwritten */
    unsigned next_passed;
};

static void answer_moves(int fd, bool passed, struct str why)
{
    struct moves_answer a = {.passed = passed};
    const size_t n = why.n < sizeof a.why - 1 ? why.n : sizeof a.why - 1;
    for (size_t i = 0; i < n; i++)
        a.why[i] = (unsigned char)why.p[i] < ' ' ? ' ' : why.p[i];
    (void)send(fd, &a, sizeof a, MSG_NOSIGNAL);
}

/* ---- what has passed ---- */

static bool has_passed(const struct checker *c, struct str line)
{
    for (unsigned i = 0; i < PASSED_MAX; i++)
        if (line.n && str_is(line, c->passed[i]))
            return true;
    return false;
}

static bool have_passed(const struct checker *c, struct str moves)
{
    while (moves.n)
        if (!has_passed(c, str_until(&moves, '\n')))
            return false;
    return true;
}

static void note_passed(struct checker *c, struct str moves)
{
    while (moves.n) {
        struct str line = str_until(&moves, '\n');
        if (line.n < PASSED_TEXT && !has_passed(c, line))
            snprintf(c->passed[c->next_passed++ % PASSED_MAX], PASSED_TEXT, "%.*s", (int)line.n, line.p);
    }
}

/* ---- questions ---- */

static _Noreturn void judge_moves(const struct checker *c, int box, int own)
{
    auto_buf struct buf why = BUF(CHECKS_WHY);
    struct pinfold_error error = {0};
    int r = checks_moves(&c->checks, box, own, &why, &error);
    if (r < 0)
        buf_printf(&why, "its commits could not be judged: %s", error.text[0] ? error.text : strerror(-r));
    if (r != -ECANCELED)
        answer_moves(own, r == 0, r == 0 ? STR("") : buf_view(&why));
    buf_free(&why);
    _exit(r != 0);
}

/* The parent's ends of all others: while a child had one open, who waits at it would not see its end. */
static void forget_others(const struct checker *c)
{
    for (int i = -1; i < AT_ONCE; i++) {
        const struct judging *a = i < 0 ? &c->next_one : &c->asked[i];
        if (!a->pid)
            continue;
        (void)close_fd(a->fd);
        (void)close_fd(a->box);
        (void)close_fd(a->own);
    }
    (void)close(MOVES_SOCKET);
}

/* A process whose box starts, and waits. `ret->pid` is 0 if that fails. */
static void begin_judging(const struct checker *c, struct judging *ret)
{
    int box[2], own[2];
    struct stat st = {.st_dev = 0};
    *ret = (struct judging){.fd = -1};
    if (stat(c->git, &st) < 0 || pipe2(box, O_CLOEXEC) < 0)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) < 0) {
        (void)close(box[0]);
        (void)close(box[1]);
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        forget_others(c);
        (void)close(box[1]);
        (void)close(own[1]);
        judge_moves(c, box[0], own[0]);
    }
    (void)close(box[0]);
    (void)close(own[0]);
    if (pid < 0) {
        (void)close(box[1]);
        (void)close(own[1]);
        return;
    }
    *ret = (struct judging){.pid = pid, .fd = -1, .box = box[1], .own = own[1], .dev = st.st_dev, .ino = st.st_ino};
}

/* The box ends by itself, unless it is in the middle of something. */
static void end_judging(struct judging *a, bool kill_it)
{
    if (!a->pid)
        return;
    if (kill_it)
        (void)kill(a->pid, SIGKILL);
    (void)close_fd(a->box);
    (void)close_fd(a->own);
    (void)close_fd(a->fd);
    while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(a->moves);
    *a = (struct judging){.pid = 0};
}

/* Whether the box that waits has the repository that there is now. */
static bool is_of_now(const struct checker *c, const struct judging *a)
{
    struct stat st;
    return stat(c->git, &st) == 0 && st.st_dev == a->dev && st.st_ino == a->ino;
}

/* Gives the question to the one that waits, or to one that is begun for it. */
static bool put_question(struct checker *c, struct judging *slot, int asker, const char *moves)
{
    static char text[MOVES_TEXT + 2];
    const size_t n = strlen(moves);
    if (c->next_one.pid && !is_of_now(c, &c->next_one))
        end_judging(&c->next_one, false);
    const bool waited = c->next_one.pid != 0;
    *slot = c->next_one;
    c->next_one = (struct judging){.pid = 0};
    if (!waited)
        begin_judging(c, slot);
    if (!slot->pid)
        return false;
    slot->moves = strdup(moves);
    text[0] = waited ? CHECKS_WAITED : CHECKS_BEGUN;
    memcpy(text + 1, moves, n);
    /* A box that has ended is seen by its process; and so few bytes always fit. */
    if (n <= CHECKS_AT_ONCE)
        (void)fd_write_all(slot->box, moves, n);
    slot->box = close_fd(slot->box);
    if (!slot->moves || send(slot->own, text, n + 1, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n + 1) {
        end_judging(slot, true);
        return false;
    }
    slot->fd = asker;
    return true;
}

static struct judging *free_slot(struct checker *c)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (!c->asked[i].pid)
            return &c->asked[i];
    return NULL;
}

/* Of the lines those that move a protected branch: for all others nobody has to be asked. */
static void leave_protected(const struct checker *c, char *text)
{
    size_t n = 0;
    for (struct str rest = str_of(text); rest.n;) {
        struct str line = str_until(&rest, '\n'), ref = line;
        ref = str_until(&ref, ' ');
        if (gitpush_protects(&c->rules.rules, ref)) {
            memmove(text + n, line.p, line.n);
            n += line.n;
            text[n++] = '\n';
        }
    }
    text[n] = 0;
}

/* The next question; false: pinfold has ended. */
static bool take_question(struct checker *c, struct judging *slot)
{
    static char text[MOVES_TEXT + 1];
    struct frame f;
    int fd = -1;
    long n = sys_recv_fd(MOVES_SOCKET, &f, sizeof f, &fd, 0);
    auto_fd int asker = fd;
    if (n <= 0)
        return n == -EINTR;
    ssize_t got = asker < 0 ? -1 : recv(asker, text, MOVES_TEXT, MSG_DONTWAIT);
    if (got <= 0)
        return true; /* whoever asked sees the end */
    text[got] = 0;
    leave_protected(c, text);
    if (have_passed(c, str_of(text))) {
        answer_moves(asker, true, STR(""));
        return true;
    }
    if (put_question(c, slot, asker, text))
        (void)take_fd(&asker);
    return true;
}

/* Its answer, or its end without one, goes to who has asked. */
static void take_answer(struct checker *c, struct judging *a)
{
    struct moves_answer answer = {.passed = 0};
    ssize_t n;
    do
        n = recv(a->own, &answer, sizeof answer, 0);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof answer) {
        answer.why[sizeof answer.why - 1] = 0;
        answer_moves(a->fd, answer.passed != 0, str_of(answer.why));
        if (answer.passed)
            note_passed(c, str_of(a->moves));
    }
    end_judging(a, false);
}

/* Whether one has been answered. */
static bool look_after(struct checker *c, const struct pollfd of[2 * AT_ONCE])
{
    bool answered = false;
    for (int i = 0; i < AT_ONCE; i++) {
        struct judging *a = &c->asked[i];
        if (!a->pid)
            continue;
        if (of[AT_ONCE + i].revents) {
            take_answer(c, a);
            answered = true;
        } else if (of[i].revents & (POLLHUP | POLLERR)) {
            end_judging(a, true); /* nobody waits for it any more; its boxes end with it */
        }
    }
    return answered;
}

static void serve_guard(struct checker *c)
{
    for (bool more = true; more;) {
        struct pollfd of[2 * AT_ONCE + 1] = {{.fd = -1}};
        struct judging *slot = free_slot(c);
        for (int i = 0; i < AT_ONCE; i++) {
            of[i] = (struct pollfd){.fd = c->asked[i].pid ? c->asked[i].fd : -1};
            of[AT_ONCE + i] = (struct pollfd){.fd = c->asked[i].pid ? c->asked[i].own : -1, .events = POLLIN};
        }
        of[2 * AT_ONCE] = (struct pollfd){.fd = MOVES_SOCKET, .events = slot ? POLLIN : 0};
        const int n = poll(of, 2 * AT_ONCE + 1, c->next_one.pid ? WAITS_MS : -1);
        if (n < 0 && errno != EINTR)
            break;
        if (n == 0)
            end_judging(&c->next_one, false);
        if (n <= 0)
            continue;
        if (look_after(c, of) && !c->next_one.pid && !c->checks.more)
            begin_judging(c, &c->next_one);
        if (of[2 * AT_ONCE].revents & POLLIN && slot)
            more = take_question(c, slot);
        else if (of[2 * AT_ONCE].revents & (POLLHUP | POLLERR))
            more = false;
    }
    end_judging(&c->next_one, false);
    for (int i = 0; i < AT_ONCE; i++)
        end_judging(&c->asked[i], true);
}

/* ---- the start ---- */

static bool take_words(struct checker *c, char **words)
{
    size_t n = 0;
    c->rules = (struct push_rules){.verify = PUSH_VERIFY_REQUIRED};
    c->rules.rules.protect = c->rules.protect;
    for (; *words && !same(*words, "--"); words++) {
        if (c->rules.rules.n_protect == RULES_BRANCHES)
            return false;
        c->rules.protect[c->rules.rules.n_protect++] = *words;
    }
    for (words += *words != NULL; words[0] && words[1] && n < OPTIONS_MAX; words += 2)
        c->options[n++] = (struct pinfold_option){words[0], words[1]};
    return !words[0];
}

static int copy_given(int from, int dir, const char *name)
{
    auto_fd int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    static char piece[65536];
    for (ssize_t n = 1; n != 0;) {
        n = to < 0 ? -1 : read(from, piece, sizeof piece);
        if (n < 0 || fd_write_all(to, piece, (size_t)n) < 0)
            return -errno;
    }
    (void)close(from);
    return 0;
}

/* Objects that the repository does not have yet, as a directory of objects. */
static int keep_pack(struct checker *c, char *why, size_t room)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/more", c->top);
    bool made = mkdir(path, 0700) == 0;
    snprintf(path, sizeof path, "%s/more/pack", c->top);
    made = made && mkdir(path, 0700) == 0;
    auto_fd int dir = made ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (dir >= 0 && copy_given(MOVES_PACK, dir, "pack-1.pack") == 0 && copy_given(MOVES_INDEX, dir, "pack-1.idx") == 0)
        return 0;
    snprintf(why, room, "what is to be judged cannot be kept in '%s': %s", path, strerror(errno));
    return -EIO;
}

static int begin_checker(struct checker *c, char **words, char *why, size_t room)
{
    const bool more = same(*words++, MOVES_MORE);
    if (host_git_directory(words[0], c->git) < 0) {
        snprintf(
            why, room,
            "'%s' is not the top of a git repository, nor of a worktree that its repository knows, so there are no "
            "branches to protect; run pinfold at the top of the main checkout, or use --git-verify told",
            words[0]);
        return -EINVAL;
    }
    if (!take_words(c, words + 2)) {
        snprintf(why, room, "more than %d patterns in git.protect_branches, or too many options", RULES_BRANCHES);
        return -E2BIG;
    }
    int r = shelf_of(words[0], &c->shelf, why, room);
    if (r == 0)
        r = shelf_scratch(&c->shelf, c->top, &c->held, why, room);
    if (r == 0 && more)
        r = keep_pack(c, why, room);
    if (r == 0)
        r = checks_begin_moves(c->top, words[0], c->git, words[1], c->options, &c->rules, &c->checks, why, room);
    if (r == 0 && c->checks.n_options == PROJECT_OPTIONS) { /* one that makes the box smaller may be missing */
        snprintf(why, room, "more than %d options that boxes of hooks need, too", PROJECT_OPTIONS - 1);
        r = -E2BIG;
    }
    return r;
}

bool moves_named(int argc, char **argv)
{
    return argc > 5 && same(argv[1], MOVES_PROGRAM);
}

int moves_main(char **words)
{
    static struct checker c; /* large: begun here, not where every program that starts would have it in memory */
    static char why[MOVES_WHY];
    c.held = -1;
    (void)fcntl(MOVES_SOCKET, F_SETFD, FD_CLOEXEC);
    (void)signal(SIGPIPE, SIG_IGN);
    int r = begin_checker(&c, words, why, sizeof why);
    answer_moves(MOVES_SOCKET, r == 0, str_of(why));
    if (r == 0)
        serve_guard(&c);
    if (c.held >= 0)
        shelf_scratch_end(&c.shelf, c.top);
    return r != 0;
}
