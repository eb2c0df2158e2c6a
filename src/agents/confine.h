/*
 * How the processes are confined that touch what boxes have written of an agent: no new privileges, no capability, no other process, no
 * core dump, and by Landlock the given directories alone. Where the kernel has no Landlock, what holds is that no link is followed.
 */
#pragma once

struct agent_rules {
    int rules; /* Landlock's, owned; -1: the kernel has none */
    unsigned long long all;
};
enum agent_may {
    AGENT_LOOKS,  /* reads */
    AGENT_WRITES, /* all but to execute, and to move what is there elsewhere */
    AGENT_MOVES   /* all but to execute */
};

/* In the process itself, once. Each returns 0 or -errno; after agent_confine() the process may do only what was allowed. */
int agent_rules_begin(struct agent_rules *ret);
int agent_rules_allow(const struct agent_rules *r, int dir, enum agent_may may);
int agent_confine(struct agent_rules *r);
