/*
 * A project: a directory for which `pinfold init` has written a policy. Looks at the directory, writes that policy, and
 * says what the session is in which people work there. cli/project.c starts it. branch.h is about branches.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "pinfold.h"

#define PROJECT_FILE       ".pinfold/policy.yaml" /* below the project */
#define PROJECT_SEED       ".agent-sandbox" /* the directory of the tool agent-sandbox, which counts as a project, too */
#define PROJECT_HISTORY    "/commandhistory" /* in the box; kept with the session */
#define PROJECT_MARKER     "/.agent-sandbox" /* in the box: what other tools know a sandbox by */
#define PROJECT_PREFIX     "agent-sandbox-"  /* with it names of projects' sessions begin */
#define PROJECT_POLICY_MAX (64 * 1024)       /* bytes of a policy that is written */
#define PROJECT_ENTRIES    60000u            /* names that are looked at, at most */
#define PROJECT_NAME       448               /* bytes of a session's name, with the NUL */
#define PROJECT_WORD       256               /* bytes of a name in a path, with the NUL */
#define PROJECT_HASH       33                /* of a path, with the NUL */
#define PROJECT_OPTIONS    256               /* of a session's policy, with the end */
#define PROJECT_AGENTS     16                /* in one session */
#define PROJECT_AGENT      64                /* bytes of an agent's name, with the NUL */
#define PROJECT_IMAGE      160               /* bytes of an image's name, with the NUL */

#define PROJECT_BASE_IMAGE "agent-sandbox-base" /* what images of projects begin with */

/* What a file says about its project. */
struct project_sign {
    const char *file; /* its name; "*.c": any with this suffix */
    const char *language, *manager;
    const char *set;              /* of hosts, "@npm"; NULL */
    const char *cache;            /* which built-in private cache serves it; NULL */
    const char *variable, *value; /* of the environment, for tools that would write outside of the project; NULL */
};
extern const struct project_sign project_signs[]; /* ended by a NULL file */
enum { PROJECT_SIGNS = 64 };

/* A word in a file that names a server: of the project (`own`), or one that it uses. */
struct project_server {
    char file[24], word[28], name[20];
    uint16_t port;
    bool own;
};
extern const struct project_server project_servers[]; /* ended by an empty file */
enum { PROJECT_SERVERS = 48 };

/* What was found; it borrows the tables' texts and owns nothing. */
struct project_seen {
    bool signs[PROJECT_SIGNS], servers[PROJECT_SERVERS]; /* by their places in the tables */
    unsigned entries;                                    /* names that were looked at */
    bool cut;                                            /* there are more */
    bool git, bare, seed, precommit, github, env, hooks;
    bool judges; /* git runs a hook here that judges commits, as far as the repository's own files say */
};

/*
 * Looks at the directory `dir`, six levels deep, and reads the files that the tables name, 64 KiB of each. Follows no link.
 * Leaves out what tools generate (node_modules, target, .git ...). 0, or -errno when `dir` itself cannot be read.
 */
int project_look(int dir, struct project_seen *ret);
/* The image of a project whose boxes are containers. */
struct project_container {
    const char *engine;       /* docker or podman; NULL: no containers */
    char name[PROJECT_IMAGE]; /* from project_image() */
};
/* Puts the policy for it into `out`: a text of our own words; of the project only letters and digits of its name, for the image's. */
void project_policy(const struct project_seen *seen, const struct project_container *container, struct buf *out);
/* Languages and package managers as a list for people: "Python (pip), Rust (cargo)"; "" if none is known. */
void project_words(const struct project_seen *seen, struct buf *out);

#define PROJECT_DOCKERFILE ".pinfold/Dockerfile" /* below the project; of its image, unless PROJECT_SEED has one */
struct project_done {
    char moved[64],
        moved_image[64]; /* where --force put the policy and the Dockerfile that were there, below the project; "" */
    bool image;          /* a Dockerfile was written */
    bool ignored;        /* .gitignore got a line */
};
/*
 * Writes PROJECT_FILE in `dir`, and the line for backups in its .gitignore if it is a repository. All or nothing. `force`: a policy that
 * is there is moved to a backup; otherwise -EEXIST. Returns 0 or -errno with a sentence in `why`; `path` is for messages.
 */
int project_write(int dir, const char *path, const struct project_seen *seen, const struct project_container *container,
                  bool force, struct project_done *done, char *why, size_t room);
/* Whether `path` is a project: its policy begins as ours do, or it has PROJECT_SEED. */
bool project_is(const char *path);
/*
 * The box of a project, the same for all who use it: by its policy its session is found again. Of a branch: the checkout is read-only,
 * and the commands start in the branch's worktree.
 */
struct project_box {
    char session[PROJECT_NAME], name[PROJECT_WORD], word[PROJECT_WORD];
    struct pinfold_option options[PROJECT_OPTIONS]; /* they point into this structure */
    size_t n_options, n_own;                        /* n_own: without those of agents, which are the last */
    char cwd[PATH_MAX];                             /* where its commands start, in the box; "": as the policy says */
    bool marked;     /* the policy, or the directory of agent-sandbox, is shown as PROJECT_MARKER */
    bool shares;     /* it has the shelf of its branches */
    char ports[512]; /* what agent-sandbox would publish, as options; "" */
    char texts[48][PATH_MAX + 64];
    size_t n_texts;
    char agents[64 << 10]; /* texts of agents' options */
    size_t agents_used;
};
/* `branch`: NULL for the checkout itself. `make`: the shelf's directories, if they are not there. -errno with a sentence in `why`. */
int project_box(const char *real, const char *branch, bool make, struct project_box *ret, char *why, size_t room);
/* The session's name for a project: agent-sandbox-NAME[-BRANCH]-HASH, of its real path. NAME has only letters, digits, '.', '_' and '-'. */
void project_session(const char *real, const char *branch, char ret[PROJECT_NAME]);
/* NAME of that, and the whole hash of the path. */
void project_word(const char *real, char ret[PROJECT_WORD]);
void project_hash(const char *real, char ret[PROJECT_HASH]);
/* Writes a sentence into `why`, ended by ": " and what the errno `no` means, unless that is 0 (then it is EINVAL). Returns -errno. */
int project_fail(char *why, size_t room, int no, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The name of its image, with the tag: the session's in the letters that engines take. */
void project_image(const char *real, char ret[PROJECT_IMAGE]);
/*
 * Agents that the project's boxes have (agents.c). Writes down what one needs there, as options ended by a NULL name; NULL: it has
 * none any more. Their names, sorted; and their options, put behind those of a box. -errno with a sentence in `why`.
 */
int project_agent_note(const char *real, const char *agent, const struct pinfold_option *options, char *why,
                       size_t room);
size_t project_agents(const char *real, char ret[PROJECT_AGENTS][PROJECT_AGENT]);
int project_agents_options(const char *real, struct project_box *b, char *why, size_t room);
/* The text of this script of the package.json in the working directory, with those that run before and after it, a line each; or nothing. */
void project_script_of(const char *name, struct buf *to);
