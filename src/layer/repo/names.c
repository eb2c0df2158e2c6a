/*
 * Which names below .git belong to the unit, and which names a ref of a layer may have. Pure. The unit lands together
 * or not at all; everything else below .git is named path by path.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "git/gitconfig.h"
#include "layer/repo/repo.h"
#include "match/path.h"

#define REF_NAME_MAX 200

static bool is_at_or_below(const char *path, const char *dir)
{
    const size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

size_t repo_inside(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (is_at_or_below(at, REPO_DIR))
            return (size_t)(at - path);
    return 0;
}

/* Whether a component is a name that git uses in a repository's directory. As a part of a submodule's name it makes a directory of that
   one's that is none, of which nothing lands. */
static bool is_member(const char *part, size_t n)
{
    static const char all[][16] = {"HEAD",        "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "AUTO_MERGE",
                                   "packed-refs", "index",     "objects",    "refs",           "logs",
                                   "reftable",    "config",    "hooks",      "info",           "modules",
                                   "worktrees",   "branches",  "gc.log",     "gc.pid",         "description",
                                   "index.lock",  "HEAD.lock", "shallow",    "config.worktree"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]) == n && strncmp(part, all[i], n) == 0)
            return true;
    return false;
}

/* What follows "modules/": the bytes of a submodule's name, which may have slashes; 0: no part of one's repository. */
static size_t module_name(const char *rest)
{
    size_t n = strcspn(rest, "/");
    while (n && rest[n]) {
        const size_t more = strcspn(rest + n + 1, "/");
        if (is_member(rest + n + 1, more))
            return n;
        n = more ? n + 1 + more : 0;
    }
    return 0;
}

size_t repo_dir(const char *path)
{
    size_t n = repo_inside(path);
    if (!n && !is_at_or_below(path, REPO_DIR))
        return 0;
    n += sizeof REPO_DIR - 1;
    while (strncmp(path + n, "/modules/", 9) == 0) {
        const size_t name = module_name(path + n + 9);
        if (!name)
            break;
        n += 9 + name;
    }
    return n;
}

bool repo_is_dir(const char *path)
{
    char head[LAYER_PATH_MAX];
    const int n = snprintf(head, sizeof head, "%s/HEAD", path);
    return n < (int)sizeof head && repo_dir(head) == strlen(path) && *path;
}

bool repo_is_way(const char *path)
{
    const size_t n = repo_dir(path);
    return n && is_at_or_below(path + n, "/modules");
}

bool repo_is_top(const char *path)
{
    return is_at_or_below(path, REPO_DIR) && repo_dir(path) == sizeof REPO_DIR - 1;
}

enum repo_part repo_part_of(const char *path)
{
    static const char *const unit[] = {"HEAD", "index", "packed-refs"};
    /* What git writes beside its work. The objects' own notes (info/) can be made anew from them. */
    static const char passing[][16] = {"COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "AUTO_MERGE",
                                       "gc.log",         "gc.pid",    "index.lock", "HEAD.lock",
                                       "branches",       "info/refs", "description"};
    const size_t dir = repo_dir(path);
    if (!dir)
        return REPO_NOT;
    if (!path[dir])
        return REPO_UNIT;
    path += dir + 1;
    if (is_at_or_below(path, "objects/info")) /* alternates name other places whose objects git would read */
        return strncmp(path, "objects/info/commit-graph", 25) == 0 || strcmp(path, "objects/info/packs") == 0
                   ? REPO_PASSING
                   : REPO_OTHER;
    /* Of refs in reftables nothing lands, and no file of them alone. */
    if (is_at_or_below(path, "objects") || is_at_or_below(path, "refs") || is_at_or_below(path, "logs") ||
        is_at_or_below(path, "reftable"))
        return REPO_UNIT;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (strcmp(path, unit[i]) == 0)
            return REPO_UNIT;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (strcmp(path, passing[i]) == 0)
            return REPO_PASSING;
    /* git's own samples, which nothing runs. */
    if (is_at_or_below(path, "hooks") && str_ends(str_of(path), STR(".sample")) && !strchr(path + sizeof "hooks", '/'))
        return REPO_PASSING;
    return REPO_OTHER;
}

bool repo_is_object(const char *path)
{
    return is_at_or_below(path + repo_dir(path), "/objects");
}

bool repo_is_index(const char *path)
{
    return strcmp(path + repo_dir(path), "/index") == 0;
}

const char *repo_named(const struct layer_trees *t, const char *path, char room[LAYER_PATH_MAX])
{
    if (!t->git || !is_at_or_below(path, REPO_DIR))
        return path;
    const int n = snprintf(room, LAYER_PATH_MAX, "%s%s", t->git, path + sizeof REPO_DIR - 1);
    return n < LAYER_PATH_MAX ? room : ""; /* which is no path of a file */
}

int repo_parent(const struct layer_trees *t, int top, const char *path, const char **ret_name)
{
    char room[LAYER_PATH_MAX];
    const char *name, *real = repo_named(t, path, room);
    *ret_name = t->git && strcmp(path, REPO_DIR) == 0 ? t->git : path_name(path);
    return *real ? object_parent(top, real, &name) : -ENAMETOOLONG;
}

bool repo_is_hash(struct str text, size_t digits)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("0123456789abcdef", text.p[i]) || !text.p[i])
            return false;
    return text.n == digits;
}

/* git-check-ref-format(1), and no component that a command would take for an option. */
static bool is_well_formed(const char *name)
{
    const size_t n = strlen(name);
    if (n > REF_NAME_MAX || strstr(name, "..") || strstr(name, "@{") || strstr(name, "//"))
        return false;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (c <= ' ' || c == 0x7f || strchr("~^:?*[\\", c))
            return false;
    }
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        const size_t k = strcspn(part, "/");
        if (k == 0 || part[0] == '.' || part[0] == '-' || part[k - 1] == '.' ||
            (k > 5 && strncasecmp(part + k - 5, ".lock", 5) == 0) || (k == 1 && part[0] == '@'))
            return false;
    }
    return true;
}

bool repo_ref_ok(const char *name)
{
    /* Not refs/replace, by which git shows one object in place of another, nor what belongs to one work tree alone. */
    static const char spaces[][16] = {"refs/heads/", "refs/tags/", "refs/remotes/", "refs/notes/"};
    bool known = strcmp(name, "refs/stash") == 0;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        known |= strncmp(name, spaces[i], strlen(spaces[i])) == 0;
    return known && is_well_formed(name) && !gitref_is_option(str_of(name)) && strcmp(name, "refs/heads/HEAD") != 0;
}

/* ---- Git LFS (lfs.c) ---- */

#define LFS_DIR     ".git/lfs"
#define LFS_OBJECTS LFS_DIR "/objects"

static bool is_hex(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdef") >= n;
}

/* ".git/lfs/objects/36/54/3654...", or the beginning of it that ends in a directory. */
static bool is_lfs_name(const char *path, bool directory)
{
    const size_t top = sizeof LFS_OBJECTS - 1;
    if (directory && (strcmp(path, LFS_DIR) == 0 || strcmp(path, LFS_OBJECTS) == 0))
        return true;
    if (strncmp(path, LFS_OBJECTS "/", top + 1) != 0)
        return false;
    const char *a = path + top + 1;
    if (!is_hex(a, 2) || a[2] != '/')
        return directory && is_hex(a, 2) && !a[2];
    const char *b = a + 3;
    if (!is_hex(b, 2) || b[2] != '/')
        return directory && is_hex(b, 2) && !b[2];
    const char *oid = b + 3;
    return !directory && is_hex(oid, 64) && !oid[64] && memcmp(oid, a, 2) == 0 && memcmp(oid + 2, b, 2) == 0;
}

bool lfs_is_object(const struct change *c)
{
    const bool directory = object_is(&c->new, S_IFDIR);
    return c->kind == CHANGE_ADDED && !c->born && !(c->alarms & ALARM_SPELLING) &&
           (directory || (object_is(&c->new, S_IFREG) && c->new.links == 1)) && is_lfs_name(c->path, directory);
}
