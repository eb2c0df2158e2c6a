/*
 * An engine for tests: a builder, a pid 1 and a command by fork and exec alone, without any confinement, that speaks the
 * frames of protocol/control.h. What box/ does can be tested with it without privileges; and misbehaviour that the native
 * engine does not show can be asked for.
 */
#pragma once
#include <stdbool.h>
#include "supervisor/run.h"

extern const struct engine engine_test;

enum test_fault {
    TEST_SOUND,
    TEST_VERDICT,       /* pid 1 fails at step 0 with ENOENT                     */
    TEST_START_FAILS,   /* start() itself fails with EAGAIN                      */
    TEST_INIT_DIES,     /* pid 1 is killed while the command runs                */
    TEST_DEAF,          /* pid 1 ignores frames                                  */
    TEST_STDIN_IS_PIPE, /* the builder asks for a pipe instead of a regular stdin */
    TEST_ENDS_LATE,     /* half a second passes before finish() returns          */
    TEST_DENIES         /* the builder tells of four denials, two of them equal  */
};
extern enum test_fault test_fault;

/* A plan as far as box/ reads it; every call starts afresh, the one before is gone. All limits off, tests set them. */
struct test_plan {
    struct plan plan;
    struct policy policy;
    struct facts facts;
    struct enforcement enforced[2];
};
struct test_plan *test_plan(void);
