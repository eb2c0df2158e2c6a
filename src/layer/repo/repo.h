/*
 * The repository at the top of a workspace (.git) as one unit: what the layer did to it (state.c), the question that a git in a box of
 * its own answers (bundle.c), and the operations by which objects, refs, HEAD, index and logs land, in this order (land.c). Those inside
 * of the workspace, and those of submodules (.git/modules/NAME), are units of their own (inside.c).
 *
 * Nothing of the layer is believed: refs are read as text and their names judged here; objects and the index are read by that git alone,
 * which gives back a pack and an index that it has made itself, as if it had fetched from a stranger.
 */
#pragma once
#include "layer/change.h"

#define REPO_DIR      ".git"
#define REPO_PARTS    "git"            /* below the store: what lands is prepared there; gone afterwards */
#define REPO_BASE     "base-index"     /* below the store: the index as the box began with it */
#define REPO_BASE_NEW "base-index.new" /* the same while it is copied */
#define REPO_BASE_DIR "base-git"       /* below the store: which directory .git was then */
#define REPO_HASH_MAX 64

/* ---- names.c ---- */

enum repo_part {
    REPO_NOT,     /* not below .git */
    REPO_UNIT,    /* lands with the others of its kind, or not at all */
    REPO_PASSING, /* git writes it in passing, and nothing is lost without it */
    REPO_OTHER    /* configuration, hooks, operations in progress: only if a person names this very path */
};
enum repo_part repo_part_of(const char *path);
/* Bytes before the ".git" of a repository inside of the workspace ("sub/.git/HEAD": 4); 0: it is at the top, or there is none. */
size_t repo_inside(const char *path);
/* Bytes of the directory of the repository that `path` is part of: 4 of ".git/HEAD", 8 of "sub/.git/HEAD", 14 of ".git/modules/a/HEAD",
   the repository of submodule a; 0: of none. */
size_t repo_dir(const char *path);
/* Whether it is, by its name, the directory of a repository: ".git", "sub/.git", ".git/modules/a". */
bool repo_is_dir(const char *path);
/* Whether it is one by which submodules' repositories are reached: ".git/modules", and what is below it and part of none. */
bool repo_is_way(const char *path);
/* Whether it is part of the repository at the top, and not of a submodule's below it. */
bool repo_is_top(const char *path);
/* The path below t->workspace and t->upper of what is ".git/..." here; in `room` if it is another one. */
const char *repo_named(const struct layer_trees *t, const char *path, char room[LAYER_PATH_MAX]);
/* object_parent() of such a path. */
int repo_parent(const struct layer_trees *t, int top, const char *path, const char **ret_name);
/* Whether a ref of the layer may have this name: as git wants it, in a namespace that lands, no option to a command. */
bool repo_ref_ok(const char *name);
/* Whether `text` is an object's name of `digits` digits. */
bool repo_is_hash(struct str text, size_t digits);
/* Whether `path` is one of the repository's objects: they stay when an apply is taken back. */
bool repo_is_object(const char *path);
bool repo_is_index(const char *path);

/* ---- state.c ---- */

struct repo_ref {
    const char *name;          /* "HEAD", "refs/heads/main" */
    const char *old, *new;     /* in the workspace and in the layer: a hash, or "ref: NAME"; NULL: there is none */
    const char *lands;         /* under which name; another one if ... */
    const char *beside;        /* the host moved it, or has it in use; NULL: its own name */
    const char *why;           /* it does not land; NULL: it does */
    struct layer_object loose; /* the workspace's file */
    bool packed;               /* the workspace has it in packed-refs */
};
struct repo_log {
    const char *ref, *path; /* "refs/heads/main", ".git/logs/refs/heads/main" */
    struct str text, old;
    struct layer_object was; /* the workspace's */
    bool gone;               /* the layer has none any more */
    bool touched;            /* the host has written it since */
    const char *why;
};
struct repo {
    size_t digits;               /* of its hashes; 0: the workspace has no repository */
    bool born;                   /* the box has made it; the workspace has none there */
    struct str config;           /* then: what it says of itself; not judged */
    struct layer_object dress;   /* owner and permissions of what lands */
    const char *why;             /* nothing of it can land; NULL: something can */
    struct repo_ref head, *refs; /* those that differ; head.name NULL: it is the same */
    size_t n;
    const char *head_text;           /* the workspace's HEAD */
    const char *head_old, *head_new; /* the commits that HEAD stands for; NULL: none */
    struct str packed;               /* the workspace's packed-refs */
    struct layer_object packed_object, head_object, index_object;
    bool index, index_touched, base; /* the layer has another one; the host wrote it since; the base is known */
    struct repo_log *logs;
    size_t n_logs;
    size_t n_objects;   /* files of objects that are new in the layer */
    const char **hosts; /* hashes that the workspace's refs have */
    size_t n_hosts;
};
/* What the layer `t` did to the repository of its workspace; in `mem`. */
int repo_read(const struct layer_trees *t, const struct changes *all, struct arena *mem, struct repo *ret,
              struct err *e);
static inline bool repo_differs(const struct repo *r)
{
    return r->head.name || r->n || r->index;
}
/* A file of the repository on one side, `top` of `t`; -ENOENT; its object in `ret_object` unless that is NULL. */
int repo_text(const struct layer_trees *t, int top, const char *path, struct arena *mem, struct str *ret,
              struct layer_object *ret_object);

/* Judges the configuration of one that the box has made, as that of one that a box writes into the workspace. 0; otherwise a clause in `why`. */
int repo_judge_born(const struct layer_trees *t, const struct repo *r, struct buf *why);
/* Takes user.name and user.email from a configuration; what it does not say stays. -EBADMSG: git could not read it. */
int repo_identity(struct str config, struct arena *mem, const char **name, const char **mail);

/* ---- inside.c ---- */

/* The repositories that the layer changes but the one at the top, by their own directories: "sub/.git", ".git/modules/a". New files that
   are called .git are left out. */
int repos_inside(const struct changes *all, struct arena *mem, const char ***ret, size_t *ret_n);
struct repo_within {
    const char *path;     /* "sub"; of a submodule's ".git/modules/a" */
    struct layer_trees t; /* as if it were the workspace; with descriptors of its own, until repo_leave() */
    struct changes all;   /* those of its .git */
    const char *why;      /* it cannot land; NULL: it can */
};
/* -ENOMEM. repo_leave() also then. Where the workspace has no such directory, it is an empty one. */
int repo_enter(const struct layer_trees *t, const struct changes *all, const char *git, struct arena *mem,
               struct repo_within *ret);
void repo_leave(struct repo_within *r);
/* A new file that is called .git. */
bool repo_is_file(const struct change *c);
/* Why it does not land; NULL: it says that the directory that holds it has the repository of a submodule, which is there or which `ops`
   makes, and that one says so, too. *ret_judged: its text, which is what may land. */
const char *repo_file_why_not(const struct layer_trees *t, const struct change *c, const struct op *ops, size_t n,
                              struct arena *mem, struct str *ret_judged);
/* Whether a directory is one with a guarded name, or below one; wherever the policy guards the name. */
bool repo_guarded(const struct layer_trees *t, const char *path);
/* Names what was made and said of it (in `out`, beyond `from`) by paths of the workspace. -ENOMEM. */
int repo_name_within(const struct repo_within *r, struct apply_more *more, const struct apply_outcome *from,
                     struct apply_outcome *out, struct arena *mem);

/* ---- base.c ---- */

/* The index that is to be copied; `from` -1: none. */
struct repo_base {
    int store; /* borrowed */
    int from, to;
    struct layer_object before;
    uint64_t at, room; /* bytes copied; what the file had before */
    char *piece;       /* room for what is being copied: of this layer alone, as a process may make several */
};
#define REPO_BASE_NONE ((struct repo_base){.store = -1, .from = -1, .to = -1})

/* Keeps what is known of the workspace's repository before a box begins, in the new layer `store`; nothing, if there is none.
   `below`: layers that the new one stands on; the box begins with the index of the first that has one. */
void repo_remember(int store, int workspace, const struct layer_below *below, size_t n_below, struct repo_base *ret);
/* Copies a piece of the index; false: there is nothing (more) to copy, and it is closed. */
bool repo_base_step(struct repo_base *b);
void repo_base_end(struct repo_base *b);

/* ---- bundle.c: what the git in a box is given and gives back ---- */

/* Appends a file to the archive `fd` (ustar), which tar_end() ends. */
int bundle_bytes(int fd, const char *name, struct str content);
int bundle_file(int fd, const char *name, int from, uint64_t size);
int bundle_end(int fd);
/* Puts all that git needs to judge what `r` says into the archive. */
int repo_ask(const struct layer_trees *t, const struct changes *all, const struct repo *r, int fd, struct err *e);

struct bundle_part {
    uint64_t at, size; /* in the answer */
};
/* The part of this name of an answer ("F NAME SIZE\n" and bytes, in the end "E\n"); false: it has none, or is damaged. */
bool bundle_find(int answer, const char *name, struct bundle_part *ret);
bool bundle_text(int answer, const char *name, size_t max, struct arena *mem, struct str *ret);

/* ---- words.c ---- */

/* A line for each thing that happened. `answer`: what git said about it (gitbox), or -1. */
void repo_put_words(const struct repo *r, int answer, struct arena *mem, struct buf *out);

/* ---- land.c ---- */

/* Operations that land the unit, and what is refused of it. Files are prepared in REPO_PARTS of the store. `name`: of the layer. */
int repo_land(const struct layer_trees *t, struct repo *r, int answer, struct arena *mem, struct apply_more *ret,
              struct apply_outcome *out, struct err *e);
void repo_parts_clear(const struct layer_trees *t);
