/*
 * Names of branches, tags and remotes in HEAD and packed-refs. git itself accepts a name that begins with "-", but a
 * script that passes it to git (`git push origin $(git branch --show-current)`) passes an option.
 */
#include "git/gitconfig.h"

bool gitref_of_head(struct str text, struct str *ret)
{
    if (!str_starts(text, STR("ref:")))
        return false;
    text = str_skip(text, 4);
    while (text.n && (text.p[0] == ' ' || text.p[0] == '\t' || text.p[0] == '\n' || text.p[0] == '\r'))
        text = str_skip(text, 1);
    *ret = str_until(&text, '\n');
    while (ret->n && (ret->p[ret->n - 1] == ' ' || ret->p[ret->n - 1] == '\t' || ret->p[ret->n - 1] == '\r'))
        ret->n--;
    return ret->n > 0;
}

bool gitref_next_packed(struct str *text, struct str *ret)
{
    while (text->n) {
        struct str line = str_until(text, '\n'), object = str_until(&line, ' ');
        if (object.n < 40 || object.p[0] == '#' || object.p[0] == '^' || line.n == 0)
            continue;
        *ret = line;
        return true;
    }
    return false;
}

bool gitref_is_option(struct str name)
{
    if (str_starts(name, STR("refs/"))) {
        name = str_skip(name, 5);
        (void)str_until(&name, '/'); /* heads, tags, remotes */
    }
    return str_starts(name, STR("-"));
}
