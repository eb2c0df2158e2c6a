/* Reads the library's answers, which are values: nothing is parsed. */
#pragma once
#include "base/json.h"
#include "pinfold.h"

/* A member of the library's answer: its text, or NULL; its number, or 0. */
static inline const char *answer_text(const struct pinfold_value *object, const char *name)
{
    return pinfold_value_text(pinfold_value_get(object, name), NULL);
}
static inline long long answer_number(const struct pinfold_value *object, const char *name)
{
    return pinfold_value_number(pinfold_value_get(object, name));
}
/* Writes the value as JSON, without members named in `skip` (NULL-terminated, or NULL) at any depth. NULL is written as null. */
void answer_write(struct json *j, const char *name, const struct pinfold_value *v, const char *const *skip);
/* The same, with texts named `name` as `put` writes them; it is given the object that the text is in. */
struct answer_rewrite {
    const char *name;
    void (*put)(const void *ctx, const struct pinfold_value *in, const char *text, struct buf *out);
    const void *ctx;
};
void answer_rewrite(struct json *j, const char *name, const struct pinfold_value *v, const char *const *skip,
                    const struct answer_rewrite *as);
#define EACH_ANSWER(one, list)                                                                                         \
    for (const struct pinfold_value *one = pinfold_value_first(list); one; one = pinfold_value_next(one))
static inline void report_drop(struct pinfold_report **r)
{
    pinfold_report_free(*r);
}
#define auto_report __attribute__((cleanup(report_drop)))
