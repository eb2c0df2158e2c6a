/* Conversations of a project from one of OpenCode's databases to another, see carry.c. */
#pragma once
#include <stdbool.h>
#include "base/err.h"

struct carry_ask {
    int host,
        session; /* the directory of the database: of the host's, which is only read; or of one that may be written. -1 */
    int stream;            /* a pipe */
    const char *name;      /* of the database */
    const char *workspace; /* the project */
    bool with_schema;      /* the other side has no database yet: it gets the host's schema */
};
int carry_read(const struct carry_ask *ask, struct err *e);
int carry_write(const struct carry_ask *ask, struct err *e);
