/*
 * Identifies the process behind a connection. The egress proxy knows both ends; the tables of the box's network
 * namespace (/proc/PID/net/tcp and the like, read through one of its processes) give the inode of the socket with these
 * ends, and the descriptors of the box's processes show who has it. Nothing is prepared at the start, and it is done
 * only for refusals that are kept, for those of a session's commands, and for questions; the time a box can make it use
 * is bounded.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "match/proctext.h"
#include "supervisor/network/live.h"
#include "sys/fd.h"

enum {
    PROCESSES_MAX = 1024, /* looked at for one socket */
    LINKS_MAX = 16384,    /* descriptors */
    TABLE_MAX = 4 << 20,  /* bytes of one of the kernel's tables */
    BUDGET_US = 1000000,  /* of processor time, spent at most, ... */
    BUDGET_SHARE = 60     /* ... and a 60th of the time since */
};

/* ---- the table of sockets ---- */

/* "0100007F" or four of them, as the kernel writes addresses: words in the machine's order. */
static bool hex_address(const char *text, size_t n, uint8_t ret[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint32_t words[4];
    if (n != 8 && n != 32)
        return false;
    for (size_t i = 0; i < n / 8; i++) {
        char word[9];
        memcpy(word, text + i * 8, 8);
        word[8] = 0;
        words[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    if (n == 32) {
        memcpy(ret, words, 16);
    } else {
        memcpy(ret, mapped, 12);
        memcpy(ret + 12, words, 4);
    }
    return true;
}

/* Whether a line is about the socket at the other end of ours; its inode then. */
static unsigned long line_inode(const char *line, const struct egress_event *v)
{
    char local[33], remote[33];
    unsigned local_port, remote_port;
    unsigned long inode = 0;
    uint8_t from[16], to[16];
    static const uint8_t zero[16], zero4[16] = {[10] = 0xff, [11] = 0xff};

    if (sscanf(line, " %*[^:]: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %*u %*u %lu", local, &local_port,
               remote, &remote_port, &inode) != 5)
        return 0;
    if (local_port != v->from_port || !hex_address(local, strlen(local), from) ||
        !hex_address(remote, strlen(remote), to))
        return 0;
    bool unbound = v->udp && (memcmp(from, zero, 16) == 0 || memcmp(from, zero4, 16) == 0);
    if (!unbound && memcmp(from, v->from, 16) != 0)
        return 0;
    if (v->udp && remote_port == 0) /* one that is not connected may send anywhere */
        return inode;
    return remote_port == v->to_port && memcmp(to, v->to, 16) == 0 ? inode : 0;
}

static unsigned long table_inode(int pid, const char *table, const struct egress_event *v)
{
    char path[64], line[512];
    size_t read = 0;
    unsigned long inode = 0;
    snprintf(path, sizeof path, "/proc/%d/net/%s", pid, table);
    FILE *f = fopen(path, "re");
    while (f && !inode && read < TABLE_MAX && fgets(line, sizeof line, f)) {
        read += strlen(line);
        inode = line_inode(line, v);
    }
    if (f)
        (void)fclose(f);
    return inode;
}

/* ---- the processes ---- */

struct tree {
    int pids[PROCESSES_MAX];
    unsigned n, links;
};

static void add_to_tree(void *ctx, int child)
{
    struct tree *t = ctx;
    if (t->n < PROCESSES_MAX)
        t->pids[t->n++] = child;
}

static bool holds_socket(struct tree *t, int pid, const char *wanted)
{
    char path[64], link[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    struct dirent *entry;
    while (d && !found && t->links < LINKS_MAX && (entry = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof link - 1);
        t->links++;
        if (n <= 0)
            continue;
        link[n] = 0;
        found = same(link, wanted);
    }
    if (d)
        closedir(d);
    return found;
}

static void numbers_inside(int pid, struct who *ret)
{
    char path[64], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    (void)sys_read_text(AT_FDCWD, path, text, sizeof text);
    const long inside = proc_last_number(text, "\nNSpid:"), session = proc_last_number(text, "\nNSsid:");
    ret->pid = inside > 0 ? (uint32_t)inside : 0;
    ret->session = session > 0 ? (uint32_t)session : 0;
}

/* A process names itself: only what can be shown anywhere stays. */
static void comm_of(int pid, char *ret, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    (void)sys_read_text(AT_FDCWD, path, ret, n);
    for (char *p = ret; *p; p++) {
        if (*p == '\n')
            *p = 0;
        else if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
        if (!*p)
            break;
    }
}

static void find_who(struct box *b, const struct egress_event *v, struct who *ret)
{
    static const char *const tables[2][2] = {{"tcp", "tcp6"}, {"udp", "udp6"}};
    struct tree *t = malloc(sizeof *t);
    char wanted[64];
    if (!t)
        return;
    t->n = t->links = 0;
    (void)watcher_children(b->started.pid, add_to_tree, t);
    t->n = t->n > 1 ? 1 : t->n; /* the first child of the builder is pid 1 of the box */
    unsigned long inode = t->n ? table_inode(t->pids[0], tables[v->udp != 0][0], v) : 0;
    if (t->n && !inode)
        inode = table_inode(t->pids[0], tables[v->udp != 0][1], v);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    for (unsigned i = 0; inode && i < t->n; i++) {
        (void)watcher_children(t->pids[i], add_to_tree, t);
        if (i == 0 || !holds_socket(t, t->pids[i], wanted))
            continue;
        numbers_inside(t->pids[i], ret);
        comm_of(t->pids[i], ret->command, sizeof ret->command);
        break;
    }
    free(t);
}

/* By this thread: how long it waited for a busy machine's processor does not count. */
static uint64_t used_us(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void who_is(struct box *b, const struct egress_event *v, struct who *ret)
{
    struct live *l = b->live;
    *ret = (struct who){0};
    uint64_t began = now_us(), earned = (began - l->who_at) / BUDGET_SHARE;
    l->who_us = l->who_us > earned ? l->who_us - earned : 0;
    l->who_at = began;
    if (!v->from_port || b->started.pid <= 0 || l->who_us > BUDGET_US)
        return;
    const uint64_t used = used_us();
    find_who(b, v, ret);
    l->who_us += used_us() - used;
}
