/*
 * A project, day to day: `init` writes its policy and trusts it; `shell` opens one in its session, or in that of one of its branches, which
 * is a session like any other (session.c). The verbs besides are in project/branches.c.
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
#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "project/branch.h"

/* What is no project, each in one sentence. */
static bool can_be_project(const char *real, const struct project_seen *seen)
{
    const char *home = getenv("HOME");
    char there[PATH_MAX];
    if (same(real, "/") || (home && realpath(home, there) && same(there, real)))
        complain("init: '%s' is %s, not a project; name a directory in it: pinfold init PATH", real,
                 real[1] ? "a home" : "the root directory");
    else if (seen->bare)
        complain("init: '%s' is a bare repository, which has no work tree; clone it, and initialize the clone", real);
    else
        return true;
    return false;
}

/* ---- what somebody should look at before a box works here: as pinfold doctor finds it, bounded in time as there ---- */

enum { MOST_DANGERS = 8 };

static const char *danger_text(const struct pinfold_value *o, const char *name)
{
    const char *text = pinfold_value_text(pinfold_value_get(o, name), NULL);
    return text ? text : "";
}

static void danger_file(struct buf *out, const char *real, const char *path)
{
    const size_t n = strlen(real);
    const bool below = strncmp(path, real, n) == 0 && path[n] == '/';
    utf8_safe(out, str_of(below ? path + n + 1 : path));
}

static void danger_secret(const struct pinfold_value *v, const char *real, struct buf *out)
{
    buf_text(out, "look:  ");
    danger_file(out, real, danger_text(v, "file"));
    buf_printf(out, ": %s, which a box can read; to hide it: files.hide in " PROJECT_FILE "\n", danger_text(v, "what"));
}

static void danger_run(const struct pinfold_value *v, const char *real, struct buf *out)
{
    buf_text(out, "look:  ");
    danger_file(out, real, danger_text(v, "file"));
    buf_printf(out, ": git on this machine would run '");
    utf8_safe(out, str_of(danger_text(v, "value")));
    buf_text(out, "'");
    if (*danger_text(v, "remedy")) {
        buf_text(out, "; ");
        utf8_safe(out, str_of(danger_text(v, "remedy")));
    }
    buf_char(out, '\n');
}

static void tell_dangers(int dir, const char *real)
{
    struct pinfold_error ignored = {0};
    struct pinfold_report *report;
    auto_buf struct buf out = BUF(1u << 18);
    size_t n = 0;
    if (fchdir(dir) < 0 || entry_dangers_report(&report, &ignored) < 0)
        return;
    const struct pinfold_value *all = pinfold_report_value(report), *secrets = pinfold_value_get(all, "secrets"),
                               *git = pinfold_value_get(all, "git"),
                               *v = pinfold_value_first(pinfold_value_get(secrets, "readable"));
    for (; v; v = pinfold_value_next(v)) {
        if (n++ < MOST_DANGERS)
            danger_secret(v, real, &out);
    }
    for (v = pinfold_value_first(pinfold_value_get(git, "runs")); v; v = pinfold_value_next(v)) {
        if (!pinfold_value_is_true(pinfold_value_get(v, "yours")) && n++ < 2 * MOST_DANGERS)
            danger_run(v, real, &out);
    }
    if (n > MOST_DANGERS)
        buf_text(&out, "look:  there is more; see: pinfold doctor\n");
    else if (!pinfold_value_is_true(pinfold_value_get(secrets, "all_looked_at")))
        buf_text(&out,
                 "look:  not all files were looked at for credentials that a box could read; see: pinfold doctor\n");
    pinfold_report_free(report);
    printf("%s", buf_cstr(&out));
}

static void tell(int dir, const char *real, const struct project_seen *seen, const struct project_done *done,
                 bool trusted)
{
    auto_buf struct buf words = BUF(4096);
    project_words(seen, &words);
    printf("found: %s%s\n", words.n ? buf_cstr(&words) : "no language that pinfold knows",
           seen->cut
               ? " (not everything was looked at: the directory is larger than 60000 names or deeper than six levels)"
               : "");
    if (done->moved[0])
        printf("moved: " PROJECT_FILE " to %s\n", done->moved);
    if (done->moved_image[0])
        printf("moved: " PROJECT_DOCKERFILE " to %s\n", done->moved_image);
    if (done->image)
        printf("wrote: " PROJECT_DOCKERFILE ", of the image that boxes here have; change it, then: pinfold build\n");
    printf("wrote: " PROJECT_FILE "%s%s\n", trusted ? ", trusted as it is" : "",
           done->ignored ? "; .gitignore has a line for its backups" : "");
    tell_dangers(dir, real);
    tell_volumes(real);
    auto_buf struct buf shown = BUF(5 * PATH_MAX);
    utf8_safe(&shown, str_of(real));
    printf(done->image ? "next:  pinfold build-base, once for all projects; pinfold build and pinfold shell, in %s\n"
                       : "next:  pinfold shell, in %s\n",
           buf_cstr(&shown));
}

/* The engine that was said, or that the person's own policy has; NULL: boxes need no image. False with a message. */
static bool container_of(const struct ask *a, const char *real, struct project_container *ret)
{
    const struct pinfold_policy_options o = {.size = sizeof o, .cwd = real};
    struct pinfold_policy *policy;
    struct pinfold_error ignored;
    char *text = NULL;
    *ret = (struct project_container){.engine = a->image.engine};
    project_image(real, ret->name);
    if (!a->image.engine && pinfold_policy_load(&o, &policy, &ignored) == 0) {
        (void)pinfold_policy_text(policy, 0, &text, &ignored);
        pinfold_policy_free(policy);
    }
    if (text && strstr(text, "\nengine: docker\n"))
        ret->engine = "docker";
    if (text && strstr(text, "\nengine: podman\n"))
        ret->engine = "podman";
    free(text);
    if (!a->image.engine || same(a->image.engine, "docker") || same(a->image.engine, "podman"))
        return true;
    complain(
        "init: --engine '%s' has no images, so there is nothing to prepare; write docker or podman, or leave it out",
        a->image.engine);
    return false;
}

int verb_init(struct ask *a)
{
    struct project_container container;
    char real[PATH_MAX], file[PATH_MAX + sizeof PROJECT_FILE], why[PATH_MAX + 512] = "";
    struct project_seen seen;
    struct project_done done;
    struct pinfold_error error = {0};
    if (!project_directory(a, 0, real) || !container_of(a, real, &container))
        return STATUS_USAGE;
    auto_fd int dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? -errno : project_look(dir, &seen);
    if (r < 0) {
        complain("init: cannot read '%s': %s", real, strerror(-r));
        return STATUS_USAGE;
    }
    if (!can_be_project(real, &seen))
        return STATUS_USAGE;
    if (project_write(dir, real, &seen, &container, a->force, &done, why, sizeof why) < 0) {
        complain("init: %s", why);
        return STATUS_USAGE;
    }
    snprintf(file, sizeof file, "%s/" PROJECT_FILE, real);
    auto_buf struct buf written = BUF(PROJECT_POLICY_MAX);
    project_policy(&seen, &container, &written);
    r = entry_trust_written(file, buf_view(&written), &error);
    tell(dir, real, &seen, &done, r == 0);
    if (r < 0) {
        complain("%s; until it is trusted, the policy can only tighten: pinfold trust '%s'", error.text, real);
        return STATUS_NO;
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- the session of a project ---- */

static struct project_box used_box; /* of the session that this process is about, and the checkout */
static char checkout[PATH_MAX];

const char *shell_checkout(void)
{
    return checkout;
}

/* Agents that the project's session has (pinfold agent-init-config NAME), while it is started. */
static struct agent_begun used_agents[PROJECT_AGENTS];
static size_t n_used_agents;

/* Their settings and logins, as new as this machine's, before the session begins; one that runs has them already. */
static bool bring_agents(const struct ask *a)
{
    char names[PROJECT_AGENTS][PROJECT_AGENT];
    const struct pinfold_option where[] = {{"workspace", checkout}, {NULL, NULL}};
    const size_t n = project_agents(checkout, names);
    for (size_t i = 0; i < n; i++) {
        struct pinfold_error error = {0};
        const struct agent_begin ask = {.name = names[i], .options = where, .session = true};
        if (entry_agent_begin(&ask, &used_agents[n_used_agents], &error) < 0) {
            complain("%s: %s; to start without it: pinfold agent-logout %s", verb_said, error.text, names[i]);
            return false;
        }
        if (used_agents[n_used_agents].notes && !a->quiet)
            complain_lines(used_agents[n_used_agents].notes);
        n_used_agents++;
    }
    return true;
}

static bool used_agents_begun(void)
{
    for (size_t i = 0; i < n_used_agents; i++) {
        if (used_agents[i].session)
            return true;
    }
    return false;
}

static void keep_agents(int pid)
{
    for (size_t i = 0; i < n_used_agents; i++) {
        struct pinfold_error error = {0};
        if (pid > 0 && entry_agent_keep(&used_agents[i], pid, &error) < 0)
            complain("%s: %s", verb_said, error.text);
        entry_agent_end(&used_agents[i]);
    }
    n_used_agents = 0;
}

/* The remote `host` is served as long as the session lives. Where it cannot be, the box does without, said. */
static void serve_remote(const struct ask *a, struct pinfold_policy *policy, const struct pinfold_session *session)
{
    char why[PATH_MAX + 512] = "";
    struct shelf shelf;
    struct session_seen seen;
    const bool shares = used_box.shares && shelf_of(checkout, &shelf, why, sizeof why) == 0;
    if (shares && !used_agents_begun() && host_remote_is_served(&shelf, used_box.word))
        return;
    const struct pinfold_policy_options asked = {.size = sizeof asked, .options = used_box.options};
    entry_session_seen(session, &seen);
    keep_agents(seen.pid);
    if (seen.no_mounts && !a->quiet)
        complain("note: without mounts (lost: remap) the history of this box's shells is kept only until it ends, and "
                 "it has no " PROJECT_MARKER "%s; pinfold doctor says what would give it mounts",
                 shares ? " and no remote 'host'" : "");
    if (!seen.no_mounts && shares && seen.pid > 0 && !host_remote_is_served(&shelf, used_box.word) &&
        host_remote_serve(&shelf, checkout, used_box.word, &asked, a->n_policy == used_box.n_options ? policy : NULL,
                          seen.pid, why, sizeof why) < 0)
        complain("%s", why);
}

/* What is only explained is not made, so there must be something to explain. */
static bool is_prepared(const char *branch)
{
    char why[PATH_MAX + 64], word[PROJECT_WORD], name[BRANCH_NAME_MAX + 1];
    const char *reason = branch_refused(branch);
    struct shelf shelf;
    if (reason) {
        complain("%s: '%.80s' cannot be a branch's name: %s", verb_said, branch, reason);
        return false;
    }
    branch_word(branch, word);
    if (shelf_of(checkout, &shelf, why, sizeof why) == 0 && branch_read(&shelf, word, name) == BRANCH_READY)
        return true;
    complain("%s: branch '%s' has no box here, and --explain makes none; make its worktree with: pinfold checkout '%s'",
             verb_said, branch, branch);
    return false;
}

/* Prepares the branch, if one was said, and the box. */
static bool prepare(const struct ask *a, const char *real)
{
    char why[PATH_MAX + 1024] = "";
    snprintf(checkout, sizeof checkout, "%s", real);
    const struct pinfold_policy_options said = ask_options(a);
    const struct branch_ask asked = {.real = checkout,
                                     .branch = a->branch,
                                     .said = &said,
                                     .say = a->quiet ? NULL : complain_line,
                                     .why = why,
                                     .room = sizeof why};
    const bool make = !a->explain;
    if (a->branch && !make && !is_prepared(a->branch))
        return false;
    if ((a->branch && make && branch_provision(&asked) < 0) ||
        project_box(checkout, a->branch, make, &used_box, why, sizeof why) < 0) {
        if (a->branch && strstr(why, " remap: ")) /* no option of these verbs lets it go */
            complain("%s: a branch's box shows its worktree at another path, which needs a mount, and nothing can be "
                     "mounted here (pinfold doctor says what would allow it); without --branch the box works in the "
                     "checkout",
                     verb_said);
        else
            complain("%s: %s", verb_said, why);
        return false;
    }
    return true;
}

bool project_session_of(struct ask *a, const char *real)
{
    if ((a->image.build && image_of_project(a, real) != STATUS_YES) || !prepare(a, real) || !bring_agents(a))
        return false;
    if (used_box.ports[0] && !a->quiet)
        complain("note: " PROJECT_SEED
                 "/config.json names ports; a project cannot open them itself, a policy of yours can: run "
                 "with%s",
                 used_box.ports);
    for (size_t i = 0; i < used_box.n_options; i++)
        a->policy[a->n_policy++] = used_box.options[i];
    a->session = used_box.session;
    a->session_dir = used_box.cwd[0] ? used_box.cwd : NULL;
    a->ensured = serve_remote;
    return true;
}

bool project_branch_run(struct ask *a)
{
    char real[PATH_MAX], why[PATH_MAX + 512] = "";
    struct shelf shelf;
    if (a->cow || a->cow_from) {
        complain("--branch and --cow exclude each other: a branch's box changes its own worktree, which is not the "
                 "workspace");
        return false;
    }
    if (!realpath(".", real)) {
        complain("%s: %s", a->agent, strerror(errno));
        return false;
    }
    if (!prepare(a, real))
        return false;
    for (size_t i = 0; i < used_box.n_own; i++) {       /* this agent has its own, and needs no other's */
        if (!same(used_box.options[i].name, "storage")) /* of sessions */
            a->policy[a->n_policy++] = used_box.options[i];
    }
    a->dir = used_box.cwd;
    /* As long as this process lives; a session of the branch serves it, too. */
    int r = 0;
    a->policy[a->n_policy] = (struct pinfold_option){0};
    const struct pinfold_policy_options asked = ask_options(a);
    if (!a->explain && shelf_of(checkout, &shelf, why, sizeof why) == 0)
        r = host_remote_serve(&shelf, checkout, used_box.word, &asked, NULL, (int)getpid(), why, sizeof why);
    if (r < 0)
        complain("%s: %s", a->agent, why);
    return r != -EBUSY; /* a push would be judged by other rules than this box's */
}

/*
 * What a shell of a person's needs besides: its history, and a prompt with the box, the branch and whether there is a network. Where the
 * person's own files set a prompt, bash puts ours before it. What bash runs before its first prompt sets up the rest, after those files.
 */
static void shell_variables(struct ask *a)
{
    static char own[PROJECT_NAME + 320], prompt[PROJECT_NAME + 320];
    snprintf(own, sizeof own,
             "PINFOLD_PROMPT=(pinfold %.200s${PINFOLD_BRANCH-$(git symbolic-ref -q --short HEAD 2>&- | sed 's/^/ /')}"
             "${HTTPS_PROXY:+ net}) ",
             a->session + sizeof PROJECT_PREFIX - 1);
    snprintf(prompt, sizeof prompt, "PS1=%s%s ", strchr(own, '=') + 1, geteuid() == 0 ? "#" : "$");
    const char *shell = callers_shell();
    static char of_shell[PATH_MAX + 8];
    snprintf(of_shell, sizeof of_shell, "SHELL=%s", shell ? shell : "");
    if (shell) /* the session may have been started from another */
        a->env[a->n_env++] = of_shell;
    if (shell && str_ends(str_of(shell), STR("/zsh"))) /* which expands nothing in a prompt unless it is told to */
        snprintf(prompt, sizeof prompt, "PS1=(pinfold %.200s) %%# ", a->session + sizeof PROJECT_PREFIX - 1);
    a->env[a->n_env++] = own;
    a->env[a->n_env++] = prompt;
    a->env[a->n_env++] = "HISTFILE=" PROJECT_HISTORY "/history";
    /* Once: what is the person's own stays. */
    a->env[a->n_env++] =
        "PINFOLD_SETUP=unset PINFOLD_SETUP; [ ! -p /dev/fd/9 ] || { eval \"$(cat <&9)\"; exec 9<&-; }; [ "
        "-d " PROJECT_HISTORY " ] || { HISTFILE=${TMPDIR:-/tmp}/.history; history -r 2>&-; }; "
        /* what was imported (pinfold volume import), where there is no history yet */
        "[ ! -f " REMOTE_IN_BOX "/history ] || [ -s \"$HISTFILE\" ] || { cp " REMOTE_IN_BOX
        "/history \"$HISTFILE.$$\" && mv \"$HISTFILE.$$\" \"$HISTFILE\" && history -r; } 2>&-; "
        "[ ! -x " REMOTE_IN_BOX "/bin/git ] || PATH=" REMOTE_IN_BOX
        "/bin:$PATH; shopt -s histappend; HISTSIZE=20000 HISTFILESIZE=50000; "
        "for f in 'ls=ls --color=auto' 'grep=grep --color=auto' 'freeclaude=claude --dangerously-skip-permissions'; "
        "do [ \"${BASH_ALIASES[${f%%=*}]+x}\" ] || alias \"$f\"; done; " /* a redirection is a call that the guard judges */
        "case $TERM in *color*|xterm*|screen*|tmux*|rxvt*|linux) f=$PINFOLD_PROMPT; "
        "PINFOLD_PROMPT='\\[\\e[1;33m\\]'$f'\\[\\e[0m\\]'; "
        "case $PS1 in \"$f\"*) PS1=$PINFOLD_PROMPT${PS1#\"$f\"};; esac;; esac; unset f";
    /* The branch, as git has it in HEAD. bash reads that without a process; git and sed took half of the time until the first prompt. */
    a->env[a->n_env++] =
        "PINFOLD_BRANCH_COMMAND=PINFOLD_BRANCH= PINFOLD_AT=${GIT_DIR-}; "
        "[ \"$PINFOLD_AT\" ] || { PINFOLD_AT=$PWD; "
        "while [ \"$PINFOLD_AT\" ] && [ ! -e \"$PINFOLD_AT/.git\" ]; do PINFOLD_AT=${PINFOLD_AT%/*}; done; "
        "PINFOLD_AT=$PINFOLD_AT/.git; }; "
        "[ ! -f \"$PINFOLD_AT\" ] || { IFS= read -r PINFOLD_BRANCH <\"$PINFOLD_AT\" || :; "
        "PINFOLD_BRANCH=${PINFOLD_BRANCH#gitdir: }; "
        "case $PINFOLD_BRANCH in /*) PINFOLD_AT=$PINFOLD_BRANCH;; *) PINFOLD_AT=${PINFOLD_AT%/.git}/$PINFOLD_BRANCH;; "
        "esac; "
        "PINFOLD_BRANCH=; }; "
        "[ ! -f \"$PINFOLD_AT/HEAD\" ] || IFS= read -r PINFOLD_BRANCH <\"$PINFOLD_AT/HEAD\" || :; "
        "case $PINFOLD_BRANCH in *[[:cntrl:]]*) PINFOLD_BRANCH=;; "
        "'ref: refs/heads/'?*) PINFOLD_BRANCH=\" ${PINFOLD_BRANCH#ref: refs/heads/}\";; *) PINFOLD_BRANCH=;; esac; "
        "unset PINFOLD_AT";
    /* `history -a`: what was typed is there after a kill, too. */
    a->env[a->n_env++] =
        "PROMPT_COMMAND=eval \"${PINFOLD_SETUP-}\"; history -a || :; eval \"$PINFOLD_BRANCH_COMMAND\"; "
        "case $PS1 in *pinfold*) ;; *) PS1=$PINFOLD_PROMPT$PS1;; esac";
}

int project_shell(struct ask *a)
{
    char real[PATH_MAX];
    const char *path = a->n_words ? a->words[0] : ".";
    bool other = a->n_policy || a->session || a->cow || a->cow_from || a->cow_then || a->no_layers || a->text ||
                 a->settings_format || a->json || a->control || a->result || a->scope || a->dir || getenv("PINFOLD");
    if ((a->image.build || a->image.base_tag) &&
        (other || !realpath(path, real) || (!a->branch && !project_is(real)))) {
        complain("shell: --build is for the session of a project, and takes --branch and --base-tag beside it; see: "
                 "pinfold init");
        return -1;
    }
    if (a->branch && other) {
        complain(
            "shell: --branch opens a shell in the session of the branch, whose policy is the project's: it takes no "
            "other option%s",
            getenv("PINFOLD") ? ", and no box can start it" : "");
        return -1;
    }
    if (a->branch && !realpath(path, real)) {
        complain("shell: cannot use '%s': %s", path, strerror(errno));
        return -1;
    }
    if (other || !realpath(path, real) || (!a->branch && !project_is(real)))
        return 0;
    if (!project_session_of(a, real))
        return -1;
    shell_variables(a);
    return 1;
}
