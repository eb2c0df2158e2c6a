/*
 * Files that a path with patterns means (match/glob.h), as "versions/X/bin" with a star for X. agent_program.c looks for an agent's
 * program in such places. The directory that the path begins in is taken literally: a home may be called "a[b]".
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "match/glob.h"
#include "run/agent/agent_program.h"

struct places_search {
    struct arena *mem;
    const char **found;
    size_t n;
};

static bool has_wildcard(struct str part)
{
    for (size_t i = 0; i < part.n; i++) {
        if (strchr("*?[\\", part.p[i]))
            return true;
    }
    return false;
}

/* As in a shell, a star means no name that begins with a dot. */
static bool is_entry_of(struct str part, const char *name)
{
    return (name[0] != '.' || part.p[0] == '.') && glob_match(part, str_of(name), GLOB_EXACT);
}

/* What is below `dir` ("" is the root) by the rest of the path. */
static void find_below(struct places_search *s, const char *dir, struct str rest)
{
    struct str part = {NULL, 0};
    struct stat st;
    while (rest.n && !part.n)
        part = str_until(&rest, '/');
    if (!dir)
        return;
    if (!part.n) {
        const char **to =
            lstat(dir, &st) == 0 && s->n < AGENT_PLACES ? arena_push(s->mem, &s->found, &s->n, sizeof *s->found) : NULL;
        if (to)
            *to = dir;
        return;
    }
    if (!has_wildcard(part)) {
        find_below(s, arena_printf(s->mem, "%s/%.*s", dir, (int)part.n, part.p), rest);
        return;
    }
    DIR *list = opendir(*dir ? dir : "/");
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (is_entry_of(part, entry->d_name))
            find_below(s, arena_printf(s->mem, "%s/%s", dir, entry->d_name), rest);
    }
    if (list)
        (void)closedir(list);
}

const char **agent_places(struct arena *mem, const char *dir, const char *pattern, size_t *ret_n)
{
    struct places_search s = {.mem = mem};
    find_below(&s, dir, str_of(pattern));
    *ret_n = s.n;
    return s.found;
}
