/*
 * Requests that workers carry out: their order, and what they say on their way to the client. Calls about one shell
 * come one after the other (a lane); all others run beside each other.
 */
#include "mcp/protocol/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcp/protocol/watch.h"
#include "mcp/protocol/call.h"
#include "mcp/tools/tool.h"

#define ASK_MS 300000 /* a person who does not answer says no */

const char *const peer_versions[4] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
const char *const peer_levels[8] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

static const struct task_events call_events;

bool call_start(struct call *c, struct str what)
{
    c->task = work_start(c->peer->server->work, what, c->tool->rests, c->affinity, &call_events, c);
    return c->task != NULL;
}

/* Whether one of this lane is at work. */
bool call_lane_busy(const struct peer *p, const char *lane)
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
void calls_go(struct peer *p)
{
    for (;;) {
        struct call *oldest = NULL;
        for (struct call *c = p->calls; c; c = c->next) {
            if (!c->task && c->waits.n && (!c->lane || !call_lane_busy(p, c->lane)))
                oldest = c;
        }
        if (!oldest || !call_start(oldest, buf_view(&oldest->waits)))
            return;
        buf_free(&oldest->waits);
    }
}

void call_free(struct call *c)
{
    struct peer *p = c->peer;
    bool held = c->task != NULL;
    p->server->held -= c->held;
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

void peer_send(struct peer *p, uint64_t tag, struct buf *message, bool last)
{
    if (buf_ok(message))
        p->send(p->ctx, tag, buf_view(message), last);
}

void peer_fault(struct peer *p, uint64_t tag, const json_t *id, enum rpc_code code, const char *text)
{
    auto_buf struct buf out = BUF(1u << 16);
    rpc_error(&out, id, code, text);
    peer_send(p, tag, &out, true);
}

/* A tool's result that says what went wrong: models see it, unlike a protocol error. */
void peer_failure(struct peer *p, uint64_t tag, const json_t *id, const char *text)
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
    peer_send(p, tag, &out, true);
}

/* ---- what a call says on its way */

/* `data` is text, or JSON if `is_json`. */
static void log_message(struct call *c, enum say_level level, const char *logger, struct str data, bool is_json)
{
    auto_buf struct buf out = BUF(1u << 21);
    struct json j;

    if (level < c->peer->level || level > SAY_ERROR)
        return;
    rpc_begin_notification(&j, &out, "notifications/message");
    json_object(&j, "params");
    json_text(&j, "level", peer_levels[level]);
    json_text(&j, "logger", logger);
    (is_json ? json_raw : json_str)(&j, "data", data);
    json_object_end(&j);
    rpc_end(&j);
    peer_send(c->peer, c->tag, &out, false);
}

static void call_say(void *ctx, enum say_level level, struct str sentence)
{
    log_message(ctx, level, "pinfold", sentence, false);
}

static void call_denied(void *ctx, struct str entry)
{
    log_message(ctx, SAY_WARNING, "pinfold.denied", entry, true);
}

void call_send_progress(struct call *c, uint64_t now)
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
    peer_send(c->peer, c->tag, &out, false);
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

void call_answered(void *ctx, bool yes)
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
    c->asked = (struct asked){.answer = call_answered, .ctx = c, .ends = ends};
    if (!buf_ok(&text) || !asker_ask(&c->peer->server->asker, &c->asked, buf_cstr(&text)))
        call_answered(c, false);
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
    peer_send(c->peer, c->tag, &out, false);
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
    peer_send(p, 0, &out, false);
}

void peer_watched(void *ctx, const char *uri)
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
    peer_fault(c->peer, c->tag, c->id, (enum rpc_code)code, buf_cstr(&text));
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
        peer_fault(c->peer, c->tag, c->id, r == -ENOENT ? RPC_NO_RESOURCE : RPC_INTERNAL,
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
    peer_send(c->peer, c->tag, &out, true);
    call_free(c);
}

static void call_lost(void *ctx)
{
    struct call *c = ctx;
    peer_fault(c->peer, c->tag, c->id, RPC_INTERNAL,
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
