/*
 * `explain` and `policy`: tell a model what a box may do. Origins of rules, paths of policy files, and the host's side
 * of mounts are private to the user and left out.
 */
#include <stdlib.h>

#include "mcp/tools/tool_run.h"
#include "mcp/tools/wishes.h"

static const struct tool_argument explain_arguments[] = {
    {"options", ARGUMENT_OPTIONS_BRIEF, .help = "Options of the policy, as of the tool 'run'."}, {0}};
static const struct tool_argument policy_arguments[] = {{0}};

static const char *const kept_members[] = {"engine",     "tier",          "workspace", "network", "network_rules",
                                           "namespaces", "files",         "guard",     "limits",  "environment",
                                           "enforced",   "lost",          "ignored",   "notes",   "uid",
                                           "gid",        "policy_digest", NULL};
static const char *const private_members[] = {"origin", "from", "target", "source", NULL};

/* "writable: /a, /b" for the files of this access. */
static void files_line(struct mcp_job *j, const struct pinfold_value *plan, const char *access, const char *label)
{
    unsigned n = 0, shown = 0;

    EACH_ANSWER(f, pinfold_value_get(plan, "files"))
    {
        const char *path = answer_text(f, "path");
        if (!path || !same(answer_text(f, "access"), access))
            continue;
        if (n++ >= 40)
            continue;
        buf_text(&j->text, shown++ ? ", " : label);
        words_of(&j->text, str_of(path));
    }
    if (n > shown)
        buf_printf(&j->text, " and %u more", n - shown);
    if (n)
        buf_char(&j->text, '\n');
}

static void network_line(struct mcp_job *j, const struct pinfold_value *plan)
{
    const char *mode = answer_text(plan, "network");

    buf_printf(&j->text, "network: %s\n", mode ? mode : "none");
    EACH_ANSWER(one, pinfold_value_get(plan, "network_rules"))
    {
        const char *verb = answer_text(one, "verb"), *rule = answer_text(one, "rule");
        if (verb && rule)
            buf_printf(&j->text, "  %s %s\n", verb, rule);
    }
}

static void limits_line(struct mcp_job *j, const struct pinfold_value *limits)
{
    unsigned n = 0;
    EACH_ANSWER(one, limits)
    {
        const char *said = answer_text(one, "said");
        if (said)
            buf_printf(&j->text, "%s%s %s", n++ ? ", " : "limits: ", pinfold_value_name(one), said);
    }
    buf_text(&j->text, n ? "\n" : "limits: none\n");
}

static void lost_line(struct mcp_job *j, const struct pinfold_value *plan)
{
    auto_buf struct buf lost = BUF(1u << 20);
    struct json w = JSON(&lost);
    if (pinfold_value_count(pinfold_value_get(plan, "lost")) == 0)
        return;
    answer_write(&w, NULL, pinfold_value_get(plan, "lost"), private_members);
    buf_printf(&j->text, "not enforced on this machine: %s\n", buf_cstr(&lost));
}

static void summary(struct mcp_job *j, const struct pinfold_value *plan)
{
    const char *workspace = answer_text(plan, "workspace"), *engine = answer_text(plan, "engine");
    const char *mode = answer_text(pinfold_value_get(plan, "guard"), "mode");

    buf_printf(&j->text, "engine: %s\nworkspace: ", engine ? engine : "?");
    words_of(&j->text, str_of(workspace));
    buf_char(&j->text, '\n');
    network_line(j, plan);
    files_line(j, plan, "writable", "writable: ");
    files_line(j, plan, "private", "private (gone afterwards): ");
    files_line(j, plan, "cache", "private caches: ");
    files_line(j, plan, "protected", "not to be changed: ");
    files_line(j, plan, "hidden", "hidden: ");
    buf_text(&j->text, "everything else: read-only\n");
    if (mode)
        buf_printf(&j->text, "names that later programs would execute (.git/hooks, .envrc ...): guarded, %s\n", mode);
    limits_line(j, pinfold_value_get(plan, "limits"));
    lost_line(j, plan);
}

static void tell_plan(struct mcp_job *j, struct pinfold_policy *policy, bool brief)
{
    auto_report struct pinfold_report *report = NULL;
    struct pinfold_error error = {0};
    struct json w = JSON(&j->structured);

    if (pinfold_explain_report(policy, 0, &report, &error) < 0) {
        job_fail(j, "%s", error.text);
        return;
    }
    const struct pinfold_value *plan = pinfold_report_value(report);
    summary(j, plan);
    json_object(&w, NULL);
    json_int(&w, "v", 1);
    for (const char *const *name = kept_members; *name; name++) {
        const struct pinfold_value *v = pinfold_value_get(plan, *name);
        if (brief && same(*name, "guard"))
            answer_write(&w, *name, pinfold_value_get(v, "mode"), NULL);
        else if (v)
            answer_write(&w, *name, v, private_members);
    }
    json_object_end(&w);
}

static void explain(struct mcp_job *j)
{
    struct pinfold_policy *policy;
    bool own;

    if (wishes_policy(j, 0, &policy, &own) < 0)
        return;
    tell_plan(j, policy, false);
    if (own)
        pinfold_policy_free(policy);
}

static void policy(struct mcp_job *j)
{
    tell_plan(j, j->place->policy, true);
    if (!j->failed)
        buf_text(&j->text, "A call's 'options' can restrict this further; anything more is asked of the person.\n");
}

const struct tool tool_explain = {
    .name = "explain",
    .title = "Explain a box",
    .description = "Shows what a box with these options could read, write, reach and "
                   "use, and what enforces it. Nothing is started.",
    .output = "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"engine\":{\"type\":\"string\"},"
              "\"workspace\":{\"type\":\"string\"},\"network\":{\"type\":\"string\"},\"files\":{\"type\":\"array\"},"
              "\"limits\":{\"type\":\"object\"},\"policy_digest\":{\"type\":\"string\"}},\"required\":[\"v\","
              "\"engine\",\"network\"]}",
    .arguments = explain_arguments,
    .read_only = true,
    .idempotent = true,
    .work = explain};

const struct tool tool_policy = {
    .name = "policy",
    .title = "What may I do here?",
    .description = "Shows the rules for every command here: writable and hidden paths, network, limits.",
    .output = "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"engine\":{\"type\":\"string\"},"
              "\"workspace\":{\"type\":\"string\"},\"network\":{\"type\":\"string\"},\"files\":{\"type\":\"array\"},"
              "\"limits\":{\"type\":\"object\"},\"policy_digest\":{\"type\":\"string\"}},\"required\":[\"v\","
              "\"engine\",\"network\"]}",
    .arguments = policy_arguments,
    .read_only = true,
    .idempotent = true,
    .work = policy};
