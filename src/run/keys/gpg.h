/* The caller's gpg-agent, as far as a policy lets a box use it: which keys, the public keyring, and the box's own socket. */
#pragma once
#include "run/direct.h"
#include "run/keys/place.h"

struct gpg_ready {
    struct agent_place place; /* of the box's socket and its GNUPGHOME */
    struct box_gpg box;       /* for struct run_spec */
};
#define GPG_READY ((struct gpg_ready){.place = AGENT_PLACE, .box = {.listener = -1}})

/*
 * For the keys that the policy names: asks the caller's gpg what they are, makes the socket and a GNUPGHOME with the public keys in it.
 * `ret_flags` (name, value, ..., NULL) is what the box's policy needs besides, in `mem`. To be undone by gpg_end(), also after an error.
 */
int gpg_begin(const struct pinfold_policy *p, struct arena *mem, struct gpg_ready *ret, const char ***ret_flags,
              struct err *e);
void gpg_end(struct gpg_ready *g);
