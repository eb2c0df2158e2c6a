/*
 * Attacks through sockets and other ways of talking to the host's processes. Each operation returns 0 when it got
 * through, or -errno (attack.h).
 */
#include "attack.h"
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))

OP(op_tcp)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[1]))};
    inet_pton(AF_INET, args[0], &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 2000) != 1)
        return -ETIMEDOUT;
    (void)fcntl(fd, F_SETFL, 0);
    return leak_fd(fd);
}
OP(op_udp)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[1]))};
    inet_pton(AF_INET, args[0], &to.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0)
        return -errno;
    if (sendto(fd, "hello", 5, 0, (struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 500) != 1)
        return -ETIMEDOUT;
    return leak_fd(fd);
}
/* TCP by sendto with MSG_FASTOPEN: a connection without connect(). */
OP(op_tcp_fastopen)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[1]))};
    inet_pton(AF_INET, args[0], &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return -errno;
    if (sendto(fd, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 2000) != 1)
        return -ETIMEDOUT;
    return leak_fd(fd);
}
/* A path, or an abstract name when it begins with '@'. */
static socklen_t unix_address(const char *text, struct sockaddr_un *at)
{
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    size_t n = strlen(text);
    if (n >= sizeof at->sun_path)
        n = sizeof at->sun_path - 1;
    memcpy(at->sun_path, text, n);
    if (text[0] != '@')
        return sizeof *at;
    at->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}
static int unix_connect(const char *path, int type)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(path, &to);
    int fd = socket(AF_UNIX, type, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&to, len) < 0) {
        int no = errno;
        close(fd);
        return -no;
    }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (type == SOCK_DGRAM)
        return done(send(fd, "PINFOLD-WAS-HERE", 16, 0));
    if (poll(&p, 1, 2000) != 1)
        return -ETIMEDOUT;
    return leak_fd(fd);
}
OP(op_unix_stream)
{
    return unix_connect(args[0], SOCK_STREAM);
}
OP(op_unix_seqpacket)
{
    return unix_connect(args[0], SOCK_SEQPACKET);
}
OP(op_unix_dgram)
{
    return unix_connect(args[0], SOCK_DGRAM);
}
OP(op_unix_sendto)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(args[0], &to);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0)
        return -errno;
    return done(sendto(fd, "PINFOLD-WAS-HERE", 16, 0, (struct sockaddr *)&to, len));
}
/* sendmsg and sendmmsg carry an address too; over a socketpair's datagram end, which needs no socket(). */
OP(op_unix_pair_sendmsg)
{
    struct sockaddr_un to;
    socklen_t len = unix_address(args[0], &to);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
        return -errno;
    char mark[] = "PINFOLD-WAS-HERE";
    struct iovec part = {mark, 16};
    struct mmsghdr m = {.msg_hdr = {.msg_name = &to, .msg_namelen = len, .msg_iov = &part, .msg_iovlen = 1}};
    return done(syscall(SYS_sendmmsg, ends[0], &m, 1, 0));
}
/* Changes into the socket's directory and connects by its last name. */
OP(op_unix_relative)
{
    if (chdir(args[0]) < 0)
        return -errno;
    return unix_connect(args[1], SOCK_STREAM);
}
/* A thread-free race: the address in memory changes while the kernel, or a supervisor, looks at it. */
static int flip_child(struct sockaddr_un *shared, const struct sockaddr_un *a, const struct sockaddr_un *b)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (;;) {
        memcpy((void *)shared, a, sizeof *a);
        memcpy((void *)shared, b, sizeof *b);
    }
}
OP(op_unix_race) /* own socket, host's socket, tries */
{
    struct sockaddr_un *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_un own, theirs;
    (void)unix_address(args[0], &own);
    (void)unix_address(args[1], &theirs);
    if (shared == MAP_FAILED)
        return -errno;
    *shared = own;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)unlink(args[0]);
    if (server < 0 || bind(server, (struct sockaddr *)&own, sizeof own) < 0 || listen(server, 64) < 0)
        return -errno;
    int pid = flip_child(shared, &own, &theirs), result = -EACCES;
    for (int i = 0; i < atoi(args[2]) && result != 0; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0), accepted = -1;
        if (connect(fd, (struct sockaddr *)shared, sizeof *shared) == 0) {
            accepted = accept(server, NULL, NULL);
            if (accepted < 0)
                result = 0; /* connected, but not to us */
        }
        if (accepted >= 0)
            close(accepted);
        close(fd);
    }
    (void)kill(pid, SIGKILL);
    return result;
}
OP(op_socket)
{
    int r = done_fd(socket(atoi(args[0]), atoi(args[1]), atoi(args[2])));
    if (r == -EAFNOSUPPORT || r == -EPROTONOSUPPORT || r == -ESOCKTNOSUPPORT) {
        cannot_why = "this kernel has no such sockets";
        /* In a box the same errno is a fair refusal; the driver asks outside first. */
        return getenv("ATTACK_OUTSIDE") ? CANNOT : r;
    }
    return r;
}
OP(op_socketpair)
{
    int ends[2];
    return done(socketpair(atoi(args[0]), atoi(args[1]), atoi(args[2]), ends));
}

/* ---- interprocess objects */
OP(op_shm)
{
    int id = shmget((key_t)atoi(args[0]), 0, 0);
    if (id < 0)
        return -errno;
    char *p = shmat(id, NULL, SHM_RDONLY);
    if (p == (void *)-1)
        return -errno;
    fprintf(stderr, "leak: %.64s\n", p);
    return 0;
}
OP(op_shm_make)
{
    int id = shmget((key_t)atoi(args[0]), 4096, IPC_CREAT | 0600);
    if (id < 0)
        return -errno;
    char *p = shmat(id, NULL, 0);
    if (p == (void *)-1)
        return -errno;
    snprintf(p, 64, "%s", args[1]);
    return 0;
}
OP(op_shm_remove)
{
    int id = shmget((key_t)atoi(args[0]), 0, 0);
    return id < 0 ? -errno : done(shmctl(id, IPC_RMID, NULL));
}
OP(op_mq_make)
{
    mqd_t q = mq_open(args[0], O_RDWR | O_CREAT, 0600, NULL);
    if (q < 0)
        return -errno;
    return done(mq_send(q, args[1], strlen(args[1]), 0));
}
OP(op_mq)
{
    char text[9000];
    mqd_t q = mq_open(args[0], O_RDONLY | O_NONBLOCK);
    if (q < 0)
        return -errno;
    ssize_t n_got = mq_receive(q, text, sizeof text, NULL);
    if (n_got < 0)
        return -errno;
    fprintf(stderr, "leak: %.*s\n", (int)n_got, text);
    return 0;
}
OP(op_mq_remove)
{
    return done(mq_unlink(args[0]));
}
OP(op_key_make)
{
    long id = syscall(SYS_add_key, "user", args[0], args[1], strlen(args[1]), -4 /* the user's keyring */);
    if (id < 0)
        return -errno;
    /* Whoever has this uid may read it. */
    (void)syscall(SYS_keyctl, 5 /* KEYCTL_SETPERM */, id, 0x3f3f0000);
    printf("%ld\n", id);
    fflush(stdout);
    return 0;
}
OP(op_key_remove)
{
    return done(syscall(SYS_keyctl, 9 /* KEYCTL_UNLINK */, atoi(args[0]), -4));
}

const struct entry network_entries[] = {
    {"tcp", 2, op_tcp},
    {"udp", 2, op_udp},
    {"tcp-fastopen", 2, op_tcp_fastopen},
    {"unix-stream", 1, op_unix_stream},
    {"unix-seqpacket", 1, op_unix_seqpacket},
    {"unix-dgram", 1, op_unix_dgram},
    {"unix-sendto", 1, op_unix_sendto},
    {"unix-pair-sendmsg", 1, op_unix_pair_sendmsg},
    {"unix-relative", 2, op_unix_relative},
    {"unix-race", 3, op_unix_race},
    {"socket", 3, op_socket},
    {"socketpair", 3, op_socketpair},
    {"shm", 1, op_shm},
    {"shm-make", 2, op_shm_make},
    {"shm-remove", 1, op_shm_remove},
    {"mq", 1, op_mq},
    {"mq-make", 2, op_mq_make},
    {"mq-remove", 1, op_mq_remove},
    {"key-make", 2, op_key_make},
    {"key-remove", 1, op_key_remove},
    {NULL, 0, NULL},
};
