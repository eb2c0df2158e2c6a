/* Media types of files by content and name. Pure. */
#pragma once
#include "base/str.h"

/* Never NULL: "application/octet-stream" where nothing better is known. `name` may be a path. */
const char *mime_of(const char *name, struct str bytes);
/* By its name alone; NULL: unknown. */
const char *mime_of_name(const char *name);
/* The kind of content by which models get it, "image" (PNG, JPEG, GIF, WebP) or "audio" (WAV, MP3), known by its first bytes; or NULL. */
const char *mime_content(const char *type);
