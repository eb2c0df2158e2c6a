/*
 * What the conformance table does inside a box beyond what a shell can: runs on any image, linked statically. Each
 * word is one attempt; it prints what came of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int say(const char *word)
{
    puts(word);
    return 0;
}

static void patience(int fd)
{
    struct timeval wait = {8, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

static int dial(const char *host, const char *port, int kind)
{
    struct addrinfo hints = {.ai_socktype = kind, .ai_family = AF_UNSPEC}, *list;
    if (getaddrinfo(host, port, &hints, &list))
        return -1;
    int fd = -1;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0)
            continue;
        patience(fd);
        if (connect(fd, a->ai_addr, a->ai_addrlen)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

/* The first line that comes, as "got LINE". */
static int heard(int fd)
{
    char text[200];
    ssize_t n = fd < 0 ? -1 : recv(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return say("refused");
    text[n] = 0;
    text[strcspn(text, "\r\n")] = 0;
    printf("got %s\n", text);
    return 0;
}

static int do_connect(char **word)
{
    return heard(dial(word[0], word[1], SOCK_STREAM));
}

static int do_udp(char **word)
{
    int fd = dial(word[0], word[1], SOCK_DGRAM);
    struct timeval wait = {0, 700000};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) || send(fd, "x", 1, 0) != 1)
        return say("refused");
    return heard(fd);
}

static int do_proxy(char **word)
{
    const char *proxy = getenv(word[0]);
    if (!proxy)
        return say("unset");
    const char *slashes = strstr(proxy, "//");
    char host[100], port[20], text[400];
    if (sscanf(slashes ? slashes + 2 : proxy, "%99[^:/]:%19[0-9]", host, port) != 2)
        return say("odd");
    int fd = dial(host, port, SOCK_STREAM);
    if (fd < 0)
        return say("refused");
    int n = snprintf(text, sizeof text, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", word[1], word[2], word[1],
                     word[2]);
    if (send(fd, text, (size_t)n, 0) != n)
        return say("refused");
    size_t have = 0; /* the head to its end, byte by byte: what follows is the other side's */
    while (have < sizeof text - 1 && recv(fd, text + have, 1, 0) == 1) {
        text[++have] = 0;
        if (have > 4 && strcmp(text + have - 4, "\r\n\r\n") == 0)
            break;
    }
    if (have < 12 || strncmp(text + 9, "200", 3) != 0)
        return say("refused");
    return heard(fd);
}

static int do_resolve(char **word)
{
    struct addrinfo *list;
    return say(getaddrinfo(word[0], NULL, NULL, &list) ? "no" : "yes");
}

static socklen_t address(struct sockaddr_un *a, const char *path)
{
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    strncpy(a->sun_path, path, sizeof a->sun_path - 1);
    if (path[0] == '@')
        a->sun_path[0] = 0;
    return (socklen_t)(sizeof a->sun_family + strlen(path) + (path[0] != '@'));
}

static int do_unix(char **word)
{
    struct sockaddr_un a;
    socklen_t n = address(&a, word[0]);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (void *)&a, n))
        return say("refused");
    return say("connected");
}

static int do_own_unix(char **word)
{
    struct sockaddr_un a;
    socklen_t n = address(&a, word[0]);
    int server = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (server < 0 || fd < 0 || bind(server, (void *)&a, n) || listen(server, 1) || connect(fd, (void *)&a, n))
        return say("refused");
    return say("connected");
}

/* A server on 127.0.0.1 that says TEXT to the first who comes. */
static int do_listen(char **word)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((unsigned short)atoi(word[0]));
    int server = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (server < 0 || bind(server, (void *)&a, sizeof a) || listen(server, 4))
        return say("cannot listen");
    puts("up");
    fflush(stdout);
    alarm(30);
    int fd = accept(server, NULL, NULL);
    return fd < 0 || send(fd, word[1], strlen(word[1]), 0) < 0;
}

static int do_fds(char **word)
{
    (void)word;
    for (int fd = 3; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    }
    return say("end");
}

static int do_memory(char **word)
{
    size_t all = (size_t)atoi(word[0]) << 20;
    for (size_t done = 0; done < all; done += 1 << 20) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return say("refused");
        memset(p, 1, 1 << 20);
    }
    sleep(atoi(word[1]) > 0 ? (unsigned)atoi(word[1]) : 0);
    return say("had");
}

/* As many as asked for; that many as the second word says are too many, and wait for being ended. */
static int do_forks(char **word)
{
    int made = 0;
    for (int i = 0; i < atoi(word[0]); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        made += pid > 0;
    }
    printf("%d\n", made);
    fflush(stdout);
    sleep(made >= atoi(word[1]) ? 90 : 0);
    return 0;
}

static int busy(clockid_t clock, const char *ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    long end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + atoi(ms);
    do
        clock_gettime(clock, &t);
    while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < end);
    return 0;
}

static int do_burn(char **word) /* of wall time */
{
    return busy(CLOCK_MONOTONIC, word[0]);
}

static int do_spend(char **word) /* of its own processor time */
{
    return busy(CLOCK_PROCESS_CPUTIME_ID, word[0]);
}

static int do_socket(char **word)
{
    return say(socket(atoi(word[0]), atoi(word[1]), atoi(word[2])) < 0 ? "refused" : "made");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words, (*run)(char **);
    } all[] = {
        {"connect", 2, do_connect}, {"udp", 2, do_udp},           {"proxy", 3, do_proxy},   {"resolve", 1, do_resolve},
        {"unix", 1, do_unix},       {"own-unix", 1, do_own_unix}, {"listen", 2, do_listen}, {"fds", 0, do_fds},
        {"memory", 2, do_memory},   {"forks", 2, do_forks},       {"burn", 1, do_burn},     {"spend", 1, do_spend},
        {"socket", 3, do_socket},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (argc == all[i].words + 2 && strcmp(argv[1], all[i].name) == 0)
            return all[i].run(argv + 2);
    }
    fputs("probe: no such operation\n", stderr);
    return 99;
}
