/*
 * Whether the boxes of a project have already what a start would copy: then nothing is copied. What was copied last is known by a sum over
 * the definition's own words and what the kernel says of the host's files (`brought`, in the layer's directory, which no box reaches).
 * Of what boxes wrote only the places of mounts are looked at, without opening anything.
 */
#include "run/agent/starting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "sys/fd.h"
#include "sys/file.h"

#define BROUGHT "brought"

/* A file that changes twice within a step of its clock looks the same: what is newer than this is not relied on. */
enum { SETTLED_S = 2, SAME_DEPTH = 16, SAME_ENTRIES = 8192, SAME_ROOM = 4 << 20 };

struct sum {
    struct buf text;
    int64_t newest;
    size_t entries;
    bool unknown; /* something cannot be looked at, or is too much */
};

static void sum_stat(struct sum *m, const struct stat *st)
{
    const int64_t last = st->st_mtim.tv_sec > st->st_ctim.tv_sec ? st->st_mtim.tv_sec : st->st_ctim.tv_sec;
    buf_printf(&m->text, "%llx %llx %x %llx %lld.%ld %lld.%ld\n", (unsigned long long)st->st_dev,
               (unsigned long long)st->st_ino, st->st_mode, (unsigned long long)st->st_size,
               (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
    m->newest = last > m->newest ? last : m->newest;
}

static void sum_directory(struct sum *m, int dir, unsigned depth)
{
    char room[4096] __attribute__((aligned(8)));
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    const struct sys_dirent *d;
    m->unknown |= depth > SAME_DEPTH;
    while (!m->unknown && (d = sys_next_entry(&all))) {
        struct stat st;
        if (same(d->name, ".git")) /* as in agents/layer.c */
            continue;
        if (m->entries++ >= SAME_ENTRIES || fstatat(dir, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            m->unknown = true;
            break;
        }
        buf_printf(&m->text, "%zu %s ", strlen(d->name), d->name);
        sum_stat(m, &st);
        if (!S_ISDIR(st.st_mode))
            continue;
        own_fd int inner = sys_openat(dir, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (inner >= 0) /* as what cannot be opened is not copied */
            sum_directory(m, inner, depth + 1);
    }
    m->unknown |= all.no < 0;
    buf_text(&m->text, "/\n");
}

static void sum_words(struct sum *m, const char *const *words)
{
    for (; words && *words; words++)
        buf_printf(&m->text, "%zu %s ", strlen(*words), *words);
    buf_text(&m->text, "\n");
}

static void sum_file(struct sum *m, const struct agent_kept *f, int fd)
{
    struct stat st;
    buf_printf(&m->text, "%zu %s %d\n", strlen(f->name), f->name, f->login);
    sum_words(m, f->blank);
    sum_words(m, f->only);
    if (fd < 0) {
        buf_printf(&m->text, "%d\n", fd);
        m->unknown |= fd != -ENOENT; /* which is said at each start */
        return;
    }
    if (fstat(fd, &st) < 0) {
        m->unknown = true;
        return;
    }
    sum_stat(m, &st);
    if (!S_ISDIR(st.st_mode))
        return;
    sum_directory(m, fd, 0);
    m->unknown |= sys_lseek(fd, 0, SEEK_SET) < 0; /* whoever copies reads it from the begin */
}

/* "a/b/" is a directory in the layer, "a/f" a file; and no link on the way. */
static bool is_place(int box, const char *place)
{
    char path[1024];
    struct stat st;
    const size_t n = strlen(place);
    const bool dir = n && place[n - 1] == '/';
    if (!n || n >= sizeof path)
        return false;
    memcpy(path, place, n + 1);
    path[n - dir] = 0;
    auto_fd int fd = sys_openat2(box, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    return fd >= 0 && fstat(fd, &st) == 0 && (dir ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static bool places_are_there(const struct starting *s)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        const struct agent_layer_open *o = &s->layers.open[i];
        for (size_t k = 0; o->places && o->places[k]; k++) {
            if (!is_place(o->box, o->places[k]))
                return false;
        }
    }
    return true;
}

static bool is_noted(const struct starting *s)
{
    char path[4096], text[sizeof s->brought];
    if ((size_t)snprintf(path, sizeof path, "%s/" BROUGHT, s->layer) >= sizeof path)
        return false;
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    return n == sizeof text - 1 && memcmp(text, s->brought, sizeof text - 1) == 0;
}

bool brought_already(struct starting *s)
{
    struct sum m = {.text = BUF(SAME_ROOM)};
    const int64_t now = (int64_t)time(NULL);
    buf_printf(&m.text, "%s %zu %s %d\n", PINFOLD_VERSION, strlen(s->directory), s->directory, s->layers.no_logins);
    for (size_t i = 0; i < s->agent.start.n_layers && !m.unknown; i++) {
        const struct agent_layer *l = &s->agent.start.layers[i];
        const struct agent_layer_open *o = &s->layers.open[i];
        struct stat box, seeds;
        m.unknown |= fstat(o->box, &box) < 0 || fstat(o->seeds, &seeds) < 0;
        if (!m.unknown) /* the very directories: a person may have removed one, to begin anew */
            buf_printf(&m.text, "%llx %llx %llx\n", (unsigned long long)box.st_dev, (unsigned long long)box.st_ino,
                       (unsigned long long)seeds.st_ino);
        for (size_t k = 0; k < l->n_files && !m.unknown; k++)
            sum_file(&m, &l->files[k], o->files[k]);
    }
    const bool known = !m.unknown && buf_ok(&m.text);
    s->brought[0] = 0;
    if (known)
        sha256_hex(buf_view(&m.text), s->brought);
    buf_free(&m.text);
    if (known && is_noted(s))
        return places_are_there(s);
    if (m.newest > now - SETTLED_S)
        s->brought[0] = 0; /* copied now, and not relied on */
    return false;
}

void brought_note(const struct starting *s)
{
    auto_fd int fd = -1;
    struct err e;
    brought_forget(s);
    if (s->brought[0] && starting_hold(s, BROUGHT, LOCK_EX, &fd, &e) == 0)
        (void)!write(fd, s->brought, strlen(s->brought)); /* a part of it is another sum */
}

void brought_forget(const struct starting *s)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/" BROUGHT, s->layer) < sizeof path)
        (void)unlink(path);
}
