/*
 * A project, day to day: `init` writes its policy and trusts it; `shell`, `start`, `stop` and `list` are about its session, which is one
 * like any other (session.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/people.h"
#include "project/project.h"

/* The directory that was named, or the current one, by its real path. */
static bool find_directory(const struct ask *a, char real[PATH_MAX])
{
    const char *name = verb_said, *path = a->n_words ? a->words[0] : ".";
    struct stat st;
    if (a->n_words > 1) {
        complain("%s: unexpected argument '%s' (pinfold %s [PATH])", name, a->words[1], name);
        return false;
    }
    if (!realpath(path, real) || stat(real, &st) < 0) {
        complain("%s: cannot use '%s': %s", name, path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        complain("%s: '%s' is not a directory", name, path);
        return false;
    }
    return true;
}

/* What is no project, each in one sentence. */
static bool can_be_project(const char *real, const struct project_seen *seen)
{
    const char *home = getenv("HOME");
    char there[PATH_MAX];
    if (same(real, "/") || (home && realpath(home, there) && same(there, real)))
        complain("init: '%s' is %s, not a project; name a directory in it: pinfold init PATH", real,
                 real[1] ? "a home" : "the root directory");
    else if (seen->bare)
        complain("init: '%s' is a bare repository, in which nobody works; clone it, and initialize the clone", real);
    else
        return true;
    return false;
}

static void tell(const char *real, const struct project_seen *seen, const struct project_done *done)
{
    auto_buf struct buf words = BUF(4096);
    project_words(seen, &words);
    printf("found: %s%s\n", words.n ? buf_cstr(&words) : "no language that pinfold knows",
           seen->cut
               ? " (not everything was looked at: the directory is larger than 60000 names or deeper than six levels)"
               : "");
    if (done->moved[0])
        printf("moved: " PROJECT_FILE " to %s\n", done->moved);
    printf("wrote: " PROJECT_FILE ", trusted as it is%s\n",
           done->ignored ? "; .gitignore has a line for its backups" : "");
    printf("next:  pinfold shell, in %s\n", real);
}

int verb_init(struct ask *a)
{
    char real[PATH_MAX], file[PATH_MAX + sizeof PROJECT_FILE], why[PATH_MAX + 512] = "";
    struct project_seen seen;
    struct project_done done;
    struct pinfold_error error = {0};
    char *sentence = NULL;
    if (!find_directory(a, real))
        return STATUS_USAGE;
    auto_fd int dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? -errno : project_look(dir, &seen);
    if (r < 0) {
        complain("init: cannot read '%s': %s", real, strerror(-r));
        return STATUS_USAGE;
    }
    if (!can_be_project(real, &seen))
        return STATUS_USAGE;
    if (project_write(dir, real, &seen, a->force, &done, why, sizeof why) < 0) {
        complain("init: %s", why);
        return STATUS_USAGE;
    }
    snprintf(file, sizeof file, "%s/" PROJECT_FILE, real);
    r = pinfold_trust(file, 0, &sentence, &error);
    free(sentence);
    tell(real, &seen, &done);
    if (r < 0) {
        complain("%s; until it is trusted, the policy can only tighten: pinfold trust '%s'", error.text, real);
        return STATUS_NO;
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- the session of a project ---- */

static void add_option(struct ask *a, const char *name, const char *value)
{
    a->policy[a->n_policy++] = (struct pinfold_option){name, value};
}

/*
 * The session's policy, the same for every verb: by it the session is found again. The texts are held as long as the process lives.
 */
static void project_options(struct ask *a, const char *real)
{
    static struct project_box box;
    project_box(real, &box);
    a->session = box.session;
    add_option(a, "workspace", box.workspace);
    add_option(a, "storage", box.storage);
    if (box.marker[0])
        add_option(a, "mount", box.marker);
}

/*
 * What a shell of a person's needs besides: its history, and a prompt with the box, the branch and whether there is a network. Where the
 * person's own files set a prompt, bash puts ours before it.
 */
static void shell_variables(struct ask *a)
{
    static char own[512], prompt[600];
    snprintf(
        own, sizeof own,
        "PINFOLD_PROMPT=(pinfold %.64s$(git symbolic-ref -q --short HEAD 2>&- | sed 's/^/ /')${HTTPS_PROXY:+ net}) ",
        a->session + sizeof PROJECT_PREFIX - 1);
    snprintf(prompt, sizeof prompt, "PS1=%s%s ", strchr(own, '=') + 1, geteuid() == 0 ? "#" : "$");
    a->env[a->n_env++] = own;
    a->env[a->n_env++] = prompt;
    a->env[a->n_env++] = "HISTFILE=" PROJECT_HISTORY "/history";
    /* `history -a`: what was typed is there after a kill, too. */
    a->env[a->n_env++] = "PROMPT_COMMAND=history -a; case $PS1 in *pinfold*) ;; *) PS1=$PINFOLD_PROMPT$PS1;; esac";
}

bool project_shell(struct ask *a)
{
    char real[PATH_MAX];
    const char *path = a->n_words ? a->words[0] : ".";
    if (a->n_policy || a->session || a->cow || a->cow_then || a->no_layers || a->text || a->settings_format ||
        a->json || a->control || a->result || a->scope || a->dir || getenv("PINFOLD") || !realpath(path, real) ||
        !project_is(real))
        return false;
    project_options(a, real);
    shell_variables(a);
    return true;
}

static int project_stop(const char *real)
{
    char name[PROJECT_NAME];
    struct pinfold_error error = {0};
    project_session(real, name);
    const struct pinfold_session_options o = {.size = sizeof o, .name = name};
    int r = pinfold_session_stop(&o, 0, &error);
    if (r == -ENOENT || r == -ESTALE)
        return STATUS_NO_SESSION;
    return r < 0 ? fail(&error) : STATUS_YES;
}

static int project_list(const struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    if (a->n_words) {
        complain("list takes no argument; all sessions: pinfold session list");
        return STATUS_USAGE;
    }
    if (pinfold_session_list_report(NULL, &report, &error) < 0)
        return fail(&error);
    int status = people_projects(report, PROJECT_PREFIX);
    pinfold_report_free(report);
    return status;
}

int verb_project(struct ask *a)
{
    char real[PATH_MAX];
    int status = STATUS_YES;
    if (same(verb_said, "list"))
        return project_list(a);
    if (!find_directory(a, real))
        return STATUS_USAGE;
    if (same(verb_said, "stop") && (status = project_stop(real)) != STATUS_NO_SESSION)
        return status; /* agents have sessions of directories that are no projects, too */
    if (!project_is(real)) {
        complain("%s: '%s' is not initialized; do that with: pinfold init '%s'", verb_said, real, real);
        return STATUS_USAGE;
    }
    if (same(verb_said, "stop")) {
        complain("stop: no session of '%s' is running; start it with: pinfold start", real);
        return status;
    }
    project_options(a, real);
    return start_session(a, a->session);
}
