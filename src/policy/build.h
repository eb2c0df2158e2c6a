/*
 * From texts and flags to a policy. The builder is pure: other texts (extends) and variables come through callbacks.
 *
 *     struct policy_builder *b = policy_builder_new(&world);
 *     policy_add_text(b, LAYER_USER, POLICY_YAML, "~/.config/pinfold/policy.yaml", text, trusted, &e);
 *     policy_add_flag(b, "rw", "/data", "--rw", &e);
 *     policy_build(b, &policy, &e);
 *     b = policy_builder_free(b);
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

#define MAX_POLICY_TEXT    (1u << 20)  /* bytes of one text                    */
#define MAX_POLICY_DEPTH   32          /* nesting of one text                  */
#define MAX_POLICY_EXTENDS 16          /* texts that extend one another        */
#define MAX_POLICY_RULES   20000       /* rules altogether                     */
#define MAX_POLICY_BYTES   (32u << 20) /* what a finished policy may occupy    */

enum policy_format { POLICY_YAML, POLICY_SRT, POLICY_DIVE, POLICY_MYCODE, POLICY_DAYCARE, POLICY_BWRAP };

/* What a policy may ask of the world; a caller without a world passes tables. */
struct policy_world {
    const char *home;      /* of the caller, absolute                                     */
    const char *cwd;       /* absolute: relative paths of flags and the default workspace */
    const char *user_name; /* for ${USER}; may be NULL                                    */
    /* The value of ${NAME} or NULL; NULL function: no variables but HOME, USER, WORKSPACE, PWD. */
    const char *(*variable)(void *ctx, const char *name);
    /*
     * The text behind `extends: name` said in file `from`: a built-in profile name or a path (already absolute).
     * Fills ret_file (for messages) and ret_text, both living as long as the builder. -ENOENT when unknown.
     */
    int (*fetch)(void *ctx, const char *name, const char *from, const char **ret_file, struct str *ret_text,
                 struct err *e);
    void *ctx;
    /*
     * pinfold's own files beyond ~/.config/pinfold, ~/.local/state/pinfold (or their XDG places), $XDG_RUNTIME_DIR/pinfold and
     * /etc/pinfold, which are always among them: no box sees the hidden ones nor changes the read-only ones (its
     * program, say), and a rule that would is an error. Absolute, NULL-terminated; NULL: none.
     */
    const char *const *own_hidden, *const *own_read_only;
};

struct policy_builder;
struct policy_builder *policy_builder_new(
    const struct policy_world *world); /* copies `world`, borrows what it points to */
struct policy_builder *policy_builder_free(struct policy_builder *b);
/*
 * Adds one text as a layer. `file` is what messages say and what relative paths are relative to (its directory).
 * `trusted` matters for LAYER_PROJECT only: an untrusted project file may only tighten; a key that loosens is an
 * ERR_REFUSED error that names the key, the place and `pinfold trust`.
 */
int policy_add_text(struct policy_builder *b, enum policy_layer layer, enum policy_format format, const char *file,
                    struct str text, bool trusted, struct err *e);
/* Adds one flag: `key` is the flag's name without dashes ("rw", "net", "allow"); `said` is how the user wrote it. */
int policy_add_flag(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e);
/*
 * Adds what somebody without authority wishes, after all flags: like a flag, but what would loosen is an ERR_REFUSED error,
 * and no variable is expanded in it.
 */
int policy_add_wish(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e);
/* Merges, checks for contradictions and hands out the policy. The builder stays valid (and may be freed). */
int policy_build(struct policy_builder *b, struct policy **ret, struct err *e);

/* The policy as YAML in our language, with origins as comments when `origins`; reading it back gives an equal policy. */
enum { POLICY_ORIGINS = 1, POLICY_CONVERTED = 2, POLICY_ADDED = 4 };
int policy_print(const struct policy *p, unsigned how, struct buf *out);
bool policy_equal(const struct policy *a, const struct policy *b); /* but for origins */
/* The merged policy in one canonical text: what policy_digest is the SHA-256 of, with engine and image. */
int policy_canonical(const struct policy *p, struct buf *out);

/*
 * The one table of keys, as its expansions.
 */
enum policy_type {
    TYPE_BOOL,
    TYPE_TEXT,
    TYPE_CHOICE,
    TYPE_SIZE,
    TYPE_DURATION,
    TYPE_COUNT,
    TYPE_CPUS,
    TYPE_PATH,
    TYPE_PATHS,
    TYPE_NAMES,
    TYPE_MOUNTS,
    TYPE_ENV,
    TYPE_DOMAINS,
    TYPE_PORTS,
    TYPE_GUARDS
};
struct policy_key {
    const char *path;  /* "limits.memory": where it stands in a text         */
    const char *flag;  /* "memory": --memory; NULL when there is no flag     */
    const char *value; /* "SIZE": the metavariable of --help                 */
    enum policy_type type;
    const char *choices; /* TYPE_CHOICE: "none|allow|host"                     */
    bool repeats;        /* the flag may be given again, adding                */
    bool takes_value;    /* false: a bare flag means "true"                    */
    const char *help;    /* one sentence                                       */
};
const struct policy_key *policy_keys(size_t *ret_n);
const struct policy_key *policy_key_by_flag(const char *flag); /* without dashes; NULL */
int policy_schema(struct buf *out);                            /* JSON Schema draft 2020-12 of the YAML language */

/* Units, also used by flags elsewhere. All refuse trailing text, overflow, NaN and negatives; -EINVAL or -ERANGE. */
int parse_size(struct str s, uint64_t *ret_bytes);       /* 512M, 1G, 4096, 1.5GiB: K M G T are powers of 1024 */
int parse_duration(struct str s, uint64_t *ret_ms);      /* 90s, 2m, 1h30m, 500ms; a bare number is seconds    */
int parse_cpus(struct str s, uint64_t *ret_thousandths); /* 0.5, 2, 50%                                        */
int parse_count(struct str s, uint64_t *ret);

/* The built-in profiles and domain sets, linked in from profiles/ as data. */
int profile_find(const char *name, struct str *ret_text); /* -ENOENT */
const char *const *profile_names(void);                   /* NULL-terminated */
