/*
 * Finds and kills descendants without a pid namespace. With Landlock's signal scope (ABI 6) kill(-1) reaches exactly
 * the processes of this process's own domain, the box, atomically. Without, children are found by
 * /proc/PID/task/TID/children (proc(5)): this process is a subreaper, so orphans become its children, and killing
 * children until there are none catches everything that does not fork faster than it is killed.
 */
#include "runtime/command.h"
#include "base/text.h"
#include "sys/poll.h"

enum { MOST = 4096 };

/* Adds the pids of one "children" file to `found`. */
static size_t read_children(int dir, const char *thread, int *found, size_t n)
{
    char path[64], text[4096];
    put_text(put_text(path, thread), "/children");
    own_fd int fd = sys_openat(dir, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return n;
    unsigned pid = 0;
    for (;;) {
        long got = sys_read(fd, text, sizeof text);
        if (got <= 0)
            return n;
        for (long i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (unsigned)(text[i] - '0');
            } else if (pid) {
                if (n < MOST)
                    found[n++] = (int)pid;
                pid = 0;
            }
        }
    }
}

/* The children of every thread of `pid`. */
static size_t children_of(unsigned pid, int *found, size_t n)
{
    char path[64];
    _Alignas(8) char list[4096];
    put_text(put_number(put_text(path, "/proc/"), pid), "/task");
    own_fd int dir = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0)
        return n;
    struct sys_entries entries = SYS_ENTRIES(dir, list);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));)
        n = read_children(dir, d->name, found, n);
    return n;
}

bool hunt(const struct runner *r, int signal)
{
    static int found[MOST];
    if (r->scoped) /* otherwise -1 would mean everything of this user */
        return sys_kill(-1, signal) == 0;
    size_t n = children_of((unsigned)sys_getpid(), found, 0);
    for (size_t i = 0; i < n; i++) { /* grows meanwhile: the children's children */
        n = children_of((unsigned)found[i], found, n);
        (void)sys_kill(found[i], signal);
    }
    return n > 0;
}

void hunt_down(const struct runner *r)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    /* Processes that are not visible cannot be killed: without /proc this must end, too. Those that were killed end once they
       get a processor. */
    enum { PATIENCE = 2000, SEEN_PATIENCE = 20000 };
    bool seen = true;
    for (int tries = 0; tries < (seen ? SEEN_PATIENCE : PATIENCE); tries++) {
        int pid;
        seen = hunt(r, SIGKILL);
        do
            pid = sys_wait4(-1, NULL, WNOHANG | __WALL, NULL);
        while (pid > 0);
        if (pid == -ECHILD)
            return;
        (void)sys_poll(NULL, 0, &moment);
    }
}
