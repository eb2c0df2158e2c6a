/*
 * The name of a project where an agent keeps a register of its own (struct agent_naming). The agent outside has it in the register, or
 * finds it by a marker in the directory of that name. Where it has neither, the name is made here as the agent would make it, with the
 * marker: so the agent outside and the one in the box, which gets the marker, take the same. The register is only read.
 */
#include "run/agent/starting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { PROJECT_NAME_MAX = 120, PROJECT_TRIES = 1000 };

struct project_search {
    struct starting *s;
    const char *host, *below; /* the agent's directory, and that of the names */
    const struct agent_naming *by;
    char *text; /* of the register; "" */
    size_t n;
};

static bool is_name(const char *name)
{
    return *name && *name != '-' && strlen(name) <= PROJECT_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

/* What the marker of a name says: 1 our directory, 0 nothing, -1 another one, or it cannot be read. */
static int marked(const struct project_search *p, const char *name)
{
    char path[PATH_MAX], text[PATH_MAX + 2];
    snprintf(path, sizeof path, "%s/%s/%s", p->below, name, p->by->marker);
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    text[n > 0 ? n : 0] = 0;
    return same(text, p->s->directory) ? 1 : -1;
}

static const char *registered(const struct project_search *p)
{
    char *name = agent_json_registered((struct str){p->text, p->n}, p->s->directory);
    const char *ret = name && is_name(name) && marked(p, name) >= 0 ? arena_text(p->s->mem, name) : NULL;
    free(name);
    return ret;
}

static const char *found_by_marker(const struct project_search *p)
{
    const char *ret = NULL;
    DIR *d = opendir(p->below);
    for (struct dirent *entry; d && !ret && (entry = readdir(d));) {
        if (is_name(entry->d_name) && marked(p, entry->d_name) == 1)
            ret = arena_text(p->s->mem, entry->d_name);
    }
    if (d)
        (void)closedir(d);
    return ret;
}

/* As the agent makes it of the directory's own name. */
static void name_of(const char *directory, char ret[PROJECT_NAME_MAX + 1])
{
    size_t n = 0;
    for (const char *c = strrchr(directory, '/') + 1; *c && n < PROJECT_NAME_MAX - 8; c++) {
        const char small = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        const bool plain = (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9');
        if (plain)
            ret[n++] = small;
        else if (n && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n && ret[n - 1] == '-')
        n--;
    ret[n] = 0;
    if (!n)
        strcpy(ret, "project");
}

/* The marker is made first of all: who makes it has the name. */
static int make_marker(const struct project_search *p, const char *name, struct err *e)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", p->below, name);
    int r = make_private_directories(path, e);
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "%s/%s/%s", p->below, name, p->by->marker);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? -EEXIST : err_sys(e, ERR_SYSTEM, errno, "cannot create %s", path);
    r = fd_write_all(fd, p->s->directory, strlen(p->s->directory));
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot write %s", path) : 0;
}

static int claim(const struct project_search *p, const char **ret, struct err *e)
{
    char first[PROJECT_NAME_MAX + 1];
    name_of(p->s->directory, first);
    for (int i = 0; i < PROJECT_TRIES; i++) {
        const char *name = i ? arena_printf(p->s->mem, "%s-%d", first, i) : arena_text(p->s->mem, first);
        if (!name)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
        if (agent_json_is_taken((struct str){p->text, p->n}, name, p->s->directory) || marked(p, name) < 0)
            continue;
        int r = p->s->look_only ? 0 : make_marker(p, name, e);
        if (r == -EEXIST)
            continue;
        *ret = name;
        return r;
    }
    return 0; /* it stays in the layer, which is said */
}

/* A name that the register has, and no marker: the agent would make it at its next start. */
static int keep_marker(const struct project_search *p, const char *name, struct err *e)
{
    if (p->s->look_only || marked(p, name) != 0)
        return 0;
    int r = make_marker(p, name, e);
    return r == -EEXIST ? 0 : r;
}

int project_find(struct starting *s, size_t layer, struct err *e)
{
    struct project_search p = {.s = s, .host = s->host[layer], .by = s->agent.start.layers[layer].project};
    p.below = arena_printf(s->mem, "%s/%s", p.host, p.by->below);
    const char *path = arena_printf(s->mem, "%s/%s", p.host, p.by->register_file);
    if (!p.below || !path)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && agent_file_read(fd, &p.text, &p.n) < 0)
        p.text = NULL, p.n = 0;
    s->project = registered(&p);
    if (!s->project)
        s->project = found_by_marker(&p);
    int r = s->project ? keep_marker(&p, s->project, e) : claim(&p, &s->project, e);
    free(p.text);
    return r;
}
