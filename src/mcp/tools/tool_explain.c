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

static void strip(json_t *v)
{
    for (const char *const *name = private_members; json_is_object(v) && *name; name++)
        (void)json_object_del(v, *name);
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at))
        strip(json_object_iter_value(at));
    for (size_t i = 0; i < json_array_size(v); i++)
        strip(json_array_get(v, i));
}

static json_t *plan_of(struct mcp_job *j, struct pinfold_policy *policy)
{
    struct pinfold_error error = {0};
    char *text = NULL, why[128];

    if (pinfold_explain(policy, PINFOLD_EXPLAIN_JSON, 0, &text, &error) < 0) {
        job_fail(j, "%s", error.text);
        return NULL;
    }
    json_t *plan = value_read(str_of(text), why, sizeof why);
    free(text);
    if (!plan)
        job_fail(j, "the plan could not be read: %s", why);
    return plan;
}

/* "writable: /a, /b" for the files of this access. */
static void files_line(struct mcp_job *j, const json_t *plan, const char *access, const char *label)
{
    const json_t *files = json_object_get(plan, "files");
    unsigned n = 0, shown = 0;

    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *f = json_array_get(files, i);
        const char *path = value_text(f, "path", NULL);
        if (!path || !same(value_text(f, "access", NULL), access))
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

static void network_line(struct mcp_job *j, const json_t *plan)
{
    const json_t *rules = json_object_get(plan, "network_rules");
    const char *mode = value_text(plan, "network", NULL);

    buf_printf(&j->text, "network: %s\n", mode ? mode : "none");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *verb = value_text(json_array_get(rules, i), "verb", NULL);
        const char *rule = value_text(json_array_get(rules, i), "rule", NULL);
        if (verb && rule)
            buf_printf(&j->text, "  %s %s\n", verb, rule);
    }
}

static void limits_line(struct mcp_job *j, json_t *limits)
{
    unsigned n = 0;
    for (void *at = json_object_iter(limits); at; at = json_object_iter_next(limits, at)) {
        const char *said = value_text(json_object_iter_value(at), "said", NULL);
        if (said)
            buf_printf(&j->text, "%s%s %s", n++ ? ", " : "limits: ", json_object_iter_key(at), said);
    }
    buf_text(&j->text, n ? "\n" : "limits: none\n");
}

static void lost_line(struct mcp_job *j, const json_t *plan)
{
    auto_buf struct buf lost = BUF(1u << 20);
    struct json w = JSON(&lost);
    if (json_array_size(json_object_get(plan, "lost")) == 0)
        return;
    value_write(&w, NULL, json_object_get(plan, "lost"));
    buf_printf(&j->text, "not enforced on this machine: %s\n", buf_cstr(&lost));
}

static void summary(struct mcp_job *j, json_t *plan)
{
    const char *workspace = value_text(plan, "workspace", NULL), *engine = value_text(plan, "engine", NULL);
    const json_t *guard = json_object_get(plan, "guard");
    const char *mode = value_text(guard, "mode", NULL);

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
    limits_line(j, json_object_get(plan, "limits"));
    lost_line(j, plan);
}

static void tell_plan(struct mcp_job *j, struct pinfold_policy *policy, bool brief)
{
    auto_value json_t *plan = plan_of(j, policy);
    struct json w = JSON(&j->structured);

    if (!plan)
        return;
    strip(plan);
    summary(j, plan);
    json_object(&w, NULL);
    json_int(&w, "v", 1);
    for (const char *const *name = kept_members; *name; name++) {
        const json_t *v = json_object_get(plan, *name);
        if (brief && same(*name, "guard"))
            value_write(&w, *name, json_object_get(v, "mode"));
        else if (v)
            value_write(&w, *name, v);
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

const struct tool tool_explain = {.name = "explain",
                                  .title = "Explain a box",
                                  .description = "Shows what a box with these options could read, write, reach and "
                                                 "use, and what enforces it. Nothing is started.",
                                  .arguments = explain_arguments,
                                  .read_only = true,
                                  .idempotent = true,
                                  .work = explain};

const struct tool tool_policy = {
    .name = "policy",
    .title = "What may I do here?",
    .description = "Shows the rules for every command here: writable and hidden paths, network, limits.",
    .arguments = policy_arguments,
    .read_only = true,
    .idempotent = true,
    .work = policy};
