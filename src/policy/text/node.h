/*
 * Parses YAML (and JSON as part of it) into a tree of nodes with their locations. Anchors, aliases, tags and multiple
 * documents are refused, so that a policy means what is written at each place. Depth, size and number of nodes are
 * limited.
 *
 * Two deviations from YAML 1.1, both for file names, which are bytes: in double quotes, \xNN from 80 on is that byte
 * rather than the character U+00NN (write \u00NN for the character); and in a text that begins with a brace, JSON's
 * surrogate pairs (RFC 8259, section 7) are read as one character.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/err.h"

#define MAX_POLICY_NODES 100000

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    bool plain;            /* a scalar without quotes */
    uint32_t line, column; /* from 1 */
    struct str text;       /* scalar */
    struct node *items;    /* list: n items; map: n pairs, key at 2i and value at 2i + 1 */
    size_t n;
};

/*
 * Parses `text` into `mem`, where the nodes live. Errors are "file:line:column: sentence". `hint` is appended to "the
 * file is empty".
 */
int node_read(const char *file, struct str text, const char *hint, struct arena *mem, struct node *ret, struct err *e);

/* The value of `key` in a map, or NULL. */
const struct node *node_get(const struct node *map, const char *key);
/* Whether a scalar is null: empty, ~ or null without quotes. */
bool node_is_null(const struct node *n);
/* "text", "a list" or "a mapping", for messages. */
const char *node_kind_name(const struct node *n);
/* Reports "file:line:column: sentence", printable whatever the text contains; returns -EINVAL (or what fits `kind`). */
int place_say(struct err *e, enum err_kind kind, const char *file, uint32_t line, uint32_t column, const char *format,
              ...) __attribute__((format(printf, 6, 7)));
/* Prepends the location to the message in `e`; returns r. */
int place_wrap(struct err *e, int r, const char *file, uint32_t line, uint32_t column);
