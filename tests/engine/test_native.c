/*
 * The native engine against real boxes, from plans written by hand. Run it as root and as an ordinary user: what holds
 * for one must hold for the other. Output is TAP. An attack that must fail inside is first shown to work outside.
 *
 *     test_native [NAME...]       all tests, or those named
 *     test_native inside WHAT     what some tests run in the box
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <grp.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "image.h"

static char home[256];  /* a fresh directory that no tmpfs of the boxes covers */
static char self[4096]; /* this program */
static int failures;
static struct ran ran;

static void fail(int line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("# line %d: ", line);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    failures++;
}
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            fail(__LINE__, "%s (status %x, verdict %d, %s; output: %s)", #what, ran.status, ran.verdict, ran.words,    \
                 ran.out);                                                                                             \
    } while (0)
#define HAS(text)    CHECK(strstr(ran.out, text) != NULL)
#define LACKS(text)  CHECK(strstr(ran.out, text) == NULL)
#define EXITED(code) CHECK(ran.exited &&WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == (code))

/* ---- the host's side ---- */

static const char *at(const char *name) /* a path below home; the last four stay valid */
{
    static char paths[4][4096];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", home, name);
    return p;
}
static void write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(path);
        exit(2);
    }
    close(fd);
}
static void dir(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        perror(path);
        exit(2);
    }
}
static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}
static void content(const char *path, char *text, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
    text[got > 0 ? got : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static void run_ask(struct image *i, struct run_ask *ask)
{
    ask->image = i;
    int r = image_run(ask, &ran);
    if (r < 0 && !ran.words[0])
        fail(__LINE__, "start failed without words: %d", r);
    free(i);
}
static void run_argv(struct image *i, const char *const *argv)
{
    struct run_ask ask = {.argv = argv, .in = -1};
    run_ask(i, &ask);
}
static void run_sh(struct image *i, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, "sh", home, NULL};
    run_argv(i, argv);
}
static void run_self(struct image *i, const char *what)
{
    const char *argv[] = {self, "inside", what, home, NULL};
    run_argv(i, argv);
}

/* ---- files ---- */

static void test_files(void)
{
    dir(at("ws"));
    run_sh(image_box(at("ws"), 0), "cd $1; echo new > ws/made && cat ws/made; echo x > outside; echo $?; touch /etc/x; "
                                   "echo t > /tmp/t && cat /tmp/t; mkdir /dev/x; echo s > /dev/shm/s && echo shm");
    EXITED(0);
    HAS("new\n");
    HAS("t\nmkdir");
    HAS("shm");
    HAS("Read-only file system");
    CHECK(exists(at("ws/made")));
    CHECK(!exists(at("outside")));
    CHECK(!exists("/tmp/t"));
}

static void test_attach_inside(void)
{
    dir(at("ws"));
    dir(at("ws/ro"));
    dir(at("ws/ro/rw"));
    struct image *i = image_of_parts(NULL, 0); /* read-only inside writable, and writable inside that */
    i->n_steps = 0;
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY | STEP_NOSUID, 0);
    image_put_step(i, STEP_SOURCE, at("ws"), NULL, 0, 0)->b = 0;
    image_put_step(i, STEP_SOURCE, at("ws/ro"), NULL, 0, 0)->b = 1;
    image_put_step(i, STEP_SOURCE, at("ws/ro/rw"), NULL, 0, 0)->b = 2;
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_ATTACH, at("ws"), NULL, 0, 0)->b = 0;
    image_put_step(i, STEP_ATTACH, at("ws/ro"), NULL, STEP_RDONLY, 0)->b = 1;
    image_put_step(i, STEP_ATTACH, at("ws/ro/rw"), NULL, 0, 0)->b = 2;
    image_locks(i, 0);
    run_sh(i, "cd $1/ws; echo a>a; echo b>ro/b; echo c>ro/rw/c; mv ro moved; rmdir ro/rw; ls; ls ro ro/rw");
    CHECK(exists(at("ws/a")) && !exists(at("ws/ro/b")) && exists(at("ws/ro/rw/c")) && !exists(at("ws/moved")));
    HAS("Device or resource busy");
}

static void test_remap(void)
{
    dir(at("src"));
    dir(at("ws"));
    dir(at("ws/there"));
    write_to(at("src/file"), "mapped\n");
    struct image *i = image_of_parts(NULL, 0);
    i->n_steps = 0;
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_SOURCE, at("src"), NULL, 0, 0)->b = 0;
    image_put_step(i, STEP_SOURCE, at("src/file"), NULL, 0, 0)->b = 1;
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_TMPFS, "/tmp", NULL, 0, 01777);
    image_put_step(i, STEP_DIR, "/tmp/d", NULL, 0, 0755);
    image_put_step(i, STEP_FILE, "/tmp/f", "written by the plan\n", 0, 0644);
    image_put_step(i, STEP_SYMLINK, "/tmp/l", "f", 0, 0);
    image_put_step(i, STEP_ATTACH, at("ws/there"), NULL, STEP_RDONLY, 0)->b = 0;
    image_put_step(i, STEP_ATTACH, "/tmp/f", NULL, STEP_RDONLY, 0)->b = 1;
    image_locks(i, 0);
    run_sh(i, "cat $1/ws/there/file; cat /tmp/l; echo no > /tmp/f; echo no > $1/ws/there/file; ls -d /tmp/d");
    HAS("mapped\nmapped\n");
    HAS("/tmp/d\n");
    char text[64];
    content(at("src/file"), text, sizeof text);
    CHECK(strcmp(text, "mapped\n") == 0);
}

static void test_names(void)
{
    static const char *const names[] = {
        "new\nline",          "sp ace", "quo\"te'",     "back\\slash", "co:lon,comma=equals",
        "\xff\xfe not UTF-8", "-dash",  "$dollar`tick", "\xe2\x82\xac"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[512], hidden[600];
        snprintf(path, sizeof path, "%s/%s", home, names[n]);
        snprintf(hidden, sizeof hidden, "%s/%s", path, names[n]);
        dir(path);
        dir(hidden);
        struct image *i = image_box(path, 0);
        const char *argv[] = {"/bin/sh", "-c", "cd \"$1\" && echo ok > file && cat file", "sh", path, NULL};
        run_argv(i, argv);
        HAS("ok\n");
        i = image_of_parts(NULL, 0);
        image_put_step(i, STEP_VEIL, path, NULL, 0, 0);
        image_stub(i, names[n], STUB_DENIED_DIR);
        image_stub(i, "co:lon", STUB_ABSENT);
        image_locks(i, 0);
        const char *look[] = {"/bin/sh", "-c", "cd \"$1\" && cat file && ls \"$2\"", "sh", path, hidden, NULL};
        run_argv(i, look);
        HAS("ok\n");
        HAS("Permission denied");
    }
}

/* ---- hiding ---- */

static struct image *hiding(enum step_kind how)
{
    struct image *i = image_of_parts(NULL, 0);
    image_put_step(i, how, at("veil"), NULL, 0, 0);
    image_stub(i, "dir", STUB_DENIED_DIR);
    image_stub(i, "file", STUB_DENIED_FILE);
    image_stub(i, "later", STUB_ABSENT);
    image_stub(i, "deep/secret", STUB_DENIED_FILE);
    image_stub(i, "deep/down/dir", STUB_DENIED_DIR);
    image_stub(i, "deep/no", STUB_ABSENT);
    image_stub(i, "never/was/here", STUB_ABSENT);
    image_stub(i, "point/dir", STUB_POINT_DIR);
    image_stub(i, "point/file", STUB_POINT_FILE);
    image_locks(i, 0);
    return i;
}

static void hiding_host(void)
{
    dir(at("veil"));
    dir(at("veil/dir"));
    dir(at("veil/deep"));
    dir(at("veil/deep/down"));
    dir(at("veil/deep/down/dir"));
    write_to(at("veil/dir/key"), "SECRET\n");
    write_to(at("veil/file"), "SECRET\n");
    write_to(at("veil/open"), "open\n");
    write_to(at("veil/deep/secret"), "SECRET\n");
    write_to(at("veil/deep/open"), "deep open\n");
    write_to(at("veil/deep/down/dir/key"), "SECRET\n");
    (void)unlink(at("veil/later"));
    (void)unlink(at("veil/link"));
    if (symlink("open", at("veil/link")) < 0)
        perror("symlink");
    chmod(at("veil/deep"), 0750);
}

static int go[2]; /* a pipe on which the box waits for the host */

static void host_changes(void *ctx)
{
    (void)ctx;
    write_to(at("veil/new"), "SECRET\n");
    (void)rename(at("veil/new"), at("veil/file")); /* as editors do: over the hidden name */
    write_to(at("veil/later"), "SECRET\n");
    write_to(at("veil/deep/new"), "SECRET\n");
    (void)rename(at("veil/deep/new"), at("veil/deep/secret"));
    write_to(at("veil/deep/no"), "SECRET\n");
    (void)rename(at("veil/dir"), at("veil/old"));
    dir(at("veil/dir"));
    write_to(at("veil/dir/key"), "SECRET\n");
    dir(at("veil/never"));
    dir(at("veil/never/was"));
    write_to(at("veil/never/was/here"), "SECRET\n");
    if (write(go[1], "go\n", 3) != 3)
        perror("write");
}

static const char look_again[] = "cd $1/veil; cat dir/key file later deep/secret deep/no deep/down/dir/key "
                                 "never/was/here; ls -a dir; cat open deep/open link; "
                                 "stat -c %a deep; echo ready; read go; cat dir/key file later deep/secret deep/no "
                                 "deep/down/dir/key never/was/here; "
                                 "cat open deep/open; ls -d point/dir point/file; chmod 700 dir; rmdir dir; mv file f; "
                                 "mv deep d; touch made; cat old/key";

static void run_hiding(enum step_kind how)
{
    hiding_host();
    if (pipe2(go, O_CLOEXEC) < 0)
        exit(2);
    const char *argv[] = {"/bin/sh", "-c", look_again, "sh", home, NULL};
    struct run_ask ask = {.argv = argv, .in = go[0], .ready = "ready", .on_ready = host_changes};
    run_ask(hiding(how), &ask);
    close(go[0]);
    close(go[1]);
    LACKS("made\n");
    HAS("open\ndeep open\nopen\n750\nready\n"); /* before */
    HAS("point/dir\npoint/file\n");
    CHECK(exists(at("veil/file")) && exists(at("veil/dir")) && !exists(at("veil/made")) && !exists(at("veil/point")));
    char *first = strstr(ran.out, "SECRET"), *renamed = strstr(ran.out, "touch:");
    if (how == STEP_VEIL) /* what was moved away under another name is another name: shown, it is not hidden */
        CHECK(!first || (renamed && first > renamed));
    else
        LACKS("SECRET");
    system("rm -rf \"$PF_HOME\"/veil");
}

static void test_veil(void)
{
    run_hiding(STEP_VEIL);
}
static void test_cover(void)
{
    run_hiding(STEP_COVER);
}

/* Makes and removes entries of veil/ for as long as it lives. */
static _Noreturn void come_and_go(unsigned from)
{
    char name[64];
    for (unsigned n = from;; n = from + (n + 1) % 20) {
        snprintf(name, sizeof name, "veil/passing%u", n);
        const char *path = at(name);
        if (n % 2 ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0))
            _exit(1);
        if (n % 2 ? rmdir(path) : unlink(path))
            _exit(1);
    }
}

/* What goes between its being listed and its being mounted is not there, and no reason not to start. */
static void test_cover_of_what_goes(void)
{
    pid_t busy[2];
    hiding_host();
    for (unsigned n = 0; n < 2; n++) {
        busy[n] = fork();
        if (busy[n] == 0)
            come_and_go(20 * n);
    }
    for (int i = 0; i < 60 && !failures; i++) {
        run_sh(hiding(STEP_COVER), "cat $1/veil/open $1/veil/file");
        HAS("open\n");
        LACKS("SECRET");
    }
    for (int n = 0; n < 2; n++) {
        CHECK(kill(busy[n], SIGKILL) == 0 && waitpid(busy[n], NULL, 0) == busy[n]);
    }
    system("rm -rf \"$PF_HOME\"/veil");
}

/* An overlay cannot be where mounts are below: then the directory is covered, and the mount below is still seen. */
static void test_veil_over_mounts(void)
{
    if (geteuid() != 0) {
        printf("# needs root to mount on the host\n");
        return;
    }
    hiding_host();
    dir(at("veil/mnt"));
    if (mount("tmpfs", at("veil/mnt"), "tmpfs", 0, NULL) < 0) {
        fail(__LINE__, "mount: %s", strerror(errno));
        return;
    }
    write_to(at("veil/mnt/inner"), "from the mount below\n");
    run_sh(hiding(STEP_VEIL),
           "cd $1/veil; cat file dir/key deep/secret; cat open mnt/inner; touch mnt/x; ls -d point/dir");
    HAS("open\nfrom the mount below\n");
    HAS("point/dir");
    LACKS("SECRET");
    CHECK(!exists(at("veil/mnt/x")));
    (void)umount2(at("veil/mnt"), MNT_DETACH);
    system("rm -rf \"$PF_HOME\"/veil");
}

static void test_deny(void)
{
    dir(at("d"));
    write_to(at("d/f"), "SECRET\n");
    write_to(at("f"), "SECRET\n");
    struct image *i = image_of_parts(NULL, 0);
    image_put_step(i, STEP_DENY, at("d"), NULL, 0, STUB_DENIED_DIR);
    image_put_step(i, STEP_DENY, at("f"), NULL, 0, STUB_DENIED_FILE);
    image_locks(i, 0);
    run_sh(i, "cd $1; cat d/f f; ls d; chmod 755 d f; id -u; cat d/f f");
    LACKS("SECRET");
    HAS("Permission denied");
    HAS("Read-only file system");
}

/* pivot_root(2) cannot leave the kernel's initial root file system. */
static bool initial_root(void)
{
    char text[4096];
    content("/proc/self/mounts", text, sizeof text);
    return strncmp(text, "rootfs / ", 9) == 0 || strncmp(text, "none / ", 7) == 0;
}

static void test_root_cover(void)
{
    dir(at("ws"));
    write_to(at("ws/file"), "in the workspace\n");
    struct image *i = image_of_parts(NULL, 0);
    i->n_steps = 0;
    image_put_step(i, STEP_SOURCE, at("ws"), NULL, 0, 0)->b = 0;
    image_put_step(i, STEP_ROOT_EMPTY, NULL, NULL, 0, 0755);
    image_put_step(i, STEP_COVER, "/", NULL, STEP_RDONLY | STEP_NOSUID, 0);
    image_stub(i, "workspace", STUB_POINT_DIR);
    image_stub(i, ".agent-sandbox", STUB_POINT_DIR);
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_ATTACH, "/workspace", NULL, 0, 0)->b = 0;
    image_locks(i, 0);
    run_sh(i, "cat /workspace/file; echo w > /workspace/w; ls -d /.agent-sandbox /usr /etc/passwd; touch /x "
              "/.agent-sandbox/x "
              "/etc/x $1/x; ls -la / | head -40; cd /workspace/.. && pwd");
    if (initial_root()) {
        CHECK(ran.verdict == EINVAL && strstr(ran.words, "initial one"));
        return;
    }
    HAS("in the workspace\n");
    HAS("/.agent-sandbox\n");
    HAS("/etc/passwd\n");
    CHECK(exists(at("ws/w")) && !exists("/workspace") && !exists("/x") && !exists(at("x")));
    HAS("touch: cannot touch '/x': Read-only file system");
    HAS("touch: cannot touch '/etc/x': Read-only file system");
    CHECK(strcmp(ran.out + strlen(ran.out) - 2, "/\n") == 0);
}

static struct image *overlay_box(void)
{
    char text[8192];
    struct image *i = image_of_parts(NULL, 0);
    snprintf(text, sizeof text, "%s/cache\n%s/upper\n%s/work", home, home, home);
    image_put_step(i, STEP_OVERLAY, at("cache"), text, 0, 0);
    image_put_step(i, STEP_OVERLAY, at("missing"), "/nowhere/a\n/nowhere/b\n/nowhere/c", STEP_OPTIONAL, 0);
    image_locks(i, 0);
    return i;
}

static void test_overlay(void)
{
    char text[8192];
    dir(at("cache"));
    dir(at("upper"));
    dir(at("work"));
    write_to(at("cache/old"), "from the host\n");
    run_sh(overlay_box(),
           "cd $1/cache; cat old; echo changed > old; echo new > new; rm -f gone; mkdir d; mv d e; ls; cat old");
    HAS("from the host\n");
    HAS("changed\n");
    content(at("cache/old"), text, sizeof text);
    CHECK(strcmp(text, "from the host\n") == 0);
    CHECK(!exists(at("cache/new")) && exists(at("upper/new")) && exists(at("upper/e")));
    run_sh(overlay_box(), "cd $1/cache; cat old new; ls"); /* the next box finds what the last one left */
    HAS("changed\nnew\n");
}

static void test_private_tmp_size(void)
{
    struct image *i = image_of_parts(NULL, 0);
    dir(at("small"));
    image_put_step(i, STEP_TMPFS, at("small"), NULL, STEP_NOEXEC, 0700)->b = 64;
    image_put_step(i, STEP_FILE, at("small/script"), "#!/bin/sh\necho ran\n", 0, 0755);
    image_locks(i, 0);
    run_sh(i, "cd $1/small; head -c 200000 /dev/zero > big; [ $(stat -c %s big) -le 65536 ] && echo limited; ./script; "
              "stat -c %a .");
    HAS("limited\n");
    HAS("Permission denied");
    HAS("700\n");
    CHECK(!exists(at("small/big")));
}

static void test_many_sources(void)
{
    enum { N = 1000 };
    struct rlimit old, low;
    char path[512];
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){256, old.rlim_max};
    struct image *i = image_of_parts(NULL, 0);
    i->n_steps = 0;
    dir(at("many"));
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY, 0);
    for (unsigned k = 0; k < N; k++) {
        snprintf(path, sizeof path, "%s/many/%u", home, k);
        dir(path);
        image_put_step(i, STEP_SOURCE, path, NULL, 0, 0)->b = k;
    }
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    for (unsigned k = 0; k < N; k++) {
        snprintf(path, sizeof path, "%s/many/%u", home, k);
        image_put_step(i, STEP_ATTACH, path, NULL, k % 2 ? STEP_RDONLY : 0, 0)->b = k;
    }
    image_locks(i, 0);
    setrlimit(RLIMIT_NOFILE, &low);
    run_sh(i, "cd $1/many; touch 0/x 998/x 999/x; ulimit -n");
    setrlimit(RLIMIT_NOFILE, &old);
    HAS("256\n");
    CHECK(exists(at("many/0/x")) && exists(at("many/998/x")) && !exists(at("many/999/x")));
    system("rm -rf \"$PF_HOME\"/many");
}

/* What the host mounts later does not come in, and what a box mounts does not go out. */
static void mount_later(void *ctx)
{
    (void)ctx;
    if (mount("tmpfs", at("later"), "tmpfs", 0, NULL) == 0)
        write_to(at("later/came"), "came in\n");
    if (write(go[1], "go\n", 3) != 3)
        perror("write");
}
static void test_propagation(void)
{
    if (geteuid() != 0) {
        printf("# needs root to mount on the host\n");
        return;
    }
    dir(at("later"));
    if (pipe2(go, O_CLOEXEC) < 0)
        exit(2);
    const char *argv[] = {"/bin/sh", "-c", "echo ready; read go; ls -a $1/later", "sh", home, NULL};
    struct run_ask ask = {.argv = argv, .in = go[0], .ready = "ready", .on_ready = mount_later};
    run_ask(image_box(NULL, 0), &ask);
    CHECK(exists(at("later/came")));
    LACKS("came");
    (void)umount2(at("later"), MNT_DETACH);
    close(go[0]);
    close(go[1]);
}

/* ---- verdicts ---- */

static void test_verdicts(void)
{
    struct image *i = image_of_parts(at("no such workspace"), 0);
    image_locks(i, 0);
    run_sh(i, "true");
    CHECK(ran.verdict == ENOENT && !ran.exited);
    CHECK(strstr(ran.words, "no such workspace") != NULL);
    dir(at("real"));
    (void)unlink(at("sym"));
    if (symlink("real", at("sym")) < 0)
        exit(2);
    i = image_box(at("sym"), 0); /* replaced by a link after it was surveyed: refused, never followed */
    run_sh(i, "true");
    CHECK(ran.verdict == ELOOP && strstr(ran.words, "sym") != NULL);
    i = image_of_parts(NULL, 0);
    image_put_step(i, STEP_DENY, at("gone"), NULL, STEP_OPTIONAL, STUB_DENIED_FILE);
    image_locks(i, 0);
    run_sh(i, "echo went on");
    HAS("went on");
    i = image_of_parts(NULL, 0);
    image_put_step(i, STEP_DENY, at("gone"), NULL, 0, STUB_DENIED_FILE);
    image_locks(i, 0);
    run_sh(i, "echo went on");
    CHECK(ran.verdict == ENOENT && strstr(ran.words, "gone"));
    LACKS("went on");
    i = image_box(NULL, 0);
    image_put_step(i, STEP_CWD, at("no cwd"), NULL, 0, 0);
    run_sh(i, "echo went on");
    CHECK(ran.verdict == ENOENT && strstr(ran.words, "no cwd"));
}

/* ---- processes ---- */

static void test_statuses(void)
{
    run_sh(image_box(NULL, 0), "exit 7");
    EXITED(7);
    run_sh(image_box(NULL, 0), "kill -9 $$");
    CHECK(ran.exited && WIFSIGNALED(ran.status) && WTERMSIG(ran.status) == SIGKILL);
    run_sh(image_box(NULL, 0), "kill -SEGV $$");
    CHECK(ran.exited && WIFSIGNALED(ran.status) && WTERMSIG(ran.status) == SIGSEGV);
    const char *missing[] = {"no-such-program", NULL}, *refused[] = {"/etc/passwd", NULL}, *empty[] = {"", NULL};
    run_argv(image_box(NULL, 0), missing);
    CHECK(ran.exec_errno == ENOENT && WEXITSTATUS(ran.status) == 127);
    run_argv(image_box(NULL, 0), refused);
    CHECK(ran.exec_errno == EACCES && WEXITSTATUS(ran.status) == 126);
    run_argv(image_box(NULL, 0), empty);
    CHECK(ran.exec_errno == ENOENT && WEXITSTATUS(ran.status) == 127);
}

static void test_lookup(void)
{
    dir(at("bin"));
    dir(at("bin2"));
    write_to(at("bin2/tool"), "echo script without a line for the kernel: $0 $1 $2\n");
    write_to(at("bin/tool"), "not to be run\n"); /* not executable: the search goes on */
    chmod(at("bin2/tool"), 0755);
    char path[1024];
    snprintf(path, sizeof path, "PATH=%s/nowhere:%s/bin:%s/bin2:/bin", home, home, home);
    const char *env[] = {"A=1", path, NULL}, *argv[] = {"tool", "one", "two words", NULL};
    struct run_ask ask = {.argv = argv, .env = env, .in = -1};
    run_ask(image_box(NULL, 0), &ask);
    HAS("/bin2/tool one two words\n");
    EXITED(0);
    const char *see[] = {"env", NULL};
    ask.argv = see;
    run_ask(image_box(NULL, 0), &ask);
    CHECK(strncmp(ran.out, "A=1\nPATH=", 9) == 0); /* exactly what the plan says, in its order */
    CHECK(ran.n_out == 5 + strlen(path));
}

static void test_attributes(void)
{
    struct image *i = image_box(NULL, 0);
    i->n_steps--; /* its CWD */
    struct step *s = image_put_step(i, STEP_RLIMIT, NULL, NULL, 0, 1);
    s->a = RLIMIT_NOFILE, s->b = 99;
    s = image_put_step(i, STEP_RLIMIT, NULL, NULL, 0, 1024);
    s->a = RLIMIT_FSIZE, s->b = 4;
    s = image_put_step(i, STEP_RLIMIT, NULL, NULL, 0, 1);
    s->a = RLIMIT_CORE, s->b = 0;
    image_put_step(i, STEP_CWD, "/usr", NULL, 0, 0);
    struct run_ask ask = {.in = -1, .umask = 027};
    const char *argv[] = {"/bin/sh", "-c",
                          "pwd; umask; ulimit -n; ulimit -c; cat /proc/self/limits; head -c 5000 /dev/zero > /tmp/f; "
                          "echo st=$?; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; hostname",
                          NULL};
    ask.argv = argv;
    void (*old)(int) = signal(SIGUSR1, SIG_IGN);
    run_ask(i, &ask);
    signal(SIGUSR1, old);
    HAS("/usr\n0027\n99\n0\n");
    HAS("4096                 4096                 bytes");
    HAS("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    HAS("box\n");
}

static void test_locks(void)
{
    run_sh(image_box(NULL, 0),
           "cat /proc/self/status; cat /proc/1/status; ls /proc | grep '^[0-9]'; readlink /proc/1/exe; "
           "ls /proc/1/fd; cat /proc/1/environ /proc/1/maps");
    HAS("CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
        "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    LACKS("pinfold"); /* nothing of pid 1 can be read */
    CHECK(strstr(ran.out, "Permission denied") != NULL);
    run_self(image_box(NULL, 0), "privileges");
    EXITED(0);
    run_self(image_box(NULL, BOX_ROOT_USER), "privileges");
    EXITED(0);
    HAS("uid 0");
}

/* A file with set-id bits or capabilities, made outside by root, grants nothing inside. */
static void test_setid(void)
{
    if (geteuid() != 0) {
        printf("# needs root to make such files\n");
        return;
    }
    struct vfs_cap_data caps = {VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, {{~0u, 0}, {~0u, 0}}};
    char command[8192];
    dir(at("ws"));
    snprintf(command, sizeof command, "cp '%s' '%s/ws/suid' && cp '%s' '%s/ws/fcap'", self, home, self, home);
    if (system(command) != 0 || chmod(at("ws/suid"), 06755) < 0 ||
        setxattr(at("ws/fcap"), "security.capability", &caps, sizeof caps, 0) < 0) {
        fail(__LINE__, "cannot make the files: %s", strerror(errno));
        return;
    }
    struct image *i = image_of_parts(NULL, BOX_ROOT_USER);
    i->n_steps = 0; /* not even where the mount would let it */
    image_put_step(i, STEP_ROOT, NULL, NULL, STEP_RDONLY, 0);
    image_put_step(i, STEP_ENTER, NULL, NULL, 0, 0);
    image_put_step(i, STEP_DEVICES, "/dev", NULL, STEP_RDONLY, 0);
    image_locks(i, BOX_ROOT_USER);
    run_sh(i, "$1/ws/suid inside caps; $1/ws/fcap inside caps; echo done");
    HAS("caps 0 0\n"); /* the second may be refused as a whole: execve(2), EPERM */
    HAS("done\n");
    const char *wrong = strstr(ran.out, "caps ");
    for (; wrong; wrong = strstr(wrong + 1, "caps "))
        CHECK(strncmp(wrong, "caps 0 0\n", 9) == 0);
    (void)unlink(at("ws/suid"));
    (void)unlink(at("ws/fcap"));
}

static void test_descriptors(void)
{
    int a = open("/", O_RDONLY | O_DIRECTORY), b = open("/etc/passwd", O_RDONLY), c = fcntl(a, F_DUPFD, 900);
    run_self(image_box(NULL, 0), "descriptors");
    HAS("open: 0 1 2\n");
    close(a), close(b), close(c);
}

static void test_stdio(void)
{
    const char *copy[] = {"/bin/dd", "bs=5", "count=1", "status=none", NULL};
    const char *reopen[] = {"/bin/sh", "-c", "cat; echo x > /proc/self/fd/0; echo st=$?; readlink /proc/self/fd/0",
                            NULL};
    struct run_ask ask = {.argv = copy};
    write_to(at("input"), "abcdefghijkl\n");
    ask.in = open(at("input"), O_RDONLY | O_CLOEXEC);
    (void)lseek(ask.in, 2, SEEK_SET);
    run_ask(image_box(NULL, 0), &ask);
    HAS("cdefg");
    CHECK(ran.stdin_at == 7 && ran.pipes == 0);
    ask.argv = reopen;
    run_ask(image_box(NULL, 0), &ask);
    HAS("cdefghijkl\n");
    HAS("Read-only file system");
    HAS("/input\n");
    close(ask.in);
    char hidden[] = "/tmp/pf-stdin-XXXXXX"; /* in the host's /tmp, which the box does not see */
    ask.in = mkstemp(hidden);
    write_to(hidden, "not seen by the box\n");
    close(ask.in);
    ask.in = open(hidden, O_RDONLY | O_CLOEXEC);
    run_ask(image_box(NULL, 0), &ask);
    HAS("not seen by the box\n");
    CHECK(ran.pipes == 1);
    close(ask.in);
    unlink(hidden);
    static const char *const refused[] = {"/", "/proc/self/ns/net"};
    for (int n = 0; n < 2; n++) {
        ask.in = open(refused[n], O_RDONLY | O_CLOEXEC);
        struct image *i = image_box(NULL, 0);
        ask.image = i;
        CHECK(image_run(&ask, &ran) == -EINVAL || image_run(&ask, &ran) == -EPERM);
        CHECK(strstr(ran.words, "standard input is a directory") != NULL);
        free(i);
        close(ask.in);
    }
    ask.in = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct image *i = image_box(NULL, 0);
    ask.image = i;
    CHECK(image_run(&ask, &ran) < 0);
    free(i);
    close(ask.in);
}

static void test_signals(void)
{
    const char *trap[] = {"/bin/sh", "-c",
                          "trap 'echo got TERM; exit 9' TERM; echo ready; while :; do sleep 0.05; done", NULL};
    struct run_ask ask = {.argv = trap, .in = -1, .ready = "ready", .signal = SIGTERM, .signal_target = SIGNAL_COMMAND};
    run_ask(image_box(NULL, 0), &ask);
    HAS("got TERM");
    EXITED(9);
    const char *group[] = {"/bin/sh", "-c", "(trap 'echo child' INT; echo ready; while :; do sleep 0.05; done) & wait",
                           NULL};
    ask.argv = group;
    ask.signal = SIGINT;
    ask.signal_target = SIGNAL_FOREGROUND;
    run_ask(image_box(NULL, 0), &ask);
    CHECK(ran.exited && WIFSIGNALED(ran.status) && WTERMSIG(ran.status) == SIGINT);
    const char *all[] = {"/bin/sh", "-c",
                         "trap 'echo all' USR1; setsid sh -c \"trap 'echo far; exit' USR1; echo ready; while :; do "
                         "sleep 0.05; done\" & wait; wait",
                         NULL};
    ask.argv = all;
    ask.signal = SIGUSR1;
    ask.signal_target = SIGNAL_EVERYONE;
    run_ask(image_box(NULL, 0), &ask);
    HAS("all\n");
    HAS("far\n");
}

/* Whether a process has `mark` as one of its arguments. */
/* A number for sleep(1) by which what this test has started is found, and nothing of another run's. */
static const char *mark(void)
{
    static char text[32];
    if (!text[0])
        snprintf(text, sizeof text, "98760%d", getpid());
    return text;
}

static bool alive(void)
{
    bool found = false;
    struct dirent *e;
    DIR *proc = opendir("/proc");
    while (proc && !found && (e = readdir(proc))) {
        char path[300], text[1024];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        int fd = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = 0;
        for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
            found |= strcmp(text + at, mark()) == 0;
    }
    if (proc)
        closedir(proc);
    return found;
}

/* Whether a process with our number is there, or none is, within a while: a box's processes are killed as it ends, and a
 * busy machine takes its time to let them go. */
static bool becomes(bool wanted)
{
    for (int n = 0; n < 6000; n++) {
        if (alive() == wanted)
            return true;
        usleep(10000);
    }
    return false;
}

/* The only or oldest child of `pid`, or -1. */
static pid_t child_of(pid_t pid)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    content(path, text, sizeof text);
    return text[0] ? (pid_t)atoi(text) : -1;
}

static void test_survivors(void)
{
    char script[256];
    snprintf(
        script, sizeof script,
        "trap '' TERM HUP INT; for i in 1 2 3; do setsid sh -c \"trap '' TERM HUP; (sleep %s &) ; sleep %s\" & done; "
        "sleep 0.2; echo started",
        mark(), mark());
    run_sh(image_box(NULL, 0), script);
    HAS("started");
    CHECK(becomes(false));
    snprintf(script, sizeof script, "(setsid sleep %s &); echo ready; sleep %s", mark(), mark());
    for (int victim = 0; victim < 2; victim++) { /* pinfold itself, then its builder */
        int ready[2];
        if (pipe(ready) < 0)
            exit(2);
        pid_t runner = fork();
        if (runner == 0) {
            const char *argv[] = {"/bin/sh", "-c", script, NULL};
            dup2(ready[1], 1);
            dup2(ready[1], 2);
            close(ready[0]);
            struct run_ask ask = {.image = image_box(NULL, 0), .argv = argv, .in = -1, .keep_output = true};
            _exit(image_run(&ask, &ran) < 0);
        }
        close(ready[1]);
        char text[16];
        if (read(ready[0], text, sizeof text) <= 0)
            fail(__LINE__, "the box said nothing");
        CHECK(becomes(true));
        if (victim == 0) {
            kill(runner, SIGKILL);
        } else {
            CHECK(kill(child_of(runner), SIGKILL) == 0);
        }
        CHECK(becomes(false));
        waitpid(runner, NULL, 0);
        close(ready[0]);
    }
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void test_manners(void)
{
    int before = open_descriptors();
    char cwd[4096], now[4096];
    mode_t mask = umask(022);
    umask(mask);
    if (!getcwd(cwd, sizeof cwd))
        exit(2);
    run_sh(image_box(NULL, 0), "true");
    run_sh(image_box(at("missing"), 0), "true");
    CHECK(open_descriptors() == before);
    CHECK(waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD);
    CHECK(umask(mask) == mask && getcwd(now, sizeof now) && strcmp(cwd, now) == 0);
}

static void test_devices(void)
{
    run_sh(image_box(NULL, 0),
           "echo x > /dev/null && head -c 3 /dev/zero | od -An -tx1; head -c 8 /dev/urandom | wc -c; head -c 3 "
           "/dev/zero > /dev/full; "
           "ls /dev; ls -l /dev/fd /dev/stdin; touch /dev/null2; rm /dev/null; echo q > /dev/shm/q; cat /dev/shm/q; "
           "stat -c %a /dev/shm; : < /dev/tty");
    HAS(" 00 00 00\n8\n");
    HAS("Read-only file system");
    HAS("q\n1777\n");
    LACKS("mem\n");
    LACKS("vda");
    run_self(image_box(NULL, 0), "pty");
    EXITED(0);
}

static void test_proc(void)
{
    run_sh(image_box(NULL, BOX_ROOT_USER),
           "ls /proc | grep -c '^[0-9]'; for f in sys/kernel/printk sys/vm/swappiness sys/kernel/hostname; do "
           "[ -e /proc/$f ] && { cat /proc/$f > /tmp/v; cat /tmp/v > /proc/$f; }; done; echo 0 > /proc/sysrq-trigger; "
           "find /proc -maxdepth 3 -path '/proc/[0-9]*' -prune -o -path /proc/self -prune -o -path /proc/thread-self "
           "-prune -o "
           "-path /proc/sys -prune -o -type f -writable -print; echo 5 > /proc/self/oom_score_adj && cat "
           "/proc/self/oom_score_adj");
    HAS("Read-only file system");
    LACKS("/proc/irq");
    HAS("5\n");
    run_sh(image_box(NULL, 0), "kill -9 1; kill -TERM 1; echo still here; mount -t proc proc /proc; umount /proc; "
                               "unshare -U true; unshare -m true; echo end");
    HAS("still here");
    HAS("end\n");
    EXITED(0);
}

static void test_oom_score(void)
{
    run_sh(image_box(NULL, 0), "sleep 0.3; cat /proc/self/oom_score_adj /proc/1/oom_score_adj");
    HAS("100\n0\n");
}

static void test_network(void)
{
    run_self(image_box(NULL, 0), "loopback");
    EXITED(0);
    run_sh(image_box(NULL, 0), "cat /proc/net/dev");
    HAS("lo:");
    LACKS("eth0");
}

/* ---- the terminal ---- */

static void test_tty(void)
{
    const char *see[] = {"/bin/sh", "-c", "tty; stty size; ps -o pgid= -o tpgid= -p $$ | tr -s ' '; exit 4", NULL};
    struct run_ask ask = {.argv = see, .tty = true, .in = -1};
    run_ask(image_box(NULL, 0), &ask);
    HAS("/dev/pts/0");
    HAS("24 80");
    EXITED(4);
    const char *stop[] = {"/bin/sh", "-c", "kill -TSTP $$; echo resumed", NULL};
    ask.argv = stop;
    run_ask(image_box(NULL, 0), &ask);
    HAS("resumed");
    CHECK(ran.stops == 1);
    /* It is the child that says "ready": a shell that is interrupted before it has forked waits for what it forks then. */
    const char *interrupt[] = {"/bin/sh", "-c", "\"$0\" inside wait; echo not reached", self, NULL};
    ask.argv = interrupt;
    ask.ready = "ready";
    ask.type = "\x03";
    run_ask(image_box(NULL, 0), &ask);
    LACKS("not reached");
    CHECK(ran.exited && WIFSIGNALED(ran.status) && WTERMSIG(ran.status) == SIGINT);
    const char *suspend[] = {"/bin/sh", "-c", "echo ready; read x; echo after", NULL};
    ask.argv = suspend;
    ask.ready = "ready";
    ask.type = "\x1a";
    run_ask(image_box(NULL, 0), &ask);
    CHECK(ran.stops >= 1);
    HAS("after");
    ask.argv = (const char *const[]){self, "inside", "inject", NULL};
    ask.type = ask.ready = NULL;
    run_ask(image_box(NULL, 0), &ask);
    EXITED(0);
}

/* ---- control groups ---- */

static void test_cgroup(void)
{
    char path[256], group[64], second[64];
    snprintf(group, sizeof group, "/sys/fs/cgroup/pids/pf-engine-test-%d", getpid());
    snprintf(second, sizeof second, "/sys/fs/cgroup/unified/pf-engine-test-%d", getpid());
    if (geteuid() != 0 || (mkdir(group, 0755) < 0 && errno != EEXIST)) {
        printf("# needs a writable cgroup v1 hierarchy\n");
        return;
    }
    snprintf(path, sizeof path, "%s/tasks", group);
    struct run_ask ask = {.argv = (const char *const[]){"/bin/sh", "-c", "cat /proc/self/cgroup", NULL}, .in = -1};
    ask.cgroup = (struct cgroup_join){.kind = CGROUP_V1, .v2_dir = -1, .n_v1 = 1};
    ask.cgroup.v1_tasks[0] = open(path, O_WRONLY | O_CLOEXEC);
    run_ask(image_box(NULL, 0), &ask);
    HAS(":pids:/\n"); /* the group is the root of what the box sees */
    close(ask.cgroup.v1_tasks[0]);
    CHECK(rmdir(group) == 0);
    if (mkdir(second, 0755) < 0 && errno != EEXIST) {
        printf("# needs a cgroup v2 hierarchy\n");
        return;
    }
    ask.cgroup = (struct cgroup_join){.kind = CGROUP_V2, .v2_dir = open(second, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    run_ask(image_box(NULL, 0), &ask);
    HAS("0::/\n");
    close(ask.cgroup.v2_dir);
    CHECK(rmdir(second) == 0);
}

/* ---- without namespaces ---- */

static struct image *landlock_box(void)
{
    struct image *i = image_new();
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    i->tier = TIER_LANDLOCK;
    struct step *s = image_put_step(i, STEP_RULESET, NULL, NULL, 0, abi >= 6 ? 3 : 0);
    s->a = abi >= 5 ? 0xffff : abi >= 3 ? 0x7fff : abi == 2 ? 0x3fff : 0x1fff;
    static const char *const programs[] = {"/usr", "/bin", "/lib", "/lib64"};
    for (int n = 0; n < 4; n++) {
        struct stat st;
        if (lstat(programs[n], &st) == 0 && S_ISDIR(st.st_mode))
            image_put_step(i, STEP_RULE, programs[n], NULL, 0, RULE_READ);
    }
    image_put_step(i, STEP_RULE, "/etc", NULL, 0, RULE_READ);
    image_put_step(i, STEP_RULE, "/proc", NULL, 0, RULE_READ);
    image_put_step(i, STEP_RULE, "/dev/null", NULL, 0, RULE_DEVICE);
    image_put_step(i, STEP_RULE, at("ws"), NULL, 0, RULE_READ | RULE_WRITE);
    image_put_step(i, STEP_RULE, self, NULL, 0, RULE_READ);
    image_put_step(i, STEP_RULE, "/nowhere", NULL, STEP_OPTIONAL, RULE_READ);
    image_put_step(i, STEP_NO_CAPS, NULL, NULL, 0, 0);
    image_put_step(i, STEP_NO_NEW_PRIVS, NULL, NULL, 0, 0);
    image_put_step(i, STEP_UNDUMPABLE, NULL, NULL, 0, 0);
    i->filter = FILTER_NO_INET;
    image_put_step(i, STEP_FILTER, NULL, NULL, 0, 0)->a = i->filter;
    return i;
}

static void kill_pid_1(void *ctx)
{
    (void)ctx;
    CHECK(kill(child_of(child_of(getpid())), SIGKILL) == 0);
}

static void test_landlock(void)
{
    dir(at("ws"));
    dir(at("secret"));
    write_to(at("secret/key"), "SECRET\n");
    run_sh(landlock_box(),
           "cd $1/ws; echo w > w && cat w; cat ../secret/key; echo x > ../x; ls ..; ls / ; cat /etc/hostname; exit 0");
    HAS("w\n");
    LACKS("SECRET");
    HAS("Permission denied");
    CHECK(exists(at("ws/w")) && !exists(at("x")));
    EXITED(0);
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 6) {
        char signals[256];
        snprintf(signals, sizeof signals,
                 "kill -0 %d && echo reached outside; kill -0 $PPID && echo reached pid 1; kill -9 $PPID; echo alive",
                 getpid());
        run_sh(landlock_box(), signals);
        LACKS("reached");
        HAS("alive");
    }
    char script[256];
    snprintf(
        script, sizeof script,
        "trap '' TERM HUP INT; for i in 1 2 3; do setsid sh -c \"trap '' TERM HUP; (sleep %s &) ; sleep %s\" & done; "
        "sleep 0.2; echo started",
        mark(), mark());
    run_sh(landlock_box(), script);
    HAS("started");
    CHECK(becomes(false));
    snprintf(script, sizeof script, "(setsid sh -c 'sleep %s & sleep %s' &); sleep 0.1; echo ready; sleep %s", mark(),
             mark(), mark());
    struct run_ask ask = {.argv = (const char *const[]){"/bin/sh", "-c", script, NULL},
                          .in = -1,
                          .ready = "ready",
                          .on_ready = kill_pid_1};
    run_ask(landlock_box(), &ask); /* from outside, as the kernel does when memory runs out */
    CHECK(becomes(false) && !ran.exited);
    run_self(landlock_box(), "caps");
    HAS("caps 0 0");
}

/* ---- what runs in the box ---- */

static int inside_caps(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &head, sets) < 0)
        return 1;
    printf("caps %x %x\n", sets[0].effective | sets[1].effective, sets[0].permitted | sets[1].permitted);
    return 0;
}

#define MUST_FAIL(call)                                                                                                \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        if ((call) != -1) {                                                                                            \
            printf("worked: %s\n", #call);                                                                             \
            bad = 1;                                                                                                   \
        }                                                                                                              \
    } while (0)

static int inside_privileges(void)
{
    int bad = 0;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{1, 1, 1}, {0, 0, 0}};
    printf("uid %d\n", getuid());
    MUST_FAIL(syscall(SYS_capset, &head, sets));
    MUST_FAIL(prctl(PR_SET_SECUREBITS, 0));
    MUST_FAIL(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
    MUST_FAIL(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    MUST_FAIL(syscall(SYS_unshare, CLONE_NEWUSER));
    MUST_FAIL(syscall(SYS_unshare, CLONE_NEWNS));
    MUST_FAIL(mount("none", "/tmp", "tmpfs", 0, NULL));
    MUST_FAIL(umount2("/proc", MNT_DETACH));
    MUST_FAIL(chroot("/tmp"));
    MUST_FAIL(sethostname("x", 1));
    MUST_FAIL(setgroups(0, NULL));
    MUST_FAIL(setuid(getuid() + 1));
    MUST_FAIL(mknod("/tmp/null", S_IFCHR | 0666, makedev(1, 3)));
    MUST_FAIL(open("/proc/1/mem", O_RDONLY));
    MUST_FAIL(readlink("/proc/1/root", (char[64]){0}, 64));
    MUST_FAIL(readlink("/proc/1/cwd", (char[64]){0}, 64));
    for (int fd = 0; fd < 20; fd++) { /* their numbers may be listed, but none may be looked at or opened */
        char path[32];
        snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
        MUST_FAIL(open(path, O_RDONLY));
        MUST_FAIL(readlink(path, (char[64]){0}, 64));
    }
    return bad;
}

static int inside_descriptors(void)
{
    printf("open:");
    for (int fd = 0; fd < 4096; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf(" %d", fd);
    }
    printf("\n");
    return 0;
}

static int inside_loopback(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int s = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
    if (s < 0 || bind(s, (void *)&a, sizeof a) < 0 || listen(s, 1) < 0 || getsockname(s, (void *)&a, &n) < 0 ||
        connect(c, (void *)&a, sizeof a) < 0)
        return perror("loopback"), 1;
    a.sin_addr.s_addr = htonl(0x01010101);
    int o = socket(AF_INET, SOCK_STREAM, 0);
    return connect(o, (void *)&a, sizeof a) == 0;
}

static int inside_wait(void)
{
    if (write(1, "ready\n", 6) != 6)
        return 1;
    sleep(20);
    return 0;
}

static int inside_inject(void)
{
    int bad = 0;
    char c = 'x', linux_command = 2;
    MUST_FAIL(ioctl(0, TIOCSTI, &c));
    MUST_FAIL(ioctl(0, TIOCLINUX, &linux_command));
    return bad;
}

static int inside_pty(void)
{
    int full = open("/dev/full", O_WRONLY);
    if (full < 0 || write(full, "x", 1) != -1 || errno != ENOSPC)
        return perror("/dev/full"), 1;
    int unlock = 0, m = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (m < 0 || ioctl(m, TIOCSPTLCK, &unlock) < 0)
        return perror("/dev/ptmx"), 1;
    int s = open("/dev/pts/0", O_RDWR | O_NOCTTY);
    if (s < 0 || write(m, "hi\n", 3) != 3)
        return perror("/dev/pts/0"), 1;
    char text[8];
    return read(s, text, sizeof text) == 3 ? 0 : 1;
}

static int inside(const char *what)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } all[] = {{"caps", inside_caps},         {"descriptors", inside_descriptors}, {"privileges", inside_privileges},
               {"loopback", inside_loopback}, {"inject", inside_inject},           {"pty", inside_pty},
               {"wait", inside_wait}};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
        if (strcmp(all[n].name, what) == 0)
            return all[n].run();
    }
    return 99;
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define T(name)                                                                                                        \
    {                                                                                                                  \
#name, test_##name                                                                                             \
    }
    T(files),
    T(attach_inside),
    T(remap),
    T(names),
    T(veil),
    T(cover),
    T(cover_of_what_goes),
    T(veil_over_mounts),
    T(deny),
    T(root_cover),
    T(overlay),
    T(private_tmp_size),
    T(many_sources),
    T(propagation),
    T(verdicts),
    T(statuses),
    T(lookup),
    T(attributes),
    T(locks),
    T(setid),
    T(descriptors),
    T(stdio),
    T(signals),
    T(survivors),
    T(manners),
    T(devices),
    T(proc),
    T(network),
    T(oom_score),
    T(tty),
    T(cgroup),
    T(landlock),
#undef T
};

static bool wanted(int argc, char **argv, const char *name)
{
    for (int n = 1; n < argc; n++) {
        if (strcmp(argv[n], name) == 0)
            return true;
    }
    return argc == 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "inside") == 0)
        return inside(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *base = getenv("PF_TEST_DIR");
    snprintf(home, sizeof home, "%s/pf-engine-XXXXXX", base ? base : getenv("HOME") ? getenv("HOME") : "/var/tmp");
    char copy[sizeof home + 64];
    snprintf(copy, sizeof copy, "cp /proc/%d/exe \"$PF_HOME/self\"", (int)getpid());
    if (!mkdtemp(home) || chmod(home, 0755) < 0) {
        perror(home);
        return 2;
    }
    setenv("PF_HOME", home, 1);
    if (system(copy) != 0) /* the tree may lie in /tmp, which a box does not see */
        return 2;
    snprintf(self, sizeof self, "%s/self", home);
    printf("# uid %d, %s\n", (int)geteuid(), home);
    int count = 0, bad = 0;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
        if (!wanted(argc, argv, tests[t].name))
            continue;
        failures = 0;
        memset(&ran, 0, sizeof ran);
        tests[t].run();
        printf("%s %d - %s\n", failures ? "not ok" : "ok", ++count, tests[t].name);
        bad += failures > 0;
    }
    printf("1..%d\n", count);
    if (system("rm -rf \"$PF_HOME\"") != 0)
        return 2;
    return bad > 0;
}
