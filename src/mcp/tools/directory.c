/*
 * Checks a directory named by a model, and finds the server's state directories. Only directories below a base that a
 * person named, over no link.
 */
#include "mcp/tools/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "sys/remove.h"
#include "mcp/mcp.h"
#include "sys/file.h"
#include "user/own_dirs.h"

static bool within(const char *path, const char *base)
{
    size_t n = strlen(base);
    return strncmp(path, base, n) == 0 && (path[n] == '/' || path[n] == 0 || strcmp(base, "/") == 0);
}

/* The directory at `real`, from its base on without a link; -1 with errno. */
static int open_below(const char *base, const char *real)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    const char *rest = real + (strcmp(base, "/") == 0 ? 0 : strlen(base));
    auto_fd int fd = open(base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    while (*rest == '/')
        rest++;
    return fd < 0 ? -1 : (int)syscall(SYS_openat2, fd, *rest ? rest : ".", &how, sizeof how);
}

char *directory_permitted(const char *directory, const struct mcp_options *o, int *ret_fd, char *why, size_t room)
{
    const char *const *bases = o->bases;
    char real[PATH_MAX], base[PATH_MAX];
    struct stat st;

    if (directory[0] != '/') {
        snprintf(why, room, "the directory '%.200s' must be absolute", directory);
        return NULL;
    }
    if (!o->judge("the directory", directory, real, why, room))
        return NULL;
    if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode)) {
        snprintf(why, room, "'%.200s' is not a directory", directory);
        return NULL;
    }
    for (const char *const *b = bases; *b; b++) {
        char ignored[256];
        if (!o->judge("--base", *b, base, ignored, sizeof ignored) || !within(real, base))
            continue;
        *ret_fd = open_below(base, real);
        if (*ret_fd >= 0)
            return strdup(real);
        snprintf(why, room, "the directory '%.200s' was replaced by another one: %s", directory, strerror(errno));
        return NULL;
    }
    int n = snprintf(why, room, "the directory '%.200s' is outside the permitted directories (--base", directory);
    for (const char *const *b = bases; *b && n < (int)room; b++)
        n += snprintf(why + n, room - (size_t)n, "%s %.200s", b == bases ? "" : ",", *b);
    if (n < (int)room)
        snprintf(why + n, room - (size_t)n, ")");
    return NULL;
}

/* A name for what may be any text. */
static void name_hash(const char *text, char to[33])
{
    uint64_t h[2];
    hash128(text, strlen(text), h);
    snprintf(to, 33, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

static bool make_own(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) == 0)
        return true;
    return errno == EEXIST && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
           (st.st_mode & 077) == 0;
}

/* Where states of users lie (XDG Base Directory Specification); the length, or -1. */
static int state_home(char *path, size_t room)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    return state && state[0] == '/' ? snprintf(path, room, "%s", state)
           : home                   ? snprintf(path, room, "%s/.local/state", home)
                                    : -1;
}

char *directory_audit(void)
{
    char path[PATH_MAX];
    int n = state_home(path, sizeof path - 64);
    if (n < 0 || (size_t)n >= sizeof path - 64)
        return NULL;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/pinfold/audit/audit.jsonl");
    return strdup(path);
}

char *directory_state(const char *instance, const char *name, bool make)
{
    char path[PATH_MAX - 80], hash[33];
    int n = state_home(path, sizeof path);

    if (n < 0 || (size_t)n >= sizeof path - 160) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int made = make ? own_dirs_make(path) : 0;
    if (made < 0) {
        errno = -made;
        return NULL;
    }
    /* Not among pinfold's own files, of which nothing can be mounted. */
    n += snprintf(path + n, sizeof path - (size_t)n, "/pinfold-agents");
    if (make && !make_own(path))
        return NULL;
    n += snprintf(path + n, sizeof path - (size_t)n, "/%s", instance);
    if (make && !make_own(path))
        return NULL;
    if (name) {
        name_hash(name, hash);
        (void)snprintf(path + n, sizeof path - (size_t)n, "/%s", hash);
        if (make && !make_own(path))
            return NULL;
    }
    return strdup(path);
}

char *directory_store(void)
{
    char *path = directory_state(".", NULL, false);
    if (path)
        path[strlen(path) - 2] = 0;
    return path;
}

void directory_forget(const char *instance)
{
    char *path = directory_state(instance, NULL, false);
    if (path)
        remove_tree(AT_FDCWD, path);
    free(path);
}

void directory_forget_dead(bool (*is_dead)(const char *scope))
{
    char *path = directory_state(".", NULL, false), scope[PATH_MAX];
    DIR *all = path ? opendir(path) : NULL;

    free(path);
    for (struct dirent *d; all && (d = readdir(all));) {
        snprintf(scope, sizeof scope, "%s/", d->d_name);
        if (is_dead(scope))
            directory_forget(d->d_name);
    }
    if (all)
        (void)closedir(all);
}
