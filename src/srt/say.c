/* What srt says on standard error. */
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "srt/srt.h"

void srt_say(const char *format, ...)
{
    const bool whole = strncmp(format, "Error: ", 7) == 0 || strncmp(format, "Refusing ", 9) == 0;
    va_list args;
    va_start(args, format);
    utf8_complain(whole ? "" : "srt: ", format, args);
    va_end(args);
}
