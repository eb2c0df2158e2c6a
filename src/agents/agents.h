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
/* How the agent itself is started, and what it keeps (`start` of a definition; docs/AGENTS.md). */
/* How a login is renewed on the host, by its owner there (login/, OAuth 2.0). Places are in the file: "a.b". */
struct agent_renew {
    const char *endpoint, *client, *client_at; /* where; as whom, unless a place says it */
    const char *ca;                            /* a file of certificates, in place of the system's */
    const char *access, *refresh, *id, *scopes, *when;
    const char **locks;         /* "{dir}/x", "{dir}.x/": what the agent's own processes hold meanwhile */
    const char **fields;        /* what else belongs to a login, for one that was made in a box */
    const char *expires;        /* when it ends, as in struct agent_kept; of that when the definition does not say */
    const char *program_word;   /* how the program's own word at the endpoint begins (OAuth's client_secret); or NULL */
    const char **program_files; /* where that is: patterns, from the program's directory */
    struct agent_renew *next;   /* another login in the same file */
    bool form;                  /* the request is a form, not JSON */
};
struct agent_kept {
    const char *name;   /* in the layer's directory */
    const char *from;   /* "~/...": where the host has it, when that is elsewhere; or NULL */
    const char **blank; /* JSON: texts that a box does not get ("a.b", "*.b", but not "!a.b"); NULL-terminated */
    const char **only;  /* JSON: mappings of which it gets the entry of its directory alone */
    const char **keys;  /* JSON: the top-level keys that are settings; NULL: all */
    const char *text;   /* what agent-init-config writes where there is none; or NULL */
    const char *since, *since_text; /* the same for programs from this version on, in its place; or NULL */
    const char *login_text;         /* what is in it where `pinfold login` begins; or NULL */
    const char *expires; /* JSON: when the login ends, in milliseconds or seconds since 1970, or a token that says it */
    struct agent_renew *renew; /* NULL: only the agent can */
    bool login;                /* not a setting: a box's own stays, the host's is never written */
    bool note;                 /* the agent's instructions: agent-init-config writes there where it runs */
    bool secret; /* holds a key that the box gets as it is, because the agent has no lesser one: said at the start */
};
/* How an agent names its directories for a project, when it does not derive that from the path alone: "{project}" in `shared`. */
struct agent_naming {
    const char *register_file; /* JSON: "projects", a mapping of paths to names */
    const char *below;         /* where the directories of these names are */
    const char *marker;        /* a file in each, with the path */
};
struct agent_layer {
    const char *at;           /* "~/...": in the box, and on the host unless `variable` says otherwise */
    const char *variable;     /* names the directory; set in the box */
    struct agent_kept *files; /* copied: what the box changes stays in the layer */
    size_t n_files;
    const char **shared;   /* the host's own, writable: sessions, histories; a "/" at the end: a directory */
    const char **apart;    /* directories in shared ones that stay in the layer */
    const char **installs; /* copied directories ("a/b/") that the agent itself fills; merge counts what is new there */
    struct agent_naming *project; /* or NULL */
    const char *sessions;         /* kept for all projects in one place: how those of this one are carried; or NULL */
};
struct agent_start {
    const char **command, **unattended, **places, **own_options, **env; /* NULL-terminated, or NULL */
    const char *install;
    const char **login;       /* words that log it in; NULL-terminated, or NULL */
    const char *login_port;   /* where its login is answered, on this machine; or NULL */
    const char **login_hosts; /* whose addresses a browser outside may open for it; NULL-terminated, or NULL */
    const char **login_env;   /* of that box, where a browser outside may be asked for: as `env` */
    struct agent_layer *layers;
    size_t n_layers;
    bool untried;
};
struct agent {
    const char *name, *title, *text, *response_text;
    struct agent_start start; /* no command: it cannot be started by name */
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
/*
 * Reads the person's own definition of that name, before the built-in ones; -ENOENT without a message if there is none. Set
 * once by who knows the directory.
 */
typedef int agent_own_reader(const char *name, struct arena *mem, const char **ret_file, struct str *ret,
                             struct err *e);
extern agent_own_reader *agent_own;
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

/*
 * The layers of a project (layer.c): what its boxes get of the agent's settings and login, and what they make of them. Of each
 * directory of the definition, open: the host's (-1: there is none), the boxes', and what was copied last, which no box can
 * reach. `files` are the host's, opened, or -errno. Work is done in a process that can reach nothing else.
 */
enum { AGENT_LAYERS_MAX = 4, AGENT_KEPT_MAX = 64 };
struct agent_layer_open {
    int host, box, seeds, files[AGENT_KEPT_MAX];
    const char **places; /* what is mounted in the layer: "a/b/" for a directory; made there. NULL-terminated or NULL */
};
struct agent_layers {
    const struct agent *agent;
    const char *directory; /* the project: the key that `only` leaves */
    struct agent_layer_open open[AGENT_LAYERS_MAX];
    bool no_logins;   /* none is brought: boxes of the project are logged out */
    bool force;       /* AGENT_IMPORT, AGENT_INIT: also over what is there */
    const char *note; /* AGENT_INIT: for the files that say so */
};
enum agent_layers_work {
    AGENT_BRING, /* the host's into the layer, unless a box has changed it. Answer: a sentence a line, about what was not */
    AGENT_LOGINS, /* the logins of it alone: the host's are newer */
    /* Answer: the login that a box has made by itself: which of the file's `renew`, a line; the file. -ENOENT: none has */
    AGENT_LOGIN,
    AGENT_IMPORT, /* the host's logins over the layer's. Answer: a sentence a line; -EBADMSG: one is no login */
    AGENT_INIT,   /* texts and notes of the definition, where there are none. Answer: likewise */
    AGENT_ADOPT, /* `files`, which a stranger made, into the layer where it has none, without logins. Answer: likewise */
    AGENT_LOGOUT, /* removes the layer's logins. Answer: likewise */
    /* Answer: what boxes have changed, a line each: FILE[:KEY], a tab, the change; of a whole file that is there a tab and the SHA-256 of
       the box's. Without logins */
    AGENT_CHANGES,
    AGENT_TAKE /* Answer: the number of the layer, a line; the name of the file in it, a line; the bytes that the host's
                      file gets when the change `name` (FILE or FILE:KEY) is taken over */
};
int agent_layers_do(const struct agent_layers *l, enum agent_layers_work work, const char *name, struct buf *ret,
                    struct err *e);

/*
 * Carries the conversations of a project from one side to the other (carry.c), where the agent keeps those of all projects in one place and
 * more in them than conversations: what belongs to `workspace`, and what the other side has not yet. Nothing is removed.
 */
struct agent_carrying {
    int from, to;          /* the agent's directory on either side */
    const char *workspace; /* without links */
    const char *shown;     /* where it goes, for people */
};
struct agent_carried {
    int no;
    unsigned large; /* sessions that are too large, and stay */
};
int agent_carry(const struct agent_carrying *ask, struct agent_carried *ret, struct err *e);
/* The same for those in a database (pinfold-sqlite, two of it). */
struct agent_database_carrying {
    int from, to;     /* directories */
    bool from_host;   /* whose database is only read */
    bool with_schema; /* the box has none yet: it gets the host's, without its rows */
    const char *name, *workspace;
};
int agent_database_carry(const struct agent_database_carrying *ask, agent_opener *open_program, struct err *e);

/*
 * Asks the owner of logins (pinfold-login) to renew the host's, if it ends within `ahead` seconds or an answer was left by an owner
 * that died; or to put `new_login`, a memfd, in its place. 0, with the time at which it ends (0: it does not say). Who asks may end
 * before the owner does: `stop` becomes readable, -ECANCELED. -EAGAIN: try again later; -ENOKEY, -EKEYREVOKED: a person has to log in.
 */
struct agent_owner_ask {
    const struct agent_renew *renew;
    const char *program_word; /* not of the person's: every copy of the program has the same; or NULL */
    const char *answer;       /* the name of an answer that is kept: each login of a file has its own */
    const char *shown, *name; /* the file, for people; and in the directory */
    int host, kept;           /* that directory; the owner's own, made for this login alone */
    int new_login, stop;      /* or -1 */
    int64_t ahead;
    agent_opener *open_program;
};
int agent_owner(const struct agent_owner_ask *ask, int64_t *ret_expires, struct err *e);

/* json.c, for layer.c: all work on texts in JSON. malloc()ed results; -EINVAL when a text is no JSON object. */
int agent_json_shown(const struct agent_kept *f, const char *directory, struct str host, char **ret, size_t *ret_n);
int agent_json_join(struct str base, struct str host, struct str box, char **ret, size_t *ret_n);
int agent_json_changes(const struct agent_kept *f, const char *name, struct str base, struct str box, struct buf *ret);
int agent_json_take(const struct agent_kept *f, const char *key, struct str base, struct str box, struct str host,
                    struct buf *ret); /* `key` NULL: all that was not removed. -ENOENT: no such change, or nothing was
                                         removed; -ENODATA: removed, which is not taken over */
bool agent_json_own_login(const struct agent_kept *f, struct str box);
/* Of `renew` the login that a file has: 0, 1 ...; -1: none that is renewed. */
int agent_json_which_login(const struct agent_kept *f, struct str box);
/* The name that a register (struct agent_naming) has for a directory, malloc()ed, or NULL; whether another directory has that name. */
char *agent_json_registered(struct str text, const char *directory);
bool agent_json_is_taken(struct str text, const char *name, const char *directory);
/* Seconds since 1970 at which the login ends; 0: it does not say. */
int64_t agent_json_expires(const struct agent_kept *f, struct str host);

/* sync.c, for layer.c: files in what was in a box's hands. */
enum { AGENT_FILE_MAX = 16 << 20 };
int agent_file_open(int dir, const char *name, bool follow);
int agent_file_read(int fd, char **ret, size_t *ret_n);                     /* malloc()ed; -EINVAL: no regular file */
int agent_file_put(int dir, const char *name, const char *bytes, size_t n); /* replaces it; mode 0600 */

/* helper.c: becomes a program, in a new process, with nothing of pinfold's but `fds` as 3, 4 ... `lone`: in a session of its own;
   otherwise it ends with its parent. */
enum { AGENT_NOT_STARTED = 127 };
_Noreturn void agent_become(int program, const int *fds, int n, const char *const *argv, const char *const *env,
                            bool lone);

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
