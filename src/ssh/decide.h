/* What the agent's filter lets pass: rules, what a connection is bound to, and the decision. Pure. */
#pragma once
#include "ssh/wire.h"

#define SSH_MAX_KEYS   64 /* in one policy: bits of `keys` below */
#define SSH_MAX_LOGINS 4096

struct ssh_named_key {
    struct str key;   /* as in a list of identities */
    const char *name; /* for people: the agent's comment or the fingerprint, printable */
    bool git;         /* may sign what git signs */
};
struct ssh_login {
    struct str host_key;
    const char *host; /* "NAME" or "[NAME]:PORT" */
    uint64_t keys;    /* bit i: the key i may log in there */
};
struct ssh_rules {
    const struct ssh_named_key *keys;
    size_t n_keys;
    const struct ssh_login *logins;
    size_t n_logins;
    bool confirm;
    bool gullible; /* the agent verifies no bind: no logins */
};

/* Phrases of refusals for which there is a remedy. */
#define SSH_WHY_KEY        "a signature with a key that was not named"
#define SSH_WHY_HOST       "a login at a host that the policy does not allow or known_hosts does not know"
#define SSH_WHY_OTHER_HOST "a login at a host that this key is not for"
#define SSH_WHY_NOT_GIT    "git's signature with a key that is only for logins"

/* What the agent has verified of one connection. */
struct ssh_bound {
    unsigned n;      /* how often it was bound; more than once: no login */
    bool forwarding; /* its client passes requests on from elsewhere */
    size_t session_n, host_key_n;
    char session[SSH_MAX_SESSION], host_key[SSH_MAX_HOST_KEY];
};
/* Records a bind that the agent has answered with success. */
void ssh_bound_add(struct ssh_bound *b, const struct ssh_request *bind);

struct ssh_decision {
    bool pass;
    const char *why;  /* not passed: a phrase */
    const char *host; /* of a login; NULL: not known */
    size_t key;       /* of a signature that passes: its index */
};
void ssh_decide(const struct ssh_rules *rules, const struct ssh_bound *b, const struct ssh_request *r,
                struct ssh_decision *ret);
bool ssh_key_named(const struct ssh_rules *rules, struct str key, size_t *ret_index);
