/*
 * The file API: files of a running box, named as in the box, over the socket of engine_files(). The guard opens and
 * renames (guard/calls/file_api.c); the data is copied here. One call at a time on each socket. All return 0 or -errno
 * with a message; -ESTALE: the box has ended.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "protocol/files.h"
#include "protocol/paths.h"

enum { FILE_CHUNK = 256 << 10 }; /* bytes read and written at a time */

/* Opens a regular file for reading; `ret_size` may be NULL. */
int file_open(int files, const char *path, int *ret_fd, uint64_t *ret_size, struct err *e);
/* Reads at most `max` bytes from offset `at`; malloc()ed, with a NUL appended. */
int file_read(int files, const char *path, uint64_t at, size_t max, char **ret, size_t *ret_n, uint64_t *ret_size,
              struct err *e);

/*
 * Replaces a file atomically: a temporary file beside it gets mode, owner and attributes of the old one, or `mode`, and
 * is renamed once everything is written. Links are followed. If the directory permits no new name, or the file is a
 * mount point, the old file is overwritten in place.
 */
struct file_writer {
    int files, fd;
    bool must_empty;                       /* it is the old file: truncate it before the first write */
    char path[FILE_PATH], temp[FILE_PATH]; /* temp "": nothing to rename or remove */
};
struct file_how {
    unsigned mode; /* of a new file */
    bool parents;  /* creates missing directories */
    bool sync;     /* fsync before the rename */
};
int file_begin(struct file_writer *ret, int files, const char *path, const struct file_how *how, struct err *e);
int file_put(struct file_writer *w, const char *bytes, size_t n, struct err *e);
/* or file_drop(), which changes nothing */
int file_end(struct file_writer *w, const struct file_how *how, struct err *e);
void file_drop(struct file_writer *w);
int file_write(int files, const char *path, const char *bytes, size_t n, const struct file_how *how, struct err *e);

/* {"entries":[{"name","type","size","mode","modified","target"}]}, by name; of a file: itself. */
struct json;
int file_list(int files, const char *path, struct json *j, struct err *e);
int file_make_dirs(int files, const char *path, unsigned mode, struct err *e); /* that are there already is fine */
int file_remove(int files, const char *path, bool recursive, struct err *e);
/*
 * Copies whole trees between host and box, links as links. Everything that is no file, directory or link is left out
 * and counted. If `to` is a directory, the copy gets the source's name in it; existing files are replaced. Out of the box
 * all is copied but what the box may not read: then it is an error that names that.
 */
struct file_copied {
    uint64_t files, bytes, left_out;
};
int file_copy_in(int files, const char *host, const char *box, struct file_copied *ret, struct err *e);
int file_copy_out(int files, const char *box, const char *host, struct file_copied *ret, struct err *e);
/* The box's table of mounts. */
int file_mounts(int files, struct path_table *ret, struct arena *mem, struct err *e);

/* One call, used by the functions above. `fd` may be NULL if none can come. */
struct file_ask {
    enum file_op op;
    const char *path, *other;
    uint32_t flags, mode;
};
int file_call(int files, const struct file_ask *ask, struct file_answer *ret, int *ret_fd, struct err *e);
/* Returns when the guard has closed what it gave out so far. A name below a layer that somebody has open is not looked up anew, so the next
   call of anybody would still see the file that the host has replaced. */
void file_put_down(int files);
/* The error message for a result of file_call(): "write /work/x: a guarded name (rule x)". */
int file_said(const struct file_answer *a, int no, const char *what, const char *path, struct err *e);
