/*
 * What branches of the working directory are to move to, found and judged in one box, where that is one new commit. checks.c starts it.
 *
 * Most moves are a step: one branch, to a commit whose only parent is what it is now. That takes few processes, because nothing has to
 * be found: both commits are fetched, and if the one comes after the other, by bytes whose id was computed, that is all that is new.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "project/push/push.h"
#include "project/push/stage.h"
#include "sys/remove.h"

enum { AT_ONCE_TEXT = 64 << 20, LINE_WORDS = 4, NOT_A_STEP = -1 };

/* Cuts a line of the list: COMMIT REF TREE PARENTS. */
static bool cut_line(char *line, char *ret[LINE_WORDS])
{
    line[strcspn(line, "\n")] = 0;
    ret[0] = line;
    for (size_t i = 1; i < LINE_WORDS; i++) {
        char *space = strchr(ret[i - 1], ' ');
        if (!space)
            return false;
        *space = 0;
        ret[i] = space + 1;
    }
    return true;
}

static void say_commit(const char *commit)
{
    auto_buf struct buf message = BUF(AT_ONCE_TEXT);
    char path[PATH_MAX];
    snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%s", commit);
    (void)push_recall(path, &message);
    struct str rest = buf_view(&message), subject = str_until(&rest, '\n');
    printf("%s %.*s\n", commit, (int)(subject.n < 200 ? subject.n : 200), subject.p);
}

/* The only line of the list, as hooks_judge() has its words. */
static int judge_only(char *const *words, char *line)
{
    char *list[LINE_WORDS];
    if (!cut_line(line, list))
        return CHECK_REFUSED;
    say_commit(list[0]);
    char *const judged[] = {words[0], words[1], words[2], list[0], list[2], list[1], list[3], NULL};
    return hooks_judge(judged);
}

static int say_refused(const char *why)
{
    printf("%s", why);
    return fflush(stdout) == 0 ? CHECK_REFUSED : HOOKS_CANNOT;
}

/* ---- a step ---- */

struct one_step {
    char id[80], old[80], ref[PATH_MAX];
};

/* Whether that may be one: a branch that is there moves to what no protected branch is. */
static bool find_step(struct staging *s, struct one_step *ret)
{
    auto_buf struct buf known = BUF(REFS_MAX), upstream = BUF(REFS_MAX);
    struct str rest = {s->push->text.p, s->push->end};
    struct gitpush_command c, more;
    if (gitpush_next(&rest, &c) != GITPUSH_COMMAND || gitpush_next(&rest, &more) == GITPUSH_COMMAND ||
        c.ref.n >= sizeof ret->ref || c.new_id.n >= sizeof ret->id)
        return false;
    snprintf(ret->ref, sizeof ret->ref, "%.*s", (int)c.ref.n, c.ref.p);
    snprintf(ret->id, sizeof ret->id, "%.*s", (int)c.new_id.n, c.new_id.p);
    return refs_value(c.ref, ret->old) && stage_known(s, &known, &upstream) &&
           stage_has_line(buf_view(&known), "^", str_of(ret->old)) && !stage_has_line(buf_view(&known), "^", c.new_id);
}

/* Both commits are in STORE. The work tree is laid while the new one is read. */
static int judge_fetched(struct staging *s, char *const *words, const struct one_step *step)
{
    auto_buf struct buf line = BUF(AT_ONCE_TEXT), list = BUF(AT_ONCE_TEXT);
    char id[80], old[80], ref[PATH_MAX], *said[LINE_WORDS];
    snprintf(id, sizeof id, "%s", step->id);
    snprintf(old, sizeof old, "%s", step->old);
    snprintf(ref, sizeof ref, "%s", step->ref);
    char *judged[] = {words[0], words[1], words[2], id, NULL, ref, old, NULL};
    const pid_t filling = hooks_begin(judged);
    buf_printf(&line, "%s %s\n", id, ref);
    const bool good = stage_describe(s, buf_view(&line)) && push_recall(PUSH_IN_BOX "/list", &list) && list.n;
    if (!good || !cut_line(list.p, said) || !same(said[3], old)) {
        (void)push_wait(filling);
        return good ? PUSH_STAGED : say_refused(s->why); /* it comes after something else: as all others */
    }
    say_commit(id);
    judged[4] = said[2];
    return hooks_end(judged, filling);
}

static int check_step(const struct gitpush_rules *rules, char *const *words)
{
    struct push p = PUSH_EMPTY;
    struct staging s = {.rules = rules, .push = &p, .moves = true, .why = "it cannot be kept"};
    static struct one_step step;
    int r = NOT_A_STEP;
    if (stage_moves(&s, &p) && find_step(&s, &step)) {
        if (stage_store(&s) && stage_pull_step(&s, str_of(step.id), str_of(step.old)))
            r = judge_fetched(&s, words, &step);
        else
            remove_tree(AT_FDCWD, STORE);
    }
    buf_free(&p.text);
    return r;
}

int push_check(const struct gitpush_rules *rules, char *const *words)
{
    auto_buf struct buf upstream = BUF(AT_ONCE_TEXT), list = BUF(AT_ONCE_TEXT), why = BUF(AT_ONCE_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!push_recall(START_IN_BOX "/upstream", &upstream) || !push_keep(UPSTREAM, buf_view(&upstream)) ||
        !push_keep(MOVES, str_of(words[3])))
        return CHECK_REFUSED;
    int r = check_step(rules, words);
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
