/*
 * What a layer has of a repository lands; first its branches are judged, if that was noted when its box began. The
 * person's hooks judge them in boxes (moves.c), before anything is changed.
 */
#include "run/layer/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "layer/stack/stack.h"
#include "run/layer/gitbox.h"
#include "run/moves.h"

enum { PIECE = 4096, WORDS_LEAST = 3 /* workspace, directory, "--" */ };

/* The words, NULL-terminated; none: nothing was noted. */
static int read_note(const struct layer_trees *t, struct arena *mem, char ***ret, struct err *e)
{
    auto_buf struct buf text = BUF(LAYER_VERIFY_MAX);
    *ret = NULL;
    auto_fd int fd = openat(t->store, LAYER_VERIFY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    const bool read_it = fd >= 0 && fd_read_all(fd, &text) == 0;
    size_t n_words = 0;
    for (size_t i = 0; i < text.n; i++)
        n_words += !text.p[i];
    char **words =
        !read_it || n_words < WORDS_LEAST || text.p[text.n - 1] ? NULL : arena_zero(mem, (n_words + 1) * sizeof *words);
    for (size_t i = 0, at = 0; words && i < n_words; i++) {
        if (!(words[i] = arena_text(mem, text.p + at)))
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot apply");
        at += strlen(words[i]) + 1;
    }
    if (!words)
        return err_say(e, ERR_CANNOT, "layer %s: what git.verify is to judge cannot be read ('" LAYER_VERIFY "')",
                       t->id);
    *ret = words;
    return 0;
}

/* A part of git's answer as a file of its own. -1 and errno. */
static int part_file(const struct layer_trees *t, int answer, const char *name)
{
    char piece[PIECE];
    struct bundle_part part;
    auto_fd int fd = gitbox_file(t->store);
    if (fd < 0)
        return -1;
    if (!bundle_find(answer, name, &part)) {
        errno = EBADMSG;
        return -1;
    }
    for (uint64_t at = 0; at < part.size;) {
        const size_t most = part.size - at < sizeof piece ? (size_t)(part.size - at) : sizeof piece;
        const ssize_t n = pread(answer, piece, most, (off_t)(part.at + at));
        if (n <= 0 || fd_write_all(fd, piece, (size_t)n) < 0)
            return -1;
        at += (uint64_t)n;
    }
    return lseek(fd, 0, SEEK_SET) < 0 ? -1 : take_fd(&fd);
}

static bool is_branch(const struct repo_ref *ref)
{
    return !ref->why && ref->new &&strncmp(ref->lands, "refs/heads/", 11) == 0;
}

static int ask_each(const struct moves_checker *c, struct repo *r, struct arena *mem, struct err *e)
{
    for (size_t i = 0; i < r->n; i++) {
        struct repo_ref *ref = &r->refs[i];
        struct moves_answer a = {.passed = 0};
        if (!is_branch(ref))
            continue;
        const char *line = arena_printf(mem, "%s %s\n", ref->lands, ref->new);
        const int no = line ? moves_ask(c, str_of(line), &a) : -ENOMEM;
        if (no < 0)
            return err_sys(e, ERR_SYSTEM, -no, "git.verify: '%.200s' cannot be judged", ref->lands);
        if (!a.passed && !(ref->why = arena_printf(mem,
                                                   "git.verify: required, and its commits did not pass: %s; "
                                                   "amend the commit in the box (pinfold run --cow=ID)",
                                                   a.why)))
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot apply");
    }
    return 0;
}

int verify_landing(const struct layer_trees *t, struct repo *r, int answer, struct arena *mem, struct err *e)
{
    struct moves_checker c;
    struct err why = {0};
    char **words;
    bool any = false;
    for (size_t i = 0; i < r->n && !t->inside; i++) /* one inside of the workspace is no repository of the policy's */
        any |= is_branch(&r->refs[i]);
    int no = any ? read_note(t, mem, &words, e) : 0;
    if (no < 0 || !any || !words)
        return no;
    auto_fd int pack = part_file(t, answer, "pack"), index = pack < 0 ? -1 : part_file(t, answer, "idx");
    if (index < 0)
        return err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot prepare its objects for the hooks", t->id);
    no = moves_start(words, (const int[]){pack, index}, &c, &why);
    if (no < 0) { /* the rest of the layer can land all the same */
        const char *reason = arena_text(mem, why.text);
        for (size_t i = 0; reason && i < r->n; i++)
            if (is_branch(&r->refs[i]))
                r->refs[i].why = reason;
        return reason ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot apply");
    }
    no = ask_each(&c, r, mem, e);
    moves_end(&c);
    return no;
}

int gitbox_land(void *ctx, const struct layer_trees *t, const struct changes *all, struct arena *mem,
                struct apply_more *ret, struct apply_outcome *out, struct err *e)
{
    struct repo r;
    struct err why = {0};
    (void)ctx;
    int no = repo_read(t, all, mem, &r, e);
    if (no < 0)
        return no;
    const char *reason = !r.digits ? "the workspace has no repository; make one there first: git init" : r.why;
    if (!reason && (no = stack_repository(t, mem, &reason, e)) < 0)
        return no;
    if (reason)
        return outcome_refuse(mem, out, REPO_DIR, reason) < 0 ? -ENOMEM : 0;
    if (!repo_differs(&r))
        return 0;
    auto_fd int answer = gitbox_ask(t, all, &r, GITBOX_LAND, mem, &why);
    if (answer < 0) { /* the rest of the layer can land all the same */
        reason = arena_text(mem, why.text);
        return !reason || outcome_refuse(mem, out, REPO_DIR, reason) < 0
                   ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot apply")
                   : 0;
    }
    no = verify_landing(t, &r, answer, mem, e);
    return no < 0 ? no : repo_land(t, &r, answer, mem, ret, out, e);
}
