/*
 * Messages about a run: the line before, the sentences with remedies, the line after. No newline, no colour, no control
 * characters, because names come from inside the box.
 */
#pragma once
#include "base/buf.h"
#include "supervisor/run.h"
#include "plan/plan.h"

#define MAX_WORDS 4096

/* The text as one word of a shell's command line: in quotes if it needs them. */
void words_shell(struct buf *out, const char *text);
/* The warning before a command that runs without a box. */
void words_unsandboxed(const struct plan *plan, struct buf *out);
/* That the command shares the box around this one; leaves `out` empty if it does not. */
void words_around(const struct plan *plan, struct buf *out);
void words_header(const struct plan *plan, struct buf *out);
/* What of the image's ENTRYPOINT, WORKDIR and USER is not as docker run has it. `own`: the command is the image's own. */
void words_image_start(const struct plan *plan, bool own, struct buf *out);
/* The keys of other sandboxes' settings that cannot be honoured, and why; leaves `out` empty when there are none. */
void words_ignored(const struct policy *p, struct buf *out);
/* Their writable paths that do not exist, which the box cannot write then; leaves `out` empty when there are none. */
void words_missing(const struct policy *p, struct buf *out);
void words_closing(const struct box_result *r, struct buf *out);
/* Other errors of the command or its output; empty if there are none. */
void words_errors(const struct box_result *r, const char *command, struct buf *out);
/* The limit that ended the run; leaves `out` empty when none did. */
void words_limit(const struct box_result *r, const struct limits *l, struct buf *out);
/* What a box leaves: one line. */
void words_left(const struct left_behind *l, struct buf *out);
/*
 * `policy`: for the names that it guards; or NULL. `succeeded`: the command did, and is not told to go without the guard. Returns where in
 * `out` the remedy begins; out->n: it has none.
 */
size_t words_denial(const struct denial *d, const struct policy *policy, bool succeeded, struct buf *out);

/* How a session gets the option that such a sentence ends with: its own commands have none of the policy's. */
void words_in_session(const struct denial *d, const char *session, enum net_mode net, struct buf *out);

/* Appends `text` with control characters and invalid UTF-8 written as \xNN. */
void words_safe(struct buf *out, const char *text);
void words_duration(struct buf *out, uint64_t us);   /* 850 ms, 12.3 s, 4m10s */
void words_features(struct buf *out, features what); /* "private-ipc, fresh-proc" */
