/*
 * Checks and writes the image of a job: command, environment and descriptors on their way into a box. pid 1 maps it
 * as it is, so that a check here is the only one.
 */
#include "protocol/job.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

static bool lies_inside(const struct job_image *j, uint64_t at, uint64_t bytes, unsigned align)
{
    return at >= sizeof *j && at % align == 0 && at + bytes <= j->bytes;
}

/* Strings end before the image does: its last byte is NUL. */
static bool list_fits(const struct job_image *j, uint32_t n, uint32_t at)
{
    if (n > JOB_MAX_STRINGS || !lies_inside(j, at, (uint64_t)n * 4, 4))
        return false;
    const uint32_t *list = job_list(j, at);
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] < sizeof *j || list[i] >= j->bytes)
            return false;
    }
    return true;
}

int job_image_check(const void *bytes, size_t n)
{
    const struct job_image *j = bytes;
    if (n < sizeof *j || n > JOB_MAX_BYTES || j->magic != JOB_MAGIC || j->bytes != n || ((const char *)bytes)[n - 1])
        return -EBADMSG;
    if (j->n_argv == 0 || !list_fits(j, j->n_argv, j->argv_at) || !list_fits(j, j->n_envp, j->envp_at))
        return -EBADMSG;
    if (j->n_rlimits > JOB_MAX_RLIMITS ||
        !lies_inside(j, j->rlimits_at, j->n_rlimits * sizeof(struct job_rlimit), sizeof(uint64_t)))
        return -EBADMSG;
    for (uint32_t i = 0; i < j->n_rlimits; i++) {
        if (job_rlimits(j)[i].what >= 32)
            return -EBADMSG;
    }
    if (j->cwd && (j->cwd < sizeof *j || j->cwd >= j->bytes || job_string(j, j->cwd)[0] != '/'))
        return -EBADMSG;
    const uint32_t own = JOB_OWN_IN | JOB_OWN_OUT | JOB_OWN_ERR, known = JOB_TTY | JOB_TELL_START | own;
    if (j->flags & ~(known | JOB_DUPLEX | JOB_NO_ECHO | JOB_ONE_OUTPUT) || j->umask > 0777)
        return -EBADMSG;
    if (j->flags & JOB_ONE_OUTPUT && job_streams(j->flags) < 6)
        return -EBADMSG;
    if ((!(j->flags & JOB_TTY) && j->flags & own) || (j->flags & JOB_TTY && j->flags & JOB_DUPLEX))
        return -EBADMSG;
    return 0;
}

static uint32_t count(const char *const *list)
{
    uint32_t n = 0;
    while (list && list[n] && n <= JOB_MAX_STRINGS)
        n++;
    return n;
}

static void put_list(struct buf *out, const char *const *list, uint32_t n, uint32_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_put(out, at, sizeof *at);
        *at += (uint32_t)strlen(list[i]) + 1;
    }
}

int job_image_write(const struct job_parts *p, struct buf *out)
{
    struct job_image j = {.magic = JOB_MAGIC,
                          .n_argv = count(p->argv),
                          .n_envp = count(p->envp),
                          .flags = p->flags,
                          .umask = p->umask & 0777,
                          .rows = p->rows,
                          .columns = p->columns,
                          .n_rlimits = p->n_rlimits};
    uint64_t bytes = 0;

    if (j.n_argv > JOB_MAX_STRINGS || j.n_envp > JOB_MAX_STRINGS)
        return -E2BIG;
    j.rlimits_at = sizeof j;
    j.argv_at = j.rlimits_at + j.n_rlimits * (uint32_t)sizeof(struct job_rlimit);
    j.envp_at = j.argv_at + j.n_argv * 4;
    uint32_t at = j.envp_at + j.n_envp * 4, first = at;
    for (uint32_t i = 0; i < j.n_argv; i++)
        bytes += strlen(p->argv[i]) + 1;
    for (uint32_t i = 0; i < j.n_envp; i++)
        bytes += strlen(p->envp[i]) + 1;
    j.cwd = p->cwd ? (uint32_t)(first + bytes) : 0;
    bytes += first + (p->cwd ? strlen(p->cwd) + 1 : 0);
    if (bytes == first)
        bytes++; /* the last byte is NUL in any case */
    if (bytes > JOB_MAX_BYTES)
        return -E2BIG;
    j.bytes = (uint32_t)bytes;
    buf_put(out, &j, sizeof j);
    buf_put(out, p->rlimits, j.n_rlimits * sizeof *p->rlimits);
    put_list(out, p->argv, j.n_argv, &at);
    put_list(out, p->envp, j.n_envp, &at);
    for (uint32_t i = 0; i < j.n_argv; i++)
        buf_put(out, p->argv[i], strlen(p->argv[i]) + 1);
    for (uint32_t i = 0; i < j.n_envp; i++)
        buf_put(out, p->envp[i], strlen(p->envp[i]) + 1);
    if (p->cwd)
        buf_put(out, p->cwd, strlen(p->cwd) + 1);
    while (buf_ok(out) && out->n < bytes)
        buf_char(out, 0);
    return buf_ok(out) ? 0 : -ENOBUFS;
}

bool job_env_has(const char *const *list, const char *entry)
{
    size_t n = strcspn(entry, "=");
    for (; list && *list; list++) {
        if (strncmp(*list, entry, n) == 0 && ((*list)[n] == '=' || (*list)[n] == 0))
            return true;
    }
    return false;
}
