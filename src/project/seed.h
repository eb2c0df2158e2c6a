/* What the tool agent-sandbox wrote about a project. */
#pragma once
#include "project/project.h"

enum { SEED_PATHS = 16, SEED_PATH = 512 };

struct seed {
    char paths[SEED_PATHS][SEED_PATH]; /* relative to the project */
    size_t n_paths;
    char ports[512]; /* as options: " --publish 3000:3000"; "" */
};
/* 0, also if there is none; -errno with a sentence in `why`. */
int seed_read(const char *real, struct seed *ret, char *why, size_t room);
