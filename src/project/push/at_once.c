/*
 * What branches of the working directory are to move to, found and judged in one box, where that is one new commit. checks.c starts it,
 * often before it is known what is asked: until its standard input says that, it has read nothing but names of branches.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/push/push.h"
#include "project/push/stage.h"

enum { AT_ONCE_TEXT = 64 << 20 };

/* The only line of the list, as hooks_judge() has its words. */
static int judge_only(char *const *words, char *line)
{
    char *list[LIST_WORDS];
    if (!stage_cut_line(line, list))
        return CHECK_REFUSED;
    stage_say_commit(list[0]);
    char *const judged[] = {words[0], words[1], words[2], list[0], list[2], list[1], list[3], NULL};
    return hooks_judge(judged);
}

static int say_refused(const char *why)
{
    printf("%s", why);
    return fflush(stdout) == 0 ? CHECK_REFUSED : HOOKS_CANNOT;
}

int push_check(const struct gitpush_rules *rules, char *const *words)
{
    static struct move_step step;
    auto_buf struct buf upstream = BUF(AT_ONCE_TEXT), list = BUF(AT_ONCE_TEXT), why = BUF(AT_ONCE_TEXT),
                        asked = BUF(AT_ONCE_TEXT);
    struct push p = PUSH_EMPTY;
    struct staging s = {.rules = rules, .push = &p, .moves = true, .why = "it cannot be kept"};
    (void)signal(SIGPIPE, SIG_IGN);
    const bool kept = push_recall(START_IN_BOX "/upstream", &upstream) && push_keep(UPSTREAM, buf_view(&upstream));
    step_begin(rules, &step);
    if (fd_read_all(0, &asked) < 0 || !asked.n || !kept || !push_keep(MOVES, buf_view(&asked))) {
        step_drop(&step);
        return asked.n ? CHECK_REFUSED : PUSH_STAGED; /* nothing, or too much for here */
    }
    int r = NOT_A_STEP;
    if (stage_moves(&s, &p))
        r = step_judge(&step, &s, words);
    else
        step_drop(&step);
    buf_free(&p.text);
    if (r != NOT_A_STEP)
        return r;
    r = push_moves(rules);
    if (r != PUSH_STAGED || !push_recall(PUSH_IN_BOX "/list", &list)) {
        (void)push_recall(PUSH_IN_BOX "/why", &why);
        return say_refused(buf_cstr(&why));
    }
    if (!list.n)
        return HOOKS_PASS;
    return strchr(list.p, '\n') == list.p + list.n - 1 ? judge_only(words, list.p) : PUSH_STAGED;
}
