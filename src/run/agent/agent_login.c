/*
 * The box of `pinfold login`: the agent alone, in an empty workspace and with an empty directory in place of its own, so that nothing of a
 * project or of an earlier box takes part. What it leaves in the file of its login is read by a process that can reach nothing else
 * (agents/layer.c), and only the owner of logins writes it, field by field, into the host's.
 */
#include "run/agent/agent_login.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/options.h"
#include "sys/process.h"
#include "sys/remove.h"

#define LOGIN_PREFIX ".login-"
#define OPENS        ".opens"
#define EMPTY_PREFIX "pinfold-login-" /* in /tmp: the workspace, which cannot lie in what belongs to pinfold */
enum { EMPTY_OLD_S = 86400 };

static const struct agent_kept *renewable(const struct starting *s, size_t *ret_layer)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        for (size_t k = 0; k < s->agent.start.layers[i].n_files; k++) {
            if (s->agent.start.layers[i].files[k].renew) {
                *ret_layer = i;
                return &s->agent.start.layers[i].files[k];
            }
        }
    }
    return NULL;
}

/* Whoever sweeps or makes one holds this: one that was just made has no lock yet. */
static int lock_place(const char *above, struct err *e)
{
    auto_fd int fd = open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open %s", above);
    const int no = fd_lock(fd, LOCK_EX);
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot lock %s", above) : take_fd(&fd);
}

/* What a pinfold that was killed has left: nobody holds its lock. */
static void sweep_logins(const char *above)
{
    DIR *d = opendir(above);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char live[300];
        if (strncmp(entry->d_name, LOGIN_PREFIX, strlen(LOGIN_PREFIX)) != 0)
            continue;
        snprintf(live, sizeof live, "%.250s/live", entry->d_name);
        auto_fd int fd = openat(dirfd(d), live, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_tree(dirfd(d), entry->d_name);
    }
    if (d)
        (void)closedir(d);
}

static void sweep_workspaces(void)
{
    DIR *d = opendir("/tmp");
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct stat st;
        if (strncmp(entry->d_name, EMPTY_PREFIX, strlen(EMPTY_PREFIX)) == 0 &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            st.st_uid == geteuid() && st.st_mtime < time(NULL) - EMPTY_OLD_S)
            remove_tree(dirfd(d), entry->d_name);
    }
    if (d)
        (void)closedir(d);
}

int login_place(struct starting *s, struct err *e)
{
    const struct agent_start *st = &s->agent.start;
    size_t layer;
    if (!st->login || !renewable(s, &layer))
        return err_say(
            e, ERR_POLICY,
            "%s cannot be logged in from a box: its definition has no \"login:\" or no \"renew:\"; log in outside",
            s->agent.title);
    if (s->look_only)
        return 0;
    char *above = arena_text(s->mem, s->layer), *slash = above ? strrchr(above, '/') : NULL;
    if (!slash)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "login");
    *slash = 0;
    int r = make_private_directories(above, e);
    auto_fd int making = r < 0 ? r : lock_place(above, e);
    if (making < 0)
        return making;
    sweep_logins(above);
    char *dir = arena_printf(s->mem, "%s/" LOGIN_PREFIX "XXXXXX", above);
    if (!dir || !mkdtemp(dir))
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a directory in %s", above);
    s->layer = dir;
    r = starting_hold(s, "live", LOCK_SH, &s->live, e);
    making = close_fd(making);
    sweep_workspaces();
    char *empty = arena_text(s->mem, "/tmp/" EMPTY_PREFIX "XXXXXX");
    if (r == 0 && (!empty || !mkdtemp(empty)))
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a directory in /tmp");
    s->workspace = s->directory = empty;
    return r;
}

/* The box of this process; there is one. */
static struct {
    struct login_opener opener;
    struct box_browser browser;
    bool open;
} login_door;

const struct box_browser *login_browser(void)
{
    return login_door.open ? &login_door.browser : NULL;
}

static int open_address(void *ctx, const char *url)
{
    return login_open(ctx, url);
}

/*
 * pinfold is the browser that the box has (run/asked/inside.c): by $BROWSER, and as xdg-open, which many programs start whatever that says.
 * The box can change that in its workspace; what is asked for is judged outside.
 */
int login_open_door(struct starting *s, struct err *e)
{
    if (s->look_only || !s->agent.start.login_hosts || !s->world.program || !login_opener_find(s, &login_door.opener))
        return 0;
    login_door.browser = (struct box_browser){.agent = s->agent.title,
                                              .hosts = (const char *const *)s->agent.start.login_hosts,
                                              .open = open_address,
                                              .ctx = &login_door.opener};
    s->opens = arena_printf(s->mem, "%s/" OPENS, s->workspace);
    const char *name = arena_printf(s->mem, "%s/xdg-open", s->opens);
    if (!s->opens || !name || mkdir(s->opens, 0700) < 0 || symlink(s->world.program, name) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create %s", name ? name : "xdg-open");
    login_door.open = true;
    starting_option(s, "env", arena_printf(s->mem, "BROWSER=%s", s->world.program));
    for (size_t i = 0; s->agent.start.login_env && s->agent.start.login_env[i]; i += 2)
        starting_option(s, "env",
                        arena_printf(s->mem, "%s=%s", s->agent.start.login_env[i], s->agent.start.login_env[i + 1]));
    buf_printf(&s->notes, "before an address is opened in your browser you are asked\n");
    return 0;
}

int login_fill(struct starting *s, struct err *e)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        const struct agent_layer *l = &s->agent.start.layers[i];
        for (size_t k = 0; k < l->n_files; k++) {
            const char *text = l->files[k].login_text, *name = l->files[k].name;
            int no = text ? agent_file_put(s->layers.open[i].box, name, text, strlen(text)) : 0;
            if (no < 0)
                return err_sys(e, ERR_SYSTEM, -no, "cannot write %s/%s in the box's layer", l->at, name);
        }
    }
    return 0;
}

int login_ready(struct starting *s, struct agent_begun *ret, struct err *e)
{
    size_t i = 0;
    const struct agent_kept *f = renewable(s, &i);
    starting_option(s, "workspace", s->workspace);
    if (s->agent.start.login_port) {
        const char *port = s->agent.start.login_port;
        starting_option(s, "publish", arena_printf(s->mem, "127.0.0.1:%s:%s", port, port));
        buf_printf(
            &s->notes,
            "open the address that %s shows in your browser; it answers at 127.0.0.1:%s, which reaches this box until "
            "it ends\n",
            s->agent.title, port);
    } else {
        buf_printf(&s->notes, "open the address that %s shows in your browser\n", s->agent.title);
    }
    if (!s->agent.start.login[0])
        buf_printf(&s->notes, "when it has logged in, end it: then you are asked whether the login is written\n");
    ret->login_path = starting_host_file(s, i, f);
    return ret->login_path ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "login");
}

/* The answer of AGENT_LOGIN comes from a process that has read a box's file: a digit, or none of them. */
static const struct agent_renew *login_at(const struct agent_renew *first, struct str which)
{
    unsigned n = which.n == 1 && which.p[0] >= '0' && which.p[0] <= '9' ? (unsigned)(which.p[0] - '0') : 10;
    for (; n && first; n--)
        first = first->next;
    return first;
}

int agent_login_store(struct agent_begun *b, bool write, struct pinfold_error *error)
{
    struct err e = {0};
    struct starting *s = b->login;
    auto_buf struct buf text = BUF(AGENT_FILE_MAX);
    int64_t ends;
    size_t i = 0;
    const struct agent_kept *f = renewable(s, &i);
    const struct agent_renew *renew = f->renew;
    int r = starting_open(s, &e);
    if (r == 0)
        r = agent_layers_do(&s->layers, AGENT_LOGIN, NULL, &text, &e);
    if (r == -ENOENT)
        r = err_say(&e, ERR_POLICY, "%s has ended without a new login", s->agent.title);
    struct str login = buf_view(&text);
    renew = r == 0 ? login_at(renew, str_until(&login, '\n')) : NULL;
    if (r == 0 && !renew)
        r = err_say(&e, ERR_BUG, "the login of %s is not one that pinfold renews", s->agent.title);
    if (r == 0 && write) {
        auto_fd int memory = sys_memory("login");
        r = memory < 0 ? memory : fd_write_all(memory, login.p, login.n);
        r = r < 0 ? err_sys(&e, ERR_SYSTEM, -r, "login") : keep_owner(s, i, f, renew, memory, &ends, &e);
    }
    if (text.p)
        explicit_bzero(text.p, text.n);
    return r < 0 ? tell(error, &e, r) : 0;
}

void login_end(struct starting *s)
{
    login_door.open = false;
    const char *name = s->layer ? strrchr(s->layer, '/') : NULL;
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%.*s", name ? (int)(name - s->layer) : 0, name ? s->layer : "");
    auto_fd int dir = !name ? -1 : open(above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && strncmp(name + 1, LOGIN_PREFIX, strlen(LOGIN_PREFIX)) == 0)
        remove_tree(dir, name + 1);
    auto_fd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tmp >= 0 && s->workspace && strncmp(s->workspace, "/tmp/" EMPTY_PREFIX, strlen("/tmp/" EMPTY_PREFIX)) == 0)
        remove_tree(tmp, s->workspace + strlen("/tmp/"));
    starting_end(s);
}
