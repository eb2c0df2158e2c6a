/*
 * The check-in: what pinfold hears from whoever connects, and what pinfold-init gets from whoever it is connected to. The
 * first byte chooses the side. For the second, the next byte is the number of descriptors, then the message, then the memory.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "protocol/checkin.h"
#include "protocol/job.h"
#include "protocol/step.h"

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void hear(const uint8_t *data, size_t size)
{
    int r = checkin_hello_check(data, size, digest);
    MUST(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT || r == -ESTALE);
    MUST(checkin_hello_check(data, size, "short") != 0);
    if (r < 0)
        return;
    struct checkin_hello h, again;
    MUST(size == sizeof h);
    memcpy(&h, data, sizeof h);
    MUST(memchr(h.version, 0, sizeof h.version) && memcmp(h.digest, digest, sizeof h.digest) == 0);
    checkin_hello_write(&again, h.version, digest);
    MUST(checkin_hello_check(&again, sizeof again, digest) == 0);
}

/* All that a check let through can be read to its end. */
static void read_plan(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; i < p->n_steps; i++)
        MUST(step_name((enum step_kind)s[i].kind)[0]);
}

static void read_job(const struct job_image *j)
{
    size_t n = 0;
    for (uint32_t i = 0; i < j->n_argv; i++)
        n += strlen(job_string(j, job_list(j, j->argv_at)[i])) + 1;
    for (uint32_t i = 0; i < j->n_envp; i++)
        n += strlen(job_string(j, job_list(j, j->envp_at)[i])) + 1;
    for (uint32_t i = 0; i < j->n_rlimits; i++)
        n += job_rlimits(j)[i].what != UINT32_MAX;
    MUST(j->n_argv >= 1 && n >= j->n_argv && (!j->cwd || job_string(j, j->cwd)[0] == '/'));
}

static void take(const uint8_t *data, size_t size)
{
    struct checkin_ask a;
    if (size < 1 + sizeof a)
        return;
    const unsigned fds = data[0];
    const size_t memory = size - 1 - sizeof a;
    int r = checkin_ask_check(data + 1, sizeof a, fds, memory);
    MUST(r == 0 || r == -EBADMSG);
    MUST(checkin_ask_check(data + 1, sizeof a - 1, fds, memory) == -EBADMSG);
    if (r < 0)
        return;
    memcpy(&a, data + 1, sizeof a);
    MUST(checkin_ask_fds(&a) == fds && fds <= CHECKIN_MAX_FDS && a.n_tasks <= CHECKIN_MAX_TASKS);
    char *p = aligned_alloc(16, (memory + 15) & ~(size_t)15); /* as mmap: aligned, and nothing behind it */
    MUST(p);
    memcpy(p, data + 1 + sizeof a, memory);
    if (checkin_memory_check(&a, p) == 0) {
        read_plan((const void *)p);
        if (a.job_bytes)
            read_job((const void *)(p + a.job_at));
        for (unsigned i = 0; a.names_bytes && i < 3; i++)
            MUST(strlen(checkin_name(p + a.names_at, a.names_bytes, i)) < 4096);
    }
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 1)
        hear(data + 1, size - 1);
    else
        take(data + 1, size - 1);
    return 0;
}
