/*
 * The library's calls about agents: the list, command lines, and logins for a session. They only look and say;
 * agent_start.c is what starts one.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/tools/tool.h"
#include "run/agent/agent_own.h"
#include "run/agent/agent_program.h"
#include "run/agent/starting.h"
#include "run/direct.h"
#include "run/report.h"
#include "run/world.h"

enum { AGENT_ARENA = 8 << 20, MAX_ENTRIES = 64 };

extern char **environ;

static int begin_listing(const struct pinfold_agent_options *from, struct pinfold_agent_options *o,
                         struct arena **ret_mem, struct agent *a, struct err *e)
{
    int r = take_options(o, sizeof *o, from, from ? from->size : 0, e);
    *ret_mem = r == 0 ? arena_new(AGENT_ARENA) : NULL;
    if (r == 0 && !*ret_mem)
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    agent_own_begin();
    return r == 0 ? agent_find(o->agent, *ret_mem, a, e) : r;
}

/* ---- list ---- */

struct agent_login {
    bool wanted, there; /* wanted: the definition has a file or a variable for it */
};

/* A file of the host's home that a session's login is copied from. */
static void put_login_file(struct json *j, const char *home, const char *from, const char *name,
                           struct agent_login *login)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s/%s", home, from + 1, name); /* from: "~/..." */
    login->wanted = true;
    login->there |= n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
    n = snprintf(path, sizeof path, "%s/%s", from, name);
    if (n > 0 && (size_t)n < sizeof path)
        json_text(j, NULL, path);
}

static void put_login(struct json *j, const struct agent *a, const char *home)
{
    struct agent_login login = {0};
    json_array(j, "login_files");
    for (size_t i = 0; i < a->n_state; i++) {
        const struct agent_state *s = &a->state[i];
        for (size_t k = 0; s->from[AGENT_LINUX] && k < s->n_databases; k++)
            put_login_file(j, home, s->from[AGENT_LINUX], s->databases[k].name, &login);
        for (size_t k = 0; s->from[AGENT_LINUX] && k < s->n_files; k++) {
            if (s->files[k].each_time)
                put_login_file(j, home, s->from[AGENT_LINUX], s->files[k].name, &login);
        }
    }
    json_array_end(j);
    json_array(j, "login_variables");
    for (size_t i = 0; a->pass && a->pass[i]; i++) {
        if (strstr(a->pass[i], "KEY") || strstr(a->pass[i], "TOKEN"))
            json_text(j, NULL, a->pass[i]);
        login.there |= getenv(a->pass[i]) != NULL;
    }
    json_array_end(j);
    json_text(j, "login", !login.wanted ? "none" : login.there ? "there" : "missing");
}

/* Where the program is on this machine, or a sentence that says where it was looked for and how to install it. */
static void put_program(struct json *j, const struct agent *a, const char *home, struct arena *mem)
{
    struct agent_program found = {0};
    struct err e = {0};
    json_text(j, "program", a->command ? a->command[0] : a->start.command[0]);
    const bool there = agent_program_find(a, home, mem, &found, &e) == 0;
    json_text_or_null(j, "path", found.path);
    json_bool(j, "on_path", found.on_path);
    json_text_or_null(j, "not_installed", there ? NULL : e.text);
}

static void put_agent(struct json *j, const struct agent *a, const char *home, struct arena *mem)
{
    json_object(j, NULL);
    json_text(j, "name", a->name);
    json_text(j, "title", a->title);
    json_array(j, "state");
    for (size_t i = 0; i < a->n_state; i++)
        json_text(j, NULL, a->state[i].at);
    json_array_end(j);
    json_array(j, "servers");
    for (size_t i = 0; a->servers && a->servers[i]; i++)
        json_text(j, NULL, a->servers[i]);
    json_array_end(j);
    json_bool(j, "prompt", a->prompt != NULL);
    json_bool(j, "start", a->start.command != NULL);
    json_bool(j, "profile", a->profile != NULL);
    json_bool(j, "model", a->model != NULL);
    json_bool(j, "resume", a->resume != NULL);
    json_text(j, "response", a->response ? "option" : a->response_text ? "prompt" : "none");
    put_program(j, a, home, mem);
    put_login(j, a, home);
    json_object_end(j);
}

struct wrong_agent {
    const char *name, *error;
};
struct wrong_agents { /* definitions that cannot be used; the others can */
    struct arena *mem;
    struct wrong_agent *list;
    size_t n;
};

static int list_one(struct json *j, const char *name, const char *home, struct wrong_agents *wrong, struct err *e)
{
    auto_arena struct arena *mem = arena_new(AGENT_ARENA);
    struct agent a;
    int r = mem ? agent_find(name, mem, &a, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    if (r == 0)
        put_agent(j, &a, home, mem);
    if (r == 0 || e->kind == ERR_SYSTEM)
        return r;
    struct wrong_agent *one = arena_push(wrong->mem, &wrong->list, &wrong->n, sizeof *one);
    if (one)
        *one = (struct wrong_agent){arena_text(wrong->mem, name), arena_text(wrong->mem, e->text)};
    *e = (struct err){0};
    return arena_failed(wrong->mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "agent") : 0;
}

static bool is_built_in(const char *name)
{
    for (const struct agent_text *t = agent_texts; t->name; t++) {
        if (same(t->name, name))
            return true;
    }
    return false;
}

int pinfold_agent_list_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    struct pinfold_report *report = report_new();
    auto_arena struct arena *mem = arena_new(AGENT_ARENA);
    struct world w;
    struct err e = {0};
    if (!report)
        return report_give(NULL, 0, &e, ret, error);
    struct json j = JSON_TREE(&report->values);
    int r = mem ? world_look(mem, NULL, &w, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "agent");
    const char **own = r == 0 ? agent_own_names(mem) : NULL;
    agent_own_begin();
    json_object(&j, NULL);
    json_array(&j, "agents");
    struct wrong_agents wrong = {.mem = mem};
    for (const struct agent_text *t = agent_texts; r == 0 && t->name; t++)
        r = list_one(&j, t->name, w.home, &wrong, &e);
    for (size_t i = 0; r == 0 && own && own[i]; i++) {
        if (!is_built_in(own[i]))
            r = list_one(&j, own[i], w.home, &wrong, &e);
    }
    json_array_end(&j);
    json_array(&j, "wrong");
    for (size_t i = 0; r == 0 && i < wrong.n; i++) {
        json_object(&j, NULL);
        json_text(&j, "name", wrong.list[i].name);
        json_text(&j, "error", wrong.list[i].error);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    return report_give(report, r, &e, ret, error);
}

/* ---- prepare ---- */

static bool is_on_host(const char *path)
{
    return access(path, F_OK) == 0;
}

static const char **entries(const char *path, struct arena *mem)
{
    const char **list = NULL, **one;
    size_t n = 0;
    DIR *all = opendir(path);
    for (struct dirent *d; all && n < MAX_ENTRIES && (d = readdir(all));) {
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            (one = arena_push(mem, &list, &n, sizeof *one)))
            *one = arena_text(mem, d->d_name);
    }
    if (all)
        (void)closedir(all);
    if (list)
        qsort(list, n, sizeof *list, text_order);
    return list && arena_push(mem, &list, &n, sizeof *one) ? list : NULL;
}

static void put_lines(struct json *j, const char *name, struct str lines)
{
    json_array(j, name);
    while (lines.n)
        json_str(j, NULL, str_until(&lines, '\n'));
    json_array_end(j);
}

static int answer(const struct pinfold_agent_options *o, const struct agent_synced *done, const char **flags,
                  char **ret, struct pinfold_error *error)
{
    auto_buf struct buf out = BUF(1u << 20);
    struct json j = JSON(&out);
    json_object(&j, NULL);
    json_text(&j, "agent", o->agent);
    json_text(&j, "state", o->state);
    put_lines(&j, "first", buf_view(&done->first));
    put_lines(&j, "refreshed", buf_view(&done->refreshed));
    put_lines(&j, "missing", buf_view(&done->missing));
    json_array(&j, "options");
    for (size_t i = 0; flags[i]; i += 2) {
        json_object(&j, NULL);
        json_text(&j, "name", flags[i]);
        json_text(&j, "value", flags[i + 1]);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    return give(&out, ret, error);
}

/* All in one piece of memory: the list, then its texts. */
static struct pinfold_option *flags_as_options(const char **flags)
{
    size_t n = 0, bytes = 0;
    for (; flags[n]; n++)
        bytes += strlen(flags[n]) + 1;
    struct pinfold_option *list = malloc((n / 2 + 1) * sizeof *list + bytes);
    char *to = list ? (char *)(list + n / 2 + 1) : NULL;
    for (size_t i = 0; list && i < n; i++) {
        size_t k = strlen(flags[i]) + 1;
        memcpy(to, flags[i], k);
        *(i % 2 ? &list[i / 2].value : &list[i / 2].name) = to;
        to += k;
    }
    if (list)
        list[n / 2] = (struct pinfold_option){NULL, NULL};
    return list;
}

static int open_sqlite(struct err *e)
{
    auto_arena struct arena *mem = arena_new(1 << 16);
    int fd = -1;
    int r = mem ? tool_helper(mem, "pinfold-sqlite", NULL, &fd, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    if (r == -ENOENT)
        (void)err_hint(
            e, r,
            "SQLite databases are copied by this program: install all of pinfold; it is built where libsqlite3-dev is");
    return r < 0 ? r : fd;
}

/* Logins that end soon are renewed on the host, by their owner; if that fails the session gets what there is. */
static void renew_logins(struct arena *mem, const char *agent)
{
    struct err ignored;
    agent_own_reader *const own = agent_own; /* definitions of sessions stay those that came with pinfold */
    struct starting *s = starting_new(mem);
    if (s && starting_look(s, agent, NULL, &ignored) == 0) {
        (void)agent_program_find(&s->agent, s->world.home, mem, &s->program, &ignored);
        keep_renew(s);
    }
    if (s)
        starting_end(s);
    agent_own = own;
}

int pinfold_agent_prepare(const struct pinfold_agent_options *options, struct pinfold_option **ret_options, char **ret,
                          struct pinfold_error *error)
{
    struct pinfold_agent_options o;
    auto_arena struct arena *mem = NULL;
    struct agent_synced done = {0};
    struct agent a;
    struct world w;
    struct err e = {0};
    const char **flags = NULL;
    int r = begin_listing(options, &o, &mem, &a, &e);
    if (r == 0)
        r = world_look(mem, NULL, &w, &e);
    if (r == 0 && !o.state)
        r = err_say(&e, ERR_POLICY, "%s: no directory for its state was given", a.title);
    char state[PATH_MAX];
    if (r == 0) /* a login is put there */
        r = world_judge(w.state, "the agent's state", o.state, state, NULL, &e);
    if (r == 0)
        o.state = state;
    if (r == 0) {
        const struct agent_box box = {.state = o.state,
                                      .host_home = w.home,
                                      .home = o.home ? o.home : w.home,
                                      .exists = is_on_host,
                                      .entries = entries,
                                      .environ = (const char *const *)environ};
        r = agent_flags(&a, &box, mem, &flags, &e);
    }
    if (r == 0 && a.start.command)
        renew_logins(mem, o.agent);
    if (r == 0)
        r = agent_sync(&a, AGENT_LINUX, w.home, o.state, open_sqlite, &done, &e);
    struct pinfold_option *list = r == 0 && ret_options ? flags_as_options(flags) : NULL;
    if (r == 0 && ret_options && !list)
        r = err_sys(&e, ERR_SYSTEM, ENOMEM, "agent");
    if (r < 0)
        (void)tell(error, &e, r);
    else if (ret)
        r = answer(&o, &done, flags, ret, error);
    if (r == 0 && ret_options)
        *ret_options = list;
    else
        free(list);
    agent_synced_free(&done);
    return r;
}

/* ---- argv ---- */

int pinfold_agent_argv(const struct pinfold_agent_options *options, char ***ret, struct pinfold_error *error)
{
    struct pinfold_agent_options o;
    auto_arena struct arena *mem = NULL;
    struct agent a;
    struct err e = {0};
    const char **argv = NULL;
    size_t n = 0, bytes = 0;
    int r = begin_listing(options, &o, &mem, &a, &e);
    if (r == 0) {
        const struct agent_ask ask = {.home = o.home,
                                      .directory = o.directory,
                                      .prompt = o.prompt,
                                      .profile = o.profile,
                                      .model = o.model,
                                      .response = o.response,
                                      .resume = o.resume != 0,
                                      .unattended = o.unattended != 0};
        r = agent_argv(&a, &ask, mem, &argv, &e);
    }
    if (r < 0)
        return tell(error, &e, r);
    for (; argv[n]; n++)
        bytes += strlen(argv[n]) + 1;
    char **list = malloc((n + 1) * sizeof *list + bytes);
    if (!list)
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "agent"));
    char *to = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        list[i] = to;
        to = stpcpy(to, argv[i]) + 1;
    }
    list[n] = NULL;
    *ret = list;
    return 0;
}
