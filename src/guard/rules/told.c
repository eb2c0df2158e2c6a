/*
 * What a box leaves in a writable tree without a refusal, and that the user should look at before working there:
 * repositories it created that contain names which programs execute unasked, links that point out of the trees, FIFOs.
 * The guard remembers where these were created, and reports those that still exist at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "git/gitconfig.h"
#include "guard/rules/rules.h"
#include "sys/fd.h"
#include "sys/socket.h"
#include "sys/poll.h"

#define TOLD_MAX     64    /* frames; the last one counts the rest */
#define TOLD_WAIT_MS 10000 /* for one frame; where that does not suffice nobody reads, and the rest is only counted */
#define REFS_BYTES   (8u << 20) /* of packed-refs or a reftable: some 100,000 names */
#define TABLES       "tables.list"
#define TABLES_MAX   64 /* git joins them long before */

/* ---- what was created, and where it was moved ---- */

/* Moves entries at and below `from` to `to`. */
static void places_move(struct guard *g, struct places *all, struct str from, struct str to)
{
    static char moved[sizeof all->text]; /* each worker has its own */
    uint32_t n = 0;
    table_lock(g->shared);
    for (uint32_t at = 0; at < all->n;) {
        struct str one = places_next(all, &at);
        struct str head = path_in_exactly(one, from) ? to : (struct str){"", 0},
                   tail = head.n ? str_skip(one, from.n) : one;
        if (head.n + tail.n + 1 > sizeof moved - n) {
            all->left_out++;
            continue;
        }
        memcpy(moved + n, head.p, head.n);
        memcpy(moved + n + head.n, tail.p, tail.n);
        n += (uint32_t)(head.n + tail.n);
        moved[n++] = 0;
    }
    memcpy(all->text, moved, n);
    all->n = n;
    table_unlock(g->shared);
}

void told_link(struct guard *g, const struct place *p, const char *text)
{
    if (rules_of_host(&g->rules, place_path(p)) && rules_leads_out(&g->rules, place_dir(p), str_of(text)))
        left_add(g, place_path(p));
    told_refs(g, p);
}

/* ---- links that moved: dots that stayed in the tree may lead out of it now ---- */

#define RISEN_DEPTH 32
#define RISEN_LEFT  16384

struct risen {
    struct guard *g;
    unsigned left;
    char path[PLACE_PATH];
};

/* Remembers the link that is `name` in `dir`, with its path of `n` bytes, if it leads out. */
static void link_rises(struct risen *r, int dir, const char *name, size_t n)
{
    char text[PATH_MAX];
    const long k = sys_readlinkat(dir, name, text, sizeof text);
    const struct str directory = {r->path, n - strlen(name) - 1};
    if (k > 0 && rules_leads_out(&r->g->rules, directory, (struct str){text, (size_t)k}))
        left_add(r->g, (struct str){r->path, n});
}

/* The same of all links below; false: there is too much, or it cannot be read. */
static bool links_rise(struct risen *r, int dir, const char *name, size_t n, unsigned depth)
{
    _Alignas(8) char records[2048];
    auto_fd int fd = depth ? sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0) : -1;
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    for (const struct sys_dirent *d; fd >= 0 && (d = sys_next_entry(&entries));) {
        struct sys_stat st;
        const size_t k = strlen(d->name);
        if (r->left-- == 0 || n + k + 2 > sizeof r->path ||
            sys_stat_at(fd, d->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_TYPE, &st) < 0)
            return false;
        r->path[n] = '/';
        memcpy(r->path + n + 1, d->name, k + 1);
        if (S_ISLNK(st.mode))
            link_rises(r, fd, d->name, n + 1 + k);
        if (S_ISDIR(st.mode) && !links_rise(r, fd, d->name, n + 1 + k, depth - 1))
            return false;
    }
    return fd >= 0 && entries.no == 0;
}

static size_t depth_of(struct str path)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < path.n; i++)
        n += path.p[i] == '/';
    return n;
}

void told_arrived(struct guard *g, const struct place *from, const struct place *to)
{
    const struct str path = place_path(to);
    struct risen r = {.g = g, .left = RISEN_LEFT};
    struct sys_stat st;
    if (!to->plain || !rules_of_host(&g->rules, path) || rules_in_one_layer(&g->rules, path, path) ||
        place_stat(to, SYS_STAT_TYPE, &st) < 0 || !str_copy(path, r.path, sizeof r.path))
        return;
    if (S_ISLNK(st.mode))
        link_rises(&r, to->dir, place_bare(to), path.n);
    if (S_ISDIR(st.mode) && depth_of(path) < depth_of(place_path(from)) &&
        !links_rise(&r, to->dir, place_bare(to), path.n, RISEN_DEPTH)) {
        table_lock(g->shared);
        g->shared->left.left_out++;
        table_unlock(g->shared);
    }
}

void told_fifo(struct guard *g, const struct place *p)
{
    if (rules_of_host(&g->rules, place_path(p)))
        left_add(g, place_path(p));
}

/* git replaces HEAD, packed-refs and a reftable's list by a rename, other programs write them, or a table, in place; either way they
   are examined at the end. */
void told_refs(struct guard *g, const struct place *p)
{
    struct str name = {p->name, p->name_n};
    if (!g->rules.git || !rules_of_host(&g->rules, place_path(p)))
        return;
    if (fold_eq(name, STR("HEAD")) || fold_eq(name, STR("packed-refs")) || fold_eq(name, STR(TABLES)))
        left_add(g, place_path(p));
    if (name.n < 4 || !fold_eq(str_skip(name, name.n - 4), STR(".ref")))
        return;
    auto_buf struct buf list = BUF(2 * PLACE_PATH);
    buf_str(&list, place_dir(p));
    buf_text(&list, place_dir(p).n > 1 ? "/" TABLES : TABLES);
    if (buf_ok(&list))
        left_add(g, buf_view(&list));
}

void told_moved(struct guard *g, const struct place *from, const struct place *to, bool exchange)
{
    static const struct str between = {"\001", 1};
    struct places *const lists[] = {&g->shared->made, &g->shared->left};
    for (size_t i = 0; i < 2; i++) {
        if (lists[i]->n == 0)
            continue;
        if (exchange)
            places_move(g, lists[i], place_path(to), between);
        places_move(g, lists[i], place_path(from), place_path(to));
        if (exchange)
            places_move(g, lists[i], between, place_path(from));
    }
}

/* ---- the end ---- */

/* False if it could not be sent. */
static bool send_surely(struct guard *g, const struct denial_frame *f)
{
    long sent;
    while ((sent = sys_send(g->report, f, sizeof *f, MSG_DONTWAIT | MSG_NOSIGNAL)) == -EAGAIN || sent == -EINTR) {
        struct pollfd ready = {.fd = g->report, .events = POLLOUT};
        if (sys_poll_ms(&ready, 1, TOLD_WAIT_MS) == 0)
            break;
    }
    return sent >= 0;
}

static bool tell(struct guard *g, enum told_kind kind, struct str path, struct str what)
{
    struct denial_frame f = {.kind = FRAME_TOLD, .action = kind, .rule = UINT32_MAX};
    const size_t room = sizeof f.text - 1024;
    size_t n = path.n < room ? path.n : room, k = what.n < 1000 ? what.n : 1000;
    memcpy(f.text, path.p, n);
    memcpy(f.text + n + 1, what.p, k);
    f.n = (uint32_t)(n + 1 + k + 1);
    return send_surely(g, &f);
}

/* Totals of the report: frames, and what is only counted. */
struct ending {
    unsigned said;
    size_t more;
    bool unread;
};

static void tell_or_count(struct guard *g, struct ending *e, enum told_kind kind, struct str path, struct str what)
{
    const bool sent = !e->unread && e->said < TOLD_MAX && tell(g, kind, path, what);
    e->unread = e->unread || (!sent && e->said < TOLD_MAX);
    e->said += sent;
    e->more += !sent;
}

static void tell_repository(struct guard *g, struct ending *e, struct str path)
{
    auto_fd int dir = open_in_box(path, O_PATH | O_DIRECTORY);
    auto_buf struct buf names = BUF(4096);
    if (dir < 0 ? !git_is_nothing(dir) : reporoot_tells(g, dir, path, &names))
        tell_or_count(g, e, TOLD_REPOSITORY, path, dir < 0 ? STR(TOLD_CLOSED) : buf_view(&names));
}

/* All of a file, with a byte to spare; NULL if it cannot be read. */
static char *content(struct guard *g, int file, uint64_t size, size_t *ret_n)
{
    auto_fd int fd = own_reopen(g, file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    char *bytes = fd < 0 ? NULL : malloc(size + 1);
    long n = bytes ? sys_read_all(fd, bytes, size) : -1;
    if (n < 0) {
        free(bytes);
        return NULL;
    }
    *ret_n = (size_t)n;
    return bytes;
}

static int take_odd(void *ctx, struct str name, struct str target)
{
    struct buf *found = ctx;
    struct str one = gitref_is_odd(name) ? name : target;
    if (!gitref_is_odd(one))
        return 0;
    buf_str(found, one);
    return 1;
}

/* One reftable: whether it is as it should be; if not, with what is to be said. */
static bool table_is_plain(struct guard *g, int directory, struct str name, struct buf *what)
{
    struct sys_stat st;
    char path[NAME_MAX + 1];
    if (name.n == 0 || !str_copy(name, path, sizeof path) || memchr(name.p, '/', name.n)) {
        buf_text(what, "a table elsewhere");
        return false;
    }
    auto_fd int file = sys_openat(directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (file == -ENOENT) /* git would not work there */
        return true;
    if (file < 0 || sys_stat_fd(file, SYS_STAT_BASIC, &st) < 0 || !S_ISREG(st.mode) || st.size > REFS_BYTES) {
        buf_text(what, "a table that is too large to examine, or is not a file");
        return false;
    }
    size_t n = 0;
    char *bytes = content(g, file, st.size, &n);
    int no = bytes ? gitref_table((struct str){bytes, n}, take_odd, what) : -EACCES;
    free(bytes);
    if (no < 0)
        buf_text(what, "a table that cannot be read");
    return no == 0;
}

/* What a box removed may be in an older table for a while, and is named then, too. */
static void tell_tables(struct guard *g, struct ending *e, struct str path, struct str list)
{
    auto_buf struct buf what = BUF(8192);
    auto_fd int dir = open_in_box((struct str){path.p, path.n - sizeof TABLES}, O_PATH | O_DIRECTORY);
    bool plain = dir >= 0;
    for (unsigned left = TABLES_MAX; plain && list.n; left--) {
        struct str name = str_until(&list, '\n');
        plain = left && table_is_plain(g, dir, name, &what);
    }
    if (!plain)
        tell_or_count(g, e, TOLD_REF, path, what.n ? buf_view(&what) : STR(TOLD_CLOSED));
}

/* HEAD, packed-refs or a reftable's list: the first name that looks like an option, or of a replacement. */
static void tell_refs(struct guard *g, struct ending *e, int file, struct str path, uint64_t size)
{
    struct str name = {"", 0};
    size_t n = 0;
    if (size > REFS_BYTES) {
        tell_or_count(g, e, TOLD_REF, path, STR("too large to examine"));
        return;
    }
    char *bytes = content(g, file, size, &n);
    if (!bytes)
        tell_or_count(g, e, TOLD_REF, path, STR(TOLD_CLOSED));
    struct str text = {bytes, n};
    bool odd = false;
    if (path.n > sizeof TABLES && fold_eq(str_skip(path, path.n - (sizeof TABLES - 1)), STR(TABLES))) {
        tell_tables(g, e, path, text);
        text.n = 0;
    }
    if (str_starts(text, STR("ref:")))
        odd = gitref_of_head(text, &name) && gitref_is_odd(name);
    while (!odd && gitref_next_packed(&text, &name))
        odd = gitref_is_odd(name);
    if (odd)
        tell_or_count(g, e, TOLD_REF, path, name);
    free(bytes);
}

/* Where the link leads now is in the trees, or of the system, whatever its text says. */
static bool stays_in(struct guard *g, struct str path)
{
    char now[PLACE_PATH];
    size_t n = 0;
    auto_fd int fd = sys_openat2(AT_FDCWD, path.p, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS);
    return fd >= 0 && path_of(g, fd, now, &n) == 0 && n &&
           !rules_leads_out(&g->rules, (struct str){"/", 1}, (struct str){now, n});
}

static void tell_left(struct guard *g, struct ending *e, struct str path)
{
    struct sys_stat st;
    char text[PATH_MAX];
    auto_fd int fd = sys_openat(AT_FDCWD, path.p, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    int no = fd < 0 ? fd : sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    if (no < 0) { /* gone, or in a directory that the box has closed */
        e->more += !git_is_nothing(no);
        return;
    }
    const char *slash = memrchr(path.p, '/', path.n);
    const struct str directory = {path.p, slash && slash > path.p ? (size_t)(slash - path.p) : 1};
    const bool deep = deep_tells(g, path, directory);
    if (S_ISFIFO(st.mode) || deep) {
        tell_or_count(g, e, deep ? TOLD_NAME : TOLD_FIFO, path, (struct str){"", 0});
        return;
    }
    if (S_ISREG(st.mode)) {
        tell_refs(g, e, fd, path, st.size);
        return;
    }
    long n = S_ISLNK(st.mode) ? sys_readlinkat(fd, "", text, sizeof text) : -1;
    if (n > 0 && fold_eq(str_skip(path, directory.n + 1), STR("HEAD")) && gitref_is_odd((struct str){text, (size_t)n}))
        tell_or_count(g, e, TOLD_REF, path, (struct str){text, (size_t)n}); /* a link, as old versions of git made it */
    else if (n > 0 && rules_leads_out(&g->rules, directory, (struct str){text, (size_t)n}) &&
             !(path_climbs_again((struct str){text, (size_t)n}) && stays_in(g, path)))
        tell_or_count(g, e, TOLD_LINK, path, (struct str){text, (size_t)n});
}

void told_end(struct guard *g)
{
    struct ending e = {.more = g->shared->made.left_out + g->shared->left.left_out};
    if (g->report < 0)
        return;
    const struct denial_frame untold = {.kind = FRAME_DENIAL, .rule = UINT32_MAX, .lost = g->shared->denials.dropped};
    if (untold.lost) /* the last refusals of a flood */
        (void)send_surely(g, &untold);
    for (uint32_t at = 0; at < g->shared->made.n;)
        tell_repository(g, &e, places_next(&g->shared->made, &at));
    for (uint32_t at = 0; at < g->shared->left.n;)
        tell_left(g, &e, places_next(&g->shared->left, &at));
    char count[24];
    if (e.more)
        (void)tell(g, TOLD_MORE, (struct str){count, (size_t)snprintf(count, sizeof count, "%zu", e.more)},
                   (struct str){"", 0});
}
