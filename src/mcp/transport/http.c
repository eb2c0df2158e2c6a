/*
 * Connections, sessions and event streams of the HTTP server. By the protocol's "Streamable HTTP"; a request from
 * another origin or without the token is refused before its body is read.
 */
#include "mcp/transport/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "match/addr.h"
#include "mcp/transport/stream.h"

#define MAX_CONNECTIONS    256
#define MAX_SESSIONS       64
#define CONNECTION_IDLE_MS 60000   /* of a connection without a request */
#define SESSION_MS         3600000 /* of a session without one          */
#define BEAT_MS            15000   /* an empty line into an event stream, so that a client that is gone is noticed */
#define LEAVING_MS         2000    /* what a client still sends after the last answer is read and dropped for so long */
#define STARVED_MS         100     /* how long none is accepted while there are no descriptors */
#define PATIENCE_MS        1000    /* then a request becomes a stream of events, which a client can ask to go on with */
#define CORS_SECONDS       "86400"
#define ID_BYTES           16
#define UNREAD_COUNTS      (1u << 20) /* bytes of a request that is not whole from which on all such are counted */

struct session {
    struct session *next;
    struct http *http;
    struct peer *peer;
    struct event_stream *streams; /* what is sent to it; that of no request has the tag 0 */
    char id[2 * ID_BYTES + 1];
    uint64_t used;
    bool over; /* to be ended in the next tick: not while its own messages are being sent */
};

enum connection_state { READING, WAITING /* for answers, nothing sent */, STREAMING };

struct http_connection {
    struct loop_source source;
    struct http_connection *next;
    struct http *http;
    struct session *session;     /* of the request at hand */
    struct event_stream *stream; /* of it, or of none (GET); what is told is its beginning */
    enum connection_state state;
    uint64_t used, began;
    struct buf in, body, out;
    size_t sent, told, told_bytes; /* messages of the stream, and bytes of its log */
    struct mcp_http_head head;
    size_t head_bytes; /* 0: not whole */
    bool body_done, closing, leaving /* all is sent */, over, collecting, accepts_stream, accepts_json, new_session,
        continued, known /* has shown the token */, behind /* requests came before the last one was answered */;
};

struct http {
    struct loop_source source;
    uint64_t accepts_at; /* while the source has no events: when it has them again */
    struct server *server;
    struct http_connection *connections;
    struct session *sessions;
    size_t n_connections, n_sessions;
    uint64_t tags;
    bool here; /* listens on loopback only */
    char token[2 * ID_BYTES + 1];
    const char *secret;
};

static bool random_id(char to[2 * ID_BYTES + 1])
{
    unsigned char bytes[ID_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    hex_digits(bytes, sizeof bytes, to);
    return true;
}

/* ---- bytes out */

static void push_out(struct http_connection *c)
{
    while (c->sent < c->out.n && !c->over) {
        ssize_t n = send(c->source.fd, c->out.p + c->sent, c->out.n - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            c->over = true;
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    if (c->sent == c->out.n) {
        c->sent = c->out.n = 0;
        if (c->out.room > 1u << 18)
            buf_free(&c->out);
        if (c->closing && c->state == READING && !c->leaving) {
            /* Closed with bytes unread, the kernel would reset the connection, and the client lose the answer (RFC 9112, 9.6). */
            c->leaving = true;
            c->began = loop_now();
            (void)shutdown(c->source.fd, SHUT_WR);
        }
    }
    /* Who does not read its answers is not asked for more: they would be kept, and without a token as well. */
    bool listens = c->closing || c->state != READING || !c->out.n;
    c->source.events = (short)((listens ? POLLIN : 0) | (c->out.n ? POLLOUT : 0));
}

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } known[] = {{200, "OK"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {413, "Content Too Large"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {431, "Request Header Fields Too Large"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].status == status)
            return known[i].reason;
    }
    return "Error";
}

static bool origin_is_good(const struct http_connection *c)
{
    const char *const *more = c->http->server->place.options->http_origins;
    if (!c->head.origin.p || http_origin_is_here(c->head.origin))
        return true;
    for (; more && *more; more++) {
        if (str_is(c->head.origin, *more))
            return true;
    }
    return false;
}

static void head_out(struct http_connection *c, int status, const char *more)
{
    buf_printf(&c->out, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\n%s", status, reason(status), more);
    if (c->new_session && c->session)
        buf_printf(&c->out, "Mcp-Session-Id: %s\r\n", c->session->id);
    if (c->head.origin.p && c->head_bytes && origin_is_good(c)) { /* a page of this machine may read the answer */
        buf_text(&c->out, "Access-Control-Allow-Origin: ");
        buf_str(&c->out, c->head.origin);
        buf_text(&c->out, "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate\r\n");
    }
    if (c->closing)
        buf_text(&c->out, "Connection: close\r\n");
}

/* The request is answered: on to the next. */
static void next_request(struct http_connection *c)
{
    c->state = READING;
    c->stream = NULL;
    c->session = NULL;
    c->new_session = c->body_done = c->continued = false;
    c->told = c->told_bytes = 0;
    buf_free(&c->body);
    if (c->in.n >= c->head_bytes) {
        memmove(c->in.p, c->in.p + c->head_bytes, c->in.n - c->head_bytes);
        c->in.n -= c->head_bytes;
    }
    c->head_bytes = 0;
    c->used = loop_now();
    push_out(c);
}

static void reply(struct http_connection *c, int status, const char *type, struct str body)
{
    char more[160], length[48] = "";
    if (status != 204) /* RFC 9110, 8.6 */
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", body.n);
    snprintf(more, sizeof more, "%s%s%s%s", type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", length);
    head_out(c, status, more);
    if (status == 401)
        buf_text(&c->out, "WWW-Authenticate: Bearer\r\n");
    if (status == 405)
        buf_text(&c->out, "Allow: GET, POST, DELETE, OPTIONS\r\n");
    if (status == 204)
        buf_text(&c->out, "Access-Control-Allow-Methods: GET, POST, DELETE\r\nAccess-Control-Allow-Headers: "
                          "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version\r\n"
                          "Access-Control-Max-Age: " CORS_SECONDS "\r\n");
    buf_text(&c->out, "\r\n");
    buf_str(&c->out, body);
    next_request(c);
}

/* An error of HTTP, told as JSON-RPC tells errors: clients show that. What follows on the connection is not read. */
static void refuse(struct http_connection *c, int status, const char *text)
{
    auto_buf struct buf body = BUF(1u << 16);
    rpc_error(&body, NULL, status == 404 ? -32001 : -32000, text);
    c->closing = true;
    reply(c, status, "application/json", buf_view(&body));
}

/* The answer is a stream. From 2025-11-25 on its first event says only an id to go on from. */
static void events_begin(struct http_connection *c)
{
    const char *version = c->session ? peer_version(c->session->peer) : NULL;
    c->state = STREAMING;
    c->closing = true; /* its length is told by its end */
    head_out(c, 200, "Content-Type: text/event-stream\r\n");
    buf_text(&c->out, "\r\n");
    if (c->stream->tag && same(version, "2025-11-25"))
        buf_printf(&c->out, "id: %llu-%zu\ndata:\n\n", (unsigned long long)c->stream->tag, c->told);
}

/* What of the stream this connection has not been told. */
static void tell_events(struct http_connection *c)
{
    struct event_stream *s = c->stream;
    for (struct str rest = str_skip(buf_view(&s->log), c->told_bytes); rest.n;) {
        struct str message = str_until(&rest, '\n');
        buf_printf(&c->out, "event: message\nid: %llu-%zu\ndata: ", (unsigned long long)s->tag, ++c->told);
        buf_str(&c->out, message);
        buf_text(&c->out, "\n\n");
        c->told_bytes += message.n + 1;
    }
    if (!buf_ok(&c->out))
        c->over = true;
}

/* In one piece; then nothing is kept, for it has no event to go on from. */
static void answer_whole(struct http_connection *c)
{
    struct session *owner = c->session;
    struct event_stream *s = c->stream;
    auto_buf struct buf log = s->log;

    s->log = (struct buf){0};
    c->stream = NULL;
    if (!log.n) { /* cancelled: there is no answer */
        reply(c, 202, NULL, STR(""));
    } else if (s->expected == 1) {
        reply(c, 200, "application/json", (struct str){log.p, log.n - 1});
    } else {
        auto_buf struct buf list = BUF((size_t)MCP_MAX_ANSWER * 2);
        buf_char(&list, '[');
        for (struct str all = {log.p, log.n - 1}; all.n;) {
            buf_str(&list, str_until(&all, '\n'));
            buf_char(&list, all.n ? ',' : ']');
        }
        reply(c, 200, "application/json", buf_view(&list));
    }
    stream_drop(&owner->streams, s);
}

static void settle_connection(struct http_connection *c)
{
    struct event_stream *s = c->stream;
    bool whole = s->tag && s->answered >= s->expected;
    if (c->state == WAITING && whole) {
        answer_whole(c);
        return;
    }
    if (c->state == WAITING && s->log.n && s->events)
        events_begin(c);
    if (c->state != STREAMING)
        return;
    tell_events(c);
    if (whole) {
        c->state = READING; /* `closing` ends it when all is sent */
        s->sent = true;
        c->stream = NULL;
    }
    push_out(c);
}

static struct http_connection *connection_of(const struct http *h, const struct event_stream *s)
{
    for (struct http_connection *c = h->connections; c; c = c->next) {
        if (c->stream == s && !c->over)
            return c;
    }
    return NULL;
}

static void send_message(void *ctx, uint64_t tag, struct str message, bool last)
{
    struct session *owner = ctx;
    struct event_stream *s = stream_find(owner->streams, tag);
    struct http_connection *c = s ? connection_of(owner->http, s) : NULL;
    if (!s)
        return;
    if (last && ++s->answered >= s->expected)
        s->ended = loop_now();
    /* Without events only answers can be told. */
    bool good = !message.n || (!last && !s->events) || stream_add(s, message);
    if (c && !good) {
        c->over = true;
    } else if (c && !c->collecting) {
        /* The oldest of what belongs to no request may have been dropped; all of it was told. */
        if (!tag)
            c->told_bytes = stream_after(s, c->told);
        settle_connection(c);
    }
}

/* ---- sessions */

static void session_free(struct session *s)
{
    struct http *h = s->http;
    for (struct session **at = &h->sessions; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    h->n_sessions--;
    for (struct http_connection *c = h->connections; c; c = c->next) {
        if (c->session == s) {
            c->session = NULL;
            c->stream = NULL;
            c->over = true;
        }
    }
    peer_free(s->peer);
    while (s->streams)
        stream_drop(&s->streams, s->streams);
    free(s);
}

/*
 * Clients often go without DELETE (the official SDK's close() does), so the one that has been idle longest makes place:
 * first one without boxes. Its client, if it still lives, gets 404 and begins again. False: all are at work.
 */
static bool make_place(struct http *h)
{
    struct session *best = NULL;
    for (struct session *s = h->sessions; s; s = s->next) {
        bool open = false;
        for (const struct http_connection *c = h->connections; c; c = c->next)
            open = open || c->session == s;
        if (open || s->over || peer_busy(s->peer))
            continue;
        bool boxes = peer_has_boxes(s->peer);
        if (!best || boxes < peer_has_boxes(best->peer) ||
            (boxes == peer_has_boxes(best->peer) && s->used < best->used))
            best = s;
    }
    if (best)
        session_free(best);
    return best != NULL;
}

static struct session *session_new(struct http *h)
{
    if (h->n_sessions >= MAX_SESSIONS && !make_place(h))
        return NULL;
    struct session *s = calloc(1, sizeof *s);
    if (!s || !random_id(s->id)) {
        free(s);
        return NULL;
    }
    s->http = h;
    s->used = loop_now();
    struct event_stream *general = stream_new(&s->streams, 0, 2 * (size_t)MCP_MAX_MESSAGE);
    s->peer = general ? peer_new(h->server, s->id, send_message, s) : NULL;
    if (!s->peer) {
        stream_drop(&s->streams, general);
        free(s);
        return NULL;
    }
    general->events = true;
    s->next = h->sessions;
    h->sessions = s;
    h->n_sessions++;
    return s;
}

static struct session *session_find(struct http *h, struct str id)
{
    struct session *found = NULL;
    for (struct session *s = h->sessions; s; s = s->next) {
        if (!s->over && same_secret(id, s->id))
            found = s;
    }
    return found;
}

/* ---- requests */

static bool is_initialize(struct str body)
{
    struct rpc_fault f;
    auto_value json_t *root = rpc_read(body, &f);
    return root && same(value_text(root, "method", NULL), "initialize");
}

static void take_post(struct http_connection *c)
{
    struct http *h = c->http;

    if (!c->session) {
        if (!is_initialize(buf_view(&c->body))) {
            refuse(c, 400, "the header Mcp-Session-Id is missing, and this is not an initialize request");
            return;
        }
        c->session = session_new(h);
        c->new_session = true;
        if (!c->session) {
            refuse(c, 503, "too many sessions are open");
            return;
        }
    }
    struct session *s = c->session;
    struct rpc_fault f;
    auto_value json_t *root = peer_read(s->peer, buf_view(&c->body), &f);
    if (!root) {
        auto_buf struct buf body = BUF(1u << 16);
        rpc_error(&body, f.id, f.code, f.text);
        reply(c, 400, "application/json", buf_view(&body));
        return;
    }
    c->stream = stream_new(&s->streams, ++h->tags, (size_t)MCP_MAX_ANSWER * 2);
    if (!c->stream) {
        refuse(c, 503, "out of memory");
        return;
    }
    c->stream->events = c->accepts_stream;
    c->stream->expected = SIZE_MAX; /* until it is known */
    c->state = WAITING;
    c->began = loop_now();
    c->collecting = true;
    size_t expected = peer_take(s->peer, root, c->stream->tag);
    c->collecting = false;
    c->stream->expected = expected;
    if (c->stream->answered >= expected)
        c->stream->ended = loop_now();
    if (c->new_session && !peer_version(s->peer)) { /* it was no good initialize */
        c->new_session = false;
        s->over = true;
    }
    buf_free(&c->body);
    if (expected == 0) {
        stream_drop(&s->streams, c->stream);
        reply(c, 202, NULL, STR(""));
    } else {
        settle_connection(c);
    }
}

/* A stream of what belongs to no request, or the rest of one that broke. */
static void take_get(struct http_connection *c)
{
    uint64_t tag = 0;
    size_t told = 0;

    if (!c->accepts_stream) {
        refuse(c, 406, "the response to GET is text/event-stream only");
        return;
    }
    if (c->head.last_event.p && !stream_id(c->head.last_event, &tag, &told)) {
        refuse(c, 400, "the header Last-Event-ID is not the id of an event");
        return;
    }
    struct event_stream *s = stream_find(c->session->streams, tag);
    if (!s || told > s->dropped + s->log.n) {
        refuse(c, 400, "the events after this Last-Event-ID are no longer kept");
        return;
    }
    struct http_connection *before = connection_of(c->http, s);
    if (before) { /* the client has noticed before we did that it is broken */
        before->stream = NULL;
        before->over = true;
    }
    c->stream = s;
    /* Without an id what was told before does not come again. */
    c->told = c->head.last_event.p ? told : s->tag ? 0 : s->dropped + stream_messages(s);
    c->told_bytes = stream_after(s, c->told);
    events_begin(c);
    settle_connection(c);
}

/* Before the body is read: who may not ask at all is not listened to. True: go on. */
static bool admit(struct http_connection *c)
{
    const struct mcp_http_head *h = &c->head;
    struct str path = h->target, token = h->authorization, scheme = str_until(&token, ' ');

    if (c->http->here && !http_is_here(h->host))
        refuse(c, 403, "the header Host does not name this server");
    else if (!origin_is_good(c))
        refuse(c, 403, "this Origin is not allowed to use the server");
    else if (path = str_until(&path, '?'),
             !str_is(path, "/mcp")) /* clients look for OAuth's documents without a token */
        refuse(c, 404, "not found: the only path is /mcp; the token is the person's, there is no authorization server");
    else if (str_is(h->method, "OPTIONS")) {              /* a browser's preflight has no token */
        c->closing = h->close || h->chunked || h->length; /* a body is not read: it is no request either */
        reply(c, 204, NULL, STR(""));
    } else if (scheme.n != 6 || strncasecmp(scheme.p, "bearer", 6) != 0 || !same_secret(token, c->http->secret))
        refuse(c, 401, "the token is missing or wrong");
    else if (!str_is(h->method, "POST") && !str_is(h->method, "GET") && !str_is(h->method, "DELETE"))
        refuse(c, 405, "only GET, POST, DELETE and OPTIONS");
    else if (h->has_length && h->length > MCP_MAX_MESSAGE)
        refuse(c, 413, "a message has at most 32 MiB");
    else
        return c->known = true;
    return false;
}

static bool is_json(struct str type)
{
    struct str name = str_until(&type, ';');
    while (name.n && name.p[name.n - 1] == ' ')
        name.n--;
    return name.n == 16 && strncasecmp(name.p, "application/json", 16) == 0;
}

/* Head and body are there. */
static void take_http_request(struct http_connection *c)
{
    const struct mcp_http_head *h = &c->head;
    char version[32] = "";

    c->accepts_stream = http_accepts(h->accept, "text/event-stream");
    c->accepts_json = http_accepts(h->accept, "application/json");
    if (h->version.n < sizeof version && h->version.n)
        memcpy(version, h->version.p, h->version.n);
    c->session = h->session.p ? session_find(c->http, h->session) : NULL;
    if (c->session)
        c->session->used = loop_now();
    if (h->close)
        c->closing = true;
    if (h->version.p && !peer_knows_version(version))
        refuse(c, 400, "the header MCP-Protocol-Version names an unsupported version");
    else if (h->session.p && !c->session)
        refuse(c, 404, "unknown session; start a new one with initialize");
    else if (str_is(h->method, "POST") && !is_json(h->content_type))
        refuse(c, 415, "the body must be application/json");
    else if (str_is(h->method, "POST") && !c->accepts_json)
        refuse(c, 406, "the client must accept application/json and text/event-stream");
    else if (str_is(h->method, "POST"))
        take_post(c);
    else if (!c->session)
        refuse(c, 400, "the header Mcp-Session-Id is missing");
    else if (str_is(h->method, "GET"))
        take_get(c);
    else {
        c->session->over = true;
        reply(c, 200, NULL, STR(""));
    }
}

/* True: the body is whole. */
static bool take_body(struct http_connection *c)
{
    struct str rest = str_skip(buf_view(&c->in), c->head_bytes);

    if (c->head.expects && !c->continued && !rest.n && (c->head.chunked || c->head.length)) {
        buf_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
        c->continued = true;
        push_out(c);
    }
    if (!c->head.chunked) {
        if (rest.n < c->head.length)
            return false;
        buf_put(&c->body, rest.p, c->head.length);
        c->head_bytes += c->head.length;
        return true;
    }
    size_t before = rest.n;
    int r = http_chunks(&rest, &c->body, MCP_MAX_MESSAGE);
    if (r < 0) {
        refuse(c, -r, "cannot read the body");
        return false;
    }
    /* What has been taken is cut out behind the head, which the fields still point into. */
    size_t taken = before - rest.n;
    if (taken) /* a large chunk comes in many pieces: the ones that are there are not copied for each */
        memmove(c->in.p + c->head_bytes, c->in.p + c->head_bytes + taken, rest.n);
    c->in.n -= taken;
    return r == 1;
}

/* Takes requests now, and not while an answer is made or sent. */
static bool takes_more(const struct http_connection *c)
{
    return c->state == READING && !c->over && !c->closing && !c->out.n;
}

static void take_requests(struct http_connection *c)
{
    while (takes_more(c) && c->in.n) {
        if (!c->head_bytes) {
            int r = http_head(buf_view(&c->in), &c->head);
            if (r < 0)
                refuse(c, -r, "not a valid HTTP/1.1 request");
            if (r <= 0)
                return;
            c->head_bytes = (size_t)r;
            if (!admit(c))
                continue;
        } else if (http_head(buf_view(&c->in), &c->head) <= 0) { /* the buffer may have moved */
            c->over = true;
            return;
        }
        if (!take_body(c))
            return;
        take_http_request(c);
    }
}

static void take_bytes(struct http_connection *c)
{
    take_requests(c);
    c->behind = c->in.n && !takes_more(c);
}

static void connection_free(struct http_connection *c)
{
    struct http *h = c->http;
    for (struct http_connection **at = &h->connections; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    h->n_connections--;
    loop_remove(&h->server->loop, &c->source);
    (void)close_fd(c->source.fd); /* the calls of its request go on: only the client's word ends them */
    buf_free(&c->in);
    buf_free(&c->body);
    buf_free(&c->out);
    free(c);
}

/* Requests that are not whole yet are kept in memory: all of them together have a limit, too. */
static void bound_unread(struct http_connection *c)
{
    size_t n = 0;
    if (c->over || c->closing || c->in.n + c->body.n < UNREAD_COUNTS)
        return;
    for (const struct http_connection *one = c->http->connections; one; one = one->next)
        n += one->in.n + one->body.n;
    if (n <= MCP_MAX_HELD)
        return;
    refuse(c, 503, "the requests that are being received exceed 256 MiB together; send this one again later");
    buf_free(&c->in);
}

static void connection_ready(struct loop_source *s, short revents)
{
    struct http_connection *c = (struct http_connection *)(void *)s;
    char bytes[READ_STEP];

    if (revents & POLLOUT)
        push_out(c);
    if (revents & (POLLIN | POLLHUP | POLLERR)) {
        ssize_t n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            c->over = true;
        if (n > 0) {
            c->used = loop_now();
            if (!c->closing)
                buf_put(&c->in, bytes, (size_t)n);
            if (!buf_ok(&c->in))
                c->over = true;
            take_bytes(c);
            bound_unread(c);
        }
    }
    if (c->over)
        connection_free(c);
}

/* Whoever opens connections and shows no token takes none from those who have it: the oldest of these makes room. */
static void make_room_for_one(struct http *h)
{
    struct http_connection *oldest = NULL;
    for (struct http_connection *c = h->connections; c; c = c->next) /* the youngest first */
        oldest = c->known || c->over ? oldest : c;
    if (oldest)
        connection_free(oldest);
}

static void listener_ready(struct loop_source *s, short revents)
{
    struct http *h = (struct http *)(void *)s;
    int one = 1;
    (void)revents;
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        s->events = 0; /* it would be ready, and fail, again and again */
        h->accepts_at = loop_now() + STARVED_MS;
    }
    if (fd >= 0 && h->n_connections >= MAX_CONNECTIONS)
        make_room_for_one(h);
    struct http_connection *c = fd >= 0 && h->n_connections < MAX_CONNECTIONS ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        (void)close_fd(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *c = (struct http_connection){.source = {.fd = fd, .events = POLLIN, .ready = connection_ready},
                                  .http = h,
                                  .used = loop_now(),
                                  .in = BUF(2 * (size_t)MCP_MAX_MESSAGE + HTTP_MAX_HEAD),
                                  .body = BUF(MCP_MAX_MESSAGE + 1),
                                  .out = BUF((size_t)MCP_MAX_ANSWER * 3)};
    if (loop_add(&h->server->loop, &c->source) < 0) {
        (void)close(fd);
        free(c);
        return;
    }
    c->next = h->connections;
    h->connections = c;
    h->n_connections++;
}

static bool is_attached(void *ctx, const struct event_stream *s)
{
    return connection_of(ctx, s) != NULL;
}

int http_tick(struct http *h, uint64_t now)
{
    int next = BEAT_MS;

    if (!h->source.events && now >= h->accepts_at)
        h->source.events = POLLIN;
    else if (!h->source.events)
        next = (int)(h->accepts_at - now);
    for (struct session *s = h->sessions, *following; s; s = following) {
        following = s->next;
        if (s->over || (now - s->used > SESSION_MS && !peer_busy(s->peer)))
            session_free(s);
    }
    for (struct session *s = h->sessions; s; s = s->next) {
        streams_prune(&s->streams, now, is_attached, h);
        int left = peer_tick(s->peer, now);
        if (left >= 0 && left < next)
            next = left;
    }
    for (struct http_connection *c = h->connections, *following; c; c = following) {
        following = c->next;
        if (c->behind && takes_more(c))
            take_bytes(c);
        if (c->state == WAITING && c->stream && c->stream->events) {
            int left = (int)(c->began + PATIENCE_MS - now);
            if (left <= 0) {
                events_begin(c);
                push_out(c);
            } else if (left < next) {
                next = left;
            }
        }
        if (c->state == STREAMING && now >= c->used + BEAT_MS) {
            buf_text(&c->out, ":\n\n");
            c->used = now;
            push_out(c);
        }
        if (c->leaving && !c->over) {
            int left = (int)(c->began + LEAVING_MS - now);
            c->over = left <= 0;
            next = left > 0 && left < next ? left : next;
        }
        if (c->over || (c->state == READING && now > c->used + CONNECTION_IDLE_MS))
            connection_free(c);
    }
    return next;
}

/* ---- beginning and end */

/* "ADDR:PORT", ":PORT", "PORT", "[V6]:PORT"; addresses as numbers, or localhost. Port 0: any that is free. */
static bool read_address(const char *text, struct sockaddr_in6 *v6, struct sockaddr_in *v4, bool *ret_six)
{
    const char *colon = strrchr(text, ':');
    struct str host = {text, colon ? (size_t)(colon - text) : 0}, port = str_of(colon ? colon + 1 : text);
    const bool brackets = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    struct host_addr a;
    uint16_t number = 0;

    if (host.n == 0 || str_is(host, "localhost"))
        host = STR("127.0.0.1");
    if (brackets)
        host = (struct str){host.p + 1, host.n - 2};
    if ((!str_is(port, "0") && port_parse(port, &number) < 0) || addr_parse(host, &a) < 0 ||
        brackets != (memchr(host.p, ':', host.n) != NULL))
        return false;
    *ret_six = a.v6;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(number)};
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(number)};
    memcpy(&v4->sin_addr, a.b, sizeof v4->sin_addr);
    memcpy(&v6->sin6_addr, a.b, sizeof v6->sin6_addr);
    return true;
}

static int listen_at(struct http *h, const char *text, char *why, size_t room)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    int one = 1;
    bool six;

    if (!read_address(text, &v6, &v4, &six)) {
        snprintf(why, room, "--http %s: not an ADDRESS:PORT (127.0.0.1:8931, [::1]:8931, 8931)", text);
        return -EINVAL;
    }
    const struct sockaddr *address =
        six ? (const struct sockaddr *)(const void *)&v6 : (const struct sockaddr *)(const void *)&v4;
    socklen_t n = six ? sizeof v6 : sizeof v4;
    h->here = six ? IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) : ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    h->source.fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->source.fd >= 0)
        (void)setsockopt(h->source.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (h->source.fd < 0 || bind(h->source.fd, address, n) < 0 || listen(h->source.fd, 128) < 0) {
        const int no = errno;
        const char *remedy = no == EACCES          ? "; ports below 1024 are for root: name a higher one"
                             : no == EADDRINUSE    ? "; name another port"
                             : no == EADDRNOTAVAIL ? "; name an address of this machine (ip address)"
                                                   : "";
        snprintf(why, room, "--http %s: %s%s", text, strerror(no), remedy);
        return -no;
    }
    return 0;
}

/* 0, or -errno: nobody would know where. */
static int say_where(const struct http *h)
{
    char line[512], host[INET6_ADDRSTRLEN] = "";
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    unsigned port = 0;

    if (getsockname(h->source.fd, (struct sockaddr *)&at, &n) < 0)
        return -errno;
    bool six = at.ss_family == AF_INET6;
    if (six) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&at;
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&at;
        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    }
    int length = snprintf(line, sizeof line, "pinfold: mcp: listening at http://%s%s%s:%u/mcp%s%s%s\n", six ? "[" : "",
                          host, six ? "]" : "", port, h->token[0] ? ", token " : "", h->token,
                          h->here ? "" : "; reachable from other machines, and not encrypted");
    (void)!write(2, line, (size_t)length);
    return 0;
}

struct http *http_new(struct server *server, char *why, size_t room)
{
    const struct mcp_options *o = server->place.options;
    struct http *h = calloc(1, sizeof *h);

    snprintf(why, room, "cannot start: Cannot allocate memory");
    if (!h)
        return NULL;
    *h = (struct http){
        .source = {.fd = -1, .events = POLLIN, .ready = listener_ready}, .server = server, .secret = o->http_token};
    if (listen_at(h, o->http, why, room) < 0)
        return http_free(h);
    if (!h->secret && random_id(h->token))
        h->secret = h->token;
    int r = h->secret ? loop_add(&server->loop, &h->source) : -EIO;
    if (r == 0)
        r = say_where(h);
    if (r < 0) {
        snprintf(why, room, "--http %s: %s", o->http, strerror(-r));
        return http_free(h);
    }
    return h;
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    while (h->connections) {
        push_out(h->connections);
        connection_free(h->connections);
    }
    while (h->sessions)
        session_free(h->sessions);
    loop_remove(&h->server->loop, &h->source);
    (void)close_fd(h->source.fd);
    free(h);
    return NULL;
}
