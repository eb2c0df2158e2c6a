/*
 * Reading the two messages of a check-in: neither side trusts the other to be what it seems. Sizes, counts and
 * offsets are checked once, here; what passes can be walked.
 */
#include "protocol/checkin.h"

#include <errno.h>
#include <string.h>

#include "protocol/job.h"
#include "protocol/step.h"

#define MAX_PLAN  (32u << 20)
#define MAX_NAMES (3u * 4096)

void checkin_hello_write(struct checkin_hello *h, const char *version, const char *digest)
{
    *h = (struct checkin_hello){.magic = CHECKIN_MAGIC, .protocol = CHECKIN_PROTOCOL};
    for (size_t i = 0; version[i] && i + 1 < sizeof h->version; i++)
        h->version[i] = version[i];
    for (size_t i = 0; digest[i] && i < sizeof h->digest; i++)
        h->digest[i] = digest[i];
}

int checkin_hello_check(const void *bytes, size_t n, const char *digest)
{
    struct checkin_hello h;
    if (n != sizeof h)
        return -EBADMSG;
    memcpy(&h, bytes, sizeof h);
    if (h.magic != CHECKIN_MAGIC || !memchr(h.version, 0, sizeof h.version))
        return -EBADMSG;
    if (h.protocol != CHECKIN_PROTOCOL)
        return -EPROTONOSUPPORT;
    return strlen(digest) == sizeof h.digest && memcmp(h.digest, digest, sizeof h.digest) == 0 ? 0 : -ESTALE;
}

unsigned checkin_ask_fds(const struct checkin_ask *ask)
{
    unsigned n = ask->n_tasks;
    for (unsigned i = 0; i < CHECKIN_TASKS; i++)
        n += ask->has >> i & 1;
    return n;
}

static bool memory_part_fits(uint32_t at, uint32_t bytes, uint32_t after, uint64_t memory)
{
    return bytes == 0 || (at % 8 == 0 && at >= after && (uint64_t)at + bytes <= memory);
}

int checkin_ask_check(const void *bytes, size_t n, unsigned n_fds, uint64_t memory)
{
    const unsigned always = CHECKIN_HAS(MEMORY) | CHECKIN_HAS(CONTROL) | CHECKIN_HAS(REPORT);
    struct checkin_ask a;
    if (n != sizeof a)
        return -EBADMSG;
    memcpy(&a, bytes, sizeof a);
    if (a.magic != CHECKIN_MAGIC || a.protocol != CHECKIN_PROTOCOL || a.joins > 1 || a.n_groups > CHECKIN_MAX_GROUPS)
        return -EBADMSG;
    if ((a.has & always) != always || a.has >> CHECKIN_TASKS || a.n_tasks > CHECKIN_MAX_TASKS ||
        checkin_ask_fds(&a) != n_fds)
        return -EBADMSG;
    if (a.plan_bytes < sizeof(struct plan_image) || a.plan_bytes > MAX_PLAN || a.plan_bytes > memory ||
        a.job_bytes > JOB_MAX_BYTES || a.names_bytes > MAX_NAMES)
        return -EBADMSG;
    if (!memory_part_fits(a.job_at, a.job_bytes, a.plan_bytes, memory) ||
        !memory_part_fits(a.names_at, a.names_bytes, a.plan_bytes, memory))
        return -EBADMSG;
    return 0;
}

const char *checkin_name(const char *names, size_t n, unsigned which)
{
    for (unsigned i = 0;; i++) {
        const char *end = memchr(names, 0, n);
        if (!end)
            return NULL;
        if (i == which)
            return names;
        n -= (size_t)(end + 1 - names);
        names = end + 1;
    }
}

int checkin_memory_check(const struct checkin_ask *ask, const void *memory)
{
    const char *p = memory;
    int e = plan_image_check(p, ask->plan_bytes);
    if (e == 0 && ask->job_bytes)
        e = job_image_check(p + ask->job_at, ask->job_bytes);
    for (unsigned i = 0; e == 0 && ask->names_bytes && i < 3; i++) {
        const char *name = checkin_name(p + ask->names_at, ask->names_bytes, i);
        if (!name || strlen(name) >= 4096 || (name[0] && name[0] != '/'))
            e = -EBADMSG;
    }
    return e;
}
