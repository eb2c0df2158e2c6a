/*
 * Both ends of bench/egress's connections.
 *
 *     tunnels serve ADDR PORT              echoes one byte a connection; a first byte 'd' asks for 1 GiB instead
 *     tunnels open VIA ADDR PORT N C       N connections by C processes: connect, a byte there, a byte back, close
 *     tunnels load VIA ADDR PORT           1 GiB; prints seconds
 *     tunnels hold VIA ADDR PORT N         opens N, prints "ready", keeps them until its standard input ends
 *
 * VIA is "direct" (also for what is caught transparently) or PROXYADDR:PORT, which is asked by CONNECT.
 * `open` prints connections per second, then the 50th and 99th percentile in microseconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GIB = 1 << 30, CHUNK = 1 << 18 };
static char chunk[CHUNK];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "tunnels: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sockaddr_in address(const char *host, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
        die(host);
    return a;
}

static void send_gib(int fd)
{
    for (size_t left = GIB; left;) {
        ssize_t n = write(fd, chunk, left < CHUNK ? left : CHUNK);
        if (n <= 0)
            break;
        left -= (size_t)n;
    }
}

static void serve(const char *host, const char *port)
{
    struct sockaddr_in a = address(host, port);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), all = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&a, sizeof a) < 0 || listen(listener, 4096) < 0 ||
        epoll_ctl(all, EPOLL_CTL_ADD, listener, &e) < 0)
        die("serve");
    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        struct epoll_event got[64];
        int n = epoll_wait(all, got, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = got[i].data.fd;
            char byte;
            if (fd == listener) {
                while ((fd = accept4(listener, NULL, NULL, 0)) >= 0) {
                    e.data.fd = fd;
                    epoll_ctl(all, EPOLL_CTL_ADD, fd, &e);
                }
                continue;
            }
            if (read(fd, &byte, 1) != 1) {
                close(fd);
            } else if (byte != 'd') {
                if (write(fd, &byte, 1) != 1)
                    close(fd);
            } else if (fork() == 0) {
                send_gib(fd);
                _exit(0);
            } else {
                close(fd);
            }
        }
    }
}

static int open_one(const char *via, const char *host, const char *port)
{
    char text[256];
    const char *colon = strchr(via, ':');
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = address(host, port);
    if (colon) {
        snprintf(text, sizeof text, "%.*s", (int)(colon - via), via);
        a = address(text, colon + 1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd < 0 || connect(fd, (void *)&a, sizeof a) < 0)
        die("connect");
    if (!colon)
        return fd;
    int n = snprintf(text, sizeof text, "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, host, port);
    if (write(fd, text, (size_t)n) != n)
        die("CONNECT");
    size_t have = 0;
    while (have < 4 || memcmp(text + have - 4, "\r\n\r\n", 4) != 0) {
        ssize_t k = have < sizeof text - 1 ? read(fd, text + have, sizeof text - 1 - have) : 0;
        if (k <= 0)
            die("answer of the proxy");
        have += (size_t)k;
    }
    text[have] = 0;
    if (!strstr(text, " 200 "))
        die(text);
    return fd;
}

static void echo(int fd)
{
    char byte = 'x';
    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
        die("echo");
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void open_many(const char *via, const char *host, const char *port, int n, int callers)
{
    float *us = mmap(NULL, (size_t)n * sizeof *us, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double began = now();
    for (int c = 0; c < callers; c++) {
        if (fork())
            continue;
        for (int i = c; i < n; i += callers) {
            double start = now();
            int fd = open_one(via, host, port);
            echo(fd);
            close(fd);
            us[i] = (float)((now() - start) * 1e6);
        }
        _exit(0);
    }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad |= status;
    double took = now() - began;
    qsort(us, (size_t)n, sizeof *us, by_size);
    printf("%.0f %.0f %.0f\n", n / took, us[n / 2], us[n * 99 / 100]);
    exit(bad ? 1 : 0);
}

static void load(const char *via, const char *host, const char *port)
{
    double began = now();
    int fd = open_one(via, host, port);
    size_t all = 0;
    if (write(fd, "d", 1) != 1)
        die("asking");
    for (ssize_t n; (n = read(fd, chunk, CHUNK)) > 0;)
        all += (size_t)n;
    if (all != GIB)
        die("the gigabyte came short");
    printf("%.4f\n", now() - began);
}

static void hold(const char *via, const char *host, const char *port, int n)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < n; i++)
        echo(open_one(via, host, port));
    printf("ready\n");
    fflush(stdout);
    while (read(0, chunk, CHUNK) > 0)
        ;
}

int main(int argc, char **argv)
{
    bool is = argc == 4 && strcmp(argv[1], "serve") == 0;
    if (is)
        serve(argv[2], argv[3]);
    else if (argc == 7 && strcmp(argv[1], "open") == 0)
        open_many(argv[2], argv[3], argv[4], atoi(argv[5]), atoi(argv[6]));
    else if (argc == 5 && strcmp(argv[1], "load") == 0)
        load(argv[2], argv[3], argv[4]);
    else if (argc == 6 && strcmp(argv[1], "hold") == 0)
        hold(argv[2], argv[3], argv[4], atoi(argv[5]));
    else
        return 2;
    return 0;
}
