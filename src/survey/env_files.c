/*
 * Finds the .env files at the top of a workspace that a box shall not see. Hiding one that git tracks would only break git: its
 * content is in the repository, where the box can read it. A box may have written the index, which says what is tracked; so the
 * index must name the hash of the file's content, which only somebody who has read it can know.
 */
#include "survey/env_files.h"

#include <dirent.h>
#include <errno.h>
#include <sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include "sys/fd.h"
#include "sys/file.h"

enum {
    MAX_BYTES = 64 << 10, /* of a .env file that is compared with the index */
    MAX_INDEX = 4 << 20,  /* names that begin with a dot stand first in it */
    ENTRY = 62,           /* gitformat-index(5): bytes before the name, with SHA-1 */
    AT_HASH = 40,
    AT_FLAGS = 60,
    EXTENDED = 0x4000
};

/* A virtual environment of Python's may be a directory of that name. */
static bool names_directory(int dir, const struct sys_dirent *d)
{
    struct sys_stat st;
    return d->type == DT_DIR || ((d->type == DT_LNK || d->type == DT_UNKNOWN) &&
                                 sys_stat_at(dir, d->name, 0, SYS_STAT_BASIC, &st) == 0 && S_ISDIR(st.mode));
}

/* Up to `most` bytes of a regular file, with a NUL behind them; freed by the caller. NULL: there are none, or more if `whole`. */
static char *bytes_of(int dir, const char *name, size_t most, bool whole, size_t *ret_n)
{
    struct sys_stat st;
    own_fd int fd = sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd < 0 || sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st) < 0 || !S_ISREG(st.mode) ||
        (whole && st.size > most))
        return NULL;
    char *bytes = malloc(most + 1);
    size_t n = 0;
    for (long got; bytes && n < most && (got = sys_read(fd, bytes + n, most - n)) > 0;)
        n += (size_t)got;
    if (bytes)
        bytes[n] = 0;
    *ret_n = n;
    return bytes;
}

struct git_index {
    char *bytes;
    size_t n;
};

/* The directory of the repository at the workspace's top; -1: there is none. */
static int repository_of(int dir)
{
    int git = sys_openat(dir, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (git >= 0)
        return git;
    size_t n = 0;
    char *text = bytes_of(dir, ".git", 4096, true, &n); /* of a worktree: "gitdir: PATH" */
    if (text && n > 8 && strncmp(text, "gitdir: ", 8) == 0) {
        text[strcspn(text, "\r\n")] = 0;
        git = sys_openat(dir, text + 8, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    }
    free(text);
    return git;
}

static struct git_index index_of(int dir)
{
    struct git_index x = {NULL, 0};
    own_fd int git = repository_of(dir);
    if (git >= 0)
        x.bytes = bytes_of(git, "index", MAX_INDEX, false, &x.n);
    return x;
}

static uint32_t number_at(const char *p)
{
    const unsigned char *u = (const void *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

/* Moves `*at` behind version 4's count of bytes that a name does not share with the one before (gitformat-pack(5)). */
static size_t varint_at(const struct git_index *x, size_t *at)
{
    size_t value = 0;
    for (int i = 0; i < 4 && *at < x->n; i++) {
        const unsigned c = (unsigned char)x->bytes[(*at)++];
        value = (value << 7 | (c & 127)) + (c & 128 ? 1 : 0);
        if (!(c & 128))
            break;
    }
    return value;
}

/* The hash that the index has for `name`; NULL: none. A misread index can only be wrong about the hash. */
static const char *hash_in(const struct git_index *x, const char *name)
{
    char now[4096] = "";
    size_t at = 12, n_now = 0;
    if (!x->bytes || x->n < at || memcmp(x->bytes, "DIRC", 4) != 0)
        return NULL;
    const uint32_t version = number_at(x->bytes + 4), count = number_at(x->bytes + 8);
    for (uint32_t i = 0; i < count && at + ENTRY < x->n; i++) {
        const size_t from = at;
        const unsigned flags = number_at(x->bytes + at + AT_FLAGS) >> 16;
        at += ENTRY + (version > 2 && flags & EXTENDED ? 2 : 0);
        const size_t gone = version == 4 ? varint_at(x, &at) : n_now;
        const size_t rest = at < x->n ? strnlen(x->bytes + at, x->n - at) : 0;
        if (gone > n_now || at + rest >= x->n || n_now - gone + rest >= sizeof now)
            return NULL;
        memcpy(now + (n_now - gone), x->bytes + at, rest + 1);
        n_now += rest - gone;
        const int order = strcmp(now, name);
        if (order >= 0)
            return order == 0 ? x->bytes + from + AT_HASH : NULL;
        at += version == 4 ? rest + 1 : rest + 8 - (at - from + rest) % 8;
    }
    return NULL;
}

/* Whether the index has the file as it is. */
static bool is_tracked(int dir, const char *name, const struct git_index *x)
{
    const char *hash = hash_in(x, name);
    uint8_t sum[SHA1_DIGEST_LENGTH];
    char head[32];
    SHA1_CTX sha;
    size_t n = 0;
    char *bytes = hash ? bytes_of(dir, name, MAX_BYTES, true, &n) : NULL;
    if (!bytes)
        return false;
    const int h = snprintf(head, sizeof head, "blob %zu", n) + 1;
    SHA1Init(&sha);
    SHA1Update(&sha, (const uint8_t *)head, (size_t)h);
    SHA1Update(&sha, (const uint8_t *)bytes, n);
    SHA1Final(sum, &sha);
    free(bytes);
    return memcmp(sum, hash, sizeof sum) == 0;
}

int env_files_in(const char *workspace, struct arena *mem, const char *names[MAX_ENV_FILES], struct err *e)
{
    _Alignas(8) char room[4096];
    int n = 0, kept = 0;
    own_fd int dir = sys_openat(AT_FDCWD, workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir == -ENOENT || dir == -ENOTDIR)
        return 0; /* somebody else says so */
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room, .no = dir < 0 ? dir : 0};
    const struct sys_dirent *d;
    while (dir >= 0 && (d = sys_next_entry(&all))) {
        if (!is_env_file(str_of(d->name)) || names_directory(dir, d))
            continue;
        if (n == MAX_ENV_FILES)
            return err_say(
                e, ERR_POLICY,
                "'%s' has more than %d files like .env.NAME.local, which are hidden in a box: move some of them "
                "to another directory, or show all with --env-files",
                workspace, MAX_ENV_FILES);
        names[n] = arena_text(mem, d->name);
        if (!names[n++])
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot list '%s'", workspace);
    }
    if (all.no < 0) {
        names[0] = ".env";
        names[1] = ".env.local";
        return 2;
    }
    struct git_index index = n ? index_of(dir) : (struct git_index){NULL, 0};
    for (int i = 0; i < n; i++) {
        if (!is_tracked(dir, names[i], &index))
            names[kept++] = names[i];
    }
    free(index.bytes);
    return kept;
}
