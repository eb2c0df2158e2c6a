/*
 * Begin and end of connections. Each is in a list of all, and while it has a deadline also in the list that the loop
 * checks. On its end everything is freed at once except the struct, because an event for it may still be pending in
 * this round.
 */
#include <stdlib.h>
#include "egress/parts.h"

static struct conn *dead_conns;

static void unlist(struct conn *c)
{
    if (c->before)
        c->before->next = c->next;
    else if (world.conns == c)
        world.conns = c->next;
    if (c->next)
        c->next->before = c->before;
    c->next = c->before = NULL;
}

void conn_deadline(struct conn *c, uint64_t at)
{
    bool listed = c->deadline != 0;
    if (listed && !at)
        unlist(c);
    if (!listed && at) {
        c->next = world.conns;
        if (c->next)
            c->next->before = c;
        world.conns = c;
    }
    c->deadline = at;
    if (at && at < world.conns_at)
        world.conns_at = at;
}

struct conn *conn_waiting(uint32_t ticket, enum conn_stage stage)
{
    struct conn *c = world.conns;
    while (c && (c->ticket != ticket || c->stage != stage))
        c = c->next;
    return c;
}

static void list_among_all(struct conn *c)
{
    c->other = world.all;
    if (c->other)
        c->other->other_before = c;
    world.all = c;
}

static void unlist_from_all(struct conn *c)
{
    if (c->other_before)
        c->other_before->other = c->other;
    else
        world.all = c->other;
    if (c->other)
        c->other->other_before = c->other_before;
}

struct conn *conn_begin(enum source_kind from, int fd)
{
    struct conn *c = calloc(1, sizeof *c);
    if (c)
        c->host = calloc(1, sizeof *c->host);
    if (c && c->host)
        source_edge(&c->client, SOURCE_CLIENT, fd);
    if (!c || !c->host || (from == SOURCE_PROXY && !source_arm(&c->client, EPOLLIN))) {
        if (c)
            free(c->host);
        free(c);
        return NULL;
    }
    c->server.fd = -1;
    c->rule = EGRESS_RULE_NONE;
    world.n_conns++;
    list_among_all(c);
    world.made_at = world.now;
    conn_deadline(c, world.now + HANDSHAKE_MS);
    return c;
}

bool conn_all_told(void)
{
    for (const struct conn *c = world.all; c; c = c->other) {
        if (!c->server_eof || c->to_client.n)
            return false;
    }
    return true;
}

void conn_end(struct conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    conn_deadline(c, 0);
    if (c->lookup)
        lookup_cancel(c->lookup);
    source_close(&c->client);
    source_close(&c->server);
    pending_free(&c->to_client);
    pending_free(&c->to_server);
    pending_free(&c->first);
    pending_free(&c->heard);
    pending_free(&c->head);
    let_go(c->answer);
    let_go(c->follow);
    let_go(c->h2);
    let_go(c->text);
    let_go(c->words);
    let_go(c->host);
    unlist_from_all(c);
    c->next = dead_conns;
    dead_conns = c;
    world.n_conns--;
    world.full = world.full && world.n_conns > world.max_conns - world.max_conns / 8;
}

void conn_bury(void)
{
    while (dead_conns) {
        struct conn *c = dead_conns;
        dead_conns = c->next;
        free(c);
    }
}

void conn_reset(struct conn *c)
{
    if (c->client.fd >= 0)
        source_abort(c->client.fd);
    if (c->server.fd >= 0)
        source_abort(c->server.fd);
    conn_end(c);
}
