/*
 * Translates bubblewrap's command line (that of 0.12, by its manual page) into statements: a list of words. bubblewrap
 * begins with an empty root and mounts in the given order, so a later mount hides what is at and below it; here all
 * mounts are collected first, and only what is visible at the end becomes a statement. Everything that cannot be
 * honoured goes to list->ignored.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/path.h"
#include "policy/said.h"

enum { BWRAP_SHOWN = 200, MOST_VALUES = 2 };

struct bwrap_shown { /* one thing that is visible inside */
    enum { BIND, PRIVATE, LINK } kind;
    const char *from, *to;
    bool read_only, optional, devices, gone;
    const struct node *at;
};
struct bwrap_variable {
    struct str name, value;
    bool set;
    const struct node *at;
};

struct bwrap {
    const struct source *src;
    struct arena *mem;
    const struct node *at;
    struct bwrap_shown *shown;
    size_t n_shown;
    struct bwrap_variable *variables;
    size_t n_variables;
    bool clear, own_net;
    const char *uid, *gid, *chdir;
    const struct node *uid_at, *overlay;
};

static int bwrap_no_memory(const struct bwrap *b)
{
    return err_sys(b->src->e, ERR_SYSTEM, ENOMEM, "%s", b->src->file);
}

static int bwrap_wrong(const struct bwrap *b, const struct node *at, const char *sentence, struct str word)
{
    return place_say(b->src->e, ERR_POLICY, b->src->file, at->line, at->column, "'%.*s': %s",
                     (int)(word.n < BWRAP_SHOWN ? word.n : BWRAP_SHOWN), word.p, sentence);
}

static int bwrap_say(struct bwrap *b, enum key_id id, const struct node *at, struct str a, struct str c, unsigned bits)
{
    if (!a.p || !c.p)
        return bwrap_no_memory(b);
    return said_add(
        b->src,
        (struct said){
            .key = (uint16_t)id, .bits = (uint16_t)bits, .line = at->line, .column = at->column, .a = a, .b = c});
}

static int bwrap_say_text(struct bwrap *b, enum key_id id, const struct node *at, const char *text)
{
    return bwrap_say(b, id, at, text ? str_of(text) : (struct str){NULL, 0}, STR(""), 0);
}

/* The option and its values, as written. */
static int bwrap_ignore(struct bwrap *b, const struct node *at, const char *key, const char *why)
{
    struct said_list *l = b->src->list;
    struct foreign_key *slot = key ? arena_push(l->mem, &l->ignored, &l->n_ignored, sizeof *slot) : NULL;
    if (!slot)
        return bwrap_no_memory(b);
    *slot = (struct foreign_key){.key = key, .why = why, .line = at->line, .column = at->column};
    return 0;
}

/* A path in our syntax: bubblewrap has no patterns, variables or home. */
static struct str written(const struct bwrap *b, const char *path)
{
    size_t n = 0;
    char *text = arena_zero(b->mem, 2 * strlen(path) + 1);
    for (const char *p = path; text && *p; p++) {
        if (strchr("\\*?[$~", *p))
            text[n++] = '\\';
        text[n++] = *p;
    }
    return (struct str){text, n};
}

/* ---- what is visible ---- */

/* A later mount hides what was there. */
static int show_place(struct bwrap *b, struct bwrap_shown new)
{
    if (!new.from || !new.to)
        return bwrap_no_memory(b);
    for (size_t i = 0; i < b->n_shown; i++)
        b->shown[i].gone |= path_at_or_below(b->shown[i].to, new.to);
    struct bwrap_shown *slot = arena_push(b->mem, &b->shown, &b->n_shown, sizeof *slot);
    if (!slot)
        return bwrap_no_memory(b);
    *slot = new;
    return 0;
}

enum bind_bits { READ_ONLY = 1, TRY = 2, DEVICES = 4 };

static int bind(struct bwrap *b, const struct node *at, const struct node *v, int bits)
{
    return show_place(b, (struct bwrap_shown){.kind = BIND,
                                              .from = path_clean_at(b->mem, b->src->world->cwd, v[0].text),
                                              .to = path_clean_at(b->mem, "/", v[1].text),
                                              .read_only = bits & READ_ONLY,
                                              .optional = bits & TRY,
                                              .devices = bits & DEVICES,
                                              .at = at});
}

static int tmpfs(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)arg;
    return show_place(
        b, (struct bwrap_shown){.kind = PRIVATE, .from = "", .to = path_clean_at(b->mem, "/", v[0].text), .at = at});
}

/* The sources of overlays are not put over each other: of the last one, which is the highest, everything is shown. */
static int overlay_source(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)at, (void)arg;
    b->overlay = v;
    return 0;
}

static int overlay(struct bwrap *b, const struct node *at, const struct node *v, int place)
{
    const struct node *source = b->overlay;
    b->overlay = NULL;
    int r = source ? bind(b, at, (const struct node[]){*source, v[place]}, READ_ONLY) : tmpfs(b, at, v + place, 0);
    return r < 0
               ? r
               : bwrap_ignore(b, at, arena_printf(b->mem, "%.*s %.*s", STR_SAID(at->text), STR_SAID(v[place].text)),
                              "overlays are not made: the last --overlay-src is shown there, read-only; see --cow for "
                              "copies of the workspace");
}

static int symlink(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)arg;
    return show_place(b, (struct bwrap_shown){.kind = LINK,
                                              .from = arena_str(b->mem, v[0].text),
                                              .to = path_clean_at(b->mem, "/", v[1].text),
                                              .at = at});
}

static int remount(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    const char *to = path_clean_at(b->mem, "/", v[0].text);
    (void)arg;
    for (size_t i = b->n_shown; to && i > 0; i--) {
        struct bwrap_shown *s = &b->shown[i - 1];
        if (s->gone || !same(s->to, to))
            continue;
        s->read_only = true;
        return s->kind != PRIVATE ? 0
                                  : bwrap_ignore(b, at, arena_printf(b->mem, "--remount-ro %s", to),
                                                 "what is private to the box cannot be changed");
    }
    return !to             ? bwrap_no_memory(b)
           : same(to, "/") ? 0
                           : bwrap_wrong(b, at, "nothing was mounted there before", v[0].text);
}

/* Every box has its own at the usual path. */
static int usual(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    static const char *const places[] = {"/proc", "/dev", "/dev/mqueue"};
    static const char *const options[] = {"--proc", "--dev", "--mqueue"};
    const char *to = path_clean_at(b->mem, "/", v[0].text);
    if (!to)
        return bwrap_no_memory(b);
    if (!same(to, places[arg]))
        return bwrap_ignore(b, at, arena_printf(b->mem, "%s %s", options[arg], to),
                            "every box has its own, at the usual path only");
    return arg < 2 ? 0 : bwrap_say(b, KEY_RW, at, str_of(to), STR(""), SAID_OPTIONAL);
}

/* ---- the rest ---- */

static int network(struct bwrap *b, const struct node *at, const struct node *v, int own)
{
    (void)at;
    (void)v;
    b->own_net = own;
    return 0;
}

static int ids(struct bwrap *b, const struct node *at, const struct node *v, int group)
{
    for (size_t i = 0; i < v[0].text.n; i++)
        if (v[0].text.p[i] < '0' || v[0].text.p[i] > '9')
            return bwrap_wrong(b, at, "a number is expected", v[0].text);
    *(group ? &b->gid : &b->uid) = arena_str(b->mem, v[0].text);
    b->uid_at = at;
    return 0;
}

static int hostname(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)arg;
    return bwrap_say(b, KEY_HOSTNAME, at, v[0].text, STR(""), 0);
}

static int change_directory(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)arg;
    b->chdir = path_clean_at(b->mem, "/", v[0].text);
    return bwrap_ignore(
        b, at, b->chdir ? arena_printf(b->mem, "--chdir %s", b->chdir) : NULL,
        "a command starts in the caller's directory, or in the workspace if the box has no such directory");
}

static int bwrap_variable(struct bwrap *b, const struct node *at, const struct node *v, int set)
{
    for (size_t i = 0; i < b->n_variables; i++) {
        if (str_eq(b->variables[i].name, v[0].text)) {
            b->variables[i] = (struct bwrap_variable){v[0].text, set ? v[1].text : STR(""), set, at};
            return 0;
        }
    }
    struct bwrap_variable *slot = arena_push(b->mem, &b->variables, &b->n_variables, sizeof *slot);
    if (!slot)
        return bwrap_no_memory(b);
    *slot = (struct bwrap_variable){v[0].text, set ? v[1].text : STR(""), set, at};
    return 0;
}

static int clear_environment(struct bwrap *b, const struct node *at, const struct node *v, int arg)
{
    (void)at;
    (void)v;
    (void)arg;
    b->clear = true;
    b->n_variables = 0;
    return 0;
}

static const char ELSEWHERE[] = "existing namespaces are not entered: the box creates its own";
static const char ONE_START[] = "a policy cannot contain a file descriptor";
static const char STATUS[] = "use --result FILE, --result fd:N or --json for the result of a run";
static const char FROM_FD[] = "the content of a descriptor is not known here: write it to a file and bind that";
static const char MODES[] = "the modes of a box's own directories cannot be chosen";
static const char FILTERS[] = "every box has pinfold's system call filter and no other";
static const char LABELS[] = "SELinux labels are not set";

static const struct option {
    const char *name;
    unsigned values;
    int (*read)(struct bwrap *b, const struct node *at, const struct node *values, int arg);
    int arg;
    const char *why; /* without `read`: why it is not honoured; NULL: every box does that */
} options[] = {
    {"--help", 0, NULL, 0, "it does not concern the box"},
    {"--version", 0, NULL, 0, "it does not concern the box"},
    {"--args", 1, NULL, 0, "write the options from the descriptor here"},
    {"--argv0", 1, NULL, 0, "a command is started by its own name"},
    {"--level-prefix", 0, NULL, 0, "it does not concern the box"},
    {"--not-a-security-boundary", 0, NULL, 0, "every box is one"},
    {"--unshare-user", 0, NULL, 0, NULL},
    {"--unshare-user-try", 0, NULL, 0, NULL},
    {"--unshare-ipc", 0, NULL, 0, NULL},
    {"--unshare-pid", 0, NULL, 0, NULL},
    {"--unshare-net", 0, network, true, NULL},
    {"--unshare-uts", 0, NULL, 0, NULL},
    {"--unshare-cgroup", 0, NULL, 0, NULL},
    {"--unshare-cgroup-try", 0, NULL, 0, NULL},
    {"--unshare-all", 0, network, true, NULL},
    {"--share-net", 0, network, false, NULL},
    {"--userns", 1, NULL, 0, ELSEWHERE},
    {"--userns2", 1, NULL, 0, ELSEWHERE},
    {"--pidns", 1, NULL, 0, ELSEWHERE},
    {"--disable-userns", 0, NULL, 0, NULL},
    {"--assert-userns-disabled", 0, NULL, 0, NULL},
    {"--uid", 1, ids, 0, NULL},
    {"--gid", 1, ids, 1, NULL},
    {"--hostname", 1, hostname, 0, NULL},
    {"--chdir", 1, change_directory, 0, NULL},
    {"--setenv", 2, bwrap_variable, true, NULL},
    {"--unsetenv", 1, bwrap_variable, false, NULL},
    {"--clearenv", 0, clear_environment, 0, NULL},
    {"--lock-file", 1, NULL, 0, "a policy cannot take locks; use flock(1)"},
    {"--sync-fd", 1, NULL, 0, ONE_START},
    {"--perms", 1, NULL, 0, MODES},
    {"--size", 1, NULL, 0, "private storage is limited as a whole: limits.disk"},
    {"--bind", 2, bind, 0, NULL},
    {"--bind-try", 2, bind, TRY, NULL},
    {"--dev-bind", 2, bind, DEVICES, NULL},
    {"--dev-bind-try", 2, bind, DEVICES | TRY, NULL},
    {"--ro-bind", 2, bind, READ_ONLY, NULL},
    {"--ro-bind-try", 2, bind, READ_ONLY | TRY, NULL},
    {"--bind-fd", 2, NULL, 0, ONE_START},
    {"--ro-bind-fd", 2, NULL, 0, ONE_START},
    {"--overlay-src", 1, overlay_source, 0, NULL},
    {"--overlay", 3, overlay, 2, NULL},
    {"--tmp-overlay", 1, overlay, 0, NULL},
    {"--ro-overlay", 1, overlay, 0, NULL},
    {"--remount-ro", 1, remount, 0, NULL},
    {"--proc", 1, usual, 0, NULL},
    {"--dev", 1, usual, 1, NULL},
    {"--mqueue", 1, usual, 2, NULL},
    {"--tmpfs", 1, tmpfs, 0, NULL},
    {"--dir", 1, NULL, 0, "empty directories are not created; mount points are created as needed"},
    {"--file", 2, NULL, 0, FROM_FD},
    {"--bind-data", 2, NULL, 0, FROM_FD},
    {"--ro-bind-data", 2, NULL, 0, FROM_FD},
    {"--symlink", 2, symlink, 0, NULL},
    {"--chmod", 2, NULL, 0, MODES},
    {"--seccomp", 1, NULL, 0, FILTERS},
    {"--add-seccomp-fd", 1, NULL, 0, FILTERS},
    {"--exec-label", 1, NULL, 0, LABELS},
    {"--file-label", 1, NULL, 0, LABELS},
    {"--block-fd", 1, NULL, 0, ONE_START},
    {"--userns-block-fd", 1, NULL, 0, ONE_START},
    {"--info-fd", 1, NULL, 0, STATUS},
    {"--json-status-fd", 1, NULL, 0, STATUS},
    {"--new-session", 0, NULL, 0, NULL},
    {"--die-with-parent", 0, NULL, 0, "a box always ends with pinfold, not with pinfold's parent"},
    {"--as-pid-1", 0, NULL, 0, "pid 1 of a box is pinfold's own"},
    {"--cap-add", 1, NULL, 0, "boxes have no capabilities"},
    {"--cap-drop", 1, NULL, 0, NULL},
};

/* ---- statements ---- */

static const struct bwrap_shown *shown_root(const struct bwrap *b)
{
    const struct bwrap_shown *root = NULL;
    for (size_t i = 0; i < b->n_shown; i++)
        if (!b->shown[i].gone && same(b->shown[i].to, "/"))
            root = &b->shown[i];
    return root;
}

static int say_private(struct bwrap *b, const struct bwrap_shown *s)
{
    static const char *const own[] = {"/", "/tmp", "/var/tmp", "/run", "/dev/shm", NULL};
    if (same_as_one(s->to, own))
        return 0;
    int r = bwrap_say(b, KEY_HIDE, s->at, written(b, s->to), STR(""), 0);
    return r < 0 || s->read_only
               ? r
               : bwrap_ignore(b, s->at, arena_printf(b->mem, "--tmpfs %s", s->to),
                              "it is empty, but read-only: only /tmp, /var/tmp and /run are writable");
}

/* On a merged /usr these links exist, which sandboxes usually create. */
static int say_link(struct bwrap *b, const struct bwrap_shown *s)
{
    static const char *const merged[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};
    const char *to = s->from[0] == '/' ? s->from + 1 : s->from;
    if (same_as_one(s->to, merged) && strncmp(to, "usr/", 4) == 0 && same(to + 4, s->to + 1))
        return bwrap_say(b, KEY_RO, s->at, str_of(s->to), STR(""), SAID_OPTIONAL);
    return bwrap_ignore(b, s->at, arena_printf(b->mem, "--symlink %s %s", s->from, s->to),
                        "links are not created: bind the target, or use the target's path");
}

static int say_kernel_tree(struct bwrap *b, const struct bwrap_shown *s)
{
    bool sys = path_at_or_below(s->from, "/sys");
    const char *key = arena_printf(b->mem, "bind %s on %s", s->from, s->to);
    if (!sys || !same(s->from, s->to))
        return bwrap_ignore(b, s->at, key,
                            "the host's /proc, /sys and /dev are not available: name single devices below /dev");
    int r = bwrap_say(b, KEY_RO, s->at, written(b, s->to), STR(""), s->optional ? SAID_OPTIONAL : 0);
    return r < 0 || s->read_only ? r : bwrap_ignore(b, s->at, key, "it is read-only");
}

static int say_bind(struct bwrap *b, const struct bwrap_shown *s)
{
    bool alike = same(s->from, s->to);
    unsigned optional = s->optional ? SAID_OPTIONAL : 0;
    int r = 0;
    if (same(s->to, "/"))
        return !alike         ? bwrap_ignore(b, s->at, arena_printf(b->mem, "bind %s on /", s->from),
                                             "the root cannot be replaced: bind its contents")
               : s->read_only ? 0
                              : bwrap_say(b, KEY_RW, s->at, STR("/"), STR(""), 0);
    if (path_at_or_below(s->from, "/proc") || path_at_or_below(s->from, "/sys") || same(s->from, "/dev") ||
        same(s->to, "/dev") || path_at_or_below(s->to, "/proc"))
        return say_kernel_tree(b, s);
    if (s->devices && !path_at_or_below(s->to, "/dev"))
        r = bwrap_ignore(b, s->at, arena_printf(b->mem, "--dev-bind %s %s", s->from, s->to),
                         "its device files cannot be opened: name devices below /dev");
    if (r == 0 && alike)
        return bwrap_say(b, s->read_only ? KEY_RO : KEY_RW, s->at, written(b, s->from), STR(""), optional);
    if (r == 0 && s->optional)
        r = bwrap_ignore(b, s->at, arena_printf(b->mem, "bind-try %s %s", s->from, s->to),
                         "the source of a mount must exist");
    return r < 0 ? r
                 : bwrap_say(b, KEY_MOUNTS, s->at, written(b, s->from), written(b, s->to),
                             s->read_only ? SAID_READ_ONLY : 0);
}

static int say_shown(struct bwrap *b)
{
    const struct bwrap_shown *root = shown_root(b);
    int r = 0;
    if (!root || root->kind != BIND || !same(root->from, "/"))
        r = bwrap_say_text(b, KEY_HIDE, root ? root->at : b->at, "/*"); /* bubblewrap's root begins empty */
    for (size_t i = 0; r == 0 && i < b->n_shown; i++) {
        const struct bwrap_shown *s = &b->shown[i];
        if (!s->gone)
            r = s->kind == BIND ? say_bind(b, s) : s->kind == LINK ? say_link(b, s) : say_private(b, s);
    }
    return r;
}

/* What of the host's is visible at `path`; NULL: something of the box's own. */
static const struct bwrap_shown *seen_at(const struct bwrap *b, const char *path)
{
    const struct bwrap_shown *best = NULL;
    for (size_t i = 0; i < b->n_shown; i++) {
        const struct bwrap_shown *s = &b->shown[i];
        if (!s->gone && path_at_or_below(path, s->to) && (!best || strlen(s->to) >= strlen(best->to)))
            best = s;
    }
    return best && best->kind == BIND ? best : NULL;
}

static bool may_be_workspace(const struct bwrap *b, const char *path)
{
    static const char *const kernels[] = {"/", "/proc", "/sys", "/dev", NULL};
    const char *home = b->src->world->home;
    for (const char *const *k = kernels; *k; k++)
        if (same(path, *k) || (k != kernels && path_at_or_below(path, *k)))
            return false;
    return !home || !path_at_or_below(home, path);
}

/* Directories of the system cannot be a project. */
static bool is_system_tree(const char *path)
{
    static const char *const trees[] = {"/usr",  "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc",
                                        "/boot", "/opt", "/run",  "/var", "/snap",  "/nix",   "/gnu",    NULL};
    for (const char *const *t = trees; *t; t++) {
        if (path_at_or_below(path, *t))
            return true;
    }
    return false;
}

/* The directory of --chdir, as a path of this machine. */
static const char *chdir_here(const struct bwrap *b, const struct bwrap_shown **ret)
{
    const struct bwrap_shown *s = b->chdir ? seen_at(b, b->chdir) : NULL;
    const char *rest = s ? b->chdir + (same(s->to, "/") ? 0 : strlen(s->to)) : NULL;
    const char *here = !s ? NULL : same(s->from, "/") ? rest : arena_printf(b->mem, "%s%s", s->from, rest);
    *ret = s;
    return here && here[0] && may_be_workspace(b, here) ? here : NULL;
}

/* The first one bound in this way. */
static const struct bwrap_shown *bound(const struct bwrap *b, bool read_only, bool own_place, bool system)
{
    for (size_t i = 0; i < b->n_shown; i++) {
        const struct bwrap_shown *s = &b->shown[i];
        if (!s->gone && s->kind == BIND && !s->optional && s->read_only == read_only &&
            same(s->from, s->to) == own_place && is_system_tree(s->from) == system && may_be_workspace(b, s->from))
            return s;
    }
    return NULL;
}

/* bubblewrap has no workspace: use the directory of --chdir, else what may be written, else what may be read;
   directories of the system only if there are no others. */
static int say_workspace(struct bwrap *b)
{
    const struct bwrap_shown *root = shown_root(b), *at;
    const char *best = chdir_here(b, &at);
    static const struct {
        bool read_only, own_place, system;
    } order[] = {{false, true, false}, {false, false, false}, {false, true, true},
                 {true, true, false},  {true, false, false},  {true, true, true}};
    bool by_chdir = best != NULL;
    for (size_t i = 0; !best && i < sizeof order / sizeof *order; i++) {
        at = bound(b, order[i].read_only, order[i].own_place, order[i].system);
        best = at ? at->from : NULL;
    }
    if (!best && root && root->kind == BIND && same(root->from, "/"))
        best = "/usr";
    if (!best)
        return bwrap_ignore(b, b->at, "a workspace", "no path is bound to itself: use --workspace DIR");
    int r = bwrap_say(b, KEY_WORKSPACE, at ? at->at : b->at, written(b, best), STR(""), 0);
    if (r == 0 && (!at || at->read_only))
        r = bwrap_say_text(b, KEY_READ_ONLY, b->at, "true");
    if (r == 0 && at && !same(at->from, at->to))
        r = bwrap_ignore(b, at->at, arena_printf(b->mem, "%s at %s alone", at->from, at->to),
                         by_chdir ? "--chdir makes it the workspace, which is also visible at its own path"
                                  : "as the first directory that can be a project it is the workspace, which is also "
                                    "visible at its own path");
    else if (r == 0 && !by_chdir && is_system_tree(best))
        r = bwrap_ignore(b, b->at, "a workspace", "none of the bound paths can be a project: use --workspace DIR");
    return r;
}

static int say_environment(struct bwrap *b)
{
    int r = b->clear ? 0 : bwrap_say_text(b, KEY_ENV_PASS, b->at, "*");
    for (size_t i = 0; r == 0 && i < b->n_variables; i++) {
        const struct bwrap_variable *v = &b->variables[i];
        r = v->set ? bwrap_say(b, KEY_ENV_SET, v->at, v->name, v->value, 0)
                   : bwrap_say(b, KEY_ENV_REMOVE, v->at, v->name, STR(""), 0);
    }
    return r;
}

static int say_user(struct bwrap *b)
{
    if (!b->uid && !b->gid)
        return 0;
    if (!b->uid || !b->gid)
        return bwrap_ignore(b, b->uid_at,
                            arena_printf(b->mem, b->uid ? "--uid %s" : "--gid %s", b->uid ? b->uid : b->gid),
                            "a user and a group must be chosen together");
    return bwrap_say_text(b, KEY_USER, b->uid_at,
                          same(b->uid, "0") && same(b->gid, "0") ? "root"
                                                                 : arena_printf(b->mem, "%s:%s", b->uid, b->gid));
}

static int say_command(struct bwrap *b, const struct node *words, size_t n)
{
    const char *text = "";
    for (size_t i = 0; text && i < n; i++)
        text = arena_printf(b->mem, "%s%s%.*s", text, i ? " " : "",
                            (int)(words[i].text.n < BWRAP_SHOWN ? words[i].text.n : BWRAP_SHOWN), words[i].text.p);
    return n ? bwrap_ignore(b, words, text,
                            "a policy does not contain the command; run it with: pinfold run --policy FILE -- COMMAND")
             : 0;
}

/* Reads one option with its values and advances *i past them. */
static int read_option(struct bwrap *b, const struct node *words, size_t n, size_t *i)
{
    const struct node *at = &words[(*i)++];
    const struct option *o = options, *end = options + sizeof options / sizeof *options;
    while (o < end && !str_is(at->text, o->name))
        o++;
    if (o == end)
        return bwrap_wrong(b, at, "unknown option (bwrap 0.12)", at->text);
    if (n - *i < o->values)
        return bwrap_wrong(b, at,
                           o->values == 1   ? "a value is missing"
                           : o->values == 2 ? "two values are expected"
                                            : "three values are expected",
                           at->text);
    const struct node *values = words + *i;
    *i += o->values;
    if (o->read)
        return o->read(b, at, values, o->arg);
    const char *key = o->name;
    for (size_t k = 0; o->why && key && k < o->values; k++)
        key = arena_printf(b->mem, "%s %.*s", key,
                           (int)(values[k].text.n < BWRAP_SHOWN ? values[k].text.n : BWRAP_SHOWN), values[k].text.p);
    return o->why ? bwrap_ignore(b, at, key, o->why) : 0;
}

int read_bwrap(const struct source *src, const struct node *root)
{
    struct bwrap b = {.src = src, .mem = src->list->mem, .at = root};
    size_t i = 0;
    int r = 0;
    if (root->kind != NODE_LIST)
        return place_say(src->e, ERR_POLICY, src->file, root->line, root->column,
                         "bwrap's options must be a list of strings, not %s", node_kind_name(root));
    for (size_t k = 0; k < root->n; k++)
        if (root->items[k].kind != NODE_SCALAR)
            return place_say(src->e, ERR_POLICY, src->file, root->items[k].line, root->items[k].column,
                             "an option of bwrap must be a string, not %s", node_kind_name(&root->items[k]));
    if (root->n && (str_is(root->items[0].text, "bwrap") || str_ends(root->items[0].text, STR("/bwrap"))))
        i++;
    while (r == 0 && i < root->n && root->items[i].text.n && root->items[i].text.p[0] == '-') {
        if (str_is(root->items[i].text, "--")) {
            i++;
            break;
        }
        r = read_option(&b, root->items, root->n, &i);
    }
    if (r == 0)
        r = say_workspace(&b);
    if (r == 0)
        r = say_shown(&b);
    if (r == 0)
        r = bwrap_say_text(&b, KEY_GUARD, root, "off");
    if (r == 0)
        r = bwrap_say_text(&b, KEY_NET, root, b.own_net ? "none" : "host");
    if (r == 0)
        r = say_environment(&b);
    if (r == 0)
        r = say_user(&b);
    return r < 0 ? r : say_command(&b, root->items + i, root->n - i);
}
