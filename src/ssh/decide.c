/*
 * Decides about requests. A login is signed only for a session that the agent has seen bound to a host's key: the agent verifies
 * the host's own signature of the session's id, so a session with another host cannot be passed off as one with this host.
 */
#include "ssh/decide.h"

void ssh_bound_add(struct ssh_bound *b, const struct ssh_request *bind)
{
    b->forwarding |= bind->forwarding;
    if (b->n++)
        return;
    memcpy(b->session, bind->session.p, bind->session.n);
    memcpy(b->host_key, bind->host_key.p, bind->host_key.n);
    b->session_n = bind->session.n;
    b->host_key_n = bind->host_key.n;
}

bool ssh_key_named(const struct ssh_rules *rules, struct str key, size_t *ret_index)
{
    for (size_t i = 0; i < rules->n_keys; i++) {
        if (!str_eq(rules->keys[i].key, key))
            continue;
        *ret_index = i;
        return true;
    }
    return false;
}

static const char *login_why(const struct ssh_rules *rules, const struct ssh_bound *b, const struct ssh_request *r,
                             struct ssh_decision *d)
{
    const struct str bound_key = {b->host_key, b->host_key_n}, bound_session = {b->session, b->session_n};
    if (rules->gullible)
        return "a login, and the ssh-agent says yes to every session-bind without verifying it";
    if (b->n == 0)
        return "a login without a session that the agent has verified (session-bind; OpenSSH 8.9)";
    if (b->forwarding)
        return "a login through a forwarded agent";
    if (b->n > 1)
        return "a login on a connection that was bound twice";
    if (!str_eq(r->session, bound_session))
        return "a login in another session than the verified one";
    if (r->host_key.n && !str_eq(r->host_key, bound_key))
        return "a login at another host than the verified one";
    for (size_t i = 0; i < rules->n_logins; i++) {
        if (!str_eq(rules->logins[i].host_key, bound_key))
            continue;
        d->host = rules->logins[i].host;
        if (rules->logins[i].keys >> d->key & 1)
            return NULL;
    }
    return d->host ? SSH_WHY_OTHER_HOST : SSH_WHY_HOST;
}

void ssh_decide(const struct ssh_rules *rules, const struct ssh_bound *b, const struct ssh_request *r,
                struct ssh_decision *ret)
{
    *ret = (struct ssh_decision){.why = r->why};
    switch (r->what) {
    case SSH_REFUSED:
        break;
    case SSH_LIST:
    case SSH_QUERY:
    case SSH_BIND:
        ret->why = NULL;
        break;
    case SSH_LOGIN:
    case SSH_GIT:
        if (!ssh_key_named(rules, r->key, &ret->key))
            ret->why = SSH_WHY_KEY;
        else if (r->what == SSH_LOGIN)
            ret->why = login_why(rules, b, r, ret);
        else if (b->n)
            ret->why = "git's signature on a connection that is for logins";
        else if (!rules->keys[ret->key].git)
            ret->why = SSH_WHY_NOT_GIT;
        break;
    }
    ret->pass = !ret->why;
}
