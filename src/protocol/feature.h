/*
 * The closed table of guarantees. A plan *needs* some of them, an engine *can* enforce some, a policy *may_lose* some
 * by name, and a result lists those that were *lost*. Policies, results and docs use these names; they never change
 * their meaning.
 *     X(identifier in C, name in policy and results, what it promises)
 */
#pragma once
#include <stdint.h>

#define FEATURES(X)                                                                                                    \
    X(FILES, "file-confinement", "files outside the rules cannot be written")                                          \
    X(HIDES, "hides", "hidden paths cannot be read, even if the host replaces or creates them later")                  \
    X(HIDES_ANY_DEPTH, "hides-any-depth", "hidden names are checked at every depth, also for files created later")     \
    X(REMAP, "remap", "a host path appears at another path inside")                                                    \
    X(GUARD, "guard", "guarded names cannot be created, changed, moved or linked")                                     \
    X(UNIX_SOCKETS, "unix-sockets", "pathname sockets of the host cannot be connected to")                             \
    X(ABSTRACT_SOCKETS, "abstract-sockets", "abstract sockets of the host cannot be connected to")                     \
    X(NETWORK, "network", "only the requested network can be reached")                                                 \
    X(NETWORK_TRANSPARENT, "network-transparent", "programs without proxy support reach the allowed hosts")            \
    X(NETWORK_PORTS, "network-ports",                                                                                  \
      "those programs reach allowed hosts at every allowed port, not at listed ones only")                             \
    X(NETWORK_ADDRESSES, "network-addresses", "those programs reach allowed addresses, not only names")                \
    X(HOST_NETWORK, "host-network", "the box has a network of its own (lost with net host)")                           \
    X(PID_NAMESPACE, "pid-namespace", "processes outside cannot be seen or signalled")                                 \
    X(SIGNALS, "signals", "processes outside cannot be signalled")                                                     \
    X(PRIVATE_IPC, "private-ipc", "System V IPC and POSIX message queues are the box's own")                           \
    X(PRIVATE_TMP, "private-tmp", "/tmp is the box's own")                                                             \
    X(FRESH_PROC, "fresh-proc", "/proc shows the box's processes only")                                                \
    X(NO_SURVIVORS, "no-survivors", "nothing of the box outlives it, even if pinfold is killed")                       \
    X(CGROUP_LIMITS, "cgroup-limits", "limits hold for the whole tree by cgroup, exactly")                             \
    X(LIMIT_MEMORY, "limit-memory", "memory of the whole tree is limited")                                             \
    X(LIMIT_CPU, "limit-cpu", "processor time per second is limited")                                                  \
    X(LIMIT_PROCESSES, "limit-processes", "the number of processes is limited")                                        \
    X(LIMIT_DISK, "limit-disk", "bytes written are limited")                                                           \
    X(SECCOMP, "seccomp", "system calls that widen the kernel's attack surface are refused")                           \
    X(USER_ROOT, "user-root", "the command is uid 0 inside")                                                           \
    X(NESTED_USERNS, "nested-userns", "the box cannot create user namespaces (lost with allow_nested_userns)")         \
    X(CACHES, "caches", "package caches are writable privately")                                                       \
    X(EXPAND_START, "expand-start", "any-depth rules apply to files created later (lost with expand: start)")          \
    X(PROXY_ADDRESS, "proxy-address", "addresses are checked (lost behind a parent proxy)")                            \
    X(SANDBOX, "sandbox", "the command runs in a box (lost with --unsandboxed-fallback)")

enum feature {
#define X(id, name, text) FEATURE_##id,
    FEATURES(X)
#undef X
        FEATURE_COUNT
};

/* A set of features. */
typedef uint64_t features;
#define F(id) ((features)1 << FEATURE_##id)

/* What the built-in profiles may lose. */
#define FEATURES_BUILTIN_MAY_LOSE                                                                                      \
    (F(PID_NAMESPACE) | F(PRIVATE_IPC) | F(PRIVATE_TMP) | F(CGROUP_LIMITS) | F(NO_SURVIVORS) | F(FRESH_PROC))

const char *feature_name(enum feature f);
const char *feature_text(enum feature f);
/* The feature of this name, or -1. */
int feature_find(const char *name);
