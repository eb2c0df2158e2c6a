/*
 * No engine: for --unsandboxed-fallback, if none can enforce the policy. The command is supervised as usual (limits by
 * control groups and the watcher, timeout, result), but not confined: every guarantee is a loss. It is not in the
 * table, so nobody can select it by name.
 */
#include <sys/syscall.h>

#include "backends/engine.h"
#include "sys/sys.h"

static int unsandboxed_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    static const char why[] = "the command runs without a box (--unsandboxed-fallback)";
    (void)mem, (void)thorough, (void)e;
    f->engine = "unsandboxed";
    f->tier = TIER_LANDLOCK; /* no namespaces: pid 1 is a child subreaper and kills what is left */
    f->unsandboxed = true;
    f->uid = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    f->gid = (uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    f->can = 0;
    f->catch = CATCH_SOCKET;
    for (int i = 0; i < FEATURE_COUNT; i++)
        f->why_not[i] = why;
    return 0;
}

static int unsandboxed_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    return engine_native.start(ask, ret, e);
}

static void unsandboxed_finish(struct started *s)
{
    engine_native.finish(s);
}

const struct engine engine_unsandboxed = {
    .name = "unsandboxed", .probe = unsandboxed_probe, .start = unsandboxed_start, .finish = unsandboxed_finish};
