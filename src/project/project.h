/*
 * A project: a directory for which `pinfold init` has written a policy. Looks at the directory, writes that policy, and
 * names the session in which people work there. It opens no box: cli/project.c does that by pinfold.h.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define PROJECT_FILE    ".pinfold/policy.yaml" /* below the project */
#define PROJECT_SEED    ".agent-sandbox"  /* the directory of the tool agent-sandbox, which counts as a project, too */
#define PROJECT_HISTORY "/commandhistory" /* in the box; kept with the session */
#define PROJECT_MARKER  "/.agent-sandbox" /* in the box: what other tools know a sandbox by */
#define PROJECT_PREFIX  "agent-sandbox-"  /* with it names of projects' sessions begin */
#define PROJECT_ENTRIES 60000u            /* names that are looked at, at most */
#define PROJECT_NAME    128               /* bytes of a session's name, with the NUL */

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
    const char *file, *word, *name;
    uint16_t port;
    bool own;
};
extern const struct project_server project_servers[]; /* ended by a NULL file */
enum { PROJECT_SERVERS = 32 };

/* What was found; it borrows the tables' texts and owns nothing. */
struct project_seen {
    bool signs[PROJECT_SIGNS], servers[PROJECT_SERVERS]; /* by their places in the tables */
    unsigned entries;                                    /* names that were looked at */
    bool cut;                                            /* there are more */
    bool git, bare, seed, precommit, github, env;
};

/*
 * Looks at the directory `dir`, six levels deep, and reads the files that the tables name, 64 KiB of each. Follows no link.
 * Leaves out what tools generate (node_modules, target, .git ...). 0, or -errno when `dir` itself cannot be read.
 */
int project_look(int dir, struct project_seen *ret);
/* Puts the policy for it into `out`: a text of our own words, no byte of it from the project. */
void project_policy(const struct project_seen *seen, struct buf *out);
/* Languages and package managers as a list for people: "Python (pip), Rust (cargo)"; "" if none is known. */
void project_words(const struct project_seen *seen, struct buf *out);

struct project_done {
    char moved[64]; /* where --force put the policy that was there, below the project; "" */
    bool ignored;   /* .gitignore got a line */
};
/*
 * Writes PROJECT_FILE in `dir`, and the line for backups in its .gitignore if it is a repository. All or nothing. `force`: a policy that
 * is there is moved to a backup; otherwise -EEXIST. Returns 0 or -errno with a sentence in `why`; `path` is for messages.
 */
int project_write(int dir, const char *path, const struct project_seen *seen, bool force, struct project_done *done,
                  char *why, size_t room);
/* Whether `path` is a project: its policy begins as ours do, or it has PROJECT_SEED. */
bool project_is(const char *path);
/*
 * The box of a project, the same for all who use it: by its policy its session is found again. `marker`: "" where there is no policy
 * to show as one.
 */
struct project_box {
    char session[PROJECT_NAME], workspace[PATH_MAX], marker[PATH_MAX + 64];
    const char *storage;
};
void project_box(const char *real, struct project_box *ret);
/* The session's name for a project: agent-sandbox-NAME-HASH, of its real path. NAME has only letters, digits, '.', '_' and '-'. */
void project_session(const char *real, char ret[PROJECT_NAME]);
