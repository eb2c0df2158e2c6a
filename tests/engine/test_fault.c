/*
 * Every kernel call of a start fails once (built with -Dfaults=true). For every n: the box either runs its command as if
 * nothing had happened (the call was one that may fail), or the failure is told in words; and nothing is left behind:
 * no process, descriptor, mount, control group or file. Ends when a start makes fewer than n calls.
 *
 *     test_fault [FIRST [LAST]]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "image.h"
#include "sys/fault.h"

static char home[256];

struct traces { /* of boxes, in this process's surroundings */
    int descriptors, mounts, children, files;
};

static int count_entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Mounts that were not there at the start. Only what came is counted: a mount of somebody else's goes from here too when
 * its directory is removed in another namespace (mount_namespaces(7)). */
static int count_new_mounts(void)
{
    static char *known;
    char *now = NULL, *line = NULL;
    size_t size = 0, room = 0;
    ssize_t length;
    int n = 0;
    FILE *f = fopen("/proc/self/mountinfo", "re"), *text = open_memstream(&now, &size);
    if (!f || !text) {
        perror("/proc/self/mountinfo");
        exit(2);
    }
    while ((length = getline(&line, &room, f)) > 0) {
        fwrite(line, 1, (size_t)length, text);
        n += known && !strstr(known, line);
    }
    fclose(text);
    fclose(f);
    free(line);
    if (known)
        free(now);
    else
        known = now;
    return n;
}

static int count_children(void)
{
    int n = 0;
    for (int waited = 0; waited < 6000; waited++) { /* what lost its parent is ours (subreaper) and may take a moment */
        pid_t pid = waitpid(-1, NULL, __WALL | WNOHANG);
        if (pid < 0)
            return 0;
        if (pid == 0) {
            usleep(10000);
            n = 1;
        }
    }
    return n;
}

static struct traces look(void)
{
    return (struct traces){.descriptors = count_entries("/proc/self/fd"),
                           .mounts = count_new_mounts(),
                           .children = count_children(),
                           .files = count_entries(home)};
}

static struct image *everything(bool tty)
{
    char path[512];
    snprintf(path, sizeof path, "%s/ws", home);
    struct image *i = image_of_parts(path, BOX_GUARD);
    (void)tty;
    image_put_step(i, STEP_VEIL, home, NULL, 0, 0);
    image_stub(i, "secret", STUB_DENIED_DIR);
    image_stub(i, "absent", STUB_ABSENT);
    image_stub(i, "deep/file", STUB_DENIED_FILE);
    image_stub(i, "point", STUB_POINT_DIR);
    snprintf(path, sizeof path, "%s/cover", home);
    image_put_step(i, STEP_COVER, path, NULL, 0, 0);
    image_stub(i, "a", STUB_DENIED_FILE);
    image_locks(i, BOX_GUARD);
    return i;
}

static int bad;
static void wrong(unsigned n, const char *what, const struct ran *ran)
{
    printf("not ok - call %u: %s (exited %d, status %x, verdict %d at %x, '%s')\n", n, what, ran->exited,
           (unsigned)ran->status, ran->verdict, ran->where, ran->words);
    bad++;
}

/* False when the start made fewer than `n` calls. */
static bool try_one(unsigned n, bool tty, const struct traces *before)
{
    static struct ran ran;
    static const char *const argv[] = {"/bin/true", NULL};
    struct run_ask ask = {.image = everything(tty), .argv = argv, .in = -1, .tty = tty};
    sys_fail_nth(n, EIO);
    int r = image_run(&ask, &ran);
    bool reached = sys_calls_seen() >= n;
    sys_fail_nth(0, 0);
    free(ask.image);
    bool ran_well = r == 0 && ran.exited && WIFEXITED(ran.status) && WEXITSTATUS(ran.status) == 0 && !ran.verdict;
    bool told = ran.words[0] || ran.exec_errno || ran.builder_status;
    if (!ran_well && !told)
        wrong(n, "failed without a word", &ran);
    if (!reached && !ran_well)
        wrong(n, "failed although no call did", &ran);
    struct traces after = look();
    if (memcmp(&after, before, sizeof after) != 0) {
        printf("# descriptors %d -> %d, mounts %d -> %d, children %d -> %d, files %d -> %d\n", before->descriptors,
               after.descriptors, before->mounts, after.mounts, before->children, after.children, before->files,
               after.files);
        wrong(n, "something is left", &ran);
    }
    return reached;
}

static void make(const char *name, bool dir)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", home, name);
    int fd = dir ? mkdir(path, 0755) : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    if (!dir)
        close(fd);
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1, last = argc > 2 ? (unsigned)atoi(argv[2]) : 5000;
    const char *base = getenv("HOME");
    snprintf(home, sizeof home, "%s/pf-fault-XXXXXX", base ? base : "/var/tmp");
    if (!mkdtemp(home) || chmod(home, 0755) < 0) {
        perror(home);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    make("ws", true), make("secret", true), make("deep", true), make("cover", true);
    make("deep/file", false), make("cover/a", false), make("cover/b", false);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct traces before = look();
    for (int tty = 0; tty < 2; tty++) {
        unsigned n = first;
        while (n <= last && try_one(n, tty, &before))
            n++;
        printf("%s - %s: %u calls failed one by one\n", bad ? "not ok" : "ok", tty ? "with a terminal" : "plain",
               n - first);
        if (n == first && last > first)
            bad++;
    }
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    return system(command) != 0 || bad > 0;
}
