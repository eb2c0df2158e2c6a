/*
 * The audit log: what a box was denied and which connections it was allowed, as JSON lines below the state directory.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define AUDIT_LINE_MAX  4096u       /* one event is one write(2) of at most this size: O_APPEND keeps it whole */
#define AUDIT_FILE_MAX  (16u << 20) /* then the file is rotated */
#define AUDIT_WAIT_MS   1000u       /* the most that one writer waits for the lock of a rotation, in all */
#define AUDIT_FILES     4           /* audit.jsonl, audit.1.jsonl ...; the oldest is removed */
#define AUDIT_FILE_NAME "audit.jsonl"

struct audit_event {
    const char *id;              /* of the run */
    const char *caller_id;       /* the caller's name for the command; NULL or "": none */
    const char *session, *scope; /* or NULL; scope: its owner, NULL or "": the user's own */
    const char *kind, *action, *target, *rule, *origin, *how;
    uint32_t pid;
    const char *address, *command; /* of network events; NULL: omitted */
    const char *why;               /* of git configurations; NULL: omitted */
    uint64_t count;                /* if more than 1 */
    const char *argv, *host;       /* the command line; where the target is on the host; NULL: omitted */
    bool monitor;                  /* seen by the monitor */
    const char *remedy, *no; /* of guesses and the monitor: what would allow it, the name of the errno; NULL: omitted */
    const char *workspace;   /* of the box; NULL: omitted */
    bool guess;              /* found in the command's error text (run/asked/guess.c) */
    /*
     * The run's, moved on by each event that is written: the line ends with its number in the run and a sum over the line and
     * the sum before it, so that changed and missing lines are found. NULL: neither.
     */
    struct audit_chain *chain;
};

struct audit_chain; /* supervisor/run.h */
struct audit_log;
/*
 * Puts the directory into `ret`: $XDG_STATE_HOME/pinfold/audit, else ~/.local/state/pinfold/audit; -ENOENT without
 * either variable, -ENAMETOOLONG. Creates nothing.
 */
int audit_dir(char *ret, size_t n);
/* Creates the directory (0700) and opens the file for appending; 0 or -errno. */
int audit_open(struct audit_log **ret);
/* What is denied in this process from now on is logged nowhere: there is no state directory that lasts. */
void audit_nowhere(void);
bool audit_is_nowhere(void);
struct box_result;
struct denial;
/* What the log says of `d` in the run `r`, but for its session and workspace. Borrows the texts of both. */
struct audit_event denial_event(struct box_result *r, const struct denial *d);
/* Writes one line; shortens the target if the line would be too long. 0 or -errno. */
int audit_write(struct audit_log *log, const struct audit_event *event);
/* The event as one line, without number and chain. 0 or -errno. */
int audit_line(struct buf *out, const struct audit_event *event);
struct audit_log *audit_close(struct audit_log *log); /* takes NULL, returns NULL */

/*
 * Calls `line` for every event of the log, oldest first, without its newline; it returns false to stop. With `follow`
 * then waits for more, also across rotations, until `line` stops it or a signal is caught (-EINTR). A log that does not
 * exist yet is empty. 0 or -errno with `e`.
 */
int audit_read(bool follow, bool (*line)(void *ctx, struct str text), void *ctx, struct err *e);

/* What checking the chains found. */
struct audit_check {
    uint64_t events, runs;
    uint64_t unchained; /* of a version that wrote none */
    uint64_t damaged;   /* lines that are no event, or not the one that was written */
    uint64_t missing;   /* events between others of their run that are gone */
    uint64_t begun;     /* runs whose first events are gone: rotated away, if the oldest file is there */
};
/* Reads the whole log. 0 or -errno with `e`. */
int audit_verify(struct audit_check *ret, struct err *e);

void audit_file_name(char ret[32], unsigned i); /* 0: the newest */
/* Adds the log's head (audit_head.c), one word, to `ret`. 0 or -errno with `e`. */
int audit_head(struct buf *ret, struct err *e);
struct audit_since {
    unsigned kept, rotated,
        changed; /* files of that head: as they were; gone by rotation; shorter, changed or removed */
};
/* What became of the files of a head that was taken before. 0 or -errno with `e`. */
int audit_since_head(const char *head, struct audit_since *ret, struct err *e);
