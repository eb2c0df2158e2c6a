/*
 * Agents by name, as `pinfold claude` and `pinfold agent merge` use them: the program, the layer of this project, and the
 * options of the box. For the command line only (client/entry.h).
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

struct agent_begin {
    const char *name;
    const struct pinfold_option *options;        /* the person's */
    const struct pinfold_policy_options *policy; /* what else the person's policy is made of; or NULL */
    char *const *words;                          /* for the agent, NULL-terminated */
    bool unattended, look_only;                  /* look_only: nothing is made and nothing is copied */
    bool login;                                  /* a box in which it logs in, and does nothing else */
    bool
        session; /* for a project's session: what it needs there, without words; its program need not be on this machine */
    bool layered; /* the workspace gets a copy-on-write layer: only for the lines about it */
};
struct agent_begun {
    struct pinfold_option *options; /* ended by a NULL name; the person's go behind them */
    char **argv;                    /* NULL-terminated */
    const char *about;              /* lines: what is found and shared, for --explain */
    const char *first;              /* five lines, at the first start in this project; or NULL */
    const char *notes;              /* a sentence a line */
    int live;                       /* descriptor; held while the box runs, so that nothing is merged meanwhile */
    int keeper, up;                 /* the process that keeps the login, and its socket; -1 */
    const char *login_path;         /* of a login: the host's file that it is for */
    struct starting *login;         /* of a login; or NULL */
    struct starting *session;       /* for a session; or NULL: one that lives has it already */
    struct starting *carried;       /* whose sessions are carried back after the box; or NULL */
    void *mem;
};
/* Does one definition have that name, and can it be started by it? */
bool agent_start_known(const char *name);
/* The variables of the caller's that the definition passes (`pass`), for its program; false: there is no such agent. */
enum { AGENT_KEYS = 16, AGENT_KEY = 64 };
struct agent_keys {
    char program[AGENT_KEY], names[AGENT_KEYS][AGENT_KEY];
    size_t n;
};
bool agent_start_keys(const char *name, struct agent_keys *ret);
/* Is this option (a whole word, "--x" or "--x=y") the agent's own, although pinfold has one of that name? */
bool agent_start_owns(const char *name, const char *option);
/* Prepares one box for the agent. `ret` is freed with agent_start_end(), also after the box. */
int agent_start_begin(const struct agent_begin *ask, struct agent_begun *ret, struct pinfold_error *error);
void agent_start_end(struct agent_begun *b);
/* The logins of a project's session, which lives as long as process `pid`: kept by a process beside it that ends with it. */
int agent_start_keep(struct agent_begun *b, int pid, struct pinfold_error *error);
/* After the box: a sentence about its login, if the last renewal failed; else NULL. Until agent_start_end(). */
const char *agent_start_after(struct agent_begun *b);
/*
 * What boxes of this project have changed of the agent's settings. `takes` (NULL-terminated names from the list, or NULL):
 * these are written into the host's files. `ret`: text to print, malloc()ed.
 */
int agent_start_merge(const char *name, const char *const *takes, char **ret, struct pinfold_error *error);
/*
 * The settings that the definition has for boxes of this project, written into their layer where there are none (agent_init.c). `auth`:
 * the host's login over theirs; `force`: also over what is there. Of the host nothing is written. `ret`: text to print, malloc()ed.
 */
int agent_start_init(const char *name, bool auth, bool force, char **ret, struct pinfold_error *error);
/* Settings that another tool has kept, in the directory `from`, into that layer where it has none; no login. `ret`: text to print, malloc()ed. */
int agent_start_adopt(const char *name, const char *workspace, const char *from, char **ret,
                      struct pinfold_error *error);
/* Removes the login from that layer; until agent_start_init() with `auth` no box of this project gets it. */
int agent_start_logout(const char *name, char **ret, struct pinfold_error *error);
