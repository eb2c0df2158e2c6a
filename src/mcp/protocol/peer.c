/* One client of the server: the protocol's requests, notifications, calls and questions. */
#include "mcp/protocol/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/protocol/resource.h"
#include "mcp/protocol/roots.h"
#include "mcp/tools/tool_resource.h"
#include "mcp/protocol/watch.h"

#define PROGRESS_MS 1000
#define ASK_MS      300000 /* a person who does not answer says no */
#define ROOTS_MS    10000  /* a client that does not tell its roots has none */
#define ROOTS_ID    "pinfold-roots"

static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}; /* newest first */
static const char *const levels[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

struct call { /* a request under way that a worker carries out */
    struct peer *peer;
    struct call *next;
    struct task *task; /* NULL: waits for another one of its lane */
    const struct tool *tool;
    char *lane; /* calls of one lane come one after the other; NULL: of none */
    uint64_t affinity;
    struct buf waits; /* what the worker will be told then */
    json_t *id, *progress_token;
    uint64_t tag, began, told;
    char *watches;          /* it is a subscription to this resource */
    char *doing;            /* the last word of what it does */
    char question[32];      /* id of the question the person is asked; "" for none */
    uint64_t question_ends; /* no answer until then is a no */
    struct asked asked;     /* the question, where it is put at the terminal */
};

struct peer {
    struct server *server;
    peer_send_fn *send;
    void *ctx;
    char name[40];
    const char *version;
    bool elicits, initialized, sessions, ending, has_roots;
    uint64_t roots_end; /* calls wait for the client's roots until then; 0: they do not */
    unsigned level;     /* of messages to its log; an index into levels */
    struct call *calls;
    size_t n_calls;
    unsigned questions;
    struct mcp_watch watch;
};

static void watch_changed(void *ctx, const char *uri);

struct peer *peer_new(struct server *server, const char *name, peer_send_fn *send, void *ctx)
{
    struct peer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct peer){.server = server, .send = send, .ctx = ctx, .level = SAY_WARNING};
    snprintf(p->name, sizeof p->name, "%s", name);
    p->watch = (struct mcp_watch){.work = server->work, .client = p->name, .changed = watch_changed, .ctx = p};
    return p;
}

static const struct task_events call_events;

static bool call_start(struct call *c, struct str what)
{
    c->task = work_start(c->peer->server->work, what, c->tool->rests, c->affinity, &call_events, c);
    return c->task != NULL;
}

/* Whether one of this lane is at work. */
static bool is_taken(const struct peer *p, const char *lane)
{
    for (const struct call *c = p->calls; c; c = c->next) {
        if (c->task && c->lane && strcmp(c->lane, lane) == 0)
            return true;
    }
    return false;
}

/* The oldest one that waits for this lane goes on; the list begins with the youngest. */
static void lane_next(struct peer *p, const char *lane)
{
    struct call *oldest = NULL;
    for (struct call *c = p->calls; c; c = c->next) {
        if (!c->task && c->lane && strcmp(c->lane, lane) == 0)
            oldest = c;
    }
    if (oldest && call_start(oldest, buf_view(&oldest->waits)))
        buf_free(&oldest->waits);
}

/* All that wait for no other call of their lane, the oldest first. */
static void calls_go(struct peer *p)
{
    for (;;) {
        struct call *oldest = NULL;
        for (struct call *c = p->calls; c; c = c->next) {
            if (!c->task && c->waits.n && (!c->lane || !is_taken(p, c->lane)))
                oldest = c;
        }
        if (!oldest || !call_start(oldest, buf_view(&oldest->waits)))
            return;
        buf_free(&oldest->waits);
    }
}

static void call_free(struct call *c)
{
    struct peer *p = c->peer;
    bool held = c->task != NULL;
    for (struct call **at = &p->calls; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            p->n_calls--;
            break;
        }
    }
    if (held && c->lane && !p->ending)
        lane_next(p, c->lane);
    json_decref(c->id);
    json_decref(c->progress_token);
    buf_free(&c->waits);
    if (c->asked.sentence)
        asker_take_back(&p->server->asker, &c->asked);
    free(c->lane);
    free(c->watches);
    free(c->doing);
    free(c);
}

void peer_free(struct peer *p)
{
    if (!p)
        return;
    p->ending = true;
    watch_end(&p->watch);
    while (p->calls) {
        if (p->calls->task)
            work_cancel(p->calls->task);
        call_free(p->calls);
    }
    if (p->sessions)
        janitor_forget(&p->server->janitor, p->name);
    free(p);
}

const char *peer_version(const struct peer *p)
{
    return p->version;
}

bool peer_knows_version(const char *version)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (same(version, versions[i]))
            return true;
    }
    return false;
}

bool peer_busy(const struct peer *p)
{
    return p->calls != NULL;
}

static void send_out(struct peer *p, uint64_t tag, struct buf *message, bool last)
{
    if (buf_ok(message))
        p->send(p->ctx, tag, buf_view(message), last);
}

static void send_fault(struct peer *p, uint64_t tag, const json_t *id, enum rpc_code code, const char *text)
{
    auto_buf struct buf out = BUF(1u << 16);
    rpc_error(&out, id, code, text);
    send_out(p, tag, &out, true);
}

/* A tool's result that says what went wrong: models see it, unlike a protocol error. */
static void send_failure(struct peer *p, uint64_t tag, const json_t *id, const char *text)
{
    auto_buf struct buf out = BUF(1u << 18);
    struct json j;
    rpc_begin_result(&j, &out, id);
    json_object(&j, "result");
    json_array(&j, "content");
    json_object(&j, NULL);
    json_text(&j, "type", "text");
    json_text(&j, "text", text);
    json_object_end(&j);
    json_array_end(&j);
    json_bool(&j, "isError", true);
    json_object_end(&j);
    rpc_end(&j);
    send_out(p, tag, &out, true);
}

/* ---- what a call says on its way */

static void call_say(void *ctx, enum say_level level, struct str sentence)
{
    struct call *c = ctx;
    auto_buf struct buf out = BUF(1u << 21);
    struct json j;

    if (level < c->peer->level || level > SAY_ERROR)
        return;
    rpc_begin_notification(&j, &out, "notifications/message");
    json_object(&j, "params");
    json_text(&j, "level", levels[level]);
    json_text(&j, "logger", "pinfold");
    json_str(&j, "data", sentence);
    json_object_end(&j);
    rpc_end(&j);
    send_out(c->peer, c->tag, &out, false);
}

static void call_denied(void *ctx, struct str entry)
{
    struct call *c = ctx;
    auto_buf struct buf out = BUF(1u << 21);
    struct json j;

    if (SAY_WARNING < c->peer->level)
        return;
    rpc_begin_notification(&j, &out, "notifications/message");
    json_object(&j, "params");
    json_text(&j, "level", levels[SAY_WARNING]);
    json_text(&j, "logger", "pinfold.denied");
    json_raw(&j, "data", entry);
    json_object_end(&j);
    rpc_end(&j);
    send_out(c->peer, c->tag, &out, false);
}

static void send_progress(struct call *c, uint64_t now)
{
    auto_buf struct buf out = BUF(1u << 20);
    char running[64];
    struct json j;

    snprintf(running, sizeof running, "running for %llu s", (unsigned long long)(now - c->began) / 1000);
    rpc_begin_notification(&j, &out, "notifications/progress");
    json_object(&j, "params");
    value_write(&j, "progressToken", c->progress_token);
    json_uint(&j, "progress", now - c->began); /* milliseconds: it must grow */
    json_text(&j, "message", c->doing ? c->doing : running);
    json_object_end(&j);
    rpc_end(&j);
    send_out(c->peer, c->tag, &out, false);
    c->told = now;
    free(c->doing);
    c->doing = NULL;
}

static void call_progress(void *ctx, struct str sentence)
{
    struct call *c = ctx;
    if (!c->progress_token)
        return;
    free(c->doing);
    c->doing = strndup(sentence.p, sentence.n < 500 ? sentence.n : 500);
}

static void answered(void *ctx, bool yes)
{
    const struct call *c = ctx;
    if (c->task)
        work_answer(c->task, yes);
}

static void ask_at_terminal(struct call *c, struct str sentence, uint64_t ends)
{
    auto_buf struct buf text = BUF(1u << 21);
    buf_text(&text, "pinfold: ");
    words_of(&text, sentence);
    buf_text(&text, " y: yes; n: no; q: no, and ask no more");
    c->asked = (struct asked){.answer = answered, .ctx = c, .ends = ends};
    if (!buf_ok(&text) || !asker_ask(&c->peer->server->asker, &c->asked, buf_cstr(&text)))
        answered(c, false);
}

static void call_question(void *ctx, struct str sentence, uint32_t patience)
{
    struct call *c = ctx;
    auto_buf struct buf out = BUF(1u << 21);
    uint32_t usual = c->peer->server->place.options->ask_ms;
    uint64_t ends = loop_now() + (patience ? patience : usual ? usual : ASK_MS);
    struct json j;

    if (!c->peer->elicits) {
        ask_at_terminal(c, sentence, ends);
        return;
    }
    snprintf(c->question, sizeof c->question, "pinfold-ask-%u", ++c->peer->questions);
    c->question_ends = ends;
    rpc_begin_request(&j, &out, c->question, "elicitation/create");
    json_object(&j, "params");
    json_str(&j, "message", sentence);
    json_raw(&j, "requestedSchema",
             STR("{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\",\"title\":\"Allow it\","
                 "\"description\":\"For this one call\",\"default\":false}},\"required\":[\"allow\"]}"));
    json_object_end(&j);
    rpc_end(&j);
    send_out(c->peer, c->tag, &out, false);
}

/* A message of its own, for no request. */
static void announce(struct peer *p, const char *method, const char *uri)
{
    auto_buf struct buf out = BUF(1u << 20);
    struct json j;

    if (!p->initialized)
        return;
    rpc_begin_notification(&j, &out, method);
    if (uri) {
        json_object(&j, "params");
        json_text(&j, "uri", uri);
        json_object_end(&j);
    }
    rpc_end(&j);
    send_out(p, 0, &out, false);
}

static void watch_changed(void *ctx, const char *uri)
{
    announce(ctx, "notifications/resources/updated", uri);
}

static void call_changed(void *ctx)
{
    const struct call *c = ctx;
    announce(c->peer, "notifications/resources/list_changed", NULL);
}

static void call_fault(void *ctx, int code, struct str sentence)
{
    struct call *c = ctx;
    auto_buf struct buf text = BUF(1u << 16);
    buf_str(&text, sentence);
    send_fault(c->peer, c->tag, c->id, (enum rpc_code)code, buf_cstr(&text));
    call_free(c);
}

/* The first look at what is subscribed to: whether it is there, and how it is. False: an error was answered. */
static bool watch_begins(const struct call *c, struct str json)
{
    char why[128];
    auto_value json_t *root = value_read(json, why, sizeof why);
    const char *stamp = value_text(json_object_get(root, "stamps"), c->watches, NULL);
    int r = stamp && stamp[0] ? watch_add(&c->peer->watch, c->watches, stamp) : -ENOENT;
    if (r < 0)
        send_fault(c->peer, c->tag, c->id, r == -ENOENT ? RPC_NO_RESOURCE : RPC_INTERNAL,
                   r == -ENOENT   ? "there is no such resource"
                   : r == -ENOSPC ? "already subscribed to 256 resources"
                                  : "out of memory");
    return r == 0;
}

static void call_result(void *ctx, struct str json)
{
    struct call *c = ctx;
    auto_buf struct buf out = BUF(MCP_MAX_ANSWER + (1u << 16));
    struct json j;

    if (c->watches && !watch_begins(c, json)) {
        call_free(c);
        return;
    }
    if (c->watches)
        json = STR("{}");
    rpc_begin_result(&j, &out, c->id);
    json_raw(&j, "result", json);
    rpc_end(&j);
    send_out(c->peer, c->tag, &out, true);
    call_free(c);
}

static void call_lost(void *ctx)
{
    struct call *c = ctx;
    send_fault(c->peer, c->tag, c->id, RPC_INTERNAL,
               "the process that handled this call died without a result; everything it had started has ended too");
    call_free(c);
}

static const struct task_events call_events = {.say = call_say,
                                               .denied = call_denied,
                                               .progress = call_progress,
                                               .question = call_question,
                                               .changed = call_changed,
                                               .result = call_result,
                                               .fault = call_fault,
                                               .lost = call_lost};

/* Calls that have waited for the workspace are answered: in it, or with why there is none. */
static void roots_known(struct peer *p, const char *why)
{
    struct job_place *place = &p->server->place;
    p->roots_end = 0;
    if (!place->unusable) {
        calls_go(p);
        return;
    }
    for (struct call *c = p->calls, *following; c; c = following) {
        following = c->next;
        if (c->task || !c->waits.n)
            continue;
        auto_buf struct buf text = BUF(1u << 16);
        buf_printf(&text, "%s (%s)", place->unusable, why);
        send_failure(p, c->tag, c->id, buf_cstr(&text));
        call_free(c);
    }
}

int peer_tick(struct peer *p, uint64_t now)
{
    int next = watch_tick(&p->watch, now);
    if (p->roots_end && now >= p->roots_end)
        roots_known(p, "the client did not name its directories");
    if (p->roots_end && (next < 0 || (int)(p->roots_end - now) < next))
        next = (int)(p->roots_end - now);
    for (struct call *c = p->calls; c; c = c->next) {
        int left = PROGRESS_MS;
        if (c->task && c->question[0] && now >= c->question_ends) {
            c->question[0] = 0;
            work_answer(c->task, false);
        }
        if (c->progress_token) {
            if (now >= c->told + PROGRESS_MS)
                send_progress(c, now);
            left = (int)(c->told + PROGRESS_MS - now);
        } else if (!c->question[0]) {
            continue;
        }
        if (next < 0 || left < next)
            next = left;
    }
    return next;
}

/* ---- requests */

struct rpc_request {
    struct peer *peer;
    const struct rpc_message *m;
    uint64_t tag;
};

static int bad(const struct rpc_request *q, enum rpc_code code, const char *text)
{
    send_fault(q->peer, q->tag, q->m->id, code, text);
    return 0;
}

static void answer_begin(const struct rpc_request *q, struct json *j, struct buf *out)
{
    rpc_begin_result(j, out, q->m->id);
    json_object(j, "result");
}

static void answer_end(const struct rpc_request *q, struct json *j)
{
    json_object_end(j);
    rpc_end(j);
    send_out(q->peer, q->tag, j->out, true);
}

static int do_initialize(const struct rpc_request *q)
{
    auto_buf struct buf out = BUF(1u << 16);
    struct peer *p = q->peer;
    const char *wanted = value_text(q->m->params, "protocolVersion", NULL);
    const json_t *capabilities = json_object_get(q->m->params, "capabilities");
    struct json j;

    if (!wanted || !json_is_object(capabilities))
        return bad(q, RPC_PARAMS, "initialize needs 'protocolVersion', a string, and 'capabilities', an object");
    if (p->version)
        return bad(q, RPC_INVALID, "already initialized");
    p->version = versions[0];
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (same(wanted, versions[i]))
            p->version = versions[i];
    }
    p->elicits = json_is_object(json_object_get(capabilities, "elicitation"));
    p->has_roots = json_is_object(json_object_get(capabilities, "roots"));
    if (p->has_roots && p->server->place.unusable && p->server->adopt) /* asked for after "initialized" */
        p->roots_end = loop_now() + ROOTS_MS;
    answer_begin(q, &j, &out);
    json_text(&j, "protocolVersion", p->version);
    json_raw(&j, "capabilities",
             STR("{\"tools\":{\"listChanged\":false},\"logging\":{},\"completions\":{},"
                 "\"resources\":{\"subscribe\":true,\"listChanged\":true}}"));
    json_object(&j, "serverInfo");
    json_text(&j, "name", "pinfold");
    json_text(&j, "title", "pinfold: commands in a box");
    json_text(&j, "version", pinfold_version());
    json_object_end(&j);
    json_text(
        &j, "instructions",
        "Commands run in a sandbox: the workspace is writable, most else is read-only or hidden, and the network is "
        "what the policy allows. Call 'policy' to learn the rules. What is denied is reported together with "
        "the rule that denies it; only the person can give more.");
    answer_end(q, &j);
    return 0;
}

static int do_ping(const struct rpc_request *q)
{
    auto_buf struct buf out = BUF(1u << 12);
    struct json j;
    answer_begin(q, &j, &out);
    answer_end(q, &j);
    return 0;
}

static int do_tools_list(const struct rpc_request *q)
{
    auto_buf struct buf out = BUF(MCP_MAX_ANSWER);
    struct json j;

    if (json_object_get(q->m->params, "cursor"))
        return bad(q, RPC_PARAMS, "unknown cursor: the list has one page");
    answer_begin(q, &j, &out);
    json_array(&j, "tools");
    for (size_t i = 0; tool_at(i); i++)
        tool_write(&j, tool_at(i));
    json_array_end(&j);
    answer_end(q, &j);
    return 0;
}

static int do_set_level(const struct rpc_request *q)
{
    const char *level = value_text(q->m->params, "level", NULL);
    for (unsigned i = 0; level && i < sizeof levels / sizeof *levels; i++) {
        if (same(level, levels[i])) {
            q->peer->level = i;
            return do_ping(q);
        }
    }
    return bad(q, RPC_PARAMS, "'level' is one of debug, info, notice, warning, error, critical, alert, emergency");
}

static void write_call(struct buf *out, const struct rpc_request *q, const char *tool, const json_t *arguments)
{
    struct peer *p = q->peer;
    struct json j = JSON(out);

    json_object(&j, NULL);
    json_text(&j, "tool", tool);
    json_uint(&j, "number", ++p->server->calls);
    json_text(&j, "client", p->name);
    json_bool(&j, "can_ask", p->elicits || asker_possible(&p->server->asker));
    if (arguments)
        value_write(&j, "arguments", arguments);
    json_object_end(&j);
}

static const json_t *progress_token(const struct rpc_request *q)
{
    const json_t *token = json_object_get(json_object_get(q->m->params, "_meta"), "progressToken");
    return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

/* The session of a tool whose calls come one after the other there, a shell's; malloc()ed. */
static char *lane_of(const struct tool *t, const json_t *arguments)
{
    const char *session = value_text(arguments, "session", NULL);
    if (!t->in_order || json_is_true(json_object_get(arguments, "background")))
        return NULL;
    return strdup(session ? session : "default");
}

/* A number for the session that a call is about: client and name, FNV-1a. */
static uint64_t affinity_of(const struct peer *p, const struct tool *t, const char *session)
{
    uint64_t h = 14695981039346656037u;
    for (const char *c = p->name; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (const char *c = session ? session : "default"; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    return t->sessions ? h | 1 : 0;
}

/* Hands it to a worker; its end answers the request. `session`: the one it is about, or NULL. */
static int call_begin(const struct rpc_request *q, const struct tool *t, const json_t *arguments, const char *session,
                      const char *watches)
{
    auto_buf struct buf what = BUF(2 * (size_t)MCP_MAX_MESSAGE);
    struct peer *p = q->peer;

    for (const struct call *c = p->calls; c; c = c->next) {
        if (json_equal(c->id, q->m->id))
            return bad(q, RPC_INVALID, "a request with this id is in progress");
    }
    if (p->n_calls >= MCP_MAX_CALLS)
        return bad(q, RPC_INTERNAL, "256 calls are already in progress");
    if (t->sessions && janitor_begin(&p->server->janitor, p->server->place.instance) < 0)
        return bad(q, RPC_INTERNAL, "cannot start the process that ends the sessions");
    p->sessions = p->sessions || t->sessions;
    struct call *c = calloc(1, sizeof *c);
    write_call(&what, q, t->name, arguments);
    if (!c || !buf_ok(&what)) {
        free(c);
        return bad(q, RPC_INTERNAL, "out of memory");
    }
    *c = (struct call){
        .peer = p, .tool = t, .tag = q->tag, .began = loop_now(), .waits = BUF(2 * (size_t)MCP_MAX_MESSAGE)};
    c->lane = lane_of(t, arguments);
    c->watches = watches ? strdup(watches) : NULL;
    c->affinity = affinity_of(p, t, session);
    bool later = p->roots_end || (c->lane && is_taken(p, c->lane));
    c->told = c->began;
    c->id = json_incref((json_t *)(uintptr_t)q->m->id);
    c->progress_token = json_incref((json_t *)(uintptr_t)progress_token(q));
    c->next = p->calls;
    p->calls = c;
    p->n_calls++;
    if (later)
        buf_str(&c->waits, buf_view(&what));
    if ((watches && !c->watches) || (later ? !buf_ok(&c->waits) : !call_start(c, buf_view(&what)))) {
        call_free(c);
        return bad(q, RPC_INTERNAL, "out of memory");
    }
    return 0;
}

static int do_tools_call(const struct rpc_request *q)
{
    struct peer *p = q->peer;
    const char *name = value_text(q->m->params, "name", NULL);
    const json_t *arguments = json_object_get(q->m->params, "arguments");
    const struct tool *t = name ? mcp_tool_find(name) : NULL;
    char why[256];

    if (!name)
        return bad(q, RPC_PARAMS, "tools/call needs 'name', a string");
    if (!t) {
        snprintf(why, sizeof why, "unknown tool '%.64s'", name);
        return bad(q, RPC_PARAMS, why);
    }
    if (arguments && !json_is_object(arguments))
        return bad(q, RPC_PARAMS, "'arguments' must be an object");
    /* MCP 2025-11-25: wrong arguments are for the model to mend, so they are a result. */
    const char *fails = p->server->place.unusable && !p->roots_end   ? p->server->place.unusable
                        : !tool_check(t, arguments, why, sizeof why) ? why
                                                                     : NULL;
    if (fails) {
        send_failure(p, q->tag, q->m->id, fails);
        return 0;
    }
    return call_begin(q, t, arguments, value_text(arguments, "session", NULL), NULL);
}

/* ---- resources */

static int do_resources_list(const struct rpc_request *q)
{
    const json_t *cursor = json_object_get(q->m->params, "cursor");
    const char *from = value_text(q->m->params, "cursor", NULL);
    char *end = NULL;
    long long n = from && from[0] >= '1' && from[0] <= '9' ? strtoll(from, &end, 10) : 0;

    if (cursor && (!end || *end || n <= 0 || n >= INT32_MAX))
        return bad(q, RPC_PARAMS, "there is no such cursor");
    auto_value json_t *arguments = json_pack("{s:I}", "from", (json_int_t)n);
    return call_begin(q, &tool_resource_list, arguments, NULL, NULL);
}

static int do_resource_templates(const struct rpc_request *q)
{
    auto_buf struct buf out = BUF(1u << 16);
    struct json j;

    if (json_object_get(q->m->params, "cursor"))
        return bad(q, RPC_PARAMS, "unknown cursor: the list has one page");
    answer_begin(q, &j, &out);
    resource_templates(&j);
    answer_end(q, &j);
    return 0;
}

/* The resource that a request names; NULL: it was answered. */
static const char *uri_of(const struct rpc_request *q, struct arena *mem, struct resource *ret)
{
    const char *uri = value_text(q->m->params, "uri", NULL);
    if (!uri || !mem)
        (void)bad(q, uri ? RPC_INTERNAL : RPC_PARAMS, uri ? "out of memory" : "'uri' must be a string");
    else if (!resource_parse(uri, mem, ret))
        (void)bad(q, RPC_NO_RESOURCE, "unknown resource; resources/templates/list shows the form of names");
    else
        return uri;
    return NULL;
}

static int do_resources_read(const struct rpc_request *q)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    struct resource r;
    const char *uri = uri_of(q, mem, &r);

    if (!uri)
        return 0;
    auto_value json_t *arguments = json_pack("{s:s}", "uri", uri);
    return call_begin(q, &tool_resource_read, arguments, r.session, NULL);
}

/* Values of a resource template's variables. */
static int do_complete(const struct rpc_request *q)
{
    const json_t *ref = json_object_get(q->m->params, "ref"), *argument = json_object_get(q->m->params, "argument");
    const char *type = value_text(ref, "type", NULL), *uri = value_text(ref, "uri", NULL);
    const char *name = value_text(argument, "name", NULL), *typed = value_text(argument, "value", NULL);
    const json_t *known = json_object_get(json_object_get(q->m->params, "context"), "arguments");
    const char *session = value_text(known, "session", NULL);

    if (!same(type, "ref/resource") || !uri)
        return bad(q, RPC_PARAMS,
                   "'ref' must be of type ref/resource, with the uri of a template; there are no prompts");
    if (!typed || !resource_has(uri, name))
        return bad(q, RPC_PARAMS, "'argument' must have a 'name' that the template has and a 'value', a string");
    auto_value json_t *arguments = json_pack("{s:s,s:s,s:s?}", "name", name, "value", typed, "session", session);
    if (!session)
        (void)json_object_del(arguments, "session");
    return call_begin(q, &tool_resource_complete, arguments, session, NULL);
}

static int do_subscribe(const struct rpc_request *q)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    struct resource r;
    const char *uri = uri_of(q, mem, &r);

    if (!uri)
        return 0;
    auto_value json_t *arguments = json_pack("{s:[s],s:b}", "uris", uri, "start", 1);
    return call_begin(q, &tool_resource_look, arguments, r.session, uri);
}

static int do_unsubscribe(const struct rpc_request *q)
{
    const char *uri = value_text(q->m->params, "uri", NULL);
    if (!uri)
        return bad(q, RPC_PARAMS, "'uri' must be a string");
    (void)watch_remove(&q->peer->watch, uri); /* not to be subscribed is what was asked for */
    return do_ping(q);
}

static const struct method {
    const char *name;
    int (*answer)(const struct rpc_request *q);
    bool any_time; /* also before initialize */
} methods[] = {{"initialize", do_initialize, true},
               {"ping", do_ping, true},
               {"tools/list", do_tools_list, false},
               {"tools/call", do_tools_call, false},
               {"resources/list", do_resources_list, false},
               {"resources/templates/list", do_resource_templates, false},
               {"resources/read", do_resources_read, false},
               {"resources/subscribe", do_subscribe, false},
               {"resources/unsubscribe", do_unsubscribe, false},
               {"completion/complete", do_complete, false},
               {"logging/setLevel", do_set_level, false}};

static void take_request(struct peer *p, const struct rpc_message *m, uint64_t tag)
{
    struct rpc_request q = {.peer = p, .m = m, .tag = tag};
    char why[160];

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!same(m->method, methods[i].name))
            continue;
        if (!p->version && !methods[i].any_time)
            (void)bad(&q, RPC_INVALID, "the first request must be initialize");
        else
            (void)methods[i].answer(&q);
        return;
    }
    snprintf(why, sizeof why, "unknown method '%.64s'", m->method);
    (void)bad(&q, RPC_METHOD, why);
}

/* ---- notifications and responses */

static void cancel(struct peer *p, const json_t *id)
{
    for (struct call *c = p->calls; c && id; c = c->next) {
        if (!json_equal(c->id, id))
            continue;
        uint64_t tag = c->tag;
        if (c->task)
            work_cancel(c->task);
        call_free(c);
        p->send(p->ctx, tag, STR(""), true); /* no answer will come: a stream may end */
        return;
    }
}

static void ask_roots(struct peer *p)
{
    auto_buf struct buf out = BUF(4096);
    struct json j;

    if (!p->has_roots || !p->server->place.unusable || !p->server->adopt)
        return;
    p->roots_end = loop_now() + ROOTS_MS;
    rpc_begin_request(&j, &out, ROOTS_ID, "roots/list");
    rpc_end(&j);
    send_out(p, 0, &out, false);
}

/* The first of the client's directories that can be a workspace is it. */
static void take_roots(struct peer *p, const json_t *result)
{
    const json_t *roots = json_object_get(result, "roots");
    char why[512] = "the client named no directory";

    for (size_t i = 0; i < json_array_size(roots) && p->server->place.unusable; i++) {
        const char *uri = value_text(json_array_get(roots, i), "uri", NULL);
        char *directory = uri ? roots_directory(uri) : NULL;
        if (!directory)
            snprintf(why, sizeof why, "the client named no directory of this machine");
        else if (p->server->adopt(p->server, directory, why, sizeof why))
            p->server->place.unusable = NULL;
        free(directory);
    }
    roots_known(p, why);
}

static void take_notification(struct peer *p, const struct rpc_message *m)
{
    if (same(m->method, "notifications/initialized")) {
        p->initialized = true;
        ask_roots(p);
    } else if (same(m->method, "notifications/roots/list_changed"))
        ask_roots(p);
    else if (same(m->method, "notifications/cancelled"))
        cancel(p, json_object_get(m->params, "requestId"));
}

static void take_response(struct peer *p, const struct rpc_message *m)
{
    const char *id = json_string_value(m->id);
    if (p->roots_end && id && strcmp(id, ROOTS_ID) == 0)
        take_roots(p, m->result);
    for (struct call *c = p->calls; c && id; c = c->next) {
        if (!c->question[0] || strcmp(c->question, id) != 0)
            continue;
        bool accepted = same(value_text(m->result, "action", NULL), "accept");
        c->question[0] = 0;
        work_answer(c->task, accepted && json_is_true(json_object_get(json_object_get(m->result, "content"), "allow")));
        return;
    }
}

/* Whether this version of the protocol has batches. */
static bool has_batches(const struct peer *p)
{
    bool first = same(p->version, "2024-11-05"), second = same(p->version, "2025-03-26");
    return first || second;
}

static size_t take_one(struct peer *p, const json_t *one, uint64_t tag)
{
    struct rpc_message m;
    struct rpc_fault f;

    if (rpc_message(one, &m, &f) < 0) {
        send_fault(p, tag, f.id, f.code, f.text);
        return 1;
    }
    if (m.kind == RPC_REQUEST)
        take_request(p, &m, tag);
    else if (m.kind == RPC_NOTIFICATION)
        take_notification(p, &m);
    else
        take_response(p, &m);
    return m.kind == RPC_REQUEST;
}

json_t *peer_read(const struct peer *p, struct str text, struct rpc_fault *ret)
{
    json_t *root = rpc_read(text, ret);
    if (json_is_array(root) && !has_batches(p)) {
        *ret = (struct rpc_fault){.code = RPC_INVALID, .text = "this protocol version does not support batches"};
        value_free(&root);
    }
    return root;
}

size_t peer_take(struct peer *p, const json_t *root, uint64_t tag)
{
    size_t n = 0;
    if (!json_is_array(root))
        return take_one(p, root, tag);
    for (size_t i = 0; i < json_array_size(root); i++)
        n += take_one(p, json_array_get(root, i), tag);
    return n;
}

void peer_refuse(struct peer *p, const struct rpc_fault *f, uint64_t tag)
{
    send_fault(p, tag, f->id, f->code, f->text);
}

void peer_too_long(struct peer *p, struct str id, uint64_t tag)
{
    char why[128];
    auto_value json_t *value = id.n ? value_read(id, why, sizeof why) : NULL;
    send_fault(p, tag, rpc_is_id(value) ? value : NULL, RPC_INVALID, "a message has at most 32 MiB");
}

bool peer_has_boxes(const struct peer *p)
{
    return p->sessions;
}
