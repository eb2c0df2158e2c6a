/*
 * Writes values of the library's answers as JSON, without what a model may not know. The caller lists the members to
 * leave out, such as the place of a rule.
 */
#include <jansson.h>

#include "mcp/protocol/answer.h"

static void put_member(struct json *j, const struct pinfold_value *in, const struct pinfold_value *one,
                       const char *const *skip, const struct answer_rewrite *as)
{
    const char *name = pinfold_value_name(one), *text = as ? pinfold_value_text(one, NULL) : NULL;
    if (same_as_one(name, skip))
        return;
    if (!text || !name || !same(name, as->name)) {
        answer_rewrite(j, name, one, skip, as);
        return;
    }
    auto_buf struct buf words = BUF(1u << 16);
    as->put(as->ctx, in, text, &words);
    json_str(j, name, buf_view(&words));
}

void answer_write(struct json *j, const char *name, const struct pinfold_value *v, const char *const *skip)
{
    answer_rewrite(j, name, v, skip, NULL);
}

void answer_rewrite(struct json *j, const char *name, const struct pinfold_value *v, const char *const *skip,
                    const struct answer_rewrite *as)
{
    const enum pinfold_value_type type = pinfold_value_type(v);
    struct str text;
    switch (type) {
    case PINFOLD_VALUE_NONE:
        json_null(j, name);
        break;
    case PINFOLD_VALUE_BOOL:
        json_bool(j, name, pinfold_value_is_true(v));
        break;
    case PINFOLD_VALUE_NUMBER:
        json_int(j, name, pinfold_value_number(v));
        break;
    case PINFOLD_VALUE_TEXT:
        text.p = pinfold_value_text(v, &text.n);
        json_str(j, name, text);
        break;
    case PINFOLD_VALUE_LIST:
    case PINFOLD_VALUE_OBJECT:
        if (type == PINFOLD_VALUE_LIST)
            json_array(j, name);
        else
            json_object(j, name);
        EACH_ANSWER(one, v) put_member(j, v, one, skip, as);
        if (type == PINFOLD_VALUE_LIST)
            json_array_end(j);
        else
            json_object_end(j);
        break;
    }
}
