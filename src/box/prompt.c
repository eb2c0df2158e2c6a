/*
 * Asking at the terminal. While a question is shown the box's output is not, and its keys are not read: nothing of the box
 * can stand behind the question or change it. What the box has written before may have left the terminal in the
 * middle of an escape sequence, with other colours, invisible or with another alphabet: that is ended first. The host is
 * shown in the canonical ASCII form that was judged. For a moment after the question appears nothing that is typed
 * counts, and all that was typed until then is thrown away: nobody answers by what was meant for the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "box/live.h"

#define OPENS_AFTER_US 600000u
#define LOOK_AGAIN_US  500000u /* while somebody else has the terminal */

/* Ends what may be unfinished: CAN, string terminator, attributes, alphabet, cursor. ECMA-48, ISO 2022. */
static const char clean[] = "\030\033\\\033[0m\017\033(B\033[?25h";

bool prompt_possible(struct box *b)
{
    struct prompt *t = &b->live->prompt;
    if (t->opened)
        return t->fd >= 0;
    t->opened = true;
    t->fd = b->ask->foreground ? open("/dev/tty", O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    return t->fd >= 0;
}

bool prompt_shown(const struct box *b)
{
    return b->live && b->live->prompt.id != 0;
}

static bool foreground(const struct box *b)
{
    return sys_tty_foreground(b->live->prompt.fd) == getpgrp();
}

static void show(const struct box *b, const char *text)
{
    if (foreground(b)) /* else somebody else has the terminal meanwhile */
        (void)!write(b->live->prompt.fd, text, strlen(text));
}

static const char *newline(const struct box *b)
{
    return b->io.term.raw ? "\r\n" : "\n";
}

/* Ours to write to and to read from: we are in the foreground, and nobody else (a pager) has set it to raw mode. */
static bool ours(const struct box *b)
{
    struct termios modes;
    int fd = b->live->prompt.fd;
    return foreground(b) && (b->io.term.raw || (sys_tty_modes(fd, &modes) == 0 && (modes.c_lflag & ICANON)));
}

static struct question *oldest(struct live *l)
{
    struct question *found = NULL;
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        struct question *q = &l->questions[i];
        if (q->state == QUESTION_WAITS && !q->told && (!found || q->id < found->id))
            found = q;
    }
    return found;
}

uint64_t prompt_next(const struct box *b)
{
    struct prompt *t = &b->live->prompt;
    if (t->id)
        return t->open ? NEVER : t->opens_at;
    return t->fd >= 0 && oldest(b->live) ? t->opens_at : NEVER;
}

static void open_question(struct box *b, const struct question *q, uint64_t now)
{
    struct prompt *t = &b->live->prompt;
    char text[1024], who[128] = "";
    if (!ours(b)) {
        t->opens_at = now + LOOK_AGAIN_US;
        return;
    }
    if (q->who.pid)
        snprintf(who, sizeof who, " (%s, process %u)", q->who.command, q->who.pid);
    snprintf(text, sizeof text, "%s%spinfold: the box asks to connect to %s%s; %s%s", clean, newline(b), q->target, who,
             "y: yes, once; a: yes, always in this run; n: no; e: never in this run; q: no, and ask no more",
             newline(b));
    t->id = q->id;
    t->open = false;
    t->n = 0;
    t->opens_at = now + OPENS_AFTER_US;
    show(b, text);
}

void prompt_due(struct box *b, uint64_t now)
{
    struct prompt *t = &b->live->prompt;
    const struct question *q = t->id || t->fd < 0 ? NULL : oldest(b->live);
    if (q && t->opens_at <= now)
        open_question(b, q, now);
    if (t->id && !t->open && t->opens_at <= now) {
        t->open = true;
        (void)sys_call(SYS_ioctl, t->fd, TCFLSH, TCIFLUSH, 0, 0, 0);
        show(b, "pinfold: y, a, n, e or q, and Enter: ");
    }
}

void prompt_poll(const struct box *b, struct pollfd *p)
{
    const struct prompt *t = &b->live->prompt;
    if (t->id && t->open && foreground(b)) /* we are woken when we are put there again: SIGCONT */
        *p = (struct pollfd){.fd = t->fd, .events = POLLIN};
}

void prompt_over(struct box *b, const char *words)
{
    struct prompt *t = &b->live->prompt;
    bool raw = b->io.term.raw;
    if (words)
        show(b, words);
    show(b, newline(b));
    t->id = 0;
    t->open = false;
    t->n = 0;
    t->opens_at = 0;
    (void)sys_call(SYS_ioctl, t->fd, TCFLSH, TCIFLUSH, 0, 0, 0); /* what is left of the answer is not for the command */
    if (raw && b->stage == STAGE_RUNNING)
        box_signal(b, SIGWINCH, SIGNAL_FOREGROUND); /* what draws whole screens draws again */
}

static void take_answer(struct box *b)
{
    struct live *l = b->live;
    struct prompt *t = &l->prompt;
    struct question *q = question_find(l, t->id);
    char c = t->n == 1 ? t->line[0] : 0;
    t->n = 0;
    if (!q || !c || !strchr("yaneq", c)) {
        show(b, "pinfold: y, a, n, e or q, and Enter: ");
        return;
    }
    t->off = c == 'q';
    prompt_over(b, NULL);
    question_answer(b, q, (struct answer){.allow = c == 'y' || c == 'a', .run = c == 'a' || c == 'e'});
}

static void type(struct box *b, char c)
{
    struct prompt *t = &b->live->prompt;
    if (c == '\r' || c == '\n') {
        if (b->io.term.raw)
            show(b, "\r\n");
        take_answer(b);
    } else if (c == 3 && b->io.term.raw) { /* Ctrl-C: the command hears of it, too */
        struct question *q = question_find(b->live, t->id);
        prompt_over(b, "no");
        if (q)
            question_answer(b, q, (struct answer){0});
        box_signal(b, SIGINT, SIGNAL_FOREGROUND);
    } else if (c == 127 || c == 8) {
        if (t->n && b->io.term.raw)
            show(b, "\b \b");
        t->n -= t->n > 0;
    } else if (t->n < sizeof t->line) {
        t->line[t->n++] = c;
        if (b->io.term.raw && c > 0x20 && c < 0x7f) /* in line mode the terminal echoes */
            show(b, (const char[]){c, 0});
    }
}

void prompt_ready(struct box *b)
{
    struct prompt *t = &b->live->prompt;
    char in[64];
    ssize_t n = read(t->fd, in, sizeof in);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* hung up, or Ctrl-D */
        struct question *q = question_find(b->live, t->id);
        t->off = n < 0;
        prompt_over(b, "no");
        if (q)
            question_answer(b, q, (struct answer){0});
        return;
    }
    uint32_t id = t->id;
    for (ssize_t i = 0; i < n && t->id == id; i++)
        type(b, in[i]);
}

void prompt_end(struct box *b)
{
    if (prompt_shown(b))
        prompt_over(b, NULL);
    b->live->prompt.fd = close_fd(b->live->prompt.fd);
}
