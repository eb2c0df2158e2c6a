/*
 * Remembers which .env files a box does not see, and finds after it which of them were replaced on the host; tells a command that
 * failed of them, once a day.
 */
#include "run/asked/env_seen.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "match/path.h"
#include "run/words.h"
#include "supervisor/run.h"
#include "user/own_dirs.h"

enum { NAMES = 3, DAY = 24 * 60 * 60 };

void env_look(const struct policy *p, struct env_seen *ret)
{
    struct stat st;
    ret->n = 0;
    for (size_t i = 0; i < p->n_paths && ret->n < MAX_ENV_FILES; i++) {
        if (!p->paths[i].once || stat(p->paths[i].path, &st) < 0)
            continue;
        ret->at[ret->n].rule = (uint32_t)i;
        ret->at[ret->n].dev = st.st_dev;
        ret->at[ret->n++].ino = st.st_ino;
    }
}

void env_replaced(const struct policy *p, const struct env_seen *before, struct box_result *result)
{
    struct stat st;
    for (size_t i = 0; i < before->n; i++) {
        const char *path = p->paths[before->at[i].rule].path;
        if (stat(path, &st) == 0 && (st.st_ino != before->at[i].ino || st.st_dev != before->at[i].dev))
            box_result_left(result, "replaced", path, NULL);
    }
}

/* A refusal that is told names the remedy itself. */
static bool is_told(const struct box_result *r)
{
    for (size_t i = 0; i < r->n_denials; i++) {
        if (r->denials[i].origin && strstr(r->denials[i].origin, ENV_ORIGIN))
            return true;
    }
    return false;
}

/*
 * Most commands that fail do so for another reason: the line is said once a day in a workspace. An empty file in the state
 * directory remembers when; where that cannot be written, it is said each time.
 */
static bool is_due(const char *state, const char *workspace)
{
    char path[PATH_MAX];
    struct stat st;
    uint64_t h = hash64(HASH64, workspace, strlen(workspace)); /* a collision costs a line */
    int n = snprintf(path, sizeof path, "%s/told/env-%016llx", state, (unsigned long long)h);
    if (n < 0 || n >= (int)sizeof path || (stat(path, &st) == 0 && time(NULL) - st.st_mtime < DAY))
        return n < 0 || n >= (int)sizeof path;
    if (own_dirs_allowed(state) < 0)
        return true;
    char *slash = strrchr(path, '/');
    *slash = 0;
    (void)mkdir(path, 0700);
    *slash = '/';
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)futimens(fd, NULL);
    return true;
}

void env_words(const struct policy *p, const struct env_seen *before, const struct box_result *result,
               const char *state, struct buf *out)
{
    if (!before->n || result->end != BOX_EXITED || result->code == 0 || is_told(result) || !is_due(state, p->workspace))
        return;
    buf_text(out, "hidden in this box: ");
    for (size_t i = 0; i < before->n && i < NAMES; i++) {
        buf_text(out, i ? ", " : "");
        words_safe(out, path_name(p->paths[before->at[i].rule].path));
    }
    if (before->n > NAMES)
        buf_printf(out, " and %zu more", before->n - NAMES);
    buf_printf(out, "; if the command needs %s: --env-files", before->n == 1 ? "it" : "them");
}
