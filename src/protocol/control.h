/*
 * Messages between pinfold's own processes: fixed frames on SOCK_SEQPACKET pairs, in native byte order. P is pinfold, B
 * the builder (later the guard), I pid 1 of the box (docs/INTERNALS.md).
 */
#pragma once
#include <stdint.h>

enum frame_kind {
    FRAME_VERDICT = 1, /* B or I -> P: a step failed: a = step index or WHERE_*, b = errno. The box has ended. */
    FRAME_READY,       /* I -> P: locked down, about to start the command, or to serve a session */
    FRAME_TTY,         /* I -> P: with the master side of the pseudo-terminal (SCM_RIGHTS) */
    FRAME_STARTED,     /* I -> P: a = pid in the box */
    FRAME_EXEC_FAILED, /* I -> P: a = job, b = errno of execve: 126 or 127 */
    FRAME_STOPPED,     /* I -> P: a = job, b = signal */
    /* I -> P: a = for a command in a session: its session id; b = wait status; c = enum exit_why; usage follows */
    FRAME_EXIT,
    FRAME_SIGNAL,  /* P -> I: a = signal, b = enum signal_target */
    FRAME_WINSIZE, /* P -> I: a = rows << 16 | columns */
    FRAME_END,     /* P -> I: kill everything and exit */
    FRAME_DENIAL,  /* B -> P: one decision of the guard: struct denial_frame */
    /* B -> P: a = 0, 1 or 2: this descriptor of the caller must not enter the box. Comes with the end of a pipe that
       replaces it (SCM_RIGHTS): pinfold writes its stdin into it, or reads its stdout or stderr from it */
    FRAME_PIPE,
    /* B -> P, the last one: no process of the box is left. Only the kernel's cleanup of namespaces and mounts
       remains, which can take longer than the command did */
    FRAME_GONE,
    /* P -> a pid 1 that serves: run one command (protocol/job.h): a = bytes of the image, b = 1 if that is in a
       memfd, c = a number that IDLE returns, or 0. Everything about the command then goes over its reply socket: TTY, STARTED, STOPPED, EXEC_FAILED,
       VERDICT and EXIT from pid 1; SIGNAL, WINSIZE and END to it. END with a = 1: it has ended and all output was
       read */
    FRAME_EXEC,
    /* P -> B: with one end of a socket pair: a worker of the guard serves the file API on it (protocol/files.h)
       until the other end is closed */
    FRAME_FILES,
    /* session daemon -> caller: the request failed: a = enum err_kind, b = errno; the sentence follows the frame */
    FRAME_REFUSED,
    /* session daemon -> caller: a = bytes that follow, or that are in a memfd if b is 1; c, utime_us, stime_us:
       numbers that depend on the request (protocol/keep.h) */
    FRAME_ANSWER,
    FRAME_DATA, /* session daemon <-> caller of an attached job: its output, or input for it, follows the frame */
    /* B -> P, when the box has ended: something it leaves behind that the user should look at: struct denial_frame
       with enum told_kind as its action, the path, and a text */
    FRAME_TOLD,
    /* B -> P: refused by how the box is made, and by no rule: struct denial_frame with the path of a read-only place or (DENIAL_OWNER)
       of what was given away, or DENIAL_NAMESPACE. Programs try both all the time, so it is a denial only if the command fails */
    FRAME_BUILT,
    /* B -> P, in a monitored box: a call failed, and perhaps the box is why: struct denial_frame with the call's errno. P finds
       out whether a rule did it (run/asked/monitor.c). Without a target: `count` more of those with this key */
    FRAME_SEEN,
    /* B -> P: with the fsopen(2) of an overlay that is mounted, a mask (a = 1) or a layer (SCM_RIGHTS); see supervisor/fresh.c */
    FRAME_FRESH,
    /* B -> P: with one end of a pair (SCM_RIGHTS): a process of the box asks why it may or may not (protocol/inquiry.h) */
    FRAME_INQUIRY,
    /* B -> P: with one end of a pair (SCM_RIGHTS): may this file be written? (protocol/grant.h) */
    FRAME_GRANT,
    /* B -> P: with one end of a pair (SCM_RIGHTS): have hooks passed what protected branches move to? (protocol/moves.h) */
    FRAME_MOVES,
    /* a pid 1 that serves -> P: no process of the box is left but itself, and no caller waits; a = the number of the last EXEC or
       CALLER that it has received */
    FRAME_IDLE,
    /* P -> a pid 1 that serves, before the first CALLER: a = bytes of the job image that follows. Commands of callers have its
       environment and directory */
    FRAME_SESSION,
    /* P -> a pid 1 that serves: with the connection of one who may run a command (SCM_RIGHTS; protocol/keep.h): a = as EXEC's c,
       utime_us = until when (monotonic clock) a request needs no other look at the host's files. Pid 1 -> P: with the connection, whose
       request is still to be read and is P's; or with b = 1 to 3: that stream of the command must not enter the box */
    FRAME_CALLER
};
/* What to do with a descriptor that the command gets from the caller (runtime/stdio.c). */
enum stdio_way {
    STDIO_PASS,   /* passed on as it is: pipes, sockets, /dev/null and the like */
    STDIO_REOPEN, /* a regular file, read-only: opened again through the box's mounts */
    STDIO_PIPE    /* a writable regular file, a terminal or another device: replaced by a pipe */
};
enum exit_why {
    EXIT_ITSELF,
    EXIT_MEMORY, /* the virtual machine ran out of memory */
    /* it failed, and something in the box tried to use a network or resolver, which the box does not have */
    EXIT_OFFLINE
};
enum signal_target {
    SIGNAL_COMMAND,
    SIGNAL_FOREGROUND, /* the command's process group */
    SIGNAL_EVERYONE,   /* all processes of the box; on a reply socket: of the command's session */
    /* on a reply socket: all processes of the command's session except the leader (a shell that must live on) */
    SIGNAL_CHILDREN
};

/* What failed in a start, other than a step of the plan. */
enum where {
    WHERE_CLONE = 0x10000,
    WHERE_MAPS,
    WHERE_NET,
    WHERE_CHILD,
    WHERE_STDIO,
    WHERE_PTY,
    WHERE_GUARD,
    WHERE_CGROUP,
    WHERE_CHECK,
    WHERE_CWD, /* the working directory of a command */
    WHERE_USER,
    WHERE_MACHINE
};

struct frame {
    uint32_t kind, a, b, c;
    /* FRAME_EXIT: of the command and all children it waited for */
    uint64_t utime_us, stime_us, maxrss_kib, inblock, oublock;
    int64_t
        /* FRAME_EXIT: the file offset at which the command left a reopened stdin, to be set on the caller's file
           (lseek(2)); -1: it read a pipe or the caller's own descriptor */
        stdin_at;
};

#define DENIAL_TEXT 3600
#define DENIAL_ARGV 512 /* of a command line */
struct denial_frame {
    uint32_t kind;    /* FRAME_DENIAL */
    uint32_t action;  /* enum denial_action */
    uint32_t pid;     /* in the box's pid namespace */
    uint32_t origin;  /* index of the rule's origin */
    uint32_t rule;    /* index into the guard table, UINT32_MAX for built-in reasons */
    uint32_t n;       /* bytes of text used */
    uint32_t session; /* session id, in the box's numbering, of the process that did it; 0: unknown */
    uint32_t argv; /* bytes of its command line behind the texts: words, each with its NUL; the last one may be cut */
    uint32_t no, key, count; /* FRAME_SEEN: the errno; equal calls have the same key; how often */
    uint32_t
        lost; /* FRAME_SEEN, FRAME_DENIAL: how many were not sent since the last one; of the latter without a target that alone */
    char text[DENIAL_TEXT]; /* target path or address, then NUL, then a reason clause, then NUL; the command line */
};
enum told_kind {
    TOLD_REPOSITORY, /* created in the box; its text lists names that programs execute unasked */
    TOLD_LINK,       /* created in the box and points out of all writable trees; its text is the target */
    TOLD_FIFO,       /* made in the box */
    TOLD_REF, /* HEAD or packed-refs contains a name that looks like an option, or a replacement; its text is that name */
    TOLD_NAME, /* made in the box: a name that programs execute unasked, where it was free */
    TOLD_MORE  /* how many more there are that were not sent, in decimal, as the path */
};
#define TOLD_REPLACES "refs/replace/" /* how the name of a replacement begins (git-replace(1)) */
/* Text in place of the findings: the box removed the permissions. */
#define TOLD_CLOSED "could not be examined: its permissions were removed"
enum denial_action {
    DENIAL_CREATE,
    DENIAL_WRITE,
    DENIAL_RENAME,
    DENIAL_LINK,
    DENIAL_REMOVE,
    DENIAL_CHANGE /* mode, times, xattr */,
    DENIAL_READ,
    DENIAL_CONNECT,
    DENIAL_BIND,
    DENIAL_GIT_CONFIG,
    DENIAL_GIT_BRANCH, /* a protected branch would move to what hooks have not passed */
    DENIAL_MOUNT,      /* of a file system, in a nested user namespace; its kind is the target */
    DENIAL_NAMESPACE,  /* FRAME_BUILT: clone or unshare; or DENIAL_ROOT_MAP is its text */
    DENIAL_OWNER,      /* FRAME_BUILT: the box has no such user or group */
    DENIAL_EXEC,       /* from here on FRAME_SEEN alone */
    DENIAL_SIGNAL,     /* the process's number is the target */
    DENIAL_CALL        /* the filter has no such call, which is the target */
};
