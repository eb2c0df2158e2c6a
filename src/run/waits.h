/*
 * Says, on the descriptor `fd`, what pinfold waits for, when a file system does not answer (a FUSE server that hangs, a network
 * file system without its server) or another pinfold holds a lock. For the command line alone: it starts a thread.
 */
#pragma once

/* `ends_with`: the end of a pipe; where nobody has the other one any more, this process ends. -1: none. */
void waits_begin(int fd, int ends_with);
/* No more is said: from here on pinfold waits for the box. Closes the descriptor if it is none of the three standard ones. */
void waits_end(void);
/* When the command has run for a while: gives the thread's memory back, if it has ended. */
void waits_forget(void);
