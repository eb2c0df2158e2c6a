/*
 * get HOST PORT: prints what a server answers to a request, as curl does, but begins in a tenth of its time. The status is curl's:
 * 6, 7, 56 without a name, a connection, an answer; 28 when it takes longer than 20 s.
 */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void late(int sig)
{
    (void)sig;
    _exit(28);
}

int main(int argc, char **argv)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found;
    char ask[300], answer[4096];
    size_t n = 0;
    ssize_t got;
    int s = -1;
    if (argc != 3)
        return 2;
    signal(SIGALRM, late);
    signal(SIGPIPE, SIG_IGN);
    alarm(20);
    if (getaddrinfo(argv[1], argv[2], &wanted, &found) != 0)
        return 6;
    for (; found && s < 0; found = found->ai_next) {
        s = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s >= 0 && connect(s, found->ai_addr, found->ai_addrlen) != 0) {
            close(s);
            s = -1;
        }
    }
    if (s < 0)
        return 7;
    int length =
        snprintf(ask, sizeof ask, "GET / HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", argv[1], argv[2]);
    if (send(s, ask, (size_t)length, 0) != length)
        return 56;
    while (n < sizeof answer - 1 && (got = recv(s, answer + n, sizeof answer - 1 - n, 0)) > 0)
        n += (size_t)got;
    answer[n] = 0;
    const char *body = strstr(answer, "\r\n\r\n");
    if (!body)
        return 56;
    fputs(body + 4, stdout);
    return 0;
}
