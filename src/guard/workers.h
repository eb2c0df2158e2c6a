/* The processes of the guard: who receives calls, who waits for whom, and how a caller gets a descriptor. */
#pragma once
#include "guard/state.h"

/* dispatch.c: waits until something is to be judged; false: the box has ended. If that takes a while, what calls that have returned had
   used of this process's stack, which reaches down to `stack`, is given back; NULL: nothing. */
bool guard_asked(const struct guard_ask *ask, char *stack);
struct guard_beginning { /* of the first command of a monitored box; zero at first (begin.c) */
    bool executed;
    pid_t tid;
    uint64_t opens; /* the instruction of its loader */
};
/* Whether a call is part of that beginning, and may go on without a look. Only the numbers of the call are read. */
bool guard_begins(struct guard_beginning *b, const struct guard_ask *ask, const struct seccomp_notif *n);
/* Waits for pid 1, which has ended or is about to; its wait status, or -errno. */
int guard_end_of_init(int init_pidfd);

/* names_lock.c */
int names_lock(struct guard *g, bool exclusive); /* 0, or -ETIMEDOUT without the lock: its holder hangs */
void names_unlock(struct guard *g);
void table_lock(struct shared *s);
void table_unlock(struct shared *s);
/*
 * Installs `fd`, which stays the guard's own, as the caller's lowest free descriptor; `fd_flags`: 0 or O_CLOEXEC.
 * Returns its number or -errno; the caller still waits for its answer. (install.c)
 */
int descriptor_install(struct guard *g, int fd, unsigned fd_flags);
void install_next(struct guard *g);  /* a call begins */
void install_leave(struct guard *g); /* this worker may run on all its processors again */
uint64_t now_ms(void);               /* names_lock.c: coarse, and takes half the time */
uint64_t exact_ns(void);

/* workers.c */
int worker_own(struct guard *g);       /* opens descriptors and sets the working directory, which are per process */
void worker_hand_on(struct guard *g);  /* lets another worker receive */
void workers_apart(struct guard *g);   /* a monitored box asks often: another worker than the main one leads */
void workers_share(struct guard *g);   /* calls queue up: another processor may take the next one */
int guard_child(struct guard *g);      /* forks a process of ours: 1 in it, 0, or -EAGAIN if there are too many */
int guard_child_kept(struct guard *g); /* the same for the one process that a place is kept for (flock.c) */
_Noreturn void guard_leave(struct guard *g); /* exits normally */
int guard_may_block(struct guard *g);        /* 0: another worker receives, go on; GONE_ON; -EAGAIN: too many */
