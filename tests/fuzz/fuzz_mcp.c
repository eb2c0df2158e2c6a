/*
 * What a client sends: bytes as lines, lines as JSON-RPC, requests as the protocol has them, arguments of tools, HTTP heads
 * and chunks. Whatever comes, each answer is one JSON-RPC message, no request is answered twice, and nothing is called that
 * was not asked for. Workers are not started: work_start() is here.
 */
#include <errno.h>

#include "fuzz.h"
#include "mcp/config.h"
#include "mcp/transport/http.h"
#include "mcp/protocol/peer.h"
#include "mcp/transport/pipe.h"
#include "mcp/tools/tool_resource.h"

struct task {
    struct task *next;
    struct task_events events;
    void *ctx;
};
static struct task *tasks;
static size_t started, answered, asked;

struct task *work_start(struct work *w, struct str call, bool rests, uint64_t affinity,
                        const struct task_events *events, void *ctx)
{
    char why[128];
    auto_value json_t *c = value_read(call, why, sizeof why);
    const char *name = value_text(c, "tool", NULL);
    const struct tool *t = same(name, "resources/list")   ? &tool_resource_list
                           : same(name, "resources/read") ? &tool_resource_read
                           : same(name, "resources/look") ? &tool_resource_look
                                                          : mcp_tool_find(name);
    (void)w;
    (void)affinity;
    MUST(c && t && t->rests == rests);
    /* What reaches a worker has been checked. */
    MUST(tool_check(t, json_object_get(c, "arguments"), why, sizeof why));
    struct task *task = calloc(1, sizeof *task);
    *task = (struct task){.next = tasks, .events = *events, .ctx = ctx};
    tasks = task;
    started++;
    return task;
}

static void drop(struct task *t)
{
    struct task **at = &tasks;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free(t);
}

void work_cancel(struct task *t)
{
    drop(t);
}
void work_answer(struct task *t, bool yes)
{
    (void)t;
    (void)yes;
}
int janitor_begin(struct janitor *j, const char *instance)
{
    (void)j;
    (void)instance;
    return 0;
}
void janitor_forget(struct janitor *j, const char *client)
{
    (void)j;
    (void)client;
}

static void sent(void *ctx, uint64_t tag, struct str message, bool last)
{
    char why[128];
    (void)ctx;
    (void)tag;
    answered += last;
    if (!message.n)
        return;
    auto_value json_t *m = value_read(message, why, sizeof why);
    MUST(m && same(value_text(m, "jsonrpc", NULL), "2.0") && !memchr(message.p, '\n', message.n));
    MUST(!json_object_get(m, "result") || !json_object_get(m, "error"));
}

static void line(void *ctx, struct str text)
{
    struct peer *p = ctx;
    size_t before = started;
    MUST(!memchr(text.p, '\n', text.n));
    struct rpc_fault f;
    auto_value json_t *root = peer_read(p, text, &f);
    if (!root)
        peer_refuse(p, &f, STR(""), 1);
    asked += root ? peer_take(p, root, 1) : 1;
    MUST(started - before <= RPC_MAX_BATCH);
    /* Some of what runs says something and ends. */
    for (struct task *t = tasks, *next; t; t = next) {
        next = t->next;
        if ((text.n + (size_t)(t->ctx != NULL)) % 3 == 0)
            continue;
        t->events.say(t->ctx, SAY_ERROR, STR("x\n\"\xff"));
        t->events.progress(t->ctx, STR("y"));
        if (text.n % 2) {
            t->events.question(t->ctx, STR("?"), (uint32_t)text.n % 3);
            continue;
        }
        t->events.changed(t->ctx);
        if (text.n % 7 == 0)
            t->events.fault(t->ctx, RPC_NO_RESOURCE, STR("z\"\n"));
        else if (text.n % 5)
            t->events.result(t->ctx, STR("{\"content\":[]}"));
        else
            t->events.lost(t->ctx);
        drop(t);
    }
    (void)peer_tick(p, UINT64_MAX / 2);
}

static void too_long(void *ctx, struct str id)
{
    peer_too_long(ctx, id, 1);
    asked++;
}

static void talk(const uint8_t *data, size_t size, bool hello)
{
    static const char first[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-03-26\","
        "\"capabilities\":{\"elicitation\":{}}}}\n";
    static const struct mcp_options options = {.quiet = true};
    struct server server = {.place = {.options = &options, .instance = "mcp-1-1-1"}};
    server.asker.d.fd = -1;
    struct peer *p = peer_new(&server, "fuzz", sent, NULL);
    struct lines l = {.max = 4096};

    started = answered = asked = 0;
    if (hello)
        lines_take(&l, STR(first), line, too_long, p);
    /* In pieces, as a pipe brings them. */
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + (size_t)data[at] % 64;
        if (n > size - at)
            n = size - at;
        lines_take(&l, (struct str){(const char *)data + at, n}, line, too_long, p);
    }
    MUST(answered <= asked);
    peer_free(p);
    MUST(!tasks);
    buf_free(&l.in);
}

static bool inside(struct str part, struct str whole)
{
    return !part.p || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void heads(struct str in)
{
    struct mcp_http_head h;
    int n = http_head(in, &h);
    MUST(n < 0 ? n <= -400 && n >= -505 : (size_t)n <= in.n);
    if (n <= 0)
        return;
    MUST(inside(h.method, in) && inside(h.target, in) && inside(h.host, in) && inside(h.session, in) && h.method.n);
    MUST(!h.chunked || !h.has_length);
    (void)http_accepts(h.accept, "text/event-stream");
    (void)same_secret(h.authorization, "secret");
    if (http_is_here(h.host)) /* then it begins with a name of this machine */
        MUST(h.host.n >= 5);
    (void)http_origin_is_here(h.origin);
    struct str rest = str_skip(in, (size_t)n);
    size_t before = rest.n;
    auto_buf struct buf body = BUF(1u << 16);
    int r = http_chunks(&rest, &body, 1u << 12);
    MUST((r == 0 || r == 1 || r == -400 || r == -413) && rest.n <= before && body.n <= 1u << 12);
    /* The same in two pieces is the same. */
    auto_buf struct buf again = BUF(1u << 16);
    struct str half = {in.p + n, before / 2};
    int first = http_chunks(&half, &again, 1u << 12);
    if (first == 0) {
        size_t taken = before / 2 - half.n;
        struct str whole = {in.p + (size_t)n + taken, before - taken};
        MUST(http_chunks(&whole, &again, 1u << 12) == r);
        MUST(r < 0 || str_eq(buf_view(&again), buf_view(&body)));
    }
}

static bool shorter(void *ctx, const char *server, const char *place, const char *text, struct buf *to)
{
    size_t *calls = ctx;
    MUST(server && place);
    ++*calls;
    buf_put(to, text, strlen(text) / 2);
    return text[0] == '/';
}

static bool nothing(void *ctx, const char *server, const char *place, const char *text, struct buf *to)
{
    (void)ctx;
    (void)server;
    (void)place;
    (void)text;
    (void)to;
    return false;
}

/* An agent's settings: without replacements they come out as they are, and what comes out with some is read again. */
static void settings(struct str in, enum config_format format)
{
    size_t first = 0, second = 0;
    const struct config_walk replace = {shorter, &first}, again = {shorter, &second}, look = {nothing, NULL};
    auto_buf struct buf out = BUF(1u << 22), twice = BUF(1u << 24), as_is = BUF(1u << 22);
    char why[160];
    int r = config_servers(format, in, &replace, &out, why, sizeof why);
    MUST(r == -EBADMSG || (r >= 0 && (size_t)r <= first));
    if (r < 0)
        return;
    MUST(config_servers(format, in, &look, &as_is, why, sizeof why) == 0 && str_eq(buf_view(&as_is), in));
    MUST(config_servers(format, buf_view(&out), &again, &twice, why, sizeof why) >= 0 && first == second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] == 'h')
        heads((struct str){(const char *)data + 1, size - 1});
    else if (data[0] == 'j' || data[0] == 'o')
        settings((struct str){(const char *)data + 1, size - 1}, data[0] == 'j' ? CONFIG_JSON : CONFIG_TOML);
    else
        talk(data + 1, size - 1, data[0] != 'n');
    return 0;
}
