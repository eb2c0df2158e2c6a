/*
 * Refuses connections: by a reset (clients print confusing errors after an orderly close) or, on the proxy port, by the
 * protocol's own refusal with the reason. The refusal is reported first, and waits a moment until pinfold has
 * identified the client.
 *
 * A reset also waits for the client's first data, at most UNHEARD_MS: some clients miss a reset that arrives with the
 * connection, because they check for errors only after sending. Node's fetch() then waits for nothing, and the program
 * exits with status 0 and no message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "egress/parts.h"

/* Clients that send nothing, or do not end, must not keep others out. */
static bool is_scarce(void)
{
    return world.n_conns > world.max_conns / 2;
}

bool refuse_drop(struct conn *c)
{
    ssize_t n = 1;
    for (int i = 0; n > 0 && i < DROPS; i++)
        n = recv(c->client.fd, world.buffer, sizeof world.buffer, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        conn_end(c);
    return n > 0;
}

/* Closed with bytes unread, or while the client still sends, the kernel would reset the connection and the client lose
   the answer: what it sends is dropped until it ends, or for a moment (RFC 9112, 9.6). */
void refuse_saying(struct conn *c, const char *bytes, size_t n)
{
    (void)send(c->client.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(c->client.fd, SHUT_WR);
    c->stage = STAGE_LEAVING;
    c->ticket = 0;
    source_close(&c->server);
    source_rest(&c->client);
    const bool more = refuse_drop(c);
    if (c->dead)
        return;
    if (is_scarce() || !source_arm(&c->client, EPOLLIN))
        conn_end(c);
    else
        conn_deadline(c, world.now + LEAVING_MS);
    if (more && !c->dead)
        source_again(&c->client);
}

void refuse_http(struct conn *c, const char *status, const char *reason)
{
    char text[1024]; /* the reason, which has the longest name in it, twice */
    const int n =
        snprintf(text, sizeof text,
                 "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\nX-Pinfold: %s\r\nContent-Length: "
                 "%zu\r\n\r\npinfold: %s\n",
                 status, reason, strlen(reason) + 10, reason);
    refuse_saying(c, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void reset_when_heard(struct conn *c)
{
    c->stage = STAGE_UNHEARD;
    c->ticket = 0;
    source_rest(&c->server);
    source_rest(&c->client);
    if (c->first.n || is_scarce() || !source_arm(&c->client, EPOLLIN))
        conn_reset(c);
    else
        conn_deadline(c, world.now + UNHEARD_MS);
}

void refuse_now(struct conn *c, enum refusal why, const char *reason)
{
    static const uint8_t socks5[] = {2, 4, 5};
    char text[300];
    const char *name = c->host && c->host->kind == HOST_NAME ? c->host->name : "";
    char addr[46] = "";
    if (c->host && c->host->kind == HOST_ADDR)
        addr_print(&c->host->addr, addr);
    snprintf(text, sizeof text, "%s%s:%u %s", name, addr, c->port, reason);
    if (why == REFUSED_WITHOUT_WORDS) {
        conn_reset(c);
        return;
    }
    switch (c->how) {
    case HOW_CONNECT:
    case HOW_HTTP:
        refuse_http(c, why == REFUSED_BY_RULE ? "403 Forbidden" : "502 Bad Gateway", text);
        break;
    case HOW_SOCKS:
        if (c->socks_version == 5) {
            char reply[10] = {5, (char)socks5[why], 0, 1};
            refuse_saying(c, reply, sizeof reply);
        } else {
            char reply[8] = {0, 91};
            refuse_saying(c, reply, sizeof reply);
        }
        break;
    default:
        reset_when_heard(c);
    }
}

void refuse_held(struct conn *c)
{
    refuse_now(c, (enum refusal)c->why, c->words);
}

void refuse_as(struct conn *c, enum egress_what what, enum refusal why, const struct host *said,
               const struct host_addr *addr, const char *told, const char *words)
{
    struct told_room ends;
    c->ticket = egress_tell_refused(what, c, said, addr, told, told_ends(c, &ends));
    c->why = (uint8_t)why;
    free(c->words);
    c->words = c->ticket ? strdup(words) : NULL;
    if (!c->words) {
        refuse_now(c, why, words);
        return;
    }
    c->stage = STAGE_HELD;
    conn_deadline(c, world.now + HOLD_MS);
    source_rest(&c->client);
    source_rest(&c->server);
}

void refuse_denied(struct conn *c, const struct host_addr *addr, const char *told, const char *words)
{
    refuse_as(c, EGRESS_DENIED, REFUSED_BY_RULE, c->host, addr, told, words);
}

void refuse_failed(struct conn *c, const struct host_addr *addr, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "was not reached: %s", why);
    refuse_as(c, EGRESS_FAILED, REFUSED_BY_SERVER, c->host, addr, why, text);
}

void refuse_answered(struct conn *c, enum egress_answer answer)
{
    static const char *const why[] = {[ANSWER_NO] = "the answer was no",
                                      [ANSWER_LATE] = "nobody answered in time",
                                      [ANSWER_NOBODY] = "nobody could be asked"};
    char text[64];
    snprintf(text, sizeof text, "is not allowed: %s", why[answer]);
    c->rule = EGRESS_RULE_ASKED;
    refuse_denied(c, NULL, why[answer], text);
}

void refuse_flow(struct conn *c, const struct host *said, const char *why)
{
    const struct host_addr *at = c->parent ? NULL : &c->addrs[c->at_addr ? c->at_addr - 1 : 0];
    refuse_as(c, EGRESS_DENIED, REFUSED_WITHOUT_WORDS, said ? said : c->host, at, why, why);
}
