/*
 * A dialogue at the terminal: shows a question, reads keys and restores the terminal's settings. Several pinfolds may
 * share a terminal: one asks at a time, and only in the foreground.
 */
#include "user/dialogue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"

#define OPENS_AFTER_US 600000u
#define LOOK_AGAIN_US  500000u /* while another program has the terminal */
#define PTY_MAJOR      136u
/* A link that all text would be a part of; colours that make it invisible: the Linux console's, those with a number, of text, of the
   background (xterm). */
#define OWN_LOOKS "\033]8;;\033\\\033]R\033\\\033]104\033\\\033]110\033\\\033]111\033\\"
/* What stands there could be taken for a part of the question, also if it is guarded from being erased: xterm forgets that of ISO 6429 when
   that of VT220 is used. And a line whose letters are twice as high shows half of each. */
#define ERASE_BELOW "\033#5\033[1\"q\033[0\"q\033[J"

int dialogue_terminal(void)
{
    return open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool dialogue_in_foreground(const struct dialogue *d)
{
    return d->fd >= 0 && tcgetpgrp(d->fd) == getpgrp();
}

bool dialogue_is_ours(const struct dialogue *d)
{
    struct termios modes;
    return dialogue_in_foreground(d) && (d->raw || (tcgetattr(d->fd, &modes) == 0 && (modes.c_lflag & ICANON)));
}

/* The terminal under its own name: /dev/tty is one file for all terminals. -1 without such a name, or if it is not for us to open. */
static int terminal_itself(const struct dialogue *d)
{
    unsigned number = 0; /* as the kernel packs it: 12 bits major, 20 minor, the lower 8 of them first */
    char path[48];
    struct stat st;
    if (ioctl(d->fd, TIOCGDEV, &number) < 0)
        return -1;
    const unsigned major = number >> 8 & 0xfff, minor = (number & 0xff) | (number >> 12 & 0xfff00);
    if (major == PTY_MAJOR)
        snprintf(path, sizeof path, "/dev/pts/%u", minor);
    else
        snprintf(path, sizeof path, "/dev/char/%u:%u", major, minor);
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_it = fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(major, minor);
    return is_it ? take_fd(&fd) : -1;
}

/* What all who may ask at this terminal can lock: itself, or for another user (su) the process that it belongs to. */
static int open_turn(const struct dialogue *d)
{
    char path[48];
    int fd = terminal_itself(d);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "/proc/%d", (int)getsid(0));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool take_turn(struct dialogue *d)
{
    if (d->has_turn)
        return true;
    auto_fd int fd = open_turn(d);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    d->turn = take_fd(&fd);
    d->has_turn = true;
    return true;
}

static void give_turn(struct dialogue *d)
{
    if (!d->has_turn)
        return;
    (void)flock(d->turn, LOCK_UN); /* a process that was forked meanwhile may have the descriptor */
    d->turn = close_fd(d->turn);
    d->has_turn = false;
}

static void show_text(const struct dialogue *d, const char *text)
{
    if (dialogue_in_foreground(d)) /* otherwise another program has the terminal */
        (void)!write(d->fd, text, strlen(text));
}

static const char *line_ending(const struct dialogue *d)
{
    return d->raw ? "\r\n" : "\n";
}

bool dialogue_begin(struct dialogue *d, const char *text, uint64_t now)
{
    d->opens_at = now + LOOK_AGAIN_US;
    if (!dialogue_is_ours(d) || !take_turn(d))
        return false;
    d->shown = true;
    d->open = false;
    d->n = 0;
    d->opens_at = now + OPENS_AFTER_US;
    show_text(d, TERMINAL_CLEAN OWN_LOOKS);
    show_text(d, line_ending(d));
    show_text(d, ERASE_BELOW);
    show_text(d, text);
    show_text(d, line_ending(d));
    return true;
}

void dialogue_due(struct dialogue *d, uint64_t now)
{
    if (!d->shown || d->open || d->opens_at > now)
        return;
    d->open = true;
    (void)tcflush(d->fd, TCIFLUSH);
    show_text(d, d->again);
}

void dialogue_end(struct dialogue *d, const char *words)
{
    if (words)
        show_text(d, words);
    show_text(d, line_ending(d));
    d->shown = d->open = false;
    d->n = 0;
    d->opens_at = 0;
    (void)tcflush(d->fd, TCIFLUSH);
    give_turn(d);
}

static int read_typed_line(struct dialogue *d)
{
    char c = d->n == 1 ? d->line[0] : 0;
    d->n = 0;
    if (c && strchr(d->choices, c))
        return c;
    show_text(d, d->again);
    return DIALOGUE_NOTHING;
}

static int type_key(struct dialogue *d, char c)
{
    if (c == '\r' || c == '\n') {
        if (d->raw)
            show_text(d, "\r\n");
        return read_typed_line(d);
    }
    if (c == 3 && d->raw)
        return DIALOGUE_INTERRUPT;
    if (c == 127 || c == 8) {
        if (d->n && d->raw)
            show_text(d, "\b \b");
        d->n -= d->n > 0;
    } else if (d->n < sizeof d->line) {
        d->line[d->n++] = c;
        if (d->raw && c > 0x20 && c < 0x7f) /* in line mode the terminal echoes */
            show_text(d, (const char[]){c, 0});
    }
    return DIALOGUE_NOTHING;
}

int dialogue_read(struct dialogue *d)
{
    char in[64];
    int answer = DIALOGUE_NOTHING;
    ssize_t n = read(d->fd, in, sizeof in);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? DIALOGUE_NOTHING : DIALOGUE_HUNG_UP;
    if (n == 0) /* Ctrl-D */
        return DIALOGUE_ENDED;
    for (ssize_t i = 0; i < n && answer == DIALOGUE_NOTHING; i++)
        answer = type_key(d, in[i]);
    return answer;
}
