/*
 * Hooks: an agent runs on the host, and each command that it runs goes into the box of its project. See pinfold-hook(1).
 *
 *     settings.c     install, remove, status: changes of the agent's settings
 *     agent_shell.c  the program agent-shell, which the agent puts before each shell command: it runs the command in the box
 *     check.c        asked by the agent before it uses a tool: is agent-shell in force, may this file be read or written
 *     search.c       which hidden files a search of the agent's own would read
 *     place.c        which project this is, by what no box and no repository has a say in
 *
 * What the person allowed or denied is judged by the agent on the command as the model wrote it: agent-shell comes after that.
 * Everything here fails closed: a command that cannot have a box is not run.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "pinfold.h"

#define HOOK_SHELL "agent-shell"
#define HOOK_CHECK "--check"

enum { HOOK_BLOCKS = 2 }; /* Claude Code's hooks: the exit status with which a tool is not used */

/* The directory of the project in which the agent was started, by its real path; false with a sentence in `why`. */
bool hook_project(char ret[PATH_MAX], char *why, size_t room);
/* Whether the real path `path` is the directory `tree` or below it. */
bool hook_lies_in(const char *path, const char *tree);
/* Whether this process is in a box of pinfold's: then it holds the command, and another one is not needed. */
bool hook_in_box(void);
/* The policy of its box. NULL: *error. */
struct pinfold_policy *hook_policy(const char *project, struct pinfold_error *error);
/*
 * A hidden file, or a rule for such files, below the real path `path` of a directory; "" if there is none. `with_ignored`: also
 * what git ignores. False if the policy cannot be had, with a sentence.
 */
bool hook_hidden_below(const char *path, bool with_ignored, const char *project, char ret[PATH_MAX]);

/* settings.c. They print what they do; return an exit status (0, 1, or 2 for a mistake on the line). */
struct hook_ask {
    const char *agent;
    bool managed; /* the machine's settings, which no project overrides */
    bool dry_run;
};
int hook_install(const struct hook_ask *a);
int hook_remove(const struct hook_ask *a);
int hook_status(const struct hook_ask *a);

/* Answers one question of Claude Code's (PreToolUse) on standard input; returns the exit status. */
int hook_check(void);

/* The program. `closed` are the bits of standard descriptors that were closed when it started. */
int hook_shell_main(char **argv, unsigned closed);
/* Whether a program that was started as `name` is agent-shell: the last component counts. */
bool hook_shell_named(const char *name);
/* "agent-shell: <sentence>" on standard error, with control characters shown. */
void hook_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
