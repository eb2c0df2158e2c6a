/* What srt says on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "srt/srt.h"

void srt_say(const char *format, ...)
{
    char text[4096];
    auto_buf struct buf line = BUF(5 * sizeof text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strncmp(text, "Error: ", 7) != 0 && strncmp(text, "Refusing ", 9) != 0)
        buf_text(&line, "srt: ");
    utf8_safe(&line, str_of(text)); /* names in it may be a box's */
    buf_char(&line, '\n');
    (void)!write(2, line.p, line.n);
}
