/*
 * The program agent-shell: `agent-shell TEXT`, where TEXT is what the agent would have given to its shell. It becomes one argument of
 * a shell in the project's session, so nothing is quoted again. What it leaves as its working directory is handed to the
 * agent, as far as it lies in the project.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/str.h"
#include "hook/hook.h"
#include "project/project.h"

#define SAVES_CWD " && pwd -P >| " /* how Claude Code ends the text (2.1) */

/* Variables of the agent's that its commands look at; the box has its own besides. None holds a secret. */
static size_t put_variables(struct arena *mem, const char *ret[16])
{
    static const char *const names[] = {"CLAUDECODE",
                                        "AI_AGENT",
                                        "CLAUDE_CODE_SESSION_ID",
                                        "CLAUDE_CODE_ENTRYPOINT",
                                        "CLAUDE_PROJECT_DIR",
                                        "CLAUDE_PLUGIN_ROOT",
                                        "COLUMNS",
                                        "LINES",
                                        "GIT_EDITOR",
                                        NULL};
    size_t n = 0;
    for (size_t i = 0; names[i]; i++) {
        const char *value = getenv(names[i]);
        const char *text = value && strlen(value) < 4096 ? arena_printf(mem, "%s=%s", names[i], value) : NULL;
        if (text)
            ret[n++] = text;
    }
    ret[n] = NULL;
    return n;
}

/* The file in which the agent looks for the command's working directory: /tmp/claude-1a2b-cwd, nothing else. */
static const char *file_for_cwd(const char *text)
{
    static const char begins[] = "/tmp/claude-", ends[] = "-cwd";
    const char *at = NULL;
    for (const char *next = strstr(text, SAVES_CWD); next; next = strstr(at, SAVES_CWD))
        at = next + sizeof SAVES_CWD - 1;
    if (!at || strncmp(at, begins, sizeof begins - 1) != 0)
        return NULL;
    const char *p = at + sizeof begins - 1;
    while (isalnum((unsigned char)*p))
        p++;
    return p > at + sizeof begins - 1 && same(p, ends) ? at : NULL;
}

/* The box's /tmp is its own: the file is written on the host, too, if it names a directory of the project. */
static void hand_cwd_over(struct pinfold_session *session, const char *file, const char *project)
{
    struct pinfold_error error = {0};
    char real[PATH_MAX];
    char *text = NULL;
    size_t n = 0;
    if (pinfold_file_read(session, file, 0, PATH_MAX, &text, &n, NULL, &error) < 0)
        return;
    if (n > 1 && text[n - 1] == '\n' && !memchr(text, 0, n)) {
        text[n - 1] = 0;
        if (text[0] == '/' && realpath(text, real) && same(real, text) && hook_lies_in(real, project)) {
            auto_fd int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
            if (fd >= 0 && (fd_write_all(fd, real, strlen(real)) < 0 || fd_write_all(fd, "\n", 1) < 0))
                (void)unlink(file);
        }
    }
    free(text);
    (void)pinfold_file_remove(session, file, 0, &error);
}

static void say_lines(const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        hook_say("%.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* zsh's own words are in the texts of who uses it. */
static const char *shell_like_callers(void)
{
    static const char *const shells[] = {"/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash"};
    char path[64], program[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getppid());
    ssize_t n = readlink(path, program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    if (same(program, "/usr/bin/zsh") || same(program, "/bin/zsh"))
        return "/bin/zsh";
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (access(shells[i], X_OK) == 0)
            return shells[i];
    }
    return "/bin/sh";
}

static int run_text(struct pinfold_session *session, const char *project, const char *cwd, const char *text,
                    unsigned closed)
{
    const char *const argv[] = {shell_like_callers(), "-c", text, NULL};
    const char *env[16], *file = file_for_cwd(text);
    struct pinfold_error error = {0};
    struct pinfold_result *result;
    struct arena *mem = arena_new(1u << 20); /* left to exit */
    if (!mem) {
        hook_say("out of memory");
        return HOOK_BLOCKS;
    }
    (void)put_variables(mem, env);
    const struct pinfold_exec_options o = {.size = sizeof o,
                                           .argv = argv,
                                           .env = env,
                                           .cwd = cwd,
                                           .foreground = 1,
                                           .use_fds = 1,
                                           .stdin_fd = closed & 1 ? -1 : 0,
                                           .stdout_fd = closed & 2 ? -1 : 1,
                                           .stderr_fd = closed & 4 ? -1 : 2};
    if (pinfold_exec(session, &o, &result, &error) < 0) {
        hook_say("%s", error.text);
        return HOOK_BLOCKS;
    }
    say_lines(pinfold_result_note(result));
    if (file)
        hand_cwd_over(session, file, project);
    int status = pinfold_result_status(result), again = pinfold_result_reraise(result);
    pinfold_result_free(result);
    if (again) {
        (void)signal(again, SIG_DFL);
        (void)raise(again);
    }
    return status;
}

static int in_the_box(const char *text, unsigned closed)
{
    static char project[PATH_MAX], cwd[PATH_MAX], why[2 * PATH_MAX];
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    char name[PROJECT_NAME];
    if (!hook_project(project, why, sizeof why)) {
        hook_say("%s", why);
        return HOOK_BLOCKS;
    }
    if (!getcwd(cwd, sizeof cwd) || chdir(project) < 0) {
        hook_say("cannot enter '%s': %s", project, strerror(errno));
        return HOOK_BLOCKS;
    }
    project_session(project, NULL, name);
    const struct pinfold_session_options so = {.size = sizeof so, .name = name};
    struct pinfold_policy *policy = hook_policy(project, &error);
    int r = policy ? pinfold_session_ensure(policy, &so, &session, &error) : -1;
    pinfold_policy_free(policy);
    if (r == -ESTALE && strstr(error.text, "--recreate")) { /* which is no option of an agent's shell */
        hook_say("not run: the policy of '%s', its engine or its image has changed since its session was started; end "
                 "the session on the host with: pinfold stop '%s'",
                 project, project);
        return HOOK_BLOCKS;
    }
    if (r < 0) {
        hook_say("not run: %s", error.text);
        return HOOK_BLOCKS;
    }
    int status = run_text(session, project, cwd, text, closed);
    pinfold_session_free(session);
    return status;
}

/* What is in a box already needs none: the agent itself was started in one (`pinfold claude`). */
static int run_here(const char *text)
{
    const char *const argv[] = {shell_like_callers(), "-c", text, NULL};
    execv(argv[0], (char *const *)(uintptr_t)argv);
    hook_say("cannot run %s: %s", argv[0], strerror(errno));
    return HOOK_BLOCKS;
}

/* The hook's own line comes through here, too, as every hook does, as one text. */
static bool asks_for_check(char **argv)
{
    static const char option[] = " " HOOK_CHECK;
    size_t n = strlen(argv[0]);
    if (same(argv[1], HOOK_CHECK) && !argv[2])
        return true;
    return !argv[2] && strncmp(argv[1], argv[0], n) == 0 && same(argv[1] + n, option);
}

int hook_shell_main(char **argv, unsigned closed)
{
    (void)prctl(PR_SET_NAME, "pinfold", 0, 0,
                0); /* by it a box's first process is known, which is a copy of this one */
    if (!argv[1] || (argv[2] && (!same(argv[1], "-c") || argv[3]))) {
        hook_say("it takes the text of one command; it is for agents, see pinfold-hook(1)");
        return HOOK_BLOCKS;
    }
    if (asks_for_check(argv))
        return hook_check();
    const char *text = argv[2] ? argv[2] : argv[1];
    return hook_in_box() ? run_here(text) : in_the_box(text, closed);
}
