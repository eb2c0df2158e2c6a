/*
 * Agents as data (profiles/agents/): where their login and state live on the host, what of it a session gets, and how they are
 * called. Definitions are compiled in as texts and read when one is asked for.
 *
 * A session's state is a directory of pinfold's own on the host, one subdirectory for each `state` of the definition; those
 * are mounted writable where the agent looks for them, so they are in the box's hands. The host's own are only read.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum agent_os { AGENT_LINUX, AGENT_MACOS, AGENT_OSES };

struct agent_file {
    const char *name;     /* in the state's directory */
    const char **refresh; /* databases: these tables each time; NULL-terminated */
    bool each_time;       /* files: copied at every start, otherwise when there is none yet */
};
struct agent_state {
    const char *name, *at;        /* of the subdirectory; "~/..." in the box */
    const char *from[AGENT_OSES]; /* "~/..." on the host, or NULL */
    struct agent_file *databases, *files;
    size_t n_databases, n_files;
};
struct agent {
    const char *name, *title, *text, *response_text;
    const char **command, **profile, **model, **unattended, **response, **resume,
        **prompt; /* NULL-terminated, or NULL */
    struct agent_state *state;
    size_t n_state;
    const char **read_only, **pass, **hosts, **env; /* env: NAME, VALUE, NAME, VALUE ... */
    const char **servers; /* settings files that say which MCP servers it starts: "~/...", or in its directory */
};

struct agent_text {
    const char *name, *text;
};
extern const struct agent_text agent_texts[]; /* generated, in order of names; ends with a NULL name */

/* Reads one definition; errors name `file` and the place in it. */
int agent_read(const char *name, const char *file, struct str text, struct arena *mem, struct agent *ret,
               struct err *e);
/* The one of that name; an error that names those that there are. */
int agent_find(const char *name, struct arena *mem, struct agent *ret, struct err *e);

struct agent_ask {
    const char *home;      /* of the box's user, as the box has it: what "~" stands for inside */
    const char *directory; /* where it works, as the box has it */
    const char *prompt, *profile, *model;
    const char *response; /* a file for its last answer, as the box has it; or NULL */
    bool resume, unattended;
};
/* The command line for a prompt; NULL-terminated, in `mem`. What the agent cannot be told is an error. */
int agent_argv(const struct agent *a, const struct agent_ask *ask, struct arena *mem, const char ***ret, struct err *e);
/*
 * What a box for it needs besides its policy, as flags of pinfold: name, value, name, value ..., NULL-terminated. `state` is
 * the session's directory, `host_home` the home whose configuration is shown read-only; `exists` says whether a path of the
 * host is there, `entries` what is in a directory (NULL-terminated names), `environ` is the caller's. A directory that has no place
 * for a state below it is shown entry by entry: within a read-only one an engine cannot make the place.
 */
struct agent_box {
    const char *state, *host_home, *home;
    bool (*exists)(const char *path);
    const char **(*entries)(const char *path, struct arena *mem);
    const char *const *environ;
};
int agent_flags(const struct agent *a, const struct agent_box *box, struct arena *mem, const char ***ret,
                struct err *e);

/*
 * Brings the host's login into a session's state, in processes of their own that can reach nothing else: databases are copied
 * whole at first, consistently while the host goes on writing, and later only their refreshed tables, in one transaction;
 * files likewise. The host's files are not changed. `open_sqlite` is asked for pinfold-sqlite, as a descriptor that may be
 * executed, where the host has a database.
 */
typedef int agent_opener(struct err *e);
struct agent_synced {
    struct buf first, refreshed, missing; /* names, a line each: "data/data.sqlite3" */
};
int agent_sync(const struct agent *a, enum agent_os os, const char *host_home, const char *state,
               agent_opener *open_sqlite, struct agent_synced *ret, struct err *e);
void agent_synced_free(struct agent_synced *s);

/* database.c and hear.c, for sync.c */
struct agent_dirs {
    int host, session; /* directories */
};
/* 0: refreshed; 1: copied for the first time; -ENOENT: the host has none. */
int agent_database(const struct agent_dirs *dirs, const struct agent_file *file, agent_opener *open_program,
                   struct err *e);
/* One message, until `patience` (ms) is over: its bytes, 0 at the end, -ETIMEDOUT or another -errno. */
int64_t agent_patience(void);
long agent_hear(int from, int64_t until, void *ret, size_t n);
