/*
 * What agent_start.c, agent_keep.c and agent_login.c begin with: the definition, the places of an agent, its layers
 * and their locks. In this order, since a lock is on a layer that the definition names.
 */
#include "run/agent/starting.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "run/agent/agent_own.h"
#include "run/caches.h"
#include "run/options.h"

enum { KNOWN_ARENA = 32 << 20, SLUG_MAX = 200 };

static int definition(const char *name, struct arena *mem, struct agent *ret, struct err *e)
{
    agent_own_begin();
    return agent_find(name, mem, ret, e);
}

bool agent_start_known(const char *name)
{
    auto_arena struct arena *mem = arena_new(KNOWN_ARENA);
    const char *file;
    struct str text;
    struct err e;
    for (const struct agent_text *t = agent_texts; t->name; t++) {
        if (same(t->name, name))
            return true;
    }
    return mem && agent_own_read(name, mem, &file, &text, &e) != -ENOENT;
}

bool agent_start_owns(const char *name, const char *option)
{
    auto_arena struct arena *mem = arena_new(KNOWN_ARENA);
    struct agent a;
    if (!mem || definition(name, mem, &a, NULL) < 0)
        return false;
    for (size_t i = 0; a.start.own_options && a.start.own_options[i]; i++) {
        size_t n = strlen(a.start.own_options[i]);
        if (strncmp(option, a.start.own_options[i], n) == 0 && (!option[n] || option[n] == '='))
            return true;
    }
    return false;
}

bool agent_start_keys(const char *name, struct agent_keys *ret)
{
    auto_arena struct arena *mem = arena_new(KNOWN_ARENA);
    struct agent a;
    *ret = (struct agent_keys){.n = 0};
    if (!mem || definition(name, mem, &a, NULL) < 0 || !a.start.command || strlen(a.start.command[0]) >= AGENT_KEY)
        return false;
    snprintf(ret->program, sizeof ret->program, "%s", a.start.command[0]);
    for (size_t i = 0; a.pass && a.pass[i] && ret->n < AGENT_KEYS; i++) {
        if (getenv(a.pass[i]) && strlen(a.pass[i]) < AGENT_KEY)
            snprintf(ret->names[ret->n++], AGENT_KEY, "%s", a.pass[i]);
    }
    return true;
}

void starting_option(struct starting *s, const char *name, const char *value)
{
    struct pinfold_option *o = arena_push(s->mem, &s->options, &s->n_options, sizeof *o);
    if (o)
        *o = (struct pinfold_option){name, value};
}

bool starting_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/' || same(dir, "/"));
}

int starting_look(struct starting *s, const char *name, const struct pinfold_option *options, struct err *e)
{
    char real[PATH_MAX];
    int r = world_look(s->mem, NULL, &s->world, e);
    if (r == 0)
        r = definition(name, s->mem, &s->agent, e);
    if (r == 0 && !s->agent.start.command)
        r = err_say(e, ERR_POLICY, "agent '%s' is not started by name: its definition has no \"start:\"", name);
    if (r < 0)
        return r;
    s->workspace = s->world.cwd;
    for (const struct pinfold_option *o = options; o && o->name; o++) {
        if (same(o->name, "workspace") && o->value) {
            if (!realpath(o->value, real))
                return err_sys(e, ERR_POLICY, errno, "--workspace %s", o->value);
            s->workspace = arena_text(s->mem, real);
        }
    }
    if (!s->workspace)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    s->directory = starting_below(s->world.cwd, s->workspace) ? s->world.cwd : s->workspace;
    char *slug = arena_text(s->mem, s->directory);
    for (char *c = slug; c && *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '-';
    }
    s->slug = slug && strlen(slug) <= SLUG_MAX ? slug : NULL;
    char sum[65];
    sha256_hex(str_of(s->workspace), sum);
    s->layer = arena_printf(s->mem, "%s/.local/state/pinfold-agents/%s/%.*s", s->world.home, name, CACHES_HASH, sum);
    if (!s->layer)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    const char *live = arena_printf(s->mem, "%s/live", s->layer); /* agent-init-config makes a layer before any box */
    s->fresh = live && access(live, F_OK) < 0;
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        const struct agent_layer *l = &s->agent.start.layers[i];
        const char *named = l->variable ? getenv(l->variable) : NULL;
        s->box[i] = arena_printf(s->mem, "%s%s", s->world.home, l->at + 1);
        s->host[i] = named && named[0] == '/' && realpath(named, real) ? arena_text(s->mem, real) : s->box[i];
        if (!s->host[i] || strchr(s->host[i], ':') || strchr(s->box[i], ':') || strchr(s->layer, ':'))
            return err_say(e, ERR_POLICY, "%s: \"%s\" contains \":\", which a mount cannot; use another directory",
                           s->agent.title, s->host[i] ? s->host[i] : l->at);
    }
    s->live = -1;
    for (size_t i = 0; i < AGENT_LAYERS_MAX; i++) {
        s->layers.open[i].host = s->layers.open[i].box = s->layers.open[i].seeds = -1;
        for (size_t k = 0; k < AGENT_KEPT_MAX; k++)
            s->layers.open[i].files[k] = -ENOENT;
    }
    s->layers.agent = &s->agent;
    s->layers.directory = s->directory;
    return arena_failed(s->mem) ? err_sys(e, ERR_SYSTEM, ENOMEM, "agent") : 0;
}

static int open_in(const char *dir, const char *name, size_t i, struct err *e)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%zu", dir, name, i);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, ERR_SYSTEM, errno, "%s", path) : fd;
}

/* Where the host has a file of the layer; a file of the home itself lies in the directory if a variable names that. */
const char *starting_host_file(const struct starting *s, size_t i, const struct agent_kept *f)
{
    bool moved = !same(s->host[i], s->box[i]);
    return f->from && !moved ? arena_printf(s->mem, "%s%s", s->world.home, f->from + 1)
                             : arena_printf(s->mem, "%s/%s", s->host[i], f->name);
}

int starting_open(struct starting *s, struct err *e)
{
    int r = make_private_directories(s->layer, e);
    if (r < 0)
        return r;
    if (!s->lone)
        caches_note(s->layer, s->workspace);
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        const struct agent_layer *l = &s->agent.start.layers[i];
        struct agent_layer_open *o = &s->layers.open[i];
        (void)close_fd(o->box);
        (void)close_fd(o->seeds);
        if ((o->box = open_in(s->layer, "box", i, e)) < 0)
            return o->box;
        if ((o->seeds = open_in(s->layer, "seeds", i, e)) < 0)
            return o->seeds;
        for (size_t k = 0; k < l->n_files; k++) {
            if (s->lone) {
                o->files[k] = -ENOENT;
                continue;
            }
            const char *path = starting_host_file(s, i, &l->files[k]);
            int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
            o->files[k] = fd < 0 ? -errno : fd;
            if (fd < 0 && errno == ENOTDIR)
                o->files[k] = -ENOENT;
        }
    }
    return 0;
}

int starting_hold(const struct starting *s, const char *name, int how, int *ret, struct err *e)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", s->layer, name);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open %s", path);
    const int no = fd_lock(fd, how);
    if (no < 0) {
        (void)close(fd);
        return no == -EWOULDBLOCK ? no : err_sys(e, ERR_SYSTEM, -no, "cannot lock %s", path);
    }
    *ret = fd;
    return 0;
}

void starting_end(struct starting *s)
{
    for (size_t i = 0; i < AGENT_LAYERS_MAX; i++) {
        struct agent_layer_open *o = &s->layers.open[i];
        (void)close_fd(o->box);
        (void)close_fd(o->seeds);
        for (size_t k = 0; k < AGENT_KEPT_MAX; k++)
            (void)close_fd(o->files[k]);
    }
    buf_free(&s->shared);
    buf_free(&s->about);
    buf_free(&s->notes);
}

bool starting_logged_out(const struct starting *s)
{
    const char *mark = arena_printf(s->mem, "%s/" STARTING_LOGGED_OUT, s->layer);
    return !mark || access(mark, F_OK) == 0;
}

struct starting *starting_new(struct arena *mem)
{
    struct starting *s = mem ? arena_zero(mem, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->mem = mem;
    s->shared = s->about = s->notes = BUF(1 << 18);
    s->live = -1;
    for (size_t i = 0; i < AGENT_LAYERS_MAX; i++) {
        s->layers.open[i].box = s->layers.open[i].seeds = -1;
        for (size_t k = 0; k < AGENT_KEPT_MAX; k++)
            s->layers.open[i].files[k] = -1;
    }
    return s;
}

/* Files with keys that the box gets whole, and that the host has. */
void starting_secrets(const struct starting *s, struct buf *to, const char *before, const char *between,
                      const char *end)
{
    size_t n = 0;
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            const struct agent_kept *f = &s->agent.start.layers[i].files[k];
            const char *path = f->secret ? starting_host_file(s, i, f) : NULL;
            if (path && access(path, F_OK) == 0)
                buf_printf(to, "%s%s", n++ ? between : before, path);
        }
    }
    buf_text(to, n ? end : "");
}
