/*
 * Prints a plan for people: what can be seen and written, with the means and the origin, then the steps. BRIEF omits
 * the steps and only counts what the built-in profiles list by the hundred: names that do not exist, caches, guarded
 * names.
 */
#include "plan/explain/words.h"

#include <stdio.h>

#include "base/json.h"

static void put_place(const struct plan *p, const struct plan_place *at, struct buf *out)
{
    char origin[512], how[640];
    place_origin(p, at, origin, sizeof origin);
    const char *word = word_how(at);
    if (at->src && strcmp(at->src, at->dst) != 0 && at->act == ACT_ATTACH) {
        snprintf(how, sizeof how, "%s: %s", word, at->src);
        word = how;
    }
    put_row(out, word_access(at), at->dst, word, origin);
}

/* Rows that are counted instead of printed: their first and third columns, and how many. */
#define FOLDS 16
struct folds {
    struct fold {
        const char *word;
        char how[320];
        unsigned n;
    } all[FOLDS];
    size_t n;
};

/* False if there is no room: then the row is printed. */
static bool fold_row(struct folds *f, const char *word, const char *how)
{
    size_t i = 0;
    while (i < f->n && (f->all[i].word != word || strcmp(f->all[i].how, how) != 0))
        i++;
    if (i == FOLDS || strlen(how) >= sizeof f->all[i].how)
        return false;
    if (i == f->n) {
        f->all[f->n++] = (struct fold){.word = word};
        strcpy(f->all[i].how, how);
    }
    f->all[i].n++;
    return true;
}

static void put_folds(struct folds *f, const char *of, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        char text[96];
        snprintf(text, sizeof text, "%u %s%s", f->all[i].n, of, f->all[i].n == 1 ? "" : "s");
        put_row(out, f->all[i].word, text, f->all[i].how, "built in");
    }
    f->n = 0;
}

static bool is_foldable(const struct plan_place *at)
{
    if (!at->builtin)
        return false;
    return at->kind == PLACE_CACHE ||
           (at->kind == PLACE_HIDE && (at->act == ACT_REFUSED || at->act == ACT_NOT_THERE || at->act == ACT_WHITEOUT ||
                                       (at->act == ACT_STUB && at->stub == STUB_ABSENT && at->type == PATH_MISSING)));
}

/* Grouped, and sorted by path within a group. */
static void show_files(const struct plan *p, bool brief, struct buf *out)
{
    struct folds folds = {.n = 0};
    static const enum place_kind groups[][3] = {{PLACE_RW, PLACE_RW, PLACE_RW},
                                                {PLACE_CACHE, PLACE_STORAGE, PLACE_CACHE},
                                                {PLACE_PROTECT, PLACE_RO, PLACE_PATTERN},
                                                {PLACE_HIDE, PLACE_PATTERN, PLACE_HIDE},
                                                {PLACE_SOCKET, PLACE_SOCKET, PLACE_SOCKET},
                                                {PLACE_TMPFS, PLACE_DEVICES, PLACE_PROC}};
    buf_text(out, "\nFiles\n");
    put_row(out, p->places[0].region == REGION_WRITABLE ? "writable" : "read-only",
            p->facts->image ? "the image's files; from this machine only what is named below"
                            : "everything that is not named below",
            "", "");
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (size_t i = 1; i < p->n_places; i++) {
            const struct plan_place *at = &p->places[i];
            bool here = at->kind == groups[g][0] || at->kind == groups[g][1] || at->kind == groups[g][2];
            if (at->kind == PLACE_PATTERN)
                here = g == (at->hides ? 3 : 2);
            if (!here || !place_is_telling(at) || (at->act == ACT_NOT_THERE && !at->said))
                continue;
            if (!brief || !is_foldable(at) || !fold_row(&folds, word_access(at), word_how(at)))
                put_place(p, at, out);
        }
        put_folds(&folds, g == 1 ? "cache" : "name", out);
    }
    for (size_t i = 0; p->read_on_every_open && p->read_on_every_open[i]; i++) {
        if (i == 0)
            buf_text(out, "  every open is checked by the guard (slower) because of\n");
        buf_text(out, "    ");
        utf8_safe(out, str_of(p->read_on_every_open[i]));
        buf_char(out, '\n');
    }
    if (!brief && p->read_on_every_open && p->read_on_every_open[0])
        buf_text(out, "  as are reading link targets and extended attributes; stat and access of hidden names in\n  "
                      "writable places still answer (existence, size, owner, mode, times)\n");
}

static const struct guard_table *guard_of(const struct plan *p)
{
    return p->image->guard_bytes ? (const void *)((const char *)p->image + p->image->guard_at) : NULL;
}

static void show_guard(const struct plan *p, bool brief, struct buf *out)
{
    const struct guard_table *t = guard_of(p);
    struct folds names = {.n = 0}, private = {.n = 0};
    if (!t)
        return;
    buf_printf(out, "\nGuard (%s)\n", word_guard_mode((enum guard_mode)t->mode));
    for (uint32_t i = 0; i < t->n_rules; i++) {
        const struct guard_rule *r = &t->rules[i];
        char origin[512], how[640] = "";
        if (r->kind == GUARD_RULE_NAME || r->kind == GUARD_RULE_HIDE_NAME) {
            snprintf(how, sizeof how, "%s%s%s%s",
                     r->flags & GUARD_RULE_DEEP ? "anywhere in repositories"
                     : r->place == GUARD_ROOT   ? "top of writable trees"
                                                : "at any depth",
                     r->below ? " below " : "", r->below ? plan_string(p->image, r->below) : "",
                     r->judge == GUARD_GIT_CONFIG ? ", checked by key" : "");
        }
        bool kept = r->kind == GUARD_RULE_PRIVATE && r->flags & GUARD_RULE_KEPT;
        const char *word = kept ? "kept" : word_guard_rule((enum guard_rule_kind)r->kind);
        if (brief &&
            ((r->kind == GUARD_RULE_NAME && origin_is_builtin(p->policy, r->origin) && fold_row(&names, word, how)) ||
             (r->kind == GUARD_RULE_PRIVATE && fold_row(&private, word, ""))))
            continue;
        policy_origin(p->policy, r->origin, origin, sizeof origin);
        bool slash = how[0] && r->flags & GUARD_RULE_DIRECTORY;
        char text[4200];
        snprintf(text, sizeof text, "%s%s", plan_string(p->image, r->text), slash ? "/" : "");
        put_row(out, word, text, how, how[0] ? origin : "");
    }
    put_folds(&names, "name", out);
    put_folds(&private, "place", out);
}

static void put_names(struct buf *out, const char *title, uint32_t bits, const struct named_bit *names)
{
    buf_printf(out, "%s", title);
    const char *before = " ";
    for (const struct named_bit *n = names; n->name; n++) {
        if (bits & n->bit) {
            buf_printf(out, "%s%s", before, n->name);
            before = ", ";
        }
    }
    buf_text(out, bits ? "\n" : " none\n");
}

static void show_git(const struct plan *p, struct buf *out)
{
    const struct git_rules *g = &p->policy->git;
    const struct {
        bool said;
        const char *word, *text, *how;
        uint32_t origin;
    } rows[] = {
        {g->verify == GIT_VERIFY_REQUIRED, "verify", "required", "only commits that pass your hooks", g->verify_origin},
        {g->verify == GIT_VERIFY_TOLD, "verify", "told", "failures are shown, and pushed", g->verify_origin},
        {g->allow_force, "allowed", "rewriting", "by a push, if not protected", g->force_origin},
        {g->allow_delete, "allowed", "deleting", "by a push, if not protected", g->delete_origin}};
    char origin[512];
    bool any = g->n_branches;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        any |= rows[i].said;
    if (!any)
        return;
    buf_text(out, "\nGit\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].said)
            put_row(out, rows[i].word, rows[i].text, rows[i].how,
                    policy_origin(p->policy, rows[i].origin, origin, sizeof origin));
    }
    for (size_t i = 0; i < g->n_branches; i++)
        put_row(out, "protected", g->branches[i].pattern, "branch",
                policy_origin(p->policy, g->branches[i].origin, origin, sizeof origin));
    if (!g->n_branches)
        put_row(out, "protected", "all branches", "", "default");
}

static void show_limits(const struct plan *p, struct buf *out)
{
    struct named_limit all[N_LIMITS];
    limits_of(p, all);
    bool any = false;
    for (int i = 0; i < N_LIMITS; i++) {
        if (all[i].limit.value == LIMIT_NONE)
            continue;
        if (!any)
            buf_text(out, "\nLimits\n");
        any = true;
        char origin[512];
        auto_buf struct buf value = BUF(64);
        put_limit(&value, &all[i]);
        policy_origin(p->policy, all[i].limit.origin, origin, sizeof origin);
        put_row(out, all[i].name, buf_cstr(&value),
                all[i].less          ? "as the hard limit here allows (ulimit -Hn)"
                : all[i].limit.asked ? ""
                                     : "default",
                origin);
    }
}

static void show_environment(const struct plan *p, bool show_values, struct buf *out)
{
    buf_text(out, "\nEnvironment\n");
    size_t line = 0;
    for (const char **v = p->env; *v; v++) {
        size_t n = strcspn(*v, "=");
        if (show_values) {
            buf_text(out, "  ");
            utf8_safe(out, str_of(*v));
            buf_char(out, '\n');
            continue;
        }
        if (line && line + n + 1 > COLUMNS) {
            buf_char(out, '\n');
            line = 0;
        }
        buf_text(out, line ? " " : "  ");
        buf_put(out, *v, n);
        line += n + (line ? 1 : 2);
    }
    if (!show_values)
        buf_char(out, '\n');
}

static void show_promises(const struct plan *p, struct buf *out)
{
    buf_text(out, "\nEnforced\n");
    for (size_t i = 0; i < p->n_enforced; i++) {
        size_t line = out->n;
        buf_printf(out, "  %s", feature_name(p->enforced[i].what));
        pad(out, line, 24);
        buf_printf(out, "%s\n", p->enforced[i].by);
    }
    buf_text(out, p->lost ? "\nLost\n" : "\nLost: nothing\n");
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (!(p->lost & (features)1 << i))
            continue;
        size_t line = out->n;
        buf_printf(out, "  %s", feature_name((enum feature)i));
        pad(out, line, 24);
        buf_text(out, feature_text((enum feature)i));
        if (p->facts->why_not[i] && !(p->facts->can & (features)1 << i))
            buf_printf(out, ": %s", p->facts->why_not[i]);
        buf_char(out, '\n');
    }
}

static void show_steps(const struct plan *p, struct buf *out)
{
    buf_text(out, "\nSteps\n");
    const struct step *s = plan_steps(p->image);
    for (uint32_t i = 0; i < p->image->n_steps; i++) {
        buf_printf(out, "%5u  %s", i, s[i].kind == STEP_STUB ? "  " : "");
        step_print(p->image, &s[i], out);
        buf_char(out, '\n');
    }
}

static void put_dirs(const struct plan *p, struct buf *out)
{
    for (size_t i = 0; i < p->n_make_dirs; i++) {
        if (i == 0)
            buf_text(out, "\npinfold's own directories, created first\n");
        buf_text(out, "  ");
        utf8_safe(out, str_of(p->make_dirs[i].path));
        buf_text(out, p->make_dirs[i].temporary  ? "  removed after the run\n"
                      : p->make_dirs[i].whiteout ? "  a whiteout\n"
                      : p->make_dirs[i].opaque   ? "  opaque\n"
                                                 : "\n");
    }
}

static void put_notes(const struct plan *p, struct buf *out)
{
    for (size_t i = 0; p->notes && p->notes[i]; i++) {
        if (i == 0)
            buf_text(out, "\nNotes\n");
        buf_text(out, "  ");
        utf8_safe(out, str_of(p->notes[i]));
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < p->policy->n_ignored; i++) {
        char origin[512];
        const struct ignored *g = &p->policy->ignored[i];
        if (i == 0)
            buf_text(out, "\nNot enforced\n");
        put_row(out, "", g->key, g->why, policy_origin(p->policy, g->origin, origin, sizeof origin));
    }
}

bool plan_has_image_user(const struct plan *p)
{
    char id[24], ids[48];
    const char *user = p->facts->image ? p->facts->image->user : NULL;
    snprintf(id, sizeof id, "%u", p->image->uid);
    snprintf(ids, sizeof ids, "%u:%u", p->image->uid, p->image->gid);
    return !user || !user[0] || strcmp(user, id) == 0 || strcmp(user, ids) == 0; /* a name is the image's own */
}

/* What docker run would do with the image, and what is done with it here. */
static void put_image_start(const struct plan *p, struct buf *out)
{
    const struct image_fact *image = p->facts->image;
    const bool has = image->entrypoint && image->entrypoint[0];
    if (has) {
        buf_text(out, "entrypoint ");
        for (const char *const *word = image->entrypoint; *word; word++) {
            buf_char(out, ' ');
            utf8_safe(out, str_of(*word));
        }
        buf_text(out, p->policy->entrypoint == ENTRYPOINT_IMAGE ? ", with the command behind it\n"
                                                                : ", not run (--entrypoint image runs it)\n");
    }
    if (image->cmd && image->cmd[0]) {
        buf_text(out, "image cmd  ");
        for (const char *const *word = image->cmd; *word; word++) {
            buf_char(out, ' ');
            utf8_safe(out, str_of(*word));
        }
        buf_printf(out, ", run%s if no command is given\n",
                   has && p->policy->entrypoint != ENTRYPOINT_NONE ? " by the entrypoint" : "");
    }
    if (image->workdir && image->workdir[0]) {
        buf_text(out, "image cwd   ");
        utf8_safe(out, str_of(image->workdir));
        buf_text(out, ", where that starts; a command of yours starts in the directory below\n");
    }
    if (image->user && image->user[0]) {
        buf_text(out, "image user  ");
        utf8_safe(out, str_of(image->user));
        buf_text(out, plan_has_image_user(p) ? ", the user below\n" : ", not used: the command is the user below\n");
    }
}

/* Up to three of the paths that rules make writable; the rest is counted. */
static void sentence_writes(const struct plan *p, struct buf *out)
{
    enum { NAMED = 3 };
    unsigned n = 0;
    buf_text(out, "It writes   ");
    for (size_t i = 1; i < p->n_places; i++) {
        if (p->places[i].kind != PLACE_RW || n++ >= NAMED)
            continue;
        buf_text(out, n > 1 ? ", " : "");
        utf8_safe(out, str_of(p->places[i].dst));
    }
    if (n > NAMED)
        buf_printf(out, " and %u more", n - NAMED);
    buf_printf(out, "%s.\n",
               n ? "; besides, /tmp and caches of its own, which nobody else sees"
                 : "nothing of this machine: only /tmp and caches of its own, which nobody else sees");
}

static void sentence_reads(const struct plan *p, struct buf *out)
{
    unsigned hidden = 0;
    for (size_t i = 1; i < p->n_places; i++)
        hidden += p->places[i].kind == PLACE_HIDE && p->places[i].act != ACT_NOT_THERE;
    buf_printf(out, "It reads    %s; %u name%s hidden (credentials, private files).\n",
               p->facts->image ? "the image's files and what is named below" : "everything that you can read", hidden,
               hidden == 1 ? " is" : "s are");
}

static bool reaches_every_host(const struct policy *p)
{
    for (size_t i = 0; p->net == NET_ALLOW && i < p->n_net_rules; i++) {
        if (p->net_rules[i].verb == NET_RULE_ALLOW && strcmp(p->net_rules[i].text, "*") == 0)
            return true;
    }
    return false;
}

static void sentence_reaches(const struct plan *p, struct buf *out)
{
    static const char *const nets[] = {
        [NET_NONE] = "no network", [NET_ALLOW] = "only", [NET_HOST] = "everything that this machine reaches"};
    enum { NAMED = 4 };
    unsigned n = 0;
    if (reaches_every_host(p->policy)) {
        buf_text(out, "It reaches  every host that is not denied.\n\n");
        return;
    }
    buf_printf(out, "It reaches  %s", nets[p->policy->net]);
    for (size_t i = 0; p->policy->net == NET_ALLOW && i < p->policy->n_net_rules; i++) {
        const struct net_rule *r = &p->policy->net_rules[i];
        if ((r->verb != NET_RULE_ALLOW && r->verb != NET_RULE_REACH) || n++ >= NAMED)
            continue;
        buf_text(out, n > 1 ? ", " : " ");
        utf8_safe(out, str_of(r->text));
    }
    if (n > NAMED)
        buf_printf(out, " and %u more", n - NAMED);
    else if (p->policy->net == NET_ALLOW && !n)
        buf_text(out, p->policy->net_ask ? " hosts that you allow when asked" : " nothing: no host is allowed");
    buf_text(out, ".\n\n");
}

static int explain(const struct plan *p, bool show_values, bool brief, struct buf *out)
{
    if (brief) {
        sentence_writes(p, out);
        sentence_reads(p, out);
        sentence_reaches(p, out);
    }
    buf_printf(out, "Plan for %s, %s\n", p->facts->engine,
               p->facts->image                   ? "container"
               : p->facts->machine               ? "virtual machine in namespaces"
               : p->facts->host_loopback         ? "profile"
               : p->facts->tier == TIER_LANDLOCK ? "Landlock tier"
                                                 : "namespaces");
    for (size_t i = 0; p->refused && p->refused[i]; i++) {
        buf_text(out, i ? "  " : "\nRefused: nothing is run. The plan below is without\n  ");
        utf8_safe(out, str_of(p->refused[i]));
        buf_text(out, p->refused[i + 1] ? "\n" : "\n\n");
    }
    if (p->facts->image)
        buf_printf(out, "image       %s%s%s\n", p->facts->image->name, p->facts->image->id[0] ? ", " : "",
                   p->facts->image->id);
    if (p->facts->image)
        put_image_start(p, out);
    buf_printf(out, "profile     %s\n", p->policy->profile ? p->policy->profile : "none");
    buf_text(out, "workspace   ");
    utf8_safe(out, str_of(p->workspace));
    buf_printf(out, "%s\nstarts in   ", p->policy->workspace_read_only ? " (read-only)" : "");
    utf8_safe(out, str_of(p->cwd));
    buf_printf(out, "\nuser        %u:%u\n", p->image->uid, p->image->gid);
    buf_printf(out, "network     %s", word_net(p->policy));
    if (p->policy->net == NET_ALLOW)
        buf_printf(out, " (%s)", word_catch(p->catch));
    buf_char(out, '\n');
    if (!p->facts->host_loopback) {
        put_names(out, "namespaces ", p->image->namespaces, namespace_names);
        put_names(out, "filter     ", p->image->filter, filter_names);
    }
    if (!brief && p->digest[0])
        buf_printf(out, "plan        sha256:%s\npolicy      sha256:%s\n", p->digest, p->policy_digest);
    if (p->command_text)
        buf_printf(out, "\nCommand line of %s\n  %s", p->facts->engine, p->command_text);
    for (size_t i = 0; !brief && i < p->facts->n_others; i++) {
        buf_text(out, i ? "" : "\nWhy no other engine\n");
        put_row(out, "", p->facts->others[i].engine, p->facts->others[i].why, "");
    }
    show_files(p, brief, out);
    explain_network(p, out);
    show_guard(p, brief, out);
    show_git(p, out);
    show_limits(p, out);
    show_environment(p, show_values, out);
    show_promises(p, out);
    if (!brief)
        put_dirs(p, out);
    put_notes(p, out);
    if (!brief)
        show_steps(p, out);
    return buf_ok(out) ? 0 : -ENOMEM;
}

int plan_explain(const struct plan *p, bool show_values, struct buf *out)
{
    return explain(p, show_values, false, out);
}

int plan_explain_brief(const struct plan *p, bool show_values, struct buf *out)
{
    return explain(p, show_values, true, out);
}
