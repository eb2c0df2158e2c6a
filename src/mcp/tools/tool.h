/*
 * A tool as a model sees it. JSON Schema, checks and documentation are generated from its table of arguments; options
 * of the policy come from pinfold_option_at().
 */
#pragma once
#include "mcp/workers/job.h"

enum argument_kind {
    ARGUMENT_TEXT,
    ARGUMENT_NUMBER, /* an integer from min to max */
    ARGUMENT_SWITCH,
    ARGUMENT_TEXTS,   /* an array of texts, at least `min` */
    ARGUMENT_MAP,     /* names to texts */
    ARGUMENT_OPTIONS, /* options of the policy, each with its schema */
    ARGUMENT_OPTIONS_BRIEF
};
struct tool_argument {
    const char *name;
    enum argument_kind kind;
    bool required;
    int64_t min, max;
    const char *help;
};

struct tool {
    const char *name, *title, *description;
    const struct tool_argument *arguments; /* ended by a NULL name */
    /* annotations: hints for clients that decide whether to ask */
    bool read_only, destructive, idempotent, open_world;
    bool gives_result;  /* structured: the one result schema */
    const char *output; /* the schema of another structured result, as JSON; NULL: see gives_result */
    bool rests;         /* after the answer its worker waits for child processes, and accepts no call meanwhile */
    bool in_order;      /* calls for one session run one after another, in order */
    bool sessions;      /* it may start something that must end with the instance */
    void (*work)(struct mcp_job *j);
};

const struct tool *mcp_tool_find(const char *name); /* NULL */
const struct tool *tool_at(size_t i);               /* NULL past the end */
bool tool_add(const struct tool *t);                /* adds one to the list; false: it is full */
extern const struct tool tool_begin;                /* tool_start.c: not in the list */
/* One entry of tools/list. */
void tool_write(struct json *w, const struct tool *t);
/* Checks the arguments; false with a message. `arguments` may be NULL. */
bool tool_check(const struct tool *t, const json_t *arguments, char *why, size_t room);
