/*
 * One call of a tool, in its worker process: arguments in, a result out, words for the person and the client meanwhile.
 */
#pragma once
#include <stdint.h>
#include "mcp/mcp.h"
#include "mcp/protocol/value.h" /* before what has base/json.h */
#include "mcp/protocol/answer.h"

/* Frames between the talking process and a worker: a head, then `n` bytes. */
enum frame_type {
    FRAME_CALL = 1, /* to the worker: a JSON object, see job_read()                 */
    FRAME_ANSWER,   /* to the worker: '1' or '0'                                     */
    FRAME_SAY,      /* from it: a level (one byte), then a sentence for client's log */
    FRAME_PROGRESS, /* what it is doing now                                          */
    FRAME_QUESTION, /* milliseconds (4 bytes; 0: the server's), one for the person; an answer comes */
    FRAME_CHANGED,  /* there are other sessions than before                          */
    FRAME_FAULT,    /* no result: an error of the protocol, a code (4 bytes), then a sentence: the last one */
    FRAME_RESULT,   /* the result as JSON: the last one of a call                    */
    FRAME_RESTED    /* after that, of a tool that rests: it takes calls again        */
};
struct job_frame {
    uint32_t type, zero;
    uint64_t n;
};

enum say_level { SAY_DEBUG, SAY_INFO, SAY_NOTICE, SAY_WARNING, SAY_ERROR };

struct job_place { /* what all calls share; made before the first worker */
    const struct mcp_options *options;
    struct pinfold_policy *policy;
    /* Of boxes that stay, which have nobody to put a question of the network to: without --ask. Otherwise the same. */
    const struct pinfold_policy_options *kept_options;
    struct pinfold_policy *kept;
    char instance[80]; /* names of this instance are its own (owner.h) */
};

struct mcp_job {
    const struct job_place *place;
    int socket;
    unsigned number; /* of the call, for the person's lines */
    const char *tool;
    const json_t *arguments;
    const char *client;    /* whose sessions are meant; one of stdio, an HTTP session's id */
    bool can_ask;          /* the client can put a question to the person */
    bool failed;           /* the result is an error that the model should see */
    bool keeps;            /* it is about a box that stays */
    int fault;             /* a code of JSON-RPC: there is no result, `text` says why; 0: none */
    bool bare;             /* `structured` is the whole result, not a tool's */
    struct buf text;       /* what a model reads */
    struct buf structured; /* the same as a JSON object, or empty */
    /* Freed when the answer is on its way. */
    struct pinfold_result *result;
    struct pinfold_policy *policy;
};

/* For the person: "pinfold: [3] run: sentence". */
void job_tell(const struct mcp_job *j, const char *sentence);
void job_say(const struct mcp_job *j, enum say_level level, const char *sentence);
void job_progress(const struct mcp_job *j, const char *sentence);
/* True when the person says yes, in `patience_ms` (0: the server's). False also when nobody can be asked. */
bool job_ask(const struct mcp_job *j, const char *question, uint32_t patience_ms);
/* The result is this failure. */
void job_fail(struct mcp_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* There is no result, but this error of the protocol. */
void job_fault(struct mcp_job *j, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The result is this, as it stands; `json` is empty afterwards. */
void job_bare(struct mcp_job *j, struct buf *json);
/* Sessions have begun or ended. */
void job_changed(const struct mcp_job *j);
/* Text from strangers on its way to a person: control characters become \xNN. */
void words_of(struct buf *out, struct str text);

/* Frames: whole, blocking; 0 or -errno. */
int frame_send(int socket, enum frame_type type, struct str bytes);
int frame_receive(int socket, uint32_t *ret_type, struct buf *to);

/* Sends the result. */
int job_finish(struct mcp_job *j);
