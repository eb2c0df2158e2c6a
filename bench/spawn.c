/*
 * The measuring side of the bench: starts commands with as little as possible between the two clock readings
 * (posix_spawn, which is vfork here, and wait4) and prints raw numbers; bench/bench thinks about them.
 *
 *     spawn rounds N STEP SPEC     every command once per round, the order turning by STEP each round
 *     spawn rate CALLERS MS SPEC   each command: CALLERS loops start it for MS milliseconds
 *     spawn pipe N SPEC            as rounds; standard output is a pipe that is read to its end
 *
 * SPEC names commands: a line with the number of arguments, then one argument a line. Before the first command come, in
 * the order given, `-m N:DIRECTORY` (N more mounts, below DIRECTORY, in a mount namespace of our own), `-r`
 * (real-time priority, for machines that are busy with other things), `-p US` (rounds: microseconds between the end of a command and
 * the next, for what a command leaves to be done after it), `-e` (rate: caller N works in directory N),
 * `-u UID:GID` and `-d DIRECTORY`. Standard input and output are /dev/null, standard error is inherited. A command that
 * ends with another status than 0 ends the measurement with its number; with `-a MOST` statuses up to that are an answer, too.
 *
 * Lines: rounds: COMMAND WALL_NS USER_US SYSTEM_US; rate: COMMAND STARTED NS; pipe: COMMAND WALL_NS BYTES.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 64
#define MAX_ARGS     8192
#define PIPE_BUFFER  (1u << 20)

extern char **environ;

struct command {
    char **argv;
};
static struct command commands[MAX_COMMANDS];
static int n_commands;
static int null_fd;
static bool each_apart;
static int status_most;
static struct timespec between;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static char *line(FILE *f)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n = getline(&text, &room, f);
    if (n < 0) {
        free(text);
        return NULL;
    }
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}

static void read_spec(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        die(path);
    for (char *head; (head = line(f)) != NULL;) {
        int n = atoi(head);
        if (n < 1 || n > MAX_ARGS || n_commands == MAX_COMMANDS) {
            errno = EINVAL;
            die(path);
        }
        char **argv = calloc((size_t)n + 1, sizeof *argv);
        for (int i = 0; argv && i < n; i++) {
            if (!(argv[i] = line(f))) {
                errno = EINVAL;
                die(path);
            }
        }
        commands[n_commands++].argv = argv;
    }
    fclose(f);
}

static pid_t start(const struct command *c, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, null_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    pid_t pid;
    errno = posix_spawnp(&pid, c->argv[0], &actions, NULL, c->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno)
        die(c->argv[0]);
    return pid;
}

static void finish(int index, pid_t pid, struct rusage *use)
{
    int status;
    if (wait4(pid, &status, 0, use) != pid)
        die("wait4");
    if (!WIFEXITED(status) || WEXITSTATUS(status) > status_most) {
        fprintf(stderr, "spawn: command %d (%s) ended with status 0x%x\n", index, commands[index].argv[0],
                (unsigned)status);
        exit(2);
    }
}

static unsigned long long micro(struct timeval t)
{
    return (unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_usec;
}

static void rounds(int n, int step)
{
    for (int round = 0; round < n; round++) {
        for (int i = 0; i < n_commands; i++) {
            int index = (i + round * step) % n_commands;
            struct rusage use;
            if (between.tv_sec || between.tv_nsec)
                nanosleep(&between, NULL);
            uint64_t from = now();
            pid_t pid = start(&commands[index], null_fd);
            finish(index, pid, &use);
            uint64_t to = now();
            printf("%d %llu %llu %llu\n", index, (unsigned long long)(to - from), micro(use.ru_utime),
                   micro(use.ru_stime));
        }
    }
}

static void piped(int n)
{
    char *buffer = malloc(PIPE_BUFFER);
    for (int round = 0; round < n; round++) {
        for (int i = 0; i < n_commands; i++) {
            int index = (i + round) % n_commands, ends[2];
            if (!buffer || pipe2(ends, O_CLOEXEC) < 0)
                die("pipe");
            /* With the usual 64 KiB both sides wait for each other all the time, and luck decides the figure. */
            (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BUFFER);
            struct rusage use;
            unsigned long long bytes = 0;
            uint64_t from = now();
            pid_t pid = start(&commands[index], ends[1]);
            close(ends[1]);
            for (ssize_t got; (got = read(ends[0], buffer, PIPE_BUFFER)) > 0;)
                bytes += (unsigned long long)got;
            finish(index, pid, &use);
            printf("%d %llu %llu\n", index, (unsigned long long)(now() - from), bytes);
            close(ends[0]);
        }
    }
    free(buffer);
}

static void rate_one(int index, int callers, uint64_t ns)
{
    uint64_t *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        die("mmap");
    uint64_t from = now();
    for (int c = 0; c < callers; c++) {
        pid_t pid = fork();
        if (pid < 0)
            die("fork");
        if (pid == 0) {
            struct rusage use;
            char own[16];
            snprintf(own, sizeof own, "%d", c);
            if (each_apart && chdir(own) < 0)
                die(own);
            while (now() - from < ns) {
                finish(index, start(&commands[index], null_fd), &use);
                counts[c]++;
            }
            _exit(0);
        }
    }
    uint64_t sum = 0;
    int bad = 0;
    for (int c = 0, status; c < callers; c++) {
        if (wait(&status) < 0)
            die("wait");
        bad |= status;
    }
    uint64_t to = now();
    for (int c = 0; c < callers; c++)
        sum += counts[c];
    if (bad)
        exit(2);
    printf("%d %llu %llu\n", index, (unsigned long long)sum, (unsigned long long)(to - from));
    munmap(counts, 4096);
}

static void become(const char *who)
{
    unsigned uid, gid;
    if (sscanf(who, "%u:%u", &uid, &gid) != 2 || setgroups(0, NULL) < 0 || setgid(gid) < 0 || setuid(uid) < 0)
        die(who);
}

static void more_mounts(const char *what)
{
    char path[4096];
    int n, at = 0;
    if (sscanf(what, "%d:%n", &n, &at) != 1 || !at || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die(what);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%d", what + at, i);
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) || mount(what + at, path, NULL, MS_BIND, NULL) < 0)
            die(path);
    }
}

int main(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "+m:rep:a:u:d:")) != -1) {
        if (option == 'm')
            more_mounts(optarg);
        else if (option == 'r') {
            const struct sched_param first = {.sched_priority = 20};
            if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
                die("real-time priority");
        } else if (option == 'p')
            between = (struct timespec){atoi(optarg) / 1000000, atoi(optarg) % 1000000 * 1000L};
        else if (option == 'e')
            each_apart = true;
        else if (option == 'a')
            status_most = atoi(optarg);
        else if (option == 'u')
            become(optarg);
        else if (option != 'd' || chdir(optarg) < 0)
            die("usage: spawn [-m N:DIRECTORY] [-r] [-p US] [-e] [-a MOST] [-u UID:GID] [-d DIRECTORY] rounds N STEP | "
                "rate "
                "CALLERS MS | "
                "pipe "
                "N  "
                "SPEC");
    }
    argc -= optind, argv += optind;
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    errno = EINVAL;
    if (argc < 3 || null_fd < 0)
        die("usage");
    read_spec(argv[argc - 1]);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (!strcmp(argv[0], "rounds") && argc == 4)
        rounds(atoi(argv[1]), atoi(argv[2]));
    else if (!strcmp(argv[0], "pipe"))
        piped(atoi(argv[1]));
    else if (!strcmp(argv[0], "rate") && argc == 4) {
        for (int i = 0; i < n_commands; i++)
            rate_one(i, atoi(argv[1]), (uint64_t)atoi(argv[2]) * 1000000u);
    } else {
        errno = EINVAL;
        die(argv[0]);
    }
    return 0;
}
