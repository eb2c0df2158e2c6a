/* One tool call, in its worker process: arguments in, a result out; meanwhile messages for user and client. */
#pragma once
#include <stdint.h>
#include "mcp/mcp.h"
#include "mcp/protocol/value.h" /* before what has base/json.h */
#include "mcp/protocol/answer.h"

/* Frames between the protocol process and a worker: a head, then `n` bytes. */
enum frame_type {
    FRAME_CALL = 1, /* to the worker: a JSON object, see job_read() */
    FRAME_ANSWER,   /* to the worker: '1' or '0' */
    FRAME_SAY,      /* from it: a level (one byte), then a sentence for the client's log */
    FRAME_DENIED,   /* a refusal as JSON, for the same */
    FRAME_PROGRESS, /* what it is doing */
    FRAME_QUESTION, /* milliseconds (4 bytes; 0: the server's default), then a question to the user; to be answered */
    FRAME_CHANGED,  /* the list of sessions has changed */
    FRAME_FAULT,    /* no result, but a protocol error: a code (4 bytes), then a sentence; the last frame of a call */
    FRAME_RESULT,   /* the result as JSON; the last frame of a call */
    FRAME_RESTED    /* after that, if the tool rests: it accepts calls again */
};
struct job_frame {
    uint32_t type, zero;
    uint64_t n;
};

enum say_level { SAY_DEBUG, SAY_INFO, SAY_NOTICE, SAY_WARNING, SAY_ERROR };

struct job_place { /* shared by all calls; created before the first worker */
    const struct mcp_options *options;
    struct pinfold_policy *policy;
    /* Options of boxes that stay, for which nobody can answer network questions: without --ask. Otherwise the same. */
    const struct pinfold_policy_options *kept_options;
    struct pinfold_policy *kept;
    const char *unusable; /* why there is no policy: what every call answers; NULL */
    char instance[80];    /* owner of this instance's names (owner.h) */
};

/* Where the caller of a tool can say an option of the policy: in the call, in session_start, or only the person at the server's start. */
enum tool_offers { OFFERS_SERVER, OFFERS_CALL, OFFERS_SESSION };

struct mcp_job {
    const struct job_place *place;
    int socket;
    unsigned number; /* of the call, for lines to the user */
    const char *tool;
    enum tool_offers offers;
    const json_t *arguments;
    const char *client; /* owner of the sessions; one for stdio, an HTTP session's id */
    bool can_ask;       /* the client can ask the user */
    bool failed;        /* the result is an error that the model should see */
    bool words_alone;   /* `text` says why, whatever `structured` has: it may be no whole value */
    bool keeps;         /* it concerns a box that stays */
    int fault;          /* a JSON-RPC error code: there is no result, `text` is the reason; 0: none */
    bool hears;         /* refusals were told as they happened, `denied` of them */
    unsigned denied;
    bool bare;             /* `structured` is the whole result, not that of a tool */
    struct buf text;       /* what a model reads */
    struct buf structured; /* the same as a JSON object, or empty */
    const char *picture;   /* the media type of a picture or sound to show besides (mime_content()); NULL: none */
    struct buf pixels;     /* its bytes */
    /* Freed once the answer is sent. */
    struct pinfold_result *result;
    struct pinfold_policy *policy;
};

/* Prints a line for the user: "pinfold: [3] run: sentence". */
void job_tell(const struct mcp_job *j, const char *sentence);
void job_say(const struct mcp_job *j, enum say_level level, const char *sentence);
void job_denied(const struct mcp_job *j, struct str json); /* an entry of the client's log about a refusal */
void job_progress(const struct mcp_job *j, const char *sentence);
/* True if the user says yes within `patience_ms` (0: the server's default). False also if nobody can be asked. */
bool job_ask(const struct mcp_job *j, const char *question, uint32_t patience_ms);
/* Sets a failure as the result. */
void job_fail(struct mcp_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets a protocol error in place of a result. */
void job_fault(struct mcp_job *j, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sets this JSON as the result; `json` is empty afterwards. */
void job_bare(struct mcp_job *j, struct buf *json);
/* Reports that sessions have started or ended. */
void job_changed(const struct mcp_job *j);
/* Appends untrusted text for a user: control characters become \xNN. */
void words_of(struct buf *out, struct str text);

/* Sends and receives whole frames, blocking; 0 or -errno. */
int frame_send(int socket, enum frame_type type, struct str bytes);
int frame_receive(int socket, uint32_t *ret_type, struct buf *to);

/* Sends the result. */
int job_finish(struct mcp_job *j);
