/*
 * Where an agent's program is: on PATH, in the places of its definition, and where npm, nvm, volta, bun and pnpm put programs, whose
 * directories are often on the PATH of an interactive shell only.
 */
#include "run/agent/agent_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { WORD_FILES = 512, WORD_LEAST = 16, WORD_MOST = 128 };

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

/* A pattern below `dir`, with "*" for a version, newest first; `place` is what is told of it. */
static void in_place(struct program_search *s, const char *dir, const char *pattern, const char *place)
{
    size_t n = 0;
    const char *said = place ? strstr(buf_cstr(&s->tried), place) : NULL;
    if (!place || (said && (!said[strlen(place)] || said[strlen(place)] == ',')))
        return; /* a definition may name one of the usual places */
    buf_printf(&s->tried, ", %s", place);
    const char **found = agent_places(s->mem, dir, pattern, &n);
    if (n > 1)
        qsort(found, n, sizeof *found, by_version);
    for (size_t i = 0; i < n; i++)
        consider(s, found[i], false);
}

/* "~/..." or "/...", from a definition or from here. */
static void in_usual_place(struct program_search *s, const char *place)
{
    const bool home = place && place[0] == '~';
    in_place(s, home ? s->home : "", place ? place + home : "", place);
}

int agent_program_find(const struct agent *a, const char *home, struct arena *mem, struct agent_program *ret,
                       struct err *e)
{
    static const char dirs[][28] = {
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
        in_place(&s, prefix, arena_printf(mem, "bin/%s", s.name), arena_printf(mem, "%s/bin/%s", prefix, s.name));
    for (size_t i = 0; a->start.places && a->start.places[i]; i++)
        in_usual_place(&s, a->start.places[i]);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        in_usual_place(&s, arena_printf(mem, "%s/%s", dirs[i], s.name));
    int r = 0;
    if (!ret->path)
        r = err_say(e, ERR_POLICY, "%s is not installed: no program '%s' in %s%s%s", a->title, s.name,
                    buf_cstr(&s.tried), a->start.install ? "; to install it: " : "",
                    a->start.install ? a->start.install : "");
    buf_free(&s.tried);
    return r;
}

/* ---- a word of the program's own ---- */

static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' || c == '_';
}

static const char *word_in(struct str text, struct str begins, struct arena *mem)
{
    for (const char *at = text.p, *end = text.p + text.n; (at = memmem(at, (size_t)(end - at), begins.p, begins.n));
         at++) {
        size_t n = begins.n;
        while (at + n < end && n < WORD_MOST && is_of_word(at[n]))
            n++;
        if ((at == text.p || !is_of_word(at[-1])) && n >= WORD_LEAST && n < WORD_MOST)
            return arena_str(mem, (struct str){at, n});
    }
    return NULL;
}

static const char *word_in_file(const char *path, struct str begins, struct arena *mem)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return NULL;
    const size_t n = (size_t)st.st_size;
    const char *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    const char *found = word_in((struct str){p, n}, begins, mem);
    (void)munmap((void *)(uintptr_t)p, n);
    return found;
}

int agent_program_word(const struct agent_program *p, const struct agent_renew *r, struct arena *mem, const char **ret,
                       struct err *e)
{
    const char *slash = p->real ? strrchr(p->real, '/') : NULL, *found = NULL;
    size_t left = WORD_FILES;
    for (size_t i = 0; slash && !found && r->program_files[i]; i++) {
        size_t n = 0;
        const char **all =
            agent_places(mem, arena_printf(mem, "%.*s", (int)(slash - p->real), p->real), r->program_files[i], &n);
        if (n > 1)
            qsort(all, n, sizeof *all, text_order);
        for (size_t k = 0; k < n && !found && left; k++, left--)
            found = word_in_file(all[k], str_of(r->program_word), mem);
    }
    if (!found)
        return err_say(
            e, ERR_CANNOT,
            "the word beginning with \"%s\" that %s wants of the agent's program is not in its files (%s); start "
            "the agent once outside, which renews it",
            r->program_word, r->endpoint, p->real ? p->real : "which are not found");
    *ret = found;
    return 0;
}
