/*
 * Lists the directories above every hidden place, for the Landlock tier: its rules can only allow, so a plan must name
 * everything beside what it hides.
 */
#include "survey/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match/path.h"

static int by_entry(const void *a, const void *b)
{
    return strcmp(((const struct dir_entry *)a)->name, ((const struct dir_entry *)b)->name);
}

static int list_dir(struct surveyor *s, struct dir_fact *ret)
{
    DIR *d = opendir(ret->path);
    if (!d)
        return errno == ENOMEM ? -ENOMEM : 0;
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d));) {
        if (survey_is_dots(e->d_name) || e->d_type == DT_LNK)
            continue;
        struct dir_entry *entry = arena_push(s->mem, &ret->entries, &ret->n_entries, sizeof *entry);
        const char *name = entry ? arena_text(s->mem, e->d_name) : NULL;
        if (!name)
            r = -ENOMEM;
        else
            *entry = (struct dir_entry){.name = name, .directory = survey_entry_type(ret->path, e) == PATH_DIR};
    }
    closedir(d);
    if (ret->n_entries > 1)
        qsort(ret->entries, ret->n_entries, sizeof *ret->entries, by_entry);
    return r;
}

static int node_by_path(const void *a, const void *b)
{
    return path_order(((const struct survey_asked *)a)->path, ((const struct survey_asked *)b)->path);
}

static int ask_above(struct surveyor *s, struct asked_list *a, const char *path)
{
    for (const char *dir = path; dir && dir[1];) {
        dir = path_dir(s->mem, dir);
        if (!dir || survey_ask(s, a, dir, true) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Examines all directories above every place to be hidden. */
static int ask_above_hidden(struct surveyor *s, const struct policy *p, const struct facts *f, struct asked_list *a)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        const struct path_fact *at = rule->access == PATH_HIDE ? facts_path(f, rule->path) : NULL;
        r = at ? ask_above(s, a, at->real) : 0;
        if (r == 0 && at && at->link)
            r = ask_above(s, a, at->link);
    }
    const char *own[] = {path_join(s->mem, f->state_home, "pinfold"), path_join(s->mem, f->config_home, "pinfold")};
    for (size_t i = 0; r == 0 && i < sizeof own / sizeof own[0]; i++) {
        const struct path_fact *at = own[i] ? facts_path(f, own[i]) : NULL;
        r = at ? ask_above(s, a, at->real) : 0;
    }
    for (size_t i = 0; r == 0 && i < f->n_matches; i++)
        r = ask_above(s, a, f->matches[i].real);
    for (size_t i = 0; r == 0 && i < f->n_aliases; i++)
        r = ask_above(s, a, f->aliases[i].real);
    return r < 0 ? r : ask_above(s, a, "/dev"); /* only single nodes of it are made accessible */
}

int survey_dirs(struct surveyor *s, const struct policy *p, struct facts *f)
{
    struct asked_list a = {0};
    int r = ask_above_hidden(s, p, f, &a);
    if (r < 0 || a.n == 0)
        return r;
    qsort(a.at, a.n, sizeof *a.at, node_by_path);
    for (size_t i = 0; r == 0 && i < a.n; i++) {
        if (i && node_by_path(&a.at[i], &a.at[i - 1]) == 0)
            continue;
        struct dir_fact *d = arena_push(s->mem, &f->dirs, &f->n_dirs, sizeof *d);
        if (!d)
            return -ENOMEM;
        d->path = a.at[i].path;
        r = list_dir(s, d);
    }
    return r;
}
