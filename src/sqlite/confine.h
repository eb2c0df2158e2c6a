/* What the process that opens a box's database may still do. */
#pragma once
#include "base/err.h"

/* Confines this process for good to the two directories and the database `name` in them. */
int sqlite_confine(int host, int session, const char *name, struct err *e);
