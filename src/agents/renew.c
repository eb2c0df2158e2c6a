/* How a login is renewed, as a definition says it. What it leaves out is an error: a login that does not last is noticed late. */
#include <errno.h>
#include <string.h>
#include "agents/reading.h"

enum { LOCKS = 4, FIELDS = 16, FILES = 4, RENEWALS = 8, WORD_BEGINS = 4 };

static int take_at_most(const struct definition_reading *r, const struct node *n, size_t most, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    return no == 0 && n->n > most ? agent_wrong(r, n, "the list is too long") : no;
}

static int take_locks(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = take_at_most(r, n, LOCKS, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        const char *lock = (*ret)[i];
        size_t length = strlen(lock);
        if (strncmp(lock, "{dir}", 5) != 0 || length < 7 || length > 100 || strstr(lock, "..") ||
            strcspn(lock + 6, "/") + 7 < length)
            no =
                agent_wrong(r, &n->items[i],
                            "a lock is \"{dir}/NAME\" or \"{dir}.NAME\", with \"/\" at the end when it is a directory");
    }
    return no;
}

/* Patterns in the program's directory or above, where npm puts what it is made of. */
static int take_program_files(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = take_at_most(r, n, FILES, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        if ((*ret)[i][0] == '/' || (*ret)[i][0] == '~' || strlen((*ret)[i]) > 200)
            no = agent_wrong(r, &n->items[i], "a pattern of files, from the program's directory, is expected here");
    }
    return no < 0 ? no : agent_take_patterns(r, n, *ret);
}

static int take_one(const struct definition_reading *r, const struct node *n, struct agent_renew **ret)
{
    struct agent_renew *w = arena_zero(r->mem, sizeof *w);
    if (!w)
        return err_sys(r->e, ERR_SYSTEM, ENOMEM, "cannot read %s", r->file);
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a mapping with \"endpoint:\" is expected here");
    const struct {
        const char *name, **to;
    } texts[] = {{"endpoint", &w->endpoint},
                 {"client", &w->client},
                 {"client_at", &w->client_at},
                 {"ca", &w->ca},
                 {"access", &w->access},
                 {"refresh", &w->refresh},
                 {"id", &w->id},
                 {"scopes", &w->scopes},
                 {"expires", &w->expires},
                 {"program_word", &w->program_word},
                 {"when", &w->when}};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        size_t k = 0;
        while (k < TEXTS && !str_is(key->text, texts[k].name))
            k++;
        int no = k < TEXTS                     ? agent_take_text(r, value, texts[k].to)
                 : str_is(key->text, "locks")  ? take_locks(r, value, &w->locks)
                 : str_is(key->text, "fields") ? take_at_most(r, value, FIELDS, &w->fields)
                 : str_is(key->text, "form")   ? agent_take_flag(r, value, &w->form)
                 : str_is(key->text, "program_files")
                     ? take_program_files(r, value, &w->program_files)
                     : agent_wrong(r, key,
                                   "the keys of renew are endpoint, client, client_at, ca, "
                                   "access, refresh, id, scopes, when, locks, fields, form, "
                                   "expires, program_word, program_files");
        if (no < 0)
            return no;
    }
    if (!w->endpoint || !w->client || !w->access || !w->refresh)
        return agent_wrong(r, n, "renew needs \"endpoint:\", \"client:\", \"access:\" and \"refresh:\"");
    if (strncmp(w->endpoint, "https://", 8) != 0)
        return agent_wrong(r, n, "an endpoint is an address with \"https://\"");
    if (!w->program_word != !w->program_files || (w->program_word && strlen(w->program_word) < WORD_BEGINS))
        return agent_wrong(r, n, "\"program_word:\", four characters or more, and \"program_files:\" need each other");
    *ret = w;
    return 0;
}

int agent_take_renew(const struct definition_reading *r, const struct node *n, struct agent_renew **ret)
{
    if (n->kind != NODE_LIST)
        return take_one(r, n, ret);
    if (!n->n || n->n > RENEWALS)
        return agent_wrong(r, n, "one renewal for each login in the file is expected here, eight at most");
    int no = 0;
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        no = take_one(r, &n->items[i], ret);
        if (no == 0)
            ret = &(*ret)->next;
    }
    return no;
}
