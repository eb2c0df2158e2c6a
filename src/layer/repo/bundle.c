/*
 * What the git in a box is given: an archive (ustar) with the layer's new objects, both indexes, and lists of hashes. And what it gives
 * back: parts with a name and a size, one after the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"

#define CALMLY    (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define BLOCK     512
#define COPY_ROOM (64u << 10)
#define TAR_MAX   ((uint64_t)8 << 30) /* what eleven octal digits hold */
#define PARTS_MAX 512
#define INDEX_MAX ((size_t)1 << 29)

static int write_whole(int fd, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const long k = sys_write(fd, (const char *)bytes + done, n - done);
        if (k < 0)
            return (int)k;
        done += (size_t)k;
    }
    return 0;
}

static int write_head(int fd, const char *name, uint64_t size)
{
    unsigned char head[BLOCK] = {0};
    unsigned sum = 0;
    if (strlen(name) > 99 || size >= TAR_MAX)
        return -EFBIG;
    memcpy(head, name, strlen(name));
    memcpy(head + 100, "0000600", 8);
    memcpy(head + 108, "0000000", 8);
    memcpy(head + 116, "0000000", 8);
    snprintf((char *)head + 124, 12, "%011llo", (unsigned long long)size);
    memcpy(head + 136, "00000000000", 12);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar", 6);
    memcpy(head + 263, "00", 2);
    for (size_t i = 0; i < BLOCK; i++)
        sum += head[i];
    snprintf((char *)head + 148, 8, "%06o", sum);
    return write_whole(fd, head, BLOCK);
}

static int write_padding(int fd, uint64_t size)
{
    static const char zeros[BLOCK];
    return size % BLOCK ? write_whole(fd, zeros, BLOCK - size % BLOCK) : 0;
}

int bundle_bytes(int fd, const char *name, struct str content)
{
    int e = write_head(fd, name, content.n);
    if (e == 0)
        e = write_whole(fd, content.p, content.n);
    return e < 0 ? e : write_padding(fd, content.n);
}

int bundle_file(int fd, const char *name, int from, uint64_t size)
{
    char *room = malloc(COPY_ROOM);
    int e = room ? write_head(fd, name, size) : -ENOMEM;
    for (uint64_t at = 0; e == 0 && at < size;) {
        const long n = sys_pread(from, room, size - at < COPY_ROOM ? size - at : COPY_ROOM, at);
        e = n < 0 ? (int)n : n == 0 ? -ESTALE : write_whole(fd, room, (size_t)n);
        at += n > 0 ? (uint64_t)n : 0;
    }
    free(room);
    return e < 0 ? e : write_padding(fd, size);
}

int bundle_end(int fd)
{
    static const char zeros[2 * BLOCK];
    return write_whole(fd, zeros, sizeof zeros);
}

/* ---- the question ---- */

static bool is_digits(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdef") == n && text[n] == 0;
}

/* The name that a file of objects has in the archive; packs without their index, which git makes anew. False: it is none. */
static bool object_name(const char *path, size_t digits, char room[160])
{
    const char *rest = path + sizeof REPO_DIR "/objects/" - 1;
    if (!repo_is_top(path) || !repo_is_object(path) || strlen(path) <= sizeof REPO_DIR "/objects/")
        return false;
    if (strncmp(rest, "pack/pack-", 10) == 0) {
        char hash[REPO_HASH_MAX + 1];
        const size_t n = strlen(rest + 10);
        if (n < 5 || n - 5 > REPO_HASH_MAX || strcmp(rest + 10 + n - 5, ".pack") != 0)
            return false;
        memcpy(hash, rest + 10, n - 5);
        hash[n - 5] = 0;
        if (!is_digits(hash, n - 5))
            return false;
    } else if (strlen(rest) != digits + 1 || rest[2] != '/' || strspn(rest, "0123456789abcdef") != 2 ||
               !is_digits(rest + 3, digits - 2)) {
        return false;
    }
    snprintf(room, 160, "a.git/objects/%s", rest);
    return true;
}

static int put_objects(const struct layer_trees *t, const struct changes *all, const struct repo *r, int fd)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < all->n; i++) {
        const struct change *c = &all->all[i];
        char name[160];
        const char *last;
        struct layer_object o;
        /* An object that the workspace has, too, is never taken from the layer. */
        if (c->kind != CHANGE_ADDED || !object_is(&c->new, S_IFREG) || !object_name(c->path, r->digits, name))
            continue;
        own_fd int dir = repo_parent(t, t->upper, c->path, &last);
        own_fd int from = dir < 0 ? dir : object_open(dir, last, S_IFREG);
        e = from < 0 ? from : object_look(from, "", &o);
        if (e == 0)
            e = bundle_file(fd, name, from, o.size);
    }
    return e;
}

/* One directory of objects of a layer below: "pack", or two digits. */
static int put_below(int upper, const char *directory, size_t digits, int fd)
{
    char room[4096] __attribute__((aligned(8))), path[LAYER_PATH_MAX], name[160];
    struct layer_object o;
    own_fd int dir = sys_openat2(upper, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, CALMLY);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    int e = dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP ? 0 : dir < 0 ? dir : 0;
    for (const struct sys_dirent *d; e == 0 && dir >= 0 && (d = sys_next_entry(&entries));) {
        const int n = snprintf(path, sizeof path, "%s/%s", directory, d->name);
        if (n < 0 || n >= (int)sizeof path || !object_name(path, digits, name))
            continue;
        own_fd int from = object_open(dir, d->name, S_IFREG);
        if (from == -ENOENT || from == -ESTALE)
            continue;
        e = from < 0 ? from : object_look(from, "", &o);
        if (e == 0)
            e = bundle_file(fd, name, from, o.size);
    }
    return e < 0 ? e : entries.no;
}

/* What the box found in the layers below, where that has not landed: its commits stand on them. */
static int put_objects_below(const struct layer_trees *t, size_t digits, int fd)
{
    char path[] = REPO_DIR "/objects/00";
    int e = 0;
    for (size_t i = 0; t->viewed && e == 0 && i < t->n_below; i++) {
        e = put_below(t->below[i].upper, REPO_DIR "/objects/pack", digits, fd);
        for (unsigned k = 0; e == 0 && k < 256; k++) {
            path[sizeof path - 3] = "0123456789abcdef"[k >> 4];
            path[sizeof path - 2] = "0123456789abcdef"[k & 15];
            e = put_below(t->below[i].upper, path, digits, fd);
        }
    }
    return e;
}

/* A file of either side, if it is there. */
static int put_file(const struct layer_trees *t, int top, const char *path, const char *name, int fd)
{
    const char *last;
    struct layer_object o;
    own_fd int dir = repo_parent(t, top, path, &last);
    own_fd int from = dir < 0 ? dir : object_open_as_is(dir, last, S_IFREG);
    int e = from < 0 ? from : object_look(from, "", &o);
    if (e == -ENOENT || e == -ESTALE)
        return 0;
    if (e == 0 && o.size > INDEX_MAX)
        e = -EFBIG;
    return e < 0 ? e : bundle_file(fd, name, from, o.size);
}

/* Hashes that follow the first blank of a log's lines, of lines that the workspace's log does not have. */
static void put_logged(const struct repo *r, const struct repo_log *log, struct buf *out)
{
    struct str text = log->text, line;
    if (str_starts(text, log->old))
        text = str_skip(text, log->old.n);
    while (text_line(&text, &line)) {
        (void)str_until(&line, ' ');
        const struct str hash = str_until(&line, ' ');
        if (repo_is_hash(hash, r->digits)) {
            buf_str(out, hash);
            buf_char(out, '\n');
        }
    }
}

static void put_hash(const struct repo *r, const char *text, struct buf *out)
{
    if (text && repo_is_hash(str_of(text), r->digits))
        buf_printf(out, "%s\n", text);
}

int repo_ask(const struct layer_trees *t, const struct changes *all, const struct repo *r, int fd, struct err *e)
{
    auto_buf struct buf tips = BUF(LAYER_READ_MAX), logged = BUF(LAYER_READ_MAX), hosts = BUF(LAYER_READ_MAX);
    auto_buf struct buf heads = BUF(1 << 20);
    for (size_t i = 0; i < r->n; i++)
        if (!r->refs[i].why)
            put_hash(r, r->refs[i].new, &tips);
    put_hash(r, r->head.name ? r->head.new : NULL, &tips);
    for (size_t i = 0; i < r->n_logs; i++)
        if (!r->logs[i].why)
            put_logged(r, &r->logs[i], &logged);
    for (size_t i = 0; i < r->n_hosts; i++)
        buf_printf(&hosts, "%s\n", r->hosts[i]);
    for (size_t i = 0; i < r->n; i++)
        if (!r->refs[i].why && r->refs[i].new &&strcmp(r->refs[i].name, "refs/stash") != 0 &&
            repo_is_hash(str_of(r->refs[i].new), r->digits))
            buf_printf(&heads, "%s %s\n", r->refs[i].new, r->refs[i].name);
    if (!buf_ok(&tips) || !buf_ok(&logged) || !buf_ok(&hosts) || !buf_ok(&heads))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its repository", t->id);
    int no = put_objects(t, all, r, fd);
    if (no == 0)
        no = put_objects_below(t, r->digits, fd);
    const struct {
        const char *name;
        struct str text;
    } texts[] = {{"in/tips", buf_view(&tips)},   {"in/logged", buf_view(&logged)}, {"in/hosts", buf_view(&hosts)},
                 {"in/heads", buf_view(&heads)}, {"in/was", str_of(r->head_old)},  {"in/head", str_of(r->head_new)}};
    for (size_t i = 0; no == 0 && i < sizeof texts / sizeof *texts; i++)
        no = bundle_bytes(fd, texts[i].name, texts[i].text);
    if (no == 0 && t->viewed)
        no = bundle_bytes(fd, "in/below", str_of("y"));
    if (no == 0)
        no = put_file(t, t->workspace, REPO_DIR "/shallow", "in/shallow", fd);
    if (no == 0 && r->index)
        no = put_file(t, t->upper, REPO_DIR "/index", "in/layer-index", fd);
    if (no == 0 && r->index)
        no = put_file(t, t->workspace, REPO_DIR "/index", "in/host-index", fd);
    if (no == 0 && r->index && r->base)
        no = put_file(t, t->store, REPO_BASE, "in/base-index", fd);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot read its repository", t->id) : 0;
}

/* ---- the answer ---- */

bool bundle_find(int answer, const char *name, struct bundle_part *ret)
{
    uint64_t at = 0;
    bool found = false;
    for (unsigned i = 0; i < PARTS_MAX; i++) {
        char line[128];
        const long n = sys_pread(answer, line, sizeof line - 1, at);
        line[n > 0 ? n : 0] = 0;
        char *end = strchr(line, '\n'), *size_end;
        if (!end)
            return false;
        *end = 0;
        if (strcmp(line, "E") == 0) /* without the end something may be missing */
            return found;
        char *size = line[0] == 'F' && line[1] == ' ' ? strchr(line + 2, ' ') : NULL;
        if (!size)
            return false;
        *size++ = 0;
        const unsigned long long bytes = strtoull(size, &size_end, 10);
        if (*size < '0' || *size > '9' || *size_end || bytes > INT64_MAX / 2)
            return false;
        at += (uint64_t)(end - line) + 1;
        if (strcmp(line + 2, name) == 0) {
            *ret = (struct bundle_part){.at = at, .size = bytes};
            found = true;
        }
        at += bytes;
    }
    return false;
}

bool bundle_text(int answer, const char *name, size_t max, struct arena *mem, struct str *ret)
{
    struct bundle_part part;
    if (!bundle_find(answer, name, &part) || part.size > max)
        return false;
    char *room = arena_zero(mem, part.size + 1);
    for (size_t n = 0; room && n < part.size;) {
        const long k = sys_pread(answer, room + n, part.size - n, part.at + n);
        if (k <= 0)
            return false;
        n += (size_t)k;
    }
    *ret = (struct str){room, part.size};
    return room != NULL;
}
