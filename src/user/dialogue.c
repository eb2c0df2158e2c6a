/* A dialogue at the terminal: shows a question, reads keys and restores the terminal's settings. */
#include "user/dialogue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define OPENS_AFTER_US 600000u
#define LOOK_AGAIN_US  500000u /* while another program has the terminal */

/* Ends unfinished sequences: CAN, string terminator, attributes, character set, cursor. ECMA-48, ISO 2022. */
static const char clean[] = "\030\033\\\033[0m\017\033(B\033[?25h";

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

static void show(const struct dialogue *d, const char *text)
{
    if (dialogue_in_foreground(d)) /* otherwise another program has the terminal */
        (void)!write(d->fd, text, strlen(text));
}

static const char *newline(const struct dialogue *d)
{
    return d->raw ? "\r\n" : "\n";
}

bool dialogue_begin(struct dialogue *d, const char *text, uint64_t now)
{
    d->opens_at = now + LOOK_AGAIN_US;
    if (!dialogue_is_ours(d))
        return false;
    d->shown = true;
    d->open = false;
    d->n = 0;
    d->opens_at = now + OPENS_AFTER_US;
    show(d, clean);
    show(d, newline(d));
    show(d, text);
    show(d, newline(d));
    return true;
}

void dialogue_due(struct dialogue *d, uint64_t now)
{
    if (!d->shown || d->open || d->opens_at > now)
        return;
    d->open = true;
    (void)tcflush(d->fd, TCIFLUSH);
    show(d, d->again);
}

void dialogue_end(struct dialogue *d, const char *words)
{
    if (words)
        show(d, words);
    show(d, newline(d));
    d->shown = d->open = false;
    d->n = 0;
    d->opens_at = 0;
    (void)tcflush(d->fd, TCIFLUSH);
}

static int take_line(struct dialogue *d)
{
    char c = d->n == 1 ? d->line[0] : 0;
    d->n = 0;
    if (c && strchr(d->choices, c))
        return c;
    show(d, d->again);
    return DIALOGUE_NOTHING;
}

static int type(struct dialogue *d, char c)
{
    if (c == '\r' || c == '\n') {
        if (d->raw)
            show(d, "\r\n");
        return take_line(d);
    }
    if (c == 3 && d->raw)
        return DIALOGUE_INTERRUPT;
    if (c == 127 || c == 8) {
        if (d->n && d->raw)
            show(d, "\b \b");
        d->n -= d->n > 0;
    } else if (d->n < sizeof d->line) {
        d->line[d->n++] = c;
        if (d->raw && c > 0x20 && c < 0x7f) /* in line mode the terminal echoes */
            show(d, (const char[]){c, 0});
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
        answer = type(d, in[i]);
    return answer;
}
