/*
 * The filter between a box and its user's gpg-agent: a process of its own, like that of the ssh-agent, whose events and orders it
 * speaks (ssh/filter.h). It holds the socket that the box connects to and gets a connection to the agent for each client.
 */
#pragma once
#include "gpg/assuan.h"

struct gpg_filter {
    struct gpg_rules rules;
    int listener; /* non-blocking */
    int events;   /* SOCK_SEQPACKET: struct ssh_event out, struct ssh_order in; its end ends the process */
};
/* Gives up everything else, and serves until `events` is closed. */
_Noreturn void gpg_filter_serve(const struct gpg_filter *f);
