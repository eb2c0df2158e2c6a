/*
 * Branch mode: boxes that work on branches of a project, each in a worktree, beside the person's own checkout.
 *
 *     STATE/pinfold-shelves/agent-sbx-repo-HASH/   the shelf of the checkout whose path has this hash
 *         shelf/             /repo-shelf in its boxes: repo/, the repository; worktrees/, one for each branch
 *         branches/WORD      "ready" or "making", and the branch's name; no box sees these
 *         remote/WORD/       /repo-host in the box of that branch (".bind": of the checkout itself): the socket of the remote `host`
 *         project, version, lock, making
 *
 * STATE is XDG_STATE_HOME or ~/.local/state. Every policy hides it but for what is mounted (policy/own_files.c). The repository is
 * made and changed by git in a box alone, the checkout is changed by git receive-pack in a box alone (host_remote.c).
 */
#pragma once
#include "pinfold.h"
#include "project/project.h"

#define SHELF_IN_BOX  "/repo-shelf"
#define REMOTE_IN_BOX "/repo-host"       /* the directory of its socket */
#define REMOTE_HELPER "/.pinfold-remote" /* this program: what git starts for the remote `host` */

enum { BRANCH_NAME_MAX = 240 };

/* Why git would not take it as a branch's name, or we not: NULL, or a clause. */
const char *branch_refused(const char *name);
/* The branch's name as one of a directory: '/' and white space become "__". */
void branch_word(const char *name, char ret[PROJECT_WORD]);

struct shelf {
    char name[64];      /* agent-sbx-repo-HASH */
    char top[PATH_MAX]; /* its directory */
};
/* Where it is, or would be. -errno with a sentence in `why`. */
int shelf_of(const char *real, struct shelf *ret, char *why, size_t room);
/* Makes checks/run-PID in it, for the checker of a box of this process; removes those of processes that are gone. `ret`: held by it. */
int shelf_scratch(const struct shelf *s, char path[PATH_MAX], int *ret, char *why, size_t room);
void shelf_scratch_end(const struct shelf *s, const char *path);
/* Makes it, and the directory of the socket for `word`; what is there is left as it is. */
int shelf_make(const struct shelf *s, const char *real, const char *word, char *why, size_t room);
/* Waits until nobody else changes it. A descriptor that holds it, or -errno. */
int shelf_lock(const struct shelf *s, char *why, size_t room);
/* Removes it with all that is in it. */
void shelf_remove(const struct shelf *s);

enum branch_state { BRANCH_NONE, BRANCH_MAKING, BRANCH_READY };
/* What is known of the branch whose word is this; `name` gets its real name. */
enum branch_state branch_read(const struct shelf *s, const char *word, char name[BRANCH_NAME_MAX + 1]);
int branch_write(const struct shelf *s, const char *word, enum branch_state state, const char *name);
void branch_forget(const struct shelf *s, const char *word);
/* Calls `each` for every branch of it, in order; non-zero ends that and is returned. */
int branch_each(const struct shelf *s, int (*each)(void *ctx, const char *word, const char *name), void *ctx);
/* Calls `each` for every shelf, with the project's path. */
int shelf_each(int (*each)(void *ctx, const struct shelf *s, const char *real), void *ctx);
/* Whether its worktree is there. */
bool branch_is_there(const struct shelf *s, const char *word);

/* provision.c. Each writes a sentence into `why` when it fails. `say`: lines for people while it lasts, or NULL. */
struct branch_ask {
    const char *real, *branch; /* the checkout's real path */
    bool renew;                /* also look what is new, when everything is there */
    bool force, look;          /* remove: also what is nowhere else; nothing, but see whether it could be removed */
    void (*say)(const char *line);
    char *why;
    size_t room;
    const struct pinfold_policy_options *said; /* what was asked for the branch's own box, or NULL: beside.h */
    const char *unpacked;                      /* provision: the branch comes from here (import/import.h); NULL */
};
/* Makes the branch's worktree, and the shelf, if they are not there. Does nothing if they are, but for `renew`. */
int branch_provision(const struct branch_ask *a);
/* Removes the branch and its worktree. -EBUSY: something would be lost. */
int branch_remove(const struct branch_ask *a);
/* Runs shelf.sh and these scripts behind it in a provisioning box of `box`. 0, -EBUSY or -EIO; `said`: what the last one has to say about it. */
struct branch_script {
    const struct branch_ask *ask;
    const struct project_box *box;
    const char *const *names; /* NULL-terminated */
    const char *how;
    void (*line)(void *ctx, const char *line); /* gets the lines that are none of shelf.sh's, or NULL */
    void *ctx;
};
int branch_script_run(const struct branch_script *s, char *said, size_t room);

/* host_remote.c: serves the remote `host` of a session as long as the process `pid`, its session daemon, lives; leaves that to a
   process of its own and returns. The policy that was asked for says what a push may do: `loaded`, or NULL. 0 also if one does already by the same
   rules; -EBUSY: by others. */
int host_remote_serve(const struct shelf *s, const char *real, const char *word,
                      const struct pinfold_policy_options *asked, struct pinfold_policy *loaded, int pid, char *why,
                      size_t room);
bool host_remote_is_served(const struct shelf *s, const char *word);
/* host_git.c: where the git directory is that a push to the checkout changes: the common one, by its real path. */
int host_git_directory(const char *real, char ret[PATH_MAX]);

/* The box in which git answers a connection: the git directory is its workspace, and all else of the checkout is hidden. */
struct push_rules;
struct host_git {
    int fd;                 /* the connection */
    int in;                 /* what it reads instead; 0: nothing else */
    const char *git, *real; /* the git directory; the checkout */
    const char *word;       /* what REMOTE_HERE does there */
    const char *stage;      /* shown as PUSH_IN_BOX, or NULL */
    const char *more;       /* shown as MORE_IN_BOX, or NULL */
    bool writes;            /* the repository, and then not the stage */
    const struct push_rules *rules;
};
/* This program as REMOTE_HERE (push.h), as an option of a mount. */
const char *host_program(void);
/* Its exit status, or -errno. */
int host_git_box(const struct host_git *h, struct pinfold_error *error);

/* moves.c: the program MOVES_PROGRAM (protocol/moves.h). */
bool moves_named(int argc, char **argv);
int moves_main(char **argv);

/* remote.c: the program REMOTE_HELPER. */
bool remote_named(const char *name);
int remote_main(int argc, char **argv);
/* The *.sh beside, as the build embeds them, by their names without the suffix; "exit 99" if there is none. */
const char *project_script(const char *name);
struct project_script {
    const char *name, *text;
};
extern const struct project_script project_scripts[];
