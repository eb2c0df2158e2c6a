/*
 * `session`, `exec`, `job`: boxes that stay and commands in them. exec exits like run; the others with 4 if there is no
 * such session.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/people.h"
#include "client/entry.h"

static int session_failed(const struct pinfold_error *error, int r)
{
    int status = fail(error);
    return r == -ENOENT || r == -ESTALE ? STATUS_NO_SESSION : status;
}

static struct pinfold_session_options session_options(const struct ask *a, const char *name)
{
    return (struct pinfold_session_options){.size = sizeof(struct pinfold_session_options),
                                            .name = name,
                                            .scope = a->scope,
                                            .recreate = a->recreate,
                                            .cow = a->cow,
                                            .cow_from = a->cow_from,
                                            .cwd = a->session_dir            ? a->session_dir
                                                   : a->verb == VERB_SESSION ? a->dir
                                                                             : NULL};
}

/* ---- exec ---- */

static bool take_number(const char *flag, const char *text, const char *form, uint64_t (*read)(const char *, bool *),
                        uint64_t *ret)
{
    bool good = true;
    if (!text)
        return true;
    *ret = read(text, &good);
    if (!good || *ret == 0)
        complain("--%s %s: write %s", flag, text, form);
    return good && *ret;
}

static uint64_t milliseconds(const char *text, bool *good)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (end != text && same(end, units[i].name) && v > 0 && v * units[i].ms < 4e9)
            return v * units[i].ms < 1 ? 1 : (uint64_t)(v * units[i].ms);
    }
    *good = false;
    return 0;
}

static uint64_t bytes(const char *text, bool *good)
{
    static const char units[] = "KMGT";
    char *end;
    double v = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    double factor = 1;
    for (const char *u = units; unit && u <= unit; u++)
        factor *= 1024;
    *good = end != text && v > 0 && (!*end || (unit && (!end[1] || same(end + 1, "B") || same(end + 1, "iB")))) &&
            v * factor < 1e18;
    return *good ? (uint64_t)(v * factor) : 0;
}

static uint64_t count(const char *text, bool *good)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    *good = end != text && !*end && text[0] != '-' && v < 1u << 22;
    return v;
}

/* As enum in pinfold_exec_options: 2: what is redirected goes where it was redirected to. */
static bool wants_tty(const struct ask *a, int *ret)
{
    const char *t = a->terminal ? a->terminal : "auto";
    bool found = same(t, "auto") && !a->json && !a->shell && !a->detach && isatty(0) && isatty(1);
    *ret = same(t, "always") ? 1 : found ? 2 : 0;
    if (same(t, "auto") || same(t, "always") || same(t, "never"))
        return true;
    complain("--tty %s: auto, always or never", t);
    return false;
}

static bool good_words(const struct ask *a)
{
    if (a->dir && a->dir[0] != '/') {
        complain("--cwd %s: write an absolute path, as the box sees it: /tmp", a->dir);
        return false;
    }
    for (size_t i = 0; i < a->n_env; i++) {
        const char *equals = strchr(a->env[i], '=');
        if (equals && equals != a->env[i])
            continue;
        complain("--env %s: write NAME=VALUE, such as CI=1", a->env[i]);
        return false;
    }
    return true;
}

static bool fill(struct ask *a, const char *const *argv, struct pinfold_exec_options *o)
{
    uint64_t timeout = 0;
    int tty;
    *o = (struct pinfold_exec_options){.size = sizeof *o,
                                       .argv = argv,
                                       .cwd = a->dir,
                                       .shell = a->shell,
                                       .capture = a->json,
                                       .foreground = 1,
                                       .use_fds = 1,
                                       .id = a->id,
                                       .stdin_fd = a->closed_stdio & 1 ? -1 : 0,
                                       .stdout_fd = a->closed_stdio & 2 ? -1 : 1,
                                       .stderr_fd = a->closed_stdio & 4 ? -1 : 2};
    if (!wants_tty(a, &tty) ||
        !take_number("timeout", a->timeout, "a time, such as 500ms, 30s or 5m", milliseconds, &timeout) ||
        !take_number("memory", a->memory, "a size, as 512M or 2G", bytes, &o->memory_max) ||
        !take_number("processes", a->processes, "a number, as 100", count, &o->processes_max) || !good_words(a))
        return false;
    o->timeout_ms = (uint32_t)timeout;
    o->tty = tty;
    const char *term = getenv("TERM");
    static char variable[128];
    if (tty && term && strlen(term) < sizeof variable - 8) {
        snprintf(variable, sizeof variable, "TERM=%s", term);
        a->env[a->n_env++] = variable;
    }
    o->env = a->env;
    return true;
}

static int run_detached(struct pinfold_session *session, const struct pinfold_exec_options *o)
{
    struct pinfold_error error = {0};
    uint32_t job;
    if (pinfold_job_start(session, o, &job, &error) < 0) {
        complain("%s", error.text);
        return STATUS_SANDBOX;
    }
    printf("%u\n", job);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_SANDBOX;
}

static int run_in(struct ask *a, const char *name, struct pinfold_session *session, const char *const *argv)
{
    struct pinfold_exec_options o;
    struct pinfold_error error = {0};
    struct pinfold_result *result;
    int result_fd = -1;

    if (a->json && a->closed_stdio & 2) {
        complain("--json writes to standard output, which is closed");
        return STATUS_SANDBOX;
    }
    if (a->detach && (a->result || a->json)) {
        complain("--detach returns no result; see: pinfold job list");
        return STATUS_SANDBOX;
    }
    if (!keys_for_agent(a, name, argv) || !fill(a, argv, &o))
        return STATUS_SANDBOX;
    if (a->detach)
        return run_detached(session, &o);
    if (!open_result(a, &result_fd))
        return STATUS_SANDBOX;
    complain_behind_output();
    if (pinfold_exec(session, &o, &result, &error) < 0)
        return report_failure(a, result_fd, &error);
    complain_lines(a->quiet || a->json ? "" : pinfold_result_note(result));
    return report_result(a, result_fd, result);
}

int verb_exec(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    if (a->n_words < 2) {
        complain("exec: missing argument: the %s (pinfold exec [OPTIONS] SESSION [--] COMMAND [ARG...])",
                 a->n_words ? "command" : "session");
        return STATUS_SANDBOX;
    }
    const struct pinfold_session_options o = session_options(a, a->words[0]);
    const bool soon = !a->detach && !a->shell;
    if ((soon ? entry_session_soon : pinfold_session_open)(&o, &session, &error) < 0)
        return report_failure(a, -1, &error);
    int status = run_in(a, a->words[0], session, (const char *const *)a->words + 1);
    pinfold_session_free(session);
    return status;
}

static void say_plainly(void *ctx, enum pinfold_say what, const char *sentence)
{
    (void)ctx, (void)what;
    complain("%s", sentence);
}

/* A project's session is recreated by ending it: its verbs have no options. */
static void project_stop_first(const struct ask *a, struct pinfold_error *error)
{
    char *at = strstr(error->text, "run with the session's own policy: ");
    if (!at)
        at = strstr(error->text, "recreate the session with: --recreate");
    size_t room = at ? sizeof error->text - (size_t)(at - error->text) : 0;
    if (at)
        snprintf(at, room, "end it first with: pinfold stop%s%s%s", a->branch ? " --branch '" : "",
                 a->branch ? a->branch : "", a->branch ? "'" : "");
}

/* What its box would have to do without is said in its policy. */
static void project_may_lose(struct pinfold_error *error)
{
    static const char offer[] = "to run without:", option[] = " --may-lose ";
    auto_buf struct buf words = BUF(sizeof error->text);
    char *at = strstr(error->text, offer);
    const char *one = at ? at + sizeof offer - 1 : NULL;
    if (!at)
        return;
    while (strncmp(one, option, sizeof option - 1) == 0) {
        const size_t n = strcspn(one + sizeof option - 1, " ;");
        buf_printf(&words, "%s%.*s", words.n ? ", " : "", (int)n, one + sizeof option - 1);
        one += sizeof option - 1 + n;
    }
    if (words.n)
        snprintf(at, sizeof error->text - (size_t)(at - error->text),
                 "%s may_lose: [%s] in .pinfold/policy.yaml, then pinfold trust .", offer, buf_cstr(&words));
}

/* A port has one owner: two boxes of a project cannot have what its policy publishes. */
static void project_port_taken(struct pinfold_error *error)
{
    char *at = strstr(error->text, "end what has it");
    if (at && strstr(error->text, " is in use on "))
        snprintf(
            at, sizeof error->text - (size_t)(at - error->text),
            "if another box of the project has it (pinfold list), stop that one; or take the port out of net.publish, "
            "and give it to the box that needs it: pinfold run --publish PORT");
}

static int ensure(struct ask *a, const char *name, struct pinfold_session **ret, struct pinfold_error *error)
{
    struct pinfold_session_options o = session_options(a, name);
    o.say = a->quiet || a->json ? NULL : say_plainly;
    struct pinfold_policy_options po = ask_options(a);
    po.cwd = a->start_in;
    struct pinfold_policy *policy;
    int r = pinfold_policy_load(&po, &policy, error);
    if (r < 0)
        return r;
    r = pinfold_session_ensure(policy, &o, ret, error);
    if (r == -ESTALE && a->ensured)
        project_stop_first(a, error);
    if (r < 0 && a->ensured)
        project_may_lose(error), project_port_taken(error);
    if (r == 0 && a->ensured)
        a->ensured(a, policy, *ret);
    pinfold_policy_free(policy);
    return r;
}

int run_in_session(struct ask *a, const char *const *argv)
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    if (a->events) {
        complain(
            "--events and --session cannot be combined; what a session is refused is in: pinfold log -f --session");
        return STATUS_SANDBOX;
    }
    if (a->control) {
        complain(
            "--control-fd and --session cannot be combined; change a session's rules with: pinfold session update");
        return STATUS_SANDBOX;
    }
    if (ensure(a, a->session, &session, &error) < 0)
        return report_failure(a, -1, &error);
    int status = run_in(a, a->session, session, argv);
    pinfold_session_free(session);
    return status;
}

/* ---- session ---- */

int start_session(struct ask *a, const char *name)
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    int r = ensure(a, name, &session, &error);
    /* One that runs, and a full disk, have a message that says what to do. */
    if (r < 0 && r != -ESTALE && !err_is_full(-error.no) && a->start_in)
        complain(
            "session '%s' cannot be started as before; to start it as one of this directory: pinfold session start "
            "--recreate '%s'",
            name, name);
    if (r < 0)
        return fail(&error); /* nothing is sought here, so it is never that there is none */
    pinfold_session_free(session);
    return STATUS_YES;
}

static int session_start(struct ask *a)
{
    if (a->n_words != 2) {
        complain("session start: exactly one name is required (pinfold session start [OPTIONS] NAME)");
        return STATUS_USAGE;
    }
    struct pinfold_report *before;
    int status = again_begin(a, a->words[1], &before) ? start_session(a, a->words[1]) : STATUS_USAGE;
    pinfold_report_free(before);
    return status;
}

static int session_list(struct ask *a)
{
    struct pinfold_error error = {0};
    const struct pinfold_session_options o = session_options(a, a->n_words > 1 ? a->words[1] : NULL);
    bool show = same(a->words[0], "show");
    struct pinfold_report *report;
    if (show ? a->n_words != 2 : a->n_words != 1) {
        complain(show ? "session show: exactly one name is required" : "session list takes no name");
        return STATUS_USAGE;
    }
    int r = pinfold_session_list_report(show || a->scope ? &o : NULL, &report, &error);
    if (r < 0)
        return session_failed(&error, r);
    int status = a->json    ? print_report(report)
                 : show     ? people_session(report)
                 : a->names ? people_names(report)
                            : people_sessions(report);
    pinfold_report_free(report);
    return status;
}

static int session_stop(struct ask *a)
{
    bool remove = same(a->words[0], "rm");
    int worst = STATUS_YES;
    if (a->n_words < 2) {
        complain("session %s: missing argument: the session's name", a->words[0]);
        return STATUS_USAGE;
    }
    for (int i = 1; i < a->n_words; i++) {
        struct pinfold_error error = {0};
        const struct pinfold_session_options o = session_options(a, a->words[i]);
        int r = pinfold_session_stop(&o, remove, &error);
        if (r < 0)
            worst = session_failed(&error, r);
    }
    return worst;
}

static int session_prune(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    if (a->n_words != 1) {
        complain("session prune takes no name");
        return STATUS_USAGE;
    }
    int r = pinfold_session_prune_report(a->dry_run, &report, &error);
    if (r < 0)
        return session_failed(&error, r);
    int status = a->json ? print_report(report) : people_removed(report, a->dry_run);
    pinfold_report_free(report);
    return status;
}

/* --allow and --deny are flags of the policy; of those only these two mean something here. */
static int session_update(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_session *session;
    const char **lists[2] = {calloc(a->n_policy + 1, sizeof(char *)), calloc(a->n_policy + 1, sizeof(char *))};
    size_t n[2] = {0, 0};
    int status = STATUS_USAGE;
    const char *settled = NULL; /* an option that only a new box can follow */
    bool good = lists[0] && lists[1] && a->n_words == 2;
    for (size_t i = 0; good && i < a->n_policy; i++) {
        int which = same(a->policy[i].name, "allow") ? 0 : same(a->policy[i].name, "deny") ? 1 : -1;
        good = which >= 0;
        if (same(a->policy[i].name, "reach") || same(a->policy[i].name, "publish"))
            settled = a->policy[i].name;
        if (good)
            lists[which][n[which]++] = a->policy[i].value;
    }
    if (settled) {
        complain("session update: --%s cannot be changed while the box runs: its sockets are created with the box's "
                 "network; recreate the session with: pinfold session start NAME --as-before --recreate --%s ...",
                 settled, settled);
    } else if (!good) {
        complain("session update: exactly one name is required, and no other options than --allow and --deny "
                 "(pinfold session update NAME [--allow HOST]... [--deny HOST]...)");
    } else {
        const struct pinfold_session_options o = session_options(a, a->words[1]);
        int r = pinfold_session_open(&o, &session, &error);
        if (r == 0) {
            r = pinfold_session_update(session, lists[0], lists[1], &error);
            pinfold_session_free(session);
        }
        status = r < 0 ? session_failed(&error, r) : STATUS_YES;
    }
    free(lists[0]);
    free(lists[1]);
    return status;
}

static void unknown_action(const char *verb, const char *actions, const struct ask *a)
{
    if (a->n_words)
        complain("%s: unknown action '%s'; it is %s", verb, a->words[0], actions);
    else
        complain("%s: missing argument: %s", verb, actions);
}

int verb_session(struct ask *a)
{
    static const struct {
        const char *name;
        int (*run)(struct ask *a);
    } parts[] = {{"start", session_start}, {"list", session_list},   {"show", session_list},    {"stop", session_stop},
                 {"rm", session_stop},     {"prune", session_prune}, {"update", session_update}};
    for (size_t i = 0; a->n_words && i < sizeof parts / sizeof *parts; i++) {
        if (!same(a->words[0], parts[i].name))
            continue;
        const char *wrong = a->dry_run && !same(a->words[0], "prune")     ? "--dry-run is for prune"
                            : a->as_before && !same(a->words[0], "start") ? "--as-before is for start"
                                                                          : NULL;
        if (!wrong)
            return parts[i].run(a);
        complain("session %s: %s", a->words[0], wrong);
        return STATUS_USAGE;
    }
    if (a->n_words && same(a->words[0], "exec"))
        complain("session exec: a command runs in a session with: pinfold exec NAME -- COMMAND");
    else
        unknown_action("session", "start, list, show, stop, rm, prune or update", a);
    return STATUS_USAGE;
}

/* ---- job ---- */

struct job_ask {
    struct pinfold_session *session;
    uint32_t job;
};

static int job_list(struct ask *a, const struct job_ask *j)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    int r = pinfold_job_list_report(j->session, &report, &error);
    if (r < 0)
        return session_failed(&error, r);
    int status = a->json ? print_report(report) : people_jobs(report);
    pinfold_report_free(report);
    return status;
}

static int job_output(struct ask *a, const struct job_ask *j)
{
    struct pinfold_error error = {0};
    static char bytes_room[1 << 16];
    uint64_t at = 0, first;
    int ended;
    if (a->follow) {
        const struct pinfold_attach_options o = {.size = sizeof o, .job = j->job, .watch_only = 1};
        complain_behind_output();
        int status = pinfold_job_attach(j->session, &o, NULL, &error);
        if (status >= 0 && error.text[0])
            complain("%s", error.text);
        return status < 0 ? session_failed(&error, status) : error.text[0] ? STATUS_NO : STATUS_YES;
    }
    for (;;) {
        int64_t n = pinfold_job_output(j->session, j->job, at, bytes_room, sizeof bytes_room, &first, &ended, &error);
        if (n < 0)
            return session_failed(&error, (int)n);
        if (n == 0 && first <= at)
            return STATUS_YES;
        if (n == 0) {
            complain("the first %llu byte%s no longer available", (unsigned long long)(first - at),
                     first - at == 1 ? " is" : "s are");
            at = first;
        }
        for (int64_t done = 0; done < n;) {
            ssize_t k = write(1, bytes_room + done, (size_t)(n - done));
            if (k < 0) {
                complain("cannot write to standard output: %s", strerror(errno));
                return STATUS_NO;
            }
            done += k;
        }
        at += (uint64_t)n;
    }
}

/* A command that was not found has no output, and 127 is another's status, too. */
static void say_not_begun(const struct job_ask *j)
{
    struct pinfold_error ignored = {0};
    struct pinfold_report *report;
    if (pinfold_job_list_report(j->session, &report, &ignored) < 0)
        return;
    people_job_not_begun(report, j->job);
    pinfold_report_free(report);
}

static int job_attach(struct ask *a, const struct job_ask *j)
{
    struct pinfold_error error = {0};
    const struct pinfold_attach_options o = {.size = sizeof o, .job = j->job};
    char *notes = NULL;
    complain_behind_output();
    int status = pinfold_job_attach(j->session, &o, &notes, &error);
    complain_lines(notes ? notes : "");
    free(notes);
    if ((status == 126 || status == 127) && !error.text[0] && !a->quiet)
        say_not_begun(j);
    if (status == -EINTR && !a->quiet)
        complain("detached; the job is still running: pinfold job attach '%s' %u", a->words[1], j->job);
    if (status >= 0 && error.text[0])
        complain("%s", error.text);
    return status == -EINTR ? STATUS_YES : status < 0 ? session_failed(&error, status) : status;
}

static int signal_number(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } all[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL}, {"TERM", SIGTERM},
               {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (same(all[i].name, name))
            return all[i].number;
    }
    char *end;
    long v = strtol(name, &end, 10);
    return end != name && !*end && v > 0 && v <= 64 ? (int)v : 0;
}

static int job_kill(struct ask *a, const struct job_ask *j)
{
    struct pinfold_error error = {0};
    int number = a->signal ? signal_number(a->signal) : SIGTERM;
    if (!number) {
        complain("--signal %s: unknown signal", a->signal);
        return STATUS_USAGE;
    }
    int r = pinfold_job_kill(j->session, j->job, number, &error);
    return r < 0 ? session_failed(&error, r) : STATUS_YES;
}

int verb_job(struct ask *a)
{
    static const struct {
        const char *name;
        int (*run)(struct ask *a, const struct job_ask *j);
        int words;
    } parts[] = {{"list", job_list, 2}, {"attach", job_attach, 3}, {"output", job_output, 3}, {"kill", job_kill, 3}};
    struct pinfold_error error = {0};
    for (size_t i = 0; a->n_words && i < sizeof parts / sizeof *parts; i++) {
        struct job_ask j = {.job = 0};
        char *end = NULL;
        if (!same(a->words[0], parts[i].name))
            continue;
        if (a->n_words == parts[i].words && parts[i].words == 3)
            j.job = (uint32_t)strtoul(a->words[2], &end, 10);
        if (a->n_words != parts[i].words) {
            complain("job %s: %s (pinfold job %s SESSION%s)", parts[i].name,
                     a->n_words > parts[i].words ? "too many arguments"
                     : a->n_words == 1           ? "missing argument: the session"
                                                 : "missing argument: the job's number; see: pinfold job list SESSION",
                     parts[i].name, parts[i].words == 3 ? " JOB" : "");
            return STATUS_USAGE;
        }
        if (end && (*end || !j.job)) {
            complain("job %s: '%s' is not a job's number; see: pinfold job list SESSION", parts[i].name, a->words[2]);
            return STATUS_USAGE;
        }
        const struct pinfold_session_options o = session_options(a, a->words[1]);
        int r = pinfold_session_open(&o, &j.session, &error);
        if (r < 0)
            return session_failed(&error, r);
        int status = parts[i].run(a, &j);
        pinfold_session_free(j.session);
        return status;
    }
    unknown_action("job", "list, attach, output or kill", a);
    return STATUS_USAGE;
}
