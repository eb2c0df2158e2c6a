/* What the session daemon says in JSON: text of another process, which may be of an older version. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct json;
/* The value that `said` is, under `name`; -EBADMSG: it is none, and nothing was written. */
int said_put(struct json *j, const char *name, struct str said);
/* Appends the text that it is under `key`, or nothing. */
void said_text(struct str said, const char *key, struct buf *out);
