/* Reading a definition. Unknown keys are errors: a login that is not brought along is noticed late. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "agents/reading.h"

static int no_memory(const struct definition_reading *r)
{
    return err_sys(r->e, ERR_SYSTEM, ENOMEM, "cannot read %s", r->file);
}

/* A path of the home: "~/x". */
static int take_place(const struct definition_reading *r, const struct node *n, const char **ret)
{
    int no = agent_take_text(r, n, ret);
    if (no == 0 && (strncmp(*ret, "~/", 2) != 0 || strstr(*ret, "/../") || strstr(*ret, "//") || strlen(*ret) < 3))
        no = agent_wrong(r, n, "a path of the home is expected here, \"~/...\"");
    return no;
}

static int take_places(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++)
        no = take_place(r, &n->items[i], &(const char *){NULL});
    return no;
}

static int take_program_places(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = take_places(r, n, ret);
    return no < 0 ? no : agent_take_patterns(r, n, *ret);
}

/* One component: the name of a file or directory, or of a table. */
static int take_component(const struct definition_reading *r, const struct node *n, const char **ret)
{
    int no = agent_take_text(r, n, ret);
    if (no == 0 && (strchr(*ret, '/') || strcmp(*ret, ".") == 0 || strcmp(*ret, "..") == 0 || strlen(*ret) > 200))
        no = agent_wrong(r, n, "a name without \"/\" is expected here");
    return no;
}

/* Files of the home or of the directory that the agent works in. */
static int take_settings(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        const char *file = (*ret)[i];
        if (file[0] == '/' || strstr(file, "..") || strstr(file, "//") || file[strlen(file) - 1] == '/')
            no = agent_wrong(r, &n->items[i], "a file of the home (\"~/...\") or of the directory is expected here");
    }
    return no;
}

static int take_env(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a mapping of variables is expected here");
    const char **list = arena_zero(r->mem, (2 * n->n + 1) * sizeof *list);
    int no = list ? 0 : no_memory(r);
    for (size_t i = 0; no == 0 && i < 2 * n->n; i++)
        no = agent_take_text(r, &n->items[i], &list[i]);
    *ret = list;
    return no;
}

static int take_files(const struct definition_reading *r, const struct node *n, bool databases, struct agent_file **ret,
                      size_t *ret_n)
{
    if (n->kind != NODE_LIST)
        return agent_wrong(r, n, "a list of files is expected here");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *one = &n->items[i], *name = one->kind == NODE_MAP ? node_get(one, "file") : NULL;
        const struct node *refresh = name ? node_get(one, "refresh") : NULL;
        struct agent_file *f = arena_push(r->mem, ret, ret_n, sizeof *f);
        if (!f)
            return no_memory(r);
        if (!name || one->n != 1 + (size_t)(refresh != NULL) || (databases && !refresh))
            return agent_wrong(r, one,
                               databases ? "a database is \"file:\" and \"refresh:\", a list of tables"
                                         : "a file is \"file:\" and, when it is copied each time, \"refresh: true\"");
        int no = take_component(r, name, &f->name);
        if (no == 0 && databases)
            no = agent_take_list(r, refresh, &f->refresh);
        for (size_t k = 0; no == 0 && databases && k < refresh->n; k++)
            no = strchr(f->refresh[k], '"') ? agent_wrong(r, &refresh->items[k], "no name of a table") : 0;
        if (no == 0 && refresh && !databases) {
            f->each_time = str_is(refresh->text, "true");
            no = f->each_time ? 0 : agent_wrong(r, refresh, "\"true\" is expected here");
        }
        if (no < 0)
            return no;
    }
    return 0;
}

static int take_state(const struct definition_reading *r, const struct node *n, struct agent_state *s)
{
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a state is a mapping");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        int no = 0;
        if (str_is(key->text, "name"))
            no = take_component(r, value, &s->name);
        else if (str_is(key->text, "at"))
            no = take_place(r, value, &s->at);
        else if (str_is(key->text, "linux"))
            no = take_place(r, value, &s->from[AGENT_LINUX]);
        else if (str_is(key->text, "macos"))
            no = take_place(r, value, &s->from[AGENT_MACOS]);
        else if (str_is(key->text, "databases"))
            no = take_files(r, value, true, &s->databases, &s->n_databases);
        else if (str_is(key->text, "files"))
            no = take_files(r, value, false, &s->files, &s->n_files);
        else
            no = agent_unknown(r, key, "a state", "name, at, linux, macos, databases, files");
        if (no < 0)
            return no;
    }
    return s->name && s->at ? 0 : agent_wrong(r, n, "a state needs \"name:\" and \"at:\"");
}

static int take_states(const struct definition_reading *r, const struct node *n, struct agent *a)
{
    if (n->kind != NODE_LIST)
        return agent_wrong(r, n, "a list of states is expected here");
    for (size_t i = 0; i < n->n; i++) {
        struct agent_state *s = arena_push(r->mem, &a->state, &a->n_state, sizeof *s);
        int no = s ? take_state(r, &n->items[i], s) : no_memory(r);
        if (no < 0)
            return no;
    }
    return 0;
}

/* ---- start ---- */

/* Names below a directory of the agent's: never out of it. */
static int take_below(const struct definition_reading *r, const struct node *n, const char **ret)
{
    int no = agent_take_text(r, n, ret);
    const char *t = no == 0 ? *ret : "x";
    if (t[0] == '/' || t[0] == '~' || strstr(t, "//") || strcmp(t, ".") == 0 || strstr(t, "..") || strchr(t, ':'))
        no = agent_wrong(r, n, "a name below the directory of \"at:\" is expected here");
    return no;
}

static int take_belows(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++)
        no = take_below(r, &n->items[i], &(const char *){NULL});
    return no;
}

static int take_directories(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = take_belows(r, n, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        if ((*ret)[i][strlen((*ret)[i]) - 1] != '/')
            no = agent_wrong(r, &n->items[i], "a directory is expected here, with \"/\" at its end");
    }
    return no;
}

static bool has_word(const char **list, const char *word)
{
    while (list && *list && !same(*list, word))
        list++;
    return list && *list;
}

static int take_kept_fits(const struct definition_reading *r, const struct node *n, const struct agent_kept *f)
{
    bool text = f->text || f->since_text;
    if (!f->name)
        return agent_wrong(r, n, "a file needs \"file:\"");
    if ((text || f->note) && (f->login || (text && f->note) || strchr(f->name, '/')))
        return agent_wrong(r, n,
                           "a file has \"text:\" or \"note:\" or \"login:\"; the first two need a name without \"/\"");
    if (f->login_text && (f->login || strchr(f->name, '/')))
        return agent_wrong(r, n, "\"login_text:\" is for settings, not for the login, and for a name without \"/\"");
    if (!f->since != !f->since_text)
        return agent_wrong(r, n, "\"since:\", a version, and \"since_text:\" need each other");
    return 0;
}

static int take_kept(const struct definition_reading *r, const struct node *n, struct agent_kept *f)
{
    if (n->kind == NODE_SCALAR)
        return take_below(r, n, &f->name);
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a file's name or a mapping with \"file:\" is expected here");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        int no;
        if (str_is(key->text, "file"))
            no = take_below(r, value, &f->name);
        else if (str_is(key->text, "from"))
            no = take_place(r, value, &f->from);
        else if (str_is(key->text, "blank"))
            no = agent_take_list(r, value, &f->blank);
        else if (str_is(key->text, "only"))
            no = agent_take_list(r, value, &f->only);
        else if (str_is(key->text, "keys"))
            no = agent_take_list(r, value, &f->keys);
        else if (str_is(key->text, "expires"))
            no = agent_take_text(r, value, &f->expires);
        else if (str_is(key->text, "text"))
            no = agent_take_text(r, value, &f->text);
        else if (str_is(key->text, "since"))
            no = agent_take_text(r, value, &f->since);
        else if (str_is(key->text, "since_text"))
            no = agent_take_text(r, value, &f->since_text);
        else if (str_is(key->text, "login_text"))
            no = agent_take_text(r, value, &f->login_text);
        else if (str_is(key->text, "note"))
            no = agent_take_flag(r, value, &f->note);
        else if (str_is(key->text, "login"))
            no = agent_take_flag(r, value, &f->login);
        else if (str_is(key->text, "renew"))
            no = agent_take_renew(r, value, &f->renew);
        else if (str_is(key->text, "secret"))
            no = agent_take_flag(r, value, &f->secret);
        else
            no = agent_unknown(r, key, "a file",
                               "file, from, blank, only, keys, expires, text, since, since_text, login_text, note, "
                               "login, renew, secret");
        if (no < 0)
            return no;
    }
    for (struct agent_renew *w = f->renew; w; w = w->next) {
        if (!w->expires)
            w->expires = f->expires;
        if (!(f->login && w->expires && has_word(f->blank, w->refresh)))
            return agent_wrong(
                r, n,
                "a login with \"renew:\" needs \"login: true\", \"expires:\", and in \"blank:\" the place of its "
                "\"refresh:\"");
    }
    return take_kept_fits(r, n, f);
}

static int take_kept_files(const struct definition_reading *r, const struct node *n, struct agent_layer *l)
{
    if (n->kind != NODE_LIST || n->n > AGENT_KEPT_MAX)
        return agent_wrong(r, n, "a list of files is expected here, 64 at most");
    for (size_t i = 0; i < n->n; i++) {
        struct agent_kept *f = arena_push(r->mem, &l->files, &l->n_files, sizeof *f);
        int no = f ? take_kept(r, &n->items[i], f) : no_memory(r);
        if (no < 0)
            return no;
    }
    return 0;
}

static int take_naming(const struct definition_reading *r, const struct node *n, struct agent_naming **ret)
{
    struct agent_naming *w = arena_zero(r->mem, sizeof *w);
    if (!w)
        return no_memory(r);
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a mapping with \"register:\", \"below:\" and \"marker:\" is expected here");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        int no;
        if (str_is(key->text, "register"))
            no = take_component(r, value, &w->register_file);
        else if (str_is(key->text, "below"))
            no = take_component(r, value, &w->below);
        else if (str_is(key->text, "marker"))
            no = take_component(r, value, &w->marker);
        else
            no = agent_unknown(r, key, "project", "register, below, marker");
        if (no < 0)
            return no;
    }
    *ret = w;
    return w->register_file && w->below && w->marker
               ? 0
               : agent_wrong(r, n, "project needs \"register:\", \"below:\" and \"marker:\"");
}

static int take_sessions(const struct definition_reading *r, const struct node *n, const char **ret)
{
    int no = agent_take_text(r, n, ret);
    if (no == 0 && !same(*ret, "copilot") && !same(*ret, "opencode"))
        no = agent_wrong(r, n, "\"copilot\" or \"opencode\" is expected here: whose form of sessions it uses");
    return no;
}

static int take_layer(const struct definition_reading *r, const struct node *n, struct agent_layer *l)
{
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a mapping with \"at:\" is expected here");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        int no;
        if (str_is(key->text, "at"))
            no = take_place(r, value, &l->at);
        else if (str_is(key->text, "variable"))
            no = agent_take_text(r, value, &l->variable);
        else if (str_is(key->text, "files"))
            no = take_kept_files(r, value, l);
        else if (str_is(key->text, "shared"))
            no = take_belows(r, value, &l->shared);
        else if (str_is(key->text, "apart"))
            no = take_belows(r, value, &l->apart);
        else if (str_is(key->text, "installs"))
            no = take_directories(r, value, &l->installs);
        else if (str_is(key->text, "project"))
            no = take_naming(r, value, &l->project);
        else if (str_is(key->text, "sessions"))
            no = take_sessions(r, value, &l->sessions);
        else
            no =
                agent_unknown(r, key, "a directory", "at, variable, files, shared, apart, installs, project, sessions");
        if (no < 0)
            return no;
    }
    return l->at ? 0 : agent_wrong(r, n, "a directory needs \"at:\"");
}

static int take_layers(const struct definition_reading *r, const struct node *n, struct agent_start *s)
{
    if (n->kind != NODE_LIST || n->n > AGENT_LAYERS_MAX)
        return agent_wrong(r, n, "a list of directories is expected here, 4 at most");
    for (size_t i = 0; i < n->n; i++) {
        struct agent_layer *l = arena_push(r->mem, &s->layers, &s->n_layers, sizeof *l);
        int no = l ? take_layer(r, &n->items[i], l) : no_memory(r);
        if (no < 0)
            return no;
    }
    return 0;
}

static int take_port(const struct definition_reading *r, const struct node *n, const char **ret)
{
    int no = agent_take_text(r, n, ret);
    if (no == 0 && (strspn(*ret, "0123456789") != strlen(*ret) || strlen(*ret) > 5 || **ret == '0'))
        no = agent_wrong(r, n, "a port is expected here");
    return no;
}

/* Names of hosts as they are compared: nothing with a pattern, a port or capitals. */
static int take_names_of_hosts(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    int no = agent_take_list(r, n, ret);
    for (size_t i = 0; no == 0 && i < n->n; i++) {
        const char *host = (*ret)[i];
        if (strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(host) || !strchr(host, '.'))
            no = agent_wrong(r, &n->items[i],
                             "the name of a host is expected here, in small letters: login.example.com");
    }
    return no;
}

static int take_start(const struct definition_reading *r, const struct node *n, struct agent_start *s)
{
    if (n->kind != NODE_MAP)
        return agent_wrong(r, n, "a mapping with \"command:\" is expected here");
    for (size_t i = 0; i < n->n; i++) {
        const struct node *key = &n->items[2 * i], *value = key + 1;
        int no;
        if (str_is(key->text, "command"))
            no = agent_take_list(r, value, &s->command);
        else if (str_is(key->text, "unattended"))
            no = agent_take_list(r, value, &s->unattended);
        else if (str_is(key->text, "own_options"))
            no = agent_take_list(r, value, &s->own_options);
        else if (str_is(key->text, "places"))
            no = take_program_places(r, value, &s->places);
        else if (str_is(key->text, "login"))
            no = agent_take_list(r, value, &s->login);
        else if (str_is(key->text, "login_port"))
            no = take_port(r, value, &s->login_port);
        else if (str_is(key->text, "login_hosts"))
            no = take_names_of_hosts(r, value, &s->login_hosts);
        else if (str_is(key->text, "login_env"))
            no = take_env(r, value, &s->login_env);
        else if (str_is(key->text, "install"))
            no = agent_take_text(r, value, &s->install);
        else if (str_is(key->text, "env"))
            no = take_env(r, value, &s->env);
        else if (str_is(key->text, "untried"))
            no = agent_take_flag(r, value, &s->untried);
        else if (str_is(key->text, "keeps"))
            no = take_layers(r, value, s);
        else
            no = agent_unknown(r, key, "start",
                               "command, unattended, own_options, places, install, login, login_port, login_hosts, "
                               "login_env, env, untried, keeps");
        if (no < 0)
            return no;
    }
    bool named = s->command && s->command[0] && s->command[0][0] != '-' && !strchr(s->command[0], '/');
    return named ? 0 : agent_wrong(r, n, "start needs \"command:\", whose first word is a program's name");
}

static int take_key(const struct definition_reading *r, const struct node *key, const struct node *value,
                    struct agent *a)
{
    const struct {
        const char *name;
        const char ***list;
        const char **text;
    } keys[] = {{"title", NULL, &a->title},
                {"text", NULL, &a->text},
                {"response_text", NULL, &a->response_text},
                {"command", &a->command, NULL},
                {"profile", &a->profile, NULL},
                {"model", &a->model, NULL},
                {"unattended", &a->unattended, NULL},
                {"response", &a->response, NULL},
                {"resume", &a->resume, NULL},
                {"prompt", &a->prompt, NULL},
                {"pass", &a->pass, NULL},
                {"hosts", &a->hosts, NULL}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (str_is(key->text, keys[i].name))
            return keys[i].list ? agent_take_list(r, value, keys[i].list) : agent_take_text(r, value, keys[i].text);
    if (str_is(key->text, "state"))
        return take_states(r, value, a);
    if (str_is(key->text, "start"))
        return take_start(r, value, &a->start);
    if (str_is(key->text, "read_only"))
        return take_places(r, value, &a->read_only);
    if (str_is(key->text, "env"))
        return take_env(r, value, &a->env);
    if (str_is(key->text, "servers"))
        return take_settings(r, value, &a->servers);
    return agent_unknown(r, key, "an agent",
                         "title, command, profile, model, unattended, response, response_text, "
                         "resume, prompt, text, state, read_only, env, pass, hosts, servers, start");
}

int agent_read(const char *name, const char *file, struct str text, struct arena *mem, struct agent *ret, struct err *e)
{
    const struct definition_reading r = {file, mem, e};
    struct node root;
    int no = node_read(file, text, "an agent's definition is expected", mem, &root, e);
    if (no < 0)
        return no;
    *ret = (struct agent){.name = arena_text(mem, name)};
    if (!ret->name)
        return no_memory(&r);
    if (root.kind != NODE_MAP)
        return agent_wrong(&r, &root, "an agent's definition is a mapping");
    for (size_t i = 0; i < root.n; i++) {
        no = take_key(&r, &root.items[2 * i], &root.items[2 * i + 1], ret);
        if (no < 0)
            return no;
    }
    bool prompts = ret->command && ret->command[0] && ret->prompt && ret->text;
    if (!ret->title || !(prompts || (ret->start.command && !ret->command && !ret->prompt && !ret->text)))
        return agent_wrong(&r, &root, "an agent needs title, and command, prompt and text, or start");
    return 0;
}

agent_own_reader *agent_own;

int agent_find(const char *name, struct arena *mem, struct agent *ret, struct err *e)
{
    char list[512] = "", file[256];
    size_t n = 0;
    const char *own = NULL;
    struct str text;
    int no = name && agent_own ? agent_own(name, mem, &own, &text, e) : -ENOENT;
    if (no != -ENOENT)
        return no < 0 ? no : agent_read(name, own, text, mem, ret, e);
    for (const struct agent_text *t = agent_texts; t->name; t++) {
        if (same(t->name, name)) {
            snprintf(file, sizeof file, "agent %s", name);
            return agent_read(name, file, str_of(t->text), mem, ret, e);
        }
        int k = snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", t->name);
        n += k > 0 && n + (size_t)k < sizeof list ? (size_t)k : 0;
    }
    return err_say(e, ERR_POLICY, "unknown agent '%.100s' (known: %s)", name ? name : "", list);
}
