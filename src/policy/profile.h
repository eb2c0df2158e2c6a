/* The built-in profiles: their texts, and their statements as parsed at build time, so that a start parses no YAML. */
#pragma once
#include "policy/said.h"

/* A statement without addresses: a program that may lie anywhere would write each of them when it starts, on pages of its own. */
struct profile_said {
    uint16_t key, bits;
    uint32_t at;       /* where its first string begins in `words`; the second one follows, behind a zero */
    uint16_t a_n, b_n; /* bytes of the two */
    uint16_t line, column;
};

struct profile {
    const char *name;
    struct str text;
    const char *words;
    const struct profile_said *said;
    size_t n;
    bool part; /* included by other profiles; not offered by name */
};

extern const struct profile profile_table[]; /* generated; ends with a NULL name */

const struct profile *profile_by_name(const char *name);
/* Its statements, whose strings last; NULL without memory. */
const struct said *profile_statements(const struct profile *p, struct arena *mem);
/* The profile whose text this is, byte for byte; NULL. */
const struct profile *profile_by_text(struct str text);
