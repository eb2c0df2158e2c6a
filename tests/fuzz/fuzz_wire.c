/* What a session daemon and a serving pid 1 are told: a request's head, a job image. What passes the check can be walked whole, and an image is what it was made of. */
#include "fuzz.h"
#include "base/buf.h"
#include "protocol/job.h"
#include "protocol/keep.h"

static void walk(const struct job_image *j, size_t n)
{
    const char *end = (const char *)j + n;
    const char **argv = calloc((size_t)j->n_argv + j->n_envp + 2, sizeof *argv), **envp = argv + j->n_argv + 1;
    MUST(argv);
    for (uint32_t i = 0; i < j->n_argv; i++) {
        argv[i] = job_string(j, job_list(j, j->argv_at)[i]);
        MUST(argv[i] + strlen(argv[i]) < end);
    }
    for (uint32_t i = 0; i < j->n_envp; i++) {
        envp[i] = job_string(j, job_list(j, j->envp_at)[i]);
        MUST(envp[i] + strlen(envp[i]) < end);
    }
    MUST(!j->cwd || job_string(j, j->cwd)[0] == '/');
    const struct job_parts parts = {.argv = argv,
                                    .envp = envp,
                                    .cwd = j->cwd ? job_string(j, j->cwd) : NULL,
                                    .flags = j->flags,
                                    .umask = j->umask,
                                    .rows = j->rows,
                                    .columns = j->columns,
                                    .rlimits = job_rlimits(j),
                                    .n_rlimits = j->n_rlimits};
    struct buf again = BUF(64u << 20);
    if (job_image_write(&parts, &again) == 0) { /* strings that overlapped may make it too long */
        const struct job_image *k = (const void *)again.p;
        MUST(job_image_check(again.p, again.n) == 0 && k->n_argv == j->n_argv && k->n_envp == j->n_envp);
        for (uint32_t i = 0; i < k->n_argv; i++)
            MUST(strcmp(job_string(k, job_list(k, k->argv_at)[i]), argv[i]) == 0);
        MUST(k->flags == j->flags && k->umask == j->umask && k->n_rlimits == j->n_rlimits);
    }
    buf_free(&again);
    free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t *aligned = malloc(size + 8);
    MUST(aligned);
    memcpy(aligned, data, size);
    if (job_image_check(aligned, size) == 0)
        walk((const struct job_image *)aligned, size);
    for (unsigned fds = 0; fds <= KEEP_FDS + 1; fds++) {
        const struct keep_request *q = (const void *)aligned;
        if (keep_request_check(aligned, size, fds) < 0)
            continue;
        MUST(size >= sizeof *q && q->magic == KEEP_MAGIC && q->op > KEEP_NONE && q->op < KEEP_OP_COUNT &&
             fds <= KEEP_FDS);
        MUST(q->apart ? q->bytes <= KEEP_MAX && fds >= 1 : q->bytes == size - sizeof *q);
    }
    if (size <= 2 * KEEP_MAX_NAME && keep_shell_name((const char *)data, size))
        MUST(size >= 1 && size <= KEEP_MAX_NAME && !memchr(data, '/', size));
    free(aligned);
    return 0;
}
