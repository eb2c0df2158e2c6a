/*
 * Which secret files a box of the policy in force here could read. Names and time are limited: a home is looked at three levels deep,
 * without what tools generate; of a file at most its beginning is read, and no link is followed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "doctor/doctor.h"
#include "match/path.h"
#include "run/direct.h"
#include "run/planned.h"
#include "why/why.h"

enum {
    SECRETS_NAMES = 40000,
    SECRETS_DEPTH = 8,
    SECRETS_HOME_DEPTH = 3,
    SECRETS_READ = 64 << 10,
    SECRETS_FILES = 3000, /* that are read */
    SECRETS_MOST = 500,   /* that are listed */
    SECRETS_MS = 5000
};

extern char **environ;

struct secret_walk {
    struct arena *mem;
    struct secret_files *all;
    const struct plan *plan;
    unsigned names, files;
    int64_t until;
    bool above;
};

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Directories of other people's files, or of what tools make again. */
static bool is_generated(const char *name)
{
    static const char names[][16] = {".",      "..",      ".git",    "node_modules", "target",        "vendor",
                                     "dist",   "build",   ".cache",  ".venv",        "venv",          "__pycache__",
                                     ".cargo", ".rustup", "go",      ".gradle",      ".m2",           ".nvm",
                                     ".pyenv", ".local",  ".vscode", ".cursor",      "site-packages", "third_party"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (same(name, names[i]))
            return true;
    }
    return false;
}

static bool content_is_secret(struct secret_walk *w, int dir, const char *name, const char *path)
{
    static char text[SECRETS_READ];
    struct stat st;
    if (w->files == 0) {
        w->all->cut = true;
        return false;
    }
    w->files--;
    auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    ssize_t n = read(fd, text, sizeof text);
    return n > 0 && secret_by_content(str_of(path), (struct str){text, (size_t)n});
}

static void take_file(struct secret_walk *w, int dir, const char *name, const char *path)
{
    struct why why;
    struct err ignored = {0};
    bool look = false;
    const char *what = secret_by_name(str_of(path), &look);
    if (!what || (look && !content_is_secret(w, dir, name, path)))
        return;
    if (why_ask(w->plan, WHY_READ, path, w->mem, &why, &ignored) < 0)
        return;
    if (why.verdict == WHY_REFUSED) {
        w->all->hidden += why.cause != WHY_CAUSE_HOST;
        return;
    }
    if (w->all->n == SECRETS_MOST) {
        w->all->cut = true;
        return;
    }
    struct secret_file *slot = arena_push(w->mem, &w->all->list, &w->all->n, sizeof *slot);
    if (slot)
        *slot = (struct secret_file){path, what, w->above};
}

/* As the directory says; not every file system does. DT_UNKNOWN: it is gone. */
static unsigned char entry_type(int dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type;
    return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN : IFTODT(st.st_mode);
}

static void walk_names(struct secret_walk *w, int parent, const char *name, const char *path, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        (void)close_fd(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        if (w->names == 0 || now_ms() > w->until) {
            w->all->cut = true;
            break;
        }
        w->names--;
        const unsigned char type = is_generated(e->d_name) ? DT_SOCK : entry_type(dirfd(d), e);
        if (type != DT_REG && type != DT_DIR)
            continue;
        const char *here = path_join(w->mem, path, e->d_name);
        if (here && type == DT_REG)
            take_file(w, dirfd(d), e->d_name, here);
        else if (here && type == DT_DIR && depth > 1 && !(w->above && same(here, w->all->workspace)))
            walk_names(w, dirfd(d), e->d_name, here, depth - 1);
        else if (type == DT_DIR && depth <= 1)
            w->all->cut |= !w->above;
    }
    (void)closedir(d);
}

int doctor_secrets(struct arena *mem, const char *home, struct secret_files *ret)
{
    const struct pinfold_policy_options o = {.size = sizeof o};
    struct pinfold_policy *policy = NULL;
    struct pinfold_error error = {0};
    struct prepared plan = {0};
    struct err e = {0};
    char real[PATH_MAX];
    if (pinfold_policy_load(&o, &policy, &error) < 0) {
        ret->why = arena_text(mem, error.text);
        return ret->why ? 0 : -ENOMEM;
    }
    const struct plan_ask ask = {.cwd = planned_directory(policy), .environ = (const char *const *)environ};
    if (prepare(policy, &ask, false, &plan, &e) < 0) {
        ret->why = arena_text(mem, e.text);
        pinfold_policy_free(policy);
        return ret->why ? 0 : -ENOMEM;
    }
    struct secret_walk w = {.mem = mem,
                            .all = ret,
                            .plan = plan.plan,
                            .names = SECRETS_NAMES,
                            .files = SECRETS_FILES,
                            .until = now_ms() + SECRETS_MS};
    ret->workspace = arena_text(mem, plan.plan->workspace);
    ret->root_note = arena_text_or_null(mem, plan.plan->root_note);
    if (ret->workspace)
        walk_names(&w, AT_FDCWD, ret->workspace, ret->workspace, SECRETS_DEPTH);
    w.above = true;
    w.names = SECRETS_NAMES;
    w.until = now_ms() + SECRETS_MS;
    if (home && realpath(home, real) && ret->workspace && !same(real, ret->workspace))
        walk_names(&w, AT_FDCWD, real, arena_text(mem, real), SECRETS_HOME_DEPTH);
    prepared_free(&plan);
    pinfold_policy_free(policy);
    return arena_failed(mem) ? -ENOMEM : 0;
}
