/*
 * Tells the rules of the guard's table to a pinfold in the box, which plans an inner box by them (plan/around.c): there can
 * be no second supervisor. All paths in them are the box's own. A caller with another root would take them for other
 * places, so it is told nothing. The file is sealed, and the same for all callers of a worker.
 */
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "protocol/guard_image.h"
#include "sys/process.h"

#define SEALS 0xf /* F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE */

/* The image in new memory with a descriptor. */
static int rules_write(const struct plan_image *p)
{
    const size_t room = guard_image_bytes(p);
    auto_fd int fd = sys_memory_sealable("pinfold-rules");
    int no = fd < 0 ? fd : sys_ftruncate(fd, (int64_t)room);
    if (no < 0)
        return no;
    void *const to = sys_map(room, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (!to)
        return -ENOMEM;
    guard_image_put(p, to);
    sys_unmap(to, room);
    no = sys_fcntl(fd, 1033 /* F_ADD_SEALS */, SEALS);
    return no < 0 ? no : take_fd(&fd);
}

bool rules_told_at(const struct guard *g, int flags)
{
    const size_t n = sizeof GUARD_TOLD_AT - 1;
    return !g->ours && (flags & O_ACCMODE) != O_RDONLY && strncmp(g->text[0], GUARD_TOLD_AT, n) == 0 &&
           (!g->text[0][n] || g->text[0][n] == '/');
}

/* Names for tops of writable trees apply in this directory from now on, as if a repository had been there. */
static bool add_top(struct guard *g, const char *path)
{
    const struct str top = str_of(path);
    if (rules_is_root(&g->rules, top))
        return true;
    return rules_root(&g->rules, top).n && !rules_private(&g->rules, top) && places_add(g, &g->shared->lost, top);
}

long rules_tell(struct guard *g, int flags)
{
    static int rules = -1;
    bool ours = false;
    auto_fd int root = target_sure(g) < 0 ? -1 : caller_root(g, &ours);
    if (g->plan->guard_bytes < sizeof(struct guard_table) || root < 0 || !ours)
        return -ENOENT; /* as the kernel says it */
    const int no = target_valid(g);
    if (no < 0)
        return no;
    const char *top = g->text[0] + sizeof GUARD_TOLD_AT - 1;
    if (*top && !add_top(g, top))
        return -EACCES;
    if (rules < 0)
        rules = rules_write(g->plan);
    return rules < 0 ? rules : descriptor_install(g, rules, flags & O_CLOEXEC);
}
