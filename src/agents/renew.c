/* How a login is renewed, as a definition says it. What it leaves out is an error: a login that does not last is noticed late. */
#include <errno.h>
#include <string.h>
#include "agents/reading.h"

enum { LOCKS = 4, FIELDS = 16 };

static int take_at_most(const struct definition_reading *r, const struct node *n, size_t most, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    return no == 0 && n->n > most ? agent_wrong(r, n, "these are too many") : no;
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

int agent_take_renew(const struct definition_reading *r, const struct node *n, struct agent_renew **ret)
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
                                               : agent_wrong(r, key,
                                                             "the keys of renew are endpoint, client, client_at, ca, "
                                                               "access, refresh, id, scopes, when, locks, fields, form");
        if (no < 0)
            return no;
    }
    if (!w->endpoint || !w->client || !w->access || !w->refresh)
        return agent_wrong(r, n, "renew needs \"endpoint:\", \"client:\", \"access:\" and \"refresh:\"");
    if (strncmp(w->endpoint, "https://", 8) != 0)
        return agent_wrong(r, n, "an endpoint is an address with \"https://\"");
    *ret = w;
    return 0;
}
