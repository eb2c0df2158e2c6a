/*
 * Reads our language and flags into statements. Forms are checked here, so that an error is reported with its location;
 * what depends on the environment (home, variables, directories) or on other layers is checked by merge.c.
 */
#include <errno.h>
#include <stdio.h>

#include "match/glob.h"
#include "match/path.h"
#include "policy/domain.h"
#include "policy/path.h"
#include "policy/said.h"

#define MIB ((uint64_t)1 << 20)

/* Bounds of limits: the least with which a program can start at all, and the most that the kernel can count. A limit that has none
   here takes no value. */
static const struct {
    uint64_t least, most;
    char least_text[8], most_text[12], examples[24];
} bounds[] = {
    [KEY_MEMORY] = {4 * MIB, (uint64_t)1 << 60, "4M", "1048576T", "512M, 2G or none"},
    [KEY_CPUS] = {10, 65536000, "0.01", "65536", "0.5, 2, 50% or none"},
    [KEY_PIDS] = {2, 4194304, "2", "4194304", "50 or none"}, /* PID_MAX_LIMIT, proc_pid_max(5) */
    [KEY_DISK] = {65536, (uint64_t)1 << 60, "64K", "1048576T", "1G or none"},
    [KEY_TIMEOUT] = {1, 315360000000, "1ms", "3650d", "90s, 2m, 1h30m or none"},
    [KEY_GRACE] = {0, 86400000, "0", "1d", "5s or 500ms"},
    [KEY_OUTPUT] = {1, (uint64_t)1 << 60, "1", "1048576T", "16M or none"},
    [KEY_NET_ASK_TIME] = {1000, 3600000, "1s", "1h", "30s"},
    [KEY_OPEN_FILES] = {16, (uint64_t)1 << 30, "16", "1073741824", "1024 or none"},
};

static const char *what_is(enum policy_type t)
{
    return t == TYPE_SIZE       ? "a size"
           : t == TYPE_DURATION ? "a time"
           : t == TYPE_CPUS     ? "a number of processors"
                                : "a count";
}

int limit_value(enum key_id id, struct str text, uint64_t *ret, struct err *e)
{
    uint64_t v = 0;
    enum policy_type t = key_table[id].type;

    bool ends = id == KEY_GRACE || id == KEY_NET_ASK_TIME;
    if (str_is(text, "none") && !ends) {
        *ret = LIMIT_NONE;
        return 0;
    }
    int r = t == TYPE_SIZE       ? parse_size(text, &v)
            : t == TYPE_DURATION ? parse_duration(text, &v)
            : t == TYPE_CPUS     ? parse_cpus(text, &v)
                                 : parse_count(text, &v);
    if (r == -EINVAL)
        return err_say(e, ERR_POLICY, "'%.*s' is not %s (write %s)", STR_SAID(text), what_is(t), bounds[id].examples);
    if (r < 0 || v > bounds[id].most)
        return err_say(e, ERR_POLICY, "'%.*s' is more than the maximum of %s%s", STR_SAID(text), bounds[id].most_text,
                       ends ? "" : "; write none for no limit");
    if (v < bounds[id].least)
        return err_say(e, ERR_POLICY, "'%.*s' is less than the minimum of %s%s", STR_SAID(text), bounds[id].least_text,
                       ends ? "" : "; write none for no limit");
    *ret = v;
    return 0;
}

int user_value(struct str text, enum user_mode *ret_mode, uint32_t *ret_uid, uint32_t *ret_gid, struct err *e)
{
    const char *colon = memchr(text.p, ':', text.n);
    uint64_t uid, gid;

    if (str_is(text, "keep") || str_is(text, "root")) {
        *ret_mode = str_is(text, "root") ? USER_ROOT : USER_KEEP;
        *ret_uid = *ret_gid = 0;
        return 0;
    }
    /* 4294967295 is (uid_t)-1, "no change" to chown(2) and setresuid(2). */
    if (!colon || parse_count((struct str){text.p, (size_t)(colon - text.p)}, &uid) < 0 ||
        parse_count(str_skip(text, (size_t)(colon + 1 - text.p)), &gid) < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX)
        return err_say(e, ERR_POLICY, "'%.*s' is not keep, root or UID:GID", STR_SAID(text));
    *ret_mode = USER_IDS;
    *ret_uid = (uint32_t)uid;
    *ret_gid = (uint32_t)gid;
    return 0;
}

static int check_choice(enum key_id id, struct str s, struct err *e)
{
    char list[128];
    size_t n = 0;

    if (key_choice(id, s) >= 0)
        return 0;
    for (const char *c = key_table[id].choices; *c && n < sizeof list - 3; c++) {
        list[n++] = *c == '|' ? ',' : *c;
        if (*c == '|')
            list[n++] = ' ';
    }
    list[n] = 0;
    struct str near = nearest_choice(key_table[id].choices, s);
    if (near.n)
        return err_say(e, ERR_POLICY, "'%.*s' is not one of %s (did you mean '%.*s'?)", STR_SAID(s), list, (int)near.n,
                       near.p);
    return err_say(e, ERR_POLICY, "'%.*s' is not one of %s", STR_SAID(s), list);
}

static int check_feature(struct str s, struct err *e)
{
    const char *near = NULL;
    unsigned nearest = 99;

    for (int i = 0; i < FEATURE_COUNT; i++) {
        unsigned d = str_distance(s, str_of(feature_name(i)));
        if (d == 0)
            return 0;
        if (d < nearest) {
            nearest = d;
            near = feature_name(i);
        }
    }
    if (near && is_near(nearest, s))
        return err_say(e, ERR_POLICY, "unknown guarantee '%.*s' (did you mean '%s'?)", STR_SAID(s), near);
    return err_say(e, ERR_POLICY, "unknown guarantee '%.*s'; for their names see: pinfold doctor, man pinfold-policy",
                   STR_SAID(s));
}

static int check_variable(struct str s, bool prefixes, struct err *e)
{
    struct str name = s;
    if (prefixes && name.n && name.p[name.n - 1] == '*')
        name.n--;
    bool ok = name.n || s.n; /* "*" alone means every variable */
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        ok = ok && (c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (i > 0 && c >= '0' && c <= '9'));
    }
    return ok ? 0
              : err_say(e, ERR_POLICY, "'%.*s' is not a variable's name%s", STR_SAID(s),
                        prefixes ? " or a prefix followed by '*'" : "");
}

/*
 * The reference of an image becomes an argument of other programs, so it must not begin with '-'. The alphabet is that
 * of the OCI distribution specification with registry, tag and digest.
 */
static int check_image(struct str s, struct err *e)
{
    bool ok = s.n > 0 && s.n <= 512;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        ok = ok && (word || (i > 0 && strchr("._-/:@+", c) && c));
    }
    return ok ? 0 : err_say(e, ERR_POLICY, "'%.*s' is not an image's name, such as debian:12", STR_SAID(s));
}

/* Texts that become arguments of docker: no option, and only one word. */
static int check_engine_word(enum key_id key, struct str s, struct err *e)
{
    static const char *const what[] = {"a platform, such as linux/arm64", "the name of a runtime, such as runsc",
                                       "the address of a daemon, such as unix:///run/docker.sock",
                                       "the name of a docker context"};
    bool ok = s.n > 0 && s.n <= 512 && s.p[0] != '-';
    for (size_t i = 0; i < s.n; i++)
        ok = ok && (unsigned char)s.p[i] > ' ' && s.p[i] != 127;
    return ok ? 0 : err_say(e, ERR_POLICY, "'%.*s' is not %s", STR_SAID(s), what[key - KEY_PLATFORM]);
}

/* A branch's name, whose last component may be a pattern. */
static int check_branch(struct str s, struct err *e)
{
    struct str part, last = {0};
    size_t at = 0;
    if (str_starts(s, STR("refs/")))
        return err_say(e, ERR_POLICY, "'%.*s' is a full ref name; write the branch's, such as main", STR_SAID(s));
    for (bool first = true; part_next(s, &at, &part); first = false) {
        bool pattern = !first && (memchr(last.p, '*', last.n) || memchr(last.p, '?', last.n) ||
                                  memchr(last.p, '[', last.n) || memchr(last.p, '\\', last.n));
        if (pattern)
            return err_say(e, ERR_POLICY, "'%.*s' has a pattern before its last '/'; only the last part can be one",
                           STR_SAID(s));
        last = part;
    }
    const char *wrong = last.n ? glob_wrong(last) : NULL;
    if (wrong)
        return err_say(e, ERR_POLICY, "'%.*s' %s", STR_SAID(s), wrong);
    bool ok = s.n > 0 && s.n <= 240 && s.p[0] != '-';
    for (size_t i = 0; i < s.n; i++)
        ok = ok && (unsigned char)s.p[i] > ' ' && s.p[i] != 127 &&
             (s.p[i] != '/' || (i > 0 && i + 1 < s.n && s.p[i + 1] != '/'));
    return ok ? 0 : err_say(e, ERR_POLICY, "'%.*s' is not a branch's name, such as main or release/*", STR_SAID(s));
}

static int check_names(const struct said *s, struct arena *scratch, struct err *e)
{
    const char *text;
    switch (s->key) {
    case KEY_PUBLISH:
        return str_is(s->a, "none") ? 0 : publish_form(s->a, scratch, &text, e);
    case KEY_REACH:
        return reach_form(s->a, scratch, &text, e);
    case KEY_GIT_PROTECT:
        return check_branch(s->a, e);
    case KEY_GPG_AGENT:
    case KEY_SSH_AGENT: /* its form is judged with its path (merge_keys.c) */
        return 0;
    case KEY_ENV_PASS:
    case KEY_ENV_REMOVE:
        return check_variable(s->a, true, e);
    default:
        return check_feature(s->a, e);
    }
}

static int check_text(const struct said *s, struct arena *scratch, struct err *e)
{
    enum user_mode mode;
    uint32_t uid, gid;
    const char *text;

    switch (s->key) {
    case KEY_USER:
        return user_value(s->a, &mode, &uid, &gid, e);
    case KEY_IMAGE:
        return check_image(s->a, e);
    case KEY_PLATFORM:
    case KEY_RUNTIME:
    case KEY_DOCKER_HOST:
    case KEY_DOCKER_CONTEXT:
        return check_engine_word(s->key, s->a, e);
    case KEY_HOSTNAME:
        return hostname_form(s->a, scratch, &text, e);
    default:
        if (!s->a.n || memchr(s->a.p, 0, s->a.n) || s->a.n > MAX_PATH_TEXT)
            return err_say(e, ERR_POLICY, "'%.*s' is not the name of a profile or file", STR_SAID(s->a));
        return 0;
    }
}

int said_check(const struct said *s, struct arena *scratch, struct err *e)
{
    const char *text;
    uint64_t value;
    enum path_forms forms = path_forms_of(s->key == KEY_HIDE || s->key == KEY_PROTECT, s->bits & SAID_FLAG);

    if (s->key == KEY_VERSION)
        return str_is(s->a, "1")
                   ? 0
                   : err_say(e, ERR_POLICY, "unknown version '%.*s'; the only version is 1", STR_SAID(s->a));
    switch (key_table[s->key].type) {
    case TYPE_BOOL:
        return str_is(s->a, "true") || str_is(s->a, "false")
                   ? 0
                   : err_say(e, ERR_POLICY, "'%.*s' is not true or false", STR_SAID(s->a));
    case TYPE_TEXT:
        return check_text(s, scratch, e);
    case TYPE_CHOICE:
        return check_choice(s->key, s->a, e);
    case TYPE_SIZE:
    case TYPE_DURATION:
    case TYPE_COUNT:
    case TYPE_CPUS:
        return limit_value(s->key, s->a, &value, e);
    case TYPE_PATH:
    case TYPE_PATHS:
        return path_expand(NULL, s->a, forms, scratch, NULL, e);
    case TYPE_NAMES:
        return check_names(s, scratch, e);
    case TYPE_DOMAINS:
        return s->key == KEY_ALLOW && domain_is_loopback(s->a)
                   ? err_say(e, ERR_POLICY, "'%.*s': %s", STR_SAID(s->a), DOMAIN_LOOPBACK)
                   : domain_rule_form(s->a, scratch, &text, e);
    case TYPE_PORTS:
        return port_rule_form(s->a, scratch, &text, e);
    case TYPE_GUARDS:
        return guard_name_form(s->a, s->key == KEY_GUARD_ROOT || s->key == KEY_GUARD_DAILY || s->key == KEY_GUARD_ALLOW,
                               e);
    case TYPE_ENV:
        if (memchr(s->b.p, 0, s->b.n))
            return err_say(e, ERR_POLICY, "the value of '%.*s' contains a NUL byte", STR_SAID(s->a));
        return check_variable(s->a, false, e);
    case TYPE_MOUNTS:
        break;
    }
    int r = path_expand(NULL, s->a, forms, scratch, NULL, e);
    return r < 0 ? r : path_expand(NULL, s->b, forms, scratch, NULL, e);
}

int said_add(const struct source *src, struct said s)
{
    auto_arena struct arena *scratch = arena_new(16u << 20);
    struct said_list *list = src->list;

    if (!scratch)
        return err_sys(src->e, ERR_SYSTEM, ENOMEM, "%s", src->file);
    int r = said_check(&s, scratch, src->e);
    if (r < 0) {
        /* "file:3:5: limits.memory: ..." but "--memory: ...", which includes the key. */
        if (s.line)
            r = err_wrap(src->e, r, "%s", key_table[s.key].path);
        return place_wrap(src->e, r, src->file, s.line, s.column);
    }
    if (list->n >= MAX_POLICY_RULES)
        return place_say(src->e, ERR_POLICY, src->file, s.line, s.column, "too many rules (a policy can have %d)",
                         MAX_POLICY_RULES);
    struct said *slot = arena_push(list->mem, &list->items, &list->n, sizeof *slot);
    if (!slot)
        return err_sys(src->e, ERR_SYSTEM, ENOMEM, "%s", src->file);
    if (key_table[s.key].type == TYPE_GUARDS && str_starts(s.a, STR(GUARD_DEEP))) {
        s.a = str_skip(s.a, sizeof GUARD_DEEP - 1);
        s.bits |= SAID_DEEP;
    }
    if (key_table[s.key].type == TYPE_GUARDS && s.a.p[s.a.n - 1] == '/') {
        s.a.n--;
        s.bits |= SAID_DIRECTORY;
    }
    *slot = s;
    return 0;
}

static int wrong_type(const struct source *src, enum key_id id, const struct node *n, const char *wanted)
{
    if (node_is_null(n))
        return place_say(src->e, ERR_POLICY, src->file, n->line, n->column,
                         "%s has no value (write %s, or leave the key out)", key_table[id].path, wanted);
    return place_say(src->e, ERR_POLICY, src->file, n->line, n->column, "%s must be %s, not %s", key_table[id].path,
                     wanted, node_kind_name(n));
}

static struct said said_at(enum key_id id, const struct node *n, struct str a)
{
    return (struct said){.key = (uint16_t)id, .line = n->line, .column = n->column, .a = a};
}

/* Reads a mapping with exactly these keys. `ret` gets the values or NULLs. */
static int read_fields(const struct source *src, enum key_id id, const struct node *map, const char *const names[],
                       const struct node *ret[])
{
    for (size_t f = 0; names[f]; f++)
        ret[f] = NULL;
    for (size_t i = 0; i < map->n; i++) {
        const struct node *key = &map->items[2 * i];
        size_t f = 0;
        while (names[f] && !str_is(key->text, names[f]))
            f++;
        if (!names[f]) {
            auto_buf struct buf list = BUF(256);
            for (f = 0; names[f]; f++)
                buf_printf(&list, "%s%s", f ? ", " : "", names[f]);
            return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                             "unknown key '%.*s' in %s (known: %s)", STR_SAID(key->text), key_table[id].path,
                             buf_cstr(&list));
        }
        ret[f] = &map->items[2 * i + 1];
    }
    return 0;
}

static int read_bool(const struct source *src, enum key_id id, const char *field, const struct node *n, bool *ret)
{
    if (n && (n->kind != NODE_SCALAR || !(str_is(n->text, "true") || str_is(n->text, "false"))))
        return place_say(src->e, ERR_POLICY, src->file, n->line, n->column, "%s: %s is true or false",
                         key_table[id].path, field);
    *ret = n && str_is(n->text, "true");
    return 0;
}

/* files.rw and files.ro also accept {path: P, optional: true}, files.hide {path: P, absent: true}. */
static int read_path_item(const struct source *src, enum key_id id, const struct node *n)
{
    const char *const mark = id == KEY_HIDE ? "absent" : "optional";
    const char *const names[] = {"path", mark, NULL};
    const struct node *field[2];
    bool marked;

    int r = read_fields(src, id, n, names, field);
    if (r == 0 && (!field[0] || field[0]->kind != NODE_SCALAR))
        r = place_say(src->e, ERR_POLICY, src->file, n->line, n->column,
                      "%s: an entry must be PATH or {path: PATH, %s: true}", key_table[id].path, mark);
    if (r == 0)
        r = read_bool(src, id, mark, field[1], &marked);
    if (r < 0)
        return r;
    struct said s = said_at(id, field[0], field[0]->text);
    s.bits = !marked ? 0 : id == KEY_HIDE ? SAID_ABSENT : SAID_OPTIONAL;
    return said_add(src, s);
}

static int read_list(const struct source *src, enum key_id id, const struct node *list)
{
    if (list->kind != NODE_LIST)
        return wrong_type(src, id, list, "a list, as in [A, B]");
    for (size_t i = 0; i < list->n; i++) {
        const struct node *n = &list->items[i];
        int r;
        if (n->kind == NODE_MAP && (id == KEY_RW || id == KEY_RO || id == KEY_HIDE))
            r = read_path_item(src, id, n);
        else if (n->kind != NODE_SCALAR)
            r = place_say(src->e, ERR_POLICY, src->file, n->line, n->column, "an entry of %s must be a string, not %s",
                          key_table[id].path, node_kind_name(n));
        else if (node_is_null(n) && !(key_table[id].type == TYPE_PATHS && str_is(n->text, "~")))
            r = place_say(src->e, ERR_POLICY, src->file, n->line, n->column, "an entry of %s is empty",
                          key_table[id].path);
        else
            r = said_add(src, said_at(id, n, n->text));
        if (r < 0)
            return r;
    }
    return 0;
}

/* Number of backslashes before s.p[at]. */
static size_t backslashes(struct str s, size_t at)
{
    size_t n = 0;
    while (n < at && s.p[at - n - 1] == '\\')
        n++;
    return n;
}

/* In a flag's path a backslash is special only before a colon: "\:" is a colon, and "\\:" a backslash and a
   separator. */
static int plain_colons(struct arena *mem, struct str *s)
{
    char *to = arena_zero(mem, s->n + 1);
    size_t n = 0;
    if (!to)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        size_t run = 0;
        while (i + run < s->n && s->p[i + run] == '\\')
            run++;
        size_t kept = i + run == s->n        ? (run + 1) / 2
                      : s->p[i + run] == ':' ? run / 2
                                             : run; /* a colon ended it, too */
        for (size_t k = 0; k < kept; k++)
            to[n++] = '\\';
        i += run;
        if (i < s->n)
            to[n++] = s->p[i];
    }
    *s = (struct str){to, n};
    return 0;
}

/* Parses "SRC:DST", "SRC:DST:ro", "SRC:DST:rw", "SRC:DST:nolinks"; a colon in a path is written \: */
static int split_mount(struct str text, struct said *s, struct err *e)
{
    struct str part[3] = {{"", 0}, {"", 0}, {"", 0}};
    size_t n = 0, from = 0;

    for (size_t i = 0; i <= text.n; i++) {
        if (i < text.n && (text.p[i] != ':' || backslashes(text, i) % 2))
            continue;
        if (n < 3)
            part[n] = (struct str){text.p + from, i - from};
        n++;
        from = i + 1;
    }
    bool ro = n == 3 && str_is(part[2], "ro");
    bool no_links = n == 3 && str_is(part[2], "nolinks");
    if (n < 2 || n > 3 || (n == 3 && !ro && !no_links && !str_is(part[2], "rw")))
        return err_say(e, ERR_POLICY,
                       "'%.*s' is not SRC:DST, SRC:DST:ro or SRC:DST:nolinks (write \\: for a colon in a path)",
                       STR_SAID(text));
    s->a = part[0];
    s->b = part[1];
    s->bits = ro ? SAID_READ_ONLY : no_links ? SAID_NO_LINKS : 0;
    return 0;
}

static int read_mount(const struct source *src, const struct node *n)
{
    static const char *const names[] = {"from", "to", "read_only", "no_links", NULL};
    const struct node *field[4];
    struct said s = said_at(KEY_MOUNTS, n, n->text);
    bool ro, no_links;
    int r;

    if (n->kind == NODE_SCALAR) {
        r = split_mount(n->text, &s, src->e);
        if (r < 0)
            return place_wrap(src->e, err_wrap(src->e, r, "files.mounts"), src->file, n->line, n->column);
        return said_add(src, s);
    }
    if (n->kind != NODE_MAP)
        return wrong_type(src, KEY_MOUNTS, n, "SRC:DST[:ro] or a mapping");
    r = read_fields(src, KEY_MOUNTS, n, names, field);
    if (r == 0 && (!field[0] || !field[1] || field[0]->kind != NODE_SCALAR || field[1]->kind != NODE_SCALAR))
        r = place_say(src->e, ERR_POLICY, src->file, n->line, n->column,
                      "an entry of files.mounts must be SRC:DST[:ro] or {from: SRC, to: DST, read_only: true}");
    if (r == 0)
        r = read_bool(src, KEY_MOUNTS, "read_only", field[2], &ro);
    if (r == 0)
        r = read_bool(src, KEY_MOUNTS, "no_links", field[3], &no_links);
    if (r < 0)
        return r;
    s.a = field[0]->text;
    s.b = field[1]->text;
    s.bits = (ro ? SAID_READ_ONLY : 0) | (no_links ? SAID_NO_LINKS : 0);
    return said_add(src, s);
}

static int read_mounts(const struct source *src, const struct node *list)
{
    if (list->kind != NODE_LIST)
        return wrong_type(src, KEY_MOUNTS, list, "a list, as in [A, B]");
    for (size_t i = 0; i < list->n; i++) {
        int r = read_mount(src, &list->items[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_env(const struct source *src, const struct node *map)
{
    if (map->kind != NODE_MAP)
        return wrong_type(src, KEY_ENV_SET, map, "a mapping of NAME: VALUE");
    for (size_t i = 0; i < map->n; i++) {
        const struct node *key = &map->items[2 * i], *value = key + 1;
        if (value->kind != NODE_SCALAR)
            return place_say(src->e, ERR_POLICY, src->file, value->line, value->column,
                             "env.set: a value must be a string, not %s", node_kind_name(value));
        if (node_is_null(value) && !str_is(value->text, "~"))
            return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                             "env.set: %.*s has no value (write \"\" for an empty one)", STR_SAID(key->text));
        struct said s = said_at(KEY_ENV_SET, key, key->text);
        s.b = value->text;
        int r = said_add(src, s);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_value(const struct source *src, enum key_id id, const struct node *n)
{
    switch (key_table[id].type) {
    case TYPE_MOUNTS:
        return read_mounts(src, n);
    case TYPE_ENV:
        return read_env(src, n);
    case TYPE_PATHS:
    case TYPE_NAMES:
    case TYPE_DOMAINS:
    case TYPE_PORTS:
    case TYPE_GUARDS:
        return read_list(src, id, n);
    default:
        if (n->kind != NODE_SCALAR || (node_is_null(n) && !(key_table[id].type == TYPE_PATH && str_is(n->text, "~"))))
            return wrong_type(src, id, n, key_table[id].type == TYPE_BOOL ? "true or false" : "text");
        return said_add(src, said_at(id, n, n->text));
    }
}

/* The section of a mistyped name: only a key with a mapping can be one. */
static struct str section_near(const struct node *key, struct str section)
{
    struct str best = {"", 0};
    unsigned least = 99;
    for (size_t i = 0; key[1].kind == NODE_MAP && !section.n && i < KEY_COUNT; i++) {
        const char *path = key_table[i].path, *dot = strchr(path, '.');
        struct str name = {path, dot ? (size_t)(dot - path) : 0};
        unsigned d = dot ? str_distance(key->text, name) : 99;
        if (d < least && is_near(d, key->text)) {
            least = d;
            best = name;
        }
    }
    return best;
}

static int unknown_key(const struct source *src, const struct node *key, struct str section, struct str path)
{
    bool dotted = memchr(key->text.p, '.', key->text.n) != NULL;
    const char *near = key_nearest(path);
    struct str meant = section_near(key, section);
    auto_buf struct buf there = BUF(1024);

    if (dotted && key_find(path) != KEY_COUNT) {
        const char *dot = strchr(near, '.');
        return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                         "unknown key '%s': sections are nested; write %.*s: {%s: ...}", near, (int)(dot - near), near,
                         dot + 1);
    }
    if (str_is(key->text, "<<"))
        return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                         "merge keys (<<) are not supported; write the keys out");
    if (meant.n)
        return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                         "unknown key '%.*s' (did you mean '%.*s'?)", STR_SAID(path), (int)meant.n, meant.p);
    if (near)
        return place_say(src->e, ERR_POLICY, src->file, key->line, key->column,
                         "unknown key '%.*s' (did you mean '%s'?)", STR_SAID(path), near);
    key_siblings(section, &there);
    return place_say(src->e, ERR_POLICY, src->file, key->line, key->column, "unknown key '%.*s' (known: %s)",
                     STR_SAID(path), buf_cstr(&there));
}

static int no_section(const struct source *src, const struct node *value, struct str path)
{
    if (node_is_null(value))
        return place_say(src->e, ERR_POLICY, src->file, value->line, value->column,
                         "%.*s has no value (write a mapping, or leave the key out)", STR_SAID(path));
    return place_say(src->e, ERR_POLICY, src->file, value->line, value->column, "%.*s must be a mapping, not %s",
                     STR_SAID(path), node_kind_name(value));
}

static int read_section(const struct source *src, const struct node *map, struct str section)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct node *key = &map->items[2 * i], *value = key + 1;
        auto_buf struct buf path = BUF(MAX_POLICY_TEXT + 64);
        if (section.n) {
            buf_str(&path, section);
            buf_char(&path, '.');
        }
        buf_str(&path, key->text);
        if (!buf_ok(&path))
            return err_sys(src->e, ERR_SYSTEM, ENOMEM, "%s", src->file);
        enum key_id id = memchr(key->text.p, '.', key->text.n) ? KEY_COUNT : key_find(buf_view(&path));
        int r;
        if (id != KEY_COUNT)
            r = read_value(src, id, value);
        else if (!memchr(key->text.p, '.', key->text.n) && key_is_section(buf_view(&path)))
            r = value->kind == NODE_MAP ? read_section(src, value, buf_view(&path))
                                        : no_section(src, value, buf_view(&path));
        else
            r = unknown_key(src, key, section, buf_view(&path));
        if (r < 0)
            return r;
    }
    return 0;
}

int read_policy(const struct source *src, const struct node *root)
{
    if (root->kind != NODE_MAP) {
        if (node_is_null(root))
            return place_say(src->e, ERR_POLICY, src->file, root->line, root->column,
                             "the policy is empty; it needs at least 'version: 1'");
        return place_say(src->e, ERR_POLICY, src->file, root->line, root->column,
                         "a policy must be a mapping (lines of KEY: VALUE), not %s", node_kind_name(root));
    }
    return read_section(src, root, (struct str){"", 0});
}

int read_flag(const struct source *src, enum key_id id, struct str value)
{
    struct said s = {.key = (uint16_t)id, .a = value, .bits = SAID_FLAG};
    const char *equals = memchr(value.p, '=', value.n);

    if (id == KEY_MOUNTS) {
        int r = split_mount(value, &s, src->e);
        if (r < 0)
            return place_wrap(src->e, r, src->file, 0, 0);
        s.bits |= SAID_FLAG;
        if (plain_colons(src->list->mem, &s.a) < 0 || plain_colons(src->list->mem, &s.b) < 0)
            return err_sys(src->e, ERR_SYSTEM, ENOMEM, "%s", src->file);
    } else if (id == KEY_ENV_SET && equals) {
        s.a.n = (size_t)(equals - value.p);
        s.b = str_skip(value, s.a.n + 1);
    } else if (id == KEY_ENV_SET) {
        s.key = KEY_ENV_PASS;
    }
    return said_add(src, s);
}
