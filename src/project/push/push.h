/*
 * A push to the remote `host`, in the box on the host's side that has the checkout's git directory as its working directory: commands
 * are read and judged here before a git sees them. stage.c takes a push in two parts, with the person's hooks between them.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "git/gitpush.h"
#include "project/branch.h"

/*
 * Where these boxes have what is theirs: in /run, which every box has empty, so that nothing has to be put together around it. Beside
 * what follows is this program, REMOTE_HERE.
 */
#define REMOTE_HERE "/run/.pinfold-remote" /* REMOTE_HELPER there; one word: it stands in lists */
#define PUSH_IN_BOX                                                                                                    \
    "/run/repo-push" /* what stage.c keeps of a push: `commands`, `list`, `commits`, and `repo` with its objects */
#define HOOKS_IN_BOX "/run/repo-hooks" /* the person's hooks, as they were at the start */
#define CHECK_IN_BOX "/run/repo-check" /* the commit that they judge */
#define MORE_IN_BOX  "/run/repo-more"  /* objects that the repository itself does not have */
#define START_IN_BOX "/run/repo-start" /* what else is known of the start: `upstream` */

enum { PUSH_PIECE = 65536, PUSH_COMMITS = 1000 /* that one push can have judged */ };
/* How the box of push_take() ends. */
enum push_taken { PUSH_ANSWERED = 0, PUSH_FAILED = 1, PUSH_STAGED = 40 };

/* How that of hooks_judge() ends: they passed the commit; it says what is wrong; they could not be run. */
enum hooks_ended { HOOKS_PASS = 0, HOOKS_FAILED = 91, HOOKS_CHANGE_FILES, HOOKS_CHANGE_MESSAGE, HOOKS_CANNOT = 95 };
/* And that of push_check(), which says why, if it is none of these nor PUSH_STAGED. */
#define CHECK_REFUSED 96

struct push {
    struct buf text; /* of the commands, and what was read behind them */
    size_t end;      /* of the commands */
    struct str wants;
    bool packs; /* objects follow */
};
#define PUSH_EMPTY ((struct push){.text = BUF(GITPUSH_MAX_BYTES + 8192)})
/* Reads all commands from `fd`. 1; 0: nothing is asked for; -errno: it is no push. */
int push_read(struct push *p, int fd);
/* Why it is refused, by the rules and by what the working directory has: NULL, or a clause. */
const char *push_judge(const struct push *p, const struct gitpush_rules *rules);

/* Why a command is not carried out; NULL: "refused with the others". */
typedef const char *push_reason(const void *ctx, const struct gitpush_command *c);
/* The answer of a git that carries out nothing. `unpack`: "ok", or what was wrong with the objects. */
void push_report(int fd, const struct push *p, const char *unpack, push_reason *why, const void *ctx);
/* Shows this text to who pushes, if the client can. */
void push_say(int fd, const struct push *p, struct str text);
/* What `push_judge` has to say to each command. */
push_reason push_refusal;

/* Starts git with these descriptors; -1: /dev/null. `dir`: its GIT_DIR, where replacements of objects do not count; NULL: as it finds it. */
pid_t push_git(const char *const *argv, const char *dir, int in, int out, int err);
int push_wait(pid_t git); /* its exit status */
/* Hands on what comes from the client to `to`, until it has ended or `git` has. */
void push_pass(pid_t git, int to);
/* Reads what the client still sends after it was told no. */
void push_drain(void);
/* Has receive-pack tell what there is. */
bool push_advertise(const struct gitpush_rules *rules);
/* Has receive-pack carry out the commands. The objects come from the descriptor `objects`; -1: from the client. Its exit status. */
int push_carry_out(const struct push *p, const struct gitpush_rules *rules, int objects);

/* All of that at once. Its return value is an exit status, as are those of the two of stage.c: */
int push_serve(const struct gitpush_rules *rules);
/* What to do with a push is asked for and kept in PUSH_IN_BOX: nothing is changed in the repository. An enum push_taken. */
int push_take(const struct gitpush_rules *rules);
/*
 * The same for branches of the working directory itself, which a box that can write it wants to move: PUSH_IN_BOX has `moves`, a line
 * "REF ID" for each, and `upstream`, what counts as accepted elsewhere. With PUSH_ANSWERED, `why` is there, a clause.
 */
int push_moves(const struct gitpush_rules *rules);
/*
 * NAME REAL HOOKS: the same for a box in which PUSH_IN_BOX is empty memory, with the moves on standard input, which may come much later
 * than the box; and if one commit is new, the hooks judge it there at once, behind a line "COMMIT SUBJECT". PUSH_STAGED: there are more,
 * each of which needs a box of its own; or nothing was asked.
 */
int push_check(const struct gitpush_rules *rules, char *const *words);
/* Waits for a byte on standard input, then carries out what is kept there, unless the repository has changed so that other commits would have
   to be judged. */
int push_land(const struct gitpush_rules *rules);

/* hooks.c: NAME REAL HOOKS COMMIT TREE REF PARENTS. An enum hooks_ended. */
int hooks_judge(char *const *words);
/* The same in two parts. The first starts to lay the work tree, and does not look at TREE. */
pid_t hooks_begin(char *const *words);
int hooks_end(char *const *words, pid_t filling);

/* A new file; the content of one. */
bool push_keep(const char *path, struct str text);
bool push_recall(const char *path, struct buf *to);
