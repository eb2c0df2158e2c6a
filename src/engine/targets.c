/*
 * What guarded names and the host's git configuration lead to inside the workspace: a link `.git/hooks/pre-commit` to
 * scripts/check.sh, a link `.vscode` to conf/vs, core.hooksPath = ci/hooks, a filter, an alias or an include that is a file
 * there. The name cannot be changed from inside; what it leads to runs all the same, and is protected as what it is when
 * the box starts.
 *
 * Bounded: the entries of the workspace's top and of .git/hooks by getdents(2), three configurations. No walk.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/survey.h"
#include "guard/gitconfig.h"
#include "match/path.h"
#include "policy/path.h"
#include "sys/file.h"

#define TARGETS_MAX  128
#define ENTRIES_MAX  8192 /* of one directory */
#define INCLUDED_MAX 4    /* configurations that one includes from another */

struct seeker {
    const struct policy *policy;
    struct facts *f;
    struct arena *mem;
    const char *top;  /* the workspace, real */
    const char *base; /* the directory of the configuration at hand */
    unsigned left;    /* configurations that may still be included */
    bool failed;
};

/* What `path` leads to, when that is in the workspace: a file, or (directory) a directory, or what is not there yet. */
static void target_is(struct seeker *s, const char *path, bool directory)
{
    char real[PATH_MAX];
    struct stat st;
    const char *end = realpath(path, real);
    bool missing = !end || stat(real, &st) < 0;
    if (missing && (!directory || !(end = path_clean(s->mem, path))))
        return;
    if (!path_at_or_below(end, s->top) || strcmp(end, s->top) == 0 || (!missing && S_ISDIR(st.st_mode) && !directory) ||
        path_at_or_below(end, path_join(s->mem, s->top, ".git")) || s->f->n_targets == TARGETS_MAX)
        return;
    const char **slot = arena_push(s->mem, &s->f->targets, &s->f->n_targets, sizeof *slot);
    const char *kept = slot ? arena_text(s->mem, end) : NULL;
    s->failed |= !kept;
    if (slot)
        *slot = kept ? kept : "";
}

/* Links among the entries of a directory; `guarded`: those with a name of the `root` list alone. */
static void links_in(struct seeker *s, const char *directory, bool guarded)
{
    DIR *d = opendir(directory);
    if (!d)
        return;
    unsigned left = ENTRIES_MAX;
    for (struct dirent *e; left && (e = readdir(d)); left--) {
        bool wanted = !guarded && (e->d_type == DT_LNK || e->d_type == DT_UNKNOWN);
        if (guarded && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
            continue;
        for (size_t i = 0; !wanted && i < s->policy->n_guards; i++) {
            struct str name = str_of(s->policy->guards[i].name);
            wanted = name_fits(str_until(&name, '/'), s->policy->guards[i].pattern, str_of(e->d_name));
        }
        const char *path = wanted ? path_join(s->mem, directory, e->d_name) : NULL;
        if (path)
            target_is(s, path, true);
    }
    closedir(d);
}

static void configuration(struct seeker *s, const char *path);

/* A word of a value, which git or a shell takes for a file's name. */
static void word_is(struct seeker *s, struct str word, bool path, bool include)
{
    const char *text = arena_str(s->mem, word);
    if (!text || word.n == 0 || (!path && !memchr(word.p, '/', word.n)) || word.n >= PATH_MAX)
        return;
    if (str_starts(word, STR("~/")))
        text = s->f->home ? path_join(s->mem, s->f->home, text + 2) : NULL;
    else if (text[0] != '/')
        text = path_join(s->mem, include ? s->base : s->top, text);
    if (!text)
        return;
    target_is(s, text, path);
    if (include && s->left > 0) {
        const char *base = s->base;
        s->left--;
        configuration(s, text);
        s->base = base;
    }
}

static bool ends(struct str key, const char *end)
{
    return str_ends(key, str_of(end));
}

static int entry(void *ctx, const struct gitconfig_entry *e)
{
    struct seeker *s = ctx;
    static const char apart[] = " \t\n'\"`;|&()$=<>!";
    const bool include = str_starts(e->key, STR("include")) && ends(e->key, ".path");
    if (str_starts(e->key, STR("remote.")) || str_starts(e->key, STR("branch.")) ||
        str_starts(e->key, STR("submodule.")) || gitconfig_is_worktree(e) || e->value.n == 0)
        return 0;
    if (include || ends(e->key, ".hookspath") || ends(e->key, ".attributesfile") || ends(e->key, ".path")) {
        word_is(s, e->value, true, include);
        return 0;
    }
    for (struct str rest = e->value; rest.n;) {
        size_t n = 0;
        while (n < rest.n && !strchr(apart, rest.p[n]))
            n++;
        word_is(s, (struct str){rest.p, n}, false, false);
        rest = str_skip(rest, n + 1);
    }
    return 0;
}

static void configuration(struct seeker *s, const char *path)
{
    auto_fd int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (long)GITCONFIG_MAX_BYTES)
        return;
    char *bytes = arena_zero(s->mem, (size_t)st.st_size + 1);
    long n = bytes ? sys_read(fd, bytes, (size_t)st.st_size) : -1;
    s->base = path_dir(s->mem, path);
    if (n > 0 && s->base) /* as far as it can be read: what git takes before a mistake counts */
        (void)gitconfig_parse((struct str){bytes, (size_t)n}, entry, s, NULL);
}

int survey_targets(const struct policy *p, struct facts *f, struct arena *mem)
{
    const struct path_fact *top = facts_path(f, p->workspace);
    if (p->guard == GUARD_OFF || p->n_guards == 0 || p->workspace_read_only || !top || top->type != PATH_DIR ||
        strcmp(top->real, "/") == 0)
        return 0;
    struct seeker s = {.policy = p, .f = f, .mem = mem, .top = top->real, .left = INCLUDED_MAX};
    const char *const files[] = {path_join(mem, s.top, ".git/config"),
                                 f->home ? path_join(mem, f->home, ".gitconfig") : NULL,
                                 f->config_home ? path_join(mem, f->config_home, "git/config") : NULL};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            configuration(&s, files[i]);
    const char *hooks = path_join(mem, s.top, ".git/hooks");
    links_in(&s, s.top, true);
    if (hooks)
        links_in(&s, hooks, false);
    return s.failed ? -ENOMEM : 0;
}
