/*
 * Performs a list of operations on a workspace so that a kill at any point leaves of each path the old object or the new one, and a
 * journal by which the next call completes the rest.
 *
 *     stage   the journal has all operations; new objects are copied into WORKSPACE/.pinfold/apply-ID, which no box may
 *             write. After a kill it is removed: nothing had happened.
 *     act     staged and synced. Each operation is one rename: exchange for a replacement, NOREPLACE for a creation and
 *             for taking out what is deleted. What came out is looked at, and goes back if it is not what had been
 *             looked at before. After a kill the names in the staging directory tell what was done.
 *     keep    the workspace is synced. What came out moves into undo/NUMBER, then the staging directory goes.
 *     done    the journal becomes the record of undo/NUMBER.
 *
 * Names in the staging directory: nI, the new object of operation I, or after an exchange the old one; oI, what was
 * deleted. An object that is neither the new nor the old one came from the host meanwhile; it is never removed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layer/change.h"
#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"

#define STAGE_PARENT ".pinfold"
#define EXCHANGES    64 /* times to go back and forth with a host that replaces the same name all the time */

struct transacting {
    const struct layer_trees *t;
    struct transaction *x;
    struct arena *mem;
    struct err *e;
    int source;       /* of new objects; -1: everything is staged */
    int stage, store; /* the staging directory; undo/NUMBER */
    bool resumed;
};

static int run_failed(struct transacting *r, int e, const char *what)
{
    return err_sys(r->e, ERR_SYSTEM, -e, "layer %s: %s in '%s'", r->t->id, what, r->t->path);
}

static void refuse_op(struct transacting *r, struct op *op, int e, const char *what)
{
    if (op->why)
        return;
    op->why = e == -EXDEV ? "it is on another file system than the workspace"
              : e         ? arena_printf(r->mem, "%s: %s", what, strerror(-e))
                          : what;
    if (!op->why)
        op->why = "out of memory";
}

static const char *stage_name(char letter, size_t i, char room[32])
{
    snprintf(room, 32, "%c%zu", letter, i);
    return room;
}

/* ---- directories ---- */

static void stage_of(const struct transacting *r, char room[64])
{
    snprintf(room, 64, STAGE_PARENT "/apply-%.16s", r->t->id);
}

static int open_inside(const struct transacting *r, const char *path)
{
    return sys_openat2(r->t->workspace, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

static int make_stage(struct transacting *r)
{
    char path[64];
    stage_of(r, path);
    int e = sys_mkdirat(r->t->workspace, STAGE_PARENT, 0700);
    if (e == 0 || e == -EEXIST) {
        own_fd int parent = open_inside(r, STAGE_PARENT);
        e = parent < 0 ? parent : sys_mkdirat(parent, strrchr(path, '/') + 1, 0700);
        if (e == 0)
            e = r->stage = open_inside(r, path);
    }
    return e < 0 ? run_failed(r, e, "cannot create the directory '" STAGE_PARENT "/apply-ID'") : 0;
}

static int empty_stage(struct transacting *r)
{
    char room[4096] __attribute__((aligned(8)));
    struct sys_entries entries = {.dir = r->stage, .room = room, .bytes = sizeof room};
    (void)sys_lseek(r->stage, 0, SEEK_SET);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        int e = sys_unlinkat(r->stage, d->name, 0);
        if (e == -EISDIR)
            e = sys_unlinkat(r->stage, d->name, AT_REMOVEDIR);
        if (e < 0 && e != -ENOENT)
            return e;
    }
    return entries.no;
}

/* The staging directory and all that is left in it, which by now is ours. */
static int remove_stage(struct transacting *r)
{
    char path[64];
    stage_of(r, path);
    int e = r->stage >= 0 ? empty_stage(r) : 0;
    own_fd int parent = open_inside(r, STAGE_PARENT);
    if (e == 0 && parent >= 0)
        e = sys_unlinkat(parent, strrchr(path, '/') + 1, AT_REMOVEDIR);
    if (e < 0 && e != -ENOENT)
        return run_failed(r, e, "cannot remove the directory '" STAGE_PARENT "/apply-ID'");
    if (r->x->made_parent) /* unless somebody else has put something there */
        (void)sys_unlinkat(r->t->workspace, STAGE_PARENT, AT_REMOVEDIR);
    return 0;
}

static int open_store(struct transacting *r)
{
    char path[64];
    int e = sys_mkdirat(r->t->store, UNDO, 0700);
    snprintf(path, sizeof path, UNDO "/%llu", (unsigned long long)r->x->number);
    if (e == 0 || e == -EEXIST)
        e = sys_mkdirat(r->t->store, path, 0700);
    if (e == 0 || e == -EEXIST)
        e = r->store = sys_openat(r->t->store, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return e < 0 ? err_sys(r->e, ERR_SYSTEM, -e, "layer %s: cannot create '%s'", r->t->id, path) : 0;
}

static bool is_empty(int dir, const char *name)
{
    char room[1024] __attribute__((aligned(8)));
    own_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = fd, .room = room, .bytes = sizeof room};
    return fd >= 0 && !sys_next_entry(&entries) && entries.no == 0;
}

static int write_phase(struct transacting *r, enum journal_phase phase)
{
    r->x->phase = phase;
    return journal_write(r->t->store, r->x, r->e);
}

/* ---- stage ---- */

/* Where the next one fails the whole would: told before anything happens. */
static int try_exchange(struct transacting *r)
{
    int e = sys_mkdirat(r->stage, "x", 0700), k = sys_mkdirat(r->stage, "y", 0700);
    struct statfs fs = {0};
    if (e == 0 && k == 0)
        e = sys_renameat2(r->stage, "x", r->stage, "y", RENAME_EXCHANGE);
    (void)sys_unlinkat(r->stage, "x", AT_REMOVEDIR);
    (void)sys_unlinkat(r->stage, "y", AT_REMOVEDIR);
    if (e != -EINVAL && e != -ENOSYS)
        return e < 0 || k < 0 ? run_failed(r, e < 0 ? e : k, "cannot try an exchange") : 0;
    (void)sys_fstatfs(r->stage, &fs);
    const unsigned long type = (unsigned long)fs.f_type;
    const char *name = type == 0x6969                             ? "NFS"
                       : type == 0x65735546                       ? "FUSE"
                       : type == 0xff534d42 || type == 0xfe534d42 ? "SMB"
                       : type == 0x01021997                       ? "9p"
                       : type == 0x4d44                           ? "FAT"
                                                                  : NULL;
    int no =
        name ? err_say(r->e, ERR_CANNOT, "'%s' is on %s, which cannot exchange two files in one step", r->t->path, name)
             : err_say(r->e, ERR_CANNOT,
                       "'%s' is on a file system (type 0x%lx) that cannot exchange two files in one step", r->t->path,
                       type);
    return err_hint(r->e, no, "take a patch instead: pinfold diff --patch");
}

/* What was kept, which on another file system is a copy: of another inode than the record knows. */
static int copy_back(int from, const char *from_name, const struct op *op, int to, const char *to_name)
{
    struct layer_object kept;
    int e = object_look(from, from_name, &kept);
    if (e < 0 || !kept.mode)
        return e < 0 ? e : -ENOENT;
    if ((kept.mode & S_IFMT) != (op->new.mode &S_IFMT))
        return -ESTALE;
    if (object_is(&kept, S_IFDIR)) { /* it is open until its entries are there */
        kept.mode = op->new.mode;
        kept.modified = op->new.modified;
    }
    return object_copy(from, from_name, &kept, to, to_name);
}

static int stage_judged(struct transacting *r, const struct op *op, const char *name)
{
    int e = 0;
    if (object_is(&op->new, S_IFLNK)) {
        const char *target = arena_str(r->mem, op->judged);
        e = target ? sys_symlinkat(target, r->stage, name) : -ENOMEM;
    } else {
        e = text_make(r->stage, name, op->judged);
    }
    return e < 0 ? e : object_dress(r->stage, name, &op->new);
}

static int stage_op(struct transacting *r, size_t i)
{
    struct op *op = &r->x->ops[i];
    const struct op *first = op->link ? &r->x->ops[op->link - 1] : NULL;
    char name[32], other[32];
    const char *last;
    struct layer_object made;
    (void)stage_name('n', i, name);
    int e = first && !first->why ? sys_linkat(r->stage, stage_name('n', op->link - 1, other), r->stage, name, 0) : -1;
    if (e < 0 && op->judged.p)
        e = stage_judged(r, op, name);
    own_fd int from = e < 0 && !op->judged.p ? object_parent(op->part ? r->t->store : r->source, op->from, &last) : -1;
    if (e < 0 && !op->judged.p)
        e = from < 0 ? from : -EXDEV;
    /* An undo gives back the very inode that it took out, if that lies on this file system. */
    if (e == -EXDEV && from >= 0 && r->x->kind == TRANSACTION_UNDO && !object_is(&op->new, S_IFDIR))
        e = sys_linkat(from, last, r->stage, name, 0);
    if (e < 0 && from >= 0)
        e = r->x->kind == TRANSACTION_UNDO ? copy_back(from, last, op, r->stage, name)
                                           : object_copy(from, last, &op->new, r->stage, name);
    if (e == 0 && op->keep) {
        struct layer_object as = op->new;
        as.mode = op->keep;
        e = object_dress(r->stage, name, &as);
    }
    if (e == 0)
        e = object_look(r->stage, name, &made);
    if (e == -ENOSPC || e == -EDQUOT)
        return run_failed(r, e, "no room to prepare the changes");
    if (e < 0) {
        refuse_op(r, op, e == -ESTALE || e == -ENOENT || e == -E2BIG ? 0 : e,
                  e == -ESTALE || e == -ENOENT ? "the box changed it at this moment; try again"
                  : e == -E2BIG                ? "its attributes do not fit on the workspace's file system"
                  : e == -EPERM                ? "its type or owner cannot be created here"
                                               : "cannot be copied");
        return 0;
    }
    op->ino = made.ino;
    return 0;
}

/*
 * On another file system than the workspace what is replaced or deleted is kept as a copy, made when it is out already. Whether that can
 * be made (its bytes read, its owner and attributes given) is known before: a file without any bytes tries it.
 */
static int try_to_keep(struct transacting *r, const struct op *op)
{
    const unsigned type = op->old.mode & S_IFMT;
    const char *last;
    if (type == S_IFCHR || type == S_IFBLK)
        return -EPERM;
    own_fd int dir = object_parent(r->t->workspace, op->path, &last);
    const bool opened = type == S_IFREG || (type == S_IFDIR && !(~op->old.mode & 0500));
    own_fd int from = dir < 0 || !opened ? -1 : object_open_as_is(dir, last, type);
    if (from == -EACCES && op->old.uid == geteuid())
        return 0; /* its mode can be changed then */
    if (dir < 0 || (opened && from < 0))
        return dir < 0 ? dir : from;
    own_fd int trial = sys_openat(r->store, "trial", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = trial;
    if (type == S_IFREG && e >= 0)
        e = object_copy_attributes(from, trial);
    struct layer_object as = op->old;
    as.mode = S_IFREG | (as.mode & 07777);
    if (e >= 0)
        e = object_dress(r->store, "trial", &as);
    (void)sys_unlinkat(r->store, "trial", 0);
    return e < 0 ? e : 0;
}

/* The attributes that a directory has are kept before others are set. */
static int keep_attributes(struct transacting *r, size_t i)
{
    struct op *op = &r->x->ops[i];
    const char *last;
    char name[32];
    snprintf(name, sizeof name, "%zu", i);
    own_fd int dir = object_parent(r->t->workspace, op->path, &last);
    int e = dir < 0 ? dir : object_copy(dir, last, &op->old, r->store, name);
    if (e < 0)
        refuse_op(r, op, e, "cannot be kept for undo");
    return 0;
}

/* The layer's own directory is on another file system than the workspace. */
static bool keeps_apart(const struct transacting *r)
{
    struct layer_object here, there;
    return object_look(r->t->workspace, "", &here) == 0 && object_look(r->t->store, "", &there) == 0 &&
           here.device != there.device;
}

static void add_room(const struct transacting *r, uint64_t *sum, const struct layer_object *o)
{
    const uint64_t room = r->x->kind == TRANSACTION_APPLY && o->room < o->size ? o->room : o->size;
    *sum = *sum > UINT64_MAX - room ? UINT64_MAX : *sum + room;
}

static int check_space(struct transacting *r)
{
    uint64_t fresh = 0, kept = 0, names = 0;
    struct statfs fs;
    for (size_t i = 0; i < r->x->n; i++) {
        const struct op *op = &r->x->ops[i];
        if (op->kind <= OP_REPLACE && !op->link && object_is(&op->new, S_IFREG))
            add_room(r, &fresh, &op->new);
        if (op->kind <= OP_DELETE && object_is(&op->old, S_IFREG))
            add_room(r, &kept, &op->old);
        names++;
    }
    int e = sys_fstatfs(r->t->workspace, &fs);
    if (e == 0 && fs.f_blocks && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < fresh)
        e = -ENOSPC;
    if (e == 0 && fs.f_files && fs.f_ffree < names)
        e = -ENOSPC;
    if (e < 0)
        return run_failed(r, e, "no room to prepare the changes");
    const bool apart = keeps_apart(r);
    e = apart && r->x->kind == TRANSACTION_APPLY ? sys_fstatfs(r->t->store, &fs) : 0;
    if (e == 0 && apart && r->x->kind == TRANSACTION_APPLY && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < kept)
        return err_sys(r->e, ERR_SYSTEM, ENOSPC, "layer %s: no room to keep what apply replaces", r->t->id);
    return 0;
}

static int stage_all(struct transacting *r)
{
    int e = try_exchange(r);
    const bool apart = r->x->kind == TRANSACTION_APPLY && keeps_apart(r);
    for (size_t i = 0; e == 0 && i < r->x->n; i++) {
        struct op *op = &r->x->ops[i];
        const int no = apart && (op->kind == OP_REPLACE || op->kind == OP_DELETE) ? try_to_keep(r, op) : 0;
        if (no < 0)
            refuse_op(r, op, no, "cannot be kept for undo");
        if (op->why)
            continue;
        if (op->kind == OP_CREATE || op->kind == OP_REPLACE)
            e = stage_op(r, i);
        else if (op->kind == OP_MODE && op->old.mode && r->x->kind == TRANSACTION_APPLY)
            e = keep_attributes(r, i);
    }
    if (e == 0) {
        e = sys_syncfs(r->stage);
        if (e < 0)
            e = run_failed(r, e, "cannot sync the changes");
    }
    return e;
}

/* ---- act ---- */

/* Whether the host has changed permissions or the like; of a file with several names the other operations do, too. */
static bool changed_since(const struct layer_object *before, const struct layer_object *now)
{
    return !object_is(now, S_IFDIR) && before->links < 2 && now->changed != before->changed;
}

/* Puts back what came out of `dir` and is not what was looked at. In the end the host's latest stands at the path. */
static void exchange_back(struct transacting *r, struct op *op, const char *name, int dir, const char *last)
{
    struct layer_object out;
    op->why = "the host changed it at this moment";
    for (int i = 0; i < EXCHANGES; i++) {
        if (sys_renameat2(r->stage, name, dir, last, RENAME_EXCHANGE) < 0) {
            /* The host removed ours, which it took for its own: what came out stays with what is kept. */
            return;
        }
        if (object_look(r->stage, name, &out) < 0 || out.ino == op->ino)
            return;
    }
}

static void replaced(struct transacting *r, struct op *op, const char *name, int dir, const char *last)
{
    struct layer_object out;
    int e = object_look(r->stage, name, &out);
    if (e < 0 || !object_untouched(&op->old, &out) || (object_is(&out, S_IFDIR) && !is_empty(r->stage, name)))
        exchange_back(r, op, name, dir, last);
}

static void act_replace(struct transacting *r, size_t i, int dir, const char *last)
{
    struct op *op = &r->x->ops[i];
    struct layer_object staged, now;
    char name[32];
    int e = object_look(r->stage, stage_name('n', i, name), &staged);
    if (e == 0 && staged.mode && staged.ino != op->ino) { /* an earlier call has exchanged them */
        replaced(r, op, name, dir, last);
        return;
    }
    if (e == 0)
        e = object_look(dir, last, &now);
    if (e < 0 || !staged.mode)
        refuse_op(r, op, e < 0 ? e : -ENOENT, "cannot be replaced");
    else if (!object_untouched(&op->old, &now) || changed_since(&op->old, &now))
        refuse_op(r, op, 0, "the host changed it at this moment");
    else if ((e = sys_renameat2(r->stage, name, dir, last, RENAME_EXCHANGE)) < 0)
        refuse_op(r, op, e, "cannot be replaced");
    else
        replaced(r, op, name, dir, last);
}

static void act_create(struct transacting *r, size_t i, int dir, const char *last)
{
    struct op *op = &r->x->ops[i];
    struct layer_object staged;
    char name[32];
    int e = object_look(r->stage, stage_name('n', i, name), &staged);
    if (e == 0 && !staged.mode)
        return; /* an earlier call has done it */
    if (e == 0)
        e = sys_renameat2(r->stage, name, dir, last, RENAME_NOREPLACE);
    if (e == -EEXIST)
        refuse_op(r, op, 0, "the host made something there at this moment");
    else if (e < 0)
        refuse_op(r, op, e, "cannot be created");
}

static void act_delete(struct transacting *r, size_t i, int dir, const char *last)
{
    struct op *op = &r->x->ops[i];
    struct layer_object out, now;
    char name[32];
    int e = object_look(r->stage, stage_name('o', i, name), &out);
    if (e == 0 && !out.mode) {
        e = object_look(dir, last, &now);
        if (e == 0 && !now.mode)
            refuse_op(r, op, 0, "the host removed it at this moment");
        else if (e == 0 && object_is(&now, S_IFDIR) && !is_empty(dir, last))
            refuse_op(r, op, 0, "it has entries that stay");
        else if (e == 0 && (!object_untouched(&op->old, &now) || changed_since(&op->old, &now)))
            refuse_op(r, op, 0, "the host changed it at this moment");
        if (e == 0 && !op->why)
            e = sys_renameat2(dir, last, r->stage, name, RENAME_NOREPLACE);
        if (e == 0 && !op->why)
            e = object_look(r->stage, name, &out);
    }
    if (e < 0)
        refuse_op(r, op, e, "cannot be deleted");
    if (op->why || (object_untouched(&op->old, &out) && (!object_is(&out, S_IFDIR) || is_empty(r->stage, name))))
        return;
    refuse_op(r, op, 0, "the host changed it at this moment");
    /* If the host has made another one meanwhile, this one stays with what is kept. */
    (void)sys_renameat2(r->stage, name, dir, last, RENAME_NOREPLACE);
}

/* Setting it again is harmless. */
static void act_mode(struct transacting *r, size_t i, int dir, const char *last)
{
    struct op *op = &r->x->ops[i];
    struct layer_object now;
    own_fd int fd = object_open(dir, last, S_IFDIR);
    int e = fd < 0 ? fd : object_look(fd, "", &now);
    const uint64_t ino = op->link ? r->x->ops[op->link - 1].ino : op->old.ino;
    if (e == 0 && now.ino != ino) {
        refuse_op(r, op, 0, "the host changed it at this moment");
        return;
    }
    if (e == 0 && *op->from && r->source >= 0) {
        const char *from_last;
        own_fd int parent = object_parent(r->source, op->from, &from_last);
        own_fd int from = parent < 0 ? parent : object_open(parent, from_last, S_IFDIR);
        e = from < 0 ? from : object_copy_attributes(from, fd);
    }
    if (e == 0)
        e = op->link ? object_dress(dir, last, &op->new) : sys_fchmod(fd, op->new.mode & 07777);
    if (e < 0)
        refuse_op(r, op, e, "cannot be changed");
}

/* An earlier call has deleted it, and perhaps the directory that held it, too. */
static bool was_deleted(const struct transacting *r, size_t i)
{
    const struct op *op = &r->x->ops[i];
    struct layer_object out;
    char name[32];
    return op->kind == OP_DELETE && object_look(r->stage, stage_name('o', i, name), &out) == 0 &&
           object_untouched(&op->old, &out) && (!object_is(&out, S_IFDIR) || is_empty(r->stage, name));
}

static void act(struct transacting *r, size_t i)
{
    struct op *op = &r->x->ops[i];
    const char *last;
    if (op->why || op->kind == OP_PARENT || (r->resumed && was_deleted(r, i)))
        return;
    own_fd int dir = object_parent(r->t->workspace, op->path, &last);
    if (dir < 0) {
        refuse_op(r, op, dir == -ENOENT || dir == -ELOOP || dir == -ENOTDIR ? 0 : dir,
                  dir == -ENOENT ? "the directory that holds it is not there"
                  : dir == -ELOOP || dir == -ENOTDIR
                      ? "the directory that holds it has become a link, or is no longer a directory"
                      : "cannot be reached");
        return;
    }
    if (op->kind == OP_CREATE)
        act_create(r, i, dir, last);
    else if (op->kind == OP_REPLACE)
        act_replace(r, i, dir, last);
    else if (op->kind == OP_DELETE)
        act_delete(r, i, dir, last);
    else
        act_mode(r, i, dir, last);
}

/* What stands at the paths now. `again`: only the time of change may be another one, for names of the same object have gone; what the
   host has put there meanwhile is not taken for ours. */
static void look_at_paths(struct transacting *r, bool again)
{
    for (size_t i = 0; i < r->x->n; i++) {
        struct op *op = &r->x->ops[i];
        const char *last;
        struct layer_object now;
        own_fd int dir = op->why || op->kind == OP_PARENT ? -1 : object_parent(r->t->workspace, op->path, &last);
        if (dir < 0 || object_look(dir, last, &now) < 0)
            now = (struct layer_object){0};
        if (!again || object_untouched(&op->at, &now))
            op->at = now;
    }
}

static int act_all(struct transacting *r)
{
    for (size_t i = 0; i < r->x->n; i++)
        act(r, i);
    int e = sys_syncfs(r->stage);
    if (e < 0)
        return run_failed(r, e, "cannot sync the changes");
    look_at_paths(r, false);
    return 0;
}

/* ---- keep ---- */

static int keep_one(struct transacting *r, const char *staged, const char *kept)
{
    struct layer_object o, there;
    char half[56];
    int e = object_look(r->stage, staged, &o);
    if (e < 0 || !o.mode)
        return e;
    e = sys_renameat2(r->stage, staged, r->store, kept, 0);
    if (e != -EXDEV)
        return e;
    e = object_look(r->store, kept, &there);
    if (e == 0 && !there.mode) {
        snprintf(half, sizeof half, "%s.new", kept);
        if (sys_unlinkat(r->store, half, 0) == -EISDIR)
            (void)sys_unlinkat(r->store, half, AT_REMOVEDIR);
        e = object_copy(r->stage, staged, &o, r->store, half);
        if (e == 0)
            e = sys_renameat2(r->store, half, r->store, kept, 0);
    }
    return e; /* it is removed with the staging directory, once the copies are synced */
}

/* Whether what is left in the staging directory for this operation came from the workspace. */
static bool came_out(const struct transacting *r, const struct op *op, const struct layer_object *left)
{
    (void)r;
    return left->mode && left->ino != op->ino;
}

/* A name that an earlier transaction of this number has not taken: what it has is somebody's, too. */
static int left_name(const struct transacting *r, size_t i, char room[48])
{
    struct layer_object o;
    int e = 0;
    snprintf(room, 48, "left-%zu", i);
    for (unsigned k = 1; (e = object_look(r->store, room, &o)) == 0 && o.mode; k++)
        snprintf(room, 48, "left-%zu.%u", i, k);
    return e;
}

static int keep_all(struct transacting *r)
{
    int e = 0;
    for (size_t i = 0; e == 0 && r->stage >= 0 && i < r->x->n; i++) {
        struct op *op = &r->x->ops[i];
        struct layer_object left;
        char name[32], kept[48];
        if (op->kind > OP_DELETE)
            continue;
        (void)stage_name(op->kind == OP_DELETE ? 'o' : 'n', i, name);
        e = object_look(r->stage, name, &left);
        /* An undo takes out what apply had put there and the layer has; what else came out is somebody's. */
        if (e < 0 || !came_out(r, op, &left) ||
            (r->x->kind == TRANSACTION_UNDO && !op->why && object_untouched(&op->old, &left)))
            continue;
        if (op->why || r->x->kind == TRANSACTION_UNDO) {
            if ((e = left_name(r, i, kept)) < 0)
                break;
            op->why =
                arena_printf(r->mem, "%s; what stood there in between is kept in the layer, undo/%llu/%s",
                             op->why ? op->why : "it is not what was applied", (unsigned long long)r->x->number, kept);
        } else {
            snprintf(kept, sizeof kept, "%zu", i);
        }
        e = keep_one(r, name, kept);
    }
    if (e == 0)
        e = sys_syncfs(r->store);
    return e < 0 ? err_sys(r->e, ERR_SYSTEM, -e, "layer %s: cannot keep what was replaced", r->t->id) : 0;
}

/* ---- done ---- */

static int write_ledger(struct transacting *r)
{
    struct ledger_entry *entries = arena_zero(r->mem, (r->x->n + 1) * sizeof *entries);
    size_t n = 0;
    for (size_t i = 0; entries && i < r->x->n; i++) {
        const struct op *op = &r->x->ops[i];
        struct layer_object now = op->at;
        if (op->why || op->merged || (op->kind == OP_MODE && op->link))
            continue;
        if (op->kind == OP_PARENT) {
            const char *last;
            own_fd int dir = *op->path ? object_parent(r->t->workspace, op->path, &last) : -1;
            int e = *op->path ? dir < 0 ? dir : object_look(dir, last, &now) : object_look(r->t->workspace, "", &now);
            if (e < 0 || !object_same_inode(&now, &op->old))
                continue;
        }
        entries[n++] = (struct ledger_entry){.path = op->path, .now = now};
    }
    if (!entries)
        return err_sys(r->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot write what was applied", r->t->id);
    return ledger_write(r->t->store, r->mem, entries, n, r->e);
}

/* The paths that an undo has taken back. */
static struct ledger done_paths(struct transacting *r)
{
    struct ledger done = {0};
    for (size_t i = 0; r->x->kind == TRANSACTION_UNDO && i < r->x->n; i++) {
        const struct op *op = &r->x->ops[i];
        struct ledger_entry *slot = NULL;
        if (!op->why && op->kind != OP_PARENT)
            slot = arena_push(r->mem, &done.entries, &done.n, sizeof *slot);
        if (slot)
            slot->path = op->path;
    }
    ledger_sort(&done);
    return done;
}

/* The record without what is not to be taken back: of an apply what was refused, of an undo what it has done. */
static int write_record(struct transacting *r)
{
    struct transaction record = *r->x, before = {0};
    record.phase = PHASE_DONE;
    if (r->x->kind == TRANSACTION_UNDO) {
        int e = journal_read(r->store, r->mem, &before, r->e);
        if (e == -ENOENT)
            return 0; /* an earlier call has removed it */
        if (e < 0)
            return e;
        record = before;
    }
    record.ops = arena_zero(r->mem, (record.n + 1) * sizeof *record.ops);
    record.n = 0;
    const struct op *from = r->x->kind == TRANSACTION_UNDO ? before.ops : r->x->ops;
    const size_t n = r->x->kind == TRANSACTION_UNDO ? before.n : r->x->n;
    bool real = false;
    const struct ledger undone = done_paths(r);
    for (size_t i = 0; record.ops && i < n; i++) {
        struct op op = from[i];
        const bool drop = op.why || op.kind == OP_PARENT || ledger_find(&undone, op.path);
        if (drop)
            continue;
        if (r->x->kind == TRANSACTION_APPLY && !(op.from = arena_printf(r->mem, "%zu", i)))
            break;
        op.link = 0;
        /* Objects are not taken back, nor an index that the host has written since. */
        real |= (op.kind != OP_MODE || op.old.mode) && !repo_is_object(op.path) &&
                (r->x->kind == TRANSACTION_APPLY || !repo_is_index(op.path));
        record.ops[record.n++] = op;
    }
    if (arena_failed(r->mem))
        return err_sys(r->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot write the record", r->t->id);
    if (real)
        return journal_write(r->store, &record, r->e);
    (void)sys_unlinkat(r->store, JOURNAL, 0);
    return 0;
}

/* An undo has put back the very inodes that were kept: their second names go. */
static void drop_restored(struct transacting *r)
{
    for (size_t i = 0; r->x->kind == TRANSACTION_UNDO && i < r->x->n; i++) {
        const struct op *op = &r->x->ops[i];
        if (!op->why && op->kind != OP_PARENT && *op->from && sys_unlinkat(r->store, op->from, 0) == -EISDIR)
            (void)sys_unlinkat(r->store, op->from, AT_REMOVEDIR);
    }
}

/* From wherever it is to the end. */
static int run_on(struct transacting *r)
{
    int e = 0;
    if (r->x->phase == PHASE_ACT) {
        e = act_all(r);
        if (e == 0)
            e = write_phase(r, PHASE_KEEP);
    }
    if (e == 0)
        e = keep_all(r);
    if (e == 0)
        e = remove_stage(r);
    if (e == 0)
        e = write_record(r);
    if (e < 0)
        return e;
    drop_restored(r);
    look_at_paths(r, true);
    e = write_ledger(r);
    if (e == 0 && r->x->kind == TRANSACTION_APPLY)
        e = write_record(r); /* with the times that the ledger has */
    if (e < 0)
        return e;
    e = sys_unlinkat(r->t->store, JOURNAL, 0);
    if (e == 0 || e == -ENOENT)
        e = sys_fsync(r->t->store);
    return e < 0 ? err_sys(r->e, ERR_SYSTEM, -e, "layer %s: cannot remove the journal", r->t->id) : 0;
}

/* Nothing has happened in the workspace yet. */
static int run_abandon(struct transacting *r)
{
    struct err unsaid;
    struct err *e = r->e;
    if (!r->resumed)
        r->e = &unsaid; /* the reason has been said */
    int no = remove_stage(r);
    r->e = e;
    if (no == 0)
        (void)sys_unlinkat(r->t->store, JOURNAL, 0);
    return no;
}

static void run_close(struct transacting *r)
{
    sys_drop(&r->stage);
    sys_drop(&r->store);
}

int transaction_run(const struct layer_trees *t, int source, struct transaction *x, struct arena *mem, struct err *e)
{
    struct transacting r = {.t = t, .x = x, .mem = mem, .e = e, .source = source, .stage = -1, .store = -1};
    own_fd int lock = transaction_lock(t, e);
    if (lock < 0)
        return lock;
    if (transaction_pending(t))
        return err_say(e, ERR_REFUSED, "layer %s: another pinfold began to apply it; try again", t->id);
    struct layer_object parent;
    x->made_parent = object_look(t->workspace, STAGE_PARENT, &parent) == 0 && !parent.mode;
    if (x->kind == TRANSACTION_APPLY)
        transaction_clear(lock, x->number); /* what one left that was killed while it was staged */
    int no = check_space(&r);
    if (no == 0)
        no = open_store(&r);
    if (no == 0)
        no = write_phase(&r, PHASE_STAGE);
    if (no < 0) {
        run_close(&r);
        return no;
    }
    no = make_stage(&r);
    if (no == 0)
        no = stage_all(&r);
    if (no == 0)
        no = write_phase(&r, PHASE_ACT);
    if (no == 0)
        no = run_on(&r);
    else
        (void)run_abandon(&r);
    run_close(&r);
    return no;
}

int transaction_resume(const struct layer_trees *t, struct arena *mem, struct transaction *ret, struct err *e)
{
    struct transacting r = {
        .t = t, .x = ret, .mem = mem, .e = e, .source = -1, .stage = -1, .store = -1, .resumed = true};
    char path[64];
    if (!transaction_pending(t))
        return 0;
    own_fd int lock = transaction_lock(t, e);
    int no = lock < 0 ? lock : journal_read(t->store, mem, ret, e);
    if (no == -ENOENT)
        return 0;
    if (no < 0)
        return no;
    stage_of(&r, path);
    r.stage = open_inside(&r, path);
    no = open_store(&r);
    if (no == 0 && ret->kind == TRANSACTION_APPLY)
        r.source = t->upper;
    else if (no == 0)
        r.source = r.store;
    if (no == 0 && r.stage < 0 && r.stage != -ENOENT)
        no = run_failed(&r, r.stage, "cannot open the directory '" STAGE_PARENT "/apply-ID'");
    if (no == 0 && r.stage < 0 && ret->phase == PHASE_ACT)
        no = err_say(e, ERR_SYSTEM, "layer %s: '%s/%s' is gone, which held what was being applied", t->id, t->path,
                     path);
    if (no == 0)
        no = ret->phase == PHASE_STAGE ? run_abandon(&r) : run_on(&r);
    run_close(&r);
    return no < 0 ? no : 1;
}
