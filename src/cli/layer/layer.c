/*
 * `diff`, `apply`, `undo`: what a layer changes, for people and programs. apply and undo exit with 1 if a path was refused, all with
 * 4 if there is no such layer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cli.h"

#define LAYER_OUTPUT ((size_t)1 << 30)

#define EACH_OF(v, list)                                                                                               \
    for (const struct pinfold_value *v = pinfold_value_first(list); (v); (v) = pinfold_value_next(v))

static const char *member(const struct pinfold_value *o, const char *name)
{
    size_t n;
    const char *text = pinfold_value_text(pinfold_value_get(o, name), &n);
    return text ? text : "";
}

static bool has(const struct pinfold_value *change, const char *list, const char *word)
{
    EACH_OF(v, pinfold_value_get(change, list))
    {
        if (same(pinfold_value_text(v, NULL), word))
            return true;
    }
    return false;
}

/* ---- which layer, which paths ---- */

typedef int (*layer_call)(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                          struct pinfold_error *error);

/*
 * The first word names a layer if there is one of that name; otherwise it is a path. A path that has a layer's name is
 * written ./NAME.
 */
static int with_layer(struct ask *a, layer_call call, struct pinfold_report **ret, int *ret_status)
{
    struct pinfold_error error = {0};
    struct pinfold_layer_options o = {.size = sizeof o};
    int r = -ENOENT;
    if (a->n_words && !strchr(a->words[0], '/')) {
        o.layer = a->words[0];
        o.paths = (const char *const *)a->words + 1;
        r = call(a, &o, ret, &error);
    }
    if (r == -ENOENT) {
        o.layer = NULL;
        o.paths = (const char *const *)a->words;
        r = call(a, &o, ret, &error);
    }
    if (r < 0) {
        *ret_status = fail(&error);
        if (r == -ENOENT || r == -ENODATA)
            *ret_status = STATUS_NO_SESSION;
    }
    return r;
}

static int call_diff(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                     struct pinfold_error *error)
{
    return pinfold_layer_diff_report(o, a->stat, ret, error);
}

static int call_patch(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                      struct pinfold_error *error)
{
    return pinfold_layer_patch(o, a->patch_fd, ret, error);
}

static int call_tool(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                     struct pinfold_error *error)
{
    return pinfold_layer_tool(o, a->tool, ret, error);
}

static int call_apply(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                      struct pinfold_error *error)
{
    struct pinfold_layer_options of = *o;
    of.all = a->all;
    of.to = a->to;
    of.branch = a->branch;
    of.merge = a->merge ? same(a->conflicts, "mark") ? 2 : 1 : 0;
    return pinfold_layer_apply_report(&of, ret, error);
}

static int call_hunks(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                      struct pinfold_error *error)
{
    (void)a;
    return apply_hunks(o, ret, error);
}

static int call_chosen(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                       struct pinfold_error *error)
{
    struct pinfold_layer_options of = *o;
    of.all = a->all;
    of.chosen = 1;
    return pinfold_layer_patch(&of, a->patch_fd, ret, error);
}

static int call_undo(const struct ask *a, const struct pinfold_layer_options *o, struct pinfold_report **ret,
                     struct pinfold_error *error)
{
    struct pinfold_layer_options of = *o;
    of.to = a->to;
    return pinfold_layer_undo_report(&of, a->number ? strtoull(a->number, NULL, 10) : 0, ret, error);
}

/* ---- diff ---- */

struct paint {
    struct buf *out;
    bool colours;
};

static void put_painted(const struct paint *p, const char *colour, const char *text)
{
    if (p->colours)
        buf_printf(p->out, "\033[%sm", colour);
    utf8_safe(p->out, str_of(text));
    if (p->colours)
        buf_text(p->out, "\033[0m");
}

static const char *sign_of(const struct pinfold_value *change)
{
    const char *kind = member(change, "kind");
    return same(kind, "added") ? "+" : same(kind, "deleted") ? "-" : "~";
}

static const char *colour_of(const struct pinfold_value *change)
{
    const char *kind = member(change, "kind");
    return same(kind, "added") ? "32" : same(kind, "deleted") ? "31" : "33";
}

static bool is_directory(const struct pinfold_value *change)
{
    const struct pinfold_value *now = pinfold_value_get(change, "new");
    return same(member(pinfold_value_first(now) ? now : pinfold_value_get(change, "old"), "type"), "directory");
}

static void put_words(const struct paint *p, const struct pinfold_value *change)
{
    static const char *const said[][2] = {{"guarded", "guarded name"},
                                          {"link-out", "leads out of the workspace"},
                                          {"special", "special file"},
                                          {"setuid", "setuid or setgid"},
                                          {"executable", "new executable"},
                                          {"git", "below .git"},
                                          {"link-place", "link in place of a directory or into .git"},
                                          {"spelling", "another spelling of a guarded name"},
                                          {"hooks", "other commands for git's hooks"}};
    const char *before = " (";
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        if (!has(change, "alarms", said[i][0]))
            continue;
        buf_printf(p->out, "%s%s", before, said[i][1]);
        before = ", ";
    }
    const struct pinfold_value *old = pinfold_value_get(change, "old"), *now = pinfold_value_get(change, "new");
    if (has(change, "what", "mode")) {
        buf_printf(p->out, "%smode %s -> %s", before, member(old, "mode"), member(now, "mode"));
        before = ", ";
    }
    if (has(change, "what", "type")) {
        buf_printf(p->out, "%s%s -> %s", before, member(old, "type"), member(now, "type"));
        before = ", ";
    }
    if (has(change, "what", "attributes") || has(change, "what", "owner")) {
        buf_printf(p->out, "%s%s", before, has(change, "what", "owner") ? "owner" : "attributes");
        before = ", ";
    }
    const char *from = member(change, "renamed_from"), *to = member(change, "renamed_to");
    if (*from || *to) {
        buf_printf(p->out, "%srenamed %s ", before, *from ? "from" : "to");
        utf8_safe(p->out, str_of(*from ? from : to));
        before = ", ";
    }
    if (same(before, ", "))
        buf_char(p->out, ')');
}

static void put_change(const struct paint *p, const struct pinfold_value *change, bool alarm)
{
    const char *conflict = member(change, "conflict"), *target = member(pinfold_value_get(change, "new"), "target");
    buf_text(p->out, "  ");
    put_painted(p, alarm ? "1;31" : colour_of(change), sign_of(change));
    buf_char(p->out, ' ');
    put_painted(p, alarm ? "1;31" : colour_of(change), member(change, "path"));
    if (is_directory(change))
        buf_char(p->out, '/');
    if (*target) {
        buf_text(p->out, " -> ");
        utf8_safe(p->out, str_of(target));
    }
    const struct pinfold_value *added = pinfold_value_get(change, "lines_added");
    if (added)
        buf_printf(p->out, "  +%lld -%lld", (long long)pinfold_value_number(added),
                   (long long)pinfold_value_number(pinfold_value_get(change, "lines_removed")));
    put_words(p, change);
    if (*conflict) {
        buf_text(p->out, ": ");
        put_painted(p, "1;35", "conflict, ");
        buf_text(p->out, conflict);
    }
    buf_char(p->out, '\n');
}

static bool has_alarm(const struct pinfold_value *change)
{
    return pinfold_value_first(pinfold_value_get(change, "alarms")) != NULL;
}

/* Of a repository's own directory only its name; what happened in it is told in sentences. */
static bool is_deep_git(const struct pinfold_value *change)
{
    return has(change, "alarms", "git") && !pinfold_value_is_true(pinfold_value_get(change, "waits")) &&
           strchr(member(change, "path"), '/');
}

/* An object of Git LFS, or a directory of such, which lands by its hash; of a repository that the box has made only with that. */
static bool is_lfs(const struct pinfold_value *change)
{
    const struct str path = str_of(member(change, "path"));
    return is_deep_git(change) && same(member(change, "kind"), "added") &&
           (str_is(path, ".git/lfs") || str_is(path, ".git/lfs/objects") || str_starts(path, STR(".git/lfs/objects/")));
}

static void put_summary(const struct paint *p, const struct pinfold_value *all)
{
    size_t edited = 0, added = 0, deleted = 0, conflicts = 0, waits = 0;
    EACH_OF(c, pinfold_value_get(all, "changes"))
    {
        const char *kind = member(c, "kind");
        edited += same(kind, "edited");
        added += same(kind, "added");
        deleted += same(kind, "deleted");
        conflicts += *member(c, "conflict") != 0;
        waits += pinfold_value_is_true(pinfold_value_get(c, "waits"));
    }
    buf_printf(p->out, "%zu changed, %zu new, %zu deleted", edited, added, deleted);
    if (conflicts)
        buf_printf(p->out, "; %zu in conflict with the host", conflicts);
    if (waits)
        buf_printf(p->out, "; %zu to be named one by one", waits);
    buf_char(p->out, '\n');
}

static void put_diff(const struct paint *p, const struct pinfold_value *all)
{
    const struct pinfold_value *changes = pinfold_value_get(all, "changes"), *layer = pinfold_value_get(all, "layer");
    size_t deep = 0, lfs = 0, alarms = 0;
    bool born = false;
    buf_printf(p->out, "layer %s of ", member(layer, "id"));
    utf8_safe(p->out, str_of(member(layer, "workspace")));
    if (*member(layer, "from"))
        buf_printf(p->out, ", on layer %s", member(layer, "from"));
    buf_char(p->out, '\n');
    if (pinfold_value_is_true(pinfold_value_get(all, "interrupted")))
        buf_text(p->out, "an apply of this layer was interrupted; the next apply or undo completes it first\n");
    EACH_OF(c, changes)
    {
        deep += is_deep_git(c);
        lfs += is_lfs(c);
        born |= same(member(c, "path"), ".git");
        alarms += has_alarm(c) && !is_deep_git(c);
    }
    if (alarms)
        put_painted(p, "1;31", "Look at these first:");
    buf_text(p->out, alarms ? "\n" : "");
    EACH_OF(c, changes)
    {
        if (has_alarm(c) && !is_deep_git(c))
            put_change(p, c, true);
    }
    EACH_OF(line, pinfold_value_get(all, "git"))
    {
        size_t n;
        const char *text = pinfold_value_text(line, &n);
        buf_text(p->out, "  git: ");
        utf8_safe(p->out, str_of(text ? text : ""));
        buf_char(p->out, '\n');
    }
    lfs = born ? 0 : lfs;
    if (lfs)
        buf_printf(p->out, "  %zu path%s of Git LFS in .git/lfs/objects\n", lfs, lfs == 1 ? "" : "s");
    if (deep > lfs)
        buf_printf(p->out, "  %zu path%s below .git, not applied\n", deep - lfs, deep - lfs == 1 ? "" : "s");
    if (alarms + deep < pinfold_value_count(changes))
        buf_text(p->out, alarms + deep ? "Changes:\n" : "");
    EACH_OF(c, changes)
    {
        if (!has_alarm(c))
            put_change(p, c, false);
    }
    put_summary(p, all);
}

static void put_changed_names(struct buf *out, const struct pinfold_value *all)
{
    EACH_OF(c, pinfold_value_get(all, "changes"))
    {
        buf_printf(out, "%s ", sign_of(c));
        utf8_safe(out, str_of(member(c, "path")));
        buf_char(out, '\n');
    }
}

static int print_out(const struct buf *out)
{
    if (buf_ok(out))
        return print(buf_cstr(out));
    complain("out of memory for so many changes");
    return STATUS_NO;
}

int layer_show(const char *id, int fd)
{
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = id};
    struct pinfold_report *report = NULL;
    struct pinfold_error error = {0};
    auto_buf struct buf out = BUF(LAYER_OUTPUT);
    const struct paint p = {.out = &out, .colours = has_colours(fd)};
    if (pinfold_layer_diff_report(&o, 1, &report, &error) < 0)
        return fail(&error);
    put_diff(&p, pinfold_report_value(report));
    pinfold_report_free(report);
    return buf_ok(&out) && fd_write_all(fd, out.p, out.n) == 0 ? STATUS_YES : STATUS_NO;
}

/* To people: in colours, and with nothing that a terminal would obey. */
static int show_patch_of(const struct ask *a, int patch)
{
    auto_buf struct buf raw = BUF(LAYER_OUTPUT), out = BUF(LAYER_OUTPUT);
    const int no = lseek(patch, 0, SEEK_SET) < 0 ? -errno : fd_read_all(patch, &raw);
    if (no < 0) {
        complain("diff: cannot show the patch: %s%s", strerror(-no),
                 no == -EFBIG ? "; write it to a file: pinfold diff --patch >FILE" : "");
        return STATUS_NO;
    }
    put_patch(buf_view(&raw), has_colours(1), &out);
    return print_paged(a, &out);
}

static int diff_patch(struct ask *a)
{
    struct pinfold_report *report;
    int status;
    const bool shown = isatty(1);
    auto_fd int patch = shown ? memfd_create("patch", MFD_CLOEXEC) : -1;
    a->patch_fd = patch >= 0 ? patch : 1;
    if (with_layer(a, call_patch, &report, &status) < 0)
        return status;
    status = patch >= 0 ? show_patch_of(a, patch) : STATUS_YES;
    const int left = complain_left(pinfold_value_get(pinfold_report_value(report), "left_out"), "why");
    pinfold_report_free(report);
    return status == STATUS_YES ? left : status;
}

/* Tools that compare say 1 where there are differences. */
static int diff_tool(struct ask *a)
{
    struct pinfold_report *report;
    int status;
    if (with_layer(a, call_tool, &report, &status) < 0)
        return status;
    const struct pinfold_value *all = pinfold_report_value(report);
    const int64_t ended = pinfold_value_number(pinfold_value_get(all, "status"));
    status = complain_left(pinfold_value_get(all, "left_out"), "why");
    if (ended > 1) {
        complain("--tool %s: it ended with status %lld%s", a->tool, (long long)ended,
                 ended == 127 ? ": it is not in its box" : "");
        status = STATUS_NO;
    } else if (!pinfold_value_count(pinfold_value_get(all, "done"))) {
        complain("--tool: there is no file to compare");
    }
    pinfold_report_free(report);
    return status;
}

/* A word that is neither a layer's name nor a place where the layer has anything is a mistake, not an empty answer. */
static int check_word(const struct ask *a, const struct pinfold_report *report, const char *list, int status)
{
    struct stat st;
    const struct pinfold_value *all = pinfold_report_value(report);
    if (status != STATUS_YES || !a->n_words || pinfold_value_count(pinfold_value_get(all, list)) ||
        strcmp(member(pinfold_value_get(all, "layer"), "name"), a->words[0]) == 0 ||
        strncmp(member(pinfold_value_get(all, "layer"), "id"), a->words[0], strlen(a->words[0])) == 0 ||
        lstat(a->words[0], &st) == 0)
        return status;
    complain("%s: no layer has this name, and the newest layer changes nothing there; to list layers: pinfold layers",
             a->words[0]);
    return STATUS_NO;
}

int verb_diff(struct ask *a)
{
    struct pinfold_report *report;
    int status;
    if (a->patch + a->json + a->names + a->stat + (a->tool != NULL) > 1) {
        complain("diff: only one of --json, --names, --patch, --stat and --tool");
        return STATUS_USAGE;
    }
    if (a->patch)
        return diff_patch(a);
    if (a->tool)
        return diff_tool(a);
    if (with_layer(a, call_diff, &report, &status) < 0)
        return status;
    auto_buf struct buf out = BUF(LAYER_OUTPUT);
    const struct paint p = {.out = &out, .colours = has_colours(1)};
    if (a->json) {
        status = print_report(report);
    } else if (a->names) {
        put_changed_names(&out, pinfold_report_value(report));
        status = print_out(&out);
    } else {
        put_diff(&p, pinfold_report_value(report));
        status = print_paged(a, &out);
    }
    status = check_word(a, report, "changes", status);
    pinfold_report_free(report);
    return status;
}

/* ---- apply, undo ---- */

static int tell_done(struct ask *a, struct pinfold_report *report, const char *verb)
{
    const struct pinfold_value *all = pinfold_report_value(report), *done = pinfold_value_get(all, "done");
    const struct pinfold_value *refused = pinfold_value_get(all, "refused");
    auto_buf struct buf out = BUF(LAYER_OUTPUT);
    if (a->json) {
        int status = print_report(report);
        return status == STATUS_YES && pinfold_value_count(refused) ? STATUS_NO : status;
    }
    if (pinfold_value_is_true(pinfold_value_get(all, "resumed")))
        complain("an interrupted apply or undo was completed first");
    EACH_OF(v, done)
    {
        buf_printf(&out, "%s ", verb);
        utf8_safe(&out, str_of(member(v, "path")));
        buf_char(&out, '\n');
    }
    EACH_OF(line, pinfold_value_get(all, "git"))
    {
        utf8_safe(&out, str_of(pinfold_value_text(line, NULL)));
        buf_char(&out, '\n');
    }
    int status = print_out(&out), refusals = complain_left(refused, "why");
    return status == STATUS_YES ? refusals : status;
}

/* All of it is there before the file is made: one that came to be is whole. */
static int save_patch(const char *where, int patch)
{
    static char room[1 << 16];
    struct stat st;
    ssize_t n = 0;
    if (fstat(patch, &st) == 0 && st.st_size == 0) {
        complain("--patch %s: there is nothing to write", where);
        return STATUS_NO;
    }
    auto_fd int fd = open_honest("--patch", where, ".", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return STATUS_USAGE;
    int no = 0;
    for (off_t at = 0; no == 0 && (n = pread(patch, room, sizeof room, at)) > 0; at += n)
        no = fd_write_all(fd, room, (size_t)n);
    if (no == 0 && n == 0)
        return STATUS_YES;
    complain("--patch %s: %s", where, strerror(no < 0 ? -no : errno));
    (void)unlink(where);
    return STATUS_USAGE;
}

static int apply_patch(struct ask *a)
{
    struct pinfold_report *report;
    const bool out = same(a->into, "-");
    int status;
    if (a->to) {
        complain("apply: --patch writes only the patch; leave --to out");
        return STATUS_USAGE;
    }
    if (a->json && out) {
        complain("apply: --json and --patch -: both would be on standard output");
        return STATUS_USAGE;
    }
    auto_fd int patch = out ? -1 : memfd_create("patch", MFD_CLOEXEC);
    if (!out && patch < 0) {
        complain("--patch %s: %s", a->into, strerror(errno));
        return STATUS_USAGE;
    }
    a->patch_fd = out ? 1 : patch;
    if (with_layer(a, call_chosen, &report, &status) < 0)
        return status;
    const struct pinfold_value *all = pinfold_report_value(report);
    status = complain_left(pinfold_value_get(all, "left_out"), "why");
    const int saved = out ? STATUS_YES : save_patch(a->into, patch);
    if (saved != STATUS_YES)
        status = saved;
    else if (a->json && print_report(report) != STATUS_YES)
        status = STATUS_NO;
    else if (!a->json && !out)
        complain("%zu changes were written to '%s', and nothing was applied",
                 pinfold_value_count(pinfold_value_get(all, "done")), a->into);
    pinfold_report_free(report);
    return status;
}

/* Options that say different things about what becomes of the changes. */
static bool apply_said(const struct ask *a)
{
    if (a->conflicts && !same(a->conflicts, "mark") && !same(a->conflicts, "leave")) {
        complain("--conflicts %s: use leave or mark", a->conflicts);
        return false;
    }
    if (a->conflicts && !a->merge) {
        complain("--conflicts %s: nothing is merged without --merge", a->conflicts);
        return false;
    }
    if ((a->merge || a->branch) && (a->hunks || a->into || a->to)) {
        complain("apply: %s changes %s; leave %s out", a->merge ? "--merge" : "--branch",
                 a->merge ? "whole files of the workspace" : "the repository alone",
                 a->hunks  ? "--hunks"
                 : a->into ? "--patch"
                           : "--to");
        return false;
    }
    if (a->merge && a->branch) {
        complain("apply: --branch commits what the box made; leave --merge out");
        return false;
    }
    return true;
}

int verb_apply(struct ask *a)
{
    struct pinfold_report *report;
    int status;
    if (!apply_said(a))
        return STATUS_USAGE;
    if (a->hunks && (a->all || a->into || a->to || a->json)) {
        complain("apply: --hunks asks about each change of the workspace; leave %s out", a->all    ? "--all"
                                                                                         : a->into ? "--patch"
                                                                                         : a->to   ? "--to"
                                                                                                   : "--json");
        return STATUS_USAGE;
    }
    if (!a->all && !a->hunks && a->n_words == 0) {
        complain("apply: name the paths, or write --all; to list them: pinfold diff");
        return STATUS_USAGE;
    }
    if (a->into)
        return apply_patch(a);
    if (with_layer(a, a->hunks ? call_hunks : call_apply, &report, &status) < 0)
        return status;
    if (!report) /* nothing was chosen */
        return STATUS_YES;
    status = tell_done(a, report, a->branch ? "committed" : "applied");
    pinfold_report_free(report);
    return status;
}

int verb_undo(struct ask *a)
{
    struct pinfold_report *report;
    int status;
    if (a->number && (!*a->number || a->number[strspn(a->number, "0123456789")] || !strtoull(a->number, NULL, 10))) {
        complain("--apply %s: write its number, such as 3", a->number);
        return STATUS_USAGE;
    }
    if (with_layer(a, call_undo, &report, &status) < 0)
        return status;
    status = check_word(a, report, "done", tell_done(a, report, "took back"));
    pinfold_report_free(report);
    return status;
}

/* ---- layers, discard ---- */

int verb_discard(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    const struct pinfold_layer_options o = {.size = sizeof o, .layer = a->n_words ? a->words[0] : NULL};
    if (a->n_words > 1) {
        complain("discard: unexpected argument '%s'; it removes one whole layer", a->words[1]);
        return STATUS_USAGE;
    }
    int r = pinfold_layer_discard_report(&o, &report, &error);
    if (r < 0)
        return r == -ENOENT ? (void)fail(&error), STATUS_NO_SESSION : fail(&error);
    int status = STATUS_YES;
    if (a->json)
        status = print_report(report);
    else
        complain("layer %s was removed", member(pinfold_value_get(pinfold_report_value(report), "layer"), "id"));
    pinfold_report_free(report);
    return status;
}

/* "30d", "12h": seconds; 0: it is none. */
static uint64_t age_given(const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
    char *end;
    const double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (end != text && same(end, units[i].name) && v * units[i].seconds >= 1 && v * units[i].seconds < 1e12)
            return (uint64_t)(v * units[i].seconds);
    }
    return 0;
}

static int prune_layers(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    const uint64_t older = a->older ? age_given(a->older) : 0;
    if (a->older && !older) {
        complain("--older-than %s: write a time, such as 30d or 12h", a->older);
        return STATUS_USAGE;
    }
    if (pinfold_layers_prune_report(older, a->dry_run, &report, &error) < 0)
        return fail(&error);
    auto_buf struct buf out = BUF(LAYER_OUTPUT);
    EACH_OF(l, pinfold_value_get(pinfold_report_value(report), "removed"))
    {
        buf_printf(&out, "%s %s  %-6s ", a->dry_run ? "would remove" : "removed", member(l, "id"), member(l, "why"));
        buf_amount(&out, (uint64_t)pinfold_value_number(pinfold_value_get(l, "bytes")));
        buf_text(&out, "  ");
        utf8_safe(&out, str_of(member(l, "workspace")));
        if (pinfold_value_text(pinfold_value_get(l, "name"), NULL))
            buf_printf(&out, "  (%s)", member(l, "name"));
        buf_char(&out, '\n');
    }
    const int status = a->json ? print_report(report) : print_out(&out);
    pinfold_report_free(report);
    return status;
}

int verb_layers(struct ask *a)
{
    struct pinfold_error error = {0};
    struct pinfold_report *report;
    int status;
    if (a->n_words && same(a->words[0], "prune")) {
        if (a->n_words == 1)
            return prune_layers(a);
        complain("layers prune: unexpected argument '%s'; to remove one layer: pinfold discard LAYER", a->words[1]);
        return STATUS_USAGE;
    }
    if (a->older || a->dry_run) {
        complain("layers: --older-than and --dry-run are for prune");
        return STATUS_USAGE;
    }
    if (!no_words(a))
        return STATUS_USAGE;
    if (pinfold_layers_report(&report, &error) < 0)
        return fail(&error);
    if (a->json) {
        status = print_report(report);
    } else {
        auto_buf struct buf out = BUF(LAYER_OUTPUT);
        EACH_OF(l, pinfold_value_get(pinfold_report_value(report), "layers"))
        {
            const int64_t age = time(NULL) - pinfold_value_number(pinfold_value_get(l, "created"));
            buf_printf(&out, "%s  %-9s %5lldm  ", member(l, "id"), member(l, "state"),
                       (long long)(age > 0 ? age / 60 : 0)); /* the clock may have been set */
            buf_amount(&out, (uint64_t)pinfold_value_number(pinfold_value_get(l, "bytes")));
            buf_text(&out, "  ");
            utf8_safe(&out, str_of(member(l, "workspace")));
            const int64_t applies = pinfold_value_number(pinfold_value_get(l, "applies"));
            if (applies) {
                buf_printf(&out, "  %lld to take back, ", (long long)applies);
                buf_amount(&out, (uint64_t)pinfold_value_number(pinfold_value_get(l, "undo_bytes")));
            }
            if (*member(l, "from"))
                buf_printf(&out, "  on %.8s", member(l, "from"));
            if (pinfold_value_text(pinfold_value_get(l, "name"), NULL))
                buf_printf(&out, "  (%s)", member(l, "name"));
            buf_char(&out, '\n');
        }
        status = print_out(&out);
        EACH_OF(d, pinfold_value_get(pinfold_report_value(report), "damaged"))
        {
            const char *path = pinfold_value_text(d, NULL);
            complain("%s: the record of this layer cannot be read; what it changed is in a directory there. "
                     "Remove it when you have taken what you need",
                     path);
        }
    }
    pinfold_report_free(report);
    return status;
}
