/*
 * Lists sessions: what their records say, and what their daemons answer now. One that does not answer is listed all
 * the same, with null for what only it knows. Prints the log, which names sessions.
 */
#include "session/session.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fd.h"
#include "base/json.h"
#include "run/asked/last.h"
#include "run/report.h"
#include "session/said.h"
#include "backends/engine.h"
#include "survey/owner.h"
#include "session/ask.h"
#include "run/layer/cow.h"
#include "plan/plan.h"
#include "sys/process.h"
#include "protocol/keep.h"

#define DAEMON_PATIENCE_S 10

static void put_time(struct json *j, const char *name, uint64_t seconds)
{
    char text[32];
    time_t t = (time_t)seconds;
    struct tm tm;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        json_text(j, name, text);
    else
        json_null(j, name);
}

static void put_storage(struct json *j, const struct record *r)
{
    json_array(j, "storage");
    for (size_t i = 0; i < r->n_kept; i++) {
        const struct kept *k = &r->kept[i];
        json_object(j, NULL);
        if (k->what.path[0])
            json_text(j, "path", k->what.path);
        else
            json_null(j, "path");
        json_text(j, k->what.volume ? "volume" : "directory", k->what.at);
        if (k->what.volume)
            json_text(j, "engine", k->engine);
        json_object_end(j);
    }
    json_array_end(j);
}

/* What it was started with, which the next start without options takes up (cli/session/again.c). */
static void put_asked(struct json *j, const struct record *r)
{
    if (!r->asked_in || !r->asked_in[0]) {
        json_null(j, "started_with");
        return;
    }
    json_object(j, "started_with");
    json_text(j, "directory", r->asked_in);
    json_array(j, "options");
    for (size_t i = 0; i < r->n_asked; i++) {
        if (r->asked[i].unkept || !r->asked[i].name)
            continue;
        json_object(j, NULL);
        json_text(j, "name", r->asked[i].name);
        json_text_or_null(j, "value", r->asked[i].value);
        json_object_end(j);
    }
    json_array_end(j);
    json_array(j, "variables_not_kept");
    for (size_t i = 0; i < r->n_asked; i++) {
        if (r->asked[i].unkept && r->asked[i].value)
            json_text(j, NULL, r->asked[i].value);
    }
    json_array_end(j);
    json_object_end(j);
}

/* What its session daemon says of it; null when that does not answer. */
static void put_now(struct json *j, const struct session_place *p, int pid)
{
    const struct timeval patience = {DAEMON_PATIENCE_S, 0};
    auto_buf struct buf said = BUF(MAX_ANSWER_TEXT);
    struct err ignored = {0};
    auto_fd int fd = process_is_stopped(pid) ? -1 : place_connect(p);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        ask_send(fd, (struct keep_request){.op = KEEP_SHOW}, STR(""), NULL, 0, &ignored) < 0 ||
        ask_answer(fd, NULL, &said, &ignored) < 0 || said_put(j, "now", buf_view(&said)) < 0)
        json_null(j, "now");
}

static void put_session(struct json *j, const struct session_place *p, const struct record *r, bool whole)
{
    bool alive = record_is_alive(r);
    json_object(j, NULL);
    json_text(j, "name", r->name);
    json_text(j, "scope", r->scope);
    json_text(j, "id", p->hash);
    json_text(j, "state", alive ? "running" : record_is_of_boot(r) ? "ended" : "ended by a restart of the machine");
    json_uint(j, "pid", alive ? (uint64_t)r->pid : 0);
    json_text(j, "engine", r->engine);
    json_text(j, "profile", r->profile);
    json_text(j, "workspace", r->workspace);
    json_text(j, "cwd", r->cwd);
    json_text_or_null(j, "layer", r->layer && r->layer[0] ? r->layer : NULL);
    if (r->layer && r->layer[0])
        layer_put_size(j, r->layer);
    put_time(j, "created", r->created);
    json_text(j, "policy_digest", r->policy_digest);
    if (alive)
        put_now(j, p, r->pid);
    if (whole) {
        json_text(j, "plan_digest", r->plan_digest);
        json_text(j, "state_dir", p->state);
        json_text(j, "runtime_dir", p->run);
        json_object(j, "enforced");
        for (size_t i = 0; i < r->n_enforced; i++)
            json_text(j, feature_name(r->enforced[i].what), r->enforced[i].by);
        json_object_end(j);
        json_array(j, "lost");
        for (int f = 0; f < FEATURE_COUNT; f++) {
            if (r->lost & ((features)1 << f))
                json_text(j, NULL, feature_name((enum feature)f));
        }
        json_array_end(j);
        put_storage(j, r);
        put_asked(j, r);
    }
    json_object_end(j);
}

/* By what its daemon says; one that does not answer has only its place and its process. */
static void put_unrecorded(struct json *j, const struct session_place *p, int pid, const char *scope)
{
    const struct timeval patience = {DAEMON_PATIENCE_S, 0};
    static const char unknown[][16] = {"engine", "profile", "cwd", "policy_digest"};
    auto_buf struct buf said = BUF(MAX_ANSWER_TEXT), name = BUF(8 * MAX_SESSION_NAME),
                        owner = BUF(8 * MAX_SESSION_NAME), workspace = BUF(MAX_ANSWER_TEXT);
    struct err ignored = {0};
    auto_fd int fd = process_is_stopped(pid) ? -1 : place_connect(p);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        ask_send(fd, (struct keep_request){.op = KEEP_SHOW}, STR(""), NULL, 0, &ignored) == 0 &&
        ask_answer(fd, NULL, &said, &ignored) == 0) {
        said_text(buf_view(&said), "name", &name);
        said_text(buf_view(&said), "scope", &owner);
        said_text(buf_view(&said), "workspace", &workspace);
    }
    if (scope && !same(scope, buf_cstr(&owner)))
        return;
    json_object(j, NULL);
    json_text(j, "name", name.n ? buf_cstr(&name) : p->hash);
    json_text(j, "scope", buf_cstr(&owner));
    json_text(j, "id", p->hash);
    json_text(j, "state", "running, its record was removed");
    json_uint(j, "pid", (uint64_t)pid);
    json_text(j, "workspace", buf_cstr(&workspace));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        json_text(j, unknown[i], "");
    json_null(j, "layer");
    json_null(j, "created");
    if (said_put(j, "now", buf_view(&said)) < 0)
        json_null(j, "now");
    json_object_end(j);
}

/* Those that run without a record have a directory for their socket. */
static void list_unrecorded(const char *run, const char *scope, struct json *j)
{
    struct dirent **names = NULL;
    int n = scandir(run, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        auto_arena struct arena *one = arena_new(MAX_SESSION_ARENA);
        struct session_place p = {.name = NULL};
        struct err ignored = {0};
        if (one && place_is_hash(names[i]->d_name) && place_of_hash(names[i]->d_name, one, &p, &ignored) == 0) {
            const int pid = session_unrecorded(&p);
            if (pid > 0)
                put_unrecorded(j, &p, pid, scope);
        }
        free(names[i]);
    }
    free(names);
}

/* Calls `take` for each session that has a record below `state`. */
static void each_recorded(const char *state, void (*take)(void *, const struct session_place *, const struct record *),
                          void *ctx)
{
    struct dirent **names = NULL;
    int n = scandir(state, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        auto_arena struct arena *one = arena_new(MAX_SESSION_ARENA);
        struct session_place p = {.name = NULL};
        struct record record;
        struct err ignored = {0};
        if (one && place_is_hash(names[i]->d_name) && place_of_hash(names[i]->d_name, one, &p, &ignored) == 0 &&
            record_read(&p, one, &record, &ignored) == 0)
            take(ctx, &p, &record);
        free(names[i]);
    }
    free(names);
}

struct session_listing {
    const char *scope; /* NULL: any */
    struct json *j;
};

static void put_of_scope(void *ctx, const struct session_place *p, const struct record *r)
{
    const struct session_listing *l = ctx;
    if (!l->scope || same(l->scope, r->scope))
        put_session(l->j, p, r, false);
}

static int list_all(struct arena *mem, const char *scope, struct json *j, struct err *e)
{
    const char *run, *state;
    int r = place_roots(mem, &run, &state, e);
    if (r < 0)
        return r;
    each_recorded(state, put_of_scope, &(struct session_listing){scope, j});
    list_unrecorded(run, scope, j);
    return 0;
}

struct name_search {
    const char *name;
    bool found;
};

static void compare_name(void *ctx, const struct session_place *p, const struct record *r)
{
    struct name_search *s = ctx;
    (void)p;
    s->found |= same(s->name, r->name);
}

/* Whether there is one of that name, of whatever scope, running or not; true where that cannot be known. */
static bool is_known_session(const char *name, struct arena *mem)
{
    struct session_place p;
    struct err ignored = {0};
    struct name_search s = {.name = name};
    const char *run, *state;
    if (place_roots(mem, &run, &state, &ignored) < 0)
        return true; /* it cannot be known */
    each_recorded(state, compare_name, &s);
    return s.found || (place_named(name, NULL, mem, &p, &ignored) == 0 && session_unrecorded(&p) > 0);
}

/* One without refusals has no event in the log; one that is gone may have some. */
int pinfold_log_select(const struct pinfold_log_options *options, struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct pinfold_log_options o;
    struct err e = {0};
    bool named = true;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0)
        r = logged_print(&o, &named, &e);
    if (r == 0 && o.session && !named && mem && !is_known_session(o.session, mem)) {
        const struct session_place asked = {.name = o.session};
        char name[80];
        (void)err_say(&e, ERR_POLICY,
                      "there is no session '%s', and the log has nothing of one; list sessions with: pinfold session "
                      "list",
                      session_shown(&asked, name));
        r = -ENOENT;
    }
    return tell(error, &e, r);
}

int pinfold_log(int fd, int follow, struct pinfold_error *error)
{
    return pinfold_log_select(
        &(const struct pinfold_log_options){.size = sizeof(struct pinfold_log_options), .fd = fd, .follow = follow},
        error);
}

int pinfold_session_list_report(const struct pinfold_session_options *options, struct pinfold_report **ret,
                                struct pinfold_error *error)
{
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct pinfold_report *report = report_new();
    struct pinfold_session_options o;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r == 0 && (!mem || !report))
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot list the sessions");
    if (r < 0 || !report)
        return report_give(report, r, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    if (!o.name) {
        json_object(&j, NULL);
        json_array(&j, "sessions");
        r = list_all(mem, options ? o.scope : NULL, &j, &e);
        json_array_end(&j);
        json_object_end(&j);
    } else {
        struct session_place p;
        struct record record;
        r = place_named(o.name, o.scope, mem, &p, &e);
        if (r == 0)
            r = record_read(&p, mem, &record, &e);
        if (r == -ENOENT)
            r = session_gone(&p, mem, &e);
        if (r == 0)
            put_session(&j, &p, &record, true);
    }
    return report_give(report, r, &e, ret, error);
}
