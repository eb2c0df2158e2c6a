/*
 * Which project's box. The working directory of a command is what the last command left, so a box could choose it, and the
 * agent's variables are what a repository's settings say. So the agent itself is asked: the first ancestor of this process that
 * is no shell, and where it was started.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "hook/hook.h"
#include "project/project.h"

enum { ANCESTORS = 16 };

void hook_say(const char *format, ...)
{
    auto_buf struct buf line = BUF(5 * 4096);
    va_list args;
    va_start(args, format);
    utf8_line(&line, HOOK_SHELL ": ", format, args);
    va_end(args);
    (void)!write(2, line.p, line.n); /* one write: lines of several runs do not mix */
}

bool hook_shell_named(const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;
    return name && same(slash ? slash + 1 : name, HOOK_SHELL);
}

static bool link_of(pid_t pid, const char *what, char ret[PATH_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    ssize_t n = readlink(path, ret, PATH_MAX - 1);
    if (n <= 0)
        return false;
    ret[n] = 0;
    return true;
}

static bool is_shell(const char *program)
{
    static const char shells[][8] = {"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"};
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (same(slash ? slash + 1 : program, shells[i]))
            return true;
    }
    return false;
}

/* proc_pid_stat(5), field 4. */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

static bool started_in(char ret[PATH_MAX])
{
    char program[PATH_MAX];
    pid_t pid = getppid();
    for (unsigned i = 0; i < ANCESTORS && pid > 1; i++, pid = parent_of(pid)) {
        if (!link_of(pid, "exe", program))
            return false;
        if (!is_shell(program))
            return link_of(pid, "cwd", ret) && ret[0] == '/';
    }
    return false;
}

static bool has(const char *directory, const char *name)
{
    char path[PATH_MAX + 64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return lstat(path, &st) == 0;
}

bool hook_lies_in(const char *path, const char *tree)
{
    size_t n = strlen(tree);
    return n && strncmp(path, tree, n) == 0 && (!path[n] || path[n] == '/');
}

/* Whether `path` is the root, the home, or a directory around the home: then everything of the person's would be writable. */
static bool is_too_much(const char *path, const char *home)
{
    return !path[1] || hook_lies_in(home, path);
}

bool hook_project(char ret[PATH_MAX], char *why, size_t room)
{
    char here[PATH_MAX], home[PATH_MAX] = "/";
    const char *said = getenv("HOME");
    if (said && *said && !realpath(said, home))
        snprintf(home, sizeof home, "%s", said);
    if (!started_in(here)) {
        snprintf(why, room, "cannot see in which directory the agent was started; nothing is run");
        return false;
    }
    if (is_too_much(here, home)) {
        snprintf(why, room,
                 "the agent was started in '%s', all of which a box would be given; start it in a project's directory",
                 here);
        return false;
    }
    snprintf(ret, PATH_MAX, "%s", here);
    for (char up[PATH_MAX]; !project_is(ret) && !has(ret, ".git");) {
        snprintf(up, sizeof up, "%s", ret);
        char *slash = strrchr(up, '/');
        if (!slash || slash == up) {
            snprintf(ret, PATH_MAX, "%s", here); /* no repository: that directory alone */
            break;
        }
        *slash = 0;
        if (is_too_much(up, home)) {
            snprintf(ret, PATH_MAX, "%s", here);
            break;
        }
        snprintf(ret, PATH_MAX, "%s", up);
    }
    return true;
}

/* A variable alone proves nothing: a repository's settings can set it. */
bool hook_in_box(void)
{
    char text[4096], name[32] = "";
    FILE *f = fopen("/proc/1/comm", "re");
    size_t n = f ? fread(name, 1, sizeof name - 1, f) : 0;
    if (f)
        (void)fclose(f);
    name[n] = 0;
    f = fopen("/proc/self/status", "re");
    n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = 0;
    return getenv("PINFOLD") && (same(name, "pinfold\n") || same(name, "pinfold-init\n")) &&
           strstr(text, "\nNoNewPrivs:\t1\n") && strstr(text, "\nSeccomp:\t2\n");
}

struct pinfold_policy *hook_policy(const char *project, struct pinfold_error *error)
{
    static struct project_box box;
    struct pinfold_policy *policy = NULL;
    char why[PATH_MAX];
    if (project_box(project, NULL, true, &box, why, sizeof why) < 0) {
        *error = (struct pinfold_error){.kind = PINFOLD_ERROR_POLICY};
        snprintf(error->text, sizeof error->text, "%.1000s", why);
        return NULL;
    }
    const struct pinfold_policy_options o = {.size = sizeof o, .options = box.options};
    return pinfold_policy_load(&o, &policy, error) == 0 ? policy : NULL;
}
