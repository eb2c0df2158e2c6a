/*
 * Lists what runs in the box at the moment, according to this machine's /proc: the children of pinfold's own processes
 * (guard, pid 1, a terminal's leader). Nothing is recorded while commands run, so only this request costs time.
 * Processes in a virtual machine are not visible.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "base/json.h"
#include "match/proctext.h"
#include "sessiond/parts.h"
#include "sys/fd.h"

enum { MAX_SHOWN = 32, MAX_LOOKED = 256, MAX_WORDS = 200 };

static long read_of(int pid, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return sys_read_text(AT_FDCWD, path, text, room);
}

/* Whether it is one of ours, and how long it has run: fields 2 and 22 of proc_pid_stat(5). */
static bool stat_of(int pid, bool *ret_own, double *ret_seconds)
{
    char text[1024], up[64];
    if (read_of(pid, "stat", text, sizeof text) <= 0 || sys_read_text(AT_FDCWD, "/proc/uptime", up, sizeof up) <= 0)
        return false;
    const char *name = strchr(text, '('), *rest = strrchr(text, ')');
    if (!name || !rest || rest[1] != ' ' || rest[2] == 'Z')
        return false;
    *ret_own = strncmp(name, "(pinfold", 8) == 0;
    /* Not by strtod(3), which takes an eighth of a small stack (ulimit -s 64). */
    char *end;
    const double whole = (double)strtoull(up, &end, 10),
                 since = whole + (*end == '.' ? (double)strtoull(end + 1, NULL, 10) / 100 : 0);
    *ret_seconds = since - (double)proc_began(text) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static void put_one(struct json *j, int pid, double seconds)
{
    char words[MAX_WORDS + 1];
    long n = read_of(pid, "cmdline", words, sizeof words);
    while (n > 0 && !words[n - 1])
        n--;
    for (long i = 0; i < n; i++) {
        if (!words[i])
            words[i] = ' ';
    }
    json_object(j, NULL);
    json_int(j, "pid", pid);
    json_str(j, "command", (struct str){words, n > 0 ? (size_t)n : 0});
    json_uint(j, "seconds", seconds > 0 ? (uint64_t)seconds : 0);
    json_object_end(j);
}

void running_put(int builder, struct json *j)
{
    int own[MAX_LOOKED] = {builder}, n = builder > 0 ? 1 : 0, shown = 0;
    static char children[4096];
    for (int i = 0; i < n; i++) {
        char name[32]; /* of its only thread */
        snprintf(name, sizeof name, "task/%d/children", own[i]);
        if (read_of(own[i], name, children, sizeof children) <= 0)
            continue;
        char *at = children;
        for (long pid; (pid = strtol(at, &at, 10)) > 0 && shown < MAX_SHOWN;) {
            bool ours;
            double seconds;
            if (!stat_of((int)pid, &ours, &seconds))
                continue;
            if (ours && n < MAX_LOOKED) {
                own[n++] = (int)pid;
            } else if (!ours) {
                put_one(j, (int)pid, seconds);
                shown++;
            }
        }
    }
}
