/*
 * Writes a project's policy, and the Dockerfile of its image, completely or not at all: everything is prepared beside, the rename is the last step, and what was made
 * before a failure is taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "project/project.h"
#include "sys/file.h"
#include "user/replace.h"
#include "user/umask.h"

#define NAME   "policy.yaml"
#define BESIDE ".policy.yaml.new"
#define IGNORE "/.pinfold/backup/"

#define DOCKERFILE   "Dockerfile"
#define BESIDE_IMAGE ".Dockerfile.new"
extern const char project_dockerfile[]; /* images/repo/Dockerfile */

enum { MAX_IGNORE = 1 << 20, MAX_BACKUPS = 1000 };

int project_fail(char *why, size_t room, int no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(why, room, format, args);
    va_end(args);
    const bool full = no == ENOSPC || no == EDQUOT;
    if (n >= 0 && (size_t)n < room && no)
        snprintf(why + n, room - (size_t)n, ": %s%s", strerror(no),
                 full ? " (make room: df -h, df -i, or your quota)" : "");
    return -(no ? no : EINVAL);
}

/* Adds the line of backups to .gitignore. 0 (`added` says whether), or -errno. */
static int ignore(int dir, bool *added)
{
    static const char beside[] = ".pinfold/.gitignore.new";
    struct stat st = {.st_mode = umask_leaves(0644)};
    auto_buf struct buf text = BUF(MAX_IGNORE + 64);
    auto_fd int fd = openat(dir, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return -errno;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_IGNORE))
        return -EFBIG;
    const int read_it = fd < 0 ? 0 : fd_read_all(fd, &text);
    if (read_it < 0)
        return read_it;
    struct str rest = buf_view(&text);
    while (rest.n) {
        if (str_is(str_until(&rest, '\n'), IGNORE))
            return 0;
    }
    buf_text(&text, text.n && text.p[text.n - 1] != '\n' ? "\n" IGNORE "\n" : IGNORE "\n");
    if (!buf_ok(&text))
        return -ENOMEM;
    int r = file_replace(dir, ".gitignore", beside, buf_view(&text), st.st_mode & 0777);
    *added = r == 0;
    return r;
}

/* Moves the policy that is there to the first free name of the backups. */
static int back_up(int at, const char *what, char moved[64])
{
    if (mkdirat(at, "backup", 0755) < 0 && errno != EEXIST)
        return -errno;
    auto_fd int backup = openat(at, "backup", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (backup < 0)
        return -errno;
    for (int i = 1; i <= MAX_BACKUPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.%d", what, i);
        int r = sys_rename_new(at, what, backup, name);
        if (r == 0)
            snprintf(moved, 64, ".pinfold/backup/%s", name);
        if (r != -EEXIST)
            return r;
    }
    return -EMFILE;
}

static int put_policy(int at, const char *path, struct str text, bool force, struct project_done *done, char *why,
                      size_t room)
{
    struct stat st;
    bool there = fstatat(at, NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && !force) {
        (void)project_fail(why, room, 0,
                           "'%s/" PROJECT_FILE "' exists; --force moves it to a backup and writes a new one", path);
        return -EEXIST;
    }
    int r = file_make(at, BESIDE, text, umask_leaves(0644));
    if (r < 0)
        return project_fail(why, room, -r, "cannot write '%s/" PROJECT_FILE "'", path);
    if (there && (r = back_up(at, NAME, done->moved)) < 0)
        (void)project_fail(why, room, -r, "cannot move '%s/" PROJECT_FILE "' to a backup", path);
    if (r == 0 && (r = sys_rename_new(at, BESIDE, at, NAME)) < 0) {
        (void)project_fail(why, room, -r, "cannot write '%s/" PROJECT_FILE "'", path);
        if (done->moved[0])
            (void)sys_rename_new(at, done->moved + sizeof ".pinfold", at, NAME);
    }
    if (r < 0)
        (void)unlinkat(at, BESIDE, 0);
    return r;
}

/* The template, unless there is one: of the person's, or of agent-sandbox. */
static int put_dockerfile(int dir, int at, const char *path, bool force, struct project_done *done, char *why,
                          size_t room)
{
    struct stat st;
    bool there = fstatat(at, DOCKERFILE, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if ((there && !force) || fstatat(dir, PROJECT_SEED "/Dockerfile", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int r = file_make(at, BESIDE_IMAGE, str_of(project_dockerfile), umask_leaves(0644));
    if (r == 0 && there)
        r = back_up(at, DOCKERFILE, done->moved_image);
    if (r == 0)
        r = sys_rename_new(at, BESIDE_IMAGE, at, DOCKERFILE);
    done->image = r == 0;
    if (r < 0) {
        (void)project_fail(why, room, -r, "cannot write '%s/" PROJECT_DOCKERFILE "'", path);
        (void)unlinkat(at, BESIDE_IMAGE, 0);
    }
    return r;
}

/* As it was before put_dockerfile(). */
static void take_back_dockerfile(int at, struct project_done *done)
{
    if (done->image)
        (void)unlinkat(at, DOCKERFILE, 0);
    if (done->moved_image[0])
        (void)sys_rename_new(at, done->moved_image + sizeof ".pinfold", at, DOCKERFILE);
}

int project_write(int dir, const char *path, const struct project_seen *seen, const struct project_container *container,
                  bool force, struct project_done *done, char *why, size_t room)
{
    auto_buf struct buf text = BUF(PROJECT_POLICY_MAX);
    *done = (struct project_done){.ignored = false};
    project_policy(seen, container, &text);
    if (!buf_ok(&text))
        return project_fail(why, room, ENOMEM, "cannot write '%s/" PROJECT_FILE "'", path);
    bool made = mkdirat(dir, ".pinfold", 0755) == 0;
    if (!made && errno != EEXIST)
        return project_fail(why, room, errno, "cannot create '%s/.pinfold'", path);
    auto_fd int at = openat(dir, ".pinfold", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (at < 0)
        return project_fail(why, room, errno, "'%s/.pinfold' must be a directory, no link; move it away", path);
    int r = 0;
    if (seen->git && (force || faccessat(at, NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0) &&
        (r = ignore(dir, &done->ignored)) < 0)
        (void)project_fail(why, room, -r, "cannot add the line '" IGNORE "' to '%s/.gitignore'%s", path,
                           r == -EFBIG || r == -ELOOP ? ", which must be a file of at most 1 MiB" : "");
    const bool free_name = force || faccessat(at, NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0; /* or nothing is written */
    if (r == 0 && container->engine && free_name)
        r = put_dockerfile(dir, at, path, force, done, why, room);
    if (r == 0)
        r = put_policy(at, path, buf_view(&text), force, done, why, room);
    if (r < 0)
        take_back_dockerfile(at, done);
    if (r < 0 && made)
        (void)unlinkat(dir, ".pinfold", AT_REMOVEDIR);
    return r;
}

bool project_is(const char *path)
{
    static const char first[] = "# pinfold init 1";
    char start[sizeof first] = "";
    struct stat st;
    auto_fd int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd int fd = dir < 0 ? -1 : openat(dir, PROJECT_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && read(fd, start, sizeof first - 1) == sizeof first - 1 && same(start, first))
        return true;
    return dir >= 0 && fstatat(dir, PROJECT_SEED, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}
