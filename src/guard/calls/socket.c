/*
 * bind and connect. The socket is duplicated: it is the same open file, so what we do to ours happens to the caller's.
 *
 * connect to a path: the path is resolved to an inode, which must be a socket made in this box, be in a private tree of
 * the box, or be named by the policy; then that inode is connected to. Nothing else would stop it: read-only mounts and
 * network namespaces do not restrict connect (unix(7)).
 * bind creates a name and is judged like that. The kernel stores the address as given (getsockname), so it is passed
 * unchanged, with the name lock held exclusively: nobody in the box can change what it resolves to.
 * Abstract names are free if the box has its own network namespace. Otherwise only sockets bound here can be connected
 * to, whatever their name: the guard connects, and Landlock's scopes do not apply to it.
 * socketpair of datagram sockets: each message could carry an address that nobody judges. The caller gets a
 * SOCK_SEQPACKET pair, which also preserves messages, and for which the kernel ignores such an address.
 * Other families: performed with the copied address. What may block is done after another worker has taken over.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "match/proctext.h"
#include "sys/socket.h"

#define NEW_NETWORK 0x40000000u /* CLONE_NEWNET */
#define PATH_AT     offsetof(struct sockaddr_un, sun_path)
#define UNIX_TABLE  (16u << 20)
#define SOCK_KIND   0xf /* the bits of a type that are no flags */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        char bytes[sizeof(struct sockaddr_storage)];
    };
    uint32_t n;
    bool local, path, abstract; /* of a Unix socket; with a name of either kind */
};

static int address_read(struct guard *g, uint64_t at, uint32_t n, struct address *ret)
{
    memset(ret, 0, sizeof *ret);
    if (n > sizeof ret->bytes) /* also a negative one */
        return -EINVAL;
    ret->n = n;
    return target_bytes(g, at, ret->bytes, n);
}

static int is_unix(int fd, bool *ret)
{
    int domain = 0;
    socklen_t n = sizeof domain;
    int no = sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n);
    *ret = domain == AF_UNIX;
    return no;
}

static void classify(struct address *a, bool local)
{
    bool named = local && a->n > PATH_AT && a->any.sa_family == AF_UNIX;
    a->local = local;
    a->path = named && a->un.sun_path[0] != 0;
    a->abstract = named && a->un.sun_path[0] == 0;
}

/* The address to which the caller wants to bind or connect `fd`, which is ours. */
static int address_of(struct guard *g, int fd, uint64_t at, uint32_t n, struct address *ret)
{
    bool local = false;
    int no = is_unix(fd, &local);
    if (no == 0)
        no = address_read(g, at, n, ret);
    if (no == 0)
        no = target_valid(g);
    if (no == 0)
        classify(ret, local);
    return no;
}

/* Copies the path, which need not end in NUL. */
static void address_path(const struct address *a, char *text)
{
    size_t n = a->n - PATH_AT;
    memcpy(text, a->un.sun_path, n);
    text[n] = 0;
}

/* ---- abstract names ---- */

static void abstract_add(struct guard *g, uint64_t inode)
{
    table_lock(g->shared);
    g->shared->abstract[g->shared->abstract_at++ % ABSTRACT_MAX] = inode;
    table_unlock(g->shared);
}

static bool abstract_has(struct guard *g, uint64_t inode)
{
    bool found = false;
    table_lock(g->shared);
    for (uint32_t i = 0; !found && i < ABSTRACT_MAX; i++)
        found = inode && g->shared->abstract[i] == inode;
    table_unlock(g->shared);
    return found;
}

/* Reads the kernel's table of Unix sockets; the box shares our network namespace here. */
static int unix_table(struct guard *g, struct buf *to)
{
    auto_fd int fd = sys_openat(g->host_proc, "self/net/unix", O_RDONLY | O_CLOEXEC, 0);
    long n = fd;
    while (n >= 0 && (n = sys_read(fd, g->bytes, sizeof g->bytes)) > 0)
        buf_put(to, g->bytes, (size_t)n);
    return n < 0 ? (int)n : buf_ok(to) ? 0 : -EFBIG;
}

/* Whether the present socket of this name was bound in the box: the name may belong to another by now. The table shows
   NUL as @, so two names may look alike: then both must be ours. */
static bool abstract_ours(struct guard *g, const struct address *a)
{
    struct buf table = BUF(UNIX_TABLE);
    char shown[sizeof a->bytes];
    struct str name = {shown, a->n - PATH_AT};
    bool ours = false, others = memchr(a->un.sun_path, '\n', name.n) != NULL; /* an unreadable line */
    for (size_t i = 0; i < name.n; i++)
        shown[i] = (char)(a->un.sun_path[i] ? a->un.sun_path[i] : '@');
    if (unix_table(g, &table) < 0)
        others = true;
    for (struct str rest = buf_view(&table); rest.n && !others;) {
        const struct proc_socket one = proc_socket_line(str_until(&rest, '\n'));
        if (!str_eq(one.name, name))
            continue;
        if (abstract_has(g, one.inode))
            ours = true;
        else if (one.listens)
            others = true;
    }
    buf_free(&table);
    return ours && !others;
}

/* ---- the caller's socket ---- */

/* Where it cannot be had: one like it, if it is a Unix socket without name and peer. -EPERM: anything else. */
static int socket_like(struct guard *g, int fd)
{
    struct buf table = BUF(UNIX_TABLE);
    uint64_t inode;
    int type = 0, no = again_inode(g, fd, &inode);
    if (no == 0)
        no = unix_table(g, &table);
    for (struct str rest = buf_view(&table); no == 0 && rest.n && !type;) {
        const struct proc_socket one = proc_socket_line(str_until(&rest, '\n'));
        if (one.inode == inode && !one.name.n && !one.listens && !one.connected)
            type = one.type;
    }
    buf_free(&table);
    return no < 0 ? no : type ? again_socket(g, fd, type) : -EPERM;
}

static int caller_socket(struct guard *g, int fd)
{
    int own = target_fd(g, fd);
    if (own < 0 || !g->again)
        return own;
    (void)sys_close(own);
    return socket_like(g, fd);
}

/* After a call on it that succeeded. */
static long socket_back(struct guard *g, int fd, int own, long r)
{
    if (!g->again || (r != 0 && r != -EINPROGRESS))
        return r;
    int no = again_hand_over(g, fd, own);
    return no < 0 ? no : r;
}

/* ---- bind ---- */

/* Remembers the name that the kernel chose (autobind) or took. */
static void bound_abstract(struct guard *g, int fd)
{
    struct address a = {.n = sizeof a.bytes};
    socklen_t n = sizeof a.bytes;
    if (sys_getsockname(fd, a.bytes, &n) < 0 || n > sizeof a.bytes)
        return;
    a.n = n;
    classify(&a, true);
    struct sys_stat st;
    if (a.abstract && sys_stat_fd(fd, SYS_STAT_BASIC, &st) == 0)
        abstract_add(g, st.inode);
}

/* Binds by the held directory, because the text could lead elsewhere by now. getsockname() then shows only the name. */
static int bind_held(int fd, const struct place *p)
{
    struct address a = {.n = sizeof(struct sockaddr_un)};
    char room[12];
    a.un.sun_family = AF_UNIX;
    int n = snprintf(a.un.sun_path, sizeof a.un.sun_path, "%s/%s", decimal(room, p->dir), p->name);
    return n < 0 || (size_t)n >= sizeof a.un.sun_path ? -ENAMETOOLONG : sys_bind(fd, a.bytes, a.n);
}

/* Whether the text leads this process, too, to the directory that was judged: not by /proc/self, nor from another mount namespace. */
static bool leads_here(struct guard *g, const struct address *a, const struct place *p)
{
    struct sys_stat here, there;
    address_path(a, g->text[1]);
    char *slash = strrchr(g->text[1], '/');
    if (slash)
        slash[slash == g->text[1]] = 0;
    auto_fd int dir = sys_openat(AT_FDCWD, slash ? g->text[1] : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    return dir >= 0 && sys_stat_fd(dir, SYS_STAT_BASIC, &here) == 0 &&
           sys_stat_fd(p->dir, SYS_STAT_BASIC, &there) == 0 && sys_same(&here, &there);
}

/* Binds in the caller's working directory, to which a relative address refers. */
static int bind_there(struct guard *g, int fd, const struct address *a, const struct place *p)
{
    bool relative = a->un.sun_path[0] != '/', held = g->n_holds;
    auto_fd int cwd = relative && !held ? target_dir(g, AT_FDCWD) : -1;
    if (relative && !held && (cwd < 0 || sys_fchdir(cwd) < 0))
        return cwd < 0 ? cwd : -EACCES;
    held = held || !leads_here(g, a, p);
    if (relative && held)
        (void)sys_fchdir(g->self_fd);
    int no = held ? bind_held(fd, p) : sys_bind(fd, a->bytes, a->n);
    if (relative)
        (void)sys_fchdir(g->self_fd);
    if (no < 0)
        return no;
    struct sys_stat st;
    no = born_stat(p->dir, p->name, AT_SYMLINK_NOFOLLOW, &st);
    if (no == 0 && S_ISSOCK(st.mode))
        born_add(g, &st);
    return 0;
}

static int bind_path(struct guard *g, int fd, const struct address *a)
{
    struct sys_stat st;
    address_path(a, g->text[0]);
    int no = target_umask(g);
    if (no == 0)
        no = names_lock(g, true);
    if (no < 0)
        return no;
    no = place_find(g, AT_FDCWD, g->text[0], &g->from);
    if (no == 0) {
        bool there = sys_stat_at(g->from.dir, g->from.name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0;
        no = there ? -EADDRINUSE : hold_place(g, &g->from, DENIAL_CREATE);
        if (no == 0)
            no = verdict_make(g, &g->from, MADE_OTHER);
        if (no == 0)
            no = target_valid(g);
        if (no == 0)
            no = bind_there(g, fd, a, &g->from);
        holds_drop(g);
        place_drop(&g->from);
    }
    names_unlock(g);
    return no;
}

long bind_call(struct guard *g, int fd, uint64_t address, uint32_t n)
{
    struct address a;
    auto_fd int own = caller_socket(g, fd);
    int no = own < 0 ? own : address_of(g, own, address, n, &a);
    if (no < 0)
        return no;
    if (a.path)
        return socket_back(g, fd, own, bind_path(g, own, &a));
    no = sys_bind(own, a.bytes, a.n);
    if (no == 0 && a.local)
        bound_abstract(g, own);
    return socket_back(g, fd, own, no);
}

/* ---- connect ---- */

static bool named_socket(struct guard *g, const struct object *o)
{
    if (rules_socket(&g->rules, object_path(o)))
        return true;
    /* The path in the policy may lead through links: compare the objects. */
    for (size_t i = 0; i < g->rules.n_sockets; i++) {
        struct sys_stat st;
        char name[PLACE_PATH];
        if (str_copy(g->rules.sockets[i].path, name, sizeof name) &&
            sys_stat_at(AT_FDCWD, name, 0, SYS_STAT_BASIC, &st) == 0 && sys_same(&st, &o->st))
            return true;
    }
    return false;
}

static int connect_allowed(struct guard *g, const struct object *o)
{
    const struct rule *rule = rules_hidden(&g->rules, object_path(o));
    if (rule)
        return deny(g, DENIAL_CONNECT, rule, object_path(o), "a hidden name");
    if (!S_ISSOCK(o->st.mode) || born_has(g, &o->st) || rules_private(&g->rules, object_path(o)) || named_socket(g, o))
        return 0; /* let the kernel return ECONNREFUSED if it is no socket */
    return deny(g, DENIAL_CONNECT, NULL, object_path(o), "a socket that was not made in this box");
}

/* Opens the inode behind the path, or returns -errno. */
static int connect_object(struct guard *g, const struct address *a)
{
    address_path(a, g->text[0]);
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find(g, AT_FDCWD, g->text[0], &g->from);
    if (no == 0) {
        no = object_find(g, &g->from, true, &g->object);
        place_drop(&g->from);
    }
    if (no == 0) {
        if (g->object.n == 0) /* a socket reached through a magic link has no path of its own */
            no = path_of(g, g->object.fd, g->object.path, &g->object.n);
        if (no == 0)
            no = connect_allowed(g, &g->object);
        if (no < 0)
            object_drop(&g->object);
    }
    names_unlock(g);
    return no;
}

/*
 * An unconnected TCP socket: tries non-blocking first, because nearby servers have answered at once and involving
 * another worker takes longer. A process could notice that only by reading the socket's flags while it is being
 * connected; all else that the flag affects fails on such a socket. -EALREADY: the caller waits, and so must we.
 */
static int connect_near(int fd, long flags, const struct address *a)
{
    enum { STATE_CLOSE = 7 };
    uint8_t state = 0;
    socklen_t n = sizeof state;
    if (sys_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &n) < 0 || n != sizeof state || state != STATE_CLOSE ||
        sys_fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -EALREADY;
    int no = sys_connect(fd, a->bytes, a->n);
    if (no == -EINPROGRESS) /* a nearby server has answered by now */
        no = sys_connect(fd, a->bytes, a->n);
    (void)sys_fcntl(fd, F_SETFL, flags);
    return no;
}

static int connect_now(struct guard *g, int fd, const struct address *a)
{
    int no = 0;
    long flags = sys_fcntl(fd, F_GETFL, 0);
    if (flags >= 0 && !(flags & O_NONBLOCK)) {
        no = a->n >= sizeof a->any.sa_family && a->any.sa_family != AF_UNIX ? connect_near(fd, flags, a) : -EALREADY;
        if (no != -EALREADY)
            return no;
        g->lent = fd;
        no = guard_may_block(g);
        g->lent = -1;
    }
    while (no == 0) {
        no = sys_connect(fd, a->bytes, a->n);
        /* Only the end of the box sends us signals; a caller that has died does not wait any more. */
        if (no != -EINTR || target_valid(g) < 0)
            break;
        no = 0;
    }
    return no;
}

static int connect_path(struct guard *g, int fd, const struct address *a)
{
    struct address by_inode = {.n = sizeof(struct sockaddr_un)};
    char room[12];
    int no = connect_object(g, a);
    if (no < 0)
        return no;
    by_inode.un.sun_family = AF_UNIX;
    (void)snprintf(by_inode.un.sun_path, sizeof by_inode.un.sun_path, "%s", decimal(room, g->object.fd));
    no = target_valid(g);
    if (no == 0)
        no = connect_now(g, fd, &by_inode);
    object_drop(&g->object);
    return no;
}

long connect_call(struct guard *g, int fd, uint64_t address, uint32_t n)
{
    struct address a;
    auto_fd int own = caller_socket(g, fd);
    int no = own < 0 ? own : address_of(g, own, address, n, &a);
    if (no < 0)
        return no;
    if (a.path)
        return socket_back(g, fd, own, connect_path(g, own, &a));
    if (a.abstract && inquiry_is(a.un.sun_path, a.n - PATH_AT))
        return inquiry_call(g, fd);
    if (a.abstract && !(g->plan->namespaces & NEW_NETWORK) && !abstract_ours(g, &a)) {
        char name[128] = "@";
        memcpy(name + 1, a.un.sun_path + 1, a.n - PATH_AT - 1);
        return deny(g, DENIAL_CONNECT, NULL, (struct str){name, a.n - PATH_AT},
                    "a socket that was not made in this box");
    }
    return socket_back(g, fd, own, connect_now(g, own, &a));
}

/* ---- pairs ---- */

/* If the caller has only one free descriptor, one of the two installed remains: only the caller can close it. */
long pair_call(struct guard *g, int type, int protocol, uint64_t to)
{
    int ends[2], numbers[2];
    int no = target_bytes(g, to, numbers, sizeof numbers);
    if (no == 0) /* check before anything is installed, as the kernel does */
        no = target_write(g, to, numbers, sizeof numbers);
    if (no == 0)
        no = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | (type & ~SOCK_KIND) | SOCK_CLOEXEC, protocol, ends);
    if (no < 0)
        return no;
    auto_fd int one = ends[0], other = ends[1];
    no = numbers[0] = descriptor_install(g, one, type & SOCK_CLOEXEC);
    if (no >= 0)
        no = numbers[1] = descriptor_install(g, other, type & SOCK_CLOEXEC);
    return no < 0 ? no : target_write(g, to, numbers, sizeof numbers);
}
