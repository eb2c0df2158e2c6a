/*
 * Statements into one policy. Texts are merged in rising order of authority; within the merge the state is the policy in
 * the making plus tables to find what was said before.
 *
 * Scalars: the later text wins. Lists append. Paths: at most one rule per place, the later text's; at use the most
 * specific place wins. Denials of the network and guarded names only add up. Saying two things of one place in one text
 * is a contradiction.
 */
#pragma once
#include "policy/said.h"
#include "policy/path.h"
#include "policy/text/table.h"

/* One text (or all flags together) as statements. */
struct layer_text {
    enum policy_layer layer;
    const char *file; /* for messages and origins   */
    const char *base; /* what relative paths are relative to */
    bool trusted;     /* false: may only tighten    */
    bool lasting;     /* the statements' texts outlive every policy (built-in profiles) */
    bool defaults;    /* what it limits was asked by nobody */
    bool profile;     /* it came as a built-in profile: its rules may be about what is not there */
    const struct said *said;
    const char *const *flags; /* per statement: the flag as the user wrote it; NULL for files */
    size_t n;
    const struct foreign_key *ignored;
    size_t n_ignored;
};

struct merge {
    const struct policy_world *world;
    struct policy *p;
    struct err *e;
    const struct layer_text *text; /* the one being merged                     */
    uint32_t text_no;              /* its number, from 1                       */
    uint32_t *path_text;           /* per path rule: the text that said it     */
    const struct said **path_said; /* per path rule: where                     */
    struct table paths, env, guards, net, mounts, storages, sockets;
    uint32_t *socket_origin;                  /* per socket                               */
    bool *guard_gone;                         /* per guarded name: taken out again        */
    const struct said *net_said, *allow_said; /* in this text                     */
    uint32_t here_text;                       /* the text that said something of the workspace itself, and what */
    enum path_access here;
};

/* Upper bounds of what will be said: the arrays are made once, of this size. */
struct room {
    size_t texts, origins, paths, guards, env, net;
};
/* Counts one text in. */
void merge_room(struct room *room, const struct layer_text *text);
/* Starts with nothing said. */
int merge_begin(struct merge *m, struct policy *p, struct room room, struct err *e);
int merge_text(struct merge *m, const struct layer_text *text);
/* pinfold's own rules, contradictions between layers, order. */
int merge_end(struct merge *m);

/* The path context of the text being merged. */
struct path_context merge_context(const struct merge *m, const struct layer_text *text);
/* "file:line:column: sentence" or "--flag: sentence" for the statement. */
int merge_say(const struct merge *m, enum err_kind kind, const struct said *s, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* pinfold's own rules and their origin: the arrays have this much room besides what is said. */
#define OWN_ROOM 16

/* tighten.c: 0 when the statement may be merged, 1 when it says nothing new, -EPERM with a sentence when it loosens. */
int tighten_check(struct merge *m, const struct said *s, const struct path_text *path);
int tighten_refuse(struct merge *m, const struct said *s, const char *does);
/* What holds at a path by what has been merged so far, patterns included, as the most an occupant may do. */
enum path_access merge_access(const struct merge *m, const char *path);

/* own_files.c: pinfold's own files; policy_print() leaves their rules out. */
int own_rules(struct merge *m);
