/*
 * The error message for a descriptor of standard input, output or error that no box gets. By itself, because programs that never say a
 * builder's errors link it, too.
 */
#include <errno.h>
#include "backends/engine.h"

int engine_stdio_error(int which, int fd, int no, struct err *e)
{
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    if (no == -EINVAL)
        return err_say(e, ERR_REFUSED,
                       "%s is a directory, a block device or a kernel handle, which would give the box more than data; "
                       "redirect it from a file or /dev/null",
                       names[which]);
    return err_sys(e, ERR_SYSTEM, -no, "%s (descriptor %d)", names[which], fd);
}
