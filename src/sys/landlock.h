/* Landlock. Source: landlock(7), Documentation/userspace-api/landlock.rst; the layout is that of ABI 6. */
#pragma once
#include <linux/landlock.h>
#include "sys/sys.h"

enum {
    SYS_LANDLOCK_ALL_FILES_1 = (1 << 13) - 1, /* ABI 1: execute ... make_sym */
    SYS_LANDLOCK_REFER = 1 << 13,             /* ABI 2 */
    SYS_LANDLOCK_TRUNCATE = 1 << 14,          /* ABI 3 */
    SYS_LANDLOCK_IOCTL_DEV = 1 << 15,         /* ABI 5 */
    SYS_LANDLOCK_SCOPE_SIGNAL = 2             /* ABI 6 */
};

struct sys_landlock_ruleset {
    uint64_t files, network, scopes;
};
struct sys_landlock_path {
    uint64_t rights;
    int32_t parent;
} __attribute__((packed));

/* The ABI version (0 or higher), or -ENOSYS or -EOPNOTSUPP (compiled in but disabled at boot). */
SYS_CALL(int, sys_landlock_abi, (void), SYS_landlock_create_ruleset, 0, 0, 1)
/* Kernels that do not know the later members accept them if they are zero. */
SYS_CALL(int, sys_landlock_create, (const struct sys_landlock_ruleset *r), SYS_landlock_create_ruleset, r, sizeof *r)
SYS_CALL(int, sys_landlock_allow, (int ruleset, const struct sys_landlock_path *rule), SYS_landlock_add_rule, ruleset,
         LANDLOCK_RULE_PATH_BENEATH, rule)
SYS_CALL(int, sys_landlock_restrict, (int ruleset), SYS_landlock_restrict_self, ruleset)
