/*
 * Files around the current directory that a copy-on-write layer (run --cow) could not copy: the box knows one user and one
 * group, the caller's, and the kernel makes no copy for others (EOVERFLOW). The walk is limited; reaching the limit is told.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "doctor/doctor.h"
#include "match/path.h"

#define FOREIGN_ENTRIES 50000
#define FOREIGN_DEPTH   64 /* descriptors that are open at one time */

struct foreign_walk {
    struct arena *mem;
    struct foreign_files *found;
    unsigned left;
};

static void note_foreign(struct foreign_walk *w, const char *directory, const char *name)
{
    w->found->n++;
    if (!w->found->first)
        w->found->first = path_join(w->mem, directory, name);
}

static void walk_foreign(struct foreign_walk *w, int dir, const char *directory, unsigned depth)
{
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    if (!d) {
        (void)close_fd(dir);
        return;
    }
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (same(e->d_name, ".") || same(e->d_name, "..") || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (w->left == 0 || depth == 0) {
            w->found->cut = true;
            break;
        }
        w->left--;
        if (st.st_uid != geteuid() || st.st_gid != getegid())
            note_foreign(w, directory, e->d_name);
        const char *below = S_ISDIR(st.st_mode) ? path_join(w->mem, directory, e->d_name) : NULL;
        if (below)
            walk_foreign(w, openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), below,
                         depth - 1);
    }
    closedir(d);
}

int doctor_foreign(struct arena *mem, const char *top, struct foreign_files *ret)
{
    struct foreign_walk w = {.mem = mem, .found = ret, .left = FOREIGN_ENTRIES};
    if (!top || same(top, "/"))
        return 0;
    walk_foreign(&w, open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), top, FOREIGN_DEPTH);
    return arena_failed(mem) ? -ENOMEM : 0;
}
