/*
 * Other paths of pinfold's own files: a bind mount of the host shows a directory at two paths, and what a rule makes
 * accessible at one of them must not be pinfold's own, nor a part of it, nor lie around it.
 */
#include "survey/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "match/path.h"
#include "sys/file.h"

enum { MOUNTS_TEXT = 1 << 20 };

/* pinfold's own (its ancestors up to the root), or what a rule makes accessible. */
struct chain {
    const char *asked;
    struct survey_node *end; /* the nearest that exists */
    const char *rest;        /* what is missing below it */
    bool part;               /* a directory inside pinfold's own */
};

static int alias_chain(struct surveyor *s, const char *path, struct chain *ret)
{
    *ret = (struct chain){.asked = NULL};
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    int r = path ? survey_walk(s, s->root, path, &found) : 0;
    *ret = (struct chain){.asked = r == 0 ? path : NULL, .end = found.at, .rest = found.rest};
    return r == -ELOOP ? 0 : r;
}

static bool same_directory(const struct survey_node *a, const struct survey_node *b)
{
    return a != b && a->type == PATH_DIR && b->type == PATH_DIR && a->ino == b->ino && a->dev == b->dev;
}

static int add_alias(struct surveyor *s, struct facts *f, const char *asked, const char *path)
{
    for (size_t i = 0; path && i < f->n_aliases; i++) {
        if (strcmp(f->aliases[i].asked, asked) == 0 && strcmp(f->aliases[i].real, path) == 0)
            return 0;
    }
    struct path_fact *slot = path ? arena_push(s->mem, &f->aliases, &f->n_aliases, sizeof *slot) : NULL;
    int r = slot ? survey_path(s, path, slot) : -ENOMEM;
    if (r == 0)
        slot->asked = asked;
    return r;
}

/* A text that cannot be read to its end could hide the mount that counts. */
static int read_mounts(struct surveyor *s)
{
    auto_fd int fd = sys_openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    char *text = fd < 0 ? NULL : arena_zero(s->mem, MOUNTS_TEXT);
    if (!text)
        return fd < 0 ? fd : -ENOMEM;
    long n = sys_read_all(fd, text, MOUNTS_TEXT);
    if (n < 0 || n == MOUNTS_TEXT)
        return n < 0 ? (int)n : -E2BIG;
    text[n] = 0;
    struct proc_mount mount;
    while (proc_next_mount(&text, &mount)) {
        struct proc_mount *slot = arena_push(s->mem, &s->mount_table, &s->n_mount_table, sizeof *slot);
        if (!slot)
            return -ENOMEM;
        *slot = mount;
    }
    return 0;
}

/* Where a node is in its file system, whatever mounts show of that; NULL: in a chroot(2) the mount of its root is not listed. */
static int place_in_system(struct surveyor *s, const struct survey_node *n, const char **ret)
{
    int r = s->n_mount_table ? 0 : read_mounts(s);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_mount_table; i++) {
        const struct proc_mount *m = &s->mount_table[i];
        if (m->id == n->mount && path_at_or_below(n->real, m->at)) {
            *ret = path_moved(s->mem, n->real, m->at, m->root);
            return *ret ? 0 : -ENOMEM;
        }
    }
    *ret = NULL;
    return 0;
}

/*
 * Two mounts of one file system: who compares devices and inodes alone does not see that one shows what is deep inside of the
 * other, so their places in the file system are compared.
 */
static int find_in_system(struct surveyor *s, struct facts *f, const struct chain *own, const struct chain *opened)
{
    const struct survey_node *mine = own->end, *theirs = opened->end;
    if (mine->dev != theirs->dev || mine->mount == theirs->mount || opened->rest[0])
        return 0;
    const char *where = NULL, *there = NULL;
    int r = place_in_system(s, mine, &where);
    if (r == 0 && where)
        r = place_in_system(s, theirs, &there);
    if (r < 0 || !there)
        return r;
    const char *whole = own->rest[0] ? path_join(s->mem, where, own->rest) : where;
    if (!whole)
        return -ENOMEM;
    if (path_at_or_below(there, whole))
        return add_alias(s, f, own->asked, theirs->real);
    return path_below(whole, there) ? add_alias(s, f, own->asked, path_moved(s->mem, whole, there, theirs->real)) : 0;
}

/*
 * What a rule makes accessible is compared with pinfold's own by device and inode: a directory above pinfold's own at another
 * path leads there, over mounts below it, too, and so does its content.
 */
static int find_alias(struct surveyor *s, struct facts *f, const struct chain *own, const struct chain *opened)
{
    for (const struct survey_node *up = own->end; !own->part; up = up->parent) {
        if (!opened->rest[0] && same_directory(up, opened->end)) {
            const char *real = own->end->real + (up->parent == up ? 0 : strlen(up->real));
            const char *at = arena_printf(s->mem, "%s%s", opened->end->real, real);
            return add_alias(s, f, own->asked, own->rest[0] && at ? path_join(s->mem, at, own->rest) : at);
        }
        if (up->parent == up)
            break;
    }
    for (const struct survey_node *up = opened->end; !own->rest[0] && up->parent != up; up = up->parent) {
        if (same_directory(up, own->end))
            return add_alias(s, f, own->asked, up->real);
    }
    return find_in_system(s, f, own, opened);
}

/* The i-th path that the policy makes accessible for more than reading; NULL: that rule does not. */
static const char *opened_path(const struct policy *p, size_t i)
{
    return i == p->n_paths + p->n_mounts   ? p->workspace
           : i >= p->n_paths               ? p->mounts[i - p->n_paths].from
           : p->paths[i].access == PATH_RW ? p->paths[i].path
                                           : NULL;
}

static int add_aliases(struct surveyor *s, const struct policy *p, struct facts *f, const struct chain *own, size_t n)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i <= p->n_paths + p->n_mounts; i++) {
        const char *path = opened_path(p, i);
        struct chain opened;
        if (!path)
            continue;
        if (i < p->n_paths && !(path = survey_through_mounts(s, path)))
            return -ENOMEM;
        r = alias_chain(s, path, &opened);
        for (size_t k = 0; r == 0 && opened.asked && k < n; k++)
            r = own[k].asked ? find_alias(s, f, &own[k], &opened) : 0;
    }
    return r;
}

/* Whether what the policy makes accessible and `own` are in one file system, but seen through two mounts. */
static int mounts_meet(struct surveyor *s, const struct policy *p, const struct survey_node *own)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i <= p->n_paths + p->n_mounts; i++) {
        const char *path = opened_path(p, i);
        struct chain opened = {.asked = NULL};
        if (path)
            r = alias_chain(s, path, &opened);
        if (r == 0 && opened.asked && opened.end->dev == own->dev && opened.end->mount != own->mount)
            return 1;
    }
    return r;
}

int survey_has_alias(struct surveyor *s, const struct policy *p, struct facts *f, const char *in, const char *name)
{
    const size_t before = f->n_aliases;
    const char *path = path_join(s->mem, in, name);
    struct chain own;
    int r = path ? alias_chain(s, in, &own) : -ENOMEM;
    if (r == 0)
        r = own.asked ? mounts_meet(s, p, own.end) : 0;
    if (r != 1)
        return r;
    r = alias_chain(s, path, &own);
    if (r == 0)
        r = add_aliases(s, p, f, &own, 1);
    return r < 0 ? r : f->n_aliases > before;
}

int survey_aliases(struct surveyor *s, const struct policy *p, struct facts *f)
{
    /* Directories in the state directory may be mounted elsewhere separately, also where mounts are not listed. */
    static const char parts[][20] = {"pinfold/trust", "pinfold/audit", "pinfold/caches", "pinfold/sessions"};
    const char *const paths[] = {path_join(s->mem, f->state_home, "pinfold"),
                                 path_join(s->mem, f->config_home, "pinfold"), f->program, "/etc/pinfold", f->runtime};
    enum {
        FIRST = sizeof paths / sizeof paths[0],
        WHOLE = FIRST + N_HELPERS,
        OWN = WHOLE + sizeof parts / sizeof parts[0]
    };
    struct chain own[OWN];
    int r = 0;
    for (size_t i = 0; r == 0 && i < OWN; i++) {
        r = alias_chain(s,
                        i < FIRST   ? paths[i]
                        : i < WHOLE ? f->helpers[i - FIRST]
                                    : path_join(s->mem, f->state_home, parts[i - WHOLE]),
                        &own[i]);
        own[i].part = i >= WHOLE;
        if (own[i].part && own[i].asked)
            own[i].asked = paths[0];
    }
    return r < 0 ? r : add_aliases(s, p, f, own, OWN);
}
