/*
 * Identifies the owner of things that can outlive their creator. A pid alone is not enough, because it may be reused:
 * the process's start time, the boot id and the pid namespace go with it. An instance is one state directory; a random
 * id in each tells their things apart.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"

#define OWNER_ID 33

struct owner {
    char instance[OWNER_ID]; /* 32 hexadecimal digits, or "" if it cannot be stored */
    char boot[40];
    char process[64]; /* PID.START.NAMESPACE */
};

/* This process; `state` is .../pinfold. Creates the instance's id on first use. */
void owner_of_this(const char *state, struct owner *ret);
/* The instance's id; false if it has none and (without `make`) gets none. */
bool instance_id(const char *state, bool make, char ret[OWNER_ID]);
/* Whether the process that these two name has certainly ended; false if that cannot be told from here. */
bool maker_is_gone(const char *boot, const char *process);
void owner_boot(char ret[40]);
/* Identifies the machine across reboots: its machine id, else its name. */
void owner_machine(char ret[80]);
/* Of this process's pid namespace. */
unsigned long long owner_namespace(void);

/* Start time of process `pid` (0: this one) in clock ticks after boot: field 22 of proc_pid_stat(5). 0: no such
   process. */
unsigned long long process_start_time(int pid);
/* Whether process `pid` runs, and began at that time. One that has ended but was not waited for still has both numbers. */
bool process_lives(int pid, unsigned long long start);
/* By a signal or a tracer: it answers nobody. */
bool process_is_stopped(int pid);
