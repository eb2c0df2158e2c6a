/* The files of pinfold's own images (images/), which the build puts into this program. */
#pragma once
#include <stddef.h>

struct image_file {
    const char *name, *text;
};
extern const struct image_file image_files_base[], image_files_budgie[]; /* ended by a NULL name */
