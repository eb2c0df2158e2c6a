/*
 * Recent denials of guard and network, with the session id of the process: the caller of a command requests those of
 * its session id, as the box numbers it; a job gets its own at once (those from before its session id was known, when it
 * is) and again when it ends. Nothing is allocated before the first denial.
 */
#include <stdio.h>
#include "sessiond/parts.h"

#define MAX_DENIED 128
/* until the guard's token bucket (guard/rules/deny.c) is full again; it then drops nothing */
#define GUARD_US 4000000u

struct denied {
    uint64_t at;
    uint32_t session, n;
    bool soft;   /* only a denial if the command fails: of each session the last one is kept */
    char *bytes; /* in the form of protocol/keep.h */
};

static struct denied *ring; /* MAX_DENIED of them */
static unsigned next_slot;
static uint64_t lost_at;     /* last time one could not be kept */
static uint64_t unplaced_at; /* last time the process of a network denial was not found */

void denied_put(struct buf *b, const struct denial *d)
{
    const char *const texts[] = {d->kind,
                                 d->action,
                                 d->target,
                                 d->rule,
                                 d->origin,
                                 d->how,
                                 d->address ? d->address : "",
                                 d->command ? d->command : "",
                                 d->why ? d->why : "",
                                 d->argv ? d->argv : "",
                                 d->remedy ? d->remedy : "",
                                 d->host ? d->host : ""};
    buf_printf(b, "%u %d %d %d %d", d->pid, d->no, d->soft, d->seen, d->option);
    buf_char(b, 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        buf_put(b, texts[i], strlen(texts[i]) + 1);
}

static char *next_text(char **at, const char *end)
{
    char *text = *at, *nul = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
    *at = nul ? nul + 1 : *at;
    return nul ? text : NULL;
}

/* NULL for what is not there. */
static void drop_empty(char **text)
{
    *text = **text ? *text : NULL;
}

void denied_read(struct box_result *r, struct buf *answer, bool failed)
{
    char *at = answer->p, *end = answer->p + answer->n;
    for (;;) {
        struct denial d = {0};
        int soft = 0, seen = 0, option = 0;
        char *numbers = next_text(&at, end),
             **const texts[] = {&d.kind,    &d.action,  &d.target, &d.rule, &d.origin, &d.how,
                                &d.address, &d.command, &d.why,    &d.argv, &d.remedy, &d.host};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            *texts[i] = next_text(&at, end);
            if (!*texts[i])
                return;
        }
        if (sscanf(numbers, "%u %d %d %d %d", &d.pid, &d.no, &soft, &seen, &option) != 5)
            return;
        for (size_t i = 6; i < sizeof texts / sizeof *texts; i++)
            drop_empty(texts[i]);
        d.seen = seen;
        d.soft = soft;
        d.option = option;
        if (!soft || failed)
            (void)box_result_deny(r, &d);
    }
}

static struct denied *soft_slot(uint32_t session)
{
    for (unsigned i = 0; i < MAX_DENIED; i++) {
        if (ring[i].bytes && ring[i].soft && ring[i].session == session)
            return &ring[i];
    }
    return NULL;
}

void denied_keep(const struct denial *d)
{
    auto_buf struct buf b = BUF(16384);
    if (!d->session) {
        if (same(d->kind, "network"))
            unplaced_at = sessiond_now();
        return;
    }
    if (!ring)
        ring = calloc(MAX_DENIED, sizeof *ring);
    denied_put(&b, d);
    size_t n = b.n;
    char *bytes = ring && buf_ok(&b) ? buf_take(&b) : NULL;
    if (!bytes) {
        lost_at = sessiond_now();
        return;
    }
    struct denied *slot = d->soft ? soft_slot(d->session) : NULL;
    slot = slot ? slot : &ring[next_slot++ % MAX_DENIED];
    free(slot->bytes);
    *slot = (struct denied){sessiond_now(), d->session, (uint32_t)n, d->soft, bytes};
}

/* Bits for what may be missing: there were so many that some since then were dropped, or never sent. */
static uint32_t may_lack(uint64_t since)
{
    const struct denied *oldest = ring ? &ring[next_slot % MAX_DENIED] : NULL;
    bool some = (lost_at && lost_at >= since) || (oldest && oldest->bytes && oldest->at + GUARD_US >= since);
    return (some ? KEEP_LACKS_SOME : 0) | (unplaced_at && unplaced_at >= since ? KEEP_LACKS_NETWORK : 0);
}

/* Those of a command's session since then. */
static void put_since(uint32_t session, uint64_t since, struct buf *out)
{
    for (unsigned i = 0; ring && i < MAX_DENIED; i++) {
        const struct denied *d = &ring[(next_slot + i) % MAX_DENIED];
        if (d->bytes && d->session == session && d->at >= since)
            buf_put(out, d->bytes, d->n);
    }
}

static uint32_t take_since(struct sessiond *k, uint32_t session, uint64_t since, struct buf *out)
{
    if (k->box)
        box_keep_hear(k->box); /* denials from before the command's end have been sent, but perhaps not read */
    put_since(session, since, out);
    return may_lack(since);
}

void denied_early(uint64_t since, struct box_result *r)
{
    auto_buf struct buf b = BUF(KEEP_MAX);
    put_since(r->command, since, &b);
    if (b.n && buf_ok(&b))
        denied_read(r, &b, false);
}

void denied_add(struct sessiond *k, uint64_t since, struct box_result *r)
{
    auto_buf struct buf b = BUF(KEEP_MAX);
    uint32_t lacks = take_since(k, r->command, since, &b);
    if (b.n && buf_ok(&b))
        denied_read(r, &b, r->by_signal || r->code != 0);
    for (size_t i = 0; k->box && i < r->n_denials; i++) {
        if (r->denials[i].soft)
            box_keep_log(k->box, &r->denials[i]);
    }
    r->guard_told = !(lacks & KEEP_LACKS_SOME);
    r->network_told = !lacks;
}

void denied_answer(struct sessiond *k, struct session_request *q)
{
    struct buf b = BUF(KEEP_MAX);
    const uint32_t session = q->head.b == KEEP_OF_SHELL ? shells_session(k, q->head.job) : q->head.job;
    uint32_t lacks = take_since(k, session, q->head.number, &b);
    answer_bytes(q->from, buf_ok(&b) ? buf_cstr(&b) : "", b.n, lacks, 0, 0);
    buf_free(&b);
}
