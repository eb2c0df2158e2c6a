/*
 * What is remembered of the repository when a box begins: its index, and which directory it is. The index is copied: a second name for it
 * would change the host's file (its number of links, its time of change).
 */
#include <string.h>

#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"

#define COPIED_MAX ((uint64_t)8 << 20) /* some 80,000 files; a larger one is done without */

static void copy_index(int git, const struct layer_object *index, int store)
{
    if (index->size > COPIED_MAX || object_copy(git, "index", index, store, REPO_BASE) < 0)
        (void)sys_unlinkat(store, REPO_BASE, 0);
}

void repo_remember(int store, int workspace, const struct layer_below *below, size_t n_below)
{
    auto_buf struct buf line = BUF(LAYER_PATH_MAX);
    struct layer_object top, index;
    own_fd int git = sys_openat(workspace, REPO_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (git < 0 || object_look(git, "", &top) < 0 || object_look(git, "index", &index) < 0)
        return;
    text_put_object(&line, &top);
    text_put_rest(&line, REPO_DIR);
    own_fd int fd = sys_openat(store, REPO_BASE_DIR, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || !buf_ok(&line) || sys_write(fd, line.p, line.n) != (long)line.n)
        (void)sys_unlinkat(store, REPO_BASE_DIR, 0);
    for (size_t i = 0; i < n_below; i++) {
        const char *name;
        struct layer_object other;
        own_fd int dir = object_parent(below[i].upper, REPO_DIR "/index", &name);
        if (dir < 0 || object_look(dir, name, &other) < 0 || !other.mode)
            continue;
        if (object_is(&other, S_IFREG))
            copy_index(dir, &other, store);
        return;
    }
    if (object_is(&index, S_IFREG))
        copy_index(git, &index, store);
}
