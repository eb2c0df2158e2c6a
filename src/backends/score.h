/* The score by which the kernel chooses whom it ends where memory is short (proc_pid_oom_score_adj(5)). */
#pragma once
#include "runtime/builder.h"

/* Before a builder shares this process's memory: raises the score of both, unless that was done for a box before. */
void score_raise(struct builder *b);
/* Puts it back as it was. */
void score_back(void);
