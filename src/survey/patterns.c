/*
 * What patterns match on the host: the names of one directory (`hide: /etc/ssh/ssh_host_*_key`), or of a whole tree
 * (`expand: start`), within bounds that are said when they are met.
 */
#include "survey/path.h"
#include "survey/walk.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "match/glob.h"
#include "match/path.h"

#define MAX_EXPANDED      1000000 /* names examined by `expand: start` */
#define MAX_EXPAND_LEVELS 128
#define MAX_MATCHES       10000 /* of all rules: each becomes a mount or a rule of the guard */

static int add_match(struct surveyor *s, struct facts *f, size_t rule, const char *dir, const char *name,
                     enum path_type type)
{
    if (f->n_matches >= MAX_MATCHES)
        return -EOVERFLOW;
    struct match_fact *m = arena_push(s->mem, &f->matches, &f->n_matches, sizeof *m);
    const char *real = m ? path_join(s->mem, dir, name) : NULL;
    if (!real)
        return -ENOMEM;
    *m = (struct match_fact){.rule = (uint32_t)rule, .real = real, .type = type};
    struct sys_stat st;
    m->refused =
        sys_look(real, &st) == 0 && survey_is_refused(s, f, real, (uint64_t)st.major << 32 | st.minor, st.uid, st.mode);
    return 0;
}

enum path_type survey_entry_type(const char *dir, const struct dirent *d)
{
    if (d->d_type == DT_UNKNOWN) {
        char path[PATH_MAX];
        struct sys_stat st;
        int n = snprintf(path, sizeof path, "%s/%s", dir, d->d_name);
        if (n < 0 || (size_t)n >= sizeof path || sys_look(path, &st) < 0)
            return PATH_MISSING;
        return S_ISLNK(st.mode) ? PATH_FILE : survey_type(st.mode);
    }
    return d->d_type == DT_DIR ? PATH_DIR : d->d_type == DT_REG || d->d_type == DT_LNK ? PATH_FILE : PATH_OTHER;
}

bool survey_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Whether a rule is one of patterns for the names of the directory that `first` is for ("/etc/ssh/ssh_host_*_key"). */
static bool is_beside(const struct path_rule *first, const struct path_rule *rule)
{
    const size_t n = strlen(first->path) - strlen(path_name(first->path));
    return rule->access == PATH_HIDE && !rule->any_depth && rule->pattern && strncmp(first->path, rule->path, n) == 0 &&
           !strchr(rule->path + n, '/');
}

/* Matches a directory's names, read once, against the rules for it: *rule and those that follow, fewer than `n`. On an error *rule is whose
   it is. */
static int match_here(struct surveyor *s, struct facts *f, const struct policy *p, size_t *rule, size_t n,
                      const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return errno == ENOMEM ? -ENOMEM : 0; /* an unreadable directory has no names to hide from this caller */
    const size_t first = *rule;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (survey_is_dots(e->d_name))
            continue;
        const struct str name = str_of(e->d_name);
        for (size_t i = first; r == 0 && i < first + n; i++) {
            if (name_fits(str_of(path_name(p->paths[i].path)), true, name))
                r = add_match(s, f, *rule = i, dir, e->d_name, survey_entry_type(dir, e));
        }
    }
    closedir(d);
    return r;
}

/* Whether the last components of `path`, as many as the rule has, match it; `below` is the tree it was found in. */
static bool tail_matches(const struct path_rule *rule, const char *below, const char *path)
{
    size_t parts = 1, end;
    for (const char *p = rule->path; *p; p++)
        parts += *p == '/';
    const char *tail = path + strlen(path);
    while (tail > below && parts) {
        if (*--tail == '/')
            parts--;
    }
    return parts == 0 && names_fit(str_of(rule->path), rule->pattern, str_of(tail), 0, &end);
}

/* The walk of `expand: start`. Only what matches is allocated: a tree may have very many names. */
struct expansion {
    struct surveyor *s;
    struct facts *f;
    size_t no; /* of the rule */
    const struct path_rule *rule;
    size_t below;   /* bytes of the path in which the rule does not match */
    size_t names;   /* examined */
    unsigned level; /* directories open now */
    char path[PATH_MAX];
};

/* What a directory without names to hide from this caller answers: it has gone, or may not be listed. */
static bool holds_nothing(int no)
{
    return no == 0 || no == EACCES || no == EPERM || no == ENOENT || no == ESRCH || no == ENOTDIR || no == EINVAL;
}

static int match_tree(struct expansion *x, size_t n);

/* One name in the directory that is the first `n` bytes of x->path. */
static int match_name(struct expansion *x, size_t n, const struct dirent *e)
{
    size_t more = strlen(e->d_name), at = n > 1 ? n : 0;
    if (++x->names > MAX_EXPANDED)
        return -E2BIG;
    if (at + 1 + more >= sizeof x->path)
        return -ENAMETOOLONG;
    enum path_type type = survey_entry_type(x->path, e);
    x->path[at] = '/';
    memcpy(x->path + at + 1, e->d_name, more + 1);
    int r = 0;
    if (tail_matches(x->rule, x->path + x->below, x->path)) {
        x->path[n] = 0;
        r = add_match(x->s, x->f, x->no, x->path, e->d_name, type);
    } else if (type == PATH_DIR) {
        r = match_tree(x, at + 1 + more);
    }
    if (r == 0) /* after an error the path stays, for the message */
        x->path[n] = 0;
    return r;
}

/* Walks the whole tree without following links or entering matches. */
static int match_tree(struct expansion *x, size_t n)
{
    if (x->level >= MAX_EXPAND_LEVELS)
        return -ELOOP;
    DIR *d = opendir(x->path);
    if (!d)
        return holds_nothing(errno) ? 0 : -errno;
    int r = 0;
    x->level++;
    while (r == 0) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) {
            r = holds_nothing(errno) ? 0 : -errno;
            break;
        }
        if (!survey_is_dots(e->d_name))
            r = match_name(x, n, e);
    }
    x->level--;
    closedir(d);
    return r;
}

static int by_match(const void *a, const void *b)
{
    const struct match_fact *x = a, *y = b;
    return x->rule != y->rule ? (x->rule < y->rule ? -1 : 1) : path_order(x->real, y->real);
}

/* Says which bound the rule meets: a box never starts with a part of a rule. */
static int refuse_expansion(const struct policy *p, const struct path_rule *rule, const struct expansion *x, int no,
                            const char *top, struct err *e)
{
    char origin[256], why[128];
    const char *remedy = "use expand: never, or restrict the rule to a smaller directory";
    if (no == -E2BIG)
        (void)snprintf(why, sizeof why, "would examine more than %d names below", MAX_EXPANDED);
    else if (no == -ELOOP)
        (void)snprintf(why, sizeof why, "would search more than %d levels of directories below", MAX_EXPAND_LEVELS);
    else if (no == -ENAMETOOLONG)
        (void)snprintf(why, sizeof why, "would examine paths of more than %d bytes below", PATH_MAX - 1);
    else if (no == -EOVERFLOW)
        (void)snprintf(why, sizeof why, "all rules together would hide more than %d names, the last below",
                       MAX_MATCHES);
    else
        return err_say(e, ERR_SYSTEM, "hide %s%s (%s): cannot search %s: %s", rule->any_depth ? "**/" : "", rule->path,
                       policy_origin(p, rule->origin, origin, sizeof origin), x->path, strerror(-no));
    if (!rule->any_depth)
        return err_say(e, ERR_POLICY, "hide %s (%s): %s %s; restrict the rule", rule->path,
                       policy_origin(p, rule->origin, origin, sizeof origin), why, top);
    return err_say(e, ERR_POLICY, "hide **/%s (%s): expand: start: %s %s; %s", rule->path,
                   policy_origin(p, rule->origin, origin, sizeof origin), why, top, remedy);
}

int survey_patterns(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e)
{
    struct expansion x;
    for (size_t i = 0, n_here = 1; i < p->n_paths; i += n_here) {
        const struct path_rule *rule = &p->paths[i];
        n_here = 1;
        if (rule->access != PATH_HIDE || !(rule->any_depth ? p->expand == EXPAND_START : rule->pattern))
            continue;
        const char *dir = rule->any_depth ? rule->below : path_dir(s->mem, rule->path);
        const struct path_fact *at = dir ? facts_path(f, dir) : NULL;
        if (!at || at->type != PATH_DIR)
            continue;
        size_t n = strlen(at->real);
        x = (struct expansion){.s = s, .f = f, .no = i, .rule = rule, .below = n > 1 ? n : 0};
        if (n >= sizeof x.path)
            return -ENAMETOOLONG;
        memcpy(x.path, at->real, n + 1);
        size_t whose = i;
        while (!rule->any_depth && i + n_here < p->n_paths && is_beside(rule, &p->paths[i + n_here]))
            n_here++; /* rules are sorted by their paths */
        int r = rule->any_depth ? match_tree(&x, n) : match_here(s, f, p, &whose, n_here, at->real);
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            return refuse_expansion(p, &p->paths[whose], &x, r, at->real, e);
    }
    if (f->n_matches > 1)
        qsort(f->matches, f->n_matches, sizeof *f->matches, by_match);
    return 0;
}
