/*
 * Builds a policy from texts and flags. The builder is pure: it gets other texts (extends) and variables by callbacks.
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

#define WORKSPACE_TOO_WIDE "the workspace would be " /* begins the refusal of / and of a whole home */
#define MAX_POLICY_TEXT    (1u << 20)                /* bytes of one text */
#define MAX_POLICY_DEPTH   32                        /* nesting of one text */
#define MAX_POLICY_EXTENDS 16                        /* texts that extend each other */
#define MAX_POLICY_RULES   20000                     /* rules altogether */
#define MAX_POLICY_BYTES   (32u << 20)               /* size of a finished policy */

enum policy_format {
    POLICY_YAML,
    POLICY_SRT,
    POLICY_SRT_STRICT, /* what cannot be honoured is an error, unless it would only allow more */
    POLICY_DIVE,
    POLICY_MYCODE,
    POLICY_DAYCARE,
    POLICY_BWRAP
};

/* Asked for as a variable's value, under a name that none can have: the caller's home in /etc/passwd, if HOME is another. */
#define VARIABLE_OTHER_HOME "=home"

/* What a policy may read of its environment; tests pass tables. */
enum { MAX_ENV_FILES = 64, MAX_SSH_FILES = 2 };

enum policy_untrusted {
    UNTRUSTED,         /* it never was, or the trust was withdrawn */
    UNTRUSTED_CHANGED, /* it was, with another content */
    UNTRUSTED_IN_BOX   /* the caller is in a box, which sees no trust and can record none */
};

struct policy_world {
    const char *home;      /* of the caller, absolute */
    const char *cwd;       /* absolute: relative paths of flags and the default workspace */
    const char *user_name; /* for ${USER}; may be NULL */
    /* The value of ${NAME} or NULL. NULL function: only HOME, USER, WORKSPACE and PWD exist. */
    const char *(*variable)(void *ctx, const char *name);
    /*
     * The text for `extends: name` in the file `from`: a built-in profile's name or an absolute path. Sets ret_file
     * (for messages) and ret_text, which must live as long as the builder. -ENOENT if unknown.
     */
    int (*fetch)(void *ctx, const char *name, const char *from, const char **ret_file, struct str *ret_text,
                 struct err *e);
    void *ctx;
    /*
     * pinfold's own files, besides ~/.config/pinfold, ~/.local/state/pinfold (or their XDG equivalents),
     * $XDG_RUNTIME_DIR/pinfold and /etc/pinfold, which are always included. No box sees the hidden ones or changes the
     * read-only ones (such as its program), and a rule that would permit it is an error. Absolute, NULL-terminated;
     * NULL: none.
     */
    const char *const *own_hidden, *const *own_read_only;
    /*
     * Writes the names of the .env files (is_env_file()) at the top of `workspace` now, in `mem`, and returns how many, or a
     * negative errno with a message. NULL: there are none.
     */
    int (*env_files)(void *ctx, const char *workspace, struct arena *mem, const char *names[MAX_ENV_FILES],
                     struct err *e);
    /* What is known of a project's policy that is not trusted, for a message. NULL: nothing. */
    enum policy_untrusted (*untrusted)(void *ctx, const char *file);
    /* Directories of ssh's configuration that a box's user cannot use (ssh_files.c). Absolute, NULL-terminated; NULL: none. */
    const char *const *ssh_files;
};
/* A name of a developer's own variables: .env, .env.local, .env.*.local. */
bool is_env_file(struct str name);

struct policy_builder;
struct policy_builder *policy_builder_new(
    const struct policy_world *world); /* copies `world`, borrows what it points to */
struct policy_builder *policy_builder_free(struct policy_builder *b);
/*
 * Adds one text as a layer. `file` appears in messages; relative paths start in its directory. `trusted` only matters
 * for LAYER_PROJECT: an untrusted project file may only tighten; a key that loosens is an ERR_REFUSED error that names
 * the key, its location and `pinfold trust`.
 */
int policy_add_text(struct policy_builder *b, enum policy_layer layer, enum policy_format format, const char *file,
                    struct str text, bool trusted, struct err *e);
/*
 * Adds settings of another sandbox, which a flag named. Of several, each can only tighten what those before it said;
 * what would loosen has no effect and is among the keys that could not be honoured.
 */
int policy_add_settings(struct policy_builder *b, enum policy_format format, const char *file, struct str text,
                        struct err *e);
/* Adds one flag: `key` is its name without dashes ("rw", "net", "allow"); `said` is what the user typed. */
int policy_add_flag(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e);
/*
 * Adds a request from somebody without authority, after all flags: like a flag, but one that loosens is an ERR_REFUSED
 * error, and variables are not expanded.
 */
int policy_add_wish(struct policy_builder *b, const char *key, const char *value, const char *said, struct err *e);
/* Merges, checks for contradictions and returns the policy. The builder stays valid and may be freed. */
int policy_build(struct policy_builder *b, struct policy **ret, struct err *e);

/* Prints the policy as YAML, with origins as comments if requested; reading it back gives an equal policy. */
enum { POLICY_ORIGINS = 1, POLICY_CONVERTED = 2, POLICY_ADDED = 4 };
int policy_print(const struct policy *p, unsigned how, struct buf *out);
bool policy_equal(const struct policy *a, const struct policy *b); /* except for origins */
/* The merged policy in canonical form: policy_digest is its SHA-256, with engine and image. */
int policy_canonical(const struct policy *p, struct buf *out);

/* Accessors of the table of keys (text/keys.h). */
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
/* It begins as the library's struct pinfold_option_info, so that one table is both (run/options.c). */
struct policy_key {
    const char *flag;    /* "memory": --memory; NULL when there is no flag */
    const char *value;   /* "SIZE": the metavariable of --help */
    const char *choices; /* TYPE_CHOICE: "none|allow|host" */
    const char *path;    /* "limits.memory": its path in a text */
    const char *help;    /* one sentence */
    int takes_value;     /* 0: a bare flag means "true" */
    int repeats;         /* the flag may be repeated, which adds */
    enum policy_type type;
};
const struct policy_key *policy_keys(size_t *ret_n);
const struct policy_key *policy_key_by_flag(const char *flag); /* without dashes; NULL */
int policy_schema(struct buf *out);                            /* JSON Schema draft 2020-12 of the policy language */

/* Units, also for flags elsewhere. All refuse trailing text, overflow, NaN and negatives; -EINVAL or -ERANGE. */
int parse_size(struct str s, uint64_t *ret_bytes);       /* 512M, 1G, 4096, 1.5GiB: K M G T are powers of 1024 */
int parse_duration(struct str s, uint64_t *ret_ms);      /* 90s, 2m, 1h30m, 500ms; a bare number is seconds */
int parse_cpus(struct str s, uint64_t *ret_thousandths); /* 0.5, 2, 50% */
int parse_count(struct str s, uint64_t *ret);

/* The built-in profiles and sets of hosts, compiled in from profiles/. */
int profile_find(const char *name, struct str *ret_text); /* -ENOENT */
const char *const *profile_names(void);                   /* NULL-terminated */
