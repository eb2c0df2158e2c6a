/*
 * `pinfold agent merge`: what boxes have changed of an agent's settings, listed and taken over. What is taken is what the list has shown:
 * it is kept beside the layer, where no box reaches, and a change that is another by now is not taken. Of values the list has all; of a
 * whole file, which it names only, the sum of its bytes is kept.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/agent/agent_start.h"
#include "run/agent/starting.h"
#include "run/options.h"
#include "user/replace.h"

#define SHOWN "shown" /* in the directory of the layer */

enum { MERGE_ARENA = 32 << 20, LIST_MAX = 4 << 20 };

/* Renamed over the host's file, or over what its link leads to; with its mode. */
static int write_host(const char *path, struct str bytes, struct err *e)
{
    char real[PATH_MAX], temp[PATH_MAX + 32], parent[PATH_MAX];
    struct stat st = {.st_mode = 0600};
    if (!realpath(path, real))
        snprintf(real, sizeof real, "%s", path);
    else if (stat(real, &st) < 0 || !S_ISREG(st.st_mode))
        return err_say(e, ERR_POLICY, "%s is not a regular file; nothing was changed", real);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(real, '/') - real), real);
    int r = make_private_directories(parent, e);
    if (r < 0)
        return r;
    snprintf(temp, sizeof temp, "%s.pinfold-%ld", real, (long)getpid());
    const int no = file_replace(AT_FDCWD, real, temp, bytes, st.st_mode & 0777);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot write %s; nothing was changed", real) : 0;
}

static int take(struct starting *s, const char *name, struct buf *out, struct err *e)
{
    auto_buf struct buf answer = BUF(32 << 20);
    int r = agent_layers_do(&s->layers, AGENT_TAKE, name, &answer, e);
    if (r == -ENOENT)
        return err_say(e, ERR_POLICY, "no box of this project has changed '%s' (see: pinfold agent merge %s)", name,
                       s->agent.name);
    if (r == -EBUSY)
        return err_say(e, ERR_POLICY,
                       "'%s' as a whole would undo what is outside: name a key (FILE:KEY), or copy it by hand from %s",
                       name, s->layer);
    if (r == -EBADMSG)
        return err_say(e, ERR_POLICY,
                       "'%s' is not merged: the file on this machine that it would change cannot be read, or exceeds "
                       "16 MiB",
                       name);
    if (r == -ENODATA)
        return err_say(e, ERR_POLICY, "'%s' was removed in the box, and removals are not taken over: remove it by hand",
                       name);
    if (r == -EFBIG)
        return err_say(e, ERR_POLICY,
                       "'%s' is too long to be shown, so it is not merged: look at it in %s and copy it by hand", name,
                       s->layer);
    if (r < 0)
        return r;
    struct str rest = buf_view(&answer), layer = str_until(&rest, '\n'), file = str_until(&rest, '\n');
    size_t i = layer.n == 1 ? (size_t)(layer.p[0] - '0') : AGENT_LAYERS_MAX;
    if (i >= s->agent.start.n_layers || strncmp(file.p, name, file.n) != 0)
        return err_say(e, ERR_BUG, "cannot merge '%s'", name);
    const struct agent_kept *f = NULL, *all = s->agent.start.layers[i].files;
    for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++)
        f = str_is(file, all[k].name) ? &all[k] : f;
    const char *path =
        f ? starting_host_file(s, i, f) : arena_printf(s->mem, "%s/%.*s", s->host[i], (int)file.n, file.p);
    r = path && !strstr(path, "/../") ? write_host(path, rest, e) : err_say(e, ERR_BUG, "cannot merge '%s'", name);
    if (r == 0)
        buf_printf(out, "merged %s into %s\n", name, path);
    return r;
}

/* ---- what was shown ---- */

static void keep_shown(const struct starting *s, struct str list)
{
    auto_fd int dir = open(s->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && agent_file_put(dir, SHOWN, list.p ? list.p : "", list.n) < 0)
        (void)unlinkat(dir, SHOWN, 0); /* of an earlier list, which nobody means any more */
}

/* The lines of a list that are about this FILE or FILE:KEY, or about a part of it. */
static void put_lines_of(struct str list, const char *name, struct buf *to)
{
    const size_t n = strlen(name);
    while (list.n) {
        const struct str line = str_until(&list, '\n');
        if (line.n > n && memcmp(line.p, name, n) == 0 && strchr("\t:.[", line.p[n])) {
            buf_str(to, line);
            buf_char(to, '\n');
        }
    }
}

/* That each of `takes` still is what the last list has shown; of one that is no change at all take() says so. */
static int check_shown(struct starting *s, const char *const *takes, struct err *e)
{
    auto_buf struct buf now = BUF(LIST_MAX);
    auto_fd int dir = open(s->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_fd int fd = dir < 0 ? -1 : agent_file_open(dir, SHOWN, false);
    char *bytes = NULL;
    size_t n = 0;
    int r = agent_layers_do(&s->layers, AGENT_CHANGES, NULL, &now, e);
    const bool shown = r == 0 && fd >= 0 && agent_file_read(fd, &bytes, &n) == 0;
    for (size_t i = 0; r == 0 && takes[i]; i++) {
        auto_buf struct buf was = BUF(LIST_MAX), is = BUF(LIST_MAX);
        put_lines_of(buf_view(&now), takes[i], &is);
        put_lines_of(shown ? (struct str){bytes, n} : (struct str){0}, takes[i], &was);
        if (!buf_ok(&was) || !buf_ok(&is))
            r = err_sys(e, ERR_SYSTEM, ENOMEM, "agent merge");
        else if (is.n && !str_eq(buf_view(&was), buf_view(&is)))
            r = err_say(
                e, ERR_POLICY, "'%s' %s; nothing was merged: look first, with: pinfold agent merge %s", takes[i],
                was.n ? "is no longer what was shown: a box or this machine has changed it since" : "was not shown yet",
                s->agent.name);
    }
    free(bytes);
    return r;
}

/* ---- the list for people ---- */

/* How many files of a directory that the agent itself fills are "new", "changed" and "removed". */
struct installed {
    const char *directory;
    size_t n[3];
};
enum { INSTALLED_MAX = 16 };
static const char *const installed_words[3] = {"new", "changed", "removed"};

static size_t installed_begin(const struct agent *a, struct installed all[INSTALLED_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < a->start.n_layers; i++) {
        const char **one = a->start.layers[i].installs;
        for (; one && *one && n < INSTALLED_MAX; one++)
            all[n++] = (struct installed){.directory = *one};
    }
    return n;
}

static bool is_installed(struct installed *all, size_t n, struct str name, struct str what)
{
    size_t kind = 3;
    while (kind-- && !str_is(what, installed_words[kind]))
        ;
    for (size_t i = 0; i < n; i++) {
        if (!str_starts(name, str_of(all[i].directory)))
            continue;
        all[i].n[kind < 3 ? kind : 1]++; /* of JSON the list has the keys */
        return true;
    }
    return false;
}

static void put_installed(const struct starting *s, const struct installed *i, struct buf *to)
{
    size_t said = 0;
    for (size_t k = 0; k < 3; k++) {
        if (!i->n[k])
            continue;
        if (!said)
            buf_printf(to, "%s\t", i->directory);
        buf_printf(to, "%s%zu %s", said ? ", " : "", i->n[k], installed_words[k]);
        said++;
    }
    if (said)
        buf_printf(to, " (%s itself installs files there; all are below %s)\n", s->agent.title, s->layer);
}

/* Without the sums, and with one line for what the agent itself installs. A file there can still be named. */
static void put_list(const struct starting *s, struct str list, struct buf *to)
{
    struct installed all[INSTALLED_MAX];
    const size_t n = installed_begin(&s->agent, all);
    while (list.n) {
        struct str rest = str_until(&list, '\n');
        const struct str name = str_until(&rest, '\t'), what = str_until(&rest, '\t');
        if (is_installed(all, n, name, what))
            continue;
        buf_str(to, name);
        buf_char(to, '\t');
        buf_str(to, what);
        buf_char(to, '\n');
    }
    for (size_t i = 0; i < n; i++)
        put_installed(s, &all[i], to);
}

int agent_start_merge(const char *name, const char *const *takes, char **ret, struct pinfold_error *error)
{
    struct err e = {0};
    auto_arena struct arena *mem = arena_new(MERGE_ARENA);
    auto_buf struct buf out = BUF(LIST_MAX), list = BUF(LIST_MAX);
    auto_fd int lock = -1, live = -1;
    struct starting *s = starting_new(mem);
    struct stat st;
    int r = s ? starting_look(s, name, NULL, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "agent");
    bool none = r == 0 && stat(s->layer, &st) < 0;
    if (r == 0 && none && takes)
        r = err_say(&e, ERR_POLICY, "no box of %s has run in %s", s->agent.title, s->workspace);
    if (r == 0 && !none)
        r = starting_open(s, &e);
    if (r == 0 && !none)
        r = starting_hold(s, "lock", LOCK_EX, &lock, &e);
    if (r == 0 && takes) {
        r = starting_hold(s, "live", LOCK_EX | LOCK_NB, &live, &e);
        if (r == -EWOULDBLOCK)
            r = err_say(&e, ERR_POLICY,
                        "a box of %s runs in this project and may be changing its settings; end it first",
                        s->agent.title);
    }
    if (r == 0 && takes)
        r = check_shown(s, takes, &e);
    for (size_t i = 0; r == 0 && takes && takes[i]; i++)
        r = take(s, takes[i], &out, &e);
    if (r == 0 && !none && !takes)
        r = agent_layers_do(&s->layers, AGENT_CHANGES, NULL, &list, &e);
    if (r == 0 && !none && !takes) {
        put_list(s, buf_view(&list), &out);
        keep_shown(s, buf_view(&list));
    }
    if (r == 0 && !takes && !out.n)
        buf_printf(&out, "no box of %s has changed its settings in %s\n", s->agent.title, s->workspace);
    if (s)
        starting_end(s);
    return r < 0 ? tell(error, &e, r) : give(&out, ret, error);
}
