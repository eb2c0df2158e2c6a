/*
 * The environment: what the policy sets or passes, and a few variables that every box has. Nothing else enters: an
 * unforeseen variable may hold a secret or name a program.
 */
#include "plan/make.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct variables {
    struct making *m;
    const char **at; /* "NAME=value" */
    size_t n;
};

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static const char **find(const struct variables *v, const char *name, size_t n)
{
    for (size_t i = 0; i < v->n; i++) {
        if (name_length(v->at[i]) == n && memcmp(v->at[i], name, n) == 0)
            return &v->at[i];
    }
    return NULL;
}

/* Puts "NAME=value" in place of an existing entry of that name, or at the end. */
static int put(struct variables *v, const char *entry)
{
    const char **at = entry ? find(v, entry, name_length(entry)) : NULL;
    if (entry && !at)
        at = arena_push(v->m->mem, &v->at, &v->n, sizeof *at);
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

static void take_out_at(struct variables *v, const char **at)
{
    memmove(at, at + 1, (size_t)(v->at + v->n - at - 1) * sizeof *at);
    v->n--;
}

static void take_out(struct variables *v, const char *name)
{
    const char **at = find(v, name, strlen(name));
    if (at)
        take_out_at(v, at);
}

static bool rule_matches(const struct env_rule *r, const char *name, size_t n)
{
    size_t k = strlen(r->name);
    if (k && r->name[k - 1] == '*')
        return n >= k - 1 && memcmp(r->name, name, k - 1) == 0;
    return n == k && memcmp(r->name, name, n) == 0;
}

/* The rule for a name: the last one that matches. */
static const struct env_rule *rule_for(const struct policy *p, const char *name, size_t n)
{
    for (size_t i = p->n_env; i > 0; i--) {
        if (rule_matches(&p->env[i - 1], name, n))
            return &p->env[i - 1];
    }
    return NULL;
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
static void take_out_patterns(struct variables *v, const struct policy *p)
{
    for (size_t i = v->n; i > 0; i--) {
        const struct env_rule *rule = rule_for(p, v->at[i - 1], name_length(v->at[i - 1]));
        if (rule && rule->remove)
            take_out_at(v, &v->at[i - 1]);
    }
}

int env_make(struct making *m)
{
    struct variables v = {.m = m};
    const struct policy *p = m->policy;
    int r = egress_env(m);
    if (r == 0)
        r = put_own(&v);
    if (r == 0 && m->facts->image)
        r = put_image(&v);
    for (const char *const *e = m->ask->environ; r == 0 && e && *e; e++) {
        size_t n = name_length(*e);
        const struct env_rule *rule = n && (*e)[n] ? rule_for(p, *e, n) : NULL;
        if (!rule || rule->remove || rule->value || image_decides(m, rule, *e) || is_moved_state(m, *e))
            continue;
        /* The box has the home directory at its real path; a link to it may be at a path that shows something else
           there. */
        const bool home = m->facts->home && n == 4 && memcmp(*e, "HOME", 4) == 0;
        r = home ? put_value(&v, "HOME", m->facts->home) : put(&v, arena_text(m->mem, *e));
    }
    take_out_patterns(&v, p);
    for (size_t i = 0; r == 0 && i < m->n_set_env; i++)
        r = put(&v, m->set_env[i]);
    for (size_t i = 0; r == 0 && i < p->n_env; i++) {
        const struct env_rule *rule = &p->env[i];
        if ((!rule->remove && !rule->value) || rule_for(p, rule->name, strlen(rule->name)) != rule)
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
    const char **end = r == 0 ? arena_push(m->mem, &v.at, &v.n, sizeof *end) : NULL;
    if (!end)
        return r < 0 ? r : no_memory(m);
    m->plan->env = v.at;
    return 0;
}
