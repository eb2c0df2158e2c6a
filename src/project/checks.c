/*
 * Has the hooks of the checkout judge what is pushed to a protected branch (checks.h). This process reads what boxes have written in
 * bounded pieces, and tells the client; all git runs in boxes.
 */
#include "project/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/beside.h"
#include "project/push/push.h"
#include "protocol/moves.h"
#include "sys/remove.h"

enum {
    LISTED_MAX = 8 << 20,
    SAID_LINES = 24,
    WRITTEN_MAX = 96,
    LANDING_WAITS = 600, /* seconds, of its box's 15 minutes */
    NO_ANSWER = PUSH_STAGED + 1
};

static int says_no(char *why, size_t room, int no, const char *format, ...) __attribute__((format(printf, 4, 5)));
static int says_no(char *why, size_t room, int no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, room, format, args);
    va_end(args);
    return -no;
}

/* ---- at the start ---- */

/* What was asked of the session that makes its box smaller, and its base: a hook's box is not to have more. False: more than fit. */
static bool keep_asked(const struct pinfold_policy_options *asked, struct checks *c)
{
    c->text = asked->text;
    c->settings_format = asked->settings_format;
    c->no_layers = asked->no_layers;
    for (const struct pinfold_option *o = asked->options; o->name; o++) {
        if (!beside_holds(o, false))
            continue;
        if (c->n_options == PROJECT_OPTIONS)
            return false;
        c->options[c->n_options++] = *o;
    }
    return true;
}

/* The policy of a box for hooks: that of the project's boxes, with the checkout to read, and what is added. */
static int load_policy(const struct pinfold_option *options, const struct checks *c, struct pinfold_policy **ret,
                       struct pinfold_error *error)
{
    const struct pinfold_policy_options po = {.size = sizeof po,
                                              .options = options,
                                              .cwd = c->cwd,
                                              .text = c->text,
                                              .settings_format = c->settings_format,
                                              .no_layers = c->no_layers};
    return pinfold_policy_load(&po, ret, error);
}

static size_t put_common(const struct checks *c, struct pinfold_option *to)
{
    size_t n = 0;
    to[n++] = (struct pinfold_option){"workspace", c->real};
    to[n++] = (struct pinfold_option){"read-only", NULL};
    for (size_t i = 0; i < c->n_options; i++)
        to[n++] = c->options[i];
    to[n++] = (struct pinfold_option){"tty", "never"};
    to[n++] = (struct pinfold_option){"timeout", c->moves ? "25m" : "15m"}; /* moves.c has it wait for ten of them */
    return n;
}

static int freeze(struct checks *c, char *why, size_t room)
{
    struct pinfold_option options[PROJECT_OPTIONS + 16] = {{0}};
    static char mount[2 * PATH_MAX], start[2 * PATH_MAX];
    size_t n = put_common(c, options);
    snprintf(mount, sizeof mount, "%s/hooks:" HOOKS_IN_BOX, c->top);
    options[n++] = (struct pinfold_option){"mount", mount};
    snprintf(start, sizeof start, "%s/start:" START_IN_BOX, c->top);
    if (c->moves)
        options[n++] = (struct pinfold_option){"mount", start};
    options[n++] = (struct pinfold_option){"guard", "off"}; /* cp alone writes, and only there */
    const char *const argv[] = {
        "/bin/sh", "-c", project_script("freeze"), "pinfold", c->real, c->moves ? START_IN_BOX : NULL, NULL};
    const char *not_served = c->moves ? "" : "; the remote 'host' is not served";
    const struct pinfold_run_options o = {.size = sizeof o, .argv = argv, .cwd = "/", .capture = 1};
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    int r = load_policy(options, c, &policy, &error);
    if (r == 0) {
        r = pinfold_run(policy, &o, &result, &error);
        pinfold_policy_free(policy);
    }
    if (r < 0)
        return says_no(why, room, -r, "%s%s", c->moves ? "" : "git.verify: ", error.text);
    int status = pinfold_result_status(result);
    struct str rest = str_of(pinfold_result_stdout(result, NULL));
    while (rest.n) {
        struct str line = str_until(&rest, '\n');
        if (str_starts(line, STR("at ")))
            snprintf(c->hooks, sizeof c->hooks, "%.*s", (int)line.n - 3, line.p + 3);
        c->any |= str_starts(line, STR("has "));
        if (str_starts(line, STR("why ")))
            r = says_no(why, room, EINVAL, "%s%.*s%s", c->moves ? "" : "git.verify: ", (int)line.n - 4, line.p + 4,
                        not_served);
    }
    pinfold_result_free(result);
    if (r == 0 && status != 0)
        r = says_no(why, room, EIO, "%sthe hooks of '%s' cannot be read in a box%s",
                    c->moves ? "" : "git.verify: ", c->real, not_served);
    return r;
}

/* Hooks in the directory `ret->top`, which is there. */
static int begin_checks(const struct pinfold_policy_options *asked, struct checks *ret, char *why, size_t room)
{
    char path[sizeof ret->top + 16];
    snprintf(path, sizeof path, "%s/start", ret->top);
    bool made = !ret->moves || mkdir(path, 0700) == 0;
    snprintf(path, sizeof path, "%s/hooks", ret->top);
    if (!made || mkdir(path, 0700) < 0)
        return says_no(why, room, errno, "git.verify: cannot make '%s': %s", path, strerror(errno));
    int r = keep_asked(asked, ret)
                ? freeze(ret, why, room)
                : says_no(why, room, E2BIG,
                          "git.verify: more than %d options for the boxes of hooks; write them into the policy",
                          PROJECT_OPTIONS);
    if (r == 0 && !ret->any && ret->rules->verify == PUSH_VERIFY_REQUIRED)
        r = says_no(
            why, room, ENOENT,
            "%s'%s' has no hook that could check a commit (pre-commit or commit-msg, executable, where git looks "
            "for hooks)%s",
            ret->moves ? "" : "git.verify: required, but ", ret->real,
            ret->moves ? "; install the hooks first"
                       : ", so the remote 'host' is not served; install the hooks, then: pinfold start");
    if (r < 0)
        remove_tree(AT_FDCWD, ret->top);
    return r;
}

int checks_begin(const struct shelf *s, const char *real, const char *word, const struct pinfold_policy_options *asked,
                 const struct push_rules *rules, struct checks *ret, char *why, size_t room)
{
    char path[sizeof ret->top + 16];
    *ret = (struct checks){.real = real, .cwd = real, .rules = rules};
    project_word(real, ret->name);
    snprintf(ret->top, sizeof ret->top, "%s/checks/%s", s->top, word);
    remove_tree(AT_FDCWD, ret->top); /* of a process that was killed */
    if (rules->verify == PUSH_VERIFY_OFF)
        return 0;
    snprintf(path, sizeof path, "%s/checks", s->top);
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || mkdir(ret->top, 0700) < 0)
        return says_no(why, room, errno, "git.verify: cannot make '%s': %s", ret->top, strerror(errno));
    return begin_checks(asked, ret, why, room);
}

/* ---- one push ---- */

struct one_push {
    const struct checks *checks;
    int fd;
    const char *git;
    char dir[PATH_MAX + PROJECT_WORD + 64]; /* of it */
    int stage;                              /* what its box has kept */
    struct push push;
    struct pinfold_policy *policy; /* of the hooks' boxes */
    struct buf why;                /* a clause for git's last line */
    struct buf refused;            /* the branch that it is for; "": all */
};

/* A box has written it: only a regular file, and no more than fits. */
static bool read_kept(int dir, const char *name, struct buf *to)
{
    struct stat st;
    auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fd_read_all(fd, to) == 0;
}

/*
 * Nothing but the commit's own directory can be written; and caches that boxes of the project write are no part of what judges: the
 * host's own can be read, and no other is there. `dir`: of a push, or NULL: PUSH_IN_BOX is empty memory, and START_IN_BOX is there.
 */
static int load_hook_policy(const struct checks *c, const char *git, const char *dir, struct pinfold_policy **ret,
                            struct pinfold_error *error)
{
    static char written[WRITTEN_MAX][PATH_MAX];
    static char stage[2 * PATH_MAX], hooks[2 * PATH_MAX], more[2 * PATH_MAX];
    struct pinfold_option options[PROJECT_OPTIONS + WRITTEN_MAX + 24] = {{0}};
    size_t n = put_common(c, options);
    char *text = NULL;
    snprintf(stage, sizeof stage, "%s/%s:%s:ro", dir ? dir : c->top, dir ? "stage" : "start",
             dir ? PUSH_IN_BOX : START_IN_BOX);
    snprintf(hooks, sizeof hooks, "%s/hooks:" HOOKS_IN_BOX ":ro", c->top);
    options[n++] = (struct pinfold_option){"mount", stage};
    options[n++] = (struct pinfold_option){"mount", hooks};
    options[n++] = (struct pinfold_option){"storage", CHECK_IN_BOX};
    if (!dir)
        options[n++] = (struct pinfold_option){"storage", PUSH_IN_BOX};
    snprintf(more, sizeof more, "%s/more:" MORE_IN_BOX ":ro", c->top);
    if (c->more)
        options[n++] = (struct pinfold_option){"mount", more};
    options[n++] = (struct pinfold_option){"mount", host_program()};
    options[n++] = (struct pinfold_option){"ro", git};
    int r = load_policy(options, c, ret, error);
    if (r < 0)
        return r;
    r = pinfold_policy_text(*ret, 0, &text, error);
    int n_written = r < 0 ? 0 : rules_written(str_of(text), written, WRITTEN_MAX);
    /* With nothing writable but what is thrown away there is nothing to guard. */
    if (r == 0 && rules_mounts_read_only(str_of(text)))
        options[n++] = (struct pinfold_option){"guard", "off"};
    free(text);
    pinfold_policy_free(*ret);
    *ret = NULL;
    if (r == 0 && n_written < 0)
        return says_no(error->text, sizeof error->text, E2BIG,
                       "git.verify: the policy has more than %d writable places and private caches", WRITTEN_MAX);
    for (int i = 0; i < n_written; i++)
        options[n++] = (struct pinfold_option){access(written[i], F_OK) == 0 ? "ro" : "hide", written[i]};
    return r < 0 ? r : load_policy(options, c, ret, error);
}

static int hook_policy(struct one_push *p, struct pinfold_error *error)
{
    return load_hook_policy(p->checks, p->git, p->dir, &p->policy, error);
}

static void tell_client(const struct one_push *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell_client(const struct one_push *p, const char *format, ...)
{
    auto_buf struct buf text = BUF(65536);
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    push_say(p->fd, &p->push, buf_view(&text));
}

/* The last lines of what a hook has said. */
static struct str last_lines(struct str text)
{
    size_t at = text.n, lines = 0;
    while (at && lines < SAID_LINES) {
        at--;
        lines += at && text.p[at - 1] == '\n';
    }
    return str_skip(text, at);
}

/* All of it as one clause. */
static void put_failure(struct buf *why, struct str id, struct str subject, struct str first, struct str said)
{
    buf_printf(why, "commit %.*s (%.*s): %.*s", (int)(id.n < 12 ? id.n : 12), id.p,
               (int)(subject.n < 72 ? subject.n : 72), subject.p, (int)(first.n < 200 ? first.n : 200), first.p);
    while (said.n) {
        struct str line = str_trim(str_until(&said, '\n'));
        if (line.n)
            buf_printf(why, "; %.*s", (int)(line.n < 120 ? line.n : 120), line.p);
    }
}

static void tell_failure(struct one_push *p, const char *id, const char *first, struct str said)
{
    char path[96];
    auto_buf struct buf message = BUF(LISTED_MAX);
    snprintf(path, sizeof path, "commits/%s", id);
    (void)read_kept(p->stage, path, &message);
    struct str rest = buf_view(&message), subject = str_until(&rest, '\n');
    said = last_lines(said);
    if (p->checks->moves) {
        buf_free(&p->why);
        p->why = BUF(8192);
        put_failure(&p->why, str_of(id), subject, str_of(first), said);
    }
    tell_client(p, "pinfold: commit %.12s (%.*s): %s\n", id, (int)(subject.n < 72 ? subject.n : 72), subject.p, first);
    while (said.n) {
        struct str line = str_until(&said, '\n');
        tell_client(p, "    %.*s\n", (int)(line.n < 300 ? line.n : 300), line.p);
    }
}

/* Whether the commit of this line ("COMMIT REF TREE PARENTS") passed. -errno: it could not be judged. */
static int judge_commit(struct one_push *p, struct str line, struct pinfold_error *error)
{
    const struct checks *c = p->checks;
    char words[4][1024];
    for (size_t i = 0; i < 4; i++) {
        struct str word = str_until(&line, ' ');
        if (!word.n || word.n >= sizeof *words)
            return -EBADMSG;
        snprintf(words[i], sizeof words[i], "%.*s", (int)word.n, word.p);
    }
    const char *const argv[] = {REMOTE_HERE, "--judge", c->name,  c->real,  c->hooks,
                                words[0],    words[2],  words[1], words[3], NULL};
    const struct pinfold_run_options o = {
        .size = sizeof o, .argv = argv, .cwd = "/", .capture = 1, .capture_max = 65536, .keep_network = 1};
    struct pinfold_result *result;
    int r = pinfold_run(p->policy, &o, &result, error);
    if (r < 0)
        return r;
    r = pinfold_result_status(result);
    struct str said = str_of(pinfold_result_stdout(result, NULL)), first = str_until(&said, '\n');
    bool known = r >= HOOKS_FAILED && r <= HOOKS_CHANGE_MESSAGE && first.n;
    char what[256];
    snprintf(what, sizeof what, "%.*s", (int)(first.n < 200 ? first.n : 200), first.p);
    if (r != 0) {
        tell_failure(p, words[0], known ? what : "the hooks could not be run on it",
                     known ? said : str_of(pinfold_result_stdout(result, NULL)));
    }
    if (r != 0 && !c->moves) {
        buf_free(&p->why);
        p->why = BUF(1024);
        buf_printf(&p->why, "%s: commit %.12s", known ? what : "the hooks could not be run", words[0]);
    }
    pinfold_result_free(result);
    return r != 0;
}

static const char *why_not(const void *ctx, const struct gitpush_command *c)
{
    const struct one_push *p = ctx;
    return !p->refused.n || str_eq(c->ref, buf_view(&p->refused)) ? buf_cstr(&p->why) : NULL;
}

static bool is_gone(int fd)
{
    struct pollfd of = {.fd = fd};
    return poll(&of, 1, 0) > 0 && of.revents & (POLLHUP | POLLERR);
}

/* Has all new commits judged. 0: the push may be carried out; 1: not, `why` says why. */
static int judge_push(struct one_push *p)
{
    auto_buf struct buf list = BUF(LISTED_MAX);
    struct pinfold_error error = {0};
    const bool required = p->checks->rules->verify == PUSH_VERIFY_REQUIRED;
    size_t n = 0, failed = 0;
    bool good = read_kept(p->stage, "list", &list);
    for (size_t i = 0; i < list.n; i++)
        n += list.p[i] == '\n';
    int r = !good || n > PUSH_COMMITS ? -EBADMSG : n ? hook_policy(p, &error) : 0;
    if (r == 0 && n)
        tell_client(p, "pinfold: the hooks of the checkout judge %zu commit%s\n", n, n == 1 ? "" : "s");
    for (struct str rest = buf_view(&list); r == 0 && rest.n;) {
        struct str line = str_until(&rest, '\n'), words = line;
        (void)str_until(&words, ' ');
        struct str ref = str_until(&words, ' ');
        if (is_gone(p->fd))
            return 1;
        r = judge_commit(p, line, &error);
        if (r <= 0)
            continue;
        failed++;
        r = required;
        buf_free(&p->refused);
        p->refused = BUF(4096);
        buf_str(&p->refused, ref);
    }
    if (r < 0) {
        buf_free(&p->why);
        p->why = BUF(2048);
        buf_printf(&p->why, "its commits could not be judged: %s", error.text[0] ? error.text : strerror(-r));
        tell_client(p, "pinfold: %s\n", buf_cstr(&p->why));
        return 1;
    }
    if (failed && required)
        tell_client(p, "pinfold: nothing was pushed; amend that commit (git rebase -i), then push again\n");
    else if (failed)
        tell_client(p, "pinfold: pushed nevertheless (git.verify: told)\n");
    return r;
}

static int begin_push(struct one_push *p, struct pinfold_error *error)
{
    char path[sizeof p->dir + 8];
    snprintf(p->dir, sizeof p->dir, "%s/push-XXXXXX", p->checks->top);
    snprintf(path, sizeof path, "%s", mkdtemp(p->dir) ? p->dir : "");
    snprintf(path + strlen(path), sizeof path - strlen(path), "/stage");
    if (path[1] != 0 && mkdir(path, 0700) == 0 &&
        (p->stage = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
        return 0;
    return says_no(error->text, sizeof error->text, errno, "git.verify: what is pushed cannot be kept in '%.300s': %s",
                   p->checks->top, strerror(errno));
}

/* ---- carrying it out ---- */

/* Its box starts while hooks judge, and waits for a word. */
struct push_end {
    pid_t pid;
    int go, said; /* to it; its error's sentence */
    struct timespec begin;
};

static int land(const struct one_push *p, int in, struct pinfold_error *error)
{
    char stage[sizeof p->dir + 8];
    snprintf(stage, sizeof stage, "%s/stage", p->dir);
    const struct host_git h = {.fd = p->fd,
                               .in = in,
                               .git = p->git,
                               .real = p->checks->real,
                               .word = "--land",
                               .stage = stage,
                               .writes = true,
                               .rules = p->checks->rules};
    return host_git_box(&h, error);
}

static bool landing_begin(const struct one_push *p, struct push_end *l)
{
    int go[2], said[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return false;
    if (pipe2(said, O_CLOEXEC) < 0) {
        (void)close(go[0]);
        (void)close(go[1]);
        return false;
    }
    *l = (struct push_end){.go = go[1], .said = said[0]};
    (void)clock_gettime(CLOCK_MONOTONIC, &l->begin);
    l->pid = fork();
    if (l->pid == 0) {
        struct pinfold_error error = {0};
        (void)close(go[1]);
        (void)close(said[0]);
        int r = land(p, go[0], &error);
        (void)fd_write_all(said[1], error.text, strlen(error.text));
        _exit(r == 0 ? 0 : 1);
    }
    (void)close(go[0]);
    (void)close(said[1]);
    return true;
}

/* Says go, or that nothing is to be done. Whether it has ended well. */
static bool landing_end(struct push_end *l, bool go, struct pinfold_error *error)
{
    int status = 1;
    const bool told = l->pid > 0 && go && fd_write_all(l->go, "G", 1) == 0;
    (void)close(l->go);
    const ssize_t n = read(l->said, error->text, sizeof error->text - 1);
    error->text[n > 0 ? n : 0] = 0;
    (void)close(l->said);
    while (l->pid > 0 && waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return told && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Its box does not live for ever. */
static bool is_late(const struct push_end *l)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - l->begin.tv_sec > LANDING_WAITS;
}

static int staged(struct one_push *p, struct pinfold_error *error)
{
    auto_fd int commands = openat(p->stage, "commands", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct push_end l;
    if (commands < 0 || push_read(&p->push, commands) <= 0)
        return says_no(error->text, sizeof error->text, EBADMSG, "git.verify: what was pushed cannot be read again");
    if (!landing_begin(p, &l))
        return says_no(error->text, sizeof error->text, errno, "git.verify: %s", strerror(errno));
    int r = judge_push(p);
    const bool go = r == 0 && !is_gone(p->fd), late = go && is_late(&l);
    bool landed = landing_end(&l, go && !late, error);
    if (late && landing_begin(p, &l))
        landed = landing_end(&l, true, error);
    if (go && !landed) {
        buf_free(&p->why);
        p->why = BUF(2048);
        buf_printf(&p->why, "it could not be carried out%s%s", error->text[0] ? ": " : "", error->text);
        r = 1;
    }
    if (r != 0)
        push_report(p->fd, &p->push, "ok", why_not, p);
    return 0;
}

int checks_serve(const struct checks *c, int fd, const char *git, struct pinfold_error *error)
{
    static struct one_push p;
    char stage[sizeof p.dir + 8];
    p = (struct one_push){
        .checks = c, .fd = fd, .git = git, .stage = -1, .push = PUSH_EMPTY, .why = BUF(2048), .refused = BUF(4096)};
    int r = begin_push(&p, error);
    snprintf(stage, sizeof stage, "%s/stage", p.dir);
    const struct host_git take = {
        .fd = fd, .git = git, .real = c->real, .word = "--take", .stage = stage, .rules = c->rules};
    if (r == 0)
        r = host_git_box(&take, error);
    if (r == PUSH_STAGED && staged(&p, error) < 0) {
        buf_text(&p.why, error->text);
        push_report(fd, &p.push, "ok", why_not, &p);
    }
    if (p.policy)
        pinfold_policy_free(p.policy);
    p.stage = close_fd(p.stage);
    remove_tree(AT_FDCWD, p.dir);
    return r < 0 ? r : 0;
}

/* ---- branches of the repository itself ---- */

int checks_begin_moves(const char *top, const char *real, const char *git, const char *cwd,
                       const struct pinfold_option *options, const struct push_rules *rules, struct checks *ret,
                       char *why, size_t room)
{
    struct pinfold_error error = {0};
    char more[sizeof ret->top + 8];
    *ret = (struct checks){.real = real, .git = git, .cwd = cwd, .rules = rules, .moves = true};
    project_word(real, ret->name);
    snprintf(ret->top, sizeof ret->top, "%s", top);
    snprintf(more, sizeof more, "%s/more", top);
    ret->more = access(more, F_OK) == 0;
    const struct pinfold_policy_options asked = {.size = sizeof asked, .options = options};
    int r = begin_checks(&asked, ret, why, room);
    if (r == 0 && (r = load_hook_policy(ret, git, NULL, &ret->policy, &error)) < 0)
        snprintf(why, room, "%s", error.text);
    return r;
}

static bool keep_file(int dir, const char *name, struct str text)
{
    auto_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && fd_write_all(fd, text.p, text.n) == 0;
}

/* What the box that takes them needs besides the repository. */
static int stage_asked(struct one_push *p, struct str moves, struct pinfold_error *error)
{
    char path[sizeof p->checks->top + 8];
    auto_buf struct buf upstream = BUF(LISTED_MAX);
    snprintf(path, sizeof path, "%s/start", p->checks->top);
    auto_fd int start = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (start >= 0 && read_kept(start, "upstream", &upstream) && keep_file(p->stage, "upstream", buf_view(&upstream)) &&
        keep_file(p->stage, "moves", moves))
        return 0;
    return says_no(error->text, sizeof error->text, EIO, "what is to be judged cannot be kept in '%.300s'", p->dir);
}

/* What push_check() has written: "COMMIT SUBJECT", what is wrong, and what the hook has said. */
static void take_failure(struct str said, struct buf *why)
{
    struct str subject = str_until(&said, '\n'), id = str_until(&subject, ' '), first = str_until(&said, '\n');
    put_failure(why, id, subject, first, last_lines(said));
}

/*
 * In one box, if there is no more than one new commit; its standard input is `in`. PUSH_STAGED: there are more. 0 and 1 as checks_moves();
 * NO_ANSWER: the box has ended before there was one.
 */
static int check_at_once(const struct checks *c, int in, struct buf *why, struct pinfold_error *error)
{
    const char *argv[RULES_WORDS + 8] = {REMOTE_HERE, "--check", c->name, c->real, c->hooks};
    auto_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const struct pinfold_run_options o = {.size = sizeof o,
                                          .argv = argv,
                                          .cwd = c->git,
                                          .use_fds = 1,
                                          .stdin_fd = in,
                                          .stdout_fd = nothing,
                                          .stderr_fd = nothing,
                                          .capture = 1,
                                          .capture_max = 65536,
                                          .leave = 1}; /* the verdict is there when its command has ended */
    struct pinfold_result *result;
    (void)push_rules_words(c->rules, argv + 5);
    int r = pinfold_run(c->policy, &o, &result, error);
    if (r < 0)
        return r;
    r = pinfold_result_status(result);
    const struct str said = str_of(pinfold_result_stdout(result, NULL));
    const bool answered = (r >= HOOKS_FAILED && r <= HOOKS_CANNOT) || r == CHECK_REFUSED || r == HOOKS_PASS;
    if (r >= HOOKS_FAILED && r <= HOOKS_CANNOT)
        take_failure(said, why);
    else if (r == CHECK_REFUSED)
        buf_str(why, said.n ? said : STR("its commits cannot be read"));
    else if (!answered && r != PUSH_STAGED)
        buf_printf(why, "the box of the hooks ended with status %d", r);
    pinfold_result_free(result);
    return r == HOOKS_PASS || r == PUSH_STAGED ? r : answered ? 1 : NO_ANSWER;
}

/* The same in a box that is begun for it. */
static int check_now(const struct checks *c, struct str moves, struct buf *why, struct pinfold_error *error)
{
    int to[2];
    if (pipe2(to, O_CLOEXEC) < 0)
        return says_no(error->text, sizeof error->text, errno, "git.verify: %s", strerror(errno));
    const bool given = moves.n > CHECKS_AT_ONCE || fd_write_all(to[1], moves.p, moves.n) == 0;
    (void)close(to[1]);
    const int r = moves.n > CHECKS_AT_ONCE ? PUSH_STAGED : given ? check_at_once(c, to[0], why, error) : -EIO;
    (void)close(to[0]);
    return r;
}

/* With a box for each. */
static int check_each(const struct checks *c, struct str moves, struct buf *why, struct pinfold_error *error)
{
    static struct one_push p;
    char stage[sizeof p.dir + 8], more[sizeof c->top + 8];
    auto_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    p = (struct one_push){.checks = c,
                          .fd = nothing,
                          .git = c->git,
                          .stage = -1,
                          .push = PUSH_EMPTY,
                          .why = BUF(4096),
                          .refused = BUF(4096)};
    int r = begin_push(&p, error);
    if (r == 0)
        r = stage_asked(&p, moves, error);
    snprintf(stage, sizeof stage, "%s/stage", p.dir);
    snprintf(more, sizeof more, "%s/more", c->top);
    const struct host_git take = {.fd = nothing,
                                  .git = c->git,
                                  .real = c->real,
                                  .word = "--moves",
                                  .stage = stage,
                                  .more = c->more ? more : NULL,
                                  .rules = c->rules};
    if (r == 0)
        r = host_git_box(&take, error);
    if (r == PUSH_STAGED) {
        r = judge_push(&p);
        buf_str(why, buf_view(&p.why));
    } else if (r == PUSH_ANSWERED && read_kept(p.stage, "why", why)) {
        r = 1;
    } else if (r >= 0) {
        r = says_no(error->text, sizeof error->text, EIO, "git cannot be asked about its commits in a box");
    }
    if (p.policy)
        pinfold_policy_free(p.policy);
    p.stage = close_fd(p.stage);
    remove_tree(AT_FDCWD, p.dir);
    return r;
}

/* The question, once it comes. False: none does. */
static bool take_asked(int from, bool *waited, char text[MOVES_TEXT + 2], struct str *ret)
{
    ssize_t n;
    do
        n = recv(from, text, MOVES_TEXT + 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 2)
        return false;
    *waited = text[0] == CHECKS_WAITED;
    *ret = (struct str){text + 1, (size_t)n - 1};
    return true;
}

int checks_moves(const struct checks *c, int box, int asked, struct buf *why, struct pinfold_error *error)
{
    static char text[MOVES_TEXT + 2];
    bool waited;
    struct str moves;
    int r = check_at_once(c, box, why, error);
    if (!take_asked(asked, &waited, text, &moves))
        return -ECANCELED;
    /* One that has waited may have met its own end: of its time, or by a machine that was short of memory. */
    if (waited && (r < 0 || r == NO_ANSWER)) {
        buf_free(why);
        *why = BUF(CHECKS_WHY);
        r = check_now(c, moves, why, error);
    }
    return r == PUSH_STAGED ? check_each(c, moves, why, error) : r == NO_ANSWER ? 1 : r;
}
