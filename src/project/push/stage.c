/*
 * A push in two parts, in two boxes. The first keeps what was sent outside of the repository, which it can only read, and lists the
 * commits that hooks have to judge. The second carries the push out, once checks.c has had that done.
 *
 * What is new is decided by the objects that were sent and by the branches of the repository: replaced objects, grafts and whatever else
 * the pushing repository believes of them have no part in it, since a repository without refs and configuration reads them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/branch.h"
#include "project/push/push.h"
#include "project/push/stage.h"
#include "sys/process.h"

enum { LIST_MAX = 4 << 20, SAID_MAX = 4096, PARENTS_MAX = 16 };

static const char *why_of(const void *ctx, const struct gitpush_command *c)
{
    (void)c;
    return ((const struct staging *)ctx)->why;
}

/* ---- which commits are new ---- */

/*
 * Whether what was fetched as this is what the people of that remote have accepted: branches that are protected by name; where all are
 * because none is named, the remote's HEAD. A box may be able to push to all others of its branches.
 */
static bool is_upstream(const struct gitpush_rules *rules, struct str ref, bool symbolic)
{
    auto_buf struct buf as_branch = BUF(4096);
    struct str name = str_skip(ref, sizeof "refs/remotes/" - 1);
    (void)str_until(&name, '/'); /* the remote */
    if (rules->n_protect == 0 || symbolic)
        return rules->n_protect == 0 && symbolic && str_is(name, "HEAD");
    buf_text(&as_branch, "refs/heads/");
    buf_str(&as_branch, name);
    return gitpush_protects(rules, buf_view(&as_branch));
}

bool stage_known(struct staging *s, struct buf *known, struct buf *upstream)
{
    auto_buf struct buf refs = BUF(REFS_MAX);
    if (!refs_list("refs/heads", &refs) ||
        !(s->moves ? push_recall(UPSTREAM, &refs) : refs_list("refs/remotes", &refs)))
        return stage_refuse(s, "the branches of the checkout's repository cannot be read");
    struct str rest = buf_view(&refs);
    while (rest.n) {
        struct str line = str_until(&rest, '\n'), id = str_until(&line, ' '), ref = str_until(&line, ' ');
        bool head = str_starts(ref, STR("refs/heads/"));
        if (!head && !stage_is_id(id))
            continue;
        if (!head && !is_upstream(s->rules, ref, line.n > 0))
            continue;
        if (head && !gitpush_protects(s->rules, ref))
            continue;
        if (head && line.n)
            return stage_refuse(s, "the protected branch %.*s is another name of %.*s, which git.verify cannot judge",
                                (int)ref.n, ref.p, (int)line.n, line.p);
        buf_printf(head ? known : upstream, "^%.*s\n", (int)id.n, id.p);
    }
    return buf_ok(known) && buf_ok(upstream);
}

/* ---- which of them are judged ---- */

/* And no tag that leads to one. */
static bool is_commit_itself(struct str id)
{
    char word[96];
    const char *const argv[] = {"git", "rev-parse", "--verify", "-q", word, NULL};
    auto_buf struct buf said = BUF(LIST_MAX);
    snprintf(word, sizeof word, "%.*s^{commit}", (int)id.n, id.p);
    return stage_ask(argv, STORE, STR(""), &said) && stage_has_line(buf_view(&said), "", id);
}

/* Appends to `list` the commits that have to be judged when the branch of this command moves. */
static bool list_of_branch(struct staging *s, const struct gitpush_command *c, struct str known, struct str others,
                           struct buf *list)
{
    static const char *const all[] = {"git", "rev-list", "--reverse", "--topo-order", "--stdin", NULL};
    static const char *const any[] = {"git", "rev-list", "--max-count=1", "--stdin", NULL};
    /* STORE has nothing before the tip: where its history ends it cannot be found to be known, and is judged. */
    static const char *const tip_alone[] = {"git",           "--shallow-file", TIPS, "rev-list",
                                            "--max-count=1", "--stdin",        NULL};
    auto_buf struct buf in = BUF(REFS_MAX), new_ones = BUF(LIST_MAX), tip = BUF(LIST_MAX);
    buf_printf(&in, "%.*s\n%.*s%.*s", (int)c->new_id.n, c->new_id.p, (int)known.n, known.p, (int)others.n, others.p);
    bool good = buf_ok(&in) && stage_ask(all, STORE, buf_view(&in), &new_ones);
    struct str rest = buf_view(&new_ones), last = {0};
    while (rest.n) {
        last = str_until(&rest, '\n');
        buf_printf(list, "%.*s %.*s\n", (int)last.n, last.p, (int)c->ref.n, c->ref.p);
    }
    if (good && !str_eq(last, c->new_id)) { /* nothing of it is new, or the tip is upstream's */
        buf_free(&in);
        in = BUF(REFS_MAX);
        buf_printf(&in, "%.*s\n%.*s", (int)c->new_id.n, c->new_id.p, (int)known.n, known.p);
        good = buf_ok(&in) && stage_ask(s->moves ? tip_alone : any, STORE, buf_view(&in), &tip);
        if (good && tip.n)
            buf_printf(list, "%.*s %.*s\n", (int)c->new_id.n, c->new_id.p, (int)c->ref.n, c->ref.p);
        else if (good && s->moves)
            good = is_commit_itself(c->new_id);
    }
    return (good && buf_ok(list)) ||
           stage_refuse(s, "the history of %.*s is incomplete, or is not made of commits", (int)c->ref.n, c->ref.p);
}

/* By what is known, as text. */
static void put_known(const struct buf *known, const struct buf *others, struct buf *to)
{
    buf_printf(to, "%.*s\n%.*s", (int)known->n, known->p, (int)others->n, others->p);
}

static bool keep_known(const struct buf *known, const struct buf *others)
{
    auto_buf struct buf text = BUF(2 * REFS_MAX);
    put_known(known, others, &text);
    return buf_ok(&text) && push_keep(KNOWN, buf_view(&text));
}

/* "COMMIT REF" for each commit that has to be judged, parents first. */
static bool list_commits(struct staging *s, struct buf *list)
{
    auto_buf struct buf known = BUF(REFS_MAX), others = BUF(REFS_MAX), tips = BUF(REFS_MAX);
    struct str rest = {s->push->text.p, s->push->end};
    struct gitpush_command c;
    bool good = stage_known(s, &known, &others) && (!s->keeps || keep_known(&known, &others));
    buf_str(&tips, s->moves ? buf_view(&known) : STR("")); /* what a protected branch is already needs no judging */
    good = good && (!s->moves || stage_pull(s, &known, &others));
    for (int r; good && (r = gitpush_next(&rest, &c)) > GITPUSH_MORE && r != GITPUSH_FLUSH;) {
        if (r != GITPUSH_COMMAND || gitpush_deletes(&c) || !str_starts(c.ref, STR("refs/heads/")) ||
            !gitpush_protects(s->rules, c.ref) || stage_has_line(buf_view(&tips), "^", c.new_id))
            continue;
        char name[BRANCH_NAME_MAX + 2];
        snprintf(name, sizeof name, "%.*s", (int)c.ref.n - 11, c.ref.p + 11);
        const char *reason = branch_refused(name);
        if (reason || !stage_is_id(c.new_id))
            return stage_refuse(s, "%s", reason ? reason : "a malformed object id");
        good = list_of_branch(s, &c, buf_view(&known), buf_view(&others), list);
        buf_printf(&others, "^%.*s\n", (int)c.new_id.n, c.new_id.p); /* judged with this branch */
    }
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        n += list->p[i] == '\n';
    if (good && n > PUSH_COMMITS)
        return stage_refuse(s, "%zu commits would have to be judged; push at most %d at once", n, PUSH_COMMITS);
    return good;
}

/* ---- what hooks are told of a commit ---- */

/* The lines of a commit object up to its message. */
struct commit {
    struct str tree, author, parents[PARENTS_MAX], message;
    size_t n_parents;
};

static bool cut_line_after(struct str *text, struct str head, struct str *ret)
{
    if (!str_starts(*text, head))
        return false;
    struct str line = str_until(text, '\n');
    *ret = str_skip(line, head.n);
    return true;
}

/* As git reads it: only in these places, in this order. A line further down that looks like one of these is none. */
static bool read_commit(struct str text, struct commit *ret)
{
    struct str parent;
    *ret = (struct commit){.n_parents = 0};
    if (!cut_line_after(&text, STR("tree "), &ret->tree))
        return false;
    while (cut_line_after(&text, STR("parent "), &parent)) {
        if (ret->n_parents < PARENTS_MAX)
            ret->parents[ret->n_parents++] = parent;
    }
    if (!cut_line_after(&text, STR("author "), &ret->author))
        return false;
    while (text.n && str_until(&text, '\n').n)
        ;
    ret->message = text;
    return true;
}

/* "NAME <MAIL> SECONDS ZONE", as git hands it to hooks: a line for each of the three. */
static void put_author(struct str author, struct buf *to)
{
    const char *mail = author.n ? memchr(author.p, '<', author.n) : NULL;
    struct str name = {author.p, mail ? (size_t)(mail - author.p) : 0};
    struct str rest = mail ? str_skip(author, name.n + 1) : (struct str){0}, address = str_until(&rest, '>');
    name = str_trim(name);
    rest = str_trim(rest);
    buf_printf(to, "%.*s\n%.*s\n@%.*s\n", (int)name.n, name.p, (int)address.n, address.p, (int)rest.n, rest.p);
}

/* One answer of git cat-file --batch: "ID commit SIZE", the object, a newline. */
static bool next_object(struct str *rest, struct str id, struct str *ret)
{
    struct str head = str_until(rest, '\n');
    if (!str_eq(str_until(&head, ' '), id) || !str_is(str_until(&head, ' '), "commit"))
        return false;
    size_t n = 0;
    for (size_t i = 0; i < head.n; i++)
        n = n < COMMITS_MAX ? n * 10 + (size_t)(head.p[i] - '0') : n;
    if (n >= rest->n)
        return false;
    *ret = (struct str){rest->p, n};
    *rest = str_skip(*rest, n + 1);
    return true;
}

bool stage_parents(struct str *objects, struct str id, struct buf *ret)
{
    struct str text;
    struct commit c;
    if (!next_object(objects, id, &text) || !read_commit(text, &c) || c.n_parents == PARENTS_MAX)
        return false;
    for (size_t i = 0; i < c.n_parents; i++)
        buf_printf(ret, "%.*s\n", (int)c.parents[i].n, c.parents[i].p);
    return buf_ok(ret);
}

bool stage_write_list(struct staging *s, struct str commits, struct str objects)
{
    auto_buf struct buf list = BUF(2 * LIST_MAX), parents = BUF(LIST_MAX);
    struct str text;
    if (mkdir(PUSH_IN_BOX "/commits", 0700) < 0)
        return stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
    for (struct str rest = commits; rest.n;) {
        struct str ref = str_until(&rest, '\n'), id = str_until(&ref, ' ');
        auto_buf struct buf author = BUF(COMMITS_MAX);
        char path[PATH_MAX];
        struct commit c;
        if (!next_object(&objects, id, &text) || !read_commit(text, &c))
            return stage_refuse(s, "its commits cannot be read");
        buf_printf(&list, "%.*s %.*s %.*s ", (int)id.n, id.p, (int)ref.n, ref.p, (int)c.tree.n, c.tree.p);
        for (size_t i = 0; i < c.n_parents; i++) {
            buf_printf(&list, "%s%.*s", i ? "," : "", (int)c.parents[i].n, c.parents[i].p);
            buf_printf(&parents, "%.*s\n", (int)c.parents[i].n, c.parents[i].p);
        }
        buf_text(&list, c.n_parents ? "\n" : "-\n");
        put_author(c.author, &author);
        snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%.*s", (int)id.n, id.p);
        bool good = access(path, F_OK) == 0 || push_keep(path, c.message);
        snprintf(path, sizeof path, PUSH_IN_BOX "/commits/%.*s.author", (int)id.n, id.p);
        if (!good || !buf_ok(&author) || (access(path, F_OK) < 0 && !push_keep(path, buf_view(&author))))
            return stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
    }
    if (s->moves && !s->is_cut && !stage_cut(s, commits, buf_view(&parents)))
        return false;
    return (buf_ok(&list) && push_keep(PUSH_IN_BOX "/list", buf_view(&list))) ||
           stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
}

bool stage_describe(struct staging *s, struct str commits)
{
    static const char *const argv[] = {"git", "cat-file", "--batch", NULL};
    auto_buf struct buf ids = BUF(LIST_MAX), objects = BUF(COMMITS_MAX);
    for (struct str rest = commits; rest.n;) {
        struct str line = str_until(&rest, '\n'), id = str_until(&line, ' ');
        buf_printf(&ids, "%.*s\n", (int)id.n, id.p);
    }
    if (ids.n && !stage_ask(argv, STORE, buf_view(&ids), &objects))
        return stage_refuse(s, "its commits cannot be read, or are more than 64 MiB");
    return stage_write_list(s, commits, buf_view(&objects));
}

/* ---- the objects ---- */

size_t stage_digits(const struct staging *s)
{
    struct str rest = {s->push->text.p, s->push->end};
    struct gitpush_command c = {.ref = {0}};
    while (gitpush_next(&rest, &c) == GITPUSH_OTHER)
        ;
    return c.new_id.n;
}

bool stage_store(struct staging *s, size_t digits)
{
    static const char *const made[] = {STORE, STORE "/refs", STORE "/objects", STORE "/objects/info",
                                       STORE "/objects/pack"};
    char here[PATH_MAX];
    auto_buf struct buf text = BUF(2 * PATH_MAX), shallow = BUF(LIST_MAX);
    bool good = getcwd(here, sizeof here) != NULL && !strchr(here, '\n');
    for (size_t i = 0; good && i < sizeof made / sizeof *made; i++)
        good = mkdir(made[i], 0700) == 0;
    buf_printf(&text, "[core]\n\trepositoryformatversion = %d\n\tbare = true\n", digits == 64);
    if (digits == 64)
        buf_text(&text, "[extensions]\n\tobjectformat = sha256\n");
    good =
        good && push_keep(STORE "/config", buf_view(&text)) && push_keep(STORE "/HEAD", STR("ref: refs/heads/none\n"));
    buf_free(&text);
    text = BUF(2 * PATH_MAX);
    buf_printf(&text, "%s/objects\n", good ? here : "");
    if (s->moves) /* whose box could write objects that are not what their names say */
        return good || stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
    good = good && push_keep(STORE "/objects/info/alternates", buf_view(&text));
    if (good && access("shallow", F_OK) == 0) /* where the history of the one that is pushed to ends */
        good = push_recall("shallow", &shallow) && push_keep(STORE "/shallow", buf_view(&shallow));
    return good || stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
}

/* Each object is checked: its form and its id. */
static bool take_objects(struct staging *s)
{
    static const char *const argv[] = {"git", "index-pack", "--stdin", "--fix-thin", "--strict", NULL};
    int to[2];
    auto_buf struct buf text = BUF(SAID_MAX);
    auto_fd int words = sys_memory("said");
    struct push *p = s->push;
    if (words < 0 || pipe2(to, O_CLOEXEC) < 0)
        return stage_refuse(s, "what was sent cannot be kept: %s", strerror(errno));
    pid_t git = push_git(argv, STORE, to[0], -1, words);
    (void)close(to[0]);
    if (fd_write_all(to[1], p->text.p + p->end, p->text.n - p->end) == 0)
        push_pass(git, to[1]);
    (void)close(to[1]);
    int status = push_wait(git);
    char *room = buf_space(&text, SAID_MAX - 1);
    ssize_t n = room ? pread(words, room, SAID_MAX - 1, 0) : 0;
    buf_grew(&text, n > 0 ? (size_t)n : 0);
    if (status == 0)
        return true;
    push_say(1, p, buf_view(&text));
    return stage_refuse(s, "its objects are not as git would make them");
}

static int take_staged(struct staging *s)
{
    auto_buf struct buf list = BUF(LIST_MAX);
    const struct push *p = s->push;
    s->keeps = true;
    bool good = stage_store(s, stage_digits(s)) && push_keep(PUSH_IN_BOX "/commands", (struct str){p->text.p, p->end});
    if (good && p->packs)
        good = take_objects(s);
    good = good && list_commits(s, &list) && stage_describe(s, buf_view(&list));
    if (good)
        return PUSH_STAGED;
    push_report(1, p, "ok", why_of, s);
    if (p->packs)
        push_drain();
    return PUSH_ANSWERED;
}

int push_take(const struct gitpush_rules *rules)
{
    struct push p = PUSH_EMPTY;
    struct staging s = {.rules = rules, .push = &p, .why = "it cannot be kept"};
    if (!push_advertise(rules))
        return PUSH_FAILED;
    int r = push_read(&p, 0), status = r < 0 ? PUSH_FAILED : PUSH_ANSWERED;
    if (r > 0 && push_judge(&p, rules)) {
        push_report(1, &p, "ok", push_refusal, rules);
        if (p.packs)
            push_drain();
    } else if (r > 0 && gitpush_wants(p.wants, "push-options")) {
        (void)stage_refuse(&s, "with git.verify no options of a push (-o) are taken");
        push_report(1, &p, "ok", why_of, &s);
        push_drain();
    } else if (r > 0) {
        status = take_staged(&s);
    }
    buf_free(&p.text);
    return status;
}

/* ---- branches of the repository itself ---- */

bool stage_moves(struct staging *s, struct push *p)
{
    static const char none[] = "0000000000000000000000000000000000000000000000000000000000000000";
    auto_buf struct buf lines = BUF(GITPUSH_MAX_BYTES);
    if (!push_recall(MOVES, &lines))
        return stage_refuse(s, "what was asked for cannot be read");
    for (struct str rest = buf_view(&lines); rest.n;) {
        auto_buf struct buf command = BUF(8192);
        struct str id = str_until(&rest, '\n'), ref = str_until(&id, ' ');
        if (!stage_is_id(id) || !str_starts(ref, STR("refs/heads/")) || !gitpush_protects(s->rules, ref))
            return stage_refuse(s, "a malformed branch name or object id");
        buf_printf(&command, "%.*s %.*s %.*s", (int)id.n, none, (int)id.n, id.p, (int)ref.n, ref.p);
        gitpush_put(&p->text, 0, buf_view(&command));
    }
    p->end = p->text.n;
    buf_text(&p->text, "0000");
    return buf_ok(&p->text);
}

int push_moves(const struct gitpush_rules *rules)
{
    struct push p = PUSH_EMPTY;
    struct staging s = {.rules = rules, .push = &p, .moves = true, .why = "it cannot be kept"};
    auto_buf struct buf list = BUF(LIST_MAX);
    (void)signal(SIGPIPE, SIG_IGN);
    bool good = stage_moves(&s, &p) && stage_store(&s, stage_digits(&s)) && list_commits(&s, &list) &&
                stage_describe(&s, buf_view(&list));
    buf_free(&p.text);
    if (good)
        return PUSH_STAGED;
    return push_keep(PUSH_IN_BOX "/why", str_of(s.why)) ? PUSH_ANSWERED : PUSH_FAILED;
}

/* ---- afterwards ---- */

static bool is_known_the_same(struct staging *s)
{
    auto_buf struct buf known = BUF(REFS_MAX), others = BUF(REFS_MAX), now = BUF(2 * REFS_MAX),
                        then = BUF(2 * REFS_MAX);
    if (!stage_known(s, &known, &others) || !push_recall(KNOWN, &then))
        return false;
    put_known(&known, &others, &now);
    return buf_ok(&now) && str_eq(buf_view(&now), buf_view(&then));
}

/* Whether all that would have to be judged by the repository as it is now has been. */
static bool is_judged(struct staging *s)
{
    auto_buf struct buf now = BUF(LIST_MAX), then = BUF(2 * LIST_MAX + 1);
    if (is_known_the_same(s))
        return true; /* then the list would be, too */
    buf_char(&then, '\n');
    if (!push_recall(PUSH_IN_BOX "/list", &then) || !list_commits(s, &now))
        return s->why[0] ? false : stage_refuse(s, "what was sent cannot be read again");
    for (struct str rest = buf_view(&now); rest.n;) {
        struct str line = str_until(&rest, '\n'), id = str_until(&line, ' ');
        char word[80];
        snprintf(word, sizeof word, "\n%.*s ", (int)id.n, id.p);
        if (!memmem(then.p, then.n, word, strlen(word)))
            return stage_refuse(s, "the branches of the checkout have changed meanwhile; push again");
    }
    return true;
}

static int open_pack(void)
{
    DIR *names = opendir(STORE "/objects/pack");
    struct dirent *d;
    int fd = -1;
    while (names && (d = readdir(names)) != NULL && fd < 0) {
        if (str_ends(str_of(d->d_name), STR(".pack")))
            fd = openat(dirfd(names), d->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (names)
        (void)closedir(names);
    return fd;
}

int push_land(const struct gitpush_rules *rules)
{
    struct push p = PUSH_EMPTY;
    struct staging s = {.rules = rules, .push = &p, .why = ""};
    auto_fd int commands = open(PUSH_IN_BOX "/commands", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int status = PUSH_FAILED;
    char go;
    (void)signal(SIGPIPE, SIG_IGN);
    if (read(0, &go, 1) != 1)
        return PUSH_ANSWERED; /* hooks have refused it */
    if (commands >= 0 && push_read(&p, commands) > 0) {
        auto_fd int objects = p.packs ? open_pack() : open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (push_judge(&p, rules))
            push_report(1, &p, "ok", push_refusal, rules);
        else if (objects < 0 ? !stage_refuse(&s, "what was sent cannot be read again") : !is_judged(&s))
            push_report(1, &p, "ok", why_of, &s);
        else
            (void)push_carry_out(&p, rules, objects); /* git has told the client what came of it */
        status = PUSH_ANSWERED;
    }
    buf_free(&p.text);
    return status;
}
