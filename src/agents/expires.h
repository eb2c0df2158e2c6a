/* When a login ends, by its text alone: expires.c. */
#pragma once
#include <stdint.h>
#include "base/str.h"

/*
 * Seconds since 1970 of what is at `place` ("a.b") of a JSON object: a number of seconds or milliseconds, or a JSON web token, which
 * says it itself. 0: it does not say.
 */
int64_t agent_login_expires(struct str json, const char *place);
