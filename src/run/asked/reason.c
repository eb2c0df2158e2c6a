/*
 * pinfold_why(): one question to why/ about the plan of a policy. A remedy is an option that was tried: the policy is built
 * again with it, planned, and asked the same question; only what then is allowed is said.
 */
#include "run/asked/reason.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "match/path.h"
#include "run/asked/inquiry.h"
#include "run/asked/last.h"
#include "run/layer/cow.h"
#include "run/planned.h"
#include "run/report.h"

#define MAX_WHY_ARENA (64u << 20) /* of a few answers: compiled rules take up to a quarter */

extern char **environ;

/* ---- one question ---- */

int reason_ask(const struct pinfold_policy *p, enum why_act act, const char *target, struct arena *mem, struct why *ret,
               struct prepared *ret_plan, struct err *e)
{
    struct plan_ask ask = {.cwd = planned_directory(p),
                           .environ = (const char *const *)environ,
                           .redirects = act == WHY_CONNECT}; /* a remedy may bring a network */
    int r = cow_shown(p, &ask) < 0 ? err_sys(e, ERR_SYSTEM, ENOMEM, "why") : prepare(p, &ask, true, ret_plan, e);
    if (r < 0)
        return r;
    r = why_ask(ret_plan->plan, act, target, mem, ret, e);
    if (r < 0)
        prepared_free(ret_plan);
    return r;
}

/* ---- remedies ---- */

/* The policy with one option more; NULL if the option is refused or adds nothing that can be planned. */
static struct pinfold_policy *policy_with(const struct pinfold_policy *p, const char *flag, const char *value)
{
    auto_buf struct buf packed = BUF(MAX_LAYERS_BYTES);
    struct layers more = p->layers;
    struct pinfold_policy *made = NULL;
    struct err ignored = {0};
    struct layer_flag *flags = calloc(more.n_flags + 1, sizeof *flags);
    if (!flags)
        return NULL;
    if (more.n_flags)
        memcpy(flags, more.flags, more.n_flags * sizeof *flags);
    flags[more.n_flags++] = (struct layer_flag){.name = flag, .value = value};
    more.flags = flags;
    layers_pack(&more, &packed);
    if (!buf_ok(&packed) || policy_of_layers(buf_view(&packed), &made, &ignored) < 0)
        made = NULL;
    free(flags);
    return made;
}

static bool option_allows(const struct pinfold_policy *p, const char *flag, const char *value, enum why_act act,
                          const char *target, struct arena *mem)
{
    struct pinfold_policy *with = value ? policy_with(p, flag, value[0] ? value : "true") : NULL;
    struct prepared n;
    struct why said;
    struct err ignored = {0};
    bool allows = false;
    if (with && reason_ask(with, act, target, mem, &said, &n, &ignored) == 0) {
        allows = said.verdict == WHY_ALLOWED;
        prepared_free(&n);
    }
    pinfold_policy_free(with);
    return allows;
}

/* A directory that a rule may make writable for the sake of one new name: not a system's tree or a whole home. */
static bool is_modest(const struct pinfold_policy *p, const char *dir)
{
    const char *home = p->layers.world.home;
    return strchr(dir + 1, '/') && !path_at_or_below(home, dir);
}

/* The object that an option would have to name. */
static const char *object_of(const struct pinfold_policy *p, enum why_act act, const struct why *said,
                             struct arena *mem)
{
    const char *path = said->host ? said->host : said->target;
    const size_t repository = act == WHY_WRITE || act == WHY_CREATE ? path_git_directory(path) : 0;
    if (repository) { /* git writes in many places of it: those of a linked work tree and the common ones */
        const char *whole = arena_str(mem, (struct str){path, repository});
        return whole && is_modest(p, whole) ? whole : NULL;
    }
    if (!said->missing || act == WHY_READ || act == WHY_EXEC)
        return path;
    const char *dir = said->above;
    return dir && is_modest(p, dir) ? dir : NULL;
}

static const char *outside_words(const struct why *said, struct arena *mem)
{
    switch (said->cause) {
    case WHY_CAUSE_HOST:
        return said->no == ENOENT && !strchr(said->target, '/') /* a program's name */
                   ? "install it, or name the program by its path"
                   : said->no == ENOENT  ? "create it first"
                     : said->no == ESRCH ? "give the number of a process that runs (ps -e)"
                                         : "change it on the host: no option of the sandbox would help";
    case WHY_CAUSE_ROOT:
        return "run pinfold as that user, not as root";
    case WHY_CAUSE_READ_ONLY:
        if (same(said->rule, "workspace_read_only") && said->origin) /* --rw would contradict the option */
            return arena_printf(mem,
                                said->origin[0] == '-' ? "leave out %s, or do it outside the box"
                                                       : "change the rule (%s), or do it outside the box",
                                said->origin);
        return said->missing ? "do it outside the box, or create it first and allow it with --rw"
                             : "do it outside the box";
    case WHY_CAUSE_OWN:
        return "it cannot be changed in a box; change it outside";
    case WHY_CAUSE_DENY_RULE:
        return arena_printf(mem, "remove the deny rule (%s)", said->origin ? said->origin : "");
    case WHY_CAUSE_METADATA:
        return "give the command credentials of its own";
    case WHY_CAUSE_KERNEL:
        return "do it outside the box: no option allows it";
    case WHY_CAUSE_PROCESS:
        return "signal it from outside the box";
    case WHY_CAUSE_NOT_THERE:
    case WHY_CAUSE_HIDDEN:
    case WHY_CAUSE_PROTECTED:
        return arena_printf(mem, "change the rule (%s), or do it outside the box", said->origin ? said->origin : "");
    default:
        return "do it outside the box";
    }
}

static bool changes(enum why_act act)
{
    return act == WHY_WRITE || act == WHY_CREATE;
}

int reason_remedy(const struct pinfold_policy *p, enum why_act act, const char *target, const struct why *said,
                  struct arena *mem, struct why_remedy *ret, struct err *e)
{
    const char *flag = NULL, *value = NULL, *port = strrchr(said->target, ':');
    bool allows = false; /* that was tried already: each time is another plan */
    *ret = (struct why_remedy){0};
    if (said->verdict != WHY_REFUSED)
        return 0;
    switch (said->cause) {
    case WHY_CAUSE_READ_ONLY:
    case WHY_CAUSE_HIDDEN:
    case WHY_CAUSE_PROTECTED:
    case WHY_CAUSE_NOT_THERE:
        flag = changes(act) ? "rw" : "ro";
        value = object_of(p, act, said, mem);
        if (act == WHY_CONNECT) {
            flag = "unix-socket";
            value = said->target;
        }
        if (!changes(act) && said->origin && strstr(said->origin, ENV_ORIGIN)) {
            flag = "env-files";
            value = "";
        }
        break;
    case WHY_CAUSE_GUARDED: /* this name, unless it is guarded as a repository's part as well */
        flag = "guard-allow";
        value = said->rule && str_starts(str_of(said->rule), STR("guarded name ")) ? said->rule + 13 : NULL;
        allows = option_allows(p, flag, value, act, target, mem);
        if (!allows) {
            flag = "guard";
            value = "off";
        }
        break;
    case WHY_CAUSE_NO_NETWORK:
    case WHY_CAUSE_NO_RULE:
    case WHY_CAUSE_ADDRESS:
        flag = "allow";
        value = said->target;
        break;
    case WHY_CAUSE_LOOPBACK:
        flag = "reach";
        value = arena_printf(mem, "%s%s", said->target[0] == '[' ? "[::1]" : "127.0.0.1", port ? port : "");
        break;
    case WHY_CAUSE_SOCKET:
        flag = "unix-socket";
        value = said->target;
        break;
    default:
        break;
    }
    if (flag && (allows || option_allows(p, flag, value, act, target, mem))) {
        ret->flag = flag;
        ret->value = value;
    }
    if (!ret->flag || said->cause == WHY_CAUSE_GUARDED)
        ret->outside = said->cause == WHY_CAUSE_GUARDED ? "do it outside the box" : outside_words(said, mem);
    return arena_failed(mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot answer") : 0;
}

bool reason_is_read_only(const struct pinfold_policy *p, const char *path)
{
    auto_arena struct arena *mem = arena_new(MAX_WHY_ARENA);
    struct prepared n;
    struct why said;
    struct err ignored = {0};
    if (!mem || reason_ask(p, WHY_WRITE, path, mem, &said, &n, &ignored) < 0)
        return false;
    const bool only = said.verdict == WHY_REFUSED && said.cause == WHY_CAUSE_READ_ONLY && !said.missing &&
                      same(said.target, path) && said.host && same(said.host, path);
    prepared_free(&n);
    /* In a tree that can be written the guard would judge names, too. */
    return only && option_allows(p, "rw", path, WHY_WRITE, path, mem);
}

/* ---- the answer ---- */

static void put_remedy(const struct why_remedy *r, struct json *j)
{
    char flag[64];
    if (!r->flag && !r->outside) {
        json_null(j, "remedy");
        return;
    }
    json_object(j, "remedy");
    if (r->flag) {
        snprintf(flag, sizeof flag, "--%s", r->flag);
        json_array(j, "options");
        json_text(j, NULL, flag);
        if (r->value[0])
            json_text(j, NULL, r->value);
        json_array_end(j);
    }
    if (r->outside)
        json_text(j, "outside", r->outside);
    json_object_end(j);
}

static const char *cause_name(enum why_cause cause)
{
    static const char names[][12] = {[WHY_CAUSE_NONE] = "none",
                                     [WHY_CAUSE_HOST] = "host",
                                     [WHY_CAUSE_NOT_THERE] = "not-there",
                                     [WHY_CAUSE_ROOT] = "root",
                                     [WHY_CAUSE_READ_ONLY] = "read-only",
                                     [WHY_CAUSE_HIDDEN] = "hidden",
                                     [WHY_CAUSE_PROTECTED] = "protected",
                                     [WHY_CAUSE_GUARDED] = "guarded",
                                     [WHY_CAUSE_OWN] = "own",
                                     [WHY_CAUSE_KERNEL] = "kernel",
                                     [WHY_CAUSE_NO_NETWORK] = "no-network",
                                     [WHY_CAUSE_NO_RULE] = "no-rule",
                                     [WHY_CAUSE_DENY_RULE] = "deny-rule",
                                     [WHY_CAUSE_ADDRESS] = "address",
                                     [WHY_CAUSE_METADATA] = "metadata",
                                     [WHY_CAUSE_LOOPBACK] = "loopback",
                                     [WHY_CAUSE_SOCKET] = "socket",
                                     [WHY_CAUSE_PROCESS] = "process"};
    return names[cause];
}

static void put_answer(enum why_act act, const char *asked, const char *when, const struct why *said,
                       const struct why_remedy *remedy, const struct plan *plan, struct json *j)
{
    static const char *const verdicts[] = {
        [WHY_ALLOWED] = "allowed", [WHY_REFUSED] = "refused", [WHY_UNKNOWN] = "unknown"};
    json_object(j, NULL);
    json_int(j, "v", 1);
    if (when)
        json_text(j, "when", when);
    json_text(j, "action", why_act_name(act));
    json_text(j, "asked", asked);
    json_text(j, "target", said->target);
    json_text_or_null(j, "host", said->host);
    json_text(j, "verdict", verdicts[said->verdict]);
    json_text(j, "reason", said->reason);
    json_text_or_null(j, "rule", said->rule);
    json_text_or_null(j, "origin", said->origin);
    json_text(j, "cause", cause_name(said->cause));
    json_text_or_null(j, "mechanism", said->mechanism);
    json_text_or_null(j, "errno", box_errno_name(said->no));
    json_bool(j, "sandbox", said->verdict != WHY_REFUSED || said->cause != WHY_CAUSE_HOST);
    put_remedy(remedy, j);
    json_text(j, "engine", plan->facts->engine);
    json_text(j, "tier", plan->image->tier == TIER_LANDLOCK ? "landlock" : "namespaces");
    json_text(j, "policy_digest", plan->policy_digest);
    json_object_end(j);
}

static int why_into(const struct pinfold_policy *p, enum why_act act, const char *target, const char *when,
                    struct arena *mem, struct json *j, struct err *e)
{
    struct prepared n;
    struct why said;
    struct why_remedy remedy = {0};
    int r = reason_ask(p, act, target, mem, &said, &n, e);
    if (r < 0)
        return r;
    r = plan_digests(n.plan, e);
    if (r == 0)
        r = reason_remedy(p, act, target, &said, mem, &remedy, e);
    if (r == 0)
        put_answer(act, target, when, &said, &remedy, n.plan, j);
    prepared_free(&n);
    return r < 0 ? r : said.verdict == WHY_ALLOWED ? 0 : said.verdict == WHY_REFUSED ? 1 : 2;
}

/* The question behind an event of the log. */
static int act_of_event(const struct logged *v, enum why_act *ret, struct err *e)
{
    static const struct {
        const char *action;
        enum why_act act;
    } files[] = {{"read", WHY_READ},     {"write", WHY_WRITE},  {"create", WHY_CREATE},
                 {"rename", WHY_CREATE}, {"link", WHY_CREATE},  {"exec", WHY_EXEC},
                 {"remove", WHY_WRITE},  {"change", WHY_WRITE}, {"git-config", WHY_WRITE}};
    bool connects = same(v->kind, "network") || same(v->kind, "socket");
    *ret = connects && (same(v->action, "connect") || same(v->action, "dial")) && v->target[0] != '(' ? WHY_CONNECT
                                                                                                      : WHY_ACTS;
    for (size_t i = 0; same(v->kind, "file") && i < sizeof files / sizeof *files; i++) {
        if (same(files[i].action, v->action))
            *ret = files[i].act;
    }
    return *ret < WHY_ACTS ? 0
                           : err_say(e, ERR_POLICY,
                                     "the last refusal here, at %s, is not about a file or a connection: %s: %s "
                                     "'%s'; see: pinfold log",
                                     v->t, v->kind, v->action, v->target);
}

static int why_last(const struct pinfold_policy *p, struct arena *mem, struct json *j, struct err *e)
{
    struct logged v;
    char real[PATH_MAX];
    enum why_act act = WHY_ACTS;
    const char *workspace = realpath(p->policy->workspace, real) ? real : p->policy->workspace;
    int r = logged_last(workspace, mem, &v, e);
    if (r == 0 && !v.t) {
        r = err_say(e, ERR_POLICY, "the audit log has no refusal of a box in '%s'", p->policy->workspace);
        r = err_hint(e, r, "refusals by mounts are found with --json, or ask: pinfold why write PATH");
    }
    if (r == 0)
        r = act_of_event(&v, &act, e);
    return r < 0 ? r : why_into(p, act, v.target, v.t, mem, j, e);
}

int pinfold_why(struct pinfold_policy *p, const char *action, const char *target, struct pinfold_report **ret,
                struct pinfold_error *error)
{
    struct err e = {0};
    struct pinfold_report *report = NULL;
    struct arena *mem = NULL;
    enum why_act act = why_act_of(action);
    bool last = same(action, "last");
    int r =
        last || act < WHY_ACTS
            ? 0
            : err_say(&e, ERR_POLICY, "why: unknown action '%s'; it is read, write, create, exec, connect or signal",
                      action ? action : "");
    if (r == 0 && !p && last)
        r = err_say(&e, ERR_POLICY, "why --last: the audit log is the host's, and no box reads it");
    if (r == 0) {
        report = report_new();
        mem = arena_new(MAX_WHY_ARENA);
        if (!report || !mem)
            r = err_sys(&e, ERR_SYSTEM, ENOMEM, "cannot answer");
        else if (!p)
            r = inquiry_ask(act, target ? target : "", &JSON_TREE(&report->values), &e);
        else if (last)
            r = why_last(p, mem, &JSON_TREE(&report->values), &e);
        else
            r = why_into(p, act, target ? target : "", NULL, mem, &JSON_TREE(&report->values), &e);
    }
    int given = report_give(report, r, &e, ret, error);
    (void)arena_free(mem);
    return given < 0 ? given : r;
}
