/* The lock of a layer, so that it can be seen without being taken. */
#include "layer/store.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>

#include "sys/fd.h"

/*
 * Held by flock(2), which one has to take to know whether somebody has it; who only looks would be taken for a use, and hold up the next
 * for as long as he is stopped. So the whole file is locked by its description, too, which can be asked for without taking it. A box
 * of a version before that is in use for whoever takes the layer, and is not for who looks.
 */
static int layer_mark(int fd, int how)
{
    struct flock all = {.l_type = how == LOCK_EX ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    return sys_fcntl(fd, F_OFD_SETLK, (long)(uintptr_t)&all);
}

int layer_lock_now(int fd, int how)
{
    const int no = sys_flock(fd, how | LOCK_NB);
    if (no == 0) /* without such locks (ENOLCK) nobody sees the use before he takes the layer */
        (void)layer_mark(fd, how);
    return no;
}
