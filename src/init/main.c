/*
 * pinfold-init: started by engines that are other programs in their boxes. It checks in with pinfold
 * (protocol/checkin.h), gets the plan, the command and the control sockets, and plays the two roles of the native
 * engine: this process is the builder and then the guard, its child is pid 1 (runtime/builder.h). What it cannot report
 * to pinfold it prints on standard error, which pinfold shows if a start fails.
 *
 *     pinfold-init --plan DIGEST --fd N         the check-in is this descriptor
 *     pinfold-init --plan DIGEST --socket PATH  it is at this path
 *     /init                                     in a virtual machine: guest/guest.c
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "base/sha256.h"
#include "base/str.h"
#include "guard/guard.h"
#include "guard/supervise.h"
#include "guest/guest.h"
#include "runtime/builder.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "protocol/checkin.h"
#include "protocol/job.h"

struct init_words { /* of the command line */
    const char *plan, *socket;
    int fd;
};

struct arrived { /* what came from pinfold */
    struct checkin_ask ask;
    int fds[CHECKIN_MAX_FDS]; /* indexed by enum checkin_fd, -1: not sent */
    const struct plan_image *plan;
    const struct job_image *job; /* NULL: pid 1 serves */
    const char *names;           /* NULL: none */
};

static _Noreturn void die(const char *what, int no)
{
    fprintf(stderr, "pinfold-init: %s%s%s\n", what, no ? ": " : "", no ? strerror(no) : "");
    exit(125);
}

static void read_words(int argc, char **argv, struct init_words *w)
{
    *w = (struct init_words){.fd = -1};
    for (int i = 1; i + 1 < argc; i += 2) {
        char *end = argv[i + 1];
        if (same(argv[i], "--plan"))
            w->plan = argv[i + 1];
        else if (same(argv[i], "--socket"))
            w->socket = argv[i + 1];
        else if (same(argv[i], "--fd"))
            w->fd = (int)strtol(argv[i + 1], &end, 10);
        else
            die("unknown option; this program is started by pinfold run --engine NAME", 0);
        if (same(argv[i], "--fd") && (end == argv[i + 1] || *end))
            die("--fd takes a number", 0);
    }
    if (argc % 2 == 0 || !w->plan || strlen(w->plan) != CHECKIN_DIGEST || (w->fd < 0) == !w->socket)
        die("this program is started by pinfold run --engine NAME; it does nothing by itself", 0);
}

/* A container's root may not enter the caller's private directory: connect as its owner, whom pinfold sees. */
static uint32_t owner_of_place(const char *socket, uint32_t otherwise)
{
    char dir[sizeof((struct sockaddr_un *)0)->sun_path];
    struct sys_stat st;
    const char *slash = strrchr(socket, '/');
    size_t n = slash ? (size_t)(slash - socket) : 0;
    memcpy(dir, socket, n);
    dir[n] = 0;
    return n && sys_stat_at(AT_FDCWD, dir, 0, SYS_STAT_BASIC, &st) == 0 ? st.uid : otherwise;
}

static int set_effective_user(uint32_t uid)
{
    return (int)sys_call(SYS_setresuid, (uint32_t)-1, uid, (uint32_t)-1, 0, 0, 0);
}

static int connect_to_pinfold(const struct init_words *w)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int type;
    socklen_t n = sizeof type;
    if (!w->socket) {
        int e = sys_getsockopt(w->fd, SOL_SOCKET, SO_TYPE, &type, &n);
        if (e < 0 || type != SOCK_SEQPACKET)
            die("the given descriptor is not a connection to pinfold", e < 0 ? -e : 0);
        return w->fd;
    }
    if (strlen(w->socket) >= sizeof at.sun_path)
        die("the path of the check-in is too long", 0);
    memcpy(at.sun_path, w->socket, strlen(w->socket));
    int fd = sys_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    uint32_t own = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0), owner = owner_of_place(w->socket, own);
    int e = fd < 0 || owner == own ? fd : set_effective_user(owner);
    if (e >= 0)
        e = sys_connect(fd, &at, sizeof at);
    if (owner != own && set_effective_user(own) < 0)
        die("cannot switch back to the container's user", EPERM);
    if (e < 0)
        die("pinfold does not listen on the check-in socket", -e);
    return fd;
}

/* Receives one message with its descriptors, all close-on-exec; their number in *ret_n. */
static long receive_ask(int s, struct checkin_ask *ask, int fds[CHECKIN_MAX_FDS], unsigned *ret_n)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(CHECKIN_MAX_FDS * sizeof(int))];
    } c;
    struct iovec v = {ask, sizeof *ask};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    long n;
    do
        n = sys_recvmsg(s, &m, MSG_CMSG_CLOEXEC);
    while (n == -EINTR);
    *ret_n = 0;
    for (struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t bytes = h->cmsg_len - CMSG_LEN(0);
        if (bytes / sizeof(int) > CHECKIN_MAX_FDS)
            return -EBADMSG;
        memcpy(fds, CMSG_DATA(h), bytes);
        *ret_n = (unsigned)(bytes / sizeof(int));
    }
    return m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : n;
}

/* Assigns the descriptors of the message to their names. */
static void name_fds(struct arrived *a, const int came[], unsigned n)
{
    unsigned at = 0;
    for (unsigned i = 0; i < CHECKIN_MAX_FDS; i++)
        a->fds[i] = -1;
    for (unsigned i = 0; i < CHECKIN_TASKS; i++) {
        if (a->ask.has >> i & 1 && at < n)
            a->fds[i] = came[at++];
    }
    for (unsigned i = 0; i < a->ask.n_tasks && at < n; i++)
        a->fds[CHECKIN_TASKS + i] = came[at++];
}

/* Whether the received image has this digest, computed as in plan_image_digest(). */
static bool is_plan(const struct arrived *a, const char *digest)
{
    char text[65];
    sha256_hex((struct str){(const char *)a->plan, a->plan->bytes}, text);
    return memcmp(text, digest, CHECKIN_DIGEST) == 0;
}

/* Maps a memfd after checking that nobody can change it any more. */
static const char *map(int fd, uint64_t *ret_bytes)
{
    const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
    struct sys_stat st;
    int e = sys_fcntl(fd, F_GET_SEALS, 0);
    if (e >= 0 && (e & seals) != seals)
        e = -EBADMSG;
    if (e >= 0)
        e = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (e < 0)
        die("the data from pinfold is not sealed memory", -e);
    *ret_bytes = st.size;
    const char *p = mmap(NULL, st.size ? st.size : 1, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        die("cannot map the data from pinfold", errno);
    return p;
}

static void check_in(const struct init_words *w, struct arrived *a)
{
    struct checkin_hello hello;
    int came[CHECKIN_MAX_FDS], s = connect_to_pinfold(w);
    unsigned n_fds = 0;
    uint64_t bytes = 0;
    checkin_hello_write(&hello, PINFOLD_VERSION, w->plan);
    long n = sys_send(s, &hello, sizeof hello, MSG_NOSIGNAL);
    if (n == (long)sizeof hello)
        n = receive_ask(s, &a->ask, came, &n_fds);
    if (n < 0)
        die("cannot communicate with pinfold", (int)-n);
    if (n == 0)
        exit(125); /* pinfold has exited, or has reported why itself */
    if (n_fds == 0)
        die("pinfold sent no descriptors", 0);
    const char *p = map(came[0], &bytes);
    int e = checkin_ask_check(&a->ask, (size_t)n, n_fds, bytes);
    if (e == 0)
        e = checkin_memory_check(&a->ask, p);
    if (e < 0)
        die("the data from pinfold has another version (" PINFOLD_VERSION ")", -e);
    name_fds(a, came, n_fds);
    a->plan = (const void *)p;
    a->job = a->ask.job_bytes ? (const void *)(p + a->ask.job_at) : NULL;
    a->names = a->ask.names_bytes ? p + a->ask.names_at : NULL;
    if (!is_plan(a, w->plan))
        die("the received plan is not the expected one", 0);
    sys_shut(a->fds[CHECKIN_MEMORY]);
    sys_shut(s);
}

static const char **list_of(const struct job_image *j, uint32_t at, uint32_t n)
{
    const char **list = calloc(n + 1, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++)
        list[i] = job_string(j, job_list(j, at)[i]);
    return list;
}

static void take_job(struct builder *b, const struct arrived *a)
{
    const struct job_image *j = a->job;
    b->job = (struct job){.stdio = {-1, -1, -1}, .stdin_at = -1};
    if (!j)
        return;
    for (int i = 0; i < 3; i++)
        b->job.stdio[i] = a->fds[CHECKIN_STDIN + i];
    b->job.argv = list_of(j, j->argv_at, j->n_argv);
    b->job.envp = list_of(j, j->envp_at, j->n_envp);
    b->job.cwd = j->cwd ? job_string(j, j->cwd) : NULL;
    b->job.tty = j->flags & JOB_TTY;
    b->job.rows = j->rows;
    b->job.columns = j->columns;
    b->job.umask = j->umask;
    if (!b->job.argv || !b->job.envp)
        builder_give_up(b, WHERE_CHECK, -ENOMEM);
}

static void take_names(struct builder *b, const struct arrived *a)
{
    if (!a->names)
        return;
    b->names = calloc(3, sizeof *b->names);
    for (unsigned i = 0; i < 3; i++) {
        const char *name = b->names ? checkin_name(a->names, a->ask.names_bytes, i) : NULL;
        if (!name)
            builder_give_up(b, WHERE_CHECK, -ENOMEM);
        memcpy(b->names[i], name, strlen(name) + 1);
    }
}

/* Creates the namespaces that the tool did not, except pid 1's own. */
static void make_namespaces(struct builder *b)
{
    const uint32_t uid = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    const uint32_t gid = (uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    unsigned long kinds = b->plan->namespaces & ~b->plan->outer & ~(unsigned)CLONE_NEWPID;
    if (b->joins)
        kinds &=
            /* created once pid 1 is in its group, which is then the root it sees */
            ~(unsigned long)SYS_CLONE_NEWCGROUP;
    int e = kinds ? sys_unshare(kinds) : 0;
    if (e < 0)
        builder_give_up(b, WHERE_CLONE, e);
    e = kinds & CLONE_NEWUSER ? builder_map_ids(b, uid, gid) : 0;
    if (e < 0)
        builder_give_up(b, WHERE_MAPS, e);
}

int main(int argc, char **argv)
{
    static struct builder b;
    static struct arrived a;
    struct init_words w;
    if (sys_getpid() == 1 && same(argv[0], "/init")) /* the kernel's first process */
        guest_main();
    if (argc == 2 && same(argv[1], "--version")) {
        puts("pinfold-init " PINFOLD_VERSION);
        return 0;
    }
    guard_main(argc, argv, "pinfold-init");
    read_words(argc, argv, &w);
    (void)prctl(PR_SET_NAME, "pinfold-init", 0, 0,
                0); /* it was started under a number or as "init" (sessiond/running.c) */
    check_in(&w, &a);
    int *slots = calloc(runner_room(a.plan) + 1, sizeof *slots);
    if (!slots)
        die("cannot start the box", ENOMEM);
    builder_begin(&b, a.plan, slots);
    b.foreign = true;
    b.supervise = guard_supervise;
    b.control = a.fds[CHECKIN_CONTROL];
    b.report = a.fds[CHECKIN_REPORT];
    b.publish = a.fds[CHECKIN_PUBLISH];
    b.group_dir = a.fds[CHECKIN_GROUP];
    b.joins = a.ask.joins;
    b.groups = a.ask.groups;
    b.n_groups = a.ask.n_groups;
    /* Without a pid namespace this process has two users (stand_apart()), which a new program would lose. */
    if (a.plan->namespaces & CLONE_NEWPID)
        b.program = sys_openat(AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0);
    b.runner.egress = a.fds[CHECKIN_EGRESS];
    for (uint32_t i = 0; i < a.ask.n_tasks; i++)
        b.group_tasks[b.n_group_tasks++] = a.fds[CHECKIN_TASKS + i];
    take_job(&b, &a);
    take_names(&b, &a);
    int e = builder_forget(&b);
    if (e < 0)
        builder_give_up(&b, WHERE_CHILD, e);
    make_namespaces(&b);
    builder_run(&b);
}
