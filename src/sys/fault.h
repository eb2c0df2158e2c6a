/*
 * Fault injection, only in builds with -Dfaults=true: every sys_call() decrements a counter, and the n-th call fails.
 * Set by sys_fail_nth() or by the environment variable PINFOLD_FAULT=N[:ERRNO].
 */
#pragma once
#ifdef PINFOLD_FAULTS
/* Makes the `nth` call from now on fail with `error`; 0: none. */
void sys_fail_nth(unsigned nth, int error);
/* Number of calls since then. */
unsigned sys_calls_seen(void);
/* The counter's memory, which a program executed with this variable set to the number counts on in. */
extern int sys_fault_fd;
#define FAULT_FD_NAME "PINFOLD_FAULT_FD"
int sys_fault(void); /* 0, or the -errno with which this call must fail */
#endif
