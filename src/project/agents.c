/*
 * Agents of a project's session: agent-init-config writes down the options that they need there (mounts of their layers, variables, hosts),
 * so that whoever starts or finds the session has the same. One file for each agent, below the agents' own directory, which every box's
 * policy hides: pinfold-agents/.sessions/HASH/NAME, a line for each option.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/project.h"
#include "user/own_dirs.h"
#include "user/replace.h"

enum { AGENTS_FILE = 16 << 10 };

/* The directory of this project's, made if `make`; -ENOENT: there is none. */
static int open_sessions(const char *real, bool make)
{
    char path[PATH_MAX + PROJECT_HASH], hash[PROJECT_HASH];
    const char *home = getenv("HOME");
    struct stat st;
    if (!home || home[0] != '/' || strlen(home) > PATH_MAX - 64)
        return -ENOENT;
    project_hash(real, hash);
    int below = snprintf(path, sizeof path, "%s/.local/state/", home);
    (void)snprintf(path + below, sizeof path - (size_t)below, "pinfold-agents/.sessions/%s", hash);
    const int made = make ? own_dirs_make(path) : 0;
    if (made < 0)
        return made;
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
        return -EPERM;
    return take_fd(&fd);
}

static int write_note(int dir, const char *agent, struct str text)
{
    char beside[PROJECT_WORD + 16];
    snprintf(beside, sizeof beside, ".%s.new", agent);
    return file_replace_unsynced(dir, agent, beside, text, 0600);
}

int project_agent_note(const char *real, const char *agent, const struct pinfold_option *options, char *why,
                       size_t room)
{
    auto_buf struct buf text = BUF(AGENTS_FILE);
    bool fits = strlen(agent) < PROJECT_WORD && agent[0] != '.';
    for (const struct pinfold_option *o = options; o && o->name; o++) {
        fits = fits && (!o->value || !strchr(o->value, '\n'));
        buf_printf(&text, "%s%s%s\n", o->name, o->value ? " " : "", o->value ? o->value : "");
    }
    auto_fd int dir = open_sessions(real, options != NULL);
    int r = !fits || !buf_ok(&text) ? -ENAMETOOLONG : dir;
    if (r >= 0)
        r = options ? write_note(dir, agent, buf_view(&text)) : unlinkat(dir, agent, 0) < 0 ? -errno : 0;
    if (r == -ENOENT && !options)
        return 0;
    if (r < 0)
        snprintf(why, room, "the session of '%s' cannot have %s: pinfold-agents/.sessions: %s", real, agent,
                 strerror(-r));
    return r;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

size_t project_agents(const char *real, char ret[PROJECT_AGENTS][PROJECT_AGENT])
{
    size_t n = 0;
    int fd = open_sessions(real, false);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    for (struct dirent *d; dir && n < PROJECT_AGENTS && (d = readdir(dir));) {
        if (d->d_name[0] != '.' && strlen(d->d_name) < PROJECT_AGENT)
            snprintf(ret[n++], PROJECT_AGENT, "%s", d->d_name);
    }
    if (dir)
        (void)closedir(dir);
    qsort(ret, n, PROJECT_AGENT, by_name);
    return n;
}

/* The lines of one, as options that point into `b->agents`. False: they do not fit, or cannot be read. */
static bool take_note(struct project_box *b, int dir, const char *agent)
{
    struct stat st;
    auto_fd int fd = openat(dir, agent, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    char *at = b->agents + b->agents_used, *end = b->agents + sizeof b->agents - 1;
    ssize_t n = 1;
    char *to = at;
    for (; n > 0 && to<end; to += n> 0 ? n : 0)
        n = read(fd, to, (size_t)(end - to));
    if (n != 0)
        return false;
    *to = 0;
    b->agents_used = (size_t)(to + 1 - b->agents);
    for (char *line = strtok(at, "\n"); line; line = strtok(NULL, "\n")) {
        char *value = strchr(line, ' ');
        if (b->n_options == PROJECT_OPTIONS - 1)
            return false;
        if (value)
            *value++ = 0;
        b->options[b->n_options++] = (struct pinfold_option){line, value};
    }
    return true;
}

int project_agents_options(const char *real, struct project_box *b, char *why, size_t room)
{
    char names[PROJECT_AGENTS][PROJECT_AGENT];
    const size_t n = project_agents(real, names);
    auto_fd int dir = n ? open_sessions(real, false) : -1;
    b->n_own = b->n_options;
    for (size_t i = 0; i < n; i++) {
        if (take_note(b, dir, names[i]))
            continue;
        snprintf(
            why, room,
            "what %s needs in the session of '%s' cannot be read; write it again with: pinfold agent-init-config %s",
            names[i], real, names[i]);
        return -EINVAL;
    }
    return 0;
}
