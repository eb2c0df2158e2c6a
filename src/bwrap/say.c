/*
 * Messages of pinfold-bwrap, in the form that programs know from bubblewrap: "bwrap: <sentence>". Several processes
 * speak, so each line is one write.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/process.h"

static bool levels;
static int failure_fd = -1;

void bw_levels(bool on)
{
    levels = on;
}

void bw_tell_failure_on(int fd)
{
    failure_fd = fd;
}

/* One write, so that lines of several processes do not mix. */
__attribute__((format(printf, 3, 0))) static void say(int level, const char *why, const char *format, va_list args)
{
    char line[8192];
    size_t n = 0;
    if (levels)
        n += (size_t)snprintf(line, sizeof line, "<%d>", level);
    n += (size_t)snprintf(line + n, sizeof line - n, "bwrap: ");
    const int k = vsnprintf(line + n, sizeof line - n - 256, format, args);
    n += k < 0 ? 0 : (size_t)k < sizeof line - n - 256 ? (size_t)k : sizeof line - n - 257;
    n += (size_t)snprintf(line + n, sizeof line - n, "%s%s\n", why ? ": " : "", why ? why : "");
    (void)sys_write(2, line, n);
}

static _Noreturn void fail(void)
{
    if (failure_fd >= 0)
        (void)sys_write(failure_fd, "F", 1);
    sys_exit(1);
}

void bw_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(4, NULL, format, args);
    va_end(args);
}

void bw_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(3, NULL, format, args);
    va_end(args);
    fail();
}

void bw_die_sys(int no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(3, strerror(no < 0 ? -no : no), format, args);
    va_end(args);
    fail();
}
