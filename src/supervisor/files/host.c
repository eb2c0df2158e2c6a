/*
 * Host paths given by a person, when a box may have put links into them. Where this box can write, or another could
 * (survey/written.h), a link may be the box's and is not followed; others are followed as usual. Each component is
 * opened before it is examined, so that what was checked is what is used.
 */
#include "supervisor/files/host.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "survey/written.h"
#include "sys/fd.h"
#include "sys/file.h"

enum { HOST_LINKS = 40 }; /* as many as the kernel follows */

struct host_walk {
    const struct path_table *mounts;
    const char *memory;
    int dir;
    unsigned links;
    char rest[2 * FILE_PATH], name[256];
    bool planted;
};

/* Whether the box can write what the host has at `path`: of its mounts the one from nearest above says so. */
static bool box_writes(const struct path_table *t, struct str path)
{
    const struct path_mount *best = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const struct path_mount *m = &t->mounts[i];
        if (m->kind == PATH_PRIVATE || !path_lies_in(path, m->host))
            continue;
        if (!best || m->host.n > best->host.n || (m->host.n == best->host.n && m->kind == PATH_WRITABLE))
            best = m;
    }
    return best && best->kind == PATH_WRITABLE;
}

/* A link of root's is none of a box that somebody else started. */
static bool is_planted(const struct host_walk *w, const struct sys_stat *link)
{
    char self[32], path[FILE_PATH];
    if (link->uid == 0 && geteuid() != 0)
        return false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->dir);
    long n = sys_readlinkat(AT_FDCWD, self, path, sizeof path);
    if (n <= 0 || n == (long)sizeof path)
        return true;
    path[n] = 0;
    return box_writes(w->mounts, (struct str){path, (size_t)n}) || written_covers(w->memory, path);
}

static int host_enter(struct host_walk *w, int next)
{
    (void)close_fd(w->dir);
    w->dir = next;
    return next < 0 ? next : 0;
}

/* What the link `fd` says stands in front of the rest. */
static int host_follow(struct host_walk *w, int fd)
{
    const int no = link_before_rest(fd, w->rest, sizeof w->rest, &w->links, HOST_LINKS);
    return no == 1 ? host_enter(w, sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0)) : no;
}

/* The next component into w->name; false: there is none left. */
static bool take_component(struct host_walk *w, bool *ret_long)
{
    size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");
    *ret_long = n >= sizeof w->name;
    if (n == 0 || *ret_long)
        return false;
    memcpy(w->name, w->rest + from, n);
    w->name[n] = 0;
    memmove(w->rest, w->rest + from + n, strlen(w->rest + from + n) + 1);
    return true;
}

/* One component. 1: it is the last, and stands in w->name. */
static int host_step(struct host_walk *w)
{
    struct sys_stat st;
    bool too_long, last;
    if (!take_component(w, &too_long)) {
        strcpy(w->name, "."); /* "/", or a path that ends in ".." */
        return too_long ? -ENAMETOOLONG : 1;
    }
    last = w->rest[strspn(w->rest, "/")] == 0;
    if (strcmp(w->name, ".") == 0 || strcmp(w->name, "..") == 0)
        return host_enter(w, sys_openat(w->dir, w->name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    auto_fd int fd = sys_openat(w->dir, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    int no = fd < 0 ? fd : sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == -ENOENT && last)
        return 1;
    if (no < 0)
        return no;
    if (S_ISLNK(st.mode)) {
        if (!is_planted(w, &st))
            return host_follow(w, fd);
        w->planted = true;
        return last ? 1 : -ELOOP;
    }
    if (last)
        return 1;
    return S_ISDIR(st.mode) ? host_enter(w, take_fd(&fd)) : -ENOTDIR;
}

int host_find(const struct path_table *mounts, const char *memory, const char *path, struct host_place *ret)
{
    struct host_walk w = {.mounts = mounts, .memory = memory, .dir = -1};
    size_t n = strlen(path);
    if (n == 0 || n >= FILE_PATH)
        return n ? -ENAMETOOLONG : -ENOENT;
    memcpy(w.rest, path, n + 1);
    int no = host_enter(&w, sys_openat(AT_FDCWD, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    while (no == 0)
        no = host_step(&w);
    ret->planted = w.planted;
    if (no < 0) {
        (void)close_fd(w.dir);
        return no;
    }
    ret->dir = w.dir;
    memcpy(ret->name, w.name, sizeof w.name);
    return 0;
}
