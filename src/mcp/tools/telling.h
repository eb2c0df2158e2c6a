/* A command's output as progress of its call. */
#pragma once
#include "mcp/workers/job.h"

/* The `output` callback of a run or an exec that reports the last line as progress. */
struct telling {
    const struct mcp_job *job;
    uint64_t told;
};
void telling_output(void *ctx, int which, const char *bytes, size_t n);
