/*
 * What a definition says about command lines and boxes, with its values filled in: {dir}, {response} and the like.
 * Pure: run/agent/ has found out the values, and gives the options that result to the library.
 */
#include <string.h>
#include "agents/agents.h"

struct command_words {
    struct arena *mem;
    const char **list;
    size_t n;
    bool broken;
};

static void put(struct command_words *w, const char *word)
{
    const char **to = arena_push(w->mem, &w->list, &w->n, sizeof *to);
    if (to && word)
        *to = word;
    w->broken |= !to || !word;
}

/* `text` with {name} as the values say; other braces stay. */
static const char *filled(struct arena *mem, const char *text, const struct agent_ask *ask, const char *prompt)
{
    const struct {
        const char *name, *value;
    } values[] = {{"{prompt}", prompt},
                  {"{directory}", ask->directory},
                  {"{profile}", ask->profile},
                  {"{model}", ask->model},
                  {"{response}", ask->response}};
    struct buf out = BUF(4u << 20);
    while (*text) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof values / sizeof *values && !skip; i++) {
            size_t n = strlen(values[i].name);
            if (strncmp(text, values[i].name, n) == 0) {
                buf_text(&out, values[i].value ? values[i].value : "");
                skip = n;
            }
        }
        if (!skip)
            buf_char(&out, *text);
        text += skip ? skip : 1;
    }
    const char *made = buf_ok(&out) ? arena_str(mem, buf_view(&out)) : NULL;
    buf_free(&out);
    return made;
}

static void put_all(struct command_words *w, const char **list, const struct agent_ask *ask, const char *prompt)
{
    for (size_t i = 0; list && list[i]; i++)
        put(w, filled(w->mem, list[i], ask, prompt));
}

int agent_argv(const struct agent *a, const struct agent_ask *ask, struct arena *mem, const char ***ret, struct err *e)
{
    struct command_words w = {.mem = mem};
    if (!ask->prompt || !ask->directory)
        return err_say(e, ERR_POLICY, "%s: a prompt and a directory are required", a->title);
    if (!a->prompt)
        return err_say(e, ERR_POLICY, "%s is started by its name only; its definition has no command line for a prompt",
                       a->title);
    if (ask->profile && !a->profile)
        return err_say(e, ERR_POLICY, "%s has no profiles to choose from (\"%.100s\")", a->title, ask->profile);
    if (ask->model && !a->model)
        return err_say(e, ERR_POLICY, "%s does not take a model (\"%.100s\")", a->title, ask->model);
    if (ask->resume && !a->resume)
        return err_say(e, ERR_POLICY, "%s cannot continue a conversation", a->title);
    if (ask->response && !a->response && !a->response_text)
        return err_say(e, ERR_POLICY, "%s has no option for where to write its answer", a->title);
    const char *prompt = filled(mem, a->text, ask, ask->prompt);
    if (prompt && ask->response && !a->response) {
        const char *more = filled(mem, a->response_text, ask, NULL);
        prompt = more ? arena_printf(mem, "%s\n\n%s", prompt, more) : NULL;
    }
    if (!prompt)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the command line of %s", a->title);
    put_all(&w, a->command, ask, prompt);
    if (ask->profile)
        put_all(&w, a->profile, ask, prompt);
    if (ask->model)
        put_all(&w, a->model, ask, prompt);
    if (ask->unattended)
        put_all(&w, a->unattended, ask, prompt);
    if (ask->response)
        put_all(&w, a->response, ask, prompt);
    if (ask->resume)
        put_all(&w, a->resume, ask, prompt);
    put_all(&w, a->prompt, ask, prompt);
    const char **end = arena_push(mem, &w.list, &w.n, sizeof *end);
    if (w.broken || !end)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the command line of %s", a->title);
    *ret = w.list;
    return 0;
}

/* "~/x" in this home. */
static const char *in_home(struct arena *mem, const char *home, const char *path)
{
    return arena_printf(mem, "%s%s", strcmp(home, "/") == 0 ? "" : home, path + 1);
}

static void flag(struct command_words *w, const char *name, const char *value)
{
    put(w, name);
    put(w, value);
}

/* A colon parts source and target. */
static bool plain(const char *path)
{
    return path && path[0] == '/' && !strchr(path, ':');
}

/* What of `dir` ("~/.kiro") a state's place ("~/.kiro/sessions") begins with; "" when it lies elsewhere. */
static struct str entry_below(const char *dir, const char *at)
{
    size_t n = strlen(dir);
    if (strncmp(at, dir, n) != 0 || at[n] != '/')
        return (struct str){"", 0};
    return (struct str){at + n + 1, strcspn(at + n + 1, "/")};
}

static bool lacks_place(const struct agent *a, const struct agent_box *box, struct arena *mem, const char *dir)
{
    for (size_t i = 0; i < a->n_state; i++) {
        const char *there = in_home(mem, box->host_home, a->state[i].at);
        if (entry_below(dir, a->state[i].at).n && there && !box->exists(there))
            return true;
    }
    return false;
}

/* A directory of the host's configuration, read-only. */
static void show(struct command_words *w, const struct agent *a, const struct agent_box *box, const char *dir)
{
    const char *from = in_home(w->mem, box->host_home, dir), *to = in_home(w->mem, box->home, dir);
    if (!from || !to || !box->exists(from))
        return;
    if (!box->entries || !lacks_place(a, box, w->mem, dir)) {
        flag(w, "mount", arena_printf(w->mem, "%s:%s:ro", from, to));
        return;
    }
    const char **names = box->entries(from, w->mem);
    for (size_t i = 0; names && names[i]; i++) {
        const char *path = arena_printf(w->mem, "%s/%s", from, names[i]);
        bool own = false;
        for (size_t k = 0; k < a->n_state; k++)
            own = own || str_is(entry_below(dir, a->state[k].at), names[i]);
        if (!own && path && !strchr(names[i], ':') && box->exists(path))
            flag(w, "mount", arena_printf(w->mem, "%s:%s/%s:ro", path, to, names[i]));
    }
}

int agent_flags(const struct agent *a, const struct agent_box *box, struct arena *mem, const char ***ret, struct err *e)
{
    struct command_words w = {.mem = mem};
    if (!plain(box->state) || !plain(box->host_home) || !plain(box->home))
        return err_say(e, ERR_POLICY, "%s: the paths of state and home must be absolute and without \":\"", a->title);
    for (size_t i = 0; a->read_only && a->read_only[i]; i++)
        show(&w, a, box, a->read_only[i]);
    for (size_t i = 0; i < a->n_state; i++)
        flag(&w, "mount",
             arena_printf(mem, "%s/%s:%s", box->state, a->state[i].name, in_home(mem, box->home, a->state[i].at)));
    for (size_t i = 0; a->env && a->env[i]; i += 2) {
        const char *value =
            strncmp(a->env[i + 1], "~/", 2) == 0 ? in_home(mem, box->home, a->env[i + 1]) : a->env[i + 1];
        flag(&w, "env", arena_printf(mem, "%s=%s", a->env[i], value ? value : ""));
    }
    for (size_t i = 0; a->pass && a->pass[i]; i++) {
        size_t n = strlen(a->pass[i]);
        for (size_t k = 0; box->environ && box->environ[k]; k++)
            if (strncmp(box->environ[k], a->pass[i], n) == 0 && box->environ[k][n] == '=')
                flag(&w, "env", a->pass[i]);
    }
    for (size_t i = 0; a->hosts && a->hosts[i]; i++)
        flag(&w, "allow", a->hosts[i]);
    flag(&w, "guard-everyday", "guard");
    const char **end = arena_push(mem, &w.list, &w.n, sizeof *end);
    if (w.broken || !end)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot prepare the box of %s", a->title);
    *ret = w.list;
    return 0;
}
