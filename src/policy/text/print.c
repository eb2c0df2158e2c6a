/*
 * Prints a policy in our language. It extends `none`, so that it is complete: reading it back gives an equal policy
 * whatever other layers say. Texts are quoted so that any byte survives, and untrusted text cannot end its line.
 * Converted settings omit a workspace that was not set explicitly, or contain only what they add to the default
 * profile.
 */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "policy/merge.h"
#include "policy/path.h"

enum how { ORIGINS = POLICY_ORIGINS, CONVERTED = POLICY_CONVERTED, ADDED = POLICY_ADDED, ALL_LIMITS = 8, IGNORED = 16 };

struct printer {
    const struct policy *p;
    struct buf *out;
    unsigned how;
};

/* The length of the valid UTF-8 sequence at `s` if YAML may contain it unescaped and nothing folds it; otherwise 0. */
static size_t plain_sequence(struct str s)
{
    const size_t n = utf8_plain(s);
    /* Private use, non-characters and what lies beyond the first plane are bytes, too. */
    return n == 4 || (n == 3 && (unsigned char)s.p[0] == 0xEF) ? 0 : n;
}

static void put_quoted(struct buf *out, struct str s)
{
    buf_char(out, '"');
    while (s.n) {
        size_t n = plain_sequence(s);
        if (n == 0) {
            buf_printf(out, "\\x%02X", (unsigned char)s.p[0]);
            n = 1;
        } else if (s.p[0] == '"' || s.p[0] == '\\') {
            buf_char(out, '\\');
            buf_char(out, s.p[0]);
        } else {
            buf_put(out, s.p, n);
        }
        s = str_skip(s, n);
    }
    buf_char(out, '"');
}

static void put_text(struct buf *out, struct str s)
{
    bool plain = s.n && s.p[0] != '-' && !str_is(s, "null") && !str_is(s, "...");
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                          c == '.' || c == '_' || c == '-');
    }
    if (plain)
        buf_str(out, s);
    else
        put_quoted(out, s);
}

static void end_line(const struct printer *w, uint32_t origin)
{
    char text[512];
    if (w->how & ORIGINS) {
        buf_text(w->out, "  # ");
        struct str s = str_of(policy_origin(w->p, origin, text, sizeof text));
        size_t i = 0;
        while (i < s.n && plain_sequence(str_skip(s, i)))
            i += plain_sequence(str_skip(s, i));
        if (i == s.n)
            buf_str(w->out, s);
        else
            put_quoted(w->out, s);
    }
    buf_char(w->out, '\n');
}

static void put_scalar(const struct printer *w, const char *key, const char *value, uint32_t origin)
{
    buf_printf(w->out, "%s: ", key);
    put_text(w->out, str_of(value));
    end_line(w, origin);
}

/* Writes a list's key before its first item, and a section's before its first list. */
struct heading {
    const char *section, *list;
    bool section_said, list_said;
};

static void item(const struct printer *w, struct heading *h)
{
    if (h->section && !h->section_said)
        buf_printf(w->out, "%s:\n", h->section);
    if (!h->list_said)
        buf_printf(w->out, "%s%s:\n", h->section ? "  " : "", h->list);
    h->section_said = h->list_said = true;
    buf_text(w->out, h->section ? "    - " : "  - ");
}

/* A path below a default workspace is relative to the future one. */
static void path_text(const struct printer *w, const struct path_rule *r, struct buf *out)
{
    const char *workspace = w->p->workspace, *path = r->path;
    bool moves = (w->how & CONVERTED) && !w->p->workspace_origin && !r->any_depth && path_at_or_below(path, workspace);
    if (moves) {
        path += strlen(workspace);
        buf_text(out, "${WORKSPACE}");
    }
    if (!moves || *path)
        path_write(path, r->below, r->any_depth, r->pattern, out);
}

/* The workspace needs a rule of its own where something above it is hidden. */
static void put_named_workspace(const struct printer *w, struct heading *h)
{
    const struct policy *p = w->p;
    bool hidden = false;
    for (size_t i = 0; i < p->n_paths && p->workspace_named; i++)
        hidden |= p->paths[i].access == PATH_HIDE && path_rule_covers(&p->paths[i], p->workspace);
    if (!hidden)
        return;
    const struct path_rule r = {.path = p->workspace};
    auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
    path_text(w, &r, &text);
    item(w, h);
    put_text(w->out, buf_view(&text));
    end_line(w, p->workspace_origin);
}

static void put_paths(const struct printer *w, struct heading *h, enum path_access access, const char *list)
{
    h->list = list;
    h->list_said = false;
    if (access == (w->p->workspace_read_only ? PATH_RO : PATH_RW))
        put_named_workspace(w, h);
    for (size_t i = 0; i < w->p->n_paths; i++) {
        const struct path_rule *r = &w->p->paths[i];
        auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
        if (r->access != access || policy_is_found(w->p, r->origin))
            continue;
        const char *mark = r->optional && (access == PATH_RW || access == PATH_RO) ? ", optional: true}"
                           : r->absent                                             ? ", absent: true}"
                                                                                   : NULL;
        path_text(w, r, &text);
        item(w, h);
        if (mark)
            buf_text(w->out, "{path: ");
        (mark ? put_quoted : put_text)(w->out, buf_view(&text));
        buf_text(w->out, mark ? mark : "");
        end_line(w, r->origin);
    }
}

static void put_files(const struct printer *w)
{
    struct heading h = {.section = "files"};

    put_paths(w, &h, PATH_RW, "rw");
    put_paths(w, &h, PATH_RO, "ro");
    put_paths(w, &h, PATH_HIDE, "hide");
    put_paths(w, &h, PATH_PROTECT, "protect");
    put_paths(w, &h, PATH_CACHE, "cache");
    if (w->p->env_files) {
        buf_text(w->out, h.section_said ? "  env_files: true\n" : "files:\n  env_files: true\n");
        h.section_said = true;
    }
    if (w->p->cow) {
        buf_text(w->out, h.section_said ? "  cow: true\n" : "files:\n  cow: true\n");
        h.section_said = true;
    }
    h.list = "mounts";
    h.list_said = false;
    for (size_t i = 0; i < w->p->n_mounts; i++) {
        const struct mount_rule *r = &w->p->mounts[i];
        auto_buf struct buf from = BUF(4 * MAX_PATH_TEXT), to = BUF(4 * MAX_PATH_TEXT);
        path_write(r->from, NULL, false, false, &from);
        path_write(r->to, NULL, false, false, &to);
        item(w, &h);
        buf_text(w->out, "{from: ");
        put_quoted(w->out, buf_view(&from));
        buf_text(w->out, ", to: ");
        put_quoted(w->out, buf_view(&to));
        buf_text(w->out, r->read_only ? ", read_only: true" : "");
        buf_text(w->out, r->no_links ? ", no_links: true}" : "}");
        end_line(w, r->origin);
    }
    h.list = "storage";
    h.list_said = false;
    for (size_t i = 0; i < w->p->n_storages; i++) {
        auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
        path_write(w->p->storages[i].path, NULL, false, false, &text);
        item(w, &h);
        put_text(w->out, buf_view(&text));
        end_line(w, w->p->storages[i].origin);
    }
    if (w->p->expand == EXPAND_START)
        buf_text(w->out, h.section_said ? "  expand: start\n" : "files:\n  expand: start\n");
}

static void put_guards(const struct printer *w)
{
    static const struct {
        const char *list;
        enum guard_place place;
        enum guard_judge judge;
        bool everyday;
    } lists[] = {{"root", GUARD_ROOT, GUARD_REFUSE, false},
                 {"everyday_names", GUARD_ROOT, GUARD_REFUSE, true},
                 {"any_depth", GUARD_ANY_DEPTH, GUARD_REFUSE, false},
                 {"git_config", GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, false}};
    static const char *const modes[] = {"strict", "existing", "off"};
    struct heading h = {.section = "guard_names"};

    if (!(w->how & ADDED) || w->p->guard != GUARD_STRICT)
        buf_printf(w->out, "guard: %s\n", modes[w->p->guard]);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        h.list = lists[k].list;
        h.list_said = false;
        for (size_t i = 0; i < w->p->n_guards; i++) {
            const struct guard_name *g = &w->p->guards[i];
            auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
            if (g->place != lists[k].place || g->judge != lists[k].judge || g->everyday != lists[k].everyday)
                continue;
            buf_text(&text, g->deep ? GUARD_DEEP : "");
            buf_text(&text, g->name);
            if (g->directory)
                buf_char(&text, '/');
            item(w, &h);
            put_text(w->out, buf_view(&text));
            end_line(w, g->origin);
        }
    }
    if (!(w->how & ADDED) || w->p->everyday != EVERYDAY_ALLOW)
        buf_printf(w->out, "%s  everyday: %s\n", h.section_said ? "" : "guard_names:\n",
                   w->p->everyday == EVERYDAY_GUARD ? "guard" : "allow");
}

static void put_duration(struct buf *out, uint64_t ms)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        if (ms % units[u].ms == 0) {
            buf_printf(out, "%llu%s", (unsigned long long)(ms / units[u].ms), units[u].name);
            return;
        }
    }
}

static void put_ask(const struct printer *w)
{
    const struct policy *p = w->p;
    if (p->net_ask) {
        buf_text(w->out, "  ask: true");
        end_line(w, p->net_ask_origin);
    }
    if (p->net_ask_ms != 30000) {
        buf_text(w->out, "  ask_time: ");
        put_duration(w->out, p->net_ask_ms);
        buf_char(w->out, '\n');
    }
}

static void put_net(const struct printer *w)
{
    static const char *const modes[] = {"none", "allow", "host"};
    static const char lists[][12] = {"allow", "deny", "deny_ports", "publish", "reach"};
    struct heading h = {.section = "net", .section_said = true};

    bool plain = w->p->net == NET_NONE && w->p->net_catch == NET_CATCH_AUTO && !w->p->net_ask &&
                 w->p->net_ask_ms == 30000 && !w->p->n_net_rules && !w->p->n_unix_sockets;
    if ((w->how & ADDED) && plain)
        return;
    buf_printf(w->out, "net:\n  mode: %s", modes[w->p->net]);
    end_line(w, w->p->net_origin);
    if (w->p->net_catch != NET_CATCH_AUTO) {
        struct str way = key_choice_name(KEY_CATCH, w->p->net_catch);
        buf_printf(w->out, "  catch: %.*s\n", (int)way.n, way.p);
    }
    put_ask(w);
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        h.list = lists[k];
        h.list_said = false;
        for (size_t i = 0; i < w->p->n_net_rules; i++) {
            const struct net_rule *r = &w->p->net_rules[i];
            if ((size_t)r->verb != k)
                continue;
            item(w, &h);
            put_text(w->out, str_of(r->text));
            end_line(w, r->origin);
        }
    }
    h.list = "unix_sockets";
    h.list_said = false;
    for (size_t i = 0; i < w->p->n_unix_sockets; i++) {
        auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
        path_write(w->p->unix_sockets[i], NULL, false, false, &text);
        item(w, &h);
        put_text(w->out, buf_view(&text));
        buf_char(w->out, '\n');
    }
}

static void put_ssh(const struct printer *w)
{
    const struct policy *p = w->p;
    struct heading h = {.list = "ssh_agent"};
    for (size_t i = 0; i < p->n_ssh_keys; i++) {
        const struct ssh_key_rule *k = &p->ssh_keys[i];
        auto_buf struct buf text = BUF(8 * MAX_PATH_TEXT);
        if (k->key[0] == '/')
            path_write(k->key, NULL, false, false, &text);
        else
            buf_text(&text, k->key);
        if (k->host)
            buf_printf(&text, "=%s", k->host);
        item(w, &h);
        put_text(w->out, buf_view(&text));
        end_line(w, k->origin);
    }
    if (p->ssh_confirm) {
        buf_text(w->out, "ssh_confirm: true");
        end_line(w, p->ssh_confirm_origin);
    }
}

static void put_gpg(const struct printer *w)
{
    const struct policy *p = w->p;
    struct heading h = {.list = "gpg_agent"};
    for (size_t i = 0; i < p->n_gpg_keys; i++) {
        item(w, &h);
        put_text(w->out, str_of(p->gpg_keys[i].key));
        end_line(w, p->gpg_keys[i].origin);
    }
    if (p->gpg_confirm) {
        buf_text(w->out, "gpg_confirm: true");
        end_line(w, p->gpg_confirm_origin);
    }
}

static void put_git(const struct printer *w)
{
    const struct git_rules *g = &w->p->git;
    struct heading h = {.section = "git", .list = "protect_branches"};
    const struct {
        const char *text;
        uint32_t origin;
        bool said;
    } lines[] = {{g->verify == GIT_VERIFY_REQUIRED ? "verify: required" : "verify: told", g->verify_origin,
                  g->verify != GIT_VERIFY_OFF},
                 {"allow_force: true", g->force_origin, g->allow_force},
                 {"allow_delete: true", g->delete_origin, g->allow_delete}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!lines[i].said)
            continue;
        buf_printf(w->out, "%s  %s", h.section_said ? "" : "git:\n", lines[i].text);
        end_line(w, lines[i].origin);
        h.section_said = true;
    }
    for (size_t i = 0; i < g->n_branches; i++) {
        item(w, &h);
        put_text(w->out, str_of(g->branches[i].pattern));
        end_line(w, g->branches[i].origin);
    }
}

static void put_size(struct buf *out, uint64_t v)
{
    static const char units[] = "\0KMGT";
    unsigned u = 0;
    while (u < 4 && v && v % 1024 == 0) {
        v /= 1024;
        u++;
    }
    buf_printf(out, "%llu", (unsigned long long)v);
    if (u)
        buf_char(out, units[u]);
}

static void put_limits(const struct printer *w)
{
    const struct limit *limits = w->p->limits.each;
    bool said = false;

    for (enum key_id id = KEY_MEMORY; id <= KEY_OPEN_FILES; id++) {
        const struct limit *l = &limits[id - KEY_MEMORY];
        if (!l->asked && !(w->how & ALL_LIMITS))
            continue;
        if (!said)
            buf_text(w->out, "limits:\n");
        said = true;
        buf_printf(w->out, "  %s: ", key_table[id].path + strlen("limits."));
        if (l->value == LIMIT_NONE)
            buf_text(w->out, "none");
        else if (key_table[id].type == TYPE_SIZE)
            put_size(w->out, l->value);
        else if (key_table[id].type == TYPE_DURATION)
            put_duration(w->out, l->value);
        else if (key_table[id].type == TYPE_CPUS)
            buf_printf(w->out, "%llu.%03u", (unsigned long long)(l->value / 1000), (unsigned)(l->value % 1000));
        else
            buf_printf(w->out, "%llu", (unsigned long long)l->value);
        end_line(w, l->origin);
    }
}

static void put_env(const struct printer *w)
{
    struct heading h = {.section = "env", .list = "pass"};
    bool said = false;

    for (size_t i = 0; i < w->p->n_env; i++) {
        const struct env_rule *r = &w->p->env[i];
        if (r->remove || r->value)
            continue;
        item(w, &h);
        put_text(w->out, str_of(r->name));
        end_line(w, r->origin);
    }
    for (size_t i = 0; i < w->p->n_env; i++) {
        const struct env_rule *r = &w->p->env[i];
        if (r->remove || !r->value)
            continue;
        if (!said)
            buf_text(w->out, h.section_said ? "  set:\n" : "env:\n  set:\n");
        said = h.section_said = true;
        buf_printf(w->out, "    %s: ", r->name);
        put_quoted(w->out, str_of(r->value));
        end_line(w, r->origin);
    }
    h.list = "remove";
    h.list_said = false;
    for (size_t i = 0; i < w->p->n_env; i++) {
        if (!w->p->env[i].remove)
            continue;
        item(w, &h);
        put_text(w->out, str_of(w->p->env[i].name));
        end_line(w, w->p->env[i].origin);
    }
}

static void put_file(const struct printer *w, const char **section, const char *key, const char *path)
{
    auto_buf struct buf text = BUF(4 * MAX_PATH_TEXT);
    if (!path)
        return;
    path_write(path, NULL, false, false, &text);
    buf_printf(w->out, "%s  %s: ", *section, key);
    put_text(w->out, buf_view(&text));
    buf_char(w->out, '\n');
    *section = "";
}

/* Options of single engines. */
static void put_engines(const struct printer *w)
{
    const struct policy *p = w->p;
    const char *vm = "vm:\n", *seatbelt = "seatbelt:\n";
    put_file(w, &vm, "kernel", p->vm_kernel);
    put_file(w, &vm, "modules", p->vm_modules);
    if (p->seatbelt_base != SEATBELT_RESTRICTIVE) {
        buf_printf(w->out, "%s  base: permissive\n", seatbelt);
        seatbelt = "";
    }
    put_file(w, &seatbelt, "file", p->seatbelt_file);
}

static void put_engine_words(const struct printer *w)
{
    static const char *const pulls[] = {"never", "missing", "always"}, *const entrypoints[] = {NULL, "none", "image"};
    const struct policy *p = w->p;
    const struct {
        const char *key, *text;
    } words[] = {{"image", p->image},
                 {"pull", p->pull == PULL_NEVER ? NULL : pulls[p->pull]},
                 {"entrypoint", entrypoints[p->entrypoint]},
                 {"platform", p->platform},
                 {"runtime", p->runtime},
                 {"docker_host", p->docker_host},
                 {"docker_context", p->docker_context}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!words[i].text)
            continue;
        buf_printf(w->out, "%s: ", words[i].key);
        put_text(w->out, str_of(words[i].text));
        buf_char(w->out, '\n');
    }
}

static void put_rest(const struct printer *w)
{
    static const char *const ttys[] = {"auto", "always", "never"};
    const struct policy *p = w->p;
    struct heading h = {.list = "may_lose"};

    bool all = !(w->how & ADDED);
    if (p->user == USER_IDS)
        buf_printf(w->out, "user: \"%u:%u\"\n", p->uid, p->gid);
    else if (all || p->user != USER_KEEP)
        buf_printf(w->out, "user: %s\n", p->user == USER_ROOT ? "root" : "keep");
    if (all || p->tty != TTY_AUTO)
        buf_printf(w->out, "tty: %s\n", ttys[p->tty]);
    if (all || !same(p->engine, "auto"))
        buf_printf(w->out, "engine: %s\n", p->engine);
    put_engine_words(w);
    put_engines(w);
    if (all || !same(p->hostname, "pinfold")) {
        buf_text(w->out, "hostname: ");
        put_text(w->out, str_of(p->hostname));
        buf_char(w->out, '\n');
    }
    if (all || p->allow_nested_userns)
        buf_printf(w->out, "allow_nested_userns: %s\n", p->allow_nested_userns ? "true" : "false");
    if (all || p->monitor)
        buf_printf(w->out, "monitor: %s\n", p->monitor ? "true" : "false");
    if (p->unsandboxed_fallback)
        buf_text(w->out, "unsandboxed_fallback: true\n");
    struct heading must = {.list = "must_have"};
    for (int f = 0; f < FEATURE_COUNT; f++) {
        if (p->may_lose & (features)1 << f) {
            item(w, &h);
            buf_printf(w->out, "%s\n", feature_name(f));
        }
    }
    for (int f = 0; f < FEATURE_COUNT; f++) {
        if (p->must_have & (features)1 << f) {
            item(w, &must);
            buf_printf(w->out, "%s\n", feature_name(f));
        }
    }
}

static void put_ignored(const struct printer *w)
{
    for (size_t i = 0; i < w->p->n_ignored; i++) {
        const struct ignored *g = &w->p->ignored[i];
        buf_text(w->out, "# not enforced: ");
        put_quoted(w->out, str_of(g->key));
        buf_printf(w->out, ": %s", g->why);
        end_line(w, g->origin);
    }
}

static int print(const struct policy *p, unsigned how, struct buf *out)
{
    struct printer w = {.p = p, .out = out, .how = how};
    auto_buf struct buf workspace = BUF(4 * MAX_PATH_TEXT);

    if (how & IGNORED)
        put_ignored(&w);
    buf_printf(out, "version: 1\nextends: %s\n", how & ADDED ? "workspace" : "none");
    path_write(p->workspace, NULL, false, false, &workspace);
    if (!(how & CONVERTED) || p->workspace_origin)
        put_scalar(&w, "workspace", buf_cstr(&workspace), p->workspace_origin);
    if (!(how & ADDED) || p->workspace_read_only)
        buf_printf(out, "workspace_read_only: %s\n", p->workspace_read_only ? "true" : "false");
    put_files(&w);
    put_guards(&w);
    put_net(&w);
    put_ssh(&w);
    put_gpg(&w);
    put_git(&w);
    put_limits(&w);
    put_env(&w);
    put_rest(&w);
    return buf_ok(out) ? 0 : -ENOMEM;
}

int policy_print(const struct policy *p, unsigned how, struct buf *out)
{
    return print(p, IGNORED | (how & (ORIGINS | CONVERTED | ADDED)), out);
}

int policy_canonical(const struct policy *p, struct buf *out)
{
    return print(p, ALL_LIMITS, out);
}

/* Arrays are sorted (merge_order.c), so they are compared item by item. */
static bool equal_paths(const struct policy *a, const struct policy *b)
{
    if (a->n_paths != b->n_paths)
        return false;
    for (size_t i = 0; i < a->n_paths; i++) {
        const struct path_rule *x = &a->paths[i], *y = &b->paths[i];
        if (x->access != y->access || !same(x->path, y->path) || x->any_depth != y->any_depth ||
            x->pattern != y->pattern || !same(x->below, y->below) || x->optional != y->optional ||
            x->absent != y->absent)
            return false;
    }
    return true;
}

static bool equal_lists(const struct policy *a, const struct policy *b)
{
    if (a->n_mounts != b->n_mounts || a->n_guards != b->n_guards || a->n_net_rules != b->n_net_rules ||
        a->n_unix_sockets != b->n_unix_sockets || a->n_ssh_keys != b->n_ssh_keys || a->n_gpg_keys != b->n_gpg_keys ||
        a->n_env != b->n_env || a->n_storages != b->n_storages)
        return false;
    for (size_t i = 0; i < a->n_mounts; i++) {
        const struct mount_rule *x = &a->mounts[i], *y = &b->mounts[i];
        if (!same(x->from, y->from) || !same(x->to, y->to) || x->read_only != y->read_only ||
            x->no_links != y->no_links)
            return false;
    }
    for (size_t i = 0; i < a->n_storages; i++) {
        if (!same(a->storages[i].path, b->storages[i].path))
            return false;
    }
    for (size_t i = 0; i < a->n_guards; i++) {
        const struct guard_name *x = &a->guards[i], *y = &b->guards[i];
        if (!same(x->name, y->name) || x->place != y->place || x->judge != y->judge || x->directory != y->directory ||
            x->everyday != y->everyday || x->deep != y->deep)
            return false;
    }
    for (size_t i = 0; i < a->n_net_rules; i++) {
        if (a->net_rules[i].verb != b->net_rules[i].verb || !same(a->net_rules[i].text, b->net_rules[i].text))
            return false;
    }
    for (size_t i = 0; i < a->n_gpg_keys; i++) {
        if (!same(a->gpg_keys[i].key, b->gpg_keys[i].key))
            return false;
    }
    for (size_t i = 0; i < a->n_ssh_keys; i++) {
        if (!same(a->ssh_keys[i].key, b->ssh_keys[i].key) || !same(a->ssh_keys[i].host, b->ssh_keys[i].host))
            return false;
    }
    for (size_t i = 0; i < a->n_unix_sockets; i++) {
        if (!same(a->unix_sockets[i], b->unix_sockets[i]))
            return false;
    }
    for (size_t i = 0; i < a->n_env; i++) {
        const struct env_rule *x = &a->env[i], *y = &b->env[i];
        if (!same(x->name, y->name) || !same(x->value, y->value) || x->remove != y->remove)
            return false;
    }
    return true;
}

static bool equal_git(const struct git_rules *a, const struct git_rules *b)
{
    bool equal = a->verify == b->verify && a->allow_force == b->allow_force && a->allow_delete == b->allow_delete &&
                 a->n_branches == b->n_branches;
    for (size_t i = 0; equal && i < a->n_branches; i++)
        equal = same(a->branches[i].pattern, b->branches[i].pattern);
    return equal;
}

bool policy_equal(const struct policy *a, const struct policy *b)
{
    const struct limit *x = a->limits.each, *y = b->limits.each;
    for (size_t i = 0; i < N_LIMITS; i++) {
        if (x[i].value != y[i].value || x[i].asked != y[i].asked)
            return false;
    }
    return same(a->workspace, b->workspace) && a->workspace_read_only == b->workspace_read_only && equal_paths(a, b) &&
           equal_lists(a, b) && equal_git(&a->git, &b->git) && a->guard == b->guard && a->everyday == b->everyday &&
           a->expand == b->expand && a->env_files == b->env_files && a->cow == b->cow && a->net == b->net &&
           a->net_catch == b->net_catch && a->net_ask == b->net_ask && a->net_ask_ms == b->net_ask_ms &&
           a->ssh_confirm == b->ssh_confirm && a->gpg_confirm == b->gpg_confirm && a->user == b->user &&
           a->uid == b->uid && a->gid == b->gid && a->tty == b->tty && same(a->engine, b->engine) &&
           same(a->image, b->image) && same(a->hostname, b->hostname) && same(a->vm_kernel, b->vm_kernel) &&
           same(a->vm_modules, b->vm_modules) && a->seatbelt_base == b->seatbelt_base &&
           same(a->seatbelt_file, b->seatbelt_file) && a->pull == b->pull && a->entrypoint == b->entrypoint &&
           same(a->platform, b->platform) && same(a->runtime, b->runtime) && same(a->docker_host, b->docker_host) &&
           same(a->docker_context, b->docker_context) && a->allow_nested_userns == b->allow_nested_userns &&
           a->monitor == b->monitor && a->unsandboxed_fallback == b->unsandboxed_fallback &&
           a->may_lose == b->may_lose && a->must_have == b->must_have;
}
