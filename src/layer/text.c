/*
 * Reads and writes the line files of apply, and replaces them in one synced step. Journal, ledger and records have
 * this form: a path is the rest of its line, with its length, because it may hold newlines.
 */
#include "layer/text.h"

#include <inttypes.h>
#include <string.h>

#include "sys/fd.h"
#include "user/replace.h"

#define TEXT_MAX ((size_t)1 << 30)

int text_make(int dir, const char *name, struct str bytes)
{
    own_fd int fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? fd : sys_write_all(fd, bytes.p, bytes.n);
}

int text_write(int dir, const char *name, const struct buf *content)
{
    char beside[64];
    const size_t n = strlen(name);
    if (!buf_ok(content) || n + 5 > sizeof beside)
        return -ENOMEM;
    memcpy(beside, name, n);
    memcpy(beside + n, ".new", 5);
    return file_replace(dir, name, beside, buf_view(content), 0600);
}

int text_read(int dir, const char *name, struct arena *mem, struct str *ret)
{
    const int e = text_read_most(dir, name, TEXT_MAX, mem, ret);
    return e == -EFBIG ? -EBADMSG : e;
}

int text_read_most(int dir, const char *name, size_t most, struct arena *mem, struct str *ret)
{
    struct layer_object o;
    own_fd int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    int e = fd < 0 ? fd : object_look(fd, "", &o);
    if (e < 0)
        return e;
    if (!object_is(&o, S_IFREG) || o.size > most)
        return object_is(&o, S_IFREG) ? -EFBIG : -EBADMSG;
    char *room = arena_zero(mem, o.size + 1);
    size_t n = 0;
    while (room && n < o.size) {
        long k = sys_pread(fd, room + n, o.size - n, n);
        if (k <= 0)
            return k < 0 ? (int)k : -EBADMSG;
        n += (size_t)k;
    }
    *ret = (struct str){room, n};
    return room ? 0 : -ENOMEM;
}

bool text_line(struct str *text, struct str *ret)
{
    if (!text->n)
        return false;
    *ret = str_until(text, '\n');
    return true;
}

bool text_number(struct str *line, int64_t *ret)
{
    struct str word = str_until(line, ' ');
    uint64_t v = 0;
    const bool minus = word.n > 1 && word.p[0] == '-';
    for (size_t i = minus; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9' || i > 20)
            return false;
        v = v * 10 + (uint64_t)(word.p[i] - '0');
    }
    *ret = (int64_t)(minus ? 0 - v : v);
    return word.n > 0;
}

bool text_object(struct str *line, struct layer_object *ret)
{
    int64_t v[10];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        if (!text_number(line, &v[i]))
            return false;
    }
    *ret = (struct layer_object){.mode = (uint32_t)v[0],
                                 .uid = (uint32_t)v[1],
                                 .gid = (uint32_t)v[2],
                                 .links = (uint32_t)v[3],
                                 .device = (uint64_t)v[4],
                                 .ino = (uint64_t)v[5],
                                 .size = (uint64_t)v[6],
                                 .node = (uint64_t)v[7],
                                 .modified = v[8],
                                 .changed = v[9]};
    return true;
}

void text_put_object(struct buf *out, const struct layer_object *o)
{
    buf_printf(out, "%u %u %u %u %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ", o->mode,
               o->uid, o->gid, o->links, (int64_t)o->device, (int64_t)o->ino, (int64_t)o->size, (int64_t)o->node,
               o->modified, o->changed);
}

/* A path may hold newlines. */
const char *text_rest(struct str line, struct arena *mem)
{
    char *path = arena_zero(mem, line.n + 1);
    size_t n = 0;
    for (size_t i = 0; path && i < line.n; i++) {
        const bool escaped = line.p[i] == '\\';
        if (escaped && ++i == line.n)
            return NULL;
        path[n++] = escaped && line.p[i] == 'n' ? '\n' : line.p[i];
    }
    return path;
}

void text_put_rest(struct buf *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '\\' || *path == '\n')
            buf_char(out, '\\');
        buf_char(out, *path == '\n' ? 'n' : *path);
    }
    buf_char(out, '\n');
}
