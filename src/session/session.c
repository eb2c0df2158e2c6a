/*
 * Finds sessions and starts them: once, however many callers ask at once. Whether a session runs depends on its daemon's process
 * (record.h) and its socket; all changes happen under the lock of its runtime directory.
 */
#include "session/session.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "backends/engine.h"
#include "survey/owner.h"
#include "survey/survey.h"
#include "run/planned.h"
#include "session/replaced.h"
#include "run/layer/cow.h"
#include "run/words.h"
#include "plan/plan.h"
#include "sys/process.h"
#include "protocol/keep.h"
#include "sessiond/sessiond.h"

static bool is_elsewhere(const char *path, const char *workspace)
{
    const size_t n = strlen(workspace);
    return path[0] == '/' && (strncmp(path, workspace, n) != 0 || (path[n] && path[n] != '/'));
}

int replaced_workspace(const struct pinfold_session *s, const char *path, const char *remedy, struct err *e)
{
    const struct record *r = &s->record;
    const bool own = r->scope && r->scope[0];
    char name[80];
    bool there;
    if (!r->workspace_is || !r->workspace_is[0] || (path && is_elsewhere(path, r->workspace)))
        return 0;
    if (replaced_is(r->workspace, r->workspace_is, &there))
        return 0;
    session_shown(&s->place, name);
    (void)err_say(e, ERR_REFUSED, "session '%s' began in a directory '%s' that was removed or moved since%s; %s%s%s",
                  name, r->workspace, there ? ", and what is there now is another one, which it does not have" : "",
                  remedy   ? remedy
                  : own    ? "end the session and begin a new one"
                  : !there ? "cd to where it is now and begin it anew, with the options that it had: pinfold session "
                             "start --recreate '"
                           : "begin it anew: pinfold session start --as-before --recreate '",
                  remedy || own ? "" : name, remedy || own ? "" : "'");
    return -ESTALE;
}

enum { FOUND, OTHER_POLICY, OTHER_IMAGE, OTHER_VERSION, OTHER_LAYER, OTHER_WORKSPACE, NOT_THERE };

/* Whether what was asked for is what the session runs under; an image's name may have come to mean another one. */
static int compare(const struct pinfold_session *s, const struct policy *policy, int *ret, struct err *e)
{
    char digest[65], values[65];
    const char *asked = policy->engine, *id = NULL;
    const char *name = asked && !same(asked, "auto") ? asked : s->record.engine;
    const struct engine *engine = engine_by_name(name);
    int r = engine && engine->image_id ? engine->image_id(policy, s->mem, &id, e) : 0;
    if (r == 0)
        r = policy_digest(policy, name, id, digest, e);
    if (r < 0)
        return r;
    *ret = same(digest, s->record.policy_digest) ? FOUND : OTHER_POLICY;
    record_values(&s->record, policy, values);
    const char *kept = s->record.values_digest;
    if (*ret == FOUND && kept && kept[0] && !same(values, kept))
        *ret = OTHER_POLICY;
    if (*ret == FOUND || !id || !s->record.image || same(id, s->record.image))
        return 0;
    r = policy_digest(policy, name, s->record.image, digest, e);
    if (r == 0 && same(digest, s->record.policy_digest))
        *ret = OTHER_IMAGE;
    return r;
}

static int other_version(const struct pinfold_session *s, struct err *e)
{
    const struct record *r = &s->record;
    bool known = r->version && r->version[0];
    char name[80];
    session_shown(&s->place, name);
    (void)err_say(e, ERR_REFUSED,
                  "session '%s' was started by %s%s, and this is pinfold " PINFOLD_VERSION ", which cannot talk to it; "
                  "stop it with: pinfold session stop '%s'",
                  name, known ? "pinfold " : "an earlier version of pinfold", known ? r->version : "", name);
    return -ESTALE;
}

/* Without --cow any will do: the command is one more in that box. */
static bool has_layer(const struct record *r, const struct pinfold_session_options *o)
{
    const char *cow = o->cow;
    if (o->cow_from && (!r->layer || !r->layer[0] || !layer_stands_on(r->layer, o->cow_from)))
        return false;
    return !cow || (r->layer && r->layer[0] && same(r->layer_name ? r->layer_name : "", cow));
}

static int other_layer(const struct pinfold_session *s, struct err *e)
{
    char name[80];
    const bool some = s->record.layer && s->record.layer[0];
    (void)err_say(e, ERR_REFUSED,
                  "session '%s' runs %s; recreate it with: --cow --recreate, or run in it as it is, without --cow",
                  session_shown(&s->place, name),
                  some ? "with another copy-on-write layer" : "without a copy-on-write layer");
    return -ESTALE;
}

static int look_for(struct pinfold_session *s, const struct pinfold_policy *policy,
                    const struct pinfold_session_options *o, bool locked, int *ret, struct err *e)
{
    char name[80];
    int fd = place_connect(&s->place);
    *ret = NOT_THERE;
    if (fd < 0)
        fd = session_rebind(&s->place, s->mem, locked);
    if (fd < 0)
        return 0;
    const bool serves = session_serves(fd);
    (void)close(fd);
    if (!serves)
        return 0;
    int r = session_take_record(s, e);
    if (r == -ENOENT) /* removed by hand, or this is not the directory that its daemon sees */
        (void)err_say(e, ERR_SYSTEM,
                      "session '%s' runs, and '%s' has no record of it; end it: pinfold session stop '%s', or end the "
                      "process that has '%s/" KEEP_SOCKET "'",
                      session_shown(&s->place, name), s->place.state, name, s->place.run);
    if (r == 0 && s->record.revision != KEEP_REVISION)
        *ret = OTHER_VERSION;
    else if (r == 0)
        r = compare(s, policy->policy, ret, e);
    if (r == 0 && *ret == FOUND && !has_layer(&s->record, o))
        *ret = OTHER_LAYER;
    if (r == 0 && *ret == FOUND && replaced_workspace(s, NULL, NULL, e) < 0)
        *ret = OTHER_WORKSPACE;
    return r;
}

/* Nothing of an earlier layer is lost, but nobody would look for it. */
static void say_left(const struct pinfold_session *s, const char *layer, const struct pinfold_session_options *o)
{
    char name[80];
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    const char *left = mem ? layer_left(layer, mem) : NULL;
    const char *said = left ? arena_printf(mem, "session '%s': %s", session_shown(&s->place, name), left) : NULL;
    if (said)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, said);
}

static int make_under_lock(struct pinfold_session *s, struct pinfold_policy *policy, int lock,
                           const struct pinfold_session_options *o, struct err *e)
{
    char name[80];
    const int recreate = o->recreate;
    struct record before;
    struct err ignored = {0};
    int found, r = look_for(s, policy, o, true, &found, e);
    if (r < 0 || found == FOUND)
        return r;
    if (found == OTHER_VERSION && !recreate)
        return other_version(s, e);
    if (found == OTHER_LAYER && !recreate)
        return other_layer(s, e);
    if (found == OTHER_WORKSPACE && !recreate)
        return replaced_workspace(s, NULL, "recreate the session with: --recreate", e);
    if (found == OTHER_IMAGE && !recreate) {
        (void)err_say(
            e, ERR_REFUSED,
            "session '%s' runs an older version of the image '%s' (%.19s); recreate the session with: --recreate",
            session_shown(&s->place, name), policy->policy->image, s->record.image);
        return -ESTALE;
    }
    if (found == OTHER_POLICY && !recreate) {
        (void)err_say(e, ERR_REFUSED,
                      "session '%s' runs with another policy, engine or image (time-outs may differ); run with the "
                      "session's own policy: pinfold exec '%s' COMMAND, end it: pinfold session stop '%s', or "
                      "recreate the session with: --recreate",
                      session_shown(&s->place, name), name, name);
        return -ESTALE;
    }
    /* What prints names shows such a one in other bytes, and by those nobody finds it. */
    if (!utf8_valid(str_of(s->place.name)))
        return err_say(e, ERR_POLICY, "a session's name must be UTF-8; '%s' is not", session_shown(&s->place, name));
    r = planned_file_limit(e);
    const bool been = record_read(&s->place, s->mem, &before, &ignored) == 0;
    /* Also one that is ending: a stop may have been killed before it has. */
    if (r == 0 && (found != NOT_THERE || been))
        r = session_end(&s->place, s->mem, e);
    if (r == 0)
        r = session_begin(policy, &s->place, o, lock, e);
    r = r < 0 ? r : session_take_record(s, e);
    if (r == 0 && been && o->say && before.layer && before.layer[0] && !same(before.layer, s->record.layer))
        say_left(s, before.layer, o);
    return r;
}

/* What is each command's own is as this policy says, for the commands of this object. */
static void adopt_limits(struct pinfold_session *s, const struct limits *l)
{
    struct limits *mine = &s->limits;
    mine->timeout = (struct limit){.value = l->timeout.value, .asked = l->timeout.asked, .origin = 1};
    mine->grace = (struct limit){.value = l->grace.value, .asked = l->grace.asked, .origin = 1};
    mine->output = (struct limit){.value = l->output.value, .asked = l->output.asked, .origin = 1};
}

static const char *root_note(const struct policy *p, struct arena *mem)
{
    struct stat st;
    if (geteuid() != 0 || !p->workspace || stat(p->workspace, &st) < 0 || !S_ISDIR(st.st_mode))
        return NULL;
    const struct path_fact top = {
        .real = p->workspace, .type = PATH_DIR, .mode = st.st_mode, .uid = st.st_uid, .gid = st.st_gid};
    return plan_shuts_root_out(&top, getegid(), p->workspace_read_only)
               ? plan_root_words(mem, &top, p->workspace_read_only)
               : NULL;
}

/* What a run says before its command, and that a new session's commands do not say each time. */
static void say_start(const struct pinfold_session *s, const struct pinfold_policy *policy,
                      const struct pinfold_session_options *o)
{
    if (s->record.tier == TIER_LANDLOCK) {
        auto_buf struct buf words = BUF(MAX_WORDS);
        buf_text(&words, "this session's box has no namespaces (Landlock only): ");
        words_features(&words, s->record.lost);
        buf_text(&words, s->record.lost ? " cannot be enforced; why: pinfold doctor" : "why: pinfold doctor");
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
    }
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    const char *notes[5] = {egress_names_denied(policy->policy)};
    if (mem && survey_repository(policy->policy, policy->layers.world.home, mem, notes + 1) < 0)
        notes[1] = notes[2] = NULL;
    if (mem && (o->cow || o->cow_from || policy->policy->cow))
        notes[3] = cow_limit(policy->policy->workspace, mem);
    if (mem)
        notes[4] = root_note(policy->policy, mem);
    auto_buf struct buf not_enforced = BUF(MAX_WORDS);
    words_ignored(policy->policy, &not_enforced);
    if (not_enforced.n)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&not_enforced));
    auto_buf struct buf missing = BUF(MAX_WORDS);
    words_missing(policy->policy, &missing);
    if (missing.n)
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&missing));
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        auto_buf struct buf words = BUF(MAX_WORDS);
        if (!notes[i])
            continue;
        words_safe(&words, notes[i]);
        o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
    }
}

int pinfold_session_ensure(struct pinfold_policy *policy, const struct pinfold_session_options *options,
                           struct pinfold_session **ret, struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    auto_fd int lock = -1;
    int found;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    struct pinfold_session *s = r < 0 ? NULL : session_object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    if (r == 0 && o.cwd && o.cwd[0] != '/')
        r = err_say(&e, ERR_POLICY, "cwd: write an absolute path, as the box sees it: /tmp");
    if (r == 0)
        r = look_for(s, policy, &o, false, &found, &e);
    if (r == 0 && found != FOUND) {
        r = place_lock(&s->place, &lock, &e);
        if (r == 0)
            r = make_under_lock(s, policy, lock, &o, &e);
        if (r == 0 && o.say)
            say_start(s, policy, &o);
    }
    if (r < 0) {
        pinfold_session_free(s);
        return tell(error, &e, r);
    }
    adopt_limits(s, &policy->policy->limits);
    *ret = s;
    return 0;
}

/* Whether the process that the record names listens there, and is this user's. Another could have made the socket of a session that is no more. */
static bool is_daemons(int fd, const struct record *r)
{
    struct ucred who = {0};
    socklen_t n = sizeof who;
    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid > 0 && who.pid == r->pid &&
           who.uid == geteuid();
}

static int open_session(const struct pinfold_session_options *options, bool soon, struct pinfold_session **ret,
                        struct pinfold_error *error)
{
    struct pinfold_session_options o;
    struct err e = {0};
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    struct pinfold_session *s = r < 0 ? NULL : session_object(o.name, o.scope, &e);
    if (!s)
        return tell(error, &e, r < 0 ? r : -EINVAL);
    s->soon = soon ? place_connect(&s->place) : -1;
    r = session_take_record(s, &e);
    if (r < 0 || !is_daemons(s->soon, &s->record))
        s->soon = close_fd(s->soon);
    /* Who is connected has somebody who answers. Not record_is_alive(): if this is another boot's process of these very numbers, nobody
       answers at the socket. */
    if (r == -ENOENT || (r == 0 && s->soon < 0 && !process_lives(s->record.pid, s->record.start))) {
        r = session_gone(&s->place, s->mem, &e);
        r = r == -ESTALE ? -ENOENT : r;
    } else if (r == 0 && s->record.revision != KEEP_REVISION) {
        r = other_version(s, &e);
    }
    if (r < 0) {
        pinfold_session_free(s);
        return tell(error, &e, r);
    }
    *ret = s;
    return 0;
}

int pinfold_session_open(const struct pinfold_session_options *options, struct pinfold_session **ret,
                         struct pinfold_error *error)
{
    return open_session(options, false, ret, error);
}

int session_open_soon(const struct pinfold_session_options *options, struct pinfold_session **ret,
                      struct pinfold_error *error)
{
    return open_session(options, true, ret, error);
}
