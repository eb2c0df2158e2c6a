/*
 * Which media type a file has: pictures, sounds and PDF by their first bytes, everything else by the end of the name.
 * A client shows a picture as one, so its bytes decide and not the name that a box gave it.
 */
#include "mcp/protocol/mime.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"

static const char *by_bytes(struct str b)
{
    if (b.n >= 12 && memcmp(b.p, "RIFF", 4) == 0 && memcmp(b.p + 8, "WEBP", 4) == 0)
        return "image/webp";
    if (b.n >= 12 && memcmp(b.p, "RIFF", 4) == 0 && memcmp(b.p + 8, "WAVE", 4) == 0)
        return "audio/wav";
    static const struct {
        const char *begin;
        size_t n;
        const char *type;
    } known[] = {{"\x89PNG\r\n\x1a\n", 8, "image/png"},
                 {"\xff\xd8\xff", 3, "image/jpeg"},
                 {"GIF87a", 6, "image/gif"},
                 {"GIF89a", 6, "image/gif"},
                 {"ID3\x03", 4, "audio/mpeg"},
                 {"ID3\x04", 4, "audio/mpeg"},
                 {"%PDF-", 5, "application/pdf"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (b.n >= known[i].n && memcmp(b.p, known[i].begin, known[i].n) == 0)
            return known[i].type;
    }
    return NULL;
}

const char *mime_of_name(const char *name)
{
    static const char *const known[][2] = {{"json", "application/json"},
                                           {"ndjson", "application/x-ndjson"},
                                           {"md", "text/markdown"},
                                           {"html", "text/html"},
                                           {"htm", "text/html"},
                                           {"css", "text/css"},
                                           {"csv", "text/csv"},
                                           {"xml", "application/xml"},
                                           {"svg", "image/svg+xml"},
                                           {"js", "text/javascript"},
                                           {"mjs", "text/javascript"},
                                           {"cjs", "text/javascript"},
                                           {"ts", "text/typescript"},
                                           {"tsx", "text/typescript"},
                                           {"jsx", "text/javascript"},
                                           {"py", "text/x-python"},
                                           {"c", "text/x-c"},
                                           {"h", "text/x-c"},
                                           {"cc", "text/x-c++"},
                                           {"cpp", "text/x-c++"},
                                           {"hpp", "text/x-c++"},
                                           {"rs", "text/x-rust"},
                                           {"go", "text/x-go"},
                                           {"java", "text/x-java"},
                                           {"rb", "text/x-ruby"},
                                           {"php", "text/x-php"},
                                           {"sh", "text/x-shellscript"},
                                           {"yaml", "application/yaml"},
                                           {"yml", "application/yaml"},
                                           {"toml", "application/toml"},
                                           {"txt", "text/plain"},
                                           {"log", "text/plain"},
                                           {"diff", "text/x-diff"},
                                           {"patch", "text/x-diff"},
                                           {"sql", "application/sql"},
                                           {"pdf", "application/pdf"},
                                           {"png", "image/png"},
                                           {"jpg", "image/jpeg"},
                                           {"jpeg", "image/jpeg"},
                                           {"gif", "image/gif"},
                                           {"webp", "image/webp"},
                                           {"wav", "audio/wav"},
                                           {"mp3", "audio/mpeg"},
                                           {"zip", "application/zip"},
                                           {"gz", "application/gzip"},
                                           {"tar", "application/x-tar"},
                                           {"wasm", "application/wasm"}};
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++) {
        if (strcasecmp(dot + 1, known[i][0]) == 0)
            return known[i][1];
    }
    return NULL;
}

const char *mime_of(const char *name, struct str bytes)
{
    const char *type = by_bytes(bytes), *named = mime_of_name(name);
    bool text = utf8_is_text(bytes);
    if (type)
        return type;
    /* What is called a picture or a sound and is none, or called text and is no text, is not called so. */
    if (named && !mime_content(named) && (text || strncmp(named, "text/", 5) != 0))
        return named;
    return text ? "text/plain" : "application/octet-stream";
}

const char *mime_content(const char *type)
{
    static const char shown[][12] = {"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg"};
    for (size_t i = 0; type && i < sizeof shown / sizeof *shown; i++) {
        if (strcmp(type, shown[i]) == 0)
            return type[0] == 'i' ? "image" : "audio";
    }
    return NULL;
}
