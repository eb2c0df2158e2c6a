/*
 * A file outside of what the box can write is to be opened for writing, and pinfold may ask somebody (plan_image.grants). The
 * guard sends this with the object (O_PATH) on one end of a SOCK_SEQPACKET pair, gives pinfold the other (FRAME_GRANT), and
 * waits for a number: 0 with a descriptor for that object, or -errno.
 */
#pragma once
#include <fcntl.h>
#include <stdint.h>

#define GRANT_PATH  4096 /* with its NUL */
#define GRANT_FLAGS (O_ACCMODE | O_APPEND | O_TRUNC | O_NONBLOCK | O_SYNC)

struct grant_request {
    uint32_t pid;          /* in the box; 0: unknown */
    int32_t flags;         /* of GRANT_FLAGS */
    char command[16];      /* the name of the process (comm in proc(5)) */
    char path[GRANT_PATH]; /* of the object, in the box */
};
