/*
 * Fetches what is to be judged out of a repository that a box can write while it is read: git packs there and unpacks in a repository
 * of our own, which computes every id. What git lists as new in the first is only a hint; the list that counts is made in the second.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/push/push.h"
#include "project/push/stage.h"
#include "sys/process.h"

enum { SAID_ROOM = 160 };

/* The first of what these gits have said that is no advice, after "; ", or "". A box may have chosen some of the words. */
static void read_said(int from, char ret[SAID_ROOM])
{
    char text[4096];
    const ssize_t n = pread(from, text, sizeof text, 0);
    ret[0] = 0;
    for (struct str rest = {text, n > 0 ? (size_t)n : 0}; rest.n && !ret[0];) {
        struct str line = str_until(&rest, '\n');
        if (!str_starts(line, STR("fatal: ")) && !str_starts(line, STR("error: ")))
            continue;
        line = str_skip(line, STR("fatal: ").n);
        snprintf(ret, SAID_ROOM, "; git: %.*s", (int)line.n, line.p);
    }
    for (char *at = ret; *at; at++)
        *at = *at < ' ' || *at > '~' ? '?' : *at;
}

/* Has git pack what `in` says and unpack it into STORE, which computes every id anew. */
static bool pull_pack(struct staging *s, const char *const *pack, const char *const *unpack, struct str in)
{
    int pipe_of[2];
    auto_fd int given = sys_memory("asked");
    if (given < 0 || fd_write_all(given, in.p, in.n) < 0 || lseek(given, 0, SEEK_SET) < 0 ||
        pipe2(pipe_of, O_CLOEXEC) < 0)
        return stage_refuse(s, "its objects cannot be kept: %s", strerror(errno));
    auto_fd int said = sys_memory("said");
    pid_t from = push_git(pack, ".", given, pipe_of[1], said), to = push_git(unpack, STORE, pipe_of[0], -1, said);
    (void)close(pipe_of[0]);
    (void)close(pipe_of[1]);
    const bool packed = push_wait(from) == 0, unpacked = push_wait(to) == 0;
    if (packed && unpacked)
        return true;
    char why[SAID_ROOM];
    read_said(said, why);
    return stage_refuse(s, "its objects are not complete, or not as git would make them%s", why);
}

/* Older commits of what is known, or upstream's, are not listed: edges themselves, and what they come after is what hooks compare with. */
static bool add_older(struct staging *s, struct str news, struct str listed, struct buf *edges)
{
    static const char *const argv[] = {"git", "rev-list", "--parents", "--no-walk", "--stdin", NULL};
    auto_buf struct buf older = BUF(REFS_MAX), lines = BUF(REFS_MAX);
    while (news.n) {
        struct str id = str_until(&news, '\n');
        if (!stage_has_line(listed, "", id))
            buf_printf(&older, "%.*s\n", (int)id.n, id.p);
    }
    if (!older.n)
        return buf_ok(edges);
    if (!stage_ask(argv, ".", buf_view(&older), &lines) || !push_keep(TIPS, buf_view(&older)))
        return stage_refuse(s, "it is not a commit, or its history is incomplete in the repository");
    for (struct str rest = buf_view(&lines); rest.n;) {
        struct str line = str_until(&rest, '\n');
        while (line.n) {
            struct str id = str_until(&line, ' ');
            buf_printf(edges, "%.*s\n", (int)id.n, id.p);
        }
    }
    return buf_ok(edges);
}

/*
 * What that repository says is new, and where it is joined to what is known. Only a hint by which objects are fetched: what it says
 * may be a lie, of which nothing is left in STORE. `edges`: those commits, with what they contain; `news`: the new ones, as asked for.
 */
static bool find_new(struct staging *s, struct str known, struct str others, struct buf *edges, struct buf *news)
{
    static const char *const argv[] = {"git",     "-c", "core.commitGraph=false", "rev-list", "--boundary",
                                       "--stdin", NULL};
    auto_buf struct buf in = BUF(REFS_MAX), listed = BUF(REFS_MAX);
    struct str rest = {s->push->text.p, s->push->end};
    struct gitpush_command c;
    for (int r; (r = gitpush_next(&rest, &c)) > GITPUSH_MORE && r != GITPUSH_FLUSH;) {
        if (!stage_is_id(c.new_id))
            return stage_refuse(s, "a malformed object id");
        if (!stage_has_line(known, "^", c.new_id))
            buf_printf(news, "%.*s\n", (int)c.new_id.n, c.new_id.p);
    }
    if (!news->n)
        return true;
    buf_printf(&in, "%.*s%.*s%.*s", (int)news->n, news->p, (int)known.n, known.p, (int)others.n, others.p);
    if (!buf_ok(&in) || !stage_ask(argv, ".", buf_view(&in), &listed))
        return stage_refuse(s, "it is not a commit, or its history is incomplete in the repository");
    size_t n = 0;
    for (rest = buf_view(&listed); rest.n;) {
        struct str line = str_until(&rest, '\n');
        n += !str_starts(line, STR("-"));
        if (str_starts(line, STR("-")) && stage_is_id(str_skip(line, 1)))
            buf_printf(edges, "%.*s\n", (int)line.n - 1, line.p + 1);
    }
    if (n > PUSH_COMMITS)
        return stage_refuse(s, "%zu commits would have to be judged at once; at most %d can be", n, PUSH_COMMITS);
    return add_older(s, buf_view(news), buf_view(&listed), edges);
}

/* The commits between what is known and those of `edges` that are not: in STORE they show that these are part of it. */
static bool pull_chain(struct staging *s, struct str known, struct str others, struct str edges, struct buf *ids)
{
    static const char *const list[] = {"git",     "-c", "core.commitGraph=false", "rev-list", "--ancestry-path",
                                       "--stdin", NULL};
    static const char *const pack[] = {"git", "pack-objects", "--stdout", "-q", NULL};
    static const char *const unpack[] = {"git", "index-pack", "--stdin", NULL};
    auto_buf struct buf in = BUF(REFS_MAX);
    for (struct str rest = edges; rest.n;) {
        struct str id = str_until(&rest, '\n');
        if (!stage_has_line(known, "^", id) && !stage_has_line(others, "^", id))
            buf_printf(&in, "^%.*s\n", (int)id.n, id.p);
    }
    if (!in.n)
        return true;
    for (int i = 0; i < 2; i++) {
        for (struct str rest = i ? others : known; rest.n;) {
            struct str line = str_until(&rest, '\n');
            buf_printf(&in, "%.*s\n", (int)line.n - 1, line.p + 1);
        }
    }
    return (buf_ok(&in) && stage_ask(list, ".", buf_view(&in), ids) &&
            (!ids->n || pull_pack(s, pack, unpack, buf_view(ids)))) ||
           stage_refuse(s, "the history of the repository is not complete");
}

/* Of "^ID" lines those that were fetched; what STORE does not have makes nothing known. */
static bool keep_pulled(struct buf *known, struct str pulled)
{
    auto_buf struct buf kept = BUF(REFS_MAX);
    for (struct str rest = buf_view(known); rest.n;) {
        struct str line = str_until(&rest, '\n');
        if (stage_has_line(pulled, "", str_skip(line, 1)))
            buf_printf(&kept, "%.*s\n", (int)line.n, line.p);
    }
    buf_free(known);
    *known = BUF(REFS_MAX);
    buf_str(known, buf_view(&kept));
    return buf_ok(&kept) && buf_ok(known);
}

const char *const stage_pack_revs[] = {"git",      "-c", "pack.compression=0", "pack-objects", "--revs",
                                       "--stdout", "-q", "--window=0",         "--threads=1",  NULL};
const char *const stage_unpack_strict[] = {"git", "index-pack", "--stdin", "--strict", "--threads=1", NULL};

/* All at once. Old objects that are not as git would make them now fail here, which says nothing. */
static bool pull_together(struct staging *s, struct str edges, struct str ends, struct str news)
{
    auto_buf struct buf in = BUF(REFS_MAX);
    buf_printf(&in, "%.*s%.*s%.*s", (int)ends.n, ends.p, (int)news.n, news.p, (int)edges.n, edges.p);
    /* What comes before the edges is not there. Only until they are unpacked: a list of what is new needs to fail without it. */
    bool good = buf_ok(&in) && (!edges.n || push_keep(STORE "/shallow", edges)) &&
                pull_pack(s, stage_pack_revs, stage_unpack_strict, buf_view(&in));
    return (!edges.n || unlink(STORE "/shallow") == 0) && good;
}

/*
 * The old objects may not be as git would make them now; but they must be there: a hook that compares with what is not there may find
 * no difference.
 */
static bool pull_old(struct staging *s, struct str edges, struct str ends)
{
    static const char *const unpack[] = {"git", "index-pack", "--stdin", NULL};
    static const char *const all[] = {"git", "rev-list", "--objects", "--quiet", "--stdin", NULL};
    auto_buf struct buf old = BUF(REFS_MAX), said = BUF(REFS_MAX);
    buf_printf(&old, "%.*s%.*s", (int)ends.n, ends.p, (int)edges.n, edges.p);
    bool good = buf_ok(&old) && pull_pack(s, stage_pack_revs, unpack, buf_view(&old));
    good = good && ((push_keep(STORE "/shallow", edges) && stage_ask(all, STORE, edges, &said)) ||
                    stage_refuse(s, "its objects are not complete"));
    return (unlink(STORE "/shallow") == 0 || errno == ENOENT) && good;
}

static bool pull_apart(struct staging *s, struct str edges, struct str ends, struct str news)
{
    auto_buf struct buf in = BUF(REFS_MAX);
    buf_printf(&in, "%.*s--not\n%.*s", (int)news.n, news.p, (int)edges.n, edges.p);
    return buf_ok(&in) && (!edges.n || pull_old(s, edges, ends)) &&
           pull_pack(s, stage_pack_revs, stage_unpack_strict, buf_view(&in));
}

bool stage_pull(struct staging *s, struct buf *known, struct buf *others)
{
    auto_buf struct buf edges = BUF(REFS_MAX), news = BUF(REFS_MAX), ends = BUF(REFS_MAX), pulled = BUF(REFS_MAX);
    if (!find_new(s, buf_view(known), buf_view(others), &edges, &news))
        return false;
    if (!news.n)
        return true; /* other names for what protected branches are now */
    for (struct str rest = buf_view(&edges); rest.n;) {
        struct str id = str_until(&rest, '\n');
        buf_printf(&ends, "--shallow %.*s\n", (int)id.n, id.p);
    }
    if (!pull_together(s, buf_view(&edges), buf_view(&ends), buf_view(&news)) &&
        !pull_apart(s, buf_view(&edges), buf_view(&ends), buf_view(&news)))
        return false;
    if (access(STORE "/shallow", F_OK) == 0)
        return stage_refuse(s, "what was sent cannot be kept");
    if (!pull_chain(s, buf_view(known), buf_view(others), buf_view(&edges), &pulled))
        return false;
    buf_str(&pulled, buf_view(&edges));
    return keep_pulled(known, buf_view(&pulled)) && keep_pulled(others, buf_view(&pulled));
}

bool stage_cut(struct staging *s, struct str commits, struct str parents)
{
    auto_buf struct buf ends = BUF(REFS_MAX);
    while (parents.n) {
        struct str id = str_until(&parents, '\n');
        auto_buf struct buf start = BUF(128);
        buf_printf(&start, "\n%.*s ", (int)id.n, id.p);
        const bool is_new = (commits.n > id.n && memcmp(commits.p, start.p + 1, start.n - 1) == 0) ||
                            memmem(commits.p, commits.n, start.p, start.n);
        if (!is_new && !stage_has_line(buf_view(&ends), "", id))
            buf_printf(&ends, "%.*s\n", (int)id.n, id.p);
    }
    return (buf_ok(&ends) && (!ends.n || push_keep(STORE "/shallow", buf_view(&ends)))) ||
           stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
}
