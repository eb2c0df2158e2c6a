/*
 * Which rules of the project's own file no pass used. Of hosts the results say it. Of a writable path nothing does: a pass runs in
 * which these are read-only, which is stricter, and whoever misses nothing has not used them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"

enum { MAX_TRIALS = 16 };

/* "- VALUE  # ORIGIN" of the policy's text with origins; false: another line. */
static bool item_in(struct learn *l, struct str line, const char **ret_value, const char **ret_origin)
{
    struct str text = str_trim(line);
    if (!str_starts(text, STR("- ")))
        return false;
    text = str_skip(text, 2);
    for (size_t i = text.n; i > 4; i--) {
        if (memcmp(text.p + i - 4, "  # ", 4) != 0)
            continue;
        struct str value = {text.p, i - 4};
        if (value.n > 1 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        *ret_value = arena_str(l->mem, value);
        *ret_origin = arena_str(l->mem, str_skip(text, i));
        return *ret_value && *ret_origin;
    }
    return false;
}

static void keep(struct learn *l, const char *key, const char *value, const char *origin)
{
    static const char grants[][20] = {"files.rw", "files.ro", "net.allow", "net.reach", "net.unix_sockets"};
    size_t i = 0;
    while (i < sizeof grants / sizeof *grants && strcmp(grants[i], key) != 0)
        i++;
    if (i == sizeof grants / sizeof *grants)
        return;
    bool network = strcmp(key, "net.allow") == 0 || strcmp(key, "net.reach") == 0;
    const char *written = learn_written(l, value);
    const struct learn_kept kept = {.key = arena_text(l->mem, key),
                                    .value = value,
                                    .text = written ? arena_printf(l->mem, "%s: %s", key, written) : NULL,
                                    .origin = origin,
                                    .use = network || strcmp(key, "files.rw") == 0 ? LEARN_UNUSED : LEARN_NOT_KNOWN};
    struct learn_kept *to = arena_push(l->mem, &l->kept, &l->n_kept, sizeof *l->kept);
    if (to && kept.key && kept.text)
        *to = kept;
    else if (to)
        l->n_kept--;
}

int learn_kept_read(struct learn *l, struct pinfold_policy *policy, struct pinfold_error *error)
{
    char *text, section[64] = "", key[160] = "", head[4200];
    const char *value, *origin;
    int r = pinfold_policy_text(policy, PINFOLD_TEXT_ORIGINS, &text, error);
    if (r < 0)
        return r;
    const char *all = arena_text(l->mem, text);
    free(text);
    snprintf(head, sizeof head, "%s/" LEARN_POLICY ":", l->workspace);
    for (struct str rest = str_of(all ? all : ""); rest.n;) {
        struct str line = str_until(&rest, '\n'), name = str_trim(line);
        size_t n = 0;
        while (n < name.n && name.p[n] != ':')
            n++;
        if (item_in(l, line, &value, &origin)) {
            if (strncmp(origin, head, strlen(head)) == 0)
                keep(l, key, value, origin);
        } else if (n < name.n && n < sizeof section && line.p[0] != ' ') {
            snprintf(section, sizeof section, "%.*s", (int)n, name.p);
            snprintf(key, sizeof key, "%s", section);
        } else if (n < name.n && n < sizeof section) {
            snprintf(key, sizeof key, "%s.%.*s", section, (int)n, name.p);
        }
    }
    return arena_failed(l->mem) ? learn_memory(error) : 0;
}

void learn_kept_used(struct learn *l, const struct pinfold_result *result)
{
    struct pinfold_summary sum = {.size = sizeof sum};
    struct pinfold_connection c = {.size = sizeof c};
    pinfold_result_summary(result, &sum);
    for (size_t i = 0; i < l->n_kept; i++) {
        struct learn_kept *k = &l->kept[i];
        if (strncmp(k->key, "net.", 4) != 0 || k->use != LEARN_UNUSED)
            continue;
        if (sum.allowed_not_kept || sum.events_lost)
            k->use = LEARN_NOT_KNOWN;
        for (size_t at = 0; pinfold_result_allowed(result, at, &c); at++) {
            if (c.origin && strcmp(c.origin, k->origin) == 0)
                k->use = LEARN_USED;
        }
    }
}

/* A pass with these rules as read-only ones. 1: nothing was missing; 0: something was; -errno: it could not be tried. */
static int try_without(struct learn *l, const struct pinfold_option *read_only, size_t n, struct pinfold_error *error)
{
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    struct pinfold_denial d = {.size = sizeof d};
    int r = learn_load(l, read_only, n, &policy, error);
    if (r < 0)
        return r;
    l->trials++;
    r = learn_pass(l, policy, &result, error);
    if (r == 0) {
        r = pinfold_result_status(result) == l->status;
        for (size_t i = 0; pinfold_result_denial(result, i, &d); i++) {
            for (size_t k = 0; k < n; k++)
                r = r && !(d.target && learn_below(d.target, read_only[k].value));
        }
        pinfold_result_free(result);
    }
    pinfold_policy_free(policy);
    return r;
}

int learn_shrink(struct learn *l, struct pinfold_error *error)
{
    struct pinfold_option paths[MAX_TRIALS];
    size_t at[MAX_TRIALS], n = 0;
    for (size_t i = 0; i < l->n_kept; i++) {
        if (strcmp(l->kept[i].key, "files.rw") != 0)
            continue;
        if (n == MAX_TRIALS) {
            l->kept[i].use = LEARN_NOT_KNOWN;
            continue;
        }
        at[n] = i;
        paths[n++] = (struct pinfold_option){"ro", l->kept[i].value};
    }
    int all = n ? try_without(l, paths, n, error) : 1;
    for (size_t i = 0; i < n && all != 1; i++) {
        int one = n > 1 ? try_without(l, &paths[i], 1, error) : all;
        l->kept[at[i]].use = one == 1 ? LEARN_UNUSED : one == 0 ? LEARN_USED : LEARN_NOT_KNOWN;
    }
    *error = (struct pinfold_error){0};
    return 0;
}
