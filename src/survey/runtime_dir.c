/*
 * The runtime directory: where it is, and whether it belongs to the user alone. XDG_RUNTIME_DIR if it is sound, else
 * one of ours in /tmp, whose owner and mode are checked each time.
 */
#include "survey/runtime_dir.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/ids.h"

const char *runtime_in_tmp(struct arena *mem)
{
    return arena_printf(mem, "/tmp/pinfold-%u", (unsigned)own_uid());
}

bool runtime_is_said(void)
{
    const char *base = getenv("XDG_RUNTIME_DIR"); /* a relative one is ignored: XDG Base Directory Specification */
    return base && base[0] == '/';
}

const char *runtime_path(struct arena *mem)
{
    return runtime_is_said() ? arena_printf(mem, "%s/pinfold", getenv("XDG_RUNTIME_DIR")) : runtime_in_tmp(mem);
}

int runtime_judge(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot examine '%s'", path);
    bool own = S_ISDIR(st.st_mode) && st.st_uid == geteuid();
    /* Nobody else could write in it, so its content is ours: just fix the mode. */
    if (own && !(st.st_mode & 022) && (st.st_mode & 055) && chmod(path, 0700) == 0)
        return 0;
    if (st.st_uid != geteuid()) /* anybody can make the one in /tmp first */
        return err_say(
            e, ERR_REFUSED,
            "'%s' belongs to user %u; set XDG_RUNTIME_DIR to a directory of yours that nobody else may enter", path,
            (unsigned)st.st_uid);
    if (!own || (st.st_mode & 077))
        return err_say(e, ERR_REFUSED, "'%s' must be your own directory with mode 0700; remove it, or run chmod 700",
                       path);
    return 0;
}
