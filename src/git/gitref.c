/*
 * Names of branches, tags and remotes in HEAD and packed-refs. git itself accepts a name that begins with "-", but a
 * script that passes it to git (`git push origin $(git branch --show-current)`) passes an option.
 */
#include <errno.h>

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

static bool is_object_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
    return s.n == 40 || s.n == 64;
}

bool gitref_loose(struct str text, struct str *ret_id)
{
    if (text.n && text.p[text.n - 1] == '\n')
        text.n--;
    *ret_id = text;
    return is_object_id(text);
}

/* git takes any space between id and name, and a line may end with the file: neither is as git writes it. */
static bool is_entry(struct str line, struct str *ret_id, struct str *ret_name)
{
    struct str name = line;
    *ret_id = str_until(&name, ' ');
    *ret_name = name;
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
            return false;
    return name.n && is_object_id(*ret_id);
}

int gitref_entry(struct str *text, bool begins, struct str *ret_id, struct str *ret_name)
{
    while (text->n) {
        if (!memchr(text->p, '\n', text->n))
            return -EBADMSG;
        struct str line = str_until(text, '\n');
        if (begins && str_starts(line, STR("#"))) {
            begins = false;
            continue;
        }
        begins = false;
        if (str_starts(line, STR("^")) && is_object_id(str_skip(line, 1)))
            continue; /* what the tag before it leads to */
        return is_entry(line, ret_id, ret_name) ? 1 : -EBADMSG;
    }
    return 0;
}

bool gitref_is_option(struct str name)
{
    if (str_starts(name, STR("refs/"))) {
        name = str_skip(name, 5);
        (void)str_until(&name, '/'); /* heads, tags, remotes */
    }
    return str_starts(name, STR("-"));
}

bool gitref_is_odd(struct str name)
{
    static const struct str replaces = {"refs/replace/", 13};
    return gitref_is_option(name) || str_is_nocase((struct str){name.p, name.n < 13 ? name.n : 13}, replaces.p);
}

bool gitref_is_plain(struct str ref)
{
    for (size_t i = 0; i < ref.n; i++)
        if ((unsigned char)ref.p[i] <= ' ' || ref.p[i] == 0x7f)
            return false;
    return true;
}

bool gitref_packed_is(struct str *old, struct str ref, struct str id)
{
    struct str rest = *old, old_id, name;
    while (gitref_entry(&rest, false, &old_id, &name) > 0) {
        const size_t n = name.n < ref.n ? name.n : ref.n;
        const int order = memcmp(name.p, ref.p, n);
        if (order == 0 && name.n == ref.n)
            return str_eq(old_id, id);
        if (order > 0 || (order == 0 && name.n > ref.n))
            return false;
        *old = rest;
    }
    return false;
}
