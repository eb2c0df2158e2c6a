/*
 * Finds directories of ssh's system-wide configuration that have files in them: on most systems none; systemd and
 * Fedora put some there. In a user namespace root's files have another owner, and ssh refuses them.
 */
#include "survey/ssh_files.h"

#include <unistd.h>
#include "base/ids.h"
#include "sys/fd.h"
#include "sys/file.h"

static bool has_entries(const char *path)
{
    _Alignas(8) char room[1024];
    own_fd int dir = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    return dir >= 0 && sys_next_entry(&all);
}

void ssh_files_find(const char *ret[MAX_SSH_FILES + 1])
{
    static const char *const known[MAX_SSH_FILES] = {"/etc/ssh/ssh_config.d", "/usr/etc/ssh/ssh_config.d"};
    size_t n = 0;
    const bool root = own_euid() == 0;
    for (size_t i = 0; !root && i < MAX_SSH_FILES; i++) {
        if (has_entries(known[i]))
            ret[n++] = known[i];
    }
    ret[n] = NULL;
}
