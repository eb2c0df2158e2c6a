/*
 * The file API over directories: listing, removing, copying. A tree may change while it is walked, and be deeper than
 * a path is long; every step is a call of files.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/json.h"
#include "supervisor/files/files.h"
#include "supervisor/files/host.h"
#include "survey/written.h"
#include "sys/fd.h"

enum { DEEP = 200, ENTRIES_MAX = 1 << 20 };

/* ---- names of a directory ---- */

struct names {
    char **p;
    size_t n;
};

static void names_free(struct names *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->p[i]);
    free(all->p);
    *all = (struct names){0};
}
#define auto_names __attribute__((cleanup(names_free)))

/* All names but "." and "..", sorted. */
static int names_of(int dir, struct names *ret)
{
    _Alignas(struct sys_dirent) char records[16 << 10];
    size_t room = 0;
    for (long got; (got = sys_getdents64(dir, records, sizeof records)) != 0;) {
        if (got < 0)
            return (int)got;
        for (long at = 0; at < got;) {
            const struct sys_dirent *r = (const void *)(records + at);
            at += r->reclen;
            if (strcmp(r->name, ".") == 0 || strcmp(r->name, "..") == 0)
                continue;
            if (ret->n == room) {
                char **grown =
                    room < ENTRIES_MAX ? realloc(ret->p, (room = room ? room * 2 : 64) * sizeof *grown) : NULL;
                if (!grown)
                    return room >= ENTRIES_MAX ? -EFBIG : -ENOMEM;
                ret->p = grown;
            }
            if (!(ret->p[ret->n] = strdup(r->name)))
                return -ENOMEM;
            ret->n++;
        }
    }
    if (ret->n)
        qsort(ret->p, ret->n, sizeof *ret->p, text_order);
    return 0;
}

static int joined(char to[FILE_PATH], const char *dir, const char *name)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return snprintf(to, FILE_PATH, "%.*s/%s", n == 1 && dir[0] == '/' ? 0 : (int)n, dir, name) < FILE_PATH
               ? 0
               : -ENAMETOOLONG;
}

static const char *base_name(const char *path, char room[256])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    snprintf(room, 256, "%.*s", (int)(end - from), path + from);
    return room;
}

static bool is_name(const char *name)
{
    return *name && strcmp(name, "/") != 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Opens what stands at `path` in the box, a directory among others; a link at the end is followed or not. */
static int open_in_box(int files, const char *path, uint32_t flags, const char *what, int *ret, struct err *e)
{
    struct file_answer a;
    int no = file_call(files, &(struct file_ask){.op = FILE_OPEN, .path = path, .flags = flags}, &a, ret, e);
    return file_said(&a, no, what, path, e);
}

/* ---- listing ---- */

static const char *mode_type(unsigned mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "other";
}

static void put_entry(struct json *j, int dir, const char *name, const char *shown)
{
    struct sys_stat st;
    char text[FILE_PATH];
    if (sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, SYS_STAT_BASIC, &st) < 0)
        return; /* gone meanwhile */
    json_object(j, NULL);
    json_text(j, "name", shown);
    if (!utf8_valid(str_of(shown)))
        json_base64(j, "name_base64", str_of(shown));
    json_text(j, "type", mode_type(st.mode));
    json_uint(j, "size", st.size);
    snprintf(text, sizeof text, "%04o", st.mode & 07777u);
    json_text(j, "mode", text);
    time_t seconds = (time_t)st.modified.seconds;
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        text[0] = 0;
    json_text(j, "modified", text);
    long n = S_ISLNK(st.mode) ? sys_readlinkat(dir, name, text, sizeof text) : -1;
    if (n >= 0)
        json_str(j, "target", (struct str){text, (size_t)n});
    else
        json_null(j, "target");
    json_object_end(j);
}

int file_list(int files, const char *path, struct json *j, struct err *e)
{
    struct sys_stat st;
    char room[256];
    auto_fd int dir = -1;
    auto_names struct names all = {0};
    int no = open_in_box(files, path, O_RDONLY, "list", &dir, e);
    if (no < 0)
        return no;
    no = sys_stat_at(dir, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0 && S_ISDIR(st.mode))
        no = names_of(dir, &all);
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot list %s", path);
    json_object(j, NULL);
    json_array(j, "entries");
    if (!S_ISDIR(st.mode))
        put_entry(j, dir, "", base_name(path, room));
    for (size_t i = 0; i < all.n; i++)
        put_entry(j, dir, all.p[i], all.p[i]);
    json_array_end(j);
    json_object_end(j);
    return 0;
}

/* ---- removing ---- */

static int remove_entry(int files, const char *path, bool directory, struct err *e)
{
    struct file_answer a;
    int no = file_call(
        files, &(struct file_ask){.op = FILE_REMOVE, .path = path, .flags = directory ? AT_REMOVEDIR : 0}, &a, NULL, e);
    return no == -EISDIR || no == -ENOTEMPTY || no == -ENOENT ? no : file_said(&a, no, "remove", path, e);
}

static int remove_tree(int files, const char *path, unsigned depth, struct err *e)
{
    int no = remove_entry(files, path, false, e);
    if (no != -EISDIR)
        return no == -ENOENT ? 0 : no;
    if (depth == 0)
        return err_sys(e, ERR_SYSTEM, ELOOP, "cannot remove %s: directories too deep", path);
    auto_fd int dir = -1;
    auto_names struct names all = {0};
    no = open_in_box(files, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, "remove", &dir, e);
    if (no == 0) {
        no = names_of(dir, &all);
        if (no < 0)
            return err_sys(e, ERR_SYSTEM, -no, "cannot remove %s", path);
    }
    dir = close_fd(dir);
    for (size_t i = 0; no == 0 && i < all.n; i++) {
        char below[FILE_PATH];
        no = joined(below, path, all.p[i]);
        no = no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot remove %s", path) : remove_tree(files, below, depth - 1, e);
    }
    if (no == 0)
        no = remove_entry(files, path, true, e);
    if (no == -ENOTEMPTY) /* somebody in the box goes on making files */
        return err_sys(e, ERR_SYSTEM, ENOTEMPTY, "cannot remove %s", path);
    return no == -ENOENT ? 0 : no;
}

int file_remove(int files, const char *path, bool recursive, struct err *e)
{
    int no = recursive ? remove_tree(files, path, DEEP, e) : remove_entry(files, path, false, e);
    if (no == -EISDIR && !recursive)
        no = remove_entry(files, path, true, e);
    return no == -ENOENT || no == -ENOTEMPTY || no == -EISDIR ? err_sys(e, ERR_SYSTEM, -no, "cannot remove %s", path)
                                                              : no;
}

/* ---- copying ---- */

struct tree_copy {
    int files;
    struct file_copied *done;
    char *bytes; /* CHUNK */
    struct err *e;
    /* What the box may not read, while the rest is copied: how many, the first one's error, and the sentences of some. */
    unsigned kept_back;
    int no;
    enum err_kind kind;
    char names[600];
};

/* Whether the copy goes on without this: rules and permissions forbid it, and nothing is wrong with the copy. */
static bool keep_back(struct tree_copy *c, int no)
{
    const size_t n = strlen(c->names);
    if (!err_is_refused(no))
        return false;
    if (c->kept_back++ == 0) {
        c->no = no;
        c->kind = c->e->kind;
    }
    if (n + strlen(c->e->text) + 3 < sizeof c->names)
        snprintf(c->names + n, sizeof c->names - n, "%s%s", n ? "; " : "", c->e->text);
    *c->e = (struct err){0};
    return true;
}

static int say_kept_back(const struct tree_copy *c, const char *path)
{
    if (!c->kept_back)
        return 0;
    (void)err_say(c->e, c->kind, "copied %s without %u of its entries: %s", path, c->kept_back,
                  c->names[0] ? c->names : "their names are too long to list");
    return c->no;
}

static int pump_in(struct tree_copy *c, int from, const char *to, unsigned mode)
{
    struct file_writer w;
    const struct file_how how = {.mode = mode & 0777};
    int no = file_begin(&w, c->files, to, &how, c->e);
    if (no < 0)
        return no;
    for (long n = 1; no == 0 && n > 0;) {
        n = sys_read(from, c->bytes, FILE_CHUNK);
        if (n == -EINTR) {
            n = 1;
            continue;
        }
        no = n < 0   ? err_sys(c->e, ERR_SYSTEM, (int)-n, "cannot read for %s", to)
             : n > 0 ? file_put(&w, c->bytes, (size_t)n, c->e)
                     : 0;
        c->done->bytes += n > 0 ? (uint64_t)n : 0;
    }
    if (no < 0) {
        file_drop(&w);
        return no;
    }
    c->done->files++;
    return file_end(&w, &how, c->e);
}

static int link_in(struct tree_copy *c, int dir, const char *name, const char *to)
{
    char text[FILE_PATH];
    struct file_answer a;
    long n = sys_readlinkat(dir, name, text, sizeof text - 1);
    if (n < 0)
        return err_sys(c->e, ERR_SYSTEM, (int)-n, "cannot copy %s", to);
    text[n] = 0;
    const struct file_ask ask = {.op = FILE_MAKE_LINK, .path = to, .other = text};
    int no = file_call(c->files, &ask, &a, NULL, c->e);
    if (no == -EEXIST) {
        no = file_remove(c->files, to, false, c->e);
        if (no < 0)
            return no;
        no = file_call(c->files, &ask, &a, NULL, c->e);
    }
    c->done->files += no == 0;
    return file_said(&a, no, "link", to, c->e);
}

static int make_dir_in(struct tree_copy *c, const char *to, unsigned mode)
{
    struct file_answer a;
    int no =
        file_call(c->files, &(struct file_ask){.op = FILE_MAKE_DIR, .path = to, .mode = mode & 0777}, &a, NULL, c->e);
    if (no == -EEXIST || no == -EROFS) { /* a directory that is there may be filled all the same */
        no = file_call(c->files, &(struct file_ask){.op = FILE_WHERE, .path = to}, &a, NULL, c->e);
        if (no == 0 && !S_ISDIR(a.mode))
            no = a.mode ? -ENOTDIR : -EROFS;
    }
    return file_said(&a, no, "make the directory", to, c->e);
}

/* What is neither file, directory nor link: left out of a tree, and refused if it was named itself. */
static int skip_in(struct tree_copy *c, const char *name, unsigned depth)
{
    c->done->left_out++;
    return depth == DEEP ? err_say(c->e, ERR_REFUSED, "copy %s: it is neither a file, directory nor link", name) : 0;
}

/* `name` in the host's `dir` to `to` in the box. */
static int tree_in(struct tree_copy *c, int dir, const char *name, const char *to, unsigned depth)
{
    struct sys_stat st;
    const char *shown = name;
    if (depth == 0)
        return err_sys(c->e, ERR_SYSTEM, ELOOP, "cannot copy %s: directories too deep", to);
    int no = sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no < 0)
        return err_sys(c->e, ERR_SYSTEM, -no, "cannot copy %s", shown);
    if (S_ISLNK(st.mode))
        return link_in(c, dir, name, to);
    if (!S_ISREG(st.mode) && !S_ISDIR(st.mode))
        return skip_in(c, name, depth);
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW, 0);
    struct sys_stat now;
    if (fd < 0 || (no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &now)) < 0)
        return err_sys(c->e, ERR_SYSTEM, fd < 0 ? -fd : -no, "cannot copy %s", shown);
    if (S_ISREG(now.mode))
        return pump_in(c, fd, to, now.mode);
    if (!S_ISDIR(now.mode))
        return skip_in(c, name, depth);
    auto_names struct names all = {0};
    no = names_of(fd, &all);
    if (no < 0)
        return err_sys(c->e, ERR_SYSTEM, -no, "cannot copy %s", shown);
    no = make_dir_in(c, to, now.mode | 0700);
    for (size_t i = 0; no == 0 && i < all.n; i++) {
        char below[FILE_PATH];
        no = joined(below, to, all.p[i]);
        no = no < 0 ? err_sys(c->e, ERR_SYSTEM, -no, "cannot copy %s", to) : tree_in(c, fd, all.p[i], below, depth - 1);
    }
    return no;
}

static int copy_begin(struct tree_copy *c)
{
    *c->done = (struct file_copied){0};
    c->bytes = malloc(FILE_CHUNK);
    return c->bytes ? 0 : err_sys(c->e, ERR_SYSTEM, ENOMEM, "cannot copy");
}

static int refuse_planted(const char *path, const char *what, struct err *e)
{
    return err_say(
        e, ERR_REFUSED,
        "%s %s: the path goes through a symbolic link in a place that boxes can write; use the path it leads to", what,
        path);
}

/* The place of the host that was named, over no link that the box may have made. */
static int find_here(int files, const char *path, const char *what, struct host_place *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct path_table mounts;
    int no = mem ? file_mounts(files, &mounts, mem, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "%s %s", what, path);
    if (no < 0)
        return no;
    char memory[PATH_MAX];
    no = host_find(&mounts, written_place(memory), path, ret);
    if (no < 0)
        return ret->planted ? refuse_planted(path, what, e) : err_sys(e, ERR_SYSTEM, -no, "%s %s", what, path);
    return 0;
}

int file_copy_in(int files, const char *host, const char *box, struct file_copied *ret, struct err *e)
{
    struct tree_copy c = {.files = files, .done = ret, .e = e};
    struct host_place from = {.dir = -1};
    struct file_answer a;
    char to[FILE_PATH], room[256];
    int no = file_call(files, &(struct file_ask){.op = FILE_WHERE, .path = box}, &a, NULL, e);
    if (no < 0)
        return file_said(&a, no, "copy to", box, e);
    bool into = S_ISDIR(a.mode) && is_name(base_name(host, room));
    no = into ? joined(to, box, room) : snprintf(to, sizeof to, "%s", box) < FILE_PATH ? 0 : -ENAMETOOLONG;
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot copy to %s", box);
    no = find_here(files, host, "copy", &from, e);
    if (no < 0)
        return no;
    auto_fd int dir = from.dir;
    if (from.planted)
        return refuse_planted(host, "copy", e);
    no = copy_begin(&c);
    if (no == 0)
        no = tree_in(&c, dir, from.name, to, DEEP);
    free(c.bytes);
    return no;
}

/* What is between two places of a file. *ret_at: where it ended. */
static int bytes_out(struct tree_copy *c, int from, int to, uint64_t at, uint64_t end, uint64_t *ret_at)
{
    int no = 0;
    for (long n = 1; no == 0 && n > 0 && at < end;) {
        n = sys_pread(from, c->bytes, end - at < FILE_CHUNK ? (size_t)(end - at) : FILE_CHUNK, at);
        if (n == -EINTR) {
            n = 1;
            continue;
        }
        no = n < 0 ? (int)n : 0;
        for (long done = 0; no == 0 && done < n;) {
            const long wrote = sys_pwrite(to, c->bytes + done, (size_t)(n - done), at + (uint64_t)done);
            no = wrote < 0 && wrote != -EINTR ? (int)wrote : 0;
            done += wrote > 0 ? wrote : 0;
        }
        at += n > 0 ? (uint64_t)n : 0;
    }
    *ret_at = at;
    return no;
}

/*
 * The content as it was long at the beginning: the box may write on, or make the file longer all the time. Holes stay holes, because
 * they cost the box nothing, and may be larger than the disk. Files of the kernel may have no size.
 */
static int content_out(struct tree_copy *c, int from, int to, uint64_t size)
{
    enum { UNSIZED = 16 << 20 };
    uint64_t at = 0, ended = 0;
    int no = size ? 0 : bytes_out(c, from, to, 0, UNSIZED, &ended);
    while (no == 0 && at < size) {
        const long data = sys_lseek(from, (int64_t)at, SYS_SEEK_DATA);
        if (data == -ENXIO) { /* nothing but a hole */
            ended = size;
            break;
        }
        const uint64_t begin = data < 0 ? at : (uint64_t)data;
        const long hole = data < 0 ? data : sys_lseek(from, (int64_t)begin, SYS_SEEK_HOLE);
        const uint64_t end = hole > data && (uint64_t)hole < size ? (uint64_t)hole : size;
        if (begin >= size) { /* it begins behind what was the end */
            ended = size;
            break;
        }
        no = bytes_out(c, from, to, begin, end, &ended);
        if (ended < end) /* shorter by now */
            break;
        at = end;
    }
    c->done->bytes += ended;
    return no == 0 ? sys_ftruncate(to, (int64_t)ended) : no;
}

/* A file beside `name` takes its place; a link there is replaced, not followed. */
static int pump_out(struct tree_copy *c, int from, int dir, const char *name, const struct sys_stat *st)
{
    char temp[64];
    snprintf(temp, sizeof temp, ".pinfold-copy-%d", (int)getpid());
    (void)sys_unlinkat(dir, temp, 0); /* of a copy that was ended */
    auto_fd int to = sys_openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                st->mode & 0777); /* never setuid: it would be the host's */
    int no = to < 0 ? to : content_out(c, from, to, st->size);
    if (no == 0)
        no = sys_renameat2(dir, temp, dir, name, 0);
    if (no < 0 && to >= 0)
        (void)sys_unlinkat(dir, temp, 0);
    c->done->files += no == 0;
    return no < 0 ? err_sys(c->e, ERR_SYSTEM, -no, "cannot write %s", name) : 0;
}

static int link_out(struct tree_copy *c, int box_dir, int dir, const char *name, const char *to)
{
    char text[FILE_PATH];
    long n = sys_readlinkat(box_dir, name, text, sizeof text - 1);
    int no = n < 0 ? (int)n : 0;
    text[n > 0 ? n : 0] = 0;
    if (no == 0)
        no = sys_symlinkat(text, dir, to);
    if (no == -EEXIST) {
        no = sys_unlinkat(dir, to, 0);
        if (no == 0)
            no = sys_symlinkat(text, dir, to);
    }
    c->done->files += no == 0;
    return no < 0 ? err_sys(c->e, ERR_SYSTEM, -no, "cannot link %s", to) : 0;
}

/* `box`, open as `fd`, to `name` in the host's `dir`. */
static int tree_out(struct tree_copy *c, int fd, const char *box, int dir, const char *name, unsigned depth)
{
    struct sys_stat st;
    auto_names struct names all = {0};
    int no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0 && S_ISREG(st.mode))
        return pump_out(c, fd, dir, name, &st);
    if (depth == 0)
        no = -ELOOP;
    if (no == 0)
        no = names_of(fd, &all);
    if (no == 0)
        no = sys_mkdirat(dir, name, 0700 | (st.mode & 0777));
    if (no == -EEXIST)
        no = 0;
    auto_fd int made = no < 0 ? no : sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (made < 0)
        return err_sys(c->e, ERR_SYSTEM, -made, "cannot copy %s", box);
    for (size_t i = 0; i < all.n; i++) {
        struct sys_stat one;
        char below[FILE_PATH];
        no = joined(below, box, all.p[i]);
        if (no == 0)
            no = sys_stat_at(fd, all.p[i], AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &one);
        if (no == -ENOENT)
            continue;
        if (no < 0)
            return err_sys(c->e, ERR_SYSTEM, -no, "cannot copy %s/%s", box, all.p[i]);
        if (S_ISLNK(one.mode)) {
            no = link_out(c, fd, made, all.p[i], all.p[i]);
        } else if (!S_ISREG(one.mode) && !S_ISDIR(one.mode)) {
            c->done->left_out++;
        } else {
            /* By its path, through the guard: what is hidden is refused here, too. */
            auto_fd int next = -1;
            no = open_in_box(c->files, below, O_RDONLY | O_NOFOLLOW, "copy", &next, c->e);
            if (no == 0)
                no = tree_out(c, next, below, made, all.p[i], depth - 1);
            else if (keep_back(c, no))
                no = 0;
        }
        if (no < 0)
            return no;
    }
    return 0;
}

/* The host's directory, open, and name that a copy of `box` goes to. A link that the box may have made is replaced, or refused. */
static int target_out(int files, const char *host, const char *box, char name[256], int *ret, struct err *e)
{
    struct host_place to = {.dir = -1};
    struct sys_stat st;
    char base[256];
    int no = find_here(files, host, "copy to", &to, e);
    if (no < 0)
        return no;
    auto_fd int dir = to.dir;
    bool into =
        sys_stat_at(dir, to.name, 0, SYS_STAT_BASIC, &st) == 0 && S_ISDIR(st.mode) && is_name(base_name(box, base));
    if (into && to.planted)
        return refuse_planted(host, "copy to", e);
    if (!into && !is_name(to.name))
        return err_sys(e, ERR_SYSTEM, EISDIR, "cannot copy to %s", host);
    *ret = sys_openat(dir, into ? to.name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    memcpy(name, into ? base : to.name, sizeof base);
    return *ret < 0 ? err_sys(e, ERR_SYSTEM, -*ret, "cannot copy to %s", host) : 0;
}

int file_copy_out(int files, const char *box, const char *host, struct file_copied *ret, struct err *e)
{
    struct tree_copy c = {.files = files, .done = ret, .e = e};
    char name[256];
    auto_fd int from = -1, to = -1;
    int no = target_out(files, host, box, name, &to, e);
    if (no == 0)
        no = open_in_box(files, box, O_RDONLY, "copy", &from, e);
    if (no == 0)
        no = copy_begin(&c);
    if (no == 0)
        no = tree_out(&c, from, box, to, name, DEEP);
    free(c.bytes);
    return no < 0 ? no : say_kept_back(&c, box);
}
