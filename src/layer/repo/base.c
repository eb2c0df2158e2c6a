/*
 * What is remembered of the repository when a box begins: its index, and which directory it is. git replaces its index and never writes
 * into it, so a second name of the same file keeps it without a copy.
 */
#include <string.h>

#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"

#define COPIED_MAX ((uint64_t)8 << 20) /* to another file system; a larger one is done without */

static void copy_index(int git, const struct layer_object *index, int store)
{
    if (index->size > COPIED_MAX || object_copy(git, "index", index, store, REPO_BASE) < 0)
        (void)sys_unlinkat(store, REPO_BASE, 0);
}

void repo_remember(int store, int workspace)
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
    if (object_is(&index, S_IFREG) && sys_linkat(git, "index", store, REPO_BASE, 0) < 0)
        copy_index(git, &index, store);
}
