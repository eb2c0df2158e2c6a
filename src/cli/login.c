/*
 * `login`: an agent logs in, in a box that has nothing else; its login becomes this machine's after the person's word. And the browser
 * that such a box has, which is this program: it asks pinfold outside.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "client/entry.h"

/* Only a person at a terminal can say yes: a script that could would give a box's file to the host. */
static bool may_be_stored(const struct agent_begun *b)
{
    char text[1024];
    snprintf(text, sizeof text, "pinfold: write the new login into %.600s? y, n", b->login_path);
    return ask_at_terminal(text, "yn", "pinfold: y or n, and Enter: ") == 'y';
}

static int store_login(struct agent_begun *b)
{
    struct pinfold_error error = {0};
    int r = entry_agent_login(b, false, &error);
    if (r < 0) {
        complain("%s", error.text);
        return STATUS_NO;
    }
    if (!may_be_stored(b)) {
        complain("the new login was thrown away; the one in %s stays as it is", b->login_path);
        return STATUS_NO;
    }
    if (entry_agent_login(b, true, &error) < 0) {
        complain("%s", error.text);
        return STATUS_NO;
    }
    complain("logged in: %s is new, and boxes of this agent have it from now on", b->login_path);
    return STATUS_YES;
}

int open_outside(const char *url)
{
    struct pinfold_error error = {0};
    if (entry_open_url(url, &error) == 0)
        return STATUS_YES;
    complain("%s", error.text);
    return STATUS_NO;
}

int verb_login(struct ask *a)
{
    struct pinfold_error error = {0};
    struct agent_begun b;
    if (!a->agent) {
        complain("login: missing argument: the agent's name (pinfold agent list)");
        return STATUS_USAGE;
    }
    if (a->cow || a->cow_from || a->unattended || a->json) {
        complain("login: --cow, --unattended and --json are not for a login");
        return STATUS_USAGE;
    }
    const bool at_terminal = isatty(0) && isatty(2);
    const struct agent_begin ask = {.name = a->agent,
                                    .options = a->policy,
                                    .words = a->words,
                                    .look_only = a->explain || !at_terminal,
                                    .login = true};
    if (entry_agent_begin(&ask, &b, &error) < 0) {
        (void)fail(&error);
        return STATUS_SANDBOX;
    }
    if (!a->explain && !at_terminal) { /* of an agent that cannot log in in a box, that is said first */
        complain("login: a person is asked before the login is written: run it at a terminal");
        entry_agent_end(&b);
        return STATUS_NO;
    }
    int status = STATUS_SANDBOX;
    if (!agent_options(a, b.options)) {
        complain("out of memory");
    } else if (a->explain) {
        status = agent_explain(a, &b);
    } else {
        if (!a->quiet)
            complain_lines(b.notes);
        status = run_command(a, (const char *const *)b.argv);
        if (status == STATUS_YES) {
            status = store_login(&b);
        } else if (status != STATUS_SANDBOX) { /* which has said why */
            complain("%s ended with status %d: no login was written; the one in %s stays as it is", a->agent, status,
                     b.login_path);
            status = STATUS_NO;
        }
    }
    entry_agent_end(&b);
    return status;
}
