/*
 * Terminals, by ioctl_tty(2): modes, size, foreground process group. struct termios of both C libraries begins with the
 * kernel's (flags, c_line, 19 control characters), so TCGETS may write into it; the speeds that some libraries store
 * after it are neither read nor changed here.
 */
#pragma once
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include "sys/sys.h"

/* Size of the kernel's struct termios; only this much is compared. */
#define SYS_TERMIOS_BYTES 36

static inline int sys_tty_modes(int fd, struct termios *ret)
{
    struct termios t;
    memset(&t, 0, sizeof t);
    int r = (int)sys_call(SYS_ioctl, fd, TCGETS, &t, 0, 0, 0);
    if (r == 0)
        *ret = t;
    return r;
}
static inline bool sys_is_tty(int fd)
{
    struct termios t;
    return sys_tty_modes(fd, &t) == 0;
}
/* Sets the modes at once (TCSETS): earlier output was processed, and a stopped terminal does not block this call. */
SYS_CALL(int, sys_tty_set_modes, (int fd, const struct termios *t), SYS_ioctl, fd, TCSETS, t)
static inline bool sys_tty_modes_equal(const struct termios *a, const struct termios *b)
{
    return memcmp(a, b, SYS_TERMIOS_BYTES) == 0;
}
SYS_CALL(int, sys_tty_size, (int fd, struct winsize *ret), SYS_ioctl, fd, TIOCGWINSZ, ret)
SYS_CALL(int, sys_tty_set_size, (int fd, const struct winsize *size), SYS_ioctl, fd, TIOCSWINSZ, size)
/* The foreground process group of the terminal, or -errno (ENOTTY when it is not the caller's controlling terminal). */
static inline int sys_tty_foreground(int fd)
{
    int group = 0;
    int r = (int)sys_call(SYS_ioctl, fd, TIOCGPGRP, &group, 0, 0, 0);
    return r < 0 ? r : group;
}
