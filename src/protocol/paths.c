/*
 * The table of a box's mounts, and translation of paths between host and box. Pure, by names: it is made of the plan,
 * and handed to whoever has only a session.
 */
#include "protocol/paths.h"
#include <errno.h>
#include <stdio.h>

enum { PATH_BYTES = 4096 };

/* ---- the table ---- */

static void put_mount(struct buf *out, enum path_kind kind, const char *host, const char *box)
{
    buf_char(out, (char)kind);
    buf_put(out, host, strlen(host) + 1);
    buf_put(out, box, strlen(box) + 1);
}

/* The source that was cloned into a slot. */
static const char *source_of(const struct plan_image *p, uint32_t slot)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (s[i].kind == STEP_SOURCE && s[i].b == slot)
            return plan_string(p, s[i].a);
    return NULL;
}

int paths_of_plan(const struct plan_image *p, struct buf *out)
{
    const struct step *s = plan_steps(p);
    if (p->tier) /* the Landlock tier: one view for both */
        put_mount(out, PATH_WRITABLE, "/", "/");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const char *at = plan_string(p, s[i].a), *source;
        switch (s[i].kind) {
        case STEP_ROOT:
            put_mount(out, PATH_READ_ONLY, "/", "/");
            break;
        case STEP_ATTACH:
            source = source_of(p, s[i].b);
            if (source)
                put_mount(out, s[i].flags & STEP_RDONLY ? PATH_READ_ONLY : PATH_WRITABLE, source, at);
            break;
        case STEP_TMPFS:
        case STEP_OVERLAY:
        case STEP_PART:
        case STEP_DEVICES:
        case STEP_PROC:
        case STEP_DEVPTS:
        case STEP_MQUEUE:
        case STEP_DENY:
            put_mount(out, PATH_PRIVATE, "", at);
            break;
        default:
            break;
        }
    }
    return buf_ok(out) ? 0 : -ENOMEM;
}

static bool next_text(const char **p, const char *end, struct str *ret)
{
    const char *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;
    if (!nul)
        return false;
    *ret = (struct str){*p, (size_t)(nul - *p)};
    *p = nul + 1;
    return true;
}

static bool is_absolute(struct str s)
{
    return s.n > 0 && s.p[0] == '/';
}

int paths_load(struct path_table *ret, const char *bytes, size_t n, struct arena *mem)
{
    struct path_mount *mounts = NULL;
    size_t count = 0;
    for (const char *p = bytes, *end = bytes + n; p < end;) {
        struct path_mount m = {.kind = (enum path_kind)(unsigned char)*p++};
        if ((m.kind != PATH_WRITABLE && m.kind != PATH_READ_ONLY && m.kind != PATH_PRIVATE) ||
            !next_text(&p, end, &m.host) || !next_text(&p, end, &m.box) || !is_absolute(m.box) ||
            (m.kind == PATH_PRIVATE ? m.host.n > 0 : !is_absolute(m.host)))
            return -EBADMSG;
        struct path_mount *one = arena_push(mem, &mounts, &count, sizeof *one);
        if (!one)
            return -ENOMEM;
        *one = m;
    }
    *ret = (struct path_table){mounts, count};
    return 0;
}

/* ---- asking ---- */

bool path_lies_in(struct str path, struct str tree)
{
    if (tree.n == 1)
        return true;
    return str_starts(path, tree) && (path.n == tree.n || path.p[tree.n] == '/');
}

const struct path_mount *paths_mount(const struct path_table *t, struct str box)
{
    const struct path_mount *best = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (path_lies_in(box, t->mounts[i].box) && (!best || t->mounts[i].box.n >= best->box.n))
            best = &t->mounts[i];
    return best;
}

/* An absolute path without ".", "..", "//" and a slash at the end; false when it is too long. */
static bool clean(struct str path, char to[PATH_BYTES], struct str *ret)
{
    size_t n = 0;
    for (size_t at = 0; at < path.n;) {
        size_t part = 0;
        while (at + part < path.n && path.p[at + part] != '/')
            part++;
        const char *p = path.p + at;
        if (part == 2 && p[0] == '.' && p[1] == '.') {
            while (n > 0 && to[--n] != '/')
                ;
        } else if (part && !(part == 1 && p[0] == '.')) {
            if (n + 1 + part >= PATH_BYTES)
                return false;
            to[n++] = '/';
            memcpy(to + n, p, part);
            n += part;
        }
        at += part + 1;
    }
    if (n == 0)
        to[n++] = '/';
    *ret = (struct str){to, n};
    return true;
}

/* `path` in `from`, as it is called when `from` is called `to`. */
static bool moved(struct str path, struct str from, struct str to, char room[PATH_BYTES], struct str *ret)
{
    struct str rest = from.n == 1 ? path : str_skip(path, from.n); /* "" or "/..." */
    if (rest.n == 1)
        rest.n = 0;
    size_t head = to.n == 1 ? 0 : to.n;
    if (head + rest.n + 1 >= PATH_BYTES)
        return false;
    memcpy(room, to.p, head);
    memcpy(room + head, rest.p, rest.n);
    *ret = (struct str){room, head + rest.n};
    if (ret->n == 0) {
        room[0] = '/';
        ret->n = 1;
    }
    return true;
}

static bool own_name(const struct path_mount *m)
{
    return !str_eq(m->host, m->box);
}

/* The mount that shows the host's `path` to the box, and where. */
static const struct path_mount *shown(const struct path_table *t, struct str path, char room[PATH_BYTES],
                                      struct str *ret)
{
    const struct path_mount *best = NULL;
    char mine[PATH_BYTES];
    for (size_t i = 0; i < t->n; i++) {
        const struct path_mount *m = &t->mounts[i];
        struct str at;
        if (m->kind == PATH_PRIVATE || !path_lies_in(path, m->host) || (best && m->host.n < best->host.n))
            continue;
        if (best && m->host.n == best->host.n && own_name(best) && !own_name(m))
            continue;
        if (!moved(path, m->host, m->box, mine, &at) || paths_mount(t, at) != m)
            continue;
        best = m;
        memcpy(room, mine, at.n);
        *ret = (struct str){room, at.n};
    }
    return best;
}

/* The mount that decides about an absolute path, and the path on the other side. */
static const struct path_mount *translate(const struct path_table *t, enum path_way way, struct str path,
                                          char room[PATH_BYTES], struct str *ret)
{
    char cleaned[PATH_BYTES];
    struct str from;
    if (!is_absolute(path) || memchr(path.p, 0, path.n) || !clean(path, cleaned, &from))
        return NULL;
    if (way == PATH_TO_BOX)
        return shown(t, from, room, ret);
    const struct path_mount *m = paths_mount(t, from);
    return m && m->kind != PATH_PRIVATE && moved(from, m->box, m->host, room, ret) ? m : NULL;
}

static bool slash_at_end(struct str path)
{
    return path.n > 1 && path.p[path.n - 1] == '/';
}

int paths_translate(const struct path_table *t, enum path_way way, struct str path, struct buf *out)
{
    char room[PATH_BYTES];
    struct str other;
    if (!translate(t, way, path, room, &other)) {
        buf_str(out, path);
        return 0;
    }
    buf_str(out, other);
    if (slash_at_end(path) && other.n > 1)
        buf_char(out, '/');
    return 1;
}

/* One path of a value; false when nothing moves it. */
static bool put_moved(const struct path_table *t, enum path_way way, struct str path, struct buf *out)
{
    char room[PATH_BYTES];
    struct str other;
    const struct path_mount *m = translate(t, way, path, room, &other);
    if (!m || !own_name(m)) {
        buf_str(out, path);
        return false;
    }
    buf_str(out, other);
    if (slash_at_end(path) && other.n > 1)
        buf_char(out, '/');
    return true;
}

/* The box has a mount of the host's at this path, or a place of its own, and nothing deeper of the host's is meant. */
static bool stands_inside(const struct path_table *t, struct str path)
{
    char cleaned[PATH_BYTES], room[PATH_BYTES];
    struct str clean_path, other;
    const struct path_mount *m =
        is_absolute(path) && clean(path, cleaned, &clean_path) ? paths_mount(t, clean_path) : NULL;
    if (!m || m->box.n == 1 || m->kind != PATH_PRIVATE)
        return m && m->box.n > 1;
    const struct path_mount *source = shown(t, clean_path, room, &other);
    return !source || source->host.n <= m->box.n;
}

bool paths_enter(const struct path_table *t, struct str value, struct buf *out)
{
    bool changed = false;
    for (size_t at = 0;; at++) {
        size_t n = 0;
        while (at + n < value.n && value.p[at + n] != ':')
            n++;
        const struct str one = {value.p + at, n};
        if (stands_inside(t, one))
            buf_str(out, one);
        else
            changed |= put_moved(t, PATH_TO_BOX, one, out);
        at += n;
        if (at >= value.n)
            return changed;
        buf_char(out, ':');
    }
}

bool paths_value(const struct path_table *t, enum path_way way, struct str value, struct buf *out)
{
    bool changed = false;
    for (size_t at = 0;; at++) {
        size_t n = 0;
        while (at + n < value.n && value.p[at + n] != ':')
            n++;
        changed |= put_moved(t, way, (struct str){value.p + at, n}, out);
        at += n;
        if (at >= value.n)
            return changed;
        buf_char(out, ':');
    }
}

/* ---- what the plan keeps from the box ---- */

/* Whether `path` is at or below `dir` followed by `rest`, which may be "" and may begin with a slash. */
static bool is_below(const char *path, const char *dir, const char *rest)
{
    const size_t n = strlen(dir);
    rest += *rest == '/';
    const size_t m = strlen(rest);
    if (strncmp(path, dir, n) != 0)
        return false;
    path += n;
    if (m == 0)
        return *path == 0 || *path == '/';
    path += *path == '/';
    return strncmp(path, rest, m) == 0 && (path[m] == 0 || path[m] == '/');
}

/* Whether `dir` followed by `rest` is a name in the directory of the first `n` bytes of `path`. */
static bool is_entry(const char *path, size_t n, const char *dir, const char *rest)
{
    char whole[2 * PATH_BYTES];
    const int k = snprintf(whole, sizeof whole, "%s%s%s", dir, *rest && *rest != '/' ? "/" : "", rest);
    const char *slash = k > 0 && (size_t)k < sizeof whole ? strrchr(whole, '/') : NULL;
    return !slash || ((size_t)(slash - whole) == n && memcmp(whole, path, n) == 0);
}

bool plan_masks(const struct plan_image *p, const char *path, size_t n, bool *ret_clear)
{
    const struct step *s = plan_steps(p);
    const char *over = "";
    *ret_clear = true;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const char *dst = plan_string(p, s[i].a);
        const bool cover = s[i].kind == STEP_COVER,
                   tree = s[i].kind == STEP_TMPFS || s[i].kind == STEP_DEVICES || s[i].kind == STEP_DENY || cover,
                   absent = s[i].kind == STEP_STUB && s[i].mode == STUB_ABSENT;
        if (s[i].kind == STEP_VEIL || cover)
            over = dst;
        if (!tree && !absent)
            continue;
        const char *dir = tree ? dst : over, *rest = tree ? "" : dst;
        if (is_below(path, dir, rest)) {
            *ret_clear = false;
            return true;
        }
        if (is_entry(path, n, dir, rest))
            *ret_clear = false;
    }
    return false;
}

bool plan_in_machine(const struct plan_image *p, struct str path)
{
    const struct step *s = plan_steps(p);
    size_t best = 0;
    bool own = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const bool makes = s[i].kind == STEP_TMPFS || s[i].kind == STEP_DEVICES;
        const char *at = makes || s[i].kind == STEP_ATTACH ? plan_string(p, s[i].a) : NULL;
        if (!at || !path_lies_in(path, str_of(at)) || strlen(at) < best)
            continue;
        best = strlen(at);
        own = makes;
    }
    return own;
}
