/* The login in an agent's database, see database.c. */
#pragma once
#include "base/err.h"

struct database_ask {
    int host, session;   /* directories */
    const char *name;    /* of the database in both */
    char *const *tables; /* those of the login; NULL-terminated */
};
/* DATABASE_REFRESHED, DATABASE_FIRST or -errno; -ENOENT without a sentence: the host has none. */
int database_sync(const struct database_ask *ask, struct err *e);
