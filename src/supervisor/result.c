/*
 * The result as JSON, the same schema for every way of running a command, and the exit status. Its members are an
 * interface: new ones may come, none may go.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "supervisor/run.h"
#include "supervisor/parts.h"

#define MAX_REMEDY 16384

const char *box_end_name(enum box_end end)
{
    static const char *const names[] = {[BOX_EXITED] = "exit",
                                        [BOX_SIGNALED] = "signal",
                                        [BOX_TIMED_OUT] = "timeout",
                                        [BOX_LIMIT] = "limit",
                                        [BOX_LOST] = "sandbox"};
    return names[end];
}

const char *box_limit_name(enum box_limit limit)
{
    static const char *const names[] = {
        [BOX_LIMIT_NONE] = NULL,   [BOX_LIMIT_MEMORY] = "memory", [BOX_LIMIT_PROCESSES] = "processes",
        [BOX_LIMIT_DISK] = "disk", [BOX_LIMIT_OUTPUT] = "output", [BOX_LIMIT_TIMEOUT] = "timeout"};
    return names[limit];
}

const char *box_errno_name(int no)
{
    static const struct {
        int no;
        const char *name;
    } all[] = {{EROFS, "EROFS"},
               {EACCES, "EACCES"},
               {EPERM, "EPERM"},
               {ENOENT, "ENOENT"},
               {ENOTDIR, "ENOTDIR"},
               {ELOOP, "ELOOP"},
               {ENXIO, "ENXIO"},
               {ESRCH, "ESRCH"},
               {ENETUNREACH, "ENETUNREACH"},
               {ECONNREFUSED, "ECONNREFUSED"},
               {EHOSTUNREACH, "EHOSTUNREACH"},
               {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
               {EAFNOSUPPORT, "EAFNOSUPPORT"},
               {EOVERFLOW, "EOVERFLOW"},
               {ENOSYS, "ENOSYS"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].no == no)
            return all[i].name;
    }
    return NULL;
}

int box_result_status(const struct box_result *r)
{
    switch (r->end) {
    case BOX_EXITED:
        return r->code;
    case BOX_SIGNALED:
        return 128 + r->code;
    case BOX_TIMED_OUT:
        return 124;
    case BOX_LIMIT:
        return 137;
    default:
        return 125;
    }
}

void box_reraise(const struct box_result *r)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct rlimit no_core = {1, 1}; /* 0 would not stop a program of core_pattern */
    sigset_t set;

    if (!r->reraise)
        return;
    /* The command's core, if any, was its own; ours would tell nobody anything. */
    (void)setrlimit(RLIMIT_CORE, &no_core);
    sigemptyset(&set);
    sigaddset(&set, r->reraise);
    (void)sigaction(r->reraise, &plain, NULL);
    (void)kill(getpid(), r->reraise);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void number_or_null(struct json *j, const char *name, bool known, int value)
{
    if (known)
        json_int(j, name, value);
    else
        json_null(j, name);
}

static void streams(struct json *j, const struct box_result *r, bool captured)
{
    /* One encoding for both, so that a reader decides once. */
    bool text = utf8_valid(buf_view(&r->out)) && utf8_valid(buf_view(&r->err));
    const char *names[2] = {"stdout", "stderr"};
    const struct buf *bufs[2] = {&r->out, &r->err};
    for (int i = 0; i < 2; i++) {
        if (!captured)
            json_null(j, names[i]);
        else if (text)
            json_str(j, names[i], buf_view(bufs[i]));
        else
            json_base64(j, names[i], buf_view(bufs[i]));
    }
    json_bool(j, "stdout_truncated", r->out_truncated);
    json_bool(j, "stderr_truncated", r->err_truncated);
    json_text(j, "encoding", text ? "utf8" : "base64");
}

static void usage(struct json *j, const struct box_result *r)
{
    json_object(j, "usage");
    json_uint(j, "wall_ms", r->wall_us / 1000);
    json_uint(j, "cpu_ms", r->cpu_us / 1000);
    json_uint(j, "peak_bytes", r->peak_bytes);
    json_uint(j, "read_bytes", r->read_bytes);
    json_uint(j, "written_bytes", r->written_bytes);
    json_object_end(j);
}

/* One command among others in its box: the guard and the egress tell the session daemon, and the egress says not whose it was. */
static bool of_session(const struct box_result *r)
{
    return r->session != NULL;
}

static bool is_enforced(const struct box_terms *terms, enum feature what)
{
    for (size_t i = 0; i < terms->n_enforced; i++) {
        if (terms->enforced[i].what == what)
            return true;
    }
    return false;
}

static void put_time(struct json *j, uint64_t ms)
{
    const time_t second = (time_t)(ms / 1000);
    char text[40];
    struct tm tm;
    if (!ms)
        return;
    gmtime_r(&second, &tm);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof text - n, ".%03uZ", (unsigned)(ms % 1000));
    json_text(j, "t", text);
}

/* What refuses without telling anybody, so that no denial is not read as "nothing was refused". */
static void not_seen(struct json *j, const struct box_result *r, const struct box_terms *terms)
{
    char text[96];
    if (terms->monitor) {
        json_text(j, NULL, "writes to open files: no space left, RLIMIT_FSIZE");
        json_text(j, NULL, "ioctls, set-user-id modes and other calls refused by their arguments, rlimits");
        json_text(j, NULL, "datagrams that are sent without connect");
        json_text(j, NULL, "reads in /proc, and what processes in namespaces of their own open");
        if (terms->net == NET_NONE)
            json_text(j, NULL, "names that were asked of a resolver, which the box does not have");
    } else {
        json_text(j, NULL, terms->tier == TIER_NAMESPACES ? "read-only and hiding mounts" : "Landlock");
        json_text(j, NULL, "system calls refused by seccomp with an errno");
        if (terms->net != NET_HOST)
            json_text(j, NULL, "connections in a network without routes");
        json_text(j, NULL, "ordinary permissions and rlimits");
    }
    if (r->seen_lost) {
        snprintf(text, sizeof text, "%llu refusal%s that came faster than they could be reported",
                 (unsigned long long)r->seen_lost, r->seen_lost == 1 ? "" : "s");
        json_text(j, NULL, text);
    }
}

static void put_remedy(struct json *j, const struct box_result *r, const struct box_terms *terms,
                       const struct denial *d)
{
    auto_buf struct buf offer = BUF(MAX_REMEDY);
    if (terms->offer)
        terms->offer(terms, r, d, &offer);
    if (offer.n && buf_ok(&offer))
        json_str(j, "remedy", buf_view(&offer));
    else if (d->guess || d->remedy)
        json_text_or_null(j, "remedy", d->remedy);
}

static void denials(struct json *j, const struct box_result *r, const struct box_terms *terms)
{
    json_array(j, "denials");
    for (size_t i = 0; i < r->n_denials; i++) {
        const struct denial *d = &r->denials[i];
        json_object(j, NULL);
        json_text(j, "kind", d->kind);
        json_text(j, "action", d->action);
        json_text(j, "target", d->target);
        json_text(j, "rule", d->rule);
        json_text(j, "origin", d->origin);
        json_text(j, "how", d->how);
        json_uint(j, "pid", d->pid);
        if (d->command)
            json_text(j, "command", d->command);
        if (d->address)
            json_text(j, "address", d->address);
        if (d->why)
            json_text(j, "why", d->why);
        if (d->argv)
            json_text(j, "command_line", d->argv);
        if (d->host)
            json_text(j, "host", d->host);
        if (box_errno_name(d->no))
            json_text(j, "errno", box_errno_name(d->no));
        if (d->count > 1)
            json_uint(j, "count", d->count);
        put_time(j, d->when_ms);
        if (d->guess)
            json_bool(j, "guess", true);
        if (d->seen && terms->monitor)
            json_bool(j, "monitor", true);
        put_remedy(j, r, terms, d);
        json_object_end(j);
    }
    json_array_end(j);
    json_bool(j, "monitor", terms->monitor);
    json_array(j, "denials_not_seen");
    not_seen(j, r, terms);
    if (of_session(r)) {
        if (is_enforced(terms, FEATURE_GUARD) || is_enforced(terms, FEATURE_UNIX_SOCKETS))
            json_text(j, NULL,
                      r->guard_told
                          ? "what the guard refused to processes that left the command's session: see pinfold log"
                          : "what the guard refused in the session: see pinfold log");
        if (terms->net == NET_ALLOW)
            json_text(j, NULL,
                      r->network_told
                          ? "what the network refused to processes that left the command's session: see pinfold log"
                          : "what the network refused in the session: see pinfold log");
    }
    if (r->denials_dropped) {
        char text[64];
        snprintf(text, sizeof text, "%zu more than are kept here", r->denials_dropped);
        json_text(j, NULL, text);
    }
    if (r->events_lost) {
        char text[96];
        snprintf(text, sizeof text, "%llu network decision%s that came faster than they could be reported",
                 (unsigned long long)r->events_lost, r->events_lost == 1 ? "" : "s");
        json_text(j, NULL, text);
    }
    json_array_end(j);
}

static void not_the_sandbox(struct json *j, const struct box_result *r)
{
    if (!r->n_permissions)
        return;
    json_array(j, "not_the_sandbox");
    for (size_t i = 0; i < r->n_permissions; i++) {
        json_object(j, NULL);
        json_text(j, "action", r->permissions[i].action);
        json_text(j, "target", r->permissions[i].target);
        json_text(j, "why", "ordinary permissions");
        json_object_end(j);
    }
    json_array_end(j);
}

/* What it leaves that a person should look at. */
static void left(struct json *j, const struct box_result *r)
{
    json_array(j, "left");
    for (size_t i = 0; i < r->n_left; i++) {
        json_object(j, NULL);
        json_text(j, "kind", r->left[i].kind);
        json_text(j, "path", r->left[i].path);
        if (r->left[i].what)
            json_text(j, "what", r->left[i].what);
        json_object_end(j);
    }
    json_array_end(j);
    json_uint(j, "left_not_kept", r->left_dropped + r->left_untold);
}

/* What the egress let through; null where it decides nothing, and where it does not say for whom. */
static void put_network(struct json *j, const struct box_result *r, const struct box_terms *terms)
{
    if (terms->net != NET_ALLOW || of_session(r)) {
        json_null(j, "network");
        return;
    }
    json_object(j, "network");
    json_array(j, "allowed");
    for (size_t i = 0; i < r->n_allowed; i++) {
        const struct allowed *a = &r->allowed[i];
        json_object(j, NULL);
        json_text(j, "action", a->action);
        json_text(j, "target", a->target);
        if (*a->address)
            json_text(j, "address", a->address);
        json_text(j, "rule", a->rule);
        json_text(j, "origin", a->origin);
        json_text(j, "how", a->how);
        if (a->by_proxy)
            json_bool(j, "by_proxy", true);
        json_uint(j, "count", a->count);
        json_object_end(j);
    }
    json_array_end(j);
    json_uint(j, "allowed_not_kept", r->allowed_dropped);
    json_uint(j, "events_lost", r->events_lost);
    json_object_end(j);
}

static void guarantees(struct json *j, const struct box_terms *terms)
{
    json_object(j, "enforced");
    for (size_t i = 0; i < terms->n_enforced; i++)
        json_text(j, feature_name(terms->enforced[i].what), terms->enforced[i].by);
    json_object_end(j);
    json_array(j, "lost");
    for (int f = 0; f < FEATURE_COUNT; f++) {
        if (terms->lost & ((features)1 << f))
            json_text(j, NULL, feature_name((enum feature)f));
    }
    json_array_end(j);
}

/* The command never ran: nothing of it says why. */
static void not_executed(struct json *j, const struct box_result *r)
{
    char text[160];
    if (!r->exec_errno)
        return;
    snprintf(text, sizeof text, "%s in the box",
             r->exec_errno == ENOENT ? "command not found" : strerror(r->exec_errno));
    json_object(j, "error");
    json_text(j, "kind", "command");
    json_text(j, "text", text);
    json_object_end(j);
}

struct box_terms box_terms(const struct plan *plan)
{
    return (struct box_terms){.engine = plan->facts->engine,
                              .policy_digest = plan->policy_digest,
                              .plan_digest = plan->digest,
                              .tier = plan->image ? (enum tier)plan->image->tier : plan->facts->tier,
                              .net = plan->policy->net,
                              .limits = &plan->policy->limits,
                              .lost = plan->lost,
                              .enforced = plan->enforced,
                              .n_enforced = plan->n_enforced,
                              .others = plan->facts->others,
                              .n_others = plan->facts->n_others,
                              .monitor = plan->image && plan->image->filter & FILTER_MONITOR,
                              .policy = plan->policy};
}

/* Only of a box that had one. */
static void put_box_layer(struct json *j, const struct box_layer *l)
{
    if (!l->id[0])
        return;
    json_object(j, "layer");
    json_text(j, "id", l->id);
    json_bool(j, "kept", l->kept);
    json_uint(j, "changed", l->edited);
    json_uint(j, "new", l->added);
    json_uint(j, "deleted", l->deleted);
    json_uint(j, "waiting", l->waiting);
    json_array(j, "waiting_paths");
    for (size_t at = 0; at < l->all_waits_n; at += strlen(l->all_waits + at) + 1)
        json_text(j, NULL, l->all_waits + at);
    json_array_end(j);
    json_bool(j, "repository", l->repository);
    json_object_end(j);
}

void box_result_members(const struct box_result *r, const struct box_terms *terms, bool captured, struct json *j)
{
    bool ended_itself = r->status_known;

    json_object(j, NULL);
    json_uint(j, "v", 1);
    json_bool(j, "success", r->end == BOX_EXITED && r->code == 0);
    number_or_null(j, "exit_code", ended_itself && !r->by_signal, r->code);
    number_or_null(j, "signal", ended_itself && r->by_signal, r->code);
    json_text(j, "ended", box_end_name(r->end));
    json_text_or_null(j, "limit", box_limit_name(r->limit));
    streams(j, r, captured);
    not_executed(j, r);
    usage(j, r);
    denials(j, r, terms);
    not_the_sandbox(j, r);
    left(j, r);
    put_network(j, r, terms);
    guarantees(j, terms);
    json_text(j, "engine", terms->engine);
    json_object(j, "engines_not_taken");
    for (size_t i = 0; i < terms->n_others; i++)
        json_text(j, terms->others[i].engine, terms->others[i].why);
    json_object_end(j);
    json_text_or_null(j, "session", r->session);
    if (r->caller_id[0])
        json_text(j, "caller_id", r->caller_id);
    put_box_layer(j, &r->layer);
    json_text(j, "policy_digest", terms->policy_digest);
    json_text(j, "plan_digest", terms->plan_digest);
    json_object_end(j);
}

int box_result_json(const struct box_result *r, const struct box_terms *terms, bool captured, struct buf *out)
{
    box_result_members(r, terms, captured, &JSON(out));
    return buf_ok(out) ? 0 : -ENOBUFS;
}
