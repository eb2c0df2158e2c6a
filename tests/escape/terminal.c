/*
 * Attacks through terminals. Each operation returns 0 when it got through, or -errno (attack.h).
 */
#include "attack.h"
#include <sys/ioctl.h>
#include <termios.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))

/* Puts a byte into the terminal's input, as if typed. */
OP(op_tiocsti)
{
    int fd = open(args[0], O_RDWR | O_NOCTTY);
    if (fd < 0)
        return -errno;
    for (const char *p = args[1]; *p; p++) {
        if (ioctl(fd, TIOCSTI, p) < 0)
            return -errno;
    }
    return 0;
}
OP(op_tiocsti_fd)
{
    for (const char *p = args[1]; *p; p++) {
        if (ioctl(atoi(args[0]), TIOCSTI, p) < 0)
            return -errno;
    }
    return 0;
}
/* The same with the request's upper half set: the kernel looks at 32 bits only. */
OP(op_tiocsti_wide)
{
    return done(syscall(SYS_ioctl, atoi(args[0]), 0xffffffff00000000ul | TIOCSTI, args[1]));
}
OP(op_tioclinux)
{
    char code = 2;
    int r = done(ioctl(atoi(args[0]), TIOCLINUX, &code));
    return r == -ENOTTY || r == -EINVAL ? 0 : r; /* reached the driver */
}
OP(op_tiocsetd)
{
    int discipline = 2; /* N_MOUSE: loads a module where there is one */
    int r = done(ioctl(atoi(args[0]), TIOCSETD, &discipline));
    return r == -EINVAL ? 0 : r;
}
OP(op_tiocsctty)
{
    int fd = open(args[0], O_RDWR | O_NOCTTY);
    if (fd < 0)
        return -errno;
    (void)setsid();
    return done(ioctl(fd, TIOCSCTTY, 1));
}
OP(op_tty_write)
{
    return mark_fd(open(args[0], O_WRONLY | O_NOCTTY | O_NONBLOCK));
}
OP(op_tty_read)
{
    return leak_fd(open(args[0], O_RDONLY | O_NOCTTY | O_NONBLOCK));
}

const struct entry terminal_entries[] = {
    {"tiocsti", 2, op_tiocsti},     {"tiocsti-fd", 2, op_tiocsti_fd}, {"tiocsti-wide", 2, op_tiocsti_wide},
    {"tioclinux", 1, op_tioclinux}, {"tiocsetd", 1, op_tiocsetd},     {"tiocsctty", 1, op_tiocsctty},
    {"tty-write", 1, op_tty_write}, {"tty-read", 1, op_tty_read},     {NULL, 0, NULL},
};
