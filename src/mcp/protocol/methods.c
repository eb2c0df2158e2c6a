/*
 * The methods of the protocol that a client may call, by a table of names. What takes time is handed to a worker, so
 * that the server always answers.
 */
#include "base/hash.h"
#include "mcp/protocol/peer.h"

#include <stdio.h>
#include <stdlib.h>

#include "mcp/protocol/resource.h"
#include "mcp/tools/tool_resource.h"
#include "mcp/protocol/watch.h"
#include "mcp/protocol/call.h"

struct rpc_request {
    struct peer *peer;
    const struct rpc_message *m;
    uint64_t tag;
};

static int bad(const struct rpc_request *q, enum rpc_code code, const char *text)
{
    peer_fault(q->peer, q->tag, q->m->id, code, text);
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
    peer_send(q->peer, q->tag, j->out, true);
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
    p->version = peer_versions[0];
    for (size_t i = 0; i < sizeof peer_versions / sizeof *peer_versions; i++) {
        if (same(wanted, peer_versions[i]))
            p->version = peer_versions[i];
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
    for (unsigned i = 0; level && i < sizeof peer_levels / sizeof *peer_levels; i++) {
        if (same(level, peer_levels[i])) {
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

/* A number for the session that a call is about: client and name. */
static uint64_t affinity_of(const struct peer *p, const struct tool *t, const char *session)
{
    session = session ? session : "default";
    const uint64_t h = hash64(hash64(HASH64, p->name, strlen(p->name)), session, strlen(session));
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
    if (what.n > MCP_MAX_HELD - p->server->held) {
        free(c);
        return bad(q, RPC_INTERNAL, "the arguments of all calls in progress would exceed 256 MiB; wait for one to end");
    }
    p->server->held += what.n;
    *c = (struct call){.held = what.n,
                       .peer = p,
                       .tool = t,
                       .tag = q->tag,
                       .began = loop_now(),
                       .waits = BUF(2 * (size_t)MCP_MAX_MESSAGE)};
    c->lane = lane_of(t, arguments);
    c->watches = watches ? strdup(watches) : NULL;
    c->affinity = affinity_of(p, t, session);
    bool later = p->roots_end || (c->lane && call_lane_busy(p, c->lane));
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
        peer_failure(p, q->tag, q->m->id, fails);
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

void peer_request(struct peer *p, const struct rpc_message *m, uint64_t tag)
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
