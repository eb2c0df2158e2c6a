/*
 * URIs of resources: a session's denials, and its files, named as in the box.
 *
 *     pinfold://session/NAME/audit
 *     pinfold://session/NAME/files/PATH
 *
 * NAME and PATH are percent-encoded (RFC 3986); after "files" comes an absolute path. Pure.
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

/* False if it is not one of ours. Texts are in `mem`. */
bool resource_parse(const char *uri, struct arena *mem, struct resource *ret);
/* The URI of `path` in that session, or of its audit log (NULL). */
void resource_uri(struct buf *out, const char *session, const char *path);
/* Whether `uri` is one of the templates and has a variable of that name. Takes NULL as the name. */
bool resource_has(const char *uri, const char *variable);
/* The members of the result of resources/templates/list. */
void resource_templates(struct json *w);
