/*
 * Every directory on some path becomes a node, examined once (one statx) and found again by (parent node, name). A path
 * is walked from the root node. Symbolic links are followed here, by their text, so the real path is a by-product and
 * /proc is not needed. A thousand paths below one directory cost a thousand statx calls and no more, and fewer if many of
 * them do not exist (listing.h).
 */
#include "base/hash.h"
#include "survey/path.h"
#include "survey/walk.h"
#include "survey/listing.h"
#include "survey/written.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "match/path.h"
#include "sys/file.h"

#define ASKED_OFTEN  24 /* names in one directory: to list 180 entries takes as long as to look for some 50 names */
#define ASKED_OF_FEW 8  /* names in one of a block at most, which has some hundred entries if it is full */
#define ONE_BLOCK    4096

static uint32_t node_hash(const struct survey_node *parent, struct str name)
{
    uint64_t h = hash64((uintptr_t)parent * 0x9e3779b97f4a7c15u, name.p, name.n);
    return (uint32_t)(h ^ h >> 29);
}

enum path_type survey_type(uint32_t mode)
{
    return S_ISDIR(mode) ? PATH_DIR : S_ISREG(mode) ? PATH_FILE : PATH_OTHER;
}

static int read_link(struct surveyor *s, struct survey_node *n)
{
    ssize_t got = sys_readlink(n->real, s->text, sizeof s->text);
    if (got < 0)
        return (int)got;
    if ((size_t)got >= sizeof s->text)
        return -ENAMETOOLONG;
    n->target = arena_str(s->mem, (struct str){s->text, (size_t)got});
    return n->target ? 0 : -ENOMEM;
}

bool survey_is_local(struct surveyor *s, uint64_t dev, const char *path)
{
    const size_t all = sizeof s->systems / sizeof *s->systems;
    size_t i = 0;
    while (i < all && s->systems[i].known && s->systems[i].dev != dev)
        i++;
    if (i == all)
        return listing_is_local(path);
    if (!s->systems[i].known) {
        s->systems[i].dev = dev;
        s->systems[i].known = true;
        s->systems[i].local = listing_is_local(path);
    }
    return s->systems[i].local;
}

/* Whether so many of the paths to examine name something in this directory that it is listed. */
static bool asked_often(const struct surveyor *s, const struct survey_node *in)
{
    const size_t n = in->parent == in ? 0 : strlen(in->real),
                 often = in->bytes > ONE_BLOCK ? ASKED_OFTEN : ASKED_OF_FEW;
    size_t from = 0, to = s->asked.n, names = 0;
    struct str last = {"", 0};
    while (from < to) { /* the first one that is not before those in it */
        const size_t middle = from + (to - from) / 2;
        const int order = strncmp(s->asked.at[middle].path, in->real, n);
        if (order < 0 || (order == 0 && s->asked.at[middle].path[n] < '/'))
            from = middle + 1;
        else
            to = middle;
    }
    for (; names < often && from < s->asked.n; from++) {
        const char *path = s->asked.at[from].path;
        if (strncmp(path, in->real, n) != 0 || path[n] != '/')
            break;
        const struct str name = {path + n + 1, strcspn(path + n + 1, "/")};
        names += !str_eq(name, last);
        last = name;
    }
    return names >= often;
}

/*
 * Whether the parent's listing says that it does not exist. Names are only concluded to be missing in a directory that
 * was searched before (its listing says nothing of the right to do that).
 */
static bool is_unlisted(struct surveyor *s, struct survey_node *n)
{
    struct survey_node *in = n->parent;
    if (in->unlisted || !in->searched)
        return false;
    if (!in->listing) {
        in->listing = asked_often(s, in) ? arena_zero(s->mem, sizeof *in->listing) : NULL;
        in->unlisted = !in->listing || !survey_is_local(s, in->dev, in->real) || !listing_read(in->real, in->listing);
        if (in->unlisted)
            return false;
    }
    return !listing_may_have(in->listing, str_of(n->name));
}

int survey_look(struct surveyor *s, struct survey_node *n)
{
    struct sys_stat st;
    int r = is_unlisted(s, n) ? -ENOENT : sys_look(n->real, &st);
    n->parent->searched |= r == 0 || r == -ENOENT;
    if (r == 0) {
        n->mode = st.mode;
        n->uid = st.uid;
        n->gid = st.gid;
        n->dev = (uint64_t)st.major << 32 | st.minor;
        n->ino = st.inode;
        n->bytes = st.size;
        n->born = sys_stat_born(&st);
        n->mount = st.mask & SYS_STAT_MOUNT ? st.mount : 0;
    }
    if (r == 0 && S_ISLNK(n->mode)) {
        n->is_link = true;
        r = read_link(s, n);
        if (r == -ENOMEM)
            return r;
    }
    n->no = -r;
    if (r == 0)
        n->type = survey_type(n->mode);
    else if (r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
        n->type = PATH_MISSING;
    else
        n->type = PATH_UNREADABLE;
    return 0;
}

static void grow(struct surveyor *s)
{
    size_t n = s->n_buckets * 2;
    struct survey_node **b = arena_zero(s->mem, n * sizeof *b);
    if (!b)
        return; /* chains get longer but stay correct */
    for (size_t i = 0; i < s->n_buckets; i++) {
        for (struct survey_node *at = s->buckets[i], *next; at; at = next) {
            next = at->next;
            size_t where = at->hash & (n - 1);
            at->next = b[where];
            b[where] = at;
        }
    }
    s->buckets = b;
    s->n_buckets = n;
}

static char *survey_join(struct surveyor *s, const struct survey_node *parent, struct str name)
{
    size_t n = parent->parent == parent ? 0 : strlen(parent->real);
    char *real = arena_zero(s->mem, n + name.n + 2);
    if (!real)
        return NULL;
    memcpy(real, parent->real, n);
    real[n] = '/';
    memcpy(real + n + 1, name.p, name.n);
    return real;
}

/* The node `name` in directory `parent`, examined now if it was not before; NULL without memory. */
static struct survey_node *node_child(struct surveyor *s, struct survey_node *parent, struct str name)
{
    const uint32_t hash = node_hash(parent, name);
    for (struct survey_node *n = s->buckets[hash & (s->n_buckets - 1)]; n; n = n->next) {
        if (n->hash == hash && n->parent == parent && str_is(name, n->name))
            return n;
    }
    struct survey_node *n = arena_zero(s->mem, sizeof *n);
    const char *real = survey_join(s, parent, name);
    if (!n || !real)
        return NULL;
    *n = (struct survey_node){.parent = parent, .hash = hash, .name = real + strlen(real) - name.n, .real = real};
    if (survey_look(s, n) < 0)
        return NULL;
    if (s->n_nodes++ > s->n_buckets)
        grow(s);
    size_t where = hash & (s->n_buckets - 1);
    n->next = s->buckets[where];
    s->buckets[where] = n;
    return n;
}

static void judge_link(struct surveyor *s, struct survey_node *link)
{
    struct survey_node *in = link->parent;
    if (in->written == NOT_ASKED)
        in->written = written_covers(s->memory, in->real) ? WRITTEN : NOT_WRITTEN;
    if (in->written == WRITTEN && !s->planted)
        s->planted = link;
}

/* Follows the link `n` to its final target. */
static int follow_link(struct surveyor *s, struct survey_node *n, struct place_found *ret)
{
    if (s->judging)
        judge_link(s, n);
    if (s->links_left-- <= 0)
        return -ELOOP;
    return survey_walk(s, n->target[0] == '/' ? s->root : n->parent, n->target, ret);
}

int survey_walk(struct surveyor *s, struct survey_node *from, const char *path, struct place_found *ret)
{
    struct place_found at = {.at = from, .rest = ""};
    for (const char *p = path; *p;) {
        while (*p == '/')
            p++;
        size_t n = strcspn(p, "/");
        if (n == 0)
            break;
        if (at.at->type != PATH_DIR || at.rest[0]) {
            at.rest = at.rest[0] ? path_join(s->mem, at.rest, p) : p;
            at.link = NULL;
            break;
        }
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            at.at = at.at->parent;
        } else if (!(n == 1 && p[0] == '.')) {
            struct survey_node *next = node_child(s, at.at, (struct str){p, n});
            if (!next)
                return -ENOMEM;
            at = (struct place_found){.at = next, .rest = ""};
            if (next->is_link && next->target) {
                int r = follow_link(s, next, &at);
                if (r == -ELOOP)
                    *ret = (struct place_found){.at = next, .rest = p + n + (p[n] == '/')};
                if (r < 0)
                    return r;
                at.link = next;
            }
        }
        p += n;
    }
    if (!at.rest)
        return -ENOMEM;
    *ret = at;
    return 0;
}

static void fact_from(struct surveyor *s, const struct place_found *found, int r, struct path_fact *f)
{
    const struct survey_node *n = found->at;
    bool beyond = found->rest[0];
    f->real = beyond ? path_join(s->mem, n->real, found->rest) : n->real;
    f->link = found->link && !beyond ? found->link->real : NULL;
    f->type = !beyond ? n->type : n->type == PATH_UNREADABLE ? PATH_UNREADABLE : PATH_MISSING;
    f->no = !beyond || n->no ? n->no : ENOTDIR;
    if (r == -ELOOP) {
        f->type = PATH_MISSING;
        f->no = ELOOP;
    }
    f->mode = n->mode & 07777;
    f->uid = n->uid;
    f->gid = n->gid;
    f->dev = n->dev;
    f->ino = n->ino;
    f->born = n->born;
    /* For a path below a file, the file's directory; for an existing one, its own directory. */
    f->parent = n->parent->real;
    f->foreign = n->parent->uid != s->uid && (n->parent->mode & 022) == 0;
}

int survey_path(struct surveyor *s, const char *path, struct path_fact *f)
{
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    int r = survey_walk(s, s->root, path, &found);
    if (r < 0 && r != -ELOOP)
        return r;
    fact_from(s, &found, r, f);
    return f->real ? 0 : -ENOMEM;
}
