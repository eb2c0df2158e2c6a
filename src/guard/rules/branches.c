/*
 * Protected branches under git.verify: required (GUARD_RULE_BRANCH). A branch moves when a file with its new id is renamed onto its name,
 * or onto packed-refs, as git, libgit2 and their kin do it. The guard reads that file, and has pinfold's checker judge the commits
 * (protocol/moves.h), with no lock held. Then the call starts over: everything is judged again, and if the branches would still move to
 * what was passed, the guard writes those bytes into a new file and gives that the name. So a descriptor kept on the lock file, or
 * another name of it, changes nothing. All other ways to that name are refused: writing in place, links, exchanges, whole directories.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "git/gitconfig.h"
#include "guard/rules/rules.h"
#include "protocol/moves.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/socket.h"

#define BY_LOCK  "a protected branch moves when git renames its lock file onto it, and in no other way"
#define BY_TABLE "branches in a reftable, which cannot be checked"
#define BY_WHOLE "a directory of branches cannot be moved or replaced"
#define STILL_MS 1000 /* how often it is looked whether the caller still waits */

static int refuse_move(struct guard *g, const struct rule *rule, struct str path, const char *why)
{
    return deny(g, DENIAL_GIT_BRANCH, rule, path, why);
}

int branches_make(struct guard *g, struct str path, bool directory)
{
    const struct rule *rule;
    const enum rules_refs what = rules_refs(&g->rules, path, &rule);
    if (what == REFS_TABLE)
        return refuse_move(g, rule, path, BY_TABLE);
    return what == REFS_PACKED || (what == REFS_BRANCH && !directory) ? refuse_move(g, rule, path, BY_LOCK) : 0;
}

int branches_object(struct guard *g, struct str path, enum denial_action action)
{
    const struct rule *rule;
    const enum rules_refs what = rules_refs(&g->rules, path, &rule);
    const bool changes = action == DENIAL_WRITE || action == DENIAL_LINK;
    return changes && (what == REFS_PACKED || what == REFS_BRANCH) ? refuse_move(g, rule, path, BY_LOCK) : 0;
}

int branches_leave(struct guard *g, struct str path, bool directory)
{
    const struct rule *rule;
    const enum rules_refs what = rules_refs(&g->rules, path, &rule);
    if (directory && what != REFS_NONE && what != REFS_TABLE)
        return refuse_move(g, rule, path, BY_WHOLE);
    return what == REFS_PACKED || what == REFS_BRANCH ? refuse_move(g, rule, path, BY_LOCK) : 0;
}

/* ---- what would move ---- */

static void put_move(struct buf *lines, struct str ref, struct str id)
{
    buf_str(lines, ref);
    buf_char(lines, ' ');
    buf_str(lines, id);
    buf_char(lines, '\n');
}

/* Whether the repository, the directory `dir`, has this branch there in a file of its own. */
static bool is_loose_there(int dir, struct str ref, struct str id)
{
    char name[PATH_MAX], text[80];
    struct str there;
    if (!str_copy(ref, name, sizeof name))
        return false;
    own_fd int fd = sys_openat2(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0,
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
    long n = fd < 0 ? fd : sys_read(fd, text, sizeof text);
    return n > 0 && gitref_loose((struct str){text, (size_t)n}, &there) && str_eq(there, id);
}

/* Every entry of a protected branch counts, wherever in the file: git searches it by halves. NULL, or why it is no packed-refs. */
static const char *collect_packed(struct guard *g, int dir, const struct rule *of, struct str text, struct str old,
                                  struct buf *lines)
{
    struct str id, ref;
    int more;
    if (str_starts(old, STR("#")))
        (void)str_until(&old, '\n');
    for (bool begins = true; (more = gitref_entry(&text, begins, &id, &ref)) > 0; begins = false)
        if (rules_branch(&g->rules, of, ref) && !gitref_packed_is(&old, ref, id) && !is_loose_there(dir, ref, id))
            put_move(lines, ref, id);
    return more < 0 ? "packed-refs in a form that git does not write" : NULL;
}

/* ---- moving ---- */

/* The judged bytes of `id` in a loose ref. */
static void put_loose(struct buf *out, struct str id)
{
    buf_str(out, id);
    buf_char(out, '\n');
}

/* What is asked for, kept until the answer; what was asked for before is no longer. */
static int keep_moves(struct guard *g, const struct place *to, const struct rule *rule, struct buf *lines)
{
    struct moves *m = &g->wanted;
    if (!buf_ok(lines))
        return refuse_move(g, rule, place_path(to), "more branches at once than can be checked");
    free(m->lines);
    *m = (struct moves){.lines = malloc(lines->n), .n = lines->n, .rule = rule, .path_n = to->n};
    if (!m->lines)
        return -ENOMEM;
    memcpy(m->lines, lines->p, lines->n);
    memcpy(m->path, to->path, to->n);
    return MOVES_ASK;
}

static bool is_passed(const struct guard *g, const struct buf *lines)
{
    const struct moves *m = &g->wanted;
    return buf_ok(lines) && (!lines->n || (m->passed && m->n == lines->n && memcmp(m->lines, lines->p, m->n) == 0));
}

/* Reads the file at `p`, whatever it is now. -errno: there is none to read. */
static int read_refs(const struct place *p, char **ret, size_t *ret_n)
{
    own_fd int fd = git_text_open(p->dir, p->name);
    return fd < 0 ? fd : git_text_read(fd, GITCONFIG_INDEX, ret, ret_n); /* packed-refs may be as large */
}

static int put_refs(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                    bool packed, struct str text)
{
    auto_buf struct buf lines = BUF(MOVES_TEXT), out = BUF(GITINDEX_MAX_BYTES + 1);
    const struct str ref = str_skip(place_path(to), rule->below.n + 1);
    struct str id;
    char *old = NULL;
    size_t old_n = 0;
    const char *why = NULL;
    if (packed) {
        (void)read_refs(to, &old, &old_n);
        why = collect_packed(g, to->dir, rule, text, (struct str){old, old_n}, &lines);
    } else if (!gitref_loose(text, &id)) {
        why = "a protected branch must be the id of a commit, not a symbolic name for another branch";
    } else if (!gitref_is_plain(ref)) {
        why = "a name with white space or control characters";
    } else {
        put_loose(&out, id);
        if (read_refs(to, &old, &old_n) < 0 || !str_eq((struct str){old, old_n}, buf_view(&out)))
            put_move(&lines, ref, id);
    }
    free(old);
    if (why)
        return refuse_move(g, rule, place_path(to), why);
    if (!is_passed(g, &lines))
        return keep_moves(g, to, rule, &lines);
    int no = target_valid(g);
    return no < 0 ? no : git_put_refs(g, from, to, packed ? text : buf_view(&out));
}

int branches_arrive(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st,
                    bool may_replace)
{
    const struct rule *rule;
    const enum rules_refs what = rules_refs(&g->rules, place_path(to), &rule);
    char *text = NULL;
    size_t n = 0;
    if (what == REFS_NONE || (what == REFS_DIRECTORY && S_ISREG(st->mode)))
        return 0;
    if (what == REFS_TABLE || what == REFS_DIRECTORY)
        return refuse_move(g, rule, place_path(to), what == REFS_TABLE ? BY_TABLE : BY_WHOLE);
    if (!S_ISREG(st->mode) || !may_replace)
        return refuse_move(g, rule, place_path(to), BY_LOCK);
    int no = read_refs(from, &text, &n);
    if (no == -EINVAL || no == -EFBIG || no == -ELOOP)
        no = refuse_move(g, rule, place_path(to), "branches in something other than a file of at most 64 MiB");
    if (no == 0)
        no = put_refs(g, from, to, rule, what == REFS_PACKED, (struct str){text, n});
    free(text);
    return no == 0 ? 1 : no;
}

/* ---- asking ---- */

/* Whether somebody wants the caller to end, by a signal that it gets once it has its answer. */
static bool is_interrupted(struct guard *g)
{
    const uint64_t ends = 1ull << (SIGINT - 1) | 1ull << (SIGTERM - 1) | 1ull << (SIGQUIT - 1) | 1ull << (SIGHUP - 1);
    return signals_waiting(g->who->proc, "status") & ends;
}

/* Waits as long as the caller does: hooks take their time. */
static int wait_answer(struct guard *g, int own, struct moves_answer *ret)
{
    for (;;) {
        struct pollfd p = {.fd = own, .events = POLLIN};
        int n = sys_poll_ms(&p, 1, STILL_MS), no = target_valid(g);
        if (no < 0)
            return no;
        if (n > 0 && sys_recv(own, ret, sizeof *ret, MSG_DONTWAIT) == (long)sizeof *ret)
            return 0;
        if (n > 0)
            return -EPIPE;
        if (!g->ours && is_interrupted(g))
            return -EINTR;
    }
}

static int ask_checker(struct guard *g, struct moves_answer *ret)
{
    own_fd int own = report_pair(g, FRAME_MOVES, g->wanted.lines, g->wanted.n, -1);
    return own < 0 ? own : wait_answer(g, own, ret);
}

int branches_ask(struct guard *g)
{
    struct moves_answer a = {.passed = 0};
    struct moves *m = &g->wanted;
    int no = guard_may_block(g);
    if (no == 0)
        no = ask_checker(g, &a);
    if (no == -EPIPE)
        return refuse_move(g, m->rule, (struct str){m->path, m->path_n}, "its commits could not be checked");
    if (no != 0)
        return no;
    a.why[sizeof a.why - 1] = 0;
    m->passed = a.passed != 0;
    return m->passed ? 0 : refuse_move(g, m->rule, (struct str){m->path, m->path_n}, a.why);
}

void branches_done(struct guard *g)
{
    free(g->wanted.lines);
    g->wanted.lines = NULL;
    g->wanted.n = 0;
    g->wanted.passed = false;
}
