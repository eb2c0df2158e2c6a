/* Judges rules of sudoers(5): whether they let a user do more than start the firewall. Pure. */
#include "run/image/image.h"

#include <string.h>

static struct str sudo_next_word(struct str *s)
{
    *s = str_trim(*s);
    size_t n = 0;
    while (n < s->n && s->p[n] != ' ' && s->p[n] != '\t')
        n++;
    struct str word = {s->p, n};
    *s = str_trim(str_skip(*s, n));
    return word;
}

static bool sudo_is_group_of(struct str name, const char *const *groups)
{
    for (const char *const *g = groups; g && *g; g++) {
        if (str_is(name, *g))
            return true;
    }
    return false;
}

/* Of an alias nobody knows here whom it means: it counts as the user's. */
static bool sudo_is_alias(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (!(name.p[i] >= 'A' && name.p[i] <= 'Z') && name.p[i] != '_' && !(name.p[i] >= '0' && name.p[i] <= '9'))
            return false;
    }
    return name.n > 0;
}

/* ALL is such an alias, too. Ids and netgroups count as the user's. */
static bool sudo_names_user(struct str users, const char *user, const char *const *groups)
{
    while (users.n) {
        struct str one = str_trim(str_until(&users, ','));
        if (one.n && one.p[0] == '%' ? (one.n > 1 && one.p[1] == '#') || sudo_is_group_of(str_skip(one, 1), groups)
                                     : str_is(one, user) || sudo_is_alias(one) || (one.n && strchr("#+!\"", one.p[0])))
            return true;
    }
    return false;
}

/* "(root) NOPASSWD: PATH" -> PATH */
static struct str sudo_command_of(struct str s)
{
    s = str_trim(s);
    while (s.n && s.p[0] == '(') {
        (void)str_until(&s, ')');
        s = str_trim(s);
    }
    for (;;) {
        size_t n = 0;
        while (n < s.n && ((s.p[n] >= 'A' && s.p[n] <= 'Z') || s.p[n] == '_'))
            n++;
        if (n == 0 || n >= s.n || s.p[n] != ':')
            return s;
        s = str_trim(str_skip(s, n + 1));
    }
}

enum sudo_scope image_sudo_scope(struct str line, const char *user, const char *const *groups)
{
    struct str rest = line, users = sudo_next_word(&rest);
    if (str_ends(users, STR("_Alias")) || str_starts(users, STR("Defaults")))
        return SUDO_NOT_THEIRS; /* a rule that uses the alias is judged */
    while (rest.n && users.n && (users.p[users.n - 1] == ',' || rest.p[0] == ',')) { /* "a, b ALL=..." */
        struct str more = sudo_next_word(&rest);
        users.n = (size_t)(more.p + more.n - users.p);
    }
    if (!sudo_names_user(users, user, groups))
        return SUDO_NOT_THEIRS;
    (void)str_until(&rest, '='); /* the host */
    if (!rest.n)
        return SUDO_WIDER;
    while (rest.n) {
        struct str command = sudo_command_of(str_until(&rest, ','));
        if (!str_is(command, IMAGE_FIREWALL) && !str_is(command, IMAGE_FIREWALL " \"\""))
            return SUDO_WIDER;
    }
    return SUDO_FIREWALL;
}
