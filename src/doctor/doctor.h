/* Checks what this machine can enforce and what is missing, with the command that would fix it. */
#pragma once
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "survey/gitlook.h"
#include "protocol/feature.h"

enum check_state { CHECK_YES, CHECK_PART /* works with a named loss */, CHECK_NO, CHECK_ABSENT /* optional */ };
struct check {
    enum check_state state;
    const char *name, *detail, *remedy; /* remedy: NULL if nothing needs to be done */
};
/* Result of one attack. */
enum held {
    HELD,
    HELD_LOST /* the guarantee was given up by name */,
    HELD_UNPROVED /* it does not work outside either */,
    BROKEN
};
struct verdict {
    const char *attack, *what, *how; /* how: the refusal as text */
    enum held held;
    bool must; /* not an attack: must work */
};

/* What git on the host would run from the tree around the current directory. */
struct git_runs {
    const char *top; /* of the work tree, or the directory itself */
    bool repository; /* there is one */
    struct git_run *list;
    size_t n, not_read; /* not_read: configurations or hook directories beyond the limits */
    bool cut;           /* the tree is larger than what was examined */
};
int doctor_git(struct arena *mem, const char *home, struct git_runs *ret);

/* secrets.c: what a file of this path is that nobody else should read, or NULL; *ret_look: only if its content says so, too. */
const char *secret_by_name(struct str path, bool *ret_look);
bool secret_by_content(struct str path, struct str text);

/* Files of the workspace and the home that a box here could read and should not. Paths are absolute. */
struct secret_file {
    const char *path, *what;
    bool above; /* it is in the home, not in the workspace */
};
struct secret_files {
    const char *workspace, *why; /* why: a command here is refused, so that there is no policy to ask about; or NULL */
    const char *root_note;       /* root cannot write the workspace in a box; or NULL */
    struct secret_file *list;    /* those that can be read */
    size_t n, hidden;            /* hidden: the others */
    bool cut;                    /* not everything was looked at */
};
int doctor_secrets(struct arena *mem, const char *home, struct secret_files *ret);

/* Files below a directory that a copy-on-write layer cannot copy, because they belong to others. */
struct foreign_files {
    size_t n;
    const char *first; /* absolute, or NULL */
    bool cut;          /* not everything was looked at */
};
int doctor_foreign(struct arena *mem, const char *top, struct foreign_files *ret);

/* Tries every attack on default boxes; `ret` is in `mem`. */
int verify_box(struct arena *mem, struct verdict **ret, size_t *ret_n, struct err *e);
/* Starts one box with the default policy, which makes a file and removes it; microseconds of the whole, and what was lost. On failure
   `ret_how` is NULL if none could be tried, and "" if it did not start. */
int try_box(struct arena *mem, uint64_t *ret_us, features *ret_lost, const char **ret_how, struct err *e);

struct pinfold_report;
struct pinfold_error;
int doctor_dangers_report(struct pinfold_report **ret, struct pinfold_error *error);
