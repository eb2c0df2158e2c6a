/*
 * Which options of a box hold for the boxes beside it: one table. A name that is not in it holds, because it may hide something; a test
 * fails until somebody has thought of it.
 */
#include "project/beside.h"

#include "base/str.h"

/* One line for each option of a policy; a test compares them with the library's. */
static const struct {
    char name[24]; /* no address, which would be written into a page of each process */
    enum beside holds;
} all_known[] = {
    {"profile", BESIDE_ALL},
    {"policy", BESIDE_ALL},
    {"settings", BESIDE_ALL},
    {"hide", BESIDE_ALL},
    {"ro", BESIDE_ALL},
    {"expand", BESIDE_ALL},
    {"net", BESIDE_ALL},
    {"deny", BESIDE_ALL},
    {"deny-port", BESIDE_ALL},
    {"memory", BESIDE_ALL},
    {"cpus", BESIDE_ALL},
    {"pids", BESIDE_ALL},
    {"disk", BESIDE_ALL},
    {"open-files", BESIDE_ALL},
    {"unset", BESIDE_ALL},
    {"must-have", BESIDE_ALL},
    {"protect", BESIDE_MAKES}, /* where a path can be meant: beside_holds() */
    {"may-lose", BESIDE_MAKES},
    {"engine", BESIDE_MAKES}, /* a weaker one than was asked for may not read what boxes have written */
    {"image", BESIDE_MAKES},
    {"pull", BESIDE_MAKES},
    {"entrypoint", BESIDE_MAKES},
    {"platform", BESIDE_MAKES},
    {"runtime", BESIDE_MAKES},
    {"docker-host", BESIDE_MAKES},
    {"docker-context", BESIDE_MAKES},
    {"vm-kernel", BESIDE_MAKES},
    {"vm-modules", BESIDE_MAKES},
    {"seatbelt-base", BESIDE_MAKES},
    {"seatbelt-file", BESIDE_MAKES},
    {"workspace", BESIDE_NOT}, /* the checkout, read-only */
    {"read-only", BESIDE_NOT},
    {"rw", BESIDE_NOT},
    {"cache", BESIDE_NOT},
    {"mount", BESIDE_NOT},
    {"storage", BESIDE_NOT},
    {"env-files", BESIDE_NOT},
    {"cow", BESIDE_NOT},
    {"guard", BESIDE_NOT}, /* pinfold's own scripts alone write there */
    {"guard-allow", BESIDE_NOT},
    {"guard-everyday", BESIDE_NOT},
    {"git-verify", BESIDE_NOT}, /* these are about pushes, and are read from the box's own policy */
    {"protect-branch", BESIDE_NOT},
    {"git-allow-force", BESIDE_NOT},
    {"git-allow-delete", BESIDE_NOT},
    {"allow", BESIDE_NOT}, /* what these add is the command's */
    {"ask", BESIDE_NOT},
    {"ask-time", BESIDE_NOT},
    {"publish", BESIDE_NOT},
    {"reach", BESIDE_NOT},
    {"net-catch", BESIDE_NOT},
    {"unix-socket", BESIDE_NOT},
    {"ssh-agent", BESIDE_NOT},
    {"gpg-agent", BESIDE_NOT},
    {"gpg-confirm", BESIDE_NOT},
    {"ssh-confirm", BESIDE_NOT},
    {"timeout", BESIDE_NOT}, /* how long the command may take, and what it may print */
    {"grace", BESIDE_NOT},
    {"output", BESIDE_NOT},
    {"env", BESIDE_NOT}, /* GIT_DIR and its like would lead git elsewhere */
    {"user", BESIDE_NOT},
    {"tty", BESIDE_NOT},
    {"unsandboxed-fallback", BESIDE_NOT},
    {"hostname", BESIDE_NOT},
    {"allow-nested-userns", BESIDE_NOT},
    {"monitor", BESIDE_NOT},
};

int beside_of(const char *name)
{
    for (size_t i = 0; i < sizeof all_known / sizeof *all_known; i++) {
        if (same(all_known[i].name, name))
            return all_known[i].holds;
    }
    return -1;
}

bool beside_holds(const struct pinfold_option *option, bool makes)
{
    const int holds = beside_of(option->name);
    /* A path of the workspace, which is read-only here, or a name at any depth, which git writes into the worktree as it was committed. */
    if (holds == BESIDE_MAKES && same(option->name, "protect"))
        return makes && option->value && (option->value[0] == '/' || option->value[0] == '~');
    return holds != BESIDE_NOT && (makes || holds != BESIDE_MAKES);
}
