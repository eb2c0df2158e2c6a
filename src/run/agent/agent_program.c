/*
 * Where an agent's program is: on PATH, in the places of its definition, and where npm, nvm, volta, bun and pnpm put programs, whose
 * directories are often on the PATH of an interactive shell only.
 */
#include "run/agent/agent_program.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct program_search {
    struct arena *mem;
    const char *home, *name;
    struct agent_program *ret;
    struct buf tried;
};

/* Notes it if it is a program; a second one that is another file is only told. */
static void consider(struct program_search *s, const char *path, bool on_path)
{
    struct stat st;
    char real[PATH_MAX];
    if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0 || !realpath(path, real))
        return;
    if (!s->ret->path) {
        s->ret->path = arena_text(s->mem, path);
        s->ret->real = arena_text(s->mem, real);
        s->ret->on_path = on_path;
    } else if (!s->ret->other && s->ret->real && strcmp(s->ret->real, real) != 0) {
        s->ret->other = arena_text(s->mem, path);
    }
}

static void on_path(struct program_search *s)
{
    const char *all = getenv("PATH");
    struct str rest = str_of(all ? all : "");
    while (rest.n) {
        struct str dir = str_until(&rest, ':');
        if (dir.n && dir.p[0] == '/') /* not what a project has put below "." */
            consider(s, arena_printf(s->mem, "%.*s/%s", (int)dir.n, dir.p, s->name), true);
    }
    buf_text(&s->tried, "PATH");
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)b, *(const char *const *)a);
}

/* "~/..." with "*" for a version, newest first. */
static void in_place(struct program_search *s, const char *place)
{
    glob_t found;
    const char *pattern = arena_printf(s->mem, "%s%s", place[0] == '~' ? s->home : "", place + (place[0] == '~'));
    const char *said = strstr(buf_cstr(&s->tried), place);
    if (said && (!said[strlen(place)] || said[strlen(place)] == ','))
        return; /* a definition may name one of the usual places */
    buf_printf(&s->tried, ", %s", place);
    if (!pattern || glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_version);
    for (size_t i = 0; i < found.gl_pathc; i++)
        consider(s, found.gl_pathv[i], false);
    globfree(&found);
}

int agent_program_find(const struct agent *a, const char *home, struct arena *mem, struct agent_program *ret,
                       struct err *e)
{
    static const char *const dirs[] = {
        "~/.local/bin", "~/.npm-global/bin", "~/.npm-packages/bin", "~/.nvm/versions/node/*/bin",
        "~/.volta/bin", "~/.bun/bin",        "~/.local/share/pnpm", "/usr/local/bin",
        "/opt/*/bin"};
    struct program_search s = {.mem = mem,
                               .home = home,
                               .name = a->start.command ? a->start.command[0] : a->command[0],
                               .ret = ret,
                               .tried = BUF(2048)};
    *ret = (struct agent_program){0};
    on_path(&s);
    const char *prefix = getenv("NPM_CONFIG_PREFIX");
    if (prefix && prefix[0] == '/')
        in_place(&s, arena_printf(mem, "%s/bin/%s", prefix, s.name));
    for (size_t i = 0; a->start.places && a->start.places[i]; i++)
        in_place(&s, a->start.places[i]);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        in_place(&s, arena_printf(mem, "%s/%s", dirs[i], s.name));
    int r = 0;
    if (!ret->path)
        r = err_say(e, ERR_POLICY, "%s is not installed: no program '%s' in %s%s%s", a->title, s.name,
                    buf_cstr(&s.tried), a->start.install ? "; to install it: " : "",
                    a->start.install ? a->start.install : "");
    buf_free(&s.tried);
    return r;
}
