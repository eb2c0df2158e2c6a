/* The login in an agent's database, see database.c. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include "base/err.h"

struct database_ask {
    int host, session;   /* directories */
    const char *name;    /* of the database in both */
    char *const *tables; /* those of the login; NULL-terminated */
};
/* DATABASE_REFRESHED, DATABASE_FIRST or -errno; -ENOENT without a sentence: the host has none. */
int database_sync(const struct database_ask *ask, struct err *e);

/* For carry.c: SQLite with the directories of one database (-1: none), and nothing else to open. */
int database_begin(int host, int session, const char *name, struct err *e);
int database_connect(const char *path, int flags, sqlite3 **ret, struct err *e, const char *what);
int database_with_host(int (*work)(sqlite3 *host, void *ctx, struct err *e), void *ctx, struct err *e);
int database_ordinary(sqlite3 *db, const char *table, bool *ret); /* a code of SQLite's; is it a table, and no view? */
int database_say(struct err *e, sqlite3 *db, int code, const char *what);
void database_drop(void); /* a new one that did not become whole */
