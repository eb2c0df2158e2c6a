/*
 * Build-time program: writes the seccomp filters of runtime/filter.h as C data. It can generate filters of any
 * architecture (--arch), so a cross build needs nothing more; of libseccomp only the tables of names and numbers are
 * used. The lists are in protocol/filter_names.h and protocol/notified.h.
 *
 * How a filter is made. Every system call number gets a verdict: a node of a graph whose leaves are RETs and whose
 * inner nodes load an argument, mask it and branch. Equal nodes are shared, so equal verdicts are one node, and
 * neighbouring numbers with the same verdict are merged into a range. A balanced binary tree of JGE selects the range.
 * The program is written backwards, leaves first, because BPF only jumps forward: when a node is written, everything it
 * can reach has its position. A conditional jump reaches 255 instructions; a RET farther away is written again,
 * anything else is reached through a JA.
 *
 * Why a tree: when a filter is installed the kernel runs it once for every system call number (for its cache of calls
 * that are always allowed), so the length of the path to a verdict counts some 450 times before the first exec. A
 * linear list of 300 rules costs about 0.5 ms there, the tree 0.1 ms.
 *
 * Why foreign calls get ENOSYS and not a kill: numbers of i386 and x32 name other calls than the table judges, so none
 * may pass; but a program that probes for 32-bit support should learn that it is missing, and continue.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "protocol/notified.h"
#include "protocol/filter_names.h"
#include "protocol/step.h"

#define MAX_NR      600
#define MAX_NODES   8192
#define MAX_PROGRAM 4095 /* BPF_MAXINSNS is 4096 */

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "filter-gen: ");
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

/* ---- numbers ---- */

/* Calls that the libseccomp of Debian 12 or of Ubuntu 22.04 (2.5.3) lacks. From 424 on all architectures share their numbers. */
static const struct {
    const char *name;
    int nr;
    uint32_t audit; /* the only architecture that has it, or 0 */
} newer[] = {
    {"futex_waitv", 449, 0},
    {"set_mempolicy_home_node", 450, 0},
    {"cachestat", 451, 0},
    {"fchmodat2", 452, 0},
    {"map_shadow_stack", 453, 0},
    {"futex_wake", 454, 0},
    {"futex_wait", 455, 0},
    {"futex_requeue", 456, 0},
    {"statmount", 457, 0},
    {"listmount", 458, 0},
    {"lsm_get_self_attr", 459, 0},
    {"lsm_set_self_attr", 460, 0},
    {"lsm_list_modules", 461, 0},
    {"mseal", 462, 0},
    {"setxattrat", 463, 0},
    {"getxattrat", 464, 0},
    {"listxattrat", 465, 0},
    {"removexattrat", 466, 0},
    {"open_tree_attr", 467, 0},
    {"file_getattr", 468, 0},
    {"file_setattr", 469, 0},
    {"listns", 470, 0},
    {"rseq_slice_yield", 471, 0},
    {"uretprobe", 335, AUDIT_ARCH_X86_64},
    {"uprobe", 336, AUDIT_ARCH_X86_64},
};

struct target {
    const char *name;
    uint32_t scmp, audit;
};
static const struct target targets[] = {
    {"x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64},
    {"aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
};

/* Number of `name`, -1 if this architecture has no such call. An unknown name is an error in the lists. */
static int number(const struct target *t, const char *name)
{
    int nr = seccomp_syscall_resolve_name_arch(t->scmp, name);
    if (nr >= 0)
        return nr;
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        if (!strcmp(newer[i].name, name))
            return !newer[i].audit || newer[i].audit == t->audit ? newer[i].nr : -1;
    }
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (seccomp_syscall_resolve_name_arch(targets[i].scmp, name) >= 0)
            return -1;
    }
    die("no architecture has a call named '%s'", name);
}

/* ---- graph ---- */

enum op { OP_RET, OP_LOAD, OP_AND, OP_JEQ, OP_JGE, OP_JSET };
struct node {
    enum op op;
    uint32_t k;
    struct node *yes, *no; /* LOAD and AND continue at `yes` */
    int at;                /* instructions from the program's end, -1 until written */
};
static struct node nodes[MAX_NODES];
static int n_nodes;

static struct node *intern(enum op op, uint32_t k, struct node *yes, struct node *no)
{
    if (yes == no && (op == OP_JEQ || op == OP_JGE || op == OP_JSET))
        return yes;
    for (int i = 0; i < n_nodes; i++) {
        if (nodes[i].op == op && nodes[i].k == k && nodes[i].yes == yes && nodes[i].no == no)
            return &nodes[i];
    }
    if (n_nodes == MAX_NODES)
        die("more than %d nodes", MAX_NODES);
    nodes[n_nodes] = (struct node){op, k, yes, no, -1};
    return &nodes[n_nodes++];
}

static struct node *ret(uint32_t action)
{
    return intern(OP_RET, action, NULL, NULL);
}
static struct node *allow(void)
{
    return ret(SECCOMP_RET_ALLOW);
}
static struct node *notify(void)
{
    return ret(SECCOMP_RET_USER_NOTIF);
}
static struct node *refuse(int error)
{
    return ret(SECCOMP_RET_ERRNO | (uint32_t)error);
}
/* Loads the low half of argument `i`, then `next`. The kernel treats the judged arguments as ints, too. */
static struct node *load_word(int i, struct node *next)
{
    return intern(OP_LOAD, (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)i, next, NULL);
}
/* Loads the high half, for pointers, which are only tested for NULL. All supported machines are little-endian. */
static struct node *load_high(int i, struct node *next)
{
    return intern(OP_LOAD, (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)i + 4, next, NULL);
}
static struct node *mask_word(uint32_t bits, struct node *next)
{
    return intern(OP_AND, bits, next, NULL);
}
static struct node *equal(uint32_t k, struct node *yes, struct node *no)
{
    return intern(OP_JEQ, k, yes, no);
}
static struct node *any_bit(uint32_t bits, struct node *yes, struct node *no)
{
    return intern(OP_JSET, bits, yes, no);
}
static struct node *one_of(const uint32_t *values, size_t n, struct node *yes, struct node *no)
{
    while (n--)
        no = equal(values[n], yes, no);
    return no;
}
#define ONE_OF(yes, no, ...)                                                                                           \
    one_of((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), yes, no)

/* ---- notified calls: protocol/notified.h ---- */

struct row {
    const char *name;
    uint32_t filter;
    int verb;
    struct {
        int test, arg;
        uint32_t mask, value;
    } when[2];
};
#define ROW(call, filter, verb, first, second) {#call, filter, verb, {{first}, {second}}},
static const struct row common_rows[] = {NOTIFIED_COMMON(ROW)};
static const struct row old_rows[] = {NOTIFIED_X86_64(ROW)};
#undef ROW

/* If `v` begins by loading argument `arg` (and masking it with `bits`), what follows: for a branch that has done so. */
static struct node *loaded(int arg, struct node *v)
{
    return v->op == OP_LOAD && v == load_word(arg, v->yes) ? v->yes : v;
}
static struct node *masked(int arg, uint32_t bits, struct node *v)
{
    struct node *next = loaded(arg, v);
    return next != v && next->op == OP_AND && next->k == bits ? next->yes : v;
}

/* `yes` if the condition holds, else `no`. */
static struct node *condition(int test, int arg, uint32_t bits, uint32_t value, struct node *yes, struct node *no)
{
    switch (test) {
    case NOTIFIED_TEST_HAS:
        return load_word(arg, any_bit(bits, loaded(arg, yes), loaded(arg, no)));
    case NOTIFIED_TEST_LACKS:
        return load_word(arg, any_bit(bits, loaded(arg, no), loaded(arg, yes)));
    case NOTIFIED_TEST_IS:
        if (bits == UINT32_MAX)
            return load_word(arg, equal(value, loaded(arg, yes), loaded(arg, no)));
        return load_word(arg, mask_word(bits, equal(value, yes, masked(arg, bits, no))));
    default:
        return yes;
    }
}

/* The bits by which rows count. FILTER_LAYERED alone never makes a filter that passes more than it was thought for. */
static uint32_t row_bits(uint32_t filter)
{
    const uint32_t needs_all = FILTER_READS | FILTER_NO_INET | FILTER_PEERS;
    if (!(filter & FILTER_GUARD) || filter & needs_all)
        return filter & ~(uint32_t)FILTER_LAYERED;
    return filter & FILTER_LAYERED ? filter & ~(uint32_t)FILTER_GUARD : filter;
}

/* The rows of `name` before `no`, the first on top: so from the last one. */
static struct node *rows(const struct row *row, size_t n, const char *name, uint32_t filter, struct node *no)
{
    while (n--) {
        if (strcmp(row[n].name, name) != 0 || !(row[n].filter & filter))
            continue;
        struct node *yes = row[n].verb == NOTIFIED_CALL ? notify() : refuse(row[n].verb);
        for (int i = 1; i >= 0; i--)
            yes =
                condition(row[n].when[i].test, row[n].when[i].arg, row[n].when[i].mask, row[n].when[i].value, yes, no);
        no = yes;
    }
    return no;
}

/* For a call that none of the rules below refuses: notify or pass. */
static struct node *pass(const char *name, uint32_t filter)
{
    const uint32_t bits = row_bits(filter);
    struct node *old = rows(old_rows, sizeof old_rows / sizeof *old_rows, name, bits, allow());
    return rows(common_rows, sizeof common_rows / sizeof *common_rows, name, bits, old);
}

/* ---- verdicts on arguments ---- */

/* Numbers that asm-generic and x86-64 share; the build machine's headers may have others. */
enum {
    OPEN_CREATES = 0100 | 020000000, /* O_CREAT, or the bit that O_TMPFILE adds to O_DIRECTORY */
    SET_UID = 04000,
    SET_ID = 06000 /* and S_ISGID */
};

/*
 * A file in the workspace belongs to the caller: a set-user-id bit would give the caller's rights to whoever runs it on
 * the host, long after the box has ended. So no mode may include the bit.
 */
static struct node *verdict_mode(int mode_arg, uint32_t bits, struct node *next)
{
    return load_word(mode_arg, any_bit(bits, refuse(EPERM), next));
}

static struct node *verdict_open(int flags_arg, struct node *next)
{
    return load_word(flags_arg, any_bit(OPEN_CREATES, verdict_mode(flags_arg + 1, SET_ID, next), next));
}

/* New namespaces would give the box capabilities, and so mounts under names that the guard does not know. */
static struct node *verdict_namespaces(uint32_t filter, uint32_t more, struct node *next)
{
    const uint32_t new_namespaces = 0x7e020000; /* CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET */
    /* The guard refuses it, too, and tells pinfold, who says what would allow it. */
    struct node *no = filter & FILTER_GUARD ? notify() : refuse(EPERM);
    return filter & FILTER_USERNS ? next : load_word(0, any_bit(new_namespaces | more, no, next));
}

struct request {
    uint32_t mask, value;
};
#define X(mask, value, text) {mask, value},
static const struct request passing[] = {FILTER_IOCTLS(X)}, of_files[] = {FILTER_FILE_IOCTLS(X)};
#undef X

/* Whether the loaded request is in `list`: those with the same mask are compared together. */
static struct node *requested(const struct request *list, size_t n, struct node *yes, struct node *no)
{
    for (size_t from = n; from > 0;) {
        const uint32_t bits = list[from - 1].mask;
        struct node *other = bits == UINT32_MAX || no->op == OP_RET ? no : load_word(1, no);
        for (; from > 0 && list[from - 1].mask == bits; from--)
            other = equal(list[from - 1].value, yes, other);
        no = bits == UINT32_MAX ? other : mask_word(bits, other);
    }
    return no;
}

/*
 * Refuses typing into a terminal, taking its console output, and changing its line discipline; then passes only the
 * list, or (if a device is visible) everything except file systems' requests.
 */
static struct node *verdict_ioctl(uint32_t filter, struct node *next)
{
    enum { STI = 0x5412, LINUX = 0x541c, CONS = 0x541d, SETD = 0x5423 };
    struct node *other = refuse(ENOTTY);
    if (filter & FILTER_DEVICES)
        other = requested(of_files, sizeof of_files / sizeof *of_files, refuse(ENOTTY), next);
    struct node *known = requested(passing, sizeof passing / sizeof *passing, next, other);
    return load_word(1, ONE_OF(refuse(EPERM), known, STI, LINUX, CONS, SETD));
}

/*
 * A crash makes the kernel run the host's core_pattern program, as root on the host, on data from the box. The kernel
 * skips that if the limit is 1, but not if it is 0 (do_coredump() in fs/coredump.c), so nobody may change it: the call
 * returns success without effect.
 */
static struct node *verdict_core(int resource_arg, struct node *changes, struct node *next)
{
    enum { CORE = 4 };
    return load_word(resource_arg, equal(CORE, changes, next));
}

/* Without a new limit it only reads. */
static struct node *verdict_prlimit(struct node *next)
{
    struct node *high = load_high(2, equal(0, next, refuse(0)));
    return verdict_core(1, load_word(2, equal(0, high, refuse(0))), next);
}

static struct node *verdict_prctl(struct node *next)
{
    return load_word(0, equal(35 /* PR_SET_MM */, refuse(EPERM), next));
}

/* A lease, or a delegation of a directory, delays everybody who opens the file for up to 45 seconds: the guard, the
   host. */
static struct node *verdict_fcntl(struct node *next)
{
    enum { SET_LEASE = 1024, SET_DELEGATION = 1024 + 16 };
    return load_word(1, ONE_OF(refuse(EPERM), next, SET_LEASE, SET_DELEGATION));
}

static struct node *verdict_personality(struct node *next)
{
    /* PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE (debuggers) in any combination; all ones only queries. Others make
       mappings executable or map page zero. */
    struct node *harmless = any_bit(~(0x8u | 0x20000u | 0x40000u), refuse(EPERM), next);
    return load_word(0, equal(UINT32_MAX, next, harmless));
}

/* A kind of socket that the box does not have; the guard refuses it with the same errno (guard/calls/monitor.c). */
static struct node *no_socket(uint32_t filter, int error)
{
    return filter & FILTER_GUARD ? notify() : refuse(error);
}

static struct node *verdict_socket(uint32_t filter, struct node *next)
{
    enum { UNIX = 1, INET = 2, INET6 = 10, NETLINK = 16, STREAM = 1, DGRAM = 2, TYPE_MASK = 15 };
    enum { ICMP = 1, TCP = 6, UDP = 17, ICMPV6 = 58 };
    struct node *protocol = load_word(2, ONE_OF(next, refuse(EPROTONOSUPPORT), 0, ICMP, TCP, UDP, ICMPV6));
    /* SOCK_RAW; and SOCK_PACKET (10), which would be a packet socket. */
    struct node *inet = load_word(1, mask_word(TYPE_MASK, ONE_OF(protocol, no_socket(filter, EPERM), STREAM, DGRAM)));
    struct node *route = load_word(2, equal(0, next, refuse(EPROTONOSUPPORT)));
    struct node *family = equal(NETLINK, route, no_socket(filter, EAFNOSUPPORT));
    if (!(filter & FILTER_NO_INET))
        family = ONE_OF(inet, family, INET, INET6);
    return load_word(0, equal(UNIX, next, family));
}

static struct node *verdict_socketpair(struct node *next)
{
    return load_word(0, equal(1 /* AF_UNIX: no other family makes pairs, but TIPC */, next, refuse(EOPNOTSUPP)));
}

static struct node *judged(const char *name, uint32_t filter)
{
    struct node *next = pass(name, filter);
#define IS(what) (!strcmp(name, what))
    if (IS("open"))
        return verdict_open(1, next);
    if (IS("openat"))
        return verdict_open(2, next);
    if (IS("creat") || IS("mknod"))
        return verdict_mode(1, SET_ID, next);
    if (IS("mknodat"))
        return verdict_mode(2, SET_ID, next);
    /* Set-group-id on a directory is common (shared repositories); the guard can see whether it is one. */
    if (IS("chmod") || IS("fchmod"))
        return verdict_mode(1, SET_UID, next);
    if (IS("fchmodat") || IS("fchmodat2"))
        return verdict_mode(2, SET_UID, next);
    if (IS("clone"))
        return verdict_namespaces(filter, 0, next);
    if (IS("unshare"))
        return verdict_namespaces(filter, 0x80 /* CLONE_NEWTIME: in clone these bits are the exit signal */, next);
    if (IS("ioctl"))
        return verdict_ioctl(filter, next);
    if (IS("prctl"))
        return verdict_prctl(next);
    if (IS("fcntl"))
        return verdict_fcntl(next);
    if (IS("personality"))
        return verdict_personality(next);
    if (IS("socket"))
        return verdict_socket(filter, next);
    if (IS("socketpair"))
        return verdict_socketpair(next);
    if (IS("setrlimit"))
        return verdict_core(0, refuse(0), next);
    if (IS("prlimit64"))
        return verdict_prlimit(next);
#undef IS
    die("'%s' is listed as judged but no function judges it", name);
}

/* ---- the verdict for every number ---- */

struct table {
    const struct target *target;
    uint32_t filter;
    struct node *of[MAX_NR];
    const char *by[MAX_NR]; /* the list it is in, to detect a call in two lists */
};

/* Calls `give(table, name)` for every word of `names`. */
static void each_name(struct table *t, const char *list, const char *names,
                      struct node *(*give)(const struct table *, const char *name, int error), int error)
{
    char name[64];
    for (int used; sscanf(names, "%63s%n", name, &used) == 1; names += used) {
        int nr = number(t->target, name);
        if (nr >= MAX_NR)
            die("'%s' has number %d: raise MAX_NR", name, nr);
        if (nr < 0)
            continue;
        if (t->by[nr])
            die("'%s' is in the lists %s and %s", name, t->by[nr], list);
        t->by[nr] = list;
        t->of[nr] = give(t, name, error);
    }
}

static struct node *give_pass(const struct table *t, const char *name, int error)
{
    (void)error;
    return pass(name, t->filter);
}
/* Detects a call that changes names but is missing from the guard's table. */
static struct node *give_by_name(const struct table *t, const char *name, int error)
{
    (void)error;
    struct node *verdict = pass(name, t->filter);
    if ((row_bits(t->filter) & FILTER_GUARD) && verdict == allow())
        die("'%s' changes things by name and protocol/notified.h has no row for it", name);
    return verdict;
}
static struct node *give_judged(const struct table *t, const char *name, int error)
{
    (void)error;
    return judged(name, t->filter);
}
/* The guard refuses it, and tells. */
static bool is_told(const char *name, uint32_t filter)
{
#define X(error, unless, call) #call,
    static const char *const told[] = {FILTER_TOLD(X)};
#undef X
    for (size_t i = 0; (filter & FILTER_GUARD) && i < sizeof told / sizeof *told; i++) {
        if (!strcmp(told[i], name))
            return true;
    }
    return false;
}
static struct node *give_refuse(const struct table *t, const char *name, int error)
{
    return is_told(name, t->filter) ? notify() : refuse(error);
}

static void table_fill(struct table *t)
{
    each_name(t, "FILTER_ALLOWED", FILTER_ALLOWED, give_pass, 0);
    each_name(t, "FILTER_BY_NAME", FILTER_BY_NAME, give_by_name, 0);
    each_name(t, "FILTER_JUDGED", FILTER_JUDGED, give_judged, 0);
#define X(error, unless, names, text)                                                                                  \
    each_name(t, "FILTER_REFUSED", names, (t->filter & (unless)) ? give_pass : give_refuse, error);
    FILTER_REFUSED(X)
#undef X
    for (int nr = 0; nr < MAX_NR; nr++) {
        if (!t->of[nr])
            t->of[nr] = refuse(ENOSYS);
    }
}

/*
 * The tree over the ranges [from, to) that begin at start[]; start[to] is the end of the last one. Split at half of the
 * numbers on each side, so that wide ranges are found early: every number is run once at installation.
 */
static struct node *tree(const int *start, struct node *const *verdict, int from, int to)
{
    if (to - from == 1)
        return verdict[from];
    int middle = from + 1;
    while (middle < to - 1 && start[middle] + start[middle + 1] < start[from] + start[to])
        middle++;
    struct node *low = tree(start, verdict, from, middle);
    return intern(OP_JGE, (uint32_t)start[middle], tree(start, verdict, middle, to), low);
}

static struct node *program_graph(const struct table *t, int *ret_ranges)
{
    int start[MAX_NR + 1], n = 0;
    struct node *verdict[MAX_NR + 1];
    for (int nr = 0; nr < MAX_NR; nr++) {
        if (nr == 0 || t->of[nr] != t->of[nr - 1]) {
            start[n] = nr;
            verdict[n++] = t->of[nr];
        }
    }
    start[n] = start[n - 1] + 8; /* the kernel's table ends soon after the last known number */
    *ret_ranges = n;             /* the last one is ENOSYS and reaches to the end: new calls and those of x32 */
    struct node *numbers = intern(OP_LOAD, offsetof(struct seccomp_data, nr), tree(start, verdict, 0, n), NULL);
    struct node *native = equal(t->target->audit, numbers, refuse(ENOSYS));
    return intern(OP_LOAD, offsetof(struct seccomp_data, arch), native, NULL);
}

/* ---- writing, from the last instruction to the first ---- */

struct program {
    struct sock_filter code[MAX_PROGRAM + 1]; /* code[0] is the last instruction */
    int n;
};

static int put(struct program *p, uint16_t code, uint32_t k, int jt, int jf)
{
    if (p->n > MAX_PROGRAM)
        die("a filter is longer than the kernel takes");
    if (jt < 0 || jf < 0 || jt > 255 || jf > 255)
        die("a jump of %d or %d instructions", jt, jf);
    p->code[p->n] = (struct sock_filter){code, (uint8_t)jt, (uint8_t)jf, k};
    return p->n++;
}

/* Brings `to` within reach of an instruction that is written after at most `slack` others. */
static void bring_near(struct program *p, struct node *to, int slack)
{
    if (p->n + slack - to->at - 1 <= 255)
        return;
    if (to->op == OP_RET)
        to->at = put(p, BPF_RET | BPF_K, to->k, 0, 0);
    else
        to->at = put(p, BPF_JMP | BPF_JA, (uint32_t)(p->n - to->at - 1), 0, 0);
}

static void write_node(struct program *p, struct node *v)
{
    static const uint16_t code[] = {
        [OP_RET] = BPF_RET | BPF_K,           [OP_LOAD] = BPF_LD | BPF_W | BPF_ABS,
        [OP_AND] = BPF_ALU | BPF_AND | BPF_K, [OP_JEQ] = BPF_JMP | BPF_JEQ | BPF_K,
        [OP_JGE] = BPF_JMP | BPF_JGE | BPF_K, [OP_JSET] = BPF_JMP | BPF_JSET | BPF_K,
    };
    if (v->at >= 0)
        return;
    if (v->no)
        write_node(p, v->no);
    if (v->yes)
        write_node(p, v->yes);
    if (v->no) {
        bring_near(p, v->no, 1);
        bring_near(p, v->yes, 0);
        v->at = put(p, code[v->op], v->k, p->n - v->yes->at - 1, p->n - v->no->at - 1);
        return;
    }
    if (v->yes && v->yes->at != p->n - 1) { /* falls through: what follows must come directly after */
        if (v->yes->op == OP_RET)
            put(p, BPF_RET | BPF_K, v->yes->k, 0, 0);
        else
            put(p, BPF_JMP | BPF_JA, (uint32_t)(p->n - v->yes->at - 1), 0, 0);
    }
    v->at = put(p, code[v->op], v->k, 0, 0);
}

static void make(const struct target *target, uint32_t filter, struct program *p, int *ret_ranges)
{
    static struct table t;
    n_nodes = 0;
    if (!(filter & FILTER_GUARD) || filter & FILTER_LAYERED) /* nobody is notified; nobody plans both */
        filter &= ~(uint32_t)FILTER_MONITOR;
    t = (struct table){.target = target, .filter = filter};
    table_fill(&t);
    struct node *first = program_graph(&t, ret_ranges);
    p->n = 0;
    write_node(p, first);
}

/* ---- output ---- */

static void print_program(FILE *out, const struct program *p)
{
    for (int i = p->n - 1; i >= 0; i--) {
        const struct sock_filter *c = &p->code[i];
        fprintf(out, "    {0x%02x, %u, %u, 0x%x},\n", c->code, c->jt, c->jf, c->k);
    }
}

static void print_filters(FILE *out, const struct target *target)
{
    static struct program programs[FILTER_VARIANTS];
    int same[FILTER_VARIANTS], at[FILTER_VARIANTS], end = 0;
    fprintf(out,
            "/* Made by tools/filter_gen.c for %s. */\n#include <linux/filter.h>\n#include \"runtime/filter.h\"\n\n",
            target->name);
    fprintf(out, "const struct sock_filter filter_code[] = {\n");
    for (int v = 0; v < FILTER_VARIANTS; v++) {
        int ranges;
        make(target, (uint32_t)v, &programs[v], &ranges);
        for (same[v] = 0; same[v] < v; same[v]++) {
            const struct program *earlier = &programs[same[v]];
            if (earlier->n == programs[v].n &&
                !memcmp(earlier->code, programs[v].code, sizeof(struct sock_filter) * (size_t)earlier->n))
                break;
        }
        fprintf(out, "/* %d: %d ranges, %d instructions */\n", v, ranges, programs[v].n);
        at[v] = same[v] == v ? end : at[same[v]];
        if (same[v] == v) {
            print_program(out, &programs[v]);
            end += programs[v].n;
        }
    }
    fprintf(out, "};\nconst struct filter_program filters[] = {\n");
    for (int v = 0; v < FILTER_VARIANTS; v++)
        fprintf(out, "    {%d, %d},\n", at[v], programs[v].n);
    fprintf(out, "};\n");
}

static const char *name_of(const struct target *target, int nr, char into[64])
{
    char *name = seccomp_syscall_resolve_num_arch(target->scmp, nr);
    const char *known = name;
    for (size_t i = 0; !known && i < sizeof newer / sizeof *newer; i++)
        known = newer[i].nr == nr && number(target, newer[i].name) == nr ? newer[i].name : NULL;
    if (known)
        snprintf(into, 64, "%s", known);
    free(name);
    return known ? into : NULL;
}

/* Prints every number with its name, for the test, and those that no list decides about. */
static void print_numbers(FILE *out, const struct target *target)
{
    static struct table t;
    char name[64];
    t = (struct table){.target = target};
    table_fill(&t);
    fprintf(out, "/* Made by tools/filter_gen.c for %s: X(number, name) */\n#define FILTER_NUMBERS(X)", target->name);
    for (int nr = 0; nr < MAX_NR; nr++) {
        if (name_of(target, nr, name))
            fprintf(out, " \\\n    X(%d, %s)", nr, name);
    }
    fprintf(out, "\n/* In no list: ENOSYS. */\n#define FILTER_UNDECIDED \"");
    for (int nr = 0; nr < MAX_NR; nr++) {
        if (!t.by[nr] && name_of(target, nr, name))
            fprintf(out, "%s ", name);
    }
    fprintf(out, "\"\n");
}

int main(int argc, char **argv)
{
    const struct target *target = NULL;
    if (argc != 4)
        die("usage: filter-gen x86_64|aarch64 filters|numbers FILE");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (!strcmp(argv[1], targets[i].name))
            target = &targets[i];
    }
    if (!target)
        die("no filters are made for '%s'", argv[1]);
    FILE *out = fopen(argv[3], "w");
    if (!out)
        die("cannot write '%s': %s", argv[3], strerror(errno));
    if (!strcmp(argv[2], "filters"))
        print_filters(out, target);
    else
        print_numbers(out, target);
    if (fclose(out) != 0)
        die("cannot write '%s': %s", argv[3], strerror(errno));
    return 0;
}
