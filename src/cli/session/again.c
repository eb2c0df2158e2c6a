/*
 * What a session was started with is taken up by `session start NAME` once it has ended: the same is asked for in the same
 * directory, and the policy is made anew from it, so that what hides and protects now holds. Options given now stand alone.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"

#define MAX_LINE (64u << 10)

static const struct pinfold_value *before_get(const struct pinfold_value *o, const char *name)
{
    return pinfold_value_get(o, name);
}

static const char *before_text(const struct pinfold_value *o, const char *name)
{
    return pinfold_value_text(before_get(o, name), NULL);
}

/* Where an option that is not of the policy belongs; NULL: it is the policy's. */
__attribute__((nonnull(1))) static const char **own_text(struct ask *a, const char *name)
{
    return same(name, "from")       ? &a->settings_format
           : same(name, "cow")      ? &a->cow
           : same(name, "cow-from") ? &a->cow_from
           : same(name, "cwd")      ? &a->dir
                                    : NULL;
}

static bool is_any_given_now(const struct ask *a)
{
    return a->n_policy || a->settings_format || a->text || a->no_layers || a->cow || a->cow_from || a->dir;
}

static const struct pinfold_option_info *once_info(const char *name)
{
    const struct pinfold_option_info *o;
    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && same(o->name, name))
            return o;
    }
    return NULL;
}

/* Whether what is given now has that option; `once`: or another value of one that may be given once only. */
__attribute__((nonnull(1))) static bool is_given_now(struct ask *a, const char *name, const char *value, bool once)
{
    const struct pinfold_option_info *info = once ? once_info(name) : NULL;
    const char **own = own_text(a, name);
    if (own)
        return *own && (once || same(*own, value ? value : ""));
    if (same(name, "no-layers"))
        return a->no_layers;
    for (size_t i = 0; i < a->n_policy; i++) {
        const char *given = a->policy[i].value;
        if (same(a->policy[i].name, name) &&
            ((info && !info->repeats) || (given && value ? same(given, value) : given == value)))
            return true;
    }
    return false;
}

static void put_before(struct buf *out, const char *name, const char *value)
{
    auto_buf struct buf flag = BUF(MAX_LINE);
    const bool joined = value && same(name, "cow");
    buf_printf(&flag, "--%s%s%s", name, joined ? "=" : "", joined ? value : "");
    char *words[] = {(char *)(uintptr_t)buf_cstr(&flag), joined ? NULL : (char *)(uintptr_t)value, NULL};
    buf_text(out, out->n ? " " : "");
    put_command(words, out);
}

/* Paths of now that begin where this process is would begin elsewhere. */
static bool paths_fit(const struct ask *a, const char *directory)
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) && same(here, directory))
        return true;
    for (size_t i = 0; i < a->n_policy; i++) {
        const char *name = a->policy[i].name, *value = a->policy[i].value;
        const struct pinfold_option_info *info = once_info(name);
        const char *form = info && info->value                              ? info->value
                           : same(name, "policy") || same(name, "settings") ? "FILE"
                                                                            : "";
        if (!value || !*value || strchr("/~*", value[0]) ||
            (!strstr(form, "PATH") && !strstr(form, "FILE") && !strstr(form, "DIR") && !strstr(form, "SRC")))
            continue;
        complain("--%s %s: write an absolute path with --as-before; the session was started in '%s'", name, value,
                 directory);
        return false;
    }
    return true;
}

/* A value may be a secret, so none is written down. */
static void say_unkept(const struct ask *a, const char *name, const char *variable)
{
    const size_t n = strlen(variable);
    for (size_t i = 0; i < a->n_policy; i++) {
        const char *value = a->policy[i].value;
        if (same(a->policy[i].name, "env") && value && strncmp(value, variable, n) == 0 &&
            (!value[n] || value[n] == '='))
            return;
    }
    complain(
        "session '%s' is started without %s: values of --env are not kept; give it again: pinfold session start '%s' "
        "--as-before --recreate --env %s=VALUE",
        name, variable, name, variable);
}

/* All that it was started with, before what is given now. */
static bool take_up(struct ask *a, const char *name, const struct pinfold_value *with, bool starts)
{
    auto_buf struct buf line = BUF(MAX_LINE);
    const struct pinfold_value *options = before_get(with, "options"), *unkept = before_get(with, "variables_not_kept");
    struct pinfold_option *all = calloc(pinfold_value_count(options) + a->n_policy + 1, sizeof *all);
    size_t n = 0;
    a->start_in = before_text(with, "directory");
    if (!all || !a->start_in || !paths_fit(a, a->start_in)) {
        free(all);
        return false;
    }
    for (const struct pinfold_value *o = pinfold_value_first(options); o; o = pinfold_value_next(o)) {
        const char *flag = before_text(o, "name"), *value = before_text(o, "value"), **own = own_text(a, flag);
        if (is_given_now(a, flag, value, true))
            continue;
        put_before(&line, flag, value);
        if (own)
            *own = value ? value : "";
        else if (same(flag, "no-layers"))
            a->no_layers = true;
        else
            all[n++] = (struct pinfold_option){flag, value};
    }
    for (size_t i = 0; i < a->n_policy; i++) {
        const char *value = a->policy[i].value;
        char variable[256];
        snprintf(variable, sizeof variable, "%.*s", value ? (int)strcspn(value, "=") : 0, value ? value : "");
        put_before(&line, a->policy[i].name, same(a->policy[i].name, "env") ? variable : value);
        all[n++] = a->policy[i];
    }
    a->policy = all;
    a->n_policy = n;
    if (a->quiet || !starts)
        return true;
    complain("session '%s' is started as before, in '%s'%s%s", name, a->start_in, line.n ? ", with " : "",
             buf_cstr(&line));
    for (const struct pinfold_value *v = pinfold_value_first(unkept); v; v = pinfold_value_next(v))
        say_unkept(a, name, pinfold_value_text(v, NULL));
    return true;
}

static void say_dropped(struct ask *a, const char *name, const struct pinfold_value *with)
{
    auto_buf struct buf line = BUF(MAX_LINE);
    const struct pinfold_value *options = before_get(with, "options");
    for (const struct pinfold_value *o = pinfold_value_first(options); o; o = pinfold_value_next(o)) {
        if (!is_given_now(a, before_text(o, "name"), before_text(o, "value"), true))
            put_before(&line, before_text(o, "name"), before_text(o, "value"));
    }
    if (line.n && !a->quiet)
        complain("session '%s' is started without %s, which it had before (to keep that: --as-before)", name,
                 buf_cstr(&line));
}

bool again_begin(struct ask *a, const char *name, struct pinfold_report **ret)
{
    struct pinfold_error error = {0};
    const struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = a->scope};
    *ret = NULL;
    if (pinfold_session_list_report(&o, ret, &error) < 0) {
        *ret = NULL;
        if (a->as_before)
            complain("--as-before: %s", error.text);
        return !a->as_before; /* what is wrong, besides that there is none, is said where it is started */
    }
    const struct pinfold_value *about = pinfold_report_value(*ret), *with = before_get(about, "started_with");
    const bool known = pinfold_value_type(with) == PINFOLD_VALUE_OBJECT;
    const char *state = before_text(about, "state");
    const bool runs = state && same(state, "running");
    if (!a->as_before && (a->recreate || runs))
        return true;
    if (known && (a->as_before || !is_any_given_now(a)))
        return take_up(a, name, with, a->recreate || !runs);
    if (known)
        say_dropped(a, name, with);
    else if (a->as_before)
        complain("--as-before: what session '%s' was started with is not known; give its options", name);
    else if (!is_any_given_now(a) && !a->quiet)
        complain(
            "what session '%s' was started with before is not known; it is started with the policy of this directory",
            name);
    return known || !a->as_before;
}
