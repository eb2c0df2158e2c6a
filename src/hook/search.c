/*
 * What a search of the agent's own (ripgrep, on the host) would read in a directory: it goes through everything below, so that a
 * hidden file there is read without anybody having named it. What git ignores it leaves out, unless it was told which names to read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "hook/hook.h"
#include "match/glob.h"

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

/* A box may exchange the file for a link, or for a FIFO, on which nobody may wait. NULL if it is not a regular file. */
static FILE *open_plain(const char *path)
{
    struct stat st;
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    FILE *f = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "re") : NULL;
    if (f)
        fd = -1;
    return f;
}

static bool is_ascii(const char *text)
{
    while ((unsigned char)(*text - 1) < 0x7f)
        text++;
    return !*text;
}

/*
 * What a line of the .gitignore at the top says of a name there: 1: it is ignored; -1: it may not be, after all; 0: nothing. A box can
 * write the file, so a line that git and ripgrep could read in another way than this never counts as the first.
 */
static int said_by_line(char *line, const char *name)
{
    const bool back = line[0] == '!';
    char *at = line + back;
    size_t n = strcspn(at, "\n");
    if (line[0] == '#')
        return 0;
    n -= n && at[n - 1] == '\r';
    while (n && at[n - 1] == ' ')
        n--;
    n -= back && n && at[n - 1] == '/'; /* a directory of that name */
    at[n] = 0;
    at += at[0] == '/';
    bool plain = !strchr(at, '?') || is_ascii(name); /* a byte for git, a character for ripgrep */
    for (const char *c = at; *c; c++)
        plain = plain && *c > ' ' && *c < 0x7f && !strchr("\\[{", *c);
    if (!at[0] || (plain && strchr(at, '/') && strncmp(at, "**", 2) != 0)) /* of something below */
        return 0;
    const bool fits = plain && !strchr(at, '/') && glob_match(str_of(at), str_of(name), GLOB_EXACT);
    return back ? -(fits || !plain || strchr(at, '/')) : fits;
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
    size_t left = 1 << 20;
    bool ignored = false;
    if (strchr(name, '/') || !is_there(project, ".git", file, &st) || is_there(project, ".ignore", file, &st) ||
        is_there(project, ".rgignore", file, &st))
        return false;
    snprintf(file, sizeof file, "%s/.gitignore", project);
    FILE *f = open_plain(file);
    while (f && fgets(line, sizeof line, f)) {
        const size_t n = strlen(line);
        /* Longer than a name: where it ends is not known here. Or the file is, which a box may make longer all the time. */
        if ((!strchr(line, '\n') && !feof(f)) || n > left) {
            ignored = false;
            break;
        }
        left -= n;
        int said = said_by_line(line, name);
        ignored = said ? said > 0 : ignored;
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
