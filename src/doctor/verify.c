/*
 * Tries to break a box. Targets are set up outside (files, sockets, a process, shared memory). Every attack is first
 * tried there as a control, then in its own box whose workspace is stage/work. Everything is removed afterwards.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "sys/remove.h"
#include "doctor/attack.h"
#include "run/caches.h"
#include "run/direct.h"
#include "doctor/doctor.h"

#define PROGRAM_COPY "work/pinfold-verify"

struct scene {
    struct attack_stage stage;
    char dir[PATH_MAX], abstract[64];
    int tcp, service, path_socket, abstract_socket, leaked;
    struct pinfold_policy *policy, *net_policy;
    int server; /* a process that greets clients of the TCP listeners */
};

static int copy_program(const char *to, struct err *e)
{
    static char bytes[1 << 16];
    auto_fd int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    auto_fd int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n = -1;
    if (from < 0 || fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot copy the program to '%s'", to);
    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        const ssize_t wrote = write(fd, bytes, (size_t)n);
        if (wrote != n)
            return err_sys(e, ERR_SYSTEM, wrote < 0 ? errno : ENOSPC, "cannot copy the program to '%s'", to);
    }
    return n < 0 ? err_sys(e, ERR_SYSTEM, errno, "cannot copy the program to '%s'", to) : 0;
}

static int make_file(const char *dir, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 || write(fd, "secret\n", 7) != 7 ? -errno : 0;
}

static int make_directory(const char *dir, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

/*
 * A place where boxes see the host's files read-only: the home directory, or here. Not /tmp or /var/tmp: every box has
 * its own, so an attack would fail for lack of a target.
 */
static int make_stage_directory(struct scene *c, struct err *e)
{
    char here[PATH_MAX - 32];
    const char *const places[] = {getenv("HOME"), getcwd(here, sizeof here)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i] || places[i][0] != '/')
            continue;
        snprintf(c->dir, sizeof c->dir, "%s/.pinfold-verify-XXXXXX", places[i]);
        if (mkdtemp(c->dir))
            return 0;
    }
    c->dir[0] = 0;
    const int no = errno, r = err_sys(e, ERR_SYSTEM, no,
                                      "cannot create a directory for the attacks (in the home directory, or here)");
    if (no == ENOSPC || no == EDQUOT)
        return err_used_up(e, r);
    return err_hint(e, r, "run it in a directory that you can write, or set HOME to one");
}

static int make_files(struct scene *c, struct err *e)
{
    char program[PATH_MAX];
    int r = make_stage_directory(c, e);
    if (r < 0)
        return r;
    r = make_directory(c->dir, "work");
    if (r == 0)
        r = make_directory(c->dir, "outside");
    if (r == 0)
        r = make_directory(c->dir, "hidden");
    if (r == 0)
        r = make_file(c->dir, "outside/secret");
    if (r == 0)
        r = make_file(c->dir, "hidden/secret");
    if (r < 0)
        return err_used_up(e, err_sys(e, ERR_SYSTEM, -r, "cannot create files in '%s'", c->dir));
    snprintf(program, sizeof program, "%s/" PROGRAM_COPY, c->dir);
    return err_used_up(e, copy_program(program, e));
}

static int listen_unix(const char *name, size_t n)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || n > sizeof at.sun_path)
        return -1;
    memcpy(at.sun_path, name, n);
    if (bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0 ||
        listen(fd, 64) < 0)
        return -1;
    return take_fd(&fd);
}

static int listen_tcp(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        return -1;
    *ret_port = ntohs(at.sin_port);
    return take_fd(&fd);
}

/* A process to be seen, signalled and traced; it exits with us. */
static int start_victim(void)
{
    int pid = fork();
    if (pid != 0)
        return pid;
    for (;;)
        (void)sleep(3600);
}

static int start_server(int one, int two)
{
    int pid = fork();
    if (pid != 0)
        return pid;
    for (;;) {
        struct pollfd ready[2] = {{.fd = one, .events = POLLIN}, {.fd = two, .events = POLLIN}};
        (void)poll(ready, 2, -1);
        for (int i = 0; i < 2; i++) {
            auto_fd int fd = ready[i].revents ? accept(ready[i].fd, NULL, NULL) : -1;
            if (fd >= 0)
                (void)!send(fd, NET_GREETING, sizeof NET_GREETING - 1, MSG_NOSIGNAL);
        }
    }
}

static int make_scene(struct scene *c, struct err *e)
{
    char path[PATH_MAX];
    uint64_t id = 0;

    *c = (struct scene){
        .tcp = -1, .service = -1, .path_socket = -1, .abstract_socket = -1, .leaked = -1, .stage.shm = -1};
    int r = make_files(c, e);
    if (r < 0)
        return r;
    (void)!getrandom(&id, sizeof id, 0);
    snprintf(c->abstract + 1, sizeof c->abstract - 1, "pinfold-verify-%016llx", (unsigned long long)id);
    c->stage.dir = c->dir;
    c->stage.abstract = c->abstract + 1;
    c->abstract_socket = listen_unix(c->abstract, strlen(c->abstract + 1) + 1);
    snprintf(path, sizeof path, "%s/outside/socket", c->dir);
    c->path_socket = listen_unix(path, strlen(path) + 1);
    c->tcp = listen_tcp(&c->stage.port);
    c->service = listen_tcp(&c->stage.service);
    c->server = start_server(c->tcp, c->service);
    c->stage.shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    c->stage.victim = start_victim();
    snprintf(path, sizeof path, "%s/outside", c->dir);
    c->leaked = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A high number without close-on-exec, as a careless caller would leave it. */
    c->stage.leaked = fcntl(c->leaked, F_DUPFD, 200);
    (void)setenv("PINFOLD_VERIFY_SECRET", "secret", 1);
    return c->stage.victim < 0 || c->server < 0 || c->tcp < 0 || c->service < 0
               ? err_sys(e, ERR_SYSTEM, errno, "cannot start a process to be attacked")
               : 0;
}

static void end_process(int pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Removes the boxes' caches, whose project no longer exists. */
static void remove_caches(const struct scene *c, const char *state)
{
    static char path[PATH_MAX], text[CACHES_NOTE_MAX];
    snprintf(path, sizeof path, "%s/caches", state);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        auto_fd int dir = strlen(e->d_name) == CACHES_HASH
                              ? openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                              : -1;
        const char *project = dir < 0 ? NULL : caches_gone(dir, e->d_name, text);
        if (project && str_starts(str_of(project), str_of(c->dir)))
            remove_tree(dirfd(d), e->d_name);
    }
    if (d)
        (void)closedir(d);
}

static void end_scene(struct scene *c)
{
    static char state[PATH_MAX];
    snprintf(state, sizeof state, "%s", c->stage.state ? c->stage.state : "");

    end_process(c->stage.victim);
    end_process(c->server);
    if (c->stage.shm >= 0)
        (void)shmctl(c->stage.shm, IPC_RMID, NULL);
    (void)close_fd(c->tcp);
    (void)close_fd(c->service);
    (void)close_fd(c->path_socket);
    (void)close_fd(c->abstract_socket);
    (void)close_fd(c->leaked);
    if (c->stage.leaked > 0)
        (void)close_fd(c->stage.leaked);
    (void)unsetenv("PINFOLD_VERIFY_SECRET");
    pinfold_policy_free(c->policy);
    pinfold_policy_free(c->net_policy);
    if (c->dir[0])
        remove_tree(AT_FDCWD, c->dir);
    if (c->dir[0] && state[0])
        remove_caches(c, state);
}

/* The default policy with stage/work as the workspace and stage/hidden hidden; and the same with one reachable
   service. */
static int load_default(struct scene *c, struct err *e)
{
    static char work[PATH_MAX + 8], hidden[PATH_MAX + 8];
    char service[32];
    struct pinfold_error error = {0};
    snprintf(work, sizeof work, "%s/work", c->dir);
    snprintf(hidden, sizeof hidden, "%s/hidden", c->dir);
    const struct pinfold_option options[] = {{"workspace", work}, {"hide", hidden}, {NULL, NULL}};
    struct pinfold_policy_options o = {.size = sizeof o, .options = options, .cwd = work, .no_layers = 1};
    int r = pinfold_policy_load(&o, &c->policy, &error);
    if (r < 0)
        return err_say(e, (enum err_kind)error.kind, "%s", error.text);
    c->stage.state = c->policy->layers.world.state;
    snprintf(service, sizeof service, "127.0.0.1:%d", c->stage.service);
    const struct pinfold_option net[] = {
        {"workspace", work}, {"hide", hidden}, {"net", "allow"}, {"reach", service}, {NULL, NULL}};
    o.options = net;
    r = c->stage.service ? pinfold_policy_load(&o, &c->net_policy, &error) : 0;
    if (r < 0)
        return err_say(e, (enum err_kind)error.kind, "%s", error.text);
    return 0;
}

/* Removes the files of the previous attack. */
static void clean_work(const struct scene *c)
{
    static const char left[][16] = {"work/link",   "work/hard",      "work/prepared", "work/plain",
                                    "work/.envrc", "work/.mcp.json", "work/disk",     "work/made",
                                    "work/.git",   "work/.claude",   "outside/new"};
    static char path[PATH_MAX + 32];
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s/%s", c->dir, left[i]);
        remove_tree(AT_FDCWD, path);
    }
    (void)make_file(c->dir, "outside/victim");
}

/* Runs the attack in a child, without a box; returns its status. */
static int run_outside(const struct scene *c, const struct attack *a)
{
    static char text[STAGE_ARGUMENTS][256];
    char *argv[1 + STAGE_ARGUMENTS];
    int status;

    stage_print(&c->stage, text);
    argv[0] = (char *)(uintptr_t)a->name;
    for (int i = 0; i < STAGE_ARGUMENTS; i++)
        argv[1 + i] = text[i];
    int pid = fork();
    if (pid == 0) {
        /* Standard output would mix with the report; input is a read-only file. */
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/outside/secret", c->dir);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC), in = open(path, O_RDONLY | O_CLOEXEC);
        if (null < 0 || in < 0 || dup2(null, 1) < 0 || dup2(in, 0) < 0)
            _exit(2);
        _exit(attack_main(1 + STAGE_ARGUMENTS, argv));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    if (a->after && WEXITSTATUS(status) == ATTACK_SUCCEEDED)
        return a->after(&c->stage) == 0 ? ATTACK_SUCCEEDED : ATTACK_REFUSED;
    return WEXITSTATUS(status);
}

static int run_inside(const struct scene *c, const char *name, bool net, struct pinfold_result **ret, struct err *e)
{
    static char text[STAGE_ARGUMENTS][256], program[PATH_MAX + 32], secret[PATH_MAX + 32], made[PATH_MAX + 32];
    const char *argv[3 + STAGE_ARGUMENTS + 1] = {program, "--attack", name};
    struct pinfold_error error = {0};

    snprintf(program, sizeof program, "%s/" PROGRAM_COPY, c->dir);
    snprintf(secret, sizeof secret, "%s/outside/secret", c->dir);
    auto_fd int in = open(secret, O_RDONLY | O_CLOEXEC);
    if (same(name, ATTACK_MAKE)) {
        snprintf(made, sizeof made, "%s/work/made", c->dir);
        argv[3] = made;
    } else {
        stage_print(&c->stage, text);
        for (int i = 0; i < STAGE_ARGUMENTS; i++)
            argv[3 + i] = text[i];
    }
    struct pinfold_run_options o = {
        .size = sizeof o, .argv = argv, .capture = 1, .use_fds = 1, .stdin_fd = in, .stdout_fd = -1, .stderr_fd = -1};
    int r = pinfold_run(net ? c->net_policy : c->policy, &o, ret, &error);
    return r < 0 ? err_say(e, (enum err_kind)error.kind, "%s", error.text) : 0;
}

static struct verdict judge_attack(struct arena *mem, const struct scene *c, const struct attack *a, bool proved,
                                   features lost, struct pinfold_result *result)
{
    struct verdict v = {.attack = a->name, .what = a->what, .how = "", .held = HELD};
    int status = pinfold_result_end(result) == PINFOLD_EXITED ? pinfold_result_code(result) : -1;
    bool through = status == ATTACK_SUCCEEDED && (!a->after || a->after(&c->stage) == 0);

    if (status == ATTACK_REFUSED)
        v.how = arena_text(mem, pinfold_result_stdout(result, NULL));
    else if (status == ATTACK_SUCCEEDED && !through)
        v.how = "it left nothing outside";
    else if (!through)
        v.how = arena_printf(mem, "ended with status %d", pinfold_result_status(result));
    v.must = a->must;
    if (a->must)
        v.held = status == ATTACK_SUCCEEDED ? proved ? HELD : HELD_UNPROVED : BROKEN;
    else if (through)
        v.held = lost >> a->feature & 1 ? HELD_LOST : BROKEN;
    else if (status != ATTACK_REFUSED && status != ATTACK_SUCCEEDED && pinfold_result_end(result) != PINFOLD_SIGNALED)
        v.held = BROKEN; /* it could not be tried: nothing is proved */
    else if (!proved)
        v.held = HELD_UNPROVED;
    return v;
}

int verify_box(struct arena *mem, struct verdict **ret, size_t *ret_n, struct err *e)
{
    static struct scene c; /* as what its parts write paths into: a small stack has room for a box, and little more */
    struct verdict *list = arena_zero(mem, n_attacks * sizeof *list);
    int r = list ? make_scene(&c, e) : err_sys(e, ERR_SYSTEM, ENOMEM, "verify");

    if (r == 0)
        r = load_default(&c, e);
    for (size_t i = 0; r == 0 && i < n_attacks; i++) {
        struct pinfold_result *result;
        clean_work(&c);
        bool proved = !attacks[i].works_outside || run_outside(&c, &attacks[i]) == ATTACK_SUCCEEDED;
        clean_work(&c);
        r = run_inside(&c, attacks[i].name, attacks[i].net, &result, e);
        /* no box with a network is possible: nothing to attack */
        if (r < 0 && attacks[i].net && e->kind == ERR_CANNOT) {
            list[i] = (struct verdict){
                .attack = attacks[i].name, .what = attacks[i].what, .how = "no network namespace", .held = HELD_LOST};
            r = 0;
            continue;
        }
        if (r < 0)
            break;
        list[i] = judge_attack(mem, &c, &attacks[i], proved, result->prepared.plan->lost, result);
        pinfold_result_free(result);
    }
    if (list)
        end_scene(&c);
    if (r < 0)
        return r;
    *ret = list;
    *ret_n = n_attacks;
    return 0;
}

/* Its command could not do what it has to: the guard's reason, if it has told one, and else the command's own words. */
static int box_is_useless(const struct pinfold_result *result, struct err *e)
{
    struct pinfold_denial d = {.size = sizeof d};
    const int status = pinfold_result_status(result);
    if (status != ATTACK_REFUSED)
        return err_say(e, ERR_BUG, "its command ended with status %d: %s", status, pinfold_result_stderr(result, NULL));
    const char *how = pinfold_result_stdout(result, NULL);
    if (pinfold_result_denial(result, 0, &d) > 0)
        return err_say(e, ERR_CANNOT, "its command could not make a file in the workspace: %s: %s", how, d.rule);
    return err_say(e, ERR_CANNOT, "its command could not make a file in the workspace: %s", how);
}

int try_box(struct arena *mem, uint64_t *ret_us, features *ret_lost, const char **ret_how, struct err *e)
{
    static struct scene c;
    c = (struct scene){
        .tcp = -1, .service = -1, .path_socket = -1, .abstract_socket = -1, .leaked = -1, .stage.shm = -1};
    struct pinfold_result *result;
    struct timespec before, after;

    *ret_how = NULL;
    int r = make_files(&c, e);
    if (r == 0) {
        *ret_how = "";
        r = load_default(&c, e);
    }
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (r == 0)
        r = run_inside(&c, ATTACK_MAKE, false, &result, e);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (r == 0) {
        *ret_us = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
        *ret_lost = result->prepared.plan->lost;
        *ret_how = result->prepared.facts.tier == TIER_NAMESPACES ? "namespaces" : "Landlock and seccomp alone";
        if (pinfold_result_status(result) != ATTACK_NONE)
            r = box_is_useless(result, e);
        pinfold_result_free(result);
    }
    end_scene(&c);
    (void)mem;
    return r;
}
