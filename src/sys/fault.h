/*
 * Fault injection, in builds with -Dfaults=true only: every sys_call() consults a counter, and the n-th fails. Armed by
 * sys_fail_nth() or by the environment, PINFOLD_FAULT=N[:ERRNO].
 */
#pragma once
#ifdef PINFOLD_FAULTS
/* The `nth` call from now on fails with `error`; 0: none. */
void sys_fail_nth(unsigned nth, int error);
/* How many calls there were since. */
unsigned sys_calls_seen(void);
int sys_fault(void); /* 0, or the -errno that this call shall fail with */
#endif
