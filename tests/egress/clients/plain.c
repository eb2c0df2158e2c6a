/* A program that knows no proxy: resolves, connects, asks for a file and prints the answer. Linked statically, with musl. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct addrinfo *list, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    char text[4096];
    ssize_t n;
    if (argc != 4)
        return 2;
    int r = getaddrinfo(argv[1], argv[2], &hints, &list);
    if (r) {
        fprintf(stderr, "plain: %s: %s\n", argv[1], gai_strerror(r));
        return 1;
    }
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            fprintf(stderr, "plain: connect: %s\n", strerror(errno));
            if (fd >= 0)
                close(fd);
            continue;
        }
        n = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: %s:%s\r\n\r\n", argv[3], argv[1], argv[2]);
        if (write(fd, text, (size_t)n) != n)
            return 1;
        while ((n = read(fd, text, sizeof text)) > 0)
            (void)!write(1, text, (size_t)n);
        if (n < 0)
            fprintf(stderr, "plain: read: %s\n", strerror(errno));
        return n < 0;
    }
    return 1;
}
