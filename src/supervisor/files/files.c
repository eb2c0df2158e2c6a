/*
 * File calls into a box: requests to the guard's file socket, with temporary files and renames for writing. A reader
 * in the box thus sees the old file or the new one, never a part.
 */
#include "supervisor/files/files.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "sys/fd.h"

enum { ATTRIBUTES = 64 << 10 };

/* ---- one call ---- */

int file_call(int files, const struct file_ask *ask, struct file_answer *ret, int *ret_fd, struct err *e)
{
    struct file_call c = {.op = ask->op, .flags = ask->flags, .mode = ask->mode};
    size_t path = ask->path ? strlen(ask->path) + 1 : 0, other = ask->other ? strlen(ask->other) + 1 : 0;
    if (path > FILE_PATH || other > FILE_PATH)
        return err_sys(e, ERR_POLICY, ENAMETOOLONG, "cannot read a path in the box");
    if (ask->path && ask->path[0] != '/')
        return err_say(e, ERR_POLICY, "%s: a path in the box must begin with \"/\"", ask->path);
    if (path)
        memcpy(c.text, ask->path, path);
    if (other)
        memcpy(c.text + path, ask->other, other);
    c.path_bytes = (uint32_t)path;
    c.other_bytes = (uint32_t)other;
    int fd = -1;
    long n = sys_send_fd(files, &c, offsetof(struct file_call, text) + path + other, -1, 0);
    do
        n = n < 0 ? n : sys_recv_fd(files, ret, sizeof *ret, &fd, 0);
    while (n == -EINTR);
    auto_fd int owned = fd;
    if (n < (long)FILE_HEAD || n != (long)FILE_HEAD + ret->text_bytes + ret->why_bytes)
        return err_sys(e, ERR_SYSTEM, ESTALE, "the box has ended, or has no guard to access its files");
    if (ret_fd)
        *ret_fd = take_fd(&owned);
    return ret->result;
}

void file_put_down(int files)
{
    struct file_answer a;
    struct err e;
    (void)file_call(files, &(struct file_ask){.op = FILE_WHERE, .path = "/"}, &a, NULL, &e);
}

int file_said(const struct file_answer *a, int no, const char *what, const char *path, struct err *e)
{
    if (no == -ESTALE || no >= 0)
        return no;
    if (a->why_bytes && a->text[0])
        (void)err_say(e, ERR_REFUSED, "%s %s: %s (rule %s)", what, path, a->text + a->text_bytes, a->text);
    else if (a->why_bytes)
        (void)err_say(e, ERR_REFUSED, "%s %s: %s", what, path, a->text + a->text_bytes);
    else if (no == -ENODEV)
        return err_say(e, ERR_REFUSED, "%s %s: it is not a file or directory, or it is in /proc", what, path), -ENODEV;
    else
        return err_sys(e, ERR_SYSTEM, -no, "%s %s", what, path);
    return -EACCES;
}

/* ---- reading ---- */

int file_open(int files, const char *path, int *ret_fd, uint64_t *ret_size, struct err *e)
{
    struct file_answer a;
    struct sys_stat st;
    auto_fd int fd = -1;
    int no = file_call(files, &(struct file_ask){.op = FILE_OPEN, .path = path, .flags = O_RDONLY}, &a, &fd, e);
    if (no < 0)
        return file_said(&a, no, "read", path, e);
    no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0 && S_ISDIR(st.mode))
        no = -EISDIR;
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot read %s", path);
    if (ret_size)
        *ret_size = st.size;
    *ret_fd = take_fd(&fd);
    return 0;
}

int file_read(int files, const char *path, uint64_t at, size_t max, char **ret, size_t *ret_n, uint64_t *ret_size,
              struct err *e)
{
    uint64_t size = 0;
    auto_fd int fd = -1;
    int no = file_open(files, path, &fd, &size, e);
    if (no < 0)
        return no;
    size_t room = at >= size ? 1 : size - at < max ? (size_t)(size - at) + 1 : max; /* one more sees that it grew */
    char *bytes = NULL;
    size_t n = 0;
    for (long got = 1; got > 0 && n < max;) {
        char *more = n == room || !bytes
                         ? realloc(bytes, (n == room ? room = room < max / 2 ? room * 2 : max : room) + 1)
                         : bytes;
        if (!more) {
            free(bytes);
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read %s", path);
        }
        bytes = more;
        got = sys_pread(fd, bytes + n, (room < max ? room : max) - n, at + n);
        if (got < 0) {
            free(bytes);
            return err_sys(e, ERR_SYSTEM, (int)-got, "cannot read %s", path);
        }
        n += (size_t)got;
    }
    if (!bytes && !(bytes = malloc(1)))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read %s", path);
    bytes[n] = 0;
    *ret = bytes;
    *ret_n = n;
    if (ret_size)
        *ret_size = size;
    return 0;
}

/* ---- writing ---- */

int file_make_dirs(int files, const char *path, unsigned mode, struct err *e)
{
    struct file_answer a;
    char part[FILE_PATH];
    size_t n = strlen(path);
    if (n >= sizeof part || path[0] != '/')
        return err_say(e, ERR_POLICY, "%.100s: a path in the box must begin with \"/\" and have at most 4095 bytes",
                       path);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0)
            continue;
        part[i] = 0;
        int no = file_call(files, &(struct file_ask){.op = FILE_MAKE_DIR, .path = part, .mode = mode}, &a, NULL, e);
        if (no < 0 && no != -EEXIST && (no != -EROFS || i == n))
            return file_said(&a, no, "make the directory", part, e);
        part[i] = path[i];
    }
    int no = file_call(files, &(struct file_ask){.op = FILE_WHERE, .path = path}, &a, NULL, e);
    if (no == 0 && !S_ISDIR(a.mode))
        no = -ENOTDIR;
    return file_said(&a, no, "make the directory", path, e);
}

static int make_parents(int files, const char *path, struct err *e)
{
    char dir[FILE_PATH];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n == 0 || n >= sizeof dir)
        return 0;
    memcpy(dir, path, n);
    dir[n] = 0;
    return file_make_dirs(files, dir, 0755, e);
}

/* What stands at `path`, all links followed; its canonical path is in the answer. */
static int find_target(int files, const char *path, const struct file_how *how, struct file_answer *a, struct err *e)
{
    const struct file_ask ask = {.op = FILE_WHERE, .path = path};
    int no = file_call(files, &ask, a, NULL, e);
    if (no == -ENOENT && how->parents) {
        no = make_parents(files, path, e);
        if (no < 0)
            return no;
        no = file_call(files, &ask, a, NULL, e);
    }
    if (no < 0)
        return file_said(a, no, "write", path, e);
    if (a->mode && !S_ISREG(a->mode))
        return err_sys(e, ERR_SYSTEM, S_ISDIR(a->mode) ? EISDIR : EINVAL, "cannot write %s", path);
    if (a->writable) /* permissions, a read-only mount; rules speak when the name is replaced */
        return err_sys(e, ERR_SYSTEM, (int)a->writable, "cannot write %s", path);
    return 0;
}

static int make_temp(struct file_writer *w, struct file_answer *a, struct err *e)
{
    uint64_t random;
    const char *slash = strrchr(w->path, '/');
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -EAGAIN;
    int n = snprintf(w->temp, sizeof w->temp, "%.*s/.pinfold-write-%016llx", (int)(slash - w->path), w->path,
                     (unsigned long long)random);
    if (n >= (int)sizeof w->temp) {
        w->temp[0] = 0;
        return -ENAMETOOLONG;
    }
    int no = file_call(
        w->files,
        &(struct file_ask){
            .op = FILE_OPEN, .path = w->temp, .flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, .mode = 0600},
        a, &w->fd, e);
    if (no < 0)
        w->temp[0] = 0;
    return no;
}

static int open_in_place(struct file_writer *w, struct err *e)
{
    struct file_answer a;
    w->must_empty = true;
    w->temp[0] = 0;
    int no = file_call(w->files, &(struct file_ask){.op = FILE_OPEN, .path = w->path, .flags = O_WRONLY | O_NOFOLLOW},
                       &a, &w->fd, e);
    return file_said(&a, no, "write", w->path, e);
}

/* Attributes of the old file, ACLs among them; what only a privileged writer may set is not the box's to keep. */
static int copy_attributes(int from, int to)
{
    char *names = malloc(2 * ATTRIBUTES);
    char *value = names + ATTRIBUTES;
    ssize_t n = names ? flistxattr(from, names, ATTRIBUTES) : -1;
    int no = names ? n < 0 && errno != ENOTSUP ? -errno : 0 : -ENOMEM;
    for (ssize_t at = 0; no == 0 && at < n; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        bool ours = strncmp(name, "user.", 5) == 0 || strncmp(name, "system.posix_acl_", 17) == 0;
        ssize_t k = fgetxattr(from, name, value, ATTRIBUTES);
        if ((k < 0 || fsetxattr(to, name, value, (size_t)k, 0) < 0) && ours)
            no = -errno;
    }
    free(names);
    return no;
}

/* Owner, mode and attributes of what is replaced. */
static int take_after(struct file_writer *w, const struct file_answer *old, struct err *e)
{
    struct file_answer a;
    struct sys_stat st;
    auto_fd int from = -1;
    int no = sys_stat_at(w->fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = file_call(w->files, &(struct file_ask){.op = FILE_OPEN, .path = w->path, .flags = O_RDONLY | O_NOFOLLOW},
                       &a, &from, e);
    if (no == -EACCES) /* a file that may be written but not read: its attributes stay unknown */
        no = 0;
    if (no == 0 && from >= 0) { /* the owner as this process sees it, not as the box's user namespace does */
        struct sys_stat was;
        no = sys_stat_at(from, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &was);
        if (no == 0 && (was.uid != st.uid || was.gid != st.gid) && fchown(w->fd, was.uid, was.gid) < 0)
            no = -errno;
        if (no == 0)
            no = copy_attributes(from, w->fd);
    }
    if (no == 0 && fchmod(w->fd, old->mode & 01777) < 0)
        no = -errno;
    return no;
}

int file_begin(struct file_writer *ret, int files, const char *path, const struct file_how *how, struct err *e)
{
    struct file_answer old, a;
    struct file_writer *w = ret;
    w->files = files;
    w->fd = -1;
    w->must_empty = false;
    w->temp[0] = 0;
    int no = find_target(files, path, how, &old, e);
    if (no < 0)
        return no;
    memcpy(w->path, old.text, old.text_bytes);
    no = make_temp(w, &a, e);
    if (no < 0)
        return old.mode && (no == -EACCES || no == -EPERM || no == -EROFS || no == -ENAMETOOLONG)
                   ? open_in_place(w, e)
                   : file_said(&a, no, "write", path, e);
    if (old.mode)
        no = take_after(w, &old, e);
    else if (fchmod(w->fd, how->mode & 0777) < 0)
        no = -errno;
    if (no < 0) { /* an owner that this process cannot give a file to */
        file_drop(w);
        return old.mode && no != -ESTALE ? open_in_place(w, e) : file_said(&a, no, "write", path, e);
    }
    return 0;
}

static int empty_old(struct file_writer *w)
{
    bool must = w->must_empty;
    w->must_empty = false;
    return must && ftruncate(w->fd, 0) < 0 ? -errno : 0;
}

int file_put(struct file_writer *w, const char *bytes, size_t n, struct err *e)
{
    int no = empty_old(w);
    if (no == 0)
        no = sys_write_all(w->fd, bytes, n);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot write %s", w->path) : 0;
}

/* The name cannot be given to another file (it is a mount): the bytes go into the old one. */
static int pour(struct file_writer *w, struct err *e)
{
    struct file_answer a;
    char *bytes = malloc(FILE_CHUNK);
    auto_fd int from = -1;
    int no = !bytes ? -ENOMEM
                    : file_call(w->files, &(struct file_ask){.op = FILE_OPEN, .path = w->temp, .flags = O_RDONLY}, &a,
                                &from, e);
    struct file_writer old = {.files = w->files, .fd = -1};
    if (no == 0) {
        memcpy(old.path, w->path, sizeof old.path);
        no = open_in_place(&old, e);
    }
    if (no == 0 && ftruncate(old.fd, 0) < 0)
        no = -errno;
    for (long n = 1; no == 0 && n > 0;) {
        n = sys_read(from, bytes, FILE_CHUNK);
        no = n < 0 ? (int)n : sys_write_all(old.fd, bytes, (size_t)n);
    }
    (void)close_fd(old.fd);
    free(bytes);
    return no;
}

int file_end(struct file_writer *w, const struct file_how *how, struct err *e)
{
    struct file_answer a = {0};
    int no = empty_old(w);
    if (no == 0 && how->sync && fsync(w->fd) < 0)
        no = -errno;
    w->fd = close_fd(w->fd);
    if (no == 0 && w->temp[0]) {
        no = file_call(w->files, &(struct file_ask){.op = FILE_RENAME, .path = w->temp, .other = w->path}, &a, NULL, e);
        if (no == -EBUSY || no == -EXDEV)
            no = pour(w, e);
        else if (no == 0)
            w->temp[0] = 0;
    }
    if (no < 0)
        no = file_said(&a, no, "write", w->path, e);
    file_drop(w);
    return no;
}

void file_drop(struct file_writer *w)
{
    struct file_answer a;
    w->fd = close_fd(w->fd);
    if (w->temp[0])
        (void)file_call(w->files, &(struct file_ask){.op = FILE_REMOVE, .path = w->temp}, &a, NULL, NULL);
    w->temp[0] = 0;
}

int file_write(int files, const char *path, const char *bytes, size_t n, const struct file_how *how, struct err *e)
{
    struct file_writer w;
    int no = file_begin(&w, files, path, how, e);
    if (no < 0)
        return no;
    no = file_put(&w, bytes, n, e);
    if (no < 0) {
        file_drop(&w);
        return no;
    }
    return file_end(&w, how, e);
}

/* ---- the table of mounts ---- */

int file_mounts(int files, struct path_table *ret, struct arena *mem, struct err *e)
{
    struct file_answer a;
    struct sys_stat st;
    auto_fd int fd = -1;
    int no = file_call(files, &(struct file_ask){.op = FILE_MOUNTS}, &a, &fd, e);
    if (no == 0)
        no = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    char *bytes = no < 0 ? NULL : arena_zero(mem, (size_t)st.size + 1);
    if (no == 0 && !bytes)
        no = -ENOMEM;
    if (no == 0 && sys_pread(fd, bytes, (size_t)st.size, 0) != (long)st.size)
        no = -EIO;
    if (no == 0)
        no = paths_load(ret, bytes, (size_t)st.size, mem);
    return no == -ESTALE || no == 0 ? no : err_sys(e, ERR_SYSTEM, -no, "cannot read the box's mount table");
}
