/* Between pid 1 and the command it starts. */
#pragma once
#include <sys/ioctl.h>
#include "runtime/runner.h"

#define WHERE_EXEC UINT32_MAX /* of struct outcome: execve failed, the command is at fault */

/* What a child that could not start its command writes into the memory it shares with its parent. */
struct outcome {
    uint32_t where;      /* a step, WHERE_* or WHERE_EXEC */
    int no;              /* errno, 0: the command runs */
    const char **script; /* argv made for /bin/sh, or NULL */
    size_t script_bytes;
};

/* In the child of a vfork. `slave`: the box's terminal, or -1. */
_Noreturn void command_child(const struct runner *r, const struct job *job, int slave, struct outcome *o);
/* In a child of pid 1: leads the terminal's session, runs the job in it, reports stops and the exit on `control`. */
_Noreturn void leader_main(const struct runner *r, const struct job *job, int slave, int control);
/* vfork and command_child(): the pid, or -errno; `o` then tells whether the command was started. */
int command_start(const struct runner *r, const struct job *job, int slave, struct outcome *o);
/* Sends FRAME_EXEC_FAILED or FRAME_VERDICT for a command that did not start. */
void command_failed(int control, const struct outcome *o);
/* session.c: pid 1 of a session. Takes FRAME_EXEC from `control` until that closes, then ends the box. `signals` is a
   signalfd for SIGCHLD, `proc` a descriptor of /proc or -1. */
_Noreturn void serve_main(const struct runner *r, int control, int signals, int proc, uint32_t umask);
/* Sends a frame to pinfold, with a descriptor or -1. Fails if nobody listens: then this process ends, too. */
int send_frame(int control, const struct frame *f, int fd);
/* Reports that a step or WHERE_* failed with -errno `e`, and exits. */
_Noreturn void give_up(int control, uint32_t where, int e);
/* What failed with -errno is the end. */
static inline void or_give_up(int control, uint32_t where, int e)
{
    if (e < 0)
        give_up(control, where, e);
}
/* In a box without a pid namespace: kills all that is left, and exits. */
_Noreturn void init_leave(const struct runner *r, int status);
/* 0, or -errno if pinfold could not be told. */
int report_exit(int control, const struct job *job, int status, const struct rusage *usage);

/* Whether a network namespace has counted tries to use a network that it does not have: the text of its /proc/net/snmp. */
bool counts_network_tries(const char *text);

/* As a shell tells it, of a wait status. */
static inline int exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
/* FRAME_STOPPED, of a wait status. */
void report_stop(int control, int status);
/* Gives pinfold the master of the job's terminal, which has the size that the job asks for. */
int terminal_give(int control, const struct job *job, int master);
/* As FRAME_WINSIZE says it. */
void terminal_resize(int master, const struct frame *f);
/* To the terminal's foreground group: that is how a command is known here whose leader has started it. */
void signal_foreground(int master, int signal);

/* hunt.c: for boxes without a pid namespace. Sends `signal` to every descendant of this process. */
bool hunt(const struct runner *r, int signal);
