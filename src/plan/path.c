#include "plan/path.h"

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

char *path_clean(struct arena *mem, const char *path)
{
    char *out = arena_zero(mem, strlen(path) + 2);
    size_t n = 0;
    if (!out)
        return NULL;
    for (const char *p = path; *p;) {
        size_t part = strcspn(p, "/");
        if (part == 2 && p[0] == '.' && p[1] == '.') {
            while (n && out[--n] != '/')
                ;
        } else if (part && !(part == 1 && p[0] == '.')) {
            out[n++] = '/';
            memcpy(out + n, p, part);
            n += part;
        }
        p += part;
        p += *p == '/';
    }
    if (n == 0)
        out[n++] = '/';
    out[n] = 0;
    return out;
}

char *path_moved(struct arena *mem, const char *path, const char *from, const char *to)
{
    return path_join(mem, to, path_rest(path, from));
}
