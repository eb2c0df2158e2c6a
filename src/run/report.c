/*
 * Reports and their values, and the accessors of a result: pinfold.h over base/value.h. What is handed out points
 * into the report, and lives as long.
 */
#include "run/report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/value.h"

static const struct value_node *inner(const struct pinfold_value *v)
{
    return (const struct value_node *)(const void *)v;
}

static const struct pinfold_value *outer(const struct value_node *v)
{
    return (const struct pinfold_value *)(const void *)v;
}

/* ---- values ---- */

enum pinfold_value_type pinfold_value_type(const struct pinfold_value *value)
{
    static const enum pinfold_value_type types[] = {
        [VALUE_NULL] = PINFOLD_VALUE_NONE,     [VALUE_FALSE] = PINFOLD_VALUE_BOOL, [VALUE_TRUE] = PINFOLD_VALUE_BOOL,
        [VALUE_NUMBER] = PINFOLD_VALUE_NUMBER, [VALUE_TEXT] = PINFOLD_VALUE_TEXT,  [VALUE_ARRAY] = PINFOLD_VALUE_LIST,
        [VALUE_OBJECT] = PINFOLD_VALUE_OBJECT};
    return value ? types[inner(value)->type] : PINFOLD_VALUE_NONE;
}

const struct pinfold_value *pinfold_value_get(const struct pinfold_value *value, const char *name)
{
    return outer(value_member(inner(value), name));
}

const struct pinfold_value *pinfold_value_first(const struct pinfold_value *value)
{
    return outer(value_first(inner(value)));
}

const struct pinfold_value *pinfold_value_next(const struct pinfold_value *value)
{
    return outer(value_next(inner(value)));
}

size_t pinfold_value_count(const struct pinfold_value *value)
{
    return value && inner(value)->type >= VALUE_ARRAY ? (size_t)inner(value)->number : 0;
}

const char *pinfold_value_name(const struct pinfold_value *value)
{
    return value_name(inner(value));
}

const char *pinfold_value_text(const struct pinfold_value *value, size_t *ret_n)
{
    size_t n;
    const char *text = value_string(inner(value), &n);
    if (ret_n)
        *ret_n = n;
    return text && (ret_n || strlen(text) == n) ? text : NULL;
}

int64_t pinfold_value_number(const struct pinfold_value *value)
{
    return value && inner(value)->type == VALUE_NUMBER ? (int64_t)inner(value)->number : 0;
}

int pinfold_value_is_true(const struct pinfold_value *value)
{
    return value && inner(value)->type == VALUE_TRUE;
}

/* ---- reports ---- */

struct pinfold_report *report_new(void)
{
    struct pinfold_report *p = calloc(1, sizeof *p);
    if (p) {
        p->values = VALUES(MAX_REPORT);
        p->json = BUF(MAX_REPORT);
    }
    return p;
}

struct pinfold_report *report_of_image(struct str image)
{
    struct pinfold_report *p = report_new();
    if (!p)
        return NULL;
    buf_str(&p->values.b, image);
    if (buf_ok(&p->values.b) && p->values.b.n && value_check(buf_view(&p->values.b)))
        return p;
    pinfold_report_free(p);
    return NULL;
}

int report_give(struct pinfold_report *p, int r, struct err *e, struct pinfold_report **ret,
                struct pinfold_error *error)
{
    if (r >= 0 && (!p || !values_whole(&p->values)))
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "cannot hold the answer");
    if (r < 0)
        pinfold_report_free(p);
    else
        *ret = p;
    return tell(error, e, r);
}

int report_text(int r, struct pinfold_report *report, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf text = BUF(MAX_REPORT);
    struct json j = JSON(&text);
    if (r < 0)
        return r;
    json_put(&j, NULL, values_whole(&report->values));
    pinfold_report_free(report);
    int given = give(&text, ret, error);
    return given < 0 ? given : r;
}

void pinfold_report_free(struct pinfold_report *report)
{
    if (!report)
        return;
    values_free(&report->values);
    buf_free(&report->json);
    free(report);
}

const struct pinfold_value *pinfold_report_value(const struct pinfold_report *report)
{
    return report ? outer(values_whole(&report->values)) : NULL;
}

const char *pinfold_report_json(struct pinfold_report *report)
{
    struct json j = JSON(&report->json);
    if (report->json.n == 0)
        json_put(&j, NULL, values_whole(&report->values));
    return buf_ok(&report->json) ? buf_cstr(&report->json) : "";
}
