/*
 * Reads what a layer did to the repository at the top of its workspace: which refs it moved, HEAD, the index, the logs. Refs are read
 * as text from both sides (loose ones, then packed-refs); no git runs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "git/gitconfig.h"
#include "layer/repo/repo.h"
#include "layer/text.h"
#include "sys/fd.h"

#define REF_BYTES 1024              /* of a loose ref */
#define ONE_BYTES ((size_t)1 << 20) /* of another file than those that grow with the repository */

#define USED_MAX    1000
#define REFS_MAX    5000
#define LOG_MAX     ((uint64_t)64 << 20) /* of all logs together; and of packed-refs */
#define HOSTS_MAX   100000               /* refs of the workspace that are listed to git, which then sends less */
#define HOSTS_DEPTH 16

struct packed_ref {
    const char *name;
    struct str hash;
};
struct repo_reading {
    const struct layer_trees *t;
    const struct changes *all;
    struct arena *mem;
    struct repo *ret;
    struct err *e;
    struct ledger ledger;
    struct packed_ref *packed[2]; /* of the workspace, of the layer; by name */
    size_t n_packed[2];
    uint64_t log_bytes;
    const char **used; /* branches that other work trees of the workspace's repository are on */
    size_t n_used;
};

static int no_room(const struct repo_reading *r)
{
    return err_sys(r->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its repository", r->t->id);
}

/* ---- files of both sides ---- */

int repo_text(const struct layer_trees *t, int top, const char *path, struct arena *mem, struct str *ret,
              struct layer_object *ret_object)
{
    const char *name;
    struct layer_object o = {0};
    own_fd int dir = repo_parent(t, top, path, &name);
    int e = dir < 0 ? dir : object_look(dir, name, &o);
    if (ret_object)
        *ret_object = e < 0 ? (struct layer_object){0} : o;
    if (e == 0 && !o.mode)
        e = -ENOENT;
    const bool grows = strcmp(name, "packed-refs") == 0 || strstr(path, "/logs/");
    return e < 0 ? e : text_read_most(dir, name, grows ? LOG_MAX : ONE_BYTES, mem, ret);
}

/* Where a box finds `path`: t->upper, t->workspace, or -ENOENT. */
static int merged_top(const struct layer_trees *t, const char *path)
{
    char part[LAYER_PATH_MAX];
    bool below = true;
    if (strlen(path) >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t n = 1;; n++) {
        if (path[n] && path[n] != '/')
            continue;
        memcpy(part, path, n);
        part[n] = 0;
        const char *name;
        char mark = 0;
        struct layer_object o = {0};
        own_fd int dir = repo_parent(t, t->upper, part, &name);
        const int e = dir < 0 ? dir : object_look(dir, name, &o);
        if (e < 0 && e != -ENOENT)
            return e;
        if (e < 0 || !o.mode)
            return below ? t->workspace : -ENOENT;
        if (object_whiteout(&o))
            return -ENOENT;
        if (!path[n])
            return t->upper;
        if (!object_is(&o, S_IFDIR))
            return -ENOENT;
        own_fd int itself = object_open(dir, name, S_IFDIR);
        if (itself >= 0 && sys_fgetxattr(itself, "user.overlay.opaque", &mark, 1) == 1 && mark == 'y')
            below = false;
    }
}

/* The same as repo_text(), as a box sees it. */
static int merged_text(const struct repo_reading *r, const char *path, struct str *ret)
{
    const int top = merged_top(r->t, path);
    return top < 0 ? top : repo_text(r->t, top, path, r->mem, ret, NULL);
}

/* The host wrote it since the box began. */
static bool is_touched(const struct repo_reading *r, const char *path, const struct layer_object *o)
{
    if (!o->mode || o->changed < r->t->since)
        return false;
    char whole[LAYER_PATH_MAX], room[LAYER_PATH_MAX];
    if (r->t->inside &&
        snprintf(whole, sizeof whole, "%s%s", r->t->inside, repo_named(r->t, path, room)) >= (int)sizeof whole)
        return true;
    const struct ledger_entry *known = ledger_find(&r->ledger, r->t->inside ? whole : path);
    return !(known && object_untouched(&known->now, o) && known->now.changed == o->changed);
}

/* ---- packed-refs ---- */

static int by_ref_name(const void *a, const void *b)
{
    return strcmp(((const struct packed_ref *)a)->name, ((const struct packed_ref *)b)->name);
}

static int read_packed(struct repo_reading *r, struct str text, size_t side)
{
    struct str line;
    while (text_line(&text, &line)) {
        const struct str hash = str_until(&line, ' ');
        if (!repo_is_hash(hash, r->ret->digits) || !line.n)
            continue;
        struct packed_ref *slot = arena_push(r->mem, &r->packed[side], &r->n_packed[side], sizeof *slot);
        if (!slot || !(slot->name = arena_str(r->mem, line)))
            return no_room(r);
        slot->hash = hash;
    }
    if (r->n_packed[side])
        qsort(r->packed[side], r->n_packed[side], sizeof **r->packed, by_ref_name);
    return 0;
}

static const struct packed_ref *find_packed(const struct repo_reading *r, size_t side, const char *name)
{
    const struct packed_ref wanted = {.name = name};
    return r->n_packed[side] ? bsearch(&wanted, r->packed[side], r->n_packed[side], sizeof wanted, by_ref_name) : NULL;
}

/* ---- refs ---- */

/* A ref's text without its line end: a hash or "ref: NAME". NULL: it is neither. */
static const char *ref_text(const struct repo_reading *r, struct str text)
{
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\r'))
        text.n--;
    struct str target;
    if (repo_is_hash(text, r->ret->digits))
        return arena_str(r->mem, text);
    if (text.n > REF_BYTES || memchr(text.p, 0, text.n) || !gitref_of_head(text, &target) ||
        !str_starts(target, STR("refs/")) || memchr(text.p, '\n', text.n))
        return NULL;
    return arena_printf(r->mem, "ref: %.*s", (int)target.n, target.p);
}

/* What one side has under this name. 0: *ret, NULL if it has none. */
static int side_ref(struct repo_reading *r, size_t side, const char *name, const char **ret, struct layer_object *loose)
{
    struct str text;
    const char *path = arena_printf(r->mem, REPO_DIR "/%s", name);
    *ret = NULL;
    if (!path)
        return no_room(r);
    const int e = side ? merged_text(r, path, &text) : repo_text(r->t, r->t->workspace, path, r->mem, &text, loose);
    if (e == 0 && text.n <= REF_BYTES) {
        *ret = ref_text(r, text);
        return *ret ? 0 : -EBADMSG;
    }
    if (e == -ENOMEM)
        return no_room(r);
    if (e != -ENOENT && e != -ENOTDIR && e != -EISDIR && e != -EBADMSG)
        return e < 0 && e != -EFBIG ? e : -EBADMSG;
    const struct packed_ref *packed = find_packed(r, side, name);
    if (packed && !(*ret = arena_str(r->mem, packed->hash)))
        return no_room(r);
    return 0;
}

static bool has_ref(const struct repo *repo, const char *name)
{
    for (size_t i = 0; i < repo->n; i++)
        if (same(repo->refs[i].name, name))
            return true;
    return false;
}

/* refs/heads/main -> refs/pinfold/LAYER/heads/main */
static const char *kept_name(const struct repo_reading *r, const char *name)
{
    return arena_printf(r->mem, "refs/pinfold/%.16s/%s", r->t->id, name + 5);
}

static int host_directory(const struct repo_reading *r, const char *path)
{
    char room[LAYER_PATH_MAX];
    return sys_openat2(r->t->workspace, repo_named(r->t, path, room), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

/* Branches that linked work trees are on: git moves none of them from elsewhere either. */
static int read_used(struct repo_reading *r)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int dir = host_directory(r, REPO_DIR "/worktrees");
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    for (const struct sys_dirent *d; dir >= 0 && r->n_used < USED_MAX && (d = sys_next_entry(&entries));) {
        struct str text;
        own_fd int one = sys_openat(dir, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        const char *head =
            one >= 0 && text_read_most(one, "HEAD", REF_BYTES, r->mem, &text) == 0 ? ref_text(r, text) : NULL;
        const char **slot = head && head[0] == 'r' ? arena_push(r->mem, &r->used, &r->n_used, sizeof *slot) : NULL;
        if (slot)
            *slot = head + 5;
    }
    if (entries.no < 0)
        r->ret->why = "its work trees cannot be listed";
    return arena_failed(r->mem) ? no_room(r) : 0;
}

static bool is_used(const struct repo_reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_used; i++)
        if (same(r->used[i], name))
            return true;
    return false;
}

static int judge_ref(struct repo_reading *r, struct repo_ref *ref)
{
    const char *path = arena_printf(r->mem, REPO_DIR "/%s", ref->name);
    const bool touched =
        path && (is_touched(r, path, &ref->loose) ||
                 (!ref->loose.mode && ref->packed && is_touched(r, REPO_DIR "/packed-refs", &r->ret->packed_object)));
    ref->lands = ref->name;
    if (!path)
        return no_room(r);
    if (!repo_ref_ok(ref->name))
        ref->why = "a ref of this name is not taken from a layer";
    else if (ref->new && !repo_is_hash(str_of(ref->new), r->ret->digits) &&
             !(strncmp(ref->name, "refs/remotes/", 13) == 0 && repo_ref_ok(ref->new + 5)))
        ref->why = "it is a symbolic ref, which is not taken from a layer";
    else if (ref->old && !repo_is_hash(str_of(ref->old), r->ret->digits) &&
             ref->new &&repo_is_hash(str_of(ref->new), r->ret->digits))
        ref->why = "it is a symbolic ref in the workspace";
    else if (touched || is_used(r, ref->name))
        ref->beside = touched ? "the host moved it after the box began" : "another work tree is on it";
    if (ref->beside && !ref->new)
        ref->why = touched ? "the host moved it after the box began, and the box deleted it" : ref->beside;
    else if (ref->beside && !(ref->lands = kept_name(r, ref->name)))
        return no_room(r);
    return 0;
}

static int add_ref(struct repo_reading *r, const char *name)
{
    struct repo_ref ref = {.name = name};
    if (r->ret->why || has_ref(r->ret, name))
        return 0;
    int old = side_ref(r, 0, name, &ref.old, &ref.loose), new = side_ref(r, 1, name, &ref.new, NULL);
    if (old == -ENOMEM || new == -ENOMEM)
        return -ENOMEM;
    if (old == 0 && new == 0 && same(ref.old, ref.new))
        return 0;
    if (r->ret->n == REFS_MAX) {
        r->ret->why = "too many of its refs have changed";
        return 0;
    }
    struct repo_ref *slot = arena_push(r->mem, &r->ret->refs, &r->ret->n, sizeof *slot);
    if (!slot)
        return no_room(r);
    ref.packed = find_packed(r, 0, name) != NULL;
    const int e = judge_ref(r, &ref);
    if (!ref.why && (old < 0 || new < 0))
        ref.why = old < 0 ? "it cannot be read in the workspace" : "it is not a valid ref in the layer";
    *slot = ref;
    return e;
}

static int add_packed(struct repo_reading *r)
{
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < r->n_packed[side]; i++) {
            const struct packed_ref *here = &r->packed[side][i], *there = find_packed(r, !side, here->name);
            if (there && str_eq(here->hash, there->hash))
                continue;
            const int e = add_ref(r, here->name);
            if (e < 0)
                return e;
        }
    }
    return 0;
}

static int read_refs(struct repo_reading *r, bool packed)
{
    int e = packed ? add_packed(r) : 0;
    for (size_t i = 0; e == 0 && i < r->all->n; i++) {
        const struct change *c = &r->all->all[i];
        const bool directory = object_is(c->kind == CHANGE_DELETED ? &c->old : &c->new, S_IFDIR);
        if (strncmp(c->path, REPO_DIR "/refs/", sizeof REPO_DIR + 5) == 0 && !directory)
            e = add_ref(r, c->path + sizeof REPO_DIR);
    }
    return e;
}

/* The commit that HEAD stands for on one side, or NULL. */
static int head_commit(struct repo_reading *r, size_t side, const char *head, const char **ret)
{
    *ret = NULL;
    if (!head || repo_is_hash(str_of(head), r->ret->digits)) {
        *ret = head;
        return 0;
    }
    struct layer_object loose;
    const int e = side_ref(r, side, head + 5, ret, &loose);
    if (e < 0 || (*ret && !repo_is_hash(str_of(*ret), r->ret->digits)))
        *ret = NULL;
    return e == -ENOMEM ? e : 0;
}

static int read_head(struct repo_reading *r)
{
    struct repo *repo = r->ret;
    struct str old, new;
    const int e = repo_text(r->t, r->t->workspace, REPO_DIR "/HEAD", r->mem, &old, &repo->head_object);
    const int n = merged_text(r, REPO_DIR "/HEAD", &new);
    if (e == -ENOMEM || n == -ENOMEM)
        return no_room(r);
    const char *was = e == 0 ? ref_text(r, old) : NULL, *is = n == 0 ? ref_text(r, new) : NULL;
    if (!was && !repo->born) {
        repo->why = "the workspace's HEAD cannot be read";
        return 0;
    }
    repo->head_text = was;
    if (was)
        repo->dress = repo->head_object;
    int no = head_commit(r, 0, was, &repo->head_old);
    if (no == 0)
        no = head_commit(r, 1, is, &repo->head_new);
    if (no < 0 || (was && same(was, is)))
        return no;
    repo->head = (struct repo_ref){.name = "HEAD", .old = was, .new = is, .lands = "HEAD", .loose = repo->head_object};
    if (!is)
        repo->head.why = "it is not a valid HEAD in the layer";
    else if (is_touched(r, REPO_DIR "/HEAD", &repo->head_object))
        repo->head.why = "the host changed it after the box began";
    else if (is[0] == 'r' && (strncmp(is + 5, "refs/heads/", 11) != 0 || !repo_ref_ok(is + 5)))
        repo->head.why = "a branch of this name is not taken from a layer";
    if (repo->born)
        repo->why = repo->head.why;
    return 0;
}

/* ---- index, logs, objects ---- */

static int read_index(struct repo_reading *r)
{
    struct repo *repo = r->ret;
    const char *name;
    struct layer_object base;
    const struct change *c = changes_find(r->all, REPO_DIR "/index");
    own_fd int dir = repo_parent(r->t, r->t->workspace, REPO_DIR "/index", &name);
    if (!repo->born && (dir < 0 || object_look(dir, name, &repo->index_object) < 0))
        return 0;
    repo->index =
        c && c->kind != CHANGE_DELETED && object_is(&c->new, S_IFREG) && (!c->old.mode || object_is(&c->old, S_IFREG));
    repo->index_touched = is_touched(r, REPO_DIR "/index", &repo->index_object);
    /* One that was written in place since is not what the box began with. */
    repo->base = !repo->born && !r->t->inside && object_look(r->t->store, REPO_BASE, &base) == 0 &&
                 object_is(&base, S_IFREG) && base.modified < r->t->since;
    return 0;
}

/* Lines as git writes them, and nothing that a terminal would obey. */
static bool is_log(struct str text, size_t digits)
{
    struct str line;
    if (text.n && text.p[text.n - 1] != '\n')
        return false;
    while (text_line(&text, &line)) {
        for (size_t i = 0; i < line.n; i++)
            if ((unsigned char)line.p[i] < ' ' && line.p[i] != '\t')
                return false;
        const struct str old = str_until(&line, ' '), new = str_until(&line, ' ');
        if (!repo_is_hash(old, digits) || !repo_is_hash(new, digits))
            return false;
        const struct str who = str_until(&line, '\t');
        const char *mail = memchr(who.p, '<', who.n),
                   *end = mail ? memchr(mail, '>', who.n - (size_t)(mail - who.p)) : NULL;
        struct str when = end ? str_skip(who, (size_t)(end - who.p) + 1) : STR("");
        if (when.n < 8 || when.p[0] != ' ' || strspn(when.p + 1, "0123456789") != when.n - 7 ||
            when.p[when.n - 6] != ' ' || (when.p[when.n - 5] != '+' && when.p[when.n - 5] != '-') ||
            strspn(when.p + when.n - 4, "0123456789") < 4)
            return false;
    }
    return true;
}

static int add_log(struct repo_reading *r, const struct change *c)
{
    struct repo_log log = {
        .path = c->path, .ref = c->path + sizeof REPO_DIR "/logs/" - 1, .gone = c->kind == CHANGE_DELETED};
    r->log_bytes += c->new.size; /* which takes no room on the disk if it is all hole */
    const bool fits = c->new.size <= LOG_MAX && r->log_bytes <= LOG_MAX;
    int e = log.gone ? 0 : fits ? repo_text(r->t, r->t->upper, c->path, r->mem, &log.text, NULL) : -EFBIG;
    const int old = e == -EFBIG ? e : repo_text(r->t, r->t->workspace, c->path, r->mem, &log.old, &log.was);
    if (e == -ENOMEM || old == -ENOMEM)
        return no_room(r);
    if (old < 0)
        log.old = STR("");
    if (log.gone)
        log.text = STR("");
    if (e == -EFBIG)
        log.why = "the logs that the box has changed are too large";
    else if (e < 0 || !is_log(log.text, r->ret->digits))
        log.why = "it is not a log as git writes them";
    else if ((log.touched = is_touched(r, c->path, &log.was)))
        log.why = "the host changed it after the box began";
    struct repo_log *slot = arena_push(r->mem, &r->ret->logs, &r->ret->n_logs, sizeof *slot);
    if (!slot)
        return no_room(r);
    *slot = log;
    return 0;
}

static int read_logs(struct repo_reading *r)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->all->n; i++) {
        const struct change *c = &r->all->all[i];
        const bool gone = c->kind == CHANGE_DELETED, file = object_is(gone ? &c->old : &c->new, S_IFREG);
        r->ret->n_objects += file && c->kind == CHANGE_ADDED && repo_is_top(c->path) && repo_is_object(c->path);
        if (file && strncmp(c->path, REPO_DIR "/logs/", sizeof REPO_DIR + 5) == 0)
            e = add_log(r, c);
    }
    return e;
}

/* ---- what the workspace has ---- */

static int add_host(struct repo_reading *r, struct str hash)
{
    if (!repo_is_hash(hash, r->ret->digits) || r->ret->n_hosts >= HOSTS_MAX)
        return 0;
    const char **slot = arena_push(r->mem, &r->ret->hosts, &r->ret->n_hosts, sizeof *slot);
    if (!slot || !(*slot = arena_str(r->mem, hash)))
        return no_room(r);
    return 0;
}

static int walk_hosts(struct repo_reading *r, int above, const char *name, unsigned depth)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int dir = sys_openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    int e = 0;
    if (dir < 0 || depth > HOSTS_DEPTH)
        return 0;
    for (const struct sys_dirent *d; e == 0 && r->ret->n_hosts < HOSTS_MAX && (d = sys_next_entry(&entries));) {
        struct str text;
        const int no = text_read_most(dir, d->name, REF_BYTES, r->mem, &text);
        if (no == -EBADMSG)
            e = walk_hosts(r, dir, d->name, depth + 1);
        else if (no == 0 && text.n >= r->ret->digits)
            e = add_host(r, (struct str){text.p, r->ret->digits});
    }
    return e;
}

static int read_hosts(struct repo_reading *r)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->n_packed[0]; i++)
        e = add_host(r, r->packed[0][i].hash);
    own_fd int dir = e == 0 ? host_directory(r, REPO_DIR) : -1;
    if (e == 0 && dir >= 0)
        e = walk_hosts(r, dir, "refs", 0);
    return e == 0 && r->ret->head_old ? add_host(r, str_of(r->ret->head_old)) : e;
}

/* ---- who commits ---- */

struct identity {
    struct arena *mem;
    const char **name, **mail;
};

static int take_identity(void *ctx, const struct gitconfig_entry *entry)
{
    struct identity *who = ctx;
    const bool name = str_is_nocase(entry->key, "user.name");
    const char **slot = name ? who->name : who->mail;
    if ((!name && !str_is_nocase(entry->key, "user.email")) || !entry->value.p || !entry->value.n ||
        memchr(entry->value.p, '\n', entry->value.n))
        return 0;
    return (*slot = arena_str(who->mem, entry->value)) ? 0 : -ENOMEM;
}

int repo_identity(struct str config, struct arena *mem, const char **name, const char **mail)
{
    struct identity who = {.mem = mem, .name = name, .mail = mail};
    return gitconfig_parse(config, take_identity, &who, NULL);
}

/* ---- the repository ---- */

#define BY_PATCHES                                                                                                     \
    "files land by their paths, and commits as patches: run git format-patch in a box with this layer, apply the "     \
    "files that it writes, and git am them"

static int take_extension(void *ctx, const struct gitconfig_entry *entry)
{
    struct repo *repo = ctx;
    if (str_is_nocase(entry->key, "extensions.objectformat")) {
        repo->digits = str_is_nocase(entry->value, "sha256") ? 64 : str_is_nocase(entry->value, "sha1") ? 40 : 0;
        if (!repo->digits)
            repo->why = "its hash algorithm is not supported";
    } else if (str_is_nocase(entry->key, "extensions.refstorage") && !str_is_nocase(entry->value, "files")) {
        repo->why = "its refs are not files (reftable), which apply cannot move; " BY_PATCHES;
    } else if (str_is_nocase(entry->key, "extensions.partialclone")) {
        repo->why = "it is a partial clone, so it cannot be said which objects are missing";
    }
    return 0;
}

int repo_judge_born(const struct layer_trees *t, const struct repo *r, struct buf *why)
{
    char room[LAYER_PATH_MAX], directory[2 * LAYER_PATH_MAX];
    snprintf(directory, sizeof directory, "%s/%s", t->path, repo_named(t, REPO_DIR, room));
    const struct gitconfig_ask ask = {.kind = GITCONFIG_REPOSITORY,
                                      .old_text = STR(""),
                                      .new_text = r->config,
                                      .directory = str_of(directory),
                                      .root = str_of(t->root ? t->root : t->path)};
    return gitconfig_judge(&ask, why);
}

/* A submodule's without its configuration would belong to no directory, so it needs one that lands. */
static int judge_module(struct repo_reading *r)
{
    auto_buf struct buf why = BUF(1024);
    if (r->ret->why || !r->t->git || repo_judge_born(r->t, r->ret, &why) == 0)
        return 0;
    r->ret->why = arena_printf(
        r->mem, "its configuration is not one that a box may write: %s; change that in a box with the layer",
        buf_cstr(&why));
    return r->ret->why ? 0 : no_room(r);
}

static int take_storage(void *ctx, const struct gitconfig_entry *entry)
{
    bool *moved = ctx;
    *moved |= str_is_nocase(entry->key, "extensions.refstorage") && !str_is_nocase(entry->value, "files");
    return 0;
}

/* One that the box has made, all of which is in the layer. */
static int read_born(struct repo_reading *r)
{
    struct repo *repo = r->ret;
    const struct change *git = changes_find(r->all, REPO_DIR), *head = changes_find(r->all, REPO_DIR "/HEAD");
    if (!git || git->kind != CHANGE_ADDED || !object_is(&git->new, S_IFDIR))
        return 0;
    repo->digits = 40;
    repo->born = true;
    const int e = repo_text(r->t, r->t->upper, REPO_DIR "/config", r->mem, &repo->config, NULL);
    if (e == -ENOMEM)
        return no_room(r);
    if (git->conflict)
        repo->why = git->conflict;
    else if (r->t->n_below)
        repo->why = "in a layer that stands on another one, a repository that the box has made is not applied";
    else if (!head || !object_is(&head->new, S_IFREG))
        repo->why = "it has no HEAD";
    else if (e < 0 || gitconfig_parse(repo->config, take_extension, repo, NULL) < 0)
        repo->why = "its configuration cannot be read";
    else if (changes_find(r->all, REPO_DIR "/shallow"))
        repo->why = "it is a shallow clone, which lacks the parents of its oldest commits";
    else if (changes_find(r->all, REPO_DIR "/objects/info/alternates"))
        repo->why = "it borrows objects from another repository; copy them in the box: git repack -ad, then remove "
                    ".git/objects/info/alternates";
    else
        repo->dress = head->new;
    return judge_module(r);
}

/* What the workspace's own configuration says of how it is stored. */
static int read_kind(struct repo_reading *r)
{
    struct repo *repo = r->ret;
    struct layer_object top, base;
    struct str text, line;
    const char *name;
    own_fd int dir = repo_parent(r->t, r->t->workspace, REPO_DIR, &name);
    if (dir < 0 || object_look(dir, name, &top) < 0)
        return 0;
    if (!top.mode)
        return read_born(r);
    repo->digits = 40;
    if (!object_is(&top, S_IFDIR)) {
        repo->why = r->t->inside ? "it is a file that says where the repository is, and only a new one is applied"
                                 : "the repository lies outside of the workspace (a linked work tree or a submodule), "
                                   "where the box could not write";
        return 0;
    }
    const int e = repo_text(r->t, r->t->workspace, REPO_DIR "/config", r->mem, &text, NULL);
    if (e == -ENOMEM)
        return no_room(r);
    if (e < 0 || gitconfig_parse(text, take_extension, repo, NULL) < 0)
        repo->why = "its configuration in the workspace cannot be read";
    if (!r->t->viewed && !r->t->inside && text_read(r->t->store, REPO_BASE_DIR, r->mem, &text) == 0 &&
        text_line(&text, &line) && text_object(&line, &base) && !object_same_inode(&base, &top))
        repo->why = "it is another repository than the one that the box began with";
    return 0;
}

/* The layer has taken the directory itself away, or put something else there. */
static bool is_replaced(const struct changes *all)
{
    const struct change *c = changes_find(all, REPO_DIR);
    return c && (c->kind != CHANGE_EDITED || c->what & CHANGED_TYPE);
}

/* The box has had git write its refs in another form (git refs migrate), and so it has deleted those that are files. */
static int read_migrated(struct repo_reading *r)
{
    struct str text;
    bool moved = false;
    const int e = merged_text(r, REPO_DIR "/config", &text);
    if (e == -ENOMEM)
        return no_room(r);
    if (e == 0)
        (void)gitconfig_parse(text, take_storage, &moved, NULL);
    for (size_t i = 0; i < r->all->n && !moved; i++)
        moved = strncmp(r->all->all[i].path, REPO_DIR "/reftable", sizeof REPO_DIR + 8) == 0;
    if (moved)
        r->ret->why = "in the layer its refs are not files any more (reftable), which apply cannot move; " BY_PATCHES;
    return 0;
}

int repo_read(const struct layer_trees *t, const struct changes *all, struct arena *mem, struct repo *ret,
              struct err *e)
{
    struct repo_reading r = {.t = t, .all = all, .mem = mem, .ret = ret, .e = e};
    struct str text;
    *ret = (struct repo){0};
    int no = ledger_of(t, mem, &r.ledger, e);
    if (no == 0)
        no = read_kind(&r);
    if (no < 0 || !ret->digits || ret->why)
        return no;
    if (!ret->born && is_replaced(all)) {
        ret->why = "the box removed or replaced the repository itself";
        return 0;
    }
    if (!ret->born && ((no = read_migrated(&r)) < 0 || ret->why))
        return no;
    const int here = repo_text(t, t->workspace, REPO_DIR "/packed-refs", mem, &ret->packed, &ret->packed_object);
    const int there = merged_text(&r, REPO_DIR "/packed-refs", &text);
    /* What cannot be read is not none. */
    if ((here < 0 && here != -ENOENT) || (there < 0 && there != -ENOENT)) {
        ret->why = "its packed-refs cannot be read";
        return 0;
    }
    if (here == 0)
        no = read_packed(&r, ret->packed, 0);
    if (no == 0 && there == 0)
        no = read_packed(&r, text, 1);
    if (no == 0)
        no = read_used(&r);
    if (no == 0)
        no = read_head(&r);
    if (no == 0 && !ret->why)
        no = read_refs(&r, changes_find(all, REPO_DIR "/packed-refs") != NULL);
    if (no == 0 && !ret->why)
        no = read_index(&r);
    if (no == 0 && !ret->why)
        no = read_logs(&r);
    return no < 0 || ret->why ? no : read_hosts(&r);
}
