/*
 * Where the caller's things are: home, pinfold's own directories, and careful reading of files that decide.
 * No name service is asked: $HOME, or a plain look into /etc/passwd when it is missing.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

struct world {
    const char *home;      /* absolute, clean, over no link                         */
    const char *user_name; /* $USER or $LOGNAME; NULL when neither is set           */
    const char *cwd;       /* absolute and real                                     */
    const char *config;    /* $XDG_CONFIG_HOME/pinfold, else ~/.config/pinfold      */
    const char *program;   /* this program's file; NULL when it cannot be told      */
    const char *state;     /* $XDG_STATE_HOME/pinfold, else ~/.local/state/pinfold; over no link */
};

/* Looks around; the strings live in `mem`. `cwd` NULL: the process's own. */
int world_look(struct arena *mem, const char *cwd, struct world *ret, struct err *e);
/* Only state and what it needs; for those who do not load a policy. */
int world_state(struct arena *mem, const char **ret, struct err *e);

/* Where it is remembered what boxes could write (survey/written.h), for a state directory; NULL without one. */
const char *world_written(struct arena *mem, const char *state);
/*
 * Refuses a path over a link that a box may have made, with `what` and the path in the sentence; 0 for one that is not there, too. The
 * real path goes to `ret` (PATH_MAX, may be NULL), an O_PATH descriptor to `ret_fd` (may be NULL; -1: it is not there).
 */
int world_judge(const char *state, const char *what, const char *path, char *ret, int *ret_fd, struct err *e);

/* Who may write to a file that decides, besides its reader. */
enum file_trust {
    FILE_SYSTEM,  /* owner root, nobody else may write                              */
    FILE_OWN,     /* owner the caller or root, nobody else may write                */
    FILE_ANYBODYS /* content is judged, not its owner: a project's, or one named on the command line */
};
/*
 * The whole of a regular file of at most `max` bytes, NUL-terminated in `mem`. `no_links`: neither the file nor the
 * directory it stands in may be a symbolic link. -ENOENT without a sentence when it does not exist and `optional`.
 */
int read_whole(struct arena *mem, const char *path, size_t max, enum file_trust trust, bool no_links, bool optional,
               struct str *ret, struct err *e);
/* The same of a file that a flag names, over no link that a box may have made. */
int read_named(struct arena *mem, const char *state, const char *what, const char *path, size_t max,
               enum file_trust trust, struct str *ret, struct err *e);
/* SHA-256 of `s` as 64 hexadecimal digits and NUL. */
void content_hash(struct str s, char ret[65]);
/* mkdir -p with mode 0700; 0 or -errno with a sentence. */
int make_private_directories(const char *path, struct err *e);
