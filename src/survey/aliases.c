/*
 * Other paths of what is hidden, protected or pinfold's own. A bind mount of the host (/data/home at /home), or a file system that is
 * mounted twice, shows an object at several paths; a rule about one of them holds at all. Which do is read in the table of
 * mounts: places are compared in their file system, so it does not matter which of them is the mount, nor how deep it lies.
 */
#include "survey/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "match/path.h"
#include "sys/file.h"

enum { FIRST_TEXT = 8 << 10, FEW = 64 };

/* What a path leads to: the nearest node that exists, and what is missing below it. */
struct chain {
    struct survey_node *end;
    const char *rest;
};

static int alias_chain(struct surveyor *s, const char *path, struct chain *ret)
{
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    int r = survey_walk(s, s->root, path, &found);
    *ret = (struct chain){.end = found.at, .rest = found.rest};
    while (r == 0 && ret->end->no && ret->end->parent != ret->end) {
        ret->rest = ret->rest[0] ? path_join(s->mem, ret->end->name, ret->rest) : ret->end->name;
        ret->end = ret->end->parent;
        r = ret->rest ? 0 : -ENOMEM;
    }
    return r;
}

static bool same_object(const struct survey_node *a, const struct survey_node *b)
{
    return a->ino == b->ino && a->dev == b->dev && a->type == b->type;
}

/* ---- the table of mounts ---- */

/* What follows `n` bytes of the text, and these: one that is not read to its end could lack the mount that counts. */
static int read_on(struct arena *mem, int fd, const char *first, size_t n, char **ret)
{
    size_t room = 4 * n;
    char *text = arena_zero(mem, room);
    if (!text)
        return -ENOMEM;
    memcpy(text, first, n);
    for (;;) {
        long got = sys_read_all(fd, text + n, room - 1 - n);
        if (got < 0)
            return (int)got;
        n += (size_t)got;
        if (n < room - 1)
            break;
        char *more = arena_zero(mem, room *= 4);
        if (!more)
            return -ENOMEM;
        text = memcpy(more, text, n);
    }
    *ret = text;
    return 0;
}

static int by_system_and_root(const void *a, const void *b)
{
    const struct survey_mount *x = *(const struct survey_mount *const *)a, *y = *(const struct survey_mount *const *)b;
    if (x->system != y->system)
        return x->system < y->system ? -1 : 1;
    return path_order(x->root, y->root);
}

/* Marks mounts that show something at another path than another mount does: on most machines there is none. */
static int mark_twice(struct surveyor *s)
{
    const size_t n = s->n_table;
    struct survey_mount **by = arena_zero(s->mem, 2 * (n + 1) * sizeof *by), **above = by ? by + n + 1 : NULL;
    size_t depth = 0;
    if (!by)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        by[i] = &s->table[i];
    qsort(by, n, sizeof *by, by_system_and_root);
    for (size_t i = 0; i < n; i++) {
        while (depth &&
               (above[depth - 1]->system != by[i]->system || !path_at_or_below(by[i]->root, above[depth - 1]->root)))
            depth--;
        for (size_t k = 0; k < depth; k++) {
            const char *there = path_moved(s->mem, by[i]->root, above[k]->root, above[k]->at);
            if (!there)
                return -ENOMEM;
            if (strcmp(there, by[i]->at) != 0)
                by[i]->twice = above[k]->twice = s->twice = true;
        }
        above[depth++] = by[i];
    }
    return 0;
}

static struct survey_mount *mount_of(const struct surveyor *s, const struct survey_node *n)
{
    for (size_t i = 0; i < s->n_table; i++) {
        if (s->table[i].id == n->mount && path_at_or_below(n->real, s->table[i].at))
            return &s->table[i];
    }
    return NULL;
}

/*
 * In a chroot(2) the table lacks the mount that its root is a part of. Where another one shows a directory of that part, the common
 * end of both paths tells what the root is in its file system.
 */
static int add_own_root(struct surveyor *s)
{
    const size_t n = s->n_table;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct survey_mount *m = &s->table[i];
        struct chain shown, same;
        if (m->system != s->root->dev)
            continue;
        r = alias_chain(s, m->at, &shown);
        for (size_t end = strlen(m->root); r == 0 && end-- > 0;) {
            if (m->root[end] != '/')
                continue;
            r = alias_chain(s, m->root + end, &same);
            if (r < 0 || same.rest[0] || same.end->mount != s->root->mount || !same_object(same.end, shown.end))
                continue;
            const char *root = end ? arena_str(s->mem, (struct str){m->root, end}) : "/";
            if (!root)
                return -ENOMEM;
            s->table[s->n_table++] = (struct survey_mount){
                .id = s->root->mount, .system = s->root->dev, .root = root, .at = "/"}; /* there is room for one more */
            return 0;
        }
    }
    return r;
}

/* The lines of file systems with paths; those of namespaces have none. */
static void take_table(struct surveyor *s, char *text, struct survey_mount *table)
{
    struct proc_mount line;
    s->table = table;
    for (s->n_table = 0; proc_next_mount(&text, &line);) {
        if (line.root[0] == '/')
            table[s->n_table++] = (struct survey_mount){
                .id = line.id, .system = (uint64_t)line.major << 32 | line.minor, .root = line.root, .at = line.at};
    }
}

/* From the stack to memory that stays, with room for one more. */
static int keep_table(struct surveyor *s)
{
    struct survey_mount *kept = arena_zero(s->mem, (s->n_table + 1) * sizeof *kept);
    for (size_t i = 0; kept && i < s->n_table; i++) {
        kept[i] = s->table[i];
        kept[i].root = arena_text(s->mem, s->table[i].root);
        kept[i].at = arena_text(s->mem, s->table[i].at);
    }
    s->table = kept;
    return arena_failed(s->mem) ? -ENOMEM : 0;
}

static size_t lines_in(const char *text)
{
    size_t n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

int survey_mounts(struct surveyor *s)
{
    struct survey_mount few[FEW];
    char first[FIRST_TEXT], *text = first;
    auto_fd int fd = sys_openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read_all(fd, first, sizeof first - 1);
    if (n < 0)
        return (int)n;
    first[n] = 0;
    int r = n == sizeof first - 1 ? read_on(s->mem, fd, first, (size_t)n, &text) : 0;
    const size_t lines = r == 0 ? lines_in(text) : 0;
    struct survey_mount *table = lines <= FEW ? few : arena_zero(s->mem, lines * sizeof *table);
    if (r == 0 && !table)
        r = -ENOMEM;
    if (r < 0)
        return r;
    take_table(s, text, table);
    r = mark_twice(s);
    if (r == 0 && !s->twice &&
        mount_of(s, s->root)) { /* so it is on most machines, and nobody looks at the table again */
        s->table = NULL;
        s->n_table = 0;
        return 0;
    }
    if (r == 0)
        r = keep_table(s);
    if (r < 0 || mount_of(s, s->root))
        return r;
    r = add_own_root(s);
    return r < 0 ? r : mark_twice(s);
}

/* ---- paths ---- */

/* `to` counts if it is what `path` is: another mount may lie over one of them. */
static int add_alias(struct surveyor *s, struct facts *f, const char *real, const char *path, const char *to)
{
    struct chain a, b = {0};
    if (!path || !to)
        return -ENOMEM;
    if (path_at_or_below(to, real))
        return 0;
    int r = alias_chain(s, path, &a);
    if (r == 0)
        r = alias_chain(s, to, &b);
    if (r < 0 || !same_object(a.end, b.end) || strcmp(a.rest, b.rest) != 0 || a.end == b.end)
        return r == -ELOOP ? 0 : r;
    struct path_fact *slot = arena_push(s->mem, &f->aliases, &f->n_aliases, sizeof *slot);
    r = slot ? survey_path(s, to, slot) : -ENOMEM;
    if (r == 0)
        slot->asked = real;
    return r;
}

/* Where `real` is in its file system; NULL: only there. */
static int place_in_system(struct surveyor *s, const char *real, const struct survey_mount **ret, const char **where)
{
    struct chain own;
    *ret = NULL;
    if (!s->twice)
        return 0;
    int r = alias_chain(s, real, &own);
    const struct survey_mount *m = r == 0 ? mount_of(s, own.end) : NULL;
    if (!m || !m->twice)
        return r == -ELOOP ? 0 : r;
    *where = path_moved(s->mem, own.end->real, m->at, m->root);
    if (*where && own.rest[0])
        *where = path_join(s->mem, *where, own.rest);
    *ret = m;
    return *where ? 0 : -ENOMEM;
}

static int add_aliases(struct surveyor *s, struct facts *f, const char *real)
{
    const struct survey_mount *own;
    const char *where = NULL;
    int r = place_in_system(s, real, &own, &where);
    for (size_t i = 0; r == 0 && own && i < s->n_table; i++) {
        const struct survey_mount *m = &s->table[i];
        if (m == own || !m->twice || m->system != own->system)
            continue;
        if (path_at_or_below(where, m->root))
            r = add_alias(s, f, real, real, path_moved(s->mem, where, m->root, m->at));
        else if (path_below(m->root, where))
            r = add_alias(s, f, real, path_moved(s->mem, m->root, where, real), m->at);
    }
    return r;
}

int survey_is_twice(struct surveyor *s, const char *real)
{
    const struct survey_mount *own;
    const char *where = NULL;
    int r = place_in_system(s, real, &own, &where);
    for (size_t i = 0; r == 0 && own && i < s->n_table; i++) {
        const struct survey_mount *m = &s->table[i];
        if (m != own && m->twice && m->system == own->system && path_overlap(where, m->root))
            return 1;
    }
    return r;
}

/* What a rule restricts: the object, or the directory in which names are restricted. */
static const struct path_fact *restricted_fact(struct surveyor *s, const struct facts *f, const struct path_rule *rule)
{
    const char *path = rule->any_depth ? rule->below : rule->pattern ? path_dir(s->mem, rule->path) : rule->path;
    if (rule->access != PATH_HIDE && rule->access != PATH_PROTECT)
        return NULL;
    return path ? facts_path(f, path) : NULL;
}

/* In a box: what the box around it shows in the place of something hidden. Such objects are one at many paths, and nobody's to read. */
static bool is_mask(const struct facts *f, const struct path_fact *fact)
{
    return (f->nested || f->around) && (fact->type == PATH_DIR || fact->type == PATH_FILE) && (fact->mode & 0777) == 0;
}

static int add_own_aliases(struct surveyor *s, struct facts *f)
{
    const char *const first[] = {path_join(s->mem, f->state_home, "pinfold"),
                                 path_join(s->mem, f->config_home, "pinfold"), f->program, "/etc/pinfold", f->runtime};
    enum { FIRST = sizeof first / sizeof *first };
    int r = 0;
    for (size_t i = 0; r == 0 && i < FIRST + N_HELPERS + f->n_clone; i++) {
        const char *path = i < FIRST               ? first[i]
                           : i < FIRST + N_HELPERS ? f->helpers[i - FIRST]
                                                   : f->clone[i - FIRST - N_HELPERS];
        const struct path_fact *fact = path ? facts_path(f, path) : NULL;
        r = fact && !is_mask(f, fact) ? add_aliases(s, f, fact->real) : 0;
    }
    return r;
}

static int by_asked_and_real(const void *a, const void *b)
{
    const struct path_fact *x = a, *y = b;
    int order = strcmp(x->asked, y->asked);
    return order ? order : strcmp(x->real, y->real);
}

/* Who cannot read an object at one path cannot at another one, so what a profile hides and this caller may not read needs no more. */
static bool is_profiles(const struct policy *p, size_t rule)
{
    const uint32_t origin = rule < p->n_paths ? p->paths[rule].origin : UINT32_MAX;
    return origin < p->n_origins && p->origins[origin].layer == LAYER_BUILTIN;
}

int survey_aliases(struct surveyor *s, const struct policy *p, struct facts *f)
{
    int r = s->twice ? add_own_aliases(s, f) : 0;
    for (size_t i = 0; r == 0 && s->twice && i < p->n_paths; i++) {
        const struct path_fact *fact = restricted_fact(s, f, &p->paths[i]);
        const bool is_refused = fact && (fact->type == PATH_UNREADABLE || (fact->refused && is_profiles(p, i)));
        if (fact && !is_refused && !is_mask(f, fact))
            r = add_aliases(s, f, fact->real);
    }
    for (size_t i = 0; r == 0 && s->twice && i < f->n_matches; i++)
        r = f->matches[i].refused && is_profiles(p, f->matches[i].rule) ? 0 : add_aliases(s, f, f->matches[i].real);
    if (r < 0 || f->n_aliases < 2)
        return r;
    qsort(f->aliases, f->n_aliases, sizeof *f->aliases, by_asked_and_real);
    size_t kept = 1;
    for (size_t i = 1; i < f->n_aliases; i++) {
        if (by_asked_and_real(&f->aliases[i], &f->aliases[kept - 1]) != 0)
            f->aliases[kept++] = f->aliases[i];
    }
    f->n_aliases = kept;
    return 0;
}
