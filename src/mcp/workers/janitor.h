/*
 * The janitor: a process that waits for the server's end, however that comes, and ends the sessions that are left.
 */
#pragma once
#include <sys/types.h>

/* Ends the sessions of dead instances, and says so, a line for each. The number. */
unsigned owner_orphans(void);

struct janitor {
    pid_t pid; /* 0: none */
    int fd;
};
/* Starts it unless it is there. */
int janitor_begin(struct janitor *j, const char *instance);
/* Ends the sessions of one client. */
void janitor_forget(struct janitor *j, const char *client);
/* Ends all sessions of the instance; returns when that is done. */
void janitor_end(struct janitor *j);
