/*
 * What a virtual machine boots: the distribution's kernel, and an initramfs of pinfold-init and the few modules that a
 * microvm needs. Both are cached in pinfold's state directory, under a key of their sources.
 */
#include "backends/vm/vm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "backends/tools/tool.h"
#include "user/packages.h"

#define MAX_FILE (256u << 20)

static const char *const needed[] = {"virtio_mmio", "virtio_console", "9pnet_virtio", "9p", "virtio_net", NULL};

static int read_file(const char *path, struct buf *out)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_read_all(fd, out);
}

/* The version in a bzImage (Documentation/arch/x86/boot.rst, kernel_version), up to its first blank. NULL with errno 0: it is none. */
static const char *release_of(const char *kernel, struct arena *mem)
{
    static char head[32768];
    auto_fd int fd = open(kernel, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head - 1);
    if (n < 0)
        return NULL;
    errno = 0;
    if (n < 0x210 || memcmp(head + 0x202, "HdrS", 4) != 0)
        return NULL;
    head[n] = 0;
    size_t at = (size_t)((unsigned char)head[0x20e] | (unsigned char)head[0x20f] << 8) + 0x200;
    size_t k = at < (size_t)n ? strcspn(head + at, " ") : 0;
    return k && k < 100 && !memchr(head + at, '/', k) ? arena_str(mem, (struct str){head + at, k}) : NULL;
}

/* ---- modules ---- */

/* Whether `path` in modules.dep names the module `name`: ignores the difference of - and _, and compression. */
static bool is_module(struct str path, const char *name)
{
    while (memchr(path.p, '/', path.n))
        (void)str_until(&path, '/');
    size_t n = strlen(name);
    if (path.n < n + 3 || memcmp(path.p + n, ".ko", 3) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (path.p[i] != name[i] && !(path.p[i] == '-' && name[i] == '_'))
            return false;
    }
    return true;
}

struct modules {
    struct arena *mem;
    const char *dir;
    const char **at; /* paths below dir, in the order of loading */
    size_t n;
};

static int add_module(struct modules *m, struct str path)
{
    for (size_t i = 0; i < m->n; i++) {
        if (str_is(path, m->at[i]))
            return 0;
    }
    const char **slot = arena_push(m->mem, &m->at, &m->n, sizeof *slot);
    if (slot)
        *slot = arena_str(m->mem, path);
    return slot && *slot ? 0 : -ENOMEM;
}

/* "PATH: DEP1 DEP2": the last dependency is loaded first. */
static int add_line(struct modules *m, struct str path, struct str rest)
{
    struct str deps[64];
    size_t n = 0;
    while (rest.n && n < 64) {
        struct str d = str_until(&rest, ' ');
        if (d.n)
            deps[n++] = d;
    }
    int r = 0;
    while (r == 0 && n > 0)
        r = add_module(m, deps[--n]);
    return r < 0 ? r : add_module(m, path);
}

/* 0, or -ENOENT: neither a module nor built in. */
static int find_module(struct modules *m, const char *name, struct str dep, struct str builtin)
{
    while (dep.n) {
        struct str line = str_until(&dep, '\n'), path = str_until(&line, ':');
        if (is_module(path, name))
            return add_line(m, path, line);
    }
    while (builtin.n) {
        if (is_module(str_until(&builtin, '\n'), name))
            return 0;
    }
    return -ENOENT;
}

/* Fills in `m`; *ret_lacking is the missing module. */
static int find_modules(struct modules *m, const char **ret_lacking)
{
    auto_buf struct buf dep = BUF(16u << 20), builtin = BUF(4u << 20);
    const char *a = arena_printf(m->mem, "%s/modules.dep", m->dir),
               *b = arena_printf(m->mem, "%s/modules.builtin", m->dir);
    int r = !a || !b ? -ENOMEM : read_file(a, &dep);
    if (r == 0)
        (void)read_file(b, &builtin);
    for (size_t i = 0; r == 0 && needed[i]; i++) {
        *ret_lacking = needed[i];
        r = find_module(m, needed[i], buf_view(&dep), buf_view(&builtin));
    }
    return r;
}

/* ---- the kernel ---- */

/* The modules of `release`: as the policy says, beside the kernel's /boot, in /lib or /usr/lib. */
static bool modules_for(const struct policy *p, const char *kernel, struct modules *m, const char *release,
                        const char **ret_lacking)
{
    size_t boot = strlen(kernel);
    while (boot > 0 && kernel[boot - 1] != '/')
        boot--;
    bool in_boot = boot >= 6 && memcmp(kernel + boot - 6, "/boot/", 6) == 0;
    const char *places[] = {
        p->vm_modules, in_boot ? arena_printf(m->mem, "%.*s/lib/modules/%s", (int)(boot - 6), kernel, release) : NULL,
        arena_printf(m->mem, "/lib/modules/%s", release), arena_printf(m->mem, "/usr/lib/modules/%s", release)};
    *ret_lacking = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!places[i])
            continue;
        m->dir = places[i];
        m->n = 0;
        if (find_modules(m, ret_lacking) == 0)
            return true;
        if (i == 0)
            return false;
    }
    return false;
}

/* The same sources give the same key. */
static int make_key(const struct modules *m, const char *kernel, const char *init, bool emulated, char ret[17])
{
    SHA2_CTX sha;
    uint8_t sum[SHA256_DIGEST_LENGTH];
    char text[5000];
    struct stat st;
    SHA256Init(&sha);
    for (size_t i = 0; i < m->n + 2; i++) {
        const char *path = i == 0 ? kernel : i == 1 ? init : arena_printf(m->mem, "%s/%s", m->dir, m->at[i - 2]);
        if (!path || stat(path, &st) < 0)
            return path ? -errno : -ENOMEM;
        int n = snprintf(text, sizeof text, "%s %lld %lld.%09ld %s\n", path, (long long)st.st_size,
                         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, PINFOLD_VERSION);
        SHA256Update(&sha, (const uint8_t *)text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    }
    if (emulated)
        SHA256Update(&sha, (const uint8_t *)"unpacked", 8);
    SHA256Final(sum, &sha);
    hex_digits(sum, 8, ret);
    return 0;
}

/* Ubuntu keeps its kernels from all but root (mode 0600), which people meet as the first thing there. */
static int not_read(const char *kernel, int error, struct err *e)
{
    if (error == EACCES)
        return err_say(e, ERR_CANNOT,
                       "vm: you may not read the kernel '%s' (Ubuntu lets only root); copy it (sudo install -m 0644 "
                       "'%s' /usr/local/lib/) and name the copy with --vm-kernel FILE",
                       kernel, kernel);
    if (error)
        return err_sys(e, ERR_CANNOT, error, "vm: cannot read the kernel '%s' (--vm-kernel)", kernel);
    return err_say(e, ERR_CANNOT, "vm: '%s' is not a kernel (bzImage); name one with --vm-kernel FILE", kernel);
}

static int try_kernel(const struct policy *p, const char *kernel, bool emulated, struct arena *mem,
                      struct machine_fact *ret, struct err *e)
{
    struct modules m = {.mem = mem};
    const char *release = release_of(kernel, mem), *lacking = NULL, *init;
    if (!release)
        return not_read(kernel, errno, e);
    if (!modules_for(p, kernel, &m, release, &lacking))
        return err_say(
            e, ERR_CANNOT,
            lacking ? "vm: the kernel %s has no %s; install another (%s) or name one with --vm-kernel"
                    : "vm: the modules of the kernel %s%.0s%.0s are not in /lib/modules; name their directory with "
                      "--vm-modules DIR",
            release, lacking ? lacking : "", package_install("linux-image-amd64", (char[PACKAGE_WORDS]){0}));
    int r = tool_init(mem, &init, NULL, e);
    if (r < 0)
        return r;
    *ret = (struct machine_fact){.kernel = kernel, .modules = m.dir, .release = release};
    r = make_key(&m, kernel, init, emulated, ret->key);
    return r < 0 ? err_sys(e, ERR_CANNOT, -r, "vm: cannot read the boot files") : 0;
}

struct kernel_search {
    const struct policy *policy;
    bool emulated;
    struct arena *mem;
    struct machine_fact *ret;
    const char *best; /* the release of ret's, or NULL */
    struct err last;  /* why the last one that cannot be used cannot */
};

/* Takes it if it is newer than the best before. */
static void try_newer(struct kernel_search *s, const char *path)
{
    struct machine_fact f;
    struct err why = {0};
    const char *release = path && s->best ? release_of(path, s->mem) : NULL;
    if (!path || (release && strverscmp(release, s->best) <= 0))
        return;
    if (try_kernel(s->policy, path, s->emulated, s->mem, &f, &why) < 0) {
        s->last = why;
        return;
    }
    *s->ret = f;
    s->best = f.release;
}

/* Debian, Fedora, Arch: /boot/vmlinuz-NAME. 0 or errno. */
static int search_boot(struct kernel_search *s)
{
    DIR *d = opendir("/boot");
    if (!d)
        return errno;
    for (struct dirent *at; (at = readdir(d));) {
        if (strncmp(at->d_name, "vmlinuz-", 8) == 0)
            try_newer(s, arena_printf(s->mem, "/boot/%s", at->d_name));
    }
    (void)closedir(d);
    return 0;
}

/* Where /boot is another system's, or only the boot loader's: kernel-install(8) and OSTree have the kernel beside its modules. */
static void search_modules(struct kernel_search *s)
{
    DIR *d = opendir("/lib/modules");
    for (struct dirent *at; d && (at = readdir(d));) {
        const char *path = at->d_name[0] == '.' ? NULL : arena_printf(s->mem, "/lib/modules/%s/vmlinuz", at->d_name);
        if (path && access(path, F_OK) == 0)
            try_newer(s, path);
    }
    if (d)
        (void)closedir(d);
}

int machine_find(const struct policy *p, bool emulated, struct arena *mem, struct machine_fact *ret, struct err *e)
{
    struct kernel_search s = {.policy = p, .emulated = emulated, .mem = mem, .ret = ret};
    if (p->vm_kernel)
        return try_kernel(p, p->vm_kernel, emulated, mem, ret, e);
    int error = search_boot(&s);
    search_modules(&s);
    if (s.best)
        return 0;
    if (s.last.text[0]) {
        *e = s.last;
        return -EOPNOTSUPP;
    }
    if (error && error != ENOENT)
        return err_sys(e, ERR_CANNOT, error, "vm: cannot look for a kernel in /boot (name one with --vm-kernel FILE)");
    return err_say(
        e, ERR_CANNOT,
        "vm: there is no kernel in /boot or /lib/modules; install one (%s) or name one with --vm-kernel FILE",
        package_install("linux-image-amd64", (char[PACKAGE_WORDS]){0}));
}

/* ---- the initramfs ---- */

void cpio_put(struct buf *out, const char *name, uint32_t mode, const void *bytes, size_t n)
{
    static const char zeros[4];
    const char *is = name ? name : "TRAILER!!!";
    size_t length = strlen(is) + 1;
    buf_printf(out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 0u, mode, 0u, 0u, 1u, 0u, (unsigned)n,
               0u, 0u, 0u, 0u, (unsigned)length, 0u);
    buf_put(out, is, length);
    buf_put(out, zeros, (4 - (110 + length) % 4) % 4);
    buf_put(out, bytes, n);
    buf_put(out, zeros, (4 - n % 4) % 4);
}

static int put_file(struct buf *out, const char *name, uint32_t mode, const char *from)
{
    auto_buf struct buf bytes = BUF(MAX_FILE);
    int r = read_file(from, &bytes);
    if (r == 0)
        cpio_put(out, name, 0100000 | mode, bytes.p, bytes.n);
    return r;
}

static int make_initrd(const struct machine_fact *f, struct arena *mem, struct buf *out, struct err *e)
{
    static const char dirs[][8] = {"dev", "proc", "root", "group", "modules"};
    struct modules m = {.mem = mem, .dir = f->modules};
    const char *lacking, *init;
    int r = find_modules(&m, &lacking);
    if (r < 0)
        return err_sys(e, ERR_CANNOT, -r, "vm: cannot read the modules in '%s'", f->modules);
    r = tool_init(mem, &init, NULL, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
        cpio_put(out, dirs[i], 040755, NULL, 0);
    r = put_file(out, "init", 0755, init);
    if (r < 0)
        return err_sys(e, ERR_CANNOT, -r, "vm: cannot read '%s'", init);
    for (size_t i = 0; r == 0 && i < m.n; i++) {
        char name[32];
        const char *path = arena_printf(mem, "%s/%s", m.dir, m.at[i]);
        snprintf(name, sizeof name, "modules/%02zu", i);
        r = path ? put_file(out, name, 0644, path) : -ENOMEM;
        if (r < 0)
            return err_sys(e, ERR_CANNOT, -r, "vm: cannot read '%s'", path ? path : m.at[i]);
    }
    cpio_put(out, NULL, 0, NULL, 0);
    return buf_ok(out) ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "vm: cannot create the initial file system");
}

/* Written under another name first, so that an existing file is always complete. */
static int keep_file(const char *path, const struct buf *bytes, struct arena *mem, struct err *e)
{
    enum { BLOCK = 65536 };
    static const char nothing[BLOCK];
    const char *fresh = arena_printf(mem, "%s.%d", path, (int)getpid());
    auto_fd int fd = fresh ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
    size_t at = 0;
    int no = fd < 0 ? errno : 0;
    while (!no && at < bytes->n) {
        size_t part = bytes->n - at < BLOCK ? bytes->n - at : BLOCK;
        /* much of an unpacked kernel is zero: leave a hole */
        if (part == BLOCK && memcmp(bytes->p + at, nothing, BLOCK) == 0) {
            at += BLOCK;
            continue;
        }
        ssize_t n = pwrite(fd, bytes->p + at, part, (off_t)at);
        no = n < 0 ? errno : 0;
        at += n < 0 ? 0 : (size_t)n;
    }
    if (!no && ftruncate(fd, (off_t)bytes->n) < 0)
        no = errno;
    if (!no && rename(fresh, path) < 0)
        no = errno;
    if (no && fd >= 0)
        (void)unlink(fresh);
    return no ? err_sys(e, ERR_SYSTEM, no, "vm: cannot write '%s'", path) : 0;
}

/* Removes files of other kernels or versions that are older than a day, so that nobody is about to boot them. */
static void sweep_files(const char *dir, const char *key)
{
    enum { DAY = 24 * 60 * 60 };
    DIR *d = opendir(dir);
    for (struct dirent *at; d && (at = readdir(d));) {
        bool ours = strncmp(at->d_name, "kernel-", 7) == 0 || strncmp(at->d_name, "initrd-", 7) == 0 ||
                    strncmp(at->d_name, "packed-", 7) == 0;
        struct stat st;
        if (ours && !strstr(at->d_name, key) && fstatat(dirfd(d), at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - st.st_mtime > DAY)
            (void)unlinkat(dirfd(d), at->d_name, 0);
    }
    if (d)
        (void)closedir(d);
}

int machine_files(const struct machine_fact *f, const char *dir, struct arena *mem, struct err *e)
{
    const char *kernel = arena_printf(mem, "%s/kernel-%s", dir, f->key),
               *initrd = arena_printf(mem, "%s/initrd-%s", dir, f->key);
    if (!kernel || !initrd)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "vm");
    if (access(kernel, R_OK) < 0) {
        auto_buf struct buf bytes = BUF(MAX_FILE), flat = BUF(MAX_FILE);
        int r = read_file(f->kernel, &bytes);
        if (r < 0)
            return err_sys(e, ERR_CANNOT, -r, "vm: cannot read the kernel '%s'", f->kernel);
        bool unpacked = f->emulated && kernel_unpack(&bytes, dir, mem, &flat) == 0;
        r = keep_file(kernel, unpacked ? &flat : &bytes, mem, e);
        if (r < 0)
            return r;
    }
    if (access(initrd, R_OK) < 0) {
        sweep_files(dir, f->key);
        auto_buf struct buf bytes = BUF(MAX_FILE);
        int r = make_initrd(f, mem, &bytes, e);
        return r < 0 ? r : keep_file(initrd, &bytes, mem, e);
    }
    return 0;
}
