/*
 * Inside the egress: connections and the loop they live in. One epoll set, level-triggered; one shared buffer for all
 * relaying, so that an idle tunnel costs its struct and nothing else; what a slow peer cannot take yet is kept per side,
 * bounded by one read, and the other side is not read meanwhile. The more is kept altogether, the less is read at once.
 */
#pragma once
#include <sys/epoll.h>
#include <sys/socket.h>
#include "egress/egress.h"
#include "egress/protocols/proto.h"

enum {
    SHARED_BYTES = 256 << 10, /* the relay buffer: large reads make few system calls                        */
    SCARCE_BYTES = 16 << 20,  /* kept for all slow peers together: beyond, reads are of SCARCE_READ only    */
    SCARCE_READ = 8 << 10,
    H2_TOLD = 15,            /* bytes of HTTP/2's beginning that are nothing else's */
    ONE_SEGMENT = 1200,      /* bytes that any network takes in one packet                                 */
    FIRST_BYTES = 20 << 10,  /* the most kept of what a client says before it is judged                    */
    HANDSHAKE_MS = 10000,    /* from accept to a judged destination: slow talkers are cut off              */
    HOLD_MS = 1000,          /* the most that a refusal waits for pinfold to see who is refused            */
    UNHEARD_MS = 100,        /* ... and then a reset for its client's first words                          */
    HOLDS = 512,             /* refusals of one box that wait at all                                       */
    REFUSED_MS = 2000,       /* a no holds so long: programs try one address of a name after the other     */
    ASK_SLACK_MS = 3000,     /* pinfold's own clock ends a question; this is for when it does not          */
    ORIGIN_MS = 1000,        /* for a client to say HTTP, where the parent proxy takes nothing else            */
    DIAL_MS = 3000,          /* per address                                                                */
    MAX_CONNECTIONS = 30000, /* of one box; beyond, new ones are reset                                     */
    MAX_NAMES = 60000,       /* stand-ins of one box: a stand-in is never given to another name            */
    MAX_ADDRESSES = 8,       /* of one name that are tried                                                 */
    MOST_AT_ONCE = 64,       /* connections taken of one listener in one round                                 */
    POLL_AFTER_MS = 4,       /* after the last new connection, waits are awake                                 */
    POLL_LEAST_US = 20,      /* for so long each, at least and at most                                         */
    POLL_MOST_US = 100,
    CACHE_SLOTS = 128,     /* names whose addresses are remembered                                       */
    BULK_BYTES = 64 << 10, /* as much in one read: the next ones are moved by the kernel                  */
    BULK_PIPES = 8,
    BULK_ROOM = 1 << 20, /* of each                                                                     */
    STARVED_MS = 50,     /* between looks at listeners while there are no descriptors                  */
    ENDING_MS = 1000     /* for clients of published ports to take what is left                        */
};

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
struct wake_source { /* what an epoll event points to; first member of everything that can be woken */
    enum source_kind kind;
    int fd;
    uint32_t armed; /* events that are wanted now; of an edge, others may come and mean nothing */
    bool edge;      /* told once of what is there: whoever leaves something there calls source_again() */
    bool set;       /* in the epoll set */
    uint8_t burst;  /* of a listener: how many are taken at once, and in which round it was last ready */
    uint32_t round;
};

enum conn_stage {
    STAGE_HELLO,   /* proxy port: what does the client speak?            */
    STAGE_SOCKS,   /* greeted, the request comes                         */
    STAGE_ASK,     /* somebody is asked                                  */
    STAGE_RESOLVE, /* waiting for addresses                              */
    STAGE_DIAL,    /* waiting for the server to accept                   */
    STAGE_PARENT,  /* the caller's own proxy was asked for the way       */
    STAGE_OPEN,    /* bytes flow, perhaps still watched                  */
    STAGE_HELD,    /* refused, but pinfold looks first who it is         */
    STAGE_UNHEARD  /* refused, and reset with its client's first words   */
};
/* What of the client's bytes is still judged while they flow. */
enum watch {
    WATCH_NOTHING,
    WATCH_FIRST,
    WATCH_TLS,
    WATCH_TLS_AGAIN /* a ClientHello went by; a server that wants another (RFC 8446 4.1.4) takes the name from that one */
    ,
    WATCH_HTTP,
    WATCH_SWITCHED /* to HTTP/2, to TLS, or to anything */,
    WATCH_TLS_ASKED /* for: PostgreSQL's question went by */,
    WATCH_H2,
    WATCH_TEXT /* of no protocol that is known here, but some server of HTTP might read a request in it */
};

struct pending {  /* bytes that a side could not take yet */
    char *p;      /* owned, or NULL where the kernel has them: */
    uint8_t pipe; /* one of bulk.c's, borrowed for as long as something is in it; 0: none */
    uint32_t n, at;
};

struct conn {
    struct wake_source client, server;
    struct conn *next, *before;        /* in the list of those with a deadline; in the graveyard */
    struct conn *other, *other_before; /* in the list of all */
    struct lookup *lookup;
    struct pending to_client, to_server;
    struct pending head;        /* of the request that is sent once the way is open */
    struct http_answer *answer; /* proxy requests: how far the server's answer is; owned */
    struct http_answer *follow; /* others: the same, so that an Upgrade's answer is known for it; owned */
    struct pending heard;       /* of the parent proxy's answer, which is not whole yet */
    struct pending first;       /* client bytes not judged yet; the first .at of them were passed on */
    uint64_t deadline;          /* milliseconds; 0 for none */
    uint8_t stage, watch, how, socks_version;
    bool client_eof, server_eof, client_shut, server_shut, dead;
    bool literal;    /* the client named an address: judged by address rules */
    bool bulk[2];    /* from the server, from the client: much came at once */
    bool upgrade;    /* an Upgrade was asked; the server's answer decides */
    bool retried;    /* WATCH_TLS_AGAIN: the server wants another ClientHello */
    bool http_there; /* the first that the server said is of HTTP, or may be */
    bool any_bytes;  /* it flows because a rule lets any protocol flow on this port */
    struct tls_answer hello;
    bool asked;            /* somebody said yes to this one, no rule does */
    bool sent, no_delay;   /* the server was sent something; more than once: it gets it at once */
    uint8_t why;           /* STAGE_HELD: enum refusal, and in what words */
    char *words;           /* owned */
    uint32_t ticket;       /* STAGE_ASK, STAGE_HELD */
    uint32_t stand, inner; /* open and no longer watched: whom it leads to, and the name that was said inside, or 0 */
    uint16_t port;
    uint8_t n_addrs, at_addr;
    const struct proxy *parent; /* the caller's own proxy leads there; NULL: dialled directly */
    uint8_t parent_step;        /* enum parent_step */
    bool parent_fetches;        /* ... for it, as a proxy of plain HTTP: it does not lead there */
    bool origin;                /* ... for a client that knows of no proxy: its requests become a proxy's */
    uint8_t no;                 /* errno of the last address that was tried */
    uint32_t rule;              /* its id */
    struct host_addr addrs[MAX_ADDRESSES];
    struct http_body body;
    struct h2 *h2;          /* owned */
    struct http_text *text; /* owned */
    struct host *host;      /* owned; until it is open, and longer while it is watched */
};

struct lookup { /* one name being resolved over the network, for one connection */
    struct wake_source source;
    struct conn *conn;
    const char *base; /* as the box or the configuration says it; outlives this */
    void (*resolved)(struct conn *c, const struct host_addr *addrs, unsigned n);
    struct lookup *next, *before;
    uint64_t deadline;
    char name[HOST_NAME_MAX_TEXT + 1]; /* as asked of the server, search domain included */
    uint16_t id;
    uint8_t server, attempt, search, type; /* DNS_A then DNS_AAAA */
    uint8_t n;
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
    uint64_t conns_at; /* no connection's deadline is before that */
    struct wake_source listeners[EGRESS_SOCKETS + 1], ports[EGRESS_MAX_PORTS], *reach;
    uint64_t accepts_at; /* descriptors had run out: when listeners are looked at again; 0 */
    uint64_t ends_at;    /* published ports: the box is gone; 0 while it lives */
    struct conn *conns;  /* those with a deadline */
    struct conn *all;
    uint32_t tickets; /* given out so far */
    uint32_t holds;   /* refusals that waited so far */
    uint32_t lost;    /* events that could not be sent since the last one */
    struct lookup *lookups;
    unsigned n_conns, max_conns, max_files;
    bool full;     /* there was one more than that, and it was told */
    uint64_t kept; /* bytes in all pendings */
    char **names;  /* stand-in i + 1 stands for names[i] */
    uint32_t n_names, room_names;
    uint32_t *by_hash; /* open addressing over names, indices + 1 */
    uint32_t hash_room;
    struct cached cache[CACHE_SLOTS];
    char buffer[SHARED_BYTES];
};
extern struct egress_world world;

/* source.c */
int source_add(struct wake_source *s, enum source_kind kind, int fd, uint32_t events);
/* An edge. It costs no call before it is armed, and none when it wants fewer events than before. */
void source_edge(struct wake_source *s, enum source_kind kind, int fd);
bool source_arm(struct wake_source *s, uint32_t events); /* false: it cannot be woken */
void source_rest(struct wake_source *s);  /* of an edge: what comes means nothing until it is armed again */
void source_again(struct wake_source *s); /* something may be left of what it was told of */
void source_abort(int fd);                /* its end will be a reset, and throws away what was not sent */
void source_close(struct wake_source *s);
/* sockaddr.c */
socklen_t sockaddr_of(const struct host_addr *a, uint16_t port, struct sockaddr_storage *ret);      /* its length */
void sockaddr_read(const struct sockaddr_storage *from, struct host_addr *ret, uint16_t *ret_port); /* v4-mapped: v4 */
/* tell.c */
void egress_tell(bool allowed, enum egress_how how, const struct host *host, uint16_t port,
                 const struct host_addr *addr, uint32_t rule, const char *reason);
void egress_tell_allowed(const struct conn *c);
struct told { /* whose decision it is, for pinfold to look for; all zero where nobody knows */
    const struct sockaddr *from, *to;
    bool udp;
};
struct told_room {
    struct sockaddr_storage from, to;
    struct told told;
};
const struct told *told_ends(const struct conn *c, struct told_room *room); /* both ends of the client's connection */
/*
 * A refusal, or that what is allowed was not reached: of `said`, at `addr` (NULL: no address was seen here). Returns the ticket
 * that ORDER_SEEN will name, or 0: nobody looks.
 */
uint32_t egress_tell_refused(enum egress_what what, const struct conn *c, const struct host *said,
                             const struct host_addr *addr, const char *reason, const struct told *who);
uint32_t egress_tell_no_name(const struct host *host, uint32_t rule, const struct told *who);
/* A question; returns its ticket, or 0: it could not be put. */
uint32_t egress_tell_question(enum egress_how how, const struct host *host, uint16_t port, const struct told *who);
void egress_tell_rules(uint32_t ticket, uint32_t closed);
/* order.c: what pinfold says meanwhile */
void orders_begin(const struct egress_ask *ask);
enum orders {
    ORDERS_MORE,
    ORDERS_END,  /* pinfold is gone */
    ORDERS_LEAVE /* the box is: what is under way may come to its end */
};
enum orders orders_ready(void);
/* question.c */
#define QUESTION_REFUSED UINT32_MAX
void question_over(uint32_t ticket, bool yes); /* there is an answer */
/* The ticket of the one question whether `host`:`port` may be reached, put now or before; 0: there are too many;
   QUESTION_REFUSED: the answer was no, just now. */
uint32_t question_of(enum egress_how how, const struct host *host, uint16_t port, const struct told *who);
/* bulk.c: bytes that nobody here has to see, moved by the kernel through a pipe */
/*
 * From `from` into an empty pipe, whose number (1 ...) goes to *ret_pipe when something is in it. Returns what was moved, 0 at
 * the end, or -errno: -EAGAIN nothing there, -ENOBUFS no pipe is to be had and the caller reads.
 */
int bulk_take(int from, uint8_t *ret_pipe);
/* At most `n` bytes of the pipe to `to`: how many, or -errno. */
int bulk_give(uint8_t pipe, int to, uint32_t n);
/* Back to the others; `empty` false: with what is in it. */
void bulk_done(uint8_t pipe, bool empty);
/* names/fake_ip.c: names and the addresses that stand for them */
uint32_t stand_of(const char *name); /* 1.. or 0 when full */
void stand_addr(uint32_t stand, bool v6, struct host_addr *ret);
const char *stand_name(const struct host_addr *a); /* the name, or NULL */
bool stand_range(const struct host_addr *a);       /* inside the ranges stand-ins come from */
/* names/resolver.c */
void dns_udp_ready(void);
void dns_seen(uint32_t ticket); /* the reply that waited for it goes out */
uint64_t dns_late(void);        /* those that have waited long enough go out; when the next one is due */
void dns_conn_accept(int fd);
void dns_conn_ready(struct wake_source *s);
/* lookup.c: hands the addresses of `name`, which outlives the connection or is its host's, to `resolved`, now or later; n 0: it has none */
typedef void resolved_fn(struct conn *c, const struct host_addr *addrs, unsigned n);
void lookup_start(struct conn *c, const char *name, resolved_fn *resolved);
void lookup_ready(struct lookup *l);
void lookup_late(struct lookup *l);
void lookup_cancel(struct lookup *l);
void lookup_bury(void);
/* conn.c: what wakes a connection */
void conn_accept(enum source_kind from, int fd, size_t reach_index);
void conn_ready(struct conn *c, bool client_side, uint32_t events);
void conn_late(struct conn *c);
/* life.c */
void conn_bury(void);     /* frees what died during this round */
bool conn_all_told(void); /* no server will say more, and clients have been given all of it */
/* live.c: what pinfold says of connections that are there */
void conn_seen(uint32_t ticket); /* who is refused was looked at: the refusal is carried out */
void conn_answered(uint32_t ticket, enum egress_answer answer);
/* There are new rules: ends what they forbid, lets through what waited for an answer. How many open ones were ended. */
uint32_t conn_judge_again(void);
