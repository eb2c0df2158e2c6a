/*
 * The sessions of an agent that keeps them in one place for all projects: carried to the box before it starts, and back after it has ended;
 * also what a box has left whose pinfold was killed. Processes of agents/carry.c do it, with the layer's `lock` held here.
 */
#include "run/agent/starting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "backends/tools/tool.h"
#include "base/fd.h"
#include "run/caches.h"

#define OPENCODE_DATABASE "opencode.db"

bool carried_at_all(const struct starting *s)
{
    bool any = false;
    for (size_t i = 0; i < s->agent.start.n_layers; i++)
        any |= s->agent.start.layers[i].sessions != NULL;
    return any && !s->lone;
}

static int carry_sqlite(struct err *e)
{
    auto_arena struct arena *mem = arena_new(1 << 16);
    int fd = -1;
    int r = mem ? tool_helper(mem, "pinfold-sqlite", NULL, &fd, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    if (r == -ENOENT)
        (void)err_hint(e, r, "install all of pinfold; it is built where libsqlite3-dev is");
    return r < 0 ? r : fd;
}

static bool has_database(int dir)
{
    struct stat st;
    return fstatat(dir, OPENCODE_DATABASE, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Before it was started outside there is no database to add to: it makes its own. */
static int carry_database(const struct starting *s, int inside, int outside, bool out, struct err *e)
{
    if (!has_database(outside) || (out && !has_database(inside)))
        return 0;
    const struct agent_database_carrying ask = {.from = out ? inside : outside,
                                                .to = out ? outside : inside,
                                                .from_host = !out,
                                                .with_schema = !out && !has_database(inside),
                                                .name = OPENCODE_DATABASE,
                                                .workspace = s->workspace};
    int r = agent_database_carry(&ask, carry_sqlite, e);
    return r < 0 ? err_wrap(e, r, "the conversations of this project were not carried %s", out ? "out" : "in") : 0;
}

static int carry_layer(const struct starting *s, size_t i, bool out, struct buf *said, struct err *e)
{
    struct agent_carried done;
    const bool database = same(s->agent.start.layers[i].sessions, "opencode");
    const char *box = arena_printf(s->mem, "%s/box%zu", s->layer, i);
    auto_fd int inside = box ? open(box, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (inside < 0)
        return err_sys(e, ERR_SYSTEM, errno, "%s", box ? box : "layer");
    auto_fd int outside = open(s->host[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (outside < 0 && out && !database && errno == ENOENT) { /* the agent was never started outside */
        int r = make_private_directories(s->host[i], e);
        if (r < 0)
            return r;
        outside = open(s->host[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (outside < 0)
        return errno == ENOENT ? 0 : err_sys(e, ERR_SYSTEM, errno, "%s", s->host[i]);
    if (database)
        return carry_database(s, inside, outside, out, e);
    const struct agent_carrying ask = {.from = out ? inside : outside,
                                       .to = out ? outside : inside,
                                       .workspace = s->workspace,
                                       .shown = out ? s->host[i] : "the box"};
    int r = agent_carry(&ask, &done, e);
    if (r == 0 && done.large)
        buf_printf(said, "%u session%s of %s %s larger than 16 MiB and stay%s %s\n", done.large,
                   done.large == 1 ? "" : "s", s->agent.title, done.large == 1 ? "is" : "are",
                   done.large == 1 ? "s" : "", out ? "in the layer of this project" : "outside");
    return r;
}

static void carry_way(struct starting *s, bool out, struct buf *said)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        struct err e = {0};
        if (s->agent.start.layers[i].sessions && carry_layer(s, i, out, said, &e) < 0)
            buf_printf(said, "%s\n", e.text);
    }
}

void carry_in(struct starting *s)
{
    carry_way(s, true, &s->notes);
    carry_way(s, false, &s->notes);
}

const char *carry_out(struct starting *s)
{
    struct err e = {0};
    auto_buf struct buf said = BUF(1 << 16);
    auto_fd int lock = -1;
    if (starting_hold(s, "lock", LOCK_EX, &lock, &e) < 0)
        return arena_text(s->mem, e.text);
    carry_way(s, true, &said);
    if (said.n && said.p[said.n - 1] == '\n')
        said.p[said.n - 1] = 0;
    return said.n ? arena_text(s->mem, buf_cstr(&said)) : NULL;
}
