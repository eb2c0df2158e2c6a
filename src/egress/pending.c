/*
 * Data that is kept: what a side cannot take yet, and client data not judged yet. The total is counted (world.kept):
 * the more is kept, the less is read.
 */
#include <stdlib.h>
#include <string.h>
#include "egress/parts.h"

bool pending_keep(struct pending *p, const char *bytes, size_t n)
{
    char *grown = realloc(p->p, p->n + n);
    if (!grown)
        return false;
    memcpy(grown + p->n, bytes, n);
    p->p = grown;
    p->n += (uint32_t)n;
    world.kept += n;
    return true;
}

void pending_drop(struct pending *p, size_t n)
{
    if (n == p->n) {
        pending_free(p);
        return;
    }
    p->n -= (uint32_t)n;
    p->at = p->at > n ? p->at - (uint32_t)n : 0;
    world.kept -= n;
    memmove(p->p, p->p + n, p->n);
}

void pending_free(struct pending *p)
{
    world.kept -= p->n;
    if (p->pipe)
        bulk_done(p->pipe, p->at == p->n);
    free(p->p);
    *p = (struct pending){0};
}
