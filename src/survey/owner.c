/*
 * Identifies owners across pid reuse and reboots: boot, machine, process start time, and this instance's id. Records
 * and labels of containers carry it, so that what a dead owner left can be told from what another one uses.
 */
#include "survey/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "base/str.h"
#include "match/proctext.h"
#include "sys/fd.h"

static void first_line(const char *path, char *ret, size_t room)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, room - 1);
    ret[n > 0 ? n : 0] = 0;
    ret[strcspn(ret, "\n")] = 0;
}

void owner_boot(char ret[40])
{
    first_line("/proc/sys/kernel/random/boot_id", ret, 40);
}

void owner_machine(char ret[80])
{
    struct utsname u;
    first_line("/etc/machine-id", ret, 80);
    if (!ret[0] && uname(&u) == 0)
        snprintf(ret, 80, "%.64s", u.nodename);
}

unsigned long long owner_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static bool is_owner_id(const char *s)
{
    return strlen(s) == OWNER_ID - 1 && strspn(s, "0123456789abcdef") == OWNER_ID - 1;
}

/* Written to a temporary file and linked: of two concurrent writers both read the first one's. */
static void make_id(const char *state, const char *path)
{
    unsigned char bytes[(OWNER_ID - 1) / 2];
    char text[OWNER_ID + 1], beside[PATH_MAX];
    int n = snprintf(beside, sizeof beside, "%s/instance.%d", state, (int)getpid());
    if (n >= (int)sizeof beside || getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return;
    hex_digits(bytes, sizeof bytes, text);
    if (mkdir(state, 0700) < 0 && errno != EEXIST)
        return;
    auto_fd int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (write(fd, text, OWNER_ID - 1) == OWNER_ID - 1)
        (void)!link(beside, path);
    (void)unlink(beside);
}

bool instance_id(const char *state, bool make, char ret[OWNER_ID])
{
    char path[PATH_MAX];
    ret[0] = 0;
    if (!state || snprintf(path, sizeof path, "%s/instance", state) >= (int)sizeof path)
        return false;
    first_line(path, ret, OWNER_ID);
    if (!is_owner_id(ret) && make) {
        make_id(state, path);
        first_line(path, ret, OWNER_ID);
    }
    if (!is_owner_id(ret))
        ret[0] = 0;
    return ret[0] != 0;
}

void owner_of_this(const char *state, struct owner *ret)
{
    (void)instance_id(state, true, ret->instance);
    owner_boot(ret->boot);
    snprintf(ret->process, sizeof ret->process, "%d.%llu.%llu", (int)getpid(), process_start_time(0),
             owner_namespace());
}

bool maker_is_gone(const char *boot, const char *process)
{
    char now[40];
    int pid;
    unsigned long long start, space;
    owner_boot(now);
    if (!boot || !process || !now[0] || sscanf(process, "%d.%llu.%llu", &pid, &start, &space) != 3 || pid <= 0)
        return false;
    if (!same(boot, now))
        return true;
    if (space != owner_namespace())
        return false;
    return !process_lives(pid, start);
}

/* What is behind the name. */
static char *own_stat(int pid, char *text, size_t room)
{
    char path[40];
    if (pid)
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
    else
        snprintf(path, sizeof path, "/proc/self/stat");
    (void)sys_read_text(AT_FDCWD, path, text, room);
    return strrchr(text, ')');
}

unsigned long long process_start_time(int pid)
{
    char text[1024];
    (void)own_stat(pid, text, sizeof text);
    return proc_began(text);
}

bool process_lives(int pid, unsigned long long start)
{
    char text[1024];
    const char *p = own_stat(pid, text, sizeof text);
    return p && p[1] == ' ' && p[2] != 'Z' && p[2] != 'X' && proc_began(text) == start;
}

bool process_is_stopped(int pid)
{
    char text[1024];
    const char *p = own_stat(pid, text, sizeof text);
    return p && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
}
