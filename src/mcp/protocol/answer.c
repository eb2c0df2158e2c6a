/* Writes values of the library's answers as JSON, without what a model may not know. */
#include <jansson.h>

#include "mcp/protocol/answer.h"

static bool is_skipped(const char *name, const char *const *skip)
{
    for (; name && skip && *skip; skip++) {
        if (same(name, *skip))
            return true;
    }
    return false;
}

void answer_write(struct json *j, const char *name, const struct pinfold_value *v, const char *const *skip)
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
        EACH_ANSWER(one, v)
        {
            if (!is_skipped(pinfold_value_name(one), skip))
                answer_write(j, pinfold_value_name(one), one, skip);
        }
        if (type == PINFOLD_VALUE_LIST)
            json_array_end(j);
        else
            json_object_end(j);
        break;
    }
}
