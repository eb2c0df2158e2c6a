/*
 * Error messages for what pid 1 of a session could not do for a command; those about the plan come from the process
 * that keeps the box.
 */
#include <errno.h>
#include "supervisor/parts.h"

int box_exec_verdict(uint32_t where, int no, const char *cwd, struct err *e)
{
    switch (where) {
    case WHERE_CWD:
        (void)err_sys(e, ERR_POLICY, no, "the start directory%s%s%s (cwd), as the box sees it", cwd ? " '" : "",
                      cwd ? cwd : "", cwd ? "'" : "");
        return err_hint(e, -no, "use a directory that exists in the box, or omit cwd to start where the session does");
    case WHERE_PTY:
        return err_sys(e, ERR_SYSTEM, no, "cannot create the command's terminal in the box");
    case WHERE_STDIO:
        return err_sys(e, ERR_SYSTEM, no, "cannot pass standard input, output and error to the command");
    case WHERE_CHECK:
        return err_sys(e, ERR_BUG, no, "the session cannot read the command");
    case WHERE_CHILD:
        if (no == EAGAIN)
            return err_say(e, ERR_SYSTEM,
                           "the session's process limit is reached, or too many commands run in it at once");
        return err_sys(e, ERR_SYSTEM, no, "cannot prepare the command's process");
    default:
        return err_sys(e, ERR_SYSTEM, no, "cannot apply the command's own limits or directory in the box (step %u)",
                       where + 1);
    }
}
