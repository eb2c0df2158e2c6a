/* Converts addresses between the kernel's form and the one that is judged.
   ::ffff:1.2.3.4 becomes 1.2.3.4, so that a rule about one holds for the other. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "egress/conn.h"

socklen_t sockaddr_of(const struct host_addr *a, uint16_t port, struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof *ret);
    if (a->v6) {
        struct sockaddr_in6 *s = (struct sockaddr_in6 *)ret;
        s->sin6_family = AF_INET6;
        s->sin6_port = htons(port);
        memcpy(&s->sin6_addr, a->b, 16);
        return sizeof *s;
    }
    struct sockaddr_in *s = (struct sockaddr_in *)ret;
    s->sin_family = AF_INET;
    s->sin_port = htons(port);
    memcpy(&s->sin_addr, a->b, 4);
    return sizeof *s;
}

void sockaddr_read(const struct sockaddr_storage *from, struct host_addr *ret, uint16_t *ret_port)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct host_addr a = {0};
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)from;
        const uint8_t *b = s->sin6_addr.s6_addr;
        a.v6 = memcmp(b, mapped, sizeof mapped) != 0;
        memcpy(a.b, a.v6 ? b : b + 12, a.v6 ? 16 : 4);
        *ret_port = ntohs(s->sin6_port);
    } else {
        const struct sockaddr_in *s = (const struct sockaddr_in *)from;
        memcpy(a.b, &s->sin_addr, 4);
        *ret_port = ntohs(s->sin_port);
    }
    *ret = a;
}
