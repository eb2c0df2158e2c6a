/* The guard's rules, as one flat table in the plan image. All paths are canonical paths in the box. */
#pragma once
#include <assert.h>
#include <stdint.h>

/*
 * Of the rules ROOT, PROTECT, HIDE and PRIVATE, the one with the longest matching path applies; HIDE refuses everything
 * that PROTECT does, too. NAME, PIN and HIDE_NAME apply in addition, in writable trees of the host (HIDE_NAME
 * everywhere outside of PRIVATE).
 */
enum guard_rule_kind {
    GUARD_RULE_ROOT,      /* text: a writable tree (absolute path), to which rules below refer */
    GUARD_RULE_NAME,      /* text: a guarded name ("x" or "a/b"), in `place` (enum guard_place), judged by `judge` */
    GUARD_RULE_PROTECT,   /* text: an absolute path: it and all below may not be changed, created, moved or linked */
    GUARD_RULE_HIDE,      /* text: an absolute path: it and all below may not be opened */
    GUARD_RULE_HIDE_NAME, /* text: the last components of a path, at any depth below `below` */
    GUARD_RULE_PIN,       /* text: an absolute path, above a rule or mount: may not be renamed or removed */
    GUARD_RULE_SOCKET,    /* text: a socket of the host that may be connected to */
    /* text: a private tree of the box (/tmp, /dev/shm ...): unrestricted, sockets included, unless KEPT */
    GUARD_RULE_PRIVATE,
    /* text: names of protected branches, the last component a pattern; `below`: the repository's directory (git.verify: required) */
    GUARD_RULE_BRANCH
};

/* The reason of a refusal by GUARD_RULE_PIN. */
#define GUARD_WHY_PIN  "a path that a rule depends on"
#define GUARD_WHY_LOCK "a lock on a directory, which would block other boxes; lock a file"
/* The kernel does not let the guard read what a system call's arguments point to. */
#define GUARD_WHY_MEMORY                                                                                               \
    "the guard may not read this program's memory: permit ptrace in AppArmor's or another module's profile that "      \
    "confines pinfold"
#define GUARD_UNREAD "(unknown)"

enum guard_rule_flag {
    GUARD_RULE_DIRECTORY = 1, /* the name and everything below */
    GUARD_RULE_PATTERN = 2,   /* NAME, HIDE_NAME: the last component of the text is a pattern (match/glob.h) */
    GUARD_RULE_DIRECT = 4,    /* NAME, HIDE_NAME: only directly in `below`, not deeper */
    GUARD_RULE_ALWAYS = 8,    /* NAME: protected by a rule of the policy: in every mode, also in foreign code */
    /* PRIVATE: a directory of the host, so git could be pointed at it: the guarded names of git apply */
    GUARD_RULE_KEPT = 16,
    /* ROOT: behind a copy-on-write layer, so that nothing reaches the host: of the names only those of ALWAYS apply */
    GUARD_RULE_LAYERED = 32,
    /* ROOT: shared with programs outside, which would follow a symbolic link with the user's rights: none may be created */
    GUARD_RULE_NO_LINKS = 64,
    /* NAME at roots: in all directories of a repository, too, whose tools look there by themselves */
    GUARD_RULE_DEEP = 128
};

struct guard_rule {
    uint8_t kind;         /* enum guard_rule_kind */
    uint8_t place;        /* enum guard_place */
    uint8_t judge;        /* enum guard_judge */
    uint8_t flags;        /* enum guard_rule_flag */
    uint32_t text, below; /* offsets into the plan image's strings; below: an absolute directory, or 0 for everywhere */
    uint32_t origin;
};
static_assert(sizeof(struct guard_rule) == 16, "a plan is read by another program");

/*
 * Where the guard tells its rules: an open of this for writing, by a caller with the box's own root, gets a sealed file
 * with a plan image that has no steps, but the filter and the guard's table. The kernel has no such name, nor can anybody
 * make one there. With the absolute path of a directory behind it, the guard first applies the names for tops of writable
 * trees there, too, until the box ends; it refuses if it cannot.
 */
#define GUARD_TOLD_AT "/proc/self/pinfold-rules"
/* The text of a DENIAL_NAMESPACE about a map of ids that was opened in root's box, where the kernel refuses every map. */
#define DENIAL_ROOT_MAP "a map of user 0"

struct guard_table {
    uint32_t n_rules;
    uint32_t mode; /* enum guard_mode */
    struct guard_rule rules[];
};
