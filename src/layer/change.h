/*
 * What a layer changes, and what is done with it: read (read.c), shown (patch.c, repo/words.c), applied and taken back (apply.c,
 * transact.c). Everything works on open descriptors; nothing found in a layer is executed, no link in it is followed.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "layer/object.h"

#define LAYER_PATH_MAX  4096              /* bytes of a relative path, with its NUL */
#define LAYER_DEPTH_MAX 256               /* directories above an entry */
#define LAYER_READ_MAX  ((size_t)1 << 30) /* of the memory that holds what was read */

/* A guarded name of the policy: relative, of one or more components. */
struct layer_guarded {
    const char *name;
    bool any_depth; /* otherwise at the top of the workspace and of every repository in it */
    bool deep;      /* and in all directories below these, but for other people's code (match/path.h) */
    bool pattern;   /* the last component is a pattern (match/glob.h) */
};

/* An object that apply or undo has put into the workspace: what the host must have changed to be in its way. */
struct ledger_entry {
    const char *path;
    struct layer_object now;
};
struct ledger {
    struct ledger_entry *entries; /* sorted by path */
    size_t n;
};

/* A layer between a stacked one and the workspace. */
struct layer_below {
    int upper, store;
    int64_t since;
    const char *id;
};

/* A layer and the workspace below it. The caller owns the descriptors. */
struct layer_trees {
    int upper;             /* upper/ of the layer, open for reading */
    int workspace;         /* the workspace, open for reading */
    int store;             /* the layer's own directory: journal, ledger and undo/ */
    int64_t since;         /* struct layer: what the host changed then or later is in the way */
    const char *id, *path; /* of the layer; of the workspace */
    const char *root;      /* of the whole workspace, where `path` is in it; or NULL */
    const struct layer_guarded *guarded;
    size_t n_guarded;
    /* What it stands on, the nearest first. What is in the way of their changes that have not landed is in conflict
       (stack/stack.h). */
    const struct layer_below *below;
    size_t n_below;
    const char *
        inside; /* of a repository inside of the workspace, which `workspace` is then: its path, with a slash; or NULL */
    const char *git; /* then: what its own directory is called, if not .git (a submodule's); or NULL */
    bool viewed;     /* `workspace` is what the box had below it (stack_view()), so nothing of `below` is in the way */
};

/* Of struct change: the host has written to this very file. */
#define CONFLICT_TOUCHED "the host changed it after the box began"
/* Whether it has is not known. */
#define CONFLICT_CLOCK "the clock was set back after the box began, so whether the host has changed it cannot be told"
/* It has perhaps moved another directory there. */
#define CONFLICT_ABOVE "the host changed the directories above it after the box began"

enum change_kind { CHANGE_ADDED = 1, CHANGE_EDITED, CHANGE_DELETED };
enum { /* what of an edited entry differs */
       CHANGED_CONTENT = 1,
       CHANGED_MODE = 2,
       CHANGED_TYPE = 4,
       CHANGED_ATTRIBUTES = 8, /* user.* or an ACL */
       CHANGED_OWNER = 16
};
enum { /* what a person is told first */
       ALARM_GUARDED = 1,
       ALARM_LINK_OUT = 2, /* a link that leads out of the workspace */
       ALARM_SPECIAL = 4,  /* neither file, directory nor link */
       ALARM_SETUID = 8,
       ALARM_EXECUTABLE = 16, /* executable, and was not there or not executable before */
       ALARM_GIT = 32,        /* below a repository's own directory */
       ALARM_LINK_PLACE = 64, /* a link in place of a directory, where a guarded name could lie, into .git or /proc */
       ALARM_SPELLING = 128,  /* a name, or below one, that some file systems take for a guarded one: never applied */
       ALARM_HOOKS = 256      /* a package.json: other keys from which hooks of git take commands (match/manifest.h) */
};
/* Only a path that is named itself may be applied with one of these. */
#define ALARMS_WAIT (ALARM_GUARDED | ALARM_SPECIAL | ALARM_SETUID | ALARM_LINK_PLACE | ALARM_HOOKS)

struct change {
    const char *path; /* relative to the workspace */
    enum change_kind kind;
    unsigned what, alarms;
    struct layer_object old, new;    /* in the workspace, in the layer */
    const char *old_link, *new_link; /* targets of symbolic links */
    const char *conflict;            /* why the host's state is in the way; NULL: it is not */
    bool unread;                     /* what is in it could not be read; `conflict` says why */
    size_t linked;                   /* index of the first change with the same inode in the layer, plus 1; 0: none */
    const char *part;                /* what is applied instead of the layer's: below the store; or NULL */
    bool merged;                     /* `part` has what the host made of it, too */
    uint32_t keep;                   /* the mode that it gets instead of the layer's; 0: that */
    bool born;                       /* it lies below a .git that the box has made */
};
struct changes {
    struct change *all; /* in the order of path_order(): a directory before what is in it */
    size_t n;
    bool interrupted; /* an apply or undo was interrupted and is to be finished first */
    /* Where the layer has something that the workspace will not be able to take before a layer below has landed, which is why */
    const char **covered, *covered_why;
    size_t n_covered;
};

/* ---- read.c ---- */

/* All changes of the layer against the workspace as it is now; in `mem`. Memory and time in proportion to them. */
int changes_read(const struct layer_trees *t, struct arena *mem, struct changes *ret, struct err *e);
/* The same, without what the layers below have to say to it (stack/marks.c). */
int changes_walk(const struct layer_trees *t, struct arena *mem, struct changes *ret, struct err *e);
/* The change of exactly this path, or NULL. */
const struct change *changes_find(const struct changes *all, const char *path);
/* Whether `path` is one of `paths` or below one; without any, always. `ret_exact`: it is one itself. */
bool path_wanted(const char *path, const char *const *paths, bool *ret_exact);
/* Makes a relative, clean path of one that a person gave: relative to `cwd` or absolute, in the workspace `top`.
   NULL with a sentence if it lies outside or is the workspace itself ("" then). */
const char *path_given(struct arena *mem, const char *top, const char *cwd, const char *given, struct err *e);

/* ---- ledger.c ---- */

int ledger_read(int store, struct arena *mem, struct ledger *ret, struct err *e);
/* Of a layer and those below it: what they have put there is none of the host's changes either. The latest of a path. */
int ledger_of(const struct layer_trees *t, struct arena *mem, struct ledger *ret, struct err *e);
/* By path, as ledger_find() needs it. */
void ledger_sort(struct ledger *l);
const struct ledger_entry *ledger_find(const struct ledger *l, const char *path);
/* Replaces the ledger in one step, with `more` entries that win over the ones of the same path. */
int ledger_write(int store, struct arena *mem, const struct ledger_entry *more, size_t n, struct err *e);

/* ---- repo/lfs.c; lfs_is_object() is in repo/names.c ---- */

/* Whether it is, by its name, a new object of Git LFS, or a directory of such. */
bool lfs_is_object(const struct change *c);
/* Copies those that are taken into the store and makes the copies what is applied; those whose name is not their hash are refused. */
struct apply_outcome;
int lfs_stage(const struct layer_trees *t, struct changes *all, bool *take, struct arena *mem,
              struct apply_outcome *ret, struct err *e);
void lfs_clear(const struct layer_trees *t);

/* ---- patch.c ---- */

/*
 * Puts a patch of the change that `git apply` accepts. 1: it has one; 0: a patch cannot express it (an empty directory, a
 * special file, permissions beyond the executable bit, attributes), *ret_why says what; or -errno.
 */
int patch_of(const struct layer_trees *t, const struct change *c, struct buf *out, const char **ret_why, struct err *e);
/* The same of a file that is `from` under another name. */
void patch_of_rename(const struct change *from, const struct change *to, struct buf *out);
/* A name as git writes it: in double quotes if a byte needs it, after `before`. And a file's mode. */
void patch_put_name(struct buf *out, const char *before, const char *path);
unsigned patch_mode(const struct layer_object *o);
/* Lines added and removed. 1; 0: not text; or -errno. */
int patch_count(const struct layer_trees *t, const struct change *c, uint64_t *added, uint64_t *removed);

/* ---- rename.c ---- */

/* Of those that `take` has a mark for: for each the change that its file came from or went to, an index plus 1; 0: none. In
   `mem`; 0 or -ENOMEM. */
int renames_find(const struct layer_trees *t, const struct changes *all, const bool *take, struct arena *mem,
                 size_t **ret);

/* ---- transact.c: apply and undo ---- */

enum op_kind {
    OP_CREATE = 1, /* nothing stands there */
    OP_REPLACE,    /* `old` stands there, of whatever type */
    OP_DELETE,     /* `old` goes; a directory must be empty by then */
    OP_MODE,       /* a directory gets permissions of `new`, and attributes of `from` unless that is "" */
    OP_PARENT      /* nothing; the directory is as the layer knows it, and entries of it change */
};
struct op {
    enum op_kind kind;
    const char *path, *from; /* `from`: its name below the source; in a record: of the old one that is kept */
    struct layer_object old, new;
    /* The object is a hard link of that op's; OP_MODE: of the directory that it has made, which gets its times, too.
       An index plus 1; 0: none. */
    size_t link;
    bool part; /* `from` lies below the store, not the source. Not in journals */
    /* What was judged: the target of a link, or a file's bytes. That lands, whatever a box that lives has made of it since. .p NULL: what
       the source has. Not in journals */
    struct str judged;
    bool merged;            /* the host's own change is in it: what it leaves is the host's, not ours */
    uint32_t keep;          /* the mode that it gets instead of that of `new`; 0: that. Not in journals */
    bool along;             /* of an undo: an object of a repository that goes as a whole. Not in journals */
    uint64_t ino;           /* of what was staged for it */
    struct layer_object at; /* what stands at the path afterwards */
    const char *why;        /* it was refused; NULL: done or to be done */
};
enum transaction_kind { TRANSACTION_APPLY = 1, TRANSACTION_UNDO };
enum journal_phase { PHASE_STAGE = 1, PHASE_ACT, PHASE_KEEP, PHASE_DONE };
struct transaction {
    enum transaction_kind kind;
    enum journal_phase phase;
    uint64_t number; /* of its record in undo/; of an undo: of the apply that is taken back */
    int64_t when;    /* seconds since 1970 */
    struct op *ops;
    size_t n;
    bool made_parent; /* WORKSPACE/.pinfold did not exist */
};

/* ---- journal.c: transactions as files ---- */

#define JOURNAL "journal"
#define UNDO    "undo"
int journal_write(int dir, const struct transaction *x, struct err *e);
/* -ENOENT without a sentence if there is none. */
int journal_read(int dir, struct arena *mem, struct transaction *ret, struct err *e);

/*
 * Performs the operations in their order, each completely or not at all: refused ones get a `why`. `source` is where the
 * new objects are copied from. Killed at any point, the next call of transaction_resume() completes it.
 * -EBUSY: another one is under way. The result of a refused operation is no error of the call.
 */
int transaction_run(const struct layer_trees *t, int source, struct transaction *x, struct arena *mem, struct err *e);
/* Only one at a time: a descriptor that holds the lock until it is closed; -EBUSY or -errno with a sentence. */
int transaction_lock(const struct layer_trees *t, struct err *e);
/* Completes what was interrupted: 1 if there was something, with *ret what it was; 0; or -errno. */
int transaction_resume(const struct layer_trees *t, struct arena *mem, struct transaction *ret, struct err *e);
/* The record of an apply in undo/; number 0: the last one. -ENOENT with a sentence if there is none. */
int transaction_record(const struct layer_trees *t, uint64_t number, struct arena *mem, struct transaction *ret,
                       struct err *e);
/* Numbers of the records in undo/, ascending; in `mem`. */
int transaction_list(const struct layer_trees *t, struct arena *mem, uint64_t **ret, size_t *ret_n, struct err *e);
/* Of all that is in undo/, also of what was left there when its record went. */
int transaction_numbers(const struct layer_trees *t, struct arena *mem, uint64_t **ret, size_t *ret_n, struct err *e);
/* Bytes on the disk of what one record keeps; `undo`: undo/, open. */
uint64_t transaction_bytes(int undo, uint64_t number);
/* Keeps the latest `keep` records, fewer if they are large, and removes the others and what is left of those that were taken back. */
int transaction_prune(const struct layer_trees *t, size_t keep, struct err *e);
/* Removes the record of this number, or what was left of one that did not come to be. */
void transaction_clear(int undo, uint64_t number);
bool transaction_pending(const struct layer_trees *t);

/* ---- choose.c ---- */

struct apply_refusal {
    const char *path, *why;
};
struct apply_outcome {
    const char **done;
    size_t n_done;
    struct apply_refusal *refused;
    size_t n_refused;
    uint64_t number;   /* of the record that undo takes back; 0: nothing was done */
    bool resumed;      /* an interrupted one was completed first */
    const char **said; /* sentences about the repository */
    size_t n_said;
};
/* Operations that follow those of the changes: the repository's, as one unit (repo/repo.h). */
struct apply_more {
    struct op *ops;
    size_t n;
    size_t parts; /* that were prepared for them, in REPO_PARTS */
};
/* -ENOMEM without a sentence. */
int outcome_refuse(struct arena *mem, struct apply_outcome *ret, const char *path, const char *why);
/* Which of `all` an apply of `paths` would take: a flag for each, in `mem`. What is wanted and may not be is refused in
   `ret`; with `repository` what lands as one unit is neither. */
int layer_choose(const struct layer_trees *t, const struct changes *all, const char *const *paths, bool repository,
                 struct arena *mem, bool **ret_take, struct apply_outcome *ret, struct err *e);
/* Marks the new directories above what `take` has marked, too. */
void choose_above(const struct changes *all, bool *take);
/* Why a change is not applied, whatever stands in the workspace; `exact`: a person has named this very path. NULL: it is. */
const char *layer_why_not(const struct change *c, bool exact);
/* Whether it is applied only if it is named itself, and then it is. */
bool change_waits(const struct change *c);

/* ---- apply.c ---- */

struct apply_ask {
    const char *const *paths;       /* at or below these; NULL-terminated, relative; NULL: all */
    const char *const *choices;     /* only these changes and hunks (hunk.c); NULL: whatever `paths` says */
    const struct layer_trees *base; /* the workspace, where another directory gets the changes; otherwise NULL */
    /* Called if the repository is wanted: what lands of it, and in `out` what does not; NULL: it does not land. */
    int (*repository)(void *ctx, const struct layer_trees *t, const struct changes *all, struct arena *mem,
                      struct apply_more *ret, struct apply_outcome *out, struct err *e);
    /* Called first: may take conflicts out of `all` (merge.c); or NULL. */
    int (*merge)(void *ctx, const struct layer_trees *t, struct changes *all, const char *const *paths,
                 struct arena *mem, struct apply_outcome *out, struct err *e);
    void *ctx;
};
/* Performs these operations alone, as an apply that undo takes back. */
int layer_apply_more(const struct layer_trees *t, const struct apply_more *more, struct arena *mem,
                     struct apply_outcome *ret, struct err *e);
int layer_apply(const struct layer_trees *t, const struct apply_ask *ask, struct arena *mem, struct apply_outcome *ret,
                struct err *e);
/* Takes back the apply `number` (0: the last one), at or below `paths` if any. */
int layer_undo(const struct layer_trees *t, uint64_t number, const char *const *paths, struct arena *mem,
               struct apply_outcome *ret, struct err *e);

/* ---- hunk.c: parts of text files ---- */

#define HUNKS_WORD 41         /* with its end */
#define HUNK_SHOWN (64 << 10) /* bytes of a hunk */

struct change_hunks {
    const char *whole; /* why it is applied whole; NULL: by hunks */
    const char **texts;
    size_t n;
};
/* The hunks of a change, in `mem`; 0 or -ENOMEM. */
int hunks_of(const struct layer_trees *t, const struct change *c, struct arena *mem, struct change_hunks *ret);
/* A word that stands for the change as both sides are now. */
void hunks_word(const struct change *c, char ret[HUNKS_WORD]);
/*
 * As layer_choose(), of ask->choices: a word for a whole change, or a word, a colon and numbers of hunks ("WORD:1,3"), for which a
 * file is made that hunks_clear() removes. A word of no change: something has changed meanwhile, and nothing is chosen.
 */
int hunks_choose(const struct layer_trees *t, struct changes *all, const struct apply_ask *ask, struct arena *mem,
                 bool **ret_take, struct apply_outcome *ret, struct err *e);
void hunks_clear(const struct layer_trees *t);
/* Makes `name` in `parts`: as the change's file in the workspace is, but with this content and a time of its own. */
int part_write(const struct layer_trees *t, const struct change *c, int parts, const char *name, struct str content);
/* Whether `path` is still what was `before`. */
bool part_unchanged(int top, const char *path, const struct layer_object *before);

/* ---- merge.c: texts that both sides have changed ---- */

enum merge_kind { MERGE_NOT, MERGE_CLEAN, MERGE_MARK }; /* only without conflicts; with these marked in the file */
struct layer_merge {
    struct change *c;
    const char *hash; /* of what the box began with, as git names it */
};
struct merges {
    struct layer_merge *all;
    size_t n;
};
/* Notes what the workspace's texts that the layer has edited are now: as long as the host has not changed them, that is what the
   box began with. Whether something was new. */
bool merge_note(const struct layer_trees *t, const struct changes *all);
/* The changes that could be merged: in conflict, texts on both sides, and what the box began with is known. `digits`: of the
   repository's hashes. */
int merges_find(const struct layer_trees *t, const struct changes *all, const char *const *paths, size_t digits,
                struct arena *mem, struct merges *ret, struct err *e);
/* Puts them into the archive `fd` for git. */
int merges_ask(const struct layer_trees *t, const struct merges *m, int fd, struct err *e);
/* Takes git's answer: a change that was merged is in conflict no more and has its merged file as `part`. */
int merges_take(const struct layer_trees *t, const struct merges *m, int answer, enum merge_kind kind,
                struct arena *mem, struct apply_outcome *out, struct err *e);
void merges_clear(const struct layer_trees *t);

/* ---- export.c ---- */

/* Copies both sides of the files and links that `take` has a mark for into the open directories `old` and `new`. What cannot be copied
   is refused in `ret`. */
int sides_export(const struct layer_trees *t, const struct changes *all, const bool *take, int old, int new,
                 struct arena *mem, struct apply_outcome *ret, struct err *e);

/* ---- elsewhere.c: apply to another directory ---- */

/* The store of the layer in `layer` for the directory `dir`, which is at `path`: a descriptor. */
int elsewhere_open(int layer, int dir, const char *path, struct err *e);
/* Where an apply was interrupted and is to be finished; NULL: nowhere but perhaps in the workspace. */
const char *elsewhere_unfinished(int layer, struct arena *mem);
/* As layer_choose(): of `all`, the changes of the other directory, what is a change of the workspace, too, with the same base. */
int elsewhere_choose(const struct layer_trees *base, const struct layer_trees *t, struct changes *all,
                     const char *const *paths, struct arena *mem, bool **ret_take, struct apply_outcome *ret,
                     struct err *e);
