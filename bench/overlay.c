/*
 * What the kernel takes of a copy-on-write workspace: an overlay with the same options over the working directory, in a user and a mount
 * namespace of its own, and nothing else of a box.
 *     overlay [-o OPTIONS] [-t] LAYER COMMAND [ARG...]
 * LAYER is an empty directory of the same file system; with -t it becomes a tmpfs. OPTIONS instead of "userxattr,volatile". Prints the nanoseconds of making and mounting the overlay, then executes COMMAND in it.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void need(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(fd);
}

int main(int argc, char **argv)
{
    char top[2000], options[7000], map[2][64], path[2100];
    const char *with = "userxattr,volatile";
    struct timespec from, to;
    int option, memory = 0;
    while ((option = getopt(argc, argv, "+o:t")) == 'o' || option == 't') {
        memory |= option == 't';
        with = option == 'o' ? optarg : with;
    }
    argv += optind - 1, argc -= optind - 1;
    if (option != -1 || argc < 3) {
        fprintf(stderr, "usage: overlay [-o OPTIONS] [-t] LAYER COMMAND [ARG...]\n");
        return 2;
    }
    snprintf(map[0], sizeof map[0], "%u %u 1\n", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(map[1], sizeof map[1], "%u %u 1\n", (unsigned)getegid(), (unsigned)getegid());
    need(getcwd(top, sizeof top) != NULL, "getcwd");
    need(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", map[0]);
    put("/proc/self/gid_map", map[1]);
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount private");
    need(!memory || mount("none", argv[1], "tmpfs", 0, NULL) == 0, "mount tmpfs");
    snprintf(path, sizeof path, "%s/upper", argv[1]);
    need(mkdir(path, 0755) == 0, path);
    snprintf(path, sizeof path, "%s/work", argv[1]);
    need(mkdir(path, 0700) == 0, path);
    snprintf(options, sizeof options, "%s,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", with, top, argv[1], argv[1]);
    clock_gettime(CLOCK_MONOTONIC, &from);
    need(mount("overlay", top, "overlay", MS_NOSUID | MS_NODEV, options) == 0, "mount overlay");
    clock_gettime(CLOCK_MONOTONIC, &to);
    need(chdir(top) == 0, top);
    printf("%.0f\n", (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec));
    fflush(stdout);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
