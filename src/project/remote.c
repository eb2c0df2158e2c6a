/*
 * The program that git starts for the remote `host`, in two boxes. In that of a branch it connects to the host's side and hands on
 * bytes. In the box at the other end (host_remote.c) it starts git, and judges what a push asks for before git sees it (push.c).
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
#include "project/branch.h"
#include "project/push/push.h"
#include "project/rules.h"

#define PUSH  'P'
#define FETCH 'F'

bool remote_named(const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    return name && same(slash ? slash + 1 : name, &REMOTE_HELPER[1]);
}

static void tell_git(const char *text)
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
    tell_git(
        "pinfold: the remote 'host' is not served; on the host, run 'pinfold start' for this project and branch\n");
    return close_fd(fd);
}

/* Hands on what comes, in both directions; the host's end of file is the end. */
static int hand_on(int host)
{
    static char piece[PUSH_PIECE];
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

static int serve_git(const struct gitpush_rules *rules, int (*push)(const struct gitpush_rules *))
{
    static const char *const fetch[] = {"git", "upload-pack", "--strict", ".", NULL};
    char service;
    (void)signal(SIGPIPE, SIG_IGN);
    if (read(0, &service, 1) != 1)
        return 1;
    if (service == PUSH)
        return push(rules);
    if (service != FETCH)
        return 1;
    (void)execvp(fetch[0], (char *const *)(uintptr_t)fetch);
    return 127;
}

int remote_main(int argc, char **argv)
{
    struct gitpush_rules rules;
    if (argc > 2 && same(argv[1], "--answer") && push_rules_said(argv + 2, &rules))
        return serve_git(&rules, push_serve);
    if (argc > 2 && same(argv[1], "--take") && push_rules_said(argv + 2, &rules))
        return serve_git(&rules, push_take);
    if (argc > 2 && same(argv[1], "--moves") && push_rules_said(argv + 2, &rules))
        return push_moves(&rules);
    if (argc > 5 && same(argv[1], "--check") && push_rules_said(argv + 5, &rules))
        return push_check(&rules, argv + 2);
    if (argc > 2 && same(argv[1], "--land") && push_rules_said(argv + 2, &rules))
        return push_land(&rules);
    if (argc == 9 && same(argv[1], "--judge"))
        return hooks_judge(argv + 2);
    bool fetch = argc == 3 && same(argv[1], "--fetch");
    if (argc != 2 && !fetch) {
        tell_git("pinfold: this is started by git, for the remote 'host'\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    const char service = fetch ? FETCH : PUSH;
    auto_fd int host = connect_host();
    if (host < 0 || fd_write_all(host, &service, 1) < 0)
        return 1;
    return hand_on(host);
}
