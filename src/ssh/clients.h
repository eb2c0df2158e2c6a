/*
 * What the filters of the ssh-agent and of the gpg-agent share: clients from a box, a connection to the agent for each of them because
 * the agent keeps there what it was told, orders of the supervisor, and one loop. What the bytes mean is the protocol's.
 */
#pragma once
#include <stdbool.h>
#include "ssh/filter.h"

enum client_state {
    CLIENT_FREE,
    CLIENT_WAITS, /* for a connection to the agent */
    CLIENT_READ,  /* a request comes from the box */
    CLIENT_ASKED, /* a person is asked */
    CLIENT_SEND,  /* to the agent */
    CLIENT_AGENT, /* the answer comes */
    CLIENT_REPLY  /* to the box */
};
/* A protocol's own client begins with this. */
struct key_client {
    enum client_state state;
    int box, agent; /* non-blocking; agent -1: there is none */
    uint32_t id;
    char *room; /* room_bytes */
};
struct key_filter;
struct key_protocol {
    unsigned clients; /* at once; more of them wait in the listener's queue */
    size_t client_bytes, room_bytes;
    /* `agent` has come, or stays -1. It sets the state. */
    void (*given)(struct key_filter *, struct key_client *);
    /* The answer of a person to key_filter_asks(); `run`: for the rest of the run. */
    void (*answered)(struct key_filter *, struct key_client *, bool allow, bool run);
    /* What it waited for is there, perhaps. 1: once more; 0: it has to wait; -1: it is dropped. */
    int (*step)(struct key_filter *, struct key_client *);
};
/* A protocol's own process begins with this; the caller fills in the first three. */
struct key_filter {
    const struct key_protocol *protocol;
    int listener, events; /* as in struct ssh_filter */
    char *clients;
    uint32_t ids;
    unsigned refusals; /* told so far in this second */
    int64_t second;
};

/* Gives up everything else (ssh_lock), and serves until `events` is closed. */
_Noreturn void key_filter_serve(struct key_filter *f);

void key_client_drop(struct key_client *c);
/* A box may be refused more often than anybody wants to read: what goes beyond some hundreds a second is counted by nobody. */
void key_filter_refused(struct key_filter *f, const struct ssh_event *v);
/* The client waits for a person's answer. false: nobody can be asked, and nothing has changed. */
bool key_filter_asks(const struct key_filter *f, struct key_client *c, const struct ssh_event *v);
/* Of a signature that is about to be handed out; what cannot be logged is not handed out: the process ends. */
void key_filter_signed(const struct key_filter *f, const struct ssh_event *v);
/* Writes n bytes from *at on, without waiting. 1: all is written, 0: more later, -1: the end. */
int key_client_write(int fd, const char *bytes, size_t n, size_t *at);
