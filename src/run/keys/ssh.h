/* The caller's ssh-agent, as far as a policy lets a box use it: which keys, for which hosts, and the box's own socket. */
#pragma once
#include "run/keys/gpg.h"

struct ssh_ready {
    struct arena *mem; /* NULL: the policy names no key */
    struct agent_place place;
    struct box_ssh box;   /* for struct run_spec */
    struct gpg_ready gpg; /* the gpg-agent's, which is prepared and ended with it */
    struct policy *said;  /* the policy as it was loaded */
};
#define SSH_READY ((struct ssh_ready){.place = AGENT_PLACE, .box = {.listener = -1}, .gpg = GPG_READY})

/*
 * If the policy of `p` names keys: asks the agent for them, reads known_hosts, creates the socket, and puts a policy in the place of
 * p->policy that also shows the public key files and the socket. The latter lives as long as `p`. To be undone by ssh_end(), also
 * after an error.
 */
int ssh_begin(struct pinfold_policy *p, struct ssh_ready *ret, struct err *e);
/* The digest of a plan made meanwhile is that of the policy as it was loaded. */
int ssh_digest(const struct ssh_ready *s, struct plan *plan, struct err *e);
const struct box_ssh *ssh_box(const struct ssh_ready *s); /* NULL: none */
const struct box_gpg *gpg_box(const struct ssh_ready *s); /* NULL: none */
void ssh_end(struct pinfold_policy *p, struct ssh_ready *s);
