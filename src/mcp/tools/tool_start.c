/*
 * Done once when the server starts, in a worker so that nobody waits: ends what dead servers have left, prints the
 * settings for the user, and reports if no box can be created on this machine.
 */
#include <stdlib.h>

#include "mcp/workers/janitor.h"
#include "mcp/tools/tool_run.h"

static void limits_words(struct buf *out, const struct pinfold_value *limits)
{
    bool any = false;
    EACH_ANSWER(l, limits)
    {
        const char *said = answer_text(l, "said");
        if (!said || !pinfold_value_is_true(pinfold_value_get(l, "asked")))
            continue;
        buf_printf(out, "%s%s %s", any ? ", " : "; limits ", pinfold_value_name(l), said);
        any = true;
    }
}

static void settings(struct mcp_job *j, const struct pinfold_value *plan)
{
    auto_buf struct buf line = BUF(1u << 16);
    const size_t rules = pinfold_value_count(pinfold_value_get(plan, "network_rules"));
    const struct pinfold_value *lost = pinfold_value_get(plan, "lost");
    const char *engine = answer_text(plan, "engine"), *network = answer_text(plan, "network");
    const char *workspace = answer_text(plan, "workspace"), *profile = answer_text(plan, "profile");

    buf_printf(&line, "serving; engine %s, profile %s, network %s", engine ? engine : "?", profile ? profile : "?",
               network ? network : "none");
    if (rules)
        buf_printf(&line, " (%zu rule%s)", rules, rules == 1 ? "" : "s");
    buf_printf(&line, ", workspace %s", workspace ? workspace : "?");
    limits_words(&line, pinfold_value_get(plan, "limits"));
    EACH_ANSWER(one, lost)
    {
        const char *text = pinfold_value_text(one, NULL), *name = text ? text : answer_text(one, "feature");
        buf_printf(&line, "%s%s", one == pinfold_value_first(lost) ? "; not enforced here: " : ", ", name ? name : "?");
    }
    job_tell(j, buf_cstr(&line));
}

static void start_work(struct mcp_job *j)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *plan = NULL;

    (void)owner_orphans();
    if (pinfold_explain_report(j->place->policy, 0, &plan, &error) < 0)
        job_fail(j, "%s", error.text);
    else
        settings(j, pinfold_report_value(plan));
}

static const struct tool_argument begin_arguments[] = {{0}};

/* In no list: no client can call it. */
const struct tool tool_begin = {
    .name = "mcp", .title = "", .description = "", .arguments = begin_arguments, .work = start_work};
