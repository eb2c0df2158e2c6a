/*
 * The filter between a box and its user's ssh-agent: a process of its own. It holds the socket that the box connects to, opens
 * nothing, and gets a connection to the agent for each client from the supervisor.
 */
#pragma once
#include <stdint.h>
#include "ssh/decide.h"

#define SSH_EVENT_TEXT 200

enum ssh_event_kind {
    SSH_EVENT_CONNECT, /* a client has come: an order SSH_ORDER_AGENT with this id is the answer */
    SSH_EVENT_ASK,     /* may it be signed? SSH_ORDER_ANSWER */
    SSH_EVENT_REFUSED,
    SSH_EVENT_SIGNED
};
struct ssh_event {
    uint32_t kind, id;
    char action[16];             /* "sign", "list" ... */
    char target[SSH_EVENT_TEXT]; /* what was asked for, printable */
    char why[SSH_EVENT_TEXT];    /* a phrase, printable */
};
enum ssh_order_kind { SSH_ORDER_AGENT /* with a descriptor, or without when there is no agent */, SSH_ORDER_ANSWER };
struct ssh_order {
    uint32_t kind, id;
    uint32_t allow, run; /* of an answer: run: the same for the rest of the run */
};

struct ssh_filter {
    struct ssh_rules rules;
    int listener; /* non-blocking */
    int events;   /* SOCK_SEQPACKET: struct ssh_event out, struct ssh_order in; its end ends the process */
};
/* Gives up everything else, and serves until `events` is closed. */
_Noreturn void ssh_filter_serve(const struct ssh_filter *f);
/* For the process itself: only calls that move bytes from now on. 0 or -errno. */
int ssh_lock(void);
