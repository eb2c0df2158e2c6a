/*
 * Reads what the kernel writes in /proc: see proctext.h. Pure, so that tests and fuzzing give it any text; whoever
 * calls it has read the file.
 */
#include "match/proctext.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

long proc_number(const char *text, const char *label, int base)
{
    const char *p = strstr(text, label);
    char *end;
    if (!p)
        return -1;
    p += strlen(label);
    const long value = strtol(p, &end, base);
    return end == p ? -1 : value;
}

long proc_last_number(const char *text, const char *label)
{
    const char *p = strstr(text, label);
    long value = -1;
    for (p = p ? p + strlen(label) : ""; *p && *p != '\n';) {
        char *end;
        const long one = strtol(p, &end, 10);
        if (end == p)
            break;
        value = one;
        p = end;
    }
    return value;
}

long proc_second_number(const char *text, const char *label)
{
    const char *p = strstr(text, label);
    if (!p)
        return -1;
    char *end;
    const long outer = strtol(p + strlen(label), &end, 10), inner = *end == '\t' ? strtol(end, NULL, 10) : 0;
    return inner > 0 ? inner : outer;
}

unsigned long long proc_began(const char *stat)
{
    const char *p = strrchr(stat, ')'); /* the name before may contain anything */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

uint64_t proc_set(const char *text, const char *label)
{
    const char *p = strstr(text, label);
    return p ? strtoull(p + strlen(label), NULL, 16) : 0;
}

/* ---- mounts ---- */

static char *next_word(char **p)
{
    char *word = *p;
    while (**p && **p != ' ')
        ++*p;
    if (**p)
        *(*p)++ = 0;
    return word;
}

/* Decodes \040 and the like. */
static char *unescaped(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            *to++ = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 4;
        } else {
            *to++ = *p++;
        }
    }
    *to = 0;
    return text;
}

bool proc_next_mount(char **text, struct proc_mount *ret)
{
    char *p = *text, *end = strchr(p, '\n');
    if (!end)
        return false;
    *end = 0;
    *text = end + 1;
    ret->id = strtoull(next_word(&p), NULL, 10);
    (void)next_word(&p);
    char *device = next_word(&p);
    ret->major = (unsigned)strtoul(device, &end, 10);
    if (end == device || *end != ':')
        return false;
    ret->minor = (unsigned)strtoul(end + 1, NULL, 10);
    ret->root = unescaped(next_word(&p));
    ret->at = unescaped(next_word(&p));
    return true;
}

/* ---- sockets ---- */

struct proc_socket proc_socket_line(struct str line)
{
    enum { FLAGS = 3, TYPE, STATE, INODE, LISTENS = 1 << 16, UNCONNECTED = 1 };
    struct proc_socket s = {0};
    char word[24] = "";
    for (int at = 0; at <= INODE; at++) {
        while (line.n && line.p[0] == ' ')
            line = str_skip(line, 1);
        size_t n = 0;
        while (n < line.n && line.p[n] != ' ')
            n++;
        (void)snprintf(word, sizeof word, "%.*s", (int)n, line.p);
        line = str_skip(line, n);
        if (at == FLAGS)
            s.listens = strtoul(word, NULL, 16) & LISTENS;
        else if (at == TYPE)
            s.type = (int)strtoul(word, NULL, 16);
        else if (at == STATE)
            s.connected = strtoul(word, NULL, 16) != UNCONNECTED;
    }
    s.inode = strtoull(word, NULL, 10);
    s.name = str_skip(line, line.n > 0);
    return s;
}

/* ---- paths ---- */

bool proc_is_public(struct str name)
{
    static const char names[][16] = {"status",        "stat",       "statm",     "comm",       "cmdline",   "mountinfo",
                                     "mounts",        "mountstats", "cgroup",    "limits",     "oom_adj",   "oom_score",
                                     "oom_score_adj", "uid_map",    "gid_map",   "projid_map", "setgroups", "loginuid",
                                     "sessionid",     "sched",      "schedstat", "cpuset",     "net",       "task",
                                     "attr",          "autogroup"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

int proc_path_number(struct str path, struct str *ret_rest)
{
    long n = 0;
    *ret_rest = (struct str){0};
    if (!str_starts(path, STR("/proc/")))
        return 0;
    struct str rest = str_skip(path, 6), word = str_until(&rest, '/');
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9' || n > INT_MAX / 16)
            return 0;
        n = n * 10 + word.p[i] - '0';
    }
    *ret_rest = rest;
    return (int)n;
}

bool proc_leaves(const char *text)
{
    if (strncmp(text, "/proc/", 6) != 0)
        return false;
    for (const char *at = text + 6; *at; at += strspn(at, "/")) {
        const size_t n = strcspn(at, "/");
        if (n == 0 || (n == 2 && memcmp(at, "..", 2) == 0) || (n == 4 && memcmp(at, "root", 4) == 0) ||
            (n == 3 && memcmp(at, "cwd", 3) == 0) || (n == 2 && memcmp(at, "fd/", 3) == 0 && strchr(at + 3, '/')))
            return true;
        at += n;
    }
    return false;
}
