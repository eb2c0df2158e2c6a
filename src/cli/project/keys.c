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

/* ---- what is typed in the session's shell ---- */

/*
 * How a shell gets a function for each agent that has keys, by which only what that starts has them. The text comes by a pipe at
 * descriptor 9, so that nothing of it is in the shell's environment, and what the person's own files define goes before it.
 */
struct keyed_shell {
    const char *name;
    const char *begin, *end;   /* of a function; % is the program's name */
    const char *key;           /* % is its name, before the value */
    const char *before, *last; /* of the text */
    const char *script;        /* of sh: starts the shell, $0 */
};

#define TAKE_KEYS "k=$PINFOLD_AGENT_KEYS; unset PINFOLD_AGENT_KEYS; "
#define GIVE_KEYS " 9<<E\n$k\nE\n"

static const struct keyed_shell shells[] = {
    /* bash reads it before its first prompt, behind the person's files (PINFOLD_SETUP). */
    {"bash", "declare -F % >/dev/null || function % {", " command % \"$@\"; }\n", " %=", "", "",
     TAKE_KEYS "exec \"$0\"" GIVE_KEYS},
    /* zsh reads what is in ZDOTDIR before all of the person's. */
    {"zsh", "function % {", " command % \"$@\"; }\n", " %=", "", "",
     TAKE_KEYS
     "d=${TMPDIR:-/tmp}/.pinfold-zsh-$$; (umask 077; mkdir \"$d\") && cat >\"$d/.zshenv\" <<'Z' || exec \"$0\"\n"
     "rm -f \"$ZDOTDIR/.zshenv\"; rmdir \"$ZDOTDIR\"; ZDOTDIR=$PINFOLD_ZDOTDIR; unset PINFOLD_ZDOTDIR; "
     "[ \"$ZDOTDIR\" ] || unset ZDOTDIR; eval \"$(cat <&9)\"; exec 9<&-; "
     "[ ! -f \"${ZDOTDIR:-$HOME}/.zshenv\" ] || . \"${ZDOTDIR:-$HOME}/.zshenv\"\n"
     "Z\nexport PINFOLD_ZDOTDIR=\"${ZDOTDIR-}\" ZDOTDIR=\"$d\"; exec \"$0\"" GIVE_KEYS},
    {"fish", "if not functions -q %; function %;", " command % $argv; end; end\n", " set -lx % ", "", "",
     TAKE_KEYS "exec \"$0\" -C 'cat <&9 | source'" GIVE_KEYS},
#define BY_ENV(name)                                                                                                   \
    {                                                                                                                  \
        name, "%() {", " command % \"$@\"; }\n",                                                                       \
            " %=", "ENV=$PINFOLD_ENV; unset PINFOLD_ENV; [ \"$ENV\" ] || unset ENV\n",                                 \
            "exec 9<&-; [ ! -f \"${ENV-}\" ] || . \"$ENV\"\n",                                                         \
            TAKE_KEYS "export PINFOLD_ENV=\"${ENV-}\" ENV=/dev/fd/9; exec \"$0\"" GIVE_KEYS                            \
    }
    /* These read the file that ENV names. */
    BY_ENV("sh"),
    BY_ENV("dash"),
    BY_ENV("ksh"),
    BY_ENV("mksh")};

static const struct keyed_shell *shell_named(const char *name)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (same(shells[i].name, name))
            return shells + i;
    }
    return NULL;
}

/* In fish a backslash before a quote or another is none. */
static void put_value(struct buf *out, const struct keyed_shell *s, const char *value)
{
    if (!same(s->name, "fish")) {
        buf_shell_word(out, str_of(value));
        return;
    }
    buf_char(out, '\'');
    for (; *value; value++)
        buf_printf(out, "%s%c", *value == '\'' || *value == '\\' ? "\\" : "", *value);
    buf_char(out, '\'');
}

static void put_named(struct buf *out, const char *text, const char *name)
{
    for (; *text; text++) {
        if (*text == '%')
            buf_text(out, name);
        else
            buf_char(out, *text);
    }
}

static void put_function(struct buf *out, const struct keyed_shell *s, const struct agent_keys *keys)
{
    put_named(out, s->begin, keys->program);
    for (size_t k = 0; k < keys->n; k++) {
        const char *value = getenv(keys->names[k]);
        if (!value)
            continue; /* it was there a moment ago */
        put_named(out, s->key, keys->names[k]);
        put_value(out, s, value);
        buf_text(out, same(s->name, "fish") ? ";" : "");
    }
    put_named(out, s->end, keys->program);
}

const char *const *keys_for_shell(struct ask *a, const char *real, const char *shell)
{
    static const char *argv[] = {"/bin/sh", "-c", NULL, NULL, NULL};
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    static struct buf text;
    const struct keyed_shell *s = shell_named(last_part(shell));
    char agents[PROJECT_AGENTS][PROJECT_AGENT];
    text = BUF(KEYS_TEXT);
    const size_t n = s ? project_agents(real, agents) : 0;
    for (size_t i = 0; i < n; i++) {
        struct agent_keys keys;
        if (!entry_agent_keys(agents[i], &keys) || !keys.n || keys.program[strspn(keys.program, plain)])
            continue;
        if (!text.n)
            buf_printf(&text, "PINFOLD_AGENT_KEYS=%s", s->before);
        put_function(&text, s, &keys);
    }
    buf_text(&text, text.n ? s->last : "");
    if (!text.n || !buf_ok(&text) || !grow(a, 1))
        return NULL;
    a->env[a->n_env++] = buf_cstr(&text);
    argv[2] = s->script;
    argv[3] = shell;
    return argv;
}
