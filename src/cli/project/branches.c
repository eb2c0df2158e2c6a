/*
 * Verbs of projects besides `init` and `shell`: `start` and `stop` of their sessions, `checkout` and `rm` of branches, `list` and
 * `volume` of what there is, and `show-run`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/people.h"
#include "client/entry.h"
#include "project/branch.h"
#include "project/import/import.h"

enum { LIST_ARENA = 64 << 20, MAX_LIST_JSON = 64 << 20 };

static int project_checkout(struct ask *a)
{
    char real[PATH_MAX], why[PATH_MAX + 1024] = "", word[PROJECT_WORD];
    if (a->n_words == 0) {
        complain("checkout: missing argument: the branch (pinfold checkout BRANCH [PATH])");
        return STATUS_USAGE;
    }
    if (!project_directory(a, 1, real))
        return STATUS_USAGE;
    const struct branch_ask asked = {
        .real = real, .branch = a->words[0], .renew = true, .say = complain_line, .why = why, .room = sizeof why};
    if (branch_provision(&asked) < 0) {
        complain("checkout: %s", why);
        return STATUS_USAGE;
    }
    branch_word(a->words[0], word);
    printf(SHELF_IN_BOX "/worktrees/%s\n", word);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- what there is ---- */

/* One box of a project: its session, or a branch that has none. */
struct box_row {
    const char *real, *branch; /* NULL: the checkout itself */
    const char *session, *state, *engine, *workdir, *created;
    const char *volumes[3];
    bool known; /* a session of this name is there */
};
struct box_rows {
    struct arena *mem;
    struct box_row *all;
    size_t n;
    const char *only; /* the project, or NULL */
    struct shelf shelf;
};

static struct box_row *put_row(struct box_rows *l, const char *real, const char *branch)
{
    char name[PROJECT_NAME];
    struct box_row *one = arena_push(l->mem, &l->all, &l->n, sizeof *one);
    project_session(real, branch, name);
    if (one)
        *one = (struct box_row){.real = arena_text(l->mem, real),
                                .branch = arena_text_or_null(l->mem, branch),
                                .session = arena_text(l->mem, name),
                                .state = "-",
                                .engine = "-",
                                .created = ""};
    return one;
}

struct one_shelf {
    struct box_rows *l;
    const char *real;
};

static int put_branch(void *ctx, const char *word, const char *name)
{
    const struct one_shelf *s = ctx;
    struct box_row *one = put_row(s->l, s->real, name);
    if (one)
        one->workdir = arena_printf(s->l->mem, SHELF_IN_BOX "/worktrees/%s", word);
    return 0;
}

static int put_shelf(void *ctx, const struct shelf *shelf, const char *real)
{
    struct box_rows *l = ctx;
    struct one_shelf s = {l, real};
    if (l->only && !same(l->only, real))
        return 0;
    return branch_each(shelf, put_branch, &s);
}

static const char *member_text(const struct pinfold_value *o, const char *name)
{
    const char *text = pinfold_value_text(pinfold_value_get(o, name), NULL);
    return text ? text : "";
}

static struct box_row *of_session(struct box_rows *l, const char *name, const char *workspace)
{
    char bind[PROJECT_NAME];
    for (size_t i = 0; i < l->n; i++) {
        if (same(l->all[i].session, name))
            return &l->all[i];
    }
    project_session(workspace, NULL, bind);
    if (same(bind, name))
        return put_row(l, workspace, NULL);
    /* Of a branch whose shelf somebody has deleted. */
    struct box_row *one = put_row(l, workspace, "?");
    if (one)
        one->session = arena_text(l->mem, name);
    return one;
}

static void put_sessions(struct box_rows *l, const struct pinfold_value *sessions)
{
    for (const struct pinfold_value *s = pinfold_value_first(sessions); s; s = pinfold_value_next(s)) {
        const char *name = member_text(s, "name"), *workspace = member_text(s, "workspace");
        if (strncmp(name, PROJECT_PREFIX, sizeof PROJECT_PREFIX - 1) != 0 || *member_text(s, "scope") ||
            (l->only && !same(l->only, workspace)))
            continue;
        struct box_row *one = of_session(l, name, workspace);
        if (!one)
            return;
        one->known = true;
        one->state = arena_text(l->mem, member_text(s, "state"));
        one->engine = arena_text(l->mem, member_text(s, "engine"));
        one->created = arena_text(l->mem, member_text(s, "created"));
        one->workdir = arena_text(l->mem, member_text(s, "cwd"));
    }
}

static void put_volumes(struct box_rows *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct box_row *one = &l->all[i];
        struct shelf shelf;
        char why[PATH_MAX + 64];
        size_t n = 0;
        if (shelf_of(one->real, &shelf, why, sizeof why) == 0 && access(shelf.top, F_OK) == 0)
            one->volumes[n++] = arena_text(l->mem, shelf.name);
        if (one->known)
            one->volumes[n++] = arena_printf(l->mem, "%s-history", one->session);
    }
}

/* Everything, or what belongs to the project `only`. */
static bool gather(struct box_rows *l, const char *only, struct arena *mem)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    *l = (struct box_rows){.mem = mem, .only = only};
    if (pinfold_session_list_report(NULL, &report, &error) < 0) {
        complain("%s", error.text);
        return false;
    }
    (void)shelf_each(put_shelf, l);
    put_sessions(l, pinfold_value_get(pinfold_report_value(report), "sessions"));
    pinfold_report_free(report);
    put_volumes(l);
    if (arena_failed(mem))
        complain("out of memory");
    return !arena_failed(mem);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int list_json(const struct box_rows *l)
{
    auto_buf struct buf out = BUF(MAX_LIST_JSON);
    struct json j = JSON(&out);
    json_object(&j, NULL);
    json_array(&j, "projects");
    for (const struct box_row *one = l->all; one < l->all + l->n; one++) {
        json_object(&j, NULL);
        json_text(&j, "repo", base_name(one->real));
        json_text(&j, "path", one->real);
        json_text(&j, "mode", one->branch ? "branch" : "bind");
        json_text_or_null(&j, "branch", one->branch);
        json_text(&j, "state", one->known ? one->state : "none");
        json_text_or_null(&j, "engine", one->known ? one->engine : NULL);
        json_text_or_null(&j, "created", one->known ? one->created : NULL);
        json_text(&j, "workdir", one->workdir ? one->workdir : one->real);
        json_text(&j, "session", one->session);
        json_array(&j, "volumes");
        for (size_t i = 0; one->volumes[i]; i++)
            json_text(&j, NULL, one->volumes[i]);
        json_array_end(&j);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    buf_char(&out, '\n');
    return buf_ok(&out) ? print(buf_cstr(&out)) : STATUS_NO;
}

static int list_people(const struct box_rows *l)
{
    struct people_project *rows = arena_zero(l->mem, (l->n + 1) * sizeof *rows);
    if (!rows)
        return STATUS_NO;
    for (size_t i = 0; i < l->n; i++) {
        const struct box_row *one = &l->all[i];
        rows[i] =
            (struct people_project){.repo = base_name(one->real),
                                    .mode = one->branch ? arena_printf(l->mem, "branch %s", one->branch) : "bind",
                                    .state = one->known ? one->state : "no session",
                                    .engine = one->engine,
                                    .workdir = one->workdir ? one->workdir : one->real,
                                    .volumes = arena_printf(l->mem, "%s%s%s", one->volumes[0] ? one->volumes[0] : "-",
                                                            one->volumes[0] && one->volumes[1] ? ", " : "",
                                                            one->volumes[0] && one->volumes[1] ? one->volumes[1] : ""),
                                    .created = one->created};
    }
    return arena_failed(l->mem) ? STATUS_NO : people_projects(rows, l->n);
}

static int project_list(struct ask *a)
{
    auto_arena struct arena *mem = arena_new(LIST_ARENA);
    char real[PATH_MAX];
    struct box_rows l;
    if (a->n_words) {
        complain("list takes no argument; all sessions: pinfold session list");
        return STATUS_USAGE;
    }
    if (!mem || !gather(&l, a->names && realpath(".", real) ? real : NULL, mem))
        return STATUS_NO;
    if (a->json)
        return list_json(&l);
    if (!a->names)
        return list_people(&l);
    for (size_t i = 0; i < l.n; i++) {
        if (l.all[i].branch)
            printf("%s\n", l.all[i].branch);
    }
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- rm ---- */

static int end_session(const char *name, bool remove)
{
    struct pinfold_error error = {0};
    const struct pinfold_session_options o = {.size = sizeof o, .name = name};
    int r = pinfold_session_stop(&o, remove, &error);
    return r == 0 || r == -ENOENT || r == -ESTALE ? STATUS_YES : fail(&error);
}

static int remove_branch(struct ask *a, const char *real, const char *branch, bool look)
{
    char why[PATH_MAX + 1024] = "", name[PROJECT_NAME];
    const struct branch_ask asked = {.real = real,
                                     .branch = branch,
                                     .force = a->force,
                                     .look = look,
                                     .say = complain_line,
                                     .why = why,
                                     .room = sizeof why};
    project_session(real, branch, name);
    int status = end_session(name, false); /* nobody works there any more while git looks */
    if (status != STATUS_YES)
        return status;
    int r = branch_remove(&asked);
    if (r < 0) {
        complain("rm: %s", why);
        return r == -ENOENT ? STATUS_NO_SESSION : r == -EBUSY ? STATUS_NO : STATUS_USAGE;
    }
    return look ? STATUS_YES : end_session(name, true);
}

/* The boxes of the checkout and of all branches, and the shelf; the checkout is not touched. */
static int remove_all(struct ask *a, const char *real)
{
    auto_arena struct arena *mem = arena_new(LIST_ARENA);
    char why[PATH_MAX + 1024];
    struct box_rows l;
    struct shelf shelf;
    if (!mem || !gather(&l, real, mem))
        return STATUS_NO;
    bool there = shelf_of(real, &shelf, why, sizeof why) == 0 && access(shelf.top, F_OK) == 0;
    if (!there && l.n == 0) {
        complain("rm: '%s' has no box", real);
        return STATUS_NO_SESSION;
    }
    int status = STATUS_YES;
    for (size_t i = 0; i < l.n && status == STATUS_YES && !a->force; i++) {
        if (l.all[i].branch && !same(l.all[i].branch, "?"))
            status = remove_branch(a, real, l.all[i].branch, true);
    }
    for (size_t i = 0; i < l.n && status == STATUS_YES; i++)
        status = end_session(l.all[i].session, true);
    if (status == STATUS_YES && there) {
        auto_fd int lock = shelf_lock(&shelf, why, sizeof why);
        if (lock < 0) {
            complain("rm: %s", why);
            return STATUS_NO;
        }
        shelf_remove(&shelf);
    }
    return status;
}

static int project_remove(struct ask *a, const char *real)
{
    return a->branch ? remove_branch(a, real, a->branch, false) : remove_all(a, real);
}

/* ---- volume ---- */

struct volumes {
    struct arena *mem;
    struct people_volume *all;
    size_t n;
};

static void put_volume(struct volumes *v, const char *name, const char *kind, const char *project, const char *where)
{
    struct people_volume *one = arena_push(v->mem, &v->all, &v->n, sizeof *one);
    if (one)
        *one = (struct people_volume){arena_text(v->mem, name), kind, arena_text(v->mem, project),
                                      arena_text(v->mem, where)};
}

static int put_shelf_volume(void *ctx, const struct shelf *shelf, const char *real)
{
    put_volume(ctx, shelf->name, "branches", real, shelf->top);
    return 0;
}

/* What is kept of a session: where, is known to the session alone. */
static void put_history(struct volumes *v, const struct box_row *one)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    const struct pinfold_session_options o = {.size = sizeof o, .name = one->session};
    if (pinfold_session_list_report(&o, &report, &error) < 0)
        return;
    const struct pinfold_value *list = pinfold_value_get(pinfold_report_value(report), "storage");
    for (const struct pinfold_value *s = pinfold_value_first(list); s; s = pinfold_value_next(s)) {
        const char *volume = member_text(s, "volume");
        if (same(member_text(s, "path"), PROJECT_HISTORY))
            put_volume(v, arena_printf(v->mem, "%s-history", one->session), "history", one->real,
                       *volume ? volume : member_text(s, "directory"));
    }
    pinfold_report_free(report);
}

/* Volumes of the tool agent-sandbox, which are no part of ours. */
static void put_others(struct volumes *v)
{
    struct volume_found *all = arena_zero(v->mem, IMPORT_FOUND * sizeof *all);
    char real[PATH_MAX], hash[PROJECT_HASH] = "";
    if (realpath(".", real))
        project_hash(real, hash);
    const size_t n = all ? entry_volumes_find(IMPORT_PREFIX, VOLUME_QUICK_MS, all, IMPORT_FOUND) : 0;
    for (size_t i = 0; i < n; i++) {
        const bool here = import_kind(all[i].name, hash) != IMPORT_NOT_OURS;
        put_volume(v, all[i].name, "agent-sandbox's", here ? real : "-",
                   all[i].podman ? "podman; see: volume import" : "docker; see: volume import");
    }
}

static int volume_json(const struct volumes *v)
{
    auto_buf struct buf out = BUF(MAX_LIST_JSON);
    struct json j = JSON(&out);
    json_object(&j, NULL);
    json_array(&j, "volumes");
    for (const struct people_volume *one = v->all; one < v->all + v->n; one++) {
        json_object(&j, NULL);
        json_text(&j, "name", one->name);
        json_text(&j, "keeps", one->kind);
        json_text(&j, "project", one->project);
        json_text(&j, "where", one->where);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    buf_char(&out, '\n');
    return buf_ok(&out) ? print(buf_cstr(&out)) : STATUS_NO;
}

/* A history goes with its session, which must have been stopped; a shelf with all boxes of the project. */
static int volume_remove(struct ask *a, const struct volumes *v, const struct box_rows *l)
{
    for (const struct people_volume *one = v->all; one < v->all + v->n; one++) {
        if (!same(one->name, a->words[1]))
            continue;
        if (same(one->kind, "branches"))
            return remove_all(a, one->project);
        for (const struct box_row *s = l->all; s < l->all + l->n; s++) {
            size_t n = strlen(s->session);
            if (strncmp(one->name, s->session, n) != 0 || !same(one->name + n, "-history"))
                continue;
            if (same(s->state, "running") && !a->force) {
                complain("volume rm: '%s' is in use by the session '%s'; stop it first, or end it with: --force",
                         one->name, s->session);
                return STATUS_NO;
            }
            return end_session(s->session, true);
        }
    }
    complain("volume rm: there is no '%s'; see: pinfold volume", a->words[1]);
    return STATUS_NO_SESSION;
}

static int project_volume(struct ask *a)
{
    auto_arena struct arena *mem = arena_new(LIST_ARENA);
    struct volumes v = {.mem = mem};
    struct box_rows l;
    bool remove = a->n_words && same(a->words[0], "rm");
    if (a->n_words && same(a->words[0], "import"))
        return volume_import(a);
    if (a->branch || a->dry_run) {
        complain("volume: --branch and --dry-run are for import");
        return STATUS_USAGE;
    }
    if ((a->n_words && !remove && !same(a->words[0], "list")) || a->n_words != (remove ? 2 : a->n_words ? 1 : 0)) {
        complain("volume: write 'pinfold volume', 'pinfold volume rm NAME', or 'pinfold volume import [PATH]'");
        return STATUS_USAGE;
    }
    if (!mem || !gather(&l, NULL, mem))
        return STATUS_NO;
    (void)shelf_each(put_shelf_volume, &v);
    for (size_t i = 0; i < l.n; i++) {
        if (l.all[i].known)
            put_history(&v, &l.all[i]);
    }
    if (remove)
        return volume_remove(a, &v, &l);
    if (!a->names)
        put_others(&v);
    if (a->json)
        return volume_json(&v);
    if (!a->names)
        return people_volumes(v.all, v.n);
    for (size_t i = 0; i < v.n; i++)
        printf("%s\n", v.all[i].name);
    return fflush(stdout) == 0 ? STATUS_YES : STATUS_NO;
}

/* ---- show-run ---- */

/* The line that starts the same session, and what another program is started with for it, if there is one. */
static int project_show_run(struct ask *a, const char *real)
{
    static struct project_box box;
    static char why[PATH_MAX + 1024], *words[2 * PROJECT_OPTIONS + 16], texts[PROJECT_OPTIONS][64];
    struct pinfold_error error = {0};
    struct pinfold_policy *policy;
    auto_buf struct buf out = BUF((size_t)1 << 24);
    size_t n = 0;
    const char *reason = a->branch ? branch_refused(a->branch) : NULL;
    if (reason || project_box(real, a->branch, false, &box, why, sizeof why) < 0) {
        complain(reason ? "show-run: '%s' cannot be a branch's name: %s" : "show-run: %s%s", reason ? a->branch : why,
                 reason ? reason : "");
        return STATUS_USAGE;
    }
    words[n++] = (char *)(uintptr_t) "pinfold";
    words[n++] = (char *)(uintptr_t) "session";
    words[n++] = (char *)(uintptr_t) "start";
    for (size_t i = 0; i < box.n_options; i++) {
        snprintf(texts[i], sizeof texts[i], "--%s", box.options[i].name);
        words[n++] = texts[i];
        if (box.options[i].value)
            words[n++] = (char *)(uintptr_t)box.options[i].value;
    }
    if (box.cwd[0]) {
        words[n++] = (char *)(uintptr_t) "--cwd";
        words[n++] = box.cwd;
    }
    words[n++] = box.session;
    words[n] = NULL;
    put_command(words, &out);
    buf_char(&out, '\n');
    const struct pinfold_policy_options o = {.size = sizeof o, .options = box.options, .cwd = real};
    char *text = NULL;
    if (pinfold_policy_load(&o, &policy, &error) < 0)
        return fail(&error);
    if (pinfold_explain(policy, PINFOLD_EXPLAIN_COMMAND, 0, &text, &error) == 0)
        buf_printf(&out, "# The engine's own command line:\n%s", text);
    free(text);
    pinfold_policy_free(policy);
    return buf_ok(&out) ? print(buf_cstr(&out)) : STATUS_NO;
}

int verb_show_run(struct ask *a)
{
    char real[PATH_MAX];
    const char *path = a->n_words ? a->words[0] : ".";
    bool plain = a->n_policy == 0 && a->n_words <= 1 && realpath(path, real);
    if (a->branch && !plain) {
        complain(
            "show-run: --branch shows how the project's session is started: pinfold show-run [PATH] --branch NAME");
        return STATUS_USAGE;
    }
    return plain && (a->branch || project_is(real)) ? project_show_run(a, real) : show_engine(a);
}

/* ---- the verbs ---- */

static int project_stop(const struct ask *a, const char *real)
{
    char name[PROJECT_NAME];
    struct pinfold_error error = {0};
    project_session(real, a->branch, name);
    const struct pinfold_session_options o = {.size = sizeof o, .name = name};
    int r = pinfold_session_stop(&o, 0, &error);
    if (r == -ENOENT || r == -ESTALE)
        return STATUS_NO_SESSION;
    return r < 0 ? fail(&error) : STATUS_YES;
}

static int stop(struct ask *a, const char *real)
{
    int status = project_stop(a, real); /* agents have sessions of directories that are no projects, too */
    if (status != STATUS_NO_SESSION)
        return status;
    if (a->branch)
        complain("stop: no session of branch '%s' of '%s' is running; to see those that are: pinfold list", a->branch,
                 real);
    else if (!project_is(real))
        complain("stop: '%s' is not initialized; do that with: pinfold init '%s'", real, real);
    else
        complain("stop: no session of '%s' is running; to see those that are: pinfold list", real);
    return a->branch || project_is(real) ? status : STATUS_USAGE;
}

int verb_project(struct ask *a)
{
    char real[PATH_MAX];
    if (!image_said_fits(a))
        return STATUS_USAGE;
    if (same(verb_said, "image") || same(verb_said, "build-base") || same(verb_said, "build"))
        return verb_image(a);
    if (same(verb_said, "list"))
        return project_list(a);
    if (same(verb_said, "volume"))
        return project_volume(a);
    if (same(verb_said, "checkout"))
        return project_checkout(a);
    if (!project_directory(a, 0, real))
        return STATUS_USAGE;
    if (same(verb_said, "rm"))
        return project_remove(a, real);
    if (same(verb_said, "stop"))
        return stop(a, real);
    if (!a->branch && !project_is(real)) {
        complain("%s: '%s' is not initialized; do that with: pinfold init '%s'", verb_said, real, real);
        return STATUS_USAGE;
    }
    return project_session_of(a, real) ? start_session(a, a->session) : STATUS_USAGE;
}
