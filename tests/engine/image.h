/* Plan images written by hand, step by step, and boxes run from them: for tests of the native engine alone. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "backends/engine.h"
#include "protocol/control.h"
#include "protocol/step.h"

struct image {
    struct step steps[4096];
    uint32_t n_steps;
    char strings[1 << 19];
    uint32_t n_strings;
    char guard[1 << 14]; /* struct guard_table, filled by image_guard() */
    uint32_t namespaces, filter, uid, gid, tier;
};

struct image *image_new(void);
uint32_t image_text(struct image *i, const char *text);
struct step *image_put_step(struct image *i, enum step_kind kind, const char *a, const char *b, unsigned flags,
                            unsigned mode);
/* The stub goes behind the VEIL or COVER added last. */
void image_stub(struct image *i, const char *path, enum stub what);
/* A guard's rule: `kind` of enum guard_rule_kind, text, flags. */
void image_guard(struct image *i, unsigned kind, const char *text, unsigned place, unsigned flags);
struct plan_image *image_finish(const struct image *i);

/* What most boxes have: read-only root, `workspace` writable, /tmp, /dev, /proc, the locks. */
enum box_parts { BOX_GUARD = 1, BOX_NET_HOST = 2, BOX_ROOT_USER = 4, BOX_LANDLOCK = 8 };
struct image *image_box(const char *workspace, unsigned parts);
/* The same in two halves, for steps in between (in the new root, before /proc and the locks). */
struct image *image_of_parts(const char *workspace, unsigned parts);
void image_locks(struct image *i, unsigned parts);

struct ran {
    bool exited;        /* FRAME_EXIT came */
    int status;         /* wait status */
    int exec_errno;     /* FRAME_EXEC_FAILED */
    int verdict;        /* errno of FRAME_VERDICT, 0 none */
    uint32_t where;     /* its place */
    int builder_status; /* how the builder ended */
    char words[1024];
    int64_t stdin_at;
    uint64_t utime_us;
    unsigned stops, denials, pipes;
    char out[1 << 16];
    size_t n_out;
};
struct run_ask {
    struct image *image;
    const char *const *argv;
    const char *const *env; /* NULL: PATH only */
    int in;                 /* -1: /dev/null; owned by the caller */
    bool tty;
    const char *type; /* with tty: written to the master when `ready` was seen */
    struct cgroup_join cgroup;
    const char *ready;           /* when this was seen in the output ... */
    int signal, signal_target;   /* ... this signal is sent,             */
    void (*on_ready)(void *ctx); /* ... and this is called               */
    void *ctx;
    bool keep_output; /* the caller's own stdout and stderr instead of a pipe */
    unsigned umask;
};
/* 0 when the box was started (whatever came of it), otherwise what start() returned, with the sentence in ret->words. */
int image_run(const struct run_ask *ask, struct ran *ret);
