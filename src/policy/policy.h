/*
 * The policy: all rules, each with its origin. policy_builder (policy/build.h) builds it from layers of text and flags;
 * then it is immutable, in one arena. plan/, backends/ and supervisor/ read it.
 *
 * All paths here are absolute and lexically clean (no `.`/`..`/`//`, no trailing `/` except the root), with `~` and
 * variables expanded, and relative ones resolved against their file or directory. Symbolic links are NOT resolved: the
 * policy touches no file system. The survey (survey/survey.h) resolves them and gives the plan both forms.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "protocol/feature.h"

/* Layers in rising order of authority over *loosening*: an untrusted project can only tighten. */
enum policy_layer { LAYER_BUILTIN, LAYER_SYSTEM, LAYER_USER, LAYER_PROJECT, LAYER_FLAGS, LAYER_COUNT };

/* Origin of a rule: "file:line:column", or a flag ("--rw"). Index 0 is "built in". */
struct origin {
    const char *file; /* path, profile name ("profile workspace") or flag ("--rw") */
    enum policy_layer layer : 8;
    uint32_t line : 24; /* a text has MAX_POLICY_TEXT bytes at most; both are 0 for flags */
    uint32_t column;
};

/* The files of the origins of rules that no text said: about pinfold's own files, and about the workspace's .env files. */
#define OWN_ORIGIN "pinfold's own files"
#define ENV_ORIGIN ".env files of the workspace"
#define SSH_ORIGIN "ssh's files of other owners"

enum path_access {
    PATH_HIDE,    /* cannot be read, listed or written; EACCES, or ENOENT where `absent` */
    PATH_RO,      /* can be read */
    PATH_RW,      /* can be read and written */
    PATH_PROTECT, /* can be read; may not be changed, replaced or created, even inside something writable */
    PATH_CACHE    /* read-only, with a private writable layer per project on top */
};

struct path_rule {     /* a policy has hundreds, and a box keeps its policy */
    const char *path;  /* absolute; or, when any_depth, a pattern relative to any directory: "**" + "/.env" is ".env" */
    const char *below; /* any_depth: the absolute directory it applies to ("/" for everywhere) */
    uint32_t origin;   /* index into policy.origins */
    enum path_access access : 8;
    bool any_depth; /* written with a leading "**": checked on every open */
    bool pattern;   /* the last component has * ? [ ] (only with any_depth or in the last component) */
    /* may be missing; set in profiles. For a flag or user's rule a missing path is an error, except with PATH_HIDE
       and PATH_PROTECT, which also apply to names that do not exist yet */
    bool optional;
    bool told;   /* optional, and a start says that it is missing */
    bool parts;  /* of pinfold's own: what is below it may be mounted, elsewhere */
    bool moved;  /* PATH_CACHE: where a variable of the caller's has it (moved.c) */
    bool absent; /* PATH_HIDE: a file is absent in the box where a mask can do that; ENOENT */
    bool once;   /* PATH_HIDE: covers the file that is there at the start; the host can put another in its place */
};

struct mount_rule {
    const char *from, *to;    /* host path, path inside */
    bool read_only, no_links; /* no_links: no symbolic link may be created in it, for programs outside use it, too */
    uint32_t origin;
};
/* For qsort(3) of pointers to them: by the path inside. */
int mount_target_order(const void *a, const void *b);

/* A directory that the session keeps until it is removed. */
struct storage_rule {
    const char *path;
    uint32_t origin;
};

/*
 * A name that may not be created or changed in writable places, relative to any writable root. `place` says where it
 * applies; `name` may have several components (".git/hooks").
 */
enum guard_place { GUARD_ROOT /* at the top of the workspace */, GUARD_ANY_DEPTH };
enum guard_judge {
    GUARD_REFUSE,    /* may not be created or changed in the box */
    GUARD_GIT_CONFIG /* new contents are judged key by key */
};
struct guard_name { /* there are some hundreds, which stay while a box runs: 16 bytes each */
    const char *name;
    enum guard_place place : 8;
    enum guard_judge judge : 8;
    bool directory : 1; /* the name and everything below it */
    bool pattern : 1;   /* "*.SUFFIX" */
    bool everyday : 1;  /* applies only if the policy guards these, too */
    bool deep : 1; /* said with GUARD_DEEP (policy/path.h): at the root of a repository and in all directories of it */
    uint32_t origin;
};
enum guard_everyday { EVERYDAY_ALLOW, EVERYDAY_GUARD };
enum guard_mode { GUARD_STRICT, GUARD_EXISTING, GUARD_OFF };

/* Whether hooks must have passed; what the git section says of pushes (git/gitpush.h). */
enum git_verify { GIT_VERIFY_OFF, GIT_VERIFY_TOLD, GIT_VERIFY_REQUIRED };
struct git_rules {
    enum git_verify verify;
    bool allow_force, allow_delete; /* of what is not protected */
    uint32_t verify_origin, force_origin, delete_origin;
    struct branch_rule {
        const char *pattern; /* gitpush_protects() */
        uint32_t origin;
    } * branches;
    size_t n_branches; /* 0: all branches are protected */
};

enum net_mode { NET_NONE, NET_ALLOW, NET_HOST };
/* How connections are redirected (enum catch_way); auto is the best method that works here. */
enum net_catch { NET_CATCH_AUTO, NET_CATCH_TPROXY, NET_CATCH_ROUTES, NET_CATCH_LOOPBACK };
enum net_verb { NET_RULE_ALLOW, NET_RULE_DENY, NET_RULE_DENY_PORT, NET_RULE_PUBLISH, NET_RULE_REACH };
/* Only the form of `text` is checked here; the egress proxy parses it. */
struct net_rule {
    enum net_verb verb;
    const char *text;
    uint32_t origin;
};

#define LIMIT_NONE UINT64_MAX
struct limit {
    uint64_t value; /* LIMIT_NONE: not limited */
    uint32_t origin;
    bool asked; /* explicitly requested, not a generous default of a built-in profile */
};
/* In the order of the table of keys: limits.each[KEY - KEY_MEMORY]. */
enum { N_LIMITS = 8 };
struct limits {
    union {
        struct {
            struct limit memory;     /* bytes, the whole tree */
            struct limit cpus;       /* thousandths of a processor: 500 is "0.5" and "50%" */
            struct limit processes;  /* processes and threads */
            struct limit disk;       /* bytes: exact for private storage, approximate for growth of the workspace */
            struct limit timeout;    /* milliseconds of wall time until SIGTERM */
            struct limit grace;      /* milliseconds between SIGTERM and SIGKILL */
            struct limit output;     /* bytes of stdout and stderr together */
            struct limit open_files; /* RLIMIT_NOFILE */
        };
        struct limit each[N_LIMITS];
    };
};
_Static_assert(sizeof(struct limits) == N_LIMITS * sizeof(struct limit), "each limit has a name and a place");

/* One per name. An exact name wins over patterns, a longer pattern over a shorter one. */
struct env_rule {
    const char *name;  /* may end in `*` if value is NULL ("LC_*") */
    const char *value; /* NULL: the caller's, if set */
    bool remove;       /* removes the variable */
    uint32_t origin;
};

enum user_mode { USER_KEEP, USER_ROOT, USER_IDS };
enum tty_mode { TTY_AUTO, TTY_ALWAYS, TTY_NEVER };
enum seatbelt_base { SEATBELT_RESTRICTIVE, SEATBELT_PERMISSIVE };
enum entrypoint_mode { ENTRYPOINT_UNSAID, ENTRYPOINT_NONE, ENTRYPOINT_IMAGE }; /* unsaid: none, and a note */
enum pull_mode { PULL_NEVER, PULL_MISSING, PULL_ALWAYS };
enum expand_mode { EXPAND_NEVER, EXPAND_START };

struct policy {
    struct arena *mem;
    const char *profile;   /* name of the outermost profile */
    const char *workspace; /* absolute */
    bool workspace_read_only;
    uint32_t read_only_origin;
    bool workspace_named; /* a rule of a person's own names it, too: it stays open where something above it is hidden */
    uint32_t workspace_origin;

    struct origin *origins;
    size_t n_origins;
    /* Merged: at most one per (path, any_depth, pattern, below); the most specific path wins. Sorted: fixed paths by
       path, then patterns in a fixed directory, then any-depth rules. The other arrays are sorted, too. */
    struct path_rule *paths;
    size_t n_paths;
    struct mount_rule *mounts;
    size_t n_mounts;
    struct storage_rule *storages;
    size_t n_storages;
    struct guard_name *guards;
    size_t n_guards;
    enum guard_mode guard;
    enum guard_everyday everyday;
    enum expand_mode expand;
    bool cow;       /* changes to the workspace go to a copy-on-write layer */
    bool env_files; /* .env files at the top of the workspace can be read */
    struct git_rules git;

    enum net_mode net;
    enum net_catch net_catch;
    uint32_t net_origin;
    struct net_rule *net_rules;
    size_t n_net_rules;
    bool net_ask; /* ask if no rule decides */
    uint32_t net_ask_origin, net_ask_ms;
    const char **unix_sockets; /* host socket paths that may be connected to */
    size_t n_unix_sockets;

    struct ssh_key_rule { /* a key of the caller's ssh-agent that the box may use */
        const char *key;  /* "SHA256:...", the absolute path of a public key file, or the agent's comment */
        const char *host; /* a rule of a host (match/host.h), "git" for git's signatures; NULL: allowed hosts and git */
        uint32_t origin;
    } * ssh_keys;
    size_t n_ssh_keys;
    struct gpg_key_rule { /* a key of the caller's gpg-agent that the box may sign with */
        const char *key;  /* a keygrip, a fingerprint, a long key id, a user id or the address in it */
        uint32_t origin;
    } * gpg_keys;
    size_t n_gpg_keys;
    bool gpg_confirm; /* ask before each signature */
    uint32_t gpg_confirm_origin;
    bool ssh_confirm; /* ask before each signature */
    uint32_t ssh_confirm_origin;

    struct limits limits;
    struct env_rule *env;
    size_t n_env;
    enum user_mode user;
    uint32_t uid, gid; /* USER_IDS */
    enum tty_mode tty;
    const char *engine;                 /* "auto", "native", ... */
    const char *image;                  /* NULL or name */
    const char *vm_kernel, *vm_modules; /* NULL: the distribution's */
    enum seatbelt_base seatbelt_base;
    const char *seatbelt_file; /* NULL or a profile written by the user */
    enum pull_mode pull;
    enum entrypoint_mode entrypoint;
    const char *platform, *runtime, *docker_host, *docker_context; /* docker and podman; NULL: their own default */
    const char *hostname;
    bool unsandboxed_fallback; /* run without a box rather than not at all if no engine can enforce the policy */
    bool allow_nested_userns;
    bool monitor; /* refusals by mounts, modes and the filter are told, too */
    uint32_t monitor_origin;
    features may_lose;
    features must_have; /* required by name: not even a key that requests such a loss may cause it */
    struct ignored {    /* keys of a foreign format (srt, dive, mycode, daycare) that could not be honoured */
        const char *key, *why;
        uint32_t origin;
    } * ignored;
    size_t n_ignored;
};

struct policy *policy_free(struct policy *p); /* takes NULL; returns NULL */
/* Writes "file:line:column", "--flag" or "built in (profile NAME)" into `text` of `n` bytes; returns text. */
const char *policy_origin(const struct policy *p, uint32_t origin, char *text, size_t n);
/* Whether no text said the rule: it is about files that were found on this machine. */
bool policy_is_found(const struct policy *p, uint32_t origin);
/*
 * The access at the absolute, clean path `path` according to the most specific fixed rule at or above it (workspace
 * included); PATH_RO if there is none. `ret_rule` (or NULL) gets the rule or NULL.
 */
enum path_access policy_access(const struct policy *p, const char *path, const struct path_rule **ret_rule);
