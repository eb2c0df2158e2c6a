/*
 * The plan image: a small program, complete before anything is started, as one flat run of bytes that can be printed,
 * compared, hashed and sent to another process. plan/ writes it, runtime/ runs it. Strings are offsets into one string
 * table (offset 0 is ""), so it needs no relocation.
 *
 * Steps run in order. Each belongs to a phase, and phases run in three processes of the native engine
 * (docs/INTERNALS.md):
 *     BUILD    in the builder: user, mount, network, IPC and UTS namespaces exist, with all capabilities in them
 *     INSIDE   in pid 1: the pid namespace exists, too
 *     LOCK     in pid 1, last: everything after it is unprivileged
 * `dst` is an absolute path in the box; `src` a canonical path on the host, opened with RESOLVE_NO_SYMLINKS: if it
 * changed meanwhile the start fails.
 */
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/*   X(identifier, printed name, what a, b and mode mean) */
#define STEPS(X)                                                                                                       \
    /* BUILD, before the root changes: detached clones of host trees; all clones come before the first attach */       \
    X(ROOT, "root", "clone of the host's whole tree as the new root; flags")                                           \
    X(SOURCE, "source", "a src; b slot: detached clone of a host tree, recursive")                                     \
    X(ROOT_EMPTY, "root-empty", "an empty tmpfs as the new root, mode; COVER of / and its STUBs follow before ENTER")  \
    X(ENTER, "enter", "attach the root, pivot into it, detach the old root")                                           \
    /* BUILD, in the new root */                                                                                       \
    X(ATTACH, "attach", "a dst; b slot: attach a source; flags")                                                       \
    X(VEIL, "veil", "a dst: read-only overlay over the directory with the STUBs that follow; b number of them")        \
    X(STUB, "stub", "a path relative to the veil; mode enum stub")                                                     \
    X(COVER, "cover",                                                                                                  \
      "a dst: tmpfs standing for the directory, its entries bound; STUBs follow as for VEIL; b number")                \
    X(DENY, "deny", "a dst: an empty, mode 0 directory or file (mode: enum stub) over it, read-only")                  \
    X(TMPFS, "tmpfs", "a dst; b size in KiB, 0 for the kernel's own; mode permissions; flags")                         \
    X(OVERLAY, "overlay",                                                                                              \
      "a dst; b string 'lower\\nupper\\nwork[\\nhidden[\\nbetween...]]' of host paths: private writable layer; mode "  \
      "enum overlay; flags")                                                                                           \
    X(LAYER, "layer",                                                                                                  \
      "a dst; b host path of a directory with 'upper' and 'work': one private writable layer over what dst shows by "  \
      "then, not shown itself; flags")                                                                                 \
    X(PART, "part", "a dst below the LAYER's: attach this directory of the layer; flags")                              \
    X(READONLY, "readonly", "a dst: the mount there becomes read-only; flags RECURSE")                                 \
    X(DIR, "dir", "a dst; mode: make a directory inside a tmpfs of ours")                                              \
    X(FILE, "file", "a dst; b content; mode: make a file inside a tmpfs of ours")                                      \
    X(SYMLINK, "symlink", "a dst; b target: inside a tmpfs of ours")                                                   \
    X(DEVICES, "devices",                                                                                              \
      "a dst; b size of shm in KiB, 0 for the kernel's own; flags (RDONLY: itself, not shm): tmpfs with null zero "    \
      "full random urandom tty, fd stdin stdout stderr ptmx, shm, pts, mqueue")                                        \
    X(LOOPBACK, "loopback", "bring lo up")                                                                             \
    X(CATCH, "catch",                                                                                                  \
      "a enum catch_way: addresses, routes, rules, sockets of the egress; b number of REACHes and LISTENs that "       \
      "follow")                                                                                                        \
    X(REACH, "reach", "a 0 for 127.0.0.1, 1 for ::1; b port: a listener that stands for a service of the host")        \
    X(LISTEN, "listen", "b port: a listener at every address, where connections are not all caught by one")            \
    X(OWN, "own", "a dst: the directory there is given to the box's user")                                             \
    X(HOSTNAME, "hostname", "a name")                                                                                  \
    /* INSIDE */                                                                                                       \
    X(PROC, "proc", "a dst: a fresh /proc; flags")                                                                     \
    X(PROC_LOCK, "proc-lock", "a dst: sys, sysrq-trigger, irq, bus, fs below it become read-only")                     \
    X(DEVPTS, "devpts", "a dst: a fresh devpts")                                                                       \
    X(MQUEUE, "mqueue", "a dst: a fresh mqueue")                                                                       \
    X(KEYRING, "keyring", "a new, empty session keyring")                                                              \
    /* LOCK */                                                                                                         \
    X(RULESET, "ruleset", "Landlock: a handled file rights, b handled network rights, mode scopes; RULEs follow")      \
    X(RULE, "rule", "a src; mode enum rule_rights: a Landlock rule of the ruleset before")                             \
    X(NO_CAPS, "no-caps", "capability sets, ambient and bounding set empty; securebits locked")                        \
    X(NO_NEW_PRIVS, "no-new-privs", "")                                                                                \
    X(UNDUMPABLE, "undumpable", "pid 1 becomes non-dumpable")                                                          \
    X(FILTER, "filter", "a enum filter bits: the seccomp filter; its listener goes to the guard")                      \
    /* in each command, before exec */                                                                                 \
    X(RLIMIT, "rlimit", "a RLIMIT_*; b value in units of mode bytes (1 or 1024); soft and hard")                       \
    X(CWD, "cwd", "a dst")

enum step_kind {
    STEP_NONE,
#define X(id, name, text) STEP_##id,
    STEPS(X)
#undef X
        STEP_COUNT
};

enum step_flag {
    STEP_RDONLY = 1,
    STEP_NOSUID = 2,
    STEP_NODEV = 4,
    STEP_NOEXEC = 8,
    STEP_RECURSE = 16,
    STEP_OPTIONAL = 32,  /* ignored if the object no longer exists (-ENOENT); a STUB for which no cover is made */
    STEP_WORKSPACE = 64, /* this tree belongs to the writable workspace, which the guard watches */
    STEP_TOOL = 128      /* the engine's tool does this step by its command line (of ROOT: ENTER does it once more) */
};

enum overlay {
    OVERLAY_PLAIN,
    OVERLAY_SECRET /* the box is not told where upper and work are */
};
#define OVERLAY_BETWEEN 8 /* layers between lower and upper, at most */

enum stub {
    STUB_ABSENT,      /* a whiteout: the name does not exist in the box, whatever the host does later */
    STUB_DENIED_DIR,  /* an empty directory of mode 0: EACCES */
    STUB_DENIED_FILE, /* an empty file of mode 0: EACCES */
    STUB_POINT_DIR,   /* a mount point that does not exist on the host */
    STUB_POINT_FILE,
    STUB_TEXT_FILE, /* STUB's b: a file with this text replaces the host's */
    STUB_LINK       /* STUB's b: a symbolic link with this text */
};

enum rule_rights {
    RULE_READ = 1 /* files and directories, execute */,
    RULE_WRITE = 2 /* and everything that changes */,
    RULE_READ_FILE_ONLY = 4 /* of one file, execute */,
    RULE_DEVICE = 8 /* read, write, ioctl of a device node */,
    RULE_MEMORY = 16 /* write files in /proc: for the guard alone, where it can reach its callers' memory only so */
};

/* Bits that select one of the filters generated at build time (runtime/filter.h). */
enum filter {
    FILTER_GUARD = 1,   /* calls that create, change or connect by name are notified */
    FILTER_READS = 2,   /* every open is notified */
    FILTER_NO_INET = 4, /* no inet sockets (Landlock tier without network) */
    FILTER_USERNS = 8,  /* nested user namespaces and their mounts are allowed */
    FILTER_PEERS = 16,  /* calls that name a process are notified (Landlock tier) */
    FILTER_DEVICES = 32 /* a rule makes a device visible: its driver handles the ioctls */,
    FILTER_LAYERED =
        64 /* with GUARD, without READS and the Landlock tier's: only rename, link, bind, connect and flock */,
    FILTER_MONITOR =
        128 /* with GUARD, without LAYERED: what a box is refused is seen while it happens (guard/calls/monitor.c) */,
    FILTER_VARIANTS = 256
};

struct step {
    uint8_t kind; /* enum step_kind */
    uint8_t flags;
    uint16_t mode;
    uint32_t a, b;   /* arguments: numbers, or offsets into the string table where STEPS says a path or name */
    uint32_t origin; /* index into the policy's origins: the rule that this comes from */
};
static_assert(sizeof(struct step) == 16, "a plan is read by another program");

#define PLAN_MAGIC 0x31464e50u /* "PNF1" */
struct plan_image {
    uint32_t magic, bytes;      /* of the whole image */
    uint32_t n_steps, steps_at; /* offsets from the start of the image */
    uint32_t strings_at, strings_bytes;
    uint32_t guard_at, guard_bytes; /* the guard's table (protocol/guard_table.h), 0 bytes when there is none */
    uint32_t namespaces;            /* CLONE_NEW* bits; 0 in the Landlock tier */
    uint32_t filter;                /* enum filter bits */
    uint32_t uid, gid;              /* inside */
    uint32_t tier;                  /* enum tier */
    uint32_t outer;                 /* those of `namespaces` that another program, the engine's tool, has created */
    uint32_t
        machine; /* 1: the command is a virtual machine whose private trees (STEP_TMPFS, STEP_DEVICES) are its own */
    uint32_t grants; /* ms that an open for writing may wait for an answer (protocol/grant.h); 0: nobody is asked */
};

/* Checks magic, bounds, kinds and terminated strings of an image from another process; 0 or -EBADMSG. */
int plan_image_check(const void *bytes, size_t n);
/* How many open files a command gets of the `value` that the plan says: fewer than pinfold itself can have (sys/send.c), which is `most`;
   0: that is not known. */
static inline uint64_t step_open_files(uint64_t value, uint64_t most)
{
    return most && value > most - most / 8 ? most - most / 8 : value;
}

static inline const struct step *plan_steps(const struct plan_image *p)
{
    return (const void *)((const char *)p + p->steps_at);
}
static inline const char *plan_string(const struct plan_image *p, uint32_t at)
{
    return (const char *)p + p->strings_at + at;
}
const char *step_name(enum step_kind kind);
/* One line for people: "attach /home/u/src on /home/u/src (rw)". */
struct buf;
void step_print(const struct plan_image *p, const struct step *s, struct buf *out);
