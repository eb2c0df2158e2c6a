/*
 * Merges statements into one policy. Texts are merged in rising order of authority. The state is the unfinished policy
 * plus tables to find earlier statements.
 *
 * Scalars: the later text wins. Lists append. Paths: at most one rule per path, the later text's; when used, the most
 * specific one wins. Denied hosts and guarded names only add up. Two different rules for one path in one text are a
 * contradiction.
 */
#pragma once
#include "policy/said.h"
#include "policy/path.h"
#include "policy/text/table.h"

/* One text (or all flags together) as a list of statements. */
struct layer_text {
    enum policy_layer layer;
    const char *file; /* for messages and origins */
    const char *base; /* directory for relative paths */
    bool trusted;     /* false: may only tighten */
    bool lasting;     /* the statements' texts outlive every policy (built-in profiles) */
    bool defaults;    /* its limits are defaults that nobody asked for */
    bool profile;     /* a built-in profile: its rules may name things that do not exist */
    const struct said *said;
    const char *const *flags; /* per statement: the flag as typed; NULL for files */
    size_t n;
    const struct foreign_key *ignored;
    size_t n_ignored;
};

struct moved { /* a place below the home that the caller's environment has elsewhere */
    const char *usual, *at;
    bool cache; /* what is there is written by programs that have a cache there */
};

struct merge {
    const struct policy_world *world;
    struct policy *p;
    struct err *e;
    struct arena *scratch;         /* what nobody needs once the policy is made; its arrays, too, until merge_order() */
    const struct layer_text *text; /* the one being merged */
    uint32_t text_no;              /* its number, from 1 */
    uint32_t *path_text;           /* per path rule: the text it is from */
    uint32_t *env_text;            /* the text that said this rule of the environment */
    const struct said **path_said; /* per path rule: its statement */
    struct table paths, env, guards, net, mounts, storages, sockets;
    uint32_t unpublished;                     /* how often `publish: none` was said */
    uint32_t *socket_origin;                  /* per socket */
    bool *guard_gone;                         /* per guarded name: removed again */
    const struct said *net_said, *allow_said; /* in the current text */
    struct moved *moved;                      /* moved.c */
    size_t n_moved;
    uint32_t here_text; /* the text with a rule for the workspace itself, and that rule */
    enum path_access here;
};

/* Upper bounds: the arrays are allocated once, in this size. */
struct room {
    size_t texts, origins, paths, guards, env, net;
};
/* Adds the bounds of one text. */
void merge_room(struct room *room, const struct layer_text *text);
/* Begins with an empty policy. */
int merge_begin(struct merge *m, struct policy *p, struct room room, struct err *e);
int merge_text(struct merge *m, const struct layer_text *text);
/* Adds pinfold's own rules, checks for contradictions between layers, sorts. */
int merge_end(struct merge *m);

/* The path context of the text being merged. */
struct path_context merge_context(const struct merge *m, const struct layer_text *text);
/* Reports an error: "file:line:column: sentence" or "--flag: sentence". */
int merge_say(const struct merge *m, enum err_kind kind, const struct said *s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Out of memory, as an error. */
int merge_no_memory(const struct merge *m);
/* What a message calls the text of a statement: the file, or the flag. */
const char *merge_text_name(const struct merge *m, const struct said *s);
/* The number of a new origin, for a rule of this statement; there is room for all. */
uint32_t merge_origin(struct merge *m, const struct said *s);
/* A copy that lives as long as the policy; NULL without memory. */
const char *merge_keep(struct merge *m, struct str s);

/* merge_paths.c */
int merge_path(struct merge *m, const struct said *s, enum path_access a);
int merge_mount(struct merge *m, const struct said *s);
int merge_storage(struct merge *m, const struct said *s);
/* The path of a statement, which is no pattern. */
int merge_literal(struct merge *m, const struct said *s, struct path_text *ret);
/* Adds a path to those that are known of one kind: 1 if it is new, else 0. An untrusted text adds none. */
int merge_new(struct merge *m, const struct said *s, struct table *known, const char *path);
/* merge_keys.c */
int merge_agent_keys(struct merge *m, const struct said *s);
/* merge_order.c: by place, so that equal policies are equal arrays; each in the policy's memory and as long as needed */
void merge_order(struct merge *m);

/* pinfold's own rules and their origin: the arrays have this much spare room. */
#define OWN_ROOM 16

/* tighten.c: 0 if the statement may be merged, 1 if it changes nothing, -EPERM with a message if it loosens. Of settings
   after others it is no error: 1, and it is among those that could not be honoured. */
int tighten_check(struct merge *m, const struct said *s, const struct path_text *path);
int tighten_refuse(struct merge *m, const struct said *s, const char *does);
/* The access at a path according to what was merged so far, patterns included: the most that the box may do. */
enum path_access merge_access(const struct merge *m, const char *path);

/* own_files.c: pinfold's own files; policy_print() omits their rules. */
int own_rules(struct merge *m);
/* env_files.c: hides the .env files that the workspace has now, unless a rule names them. */
int env_rules(struct merge *m);
/* moved.c: finds what the caller's variables move; where variable `i` of those has what is usually at `path`, or NULL. */
int moved_find(struct merge *m);
const char *moved_place(struct merge *m, const char *path, size_t i);
/* Adds caches where those variables have what the built-in rules make one; last of all rules, for it yields to any other. */
int moved_caches(struct merge *m);
/* ssh_files.c: hides what OpenSSH would refuse to run with. */
int ssh_rules(struct merge *m);
