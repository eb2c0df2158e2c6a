/*
 * The loop of the agent's filter. Each client has a connection to the agent of its own, because the agent keeps what a connection
 * is bound to. One request at a time: it is read whole, decided, passed on; the answer is read whole, and passed back.
 */
#include "ssh/filter.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/fd.h"
#include "sys/poll.h"

enum { MAX_CLIENTS = 16, MAX_KEPT = 32, HEAD = 4, MAX_REFUSALS = 256, SHOWN_USER = 32, SHOWN_HOST = 104 };
#define ROOM (HEAD + SSH_MAX_MESSAGE)

enum client_state {
    CLIENT_FREE,
    CLIENT_WAITS, /* for a connection to the agent */
    CLIENT_READ,  /* a request comes from the box */
    CLIENT_ASKED, /* a person is asked */
    CLIENT_SEND,  /* the request goes to the agent */
    CLIENT_AGENT, /* the answer comes */
    CLIENT_REPLY  /* the answer goes to the box */
};
struct client {
    enum client_state state;
    int box, agent; /* agent -1: there is none */
    uint32_t id;
    char *room; /* the message that is under way, with its length in front */
    size_t at, n;
    enum ssh_what what; /* of the request that is under way */
    struct ssh_bound bound;
    struct ssh_request bind; /* SSH_BIND: in `bind_room` */
    char bind_room[SSH_MAX_SESSION + SSH_MAX_HOST_KEY];
    struct ssh_event said; /* of a signature that is under way */
    const char *host;      /* and where, of the rules; NULL: git's */
    size_t key;
};
struct filtering {
    const struct ssh_filter *f;
    struct client clients[MAX_CLIENTS];
    uint32_t ids;
    unsigned refusals; /* told so far in this second */
    int64_t second;
    struct kept_answer {
        char target[SSH_EVENT_TEXT];
        const char *host; /* a text may be cut */
        size_t key;
        bool allow;
    } kept[MAX_KEPT];
    size_t n_kept;
};

static void tell_event(const struct filtering *s, const struct ssh_event *v)
{
    (void)send(s->f->events, v, sizeof *v, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop_client(struct client *c)
{
    sys_drop(&c->box);
    sys_drop(&c->agent);
    c->state = CLIENT_FREE;
}

/* Printable ASCII of what the box may have chosen, at the end of `text`. */
static void add_text(char text[SSH_EVENT_TEXT], struct str s, size_t most)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < s.n && i < most && n + 1 < SSH_EVENT_TEXT; i++)
        text[n++] = s.p[i] > ' ' && s.p[i] < 127 ? s.p[i] : '?';
    text[n] = 0;
}

static void describe(const struct filtering *s, const struct client *c, const struct ssh_request *r,
                     const struct ssh_decision *d, struct ssh_event *v)
{
    static const char *const actions[] = {[SSH_REFUSED] = "request", [SSH_LIST] = "list",   [SSH_LOGIN] = "login",
                                          [SSH_GIT] = "sign",        [SSH_QUERY] = "query", [SSH_BIND] = "bind"};
    *v = (struct ssh_event){.kind = d->pass ? SSH_EVENT_SIGNED : SSH_EVENT_REFUSED, .id = c->id};
    snprintf(v->action, sizeof v->action, "%s", actions[r->what]);
    snprintf(v->why, sizeof v->why, "%s", d->why ? d->why : "");
    if (r->what == SSH_LOGIN) {
        /* The box chooses the name: a long one must not push the host out of sight. */
        add_text(v->target, r->user, SHOWN_USER);
        add_text(v->target, STR("..."), r->user.n > SHOWN_USER ? 3 : 0);
        add_text(v->target, STR("@"), 1);
        add_text(v->target, str_of(d->host ? d->host : "unknown"), SHOWN_HOST);
    } else if (r->what == SSH_GIT) {
        add_text(v->target, STR("git"), 3);
    } else {
        add_text(v->target, STR("ssh-agent"), 9);
    }
    if (d->pass && (r->what == SSH_LOGIN || r->what == SSH_GIT))
        snprintf(v->why, sizeof v->why, "%s", s->f->rules.keys[d->key].name);
}

/* A box may be refused more often than anybody wants to read: what goes beyond is counted by nobody. */
static void tell_refusal(struct filtering *s, const struct ssh_event *v)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != s->second) {
        s->second = now.tv_sec;
        s->refusals = 0;
    }
    if (s->refusals++ < MAX_REFUSALS)
        tell_event(s, v);
}

static void put_head(struct client *c, size_t n)
{
    for (int i = 0; i < HEAD; i++)
        c->room[i] = (char)(n >> (24 - 8 * i));
    c->at = 0;
    c->n = HEAD + n;
}

static void reply_type(struct client *c, enum ssh_type type)
{
    c->room[HEAD] = (char)type;
    put_head(c, 1);
    c->state = CLIENT_REPLY;
}

static void reply_no(struct client *c, bool extension)
{
    reply_type(c, extension ? SSH_TYPE_EXTENSION_FAILURE : SSH_TYPE_FAILURE);
}

static void keep_bind(struct client *c, const struct ssh_request *r)
{
    memcpy(c->bind_room, r->session.p, r->session.n);
    memcpy(c->bind_room + SSH_MAX_SESSION, r->host_key.p, r->host_key.n);
    c->bind = *r;
    c->bind.session.p = c->bind_room;
    c->bind.host_key.p = c->bind_room + SSH_MAX_SESSION;
}

/* What somebody has answered for the rest of the run; NULL: nobody. */
static const struct kept_answer *answer_kept(const struct filtering *s, const struct client *c, const char *target)
{
    for (size_t i = 0; i < s->n_kept; i++) {
        if (s->kept[i].host == c->host && s->kept[i].key == c->key && same(s->kept[i].target, target))
            return &s->kept[i];
    }
    return NULL;
}

static void refuse_by_person(struct filtering *s, struct client *c)
{
    c->said.kind = SSH_EVENT_REFUSED;
    snprintf(c->said.why, sizeof c->said.why, "the answer was no");
    tell_refusal(s, &c->said);
    reply_no(c, false);
}

static void ask_person(struct filtering *s, struct client *c)
{
    struct ssh_event v = c->said;
    snprintf(v.target, sizeof v.target, "%.*s with %.48s", SHOWN_USER + 4 + SHOWN_HOST, c->said.target, c->said.why);
    memcpy(c->said.target, v.target, sizeof v.target);
    const struct kept_answer *kept = answer_kept(s, c, v.target);
    if (kept && kept->allow) {
        c->state = CLIENT_SEND;
    } else if (kept) {
        refuse_by_person(s, c);
    } else {
        v.kind = SSH_EVENT_ASK;
        c->state = CLIENT_ASKED;
        if (send(s->f->events, &v, sizeof v, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof v)
            refuse_by_person(s, c);
    }
}

/* A whole request is there. */
static void take_request(struct filtering *s, struct client *c)
{
    const struct str message = {c->room + HEAD, c->n - HEAD};
    struct ssh_request r;
    struct ssh_decision d;
    ssh_request_parse(message, &r);
    ssh_decide(&s->f->rules, &c->bound, &r, &d);
    if (d.pass && c->agent < 0) {
        d.pass = false;
        d.why = "the agent does not answer";
    }
    c->what = r.what;
    c->host = r.what == SSH_LOGIN ? d.host : NULL;
    c->key = d.key;
    describe(s, c, &r, &d, &c->said);
    if (!d.pass) {
        tell_refusal(s, &c->said);
        reply_no(c, ssh_message_type(message) == SSH_TYPE_EXTENSION);
        return;
    }
    if (r.what == SSH_BIND)
        keep_bind(c, &r);
    c->at = 0;
    if (s->f->rules.confirm && (r.what == SSH_LOGIN || r.what == SSH_GIT))
        ask_person(s, c);
    else
        c->state = CLIENT_SEND;
}

static bool is_named(const void *ctx, struct str key)
{
    size_t i;
    return ssh_key_named(ctx, key, &i);
}

/* A whole answer of the agent's is there: only what answers this request goes on. */
static void take_answer(struct filtering *s, struct client *c)
{
    const struct str message = {c->room + HEAD, c->n - HEAD};
    const unsigned type = ssh_message_type(message);
    size_t n = message.n;
    bool fits = false;
    switch (c->what) {
    case SSH_LIST:
        n = ssh_identities_keep(c->room + HEAD, message.n, is_named, &s->f->rules);
        fits = n != 0;
        break;
    case SSH_LOGIN:
    case SSH_GIT:
        fits = type == SSH_TYPE_SIGNATURE;
        if (fits && send(s->f->events, &c->said, sizeof c->said, MSG_NOSIGNAL) != (ssize_t)sizeof c->said)
            _exit(1); /* what is not logged is not handed out */
        break;
    case SSH_BIND:
        fits = type == SSH_TYPE_SUCCESS && n == 1;
        if (fits)
            ssh_bound_add(&c->bound, &c->bind);
        break;
    case SSH_QUERY:
        fits = type == SSH_TYPE_SUCCESS || type == SSH_TYPE_EXTENSION_ANSWER;
        break;
    case SSH_REFUSED:
        break;
    }
    put_head(c, n);
    c->state = CLIENT_REPLY;
    if (!fits)
        reply_no(c, c->what == SSH_BIND || c->what == SSH_QUERY);
}

/* Reads one message; 1: it is whole, 0: more will come, -1: end, -2: a length that no message has. */
static int read_message(struct client *c, int fd)
{
    for (;;) {
        size_t want = HEAD;
        if (c->n >= HEAD) {
            struct str head = {c->room, HEAD};
            uint32_t n = 0;
            (void)ssh_take_number(&head, &n);
            if (n == 0 || n > SSH_MAX_MESSAGE)
                return -2;
            want += n;
        }
        if (c->n == want)
            return 1;
        ssize_t got = recv(fd, c->room + c->n, want - c->n, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        c->n += (size_t)got;
    }
}

/* 1: all is written. */
static int write_message(struct client *c, int fd)
{
    while (c->at < c->n) {
        ssize_t put = send(fd, c->room + c->at, c->n - c->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put <= 0)
            return put < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        c->at += (size_t)put;
    }
    return 1;
}

static void oversized(struct filtering *s, const struct client *c)
{
    struct ssh_event v = {.kind = SSH_EVENT_REFUSED, .id = c->id, .action = "request", .target = "ssh-agent"};
    snprintf(v.why, sizeof v.why, "a request that is empty or too large");
    tell_refusal(s, &v);
}

/* One step; false if it has to wait. */
static bool step_client(struct filtering *s, struct client *c)
{
    int r;
    switch (c->state) {
    case CLIENT_READ:
        r = read_message(c, c->box);
        if (r > 0)
            take_request(s, c);
        else if (r == -2)
            oversized(s, c);
        break;
    case CLIENT_SEND:
        r = write_message(c, c->agent);
        if (r > 0) {
            c->state = CLIENT_AGENT;
            c->n = 0;
        }
        break;
    case CLIENT_AGENT:
        r = read_message(c, c->agent);
        if (r > 0)
            take_answer(s, c);
        break;
    case CLIENT_REPLY:
        r = write_message(c, c->box);
        if (r > 0) {
            c->state = CLIENT_READ;
            c->n = 0;
        }
        break;
    default:
        return false;
    }
    if (r < 0)
        drop_client(c);
    return r > 0;
}

static void accept_client(struct filtering *s)
{
    struct client *c = NULL;
    for (size_t i = 0; i < MAX_CLIENTS && !c; i++)
        c = s->clients[i].state == CLIENT_FREE ? &s->clients[i] : NULL;
    int fd = c ? accept4(s->f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd < 0)
        return;
    char *room = c->room;
    *c = (struct client){.state = CLIENT_WAITS, .box = fd, .agent = -1, .id = ++s->ids, .room = room};
    const struct ssh_event v = {.kind = SSH_EVENT_CONNECT, .id = c->id};
    if (send(s->f->events, &v, sizeof v, MSG_NOSIGNAL) != (ssize_t)sizeof v)
        drop_client(c);
}

static struct client *client_of(struct filtering *s, uint32_t id, enum client_state state)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        if (s->clients[i].state == state && s->clients[i].id == id)
            return &s->clients[i];
    }
    return NULL;
}

static void take_order(struct filtering *s)
{
    struct ssh_order o;
    own_fd int fd = -1;
    long n = sys_recv_fd(s->f->events, &o, sizeof o, &fd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0)
        _exit(0); /* the supervisor is gone, and with it the box */
    if (n != (long)sizeof o)
        return;
    struct client *c = client_of(s, o.id, o.kind == SSH_ORDER_AGENT ? CLIENT_WAITS : CLIENT_ASKED);
    if (c && o.kind == SSH_ORDER_AGENT) {
        c->agent = sys_taken(&fd);
        c->state = CLIENT_READ;
        return;
    }
    if (!c || o.kind != SSH_ORDER_ANSWER)
        return;
    if (o.run && s->n_kept < MAX_KEPT) {
        struct kept_answer *kept = &s->kept[s->n_kept++];
        memcpy(kept->target, c->said.target, sizeof kept->target);
        kept->host = c->host;
        kept->key = c->key;
        kept->allow = o.allow != 0;
    }
    if (o.allow)
        c->state = CLIENT_SEND;
    else
        refuse_by_person(s, c);
}

/* What this client waits for. */
static struct pollfd waits(const struct client *c)
{
    switch (c->state) {
    case CLIENT_READ:
        return (struct pollfd){.fd = c->box, .events = POLLIN};
    case CLIENT_SEND:
        return (struct pollfd){.fd = c->agent, .events = POLLOUT};
    case CLIENT_AGENT:
        return (struct pollfd){.fd = c->agent, .events = POLLIN};
    case CLIENT_REPLY:
        return (struct pollfd){.fd = c->box, .events = POLLOUT};
    default:
        return (struct pollfd){.fd = -1};
    }
}

_Noreturn void ssh_filter_serve(const struct ssh_filter *f)
{
    static struct filtering s; /* of this process */
    s.f = f;
    char *rooms = mmap(NULL, (size_t)MAX_CLIENTS * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rooms == MAP_FAILED || ssh_lock() < 0)
        _exit(1);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        s.clients[i] = (struct client){.box = -1, .agent = -1, .room = rooms + i * ROOM};
    for (;;) {
        struct pollfd p[MAX_CLIENTS + 2];
        bool room = false;
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
            p[i] = waits(&s.clients[i]);
            room |= s.clients[i].state == CLIENT_FREE;
        }
        p[MAX_CLIENTS] = (struct pollfd){.fd = f->events, .events = POLLIN};
        p[MAX_CLIENTS + 1] = (struct pollfd){.fd = room ? f->listener : -1, .events = POLLIN};
        int r = sys_poll(p, MAX_CLIENTS + 2, NULL);
        if (r < 0 && r != -EINTR)
            _exit(1);
        if (p[MAX_CLIENTS].revents)
            take_order(&s);
        if (p[MAX_CLIENTS + 1].revents)
            accept_client(&s);
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
            if (!p[i].revents)
                continue;
            while (step_client(&s, &s.clients[i]))
                ;
        }
    }
}
