/*
 * A command in a session: its image and descriptors go to the session daemon, everything else is between pid 1 and this
 * process (box_exec in supervisor/run.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/asked/denied.h"
#include "run/asked/guess.h"
#include "run/nested.h"
#include "run/report.h"
#include "session/said.h"
#include "sessiond/sessiond.h"
#include "session/ask.h"
#include "session/inside.h"
#include "session/replaced.h"
#include "session/session.h"
#include "session/shell.h"
#include "supervisor/audit.h"
#include "supervisor/parts.h"
#include "protocol/job.h"
#include "user/umask.h"

#define MAX_SAID (64u << 20) /* what a command is told, by the box's names */

static uint32_t session_umask(void)
{
    uint32_t asked;
    if (umask_asked(&asked))
        return asked;
    mode_t mask = umask(077);
    (void)umask(mask);
    return mask;
}

static int check_exec(const struct pinfold_exec_options *o, struct err *e)
{
    if (!o->argv || !o->argv[0])
        return err_say(e, ERR_POLICY, "no command was given");
    if (o->argv[0][0] == 0)
        return err_say(e, ERR_POLICY, o->shell ? "the command is empty" : "the command's name is empty");
    if (o->cwd && o->cwd[0] != '/')
        return err_say(e, ERR_POLICY, "the start directory '%s' must be an absolute path, as the box sees it", o->cwd);
    if (o->shell && (o->memory_max || o->processes_max))
        return err_say(e, ERR_CANNOT,
                       "a command in a persistent shell cannot have limits of its own; the session's limits apply");
    if (o->shell && o->argv[1])
        return err_say(e, ERR_POLICY, "a command for a persistent shell must be a single argument");
    if (o->shell && o->id)
        return err_say(e, ERR_CANNOT,
                       "--id: a command in a persistent shell is one of several that share their processes");
    for (const char *const *v = o->env; v && *v; v++) {
        if (!strchr(*v, '=') || (*v)[0] == '=')
            return err_say(e, ERR_POLICY, "the variable '%s' is not NAME=VALUE", *v);
    }
    return caller_id_check(o->id, e);
}

struct sending {
    struct pinfold_session *session;
    const struct pinfold_exec_options *o;
};

static int send_command(void *ctx, const int stdio[3], bool tty, unsigned rows, unsigned columns, uint32_t umask,
                        int *ret_socket, struct err *e)
{
    const struct sending *s = ctx;
    char most[1024]; /* as a rule */
    auto_buf struct buf image = BUF_LENT(most, JOB_MAX_BYTES + 1);
    struct err ignored = {0};
    auto_fd int fd = -1;
    int own[3], r = exec_image(s->o, job_flags(tty, stdio), rows, columns, umask, &image, e);
    unsigned n = 0;
    for (int i = 0; i < 3; i++) {
        if (stdio[i] >= 0 || !tty)
            own[n++] = stdio[i];
    }
    if (r == 0)
        fd = take_fd(&s->session->soon);
    /* If that was closed meanwhile its daemon is ending, or another has its place. */
    const bool sent =
        fd >= 0 && ask_send(fd, (struct keep_request){.op = KEEP_EXEC}, buf_view(&image), own, n, &ignored) == 0;
    fd = sent ? take_fd(&fd) : close_fd(fd);
    if (r == 0 && !sent)
        r = session_connect(&s->session->place, s->session->mem, &fd, e);
    if (r == 0 && !sent)
        r = ask_send(fd, (struct keep_request){.op = KEEP_EXEC}, buf_view(&image), own, n, e);
    if (r == 0)
        *ret_socket = take_fd(&fd);
    return r;
}

/* ---- what was refused to a command ---- */

/* What is a refusal only because the command failed: the session daemon, which logs the others, does not know that. */
static void log_failed(struct pinfold_result *result)
{
    struct box_result *r = &result->box;
    struct audit_log *log = NULL;
    int no = 0;
    for (size_t i = 0; i < r->n_denials && no == 0 && !audit_is_nowhere() && !nested_in_box(); i++) {
        if (!r->denials[i].soft)
            continue;
        if (!r->id[0]) /* of a persistent shell */
            box_new_id(r->id);
        struct audit_event event = denial_event(r, &r->denials[i]);
        event.session = result->session;
        event.scope = result->scope;
        event.workspace = result->workspace;
        no = log ? 0 : audit_open(&log);
        if (no == 0)
            no = audit_write(log, &event);
    }
    if (no < 0)
        r->audit_errno = -no;
    (void)audit_close(log);
}

/*
 * Asked when somebody wants the whole result, not after every command. The guard tells the session daemon before the refused call
 * returns, so what it told until the command's end is all there is of its session of processes.
 */
static void ask_denials(struct pinfold_result *result)
{
    struct box_result *r = &result->box;
    auto_buf struct buf said = BUF(KEEP_MAX);
    struct keep_answer answer = {0};
    struct err ignored = {0};
    if ((!r->command && !result->shell) || !result->place)
        return;
    auto_fd int fd = place_connect(result->place);
    const struct keep_request q = {.op = KEEP_DENIALS,
                                   .job = result->shell ? result->shell : r->command,
                                   .b = result->shell ? KEEP_OF_SHELL : 0,
                                   .number = result->began};
    if (fd < 0 || ask_send(fd, q, STR(""), NULL, 0, &ignored) < 0 || ask_answer(fd, &answer, &said, &ignored) < 0)
        return;
    denied_read(r, &said, box_result_status(r) != 0);
    log_failed(result);
    r->guard_told = !(answer.c & KEEP_LACKS_SOME);
    r->network_told = !answer.c;
}

/* In the machine numbers are the machine's own, and the guard around it sees qemu. */
static const struct session_place *place_copy(const struct pinfold_session *s, struct arena *mem)
{
    struct session_place *p = same(s->record.engine, "vm") ? NULL : arena_zero(mem, sizeof *p);
    if (!p)
        return NULL;
    *p = s->place;
    p->name = p->scope = NULL;
    p->run = arena_text(mem, s->place.run);
    p->state = arena_text(mem, s->place.state);
    return p->run && p->state ? p : NULL;
}

/* A session with an owner of its own is no matter of the command line. */
static const char *start_name(const struct record *r, struct arena *mem)
{
    return r->scope && r->scope[0] ? NULL : arena_text(mem, r->name);
}

/* What the session's record says of its box. The result may outlive the session's object, so that it is copied. */
static bool take_terms(const struct pinfold_session *s, const struct limits *limits, struct arena *mem,
                       struct box_terms *ret)
{
    const struct record *r = &s->record;
    struct enforcement *enforced = arena_zero(mem, (r->n_enforced + 1) * sizeof *enforced);
    struct limits *own = arena_zero(mem, sizeof *own);
    if (!enforced || !own)
        return false;
    *own = *limits;
    for (size_t i = 0; i < r->n_enforced; i++)
        enforced[i] = (struct enforcement){r->enforced[i].what, arena_text(mem, r->enforced[i].by)};
    *ret = (struct box_terms){.engine = arena_text(mem, r->engine),
                              .policy_digest = arena_text(mem, r->policy_digest),
                              .plan_digest = arena_text(mem, r->plan_digest ? r->plan_digest : ""),
                              .tier = r->tier,
                              .net = r->net,
                              .limits = own,
                              .lost = r->lost,
                              .monitor = r->monitor && r->monitor[0],
                              .enforced = enforced,
                              .n_enforced = r->n_enforced,
                              .start_name = start_name(r, mem),
                              .offer = denied_offer};
    return !arena_failed(mem);
}

static struct pinfold_result *result_of(const struct pinfold_session *s, const struct pinfold_exec_options *o)
{
    struct arena *mem = arena_new_small(MAX_SAID);
    struct pinfold_result *result = mem ? arena_zero(mem, sizeof *result) : NULL;
    struct limits limits = s->limits;
    if (o->timeout_ms)
        limits.timeout = (struct limit){.value = o->timeout_ms, .asked = true, .origin = 1};
    limits.memory = (struct limit){.value = o->memory_max ? o->memory_max : LIMIT_NONE, .origin = 1};
    limits.processes = (struct limit){.value = o->processes_max ? o->processes_max : LIMIT_NONE, .origin = 1};
    if (!result || !take_terms(s, &limits, mem, &result->terms)) {
        arena_free(mem);
        return NULL;
    }
    result->mem = mem;
    result->in_mem = true;
    result->captured = o->capture != 0;
    result->json = BUF(MAX_ANSWER_TEXT);
    result->values = VALUES(MAX_REPORT);
    result->session = arena_text(mem, s->record.name);
    result->scope = arena_text_or_null(mem, s->record.scope);
    result->workspace = arena_text_or_null(mem, s->record.workspace);
    result->place = place_copy(s, mem);
    result->began = now_us();
    result->complete = ask_denials;
    return result;
}

/*
 * A command that did not end well may have been ended with its session, whose own limit was hit: by the kernel, which may
 * have chosen the command alone, or by the session daemon. -ESTALE with a sentence when it is lost and no limit says why.
 */
static int take_session_end(struct pinfold_session *s, struct box_result *r, bool shell, struct arena *mem,
                            struct err *e)
{
    struct session_limit over;
    if (box_result_status(r) == 0 || r->limit != BOX_LIMIT_NONE || r->exec_errno)
        return 0;
    bool is_over = session_over(&s->place, mem, &over);
    if (is_over && over.limit != BOX_LIMIT_NONE) {
        char word[] = "limit";
        struct denial d = {.kind = word, .how = word};
        r->end = BOX_LIMIT;
        r->limit = over.limit;
        r->session_limit = over.value;
        r->reraise = 0;
        d.action = arena_text(mem, box_limit_name(over.limit));
        d.target = arena_str(mem, over.used);
        d.origin = arena_str(mem, over.origin);
        d.rule = arena_printf(mem, "limits.%s", box_limit_name(over.limit));
        if (d.action && d.target && d.origin && d.rule)
            (void)box_result_deny(r, &d);
        return 0;
    }
    if (r->end != BOX_LOST || (shell && !is_over))
        return 0;
    (void)err_say(e, ERR_SYSTEM, "the session ended while the command ran");
    return -ESTALE;
}

static void note_joined(void *ctx, enum pinfold_say what, const char *sentence)
{
    struct buf *notes = ctx;
    if (what == PINFOLD_SAY_NOTE)
        buf_printf(notes, "%s%s", notes->n ? "\n" : "", sentence);
}

/*
 * What a run would say after its command: why it ended, a limit, and what was denied; or NULL. The last only when it failed, for asking
 * costs a tenth of a command; but a branch that did not move is seen much later, and programs that write it in place (go-git) may say
 * nothing of that.
 */
static const char *notes_of(struct pinfold_result *result, const struct pinfold_exec_options *o, bool verifies)
{
    auto_buf struct buf notes = BUF(MAX_SAID);
    const struct pinfold_run_options say = {.size = sizeof say, .argv = o->argv, .say = note_joined, .say_ctx = &notes};
    if ((box_result_status(&result->box) != 0 || verifies) && result->complete) {
        result->complete(result);
        result->complete = NULL;
    }
    say_notes(&say, result);
    return notes.n && buf_ok(&notes) ? arena_text(result->mem, buf_cstr(&notes)) : NULL;
}

int pinfold_exec(struct pinfold_session *session, const struct pinfold_exec_options *options,
                 struct pinfold_result **ret, struct pinfold_error *error)
{
    struct pinfold_exec_options o;
    struct err e = {0};
    auto_fd int null = -1;
    int stdio[3];
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0)
        r = check_exec(&o, &e);
    if (r == 0)
        r = replaced_workspace(session, o.cwd, NULL, &e);
    struct pinfold_result *result = r == 0 ? result_of(session, &o) : NULL;
    if (r == 0 && !result)
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "exec");
    if (r == 0 && result)
        r = inside_options(session, &o, result->mem, &e);
    if (r == 0)
        r = stdio_of((const int[3]){o.stdin_fd, o.stdout_fd, o.stderr_fd}, o.use_fds != 0, &null, stdio, &e);
    if (r < 0 || !result) {
        pinfold_result_free(result);
        return tell(error, &e, r);
    }
    struct sending sending = {session, &o};
    struct box_exec x = {.command = {.stdio = {stdio[0], stdio[1], stdio[2]},
                                     .capture = o.capture != 0,
                                     .capture_max = o.capture_max ? o.capture_max : DEFAULT_CAPTURE,
                                     .output = o.output,
                                     .output_ctx = o.ctx,
                                     .tty = o.tty == 2 ? TTY_AUTO
                                            : o.tty    ? TTY_ALWAYS
                                                       : TTY_NEVER,
                                     .foreground = o.foreground != 0,
                                     .caller_id = o.id},
                         .session = result->session,
                         .scope = session->record.scope,
                         .workspace = session->record.workspace,
                         .limits = result->terms.limits,
                         .cwd = o.cwd,
                         .sessiond = session->record.pid,
                         .cancel_fd = o.cancel_fd > 0 ? o.cancel_fd : -1,
                         .send = send_command,
                         .send_ctx = &sending};
    if (o.shell)
        r = shell_exec(session, &o, result->terms.limits, stdio, &result->box, &result->note, &result->shell, &e);
    else
        r = box_exec(&x, &result->box, &e);
    result->box.session = result->session;
    if (r == 0)
        replaced_left(session->record.hidden_once, &result->box);
    if (r == 0)
        r = take_session_end(session, &result->box, o.shell != NULL, result->mem, &e);
    if (r < 0) {
        pinfold_result_free(result);
        return tell(error, &e, r);
    }
    if (result->box.session_limit)
        result->note = NULL; /* of a shell that is no more */
    if (o.capture && !o.shell && guess_is_worth_it(&result->box)) {
        result->complete(result);
        result->complete = NULL;
        session_guess(session, &o, result);
    }
    if (!o.capture && !result->note)
        result->note = notes_of(result, &o, session->record.verifies && session->record.verifies[0]);
    *ret = result;
    return 0;
}

/* ---- jobs ---- */

/* One request and its answer, whose bytes go to `out`. */
static int ask_sessiond(struct pinfold_session *s, struct keep_request q, struct str payload, const int *fds,
                        unsigned n_fds, struct keep_answer *ret, struct buf *out, struct err *e)
{
    auto_fd int fd = -1;
    int r = session_connect(&s->place, s->mem, &fd, e);
    if (r == 0)
        r = ask_send(fd, q, payload, fds, n_fds, e);
    return r < 0 ? r : ask_answer(fd, ret, out, e);
}

static bool is_given(const struct pinfold_exec_options *o)
{
    return o->use_fds && o->stdin_fd >= 0 && engine_stdio(o->stdin_fd) == STDIO_PASS;
}

int pinfold_job_start(struct pinfold_session *session, const struct pinfold_exec_options *options, uint32_t *ret_job,
                      struct pinfold_error *error)
{
    auto_buf struct buf image = BUF(JOB_MAX_BYTES + 1);
    auto_buf struct buf out = BUF(KEEP_MESSAGE);
    auto_arena struct arena *mem = arena_new(MAX_SAID);
    struct pinfold_exec_options o;
    struct keep_answer a = {0};
    struct err e = {0};
    int r = mem ? take_options(&o, sizeof o, options, options ? options->size : 0, &e)
                : err_sys(&e, ERR_SYSTEM, ENOMEM, "exec");
    if (r == 0)
        r = check_exec(&o, &e);
    if (r == 0)
        r = replaced_workspace(session, o.cwd, NULL, &e);
    if (r == 0)
        r = inside_options(session, &o, mem, &e);
    if (r == 0 && (o.memory_max || o.processes_max))
        r = err_say(&e, ERR_CANNOT, "a background command cannot have limits of its own; the session's limits apply");
    if (r == 0 && o.shell)
        r = err_say(&e, ERR_POLICY,
                    "--detach and --shell cannot be combined: a background command does not run in a persistent shell");
    if (r == 0)
        r = exec_image(&o, o.tty ? JOB_TTY : 0, 24, 80, session_umask(), &image, &e);
    uint64_t own = session->limits.timeout.origin ? session->limits.timeout.value : 0; /* of ensure */
    const struct keep_request q = {.op = KEEP_JOB, .number = o.timeout_ms ? o.timeout_ms : own == LIMIT_NONE ? 0 : own};
    bool given = r == 0 && !o.tty && is_given(&o);
    if (r == 0)
        r = ask_sessiond(session, q, buf_view(&image), &o.stdin_fd, given, &a, &out, &e);
    if (r == 0)
        *ret_job = a.c;
    return tell(error, &e, r);
}

static int put_rules(struct buf *lines, const char *verb, const char *const *hosts, struct err *e)
{
    for (; hosts && *hosts; hosts++) {
        if (strchr(*hosts, '\n') || !**hosts)
            return err_say(e, ERR_POLICY, "--%s: not a host", verb);
        buf_printf(lines, "%s %s\n", verb, *hosts);
    }
    return 0;
}

int pinfold_session_update(struct pinfold_session *session, const char *const *allow, const char *const *deny,
                           struct pinfold_error *error)
{
    auto_buf struct buf lines = BUF(KEEP_MAX), out = BUF(KEEP_MESSAGE);
    struct err e = {0};
    int r = put_rules(&lines, "allow", allow, &e);
    if (r == 0)
        r = put_rules(&lines, "deny", deny, &e);
    if (r == 0 && (lines.n == 0 || !buf_ok(&lines)))
        r = err_say(&e, ERR_POLICY, lines.n ? "too many rules" : "missing rule (--allow HOST or --deny HOST)");
    if (r == 0)
        r = ask_sessiond(session, (struct keep_request){.op = KEEP_UPDATE}, buf_view(&lines), NULL, 0, NULL, &out, &e);
    return tell(error, &e, r);
}

int pinfold_job_list_report(struct pinfold_session *session, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(MAX_ANSWER_TEXT);
    struct pinfold_report *report = report_new();
    struct err e = {0};
    int r = ask_sessiond(session, (struct keep_request){.op = KEEP_JOBS}, STR(""), NULL, 0, NULL, &out, &e);
    if (r == 0 && report && said_put(&JSON_TREE(&report->values), NULL, buf_view(&out)) < 0)
        r = err_sys(&e, ERR_BUG, EBADMSG, "cannot read the session daemon's answer");
    return report_give(report, r, &e, ret, error);
}

int64_t pinfold_job_output(struct pinfold_session *session, uint32_t job, uint64_t at, char *to, size_t room,
                           uint64_t *ret_first, int *ret_ended, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(KEEP_MAX);
    struct keep_answer a = {0};
    struct err e = {0};
    const struct keep_request q = {
        .op = KEEP_OUTPUT, .job = job, .number = at, .b = room < (1u << 20) ? (uint32_t)room : 1u << 20};
    int r = ask_sessiond(session, q, STR(""), NULL, 0, &a, &out, &e);
    if (r < 0)
        return tell(error, &e, r);
    if (a.a > at) { /* what was asked for is gone: it begins later */
        *ret_first = a.a;
        out.n = 0;
        a.c = 0;
    } else {
        *ret_first = a.b;
    }
    memcpy(to, buf_cstr(&out), out.n);
    *ret_ended = a.c != 0;
    return (int64_t)out.n;
}

int pinfold_job_kill(struct pinfold_session *session, uint32_t job, int signal, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(KEEP_MESSAGE);
    struct err e = {0};
    const struct keep_request q = {.op = KEEP_KILL, .job = job, .b = (uint32_t)signal};
    return tell(error, &e, ask_sessiond(session, q, STR(""), NULL, 0, NULL, &out, &e));
}
