/*
 * Operations on paths as text: cleaning, joining, finding what is above or below. No file is looked at, so a link
 * counts as what it is called.
 */
#include <limits.h>
#include "match/path.h"

/* path_order() of the first `n` bytes of `a` against all of `b`. */
static int order_head(const char *a, size_t n, const char *b)
{
    size_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    int x = i == n ? 0 : a[i] == '/' ? 1 : (unsigned char)a[i] + 1;
    int y = b[i] == '/' ? 1 : b[i] ? (unsigned char)b[i] + 1 : 0;
    return x - y;
}

size_t path_find_above(const char *path, size_t n, const char *(*at)(const void *ctx, size_t i), const void *ctx)
{
    for (size_t length = strlen(path); length > 1;) {
        while (path[--length] != '/')
            ;
        size_t head = length ? length : 1, low = 0, high = n;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            int c = order_head(path, head, at(ctx, mid));
            if (c == 0)
                return mid;
            if (c < 0)
                high = mid;
            else
                low = mid + 1;
        }
        length = head;
    }
    return SIZE_MAX;
}

char *path_join(struct arena *mem, const char *dir, const char *rest)
{
    if (!dir)
        return NULL;
    size_t d = strlen(dir), r = strlen(rest), slash = r && d && dir[d - 1] != '/';
    char *p = arena_zero(mem, d + slash + r + 1);
    if (!p)
        return NULL;
    memcpy(p, dir, d);
    if (slash)
        p[d] = '/';
    memcpy(p + d + slash, rest, r);
    return p;
}

char *path_dir(struct arena *mem, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = !slash || slash == path ? 1 : (size_t)(slash - path);
    return arena_str(mem, (struct str){n == 1 ? "/" : path, n});
}

/* Appends the components of `path` to the clean path out[0..n), which is "" for the root. */
static size_t append_clean(char *out, size_t n, struct str path)
{
    struct str part;
    for (size_t at = 0; part_next(path, &at, &part);) {
        if (str_is(part, "..")) {
            while (n && out[--n] != '/')
                ;
        } else if (!str_is(part, ".")) {
            out[n++] = '/';
            memcpy(out + n, part.p, part.n);
            n += part.n;
        }
    }
    return n;
}

char *path_clean_at(struct arena *mem, const char *base, struct str path)
{
    struct str first = path.n && path.p[0] == '/' ? STR("") : str_of(base);
    char *out = arena_zero(mem, first.n + path.n + 3);
    if (!out)
        return NULL;
    size_t n = append_clean(out, append_clean(out, 0, first), path);
    if (n == 0)
        out[n++] = '/';
    out[n] = 0;
    return out;
}

char *path_clean(struct arena *mem, const char *path)
{
    return path_clean_at(mem, "/", str_of(path));
}

char *path_moved(struct arena *mem, const char *path, const char *from, const char *to)
{
    return path_join(mem, to, path_rest(path, from));
}

/* ---- parts of paths ---- */

bool part_next(struct str path, size_t *at, struct str *ret)
{
    while (*at < path.n && path.p[*at] == '/')
        ++*at;
    size_t from = *at;
    while (*at < path.n && path.p[*at] != '/')
        ++*at;
    *ret = (struct str){path.p + from, *at - from};
    return ret->n > 0;
}

static int fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool fold_eq_whole(struct str a, struct str b)
{
    size_t i = 0;
    for (uint64_t x, y; a.n - i >= sizeof x; i += sizeof x) { /* what is the same byte by byte, in larger steps */
        memcpy(&x, a.p + i, sizeof x);
        memcpy(&y, b.p + i, sizeof y);
        if (x != y)
            break;
    }
    for (; i < a.n; i++)
        if (fold((unsigned char)a.p[i]) != fold((unsigned char)b.p[i]))
            return false;
    return true;
}

static bool is_in(struct str path, struct str tree, bool (*equal)(struct str, struct str))
{
    if (tree.n == 1) /* "/" */
        return true;
    /* Most trees fail by their length alone. */
    return path.n >= tree.n && (path.n == tree.n || path.p[tree.n] == '/') && equal((struct str){path.p, tree.n}, tree);
}

bool path_in(struct str path, struct str tree)
{
    return is_in(path, tree, fold_eq);
}

bool path_in_exactly(struct str path, struct str tree)
{
    return is_in(path, tree, str_eq);
}

/* ---- names in rules ---- */

bool name_fits(struct str said, bool pattern, struct str name)
{
    return pattern ? glob_match(said, name, GLOB_ANY_CASE) : fold_eq(said, name);
}

bool names_fit(struct str said, bool pattern, struct str path, size_t at, size_t *ret_end)
{
    struct str part, name;
    size_t here = 0;
    while (part_next(said, &here, &part))
        if (!part_next(path, &at, &name) || !name_fits(part, pattern && here == said.n, name))
            return false;
    *ret_end = at;
    return true;
}

size_t path_git_directory(const char *path)
{
    const char *git = strstr(path, "/.git/"), *tree = strstr(path, ".git/worktrees/");
    if (git)
        return (size_t)(git - path) + sizeof "/.git" - 1;
    return tree ? (size_t)(tree - path) + sizeof ".git" - 1 : 0;
}

const char *const path_foreign_names[] = {"node_modules", "vendor", "site-packages", NULL};

bool path_is_foreign(struct str path, bool inside)
{
    size_t at = 0;
    struct str part;
    while (part_next(path, &at, &part))
        for (size_t i = 0; (inside || at < path.n) && path_foreign_names[i]; i++)
            if (str_is(part, path_foreign_names[i]))
                return true;
    return false;
}

bool path_climbs_again(struct str text)
{
    bool named = false;
    while (text.n) {
        const struct str name = str_until(&text, '/');
        if (named && str_is(name, ".."))
            return true;
        named = named || (name.n && !str_is(name, ".") && !str_is(name, ".."));
    }
    return false;
}

/* ---- links into /proc ---- */

enum proc_stage {
    ELSEWHERE,
    IN_PROC,
    IN_DEV,
    IN_OWN,
    IN_OTHER,
    IN_TASKS,
    IN_OWN_FILES,
    IN_OTHERS_FILES,
    AT_STREAM,
    BEYOND
};

/* Whether the name is a word of the list, each between spaces. */
static bool is_listed_word(struct str name, const char *list)
{
    const char *at = name.n && !memchr(name.p, ' ', name.n) ? memmem(list, strlen(list), name.p, name.n) : NULL;
    for (; at; at = memmem(at + 1, strlen(at + 1), name.p, name.n))
        if (at[-1] == ' ' && at[name.n] == ' ')
            return true;
    return false;
}

static bool is_decimal(struct str name)
{
    size_t digits = 0;
    while (digits < name.n && name.p[digits] >= '0' && name.p[digits] <= '9')
        digits++;
    return name.n && digits == name.n;
}

/* Where `name` leads from `at`. `top`: that may be the root. Process 1 of the reader is none of a box. */
static enum proc_stage proc_step(enum proc_stage at, bool top, struct str name)
{
    switch (at) {
    case ELSEWHERE:
        return top && str_is(name, "proc") ? IN_PROC : top && str_is(name, "dev") ? IN_DEV : ELSEWHERE;
    case IN_PROC:
        return is_listed_word(name, " self thread-self 1 ") ? IN_OWN : is_decimal(name) ? IN_OTHER : ELSEWHERE;
    case IN_DEV:
        return str_is(name, "fd")                              ? IN_OWN_FILES
               : is_listed_word(name, " stdin stdout stderr ") ? AT_STREAM
                                                               : ELSEWHERE;
    case IN_OWN:
    case IN_OTHER:
        return is_listed_word(name, " root cwd ") ? BEYOND
               : str_is(name, "task")             ? IN_TASKS
               : !str_is(name, "fd")              ? ELSEWHERE
               : at == IN_OWN                     ? IN_OWN_FILES
                                                  : IN_OTHERS_FILES;
    case IN_TASKS:
        return is_decimal(name) ? IN_OTHER : ELSEWHERE;
    case IN_OWN_FILES:
        return is_listed_word(name, " 0 1 2 ") ? AT_STREAM : is_decimal(name) ? BEYOND : ELSEWHERE;
    case IN_OTHERS_FILES:
        return is_decimal(name) ? BEYOND : ELSEWHERE;
    default: /* more behind a stream */
        return BEYOND;
    }
}

bool path_into_process(struct str text)
{
    unsigned char stages[PATH_MAX / 2 + 1]; /* after so many components */
    const bool absolute = str_starts(text, STR("/"));
    bool dots = false;
    if (text.n > PATH_MAX)
        return true;
    stages[0] = ELSEWHERE;
    for (size_t down = 0; text.n;) {
        const struct str name = str_until(&text, '/');
        const enum proc_stage at = stages[down];
        if (name.n == 0 || str_is(name, "."))
            continue;
        const enum proc_stage next = str_is(name, "..") ? (at == AT_STREAM ? BEYOND : ELSEWHERE)
                                                        : proc_step(at, dots || (absolute && down == 0), name);
        if (next == BEYOND)
            return true;
        if (str_is(name, "..")) {
            dots = true;
            down -= down > 0;
        } else {
            stages[++down] = (unsigned char)next;
        }
    }
    return false;
}

bool path_is_clean(struct str path)
{
    const char *p = path.p;
    const size_t n = path.n;
    if (n == 0 || p[0] != '/' || (n > 1 && p[n - 1] == '/'))
        return false;
    for (size_t i = 0; i + 1 < n; i++) {
        if (p[i] != '/')
            continue;
        if (p[i + 1] == '/' || (p[i + 1] == '.' && (i + 2 == n || p[i + 2] == '/' ||
                                                    (p[i + 2] == '.' && (i + 3 == n || p[i + 3] == '/')))))
            return false;
    }
    return true;
}
