/*
 * Questions at the terminal (user/dialogue.c). While one is shown the box's output is not, and the box gets no keys, so
 * that it can neither imitate nor change the question. The host is shown in the canonical ASCII form that was judged.
 */
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "match/url.h"
#include "supervisor/network/live.h"

bool prompt_possible(struct box *b)
{
    struct prompt *t = &b->live->prompt;
    if (t->opened)
        return t->d.fd >= 0;
    t->opened = true;
    t->d.fd = b->command->foreground ? dialogue_terminal() : -1;
    return t->d.fd >= 0;
}

bool prompt_shown(const struct box *b)
{
    return b->live && b->live->prompt.id != 0;
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
    const struct prompt *t = &b->live->prompt;
    if (t->id)
        return t->d.open ? NEVER : t->d.opens_at;
    return t->d.fd >= 0 && oldest(b->live) ? t->d.opens_at : NEVER;
}

static void open_question(struct box *b, const struct question *q, uint64_t now)
{
    struct prompt *t = &b->live->prompt;
    char text[URL_MAX + 1024], who[128] = "";
    t->d.choices = q->url ? "yn" : "yaneq";
    t->d.again = q->url ? "pinfold: y or n, and Enter: " : "pinfold: y, a, n, e or q, and Enter: ";
    if (q->who.pid)
        snprintf(who, sizeof who, " (%s, process %u)", q->who.command, q->who.pid);
    if (q->url)
        snprintf(text, sizeof text,
                 "pinfold: %s asks to open this address in your browser, outside of the box: %s  y: open it; n: do not",
                 b->spec->browser->agent, q->url);
    else
        snprintf(text, sizeof text, "pinfold: the box asks to %s%s%s; %s",
                 !q->filtered              ? "connect to "
                 : q->filter == FILTER_SSH ? "use the ssh-agent: "
                                           : "use the gpg-agent: ",
                 q->target, who,
                 "y: yes, once; a: yes, always in this run; n: no; e: never in this run; q: no, and ask no more");
    t->d.raw = b->io.term.raw;
    if (dialogue_begin(&t->d, text, now))
        t->id = q->id;
}

void prompt_due(struct box *b, uint64_t now)
{
    struct prompt *t = &b->live->prompt;
    const struct question *q = t->id || t->d.fd < 0 ? NULL : oldest(b->live);
    if (q && t->d.opens_at <= now)
        open_question(b, q, now);
    dialogue_due(&t->d, now);
}

void prompt_poll(const struct box *b, struct pollfd *p)
{
    const struct prompt *t = &b->live->prompt;
    if (t->id && t->d.open && dialogue_in_foreground(&t->d)) /* we are woken when we are put there again: SIGCONT */
        *p = (struct pollfd){.fd = t->d.fd, .events = POLLIN};
}

void prompt_over(struct box *b, const char *words)
{
    struct prompt *t = &b->live->prompt;
    dialogue_end(&t->d, words);
    t->id = 0;
    if (b->io.term.raw && b->stage == STAGE_RUNNING)
        box_signal(b, SIGWINCH, SIGNAL_FOREGROUND); /* what draws whole screens draws again */
}

void prompt_ready(struct box *b)
{
    struct prompt *t = &b->live->prompt;
    struct question *q = question_find(b->live, t->id);
    int c;
    t->d.raw = b->io.term.raw;
    c = dialogue_read(&t->d);
    if (c == DIALOGUE_NOTHING)
        return;
    t->off = c == 'q' || c == DIALOGUE_HUNG_UP;
    const bool browser = q && q->url;
    const char *words = browser ? browser_answered(b, q, c == 'y') : NULL;
    prompt_over(b, words ? words : c < 0 ? "no" : NULL);
    if (q && !browser)
        question_answer(b, q, (struct answer){.allow = c == 'y' || c == 'a', .run = c == 'a' || c == 'e'});
    if (c == DIALOGUE_INTERRUPT) /* Ctrl-C: the command hears of it, too */
        box_signal(b, SIGINT, SIGNAL_FOREGROUND);
}

void prompt_end(struct box *b)
{
    if (prompt_shown(b))
        prompt_over(b, NULL);
    b->live->prompt.d.fd = close_fd(b->live->prompt.d.fd);
}
