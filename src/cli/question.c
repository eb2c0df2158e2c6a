/*
 * One question at the terminal (user/dialogue.h), after a box has ended. What was typed before it answers nothing:
 * the box could have had that typed.
 */
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "user/dialogue.h"

#define ASK_TRIES 20 /* half a second each, while another program has the terminal */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static uint64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A key of `d`, or a value below 0: nobody answers. */
static int ask_key(struct dialogue *d, const char *text)
{
    for (int i = 0; !dialogue_begin(d, text, now_us()); i++) {
        if (i == ASK_TRIES || interrupted || d->fd < 0)
            return DIALOGUE_HUNG_UP;
        (void)poll(NULL, 0, 500);
    }
    for (int key = DIALOGUE_NOTHING; !interrupted;) {
        /* a key for another program, which has the terminal now, is no reason to wake; its end always is */
        const bool ours = d->open && dialogue_in_foreground(d);
        struct pollfd p = {.fd = d->fd, .events = ours ? POLLIN : 0};
        (void)poll(&p, 1, d->open ? 1000 : 50);
        dialogue_due(d, now_us());
        if (p.revents & POLLIN && ours && (key = dialogue_read(d)) != DIALOGUE_NOTHING)
            return key;
        if (p.revents & (POLLHUP | POLLERR | POLLNVAL))
            return DIALOGUE_HUNG_UP;
    }
    return DIALOGUE_INTERRUPT;
}

int ask_at_terminal(const char *text, const char *choices, const char *again)
{
    struct dialogue d = {.fd = dialogue_terminal(), .choices = choices, .again = again};
    struct sigaction before, mine = {.sa_handler = on_interrupt};
    interrupted = 0;
    (void)sigaction(SIGINT, &mine, &before);
    int key = ask_key(&d, text);
    if (d.shown)
        dialogue_end(&d, NULL);
    (void)sigaction(SIGINT, &before, NULL);
    (void)close_fd(d.fd);
    return key;
}
