/* A question to a server behind a Unix socket: one GET, its whole answer, with a clock. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/*
 * Puts the body of the answer into `ret` and its status into *ret_status. -errno when there is no answer: of connect(2),
 * -ETIMEDOUT, -EBADMSG for what is no HTTP, -ENAMETOOLONG for a path that does not fit a socket's address.
 */
int http_get(const char *socket_path, const char *target, int timeout_ms, struct buf *ret, int *ret_status);
/* `text` as a part of a target's path: what does not belong there as %XX; slashes and colons stay. */
void http_path(struct str text, struct buf *out);
