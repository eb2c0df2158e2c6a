/*
 * `pinfold agent-init-config` and `agent-logout` (for codex also codex-init-config and codex-logout): what boxes of this project have of the
 * agent's settings before the first one runs, and their login. Both change the layer alone, by the process of agents/layer.c, which can
 * reach nothing else; the person's own files are only read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/agent/starting.h"
#include "run/options.h"

enum { INIT_ARENA = 32 << 20, SAID_MAX = 1 << 18 };

static const char note[] = "# Where you are running\n"
                           "\n"
                           "You are running inside a sandbox (pinfold): a safe and auditable place to write code in, "
                           "with guardrails for network and files.\n"
                           "\n"
                           "- Files: the project is writable, except for guarded names such as `.git/hooks`. The rest "
                           "is read-only, and credentials are hidden.\n"
                           "  A refusal is the policy of this sandbox. Do not look for a way around it: say what you "
                           "need, and the person can allow it.\n"
                           "- Network: only hosts that the policy allows.\n"
                           "- Persistence: `%s` is kept for this project. What you change there is there in its next "
                           "sandbox, and not outside.\n"
                           "- Tools: those of this machine. For structural search and rewrites use ast-grep "
                           "(`ast-grep`, or `sg`) where it is installed;\n"
                           "  more tools may be added over time.\n";

static const struct agent_kept *file_at(const struct starting *s, size_t i, size_t k)
{
    return &s->agent.start.layers[i].files[k];
}

/* Of a program that npm has installed, as its package says; NULL: not known. Nothing is started for that. */
static const char *agent_version(struct starting *s)
{
    static char text[65536];
    char at[PATH_MAX];
    if (agent_program_find(&s->agent, s->world.home, s->mem, &s->program, NULL) < 0 || !s->program.real)
        return NULL;
    snprintf(at, sizeof at, "%s", s->program.real);
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at || (size_t)(slash - at) + sizeof "/package.json" > sizeof at)
            return NULL;
        strcpy(slash, "/package.json");
        auto_fd int fd = open(at, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        *slash = 0;
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (n < 0)
            continue;
        text[n] = 0;
        const char *version = strstr(text, "\"version\"");
        version = version ? version + strlen("\"version\"") : "";
        version += strspn(version, " \t\r\n:");
        size_t length = *version == '"' ? strcspn(version + 1, "\"\n") : 0;
        return length ? arena_printf(s->mem, "%.*s", (int)length, version + 1) : NULL;
    }
    return NULL;
}

/* Some programs have changed where they look: what is written is for the one that is installed. */
static void choose_texts(struct starting *s, struct buf *said)
{
    const char *version = NULL, *since = NULL;
    bool looked = false;
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            struct agent_kept *f = &s->agent.start.layers[i].files[k];
            if (!f->since)
                continue;
            if (!looked)
                version = agent_version(s);
            looked = true;
            since = f->since;
            if (version && strverscmp(version, f->since) >= 0)
                f->text = f->since_text;
        }
    }
    if (looked && !version)
        buf_printf(said, "it is not known which %s is installed: settings are those of versions before %s\n",
                   s->agent.title, since);
}

/* The note names the directory that it lies in. False: the definition has nothing to write. */
static bool compose(struct starting *s)
{
    bool any = false;
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            const struct agent_kept *f = file_at(s, i, k);
            any = any || f->text || f->since_text || f->note;
            if (f->note && !s->layers.note)
                s->layers.note = arena_printf(s->mem, note, s->agent.start.layers[i].at);
        }
    }
    return any;
}

/* Before anything is written: is there a login, and can it be read? */
static int has_login(struct starting *s, struct err *e)
{
    const struct agent_start *st = &s->agent.start;
    const char *missing = NULL;
    for (size_t i = 0; i < st->n_layers; i++) {
        for (size_t k = 0; k < st->layers[i].n_files; k++) {
            const struct agent_kept *f = file_at(s, i, k);
            int fd = s->layers.open[i].files[k];
            if (!f->login || (!f->blank && !f->secret))
                continue;
            if (fd >= 0)
                return 0;
            const char *path = starting_host_file(s, i, f);
            if (fd != -ENOENT)
                return err_sys(e, ERR_POLICY, -fd, "cannot read %s; nothing was changed", path ? path : f->name);
            missing = missing ? missing : path;
        }
    }
    if (!missing)
        return err_say(e, ERR_POLICY, "the login of %s is in no file that pinfold knows; nothing was changed",
                       s->agent.title);
    auto_buf struct buf words = BUF(4096);
    for (size_t i = 0; st->login && st->login[i]; i++)
        buf_printf(&words, " %s", st->login[i]);
    return err_say(e, ERR_POLICY, "this machine has no login of %s (%s); log in first, outside: %s%s", s->agent.title,
                   missing, st->command[0], buf_cstr(&words));
}

static int import(struct starting *s, struct buf *said, struct err *e)
{
    int r = agent_layers_do(&s->layers, AGENT_IMPORT, NULL, said, e);
    if (r == -EBADMSG)
        return err_say(e, ERR_POLICY,
                       "the login of %s on this machine cannot be read: it must be a regular file with a JSON object, "
                       "of 16 MiB at "
                       "most; nothing was changed",
                       s->agent.title);
    if (r < 0)
        return r;
    const char *mark = arena_printf(s->mem, "%s/" STARTING_LOGGED_OUT, s->layer);
    if (!mark || (unlink(mark) < 0 && errno != ENOENT))
        return err_sys(e, ERR_SYSTEM, mark ? errno : ENOMEM, "cannot remove the mark of agent-logout in %s", s->layer);
    return 0;
}

/* What a person asked for. */
struct agent_asked {
    const char *name;             /* of the agent */
    const char *workspace, *from; /* adopt */
    bool auth, force;             /* init */
};
typedef int asked_fn(struct starting *s, const struct agent_asked *w, struct buf *said, struct err *e);

/* What was done, in words that the caller frees, or the error. */
static int do_asked(asked_fn *what, const struct agent_asked *w, char **ret, struct pinfold_error *error)
{
    struct err e = {0};
    auto_arena struct arena *mem = arena_new(INIT_ARENA);
    auto_buf struct buf said = BUF(SAID_MAX);
    struct starting *s = starting_new(mem);
    int r = s ? what(s, w, &said, &e) : err_sys(&e, ERR_SYSTEM, ENOMEM, "agent");
    if (s)
        starting_end(s);
    return r < 0 ? tell(error, &e, r) : give(&said, ret, error);
}

/* The agent's layers, open and nobody else's until `lock` is closed. */
static int hold_layers(struct starting *s, const char *name, const struct pinfold_option *options, int *lock,
                       struct err *e)
{
    int r = starting_look(s, name, options, e);
    if (r == 0)
        r = starting_open(s, e);
    return r == 0 ? starting_hold(s, "lock", LOCK_EX, lock, e) : r;
}

static int write_settings(struct starting *s, const struct agent_asked *w, struct buf *said, struct err *e)
{
    auto_fd int lock = -1;
    int r = starting_look(s, w->name, NULL, e);
    if (r == 0 && !compose(s) && !w->auth)
        r = err_say(e, ERR_POLICY, "pinfold has no settings for %s; its login is brought by --auth", s->agent.title);
    if (r == 0)
        r = starting_open(s, e);
    if (r == 0 && w->auth)
        r = has_login(s, e);
    if (r == 0)
        r = starting_hold(s, "lock", LOCK_EX, &lock, e);
    s->layers.force = w->force;
    if (r == 0)
        brought_forget(s);
    if (r == 0)
        choose_texts(s, said);
    if (r == 0 && w->auth)
        r = import(s, said, e);
    /* What the person has comes first, as at a start. */
    s->layers.no_logins = true;
    if (r == 0)
        r = agent_layers_do(&s->layers, AGENT_BRING, NULL, said, e);
    if (r == 0)
        r = agent_layers_do(&s->layers, AGENT_INIT, NULL, said, e);
    if (r == 0)
        buf_printf(said, "for boxes of %s; files of this machine were only read\n", s->workspace);
    return r;
}

int agent_start_init(const char *name, bool auth, bool force, char **ret, struct pinfold_error *error)
{
    const struct agent_asked w = {.name = name, .auth = auth, .force = force};
    return do_asked(write_settings, &w, ret, error);
}

/* In place of the person's own files, `from`'s: a stranger filled it, so nothing is opened over a link. */
static int open_theirs(struct starting *s, const char *from, struct err *e)
{
    auto_fd int dir = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open '%s'", from);
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            int *at = &s->layers.open[i].files[k];
            (void)close_fd(*at);
            *at = i == 0 ? agent_file_open(dir, file_at(s, i, k)->name, false) : -ENOENT;
        }
    }
    return 0;
}

static int adopt_settings(struct starting *s, const struct agent_asked *w, struct buf *said, struct err *e)
{
    const struct pinfold_option options[] = {{"workspace", w->workspace}, {NULL, NULL}};
    auto_fd int lock = -1;
    int r = hold_layers(s, w->name, options, &lock, e);
    if (r == 0)
        brought_forget(s);
    /* What the person has comes first, as at a start. */
    s->layers.no_logins = true;
    if (r == 0)
        r = agent_layers_do(&s->layers, AGENT_BRING, NULL, said, e);
    if (r == 0)
        r = open_theirs(s, w->from, e);
    return r == 0 ? agent_layers_do(&s->layers, AGENT_ADOPT, NULL, said, e) : r;
}

int agent_start_adopt(const char *name, const char *workspace, const char *from, char **ret,
                      struct pinfold_error *error)
{
    const struct agent_asked w = {.name = name, .workspace = workspace, .from = from};
    return do_asked(adopt_settings, &w, ret, error);
}

static int remove_logins(struct starting *s, const struct agent_asked *w, struct buf *said, struct err *e)
{
    auto_fd int lock = -1, mark = -1;
    int r = hold_layers(s, w->name, NULL, &lock, e);
    if (r == 0)
        r = starting_hold(s, STARTING_LOGGED_OUT, LOCK_SH, &mark, e); /* makes the file */
    if (r == 0)
        brought_forget(s);
    if (r == 0)
        r = agent_layers_do(&s->layers, AGENT_LOGOUT, NULL, said, e);
    if (r == 0)
        buf_printf(said,
                   "%sboxes of %s get no login of %s until: pinfold agent-init-config --auth %s; this machine's own "
                   "login stays\n",
                   said->n ? "" : "there was no login to remove; ", s->workspace, s->agent.title, s->agent.name);
    return r;
}

int agent_start_logout(const char *name, char **ret, struct pinfold_error *error)
{
    const struct agent_asked w = {.name = name};
    return do_asked(remove_logins, &w, ret, error);
}
