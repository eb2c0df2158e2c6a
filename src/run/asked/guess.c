/*
 * Reads the error text of a failed command as programs write it: a line with an errno's words and a path. Each path is asked
 * about on the plan; what the sandbox refuses there with that errno is a guess. The text is the box's own: it can make us
 * look at names, never open a file, and everything is bounded.
 */
#include "run/asked/guess.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "match/path.h"
#include "run/asked/denied.h"
#include "run/asked/monitor.h"
#include "run/asked/reason.h"
#include "supervisor/audit.h"
#include "supervisor/sink.h"

#define MAX_GUESS_TEXT  (64u << 10) /* of the end of the error text */
#define MAX_ALL_TEXT    (1u << 20)  /* the same, where all are asked for */
#define MAX_LINE_BYTES  2048
#define MAX_GUESS_LINES 50
#define MAX_GUESS_PATHS 6 /* of one line */
#define MAX_GUESSES     3
#define MAX_ALL_GUESSES 64
#define MAX_GUESS_ARENA (8u << 20)

struct guessing {
    struct pinfold_result *result;
    const struct plan *plan;
    const char *cwd;
    struct arena *mem;
    struct audit_log *log;
    unsigned n, most;
    const struct pinfold_run_options *options;
    char *argv; /* the command's line */
    bool names;
};

static const struct {
    const char *words;
    int no;
} errno_words[] = {{"permission denied", EACCES},
                   {"read-only file system", EROFS},
                   {"operation not permitted", EACCES},
                   {"value too large for defined data type", EOVERFLOW},
                   {"no such file or directory", ENOENT},
                   {"eacces", EACCES},
                   {"erofs", EROFS},
                   {"eperm", EACCES},
                   {"eoverflow", EOVERFLOW},
                   {"enoent", ENOENT}};

/* The errno that a line names, and where its words are. */
static int errno_in(struct str line, size_t *ret_at, size_t *ret_n)
{
    for (size_t i = 0; i < sizeof errno_words / sizeof *errno_words; i++) {
        size_t n = strlen(errno_words[i].words);
        for (size_t at = 0; at + n <= line.n; at++) {
            if (strncasecmp(line.p + at, errno_words[i].words, n) != 0)
                continue;
            *ret_at = at;
            *ret_n = n;
            return errno_words[i].no;
        }
    }
    return 0;
}

/* Whether an earlier denial is about the same, so that nothing needs to be guessed. */
static bool is_known(const struct box_result *r, const char *target)
{
    for (size_t i = 0; i < r->n_denials; i++) {
        if (same(r->denials[i].kind, "file") && same(r->denials[i].target, target))
            return true;
    }
    return false;
}

/* Whether ordinary permissions refuse it, as the monitor saw. */
static bool is_permissions(const struct box_result *r, const char *target)
{
    for (size_t i = 0; i < r->n_permissions; i++) {
        if (same(r->permissions[i].target, target))
            return true;
    }
    return false;
}

static void log_late(struct guessing *g, const struct denial *d)
{
    struct box_result *r = &g->result->box;
    struct audit_event event = denial_event(r, d);
    event.session = r->session;
    event.workspace = g->plan->workspace;
    struct denial told = *d;
    told.seen = false; /* the run has no monitor */
    say_denied(g->options, &told, g->result->policy->policy);
    sink_event(g->result->sink, &event);
    if (g->plan->facts->around || audit_is_nowhere())
        return; /* as in supervisor/denial.c */
    int no = g->log ? 0 : audit_open(&g->log);
    if (no == 0)
        no = audit_write(g->log, &event);
    if (no < 0)
        r->audit_errno = -no;
}

static void keep_guess(struct guessing *g, enum why_act act, const char *target, const struct why *said)
{
    struct box_result *r = &g->result->box;
    struct why_remedy remedy;
    struct err ignored = {0};
    if (reason_remedy(g->result->policy, act, target, said, g->mem, &remedy, &ignored) < 0)
        return;
    char *option =
        remedy.flag ? arena_printf(g->mem, "--%s%s%s", remedy.flag, remedy.value[0] ? " " : "", remedy.value) : NULL;
    char kind[] = "file", *action = arena_text(g->mem, why_act_name(act));
    char *rule = arena_text(g->mem, said->rule ? said->rule : "default");
    char *origin = arena_text(g->mem, said->origin ? said->origin : "built in");
    char *how = arena_text(g->mem, said->mechanism ? said->mechanism : "");
    char *to = arena_text(g->mem, said->target), *why = arena_text(g->mem, said->reason);
    if (arena_failed(g->mem))
        return;
    struct denial d = {.kind = kind,
                       .action = action,
                       .target = to,
                       .rule = rule,
                       .origin = origin,
                       .how = how,
                       .why = why,
                       .remedy = option ? option : arena_text_or_null(g->mem, remedy.outside),
                       .option = option != NULL,
                       .guess = true,
                       .argv = g->argv,
                       .no = said->no};
    d.remedy = denied_remedy(&d, g->result->terms.start_name, g->plan->policy->net, g->mem);
    if (!box_result_deny(r, &d))
        return;
    g->n++;
    log_late(g, &d);
}

/* True if the line is explained: the sandbox refuses this with that errno, or ordinary permissions do. */
static bool try_act(struct guessing *g, enum why_act act, const char *path, int no)
{
    struct why said;
    struct err ignored = {0};
    if (why_ask(g->plan, act, path, g->mem, &said, &ignored) < 0 || said.verdict != WHY_REFUSED || said.no != no)
        return false;
    if (said.cause == WHY_CAUSE_HOST && no == EACCES)
        box_result_permit(&g->result->box, why_act_name(act), said.target);
    if (said.cause == WHY_CAUSE_HOST)
        return no == EACCES;
    if (no == ENOENT && !g->names)
        return false;
    if (!is_known(&g->result->box, said.target) && !is_permissions(&g->result->box, said.target))
        keep_guess(g, act, path, &said);
    return true;
}

/* A layer makes no copy of what belongs to others: the box knows one user and one group, the caller's. */
static bool try_foreign(struct guessing *g, const char *path)
{
    struct box_result *r = &g->result->box;
    const char *clean = path_clean_at(g->mem, "/", str_of(path));
    struct stat st;
    if (!r->layer.id[0] || !clean || !g->plan->workspace || !path_below(clean, g->plan->workspace) ||
        lstat(clean, &st) < 0 || (st.st_uid == geteuid() && st.st_gid == getegid()) || is_known(r, clean))
        return false;
    char kind[] = "file", action[] = "write", rule[] = "copy-on-write", origin[] = "--cow", how[] = "overlayfs";
    char remedy[] = "give the file to yourself (chown, chgrp) before the run";
    char *target = arena_text(g->mem, clean);
    char *why = arena_text(g->mem, "it belongs to another user or group, and a layer cannot copy it");
    const struct denial d = {.kind = kind,
                             .action = action,
                             .target = target,
                             .rule = rule,
                             .origin = origin,
                             .how = how,
                             .why = why,
                             .remedy = remedy,
                             .guess = true,
                             .no = EOVERFLOW};
    const bool new = target &&why &&box_result_deny(r, &d);
    g->n += new;
    return new;
}

/* True if it explains the line. */
static bool try_path(struct guessing *g, struct str text, int no)
{
    if (text.n == 0 || text.n > 4000 || memchr(text.p, 0, text.n) || g->n >= g->most)
        return false;
    const char *path =
        text.p[0] == '/' ? arena_str(g->mem, text) : arena_printf(g->mem, "%s/%.*s", g->cwd, (int)text.n, text.p);
    if (!path)
        return false;
    if (no == EOVERFLOW)
        return try_foreign(g, path);
    if (no == EROFS)
        return try_act(g, WHY_CREATE, path, no);
    return try_act(g, WHY_READ, path, no) || (no == EACCES && try_act(g, WHY_CREATE, path, no));
}

/* What programs put around names. */
static bool is_quote(struct str s, size_t *ret_n)
{
    static const char quotes[][12] = {"'", "\"", "`", "\xe2\x80\x98", "\xe2\x80\x99"};
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++) {
        if (str_starts(s, str_of(quotes[i]))) {
            *ret_n = strlen(quotes[i]);
            return true;
        }
    }
    return false;
}

/* "cat: /etc/x: Permission denied", "open /etc/x: permission denied": what precedes the words, up to a colon or blank. */
static void try_before(struct guessing *g, struct str line, size_t at, int no)
{
    while (at && (line.p[at - 1] == ' ' || line.p[at - 1] == ':' || line.p[at - 1] == '['))
        at--;
    struct str head = {line.p, at};
    size_t from = at;
    while (from && !(line.p[from - 1] == ' ' && from > 1 && line.p[from - 2] == ':'))
        from--;
    struct str part = str_skip(head, from);
    (void)try_path(g, part, no);
    const char *blank = part.n ? memrchr(part.p, ' ', part.n) : NULL;
    if (blank)
        (void)try_path(g, str_skip(part, (size_t)(blank - part.p) + 1), no);
}

static void try_line(struct guessing *g, struct str line)
{
    size_t at, n, tried = 0, quote;
    int no = errno_in(line, &at, &n);
    bool explained = false; /* by a quoted name: the words before it are no name */
    if (!no || line.n > 8192)
        return;
    for (size_t i = 0; i < line.n && tried < MAX_GUESS_PATHS; i++) {
        if (!is_quote(str_skip(line, i), &quote))
            continue;
        size_t from = i + quote, end = from, close = 0;
        while (end < line.n && !is_quote(str_skip(line, end), &close))
            end++;
        if (end == line.n)
            break;
        explained |= try_path(g, (struct str){line.p + from, end - from}, no);
        tried++;
        i = end + close - 1;
    }
    if (!explained)
        try_before(g, line, at, no);
}

static void try_text(struct guessing *g, struct str text)
{
    const bool all = g->most == MAX_ALL_GUESSES;
    const size_t most = all ? MAX_ALL_TEXT : MAX_GUESS_TEXT;
    unsigned lines = 0;
    if (text.n > most)
        text = str_skip(text, text.n - most);
    while (text.n && (all || lines++ < MAX_GUESS_LINES * 8) && g->n < g->most && !arena_failed(g->mem)) {
        const struct str line = str_until(&text, '\n');
        if (!str_starts(line, STR("pinfold: "))) /* one in the box says why, and knows better */
            try_line(g, line);
    }
}

/* A full file system of the box's own: nothing else that it can write has an end before the host's has. */
static void try_disk(struct guessing *g)
{
    static const char full[][24] = {"No space left on device", "File too large", "ENOSPC", "EFBIG"};
    struct box_result *r = &g->result->box;
    const struct limit *disk = &g->plan->policy->limits.disk;
    char kind[] = "limit", action[] = "disk", rule[] = "limits.disk", how[] = "limit", room[512];
    bool said = false;
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        said |= strcasestr(buf_cstr(&r->err), full[i]) != NULL;
    if (!said || !disk->asked || disk->value == LIMIT_NONE || r->limit != BOX_LIMIT_NONE)
        return;
    char *target = arena_printf(g->mem, "%llu bytes", (unsigned long long)disk->value);
    char *origin = arena_text(g->mem, policy_origin(g->plan->policy, disk->origin, room, sizeof room));
    char *remedy = arena_printf(g->mem, "--disk %llu", 2 * (unsigned long long)disk->value);
    char why[] = "a file, and the box's private places together, hold no more";
    const struct denial d = {.kind = kind,
                             .action = action,
                             .target = target,
                             .rule = rule,
                             .origin = origin,
                             .how = how,
                             .why = why,
                             .remedy = remedy,
                             .option = true,
                             .guess = true,
                             .argv = g->argv,
                             .no = ENOSPC};
    if (!arena_failed(g->mem) && box_result_deny(r, &d))
        log_late(g, &d);
}

/* What the guard saw fail, now that the command has failed. */
static void try_pending(struct guessing *g)
{
    struct box_result *r = &g->result->box;
    struct monitoring m = {.policy = g->result->policy, .plan = g->plan, .names = g->names};
    for (size_t i = 0; i < r->n_pending; i++) {
        const struct pending_call *p = &r->pending[i];
        const struct failed_call call = {p->action, p->no, p->target};
        struct denial d = {.pid = p->pid, .seen = true, .argv = p->argv};
        const char *action = NULL;
        if (monitor_explain(&m, &call, g->mem, &d, &action) == EXPLAINED_DENIAL && box_result_deny(r, &d))
            log_late(g, &d);
    }
}

bool guess_is_worth_it(const struct box_result *r)
{
    size_t at, n;
    return r->end == BOX_EXITED && r->code != 0 && (r->exec_errno || errno_in(buf_view(&r->err), &at, &n));
}

/* Whether there is anything to guess from. */
static bool is_worth_it(const struct box_result *r, bool disk, bool all)
{
    size_t at, n;
    return r->exec_errno || r->n_pending || (disk && r->err.n) || errno_in(buf_view(&r->err), &at, &n) ||
           (all && errno_in(buf_view(&r->out), &at, &n));
}

static char *line_of(const char *const *argv)
{
    auto_buf struct buf words = BUF(MAX_LINE_BYTES);
    for (; *argv && words.n < MAX_LINE_BYTES / 2; argv++)
        buf_put(&words, *argv, strnlen(*argv, MAX_LINE_BYTES / 4) + 1);
    return buf_ok(&words) ? box_command_line(words.p, words.n) : NULL;
}

void guess_denials(struct pinfold_result *result, const struct plan_ask *ask, const struct pinfold_run_options *o)
{
    const bool names = o->foreground != 0, all = o->capture && o->guess_all;
    const char *const *argv = o->argv;
    struct box_result *r = &result->box;
    struct prepared again = {0};
    struct err ignored = {0};
    struct guessing g = {.result = result,
                         .plan = result->prepared.plan,
                         .most = all ? MAX_ALL_GUESSES : MAX_GUESSES,
                         .names = names,
                         .options = o};
    bool failed = r->end == BOX_EXITED && r->code != 0;

    if (!(failed || all) || !g.plan || g.plan->facts->unsandboxed ||
        !is_worth_it(r, g.plan->policy->limits.disk.asked, all))
        return;
    if (!g.plan->places) { /* given back while the command ran */
        if (prepare(result->policy, ask, false, &again, &ignored) < 0 || !again.plan)
            return;
        g.plan = again.plan;
    }
    g.cwd = g.plan->cwd;
    g.mem = arena_new(all ? 8 * MAX_GUESS_ARENA : MAX_GUESS_ARENA);
    g.argv = line_of(argv);
    if (g.mem && failed)
        try_pending(&g);
    if (g.mem && r->exec_errno)
        (void)try_act(&g, WHY_EXEC, argv[0], r->exec_errno);
    else if (g.mem)
        try_text(&g, buf_view(&r->err));
    if (g.mem && failed && g.plan->policy->limits.disk.asked)
        try_disk(&g);
    if (g.mem && all)
        try_text(&g, buf_view(&r->out));
    free(g.argv);
    g.log = audit_close(g.log);
    (void)arena_free(g.mem);
    if (again.plan)
        prepared_free(&again);
}
