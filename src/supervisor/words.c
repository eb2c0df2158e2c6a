/*
 * What pid 1 of a session could not do for a command, in words: those of the plan are with whoever keeps the box.
 */
#include <errno.h>
#include "supervisor/parts.h"

int box_exec_verdict(uint32_t where, int no, const char *cwd, struct err *e)
{
    switch (where) {
    case WHERE_CWD:
        (void)err_sys(e, ERR_POLICY, no, "the directory to start in%s%s%s (cwd), as the box sees it", cwd ? ", '" : "",
                      cwd ? cwd : "", cwd ? "'" : "");
        return err_hint(e, -no, "name one that the box has, or leave cwd out to start where the session does");
    case WHERE_PTY:
        return err_sys(e, ERR_SYSTEM, no, "making the command's terminal in the box");
    case WHERE_STDIO:
        return err_sys(e, ERR_SYSTEM, no, "handing standard input, output and error to the command");
    case WHERE_CHECK:
        return err_sys(e, ERR_BUG, no, "the session could not read the command");
    case WHERE_CHILD:
        if (no == EAGAIN)
            return err_say(e, ERR_SYSTEM,
                           "the session's limit of processes is reached, or too many commands run in it at once");
        return err_sys(e, ERR_SYSTEM, no, "preparing the command's process");
    default:
        return err_sys(e, ERR_SYSTEM, no, "the command's own limits or directory in the box (step %u)", where + 1);
    }
}
