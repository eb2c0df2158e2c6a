/*
 * What the guard costs, against the same box without it. Prints microseconds and ratios; with --check, exits 1 when a
 * ratio is over its bar.
 */
#include "harness.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 4000

struct work {
    int (*once)(int i, int who);
    int n, parallel;
    double us; /* per call, of the slowest process */
    int out[2];
};

static int create_one(int i, int who)
{
    char name[64];
    snprintf(name, sizeof name, "d%d/f%d", who, i);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, "x", 1) != 1)
        return 1;
    close(fd);
    return 0;
}
static int open_write(int i, int who)
{
    (void)i;
    char name[64];
    snprintf(name, sizeof name, "d%d/f0", who);
    int fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return 1;
    close(fd);
    return 0;
}
static int open_read(int i, int who)
{
    (void)i;
    char name[64];
    snprintf(name, sizeof name, "d%d/f0", who);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 1;
    close(fd);
    return 0;
}
static int rename_one(int i, int who)
{
    char a[64], b[64];
    snprintf(a, sizeof a, "d%d/f%d", who, i);
    snprintf(b, sizeof b, "d%d/g%d", who, i);
    return rename(a, b);
}
static int unlink_one(int i, int who)
{
    char a[64];
    snprintf(a, sizeof a, "d%d/g%d", who, i);
    return unlink(a);
}
static int null_one(int i, int who)
{
    (void)i;
    (void)who;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    close(fd);
    return fd < 0;
}

static int loop(const struct work *w, int who)
{
    for (int i = 0; i < w->n; i++)
        if (w->once(i, who))
            return 1;
    return 0;
}

static int run_work(void *ctx)
{
    struct work *w = ctx;
    char name[16];
    for (int i = 0; i < w->parallel; i++) {
        snprintf(name, sizeof name, "d%d", i);
        (void)mkdir(name, 0777);
    }
    uint64_t from = now_ns();
    int bad = 0;
    if (w->parallel == 1)
        bad = loop(w, 0);
    else {
        for (int i = 0; i < w->parallel; i++)
            if (fork() == 0)
                _exit(loop(w, i));
        for (int status; wait(&status) > 0;)
            bad |= status != 0;
    }
    double us = (double)(now_ns() - from) / 1e3 / w->n;
    if (write(w->out[1], &us, sizeof us) != sizeof us)
        bad = 1;
    return bad;
}

static double measure(const struct box *box, int (*once)(int, int), int parallel)
{
    struct work w = {.once = once, .n = FILES, .parallel = parallel};
    if (pipe(w.out) < 0)
        return 0;
    struct box_result r;
    box_run(box, run_work, &w, &r);
    CHECK(r.status == 0, "status %d", r.status);
    if (read(w.out[0], &w.us, sizeof w.us) != sizeof w.us)
        w.us = 0;
    close(w.out[0]);
    close(w.out[1]);
    return w.us;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

#define ROUNDS 7
/* Each round in a fresh workspace, modes side by side; medians. */
static void compare(const char *what, int (*prepare)(int, int), int (*prepare2)(int, int), int (*once)(int, int),
                    int parallel)
{
    static const char *names[] = {"bare", "fixed", "any depth", "reads"};
    double all[4][ROUNDS], median[4];
    for (int round = 0; round < ROUNDS; round++) {
        for (int mode = 0; mode < 4; mode++) {
            char *ws = box_workspace();
            struct box box = {.workspace = ws, .unguarded = mode == 0, .reads = mode == 3};
            box.rules = mode == 1 ? box_fixed_rules : box_default_rules;
            box.n_rules = mode == 1 ? box_fixed_n : box_default_n;
            struct box bare = box;
            bare.unguarded = true;
            if (prepare)
                (void)measure(&bare, prepare, parallel);
            if (prepare2)
                (void)measure(&bare, prepare2, parallel);
            all[mode][round] = measure(&box, once, parallel);
            box_workspace_end(ws);
        }
    }
    printf("%-34s", what);
    for (int mode = 0; mode < 4; mode++) {
        qsort(all[mode], ROUNDS, sizeof(double), by_value);
        median[mode] = all[mode][ROUNDS / 2];
        printf("  %s %.1f us (%.2f)", names[mode], median[mode], median[mode] / median[0]);
    }
    printf("\n");
}

static double shell_ms(const struct box *box, const char *command)
{
    uint64_t from = now_ns();
    int status = box_shell(box, command, NULL);
    CHECK(status == 0, "%s: %d", command, status);
    return (double)(now_ns() - from) / 1e6;
}

static void compare_shell(const char *what, const char *before, const char *command)
{
    static const char *names[] = {"bare", "fixed", "any depth"};
    double all[3][ROUNDS];
    printf("%-34s", what);
    for (int round = 0; round < ROUNDS; round++) {
        for (int mode = 0; mode < 3; mode++) {
            char *ws = box_workspace();
            struct box box = {.workspace = ws, .unguarded = mode == 0};
            box.rules = mode == 1 ? box_fixed_rules : box_default_rules;
            box.n_rules = mode == 1 ? box_fixed_n : box_default_n;
            struct box bare = box;
            bare.unguarded = true;
            (void)shell_ms(&bare, before);
            all[mode][round] = shell_ms(&box, command);
            box_workspace_end(ws);
        }
    }
    double bare = 0;
    for (int mode = 0; mode < 3; mode++) {
        qsort(all[mode], ROUNDS, sizeof(double), by_value);
        double median = all[mode][ROUNDS / 2];
        bare = mode ? bare : median;
        printf("  %s %.0f ms (%.2f)", names[mode], median, median / bare);
    }
    printf("\n");
}

#define IDENTITY                                                                                                       \
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/tmp; "

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    compare("create + write + close", NULL, NULL, create_one, 1);
    compare("the same, 2 at a time", NULL, NULL, create_one, 2);
    compare("open for writing + close", create_one, NULL, open_write, 1);
    compare("open for reading + close", create_one, NULL, open_read, 1);
    compare("open /dev/null for writing + close", NULL, NULL, null_one, 1);
    compare("rename", create_one, NULL, rename_one, 1);
    compare("unlink", create_one, rename_one, unlink_one, 1);
    compare_shell("git clone of 5,000 files",
                  IDENTITY
                  "git init -q src && cd src && for d in $(seq 50); do mkdir d$d; for f in $(seq 100); do echo "
                  "$d $f > d$d/f$f; done; done; git add -A && git commit -qm x",
                  IDENTITY "git clone -q src dst");
    compare_shell("git init + add + commit, 500 files",
                  IDENTITY "mkdir src && cd src && for f in $(seq 500); do echo $f > f$f; done",
                  IDENTITY "cd src && git init -q && git add -A && git commit -qm x");
    return check_report("guard bench");
}
