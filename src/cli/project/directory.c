/*
 * The directory of a project that a verb's words name, or this one. The verbs of projects, branches and images share
 * it, so that all refuse the same words.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

bool project_directory(const struct ask *a, int first, char real[PATH_MAX])
{
    const char *name = verb_said, *path = a->n_words > first ? a->words[first] : ".";
    struct stat st;
    if (a->n_words > first + 1) {
        complain("%s: unexpected argument '%s' (pinfold %s %s[PATH])", name, a->words[first + 1], name,
                 first ? "BRANCH " : "");
        return false;
    }
    if (!realpath(path, real) || stat(real, &st) < 0) {
        complain("%s: cannot use '%s': %s", name, path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        complain("%s: '%s' is not a directory", name, path);
        return false;
    }
    return true;
}
