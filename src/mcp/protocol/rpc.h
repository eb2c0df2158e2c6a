/*
 * JSON-RPC 2.0, as MCP restricts it: ids are strings or integers and never null, params are objects. Pure. A text is
 * one message, or, where the protocol version has batches, an array of them.
 */
#pragma once
#include "mcp/protocol/value.h"

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600, /* not a request */
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

#define RPC_MAX_ID    1024 /* length of an id that is a string */
#define RPC_MAX_BATCH 64

struct rpc_message { /* borrows from the text's root */
    enum rpc_kind kind;
    const json_t *id; /* requests and responses */
    const char *method;
    const json_t *params; /* an object, or NULL */
    const json_t *result; /* of a response; NULL: an error */
};

struct rpc_fault {
    enum rpc_code code;
    const json_t *id; /* of the request, if it could be read; NULL: null */
    char text[256];
};

/* Parses a text; NULL with the fault. An array holds at least one and at most RPC_MAX_BATCH messages. */
json_t *rpc_read(struct str text, struct rpc_fault *ret);
bool rpc_is_id(const json_t *id); /* takes NULL */
/* Parses one message; 0, or -EBADMSG with the fault. */
int rpc_message(const json_t *one, struct rpc_message *ret, struct rpc_fault *fault);

/* Writing: between begin and end the caller writes exactly one value, named "result" or "params". */
void rpc_begin_result(struct json *j, struct buf *out, const json_t *id);
void rpc_begin_notification(struct json *j, struct buf *out, const char *method);
void rpc_begin_request(struct json *j, struct buf *out, const char *id, const char *method);
void rpc_end(struct json *j);
void rpc_error(struct buf *out, const json_t *id, enum rpc_code code, const char *text);
