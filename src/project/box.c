/*
 * The policy of a project's session, as options: the same whoever starts it, so that it is found again. Shell, start,
 * agents and hooks all take them from here.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "project/branch.h"
#include "project/seed.h"

static const char *put_text(struct project_box *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *put_text(struct project_box *b, const char *format, ...)
{
    char *text = b->texts[b->n_texts++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof *b->texts, format, args);
    va_end(args);
    return text;
}

static void put(struct project_box *b, const char *name, const char *value)
{
    b->options[b->n_options++] = (struct pinfold_option){name, value};
}

static bool has_entry(const char *real, const char *name, bool regular)
{
    char file[PATH_MAX + 64];
    struct stat st;
    snprintf(file, sizeof file, "%s/%s", real, name);
    return lstat(file, &st) == 0 && (!regular || S_ISREG(st.st_mode));
}

/* A colon or a backslash in the path would be one of --mount's own. */
static bool can_be_mounted(const char *path)
{
    return !strpbrk(path, ":\\");
}

/* This program by its path, which git starts in the box for the remote `host`. */
static bool own_program(char ret[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
    ret[n > 0 ? n : 0] = 0;
    return n > 0 && can_be_mounted(ret) && access(ret, X_OK) == 0;
}

static bool put_shelf(struct project_box *b, const char *real, const char *branch, bool make, char *why, size_t room)
{
    char program[PATH_MAX];
    struct shelf s;
    if (shelf_of(real, &s, why, room) < 0)
        return false;
    if (!can_be_mounted(real) || !can_be_mounted(s.top) || !own_program(program)) {
        snprintf(why, room, "a path with ':' or '\\' cannot be mounted into the box ('%s', '%s')", real, s.top);
        return false;
    }
    if (branch)
        branch_word(branch, b->word);
    else
        snprintf(b->word, sizeof b->word, ".bind"); /* no part of a branch's name begins with a dot */
    if (make && shelf_make(&s, real, b->word, why, room) < 0)
        return false;
    put(b, "mount", put_text(b, "%s/shelf:" SHELF_IN_BOX, s.top));
    put(b, "mount", put_text(b, "%s/remote/%s:" REMOTE_IN_BOX ":ro", s.top, b->word));
    put(b, "mount", put_text(b, "%s:" REMOTE_HELPER ":ro", program));
    put(b, "unix-socket", REMOTE_IN_BOX "/socket");
    if (branch && !b->marked)
        put(b, "mount", put_text(b, "%s/project:" PROJECT_MARKER ":ro", s.top));
    b->shares = true;
    return true;
}

/* `directory/name` as the path that it is: --protect takes patterns. */
static int put_protected(struct project_box *b, const char *directory, const char *name, char *why, size_t room)
{
    char path[PATH_MAX + SEED_PATH], literal[2 * sizeof path];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    for (const char *c = path; *c; c++) {
        if (strchr("*?[]\\", *c))
            literal[n++] = '\\';
        literal[n++] = *c;
    }
    literal[n] = 0;
    if (n >= sizeof *b->texts) {
        snprintf(why, room, "the path '%s' is too long", directory);
        return -EINVAL;
    }
    put(b, "protect", put_text(b, "%s", literal));
    return 0;
}

/* What agent-sandbox protects, where the box works; what its configuration adds. */
static int protect(struct project_box *b, const char *where, char *why, size_t room)
{
    static const char *const names[] = {".husky", PROJECT_SEED, ".pinfold", ".agent-precommit/user-context.json"};
    static struct seed seed;
    int r = seed_read(b->options[0].value, &seed, why, room);
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++)
        r = put_protected(b, where, names[i], why, room);
    for (size_t i = 0; r == 0 && i < seed.n_paths; i++)
        r = put_protected(b, where, seed.paths[i], why, room);
    snprintf(b->ports, sizeof b->ports, "%s", seed.ports);
    return r;
}

/* As for a shell without a session (cli/run.c): fish writes to these when it starts, and has its history there. */
static void put_fish(struct project_box *b)
{
    const char *home = getenv("HOME");
    if (!home || home[0] != '/' || !has_entry(home, ".config/fish", false))
        return;
    put(b, "cache", "~/.config/fish");
    put(b, "cache", "~/.local/share/fish");
}

int project_box(const char *real, const char *branch, bool make, struct project_box *ret, char *why, size_t room)
{
    char ignored[64];
    bool mounts = can_be_mounted(real);
    memset(ret, 0, sizeof *ret); /* no literal of 270 KiB, which lies on the stack where nothing is optimized */
    project_session(real, branch, ret->session);
    project_word(real, ret->name);
    put(ret, "workspace", put_text(ret, "%s", real));
    bool policy = has_entry(real, PROJECT_FILE, true);
    ret->marked = mounts && (policy || (has_entry(real, PROJECT_SEED, false) && project_is(real)));
    if (ret->marked)
        put(ret, "mount", put_text(ret, "%s/%s:" PROJECT_MARKER ":ro", real, policy ? PROJECT_FILE : PROJECT_SEED));
    if (branch || project_is(real)) {
        put(ret, "storage", PROJECT_HISTORY);
        put_fish(ret);
    }
    if (!branch)
        put(ret, "may-lose", "remap"); /* where there are no mounts the checkout's box does without all of these */
    if (branch) {
        snprintf(ret->cwd, sizeof ret->cwd, SHELF_IN_BOX "/worktrees/");
        branch_word(branch, ret->cwd + strlen(ret->cwd));
        put(ret, "read-only", NULL);
        if (!put_shelf(ret, real, branch, make, why, room))
            return -EINVAL;
        put(ret, "mount", put_text(ret, "%s:/workspace/%s:ro", real, ret->name)); /* with an image it is there alone */
    } else if (project_is(real) && has_entry(real, ".git", false)) {
        (void)put_shelf(ret, real, NULL, make, ignored, sizeof ignored); /* the box can do without */
    }
    int r = branch || project_is(real) ? protect(ret, branch ? ret->cwd : real, why, room) : 0;
    ret->n_own = ret->n_options;
    return r < 0 || !project_is(real) ? r : project_agents_options(real, ret, why, room);
}
