/*
 * The audit log's head: what the log holds at a moment, in one word that a person keeps elsewhere. The chain of a run
 * (audit.c) finds changed and missing lines between others; it cannot find that the end of the log was cut off, or that
 * all of it was written anew. A head can: it names each file by its first bytes, and says how long it is and what is in
 * it. Files only grow, so later each must still begin with the same bytes. They are renamed by rotation, and removed once
 * there are AUDIT_FILES newer ones; a file that is gone is excused by that alone.
 *
 *     HEAD = FILE *("." FILE), newest first          FILE = FIRST "-" BYTES "-" SUM, hexadecimal, decimal, hexadecimal
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/hex.h"
#include "supervisor/audit.h"

#define FIRST_BYTES 4096u /* of a file that identify it: the first line, which has the time and the run */
#define SUM_DIGITS  32u

struct headed {
    char first[SUM_DIGITS / 2 + 1], sum[SUM_DIGITS + 1];
    uint64_t bytes;
};

/* Sums the first `bytes` of the file; its first line identifies it. False: it is shorter, or cannot be read. */
static bool sum_log(int fd, uint64_t bytes, struct headed *ret)
{
    char text[16384];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX all, first;
    uint64_t done = 0;
    SHA256Init(&all);
    SHA256Init(&first);
    for (bool in_first = true; done < bytes;) {
        const uint64_t left = bytes - done;
        const ssize_t n = pread(fd, text, left < sizeof text ? (size_t)left : sizeof text, (off_t)done);
        if (n <= 0)
            return false;
        const char *end = in_first ? memchr(text, '\n', (size_t)n) : NULL;
        if (in_first)
            SHA256Update(&first, (const uint8_t *)text, end ? (size_t)(end - text) : (size_t)n);
        in_first = in_first && !end;
        SHA256Update(&all, (const uint8_t *)text, (size_t)n);
        done += (uint64_t)n;
    }
    SHA256Final(digest, &all);
    hex_digits(digest, SUM_DIGITS / 2, ret->sum);
    SHA256Final(digest, &first);
    hex_digits(digest, SUM_DIGITS / 4, ret->first);
    ret->bytes = bytes;
    return true;
}

/* Opens the log's files, newest first; those that do not exist are -1. */
static int open_files(int ret[AUDIT_FILES], struct err *e)
{
    char path[4096], name[32];
    int k = audit_dir(path, sizeof path);
    for (unsigned i = 0; i < AUDIT_FILES; i++)
        ret[i] = -1;
    if (k < 0)
        return err_sys(e, ERR_SYSTEM, -k,
                       "no directory for the audit log: set XDG_STATE_HOME or HOME to an absolute path");
    auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : err_sys(e, ERR_SYSTEM, errno, "cannot open the audit log '%s'", path);
    for (unsigned i = 0; i < AUDIT_FILES; i++) {
        audit_file_name(name, i);
        struct stat st;
        ret[i] = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (ret[i] < 0 ? errno != ENOENT : fstat(ret[i], &st) < 0)
            return err_sys(e, ERR_SYSTEM, errno, "cannot read the audit log '%s/%s'", path, name);
        if (ret[i] >= 0 && !S_ISREG(st.st_mode))
            return err_say(e, ERR_REFUSED, "the audit log '%s/%s' is not a regular file; look at who made it", path,
                           name);
    }
    return 0;
}

static void close_files(int files[AUDIT_FILES])
{
    for (unsigned i = 0; i < AUDIT_FILES; i++)
        files[i] = close_fd(files[i]);
}

int audit_head(struct buf *ret, struct err *e)
{
    int files[AUDIT_FILES];
    int r = open_files(files, e);
    const size_t before = ret->n;
    for (unsigned i = 0; i < AUDIT_FILES && r == 0; i++) {
        struct stat st;
        struct headed it;
        if (files[i] < 0 || fstat(files[i], &st) < 0 || st.st_size == 0)
            continue;
        if (!sum_log(files[i], (uint64_t)st.st_size, &it))
            r = err_sys(e, ERR_SYSTEM, EIO, "cannot read the audit log");
        else
            buf_printf(ret, "%s%s-%" PRIu64 "-%s", ret->n > before ? "." : "", it.first, it.bytes, it.sum);
    }
    if (r == 0 && ret->n == before)
        buf_printf(ret, "empty");
    close_files(files);
    return r;
}

/* One FILE of a head; moves `*at` behind it. */
static bool parse_file(const char **at, struct headed *ret)
{
    static const char hex[] = "0123456789abcdef";
    const char *p = *at;
    char *end;
    if (strspn(p, hex) != SUM_DIGITS / 2 || p[SUM_DIGITS / 2] != '-' || p[SUM_DIGITS / 2 + 1] < '1' ||
        p[SUM_DIGITS / 2 + 1] > '9')
        return false;
    memcpy(ret->first, p, SUM_DIGITS / 2);
    ret->first[SUM_DIGITS / 2] = 0;
    errno = 0;
    ret->bytes = strtoull(p + SUM_DIGITS / 2 + 1, &end, 10);
    if (errno || *end != '-' || strspn(end + 1, hex) != SUM_DIGITS)
        return false;
    memcpy(ret->sum, end + 1, SUM_DIGITS);
    ret->sum[SUM_DIGITS] = 0;
    p = end + 1 + SUM_DIGITS;
    if (*p != 0 && *p != '.')
        return false;
    *at = *p ? p + 1 : p;
    return *p == 0 || p[1] != 0;
}

/* Whether one of the files still begins with what `was` says; *ret_known: one of them is that file, whatever it holds. */
static bool still_there(int files[AUDIT_FILES], const struct headed *was, bool *ret_known)
{
    for (unsigned i = 0; i < AUDIT_FILES; i++) {
        struct headed now;
        char text[FIRST_BYTES];
        const ssize_t n = files[i] < 0 ? 0 : pread(files[i], text, sizeof text, 0);
        const char *end = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
        if (!end || !sum_log(files[i], (uint64_t)(end - text), &now) || strcmp(now.first, was->first) != 0)
            continue;
        *ret_known = true;
        return sum_log(files[i], was->bytes, &now) && strcmp(now.sum, was->sum) == 0;
    }
    return false;
}

int audit_since_head(const char *head, struct audit_since *ret, struct err *e)
{
    int files[AUDIT_FILES];
    struct headed all[AUDIT_FILES];
    unsigned n = 0, present = 0;
    *ret = (struct audit_since){0};
    const bool empty = strcmp(head, "empty") == 0;
    for (const char *at = head; *at && !empty; n++) {
        if (n == AUDIT_FILES || !parse_file(&at, &all[n]))
            return err_say(e, ERR_POLICY, "--head-was: '%.80s' is not what 'pinfold log --head' printed", head);
    }
    if (!empty && n == 0)
        return err_say(e, ERR_POLICY, "--head-was: it is empty; write what 'pinfold log --head' printed");
    int r = open_files(files, e);
    for (unsigned i = 0; i < AUDIT_FILES; i++)
        present += files[i] >= 0;
    bool newer_known = false;
    for (unsigned i = 0; i < n && r == 0; i++) {
        bool known = false;
        if (still_there(files, &all[i], &known))
            ret->kept++;
        else if (!known && present == AUDIT_FILES && (i > 0 || !newer_known))
            ret->rotated++; /* as many newer files have come as are kept */
        else
            ret->changed++;
        newer_known |= known;
    }
    close_files(files);
    return r;
}
