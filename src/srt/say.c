/*
 * What srt says on standard error: in srt's form, with its name. A file of its own because all of this folder's use
 * it.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "srt/srt.h"

void srt_say(const char *format, ...)
{
    const bool whole = strncmp(format, "Error: ", 7) == 0 || strncmp(format, "Refusing ", 9) == 0;
    auto_buf struct buf line = BUF(5 * 4096);
    va_list args;
    va_start(args, format);
    utf8_line(&line, whole ? "" : "srt: ", format, args);
    va_end(args);
    (void)!write(2, line.p, line.n); /* one write: lines of several runs do not mix */
}
