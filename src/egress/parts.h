/*
 * The parts that the code of one connection is in, and what each does for the others. The lowest is first: a part calls
 * those above it in this file and no other, and conn.c and live.c call them all. So a connection goes through hello.c (on
 * the proxy port), admit.c, dial.c and watch.c, and when a request ends the way that it came, conn.c sees it in its stage.
 *
 * Most of these can end or refuse the connection: conn_over() tells. The struct stays until the round is over.
 */
#pragma once
#include "egress/conn.h"

/* pending.c: bytes that are kept */
bool pending_keep(struct pending *p, const char *bytes, size_t n); /* behind what is there; false: no memory */
void pending_drop(struct pending *p, size_t n);                    /* the first `n` are dealt with */
void pending_free(struct pending *p);

/* life.c */
/* One that waits for its client's first words, HANDSHAKE_MS; NULL: it cannot be had, and `fd` is still the caller's. */
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

/* relay.c: bytes between the two sides */
/* Whether there is more to read than was read: an edge is told once. */
enum left { LEFT_NOTHING, LEFT_PERHAPS, LEFT_MORE };
static inline enum left relay_left(size_t n, size_t room)
{
    return n == room ? LEFT_MORE : LEFT_PERHAPS;
}
size_t relay_room(void); /* what is read at once, for it may have to be kept */
/*
 * What one side says, at most `room` bytes of it, into the shared buffer: how many, 0 at its end; where `unseen`, nobody here
 * has to see it. -1: there is nothing to be done with it, and *ret_left says whether there is more.
 */
ssize_t relay_hear(struct conn *c, bool client, bool unseen, size_t room, enum left *ret_left);
/* Gives bytes to a side, keeping what it cannot take now; false: the connection is dead. */
bool relay_push(struct conn *c, bool to_client, const char *bytes, size_t n);
bool relay_flush(struct conn *c, bool to_client); /* ... what was kept of them */
/* Passes ends on and waits for what comes next: the last of every step. */
void relay_settle(struct conn *c);

/* refuse.c */
enum refusal { REFUSED_BY_RULE, REFUSED_NO_ADDRESS, REFUSED_BY_SERVER, REFUSED_WITHOUT_WORDS };
void refuse_saying(struct conn *c, const char *bytes, size_t n); /* the client's last words, then an orderly end */
void refuse_http(struct conn *c, const char *status, const char *reason);
/* In the words of what the client speaks, and at once; it is not told. */
void refuse_now(struct conn *c, enum refusal why, const char *reason);
/*
 * Tells, then refuses: at once, or when pinfold has seen who it is, for a process that is refused often ends at once.
 * `said` and `addr` are what the event names, `told` and `words` why: in the event, and to the client.
 */
void refuse_as(struct conn *c, enum egress_what what, enum refusal why, const struct host *said,
               const struct host_addr *addr, const char *told, const char *words);
void refuse_denied(struct conn *c, const struct host_addr *addr, const char *told, const char *words); /* by a rule */
void refuse_failed(struct conn *c, const struct host_addr *addr, const char *why); /* allowed, and not reached */
void refuse_answered(struct conn *c, enum egress_answer answer);                   /* to a question: no yes */
/* Something in what flows: it ends without words. `said`: whom that was for, where it is another than was connected to. */
void refuse_flow(struct conn *c, const struct host *said, const char *why);
void refuse_held(struct conn *c); /* a refusal that waited is carried out */

/* judge.c: what the rules say; nothing happens here */
enum host_decision judge_host(struct conn *c, const struct host *h); /* c->rule is the rule that decided */
/* The address that would be dialled, whatever name led to it. NULL: it may be; otherwise why not. */
const char *judge_address(struct conn *c, const struct host_addr *a);
/* A name said inside a connection that was made to an address must itself be allowed. */
bool judge_inner(struct conn *c, const struct host *h);
/* Whether a rule lets any protocol flow there, and not the one alone that belongs to the port. */
bool judge_any_bytes(const struct conn *c);
/* Whether a yes could let it through; what is refused whatever is said is no question. */
bool judge_may_ask(const struct conn *c);

/* request.c: requests that are told to us as a proxy, or that the parent proxy is asked to fetch; one after the other */
/* Its requests are followed to the ends of their answers, and each may be for another server. */
static inline bool request_follows(const struct conn *c)
{
    return c->how == HOW_HTTP || c->origin;
}
/* Whether a proxy request is under way whose answer is not complete, or not yet with the client. */
static inline bool request_answering(const struct conn *c)
{
    return request_follows(c) && (c->to_client.n || (c->answer && c->answer->state != ANSWER_DONE));
}
/* Takes one proxy request for c->host: what is to be sent for it is in c->head, and its body is followed. */
bool request_take(struct conn *c, const struct http_head *h, size_t n);
/* One request of a client that knows of no proxy, where the caller's own proxy is asked to fetch it. */
bool request_take_origin(struct conn *c);
bool request_send(struct conn *c); /* the head of the one that was taken; false: the connection is dead */
/* The server of a request is done with, and the client stays: whatever it asks for next begins anew. */
void request_end(struct conn *c);
/*
 * The next request on a connection that knows us as a proxy. It is judged as if it were the first; where it is for the same
 * server, the connection to that server serves it, too. True: it was sent, and its body follows. False: nothing to do now, or
 * request_end() was called because it leads elsewhere.
 */
bool request_next(struct conn *c);

/* watch.c: what flows is still judged */
void watch_client(struct conn *c); /* c->first has grown, or may go on */
void watch_ended(struct conn *c);  /* the client says no more */
/* Whether the server's next bytes have to be seen: they are, or may be, where an answer begins or ends. */
bool watch_answers(const struct conn *c);
/* The server said it. True: it is the answer to an Upgrade, for which the client was not read. */
bool watch_server(struct conn *c, struct str in);

/* dial.c: the way to c->addrs, by the parent proxy where there is one, until bytes flow */
void dial_next(struct conn *c);              /* the next address; refuses where none is left */
void dial_ready(struct conn *c);             /* the server accepted, or did not, after a while */
enum left dial_parent_ready(struct conn *c); /* the parent proxy says something */

/* admit.c */
void admit(struct conn *c); /* the host and port are known: refused, asked about, or resolved and dialled */

/* hello.c */
void hello_client(struct conn *c); /* c->first has grown: whom does it want? */
