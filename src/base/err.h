/*
 * Errors carry a kind, an errno and a sentence, and gain context on the way up. A struct err lives on the caller's
 * stack: it cannot leak, cannot fail to allocate, and may be ignored by passing NULL. Functions return 0 or a
 * negative errno; `err_*` fill `e` and return what the function should return.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>

enum err_kind {
    ERR_NONE,
    ERR_POLICY,  /* the policy or the command line is wrong */
    ERR_CANNOT,  /* this machine or engine cannot enforce the policy */
    ERR_REFUSED, /* one of pinfold's own rules forbids it */
    ERR_SYSTEM,  /* a system call failed */
    ERR_BUG      /* a bug in pinfold */
};

struct err {
    enum err_kind kind;
    int no; /* errno, or 0 */
    char text[1024];
};

/* Sets the sentence. Returns -no, or -EINVAL for kinds without an errno (ERR_CANNOT: -EOPNOTSUPP, ERR_REFUSED:
   -EPERM). */
int err_say(struct err *e, enum err_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "<sentence>: <strerror(no)>"; `no` positive; returns -no. */
int err_sys(struct err *e, enum err_kind kind, int no, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Prepends "<context>: "; returns r. */
int err_wrap(struct err *e, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends " (<remedy>)"; returns r. */
int err_hint(struct err *e, int r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What helps where a process could not be created (EAGAIN); err_no_process() appends it in that case, and returns r. */
#define ERR_MORE_PROCESSES                                                                                             \
    "the limit of processes of this user (ulimit -u) or of the control group (pids.max) is reached: raise it, or end " \
    "some"
int err_no_process(struct err *e, int r);

/* Appends what helps where a disk is full or no more files may be open, unless something is appended already; returns r. */
int err_used_up(struct err *e, int r);

/* The disk or the quota is used up: no other directory of the caller's is needed, but room. */
static inline bool err_is_full(int r)
{
    return r == -ENOSPC || r == -EDQUOT;
}

static inline bool err_is_refused(int r)
{
    return r == -EPERM || r == -EACCES;
}
static inline bool err_is_unsupported(int r)
{
    return r == -ENOSYS || r == -EOPNOTSUPP;
}
static inline bool err_is_exhausted(int r)
{
    return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -ENOSPC;
}
