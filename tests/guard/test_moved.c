/*
 * What the host moves while a box runs: a directory out of the workspace, in which somebody stands or which somebody has
 * open, is out of reach for every call that changes something; a hidden file or directory stays hidden under its new name.
 */
#include "harness.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *ws, *outside;

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

static void await(const char *path)
{
    for (int i = 0; i < 9000 && access(path, F_OK) < 0; i++)
        usleep(10000);
}

/* In the box: the host's part of step `n` is done when this returns. */
static void step(int n)
{
    char name[300];
    snprintf(name, sizeof name, "%s/ask%d", ws, n);
    (void)put(name, "");
    snprintf(name, sizeof name, "%s/done%d", ws, n);
    await(name);
}

/* On the host: waits for step `n`, moves, says so. */
static void move(int n, const char *from, const char *to)
{
    char name[300];
    snprintf(name, sizeof name, "%s/ask%d", ws, n);
    await(name);
    if (rename(from, to) < 0)
        perror(to);
    snprintf(name, sizeof name, "%s/done%d", ws, n);
    (void)put(name, "");
}

#define NO(call)                                                                                                       \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        if ((call) >= 0 || errno != EACCES) {                                                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno));                            \
            bad = 1;                                                                                                   \
        }                                                                                                              \
    } while (0)

static int connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0), r = bind(s, (void *)&a, sizeof a), e = errno;
    close(s);
    errno = e;
    return r;
}

/* Where the process stands has left the workspace. */
static int stands_outside(void *ctx)
{
    int bad = 0;
    char path[64];
    (void)ctx;
    if (chdir("d/sub") < 0)
        return 2;
    int dir = open("..", O_PATH | O_DIRECTORY), writes = open("f", O_WRONLY), reads = open("f", O_RDONLY);
    step(1);
    NO(open("new", O_WRONLY | O_CREAT, 0644));
    NO(openat(dir, "new", O_WRONLY | O_CREAT, 0644));
    NO(openat(dir, "sub/new", O_WRONLY | O_CREAT, 0644));
    if (open("../new", O_WRONLY | O_CREAT, 0644) >= 0)
        bad = 1;
    NO(open("f", O_WRONLY));
    NO(open("f", O_RDONLY | O_TRUNC));
    NO(open("/proc/self/cwd/new", O_WRONLY | O_CREAT, 0644));
    NO(mkdir("new", 0755));
    NO(mknod("new", S_IFREG | 0644, 0));
    NO(symlink("x", "new"));
    NO(link("f", "new"));
    NO(rename("f", "new"));
    NO(unlink("f"));
    NO(rmdir("empty"));
    NO(truncate("f", 0));
    NO(chmod("f", 0777));
    NO(chmod(".", 0777));
    NO(chown("f", getuid(), getgid()));
    NO(utimensat(dir, "sub/f", NULL, 0));
    NO(fchmod(reads, 0777));
    NO(fchmod(open(".", O_RDONLY | O_DIRECTORY), 0777));
    NO(futimens(reads, NULL));
    NO(connect_to("s"));
    snprintf(path, sizeof path, "/proc/self/fd/%d", reads);
    NO(open(path, O_WRONLY));
    snprintf(path, sizeof path, "/proc/self/fd/%d/new", dir);
    NO(open(path, O_WRONLY | O_CREAT, 0644));
    /* Said in SECURITY.md: what was open for writing stays so. */
    if (write(writes, "w", 1) != 1 || put("/tmp/elsewhere", "x") == false)
        bad = 1;
    return bad;
}

/* The same where what the kernel calls its path is a place of the box's own. */
static int stands_by_accident(void *ctx)
{
    int bad = 0;
    (void)ctx;
    if (chdir("e/sub") < 0 || mkdir("/tmp/e", 0755) < 0 || mkdir("/tmp/e/sub", 0755) < 0)
        return 2;
    int reads = open("f", O_RDONLY);
    step(1);
    NO(open("new", O_WRONLY | O_CREAT, 0644));
    NO(unlink("f"));
    NO(fchmod(reads, 0777));
    /* A link of the box's that leads to itself makes no way there. */
    if (rmdir("/tmp/e/sub") < 0 || symlink("/proc/self/cwd", "/tmp/e/sub") < 0)
        return 2;
    NO(fchmod(reads, 0777));
    NO(open("new", O_WRONLY | O_CREAT, 0644));
    return bad;
}

/* Moved within the workspace it stays in reach, and is judged by where it is now. */
static int stands_inside(void *ctx)
{
    int bad = 0;
    (void)ctx;
    if (chdir("in/a") < 0)
        return 2;
    step(1);
    if (!put("new", "x") || !put("../beside", "x") || access("../moved/new", F_OK) < 0)
        bad = 1;
    NO(open(".envrc", O_WRONLY | O_CREAT, 0644));
    return bad;
}

static int hidden(void *ctx)
{
    int bad = 0;
    char path[64];
    (void)ctx;
    NO(open(".env", O_RDONLY));
    NO(open("vault/key", O_RDONLY));
    step(1);
    NO(open("env.old", O_RDONLY));
    NO(open("env.old", O_RDWR));
    NO(link("env.old", "second"));
    snprintf(path, sizeof path, "/proc/self/fd/%d", open("env.old", O_PATH));
    NO(open(path, O_RDONLY));
    step(2);
    NO(open("vault2/key", O_RDONLY));
    NO(open("vault2", O_RDONLY | O_DIRECTORY));
    NO(open("vault2/down/key", O_RDONLY));
    NO(rename("vault2/key", "key"));
    NO(rename("vault2/down", "down"));
    NO(link("vault2/key", "key"));
    step(3); /* another one takes the hidden name */
    NO(open(".env", O_RDONLY));
    step(4); /* and leaves it */
    NO(open("env.old2", O_RDONLY));
    int fd = open("free", O_RDONLY);
    if (fd < 0 || !put("made", "x") || open("made", O_RDONLY) < 0)
        bad = 1;
    return bad;
}

/* A hidden program may be run, but is not served, and shows itself to nobody. */
static int stopped_child(const char *program)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl(program, program, "free", (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFSTOPPED(status) ? child : -1;
}

/* A copy of a program that names another interpreter: the kernel maps that without asking anybody. */
static bool with_interpreter(const char *from, const char *to, const char *interpreter)
{
    static _Alignas(16) char bytes[4 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t n = in < 0 ? -1 : read(in, bytes, sizeof bytes);
    const Elf64_Ehdr *e = (const void *)bytes;
    bool done = false;
    for (int i = 0; n > (ssize_t)sizeof *e && i < e->e_phnum; i++) {
        const Elf64_Phdr *p = (const void *)(bytes + e->e_phoff + (size_t)i * sizeof *p);
        if (p->p_type != PT_INTERP || p->p_filesz <= strlen(interpreter))
            continue;
        memset(bytes + p->p_offset, 0, p->p_filesz);
        strcpy(bytes + p->p_offset, interpreter);
        done = true;
    }
    done = done && out >= 0 && write(out, bytes, (size_t)n) == n;
    close(in);
    close(out);
    return done;
}

static const char *hidden_program = "./cat";

/* A hidden program as the interpreter of one's own: /proc/PID/exe is not hidden. */
static int interpreter(void *ctx)
{
    int bad = 0, status;
    char path[64];
    uint64_t mask;
    (void)ctx;
    if (!with_interpreter("/bin/cat", "byway", hidden_program))
        return 3;
    pid_t child = stopped_child("./byway");
    if (child < 0)
        return 2;
    /* Where its name is of two readings, which no rule is known to hide, it is closed all the same. */
    if (ptrace(PTRACE_GETSIGMASK, child, (void *)sizeof mask, &mask) >= 0 || (errno != EACCES && errno != EPERM))
        bad = 1;
    errno = 0;
    if (ptrace(PTRACE_PEEKTEXT, child, (void *)0x400000, NULL) != -1 || (errno != EACCES && errno != EPERM))
        bad = 1;
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    NO(open(path, O_RDONLY));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    child = stopped_child("/bin/cat");
    if (child < 0 || ptrace(PTRACE_GETSIGMASK, child, (void *)sizeof mask, &mask) < 0)
        bad = 1;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return bad;
}

/* A /dev of the test's own, in its mount namespace, with the usual nodes and a directory whose name begins as that of memory without a
   file. False: this cannot be made here. */
static bool make_dev(const char *base)
{
    char command[1200];
    snprintf(command, sizeof command,
             "test \"$(stat -fc %%T %s)\" = tmpfs && mkdir %s/dev && mount -t tmpfs dev %s/dev && cd %s/dev && mkdir "
             "shm zero-memory && "
             "for n in null zero full random urandom; do touch $n && mount --bind /dev/$n $n || exit 1; done && "
             "ln -s /proc/self/fd fd && mount --move %s/dev /dev && chmod 777 /dev/zero-memory && cp /bin/cat "
             "/dev/zero-memory",
             base, base, base, base, base);
    return system(command) == 0;
}

/* Asked while the child executes nothing hidden yet, answered when it does. */
static int asked_early(void *ctx)
{
    int shown = 0, status;
    uint64_t mask;
    (void)ctx;
    for (int i = 0; i < 300 && !shown; i++) {
        pid_t child = fork();
        if (child == 0) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            for (volatile int spin = 0; spin < i % 50 * 2000; spin++)
                ;
            execl("./cat", "./cat", "free", (char *)NULL);
            _exit(127);
        }
        for (int k = 0; k < 400 && !shown; k++) {
            shown = ptrace(PTRACE_GETSIGMASK, child, (void *)sizeof mask, &mask) == 0;
            if (!shown && errno != ESRCH)
                break; /* refused: it was there */
        }
        (void)kill(child, SIGKILL);
        while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
            ;
    }
    return shown;
}

static int program(void *ctx)
{
    int bad = 0, status;
    char path[64], byte;
    (void)ctx;
    if (WEXITSTATUS(system("./cat free 2>/dev/null")) != 127 ||
        WEXITSTATUS(system("./vault/cat free 2>/dev/null")) != 127 || system("/bin/cat free >/dev/null") != 0)
        bad = 1;
    pid_t child = stopped_child("./cat");
    if (child < 0)
        return 2;
    NO(ptrace(PTRACE_PEEKTEXT, child, (void *)0x400000, NULL));
    NO(ptrace(PTRACE_GETSIGINFO, child, NULL, path));
    struct iovec v = {&byte, 1}, w = {path, 1};
    if (process_vm_readv(child, &v, 1, &w, 1, 0) >= 0)
        bad = 1;
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    NO(open(path, O_RDONLY));
    snprintf(path, sizeof path, "/proc/%d/exe", child);
    NO(open(path, O_RDONLY));
    if (ptrace(PTRACE_KILL, child, NULL, NULL) < 0 || kill(child, SIGKILL) < 0 || waitpid(child, &status, 0) != child)
        bad = 1;
    child = stopped_child("/bin/cat"); /* one's own, of another program */
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int mem = open(path, O_RDONLY);
    siginfo_t info;
    if (child < 0 || ptrace(PTRACE_GETSIGINFO, child, NULL, &info) < 0 || mem < 0)
        bad = 1;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
    return bad;
}

static struct box box = {.n_rules = 0};

/* Runs the box while the host moves things, `n` times from `paths[2i]` to `paths[2i + 1]`. */
static int run(int (*inside)(void *), const char *const *paths, int n, struct box_result *r)
{
    pid_t host = fork();
    if (host == 0) {
        for (int i = 0; i < n; i++) {
            char from[300], to[300];
            snprintf(from, sizeof from, "%s", paths[2 * i]);
            snprintf(to, sizeof to, "%s", paths[2 * i + 1]);
            move(i + 1, from, to);
        }
        _exit(0);
    }
    box.workspace = ws;
    box_run(&box, inside, NULL, r);
    (void)waitpid(host, NULL, 0);
    char command[400];
    snprintf(command, sizeof command, "rm -f %s/ask* %s/done*", ws, ws);
    (void)!system(command);
    return r->status;
}

/* Another name of a hidden file, which the box may not learn to be one by closing the directory that it is hidden in. */
static int other_name(void *ctx)
{
    int closed = 0;
    (void)ctx;
    for (int i = 0; i < 2; i++) {
        int fd = open("other", O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return 1 + i;
        closed = chmod("closed", i ? 0755 : 0);
    }
    return closed ? 3 : 0;
}

/* A hidden tree that is deep: what has a name in it is found, and other files of two names are read; where there is too much in it, only those
   of the system. */
static int deep_names(void *ctx)
{
    (void)ctx;
    for (int many = 0; many < 2; many++) {
        int fd = open("alias", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 || errno != EACCES)
            return 1;
        fd = open("free2", O_RDONLY | O_CLOEXEC);
        if ((fd >= 0) == many)
            return 2 + many;
        struct stat st;
        fd = open("/usr/bin/perl", O_RDONLY | O_CLOEXEC); /* of Debian, in which it has a second name */
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_nlink < 2)
            return 4 + many;
        if (!many)
            step(1);
    }
    return 0;
}

static char *in(const char *dir, const char *name)
{
    char *path = malloc(300);
    snprintf(path, 300, "%s/%s", dir, name);
    return path;
}

int main(void)
{
    char command[600];
    struct box_result r;
    ws = box_workspace();
    outside = box_workspace();
    char *base = strdup(ws);
    *strrchr(base, '/') = 0;
    snprintf(command, sizeof command,
             "cd %s && mkdir -p d/sub/empty e/sub in/a vault/down && for f in d/sub/f e/sub/f .env vault/key "
             "vault/down/key free; do "
             "echo x > $f; done; mkdir -p %s/tmp; echo new > %s/env",
             ws, base, outside);
    CHECK(system(command) == 0);
    box.rules = box_default_rules;
    box.n_rules = box_default_n;

    const char *away[] = {in(ws, "d"), in(outside, "d")};
    CHECK(run(stands_outside, away, 1, &r) == 0 && r.n_denials > 0);
    snprintf(command, sizeof command,
             "cd %s/d && test \"$(find . | sort | tr '\\n' ' ')\" = '. ./sub ./sub/empty ./sub/f ' && test \"$(stat -c "
             "%%a sub/f)\" = "
             "644 && test \"$(stat -c %%a sub)\" = 755",
             outside);
    CHECK(system(command) == 0, "nothing has changed out there");

    const char *accident[] = {in(ws, "e"), in(base, "tmp/e")};
    CHECK(run(stands_by_accident, accident, 1, &r) == 0);
    snprintf(command, sizeof command, "cd %s/tmp/e/sub && test \"$(ls)\" = f && test \"$(stat -c %%a f)\" = 644", base);
    CHECK(system(command) == 0, "nothing has changed there");

    const char *within[] = {in(ws, "in/a"), in(ws, "moved")};
    CHECK(run(stands_inside, within, 1, &r) == 0);

    struct box_rule rules[] = {{GUARD_RULE_HIDE, in(ws, ".env"), GUARD_ROOT, GUARD_REFUSE, false, NULL},
                               {GUARD_RULE_HIDE, in(ws, "vault"), GUARD_ROOT, GUARD_REFUSE, false, NULL}};
    box.rules = rules;
    box.n_rules = 2;
    box.reads = true;
    const char *shown[] = {in(ws, ".env"),     in(ws, "env.old"), in(ws, "vault"), in(ws, "vault2"),
                           in(outside, "env"), in(ws, ".env"),    in(ws, ".env"),  in(ws, "env.old2")};
    CHECK(run(hidden, shown, 4, &r) == 0);
    snprintf(command, sizeof command, "cd %s && rm -rf vault && mkdir vault && cp /bin/cat . && cp /bin/cat vault", ws);
    CHECK(system(command) == 0);
    struct box_rule run_rules[] = {{GUARD_RULE_HIDE, in(ws, "cat"), GUARD_ROOT, GUARD_REFUSE, false, NULL}, rules[1]};
    box.rules = run_rules;
    CHECK(run(program, NULL, 0, &r) == 0);
    CHECK(run(interpreter, NULL, 0, &r) == 0);
    CHECK(run(asked_early, NULL, 0, &r) == 0);
    snprintf(command, sizeof command, "cd %s && mkdir closed && echo x > closed/key && ln closed/key other", ws);
    CHECK(system(command) == 0);
    struct box_rule closed[] = {{GUARD_RULE_HIDE, in(ws, "closed/key"), GUARD_ROOT, GUARD_REFUSE, false, NULL}};
    box.rules = closed;
    box.n_rules = 1;
    CHECK(run(other_name, NULL, 0, &r) == 0);
    snprintf(command, sizeof command,
             "cd %s && mkdir -p 'ca\nt' nest/1/2/3/4/5/6/7/8 && cp /bin/cat 'c\na' && cp /bin/cat 'c\\012\nx' && "
             "cp /bin/cat 'ca\nt/c' && echo x > nest/1/2/3/4/5/6/7/8/key && ln nest/1/2/3/4/5/6/7/8/key alias && "
             "echo x > free1 && ln free1 free2 && mkdir many && cd many && seq 17000 | xargs touch",
             ws);
    CHECK(system(command) == 0);
    static const char *const lines[][2] = {{"c\na", "./c\na"}, {"ca\nt", "ca\nt/c"}, {"c\\012\nx", "c\\012\nx"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct box_rule of_lines[] = {{GUARD_RULE_HIDE, in(ws, lines[i][0]), GUARD_ROOT, GUARD_REFUSE, false, NULL}};
        hidden_program = lines[i][1];
        box.rules = of_lines;
        CHECK(run(interpreter, NULL, 0, &r) == 0, "a newline in its name");
    }
    hidden_program = "./cat";
    struct box_rule nest[] = {{GUARD_RULE_HIDE, in(ws, "nest"), GUARD_ROOT, GUARD_REFUSE, false, NULL}};
    box.rules = nest;
    const char *more[] = {in(ws, "many"), in(ws, "nest/many")};
    CHECK(run(deep_names, more, 1, &r) == 0);
    snprintf(command, sizeof command, "rm -rf %s/tmp", base);
    CHECK(system(command) == 0);
    if (getuid() == 0 && !getenv("GUARD_ON_DISK")) { /* otherwise nothing can be mounted over /dev */
        struct box_rule named[] = {{GUARD_RULE_HIDE, "/dev/zero-memory/cat", GUARD_ROOT, GUARD_REFUSE, false, NULL}};
        CHECK(make_dev(base));
        char *const usual = ws, at[] = "/dev/zero-memory";
        ws = at;
        box.rules = named;
        CHECK(run(interpreter, NULL, 0, &r) == 0, "a path that begins as one of memory without a file");
        ws = usual;
    }
    box_workspace_end(outside);
    box_workspace_end(ws);
    return check_report("guard moved");
}
