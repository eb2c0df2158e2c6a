/* `hook`: an agent that stays on the host runs its commands in boxes. */
#include "base/str.h"
#include "cli/cli.h"
#include "hook/hook.h"

int verb_hook(struct ask *a)
{
    static const struct {
        const char *name;
        int (*run)(const struct hook_ask *ask);
    } parts[] = {{"install", hook_install}, {"remove", hook_remove}, {"status", hook_status}};
    if (a->n_words != 2) {
        complain("hook: missing argument (pinfold hook install|remove|status AGENT)");
        return STATUS_USAGE;
    }
    const struct hook_ask ask = {.agent = a->words[1], .managed = a->managed, .dry_run = a->dry_run};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (same(a->words[0], parts[i].name))
            return parts[i].run(&ask);
    }
    complain("hook: '%s' is not install, remove or status", a->words[0]);
    return STATUS_USAGE;
}
