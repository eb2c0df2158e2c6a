/*
 * Collects the layers of a policy (profile, files, settings, flags), with trust and ownership checked, and builds it.
 * policy/ only knows texts; which files these are, and whose, is found out here.
 */
#include "run/load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/message.h"
#include "run/nested.h"
#include "run/trust.h"
#include "policy/path.h"
#include "survey/env_files.h"
#include "survey/ssh_files.h"

static int no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot load the policy");
}

static int add_text_layer(struct layers *l, enum policy_layer layer, enum policy_format format, const char *file,
                          struct str text, bool trusted, struct err *e)
{
    struct loaded_text *t = arena_push(l->mem, &l->texts, &l->n_texts, sizeof *t);
    if (!t)
        return no_memory(e);
    *t = (struct loaded_text){.layer = layer, .format = format, .trusted = trusted, .file = file, .text = text};
    return 0;
}

/* `flag`: what named it, or NULL. */
static int add_file(struct layers *l, const char *path, enum policy_format format, const char *flag, struct err *e)
{
    struct str text;
    if (l->n_texts >= MAX_POLICY_LAYERS)
        return err_say(e, ERR_POLICY, "--policy: more than %d files", MAX_POLICY_LAYERS);
    path = path_clean_at(l->mem, l->world.cwd, str_of(path));
    if (!path)
        return no_memory(e);
    int r = read_named(l->mem, l->world.state, flag ? flag : "file", path, MAX_POLICY_TEXT, FILE_ANYBODYS, &text, e);
    if (r < 0)
        return flag && r != -EPERM ? err_wrap(e, r, "%s", flag) : r; /* a refusal names it already */
    return add_text_layer(l, LAYER_FLAGS, format, path, text, true, e);
}

/* A layer at a fixed place: absent is fine, anything else wrong with it is not. */
static int add_place(struct layers *l, enum policy_layer layer, const char *path, enum file_trust trust, struct err *e)
{
    struct str text;
    if (!path)
        return no_memory(e);
    int r = read_whole(l->mem, path, MAX_POLICY_TEXT, trust, false, true, &text, e);
    /* Which every box hides, this one around us, too: what stands there holds for it already. */
    if (r == -ENOENT || (r == -EACCES && nested_in_box()))
        return 0;
    return r < 0 ? r : add_text_layer(l, layer, POLICY_YAML, path, text, true, e);
}

static int add_users(struct layers *l, struct err *e)
{
    const int r = add_place(l, LAYER_USER, arena_printf(l->mem, "%s/policy.yaml", l->world.config), FILE_OWN, e);
    const char *base = getenv("XDG_CONFIG_HOME");
    if (r != -EACCES)
        return r;
    if (base && base[0] == '/') /* of the user that `su` came from, for one */
        return access(base, X_OK) < 0 && errno == EACCES ? err_hint(e, r,
                                                                    "XDG_CONFIG_HOME names a directory that you may "
                                                                    "not enter: unset it, or set it to one of yours")
                                                         : r;
    return access(l->world.home, X_OK) < 0 && errno == EACCES
               ? err_hint(e, r, "HOME is %s, which you may not enter; set HOME to a directory of yours", l->world.home)
               : r;
}

/* The project's own policy. The workspace may be hostile: no links, and no loosening without trust in this content. */
/* A directory above the workspace with a policy or a repository. Kept and packed beside the variables, under a name that none can have. */
#define PROJECT_FOUND "=project"

static int note_project(struct layers *l, const char *dir, struct err *e)
{
    struct layer_variable *v = arena_push(l->mem, &l->variables, &l->n_variables, sizeof *v);
    if (!v)
        return no_memory(e);
    *v = (struct layer_variable){.name = PROJECT_FOUND, .value = dir};
    return 0;
}

/* Whether a directory above the workspace is its owner's or the caller's: others' policies do not reach down here. */
static bool project_is_near(const char *workspace, const char *dir)
{
    struct stat at, st;
    return stat(workspace, &at) == 0 && stat(dir, &st) == 0 && (st.st_uid == at.st_uid || st.st_uid == geteuid());
}

/* The policy of `dir`, which is the workspace or above it. */
static int add_project_at(struct layers *l, const char *workspace, const char *dir, struct err *e)
{
    const bool above = !same(dir, workspace);
    const char *path = arena_printf(l->mem, "%s/" PROJECT_POLICY, dir[1] ? dir : "");
    const char *git = above ? arena_printf(l->mem, "%s/.git", dir) : "";
    struct str text;
    if (!path || !git)
        return no_memory(e);
    int r = read_whole(l->mem, path, MAX_POLICY_TEXT, FILE_ANYBODYS, true, true, &text, e);
    if (above) {
        if ((r == -ENOENT && access(git, F_OK) < 0) || !project_is_near(workspace, dir))
            return 0;
        if (note_project(l, dir, e) < 0)
            return no_memory(e);
    }
    if (r == -EACCES && access(dir, X_OK) < 0)
        return err_hint(e, r, "you may not enter '%s'; cd to a directory of yours, or use --workspace DIR", dir);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    const bool trusted = trust_given(l->mem, l->world.state, path, text);
    l->project_trusted |= trusted;
    return add_text_layer(l, LAYER_PROJECT, POLICY_YAML, path, text, trusted, e);
}

/*
 * The policies of the workspace and of the directories above it, below the home (elsewhere: below the root), the outermost first. All
 * of them: a box can write into the workspace, and with a policy or a repository of its own making the next one would be rid of what
 * is above.
 */
static int add_projects(struct layers *l, const char *workspace, struct err *e)
{
    const char *home = l->world.home;
    size_t at = home && home[1] && path_below(workspace, home) ? strlen(home) : 0;
    if (same(workspace, "/"))
        return add_project_at(l, workspace, workspace, e);
    while (workspace[at]) {
        at += 1 + strcspn(workspace + at + 1, "/");
        const char *dir = workspace[at] ? arena_str(l->mem, (struct str){workspace, at}) : workspace;
        int r = dir ? add_project_at(l, workspace, dir, e) : no_memory(e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_project(struct layers *l, const char *workspace, struct err *e)
{
    char real[PATH_MAX];

    /* The current directory is real already, and the usual workspace. */
    if (!same(workspace, l->world.cwd)) {
        int r = world_judge(l->world.state, "workspace", workspace, real, NULL, e);
        if (r == -EPERM)
            return r;
        if (r < 0)
            return 0; /* what is wrong with the workspace is said where it is surveyed */
        workspace = arena_text(l->mem, real);
        if (!workspace)
            return no_memory(e);
    }
    return add_projects(l, workspace, e);
}

static int format_of(const char *name, enum policy_format *ret, struct err *e)
{
    static const struct {
        const char *name;
        enum policy_format format;
    } known[] = {{"srt", POLICY_SRT},       {"srt-strict", POLICY_SRT_STRICT}, {"dive", POLICY_DIVE},
                 {"mycode", POLICY_MYCODE}, {"daycare", POLICY_DAYCARE},       {"bwrap", POLICY_BWRAP},
                 {"pinfold", POLICY_YAML}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (same(name, known[i].name)) {
            *ret = known[i].format;
            return 0;
        }
    }
    return err_say(e, ERR_POLICY,
                   "unknown settings format '%s'; known: srt, srt-strict, dive, mycode, daycare, bwrap, pinfold", name);
}

/* The flags that name texts are not rules themselves. */
struct named {
    const char *workspace;
};

static int add_flag(struct layers *l, const char *name, const char *value, bool wish, struct err *e)
{
    struct layer_flag *flag = arena_push(l->mem, &l->flags, &l->n_flags, sizeof *flag);
    if (!flag)
        return no_memory(e);
    flag->wish = wish;
    flag->name = arena_text(l->mem, name);
    flag->value = value ? arena_text(l->mem, value) : NULL;
    return arena_failed(l->mem) ? no_memory(e) : 0;
}

/* The path of a flag, which is literal but for a leading ~/ (policy/path.h). */
static const char *flag_path(struct layers *l, const char *value)
{
    if (value[0] == '~' && (value[1] == '/' || !value[1]))
        return path_clean_at(l->mem, l->world.home, str_skip(str_of(value), value[1] ? 2 : 1));
    return path_clean_at(l->mem, l->world.cwd, str_of(value));
}

static int sort_options(struct layers *l, const struct pinfold_policy_options *o, struct named *n, struct err *e)
{
    int r = 0;
    /* "" is no profile at all: nothing but generous limits. */
    if (o->profile)
        r = add_flag(l, "profile", o->profile[0] ? o->profile : "none", false, e);
    for (const struct pinfold_option *f = o->options; r == 0 && f && f->name; f++) {
        bool file = same(f->name, "policy"), settings = same(f->name, "settings");
        if ((file || settings) && !f->value)
            return err_say(e, ERR_POLICY, "--%s needs a value", f->name);
        if (!settings && !file) /* files are added in order, after the fixed places */
            r = add_flag(l, f->name, f->value, false, e);
        if (same(f->name, "workspace") && f->value)
            n->workspace = flag_path(l, f->value);
    }
    for (const struct pinfold_option *f = o->wishes; r == 0 && f && f->name; f++)
        r = add_flag(l, f->name, f->value, true, e);
    return r == 0 && arena_failed(l->mem) ? no_memory(e) : r;
}

static int add_settings_text(struct layers *l, const char *name, const char *text, enum policy_format format,
                             struct err *e)
{
    const char *file = arena_text(l->mem, name), *own = arena_text(l->mem, text);
    int r = file && own ? add_text_layer(l, LAYER_FLAGS, format, file, str_of(own), true, e) : no_memory(e);
    if (r == 0)
        l->texts[l->n_texts - 1].settings = true;
    return r;
}

static int add_settings_file(struct layers *l, const char *path, enum policy_format format, const char *flag,
                             struct err *e)
{
    int r = add_file(l, path, format, flag, e);
    if (r == 0)
        l->texts[l->n_texts - 1].settings = true;
    return r;
}

/* All settings, in their order; a text takes the place of the first file. */
static int add_settings(struct layers *l, const struct pinfold_policy_options *o, struct err *e)
{
    enum policy_format format = POLICY_SRT;
    bool any = o->settings != NULL;
    int r = o->settings_format ? format_of(o->settings_format, &format, e) : 0;
    for (const struct pinfold_option *f = o->options; f && f->name; f++)
        any |= same(f->name, "settings");
    if (r == 0 && o->settings_format && !any) /* whoever names a format thinks that settings are in force */
        return err_say(e, ERR_POLICY, "--from %s is the format of a settings file; name the file with --settings FILE",
                       o->settings_format);
    if (r == 0 && o->settings)
        r = o->settings_text ? add_settings_text(l, o->settings, o->settings_text, format, e)
                             : add_settings_file(l, o->settings, format, NULL, e);
    for (const struct pinfold_option *f = o->options; r == 0 && f && f->name; f++) {
        if (same(f->name, "settings"))
            r = add_settings_file(l, f->value, format, "--settings", e);
    }
    return r;
}

static int read_layers(struct layers *l, const struct pinfold_policy_options *o, const char *workspace, struct err *e)
{
    int r = 0;
    if (!o->no_layers) {
        r = add_place(l, LAYER_SYSTEM, SYSTEM_POLICY, FILE_SYSTEM, e);
        if (r == 0)
            r = add_users(l, e);
        if (r == 0)
            r = add_project(l, workspace, e);
    }
    for (const char *const *f = o->files; r == 0 && f && *f; f++)
        r = add_file(l, *f, POLICY_YAML, NULL, e);
    for (const struct pinfold_option *f = o->options; r == 0 && f && f->name; f++) {
        if (same(f->name, "policy"))
            r = add_file(l, f->value, POLICY_YAML, "--policy", e);
    }
    return r == 0 ? add_settings(l, o, e) : r;
}

static const char *variable_of(void *ctx, const char *name)
{
    struct layers *l = ctx;
    for (size_t i = 0; i < l->n_variables; i++) {
        if (same(l->variables[i].name, name))
            return l->variables[i].value;
    }
    const char *value = l->closed ? NULL : getenv(name);
    if (!l->closed && same(name, VARIABLE_OTHER_HOME)) {
        value = world_other_home(l->mem);
        value = value ? value : ""; /* kept as well: it is asked for several times */
    }
    struct layer_variable *v = value ? arena_push(l->mem, &l->variables, &l->n_variables, sizeof *v) : NULL;
    if (v)
        *v = (struct layer_variable){.name = arena_text(l->mem, name), .value = arena_text(l->mem, value)};
    return value;
}

static enum policy_layer layer_of(const struct layers *l, const char *file)
{
    for (size_t i = 0; i < l->n_texts; i++) {
        if (same(l->texts[i].file, file))
            return l->texts[i].layer;
    }
    for (size_t i = 0; i < l->n_fetched; i++) {
        if (same(l->fetched[i].file, file))
            return l->fetched[i].layer;
    }
    return LAYER_PROJECT; /* the most suspicious one */
}

/* The text behind `extends: name`. What a trusted project extends must be trusted itself: trust is in contents. */
static int fetch(void *ctx, const char *name, const char *from, const char **ret_file, struct str *ret_text,
                 struct err *e)
{
    struct layers *l = ctx;
    enum policy_layer layer = layer_of(l, from);
    struct layer_fetched got = {.name = name, .layer = layer};

    for (size_t i = 0; i < l->n_fetched; i++) {
        if (same(l->fetched[i].name, name) && l->fetched[i].layer == layer) {
            *ret_file = l->fetched[i].file;
            *ret_text = l->fetched[i].text;
            return 0;
        }
    }
    if (name[0] != '/') {
        if (profile_find(name, &got.text) < 0)
            return -ENOENT;
        got.file = arena_printf(l->mem, "profile %s", name);
    } else if (l->closed) {
        return -ENOENT;
    } else {
        enum file_trust trust = layer == LAYER_SYSTEM ? FILE_SYSTEM : layer == LAYER_USER ? FILE_OWN : FILE_ANYBODYS;
        int r = layer != LAYER_PROJECT
                    ? read_named(l->mem, l->world.state, "extends", name, MAX_POLICY_TEXT, trust, &got.text, e)
                    : world_judge(l->world.state, "extends", name, NULL, NULL, e);
        if (r == 0 && layer == LAYER_PROJECT)
            r = read_whole(l->mem, name, MAX_POLICY_TEXT, trust, true, false, &got.text, e);
        if (r < 0)
            return r;
        char real[PATH_MAX];
        if (layer == LAYER_PROJECT && l->project_trusted &&
            (!realpath(name, real) || !trust_given(l->mem, l->world.state, real, got.text)))
            return err_say(e, ERR_REFUSED,
                           "'%s' extends '%s', which is not trusted in its present form; run: pinfold trust '%s'", from,
                           name, name);
        got.file = arena_text(l->mem, name);
    }
    got.name = arena_text(l->mem, name);
    struct layer_fetched *slot = arena_push(l->mem, &l->fetched, &l->n_fetched, sizeof *slot);
    if (!slot || arena_failed(l->mem))
        return no_memory(e);
    *slot = got;
    *ret_file = got.file;
    *ret_text = got.text;
    return 0;
}

static int add_all(struct layers *l, struct policy_builder *b, struct err *e)
{
    for (size_t i = 0; i < l->n_texts; i++) {
        const struct loaded_text *t = &l->texts[i];
        int r = t->settings ? policy_add_settings(b, t->format, t->file, t->text, e)
                            : policy_add_text(b, t->layer, t->format, t->file, t->text, t->trusted, e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < l->n_flags; i++) {
        const struct layer_flag *f = &l->flags[i];
        char said[128];
        snprintf(said, sizeof said, "%s%s", f->wish ? "request " : "--", f->name);
        int r =
            f->wish ? policy_add_wish(b, f->name, f->value, said, e) : policy_add_flag(b, f->name, f->value, said, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static enum policy_untrusted untrusted(void *ctx, const char *file)
{
    const struct layers *l = ctx;
    return nested_in_box()                                 ? UNTRUSTED_IN_BOX
           : trust_was_given(l->mem, l->world.state, file) ? UNTRUSTED_CHANGED
                                                           : UNTRUSTED;
}

static int env_files(void *ctx, const char *workspace, struct arena *mem, const char *names[MAX_ENV_FILES],
                     struct err *e)
{
    const struct layers *l = ctx;
    int n = env_files_in(workspace, mem, names, e);
    for (size_t i = 0; n >= 0 && i < l->n_variables; i++) {
        const char *more[MAX_ENV_FILES], *project = l->variables[i].value;
        if (!same(l->variables[i].name, PROJECT_FOUND) || !path_below(workspace, project))
            continue;
        const int above = env_files_in(project, mem, more, e);
        if (above < 0)
            return above;
        if (n + above > MAX_ENV_FILES)
            return err_say(e, ERR_POLICY,
                           "'%s' and the directories below it have more than %d .env files, which are hidden in a box: "
                           "move some of them to another directory, or show all with --env-files",
                           project, MAX_ENV_FILES);
        for (int k = 0; k < above; k++) {
            names[n] = arena_printf(mem, "%s/%s", project, more[k]);
            if (!names[n++])
                return no_memory(e);
        }
    }
    return n;
}

/* What the kernel and the box itself make: a rule that would let the host's through is never what was meant. */
static bool is_kernels(const char *path)
{
    return same(path, "/dev") || path_at_or_below(path, "/proc") || path_at_or_below(path, "/sys");
}

static int refuse_kernels(const struct policy *p, struct err *e)
{
    char said[512];

    if (is_kernels(p->workspace) || path_at_or_below(p->workspace, "/dev"))
        return err_say(
            e, ERR_POLICY,
            "workspace '%s' (%s): every box has its own /proc, /sys and /dev (with /dev/shm), so nothing in them "
            "can be the workspace; change to another directory, or use --workspace DIR",
            p->workspace, policy_origin(p, p->workspace_origin, said, sizeof said));
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        if ((r->access == PATH_RW || r->access == PATH_CACHE) && !r->any_depth && is_kernels(r->path))
            return err_say(e, ERR_POLICY,
                           "'%s' (%s): every box has its own /proc, /sys and /dev, which cannot be changed", r->path,
                           policy_origin(p, r->origin, said, sizeof said));
    }
    for (size_t i = 0; i < p->n_mounts; i++) {
        const struct mount_rule *m = &p->mounts[i];
        if (is_kernels(m->from) || is_kernels(m->to))
            return err_say(e, ERR_POLICY,
                           "mount '%s' on '%s' (%s): the host's /proc, /sys and /dev cannot be mounted in a box",
                           m->from, m->to, policy_origin(p, m->origin, said, sizeof said));
    }
    return 0;
}

int layers_build(struct layers *l, struct policy **ret, struct err *e)
{
    return layers_build_with(l, NULL, 0, NULL, ret, e);
}

int layers_build_with(struct layers *l, const struct layer_flag *more, size_t n, const char *said, struct policy **ret,
                      struct err *e)
{
    const char *const own[] = {l->world.program, NULL};
    const char *ssh[MAX_SSH_FILES + 1];
    ssh_files_find(ssh);
    struct policy_world world = {.home = l->world.home,
                                 .untrusted = untrusted,
                                 .cwd = l->world.cwd,
                                 .user_name = l->world.user_name,
                                 .variable = variable_of,
                                 .fetch = fetch,
                                 .env_files = env_files,
                                 .ctx = l,
                                 .ssh_files = ssh,
                                 .own_read_only = own};
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;

    if (!b)
        return no_memory(e);
    int r = add_all(l, b, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = policy_add_flag(b, more[i].name, more[i].value, said, e);
    if (r == 0)
        r = policy_build(b, &p, e);
    if (r == 0)
        r = refuse_kernels(p, e);
    b = policy_builder_free(b);
    if (r < 0) {
        p = policy_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

static int load_text(struct layers *l, const struct pinfold_policy_options *o, struct err *e)
{
    struct str text = {o->text, strlen(o->text)};
    if (text.n > MAX_POLICY_TEXT)
        return err_say(e, ERR_POLICY, "the policy text has more than %u bytes", MAX_POLICY_TEXT);
    const char *copy = arena_str(l->mem, text);
    return copy ? add_text_layer(l, LAYER_FLAGS, POLICY_YAML, "policy text", (struct str){copy, text.n}, true, e)
                : no_memory(e);
}

/* A shell says in PWD by which way its directory was reached; the kernel says where that is. */
static int judge_here(const struct layers *l, struct err *e)
{
    const char *way = getenv("PWD");
    struct stat here, there;
    if (!way || way[0] != '/' || same(way, l->world.cwd) || stat(way, &there) < 0 || stat(".", &here) < 0 ||
        here.st_dev != there.st_dev || here.st_ino != there.st_ino)
        return 0;
    return world_judge(l->world.state, "the current directory", way, NULL, NULL, e);
}

/* Files that an engine is to use. */
static int judge_policy_files(const struct layers *l, const struct policy *p, struct err *e)
{
    const struct {
        const char *what, *path;
    } files[] = {{"--vm-kernel", p->vm_kernel}, {"--vm-modules", p->vm_modules}, {"--seatbelt-file", p->seatbelt_file}};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof files / sizeof *files; i++) {
        if (files[i].path && world_judge(l->world.state, files[i].what, files[i].path, NULL, NULL, e) == -EPERM)
            r = -EPERM;
    }
    return r;
}

static bool is_said_whole(const struct pinfold_policy_options *o)
{
    bool whole = false;
    for (const struct pinfold_option *f = o->options; f && f->name; f++)
        whole |= same(f->name, "workspace") && f->value && (f->value[0] == '/' || f->value[0] == '~');
    return whole;
}

static bool keep_asked(struct layers *l, const char *name, const char *value)
{
    const char *equals = value && same(name, "env") ? strchr(value, '=') : NULL;
    struct layer_flag *flag = arena_push(l->mem, &l->asked, &l->n_asked, sizeof *flag);
    if (!flag)
        return false;
    flag->name = arena_text(l->mem, name);
    flag->value = equals  ? arena_str(l->mem, (struct str){value, (size_t)(equals - value)})
                  : value ? arena_text(l->mem, value)
                          : NULL;
    flag->wish = equals != NULL;
    return !arena_failed(l->mem);
}

/* What a session that is started again is to ask for; a text or a wish cannot be written on a command line. */
static int keep_all_asked(struct layers *l, const struct pinfold_policy_options *o, struct err *e)
{
    bool kept = true;
    if (o->text || o->settings_text || (o->wishes && o->wishes->name))
        return 0;
    if (o->profile)
        kept = keep_asked(l, "profile", o->profile[0] ? o->profile : "none");
    if (o->no_layers)
        kept = kept && keep_asked(l, "no-layers", NULL);
    for (const char *const *f = o->files; kept && f && *f; f++)
        kept = keep_asked(l, "policy", *f);
    if (o->settings_format)
        kept = kept && keep_asked(l, "from", o->settings_format);
    if (o->settings)
        kept = kept && keep_asked(l, "settings", o->settings);
    for (const struct pinfold_option *f = o->options; kept && f && f->name; f++)
        kept = keep_asked(l, f->name, f->value);
    l->asked_whole = kept;
    return kept ? 0 : no_memory(e);
}

/* What would be left unread must not be said. */
static int check_whole(const struct pinfold_policy_options *o, struct err *e)
{
    const char *unread = NULL;
    for (const struct pinfold_option *f = o->options; o->text && f && f->name; f++) {
        if (same(f->name, "policy") || same(f->name, "settings"))
            unread = f->name;
    }
    return unread ? err_say(e, ERR_POLICY,
                            "--policy-text is the whole policy, so --%s would not be read; leave out one "
                            "of them",
                            unread)
                  : 0;
}

int layers_load(const struct pinfold_policy_options *o, struct arena *mem, struct layers *ret,
                struct policy **ret_policy, struct err *e)
{
    struct layers l = {.mem = mem};
    struct named n = {.workspace = NULL};
    struct policy *p = NULL;

    int r = check_whole(o, e);
    if (r == 0)
        r = world_look(mem, o->cwd, &l.world, e);
    if (r == 0)
        r = sort_options(&l, o, &n, e);
    if (r == 0 && o->text)
        r = load_text(&l, o, e);
    else if (r == 0)
        r = read_layers(&l, o, n.workspace ? n.workspace : l.world.cwd, e);
    if (r == 0)
        r = layers_build(&l, &p, e);
    /* Another layer moved the workspace: the project that counts is the one there. */
    if (r == 0 && !n.workspace && !o->text && !o->no_layers && !same(p->workspace, l.world.cwd)) {
        const char *workspace = arena_text(mem, p->workspace);
        p = policy_free(p);
        l.texts = NULL;
        l.n_texts = 0;
        r = workspace ? read_layers(&l, o, workspace, e) : no_memory(e);
        if (r == 0)
            r = layers_build(&l, &p, e);
    }
    if (r == 0 && !o->cwd && !is_said_whole(o) && path_at_or_below(p->workspace, l.world.cwd))
        r = judge_here(&l, e);
    if (r == 0)
        r = judge_policy_files(&l, p, e);
    if (r == 0)
        r = keep_all_asked(&l, o, e);
    if (r < 0) {
        policy_free(p);
        return r;
    }
    *ret = l;
    *ret_policy = p;
    return 0;
}

/*
 * Packed: fields of run/message.h, one after the other.
 */
enum { PACK_WORLD = 1, PACK_TEXT, PACK_FLAG, PACK_FETCHED, PACK_VARIABLE, PACK_END };

void layers_pack(const struct layers *l, struct buf *out)
{
    message_number(out, PACK_WORLD, l->project_trusted);
    message_text(out, PACK_WORLD, l->world.home);
    message_text(out, PACK_WORLD, l->world.user_name);
    message_text(out, PACK_WORLD, l->world.cwd);
    message_text(out, PACK_WORLD, l->world.config);
    message_text(out, PACK_WORLD, l->world.state);
    message_text(out, PACK_WORLD, l->world.program);
    for (size_t i = 0; i < l->n_texts; i++) {
        const struct loaded_text *t = &l->texts[i];
        message_number(out, PACK_TEXT, t->layer);
        message_number(out, PACK_TEXT, t->format);
        message_number(out, PACK_TEXT, t->settings ? 2 : t->trusted);
        message_text(out, PACK_TEXT, t->file);
        message_bytes(out, PACK_TEXT, t->text);
    }
    for (size_t i = 0; i < l->n_flags; i++) {
        message_number(out, PACK_FLAG, l->flags[i].wish);
        message_text(out, PACK_FLAG, l->flags[i].name);
        message_text(out, PACK_FLAG, l->flags[i].value);
    }
    for (size_t i = 0; i < l->n_fetched; i++) {
        message_text(out, PACK_FETCHED, l->fetched[i].name);
        message_text(out, PACK_FETCHED, l->fetched[i].file);
        message_number(out, PACK_FETCHED, l->fetched[i].layer);
        message_bytes(out, PACK_FETCHED, l->fetched[i].text);
    }
    for (size_t i = 0; i < l->n_variables; i++) {
        message_text(out, PACK_VARIABLE, l->variables[i].name);
        message_text(out, PACK_VARIABLE, l->variables[i].value);
    }
    message_number(out, PACK_END, 0);
}

static int unpack_one(struct layers *l, struct str *rest)
{
    switch (message_peek(*rest)) {
    case PACK_TEXT: {
        struct loaded_text *t = arena_push(l->mem, &l->texts, &l->n_texts, sizeof *t);
        uint64_t layer, format, trusted;
        if (!t || message_take_number(rest, PACK_TEXT, &layer) < 0 ||
            message_take_number(rest, PACK_TEXT, &format) < 0 || message_take_number(rest, PACK_TEXT, &trusted) < 0 ||
            message_take_text(rest, PACK_TEXT, l->mem, &t->file) < 0 ||
            message_take_bytes(rest, PACK_TEXT, l->mem, &t->text) < 0 || layer >= LAYER_COUNT ||
            format > POLICY_BWRAP || !t->file)
            return -EBADMSG;
        t->layer = (enum policy_layer)layer;
        t->format = (enum policy_format)format;
        t->trusted = trusted != 0;
        t->settings = trusted == 2;
        return 0;
    }
    case PACK_FLAG: {
        struct layer_flag *f = arena_push(l->mem, &l->flags, &l->n_flags, sizeof *f);
        uint64_t wish;
        if (!f || message_take_number(rest, PACK_FLAG, &wish) < 0 ||
            message_take_text(rest, PACK_FLAG, l->mem, &f->name) < 0 ||
            message_take_text(rest, PACK_FLAG, l->mem, &f->value) < 0 || !f->name)
            return -EBADMSG;
        f->wish = wish != 0;
        return 0;
    }
    case PACK_FETCHED: {
        struct layer_fetched *f = arena_push(l->mem, &l->fetched, &l->n_fetched, sizeof *f);
        uint64_t layer;
        if (!f || message_take_text(rest, PACK_FETCHED, l->mem, &f->name) < 0 ||
            message_take_text(rest, PACK_FETCHED, l->mem, &f->file) < 0 ||
            message_take_number(rest, PACK_FETCHED, &layer) < 0 ||
            message_take_bytes(rest, PACK_FETCHED, l->mem, &f->text) < 0 || layer >= LAYER_COUNT || !f->name ||
            !f->file)
            return -EBADMSG;
        f->layer = (enum policy_layer)layer;
        return 0;
    }
    case PACK_VARIABLE: {
        struct layer_variable *v = arena_push(l->mem, &l->variables, &l->n_variables, sizeof *v);
        if (!v || message_take_text(rest, PACK_VARIABLE, l->mem, &v->name) < 0 ||
            message_take_text(rest, PACK_VARIABLE, l->mem, &v->value) < 0 || !v->name)
            return -EBADMSG;
        return 0;
    }
    default:
        return -EBADMSG;
    }
}

int layers_unpack(struct str rest, struct arena *mem, struct layers *ret)
{
    struct layers l = {.mem = mem, .closed = true};
    uint64_t trusted, end;

    if (message_take_number(&rest, PACK_WORLD, &trusted) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.home) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.user_name) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.cwd) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.config) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.state) < 0 ||
        message_take_text(&rest, PACK_WORLD, mem, &l.world.program) < 0)
        return -EBADMSG;
    if (!l.world.home || !l.world.cwd || !l.world.config || !l.world.state)
        return -EBADMSG;
    l.project_trusted = trusted != 0;
    while (message_peek(rest) != PACK_END) {
        if (unpack_one(&l, &rest) < 0)
            return -EBADMSG;
    }
    if (message_take_number(&rest, PACK_END, &end) < 0 || rest.n != 0)
        return -EBADMSG;
    *ret = l;
    return 0;
}
