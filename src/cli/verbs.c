/*
 * The verbs explain, doctor, policy, trust and log. Each is one question to the library, whose answer is printed or put into words
 * here; none starts a box for a command.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/cli.h"

void put_command(char *const *words, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    for (char *const *w = words; *w; w++) {
        bool quoted = !**w || (*w)[strspn(*w, plain)];
        buf_text(out, w == words ? quoted ? "'" : "" : quoted ? " '" : " ");
        for (const char *s = *w, *quote; *s; s = quote) {
            quote = s + strcspn(s, "'");
            auto_buf struct buf part = BUF((size_t)1 << 21);
            buf_put(&part, s, (size_t)(quote - s));
            utf8_safe(out, buf_view(&part));
            if (*quote) {
                buf_text(out, "'\\''");
                quote++;
            }
        }
        buf_text(out, quoted ? "'" : "");
    }
}

/* What was said behind the options is in no plan, for the plan is the same for every command. */
static int print_command(const struct ask *a, const char *title)
{
    auto_buf struct buf out = BUF((size_t)1 << 24);
    buf_text(&out, title);
    put_command(a->words, &out);
    buf_char(&out, '\n');
    return print(buf_cstr(&out));
}

static void print_more(enum pinfold_explain_format format)
{
    if (format == PINFOLD_EXPLAIN_BRIEF)
        (void)print(
            "\nFor every built-in name, the directories created first and the steps: pinfold explain --verbose\n");
}

static int print_plan(struct ask *a, enum pinfold_explain_format format)
{
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    char *text;
    int status;

    if (!ask_policy(a, &policy, &status))
        return status;
    int r = pinfold_explain(policy, format, a->show_values, &text, &error);
    /* What is refused, among the rest: what one would want to know of a policy that does not hold here. */
    char *refused = NULL;
    if (r < 0 && error.kind == PINFOLD_ERROR_CANNOT)
        (void)pinfold_explain_refused(policy, format, a->show_values, &refused, NULL);
    pinfold_policy_free(policy);
    if (refused) {
        (void)print_free(refused);
        print_more(format);
    }
    if (r < 0)
        return fail(&error);
    if (a->n_words && (format == PINFOLD_EXPLAIN_TEXT || format == PINFOLD_EXPLAIN_BRIEF))
        (void)print_command(a, "Command     ");
    status = print_free(text);
    print_more(format);
    if (status == STATUS_YES && a->n_words && format == PINFOLD_EXPLAIN_COMMAND)
        status = print_command(a, "# The command, which pinfold sends to the first program inside: ");
    return status;
}

int verb_explain(struct ask *a)
{
    return print_plan(a, a->json ? PINFOLD_EXPLAIN_JSON : a->verbose ? PINFOLD_EXPLAIN_TEXT : PINFOLD_EXPLAIN_BRIEF);
}

int show_engine(struct ask *a)
{
    return print_plan(a, PINFOLD_EXPLAIN_COMMAND);
}

int verb_doctor(struct ask *a)
{
    struct pinfold_error error = {0};
    char *text;

    if (a->n_words > 1) {
        complain("doctor: unexpected argument '%s'", a->words[1]);
        return STATUS_USAGE;
    }
    if (a->n_words == 1 && chdir(a->words[0]) < 0) {
        complain("doctor: %s: %s", a->words[0], strerror(errno));
        return STATUS_USAGE;
    }
    int r = pinfold_doctor(a->json ? PINFOLD_EXPLAIN_JSON : PINFOLD_EXPLAIN_TEXT, a->verify, &text, &error);
    if (r < 0)
        return fail(&error);
    int printed = print_free(text);
    return printed != STATUS_YES ? printed : r > 0 ? STATUS_NO : STATUS_YES;
}

/*
 * Where to stand while a file is judged: here, unless here could be no workspace at all (the root, or a directory that
 * holds the home directory), which is no fault of the file.
 */
static const char *standpoint(void)
{
    char here[PATH_MAX];
    const char *home = getenv("HOME");
    size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;
    bool holds_home = home && n && strncmp(home, here, n) == 0 && (home[n] == '/' || home[n] == 0);
    return holds_home || same(here, "/") ? "/usr" : NULL;
}

/* A line with names in it that may be a stranger's. */
static void print_shown(const char *text, const char *more)
{
    auto_buf struct buf line = BUF(6 * PATH_MAX);
    utf8_safe(&line, str_of(text));
    printf("%s%s\n", buf_cstr(&line), more);
}

/* One file for itself, without profile and layers around it. */
static int check_file(const struct ask *a, const char *file)
{
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    const char *files[] = {file, NULL};
    char real[PATH_MAX];
    struct pinfold_policy_options o = {.size = sizeof o,
                                       .no_layers = 1,
                                       .options = a->policy,
                                       .settings_format = a->settings_format,
                                       .cwd = standpoint()};

    if (o.cwd && realpath(file, real)) /* what is not there is said with the name as given */
        files[0] = file = real;
    if (a->settings_format)
        o.settings = file;
    else
        o.files = files;
    if (pinfold_policy_load(&o, &policy, &error) < 0)
        return fail(&error);
    pinfold_policy_free(policy);
    if (!a->quiet)
        print_shown(file, ": good");
    return STATUS_YES;
}

static int policy_check(struct ask *a)
{
    struct pinfold_policy *policy;
    int worst = STATUS_YES, status;

    if (a->n_words == 1) {
        if (!ask_policy(a, &policy, &status))
            return status;
        pinfold_policy_free(policy);
        if (!a->quiet)
            printf("the policy in force here is valid\n");
    }
    for (int i = 1; i < a->n_words; i++) {
        status = check_file(a, a->words[i]);
        if (status > worst)
            worst = status;
    }
    return fflush(stdout) == 0 ? worst : STATUS_NO;
}

static int policy_print_merged(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    char *text;
    int status;

    if (!ask_policy(a, &policy, &status))
        return status;
    int r = pinfold_policy_text(policy, a->origins, &text, &error);
    pinfold_policy_free(policy);
    return r < 0 ? fail(&error) : print_free(text);
}

/* The words of a command line as a list of texts, a line for each; malloc()ed. */
static char *list_of_words(char *const *words, int n)
{
    size_t room = 4;
    for (int i = 0; i < n; i++)
        room += 4 * strlen(words[i]) + 4;
    char *text = malloc(room), *at = text;
    if (!text)
        return NULL;
    *at++ = '[';
    for (int i = 0; i < n; i++) {
        at += sprintf(at, "%s\"", i ? ",\n" : "");
        for (const unsigned char *p = (const unsigned char *)words[i]; *p; p++) {
            if (*p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\')
                *at++ = (char)*p;
            else
                at += sprintf(at, "\\x%02X", *p);
        }
        *at++ = '"';
    }
    at[0] = ']';
    at[1] = 0;
    return text;
}

static char *policy_text(const struct pinfold_policy_options *o, int how, struct pinfold_error *error)
{
    struct pinfold_policy *policy;
    char *text = NULL;
    if (pinfold_policy_load(o, &policy, error) < 0)
        return NULL;
    (void)pinfold_policy_text(policy, how, &text, error);
    pinfold_policy_free(policy);
    return text;
}

static const char *after_comments(const char *text)
{
    while (text[0] == '#' && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    return text;
}

/*
 * What settings add to the default profile stands by itself only when, read as a file, it makes the policy that they make
 * with --settings. Where it does not, that whole policy is printed. Takes `text`.
 */
static int print_converted(struct pinfold_policy_options *o, char *text, bool origins)
{
    struct pinfold_error error = {0};
    const struct pinfold_policy_options again = {.size = sizeof again, .text = text};
    o->profile = NULL;
    char *whole = policy_text(o, 0, &error), *read = whole ? policy_text(&again, 0, &error) : NULL;
    if (whole && !(read && same(after_comments(whole), after_comments(read)))) {
        free(text);
        text = policy_text(o, PINFOLD_TEXT_CONVERTED | (origins ? PINFOLD_TEXT_ORIGINS : 0), &error);
    }
    bool good = whole && text;
    free(whole);
    free(read);
    if (good)
        return print_free(text);
    free(text);
    return fail(&error);
}

static int policy_convert(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    bool words = a->settings_format && same(a->settings_format, "bwrap");
    char *text;

    if (words ? a->n_words < 2 : a->n_words != 2) {
        complain("policy convert: missing argument: the file (pinfold policy convert --from srt|dive|mycode|daycare "
                 "FILE, or --from bwrap -- OPTIONS)");
        return STATUS_USAGE;
    }
    char *list = words ? list_of_words(a->words + 1, a->n_words - 1) : NULL;
    if (words && !list) {
        complain("policy convert: out of memory");
        return STATUS_NO;
    }
    struct pinfold_policy_options o = {.size = sizeof o,
                                       .profile = "",
                                       .no_layers = 1,
                                       .options = a->policy,
                                       .settings = words ? "bwrap" : a->words[1],
                                       .settings_text = list,
                                       .settings_format = a->settings_format};
    int loaded = pinfold_policy_load(&o, &policy, &error);
    free(list);
    if (loaded < 0)
        return fail(&error);
    int r = pinfold_policy_text(
        policy, (a->origins ? PINFOLD_TEXT_ORIGINS : 0) | (words ? 0 : PINFOLD_TEXT_CONVERTED | PINFOLD_TEXT_ADDED),
        &text, &error);
    pinfold_policy_free(policy);
    return r < 0 ? fail(&error) : words ? print_free(text) : print_converted(&o, text, a->origins);
}

static int policy_schema_print(struct ask *a)
{
    struct pinfold_error error = {0};
    char *text;
    (void)a;
    return pinfold_policy_schema(&text, &error) < 0 ? fail(&error) : print_free(text);
}

int verb_policy(struct ask *a)
{
    static const struct {
        const char *name;
        int (*run)(struct ask *a);
        int words; /* at most */
    } parts[] = {{"check", policy_check, 1 << 20},
                 {"print", policy_print_merged, 1},
                 {"schema", policy_schema_print, 1},
                 {"convert", policy_convert, 1 << 20}};

    for (size_t i = 0; a->n_words && i < sizeof parts / sizeof *parts; i++) {
        if (!same(a->words[0], parts[i].name))
            continue;
        if (a->n_words > parts[i].words) {
            complain("policy %s: unexpected argument '%s'", parts[i].name, a->words[parts[i].words]);
            return STATUS_USAGE;
        }
        return parts[i].run(a);
    }
    complain("policy: %s%s%s (pinfold policy check|print|schema|convert)",
             a->n_words ? "unknown command '" : "missing command", a->n_words ? a->words[0] : "",
             a->n_words ? "'" : "");
    return STATUS_USAGE;
}

int verb_trust(struct ask *a)
{
    struct pinfold_error error = {0};
    char *text;

    if (a->n_words != 1) {
        if (a->n_words)
            complain("trust: unexpected argument '%s' (pinfold trust [--remove] PATH)", a->words[1]);
        else
            complain("trust: missing argument: the project (pinfold trust [--remove] PATH)");
        return STATUS_USAGE;
    }
    if (pinfold_trust(a->words[0], a->remove, &text, &error) < 0)
        return fail(&error);
    if (!a->quiet)
        print_shown(text, "");
    free(text);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

int verb_log(struct ask *a)
{
    struct pinfold_error error = {0};
    if (!no_words(a))
        return STATUS_USAGE;
    (void)signal(SIGPIPE, SIG_DFL);
    const struct pinfold_log_options o = {.size = sizeof o,
                                          .fd = 1,
                                          .follow = a->follow,
                                          .session = a->session,
                                          .since = a->since,
                                          .verify = a->verify,
                                          .head = a->head,
                                          .head_was = a->head_was};
    int r = pinfold_log_select(&o, &error);
    const int status = r < 0 ? fail(&error) : r > 0 ? STATUS_NO : STATUS_YES;
    return r == -ENOENT && a->session ? STATUS_NO_SESSION : status;
}
