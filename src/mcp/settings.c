/*
 * Checks the paths of an agent's own MCP servers in its settings and translates them to the box's. The agent runs in
 * the box, where a path of this machine may be missing or be another file.
 */
#include "mcp/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "mcp/config.h"

#define MAX_SETTINGS      (4u << 20)
#define MAX_SETTINGS_TOLD 64

struct file {
    struct settings *all;
    const char *agent, *name; /* as the definition has it: "~/.codex/config.toml" */
    bool own;                 /* a copy of the session's */
};

static bool is_same(const struct pinfold_value *box, const char *host)
{
    struct stat st;
    return stat(host, &st) == 0 && (long long)st.st_dev == answer_number(box, "device") &&
           (long long)st.st_ino == answer_number(box, "inode");
}

enum stands { STANDS_NOT, STANDS_OTHER, STANDS_SAME };

/* What the box has at `path`: nothing, something of its own, or what the host has at `host`. */
static enum stands stands(const struct file *f, const char *path, const char *host)
{
    struct pinfold_error error = {0};
    auto_report struct pinfold_report *report = NULL;
    if (pinfold_file_where_report(f->all->session, path, &report, &error) < 0)
        return STANDS_NOT;
    const struct pinfold_value *at = pinfold_report_value(report);
    if (same(answer_text(at, "type"), "none"))
        return STANDS_NOT;
    /* Another thing of that name is an image's own; without an image it is what hides the host's. */
    return is_same(at, host) ? STANDS_SAME : f->all->image ? STANDS_OTHER : STANDS_NOT;
}

/* For the person, with the names of both sides. */
static void tell(const struct file *f, const char *server, const char *place, const char *host, const char *box)
{
    auto_buf struct buf line = BUF(1u << 16);

    if (f->all->lines++ >= MAX_SETTINGS_TOLD)
        return;
    buf_printf(&line, "%s's MCP server '%s' (%s in %s): %s ", f->agent, server, place, f->name, host);
    if (!box)
        buf_printf(&line, "is not in the box; make it available with --ro %s", host);
    else if (f->own)
        buf_printf(&line, "is %s in the box, and was changed to that in the session's copy", box);
    else
        buf_printf(&line,
                   "is %s in the box; the file is the project's own and stays: --ro %s gives the box that name, too",
                   box, host);
    job_tell(f->all->job, buf_cstr(&line));
}

/* For the client and the model. A file of the project may be a box's work: what it hears does not depend on the host. */
static void note(const struct file *f, const char *server, const char *place, const char *box)
{
    auto_buf struct buf line = BUF(1u << 16);
    json_t *told = f->all->told;

    if (json_array_size(told) >= MAX_SETTINGS_TOLD)
        return;
    buf_printf(&line, "MCP server '%s': %s in %s names a path that is not in the box", server, place, f->name);
    if (!box)
        job_say(f->all->job, SAY_WARNING, buf_cstr(&line));
    (void)json_array_append_new(told, json_pack("{s:s,s:s,s:s,s:s?,s:s}", "server", server, "file", f->name, "place",
                                                place, "path", box, "done", box ? "translated" : "missing"));
}

/* One path of a text. True: `to` has another one instead. */
static bool one_path(const struct file *f, const char *server, const char *place, const char *path, struct buf *to)
{
    struct pinfold_error error = {0};
    struct stat st;
    char *box = NULL;
    enum stands here = stands(f, path, path);
    bool is_here = lstat(path, &st) == 0;

    if (here == STANDS_SAME)
        return false;
    bool moves = is_here && pinfold_path_to_box(f->all->session, path, &box, &error) == 0 && !same(box, path) &&
                 stands(f, box, path) == STANDS_SAME;
    if (is_here && (moves || here == STANDS_NOT))
        tell(f, server, place, path, moves ? box : NULL);
    if (f->own ? moves || (is_here && here == STANDS_NOT) : here == STANDS_NOT)
        note(f, server, place, moves && f->own ? box : NULL);
    if (moves && f->own)
        buf_text(to, box);
    free(box);
    return moves && f->own;
}

/* Where a path may begin within a text: at its start, or behind one of these, as in --root=/a, file:///a, /a:/b. */
static bool begins(struct str text, size_t at)
{
    if (text.p[at] != '/')
        return false;
    if (at >= 7 && memcmp(text.p + at - 7, "file://", 7) == 0)
        return true;
    return (at == 0 || strchr("=:,; \"'", text.p[at - 1])) && (at + 1 == text.n || text.p[at + 1] != '/');
}

static bool each_text(void *ctx, const char *server, const char *place, const char *text, struct buf *to)
{
    const struct file *f = ctx;
    auto_arena struct arena *mem = arena_new(1u << 20);
    struct str all = str_of(text);
    bool changed = false;

    if (!mem || all.n > 1u << 16)
        return false;
    if (text[0] == '/' && !strpbrk(text, ":,;")) /* the plain case: a space belongs to the path */
        return one_path(f, server, place, text, to);
    for (size_t at = 0; at < all.n;) {
        if (!begins(all, at)) {
            buf_char(to, text[at++]);
            continue;
        }
        size_t n = strcspn(text + at, ":,;\"' ");
        const char *path = arena_str(mem, (struct str){text + at, n});
        bool moved = path && one_path(f, server, place, path, to);
        if (!moved)
            buf_put(to, text + at, n);
        changed = changed || moved;
        at += n;
    }
    return changed;
}

/* Where the box has a file of the definition. */
static const char *place_in_box(const struct settings *s, const char *name, struct arena *mem)
{
    const char *home = getenv("HOME");
    if (name[0] == '~')
        return home ? arena_printf(mem, "%s%s", home, name + 1) : NULL;
    return arena_printf(mem, "%s/%s", same(s->directory, "/") ? "" : s->directory, name);
}

/* Whether it lies in what the session has of its own. */
static bool is_own(const struct pinfold_value *agent, const char *name)
{
    EACH_ANSWER(state, pinfold_value_get(agent, "state"))
    {
        const char *at = pinfold_value_text(state, NULL);
        size_t n = at ? strlen(at) : 0;
        if (n && strncmp(name, at, n) == 0 && name[n] == '/')
            return true;
    }
    return false;
}

static bool settle_one(struct settings *s, const char *name, struct arena *mem)
{
    struct file f = {.all = s, .agent = answer_text(s->agent, "name"), .name = name, .own = is_own(s->agent, name)};
    const struct config_walk walk = {each_text, &f};
    auto_buf struct buf out = BUF(2 * (size_t)MAX_SETTINGS), line = BUF(1u << 16);
    struct pinfold_error error = {0};
    const char *path = place_in_box(s, name, mem);
    char *bytes = NULL, why[160] = "it is larger than 4 MiB";
    size_t n = 0, length = strlen(name);
    uint64_t size = 0;

    if (!path || pinfold_file_read(s->session, path, 0, MAX_SETTINGS, &bytes, &n, &size, &error) < 0)
        return true; /* there is none */
    bool toml = length > 5 && same(name + length - 5, ".toml");
    int r = n < size ? -EFBIG
                     : config_servers(toml ? CONFIG_TOML : CONFIG_JSON, (struct str){bytes, n}, &walk, &out, why,
                                      sizeof why);
    free(bytes);
    if (r < 0) {
        buf_printf(&line, "%s's settings in %s: %s; the paths of its MCP servers are not checked", f.agent, name, why);
        job_tell(s->job, buf_cstr(&line));
        return true;
    }
    if (r == 0 || pinfold_file_write(s->session, path, out.p, out.n, 0600, 0, &error) == 0)
        return true;
    job_tell(s->job, error.text);
    return false;
}

bool settings_settle(struct settings *s)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    bool good = mem != NULL;

    s->told = json_pack("[]");
    EACH_ANSWER(file, pinfold_value_get(s->agent, "servers"))
    good = good && settle_one(s, pinfold_value_text(file, NULL), mem);
    return good;
}
