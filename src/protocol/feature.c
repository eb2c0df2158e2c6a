/*
 * Names and sentences of the guarantees. The names are an interface (may_lose, `lost` and `enforced` of results);
 * feature.h has the table.
 */
#include "protocol/feature.h"

#include <string.h>

static const struct {
    char name[20]; /* no address: each record of a session is read with them */
    const char *text;
} feature_rows[FEATURE_COUNT] = {
#define X(id, name, text) [FEATURE_##id] = {name, text},
    FEATURES(X)
#undef X
};

const char *feature_name(enum feature f)
{
    return feature_rows[f].name;
}

const char *feature_text(enum feature f)
{
    return feature_rows[f].text;
}

int feature_find(const char *name)
{
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (feature_rows[i].name[0] == name[0] && strcmp(feature_rows[i].name, name) == 0)
            return i;
    }
    return -1;
}
