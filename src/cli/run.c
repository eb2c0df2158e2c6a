/*
 * `run` and `shell`. Exit status: the command's own; 124 timeout, 125 if pinfold failed before the command (also for a
 * wrong option or policy) or could not report, 126 and 127 as in a shell, 128+n signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "client/entry.h"
#include "project/project.h"
#include "user/dialogue.h"

enum { MOST_SCRIPT = 64 << 10 };

struct output_lines {
    bool around; /* the lines before and after */
    bool notes;
    bool dim;
    bool clears; /* before a line: what the command left of a terminal's sequence or colour would swallow it */
};

static void say_line(void *ctx, enum pinfold_say what, const char *sentence)
{
    const struct output_lines *l = ctx;
    if (what == PINFOLD_SAY_NOTE ? !l->notes : what != PINFOLD_SAY_WARNING && !l->around)
        return;
    if (l->clears && what != PINFOLD_SAY_HEADER) /* notes come before the command, too, so the first is not enough */
        (void)!write(2, TERMINAL_CLEAN, sizeof TERMINAL_CLEAN - 1);
    if (l->dim && what != PINFOLD_SAY_NOTE && what != PINFOLD_SAY_WARNING) {
        char line[4200];
        int n = snprintf(line, sizeof line, "\033[2mpinfold: %s\033[0m\n", sentence);
        (void)!write(2, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    } else {
        complain("%s", sentence);
    }
}

static struct output_lines choose_lines(const struct ask *a)
{
    struct output_lines l = {.notes = !a->quiet && !a->json, .clears = has_sequences(2)};
    if (a->quiet || a->json)
        return l;
    bool terminal = isatty(2);
    l.around = terminal || a->verbose;
    l.dim = has_colours(2);
    return l;
}

/* The descriptor of the control connection; the library says whether it is one. */
static bool take_control(const char *text, int *ret)
{
    char *end;
    if (!text)
        return true;
    long fd = strtol(text, &end, 10);
    if (*end || !*text || fd < 3 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0) {
        complain("--control-fd %s: not an open file descriptor (3 or higher)", text);
        return false;
    }
    *ret = (int)fd;
    return true;
}

int run_command(struct ask *a, const char *const *argv)
{
    struct output_lines lines = choose_lines(a);
    const struct pinfold_policy_options po = ask_options(a);
    struct pinfold_run_options o = {.size = sizeof o,
                                    .argv = argv,
                                    .cwd = a->dir,
                                    .capture = a->json,
                                    .say = say_line,
                                    .say_ctx = &lines,
                                    .cow = a->cow,
                                    .cow_from = a->cow_from,
                                    .foreground = 1,
                                    .use_fds = 1,
                                    .stdin_fd = a->closed_stdio & 1 ? -1 : 0,
                                    .stdout_fd = a->closed_stdio & 2 ? -1 : 1,
                                    .stderr_fd = a->closed_stdio & 4 ? -1 : 2,
                                    .id = a->id};
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    int result_fd = -1;

    if (!cow_said(a))
        return STATUS_SANDBOX;
    if (a->session)
        return run_in_session(a, argv);
    if (a->dir && a->dir[0] != '/') {
        complain("--cwd %s: write an absolute path, as the box sees it: /tmp", a->dir);
        return STATUS_SANDBOX;
    }
    if (a->json && a->closed_stdio & 2) {
        complain("--json writes to standard output, which is closed");
        return STATUS_SANDBOX;
    }
    char room[48];
    if (!take_control(a->control, &o.control_fd) || !open_result(a, &result_fd) || !open_events(a, room, &o.events))
        return STATUS_SANDBOX;
    if (pinfold_policy_load(&po, &policy, &error) < 0)
        return report_failure(a, result_fd, &error);
    int r = pinfold_run(policy, &o, &result, &error);
    complain_behind_output();
    pinfold_policy_free(policy);
    if (r < 0)
        return report_failure(a, result_fd, &error);
    int then = cow_then(a, result), status = report_result(a, result_fd, result);
    return then == STATUS_YES ? status : STATUS_SANDBOX;
}

/* Programs that live on rights of their files, which no box gives; what they say when those are missing does not name the box. */
static const struct helpless {
    char name[12];
    const char *why;
} helpless[] = {
#define USER                                                                                                           \
    "cannot become another user in a box: run the command without it, and install packages outside of the box or in "  \
    "an image (--image)"
#define RIGHTS "needs its file's rights (set-user-id), which a box does not give: do it outside of the box"
#define ICMP                                                                                                           \
    "needs packets (ICMP) that a box cannot send: ask the service itself, for instance curl -I https://HOST, with "    \
    "--allow HOST"
#define MOUNTS                                                                                                         \
    "cannot change what is mounted in a box: do it outside of the box, or give the box a directory with --mount "      \
    "DIR:PLACE"
    {"sudo", USER},     {"su", USER},         {"doas", USER},         {"pkexec", USER},        {"runuser", USER},
    {"apt", USER},      {"apt-get", USER},    {"dpkg", USER},         {"newgrp", RIGHTS},      {"sg", RIGHTS},
    {"passwd", RIGHTS}, {"chsh", RIGHTS},     {"chfn", RIGHTS},       {"crontab", RIGHTS},     {"at", RIGHTS},
    {"mount", MOUNTS},  {"umount", MOUNTS},   {"fusermount", MOUNTS}, {"fusermount3", MOUNTS}, {"ping", ICMP},
    {"ping6", ICMP},    {"traceroute", ICMP}, {"tracepath", ICMP},    {"mtr", ICMP},           {"yarn", NULL},
    {"yarnpkg", NULL},  {"bundle", NULL},     {"composer", NULL},     {"poetry", NULL},        {"mvn", NULL},
    {"gradle", NULL}, /* these only where said_their_files() finds one */
#undef USER
#undef RIGHTS
#undef ICMP
#undef MOUNTS
};

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const struct helpless *is_helpless(struct str name)
{
    for (size_t i = name.n; i > 0; i--) {
        if (name.p[i - 1] == '/') {
            name = (struct str){name.p + i, name.n - i};
            break;
        }
    }
    for (size_t i = 0; i < sizeof helpless / sizeof *helpless; i++) {
        if (str_is(name, helpless[i].name))
            return &helpless[i];
    }
    return NULL;
}

/* Before which the name of a command still comes. */
static bool goes_on(struct str word)
{
    static const char words[][8] = {"then", "do", "else", "if",   "while", "until",
                                    "!",    "{",  "time", "exec", "env",   "command"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_is(word, words[i]))
            return true;
    }
    return memchr(word.p, '=', word.n) != NULL;
}

/* The first of them that a shell's words run, as far as words alone tell. */
static const struct helpless *helpless_in(const char *text)
{
    bool begins = true;
    while (*text) {
        if (strchr(";&|(`\n", *text)) {
            begins = true;
            text++;
            continue;
        }
        if (*text == ' ' || *text == '\t') {
            text++;
            continue;
        }
        const char *from = text;
        while (*text && !strchr(";&|(` \t\n", *text)) {
            const char quote = *text++;
            if (quote != '\'' && quote != '"')
                continue;
            text += strcspn(text, quote == '"' ? "\"" : "'");
            text += *text != 0;
        }
        const struct str word = {from, (size_t)(text - from)};
        const struct helpless *found = begins ? is_helpless(word) : NULL;
        if (found)
            return found;
        begins = begins && goes_on(word);
    }
    return NULL;
}

/* In the script that npm and its like were to run: a child's failure looks like theirs. */
static const struct helpless *helpless_script(char *const *words, size_t n)
{
    static const char runners[][8] = {"npm", "pnpm", "yarn", "yarnpkg", "bun"};
    auto_buf struct buf script = BUF(MOST_SCRIPT);
    const char *name = NULL;
    bool runs = false, known = false;
    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++)
        runs |= same(last_name(words[0]), runners[i]);
    for (size_t i = 1; runs && i < n && !name; i++) {
        if (words[i][0] == '-' || (!known && (same(words[i], "run") || same(words[i], "run-script")))) {
            known |= words[i][0] != '-';
            continue;
        }
        name = same(words[i], "t") && !known ? "test" : words[i];
    }
    if (name)
        project_script_of(name, &script);
    return script.n ? helpless_in(buf_cstr(&script)) : NULL;
}

static const struct helpless *helpless_of(char *const *words, size_t n)
{
    static const char known[][6] = {"sh", "bash", "dash", "zsh", "ksh"};
    const struct helpless *found = n ? is_helpless(str_of(words[0])) : NULL;
    for (size_t i = 0; !found && n > 2 && i < sizeof known / sizeof *known; i++) {
        if (same(last_name(words[0]), known[i]) && words[1][0] == '-' && words[1][1] != '-' && strchr(words[1], 'c'))
            return helpless_in(words[2]);
    }
    return found || !n ? found : helpless_script(words, n);
}

/* Whether it names an image, which may have a command of its own. A policy that is wrong is complained of later. */
static bool has_image(const struct ask *a)
{
    const struct pinfold_policy_options o = ask_options(a);
    struct pinfold_policy *policy;
    struct pinfold_error ignored;
    char *text = NULL;
    if (pinfold_policy_load(&o, &policy, &ignored) < 0)
        return true;
    (void)pinfold_policy_text(policy, 0, &text, &ignored);
    pinfold_policy_free(policy);
    bool image = text && strstr(text, "\nimage: ");
    free(text);
    return image;
}

/* Settings that a box hides for the tokens in them, and that these programs read at each start. */
static const struct settings_file {
    char program[9], file[28];
    bool any; /* fetches with any of its commands */
} settings_files[] = {{"yarn", ".npmrc", false},
                      {"yarn", ".yarnrc.yml", false},
                      {"yarnpkg", ".npmrc", false},
                      {"yarnpkg", ".yarnrc.yml", false},
                      {"bundle", ".bundle/config", false},
                      {"composer", ".config/composer/auth.json", false},
                      {"composer", ".composer/auth.json", false},
                      {"poetry", ".config/pypoetry/auth.toml", false},
                      {"mvn", ".m2/settings.xml", true},
                      {"gradle", ".gradle/gradle.properties", true}};

static bool fetches(const struct ask *a)
{
    static const char words[][8] = {"install", "add", "ci", "update", "upgrade", "require", "lock", "sync", "publish"};
    bool found = a->n_words == 1;
    for (int i = 1; i < a->n_words; i++) {
        found |= strstr(a->words[i], " install") != NULL; /* sh -c 'cd web && composer install' */
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            found |= same(a->words[i], words[k]);
    }
    return found;
}

/* True if a line about it was printed. Where the file is denied and not absent, Yarn 1 ends. */
static bool tell_settings(const struct ask *a, const struct settings_file *s, struct pinfold_policy *policy,
                          const char *path)
{
    struct pinfold_report *report;
    struct pinfold_error ignored;
    const int r = pinfold_why(policy, "read", path, &report, &ignored);
    if (r < 0)
        return false;
    const char *no = pinfold_value_text(pinfold_value_get(pinfold_report_value(report), "errno"), NULL);
    const bool absent = r == 1 && no && same(no, "ENOENT");
    pinfold_report_free(report);
    if (r != 1 || (absent && !s->any && !fetches(a)))
        return false;
    if (!absent && strncmp(s->program, "yarn", 4) == 0)
        complain("%s: its version 1 ends if it cannot read ~/%s, which is hidden in the box: run 'yarn "
                 "--no-default-rc', which does not read it, or allow it with --ro ~/%s",
                 s->program, s->file, s->file);
    else
        complain("%s found no ~/%s: the box hides it, because it may hold tokens; if the command needs "
                 "this file, show it with --ro ~/%s",
                 s->program, s->file, s->file);
    return true;
}

static bool said_their_files(const struct ask *a, const char *name)
{
    const struct pinfold_policy_options o = ask_options(a);
    const char *home = getenv("HOME");
    struct pinfold_policy *policy;
    struct pinfold_error ignored;
    for (int i = 0; i < a->n_words; i++) {
        if (strstr(a->words[i], "--no-default-rc"))
            return false;
    }
    if (!home || pinfold_policy_load(&o, &policy, &ignored) < 0)
        return false;
    bool said = false;
    for (size_t i = 0; !said && i < sizeof settings_files / sizeof *settings_files; i++) {
        const struct settings_file *s = &settings_files[i];
        auto_buf struct buf path = BUF(8192);
        if (!same(s->program, name))
            continue;
        buf_printf(&path, "%s/%s", home, s->file);
        if (buf_ok(&path) && access(buf_cstr(&path), F_OK) == 0)
            said = tell_settings(a, s, policy, buf_cstr(&path));
    }
    pinfold_policy_free(policy);
    return said;
}

int verb_run(struct ask *a)
{
    if (a->n_words == 0 && !has_image(a)) {
        complain("run: missing argument: the command (pinfold run [OPTIONS] [--] COMMAND [ARG...])");
        return STATUS_SANDBOX;
    }
    arenas_reuse(); /* what a policy is read in is gone before what the plan is made in is needed */
    const char *name = a->n_words ? last_name(a->words[0]) : "";
    int status = run_command(a, (const char *const *)a->words);
    if (status <= 0 || (status >= 124 && status != 255) || a->quiet || a->json) /* 255: ping's own */
        return status;
    const struct helpless *found = helpless_of(a->words, a->n_words);
    if (entry_agent_known(name)) {
        complain("%s had neither its login nor its settings in this box; 'pinfold %s' gives it both", name, name);
        return status;
    }
    if (found && !found->why) /* with its settings it has come to the script */
        found = said_their_files(a, found->name) ? NULL : helpless_script(a->words, a->n_words);
    if (found && found->why)
        complain("%s %s", found->name, found->why);
    return status;
}

/* A word that is no directory, as `pinfold --memory 100M ls`: `run` was left out. */
static bool is_command_said(const struct ask *a)
{
    struct stat there;
    auto_buf struct buf line = BUF(2048);
    if (a->n_words == 0 || (a->n_words == 1 && (strchr(a->words[0], '/') || stat(a->words[0], &there) == 0)))
        return false;
    if (a->line)
        put_command(a->line, &line);
    complain("shell: %s '%s'; to run a command in a box: pinfold run %s",
             a->n_words > 1 ? "unexpected argument" : "there is no directory", a->words[a->n_words > 1],
             a->line && buf_ok(&line) ? buf_cstr(&line) : "-- COMMAND");
    return true;
}

/* Shells without a prompt of the person's own show that they are in a box. A prompt with the host name does anyway. */
static void add_prompt(struct ask *a)
{
    for (size_t i = 0; i < a->n_policy; i++) {
        if (same(a->policy[i].name, "env") && strncmp(a->policy[i].value, "PS1", 3) == 0)
            return;
    }
    a->policy[a->n_policy++] = (struct pinfold_option){"env", geteuid() == 0 ? "PS1=(pinfold) # " : "PS1=(pinfold) $ "};
}

/* fish writes to its directories in the home when it starts: it gets layers of its own over them. */
static void add_fish(struct ask *a, const char *shell)
{
    static const char *const places[] = {"~/.config/fish", "~/.local/share/fish"};
    const char *slash = strrchr(shell, '/');
    for (size_t i = 0; i < sizeof places / sizeof *places && slash && same(slash + 1, "fish"); i++)
        a->policy[a->n_policy++] = (struct pinfold_option){"cache", places[i]};
}

int verb_shell(struct ask *a)
{
    const char *shell = callers_shell();
    if (is_command_said(a))
        return STATUS_SANDBOX;
    int project = project_shell(a);
    if (project < 0)
        return STATUS_SANDBOX;
    if (project == 0 && a->n_words == 1)
        a->policy[a->n_policy++] = (struct pinfold_option){"workspace", a->words[0]};
    if (!shell)
        shell = "/bin/sh";
    if (!a->text && !a->session) {
        add_prompt(a);
        add_fish(a, shell);
    }
    const char *const argv[] = {shell, NULL}, *const *keyed =
                                                  project ? keys_for_shell(a, shell_checkout(), shell) : NULL;
    return run_command(a, keyed ? keyed : argv);
}
