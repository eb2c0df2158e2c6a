/*
 * The file API: a worker of the guard that takes calls from pinfold instead of from the box (protocol/files.h). It runs
 * where the box's calls are performed, in the box's mount namespace, as the box's user and without its capabilities; so
 * a path means what it means to a command (links, private trees, mounts, masked names), and nothing outside the box has
 * a name. The handlers are those of the box's own calls, with the same verdicts and the same name lock.
 *
 * Differences: texts are in our own memory, an opened file is sent over the socket, and /proc is closed, because its
 * links would refer to this process.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "sys/fd.h"
#include "protocol/files.h"
#include "protocol/paths.h"
#include "sys/poll.h"

static uint64_t text_at(const char *text)
{
    return (uint64_t)(uintptr_t)text;
}

static void answer_text(struct file_answer *a, const char *text, size_t n)
{
    if (n >= FILE_PATH)
        n = FILE_PATH - 1;
    memcpy(a->text, text, n);
    a->text[n] = 0;
    a->text_bytes = (uint32_t)n + 1;
}

static void put_stat(struct file_answer *a, const struct sys_stat *st)
{
    a->mode = st->mode;
    a->uid = st->uid;
    a->gid = st->gid;
    a->links = st->links;
    a->size = st->size;
    a->modified_ns = (uint64_t)st->modified.seconds * 1000000000u + st->modified.nanoseconds;
    a->device = (uint64_t)st->major << 32 | st->minor;
    a->inode = st->inode;
    a->mounted = (st->attributes & SYS_STAT_MOUNTED) != 0;
}

/* Finds what a path leads to: the object, or the place where it would be created. */
static int where(struct guard *g, const char *path, struct file_answer *a)
{
    struct place *p = &g->from;
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find(g, AT_FDCWD, path, p);
    if (no == 0) {
        no = object_find(g, p, true, &g->object);
        if (no == 0) {
            put_stat(a, &g->object.st);
            answer_text(a, g->object.path, g->object.n);
            int may = (int)sys_call(SYS_faccessat2, g->object.fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS, 0, 0);
            a->writable = may < 0 ? (uint32_t)-may : 0;
            object_drop(&g->object);
        } else if (no == -ENOENT && p->dir >= 0 && p->plain && !p->slash) {
            /* A name that is free in an existing directory; not a link to a missing object. */
            struct sys_stat st;
            if (sys_stat_at(p->dir, p->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT) {
                answer_text(a, p->path, p->n);
                no = 0;
            }
        }
        place_drop(p);
    }
    names_unlock(g);
    return no;
}

static int read_link(struct guard *g, const char *path, struct file_answer *a)
{
    char text[FILE_PATH];
    int n = link_text(g, AT_FDCWD, text_at(path), text);
    if (n >= 0)
        answer_text(a, text, (size_t)n);
    return n < 0 ? n : 0;
}

/* Sends the table of mounts in a memfd, because it may exceed a message. */
static int mounts(struct guard *g)
{
    struct buf table = BUF(16u << 20);
    int no = paths_of_plan(g->plan, &table);
    int fd = no < 0 ? no : sys_memory("mounts");
    if (fd >= 0 && (no = sys_write_all(fd, table.p, table.n)) < 0)
        fd = (close_fd(fd), no);
    buf_free(&table);
    if (fd >= 0)
        g->given = fd;
    return fd < 0 ? fd : 0;
}

static int machines_own(struct guard *g, const char *path)
{
    struct place *p = &g->from;
    if (!g->plan->machine || !path[0])
        return 0;
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find(g, AT_FDCWD, path, p);
    bool own = no == 0 && plan_in_machine(g->plan, place_path(p));
    if (no == 0 && !own && object_find(g, p, true, &g->object) == 0) {
        own = plan_in_machine(g->plan, object_path(&g->object));
        object_drop(&g->object);
    }
    if (no == 0)
        place_drop(p);
    names_unlock(g);
    if (own)
        snprintf(g->why, sizeof g->why,
                 "it is inside the virtual machine, where only commands can reach it (pinfold exec); the workspace and "
                 "mounts are shared");
    return own ? -EACCES : 0;
}

static long perform(struct guard *g, const struct file_call *c, struct file_answer *a)
{
    const char *path = c->text, *other = c->text + c->path_bytes;
    int no = c->op == FILE_MOUNTS ? 0 : machines_own(g, path);
    if (no == 0 && c->op == FILE_RENAME)
        no = machines_own(g, other);
    if (no < 0)
        return no;
    switch (c->op) {
    case FILE_WHERE:
        return where(g, path, a);
    case FILE_OPEN:
        return open_call(g, AT_FDCWD, text_at(path), (int)c->flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, c->mode);
    case FILE_MAKE_DIR:
        return make_call(g, AT_FDCWD, text_at(path), true, c->mode, 0);
    case FILE_MAKE_LINK:
        return symlink_call(g, text_at(other), AT_FDCWD, text_at(path));
    case FILE_READ_LINK:
        return read_link(g, path, a);
    case FILE_REMOVE:
        return unlink_call(g, AT_FDCWD, text_at(path), (int)c->flags);
    case FILE_RENAME:
        return rename_call(g, AT_FDCWD, text_at(path), AT_FDCWD, text_at(other), 0);
    case FILE_MODE:
        return change_at(g, AT_FDCWD, text_at(path), 0, NEW_MODE(c->mode));
    case FILE_MOUNTS:
        return mounts(g);
    default:
        return -EINVAL;
    }
}

static bool text_ok(const char *text, size_t n)
{
    return n > 0 && n <= FILE_PATH && text[n - 1] == 0 && strlen(text) == n - 1;
}

static bool call_ok(const struct file_call *c, size_t bytes)
{
    const size_t head = offsetof(struct file_call, text);
    const bool two = c->op == FILE_MAKE_LINK || c->op == FILE_RENAME;
    if (bytes < head || c->path_bytes > FILE_PATH || c->other_bytes > FILE_PATH ||
        bytes != head + c->path_bytes + c->other_bytes)
        return false;
    if (c->op == FILE_MOUNTS)
        return bytes == head;
    return text_ok(c->text, c->path_bytes) && c->text[0] == '/' &&
           (two ? text_ok(c->text + c->path_bytes, c->other_bytes) : c->other_bytes == 0) &&
           (c->op != FILE_RENAME || c->text[c->path_bytes] == '/');
}

/* The rule that refused, and why, for the message. */
static void put_refusal(const struct guard *g, struct file_answer *a)
{
    size_t n = strlen(g->why);
    if (g->why_rule)
        answer_text(a, g->why_rule->path.p, g->why_rule->path.n < 512 ? g->why_rule->path.n : 512);
    else
        answer_text(a, "", 0);
    memcpy(a->text + a->text_bytes, g->why, n + 1);
    a->why_bytes = (uint32_t)n + 1;
}

static void answer(struct guard *g, int socket, const struct file_call *c, size_t bytes, struct file_answer *a)
{
    memset(a, 0, FILE_HEAD);
    g->given = -1;
    g->why[0] = 0;
    g->why_rule = NULL;
    long r = call_ok(c, bytes) ? perform(g, c, a) : -EINVAL;
    a->result = r < 0 ? (int32_t)r : 0;
    if (r < 0) {
        a->text_bytes = 0;
        g->given = close_fd(g->given);
        if (g->why[0])
            put_refusal(g, a);
    }
    (void)sys_send_fd(socket, a, FILE_HEAD + a->text_bytes + a->why_bytes, g->given, 0);
    g->given = close_fd(g->given);
}

void guard_files(struct guard *g, int socket)
{
    static struct file_call c;
    static struct file_answer a;
    static struct target ours = {.tid = -1, .tgid = -1, .proc = -1, .pidfd = -1, .process = -1};
    g->ours = true;
    g->who = &ours;
    g->notify = close_fd(g->notify); /* other workers receive the box's calls */
    memset(&g->n, 0, sizeof g->n);
    for (;;) {
        struct pollfd p[] = {{.fd = socket, .events = POLLIN}, {.fd = g->init_pidfd, .events = POLLIN}};
        if (sys_poll_ms(p, 2, -1) < 0)
            continue;
        if (p[1].revents)
            break;
        long n = p[0].revents ? sys_recv(socket, &c, sizeof c, MSG_DONTWAIT) : -EAGAIN;
        if (n == -EAGAIN || n == -EINTR)
            continue;
        if (n <= 0)
            break;
        answer(g, socket, &c, (size_t)n, &a);
    }
}
