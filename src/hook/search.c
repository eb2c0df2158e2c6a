/*
 * What a search of the agent's own (ripgrep, on the host) would read in a directory: it goes through everything below, so that a
 * hidden file there is read without anybody having named it. What git ignores it leaves out, unless it was told which names to read.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "hook/hook.h"

static const char *text_of(const struct pinfold_value *v, const char *name)
{
    const struct pinfold_value *at = pinfold_value_get(v, name);
    const char *text = at ? pinfold_value_text(at, NULL) : NULL;
    return text ? text : "";
}

static bool is_there(const char *directory, const char *name, char ret[PATH_MAX + 16], struct stat *st)
{
    snprintf(ret, PATH_MAX + 16, "%s/%s", directory, name);
    return lstat(ret, st) == 0;
}

/*
 * Whether the project's own .gitignore names a file at its top, by a line of one name; the last line that fits decides. In a
 * repository only, and without the files that ripgrep takes before it.
 */
static bool git_ignores(const char *project, const char *path)
{
    char file[PATH_MAX + 16], line[1024];
    const char *name = path + strlen(project) + 1;
    struct stat st;
    bool ignored = false;
    if (strchr(name, '/') || !is_there(project, ".git", file, &st) || is_there(project, ".ignore", file, &st) ||
        is_there(project, ".rgignore", file, &st))
        return false;
    FILE *f = is_there(project, ".gitignore", file, &st) && S_ISREG(st.st_mode) ? fopen(file, "re") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        char *at = line + (line[0] == '!');
        at[strcspn(at, " \t\r\n")] = 0;
        at += at[0] == '/';
        if (at[0] && fnmatch(at, name, FNM_PATHNAME) == 0)
            ignored = line[0] != '!';
    }
    if (f)
        (void)fclose(f);
    return ignored;
}

/* A rule for names at any depth that reaches into `path`: which files it hides there is not known beforehand. */
static bool rule_reaches(const struct pinfold_value *rule, const char *path, char ret[PATH_MAX])
{
    const char *below = text_of(rule, "below");
    if (!same(text_of(rule, "kind"), "hide-name") ||
        (*below && !hook_lies_in(path, below) && !hook_lies_in(below, path)))
        return false;
    snprintf(ret, PATH_MAX, "%s/**/%s", below, text_of(rule, "text"));
    return true;
}

bool hook_hidden_below(const char *path, bool with_ignored, const char *project, char ret[PATH_MAX])
{
    struct pinfold_error error = {0};
    struct pinfold_report *report = NULL;
    struct stat st;
    struct pinfold_policy *policy = hook_policy(project, &error);
    int r = policy ? pinfold_explain_report(policy, 0, &report, &error) : -1;
    pinfold_policy_free(policy);
    ret[0] = 0;
    if (r < 0) {
        hook_say("%s", error.text);
        return false;
    }
    const struct pinfold_value *root = pinfold_report_value(report), *files = pinfold_value_get(root, "files");
    for (const struct pinfold_value *v = files ? pinfold_value_first(files) : NULL; v && !ret[0];
         v = pinfold_value_next(v)) {
        const char *hidden = text_of(v, "path");
        if (same(text_of(v, "access"), "hidden") && (same(path, "/") || hook_lies_in(hidden, path)) &&
            lstat(hidden, &st) == 0 && access(hidden, R_OK) == 0 &&
            (with_ignored || !hook_lies_in(hidden, project) || !git_ignores(project, hidden)))
            snprintf(ret, PATH_MAX, "%s", hidden);
    }
    const struct pinfold_value *guard = pinfold_value_get(root, "guard"),
                               *rules = guard ? pinfold_value_get(guard, "rules") : NULL;
    for (const struct pinfold_value *v = rules ? pinfold_value_first(rules) : NULL; v && !ret[0];
         v = pinfold_value_next(v))
        (void)rule_reaches(v, path, ret);
    pinfold_report_free(report);
    return true;
}
