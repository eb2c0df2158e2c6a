/* Whether a child may run in the memory of this process instead of in a copy, which takes longer than what the child does.
   Only a program that said so (native_main()) may: a library's caller has threads. */
#include "backends/native/native.h"
#include "guard/supervise.h"
#include "sys/process.h"

static bool has_main; /* native_main() was called */
static bool lent;     /* to the builder of a box that has not ended */

void native_main(int argc, char **argv)
{
    guard_main(argc, argv, "pinfold");
    has_main = true;
}

bool native_has_main(void)
{
    return has_main;
}

void native_lend(bool now)
{
    lent = now;
}

bool native_lends(void)
{
    return lent;
}

bool native_may_share(void)
{
    return has_main && !lent && sys_prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}
