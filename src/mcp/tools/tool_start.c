/*
 * Done once when the server starts, in a worker so that nobody waits: ends what dead servers have left, prints the
 * settings for the user, and reports if no box can be created on this machine.
 */
#include <stdlib.h>

#include "mcp/workers/janitor.h"
#include "mcp/tools/tool_run.h"

static void limits_words(struct buf *out, json_t *limits)
{
    bool any = false;
    for (void *at = json_object_iter(limits); at; at = json_object_iter_next(limits, at)) {
        const json_t *l = json_object_iter_value(at);
        const char *said = value_text(l, "said", NULL);
        if (!said || !json_is_true(json_object_get(l, "asked")))
            continue;
        buf_printf(out, "%s%s %s", any ? ", " : "; limits ", json_object_iter_key(at), said);
        any = true;
    }
}

static void settings(struct mcp_job *j, const json_t *plan)
{
    auto_buf struct buf line = BUF(1u << 16);
    const json_t *rules = json_object_get(plan, "network_rules"), *lost = json_object_get(plan, "lost");
    const char *engine = value_text(plan, "engine", NULL), *network = value_text(plan, "network", NULL);
    const char *workspace = value_text(plan, "workspace", NULL), *profile = value_text(plan, "profile", NULL);

    buf_printf(&line, "serving; engine %s, profile %s, network %s", engine ? engine : "?", profile ? profile : "?",
               network ? network : "none");
    if (json_array_size(rules))
        buf_printf(&line, " (%zu rules)", json_array_size(rules));
    buf_printf(&line, ", workspace %s", workspace ? workspace : "?");
    limits_words(&line, json_object_get(plan, "limits"));
    for (size_t i = 0; i < json_array_size(lost); i++) {
        const json_t *one = json_array_get(lost, i);
        const char *name = json_is_string(one) ? json_string_value(one) : value_text(one, "feature", NULL);
        buf_printf(&line, "%s%s", i ? ", " : "; not enforced here: ", name ? name : "?");
    }
    job_tell(j, buf_cstr(&line));
}

static void start_work(struct mcp_job *j)
{
    struct pinfold_error error = {0};
    char *text = NULL, why[128];

    (void)owner_orphans();
    if (pinfold_explain(j->place->policy, PINFOLD_EXPLAIN_JSON, 0, &text, &error) < 0) {
        job_fail(j, "%s", error.text);
        return;
    }
    auto_value json_t *plan = value_read(str_of(text), why, sizeof why);
    free(text);
    if (plan)
        settings(j, plan);
}

static const struct tool_argument begin_arguments[] = {{0}};

/* In no list: no client can call it. */
const struct tool tool_begin = {
    .name = "mcp", .title = "", .description = "", .arguments = begin_arguments, .work = start_work};
