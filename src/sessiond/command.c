/*
 * Sends a command to pid 1. The caller may add to the session's environment but not see it. Descriptors are checked
 * here again, by the same rule as for a plain run: only those that give access to nothing but their data.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "sessiond/parts.h"
#include "sys/fd.h"
#include "sys/poll.h"

enum { CONTROL_PATIENCE_MS = 10000 };

int command_refused(unsigned which, struct err *e)
{
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    return err_say(
        e, ERR_REFUSED,
        "%s is not a pipe, a socket or a device such as /dev/null; nothing else can be passed into a session",
        names[which < 3 ? which : 2]);
}

static int judge(uint32_t flags, const int *fds, unsigned n, struct err *e)
{
    for (unsigned i = 0, which = 0; i < n; i++, which++) {
        int way = engine_stdio(fds[i]);
        while (which < 2 && !(job_streams(flags) >> which & 1))
            which++;
        if (way != STDIO_PASS)
            return command_refused(which, e);
    }
    return 0;
}

/* argv, NULL, environment, NULL; NULL without memory. */
static const char **job_lists(struct sessiond *k, const struct job_image *j)
{
    const char *const *own = k->ask->env;
    size_t n_own = 0, at = 0;
    while (own && own[n_own])
        n_own++;
    size_t room = (size_t)j->n_argv + j->n_envp + n_own + 3;
    if (room > k->list_room) {
        const char **grown = realloc(k->list, room * sizeof *grown);
        if (!grown)
            return NULL;
        k->list = grown;
        k->list_room = room;
    }
    for (uint32_t i = 0; i < j->n_argv; i++)
        k->list[at++] = job_string(j, job_list(j, j->argv_at)[i]);
    k->list[at++] = NULL;
    const char **env = k->list + at;
    size_t n = 0;
    for (uint32_t i = 0; i < j->n_envp; i++) {
        const char *entry = job_string(j, job_list(j, j->envp_at)[i]);
        if (strchr(entry, '=') && entry[0] != '=')
            env[n++] = entry;
    }
    static char pwd[4096 + 8]; /* the session's PWD would be wrong for another directory */
    if (j->cwd && strlen(job_string(j, j->cwd)) < 4096) {
        snprintf(pwd, sizeof pwd, "PWD=%s", job_string(j, j->cwd));
        env[n++] = pwd;
    }
    env[n] = NULL;
    for (size_t i = 0, said = n; i < n_own; i++) {
        bool again = false;
        size_t length = strcspn(own[i], "=");
        for (size_t s = 0; s < said && !again; s++)
            again = strncmp(env[s], own[i], length) == 0 && env[s][length] == '=';
        if (!again)
            env[n++] = own[i];
    }
    env[n] = NULL;
    return k->list;
}

static int image_file(const struct buf *image)
{
    auto_fd int fd = (int)sys_call(SYS_memfd_create, "pinfold", MFD_CLOEXEC, 0, 0, 0, 0);
    for (size_t at = 0; fd >= 0 && at < image->n;) {
        ssize_t n = pwrite(fd, image->p + at, image->n - at, (off_t)at);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return fd < 0 ? fd : take_fd(&fd);
}

static int send_fds(const struct sessiond *k, const int *fds, unsigned n_fds)
{
    const int control = k->control;
    const struct buf *image = &k->image;
    struct frame f = {.kind = FRAME_EXEC, .a = (uint32_t)image->n, .c = k->box ? box_keep_command(k->box) : 0};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(JOB_FDS * sizeof(int))];
    } c = {0};
    int all[JOB_FDS];
    unsigned n = 0;
    auto_fd int file = image->n > JOB_INLINE ? image_file(image) : -1;
    if (image->n > JOB_INLINE && file < 0)
        return file;
    f.b = file >= 0;
    if (file >= 0)
        all[n++] = file;
    for (unsigned i = 0; i < n_fds; i++)
        all[n++] = fds[i];
    struct iovec v[2] = {{&f, sizeof f}, {image->p, image->n}};
    struct msghdr m = {.msg_iov = v,
                       .msg_iovlen = file >= 0 ? 1 : 2,
                       .msg_control = &c,
                       .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    c.align =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
    memcpy(CMSG_DATA(&c.align), all, n * sizeof(int));
    for (;;) {
        const long r = sys_send_fds(control, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r >= 0)
            return 0;
        if (r == -EINTR)
            continue;
        if (r != -EAGAIN)
            return (int)r;
        struct pollfd p = {.fd = control, .events = POLLOUT};
        const struct timespec patience = {CONTROL_PATIENCE_MS / 1000, 0};
        if (sys_poll(&p, 1, &patience) == 0)
            return -EAGAIN;
    }
}

int command_fresh(struct sessiond *k, const struct session_request *q, struct err *e)
{
    if (!k->box || (q->looked && sessiond_now() - q->looked < FRESH_US))
        return 0;
    return box_keep_fresh(k->box, e);
}

int command_send(struct sessiond *k, const struct job_image *j, uint32_t more_flags, int reply, const int *fds,
                 unsigned n_fds, struct err *e)
{
    int all[4] = {reply, -1, -1, -1};
    int r = judge(j->flags, fds, n_fds, e);
    if (r < 0)
        return r;
    const char **list = job_lists(k, j);
    if (!list)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot pass a command to the session");
    struct job_parts parts = {.argv = list,
                              .envp = list + j->n_argv + 1,
                              .cwd = j->cwd ? job_string(j, j->cwd) : k->ask->cwd,
                              .flags = j->flags | more_flags,
                              .umask = j->umask,
                              .rows = j->rows,
                              .columns = j->columns,
                              .rlimits = job_rlimits(j),
                              .n_rlimits = j->n_rlimits};
    k->image.n = 0;
    r = job_image_write(&parts, &k->image);
    for (unsigned i = 0; i < n_fds && i < 3; i++)
        all[1 + i] = fds[i];
    if (r == 0)
        r = send_fds(k, all, n_fds + 1);
    if (k->image.room > JOB_INLINE) { /* a long one is rare: do not keep its memory */
        buf_free(&k->image);
        k->image = BUF(JOB_MAX_BYTES + 1);
    }
    if (r == -E2BIG)
        return err_sys(e, ERR_POLICY, E2BIG, "cannot pass the command with its environment");
    if (r == -ETOOMANYREFS) /* what callers have sent and this process has not received yet counts, too (send.c) */
        return err_hint(
            e,
            err_say(e, ERR_SYSTEM,
                    "too many commands were sent to the session at once, or a program of this user, perhaps "
                    "in a box, has sent too many descriptors that nobody takes (unix(7))"),
            "try again when some have ended");
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot pass a command to pid 1 of the session");
    k->commands++;
    return 0;
}

const struct job_image *command_image(const char *payload, size_t n, struct err *e)
{
    if (job_image_check(payload, n) == 0)
        return (const void *)payload;
    (void)err_say(e, ERR_BUG, "cannot read the command (a bug in pinfold)");
    return NULL;
}

void command_exec(struct sessiond *k, struct session_request *q)
{
    struct err e = {0};
    const struct job_image *j = command_image(q->payload, q->head.bytes, &e);
    int r = j ? 0 : -EBADMSG;
    if (j && q->n_fds != job_n_streams(j->flags))
        r = err_say(&e, ERR_BUG, "a command came with %u descriptors", q->n_fds);
    if (r == 0)
        r = command_fresh(k, q, &e);
    if (r == 0)
        r = command_send(k, j, 0, q->from, q->fds, q->n_fds, &e);
    if (r < 0)
        answer_refused(q->from, &e, r);
}

/* ---- callers that pid 1 serves ---- */

/* A guard that is asked about every open, or is told of every failed call, would wait for this process, of which it knows nothing. */
bool command_may_pass(const struct sessiond *k)
{
    const struct run_spec *box = &k->ask->box;
    const struct plan_image *image = box->start.plan->image;
    return same(box->engine->name, "native") && image->namespaces & CLONE_NEWPID &&
           !(image->filter & (FILTER_READS | FILTER_MONITOR)) && !k->ask->nested;
}

/* What commands of callers get, which is the same for all. */
static bool tell_session(struct sessiond *k)
{
    static const char *const none[] = {"-", NULL};
    const struct job_parts parts = {.argv = none, .envp = k->ask->env, .cwd = k->ask->cwd};
    auto_buf struct buf image = BUF(JOB_INLINE);
    if (job_image_write(&parts, &image) < 0)
        return false;
    const struct frame f = {.kind = FRAME_SESSION, .a = (uint32_t)image.n};
    struct iovec v[2] = {{(void *)(uintptr_t)&f, sizeof f}, {image.p, image.n}};
    const struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    return sendmsg(k->control, &m, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static bool cookie_of(int fd, uint64_t *ret)
{
    socklen_t n = sizeof *ret;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, ret, &n) == 0 && *ret != 0;
}

bool command_passed(struct sessiond *k, int fd)
{
    uint64_t cookie;
    for (unsigned i = 0; cookie_of(fd, &cookie) && i < PASSED_KNOWN; i++) {
        if (k->cookies[i] != cookie)
            continue;
        k->cookies[i] = 0;
        return true;
    }
    return false;
}

bool command_pass(struct sessiond *k, int fd, uint64_t looked)
{
    uint64_t *cookie = &k->cookies[k->next_cookie % PASSED_KNOWN];
    if (!k->passes || !k->box || !looked || !cookie_of(fd, cookie))
        return false;
    if (!k->passed)
        k->passed = k->passes = tell_session(k);
    const struct frame f = {.kind = FRAME_CALLER, .a = box_keep_command(k->box), .utime_us = looked + FRESH_US};
    if (!k->passed || sys_send_fd(k->control, &f, sizeof f, fd, MSG_DONTWAIT) < 0)
        return false;
    k->next_cookie++;
    k->commands++;
    return true;
}
