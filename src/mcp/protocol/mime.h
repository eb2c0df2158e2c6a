/* Media types of files by content and name. Pure. */
#pragma once
#include "base/str.h"

/* Never NULL: "application/octet-stream" where nothing better is known. `name` may be a path. */
const char *mime_of(const char *name, struct str bytes);
/* By its name alone; NULL: unknown. */
const char *mime_of_name(const char *name);
/* Whether it is an image that models can look at: PNG, JPEG, GIF or WebP, known by its first bytes. */
bool mime_is_picture(const char *type);
