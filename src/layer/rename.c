/*
 * Finds renames: a new file with the bytes of a deleted one. Only sizes that stand on both sides are read, each file once; a name that
 * stayed the same wins over others. Files without bytes are none, because all of those are the same.
 */
#include <errno.h>
#include <sha1.h>
#include <stdlib.h>
#include <string.h>

#include "layer/change.h"
#include "match/path.h"
#include "sys/fd.h"

#define READ_BYTES (128u << 10)

struct renamed_file {
    size_t at; /* of the change */
    uint64_t size;
    const char *name;
    uint8_t digest[SHA1_DIGEST_LENGTH];
    bool read;
};
struct renamed_files {
    struct renamed_file *all;
    size_t n;
};

static int compare_sizes(const void *a, const void *b)
{
    const struct renamed_file *x = a, *y = b;
    return x->size < y->size ? -1 : x->size > y->size;
}

static int compare_content(const struct renamed_file *x, const struct renamed_file *y)
{
    const int sizes = compare_sizes(x, y);
    return sizes ? sizes : memcmp(x->digest, y->digest, sizeof x->digest);
}

/* By content, then by name, then as they stand. */
static int compare_files(const void *a, const void *b)
{
    const struct renamed_file *x = a, *y = b;
    const int bytes = compare_content(x, y), names = bytes ? bytes : strcmp(x->name, y->name);
    return names ? names : x->at < y->at ? -1 : x->at > y->at;
}

static int collect(const struct changes *all, const bool *take, enum change_kind kind, struct arena *mem,
                   struct renamed_files *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        const struct layer_object *o = kind == CHANGE_ADDED ? &c->new : &c->old;
        if (!take[i] || c->kind != kind || c->unread || c->alarms & ALARM_GIT || !object_is(o, S_IFREG) || !o->size ||
            o->mode & 07000)
            continue;
        struct renamed_file *slot = arena_push(mem, &ret->all, &ret->n, sizeof *slot);
        if (!slot)
            return -ENOMEM;
        *slot = (struct renamed_file){.at = i, .size = o->size, .name = path_name(c->path)};
    }
    if (ret->n)
        qsort(ret->all, ret->n, sizeof *ret->all, compare_sizes);
    return 0;
}

/* What cannot be read stays as it is: no rename. */
static void read_digest(int top, bool host, const char *path, char *room, struct renamed_file *f)
{
    const char *name;
    SHA1_CTX context;
    uint64_t at = 0;
    long n = 0;
    own_fd int dir = object_parent(top, path, &name);
    own_fd int fd = dir < 0 ? dir : host ? object_open_as_is(dir, name, S_IFREG) : object_open(dir, name, S_IFREG);
    if (fd < 0)
        return;
    SHA1Init(&context);
    for (; (n = sys_pread(fd, room, READ_BYTES, at)) > 0; at += (uint64_t)n)
        SHA1Update(&context, (const uint8_t *)room, (size_t)n);
    SHA1Final(f->digest, &context);
    f->read = n == 0 && at == f->size;
}

/* Reads those of a size that the other side has, too, and keeps only what could be read; by content. */
static void read_files(const struct layer_trees *t, const struct changes *all, bool host,
                       const struct renamed_files *other, char *room, struct renamed_files *files)
{
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct renamed_file *f = &files->all[i];
        if (bsearch(f, other->all, other->n, sizeof *f, compare_sizes))
            read_digest(host ? t->workspace : t->upper, host, all->all[f->at].path, room, f);
        if (f->read)
            files->all[n++] = *f;
    }
    files->n = n;
}

/* Both are sorted by content and name: first those whose name is the same, then in their order. */
static void pair(struct renamed_files *gone, struct renamed_files *made, bool names, size_t *from)
{
    for (size_t i = 0, k = 0; i < gone->n && k < made->n;) {
        struct renamed_file *a = &gone->all[i], *b = &made->all[k];
        if (!a->read || !b->read) { /* has its other one */
            i += !a->read;
            k += !b->read;
            continue;
        }
        int order = compare_content(a, b);
        if (order == 0 && names)
            order = strcmp(a->name, b->name);
        if (order == 0) {
            from[b->at] = a->at + 1;
            from[a->at] = b->at + 1;
            a->read = b->read = false;
        }
        i += order <= 0;
        k += order >= 0;
    }
}

int renames_find(const struct layer_trees *t, const struct changes *all, const bool *take, struct arena *mem,
                 size_t **ret)
{
    struct renamed_files gone = {0}, made = {0};
    *ret = arena_zero(mem, (all->n + 1) * sizeof **ret);
    char *room = arena_zero(mem, READ_BYTES);
    if (!*ret || !room || collect(all, take, CHANGE_DELETED, mem, &gone) < 0 ||
        collect(all, take, CHANGE_ADDED, mem, &made) < 0)
        return -ENOMEM;
    if (!gone.n || !made.n)
        return 0;
    read_files(t, all, false, &gone, room, &made); /* by size still, as the other side looks for its sizes here */
    if (!made.n)
        return 0;
    read_files(t, all, true, &made, room, &gone);
    if (!gone.n)
        return 0;
    qsort(gone.all, gone.n, sizeof *gone.all, compare_files);
    qsort(made.all, made.n, sizeof *made.all, compare_files);
    pair(&gone, &made, true, *ret);
    pair(&gone, &made, false, *ret);
    return 0;
}
