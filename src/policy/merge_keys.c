/* Merges the keys that a box may sign with, of the user's ssh-agent and gpg-agent. Which keys those are is found when the
   box starts (run/keys). */
#include "policy/merge.h"

#include "match/host.h"

/* A path is recognised by how it begins; a fingerprint or a comment never begins so. */
static int ssh_key_name(struct merge *m, const struct said *s, struct str key, const char **ret)
{
    if (key.p[0] != '/' && !str_starts(key, STR("~/")) && !str_starts(key, STR("./")) && !str_starts(key, STR("../"))) {
        *ret = merge_keep(m, key);
        return *ret ? 0 : merge_no_memory(m);
    }
    struct said part = *s;
    struct path_text t;
    part.a = key;
    int r = merge_literal(m, &part, &t);
    if (r == 0)
        *ret = t.path;
    return r;
}

/* One KEY or KEY=HOST of a list with commas. */
static int merge_ssh_key(struct merge *m, const struct said *s, struct str one)
{
    struct policy *p = m->p;
    struct host_rule rule;
    struct err why;
    const char *equals = memrchr(one.p, '=', one.n), *key, *host = NULL;
    struct str name = {one.p, equals ? (size_t)(equals - one.p) : one.n};
    struct str at = equals ? str_skip(one, name.n + 1) : (struct str){0};

    if (!name.n || (equals && !at.n))
        return merge_say(m, ERR_POLICY, s,
                         "'%.*s' is not KEY or KEY=HOST; KEY is a fingerprint (SHA256:...), a public key file or the "
                         "comment that 'ssh-add -l' shows",
                         STR_SAID(one));
    int r = ssh_key_name(m, s, name, &key);
    if (r < 0)
        return r;
    if (equals && !str_is(at, "git") && host_rule_parse(at, RULE_ALLOW, &rule, &why) < 0)
        return merge_say(m, ERR_POLICY, s, "ssh key for '%.*s': %s", STR_SAID(at), why.text);
    if (equals && !(host = merge_keep(m, at)))
        return merge_no_memory(m);
    for (size_t i = 0; i < p->n_ssh_keys; i++) {
        if (same(p->ssh_keys[i].key, key) && same(p->ssh_keys[i].host, host))
            return 0;
    }
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    struct ssh_key_rule *slot = arena_push(p->mem, &p->ssh_keys, &p->n_ssh_keys, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct ssh_key_rule){key, host, merge_origin(m, s)};
    return 0;
}

/* Which key that is, only gpg knows (run/keys/gpg.c). */
static int merge_gpg_key(struct merge *m, const struct said *s, struct str one)
{
    struct policy *p = m->p;
    const char *key = merge_keep(m, one);
    if (!key)
        return merge_no_memory(m);
    if (one.n < 3 || one.n > 200 || one.p[0] == '-')
        return merge_say(
            m, ERR_POLICY, s,
            "'%.*s' does not name a key of gpg: write a keygrip, a fingerprint, a user id or its address, as "
            "'gpg --list-secret-keys --with-keygrip' shows them",
            STR_SAID(one));
    for (size_t i = 0; i < p->n_gpg_keys; i++) {
        if (same(p->gpg_keys[i].key, key))
            return 0;
    }
    if (!m->text->trusted)
        return tighten_check(m, s, NULL);
    struct gpg_key_rule *slot = arena_push(p->mem, &p->gpg_keys, &p->n_gpg_keys, sizeof *slot);
    if (!slot)
        return merge_no_memory(m);
    *slot = (struct gpg_key_rule){key, merge_origin(m, s)};
    return 0;
}

int merge_agent_keys(struct merge *m, const struct said *s)
{
    int (*const one)(struct merge *, const struct said *, struct str) =
        s->key == KEY_SSH_AGENT ? merge_ssh_key : merge_gpg_key;
    struct str rest = s->a;
    int r = rest.n ? 0 : one(m, s, rest);
    while (r == 0 && rest.n)
        r = one(m, s, str_until(&rest, ','));
    return r;
}
