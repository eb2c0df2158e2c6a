/*
 * `hook`: an agent that stays on the host runs its commands in boxes. The words only; src/hook/ does it.
 */
#include "base/str.h"
#include "cli/cli.h"
#include "hook/hook.h"

int verb_hook(struct ask *a)
{
    static const struct {
        const char *name;
        int (*run)(const struct hook_ask *ask);
    } parts[] = {{"install", hook_install}, {"remove", hook_remove}, {"status", hook_status}};
    size_t i = 0;
    while (a->n_words && i < sizeof parts / sizeof *parts && !same(a->words[0], parts[i].name))
        i++;
    if (!a->n_words)
        complain("hook: missing argument: install, remove or status (pinfold hook install|remove|status AGENT)");
    else if (i == sizeof parts / sizeof *parts)
        complain("hook: unknown action '%s'; it is install, remove or status", a->words[0]);
    else if (a->n_words == 1)
        complain("hook %s: missing argument: the agent (pinfold hook %s claude-code)", a->words[0], a->words[0]);
    else if (a->n_words > 2)
        complain("hook %s: unexpected argument '%s'", a->words[0], a->words[2]);
    else
        return parts[i].run(&(struct hook_ask){.agent = a->words[1], .managed = a->managed, .dry_run = a->dry_run});
    return STATUS_USAGE;
}
