/*
 * The state files of an interrupted rebase, cherry-pick or revert, as far as they name programs: `exec` lines of the
 * todo list (git-rebase-todo), and the merge strategy, which git starts as git-merge-NAME (sequencer.c,
 * try_merge_command) and looks for below the current directory if the name has a slash. `git rebase --continue` runs
 * them. Also what programs that only look at such an operation make too much of.
 *
 * As with configurations, the new content may name a program only where the old one did.
 */
#include <errno.h>
#include "git/gitconfig.h"

const char *const repository_markers[] = {".git", ".hg",    ".jj",    ".sl",       ".svn",
                                          ".bzr", "_darcs", ".pijul", ".fslckout", NULL};

enum gitconfig_kind gitconfig_kind_of(struct str path)
{
    static const struct {
        const char *end;
        enum gitconfig_kind kind;
    } all[] = {{"/.gitmodules", GITCONFIG_MODULES},
               {"/rebase-merge/git-rebase-todo", GITCONFIG_TODO},
               {"/sequencer/todo", GITCONFIG_TODO},
               {"/sequencer/opts", GITCONFIG_OPTIONS},
               {"/rebase-merge/strategy", GITCONFIG_STRATEGY},
               {"/rebase-apply/apply-opt", GITCONFIG_APPLY},
               {"/MERGE_RR", GITCONFIG_CONFLICTS},
               {"/rebase-merge/msgnum", GITCONFIG_NUMBER},
               {"/rebase-merge/end", GITCONFIG_NUMBER},
               {"/rebase-apply/next", GITCONFIG_NUMBER},
               {"/rebase-apply/last", GITCONFIG_NUMBER},
               {"/rebase-merge/update-refs", GITCONFIG_REFS},
               {"/rebase-merge/head-name", GITCONFIG_REFS},
               {"/rebase-apply/head-name", GITCONFIG_REFS},
               {"/index", GITCONFIG_INDEX}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].end);
        if (path.n >= n && str_is_nocase(str_skip(path, path.n - n), all[i].end))
            return all[i].kind;
    }
    return GITCONFIG_REPOSITORY;
}

static struct str word(struct str *line)
{
    while (line->n && (line->p[0] == ' ' || line->p[0] == '\t' || line->p[0] == '\r'))
        *line = str_skip(*line, 1);
    size_t n = 0;
    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t' && line->p[n] != '\r')
        n++;
    struct str one = {line->p, n};
    *line = str_skip(*line, n);
    return one;
}

/* Steps that name no program; steps of future versions are not among them. */
static bool is_plain_step(struct str line)
{
    static const char steps[][12] = {"pick", "p",      "revert", "edit",  "e", "reword", "r", "fixup",
                                     "f",    "squash", "s",      "drop",  "d", "break",  "b", "label",
                                     "l",    "reset",  "t",      "merge", "m", "noop",   "u", "update-ref"};
    struct str step = word(&line);
    if (step.n == 0 || !((step.p[0] >= 'a' && step.p[0] <= 'z') || (step.p[0] >= 'A' && step.p[0] <= 'Z')))
        return true; /* a comment, whatever core.commentChar is; or an error to git */
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (str_is(step, steps[i]))
            return !str_starts(step, STR("u")) || !gitref_is_odd(word(&line));
    return false;
}

static bool has_line(struct str text, struct str line)
{
    while (text.n)
        if (str_eq(str_until(&text, '\n'), line))
            return true;
    return false;
}

static int judge_todo(struct str old, struct str new, struct buf *why)
{
    if (new.n == 0 || !new.p)
        return 0;
    if (memchr(new.p, 0, new.n))
        return -EBADMSG;
    while (new.n) {
        struct str line = str_until(&new, '\n');
        if (is_plain_step(line) || has_line(old, line))
            continue;
        if (why)
            buf_text(why, "a command (exec) is added to the list of steps: continuing the rebase would run it");
        return -EACCES;
    }
    return 0;
}

static bool is_builtin_strategy(struct str name)
{
    static const char all[][12] = {"ort", "recursive", "resolve", "octopus", "ours", "subtree"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (str_is(name, all[i]))
            return true;
    return false;
}

static int say_strategy(struct buf *why)
{
    if (why)
        buf_text(why, "a merge strategy that is not git's own: continuing would run git-merge-NAME");
    return -EACCES;
}

static int judge_strategy(struct str old, struct str new, struct buf *why)
{
    while (new.n && (new.p[new.n - 1] == '\n' || new.p[new.n - 1] == '\r'))
        new.n--;
    while (old.n && (old.p[old.n - 1] == '\n' || old.p[old.n - 1] == '\r'))
        old.n--;
    return new.n == 0 || is_builtin_strategy(new) || str_eq(old, new) ? 0 : say_strategy(why);
}

struct options {
    struct str old;
    struct gitconfig_entry wanted;
};

static int option_same(void *ctx, const struct gitconfig_entry *e)
{
    const struct options *o = ctx;
    return str_eq(e->key, o->wanted.key) && str_eq(e->value, o->wanted.value);
}

static int option_refused(void *ctx, const struct gitconfig_entry *e)
{
    static const char plain[][24] = {"no-commit",
                                     "edit",
                                     "allow-empty",
                                     "allow-empty-message",
                                     "keep-redundant-commits",
                                     "drop-redundant-commits",
                                     "signoff",
                                     "record-origin",
                                     "allow-ff",
                                     "mainline",
                                     "strategy-option",
                                     "gpg-sign",
                                     "allow-rerere-auto",
                                     "default-msg-cleanup",
                                     "commit-use-reference"};
    struct options *o = ctx;
    if (str_starts(e->key, STR("options."))) {
        struct str name = str_skip(e->key, 8);
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            if (str_is(name, plain[i]))
                return 0;
        if (str_is(name, "strategy") && is_builtin_strategy(e->value))
            return 0;
    }
    o->wanted = *e;
    return gitconfig_parse(o->old, option_same, o, NULL) > 0 ? 0 : 1;
}

static int judge_options(struct str old, struct str new, struct buf *why)
{
    struct options o = {.old = old};
    int no = gitconfig_parse(new, option_refused, &o, NULL);
    return no > 0 ? say_strategy(why) : no;
}

/* What `git am` passes on; others make git apply write a file of a name that is given (--build-fake-ancestor). */
static bool is_plain_apply(struct str option)
{
    static const char *const whole[] = {"--ignore-space-change", "--ignore-whitespace", "--reject"};
    static const char begin[][16] = {"--whitespace=", "--directory=", "--exclude=", "--include="};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (str_is(option, whole[i]))
            return true;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (str_starts(option, str_of(begin[i])))
            return true;
    return str_starts(option, STR("-C")) || str_starts(option, STR("-p"));
}

/* Words in quotes. One with a quote in it is none of the above. */
static int judge_apply(struct str new, struct buf *why)
{
    while (new.n) {
        if (new.p[0] == ' ' || new.p[0] == '\n') {
            new = str_skip(new, 1);
            continue;
        }
        struct str before = str_until(&new, '\''), option = str_until(&new, '\'');
        if (before.n == 0 && is_plain_apply(option) && (new.n == 0 || new.p[0] == ' ' || new.p[0] == '\n'))
            continue;
        if (why)
            buf_text(why, "an option of git apply that `git am` does not pass on: continuing could write any file");
        return -EACCES;
    }
    return 0;
}

/* "ID[.N] TAB PATH NUL": git commit copies what is at the path into the repository, or writes it. */
static int judge_conflicts(struct str new, struct buf *why)
{
    while (new.n) {
        struct str path = str_until(&new, 0);
        (void)str_until(&path, '\t');
        if (path.n && !gitindex_leads_out(path))
            continue;
        if (why)
            buf_text(why, "a conflict at a path outside of the work tree, which git commit would read or write");
        return -EACCES;
    }
    return 0;
}

/*
 * git's own prompt for bash (git-sh-prompt) puts what it reads here into PS1, where bash expands it: $(command) would run in each shell that stands in
 * the directory. Names of branches it passes in a variable, which is not expanded again.
 */
static int judge_number(struct str new, struct buf *why)
{
    for (size_t i = 0; i < new.n; i++) {
        if ((new.p[i] >= '0' && new.p[i] <= '9') || new.p[i] == '\n')
            continue;
        if (why)
            buf_text(why, "more than a number, which the prompt of a shell (git-sh-prompt) would expand and run");
        return -EACCES;
    }
    return 0;
}

/* A ref or the id of an object in each line. The end of a rebase writes such a ref, whatever it is, and makes HEAD lead to it. */
static int judge_refs(struct str new, struct buf *why)
{
    while (new.n) {
        const struct str line = str_until(&new, '\n');
        if (str_is(line, "detached HEAD") || (gitref_is_plain(line) && !gitref_is_odd(line)))
            continue;
        if (why)
            buf_text(why,
                     "a ref that is an option, or a replacement of an object: continuing the rebase would write it");
        return -EACCES;
    }
    return 0;
}

int git_judge(const struct gitconfig_ask *ask, struct buf *why)
{
    switch (ask->kind) {
    case GITCONFIG_APPLY:
        return judge_apply(ask->new_text, why);
    case GITCONFIG_CONFLICTS:
        return judge_conflicts(ask->new_text, why);
    case GITCONFIG_NUMBER:
        return judge_number(ask->new_text, why);
    case GITCONFIG_REFS:
        return judge_refs(ask->new_text, why);
    case GITCONFIG_TODO:
        return judge_todo(ask->old_text, ask->new_text, why);
    case GITCONFIG_OPTIONS:
        return judge_options(ask->old_text, ask->new_text, why);
    case GITCONFIG_STRATEGY:
        return judge_strategy(ask->old_text, ask->new_text, why);
    case GITCONFIG_INDEX:
        return gitindex_judge(ask->new_text, why);
    default:
        return gitconfig_judge(ask, why);
    }
}
