/*
 * The file API: requests of pinfold to the worker of the guard that performs them (guard/calls/file_api.c), on a
 * SOCK_SEQPACKET pair whose other end reached the guard with FRAME_FILES. One request, one answer; an opened file comes
 * with the answer (SCM_RIGHTS). Paths are absolute paths in the box. The guard judges each request as if a command in
 * the box had made the call.
 */
#pragma once
#include <stdint.h>

enum file_op {
    FILE_WHERE = 1, /* a path: what it leads to (mode 0: nothing); its canonical path as text */
    FILE_OPEN,      /* a path; flags, mode: open(2). Only regular files and directories; never blocks */
    FILE_MAKE_DIR,  /* a path; mode */
    FILE_MAKE_LINK, /* a path; other: the link's text */
    FILE_READ_LINK, /* a path; the link's text comes as text */
    FILE_REMOVE,    /* a path; flags: AT_REMOVEDIR */
    FILE_RENAME,    /* a path; other: the new path */
    FILE_MODE,      /* a path; mode */
    FILE_MOUNTS     /* the box's table of mounts (protocol/paths.h), in a memfd */
};

#define FILE_PATH 4096 /* with the NUL */

struct file_call {
    uint32_t op, flags, mode;
    uint32_t path_bytes, other_bytes; /* with their NULs; 0: none. In this order in `text` */
    char text[2 * FILE_PATH];
};

struct file_answer {
    int32_t result; /* 0 or -errno */
    uint32_t mode;  /* FILE_WHERE; type and permissions */
    uint32_t uid, gid, links;
    uint32_t writable; /* FILE_WHERE: 0, or the errno that writing would give (permissions, a read-only mount) */
    uint64_t size, modified_ns, device, inode;
    uint32_t mounted;               /* FILE_WHERE: it is a mount point */
    uint32_t text_bytes, why_bytes; /* with their NULs; 0: none. If a rule refused it: `why`, and the rule as text */
    char text[FILE_PATH + 512];
};
#define FILE_HEAD (offsetof(struct file_answer, text))
