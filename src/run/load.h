/*
 * The layers of a policy: read once, then built from memory. A set of layers can be packed into bytes and unpacked
 * elsewhere: the shared library loads them in one process and runs in another, and both must get the same policy.
 *
 *     built-in profile (chosen by the layer with most authority) < /etc/pinfold/policy.yaml < <config>/policy.yaml
 *     < WORKSPACE/.pinfold/policy.yaml < files named on the command line < settings < flags
 */
#pragma once
#include "base/buf.h"
#include "run/world.h"
#include "pinfold.h"
#include "policy/build.h"

#define SYSTEM_POLICY     "/etc/pinfold/policy.yaml"
#define MAX_LAYERS_BYTES  (16u << 20) /* limit for all texts of one policy */
#define MAX_POLICY_LAYERS 64          /* texts named on one command line */

struct loaded_text {
    enum policy_layer layer;
    enum policy_format format;
    bool trusted;
    bool settings;    /* of another sandbox: of several, each can only tighten those before it */
    const char *file; /* for messages; base of relative paths is its directory */
    struct str text;
};
struct layer_flag {
    const char *name, *value; /* value NULL: a bare flag */
    bool wish;                /* may only tighten */
};
struct layer_fetched { /* a text that another one extends */
    const char *name, *file;
    enum policy_layer layer;
    struct str text;
};
struct layer_variable {
    const char *name, *value;
};

struct layers {
    struct arena *mem; /* borrowed */
    struct world world;
    struct loaded_text *texts;
    size_t n_texts;
    struct layer_flag *flags;
    size_t n_flags;
    struct layer_fetched *fetched;
    size_t n_fetched;
    struct layer_variable *variables;
    size_t n_variables;
    bool project_trusted;
    bool closed; /* unpacked: nothing more may be read */
    /*
     * The options themselves, by which the same can be asked for again elsewhere: not the content of files, and no values of
     * variables (`env` has the name alone then, with `wish` set). Absent if not all that was asked for is a flag.
     */
    struct layer_flag *asked;
    size_t n_asked;
    bool asked_whole;
};

/* Reads all layers that `o` names and builds them; strings live in `mem`. `o` may be NULL. */
int layers_load(const struct pinfold_policy_options *o, struct arena *mem, struct layers *ret,
                struct policy **ret_policy, struct err *e);
int layers_build(struct layers *l, struct policy **ret, struct err *e);
/* The same with flags that follow all others; `said`: their origin in messages. */
int layers_build_with(struct layers *l, const struct layer_flag *more, size_t n, const char *said, struct policy **ret,
                      struct err *e);

void layers_pack(const struct layers *l, struct buf *out);
/* -EBADMSG if `bytes` are not from layers_pack(). */
int layers_unpack(struct str bytes, struct arena *mem, struct layers *ret);
