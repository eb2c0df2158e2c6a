/*
 * Judging a new content of a git configuration file against the old one, by key.
 *
 * Whatever may be said by somebody who is not trusted to name programs passes: branches, remotes over plain transports,
 * the user's name, what git itself writes when it makes a repository. Everything else is *protected*: it may stand in
 * the new content only where it stood in the old, unchanged and in the same order; it may be neither added nor changed
 * nor taken away. The list of what passes is closed: a key git learns tomorrow is protected until somebody has read
 * what it does.
 *
 * Pure: bytes in, a verdict and a sentence out.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum gitconfig_kind {
    GITCONFIG_REPOSITORY, /* .git/config, config.worktree, configuration of a submodule's repository */
    GITCONFIG_MODULES,    /* .gitmodules */
    /* What git goes on with (gitstate.c): a list of steps, options of a cherry-pick, the strategy of a rebase. */
    GITCONFIG_TODO,
    GITCONFIG_OPTIONS,
    GITCONFIG_STRATEGY
};
enum gitconfig_kind gitconfig_kind_of(struct str path);

#define GITCONFIG_MAX_BYTES (1u << 20)

struct gitconfig_ask {
    enum gitconfig_kind kind;
    struct str old_text, new_text;
    struct str directory; /* canonical path of the directory that holds the file; for core.worktree */
    struct str root;      /* canonical path of the writable tree around it; empty: nothing is inside */
};

/*
 * 0: may replace the old content. -EACCES: may not; -EBADMSG: git could not read the new content (so neither could we).
 * `why` (may be NULL) gets a clause that names key and reason. An old content that cannot be read counts as empty.
 */
int gitconfig_judge(const struct gitconfig_ask *ask, struct buf *why);
/* The same of every kind (gitstate.c). */
int git_judge(const struct gitconfig_ask *ask, struct buf *why);

/* Whether a content says nothing that is protected: it may be removed, moved or come into being with its directory. */
bool gitconfig_inert(enum gitconfig_kind kind, struct str text, struct str directory, struct str root);

/* One variable, as git would hand it to its callbacks. */
struct gitconfig_entry {
    struct str key;   /* "section.name" or "section.Sub.Section.name": section and name in lower case */
    struct str value; /* unquoted; p == NULL when the key stood without "=" (true) */
    unsigned line;
    size_t at, end; /* the bytes of the text behind "=", to the end of the line and with it */
};
/* Calls `each` for every variable in order until it returns non-zero, which is returned; -EBADMSG with ret_line. */
int gitconfig_parse(struct str text, int (*each)(void *ctx, const struct gitconfig_entry *e), void *ctx,
                    unsigned *ret_line);

/*
 * core.worktree, where a submodule's repository (below X/.git/modules) says where the submodule's files are. It may name
 * a place below X, the work tree that the submodule belongs to: by as many ".." as lead to X at most and then names, so
 * that it means the same when X moves, or absolute, as git writes it for a moment. This is by text alone; what links make of it
 * is module.c's.
 */
bool gitconfig_is_worktree(const struct gitconfig_entry *e);
bool gitconfig_owner(struct str directory, struct str root, struct str *ret); /* X; false: no submodule's directory */
bool gitconfig_worktree(struct str directory, struct str root, struct str value, struct buf *ret); /* puts the place */
/* The content with its absolute places of submodules made relative. 1, 0 when there are none, or -errno. */
int gitconfig_relative(struct str text, struct str directory, struct str root, struct buf *ret);
/* gitref.c: the full name that HEAD stands for; the next of packed-refs; one whose short name begins with "-". */
bool gitref_of_head(struct str text, struct str *ret);
bool gitref_next_packed(struct str *text, struct str *ret);
bool gitref_is_option(struct str name);
/* Lexically follows `path` from `base` (absolute, clean) into `out`. */
void gitconfig_follow(struct str base, struct str path, struct buf *out);
