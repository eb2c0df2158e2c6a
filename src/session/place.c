/*
 * Finds, creates, locks and removes a session's two directories: one in the runtime directory for its socket, one in
 * the state directory for its record. Their name is a hash of the session's.
 */
#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/own_dirs.h"
#include "sys/remove.h"
#include "base/fd.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "survey/runtime_dir.h"
#include "sessiond/sessiond.h"
#include "run/nested.h"
#include "run/private.h"
#include "run/world.h"

#define LOCK_TRIES 100
#define OWNER_LINK "of" /* in a runtime directory: a link to the state directory of its session */

int place_roots(struct arena *mem, const char **ret_run, const char **ret_state, struct err *e)
{
    /* In a box pinfold's own places are not to be seen: what it keeps there lies in the box's own memory, and ends with it. */
    const bool nested = nested_in_box();
    const char *run = nested ? runtime_in_tmp(mem) : runtime_path(mem), *state = NULL;
    int r = nested ? 0 : world_state(mem, &state, e);
    if (r < 0)
        return r;
    if (nested && run)
        state = arena_printf(mem, "%s/state", run);
    *ret_run = run ? arena_printf(mem, "%s/s", run) : NULL;
    *ret_state = arena_printf(mem, "%s/sessions", state);
    return *ret_run && *ret_state ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot find the session");
}

static int place_below(const char *run, const char *state, const char *hash, struct arena *mem,
                       struct session_place *ret, struct err *e)
{
    snprintf(ret->hash, sizeof ret->hash, "%s", hash);
    ret->run = arena_printf(mem, "%s/%s", run, hash);
    ret->state = arena_printf(mem, "%s/%s", state, hash);
    return ret->run && ret->state ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot find the session");
}

int place_of_hash(const char *hash, struct arena *mem, struct session_place *ret, struct err *e)
{
    const char *run, *state;
    int r = place_roots(mem, &run, &state, e);
    return r < 0 ? r : place_below(run, state, hash, mem, ret, e);
}

int place_named(const char *name, const char *scope, struct arena *mem, struct session_place *ret, struct err *e)
{
    char both[2 * MAX_SESSION_NAME + PATH_MAX + 2]; /* not of the heap: that would be two calls to the kernel */
    const char *run, *state;
    char hash[65];
    size_t n = name ? strlen(name) : 0, n_scope = scope ? strlen(scope) : 0;

    *ret = (struct session_place){.scope = ""};
    if (n == 0 || n > MAX_SESSION_NAME || n_scope > MAX_SESSION_NAME)
        return err_say(e, ERR_POLICY, "a session's name must have 1 to %d bytes; this one has %zu", MAX_SESSION_NAME,
                       n);
    int r = place_roots(mem, &run, &state, e);
    if (r < 0)
        return r;
    const size_t n_state = strlen(state); /* two of these may share a runtime directory */
    if (n_state > PATH_MAX)
        return err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot find the session");
    memcpy(both, state, n_state + 1);
    memcpy(both + n_state + 1, scope ? scope : "", n_scope + 1);
    memcpy(both + n_state + 1 + n_scope + 1, name, n);
    sha256_hex((struct str){both, n_state + n_scope + n + 2}, hash);
    hash[PLACE_HASH - 1] = 0;
    ret->name = arena_text(mem, name);
    ret->scope = arena_text(mem, scope ? scope : "");
    return place_below(run, state, hash, mem, ret, e);
}

/* A directory of ours that nobody else may enter: the last two components are made and judged, the last being HASH. */
static int own_directory(const char *path, struct err *e)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int r = make_private_directories(path, e);
    if (err_is_full(r))
        return r;
    if (r < 0 &&
        runtime_is_said()) /* as a rule of the user who became this one (su, sudo), or of a login that has ended */
        return err_hint(e, r, "XDG_RUNTIME_DIR does not name a directory of yours: unset it, or set it to one that is");
    if (r == -EACCES || r == -EROFS) /* anybody can make the one in /tmp first */
        return err_hint(e, r, "set XDG_RUNTIME_DIR to a directory of yours that nobody else may enter");
    if (r < 0)
        return r;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    for (int up = 0; r == 0 && up < 2; up++) {
        r = runtime_judge(parent, e);
        *strrchr(parent, '/') = 0;
    }
    return r;
}

int place_directory(const struct session_place *p)
{
    int fd = open(p->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int place_lock(const struct session_place *p, int *ret, struct err *e)
{
    int r = make_private_directories(p->state, e);
    if (r < 0 && own_dirs_allowed(p->state) < 0)
        return r;
    if (err_is_full(r))
        return r; /* what helps there is said of every full disk */
    if (r < 0)
        return err_hint(e, r, "sessions are recorded there: set HOME or XDG_STATE_HOME to a directory of yours");
    for (int tries = 0; r == 0 && tries < LOCK_TRIES; tries++) {
        struct stat st;
        r = own_directory(p->run, e);
        if (r < 0)
            return r;
        auto_fd int fd = place_directory(p);
        if (fd == -ENOENT) /* removed meanwhile */
            continue;
        if (fd < 0)
            return err_sys(e, ERR_SYSTEM, -fd, "cannot open '%s'", p->run);
        const int no = fd_lock(fd, LOCK_EX);
        if (no < 0)
            return err_sys(e, ERR_SYSTEM, -no, "cannot lock '%s'", p->run);
        if (fstat(fd, &st) == 0 && st.st_nlink > 0) {      /* else it was removed while we waited */
            may_fail(symlinkat(p->state, fd, OWNER_LINK)); /* without it, it is never pruned */
            *ret = take_fd(&fd);
            return 0;
        }
    }
    return r < 0 ? r : err_sys(e, ERR_SYSTEM, EBUSY, "cannot lock '%s'", p->run);
}

int place_connect(const struct session_place *p)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    auto_fd int dir = -1;
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/" KEEP_SOCKET, p->run);
    if ((size_t)n >= sizeof at.sun_path) {
        dir = place_directory(p);
        if (dir < 0)
            return dir;
        snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" KEEP_SOCKET, dir);
    }
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return take_fd(&fd);
}

void place_remove(const struct session_place *p)
{
    remove_tree(AT_FDCWD, p->state);
    remove_tree(AT_FDCWD, p->run);
}

bool place_is_of_here(const struct session_place *p)
{
    char path[PATH_MAX], of[PATH_MAX];
    snprintf(path, sizeof path, "%s/" OWNER_LINK, p->run);
    ssize_t n = readlink(path, of, sizeof of - 1);
    if (n < 0)
        return false;
    of[n] = 0;
    return same(of, p->state);
}

bool place_is_hash(const char *name)
{
    return strlen(name) == PLACE_HASH - 1 && strspn(name, "0123456789abcdef") == PLACE_HASH - 1;
}
