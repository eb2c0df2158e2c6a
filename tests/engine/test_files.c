/*
 * The file API (supervisor/files/files.h, guard/calls/file_api.c) on a real box: what a command in it may not do, it refuses, and nothing leads out.
 * Run it as root and as an ordinary user. Output is TAP.
 *
 *     test_files [NAME...]         all tests, or those named
 *     test_files inside swap A B   in the box: exchanges the names A and B until it is killed
 *     test_files bench             microseconds of reading and writing 4 KiB
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "supervisor/files/files.h"
#include "image.h"
#include "sys/fd.h"
#include "protocol/guard_table.h"

static char home[256], self[300];
static int failures;
static struct err said;

static void fail(int line, const char *what, int no)
{
    printf("# line %d: %s (%d; %s)\n", line, what, no, said.text);
    failures++;
}
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            fail(__LINE__, #what, errno);                                                                              \
    } while (0)
/* The call returns `want`. */
#define IS(want, call)                                                                                                 \
    do {                                                                                                               \
        said.text[0] = 0;                                                                                              \
        int is_ = (call);                                                                                              \
        if (is_ != (want))                                                                                             \
            fail(__LINE__, #call, is_);                                                                                \
    } while (0)
/* ... and the sentence holds `word`. */
#define SAYS(want, word, call)                                                                                         \
    do {                                                                                                               \
        IS(want, call);                                                                                                \
        if (!strstr(said.text, word))                                                                                  \
            fail(__LINE__, "the sentence lacks " word, 0);                                                             \
    } while (0)

static const char *at(const char *name)
{
    static char paths[8][4096];
    static int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", home, name);
    return p;
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(path);
        exit(2);
    }
    close(fd);
}

static bool holds(const char *path, const char *text)
{
    char got[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
    if (fd >= 0)
        close(fd);
    got[n > 0 ? n : 0] = 0;
    return n >= 0 && strcmp(got, text) == 0;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *format, ...)
{
    char command[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    if (system(command) != 0) {
        printf("# failed: %s\n", command);
        exit(2);
    }
}

/* ---- a box with a shell in it that does what it is told ---- */

static struct {
    struct started box;
    struct plan plan;
    int to, from, files;
} b;

static void guard_name(struct image *i, const char *name, unsigned judge, unsigned flags)
{
    image_guard(i, GUARD_RULE_NAME, name, GUARD_ANY_DEPTH, flags);
    struct guard_table *t = (void *)i->guard;
    t->rules[t->n_rules - 1].judge = (uint8_t)judge;
}

/* Writable: ws and, as mnt, in; read-only: ro. ws/one is a mount of a single file. */
static struct image *image_files(unsigned filter)
{
    struct image *i = image_new();
    i->namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET;
    i->filter = filter;
    image_guard(i, GUARD_RULE_ROOT, at("ws"), 0, 0);
    image_guard(i, GUARD_RULE_ROOT, at("mnt"), 0, 0);
    image_guard(i, GUARD_RULE_PRIVATE, "/tmp", 0, 0);
    image_guard(i, GUARD_RULE_PRIVATE, "/dev", 0, 0);
    image_guard(i, GUARD_RULE_HIDE, at("ws/secret"), 0, 0);
    image_guard(i, GUARD_RULE_PROTECT, at("ws/keep"), 0, 0);
    guard_name(i, ".git/hooks", GUARD_REFUSE, GUARD_RULE_DIRECTORY);
    guard_name(i, ".git/config", GUARD_GIT_CONFIG, 0);
    guard_name(i, ".vscode", GUARD_REFUSE, GUARD_RULE_DIRECTORY);
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY | STEP_NOSUID, 0);
    static const char *const sources[] = {"ws", "in", "single"};
    static const char *const places[] = {"ws", "mnt", "ws/one"};
    for (unsigned k = 0; k < 3; k++)
        image_put_step(i, STEP_SOURCE, at(sources[k]), NULL, 0, 0)->b = k;
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_TMPFS, "/tmp", NULL, STEP_NOSUID | STEP_NODEV, 01777);
    for (unsigned k = 0; k < 3; k++)
        image_put_step(i, STEP_ATTACH, at(places[k]), NULL, STEP_NOSUID | STEP_NODEV, 0)->b = k;
    image_locks(i, 0);
    return i;
}

static void box_start(unsigned filter)
{
    static const char *const argv[] = {"/bin/sh", NULL};
    static const char *env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    static struct origin origin = {.layer = LAYER_FLAGS, .file = "--test"};
    static const struct policy nothing = {.origins = &origin, .n_origins = 1};
    int in[2], out[2];
    struct image *i = image_files(filter);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        exit(2);
    b.plan = (struct plan){.policy = &nothing, .image = image_finish(i), .env = env};
    struct start_request ask = {.plan = &b.plan,
                                .argv = argv,
                                .stdio = {in[0], out[1], out[1]},
                                .umask = 022,
                                .egress = -1,
                                .publish = -1,
                                .cgroup = {.v2_dir = -1},
                                .parent_death_signal = true};
    if (engine_native.start(&ask, &b.box, &said) < 0 || engine_files(&b.box, &b.files, &said) < 0) {
        printf("Bail out! no box: %s\n", said.text);
        exit(2);
    }
    close(in[0]);
    close(out[1]);
    b.to = in[1];
    b.from = out[0];
    free(i);
}

static void box_end(void)
{
    close(b.to);
    close(b.from);
    if (b.files >= 0)
        close(b.files);
    engine_native.finish(&b.box);
    free((void *)(uintptr_t)b.plan.image);
}

/* Does `command` in the box and returns what it printed. */
static const char *in_box(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *in_box(const char *format, ...)
{
    static char text[8192];
    char command[8192];
    size_t n = 0;
    va_list args;
    va_start(args, format);
    int k = vsnprintf(command, sizeof command - 32, format, args);
    va_end(args);
    k += snprintf(command + k, 32, "\necho .end.$?\n");
    if (write(b.to, command, (size_t)k) != k)
        exit(2);
    for (;;) {
        ssize_t got = read(b.from, text + n, sizeof text - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = 0;
        char *end = strstr(text, ".end.");
        if (end && strchr(end, '\n'))
            return *end = 0, text;
    }
    printf("# the box's shell is gone: %s\n", text);
    exit(2);
}
#define IN_BOX(want, ...) CHECK(strcmp(in_box(__VA_ARGS__), want) == 0)

/* ---- short forms ---- */

static int wrote(const char *path, const char *text)
{
    const struct file_how how = {.mode = 0644};
    return file_write(b.files, path, text, strlen(text), &how, &said);
}

static int reads(const char *path, const char *want)
{
    char *bytes = NULL;
    size_t n = 0;
    int no = file_read(b.files, path, 0, 1 << 20, &bytes, &n, NULL, &said);
    if (no == 0 && want && (n != strlen(want) || memcmp(bytes, want, n) != 0)) {
        printf("# %s holds \"%.200s\"\n", path, bytes);
        no = 1;
    }
    free(bytes);
    return no;
}

/* ---- tests ---- */

static void test_plain(void)
{
    struct stat before, after;
    char value[16] = "";
    IS(0, wrote(at("ws/new"), "one"));
    IS(0, reads(at("ws/new"), "one"));
    IN_BOX("one", "cat %s", at("ws/new"));
    CHECK(holds(at("ws/new"), "one"));
    CHECK(stat(at("ws/new"), &before) == 0 && (before.st_mode & 07777) == 0644 && before.st_uid == geteuid());
    /* Replaced in one step: another file with the mode and attributes of the old. */
    sh("chmod 640 %s", at("ws/new"));
    bool xattr = setxattr(at("ws/new"), "user.mark", "kept", 4, 0) == 0;
    IS(0, wrote(at("ws/new"), "two"));
    CHECK(stat(at("ws/new"), &after) == 0 && (after.st_mode & 07777) == 0640 && after.st_ino != before.st_ino);
    CHECK(!xattr || (getxattr(at("ws/new"), "user.mark", value, sizeof value) == 4 && memcmp(value, "kept", 4) == 0));
    CHECK(holds(at("ws/new"), "two"));
    sh("chmod 4755 %s", at("ws/new"));
    IS(0, wrote(at("ws/new"), ""));
    CHECK(stat(at("ws/new"), &after) == 0 && (after.st_mode & 07777) == 0755 && after.st_size == 0);
    IS(0, reads(at("ws/new"), ""));
    /* Under the name of another mount; in the box's own /tmp. */
    IS(0, wrote(at("mnt/x"), "mounted"));
    CHECK(holds(at("in/x"), "mounted"));
    IS(0, wrote("/tmp/private", "p"));
    IN_BOX("p", "cat /tmp/private; echo more >/tmp/other");
    CHECK(!exists("/tmp/private"));
    IS(0, reads("/tmp/other", "more\n"));
    CHECK(strstr(in_box("ls -a %s", at("ws")), ".pinfold-write") == NULL);
}

static void test_parts(void)
{
    char *bytes = NULL;
    size_t n = 0;
    uint64_t size = 0;
    IS(0, wrote(at("ws/parts"), "0123456789"));
    IS(0, file_read(b.files, at("ws/parts"), 3, 4, &bytes, &n, &size, &said));
    CHECK(n == 4 && size == 10 && memcmp(bytes, "3456", 5) == 0);
    free(bytes);
    IS(0, file_read(b.files, at("ws/parts"), 8, 100, &bytes, &n, &size, &said));
    CHECK(n == 2 && memcmp(bytes, "89", 3) == 0);
    free(bytes);
    IS(0, file_read(b.files, at("ws/parts"), 11, 100, &bytes, &n, &size, &said));
    CHECK(n == 0);
    free(bytes);
}

static void test_parents(void)
{
    const struct file_how how = {.mode = 0600, .parents = true, .sync = true};
    struct stat st;
    IS(-ENOENT, wrote(at("ws/a/b/c"), "x"));
    IS(0, file_write(b.files, at("ws/a/b/c"), "x", 1, &how, &said));
    CHECK(holds(at("ws/a/b/c"), "x") && stat(at("ws/a/b/c"), &st) == 0 && (st.st_mode & 07777) == 0600);
    IS(0, file_make_dirs(b.files, at("ws/a/b/d/e"), 0755, &said));
    IS(-ENOTDIR, file_write(b.files, at("ws/a/b/c/d"), "x", 1, &how, &said));
    IS(-EISDIR, wrote(at("ws/a/b"), "x"));
    IS(-EACCES, file_write(b.files, at("ws/deep/.git/hooks/x"), "x", 1, &how, &said));
    CHECK(!exists(at("ws/deep/.git/hooks/x")));
}

/* The attack table: what must be refused, with which errno, and the word of the sentence. */
static void test_refused(void)
{
    static const struct {
        const char *path; /* below home, or absolute */
        int write, read;  /* what each returns; 1: not tried */
        const char *word;
    } table[] = {
        {"ws/secret", -EISDIR, -EACCES, "hidden"},
        {"ws/secret/in", -EACCES, -EACCES, "hidden"},
        {"ws/SECRET/in", 1, -ENOENT, ""},
        {"ws/./keep/../secret/in", -EACCES, -EACCES, "hidden"},
        {"ws/to-secret", -EACCES, -EACCES, "hidden"},
        {"ws/to-secret-dir/in", -EACCES, -EACCES, "hidden"},
        {"ws/keep/x", -EACCES, 0, "protected"},
        {"ws/keep/new", -EACCES, -ENOENT, ""},
        {"ws/to-keep", -EACCES, 0, "protected"},
        {"ws/second-name-of-keep", 0, 0, ""},
        {"ws/.vscode/settings.json", -EACCES, 0, "guarded"},
        {"ws/.vscode/new", -EACCES, -ENOENT, "guarded"},
        {"ws/repo/.git/hooks/pre-commit", -EACCES, -ENOENT, "guarded"},
        {"ws/repo/.GIT/Hooks/pre-commit", -ENOENT, -ENOENT, ""},
        {"outside/x", -EROFS, 0, ""},
        {"outside/new", -EROFS, -ENOENT, ""},
        {"ws/to-outside", -EROFS, 0, ""},
        {"ws/up/x", -EROFS, 0, ""},
        {"ws/loop", -ELOOP, -ELOOP, ""},
        {"ws/fifo", -EINVAL, -ENODEV, ""},
        {"ws/plain/", -ENOTDIR, -ENOTDIR, ""},
        {"ws/absent/", -ENOENT, -ENOENT, ""},
        {"ws/plain/x", -ENOTDIR, -ENOTDIR, ""},
        {"ws/locked", -EACCES, -EACCES, ""},
        {"/dev/null", -EINVAL, -ENODEV, ""},
        {"/dev/tty", 1, -ENODEV, ""},
        {"/proc/cpuinfo", 1, -ENODEV, ""},
        {"/proc/self/environ", 1, -EACCES, ""},
        {"/proc/self/root/etc/passwd", 1, -EACCES, ""},
        {"/proc/1/root/etc/passwd", 1, -EACCES, ""},
        {"/proc/thread-self/fd/0", 1, -EACCES, ""},
        {"ws/to-proc", 1, -EACCES, ""},
        {"/dev/fd/0", 1, -EACCES, ""},
        {"/../../../../../etc/passwd", -EROFS, 0, ""},
        {"relative", 1, 1, ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *path = table[i].path[0] == '/' ? table[i].path : at(table[i].path);
        for (int read = 0; read < 2; read++) {
            int want = read ? table[i].read : table[i].write;
            if (want == -EROFS && table[i].path[0] == '/' && geteuid() != 0)
                want = -EACCES; /* root's file */
            said.text[0] = 0;
            int no = want == 1 ? 1 : read ? reads(path, NULL) : wrote(path, "evil");
            if (no != want || (no == -EACCES && !strstr(said.text, table[i].word)))
                fail(__LINE__, path, no);
        }
    }
    IS(-EINVAL, reads("relative", NULL));
    IS(-EINVAL, wrote("", "x"));
    char longer[5000];
    memset(longer, 'x', sizeof longer);
    longer[0] = '/';
    longer[4999] = 0;
    IS(-ENAMETOOLONG, reads(longer, NULL));
    longer[300] = 0;
    IS(-ENAMETOOLONG, wrote(longer, "x"));
    CHECK(holds(at("ws/keep/x"), "kept") && holds(at("outside/x"), "out") && holds(at("ws/secret/in"), "hidden"));
    CHECK(!exists(at("outside/new")) && !exists(at("ws/keep/new")) && !exists(at("ws/.vscode/new")));
    SAYS(-EACCES, "rule", file_remove(b.files, at("ws/keep/x"), false, &said));
    IS(-EACCES, file_remove(b.files, at("ws/secret"), true, &said));
    IS(-EROFS, file_remove(b.files, at("outside/x"), false, &said));
    CHECK(exists(at("ws/keep/x")) && exists(at("ws/secret/in")) && exists(at("outside/x")));
}

/* Links are followed as the box would. */
static void test_links(void)
{
    IS(0, wrote(at("ws/to-plain"), "through"));
    CHECK(holds(at("ws/plain"), "through"));
    IN_BOX("", "ln -sf /tmp/in-tmp %s; ln -sf nowhere-yet %s", at("ws/to-tmp"), at("ws/dangling"));
    IS(0, wrote(at("ws/to-tmp"), "t"));
    IN_BOX("t", "cat /tmp/in-tmp");
    CHECK(!exists("/tmp/in-tmp"));
    IS(0, wrote(at("ws/dangling"), "d"));
    CHECK(holds(at("ws/nowhere-yet"), "d"));
    IN_BOX("", "ln -sf absent-dir/x %s", at("ws/dangling2"));
    IS(-ENOENT, wrote(at("ws/dangling2"), "d"));
    IN_BOX("l", "test -L %s && printf l", at("ws/dangling2"));
    IS(0, wrote(at("ws/two"), "a"));
    IN_BOX("", "ln %s %s", at("ws/two"), at("ws/three"));
    IS(0, wrote(at("ws/two"), "b"));
    CHECK(holds(at("ws/two"), "b") && holds(at("ws/three"), "a"));
}

/* A repository's configuration is judged by its keys, as when git replaces it. */
static void test_git(void)
{
    IS(0, wrote(at("ws/repo/.git/config"), "[core]\n\tbare = false\n[user]\n\tname = me\n"));
    SAYS(-EACCES, "git", wrote(at("ws/repo/.git/config"), "[core]\n\tfsmonitor = /tmp/evil\n"));
    CHECK(holds(at("ws/repo/.git/config"), "[core]\n\tbare = false\n[user]\n\tname = me\n"));
    CHECK(strstr(in_box("ls -a %s", at("ws/repo/.git")), ".pinfold") == NULL);
}

/* A file that is a mount keeps its place. */
static void test_single(void)
{
    IS(0, wrote(at("ws/one"), "longer than before"));
    CHECK(holds(at("single"), "longer than before"));
    IS(0, wrote(at("ws/one"), ""));
    CHECK(holds(at("single"), ""));
    CHECK(strstr(in_box("ls -a %s", at("ws")), ".pinfold-write") == NULL);
}

static void test_list(void)
{
    struct buf json = BUF(1 << 20);
    IN_BOX("", "mkdir -p %s; cd %s; echo abc >f; ln -s f l; mkdir d; mkfifo p; chmod 600 f; cd /", at("ws/listed"),
           at("ws/listed"));
    IS(0, file_list(b.files, at("ws/listed"), &JSON(&json), &said));
    CHECK(strstr(buf_cstr(&json), "{\"name\":\"d\",\"type\":\"directory\""));
    CHECK(strstr(buf_cstr(&json), "{\"name\":\"f\",\"type\":\"file\",\"size\":4,\"mode\":\"0600\",\"modified\":\"20"));
    CHECK(strstr(buf_cstr(&json), "\"target\":\"f\""));
    CHECK(strstr(buf_cstr(&json), "{\"name\":\"p\",\"type\":\"other\""));
    buf_free(&json);
    json = BUF(1 << 20);
    IS(0, file_list(b.files, at("ws/listed/f"), &JSON(&json), &said));
    CHECK(strstr(buf_cstr(&json), "[{\"name\":\"f\",\"type\":\"file\",\"size\":4"));
    buf_free(&json);
    json = BUF(1 << 20);
    IS(-EACCES, file_list(b.files, at("ws/secret"), &JSON(&json), &said));
    IS(-ENOENT, file_list(b.files, at("ws/none"), &JSON(&json), &said));
    IS(-ENODEV, file_list(b.files, "/proc", &JSON(&json), &said));
    buf_free(&json);
}

/* Links of the box, among what a person names on the host: they lead no copy out of the box's places, in neither direction. */
static void test_copy_by_links(void)
{
    struct file_copied done;
    IN_BOX("", "cd %s; ln -s %s dirlink; ln -s %s filelink; ln -s .. climb; mkdir real; cd /", at("ws"), at("outside"),
           at("outside/x"));
    SAYS(-EPERM, "goes through a symbolic link", file_copy_out(b.files, at("ws/x"), at("ws/dirlink"), &done, &said));
    SAYS(-EPERM, "goes through a symbolic link", file_copy_out(b.files, at("ws/x"), at("ws/dirlink/"), &done, &said));
    SAYS(-EPERM, "goes through a symbolic link",
         file_copy_out(b.files, at("ws/x"), at("ws/dirlink/new"), &done, &said));
    SAYS(-EPERM, "goes through a symbolic link",
         file_copy_out(b.files, at("ws/x"), at("ws/climb/outside/new"), &done, &said));
    SAYS(-EPERM, "goes through a symbolic link", file_copy_in(b.files, at("ws/filelink"), "/tmp/stolen", &done, &said));
    SAYS(-EPERM, "goes through a symbolic link",
         file_copy_in(b.files, at("ws/dirlink/x"), "/tmp/stolen", &done, &said));
    CHECK(!exists(at("outside/new")));
    IN_BOX("", "cat /tmp/stolen 2>/dev/null; :");
    /* One to a file is replaced; directories are none; and links of the host's own, elsewhere, are followed. */
    IS(0, file_copy_out(b.files, at("ws/x"), at("ws/filelink"), &done, &said));
    CHECK(holds(at("ws/filelink"), "copied") && holds(at("outside/x"), "out"));
    IS(0, file_copy_out(b.files, at("ws/x"), at("ws/real/../real"), &done, &said));
    CHECK(holds(at("ws/real/x"), "copied"));
    sh("mkdir -p %s && ln -sfn %s %s", at("there"), at("there"), at("hostlink"));
    IS(0, file_copy_out(b.files, at("ws/x"), at("hostlink"), &done, &said));
    CHECK(holds(at("there/x"), "copied"));
    IS(0, file_copy_in(b.files, at("hostlink/x"), "/tmp/by-link", &done, &said));
    IN_BOX("copied", "cat /tmp/by-link");
    SAYS(-ENOENT, "No such file", file_copy_out(b.files, at("ws/x"), at("there/none/x"), &done, &said));
    SAYS(-ENOENT, "No such file", file_copy_in(b.files, at("there/none"), "/tmp/x", &done, &said));
}

static void test_copy(void)
{
    struct file_copied done;
    struct stat st;
    sh("mkdir -p %s && cd %s && mkdir -p t/sub && head -c 70000000 /dev/urandom >t/big && echo x >t/sub/x && chmod 750 "
       "t/sub/x && ln -s ../big t/sub/l && "
       "mkfifo t/fifo && ln -s /etc/passwd t/abs",
       at("from"), at("from"));
    IS(0, file_copy_in(b.files, at("from/t"), at("ws"), &done, &said));
    CHECK(done.files == 4 && done.bytes == 70000002 && done.left_out == 1);
    sh("cmp %s %s && test -L %s && test ! -e %s", at("from/t/big"), at("ws/t/big"), at("ws/t/abs"), at("ws/t/fifo"));
    CHECK(stat(at("ws/t/sub/x"), &st) == 0 && (st.st_mode & 07777) == 0750);
    IS(0, file_copy_in(b.files, at("from/t/sub"), at("ws/t"), &done, &said)); /* once more, over itself */
    IN_BOX("", "ln -s / %s; mkfifo %s", at("ws/t/root"), at("ws/t/f"));
    sh("chmod 4755 %s", at("ws/t/sub/x"));
    sh("mkdir -p %s && ln -s %s %s", at("got"), at("outside/x"), at("got/x"));
    IS(0, file_copy_out(b.files, at("ws/t"), at("got"), &done, &said));
    CHECK(done.left_out == 1);
    sh("cmp %s %s && test -L %s && test \"$(readlink %s)\" = /", at("from/t/big"), at("got/t/big"), at("got/t/root"),
       at("got/t/root"));
    CHECK(stat(at("got/t/sub/x"), &st) == 0 && (st.st_mode & 07000) == 0 && (st.st_mode & 0700) == 0700);
    /* A link that waits at the target is replaced, not followed. */
    IS(0, wrote(at("ws/x"), "copied"));
    IS(0, file_copy_out(b.files, at("ws/x"), at("got"), &done, &said));
    CHECK(holds(at("got/x"), "copied") && holds(at("outside/x"), "out"));
    IS(0, file_copy_out(b.files, at("ws/x"), at("got/y"), &done, &said));
    test_copy_by_links();
    CHECK(holds(at("got/y"), "copied"));
    IS(-EACCES, file_copy_out(b.files, at("ws/secret"), at("got"), &done, &said));
    /* What a rule hides is left out and named; the rest is copied. */
    sh("rm -rf %s", at("got/ws"));
    SAYS(-EACCES, " of its entries: copy ", file_copy_out(b.files, at("ws"), at("got"), &done, &said));
    CHECK(strstr(said.text, "/ws/secret") && !exists(at("got/ws/secret")) && holds(at("got/ws/x"), "copied"));
    IS(-EACCES, file_copy_in(b.files, at("from/t/sub"), at("ws/keep"), &done, &said));
    IS(-EROFS, file_copy_in(b.files, at("from/t/sub"), at("outside"), &done, &said));
    IS(0, file_remove(b.files, at("ws/t"), true, &said));
    CHECK(!exists(at("ws/t")) && exists("/etc/passwd"));
    IS(-ENOENT, file_remove(b.files, at("ws/t"), false, &said));
    IS(0, file_remove(b.files, at("ws/t"), true, &said));
}

/* While the box exchanges a directory with a link to what it may not touch, nothing there is read or written. */
static void race(const char *target, const char *open_to_read)
{
    char name[4200], to[4200];
    snprintf(to, sizeof to, "%s", target);
    IN_BOX("", "rm -rf %s %s; mkdir %s; echo mine >%s/x; ln -s %s %s", at("ws/swap"), at("ws/other"), at("ws/swap"),
           at("ws/swap"), to, at("ws/other"));
    IN_BOX("", "%s inside swap %s %s & echo $! >/tmp/pid", self, at("ws/swap"), at("ws/other"));
    unsigned mine = 0, refused = 0, odd = 0;
    snprintf(name, sizeof name, "%s/x", at("ws/swap"));
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 20000; i++) {
        char *bytes = NULL;
        size_t n = 0;
        int no = file_read(b.files, name, 0, 100, &bytes, &n, NULL, &said);
        if (no == 0 && strcmp(bytes, "mine\n") != 0 && strcmp(bytes, "wrote") != 0 && strcmp(bytes, open_to_read) != 0)
            odd++;
        mine += no == 0;
        refused += no < 0;
        free(bytes);
        no = wrote(name, "wrote");
        mine += no == 0;
        refused += no < 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (mine > 50 && refused > 50 && now.tv_sec - begin.tv_sec > 1)
            break;
    }
    in_box("kill $(cat /tmp/pid)");
    printf("# %u went through, %u were refused\n", mine, refused);
    CHECK(odd == 0 && mine > 0 && refused > 0);
    CHECK(holds(at("ws/keep/x"), "kept") && holds(at("outside/x"), "out") && holds(at("ws/secret/x"), "hidden"));
}

static void test_race(void)
{
    race(at("ws/keep"), "kept");
    race(at("ws/secret"), "mine\n");
    race(at("outside"), "out");
    CHECK(strstr(in_box("ls -a %s", at("outside")), ".pinfold") == NULL);
}

static void test_mounts(void)
{
    struct path_table table;
    struct arena *mem = arena_new(1 << 20);
    struct buf out = BUF(1 << 16);
    IS(0, file_mounts(b.files, &table, mem, &said));
    CHECK(paths_translate(&table, PATH_TO_BOX, str_of(at("in/deep/x")), &out) == 1);
    CHECK(strcmp(buf_cstr(&out), at("mnt/deep/x")) == 0);
    buf_free(&out);
    out = BUF(1 << 16);
    CHECK(paths_translate(&table, PATH_TO_HOST, STR("/tmp/x"), &out) == 0);
    buf_free(&out);
    arena_free(mem);
}

/* Several callers; more than there are workers for; what the callers leave. */
static void test_many(void)
{
    int many[64], n = 0, good = 0;
    struct file_answer a;
    for (; n < 64; n++)
        if (engine_files(&b.box, &many[n], &said) < 0)
            break;
    CHECK(n == 64);
    for (int i = 0; i < n; i++)
        good += file_call(many[i], &(struct file_ask){.op = FILE_WHERE, .path = "/"}, &a, NULL, &said) == 0;
    CHECK(good == 15); /* and the one of this box */
    for (int i = 0; i < n; i++)
        close(many[i]);
    IS(0, wrote(at("ws/many"), "x"));
    int again = -1, no = -ESTALE;
    for (int tries = 0; no < 0 && tries < 2000; tries++) { /* workers end when they see that */
        usleep(10000);
        if (engine_files(&b.box, &again, &said) == 0)
            no = file_call(again, &(struct file_ask){.op = FILE_WHERE, .path = "/"}, &a, NULL, &said);
        close(again);
    }
    CHECK(no == 0);
    /* What is no call. */
    if (engine_files(&b.box, &again, &said) == 0) {
        CHECK(write(again, "\1\0\0\0", 4) == 4 && read(again, &a, sizeof a) >= (ssize_t)FILE_HEAD &&
              a.result == -EINVAL);
        struct file_call c = {.op = FILE_OPEN, .path_bytes = 4, .text = "abc"};
        CHECK(write(again, &c, offsetof(struct file_call, text) + 4) > 0 && read(again, &a, sizeof a) > 0 &&
              a.result == -EINVAL);
        c.text[0] = '/';
        c.text[3] = 'd';
        CHECK(write(again, &c, offsetof(struct file_call, text) + 4) > 0 && read(again, &a, sizeof a) > 0 &&
              a.result == -EINVAL);
        close(again);
    }
}

static void test_gone(void)
{
    IS(0, reads(at("ws/plain"), NULL));
    CHECK(write(b.to, "kill -9 $$; exit\n", 17) == 17);
    close(b.to);
    b.to = -1;
    int no = 0;
    for (int tries = 0; no == 0 && tries < 2000; tries++) {
        no = reads(at("ws/plain"), NULL);
        usleep(10000);
    }
    CHECK(no == -ESTALE && strstr(said.text, "has ended"));
}

/* ---- inside ---- */

static _Noreturn void swap(const char *a, const char *c)
{
    for (;;) {
        (void)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, c, 2 /* RENAME_EXCHANGE */);
        (void)syscall(SYS_renameat2, AT_FDCWD, c, AT_FDCWD, a, 2);
    }
}

static int by_value(const void *a, const void *c)
{
    const double *x = a, *y = c;
    return *x < *y ? -1 : *x > *y;
}

static void bench(void)
{
    static char bytes[4096];
    static double t[2][2000];
    const struct file_how how = {.mode = 0644};
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 2000; i++) {
        struct timespec p[3];
        char *got = NULL;
        size_t n;
        clock_gettime(CLOCK_MONOTONIC, &p[0]);
        (void)file_write(b.files, at("ws/bench"), bytes, sizeof bytes, &how, &said);
        clock_gettime(CLOCK_MONOTONIC, &p[1]);
        (void)file_read(b.files, at("ws/bench"), 0, 1 << 20, &got, &n, NULL, &said);
        clock_gettime(CLOCK_MONOTONIC, &p[2]);
        free(got);
        for (int k = 0; k < 2; k++)
            t[k][i] = (double)(p[k + 1].tv_sec - p[k].tv_sec) * 1e6 + (double)(p[k + 1].tv_nsec - p[k].tv_nsec) / 1e3;
    }
    for (int k = 0; k < 2; k++) {
        qsort(t[k], 2000, sizeof t[k][0], by_value);
        printf("%s 4 KiB: median %.0f us, 99th %.0f us\n", k ? "read" : "write", t[k][1000], t[k][1980]);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {{"plain", test_plain}, {"parts", test_parts}, {"parents", test_parents}, {"refused", test_refused},
             {"links", test_links}, {"git", test_git},     {"single", test_single},   {"list", test_list},
             {"copy", test_copy},   {"race", test_race},   {"mounts", test_mounts},   {"many", test_many},
             {"gone", test_gone}};

static void prepare(void)
{
    sh("cd %s && rm -rf ws in mnt outside single from got && mkdir -p ws/secret ws/keep ws/repo/.git/objects "
       "ws/repo/.git/refs ws/repo/.git/hooks ws/.vscode in mnt outside",
       home);
    put(at("ws/secret/in"), "hidden");
    put(at("ws/secret/x"), "hidden");
    put(at("ws/keep/x"), "kept");
    put(at("outside/x"), "out");
    put(at("single"), "single");
    put(at("ws/one"), "");
    put(at("ws/.vscode/settings.json"), "{}");
    put(at("ws/plain"), "plain");
    put(at("ws/locked"), "locked");
    put(at("ws/repo/.git/config"), "[core]\n\tbare = false\n");
    sh("cd %s && chmod 0 locked && ln -s secret/in to-secret && ln -s secret to-secret-dir && ln -s keep/x to-keep && "
       "ln keep/x second-name-of-keep && "
       "ln -s ../outside/x to-outside && ln -s ../outside up && ln -s loop loop && mkfifo fifo && ln -s plain to-plain "
       "&& ln -s /proc/self/root/etc/passwd to-proc",
       at("ws"));
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "inside") == 0)
        swap(argv[3], argv[4]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *base = getenv("PF_TEST_DIR");
    snprintf(home, sizeof home, "%s/pf-files-XXXXXX", base ? base : getenv("HOME") ? getenv("HOME") : "/var/tmp");
    if (!mkdtemp(home) || chmod(home, 0755) < 0) {
        perror(home);
        return 2;
    }
    char state[sizeof home + 16]; /* what boxes of this user's could write is not asked */
    snprintf(state, sizeof state, "%s/state", home);
    (void)setenv("XDG_STATE_HOME", state, 1);
    snprintf(self, sizeof self, "%s/self", home);
    sh("cp /proc/%d/exe %s", (int)getpid(), self);
    printf("# uid %d, %s\n", (int)geteuid(), home);
    if (argc == 2 && strcmp(argv[1], "bench") == 0) {
        prepare();
        box_start(FILTER_GUARD);
        bench();
        box_end();
        sh("rm -rf %s", home);
        return 0;
    }
    int count = 0, bad = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
        if (!wanted(argc, argv, tests[t].name))
            continue;
        failures = 0;
        prepare();
        box_start(FILTER_GUARD);
        tests[t].run();
        box_end();
        printf("%s %d - %s\n", failures ? "not ok" : "ok", ++count, tests[t].name);
        bad += failures > 0;
    }
    printf("1..%d\n", count);
    sh("chmod -R u+rwX %s && rm -rf %s", home, home);
    return bad > 0;
}
