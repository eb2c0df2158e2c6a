/*
 * The plain spelling of a name: what a file system that folds letters takes it for. By CaseFolding.txt (C and F) and
 * DerivedCoreProperties.txt (Default_Ignorable_Code_Point) of Unicode.
 */
#include "match/spelling.h"

#include <stdint.h>
#include <string.h>

/* All that is folded or decomposed to ASCII, and the letters i that only some tables fold so. None is longer than its bytes in UTF-8. */
static const struct {
    uint16_t from;
    char to[4];
} plain[] = {{0xdf, "ss"},   {0x130, "i"},    {0x131, "i"},    {0x17f, "s"},   {0x37e, ";"},
             {0x1e9e, "ss"}, {0x1fef, "`"},   {0x212a, "k"},   {0xfb00, "ff"}, {0xfb01, "fi"},
             {0xfb02, "fl"}, {0xfb03, "ffi"}, {0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"}};

static const struct {
    uint32_t first, last;
} ignored[] = {{0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
               {0x180b, 0x180f},   {0x200b, 0x200f},  {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
               {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3},
               {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

/* The code point at the begin of `s`, and how many bytes it has; 0 bytes: it is none beyond ASCII. */
static uint32_t decode(struct str s, size_t *ret_bytes)
{
    const unsigned char *c = (const unsigned char *)s.p;
    const size_t n = c[0] >= 0xf0 && c[0] < 0xf8   ? 4
                     : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
                     : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                                                   : 0;
    uint32_t code = n ? c[0] & (0x7fu >> n) : 0;
    *ret_bytes = 0;
    if (!n || s.n < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    *ret_bytes = n;
    return code;
}

static const char *plain_of(uint32_t code)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (plain[i].from == code)
            return plain[i].to;
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (code >= ignored[i].first && code <= ignored[i].last)
            return "";
    }
    return NULL;
}

/* One component, up to what NTFS takes for the name of a stream in that file; returns the length of what it wrote, which is never more, and
   0 if nothing would be left. */
static size_t respell(struct str name, char *to)
{
    size_t n = 0;
    for (size_t bytes; name.n && (name.p[0] != ':' || !n); name = str_skip(name, bytes)) {
        const uint32_t code = decode(name, &bytes);
        const char *as = bytes ? plain_of(code) : NULL;
        bytes = bytes ? bytes : 1;
        const size_t length = as ? strlen(as) : bytes;
        memcpy(to + n, as ? as : name.p, length);
        n += length;
    }
    while (n && (to[n - 1] == '.' || to[n - 1] == ' '))
        n--;
    return n;
}

/* Up to a slash, or what Windows takes for one. */
static size_t component_length(struct str path)
{
    size_t n = 0;
    while (n < path.n && path.p[n] != '/' && path.p[n] != '\\')
        n++;
    return n;
}

bool path_respell(struct str path, size_t from, char *to, size_t *ret_n)
{
    size_t n = from;
    memcpy(to, path.p, from);
    for (struct str rest = str_skip(path, from); rest.n;) {
        const struct str name = {rest.p, component_length(rest)};
        const bool slash = name.n < rest.n;
        const size_t length = respell(name, to + n);
        if (!length)
            memcpy(to + n, name.p, name.n);
        n += length ? length : name.n;
        if (slash)
            to[n++] = '/';
        rest = str_skip(rest, name.n + slash);
    }
    to[n] = 0;
    *ret_n = n;
    return n != path.n || memcmp(to, path.p, n) != 0;
}
