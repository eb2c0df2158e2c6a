/*
 * The accessors of a result: what pinfold.h hands out of it, read from its values. Neither cli/ nor mcp/ parses JSON
 * for that.
 */
#include "run/report.h"

#include "base/value.h"

const struct pinfold_value *pinfold_result_value(const struct pinfold_result *result)
{
    return (const struct pinfold_value *)(const void *)result_values(result);
}

static const struct value_node *member(const struct value_node *v, const char *name)
{
    return value_member(v, name);
}

static const char *text_of(const struct value_node *v, const char *name)
{
    return value_string(member(v, name), NULL);
}

static uint64_t number_of(const struct value_node *v, const char *name)
{
    const struct value_node *n = member(v, name);
    return n && n->type == VALUE_NUMBER ? n->number : 0;
}

static int flag_of(const struct value_node *v, const char *name)
{
    const struct value_node *f = member(v, name);
    return f && f->type == VALUE_TRUE;
}

/* Entry `i` of the list or object `name` of `v`; NULL behind the last. */
static const struct value_node *entry_of(const struct value_node *v, const char *name, size_t i)
{
    const struct value_node *one = value_first(member(v, name));
    while (one && i--)
        one = value_next(one);
    return one;
}

void pinfold_result_summary(const struct pinfold_result *result, struct pinfold_summary *ret)
{
    const struct value_node *v = result_values(result), *usage = member(v, "usage"), *network = member(v, "network");
    const struct pinfold_summary s = {.ended = text_of(v, "ended"),
                                      .limit = text_of(v, "limit"),
                                      .error = text_of(member(v, "error"), "text"),
                                      .engine = text_of(v, "engine"),
                                      .session = text_of(v, "session"),
                                      .policy_digest = text_of(v, "policy_digest"),
                                      .plan_digest = text_of(v, "plan_digest"),
                                      .wall_ms = number_of(usage, "wall_ms"),
                                      .cpu_ms = number_of(usage, "cpu_ms"),
                                      .peak_bytes = number_of(usage, "peak_bytes"),
                                      .read_bytes = number_of(usage, "read_bytes"),
                                      .written_bytes = number_of(usage, "written_bytes"),
                                      .left_not_kept = number_of(v, "left_not_kept"),
                                      .allowed_not_kept = number_of(network, "allowed_not_kept"),
                                      .events_lost = number_of(network, "events_lost"),
                                      .stdout_truncated = flag_of(v, "stdout_truncated"),
                                      .stderr_truncated = flag_of(v, "stderr_truncated")};
    give_struct(ret, ret->size, &s, sizeof s);
}

int pinfold_result_denial(const struct pinfold_result *result, size_t i, struct pinfold_denial *ret)
{
    const struct value_node *v = entry_of(result_values(result), "denials", i);
    const struct pinfold_denial d = {.kind = text_of(v, "kind"),
                                     .action = text_of(v, "action"),
                                     .target = text_of(v, "target"),
                                     .rule = text_of(v, "rule"),
                                     .origin = text_of(v, "origin"),
                                     .how = text_of(v, "how"),
                                     .command = text_of(v, "command"),
                                     .address = text_of(v, "address"),
                                     .why = text_of(v, "why"),
                                     .pid = (uint32_t)number_of(v, "pid"),
                                     .command_line = text_of(v, "command_line"),
                                     .host = text_of(v, "host"),
                                     .remedy = text_of(v, "remedy"),
                                     .error = text_of(v, "errno"),
                                     .count = number_of(v, "count"),
                                     .monitor = flag_of(v, "monitor"),
                                     .guess = flag_of(v, "guess")};
    if (v)
        give_struct(ret, ret->size, &d, sizeof d);
    return v != NULL;
}

int pinfold_result_allowed(const struct pinfold_result *result, size_t i, struct pinfold_connection *ret)
{
    const struct value_node *v = entry_of(member(result_values(result), "network"), "allowed", i);
    const struct pinfold_connection c = {.action = text_of(v, "action"),
                                         .target = text_of(v, "target"),
                                         .address = text_of(v, "address"),
                                         .rule = text_of(v, "rule"),
                                         .origin = text_of(v, "origin"),
                                         .how = text_of(v, "how"),
                                         .count = number_of(v, "count"),
                                         .by_proxy = flag_of(v, "by_proxy")};
    if (v)
        give_struct(ret, ret->size, &c, sizeof c);
    return v != NULL;
}

int pinfold_result_left(const struct pinfold_result *result, size_t i, struct pinfold_leftover *ret)
{
    const struct value_node *v = entry_of(result_values(result), "left", i);
    const struct pinfold_leftover l = {
        .kind = text_of(v, "kind"), .path = text_of(v, "path"), .what = text_of(v, "what")};
    if (v)
        give_struct(ret, ret->size, &l, sizeof l);
    return v != NULL;
}

const char *pinfold_result_enforced(const struct pinfold_result *result, size_t i, const char **ret_by)
{
    const struct value_node *v = entry_of(result_values(result), "enforced", i);
    if (ret_by)
        *ret_by = value_string(v, NULL);
    return value_name(v);
}

const char *pinfold_result_lost(const struct pinfold_result *result, size_t i)
{
    return value_string(entry_of(result_values(result), "lost", i), NULL);
}

const char *pinfold_result_not_seen(const struct pinfold_result *result, size_t i)
{
    return value_string(entry_of(result_values(result), "denials_not_seen", i), NULL);
}

const char *pinfold_result_not_taken(const struct pinfold_result *result, size_t i, const char **ret_why)
{
    const struct value_node *v = entry_of(result_values(result), "engines_not_taken", i);
    if (ret_why)
        *ret_why = value_string(v, NULL);
    return value_name(v);
}
