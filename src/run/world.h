/*
 * The caller's environment: home, pinfold's own directories, and careful reading of files that decide about policies.
 * No name service is used: home is $HOME, or from /etc/passwd if that is unset.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

struct world {
    const char *home;      /* absolute, clean, without links */
    const char *user_name; /* $USER or $LOGNAME; NULL when neither is set */
    const char *cwd;       /* absolute and real */
    const char *config;    /* $XDG_CONFIG_HOME/pinfold, else ~/.config/pinfold */
    const char *program;   /* this program's file; NULL if unknown */
    const char *state;     /* $XDG_STATE_HOME/pinfold, else ~/.local/state/pinfold; without links */
};

/* Fills in everything; the strings live in `mem`. `cwd` NULL: the process's. */
int world_look(struct arena *mem, const char *cwd, struct world *ret, struct err *e);
/* Where HOME is unset or relative, it becomes the home of /etc/passwd, if that names one: for programs of ours, as they begin. */
void world_settle_home(void);
/* The caller's home in /etc/passwd if HOME is another, else NULL. */
const char *world_other_home(struct arena *mem);
/* Only the state directory; for callers that load no policy. */
int world_state(struct arena *mem, const char **ret, struct err *e);

/* The record of what boxes could write (survey/written.h) in a state directory; NULL without one. */
const char *world_written(struct arena *mem, const char *state);
/*
 * Refuses a path that crosses a link a box may have created, with `what` and the path in the message; 0 also if it does
 * not exist. `ret` (PATH_MAX, or NULL) gets the real path, `ret_fd` (or NULL) an O_PATH descriptor, -1 if it does not
 * exist.
 */
int world_judge(const char *state, const char *what, const char *path, char *ret, int *ret_fd, struct err *e);

/* Who, besides its reader, may be able to write such a file. */
enum file_trust {
    FILE_SYSTEM,  /* owner root, not writable by others */
    FILE_OWN,     /* owner the caller or root, not writable by others */
    FILE_ANYBODYS /* any owner; its content is judged: a project's, or one named on the command line */
};
/*
 * Reads a regular file of at most `max` bytes, NUL-terminated in `mem`. `no_links`: neither the file nor its directory
 * may be a symbolic link. -ENOENT without a message if it does not exist and is `optional`.
 */
int read_whole(struct arena *mem, const char *path, size_t max, enum file_trust trust, bool no_links, bool optional,
               struct str *ret, struct err *e);
/* The same for a file named by a flag, without crossing a link that a box may have created. */
int read_named(struct arena *mem, const char *state, const char *what, const char *path, size_t max,
               enum file_trust trust, struct str *ret, struct err *e);
/* mkdir -p with mode 0700; 0 or -errno with a message. */
int make_private_directories(const char *path, struct err *e);
