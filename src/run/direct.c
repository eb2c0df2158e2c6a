/*
 * The public library, in process. pinfold_run() shows the order: prepare (survey, probe, plan), box_run, messages. Work
 * that this run does not need is not done: no locale, no name service, no digest unless it is reported.
 */
#include "run/direct.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agents/agents.h"
#include "base/fd.h"
#include "backends/engine.h"
#include "policy/set.h"
#include "protocol/guard_table.h"
#include "run/agent/agent_login.h"
#include "run/asked/denied.h"
#include "run/asked/guess.h"
#include "run/asked/env_seen.h"
#include "run/asked/hooks_seen.h"
#include "run/asked/inquiry.h"
#include "run/asked/monitor.h"
#include "run/asked/reason.h"
#include "run/layer/cow.h"
#include "run/moves.h"
#include "run/nested.h"
#include "run/planned.h"
#include "run/report.h"
#include "run/keys/ssh.h"
#include "run/trust.h"
#include "run/waits.h"
#include "run/words.h"
#include "supervisor/sink.h"

#define MAX_NOTES 5 /* denials said one by one; the rest is in the result and the audit */
#define MAX_SEEN  3 /* of the monitor: the last ones before the command failed */

extern char **environ;

int pinfold_policy_text(struct pinfold_policy *p, int how, char **ret, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct err e = {0};
    int r = policy_print(p->policy, (unsigned)how, &out);
    return r < 0 ? tell(error, &e, err_sys(&e, ERR_BUG, -r, "cannot print the policy")) : give(&out, ret, error);
}

int pinfold_policy_schema(char **ret, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct err e = {0};
    int r = policy_schema(&out);
    return r < 0 ? tell(error, &e, err_sys(&e, ERR_BUG, -r, "cannot print the schema")) : give(&out, ret, error);
}

/* What explain says beyond the plan: a start finds its limit itself. */
static void look_at_limits(struct plan *plan)
{
    struct rlimit files;
    plan->most_files = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;
}

static int print_plan(struct plan *plan, enum pinfold_explain_format format, int show_values, struct buf *out)
{
    look_at_limits(plan);
    return format == PINFOLD_EXPLAIN_JSON    ? plan_explain_json(plan, show_values != 0, out)
           : format == PINFOLD_EXPLAIN_BRIEF ? plan_explain_brief(plan, show_values != 0, out)
                                             : plan_explain(plan, show_values != 0, out);
}

int pinfold_explain_refused(struct pinfold_policy *p, enum pinfold_explain_format format, int show_values, char **ret,
                            struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct prepared n;
    struct err e = {0};
    struct plan_ask ask = {.cwd = planned_directory(p), .environ = (const char *const *)environ, .so_far = true};
    if (format == PINFOLD_EXPLAIN_COMMAND || cow_shown(p, &ask) < 0 || prepare_so_far(p, &ask, &n) < 0)
        return tell(error, &e, err_sys(&e, ERR_CANNOT, ENOENT, "there is no plan to show"));
    int r = print_plan(n.plan, format, show_values, &out);
    prepared_free(&n);
    return r < 0 ? tell(error, &e, err_sys(&e, ERR_BUG, -r, "cannot print the plan")) : give(&out, ret, error);
}

/* The plan of a run that would begin now. `ssh` is ended by the caller, here after an error. */
static int prepare_shown(struct pinfold_policy *p, const struct plan_ask *ask, struct ssh_ready *ssh,
                         struct prepared *ret, struct err *e)
{
    struct plan_ask shown = *ask;
    int r = ssh_begin(p, ssh, e);
    bool prepared = false;
    if (r == 0 && cow_shown(p, &shown) < 0)
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "explain");
    if (r == 0) {
        r = prepare(p, &shown, true, ret, e);
        prepared = r == 0;
    }
    if (r == 0)
        r = ssh_digest(ssh, ret->plan, e);
    if (r < 0 && prepared)
        prepared_free(ret);
    if (r < 0)
        ssh_end(p, ssh);
    return r;
}

int pinfold_explain(struct pinfold_policy *p, enum pinfold_explain_format format, int show_values, char **ret,
                    struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct prepared n;
    struct err e = {0};
    struct plan_ask ask = {.cwd = planned_directory(p), .environ = (const char *const *)environ};

    struct ssh_ready ssh;
    int r = prepare_shown(p, &ask, &ssh, &n, &e);
    if (r < 0)
        return tell(error, &e, r);
    r = plan_digests(n.plan, &e);
    if (r == 0)
        r = explain_command(&n, format, &e);
    if (r == 0 && format == PINFOLD_EXPLAIN_COMMAND)
        buf_text(&out, n.plan->command_text);
    else if (r == 0)
        r = print_plan(n.plan, format, show_values, &out);
    prepared_free(&n);
    ssh_end(p, &ssh);
    if (r < 0)
        return tell(error, &e, e.text[0] ? r : err_sys(&e, ERR_BUG, -r, "cannot print the plan"));
    return give(&out, ret, error);
}

int pinfold_explain_report(struct pinfold_policy *p, int show_values, struct pinfold_report **ret,
                           struct pinfold_error *error)
{
    struct pinfold_report *report = report_new();
    struct prepared n;
    struct err e = {0};
    struct plan_ask ask = {.cwd = planned_directory(p), .environ = (const char *const *)environ};

    struct ssh_ready ssh = SSH_READY;
    int r = report ? prepare_shown(p, &ask, &ssh, &n, &e) : 0;
    if (r < 0 || !report)
        return report_give(report, r, &e, ret, error);
    r = plan_digests(n.plan, &e);
    if (r == 0)
        r = explain_command(&n, PINFOLD_EXPLAIN_JSON, &e);
    if (r == 0)
        look_at_limits(n.plan);
    if (r == 0)
        plan_explain_members(n.plan, show_values != 0, &JSON_TREE(&report->values));
    prepared_free(&n);
    ssh_end(p, &ssh);
    return report_give(report, r, &e, ret, error);
}

static void say_line(const struct pinfold_run_options *o, enum pinfold_say what, const struct buf *words)
{
    if (o->say && words->n)
        o->say(o->say_ctx, what, buf_cstr(words));
}

/* `again`: what was said first could not be. */
static void say_header(const struct pinfold_run_options *o, const struct plan *plan, bool again)
{
    auto_buf struct buf words = BUF(MAX_WORDS);
    if (!o->say)
        return;
    if (plan->facts->unsandboxed) {
        words_unsandboxed(plan, &words);
        say_line(o, PINFOLD_SAY_WARNING, &words);
        buf_free(&words);
    }
    buf_text(&words, again ? "instead: " : "");
    words_header(plan, &words);
    say_line(o, PINFOLD_SAY_HEADER, &words);
    buf_free(&words);
    words_around(plan, &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    buf_free(&words);
    if (!again)
        words_ignored(plan->policy, &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    buf_free(&words);
    if (!again)
        words_missing(plan->policy, &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    buf_free(&words);
    if (!again)
        words_image_start(plan, !o->argv[0], &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    const char *const notes[] = {plan->names_denied, plan->root_note, plan->facts->repository_note,
                                 plan->facts->bounds_note};
    for (size_t i = 0; i < sizeof notes / sizeof *notes && !again; i++) {
        if (!notes[i])
            continue;
        buf_free(&words);
        words_safe(&words, notes[i]);
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
}

static void say_errors(const struct pinfold_run_options *o, const struct box_result *r)
{
    auto_buf struct buf words = BUF(MAX_WORDS);
    words_errors(r, o->argv[0], &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
}

static bool said_before(const struct box_result *r, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        const struct denial *a = &r->denials[k], *b = &r->denials[i];
        if (same(a->target, b->target) && same(a->action, b->action) &&
            same(a->why ? a->why : "", b->why ? b->why : ""))
            return true;
    }
    return false;
}

static bool has_succeeded(const struct box_result *r)
{
    return r->end == BOX_EXITED && r->code == 0;
}

/* How many of what the monitor saw are not said: programs try much, and cope; all if the command did. */
static size_t seen_before(const struct box_result *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_denials; i++)
        n += r->denials[i].seen && !said_before(r, i);
    if (has_succeeded(r))
        return n;
    return n > MAX_SEEN ? n - MAX_SEEN : 0;
}

static void say_left(const struct pinfold_run_options *o, const struct box_result *r)
{
    auto_buf struct buf words = BUF(MAX_WORDS);
    for (size_t i = 0; i < r->n_left && i < MAX_NOTES; i++) {
        buf_free(&words);
        words_left(&r->left[i], &words);
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
    size_t more = (r->n_left > MAX_NOTES ? r->n_left - MAX_NOTES : 0) + r->left_dropped;
    if (more) {
        buf_free(&words);
        buf_printf(&words, "%zu more were left; list them with: pinfold log", more);
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
    if (r->left_untold) {
        buf_free(&words);
        buf_printf(&words,
                   "%zu more links, FIFOs, repositories or branch names were left than can be listed: inspect the "
                   "workspace before you continue there",
                   r->left_untold);
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
}

/*
 * What cargo tries in passing, with each build: it locks its cache if it can, and goes on without. So does bun with node_modules, which
 * is told only where the command failed. In the result and the log like others.
 */
static bool is_in_passing(const struct denial *d, bool succeeded)
{
    static const char *const ends[] = {"/.cargo/.package-cache", "/.cargo/.package-cache-mutate",
                                       "/.cargo/.global-cache"};
    if (succeeded && same(d->rule, GUARD_WHY_LOCK))
        return true;
    for (size_t i = 0; same(d->kind, "file") && i < sizeof ends / sizeof *ends; i++) {
        if (str_ends(str_of(d->target), str_of(ends[i])))
            return true;
    }
    return false;
}

/*
 * What a pinfold in the box tries first, and then does in another way: namespaces, its usual places. What it cannot do it says itself.
 * In the result and the log like others.
 */
static bool is_tried_by_pinfold(const struct denial *d)
{
    struct str line = str_of(d->argv ? d->argv : "");
    const struct str program = str_until(&line, ' ');
    const bool tried = same(d->kind, "namespace") || d->seen || same(d->how, "mount");
    return tried && (str_is(program, "pinfold") || str_ends(program, STR("/pinfold")));
}

void say_notes(const struct pinfold_run_options *o, const struct pinfold_result *result)
{
    auto_buf struct buf words = BUF(MAX_WORDS);
    const struct box_result *r = &result->box;
    const struct box_terms *terms = &result->terms;
    size_t said = 0, left = r->denials_dropped;

    if (!o->say)
        return;
    say_errors(o, r);
    words_limit(r, terms->limits, &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    size_t seen = seen_before(r);
    for (size_t i = 0; i < r->n_denials; i++) {
        if (said_before(r, i) || same(r->denials[i].kind, "limit") /* which is said already */ ||
            is_in_passing(&r->denials[i], has_succeeded(r)) || is_tried_by_pinfold(&r->denials[i]))
            continue;
        if (r->denials[i].seen && seen && seen--)
            continue;
        if (said == MAX_NOTES) {
            left++;
            continue;
        }
        buf_free(&words);
        (void)words_denial(&r->denials[i], terms->policy, has_succeeded(r), &words);
        if (terms->start_name)
            words_in_session(&r->denials[i], terms->start_name, terms->net, &words);
        say_line(o, PINFOLD_SAY_NOTE, &words);
        said++;
    }
    for (size_t i = 0; i < r->n_permissions; i++) {
        if (same(r->permissions[i].action, "exec")) /* the command line's own message says that */
            continue;
        buf_free(&words);
        buf_printf(&words, "file: %s '", r->permissions[i].action);
        words_safe(&words, r->permissions[i].target);
        buf_text(&words, "' is refused by ordinary permissions, not by the sandbox");
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
    if (left) {
        buf_free(&words);
        buf_printf(&words, "%zu more were denied; list %s with: pinfold log", left,
                   r->denials_dropped ? "the first of them" : "them");
        say_line(o, PINFOLD_SAY_NOTE, &words);
    }
    say_left(o, r);
}

static void say_rest(const struct pinfold_run_options *o, const struct pinfold_result *result,
                     const struct env_seen *env)
{
    auto_buf struct buf words = BUF(MAX_WORDS);
    if (!o->say)
        return;
    say_notes(o, result);
    env_words(result->policy->policy, env, &result->box, result->policy->layers.world.state, &words);
    say_line(o, PINFOLD_SAY_NOTE, &words);
    buf_free(&words);
    words_closing(&result->box, &words);
    say_line(o, PINFOLD_SAY_CLOSING, &words);
}

/* It goes into the result and into each line of the audit log, whose readers must be able to trust a line. */
int caller_id_check(const char *id, struct err *e)
{
    const size_t n = id ? strlen(id) : 1;
    if (n == 0 || n >= CALLER_ID_ROOM)
        return err_say(e, ERR_POLICY, "--id: write 1 to %u bytes", CALLER_ID_ROOM - 1);
    for (const char *p = id; p && *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_say(e, ERR_POLICY, "--id: it has a control character; leave that out");
    }
    return 0;
}

/* Only an image has a command of its own; whether this one has is known when it was asked for. */
static int check_run(const struct pinfold_policy *p, struct pinfold_run_options *o, struct err *e)
{
    static const char *const none[] = {NULL};
    if (!o->argv)
        o->argv = none;
    if (!o->argv[0] && !p->policy->image)
        return err_say(e, ERR_POLICY, "no command was given; only an image (--image) has one of its own");
    if (o->argv[0] && o->argv[0][0] == 0)
        return err_say(e, ERR_POLICY, "the command's name is empty");
    if (o->cwd && o->cwd[0] != '/')
        return err_say(e, ERR_POLICY, "the start directory '%s' must be an absolute path", o->cwd);
    const int r = planned_file_limit(e);
    return r < 0 ? r : caller_id_check(o->id, e);
}

struct run_caller { /* of the callbacks */
    const struct pinfold_run_options *o;
    const struct pinfold_policy *policy;
};

static void denied(void *ctx, const struct denial *d)
{
    const struct run_caller *c = ctx;
    say_denied(c->o, d, c->policy->policy);
}

static void question(void *ctx, const struct box_question *q, bool *ret_allow, bool *ret_run)
{
    const struct run_caller *c = ctx;
    const struct pinfold_run_options *o = c->o;
    struct pinfold_question asked = {.size = sizeof asked,
                                     .target = q->target,
                                     .how = q->how,
                                     .command = q->command,
                                     .pid = q->pid,
                                     .timeout_ms = q->left_ms};
    if (same(q->how, BOX_QUESTION_WRITE) && !reason_is_read_only(c->policy, q->target))
        return;
    enum pinfold_answer a = o->ask(o->ask_ctx, &asked);
    *ret_allow = a == PINFOLD_YES || a == PINFOLD_ALWAYS;
    *ret_run = a == PINFOLD_NEVER || a == PINFOLD_ALWAYS;
}

/*
 * What is executed. A command is the caller's own unless --entrypoint image says otherwise, so that it means the same with every
 * engine; without one the image is started as docker run does: its ENTRYPOINT with its CMD behind it. NULL: no memory; it may be empty.
 */
static const char *const *words_executed(const struct plan *plan, const char *const *argv, struct arena *mem)
{
    static const char *const none[] = {NULL};
    const struct image_fact *image = plan->facts->image;
    const enum entrypoint_mode mode = plan->policy->entrypoint;
    const bool own = !argv[0], runs = mode == ENTRYPOINT_IMAGE || (own && mode == ENTRYPOINT_UNSAID);
    const char *const *entrypoint = image && image->entrypoint && runs ? image->entrypoint : none;
    size_t before = 0, words = 0;
    if (own)
        argv = image && image->cmd ? image->cmd : none;
    while (entrypoint[before])
        before++;
    while (argv[words])
        words++;
    if (!before)
        return argv;
    const char **ret = arena_zero(mem, (before + words + 1) * sizeof *ret);
    for (size_t i = 0; ret && i < before + words; i++)
        ret[i] = i < before ? entrypoint[i] : argv[i - before];
    return ret;
}

static int no_words_executed(const struct plan *plan, struct err *e)
{
    const struct image_fact *image = plan->facts->image;
    if (!image)
        return err_say(e, ERR_POLICY, "no command was given; only an image, in docker or podman, has one of its own");
    return err_say(e, ERR_POLICY, "the image '%s' has %s; give a command: pinfold run [OPTIONS] -- COMMAND [ARG...]",
                   image->name,
                   image->entrypoint && image->entrypoint[0] ? "no CMD, and --entrypoint none leaves its ENTRYPOINT out"
                                                             : "neither an ENTRYPOINT nor a CMD");
}

static int start_planned(struct pinfold_result *result, const struct pinfold_run_options *o, const struct plan_ask *ask,
                         const int stdio[3], const struct ssh_ready *ssh, bool again, struct err *e)
{
    struct planned_memory memory = {.prepared = &result->prepared, .policy = result->policy};
    struct run_spec spec = planned_spec(&memory);
    spec.start.argv = words_executed(spec.start.plan, o->argv, result->prepared.mem);
    if (!spec.start.argv)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the command");
    if (!spec.start.argv[0])
        return no_words_executed(spec.start.plan, e);
    if (!spec.start.argv[0][0])
        return err_say(e, ERR_POLICY, "the first word of the image's own command is empty; give a command");
    spec.start.net_kept = o->keep_network ? &result->policy->net_kept : NULL;
    spec.command = (struct box_command){.stdio = {stdio[0], stdio[1], stdio[2]},
                                        .capture = o->capture != 0,
                                        .capture_max = o->capture_max ? o->capture_max : DEFAULT_CAPTURE,
                                        .output = o->output,
                                        .output_ctx = o->output_ctx,
                                        .tty = ask->tty ? result->policy->policy->tty : TTY_NEVER,
                                        .foreground = o->foreground != 0,
                                        .caller_id = o->id};
    spec.on_question = o->ask ? question : NULL;
    spec.on_denial = o->denied ? denied : NULL;
    spec.sink = result->sink;
    const struct run_caller caller = {o, result->policy};
    spec.ctx = (void *)(uintptr_t)&caller;
    spec.leave = o->leave != 0;
    spec.control_fd = o->control_fd;
    spec.ssh = ssh_box(ssh);
    spec.gpg = gpg_box(ssh);
    spec.browser = login_browser();
    struct monitoring monitoring = {.policy = result->policy, .plan = spec.start.plan, .names = o->foreground != 0};
    if (result->policy->policy->monitor) {
        spec.explain = monitor_explain;
        spec.explain_ctx = &monitoring;
        spec.lasting = NULL; /* the plan is asked while the command runs */
    }
    spec.answer = inquiry_answer;
    spec.answer_ctx = result->policy;
    struct moves_checker checker;
    int r = again && result->layer ? layer_again(&result->layer->layer, e) : 0;
    if (r < 0)
        return r;
    r = moves_begin(result->policy, spec.start.plan, result->layer ? &result->layer->layer : NULL, &checker, e);
    if (r < 0)
        return r;
    spec.moves = checker.socket;
    say_header(o, spec.start.plan, again);
    struct cow_beside beside;
    cow_beside(&spec, result->layer, &beside);
    waits_end();
    r = box_run(&spec, &result->box, e);
    cow_beside_end(&beside);
    moves_end(&checker);
    return r;
}

/*
 * User namespaces are assumed until they fail: to know beforehand costs more than a start (backends/engine.h, "Hopeful
 * facts"). What a thorough look then finds missing, the new plan names; it is an error or a loss.
 */
static int start_box(struct pinfold_result *result, const struct pinfold_run_options *o, struct plan_ask *ask,
                     const int stdio[3], struct err *e)
{
    struct private_dirs dirs = PRIVATE_DIRS;
    struct ssh_ready ssh;
    struct err first = {0};
    const struct engine *tried = NULL;

    int r = ssh_begin(result->policy, &ssh, e);
    if (r == 0)
        r = planned_make(result->policy, ask, nested_in_box(), &dirs, &result->prepared, e);
    if (r == 0)
        r = ssh_digest(&ssh, result->prepared.plan, e);
    if (r == 0) {
        tried = result->prepared.engine;
        r = start_planned(result, o, ask, stdio, &ssh, false, e);
    }
    if (r == -ENGINE_STALE && nested_allowed()) {
        first = *e;
        private_end(&dirs);
        prepared_free(&result->prepared);
        r = planned_make(result->policy, ask, true, &dirs, &result->prepared, e);
        if (r == 0)
            r = ssh_digest(&ssh, result->prepared.plan, e);
        if (r == 0)
            r = start_planned(result, o, ask, stdio, &ssh, true, e);
        if (r == -ENGINE_STALE)
            *e = first;
    }
    if (r < 0)
        r = engine_after(result->policy, ask, tried, r, e);
    planned_end(&dirs);
    ssh_end(result->policy, &ssh);
    return r < 0 ? nested_remedy(e, r) : r;
}

/* The layer of `cow` around it. Apart, so that what it keeps is not on the stack of a box without one for as long as that runs. */
__attribute__((noinline)) static int start_layered(struct pinfold_result *result, const struct pinfold_run_options *o,
                                                   struct plan_ask *ask, const int stdio[3], struct err *e)
{
    struct layer_held held;
    struct box_layer layer;
    auto_arena struct arena *mem = arena_new(MAX_PLAN_ARENA);
    if (!mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "run");
    int r = cow_begin(result->policy, o, NULL, mem, &held, ask, e);
    const char *limit = r == 0 && o->say ? cow_limit(held.layer.workspace, mem) : NULL;
    if (limit)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, limit);
    result->layer = r == 0 ? &held : NULL;
    if (r == 0)
        r = start_box(result, o, ask, stdio, e);
    result->layer = NULL;
    ask->layer = NULL;
    r = cow_end(result->policy, o, mem, &held, r, &layer, e);
    result->box.layer = layer;
    return r;
}

int stdio_of(const int given[3], bool use_fds, int *null, int stdio[3], struct err *e)
{
    for (int i = 0; i < 3; i++) {
        stdio[i] = use_fds ? given[i] : i;
        if (stdio[i] >= 0)
            continue;
        if (*null < 0)
            *null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (*null < 0)
            return err_sys(e, ERR_SYSTEM, errno, "cannot open '/dev/null'");
        stdio[i] = *null;
    }
    return 0;
}

static bool is_read_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

int pinfold_run(struct pinfold_policy *p, const struct pinfold_run_options *options, struct pinfold_result **ret,
                struct pinfold_error *error)
{
    struct err e = {0};
    struct pinfold_run_options o;
    auto_fd int null = -1;
    int stdio[3];

    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0)
        r = check_run(p, &o, &e);
    if (r == 0)
        r = stdio_of((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, &null, stdio, &e);
    struct pinfold_result *result = r == 0 ? calloc(1, sizeof *result) : NULL;
    if (r == 0 && !result)
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "run");
    if (!result)
        return tell(error, &e, r);
    result->policy = p;
    p->users++;
    result->captured = o.capture != 0;
    result->json = BUF(MAX_ANSWER_TEXT);
    result->values = VALUES(MAX_REPORT);
    struct plan_ask ask = {.cwd = o.cwd ? o.cwd : planned_directory(p),
                           .cwd_said = o.cwd != NULL,
                           .of_image = !o.argv[0],
                           .environ = o.env ? o.env : (const char *const *)environ,
                           .tty = o.foreground && box_wants_tty(p->policy->tty, stdio, o.capture != 0)};
    ask.piped = is_read_pipe(stdio[0]);
    if (o.ask && o.ask_writes)
        ask.grants = p->policy->net_ask_ms;
    char instance[16];
    snprintf(instance, sizeof instance, "%d", (int)getpid());
    ask.instance = instance;
    struct env_seen before;
    struct hooks_seen hooks;
    if (!o.cow && (p->policy->cow || o.cow_from))
        o.cow = "";
    env_look(p->policy, &before);
    hooks_look(p->policy, &hooks);
    if (o.events)
        r = sink_open(o.events, &result->sink, &e);
    if (r == 0)
        r = o.cow ? start_layered(result, &o, &ask, stdio, &e) : start_box(result, &o, &ask, stdio, &e);
    if (r < 0) {
        hooks_seen_free(&hooks);
        pinfold_result_free(result);
        return tell(error, &e, r);
    }
    result->terms = box_terms(result->prepared.plan);
    result->terms.offer = denied_offer;
    if (!o.argv[0]) { /* the plan's memory with its words is given back; what is reported of the image stays */
        static const char *const unknown[] = {"the image's command", NULL};
        const struct plan *plan = result->prepared.plan;
        result->mem = arena_new(MAX_PLAN_ARENA);
        const char *const *ran = result->mem && plan ? words_executed(plan, o.argv, result->mem) : NULL;
        o.argv = ran && ran[0] ? ran : unknown;
    }
    guess_denials(result, &ask, &o);
    result->box.events_errno = -sink_close(result->sink);
    result->sink = NULL;
    env_replaced(p->policy, &before, &result->box);
    hooks_changed(p->policy, &hooks, &result->box);
    say_rest(&o, result, &before);
    cow_say(&o, &result->box.layer);
    *ret = result;
    return 0;
}

void pinfold_result_free(struct pinfold_result *r)
{
    if (!r)
        return;
    (void)sink_close(r->sink);
    box_result_free(&r->box);
    prepared_free(&r->prepared);
    buf_free(&r->json);
    values_free(&r->values);
    pinfold_policy_free(r->policy);
    struct arena *mem = r->mem;
    if (!r->in_mem)
        free(r);
    (void)arena_free(mem);
}

const char *pinfold_result_note(const struct pinfold_result *r)
{
    return r->note ? r->note : "";
}

enum pinfold_end pinfold_result_end(const struct pinfold_result *r)
{
    switch (r->box.end) {
    case BOX_EXITED:
        return PINFOLD_EXITED;
    case BOX_SIGNALED:
        return PINFOLD_SIGNALED;
    case BOX_TIMED_OUT:
        return PINFOLD_TIMED_OUT;
    case BOX_LIMIT:
        return PINFOLD_LIMIT;
    case BOX_LOST:
        break;
    }
    return PINFOLD_SANDBOX;
}

int pinfold_result_code(const struct pinfold_result *r)
{
    return r->box.code;
}

int pinfold_result_status(const struct pinfold_result *r)
{
    return box_result_status(&r->box);
}

int pinfold_result_reraise(const struct pinfold_result *r)
{
    return r->box.reraise;
}

const char *pinfold_result_stdout(const struct pinfold_result *r, size_t *ret_n)
{
    if (ret_n)
        *ret_n = r->box.out.n;
    return buf_cstr(&r->box.out);
}

const char *pinfold_result_stderr(const struct pinfold_result *r, size_t *ret_n)
{
    if (ret_n)
        *ret_n = r->box.err.n;
    return buf_cstr(&r->box.err);
}

/* The policy's own digest is that of the run before, where it was the same engine's: its text need not be made again. */
static int digests_make(struct pinfold_policy *p, struct plan *plan)
{
    bool usual = p && !plan->facts->image && strlen(plan->facts->engine) < sizeof p->digest_of;
    if (plan->digest[0])
        return 0;
    if (usual && p->digest[0] && same(p->digest_of, plan->facts->engine))
        memcpy(plan->policy_digest, p->digest, sizeof p->digest);
    int r = plan_digests(plan, NULL);
    if (r == 0 && usual) {
        strcpy(p->digest_of, plan->facts->engine);
        memcpy(p->digest, plan->policy_digest, sizeof p->digest);
    }
    return r;
}

/* What is only known when somebody asks: digests, and of a command in a session what was denied to it. */
static int complete(struct pinfold_result *r)
{
    if (r->complete)
        r->complete(r);
    r->complete = NULL;
    return r->prepared.plan ? digests_make(r->policy, r->prepared.plan) : 0;
}

const char *pinfold_result_json(const struct pinfold_result *result)
{
    struct pinfold_result *r = (struct pinfold_result *)(uintptr_t)result; /* `json` is a memory of the answer */

    if (r->json.n == 0 && (complete(r) < 0 || box_result_json(&r->box, &r->terms, r->captured, &r->json) < 0))
        buf_free(&r->json);
    return buf_cstr(&r->json);
}

const struct value_node *result_values(const struct pinfold_result *result)
{
    struct pinfold_result *r = (struct pinfold_result *)(uintptr_t)result; /* as above */

    if (r->values.b.n == 0 && complete(r) == 0)
        box_result_members(&r->box, &r->terms, r->captured, &JSON_TREE(&r->values));
    return values_whole(&r->values);
}

/*
 * The policy travels whole, in pinfold's language, as one argument: what a file or a variable says later changes
 * nothing. The kernel takes up to 128 KiB in one argument (MAX_ARG_STRLEN).
 */
int pinfold_wrap(struct pinfold_policy *p, const char *const *argv, char ***ret, struct pinfold_error *error)
{
    static const char *const head[] = {"run", "--policy-text"};
    auto_buf struct buf text = BUF(127u << 10);
    struct err e = {0};
    char program[PATH_MAX];
    size_t n = 0, bytes = 0;

    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, errno, "cannot find the program (/proc/self/exe)"));
    program[length] = 0;
    if (policy_print(p->policy, 0, &text) < 0 || !buf_ok(&text))
        return tell(
            error, &e,
            err_say(&e, ERR_CANNOT, "the policy is longer than one argument can be (127 KiB); put it into a file"));
    for (; argv && argv[n]; n++)
        bytes += strlen(argv[n]) + 1;
    if (n == 0)
        return tell(error, &e, err_say(&e, ERR_POLICY, "no command was given"));
    const char *parts[5] = {program, head[0], head[1], buf_cstr(&text), "--"};
    for (size_t i = 0; i < 5; i++)
        bytes += strlen(parts[i]) + 1;
    char **list = malloc((n + 6) * sizeof *list + bytes);
    if (!list)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "wrap"));
    char *at = (char *)(list + n + 6);
    for (size_t i = 0; i < n + 5; i++) {
        const char *from = i < 5 ? parts[i] : argv[i - 5];
        size_t size = strlen(from) + 1;
        list[i] = memcpy(at, from, size);
        at += size;
    }
    list[n + 5] = NULL;
    *ret = list;
    return 0;
}

int pinfold_trust(const char *path, int withdraw, char **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_LAYERS_BYTES);
    auto_buf struct buf out = BUF(MAX_WORDS + PATH_MAX);
    struct err e = {0};
    const char *state, *sentence = NULL;

    int r = mem ? world_state(mem, &state, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "trust");
    if (r == 0)
        r = trust_say(mem, state, path, withdraw != 0, &sentence, &e);
    if (r < 0)
        return tell(error, &e, r);
    words_safe(&out, sentence ? sentence : "");
    return give(&out, ret, error);
}

int pinfold_path_judge(const char *what, const char *path, char **ret, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    auto_buf struct buf out = BUF(PATH_MAX);
    const char *state = NULL;
    char real[PATH_MAX];
    struct err e = {0}, ignored = {0};
    if (mem)
        (void)world_state(mem, &state, &ignored);
    int r = world_judge(state, what, path, real, NULL, &e);
    if (r < 0)
        return tell(error, &e, r == -EPERM ? r : err_sys(&e, ERR_SYSTEM, -r, "%s %s", what, path));
    buf_text(&out, real);
    return give(&out, ret, error);
}

int pinfold_names_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = report_new();
    struct err e = {0};
    if (!report)
        return report_give(NULL, 0, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    json_array(&j, "guarantees");
    for (int f = 0; f < FEATURE_COUNT; f++) {
        json_object(&j, NULL);
        json_text(&j, "name", feature_name((enum feature)f));
        json_text(&j, "promises", feature_text((enum feature)f));
        json_object_end(&j);
    }
    json_array_end(&j);
    json_array(&j, "host_sets");
    for (const struct host_set *s = host_set_table; s->name; s++)
        json_text(&j, NULL, s->name);
    json_array_end(&j);
    json_array(&j, "agents");
    for (const struct agent_text *t = agent_texts; t->name; t++)
        json_text(&j, NULL, t->name);
    json_array_end(&j);
    json_object_end(&j);
    return report_give(report, 0, &e, ret, error);
}
