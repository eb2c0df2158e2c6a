/*
 * Prints help for all subcommands and for one of them, from the option tables. The completions of shells and the
 * manual's list of options are compared with the same tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

/* The flags of a first day; the rest is in --help=all and the manual. */
static const char *const daily[] = {"workspace", "rw",   "ro",      "hide", "net",     "allow", "memory",
                                    "cpus",      "pids", "timeout", "env",  "profile", NULL};

static bool is_daily(const char *name)
{
    for (const char *const *d = daily; *d; d++) {
        if (same(*d, name))
            return true;
    }
    return false;
}

#define HELP_COLUMN 28
#define HELP_WIDTH  79

/* `left` and then `text` in the right column, broken between words. */
static void two_columns(const char *left, const char *text)
{
    int column = printf("  %s", left);
    if (column > HELP_COLUMN - 1)
        column = (putchar('\n'), 0);
    for (bool first = true; *text; first = false) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > HELP_WIDTH)
            column = (putchar('\n'), 0);
        if (column < HELP_COLUMN)
            column += printf("%*s", HELP_COLUMN - column, "");
        else
            column += printf(" ");
        column += printf("%.*s", n, text);
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

static void option_line(const char *name, char letter, const char *value, const char *choices, const char *help)
{
    char left[64];
    const char *shown = choices && strlen(choices) < 24 ? choices : value;
    if (letter)
        snprintf(left, sizeof left, "-%c, --%s", letter, name);
    else
        snprintf(left, sizeof left, "--%s%s%s", name, shown ? " " : "", shown ? shown : "");
    two_columns(left, help);
}

/* Whether the lines of all verbs have this name already: as a key of the policy, or of another verb. */
static bool is_listed(const struct own_flag *f)
{
    const struct pinfold_option_info *o;
    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && same(o->name, f->name))
            return true;
    }
    for (const struct own_flag *before = own_flags; before < f; before++) {
        if (same(before->name, f->name))
            return true;
    }
    return false;
}

static void own_lines(enum verb_id verb, bool only)
{
    for (const struct own_flag *f = own_flags; f->name[0]; f++) {
        if ((only ? f->verbs == (unsigned)verb : f->verbs & (unsigned)verb) &&
            !(verb == (enum verb_id) ~0u ? is_listed(f) : verb_said && !verb_has(verb_said, f->name)))
            option_line(f->name, f->letter, same(f->name, "help") ? NULL : own_value(f), NULL, own_help(f));
    }
}

static void policy_lines(bool all)
{
    const struct pinfold_option_info *o;
    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && (all || is_daily(o->name)))
            option_line(o->name, 0, o->value, o->choices, o->help);
    }
}

static void verb_lines(void)
{
    char left[96];
    for (const struct verb *v = verbs; v->name[0]; v++) {
        snprintf(left, sizeof left, "%-10s %s", v->name, v->usage);
        printf("  %-42s %s\n", left, v->sentence);
    }
}

static void help_all(void)
{
    printf("pinfold %s: run a command in a box\n\n", pinfold_version());
    verb_lines();
    printf("\nOptions of run, shell, explain and policy, each also a key of the policy:\n");
    policy_lines(true);
    printf("\nOptions of the command line:\n");
    own_lines((enum verb_id) ~0u, false);
}

static void help_short(void)
{
    printf("pinfold runs a command in a box. The current directory is writable, the rest is\nread-only, credentials "
           "are hidden, there is no network, and limits apply.\n\n");
    verb_lines();
    printf("\nOften used: --rw PATH --ro PATH --hide PATH --net none|allow|host\n"
           "  --memory 512M --cpus 50%% --timeout 60s --profile NAME --json -q\n"
           "All options: pinfold --help=all. Example: pinfold run -- npm test\n"
           "Manual: man pinfold, pinfold-session, pinfold-project, pinfold-layer, pinfold-network, pinfold-mcp, "
           "pinfold-hook, pinfold-policy\n");
}

int help_print(enum verb_id id, const char *what)
{
    const struct verb *v = verbs;
    const struct verb *said = verb_said ? verb_find(verb_said) : NULL;
    while (v->name[0] && v->id != id)
        v++;
    v = said && said->id == id ? said : v; /* of several with this id */
    if (what[0] && !same(what, "all")) {
        complain("--help=%s: only --help and --help=all", what);
        return STATUS_USAGE;
    }
    if (id == VERB_HELP && what[0]) {
        help_all();
    } else if (id == VERB_HELP || !v->name[0]) {
        help_short();
    } else {
        if (v->parts)
            printf("pinfold %s: %s\n\n", v->name, v->sentence);
        else
            printf("pinfold %s%s%s: %s\n\n", v->name, v->usage[0] ? " " : "", v->usage, v->sentence);
        for (const char *const *part = v->parts; part && *part; part += 2) {
            char left[80];
            snprintf(left, sizeof left, "%s %s", v->name, part[0]);
            two_columns(left, part[1]);
        }
        if (v->parts)
            printf("\n");
        if (!what[0] && id & VERBS_WITH_POLICY)
            own_lines(id, true);
        if (id & VERBS_WITH_POLICY)
            policy_lines(what[0] != 0);
        if (what[0] || !(id & VERBS_WITH_POLICY))
            own_lines(id, false);
        else
            printf("All options: pinfold %s --help=all\n", v->name);
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

int verb_help(struct ask *a)
{
    if (a->n_words == 0)
        return help_print(VERB_HELP, "");
    if (a->n_words > 1) {
        complain("help: unexpected argument '%s' (pinfold help [COMMAND])", a->words[1]);
        return STATUS_USAGE;
    }
    const struct verb *v = verb_find(a->words[0]);
    if (!v) {
        complain("help: unknown command '%s'; see: pinfold --help", a->words[0]);
        return STATUS_USAGE;
    }
    verb_said = v->name;
    return help_print(v->id, "");
}

/* scdoc reads _ and * as emphasis. */
static void escaped(const char *text)
{
    for (; *text; text++) {
        if (strchr("_*\\", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void manual_entry(const char *name, char letter, const char *value, const char *choices, const char *key,
                         const char *help)
{
    if (letter)
        printf("*-%c*, ", letter);
    printf("*--%s*", name);
    if (value || choices) {
        printf(" ");
        escaped(choices ? choices : value);
    }
    printf("\n\t");
    escaped(help);
    if (key) {
        printf(" Policy: _");
        for (; *key; key++) {
            if (*key == '_')
                putchar('\\');
            putchar(*key);
        }
        printf("_.");
    }
    printf("\n\n");
}

int help_manual(void)
{
    const struct pinfold_option_info *o;

    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (!o->name)
            continue;
        manual_entry(o->name, 0, o->value, o->choices, o->key, o->help);
    }
    for (const struct own_flag *f = own_flags; f->name[0]; f++)
        manual_entry(f->name, f->letter, same(f->name, "help") ? NULL : own_value(f), NULL, NULL, own_help(f));
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}
