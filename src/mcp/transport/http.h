/*
 * Streamable HTTP: a small HTTP/1.1 server on the loop. We have our own because little is needed (one path, three
 * methods, event streams on one thread's poll()), and Debian's libmicrohttpd would bring GnuTLS and threads into a
 * static program.
 */
#pragma once
#include "mcp/protocol/peer.h"

struct http;
/* Listens and prints the address; NULL with a message in `why`. */
struct http *http_new(struct server *server, char *why, size_t room);
struct http *http_free(struct http *h);
int http_tick(struct http *h, uint64_t now); /* as peer_tick() */

/* http_parse.c: pure. */
#define HTTP_MAX_HEAD   (64u << 10)
#define HTTP_MAX_FIELDS 100 /* a head that comes byte by byte is read anew each time: that must cost little */
struct mcp_http_head {      /* borrows from the bytes */
    struct str method, target;
    struct str host, origin, authorization, accept, content_type, session, version, last_event;
    bool close, chunked, expects, has_length;
    uint64_t length; /* of the body, unless chunked */
};
/* Parses the head at the start of `bytes`, with its empty line: returns its size; 0: incomplete; -status: invalid. */
int http_head(struct str bytes, struct mcp_http_head *ret);
/*
 * Moves chunks from the start of `*bytes` to `body`: 1 after the last one, 0 if more must come, -400 or -413. The state
 * between calls is what is left in `*bytes`.
 */
int http_chunks(struct str *bytes, struct buf *body, size_t max);
/* Whether a client with this Accept header takes `type`; an absent header accepts everything. */
bool http_accepts(struct str accept, const char *type);
bool http_is_here(struct str host); /* "localhost:1", "127.0.0.1", "[::1]:80": this machine by name or address */
bool http_origin_is_here(struct str origin);            /* the same with a scheme in front */
bool same_secret(struct str given, const char *secret); /* constant time */
