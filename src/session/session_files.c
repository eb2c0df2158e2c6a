/*
 * The library's file functions for sessions: read, write, list, copy and translate paths. Each asks the guard of that
 * box, by its socket: the box's own rules hold for them.
 */
#include "session/session_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/report.h"
#include "supervisor/files/files.h"
#include "sys/fd.h"

enum { CHUNK = 256 << 10 };

/* One thing to do on the socket. */
struct doing {
    int (*work)(int files, const struct doing *d, struct err *e);
    const char *path, *other;
    const char *inside; /* where in the box, if that is not `path` */
    const char *bytes;
    size_t n;
    uint64_t at;
    unsigned mode;
    int flag, fd;
    char **ret;
    struct pinfold_report *report;
    size_t *ret_n;
    uint64_t *ret_size;
};

/* A socket of before may be at its end because its worker or the box is; then once more on a new one. */
static int perform(struct pinfold_session *s, const struct doing *d, struct pinfold_error *error)
{
    struct err e = {0};
    const char *path = d->inside ? d->inside : d->path;
    int files, r = d->path ? 0 : err_say(&e, ERR_POLICY, "no path was given");
    for (bool again = false; r == 0; again = true) {
        r = session_files(s, path, again, &files, &e);
        if (r == 0) {
            r = d->work(files, d, &e);
            if (r != -ESTALE)
                session_files_put_down(s, path);
        }
        if (r != -ESTALE || again)
            break;
        r = 0;
    }
    return tell(error, &e, r);
}

/*
 * The same by this machine's name of it, where the box has nothing of that name and a mount shows it under another one: the box of
 * an image has the workspace only there. Not where the first try could have made anything.
 */
static int perform_by_name(struct pinfold_session *s, const struct doing *d, struct pinfold_error *error)
{
    struct pinfold_error second = {0};
    char *name = NULL;
    int r = perform(s, d, error);
    if (r != -ENOENT || d->path[0] != '/' || pinfold_path_to_box(s, d->path, &name, NULL) < 0)
        return r;
    struct doing again = *d;
    again.path = name;
    int no = same(name, d->path) ? r : perform(s, &again, &second);
    free(name);
    if (no != -ENOENT && error)
        *error = second;
    return no;
}

static int give_text(struct buf *b, char **ret, struct err *e)
{
    char *text = buf_ok(b) ? buf_take(b) : NULL;
    buf_free(b);
    if (!text)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the answer");
    *ret = text;
    return 0;
}

/* ---- reading and writing ---- */

static int read_work(int files, const struct doing *d, struct err *e)
{
    return file_read(files, d->path, d->at, d->n, d->ret, d->ret_n, d->ret_size, e);
}

int pinfold_file_read(struct pinfold_session *session, const char *path, uint64_t at, size_t max, char **ret,
                      size_t *ret_n, uint64_t *ret_size, struct pinfold_error *error)
{
    const struct doing d = {read_work, path, .at = at, .n = max, .ret = ret, .ret_n = ret_n, .ret_size = ret_size};
    return perform_by_name(session, &d, error);
}

static int write_work(int files, const struct doing *d, struct err *e)
{
    const struct file_how how = {.mode = d->mode, .parents = d->flag != 0};
    return file_write(files, d->path, d->bytes, d->n, &how, e);
}

int pinfold_file_write(struct pinfold_session *session, const char *path, const char *bytes, size_t n, unsigned mode,
                       int parents, struct pinfold_error *error)
{
    const struct doing d = {write_work, path, .bytes = bytes, .n = n, .mode = mode, .flag = parents};
    return perform_by_name(session, &d, error);
}

static int get_work(int files, const struct doing *d, struct err *e)
{
    auto_fd int fd = -1;
    int r = file_open(files, d->path, &fd, NULL, e);
    char *bytes = r == 0 ? malloc(CHUNK) : NULL;
    if (r == 0 && !bytes)
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read %s", d->path);
    for (long n = 1; r == 0 && n > 0;) {
        n = sys_read(fd, bytes, CHUNK);
        int no = n > 0 ? fd_write_all(d->fd, bytes, (size_t)n) : 0;
        if (n == -EINTR)
            n = 1;
        else if (n < 0)
            r = err_sys(e, ERR_SYSTEM, (int)-n, "cannot read %s", d->path);
        else if (no < 0)
            r = err_sys(e, ERR_SYSTEM, -no, "cannot pass on %s", d->path);
    }
    free(bytes);
    return r;
}

int pinfold_file_get(struct pinfold_session *session, const char *path, int fd, struct pinfold_error *error)
{
    const struct doing d = {get_work, path, .fd = fd};
    return perform_by_name(session, &d, error);
}

static int put_work(int files, const struct doing *d, struct err *e)
{
    const struct file_how how = {.mode = d->mode, .parents = d->flag != 0};
    struct file_writer w;
    int r = file_begin(&w, files, d->path, &how, e);
    if (r < 0)
        return r;
    char *bytes = malloc(CHUNK);
    if (!bytes)
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "cannot write %s", d->path);
    for (ssize_t n = 1; r == 0 && n > 0;) {
        n = read(d->fd, bytes, CHUNK);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            r = err_sys(e, ERR_SYSTEM, errno, "cannot read the new content of %s", d->path);
        else if (n > 0)
            r = file_put(&w, bytes, (size_t)n, e);
    }
    free(bytes);
    if (r == 0)
        return file_end(&w, &how, e);
    file_drop(&w);
    return r == -ESTALE ? -EPIPE : r; /* what was read cannot be read again */
}

int pinfold_file_put(struct pinfold_session *session, const char *path, int fd, unsigned mode, int parents,
                     struct pinfold_error *error)
{
    const struct doing d = {put_work, path, .fd = fd, .mode = mode, .flag = parents};
    return perform_by_name(session, &d, error);
}

/* ---- directories ---- */

/* Anew: the first attempt may have been on a socket that was at its end. */
static struct json writer(struct pinfold_report *p)
{
    values_free(&p->values);
    p->values = VALUES(MAX_REPORT);
    return JSON_TREE(&p->values);
}

static int list_work(int files, const struct doing *d, struct err *e);

static int report(struct pinfold_session *session, const struct doing *what, struct pinfold_report **ret,
                  struct pinfold_error *error)
{
    struct doing d = *what;
    struct err e = {0};
    d.report = report_new();
    if (!d.report)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot hold the answer"));
    int r = d.work == list_work ? perform_by_name(session, &d, error) : perform(session, &d, error);
    if (r == 0)
        return report_give(d.report, 0, &e, ret, error);
    pinfold_report_free(d.report);
    return r;
}

static int list_work(int files, const struct doing *d, struct err *e)
{
    struct json j = writer(d->report);
    return file_list(files, d->path, &j, e);
}

int pinfold_file_list_report(struct pinfold_session *session, const char *path, struct pinfold_report **ret,
                             struct pinfold_error *error)
{
    return report(session, &(struct doing){list_work, path}, ret, error);
}

static int where_work(int files, const struct doing *d, struct err *e)
{
    struct file_answer a;
    int r = file_call(files, &(struct file_ask){.op = FILE_WHERE, .path = d->path}, &a, NULL, e);
    if (r < 0)
        return file_said(&a, r, "look at", d->path, e);
    struct json j = writer(d->report);
    char mode[8];
    json_object(&j, NULL);
    json_text(&j, "type", !a.mode ? "none" : S_ISREG(a.mode) ? "file" : S_ISDIR(a.mode) ? "directory" : "other");
    if (a.mode) {
        snprintf(mode, sizeof mode, "%04o", a.mode & 07777);
        json_str(&j, "path", (struct str){a.text, a.text_bytes ? a.text_bytes - 1 : 0});
        json_text(&j, "mode", mode);
        json_uint(&j, "size", a.size);
        json_uint(&j, "modified_ns", a.modified_ns);
        json_uint(&j, "device", (uint64_t)makedev((unsigned)(a.device >> 32), (unsigned)a.device));
        json_uint(&j, "inode", a.inode);
        json_bool(&j, "mounted", a.mounted != 0);
        json_bool(&j, "writable", a.writable == 0);
    }
    json_object_end(&j);
    return 0;
}

int pinfold_file_where_report(struct pinfold_session *session, const char *path, struct pinfold_report **ret,
                              struct pinfold_error *error)
{
    return report(session, &(struct doing){where_work, path}, ret, error);
}

static int remove_work(int files, const struct doing *d, struct err *e)
{
    return file_remove(files, d->path, d->flag != 0, e);
}

int pinfold_file_remove(struct pinfold_session *session, const char *path, int recursive, struct pinfold_error *error)
{
    const struct doing d = {remove_work, path, .flag = recursive};
    return perform_by_name(session, &d, error);
}

static int copy_work(int files, const struct doing *d, struct err *e)
{
    struct file_copied done = {0};
    int r =
        d->flag ? file_copy_in(files, d->path, d->other, &done, e) : file_copy_out(files, d->path, d->other, &done, e);
    if (r < 0 || !d->ret)
        return r;
    struct buf json = BUF(1024);
    struct json j = JSON(&json);
    json_object(&j, NULL);
    json_uint(&j, "files", done.files);
    json_uint(&j, "bytes", done.bytes);
    json_uint(&j, "left_out", done.left_out);
    json_object_end(&j);
    return give_text(&json, d->ret, e);
}

int pinfold_file_copy_in(struct pinfold_session *session, const char *host, const char *box, char **ret,
                         struct pinfold_error *error)
{
    const struct doing d = {copy_work, host, box, .inside = box, .flag = 1, .ret = ret};
    return perform(session, &d, error);
}

int pinfold_file_copy_out(struct pinfold_session *session, const char *box, const char *host, char **ret,
                          struct pinfold_error *error)
{
    const struct doing d = {copy_work, box, host, .flag = 0, .ret = ret};
    return perform_by_name(session, &d, error);
}

/* ---- paths ---- */

/* As much of a path of the host as is there, without links; the rest, unless it climbs, behind it. */
static const char *resolved_here(const char *path, char room[FILE_PATH])
{
    char head[FILE_PATH];
    size_t n = strlen(path), k;
    memcpy(head, path, n + 1);
    for (; n > 0; head[n] = 0) {
        char *real = realpath(head, NULL);
        k = real ? strlen(real) : 0;
        bool fits = real && k + strlen(path + n) + 2 < FILE_PATH && !strstr(path + n, "/..");
        if (fits) {
            memcpy(room, real, k);
            strcpy(room + (k == 1 ? 0 : k), path + n);
        }
        free(real);
        if (real)
            return fits && room[0] ? room : path;
        do
            n--;
        while (n > 0 && head[n] != '/');
    }
    return path;
}

/*
 * Links are resolved on the side the path belongs to, as far as it is there; then the text is translated. What the other
 * side has under no name stays as it was said.
 */
static const char *resolved(int files, const struct doing *d, char room[FILE_PATH], struct err *e)
{
    struct file_answer a;
    if (d->flag)
        return resolved_here(d->path, room);
    int r = file_call(files, &(struct file_ask){.op = FILE_WHERE, .path = d->path}, &a, NULL, e);
    if (r < 0 || a.text_bytes == 0)
        return d->path;
    memcpy(room, a.text, a.text_bytes);
    return room;
}

static int translate_work(int files, const struct doing *d, struct err *e)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct path_table table;
    struct buf out = BUF(64u << 10);
    char room[FILE_PATH];
    int r = mem ? file_mounts(files, &table, mem, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot translate a path");
    if (r < 0)
        return r;
    const enum path_way way = d->flag ? PATH_TO_BOX : PATH_TO_HOST;
    size_t n = strlen(d->path);
    bool slash = n > 1 && d->path[n - 1] == '/';
    const char *real = d->path[0] == '/' && n < FILE_PATH ? resolved(files, d, room, e) : d->path;
    if (paths_translate(&table, way, str_of(real), &out) == 0) {
        buf_free(&out);
        out = BUF(64u << 10);
        buf_text(&out, d->path);
    } else if (slash && out.n > 1 && out.p[out.n - 1] != '/') {
        buf_char(&out, '/');
    }
    return give_text(&out, d->ret, e);
}

int pinfold_path_to_box(struct pinfold_session *session, const char *path, char **ret, struct pinfold_error *error)
{
    const struct doing d = {translate_work, path, .flag = 1, .ret = ret};
    return perform(session, &d, error);
}

int pinfold_path_to_host(struct pinfold_session *session, const char *path, char **ret, struct pinfold_error *error)
{
    const struct doing d = {translate_work, path, .flag = 0, .ret = ret};
    return perform(session, &d, error);
}
