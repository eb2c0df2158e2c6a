/*
 * One client of the server: the protocol's requests, notifications, calls and questions. The transport gives it whole
 * messages and takes what it sends; it knows no socket.
 */
#include "mcp/protocol/peer.h"

#include <stdio.h>
#include <stdlib.h>

#include "mcp/protocol/roots.h"
#include "mcp/protocol/watch.h"
#include "mcp/protocol/call.h"

#define PROGRESS_MS 1000
#define ROOTS_ID    "pinfold-roots"

struct peer *peer_new(struct server *server, const char *name, peer_send_fn *send, void *ctx)
{
    struct peer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (struct peer){.server = server, .send = send, .ctx = ctx, .level = SAY_WARNING};
    snprintf(p->name, sizeof p->name, "%s", name);
    p->watch = (struct mcp_watch){.work = server->work, .client = p->name, .changed = peer_watched, .ctx = p};
    return p;
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
    for (size_t i = 0; i < sizeof peer_versions / sizeof *peer_versions; i++) {
        if (same(version, peer_versions[i]))
            return true;
    }
    return false;
}

bool peer_busy(const struct peer *p)
{
    return p->calls != NULL;
}

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
        peer_failure(p, c->tag, c->id, buf_cstr(&text));
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
                call_send_progress(c, now);
            left = (int)(c->told + PROGRESS_MS - now);
        } else if (!c->question[0]) {
            continue;
        }
        if (next < 0 || left < next)
            next = left;
    }
    return next;
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
    peer_send(p, 0, &out, false);
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
        peer_fault(p, tag, f.id, f.code, f.text);
        return 1;
    }
    if (m.kind == RPC_REQUEST)
        peer_request(p, &m, tag);
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

void peer_refuse(struct peer *p, const struct rpc_fault *f, struct str id, uint64_t tag)
{
    char why[128];
    auto_value json_t *value = id.n ? value_read(id, why, sizeof why) : NULL;
    peer_fault(p, tag, rpc_is_id(value) ? value : NULL, f->code, f->text);
}

void peer_too_long(struct peer *p, struct str id, uint64_t tag)
{
    const struct rpc_fault f = {.code = RPC_INVALID, .text = "a message has at most 32 MiB"};
    peer_refuse(p, &f, id, tag);
}

bool peer_has_boxes(const struct peer *p)
{
    return p->sessions;
}
