/*
 * The attacks on a box with --net allow that may reach only one service of this machine. Nothing leaves the machine:
 * outside, only its loopback is tried; attacks that would leave it are tried only in the box, where they must fail.
 */
#include "doctor/attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"

enum { PROXY_PORT = 61080, WAIT_S = 5 };

static int connect_v4(uint32_t address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval wait = {.tv_sec = WAIT_S};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(address);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    return take_fd(&fd);
}

/* A connection proves nothing, because the egress proxy accepts before it connects: the server's greeting must
   arrive. */
static int greeted(int fd)
{
    char text[sizeof NET_GREETING] = "";
    ssize_t n = recv(fd, text, sizeof text - 1, MSG_WAITALL);
    if (n < 0)
        return errno;
    return strcmp(text, NET_GREETING) == 0 ? 0 : ECONNRESET;
}

static int greeting_at(uint32_t address, int port)
{
    auto_fd int fd = connect_v4(address, port);
    return fd < 0 ? -fd : greeted(fd);
}

int net_allowed(const struct attack_stage *s)
{
    return greeting_at(INADDR_LOOPBACK, s->service);
}

int net_other_service(const struct attack_stage *s)
{
    return greeting_at(INADDR_LOOPBACK, s->port);
}

/* Asks the proxy for the other service, by address and by names of the same host. */
int net_by_proxy(const struct attack_stage *s)
{
    static const char hosts[][20] = {"127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"};
    int no = ECONNREFUSED;
    for (size_t i = 0; no != 0 && i < sizeof hosts / sizeof *hosts; i++) {
        char text[256];
        auto_fd int fd = connect_v4(INADDR_LOOPBACK, PROXY_PORT);
        if (fd < 0)
            return -fd;
        int n = snprintf(text, sizeof text, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", hosts[i], s->port,
                         hosts[i], s->port);
        if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
            return errno;
        ssize_t got = recv(fd, text, 12, MSG_WAITALL);
        no = got == 12 && memcmp(text, "HTTP/1.1 200", 12) == 0 ? 0 : EACCES;
    }
    return no;
}

/* An address reserved for documentation (RFC 5737). */
int net_other_address(const struct attack_stage *s)
{
    (void)s;
    auto_fd int fd = connect_v4(0xC0000201, 443);
    if (fd < 0)
        return -fd;
    char byte;
    return recv(fd, &byte, 1, 0) < 0 ? errno : 0;
}

int net_other_name(const struct attack_stage *s)
{
    struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
    (void)s;
    if (getaddrinfo("www.example.com", "443", &hints, &list) != 0)
        return EHOSTUNREACH;
    freeaddrinfo(list);
    return 0;
}

int net_datagram(const struct attack_stage *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443), .sin_addr = {htonl(0xC0000201)}};
    (void)s;
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    return sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to) < 0 ? errno : 0;
}
