/*
 * pinfold's side of a check-in (protocol/checkin.h), and the life of the program around the box.
 *
 * The program gets /dev/null, a pipe for its output, the two descriptors, and nothing else of pinfold's: no variable,
 * no secret in its arguments. What the command gets is sent only to pinfold-init.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "survey/runtime_dir.h"
#include "backends/tools/tool.h"
#include "runtime/inner.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"
#include "sys/remove.h"
#include "protocol/checkin.h"
#include "protocol/job.h"

#define PATIENCE_MS   30000u
#define MAX_PRINTED   (48u << 10)
#define YOUNG_SECONDS 10 /* before it is locked */

struct meeting {
    const struct tool_way *way;
    const struct start_request *ask;
    struct err *e;
    struct arena *mem;
    int place;  /* what we wait on: our end of the pair, or the listener */
    int theirs; /* the other end of the pair, until it is passed to the tool; or -1 */
    int socket; /* the connection, once there is one, or -1 */
    int init;   /* pinfold-init, O_PATH */
    int output; /* what the tool prints */
    int tool, tool_pidfd;
    int peer; /* pid of pinfold-init as this process sees it */
    int control[2], report[2];
    char dir[PATH_MAX], path[PATH_MAX + 16]; /* by_path */
    int lock;                                /* of that directory, while it is used: tool_sweep_places() */
};

/* ---- directory of the check-in ---- */

/* Creates a private directory with a random name. */
static int make_place(struct meeting *m)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    /* /tmp is tried, too, if a variable of another user names an unusable directory. */
    const char *const roots[] = {runtime_path(m->mem), runtime_in_tmp(m->mem)};
    int r = -ENOMEM;
    for (int i = 0; r < 0 && i < 2; i++) {
        if (!roots[i])
            return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot create a directory for the box's check-in");
        r = mkdir(roots[i], 0700) < 0 && errno != EEXIST
                ? err_sys(m->e, ERR_SYSTEM, errno, "cannot create '%s' for the box's check-in", roots[i])
                : runtime_judge(roots[i], m->e);
        snprintf(m->dir, sizeof m->dir, "%s/c-XXXXXX", roots[i]);
        if (r == 0 && !mkdtemp(m->dir))
            r = err_sys(m->e, ERR_SYSTEM, errno, "cannot create a directory for the box's check-in in '%s'", roots[i]);
    }
    if (r < 0) {
        m->dir[0] = 0;
        return r;
    }
    m->lock = open(m->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)flock(m->lock, LOCK_SH);
    snprintf(m->path, sizeof m->path, "%s/s", m->dir);
    if (strlen(m->path) >= sizeof at.sun_path)
        return err_sys(m->e, ERR_SYSTEM, ENAMETOOLONG, "cannot create the box's check-in socket '%s'", m->path);
    memcpy(at.sun_path, m->path, strlen(m->path));
    m->place = sys_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    r = m->place < 0 ? m->place : sys_bind(m->place, &at, sizeof at);
    if (r == 0 && listen(m->place, 1) < 0)
        r = -errno;
    return r < 0 ? err_sys(m->e, ERR_SYSTEM, -r, "cannot create the box's check-in socket '%s'", m->path) : 0;
}

static int make_pair(struct meeting *m)
{
    int ends[2], on = 1;
    int r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (r == 0) {
        m->place = ends[0];
        m->theirs = ends[1];
        r = sys_setsockopt(m->place, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    }
    return r < 0 ? err_sys(m->e, ERR_SYSTEM, -r, "cannot create a socket pair to the box") : 0;
}

static void text_path(const struct meeting *m, size_t i, char path[PATH_MAX + 32])
{
    snprintf(path, PATH_MAX + 32, "%s/" TOOL_TEXT "%zu", m->dir, i);
}

/* Writes the texts of the box's files: the tool mounts them, so they exist even when their names are removed. */
static int fill_place(struct meeting *m)
{
    const struct plan *p = m->ask->plan;
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < p->n_outer; i++) {
        if (p->outer[i].kind != OUTER_TEXT)
            continue;
        text_path(m, i, path);
        auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        size_t n = strlen(p->outer[i].text);
        if (fd < 0 || fchmod(fd, 0644) < 0 || write(fd, p->outer[i].text, n) != (ssize_t)n)
            return err_sys(m->e, ERR_SYSTEM, errno, "cannot create the box's own '%s'", p->outer[i].dst);
    }
    return 0;
}

static void leave_place(struct meeting *m)
{
    char path[PATH_MAX + 32];
    for (size_t i = 0; m->dir[0] && i < m->ask->plan->n_outer; i++) {
        text_path(m, i, path);
        if (m->ask->plan->outer[i].kind == OUTER_TEXT)
            (void)unlink(path);
    }
    if (m->path[0])
        (void)unlink(m->path);
    if (m->dir[0])
        (void)rmdir(m->dir);
    m->path[0] = m->dir[0] = 0;
    m->lock = close_fd(m->lock);
}

static void sweep_place(int root, const char *name)
{
    struct stat st;
    auto_fd int dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() && time(NULL) - st.st_mtime > YOUNG_SECONDS &&
        flock(dir, LOCK_EX | LOCK_NB) == 0)
        remove_tree(root, name);
}

void tool_sweep_places(struct arena *mem)
{
    const char *const roots[] = {runtime_path(mem), runtime_in_tmp(mem)};
    for (int i = 0; i < 2; i++) {
        struct err ignored = {0};
        DIR *d = roots[i] && runtime_judge(roots[i], &ignored) == 0 ? opendir(roots[i]) : NULL;
        for (struct dirent *at; d && (at = readdir(d));) {
            if (str_starts(str_of(at->d_name), STR("c-")) && strlen(at->d_name) == sizeof "c-XXXXXX" - 1)
                sweep_place(dirfd(d), at->d_name);
        }
        if (d)
            (void)closedir(d);
    }
}

/* ---- the tool ---- */

/* In the child, sharing this process's memory: only system calls. Moves descriptors out of the way, then to their
   numbers. */
static _Noreturn void become_tool(const struct meeting *m, const char *const *argv, const char *const *env, int null,
                                  int out)
{
    const int from[] = {null, out, out, m->theirs, m->init}, to[] = {0, 1, 2, TOOL_CHECKIN, TOOL_INIT};
    int high[5];
    for (int i = 0; i < 5; i++) {
        high[i] = from[i] < 0 ? -1 : sys_fcntl(from[i], F_DUPFD_CLOEXEC, TOOL_INIT + 1);
        if (from[i] >= 0 && high[i] < 0)
            sys_exit(126);
    }
    for (int i = 0; i < 5; i++) {
        if (high[i] >= 0 && sys_dup3(high[i], to[i], 0) < 0)
            sys_exit(126);
    }
    for (int s = 1; s < 32; s++) {
        if (s != SIGKILL && s != SIGSTOP)
            (void)sys_signal_default(s);
    }
    (void)sys_sigmask(SIG_SETMASK, 0);
    (void)sys_close_range(3, TOOL_CHECKIN - 1);
    if (m->theirs < 0)
        (void)sys_close(TOOL_CHECKIN);
    (void)sys_close_range(TOOL_INIT + 1, ~0u);
    (void)sys_setpgid(0, 0); /* the terminal's signals are for pinfold, which forwards them */
    (void)sys_chdir("/");
    (void)sys_execve(argv[0], argv, env);
    sys_exit(127);
}

/* In a build with fault injection: which call of pinfold-init fails (sys/fault.h). */
static const char *init_faults(const struct meeting *m)
{
#ifdef PINFOLD_FAULTS
    const char *said = getenv("PINFOLD_INIT_FAULT");
    return said ? arena_printf(m->mem, "PINFOLD_FAULT=%s", said) : NULL;
#else
    (void)m;
    return NULL;
#endif
}

static int start_tool(struct meeting *m, const char *const *argv)
{
    const char *const bare[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", init_faults(m),
                                NULL};
    const char *const *env = m->way->env ? m->way->env : bare;
    int ends[2];
    auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(m->e, ERR_SYSTEM, errno, "cannot start %s", argv[0]);
    auto_fd int out = ends[1];
    m->output = ends[0];
    /* If a tool prints more than fits into the pipe the rest is lost, so that nobody blocks. */
    int pid = sys_vfork();
    if (pid == 0)
        become_tool(m, argv, env, null, out);
    if (pid < 0)
        return err_sys(m->e, ERR_SYSTEM, -pid, "cannot start %s", argv[0]);
    m->tool = pid;
    m->tool_pidfd = sys_pidfd_open(pid, 0);
    m->theirs = close_fd(m->theirs);
    return m->tool_pidfd < 0 ? err_sys(m->e, ERR_SYSTEM, -m->tool_pidfd, "cannot start %s", argv[0]) : 0;
}

/* Adds its output to the message, as one line that is safe for a terminal. */
static int say_output(struct meeting *m, const char *what)
{
    auto_buf struct buf raw = BUF(MAX_PRINTED), line = BUF(4 * MAX_PRINTED);
    char *to = buf_space(&raw, MAX_PRINTED - 2);
    ssize_t n = to ? read(m->output, to, MAX_PRINTED - 2) : -1;
    if (n > 0)
        buf_grew(&raw, (size_t)n);
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] == '\n' || raw.p[i] == '\t' || raw.p[i] == 0)
            raw.p[i] = ' ';
    }
    while (raw.n && raw.p[raw.n - 1] == ' ')
        raw.p[--raw.n] = 0;
    utf8_safe(&line, buf_view(&raw));
    int r = err_say(m->e, ERR_CANNOT, "%s %s", m->way->engine->name, what);
    return line.n ? err_hint(m->e, r, "it said: %.600s", buf_cstr(&line)) : r;
}

/* ---- meeting ---- */

/* Whether the peer of a named socket may check in: the caller, or one of the container's users. */
static bool is_expected(const struct meeting *m, const struct ucred *who)
{
    return who->uid == geteuid() || (who->uid >= m->way->uid_least && who->uid <= m->way->uid_most && m->way->uid_most);
}

static int accept_one(struct meeting *m)
{
    struct ucred who;
    socklen_t n = sizeof who;
    auto_fd int fd = accept4(m->place, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
    int r = sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
    if (r < 0 || !is_expected(m, &who))
        return 0; /* not one that we wait for */
    m->peer = who.pid;
    m->socket = take_fd(&fd);
    return 0;
}

/* Receives the hello, and on a pair the sender's identity. */
static long receive_hello(struct meeting *m, struct checkin_hello *h)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * 4)];
    } c;
    struct iovec v = {h, sizeof *h};
    struct msghdr q = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    long n = sys_recvmsg(m->socket, &q, MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *k = n < 0 ? NULL : CMSG_FIRSTHDR(&q); k; k = CMSG_NXTHDR(&q, k)) {
        if (k->cmsg_level == SOL_SOCKET && k->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(k), sizeof who);
            m->peer = who.pid;
        } else if (k->cmsg_level == SOL_SOCKET && k->cmsg_type == SCM_RIGHTS) { /* no descriptors are expected */
            int fds[4];
            size_t bytes = k->cmsg_len - CMSG_LEN(0);
            memcpy(fds, CMSG_DATA(k), bytes < sizeof fds ? bytes : sizeof fds);
            for (size_t i = 0; i < bytes / sizeof(int) && i < 4; i++)
                (void)close(fds[i]);
        }
    }
    return n;
}

static int hear_hello(struct meeting *m)
{
    struct checkin_hello h;
    char digest[65];
    long n = receive_hello(m, &h);
    if (n == 0)
        return say_output(m, "ended before its box checked in");
    if (n < 0)
        return err_sys(m->e, ERR_SYSTEM, (int)-n, "the box's check-in failed");
    plan_image_digest(m->ask->plan, digest);
    int r = checkin_hello_check(&h, (size_t)n, digest);
    if (r == -EPROTONOSUPPORT)
        return err_say(m->e, ERR_CANNOT, "pinfold-init (%.*s) and pinfold (%s) have different versions; reinstall both",
                       (int)sizeof h.version, h.version, PINFOLD_VERSION);
    if (r == -ESTALE)
        return err_say(m->e, ERR_BUG, "the box that checked in was started for another plan");
    return r < 0 ? err_sys(m->e, ERR_BUG, -r, "the box's check-in failed") : 0;
}

/* Waits until somebody has checked in, the tool has ended, or time is up. */
static int wait_hello(struct meeting *m)
{
    const uint64_t until = tool_now_ms() + (m->way->patience_ms ? m->way->patience_ms : PATIENCE_MS);
    bool ended = false;
    for (;;) {
        uint64_t now = tool_now_ms(), left = ended ? 0 : until > now ? until - now : 0;
        struct pollfd p[] = {{.fd = m->socket >= 0 ? m->socket : m->place, .events = POLLIN},
                             {.fd = ended ? -1 : m->tool_pidfd, .events = POLLIN}};
        const struct timespec wait = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
        int n = sys_poll(p, 2, &wait);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return err_sys(m->e, ERR_SYSTEM, -n, "cannot wait for the box's check-in");
        if (p[0].revents && m->socket >= 0)
            return hear_hello(m);
        if (p[0].revents) {
            int r = accept_one(m);
            if (r < 0)
                return err_sys(m->e, ERR_SYSTEM, -r, "the box's check-in failed");
            continue;
        }
        if (ended)
            return say_output(m, "ended before its box checked in");
        if (p[1].revents) /* once more without waiting: a daemon's client may exit before the box begins */
            ended = true;
        else if (n == 0)
            return say_output(m, "did not start the box in time");
    }
}

/* ---- the ask ---- */

struct packed {
    struct checkin_ask ask;
    int memory;
    int fds[CHECKIN_MAX_FDS];
    unsigned n_fds;
};

static void give_fd(struct packed *p, enum checkin_fd which, int fd)
{
    if (fd < 0)
        return;
    p->fds[p->n_fds++] = fd;
    p->ask.has |= 1u << which;
}

static int put_job(const struct start_request *ask, struct buf *out)
{
    const struct job_parts parts = {.argv = ask->argv,
                                    .envp = (const char *const *)ask->plan->env,
                                    .flags = ask->tty ? JOB_TTY : 0,
                                    .umask = ask->umask,
                                    .rows = ask->rows,
                                    .columns = ask->columns};
    return ask->argv ? job_image_write(&parts, out) : 0;
}

/* Host paths of the regular files among standard input, output and error; all or none. */
static int put_names(const struct start_request *ask, struct buf *out, struct err *e)
{
    bool any = false;
    for (int i = 0; i < 3; i++) {
        char link[32], name[4096];
        int way = ask->stdio[i] < 0 ? STDIO_PASS : stdio_way(ask->stdio[i]);
        if (way < 0)
            return engine_stdio_error(i, ask->stdio[i], way, e);
        any |= way == STDIO_REOPEN;
        snprintf(link, sizeof link, "/proc/self/fd/%d", ask->stdio[i]);
        ssize_t n = way == STDIO_REOPEN ? readlink(link, name, sizeof name - 1) : 0;
        buf_put(out, name, n > 0 ? (size_t)n : 0);
        buf_put(out, "", 1);
    }
    if (!any)
        buf_free(out);
    return 0;
}

static int put_part(int fd, const void *bytes, size_t n, uint32_t *at, uint32_t *ret_at)
{
    *ret_at = n ? (*at + 7) & ~7u : 0;
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(*ret_at + done));
        if (k < 0)
            return -errno;
        done += (size_t)k;
    }
    if (n)
        *at = *ret_at + (uint32_t)n;
    return 0;
}

/* Packs plan, job and names into one sealed memfd. */
static int pack_memory(const struct meeting *m, struct packed *p)
{
    auto_buf struct buf job = BUF(JOB_MAX_BYTES + 4096), names = BUF(3 * 4096 + 16);
    const struct plan_image *image = m->ask->plan->image;
    uint32_t at = 0, zero;
    int r = put_job(m->ask, &job);
    if (r < 0)
        return err_sys(m->e, ERR_POLICY, -r, "cannot pass the command's arguments and environment");
    r = put_names(m->ask, &names, m->e);
    if (r < 0)
        return r;
    if (!buf_ok(&job) || !buf_ok(&names))
        return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot start the box");
    p->memory = memfd_create("pinfold-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = p->memory < 0 ? -errno : put_part(p->memory, image, image->bytes, &at, &zero);
    if (r == 0)
        r = put_part(p->memory, job.p, job.n, &at, &p->ask.job_at);
    if (r == 0)
        r = put_part(p->memory, names.p, names.n, &at, &p->ask.names_at);
    if (r == 0 && fcntl(p->memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    p->ask.plan_bytes = image->bytes;
    p->ask.job_bytes = (uint32_t)job.n;
    p->ask.names_bytes = (uint32_t)names.n;
    return r < 0 ? err_sys(m->e, ERR_SYSTEM, -r, "cannot create a memory file for the plan") : 0;
}

static int send_ask(const struct meeting *m, const struct packed *p)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(CHECKIN_MAX_FDS * sizeof(int))];
    } c = {.bytes = {0}};
    struct iovec v = {(void *)(uintptr_t)&p->ask, sizeof p->ask};
    struct msghdr q = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c};
    q.msg_controllen = CMSG_SPACE(p->n_fds * sizeof(int));
    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(p->n_fds * sizeof(int));
    memcpy(CMSG_DATA(&c.head), p->fds, p->n_fds * sizeof(int));
    long n = sys_send_fds(m->socket, &q, MSG_NOSIGNAL);
    return n < 0 ? (int)n : 0;
}

/* A caller whose uid is kept also keeps the groups, as with an engine that does not change them. */
static int put_groups(const struct meeting *m, struct checkin_ask *ask)
{
    gid_t groups[CHECKIN_MAX_GROUPS];
    if (!m->way->by_path || m->ask->plan->policy->user != USER_KEEP)
        return 0;
    int n = getgroups(CHECKIN_MAX_GROUPS, groups);
    if (n < 0)
        return err_say(m->e, ERR_CANNOT, "%s: you are in more than %d groups, more than a container can have",
                       m->way->engine->name, CHECKIN_MAX_GROUPS);
    ask->n_groups = (uint32_t)n;
    for (int i = 0; i < n; i++)
        ask->groups[i] = groups[i];
    return 0;
}

static int answer_hello(const struct meeting *m)
{
    const struct cgroup_join *c = &m->ask->cgroup;
    struct packed p = {.ask = {.magic = CHECKIN_MAGIC, .protocol = CHECKIN_PROTOCOL}, .memory = -1};
    int r = put_groups(m, &p.ask);
    if (r == 0)
        r = pack_memory(m, &p);
    if (r == 0) {
        give_fd(&p, CHECKIN_MEMORY, p.memory);
        give_fd(&p, CHECKIN_CONTROL, m->control[1]);
        give_fd(&p, CHECKIN_REPORT, m->report[1]);
        for (int i = 0; i < 3; i++)
            give_fd(&p, (enum checkin_fd)(CHECKIN_STDIN + i), m->ask->argv ? m->ask->stdio[i] : -1);
        give_fd(&p, CHECKIN_EGRESS, m->ask->egress);
        give_fd(&p, CHECKIN_PUBLISH, m->ask->publish);
        p.ask.joins = c->kind != CGROUP_NONE;
        give_fd(&p, CHECKIN_GROUP, p.ask.joins ? c->v2_dir : -1);
        for (int i = 0; i < c->n_v1 && i < CHECKIN_MAX_TASKS; i++) {
            p.fds[p.n_fds++] = c->v1_tasks[i];
            p.ask.n_tasks++;
        }
        r = send_ask(m, &p);
        if (r < 0)
            r = err_sys(m->e, ERR_SYSTEM, -r, "the box's check-in failed");
    }
    (void)close_fd(p.memory);
    return r;
}

static int meet(struct meeting *m)
{
    const char *const *argv;
    const char *init = NULL;
    struct tool_ask words = {.program = m->way->program};
    int r = tool_init(m->mem, &init, &m->init, m->e);
    if (r == 0)
        r = m->way->by_path ? make_place(m) : make_pair(m);
    if (r < 0)
        return r;
    if (!m->way->by_path)
        m->socket = m->place;
    r = m->way->by_path ? fill_place(m) : 0;
    if (r < 0)
        return r;
    words.init = init;
    words.place = m->way->by_path ? m->dir : NULL;
    words.id = m->way->id ? m->way->id : "";
    words.boot = m->way->boot;
    words.instance = m->way->instance;
    words.process = m->way->process;
    r = m->way->engine->argv(m->ask->plan, &words, m->mem, &argv, m->e);
    if (r == 0)
        r = start_tool(m, argv);
    if (r == 0)
        r = wait_hello(m);
    if (r < 0)
        return r;
    r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, m->control);
    if (r == 0)
        r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, m->report);
    if (r < 0)
        return err_sys(m->e, ERR_SYSTEM, -r, "cannot create a socket pair to the box");
    /* Before the command begins, which could see the directory and connect to it. */
    leave_place(m);
    if (m->place != m->socket)
        m->place = close_fd(m->place);
    return answer_hello(m);
}

static bool ends_in(int pidfd, long seconds)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    const struct timespec patience = {seconds, 0};
    int n;
    do
        n = sys_poll(&p, 1, &patience);
    while (n == -EINTR);
    return n == 1;
}

/* The start failed. A tool ends by itself once nobody answers pinfold-init, and it is given the time for that: bubblewrap
   that is killed between its clone(2) and the map of user ids leaves a child that waits for that map forever. */
static void abandon(struct meeting *m, struct started *s)
{
    enum { PATIENCE = 10 };
    s->control = sys_shut(s->control);
    if (m->tool > 0 && (m->way->by_path || !ends_in(m->tool_pidfd, PATIENCE)))
        (void)sys_kill(m->tool, m->way->by_path ? SIGTERM : SIGKILL); /* a child of ours that was not waited for */
    tool_finish(s);
}

int tool_start(const struct tool_way *way, const struct start_request *ask, struct started *ret, struct err *e)
{
    auto_arena struct arena *mem = arena_new(16u << 20);
    struct meeting m = {.way = way,
                        .ask = ask,
                        .e = e,
                        .mem = mem,
                        .place = -1,
                        .theirs = -1,
                        .socket = -1,
                        .init = -1,
                        .output = -1,
                        .lock = -1,
                        .tool_pidfd = -1,
                        .control = {-1, -1},
                        .report = {-1, -1}};
    int r = mem ? meet(&m) : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the box");
    int pidfd = r == 0 ? sys_pidfd_open(m.peer, 0) : -1;
    if (r == 0 && pidfd < 0) /* it has the sockets, and reports errors there */
        pidfd = fcntl(m.tool_pidfd, F_DUPFD_CLOEXEC, 0);
    leave_place(&m);
    if (m.place != m.socket)
        (void)close_fd(m.place);
    (void)close_fd(m.socket);
    (void)close_fd(m.theirs);
    (void)close_fd(m.init);
    (void)close_fd(m.control[1]);
    (void)close_fd(m.report[1]);
    struct started s = {.pid = m.peer,
                        .pidfd = pidfd,
                        .control = m.control[0],
                        .builder = m.report[0],
                        .tool = m.tool,
                        .tool_pidfd = m.tool_pidfd,
                        .tool_output = m.output};
    if (r < 0)
        abandon(&m, &s);
    else
        *ret = s;
    return r;
}

/* When the control sockets close, pid 1, the builder and the tool end, in this order. What does not is killed. */
void tool_finish(struct started *s)
{
    enum { PATIENCE = 10, TOOL_PATIENCE = 20 /* of a daemon's client, which sees to it that the container goes */ };
    int status;
    s->control = sys_shut(s->control);
    if (s->pidfd >= 0 && !s->leave_builder && !ends_in(s->pidfd, PATIENCE))
        engine_kill(s);
    if (s->tool > 0 && !s->leave_builder) {
        if (s->tool_pidfd < 0 || !ends_in(s->tool_pidfd, TOOL_PATIENCE))
            (void)sys_kill(s->tool, SIGKILL); /* not waited for yet, so the pid is still its own */
        for (int tries = 0; tries < 3; tries++) {
            int e = sys_wait4(s->tool, &status, __WALL, NULL);
            if (e > 0 || e == -ECHILD)
                break;
            tries -= e == -EINTR;
        }
    }
    s->builder = sys_shut(s->builder);
    s->pidfd = sys_shut(s->pidfd);
    s->tool_pidfd = sys_shut(s->tool_pidfd);
    s->tool_output = sys_shut(s->tool_output);
    s->pid = s->tool = 0;
}
