/* The built-in profiles: their texts, and their statements as parsed at build time, so that a start parses no YAML. */
#pragma once
#include "policy/said.h"

struct profile {
    const char *name;
    struct str text;
    const struct said *said;
    size_t n;
    bool part; /* included by other profiles; not offered by name */
};

extern const struct profile profile_table[]; /* generated; ends with a NULL name */

const struct profile *profile_by_name(const char *name);
/* The profile whose text this is, byte for byte; NULL. */
const struct profile *profile_by_text(struct str text);
