/*
 * `pinfold mcp`: a Model Context Protocol server that gives a model commands, files and agents inside boxes.
 *
 * One process talks (pipe.c or http.c on loop.c) and never blocks; what a tool does happens in worker processes (work.c), because
 * libpinfold's calls block and its objects belong to one thread. So the end of a worker is the end of its command: cancelling
 * is killing one, and the end of the talking process, however it comes, ends all.
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

#define MCP_MAX_MESSAGE (32u << 20)  /* bytes of one message from the client */
#define MCP_MAX_ANSWER  (256u << 20) /* and of one to it                     */
#define MCP_MAX_CALLS   256          /* of one client that wait or run       */
#define MCP_MAX_WORKERS 32           /* calls at work at one time            */

struct mcp_options {
    const struct pinfold_policy_options *policy; /* what every box gets; nothing a model says exceeds it */
    const char *http;                            /* "127.0.0.1:8931", ":8931" or NULL: standard input and output */
    const char *http_token;                      /* NULL: one is made and said */
    const char *const *http_origins;             /* besides those of this machine; NULL-terminated, or NULL */
    const char *const *agents; /* "codex", "kiro-cli:reviewer": each a tool; NULL-terminated, or NULL */
    const char *const *bases;  /* directories agents may be sent to, and below; NULL-terminated */
    /*
     * The real path of a directory into `real` (PATH_MAX), or false with a sentence: where it is not there, or is named over a
     * link that a box may have made. `what` begins the sentence.
     */
    bool (*judge)(const char *what, const char *path, char *real, char *why, size_t room);
    uint32_t ask_ms; /* how long a question to the person waits; 0: five minutes */
    bool quiet;
};

/* Serves until the client is gone or a signal ends it; the exit status. Sentences go to stderr. */
int mcp_serve(const struct mcp_options *o);
