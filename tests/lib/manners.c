/*
 * Every call of libpinfold leaves the calling process as it was: umask, directory, signal dispositions and mask, pending
 * signals, descriptors, children (also none to be waited for, and no SIGCHLD), subreaper, environment, threads, memory
 * mappings' count within bounds. And it works from a thread that ends, while another thread reaps with wait().
 *
 *     manners WORKSPACE     a directory to run in; exits 0 when all holds
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pinfold.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct state {
    mode_t mask;
    char cwd[4096];
    struct sigaction actions[65];
    sigset_t blocked, pending;
    int subreaper, threads, dumpable, no_new_privs;
    char fds[4096], environment[16384];
};

static volatile sig_atomic_t children_told;
static int failures;

static void on_child(int sig)
{
    (void)sig;
    children_told++;
}

static void list(const char *dir, char *to, size_t room, int *count)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    *count = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || (d && atoi(e->d_name) == dirfd(d)))
            continue;
        char path[512], target[512] = "";
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (readlink(path, target, sizeof target - 1) < 0)
            target[0] = 0;
        if (to)
            n += (size_t)snprintf(to + n, room - n, "%s=%s\n", e->d_name, target);
        ++*count;
    }
    if (d)
        closedir(d);
}

static void look(struct state *s)
{
    size_t n = 0;
    int count;
    memset(s, 0, sizeof *s);
    s->mask = umask(0);
    umask(s->mask);
    if (!getcwd(s->cwd, sizeof s->cwd))
        abort();
    for (int i = 1; i < 65; i++) {
        sigaction(i, NULL, &s->actions[i]);
        /* The kernel's set has 64 bits; what glibc has behind them is what lay on its stack. */
        memset((char *)&s->actions[i].sa_mask + 8, 0, sizeof(sigset_t) - 8);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    sigpending(&s->pending);
    prctl(PR_GET_CHILD_SUBREAPER, &s->subreaper);
    s->dumpable = prctl(PR_GET_DUMPABLE);
    s->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    list("/proc/self/fd", s->fds, sizeof s->fds, &count);
    list("/proc/self/task", NULL, 0, &s->threads);
    for (char **e = environ; *e; e++)
        n += (size_t)snprintf(s->environment + n, sizeof s->environment - n, "%s\n", *e);
}

static void differ(const char *call, const char *what)
{
    fprintf(stderr, "%s changed %s\n", call, what);
    failures++;
}

static void compare(const char *call, const struct state *a)
{
    static struct state b;
    siginfo_t info = {0};
    look(&b);
    if (a->mask != b.mask)
        differ(call, "the umask");
    if (strcmp(a->cwd, b.cwd) != 0)
        differ(call, "the directory");
    if (memcmp(a->actions, b.actions, sizeof a->actions) != 0)
        differ(call, "signal dispositions");
    if (memcmp(&a->blocked, &b.blocked, sizeof a->blocked) != 0)
        differ(call, "the signal mask");
    if (memcmp(&a->pending, &b.pending, sizeof a->pending) != 0)
        differ(call, "pending signals");
    if (a->subreaper != b.subreaper || a->dumpable != b.dumpable || a->no_new_privs != b.no_new_privs)
        differ(call, "process attributes");
    if (a->threads != b.threads)
        differ(call, "threads");
    if (strcmp(a->fds, b.fds) != 0) {
        differ(call, "descriptors");
        fprintf(stderr, "before:\n%safter:\n%s", a->fds, b.fds);
    }
    if (strcmp(a->environment, b.environment) != 0)
        differ(call, "the environment");
    /* __WALL: also children without an exit signal. */
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0 || errno != ECHILD)
        differ(call, "children");
    if (children_told)
        differ(call, "SIGCHLD");
    children_told = 0;
}

static void must(const char *call, int r, const struct pinfold_error *e)
{
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", call, e->text);
        failures++;
    }
}

static void check(const char *what, int holds)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        failures++;
    }
}

static int said;
static void say(void *ctx, enum pinfold_say what, const char *sentence)
{
    (void)ctx;
    said |= 1 << what;
    check("a sentence is empty", sentence[0] != 0);
}

static struct pinfold_policy *policy;

static void try_run(const struct state *before)
{
    struct pinfold_error e = {0};
    struct pinfold_result *r = NULL;
    const char *argv[] = {"/bin/sh", "-c", "cat; echo err >&2; exit 7", NULL};
    size_t n;
    int in[2];

    if (pipe2(in, O_CLOEXEC) < 0 || write(in[1], "a\0b", 3) != 3)
        abort();
    close(in[1]);
    struct pinfold_run_options o = {
        .size = sizeof o, .argv = argv, .capture = 1, .use_fds = 1, .stdin_fd = in[0], .say = say};
    int got = pinfold_run(policy, &o, &r, &e);
    close(in[0]);
    must("pinfold_run", got, &e);
    if (got < 0)
        return;
    compare("pinfold_run", before);
    check("the status is not 7", pinfold_result_status(r) == 7 && pinfold_result_end(r) == PINFOLD_EXITED);
    const char *out = pinfold_result_stdout(r, &n);
    check("stdout is not what was written", n == 3 && memcmp(out, "a\0b", 3) == 0);
    check("stderr is not what was written", strcmp(pinfold_result_stderr(r, NULL), "err\n") == 0);
    check("the result has no JSON", pinfold_result_json(r)[0] == '{');
    check("no line before and after was said", said == (1 << PINFOLD_SAY_HEADER | 1 << PINFOLD_SAY_CLOSING));
    pinfold_result_free(r);
    compare("pinfold_result_free", before);
}

static void try_texts(const struct state *before)
{
    struct pinfold_error e = {0};
    char *text = NULL, **wrapped = NULL;
    const char *argv[] = {"/bin/sh", "-c", "exit 9", NULL};

    must("pinfold_policy_text", pinfold_policy_text(policy, 1, &text, &e), &e);
    compare("pinfold_policy_text", before);
    free(text);
    must("pinfold_explain", pinfold_explain(policy, PINFOLD_EXPLAIN_JSON, 0, &text, &e), &e);
    compare("pinfold_explain", before);
    free(text);
    must("pinfold_policy_schema", pinfold_policy_schema(&text, &e), &e);
    compare("pinfold_policy_schema", before);
    free(text);
    must("pinfold_wrap", pinfold_wrap(policy, argv, &wrapped, &e), &e);
    compare("pinfold_wrap", before);
    if (wrapped) {
        int status = -1, pid = fork();
        if (pid == 0) {
            execv(wrapped[0], wrapped);
            _exit(99);
        }
        check("the wrapped command does not run",
              waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
        children_told = 0;
        free(wrapped);
    }
    check("there are no options", pinfold_option_at(0) && pinfold_option_at(0)->key && !pinfold_option_at(100000));
}

static void try_errors(const struct state *before)
{
    struct pinfold_error e = {0};
    struct pinfold_policy *none = NULL;
    const struct pinfold_option wrong[] = {{"memory", "1e30"}, {NULL, NULL}};
    struct pinfold_policy_options o = {.size = sizeof o, .options = wrong};
    check("a wrong option was taken", pinfold_policy_load(&o, &none, &e) < 0 && e.kind == PINFOLD_ERROR_POLICY);
    check("the sentence does not name the flag", strstr(e.text, "memory") != NULL);
    compare("a failing pinfold_policy_load", before);
    o.size = 1;
    check("a struct of size 1 was taken", pinfold_policy_load(&o, &none, &e) < 0);
    const char *argv[] = {NULL};
    struct pinfold_result *r;
    struct pinfold_run_options run = {.size = sizeof run, .argv = argv};
    check("an empty command was taken", pinfold_run(policy, &run, &r, &e) < 0);
    compare("a failing pinfold_run", before);
}

static void *starting_thread(void *ctx)
{
    struct pinfold_error e = {0};
    struct pinfold_result **r = ctx;
    const char *argv[] = {"/bin/sh", "-c", "sleep 0.3; echo done", NULL};
    struct pinfold_run_options o = {.size = sizeof o, .argv = argv, .capture = 1};
    must("pinfold_run in a thread", pinfold_run(policy, &o, r, &e), &e);
    return NULL;
}

/* Some thread of the caller reaps whatever it finds; it must never find ours. */
static volatile int stop;
static void *reaping_thread(void *ctx)
{
    int *reaped = ctx;
    while (!stop) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            ++*reaped;
        usleep(1000);
    }
    return NULL;
}

static void *short_thread(void *ctx)
{
    struct pinfold_error e = {0};
    must("pinfold_policy_load in a thread", pinfold_policy_load(NULL, ctx, &e), &e);
    return NULL;
}

static void try_threads(void)
{
    pthread_t runner, reaper, loader;
    struct pinfold_result *r = NULL;
    struct pinfold_policy *other = NULL;
    int reaped = 0;

    pthread_create(&reaper, NULL, reaping_thread, &reaped);
    pthread_create(&runner, NULL, starting_thread, &r);
    pthread_create(&loader, NULL, short_thread, &other);
    pthread_join(loader, NULL); /* a thread that started one of ours ends while the other's box lives */
    pthread_join(runner, NULL);
    stop = 1;
    pthread_join(reaper, NULL);
    check("a foreign wait() reaped a child of the library", reaped == 0);
    check("the run in a thread has no output", r && strcmp(pinfold_result_stdout(r, NULL), "done\n") == 0);
    if (r)
        pinfold_result_free(r);
    pinfold_policy_free(other);
}

static void fail(const char *call, const char *what)
{
    fprintf(stderr, "%s: %s\n", call, what);
    failures++;
}

/* Files of a session, and agents: the session's object holds a socket while it lives, and nothing else is left. */
static void try_files(const struct state *before, const char *workspace)
{
    struct pinfold_error e = {0};
    struct pinfold_session *session = NULL;
    const struct pinfold_session_options name = {.size = sizeof name, .name = "manners"};
    char path[4096], *text = NULL, **argv = NULL;
    size_t n = 0;
    uint64_t size = 0;

    must("pinfold_session_ensure", pinfold_session_ensure(policy, &name, &session, &e), &e);
    if (!session)
        return;
    snprintf(path, sizeof path, "%s/deep/file", workspace);
    for (int i = 0; i < 3; i++) {
        must("pinfold_file_write", pinfold_file_write(session, path, "bytes", 5, 0644, 1, &e), &e);
        must("pinfold_file_read", pinfold_file_read(session, path, 1, 100, &text, &n, &size, &e), &e);
        if (n != 4 || size != 5 || !text || strcmp(text, "ytes") != 0)
            fail("pinfold_file_read", "other bytes");
        free(text);
        text = NULL;
    }
    must("pinfold_file_list", pinfold_file_list(session, workspace, &text, &e), &e);
    if (!text || !strstr(text, "\"deep\""))
        fail("pinfold_file_list", text ? text : "nothing");
    free(text);
    text = NULL;
    must("pinfold_path_to_host", pinfold_path_to_host(session, path, &text, &e), &e);
    free(text);
    text = NULL;
    if (pinfold_file_write(session, "/etc/passwd", "", 0, 0644, 0, &e) >= 0)
        fail("pinfold_file_write", "/etc/passwd was written");
    must("pinfold_file_remove", pinfold_file_remove(session, path, 0, &e), &e);
    pinfold_session_free(session);
    must("pinfold_session_stop", pinfold_session_stop(&name, 1, &e), &e);
    compare("files of a session", before);

    const struct pinfold_agent_options agent = {
        .size = sizeof agent, .agent = "kiro-cli", .directory = "/w", .prompt = "hello", .resume = 1};
    must("pinfold_agent_argv", pinfold_agent_argv(&agent, &argv, &e), &e);
    if (!argv || strcmp(argv[0], "kiro-cli") != 0 || strcmp(argv[3], "--resume") != 0)
        fail("pinfold_agent_argv", "other words");
    free(argv);
    must("pinfold_agent_list", pinfold_agent_list(&text, &e), &e);
    free(text);
    text = NULL;
    struct pinfold_option *options = NULL;
    snprintf(path, sizeof path, "%s/login", workspace);
    const struct pinfold_agent_options login = {.size = sizeof login, .agent = "codex", .state = path};
    must("pinfold_agent_prepare", pinfold_agent_prepare(&login, &options, &text, &e), &e);
    if (!options || strcmp(options[0].name, "mount") != 0 || !strstr(options[0].value, "/login/config:"))
        fail("pinfold_agent_prepare", "other options");
    free(options);
    free(text);
    compare("agents", before);
}

static size_t told; /* by pinfold_run(), while the command ran */
static void hear_denied(void *ctx, const struct pinfold_denial *d)
{
    (void)ctx;
    if (!d->kind || !d->action || !d->target || !strstr(d->target, "/.git/"))
        fail("denied", d->target ? d->target : "no target");
    told++;
}

/* What a result and the answers hold, without a JSON parser; the texts are the result's. */
static void use_values(const char *workspace)
{
    static const char *const deny[] = {"/bin/sh", "-c", "mkdir -p .git; echo x >.git/config 2>/dev/null; exit 3", NULL};
    const struct pinfold_option options[] = {{"workspace", workspace}, {NULL, NULL}};
    const struct pinfold_policy_options po = {.size = sizeof po, .options = options, .no_layers = 1};
    const struct pinfold_run_options o = {.size = sizeof o, .argv = deny, .capture = 1, .denied = hear_denied};
    struct pinfold_summary s = {.size = sizeof s};
    struct pinfold_denial d = {.size = sizeof d};
    struct pinfold_leftover l = {.size = sizeof l};
    struct pinfold_connection c = {.size = sizeof c};
    struct {
        size_t size;
        const char *ended, *behind;
    } old = {.size = 2 * sizeof(char *), .behind = "untouched"};
    struct pinfold_policy *policy;
    struct pinfold_result *r;
    struct pinfold_report *report = NULL;
    struct pinfold_error e = {0};
    const char *by = NULL;
    size_t n = 0;

    must("pinfold_policy_load", pinfold_policy_load(&po, &policy, &e), &e);
    must("pinfold_run", pinfold_run(policy, &o, &r, &e), &e);
    pinfold_result_summary(r, &s);
    pinfold_result_summary(r, (struct pinfold_summary *)(void *)&old);
    if (!s.ended || strcmp(s.ended, "exit") != 0 || s.limit || !s.engine || !s.plan_digest ||
        strlen(s.plan_digest) != 64)
        fail("pinfold_result_summary", pinfold_result_json(r));
    if (strcmp(old.ended, "exit") != 0 || strcmp(old.behind, "untouched") != 0)
        fail("pinfold_result_summary", "wrote beyond a smaller struct");
    if (!pinfold_result_enforced(r, 0, &by) || !by || !*by || pinfold_result_enforced(r, 1000, NULL))
        fail("pinfold_result_enforced", pinfold_result_json(r));
    if (!pinfold_result_not_seen(r, 0) || pinfold_result_not_seen(r, 1000))
        fail("pinfold_result_not_seen", pinfold_result_json(r));
    while (pinfold_result_denial(r, n, &d)) {
        if (!d.kind || !d.action || !d.target)
            fail("pinfold_result_denial", pinfold_result_json(r));
        n++;
    }
    if (!n || told != n)
        fail("denied", pinfold_result_json(r));
    const struct pinfold_value *v = pinfold_result_value(r);
    if (n != pinfold_value_count(pinfold_value_get(v, "denials")) ||
        pinfold_value_number(pinfold_value_get(v, "exit_code")) != 3 ||
        pinfold_value_type(pinfold_value_get(v, "limit")) != PINFOLD_VALUE_NONE ||
        pinfold_value_is_true(pinfold_value_get(v, "success")))
        fail("pinfold_result_value", pinfold_result_json(r));
    if (pinfold_result_left(r, 1000, &l) || pinfold_result_allowed(r, 0, &c))
        fail("pinfold_result_left", pinfold_result_json(r));
    (void)pinfold_result_lost(r, 0);
    (void)pinfold_result_not_taken(r, 0, &by);
    pinfold_result_free(r);

    must("pinfold_explain_report", pinfold_explain_report(policy, 0, &report, &e), &e);
    v = pinfold_value_first(pinfold_value_get(pinfold_report_value(report), "files"));
    if (!v || !pinfold_value_text(pinfold_value_get(v, "path"), NULL) || pinfold_value_name(v))
        fail("pinfold_explain_report", pinfold_report_json(report));
    pinfold_report_free(report);
    pinfold_policy_free(policy);
    must("pinfold_session_list_report", pinfold_session_list_report(NULL, &report, &e), &e);
    if (pinfold_value_type(pinfold_value_get(pinfold_report_value(report), "sessions")) != PINFOLD_VALUE_LIST)
        fail("pinfold_session_list_report", pinfold_report_json(report));
    pinfold_report_free(report);
    must("pinfold_names_report", pinfold_names_report(&report, &e), &e);
    if (pinfold_value_count(pinfold_value_get(pinfold_report_value(report), "guarantees")) < 5)
        fail("pinfold_names_report", pinfold_report_json(report));
    pinfold_report_free(report);
    if (pinfold_doctor_report(0, &report, &e) < 0 ||
        !pinfold_value_text(pinfold_value_get(pinfold_report_value(report), "version"), NULL))
        fail("pinfold_doctor_report", e.text);
    pinfold_report_free(report);
    pinfold_report_free(NULL);
}

int main(int argc, char **argv)
{
    static struct state before;
    struct pinfold_error e = {0};
    struct sigaction child = {.sa_handler = on_child};
    const struct pinfold_option options[] = {{"workspace", argc > 1 ? argv[1] : "."}, {NULL, NULL}};
    struct pinfold_policy_options o = {.size = sizeof o, .options = options};

    /* A caller with habits of its own. */
    umask(037);
    sigaction(SIGCHLD, &child, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    raise(SIGUSR1); /* stays pending */
    setenv("MANNERS", "1", 1);
    fcntl(0, F_DUPFD, 77); /* an inheritable descriptor: must not enter, must not be closed */

    look(&before);
    must("pinfold_policy_load", pinfold_policy_load(&o, &policy, &e), &e);
    compare("pinfold_policy_load", &before);
    if (!policy)
        return 1;
    try_run(&before);
    try_texts(&before);
    try_errors(&before);
    try_files(&before, argc > 1 ? argv[1] : ".");
    use_values(argc > 1 ? argv[1] : ".");
    compare("values", &before);
    try_threads();
    compare("threads", &before);
    pinfold_policy_free(policy);
    compare("pinfold_policy_free", &before);
    if (!failures)
        puts("the caller's process is as it was");
    return failures ? 1 : 0;
}
