/* Capabilities: capabilities(7), capset(2), prctl(2). */
#pragma once
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include "sys/process.h"

/* capget(2) and capset(2) of this process: `sets` has the capabilities of numbers below 32, then the others. */
static inline int sys_caps_call(long nr, struct __user_cap_data_struct sets[2])
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    return (int)sys_call(nr, &head, sets);
}
/* Sets permitted and effective to `keep`, and clears inheritable (and with it ambient). */
static inline int sys_caps_keep(uint64_t keep)
{
    const uint32_t low = (uint32_t)keep, high = (uint32_t)(keep >> 32);
    return sys_caps_call(SYS_capset, (struct __user_cap_data_struct[]){{low, low, 0}, {high, high, 0}});
}
/* Like sys_caps_keep(), and the program that this process executes next has them, too, whatever its user. */
static inline int sys_caps_bequeath(uint64_t keep)
{
    const uint32_t low = (uint32_t)keep, high = (uint32_t)(keep >> 32);
    int e = sys_caps_call(SYS_capset, (struct __user_cap_data_struct[]){{low, low, low}, {high, high, high}});
    for (unsigned i = 0; e == 0 && i < 64; i++)
        e = keep >> i & 1 ? sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) : 0;
    return e;
}
/* Makes all permitted capabilities effective. */
static inline int sys_caps_whole(void)
{
    struct __user_cap_data_struct sets[2] = {{0}};
    int e = sys_caps_call(SYS_capget, sets);
    for (int i = 0; i < 2; i++)
        sets[i].effective = sets[i].permitted;
    return e < 0 ? e : sys_caps_call(SYS_capset, sets);
}
/* Whether it is effective now. */
static inline bool sys_caps_has(unsigned capability)
{
    struct __user_cap_data_struct sets[2] = {{0}};
    return sys_caps_call(SYS_capget, sets) == 0 && sets[capability / 32].effective >> capability % 32 & 1;
}
/* Drops a capability from the bounding set. -EINVAL: the kernel has no capability of this number. */
static inline int sys_caps_unbound(unsigned capability)
{
    return sys_prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}
