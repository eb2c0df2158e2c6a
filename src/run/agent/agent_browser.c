/*
 * Opens an address in the person's browser, for `pinfold login`. The program is found before the box starts, where boxes cannot have put
 * it, and gets what a browser needs of the person's environment: no key, and no variable that changes which code it loads.
 */
#include "run/agent/agent_login.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "survey/written.h"
#include "sys/fd.h"

enum { OPENER_WORDS = 16, ENVIRONMENT_ROOM = 64 << 10 };

/* What a desktop, or the host at the other end of an editor's connection, is found by. */
static const char passed[][28] = {"PATH",
                                  "HOME",
                                  "USER",
                                  "LOGNAME",
                                  "LANG",
                                  "LC_ALL",
                                  "LC_CTYPE",
                                  "LC_MESSAGES",
                                  "DISPLAY",
                                  "WAYLAND_DISPLAY",
                                  "XAUTHORITY",
                                  "XDG_RUNTIME_DIR",
                                  "XDG_CURRENT_DESKTOP",
                                  "XDG_SESSION_TYPE",
                                  "XDG_DATA_DIRS",
                                  "XDG_DATA_HOME",
                                  "XDG_CONFIG_DIRS",
                                  "XDG_CONFIG_HOME",
                                  "DBUS_SESSION_BUS_ADDRESS",
                                  "DESKTOP_SESSION",
                                  "KDE_FULL_SESSION",
                                  "KDE_SESSION_VERSION",
                                  "GNOME_DESKTOP_SESSION_ID",
                                  "VSCODE_IPC_HOOK_CLI",
                                  "WSL_DISTRO_NAME",
                                  "WSL_INTEROP"};

/* A program that no box can have written: neither the file nor a link on the way to it. */
static const char *trusted(const struct starting *s, const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    const char *memory = world_written(s->mem, s->world.state);
    if (!memory || access(path, X_OK) < 0 || written_walk(memory, "BROWSER", path, real, NULL, NULL) < 0 ||
        stat(real, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    char *slash = strrchr(real, '/');
    *slash = 0;
    bool covered = written_covers(memory, slash == real ? "/" : real);
    return covered ? NULL : arena_text(s->mem, path);
}

/* The directories of PATH in which no box can have put a program; not what a project has put below ".". */
static const char *trusted_path(const struct starting *s)
{
    const char *path = getenv("PATH"), *memory = world_written(s->mem, s->world.state);
    auto_buf struct buf kept = BUF(ENVIRONMENT_ROOM);
    for (struct str rest = str_of(path ? path : ""); memory && rest.n;) {
        const char *dir = arena_str(s->mem, str_until(&rest, ':'));
        char real[PATH_MAX];
        if (dir && dir[0] == '/' && written_walk(memory, "PATH", dir, real, NULL, NULL) == 0 &&
            !written_covers(memory, real))
            buf_printf(&kept, "%s%s", kept.n ? ":" : "", dir);
    }
    return buf_ok(&kept) ? arena_text(s->mem, kept.n ? buf_cstr(&kept) : "/usr/bin:/bin") : NULL;
}

static const char *program_named(const struct starting *s, const char *name, const char *path)
{
    const char *found = NULL;
    if (strchr(name, '/'))
        return name[0] == '/' ? trusted(s, name) : NULL;
    for (struct str rest = str_of(path); rest.n && !found;) {
        struct str dir = str_until(&rest, ':');
        found = trusted(s, arena_printf(s->mem, "%.*s/%s", (int)dir.n, dir.p, name));
    }
    return found;
}

/* One entry of $BROWSER: a program, perhaps with words. */
static bool opener_of(const struct starting *s, struct str entry, struct login_opener *ret)
{
    const char **words = arena_zero(s->mem, (OPENER_WORDS + 1) * sizeof *words);
    size_t n = 0;
    while (words && entry.n && n < OPENER_WORDS) {
        struct str word = str_until(&entry, ' ');
        if (word.n && !(words[n++] = arena_str(s->mem, word)))
            return false;
    }
    if (!n || entry.n)
        return false;
    ret->words = words;
    ret->program = program_named(s, words[0], ret->path);
    return ret->program != NULL;
}

bool login_opener_find(const struct starting *s, struct login_opener *ret)
{
    static const char *const screens[] = {"DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"};
    const char *said = getenv("BROWSER");
    bool screen = false;
    *ret = (struct login_opener){.path = trusted_path(s)};
    if (!ret->path)
        return false;
    for (struct str rest = str_of(said ? said : ""); rest.n;) {
        if (opener_of(s, str_until(&rest, ':'), ret))
            return true;
    }
    for (size_t i = 0; i < sizeof screens / sizeof *screens; i++) {
        const char *value = getenv(screens[i]);
        screen |= value && *value;
    }
    return screen && opener_of(s, STR("xdg-open"), ret);
}

/* ---- opening ---- */

struct opening {
    const char *argv[OPENER_WORDS + 2], *env[sizeof passed / sizeof *passed + 1];
    char room[ENVIRONMENT_ROOM];
};

static void fill(struct opening *w, const struct login_opener *o, const char *url)
{
    size_t n = 0, at = 0;
    bool placed = false;
    for (; o->words[n]; n++) {
        const bool here = n && same(o->words[n], "%s");
        w->argv[n] = here ? url : o->words[n];
        placed |= here;
    }
    w->argv[n] = placed ? NULL : url;
    w->argv[n + !placed] = NULL;
    n = 0;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const char *value = i ? getenv(passed[i]) : o->path;
        const size_t length = value ? strlen(passed[i]) + strlen(value) + 2 : 0;
        if (!value || length > sizeof w->room - at)
            continue;
        snprintf(w->room + at, length, "%s=%s", passed[i], value);
        w->env[n++] = w->room + at;
        at += length;
    }
    w->env[n] = NULL;
}

/* The new process: in a session of its own, with nothing open but `report`, which the program does not keep. */
static _Noreturn void become_browser(const struct opening *w, const char *program, int report)
{
    sigset_t none;
    sigemptyset(&none);
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        (void)dup2(null, fd);
    (void)dup3(report, 3, O_CLOEXEC);
    (void)sys_close_range(4, ~0u);
    for (int s = 1; s < NSIG; s++)
        (void)signal(s, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)!chdir("/");
    (void)execve(program, (char *const *)(uintptr_t)w->argv, (char *const *)(uintptr_t)w->env);
    const int no = errno;
    (void)!write(3, &no, sizeof no);
    _exit(AGENT_NOT_STARTED);
}

int login_open(const struct login_opener *o, const char *url)
{
    static struct opening w;
    int ends[2], no = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    auto_fd int from = ends[0];
    fill(&w, o, url);
    pid_t pid = fork();
    if (pid == 0) { /* its child is nobody's here: the browser may outlive this login */
        const bool first = setsid() > 0 && fork() == 0;
        if (first)
            become_browser(&w, o->program, ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || read(from, &no, sizeof no) < 0)
        return -errno;
    return -no;
}
