/*
 * What --monitor costs at least: a supervisor that receives the same calls (opens, starts of programs, chdir) and lets each go on, and
 * does nothing else. notify COMMAND [ARG...]; the exit status is the command's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Linux 6.6 */
#define SYNC_WAKE_UP 1ul
#define SET_FLAGS    _IOW('!', 4, __u64)

static int listener_new(void)
{
    static const unsigned calls[] = {
#ifdef SYS_open
        SYS_open,
#endif
        SYS_openat, SYS_execve, SYS_execveat, SYS_chdir};
    enum { CALLS = sizeof calls / sizeof *calls };
    struct sock_filter code[CALLS + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                          [CALLS + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                          [CALLS + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
    for (unsigned char i = 0; i < CALLS; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (unsigned char)(CALLS - i), 0);
    const struct sock_fprog program = {CALLS + 3, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* From here on the calls of this process wait, so it sends the descriptor and executes, no more. */
static int begin(int to, char **command)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    char byte = 0;
    struct iovec one = {&byte, 1};
    const struct msghdr message = {
        .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    setsid(); /* as the commands of a box */
    const int fd = listener_new();
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    if (fd < 0 || sendmsg(to, &message, 0) != 1)
        return 125;
    close(fd);
    execvp(command[0], command);
    return 127;
}

static int receive(int from)
{
    char byte, room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(sizeof(struct cmsghdr))));
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fd = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void ended(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    const struct sigaction interrupts = {.sa_handler = ended};
    int ends[2], status = 0;
    sigaction(SIGCHLD, &interrupts,
              NULL); /* without SA_RESTART: older kernels do not wake who receives when nobody is left */
    if (argc < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 125;
    const pid_t child = fork();
    if (child == 0)
        _exit(begin(ends[0], argv + 1));
    close(ends[0]);
    const int listener = receive(ends[1]);
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    (void)ioctl(listener, SET_FLAGS, SYNC_WAKE_UP);
    /* Waits by receiving, and asks only after a failure whether a process with the filter is left. */
    for (;;) {
        struct seccomp_notif call = {0};
        struct seccomp_notif_resp answer = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        if (listener < 0 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
            if (listener < 0 || poll(&wait, 1, -1) < 0 || wait.revents & POLLHUP)
                break;
            continue;
        }
        answer.id = call.id;
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
