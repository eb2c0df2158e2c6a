/*
 * The ledger of a layer: what apply and undo have put into the workspace, so that it does not count as a change by
 * the host. One line per object with its identity and times; a path in it that looks otherwise now was changed.
 */
#include "layer/change.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/text.h"
#include "match/path.h"
#include "sys/fd.h"

#define LEDGER "applied"

static int by_entry(const void *a, const void *b)
{
    const struct ledger_entry *x = a, *y = b;
    return path_order(x->path, y->path);
}

void ledger_sort(struct ledger *l)
{
    if (l->n)
        qsort(l->entries, l->n, sizeof *l->entries, by_entry);
}

int ledger_read(int store, struct arena *mem, struct ledger *ret, struct err *e)
{
    struct str text, line;
    *ret = (struct ledger){0};
    int r = text_read(store, LEDGER, mem, &text);
    if (r < 0)
        return r == -ENOENT ? 0 : err_sys(e, ERR_SYSTEM, -r, "cannot read '%s' of the layer", LEDGER);
    while (text_line(&text, &line)) {
        struct ledger_entry *entry = arena_push(mem, &ret->entries, &ret->n, sizeof *entry);
        if (!entry)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read '%s' of the layer", LEDGER);
        if (!text_object(&line, &entry->now) || !(entry->path = text_rest(line, mem)))
            return err_say(e, ERR_SYSTEM, "'%s' of the layer is damaged; remove the layer: pinfold discard", LEDGER);
    }
    return 0;
}

int ledger_of(const struct layer_trees *t, struct arena *mem, struct ledger *ret, struct err *e)
{
    int r = ledger_read(t->store, mem, ret, e);
    for (size_t k = 0; r == 0 && k < t->n_below; k++) {
        struct ledger more, both = {.n = 0};
        r = ledger_read(t->below[k].store, mem, &more, e);
        both.entries = r == 0 ? arena_zero(mem, (ret->n + more.n + 1) * sizeof *both.entries) : NULL;
        if (r == 0 && !both.entries)
            r = err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its ledger", t->id);
        for (size_t i = 0, j = 0; r == 0 && (i < ret->n || j < more.n);) {
            const int order = i == ret->n ? 1 : j == more.n ? -1 : by_entry(&ret->entries[i], &more.entries[j]);
            const bool later = order == 0 && more.entries[j].now.changed > ret->entries[i].now.changed;
            both.entries[both.n++] = order < 0 || (order == 0 && !later) ? ret->entries[i] : more.entries[j];
            i += order <= 0;
            j += order >= 0;
        }
        if (r == 0)
            *ret = both;
    }
    return r;
}

const struct ledger_entry *ledger_find(const struct ledger *l, const char *path)
{
    const struct ledger_entry wanted = {.path = path};
    return l->n ? bsearch(&wanted, l->entries, l->n, sizeof wanted, by_entry) : NULL;
}

int ledger_write(int store, struct arena *mem, const struct ledger_entry *more, size_t n, struct err *e)
{
    struct ledger old, fresh = {.n = n};
    int r = ledger_read(store, mem, &old, e);
    if (r < 0)
        return r;
    fresh.entries = arena_zero(mem, (n + 1) * sizeof *fresh.entries);
    if (!fresh.entries)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot write '%s' of the layer", LEDGER);
    if (n) {
        memcpy(fresh.entries, more, n * sizeof *more);
        qsort(fresh.entries, n, sizeof *more, by_entry);
    }
    auto_buf struct buf out = BUF(LAYER_READ_MAX);
    for (size_t i = 0, k = 0; i < old.n || k < n;) {
        const int order = i == old.n ? 1 : k == n ? -1 : by_entry(&old.entries[i], &fresh.entries[k]);
        const struct ledger_entry *entry = order < 0 ? &old.entries[i++] : &fresh.entries[k++];
        i += order == 0;
        text_put_object(&out, &entry->now);
        text_put_rest(&out, entry->path);
    }
    r = text_write(store, LEDGER, &out);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot write '%s' of the layer", LEDGER) : 0;
}
