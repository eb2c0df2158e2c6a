/*
 * The remote `host` of a project's boxes. A push to it is served by git receive-pack on the host's side, in a box that can change the
 * checkout's git directory and nothing else, and does not see the checkout's files: hooks of the person's run there, too. No git runs
 * outside of a box on what a box sends.
 *
 * A process for each session listens on a socket that the session's box can connect to, as long as the session daemon lives. It
 * reads nothing: each connection is the standard input and output of a box of its own, in which remote.c judges what is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "project/checks.h"
#include "project/push/push.h"
#include "project/rules.h"
#include "sys/fd.h"
#include "sys/process.h"

enum { SERVED_AT_ONCE = 8, LOOK_MS = 200, FIRST_MS = 30000 };

/* ---- one connection ---- */

/* After what the client has sent at first: a connection that is closed with something unread is reset for it. */
static void say_error(int fd, const char *text)
{
    struct pollfd of = {.fd = fd, .events = POLLIN};
    char service;
    auto_buf struct buf line = BUF(2048), out = BUF(4096);
    buf_printf(&line, "ERR pinfold: %.1024s", text);
    gitpush_put(&out, 0, buf_view(&line));
    if (poll(&of, 1, FIRST_MS) > 0)
        (void)!read(fd, &service, 1);
    (void)fd_write_all(fd, out.p, out.n);
}

static _Noreturn void answer_remote(int fd, const struct checks *checks)
{
    static char git[PATH_MAX];
    struct pinfold_error error = {0};
    const struct host_git h = {
        .fd = fd, .git = git, .real = checks->real, .word = "--answer", .writes = true, .rules = checks->rules};
    int r = host_git_directory(checks->real, git);
    (void)signal(SIGPIPE, SIG_IGN);
    if (r < 0)
        snprintf(error.text, sizeof error.text,
                 "'%.300s' is not the top of a git repository, nor of a worktree that its repository knows: nothing "
                 "can be pushed to it",
                 checks->real);
    else
        r = checks->any ? checks_serve(checks, fd, git, &error) : host_git_box(&h, &error);
    if (r < 0)
        say_error(fd, error.text);
    _exit(0);
}

/* ---- the process that listens ---- */

static void serve(int listener, int session, const struct checks *checks)
{
    unsigned children = 0;
    for (;;) {
        struct pollfd of[] = {{.fd = session, .events = POLLIN},
                              {.fd = children < SERVED_AT_ONCE ? listener : -1, .events = POLLIN}};
        int r = poll(of, 2, children ? LOOK_MS : -1);
        while (children && waitpid(-1, NULL, WNOHANG) > 0)
            children--;
        if (r < 0 && errno != EINTR)
            return;
        if (r > 0 && of[0].revents)
            return; /* what is being answered goes on to its end */
        int fd = r > 0 && of[1].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        pid_t child = fork();
        if (child == 0) {
            (void)sys_close_range(3, (unsigned)fd - 1);
            (void)sys_close_range((unsigned)fd + 1, ~0u);
            answer_remote(fd, checks);
        }
        children += child > 0;
        (void)close(fd);
    }
}

/* A new socket takes the place of an old one at once. */
static int listen_in(int dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket.new", dir);
    (void)unlinkat(dir, "socket.new", 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0 &&
        renameat(dir, "socket.new", dir, "socket") == 0)
        return fd;
    int no = errno;
    (void)close_fd(fd);
    return -no;
}

static void forget_starter(const int keep[3])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    int last = 2;
    for (int i = 0; i < 3; i++) { /* they were opened one after the other */
        (void)sys_close_range((unsigned)last + 1, (unsigned)keep[i] - 1);
        last = keep[i];
    }
    (void)sys_close_range((unsigned)last + 1, ~0u);
    for (int s = 1; s < 32; s++)
        (void)signal(s, SIG_DFL);
    (void)signal(SIGHUP, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)!chdir("/");
}

/* Who serves holds this lock. */
static int open_served(const struct shelf *s, const char *word)
{
    char path[PATH_MAX + PROJECT_WORD + 16];
    snprintf(path, sizeof path, "%s/remote/.%s.lock", s->top, word);
    return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Held alone by who begins to serve until it listens, and shared by who looks whether somebody serves: neither takes the other for one that
   serves, and what is served can be reached. */
static int lock_beginning(const struct shelf *s, const char *word, int how)
{
    char path[PATH_MAX + PROJECT_WORD + 16];
    snprintf(path, sizeof path, "%s/remote/.%s.begin", s->top, word);
    auto_fd int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const int no = fd < 0 ? 0 : fd_lock(fd, how);
    return no < 0 ? no : take_fd(&fd);
}

bool host_remote_is_served(const struct shelf *s, const char *word)
{
    auto_fd int begins = lock_beginning(s, word, LOCK_SH);
    auto_fd int lock = begins < 0 ? -1 : open_served(s, word);
    return lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* What the wrapper of git in the box goes by (git_wrapper.sh). */
static void tell_wrapper(int dir, const struct push_rules *rules)
{
    (void)unlinkat(dir, "force", 0);
    if (rules->rules.allow_force)
        (void)close_fd(openat(dir, "force", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

/* What is served now is in the lock's file: the rules, as words. */
static int note_rules(int lock, const struct push_rules *rules, bool served)
{
    const char *words[RULES_WORDS];
    struct stat st;
    auto_buf struct buf text = BUF(RULES_WORDS * RULES_PATTERN), there = BUF(RULES_WORDS * RULES_PATTERN + 4096);
    (void)push_rules_words(rules, words);
    buf_printf(&text, "verify %d\n", rules->verify);
    for (size_t i = 0; words[i]; i++)
        buf_printf(&text, "%s\n", words[i]);
    if (!served)
        return (fstat(lock, &st) < 0 || (st.st_size > (off_t)text.n && ftruncate(lock, (off_t)text.n) < 0)) ||
                       pwrite(lock, text.p, text.n, 0) != (ssize_t)text.n
                   ? -EIO
                   : 0;
    const int no = lseek(lock, 0, SEEK_SET) < 0 ? -errno : fd_read_all(lock, &there);
    if (no < 0 && no != -EFBIG)
        return no;
    return there.n == text.n && memcmp(there.p, text.p, text.n) == 0 ? 0 : -EBUSY;
}

int host_remote_serve(const struct shelf *s, const char *real, const char *word,
                      const struct pinfold_policy_options *asked, struct pinfold_policy *loaded, int pid, char *why,
                      size_t room)
{
    char path[PATH_MAX + PROJECT_WORD + 16];
    static char checkout[PATH_MAX];
    static struct push_rules rules;
    static struct checks checks;
    int r = loaded ? push_rules_in(loaded, &rules, why, room) : push_rules_of(asked, real, &rules, why, room);
    auto_fd int begins = r < 0 ? -1 : lock_beginning(s, word, LOCK_EX);
    auto_fd int lock = begins < 0 ? -1 : open_served(s, word);
    if (r < 0)
        return r;
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        r = note_rules(lock, &rules, true);
        if (r < 0)
            snprintf(why, room,
                     "the remote 'host' of this branch is served already, with other rules for pushes (git); end that "
                     "session first, with: pinfold stop");
        return r;
    }
    snprintf(path, sizeof path, "%s/remote/%s", s->top, word);
    auto_fd int session = sys_pidfd_open(pid, 0);
    auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (session == -ESRCH)
        return 0; /* it has ended already */
    snprintf(checkout, sizeof checkout, "%s", real);
    r = checks_begin(s, checkout, word, asked, &rules, &checks, why, room);
    if (r < 0)
        return r;
    int listener = lock < 0 || session < 0 || dir < 0 || note_rules(lock, &rules, false) < 0 ? -1 : listen_in(dir);
    if (listener < 0) {
        snprintf(why, room, "the remote 'host' of the box cannot be served in '%s': %s", path,
                 strerror(listener < -1 ? -listener : errno));
        return -EIO;
    }
    tell_wrapper(dir, &rules);
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        forget_starter((const int[]){lock, session, listener});
        serve(listener, session, &checks);
        _exit(0);
    }
    (void)close(listener);
    if (child < 0) {
        snprintf(why, room, "the remote 'host' of the box cannot be served: %s", strerror(errno));
        return -EIO;
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}
