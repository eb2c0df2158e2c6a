/*
 * The parts of the code of one connection, and their interfaces, the lowest part first: a part calls only those above
 * it in this file; conn.c and live.c call them all. A connection goes through hello.c (on the proxy port), admit.c,
 * dial.c and watch.c. When a request is finished, conn.c sees that in the connection's stage.
 *
 * Most functions can end or refuse the connection: check conn_over(). The struct stays valid until the end of the
 * round.
 */
#pragma once
#include "egress/conn.h"

/* pending.c: data that is kept */
bool pending_keep(struct pending *p, const char *bytes, size_t n); /* appends; false: out of memory */
void pending_drop(struct pending *p, size_t n);                    /* removes the first `n` bytes */
void pending_free(struct pending *p);

/* life.c */
/* A new one that waits HANDSHAKE_MS for client data; NULL: failed, and `fd` is still the caller's. */
struct conn *conn_begin(enum source_kind from, int fd);
void conn_deadline(struct conn *c, uint64_t at); /* 0: none */
void conn_end(struct conn *c);                   /* closes both sides */
void conn_reset(struct conn *c);                 /* ends both sides with a reset */
struct conn *conn_waiting(uint32_t ticket, enum conn_stage stage);
/* Nothing more is read from it or judged. */
static inline bool conn_over(const struct conn *c)
{
    return c->dead || c->stage >= STAGE_HELD;
}

/* relay.c: data between the two sides */
/* Whether there is more to read: an edge is reported only once. */
enum left { LEFT_NOTHING, LEFT_PERHAPS, LEFT_MORE };
static inline enum left relay_left(size_t n, size_t room)
{
    return n == room ? LEFT_MORE : LEFT_PERHAPS;
}
size_t relay_room(void); /* how much to read at once, since it may have to be kept */
/* Reads from one side into the shared buffer, at most `room` bytes: returns how many, 0 at the end. `unseen`: the data
   need not be inspected. -1: nothing to process; *ret_left says whether there is more. */
ssize_t relay_hear(struct conn *c, bool client, bool unseen, size_t room, enum left *ret_left);
/* Sends data to a side and keeps what it cannot take now; false: the connection has ended. */
bool relay_push(struct conn *c, bool to_client, const char *bytes, size_t n);
bool relay_flush(struct conn *c, bool to_client); /* ... what was kept */
/* Passes on half-closes and waits for the next event: the last call of every step. */
void relay_settle(struct conn *c);

/* refuse.c */
enum refusal { REFUSED_BY_RULE, REFUSED_NO_ADDRESS, REFUSED_BY_SERVER, REFUSED_WITHOUT_WORDS };
void refuse_saying(struct conn *c, const char *bytes, size_t n); /* sends the client's last data, then closes orderly */
bool refuse_drop(struct conn *c);                                /* of such a client; true: there is more to read */
void refuse_http(struct conn *c, const char *status, const char *reason);
/* Refuses at once in the client's protocol, without reporting it. */
void refuse_now(struct conn *c, enum refusal why, const char *reason);
/* Reports, then refuses: at once, or once pinfold has identified the client, because a refused process often exits at
   once. `said` and `addr` go into the event; `told` and `words` are the reason: in the event, and for the client. */
void refuse_as(struct conn *c, enum egress_what what, enum refusal why, const struct host *said,
               const struct host_addr *addr, const char *told, const char *words);
void refuse_denied(struct conn *c, const struct host_addr *addr, const char *told, const char *words); /* by a rule */
void refuse_failed(struct conn *c, const struct host_addr *addr, const char *why); /* allowed, but not reached */
void refuse_answered(struct conn *c, enum egress_answer answer); /* the answer to a question was not yes */
/* Refused because of data that flows: closes without a message. `said`: the host it was for, if not the one
   connected to. */
void refuse_flow(struct conn *c, const struct host *said, const char *why);
void refuse_held(struct conn *c); /* carries out a refusal that waited */

/* judge.c: what the rules say, without side effects */
enum host_decision judge_host(struct conn *c, const struct host *h); /* c->rule is the rule that decided */
/* Checks the address to connect to, whatever name led to it. NULL: allowed; otherwise the reason. */
const char *judge_address(struct conn *c, const struct host_addr *a);
/* A rule, or an answer, is about this very address, and none denies addresses: what lies behind it does not matter. */
bool judge_named_alone(struct conn *c, const struct host_addr *a);
/* names/nat64.c */
/* The IPv4 address that it stands for by a prefix of this network. */
bool nat64_inner(const struct host_addr *a, struct host_addr *ret);
void nat64_forget(void);                 /* the network, or its resolver, is another */
bool nat64_is_asked(bool *ret_answered); /* a while ago at most; its prefixes are known */
void nat64_learn(const struct host_addr *addrs, unsigned n, bool answered); /* of ipv4only.arpa */
/* A name given inside a connection that was made to an address must itself be allowed. */
bool judge_inner(struct conn *c, const struct host *h);
/* Whether a rule permits any protocol, not only that of the port. */
bool judge_any_bytes(const struct conn *c);
/* Whether to ask: no, if it would be refused even after a yes. */
bool judge_may_ask(const struct conn *c);

/* request.c: requests sent to us as a proxy, or to be fetched by the parent proxy; one after the other */
/* Its requests are followed to the ends of their answers; each may be for another server. */
static inline bool request_follows(const struct conn *c)
{
    return c->how == HOW_HTTP || c->origin;
}
/* Whether the answer to a proxy request is incomplete, or not yet passed to the client. */
static inline bool request_answering(const struct conn *c)
{
    return request_follows(c) && (c->to_client.n || (c->answer && c->answer->state != ANSWER_DONE));
}
/* Accepts one proxy request for c->host: puts what to send into c->head, and follows its body. */
bool request_take(struct conn *c, const struct http_head *h, size_t n);
/* One request of a client that knows no proxy, if the caller's own proxy is to fetch it. */
bool request_take_origin(struct conn *c);
bool request_send(struct conn *c); /* sends the head of the accepted request; false: the connection has ended */
/* Done with the server of a request while the client stays: its next request begins anew. */
void request_end(struct conn *c);
/*
 * The next request of a proxy client. It is judged like the first; a request for the same server uses the existing
 * connection. True: it was sent, and its body follows. False: nothing to do now, or request_end() was called because it
 * is for another server.
 */
bool request_next(struct conn *c);

/* watch.c: inspects data that flows */
void watch_client(struct conn *c); /* c->first has grown, or may be passed on */
void watch_ended(struct conn *c);  /* the client sends no more */
/* Whether the server's next data must be inspected, because an answer may begin or end in it. */
bool watch_answers(const struct conn *c);
/* Data from the server. True: it answers an Upgrade, for which the client was not read. */
bool watch_server(struct conn *c, struct str in);

/* dial.c: connects to c->addrs, by the parent proxy if there is one */
void dial_next(struct conn *c);              /* tries the next address; refuses if none is left */
void dial_ready(struct conn *c);             /* the server accepted, or not */
enum left dial_parent_ready(struct conn *c); /* data from the parent proxy */

/* admit.c */
void admit(struct conn *c); /* host and port are known: refuses, asks, or resolves and connects */

/* hello.c */
void hello_client(struct conn *c); /* c->first has grown: finds out the destination */
