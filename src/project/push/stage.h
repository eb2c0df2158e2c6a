/*
 * What those have in common who keep the commits of a push, or of a branch that is to move, until hooks have judged them: stage.c,
 * pull.c and at_once.c, all in a box of their own that has the repository as its working directory.
 */
#pragma once
#include "base/buf.h"
#include "git/gitpush.h"
#include "project/push/push.h"

#define STORE    PUSH_IN_BOX "/repo" /* the repository of what is judged */
#define MOVES    PUSH_IN_BOX "/moves"
#define UPSTREAM PUSH_IN_BOX "/upstream"
#define KNOWN    PUSH_IN_BOX "/known"  /* by which the list was made */
#define TIPS     "/run/repo-push/tips" /* in PUSH_IN_BOX, of what is no new commit; one word: it stands in lists */

enum { REFS_MAX = 64 << 20, COMMITS_MAX = 64 << 20 };

struct staging {
    const struct gitpush_rules *rules;
    struct push *push;
    bool moves;    /* of the repository itself: its box can write that, so only what STORE has counts */
    bool keeps;    /* KNOWN */
    bool is_cut;   /* STORE's history ends with the parents of what is new */
    char why[512]; /* what keeps a push from being carried out: a clause, or "" */
};
/* ---- asking.c ---- */

/* Sets `why`. False. */
bool stage_refuse(struct staging *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs git on `in`, with the repository `dir`; its output is appended to `out`. */
bool stage_ask(const char *const *argv, const char *dir, struct str in, struct buf *out);
bool stage_is_id(struct str s);
bool stage_has_line(struct str lines, const char *before, struct str id);
/* ---- stage.c ---- */

/* The commands of `moves`. */
bool stage_moves(struct staging *s, struct push *p);
/* A repository for the objects, which finds the others in the one that is pushed to. */
bool stage_store(struct staging *s);
/*
 * What the protected branches of the repository have: those commits count as judged. `upstream`: what the repository has fetched
 * that counts as accepted there; it is judged where it becomes the tip of a branch here, and nowhere else. Lines "^ID".
 */
bool stage_known(struct staging *s, struct buf *known, struct buf *upstream);
/* Of "COMMIT REF" lines writes `list`: "COMMIT REF TREE PARENTS" with "-" for none, and of each commit its message and its author. */
bool stage_describe(struct staging *s, struct str commits);

/* ---- pull.c ---- */

/*
 * Fills STORE, which has nothing yet and no alternates: with the edges and all that they contain, with what joins them to what is known,
 * and with what is new. Of `known` and `others` those are left that are there.
 */
bool stage_pull(struct staging *s, struct buf *known, struct buf *others);
/* Fills it with these two commits and what they contain. False: also if `id` comes after another than `old`. */
bool stage_pull_step(struct staging *s, struct str id, struct str old);
/* For the hooks history ends with the parents of what is new: STORE has no more. `parents`: a line for each. */
bool stage_cut(struct staging *s, struct str commits, struct str parents);

/* ---- refs.c: the branches of the working directory, from its files. A repository whose branches are in a reftable is not judged. */

/* Appends a line "ID REF " for each ref below `top`, and "ID REF OTHER" for one that is a name for another. */
bool refs_list(const char *top, struct buf *to);
/* What this branch is: an id; false: there is none, or it is another's name. */
bool refs_value(struct str ref, char id[80]);
