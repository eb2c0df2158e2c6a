/*
 * Errors on the caller's stack: a kind, an errno and one sentence that gains context on the way up. Nothing is
 * allocated, and whoever does not want to know passes NULL.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int errno_of(enum err_kind kind, int no)
{
    if (no)
        return -no;
    return kind == ERR_CANNOT ? -EOPNOTSUPP : kind == ERR_REFUSED ? -EPERM : -EINVAL;
}

int err_say(struct err *e, enum err_kind kind, const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        e->kind = kind;
        e->no = 0;
        vsnprintf(e->text, sizeof e->text, format, args);
        va_end(args);
    }
    return errno_of(kind, 0);
}

/* What C libraries have no words for that help, or none at all. */
static const char *errno_words(int no)
{
    return no == ETOOMANYREFS
               ? "a program of this user, perhaps in a box, has sent too many descriptors that nobody takes (unix(7))"
               : strerror(no);
}

int err_sys(struct err *e, enum err_kind kind, int no, const char *format, ...)
{
    if (e) {
        va_list args;
        va_start(args, format);
        e->kind = kind;
        e->no = no;
        int n = vsnprintf(e->text, sizeof e->text, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof e->text)
            snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", errno_words(no));
    }
    return errno_of(kind, no);
}

int err_wrap(struct err *e, int r, const char *format, ...)
{
    if (e) {
        char whole[sizeof e->text];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(whole, sizeof whole, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof whole)
            snprintf(whole + n, sizeof whole - (size_t)n, ": %s", e->text);
        memcpy(e->text, whole, sizeof whole);
    }
    return r;
}

int err_hint(struct err *e, int r, const char *format, ...)
{
    if (e) {
        char hint[sizeof e->text];
        va_list args;
        va_start(args, format);
        vsnprintf(hint, sizeof hint, format, args);
        va_end(args);
        size_t n = strlen(e->text);
        snprintf(e->text + n, sizeof e->text - n, " (%s)", hint);
    }
    return r;
}

int err_no_process(struct err *e, int r)
{
    return r == -EAGAIN ? err_hint(e, r, "%s", ERR_MORE_PROCESSES) : r;
}

int err_used_up(struct err *e, int r)
{
    const bool room = e && e->kind == ERR_SYSTEM && (e->no == ENOSPC || e->no == EDQUOT);
    if (!e || (!room && e->no != EMFILE && e->no != ENFILE))
        return r;
    const char *why = strerror(e->no);
    const size_t n = strlen(e->text), end = strlen(why);
    if (n < end || strcmp(e->text + n - end, why) != 0)
        return r;
    return err_hint(e, r, "%s",
                    room              ? "make room: df -h, df -i, or your quota"
                    : e->no == EMFILE ? "a process here may open no more files: raise ulimit -n"
                                      : "this machine can open no more files: raise fs.file-max");
}
