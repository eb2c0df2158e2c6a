/*
 * One request to a session daemon and its answer, from the client's side. A large answer comes as a memfd
 * (sessiond/answer.c); each request has a connection of its own.
 */
#include "session/ask.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "pinfold.h"
#include "supervisor/run.h"
#include "sys/fd.h"
#include "protocol/job.h"

int ask_send(int fd, struct keep_request q, struct str payload, const int *fds, unsigned n_fds, struct err *e)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE((KEEP_FDS + 1) * sizeof(int))];
    } control = {0};
    int all[KEEP_FDS + 1];
    unsigned n = 0;
    q.magic = KEEP_MAGIC;
    q.bytes = (uint32_t)payload.n;
    q.apart = payload.n > KEEP_MESSAGE - sizeof q;
    auto_fd int file = q.apart ? bytes_in_memory(payload) : -1;
    if (q.apart && file < 0)
        return err_sys(e, ERR_SYSTEM, -file, "cannot send a request to the session");
    if (q.apart)
        all[n++] = file;
    for (unsigned i = 0; i < n_fds; i++)
        all[n++] = fds[i];
    struct iovec v[2] = {{&q, sizeof q}, {(void *)(uintptr_t)payload.p, payload.n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = q.apart ? 1 : 2};
    if (n) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.align =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
        memcpy(CMSG_DATA(&control.align), all, n * sizeof(int));
    }
    long sent;
    do
        sent = sys_send_fds(fd, &m, MSG_NOSIGNAL);
    while (sent == -EINTR);
    return sent < 0 ? err_sys(e, ERR_SYSTEM, (int)-sent, "cannot send a request to the session") : 0;
}

static int take_file(int file, size_t n, struct buf *out)
{
    while (n) {
        char *to = buf_space(out, n);
        ssize_t k = to ? pread(file, to, n, (off_t)out->n) : -1;
        if (k < 0 && to && errno == EINTR)
            continue;
        if (k <= 0)
            return -EIO;
        buf_grew(out, (size_t)k);
        n -= (size_t)k;
    }
    return 0;
}

int ask_answer(int fd, struct keep_answer *ret, struct buf *out, struct err *e)
{
    struct frame f;
    enum { MOST = sizeof f + KEEP_MESSAGE }; /* of a small stack (ulimit -s 64) that would be half */
    auto_buf struct buf room = BUF(MOST);
    char *message = buf_space(&room, MOST);
    auto_fd int file = -1;
    long n;
    if (!message)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the session's answer");
    do
        n = sys_recv_fd(fd, message, MOST, &file, 0);
    while (n == -EINTR);
    if (n < (long)sizeof f) {
        (void)err_say(e, ERR_SYSTEM, "the session ended before it answered");
        return -ESTALE;
    }
    memcpy(&f, message, sizeof f);
    const struct str text = {message + sizeof f, (size_t)n - sizeof f};
    if (f.kind == FRAME_REFUSED) {
        enum err_kind kind = f.a > ERR_NONE && f.a <= ERR_BUG ? (enum err_kind)f.a : ERR_BUG;
        (void)err_say(e, kind, "%.*s", (int)text.n, text.p);
        return f.b > 0 && f.b < 4096 ? -(int)f.b : -EIO;
    }
    int r = f.kind != FRAME_ANSWER ? -EBADMSG : 0;
    if (r == 0 && f.b == 1 && file >= 0)
        r = take_file(file, f.a, out);
    else if (r == 0)
        buf_str(out, text);
    if (r < 0 || !buf_ok(out))
        return err_say(e, ERR_BUG, "cannot read the session's answer");
    if (ret)
        *ret = (struct keep_answer){f.c, f.utime_us, f.stime_us};
    return 0;
}

int exec_image(const struct pinfold_exec_options *o, uint32_t flags, unsigned rows, unsigned columns, uint32_t umask,
               struct buf *out, struct err *e)
{
    struct job_parts parts = {.argv = o->argv,
                              .envp = o->env,
                              .cwd = o->cwd,
                              .flags = flags | (o->memory_max || o->processes_max ? JOB_TELL_START : 0u),
                              .umask = umask,
                              .rows = (uint16_t)rows,
                              .columns = (uint16_t)columns};
    int r = job_image_write(&parts, out);
    if (r == -E2BIG)
        return err_sys(e, ERR_POLICY, E2BIG, "cannot read the command");
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot read the command") : 0;
}
