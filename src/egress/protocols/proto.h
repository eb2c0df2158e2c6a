/*
 * Parsers for the first data from untrusted clients: HTTP heads, SOCKS greetings, TLS ClientHellos, DNS queries. They
 * are pure and work on slices. Each returns the bytes it consumed, 0 if it needs more, or a negative errno if nothing
 * that follows could make the data valid. None trusts an unchecked length, none allocates.
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
    struct host host; /* the host requested: from the target if that names one, otherwise from the Host field */
    uint16_t port;
    bool has_host;            /* there is a Host field */
    struct str origin_target; /* HTTP_ABSOLUTE: the part after the authority ("/" if empty) */
    bool chunked, has_length, close;
    bool upgrade;      /* there is an Upgrade field, and Connection names it (RFC 9110 7.8) */
    uint64_t length;   /* body bytes when has_length */
    struct str fields; /* all field lines, as sent */
};
/*
 * Parses one request head. -EBADMSG for everything that two parsers could read differently (request smuggling, RFC 9112
 * section 11.2): bare CR or LF, obsolete folding, whitespace before a colon, several or malformed Content-Length,
 * Content-Length with Transfer-Encoding, any coding but a single final "chunked", several Host fields, control
 * characters, HTTP/1.0 with chunked. Host and target must agree, and one of them names the host. -EMSGSIZE beyond
 * MAX_HTTP_HEAD.
 */
ssize_t http_head_parse(struct str in, uint16_t fallback_port, struct http_head *ret);
/* Whether the data may still become a request line with a known method, as proxy clients send it. */
bool http_looks_like(struct str in);

/*
 * Whether some server would read the data as HTTP/1, as tolerantly as servers are (leading empty lines and whitespace,
 * any method name, any whitespace between). 1: yes; -1: no; 0: more data is needed. In that case the first *ret_safe
 * bytes, at most a method name, may be passed on, so that other protocols do not stall. *ret_empty: bytes of empty
 * lines. After -1 an even more tolerant server might still read a request: http_text_eat().
 */
int http_guess(struct str in, size_t *ret_safe, size_t *ret_empty);

/* Whether the data is a head that http_head_parse() accepts, judging by its first line, or may still become one. */
bool http_begins(struct str in);
/* Whether some server treats the byte as whitespace within a line. */
bool http_is_gap(char byte);

typedef bool http_judge(void *context, const struct host *host); /* whether a request to `host` is allowed */
/* Data of an unknown protocol in which the most tolerant HTTP server (RFC 9112) could find a request: followed from the
   first byte on, as long as the other end may be such a server. */
enum { TEXT_FIELD = 300 };
struct http_text {
    bool first; /* only empty lines so far */
    bool over;  /* no server finds a request in this */
    bool value; /* in the value of a Host field, which is kept until its line ends */
    bool folds; /* after such a line, which may be folded */
    bool gap, in_word;
    uint8_t words, version, field, proxy, absolute; /* of the line: words, up to 3; how much of a keyword was matched */
    struct host said;                               /* host in the last Host field */
};
void http_text_begin(struct http_text *t);
/* Returns how many bytes of `in` may be passed on. -EBADMSG: a line may be a request line, a Host field is not
   understood, or it is the PROXY protocol; -EACCES: `may` rejected t->said. */
ssize_t http_text_eat(struct http_text *t, struct str in, http_judge *may, void *context);

/* Follows the bodies of requests on one connection: how many bytes of `in` belong to the current request. */
struct http_body {
    enum { BODY_NONE, BODY_LENGTH, BODY_CHUNK_SIZE, BODY_CHUNK_DATA, BODY_CHUNK_END, BODY_TRAILER } state;
    uint64_t left;
    unsigned line; /* bytes of the current chunk-size or trailer line */
    bool cr;
    bool extensions, extension; /* chunk extensions are permitted (in answers); inside one */
};
void http_body_begin(struct http_body *b, const struct http_head *h);
/* Returns the bytes of `in` that are body; b->state is BODY_NONE at its end. -EBADMSG for malformed chunking. */
ssize_t http_body_eat(struct http_body *b, struct str in);

/* Rewrites an absolute request for its server: origin form, without hop-by-hop fields. Bytes, -EBADMSG, -EMSGSIZE. */
ssize_t http_forward(const struct http_head *h, char *out, size_t room);

/* The same head for a proxy that fetches it; `head` is from http_forward(). Bytes, or -EMSGSIZE. */
ssize_t http_by_parent(struct str head, const char *host, uint16_t port, const struct proxy *by, char *out,
                       size_t room);

/* Follows the answer to one request only to find its end; it is passed on unchanged. */
struct http_answer {
    enum {
        ANSWER_HEAD,
        ANSWER_BODY,
        ANSWER_DONE,
        ANSWER_LOST /* ends with the connection, or cannot be determined */
    } state;
    bool bodiless, close, begun, overlong, has_length, coded, chunked;
    bool refused; /* its status is 403 or 407 */
    unsigned status, n;
    uint64_t length;
    struct http_body body;
    char line[200];
};
void http_answer_expect(struct http_answer *a, const struct http_head *request);
/* How many bytes of `in` are the answer's: all of them unless its end is known. */
size_t http_answer_eat(struct http_answer *a, struct str in);

/* Parses "host" or "host:port" as in a request, without user information. -EBADMSG */
int http_authority(struct str s, uint16_t fallback_port, struct host *host, uint16_t *port);

/* ---- HTTP/2 in the clear (RFC 9113, RFC 7541) ---- */
enum {
    H2_PREFACE_BYTES = 24,
    H2_TABLE_BEGIN = 4096,      /* size of the client's compression table by default */
    H2_TABLE = 16 << 10,        /* the largest that it may set */
    H2_ENTRIES = H2_TABLE / 32, /* an entry counts as 32 bytes at least */
    H2_HEADERS = 18 << 10,      /* of one header block */
    H2_VALUE = 272              /* longest host name and port */
};
struct h2_entry {
    uint16_t size, name;
    uint8_t kind;
};
struct h2 {
    bool begun;          /* the preface was seen */
    uint32_t left;       /* bytes left of a frame that is not judged */
    uint32_t size, most; /* of the table, as RFC 7541 counts */
    uint16_t n, head;    /* entries; index of the next one */
    struct host said;    /* host of the last request */
    struct h2_entry table[H2_ENTRIES];
};
/* Whether `in` has at least `least` bytes and matches the preface of HTTP/2. */
bool h2_looks_like(struct str in, size_t least);
void h2_begin(struct h2 *h);
/*
 * Returns how many bytes of `in` were processed and may be passed on, `may` having accepted the host of each request.
 * -EACCES: it rejected h->said. -EOPNOTSUPP: a request for another server. -EMSGSIZE: over our limits. -EBADMSG:
 * invalid, or a request without a host.
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
                       struct socks_request *ret); /* -EINVAL: invalid name; -EAFNOSUPPORT: unknown address type */
ssize_t socks4_request(struct str in, struct socks_request *ret);

/* ---- TLS (RFC 8446 4.1.2, RFC 6066 3) ---- */
struct tls_hello {
    bool has_name, ech;
    struct host name;
};
/* Whether the data begins like a TLS record. Other bytes are not checked: some servers accept any version there. */
bool tls_looks_like(struct str in);
/* Whether it is a ClientHello in an SSL 2 record, which has no server name: 1, -1: no, 0: more data is needed. */
int tls_old_hello(struct str in);
/* Parses a ClientHello, perhaps over several records. -EBADMSG, at the first wrong byte: TLS, but not acceptable. */
ssize_t tls_hello_parse(struct str in, struct tls_hello *ret);
/* Follows the server's first data: is it a HelloRetryRequest (RFC 8446 4.1.4)? */
struct tls_answer {
    uint8_t at, high; /* bytes so far; the record's length */
};
/* 1: yes, or it cannot be determined; -1: no; 0: more data is needed. */
int tls_asks_again(struct tls_answer *a, struct str in);

/* ---- the caller's own proxy: HTTP CONNECT (RFC 9110 9.3.6), SOCKS5 with names (RFC 1928, RFC 1929) ---- */
enum parent_step { PARENT_CONNECT, PARENT_GREET, PARENT_LOGIN, PARENT_REQUEST, PARENT_OPEN };
enum { PARENT_SAY = 1536, PARENT_HEAR = 16 << 10, PARENT_WHY = 80 };
static inline enum parent_step parent_first(const struct proxy *p)
{
    return p->kind == PROXY_SOCKS ? PARENT_GREET : PARENT_CONNECT;
}
/* What to send at this step to be connected to `host`; bytes, at most PARENT_SAY. */
size_t parent_say(const struct proxy *p, enum parent_step step, const char *host, uint16_t port, char out[PARENT_SAY]);
/*
 * Parses the answer; PARENT_OPEN follows once connected. -EACCES: refused; -EPERM: CONNECT to this host and port is
 * refused, though plain HTTP may work (squid by default permits CONNECT only to port 443). `why` is a clause without
 * secrets.
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
    bool valid_name; /* it is a valid host name; otherwise `host` is empty */
    struct host host;
    size_t end; /* bytes of header and question */
};
int dns_query_parse(struct str in, struct dns_question *ret); /* -EBADMSG: drop; -ENOTSUP: answer NOTIMP/FORMERR */
/* Writes a reply to `query` with at most one address; returns its size. `addr` NULL: no data (with rcode NOERROR) or
   the error. */
size_t dns_reply(struct str query, const struct dns_question *q, int rcode, const struct host_addr *addr, uint32_t ttl,
                 uint8_t *out, size_t room);
/* Writes a query for (name, type); returns its size, 0 if it does not fit. */
size_t dns_query(uint16_t id, const char *name, uint16_t type, uint8_t *out, size_t room);
/* Addresses of `type` in a response to (id, name, type), following CNAMEs in it. Returns how many, or -EAGAIN (not
   ours), -ENOENT (NXDOMAIN), -EMSGSIZE (truncated: retry by TCP), -EBADMSG, -EIO (server failure). */
int dns_answer_parse(struct str in, uint16_t id, const char *name, uint16_t type, struct host_addr *out, size_t room);
