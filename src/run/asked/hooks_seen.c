/*
 * Looks at the package.json of a workspace before a box and after it, without following a link at its name. One that can be read only
 * before or only after is told of; what has changed in it, match/manifest.c says.
 */
#include "run/asked/hooks_seen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "match/manifest.h"

/* A box may have left anything at the name. False: it is there, and cannot be read. */
static bool read_manifest(const char *path, struct buf *ret)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MANIFEST_MAX && fd_read_all(fd, ret) == 0;
}

static bool path_to(const struct policy *p, char ret[PATH_MAX])
{
    return p->workspace && snprintf(ret, PATH_MAX, "%s/" MANIFEST, p->workspace) < PATH_MAX;
}

void hooks_look(const struct policy *p, struct hooks_seen *ret)
{
    char path[PATH_MAX];
    *ret = (struct hooks_seen){.before = BUF(2 * MANIFEST_MAX)};
    ret->looked = p->guard != GUARD_OFF && !p->workspace_read_only && !p->cow && path_to(p, path);
    if (ret->looked)
        ret->unknown = !read_manifest(path, &ret->before);
}

void hooks_changed(const struct policy *p, struct hooks_seen *seen, struct box_result *result)
{
    char path[PATH_MAX];
    auto_buf struct buf after = BUF(2 * MANIFEST_MAX), keys = BUF(1024);
    if (seen->looked && path_to(p, path)) {
        const bool known = read_manifest(path, &after);
        if (known && !seen->unknown ? manifest_changed(buf_view(&seen->before), buf_view(&after), &keys)
                                    : known == seen->unknown)
            box_result_left(result, "hooks", path, keys.n ? buf_cstr(&keys) : "it cannot be read");
    }
    hooks_seen_free(seen);
}

void hooks_seen_free(struct hooks_seen *seen)
{
    buf_free(&seen->before);
}
