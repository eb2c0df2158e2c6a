/*
 * Transactions as files: the journal of the one under way, and the records of undo/. A record is the journal of an apply as it
 * ended, undo/NUMBER/journal, beside what it has taken out of the workspace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "layer/change.h"
#include "layer/text.h"
#include "sys/fd.h"

#define JOURNAL_HEAD "pinfold journal 1"
#define MAX_RECORDS  100000
#define UNDO_BYTES   ((uint64_t)1 << 30) /* on the disk, of what applies have replaced; the last one may be larger */
#define OP_MERGED    16                  /* is added to the number of a kind */

int journal_write(int dir, const struct transaction *x, struct err *e)
{
    auto_buf struct buf out = BUF(LAYER_READ_MAX);
    buf_printf(&out, "%s\n%d %d %llu %lld %d %zu \n", JOURNAL_HEAD, (int)x->kind, (int)x->phase,
               (unsigned long long)x->number, (long long)x->when, x->made_parent, x->n);
    for (size_t i = 0; i < x->n; i++) {
        const struct op *op = &x->ops[i];
        buf_printf(&out, "%d %zu %llu ", (int)op->kind + (op->merged ? OP_MERGED : 0), op->link,
                   (unsigned long long)op->ino);
        text_put_object(&out, &op->old);
        text_put_object(&out, &op->new);
        text_put_object(&out, &op->at);
        text_put_rest(&out, op->path);
        text_put_rest(&out, op->from);
        text_put_rest(&out, op->why ? op->why : "");
    }
    int r = text_write(dir, JOURNAL, &out);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot write the journal of the layer") : 0;
}

static bool read_op(struct str *text, struct arena *mem, struct op *ret)
{
    struct str line, from, why;
    int64_t kind, link, ino;
    if (!text_line(text, &line) || !text_number(&line, &kind) || !text_number(&line, &link) ||
        !text_number(&line, &ino) || !text_object(&line, &ret->old) || !text_object(&line, &ret->new) ||
        !text_object(&line, &ret->at) || !text_line(text, &from) || !text_line(text, &why))
        return false;
    ret->merged = kind >= OP_MERGED;
    kind -= ret->merged ? OP_MERGED : 0;
    if (kind < OP_CREATE || kind > OP_PARENT)
        return false;
    ret->kind = (enum op_kind)kind;
    ret->link = (size_t)link;
    ret->ino = (uint64_t)ino;
    ret->path = text_rest(line, mem);
    ret->from = text_rest(from, mem);
    ret->why = why.n ? text_rest(why, mem) : NULL;
    return ret->path && ret->from && (!why.n || ret->why);
}

static bool read_journal(struct str *text, struct arena *mem, struct transaction *ret)
{
    struct str line;
    int64_t kind, phase, number, made, n;
    if (!text_line(text, &line) || !str_is(line, JOURNAL_HEAD) || !text_line(text, &line) ||
        !text_number(&line, &kind) || !text_number(&line, &phase) || !text_number(&line, &number) ||
        !text_number(&line, &ret->when) || !text_number(&line, &made) || !text_number(&line, &n) || n < 0 ||
        (uint64_t)n > text->n || phase < PHASE_STAGE || phase > PHASE_DONE || kind < TRANSACTION_APPLY ||
        kind > TRANSACTION_UNDO || number < 1)
        return false;
    ret->kind = (enum transaction_kind)kind;
    ret->phase = (enum journal_phase)phase;
    ret->number = (uint64_t)number;
    ret->made_parent = made;
    ret->n = (size_t)n;
    ret->ops = arena_zero(mem, (ret->n + 1) * sizeof *ret->ops);
    for (size_t i = 0; ret->ops && i < ret->n; i++) {
        if (!read_op(text, mem, &ret->ops[i]) || ret->ops[i].link > ret->n)
            return false;
    }
    return ret->ops && text->n == 0;
}

int journal_read(int dir, struct arena *mem, struct transaction *ret, struct err *e)
{
    struct str text;
    *ret = (struct transaction){0};
    int r = text_read(dir, JOURNAL, mem, &text);
    if (r == -ENOENT)
        return r;
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot read the journal of the layer");
    if (!read_journal(&text, mem, ret))
        return err_say(e, ERR_SYSTEM, "the journal of the layer is damaged; nothing was done");
    return 0;
}

/* ---- records ---- */

bool transaction_pending(const struct layer_trees *t)
{
    struct layer_object o;
    return object_look(t->store, JOURNAL, &o) == 0 && o.mode;
}

int transaction_lock(const struct layer_trees *t, struct err *e)
{
    int r = sys_mkdirat(t->store, UNDO, 0700);
    int fd =
        r == 0 || r == -EEXIST ? sys_openat(t->store, UNDO, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : r;
    r = fd < 0 ? fd : sys_flock(fd, LOCK_EX | LOCK_NB);
    if (r == 0)
        return fd;
    if (fd >= 0)
        sys_drop(&fd);
    if (r == -EAGAIN) {
        (void)err_say(e, ERR_REFUSED, "layer %s: it is being applied or taken back by another pinfold; wait for it",
                      t->id);
        return -EBUSY;
    }
    return err_sys(e, ERR_SYSTEM, -r, "layer %s: cannot lock '%s'", t->id, UNDO);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int transaction_record(const struct layer_trees *t, uint64_t number, struct arena *mem, struct transaction *ret,
                       struct err *e)
{
    uint64_t *numbers;
    size_t n;
    char path[64];
    int r = transaction_list(t, mem, &numbers, &n, e);
    if (r < 0)
        return r;
    if (!number && n)
        number = numbers[n - 1];
    snprintf(path, sizeof path, UNDO "/%llu", (unsigned long long)number);
    own_fd int dir = sys_openat(t->store, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    r = dir < 0 || !number ? -ENOENT : journal_read(dir, mem, ret, e);
    if (r != -ENOENT)
        return r;
    /* Not -ENOENT, which says that there is no such layer. */
    (void)err_say(e, ERR_POLICY, "layer %s: there is no apply to take back", t->id);
    return -ENODATA;
}

/* Removes a directory of undo/; the record first, so that what is left of it is none. */
static void remove_record(int undo, const char *name)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int dir = sys_openat(undo, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    if (dir < 0)
        return;
    (void)sys_unlinkat(dir, JOURNAL, 0);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        /* What the host had changed in the middle of an apply is nobody's to remove but a person's. */
        if (!str_starts(str_of(d->name), STR("left-")) && sys_unlinkat(dir, d->name, 0) == -EISDIR)
            (void)sys_unlinkat(dir, d->name, AT_REMOVEDIR);
    }
    (void)sys_unlinkat(undo, name, AT_REMOVEDIR);
}

void transaction_clear(int undo, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    remove_record(undo, name);
}

/* Numbers in undo/, ascending; `records`: only of those that can be taken back. */
static int list_numbers(const struct layer_trees *t, bool records, struct arena *mem, uint64_t **ret, size_t *ret_n,
                        struct err *e)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int dir = sys_openat(t->store, UNDO, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    *ret = NULL;
    *ret_n = 0;
    if (dir < 0)
        return dir == -ENOENT ? 0 : err_sys(e, ERR_SYSTEM, -dir, "cannot read '%s' of the layer", UNDO);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        char path[288];
        struct layer_object o;
        char *end;
        const unsigned long long number = strtoull(d->name, &end, 10);
        snprintf(path, sizeof path, "%s/" JOURNAL, d->name);
        /* Without a record it is one under way, or was removed halfway. */
        if (*end || !number || (records && (object_look(dir, path, &o) < 0 || !o.mode)))
            continue;
        uint64_t *slot = *ret_n < MAX_RECORDS ? arena_push(mem, ret, ret_n, sizeof *slot) : NULL;
        if (!slot)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read '%s' of the layer", UNDO);
        *slot = number;
    }
    if (*ret_n)
        qsort(*ret, *ret_n, sizeof **ret, by_number);
    return entries.no < 0 ? err_sys(e, ERR_SYSTEM, -entries.no, "cannot read '%s' of the layer", UNDO) : 0;
}

int transaction_list(const struct layer_trees *t, struct arena *mem, uint64_t **ret, size_t *ret_n, struct err *e)
{
    return list_numbers(t, true, mem, ret, ret_n, e);
}

int transaction_numbers(const struct layer_trees *t, struct arena *mem, uint64_t **ret, size_t *ret_n, struct err *e)
{
    return list_numbers(t, false, mem, ret, ret_n, e);
}

uint64_t transaction_bytes(int undo, uint64_t number)
{
    char name[32], room[4096] __attribute__((aligned(8)));
    uint64_t bytes = 0;
    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    own_fd int dir = sys_openat(undo, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    for (const struct sys_dirent *d; dir >= 0 && (d = sys_next_entry(&entries));) {
        struct layer_object o;
        if (object_look(dir, d->name, &o) == 0 && !object_is(&o, S_IFDIR) && o.links)
            bytes += o.room / o.links; /* a name of a file that others have, too, frees nothing alone */
    }
    return bytes;
}

/* How many of the latest records stay: at most `keep`, as many as UNDO_BYTES hold, and the last one in any case. */
static size_t kept_records(int undo, const uint64_t *records, size_t n, size_t keep)
{
    uint64_t bytes = 0;
    size_t stay = 0;
    while (stay < n && stay < keep) {
        bytes += transaction_bytes(undo, records[n - 1 - stay]);
        if (stay && bytes > UNDO_BYTES)
            break;
        stay++;
    }
    return stay;
}

int transaction_prune(const struct layer_trees *t, size_t keep, struct err *e)
{
    auto_arena struct arena *mem = arena_new(1u << 24);
    uint64_t *numbers, *records;
    size_t n, n_records;
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read '%s' of the layer", UNDO);
    own_fd int lock = transaction_lock(t, e);
    if (lock < 0 || transaction_pending(t)) /* one under way has no record yet */
        return lock == -EBUSY || lock >= 0 ? 0 : lock;
    int r = list_numbers(t, false, mem, &numbers, &n, e);
    if (r == 0)
        r = list_numbers(t, true, mem, &records, &n_records, e);
    if (r == 0)
        keep = kept_records(lock, records, n_records, keep);
    for (size_t i = 0; r == 0 && i < n; i++) {
        bool stays = false;
        for (size_t k = n_records - keep; k < n_records; k++)
            stays |= records[k] == numbers[i];
        if (!stays)
            transaction_clear(lock, numbers[i]);
    }
    return r;
}
