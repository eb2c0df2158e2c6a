/*
 * What a process gives up that copies between an agent's files on this machine and what boxes have: capabilities,
 * further processes, and every directory that Landlock is not told of. It reads what a box wrote, so it must reach
 * nothing else (confine.h).
 */
#include "agents/confine.h"

#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "sys/caps.h"
#include "sys/landlock.h"

int agent_rules_begin(struct agent_rules *ret)
{
    int abi = sys_landlock_abi();
    *ret = (struct agent_rules){.rules = -1};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)sys_caps_keep(0);
    (void)setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}); /* 0 would not stop a program of core_pattern */
    if (abi < 1)
        return 0;
    ret->all =
        SYS_LANDLOCK_ALL_FILES_1 | (abi >= 2 ? SYS_LANDLOCK_REFER : 0u) | (abi >= 3 ? SYS_LANDLOCK_TRUNCATE : 0u);
    ret->rules = sys_landlock_create(&(struct sys_landlock_ruleset){.files = ret->all});
    return ret->rules < 0 ? ret->rules : 0;
}

int agent_rules_allow(const struct agent_rules *r, int dir, enum agent_may may)
{
    const uint64_t rights[] = {
        [AGENT_LOOKS] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
        [AGENT_WRITES] = r->all & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | SYS_LANDLOCK_REFER),
        [AGENT_MOVES] = r->all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
    };
    if (r->rules < 0)
        return 0;
    return sys_landlock_allow(r->rules, &(struct sys_landlock_path){.rights = rights[may], .parent = dir});
}

int agent_confine(struct agent_rules *r)
{
    const int no = r->rules < 0 ? 0 : sys_landlock_restrict(r->rules);
    r->rules = close_fd(r->rules);
    return no;
}
