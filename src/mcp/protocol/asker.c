/*
 * Asks the user at the server's terminal, one question at a time. For clients that cannot ask their user themselves,
 * and only while the terminal is the server's own.
 */
#include "mcp/protocol/asker.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

static void settle_asked(struct asker *a, struct asked *q, bool yes);

static void listen_on(struct asker *a, bool on)
{
    if (on == a->listening)
        return;
    if (!on)
        loop_remove(a->loop, &a->source);
    else if (loop_add(a->loop, &a->source) < 0)
        return;
    a->listening = on;
}

static void typed(struct loop_source *s, short revents)
{
    struct asker *a = (struct asker *)(void *)s;
    (void)revents;
    if (!dialogue_in_foreground(&a->d)) { /* reading would stop us */
        listen_on(a, false);
        return;
    }
    int c = dialogue_read(&a->d);
    if (c == DIALOGUE_NOTHING)
        return;
    a->off = c == 'q' || c == DIALOGUE_HUNG_UP;
    dialogue_end(&a->d, c < 0 ? "no" : NULL);
    listen_on(a, false);
    if (a->first)
        settle_asked(a, a->first, c == 'y');
    while (a->off && a->first)
        settle_asked(a, a->first, false);
}

void asker_begin(struct asker *a, struct loop *loop)
{
    *a = (struct asker){.source = {.events = POLLIN, .ready = typed},
                        .loop = loop,
                        .d = {.fd = dialogue_terminal(), .choices = "ynq", .again = "pinfold: y, n or q, and Enter: "}};
    a->source.fd = a->d.fd;
}

bool asker_possible(const struct asker *a)
{
    return !a->off && dialogue_is_ours(&a->d);
}

bool asker_ask(struct asker *a, struct asked *q, const char *sentence)
{
    struct asked **end = &a->first;
    if (!asker_possible(a))
        return false;
    q->sentence = strdup(sentence);
    q->next = NULL;
    if (!q->sentence)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = q;
    (void)asker_tick(a, loop_now());
    return true;
}

void asker_take_back(struct asker *a, struct asked *q)
{
    if (a->first == q && a->d.shown) {
        dialogue_end(&a->d, "no more questions are asked");
        listen_on(a, false);
    }
    for (struct asked **at = &a->first; *at; at = &(*at)->next) {
        if (*at == q) {
            *at = q->next;
            break;
        }
    }
    free(q->sentence);
    q->sentence = NULL;
}

static void settle_asked(struct asker *a, struct asked *q, bool yes)
{
    asker_take_back(a, q);
    q->answer(q->ctx, yes);
}

int asker_tick(struct asker *a, uint64_t now)
{
    int next = -1;
    for (struct asked *q = a->first, *after; q; q = after) {
        after = q->next;
        if (now < q->ends)
            continue;
        if (q == a->first && a->d.shown) {
            dialogue_end(&a->d, "not answered: denied");
            listen_on(a, false);
        }
        settle_asked(a, q, false);
    }
    if (!a->first)
        return -1;
    if (!a->d.shown && a->d.opens_at <= now * 1000)
        (void)dialogue_begin(&a->d, a->first->sentence, now * 1000);
    dialogue_due(&a->d, now * 1000);
    bool here = a->d.open && dialogue_in_foreground(&a->d);
    listen_on(a, here);
    if (!here)
        next = 50;
    for (const struct asked *q = a->first; q; q = q->next) {
        int left = (int)(q->ends - now);
        next = next < 0 || left < next ? left : next;
    }
    return next;
}

void asker_end(struct asker *a)
{
    if (a->d.shown)
        dialogue_end(&a->d, NULL);
    listen_on(a, false);
    a->d.fd = close_fd(a->d.fd);
}
