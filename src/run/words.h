/*
 * What a person is told about a run: the line before, the sentences with remedies, the line after. No newline, no
 * colour, and nothing that a terminal would obey: names come from inside the box.
 */
#pragma once
#include "base/buf.h"
#include "supervisor/run.h"
#include "plan/plan.h"

#define MAX_WORDS 4096

/* The warning before a command that no box holds. */
void words_unsandboxed(const struct plan *plan, struct buf *out);
void words_header(const struct plan *plan, struct buf *out);
void words_closing(const struct box_result *r, struct buf *out);
/* What else went wrong with the command or its bytes; empty when nothing did. */
void words_errors(const struct box_result *r, const char *command, struct buf *out);
/* The limit that ended the run; leaves `out` empty when none did. */
void words_limit(const struct box_result *r, const struct limits *l, struct buf *out);
/* What a box leaves: one line. */
void words_left(const struct left_behind *l, struct buf *out);
/* `policy`: for the names that it guards; or NULL. */
void words_denial(const struct denial *d, const struct policy *policy, struct buf *out);

/* Appends `text` with control characters and invalid UTF-8 written as \xNN. */
void words_safe(struct buf *out, const char *text);
void words_duration(struct buf *out, uint64_t us);   /* 850 ms, 12.3 s, 4m10s */
void words_features(struct buf *out, features what); /* "private-ipc, fresh-proc" */
