/*
 * What the guard judges by, as one flat table inside the plan image. All paths are as seen in the box, canonical.
 */
#pragma once
#include <assert.h>
#include <stdint.h>

/*
 * Of ROOT, PROTECT, HIDE and PRIVATE rules, the one with the longest text at or above a path decides about it; HIDE
 * refuses all that PROTECT refuses, too. Names, pins, and any-depth hides hold besides, in writable trees of the host
 * (HIDE_NAME everywhere outside PRIVATE).
 */
enum guard_rule_kind {
    GUARD_RULE_ROOT,    /* text: a writable tree (absolute): rules below speak of places inside such trees            */
    GUARD_RULE_NAME,    /* text: a guarded name ("x" or "a/b"), in `place` (enum guard_place), judged by `judge`      */
    GUARD_RULE_PROTECT, /* text: an absolute path: it and all below may not be changed, created, moved or linked      */
    GUARD_RULE_HIDE,    /* text: an absolute path: it and all below may not be opened at all                          */
    GUARD_RULE_HIDE_NAME, /* text: the last component(s) of names at any depth below `below`                            */
    GUARD_RULE_PIN,    /* text: an absolute path that holds a rule or mount below: may not be renamed or removed     */
    GUARD_RULE_SOCKET, /* text: a host socket that may be connected to                                               */
    GUARD_RULE_PRIVATE /* text: a private tree of the box (/tmp, /dev/shm ...): free, also its sockets, unless kept  */
};

enum guard_rule_flag {
    GUARD_RULE_DIRECTORY = 1, /* the name and everything below                                                     */
    GUARD_RULE_PATTERN = 2,   /* NAME, HIDE_NAME: the last component of the text is a pattern (match/glob.h)       */
    GUARD_RULE_DIRECT = 4,    /* NAME, HIDE_NAME: only directly in `below`, not deeper                             */
    GUARD_RULE_ALWAYS = 8,    /* NAME: a rule of the policy protects it: in every mode, and in foreign code        */
    GUARD_RULE_KEPT = 16      /* PRIVATE: a directory of the host, where git could be led: git's names hold in it  */
};

struct guard_rule {
    uint8_t kind;         /* enum guard_rule_kind */
    uint8_t place;        /* enum guard_place     */
    uint8_t judge;        /* enum guard_judge     */
    uint8_t flags;        /* enum guard_rule_flag */
    uint32_t text, below; /* offsets into the plan image's strings; below: 0 everywhere, else an absolute directory */
    uint32_t origin;
};
static_assert(sizeof(struct guard_rule) == 16, "a plan is read by another program");

struct guard_table {
    uint32_t n_rules;
    uint32_t mode; /* enum guard_mode */
    struct guard_rule rules[];
};
