/* `agent`: lists agents, and copies their login into the directory of a session. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/people.h"

static int agent_failed(const struct pinfold_error *error)
{
    int status = fail(error);
    return error->kind == PINFOLD_ERROR_SYSTEM ? STATUS_NO : status;
}

static int agent_list(const struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    if (pinfold_agent_list_report(&report, &error) < 0)
        return agent_failed(&error);
    int status = a->json ? print_report(report) : people_agents(report);
    pinfold_report_free(report);
    return status;
}

/* A directory that need not be there yet, from the root on; NULL with errno. */
static const char *absolute(const char *path, char here[PATH_MAX])
{
    if (path[0] == '/')
        return path;
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    if (!getcwd(here, PATH_MAX))
        return NULL;
    size_t n = strlen(here);
    if (n + strlen(path) + 2 > PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (strcmp(path, ".") != 0)
        snprintf(here + n, PATH_MAX - n, "%s%s", n > 1 ? "/" : "", path);
    return here;
}

int verb_agent(struct ask *a)
{
    struct pinfold_error error = {0};
    char *text = NULL;
    if (a->n_words == 1 && same(a->words[0], "list"))
        return agent_list(a);
    if (a->n_words == 3 && same(a->words[0], "prepare")) {
        char here[PATH_MAX];
        const char *state = absolute(a->words[2], here);
        if (!state) {
            complain("agent prepare '%s': %s", a->words[2], strerror(errno));
            return STATUS_NO;
        }
        const struct pinfold_agent_options o = {.size = sizeof o, .agent = a->words[1], .state = state};
        if (pinfold_agent_prepare(&o, NULL, &text, &error) < 0)
            return agent_failed(&error);
        int status = print_free(text);
        return status == STATUS_YES ? print("\n") : status;
    }
    complain("agent: list, or prepare AGENT DIRECTORY");
    return STATUS_USAGE;
}
