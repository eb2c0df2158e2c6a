/*
 * file: URIs of a client's directories, as paths. One that is of another host, or is not encoded well, is none.
 */
#include "mcp/protocol/roots.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

char *roots_directory(const char *uri)
{
    const char *path = uri + 5;
    if (strncasecmp(uri, "file:", 5) != 0)
        return NULL;
    if (strncmp(path, "//", 2) == 0) { /* an authority: none, or this machine */
        path += 2;
        path += strncasecmp(path, "localhost/", 10) == 0 ? 9 : 0;
    }
    char *to = path[0] == '/' ? strdup(path) : NULL, *at = to;
    for (const char *c = to; c && *c; c++) {
        bool encoded = *c == '%';
        int high = encoded ? hex_digit(c[1]) : 0, low = encoded && high >= 0 ? hex_digit(c[2]) : 0;
        if (high < 0 || low < 0 || (encoded && high == 0 && low == 0)) {
            free(to);
            return NULL;
        }
        *at++ = encoded ? (char)(high * 16 + low) : *c;
        c += encoded ? 2 : 0;
    }
    if (at)
        *at = 0;
    return to;
}
