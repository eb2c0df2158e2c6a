/*
 * What those have in common who keep the commits of a push, or of a branch that is to move, until hooks have judged them: stage.c,
 * pull.c, step.c and at_once.c, all in a box of their own that has the repository as its working directory.
 */
#pragma once
#include <limits.h>

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

/* A git that was begun before it is known what to ask it: it waits for its standard input. */
struct ready_git {
    pid_t git;
    int in, out;
};
#define READY_NONE ((struct ready_git){.git = -1, .in = -1, .out = -1})
/* `out`: what it writes goes there; -1: to ready_end(). False: it could not be begun; ready_end() is due nevertheless. */
bool ready_begin(const char *const *argv, const char *dir, int out, struct ready_git *ret);
/* Little enough for a pipe, and there is no more. */
bool ready_say(struct ready_git *a, struct str text);
/* Whether it has ended well. What it still says is appended to `out`, or nobody's if that is NULL. */
bool ready_end(struct ready_git *a, struct buf *out);

/* Sets `why`. False. */
bool stage_refuse(struct staging *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs git on `in`, with the repository `dir`; its output is appended to `out`. */
bool stage_ask(const char *const *argv, const char *dir, struct str in, struct buf *out);
bool stage_is_id(struct str s);
bool stage_has_line(struct str lines, const char *before, struct str id);
enum { LIST_WORDS = 4 };
/* Cuts a line of the list: COMMIT REF TREE PARENTS. */
bool stage_cut_line(char *line, char *ret[LIST_WORDS]);
/* Which commit it is about, for whoever reads what its hooks say. */
void stage_say_commit(const char *commit);

/* ---- stage.c ---- */

/* The commands of `moves`. */
bool stage_moves(struct staging *s, struct push *p);
/* A repository for the objects, which finds the others in the one that is pushed to. `digits`: of an id. */
bool stage_store(struct staging *s, size_t digits);
/* Of an id of the commands. */
size_t stage_digits(const struct staging *s);
/*
 * What the protected branches of the repository have: those commits count as judged. `upstream`: what the repository has fetched
 * that counts as accepted there; it is judged where it becomes the tip of a branch here, and nowhere else. Lines "^ID".
 */
bool stage_known(struct staging *s, struct buf *known, struct buf *upstream);
/* Of "COMMIT REF" lines writes `list`: "COMMIT REF TREE PARENTS" with "-" for none, and of each commit its message and its author. */
bool stage_describe(struct staging *s, struct str commits);
/* The same by what git cat-file --batch has said of them, one after the other. */
bool stage_write_list(struct staging *s, struct str commits, struct str objects);
/* The next of these answers, which has to be that commit: its parents, a line for each, are appended to `ret`. */
bool stage_parents(struct str *objects, struct str id, struct buf *ret);

/* ---- pull.c ---- */

/*
 * Fills STORE, which has nothing yet and no alternates: with the edges and all that they contain, with what joins them to what is known,
 * and with what is new. Of `known` and `others` those are left that are there.
 */
bool stage_pull(struct staging *s, struct buf *known, struct buf *others);
/* How objects are packed there, by commits, and unpacked in STORE. */
extern const char *const stage_pack_revs[], *const stage_unpack_strict[];
/* For the hooks history ends with the parents of what is new: STORE has no more. `parents`: a line for each. */
bool stage_cut(struct staging *s, struct str commits, struct str parents);

/* ---- step.c: the usual move, whose gits are begun before it is known what is asked ---- */

enum { NOT_A_STEP = -1 };
struct move_step {
    struct ready_git here, there, pack, unpack; /* two say what is in the repository, and in STORE */
    size_t digits;                              /* of an id: for repositories of these they are */
    bool waits;                                 /* all have been begun */
    char ahead[2048];                           /* commits that STORE has with all that they contain, a line for each */
    char id[80], old[80], ref[PATH_MAX];        /* what moves, and what it is now; "": nothing */
    char parents[2048];                         /* of `id`, with commas */
    char before[2048];                          /* those of `old`, a line for each; "?": not known */
    bool steps_back;                            /* one of these is known as a parent of `old` alone */
};
/* Makes STORE, and fetches what the next commit will probably come after. */
void step_begin(const struct gitpush_rules *rules, struct move_step *st);
/* What push_check() returns for these moves; or NOT_A_STEP, and STORE is gone. `words`: as there. */
int step_judge(struct move_step *st, struct staging *s, char *const *words);
/* The same as NOT_A_STEP. */
void step_drop(struct move_step *st);

/* ---- refs.c: the branches of the working directory, from its files. A repository whose branches are in a reftable is not judged. */

/* Appends a line "ID REF " for each ref below `top`, and "ID REF OTHER" for one that is a name for another. */
bool refs_list(const char *top, struct buf *to);
/* What this branch is: an id; false: there is none, or it is another's name. */
bool refs_value(struct str ref, char id[80]);
/* The branch that is checked out; false: none. */
bool refs_head(char ref[PATH_MAX]);
