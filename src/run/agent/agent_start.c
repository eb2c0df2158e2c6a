/*
 * Agents by name: what of the person's home a box of one agent gets in this project, as options of pinfold.
 *
 *     ~/.local/state/pinfold-agents/NAME/PROJECT/   (PROJECT: the hash of its path; `project` says which)
 *         box0, box1 ...      the layer: what boxes have in place of ~/.claude
 *         seeds0, seeds1 ...  what was copied last of the host's (agents/layer.c)
 *         box0-apart0 ...     directories that lie in shared ones and stay in the layer
 *         lock, live          held while things are copied; while a box runs
 *         logged-out          is there after agent-logout (agent_init.c)
 *
 * Not in pinfold's own state, of which nothing can be mounted, and not moved by XDG_STATE_HOME. Every policy hides it but for what
 * is mounted (policy/own_files.c).
 */
#include "run/agent/agent_start.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/agent/agent_login.h"
#include "run/agent/starting.h"
#include "run/caches.h"
#include "run/options.h"
#include "sys/process.h"

enum { START_ARENA = 32 << 20, SOON_S = 300 };

/* ---- places ---- */

/* To look only, what is not there yet is left out: nothing is made for that. */
static void mount(struct starting *s, const char *from, const char *to)
{
    if (from && to && (!s->look_only || access(from, F_OK) == 0))
        starting_option(s, "mount", arena_printf(s->mem, "%s:%s", from, to));
}

/* ---- what is mounted ---- */

/* "projects/{slug}/" or "tmp/{project}/" for this directory; NULL when it cannot be named. */
static const char *expanded(struct starting *s, const char *name)
{
    const char *at = strstr(name, "{slug}"), *own = at ? s->slug : s->project;
    if (!at && !(at = strstr(name, "{project}")))
        return name;
    return own ? arena_printf(s->mem, "%.*s%s%s", (int)(at - name), name, own, strchr(at, '}') + 1) : NULL;
}

/* Of the host, made if it is missing: a session that begins in a box is to be found outside. */
static int shared_there(const char *path, bool dir, struct err *e)
{
    char parent[PATH_MAX];
    struct stat st;
    snprintf(parent, sizeof parent, "%s", path);
    if (!dir)
        *strrchr(parent, '/') = 0;
    int r = make_private_directories(parent, e);
    if (r < 0 || dir)
        return r;
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot share %s", path);
    return S_ISREG(st.st_mode) ? 0 : err_say(e, ERR_POLICY, "cannot share %s: it is not a regular file", path);
}

static int share(struct starting *s, size_t i, struct err *e)
{
    const struct agent_layer *l = &s->agent.start.layers[i];
    const char **places = NULL, **one;
    size_t n = 0;
    mount(s, arena_printf(s->mem, "%s/box%zu", s->layer, i), s->box[i]);
    int named = l->project && !s->lone ? project_find(s, i, e) : 0;
    if (named < 0)
        return named;
    if (l->project && s->project) { /* by it the agent in the box takes the same name */
        const char *marker = arena_printf(s->mem, "%s/%s/%s", l->project->below, s->project, l->project->marker);
        mount(s, arena_printf(s->mem, "%s/%s", s->host[i], marker),
              arena_printf(s->mem, "%s/%s:ro", s->box[i], marker));
        if ((one = arena_push(s->mem, &places, &n, sizeof *one)))
            *one = marker;
    }
    for (size_t k = 0; !s->lone && l->shared && l->shared[k]; k++) {
        const char *name = expanded(s, l->shared[k]);
        size_t length = name ? strlen(name) : 0;
        if (!name || strchr(name, ':')) {
            buf_text(&s->notes, "the path of this directory is too long for its sessions to be shared; they stay in "
                                "the layer of this project\n");
            continue;
        }
        bool dir = name[length - 1] == '/';
        const char *path = arena_printf(s->mem, "%s/%.*s", s->host[i], (int)(length - dir), name);
        int r = !path ? -ENOMEM : s->look_only ? 0 : shared_there(path, dir, e);
        if (r < 0)
            return r;
        /* The agent outside reads and writes there: a link would lead it to any file of the user's. */
        mount(s, path, arena_printf(s->mem, "%s/%.*s%s", s->box[i], (int)(length - dir), name, dir ? ":nolinks" : ""));
        buf_printf(&s->shared, "%s%s/%.*s", s->shared.n ? ", " : "", l->at, (int)(length - dir), name);
        if ((one = arena_push(s->mem, &places, &n, sizeof *one)))
            *one = name;
    }
    if (l->sessions && !s->lone)
        buf_printf(&s->shared, "%sconversations of this project in %s, carried over", s->shared.n ? ", " : "", l->at);
    for (size_t k = 0; !s->lone && l->apart && l->apart[k]; k++) {
        const char *name = expanded(s, l->apart[k]);
        if (!name)
            continue;
        size_t length = strlen(name) - (name[strlen(name) - 1] == '/');
        const char *path = arena_printf(s->mem, "%s/%.*s", s->host[i], (int)length, name);
        const char *own = arena_printf(s->mem, "%s/box%zu-apart%zu", s->layer, i, k);
        int r = !path || !own ? -ENOMEM : s->look_only ? 0 : make_private_directories(path, e);
        if (r == 0 && !s->look_only)
            r = make_private_directories(own, e);
        if (r < 0)
            return r;
        mount(s, own, arena_printf(s->mem, "%s/%.*s", s->box[i], (int)length, name));
    }
    /* A program that lies in the directory which the layer stands for, such as ~/.claude/local. */
    const char *slash = s->program.path ? strrchr(s->program.path, '/') : NULL;
    for (int k = 0; s->program.path && k < 2; k++, slash = strrchr(s->program.real, '/')) {
        const char *file = k ? s->program.real : s->program.path;
        size_t length = strlen(s->box[i]);
        if (!starting_below(file, s->box[i]) || !slash || (size_t)(slash - file) <= length)
            continue;
        int first = (int)strcspn(file + length + 1, "/");
        starting_option(
            s, "mount",
            arena_printf(s->mem, "%.*s:%.*s:ro", (int)length + 1 + first, file, (int)length + 1 + first, file));
        if ((one = arena_push(s->mem, &places, &n, sizeof *one)))
            *one = arena_printf(s->mem, "%.*s/", first, file + length + 1);
    }
    one = arena_push(s->mem, &places, &n, sizeof *one);
    s->layers.open[i].places = places;
    return one ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
}

static void variables(struct starting *s)
{
    const struct agent *a = &s->agent;
    for (size_t i = 0; i < a->start.n_layers; i++) {
        if (a->start.layers[i].variable)
            starting_option(s, "env", arena_printf(s->mem, "%s=%s", a->start.layers[i].variable, s->box[i]));
    }
    for (size_t i = 0; a->start.env && a->start.env[i]; i += 2)
        starting_option(s, "env", arena_printf(s->mem, "%s=%s", a->start.env[i], a->start.env[i + 1]));
    for (size_t i = 0; !s->session && a->pass && a->pass[i]; i++) {
        if (getenv(a->pass[i]))
            starting_option(s, "env", a->pass[i]);
    }
    const char *path = getenv("PATH"), *dir = s->program.path ? s->program.path : "";
    int n = !*dir || s->program.on_path ? 0 : (int)(strrchr(dir, '/') - dir);
    if (n || s->opens)
        starting_option(s, "env",
                        arena_printf(s->mem, "PATH=%s%s%.*s%s%s", s->opens ? s->opens : "", s->opens && n ? ":" : "", n,
                                     dir, path ? ":" : "", path ? path : ""));
}

/* ---- logins ---- */

static void judge_login(struct starting *s, size_t i, const struct agent_kept *f, int fd)
{
    struct buf *to = &s->notes;
    char *bytes = NULL;
    size_t n = 0;
    if (!f->login || fd < 0)
        return;
    if (agent_file_read(fd, &bytes, &n) == 0) { /* the person's own file */
        int64_t end = agent_json_expires(f, (struct str){bytes, n}), now = (int64_t)time(NULL);
        if (end && end < now + SOON_S && s->renewal_told)
            ; /* the notes say why it was not renewed */
        else if (end && end < now + SOON_S)
            buf_printf(
                to,
                "the login in %s %s, and a box cannot renew it: start '%s' once outside, or log in inside (that login "
                "stays in the layer of this project)\n",
                starting_host_file(s, i, f), end < now ? "has expired" : "expires within five minutes",
                s->agent.start.command[0]);
        else if (end)
            buf_printf(&s->about, "Login       %s, without its refresh token; it lasts %lld more minutes%s\n",
                       starting_host_file(s, i, f), (long long)(end - now) / 60,
                       f->renew ? " and is renewed outside" : "");
    }
    free(bytes);
}

static void judge_logins(struct starting *s)
{
    if (starting_logged_out(s)) {
        buf_printf(&s->about, "Login       none: it was removed from this project (agent-logout)\n");
        buf_printf(
            &s->notes,
            "boxes of this project do not get the login of %s, which agent-logout has removed; to bring it back: "
            "pinfold agent-init-config --auth %s\n",
            s->agent.title, s->agent.name);
        return;
    }
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            const struct agent_kept *f = &s->agent.start.layers[i].files[k];
            auto_fd int fd =
                f->login ? open(starting_host_file(s, i, f), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
            judge_login(s, i, f, fd);
        }
    }
}

/* ---- begin ---- */

static void tell_about(struct starting *s)
{
    const struct agent_start *st = &s->agent.start;
    buf_printf(&s->about, "Agent       %s%s: %s", s->agent.title,
               st->untried ? " (its definition was never tried with the real program)" : "", s->program.path);
    if (!same(s->program.path, s->program.real))
        buf_printf(&s->about, " (%s)", s->program.real);
    buf_char(&s->about, '\n');
    if (s->program.other)
        buf_printf(&s->about, "            another one, not used: %s\n", s->program.other);
    for (size_t i = 0; i < st->n_layers; i++) {
        buf_printf(&s->about, "Settings    copies of %s: ", s->host[i]);
        for (size_t k = 0; k < st->layers[i].n_files; k++)
            buf_printf(&s->about, "%s%s", k ? ", " : "", st->layers[i].files[k].name);
        buf_printf(&s->about, "\n            what boxes change of them stays in %s/box%zu\n", s->layer, i);
    }
    starting_secrets(s, &s->about, "Keys        as they are: ", ", ", "\n");
    buf_printf(&s->about, "Shared      %s\n",
               s->shared.n ? buf_cstr(&s->shared) : "nothing; sessions stay in the layer");
}

/* Without the network's rules the agent's own hosts mean nothing. */
static const char *net_said(const struct pinfold_option *o)
{
    const char *net = "allow";
    for (; o && o->name; o++)
        net = same(o->name, "net") && o->value ? o->value : net;
    return net;
}

static int words(struct starting *s, const struct agent_begin *ask, char ***ret, struct err *e)
{
    const struct agent_start *st = &s->agent.start;
    char **list = NULL, **one;
    size_t n = 0;
    if (ask->unattended && !st->unattended)
        return err_say(e, ERR_POLICY, "%s has no option that lets it work unattended", s->agent.title);
    for (size_t i = 0; st->command[i]; i++) {
        if ((one = arena_push(s->mem, &list, &n, sizeof *one)))
            *one = arena_text(s->mem, i ? st->command[i] : s->program.path);
    }
    for (size_t i = 0; ask->login && st->login[i]; i++) {
        if ((one = arena_push(s->mem, &list, &n, sizeof *one)))
            *one = arena_text(s->mem, st->login[i]);
    }
    for (size_t i = 0; ask->unattended && st->unattended[i]; i++) {
        if ((one = arena_push(s->mem, &list, &n, sizeof *one)))
            *one = arena_text(s->mem, st->unattended[i]);
    }
    for (size_t i = 0; ask->words && ask->words[i]; i++) {
        if ((one = arena_push(s->mem, &list, &n, sizeof *one)))
            *one = ask->words[i];
    }
    one = arena_push(s->mem, &list, &n, sizeof *one);
    *ret = list;
    return one && !arena_failed(s->mem) ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
}

static int bring_layers(struct starting *s, struct err *e)
{
    auto_fd int lock = -1;
    if (!s->lone)
        keep_renew(s);
    int r = starting_open(s, e);
    if (r == 0)
        r = starting_hold(s, "lock", LOCK_EX, &lock, e);
    if (r == 0 && s->live < 0)
        r = starting_hold(s, "live", LOCK_SH, &s->live, e);
    if (r == 0 && s->lone)
        r = login_fill(s, e);
    s->layers.no_logins = r == 0 && starting_logged_out(s);
    if (r == 0 && !brought_already(s)) {
        const size_t said = s->notes.n;
        r = agent_layers_do(&s->layers, AGENT_BRING, NULL, &s->notes, e);
        if (r == 0 && s->notes.n == said) /* what was not brought is said again */
            brought_note(s);
    }
    if (r == 0 && carried_at_all(s))
        carry_in(s);
    return r;
}

/* A session's box may have it of its image. */
static int find_program(struct starting *s, struct err *e)
{
    int r = agent_program_find(&s->agent, s->world.home, s->mem, &s->program, s->session ? NULL : e);
    if (r == 0 || !s->session)
        return r;
    s->program = (struct agent_program){0};
    return 0;
}

static int start_prepare(struct starting *s, const struct agent_begin *ask, struct agent_begun *ret, struct err *e)
{
    s->look_only = ask->look_only;
    s->layered = ask->layered;
    s->lone = ask->login;
    s->session = ask->session;
    int r = starting_look(s, ask->name, ask->options, e);
    if (s->lone && !s->look_only)
        ret->login = s; /* its place is removed with it */
    /* Later the start itself says it: nothing is made for a project any more. */
    if (r == 0 && !s->lone && (s->fresh || s->look_only))
        r = first_check(s, ask, e);
    if (r == 0 && s->lone)
        r = login_place(s, e);
    if (r == 0 && s->session && keep_is_kept(s))
        return 0;
    if (r == 0)
        r = find_program(s, e);
    for (size_t i = 0; r == 0 && i < s->agent.start.n_layers; i++)
        r = share(s, i, e);
    if (r == 0 && !ask->look_only)
        r = bring_layers(s, e);
    if (r == 0 && s->lone)
        r = login_open_door(s, e);
    if (r < 0)
        return r;
    variables(s);
    const char *net = net_said(ask->options);
    for (size_t i = 0; same(net, "allow") && s->agent.hosts && s->agent.hosts[i]; i++)
        starting_option(s, "allow", s->agent.hosts[i]);
    if (s->lone && (r = login_ready(s, ret, e)) < 0)
        return r;
    starting_option(s, "guard-everyday", "guard");
    starting_option(s, "allow-nested-userns", NULL);
    starting_option(s, NULL, NULL);
    if (s->session) {
        ret->session = s;
        ret->options = s->options;
        judge_logins(s);
        ret->notes = arena_str(s->mem, buf_view(&s->notes));
        ret->live = s->live;
        return arena_failed(s->mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "agent") : 0;
    }
    tell_about(s);
    if (s->program.other && s->fresh)
        buf_printf(&s->notes, "%s is started; another one is installed, too, and not used: %s\n", s->program.path,
                   s->program.other);
    judge_logins(s);
    r = words(s, ask, &ret->argv, e);
    if (r == 0 && !ask->look_only && !s->lone)
        r = keep_begin(s, ret, e);
    ret->options = s->options;
    ret->about = arena_str(s->mem, buf_view(&s->about));
    if (r == 0 && s->fresh && !s->lone && !ask->look_only)
        r = first_lines(s, ask, &ret->first, e);
    ret->notes = arena_str(s->mem, buf_view(&s->notes));
    ret->live = s->live;
    ret->carried = r == 0 && !ask->look_only && carried_at_all(s) ? s : NULL;
    return r < 0 ? r : arena_failed(s->mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "agent") : 0;
}

int agent_start_begin(const struct agent_begin *ask, struct agent_begun *ret, struct pinfold_error *error)
{
    struct err e = {0};
    struct arena *mem = arena_new(START_ARENA);
    struct starting *s = starting_new(mem);
    *ret = (struct agent_begun){.live = -1, .keeper = -1, .up = -1, .mem = mem};
    int r = s ? start_prepare(s, ask, ret, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "agent");
    if ((r == -EROFS || r == -EACCES) && s->world.home && access(s->world.home, W_OK) < 0)
        err_hint(&e, r,
                 "an agent's settings, sessions and login are in the home, which cannot be written here: set HOME to a "
                 "directory that you can write");
    if (s && !ret->login && !ret->session)
        starting_end(s);
    if (r == 0)
        return 0;
    if (s)
        (void)close_fd(s->live);
    ret->live = -1;
    agent_start_end(ret);
    return tell(error, &e, r);
}

const char *agent_start_after(struct agent_begun *b)
{
    char text[2048];
    const char *last = NULL;
    for (ssize_t n; b->up >= 0 && (n = recv(b->up, text, sizeof text, MSG_DONTWAIT)) > 0;) {
        text[n - 1] = 0;
        last = text[0] ? arena_text(b->mem, text) : NULL; /* "": renewed */
    }
    const char *carried = b->carried ? carry_out(b->carried) : NULL;
    return carried ? carried : last;
}

void agent_start_end(struct agent_begun *b)
{
    b->up = close_fd(b->up);
    while (b->keeper > 0 && waitpid(b->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    if (b->login)
        login_end(b->login);
    if (b->session)
        starting_end(b->session);
    (void)close_fd(b->live);
    (void)arena_free(b->mem);
    *b = (struct agent_begun){.live = -1, .keeper = -1, .up = -1};
}

int agent_start_keep(struct agent_begun *b, int pid, struct pinfold_error *error)
{
    struct err e = {0};
    auto_fd int session = sys_pidfd_open(pid, 0);
    int r = !b->session || session == -ESRCH ? 0
            : session < 0                    ? err_sys(&e, ERR_SYSTEM, -session, "cannot watch the session")
                                             : keep_session(b->session, session, &e);
    return r < 0 ? tell(error, &e, r) : 0;
}
