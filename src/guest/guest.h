/* pinfold-init as the first process of a virtual machine. */
#pragma once
#include "protocol/egress.h"
#include "protocol/step.h"

_Noreturn void guest_main(void);
/* reach.c: makes the host's 127.0.0.1 and published ports reachable; call with the network up. 0 or -errno. */
int guest_reach(const struct plan_image *plan, const uint16_t published[EGRESS_MAX_REACH]);
/* loopback.c: redirects the group's connections to 127.0.0.1, where nothing listens, to the host's. 0 or -errno. */
int guest_loopback(const char *group);
