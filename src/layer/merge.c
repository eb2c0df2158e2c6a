/*
 * Texts that both the layer and the host have changed: merged by lines, against what the box began with. That is known where the file was
 * still untouched when a box of the layer ended (its hash was noted then) and git has it; otherwise there is no base, and nothing is
 * merged.
 */
#include <sha1.h>
#include <sha2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hex.h"

#include "layer/repo/repo.h"
#include "layer/side.h"
#include "layer/text.h"
#include "sys/fd.h"
#include "sys/remove.h"

#define NOTES      "base-notes" /* lines of a hash and a path, below the store */
#define MERGED     "merged"     /* below the store: what is merged, until it is applied */
#define NOTED_SIZE ((uint64_t)1 << 20)
#define NOTED_MAX  5000
#define MERGES_MAX 200

struct base_note {
    const char *path;
    char hashes[2][REPO_HASH_MAX + 1]; /* SHA-1, SHA-256 */
};

/* As git names a file's content, with either kind of hash. */
static void blob_names(struct str content, char sha1[REPO_HASH_MAX + 1], char sha256[REPO_HASH_MAX + 1])
{
    char head[32];
    const size_t n = (size_t)snprintf(head, sizeof head, "blob %zu", content.n) + 1;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA1_CTX a;
    SHA2_CTX b;
    SHA1Init(&a);
    SHA1Update(&a, (const uint8_t *)head, n);
    SHA1Update(&a, (const uint8_t *)content.p, content.n);
    SHA1Final(digest, &a);
    hex_digits(digest, SHA1_DIGEST_LENGTH, sha1);
    SHA256Init(&b);
    SHA256Update(&b, (const uint8_t *)head, n);
    SHA256Update(&b, (const uint8_t *)content.p, content.n);
    SHA256Final(digest, &b);
    hex_digits(digest, SHA256_DIGEST_LENGTH, sha256);
}

static bool is_text_change(const struct change *c)
{
    return c->kind == CHANGE_EDITED && object_is(&c->old, S_IFREG) && object_is(&c->new, S_IFREG) &&
           c->what == CHANGED_CONTENT && !(c->alarms & ALARM_GIT) && c->old.links == 1 && c->new.links == 1 &&
           c->old.size <= NOTED_SIZE && c->new.size <= NOTED_SIZE;
}

static const struct base_note *find_note(const struct base_note *notes, size_t n, const char *path)
{
    for (size_t i = n; i-- > 0;)
        if (same(notes[i].path, path))
            return &notes[i];
    return NULL;
}

static int read_notes(int store, struct arena *mem, struct base_note **ret, size_t *ret_n)
{
    struct str text, line;
    *ret = NULL;
    *ret_n = 0;
    const int e = text_read(store, NOTES, mem, &text);
    while (e == 0 && *ret_n < NOTED_MAX && text_line(&text, &line)) {
        struct base_note *note = arena_push(mem, ret, ret_n, sizeof *note);
        const struct str a = str_until(&line, ' '), b = str_until(&line, ' ');
        if (!note)
            return -ENOMEM;
        if (!repo_is_hash(a, 40) || !repo_is_hash(b, 64) || !(note->path = text_rest(line, mem)))
            return -EBADMSG;
        memcpy(note->hashes[0], a.p, a.n);
        memcpy(note->hashes[1], b.p, b.n);
    }
    return e == -ENOENT ? 0 : e;
}

/* The path's own hash at this moment; false: it cannot be read, or changed meanwhile. */
static bool note_one(const struct layer_trees *t, const struct change *c, struct base_note *ret)
{
    auto_arena struct arena *mem = arena_new(SIDES_ROOM);
    struct side side;
    if (!mem || side_read(t, t->workspace, c->path, &c->old, NULL, mem, &side) < 0 || !side_is_text(&side) ||
        !part_unchanged(t->workspace, c->path, &c->old))
        return false;
    *ret = (struct base_note){.path = c->path};
    blob_names(side.bytes, ret->hashes[0], ret->hashes[1]);
    return true;
}

static void put_note(struct buf *out, const struct base_note *note)
{
    buf_printf(out, "%s %s ", note->hashes[0], note->hashes[1]);
    text_put_rest(out, note->path);
}

bool merge_note(const struct layer_trees *t, const struct changes *all)
{
    auto_arena struct arena *mem = arena_new(LAYER_READ_MAX);
    auto_buf struct buf out = BUF(LAYER_READ_MAX);
    struct base_note *old, fresh;
    size_t n_old, n = 0;
    struct layer_object git;
    struct str before_all;
    if (!mem || object_look(t->workspace, REPO_DIR, &git) < 0 || !git.mode ||
        read_notes(t->store, mem, &old, &n_old) < 0)
        return false;
    bool *again = arena_zero(mem, n_old + 1);
    for (size_t i = 0; again && i < all->n && n < NOTED_MAX; i++) {
        const struct change *c = &all->all[i];
        if (c->conflict || !is_text_change(c) || !note_one(t, c, &fresh))
            continue;
        const struct base_note *before = find_note(old, n_old, c->path);
        if (before)
            again[before - old] = true;
        put_note(&out, &fresh);
        n++;
    }
    for (size_t i = 0; again && i < n_old && n < NOTED_MAX; i++, n++)
        if (!again[i])
            put_note(&out, &old[i]);
    const bool known = again && text_read(t->store, NOTES, mem, &before_all) == 0 && str_eq(before_all, buf_view(&out));
    /* Without notes nothing is merged. */
    return n && again && !known && text_write(t->store, NOTES, &out) == 0;
}

int merges_find(const struct layer_trees *t, const struct changes *all, const char *const *paths, size_t digits,
                struct arena *mem, struct merges *ret, struct err *e)
{
    struct base_note *notes;
    struct ledger ledger;
    size_t n;
    *ret = (struct merges){0};
    int no = ledger_read(t->store, mem, &ledger, e);
    if (no < 0)
        return no;
    if (read_notes(t->store, mem, &notes, &n) < 0)
        return 0;
    for (size_t i = 0; i < all->n && ret->n < MERGES_MAX; i++) {
        struct change *c = &all->all[i];
        const struct base_note *note = find_note(notes, n, c->path);
        /* What was applied once has another base than what was noted. */
        if (!note || !same(c->conflict, CONFLICT_TOUCHED) || !is_text_change(c) || ledger_find(&ledger, c->path) ||
            !path_wanted(c->path, paths, NULL))
            continue;
        struct layer_merge *slot = arena_push(mem, &ret->all, &ret->n, sizeof *slot);
        if (!slot)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot merge", t->id);
        *slot = (struct layer_merge){.c = c, .hash = note->hashes[digits == 64]};
    }
    return 0;
}

static int put_side(const struct layer_trees *t, int top, const struct change *c, size_t i, const char *which, int fd)
{
    auto_arena struct arena *mem = arena_new(SIDES_ROOM);
    struct side side;
    char name[64];
    if (!mem)
        return -ENOMEM;
    const int no = side_read(t, top, c->path, top == t->workspace ? &c->old : &c->new, NULL, mem, &side);
    snprintf(name, sizeof name, "in/m/%zu.%s", i, which);
    return no < 0 ? no : bundle_bytes(fd, name, side.bytes);
}

int merges_ask(const struct layer_trees *t, const struct merges *m, int fd, struct err *e)
{
    auto_buf struct buf list = BUF(1u << 20);
    int no = 0;
    for (size_t i = 0; no == 0 && i < m->n; i++) {
        buf_printf(&list, "%zu %s\n", i, m->all[i].hash);
        no = put_side(t, t->workspace, m->all[i].c, i, "ours", fd);
        if (no == 0)
            no = put_side(t, t->upper, m->all[i].c, i, "theirs", fd);
    }
    if (no == 0)
        no = buf_ok(&list) ? bundle_bytes(fd, "in/merges", buf_view(&list)) : -ENOMEM;
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot read what is to be merged", t->id) : 0;
}

/* ---- what git made of them ---- */

void merges_clear(const struct layer_trees *t)
{
    remove_tree(t->store, MERGED);
}

static int take_one(const struct layer_trees *t, struct change *c, size_t i, int answer, int dir, struct arena *mem)
{
    struct str content;
    char name[32], part[32];
    snprintf(part, sizeof part, "m%zu", i);
    snprintf(name, sizeof name, "%zu", i);
    if (!bundle_text(answer, part, 4 * NOTED_SIZE, mem, &content))
        return -EBADMSG;
    int no = part_write(t, c, dir, name, content);
    if (no == 0 && (!part_unchanged(t->workspace, c->path, &c->old) || !part_unchanged(t->upper, c->path, &c->new)))
        no = -ESTALE;
    if (no == 0)
        no = object_look(dir, name, &c->new);
    if (no == 0 && !(c->part = arena_printf(mem, MERGED "/%s", name)))
        no = -ENOMEM;
    if (no == 0) {
        c->conflict = NULL;
        c->merged = true;
    }
    return no;
}

/* Whether an apply that can be taken back has merged the file as it stands there now: it would get its marks twice. */
static int is_merged(const struct layer_trees *t, const struct change *c, struct arena *mem, struct err *e)
{
    uint64_t *records;
    size_t n;
    int no = transaction_list(t, mem, &records, &n, e);
    for (size_t i = n; no == 0 && i-- > 0;) {
        struct transaction x;
        no = transaction_record(t, records[i], mem, &x, e);
        for (size_t k = 0; no == 0 && k < x.n; k++)
            if (x.ops[k].merged && !x.ops[k].why && same(x.ops[k].path, c->path) &&
                object_untouched(&x.ops[k].at, &c->old) && x.ops[k].at.changed == c->old.changed)
                no = 1;
    }
    return no;
}

int merges_take(const struct layer_trees *t, const struct merges *m, int answer, enum merge_kind kind,
                struct arena *mem, struct apply_outcome *out, struct err *e)
{
    struct str list, line;
    merges_clear(t);
    int no = sys_mkdirat(t->store, MERGED, 0700);
    own_fd int dir = no < 0 ? no : sys_openat(t->store, MERGED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir < 0)
        return err_sys(e, ERR_SYSTEM, -dir, "layer %s: cannot make '" MERGED "'", t->id);
    if (!bundle_text(answer, "merged", 1u << 20, mem, &list))
        return err_say(e, ERR_SYSTEM, "layer %s: git's answer about merges is damaged", t->id);
    while (text_line(&list, &line)) {
        int64_t i;
        if (!text_number(&line, &i) || i < 0 || (uint64_t)i >= m->n)
            return err_say(e, ERR_SYSTEM, "layer %s: git's answer about merges is damaged", t->id);
        struct change *c = m->all[i].c;
        const bool clean = str_is(line, "0");
        if (str_is(line, "none"))
            continue;
        if (!clean && kind != MERGE_MARK) {
            c->conflict = "the host and the box changed the same lines";
            continue;
        }
        const int again = clean ? 0 : is_merged(t, c, mem, e);
        if (again < 0)
            return again;
        if (again) {
            c->conflict = "it was merged already, with conflicts that are marked in it; undo takes that back";
            continue;
        }
        const char **said = arena_push(mem, &out->said, &out->n_said, sizeof *said);
        no = said ? take_one(t, c, (size_t)i, answer, dir, mem) : -ENOMEM;
        if (no < 0)
            return err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot merge '%.300s'", t->id, c->path);
        *said = arena_printf(mem, "merged %s%s", c->path, clean ? "" : ", with conflicts that are marked in it");
        if (!*said)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot merge", t->id);
    }
    return 0;
}
