/*
 * The usual move: one branch to one new commit, which comes after what protected branches are now, or, as an amended one, after what the
 * commit in whose place it is came after. Nothing has to be found for it, so its gits are begun before it is known what moves, and wait.
 * What is checked out then is fetched before that, too: of what comes after it few objects are left.
 *
 * What the repository says of parents is a hint by which objects are fetched: a box can write there. What counts is read anew in STORE,
 * where git has computed every id, and has to be the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/push/push.h"
#include "project/push/stage.h"
#include "sys/remove.h"

#define AHEAD_MAX "--max-input-size=16777216" /* of objects that are fetched before anything is asked */

enum { STEP_TEXT = 64 << 20 };

/* ---- before it is known ---- */

static size_t digits_here(void)
{
    auto_buf struct buf refs = BUF(REFS_MAX);
    if (!refs_list("refs/heads", &refs))
        return 40;
    for (struct str rest = buf_view(&refs); rest.n;) {
        struct str line = str_until(&rest, '\n'), id = str_until(&line, ' ');
        if (stage_is_id(id))
            return id.n;
    }
    return 40;
}

static bool is_asked(void)
{
    struct pollfd of = {.fd = 0, .events = POLLIN};
    return poll(&of, 1, 0) != 0;
}

static const char *const tell_objects[] = {"git", "cat-file", "--batch", NULL};

/*
 * What is checked out, if a protected branch is, and below it in `ids` what that comes after; `edges`: where STORE's history ends with
 * these.
 */
static bool find_ahead(const struct gitpush_rules *rules, struct buf *ids, struct buf *edges)
{
    char ref[PATH_MAX], tip[80];
    auto_buf struct buf objects = BUF(STEP_TEXT);
    if (!refs_head(ref) || !gitpush_protects(rules, str_of(ref)) || !refs_value(str_of(ref), tip))
        return false;
    buf_printf(ids, "%s\n", tip);
    if (!stage_ask(tell_objects, ".", buf_view(ids), &objects))
        return false;
    struct str rest = buf_view(&objects);
    if (!stage_parents(&rest, str_of(tip), edges))
        return false;
    if (edges->n)
        buf_str(ids, buf_view(edges));
    else
        buf_str(edges, buf_view(ids));
    return buf_ok(ids) && buf_ok(edges);
}

/*
 * Fills STORE with these, unless they are much: a box that waits is not to take more memory than its hooks will. Nothing counts as known by
 * that: it is only there. False: STORE is not as it was.
 */
static bool fetch_ahead(const struct gitpush_rules *rules, struct move_step *st)
{
    static const char *const unpack[] = {"git", "index-pack", "--stdin", "--strict", "--threads=1", AHEAD_MAX, NULL};
    auto_buf struct buf ids = BUF(sizeof st->ahead - 1), edges = BUF(sizeof st->ahead - 1), in = BUF(16384),
                        said = BUF(STEP_TEXT);
    struct ready_git to, from = READY_NONE;
    if (is_asked() || !find_ahead(rules, &ids, &edges))
        return true;
    for (struct str rest = buf_view(&edges); rest.n;) {
        struct str id = str_until(&rest, '\n');
        buf_printf(&in, "--shallow %.*s\n", (int)id.n, id.p);
    }
    buf_str(&in, buf_view(&ids));
    if (!buf_ok(&in) || !push_keep(STORE "/shallow", buf_view(&edges)))
        return false;
    bool good = ready_begin(unpack, STORE, -1, &to) && ready_begin(stage_pack_revs, ".", to.in, &from) &&
                ready_say(&from, buf_view(&in));
    to.in = close_fd(to.in); /* which is the other's */
    good = ready_end(&from, NULL) && good;
    good = ready_end(&to, &said) && good && unlink(STORE "/shallow") == 0;
    if (good)
        snprintf(st->ahead, sizeof st->ahead, "%s", buf_cstr(&ids));
    return good;
}

/* STORE, and the gits. */
static void begin_gits(struct move_step *st)
{
    struct staging s = {.moves = true};
    *st = (struct move_step){READY_NONE, READY_NONE, READY_NONE, READY_NONE, .digits = digits_here()};
    st->waits = stage_store(&s, st->digits) && ready_begin(stage_unpack_strict, STORE, -1, &st->unpack) &&
                ready_begin(stage_pack_revs, ".", st->unpack.in, &st->pack) &&
                ready_begin(tell_objects, ".", -1, &st->here) && ready_begin(tell_objects, STORE, -1, &st->there);
    st->unpack.in = close_fd(st->unpack.in); /* which is the other's */
}

void step_begin(const struct gitpush_rules *rules, struct move_step *st)
{
    begin_gits(st);
    if (!st->waits || fetch_ahead(rules, st))
        return;
    step_drop(st);
    begin_gits(st);
}

void step_drop(struct move_step *st)
{
    (void)ready_end(&st->here, NULL);
    (void)ready_end(&st->there, NULL);
    (void)ready_end(&st->pack, NULL);
    (void)ready_end(&st->unpack, NULL);
    remove_tree(AT_FDCWD, STORE);
}

/* ---- what moves ---- */

/* Whether that may be a step: one branch moves to what no protected branch is. `known`: what those are. */
static bool find_move(struct move_step *st, struct staging *s, struct buf *known)
{
    auto_buf struct buf upstream = BUF(REFS_MAX);
    struct str rest = {s->push->text.p, s->push->end};
    struct gitpush_command c, more;
    if (gitpush_next(&rest, &c) != GITPUSH_COMMAND || gitpush_next(&rest, &more) == GITPUSH_COMMAND ||
        c.ref.n >= sizeof st->ref || c.new_id.n != st->digits)
        return false;
    snprintf(st->ref, sizeof st->ref, "%.*s", (int)c.ref.n, c.ref.p);
    snprintf(st->id, sizeof st->id, "%.*s", (int)c.new_id.n, c.new_id.p);
    if (!refs_value(c.ref, st->old))
        st->old[0] = 0;
    return stage_known(s, known, &upstream) && !stage_has_line(buf_view(known), "^", c.new_id);
}

/*
 * Where what is new begins, a line for each: the parents of `id`, which have to be known, or parents of what is; then those of the
 * latter, too. `objects`: what git cat-file says of `id` and of `old`. False: it is no step.
 */
static bool find_edges(struct move_step *st, struct str known, struct str objects, struct buf *edges)
{
    auto_buf struct buf before = BUF(sizeof st->before - 1);
    st->steps_back = false;
    st->parents[0] = st->before[0] = 0;
    if (!stage_parents(&objects, str_of(st->id), edges) || !edges->n || edges->n >= sizeof st->parents)
        return false;
    snprintf(st->parents, sizeof st->parents, "%.*s", (int)edges->n - 1, edges->p);
    for (char *at = st->parents; (at = strchr(at, '\n'));)
        *at = ',';
    for (struct str rest = buf_view(edges); rest.n;)
        st->steps_back |= !stage_has_line(known, "^", str_until(&rest, '\n'));
    const bool read = st->old[0] && stage_parents(&objects, str_of(st->old), &before);
    snprintf(st->before, sizeof st->before, "%s", read ? buf_cstr(&before) : "?");
    if (!st->steps_back)
        return true;
    if (!read || !stage_has_line(known, "^", str_of(st->old)))
        return false;
    for (struct str rest = buf_view(edges); rest.n;) {
        struct str id = str_until(&rest, '\n');
        if (!stage_has_line(known, "^", id) && !stage_has_line(buf_view(&before), "", id))
            return false;
    }
    for (struct str rest = buf_view(&before); rest.n;) {
        struct str id = str_until(&rest, '\n');
        if (!stage_has_line(buf_view(edges), "", id))
            buf_printf(edges, "%.*s\n", (int)id.n, id.p);
    }
    return buf_ok(edges);
}

/* What a git says of `id`, and of `old` where that counts. */
static bool ask_commits(const struct move_step *st, struct ready_git *a, bool old, struct buf *objects)
{
    auto_buf struct buf ids = BUF(256);
    buf_printf(&ids, "%s\n%s%s", st->id, old ? st->old : "", old ? "\n" : "");
    const bool said = ready_say(a, buf_view(&ids));
    return ready_end(a, objects) && said;
}

/* Of "ID" lines whether STORE has them all already. */
static bool is_ahead(const struct move_step *st, struct str ids)
{
    while (ids.n)
        if (!stage_has_line(str_of(st->ahead), "", str_until(&ids, '\n')))
            return false;
    return true;
}

static void put_ids(struct buf *in, const char *before, struct str ids)
{
    while (ids.n) {
        struct str id = str_until(&ids, '\n');
        buf_printf(in, "%s%.*s\n", before, (int)id.n, id.p);
    }
}

/* Whether STORE has all but `id`, and `old`, by which a branch may have moved since. `wanted`: besides `id`. */
static bool is_little(const struct move_step *st, struct str wanted, bool *lacks_old)
{
    *lacks_old = false;
    for (struct str rest = wanted; rest.n;) {
        struct str id = str_until(&rest, '\n');
        const bool there = is_ahead(st, id);
        if (!there && !str_is(id, st->old))
            return false;
        *lacks_old |= !there;
    }
    return !*lacks_old || is_ahead(st, str_of(st->before));
}

/* Fills STORE with `id`, the edges and what these contain, and with `old` if it shows that one of them is known. */
static bool pull_step(struct move_step *st, struct str edges)
{
    auto_buf struct buf in = BUF(16384), said = BUF(STEP_TEXT), wanted = BUF(8192);
    bool lacks_old;
    buf_printf(&wanted, "%s%s%.*s", st->steps_back ? st->old : "", st->steps_back ? "\n" : "", (int)edges.n, edges.p);
    const bool little = is_little(st, buf_view(&wanted), &lacks_old);
    /* Of none of those that are packed whole what comes before; and what is there ends what is new. */
    put_ids(&in, "--shallow ", little ? str_of(st->ahead) : buf_view(&wanted));
    buf_printf(&in, "%s%s\n", little ? "" : "--shallow ", st->id);
    if (little)
        put_ids(&in, "^", str_of(st->ahead));
    else
        put_ids(&in, "", str_of(st->id));
    put_ids(&in, "", little ? str_of(lacks_old ? st->old : "") : buf_view(&wanted));
    const bool asked =
        buf_ok(&in) && buf_ok(&wanted) && push_keep(STORE "/shallow", edges) && ready_say(&st->pack, buf_view(&in));
    const bool packed = ready_end(&st->pack, NULL), unpacked = ready_end(&st->unpack, &said);
    return asked && packed && unpacked;
}

/* ---- judging it ---- */

/* All is in STORE. The work tree is laid while the commits are read there. */
static int judge_fetched(struct move_step *st, struct staging *s, char *const *words, struct str known, struct str hint)
{
    auto_buf struct buf line = BUF(STEP_TEXT), list = BUF(STEP_TEXT), objects = BUF(STEP_TEXT), edges = BUF(STEP_TEXT);
    char parents[sizeof st->parents], *said[LIST_WORDS];
    snprintf(parents, sizeof parents, "%s", st->parents);
    char *judged[] = {words[0], words[1], words[2], st->id, NULL, st->ref, parents, NULL};
    const pid_t filling = hooks_begin(judged);
    buf_printf(&line, "%s %s\n", st->id, st->ref);
    s->is_cut = true;
    const bool good = ask_commits(st, &st->there, st->steps_back, &objects) &&
                      stage_write_list(s, buf_view(&line), buf_view(&objects)) &&
                      push_recall(PUSH_IN_BOX "/list", &list) && list.n && stage_cut_line(list.p, said);
    if (!good || !find_edges(st, known, buf_view(&objects), &edges) || !str_eq(buf_view(&edges), hint) ||
        !same(said[3], parents)) {
        (void)push_wait(filling);
        return PUSH_STAGED; /* the repository has said something else than its objects do: it is judged as all others */
    }
    stage_say_commit(st->id);
    judged[4] = said[2];
    return hooks_end(judged, filling);
}

int step_judge(struct move_step *st, struct staging *s, char *const *words)
{
    auto_buf struct buf known = BUF(REFS_MAX), objects = BUF(STEP_TEXT), edges = BUF(STEP_TEXT);
    const bool pulled = st->waits && find_move(st, s, &known) &&
                        ask_commits(st, &st->here, st->old[0] != 0, &objects) &&
                        find_edges(st, buf_view(&known), buf_view(&objects), &edges) && pull_step(st, buf_view(&edges));
    if (pulled)
        return judge_fetched(st, s, words, buf_view(&known), buf_view(&edges));
    step_drop(st);
    return NOT_A_STEP;
}
