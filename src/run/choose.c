/*
 * Chooses the engine and makes the plan for it. A named engine is used as it is. `auto` makes a plan for each engine in
 * the table's order and takes the first that can enforce the policy, so the same machine and policy always give the
 * same result. The reasons against the others are kept: those before it could not enforce the policy; those after it
 * were not needed.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/ids.h"

#include "survey/cgroup.h"
#include "backends/engine.h"
#include "survey/survey.h"
#include "backends/tools/tool.h"
#include "run/direct.h"
#include "run/nested.h"
#include "match/path.h"

void prepared_free(struct prepared *p)
{
    p->plan = plan_free(p->plan);
    p->mem = arena_free(p->mem);
}

static bool asks_for_group(const struct limits *l)
{
    const struct limit *const held[] = {&l->memory, &l->cpus, &l->processes};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        if (held[i]->asked && held[i]->value != LIMIT_NONE)
            return true;
    }
    return false;
}

int explain_command(struct prepared *p, enum pinfold_explain_format format, struct err *e)
{
    const struct engine *engine = p->engine;
    auto_buf struct buf text = BUF(MAX_ANSWER_TEXT);
    struct tool_ask ask = {.program = p->facts.tool, .place = "/tmp/pinfold-UID/c-XXXXXX", .id = "XXXXXX"};
    if (!engine->argv)
        return format != PINFOLD_EXPLAIN_COMMAND
                   ? 0
                   : err_say(e, ERR_CANNOT,
                             "the engine '%s' has no command line: pinfold creates the box itself (pinfold explain "
                             "--verbose shows the steps; --engine NAME selects another engine)",
                             engine->name);
    int r = tool_init(p->mem, &ask.init, NULL, e);
    if (r == 0)
        r = engine->argv(p->plan, &ask, p->mem, &p->plan->command, e);
    if (r < 0)
        return r;
    tool_print(p->plan->command, ask.init, &text);
    p->plan->command_text = buf_ok(&text) ? arena_text(p->mem, buf_cstr(&text)) : NULL;
    return p->plan->command_text ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot print the command line");
}

/* An option that the engine would ignore is refused: whoever gave it relies on it. A file's keys may be meant for other
   engines; they are not. */
static int options_fit(const struct pinfold_policy *p, const struct engine *engine, struct err *e)
{
    static const struct {
        const char *name, *engine; /* NULL: the engines of images */
    } said[] = {{"image", NULL},
                {"runtime", NULL},
                {"pull", NULL},
                {"entrypoint", NULL},
                {"platform", NULL},
                {"docker-host", NULL},
                {"docker-context", NULL},
                {"vm-kernel", "vm"},
                {"vm-modules", "vm"},
                {"seatbelt-base", "seatbelt"},
                {"seatbelt-file", "seatbelt"}};
    for (size_t i = 0; i < p->layers.n_flags; i++) {
        for (size_t k = 0; k < sizeof said / sizeof *said; k++) {
            const bool fits = said[k].engine ? same(engine->name, said[k].engine) : engine->images;
            if (fits || !same(p->layers.flags[i].name, said[k].name))
                continue;
            return err_say(e, ERR_POLICY,
                           "the engine '%s' has no use for --%s, which is for %s; remove it, or add %s%s", engine->name,
                           said[k].name, said[k].engine ? said[k].engine : "docker and podman",
                           said[k].engine || k == 0 ? "--engine " : "--image IMAGE",
                           said[k].engine ? said[k].engine
                           : k == 0       ? "docker"
                                          : "");
        }
    }
    return 0;
}

/* In a box: what its guard enforces, which is asked to guard names at the top of this workspace as well. */
static void look_at_outer_box(const struct policy *p, struct prepared *n)
{
    char real[PATH_MAX];
    if (p->guard != GUARD_OFF && p->workspace && realpath(p->workspace, real))
        n->facts.around_top = arena_text(n->mem, real);
    n->facts.around = nested_around(n->mem, &n->facts.around_top);
}

static int prepare_for(const struct pinfold_policy *p, const struct engine *engine, const struct plan_ask *ask,
                       bool thorough, struct prepared *n, struct err *e)
{
    *n = (struct prepared){.mem = arena_new(MAX_PLAN_ARENA), .engine = engine};
    if (!n->mem)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make the plan");
    n->facts.home = p->layers.world.home;
    n->facts.state_home =
        ask->state_home ? ask->state_home : path_dir(n->mem, p->layers.world.state); /* of .../pinfold */
    n->facts.user_name = p->layers.world.user_name;
    n->facts.program = p->layers.world.program;
    n->facts.thorough = thorough;
    n->facts.uid = own_euid();
    n->facts.gid = own_egid();
    n->facts.policy = p->policy;
    n->facts.redirects = ask->redirects;
    n->facts.tool_namespaces = engine->namespaces;
    n->facts.written = world_written(n->mem, p->layers.world.state);
    n->facts.pins = p->pins;
    n->facts.nested = nested_in_box();
    if (n->facts.nested)
        look_at_outer_box(p->policy, n);
    int r = options_fit(p, engine, e);
    if (r == 0)
        r = engine->probe(&n->facts, n->mem, thorough, e);
    if (r == 0 && !engine->images && !n->facts.machine) /* containers have their engine's groups */
        cgroup_probe(&n->facts, asks_for_group(&p->policy->limits), n->mem);
    if (r == 0)
        r = survey(p->policy, &n->facts, n->mem, e);
    if (r == 0)
        r = plan_make(p->policy, &n->facts, ask, &n->plan, e);
    if (r < 0)
        prepared_free(n);
    return r;
}

/* What an engine said, less the words that every one of them begins with. */
static const char *reason_of(const struct engine *engine, const struct err *e)
{
    static const char words[] = " cannot enforce the policy here: ";
    size_t n = strlen(engine->name);
    bool begins = strncmp(e->text, engine->name, n) == 0 && strncmp(e->text + n, words, sizeof words - 1) == 0;
    return begins ? e->text + n + sizeof words - 1 : e->text;
}

/* A command that asks the same of one engine: with the options that were given, unless they are too long for a sentence. */
static void same_of(const struct pinfold_policy *p, const char *engine, char *ret, size_t room)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    auto_buf struct buf b = BUF(room);
    buf_printf(&b, "pinfold explain --engine %s", engine);
    for (size_t i = 0; i < p->layers.n_flags; i++) {
        const struct layer_flag *f = &p->layers.flags[i];
        if (same(f->name, "engine") || f->wish)
            continue;
        buf_printf(&b, " --%s", f->name);
        if (!f->value)
            continue;
        const bool quoted = !f->value[0] || f->value[strspn(f->value, plain)];
        buf_char(&b, ' ');
        if (quoted)
            buf_shell_word(&b, str_of(f->value));
        else
            buf_text(&b, f->value);
    }
    if (buf_ok(&b))
        snprintf(ret, room, "; why not another engine: %s", buf_cstr(&b));
    else
        snprintf(ret, room, "; why not another engine: pinfold explain --engine %s, with the same options", engine);
}

/* Every engine was asked, and every one had its reasons: the first one's, with its remedy, and where the others are said. */
static int none_can(const struct pinfold_policy *p, const struct engine_reason *no, size_t n, struct err *e)
{
    char more[400] = "";
    if (n > 1)
        same_of(p, no[1].engine, more, sizeof more - 32);
    return err_say(e, ERR_CANNOT, "no engine here can enforce the policy: %s: %.*s%s",
                   n ? no[0].engine : "none is built", (int)(sizeof e->text - strlen(more) - 96),
                   n ? no[0].why : "for it", more);
}

/* Images are for the engines that have them; the host's files for the others. */
static bool is_candidate(const struct policy *p, const struct engine *engine)
{
    return engine->images == (p->image != NULL);
}

static int say_others(struct prepared *n, const struct engine_reason *no, size_t n_no, const struct policy *p)
{
    size_t room = n_no, at = 0;
    for (size_t i = 0; engines[i]; i++)
        room++;
    struct engine_reason *all = arena_zero(n->mem, room * sizeof *all);
    bool after = false;
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; engines[i]; i++) {
        const struct engine *engine = engines[i];
        if (engine == n->engine) {
            after = true;
            continue;
        }
        const char *why = NULL;
        if (!is_candidate(p, engine))
            why = p->image ? "it does not use images, and the policy names one"
                           : "it needs an image, and the policy names none";
        else if (after)
            why = arena_printf(n->mem, "not needed: %s can enforce this policy", n->engine->name);
        for (size_t k = 0; !why && k < n_no; k++)
            why = same(no[k].engine, engine->name) ? arena_text(n->mem, no[k].why) : NULL;
        all[at++] = (struct engine_reason){engine->name, why ? why : ""};
    }
    n->facts.others = all;
    n->facts.n_others = at;
    return 0;
}

static int prepare_any(const struct pinfold_policy *p, const struct plan_ask *ask, bool thorough, struct prepared *ret,
                       struct err *e)
{
    enum { MANY = 16, ROOM = 1 << 16 };
    auto_arena struct arena *said = NULL;
    struct engine_reason no[MANY];
    size_t n = 0;
    int last = 0;
    for (size_t i = 0; engines[i] && n < MANY; i++) {
        if (!is_candidate(p->policy, engines[i]))
            continue;
        int r = prepare_for(p, engines[i], ask, thorough, ret, e);
        if (r == 0 && say_others(ret, no, n, p->policy) < 0) {
            prepared_free(ret);
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make the plan");
        }
        if (r == 0 || e->kind != ERR_CANNOT)
            return r;
        if (!said)
            said = arena_new(ROOM);
        no[n] = (struct engine_reason){engines[i]->name, said ? arena_text(said, reason_of(engines[i], e)) : NULL};
        if (!no[n++].why)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make the plan");
        last = r;
    }
    return n == 1 ? last : none_can(p, no, n, e);
}

static int prepare_named(const struct pinfold_policy *p, const char *name, const struct plan_ask *ask, bool thorough,
                         struct prepared *ret, struct err *e)
{
    const struct engine *engine = engine_by_name(name);
    if (!engine)
        return err_say(e, ERR_CANNOT, "--engine %s: unknown engine; list the engines with: pinfold doctor", name);
    return prepare_for(p, engine, ask, thorough, ret, e);
}

int prepare_so_far(const struct pinfold_policy *p, const struct plan_ask *ask, struct prepared *ret)
{
    const char *name = p->policy->engine;
    bool any = !name || same(name, "auto");
    struct err ignored = {0};
    if (!any)
        return prepare_named(p, name, ask, true, ret, &ignored);
    for (size_t i = 0; engines[i]; i++) {
        if (is_candidate(p->policy, engines[i]) && prepare_for(p, engines[i], ask, true, ret, &ignored) == 0)
            return 0;
    }
    return -EOPNOTSUPP;
}

/* No engine can, and the person said what then. Why none can is kept, for the result and the warning. */
static int prepare_without(const struct pinfold_policy *p, const struct plan_ask *ask, struct prepared *ret,
                           struct err *e)
{
    const struct err said = *e;
    int r = prepare_for(p, &engine_unsandboxed, ask, true, ret, e);
    if (r < 0)
        return r;
    struct engine_reason *why = arena_zero(ret->mem, sizeof *why);
    const char *text = why ? arena_text(ret->mem, said.text) : NULL;
    if (!text) {
        prepared_free(ret);
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot make the plan");
    }
    *why = (struct engine_reason){p->policy->engine ? p->policy->engine : "auto", text};
    ret->facts.others = why;
    ret->facts.n_others = 1;
    return 0;
}

/* The engine that was named cannot. Without a box is for where no other one can, either. */
static int other_can(const struct pinfold_policy *p, const struct plan_ask *ask, int r, struct err *e)
{
    struct prepared other;
    struct err ignored = {0};
    if (prepare_any(p, ask, false, &other, &ignored) < 0)
        return 0;
    r = err_hint(e, r, "--unsandboxed-fallback applies only if no engine can run the box, and %s can: remove --engine",
                 other.engine->name);
    prepared_free(&other);
    return r;
}

int engine_after(const struct pinfold_policy *p, const struct plan_ask *ask, const struct engine *failed, int r,
                 struct err *e)
{
    const bool any = !p->policy->engine || same(p->policy->engine, "auto");
    bool after = false;
    for (size_t i = 0; any && failed && failed->images && engines[i]; i++) {
        struct prepared other;
        struct err ignored = {0};
        const bool later = after && is_candidate(p->policy, engines[i]);
        after |= engines[i] == failed;
        if (!later || prepare_for(p, engines[i], ask, false, &other, &ignored) < 0)
            continue;
        prepared_free(&other);
        return err_hint(e, r,
                        "%s was the first engine that could enforce the policy; %s can, too, but has images of its own "
                        "and has to be "
                        "chosen: --engine %s",
                        failed->name, engines[i]->name, engines[i]->name);
    }
    return r;
}

int prepare(const struct pinfold_policy *p, const struct plan_ask *ask, bool thorough, struct prepared *ret,
            struct err *e)
{
    const char *name = p->policy->engine;
    bool any = !name || same(name, "auto");
    int r = any ? prepare_any(p, ask, thorough, ret, e) : prepare_named(p, name, ask, thorough, ret, e);
    /* What was only assumed may be missing, too, and then the remedy for this alone would not help. */
    if (r < 0 && e->kind == ERR_CANNOT && !thorough && !p->policy->image)
        return prepare(p, ask, true, ret, e);
    if (r < 0 && e->kind == ERR_CANNOT && p->policy->unsandboxed_fallback) {
        int said = any ? 0 : other_can(p, ask, r, e);
        r = said < 0 ? said : prepare_without(p, ask, ret, e);
    }
    return r;
}
