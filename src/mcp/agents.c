/*
 * Calls of agents: one session per sessionId, with settings and login copied in; the answer comes from a file or
 * standard output.
 */
#include "mcp/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "mcp/tools/directory.h"
#include "mcp/workers/owner.h"
#include "mcp/settings.h"
#include "mcp/tools/tool_resource.h"
#include "mcp/tools/tool_run.h"
#include "mcp/tools/telling.h"
#include "mcp/tools/tool_session.h"
#include "mcp/tools/wishes.h"

#define MAX_AGENTS        16
#define MAX_SESSION_ID    128
#define MAX_RESPONSE      (16u << 20)
#define MAX_TAIL          2000         /* bytes of its stderr that are told when it failed */
#define SANDBOX_DIRECTORY "/workspace" /* an agent's in a container of an image, which does not have the host's paths */
#define BEGUN             "begun"      /* in the state: a conversation stands there */
#define SETTLED           "settled"    /* and: its settings name what the box has */

struct configured {
    struct tool tool;
    char name[64], title[128], agent[64], profile[64];
    bool resumes, responds;
    const struct pinfold_value *definition; /* its entry of pinfold_agent_list_report() */
};
static struct configured configured[MAX_AGENTS];
static size_t n_configured;

/* What one call is about. */
struct errand {
    struct mcp_job *job;
    const struct configured *agent;
    struct arena *mem;
    const char *prompt, *id;
    char *directory, *state; /* of the host */
    int held;                /* the directory itself */
    char *inside;            /* the directory, as the box sees it */
    struct pinfold_option *options;
    struct pinfold_session *session;
    char session_name[MAX_SESSION_ID + 80], scope[2 * INSTANCE_MAX], response[64];
    bool resume, image; /* image: the box has the files of one */
    char began[40];     /* as the audit log writes it */
    json_t *settings;   /* what was found in its settings, or NULL */
};

static bool failed(struct errand *x, const struct pinfold_error *error)
{
    job_tell(x->job, error->text);
    job_fail(x->job, "%s", error->text);
    return false;
}

static bool take_arguments(struct errand *x)
{
    struct mcp_job *j = x->job;
    char why[1024];

    x->prompt = value_text(j->arguments, "prompt", NULL);
    const char *id = value_text(j->arguments, "sessionId", NULL);
    x->id = id ? id : "default";
    if (!x->prompt[0] || !x->id[0] || strlen(x->id) > MAX_SESSION_ID) {
        job_fail(j, "'prompt' is empty, or 'sessionId' is not 1 to %d bytes", MAX_SESSION_ID);
        return false;
    }
    x->directory =
        directory_permitted(value_text(j->arguments, "directory", NULL), j->place->options, &x->held, why, sizeof why);
    if (!x->directory) {
        job_tell(j, why);
        job_fail(j, "%s", why);
        return false;
    }
    return true;
}

/* Marks lie in the state beside what the box has of it. */
static bool is_marked(const struct errand *x, const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", x->state, what);
    return access(path, F_OK) == 0;
}

static void mark(const struct errand *x, const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", x->state, what);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    (void)close_fd(fd);
}

/* Its state on the host, with the login of now. */
static bool prepare(struct errand *x)
{
    struct pinfold_error error = {0};
    auto_buf struct buf name = BUF(1u << 12);

    snprintf(x->session_name, sizeof x->session_name, "%s %s", x->agent->name, x->id);
    buf_printf(&name, "%s/%s", x->job->client, x->session_name);
    x->state = directory_state(x->job->place->instance, buf_cstr(&name), true);
    if (!x->state) {
        job_fail(x->job, "cannot create a directory for the agent's state: %s", strerror(errno));
        return false;
    }
    x->resume = x->agent->resumes && is_marked(x, BEGUN);
    const struct pinfold_agent_options o = {.size = sizeof o, .agent = x->agent->agent, .state = x->state};
    if (pinfold_agent_prepare(&o, &x->options, NULL, &error) < 0)
        return failed(x, &error);
    return true;
}

/* Where an image is the box, the directory is not at the host's name, unless the person mounts something there. */
static const char *sandbox_mount(struct errand *x, const struct pinfold_option *options)
{
    if (!x->job->place->options->sandbox || strchr(x->directory, ':'))
        return NULL;
    for (const struct pinfold_option *f = options; f && f->name; f++) {
        if (same(f->name, "mount") && strstr(f->value, ":" SANDBOX_DIRECTORY))
            return NULL;
    }
    return arena_printf(x->mem, "%s:" SANDBOX_DIRECTORY, x->directory);
}

/* The instance's policy, in that directory, with what the agent needs. */
static struct pinfold_policy *policy_of(struct errand *x)
{
    struct pinfold_policy_options o = *x->job->place->kept_options;
    struct pinfold_option *all = NULL, *to;
    struct pinfold_policy *policy = NULL;
    struct pinfold_error error = {0};
    size_t n = 0;

    for (const struct pinfold_option *f = o.options; f && f->name; f++) {
        if (!same(f->name, "workspace") && (to = arena_push(x->mem, &all, &n, sizeof *to)))
            *to = *f;
    }
    for (const struct pinfold_option *f = x->options; f->name; f++) {
        if ((to = arena_push(x->mem, &all, &n, sizeof *to)))
            *to = *f;
    }
    if ((to = arena_push(x->mem, &all, &n, sizeof *to)))
        *to = (struct pinfold_option){"workspace", x->directory};
    const char *mount = sandbox_mount(x, o.options);
    if (mount && (to = arena_push(x->mem, &all, &n, sizeof *to)))
        *to = (struct pinfold_option){"mount", mount};
    (void)arena_push(x->mem, &all, &n, sizeof *to);
    if (arena_failed(x->mem)) {
        job_fail(x->job, "out of memory");
        return NULL;
    }
    o.options = all;
    o.cwd = x->directory;
    if (pinfold_policy_load(&o, &policy, &error) < 0)
        (void)failed(x, &error);
    return policy;
}

/* The session's entry of pinfold_session_list_report(); NULL: the job has failed. */
static struct pinfold_report *entry_of(struct errand *x)
{
    struct pinfold_session_options o = {.size = sizeof o, .name = x->session_name, .scope = x->scope};
    struct pinfold_error error = {0};
    struct pinfold_report *entry = NULL;

    if (pinfold_session_list_report(&o, &entry, &error) < 0)
        (void)failed(x, &error);
    return entry;
}

/* Whether what the box has at its place is the directory that is held, and is there by a mount of its own. */
static bool is_held(const struct errand *x, const struct pinfold_value *session, const struct pinfold_value *at)
{
    struct stat st;
    if (fstat(x->held, &st) < 0 || answer_number(at, "inode") != (long long)st.st_ino ||
        answer_number(at, "device") != (long long)st.st_dev)
        return false;
    /*
     * Seen through what is around it in the box, it would not tell what was mounted elsewhere. It needs no mount of its own within
     * what is writable anyway; and the native engine mounts by no path that has a link in it.
     */
    return same(answer_text(session, "engine"), "native") || pinfold_value_is_true(pinfold_value_get(at, "mounted")) ||
           pinfold_value_is_true(pinfold_value_get(at, "writable"));
}

/*
 * Whether the box has the directory that was permitted. The path was resolved again on the way to the mount: what can
 * write there could have put a link in its place. Nothing has run in a box that has another one; it is ended.
 */
static bool has_it(struct errand *x)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *entry = entry_of(x), *where = NULL;

    if (!entry)
        return false;
    if (pinfold_file_where_report(x->session, x->inside, &where, &error) < 0)
        return failed(x, &error);
    const struct pinfold_value *session = pinfold_report_value(entry), *at = pinfold_report_value(where);
    const char *engine = answer_text(session, "engine");
    x->image = same(engine, "docker") || same(engine, "podman");
    if (same(answer_text(session, "workspace"), x->directory) && is_held(x, session, at))
        return true;
    struct pinfold_session_options o = {.size = sizeof o, .name = x->session_name, .scope = x->scope};
    (void)pinfold_session_stop(&o, 1, &error);
    snprintf(error.text, sizeof error.text,
             "the directory '%.200s' was replaced by another one; nothing was run, and its box was ended",
             value_text(x->job->arguments, "directory", NULL));
    return failed(x, &error);
}

static bool enter_session(struct errand *x)
{
    auto_buf struct buf scope = BUF(1024);
    struct pinfold_error error = {0};
    struct pinfold_policy *policy = policy_of(x);

    if (!policy)
        return false;
    owner_scope(&scope, x->job->place->instance, x->job->client);
    snprintf(x->scope, sizeof x->scope, "%s", buf_cstr(&scope));
    struct pinfold_session_options o = {.size = sizeof o, .name = x->session_name, .scope = x->scope};
    int r = pinfold_session_ensure(policy, &o, &x->session, &error);
    pinfold_policy_free(policy);
    if (r == -ESTALE) {
        job_fail(x->job,
                 "sessionId '%s' of %s was started in another directory or with another policy; use another sessionId",
                 x->id, x->agent->name);
        return false;
    }
    if (r == 0 && !x->resume)
        job_changed(x->job);
    if (r == 0)
        r = pinfold_path_to_box(x->session, x->directory, &x->inside, &error);
    return r == 0 ? has_it(x) : failed(x, &error);
}

/* Once for a copy of the settings: a second translation could take a path of the box for one of the host. */
static bool bring_settings(struct errand *x)
{
    struct settings s = {
        .job = x->job, .session = x->session, .agent = x->agent->definition, .directory = x->inside, .image = x->image};
    if (is_marked(x, SETTLED))
        return true;
    bool good = settings_settle(&s);
    x->settings = s.told;
    if (good)
        mark(x, SETTLED);
    else
        job_fail(x->job, "%s: its settings could not be copied into the box", x->agent->title);
    return good;
}

/* "KIRO: no login ..." where the host has none for it: files that would be copied, or variables. */
static bool no_login(const struct pinfold_value *a, struct buf *out)
{
    size_t n = 0;
    if (!same(answer_text(a, "login"), "missing"))
        return false;
    buf_printf(out, "%s has no login on this machine (", answer_text(a, "title"));
    EACH_ANSWER(file, pinfold_value_get(a, "login_files"))
    {
        buf_printf(out, "%s%s", n++ ? ", " : "", pinfold_value_text(file, NULL));
    }
    buf_printf(out, "%s missing): start %s once outside of a box and log in", n == 1 ? " is" : " are",
               answer_text(a, "program"));
    n = 0;
    EACH_ANSWER(variable, pinfold_value_get(a, "login_variables"))
    {
        buf_printf(out, "%s%s", n++ ? " or " : ", or set ", pinfold_value_text(variable, NULL));
    }
    return true;
}

/* Why it may have failed: its program, or a login that is not there now either. */
static void reason_of(const struct errand *x, int status, struct buf *out)
{
    auto_report struct pinfold_report *known = NULL;
    const char *absent = answer_text(x->agent->definition, "not_installed");
    if (status == 127 && absent && !x->image)
        buf_printf(out, "[%s]\n", absent);
    else if (status == 127)
        buf_printf(out, "[the box has no program '%s'%s]\n", answer_text(x->agent->definition, "program"),
                   x->image ? ": the image must have it" : "");
    if (status == 127 || pinfold_agent_list_report(&known, NULL) < 0)
        return;
    EACH_ANSWER(one, pinfold_value_get(pinfold_report_value(known), "agents"))
    {
        auto_buf struct buf why = BUF(1u << 12);
        if (same(answer_text(one, "name"), x->agent->agent) && no_login(one, &why) && buf_ok(&why))
            buf_printf(out, "[%s]\n", buf_cstr(&why));
    }
}

/* The last lines of what it wrote to stderr. */
static void tail(struct buf *out, const char *text, size_t n)
{
    size_t from = n > MAX_TAIL ? n - MAX_TAIL : 0;
    while (from && from < n && text[from - 1] != '\n')
        from++;
    buf_put(out, text + from, n - from);
}

/* Its answer: the file it was asked to write, or what it printed. */
static void answer(struct errand *x, struct pinfold_result *result)
{
    struct mcp_job *j = x->job;
    struct pinfold_error error = {0};
    char *bytes = NULL;
    size_t n = 0;

    int r = x->response[0] ? pinfold_file_read(x->session, x->response, 0, MAX_RESPONSE, &bytes, &n, NULL, &error) : -1;
    if (r == 0)
        (void)pinfold_file_remove(x->session, x->response, 0, &error);
    if (r == 0 && n) {
        buf_put(&j->text, bytes, n);
    } else {
        const char *out = pinfold_result_stdout(result, &n);
        buf_put(&j->text, out, n);
    }
    free(bytes);
}

/* What of the box was denied while it worked: the result of one command names its limits, the session's log the rest. */
static json_t *denials_since(const struct errand *x, const struct pinfold_result *result)
{
    json_t *list = session_denials(x->job, x->session_name, x->began);
    struct pinfold_denial d = {.size = sizeof d};
    for (size_t i = 0; pinfold_result_denial(result, i, &d); i++) {
        bool known = false;
        for (size_t k = 0; k < json_array_size(list); k++)
            known = known || same(value_text(json_array_get(list, k), "target", NULL), d.target);
        auto_buf struct buf remedy = BUF(1u << 16);
        if (d.remedy && d.remedy[0])
            wishes_remedy(x->job, d.remedy, d.origin, &remedy);
        for (size_t k = 0; k < json_array_size(list) && remedy.n; k++) {
            json_t *of = json_array_get(list, k);
            if (same(value_text(of, "target", NULL), d.target) && !json_object_get(of, "remedy"))
                (void)json_object_set_new(of, "remedy", json_string(buf_cstr(&remedy)));
        }
        /* Without its origin, which is a file of the host. */
        if (!known)
            (void)json_array_append_new(list,
                                        json_pack("{s:s?,s:s?,s:s?,s:s?,s:s?,s:i,s:s*,s:s*,s:s*,s:s*}", "kind", d.kind,
                                                  "action", d.action, "target", d.target, "rule", d.rule, "how", d.how,
                                                  "pid", (int)d.pid, "command", d.command, "address", d.address, "why",
                                                  d.why, "remedy", remedy.n ? buf_cstr(&remedy) : NULL));
    }
    return list;
}

static void denials_of(struct buf *out, const json_t *list)
{
    size_t told = 0;
    for (size_t i = 0; i < json_array_size(list) && told < MAX_TOLD_DENIALS; i++) {
        const json_t *d = json_array_get(list, i);
        const char *target = value_text(d, "target", NULL), *action = value_text(d, "action", NULL);
        const char *kind = value_text(d, "kind", NULL), *rule = value_text(d, "rule", NULL);
        if (!target || !kind || same(kind, "limit"))
            continue;
        buf_printf(out, "[denied: %s %s ", kind, action ? action : "");
        words_of(out, str_of(target));
        if (rule) {
            buf_text(out, " (rule: ");
            words_of(out, str_of(rule));
            buf_char(out, ')');
        }
        if (value_text(d, "remedy", NULL)) {
            buf_text(out, "; ");
            words_of(out, str_of(value_text(d, "remedy", NULL)));
        }
        buf_text(out, "]\n");
        told++;
    }
}

static void missing_of(struct buf *out, const json_t *settings)
{
    for (size_t i = 0; i < json_array_size(settings); i++) {
        const json_t *s = json_array_get(settings, i);
        if (same(value_text(s, "done", NULL), "translated"))
            continue;
        buf_text(out, "[MCP server '");
        words_of(out, str_of(value_text(s, "server", NULL)));
        buf_text(out, "': ");
        words_of(out, str_of(value_text(s, "place", NULL)));
        buf_printf(out, " in %s names a path that is not in the box]\n", value_text(s, "file", NULL));
    }
}

static void report(struct errand *x, struct pinfold_result *result)
{
    struct mcp_job *j = x->job;
    char line[160];
    bool good = pinfold_result_end(result) == PINFOLD_EXITED && pinfold_result_code(result) == 0;
    auto_value json_t *denials = denials_since(x, result);
    struct json w = JSON(&j->structured);
    size_t n = 0;

    snprintf(line, sizeof line, "%s, status %d", x->resume ? "resumed" : "first call", pinfold_result_status(result));
    job_tell(j, line);
    if (good) {
        mark(x, BEGUN);
        answer(x, result);
    } else {
        const char *err = pinfold_result_stderr(result, &n);
        reason_of(x, pinfold_result_end(result) == PINFOLD_EXITED ? pinfold_result_code(result) : -1, &j->text);
        buf_printf(&j->text, "%s failed (%s %d).%s\n", x->agent->title,
                   pinfold_result_end(result) == PINFOLD_EXITED ? "exit status" : "ended, status",
                   pinfold_result_status(result), n ? " The end of what it wrote to standard error:" : "");
        tail(&j->text, err, n);
        if (j->text.n && j->text.p[j->text.n - 1] != '\n')
            buf_char(&j->text, '\n');
        j->failed = true;
    }
    if (!good) {
        denials_of(&j->text, denials);
        missing_of(&j->text, x->settings);
    }
    json_object(&w, NULL);
    json_text(&w, "agent", x->agent->agent);
    json_text(&w, "sessionId", x->id);
    json_text(&w, "directory", x->inside);
    json_bool(&w, "resumed", x->resume);
    json_str(&w, "answer", good ? buf_view(&j->text) : STR(""));
    json_int(&w, "status", pinfold_result_status(result));
    value_write(&w, "denials", denials);
    if (json_array_size(x->settings))
        value_write(&w, "settings", x->settings);
    json_object_end(&w);
}

static void begins_now(struct errand *x)
{
    struct timespec now;
    struct tm tm;
    char second[24];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    (void)strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(x->began, sizeof x->began, "%s.%03ldZ", second, now.tv_nsec / 1000000);
}

/*
 * A client of a desktop has not the PATH of a person's shell. Where the box has the host's files, a program that was found
 * beside PATH (~/.local/bin, npm's and nvm's directories) is started by its path, with what lies beside it on PATH.
 */
static void by_its_path(struct errand *x, char **argv, struct pinfold_exec_options *o)
{
    const struct pinfold_value *a = x->agent->definition;
    const char *path = answer_text(a, "path"), *here = getenv("PATH"), *slash = path ? strrchr(path, '/') : NULL;
    if (x->image || !slash || pinfold_value_is_true(pinfold_value_get(a, "on_path")) ||
        !same(argv[0], answer_text(a, "program")))
        return;
    const char **env = arena_zero(x->mem, 2 * sizeof *env);
    char *program = arena_text(x->mem, path);
    if (!env || !program)
        return;
    env[0] = arena_printf(x->mem, "PATH=%.*s%s%s", (int)(slash - path), path, here ? ":" : "", here ? here : "");
    argv[0] = program;
    o->env = env[0] ? env : NULL;
}

static void ask_it(struct errand *x)
{
    struct pinfold_error error = {0};
    struct pinfold_result *result;
    char **argv = NULL;
    struct telling telling = {.job = x->job};

    if (x->agent->responds)
        snprintf(x->response, sizeof x->response, "/tmp/pinfold-answer-%u", x->job->number);
    const struct pinfold_agent_options a = {.size = sizeof a,
                                            .agent = x->agent->agent,
                                            .directory = x->inside,
                                            .prompt = x->prompt,
                                            .profile = x->agent->profile[0] ? x->agent->profile : NULL,
                                            .response = x->response[0] ? x->response : NULL,
                                            .resume = x->resume,
                                            .unattended = 1};
    if (pinfold_agent_argv(&a, &argv, &error) < 0) {
        (void)failed(x, &error);
        return;
    }
    struct pinfold_exec_options o = {.size = sizeof o,
                                     .argv = (const char *const *)argv,
                                     .cwd = x->inside,
                                     .use_fds = 1,
                                     .stdin_fd = -1,
                                     .stdout_fd = -1,
                                     .stderr_fd = -1,
                                     .capture = 1,
                                     .capture_max = MAX_RESPONSE,
                                     .timeout_ms =
                                         (uint32_t)json_integer_value(json_object_get(x->job->arguments, "timeout_ms")),
                                     .cancel_fd = x->job->socket,
                                     .output = telling_output,
                                     .ctx = &telling};
    by_its_path(x, argv, &o);
    begins_now(x);
    int r = pinfold_exec(x->session, &o, &result, &error);
    free(argv);
    if (r < 0) {
        (void)failed(x, &error);
        return;
    }
    report(x, result);
    pinfold_result_free(result);
}

static void agent_work(struct mcp_job *j)
{
    struct errand x = {.job = j, .mem = arena_new(8u << 20), .held = -1};

    for (size_t i = 0; i < n_configured; i++) {
        if (same(configured[i].name, j->tool))
            x.agent = &configured[i];
    }
    if (x.mem && x.agent && take_arguments(&x) && prepare(&x) && enter_session(&x) && bring_settings(&x))
        ask_it(&x);
    else if (!j->failed)
        job_fail(j, "out of memory");
    pinfold_session_free(x.session);
    free(x.options);
    free(x.inside);
    free(x.directory);
    free(x.state);
    (void)close_fd(x.held);
    json_decref(x.settings);
    x.mem = arena_free(x.mem);
}

static const struct tool_argument agent_arguments[] = {
    {"prompt", ARGUMENT_TEXT, .required = true, .help = "The task for the agent."},
    {"directory", ARGUMENT_TEXT, .required = true, .help = "The absolute directory it works in."},
    {"sessionId", ARGUMENT_TEXT,
     .help = "A name for the conversation; calls with the same name and directory continue it. Default: 'default'."},
    {"timeout_ms", ARGUMENT_NUMBER, .min = 1, .max = MAX_TIMEOUT_MS, .help = "Time limit in milliseconds."},
    {0}};

static const struct pinfold_value *known_agent(const struct pinfold_value *root, struct str name)
{
    EACH_ANSWER(one, pinfold_value_get(root, "agents"))
    {
        if (str_is(name, answer_text(one, "name")))
            return one;
    }
    return NULL;
}

static bool is_profile(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return s.n < 48;
}

static bool configure_agent(const char *said, const struct pinfold_value *root, char *why, size_t room)
{
    struct str profile = str_of(said), name = str_until(&profile, ':');
    const struct pinfold_value *a = known_agent(root, name);

    EACH_ANSWER(one, pinfold_value_get(root, "wrong"))
    {
        if (a || !str_is(name, answer_text(one, "name")))
            continue;
        snprintf(why, room, "--agent %s: %s", said, answer_text(one, "error"));
        return false;
    }
    if (n_configured == MAX_AGENTS || !a || name.n > 40) {
        snprintf(why, room, "--agent %s: %s", said, a ? "at most 16 agents" : "unknown agent; see: pinfold agent list");
        return false;
    }
    if (!is_profile(profile) || (profile.n && !pinfold_value_is_true(pinfold_value_get(a, "profile")))) {
        snprintf(why, room, "--agent %s: %s", said,
                 is_profile(profile) ? "this agent has no profiles" : "a profile is letters, digits, '-' and '_'");
        return false;
    }
    if (!pinfold_value_is_true(pinfold_value_get(a, "prompt"))) {
        snprintf(why, room, "--agent %s: this agent is started by its name only (pinfold %.*s)", said, (int)name.n,
                 name.p);
        return false;
    }
    struct configured *c = &configured[n_configured++];
    snprintf(c->agent, sizeof c->agent, "%.*s", (int)name.n, name.p);
    snprintf(c->profile, sizeof c->profile, "%.*s", (int)profile.n, profile.p);
    snprintf(c->name, sizeof c->name, "%.*s%s%.*s", (int)name.n, name.p, profile.n ? "_" : "",
             profile.n > 20 ? 20 : (int)profile.n, profile.p);
    snprintf(c->title, sizeof c->title, "%s", answer_text(a, "title") ? answer_text(a, "title") : c->agent);
    c->definition = a;
    c->resumes = pinfold_value_is_true(pinfold_value_get(a, "resume"));
    c->responds = !same(answer_text(a, "response"), "none");
    c->tool = (struct tool){
        .name = c->name,
        .title = c->title,
        .description = "Gives a task to another agent, which works on it alone in its own sandbox "
                       "and returns one answer. A sessionId continues an earlier conversation.",
        .arguments = agent_arguments,
        .output =
            "{\"type\":\"object\",\"properties\":{\"agent\":{\"type\":\"string\"},\"sessionId\":{\"type\":\"string\"},"
            "\"directory\":{\"type\":\"string\"},"
            "\"resumed\":{\"type\":\"boolean\"},\"answer\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"}},"
            "\"required\":[\"agent\",\"sessionId\",\"answer\",\"status\"]}",
        .destructive = true,
        .open_world = true,
        .sessions = true,
        .work = agent_work};
    if (mcp_tool_find(c->name) || !tool_add(&c->tool)) {
        snprintf(why, room, "--agent %s: a tool of this name already exists", said);
        return false;
    }
    return true;
}

bool agents_begin(const struct mcp_options *o, char *why, size_t room)
{
    static struct pinfold_report *known; /* the tools refer to it as long as they are there */
    struct pinfold_error error = {0};

    if (!o->agents || !o->agents[0])
        return true;
    if (!known && pinfold_agent_list_report(&known, &error) < 0) {
        snprintf(why, room, "%s", error.text);
        return false;
    }
    bool good = true;
    for (const char *const *a = o->agents; good && *a; a++)
        good = configure_agent(*a, pinfold_report_value(known), why, room);
    return good;
}

void agents_tell_missing(bool image, void (*tell)(const char *sentence))
{
    for (size_t i = 0; i < n_configured; i++) {
        auto_buf struct buf why = BUF(1u << 12);
        const char *absent = answer_text(configured[i].definition, "not_installed");
        if (absent && !image) {
            buf_printf(&why, "--agent %s: %s", configured[i].agent, absent);
            tell(buf_cstr(&why));
            buf_free(&why);
        }
        buf_printf(&why, "--agent %s: ", configured[i].agent);
        if (no_login(configured[i].definition, &why) && buf_ok(&why))
            tell(buf_cstr(&why));
    }
}
