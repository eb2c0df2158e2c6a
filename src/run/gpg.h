/* The caller's gpg-agent, as far as a policy lets a box use it: which keys, the public keyring, and the box's own socket. */
#pragma once
#include "run/direct.h"

struct gpg_ready {
    char dir[40];       /* of the box's socket and its GNUPGHOME, or "" */
    int lock;           /* the directory, flock()ed as long as it is used; -1 */
    struct box_gpg box; /* for struct run_spec */
};
#define GPG_READY ((struct gpg_ready){.lock = -1, .box = {.listener = -1}})

/*
 * For the keys that the policy names: asks the caller's gpg what they are, makes the socket and a GNUPGHOME with the public keys in it.
 * `ret_flags` (name, value, ..., NULL) is what the box's policy needs besides, in `mem`. To be undone by gpg_end(), also after an error.
 */
int gpg_begin(const struct pinfold_policy *p, struct arena *mem, struct gpg_ready *ret, const char ***ret_flags,
              struct err *e);
void gpg_end(struct gpg_ready *g);
