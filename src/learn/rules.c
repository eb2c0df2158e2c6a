/*
 * The rules and refusals that were found, and what files of this folder share. A rule is a key and a value as the
 * project's file would have them, with how often it was needed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "learn/learn.h"

int learn_fail(struct pinfold_error *error, int no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->kind = no == EINVAL ? PINFOLD_ERROR_POLICY : PINFOLD_ERROR_SYSTEM;
    error->no = no;
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return -no;
}

int learn_memory(struct pinfold_error *error)
{
    return learn_fail(error, ENOMEM, "cannot learn: out of memory");
}

bool learn_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    if (n == 1 && dir[0] == '/')
        return true;
    return n > 0 && strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

bool learn_can_write(const char *value)
{
    for (const char *c = value; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || strchr("*?[]{}$\\!\"", *c))
            return false;
    }
    auto_buf struct buf shown = BUF(1u << 16);
    utf8_safe(&shown, str_of(value)); /* also C1 controls and what turns the direction of text */
    return *value && buf_ok(&shown) && strcmp(buf_cstr(&shown), value) == 0;
}

/*
 * What lies beside the workspace: "../other" holds wherever the two are cloned side by side. What is in the home is there in another
 * clone's, too, wherever that is; so it is beside only a workspace that is deeper in the home.
 */
static const char *beside(struct learn *l, const char *path)
{
    const char *slash = strrchr(l->workspace, '/');
    const size_t n = (size_t)(slash - l->workspace), home = strlen(l->home);
    const bool near = n > 0 && strncmp(path, l->workspace, n) == 0 && path[n] == '/' && path[n + 1];
    const bool homes = home && learn_below(path, l->home);
    return near && (!homes || (learn_below(l->workspace, l->home) && n > home)) ? path + n + 1 : NULL;
}

const char *learn_written(struct learn *l, const char *path)
{
    if (path[0] != '/')
        return path;
    if (learn_below(path, l->workspace) && path[strlen(l->workspace)]) {
        const char *in = path + strlen(l->workspace) + 1;
        return in[0] == '~' ? arena_printf(l->mem, "./%s", in) : arena_text(l->mem, in); /* a name, not the home */
    }
    const char *near = beside(l, path);
    if (near && !learn_below(l->home, path))
        return arena_printf(l->mem, "../%s", near);
    if (*l->home && learn_below(path, l->home))
        return arena_printf(l->mem, "~%s", path + strlen(l->home));
    return arena_text(l->mem, path);
}

struct learn_rule *learn_rule_of(struct learn *l, const char *option, const char *value)
{
    const struct pinfold_option_info *info;
    size_t i = 0;
    while ((info = pinfold_option_at(i)) != NULL && (!info->name || strcmp(info->name, option) != 0))
        i++;
    for (i = 0; info && i < l->n_rules; i++) {
        if (strcmp(l->rules[i]->option, info->name) == 0 && strcmp(l->rules[i]->value, value) == 0)
            return l->rules[i];
    }
    struct learn_rule *rule = info ? arena_zero(l->mem, sizeof *rule) : NULL;
    if (!rule)
        return NULL;
    struct learn_rule **to = arena_push(l->mem, &l->rules, &l->n_rules, sizeof(struct learn_rule *));
    *rule =
        (struct learn_rule){.key = info->key, .option = info->name, .value = arena_text(l->mem, value), .act = "act"};
    rule->written = rule->value ? learn_written(l, rule->value) : NULL;
    rule->text = rule->written ? arena_printf(l->mem, "%s: %s", rule->key, rule->written) : NULL;
    if (!to || !rule->text)
        return NULL;
    *to = rule;
    return rule;
}

void learn_leave(struct learn *l, const char *action, const char *target, const char *why,
                 const struct learn_rule *rule)
{
    for (size_t i = 0; i < l->n_left; i++) {
        if (strcmp(l->left[i].action, action) == 0 && strcmp(l->left[i].target, target) == 0)
            return;
    }
    struct learn_left left = {arena_text(l->mem, action), arena_text(l->mem, target), arena_text(l->mem, why), rule};
    struct learn_left *to = arena_push(l->mem, &l->left, &l->n_left, sizeof *l->left);
    if (to && left.action && left.target && left.why)
        *to = left;
    else if (to)
        l->n_left--;
}
