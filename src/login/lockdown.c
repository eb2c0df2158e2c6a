/*
 * What pinfold-login gives up before it reads anything: capabilities, core dumps, other programs, and the right to write anywhere
 * but in the login's directory and its own. It may read, as TLS and names need many files, and it may connect.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include "login/login.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "sys/process.h"

static int restrict_writing(void)
{
    int abi = sys_landlock_abi();
    if (abi < 1)
        return 0; /* it opens for writing by its two descriptors alone */
    uint64_t all =
        SYS_LANDLOCK_ALL_FILES_1 | (abi >= 2 ? SYS_LANDLOCK_REFER : 0u) | (abi >= 3 ? SYS_LANDLOCK_TRUNCATE : 0u);
    all &= ~(uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
    const uint64_t most =
        all & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                          LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM);
    const uint64_t locks = LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                           LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
    own_fd int rules = sys_landlock_create(&(struct sys_landlock_ruleset){.files = all});
    own_fd int above = sys_openat(LOGIN_HOST, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0); /* agents' locks lie there */
    int no = rules < 0 ? rules : 0;
    for (int fd = LOGIN_HOST; no == 0 && fd <= LOGIN_KEPT; fd++)
        no = sys_landlock_allow(rules, &(struct sys_landlock_path){.rights = most, .parent = fd});
    if (no == 0 && above >= 0)
        no = sys_landlock_allow(rules, &(struct sys_landlock_path){.rights = locks & all, .parent = above});
    return no < 0 ? no : sys_landlock_restrict(rules);
}

int login_lockdown(struct err *e)
{
    static const struct sys_rlimit one = {1, 1};
    int no = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (no == 0)
        no = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (no == 0)
        no = sys_caps_keep(0);
    if (no == 0)
        no = sys_prlimit(RLIMIT_CORE, &one, NULL); /* 0 would not stop a program of core_pattern */
    if (no == 0)
        no = restrict_writing();
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot confine the process that owns the login") : 0;
}

int login_later(struct err *e, const char *format, ...)
{
    va_list args;
    char text[sizeof e->text];
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)err_say(e, ERR_SYSTEM, "%s", text);
    return -EAGAIN;
}
