/*
 * The host's file of a login: read when it is a regular one of this user's, replaced in one step, on disk when that returns. The
 * mode stays; the file is never opened through a link, because the one that would be replaced is not the one that was read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "login/login.h"

void login_text_free(struct login_text *t)
{
    if (t->p)
        explicit_bzero(t->p, t->n);
    free(t->p);
    *t = (struct login_text){0};
}

static int why_not(const struct login_ask *a, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_say(e, ERR_REFUSED, "the login in %s is not touched: it is not a regular file", a->shown);
    if (st->st_uid != geteuid())
        return err_say(e, ERR_REFUSED, "the login in %s is not touched: the file belongs to another user", a->shown);
    if (st->st_nlink > 1)
        return err_say(e, ERR_REFUSED, "the login in %s is not touched: the file has another name, too (a hard link)",
                       a->shown);
    if (st->st_size > LOGIN_MAX)
        return err_say(e, ERR_REFUSED, "the login in %s is not touched: no login is larger than 1 MiB", a->shown);
    return 0;
}

int login_file_read(const struct login_ask *a, bool optional, struct login_text *ret, struct err *e)
{
    struct stat st;
    *ret = (struct login_text){.mode = 0600};
    auto_fd int fd = openat(LOGIN_HOST, a->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && optional)
        return 0;
    if (fd < 0 && errno == ELOOP)
        return err_say(e, ERR_REFUSED,
                       "the login in %s is not touched: it is a link; put the file itself there to have it renewed",
                       a->shown);
    if (fd < 0 && errno == ENXIO)
        return err_say(e, ERR_REFUSED, "the login in %s is not touched: it is not a regular file", a->shown);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot read the login in %s", a->shown);
    int r = why_not(a, &st, e);
    if (r < 0)
        return r;
    ret->p = malloc((size_t)st.st_size + 1);
    if (!ret->p)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the login in %s", a->shown);
    while (ret->n < (size_t)st.st_size) {
        ssize_t n = read(fd, ret->p + ret->n, (size_t)st.st_size - ret->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, ERR_SYSTEM, errno, "cannot read the login in %s", a->shown);
        if (n == 0)
            break;
        ret->n += (size_t)n;
    }
    ret->p[ret->n] = 0;
    ret->mode = st.st_mode & 0777;
    ret->there = true;
    return 0;
}

/* Fixed, since there is one owner at a time: what a killed one has left is used again. */
static void beside(const struct login_ask *a, char ret[300])
{
    snprintf(ret, 300, ".%.200s.pinfold", a->name);
}

int login_file_reserve(const struct login_ask *a, size_t bytes, int *ret, struct err *e)
{
    char temp[300];
    beside(a, temp);
    (void)unlinkat(LOGIN_HOST, temp, 0);
    auto_fd int fd = openat(LOGIN_HOST, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int no = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    if (no == EOPNOTSUPP || no == EINVAL)
        no = 0; /* a file system that reserves nothing */
    if (no) {
        (void)unlinkat(LOGIN_HOST, temp, 0);
        return err_sys(e, ERR_SYSTEM, no, "the login in %s is not renewed: no file can be made beside it", a->shown);
    }
    *ret = take_fd(&fd);
    return 0;
}

int login_file_replace(const struct login_ask *a, int *reserved, struct str text, unsigned mode, struct err *e)
{
    char temp[300];
    beside(a, temp);
    auto_fd int fd = take_fd(reserved);
    int no = fd_write_all(fd, text.p, text.n);
    if (no == 0 && (ftruncate(fd, (off_t)text.n) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
                    renameat(LOGIN_HOST, temp, LOGIN_HOST, a->name) < 0))
        no = -errno;
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot write the login in %s", a->shown);
    (void)fsync(LOGIN_HOST);
    return 0;
}

void login_file_forget(const struct login_ask *a)
{
    char temp[300];
    beside(a, temp);
    (void)unlinkat(LOGIN_HOST, temp, 0);
}
