/*
 * The environment: what the policy sets or passes, and a few variables that every box has. Nothing else enters: an
 * unforeseen variable may hold a secret or name a program.
 */
#include "plan/make.h"
#include "policy/text/table.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What `found` knows of texts. */
enum { OF_VARIABLE /* its place in `at` */, OF_NAME, OF_PREFIX /* of a pattern; their rules in the policy */ };

struct variables {
    struct making *m;
    const char **at; /* "NAME=value"; NULL: taken out */
    size_t n, longest /* prefix of a pattern, and one */;
    struct table found; /* a policy may have thousands of rules */
};

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static const char **find(const struct variables *v, const char *name, size_t n)
{
    const uint32_t *i = table_find(&v->found, OF_VARIABLE, (struct str){name, n});
    return i && v->at[*i] ? &v->at[*i] : NULL;
}

/* Puts "NAME=value" in place of an existing entry of that name, or at the end. */
static int put(struct variables *v, const char *entry)
{
    const size_t n = entry ? name_length(entry) : 0;
    const char **at = entry ? find(v, entry, n) : NULL;
    if (entry && !at) {
        bool new;
        uint32_t *place = table_put(&v->found, OF_VARIABLE, (struct str){entry, n}, 0, &new);
        at = place ? arena_push(v->m->mem, &v->at, &v->n, sizeof *at) : NULL;
        if (at)
            *place = (uint32_t)(at - v->at);
    }
    if (!at)
        return no_memory(v->m);
    *at = entry;
    return 0;
}

static int put_value(struct variables *v, const char *name, const char *value)
{
    size_t n = strlen(name), k = strlen(value);
    char *entry = arena_zero(v->m->mem, n + k + 2);
    if (!entry)
        return no_memory(v->m);
    memcpy(entry, name, n);
    entry[n] = '=';
    memcpy(entry + n + 1, value, k);
    return put(v, entry);
}

static void take_out(struct variables *v, const char *name)
{
    const char **at = find(v, name, strlen(name));
    if (at)
        *at = NULL;
}

/* Of rules of one text the last counts. */
static int find_rules(struct variables *v, const struct policy *p)
{
    v->found.mem = v->m->mem;
    bool ok = table_reserve(&v->found, p->n_env + 32);
    for (size_t i = 0; ok && i < p->n_env; i++) {
        const size_t k = strlen(p->env[i].name);
        const bool pattern = k && p->env[i].name[k - 1] == '*';
        bool new;
        uint32_t *at = table_put(&v->found, pattern ? OF_PREFIX : OF_NAME, (struct str){p->env[i].name, k - pattern},
                                 (uint32_t)i, &new);
        if (at)
            *at = (uint32_t)i;
        if (pattern && k > v->longest)
            v->longest = k;
        ok = at != NULL;
    }
    return ok ? 0 : no_memory(v->m);
}

/* The rule for a name: the last one that matches. */
static const struct env_rule *rule_for(const struct variables *v, const char *name, size_t n)
{
    const uint32_t *at = table_find(&v->found, OF_NAME, (struct str){name, n});
    size_t last = at ? *at + (size_t)1 : 0;
    for (size_t k = 0; k <= n && k < v->longest; k++) {
        at = table_find(&v->found, OF_PREFIX, (struct str){name, k});
        last = at && *at >= last ? *at + (size_t)1 : last;
    }
    return last ? &v->m->policy->env[last - 1] : NULL;
}

/*
 * Without a network a name is asked for in vain, and programs that ask again and again do so for a minute (npm) or ten
 * seconds (pip). These variables are theirs; what the caller passes or the policy sets has precedence.
 */
static int put_no_retries(struct variables *v)
{
    static const char *const all[] = {"npm_config_fetch_retries=0", "PIP_RETRIES=0", "YARN_HTTP_RETRY=0",
                                      "UV_HTTP_RETRIES=0", "CARGO_NET_RETRY=0"};
    int r = 0;
    for (size_t i = 0; r == 0 && v->m->policy->net == NET_NONE && i < sizeof all / sizeof *all; i++)
        r = put(v, all[i]);
    return r;
}

static int put_own(struct variables *v)
{
    const struct facts *f = v->m->facts;
    const char *user = v->m->policy->user == USER_ROOT ? "root" : f->user_name;
    int r = put(v, "PINFOLD=1");
    if (r == 0 && f->home)
        r = put_value(v, "HOME", f->home);
    if (r == 0 && user)
        r = put_value(v, "USER", user);
    if (r == 0 && user)
        r = put_value(v, "LOGNAME", user);
    if (r == 0)
        r = put_value(v, "PATH", DEFAULT_PATH);
    if (r == 0)
        r = put(v, "TMPDIR=/tmp");
    return r == 0 ? put_no_retries(v) : r;
}

/*
 * An image has its own environment, above all PATH, which its programs need more than what a built-in profile passes.
 */
static int put_image(struct variables *v)
{
    int r = 0;
    for (const char *const *e = v->m->facts->image->env; r == 0 && e && *e; e++)
        r = name_length(*e) && (*e)[name_length(*e)] ? put(v, *e) : 0;
    return r;
}

/* A variable that a built-in profile passes is left out if it names the host's files, which the image does not have,
   or if the image sets it. */
static bool image_decides(struct making *m, const struct env_rule *rule, const char *entry)
{
    size_t n = name_length(entry);
    if (!m->facts->image || rule->origin >= m->policy->n_origins ||
        m->policy->origins[rule->origin].layer != LAYER_BUILTIN || strncmp(entry, "HOME=", 5) == 0)
        return false;
    if (entry[n] && entry[n + 1] == '/')
        return true;
    for (const char *const *e = m->facts->image->env; e && *e; e++) {
        if (name_length(*e) == n && memcmp(*e, entry, n) == 0)
            return true;
    }
    return false;
}

/* Where pinfold keeps this box's things on the host for want of a home: nothing of the box's. */
static bool is_moved_state(const struct making *m, const char *entry)
{
    static const char name[] = "XDG_STATE_HOME=";
    return m->ask->state_home && strncmp(entry, name, sizeof name - 1) == 0 &&
           same(entry + sizeof name - 1, m->ask->state_home);
}

/* What a pattern removes goes before pinfold adds variables of its own, such as those of the proxy. */
static void take_out_patterns(struct variables *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct env_rule *rule = rule_for(v, v->at[i], name_length(v->at[i]));
        if (rule && rule->remove)
            v->at[i] = NULL;
    }
}

/* The list ends with NULL. */
static int close_gaps(struct variables *v)
{
    size_t n = 0;
    if (!arena_push(v->m->mem, &v->at, &v->n, sizeof *v->at))
        return no_memory(v->m);
    for (size_t i = 0; i < v->n; i++) {
        if (v->at[i])
            v->at[n++] = v->at[i];
    }
    v->at[n] = NULL;
    return 0;
}

int env_make(struct making *m)
{
    struct variables v = {.m = m};
    const struct policy *p = m->policy;
    int r = egress_env(m);
    if (r == 0)
        r = find_rules(&v, p);
    if (r == 0)
        r = put_own(&v);
    if (r == 0 && m->facts->image)
        r = put_image(&v);
    for (const char *const *e = m->ask->environ; r == 0 && e && *e; e++) {
        size_t n = name_length(*e);
        const struct env_rule *rule = n && (*e)[n] ? rule_for(&v, *e, n) : NULL;
        if (!rule || rule->remove || rule->value || image_decides(m, rule, *e) || is_moved_state(m, *e))
            continue;
        /* The box has the home directory at its real path; a link to it may be at a path that shows something else
           there. */
        const bool home = m->facts->home && n == 4 && memcmp(*e, "HOME", 4) == 0;
        r = home ? put_value(&v, "HOME", m->facts->home) : put(&v, arena_text(m->mem, *e));
    }
    if (r == 0)
        take_out_patterns(&v);
    for (size_t i = 0; r == 0 && i < m->n_set_env; i++)
        r = put(&v, m->set_env[i]);
    for (size_t i = 0; r == 0 && i < p->n_env; i++) {
        const struct env_rule *rule = &p->env[i];
        if ((!rule->remove && !rule->value) || rule_for(&v, rule->name, strlen(rule->name)) != rule)
            continue;
        if (rule->remove)
            take_out(&v, rule->name);
        else
            r = put_value(&v, rule->name, rule->value);
    }
    /* These two always tell the truth, whatever was set. */
    if (r == 0)
        r = put(&v, "PINFOLD=1");
    if (r == 0)
        r = put_value(&v, "PWD", m->plan->cwd);
    if (r == 0)
        r = close_gaps(&v);
    m->plan->env = v.at;
    return r;
}
