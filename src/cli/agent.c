/*
 * Agents: started by name, what their boxes changed merged, listed, and their login copied for a session. The words
 * and their order are here; what a definition says and what is copied is the library's.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/people.h"
#include "client/entry.h"
#include "project/project.h"

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

/* Names in it are a box's. */
static int print_safe(char *text)
{
    int status = STATUS_YES;
    for (const char *at = text; *at && status == STATUS_YES;) {
        size_t n = strcspn(at, "\n");
        auto_buf struct buf line = BUF((size_t)1 << 22);
        size_t name = strcspn(at, "\t\n");
        utf8_safe(&line, (struct str){at, name});
        if (name < n) {
            buf_char(&line, '\t');
            utf8_safe(&line, (struct str){at + name + 1, n - name - 1});
        }
        buf_char(&line, '\n');
        status = print(buf_cstr(&line));
        at += n + (at[n] == '\n');
    }
    free(text);
    return status;
}

bool start_named(struct ask *a, const char *word)
{
    a->agent = entry_agent_known(word) ? word : NULL;
    return a->agent != NULL;
}

bool agent_options(struct ask *a, const struct pinfold_option *first)
{
    size_t n = 0;
    while (first[n].name)
        n++;
    struct pinfold_option *all = calloc(n + a->n_policy + 4, sizeof *all);
    if (!all)
        return false;
    memcpy(all, first, n * sizeof *all);
    memcpy(all + n, a->policy, a->n_policy * sizeof *all);
    a->policy = all;
    a->n_policy += n;
    return true;
}

int agent_explain(struct ask *a, const struct agent_begun *b)
{
    char **given = a->words;
    a->words = b->argv;
    a->n_words = 0;
    while (b->argv[a->n_words])
        a->n_words++;
    int status = print(b->about);
    if (status == STATUS_YES)
        status = verb_explain(a);
    a->words = given;
    return status;
}

int verb_start(struct ask *a)
{
    struct pinfold_error error = {0};
    struct agent_begun b;
    if (!a->agent) {
        complain("agent run: missing argument: the agent's name (pinfold agent list)");
        return STATUS_USAGE;
    }
    if (a->branch && !project_branch_run(a))
        return STATUS_SANDBOX;
    const struct pinfold_policy_options policy = {
        .size = sizeof policy, .settings_format = a->settings_format, .text = a->text, .no_layers = a->no_layers};
    const struct agent_begin ask = {.name = a->agent,
                                    .options = a->policy,
                                    .policy = &policy,
                                    .words = a->words,
                                    .unattended = a->unattended,
                                    .look_only = a->explain,
                                    .layered = a->cow || a->cow_from};
    if (entry_agent_begin(&ask, &b, &error) < 0) {
        (void)fail(&error);
        return STATUS_SANDBOX;
    }
    int status = STATUS_SANDBOX;
    if (!agent_options(a, b.options)) {
        complain("out of memory");
    } else if (a->explain) {
        status = agent_explain(a, &b);
    } else {
        if (b.first && !a->quiet)
            complain_lines(b.first);
        if (!a->quiet)
            complain_lines(b.notes);
        status = run_command(a, (const char *const *)b.argv);
        const char *after = entry_agent_after(&b);
        if (after && !a->quiet)
            complain("%s", after);
    }
    entry_agent_end(&b);
    return status;
}

/* The session of a project has the agents that were prepared for it; one that runs keeps what it has. */
static int agent_in_session(const char *agent, bool logout)
{
    char real[PATH_MAX], why[PATH_MAX + 512] = "";
    struct pinfold_error error = {0};
    struct agent_begun b = {.live = -1};
    if (!realpath(".", real) || !project_is(real))
        return STATUS_YES;
    const struct agent_begin ask = {.name = agent, .session = true};
    if (!logout && entry_agent_begin(&ask, &b, &error) < 0)
        return agent_failed(&error);
    int r = logout || b.session ? project_agent_note(real, agent, logout ? NULL : b.options, why, sizeof why) : 0;
    entry_agent_end(&b);
    if (r < 0) {
        complain("%s: %s", verb_said, why);
        return STATUS_NO;
    }
    return print(logout ? "the project's session no longer has it; a running one keeps it until: pinfold stop\n"
                        : "the project's session has it from its next start, with the hosts that it needs and nested "
                          "user namespaces: pinfold stop, pinfold start\n");
}

/* codex-init-config and codex-logout name the agent in the verb, agent-init-config and agent-logout behind it. */
static int agent_configure(const struct ask *a)
{
    struct pinfold_error error = {0};
    char *text = NULL;
    bool logout = same(verb_said, "codex-logout") || same(verb_said, "agent-logout");
    bool named = strncmp(verb_said, "agent-", 6) == 0;
    const char *wrong = a->json ? "json" : logout && a->force ? "force" : logout && a->auth ? "auth" : NULL;
    if (wrong) {
        complain("'%s' has no option --%s; see: pinfold %s --help", verb_said, wrong, verb_said);
        return STATUS_USAGE;
    }
    if (a->n_words > named) {
        complain("%s: unexpected argument '%s'", verb_said, a->words[named]);
        return STATUS_USAGE;
    }
    if (named && !a->n_words) {
        complain("%s: missing argument: the agent's name (pinfold agent list)", verb_said);
        return STATUS_USAGE;
    }
    const char *agent = named ? a->words[0] : "codex";
    int r =
        logout ? entry_agent_logout(agent, &text, &error) : entry_agent_init(agent, a->auth, a->force, &text, &error);
    int status = r < 0 ? agent_failed(&error) : print_safe(text);
    return status == STATUS_YES ? agent_in_session(agent, logout) : status;
}

int verb_agent(struct ask *a)
{
    struct pinfold_error error = {0};
    char *text = NULL;
    if (!same(verb_said, "agent"))
        return agent_configure(a);
    if (a->force || a->auth) {
        complain("'agent' has no option --%s; see: pinfold agent --help", a->force ? "force" : "auth");
        return STATUS_USAGE;
    }
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
    if (a->n_words >= 2 && same(a->words[0], "merge")) {
        const char *const *takes = a->n_words > 2 ? (const char *const *)(a->words + 2) : NULL;
        if (entry_agent_merge(a->words[1], takes, &text, &error) < 0)
            return agent_failed(&error);
        return print_safe(text);
    }
    static const struct {
        const char *name, *usage;
        int words; /* at least */
    } parts[] = {{"list", "list", 1},
                 {"run", "run NAME", 2},
                 {"merge", "merge NAME [FILE[:KEY]...]", 2},
                 {"prepare", "prepare AGENT DIRECTORY", 3}};
    for (size_t i = 0; a->n_words && i < sizeof parts / sizeof *parts; i++) {
        if (!same(a->words[0], parts[i].name))
            continue;
        complain("agent %s: %s (pinfold agent %s)", parts[i].name,
                 a->n_words < parts[i].words ? "missing argument" : "too many arguments", parts[i].usage);
        return STATUS_USAGE;
    }
    complain("agent: %s%s%s list, run, merge or prepare",
             a->n_words ? "unknown action '" : "missing argument:", a->n_words ? a->words[0] : "",
             a->n_words ? "'; it is" : "");
    return STATUS_USAGE;
}
