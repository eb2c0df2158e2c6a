/*
 * Judges what a push asks for: the commands that a client sends to git receive-pack, as pkt-lines (gitprotocol-pack(5)), before any
 * of its objects. Pure: takes bytes, returns a verdict and a sentence.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#define GITPUSH_MAX_BYTES (1u << 20) /* of all commands together */

/* One command: `old_id` is what the client has seen, a row of zeros for a new name or for none after it. */
struct gitpush_command {
    struct str old_id, new_id, ref;
    struct str wants; /* capabilities, in the first command */
};
enum gitpush_line {
    GITPUSH_MORE = 0, /* the text ends within a line */
    GITPUSH_COMMAND,
    GITPUSH_OTHER, /* "shallow" */
    GITPUSH_FLUSH  /* no command follows */
};
/* Cuts the next line off `text`. An enum gitpush_line, or -EBADMSG: git would not understand it either, or it is none of these. */
int gitpush_next(struct str *text, struct gitpush_command *ret);
/* What the owner of the repository allows (policy: git). Zeros: all branches and tags are protected. */
struct gitpush_rules {
    const char *const *protect; /* names of branches, the last component of each may be a pattern (match/glob.h) */
    size_t n_protect;
    bool allow_force, allow_delete; /* of what is not protected */
};
/*
 * Whether this branch is protected, or this tag: tags are if no branch is named. A pattern also protects what is below it, as release
 * does release/1, and names in another case.
 */
bool gitpush_protects(const struct gitpush_rules *rules, struct str ref);
/* Whether the branch or tag may be moved to commits that do not continue it. */
bool gitpush_may_rewrite(const struct gitpush_rules *rules, const struct gitpush_command *c);
/*
 * Why this command may not be carried out, whatever the repository says: NULL, or a clause. Only branches and tags may be pushed,
 * and no name that begins with "-" (gitref_is_option()); what is protected is not deleted. That a branch is continued is for git to see.
 */
const char *gitpush_refusal(const struct gitpush_rules *rules, const struct gitpush_command *c);
bool gitpush_wants(struct str wants, const char *capability);
bool gitpush_deletes(const struct gitpush_command *c);
/* Appends a pkt-line. With `band` (1 to 3) it is a packet of that side band. */
void gitpush_put(struct buf *out, unsigned band, struct str line);
