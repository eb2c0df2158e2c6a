/* One GET request to a server on a Unix socket, with a timeout. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/*
 * Puts the body of the answer into `ret` and its status into *ret_status. -errno without an answer: from connect(2),
 * -ETIMEDOUT, -EBADMSG if it is not HTTP, -ENAMETOOLONG if the path is too long for a socket address.
 */
int http_get(const char *socket_path, const char *target, int timeout_ms, struct buf *ret, int *ret_status);
/* Puts `text` percent-encoded as part of a path; slashes and colons stay. */
void http_path(struct str text, struct buf *out);
