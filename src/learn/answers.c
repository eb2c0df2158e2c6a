/* Answers given beforehand: lines "allow RULE" and "deny RULE", with patterns. A pattern never allows what needs care. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "learn/learn.h"
#include "match/glob.h"

static const char learn_keys[][20] = {"files.rw",  "files.ro",         "files.env_files",   "net.allow",
                                      "net.reach", "net.unix_sockets", "guard_names.allow", "allow_nested_userns"};

static bool is_key(struct str key)
{
    for (size_t i = 0; i < sizeof learn_keys / sizeof *learn_keys; i++) {
        if (str_is(key, learn_keys[i]))
            return true;
    }
    return false;
}

/* "KEY:VALUE" with one blank between, or a pattern without a colon; NULL: not a rule. */
static const char *rule_in(struct learn *l, struct str rest)
{
    struct str value = rest, key = str_trim(str_until(&value, ':'));
    bool pattern = memchr(key.p, '*', key.n) || memchr(key.p, '?', key.n) || memchr(key.p, '[', key.n);
    value = str_trim(value);
    if (key.n == rest.n)
        return pattern ? arena_str(l->mem, key) : NULL;
    if (!value.n || (!pattern && !is_key(key)))
        return NULL;
    return arena_printf(l->mem, "%.*s: %.*s", (int)key.n, key.p, (int)value.n, value.p);
}

int learn_answers(struct learn *l, const char *name, const char *text, struct pinfold_error *error)
{
    struct str rest = str_of(text);
    for (unsigned at = 1; rest.n; at++) {
        struct str line = str_trim(str_until(&rest, '\n')), words = line;
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        if (!line.n || line.p[0] == '#')
            continue;
        struct str verb = str_until(&words, ' ');
        words = str_trim(words);
        if (!str_is(verb, "allow") && !str_is(verb, "deny"))
            return learn_fail(error, EINVAL, "%s:%u: '%.*s' is neither allow nor deny (allow files.rw: ~/data)", name,
                              at, STR_SAID(verb));
        const char *rule = rule_in(l, words);
        if (!rule && !arena_failed(l->mem))
            return learn_fail(
                error, EINVAL,
                "%s:%u: '%.*s' is not a rule; write KEY: VALUE with files.rw, files.ro, net.allow, net.reach, "
                "net.unix_sockets, guard_names.allow or allow_nested_userns",
                name, at, STR_SAID(words));
        /* A line that only names something may have any characters. */
        const char *wrong = rule && strpbrk(rule, "*?") ? glob_wrong_line(str_of(rule)) : NULL;
        if (wrong)
            return learn_fail(error, EINVAL, "%s:%u: '%s' %s", name, at, rule, wrong);
        struct learn_line *to = arena_push(l->mem, &l->lines, &l->n_lines, sizeof *l->lines);
        if (!to || !rule)
            return learn_memory(error);
        *to = (struct learn_line){str_is(verb, "allow"), rule};
    }
    return 0;
}

/* A directory is about what is below it, too. */
static bool is_about_form(const char *line, const char *form, bool below, bool exactly)
{
    if (strcmp(line, form) == 0)
        return true;
    return !exactly && ((below && learn_below(form, line)) || glob_match(str_of(line), str_of(form), GLOB_LINE));
}

/* The value as in the project's file, as the option has it, or with ~. */
static bool is_about(const struct learn *l, const struct learn_line *line, const struct learn_rule *rule, bool exactly)
{
    char form[8192];
    bool path = strncmp(rule->key, "files.", 6) == 0;
    if (is_about_form(line->rule, rule->text, path, exactly))
        return true;
    int n = snprintf(form, sizeof form, "%s: %s", rule->key, rule->value);
    if (n < 0 || (size_t)n >= sizeof form)
        return false;
    if (is_about_form(line->rule, form, path, exactly))
        return true;
    if (!path || !*l->home || !learn_below(rule->value, l->home))
        return false;
    snprintf(form, sizeof form, "%s: ~%s", rule->key, rule->value + strlen(l->home));
    return is_about_form(line->rule, form, path, exactly);
}

enum learn_answer learn_answered(const struct learn *l, const struct learn_rule *rule)
{
    enum learn_answer answer = LEARN_OPEN;
    for (size_t i = 0; i < l->n_lines; i++) {
        const struct learn_line *line = &l->lines[i];
        if (!line->allow && is_about(l, line, rule, false))
            return LEARN_DENY;
        if (line->allow && is_about(l, line, rule, rule->care != LEARN_PLAIN))
            answer = LEARN_ALLOW;
    }
    return answer;
}
