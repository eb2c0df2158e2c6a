/*
 * The file API: files of a living box by the names the box has for them, over the socket of engine_files(). The guard opens
 * and renames (guard/calls/file_api.c), the bytes pass here. A call at a time on each socket. All return 0 or -errno with a
 * sentence; -ESTALE: the box is gone.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "protocol/files.h"
#include "protocol/paths.h"

enum { FILE_CHUNK = 256 << 10 }; /* bytes read and written at a time */

/* A regular file, open for reading; `ret_size` may be NULL. */
int file_open(int files, const char *path, int *ret_fd, uint64_t *ret_size, struct err *e);
/* At most `max` bytes from `at`; malloc()ed with a NUL behind. */
int file_read(int files, const char *path, uint64_t at, size_t max, char **ret, size_t *ret_n, uint64_t *ret_size,
              struct err *e);

/*
 * Replacing a file in one step: a new one beside it gets mode, owner and attributes of the old, or `mode`, and its name when
 * all is written. Links are followed to the file they name. Where the directory takes no new name, or the file is a mount
 * of its own, the old file is written in place.
 */
struct file_writer {
    int files, fd;
    bool must_empty;                       /* it is the old file: emptied before the first byte */
    char path[FILE_PATH], temp[FILE_PATH]; /* temp "": nothing to rename or remove */
};
struct file_how {
    unsigned mode; /* of a new file */
    bool parents;  /* missing directories are made */
    bool sync;     /* on the disk before it has the name */
};
int file_begin(struct file_writer *ret, int files, const char *path, const struct file_how *how, struct err *e);
int file_put(struct file_writer *w, const char *bytes, size_t n, struct err *e);
int file_end(struct file_writer *w, const struct file_how *how, struct err *e); /* or file_drop(): nothing changed */
void file_drop(struct file_writer *w);
int file_write(int files, const char *path, const char *bytes, size_t n, const struct file_how *how, struct err *e);

/* {"entries":[{"name","type","size","mode","modified","target"}]}, by name; of a file: itself. */
struct json;
int file_list(int files, const char *path, struct json *j, struct err *e);
int file_make_dirs(int files, const char *path, unsigned mode, struct err *e); /* that are there already is fine */
int file_remove(int files, const char *path, bool recursive, struct err *e);
/*
 * Whole trees between host and box, links as links. What is no file, directory or link is left out and counted. A `to` that
 * is a directory gets the source's name below it; existing files are replaced.
 */
struct file_copied {
    uint64_t files, bytes, left_out;
};
int file_copy_in(int files, const char *host, const char *box, struct file_copied *ret, struct err *e);
int file_copy_out(int files, const char *box, const char *host, struct file_copied *ret, struct err *e);
/* The box's table of mounts. */
int file_mounts(int files, struct path_table *ret, struct arena *mem, struct err *e);

/* One call, for what is above. `fd` may be NULL where none can come. */
struct file_ask {
    enum file_op op;
    const char *path, *other;
    uint32_t flags, mode;
};
int file_call(int files, const struct file_ask *ask, struct file_answer *ret, int *ret_fd, struct err *e);
/* The sentence for what file_call() returned: "write /work/x: a guarded name (rule x)". */
int file_said(const struct file_answer *a, int no, const char *what, const char *path, struct err *e);
