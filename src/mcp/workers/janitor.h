/* The janitor: a process that waits until the server has ended, in whatever way, and then ends its sessions. */
#pragma once
#include <sys/types.h>

/* Ends the sessions of dead instances and prints a line for each. Returns how many. */
unsigned owner_orphans(void);

struct janitor {
    pid_t pid; /* 0: none */
    int fd;
};
/* Starts it unless it runs. */
int janitor_begin(struct janitor *j, const char *instance);
/* Ends the sessions of one client. */
void janitor_forget(struct janitor *j, const char *client);
/* Ends all sessions of the instance; returns when they have ended. */
void janitor_end(struct janitor *j);
