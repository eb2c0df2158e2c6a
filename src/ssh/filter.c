/*
 * The ssh-agent's protocol of its filter: a request is read whole, decided, passed on; the answer is read whole, and passed back.
 * The loop around it is in clients.c.
 */
#include "ssh/filter.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "ssh/clients.h"

enum { CLIENTS = 16, MAX_KEPT = 32, HEAD = 4, SHOWN_USER = 32, SHOWN_HOST = 104 };
#define ROOM (HEAD + SSH_MAX_MESSAGE)

struct client {
    struct key_client base; /* `room`: the message that is under way, with its length in front */
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
    struct key_filter base;
    const struct ssh_rules *rules;
    struct kept_answer {
        char target[SSH_EVENT_TEXT];
        const char *host; /* a text may be cut */
        size_t key;
        bool allow;
    } kept[MAX_KEPT];
    size_t n_kept;
};

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
    static const char actions[][8] = {[SSH_REFUSED] = "request", [SSH_LIST] = "list",   [SSH_LOGIN] = "login",
                                      [SSH_GIT] = "sign",        [SSH_QUERY] = "query", [SSH_BIND] = "bind"};
    *v = (struct ssh_event){.kind = d->pass ? SSH_EVENT_SIGNED : SSH_EVENT_REFUSED, .id = c->base.id};
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
        snprintf(v->why, sizeof v->why, "%s", s->rules->keys[d->key].name);
}

static void put_head(struct client *c, size_t n)
{
    for (int i = 0; i < HEAD; i++)
        c->base.room[i] = (char)(n >> (24 - 8 * i));
    c->at = 0;
    c->n = HEAD + n;
}

static void reply_type(struct client *c, enum ssh_type type)
{
    c->base.room[HEAD] = (char)type;
    put_head(c, 1);
    c->base.state = CLIENT_REPLY;
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
    key_filter_refused(&s->base, &c->said);
    reply_no(c, false);
}

static void ask_person(struct filtering *s, struct client *c)
{
    struct ssh_event v = c->said;
    snprintf(v.target, sizeof v.target, "%.*s with %.48s", SHOWN_USER + 4 + SHOWN_HOST, c->said.target, c->said.why);
    memcpy(c->said.target, v.target, sizeof v.target);
    const struct kept_answer *kept = answer_kept(s, c, v.target);
    if (kept && kept->allow) {
        c->base.state = CLIENT_SEND;
    } else if (kept) {
        refuse_by_person(s, c);
    } else {
        v.kind = SSH_EVENT_ASK;
        if (!key_filter_asks(&s->base, &c->base, &v))
            refuse_by_person(s, c);
    }
}

/* A whole request is there. */
static void take_request(struct filtering *s, struct client *c)
{
    const struct str message = {c->base.room + HEAD, c->n - HEAD};
    struct ssh_request r;
    struct ssh_decision d;
    ssh_request_parse(message, &r);
    ssh_decide(s->rules, &c->bound, &r, &d);
    if (d.pass && c->base.agent < 0) {
        d.pass = false;
        d.why = "the agent does not answer";
    }
    c->what = r.what;
    c->host = r.what == SSH_LOGIN ? d.host : NULL;
    c->key = d.key;
    describe(s, c, &r, &d, &c->said);
    if (!d.pass) {
        key_filter_refused(&s->base, &c->said);
        reply_no(c, ssh_message_type(message) == SSH_TYPE_EXTENSION);
        return;
    }
    if (r.what == SSH_BIND)
        keep_bind(c, &r);
    c->at = 0;
    if (s->rules->confirm && (r.what == SSH_LOGIN || r.what == SSH_GIT))
        ask_person(s, c);
    else
        c->base.state = CLIENT_SEND;
}

static bool is_named(const void *ctx, struct str key)
{
    size_t i;
    return ssh_key_named(ctx, key, &i);
}

/* A whole answer of the agent's is there: only what answers this request goes on. */
static void take_answer(struct filtering *s, struct client *c)
{
    const struct str message = {c->base.room + HEAD, c->n - HEAD};
    const unsigned type = ssh_message_type(message);
    size_t n = message.n;
    bool fits = false;
    switch (c->what) {
    case SSH_LIST:
        n = ssh_identities_keep(c->base.room + HEAD, message.n, is_named, s->rules);
        fits = n != 0;
        break;
    case SSH_LOGIN:
    case SSH_GIT:
        fits = type == SSH_TYPE_SIGNATURE;
        if (fits)
            key_filter_signed(&s->base, &c->said);
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
    c->base.state = CLIENT_REPLY;
    if (!fits)
        reply_no(c, c->what == SSH_BIND || c->what == SSH_QUERY);
}

/* Reads one message; 1: it is whole, 0: more will come, -1: end, -2: a length that no message has. */
static int read_message(struct client *c, int fd)
{
    for (;;) {
        size_t want = HEAD;
        if (c->n >= HEAD) {
            struct str head = {c->base.room, HEAD};
            uint32_t n = 0;
            (void)ssh_take_number(&head, &n);
            if (n == 0 || n > SSH_MAX_MESSAGE)
                return -2;
            want += n;
        }
        if (c->n == want)
            return 1;
        ssize_t got = recv(fd, c->base.room + c->n, want - c->n, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        c->n += (size_t)got;
    }
}

static void oversized(struct filtering *s, const struct client *c)
{
    struct ssh_event v = {.kind = SSH_EVENT_REFUSED, .id = c->base.id, .action = "request", .target = "ssh-agent"};
    snprintf(v.why, sizeof v.why, "a request that is empty or too large");
    key_filter_refused(&s->base, &v);
}

static int step_message(struct key_filter *f, struct key_client *client)
{
    struct filtering *s = (struct filtering *)(void *)f;
    struct client *c = (struct client *)(void *)client;
    const bool to_agent = c->base.state == CLIENT_SEND;
    int r;
    if (to_agent || c->base.state == CLIENT_REPLY) {
        r = key_client_write(to_agent ? c->base.agent : c->base.box, c->base.room, c->n, &c->at);
        if (r > 0) {
            c->base.state = to_agent ? CLIENT_AGENT : CLIENT_READ;
            c->n = 0;
        }
        return r;
    }
    const bool from_box = c->base.state == CLIENT_READ;
    r = read_message(c, from_box ? c->base.box : c->base.agent);
    if (r > 0 && from_box)
        take_request(s, c);
    else if (r > 0)
        take_answer(s, c);
    else if (r == -2 && from_box)
        oversized(s, c);
    return r;
}

static void agent_given(struct key_filter *f, struct key_client *client)
{
    (void)f;
    client->state = CLIENT_READ;
}

static void person_answered(struct key_filter *f, struct key_client *client, bool allow, bool run)
{
    struct filtering *s = (struct filtering *)(void *)f;
    struct client *c = (struct client *)(void *)client;
    if (run && s->n_kept < MAX_KEPT) {
        struct kept_answer *kept = &s->kept[s->n_kept++];
        memcpy(kept->target, c->said.target, sizeof kept->target);
        kept->host = c->host;
        kept->key = c->key;
        kept->allow = allow;
    }
    if (allow)
        client->state = CLIENT_SEND;
    else
        refuse_by_person(s, c);
}

static const struct key_protocol ssh_protocol = {.clients = CLIENTS,
                                                 .client_bytes = sizeof(struct client),
                                                 .room_bytes = ROOM,
                                                 .given = agent_given,
                                                 .answered = person_answered,
                                                 .step = step_message};

_Noreturn void ssh_filter_serve(const struct ssh_filter *f)
{
    static struct filtering s; /* of this process */
    s.base = (struct key_filter){.protocol = &ssh_protocol, .listener = f->listener, .events = f->events};
    s.rules = &f->rules;
    key_filter_serve(&s.base);
}
