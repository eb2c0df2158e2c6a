/*
 * Path translation: the first bytes are the table, what follows the byte 0xff is the path. There and back is the same
 * path.
 */
#include <string.h>
#include "fuzz.h"
#include "protocol/paths.h"

static int is_clean(struct str s)
{
    if (s.n == 0 || s.p[0] != '/' || memchr(s.p, 0, s.n))
        return 0;
    for (size_t i = 0; i < s.n; i++) {
        struct str rest = str_skip(s, i + 1);
        if (s.p[i] == '/' && (str_starts(rest, STR("/")) || str_is(rest, ".") || str_is(rest, "..") ||
                              str_starts(rest, STR("./")) || str_starts(rest, STR("../"))))
            return 0;
    }
    return 1;
}

/* Hosts and places of a real table are clean; what else was loaded must only not crash. */
static int sound(const struct path_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct path_mount *m = &t->mounts[i];
        if (!is_clean(m->box) || (m->kind != PATH_PRIVATE && !is_clean(m->host)) ||
            (m->box.n > 1 && m->box.p[m->box.n - 1] == '/') || (m->host.n > 1 && m->host.p[m->host.n - 1] == '/'))
            return 0;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena *mem = arena_new(1 << 20);
    struct path_table t = {0};
    const uint8_t *mark = memchr(data, 0xff, size);
    size_t n = mark ? (size_t)(mark - data) : size;
    struct str path = mark ? (struct str){(const char *)mark + 1, size - n - 1} : STR("/a/b");
    if (paths_load(&t, (const char *)data, n, mem) < 0)
        return 0;
    for (int way = PATH_TO_BOX; way <= PATH_TO_HOST; way++) {
        struct buf once = BUF(1 << 20), back = BUF(1 << 20), value = BUF(1 << 20);
        int r = paths_translate(&t, (enum path_way)way, path, &once);
        MUST(r == 1 || str_eq(buf_view(&once), path));
        if (r == 1 && sound(&t)) {
            MUST(is_clean(buf_view(&once)));
            /* What the box has of the host's leads back to it. */
            if (way == PATH_TO_BOX) {
                struct buf cleaned = BUF(1 << 20);
                MUST(paths_translate(&t, PATH_TO_HOST, buf_view(&once), &back) == 1);
                struct path_mount root = {STR("/"), STR("/"), PATH_WRITABLE};
                struct path_table same = {&root, 1};
                MUST(paths_translate(&same, PATH_TO_HOST, path, &cleaned) == 1);
                struct str a = buf_view(&back), b = buf_view(&cleaned);
                a.n -= a.n > 1 && a.p[a.n - 1] == '/';
                b.n -= b.n > 1 && b.p[b.n - 1] == '/';
                MUST(str_eq(a, b));
                buf_free(&cleaned);
            }
        }
        if (!paths_value(&t, (enum path_way)way, path, &value))
            MUST(str_eq(buf_view(&value), path));
        buf_free(&once);
        buf_free(&back);
        buf_free(&value);
    }
    return 0;
}
