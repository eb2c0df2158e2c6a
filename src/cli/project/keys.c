/*
 * Variables with keys (ANTHROPIC_API_KEY ...) for agents in a project's session. The definition of an agent names those that `pinfold NAME`
 * hands in; in a session, which has other commands, too, the agent alone gets them, when it is started, and they stand in no file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "project/project.h"

enum { KEYS_TEXT = 1 << 16 };

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Room for that many more. */
static bool grow(struct ask *a, size_t more)
{
    const char **env = calloc(a->n_env + more + 2, sizeof *env); /* and TERM, the end */
    if (!env)
        return false;
    memcpy(env, a->env, a->n_env * sizeof *env);
    free(a->env);
    a->env = env;
    return true;
}

static bool hand_in(struct ask *a, const struct agent_keys *keys)
{
    static char texts[AGENT_KEYS][1 << 13];
    if (!grow(a, keys->n))
        return false;
    for (size_t i = 0; i < keys->n; i++) {
        if (snprintf(texts[i], sizeof texts[i], "%s=%s", keys->names[i], getenv(keys->names[i])) < (int)sizeof texts[i])
            a->env[a->n_env++] = texts[i];
    }
    return true;
}

bool keys_for_agent(struct ask *a, const char *session, const char *const *argv)
{
    char agents[PROJECT_AGENTS][PROJECT_AGENT], real[PATH_MAX] = "";
    struct pinfold_error ignored = {0};
    struct pinfold_report *report;
    if (a->shell || !argv || !argv[0] || strncmp(session, PROJECT_PREFIX, sizeof PROJECT_PREFIX - 1) != 0 ||
        !entry_agent_known(last_part(argv[0])))
        return true;
    const struct pinfold_session_options o = {.size = sizeof o, .name = session, .scope = a->scope};
    if (pinfold_session_list_report(&o, &report, &ignored) < 0)
        return true;
    const char *where = pinfold_value_text(pinfold_value_get(pinfold_report_value(report), "workspace"), NULL);
    snprintf(real, sizeof real, "%s", where ? where : "");
    pinfold_report_free(report);
    const size_t n = project_agents(real, agents);
    for (size_t i = 0; i < n; i++) {
        struct agent_keys keys;
        if (!entry_agent_keys(agents[i], &keys) || !same(keys.program, last_part(argv[0])))
            continue;
        if (hand_in(a, &keys))
            return true;
        complain("out of memory");
        return false;
    }
    return true;
}

/* One function of bash for each agent that has any: only what it starts gets them. */
const char *const *keys_for_shell(struct ask *a, const char *real, const char *shell)
{
    /* bash reads the functions from a pipe, before its first prompt, so that its environment has nothing of them. */
    static const char script[] = "k=$PINFOLD_AGENT_KEYS; unset PINFOLD_AGENT_KEYS; exec \"$0\" 9<<E\n$k\nE\n";
    static const char *argv[] = {"/bin/sh", "-c", script, NULL, NULL};
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    static struct buf text;
    char agents[PROJECT_AGENTS][PROJECT_AGENT];
    text = BUF(KEYS_TEXT);
    const size_t n = same(last_part(shell), "bash") ? project_agents(real, agents) : 0;
    for (size_t i = 0; i < n; i++) {
        struct agent_keys keys;
        if (!entry_agent_keys(agents[i], &keys) || !keys.n || keys.program[strspn(keys.program, plain)])
            continue;
        if (!text.n)
            buf_text(&text, "PINFOLD_AGENT_KEYS=");
        buf_printf(&text, "declare -F %s >/dev/null || function %s {", keys.program, keys.program);
        for (size_t k = 0; k < keys.n; k++) {
            buf_printf(&text, " %s=", keys.names[k]);
            buf_shell_word(&text, str_of(getenv(keys.names[k])));
        }
        buf_printf(&text, " command %s \"$@\"; }\n", keys.program);
    }
    if (!text.n || !buf_ok(&text) || !grow(a, 1))
        return NULL;
    a->env[a->n_env++] = buf_cstr(&text);
    argv[3] = shell;
    return argv;
}
