/*
 * Private to the egress proxy: connections and their event loop. One epoll set, level-triggered except for sources
 * marked `edge`; one buffer for all relaying, so that an idle tunnel costs only its struct. Data that a slow peer
 * cannot take yet is kept per side, at most one read; meanwhile the other side is not read. The more data is kept in
 * total, the less is read at once.
 */
#pragma once
#include <sys/epoll.h>
#include <sys/socket.h>
#include "egress/egress.h"
#include "egress/protocols/proto.h"

enum {
    SHARED_BYTES = 256 << 10, /* the relay buffer: large reads need few system calls */
    SCARCE_BYTES = 16 << 20,  /* data kept for all slow peers together; above it, reads are limited to SCARCE_READ */
    SCARCE_READ = 8 << 10,
    H2_TOLD = 15,            /* bytes at the start of HTTP/2 that no other protocol has */
    ONE_SEGMENT = 1200,      /* bytes that any network takes in one packet */
    FIRST_BYTES = 20 << 10,  /* most client data kept before the connection is judged */
    HANDSHAKE_MS = 10000,    /* from accept to a judged destination: disconnects slow clients */
    HOLD_MS = 5000,          /* longest time that a refusal waits until pinfold has identified the client */
    UNHEARD_MS = 1000,       /* after that, how long to wait for client data before the reset */
    LEAVING_MS = 2000,       /* how long what a client sends after the proxy's last answer is read and dropped */
    DROPS = 4,               /* reads of it at once */
    HOLDS = 512,             /* refusals of one box that wait at all */
    REFUSED_MS = 2000,       /* how long a "no" is remembered: programs try all addresses of a name in turn */
    ASK_SLACK_MS = 10000,    /* pinfold times questions itself; this is a fallback */
    ORIGIN_MS = 3000,        /* for a client to begin with HTTP, if the parent proxy accepts nothing else */
    DIAL_MS = 3000,          /* per address */
    MAX_CONNECTIONS = 30000, /* of one box; further ones are reset */
    MAX_NAMES = 60000,       /* fake IPs of one box; they are never reused */
    MAX_ADDRESSES = 8,       /* of one name that are tried */
    MOST_AT_ONCE = 64,       /* connections accepted from one listener per round */
    POLL_AFTER_MS = 4,       /* after the last new connection, busy-wait this long */
    POLL_LEAST_US = 20,      /* length of one such wait, at least and at most */
    POLL_MOST_US = 100,
    CACHE_SLOTS = 128,     /* names whose addresses are cached */
    BULK_BYTES = 64 << 10, /* after a read of this size the kernel moves the data (splice) */
    BULK_PIPES = 8,
    BULK_ROOM = 1 << 20, /* of each pipe */
    STARVED_MS = 50,     /* between checks of listeners while descriptors are exhausted */
    ENDING_MS = 10000    /* for clients of published ports to receive the rest */
};

/* Gives memory back, and forgets it. */
#define let_go(memory) (free(memory), (memory) = NULL)

enum source_kind {
    SOURCE_CATCH,
    SOURCE_PROXY,
    SOURCE_DNS_UDP,
    SOURCE_DNS_TCP,
    SOURCE_REACH,
    SOURCE_EVENTS,
    SOURCE_CLIENT,
    SOURCE_SERVER,
    SOURCE_LOOKUP,
    SOURCE_DNS_CONN
};
struct wake_source { /* target of an epoll event; first member of everything that can be woken */
    enum source_kind kind;
    int fd;
    uint32_t armed; /* events wanted now; with `edge`, others may arrive and are ignored */
    bool edge;      /* edge-triggered: whoever leaves data unread calls source_again() */
    bool set;       /* in the epoll set */
    uint8_t burst;  /* of a listener: how many to accept at once, and the round in which it was last ready */
    uint32_t round;
};

enum conn_stage {
    STAGE_HELLO,   /* proxy port: detecting the client's protocol */
    STAGE_SOCKS,   /* greeted, waiting for the request */
    STAGE_ASK,     /* waiting for an answer to a question */
    STAGE_RESOLVE, /* waiting for addresses */
    STAGE_DIAL,    /* waiting for the server to accept */
    STAGE_PARENT,  /* the caller's own proxy was asked to connect */
    STAGE_OPEN,    /* data flows, perhaps still inspected */
    STAGE_HELD,    /* refused, but pinfold identifies the client first */
    STAGE_UNHEARD, /* refused, to be reset at the client's first data */
    STAGE_LEAVING  /* refused in words; what the client still sends is dropped */
};
/* What is still inspected in the client's data. */
enum watch {
    WATCH_NOTHING,
    WATCH_FIRST,
    WATCH_TLS,
    /* after a ClientHello: a HelloRetryRequest (RFC 8446 4.1.4) makes the client send another, which counts */
    WATCH_TLS_AGAIN,
    WATCH_HTTP,
    WATCH_SWITCHED /* to HTTP/2, to TLS, or to any protocol */,
    WATCH_TLS_ASKED /* for TLS: PostgreSQL's SSLRequest was seen */,
    WATCH_H2,
    WATCH_TEXT /* an unknown protocol, in which some HTTP server might read a request */
};

struct pending {  /* data that a side could not take yet */
    char *p;      /* owned, or NULL if it is in a pipe: */
    uint8_t pipe; /* one of bulk.c's, borrowed while it has data; 0: none */
    uint32_t n, at;
};

struct conn {
    struct wake_source client, server;
    struct conn *next, *before;        /* in the list of connections with a deadline; in the graveyard */
    struct conn *other, *other_before; /* in the list of all connections */
    struct lookup *lookup;
    struct pending to_client, to_server;
    struct pending head;        /* of the request, sent once the server is connected */
    struct http_answer *answer; /* proxy requests: state of the server's answer; owned */
    struct http_answer *follow; /* others: the same, to match the answer to an Upgrade; owned */
    struct pending heard;       /* of the parent proxy's answer, still incomplete */
    struct pending first;       /* client data not judged yet, of which .at bytes were passed on */
    uint64_t deadline;          /* milliseconds; 0 for none */
    uint8_t stage, watch, how, socks_version;
    bool client_eof, server_eof, client_shut, server_shut, dead;
    bool literal;    /* the client named an address: judged by address rules */
    bool unanswered; /* the last lookup: no server has answered */
    bool bulk[2];    /* from the server, from the client: the last read was large */
    bool upgrade;    /* an Upgrade was requested; the server's answer decides */
    bool retried;    /* WATCH_TLS_AGAIN: the server sent a HelloRetryRequest */
    bool http_there; /* the server's first data is HTTP, or may be */
    bool spoke;      /* after an Upgrade the server said something that is not HTTP */
    bool any_bytes;  /* allowed because a rule permits any protocol on this port */
    struct tls_answer hello;
    bool asked;          /* allowed by an answer, not by a rule */
    bool sent, no_delay; /* data was sent to the server; TCP_NODELAY is set at the second time */
    uint8_t why;         /* STAGE_HELD: enum refusal, and its text */
    char *words;         /* owned */
    uint32_t ticket;     /* STAGE_ASK, STAGE_HELD */
    /* open and not inspected any more: its host, and the name given inside, as numbers of fake IPs; or 0 */
    uint32_t stand, inner;
    uint16_t port;
    uint8_t n_addrs, at_addr;
    const struct proxy *parent; /* the caller's own proxy connects; NULL: connected directly */
    uint8_t parent_step;        /* enum parent_step */
    bool parent_fetches;        /* as a proxy of plain HTTP, which fetches instead of connecting */
    bool origin;                /* for a client that knows no proxy: its requests are rewritten for the parent proxy */
    uint8_t no;                 /* errno of the last address tried */
    uint32_t rule;              /* its id */
    struct host_addr addrs[MAX_ADDRESSES];
    struct http_body body;
    struct h2 *h2;          /* owned */
    struct http_text *text; /* owned */
    struct host *host;      /* owned; until it is open, or longer while it is inspected */
};

struct lookup { /* one DNS lookup for one connection */
    struct wake_source source;
    struct conn *conn;
    const char *base; /* as the box or the configuration names it; outlives this */
    void (*resolved)(struct conn *c, const struct host_addr *addrs, unsigned n);
    struct lookup *next, *before;
    uint64_t deadline;
    char name[HOST_NAME_MAX_TEXT + 1]; /* as sent to the server, with the search domain */
    uint16_t id;
    uint8_t server, attempt, search, type; /* DNS_A then DNS_AAAA */
    uint8_t n;
    bool alone, failed;    /* only this type, of the name as it is; no usable answer came */
    bool truncated;        /* an answer by UDP, to the query at hand */
    bool stream, asked;    /* by TCP; the query was sent */
    struct pending answer; /* by TCP, still incomplete */
    struct host_addr found[MAX_ADDRESSES];
};

struct cached {
    char name[HOST_NAME_MAX_TEXT + 1];
    uint8_t n;
    uint64_t until;
    struct host_addr addrs[MAX_ADDRESSES];
};

struct egress_world {
    const struct egress_ask *ask;
    int epoll;
    uint64_t now;      /* milliseconds, monotonic */
    uint32_t round;    /* of the loop */
    bool polls;        /* there is more than one processor */
    uint64_t made_at;  /* when the last connection was accepted */
    uint64_t conns_at; /* no connection has an earlier deadline */
    struct wake_source listeners[EGRESS_SOCKETS + 1], ports[EGRESS_MAX_PORTS], *reach;
    uint64_t accepts_at; /* descriptors are exhausted: when to check listeners again; 0 */
    uint64_t ends_at;    /* published ports: when to exit after the box has ended; 0 before */
    struct conn *conns;  /* those with a deadline */
    struct conn *all;
    uint32_t tickets; /* given out so far */
    uint32_t holds;   /* refusals that waited so far */
    uint32_t lost;    /* events that could not be sent since the last one */
    struct lookup *lookups;
    unsigned n_conns, max_conns, max_files;
    bool full;     /* MAX_NAMES was reached, and that was reported */
    uint64_t kept; /* bytes in all pendings */
    char **names;  /* fake IP i + 1 belongs to names[i] */
    uint32_t n_names, room_names;
    uint32_t *by_hash; /* open addressing over names, indices + 1 */
    uint32_t hash_room;
    struct cached cache[CACHE_SLOTS];
    char buffer[SHARED_BYTES];
};
extern struct egress_world world;

/* source.c */
int source_add(struct wake_source *s, enum source_kind kind, int fd, uint32_t events);
/* Edge-triggered. Costs no system call before it is armed, or when it wants fewer events than before. */
void source_edge(struct wake_source *s, enum source_kind kind, int fd);
bool source_arm(struct wake_source *s, uint32_t events); /* false: it cannot be woken */
void source_rest(struct wake_source *s);                 /* of an edge: ignores events until armed again */
void source_again(struct wake_source *s);                /* some data may be left unread */
void source_abort(int fd);                               /* closing it will send a reset and discard unsent data */
void source_close(struct wake_source *s);
/* sockaddr.c */
socklen_t sockaddr_of(const struct host_addr *a, uint16_t port, struct sockaddr_storage *ret);      /* its length */
void sockaddr_read(const struct sockaddr_storage *from, struct host_addr *ret, uint16_t *ret_port); /* v4-mapped: v4 */
/* tell.c */
void egress_tell(bool allowed, enum egress_how how, const struct host *host, uint16_t port,
                 const struct host_addr *addr, uint32_t rule, const char *reason);
void egress_tell_allowed(const struct conn *c);
struct told { /* whose connection it is, for pinfold to identify the process; all zero if unknown */
    const struct sockaddr *from, *to;
    bool udp;
};
struct told_room {
    struct sockaddr_storage from, to;
    struct told told;
};
const struct told *told_ends(const struct conn *c, struct told_room *room); /* both ends of the client's connection */
/* Reports a refusal, or that an allowed host was not reached: `said`, at `addr` (NULL: no address known). Returns the
   ticket that ORDER_SEEN will name, or 0: nobody identifies the client. */
uint32_t egress_tell_refused(enum egress_what what, const struct conn *c, const struct host *said,
                             const struct host_addr *addr, const char *reason, const struct told *who);
uint32_t egress_tell_no_name(const struct host *host, uint32_t rule, const struct told *who);
/* Sends a question; returns its ticket, or 0: that failed. */
uint32_t egress_tell_question(enum egress_how how, const struct host *host, uint16_t port, const struct told *who);
void egress_tell_rules(uint32_t ticket, uint32_t closed);
/* order.c: messages from pinfold */
void orders_begin(const struct egress_ask *ask);
enum orders {
    ORDERS_MORE,
    ORDERS_END,  /* pinfold has ended */
    ORDERS_LEAVE /* the box has ended: connections may finish */
};
enum orders orders_ready(void);
/* question.c */
#define QUESTION_REFUSED UINT32_MAX
void question_over(uint32_t ticket, bool yes); /* an answer has come */
/* The ticket of the question whether `host`:`port` may be reached, new or pending; 0: too many; QUESTION_REFUSED:
   the answer was no a moment ago. */
uint32_t question_of(enum egress_how how, const struct host *host, uint16_t port, const struct told *who);
/* bulk.c: data that need not be inspected, moved by the kernel through a pipe (splice(2)) */
/* From `from` into an empty pipe, whose number (1 ...) goes to *ret_pipe if something is in it. Returns the bytes
   moved, 0 at the end, or -errno: -EAGAIN nothing there, -ENOBUFS no pipe available (then read instead). */
int bulk_take(int from, uint8_t *ret_pipe);
/* Moves at most `n` bytes from the pipe to `to`: how many, or -errno. */
int bulk_give(uint8_t pipe, int to, uint32_t n);
/* Returns the pipe to the pool; `empty` false: discards its content. */
void bulk_done(uint8_t pipe, bool empty);
/* names/fake_ip.c: fake IPs and their names */
uint32_t stand_of(const char *name); /* 1.. or 0 when full */
void stand_addr(uint32_t stand, bool v6, struct host_addr *ret);
const char *stand_name(const struct host_addr *a); /* the name, or NULL */
bool stand_range(const struct host_addr *a);       /* inside the ranges of fake IPs */
/* names/resolver.c */
void dns_udp_ready(void);
void dns_seen(uint32_t ticket); /* sends the reply that waited for this ticket */
uint64_t dns_late(void);        /* sends replies that have waited long enough; returns when the next one is due */
void dns_conn_accept(int fd);
void dns_conn_ready(struct wake_source *s);
/* lookup.c: passes the addresses of `name`, which must outlive the connection or belong to its host, to `resolved`,
   now or later; n 0: none */
typedef void resolved_fn(struct conn *c, const struct host_addr *addrs, unsigned n);
void lookup_start(struct conn *c, const char *name, resolved_fn *resolved);
void lookup_only(struct conn *c, const char *name, resolved_fn *resolved); /* its IPv6 addresses, from a server */
void lookup_ready(struct lookup *l);
void lookup_late(struct lookup *l);
void lookup_cancel(struct lookup *l);
void lookup_bury(void);
/* conn.c: events of a connection */
void conn_accept(enum source_kind from, int fd, size_t reach_index);
void conn_ready(struct conn *c, bool client_side, uint32_t events);
void conn_late(struct conn *c);
/* life.c */
void conn_bury(void);     /* frees those that ended during this round */
bool conn_all_told(void); /* servers have sent all, and clients have received it */
/* live.c: messages of pinfold about existing connections */
void conn_seen(uint32_t ticket); /* the client was identified: carry out the refusal */
void conn_answered(uint32_t ticket, enum egress_answer answer);
/* After new rules: closes what they forbid, lets through what waited for an answer. Returns how many open ones it
   closed. */
uint32_t conn_judge_again(void);
