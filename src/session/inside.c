/*
 * Translates this machine's paths in directories and variables into the box's, with the session's table of mounts.
 * For boxes of images, whose workspace lies elsewhere than on the host.
 */
#include "session/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/world.h"
#include "protocol/paths.h"

#define MAX_TABLE (16u << 20)

static bool is_remapped(const struct path_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->mounts[i].kind != PATH_PRIVATE && !str_eq(t->mounts[i].host, t->mounts[i].box))
            return true;
    }
    return false;
}

static int write_table(const char *path, const struct buf *b)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    for (size_t at = 0; at < b->n;) {
        ssize_t n = write(fd, b->p + at, b->n - at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int inside_write(const struct session_place *p, const struct plan *plan, struct record *r, struct err *e)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    auto_buf struct buf b = BUF(MAX_TABLE);
    struct path_table t;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/mounts", p->state);
    int no = !mem ? -ENOMEM : plan->image ? paths_of_plan(plan->image, &b) : 0;
    if (no == 0)
        no = paths_load(&t, b.p, b.n, mem);
    if (no == 0) {
        r->remapped = is_remapped(&t);
        no = r->remapped ? write_table(path, &b) : 0;
    }
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot write the session's mount table '%s'", path) : 0;
}

static bool says_path(const struct pinfold_exec_options *o)
{
    bool found = o->cwd != NULL;
    for (const char *const *v = o->env; v && *v && !found; v++)
        found = strchr(*v, '/') != NULL;
    return found;
}

static const char *value_inside(const struct path_table *t, const char *value, struct arena *mem)
{
    auto_buf struct buf out = BUF(MAX_TABLE);
    if (!paths_enter(t, str_of(value), &out))
        return value;
    return buf_ok(&out) ? arena_text(mem, buf_cstr(&out)) : NULL;
}

int inside_options(const struct pinfold_session *s, struct pinfold_exec_options *o, struct arena *mem, struct err *e)
{
    char path[PATH_MAX];
    struct path_table t;
    struct str text;
    if (!s->record.remapped || !says_path(o))
        return 0;
    snprintf(path, sizeof path, "%s/mounts", s->place.state);
    int r = read_whole(mem, path, MAX_TABLE, FILE_OWN, false, true, &text, e);
    if (r == -ENOENT) /* the session is about to be gone, which its session daemon says better */
        return 0;
    if (r == 0 && paths_load(&t, text.p, text.n, mem) < 0)
        r = err_say(e, ERR_SYSTEM, "'%s' is not a mount table", path);
    if (r < 0)
        return r;
    size_t n = 0;
    while (o->env && o->env[n])
        n++;
    const char **env = arena_zero(mem, (n + 1) * sizeof *env);
    bool whole = env != NULL;
    for (size_t i = 0; whole && i < n; i++) {
        const char *equals = strchr(o->env[i], '=');
        const char *value = equals ? value_inside(&t, equals + 1, mem) : NULL;
        env[i] = !equals || value == equals + 1 ? o->env[i]
                 : value ? arena_printf(mem, "%.*s=%s", (int)(equals - o->env[i]), o->env[i], value)
                         : NULL;
        whole = env[i] != NULL;
    }
    if (whole && o->cwd)
        whole = (o->cwd = value_inside(&t, o->cwd, mem)) != NULL;
    if (whole && o->env)
        o->env = env;
    return whole ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the command");
}
