/*
 * The job image: one command for a pid 1 that serves a session (runtime/session.c), as one flat run of bytes. The
 * caller writes it, the session daemon adds the session's environment, pid 1 runs it. Lists are offsets into the image,
 * so it needs no relocation.
 *
 * It travels in a FRAME_EXEC message: struct frame, then the image, if it has at most JOB_INLINE bytes; a longer one is
 * in a memfd. Descriptors of that message, in this order: the memfd if the frame's `b` is 1; the reply socket
 * (SOCK_SEQPACKET), on which pid 1 and the caller talk from then on; those of standard input, output and error that
 * job_streams() names.
 */
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_MAGIC       0x314a4e50u /* "PNJ1" */
#define JOB_MAX_BYTES   (4u << 20)  /* Linux limits argument lists to 6 MiB; ours must be smaller */
#define JOB_INLINE      (24u << 10)
#define JOB_MAX_STRINGS 65536u
#define JOB_MAX_RLIMITS 16u
#define JOB_FDS         5 /* the most descriptors that come with one */

enum job_flag {
    JOB_TTY = 1,        /* a new terminal of the box; FRAME_TTY returns its master side */
    JOB_TELL_START = 2, /* send FRAME_STARTED */
    JOB_OWN_IN = 8,     /* with JOB_TTY: this stream is a descriptor instead of the terminal */
    JOB_OWN_OUT = 16,
    JOB_OWN_ERR = 32,
    JOB_DUPLEX = 64,     /* standard input is a socket that the command writes to as well */
    JOB_NO_ECHO = 128,   /* with JOB_TTY: the terminal has already echoed what is typed */
    JOB_ONE_OUTPUT = 256 /* standard output and error are the same, so the order of writes matters */
};

/* Which of standard input, output and error are descriptors, one bit each, and how many. */
static inline unsigned job_streams(uint32_t flags)
{
    return flags & JOB_TTY ? flags / JOB_OWN_IN & 7 : 7;
}
static inline unsigned job_n_streams(uint32_t flags)
{
    unsigned s = job_streams(flags);
    return (s & 1) + (s >> 1 & 1) + (s >> 2);
}
/* The flags for a command with these descriptors (-1: none), on a terminal or not. */
static inline uint32_t job_flags(bool tty, const int stdio[3])
{
    uint32_t flags = tty ? JOB_TTY : 0;
    for (int i = 0; tty && i < 3; i++)
        flags |= stdio[i] >= 0 ? (uint32_t)JOB_OWN_IN << i : 0;
    return stdio[1] >= 0 && stdio[1] == stdio[2] ? flags | JOB_ONE_OUTPUT : flags;
}

struct job_rlimit {
    uint32_t what, reserved; /* RLIMIT_* */
    uint64_t value;          /* soft and hard */
};
static_assert(sizeof(struct job_rlimit) == 16, "read by another program");

struct job_image {
    uint32_t magic, bytes;
    uint32_t n_argv, argv_at; /* offsets of arrays of uint32_t, each the offset of a string */
    uint32_t n_envp, envp_at;
    uint32_t cwd; /* offset of an absolute path, or 0: the plan's */
    uint32_t flags;
    uint32_t umask;
    uint16_t rows, columns;
    uint32_t n_rlimits, rlimits_at;
};
static_assert(sizeof(struct job_image) == 48, "read by another program");

/*
 * Checks that `n` bytes (aligned for uint64_t) are an image that pid 1 may run: magic, bounds, terminated strings, at
 * least one argument. 0 or -EBADMSG.
 */
int job_image_check(const void *bytes, size_t n);
static inline const char *job_string(const struct job_image *j, uint32_t at)
{
    return (const char *)j + at;
}
static inline const uint32_t *job_list(const struct job_image *j, uint32_t at)
{
    return (const void *)((const char *)j + at);
}
static inline const struct job_rlimit *job_rlimits(const struct job_image *j)
{
    return (const void *)((const char *)j + j->rlimits_at);
}

/* The contents of an image; lists are NULL-terminated. */
struct job_parts {
    const char *const *argv, *const *envp;
    const char *cwd; /* NULL: the plan's */
    uint32_t flags, umask;
    uint16_t rows, columns;
    const struct job_rlimit *rlimits;
    uint32_t n_rlimits;
};
/* Appends the image to the empty `out`. 0, -E2BIG or -ENOBUFS. */
struct buf;
int job_image_write(const struct job_parts *p, struct buf *out);
/* Whether the list of environment variables sets the variable that `entry` ("name=...") names. */
bool job_env_has(const char *const *list, const char *entry);
