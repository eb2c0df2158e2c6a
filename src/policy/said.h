/*
 * Statements: every front end (our language, flags, foreign formats, the built-in profiles compiled at build time)
 * produces one flat list of them, and merge.c reads nothing else. The form of values has been checked; homes, variables
 * and directories are resolved when they are merged.
 */
#pragma once
#include "policy/text/keys.h"
#include "policy/text/node.h"

enum said_bits {
    SAID_READ_ONLY = 1, /* mounts */
    SAID_OPTIONAL = 2,  /* files.rw, files.ro: may be missing */
    SAID_DIRECTORY = 4, /* guarded names: written with a trailing slash, which was removed */
    SAID_FLAG = 8,      /* by a flag: paths are literal */
    SAID_NO_LINKS = 16, /* mounts: no symbolic link may be created in it */
    SAID_DEEP = 64,     /* guarded names: written with GUARD_DEEP before it, which was removed */
    SAID_TOLD = 32,     /* with SAID_OPTIONAL: that it is missing is said when a box starts */
    SAID_ABSENT = 128   /* files.hide: a file is absent in the box */
};

struct said {
    uint16_t key;  /* enum key_id */
    uint16_t bits; /* enum said_bits */
    uint32_t line, column;
    struct str a, b; /* b: target of a mount, value of a variable */
};

struct said_list {
    struct arena *mem;
    struct said *items;
    size_t n;
    struct foreign_key { /* keys of foreign formats that could not be honoured */
        const char *key, *why;
        uint32_t line, column;
    } * ignored;
    size_t n_ignored;
};

/* A file being read: for messages, and the list to which statements are added. */
struct source {
    const char *file;
    struct said_list *list;
    struct err *e;
    const struct policy_world *world; /* for foreign formats, which resolve some paths themselves */
};

/* Checks the form of one statement and adds it. -EINVAL with location and message; -ENOMEM; -E2BIG beyond
   MAX_POLICY_RULES. */
int said_add(const struct source *src, struct said s);
/* Our own language. */
int read_policy(const struct source *src, const struct node *root);
/* Foreign formats; keys that cannot be honoured go to list->ignored. */
int read_foreign(const struct source *src, enum policy_format format, const struct node *root);
/* bubblewrap's command line (bwrap.c). */
int read_bwrap(const struct source *src, const struct node *root);
/* Parses a flag's value: "SRC:DST:ro", "NAME=V". src->file begins messages ("--rw"). */
int read_flag(const struct source *src, enum key_id id, struct str value);
/* Checks the form of one value of `key`; the message has no location. */
int said_check(const struct said *s, struct arena *scratch, struct err *e);

/* Values of limits. "none" is LIMIT_NONE. */
int limit_value(enum key_id id, struct str text, uint64_t *ret, struct err *e);
int user_value(struct str text, enum user_mode *ret_mode, uint32_t *ret_uid, uint32_t *ret_gid, struct err *e);
