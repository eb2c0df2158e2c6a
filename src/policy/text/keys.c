/*
 * Looks up policy keys: by name, by flag, and the nearest name for a typing error. The table is keys.h; a word of
 * another sandbox's settings is answered with ours.
 */
#include "policy/text/keys.h"

const struct policy_key key_table[KEY_COUNT] = {
#define X(id, path, flag, value, type, choices, repeats, takes, tighten, help)                                         \
    [KEY_##id] = {flag, value, choices, path, help, takes, repeats, type},
    POLICY_KEYS(X)
#undef X
};

static const unsigned char tightening[KEY_COUNT] = {
#define X(id, path, flag, value, type, choices, repeats, takes, tighten, help) [KEY_##id] = tighten,
    POLICY_KEYS(X)
#undef X
};

const struct policy_key *policy_keys(size_t *ret_n)
{
    *ret_n = KEY_COUNT;
    return key_table;
}

const struct policy_key *policy_key_by_flag(const char *flag)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (key_table[i].flag && same(key_table[i].flag, flag))
            return &key_table[i];
    }
    return NULL;
}

enum key_tighten key_tightening(enum key_id id)
{
    return tightening[id];
}

enum key_id key_find(struct str path)
{
    enum key_id id = 0;
    while (id < KEY_COUNT && !str_is(path, key_table[id].path))
        id++;
    return id;
}

bool key_is_section(struct str path)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        struct str k = str_of(key_table[i].path);
        if (path.n && str_starts(k, path) && k.n > path.n && k.p[path.n] == '.')
            return true;
    }
    return false;
}

bool is_near(unsigned distance, struct str asked)
{
    return distance <= (asked.n < 3 ? 1 : asked.n < 8 ? 2 : 3) && distance < asked.n;
}

static struct str last_name(struct str path)
{
    for (size_t i = path.n; i > 0; i--) {
        if (path.p[i - 1] == '.')
            return str_skip(path, i);
    }
    return path;
}

/* Words of other sandboxes' settings, by the last name of the path. */
static const char *other_settings_word(struct str name)
{
    static const char *const words[][2] = {{"network", "net"},
                                           {"networking", "net"},
                                           {"filesystem", "files"},
                                           {"fs", "files"},
                                           {"paths", "files"},
                                           {"read", "files.ro"},
                                           {"allowRead", "files.ro"},
                                           {"allow_read", "files.ro"},
                                           {"readonly", "files.ro"},
                                           {"readOnly", "files.ro"},
                                           {"read_only", "files.ro"},
                                           {"write", "files.rw"},
                                           {"writable", "files.rw"},
                                           {"allowWrite", "files.rw"},
                                           {"allow_write", "files.rw"},
                                           {"readWrite", "files.rw"},
                                           {"read_write", "files.rw"},
                                           {"denyRead", "files.hide"},
                                           {"deny_read", "files.hide"},
                                           {"denyWrite", "files.protect"},
                                           {"deny_write", "files.protect"},
                                           {"volumes", "files.mounts"},
                                           {"binds", "files.mounts"},
                                           {"hosts", "net.allow"},
                                           {"domains", "net.allow"},
                                           {"allow", "net.allow"},
                                           {"deny", "net.deny"},
                                           {"allowlist", "net.allow"},
                                           {"allowed_hosts", "net.allow"},
                                           {"allowedHosts", "net.allow"},
                                           {"allowed_domains", "net.allow"},
                                           {"allowedDomains", "net.allow"},
                                           {"denied_domains", "net.deny"},
                                           {"deniedDomains", "net.deny"},
                                           {"ports", "net.publish"},
                                           {"environment", "env"},
                                           {"variables", "env"},
                                           {"resources", "limits"},
                                           {"inherits", "extends"},
                                           {"profile", "extends"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (str_is(name, words[i][0]))
            return words[i][1];
    }
    return NULL;
}

const char *key_nearest(struct str path)
{
    const char *meant = other_settings_word(last_name(path));
    if (meant && !str_is(path, meant))
        return meant;
    const char *best_path = NULL, *best_name = NULL;
    unsigned by_path = 99, by_name = 99;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        struct str k = str_of(key_table[i].path);
        unsigned d = str_distance(path, k);
        if (d < by_path) {
            by_path = d;
            best_path = key_table[i].path;
        }
        /* The right name in the wrong section: "memory" at the top, "limits.hide". */
        d = str_distance(last_name(path), last_name(k));
        if (d < by_name) {
            by_name = d;
            best_name = key_table[i].path;
        }
    }
    if (by_name == 0 || (is_near(by_name, last_name(path)) && by_name < by_path))
        return best_name;
    return is_near(by_path, path) ? best_path : NULL;
}

void key_siblings(struct str path, struct buf *out)
{
    struct str before = {"", 0};
    const char *comma = "";

    for (size_t i = 0; i < KEY_COUNT; i++) {
        struct str k = str_of(key_table[i].path);
        if (path.n) {
            if (!str_starts(k, path) || k.n <= path.n || k.p[path.n] != '.')
                continue;
            k = str_skip(k, path.n + 1);
        }
        const char *dot = memchr(k.p, '.', k.n);
        if (dot)
            k.n = (size_t)(dot - k.p);
        if (str_eq(k, before))
            continue;
        before = k;
        buf_text(out, comma);
        buf_str(out, k);
        comma = ", ";
    }
}

/* Cuts the first name off "a|b|c". */
static struct str next_choice(struct str *rest)
{
    const char *bar = memchr(rest->p, '|', rest->n);
    struct str one = {rest->p, bar ? (size_t)(bar - rest->p) : rest->n};
    *rest = str_skip(*rest, one.n + 1);
    return one;
}

int key_choice(enum key_id id, struct str choice)
{
    struct str rest = str_of(key_table[id].choices);
    for (int i = 0; rest.n; i++) {
        if (str_eq(next_choice(&rest), choice))
            return i;
    }
    return -1;
}

struct str key_choice_name(enum key_id id, unsigned index)
{
    struct str rest = str_of(key_table[id].choices), one = {"", 0};
    for (unsigned i = 0; i <= index && rest.n; i++)
        one = next_choice(&rest);
    return one;
}

struct str nearest_choice(const char *choices, struct str name)
{
    struct str rest = str_of(choices), best = {"", 0};
    unsigned nearest = 99;
    while (rest.n) {
        struct str one = next_choice(&rest);
        unsigned d = str_distance(one, name);
        if (d < nearest) {
            nearest = d;
            best = one;
        }
    }
    return is_near(nearest, name) ? best : (struct str){"", 0};
}
