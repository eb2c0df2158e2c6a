/*
 * JSON-RPC messages: reads and checks one, begins and ends results, errors and requests. Only the envelope: what is
 * in it belongs to methods.c.
 */
#include "mcp/protocol/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "mcp/mcp.h"

static int rpc_wrong(struct rpc_fault *f, enum rpc_code code, const json_t *id, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int rpc_wrong(struct rpc_fault *f, enum rpc_code code, const json_t *id, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    f->code = code;
    f->id = id;
    return -EBADMSG;
}

/* Whether there are more values in it than any message needs. What is no JSON is counted somehow. */
static bool has_too_many(struct str text)
{
    size_t n = 0;
    bool in_text = false;
    for (size_t i = 0; i < text.n && n <= MCP_MAX_VALUES; i++) {
        const char c = text.p[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text)
            n += c == ',' || c == '[' || c == '{';
    }
    return n > MCP_MAX_VALUES;
}

json_t *rpc_read(struct str text, struct rpc_fault *ret)
{
    char why[200] = "";

    if (!utf8_valid(text)) {
        (void)rpc_wrong(ret, RPC_PARSE, NULL, "the message is not UTF-8");
        return NULL;
    }
    if (has_too_many(text)) {
        (void)rpc_wrong(ret, RPC_INVALID, NULL, "a message has at most %u values", MCP_MAX_VALUES);
        return NULL;
    }
    json_t *root = value_read(text, why, sizeof why);
    if (!root) {
        (void)rpc_wrong(ret, RPC_PARSE, NULL, "the message is not JSON: %s", why);
        return NULL;
    }
    size_t n = json_array_size(root);
    if (json_is_array(root) ? n < 1 || n > RPC_MAX_BATCH : !json_is_object(root)) {
        (void)rpc_wrong(ret, RPC_INVALID, NULL,
                        json_is_array(root) ? "a batch has 1 to 64 messages" : "a message is an object");
        value_free(&root);
    }
    return root;
}

bool rpc_is_id(const json_t *id)
{
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_MAX_ID);
}

int rpc_message(const json_t *one, struct rpc_message *ret, struct rpc_fault *fault)
{
    const char *version = value_text(one, "jsonrpc", NULL);
    const json_t *id = json_object_get(one, "id"), *method = json_object_get(one, "method");
    const json_t *params = json_object_get(one, "params");
    const json_t *known = rpc_is_id(id) ? id : NULL;

    *ret = (struct rpc_message){0};
    if (!json_is_object(one))
        return rpc_wrong(fault, RPC_INVALID, NULL, "a message is an object");
    if (!version || strcmp(version, "2.0") != 0)
        return rpc_wrong(fault, RPC_INVALID, known, "\"jsonrpc\" must be \"2.0\"");
    if (id && !known)
        return rpc_wrong(fault, RPC_INVALID, NULL, "an id is an integer or a string of at most %d bytes", RPC_MAX_ID);
    ret->id = id;
    if (!method) {
        const json_t *result = json_object_get(one, "result"), *error = json_object_get(one, "error");
        if (!id || !result == !error)
            return rpc_wrong(fault, RPC_INVALID, NULL,
                             "neither a request (\"method\") nor a response (\"id\" with "
                             "\"result\" or \"error\")");
        ret->kind = RPC_RESPONSE;
        ret->result = result;
        return 0;
    }
    ret->method = value_text(one, "method", NULL);
    if (!ret->method)
        return rpc_wrong(fault, RPC_INVALID, known, "\"method\" must be a string");
    if (params && !json_is_object(params))
        return rpc_wrong(fault, RPC_INVALID, known, "\"params\" must be an object");
    ret->params = params;
    ret->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
    return 0;
}

static void begin_message(struct json *j, struct buf *out)
{
    *j = JSON(out);
    json_object(j, NULL);
    json_text(j, "jsonrpc", "2.0");
}

void rpc_begin_result(struct json *j, struct buf *out, const json_t *id)
{
    begin_message(j, out);
    value_write(j, "id", id);
}

void rpc_begin_notification(struct json *j, struct buf *out, const char *method)
{
    begin_message(j, out);
    json_text(j, "method", method);
}

void rpc_begin_request(struct json *j, struct buf *out, const char *id, const char *method)
{
    begin_message(j, out);
    json_text(j, "id", id);
    json_text(j, "method", method);
}

void rpc_end(struct json *j)
{
    json_object_end(j);
}

void rpc_error(struct buf *out, const json_t *id, enum rpc_code code, const char *text)
{
    struct json j;
    begin_message(&j, out);
    value_write(&j, "id", id);
    json_object(&j, "error");
    json_int(&j, "code", code);
    json_text(&j, "message", text);
    json_object_end(&j);
    json_object_end(&j);
}
