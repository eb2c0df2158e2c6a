/*
 * Parses the command line: the subcommand, its own options and those of the policy. Prints errors of usage. The
 * options are rows of tables (cli/table.c, policy/text/keys.h by pinfold_option_at()); there is no parser of one
 * option.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "client/entry.h"
#include "project/project.h"
#include "user/dialogue.h"

enum { MAX_LISTS = 1 << 30 }; /* of arguments, of which exec takes less */

bool has_sequences(int fd)
{
    const char *terminal = getenv("TERM");
    return terminal && *terminal && !same(terminal, "dumb") && isatty(fd);
}

static bool behind_output;

void complain_behind_output(void)
{
    if (has_sequences(2)) /* otherwise nothing is written: a page of its own */
        behind_output = true;
}

void complain(const char *format, ...)
{
    auto_buf struct buf line = BUF(5 * 4096);
    va_list args;
    va_start(args, format);
    utf8_line(&line, "pinfold: ", format, args);
    va_end(args);
    if (behind_output)
        (void)!write(2, TERMINAL_CLEAN, sizeof TERMINAL_CLEAN - 1);
    (void)!write(2, line.p, line.n); /* one write: lines of several runs do not mix */
}

void complain_line(const char *line)
{
    complain("%s", line);
}

void complain_lines(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        complain("%.*s", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

int fail(const struct pinfold_error *error)
{
    complain("%s", error->text);
    if (error->kind == PINFOLD_ERROR_SYSTEM && err_is_full(-error->no)) /* nothing that was said is wrong */
        return STATUS_NO;
    return error->kind == PINFOLD_ERROR_CANNOT ? STATUS_CANNOT : STATUS_USAGE;
}

/* After a failure it writes no more: a part that is missing in the middle would not be seen, and once is enough to say it. */
int print(const char *text)
{
    static bool failed;
    size_t n = failed ? 0 : strlen(text);
    while (n) {
        ssize_t wrote = write(1, text, n);
        if (wrote < 0) {
            complain("cannot write to standard output: %s", strerror(errno));
            failed = true;
            break;
        }
        text += wrote;
        n -= (size_t)wrote;
    }
    return failed ? STATUS_NO : STATUS_YES;
}

int print_free(char *text)
{
    int r = print(text);
    free(text);
    return r;
}

int print_report(struct pinfold_report *report)
{
    int status = print(pinfold_report_json(report));
    return status == STATUS_YES ? print("\n") : status;
}

static const char *verb_name(enum verb_id id)
{
    const struct verb *said = verb_said ? verb_find(verb_said) : NULL;
    if (said && said->id == id)
        return verb_said; /* of several with this id the one on the command line */
    for (const struct verb *v = verbs; v->name[0]; v++) {
        if (v->id == id)
            return v->name;
    }
    return "";
}

bool no_words(const struct ask *a)
{
    if (a->n_words)
        complain("%s: unexpected argument '%s'", verb_name(a->verb), a->words[0]);
    return a->n_words == 0;
}

static bool is_flag_of(const struct own_flag *f, enum verb_id verb)
{
    return f->verbs & verb && verb_takes(verb_name(verb), f->name);
}

static const struct own_flag *find_own(enum verb_id verb, struct str name, char letter)
{
    for (const struct own_flag *f = own_flags; f->name[0]; f++) {
        if ((letter ? f->letter == letter : str_is(name, f->name)) && is_flag_of(f, verb))
            return f;
    }
    return NULL;
}

static const struct pinfold_option_info *find_policy(enum verb_id verb, struct str name)
{
    const struct pinfold_option_info *o;
    for (size_t i = 0; (verb & VERBS_WITH_POLICY) && (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && str_is(name, o->name))
            return o;
    }
    return NULL;
}

/* The subcommands that have the option, if `verb` has not: "apply, shell". */
static void put_verbs_with(struct str name, struct buf *out)
{
    for (const struct verb *v = verbs; v->name[0]; v++) {
        bool has = false;
        for (const struct own_flag *f = own_flags; f->name[0] && !has; f++)
            has = str_is(name, f->name) && (f->verbs & (unsigned)v->id) && verb_has(v->name, f->name);
        if (has)
            buf_printf(out, "%s%s", out->n ? ", " : "", v->name);
    }
}

/* How far a name is from an option: capitals do not count, nor do letters that are missing at the end. */
static unsigned away(struct str name, const char *option)
{
    char small[32];
    if (name.n >= sizeof small)
        return 99;
    for (size_t i = 0; i < name.n; i++)
        small[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 0x20 : name.p[i]);
    struct str written = {small, name.n};
    return name.n >= 4 && str_starts(str_of(option), written) ? 1 : str_distance(written, str_of(option));
}

static void unknown_flag(enum verb_id verb, struct str name)
{
    const char *instead = verb & VERBS_WITH_POLICY ? other_word(name, true) : NULL;
    const char *nearest = NULL;
    auto_buf struct buf others = BUF(2048);
    unsigned best = name.n < 6 ? 2 : name.n < 10 ? 3 : 4; /* farther away is no typing error */
    const struct pinfold_option_info *o;

    for (size_t i = 0; (verb & VERBS_WITH_POLICY) && (o = pinfold_option_at(i)) != NULL; i++) {
        unsigned d = o->name ? away(name, o->name) : 99;
        if (d < best) {
            best = d;
            nearest = o->name;
        }
    }
    for (const struct own_flag *f = own_flags; f->name[0]; f++) {
        unsigned d = is_flag_of(f, verb) ? away(name, f->name) : 99;
        if (d < best) {
            best = d;
            nearest = f->name;
        }
    }
    put_verbs_with(name, &others);
    if (instead)
        complain("'%s' has no option --%.*s: %s", verb_name(verb), (int)name.n, name.p, instead);
    else if (others.n && buf_ok(&others))
        complain("'%s' has no option --%.*s; it is an option of: pinfold %s", verb_name(verb), (int)name.n, name.p,
                 buf_cstr(&others));
    else if (nearest)
        complain("'%s' has no option --%.*s; did you mean --%s?", verb_name(verb), (int)name.n, name.p, nearest);
    else
        complain("'%s' has no option --%.*s; see: pinfold %s --help%s", verb_name(verb), (int)name.n, name.p,
                 verb_name(verb), verb & VERBS_WITH_POLICY ? "=all" : "");
}

static void unknown_letter(enum verb_id verb, struct str name)
{
    /* The habit of `docker exec -it`. */
    const bool terminal = verb == VERB_EXEC && (str_is(name, "it") || str_is(name, "ti") || str_is(name, "i"));
    const char *instead = terminal || (verb & VERBS_WITH_POLICY) ? other_word(name, false) : NULL;
    if (instead)
        complain("'%s' has no option -%.*s: %s", verb_name(verb), (int)name.n, name.p, instead);
    else
        complain("'%s' has no option -%.*s; see: pinfold %s --help", verb_name(verb), (int)name.n, name.p,
                 verb_name(verb));
}

/* Every user of the machine can read a command line (ps): what a variable is set to does not stay in it. */
static const char *taken_from_line(struct ask *a, char *value)
{
    char *equals = strchr(value, '=');
    char *copy = equals ? strdup(value) : NULL;
    if (!copy)
        return value;
    memset(equals + 1, '*', strlen(equals + 1));
    a->copies[a->n_copies++] = copy;
    return copy;
}

static void add_policy(struct ask *a, const char *name, const char *value)
{
    a->policy[a->n_policy++] = (struct pinfold_option){name, value};
}

/* Options with a value that is kept as it is. */
static const struct {
    char name[24];
    size_t at;
} own_texts[] = {{"from", offsetof(struct ask, settings_format)},
                 {"apply", offsetof(struct ask, number)},
                 {"patch", offsetof(struct ask, into)},
                 {"to", offsetof(struct ask, to)},
                 {"branch", offsetof(struct ask, branch)},
                 {"engine", offsetof(struct ask, image.engine)},
                 {"tag", offsetof(struct ask, image.tag)},
                 {"base-tag", offsetof(struct ask, image.base_tag)},
                 {"base-image", offsetof(struct ask, image.base_image)},
                 {"network", offsetof(struct ask, image.network)},
                 {"claude-code-version", offsetof(struct ask, image.versions[0])},
                 {"codex-version", offsetof(struct ask, image.versions[1])},
                 {"git-delta-version", offsetof(struct ask, image.versions[2])},
                 {"ast-grep-version", offsetof(struct ask, image.versions[3])},
                 {"tool", offsetof(struct ask, tool)},
                 {"conflicts", offsetof(struct ask, conflicts)},
                 {"passes", offsetof(struct ask, passes)},
                 {"answers", offsetof(struct ask, answers)},
                 {"cow", offsetof(struct ask, cow)},
                 {"cow-from", offsetof(struct ask, cow_from)},
                 {"cow-then", offsetof(struct ask, cow_then)},
                 {"policy-text", offsetof(struct ask, text)},
                 {"result", offsetof(struct ask, result)},
                 {"id", offsetof(struct ask, id)},
                 {"events", offsetof(struct ask, events)},
                 {"control-fd", offsetof(struct ask, control)},
                 {"http", offsetof(struct ask, http)},
                 {"http-token", offsetof(struct ask, http_token)},
                 {"http-origin", offsetof(struct ask, http_origin)},
                 {"sandbox-image", offsetof(struct ask, sandbox_image)},
                 {"session", offsetof(struct ask, session)},
                 {"since", offsetof(struct ask, since)},
                 {"older-than", offsetof(struct ask, older)},
                 {"head-was", offsetof(struct ask, head_was)},
                 {"scope", offsetof(struct ask, scope)},
                 {"cwd", offsetof(struct ask, dir)},
                 {"timeout", offsetof(struct ask, timeout)},
                 {"memory", offsetof(struct ask, memory)},
                 {"processes", offsetof(struct ask, processes)},
                 {"tty", offsetof(struct ask, terminal)},
                 {"shell", offsetof(struct ask, shell)},
                 {"mode", offsetof(struct ask, mode)},
                 {"signal", offsetof(struct ask, signal)}};

static void take_own(struct ask *a, const struct own_flag *f, const char *value)
{
    static const struct {
        char name[24];
        size_t at;
    } switches[] = {{"json", offsetof(struct ask, json)},
                    {"names", offsetof(struct ask, names)},
                    {"show-values", offsetof(struct ask, show_values)},
                    {"last", offsetof(struct ask, last)},
                    {"origins", offsetof(struct ask, origins)},
                    {"verify", offsetof(struct ask, verify)},
                    {"head", offsetof(struct ask, head)},
                    {"follow", offsetof(struct ask, follow)},
                    {"remove", offsetof(struct ask, remove)},
                    {"force", offsetof(struct ask, force)},
                    {"auth", offsetof(struct ask, auth)},
                    {"quiet", offsetof(struct ask, quiet)},
                    {"verbose", offsetof(struct ask, verbose)},
                    {"no-layers", offsetof(struct ask, no_layers)},
                    {"sandbox", offsetof(struct ask, sandbox)},
                    {"recreate", offsetof(struct ask, recreate)},
                    {"as-before", offsetof(struct ask, as_before)},
                    {"managed", offsetof(struct ask, managed)},
                    {"dry-run", offsetof(struct ask, dry_run)},
                    {"detach", offsetof(struct ask, detach)},
                    {"parents", offsetof(struct ask, parents)},
                    {"unattended", offsetof(struct ask, unattended)},
                    {"explain", offsetof(struct ask, explain)},
                    {"stat", offsetof(struct ask, stat)},
                    {"write", offsetof(struct ask, write)},
                    {"shrink", offsetof(struct ask, shrink)},
                    {"patch", offsetof(struct ask, patch)},
                    {"hunks", offsetof(struct ask, hunks)},
                    {"merge", offsetof(struct ask, merge)},
                    {"no-pager", offsetof(struct ask, no_pager)},
                    {"build", offsetof(struct ask, image.build)},
                    {"all", offsetof(struct ask, all)}};

    if (same(f->name, "policy") || same(f->name, "settings"))
        add_policy(a, f->name, value);
    if (same(f->name, "env"))
        a->env[a->n_env++] = value;
    if (same(f->name, "agent"))
        a->agents[a->n_agents++] = value;
    if (same(f->name, "base"))
        a->bases[a->n_bases++] = value;
    if (same(f->name, "build-arg"))
        a->image.build_args[a->image.n_build_args++] = value;
    if (same(f->name, "help"))
        a->help = value ? value : "";
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (same(f->name, switches[i].name))
            *(bool *)((char *)a + switches[i].at) = true;
    }
    for (size_t i = 0; i < sizeof own_texts / sizeof *own_texts; i++) {
        if (same(f->name, own_texts[i].name))
            *(const char **)(void *)((char *)a + own_texts[i].at) = value;
    }
}

/* A value that was forgotten: the word after the option would otherwise be taken for it. */
static bool is_value(const struct ask *a, const char *name, const char *form, const char *value, bool joined)
{
    struct str option = str_of(value && value[0] == '-' && value[1] == '-' ? value + 2 : "");
    const char *equals = memchr(option.p, '=', option.n);
    if (equals)
        option.n = (size_t)(equals - option.p);
    if (!value || (!joined && same(value, "--")))
        complain("--%s needs a value (%s)%s", name, form, value ? " before --" : "");
    else if (!*value)
        complain("--%s needs a value (%s); this one is empty", name, form);
    else if (!joined && option.n && (find_own(a->verb, option, 0) || find_policy(a->verb, option)))
        complain("--%s needs a value (%s), and '%s' is an option; if it is meant as the value: --%s=%s", name, form,
                 value, name, value);
    else
        return true;
    return false;
}

/* One word that begins with a dash; takes its value from `*next` when it stands apart. */
static bool take_flag(struct ask *a, char *word, char ***next)
{
    bool is_long = word[1] == '-';
    char *equals = is_long ? strchr(word, '=') : NULL;
    struct str name = is_long ? (struct str){word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2)}
                              : (struct str){word + 1, strlen(word + 1)};
    const struct own_flag *own = find_own(a->verb, name, is_long ? 0 : name.n == 1 ? name.p[0] : '?');
    const struct pinfold_option_info *info = own || !is_long ? NULL : find_policy(a->verb, name);
    char *in_line = equals ? equals + 1 : NULL;
    const char *value = in_line;

    if (!own && !info) {
        if (is_long)
            unknown_flag(a->verb, name);
        else
            unknown_letter(a->verb, name);
        return false;
    }
    bool help = own && same(own->name, "help");
    bool may = own && own->value[0] == '['; /* --cow, --cow=NAME */
    bool takes = own ? own->value[0] && !help && !may : info->takes_value;
    if (takes && !value) {
        value = in_line = **next;
        *next += value != NULL;
    }
    if (takes) {
        if (!is_value(a, own ? own->name : info->name, own ? own_value(own) : info->value, value, equals != NULL))
            return false;
    } else if (may) {
        value = value ? value : "";
        if (equals && !*value) {
            complain("--%s= needs a name after '='", own->name);
            return false;
        }
    } else if (!takes && value && !help && own) {
        complain("--%s takes no value", own->name);
        return false;
    }
    if (in_line && same(own ? own->name : info->name, "env"))
        value = taken_from_line(a, in_line);
    if (own)
        take_own(a, own, value);
    else
        add_policy(a, info->name, value);
    return true;
}

/* Options of pinfold come first; whatever is none is the agent's, with all that follows. */
static bool agents_word(const struct ask *a, const char *word)
{
    const char *equals = strchr(word, '=');
    struct str name = {word + 2, equals ? (size_t)(equals - word - 2) : strlen(word) - (word[1] ? 2 : 1)};
    if (word[1] != '-')
        return true;
    if (a->agent && entry_agent_owns(a->agent, word))
        return true;
    return !find_own(a->verb, name, 0) && !find_policy(a->verb, name);
}

/* Until the program ends. `exec` takes them from one arena, which needs no memory of the C library's. */
static void *list_of(struct arena *mem, size_t n, size_t size)
{
    return mem ? arena_zero(mem, n * size) : calloc(n, size);
}

static bool lists_begin(struct ask *a, size_t argc)
{
    struct arena *mem = NULL;
    if (a->verb == VERB_EXEC) {
        arenas_use_rooms();
        mem = arena_new_small(MAX_LISTS);
        if (!mem)
            return false;
    }
    a->words = list_of(mem, argc + 1, sizeof *a->words);
    a->env = list_of(mem, argc + 16, sizeof *a->env); /* and TERM, those of a project's shell, the end */
    a->agents = list_of(mem, argc + 1, sizeof *a->agents);
    a->bases = list_of(mem, argc + 2, sizeof *a->bases);
    a->copies = list_of(mem, argc + 1, sizeof *a->copies);
    a->image.build_args = list_of(mem, argc + 1, sizeof *a->image.build_args);
    /* And a workspace, an engine, an image, a prompt; a project's. */
    a->policy = list_of(mem, argc + 10 + PROJECT_OPTIONS, sizeof *a->policy);
    return a->words && a->env && a->agents && a->bases && a->copies && a->image.build_args && a->policy;
}

bool ask_parse(struct ask *a, int argc, char **argv)
{
    bool command = a->verb == VERB_RUN || a->verb == VERB_EXPLAIN || a->verb == VERB_SHOW_RUN || a->verb == VERB_LEARN;
    char **next = argv;

    if (!lists_begin(a, (size_t)argc)) {
        complain("out of memory");
        return false;
    }
    while (*next) {
        char *word = *next;
        if (same(word, "--")) {
            next++;
            break;
        }
        if (a->verb == VERB_START && a->agent && (word[0] != '-' || agents_word(a, word)))
            break;
        if (a->verb == VERB_START && !a->agent && word[0] != '-') {
            a->agent = *next++;
            continue;
        }
        if (word[0] == '-' && word[1]) {
            next++;
            if (!take_flag(a, word, &next))
                return false;
        } else if (command ||
                   (a->verb == VERB_EXEC &&
                    a->n_words ==
                        1)) { /* the first word that is no option ends the options: the rest is the command's */
            break;
        } else {
            a->words[a->n_words++] = *next++;
        }
    }
    while (*next)
        a->words[a->n_words++] = *next++;
    return true;
}

struct pinfold_policy_options ask_options(const struct ask *a)
{
    return (struct pinfold_policy_options){.size = sizeof(struct pinfold_policy_options),
                                           .options = a->policy,
                                           .settings_format = a->settings_format,
                                           .text = a->text,
                                           .no_layers = a->no_layers};
}

bool ask_policy(const struct ask *a, struct pinfold_policy **ret, int *ret_status)
{
    struct pinfold_error error = {0};
    const struct pinfold_policy_options o = ask_options(a);
    if (pinfold_policy_load(&o, ret, &error) == 0)
        return true;
    *ret_status = fail(&error);
    return false;
}
