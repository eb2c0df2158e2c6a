/*
 * Becomes one of pinfold's other programs (pinfold-sqlite, pinfold-login), by the descriptor whose owner was checked.
 * A path could lead to another file by the time of the exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include "agents/agents.h"
#include "sys/fd.h"
#include "sys/process.h"

enum { FREE_FROM = 20, FIRST = 3, MOST = 8 };

_Noreturn void agent_become(int program, const int *fds, int n, const char *const *argv, const char *const *env,
                            bool lone)
{
    int high[MOST], no = n <= MOST ? 0 : -EINVAL;
    if (lone)
        (void)sys_setsid();
    else
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    program = sys_fcntl(program, F_DUPFD_CLOEXEC, FREE_FROM);
    int null = sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (int i = 0; no >= 0 && i < n; i++)
        high[i] = sys_fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, FREE_FROM);
    for (int i = 0; no >= 0 && i < FIRST; i++)
        no = sys_dup3(null, i, 0);
    for (int i = 0; no >= 0 && i < n; i++)
        no = sys_dup3(high[i], FIRST + i, 0);
    if (no >= 0 && program >= 0 && sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && sys_chdir("/") == 0) {
        (void)sys_close_range((unsigned)(FIRST + n), (unsigned)program - 1);
        (void)sys_close_range((unsigned)program + 1, ~0u);
        (void)sys_sigmask(SIG_SETMASK, 0);
        (void)sys_call(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH, 0);
    }
    sys_exit(AGENT_NOT_STARTED);
}
