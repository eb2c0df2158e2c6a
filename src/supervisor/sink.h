/*
 * Where events of a run go besides the audit log: JSON lines to a descriptor, OpenTelemetry's logs (OTLP in JSON) to a descriptor
 * or to a collector on this machine, or journald. An event is written at once, but for a collector, which gets them at the end.
 */
#pragma once
#include "base/err.h"
#include "supervisor/audit.h"

struct sink;
/* `where`: "fd:N", "otlp:fd:N", "otlp:http://127.0.0.1:PORT/PATH", "journald". -errno with `e`. */
int sink_open(const char *where, struct sink **ret, struct err *e);
/* A failure is kept for sink_close(). */
void sink_event(struct sink *s, const struct audit_event *v);
/* What could not be written: 0 or -errno. Takes NULL. */
int sink_close(struct sink *s);
