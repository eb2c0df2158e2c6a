/*
 * The person's own definitions of agents. A file that others may write would choose what a box gets of this home, so it must be
 * the person's; one that is named on the command line may lie where boxes write, so it is read once and kept.
 */
#include "run/agent/agent_own.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run/world.h"

enum { OWN_ARENA = 1 << 20, DEFINITION_MAX = 1 << 18, TAKEN_MAX = 16, NAMES_MAX = 256 };
#define ENDING ".yaml"

/* Those of files that were named; until the process ends. */
static struct taken_agent {
    char *name, *file, *text;
} own_taken[TAKEN_MAX];
static size_t n_own_taken;

static bool plain_name(const char *name)
{
    return name && name[0] && name[0] != '.' && name[0] != '-' && !strchr(name, '/') && strlen(name) < 64;
}

int agent_own_read(const char *name, struct arena *mem, const char **ret_file, struct str *ret, struct err *e)
{
    struct world w;
    if (!plain_name(name))
        return -ENOENT;
    for (size_t i = 0; i < n_own_taken; i++) {
        if (!same(own_taken[i].name, name))
            continue;
        *ret_file = own_taken[i].file;
        *ret = str_of(own_taken[i].text);
        return 0;
    }
    int r = world_look(mem, NULL, &w, e);
    if (r < 0)
        return r;
    *ret_file = arena_printf(mem, "%s/agents/%s" ENDING, w.config, name);
    return *ret_file ? read_whole(mem, *ret_file, DEFINITION_MAX, FILE_OWN, false, true, ret, e) : -ENOMEM;
}

void agent_own_begin(void)
{
    agent_own = agent_own_read;
}

/* "x/NAME.yaml" -> NAME, in `mem`; NULL: the file is not called so. */
static const char *name_of_file(const char *file, struct arena *mem)
{
    const char *slash = strrchr(file, '/');
    struct str s = str_of(slash ? slash + 1 : file);
    if (!str_ends(s, STR(ENDING)))
        return NULL;
    s.n -= sizeof ENDING - 1;
    const char *name = arena_str(mem, s);
    return plain_name(name) ? name : NULL;
}

static int keep_definition(const char *name, const char *file, struct str text, const char **ret_name, struct err *e)
{
    struct taken_agent t = {strdup(name), strdup(file), strndup(text.p, text.n)};
    if (!t.name || !t.file || !t.text || n_own_taken == TAKEN_MAX) {
        free(t.name);
        free(t.file);
        free(t.text);
        return n_own_taken == TAKEN_MAX ? err_say(e, ERR_POLICY, "%s: at most %d agents", file, TAKEN_MAX)
                                        : err_sys(e, ERR_SYSTEM, ENOMEM, "%s", file);
    }
    *ret_name = t.name;
    own_taken[n_own_taken++] = t;
    return 0;
}

int agent_own_take(const char *file, const char **ret_name, struct err *e)
{
    auto_arena struct arena *mem = arena_new(OWN_ARENA);
    struct agent a;
    struct world w;
    struct str text;
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "%s", file);
    const char *name = name_of_file(file, mem);
    if (!name)
        return err_say(e, ERR_POLICY, "%s: an agent's definition is a file NAME" ENDING, file);
    for (size_t i = 0; i < n_own_taken; i++) {
        if (same(own_taken[i].name, name))
            return err_say(e, ERR_POLICY, "%s: '%s' is already defined by %s", file, name, own_taken[i].file);
    }
    int r = world_look(mem, NULL, &w, e);
    if (r == 0)
        r = read_named(mem, w.state, "an agent's definition", file, DEFINITION_MAX, FILE_OWN, &text, e);
    if (r == 0)
        r = agent_read(name, file, text, mem, &a, e);
    return r == 0 ? keep_definition(name, file, text, ret_name, e) : r;
}

static bool is_own_listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (same(names[i], name))
            return true;
    }
    return false;
}

static int own_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **agent_own_names(struct arena *mem)
{
    const char **names = NULL, **one, *dir = NULL;
    size_t n = 0;
    struct world w;
    struct err ignored = {0};
    for (size_t i = 0; i < n_own_taken && (one = arena_push(mem, &names, &n, sizeof *one)); i++)
        *one = own_taken[i].name;
    if (world_look(mem, NULL, &w, &ignored) == 0)
        dir = arena_printf(mem, "%s/agents", w.config);
    DIR *all = dir ? opendir(dir) : NULL;
    for (struct dirent *d; all && n < NAMES_MAX && (d = readdir(all));) {
        const char *name = name_of_file(d->d_name, mem);
        if (name && !is_own_listed(names, n, name) && (one = arena_push(mem, &names, &n, sizeof *one)))
            *one = name;
    }
    if (all)
        (void)closedir(all);
    if (names)
        qsort(names, n, sizeof *names, own_by_name);
    one = arena_push(mem, &names, &n, sizeof *one);
    return one ? names : NULL;
}
