/*
 * Makes the operations by which the unit lands: objects first, then refs, HEAD, the index and the logs, so that at no moment a ref names
 * an object that is not there. What is written are files that the git in the box made (a pack, its index, the index of the work
 * tree) and texts that were judged here.
 */
#include <sha1.h>
#include <sha2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/hex.h"

#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"
#include "sys/remove.h"

#define ROOM        (128u << 10)
#define TYPES_MAX   ((size_t)16 << 20)
#define HASH_BYTES  32
#define EXCLUDE_MAX ((size_t)64 << 10)

struct landing {
    const struct layer_trees *t;
    struct repo *r;
    int answer, parts;
    struct arena *mem;
    struct apply_more *ret;
    struct apply_outcome *out;
    struct err *e;
    struct str types;
    size_t n_parts;
};

static int land_no_memory(struct landing *l)
{
    return err_sys(l->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply its repository", l->t->id);
}

static int land_refuse(struct landing *l, const char *path, const char *why)
{
    return outcome_refuse(l->mem, l->out, path, why) < 0 ? land_no_memory(l) : 0;
}

/* ---- prepared files ---- */

void repo_parts_clear(const struct layer_trees *t)
{
    remove_tree(t->store, REPO_PARTS);
}

/* Made anew, unless another repository has parts in it. */
static int landing_parts(const struct layer_trees *t, bool used)
{
    if (!used)
        repo_parts_clear(t);
    const int e = used ? 0 : sys_mkdirat(t->store, REPO_PARTS, 0700);
    return e < 0 ? e : sys_openat(t->store, REPO_PARTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* As the workspace's HEAD is, so that a repository of several people stays one; of a new one as the box's. */
static struct layer_object dressed(const struct landing *l, uint32_t mode)
{
    struct layer_object as = l->r->dress;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    as.mode = mode;
    as.modified = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return as;
}

static uint32_t file_mode(const struct landing *l)
{
    return l->r->dress.mode & 0666;
}

/* An operation that puts the prepared object of this name at `path`. */
static struct op *add_landing(struct landing *l, const char *path, const char *part, const struct layer_object *old)
{
    struct layer_object made;
    struct op *op = arena_push(l->mem, &l->ret->ops, &l->ret->n, sizeof *op);
    const char *from = arena_printf(l->mem, REPO_PARTS "/%s", part);
    if (!op || !from || object_look(l->parts, part, &made) < 0)
        return NULL;
    *op = (struct op){
        .kind = old && old->mode ? OP_REPLACE : OP_CREATE, .path = path, .from = from, .new = made, .part = true};
    if (old)
        op->old = *old;
    return op;
}

static bool is_made(const struct landing *l, const char *path)
{
    for (size_t i = 0; i < l->ret->n; i++)
        if (l->ret->ops[i].kind == OP_CREATE && same(l->ret->ops[i].path, path))
            return true;
    return false;
}

static bool is_deleted(const struct landing *l, const char *path)
{
    for (size_t i = 0; i < l->ret->n; i++)
        if (l->ret->ops[i].kind == OP_DELETE && same(l->ret->ops[i].path, path))
            return true;
    return false;
}

/* Directories above `path` that the workspace does not have. */
static int add_directories(struct landing *l, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        const char *above = arena_str(l->mem, (struct str){path, (size_t)(slash - path)}), *last;
        struct layer_object o = {0};
        char part[32];
        if (!above)
            return land_no_memory(l);
        own_fd int dir = repo_parent(l->t, l->t->workspace, above, &last);
        if (is_made(l, above) || (dir >= 0 && object_look(dir, last, &o) == 0 && o.mode && !is_deleted(l, above)))
            continue;
        snprintf(part, sizeof part, "d%zu", l->n_parts++);
        const uint32_t mode = file_mode(l);
        const struct layer_object as = dressed(l, S_IFDIR | mode | (mode & 0444) >> 2);
        int e = sys_mkdirat(l->parts, part, 0700);
        if (e == 0)
            e = object_dress(l->parts, part, &as);
        if (e < 0 || !add_landing(l, above, part, NULL))
            return e < 0 ? err_sys(l->e, ERR_SYSTEM, -e, "layer %s: cannot prepare '%.300s'", l->t->id, above)
                         : land_no_memory(l);
    }
    return 0;
}

/* A file of the repository gets this text. */
static int land_text(struct landing *l, const char *path, struct str text, const struct layer_object *old)
{
    char part[32];
    const struct layer_object as = dressed(l, S_IFREG | (old && old->mode ? old->mode & 0777 : file_mode(l)));
    int e = add_directories(l, path);
    if (e < 0)
        return e;
    snprintf(part, sizeof part, "t%zu", l->n_parts++);
    e = text_make(l->parts, part, text);
    if (e == 0)
        e = object_dress(l->parts, part, &as);
    if (e < 0)
        return err_sys(l->e, ERR_SYSTEM, -e, "layer %s: cannot prepare '%.300s'", l->t->id, path);
    return add_landing(l, path, part, old) ? 0 : land_no_memory(l);
}

static int say(struct landing *l, const char *sentence)
{
    const char **slot = sentence ? arena_push(l->mem, &l->out->said, &l->out->n_said, sizeof *slot) : NULL;
    if (!slot)
        return land_no_memory(l);
    *slot = sentence;
    return 0;
}

/* ---- a new repository ---- */

#define CONFIG "[core]\n\trepositoryformatversion = %u\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

/* The configuration of one that the box has made: judged as one that it writes into such a repository directly. */
static int land_config(struct landing *l)
{
    auto_buf struct buf why = BUF(1024);
    const bool wide = l->r->digits == 64;
    if (repo_judge_born(l->t, l->r, &why) == 0)
        return land_text(l, REPO_DIR "/config", l->r->config, NULL);
    const char *plain = arena_printf(l->mem, CONFIG "%s", wide, wide ? "[extensions]\n\tobjectformat = sha256\n" : "");
    const int e = plain ? land_text(l, REPO_DIR "/config", str_of(plain), NULL) : land_no_memory(l);
    return e < 0 ? e
                 : say(l, arena_printf(l->mem,
                                       REPO_DIR "/config: a new one, without remotes and settings of the box's: %s",
                                       buf_cstr(&why)));
}

/* What makes a directory a repository; of hooks and the like nothing. */
static int land_born(struct landing *l)
{
    static const char places[][16] = {"objects/pack", "objects/info", "refs/heads", "refs/tags", "hooks", "info"};
    struct str exclude;
    int e = 0;
    for (size_t i = 0; e == 0 && i < sizeof places / sizeof *places; i++) {
        const char *path = arena_printf(l->mem, REPO_DIR "/%s/x", places[i]);
        e = path ? add_directories(l, path) : land_no_memory(l);
    }
    if (e == 0)
        e = land_config(l);
    const int no = e < 0 ? e : repo_text(l->t, l->t->upper, REPO_DIR "/info/exclude", l->mem, &exclude, NULL);
    return e < 0                               ? e
           : no == -ENOMEM                     ? land_no_memory(l)
           : no < 0 || exclude.n > EXCLUDE_MAX ? 0
                                               : land_text(l, REPO_DIR "/info/exclude", exclude, NULL);
}

/* ---- objects ---- */

/* A hash while it is made, of either kind. */
struct summing {
    bool wide;
    SHA1_CTX sha1;
    SHA2_CTX sha2;
};

static void sum_begin(struct summing *s, size_t digits)
{
    s->wide = digits == 64;
    if (s->wide)
        SHA256Init(&s->sha2);
    else
        SHA1Init(&s->sha1);
}

static void sum_add(struct summing *s, const void *bytes, size_t n)
{
    if (s->wide)
        SHA256Update(&s->sha2, bytes, n);
    else
        SHA1Update(&s->sha1, bytes, n);
}

static void sum_end(struct summing *s, uint8_t ret[HASH_BYTES])
{
    if (s->wide)
        SHA256Final(ret, &s->sha2);
    else
        SHA1Final(ret, &s->sha1);
}

/*
 * Copies a part of the answer that ends in the hash of all before it; -EBADMSG: it does not. `tail` gets that hash and, before it,
 * another one if it is long enough: a pack of one small file is shorter than two hashes of SHA-256.
 */
static int copy_summed(struct landing *l, const struct bundle_part *from, const char *name,
                       uint8_t tail[2 * HASH_BYTES])
{
    const size_t bytes = l->r->digits / 2, last = from->size < 2 * bytes ? bytes : 2 * bytes;
    uint8_t sum[HASH_BYTES];
    struct summing s;
    char *room = malloc(ROOM);
    own_fd int to = sys_openat(l->parts, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int e = !room ? -ENOMEM : to < 0 ? to : from->size < bytes ? -EBADMSG : 0;
    sum_begin(&s, l->r->digits);
    for (uint64_t at = 0; e == 0 && at < from->size;) {
        const uint64_t left = from->size - at;
        const long n = sys_pread(l->answer, room, left < ROOM ? left : ROOM, from->at + at);
        const uint64_t end = from->size - bytes; /* of what is summed */
        if (n <= 0) {
            e = n < 0 ? (int)n : -EBADMSG;
            break;
        }
        if (at < end)
            sum_add(&s, room, at + (uint64_t)n <= end ? (size_t)n : (size_t)(end - at));
        for (long done = 0; e == 0 && done < n;) {
            const long k = sys_write(to, room + done, (size_t)(n - done));
            e = k < 0 ? (int)k : 0;
            done += k > 0 ? k : 0;
        }
        at += (uint64_t)n;
    }
    free(room);
    sum_end(&s, sum);
    memset(tail, 0, 2 * bytes);
    if (e == 0 && sys_pread(l->answer, tail + 2 * bytes - last, last, from->at + from->size - last) != (long)last)
        e = -EBADMSG;
    const struct layer_object as = dressed(l, S_IFREG | 0444);
    if (e == 0 && memcmp(sum, tail + bytes, bytes) != 0)
        e = -EBADMSG;
    return e < 0 ? e : object_dress(l->parts, name, &as);
}

static bool on_host(const struct landing *l, const char *path, struct layer_object *o)
{
    const char *last;
    own_fd int dir = repo_parent(l->t, l->t->workspace, path, &last);
    *o = (struct layer_object){0};
    return dir >= 0 && object_look(dir, last, o) == 0 && o->mode;
}

static int bad_answer(struct landing *l, int e)
{
    return e == -EBADMSG
               ? err_say(l->e, ERR_REFUSED, "layer %s: the pack that git made of its objects is damaged", l->t->id)
               : err_sys(l->e, ERR_SYSTEM, -e, "layer %s: cannot prepare its objects", l->t->id);
}

static int land_objects(struct landing *l)
{
    const size_t bytes = l->r->digits / 2;
    struct bundle_part pack, idx;
    uint8_t head[12], tail[2 * HASH_BYTES], idx_tail[2 * HASH_BYTES];
    char hash[REPO_HASH_MAX + 1];
    struct layer_object o;
    if (!bundle_find(l->answer, "pack", &pack) || !bundle_find(l->answer, "idx", &idx) ||
        sys_pread(l->answer, head, sizeof head, pack.at) != sizeof head || memcmp(head, "PACK\0\0\0\2", 8) != 0)
        return bad_answer(l, -EBADMSG);
    if (memcmp(head + 8, "\0\0\0\0", 4) == 0) /* the workspace has all of them */
        return 0;
    char parts[2][32];
    for (size_t i = 0; i < 2; i++)
        snprintf(parts[i], sizeof *parts, "%c%zu", i ? 'i' : 'p', l->n_parts++);
    int e = copy_summed(l, &pack, parts[0], tail);
    if (e == 0)
        e = copy_summed(l, &idx, parts[1], idx_tail);
    if (e == 0 && (sys_pread(l->answer, head, 8, idx.at) != 8 || memcmp(head, "\377tOc\0\0\0\2", 8) != 0 ||
                   memcmp(idx_tail, tail + bytes, bytes) != 0))
        e = -EBADMSG;
    if (e < 0)
        return bad_answer(l, e);
    hex_digits(tail + bytes, bytes, hash);
    const char *names[2] = {arena_printf(l->mem, REPO_DIR "/objects/pack/pack-%s.pack", hash),
                            arena_printf(l->mem, REPO_DIR "/objects/pack/pack-%s.idx", hash)};
    for (size_t i = 0; i < 2; i++) {
        if (!names[i] || (!on_host(l, names[i], &o) &&
                          (add_directories(l, names[i]) < 0 || !add_landing(l, names[i], parts[i], NULL))))
            return land_no_memory(l);
    }
    return 0;
}

/* ---- refs ---- */

/* "commit", "tree", ... of an object that the answer is about; "" if it is missing. */
static struct str type_of(const struct landing *l, const char *hash)
{
    struct str text = l->types, line;
    while (text_line(&text, &line))
        if (str_is(str_until(&line, ' '), hash))
            return line;
    return STR("");
}

/* Why a hash must not become this ref; NULL: it may. */
static const char *wrong_type(const struct landing *l, const char *name, const char *hash)
{
    const struct str type = type_of(l, hash);
    if (!type.n || str_is(type, "missing"))
        return "its object is in neither the layer nor the workspace";
    if (strncmp(name, "refs/tags/", 10) == 0 || str_is(type, "commit"))
        return NULL;
    return "it does not name a commit";
}

static int land_deleted(struct landing *l, const struct repo_ref *ref, const char *path)
{
    if (!object_is(&ref->loose, S_IFREG))
        return 0;
    struct op *op = arena_push(l->mem, &l->ret->ops, &l->ret->n, sizeof *op);
    if (!op)
        return land_no_memory(l);
    *op = (struct op){.kind = OP_DELETE, .path = path, .from = path, .old = ref->loose};
    return 0;
}

static int land_ref(struct landing *l, struct repo_ref *ref)
{
    const char *path = arena_printf(l->mem, REPO_DIR "/%s", ref->lands ? ref->lands : ref->name);
    const char *text = arena_printf(l->mem, "%s\n", ref->new ? ref->new : "");
    const char *lock = path ? arena_printf(l->mem, "%s.lock", path) : NULL;
    struct layer_object o, at = ref->loose;
    struct str now;
    if (!text || !lock)
        return land_no_memory(l);
    if (!ref->why && ref->new && ref->new[0] != 'r')
        ref->why = wrong_type(l, ref->name, ref->new);
    if (!ref->why && on_host(l, lock, &o))
        ref->why = "a git command of the host is at work on it";
    if (ref->why)
        return land_refuse(l, arena_printf(l->mem, REPO_DIR "/%s", ref->name), ref->why);
    if (!ref->new)
        return land_deleted(l, ref, path);
    if (!object_is(&at, S_IFREG))
        at = (struct layer_object){0};
    if (same(ref->lands, ref->name))
        return land_text(l, path, str_of(text), &at);
    if (repo_text(l->t, l->t->workspace, path, l->mem, &now, &at) < 0)
        at = (struct layer_object){0};
    const int e = at.mode && str_is(now, text) ? 0 : land_text(l, path, str_of(text), &at);
    return e < 0 ? e : say(l, arena_printf(l->mem, "%s: %s; the box's is %s", ref->name + 5, ref->beside, ref->lands));
}

/* packed-refs without those that are deleted. */
static int land_packed(struct landing *l)
{
    auto_buf struct buf out = BUF(LAYER_READ_MAX);
    struct str text = l->r->packed, line;
    bool any = false, skipped = false;
    for (size_t i = 0; i < l->r->n; i++)
        any |= !l->r->refs[i].why && !l->r->refs[i].new && l->r->refs[i].packed;
    while (any && text_line(&text, &line)) {
        struct str rest = line;
        (void)str_until(&rest, ' ');
        bool drop = skipped && line.n && line.p[0] == '^'; /* what the tag before it points to */
        for (size_t i = 0; i < l->r->n && !drop; i++)
            drop = !l->r->refs[i].why && !l->r->refs[i].new &&str_is(rest, l->r->refs[i].name);
        skipped = drop;
        if (!drop)
            buf_printf(&out, "%.*s\n", (int)line.n, line.p);
    }
    if (!any)
        return 0;
    return buf_ok(&out) ? land_text(l, REPO_DIR "/packed-refs", buf_view(&out), &l->r->packed_object)
                        : land_no_memory(l);
}

static struct repo_ref *find_ref(const struct repo *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (same(r->refs[i].name, name))
            return &r->refs[i];
    return NULL;
}

/* The branch that the workspace is on does not go. */
static void keep_current(struct repo *r)
{
    struct repo_ref *ref =
        r->head_text && strncmp(r->head_text, "ref: ", 5) == 0 ? find_ref(r, r->head_text + 5) : NULL;
    if (ref && !ref->new && !ref->why && !(r->head.name && !r->head.why))
        ref->why = "the workspace is on this branch";
}

static int land_head(struct landing *l)
{
    struct repo_ref *head = &l->r->head;
    if (!head->name)
        return 0;
    if (!head->why && head->new[0] != 'r')
        head->why = wrong_type(l, "HEAD", head->new);
    if (head->why)
        return land_refuse(l, REPO_DIR "/HEAD", head->why);
    const char *text = arena_printf(l->mem, "%s\n", head->new);
    return text ? land_text(l, REPO_DIR "/HEAD", str_of(text), &l->r->head_object) : land_no_memory(l);
}

/* Whether the workspace's HEAD stands for the same commit as the layer's when all has landed. */
static bool head_lands(const struct repo *r)
{
    const char *text = r->head.name ? r->head.new : r->head_text;
    if (r->head.name && r->head.why)
        return false;
    const struct repo_ref *ref = text && text[0] == 'r' ? find_ref(r, text + 5) : NULL;
    return !ref || (!ref->why && same(ref->lands, ref->name));
}

/* ---- index and logs ---- */

static int land_index(struct landing *l)
{
    struct repo *r = l->r;
    struct str state, text;
    if (!r->index)
        return 0;
    if (!bundle_text(l->answer, "index-state", 64, l->mem, &state))
        state = STR("");
    if (!head_lands(r))
        return land_refuse(l, REPO_DIR "/index", "it belongs to a commit that the workspace's HEAD does not point to");
    if (str_is(state, "bad"))
        return land_refuse(l, REPO_DIR "/index", "git does not accept it");
    if (str_is(state, "none")) /* the same entries, looked at at another time */
        return 0;
    if (r->index_touched && !(r->base && str_is(state, "same")))
        return land_refuse(l, REPO_DIR "/index", "the host changed it after the box began");
    if (!bundle_text(l->answer, "index", (size_t)1 << 30, l->mem, &text))
        return bad_answer(l, -EBADMSG);
    return land_text(l, REPO_DIR "/index", text, &r->index_object);
}

/*
 * A log that the host has gone on with: the lines of the layer that follow what both have go to its end. Not of the stash, whose entries
 * are numbered by it.
 */
static int land_lines(struct landing *l, const struct repo_log *log)
{
    auto_buf struct buf out = BUF(LAYER_READ_MAX);
    struct str mine = log->text, theirs = log->old, a = {0}, b = {0};
    struct str rest = mine;
    if (same(log->ref, "refs/stash"))
        return land_refuse(l, log->path, log->why);
    while (text_line(&mine, &a) && text_line(&theirs, &b) && str_eq(a, b))
        rest = mine;
    buf_str(&out, log->old);
    buf_str(&out, rest);
    if (!rest.n)
        return 0;
    return buf_ok(&out) ? land_text(l, log->path, buf_view(&out), &log->was) : land_no_memory(l);
}

static int land_log(struct landing *l, const struct repo_log *log)
{
    const bool head = same(log->ref, "HEAD");
    const struct repo_ref *ref = head ? NULL : find_ref(l->r, log->ref);
    if (head ? !head_lands(l->r) : !ref || ref->why || !same(ref->lands, ref->name))
        return 0; /* it goes with its ref */
    if (log->gone) {
        struct op *op = ref && !ref->new &&object_is(&log->was, S_IFREG)
                            ? arena_push(l->mem, &l->ret->ops, &l->ret->n, sizeof *op)
                            : NULL;
        if (op)
            *op = (struct op){.kind = OP_DELETE, .path = log->path, .from = log->path, .old = log->was};
        return arena_failed(l->mem) ? land_no_memory(l) : 0;
    }
    if (log->why)
        return log->touched ? land_lines(l, log) : land_refuse(l, log->path, log->why);
    return str_eq(log->text, log->old) && log->was.mode ? 0 : land_text(l, log->path, log->text, &log->was);
}

int repo_land(const struct layer_trees *t, struct repo *r, int answer, struct arena *mem, struct apply_more *ret,
              struct apply_outcome *out, struct err *e)
{
    struct landing l = {.t = t,
                        .r = r,
                        .answer = answer,
                        .parts = landing_parts(t, ret->parts),
                        .mem = mem,
                        .ret = ret,
                        .out = out,
                        .e = e};
    l.n_parts = ret->parts;
    own_fd int parts = l.parts;
    if (parts < 0)
        return err_sys(e, ERR_SYSTEM, -parts, "layer %s: cannot make '" REPO_PARTS "'", t->id);
    if (!bundle_text(answer, "types", TYPES_MAX, mem, &l.types))
        return bad_answer(&l, -EBADMSG);
    keep_current(r);
    int no = r->born ? land_born(&l) : 0;
    if (no == 0)
        no = land_objects(&l);
    for (size_t pass = 0; pass < 2; pass++) /* what goes makes room for names below it */
        for (size_t i = 0; no == 0 && i < r->n; i++)
            no = !r->refs[i].new == !pass ? land_ref(&l, &r->refs[i]) : 0;
    if (no == 0)
        no = land_packed(&l);
    if (no == 0)
        no = land_head(&l);
    if (no == 0)
        no = land_index(&l);
    for (size_t i = 0; no == 0 && i < r->n_logs; i++)
        no = land_log(&l, &r->logs[i]);
    ret->parts = l.n_parts + 1; /* the directory is there, whatever is in it */
    bool needed = false;
    for (size_t i = 0; i < ret->n; i++)
        needed |= !repo_is_object(ret->ops[i].path);
    if (!needed)
        ret->n = 0;
    return no;
}
