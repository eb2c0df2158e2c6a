/*
 * Judges a new content of a git configuration file against the old one, key by key.
 *
 * Keys pass that cannot name a program: branches, remotes over plain transports, the user's name, what git itself
 * writes into a new repository. All other keys are *protected*: they may be in the new content only as they were in the
 * old one, unchanged and in the same order; they may not be added, changed or removed. The list of what passes is
 * closed: a key that a future git adds is protected until somebody has reviewed it.
 *
 * Pure: takes bytes, returns a verdict and a sentence.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum gitconfig_kind {
    GITCONFIG_REPOSITORY, /* .git/config, config.worktree, configuration of a submodule's repository */
    GITCONFIG_MODULES,    /* .gitmodules */
    /* State of an operation in progress (gitstate.c): a todo list, options of a cherry-pick, the strategy of a
       rebase. */
    GITCONFIG_TODO,
    GITCONFIG_OPTIONS,
    GITCONFIG_STRATEGY,
    GITCONFIG_APPLY,     /* options of git apply, when `git am` continues */
    GITCONFIG_CONFLICTS, /* MERGE_RR: conflicts whose solutions git records (rerere), by path */
    GITCONFIG_NUMBER,    /* how far a rebase or `git am` is: a shell's prompt shows it */
    GITCONFIG_REFS,      /* refs that the end of a rebase writes */
    GITCONFIG_INDEX      /* gitindex.c: names what `git restore` writes */
};
enum gitconfig_kind gitconfig_kind_of(struct str path);

#define GITCONFIG_MAX_BYTES (1u << 20)
#define GITINDEX_MAX_BYTES  (64u << 20) /* some 500,000 files */

struct gitconfig_ask {
    enum gitconfig_kind kind;
    struct str old_text, new_text;
    struct str directory; /* canonical path of the directory that holds the file; for core.worktree */
    struct str root;      /* canonical path of the writable tree around it; empty: nothing is in it */
};

/* 0: it may replace the old content. -EACCES: it may not; -EBADMSG: git could not parse the new content, so neither
   could we. `why` (or NULL) gets a clause that names key and reason. An unreadable old content counts as empty. */
int gitconfig_judge(const struct gitconfig_ask *ask, struct buf *why);
/* The same for all kinds (gitstate.c). */
int git_judge(const struct gitconfig_ask *ask, struct buf *why);

/* Whether a content has nothing protected, so that it may be removed, moved or created with its directory. */
bool gitconfig_inert(enum gitconfig_kind kind, struct str text, struct str directory, struct str root);

/* One variable, as git would pass it to its callbacks. */
struct gitconfig_entry {
    struct str key;   /* "section.name" or "section.Sub.Section.name": section and name in lower case */
    struct str value; /* unquoted; p == NULL if there is no "=" (true) */
    unsigned line;
    size_t at, end; /* the bytes of the text after "=", up to and including the end of the line */
};
/* Calls `each` for every variable in order until it returns non-zero, and returns that; -EBADMSG with ret_line. */
int gitconfig_parse(struct str text, int (*each)(void *ctx, const struct gitconfig_entry *e), void *ctx,
                    unsigned *ret_line);

/*
 * core.worktree, by which a submodule's repository (below X/.git/modules) says where the submodule's files are. It may
 * name a place below X, the work tree that the submodule belongs to: either relative, with no more ".." than lead to X,
 * so that it stays right when X moves, or absolute, as git writes it for a moment. This check is textual; module.c
 * considers links.
 */
bool gitconfig_is_worktree(const struct gitconfig_entry *e);
/* X; false: not the directory of a submodule */
bool gitconfig_owner(struct str directory, struct str root, struct str *ret);
bool gitconfig_worktree(struct str directory, struct str root, struct str value, struct buf *ret); /* puts the path */
/* Makes the absolute paths of submodules relative. 1, 0 if there are none, or -errno. */
int gitconfig_relative(struct str text, struct str directory, struct str root, struct buf *ret);
/* Names that make the directory they are in the root of a repository, of git and of others; NULL-terminated. */
extern const char *const repository_markers[];
/* gitref.c: the full ref in HEAD; the next ref in packed-refs; whether a ref's short name begins with "-". */
bool gitref_of_head(struct str text, struct str *ret);
bool gitref_next_packed(struct str *text, struct str *ret);
bool gitref_is_option(struct str name);
bool gitref_is_odd(struct str name); /* the same, or it is a replacement of an object (git-replace(1)) */
/* The text of a loose ref that is the id of an object and nothing else: no name of another ref, no second line. */
bool gitref_loose(struct str text, struct str *ret_id);
/* The next entry of packed-refs, in the one form that git writes: 1, 0 (the end), or -EBADMSG. `begins`: at the beginning of the file. */
int gitref_entry(struct str *text, bool begins, struct str *ret_id, struct str *ret_name);
/* It has neither white space nor control characters. */
bool gitref_is_plain(struct str ref);
/* Whether the entry of this name in a packed-refs from *old on has this id; *old moves on to it, or to the next one: both files are sorted,
   and what is not found is asked about. */
bool gitref_packed_is(struct str *old, struct str ref, struct str id);
/* reftable.c: calls `each` for every ref in a table, with its target if it is symbolic, until it returns non-zero, and
   returns that; -EBADMSG if the table is none, or has what git could read otherwise. */
typedef int gitref_each(void *ctx, struct str name, struct str target);
int gitref_table(struct str text, gitref_each *each, void *ctx);
/* 0, or -EACCES with a clause in `why` (or NULL): it names a path outside of the work tree, or in a repository. */
int gitindex_judge(struct str text, struct buf *why);
bool gitindex_leads_out(struct str path);
/* Resolves `path` against `base` (absolute, clean), by text only, into `out`. */
void gitconfig_follow(struct str base, struct str path, struct buf *out);
