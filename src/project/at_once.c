/* What branches of the working directory are to move to, found and judged in one box, where that is one new commit. checks.c starts it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "project/push.h"

enum { AT_ONCE_TEXT = 64 << 20 };

/* The only line of the list, as hooks_judge() has its words. */
static int judge_only(char *const *words, char *line)
{
    auto_buf struct buf message = BUF(AT_ONCE_TEXT);
    char path[PATH_MAX], *list[4] = {line, NULL, NULL, NULL};
    line[strcspn(line, "\n")] = 0;
    for (size_t i = 1; i < 4; i++) {
        char *space = strchr(list[i - 1], ' ');
        if (!space)
            return CHECK_REFUSED;
        *space = 0;
        list[i] = space + 1;
    }
    snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%s", list[0]);
    (void)push_recall(path, &message);
    struct str rest = buf_view(&message), subject = str_until(&rest, '\n');
    printf("%s %.*s\n", list[0], (int)(subject.n < 200 ? subject.n : 200), subject.p);
    char *const judged[] = {words[0], words[1], words[2], list[0], list[2], list[1], list[3], NULL};
    return hooks_judge(judged);
}

int push_check(const struct gitpush_rules *rules, char *const *words)
{
    auto_buf struct buf upstream = BUF(AT_ONCE_TEXT), list = BUF(AT_ONCE_TEXT), why = BUF(AT_ONCE_TEXT);
    if (!push_recall(START_IN_BOX "/upstream", &upstream) || !push_keep(PUSH_IN_BOX "/upstream", buf_view(&upstream)) ||
        !push_keep(PUSH_IN_BOX "/moves", str_of(words[3])))
        return CHECK_REFUSED;
    const int r = push_moves(rules);
    if (r != PUSH_STAGED || !push_recall(PUSH_IN_BOX "/list", &list)) {
        (void)push_recall(PUSH_IN_BOX "/why", &why);
        printf("%s", buf_cstr(&why));
        return fflush(stdout) == 0 ? CHECK_REFUSED : HOOKS_CANNOT;
    }
    if (!list.n)
        return HOOKS_PASS;
    return strchr(list.p, '\n') == list.p + list.n - 1 ? judge_only(words, list.p) : PUSH_STAGED;
}
