/*
 * The loop of the gpg-agent's filter. Each client has a connection to the agent of its own, because the agent keeps there which key was
 * chosen and what is to be signed. One line at a time: it is read, decided, written anew for the agent; of the answer only what
 * answers this line goes back.
 */
#include "gpg/gpg_filter.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ssh/filter.h"
#include "sys/fd.h"
#include "sys/poll.h"

enum {
    GPG_CLIENTS = 8,
    LINE_ROOM = GPG_MAX_LINE + 2,
    REPLY_ROOM = 32 << 10,
    STEPS = 12,
    STEP_ROOM = 300,
    REFUSALS_MAX = 256
};

enum gpg_state {
    GPG_FREE,
    GPG_WAITS,    /* for a connection to the agent */
    GPG_READ,     /* a line comes from the box */
    GPG_ASKED,    /* a person is asked */
    GPG_TO_AGENT, /* `out` goes to the agent */
    GPG_FROM_AGENT,
    GPG_REPLY /* `reply` goes to the box */
};
struct gpg_client {
    enum gpg_state state;
    int box, agent;
    uint32_t id;
    char line[LINE_ROOM]; /* from the box */
    size_t line_n;
    char from[LINE_ROOM]; /* from the agent */
    size_t from_n;
    char out[STEP_ROOM]; /* to the agent */
    size_t out_n, out_at;
    char steps[STEPS][STEP_ROOM]; /* lines that still go there; only the answer to the last one goes back */
    size_t n_steps, at_step;
    char *reply; /* REPLY_ROOM */
    size_t reply_n, reply_at;
    enum gpg_what what;
    bool greets;         /* the agent's first line and the options; then the box gets its own first line */
    bool chosen, hashed; /* of the next signature */
    size_t key, about;
};
struct gpg_serving {
    const struct gpg_filter *f;
    struct gpg_client clients[GPG_CLIENTS];
    uint32_t ids;
    unsigned refusals;
    int64_t second;
    bool kept[GPG_MAX_KEYS], allowed[GPG_MAX_KEYS]; /* answers for the rest of the run, and which */
};

static void gpg_drop(struct gpg_client *c)
{
    sys_drop(&c->box);
    sys_drop(&c->agent);
    c->state = GPG_FREE;
}

static struct ssh_event event_of(const struct gpg_serving *s, const struct gpg_client *c, enum ssh_event_kind kind,
                                 const char *action, const char *why)
{
    struct ssh_event v = {.kind = kind, .id = c->id};
    const bool sign = c->what == GPG_SIGN || c->what == GPG_KEY;
    snprintf(v.action, sizeof v.action, "%s", action);
    snprintf(v.target, sizeof v.target, "%.120s", sign && c->chosen ? s->f->rules.keys[c->key].name : "gpg-agent");
    snprintf(v.why, sizeof v.why, "%s", why);
    return v;
}

static void gpg_tell(struct gpg_serving *s, const struct gpg_client *c, const char *action, const char *why)
{
    struct timespec now = {0};
    const struct ssh_event v = event_of(s, c, SSH_EVENT_REFUSED, action, why);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != s->second) {
        s->second = now.tv_sec;
        s->refusals = 0;
    }
    if (s->refusals++ < REFUSALS_MAX)
        (void)send(s->f->events, &v, sizeof v, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- what goes to the box ---- */

static void put_reply(struct gpg_client *c, const char *text, size_t n)
{
    if (c->reply_n + n > REPLY_ROOM) {
        gpg_drop(c);
        return;
    }
    memcpy(c->reply + c->reply_n, text, n);
    c->reply_n += n;
}

static void reply_with(struct gpg_client *c, const char *text)
{
    c->reply_n = c->reply_at = 0;
    put_reply(c, text, strlen(text));
    if (c->state != GPG_FREE)
        c->state = GPG_REPLY;
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
    c->state = GPG_TO_AGENT;
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
    const char *name = s->f->rules.keys[c->key].name;
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
    c->state = GPG_ASKED;
    if (send(s->f->events, &v, sizeof v, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof v)
        sign_refused(s, c);
}

/* ---- a line of the box's ---- */

static void list_keys(struct gpg_serving *s, struct gpg_client *c)
{
    char room[LINE_ROOM];
    size_t n = gpg_list_line(&s->f->rules, room, sizeof room);
    c->reply_n = c->reply_at = 0;
    put_reply(c, room, n);
    put_reply(c, "OK\n", 3);
    if (c->state != GPG_FREE)
        c->state = GPG_REPLY;
}

static void take_known(struct gpg_serving *s, struct gpg_client *c, const struct gpg_request *r)
{
    size_t i = 0;
    switch (r->what) {
    case GPG_HAVE:
        reply_with(c, gpg_key_named(&s->f->rules, r->grips, &i) ? "OK\n" : GPG_ERR_LINE_NO_KEY);
        break;
    case GPG_ABOUT: /* of others gpg learns that they are not there, which is no refusal worth a word */
        if (gpg_key_named(&s->f->rules, r->grips, &c->about))
            pass_line(c, r->line);
        else
            reply_with(c, GPG_ERR_LINE_NO_KEY);
        break;
    case GPG_KEY:
        c->chosen = gpg_key_named(&s->f->rules, r->grips, &c->key);
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
        else if (s->f->rules.confirm)
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
        gpg_drop(c);
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
        const struct ssh_event v = event_of(s, c, SSH_EVENT_SIGNED, "sign", s->f->rules.keys[c->key].grip);
        if (good && send(s->f->events, &v, sizeof v, MSG_NOSIGNAL) != (ssize_t)sizeof v)
            _exit(1); /* what is not logged is not handed out */
        c->chosen = c->hashed = false;
    }
    if (!good)
        c->reply_n = 0;
    put_reply(c, line.p, line.n);
    put_reply(c, "\n", 1);
    if (c->state != GPG_FREE)
        c->state = GPG_REPLY;
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
        c->state = GPG_TO_AGENT;
        return;
    case GPG_ANSWER_NOTHING:
        return;
    case GPG_ANSWER_BAD:
        break;
    }
    gpg_drop(c);
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

static int write_some(int fd, const char *bytes, size_t n, size_t *at)
{
    while (*at < n) {
        ssize_t put = send(fd, bytes + *at, n - *at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put <= 0)
            return put < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        *at += (size_t)put;
    }
    return 1;
}

static bool gpg_step(struct gpg_serving *s, struct gpg_client *c)
{
    int r;
    switch (c->state) {
    case GPG_READ:
        r = read_line(c->box, c->line, &c->line_n);
        if (r > 0) {
            const struct str line = {c->line, c->line_n - (c->line_n && c->line[c->line_n - 1] == '\r')};
            c->line_n = 0;
            take_line(s, c, line);
        }
        break;
    case GPG_TO_AGENT:
        r = write_some(c->agent, c->out, c->out_n, &c->out_at);
        if (r > 0)
            c->state = GPG_FROM_AGENT;
        break;
    case GPG_FROM_AGENT:
        r = read_line(c->agent, c->from, &c->from_n);
        if (r > 0) {
            const struct str line = {c->from, c->from_n};
            c->from_n = 0;
            take_agents_line(s, c, line);
        }
        break;
    case GPG_REPLY:
        r = write_some(c->box, c->reply, c->reply_n, &c->reply_at);
        if (r > 0)
            c->state = GPG_READ;
        break;
    default:
        return false;
    }
    if (r < 0)
        gpg_drop(c);
    return r > 0 && c->state != GPG_FREE;
}

/* ---- clients ---- */

static void gpg_accept(struct gpg_serving *s)
{
    struct gpg_client *c = NULL;
    for (size_t i = 0; i < GPG_CLIENTS && !c; i++)
        c = s->clients[i].state == GPG_FREE ? &s->clients[i] : NULL;
    int fd = c ? accept4(s->f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd < 0)
        return;
    char *reply = c->reply;
    *c =
        (struct gpg_client){.state = GPG_WAITS, .box = fd, .agent = -1, .id = ++s->ids, .reply = reply, .greets = true};
    const struct ssh_event v = {.kind = SSH_EVENT_CONNECT, .id = c->id};
    if (send(s->f->events, &v, sizeof v, MSG_NOSIGNAL) != (ssize_t)sizeof v)
        gpg_drop(c);
}

static void greet(struct gpg_serving *s, struct gpg_client *c)
{
    begin_steps(c);
    for (const char *const *o = s->f->rules.options; o && *o; o++)
        add_step(c, *o);
    c->state = GPG_FROM_AGENT;
}

static void gpg_order(struct gpg_serving *s)
{
    struct ssh_order o;
    own_fd int fd = -1;
    long n = sys_recv_fd(s->f->events, &o, sizeof o, &fd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0)
        _exit(0); /* the supervisor is gone, and with it the box */
    struct gpg_client *c = NULL;
    const enum gpg_state state = o.kind == SSH_ORDER_AGENT ? GPG_WAITS : GPG_ASKED;
    for (size_t i = 0; n == (long)sizeof o && i < GPG_CLIENTS && !c; i++)
        c = s->clients[i].state == state && s->clients[i].id == o.id ? &s->clients[i] : NULL;
    if (!c)
        return;
    if (o.kind == SSH_ORDER_AGENT) {
        c->agent = sys_taken(&fd);
        if (c->agent < 0)
            gpg_drop(c); /* as if there were no agent */
        else
            greet(s, c);
        return;
    }
    if (o.run) {
        s->kept[c->key] = true;
        s->allowed[c->key] = o.allow != 0;
    }
    if (o.allow)
        sign(s, c);
    else
        sign_refused(s, c);
}

static struct pollfd gpg_waits(const struct gpg_client *c)
{
    switch (c->state) {
    case GPG_READ:
        return (struct pollfd){.fd = c->box, .events = POLLIN};
    case GPG_TO_AGENT:
        return (struct pollfd){.fd = c->agent, .events = POLLOUT};
    case GPG_FROM_AGENT:
        return (struct pollfd){.fd = c->agent, .events = POLLIN};
    case GPG_REPLY:
        return (struct pollfd){.fd = c->box, .events = POLLOUT};
    default:
        return (struct pollfd){.fd = -1};
    }
}

_Noreturn void gpg_filter_serve(const struct gpg_filter *f)
{
    static struct gpg_serving s; /* of this process */
    s.f = f;
    char *rooms =
        mmap(NULL, (size_t)GPG_CLIENTS * REPLY_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rooms == MAP_FAILED || ssh_lock() < 0)
        _exit(1);
    for (size_t i = 0; i < GPG_CLIENTS; i++)
        s.clients[i] = (struct gpg_client){.box = -1, .agent = -1, .reply = rooms + i * REPLY_ROOM};
    for (;;) {
        struct pollfd p[GPG_CLIENTS + 2];
        bool room = false;
        for (size_t i = 0; i < GPG_CLIENTS; i++) {
            p[i] = gpg_waits(&s.clients[i]);
            room |= s.clients[i].state == GPG_FREE;
        }
        p[GPG_CLIENTS] = (struct pollfd){.fd = f->events, .events = POLLIN};
        p[GPG_CLIENTS + 1] = (struct pollfd){.fd = room ? f->listener : -1, .events = POLLIN};
        int r = sys_poll(p, GPG_CLIENTS + 2, NULL);
        if (r < 0 && r != -EINTR)
            _exit(1);
        if (p[GPG_CLIENTS].revents)
            gpg_order(&s);
        if (p[GPG_CLIENTS + 1].revents)
            gpg_accept(&s);
        for (size_t i = 0; i < GPG_CLIENTS; i++) {
            while (p[i].revents && gpg_step(&s, &s.clients[i]))
                ;
        }
    }
}
