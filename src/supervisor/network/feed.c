/*
 * The host's resolver configuration, while the box runs: a VPN is started, a laptop moves, systemd-resolved rewrites
 * its stub. The egress proxy has no access to files, so changed texts are sent to it. The files are watched directly
 * (they may be rewritten in place, or be mounts) and through the directories along their symbolic links (they may be
 * replaced). Closing an inotify descriptor takes the kernel about 15 ms (it waits for everybody who may be handling an
 * event), so runs shorter than a second have none. A missing or empty file is being rewritten: the previous content
 * stays.
 * One that cannot be read to its end counts as missing: half a list of servers is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "base/fd.h"
#include "supervisor/network/live.h"

enum { MAX_TEXT = 1 << 20, MAX_LINKS = 8 };
#define BEGINS_AFTER_US 1000000u

static const char *const resolver_files[] = {"/etc/resolv.conf", "/etc/hosts"};

/* A server's zone by its number, as in "fe80::1%2": the egress process may not ask the kernel for an interface's name. */
static void number_zone(struct buf *out, struct str line)
{
    const char *at = str_starts(line, STR("nameserver")) ? memchr(line.p, '%', line.n) : NULL;
    struct str before = {line.p, at ? (size_t)(at + 1 - line.p) : 0}, rest = str_skip(line, before.n);
    char name[IF_NAMESIZE] = "";
    size_t n = 0;
    while (n < rest.n && !memchr(" \t\r\n", rest.p[n], 4))
        n++;
    if (at && n < sizeof name)
        memcpy(name, rest.p, n);
    const unsigned index = name[0] ? if_nametoindex(name) : 0;
    buf_str(out, before);
    if (index)
        buf_printf(out, "%u", index);
    buf_str(out, index ? str_skip(rest, n) : rest);
}

void feed_read(const char *path, struct buf *out)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fd_read_all(fd, out) < 0)
        buf_free(out);
    struct str rest = buf_view(out);
    if (!memchr(rest.p, '%', rest.n))
        return;
    struct buf numbered = BUF(out->max);
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = {rest.p, end ? (size_t)(end + 1 - rest.p) : rest.n};
        number_zone(&numbered, line);
        rest = str_skip(rest, line.n);
    }
    buf_free(out);
    *out = numbered;
}

static void watch_directory(int notify, const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = 0;
    (void)inotify_add_watch(notify, dir, IN_ONLYDIR | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
}

/* Adding what is watched already changes nothing, so all is simply added again after every change. */
static void watch_file(int notify, const char *path)
{
    char here[PATH_MAX], target[PATH_MAX], next[2 * PATH_MAX];
    (void)inotify_add_watch(notify, path, IN_CLOSE_WRITE);
    snprintf(here, sizeof here, "%s", path);
    for (int i = 0; i < MAX_LINKS; i++) {
        watch_directory(notify, here);
        ssize_t n = readlink(here, target, sizeof target - 1);
        if (n <= 0)
            return;
        target[n] = 0;
        const char *slash = strrchr(here, '/');
        if (target[0] == '/')
            snprintf(next, sizeof next, "%s", target);
        else
            snprintf(next, sizeof next, "%.*s/%s", (int)(slash - here), here, target);
        if (strlen(next) >= sizeof here)
            return;
        strcpy(here, next);
    }
}

static void refresh(struct box *b)
{
    struct live *l = b->live;
    struct buf *const known[] = {&l->resolv, &l->hosts};
    static const uint32_t kinds[] = {ORDER_RESOLV, ORDER_HOSTS};
    for (size_t i = 0; i < 2; i++) {
        auto_buf struct buf now = BUF(MAX_TEXT);
        feed_read(resolver_files[i], &now);
        if (!buf_ok(&now) || !now.n || str_eq(buf_view(&now), buf_view(known[i])))
            continue;
        if (order_send_bytes(b, (struct egress_order){.kind = kinds[i]}, now.p, now.n) < 0)
            continue;
        buf_free(known[i]);
        *known[i] = now;
        now = BUF(MAX_TEXT);
    }
}

void feed_begin(struct box *b)
{
    b->live->feed.begins_at = now_us() + BEGINS_AFTER_US;
}

void feed_due(struct box *b, uint64_t now)
{
    struct feed *f = &b->live->feed;
    if (now < f->begins_at)
        return;
    f->begins_at = NEVER;
    f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* without one the box keeps what it began with */
    if (f->notify < 0)
        return;
    for (size_t i = 0; i < 2; i++)
        watch_file(f->notify, resolver_files[i]);
    refresh(b); /* what changed since it was read for the egress */
}

void feed_ready(struct box *b)
{
    struct feed *f = &b->live->feed;
    char events[4096];
    ssize_t n;
    do
        n = read(f->notify, events, sizeof events);
    while (n > 0 || (n < 0 && errno == EINTR));
    if (n == 0 || errno != EAGAIN) {
        feed_end(b);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        watch_file(f->notify, resolver_files[i]);
    refresh(b);
}

void feed_end(struct box *b)
{
    b->live->feed.notify = close_fd(b->live->feed.notify);
}
