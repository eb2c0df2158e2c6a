/*
 * Whose something is that can outlive its maker: a number that another process may have by now is not enough, so the start
 * time stands beside it, the kernel's id of this boot, and the process namespace that the number belongs to. An instance is
 * one state directory: what two of them make is told apart by a random id in each.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"

#define OWNER_ID 33

struct owner {
    char instance[OWNER_ID]; /* 32 hexadecimal digits, or "" where there is no place for it */
    char boot[40];
    char process[64]; /* PID.START.NAMESPACE */
};

/* This process; `state` is .../pinfold. The instance's id is made on first use. */
void owner_of_this(const char *state, struct owner *ret);
/* The instance's id; false when it has none and (without `make`) gets none. */
bool instance_id(const char *state, bool make, char ret[OWNER_ID]);
/* Whether nobody can be alive any more whom these two name; false also for what cannot be told from here. */
bool maker_is_gone(const char *boot, const char *process);
void owner_boot(char ret[40]);
/* The machine, also after it was started anew: its id, else its name. */
void owner_machine(char ret[80]);
/* Of this process's namespace of processes. */
unsigned long long owner_namespace(void);

/* Clock ticks after boot at which process `pid` (0: ourselves) began: field 22 of its stat file, proc(5). 0: there is none. */
unsigned long long process_start_time(int pid);
/* One that has ended and that nobody has waited for still has its number and its start time. */
bool process_is_zombie(int pid);
