/*
 * What clang-tidy is told besides the sources (tests/lint/run): how functions of other files answer. Without it the
 * analyzer follows `r = f(&x); if (r < 0) return r;` past the return with r >= 0 and x untouched.
 */
#pragma once
#include <errno.h>
#include "base/err.h"
#define err_say(e, kind, ...)     ((void)(err_say)((e), (kind), __VA_ARGS__), -EINVAL)
#define err_sys(e, kind, no, ...) ((void)(err_sys)((e), (kind), (no), __VA_ARGS__), -EIO)
#define err_wrap(e, r, ...)       ((void)(err_wrap)((e), (r), __VA_ARGS__), (r))
#define err_hint(e, r, ...)       ((void)(err_hint)((e), (r), __VA_ARGS__), (r))
