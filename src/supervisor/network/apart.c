/*
 * Processes that execute the running program again (apart.h). The memfd begins with a page of counters, which both sides map; the
 * rest is read only by the new process, into memory of its own: struct apart_handed, then what its pointers lead to.
 *
 * Between clone and exec the child shares the memory of this process, which waits (like vfork(2)): it uses sys/ only.
 */
#include "supervisor/network/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "supervisor/network/live.h"
#include "sys/fault.h"
#include "sys/fd.h"
#include "sys/process.h"

#define APART_OPTION "--network-process"
enum {
    COUNTS = 4096 /* bytes of the memfd before the rest */,
    ROOM = 512 << 20,
    STACK = 16 << 10,
    KEPT = EGRESS_MAX_REACH + 6
};
_Static_assert(sizeof(struct egress_counts) <= COUNTS, "they are one page");

static const char handed_mark[8] = "network";

static bool has_main; /* apart_take() was called */

/* ---- what is handed on ---- */

/* Appends bytes, and has the pointer `*at` of the copy say where: the offset, which map_handed() turns into an address. */
static void put_part(struct buf *out, const void *bytes, size_t n, const void *at)
{
    static const char zeros[8];
    const uintptr_t offset = out->n;
    if (!bytes)
        return;
    buf_put(out, bytes, n);
    buf_put(out, zeros, 8 - n % 8); /* a text gets its end */
    memcpy((void *)(uintptr_t)at, &offset, sizeof offset);
}

static void put_proxy(struct buf *out, const struct proxy *from, struct proxy *to)
{
    const char *const *const texts[] = {&from->variable, &from->basic};
    const char **const theirs[] = {&to->variable, &to->basic};
    for (int i = 0; i < 2; i++)
        put_part(out, *texts[i], *texts[i] ? strlen(*texts[i]) : 0, theirs[i]);
    put_part(out, from->user.p, from->user.n, &to->user.p);
    put_part(out, from->password.p, from->password.n, &to->password.p);
}

static void fill_ask(struct buf *out, const struct egress_ask *ask, struct apart_handed *h)
{
    h->ask = *ask;
    h->counts = !ask->publish;
    put_part(out, ask->rules, ask->n_rules * sizeof *ask->rules, &h->ask.rules);
    put_part(out, ask->resolver.hosts.p, ask->resolver.hosts.n, &h->ask.resolver.hosts.p);
    h->proxied = ask->proxies;
    if (!ask->proxies)
        return;
    h->proxies = *ask->proxies;
    h->proxies.direct_text = NULL;
    h->proxies.skipped = NULL;
    put_proxy(out, &ask->proxies->plain, &h->proxies.plain);
    put_proxy(out, &ask->proxies->other, &h->proxies.other);
    put_part(out, ask->proxies->direct, ask->proxies->n_direct * sizeof *ask->proxies->direct, &h->proxies.direct);
}

static void fill_ssh(struct buf *out, const struct ssh_filter *ssh, struct apart_handed *h)
{
    struct ssh_named_key keys[SSH_MAX_KEYS];
    struct ssh_login one;
    h->ssh = *ssh;
    h->of_ssh = true;
    h->ssh.rules.n_keys = ssh->rules.n_keys < SSH_MAX_KEYS ? ssh->rules.n_keys : SSH_MAX_KEYS;
    for (size_t i = 0; i < h->ssh.rules.n_keys; i++) {
        keys[i] = ssh->rules.keys[i];
        put_part(out, keys[i].key.p, keys[i].key.n, &keys[i].key.p);
        put_part(out, keys[i].name, strlen(keys[i].name), &keys[i].name);
    }
    put_part(out, keys, h->ssh.rules.n_keys * sizeof keys[0], &h->ssh.rules.keys);
    put_part(out, ssh->rules.logins, ssh->rules.n_logins * sizeof one, &h->ssh.rules.logins);
    for (size_t i = 0; buf_ok(out) && i < ssh->rules.n_logins; i++) {
        const size_t at = (uintptr_t)h->ssh.rules.logins + i * sizeof one;
        one = ssh->rules.logins[i];
        put_part(out, one.host_key.p, one.host_key.n, &one.host_key.p);
        put_part(out, one.host, strlen(one.host), &one.host);
        if (buf_ok(out))
            memcpy(out->p + at, &one, sizeof one);
    }
}

static void put_text(struct buf *out, const char *text, const char *const *at)
{
    put_part(out, text, text ? strlen(text) : 0, at);
}

static void fill_gpg(struct buf *out, const struct gpg_filter *gpg, struct apart_handed *h)
{
    struct gpg_named_key keys[GPG_MAX_KEYS];
    const char *options[GPG_OPTIONS + 1] = {NULL};
    size_t n = 0;
    h->gpg = *gpg;
    h->of_gpg = true;
    h->gpg.rules.n_keys = gpg->rules.n_keys < GPG_MAX_KEYS ? gpg->rules.n_keys : GPG_MAX_KEYS;
    for (size_t i = 0; i < h->gpg.rules.n_keys; i++) {
        keys[i] = gpg->rules.keys[i];
        put_text(out, gpg->rules.keys[i].name, &keys[i].name);
    }
    put_part(out, keys, h->gpg.rules.n_keys * sizeof keys[0], &h->gpg.rules.keys);
    for (; n < GPG_OPTIONS && gpg->rules.options && gpg->rules.options[n]; n++)
        put_text(out, gpg->rules.options[n], &options[n]);
    put_part(out, options, (n + 1) * sizeof options[0], &h->gpg.rules.options);
}

static void put_handed(struct buf *out, const struct net_process *a)
{
    struct apart_handed h = {.sockets = a->sockets};
    memcpy(h.mark, handed_mark, sizeof h.mark);
    buf_put(out, &h, sizeof h);
    if (a->ssh)
        fill_ssh(out, a->ssh, &h);
    else if (a->gpg)
        fill_gpg(out, a->gpg, &h);
    else
        fill_ask(out, a->ask, &h);
    h.bytes = out->n;
    if (buf_ok(out))
        memcpy(out->p, &h, sizeof h);
}

/* The memfd; *ret_counts is mapped where the process counts. */
static int hand(const struct net_process *a, struct egress_counts **ret_counts)
{
    auto_buf struct buf out = BUF(ROOM);
    *ret_counts = NULL;
    put_handed(&out, a);
    if (!buf_ok(&out))
        return -ENOMEM;
    own_fd int memory = sys_memory("pinfold-network");
    if (memory < 0 || ftruncate(memory, COUNTS) < 0 || lseek(memory, COUNTS, SEEK_SET) < 0)
        return memory < 0 ? memory : -errno;
    const int no = fd_write_all(memory, out.p, out.n);
    if (no < 0)
        return no;
    if (a->ask && !a->ask->publish) {
        void *p = mmap(NULL, COUNTS, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        if (p == MAP_FAILED)
            return -errno;
        *ret_counts = p;
    }
    return sys_taken(&memory);
}

/* ---- the child, until exec ---- */

struct birth_apart {
    int program, memory, keep[KEPT], n;
    char number[12], *argv[4], **envp;
};

static void close_between(unsigned from, unsigned to)
{
    if (from <= to)
        (void)sys_close_range(from, to);
}

static void child(void *birth)
{
    struct birth_apart *b = birth;
    unsigned next = 0;
    (void)sys_call(SYS_setsid, 0, 0, 0, 0, 0, 0); /* not in reach of the terminal's signals */
    for (int i = 0; i < b->n; i++) {              /* in their order: nothing of the caller's but these */
        close_between(next, (unsigned)b->keep[i] - 1);
        next = (unsigned)b->keep[i] + 1;
        if (b->keep[i] != b->program)
            (void)sys_fcntl(b->keep[i], F_SETFD, 0);
    }
    close_between(next, ~0u);
    (void)sys_exec_fd(b->program, (const char *const *)b->argv, (const char *const *)b->envp);
    sys_exit(127);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void keep_fd(struct birth_apart *b, int fd)
{
    if (fd >= 0 && b->n < KEPT)
        b->keep[b->n++] = fd;
}

static void keep_theirs(struct birth_apart *b, const struct net_process *a)
{
    keep_fd(b, a->sockets);
    if (!a->ask) {
        keep_fd(b, a->ssh ? a->ssh->listener : a->gpg->listener);
        keep_fd(b, a->ssh ? a->ssh->events : a->gpg->events);
        return;
    }
    keep_fd(b, a->ask->events);
    for (size_t i = 0; i < a->ask->n_reach; i++)
        keep_fd(b, a->ask->reach[i].listener);
    if (a->ask->way == CATCH_SOCKET && !a->ask->publish)
        keep_fd(b, a->ask->sockets[EGRESS_PROXY]);
}

static int become_apart(struct birth_apart *b)
{
    void *stack = sys_pages(STACK);
    if (!stack)
        return -ENOMEM;
    const struct sys_clone how = {.flags = CLONE_VM | CLONE_VFORK,
                                  .exit_signal = SIGCHLD,
                                  .stack = (uint64_t)(uintptr_t)stack,
                                  .stack_size = STACK};
    sigset_t all, before; /* a handler would run in this memory */
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    int pid = sys_clone3_run(&how, child, b);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)sys_call(SYS_munmap, stack, STACK, 0, 0, 0, 0);
    return pid;
}

#ifdef PINFOLD_FAULTS /* calls are counted on: those of sys/, and those of the library that tests preload (tests/fault/libc.c) */
static char **fault_environment(struct birth_apart *b)
{
    extern char **environ;
    enum { MOST = 200 };
    static char counted[40], preload[PATH_MAX + 16], *list[MOST + 3];
    const char *library = getenv("PINFOLD_LIBC_HANDED");
    int n = 0;
    while (n < MOST && environ[n]) {
        list[n] = environ[n];
        n++;
    }
    snprintf(counted, sizeof counted, "%s=%d", FAULT_FD_NAME, sys_fault_fd);
    list[n++] = counted;
    keep_fd(b, sys_fault_fd);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library ? library : "");
    list[n++] = library ? preload : NULL;
    list[n] = NULL;
    return list;
}
#endif

int apart_start(struct net_process *a, struct err *e)
{
    static char name[] = "pinfold", option[] = APART_OPTION;
    static char *none[] = {NULL};
    struct birth_apart b = {.argv = {name, option, b.number, NULL}, .envp = none};
    struct egress_counts *counts = NULL;
    own_fd int program = has_main ? sys_openat(AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0) : -ENOEXEC;
    own_fd int memory = program < 0 ? program : hand(a, &counts);
    int pid = memory;
    if (memory >= 0) {
#ifdef PINFOLD_FAULTS
        b.envp = fault_environment(&b);
#endif
        snprintf(b.number, sizeof b.number, "%d", memory);
        b.program = program;
        keep_fd(&b, program);
        keep_fd(&b, memory);
        keep_theirs(&b, a);
        qsort(b.keep, (size_t)b.n, sizeof b.keep[0], by_number);
        pid = become_apart(&b);
    }
    if (pid < 0) {
        apart_end(counts);
        return err_no_process(e, err_sys(e, ERR_SYSTEM, -pid, "cannot execute this program again"));
    }
    if (a->ask)
        a->ask->counts = counts;
    return pid;
}

void apart_end(struct egress_counts *counts)
{
    if (counts)
        (void)munmap(counts, COUNTS);
}

/* ---- in the executed program ---- */

static void *address(struct apart_handed *h, const void *offset)
{
    return offset ? (char *)h + (uintptr_t)offset : NULL;
}

static void relocate_proxy(struct apart_handed *h, struct proxy *p)
{
    p->variable = address(h, p->variable);
    p->basic = address(h, p->basic);
    p->user.p = address(h, p->user.p);
    p->password.p = address(h, p->password.p);
}

static void relocate_ssh(struct apart_handed *h)
{
    struct ssh_rules *rules = &h->ssh.rules;
    struct ssh_named_key *keys = address(h, rules->keys);
    struct ssh_login *logins = address(h, rules->logins);
    for (size_t i = 0; keys && i < rules->n_keys; i++) {
        keys[i].key.p = address(h, keys[i].key.p);
        keys[i].name = address(h, keys[i].name);
    }
    for (size_t i = 0; logins && i < rules->n_logins; i++) {
        logins[i].host_key.p = address(h, logins[i].host_key.p);
        logins[i].host = address(h, logins[i].host);
    }
    rules->keys = keys;
    rules->logins = logins;
}

static void relocate_gpg(struct apart_handed *h)
{
    struct gpg_rules *rules = &h->gpg.rules;
    struct gpg_named_key *keys = address(h, rules->keys);
    const char **options = address(h, rules->options);
    for (size_t i = 0; keys && i < rules->n_keys; i++)
        keys[i].name = address(h, keys[i].name);
    for (size_t i = 0; options && options[i]; i++)
        options[i] = address(h, options[i]);
    rules->keys = keys;
    rules->options = options;
}

/* What apart_start() left in descriptor `fd`, or NULL. */
static struct apart_handed *map_handed(int fd)
{
    const off_t bytes = lseek(fd, 0, SEEK_END);
    if (bytes < (off_t)(COUNTS + sizeof(struct apart_handed)))
        return NULL;
    struct apart_handed *h = mmap(NULL, (size_t)bytes - COUNTS, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, COUNTS);
    if (h == MAP_FAILED || memcmp(h->mark, handed_mark, sizeof h->mark) != 0 || h->bytes != (uint64_t)bytes - COUNTS)
        return NULL;
    struct egress_ask *ask = &h->ask;
    ask->rules = address(h, ask->rules);
    ask->resolver.hosts.p = address(h, ask->resolver.hosts.p);
    ask->proxies = h->proxied ? &h->proxies : NULL;
    relocate_proxy(h, &h->proxies.plain);
    relocate_proxy(h, &h->proxies.other);
    h->proxies.direct = address(h, h->proxies.direct);
    relocate_ssh(h);
    relocate_gpg(h);
    void *counts = h->counts ? mmap(NULL, COUNTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
    ask->counts = counts == MAP_FAILED ? NULL : counts;
    return h;
}

struct apart_handed *apart_take(int argc, char **argv)
{
    char *rest;
    has_main = true;
    long fd = argc == 3 && strcmp(argv[1], APART_OPTION) == 0 ? strtol(argv[2], &rest, 10) : -1;
    struct apart_handed *h = fd < 0 || fd > INT_MAX || *rest ? NULL : map_handed((int)fd);
    if (h)
        (void)close((int)fd);
    return h;
}
