/*
 * What a box leaves in a writable tree that was no refusal, and that a person should look at before they go on there:
 * repositories it made that hold names which run by themselves, links that lead out of the trees, FIFOs. Where these were made is
 * remembered, and what of it stands there when the box is over is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "guard/gitconfig.h"
#include "guard/inside.h"
#include "sys/socket.h"

#define TOLD_MAX 64 /* frames; what is more is counted in the last */

/* ---- what was made, and where it went ---- */

/* What is at `from` goes to `to`, and with it what is below. */
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

/* Where everybody's programs and libraries are: links there (every virtual environment of Python's has some) say nothing. */
static bool is_system(struct str path)
{
    static const char *const places[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (path_in(path, str_of(places[i])))
            return true;
    return false;
}

/* Whether a link in `directory` with this text leads out, as far as the text says. */
static bool leads_out(struct guard *g, struct str directory, struct str text)
{
    auto_buf struct buf path = BUF(2 * PLACE_PATH);
    gitconfig_follow(directory.n == 1 ? (struct str){"", 0} : directory, text, &path);
    struct str place = path.n ? buf_view(&path) : STR("/");
    return !buf_ok(&path) ||
           (!is_system(place) && (rules_root(&g->rules, place).n == 0 || rules_private(&g->rules, place)));
}

static bool of_the_host(struct guard *g, struct str path)
{
    return rules_root(&g->rules, path).n && !rules_private(&g->rules, path);
}

void told_link(struct guard *g, const struct place *p, const char *text)
{
    if (of_the_host(g, place_path(p)) && leads_out(g, place_dir(p), str_of(text)))
        (void)places_add(g, &g->shared->left, place_path(p));
}

void told_fifo(struct guard *g, const struct place *p)
{
    if (of_the_host(g, place_path(p)))
        (void)places_add(g, &g->shared->left, place_path(p));
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

static void tell(struct guard *g, enum told_kind kind, struct str path, struct str what)
{
    struct denial_frame f = {.kind = FRAME_TOLD, .action = kind, .rule = UINT32_MAX};
    const size_t room = sizeof f.text - 1024;
    size_t n = path.n < room ? path.n : room, k = what.n < 1000 ? what.n : 1000;
    memcpy(f.text, path.p, n);
    memcpy(f.text + n + 1, what.p, k);
    f.n = (uint32_t)(n + 1 + k + 1);
    (void)sys_send(g->report, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* True when there was something to say. */
static bool tell_repository(struct guard *g, struct str path)
{
    auto_fd int dir = sys_openat2(AT_FDCWD, path.p, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    auto_buf struct buf names = BUF(4096);
    if (dir < 0 || !reporoot_tells(g, dir, path, &names))
        return false;
    tell(g, TOLD_REPOSITORY, path, buf_view(&names));
    return true;
}

static bool tell_left(struct guard *g, struct str path)
{
    struct sys_stat st;
    char text[PATH_MAX];
    auto_fd int fd = sys_openat(AT_FDCWD, path.p, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 || sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st) < 0)
        return false;
    if (S_ISFIFO(st.mode)) {
        tell(g, TOLD_FIFO, path, (struct str){"", 0});
        return true;
    }
    long n = S_ISLNK(st.mode) ? sys_readlinkat(fd, "", text, sizeof text) : -1;
    const char *slash = memrchr(path.p, '/', path.n);
    struct str directory = {path.p, slash && slash > path.p ? (size_t)(slash - path.p) : 1};
    if (n <= 0 || !leads_out(g, directory, (struct str){text, (size_t)n}))
        return false;
    tell(g, TOLD_LINK, path, (struct str){text, (size_t)n});
    return true;
}

void told_end(struct guard *g)
{
    unsigned said = 0;
    if (g->report < 0)
        return;
    for (uint32_t at = 0; at < g->shared->made.n && said < TOLD_MAX;)
        said += tell_repository(g, places_next(&g->shared->made, &at));
    for (uint32_t at = 0; at < g->shared->left.n && said < TOLD_MAX;)
        said += tell_left(g, places_next(&g->shared->left, &at));
}
