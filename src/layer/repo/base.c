/*
 * What is remembered of the repository when a box begins: which directory it is, and its index. The index is copied, since a second name for it
 * would change the host's file (its number of links, its time of change); beside the box and piece by piece, since a start must not depend on
 * how many files a repository has. Until it is whole it has another name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layer/repo/repo.h"
#include "layer/spare.h"
#include "layer/text.h"
#include "sys/fd.h"

#define COPIED_MAX ((uint64_t)64 << 20) /* some 640,000 files; a larger one is done without */
#define PIECE      ((size_t)64 << 10)

/* Opens it, and sees how it is: git replaces its index, so what is open stays that. */
static void find_index(int git, struct repo_base *ret)
{
    ret->from = sys_openat(git, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (ret->from >= 0 && (object_look(ret->from, "", &ret->before) < 0 || !object_is(&ret->before, S_IFREG) ||
                           ret->before.size > COPIED_MAX || ret->before.modified < 0))
        sys_drop(&ret->from);
}

static int remember_directory(int git, int store)
{
    auto_buf struct buf line = BUF(LAYER_PATH_MAX);
    struct layer_object top;
    int e = git < 0 ? git : object_look(git, "", &top);
    if (e < 0)
        return e;
    text_put_object(&line, &top);
    text_put_rest(&line, REPO_DIR);
    own_fd int fd = buf_ok(&line) ? layer_write_over(store, REPO_BASE_DIR, line.p, line.n) : -ENOMEM;
    return fd < 0 ? fd : 0;
}

void repo_remember(int store, int workspace, const struct layer_below *below, size_t n_below, struct repo_base *ret)
{
    own_fd int git = sys_openat(workspace, REPO_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    *ret = REPO_BASE_NONE;
    ret->store = store;
    if (remember_directory(git, store) < 0) { /* the spare may have been a repository's layer */
        (void)sys_unlinkat(store, REPO_BASE_DIR, 0);
        return;
    }
    for (size_t i = 0; i < n_below; i++) {
        const char *name;
        struct layer_object other;
        own_fd int dir = object_parent(below[i].upper, REPO_DIR "/index", &name);
        if (dir < 0 || object_look(dir, name, &other) < 0 || !other.mode)
            continue;
        if (object_is(&other, S_IFREG))
            find_index(dir, ret);
        return;
    }
    find_index(git, ret);
}

/* 1: there is more. */
static int copy_piece(struct repo_base *b)
{
    if (!b->piece && !(b->piece = malloc(PIECE)))
        return -ENOMEM;
    if (b->to < 0)
        b->to = layer_open_over(b->store, REPO_BASE_NEW, &b->room);
    const long n = b->to < 0 ? b->to : sys_pread(b->from, b->piece, PIECE, b->at);
    if (n <= 0)
        return (int)n;
    const long wrote = sys_pwrite(b->to, b->piece, (size_t)n, b->at);
    b->at += (uint64_t)n;
    return wrote == n ? 1 : wrote < 0 ? (int)wrote : -ENOSPC;
}

static int end_copy(struct repo_base *b)
{
    struct layer_object after;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {b->before.modified / 1000000000, b->before.modified % 1000000000}};
    int e = object_look(b->from, "", &after);
    /* One that git has replaced meanwhile has lost its name, which changes that time, and its bytes never change again. */
    if (e == 0 && (b->at != b->before.size || !object_untouched(&b->before, &after) ||
                   (b->before.changed != after.changed && after.links)))
        e = -ESTALE;
    if (e == 0 && b->room > b->at)
        e = sys_ftruncate(b->to, (int64_t)b->at);
    if (e == 0)
        e = sys_utimensat(b->to, NULL, times, 0);
    return e < 0 ? e : sys_renameat2(b->store, REPO_BASE_NEW, b->store, REPO_BASE, 0);
}

bool repo_base_step(struct repo_base *b)
{
    if (b->from < 0)
        return false;
    const int e = copy_piece(b);
    if (e > 0)
        return true;
    if (e == 0)
        (void)end_copy(b);
    repo_base_end(b);
    return false;
}

void repo_base_end(struct repo_base *b)
{
    sys_drop(&b->from);
    sys_drop(&b->to);
    free(b->piece);
    b->piece = NULL;
}
