/*
 * What is proposed with care, or not at all; and one directory in the place of many files of a cache or a build. By
 * paths alone: which ones run something, hold credentials or belong to the system.
 */
#include <string.h>
#include <sys/stat.h>

#include "learn/learn.h"

enum { MANY = 4 };

static unsigned depth(const char *path)
{
    unsigned n = 0;
    for (const char *c = path; *c; c++)
        n += *c == '/' && c[1] && c[1] != '/';
    return n;
}

/* The part of `path` below the home, or NULL. */
static const char *in_home(const struct learn *l, const char *path)
{
    return *l->home && learn_below(path, l->home) && path[strlen(l->home)] ? path + strlen(l->home) + 1 : NULL;
}

enum learn_care learn_care_of_path(const struct learn *l, const char *path, const char **ret_why)
{
    static const char systems[][8] = {"/etc",   "/usr",  "/bin",  "/sbin", "/lib", "/lib32",
                                      "/lib64", "/boot", "/proc", "/sys",  "/dev", "/run"};
    static const char wide[][16] = {".config", ".local", ".local/share", ".local/state", ".cache"};
    static const char obeyed[][28] = {"bin",
                                      ".local/bin",
                                      ".config/autostart",
                                      ".config/systemd",
                                      ".local/share/applications",
                                      ".local/share/systemd"};
    const char *rest = in_home(l, path);
    struct stat st;
    *ret_why = NULL;
    if (learn_below(l->home, path) || (learn_below(l->workspace, path) && strcmp(l->workspace, path) != 0))
        *ret_why = strcmp(l->home, path) == 0 ? "it is the whole home" : "it is far more than was needed";
    for (size_t i = 0; i < sizeof systems / sizeof *systems && !rest; i++) {
        if (learn_below(path, systems[i]) && !learn_below(l->workspace, systems[i]))
            *ret_why = "it belongs to the system";
    }
    if (depth(path) < 2 || (learn_below(path, "/var") && depth(path) < 3 && !learn_below(path, l->workspace)))
        *ret_why = "it is far more than was needed";
    if (*ret_why)
        return LEARN_SECRET;
    if (!rest || learn_below(path, l->workspace))
        return LEARN_PLAIN;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (strcmp(rest, wide[i]) == 0)
            *ret_why = "many programs keep their files there";
    }
    for (size_t i = 0; i < sizeof obeyed / sizeof *obeyed; i++) {
        if (learn_below(rest, obeyed[i]))
            *ret_why = "programs of the host run what is there";
    }
    if (rest[0] == '.' && !strchr(rest, '/') && lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        *ret_why = "programs of the host obey it";
    return *ret_why ? LEARN_NAMED : LEARN_PLAIN;
}

/* ---- many files, one directory ---- */

/* Whether this part of a path names a cache (`ret_deep`: of which each program has a part), or what a build makes. */
static bool is_made(struct str part, bool *ret_deep)
{
    static const char names[][16] = {"build",  "target",      "dist",          "out",     "obj",     "node_modules",
                                     "cache",  "caches",      "_cacache",      "tmp",     ".gradle", ".m2",
                                     ".npm",   "__pycache__", ".pytest_cache", ".tox",    ".venv",   "_build",
                                     ".cargo", ".ccache",     ".terraform",    "Library", ".nuget"};
    *ret_deep = str_is(part, ".cache");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_is(part, names[i]))
            return true;
    }
    return *ret_deep;
}

/* How much of `path` names the cache or build directory that it is in; 0: in none. */
static size_t made_of(const char *path)
{
    bool deep;
    for (const char *at = path; *at == '/';) {
        size_t n = strcspn(at + 1, "/");
        const char *end = at + 1 + n;
        if (!*end)
            return 0;
        if (is_made((struct str){at + 1, n}, &deep)) {
            const char *next = deep ? strchr(end + 1, '/') : end;
            return next ? (size_t)(next - path) : 0;
        }
        at = end;
    }
    return 0;
}

static bool can_join(const struct learn_rule *r)
{
    return !r->gone && r->answer == LEARN_OPEN && r->care == LEARN_PLAIN && strcmp(r->key, "files.rw") == 0;
}

/* What the directories of both have in common. */
static size_t common(const char *a, size_t n, const char *b)
{
    size_t same_n = 0;
    for (size_t i = 0; i <= n; i++) {
        bool a_ends = i == n || a[i] == '/', b_ends = !b[i] || b[i] == '/';
        if (a_ends && b_ends)
            same_n = i;
        if (i == n || a[i] != b[i])
            break;
    }
    return same_n;
}

static int join(struct learn *l, const char *path, size_t n, size_t first, size_t made, struct pinfold_error *error)
{
    const char *why, *act = l->rules[first]->act, *dir = arena_str(l->mem, (struct str){path, n});
    struct learn_rule *whole;
    unsigned count = 0, pass = 0;
    if (!dir)
        return learn_memory(error);
    if (learn_care_of_path(l, dir, &why) != LEARN_PLAIN)
        return 0;
    whole = learn_rule_of(l, "rw", dir);
    if (!whole)
        return learn_memory(error);
    for (size_t i = first; i < l->n_rules; i++) {
        struct learn_rule *r = l->rules[i];
        if (r == whole || !can_join(r) || made_of(r->value) != made || strncmp(r->value, path, made) != 0)
            continue;
        r->gone = true;
        count += r->count;
        pass = r->pass > pass ? r->pass : pass;
        whole->guess |= r->guess;
        act = strcmp(act, r->act) == 0 ? act : "act";
    }
    whole->act = act;
    whole->count += count;
    whole->pass = pass > whole->pass ? pass : whole->pass;
    return 0;
}

/* What is in a directory that is proposed, too, needs no rule of its own. */
static void drop_inner(struct learn *l)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        struct learn_rule *in = l->rules[i];
        for (size_t k = 0; k < l->n_rules && !in->gone; k++) {
            struct learn_rule *out = l->rules[k];
            if (in == out || out->gone || in->answer != out->answer || strcmp(in->key, out->key) != 0 ||
                strncmp(in->key, "files.", 6) != 0 || out->care == LEARN_SECRET || in->care > out->care ||
                !learn_below(in->value, out->value))
                continue;
            in->gone = true;
            out->count += in->count;
            out->act = strcmp(in->act, out->act) == 0 ? out->act : "act";
            out->pass = in->pass > out->pass ? in->pass : out->pass;
        }
    }
}

int learn_generalise(struct learn *l, struct pinfold_error *error)
{
    int r = 0;
    for (size_t i = 0; i < l->n_rules && r == 0; i++) {
        const char *path = l->rules[i]->value;
        size_t made = can_join(l->rules[i]) ? made_of(path) : 0, n = strlen(path), files = 0;
        if (!made)
            continue;
        for (size_t k = i; k < l->n_rules; k++) {
            const struct learn_rule *other = l->rules[k];
            if (!can_join(other) || made_of(other->value) != made || strncmp(other->value, path, made) != 0)
                continue;
            const char *slash = strrchr(other->value, '/');
            n = common(path, k == i ? (size_t)(slash - path) : n, other->value);
            files++;
        }
        if (files >= MANY && n >= made)
            r = join(l, path, n, i, made, error);
    }
    drop_inner(l);
    return r;
}
