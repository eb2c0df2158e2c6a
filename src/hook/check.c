/*
 * What Claude Code asks before it uses a tool (PreToolUse; JSON on standard input, code.claude.com/docs/en/hooks). An answer is only
 * given to refuse, or to have the person asked: what it would have asked or denied by itself it still does.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "hook/hook.h"

enum { QUESTION_MAX = 32 << 20, LINKS_MAX = 40 };

enum hook_answer { NO_ANSWER, ASK_PERSON, REFUSE };

struct hook_verdict {
    enum hook_answer answer;
    char why[3 * PATH_MAX];
};

static int fail_closed(const char *why)
{
    hook_say("%s; the tool is not used", why);
    return HOOK_BLOCKS;
}

static int print_verdict(const struct hook_verdict *v)
{
    if (v->answer == NO_ANSWER)
        return 0;
    json_t *j =
        json_pack("{s:{s:s, s:s, s:s}}", "hookSpecificOutput", "hookEventName", "PreToolUse", "permissionDecision",
                  v->answer == REFUSE ? "deny" : "ask", "permissionDecisionReason", v->why);
    bool told = j && json_dumpf(j, stdout, JSON_COMPACT) == 0 && putchar('\n') == '\n' && fflush(stdout) == 0;
    json_decref(j);
    return told ? 0 : fail_closed("the answer cannot be written");
}

/* Whether the agent puts agent-shell before its commands: a project's settings can say otherwise. */
static void judge_shell(struct hook_verdict *v)
{
    const char *prefix = getenv("CLAUDE_CODE_SHELL_PREFIX");
    struct stat ours, theirs;
    if (prefix && hook_shell_named(prefix) && stat("/proc/self/exe", &ours) == 0 && stat(prefix, &theirs) == 0 &&
        ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
        return;
    v->answer = REFUSE;
    snprintf(
        v->why, sizeof v->why,
        "pinfold: commands would run outside of the box, because CLAUDE_CODE_SHELL_PREFIX is '%.200s' here and not "
        "agent-shell; see: pinfold hook status claude-code",
        prefix ? prefix : "not set");
}

static const char *text_at(const struct pinfold_value *v, const char *name)
{
    const struct pinfold_value *at = pinfold_value_get(v, name);
    const char *text = at ? pinfold_value_text(at, NULL) : NULL;
    return text ? text : "";
}

enum agents { NOT_THE_AGENTS, AGENTS_WORK, AGENTS_SETTINGS /* what it obeys when it starts next */ };

static enum agents is_agents(const char *path)
{
    static const char *const work[] = {"projects", "plans", "todos", "file-history", "tasks", NULL};
    const char *set = getenv("CLAUDE_CONFIG_DIR"), *home = getenv("HOME");
    char said[PATH_MAX], dir[PATH_MAX], json[PATH_MAX + 8];
    if (set && *set)
        snprintf(said, sizeof said, "%s", set);
    else
        snprintf(said, sizeof said, "%s/.claude", home ? home : "");
    if (!realpath(said, dir))
        snprintf(dir, sizeof dir, "%s", said);
    snprintf(json, sizeof json, "%s.json", dir);
    if (same(path, json))
        return AGENTS_SETTINGS;
    if (!hook_lies_in(path, dir))
        return NOT_THE_AGENTS;
    const char *rest = path + strlen(dir);
    for (size_t i = 0; work[i]; i++) {
        size_t n = strlen(work[i]);
        if (rest[0] == '/' && strncmp(rest + 1, work[i], n) == 0 && rest[1 + n] == '/')
            return AGENTS_WORK;
    }
    return AGENTS_SETTINGS;
}

static bool has_dots(const char *rest)
{
    const char *at = strstr(rest, "/..");
    return at && (at[3] == 0 || at[3] == '/');
}

/* `path` with the link that is its first `n` bytes read; false if it is none, or too long. */
static bool read_link(char path[PATH_MAX], size_t n)
{
    char link[PATH_MAX], to[PATH_MAX], next[2 * PATH_MAX + 2];
    snprintf(link, sizeof link, "%.*s", (int)n, path);
    ssize_t k = readlink(link, to, sizeof to - 1);
    if (k <= 0)
        return false;
    to[k] = 0;
    *strrchr(link, '/') = 0;
    int m = to[0] == '/' ? snprintf(next, sizeof next, "%s%s", to, path + n)
                         : snprintf(next, sizeof next, "%s/%s%s", link, to, path + n);
    if (m < 0 || m >= PATH_MAX)
        return false;
    memcpy(path, next, (size_t)m + 1);
    return true;
}

/* The real path, of which the last components need not exist, and links to nothing lead where they lead; false if there is none. */
static bool real_path(const char *path, char ret[PATH_MAX])
{
    static char whole[PATH_MAX], head[PATH_MAX], real[PATH_MAX];
    unsigned links = 0;
    if (path[0] != '/' || snprintf(whole, sizeof whole, "%s", path) >= (int)sizeof whole)
        return false;
    memcpy(head, whole, strlen(whole) + 1);
    for (;;) {
        const size_t n = strlen(head);
        if (n == 0 || realpath(head, real)) {
            const char *rest = whole + n, *first = n == 0 || same(real, "/") ? "" : real;
            return !has_dots(rest) && snprintf(ret, PATH_MAX, "%s%s", *first || *rest ? first : "/", rest) < PATH_MAX;
        }
        if (errno != ENOENT)
            return false;
        if (read_link(whole, n)) {
            if (++links > LINKS_MAX)
                return false;
            memcpy(head, whole, strlen(whole) + 1);
            continue;
        }
        *strrchr(head, '/') = 0;
    }
}

/* What the agent reads there is the host's, and no box has it: secrets of services, the variables of its own process. */
static bool is_machines(const char *path)
{
    return hook_lies_in(path, "/proc") || hook_lies_in(path, "/run");
}

/* One name, `path`, whose directory exists. */
static bool judge_name(const char *action, const char *path, const char *project, struct hook_verdict *v)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report = NULL;
    const bool writes = !same(action, "read"), outside = !hook_lies_in(path, project);
    struct pinfold_policy *policy = hook_policy(project, &error);
    int r = policy ? pinfold_why(policy, action, path, &report, &error) : -1;
    pinfold_policy_free(policy);
    if (r < 0) {
        hook_say("%s", error.text);
        return false;
    }
    const struct pinfold_value *root = pinfold_report_value(report);
    /* What is the box's own there, such as a cache, is the host's for a tool that runs on the host. */
    if (r == 0 && writes && outside && !*text_at(root, "host")) {
        v->answer = ASK_PERSON;
        snprintf(v->why, sizeof v->why,
                 "pinfold: '%.1000s' lies outside of the project; in the box it would be private", path);
    }
    /* 2: the guard would look at what is written, which nobody does here. */
    if (r == 2 ? writes : r == 1 && pinfold_value_is_true(pinfold_value_get(root, "sandbox"))) {
        v->answer = same(text_at(root, "cause"), "read-only") && outside ? ASK_PERSON : REFUSE;
        snprintf(v->why, sizeof v->why, "pinfold: %s '%.1000s': %s (%s)", action, path, text_at(root, "reason"),
                 text_at(root, "rule"));
    }
    if (v->answer == NO_ANSWER && !writes && outside && is_machines(path)) {
        v->answer = ASK_PERSON;
        snprintf(v->why, sizeof v->why, "pinfold: '%.1000s' is this machine's; the box has its own", path);
    }
    pinfold_report_free(report);
    return true;
}

/*
 * A file that is to be made, with the directories above it that are not there: each of their names is judged as if it stood in the
 * first directory that is, which holds for all names that are guarded at any depth. New repositories are not made this way.
 */
static bool judge_new(char *real, const char *project, struct hook_verdict *v)
{
    static char name[PATH_MAX];
    struct stat st;
    size_t there = 0;
    for (char *slash = real; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        const bool is_there = stat(real, &st) == 0;
        *slash = '/';
        if (!is_there)
            break;
        there = (size_t)(slash - real);
    }
    for (const char *at = real + there + 1; v->answer == NO_ANSWER && *at;) {
        const size_t n = strcspn(at, "/");
        snprintf(name, sizeof name, "%.*s/%.*s", (int)there, real, (int)n, at);
        if (at[n] && n == 4 && strncasecmp(at, ".git", n) == 0) {
            v->answer = REFUSE;
            snprintf(v->why, sizeof v->why, "pinfold: '%.1000s' would be in a new repository; create it with git",
                     real);
        } else if (!judge_name("create", name, project, v)) {
            return false;
        }
        at += n + (at[n] == '/');
    }
    return true;
}

static bool judge_path(const char *path, bool writes, const char *project, struct hook_verdict *v)
{
    static char real[PATH_MAX];
    struct stat st;
    if (!real_path(path, real)) {
        v->answer = REFUSE;
        snprintf(v->why, sizeof v->why, "pinfold: cannot judge the path '%.1000s'", path);
        return true;
    }
    const enum agents whose = is_agents(real);
    if (whose == AGENTS_WORK)
        return true; /* it asks nobody for these, and no box has them */
    if (writes && whose == AGENTS_SETTINGS) {
        v->answer = REFUSE;
        snprintf(v->why, sizeof v->why,
                 "pinfold: '%.1000s' belongs to the agent's own settings, which it obeys outside of the box; edit it "
                 "yourself",
                 path);
        return true;
    }
    return !writes                 ? judge_name("read", real, project, v)
           : lstat(real, &st) == 0 ? judge_name("write", real, project, v)
                                   : judge_new(real, project, v);
}

/* A path as the agent was given it. `home`: a leading `~` is the home, although such a name could be in the directory, too. */
static void whole_path(const char *said, const char *cwd, bool home, char ret[2 * PATH_MAX])
{
    const char *at = getenv("HOME");
    if (home && said[0] == '~' && (said[1] == '/' || !said[1]))
        snprintf(ret, 2 * PATH_MAX, "%s%s", at ? at : "", said + 1);
    else
        snprintf(ret, 2 * PATH_MAX, "%s%s%s", said[0] == '/' ? "" : cwd, said[0] == '/' ? "" : "/", said);
}

/* Grep reads everything below a directory. */
static bool judge_search(const char *said, const char *cwd, const json_t *input, const char *project,
                         struct hook_verdict *v)
{
    static char path[2 * PATH_MAX], real[PATH_MAX], hidden[PATH_MAX];
    struct stat st;
    whole_path(said, cwd, said[0] == '~', path);
    if (v->answer != NO_ANSWER || !real_path(path, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return true;
    if (!hook_hidden_below(real, json_object_get(input, "glob") != NULL, project, hidden))
        return false;
    if (hidden[0]) {
        v->answer = REFUSE;
        snprintf(v->why, sizeof v->why,
                 "pinfold: a search in '%.1000s' would read '%.1000s', which a rule hides; search in a directory "
                 "without it, or with a command (grep -r), which leaves it out",
                 real, hidden);
    }
    return true;
}

/* The agent leaves out the blanks at both ends of a path, of all alphabets: what stands there is no part of a name. */
static bool has_blank_ends(const char *path)
{
    static const char blanks[][12] = {"\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
                                      "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87",
                                      "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                      "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf"};
    const size_t n = strlen(path);
    if (n == 0 || (unsigned char)path[0] <= ' ' || (unsigned char)path[n - 1] <= ' ')
        return true;
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        const size_t k = strlen(blanks[i]);
        if (n >= k && (memcmp(path, blanks[i], k) == 0 || memcmp(path + n - k, blanks[i], k) == 0))
            return true;
    }
    return false;
}

static bool judge_said(const char *said, const char *cwd, bool writes, const char *project, struct hook_verdict *v)
{
    static char path[2 * PATH_MAX];
    if (has_blank_ends(said)) {
        v->answer = REFUSE;
        snprintf(v->why, sizeof v->why, "pinfold: cannot judge the path '%.1000s': it begins or ends with a blank",
                 said);
        return true;
    }
    whole_path(said, cwd, true, path);
    if (!judge_path(path, writes, project, v))
        return false;
    whole_path(said, cwd, false, path); /* both meanings of `~` */
    return v->answer != NO_ANSWER || said[0] != '~' || judge_path(path, writes, project, v);
}

/* A path of the question. `search`: the directory in which Grep looks. */
static bool judge_text(const char *tool, const char *said, const char *cwd, bool writes, const json_t *search,
                       struct hook_verdict *v)
{
    static char project[PATH_MAX], why[2 * PATH_MAX];
    if (!said || strlen(said) >= PATH_MAX || strlen(cwd) >= PATH_MAX) {
        hook_say("%s has no path to judge", tool);
        return false;
    }
    if (!hook_project(project, why, sizeof why)) {
        hook_say("%s", why);
        return false;
    }
    return chdir(project) == 0 && judge_said(said, cwd, writes, project, v) &&
           (!search || judge_search(said, cwd, search, project, v));
}

/* A tool that nobody here knows: one that runs a text would do that outside, and what has a path may read it. */
static bool judge_other(const char *tool, const char *cwd, const json_t *input, struct hook_verdict *v)
{
    static const char *const paths[] = {"file_path", "filePath", "notebook_path", "path", "local_path", NULL};
    if (json_object_get(input, "command") || json_object_get(input, "code")) {
        v->answer = REFUSE;
        snprintf(v->why, sizeof v->why, "pinfold: the tool %.100s would run outside of the box; use Bash", tool);
        return true;
    }
    for (size_t i = 0; v->answer == NO_ANSWER && paths[i]; i++) {
        const char *said = json_string_value(json_object_get(input, paths[i]));
        if (said && *said && !judge_text(tool, said, cwd, false, NULL, v))
            return false;
    }
    const json_t *files = json_object_get(input, "files"), *one;
    size_t k;
    json_array_foreach(files, k, one)
    {
        const char *said = json_string_value(one);
        if (v->answer == NO_ANSWER && said && *said && !judge_text(tool, said, cwd, false, NULL, v))
            return false;
    }
    return true;
}

static bool judge(const json_t *question, struct hook_verdict *v)
{
    static const struct {
        const char *tool, *path;
        bool writes;
    } tools[] = {{"Write", "file_path", true},     {"Edit", "file_path", true},
                 {"MultiEdit", "file_path", true}, {"NotebookEdit", "notebook_path", true},
                 {"Read", "file_path", false},     {"Grep", "path", false},
                 {"Glob", "path", false}};
    const char *tool = json_string_value(json_object_get(question, "tool_name"));
    const char *cwd = json_string_value(json_object_get(question, "cwd"));
    const json_t *input = json_object_get(question, "tool_input");
    if (!tool || !cwd || cwd[0] != '/' || !json_is_object(input)) {
        hook_say("the agent's question has an unknown form");
        return false;
    }
    if (same(tool, "Bash") || same(tool, "Monitor")) { /* both by the shell that the prefix replaces */
        judge_shell(v);
        return true;
    }
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        if (!same(tool, tools[i].tool))
            continue;
        const char *said = json_string_value(json_object_get(input, tools[i].path));
        if ((!said || !*said) && !tools[i].writes)
            said = cwd; /* Grep and Glob: the current directory */
        return judge_text(tool, said, cwd, tools[i].writes, same(tool, "Grep") ? input : NULL, v);
    }
    /* Servers' tools run where their servers do: in the box, or elsewhere than here. */
    return strncmp(tool, "mcp__", 5) == 0 || judge_other(tool, cwd, input, v);
}

int hook_check(void)
{
    static struct hook_verdict v;
    auto_buf struct buf text = BUF(QUESTION_MAX);
    static char part[65536];
    ssize_t n;
    if (hook_in_box())
        return 0; /* the agent is in the box, with all its tools */
    while ((n = read(0, part, sizeof part)) != 0) {
        if (n < 0 && errno != EINTR)
            return fail_closed(strerror(errno));
        if (n > 0)
            buf_put(&text, part, (size_t)n);
    }
    json_t *question = buf_ok(&text) && text.n ? json_loadb(text.p, text.n, 0, NULL) : NULL;
    if (!json_is_object(question)) {
        json_decref(question);
        return fail_closed("the agent's question is not JSON");
    }
    bool judged = judge(question, &v);
    json_decref(question);
    return judged ? print_verdict(&v) : fail_closed("it cannot be judged");
}
