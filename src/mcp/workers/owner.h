/* Owners of sessions: each instance of the server, and each of its clients, has its own names. */
#pragma once
#include <stddef.h>
#include "base/buf.h"

#define INSTANCE_MAX 80

/* "mcp-PID-STARTED-NAMESPACE": identifies one process of this machine for good. 0 or -errno. */
int owner_instance(char *to, size_t room);
/* The scope of a client's sessions: "INSTANCE/CLIENT". */
void owner_scope(struct buf *out, const char *instance, const char *client);
/* Whether `scope` belongs to an instance known to be dead; one of another pid namespace is unknown. */
bool owner_is_dead(const char *scope);
