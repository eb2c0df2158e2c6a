/*
 * The gpg-agent's protocol of its filter. One line at a time: it is read, decided, written anew for the agent; of the answer only what
 * answers this line goes back. The loop around it is in ssh/clients.c.
 */
#include "gpg/gpg_filter.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "ssh/clients.h"

enum { GPG_CLIENTS = 8, LINE_ROOM = GPG_MAX_LINE + 2, REPLY_ROOM = 32 << 10, STEPS = 12, STEP_ROOM = 300 };

struct gpg_client {
    struct key_client base; /* `room`: what goes to the box, REPLY_ROOM */
    char line[LINE_ROOM];   /* from the box */
    size_t line_n;
    char from[LINE_ROOM]; /* from the agent */
    size_t from_n;
    char out[STEP_ROOM]; /* to the agent */
    size_t out_n, out_at;
    char steps[STEPS][STEP_ROOM]; /* lines that still go there; only the answer to the last one goes back */
    size_t n_steps, at_step;
    size_t reply_n, reply_at;
    enum gpg_what what;
    bool greets;         /* the agent's first line and the options; then the box gets its own first line */
    bool chosen, hashed; /* of the next signature */
    size_t key, about;
};
struct gpg_serving {
    struct key_filter base;
    const struct gpg_rules *rules;
    bool kept[GPG_MAX_KEYS], allowed[GPG_MAX_KEYS]; /* answers for the rest of the run, and which */
};

static struct ssh_event event_of(const struct gpg_serving *s, const struct gpg_client *c, enum ssh_event_kind kind,
                                 const char *action, const char *why)
{
    struct ssh_event v = {.kind = kind, .id = c->base.id};
    const bool sign = c->what == GPG_SIGN || c->what == GPG_KEY;
    snprintf(v.action, sizeof v.action, "%s", action);
    snprintf(v.target, sizeof v.target, "%.120s", sign && c->chosen ? s->rules->keys[c->key].name : "gpg-agent");
    snprintf(v.why, sizeof v.why, "%s", why);
    return v;
}

static void gpg_tell(struct gpg_serving *s, const struct gpg_client *c, const char *action, const char *why)
{
    const struct ssh_event v = event_of(s, c, SSH_EVENT_REFUSED, action, why);
    key_filter_refused(&s->base, &v);
}

/* ---- what goes to the box ---- */

static void put_reply(struct gpg_client *c, const char *text, size_t n)
{
    if (c->reply_n + n > REPLY_ROOM) {
        key_client_drop(&c->base);
        return;
    }
    memcpy(c->base.room + c->reply_n, text, n);
    c->reply_n += n;
}

static void reply_with(struct gpg_client *c, const char *text)
{
    c->reply_n = c->reply_at = 0;
    put_reply(c, text, strlen(text));
    if (c->base.state != CLIENT_FREE)
        c->base.state = CLIENT_REPLY;
}

static void reply_refused(struct gpg_serving *s, struct gpg_client *c, const char *action, const char *why,
                          const char *answer)
{
    gpg_tell(s, c, action, why);
    reply_with(c, answer);
}

/* ---- what goes to the agent ---- */

static void add_step(struct gpg_client *c, const char *line)
{
    if (c->n_steps < STEPS)
        snprintf(c->steps[c->n_steps++], STEP_ROOM, "%.*s", STEP_ROOM - 1, line);
}

static void next_step(struct gpg_client *c)
{
    c->out_n = (size_t)snprintf(c->out, sizeof c->out, "%s", c->steps[c->at_step++]);
    c->out_at = 0;
    c->from_n = 0;
    c->base.state = CLIENT_SEND;
}

static void begin_steps(struct gpg_client *c)
{
    c->n_steps = c->at_step = 0;
    c->reply_n = c->reply_at = 0;
}

static void pass_line(struct gpg_client *c, const char *line)
{
    begin_steps(c);
    add_step(c, line);
    next_step(c);
}

/* What the agent's dialogue says is of pinfold's making; the box has no word in it. */
static void sign(struct gpg_serving *s, struct gpg_client *c)
{
    char text[STEP_ROOM], *p = text;
    const char *name = s->rules->keys[c->key].name;
    p += snprintf(text, sizeof text, "SETKEYDESC A+box+of+pinfold+signs+with+the+key%%0A");
    for (; *name && p - text < STEP_ROOM - 8; name++) {
        const bool plain = (*name >= '0' && *name <= '9') || ((*name | 32) >= 'a' && (*name | 32) <= 'z');
        p += snprintf(p, 4, plain ? "%c" : "%%%02X", (unsigned char)*name);
    }
    snprintf(p, 2, "\n");
    begin_steps(c);
    add_step(c, text);
    add_step(c, "PKSIGN\n");
    next_step(c);
}

static void sign_refused(struct gpg_serving *s, struct gpg_client *c)
{
    c->chosen = c->hashed = false;
    reply_refused(s, c, "sign", "the answer was no", GPG_ERR_LINE_FORBIDDEN);
}

static void ask_to_sign(struct gpg_serving *s, struct gpg_client *c)
{
    if (s->kept[c->key]) {
        if (s->allowed[c->key])
            sign(s, c);
        else
            sign_refused(s, c);
        return;
    }
    const struct ssh_event v = event_of(s, c, SSH_EVENT_ASK, "sign with", "");
    if (!key_filter_asks(&s->base, &c->base, &v))
        sign_refused(s, c);
}

/* ---- a line of the box's ---- */

static void list_keys(struct gpg_serving *s, struct gpg_client *c)
{
    char room[LINE_ROOM];
    size_t n = gpg_list_line(s->rules, room, sizeof room);
    c->reply_n = c->reply_at = 0;
    put_reply(c, room, n);
    put_reply(c, "OK\n", 3);
    if (c->base.state != CLIENT_FREE)
        c->base.state = CLIENT_REPLY;
}

static void take_known(struct gpg_serving *s, struct gpg_client *c, const struct gpg_request *r)
{
    size_t i = 0;
    switch (r->what) {
    case GPG_HAVE:
        reply_with(c, gpg_key_named(s->rules, r->grips, &i) ? "OK\n" : GPG_ERR_LINE_NO_KEY);
        break;
    case GPG_ABOUT: /* of others gpg learns that they are not there, which is no refusal worth a word */
        if (gpg_key_named(s->rules, r->grips, &c->about))
            pass_line(c, r->line);
        else
            reply_with(c, GPG_ERR_LINE_NO_KEY);
        break;
    case GPG_KEY:
        c->chosen = gpg_key_named(s->rules, r->grips, &c->key);
        c->hashed = false;
        if (c->chosen)
            pass_line(c, r->line);
        else
            reply_refused(s, c, "sign", GPG_WHY_KEY, GPG_ERR_LINE_NO_KEY);
        break;
    case GPG_HASH:
        c->hashed = true;
        pass_line(c, r->line);
        break;
    case GPG_SIGN:
        if (!c->chosen || !c->hashed)
            reply_refused(s, c, "sign", "a signature without a key or a hash", GPG_ERR_LINE_FORBIDDEN);
        else if (s->rules->confirm)
            ask_to_sign(s, c);
        else
            sign(s, c);
        break;
    default:
        break;
    }
}

static void take_line(struct gpg_serving *s, struct gpg_client *c, struct str line)
{
    struct gpg_request r;
    char action[16];
    gpg_request_parse(line, &r);
    c->what = r.what;
    switch (r.what) {
    case GPG_REFUSED:
        snprintf(action, sizeof action, "%.*s", (int)r.name.n, r.name.p);
        reply_refused(s, c, action, r.why, GPG_ERR_LINE_FORBIDDEN);
        break;
    case GPG_FINE:
        reply_with(c, "OK\n");
        break;
    case GPG_LIST:
        list_keys(s, c);
        break;
    case GPG_RESET:
        c->chosen = c->hashed = false;
        pass_line(c, "RESET\n");
        break;
    case GPG_PASS:
        pass_line(c, r.line);
        break;
    case GPG_END:
        key_client_drop(&c->base);
        break;
    default:
        take_known(s, c, &r);
    }
}

/* ---- a line of the agent's ---- */

static void answer_ended(struct gpg_serving *s, struct gpg_client *c, struct str line, bool good)
{
    if (c->greets || (good && c->at_step < c->n_steps)) {
        /* An option that this version does not know is no reason to end. */
        if (c->at_step < c->n_steps) {
            c->reply_n = 0;
            next_step(c);
            return;
        }
        c->greets = false;
        reply_with(c, good || c->n_steps ? "OK pinfold\n" : GPG_ERR_LINE_FORBIDDEN);
        return;
    }
    if (c->what == GPG_SIGN) {
        const struct ssh_event v = event_of(s, c, SSH_EVENT_SIGNED, "sign", s->rules->keys[c->key].grip);
        if (good)
            key_filter_signed(&s->base, &v);
        c->chosen = c->hashed = false;
    }
    if (!good)
        c->reply_n = 0;
    put_reply(c, line.p, line.n);
    put_reply(c, "\n", 1);
    if (c->base.state != CLIENT_FREE)
        c->base.state = CLIENT_REPLY;
}

static void take_agents_line(struct gpg_serving *s, struct gpg_client *c, struct str line)
{
    const enum gpg_answer kind = gpg_answer_parse(line);
    const bool data = (c->what == GPG_SIGN || c->what == GPG_ABOUT || c->what == GPG_PASS) && !c->greets;
    switch (kind) {
    case GPG_ANSWER_OK:
    case GPG_ANSWER_ERR:
        answer_ended(s, c, line, kind == GPG_ANSWER_OK);
        return;
    case GPG_ANSWER_DATA:
        if (!data)
            break;
        put_reply(c, line.p, line.n);
        put_reply(c, "\n", 1);
        return;
    case GPG_ANSWER_STATUS: /* of the key that was asked about; progress and hints are dropped */
        if (c->what != GPG_ABOUT || !str_starts(line, STR("S KEYINFO ")))
            return;
        put_reply(c, line.p, line.n);
        put_reply(c, "\n", 1);
        return;
    case GPG_ANSWER_ASKS: /* that a dialogue is shown is fine; nothing else is answered for a box */
        c->out_n = (size_t)snprintf(c->out, sizeof c->out, "%s",
                                    str_starts(line, STR("INQUIRE PINENTRY_LAUNCHED")) ? "END\n" : "CAN\n");
        c->out_at = 0;
        c->base.state = CLIENT_SEND;
        return;
    case GPG_ANSWER_NOTHING:
        return;
    case GPG_ANSWER_BAD:
        break;
    }
    key_client_drop(&c->base);
}

/* ---- bytes ---- */

/* A line in `room`: 1 with its length; 0 more will come; -1 the end, or a line that is too long. Reads byte by byte of what is there. */
static int read_line(int fd, char room[LINE_ROOM], size_t *n)
{
    for (;;) {
        char byte;
        ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        if (byte == '\n')
            return 1;
        if (*n >= GPG_MAX_LINE)
            return -1;
        room[(*n)++] = byte;
    }
}

static int step_line(struct key_filter *f, struct key_client *client)
{
    struct gpg_serving *s = (struct gpg_serving *)(void *)f;
    struct gpg_client *c = (struct gpg_client *)(void *)client;
    int r = 0;
    switch (client->state) {
    case CLIENT_READ:
        r = read_line(client->box, c->line, &c->line_n);
        if (r > 0) {
            const struct str line = {c->line, c->line_n - (c->line_n && c->line[c->line_n - 1] == '\r')};
            c->line_n = 0;
            take_line(s, c, line);
        }
        break;
    case CLIENT_SEND:
        r = key_client_write(client->agent, c->out, c->out_n, &c->out_at);
        if (r > 0)
            client->state = CLIENT_AGENT;
        break;
    case CLIENT_AGENT:
        r = read_line(client->agent, c->from, &c->from_n);
        if (r > 0) {
            const struct str line = {c->from, c->from_n};
            c->from_n = 0;
            take_agents_line(s, c, line);
        }
        break;
    case CLIENT_REPLY:
        r = key_client_write(client->box, client->room, c->reply_n, &c->reply_at);
        if (r > 0)
            client->state = CLIENT_READ;
        break;
    default:
        break;
    }
    return r;
}

/* The agent speaks first; then the options go to it, and the box gets a first line of ours. */
static void greet(struct key_filter *f, struct key_client *client)
{
    struct gpg_serving *s = (struct gpg_serving *)(void *)f;
    struct gpg_client *c = (struct gpg_client *)(void *)client;
    if (client->agent < 0) {
        key_client_drop(client); /* as if there were no agent */
        return;
    }
    c->greets = true;
    begin_steps(c);
    for (const char *const *o = s->rules->options; o && *o; o++)
        add_step(c, *o);
    client->state = CLIENT_AGENT;
}

static void sign_answered(struct key_filter *f, struct key_client *client, bool allow, bool run)
{
    struct gpg_serving *s = (struct gpg_serving *)(void *)f;
    struct gpg_client *c = (struct gpg_client *)(void *)client;
    if (run) {
        s->kept[c->key] = true;
        s->allowed[c->key] = allow;
    }
    if (allow)
        sign(s, c);
    else
        sign_refused(s, c);
}

static const struct key_protocol gpg_protocol = {.clients = GPG_CLIENTS,
                                                 .client_bytes = sizeof(struct gpg_client),
                                                 .room_bytes = REPLY_ROOM,
                                                 .given = greet,
                                                 .answered = sign_answered,
                                                 .step = step_line};

_Noreturn void gpg_filter_serve(const struct gpg_filter *f)
{
    static struct gpg_serving s; /* of this process */
    s.base = (struct key_filter){.protocol = &gpg_protocol, .listener = f->listener, .events = f->events};
    s.rules = &f->rules;
    key_filter_serve(&s.base);
}
