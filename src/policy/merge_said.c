/*
 * What every part of a merge needs of the statement that it merges: messages, its origin, copies of its texts. A
 * message has file, line and column, or the option, of what was said.
 */
#include "policy/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int merge_no_memory(const struct merge *m)
{
    return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
}

const char *merge_text_name(const struct merge *m, const struct said *s)
{
    return m->text->flags ? m->text->flags[s - m->text->said] : m->text->file;
}

int merge_say(const struct merge *m, enum err_kind kind, const struct said *s, const char *format, ...)
{
    char text[sizeof m->e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* "file:3:5: files.rw: ..." but "--rw: ...", which includes the key. */
    return place_say(m->e, kind, merge_text_name(m, s), s->line, s->column, "%s%s%s",
                     s->line ? key_table[s->key].path : "", s->line ? ": " : "", text);
}

struct path_context merge_context(const struct merge *m, const struct layer_text *text)
{
    return (struct path_context){.world = m->world, .base = text->base, .workspace = m->p->workspace};
}

/* The origin of a statement; cannot fail, because the array has room for all. */
uint32_t merge_origin(struct merge *m, const struct said *s)
{
    struct policy *p = m->p;
    p->origins[p->n_origins] =
        (struct origin){.layer = m->text->layer, .file = merge_text_name(m, s), .line = s->line, .column = s->column};
    return (uint32_t)p->n_origins++;
}

/* A copy that lives as long as the policy. */
const char *merge_keep(struct merge *m, struct str s)
{
    if (m->text->lasting && s.p[s.n] == 0)
        return s.p;
    return arena_str(m->p->mem, s);
}
