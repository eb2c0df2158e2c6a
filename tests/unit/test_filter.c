/*
 * The seccomp filters against a model written as plain conditions, call by call: a small BPF interpreter runs every
 * variant over every number and many arguments. Then the running kernel is asked about some.
 */
#include "unit.h"
#include "runtime/filter.h"
#include "protocol/notified.h"
#include "sys/sys.h"
#include "protocol/filter_names.h"
#include "protocol/step.h"
#ifdef OTHER_ARCHITECTURE
#include "filter-other-numbers.h"
#else
#include "filter-numbers.h"
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __x86_64__ != defined OTHER_ARCHITECTURE
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- the interpreter: what the kernel allows in a seccomp program and this generator uses ---- */

static uint32_t run(const struct filter_program *p, const struct seccomp_data *d)
{
    uint32_t a = 0;
    for (unsigned pc = 0; pc < p->n; pc++) {
        const struct sock_filter *c = &filter_code[p->at + pc];
        switch (c->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(c->k % 4 == 0 && c->k < sizeof *d);
            memcpy(&a, (const char *)d + c->k, 4);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= c->k;
            break;
        case BPF_JMP | BPF_JA:
            pc += c->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == c->k ? c->jt : c->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= c->k ? c->jt : c->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += a & c->k ? c->jt : c->jf;
            break;
        case BPF_RET | BPF_K:
            return c->k;
        default:
            fail_msg("instruction %u has code 0x%x", pc, c->code);
        }
    }
    fail_msg("ran over the program's end");
    return 0;
}

/* ---- the model ---- */

enum { PASS = 0, TELL = -1, DONE = -2 /* nothing happens, and 0 */ }; /* or the errno */

static bool word_in(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n) {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* Most names differ in their first letters. */
static bool is_name(const char *name, const char *other)
{
    return name[0] == other[0] && name[1] == other[1] && strcmp(name, other) == 0;
}

/* Only with the guard, and where nothing needs every call, are there rows of layered boxes alone. */
static uint32_t model_bits(uint32_t bits)
{
    if (!(bits & FILTER_LAYERED))
        return bits;
    const bool alone =
        bits & FILTER_GUARD && !(bits & FILTER_READS) && !(bits & FILTER_NO_INET) && !(bits & FILTER_PEERS);
    return alone ? bits - FILTER_GUARD : bits - FILTER_LAYERED;
}

struct test {
    int test, arg;
    uint32_t mask, value;
};
static const struct row { /* read top down */
    const char *call;
    uint32_t filter;
    int verb;
    struct test first, second;
} guards[] = {
#define X(call, filter, verb, first, second) {#call, filter, verb, {first}, {second}},
    NOTIFIED_COMMON(X) NOTIFIED_X86_64(X)
#undef X
};
static const struct refused {
    int error;
    uint32_t unless;
    const char *names;
} refusals[] = {
#define X(error, unless, names, text) {error, unless, names},
    FILTER_REFUSED(X)
#undef X
};
static const struct told {
    int error;
    uint32_t unless;
    const char *call;
} tellings[] = {
#define X(error, unless, call) {error, unless, #call},
    FILTER_TOLD(X)
#undef X
};

/* What the tables say of one name: they are read once, and the model is asked millions of times. */
#define OF_ONE 16
struct about {
    bool known, listed, judged;
    uint8_t n_guards, n_refusals, n_tellings;
    uint8_t guards[OF_ONE], refusals[OF_ONE], tellings[OF_ONE];
};

static void note(uint8_t *list, uint8_t *n, size_t which)
{
    assert_true(*n < OF_ONE);
    list[(*n)++] = (uint8_t)which;
}

static void find_about(struct about *one, const char *name)
{
    one->known = true;
    one->listed = word_in(name, FILTER_ALLOWED) || word_in(name, FILTER_BY_NAME);
    one->judged = word_in(name, FILTER_JUDGED);
    for (size_t i = 0; i < sizeof guards / sizeof *guards; i++)
        if (strcmp(guards[i].call, name) == 0)
            note(one->guards, &one->n_guards, i);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (word_in(name, refusals[i].names))
            note(one->refusals, &one->n_refusals, i);
    for (size_t i = 0; i < sizeof tellings / sizeof *tellings; i++)
        if (strcmp(tellings[i].call, name) == 0)
            note(one->tellings, &one->n_tellings, i);
}

static bool holds(const struct test *t, const uint32_t *a)
{
    uint32_t bits = a[t->arg] & t->mask;
    return t->test == NOTIFIED_TEST_NONE || (t->test == NOTIFIED_TEST_HAS && bits) ||
           (t->test == NOTIFIED_TEST_LACKS && !bits) || (t->test == NOTIFIED_TEST_IS && bits == t->value);
}

/* The guard's rows, else a pass. */
static int model_rows(uint32_t all, const struct about *one, const uint32_t *a)
{
    const uint32_t bits = model_bits(all);
    for (size_t i = 0; i < one->n_guards; i++) {
        const struct row *r = &guards[one->guards[i]];
        if (bits & r->filter && holds(&r->first, a) && holds(&r->second, a))
            return r->verb == NOTIFIED_CALL ? TELL : r->verb;
    }
    return PASS;
}

static bool creates_set_id(uint32_t flags, uint32_t mode)
{
    return (flags & (O_CREAT | 020000000)) && (mode & (S_ISUID | S_ISGID));
}

static int model_socket(uint32_t bits, uint32_t family, uint32_t type, uint32_t protocol)
{
    if (family == 1)
        return PASS;
    if (family == 16)
        return protocol == 0 ? PASS : EPROTONOSUPPORT;
    if ((family != 2 && family != 10) || (bits & FILTER_NO_INET))
        return bits & FILTER_GUARD ? TELL : EAFNOSUPPORT;
    if ((type & 15) != 1 && (type & 15) != 2)
        return bits & FILTER_GUARD ? TELL : EPERM;
    bool known = protocol == 0 || protocol == 1 || protocol == 6 || protocol == 17 || protocol == 58;
    return known ? PASS : EPROTONOSUPPORT;
}

static bool requested(uint32_t request, uint32_t mask, uint32_t value)
{
    return (request & mask) == value;
}

static int model_ioctl(uint32_t bits, uint32_t request)
{
    if (request == 0x5412 || request == 0x541c || request == 0x541d || request == 0x5423)
        return EPERM;
#define X(mask, value, text)                                                                                           \
    if (requested(request, mask, value))                                                                               \
        return PASS;
    FILTER_IOCTLS(X)
#undef X
    bool of_file = false;
#define X(mask, value, text) of_file |= requested(request, mask, value);
    FILTER_FILE_IOCTLS(X)
#undef X
    return (bits & FILTER_DEVICES) && !of_file ? PASS : ENOTTY;
}

/* What is refused by argument, whoever guards. `upper`: of all arguments, which matters where one is a pointer. */
static int model_judged(uint32_t bits, const char *name, const uint32_t *a, uint32_t upper)
{
#define IS(x) is_name(name, x)
    if (IS("open"))
        return creates_set_id(a[1], a[2]) ? EPERM : PASS;
    if (IS("openat"))
        return creates_set_id(a[2], a[3]) ? EPERM : PASS;
    if (IS("creat") || IS("mknod"))
        return a[1] & 06000 ? EPERM : PASS;
    if (IS("mknodat"))
        return a[2] & 06000 ? EPERM : PASS;
    if (IS("chmod") || IS("fchmod"))
        return a[1] & 04000 ? EPERM : PASS;
    if (IS("fchmodat") || IS("fchmodat2"))
        return a[2] & 04000 ? EPERM : PASS;
    if (IS("clone"))
        return !(bits & FILTER_USERNS) && (a[0] & 0x7e020000) ? bits & FILTER_GUARD ? TELL : EPERM : PASS;
    if (IS("unshare"))
        return !(bits & FILTER_USERNS) && (a[0] & 0x7e020080) ? bits & FILTER_GUARD ? TELL : EPERM : PASS;
    if (IS("ioctl"))
        return model_ioctl(bits, a[1]);
    if (IS("setrlimit"))
        return a[0] == RLIMIT_CORE ? DONE : PASS;
    if (IS("prlimit64"))
        return a[1] == RLIMIT_CORE && (a[2] || upper) ? DONE : PASS;
    if (IS("prctl"))
        return a[0] == PR_SET_MM ? EPERM : PASS;
    if (IS("fcntl"))
        return a[1] == 1024 || a[1] == 1040 ? EPERM : PASS;
    if (IS("personality"))
        return a[0] == 0xffffffff || (a[0] & ~0x60008u) == 0 ? PASS : EPERM;
    if (IS("socket"))
        return model_socket(bits, a[0], a[1], a[2]);
    if (IS("socketpair"))
        return a[0] == 1 ? PASS : EOPNOTSUPP;
#undef IS
    fail_msg("the model has no word about %s", name);
    return 0;
}

static int model(uint32_t bits, struct about *one, const char *name, const uint32_t *a, uint32_t upper)
{
    if (!name)
        return ENOSYS;
    if (!one->known)
        find_about(one, name);
    int verdict = one->listed ? PASS : ENOSYS;
    if (one->judged)
        verdict = model_judged(bits, name, a, upper);
    for (size_t i = 0; i < one->n_refusals; i++) {
        const struct refused *r = &refusals[one->refusals[i]];
        verdict = bits & r->unless ? PASS : r->error;
    }
    for (size_t i = 0; i < one->n_tellings; i++) {
        const struct told *t = &tellings[one->tellings[i]];
        if (bits & FILTER_GUARD && !(bits & t->unless))
            verdict = verdict == t->error ? TELL : -3;
    }
    return verdict == PASS ? model_rows(bits, one, a) : verdict;
}

/* ---- comparison ---- */

#define NUMBERS 600
static const char *names[NUMBERS] = {
#define X(nr, name) [nr] = #name,
    FILTER_NUMBERS(X)
#undef X
};
static struct about abouts[NUMBERS];

static uint32_t action_of(int expected)
{
    if (expected == PASS)
        return SECCOMP_RET_ALLOW;
    if (expected == DONE)
        return SECCOMP_RET_ERRNO;
    return expected == TELL ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)expected;
}

static void compare(uint32_t bits, uint32_t nr, const uint32_t *a, uint32_t junk)
{
    struct seccomp_data d = {.nr = (int)nr, .arch = NATIVE_ARCH, .instruction_pointer = junk};
    for (int i = 0; i < 6; i++)
        d.args[i] = (uint64_t)junk << 32 | a[i]; /* the upper halves matter of pointers only */
    const char *name = nr < NUMBERS ? names[nr] : NULL;
    uint32_t want = action_of(model(bits, &abouts[name ? nr : 0], name, a, junk)), got = run(&filters[bits], &d);
    if (got != want)
        fail_msg("variant %u, %s (%u) with %x %x %x %x: 0x%x instead of 0x%x", bits, name ? name : "-", nr, a[0], a[1],
                 a[2], a[3], got, want);
}

/* Where each step costs ten times as much, under a sanitizer or qemu, each variant gets a seventh of the pairs, the next
   one another seventh. */
#if defined __SANITIZE_ADDRESS__ || !defined __x86_64__
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

static uint32_t dice(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (uint32_t)(x >> 16);
}

static void every_call_gets_the_verdict_of_the_model(void **state)
{
    (void)state;
    /* What a judgement could turn on, in any place. */
    static const uint32_t telling[] = {
        0,          1,          2,          3,          5,          6,          8,          10,         15,
        16,         17,         29,         35,         38,         40,         58,         132,        255,
        262,        04000,      02000,      06000,      0644,       01777,      0100,       0101,       01000,
        01001,      02001,      010000000,  010000102,  020200002,  020040002,  020200000,  0x5412,     0x541b,
        0x541c,     0x541d,     0x5423,     0x40049409, 0x4020940d, 0xc0189436, 0x50009401, 0x5401,     0x6602,
        0x40086602, 0x6685,     0x5820,     0x401c5820, 0xbc01,     0x940f,     0x6f04,     0x10000000, 0x20000,
        0x7e020000, 0x80,       0x11,       0x3d0f00,   0x40000,    0x40008,    0x400000,   0x100000,   0x20008,
        0xffffffff, 0x80802,    0x80801,    0x805,      0x80003,    1024,       1040,       4,          7,
        0x8901,     0x8a01,     0xb701,     0xff0b,     0xc0502100, 0x80045200, 0x80086601, 0x80087601, 0xc020660b,
        0x40047602, 0xc0506617, 0x8070661a, 0x0001,     0x801c581f, 0x81009431, 0x4b33,     0x9360,     0xae01};
    const unsigned n = sizeof telling / sizeof *telling, every = EVERY * (unsigned)(1000 / tries(1000));
    for (uint32_t bits = 0; bits < FILTER_VARIANTS; bits++) {
        if (bits & FILTER_MONITOR && (!(bits & FILTER_GUARD) || bits & FILTER_LAYERED)) { /* as without it */
            assert_int_equal(filters[bits].at, filters[bits - FILTER_MONITOR].at);
            continue;
        }
        for (uint32_t nr = 0; nr < NUMBERS; nr++) {
            bool deep = names[nr] && word_in(names[nr], FILTER_JUDGED);
            /* Every pair of the first two; in half of the variants once more with something else among them. */
            for (unsigned round = deep ? bits % every : 0; round < (deep ? n * n * (bits & FILTER_USERNS ? 2 : 1) : 4);
                 round += deep ? every : 1) {
                uint32_t a[6] = {telling[round % n],
                                 telling[round / n % n],
                                 telling[dice() % n],
                                 telling[dice() % n],
                                 dice(),
                                 dice()};
                if (round >= n * n)
                    a[dice() % 4] = dice();
                compare(bits, nr, a, dice() & 1 ? dice() : 0);
            }
        }
        for (int i = 0; i < tries(2000); i++) { /* numbers beyond all, and those of x32 */
            uint32_t a[6] = {0};
            compare(bits, NUMBERS + dice() % 0x3fffffff, a, 0);
            compare(bits, 0x40000000u | dice() % NUMBERS, a, 0);
        }
        uint32_t none[6] = {0};
        compare(bits, 0xffffffff, none, 0);
    }
}

static void every_call_of_another_architecture_is_unknown(void **state)
{
    (void)state;
    static const uint32_t foreign[] = {
        AUDIT_ARCH_I386,    AUDIT_ARCH_ARM,
        AUDIT_ARCH_RISCV64, 0,
        0xffffffff,         NATIVE_ARCH ^ 1,
        AUDIT_ARCH_PPC64LE, NATIVE_ARCH == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64};
    for (uint32_t bits = 0; bits < FILTER_VARIANTS; bits++) {
        for (int nr = 0; nr < NUMBERS; nr++) {
            for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
                struct seccomp_data d = {.nr = nr, .arch = foreign[i]};
                assert_int_equal(run(&filters[bits], &d), SECCOMP_RET_ERRNO | ENOSYS);
            }
        }
    }
}

static void every_known_call_is_decided(void **state)
{
    (void)state;
    for (const char *p = FILTER_UNDECIDED; *p; p++) {
        if (*p != ' ')
            fail_msg("libseccomp knows calls that protocol/filter_names.h does not decide about: %s", FILTER_UNDECIDED);
    }
}

static void programs_are_small_and_shallow(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < FILTER_VARIANTS; bits++)
        assert_true(filters[bits].n >= 10 &&
                    filters[bits].n <= 400); /* a list of rules would be longer; the kernel's limit is 4096 */
}

#ifndef OTHER_ARCHITECTURE
/* ---- the kernel's own opinion ---- */

static int install(const struct sock_filter *code, uint16_t n)
{
    struct sock_fprog prog = {.len = n};
    memcpy(&prog.filter, &code, sizeof prog.filter);
    long r = sys_raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    return r < 0 ? (int)r : (int)sys_raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&prog, 0, 0, 0);
}

static void needs_seccomp(void)
{
    static const struct sock_filter pass[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    pid_t child = fork_child();
    if (child == 0)
        _exit(install(pass, 1) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) {
        print_message("seccomp filters cannot be installed here (qemu-user, or a kernel without them)\n");
        skip();
    }
}

struct ask {
    const char *what;
    long nr, a, b, c, d;
    long want; /* result; NOT_REFUSED: anything but ENOSYS, EPERM, EAFNOSUPPORT, EPROTONOSUPPORT */
};
#define NOT_REFUSED 1000

static bool fits(long got, long want)
{
    if (want != NOT_REFUSED)
        return got == want;
    return got != -ENOSYS && got != -EPERM && got != -EAFNOSUPPORT && got != -EPROTONOSUPPORT && got != -EOPNOTSUPP;
}

/* Asks in a child under the filter; without a listener a notified call gives ENOSYS. */
static void ask_kernel(uint32_t bits, const struct ask *asks, size_t n)
{
    int *failed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(failed, MAP_FAILED);
    long *got = (long *)(void *)(failed + 2);
    pid_t child = fork_child();
    if (child == 0) {
        int r = install(filter_code + filters[bits].at, filters[bits].n);
        for (size_t i = 0; r == 0 && i < n && !*failed; i++) {
            *got = sys_raw(asks[i].nr, asks[i].a, asks[i].b, asks[i].c, asks[i].d, 0, 0);
            if (!fits(*got, asks[i].want))
                *failed = (int)i + 1;
        }
        sys_raw(SYS_exit_group, r < 0 ? 100 : 0, 0, 0, 0, 0, 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("variant %u: the kernel takes the filter? status 0x%x", bits, status);
    if (*failed)
        fail_msg("variant %u: %s gave %ld instead of %ld", bits, asks[*failed - 1].what, *got, asks[*failed - 1].want);
    munmap(failed, 4096);
}

#define SOME_CALLS                                                                                                     \
    {"getpid", SYS_getpid, 0, 0, 0, 0, NOT_REFUSED}, {"Unix stream socket", SYS_socket, 1, 1, 0, 0, NOT_REFUSED},      \
        {"route netlink", SYS_socket, 16, 3, 0, 0, NOT_REFUSED},                                                       \
        {"generic netlink", SYS_socket, 16, 3, 16, 0, -EPROTONOSUPPORT},                                               \
        {"vsock", SYS_socket, 40, 1, 0, 0, -EAFNOSUPPORT}, {"packet", SYS_socket, 17, 3, 0, 0, -EAFNOSUPPORT},         \
        {"AF_ALG", SYS_socket, 38, 5, 0, 0, -EAFNOSUPPORT}, {"keyctl", SYS_keyctl, 0, 0, 0, 0, -ENOSYS},               \
        {"io_uring", SYS_io_uring_setup, 1, 0, 0, 0, -ENOSYS}, {"AIO", SYS_io_setup, 1, 0, 0, 0, -ENOSYS},             \
        {"bpf", SYS_bpf, 0, 0, 0, 0, -EPERM}, {"perf", SYS_perf_event_open, 0, 0, 0, 0, -EPERM},                       \
        {"unknown", 599, 0, 0, 0, 0, -ENOSYS}, {"reboot", SYS_reboot, 0, 0, 0, 0, -EPERM},                             \
        {"open for reading", SYS_openat, -100, (long)"/", 0, 0, NOT_REFUSED},                                          \
        {"set-user-id temporary file", SYS_openat, -100, (long)"/tmp", 020200002, 04755, -EPERM},                      \
        {"TIOCSTI", SYS_ioctl, 0, 0x5412, 0, 0, -EPERM}, {"lease", SYS_fcntl, 0, 1024, 0, 0, -EPERM},                  \
        {"subvolume", SYS_ioctl, 0, 0x5000940e, 0, 0, -ENOTTY},                                                        \
        {"key of encryption", SYS_ioctl, 0, 0xc0506617, 0, 0, -ENOTTY},                                                \
        {"size of a block", SYS_ioctl, -1, 2, 0, 0, -EBADF}, {"core limit", SYS_setrlimit, RLIMIT_CORE, 0, 0, 0, 0},   \
        {"core limit", SYS_prlimit64, 0, RLIMIT_CORE, 1, 0, 0},                                                        \
        {"other limit", SYS_prlimit64, 0, RLIMIT_NOFILE, 1, 0, -EFAULT},                                               \
    {                                                                                                                  \
        "executable stacks", SYS_personality, 0x400000, 0, 0, 0, -EPERM                                                \
    }

/* Without a listener what the guard tells of is unknown. */
#define TOLD_CALLS                                                                                                     \
    {"vsock", SYS_socket, 40, 1, 0, 0, -ENOSYS}, {"keyctl", SYS_keyctl, 0, 0, 0, 0, -ENOSYS},                          \
        {"bpf", SYS_bpf, 0, 0, 0, 0, -ENOSYS}, {"reboot", SYS_reboot, 0, 0, 0, 0, -ENOSYS},                            \
    {                                                                                                                  \
        "io_uring", SYS_io_uring_setup, 1, 0, 0, 0, -ENOSYS                                                            \
    }

static void the_kernel_agrees(void **state)
{
    (void)state;
    needs_seccomp();
    static const struct ask plain[] = {SOME_CALLS,
                                       {"user namespace", SYS_unshare, 0x10000000, 0, 0, 0, -EPERM},
                                       {"clone3", SYS_clone3, 0, 0, 0, 0, -ENOSYS},
                                       {"mount", SYS_mount, 0, 0, 0, 0, -EPERM},
                                       {"inet", SYS_socket, 2, 1, 0, 0, NOT_REFUSED},
                                       {"set-user-id", SYS_fchmodat, -100, (long)"/no", 04755, 0, -EPERM},
                                       {"mkdir", SYS_mkdirat, -100, (long)"/proc/no", 0, 0, -ENOENT}};
    static const struct ask guard[] = {TOLD_CALLS,
                                       {"mkdir", SYS_mkdirat, -100, (long)"/proc/no", 0, 0, -ENOSYS},
                                       {"open for writing", SYS_openat, -100, (long)"/dev/null", 1, 0, -ENOSYS},
                                       {"connect", SYS_connect, 99, 0, 0, 0, -ENOSYS},
                                       {"Unix datagrams", SYS_socket, 1, 2, 0, 0, -ESOCKTNOSUPPORT},
                                       {"listener", SYS_seccomp, 1, 8, 0, 0, -EBUSY}};
    static const struct ask none[] = {
        SOME_CALLS, {"inet", SYS_socket, 2, 1, 0, 0, -EAFNOSUPPORT}, {"inet6", SYS_socket, 10, 2, 0, 0, -EAFNOSUPPORT}};
    ask_kernel(0, plain, sizeof plain / sizeof *plain);
    ask_kernel(FILTER_GUARD, guard, sizeof guard / sizeof *guard);
    ask_kernel(FILTER_NO_INET, none, sizeof none / sizeof *none);
    static const struct ask layered[] = {TOLD_CALLS,
                                         {"mkdir", SYS_mkdirat, -100, (long)"/proc/no", 0, 0, -ENOENT},
                                         {"open for writing", SYS_openat, -100, (long)"/dev/null", 1, 0, NOT_REFUSED},
                                         {"set-user-id", SYS_fchmodat, -100, (long)"/no", 04755, 0, -EPERM},
                                         {"rename", SYS_renameat2, -100, (long)"/no", -100, (long)"/on", -ENOSYS},
                                         {"link", SYS_linkat, -100, (long)"/no", -100, (long)"/on", -ENOSYS},
                                         {"flock", SYS_flock, 99, 2, 0, 0, -ENOSYS},
                                         {"bind", SYS_bind, 99, 0, 0, 0, -ENOSYS},
                                         {"connect", SYS_connect, 99, 0, 0, 0, -ENOSYS},
                                         {"Unix datagrams", SYS_socket, 1, 2, 0, 0, -ESOCKTNOSUPPORT},
                                         {"listener", SYS_seccomp, 1, 8, 0, 0, -EBUSY}};
    ask_kernel(FILTER_GUARD | FILTER_LAYERED, layered, sizeof layered / sizeof *layered);
    static const struct ask peers[] = {SOME_CALLS,
                                       {"own priority", SYS_setpriority, 0, 0, 19, 0, 0},
                                       {"another's priority", SYS_setpriority, 0, 1, 19, 0, -ENOSYS},
                                       {"own group's", SYS_setpriority, 1, 0, 19, 0, 0},
                                       {"another group's", SYS_setpriority, 1, 1, 19, 0, -EPERM},
                                       {"the user's", SYS_setpriority, 2, 0, 19, 0, -EPERM},
                                       {"another's limit", SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0, -ENOSYS}};
    ask_kernel(FILTER_PEERS, peers, sizeof peers / sizeof *peers);
    static const struct ask devices[] = {SOME_CALLS, {"KVM", SYS_ioctl, -1, 0xae00, 0, 0, -EBADF}};
    ask_kernel(FILTER_DEVICES, devices, sizeof devices / sizeof *devices);
    static const struct ask alive = {"getpid", SYS_getpid, 0, 0, 0, 0, NOT_REFUSED};
    for (uint32_t bits = 0; bits < FILTER_VARIANTS; bits++)
        ask_kernel(bits, &alive, 1);
}

#if defined __x86_64__
static long i386_getpid(void)
{
    long r = 20;
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}

static void the_32_bit_door_is_shut(void **state)
{
    (void)state;
    needs_seccomp();
    for (int filtered = 0; filtered < 2; filtered++) {
        pid_t child = fork_child();
        if (child == 0) {
            if (filtered && install(filter_code + filters[0].at, filters[0].n) < 0)
                sys_raw(SYS_exit_group, 100, 0, 0, 0, 0, 0);
            long r = i386_getpid(); /* faults where the kernel has no gate for it */
            sys_raw(SYS_exit_group, r > 0 ? 41 : r == -ENOSYS ? 42 : 43, 0, 0, 0, 0, 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!filtered && (!WIFEXITED(status) || WEXITSTATUS(status) != 41)) {
            print_message("this kernel has no 32-bit entry to try\n");
            skip();
        }
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), filtered ? 42 : 41);
    }
}
#endif
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_gets_the_verdict_of_the_model),
        cmocka_unit_test(every_call_of_another_architecture_is_unknown),
        cmocka_unit_test(every_known_call_is_decided),
        cmocka_unit_test(programs_are_small_and_shallow),
#ifndef OTHER_ARCHITECTURE
        cmocka_unit_test(the_kernel_agrees),
#if defined __x86_64__
        cmocka_unit_test(the_32_bit_door_is_shut),
#endif
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
