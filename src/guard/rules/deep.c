/*
 * Names that hold in all directories of a repository (GUARD_RULE_DEEP): what its hooks start looks for them there by itself, prek in
 * every directory, lint-staged in that of each file. The nearest repository around a directory decides. In another's they are refused;
 * in one that this box created they are free, so that clones can check out what they track, and so they are below node_modules and the
 * like, where package managers unpack them. What was made freely is told of at the end (told.c), wherever it is by then: the box could
 * remove what makes its own repository one, and leave the name to the repository around it.
 *
 * So that nothing comes into effect or becomes free by something else than its own creation, a directory that changes to another
 * repository, or from none into one, is searched. More than MOST entries are not: the program may copy them one by one.
 */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "sys/fd.h"

#define MOST        65536 /* entries */
#define DEPTH       48
#define BRINGS_DEEP "it contains a guarded name, which would come into a repository or out of one"

struct nearest {
    enum root_kind kind;
    size_t n; /* of its root's path */
};

/* The nearest repository around the directory, which is at least `least` bytes of its path. */
static struct nearest nearest_to(struct guard *g, struct str directory, size_t least)
{
    for (size_t n = directory.n;;) {
        const enum root_kind kind = root_kind_of(g, (struct str){directory.p, n});
        const char *slash = n ? memrchr(directory.p, '/', n) : NULL;
        if (kind != ROOT_NONE || !slash || n <= least)
            return (struct nearest){kind, n};
        n = (size_t)(slash - directory.p);
    }
}

bool deep_holds(struct guard *g, const struct rooted *w, struct str path)
{
    const struct str name = {path.p, w->end};
    const struct nearest s = nearest_to(g, w->directory, 0);
    if (s.kind == ROOT_OTHERS && (s.n == w->directory.n || !path_is_foreign(str_skip(name, w->from), false)))
        return true;
    if (s.kind != ROOT_NONE)
        left_add(g, name);
    return false;
}

/* What is told of at the end: at the root of a repository that the box made told_end() has told of it already. */
bool deep_tells(struct guard *g, struct str path, struct str directory)
{
    const bool named = rules_deep(&g->rules, str_skip(path, directory.n > 1 ? directory.n + 1 : 1));
    const struct nearest s =
        named ? nearest_to(g, directory.n > 1 ? directory : (struct str){"", 0}, 0) : (struct nearest){0};
    return s.kind != ROOT_NONE && !(s.kind == ROOT_OWN && s.n == directory.n);
}

/* ---- a search ---- */

struct deep_search {
    struct guard *g;
    unsigned left;
    size_t base, n; /* lengths: of the directory searched, of the path so far */
    bool free;      /* names in it will be, as in a repository of the box */
    bool again;     /* what is free was told of before it moved */
    bool joins;     /* the directory itself becomes the root of another's repository */
    const struct rule *found;
    char path[PLACE_PATH + NAME_MAX + 2];
};

/* A name in the directory that is the first `n` bytes of the path. */
static bool is_brought(struct deep_search *s, size_t n)
{
    const struct nearest around = nearest_to(s->g, (struct str){s->path, n}, s->base);
    const bool own = around.kind == ROOT_OWN && !(s->joins && around.n == s->base);
    if (around.kind == ROOT_OTHERS) /* as before */
        return false;
    if (!own && !s->free && !path_is_foreign(str_skip((struct str){s->path, s->n}, s->base), false))
        return true;
    if (!s->again)
        left_add(s->g, (struct str){s->path, s->n});
    return false;
}

static int search(struct deep_search *s, int dir, const char *name, unsigned depth);

static int search_entry(struct deep_search *s, int dir, const struct sys_dirent *d, unsigned depth)
{
    const size_t before = s->n, n = strlen(d->name);
    const struct rule *rule = rules_deep(&s->g->rules, (struct str){d->name, n});
    const bool directory = d->type == 4 || d->type == 0; /* or unknown */
    if (s->left == 0 || before + 1 + n >= PLACE_PATH)
        return -EXDEV;
    s->left--;
    if (!rule && !directory)
        return 0;
    s->path[s->n++] = '/';
    memcpy(s->path + s->n, d->name, n);
    s->n += n;
    if (rule && is_brought(s, before))
        s->found = rule;
    int no = s->found ? -EACCES : directory ? search(s, dir, d->name, depth) : 0;
    s->n = before;
    return no;
}

/* 0, -EACCES: found, or -EXDEV: it is too large, or cannot be read. */
static int search(struct deep_search *s, int dir, const char *name, unsigned depth)
{
    _Alignas(8) char records[1024];
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
        return 0;
    if (fd < 0 || depth == 0)
        return -EXDEV;
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        int no = search_entry(s, fd, d, depth - 1);
        if (no < 0)
            return no;
    }
    return entries.no < 0 ? -EXDEV : 0;
}

static int search_all(struct deep_search *s, int dir, const char *name, struct str path)
{
    memcpy(s->path, path.p, path.n);
    s->base = s->n = path.n;
    s->left = MOST;
    return search(s, dir, name, DEPTH);
}

/* ---- what changes the repository around a name ---- */

int deep_marked(struct guard *g, const struct place *p, bool own)
{
    const struct str directory = {p->path, p->dir_n};
    struct deep_search all = {.g = g, .joins = !own};
    if (!g->rules.deep)
        return 0;
    const struct nearest s = nearest_to(g, directory, 0);
    /* Names that hold would become free; or names that are free would hold. */
    if (own ? s.kind != ROOT_OTHERS || s.n == directory.n : s.kind == ROOT_OTHERS)
        return 0;
    return search_all(&all, p->dir, ".", directory) < 0
               ? deny(g, DENIAL_CREATE, all.found, place_path(p),
                      "a repository in a directory that contains a guarded name, or too much to look for one")
               : 0;
}

static struct nearest nearest_around(struct guard *g, const struct place *p)
{
    return rules_of_host(&g->rules, place_path(p)) ? nearest_to(g, (struct str){p->path, p->dir_n}, 0)
                                                   : (struct nearest){ROOT_NONE, 0};
}

/* Whether one of the directories from the place's up to the first `n` bytes of its path, and not that, is the root of a repository. */
static bool leaves_root(struct guard *g, const struct place *p, size_t n)
{
    struct str directory = {p->path, p->dir_n};
    while (directory.n > n) {
        if (root_kind_of(g, directory) != ROOT_NONE)
            return true;
        const char *slash = memrchr(directory.p, '/', directory.n);
        directory.n = slash ? (size_t)(slash - directory.p) : 0;
    }
    return false;
}

/* Most moves are within a repository, and near: then nothing further up is looked at. */
static bool stays_in_root(struct guard *g, const struct place *from, const struct place *to)
{
    size_t same = 0;
    for (size_t i = 0; i <= from->dir_n && i <= to->dir_n; i++) {
        const bool end = (i == from->dir_n || from->path[i] == '/') && (i == to->dir_n || to->path[i] == '/');
        if (end)
            same = i;
        if (i == from->dir_n || i == to->dir_n || from->path[i] != to->path[i])
            break;
    }
    return rules_of_host(&g->rules, place_path(from)) == rules_of_host(&g->rules, place_path(to)) &&
           !leaves_root(g, from, same) && !leaves_root(g, to, same);
}

int deep_moves(struct guard *g, const struct place *from, const struct place *to, const struct place *now)
{
    if (!g->rules.deep || (now == from ? stays_in_root(g, from, to) : !g->crosses))
        return 0;
    g->crosses = true;
    const struct nearest a = nearest_around(g, from), b = nearest_around(g, to);
    if (a.kind == b.kind &&
        (a.kind == ROOT_NONE || fold_eq((struct str){from->path, a.n}, (struct str){to->path, b.n})))
        return 0;
    if (a.kind != ROOT_OTHERS && (b.kind == ROOT_NONE || g->rules.mode != GUARD_STRICT))
        return 0;
    const struct str there = str_skip(place_path(to), rules_root(&g->rules, place_path(to)).n);
    struct deep_search all = {.g = g,
                              .again = now != from,
                              .free = a.kind != ROOT_OTHERS && (b.kind == ROOT_OWN || path_is_foreign(there, true))};
    int no = search_all(&all, now->dir, place_bare(now), place_path(now));
    return no == -EACCES ? deny(g, DENIAL_RENAME, all.found, place_path(to), BRINGS_DEEP) : no;
}
