/*
 * install, remove, status: the agent's settings get agent-shell and its check, and lose them again. Every change is printed before
 * it is made; a file that cannot be understood, or that somebody else's words stand in, is left as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "hook/hook.h"
#include "user/replace.h"

#define MANAGED "/etc/claude-code/managed-settings.json" /* code.claude.com/docs/en/settings: nothing overrides it */
#define PREFIX  "CLAUDE_CODE_SHELL_PREFIX"
#define MATCHER "*" /* every tool: which of them run something outside changes from version to version */

enum { SETTINGS_MAX = 4 << 20, STATUS_DONE = 0, STATUS_NOT = 1, STATUS_LINE = 2 };

struct hook_settings {
    char path[PATH_MAX];
    bool there;
    mode_t mode;
    json_t *json;
};

static int hook_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int hook_wrong(const char *format, ...)
{
    char text[3 * PATH_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "pinfold: hook: %s\n", text);
    return STATUS_LINE;
}

/* Where agent-shell lies: it is installed, or beside a program that was just built. */
static bool find_shell(char ret[PATH_MAX])
{
    char self[PATH_MAX], path[PATH_MAX + 64], dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, i ? "%s/" HOOK_SHELL : "%s/../libexec/pinfold/" HOOK_SHELL, self);
        if (access(path, X_OK) < 0)
            continue;
        *strrchr(path, '/') = 0;
        if (realpath(path, dir) && snprintf(ret, PATH_MAX, "%s/" HOOK_SHELL, dir) < PATH_MAX)
            return true;
    }
    return false;
}

/* Claude Code splits the prefix where a word begins with a dash; and the check's line goes through a shell. */
static bool is_plain(const char *path)
{
    return strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-") == strlen(path);
}

/* The file of this user's, or of the machine's. */
static bool name_file(const struct hook_ask *a, struct hook_settings *s)
{
    const char *set = getenv("CLAUDE_CONFIG_DIR"), *home = getenv("HOME");
    int n = a->managed    ? snprintf(s->path, sizeof s->path, "%s", MANAGED)
            : set && *set ? snprintf(s->path, sizeof s->path, "%s/settings.json", set)
                          : snprintf(s->path, sizeof s->path, "%s/.claude/settings.json", home ? home : "");
    return n > 0 && n < (int)sizeof s->path && s->path[0] == '/';
}

static int read_settings(const struct hook_ask *a, struct hook_settings *s)
{
    struct stat st;
    json_error_t why;
    *s = (struct hook_settings){.mode = a->managed ? 0644 : 0600};
    if (!name_file(a, s))
        return hook_wrong("neither HOME nor CLAUDE_CONFIG_DIR is an absolute path");
    if (lstat(s->path, &st) == 0 && S_ISLNK(st.st_mode))
        return hook_wrong("'%s' is a link; nothing is changed", s->path);
    auto_fd int fd = open(s->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        s->json = json_object();
        return s->json ? STATUS_DONE : hook_wrong("out of memory");
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return hook_wrong("cannot read '%s': %s", s->path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > SETTINGS_MAX)
        return hook_wrong("'%s' is not a settings file; nothing is changed", s->path);
    s->there = true;
    s->mode = st.st_mode & 07777;
    s->json = json_loadfd(fd, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(s->json)) {
        char place[256];
        snprintf(place, sizeof place, "%s (line %d)", s->json ? "it is not a JSON object" : why.text, why.line);
        json_decref(s->json);
        s->json = NULL;
        return hook_wrong("'%s' cannot be understood: %s; nothing is changed", s->path, place);
    }
    return STATUS_DONE;
}

/* Beside the file and renamed over it, so that the agent reads the old one or the new one. */
static int write_settings(const struct hook_settings *s)
{
    char next[PATH_MAX + 32], dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", s->path);
    *strrchr(dir, '/') = 0;
    if (json_object_size(s->json) == 0)
        return unlink(s->path) == 0 ? STATUS_DONE : hook_wrong("cannot remove '%s': %s", s->path, strerror(errno));
    if (mkdir(dir, s->mode == 0600 ? 0700 : 0755) < 0 && errno != EEXIST)
        return hook_wrong("cannot create '%s': %s", dir, strerror(errno));
    snprintf(next, sizeof next, "%s.pinfold-%d", s->path, (int)getpid());
    auto_buf struct buf text = BUF(2 * SETTINGS_MAX);
    char *said = json_dumps(s->json, JSON_INDENT(2));
    if (said) {
        buf_text(&text, said);
        buf_char(&text, '\n');
    }
    free(said);
    const int no = text.n && buf_ok(&text) ? file_replace(AT_FDCWD, s->path, next, buf_view(&text), s->mode) : -ENOMEM;
    return no < 0 ? hook_wrong("cannot write '%s': %s", s->path, strerror(-no)) : STATUS_DONE;
}

static bool is_ours(const char *command)
{
    static const char ends[] = "/" HOOK_SHELL " " HOOK_CHECK;
    return command && command[0] == '/' && str_ends(str_of(command), str_of(ends));
}

/* The prefix that is set, or NULL. */
static const char *prefix_of(const json_t *settings)
{
    return json_string_value(json_object_get(json_object_get(settings, "env"), PREFIX));
}

/* Whether we are asked about every tool. */
static bool asks_of_all(const json_t *settings)
{
    const json_t *list = json_object_get(json_object_get(settings, "hooks"), "PreToolUse"), *entry, *each;
    size_t i, k;
    json_array_foreach(list, i, entry)
    {
        const char *matcher = json_string_value(json_object_get(entry, "matcher"));
        json_array_foreach(json_object_get(entry, "hooks"), k, each)
        {
            if (matcher && same(matcher, MATCHER) && is_ours(json_string_value(json_object_get(each, "command"))))
                return true;
        }
    }
    return false;
}

/* Whether one of the entries asks us; with `remove` these are taken out. */
static bool find_check(json_t *settings, bool remove)
{
    json_t *hooks = json_object_get(settings, "hooks"), *list = json_object_get(hooks, "PreToolUse");
    bool found = false;
    for (size_t i = json_array_size(list); i-- > 0;) {
        json_t *each = json_object_get(json_array_get(list, i), "hooks");
        for (size_t k = json_array_size(each); k-- > 0;) {
            if (!is_ours(json_string_value(json_object_get(json_array_get(each, k), "command"))))
                continue;
            found = true;
            if (remove)
                (void)json_array_remove(each, k);
        }
        if (remove && found && json_is_array(each) && json_array_size(each) == 0)
            (void)json_array_remove(list, i);
    }
    if (remove && found && json_array_size(list) == 0)
        (void)json_object_del(hooks, "PreToolUse");
    if (remove && found && json_object_size(hooks) == 0)
        (void)json_object_del(settings, "hooks");
    return found;
}

static void take_prefix_out(json_t *settings)
{
    json_t *env = json_object_get(settings, "env");
    (void)json_object_del(env, PREFIX);
    if (json_object_size(env) == 0)
        (void)json_object_del(settings, "env");
}

/* The object under `key`, made if there is none; NULL if something else is there. */
static json_t *object_at(json_t *in, const char *key)
{
    json_t *at = json_object_get(in, key);
    if (!at && json_object_set_new(in, key, json_object()) == 0)
        at = json_object_get(in, key);
    return json_is_object(at) ? at : NULL;
}

static bool put_ours(json_t *settings, const char *shell)
{
    char check[PATH_MAX + 16];
    json_t *env = object_at(settings, "env"), *hooks = object_at(settings, "hooks"),
           *list = hooks ? json_object_get(hooks, "PreToolUse") : NULL;
    snprintf(check, sizeof check, "%s " HOOK_CHECK, shell);
    if (hooks && !list && json_object_set_new(hooks, "PreToolUse", json_array()) == 0)
        list = json_object_get(hooks, "PreToolUse");
    return env && json_is_array(list) && json_object_set_new(env, PREFIX, json_string(shell)) == 0 &&
           json_array_append_new(list, json_pack("{s:s, s:[{s:s, s:s}]}", "matcher", MATCHER, "hooks", "type",
                                                 "command", "command", check)) == 0;
}

static void show_change(char sign, const char *shell)
{
    printf("%c env." PREFIX " = %s\n%c hooks.PreToolUse: %s " HOOK_CHECK ", for every tool\n", sign, shell, sign,
           shell);
}

static bool is_known(const struct hook_ask *a, int *ret)
{
    if (same(a->agent, "claude-code") || same(a->agent, "claude"))
        return true;
    *ret = hook_wrong(
        "'%s' is not an agent whose commands a hook can put into a box; known: claude-code. Start another agent in a "
        "box: pinfold NAME, as 'pinfold agent list' has it, or pinfold run -- COMMAND",
        a->agent);
    return false;
}

int hook_install(const struct hook_ask *a)
{
    struct hook_settings s;
    char shell[PATH_MAX];
    int r = STATUS_LINE;
    if (!is_known(a, &r))
        return r;
    if (!find_shell(shell))
        return hook_wrong(
            "agent-shell is not installed beside this program; install pinfold first: scripts/install.sh");
    if (!is_plain(shell))
        return hook_wrong("'%s' has characters that Claude Code does not accept in a prefix; install pinfold elsewhere",
                          shell);
    if ((r = read_settings(a, &s)) != STATUS_DONE)
        return r;
    const char *before = prefix_of(s.json);
    if (before && !hook_shell_named(before)) {
        r = hook_wrong("'%s' has " PREFIX " of another tool (%s); remove that first", s.path, before);
    } else {
        bool again = before && same(before, shell) && asks_of_all(s.json);
        (void)find_check(s.json, true);
        printf("%s%s\n", s.path, again ? ": nothing to change" : "");
        if (!again)
            show_change('+', shell);
        if (!put_ours(s.json, shell))
            r = hook_wrong("env and hooks in '%s' are not what Claude Code has there; nothing is changed", s.path);
        else if (!again && !a->dry_run)
            r = write_settings(&s);
        if (r == STATUS_DONE && !again && !a->dry_run)
            puts("Claude Code's commands now run in the box of the project in which it is started. Its file tools do "
                 "not: "
                 "they are judged by the same policy. Restart it.");
    }
    json_decref(s.json);
    return fflush(stdout) == 0 ? r : STATUS_NOT;
}

int hook_remove(const struct hook_ask *a)
{
    struct hook_settings s;
    int r = STATUS_LINE;
    if (!is_known(a, &r) || (r = read_settings(a, &s)) != STATUS_DONE)
        return r;
    const char *before = prefix_of(s.json);
    const bool ours = before && hook_shell_named(before), check = find_check(s.json, false);
    if (!ours && !check) {
        printf("%s: nothing to remove\n", s.path);
    } else {
        printf("%s\n", s.path);
        if (ours)
            printf("- env." PREFIX " = %s\n", before);
        if (check)
            puts("- hooks.PreToolUse: agent-shell " HOOK_CHECK);
        if (ours)
            take_prefix_out(s.json);
        (void)find_check(s.json, true);
        r = a->dry_run ? STATUS_DONE : write_settings(&s);
    }
    json_decref(s.json);
    return fflush(stdout) == 0 ? r : STATUS_NOT;
}

/* What a project's own settings, which the agent reads after the person's, change of it. */
static bool say_project(const char *name, bool managed)
{
    json_error_t why;
    json_t *j = json_load_file(name, 0, &why);
    const char *prefix = prefix_of(j);
    bool off = json_is_true(json_object_get(j, "disableAllHooks")), bad = false;
    if (prefix && !hook_shell_named(prefix) && !managed)
        bad = printf("%s sets " PREFIX " to '%s': commands run outside of the box%s\n", name, prefix,
                     off ? ", and nothing refuses them" : "; the hook refuses them") > 0;
    else if (off && !managed)
        bad = printf("%s switches hooks off: files are not judged\n", name) > 0;
    json_decref(j);
    return bad;
}

int hook_status(const struct hook_ask *a)
{
    struct hook_settings s;
    struct hook_ask both[] = {{.agent = a->agent, .managed = true}, {.agent = a->agent}};
    char shell[PATH_MAX] = "";
    bool on = false, managed = false, bad = false;
    int r = STATUS_LINE;
    if (!is_known(a, &r))
        return r;
    (void)find_shell(shell);
    for (size_t i = 0; i < 2; i++) {
        if ((r = read_settings(&both[i], &s)) != STATUS_DONE)
            return r;
        const char *prefix = prefix_of(s.json);
        const bool ours = prefix && hook_shell_named(prefix) && find_check(s.json, false);
        if (ours)
            printf("%s: installed (%s)\n", s.path, prefix);
        if (ours && access(prefix, X_OK) < 0)
            bad = printf("%s is not there: every command fails; run: pinfold hook install claude-code\n", prefix) > 0;
        if (ours && !asks_of_all(s.json))
            bad = printf("%s asks about some tools alone; run: pinfold hook install claude-code%s\n", s.path,
                         both[i].managed ? " --managed" : "") > 0;
        managed |= ours && i == 0;
        on |= ours;
        json_decref(s.json);
    }
    if (!on)
        puts("not installed: Claude Code's commands run on this machine without a box; pinfold hook install "
             "claude-code");
    bad |= on && say_project(".claude/settings.json", managed);
    bad |= on && say_project(".claude/settings.local.json", managed);
    return fflush(stdout) == 0 && on && !bad ? STATUS_DONE : STATUS_NOT;
}
