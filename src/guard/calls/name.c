/*
 * Calls that create, remove or rename: open the parent by descriptor, judge, then make the same call on that descriptor
 * and the last component. Errors that the kernel would return come from the kernel: "." and "..", a missing directory,
 * a slash after a file's name.
 */
#include <errno.h>
#include "base/fd.h"
#include "guard/calls/calls.h"

static void place_unlock(struct guard *g, struct place *p)
{
    holds_drop(g);
    names_unlock(g);
    place_drop(p);
}

int place_find_alone(struct guard *g, int dir, const char *text, struct place *ret, bool alone)
{
    int no = place_find(g, dir, text, ret);
    if (no < 0 || !alone || !rules_exclusive(&g->rules, place_path(ret)))
        return no;
    place_drop(ret);
    names_unlock(g);
    no = names_lock(g, true);
    return no < 0 ? no : place_find(g, dir, text, ret);
}

/* Finds g->from, the place `path` of the caller, takes the lock (exclusively if it matters to repositories), and locks other boxes out of
   what a verdict about the place depends on. */
static int place_locked(struct guard *g, int dir, uint64_t path, enum denial_action action)
{
    struct place *ret = &g->from;
    const char *text = g->text[0];
    int no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find_alone(g, dir, text, ret, true);
    if (no < 0 && g->names_held)
        names_unlock(g);
    if (no < 0)
        return no;
    no = hold_place(g, ret, action);
    if (no < 0)
        place_unlock(g, ret);
    return no;
}

/* An object created under a guarded name (mode "existing"), or that makes a repository, is remembered as the box's
   own. */
static void remember_object(struct guard *g, const struct place *p)
{
    struct sys_stat st;
    if (born_at(p, &st) == 0 && !born_has(g, &st))
        born_add(g, &st);
}

static void remember_birth(struct guard *g, const struct place *p)
{
    if (!g->birth)
        return;
    remember_object(g, p);
    reporoot_made(g, p);
}

/* Checks again after creating, where it matters, because the host takes no lock, and removes what would now be refused.
   A link is always checked: a submodule whose path it could redirect may have appeared a moment ago. */
static int made_again(struct guard *g, struct place *p, enum made made)
{
    const bool birth = g->birth; /* from before the name existed */
    if (!g->n_holds && made != MADE_LINK)
        return 0;
    int no = place_stays(g, p) ? 0 : place_again(g, p);
    if (no == 0 && birth)
        remember_object(g, p);
    if (no == 0)
        no = g->n_holds ? verdict_made(g, p, made) : verdict_linked(g, p, NULL);
    g->birth = birth;
    if (no < 0)
        (void)sys_unlinkat(p->dir, p->name, made == MADE_EMPTY_DIRECTORY ? AT_REMOVEDIR : 0);
    return no < 0 ? no : 0;
}

int refused_or_there(const struct place *p, int no)
{
    struct sys_stat st;
    return (no == -EACCES || no == -EROFS) && place_stat(p, SYS_STAT_BASIC, &st) == 0 ? -EEXIST : no;
}

int verdict_new(struct guard *g, const struct place *p, enum made made, const struct object *linked)
{
    const int report = g->report;
    const bool told = g->told;
    g->report = -1;
    int no = linked ? verdict_link(g, linked, p) : verdict_make(g, p, made);
    g->report = report;
    g->told = told;
    no = refused_or_there(p, no);
    if (no != -EACCES && no != -EROFS)
        return no;
    return linked ? verdict_link(g, linked, p) : verdict_make(g, p, made);
}

long make_call(struct guard *g, int dir, uint64_t path, bool directory, unsigned mode, uint64_t device)
{
    struct place *p = &g->from;
    if (!directory && S_ISDIR(mode))
        return -EPERM; /* mknod */
    int no = place_locked(g, dir, path, DENIAL_CREATE);
    if (no < 0)
        return no;
    const enum made made = directory                               ? MADE_EMPTY_DIRECTORY
                           : S_ISREG(mode) || (mode & S_IFMT) == 0 ? MADE_EMPTY_FILE
                                                                   : MADE_OTHER;
    no = target_umask(g);
    if (no == 0)
        no = verdict_new(g, p, made, NULL);
    if (no == 0)
        no = target_valid(g);
    if (no == 0)
        no = directory ? sys_mkdirat(p->dir, p->name, verdict_mode(g, p, mode & 07777))
                       : sys_mknodat(p->dir, p->name, mode, device);
    if (no == 0)
        no = made_again(g, p, made);
    if (no == 0)
        remember_birth(g, p);
    if (no == 0 && !directory && S_ISFIFO(mode))
        told_fifo(g, p);
    place_unlock(g, p);
    return no;
}

long symlink_call(struct guard *g, uint64_t target, int dir, uint64_t path)
{
    struct place *p = &g->from;
    int no = target_string(g, target, g->text[1]);
    if (no == 0)
        no = -ENOENT; /* an empty target */
    if (no > 0)
        no = place_locked(g, dir, path, DENIAL_LINK);
    if (no < 0)
        return no;
    no = verdict_new(g, p, MADE_LINK, NULL);
    if (no == 0)
        no = verdict_git_link(g, p, g->text[1]);
    if (no == 0)
        no = verdict_proc_link(g, p, g->text[1]);
    if (no == 0)
        no = target_valid(g);
    if (no == 0)
        no = sys_symlinkat(g->text[1], p->dir, p->name);
    if (no == 0)
        no = made_again(g, p, MADE_LINK);
    if (no == 0) {
        remember_birth(g, p);
        told_link(g, p, g->text[1]);
    }
    place_unlock(g, p);
    return no;
}

long unlink_call(struct guard *g, int dir, uint64_t path, int flags)
{
    struct place *p = &g->from;
    if (flags & ~AT_REMOVEDIR)
        return -EINVAL;
    int no = place_locked(g, dir, path, DENIAL_REMOVE);
    if (no < 0)
        return no;
    no = verdict_remove(g, p, flags & AT_REMOVEDIR);
    if (no == 0)
        no = target_valid(g);
    struct sys_stat st;
    const bool linked = no == 0 && !flags && hardlink_look(g, p, &st);
    if (no == 0)
        no = sys_unlinkat(p->dir, p->name, flags);
    if (no == 0 && linked)
        hardlink_gone(g, &st);
    place_unlock(g, p);
    return no;
}

/* None leaves a device in its place (RENAME_WHITEOUT): what is taken back must find its old name free. */
#define RENAME_KNOWN (RENAME_NOREPLACE | RENAME_EXCHANGE)

/* A rename to a name below which rules apply. What was judged could have been exchanged under its name, so it is first
   renamed to a temporary name of the guard; the host may have put something into it, so it is judged again there. */
static int rename_counted(struct guard *g, const struct sys_stat *judged, unsigned flags)
{
    struct place *from = &g->from, *to = &g->to;
    char temp[64];
    if (flags & RENAME_EXCHANGE)
        return deny(g, DENIAL_RENAME, NULL, place_path(to), "an exchange with a name that has guarded names below it");
    guard_temp_name(g, temp);
    int no = flags ? sys_renameat2(from->dir, from->name, to->dir, temp, flags | RENAME_NOREPLACE)
                   : sys_rename_new(from->dir, from->name, to->dir, temp);
    if (no < 0)
        return no;
    no = sys_is_at(to->dir, temp, judged) ? verdict_moving(g, to, temp) : -EBUSY;
    if (no == 0)
        no = sys_renameat2(to->dir, temp, to->dir, to->name, flags);
    if (no < 0) {
        (void)sys_rename_new(to->dir, temp, from->dir, from->name);
        return no;
    }
    if (!S_ISDIR(judged->mode) ||
        (place_stays(g, to) && verdict_arrived(g, to) == 0 && deep_moves(g, from, to, to) == 0))
        return 0;
    (void)sys_rename_new(to->dir, to->name, from->dir, from->name);
    return -EACCES;
}

static int rename_now(struct guard *g, const struct sys_stat *judged, unsigned flags)
{
    struct place *from = &g->from, *to = &g->to;
    const bool exchange = flags & RENAME_EXCHANGE;
    const bool counts = verdict_counts(g, to) || (exchange && verdict_counts(g, from));
    if (counts)
        return rename_counted(g, judged, flags);
    int no = sys_renameat2(from->dir, from->name, to->dir, to->name, flags);
    if (no == -EXDEV && S_ISDIR(judged->mode))
        no = move_directory(g, from, to, flags);
    if (no < 0 || (S_ISREG(judged->mode) && !exchange) ||
        (verdict_linked(g, to, to) == 0 && deep_moves(g, from, to, to) == 0 &&
         !(exchange && deep_moves(g, to, from, from) < 0)))
        return no;
    if (exchange)
        (void)sys_renameat2(to->dir, to->name, from->dir, from->name, RENAME_EXCHANGE);
    else
        (void)sys_rename_new(to->dir, to->name, from->dir, from->name);
    return -EACCES;
}

static int rename_places(struct guard *g, unsigned flags)
{
    struct place *from = &g->from, *to = &g->to;
    struct sys_stat st = {0};
    int no = hold_rename(g, from, to, flags);
    if (no == 0)
        no = verdict_rename(g, from, to, flags, &st);
    if (no == 0)
        no = target_valid(g);
    /* What it replaces; if both are names of one file both stay (rename(2)). */
    struct sys_stat over, moved;
    const bool linked = no == 0 && !(flags & RENAME_EXCHANGE) && hardlink_look(g, to, &over) &&
                        !(hardlink_look(g, from, &moved) && sys_same(&moved, &over));
    if (no == 0)
        no = rename_now(g, &st, flags);
    if (no == 0 && linked)
        hardlink_gone(g, &over);
    if (no == 0) {
        remember_birth(g, to);
        reporoot_made(g, to);
        told_refs(g, to);
        if (flags & RENAME_EXCHANGE)
            told_refs(g, from);
        told_moved(g, from, to, flags & RENAME_EXCHANGE);
        if (!S_ISREG(st.mode) || flags & RENAME_EXCHANGE)
            told_arrived(g, from, to);
        if (flags & RENAME_EXCHANGE) {
            reporoot_made(g, from);
            told_arrived(g, to, from);
        }
    }
    holds_drop(g);
    return no < 0 ? no : 0;
}

static int rename_once(struct guard *g, int from_dir, int to_dir, unsigned flags)
{
    int no = names_lock(g, true);
    if (no < 0)
        return no;
    auto_fd int base = place_base(g, g->text[0], g->text[1], from_dir, to_dir);
    no = place_find_at(g, base, from_dir, g->text[0], &g->from);
    if (no == 0) {
        if (!place_beside(g, &g->from, g->text[0], from_dir, g->text[1], to_dir, &g->to, &no))
            no = place_find_at(g, base, to_dir, g->text[1], &g->to);
        if (no == 0) {
            no = rename_places(g, flags);
            place_drop(&g->to);
        }
        place_drop(&g->from);
    }
    names_unlock(g);
    return no;
}

long rename_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, unsigned flags)
{
    if (flags & ~(unsigned)RENAME_KNOWN || flags == RENAME_KNOWN)
        return -EINVAL;
    int no = target_string(g, from, g->text[0]);
    if (no >= 0)
        no = target_string(g, to, g->text[1]);
    if (no < 0)
        return no;
    /* What hooks have passed may be something else by now, and is asked for again. */
    while ((no = rename_once(g, from_dir, to_dir, flags)) == MOVES_ASK && (no = branches_ask(g)) == 0)
        ;
    branches_done(g);
    return no;
}

/* Finds the source of a hard link. AT_EMPTY_PATH: a descriptor of the caller. */
static int link_source(struct guard *g, int dir, const char *text, int flags)
{
    if ((flags & AT_EMPTY_PATH) && text[0] == 0) {
        int fd = dir == AT_FDCWD ? target_dir(g, dir) : target_fd(g, dir);
        if (fd < 0)
            return fd;
        int no = object_of_fd(g, fd, &g->object);
        (void)sys_close(fd);
        return no;
    }
    int no = place_find(g, dir, text, &g->from);
    if (no < 0)
        return no;
    no = object_find(g, &g->from, flags & AT_SYMLINK_FOLLOW, &g->object);
    if (no < 0)
        place_drop(&g->from);
    return no;
}

/* A repository's configuration may be created by link as by rename, but as a file of its own. */
static int link_config(struct guard *g, const struct place *to)
{
    const struct rule *rule;
    if (!verdict_config(g, to, &rule) || !rule || g->from.dir < 0 || !S_ISREG(g->object.st.mode))
        return 0;
    int no = git_config_replace(g, &g->from, to, rule, true);
    return no < 0 ? no : 1;
}

/*
 * A link to a file of the host's tree below a copy-on-write layer copies it, and the copy has another number. git, which
 * links the objects of a repository that it clones, takes that for an attack and ends. If a link cannot be made it copies.
 */
static int link_numbered(struct guard *g)
{
    struct place *to = &g->to;
    struct sys_stat st;
    const struct str objects = STR("objects");
    if (!rules_in_one_layer(&g->rules, object_path(&g->object), place_path(to)) ||
        !layout_has(place_dir(to), objects) || !layout_has(object_path(&g->object), objects) ||
        sys_stat_at(to->dir, to->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) < 0 || st.inode == g->object.st.inode)
        return 0;
    (void)sys_unlinkat(to->dir, to->name, 0);
    return -EXDEV;
}

static int link_places(struct guard *g)
{
    struct place *to = &g->to;
    int no = to->frozen ? refused_or_there(to, -EROFS) : verdict_object(g, &g->object, DENIAL_LINK);
    if (no == 0)
        no = link_config(g, to);
    if (no != 0)
        return no < 0 ? no : 0;
    no = verdict_new(g, to, MADE_FILE, &g->object);
    if (no == 0 && S_ISLNK(g->object.st.mode))
        no = verdict_git_link(g, to, NULL);
    if (no == 0)
        no = target_valid(g);
    if (no < 0)
        return no;
    const enum made made = S_ISLNK(g->object.st.mode) ? MADE_LINK : MADE_FILE;
    /* Through /proc/self/fd a link is made of this very object, even one created with O_TMPFILE (open(2)). */
    if (S_ISLNK(g->object.st.mode))
        no = g->from.dir >= 0 ? sys_linkat(g->from.dir, g->from.name, to->dir, to->name, 0) : -ENOENT;
    else
        no = own_link(g, g->object.fd, to->dir, to->name);
    if (no == -EXDEV &&
        to->seen >= 0) /* a descriptor of the caller, in the mount that it sees: use the same directory there */
        no = own_link(g, g->object.fd, to->seen, to->name);
    if (no == 0)
        no = link_numbered(g);
    if (no == 0)
        no = made_again(g, to, made);
    if (no == 0)
        hardlink_made(g, &g->object);
    if (no < 0)
        return no;
    remember_birth(g, to);
    reporoot_made(g, to);
    if (made == MADE_LINK)
        told_arrived(g, to, to);
    if (S_ISFIFO(g->object.st.mode))
        told_fifo(g, to);
    told_refs(g, to);
    if (g->from.dir >= 0) /* it can also be written under its other name */
        told_refs(g, &g->from);
    return 0;
}

long link_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, int flags)
{
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_FOLLOW))
        return -EINVAL;
    int no = target_string(g, from, g->text[0]);
    if (no >= 0)
        no = target_string(g, to, g->text[1]);
    if (no >= 0)
        no = names_lock(g, true);
    if (no < 0)
        return no;
    g->from.dir = g->from.seen = -1;
    no = link_source(g, from_dir, g->text[0], flags);
    if (no == 0) {
        if (flags || !place_beside(g, &g->from, g->text[0], from_dir, g->text[1], to_dir, &g->to, &no))
            no = place_find(g, to_dir, g->text[1], &g->to);
        if (no == 0) {
            no = hold_place(g, &g->to, DENIAL_LINK);
            if (no == 0)
                no = link_places(g);
            holds_drop(g);
            place_drop(&g->to);
        }
        object_drop(&g->object);
        place_drop(&g->from);
    }
    names_unlock(g);
    return no;
}
