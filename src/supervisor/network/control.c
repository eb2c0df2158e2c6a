/*
 * The control connection (--control-fd): JSON lines from the caller, one answer each, and questions. A line takes
 * effect as a whole or not at all, in order; a change is answered when the egress proxy reports it in force. The caller
 * also gave the flags, so it may allow what a flag may, and no more: what the policy denies stays denied.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/json.h"
#include "supervisor/network/live.h"

#define CONTROL_OUT_MAX (8u << 20) /* what a caller that does not read may leave with us */
#define ARENA_MAX       (16u << 20)

int control_begin(struct box *b)
{
    struct control *c = &b->live->control;
    int fd = b->spec->control_fd, type = 0;
    socklen_t n = sizeof type;

    *c = (struct control){.fd = -1, .in = BUF(CONTROL_LINE_MAX + 4096), .out = BUF(CONTROL_OUT_MAX)};
    if (fd <= 0)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_STREAM)
        return err_say(b->err, ERR_POLICY, "--control-fd %d: not a connected stream socket", fd);
    c->fd = fd;
    return 0;
}

bool control_there(const struct box *b)
{
    return b->live && b->live->control.fd >= 0;
}

/* Nobody is there any more: rules stay, its questions are somebody else's or nobody's (asker.c). */
static void control_lost(struct box *b)
{
    b->live->control.fd = -1;
}

/* ---- what goes out ---- */

static void flush(struct box *b)
{
    struct control *c = &b->live->control;
    size_t at = 0;
    while (c->fd >= 0 && at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + at, c->out.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            control_lost(b);
            return;
        }
        at += (size_t)n;
    }
    if (at && at < c->out.n)
        memmove(c->out.p, c->out.p + at, c->out.n - at);
    c->out.n -= at;
}

/* A line that does not fit is a caller that does not read: it is left. */
static void put_line(struct box *b, struct buf *line)
{
    struct control *c = &b->live->control;
    buf_char(line, '\n');
    if (!buf_ok(line) || c->fd < 0)
        return;
    buf_str(&c->out, buf_view(line));
    if (buf_ok(&c->out))
        flush(b);
    else
        control_lost(b);
}

static void control_refuse(struct box *b, const char *sentence)
{
    auto_buf struct buf line = BUF(8192);
    struct json j = JSON(&line);
    json_object(&j, NULL);
    json_bool(&j, "ok", false);
    json_text(&j, "error", sentence);
    json_object_end(&j);
    put_line(b, &line);
}

static void agree(struct box *b, enum control_op op, uint32_t closed)
{
    auto_buf struct buf line = BUF(8192);
    struct json j = JSON(&line);
    size_t n = 0;
    free(rules_held(b->live, &n));
    json_object(&j, NULL);
    json_bool(&j, "ok", true);
    json_text(&j, "op", control_ops[op]);
    if (op != CONTROL_ANSWER) {
        json_uint(&j, "rules", n);
        json_uint(&j, "closed", closed);
    }
    json_object_end(&j);
    put_line(b, &line);
}

static void list_rules(struct box *b)
{
    auto_buf struct buf line = BUF(CONTROL_OUT_MAX / 2);
    struct json j = JSON(&line);
    const struct live *l = b->live;
    char room[512];
    size_t n;
    struct host_rule *held = rules_held(l, &n);
    json_object(&j, NULL);
    json_bool(&j, "ok", true);
    json_text(&j, "op", "list");
    json_array(&j, "rules");
    for (size_t i = 0; held && i < n; i++) {
        char text[HOST_RULE_TEXT];
        host_rule_print(&held[i], text);
        json_object(&j, NULL);
        json_text(&j, "verb", held[i].verb == RULE_ALLOW ? "allow" : "deny");
        json_text(&j, "host", text);
        json_text(&j, "origin", rules_origin(b, held[i].origin, room, sizeof room));
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    free(held);
    if (buf_ok(&line))
        put_line(b, &line);
    else
        control_refuse(b, "too many rules for one answer");
}

void control_ask(struct box *b, struct question *q)
{
    auto_buf struct buf line = BUF(8192);
    struct json j = JSON(&line);
    char host[EGRESS_NAME + 64];
    snprintf(host, sizeof host, "%s", q->target);
    char *colon = q->filtered ? NULL : strrchr(host, ':'); /* a host always has a port */
    if (colon)
        *colon = 0;
    q->told = true;
    json_object(&j, NULL);
    json_text(&j, "event", "ask");
    json_uint(&j, "id", q->id);
    json_text(&j, "host", host);
    json_uint(&j, "port", q->port);
    json_text(&j, "how", question_how(q));
    if (q->who.pid) {
        json_uint(&j, "pid", q->who.pid);
        json_text(&j, "command", q->who.command);
    }
    json_uint(&j, "timeout_ms", b->spec->start.plan->policy->net_ask_ms);
    json_object_end(&j);
    put_line(b, &line);
}

void control_asked(struct box *b, const struct question *q)
{
    auto_buf struct buf line = BUF(8192);
    struct json j = JSON(&line);
    json_object(&j, NULL);
    json_text(&j, "event", "late");
    json_uint(&j, "id", q->id);
    json_object_end(&j);
    put_line(b, &line);
}

/* ---- what comes in ---- */

/* Tells the egress; the answer waits for it. */
static void apply(struct box *b, enum control_op op)
{
    struct control *c = &b->live->control;
    c->op = op;
    int r = rules_send(b, &c->ticket);
    if (r < 0) {
        c->ticket = 0;
        control_refuse(b, "the box's network is gone");
    }
}

/* Its own rules of the other verb and the same text end: the last word of one speaker counts. */
static void take_back(struct live *l, const struct host_rule *rule)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        struct live_rule *o = &l->rules[i];
        char mine[HOST_RULE_TEXT], theirs[HOST_RULE_TEXT];
        if (o->from == FROM_POLICY || o->rule.verb == rule->verb || !o->holds)
            continue;
        host_rule_print(&o->rule, mine);
        host_rule_print(rule, theirs);
        if (strcmp(mine, theirs) == 0)
            o->holds = false;
    }
}

/* Whether the policy denies just that. */
static int check_rule(struct box *b, const struct host_rule *rule, struct err *e)
{
    const struct live *l = b->live;
    char room[512];
    for (size_t k = 0; rule->verb == RULE_ALLOW && k < l->n_rules && l->rules[k].from == FROM_POLICY; k++) {
        char mine[HOST_RULE_TEXT], theirs[HOST_RULE_TEXT];
        if (l->rules[k].rule.verb != RULE_DENY)
            continue;
        host_rule_print(rule, mine);
        host_rule_print(&l->rules[k].rule, theirs);
        if (strcmp(mine, theirs) == 0)
            return err_say(e, ERR_REFUSED, "the policy denies '%s' (%s), which cannot be changed during the run", mine,
                           rules_origin(b, (uint32_t)k, room, sizeof room));
    }
    return 0;
}

/* Every text is read before any is added: a line changes all that it says, or nothing. `ret_n`: counts the rules. */
static int check_rules(struct box *b, const struct str *hosts, size_t n, enum rule_verb verb, size_t *ret_n,
                       struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t m;
        struct host_rule *list;
        r = rules_parse(hosts[i], verb, &list, &m, e);
        for (size_t k = 0; r == 0 && k < m; k++)
            r = check_rule(b, &list[k], e);
        free(list);
        *ret_n += m;
    }
    return r;
}

static int add_rules(struct live *l, const struct str *hosts, size_t n, enum rule_verb verb, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        size_t m;
        struct host_rule *list;
        r = rules_parse(hosts[i], verb, &list, &m, e);
        for (size_t k = 0; r == 0 && k < m; k++)
            take_back(l, &list[k]);
        free(list);
        if (r == 0)
            r = rules_add(l, hosts[i], verb, FROM_CONTROL, 0, NULL, e);
    }
    return r;
}

static void change(struct box *b, const struct control_line *line)
{
    struct live *l = b->live;
    struct err e = {0};
    size_t n = l->n_rules;
    int r = check_rules(b, line->allow, line->n_allow, RULE_ALLOW, &n, &e);
    if (r == 0)
        r = check_rules(b, line->deny, line->n_deny, RULE_DENY, &n, &e);
    if (r == 0 && n > MAX_LIVE_RULES)
        r = err_say(&e, ERR_POLICY, "more than %d rules in the lifetime of one box", MAX_LIVE_RULES);
    if (r == 0 && line->op == CONTROL_REPLACE) {
        l->policy_allows = false;
        for (size_t i = 0; i < l->n_rules; i++)
            l->rules[i].holds = l->rules[i].from == FROM_POLICY;
    }
    if (r == 0)
        r = add_rules(l, line->deny, line->n_deny, RULE_DENY, &e);
    if (r == 0)
        r = add_rules(l, line->allow, line->n_allow, RULE_ALLOW, &e);
    if (r < 0)
        control_refuse(b, e.text);
    else
        apply(b, line->op);
}

static void obey_line(struct box *b, struct str text)
{
    auto_arena struct arena *mem = arena_new(ARENA_MAX);
    struct control_line line;
    struct err e = {0};
    if (!mem || control_parse(text, mem, &line, &e) < 0) {
        control_refuse(b, mem ? e.text : "out of memory");
        return;
    }
    if (line.op == CONTROL_LIST) {
        list_rules(b);
        return;
    }
    if (line.op != CONTROL_ANSWER) {
        change(b, &line);
        return;
    }
    struct question *q = question_find(b->live, line.id);
    if (!q || !q->told) {
        control_refuse(b, "no open question has that id");
        return;
    }
    question_answer(b, q, line.answer);
    agree(b, CONTROL_ANSWER, 0);
}

/* Whole lines, one after the other, as long as none waits for the egress. */
static void obey_lines(struct box *b)
{
    struct control *c = &b->live->control;
    size_t at = 0;
    while (c->fd >= 0 && !c->ticket && at < c->in.n) {
        const char *end = memchr(c->in.p + at, '\n', c->in.n - at);
        struct str line = {c->in.p + at, end ? (size_t)(end - (c->in.p + at)) : c->in.n - at};
        if (!end && line.n <= CONTROL_LINE_MAX)
            break;
        if (line.n > CONTROL_LINE_MAX && !c->skipping)
            control_refuse(b, "the line is longer than 256 KiB");
        else if (end && !c->skipping && line.n)
            obey_line(b, line);
        c->skipping = !end;
        at += line.n + (end ? 1 : 0);
    }
    if (at && at < c->in.n)
        memmove(c->in.p, c->in.p + at, c->in.n - at);
    c->in.n -= at;
}

void control_poll(const struct box *b, struct pollfd *p)
{
    const struct control *c = &b->live->control;
    if (c->fd < 0)
        return;
    bool room = !c->ticket && c->out.n < CONTROL_OUT_MAX / 4;
    *p = (struct pollfd){.fd = c->fd, .events = (short)((room ? POLLIN : 0) | (c->out.n ? POLLOUT : 0))};
}

void control_ready(struct box *b)
{
    struct control *c = &b->live->control;
    flush(b);
    while (c->fd >= 0 && !c->ticket) {
        char *at = buf_space(&c->in, 4096);
        ssize_t n = at ? recv(c->fd, at, 4096, MSG_DONTWAIT) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            control_lost(b);
            return;
        }
        buf_grew(&c->in, (size_t)n);
        obey_lines(b);
    }
}

void control_rules(struct box *b, const struct egress_event *v)
{
    struct control *c = &b->live->control;
    if (!c->ticket || c->ticket != v->ticket)
        return;
    c->ticket = 0;
    agree(b, c->op, v->count);
    obey_lines(b);
}

void control_end(struct box *b)
{
    struct control *c = &b->live->control;
    if (c->ticket)
        control_refuse(b, "the box's network is gone");
    c->ticket = 0;
    flush(b);
    c->fd = -1; /* the caller's own */
    buf_free(&c->in);
    buf_free(&c->out);
}
