/*
 * Every directory on some path becomes a node, examined once (one statx) and found again by (parent node, name). A path
 * is walked from the root node. Symbolic links are followed here, by their text, so the real path is a by-product and
 * /proc is not needed. A thousand paths below one directory cost a thousand statx calls and no more, and fewer if many of
 * them do not exist (listing.h). Otherwise only directories whose names are needed are opened: for patterns, and for the
 * Landlock tier, whose rules can only allow and so must list everything beside a hidden place.
 *
 * What is found here may change before the box is built. The runner handles that: it opens each real path without
 * following links and fails if something has changed.
 */
#include "survey/survey.h"
#include "survey/helper.h"
#include "survey/listing.h"
#include "survey/written.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "survey/runtime_dir.h"
#include "match/path.h"
#include "sys/file.h"
#include "sys/path.h"
#include "sys/process.h"

#define ASKED_OFTEN       24 /* names in one directory: to list 180 entries takes as long as to look for some 50 names */
#define ASKED_OF_FEW      8  /* names in one of a block at most, which has some hundred entries if it is full */
#define ONE_BLOCK         4096
#define MAX_LINKS         40      /* for one path, as in the kernel (path_resolution(7)) */
#define MAX_EXPANDED      1000000 /* names examined by `expand: start` */
#define MAX_EXPAND_LEVELS 128
#define MAX_MATCHES       10000 /* of all rules: each becomes a mount or a rule of the guard */

struct survey_node {
    struct survey_node *parent; /* the root's is itself */
    const char *name, *real;    /* the name is the end of the path */
    enum path_type type;
    int no;
    bool is_link;
    uint32_t hash;
    uint32_t mode, uid, gid;
    uint64_t dev, ino, born, bytes;
    const char *target;                               /* text of the link */
    struct dir_listing *listing;                      /* what it does not contain, if many names are asked for */
    bool searched, unlisted;                          /* a name was looked for in it; never list it */
    enum { NOT_ASKED, NOT_WRITTEN, WRITTEN } written; /* by a box: checked when a link in it is followed */
    struct survey_node *next;                         /* in the same bucket */
};

/* pinfold's own (its ancestors up to the root), or what a rule makes accessible. */
struct chain {
    const char *asked;
    struct survey_node *end; /* the nearest that exists */
    const char *rest;        /* what is missing below it */
    bool part;               /* a directory inside pinfold's own */
};

struct surveyor {
    struct arena *mem;
    struct survey_node *root;
    struct survey_node **buckets;
    size_t n_buckets, n_nodes;
    int links_left;
    uint32_t uid;                     /* of the caller */
    const struct mount_rule **mounts; /* sorted by target */
    size_t n_mounts;
    const char *memory;
    struct {
        uint64_t dev;
        bool known, local; /* listing_is_local() */
    } systems[4];
    bool judging;                /* links are judged while they are followed */
    struct survey_node *planted; /* the first that a box may have created */
    struct asked_list {
        struct survey_asked {
            const char *path;
            bool host; /* a path of the host, whatever a mount shows the box there */
        } * at;
        size_t n;
    } asked; /* all paths, sorted */
    char text[PATH_MAX];
};

/* End of a walk: `rest` is what follows a node that is missing, no directory, or may not be searched. */
struct place_found {
    struct survey_node *at, *link;
    const char *rest;
};

static uint32_t hash_of(const struct survey_node *parent, struct str name)
{
    uint64_t h = (uintptr_t)parent * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.p[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 29);
}

static enum path_type type_of(uint32_t mode)
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

/* listing_is_local(), asked once for a file system. */
static bool is_local(struct surveyor *s, uint64_t dev, const char *path)
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
        in->unlisted = !in->listing || !is_local(s, in->dev, in->real) || !listing_read(in->real, in->listing);
        if (in->unlisted)
            return false;
    }
    return !listing_may_have(in->listing, str_of(n->name));
}

static int look(struct surveyor *s, struct survey_node *n)
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
    }
    if (r == 0 && S_ISLNK(n->mode)) {
        n->is_link = true;
        r = read_link(s, n);
        if (r == -ENOMEM)
            return r;
    }
    n->no = -r;
    if (r == 0)
        n->type = type_of(n->mode);
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
    const uint32_t hash = hash_of(parent, name);
    for (struct survey_node *n = s->buckets[hash & (s->n_buckets - 1)]; n; n = n->next) {
        if (n->hash == hash && n->parent == parent && str_is(name, n->name))
            return n;
    }
    struct survey_node *n = arena_zero(s->mem, sizeof *n);
    const char *real = survey_join(s, parent, name);
    if (!n || !real)
        return NULL;
    *n = (struct survey_node){.parent = parent, .hash = hash, .name = real + strlen(real) - name.n, .real = real};
    if (look(s, n) < 0)
        return NULL;
    if (s->n_nodes++ > s->n_buckets)
        grow(s);
    size_t where = hash & (s->n_buckets - 1);
    n->next = s->buckets[where];
    s->buckets[where] = n;
    return n;
}

static int survey_walk(struct surveyor *s, struct survey_node *from, const char *path, struct place_found *ret);

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

static int survey_walk(struct surveyor *s, struct survey_node *from, const char *path, struct place_found *ret)
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

static int survey_path(struct surveyor *s, const char *path, struct path_fact *f)
{
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    int r = survey_walk(s, s->root, path, &found);
    if (r < 0 && r != -ELOOP)
        return r;
    fact_from(s, &found, r, f);
    return f->real ? 0 : -ENOMEM;
}

static int ask(struct surveyor *s, struct asked_list *a, const char *path, bool host)
{
    if (!path || path[0] != '/')
        return 0;
    struct survey_asked *slot = arena_push(s->mem, &a->at, &a->n, sizeof *slot);
    if (!slot)
        return -ENOMEM;
    *slot = (struct survey_asked){path, host};
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct survey_asked *)a)->path, ((const struct survey_asked *)b)->path);
}

/* Collects everything that plan/ will look up with facts_path(). */
static int ask_all(struct surveyor *s, const struct policy *p, const struct facts *f, struct asked_list *a)
{
    int r = ask(s, a, p->workspace, true);
    for (const char *const *c = facts_places; r == 0 && *c; c++)
        r = ask(s, a, *c, true);
    const char *own[] = {f->home,
                         f->program,
                         f->helpers[0],
                         f->helpers[1],
                         f->helpers[2],
                         f->runtime,
                         path_join(s->mem, f->state_home, "pinfold"),
                         path_join(s->mem, f->config_home, "pinfold")};
    for (size_t i = 0; r == 0 && i < sizeof own / sizeof own[0]; i++)
        r = ask(s, a, own[i], true);
    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        r = ask(s, a, rule->any_depth ? rule->below : rule->pattern ? path_dir(s->mem, rule->path) : rule->path, false);
    }
    for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
        r = ask(s, a, p->mounts[i].from, true);
        if (r == 0)
            r = ask(s, a, p->mounts[i].to, false);
    }
    for (size_t i = 0; r == 0 && i < p->n_storages; i++)
        r = ask(s, a, p->storages[i].path, false);
    for (size_t i = 0; r == 0 && i < p->n_unix_sockets; i++)
        r = ask(s, a, p->unix_sockets[i], false);
    return r;
}

static int by_target(const void *a, const void *b)
{
    const struct mount_rule *const *x = a, *const *y = b;
    return path_order((*x)->to, (*y)->to);
}

static const char *target_of(const void *mounts, size_t i)
{
    return ((const struct mount_rule *const *)mounts)[i]->to;
}

static int order_mounts(struct surveyor *s, const struct policy *p)
{
    s->mounts = arena_zero(s->mem, (p->n_mounts + 1) * sizeof *s->mounts);
    if (!s->mounts)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_mounts; i++)
        s->mounts[i] = &p->mounts[i];
    qsort(s->mounts, p->n_mounts, sizeof *s->mounts, by_target);
    s->n_mounts = p->n_mounts;
    return 0;
}

/*
 * A rule for a path below a mount's target means what the box sees there, so the path to examine is below that mount's
 * source; of several the deepest target counts.
 */
static const char *through_mounts(struct surveyor *s, const char *path)
{
    size_t i = s->n_mounts ? path_find_above(path, s->n_mounts, target_of, s->mounts) : SIZE_MAX;
    return i == SIZE_MAX ? path : path_join(s->mem, s->mounts[i]->from, path_rest(path, s->mounts[i]->to));
}

/*
 * The kernel knows groups and access lists; it is asked only where it could refuse, and need not. Where the group's rights have no
 * right to read, no entry of an access list gives it: they are its mask (acl(5)). Root may read all the same.
 */
static bool is_refused(struct surveyor *s, const struct facts *f, const char *real, uint64_t dev, uint32_t uid,
                       uint32_t mode)
{
    if (uid == f->uid || mode & 0004)
        return false;
    return (f->uid != 0 && !(mode & 0040) && is_local(s, dev, real)) || sys_may_read(real) < 0;
}

static int survey_paths(struct surveyor *s, const struct policy *p, struct facts *f)
{
    struct asked_list a = {0};
    int r = ask_all(s, p, f, &a);
    if (r == 0)
        r = order_mounts(s, p);
    if (r < 0)
        return r;
    qsort(a.at, a.n, sizeof *a.at, by_text);
    s->asked = a;
    struct path_fact *facts = arena_zero(s->mem, (a.n + 1) * sizeof *facts);
    if (!facts)
        return -ENOMEM;
    size_t n = 0;
    for (size_t i = 0, next; i < a.n; i = next) {
        bool host = a.at[i].host;
        for (next = i + 1; next < a.n && by_text(&a.at[next], &a.at[i]) == 0; next++)
            host |= a.at[next].host;
        struct path_fact *fact = &facts[n++];
        fact->asked = a.at[i].path;
        const char *where = host ? fact->asked : through_mounts(s, fact->asked);
        r = where ? survey_path(s, where, fact) : -ENOMEM;
        if (r < 0)
            return r;
        if (fact->type == PATH_FILE || fact->type == PATH_DIR)
            fact->refused = is_refused(s, f, fact->real, fact->dev, fact->uid, fact->mode);
    }
    f->paths = facts;
    f->n_paths = n;
    return 0;
}

/* ---- links that a box may have created ---- */

static struct path_pin *find_pin(const struct path_pins *pins, const char *asked)
{
    for (size_t i = 0; pins && i < pins->n; i++) {
        if (strcmp(pins->at[i].asked, asked) == 0)
            return &pins->at[i];
    }
    return NULL;
}

static int add_pin(struct path_pins *pins, const char *asked, const char *real)
{
    struct path_pin *pin = pins ? arena_push(pins->mem, &pins->at, &pins->n, sizeof *pin) : NULL;
    if (!pin)
        return pins ? -ENOMEM : 0;
    *pin = (struct path_pin){arena_text(pins->mem, asked), arena_text(pins->mem, real)};
    return pin->asked && pin->real ? 0 : -ENOMEM;
}

/*
 * Walks again, over known nodes, a path that crosses links. `*ret` is a link that a box may have created, or NULL:
 * there is none, or the path leads where it led before any box of this policy.
 */
static int find_planted(struct surveyor *s, struct facts *f, const char *asked, bool host,
                        const struct survey_node **ret)
{
    *ret = NULL;
    const char *where = host ? asked : through_mounts(s, asked);
    struct path_fact *fact = (struct path_fact *)(uintptr_t)facts_path(f, asked);
    if (!where || !fact || strcmp(fact->real, where) == 0)
        return where ? 0 : -ENOMEM;
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    s->judging = true;
    s->planted = NULL;
    int r = survey_walk(s, s->root, where, &found);
    s->judging = false;
    if (r == -ENOMEM)
        return r;
    const struct path_pin *pin = find_pin(f->pins, asked);
    if (!s->planted)
        return pin ? 0 : add_pin(f->pins, asked, fact->real);
    if (pin && strcmp(pin->real, fact->real) == 0)
        return 0;
    fact->planted = true;
    *ret = s->planted;
    return 0;
}

static bool is_asked(const struct policy *p, uint32_t origin)
{
    return origin < p->n_origins && p->origins[origin].layer != LAYER_BUILTIN;
}

static int refuse_planted(const struct policy *p, const struct facts *f, const char *what, uint32_t origin,
                          const char *asked, const struct survey_node *link, struct err *e)
{
    char said[300], place[256];
    if (is_asked(p, origin) && p->origins[origin].layer == LAYER_FLAGS && !p->origins[origin].line)
        return written_refuse(p->origins[origin].file, asked, link->real, facts_path(f, asked)->real, e);
    snprintf(said, sizeof said, "%s (%s)", what, policy_origin(p, origin, place, sizeof place));
    return written_refuse(said, asked, link->real, facts_path(f, asked)->real, e);
}

/* Judges a path that a person has given. */
static int judge_said(struct surveyor *s, const struct policy *p, struct facts *f, const char *what, uint32_t origin,
                      const char *asked, bool host, struct err *e)
{
    const struct survey_node *link;
    int r = find_planted(s, f, asked, host, &link);
    return r == 0 && link ? refuse_planted(p, f, what, origin, asked, link, e) : r;
}

static int judge_rule(struct surveyor *s, const struct policy *p, struct facts *f, const struct path_rule *rule,
                      struct err *e)
{
    static const char *const names[] = {
        [PATH_HIDE] = "hide", [PATH_RO] = "ro", [PATH_RW] = "rw", [PATH_PROTECT] = "protect", [PATH_CACHE] = "cache"};
    const struct survey_node *link;
    bool hides = rule->access == PATH_HIDE || rule->access == PATH_PROTECT, said = is_asked(p, rule->origin);
    /* What a profile hides stays hidden under all its names; what it makes accessible is left out
       (plan/places/collect.c). */
    if ((rule->any_depth && !rule->below) || (hides && !said))
        return 0;
    const char *path = rule->any_depth ? rule->below : rule->pattern ? path_dir(s->mem, rule->path) : rule->path;
    if (!path)
        return -ENOMEM;
    return said ? judge_said(s, p, f, names[rule->access], rule->origin, path, false, e)
                : find_planted(s, f, path, false, &link);
}

static int judge_links(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e)
{
    int r = judge_said(s, p, f, "workspace", p->workspace_origin, p->workspace, true, e);
    for (size_t i = 0; r == 0 && i < p->n_paths; i++)
        r = judge_rule(s, p, f, &p->paths[i], e);
    for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
        r = judge_said(s, p, f, "mount", p->mounts[i].origin, p->mounts[i].from, true, e);
        if (r == 0)
            r = judge_said(s, p, f, "mount on", p->mounts[i].origin, p->mounts[i].to, false, e);
    }
    for (size_t i = 0; r == 0 && i < p->n_storages; i++)
        r = judge_said(s, p, f, "storage", p->storages[i].origin, p->storages[i].path, false, e);
    for (size_t i = 0; r == 0 && i < p->n_unix_sockets; i++) {
        const struct survey_node *link;
        const char *path = p->unix_sockets[i];
        r = find_planted(s, f, path, false, &link);
        if (r == 0 && link)
            r = written_refuse("--unix-socket", path, link->real, facts_path(f, path)->real, e);
    }
    return r;
}

static int add_match(struct surveyor *s, struct facts *f, size_t rule, const char *dir, const char *name,
                     enum path_type type)
{
    if (f->n_matches >= MAX_MATCHES)
        return -EOVERFLOW;
    struct match_fact *m = arena_push(s->mem, &f->matches, &f->n_matches, sizeof *m);
    const char *real = m ? path_join(s->mem, dir, name) : NULL;
    if (!real)
        return -ENOMEM;
    *m = (struct match_fact){.rule = (uint32_t)rule, .real = real, .type = type};
    struct sys_stat st;
    m->refused =
        sys_look(real, &st) == 0 && is_refused(s, f, real, (uint64_t)st.major << 32 | st.minor, st.uid, st.mode);
    return 0;
}

static enum path_type entry_type(const char *dir, const struct dirent *d)
{
    if (d->d_type == DT_UNKNOWN) {
        char path[PATH_MAX];
        struct sys_stat st;
        int n = snprintf(path, sizeof path, "%s/%s", dir, d->d_name);
        if (n < 0 || (size_t)n >= sizeof path || sys_look(path, &st) < 0)
            return PATH_MISSING;
        return S_ISLNK(st.mode) ? PATH_FILE : type_of(st.mode);
    }
    return d->d_type == DT_DIR ? PATH_DIR : d->d_type == DT_REG || d->d_type == DT_LNK ? PATH_FILE : PATH_OTHER;
}

static bool dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Matches one directory's names against a pattern ("/etc/ssh/ssh_host_*_key"). */
static int match_here(struct surveyor *s, struct facts *f, size_t rule, const char *dir, const char *pattern)
{
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOMEM ? -ENOMEM : 0; /* an unreadable directory has no names to hide from this caller */
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (!dots(e->d_name) && name_fits(str_of(pattern), true, str_of(e->d_name)))
            r = add_match(s, f, rule, dir, e->d_name, entry_type(dir, e));
    }
    closedir(d);
    return r;
}

/* Whether the last components of `path`, as many as the rule has, match it; `below` is the tree it was found in. */
static bool tail_matches(const struct path_rule *rule, const char *below, const char *path)
{
    size_t parts = 1, end;
    for (const char *p = rule->path; *p; p++)
        parts += *p == '/';
    const char *tail = path + strlen(path);
    while (tail > below && parts) {
        if (*--tail == '/')
            parts--;
    }
    return parts == 0 && names_fit(str_of(rule->path), rule->pattern, str_of(tail), 0, &end);
}

/* The walk of `expand: start`. Only what matches is allocated: a tree may have very many names. */
struct expansion {
    struct surveyor *s;
    struct facts *f;
    size_t no; /* of the rule */
    const struct path_rule *rule;
    size_t below;   /* bytes of the path in which the rule does not match */
    size_t names;   /* examined */
    unsigned level; /* directories open now */
    char path[PATH_MAX];
};

/* What a directory without names to hide from this caller answers: it has gone, or may not be listed. */
static bool holds_nothing(int no)
{
    return no == 0 || no == EACCES || no == EPERM || no == ENOENT || no == ESRCH || no == ENOTDIR || no == EINVAL;
}

static int match_tree(struct expansion *x, size_t n);

/* One name in the directory that is the first `n` bytes of x->path. */
static int match_name(struct expansion *x, size_t n, const struct dirent *e)
{
    size_t more = strlen(e->d_name), at = n > 1 ? n : 0;
    if (++x->names > MAX_EXPANDED)
        return -E2BIG;
    if (at + 1 + more >= sizeof x->path)
        return -ENAMETOOLONG;
    enum path_type type = entry_type(x->path, e);
    x->path[at] = '/';
    memcpy(x->path + at + 1, e->d_name, more + 1);
    int r = 0;
    if (tail_matches(x->rule, x->path + x->below, x->path)) {
        x->path[n] = 0;
        r = add_match(x->s, x->f, x->no, x->path, e->d_name, type);
    } else if (type == PATH_DIR) {
        r = match_tree(x, at + 1 + more);
    }
    if (r == 0) /* after an error the path stays, for the message */
        x->path[n] = 0;
    return r;
}

/* Walks the whole tree without following links or entering matches. */
static int match_tree(struct expansion *x, size_t n)
{
    if (x->level >= MAX_EXPAND_LEVELS)
        return -ELOOP;
    DIR *d = opendir(x->path);
    if (!d)
        return holds_nothing(errno) ? 0 : -errno;
    int r = 0;
    x->level++;
    while (r == 0) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) {
            r = holds_nothing(errno) ? 0 : -errno;
            break;
        }
        if (!dots(e->d_name))
            r = match_name(x, n, e);
    }
    x->level--;
    closedir(d);
    return r;
}

static int by_match(const void *a, const void *b)
{
    const struct match_fact *x = a, *y = b;
    return x->rule != y->rule ? (x->rule < y->rule ? -1 : 1) : path_order(x->real, y->real);
}

/* ---- other names of pinfold's own files ---- */

static int chain_of(struct surveyor *s, const char *path, struct chain *ret)
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

/*
 * A bind mount of the host shows a directory at two paths. So what a rule makes accessible is compared with pinfold's
 * own by device and inode: a directory above pinfold's own at another path leads there, and so does its content.
 */
static int find_alias(struct surveyor *s, struct facts *f, const struct chain *own, const struct chain *opened)
{
    if (!own->asked || !opened->asked)
        return 0;
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
    return 0;
}

static int survey_aliases(struct surveyor *s, const struct policy *p, struct facts *f)
{
    /* Directories in the state directory may be mounted elsewhere separately. */
    static const char *const parts[] = {"pinfold/trust", "pinfold/audit", "pinfold/caches", "pinfold/sessions"};
    const char *const paths[] = {path_join(s->mem, f->state_home, "pinfold"),
                                 path_join(s->mem, f->config_home, "pinfold"),
                                 f->program,
                                 "/etc/pinfold",
                                 f->helpers[0],
                                 f->helpers[1],
                                 f->helpers[2],
                                 f->runtime};
    enum { WHOLE = sizeof paths / sizeof paths[0], OWN = WHOLE + sizeof parts / sizeof parts[0] };
    struct chain own[OWN];
    int r = 0;
    for (size_t i = 0; r == 0 && i < OWN; i++) {
        r = chain_of(s, i < WHOLE ? paths[i] : path_join(s->mem, f->state_home, parts[i - WHOLE]), &own[i]);
        own[i].part = i >= WHOLE;
        if (own[i].part && own[i].asked)
            own[i].asked = paths[0];
    }
    for (size_t i = 0; r == 0 && i <= p->n_paths + p->n_mounts; i++) {
        const struct path_rule *rule = i < p->n_paths ? &p->paths[i] : NULL;
        const char *path = i == p->n_paths + p->n_mounts ? p->workspace
                           : !rule                       ? p->mounts[i - p->n_paths].from
                           : rule->access == PATH_RW     ? rule->path
                                                         : NULL;
        struct chain opened;
        if (!path)
            continue;
        r = chain_of(s, rule ? through_mounts(s, path) : path, &opened);
        for (size_t k = 0; r == 0 && k < OWN; k++)
            r = find_alias(s, f, &own[k], &opened);
    }
    return r;
}

/* Says which bound the rule meets: a box never starts with a part of a rule. */
static int refuse_expansion(const struct policy *p, const struct path_rule *rule, const struct expansion *x, int no,
                            const char *top, struct err *e)
{
    char origin[256], why[128];
    const char *remedy = "use expand: never, or restrict the rule to a smaller directory";
    if (no == -E2BIG)
        (void)snprintf(why, sizeof why, "would examine more than %d names below", MAX_EXPANDED);
    else if (no == -ELOOP)
        (void)snprintf(why, sizeof why, "would search more than %d levels of directories below", MAX_EXPAND_LEVELS);
    else if (no == -ENAMETOOLONG)
        (void)snprintf(why, sizeof why, "would examine paths of more than %d bytes below", PATH_MAX - 1);
    else if (no == -EOVERFLOW)
        (void)snprintf(why, sizeof why, "all rules together would hide more than %d names, the last below",
                       MAX_MATCHES);
    else
        return err_say(e, ERR_SYSTEM, "hide %s%s (%s): cannot search %s: %s", rule->any_depth ? "**/" : "", rule->path,
                       policy_origin(p, rule->origin, origin, sizeof origin), x->path, strerror(-no));
    if (!rule->any_depth)
        return err_say(e, ERR_POLICY, "hide %s (%s): %s %s; restrict the rule", rule->path,
                       policy_origin(p, rule->origin, origin, sizeof origin), why, top);
    return err_say(e, ERR_POLICY, "hide **/%s (%s): expand: start: %s %s; %s", rule->path,
                   policy_origin(p, rule->origin, origin, sizeof origin), why, top, remedy);
}

static int survey_patterns(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e)
{
    struct expansion x;
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        if (rule->access != PATH_HIDE || !(rule->any_depth ? p->expand == EXPAND_START : rule->pattern))
            continue;
        const char *dir = rule->any_depth ? rule->below : path_dir(s->mem, rule->path);
        const struct path_fact *at = dir ? facts_path(f, dir) : NULL;
        if (!at || at->type != PATH_DIR)
            continue;
        size_t n = strlen(at->real);
        x = (struct expansion){.s = s, .f = f, .no = i, .rule = rule, .below = n > 1 ? n : 0};
        if (n >= sizeof x.path)
            return -ENAMETOOLONG;
        memcpy(x.path, at->real, n + 1);
        int r = rule->any_depth ? match_tree(&x, n) : match_here(s, f, i, at->real, path_name(rule->path));
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            return refuse_expansion(p, rule, &x, r, at->real, e);
    }
    if (f->n_matches > 1)
        qsort(f->matches, f->n_matches, sizeof *f->matches, by_match);
    return 0;
}

static int by_entry(const void *a, const void *b)
{
    return strcmp(((const struct dir_entry *)a)->name, ((const struct dir_entry *)b)->name);
}

static int list_dir(struct surveyor *s, struct dir_fact *ret)
{
    DIR *d = opendir(ret->path);
    if (!d)
        return errno == ENOMEM ? -ENOMEM : 0;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (dots(e->d_name) || e->d_type == DT_LNK)
            continue;
        struct dir_entry *entry = arena_push(s->mem, &ret->entries, &ret->n_entries, sizeof *entry);
        const char *name = entry ? arena_text(s->mem, e->d_name) : NULL;
        if (!name)
            r = -ENOMEM;
        else
            *entry = (struct dir_entry){.name = name, .directory = entry_type(ret->path, e) == PATH_DIR};
    }
    closedir(d);
    if (ret->n_entries > 1)
        qsort(ret->entries, ret->n_entries, sizeof *ret->entries, by_entry);
    return r;
}

static int node_by_path(const void *a, const void *b)
{
    return path_order(((const struct survey_asked *)a)->path, ((const struct survey_asked *)b)->path);
}

static int ask_above(struct surveyor *s, struct asked_list *a, const char *path)
{
    for (const char *dir = path; dir && dir[1];) {
        dir = path_dir(s->mem, dir);
        if (!dir || ask(s, a, dir, true) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Examines all directories above every place to be hidden. */
static int ask_above_hidden(struct surveyor *s, const struct policy *p, const struct facts *f, struct asked_list *a)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        const struct path_fact *at = rule->access == PATH_HIDE ? facts_path(f, rule->path) : NULL;
        r = at ? ask_above(s, a, at->real) : 0;
        if (r == 0 && at && at->link)
            r = ask_above(s, a, at->link);
    }
    const char *own[] = {path_join(s->mem, f->state_home, "pinfold"), path_join(s->mem, f->config_home, "pinfold")};
    for (size_t i = 0; r == 0 && i < sizeof own / sizeof own[0]; i++) {
        const struct path_fact *at = own[i] ? facts_path(f, own[i]) : NULL;
        r = at ? ask_above(s, a, at->real) : 0;
    }
    for (size_t i = 0; r == 0 && i < f->n_matches; i++)
        r = ask_above(s, a, f->matches[i].real);
    return r < 0 ? r : ask_above(s, a, "/dev"); /* only single nodes of it are made accessible */
}

static int survey_dirs(struct surveyor *s, const struct policy *p, struct facts *f)
{
    struct asked_list a = {0};
    int r = ask_above_hidden(s, p, f, &a);
    if (r < 0 || a.n == 0)
        return r;
    qsort(a.at, a.n, sizeof *a.at, node_by_path);
    for (size_t i = 0; r == 0 && i < a.n; i++) {
        if (i && node_by_path(&a.at[i], &a.at[i - 1]) == 0)
            continue;
        struct dir_fact *d = arena_push(s->mem, &f->dirs, &f->n_dirs, sizeof *d);
        if (!d)
            return -ENOMEM;
        d->path = a.at[i].path;
        r = list_dir(s, d);
    }
    return r;
}

/* The variable of the base directory specification, or `below` the home directory if it is unset or invalid. */
static const char *xdg(struct surveyor *s, const struct facts *f, const char *variable, const char *below)
{
    const char *said = getenv(variable);
    if (said && said[0] == '/')
        return path_clean(s->mem, said);
    return f->home && f->home[0] == '/' ? path_join(s->mem, f->home, below) : NULL;
}

/*
 * File systems that overlayfs refuses for an upper layer (ovl_mount_dir_noesc() in fs/overlayfs/params.c: those that
 * may change by themselves or look names up in their own way), or that would be a third layer.
 */
static bool carries_uppers(const char *path)
{
    static const unsigned never[] = {SYS_OVERLAYFS,         SYS_ECRYPTFS,           0x6969 /* NFS */,
                                     0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */,  0x517b /* SMB */,
                                     0x65735546 /* FUSE */, 0x01021997 /* 9p */,    0x00c36400 /* Ceph */,
                                     0x5346414f /* AFS */,  0x6b414653 /* kAFS */,  0x73757245 /* Coda */,
                                     0x4d44 /* FAT */,      0x2011bab0 /* exFAT */, 0x7366746e /* NTFS */};
    char at[PATH_MAX];
    struct statfs fs;
    if (!path || strlen(path) >= sizeof at)
        return true; /* there is no state directory, which is reported elsewhere */
    strcpy(at, path);
    while (statfs(at, &fs) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return true;
        *slash = 0;
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        if ((unsigned)fs.f_type == never[i])
            return false;
    }
    return true;
}

static int survey_own(struct surveyor *s, struct facts *f)
{
    if (!f->state_home)
        f->state_home = xdg(s, f, "XDG_STATE_HOME", ".local/state");
    if (!f->runtime)
        f->runtime = runtime_in_tmp(s->mem);
    /* In a box its caches are layers already, and overlays can be stacked only twice. */
    const char *in_box = getenv("PINFOLD"); /* "1"; somebody else's variable says nothing */
    f->uppers = !(in_box && same(in_box, "1")) && carries_uppers(f->state_home);
    f->layers &= f->uppers;
    if (!f->config_home)
        f->config_home = xdg(s, f, "XDG_CONFIG_HOME", ".config");
    if (!f->program) {
        ssize_t n = sys_readlink("/proc/self/exe", s->text, sizeof s->text);
        if (n > 0 && (size_t)n < sizeof s->text)
            f->program = arena_str(s->mem, (struct str){s->text, (size_t)n});
    }
    if (!f->helpers[0] && f->program)
        helper_guarded(s->mem, f->program, f->helpers);
    return arena_failed(s->mem) ? -ENOMEM : 0;
}

/*
 * A hard limit of 0 cannot be raised to 1, which alone keeps the kernel from passing a core dump to a program ("|...")
 * or a socket ("@..."). Checked only in that case.
 */
static int survey_core(const struct surveyor *s, struct facts *f)
{
    struct sys_rlimit limit;
    char text[256];
    if (sys_prlimit(RLIMIT_CORE, NULL, &limit) < 0 || limit.hard != 0)
        return 0;
    auto_fd int fd = sys_openat(AT_FDCWD, "/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, text, sizeof text - 1);
    if (n <= 0 || (text[0] != '|' && text[0] != '@'))
        return 0;
    text[n - (text[n - 1] == '\n')] = 0;
    f->core_program = arena_text(s->mem, text);
    return f->core_program ? 0 : -ENOMEM;
}

int survey(const struct policy *p, struct facts *f, struct arena *mem, struct err *e)
{
    enum { FIRST_BUCKETS = 512 };
    struct surveyor *s = arena_zero(mem, sizeof *s);
    if (!s)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot survey the policy's paths");
    s->mem = mem;
    s->uid = f->uid;
    s->memory = f->written;
    s->n_buckets = FIRST_BUCKETS;
    s->buckets = arena_zero(mem, FIRST_BUCKETS * sizeof *s->buckets);
    s->root = arena_zero(mem, sizeof *s->root);
    int r = s->buckets && s->root ? 0 : -ENOMEM;
    if (r == 0) {
        *s->root = (struct survey_node){.parent = s->root, .name = "", .real = "/"};
        r = look(s, s->root);
    }
    if (r == 0)
        r = survey_core(s, f);
    if (r == 0)
        r = survey_own(s, f);
    if (r == 0)
        r = survey_paths(s, p, f);
    if (e)
        e->kind = ERR_NONE;
    if (r == 0)
        r = judge_links(s, p, f, e);
    if (r == 0)
        r = survey_aliases(s, p, f);
    if (r == 0)
        r = survey_targets(p, f, mem);
    if (r == 0)
        r = survey_patterns(s, p, f, e);
    if (r == 0 && f->tier == TIER_LANDLOCK)
        r = survey_dirs(s, p, f);
    if (r < 0 && (!e || e->kind == ERR_NONE))
        return err_sys(e, ERR_SYSTEM, -r, "cannot survey the policy's paths");
    return r;
}
