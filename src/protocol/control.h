/*
 * What our own processes say to each other: fixed frames on SOCK_SEQPACKET pairs, native byte order, same machine.
 * P is pinfold, B the builder (later the guard), I pid 1 of the box (docs/INTERNALS.md).
 */
#pragma once
#include <stdint.h>

enum frame_kind {
    FRAME_VERDICT =
        1,         /* B or I -> P: a step failed: a = step index or WHERE_*, b = errno. The box is over.            */
    FRAME_READY,   /* I -> P: locked down, about to start the command. For sessions: serving                        */
    FRAME_TTY,     /* I -> P: the pty's master comes with this frame (SCM_RIGHTS)                                   */
    FRAME_STARTED, /* I -> P: a = pid inside                                                                        */
    FRAME_EXEC_FAILED, /* I -> P: a = job, b = errno of execve: 126 or 127                                              */
    FRAME_STOPPED, /* I -> P: a = job, b = signal                                                                   */
    FRAME_EXIT, /* I -> P: a = of a command in a session: its session of processes, b = wait status; c = enum exit_why; usage follows \*/
    FRAME_SIGNAL,  /* P -> I: a = signal, b = enum signal_target                                                    */
    FRAME_WINSIZE, /* P -> I: a = rows << 16 | columns                                                              */
    FRAME_END,     /* P -> I: kill everything and exit                                                              */
    FRAME_DENIAL,  /* B -> P: one decision of the guard: struct denial_frame                                        */
    FRAME_PIPE,    /* B -> P: a = 0, 1, 2: the caller's descriptor may not enter; this end of a pipe (SCM_RIGHTS) stands
                      for it: pinfold writes its stdin into it, or reads what belongs to its stdout or stderr      */
    FRAME_GONE,    /* B -> P, the last: no process of the box is left; what follows is the kernel's tidying up of
                      namespaces and mounts, which takes longer than many a command                                */
    FRAME_EXEC, /* P -> a pid 1 that serves: one command (protocol/job.h): a = bytes of the image, b = 1 when it is in a
                      memory file. What belongs to it then goes over its reply socket: TTY, STARTED, STOPPED, EXEC_FAILED,
                      VERDICT, EXIT from pid 1; SIGNAL, WINSIZE, END to it. END with a = 1: it has ended and all was read */
    FRAME_FILES, /* P -> B: with one end of a socket pair: a worker of the guard serves the file API on it
                         (protocol/files.h) until the other end is closed                                            */
    FRAME_REFUSED, /* session daemon -> caller: it was not done: a = enum err_kind, b = errno; the sentence follows the frame */
    FRAME_ANSWER, /* session daemon -> caller: a = bytes that follow, or are in a memory file when b is 1; c, utime_us, stime_us:
                      numbers, as the request has it (protocol/keep.h) */
    FRAME_DATA, /* session daemon <-> caller of an attached job: what it wrote, or what is typed to it, follows the frame */
    FRAME_TOLD /* B -> P, when the box is over: what it leaves that a person should look at: struct denial_frame with
                     enum told_kind as its action, the path, and what there is to say of it                          */
};
/* What becomes of a descriptor that the caller wants the command to have (runtime/stdio.c). */
enum stdio_way {
    STDIO_PASS,   /* enters as it is: pipes, sockets, /dev/null and its like */
    STDIO_REOPEN, /* a regular file, read-only: opened anew through the box's own mounts */
    STDIO_PIPE    /* a regular file that can be written, a terminal, another device: a pipe must stand for it */
};
enum exit_why {
    EXIT_ITSELF,
    EXIT_MEMORY, /* the machine that the box is ran out of memory */
    EXIT_OFFLINE /* it failed, and something in the box has looked for a network or a resolver that is not there */
};
enum signal_target {
    SIGNAL_COMMAND,
    SIGNAL_FOREGROUND, /* the command's process group */
    SIGNAL_EVERYONE,   /* of the box; on a reply socket: of the command's session */
    SIGNAL_CHILDREN    /* on a reply socket: of the command's session but itself (a shell that shall live on) */
};

/* Places in a start that are no step of the plan. */
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
    WHERE_CWD, /* of a command: the directory it is to start in */
    WHERE_USER,
    WHERE_MACHINE
};

struct frame {
    uint32_t kind, a, b, c;
    uint64_t utime_us, stime_us, maxrss_kib, inblock, oublock; /* FRAME_EXIT: of the command and all it waited for */
    int64_t
        stdin_at; /* FRAME_EXIT: where the command left a stdin that was reopened: the caller's file position is to be
                         set there (lseek); -1: it read the caller's own descriptor or a pipe */
};

#define DENIAL_TEXT 3072
struct denial_frame {
    uint32_t kind;          /* FRAME_DENIAL */
    uint32_t action;        /* enum denial_action */
    uint32_t pid;           /* as the process names itself */
    uint32_t origin;        /* rule's origin index */
    uint32_t rule;          /* index into the guard table, UINT32_MAX for built-in reasons */
    uint32_t n;             /* bytes of text used  */
    uint32_t session;       /* of processes, as the box numbers it: who did it belongs to that; 0: not known */
    char text[DENIAL_TEXT]; /* target path or address, then NUL, then a reason clause, then NUL */
};
enum told_kind {
    TOLD_REPOSITORY, /* made in the box, with names that run by themselves: these                    */
    TOLD_LINK,       /* made in the box, leads out of all writable trees: its text                   */
    TOLD_FIFO,       /* made in the box                                                              */
    TOLD_REF,        /* HEAD or packed-refs has a name that is an option: that name                  */
    TOLD_MORE        /* of all these: how many are not told, in decimal, as the path                 */
};
/* In place of what stands there: the box has taken the permissions away. */
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
    DENIAL_MOUNT /* of a file system, in a nested user namespace; its kind is the target */
};
