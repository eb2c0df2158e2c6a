/*
 * What a box is refused without the guard's doing: by read-only mounts, masks, modes, Landlock, the kernel or the filter. pinfold
 * gets a frame for each call that fails so, once for equal ones, and finds out whether a rule was why; nothing is decided here.
 * In a monitored box (FILTER_MONITOR) these are all calls with a path, an address or a number; otherwise those that cost nothing more:
 * connect(2), kill(2), and calls that the filter refuses.
 *
 * Calls that the guard performs have a result. Others are notified only for this (monitor_only()): the filter would pass them,
 * so something else enforces, and they continue. What the kernel will answer is asked before. Another thread may change the path
 * in between: then a frame is missing, or says too much, and nobody has gained or lost access. A system call that the filter
 * refuses is refused here with the same errno.
 */
#include <errno.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "base/hash.h"
#include "guard/calls/table.h"
#include "guard/calls/calls.h"
#include "protocol/paths.h"
#include "match/addr.h"
#include "match/proctext.h"
#include "protocol/notified.h"
#include "protocol/filter_names.h"
#include "protocol/plan_shape.h"
#include "sys/socket.h"

#define MONITOR_LINKS 8
#define SCRIPT_MAX    256

/* ---- which calls ---- */

struct told_call {
    int nr, no;
    uint32_t unless;
    char name[24];
};
#define X(error, unless, call) {SYS_##call, error, unless, #call},
static const struct told_call told_calls[] = {FILTER_TOLD(X)};
#undef X

static const struct told_call *told_call(const struct guard *g)
{
    for (size_t i = 0; i < sizeof told_calls / sizeof *told_calls; i++) {
        if (told_calls[i].nr == g->n.data.nr && !(told_calls[i].unless & g->plan->filter))
            return &told_calls[i];
    }
    return NULL;
}

/* The conditions under which no row but the monitor's notifies an open. */
static bool only_reads(const struct guard *g, uint64_t flags)
{
    const uint32_t filter = g->plan->filter;
    return filter & FILTER_MONITOR && !(filter & FILTER_READS) &&
           (!(flags & NOTIFIED_O_CHANGE) || (flags & NOTIFIED_O_FREE));
}

bool monitor_only(const struct guard *g)
{
    const struct looked_call *c = looked_call(g);
    if (c && c->want == R_OK) /* an open, whose flags follow its path; the others only if it is monitored */
        return only_reads(g, g->n.data.args[c->path + 1]);
    return c || g->n.data.nr == SYS_kill || g->n.data.nr == SYS_socket || told_call(g);
}

/* Calls with a path, or a descriptor, that the guard performs: the arguments (-1: it has none). */
struct performed {
    int nr;
    signed char dir, path;
    uint8_t action; /* enum denial_action */
};
#define X(call, perform, dir, path, action, expects) {SYS_##call, dir, path, action},
static const struct performed performed[] = {
    GUARD_CALLS(X)
    /* What a rename moves. */
    {SYS_renameat, 0, 1, DENIAL_REMOVE},
    {SYS_renameat2, 0, 1, DENIAL_REMOVE},
#ifdef SYS_rename
    {SYS_rename, -1, 0, DENIAL_REMOVE},
#endif
};
#undef X

/* ---- telling ---- */

/* Of each session of processes, so that each command in a session is told of its own. */
static uint32_t key_of(enum denial_action action, int no, uint32_t session, const char *target, size_t n)
{
    const uint32_t key = hash32(HASH32 ^ (uint32_t)action << 16 ^ (uint32_t)no ^ session << 8, target, n);
    return key ? key : 1;
}

/* The entry of that key, or one that is free; of many that are neither, one gives way. */
static struct repeated *repeated_at(struct shared *s, uint32_t key)
{
    struct repeated *at = NULL;
    for (size_t i = 0; i < 8; i++) {
        at = &s->repeated[(key + i) % REPEATED_MAX];
        if (!at->key || at->key == key)
            break;
    }
    return at;
}

/* Counts it; true if it is to be told. */
static bool is_first(struct shared *s, uint32_t key)
{
    table_lock(s);
    struct repeated *at = repeated_at(s, key);
    const bool first = at->key != key;
    s->repeats = true;
    *at = first ? (struct repeated){key, 1, 1} : (struct repeated){key, at->times + 1, at->told};
    table_unlock(s);
    return first;
}

/* It could not be told: the next one will be. */
static void not_told(struct shared *s, uint32_t key, uint32_t lost)
{
    table_lock(s);
    struct repeated *at = repeated_at(s, key);
    if (at->key == key)
        at->key = 0;
    s->looks.dropped += lost;
    table_unlock(s);
}

static void monitor_tell(struct guard *g, enum denial_action action, int no, const char *target, size_t n)
{
    const uint32_t session = g->who ? target_session(g) : 0, key = key_of(action, no, session, target, n);
    uint32_t lost = 0;
    if (g->ours || g->report < 0 || n > DENIAL_TEXT - DENIAL_ARGV - 2 || !is_first(g->shared, key))
        return;
    if (!denial_passes(g->shared, &g->shared->looks, &lost)) {
        not_told(g->shared, key, 0);
        return;
    }
    struct denial_frame f = {.kind = FRAME_SEEN,
                             .action = action,
                             .pid = pid_inside(g),
                             .session = session,
                             .no = (uint32_t)no,
                             .key = key,
                             .count = 1,
                             .lost = lost,
                             .n = (uint32_t)n + 2};
    memcpy(f.text, target, n);
    f.argv = g->who ? target_line(g, f.text + f.n) : 0;
    if (sys_send(g->report, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof f)
        not_told(g->shared, key, lost + 1);
}

void monitor_end(struct guard *g)
{
    struct shared *s = g->shared;
    struct denial_frame last = {.kind = FRAME_SEEN, .lost = s->looks.dropped};
    if (!(g->plan->filter & FILTER_MONITOR))
        return;
    for (size_t i = 0; s->repeats && i < REPEATED_MAX; i++) {
        const struct repeated *r = &s->repeated[i];
        struct denial_frame f = {.kind = FRAME_SEEN, .key = r->key, .count = r->times - r->told};
        if (r->key && r->times > r->told)
            (void)sys_send(g->report, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (last.lost)
        (void)sys_send(g->report, &last, sizeof last, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- where it is ---- */

struct monitor_spot {
    int at;                /* the nearest directory that is there, O_PATH, owned */
    size_t name, n;        /* where in `path` the rest begins, as it was written; the length */
    char path[PLACE_PATH]; /* of that directory as the box has it, and the rest */
};

/* `text` in directory `base` (-1: it is absolute), as its caller means it: /proc says something else of us. */
static int monitor_spot_find(struct guard *g, int base, const char *text, struct monitor_spot *ret)
{
    char head[PATH_MAX];
    size_t end = strlen(text), cut;
    while (end > 1 && text[end - 1] == '/')
        end--;
    for (cut = end;;) {
        while (cut > 0 && text[cut - 1] != '/')
            cut--;
        memcpy(head, cut ? text : ".", cut ? cut : 1);
        head[cut ? cut : 1] = 0;
        ret->at = directory_seen(g, base, head);
        if (ret->at >= 0)
            break;
        if (cut <= 1)
            return -ENOENT;
        while (cut > 1 && text[cut - 1] == '/')
            cut--;
    }
    int no = path_of(g, ret->at, ret->path, &ret->n);
    if (no == 0 && ret->n + 1 + (end - cut) >= sizeof ret->path)
        no = -ENAMETOOLONG;
    if (no < 0) {
        ret->at = close_fd(ret->at);
        return no;
    }
    ret->path[ret->n++] = '/';
    ret->name = ret->n;
    memcpy(ret->path + ret->n, text + cut, end - cut);
    ret->n += end - cut;
    ret->path[ret->n] = 0;
    return 0;
}

static bool is_of_proc(const struct monitor_spot *s)
{
    struct statfs fs;
    return sys_fstatfs(s->at, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* If the spot is a link, it becomes that to which the link leads. Not in /proc, whose links are more than their text. */
static bool monitor_spot_follow(struct guard *g, struct monitor_spot *s)
{
    struct monitor_spot next;
    char text[PATH_MAX];
    const long n = strchr(s->path + s->name, '/') || is_of_proc(s)
                       ? -EINVAL
                       : sys_readlinkat(s->at, s->path + s->name, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = 0;
    if (monitor_spot_find(g, s->at, text, &next) < 0)
        return false;
    (void)close_fd(s->at);
    *s = next;
    return true;
}

/* Whether the host may have something where the box has nothing, there or where a link at the end of it leads. `ret_clear`: and at
   no other name of its directory. */
static bool leads_to_mask(struct guard *g, const struct monitor_spot *from, bool *ret_clear)
{
    struct monitor_spot s = *from;
    const char *last = strrchr(s.path, '/');
    bool elsewhere, masked = plan_masks(g->plan, s.path, (size_t)(last - s.path), ret_clear);
    s.at = sys_fcntl(from->at, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < MONITOR_LINKS && !masked && s.at >= 0 && monitor_spot_follow(g, &s); i++)
        masked = plan_masks(g->plan, s.path, s.name - 1, &elsewhere);
    (void)close_fd(s.at);
    return masked;
}

/* Others than these are no refusals: the object is of another kind, or is there already. */
static bool is_refusal(enum denial_action action, int no)
{
    const bool user = action == DENIAL_OWNER && no == EINVAL; /* which the box does not have */
    return no == EACCES || no == EPERM || no == EROFS || user;
}

/* A call with this path fails with `no`. True: nothing is there, `ret` says where (without a descriptor), and `ret_clear` is as
   above. */
static bool tell_spot(struct guard *g, enum denial_action action, int no, int base, const char *text,
                      struct monitor_spot *ret, bool *ret_clear)
{
    if ((!is_refusal(action, no) && no != ENOENT) || monitor_spot_find(g, base, text, ret) < 0)
        return false;
    for (int i = 0; i < MONITOR_LINKS && action == DENIAL_WRITE && monitor_spot_follow(g, ret); i++)
        ; /* pinfold, which looks there, has another /proc/self */
    if (no != ENOENT || leads_to_mask(g, ret, ret_clear))
        monitor_tell(g, action, no, ret->path, ret->n);
    ret->at = close_fd(ret->at);
    return no == ENOENT;
}

static void tell_path(struct guard *g, enum denial_action action, int no, int base, const char *text)
{
    struct monitor_spot ignored;
    bool clear;
    (void)tell_spot(g, action, no, base, text, &ignored, &clear);
}

/* Reads the path at `at` into `text` and opens what it is relative to (*ret -1: nothing). Not for callers with another root. */
static bool path_read(struct guard *g, int dir, uint64_t at, char text[PATH_MAX], int *ret)
{
    *ret = -1;
    if (target_string(g, at, text) <= 0)
        return false;
    auto_fd int root = nested_root(g);
    if (root >= 0)
        return false;
    *ret = text[0] == '/' ? -1 : target_dir(g, dir);
    return text[0] == '/' || *ret >= 0;
}

/* ---- calls that continue ---- */

/* What the kernel would answer to an open for reading or an execve. Landlock judges opens alone, so one is made. */
static int would_open(struct guard *g, int base, const char *text, int want)
{
    struct sys_stat st;
    long no = sys_call(SYS_faccessat2, base, text, want, AT_EACCESS, 0, 0);
    if (no < 0 || !g->plan->tier)
        return (int)-no;
    auto_fd int fd = sys_openat(base, text, O_PATH | O_CLOEXEC, 0);
    if (fd < 0 || sys_stat_fd(fd, SYS_STAT_BASIC, &st) < 0 || !(S_ISREG(st.mode) || S_ISDIR(st.mode)))
        return 0;
    auto_fd int own = own_reopen(g, fd, O_RDONLY | O_NONBLOCK);
    return own < 0 ? -own : 0;
}

/* A path that leads nowhere for us may lead through /proc/self, by its text or by a link: what the kernel would answer its caller, and
   where. ENOENT: it leads nowhere for him, either. */
static int would_open_there(struct guard *g, int base, const char *text, int want, struct monitor_spot *ret)
{
    if (monitor_spot_find(g, base, text, ret) < 0)
        return ENOENT;
    for (int i = 0; i < MONITOR_LINKS && monitor_spot_follow(g, ret); i++) {
    }
    const int no = is_of_proc(ret) ? 0 : would_open(g, ret->at, ret->path + ret->name, want);
    ret->at = close_fd(ret->at);
    return no;
}

/* The program that a script's first line names. True: there is nothing to tell of it. */
static bool script_look(struct guard *g, int base, const char *text)
{
    char head[SCRIPT_MAX];
    struct sys_stat st;
    auto_fd int fd = sys_openat(base, text, O_PATH | O_CLOEXEC, 0);
    if (fd < 0 || sys_stat_fd(fd, SYS_STAT_BASIC, &st) < 0 || !S_ISREG(st.mode))
        return false;
    auto_fd int own = own_reopen(g, fd, O_RDONLY | O_NONBLOCK);
    long n = own < 0 ? own : sys_read(own, head, sizeof head - 1);
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return n > 0;
    head[n] = 0;
    char *program = head + 2 + strspn(head + 2, " \t");
    program[strcspn(program, " \t\n")] = 0;
    int no = program[0] == '/' ? would_open(g, -1, program, X_OK) : 0;
    if (no)
        tell_path(g, DENIAL_EXEC, no, -1, program);
    return no == 0;
}

static void open_look(struct guard *g, enum denial_action action, int dir, uint64_t path, int want)
{
    struct monitor_spot s;
    bool clear;
    int base;
    if (!path_read(g, dir, path, g->text[0], &base))
        return;
    /* /proc is the box's own, and says "self" of its caller. */
    const bool proc = strncmp(g->text[0], "/proc/", 6) == 0 && action == DENIAL_READ, leaves = proc_leaves(g->text[0]);
    int no = leaves ? ENOENT : proc ? 0 : would_open(g, base, g->text[0], want);
    const int there = no == ENOENT ? would_open_there(g, base, g->text[0], want, &s) : ENOENT;
    if (there != ENOENT && is_refusal(action, there))
        monitor_tell(g, action, there, s.path, s.n);
    else if (there != ENOENT)
        ; /* nothing to tell of it */
    else if (no && tell_spot(g, action, no, base, g->text[0], &s, &clear))
        quiet_keep(g, dir, g->text[0], s.path, clear);
    else if (!no && action == DENIAL_EXEC && script_look(g, base, g->text[0]))
        quiet_program(g, g->text[0]);
    (void)close_fd(base);
}

/* A process of the host's is none for the box; its own numbers count from 1, so that they do not often meet. */
static void kill_look(struct guard *g, pid_t pid)
{
    char text[24];
    struct sys_stat st;
    struct target *t = g->who;
    if (pid <= 1 || (t->tgid == 0 && target_status(g, t) < 0) || t->own_tgid != t->box_tgid)
        return; /* in a pid namespace of its own */
    int n = snprintf(text, sizeof text, "/proc/%d", pid);
    const bool apart = g->plan->namespaces & CLONE_NEWPID;
    if (apart ? sys_stat_at(AT_FDCWD, text, 0, SYS_STAT_BASIC, &st) != -ENOENT : peer_of_box(g, pid))
        return;
    monitor_tell(g, DENIAL_SIGNAL, apart ? ESRCH : EPERM, text + sizeof "/proc/" - 1,
                 (size_t)n - (sizeof "/proc/" - 1));
}

/* As the filter decides (tools/filter_gen.c, verdict_socket()): what is left for us is of a family or type that no box has. */
static long socket_refuse(struct guard *g)
{
    const int family = (int)g->n.data.args[0], type = (int)g->n.data.args[1];
    const bool inet = (family == AF_INET || family == AF_INET6) && !(g->plan->filter & FILTER_NO_INET);
    char text[64];
    int n = snprintf(text, sizeof text, "socket(%d, %d)", family, type & 0xf);
    monitor_tell(g, DENIAL_CALL, inet ? EPERM : EAFNOSUPPORT, text, (size_t)n);
    return inet ? -EPERM : -EAFNOSUPPORT;
}

long monitor_look(struct guard *g)
{
    const struct told_call *told = told_call(g);
    const struct looked_call *c = looked_call(g);
    const bool known = g->who && g->who->tid == (pid_t)g->n.pid && target_valid(g) == 0;
    if (g->n.data.nr == SYS_socket)
        return socket_refuse(g);
    if (told) {
        monitor_tell(g, DENIAL_CALL, told->no, told->name, strlen(told->name));
        return -told->no;
    }
    if (!known)
        return CONTINUE;
    if (!c && g->n.data.nr != SYS_kill) /* told_call() or no row of the monitor's */
        return -ENOSYS;
    if (c)
        open_look(g, (enum denial_action)c->action, looked_dir(g, c), g->n.data.args[(unsigned)c->path], c->want);
    else
        kill_look(g, (pid_t)g->n.data.args[0]);
    return CONTINUE;
}

/* ---- calls that were performed ---- */

static bool is_loopback(const char *text)
{
    return strncmp(text, "127.", 4) == 0 || strncmp(text, "[::1]", 5) == 0;
}

/* A connection that does not wait has failed already: nobody is there. The error itself stays for the caller. */
static bool is_closed_again(struct guard *g)
{
    enum { STATE_CLOSE = 7 };
    uint8_t state = 0;
    socklen_t n = sizeof state;
    auto_fd int own = target_fd(g, (int)g->n.data.args[0]);
    return own >= 0 && sys_getsockopt(own, IPPROTO_TCP, TCP_INFO, &state, &n) == 0 && state == STATE_CLOSE;
}

static void address_result(struct guard *g, enum denial_action action, long r)
{
    char text[sizeof(struct sockaddr_storage) + 16];
    bool local = false;
    char bytes[sizeof(struct sockaddr_storage)];
    const uint64_t length = g->n.data.args[2];
    if (length > sizeof bytes || target_bytes(g, g->n.data.args[1], bytes, length) < 0)
        return;
    const size_t n = addr_shown(bytes, length, text, sizeof text, &local);
    int no = r < 0 ? (int)-r : 0;
    if (!n)
        return;
    if (no == EINPROGRESS && !local && is_loopback(text) && is_closed_again(g))
        no = ECONNREFUSED;
    if (local && text[0] == '@' && no == ECONNREFUSED) {
        monitor_tell(g, action, no, text, n);
    } else if (local && text[0] != '@' && no) {
        auto_fd int base = text[0] == '/' ? -1 : target_dir(g, AT_FDCWD);
        if (text[0] == '/' || base >= 0)
            tell_path(g, action, no, base, text);
    } else if (!local && action == DENIAL_BIND) {
        if (no == EADDRNOTAVAIL)
            monitor_tell(g, action, no, text, n);
    } else if (!local && g->plan->namespaces & CLONE_NEWNET) {
        /* It tells of connections itself, but for those to the box's own loopback. */
        const bool egress = plan_has(g->plan, STEP_CATCH), near = is_loopback(text),
                   lookup = n > 3 && !strcmp(text + n - 3, ":53");
        const bool failed = no == ENETUNREACH || no == EHOSTUNREACH || no == ECONNREFUSED || no == EADDRNOTAVAIL;
        if (near ? no == ECONNREFUSED || (lookup && !egress) : failed && !egress)
            monitor_tell(g, action, no ? no : ENETUNREACH, text, n);
    }
}

static void fd_result(struct guard *g, enum denial_action action, int no, int fd)
{
    char path[PLACE_PATH];
    size_t n = 0;
    auto_fd int own = target_fd(g, fd);
    if (own >= 0 && path_of(g, own, path, &n) == 0 && n)
        monitor_tell(g, action, no, path, n);
}

static void path_result(struct guard *g, const struct performed *p, int no)
{
    const __u64 *a = g->n.data.args;
    const int dir = p->dir < 0 ? AT_FDCWD : (int)a[(unsigned)p->dir];
    int base;
    if (p->path < 0) {
        if (is_refusal((enum denial_action)p->action, no))
            fd_result(g, (enum denial_action)p->action, no, dir);
        return;
    }
    if (!path_read(g, dir, a[(unsigned)p->path], g->text[0], &base))
        return;
    tell_path(g, (enum denial_action)p->action, no, base, g->text[0]);
    (void)close_fd(base);
}

/* Whether a name that was there may mean something else after the call, or be refused. */
static bool changes_names(int nr)
{
    for (size_t i = 0; i < sizeof performed / sizeof *performed; i++) {
        const uint8_t action = performed[i].action;
        if (performed[i].nr == nr &&
            (action == DENIAL_LINK || action == DENIAL_RENAME || action == DENIAL_CHANGE || action == DENIAL_OWNER))
            return true;
    }
#ifdef SYS_symlink
    return nr == SYS_symlink || nr == SYS_symlinkat;
#else
    return nr == SYS_symlinkat;
#endif
}

void monitor_result(struct guard *g, long r)
{
    const int nr = g->n.data.nr, no = r < 0 && r > -4096 ? (int)-r : 0;
    if (g->told || r == ANSWERED || r == GONE_ON || r == CONTINUE)
        return;
    if (nr == SYS_connect || nr == SYS_bind) {
        address_result(g, nr == SYS_connect ? DENIAL_CONNECT : DENIAL_BIND, r);
        return;
    }
    if (!(g->plan->filter & FILTER_MONITOR))
        return;
    if (!no) {
        if (changes_names(nr))
            (void)atomic_fetch_add(&g->shared->moves, 1);
        return;
    }
    if (nr == SYS_clone || nr == SYS_unshare)
        monitor_tell(g, DENIAL_NAMESPACE, no, "a new namespace", sizeof "a new namespace" - 1);
    const struct looked_call *c = looked_call(g);
    const bool reads = c && c->want == R_OK && !(g->n.data.args[c->path + 1] & NOTIFIED_O_CHANGE);
    for (size_t i = 0; i < sizeof performed / sizeof *performed; i++) {
        struct performed p = performed[i];
        if (p.nr != nr)
            continue;
        if (reads)
            p.action = DENIAL_READ;
        path_result(g, &p, no);
    }
}
