/*
 * What strangers inside the box say first: HTTP heads, SOCKS greetings, TLS ClientHellos, DNS queries. Pure parsers over
 * slices: each returns the bytes it consumed, 0 when more are needed, or a negative errno when no continuation can make
 * the bytes acceptable. None trusts a length it has not checked, none allocates.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "match/host.h"
#include "policy/proxy.h"

#define MAX_HTTP_HEAD    (16u << 10)
#define MAX_HTTP_METHOD  32
#define MAX_CLIENT_HELLO (16u << 10)

/* ---- HTTP/1 (RFC 9112) ---- */
enum http_target {
    HTTP_ORIGIN /* /path */,
    HTTP_ABSOLUTE /* http://host/path */,
    HTTP_AUTHORITY /* CONNECT host:port */,
    HTTP_ASTERISK
};
struct http_head {
    struct str method, target, version;
    enum http_target form;
    struct host host; /* whom the request is for: of the target where it names one, else of the Host field */
    uint16_t port;
    bool has_host;
    struct str origin_target; /* HTTP_ABSOLUTE: the part behind the authority ("/" when empty) */
    bool chunked, has_length, upgrade, close;
    uint64_t length;   /* body bytes when has_length */
    struct str fields; /* all field lines, as sent */
};
/*
 * One request head. -EBADMSG for whatever two parsers could read in two ways (request smuggling, RFC 9112 section 11.2):
 * bare CR or LF, obsolete folding, white space before a colon, several or malformed Content-Length, Content-Length with
 * Transfer-Encoding, any coding but a single final "chunked", several Host fields, control characters, HTTP/1.0 with
 * chunked. Host and target must agree. -EMSGSIZE beyond MAX_HTTP_HEAD.
 */
ssize_t http_head_parse(struct str in, uint16_t fallback_port, struct http_head *ret);
/* Whether the bytes can still become a request line with a known method, as a proxy's client sends it. */
bool http_looks_like(struct str in);

/*
 * Whether a connection that may speak anything speaks HTTP/1 to somebody: as loosely as servers read it (empty lines and
 * white space first, methods of any name, any white space between). 1: yes; -1: no; 0: cannot be told yet, and the first *ret_safe bytes, which
 * are at most a method's name, may be passed on meanwhile, so that no protocol waits for us. *ret_empty: bytes of empty lines. What is -1
 * may still be a request to somebody who reads even more loosely: http_text_eat().
 */
int http_guess(struct str in, size_t *ret_safe, size_t *ret_empty);

/* Whether the bytes are a request head that http_head_parse() takes, as far as its first line goes, or can still become one. */
bool http_begins(struct str in);
/* What some server takes for white space within a line. */
bool http_is_gap(char byte);

typedef bool http_judge(void *context, const struct host *host); /* whether a request may be for `host` */
/*
 * Bytes of a protocol that is none to us, of which some server could still take a part for a request (RFC 9112 read as loosely as
 * the loosest server does): followed from the first one on for as long as a server of HTTP may be at the other end.
 */
enum { TEXT_FIELD = 300 };
struct http_text {
    bool first; /* no line but empty ones yet */
    bool over;  /* no server reads a request in this */
    bool value; /* of a Host field: what follows is kept until its line ends */
    bool folds; /* behind such a line */
    bool gap, in_word;
    uint8_t words, version, field, proxy,
        absolute;     /* of the line: words, up to 3; how much there is of what is looked for */
    struct host said; /* whom the last Host field names */
};
void http_text_begin(struct http_text *t);
/*
 * How many bytes of `in` may be passed on. -EBADMSG: a line is a request line to somebody, or a Host field is not understood, or
 * the PROXY protocol was there; -EACCES: `may` said no to t->said.
 */
ssize_t http_text_eat(struct http_text *t, struct str in, http_judge *may, void *context);

/* Follows the body of requests on one connection: how many of `in` bytes belong to the body of the current request. */
struct http_body {
    enum { BODY_NONE, BODY_LENGTH, BODY_CHUNK_SIZE, BODY_CHUNK_DATA, BODY_CHUNK_END, BODY_TRAILER } state;
    uint64_t left;
    unsigned line; /* bytes of the current chunk-size or trailer line */
    bool cr;
    bool extensions, extension; /* chunk extensions are let pass (in answers); within one */
};
void http_body_begin(struct http_body *b, const struct http_head *h);
/* Bytes of `in` that are body; b->state is BODY_NONE when it is complete. -EBADMSG on malformed chunking. */
ssize_t http_body_eat(struct http_body *b, struct str in);

/* The head of an absolute request as its server gets it: origin form, without what ends at a proxy. Bytes, -EBADMSG, -EMSGSIZE. */
ssize_t http_forward(const struct http_head *h, char *out, size_t room);

/* The same head for a proxy that is to fetch it itself: `head` is what http_forward() made. Bytes, or -EMSGSIZE. */
ssize_t http_by_parent(struct str head, const char *host, uint16_t port, const struct proxy *by, char *out,
                       size_t room);

/* Follows the answer to one request, only to know where it ends: its bytes are passed on whatever they are. */
struct http_answer {
    enum {
        ANSWER_HEAD,
        ANSWER_BODY,
        ANSWER_DONE,
        ANSWER_LOST /* its end is the connection's, or cannot be told */
    } state;
    bool bodiless, close, begun, overlong, has_length, coded, chunked;
    bool refused; /* its status is 403 or 407 */
    unsigned status, n;
    uint64_t length;
    struct http_body body;
    char line[200];
};
void http_answer_expect(struct http_answer *a, const struct http_head *request);
void http_answer_eat(struct http_answer *a, struct str in);

/* "host" or "host:port" as a request names whom it is for; without user information. -EBADMSG */
int http_authority(struct str s, uint16_t fallback_port, struct host *host, uint16_t *port);

/* ---- HTTP/2 in the clear (RFC 9113, RFC 7541) ---- */
enum {
    H2_PREFACE_BYTES = 24,
    H2_TABLE_BEGIN = 4096,      /* bytes of the client's compression table, before it says otherwise */
    H2_TABLE = 16 << 10,        /* the most that it may say                                          */
    H2_ENTRIES = H2_TABLE / 32, /* an entry counts for at least so much                              */
    H2_HEADERS = 18 << 10,      /* the most of one header block                                      */
    H2_VALUE = 272              /* the longest name of a host, and its port                          */
};
struct h2_entry {
    uint16_t size, name;
    uint8_t kind;
};
struct h2 {
    bool begun;          /* the preface was there */
    uint32_t left;       /* bytes of a frame that is not judged */
    uint32_t size, most; /* of the table, as the standard counts */
    uint16_t n, head;    /* entries; where the next one goes */
    struct host said;    /* whom the last request was for */
    struct h2_entry table[H2_ENTRIES];
};
/* Whether at least `least` bytes are there and all are those that every connection begins with. */
bool h2_looks_like(struct str in, size_t least);
void h2_begin(struct h2 *h);
/*
 * How many of `in` are dealt with and may be passed on: `may` said yes to whom each request in them is for. -EACCES: it said no to
 * h->said. -EOPNOTSUPP: a request to be led elsewhere. -EMSGSIZE: more than is kept here. -EBADMSG: what servers refuse, or a
 * request for nobody.
 */
ssize_t h2_eat(struct h2 *h, struct str in, http_judge *may, void *context);

/* ---- SOCKS (RFC 1928, SOCKS4a) ---- */
struct socks_request {
    uint8_t version; /* 4 or 5 */
    uint8_t command; /* 1: CONNECT */
    struct host host;
    uint16_t port;
};
/* SOCKS5 method greeting; *ret_no_auth: the client offers "no authentication". */
ssize_t socks5_greeting(struct str in, bool *ret_no_auth);
ssize_t socks5_request(struct str in,
                       struct socks_request *ret); /* -EINVAL: odd name; -EAFNOSUPPORT: odd address type */
ssize_t socks4_request(struct str in, struct socks_request *ret);

/* ---- TLS (RFC 8446 4.1.2, RFC 6066 3) ---- */
struct tls_hello {
    bool has_name, ech;
    struct host name;
};
/* Whether they begin as records of TLS do. No other byte is looked at: some servers take any version there. */
bool tls_looks_like(struct str in);
/* Whether they are a ClientHello in the record of SSL 2, which names no server: 1, -1 for no, 0 for more bytes. */
int tls_old_hello(struct str in);
/* The ClientHello, perhaps over several records. -EBADMSG, at the first wrong byte: TLS, but no acceptable ClientHello. */
ssize_t tls_hello_parse(struct str in, struct tls_hello *ret);
/* Follows what a server says first, as it comes: is it a HelloRetryRequest (RFC 8446 4.1.4)? */
struct tls_answer {
    uint8_t at, high; /* bytes that were there; the record's length */
};
/* 1: it is, or nobody can tell; -1: it is not; 0: more bytes will tell. */
int tls_asks_again(struct tls_answer *a, struct str in);

/* ---- the caller's own proxy: HTTP CONNECT (RFC 9110 9.3.6), SOCKS5 with names (RFC 1928, RFC 1929) ---- */
enum parent_step { PARENT_CONNECT, PARENT_GREET, PARENT_LOGIN, PARENT_REQUEST, PARENT_OPEN };
enum { PARENT_SAY = 1536, PARENT_HEAR = 16 << 10, PARENT_WHY = 80 };
static inline enum parent_step parent_first(const struct proxy *p)
{
    return p->kind == PROXY_SOCKS ? PARENT_GREET : PARENT_CONNECT;
}
/* What is said at this step to be led to the name `host`; bytes, at most PARENT_SAY. */
size_t parent_say(const struct proxy *p, enum parent_step step, const char *host, uint16_t port, char out[PARENT_SAY]);
/*
 * The answer to it: PARENT_OPEN follows when the way is open. -EACCES: not opened; -EPERM: refused as this way to this host and
 * port, which plain HTTP may be spared (squid's default lets CONNECT to port 443 only). `why` is a clause without a secret.
 */
ssize_t parent_hear(const struct proxy *p, enum parent_step step, struct str in, enum parent_step *ret_next,
                    char why[PARENT_WHY]);

/* ---- DNS (RFC 1035) ---- */
#define DNS_MAX_UDP 1232
enum { DNS_A = 1, DNS_NS = 2, DNS_CNAME = 5, DNS_SOA = 6, DNS_PTR = 12, DNS_AAAA = 28, DNS_HTTPS = 65, DNS_ANY = 255 };
enum { DNS_NOERROR = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4 };
struct dns_question {
    uint16_t id, type, class;
    bool recursion;
    bool valid_name; /* the name is a host name; otherwise `host` is empty */
    struct host host;
    size_t end; /* bytes of header and question */
};
int dns_query_parse(struct str in, struct dns_question *ret); /* -EBADMSG: drop; -ENOTSUP: answer NOTIMP/FORMERR */
/* A reply to `query` with at most one address; bytes written. `addr` NULL: no data (with rcode NOERROR) or the error. */
size_t dns_reply(struct str query, const struct dns_question *q, int rcode, const struct host_addr *addr, uint32_t ttl,
                 uint8_t *out, size_t room);
/* A query for (name, type); bytes written, 0 when it does not fit. */
size_t dns_query(uint16_t id, const char *name, uint16_t type, uint8_t *out, size_t room);
/* Addresses of `type` in a response to (id, name, type), following CNAMEs in it. Number found, or -EAGAIN (not ours),
 * -ENOENT (NXDOMAIN), -EMSGSIZE (truncated: ask by TCP), -EBADMSG, -EIO (server failure). */
int dns_answer_parse(struct str in, uint16_t id, const char *name, uint16_t type, struct host_addr *out, size_t room);
