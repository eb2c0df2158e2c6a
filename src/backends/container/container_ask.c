/*
 * Asks docker and podman about themselves and about images, over the daemon's socket or with the client program, and
 * caches the answers.
 */
#include "backends/container/container_ask.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "backends/container/http.h"
#include "backends/tools/tool.h"
#include "plan/make.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "user/own_dirs.h"
#include "user/packages.h"
#include "user/replace.h"

#define MAX_INFO        (1u << 20)
#define DEFAULT_SOCKET  "/var/run/docker.sock"
#define DOCKER_PATIENCE 30000
#define PODMAN_PATIENCE 30000
#define PULL_PATIENCE   1800000
#define CLIENT_WORDS    128

extern char **environ;

/* Variables that the clients need to find their daemon, storage and settings. None of them enters a container. */
const char *const *container_env(struct arena *mem)
{
    static const char names[][28] = {
        "HOME=", "USER=", "LOGNAME=", "PATH=", "TMPDIR=", "LANG=", "DBUS_SESSION_BUS_ADDRESS="};
    static const char begin[][12] = {"DOCKER_", "CONTAINER", "STORAGE_", "REGISTR", "XDG_", "LC_"};
    const char **at = NULL;
    size_t n = 0;
    for (char **v = environ; *v; v++) {
        bool wanted = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            wanted |= strncmp(*v, names[i], strlen(names[i])) == 0;
        for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
            wanted |= strncmp(*v, begin[i], strlen(begin[i])) == 0;
        const char **slot = wanted ? arena_push(mem, &at, &n, sizeof *slot) : NULL;
        if (wanted && !slot)
            return NULL;
        if (slot)
            *slot = *v;
    }
    return arena_push(mem, &at, &n, sizeof *at) ? at : NULL;
}

/* ---- the daemon ---- */

static int read_small(const char *path, struct buf *b)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_read_all(fd, b);
}

int container_json(struct arena *mem, const char *name, const struct buf *b, struct node *ret, struct err *e)
{
    const char *kept = arena_str(mem, buf_view(b)); /* nodes may point into the text they were parsed from */
    return kept ? node_read(name, (struct str){kept, b->n}, "", mem, ret, e)
                : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read %s", name);
}

static const char *text_of_member(struct arena *mem, const struct node *map, const char *key)
{
    const struct node *n = map && map->kind == NODE_MAP ? node_get(map, key) : NULL;
    return n && n->kind == NODE_SCALAR && !node_is_null(n) ? arena_str(mem, n->text) : NULL;
}

static const char *docker_config(struct arena *mem, const char *name)
{
    const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    return dir && dir[0] ? arena_printf(mem, "%s/%s", dir, name)
           : home        ? arena_printf(mem, "%s/.docker/%s", home, name)
                         : NULL;
}

/* The client's default context, from its own settings. */
static const char *current_context(struct arena *mem)
{
    auto_buf struct buf b = BUF(MAX_INFO);
    const char *said = getenv("DOCKER_CONTEXT"), *path = docker_config(mem, "config.json");
    struct node root;
    struct err ignored = {0};
    if (said && said[0])
        return said;
    if (!path || read_small(path, &b) < 0 || container_json(mem, path, &b, &root, &ignored) < 0)
        return NULL;
    return text_of_member(mem, &root, "currentContext");
}

static int context_host(struct arena *mem, const char *context, const char **ret, struct err *e)
{
    auto_buf struct buf b = BUF(MAX_INFO);
    char sum[65];
    struct node root;
    sha256_hex(str_of(context), sum);
    const char *path = docker_config(mem, arena_printf(mem, "contexts/meta/%s/meta.json", sum));
    if (!path || read_small(path, &b) < 0 || container_json(mem, path, &b, &root, e) < 0)
        return err_say(e, ERR_CANNOT, "unknown docker context '%s'; list contexts with: docker context ls", context);
    const struct node *ends = root.kind == NODE_MAP ? node_get(&root, "Endpoints") : NULL;
    const struct node *docker = ends && ends->kind == NODE_MAP ? node_get(ends, "docker") : NULL;
    *ret = text_of_member(mem, docker, "Host");
    return *ret ? 0 : err_say(e, ERR_CANNOT, "docker context '%s' does not name a daemon", context);
}

static int docker_socket(struct container_ask *ask, struct err *e)
{
    const struct policy *p = ask->policy;
    const char *host = p->docker_host, *context = p->docker_context, *said = getenv("DOCKER_HOST");
    if (!host && !context && said && said[0])
        host = said;
    if (!host && !context)
        context = current_context(ask->mem);
    if (!host && context && !same(context, "default")) {
        int r = context_host(ask->mem, context, &host, e);
        if (r < 0)
            return r;
    }
    if (!host)
        host = "unix://" DEFAULT_SOCKET;
    if (host[0] == '/')
        ask->socket = host;
    else if (strncmp(host, "unix://", 7) == 0)
        ask->socket = host + 7;
    else
        return err_say(e, ERR_CANNOT,
                       "docker's daemon at %s is on another machine; boxes need a daemon on this machine: use "
                       "--docker-host /var/run/docker.sock",
                       host);
    return ask->socket[0] == '/' ? 0 : err_say(e, ERR_CANNOT, "docker's address '%s' is not a socket's path", host);
}

int container_find(struct container_ask *ask, struct err *e)
{
    const char *name = ask->podman ? "podman" : "docker";
    ask->program = tool_find(ask->mem, name);
    if (!ask->program)
        return err_say(e, ERR_CANNOT, "%s is not installed (%s)", name,
                       package_install(ask->podman ? "podman" : "docker.io", (char[PACKAGE_WORDS]){0}));
    return ask->podman ? 0 : docker_socket(ask, e);
}

/* ---- a program's answer ---- */

struct child {
    const char *const *argv, *const *env;
    int out, err;
    bool stays; /* in our process group, which a terminal interrupts as a whole, and not without us */
};

static _Noreturn void child_main(const struct child *c)
{
    own_fd int null = sys_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);
    if (c->stays)
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    else
        (void)sys_setpgid(0, 0);
    if (null >= 0 && sys_dup3(null, 0, 0) >= 0 && sys_dup3(c->out, 1, 0) >= 0 && sys_dup3(c->err, 2, 0) >= 0)
        (void)sys_execve(c->argv[0], c->argv, c->env);
    sys_exit(127);
}

/* Where the output of a client goes: into the buffers, of stderr only as much as there is room for, or to `piece` as it comes. */
struct collected {
    struct buf *ret, *said;
    int pour; /* the client's output itself; 0: it is collected */
    container_output *piece;
    void *ctx;
    int timeout_ms; /* 0: none */
};

/* Reads both until their end or the timeout. */
static int collect_output(int out, int err, const struct collected *to)
{
    enum { TICK = 1000 };
    struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    long until = (long)t.tv_sec * 1000 + t.tv_nsec / 1000000 + to->timeout_ms;
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        long left = until - ((long)t.tv_sec * 1000 + t.tv_nsec / 1000000);
        int n = poll(p, 2, to->piece ? TICK : to->pour ? -1 : left > 0 ? (int)left : 0);
        if (n == 0 && !to->piece)
            return -ETIMEDOUT;
        if (n == 0)
            to->piece(to->ctx, "", 0);
        for (int i = 0; n > 0 && i < 2; i++) {
            char piece[8192];
            if (!p[i].revents)
                continue;
            ssize_t k = read(p[i].fd, piece, sizeof piece);
            if (k > 0 && to->piece)
                to->piece(to->ctx, piece, (size_t)k);
            else if (k > 0)
                buf_put(i || to->pour ? to->said : to->ret, piece, (size_t)k);
            else if (k == 0 || errno != EINTR)
                p[i].fd = -1;
        }
    }
    return 0;
}

/* The last non-empty line. */
static struct str last_line(const struct buf *b)
{
    struct str s = buf_view(b);
    while (s.n && strchr("\n\r ", s.p[s.n - 1]))
        s.n--;
    size_t at = s.n;
    while (at && s.p[at - 1] != '\n')
        at--;
    s = str_skip(s, at);
    return s.n > 300 ? (struct str){s.p, 300} : s;
}

/* Runs the client; -errno, or 0 with its status as waitpid(2) has it. */
static int run_client(const char *const *argv, const char *const *env, const struct collected *to, int *ret_status)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, status = 0, pidfd = -1;
    int e = sys_pipe(out, O_CLOEXEC);
    if (e == 0)
        e = sys_pipe(err, O_CLOEXEC);
    const struct child c = {argv, env, to->pour ? to->pour : out[1], err[1], to->piece != NULL};
    const struct sys_clone how = {.flags = SYS_CLONE_PIDFD | SYS_CLONE_CLEAR_SIGHAND,
                                  .pidfd = (uint64_t)(uintptr_t)&pidfd};
    int pid = e < 0 ? e : sys_clone3(&how);
    if (pid == 0)
        child_main(&c);
    out[1] = close_fd(out[1]);
    err[1] = close_fd(err[1]);
    if (pid > 0) {
        e = collect_output(out[0], err[0], to);
        if (e < 0)
            (void)sys_kill(-pid, SIGKILL);
        while (sys_wait4(pid, &status, __WALL, NULL) == -EINTR)
            ;
        *ret_status = status;
    } else {
        e = pid;
    }
    (void)close_fd(out[0]);
    (void)close_fd(err[0]);
    (void)close_fd(pidfd);
    return e;
}

/* ---- cached answers ---- */

#define KEPT_SECONDS 600

static void put_file_state(struct buf *key, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        buf_printf(key, "%s %llu %llu %lld.%ld %lld\n", path, (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
                   (long long)st.st_size);
}

/* The cache's path: a hash of everything that could change the answer. */
static const char *kept_path(const struct container_ask *ask, const char *what, const char *state)
{
    auto_buf struct buf key = BUF(1u << 20);
    const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    buf_printf(&key, "1 %s %u\n", what, (unsigned)getuid());
    put_file_state(&key, ask->program);
    if (ask->socket)
        put_file_state(&key, ask->socket);
    if (state)
        put_file_state(&key, state);
    for (const char *const *v = container_env(ask->mem); v && *v; v++) {
        buf_printf(&key, "%s\n", *v);
    }
    if (ask->policy->docker_host)
        buf_printf(&key, "%s\n", ask->policy->docker_host);
    if (ask->policy->docker_context)
        buf_printf(&key, "%s\n", ask->policy->docker_context);
    if (!buf_ok(&key) || !((base && base[0] == '/') || (home && home[0] == '/')))
        return NULL;
    char sum[65];
    sha256_hex(buf_view(&key), sum);
    return base && base[0] == '/' ? arena_printf(ask->mem, "%s/pinfold/engines/%.32s", base, sum)
                                  : arena_printf(ask->mem, "%s/.local/state/pinfold/engines/%.32s", home, sum);
}

/* An answer of the last ten minutes, written by this user. */
static bool was_kept(const char *path, struct buf *ret)
{
    auto_fd int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    time_t age = time(NULL) - st.st_mtim.tv_sec;
    if (age < 0 || age > KEPT_SECONDS || st.st_size <= 0 || st.st_size > MAX_INFO)
        return false;
    char *to = buf_space(ret, (size_t)st.st_size);
    if (!to || read(fd, to, (size_t)st.st_size) != st.st_size)
        return false;
    buf_grew(ret, (size_t)st.st_size);
    return true;
}

/* Removes older ones. */
static void sweep(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *at; (at = readdir(d));) {
        struct stat st;
        if (at->d_name[0] != '.' && fstatat(dirfd(d), at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && time(NULL) - st.st_mtim.tv_sec > KEPT_SECONDS)
            (void)unlinkat(dirfd(d), at->d_name, 0);
    }
    (void)closedir(d);
}

/* Errors only cost time. */
static void keep(const char *path, const struct buf *b)
{
    char dir[4096], beside[4200];
    const char *end = path ? strrchr(path, '/') : NULL;
    if (!end || (size_t)(end - path) >= sizeof dir || own_dirs_allowed(path) < 0)
        return;
    memcpy(dir, path, (size_t)(end - path));
    dir[end - path] = 0;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
        char *slash = strrchr(dir, '/');
        *slash = 0; /* .../pinfold; directories above are the user's */
        (void)mkdir(dir, 0700);
        *slash = '/';
        (void)mkdir(dir, 0700);
    }
    sweep(dir);
    snprintf(beside, sizeof beside, "%s/.%d", dir, (int)getpid());
    (void)file_replace_unsynced(AT_FDCWD, path, beside, buf_view(b), 0600);
}

void container_forget(const struct container_ask *ask)
{
    const char *path = kept_path(ask, "info", NULL);
    if (path)
        (void)unlink(path);
}

/* ---- the questions ---- */

static int socket_failed(const char *path, int r, struct err *e)
{
    switch (-r) {
    case ENOENT:
    case ECONNREFUSED:
        return err_say(
            e, ERR_CANNOT,
            "docker's daemon is not running: nothing listens at %s; start it (systemctl start docker), or name "
            "another with --docker-host",
            path);
    case EACCES:
    case EPERM:
        return err_say(e, ERR_CANNOT,
                       "permission denied on docker's socket %s: you are not in its group (run usermod -aG docker USER "
                       "and log in again; members are equivalent to root); podman needs no group",
                       path);
    case ETIMEDOUT:
        return err_say(e, ERR_CANNOT, "docker's daemon at %s does not answer", path);
    default:
        return err_sys(e, ERR_CANNOT, -r, "cannot reach docker's daemon at %s", path);
    }
}

int container_docker(const struct container_ask *ask, const char *target, struct buf *ret, int *ret_status,
                     struct err *e)
{
    int r = http_get(ask->socket, target, DOCKER_PATIENCE, ret, ret_status);
    return r < 0 ? socket_failed(ask->socket, r, e) : 0;
}

/* The client's whole line. */
static int client_words(const struct container_ask *ask, const char *const *words, const char *argv[CLIENT_WORDS])
{
    size_t n = 0;
    argv[n++] = ask->program;
    if (ask->policy->docker_host) {
        argv[n++] = ask->podman ? "--url" : "--host";
        argv[n++] = ask->policy->docker_host[0] == '/' ? arena_printf(ask->mem, "unix://%s", ask->policy->docker_host)
                                                       : ask->policy->docker_host;
    }
    if (ask->policy->docker_context) {
        argv[n++] = ask->podman ? "--connection" : "--context";
        argv[n++] = ask->policy->docker_context;
    }
    for (size_t i = 0; words[i]; i++) {
        if (n + 1 == CLIENT_WORDS)
            return -E2BIG;
        argv[n++] = words[i];
    }
    argv[n] = NULL;
    return 0;
}

/* -EIO: the client has ended with another status than 0. */
static int ask_client(const struct container_ask *ask, const char *const *words, const struct collected *to)
{
    const char *argv[CLIENT_WORDS];
    const char *const *env = container_env(ask->mem);
    int status = 0, r = env ? client_words(ask, words, argv) : -ENOMEM;
    if (r == 0)
        r = run_client(argv, env, to, &status);
    return r < 0 ? r : status != 0 ? -EIO : 0;
}

int container_client(const struct container_ask *ask, const char *const *words, int timeout_ms, struct buf *ret,
                     struct buf *said)
{
    const struct collected to = {.ret = ret, .said = said, .timeout_ms = timeout_ms};
    const int r = ask_client(ask, words, &to);
    return r < 0 ? r : buf_ok(ret) ? 0 : -EMSGSIZE;
}

int container_pour(const struct container_ask *ask, const char *const *words, int out, struct buf *said)
{
    const struct collected to = {.ret = said, .said = said, .pour = out};
    return ask_client(ask, words, &to);
}

int container_watch(const struct container_ask *ask, const char *const *words, const char *const *more,
                    container_output *output, void *ctx)
{
    const char *argv[CLIENT_WORDS], **env = NULL;
    const struct collected to = {.piece = output, .ctx = ctx};
    const char *const *lists[] = {container_env(ask->mem), more};
    size_t n = 0;
    int status = 0, r = lists[0] ? client_words(ask, words, argv) : -ENOMEM;
    for (size_t k = 0; k < 2 && r == 0; k++) {
        for (const char *const *v = lists[k]; v && *v; v++) {
            const char **slot = arena_push(ask->mem, &env, &n, sizeof *slot);
            if (slot)
                *slot = *v;
        }
    }
    if (r == 0 && (!arena_push(ask->mem, &env, &n, sizeof *env) || arena_failed(ask->mem)))
        r = -ENOMEM;
    if (r == 0)
        r = run_client(argv, env, &to, &status);
    return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int container_client_failed(const struct container_ask *ask, int r, const struct buf *said, struct err *e)
{
    const char *name = ask->podman ? "podman" : "docker";
    struct str last = last_line(said);
    if (r == -ETIMEDOUT)
        return err_say(e, ERR_CANNOT, "%s does not answer (%s)", name, ask->program);
    if (r != -EIO)
        return err_sys(e, ERR_CANNOT, -r, "cannot ask %s", ask->program);
    return err_say(e, ERR_CANNOT, "%s does not work here: %.*s", name, (int)last.n, last.n ? last.p : "");
}

/*
 * podman ends a container by calling itself with --runroot, which some versions refuse if the path has more than fifty
 * characters: then nothing is cleaned up, and its client stays for twenty seconds after each container.
 */
static int podman_tidies_up(const struct container_ask *ask, const struct node *info, struct err *e)
{
    enum { REFUSED = 50 };
    const struct node *store = node_get(info, "store");
    const char *run = store ? text_of_member(ask->mem, store, "runRoot") : NULL;
    const char *words[] = {"--runroot", run, "ps", "--quiet", NULL};
    auto_buf struct buf b = BUF(MAX_INFO), said = BUF(65536);
    if (!run || strlen(run) <= REFUSED || container_client(ask, words, PODMAN_PATIENCE, &b, &said) == 0)
        return 0;
    struct str last = last_line(&said);
    (void)err_say(e, ERR_CANNOT,
                  "podman cannot clean up its containers here and would wait twenty seconds after each: with --runroot "
                  "%s it reports: %.*s",
                  run, (int)last.n, last.n ? last.p : "");
    return err_hint(e, -EOPNOTSUPP,
                    "use a shorter path, by XDG_RUNTIME_DIR or runroot in storage.conf, then run: podman system reset");
}

int container_info(const struct container_ask *ask, struct node *ret, struct err *e)
{
    static const char *const words[] = {"info", "--format", "json", NULL};
    auto_buf struct buf b = BUF(MAX_INFO), said = BUF(65536);
    const char *path = kept_path(ask, "info", NULL);
    int status = 200, r = 0;
    if (was_kept(path, &b) && container_json(ask->mem, "what was kept", &b, ret, NULL) == 0)
        return 0;
    buf_free(&b);
    if (ask->podman) {
        r = container_client(ask, words, PODMAN_PATIENCE, &b, &said);
        if (r < 0)
            return container_client_failed(ask, r, &said, e);
    } else {
        r = container_docker(ask, "/info", &b, &status, e);
        if (r < 0)
            return r;
    }
    if (status != 200 || container_json(ask->mem, ask->podman ? "podman info" : "docker info", &b, ret, e) < 0 ||
        ret->kind != NODE_MAP)
        return err_say(e, ERR_CANNOT, "%s does not behave like %s (answer %d)",
                       ask->podman ? ask->program : ask->socket, ask->podman ? "podman" : "docker's daemon", status);
    r = ask->podman ? podman_tidies_up(ask, ret, e) : 0;
    if (r == 0)
        keep(path, &b);
    return r;
}

static int no_image(const struct container_ask *ask, struct err *e)
{
    const char *name = ask->podman ? "podman" : "docker", *image = ask->policy->image;
    (void)err_say(e, ERR_CANNOT, "%s has no image '%s' here", name, image);
    return err_hint(e, -ENOENT, "fetch it with: %s pull %s; or use --pull missing", name, image);
}

/* podman's answer about an image is valid as long as its list of images does not change. */
static const char *podman_images(const struct container_ask *ask, const struct node *info)
{
    const struct node *store = node_get(info, "store");
    const char *root = text_of_member(ask->mem, store, "graphRoot"),
               *driver = text_of_member(ask->mem, store, "graphDriverName");
    return root && driver ? arena_printf(ask->mem, "%s/%s-images/images.json", root, driver) : NULL;
}

static int first_of(struct node *n)
{
    if (n->kind != NODE_LIST)
        return n->kind == NODE_MAP ? 0 : -EBADMSG;
    if (n->n != 1)
        return -EBADMSG;
    *n = n->items[0];
    return n->kind == NODE_MAP ? 0 : -EBADMSG;
}

static int podman_image(const struct container_ask *ask, const struct node *info, struct buf *b, struct err *e)
{
    const char *words[] = {"image", "inspect", "--format", "json", ask->policy->image, NULL};
    auto_buf struct buf said = BUF(65536);
    const char *list = podman_images(ask, info);
    const char *path = list ? kept_path(ask, arena_printf(ask->mem, "image %s", ask->policy->image), list) : NULL;
    if (was_kept(path, b))
        return 0;
    buf_free(b);
    int r = container_client(ask, words, PODMAN_PATIENCE, b, &said);
    if (r == -EIO && said.n &&
        (strstr(said.p, "not known") || strstr(said.p, "no such") || strstr(said.p, "not found")))
        return -ENOENT;
    if (r < 0)
        return container_client_failed(ask, r, &said, e);
    keep(path, b);
    return 0;
}

int container_pull(const struct container_ask *ask, struct err *e)
{
    const char *words[8];
    size_t n = 0;
    auto_buf struct buf b = BUF(4u << 20), said = BUF(4u << 20);
    words[n++] = "pull";
    words[n++] = "--quiet";
    if (ask->policy->platform) {
        words[n++] = "--platform";
        words[n++] = ask->policy->platform;
    }
    words[n++] = ask->policy->image;
    words[n] = NULL;
    int r = container_client(ask, words, PULL_PATIENCE, &b, &said);
    struct str last = last_line(&said);
    return r == 0 ? 0
                  : err_say(e, ERR_CANNOT, "%s cannot pull the image '%s': %.*s", ask->podman ? "podman" : "docker",
                            ask->policy->image, (int)last.n, last.n ? last.p : "");
}

int container_image(const struct container_ask *ask, const struct node *info, struct node *ret, struct err *e)
{
    auto_buf struct buf b = BUF(MAX_INFO), target = BUF(4096);
    int status = 200, r;
    if (ask->podman) {
        r = podman_image(ask, info, &b, e);
    } else {
        buf_text(&target, "/images/");
        http_path(str_of(ask->policy->image), &target);
        buf_text(&target, "/json");
        r = container_docker(ask, buf_cstr(&target), &b, &status, e);
    }
    if ((r == 0 && status == 404) || r == -ENOENT)
        return no_image(ask, e);
    if (r == 0 && (status != 200 || container_json(ask->mem, "the image", &b, ret, NULL) < 0 || first_of(ret) < 0))
        r = err_say(e, ERR_CANNOT, "%s does not describe the image '%s' (answer %d)",
                    ask->podman ? "podman" : "docker's daemon", ask->policy->image, status);
    return r;
}
