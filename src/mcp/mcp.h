/*
 * `pinfold mcp`: a Model Context Protocol server that gives a model commands, files and agents in boxes.
 *
 * One process handles the protocol (pipe.c or http.c on loop.c) and never blocks. Tools run in worker processes
 * (work.c), because libpinfold's calls block and its objects belong to one thread. When a worker ends, its command
 * ends: to cancel a call the worker is killed, and the end of the protocol process ends them all.
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

#define MCP_MAX_MESSAGE (32u << 20)  /* bytes of one message from the client */
#define MCP_MAX_VALUES  (1u << 18)   /* in one message: an empty object is 3 bytes in it, and 240 in memory */
#define MCP_MAX_ANSWER  (256u << 20) /* and of one to it */
#define MCP_MAX_CALLS   256          /* of one client, waiting or running */
#define MCP_MAX_HELD    (256u << 20) /* bytes of all calls in progress */
#define MCP_MAX_WORKERS 32           /* calls in progress at a time */

struct mcp_options {
    const struct pinfold_policy_options *policy; /* of every box; a model cannot exceed it */
    const char *http;                            /* "127.0.0.1:8931", ":8931" or NULL: standard input and output */
    const char *http_token;                      /* NULL: a random one is created and printed */
    const char *const *http_origins;             /* in addition to those of this machine; NULL-terminated, or NULL */
    const char *const *agents; /* "codex", "kiro-cli:reviewer": each a tool; NULL-terminated, or NULL */
    const char *const *bases;  /* directories, with all below, in which agents may work; NULL-terminated */
    /*
     * Puts the real path of a directory into `real` (PATH_MAX), or returns false with a message: it does not exist, or
     * the path crosses a link that a box may have created. `what` begins the message.
     */
    bool (*judge)(const char *what, const char *path, char *real, char *why, size_t room);
    bool no_image_said; /* the image of `sandbox` is the default one */
    bool sandbox;       /* boxes are containers of an image: an agent works in /workspace there */
    uint32_t ask_ms;    /* how long a question to the user waits, in ms; 0: five minutes */
    bool quiet;
};

/* Serves until the client disconnects or a signal arrives; returns the exit status. Messages go to stderr. */
int mcp_serve(const struct mcp_options *o);
