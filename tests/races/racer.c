/*
 * One of two that race: racer ROLE SCENARIO DIRECTORY ROUNDS. Both stand in boxes of their own and share DIRECTORY; the file `sync` in it,
 * mapped by both, starts them at the same moment, so that one judges while the other acts. Role 0 prepares each round and
 * looks at what came of it: it prints how often each act succeeded, and how often both did where one must not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EVIL           "[core]\n\tfsmonitor = touch /tmp/ran\n"
#define WAIT_S         60
#define WAIT_LANDED_NS 50000000u
#define EXCHANGE       2

struct sync {
    _Atomic uint32_t arrived[2];
    _Atomic int32_t did[2];
};
static struct sync *shared;
static int role;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "racer %d: %s: %s\n", role, what, strerror(errno));
    exit(2);
}

static void meet(void)
{
    uint32_t mine = atomic_fetch_add(&shared->arrived[role], 1) + 1;
    for (uint64_t until = now_ns() + WAIT_S * 1000000000ull; atomic_load(&shared->arrived[!role]) < mine;) {
        if (now_ns() > until) {
            errno = ETIMEDOUT;
            die("the other");
        }
        sched_yield();
    }
}

static int file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0755);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n < 0 ? -1 : 0;
}

static bool is(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static bool holds(const char *path, const char *text)
{
    char bytes[4096];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes - 1);
    if (fd >= 0)
        close(fd);
    bytes[n > 0 ? n : 0] = 0;
    return n > 0 && strstr(bytes, text);
}

static void dirs(const char *const *list)
{
    for (; *list; list++)
        if (mkdir(*list, 0777) < 0)
            die(*list);
}
#define DIRS(...) dirs((const char *const[]){__VA_ARGS__, NULL})

static void put(const char *path, const char *text)
{
    if (file(path, text) < 0)
        die(path);
}

static int renames(const char *a, const char *b, unsigned flags)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, flags);
}

static int socket_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(a.sun_path, path);
    int no = bind(fd, (struct sockaddr *)&a, sizeof a);
    close(fd);
    return no;
}

/* ---- what is raced ---- */

static void half(void)
{
    DIRS("d", "d/refs", "d/hooks");
}
static int complete(void)
{
    return mkdir("d/objects", 0777);
}
static int hook(void)
{
    return file("d/hooks/pre-commit", "#!/bin/sh\n");
}
static bool hook_counts(void)
{
    return is("d/objects") && is("d/hooks/pre-commit");
}

/*
 * The host knows no lock, so what it writes after the last look is its own. But a hook of which it saw that it stood before the
 * act, the look after the act sees as well: then the act has not succeeded.
 */
static int hook_before_objects(void)
{
    return hook() == 0 && !is("d/objects") ? 0 : -1;
}
static bool objects_made_over(void)
{
    return shared->did[0] && shared->did[1] && hook_counts();
}

static void half_and_file(void)
{
    half();
    put("f", "#!/bin/sh\n");
}
static int hook_moved(void)
{
    return rename("f", "d/hooks/pre-commit");
}
static int hook_linked(void)
{
    return link("f", "d/hooks/pre-commit");
}

static void plain(void)
{
    DIRS("d", "d/hooks");
}
static int to_git(void)
{
    return rename("d", ".git");
}
static bool hook_in_git(void)
{
    return is(".git/hooks/pre-commit");
}
static int hook_before_name(void)
{
    return hook() == 0 && is("d/hooks/pre-commit") ? 0 : -1;
}
static bool named_over(void)
{
    return shared->did[0] && shared->did[1] && hook_in_git();
}

static void half_and_hooks(void)
{
    DIRS("d", "d/refs", "q");
    put("q/pre-commit", "#!/bin/sh\n");
}
static int hooks_moved(void)
{
    return rename("q", "d/hooks");
}

static int config(void)
{
    return file("d/config", EVIL);
}
static bool config_counts(void)
{
    return is("d/objects") && holds("d/config", "fsmonitor");
}
static void half_and_config(void)
{
    half();
    put("f", EVIL);
}
static int config_moved(void)
{
    return rename("f", "d/config");
}

static int commondir(void)
{
    return file("d/commondir", "/tmp/x\n");
}
static bool commondir_counts(void)
{
    return is("d/objects") && is("d/commondir");
}

static void half_and_remotes(void)
{
    DIRS("d", "d/refs", "d/remotes");
}
static int remote(void)
{
    return file("d/remotes/origin", "URL: ext::sh\n");
}
static bool remote_counts(void)
{
    return is("d/objects") && is("d/remotes/origin");
}

static void two(void)
{
    DIRS("x", "y", "y/hooks");
    put("y/hooks/pre-commit", "#!/bin/sh\n");
}
static int x_to_git(void)
{
    return rename("x", ".git");
}
static int exchange(void)
{
    return renames("x", "y", EXCHANGE);
}
static int replace(void)
{
    return rmdir("x") == 0 && rename("y", "x") == 0 ? 0 : -1;
}

static void flight(void)
{
    DIRS("d", "d/refs", "q");
}
/*
 * What a guard does between its verdict and its act, when it is not scheduled for a while: it has the directory, and makes an ordinary
 * name there. Every other round it goes on only when the directory is another box's hooks. The host plays it, whom nothing holds.
 */
static int in_flight(void)
{
    int dir = open("q", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    for (uint64_t until = now_ns() + (random() % 2) * WAIT_LANDED_NS; !is("d/objects") && now_ns() < until;)
        sched_yield();
    int fd = openat(dir, "pre-commit", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    close(dir);
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}
static int land(void)
{
    return rename("q", "d/hooks") == 0 && mkdir("d/objects", 0777) == 0 ? 0 : -1;
}

static void one(void)
{
    DIRS("d");
}
static int hgrc(void)
{
    return file("d/hgrc", "[hooks]\n");
}
static int to_hg(void)
{
    return rename("d", ".hg");
}
static bool hgrc_counts(void)
{
    return is(".hg/hgrc");
}

static void deep(void)
{
    DIRS("a", "a/b");
}
static int deep_attributes(void)
{
    return file("a/b/attributes", "* filter=x\n");
}
static int to_info(void)
{
    return rename("a/b", "a/info") == 0 && rename("a", ".git") == 0 ? 0 : -1;
}
static bool deep_counts(void)
{
    return is(".git/info/attributes");
}

static void sockets(void)
{
    DIRS("a", "a/x", "b", "b/x", "b/x/refs", "b/x/hooks");
    put("b/x/hooks/pre-commit", "#!/bin/sh\n");
}
static int socket_objects(void)
{
    return socket_at("a/x/objects");
}
static int exchange_above(void)
{
    return renames("a", "b", EXCHANGE);
}
static bool socket_counts(void)
{
    return (is("a/x/objects") && is("a/x/hooks/pre-commit")) || (is("b/x/objects") && is("b/x/hooks/pre-commit"));
}

static void module(void)
{
    DIRS(".git", ".git/objects", ".git/refs", ".git/modules", ".git/modules/m", ".git/modules/m/objects",
         ".git/modules/m/refs");
    put("f", "[core]\n\tworktree = ../../../sub\n");
}
static int module_config(void)
{
    return rename("f", ".git/modules/m/config");
}
static int module_link(void)
{
    return symlink("/tmp", "sub");
}
static bool module_counts(void)
{
    return is("sub") && holds(".git/modules/m/config", "sub");
}

static void late_module(void)
{
    DIRS(".git", ".git/objects", ".git/refs");
    put("f", "[core]\n\tworktree = ../../../sub\n");
}
static int late_config(void)
{
    static const char *const all[] = {".git/modules", ".git/modules/m", ".git/modules/m/objects", ".git/modules/m/refs",
                                      NULL};
    for (const char *const *p = all; *p; p++)
        if (mkdir(*p, 0777) < 0)
            return -1;
    return rename("f", ".git/modules/m/config");
}

static const struct scenario {
    const char *name;
    void (*prepare)(void);
    int (*act[2])(void);
    bool (*won)(void);
} scenarios[] = {
    {"a-hook-and-objects", half, {hook, complete}, hook_counts},
    {"a-hook-renamed-and-objects", half_and_file, {hook_moved, complete}, hook_counts},
    {"a-hook-linked-and-objects", half_and_file, {hook_linked, complete}, hook_counts},
    {"a-hook-and-the-name-of-its-repository", plain, {hook, to_git}, hook_in_git},
    {"the-name-of-a-repository-and-a-hook", plain, {to_git, hook}, hook_in_git},
    {"objects-and-a-hook", half, {complete, hook}, hook_counts},
    {"objects-over-a-hook-that-stood-before", half, {complete, hook_before_objects}, objects_made_over},
    {"a-name-over-a-hook-that-stood-before", plain, {to_git, hook_before_name}, named_over},
    {"hooks-moved-and-objects", half_and_hooks, {hooks_moved, complete}, hook_counts},
    {"a-hook-under-way-in-a-directory-that-becomes-hooks", flight, {land, in_flight}, hook_counts},
    {"a-configuration-and-objects", half, {config, complete}, config_counts},
    {"a-configuration-renamed-and-objects", half_and_config, {config_moved, complete}, config_counts},
    {"commondir-and-objects", half, {commondir, complete}, commondir_counts},
    {"a-remote-and-objects", half_and_remotes, {remote, complete}, remote_counts},
    {"what-moves-exchanged-meanwhile", two, {x_to_git, exchange}, hook_in_git},
    {"what-moves-replaced-meanwhile", two, {x_to_git, replace}, hook_in_git},
    {"hgrc-and-the-name-of-its-directory", one, {hgrc, to_hg}, hgrc_counts},
    {"two-names-of-a-longer-rule", deep, {deep_attributes, to_info}, deep_counts},
    {"a-socket-where-directories-change-places", sockets, {socket_objects, exchange_above}, socket_counts},
    {"a-submodule-and-a-link-in-its-place", module, {module_config, module_link}, module_counts},
    {"a-new-submodule-and-a-link-in-its-place", late_module, {late_config, module_link}, module_counts},
};

/*
 * Whoever won the last rounds begins later, each time by twice as much, until the other one wins: so the two acts meet after a few
 * rounds, also where one is five calls of a busy guard and the other is one.
 */
static void some_time(long lead)
{
    long mine = (role == 0 ? lead : -lead) + random() % 6000;
    uint64_t until = now_ns() + (uint64_t)(mine > 0 ? mine : 0);
    while (now_ns() < until)
        ;
}

static long next_lead(long lead)
{
    static long step = 3000;
    static int last;
    const int first = shared->did[0] - shared->did[1];
    step = first && first == last && step < 400000 ? 2 * step : 3000;
    last = first;
    lead += first > 0 ? step : first < 0 ? -step : 0;
    return lead > 3000000 ? 3000000 : lead < -3000000 ? -3000000 : lead;
}

static void race(const struct scenario *s, unsigned rounds)
{
    unsigned did[2] = {0, 0}, both = 0, won = 0;
    char name[32];
    long lead = 0;
    for (unsigned i = 0; i < rounds; i++) {
        snprintf(name, sizeof name, "r%u", i);
        if (role == 0 && (mkdir(name, 0777) < 0 || chdir(name) < 0))
            die(name);
        if (role == 0)
            s->prepare();
        meet();
        if (role == 1 && chdir(name) < 0)
            die(name);
        meet();
        some_time(lead);
        atomic_store(&shared->did[role], s->act[role]() == 0);
        meet();
        lead = next_lead(lead);
        if (role == 0) {
            did[0] += (unsigned)shared->did[0];
            did[1] += (unsigned)shared->did[1];
            both += shared->did[0] && shared->did[1];
            won += s->won();
        }
        if (chdir("..") < 0)
            die("..");
        meet();
    }
    if (role == 0)
        printf("rounds %u first %u second %u both %u won %u\n", rounds, did[0], did[1], both, won);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
            puts(scenarios[i].name);
        return 0;
    }
    if (argc != 5)
        return 2;
    role = atoi(argv[1]);
    umask(0);
    srandom((unsigned)now_ns() ^ (unsigned)role);
    if (chdir(argv[3]) < 0)
        die(argv[3]);
    int fd = open("sync", O_RDWR);
    shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        die("sync");
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[2]) == 0) {
            race(&scenarios[i], (unsigned)atoi(argv[4]));
            return 0;
        }
    }
    return 2;
}
