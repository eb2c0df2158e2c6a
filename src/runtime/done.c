/*
 * Closes what the steps opened for a moment, by ranges (runtime/runner.h): descriptors are given out in order, so most of those that
 * wait here lie side by side. And opens the directories of the steps' places.
 */
#include "base/str.h"
#include "runtime/runner.h"
#include "sys/fault.h"

/* By insertion: they are few, and mostly come in order. */
void sort_fds(int *fds, unsigned n)
{
    for (unsigned i = 1, j; i < n; i++) {
        const int v = fds[i];
        for (j = i; j > 0 && fds[j - 1] > v; j--)
            fds[j] = fds[j - 1];
        fds[j] = v;
    }
}

int close_others(int *keep, int n)
{
    unsigned next = 0;
#ifdef PINFOLD_FAULTS /* the count of calls goes on in the guard's program */
    int more[24];
    for (int i = 0; i < n; i++)
        more[i] = keep[i];
    more[n++] = sys_fault_fd;
    keep = more;
#endif
    sort_fds(keep, (unsigned)n);
    for (int i = 0; i < n; i++) {
        if (keep[i] < 0)
            continue;
        int e = (unsigned)keep[i] > next ? sys_close_range(next, (unsigned)keep[i] - 1) : 0;
        if (e < 0)
            return e;
        if ((unsigned)keep[i] >= next)
            next = (unsigned)keep[i] + 1;
    }
    return sys_close_range(next, ~0u);
}

void close_done(struct runner *r)
{
    int *fds = r->done;
    sort_fds(fds, r->n_done);
    for (uint32_t i = 0, last; i < r->n_done; i = last + 1) {
        for (last = i; last + 1 < r->n_done && fds[last + 1] == fds[last] + 1; last++)
            ;
        int e = last > i ? sys_close_range((unsigned)fds[i], (unsigned)fds[last]) : -ENOSYS;
        for (uint32_t k = i; e < 0 && k <= last; k++)
            sys_shut(fds[k]);
    }
    r->n_done = 0;
}

void done_with(struct runner *r, int *fd)
{
    if (*fd < 0)
        return;
    if (!r->done_room) {
        sys_drop(fd);
        return;
    }
    if (r->n_done == r->done_room)
        close_done(r);
    r->done[r->n_done++] = sys_taken(fd);
}

/* After fsmount(2) its context is what fspick(2) would give, on every kernel that has both. */
void fresh_or_done(struct runner *r, int *fs, bool read_only)
{
    if (r->n_fresh < r->fresh_room && (read_only || r->fresh_layers))
        r->fresh[r->n_fresh++] = sys_taken(fs) | (read_only ? FRESH_READ_ONLY : 0);
    else
        done_with(r, fs);
}

int attach_last(struct runner *r, int *tree, int *place)
{
    int e = *tree < 0 ? *tree : attach(*tree, *place);
    done_with(r, tree);
    done_with(r, place);
    return e;
}

int open_parent(const char *path, const char **ret_name)
{
    char parent[4096];
    const char *last = strrchr(path, '/');
    if (path[0] != '/' || !last[1])
        return -EINVAL;
    if (!str_copy((struct str){path, last == path ? 1 : (size_t)(last - path)}, parent, sizeof parent))
        return -ENAMETOOLONG;
    int fd = open_place(parent, O_DIRECTORY);
    if (fd >= 0)
        *ret_name = last + 1;
    return fd;
}

/* The directory of the place of an ATTACH or DENY. It stays open for those that follow in it: policies name hundreds of places side by side. */
int open_beside(struct runner *r, const char *path, const char **ret_name)
{
    const char *last = strrchr(path, '/');
    const size_t n = last ? (size_t)(last - path) : 0;
    if (!last)
        return -EBADMSG;
    if (r->beside < 0 || n != r->beside_bytes || memcmp(path, r->beside_path, n) != 0) {
        done_with(r, &r->beside);
        r->beside = open_parent(path, ret_name);
        r->beside_path = path;
        r->beside_bytes = n;
    }
    *ret_name = last + 1;
    return r->beside;
}
