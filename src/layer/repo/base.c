/*
 * What is remembered of the repository when a box begins: its index, and which directory it is. The index is copied: a second name for it
 * would change the host's file (its number of links, its time of change).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layer/repo/repo.h"
#include "layer/spare.h"
#include "layer/text.h"
#include "sys/fd.h"

#define COPIED_MAX ((uint64_t)8 << 20) /* some 80,000 files; a larger one is done without */

/* Content and time alone: each start with a layer does it, and object_copy() takes three times as many calls. */
static int copy_content(int git, int store)
{
    struct layer_object before, after;
    own_fd int from = sys_openat(git, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    int e = from < 0 ? from : object_look(from, "", &before);
    char *room = e == 0 && object_is(&before, S_IFREG) && before.size <= COPIED_MAX && before.modified >= 0
                     ? malloc(before.size + 1)
                     : NULL;
    if (!room)
        return e < 0 ? e : -EFBIG;
    const long n = sys_pread(from, room, before.size + 1, 0);
    e = n == (long)before.size ? object_look(from, "", &after) : n < 0 ? (int)n : -ESTALE;
    if (e == 0 && (!object_untouched(&before, &after) || before.changed != after.changed))
        e = -ESTALE;
    own_fd int to = e < 0 ? e : layer_write_over(store, REPO_BASE, room, (size_t)n);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {before.modified / 1000000000, before.modified % 1000000000}};
    e = to < 0 ? to : sys_utimensat(to, NULL, times, 0);
    free(room);
    return e;
}

static void copy_index(int git, int store)
{
    if (copy_content(git, store) < 0)
        (void)sys_unlinkat(store, REPO_BASE, 0);
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

void repo_remember(int store, int workspace, const struct layer_below *below, size_t n_below)
{
    own_fd int git = sys_openat(workspace, REPO_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (remember_directory(git, store) < 0) { /* the spare may have been a repository's layer */
        (void)sys_unlinkat(store, REPO_BASE_DIR, 0);
        (void)sys_unlinkat(store, REPO_BASE, 0);
        return;
    }
    for (size_t i = 0; i < n_below; i++) {
        const char *name;
        struct layer_object other;
        own_fd int dir = object_parent(below[i].upper, REPO_DIR "/index", &name);
        if (dir < 0 || object_look(dir, name, &other) < 0 || !other.mode)
            continue;
        if (object_is(&other, S_IFREG))
            copy_index(dir, store);
        else
            (void)sys_unlinkat(store, REPO_BASE, 0);
        return;
    }
    copy_index(git, store);
}
