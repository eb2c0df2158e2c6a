/*
 * Shared by the engines that are other programs: finding the program, starting it with pinfold-init as its command, and
 * the check-in (protocol/checkin.h). A box counts as started once pinfold-init has named the plan it runs, whatever the
 * program printed; if that does not happen, the error message includes what it printed.
 */
#pragma once
#include "base/buf.h"
#include "backends/engine.h"

/* Descriptors of a tool that passes on what it inherits, and of pinfold-init. */
#define TOOL_TEXT "text-" /* files in the directory of the check-in: OUTER_TEXTs of the plan by number */
enum { TOOL_CHECKIN = 8, TOOL_INIT = 9 };
#define TOOL_INIT_PATH "/proc/self/fd/9" /* pinfold-init, opened and checked before the tool was started */

/*
 * Finds a program in the system's directories, then in the absolute ones of PATH; NULL: not installed. File and
 * directory must belong to root.
 */
const char *tool_find(struct arena *mem, const char *name);
/* Runs `argv` (a path first) and puts its output, up to the buffer's limit, within `patience_ms`; returns its exit
   status, or -errno. */
int tool_ask(const char *const *argv, unsigned patience_ms, struct buf *out);
/*
 * Finds a program of pinfold's own: beside this one, or where it is installed; nobody else may be able to change it.
 * *ret_fd is O_PATH, to be executed; either may be NULL.
 */
int tool_helper(struct arena *mem, const char *name, const char **ret_path, int *ret_fd, struct err *e);
int tool_init(struct arena *mem, const char **ret_path, int *ret_fd, struct err *e); /* pinfold-init */

uint64_t tool_now_ms(void); /* of the monotonic clock */

/* A command line being built; `failed`: out of memory. */
struct tool_words {
    struct arena *mem;
    const char **at;
    size_t n;
    bool failed;
};
void tool_word(struct tool_words *w, const char *word);
void tool_two(struct tool_words *w, const char *word, const char *value);
void tool_number(struct tool_words *w, const char *word, uint64_t value);
/* Appends the arguments of pinfold-init, for a check-in by descriptor (`socket` NULL) or by a path in the box. */
int tool_end(struct tool_words *w, const struct plan *plan, const char *init, const char *socket,
             const char *const **ret, struct err *e);

/* places.c: what a plan needs from a tool whose boxes have the host's files. */
bool tool_root_writable(const struct plan_image *image);
const char *tool_hostname(const struct plan_image *image); /* or NULL */
/* Calls `place` for each path that must be bound on itself, writable while the box is built; `device`: nodes must
   work. */
void tool_places(const struct plan *plan, struct tool_words *w,
                 void (*place)(struct tool_words *w, const char *path, bool device));
int tool_no_namespaces(const struct facts *f, struct err *e);

struct tool_way {
    const struct engine *engine;
    const char *program;                        /* from tool_find(); borrowed */
    const char *id, *boot, *instance, *process; /* for struct tool_ask, or NULL */
    bool by_path;                 /* the check-in is a socket in a directory of its own, otherwise a descriptor */
    const char *const *env;       /* of the tool; NULL: only PATH */
    unsigned patience_ms;         /* for the check-in; 0: 30 seconds */
    uint32_t uid_least, uid_most; /* by_path: other users who may check in (a container's), both 0: none */
};
int tool_start(const struct tool_way *way, const struct start_request *ask, struct started *ret, struct err *e);
/* Removes the directories of check-ins that a pinfold which was killed has left in the runtime directories. */
void tool_sweep_places(struct arena *mem);
/* struct engine's finish: the box, then the tool. */
void tool_finish(struct started *s);

/*
 * Prints the command line as a person would type it: quoted for a POSIX shell, long lines broken, with the redirection
 * for pinfold-init if that is passed as a descriptor.
 */
void tool_print(const char *const *argv, const char *init, struct buf *out);
