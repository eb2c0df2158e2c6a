/*
 * What a monitored box was refused without a verdict of the guard's: frames -> denials, once the caller has found the
 * rule. They come by the guard's report and change nothing about the box.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "supervisor/parts.h"

/* One more of what was told before. */
static void count_more(struct box_result *r, uint32_t key, uint32_t count)
{
    for (size_t i = 0; i < r->n_denials; i++) {
        if (r->denials[i].key == key)
            r->denials[i].count += count;
    }
}

/* Told apart, so that nobody looks for a rule that is not there. */
void box_result_permit(struct box_result *r, const char *action, const char *target)
{
    for (size_t i = 0; i < r->n_permissions; i++) {
        if (same(r->permissions[i].target, target))
            return;
    }
    char *copy = r->n_permissions < MAX_PERMITTED ? strdup(target) : NULL;
    if (copy)
        r->permissions[r->n_permissions++] = (struct permitted){action, copy};
}

static void keep_pending(struct box_result *r, const struct denial_frame *f, const char *target)
{
    for (size_t i = 0; i < r->n_pending; i++) {
        if (r->pending[i].key == f->key)
            return;
    }
    char *copy = r->n_pending < MAX_PENDING ? strdup(target) : NULL;
    if (copy)
        r->pending[r->n_pending++] = (struct pending_call){
            (enum denial_action)f->action, (int)f->no, f->pid, f->key, copy, box_command_line(f->text + f->n, f->argv)};
}

bool pending_has_network(const struct box_result *r)
{
    for (size_t i = 0; i < r->n_pending; i++) {
        const struct pending_call *p = &r->pending[i];
        if (p->action == DENIAL_CONNECT && p->no == ENETUNREACH)
            return true;
    }
    return false;
}

static void failed_call(struct box *b, const struct denial_frame *f, const char *target)
{
    auto_arena struct arena *mem = arena_new(EXPLAIN_ARENA);
    const struct failed_call call = {(enum denial_action)f->action, (int)f->no, target};
    struct denial d = {.pid = f->pid, .session = f->session, .key = f->key, .count = 1, .seen = true};
    const char *action = NULL;
    if (!mem)
        return;
    const enum explained as = b->spec->explain(b->spec->explain_ctx, &call, mem, &d, &action);
    if (as == EXPLAINED_PERMISSION)
        box_result_permit(b->result, action, target);
    if (as == EXPLAINED_NOT || as == EXPLAINED_PERMISSION)
        return;
    d.argv = box_command_line(f->text + f->n, f->argv);
    if (as == EXPLAINED_FOR_LOG)
        denial_log(b, &d);
    else
        denial_keep(b, &d);
    free(d.argv);
}

void seen_frame(struct box *b, const struct denial_frame *f, size_t n)
{
    struct denial_frame copy = {0};
    /* The bytes come from a process beside hostile ones. */
    memcpy(&copy, f, n < sizeof copy ? n : sizeof copy);
    if (b->spec && b->spec->explain)
        b->result->seen_lost += copy.lost;
    if (copy.n == 0) {
        count_more(b->result, copy.key, copy.count);
        return;
    }
    if (!b->spec || copy.n > sizeof copy.text - DENIAL_ARGV)
        return;
    copy.text[copy.n - 1] = 0;
    if (copy.argv > DENIAL_ARGV)
        copy.argv = DENIAL_ARGV;
    if (b->spec->explain)
        failed_call(b, &copy, copy.text);
    else if (b->sessiond)
        offline_in_session(b, &copy);
    else
        keep_pending(b->result, &copy, copy.text);
}
