/*
 * Texts that the kernel shows in /proc: numbers behind their labels, and lines of tables. Pure: a text in, what it says out. Who reads
 * one cannot be deceived by a name in it, which has no newline: the kernel writes \012.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

/* The number behind `label`, which begins with the newline before it ("\nTgid:\t"); -1: there is none. */
long proc_number(const char *text, const char *label, int base);
/* Of several on the line, one for each pid namespace from ours down: the last, or the second (the only one, if it is that). */
long proc_last_number(const char *text, const char *label);
long proc_second_number(const char *text, const char *label);
/* When a process began, in ticks since the machine did, by its stat (proc_pid_stat(5)); 0: that is none. */
unsigned long long proc_began(const char *stat);
/* A set in hexadecimal; 0: there is none. */
uint64_t proc_set(const char *text, const char *label);

/* What matters of a line of mountinfo (proc_pid_mountinfo(5)). */
struct proc_mount {
    uint64_t id;
    unsigned major, minor;
    char *root, *at; /* decoded in place */
};
/* Cuts a line off *text; false: there is no other, or it is none. */
bool proc_next_mount(char **text, struct proc_mount *ret);

/* A line of net/unix: "0000: REFS PROTOCOL FLAGS TYPE STATE INODE NAME". */
struct proc_socket {
    uint64_t inode;
    bool listens, connected;
    int type;
    struct str name; /* NUL in it is shown as @ */
};
struct proc_socket proc_socket_line(struct str line);

/* Of a file of a process: every process may read it for every other, ptrace(2) or not. The name in /proc/PID, or in a task of it. */
bool proc_is_public(struct str name);
/* The number behind "/proc/", 0 if none; *ret_rest is what follows it. */
int proc_path_number(struct str path, struct str *ret_rest);
/* Whether a path of /proc leads out of it again: "..", root, cwd, or beyond a descriptor. */
bool proc_leaves(const char *text);
