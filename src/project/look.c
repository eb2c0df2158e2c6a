/*
 * Looks at a project's files. Whoever wrote them may be hostile: no link is followed, nothing but regular files is read, and depth,
 * names and bytes are bounded.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/project.h"

enum { MAX_DEPTH = 6, MAX_READ = 64 * 1024 };

/* Made by tools, and large. Names with a leading dot are left out anyway. */
static const char *const generated[] = {"node_modules", "target", "vendor",      "build",
                                        "dist",         "venv",   "__pycache__", NULL};

static bool is_generated(const char *name)
{
    for (const char *const *g = generated; *g; g++) {
        if (same(*g, name))
            return true;
    }
    return name[0] == '.';
}

/* As much of a regular file as fits, as text. */
static bool read_start(int dir, const char *name, char room[MAX_READ + 1])
{
    struct stat st;
    size_t n = 0;
    auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    for (ssize_t k = 1; k != 0 && n < MAX_READ; n += (size_t)k) {
        k = read(fd, room + n, MAX_READ - n);
        if (k < 0)
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!room[i])
            room[i] = ' ';
    }
    room[n] = 0;
    return true;
}

static void look_for_servers(int dir, const char *name, struct project_seen *seen)
{
    static char text[MAX_READ + 1];
    bool read_it = false;
    for (size_t i = 0; project_servers[i].file[0]; i++) {
        if (!same(project_servers[i].file, name))
            continue;
        if (!read_it && !read_start(dir, name, text))
            return;
        read_it = true;
        seen->servers[i] |= strcasestr(text, project_servers[i].word) != NULL;
    }
}

static void look_at_name(int dir, const char *name, struct project_seen *seen)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; project_signs[i].file; i++) {
        const char *file = project_signs[i].file;
        if (file[0] == '*' ? dot && same(dot, file + 1) : same(name, file))
            seen->signs[i] = true;
    }
    look_for_servers(dir, name, seen);
}

static bool is_directory(int dir, const struct dirent *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == DT_DIR;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int walk_directory(int dir, unsigned depth, struct project_seen *seen)
{
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* readdir() moves the descriptor that it has */
    DIR *names = own < 0 ? NULL : fdopendir(own);
    struct dirent *d;
    if (!names) {
        int no = -errno;
        (void)close_fd(own);
        return no;
    }
    while ((d = readdir(names)) != NULL) {
        if (same(d->d_name, ".") || same(d->d_name, ".."))
            continue;
        if (seen->entries == PROJECT_ENTRIES) {
            seen->cut = true;
            break;
        }
        seen->entries++;
        if (!is_directory(own, d)) {
            look_at_name(own, d->d_name, seen);
        } else if (depth == MAX_DEPTH) {
            seen->cut |= !is_generated(d->d_name);
        } else if (!is_generated(d->d_name)) {
            auto_fd int below = openat(own, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0) /* one that cannot be read says nothing about the project */
                (void)walk_directory(below, depth + 1, seen);
        }
    }
    (void)closedir(names);
    return 0;
}

static bool is_there(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_program(int dir, const char *hooks, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", hooks, name);
    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

/* core.hooksPath of the repository's configuration; "" if it has none, or one elsewhere. */
static void hooks_path(const char *config, char ret[PATH_MAX])
{
    const char *at = strcasestr(config, "hookspath"), *value = at ? strchr(at, '=') : NULL;
    struct str rest = str_of(value ? value + 1 : ""), path = str_trim(str_until(&rest, '\n'));
    if (path.n > 1 && path.p[0] == '"' && path.p[path.n - 1] == '"')
        path = (struct str){path.p + 1, path.n - 2};
    if (path.n > PATH_MAX / 2 || str_starts(path, STR("/")) || str_starts(path, STR("~")))
        path.n = 0;
    snprintf(ret, PATH_MAX, "%.*s", (int)path.n, path.p ? path.p : "");
}

/* husky has programs of its own for every hook in .husky/_, which run what lies beside it. */
static bool has_judges(int dir, const char *config)
{
    static const char *const names[] = {"pre-commit", "commit-msg"};
    char hooks[PATH_MAX];
    struct stat st;
    hooks_path(config, hooks);
    const bool said = strcasestr(config, "hookspath") != NULL, husky = str_ends(str_of(hooks), STR(".husky/_"));
    const char *at = hooks[0] ? hooks : said ? NULL : ".git/hooks";
    if (!at || fstatat(dir, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
        strcasestr(config, "refstorage"))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char beside[PATH_MAX + 16];
        snprintf(beside, sizeof beside, "%s/../%s", hooks, names[i]);
        if (is_program(dir, at, names[i]) && (!husky || is_there(dir, beside)))
            return true;
    }
    return false;
}

int project_look(int dir, struct project_seen *ret)
{
    static char text[MAX_READ + 1];
    *ret = (struct project_seen){.git = is_there(dir, ".git"), .seed = is_there(dir, PROJECT_SEED)};
    ret->bare = !ret->git && is_there(dir, "HEAD") && is_there(dir, "objects") && is_there(dir, "refs");
    ret->precommit = is_there(dir, ".agent-precommit");
    ret->env = is_there(dir, ".env") || is_there(dir, ".env.local");
    ret->hooks = is_there(dir, ".husky") || is_there(dir, ".git/hooks/pre-commit") ||
                 is_there(dir, ".git/hooks/commit-msg") || is_there(dir, ".githooks");
    const bool read_it = read_start(dir, ".git/config", text);
    ret->github = read_it && strstr(text, "github.com");
    ret->judges = read_it && has_judges(dir, text);
    return walk_directory(dir, 0, ret);
}
