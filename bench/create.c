/*
 * Creates N files in the working directory, writes a few bytes into each, closes and removes them:
 *     create N [create|open|write|keep]
 * `open` opens a file N times for reading instead, `write` each of N files that it has made for writing. Prints nanoseconds per file of each
 * of five runs. `keep` makes one run in a new directory and removes nothing: ext4 without a journal skips each inode that was freed in the
 * last minutes, so whoever removes files makes the next ones dearer than any sandbox.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int kept(int n)
{
    char name[64];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(name, sizeof name, "kept-%lld-%ld", (long long)t.tv_sec, t.tv_nsec);
    if (mkdir(name, 0755) < 0 || chdir(name) < 0)
        return -1;
    const double from = seconds();
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "created-%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        if (fd < 0 || write(fd, "hello\n", 6) != 6)
            return -1;
        close(fd);
    }
    printf("%.0f\n", (seconds() - from) * 1e9 / n);
    return 0;
}

static int make(int n)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "created-%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        if (fd < 0)
            return -1;
        close(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    int reading = argc > 2 && !strcmp(argv[2], "open"), own = argc > 2 && !strcmp(argv[2], "write");
    char name[32];
    if (argc > 2 && !strcmp(argv[2], "keep"))
        return kept(n) < 0;
    if (own && make(n) < 0)
        return 1;
    for (int run = 0; run < 5; run++) {
        double from = seconds();
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "created-%d", reading ? 0 : i);
            int fd = open(name, own ? O_WRONLY : reading && i ? O_RDONLY : O_CREAT | O_WRONLY, 0644);
            if (fd < 0 || (!reading && !own && write(fd, "hello\n", 6) != 6)) {
                perror(name);
                return 1;
            }
            close(fd);
        }
        printf("%.0f\n", (seconds() - from) * 1e9 / n);
        for (int i = 0; i < (own ? 0 : reading ? 1 : n); i++) {
            snprintf(name, sizeof name, "created-%d", i);
            unlink(name);
        }
    }
    return 0;
}
