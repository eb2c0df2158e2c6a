/*
 * Where --result leads. In the workspace an earlier box may have put a link under that name, or on the way to it, and the result
 * holds words of the box: there no link is followed. Elsewhere those are that lie where no box could write (pinfold_path_judge).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/cli.h"

enum { RESULT_FLAGS = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY };

static bool lies_in(const char *path, const char *tree)
{
    size_t n = strlen(tree);
    return strcmp(tree, "/") == 0 || (strncmp(path, tree, n) == 0 && (!path[n] || path[n] == '/'));
}

/* The first directory of `where` that is the workspace or in it, into `real`; what follows it, or NULL when there is none. */
static const char *way_in(const char *where, const char *workspace, char real[PATH_MAX])
{
    char tree[PATH_MAX], head[PATH_MAX];
    size_t n = strlen(where);
    if (!realpath(workspace, tree) || n >= sizeof head)
        return NULL;
    if (where[0] != '/' && realpath(".", real) && lies_in(real, tree))
        return where;
    for (size_t i = 1; i < n; i++) {
        if (where[i] != '/')
            continue;
        memcpy(head, where, i);
        head[i] = 0;
        if (realpath(head, real) && lies_in(real, tree))
            return where + i + 1;
    }
    return NULL;
}

static int open_part(int dir, const char *name, int flags)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    return openat(dir, name, flags | O_NOFOLLOW, 0666);
}

/* `rest` from `top` on, over no link. */
static int open_over_no_link(const char *top, const char *rest, int flags)
{
    char name[NAME_MAX + 1];
    auto_fd int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0) {
        rest += strspn(rest, "/");
        size_t n = strcspn(rest, "/");
        if (n >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, rest, n);
        name[n] = 0;
        rest += n;
        if (!rest[strspn(rest, "/")])
            return open_part(dir, *rest || !n ? "." : name, flags);
        int next = open_part(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close_fd(dir);
        dir = next;
    }
    return -1;
}

static bool take_descriptor(const char *where, int *ret)
{
    char *end;
    long fd = strtol(where + 3, &end, 10);
    int flags = *end || !where[3] || fd < 0 || fd > 1 << 20 ? -1 : fcntl((int)fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
        complain("--result %s: not a file descriptor open for writing", where);
        return false;
    }
    *ret = (int)fd;
    return true;
}

/* Elsewhere links are followed but for those that a box may have made: it is opened by the path that came out. */
static bool follow_honest(const char *what, const char *where, char real[PATH_MAX])
{
    struct pinfold_error error = {0};
    char *found = NULL;
    if (pinfold_path_judge(what, where, &found, &error) < 0) {
        complain("%s", error.text);
        return false;
    }
    snprintf(real, PATH_MAX, "%s", found);
    free(found);
    return true;
}

int open_honest(const char *what, const char *where, const char *workspace, int flags)
{
    char real[PATH_MAX];
    const char *rest = way_in(where, workspace, real);
    if (!rest && !follow_honest(what, where, real))
        return -1;
    /* What is open has its name from the kernel. */
    int fd = rest                              ? open_over_no_link(real, rest, flags)
             : strncmp(real, "/proc/", 6) == 0 ? open(where, flags, 0666)
                                               : open_over_no_link("/", real, flags);
    if (fd < 0 && rest && errno == ELOOP)
        complain("%s %s: the path goes through a symbolic link in the workspace, where a box can create links; "
                 "use the path it leads to",
                 what, where);
    else if (fd < 0)
        complain("%s %s: %s", what, where, strerror(errno));
    return fd;
}

static const char *said_workspace(const struct ask *a)
{
    const char *workspace = ".";
    for (size_t i = 0; i < a->n_policy; i++) {
        if (strcmp(a->policy[i].name, "workspace") == 0 && a->policy[i].value)
            workspace = a->policy[i].value;
    }
    return workspace;
}

bool open_result(const struct ask *a, int *ret)
{
    const char *where = a->result;
    if (!where)
        return true;
    if (strncmp(where, "fd:", 3) == 0)
        return take_descriptor(where, ret);
    *ret = open_honest("--result", where, said_workspace(a), RESULT_FLAGS);
    return *ret >= 0;
}

bool open_events(const struct ask *a, char room[48], const char **ret)
{
    const char *where = a->events, *file = where;
    const bool otlp = where && strncmp(where, "otlp:", 5) == 0;
    *ret = where;
    if (otlp)
        file += 5;
    if (!where || strncmp(file, "fd:", 3) == 0 || strncmp(file, "http://", 7) == 0 || strcmp(where, "journald") == 0)
        return true;
    if (!otlp && !strchr(file, '/') && str_distance(str_of(file), STR("journald")) <= 2 && access(file, F_OK) < 0) {
        complain("--events %s: did you mean journald? A file of that name: ./%s", file, file);
        return false;
    }
    int fd = open_honest("--events", file, said_workspace(a), (RESULT_FLAGS & ~O_TRUNC) | O_APPEND);
    if (fd < 0)
        return false;
    snprintf(room, 48, "%sfd:%d", otlp ? "otlp:" : "", fd); /* left to exit */
    *ret = room;
    return true;
}
