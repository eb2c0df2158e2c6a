/*
 * mcp_serve(): sets up policy, workers and transport, and runs until the client disconnects or a signal arrives. This
 * process only talks; boxes are started by workers, which are processes of their own (workers/work.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/agents.h"
#include "mcp/tools/directory.h"
#include "mcp/transport/http.h"
#include "mcp/workers/owner.h"
#include "mcp/transport/pipe.h"

#define EXIT_USAGE  2
#define EXIT_CANNOT 3

static void complain(const char *sentence)
{
    char line[2048];
    int n = snprintf(line, sizeof line, "pinfold: mcp: %s\n", sentence);
    (void)!write(2, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

struct mcp_signals {
    struct loop_source source;
    struct loop *loop;
};

static void signalled(struct loop_source *s, short revents)
{
    struct mcp_signals *m = (struct mcp_signals *)(void *)s;
    struct signalfd_siginfo info;
    (void)revents;
    /* The end of a child only wakes us: work_idle() reaps. */
    if (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info && info.ssi_signo != SIGCHLD)
        m->loop->done = true;
}

static int signals_begin(struct mcp_signals *m, struct loop *loop)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *m = (struct mcp_signals){.source = {.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN, .ready = signalled},
                              .loop = loop};
    return m->source.fd < 0 ? -errno : loop_add(loop, &m->source);
}

/* What carries the protocol: one of the two. */
struct carrier {
    struct pipe *pipe;
    struct http *http;
};

static bool carrier_begin(struct server *s, struct carrier *c)
{
    char why[512] = "cannot use standard input and output";
    if (s->place.options->http)
        c->http = http_new(s, why, sizeof why);
    else
        c->pipe = pipe_new(s);
    if (!c->http && !c->pipe)
        complain(why);
    return c->http || c->pipe;
}

/* The exit status. */
static int run(struct server *s, const struct carrier *c)
{
    while (!s->loop.done) {
        uint64_t now = loop_now();
        int wait = c->http ? http_tick(c->http, now) : pipe_tick(c->pipe, now);
        int asks = asker_tick(&s->asker, now);
        wait = wait < 0 || (asks >= 0 && asks < wait) ? asks : wait;
        int idle = work_idle(s->work, now);
        wait = wait < 0 || (idle >= 0 && idle < wait) ? idle : wait;
        int r = loop_turn(&s->loop, wait);
        if (r < 0) {
            char why[128];
            snprintf(why, sizeof why, "cannot wait for requests: %s", strerror(-r));
            complain(why);
            return EXIT_CANNOT;
        }
    }
    return 0;
}

/* How the first task ends. */
struct beginning {
    struct loop *loop;
    struct task *task;
    int status;
    bool no_image_said;
};

static void begun_say(void *ctx, enum say_level level, struct str sentence)
{
    (void)ctx;
    (void)level;
    (void)sentence;
}
static void begun_words(void *ctx, struct str sentence)
{
    (void)ctx;
    (void)sentence;
}

static void begun_question(void *ctx, struct str sentence, uint32_t patience_ms)
{
    (void)patience_ms;
    begun_words(ctx, sentence);
}
static void begun_changed(void *ctx)
{
    (void)ctx;
}

static void begun(void *ctx, struct str json)
{
    struct beginning *b = ctx;
    char why[128];
    auto_value json_t *result = value_read(json, why, sizeof why);

    b->task = NULL;
    if (!json_is_true(json_object_get(result, "isError")))
        return;
    const char *text = value_text(json_array_get(json_object_get(result, "content"), 0), "text", NULL);
    complain(text ? text : "cannot create boxes here");
    if (b->no_image_said)
        complain("name an image that has the agents with --sandbox-image IMAGE");
    b->status = EXIT_CANNOT;
    b->loop->done = true;
}

static void begun_not(void *ctx)
{
    struct beginning *b = ctx;
    b->task = NULL;
}
static void begun_fault(void *ctx, int code, struct str sentence)
{
    (void)code;
    (void)sentence;
    begun_not(ctx);
}

static void begin_work(struct server *s, struct beginning *b)
{
    static const struct task_events events = {.say = begun_say,
                                              .progress = begun_words,
                                              .question = begun_question,
                                              .changed = begun_changed,
                                              .result = begun,
                                              .fault = begun_fault,
                                              .lost = begun_not};
    b->task = work_start(s->work, STR("{\"tool\":\"mcp\"}"), false, 0, &events, b);
}

/* The person's options, and that what agents store is hidden, wherever it is. NULL without memory. */
static struct pinfold_option *with_store_hidden(const struct pinfold_option *options)
{
    size_t n = 0;
    while (options && options[n].name)
        n++;
    char *store = directory_store(); /* both live as long as the process */
    struct pinfold_option *all = calloc(n + 2, sizeof *all);
    if (all && n)
        memcpy(all, options, n * sizeof *all);
    if (all && store)
        all[n] = (struct pinfold_option){"hide", store};
    return all;
}

/*
 * The policy of boxes that stay: where the person wants to be asked for hosts, nobody can be there, and what no rule names is
 * refused. False with the sentence said.
 */
static bool keep_policy(struct job_place *place)
{
    static struct pinfold_policy_options kept;
    const struct pinfold_option *from = place->options->policy->options;
    struct pinfold_error error = {0};
    size_t n = 0;
    bool asks = false;

    place->kept_options = place->options->policy;
    place->kept = place->policy;
    while (from && from[n].name)
        n++;
    struct pinfold_option *to = calloc(n + 1, sizeof *to); /* lives as long as the process */
    for (size_t i = 0; to && i < n; i++) {
        bool ask = same(from[i].name, "ask") && !same(from[i].value, "false");
        to[i] = ask ? (struct pinfold_option){"net", "allow"} : from[i];
        asks = asks || ask;
    }
    if (!to || !asks) {
        free(to);
        return true;
    }
    kept = *place->options->policy;
    kept.options = to;
    place->kept_options = &kept;
    place->kept = NULL;
    if (pinfold_policy_load(&kept, &place->kept, &error) < 0) {
        complain(error.text);
        return false;
    }
    if (!place->options->quiet)
        complain("--ask: only 'run' asks about hosts that no rule names; in sessions and boxes of agents such hosts "
                 "are refused");
    return true;
}

/* What a server is made of that begins before it has a workspace. */
struct mcp_serving {
    struct server server;
    struct pinfold_policy_options policy; /* the person's, then with the client's directory */
    struct beginning beginning;
    char unusable[1024];
};

/* Desktop clients start servers in / or in the person's home: `text` says that neither can be a workspace. */
static bool in_no_project(const struct mcp_options *o, const char *text, char *to, size_t room)
{
    char cwd[PATH_MAX], home[PATH_MAX];
    for (const struct pinfold_option *one = o->policy->options; one && one->name; one++) {
        if (same(one->name, "workspace"))
            return false;
    }
    if (o->http || !getcwd(cwd, sizeof cwd))
        return false;
    const char *said = getenv("HOME");
    bool is_home = said && realpath(said, home) && same(cwd, home);
    if (!is_home && !same(cwd, "/"))
        return false;
    (void)snprintf(
        to, room,
        "no commands can run: %s. For a client that starts 'pinfold mcp' outside of a project, the person adds "
        "\"--workspace\", \"/path/of/the/project\" to its arguments in the client's settings",
        text);
    return true;
}

/* server.adopt */
static bool adopt(struct server *s, const char *directory, char *why, size_t room)
{
    struct mcp_serving *v = (struct mcp_serving *)(void *)s;
    struct job_place *place = &s->place;
    const struct pinfold_option *from = v->policy.options;
    struct pinfold_error error = {0};
    char real[PATH_MAX];
    size_t n = 0;

    if (!place->options->judge("the client's directory", directory, real, why, room))
        return false;
    while (from[n].name)
        n++;
    struct pinfold_option *to = calloc(n + 2, sizeof *to); /* lives as long as the process, as does the name */
    if (!to)
        return false;
    memcpy(to, from, n * sizeof *to);
    to[n] = (struct pinfold_option){"workspace", strdup(real)};
    v->policy.options = to;
    if (!to[n].value || pinfold_policy_load(&v->policy, &place->policy, &error) < 0 || !keep_policy(place)) {
        (void)snprintf(why, room, "%s", error.text[0] ? error.text : "out of memory");
        pinfold_policy_free(place->policy);
        place->policy = NULL;
        v->policy.options = from;
        return false;
    }
    place->unusable = NULL;
    work_renew(s->work);
    begin_work(s, &v->beginning);
    return true;
}

/* 0, or -errno with what could not be done in `why`. */
static int begin(struct server *s, struct mcp_signals *signals, char *why, size_t room)
{
    const char *what = "read this process's start time";
    int r = owner_instance(s->place.instance, sizeof s->place.instance);
    if (r == 0) {
        what = "wait for signals";
        r = signals_begin(signals, &s->loop);
    }
    s->work = r < 0 ? NULL : work_new(&s->loop, &s->place);
    if (r == 0 && !s->work) {
        what = "start";
        r = -ENOMEM;
    }
    if (r < 0)
        snprintf(why, room, "cannot %s: %s", what, strerror(-r));
    return r;
}

/* The policy, or why there is none yet. False with the sentence said. */
static bool load_policy(struct mcp_serving *v, const struct mcp_options *o)
{
    struct job_place *place = &v->server.place;
    struct pinfold_error error = {0};
    bool good = pinfold_policy_load(o->policy, &place->policy, &error) == 0;
    if (!good)
        complain(error.text);
    if (!good && in_no_project(o, error.text, v->unusable, sizeof v->unusable)) {
        place->unusable = v->unusable;
        v->server.adopt = adopt;
        complain("serving all the same: the client is asked for its directories");
        return true;
    }
    return good && keep_policy(place);
}

int mcp_serve(const struct mcp_options *said)
{
    struct mcp_options options = *said, *o = &options;
    struct mcp_serving v = {.server = {.place = {.options = o}}, .policy = *said->policy};
    struct server *s = &v.server;
    struct mcp_signals signals = {.source = {.fd = -1}};
    struct carrier carrier = {0};
    int status = EXIT_USAGE;

    char why[512];

    v.beginning.loop = &s->loop;
    v.beginning.no_image_said = o->no_image_said;
    (void)signal(SIGPIPE, SIG_IGN);
    v.policy.options = with_store_hidden(v.policy.options);
    if (!v.policy.options) {
        complain("cannot start: Cannot allocate memory");
        return EXIT_USAGE;
    }
    o->policy = &v.policy;
    if (!agents_begin(o, why, sizeof why)) {
        complain(why);
        return EXIT_USAGE;
    }
    if (!load_policy(&v, o)) {
        pinfold_policy_free(s->place.policy);
        return EXIT_USAGE;
    }
    if (begin(s, &signals, why, sizeof why) < 0)
        complain(why);
    else if (asker_begin(&s->asker, &s->loop), carrier_begin(s, &carrier)) {
        if (s->place.policy)
            begin_work(s, &v.beginning);
        agents_tell_missing(o->sandbox, complain);
        status = run(s, &carrier);
        if (status == 0)
            status = v.beginning.status;
    }
    carrier.pipe = pipe_free(carrier.pipe);
    carrier.http = http_free(carrier.http);
    if (s->asker.loop)
        asker_end(&s->asker);
    work_free(s->work);
    janitor_end(&s->janitor);
    (void)close_fd(signals.source.fd);
    loop_free(&s->loop);
    if (s->place.kept != s->place.policy)
        pinfold_policy_free(s->place.kept);
    pinfold_policy_free(s->place.policy);
    return status;
}
