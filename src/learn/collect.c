/*
 * From a pass's refusals to the rules that would have allowed them: pinfold_why() says the option, and has tried it.
 * What no option allows is kept with its reason, for the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "learn/learn.h"

static const char *text_at(const struct pinfold_value *v, const char *name)
{
    size_t n;
    const char *text = pinfold_value_text(pinfold_value_get(v, name), &n);
    return text && strlen(text) == n ? text : "";
}

/* The question behind a refusal; NULL: there is none. */
static const char *question_of(const struct pinfold_denial *d)
{
    static const char *const acts[][2] = {{"read", "read"},     {"write", "write"},  {"create", "create"},
                                          {"rename", "create"}, {"link", "create"},  {"exec", "exec"},
                                          {"remove", "write"},  {"change", "write"}, {"git-config", "write"}};
    if (strcmp(d->kind, "network") == 0 || strcmp(d->kind, "socket") == 0)
        return (strcmp(d->action, "connect") == 0 || strcmp(d->action, "dial") == 0) && d->target[0] != '(' ? "connect"
                                                                                                            : NULL;
    for (size_t i = 0; strcmp(d->kind, "file") == 0 && i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(acts[i][0], d->action) == 0)
            return acts[i][1];
    }
    return NULL;
}

/* The option that allows it, and how much care it needs; an empty *ret_option: there is none. */
static void choose(const struct pinfold_value *v, const char **ret_option, const char **ret_value,
                   enum learn_care *ret_care, const char **ret_why)
{
    const struct pinfold_value *option =
        pinfold_value_first(pinfold_value_get(pinfold_value_get(v, "remedy"), "options"));
    const char *cause = text_at(v, "cause"), *word = pinfold_value_text(option, NULL);
    *ret_option = word && strncmp(word, "--", 2) == 0 ? word + 2 : "";
    word = pinfold_value_text(pinfold_value_next(option), NULL);
    *ret_value = word ? word : "";
    *ret_care = LEARN_PLAIN;
    *ret_why = NULL;
    if (strcmp(cause, "guarded") == 0) {
        *ret_option = strcmp(*ret_option, "guard-allow") == 0 ? *ret_option : ""; /* never all names at once */
        *ret_care = LEARN_NAMED;
        *ret_why = "programs of the host obey it";
    } else if (strcmp(cause, "hidden") == 0) {
        *ret_care = LEARN_SECRET;
        *ret_why = "a rule hides it";
    } else if (strcmp(cause, "protected") == 0) {
        *ret_care = LEARN_NAMED;
        *ret_why = "a rule protects it";
    } else if (strcmp(cause, "loopback") == 0) {
        *ret_care = LEARN_SECRET;
        *ret_why = "a service of this machine";
    } else if (strcmp(cause, "metadata") == 0) {
        *ret_option = "allow";
        *ret_value = text_at(v, "target");
        *ret_care = LEARN_SECRET;
        *ret_why = "it hands out a machine's credentials";
    } else if (strcmp(cause, "socket") == 0) {
        *ret_care = LEARN_NAMED;
        *ret_why = "a service of this machine";
    }
}

static void count_refusal(struct learn *l, struct learn_rule *rule, const char *action)
{
    bool same_act = rule->count == 0 || strcmp(rule->act, action) == 0;
    rule->count = rule->pass == l->passes ? rule->count + 1 : 1;
    rule->pass = l->passes;
    rule->act = same_act ? arena_text(l->mem, action) : "act";
    if (!rule->act)
        rule->act = "act";
    rule->still |= rule->tried;
}

/* A rule from an answer about this refusal. */
static size_t take(struct learn *l, const struct pinfold_denial *d, const char *action, const struct pinfold_value *v,
                   struct pinfold_error *error)
{
    const char *option, *value, *why, *more = NULL;
    enum learn_care care;
    choose(v, &option, &value, &care, &why);
    if (!*option || !*value) {
        const char *outside = text_at(pinfold_value_get(v, "remedy"), "outside");
        learn_leave(l, action, d->target, *outside ? outside : text_at(v, "reason"), NULL);
        return SIZE_MAX;
    }
    if (!learn_can_write(value)) {
        learn_leave(l, action, d->target, "its name has characters that have another meaning in a policy", NULL);
        return SIZE_MAX;
    }
    struct learn_rule *rule = learn_rule_of(l, option, value);
    if (!rule) {
        (void)learn_memory(error);
        return SIZE_MAX;
    }
    if (rule->care < care) {
        rule->care = care;
        rule->why = why;
    }
    enum learn_care path =
        value[0] == '/' && strncmp(rule->key, "files.", 6) == 0 ? learn_care_of_path(l, value, &more) : LEARN_PLAIN;
    if (path > rule->care) {
        rule->care = path;
        rule->why = more;
    }
    rule->guess |= strcmp(d->kind, "file") == 0 && d->pid == 0;
    if (rule->care == LEARN_SECRET)
        learn_leave(l, action, d->target, rule->why, rule);
    for (size_t i = 0; i < l->n_rules; i++) {
        if (l->rules[i] == rule)
            return i;
    }
    return SIZE_MAX;
}

/* Of a name that was only looked up no port is known: those of answers that name it, otherwise the usual ones. */
static size_t take_name(struct learn *l, const struct pinfold_denial *d, struct pinfold_error *error)
{
    size_t n = strlen(d->target), at = SIZE_MAX;
    for (size_t i = 0; i < l->n_lines; i++) {
        const char *said = l->lines[i].rule + strlen("net.allow: ");
        if (!l->lines[i].allow || strncmp(l->lines[i].rule, "net.allow: ", 11) != 0 ||
            strncmp(said, d->target, n) != 0 || said[n] != ':' || !learn_can_write(said))
            continue;
        struct learn_rule *rule = learn_rule_of(l, "allow", said);
        if (rule)
            count_refusal(l, rule, "connect");
        at = rule ? 0 : at;
    }
    if (at == 0)
        return SIZE_MAX;
    for (size_t i = 0; i < l->n_rules; i++) {
        const struct learn_rule *r = l->rules[i];
        if (strcmp(r->key, "net.allow") == 0 && strncmp(r->value, d->target, n) == 0 && r->value[n] == ':')
            return SIZE_MAX;
    }
    struct learn_rule *rule =
        learn_can_write(d->target) && strchr(d->target, '.') ? learn_rule_of(l, "allow", d->target) : NULL;
    if (!rule) {
        learn_leave(l, "resolve", d->target, "a name that the network has no rule for", NULL);
        return arena_failed(l->mem) ? (size_t)learn_memory(error) : SIZE_MAX;
    }
    for (at = 0; l->rules[at] != rule;)
        at++;
    return at;
}

/* Namespaces of its own, as browsers and other sandboxes want them: a switch, which a pass tries. */
static size_t take_namespace(struct learn *l, const struct pinfold_denial *d, struct pinfold_error *error)
{
    struct learn_rule *rule = d->remedy && strcmp(d->remedy, "--allow-nested-userns") == 0
                                  ? learn_rule_of(l, "allow-nested-userns", "true")
                                  : NULL;
    size_t at = 0;
    if (!rule) {
        learn_leave(l, d->action, d->target, d->why ? d->why : d->rule, NULL);
        return arena_failed(l->mem) ? (size_t)learn_memory(error) : SIZE_MAX;
    }
    rule->care = LEARN_NAMED;
    rule->why = "the command then reaches more of the kernel";
    while (l->rules[at] != rule)
        at++;
    return at;
}

static size_t judge_refusal(struct learn *l, struct pinfold_policy *policy, const struct pinfold_denial *d,
                            struct pinfold_error *error)
{
    const char *question = question_of(d);
    struct pinfold_report *report;
    struct pinfold_error ignored = {0};
    size_t at = SIZE_MAX;
    if (strcmp(d->kind, "network") == 0 && strcmp(d->action, "resolve") == 0)
        return take_name(l, d, error);
    if (strcmp(d->kind, "namespace") == 0)
        return take_namespace(l, d, error);
    if (!question) {
        learn_leave(l, d->action, d->target, d->why ? d->why : d->rule, NULL);
        return at;
    }
    if (strcmp(d->action, "dial") == 0) {
        learn_leave(l, "connect", d->target, "it was allowed, and could not be reached", NULL);
        return at;
    }
    int r = pinfold_why(policy, question, d->target, &report, &ignored);
    if (r == 1 || r == 2)
        at = take(l, d, d->action, pinfold_report_value(report), error);
    else
        learn_leave(l, d->action, d->target, r == 0 ? "it was refused then, and would not be now" : ignored.text, NULL);
    if (r >= 0)
        pinfold_report_free(report);
    return at;
}

/* What an error's text tells as a creation is a change where the rule is about the file itself. */
static const char *act_of(const struct pinfold_denial *d, const struct learn_rule *rule)
{
    if (strcmp(d->action, "resolve") == 0)
        return "connect";
    return strcmp(d->action, "create") == 0 && strcmp(d->target, rule->value) == 0 ? "write" : d->action;
}

/* The place of this refusal among those that were looked at, each only once; SIZE_MAX without memory. */
static size_t seen_at(struct learn *l, struct pinfold_policy *policy, const struct pinfold_denial *d,
                      struct pinfold_error *error)
{
    size_t i = 0;
    while (i < l->n_seen && !(strcmp(l->seen[i].kind, d->kind) == 0 && strcmp(l->seen[i].action, d->action) == 0 &&
                              strcmp(l->seen[i].target, d->target) == 0))
        i++;
    if (i == l->n_seen) {
        struct learn_seen seen = {arena_text(l->mem, d->kind), arena_text(l->mem, d->action),
                                  arena_text(l->mem, d->target), judge_refusal(l, policy, d, error)};
        struct learn_seen *to = arena_push(l->mem, &l->seen, &l->n_seen, sizeof *l->seen);
        if (!to || arena_failed(l->mem)) {
            (void)learn_memory(error);
            return SIZE_MAX;
        }
        *to = seen;
    }
    return i;
}

struct learn_rule *learn_rule_about(struct learn *l, struct pinfold_policy *policy, const struct pinfold_denial *d,
                                    struct pinfold_error *error)
{
    const size_t i = seen_at(l, policy, d, error), at = i == SIZE_MAX ? i : l->seen[i].rule;
    return at < l->n_rules ? l->rules[at] : NULL;
}

static int take_denial(struct learn *l, struct pinfold_policy *policy, const struct pinfold_denial *d,
                       struct pinfold_error *error)
{
    const size_t i = seen_at(l, policy, d, error);
    if (i == SIZE_MAX)
        return -ENOMEM;
    const size_t at = l->seen[i].rule;
    if (at < l->n_rules)
        count_refusal(l, l->rules[at], act_of(d, l->rules[at]));
    return 0;
}

/* ---- services of this machine, which a box cannot see: its own loopback answers. Only the command's words tell. ---- */

static int take_loopback(struct learn *l, struct pinfold_policy *policy, struct str text, struct pinfold_error *error)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    static const char between[][12] = {":", " port ", ", port ", "', port=", "\", port="};
    int r = 0;
    for (size_t at = 0; at < text.n && r == 0; at++) {
        struct str rest = str_skip(text, at), port = {NULL, 0};
        size_t which = 0;
        while (which < 3 && !str_starts(rest, str_of(names[which])))
            which++;
        if (which == 3)
            continue;
        rest = str_skip(rest, strlen(names[which]));
        for (size_t b = 0; b < sizeof between / sizeof *between; b++) {
            if (str_starts(rest, str_of(between[b])))
                port = str_skip(rest, strlen(between[b]));
        }
        char target[64] = "";
        size_t digits = 0;
        while (digits < port.n && digits < 6 && port.p[digits] >= '0' && port.p[digits] <= '9')
            digits++;
        if (!digits || digits > 5)
            continue;
        snprintf(target, sizeof target, "%s:%.*s", names[which], (int)digits, port.p);
        struct pinfold_denial d = {
            .kind = "network", .action = "connect", .target = target, .rule = "", .origin = "", .how = "none"};
        r = take_denial(l, policy, &d, error);
    }
    return r;
}

static int take_words(struct learn *l, struct pinfold_policy *policy, const struct pinfold_result *result,
                      struct pinfold_error *error)
{
    enum { MOST = 1 << 18 };
    int r = 0;
    for (int which = 0; which < 2 && r == 0; which++) {
        size_t n;
        const char *p = which ? pinfold_result_stdout(result, &n) : pinfold_result_stderr(result, &n);
        struct str text = {p ? p : "", p ? n : 0};
        r = take_loopback(l, policy, text.n > MOST ? str_skip(text, text.n - MOST) : text, error);
    }
    return r;
}

/* A rule without a port gives way to those ports that were used or asked for. */
static void narrow(struct learn *l, const struct pinfold_result *result)
{
    for (size_t i = 0; i < l->n_rules; i++) {
        struct learn_rule *rule = l->rules[i];
        struct pinfold_connection c = {.size = sizeof c};
        size_t n = strlen(rule->value);
        bool better = false;
        if (rule->gone || strcmp(rule->key, "net.allow") != 0 || strchr(rule->value, ':'))
            continue;
        for (size_t k = 0; rule->tried && pinfold_result_allowed(result, k, &c); k++) {
            if (!c.target || strncmp(c.target, rule->value, n) != 0 || c.target[n] != ':')
                continue;
            struct learn_rule *exact = learn_rule_of(l, "allow", c.target);
            if (exact) {
                exact->answer = rule->answer;
                exact->tried = better = true;
                exact->pass = rule->pass;
                exact->count = rule->count;
                exact->act = "connect";
            }
        }
        for (size_t k = 0; k < l->n_rules; k++)
            better |= rule->tried && strcmp(l->rules[k]->key, "net.allow") == 0 &&
                      strncmp(l->rules[k]->value, rule->value, n) == 0 && l->rules[k]->value[n] == ':';
        rule->gone |= better;
    }
}

int learn_collect(struct learn *l, struct pinfold_policy *policy, const struct pinfold_result *result,
                  struct pinfold_error *error)
{
    struct pinfold_denial d = {.size = sizeof d};
    const struct pinfold_value *word =
        pinfold_value_first(pinfold_value_get(pinfold_result_value(result), "denials_not_seen"));
    int r = 0;
    for (size_t i = 0; r == 0 && pinfold_result_denial(result, i, &d); i++) {
        if (d.kind && d.action && d.target)
            r = take_denial(l, policy, &d, error);
    }
    for (; word; word = pinfold_value_next(word)) {
        unsigned long long more;
        const char *text = pinfold_value_text(word, NULL);
        if (text && strstr(text, "more than are kept") && sscanf(text, "%llu", &more) == 1)
            l->not_kept = more;
    }
    if (r == 0 && pinfold_result_status(result) != 0)
        r = take_words(l, policy, result, error);
    if (r == 0)
        narrow(l, result);
    return r;
}
