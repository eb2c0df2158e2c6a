/*
 * Walks a path as a process in the box does. The plan says where each component is (plan/seen.h), the host is asked what is
 * there, and links are followed by the box's names.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "why/parts.h"

#define MAX_LINKS 40 /* path_resolution(7) */

/*
 * The box's processes have the caller's ids and no capability. The kernel's answer to us includes access lists and
 * read-only file systems; what root may do by its capabilities is left out.
 */
static bool bits_permit(const struct why_question *q, const struct stat *st, int want)
{
    const struct facts *f = q->plan->facts;
    unsigned shift = 0, bits = (unsigned)want;
    if (st->st_uid == f->uid) {
        shift = 6;
    } else {
        gid_t groups[256];
        int n = getgroups(256, groups);
        bool member = st->st_gid == f->gid;
        for (int i = 0; i < n && !member; i++)
            member = groups[i] == st->st_gid;
        shift = member ? 3 : 0;
    }
    return ((st->st_mode >> shift) & bits) == bits;
}

bool why_permits(const struct why_question *q, const struct why_node *node, int want)
{
    if (!node->exists)
        return false;
    if (!node->at) { /* made for the box, with the caller as its owner */
        struct stat own = node->st;
        own.st_uid = q->plan->facts->uid;
        return bits_permit(q, &own, want);
    }
    bool own_copy = node->seen.kind == SEEN_LAYER && want & W_OK; /* written to the layer, wherever the host's is */
    if (q->plan->facts->uid == 0 || own_copy || q->plan->facts->unsandboxed)
        return bits_permit(q, &node->st, want) && (own_copy || faccessat(AT_FDCWD, node->at, want, 0) == 0);
    return faccessat(AT_FDCWD, node->at, want, 0) == 0;
}

/* A whiteout of overlayfs: the layer says that the name is gone. */
static bool is_gone(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static bool look_on_host(struct why_node *n, const char *at, int *ret_no)
{
    if (lstat(at, &n->st) < 0) {
        *ret_no = errno;
        return false;
    }
    n->at = at;
    n->exists = true;
    return true;
}

/* An object that an earlier box of this project has made in the layer. */
static bool is_own(const char *at)
{
    struct stat st;
    return lstat(at, &st) == 0 && !is_gone(&st);
}

/* What the box has at n->path. *ret_no: why the host could not say, or 0. */
static int look(struct why_question *q, struct why_node *n, int *ret_no)
{
    *ret_no = 0;
    if (plan_seen(q->plan, n->path, q->mem, &n->seen) < 0)
        return why_memory(q);
    if (n->seen.own && is_own(n->seen.own)) {
        n->seen.kind = SEEN_LAYER;
        n->seen.place = n->seen.over;
        n->seen.host = NULL;
    }
    n->exists = false;
    n->at = NULL;
    memset(&n->st, 0, sizeof n->st);
    switch (n->seen.kind) {
    case SEEN_LAYER:
        if (n->seen.upper && look_on_host(n, n->seen.upper, ret_no)) {
            if (!is_gone(&n->st))
                return 0;
            n->exists = false;
            n->at = NULL;
            return 0;
        }
        *ret_no = 0;
        if (n->seen.host)
            (void)look_on_host(n, n->seen.host, ret_no);
        break;
    case SEEN_HOST:
        (void)look_on_host(n, n->seen.host, ret_no);
        break;
    case SEEN_MADE:
        n->exists = true;
        n->st.st_mode = n->seen.mode | (n->seen.file ? S_IFREG : S_IFDIR);
        break;
    case SEEN_LINK:
        n->exists = true;
        n->st.st_mode = S_IFLNK | 0777;
        break;
    case SEEN_DEVICES:
        n->exists = true;
        n->st.st_mode = S_IFCHR | 0666;
        break;
    case SEEN_DENIED:
        n->exists = true;
        n->st.st_mode = n->seen.place->type == PATH_DIR ? S_IFDIR : S_IFREG;
        break;
    case SEEN_OWN:
    case SEEN_ABSENT:
    case SEEN_PROC:
    case SEEN_IMAGE:
        break;
    }
    if (*ret_no == ENOENT || *ret_no == ENOTDIR)
        *ret_no = 0;
    return 0;
}

static int read_link(struct why_question *q, const struct why_node *n, const char **ret)
{
    char text[PATH_MAX];
    if (n->seen.kind == SEEN_LINK) {
        *ret = n->seen.link;
        return 0;
    }
    ssize_t k = readlink(n->at, text, sizeof text - 1);
    if (k < 0)
        return err_sys(q->e, ERR_SYSTEM, errno, "cannot read the link '%s'", n->at);
    text[k] = 0;
    *ret = arena_text(q->mem, text);
    return *ret ? 0 : why_memory(q);
}

static bool is_opaque(const struct why_node *n)
{
    return n->seen.kind == SEEN_PROC || n->seen.kind == SEEN_IMAGE;
}

/* Whether a process may go on below `n`; otherwise the walk has ended there. */
static bool may_pass(struct why_question *q, const struct why_node *n, struct why_walk *w)
{
    if (is_opaque(n))
        return true;
    if (n->seen.kind == SEEN_DENIED)
        w->stop = WALK_DENIED;
    else if (!n->exists)
        w->stop = WALK_MISSING;
    else if (!S_ISDIR(n->st.st_mode))
        w->stop = WALK_NOT_DIRECTORY;
    else if (!why_permits(q, n, X_OK))
        w->stop = WALK_PERMISSION;
    else
        return true;
    w->last = *n;
    return false;
}

/* One component from `here` on: what is there, with links followed by `*rest`. */
static int step(struct why_question *q, struct why_node *here, struct str name, const char **rest, unsigned *links,
                struct why_walk *w, bool *ret_done)
{
    const char *path = arena_printf(q->mem, "%s/%.*s", here->path[1] ? here->path : "", (int)name.n, name.p);
    struct why_node next = {.path = path};
    const char *text;
    int no = 0, r = path ? look(q, &next, &no) : why_memory(q);
    if (r < 0)
        return r;
    if (no) { /* nothing between us and it refuses in the box, or it would have been seen before */
        w->stop = WALK_PERMISSION;
        w->last = next;
        w->above = *here;
        *ret_done = true;
        return 0;
    }
    if (next.exists && S_ISLNK(next.st.st_mode)) {
        if (++*links > MAX_LINKS) {
            w->stop = WALK_LOOP;
            w->last = next;
            *ret_done = true;
            return 0;
        }
        r = read_link(q, &next, &text);
        if (r < 0)
            return r;
        *rest = arena_printf(q->mem, "%s/%s", text, *rest);
        if (text[0] == '/')
            *here = (struct why_node){.path = "/"};
        return *rest ? text[0] == '/' ? look(q, here, &no) : 0 : why_memory(q);
    }
    w->above = *here;
    *here = next;
    return 0;
}

int why_walk(struct why_question *q, const char *path, struct why_walk *ret)
{
    struct why_node here = {.path = "/"};
    const char *rest = path;
    unsigned links = 0;
    bool done = false;
    int no, r = look(q, &here, &no);
    *ret = (struct why_walk){.stop = WALK_ARRIVED, .rest = ""};
    ret->above = here;
    while (r == 0 && !done) {
        rest += strspn(rest, "/");
        struct str name = {rest, strcspn(rest, "/")};
        if (name.n == 0)
            break;
        ret->rest = rest;
        rest += name.n;
        if (!may_pass(q, &here, ret))
            return 0;
        ret->rest = rest;
        if (str_is(name, "."))
            continue;
        if (str_is(name, "..")) {
            const char *dir = path_dir(q->mem, here.path);
            here = (struct why_node){.path = dir};
            r = dir ? look(q, &here, &no) : why_memory(q);
            const char *above = dir ? path_dir(q->mem, dir) : NULL;
            ret->above = (struct why_node){.path = above};
            if (r == 0)
                r = above ? look(q, &ret->above, &no) : why_memory(q);
            continue;
        }
        r = step(q, &here, name, &rest, &links, ret, &done);
    }
    if (r == 0 && !done) {
        ret->last = here;
        ret->rest = "";
    }
    return r;
}

enum why_shown why_shown(const struct plan *p, const char *path, struct arena *mem)
{
    for (const char *end = path; *end; end += *end == '/') {
        struct seen_at at;
        end += strcspn(end, "/");
        const char *part = end == path ? "/" : arena_str(mem, (struct str){path, (size_t)(end - path)});
        if (!part || plan_seen(p, part, mem, &at) < 0)
            return WHY_SHOWN_NOT_KNOWN;
        if (at.kind == SEEN_ABSENT || at.kind == SEEN_DENIED || (!*end && at.place->region == REGION_HIDDEN))
            return WHY_SHOWN_NOT; /* in a hidden directory something may be shown again */
        if (!*end && at.kind == SEEN_OWN)
            return WHY_SHOWN_OWN;
    }
    return WHY_SHOWN;
}
