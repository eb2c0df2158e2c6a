/*
 * Reports what git on the host would run from the current directory: the repository around it, and other directories
 * below that git would treat as one. The walk is limited; reaching the limit is reported.
 */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "match/path.h"

#define WALK_ENTRIES 50000
#define WALK_DEPTH   12

struct repository_walk {
    struct arena *mem;
    struct git_runs *all;
    struct git_look look;
    unsigned left;
    bool only_odd;
};

static void keep_run(void *ctx, const struct git_run *r)
{
    struct repository_walk *w = ctx;
    if (w->only_odd && r->odd == GIT_USUAL)
        return;
    struct git_run *kept = arena_push(w->mem, &w->all->list, &w->all->n, sizeof *kept);
    if (kept)
        *kept = *r;
}

static int look_at_path(struct repository_walk *w, const char *directory, bool below)
{
    w->look.top = directory;
    w->look.below = below;
    w->look.not_read = 0;
    w->only_odd = below;
    int r = git_look(&w->look);
    w->all->not_read += w->look.not_read;
    return r;
}

static int walk(struct repository_walk *w, const char *directory, unsigned depth);

static int walk_entry(struct repository_walk *w, const char *directory, const struct dirent *e, unsigned depth)
{
    struct stat st;
    const char *path = path_join(w->mem, directory, e->d_name);
    if (!path || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    const char *git = path_join(w->mem, path, ".git");
    if ((git && lstat(git, &st) == 0) || git_look_is_bare(w->mem, path)) {
        int r = look_at_path(w, path, true);
        if (r < 0)
            return r;
    }
    return walk(w, path, depth - 1);
}

static int walk(struct repository_walk *w, const char *directory, unsigned depth)
{
    DIR *d = depth ? opendir(directory) : NULL;
    int r = 0;
    w->all->cut |= depth == 0;
    if (!d)
        return 0;
    struct dirent *e;
    while (r == 0 && (e = readdir(d))) {
        if (w->left == 0) {
            w->all->cut = true;
            break;
        }
        w->left--;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, ".git") != 0)
            r = walk_entry(w, directory, e, depth);
    }
    closedir(d);
    return r;
}

/* The work tree around the current directory; the directory itself if there is none. */
static const char *find_top(struct arena *mem)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here) || here[0] != '/')
        return NULL;
    for (const char *at = arena_text(mem, here); at && strcmp(at, "/") != 0; at = path_dir(mem, at)) {
        struct stat st;
        const char *git = path_join(mem, at, ".git");
        if ((git && lstat(git, &st) == 0) || git_look_is_bare(mem, at))
            return at;
    }
    return arena_text(mem, here);
}

int doctor_git(struct arena *mem, const char *home, struct git_runs *ret)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    struct repository_walk w = {.mem = mem, .all = ret, .left = WALK_ENTRIES};
    ret->top = find_top(mem);
    if (!ret->top)
        return 0;
    w.look = (struct git_look){.mem = mem,
                               .home = home,
                               .config_home = config && config[0] == '/' ? config
                                              : home                     ? path_join(mem, home, ".config")
                                                                         : NULL,
                               .whole = true,
                               .runs = keep_run,
                               .ctx = &w};
    int r = look_at_path(&w, ret->top, false);
    ret->repository = w.look.own != NULL;
    return r == 0 && strcmp(ret->top, "/") != 0 ? walk(&w, ret->top, WALK_DEPTH) : r;
}
