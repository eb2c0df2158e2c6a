/*
 * The branches of the repository that is the working directory, read from its files as git does: a loose ref hides the packed one of its
 * name. What git would not have written is left out, or no list at all; then more has to be judged.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "git/gitconfig.h"
#include "project/push/push.h"
#include "project/push/stage.h"

enum { LOOSE_MAX = 4096, DEEP_MAX = 64 };

static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f)
            return false;
    return name.n && name.p[0] != '.' && !str_ends(name, STR(".lock"));
}

/* Reads a small file, whatever has been put there. How much; -1: there is none that can be read. */
static ssize_t read_loose(int fd, char text[LOOSE_MAX])
{
    struct stat st;
    return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -1 : read(fd, text, LOOSE_MAX);
}

/* The packed entry of this name. 1; 0: there is none; -1: the file is not as git writes it. */
static int packed_value(struct str packed, struct str ref, struct str *ret_id)
{
    struct str id, name;
    int more;
    for (bool begins = true; (more = gitref_entry(&packed, begins, &id, &name)) > 0; begins = false) {
        if (str_eq(name, ref)) {
            *ret_id = id;
            return 1;
        }
    }
    return more;
}

static bool open_packed(struct buf *to)
{
    return push_recall("packed-refs", to) || (errno == ENOENT && buf_ok(to));
}

bool refs_value(struct str ref, char id[80])
{
    char path[PATH_MAX], text[LOOSE_MAX];
    auto_buf struct buf packed = BUF(REFS_MAX);
    struct str value;
    if (ref.n >= sizeof path)
        return false;
    snprintf(path, sizeof path, "%.*s", (int)ref.n, ref.p);
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return false;
    const ssize_t n = fd < 0 ? -1 : read_loose(fd, text);
    bool good = n > 0 && gitref_loose((struct str){text, (size_t)n}, &value);
    if (fd < 0)
        good = open_packed(&packed) && packed_value(buf_view(&packed), ref, &value) > 0;
    if (good)
        snprintf(id, 80, "%.*s", (int)value.n, value.p);
    return good;
}

bool refs_head(char ref[PATH_MAX])
{
    char text[LOOSE_MAX];
    struct str other;
    auto_fd int fd = open("HEAD", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read_loose(fd, text);
    if (n <= 0 || !gitref_of_head((struct str){text, (size_t)n}, &other) || !is_plain(other) || other.n >= PATH_MAX)
        return false;
    snprintf(ref, PATH_MAX, "%.*s", (int)other.n, other.p);
    return true;
}

/* Of a ref that is a name for another: what that is, where it is no such name itself. */
static void put_symbolic(struct buf *to, const char *name, struct str other)
{
    char id[80] = "-";
    if (!is_plain(other) || !refs_value(other, id))
        snprintf(id, sizeof id, "-");
    buf_printf(to, "%s %s %.*s\n", id, name, (int)other.n, other.p);
}

static void put_loose(struct buf *to, int fd, const char *name)
{
    char text[LOOSE_MAX];
    struct str value, other;
    const ssize_t n = read_loose(fd, text);
    if (n > 0 && gitref_loose((struct str){text, (size_t)n}, &value))
        buf_printf(to, "%.*s %s \n", (int)value.n, value.p, name);
    else if (n > 0 && gitref_of_head((struct str){text, (size_t)n}, &other))
        put_symbolic(to, name, other);
}

/* All below the directory `fd`, whose name is `name`; closes it. */
static bool list_loose(int fd, const char *name, unsigned deep, struct buf *to)
{
    DIR *names = deep < DEEP_MAX ? fdopendir(fd) : NULL;
    bool good = names != NULL;
    if (!good)
        (void)close(fd);
    for (struct dirent *d; good && (d = readdir(names)) != NULL;) {
        char path[PATH_MAX];
        struct stat st;
        if (!is_plain(str_of(d->d_name)))
            continue;
        good = snprintf(path, sizeof path, "%s/%s", name, d->d_name) < (int)sizeof path;
        int at = !good ? -1 : openat(dirfd(names), d->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (at < 0) {
            if (good && errno == ELOOP) /* an old form of a name for another */
                buf_printf(to, "- %s link\n", path);
            continue;
        }
        if (fstat(at, &st) == 0 && S_ISDIR(st.st_mode)) {
            good = list_loose(at, path, deep + 1, to);
        } else {
            put_loose(to, at, path);
            (void)close(at);
        }
    }
    if (names)
        (void)closedir(names);
    return good && buf_ok(to);
}

/* What the packed ones are is read after the loose ones: git packs a ref before it removes its file. */
static bool list_packed(const char *top, struct buf *to)
{
    auto_buf struct buf packed = BUF(REFS_MAX);
    struct str rest, id, name;
    int more = 0;
    if (!open_packed(&packed))
        return false;
    rest = buf_view(&packed);
    for (bool begins = true; (more = gitref_entry(&rest, begins, &id, &name)) > 0; begins = false) {
        char path[PATH_MAX];
        if (name.n >= sizeof path || !str_starts(name, str_of(top)) || name.p[strlen(top)] != '/')
            continue;
        snprintf(path, sizeof path, "%.*s", (int)name.n, name.p);
        struct stat st;
        if (lstat(path, &st) < 0)
            buf_printf(to, "%.*s %s \n", (int)id.n, id.p, path);
    }
    return more == 0 && buf_ok(to);
}

bool refs_list(const char *top, struct buf *to)
{
    int fd = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return false;
    return (fd < 0 || list_loose(fd, top, 0, to)) && list_packed(top, to);
}
