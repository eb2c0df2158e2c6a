/*
 * Sessions: boxes that stay between calls. Names belong to the client that uses them; other clients' sessions are not
 * visible.
 */
#include "mcp/tools/tool_session.h"
#include "mcp/tools/telling.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "mcp/workers/owner.h"
#include "mcp/tools/tool_run.h"
#include "mcp/tools/wishes.h"

#define DEFAULT_NAME   "default"
#define NAME_BYTES_MAX 128
#define SHELL          "bash"
#define WAITING_SHOWN  32 /* names of a layer's changes */
#define CHANGES_SHOWN  1000
#define KEPT           8 /* sessions a worker stays connected to */

/* A worker's: found once, used again. */
static struct known {
    char name[NAME_BYTES_MAX + 1], scope[2 * INSTANCE_MAX];
    struct pinfold_session *session;
} known_sessions[KEPT];
static unsigned next_known;

static const char *name_of(const struct mcp_job *j)
{
    const char *name = value_text(j->arguments, "session", NULL);
    return name ? name : DEFAULT_NAME;
}

static bool name_is_good(struct mcp_job *j, const char *name)
{
    if (name[0] && strlen(name) <= NAME_BYTES_MAX)
        return true;
    job_fail(j, "a session's name has 1 to %d bytes", NAME_BYTES_MAX);
    return false;
}

static void scope_of(const struct mcp_job *j, char scope[2 * INSTANCE_MAX])
{
    auto_buf struct buf text = BUF(1024);
    owner_scope(&text, j->place->instance, j->client);
    snprintf(scope, 2 * INSTANCE_MAX, "%s", buf_cstr(&text));
}

static struct known *find_known(const char *name, const char *scope)
{
    for (size_t i = 0; i < KEPT; i++) {
        if (known_sessions[i].session && same(known_sessions[i].name, name) && same(known_sessions[i].scope, scope))
            return &known_sessions[i];
    }
    return NULL;
}

static void keep(const char *name, const char *scope, struct pinfold_session *session)
{
    struct known *k = &known_sessions[next_known++ % KEPT];
    pinfold_session_free(k->session);
    k->session = session;
    snprintf(k->name, sizeof k->name, "%s", name);
    snprintf(k->scope, sizeof k->scope, "%s", scope);
}

void session_forget(const struct mcp_job *j, const char *name)
{
    char scope[2 * INSTANCE_MAX];
    scope_of(j, scope);
    struct known *k = find_known(name, scope);
    if (k) {
        pinfold_session_free(k->session);
        k->session = NULL;
    }
}

void session_lost(struct mcp_job *j)
{
    session_forget(j, name_of(j));
}

/* Of a new session: what a run says before its command. */
static void say(void *ctx, enum pinfold_say what, const char *sentence)
{
    const struct mcp_job *j = ctx;
    (void)what;
    job_tell(j, sentence);
    job_say(j, SAY_WARNING, sentence);
}

struct pinfold_session *session_named(struct mcp_job *j, const char *name)
{
    struct pinfold_error error = {0};
    struct pinfold_session *s = NULL;
    char scope[2 * INSTANCE_MAX];

    if (!name_is_good(j, name))
        return NULL;
    scope_of(j, scope);
    struct known *k = find_known(name, scope);
    if (k)
        return k->session;
    struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope, .say = say, .say_ctx = j};
    int r = pinfold_session_open(&o, &s, &error);
    if (r < 0 && same(name, DEFAULT_NAME)) {
        r = pinfold_session_ensure(j->place->kept, &o, &s, &error);
        if (r == 0) {
            job_tell(j, "session 'default' started");
            job_changed(j);
        }
    }
    if (r == -ENOENT || r == -ESTALE)
        job_fail(j, "there is no session '%s'; start it with session_start", name);
    else if (r < 0)
        job_fail(j, "%s", error.text);
    if (r < 0)
        return NULL;
    keep(name, scope, s);
    return s;
}

struct pinfold_session *session_of(struct mcp_job *j)
{
    return session_named(j, name_of(j));
}

struct pinfold_session *session_visit(const struct mcp_job *j, const char *name, bool *ret_own)
{
    struct pinfold_error error = {0};
    struct pinfold_session *s = NULL;
    char scope[2 * INSTANCE_MAX];

    scope_of(j, scope);
    const struct known *k = find_known(name, scope);
    struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
    *ret_own = !k && pinfold_session_open(&o, &s, &error) == 0;
    return k ? k->session : s;
}

const char *session_cwd(struct mcp_job *j, struct arena *mem)
{
    return session_cwd_of(j, name_of(j), mem);
}

const char *session_cwd_of(struct mcp_job *j, const char *name, struct arena *mem)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *session = NULL;
    char scope[2 * INSTANCE_MAX];

    scope_of(j, scope);
    struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
    if (pinfold_session_list_report(&o, &session, &error) < 0) {
        job_fail(j, "%s", error.text);
        return NULL;
    }
    const char *copy = arena_text_or_null(mem, answer_text(pinfold_report_value(session), "cwd"));
    if (!copy)
        job_fail(j, "the session's start directory is unknown; give an absolute path");
    return copy;
}

/* As of a run's result; what the user does with it is the user's. */
static void layer_json(struct mcp_job *j, struct json *w, const char *id)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = id};
    unsigned changed = 0, new = 0, deleted = 0, waiting = 0;
    if (pinfold_layer_diff_report(&o, 0, &report, &error) < 0)
        return; /* nothing was changed, so it has gone */
    const struct pinfold_value *changes = pinfold_value_get(pinfold_report_value(report), "changes");
    json_object(w, "layer");
    json_text(w, "id", id);
    json_array(w, "waiting_paths");
    EACH_ANSWER(c, changes)
    {
        const char *kind = answer_text(c, "kind");
        changed += same(kind, "edited");
        new += same(kind, "added");
        deleted += same(kind, "deleted");
        if (!pinfold_value_is_true(pinfold_value_get(c, "waits")))
            continue;
        if (waiting++ < WAITING_SHOWN && answer_text(c, "path"))
            json_text(w, NULL, answer_text(c, "path"));
    }
    json_array_end(w);
    json_uint(w, "changed", changed);
    json_uint(w, "new", new);
    json_uint(w, "deleted", deleted);
    json_uint(w, "waiting", waiting);
    json_object_end(w);
    buf_printf(&j->text, "; in its layer, for the user to apply: %u changed, %u new, %u deleted", changed, new,
               deleted);
}

/* `layer`: of a session that has ended, or NULL. */
static void session_json(struct mcp_job *j, const char *name, bool running, const char *layer)
{
    struct json w = JSON(&j->structured);
    json_object(&w, NULL);
    json_text(&w, "session", name);
    json_bool(&w, "running", running);
    if (layer && layer[0])
        layer_json(j, &w, layer);
    json_object_end(&w);
}

static void layer_of(const char *name, const char *scope, char ret[17])
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *session = NULL;
    const struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
    ret[0] = 0;
    if (pinfold_session_list_report(&o, &session, &error) < 0)
        return;
    const char *id = answer_text(pinfold_report_value(session), "layer");
    snprintf(ret, 17, "%s", id ? id : "");
}

static void start_session(struct mcp_job *j)
{
    struct pinfold_error error = {0};
    struct pinfold_session *s = NULL;
    struct pinfold_policy *policy;
    const char *name = name_of(j);
    char scope[2 * INSTANCE_MAX];
    bool own;

    j->keeps = true;
    if (!name_is_good(j, name) || wishes_policy(j, 0, &policy, &own) < 0)
        return;
    scope_of(j, scope);
    struct pinfold_session_options o = {.size = sizeof o,
                                        .name = name,
                                        .scope = scope,
                                        .say = say,
                                        .say_ctx = j,
                                        .recreate = json_is_true(json_object_get(j->arguments, "recreate")),
                                        .cow = cow_of(j),
                                        .cow_from = value_text(j->arguments, "cow_from", NULL)};
    int r = pinfold_session_ensure(policy, &o, &s, &error);
    if (own)
        pinfold_policy_free(policy);
    session_lost(j);
    if (r == -ESTALE) {
        job_fail(j, "session '%s' runs with other options; set 'recreate' to stop and recreate it", name);
    } else if (r < 0) {
        job_tell(j, error.text);
        job_fail(j, "%s", error.text);
    } else {
        auto_buf struct buf line = BUF(1u << 12);
        buf_printf(&line, "session '%s' runs", name);
        job_tell(j, buf_cstr(&line));
        buf_str(&j->text, buf_view(&line));
        session_json(j, name, true, NULL);
        keep(name, scope, s);
        job_changed(j);
    }
}

static void stop(struct mcp_job *j)
{
    struct pinfold_error error = {0};
    const char *name = name_of(j);
    char scope[2 * INSTANCE_MAX];

    if (!name_is_good(j, name))
        return;
    scope_of(j, scope);
    session_lost(j);
    struct pinfold_session_options o = {.size = sizeof o, .name = name, .scope = scope};
    char layer[17];
    layer_of(name, scope, layer);
    int r = pinfold_session_stop(&o, 1, &error);
    if (r == -ENOENT) {
        job_fail(j, "there is no session '%s'", name);
    } else if (r < 0) {
        job_fail(j, "%s", error.text);
    } else {
        buf_printf(&j->text, "session '%s' was stopped, with every process in it", name);
        session_json(j, name, false, layer);
        job_tell(j, buf_cstr(&j->text));
        job_changed(j);
    }
}

/* A path as a line has it, and why it will not land by itself. */
static void change_words(struct mcp_job *j, const struct pinfold_value *c)
{
    const char *kind = answer_text(c, "kind"), *conflict = answer_text(c, "conflict");
    if (!answer_text(c, "path"))
        return;
    buf_printf(&j->text, "%c ", same(kind, "added") ? '+' : same(kind, "deleted") ? '-' : '~');
    words_of(&j->text, str_of(answer_text(c, "path")));
    if (pinfold_value_is_true(pinfold_value_get(c, "waits")))
        buf_text(&j->text, " (the user must apply it by name)");
    if (conflict)
        buf_printf(&j->text, " (in conflict: %s)", conflict);
    buf_char(&j->text, '\n');
}

/* The host's own state is told by its conflicts alone. */
static void session_changes(struct mcp_job *j)
{
    static const char *const hidden[] = {"old", "path_base64", NULL};
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    const char *name = name_of(j);
    char scope[2 * INSTANCE_MAX], layer[17];
    struct json w = JSON(&j->structured);
    size_t n = 0;

    if (!name_is_good(j, name))
        return;
    scope_of(j, scope);
    layer_of(name, scope, layer);
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = layer};
    if (!layer[0]) {
        job_fail(j, "there is no session '%s' with a layer; start it with session_start and 'cow'", name);
        return;
    }
    if (pinfold_layer_diff_report(&o, 1, &report, &error) < 0) {
        job_fail(j, "%s", error.text);
        return;
    }
    const struct pinfold_value *all = pinfold_report_value(report), *changes = pinfold_value_get(all, "changes");
    json_object(&w, NULL);
    json_text(&w, "session", name);
    json_array(&w, "changes");
    EACH_ANSWER(c, changes)
    {
        if (n++ >= CHANGES_SHOWN)
            continue;
        answer_write(&w, NULL, c, hidden);
        change_words(j, c);
    }
    json_array_end(&w);
    json_array(&w, "git");
    EACH_ANSWER(line, pinfold_value_get(all, "git"))
    {
        size_t bytes;
        const char *text = pinfold_value_text(line, &bytes);
        if (!text)
            continue;
        json_text(&w, NULL, text);
        buf_printf(&j->text, "%s\n", text);
    }
    json_array_end(&w);
    json_uint(&w, "left_out", n > CHANGES_SHOWN ? n - CHANGES_SHOWN : 0);
    json_object_end(&w);
    if (n > CHANGES_SHOWN)
        buf_printf(&j->text, "[%zu more]\n", n - CHANGES_SHOWN);
    if (n == 0 && !j->text.n)
        buf_text(&j->text, "nothing was changed");
}

/* What a model may know of a session: not where the host keeps it. */
static const char *const shown[] = {"name", "state", "engine", "workspace", "created", "policy_digest", "layer", NULL};

static void list_sessions(struct mcp_job *j)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    char scope[2 * INSTANCE_MAX];
    struct json w = JSON(&j->structured);

    scope_of(j, scope);
    struct pinfold_session_options o = {.size = sizeof o, .scope = scope};
    if (pinfold_session_list_report(&o, &report, &error) < 0) {
        job_fail(j, "%s", error.text);
        return;
    }
    json_object(&w, NULL);
    json_array(&w, "sessions");
    EACH_ANSWER(s, pinfold_value_get(pinfold_report_value(report), "sessions"))
    {
        const char *name = answer_text(s, "name"), *state = answer_text(s, "state");
        json_object(&w, NULL);
        for (const char *const *m = shown; *m; m++)
            answer_write(&w, *m, pinfold_value_get(s, *m), NULL);
        json_object_end(&w);
        words_of(&j->text, str_of(name));
        buf_printf(&j->text, ": %s\n", state ? state : "?");
    }
    json_array_end(&w);
    json_object_end(&w);
    if (!j->text.n)
        buf_text(&j->text, "no sessions");
}

/* ---- bash */

/* "NAME=value" of the argument env; NULL: none. */
static const char *const *variables(const struct mcp_job *j, struct arena *mem)
{
    json_t *env = json_object_get(j->arguments, "env");
    const char **list = NULL, **v;
    size_t n = 0;

    for (void *at = json_object_iter(env); at; at = json_object_iter_next(env, at)) {
        v = arena_push(mem, &list, &n, sizeof *v);
        if (v)
            *v = arena_printf(mem, "%s=%s", json_object_iter_key(at), json_string_value(json_object_iter_value(at)));
    }
    v = n ? arena_push(mem, &list, &n, sizeof *v) : NULL;
    return v ? list : NULL;
}

static void tell_end(struct mcp_job *j, const struct pinfold_result *r, const char *command)
{
    auto_buf struct buf line = BUF(1u << 12);
    int status = pinfold_result_status(r);
    buf_printf(&line, "session '%s', status %d: ", name_of(j), status);
    words_of(&line, (struct str){command, strnlen(command, 200)});
    job_tell(j, buf_cstr(&line));
}

static void start_job(struct mcp_job *j, struct pinfold_session *s, const struct pinfold_exec_options *o)
{
    struct pinfold_error error = {0};
    struct json w = JSON(&j->structured);
    uint32_t number;

    int r = pinfold_job_start(s, o, &number, &error);
    if (r < 0) {
        if (r == -ESTALE || r == -ENOENT)
            session_lost(j);
        job_fail(j, "%s", error.text);
        return;
    }
    buf_printf(&j->text, "job %u of session '%s' is running; read its output with 'output', end it with 'kill'", number,
               name_of(j));
    job_tell(j, buf_cstr(&j->text));
    json_object(&w, NULL);
    json_int(&w, "v", 1);
    json_bool(&w, "success", true);
    json_text(&w, "ended", "background");
    json_uint(&w, "job", number);
    json_text(&w, "session", name_of(j));
    json_object_end(&w);
}

/* A command of the background is no line of the shell: it has a process of its own, with the shell's words. */
static void in_background(struct mcp_job *j, struct pinfold_session *s, const char *command,
                          const struct pinfold_exec_options *of)
{
    const char *argv[] = {"/bin/sh", "-c", "--", command, NULL};
    struct pinfold_exec_options o = *of;
    o.argv = argv;
    o.shell = NULL;
    o.capture = 0;
    o.cancel_fd = 0;
    o.output = NULL;
    start_job(j, s, &o);
}

/* How a job ended: its result in the list, or NULL. */
static const struct pinfold_value *job_result(const struct pinfold_report *jobs, uint32_t number)
{
    EACH_ANSWER(one, pinfold_value_get(pinfold_report_value(jobs), "jobs"))
    {
        if (answer_number(one, "job") == number)
            return pinfold_value_get(one, "result");
    }
    return NULL;
}

static void read_job(struct mcp_job *j)
{
    struct pinfold_session *s = session_of(j);
    struct pinfold_error error = {0};
    struct json w = JSON(&j->structured);
    uint32_t number = (uint32_t)json_integer_value(json_object_get(j->arguments, "job"));
    uint64_t at = (uint64_t)json_integer_value(json_object_get(j->arguments, "from")), first = 0;
    const json_t *most = json_object_get(j->arguments, "max_output");
    size_t room = most ? (size_t)json_integer_value(most) : 1u << 18;
    int ended = 0;

    if (!s)
        return;
    char *to = buf_space(&j->text, room);
    int64_t n = to ? pinfold_job_output(s, number, at, to, room, &first, &ended, &error) : -ENOMEM;
    if (n < 0) {
        if (n == -ESTALE)
            session_lost(j);
        job_fail(j, "%s", error.text[0] ? error.text : "out of memory");
        return;
    }
    buf_grew(&j->text, (size_t)n);
    uint64_t began = at > first ? at : first;
    auto_report struct pinfold_report *jobs = NULL;
    (void)pinfold_job_list_report(s, &jobs, &error);
    const struct pinfold_value *result = job_result(jobs, number);
    struct str bytes = buf_view(&j->text);
    bool text = utf8_is_text(bytes);
    json_object(&w, NULL);
    json_uint(&w, "job", number);
    json_uint(&w, "from", began);
    json_uint(&w, "next", began + (uint64_t)n);
    json_bool(&w, "ended", ended != 0);
    json_text(&w, "encoding", text ? "utf8" : "base64");
    if (text)
        json_str(&w, "output", bytes);
    else
        json_base64(&w, "output", bytes);
    result_write(j, &w, "result", result);
    json_object_end(&w);
    if (n && j->text.p[j->text.n - 1] != '\n')
        buf_char(&j->text, '\n');
    if (at < first)
        buf_printf(&j->text, "[output before byte %llu is no longer available]\n", (unsigned long long)first);
    buf_printf(&j->text, "[%s; continue from %llu]\n", ended && (size_t)n < room ? "it has ended" : "it is running",
               (unsigned long long)began + (unsigned long long)n);
    result_denials(j, pinfold_value_get(result, "denials"));
}

static void kill_job(struct mcp_job *j)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"TERM", SIGTERM}, {"KILL", SIGKILL}, {"INT", SIGINT},  {"HUP", SIGHUP},
                   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
    struct pinfold_session *s = session_of(j);
    struct pinfold_error error = {0};
    const char *name = value_text(j->arguments, "signal", NULL);
    struct json w = JSON(&j->structured);
    uint32_t number = (uint32_t)json_integer_value(json_object_get(j->arguments, "job"));
    int signal = name ? 0 : SIGTERM;

    for (size_t i = 0; name && i < sizeof signals / sizeof *signals; i++)
        signal = same(name, signals[i].name) ? signals[i].number : signal;
    if (!s)
        return;
    if (!signal) {
        job_fail(j, "'signal' is one of TERM, KILL, INT, HUP, QUIT, USR1, USR2");
        return;
    }
    int r = pinfold_job_kill(s, number, signal, &error);
    if (r < 0) {
        job_fail(j, "%s", error.text);
        return;
    }
    buf_printf(&j->text, "job %u got %s", number, name ? name : "TERM");
    job_tell(j, buf_cstr(&j->text));
    json_object(&w, NULL);
    json_uint(&w, "job", number);
    json_text(&w, "signal", name ? name : "TERM");
    json_object_end(&w);
}

/* A limit of the session, which is over with it: its shell's commands have none of their own but time. */
static bool ended_session(const struct pinfold_result *result)
{
    struct pinfold_summary r = {.size = sizeof r};
    pinfold_result_summary(result, &r);
    return pinfold_result_end(result) == PINFOLD_LIMIT &&
           (same(r.limit, "memory") || same(r.limit, "processes") || same(r.limit, "disk"));
}

static void bash(struct mcp_job *j)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct pinfold_error error = {0};
    struct pinfold_result *result;
    const json_t *room = json_object_get(j->arguments, "max_output");
    const char *argv[] = {value_text(j->arguments, "command", NULL), NULL};
    struct telling telling = {.job = j};

    struct pinfold_session *s = mem ? session_of(j) : NULL;
    if (!s)
        return;
    struct pinfold_exec_options o = {.size = sizeof o,
                                     .argv = argv,
                                     .env = variables(j, mem),
                                     .cwd = value_text(j->arguments, "cwd", NULL),
                                     .shell = SHELL,
                                     .use_fds = 1,
                                     .stdin_fd = -1,
                                     .stdout_fd = -1,
                                     .stderr_fd = -1,
                                     .capture = 1,
                                     .capture_max = room ? (size_t)json_integer_value(room) : DEFAULT_OUTPUT,
                                     .timeout_ms =
                                         (uint32_t)json_integer_value(json_object_get(j->arguments, "timeout_ms")),
                                     .cancel_fd = j->socket,
                                     .output = telling_output,
                                     .ctx = &telling};
    if (json_is_true(json_object_get(j->arguments, "background"))) {
        in_background(j, s, argv[0], &o);
        return;
    }
    int r = pinfold_exec(s, &o, &result, &error);
    if (r == -ESTALE || r == -ENOENT)
        session_lost(j);
    if (r < 0) {
        job_tell(j, error.text);
        job_fail(j, "%s",
                 r == -ESTALE || r == -ENOENT ? "the session is gone; start it with session_start" : error.text);
        return;
    }
    tell_end(j, result, argv[0]);
    result_text(j, result);
    if (ended_session(result)) {
        session_lost(j);
        buf_text(&j->text, "[the session has ended, with everything that ran in it; start it with session_start]\n");
    }
    if (pinfold_result_note(result)[0])
        buf_printf(&j->text, "[%s]\n", pinfold_result_note(result));
    pinfold_result_free(result);
}

static const struct tool_argument start_arguments[] = {
    SESSION_ARGUMENT,
    {"options", ARGUMENT_OPTIONS_BRIEF, .help = "Options of the policy for this session, as of the tool 'run'."},
    {"recreate", ARGUMENT_SWITCH, .help = "Stop and recreate a session of that name that has other options."},
    COW_ARGUMENTS,
    {0}};
static const struct tool_argument name_arguments[] = {SESSION_ARGUMENT, {0}};
static const struct tool_argument no_arguments[] = {{0}};
static const struct tool_argument output_arguments[] = {
    {"job", ARGUMENT_NUMBER, .required = true, .min = 1, .max = UINT32_MAX,
     .help = "Its number, as returned by 'bash'."},
    {"from", ARGUMENT_NUMBER, .min = 0, .max = INT64_MAX,
     .help = "The byte to start at; 0 by default, afterwards the value of 'next'."},
    {"max_output", ARGUMENT_NUMBER, .min = 1, .max = MAX_OUTPUT, .help = "Bytes at most; 256 KiB by default."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument kill_arguments[] = {
    {"job", ARGUMENT_NUMBER, .required = true, .min = 1, .max = UINT32_MAX,
     .help = "Its number, as returned by 'bash'."},
    {"signal", ARGUMENT_TEXT, .help = "TERM, KILL, INT, HUP, QUIT, USR1 or USR2; TERM by default."},
    SESSION_ARGUMENT,
    {0}};
static const struct tool_argument bash_arguments[] = {
    {"command", ARGUMENT_TEXT, .required = true, .help = "The command for the shell."},
    SESSION_ARGUMENT,
    {"cwd", ARGUMENT_TEXT, .help = "Absolute directory to change to first, as the box sees it."},
    {"env", ARGUMENT_MAP, .help = "Variables to set first."},
    {"timeout_ms", ARGUMENT_NUMBER, .min = 1, .max = MAX_TIMEOUT_MS, .help = "Time limit in milliseconds."},
    {"max_output", ARGUMENT_NUMBER, .min = 1, .max = MAX_OUTPUT, .help = "Bytes kept of each of stdout and stderr."},
    {"background", ARGUMENT_SWITCH, .help = "Start it and return at once; it runs until it or the session ends."},
    {0}};

const struct tool tool_session_start = {
    .name = "session_start",
    .title = "Start a session",
    .description = "Starts a sandbox that stays: processes, private files and the shell of 'bash' are kept between "
                   "calls, until session_stop or the end of this connection.",
    .output = "{\"type\":\"object\",\"properties\":{\"session\":{\"type\":\"string\"},\"running\":{\"type\":"
              "\"boolean\"}},\"required\":[\"session\",\"running\"]}",
    .arguments = start_arguments,
    .idempotent = true,
    .sessions = true,
    .work = start_session};
const struct tool tool_session_list = {
    .name = "session_list",
    .title = "List sessions",
    .description = "The sessions of this connection.",
    .output = "{\"type\":\"object\",\"properties\":{\"sessions\":{\"type\":\"array\"}},\"required\":[\"sessions\"]}",
    .arguments = no_arguments,
    .read_only = true,
    .idempotent = true,
    .sessions = true,
    .work = list_sessions};
const struct tool tool_session_diff = {
    .name = "session_diff",
    .title = "Show what a session has changed",
    .description = "Lists what the layer of a session (session_start with 'cow') changes in the workspace, which the "
                   "user looks at and applies: each path, what the user must apply by name, and what is in conflict "
                   "because the workspace was changed meanwhile.",
    .output = "{\"type\":\"object\",\"properties\":{\"session\":{\"type\":\"string\"},\"changes\":{\"type\":"
              "\"array\"},\"git\":{\"type\":\"array\"},\"left_out\":{\"type\":\"integer\"}},\"required\":["
              "\"session\",\"changes\",\"git\",\"left_out\"]}",
    .arguments = name_arguments,
    .read_only = true,
    .idempotent = true,
    .sessions = true,
    .work = session_changes};
const struct tool tool_session_stop = {
    .name = "session_stop",
    .title = "Stop a session",
    .description = "Stops a session and removes every process and private file in it.",
    .output = "{\"type\":\"object\",\"properties\":{\"session\":{\"type\":\"string\"},\"running\":{\"type\":"
              "\"boolean\"},\"layer\":{\"type\":\"object\"}},\"required\":[\"session\",\"running\"]}",
    .arguments = name_arguments,
    .destructive = true,
    .sessions = true,
    .work = stop};
const struct tool tool_bash = {
    .name = "bash",
    .title = "Run in a session's shell",
    .description = "Runs a command in the persistent shell of a session: directory, variables and functions are kept "
                   "for the next call. If a new box is enough, use 'run', which leaves nothing behind.",
    .arguments = bash_arguments,
    .in_order = true,
    .destructive = true,
    .open_world = true,
    .gives_result = true,
    .sessions = true,
    .work = bash};
const struct tool tool_output = {
    .name = "output",
    .title = "Read a background command",
    .description =
        "Returns the output of a background command of a session so far, from a given byte, and whether it has ended.",
    .output =
        "{\"type\":\"object\",\"properties\":{\"job\":{\"type\":\"integer\"},\"from\":{\"type\":\"integer\"},\"next\":{"
        "\"type\":\"integer\"},\"ended\":{\"type\":\"boolean\"},\"encoding\":{\"type\":\"string\"},\"output\":{"
        "\"type\":\"string\"}},\"required\":[\"job\",\"from\",\"next\",\"ended\",\"encoding\",\"output\"]}",
    .arguments = output_arguments,
    .read_only = true,
    .idempotent = true,
    .sessions = true,
    .work = read_job};
const struct tool tool_kill = {.name = "kill",
                               .title = "End a background command",
                               .description = "Sends a signal to a background command of a session and its children.",
                               .output = "{\"type\":\"object\",\"properties\":{\"job\":{\"type\":\"integer\"},"
                                         "\"signal\":{\"type\":\"string\"}},\"required\":[\"job\",\"signal\"]}",
                               .arguments = kill_arguments,
                               .destructive = true,
                               .sessions = true,
                               .work = kill_job};
