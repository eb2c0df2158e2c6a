/*
 * The guard as part of a box: sockets, calls that wait, signals, threads, modes, reports, and its own end. harness.c
 * makes the box; what the guard judges is in the other files of this folder.
 */
#include "guard/guard.h"
#include "harness.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *ws;

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno));                      \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static int run(struct box box, int (*inside)(void *), struct box_result *r)
{
    static struct box_result own;
    r = r ? r : &own;
    box.workspace = ws;
    if (!box.rules) {
        box.rules = box_default_rules;
        box.n_rules = box_default_n;
    }
    box_run(&box, inside, NULL, r);
    return r->status;
}

static int un_socket(int type)
{
    return socket(AF_UNIX, type, 0);
}
static int un_call(int (*call)(int, const struct sockaddr *, socklen_t), int fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, path, strlen(path));
    return call(fd, (void *)&a, sizeof a);
}

/* ---- sockets ---- */

/* What is asked for as a pair of datagram sockets keeps messages apart, and sends to nobody else. */
static int datagram_pair(void *ctx)
{
    (void)ctx;
    const int kinds[] = {SOCK_DGRAM | SOCK_CLOEXEC, SOCK_RAW | SOCK_NONBLOCK};
    const struct sockaddr_un other = {.sun_family = AF_UNIX, .sun_path = "elsewhere"};
    for (size_t i = 0; i < 2; i++) {
        int pair[2] = {-1, -1};
        char got[8];
        NEED(socketpair(AF_UNIX, kinds[i], 0, pair) == 0 && pair[0] >= 0 && pair[1] >= 0 && pair[0] != pair[1]);
        NEED(!(fcntl(pair[1], F_GETFD) & FD_CLOEXEC) == !(kinds[i] & SOCK_CLOEXEC));
        NEED(!(fcntl(pair[0], F_GETFL) & O_NONBLOCK) == !(kinds[i] & SOCK_NONBLOCK));
        NEED(send(pair[0], "one", 3, 0) == 3);
        NEED(sendto(pair[0], "four", 4, 0, (const struct sockaddr *)&other, sizeof other) == 4);
        NEED(recv(pair[1], got, sizeof got, 0) == 3 && recv(pair[1], got, sizeof got, 0) == 4);
        NEED(un_call(connect, pair[0], "elsewhere") < 0);
    }
    int pair[2];
    NEED(socketpair(AF_UNIX, SOCK_DGRAM, 77, pair) < 0 && errno == EPROTONOSUPPORT);
    const int before = dup(0);
    NEED(close(before) == 0 && syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, (void *)8) < 0 && errno == EFAULT);
    NEED(dup(0) == before);
    return 0;
}

static int own_sockets(void *ctx)
{
    (void)ctx;
    int s = un_socket(SOCK_STREAM), c = un_socket(SOCK_STREAM);
    NEED(un_call(bind, s, "own") == 0 && listen(s, 5) == 0);
    NEED(un_call(connect, c, "own") == 0);
    NEED(rename("own", "moved") == 0 && un_call(connect, un_socket(SOCK_STREAM), "moved") == 0);
    NEED(symlink("moved", "link") == 0 && un_call(connect, un_socket(SOCK_SEQPACKET), "link") < 0 &&
         errno == EPROTOTYPE);
    NEED(un_call(connect, un_socket(SOCK_STREAM), "./link") == 0);
    int t = un_socket(SOCK_STREAM);
    NEED(un_call(bind, t, "/tmp/private") == 0 && listen(t, 5) == 0);
    NEED(un_call(connect, un_socket(SOCK_STREAM), "/tmp/private") == 0);
    int pair[2];
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    NEED(un_socket(SOCK_DGRAM) < 0 && errno == ESOCKTNOSUPPORT);
    NEED(un_socket(SOCK_RAW | SOCK_CLOEXEC) < 0 && errno == ESOCKTNOSUPPORT);
    struct ucred peer;
    socklen_t n = sizeof peer;
    int a = accept(s, NULL, NULL);
    NEED(getsockopt(a, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == getuid());
    /* Descriptors pass as ever. */
    struct msghdr m = {0};
    char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&byte, 1};
    m = (struct msghdr){.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    *CMSG_FIRSTHDR(&m) =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof s)};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &s, sizeof s);
    NEED(sendmsg(c, &m, 0) == 1);
    return 0;
}

static int host_socket(void *ctx)
{
    (void)ctx;
    NEED(un_call(connect, un_socket(SOCK_STREAM), "host.sock") < 0 && errno == EACCES);
    NEED(symlink("host.sock", "to-host") == 0 && un_call(connect, un_socket(SOCK_STREAM), "to-host") < 0 &&
         errno == EACCES);
    NEED(link("host.sock", "second") == 0 && un_call(connect, un_socket(SOCK_STREAM), "second") < 0 && errno == EACCES);
    NEED(rename("second", "third") == 0 && un_call(connect, un_socket(SOCK_STREAM), "third") < 0 && errno == EACCES);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open("host.sock", O_PATH));
    NEED(un_call(connect, un_socket(SOCK_STREAM), path) < 0 && errno == EACCES);
    snprintf(path, sizeof path, "/proc/self/cwd/host.sock");
    NEED(un_call(connect, un_socket(SOCK_STREAM), path) < 0 && errno == EACCES);
    NEED(un_call(connect, un_socket(SOCK_STREAM), "allowed.sock") == 0);
    return 0;
}

static volatile int stop;
static struct sockaddr_un flipped = {.sun_family = AF_UNIX};
static void *flip(void *ctx)
{
    (void)ctx;
    while (!stop) {
        strcpy(flipped.sun_path, "own");
        strcpy(flipped.sun_path, "host.sock");
    }
    return NULL;
}
static int host_socket_race(void *ctx)
{
    (void)ctx;
    int s = un_socket(SOCK_STREAM | SOCK_NONBLOCK);
    NEED(un_call(bind, s, "own") == 0 && listen(s, 100) == 0);
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, flip, NULL) == 0);
    for (int i = 0; i < 5000; i++) {
        int c = un_socket(SOCK_STREAM | SOCK_NONBLOCK);
        if (connect(c, (void *)&flipped, sizeof flipped) == 0) {
            struct sockaddr_un peer = {0};
            socklen_t n = sizeof peer;
            (void)getpeername(c, (void *)&peer, &n);
            NEED(!strstr(peer.sun_path, "host.sock"));
        }
        close(c);
        close(accept(s, NULL, NULL));
    }
    stop = 1;
    pthread_join(thread, NULL);
    return 0;
}

static int abstract_host(void *ctx)
{
    (void)ctx;
    struct sockaddr_un a = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX, .sun_path = "\0pinfold-own"};
    snprintf(a.sun_path + 1, 60, "pinfold-guard-%u", getuid());
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1));
    NEED(connect(un_socket(SOCK_STREAM), (void *)&a, n) < 0 && errno == EACCES);
    int s = un_socket(SOCK_STREAM);
    NEED(bind(s, (void *)&own, n) == 0 && listen(s, 1) == 0 && connect(un_socket(SOCK_STREAM), (void *)&own, n) == 0);
    int t = un_socket(SOCK_STREAM);
    NEED(bind(t, (void *)&own, sizeof(sa_family_t)) == 0 && listen(t, 1) == 0); /* the kernel chooses */
    n = sizeof own;
    NEED(getsockname(t, (void *)&own, &n) == 0 && connect(un_socket(SOCK_STREAM), (void *)&own, n) == 0);
    return 0;
}

static int abstract_name(int (*call)(int, const struct sockaddr *, socklen_t), int s, const char *middle)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, 60, "pinfold-guard%c%s%u", middle[0] == '0' ? 0 : middle[0], middle + 1, getuid());
    return call(s, (void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

/* Names that were bound in the box, and that look like a host's. */
static int abstract_names(void *ctx)
{
    (void)ctx;
    int s = un_socket(SOCK_STREAM), t = un_socket(SOCK_STREAM);
    NEED(abstract_name(bind, s, "-later-") == 0 && listen(s, 1) == 0);
    NEED(abstract_name(connect, un_socket(SOCK_STREAM), "-later-") == 0);
    int c = accept(s, NULL, NULL); /* has the name, too */
    NEED(c >= 0 && abstract_name(connect, un_socket(SOCK_STREAM), "-later-") == 0);
    close(c);
    close(s);
    close(open("bound", O_WRONLY | O_CREAT, 0666));
    while (access("listens", F_OK) < 0)
        usleep(1000);
    NEED(abstract_name(connect, un_socket(SOCK_STREAM), "-later-") < 0 && errno == EACCES);
    NEED(abstract_name(bind, t, "@") == 0 && listen(t, 1) == 0);
    NEED(abstract_name(connect, un_socket(SOCK_STREAM), "0") < 0 && errno == EACCES);
    return 0;
}

/* Outside: binds the name once the box has left it, and one with a NUL in it. */
static pid_t abstract_later(void)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    int s = un_socket(SOCK_STREAM), t = un_socket(SOCK_STREAM);
    alarm(60);
    while (access("bound", F_OK) < 0)
        usleep(1000);
    if (abstract_name(bind, s, "-later-") == 0 && listen(s, 5) == 0 && abstract_name(bind, t, "0") == 0 &&
        listen(t, 5) == 0)
        close(open("listens", O_WRONLY | O_CREAT, 0666));
    for (;;)
        pause();
}

static void sockets(void)
{
    struct box_result r;
    CHECK(run((struct box){0}, own_sockets, NULL) == 0);
    CHECK(run((struct box){0}, datagram_pair, NULL) == 0);
    if (chdir(ws) < 0)
        return;
    int s = un_socket(SOCK_STREAM), t = un_socket(SOCK_STREAM), u = un_socket(SOCK_STREAM);
    CHECK(un_call(bind, s, "host.sock") == 0 && listen(s, 100) == 0);
    CHECK(un_call(bind, t, "allowed.sock") == 0 && listen(t, 100) == 0);
    char allowed[256];
    snprintf(allowed, sizeof allowed, "%s/allowed.sock", ws);
    struct box_rule rule = {GUARD_RULE_SOCKET, allowed, GUARD_ROOT, GUARD_REFUSE, false, NULL};
    CHECK(run((struct box){.rules = &rule, .n_rules = 1}, host_socket, &r) == 0);
    CHECK(box_denied(&r, "/host.sock") && r.denials[0].action == DENIAL_CONNECT);
    (void)!system("rm -f own third to-host moved link");
    CHECK(run((struct box){.rules = &rule, .n_rules = 1, .mode = GUARD_OFF}, host_socket, &r) == 0, "guard off");
    (void)!system("rm -f own");
    CHECK(run((struct box){0}, host_socket_race, &r) == 0);
    struct pollfd p = {s, POLLIN, 0};
    CHECK(poll(&p, 1, 0) == 0, "somebody reached the host's socket");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, 60, "pinfold-guard-%u", getuid());
    CHECK(bind(u, (void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1))) == 0 &&
          listen(u, 5) == 0);
    CHECK(run((struct box){.host_network = true}, abstract_host, &r) == 0);
    pid_t later = abstract_later();
    CHECK(run((struct box){.host_network = true}, abstract_names, &r) == 0);
    kill(later, SIGKILL);
    waitpid(later, NULL, 0);
    close(s);
    close(t);
    close(u);
    (void)!chdir("/");
}

/* ---- calls that wait ---- */

static int fifos(void *ctx)
{
    (void)ctx;
    /* More waiting opens than one worker, and the box goes on. */
    char name[32];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "fifo%d", i);
        NEED(mkfifo(name, 0600) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            int fd = open(name, O_WRONLY);
            _exit(fd < 0 || write(fd, "x", 1) != 1);
        }
    }
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "made%d", i);
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        NEED(fd >= 0);
        close(fd);
    }
    for (int i = 19; i >= 0; i--) {
        snprintf(name, sizeof name, "fifo%d", i);
        int fd = open(name, O_RDONLY);
        char c;
        NEED(fd >= 0 && read(fd, &c, 1) == 1);
        close(fd);
    }
    for (int i = 0; i < 20; i++) {
        int status;
        NEED(wait(&status) > 0 && status == 0);
    }
    return 0;
}

static int too_many_fifos(void *ctx)
{
    (void)ctx;
    NEED(mkfifo("f", 0600) == 0);
    int refused = 0;
    for (int i = 0; i < 100; i++)
        if (fork() == 0) {
            (void)open("f", O_WRONLY);
            _exit(errno == EAGAIN ? 7 : 0);
        }
    for (int i = 0; i < 900 && refused < 30; i++) { /* the others wait for a reader */
        int status;
        usleep(20000);
        while (waitpid(-1, &status, WNOHANG) > 0)
            refused += WEXITSTATUS(status) == 7;
    }
    NEED(refused >= 30);
    int fd = open("still", O_WRONLY | O_CREAT, 0600);
    NEED(fd >= 0);
    return 0; /* the waiting ones end with the box */
}

/* The box ends 0.1 s after its first call, between the beginning of the worker that waits with it and that worker's entry in the list of
   those to be killed, if strace holds up getpid(2) and waitid(2) for 0.2 s each. */
static int ends_meanwhile(void *ctx)
{
    (void)ctx;
    NEED(mkfifo("e", 0600) == 0);
    if (fork() == 0) {
        (void)open("e", O_WRONLY);
        _exit(0);
    }
    usleep(100000);
    return 0;
}

static int worker_at_the_end(const char *self)
{
    const pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        execlp("strace", "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=getpid,waitid", "-e",
               "inject=getpid:delay_enter=200000", "-e", "inject=waitid:delay_enter=200000", "timeout", "-s", "KILL",
               "10", self, "meanwhile", (char *)NULL);
        _exit(126);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int killed_waiter(void *ctx)
{
    (void)ctx;
    NEED(mkfifo("k", 0600) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)open("k", O_WRONLY);
        _exit(0);
    }
    usleep(50000);
    NEED(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    int fd = open("after", O_WRONLY | O_CREAT, 0600);
    NEED(fd >= 0);
    return 0;
}

static int backlog(void *ctx)
{
    (void)ctx;
    int s = un_socket(SOCK_STREAM);
    NEED(un_call(bind, s, "full") == 0 && listen(s, 0) == 0);
    NEED(un_call(connect, un_socket(SOCK_STREAM), "full") == 0);
    NEED(un_call(connect, un_socket(SOCK_STREAM | SOCK_NONBLOCK), "full") < 0 && errno == EAGAIN);
    pid_t pid = fork();
    if (pid == 0)
        _exit(un_call(connect, un_socket(SOCK_STREAM), "full") != 0);
    usleep(50000);
    int fd = open("meanwhile", O_WRONLY | O_CREAT, 0600);
    NEED(fd >= 0);
    NEED(accept(s, NULL, NULL) >= 0);
    int status;
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

/* ---- signals, threads, descriptors ---- */

static void on_alarm(int sig)
{
    (void)sig;
}
static int signals_with(int flags)
{
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = flags};
    sigaction(SIGALRM, &sa, NULL);
    struct itimerval t = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &t, NULL);
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "s%d", i);
        int fd, r;
        /* Without SA_RESTART a call may be interrupted before the guard has it, never after: nothing was done. */
        do
            fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        while (fd < 0 && errno == EINTR && !flags);
        NEED(fd >= 0);
        close(fd);
        do
            r = unlink(name);
        while (r < 0 && errno == EINTR && !flags);
        NEED(r == 0);
    }
    return 0;
}
static int signals(void *ctx)
{
    (void)ctx;
    NEED(signals_with(SA_RESTART) == 0);
    NEED(signals_with(0) == 0);
    return 0;
}

static void *thread_creates(void *ctx)
{
    char name[64];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "t%ld-%d", (long)(intptr_t)ctx, i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || write(fd, "x", 1) != 1)
            return ctx;
        close(fd);
    }
    return NULL;
}
static int threads(void *ctx)
{
    (void)ctx;
    pthread_t all[8];
    for (intptr_t i = 0; i < 8; i++)
        NEED(pthread_create(&all[i], NULL, thread_creates, (void *)(i + 1)) == 0);
    for (int i = 0; i < 8; i++) {
        void *r;
        pthread_join(all[i], &r);
        NEED(r == NULL);
    }
    return 0;
}
static int processes(void *ctx)
{
    (void)ctx;
    for (intptr_t i = 0; i < 40; i++)
        if (fork() == 0)
            _exit(thread_creates((void *)(100 + i)) != NULL);
    for (int i = 0; i < 40; i++) {
        int status;
        NEED(wait(&status) > 0 && status == 0);
    }
    return 0;
}

static int terminal(void *ctx)
{
    (void)ctx;
    /* No pty of our own here: there must be no terminal either, least of all the one the guard might have. */
    int fd = open("/dev/tty", O_RDWR);
    NEED(fd < 0 && errno == ENXIO);
    return 0;
}

static int memory_of_init(void *ctx)
{
    (void)ctx;
    NEED(open("/proc/1/mem", O_RDWR) < 0 && errno == EACCES);
    NEED(open("/proc/1/environ", O_RDONLY) < 0 && errno == EACCES);
    NEED(open("/proc/1/fd/0", O_RDONLY) < 0 && errno == EACCES);
    NEED(open("/proc/self/mem", O_RDWR) >= 0);
    NEED(open("/proc/self/maps", O_RDONLY) >= 0);
    char name[64];
    pid_t pid = fork();
    if (pid == 0)
        pause();
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int fd = open(name, O_RDWR);
    kill(pid, SIGKILL);
    NEED(fd < 0 && errno == EACCES); /* not traced by us */
    /* Nobody of ours is listed who is not of the box. */
    DIR *d = opendir("/proc");
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] >= '1' && e->d_name[0] <= '9';
    NEED(n <= 3);
    return 0;
}

/* ---- modes and rules ---- */

static int existing(void *ctx)
{
    (void)ctx;
    NEED(mkdir(".vscode", 0777) == 0);
    int fd = open(".vscode/settings.json", O_WRONLY | O_CREAT, 0600);
    NEED(fd >= 0 && write(fd, "1", 1) == 1);
    close(fd);
    fd = open(".vscode/settings.json", O_WRONLY | O_TRUNC);
    NEED(fd >= 0);
    NEED(rename(".vscode", ".vscode2") == 0);
    fd = open(".envrc", O_WRONLY | O_CREAT, 0600);
    NEED(fd >= 0);
    NEED(open(".envrc", O_WRONLY) >= 0 && unlink(".envrc") == 0);
    NEED(open(".idea/x", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    NEED(open(".mcp.json", O_WRONLY) < 0 && errno == EACCES);
    NEED(rename(".idea", "i") < 0 && errno == EACCES);
    NEED(unlink(".mcp.json") < 0 && errno == EACCES);
    return 0;
}
static int off(void *ctx)
{
    (void)ctx;
    NEED(mkdir(".vscode", 0777) == 0 && open(".mcp.json", O_WRONLY) >= 0 && rename(".idea", "i") == 0 &&
         rename("i", ".idea") == 0);
    return 0;
}
static int foreign(void *ctx)
{
    (void)ctx;
    /* Code of others may hold what their editors like, but not bring it out. */
    NEED(mkdir("node_modules", 0777) == 0 && mkdir("node_modules/p", 0777) == 0 &&
         mkdir("node_modules/p/.vscode", 0777) == 0);
    NEED(open("node_modules/p/.envrc", O_WRONLY | O_CREAT, 0600) >= 0);
    NEED(rename("node_modules/p", "node_modules/.p-x") == 0);
    NEED(rename("node_modules/.p-x", "p") < 0 && errno == EACCES);
    NEED(rename("node_modules/.p-x/.vscode", ".vscode2") < 0 && errno == EACCES);
    NEED(rename("node_modules", "other") < 0 && errno == EACCES);
    NEED(mkdir("node_modules/g", 0777) == 0 && mkdir("node_modules/g/.git", 0777) == 0 &&
         mkdir("node_modules/g/.git/objects", 0777) == 0 && mkdir("node_modules/g/.git/refs", 0777) == 0);
    NEED(mkdir("node_modules/g/.git/hooks", 0777) == 0);
    NEED(open("node_modules/g/.git/hooks/x", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    NEED(mkdir("/tmp/t", 0777) == 0 && mkdir("/tmp/t/.vscode", 0777) == 0);
    NEED(rename("/tmp/t", "t") < 0 && errno == EXDEV); /* so that mv copies */
    return 0;
}
static int pins(void *ctx)
{
    (void)ctx;
    NEED(rename("pin", "p") < 0 && errno == EACCES);
    NEED(rename("pin/down", "p") < 0 && errno == EACCES);
    NEED(rmdir("pin/down") < 0 && errno == EACCES);
    NEED(open("pin/down/x", O_WRONLY | O_CREAT, 0600) >= 0);
    NEED(mkdir("p", 0777) == 0 && rename("p", "pin/down") < 0 && errno == EACCES);
    return 0;
}
static int many_denials(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 3000; i++)
        NEED(open(".envrc", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    usleep(100000);
    NEED(open(".envrc", O_WRONLY | O_CREAT, 0600) < 0);
    return 0;
}
static int umask_threads(void *ctx)
{
    (void)ctx;
    struct stat st;
    for (int i = 0; i < 200; i++) {
        mode_t m = (mode_t)(i * 7) & 077;
        umask(m);
        int fd = open("m", O_WRONLY | O_CREAT | O_EXCL, 0666);
        NEED(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777) == (0666 & ~m));
        close(fd);
        unlink("m");
        pid_t pid = fork();
        if (pid == 0) {
            if (i % 2)
                umask(0111);
            fd = open("c", O_WRONLY | O_CREAT | O_EXCL, 0777);
            fstat(fd, &st);
            _exit((st.st_mode & 0777) != (0777 & ~(i % 2 ? 0111u : m)));
        }
        int status;
        NEED(waitpid(pid, &status, 0) == pid && status == 0);
        unlink("c");
    }
    return 0;
}

/* ---- the guard's end ---- */

static _Noreturn int wait_for_death(void *ctx)
{
    int fd = *(int *)ctx;
    char c = 'r';
    (void)!write(fd, &c, 1);
    for (;;)
        pause();
}
static pid_t child_of(pid_t parent)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    int fd = open(path, O_RDONLY);
    (void)!read(fd, text, sizeof text - 1);
    close(fd);
    return atoi(text);
}
static void guard_dies(void)
{
    int p[2], q[2];
    if (pipe(p) < 0 || pipe(q) < 0)
        return;
    fflush(NULL);
    pid_t test = fork();
    if (test == 0) {
        struct box box = {.workspace = ws, .rules = box_default_rules, .n_rules = box_default_n};
        struct box_result r;
        close(q[0]);
        box_run(&box, wait_for_death, &p[1], &r);
        _exit(r.status == 128 + SIGKILL ? 0 : 1);
    }
    char c;
    CHECK(read(p[0], &c, 1) == 1);
    close(q[1]); /* q[0] ends when the last process of the box has: they all inherited q[1] */
    pid_t guard = child_of(test), init = child_of(guard);
    CHECK(guard > 0 && init > 0 && kill(guard, SIGKILL) == 0);
    struct pollfd end = {q[0], POLLIN, 0};
    CHECK(poll(&end, 1, 20000) == 1, "the box outlived its guard");
    int status;
    CHECK(waitpid(test, &status, 0) == test && status == 0);
    bool gone = false;
    for (int i = 0; i < 1000 && !gone; i++) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", init);
        int fd = open(path, O_RDONLY);
        gone = fd < 0 || (read(fd, text, sizeof text - 1) > 0 && strstr(text, ") Z "));
        close(fd);
        usleep(20000);
    }
    CHECK(gone, "pid 1 outlived the guard");
    close(p[0]);
    close(p[1]);
    close(q[0]);
}

/* A guarded directory with more in it than is searched for another name of a file. */
static int beside_a_large_one(void *ctx)
{
    (void)ctx;
    int fd = open("new", O_WRONLY | O_CREAT, 0644), guarded = open("large/f1", O_RDONLY),
        linked = open("two", O_RDONLY);
    NEED(fd >= 0 && guarded >= 0 && linked >= 0);
    NEED(futimens(fd, NULL) == 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, 10) == 0);
    NEED(fchmod(guarded, 0600) < 0 && futimens(guarded, NULL) < 0);
    NEED(fchmod(linked, 0600) < 0); /* of two names, the other one may be there */
    return 0;
}

static void clean(void)
{
    char text[300];
    snprintf(text, sizeof text, "cd %s && rm -rf -- * .[a-z]*", ws);
    (void)!system(text);
}

/* A guard that nobody asks reads no rules: here it has none to read. But it says that it has begun, for which pid 1 waits. */
static void nobody_asks(void)
{
    int listener[2], report[2], begun[2], status = 0;
    CHECK(pipe(listener) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, report) == 0 &&
          socketpair(AF_UNIX, SOCK_SEQPACKET, 0, begun) == 0);
    pid_t guard = fork();
    if (guard == 0) {
        pid_t init = fork();
        if (init == 0) {
            char word;
            close(begun[0]);
            _exit(read(begun[1], &word, 1) == 1 ? 7 : 8);
        }
        static const struct plan_image nothing;
        const struct guard_ask ask = {.plan = &nothing,
                                      .notify = listener[0],
                                      .host_proc = -1,
                                      .report = report[0],
                                      .init_pidfd = (int)syscall(SYS_pidfd_open, init, 0),
                                      .begun = begun[0]};
        int end = guard_serve(&ask);
        _exit(WIFEXITED(end) && WEXITSTATUS(end) == 7 ? 0 : 1);
    }
    CHECK(waitpid(guard, &status, 0) == guard && status == 0, "%x", status);
    for (int i = 0; i < 2; i++) {
        close(listener[i]);
        close(report[i]);
        close(begun[i]);
    }
}

int main(int argc, char **argv)
{
    struct box_result r;
    nobody_asks();
    ws = box_workspace();
    if (argc > 1 && strcmp(argv[1], "meanwhile") == 0)
        return run((struct box){0}, ends_meanwhile, &r);
    sockets();
    clean();
    struct {
        const char *name;
        int (*run)(void *);
    } plain[] = {{"fifos", fifos},
                 {"too many fifos", too_many_fifos},
                 {"killed waiter", killed_waiter},
                 {"backlog", backlog},
                 {"signals", signals},
                 {"threads", threads},
                 {"processes", processes},
                 {"terminal", terminal},
                 {"foreign", foreign},
                 {"umask", umask_threads}};
    int ended = worker_at_the_end(argv[0]);
    CHECK(ended == 0, "a worker that is made while the box ends: %d", ended);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if ((plain[i].run == signals || plain[i].run == threads || plain[i].run == processes) && box_left_to_user())
            continue; /* thousands of calls, the same for all */
        uint64_t from = now_ns();
        if (getenv("GUARD_VERBOSE"))
            fprintf(stderr, "%s\n", plain[i].name);
        int status = run((struct box){0}, plain[i].run, &r);
        CHECK(status == 0, "%s: %d", plain[i].name, status);
        CHECK(now_ns() - from < 20000000000ull, "%s took too long", plain[i].name);
        clean();
        status = run((struct box){.reads = true}, plain[i].run, &r);
        CHECK(status == 0, "%s with reads: %d", plain[i].name, status);
        clean();
    }
    CHECK(run((struct box){.reads = true}, memory_of_init, &r) == 0);
    char text[300], pin[128];
    snprintf(text, sizeof text, "cd %s && mkdir -p .idea pin/down && touch .mcp.json", ws);
    CHECK(system(text) == 0);
    CHECK(run((struct box){.mode = GUARD_EXISTING}, existing, &r) == 0);
    CHECK(run((struct box){.mode = GUARD_OFF}, off, &r) == 0);
    snprintf(pin, sizeof pin, "%s/pin/down", ws);
    struct box_rule rule = {GUARD_RULE_PIN, pin, GUARD_ROOT, GUARD_REFUSE, false, NULL};
    CHECK(run((struct box){.rules = &rule, .n_rules = 1}, pins, &r) == 0);
    snprintf(text, sizeof text,
             "cd %s && mkdir large && cd large && seq -f f%%.0f 5000 | xargs touch && touch ../one && ln ../one ../two",
             ws);
    CHECK(system(text) == 0);
    struct box_rule large = {GUARD_RULE_NAME, "large", GUARD_ROOT, GUARD_REFUSE, true, NULL};
    CHECK(run((struct box){.rules = &large, .n_rules = 1}, beside_a_large_one, &r) == 0);
    clean();
    uint64_t from = now_ns();
    CHECK(run((struct box){0}, many_denials, &r) == 0);
    uint64_t most = 256 + 64 + 64 * ((now_ns() - from) / 1000000000); /* at once, and by the second */
    CHECK(r.n_denials >= 200 && r.n_denials <= most, "%zu denials told, of at most %llu", r.n_denials,
          (unsigned long long)most);
    clean();
    guard_dies();
    box_workspace_end(ws);
    return check_report("guard box");
}
