/*
 * What the policy says of pushes to the remote `host` (its section `git`), and the same as words on a command line: the box in which
 * a push is judged gets them so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "project/rules.h"

/* A text of policy_print(): as it is, or quoted. */
static bool read_text(struct str said, char *ret, size_t room)
{
    bool quoted = said.n >= 2 && said.p[0] == '"' && said.p[said.n - 1] == '"';
    size_t n = 0;
    if (quoted)
        said = (struct str){said.p + 1, said.n - 2};
    while (said.n) {
        unsigned byte = (unsigned char)said.p[0];
        size_t cut = 1;
        if (quoted && said.p[0] == '\\' && said.n >= 4 && said.p[1] == 'x') {
            const char digits[3] = {said.p[2], said.p[3], 0};
            byte = (unsigned)strtoul(digits, NULL, 16);
            cut = 4;
        } else if (quoted && said.p[0] == '\\' && said.n >= 2) {
            byte = (unsigned char)said.p[1];
            cut = 2;
        }
        if (n + 1 >= room || byte == 0)
            return false;
        ret[n++] = (char)byte;
        said = str_skip(said, cut);
    }
    ret[n] = 0;
    return n > 0;
}

static bool put_pattern(struct push_rules *r, struct str said)
{
    if (r->rules.n_protect == RULES_BRANCHES || !read_text(said, r->patterns[r->rules.n_protect], RULES_PATTERN))
        return false;
    r->protect[r->rules.n_protect] = r->patterns[r->rules.n_protect];
    r->rules.n_protect++;
    return true;
}

/* The section `git` of a policy's text, as policy_print() writes it. */
static bool read_push_section(struct str text, struct push_rules *ret)
{
    bool in = false, list = false;
    while (text.n) {
        struct str line = str_until(&text, '\n');
        if (line.n == 0 || line.p[0] != ' ') {
            in = str_is(line, "git:");
            list = false;
            continue;
        }
        if (!in)
            continue;
        list &= str_starts(line, STR("    - "));
        if (list && !put_pattern(ret, str_skip(line, 6)))
            return false;
        if (list)
            continue;
        if (str_is(line, "  protect_branches:"))
            list = true;
        else if (str_is(line, "  allow_force: true"))
            ret->rules.allow_force = true;
        else if (str_is(line, "  allow_delete: true"))
            ret->rules.allow_delete = true;
        else if (str_is(line, "  verify: required") || str_is(line, "  verify: told"))
            ret->verify = str_ends(line, STR("required")) ? PUSH_VERIFY_REQUIRED : PUSH_VERIFY_TOLD;
        else
            return false;
    }
    return true;
}

bool rules_mounts_read_only(struct str text)
{
    bool in = false, list = false;
    while (text.n) {
        struct str line = str_until(&text, '\n');
        if (line.n == 0 || line.p[0] != ' ') {
            in = str_is(line, "files:");
            list = false;
        } else if (!str_starts(line, STR("    "))) {
            list = in && str_is(line, "  mounts:");
        } else if (list && !str_ends(line, STR(", read_only: true}")) &&
                   !str_ends(line, STR(", read_only: true, no_links: true}"))) {
            return false;
        }
    }
    return true;
}

int rules_written(struct str text, char ret[][PATH_MAX], size_t room)
{
    bool in = false, list = false;
    size_t n = 0;
    while (text.n) {
        struct str line = str_until(&text, '\n');
        if (line.n == 0 || line.p[0] != ' ') {
            in = str_is(line, "files:");
            list = false;
        } else if (!str_starts(line, STR("    - "))) {
            list = in && (str_is(line, "  cache:") || str_is(line, "  rw:"));
        } else if (list) {
            if (n == room || !read_text(str_skip(line, 6), ret[n], PATH_MAX))
                return -E2BIG;
            n++;
        }
    }
    return (int)n;
}

int push_rules_in(struct pinfold_policy *policy, struct push_rules *ret, char *why, size_t room)
{
    struct pinfold_error error = {0};
    char *text = NULL;
    *ret = (struct push_rules){.rules = {.protect = ret->protect}};
    int r = pinfold_policy_text(policy, 0, &text, &error);
    if (r < 0) {
        snprintf(why, room, "%s", error.text);
        return r;
    }
    bool good = read_push_section(str_of(text), ret);
    free(text);
    if (!good)
        snprintf(why, room, "the policy names more than %d branches in git.protect_branches", RULES_BRANCHES);
    return good ? 0 : -E2BIG;
}

int push_rules_of(const struct pinfold_option *options, const char *real, struct push_rules *ret, char *why,
                  size_t room)
{
    const struct pinfold_policy_options o = {.size = sizeof o, .options = options, .cwd = real};
    struct pinfold_policy *policy;
    struct pinfold_error error = {0};
    int r = pinfold_policy_load(&o, &policy, &error);
    if (r < 0) {
        snprintf(why, room, "%s", error.text);
        return r;
    }
    r = push_rules_in(policy, ret, why, room);
    pinfold_policy_free(policy);
    return r;
}

size_t push_rules_words(const struct push_rules *r, const char *ret[RULES_WORDS])
{
    size_t n = 0;
    if (r->rules.allow_force)
        ret[n++] = "force";
    if (r->rules.allow_delete)
        ret[n++] = "delete";
    ret[n++] = "--";
    for (size_t i = 0; i < r->rules.n_protect; i++)
        ret[n++] = r->protect[i];
    ret[n] = NULL;
    return n;
}

bool push_rules_said(char *const *words, struct gitpush_rules *ret)
{
    *ret = (struct gitpush_rules){.protect = NULL};
    for (; *words && !same(*words, "--"); words++) {
        if (same(*words, "force"))
            ret->allow_force = true;
        else if (same(*words, "delete"))
            ret->allow_delete = true;
        else
            return false;
    }
    if (!*words)
        return false;
    ret->protect = (const char *const *)(words + 1);
    while (words[1 + ret->n_protect])
        ret->n_protect++;
    return true;
}
