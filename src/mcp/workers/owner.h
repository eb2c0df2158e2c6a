/*
 * Who owns which session: names of an instance of the server are its own, and of a client of it again.
 */
#pragma once
#include <stddef.h>
#include "base/buf.h"

#define INSTANCE_MAX 80

/* "mcp-PID-STARTED-NAMESPACE": one process of this machine, for good. 0 or -errno. */
int owner_instance(char *to, size_t room);
/* The scope of a client's sessions: "INSTANCE/CLIENT". */
void owner_scope(struct buf *out, const char *instance, const char *client);
/* Whether `scope` is of an instance that is known to be dead; one of another pid namespace cannot be judged. */
bool owner_is_dead(const char *scope);
