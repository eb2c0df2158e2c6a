/*
 * Names of resources: what a session was denied, and its files as the box has them.
 *
 *     pinfold://session/NAME/audit
 *     pinfold://session/NAME/files/PATH
 *
 * NAME and PATH percent-encoded (RFC 3986); what stands behind "files" is an absolute path. Pure.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

#define RESOURCE_AUDIT_TYPE     "application/x-ndjson"
#define RESOURCE_DIRECTORY_TYPE "inode/directory"
#define RESOURCE_MAX_URI        16384

struct resource {
    const char *session;
    const char *path; /* NULL: the audit log */
};

/* False: it is no name of ours. Texts lie in `mem`. */
bool resource_parse(const char *uri, struct arena *mem, struct resource *ret);
/* The name of `path` in that session, or of its audit log (NULL). */
void resource_uri(struct buf *out, const char *session, const char *path);
/* The members of the result of resources/templates/list. */
void resource_templates(struct json *w);
