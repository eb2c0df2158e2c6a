/*
 * `.env` files at the top of a workspace are hidden by a mount over each (policy/env_files.c), which costs the box's opens
 * nothing, but goes when somebody on this machine renames another file over one. In a box that stays, this is said after
 * each command: no command of the box can have done it, because the guard protects the name.
 */
#include "session/replaced.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "plan/make.h"
#include "sys/file.h"

static char *put_number(char *to, uint64_t n, char end)
{
    char digits[20];
    size_t k = 0;
    do
        digits[k++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (k)
        *to++ = digits[--k];
    *to = end;
    return end ? to + 1 : to;
}

/* Its device, number and time of creation, as numbers on this machine; "" if there is none. */
static void identity(const char *path, char ret[96])
{
    struct sys_stat st;
    const int no = sys_stat_at(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_BORN, &st);
    ret[0] = 0;
    if (no == 0) /* no printf, which each command in a session would have to read */
        *put_number(put_number(put_number(put_number(ret, st.major, ':'), st.minor, ':'), st.inode, ':'),
                    sys_stat_born(&st), 0) = 0;
}

const char *replaced_identity(const char *path, struct arena *mem)
{
    char now[96] = "";
    if (path)
        identity(path, now);
    return arena_text(mem, now);
}

bool replaced_is(const char *path, const char *was, bool *ret_there)
{
    char now[96];
    identity(path, now);
    *ret_there = now[0] != 0;
    return same(now, was);
}

const char *replaced_watch(const struct plan *plan, struct arena *mem)
{
    auto_buf struct buf out = BUF(1u << 18);
    char now[96];
    for (size_t i = 0; i < plan->n_places; i++) {
        const struct plan_place *p = &plan->places[i];
        if (!p->once || p->act != ACT_DENY || !p->src || strchr(p->src, '\n'))
            continue;
        identity(p->src, now);
        if (now[0])
            buf_printf(&out, "%s %s\n", now, p->src);
    }
    return buf_ok(&out) ? arena_str(mem, buf_view(&out)) : NULL;
}

void replaced_left(const char *watched, struct box_result *result)
{
    char path[PATH_MAX], now[96];
    for (const char *at = watched, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const size_t n = blank ? (size_t)(end - blank) - 1 : 0;
        if (n == 0 || n >= sizeof path)
            continue;
        memcpy(path, blank + 1, n);
        path[n] = 0;
        identity(path, now);
        const size_t k = (size_t)(blank - at);
        if (now[0] && (strlen(now) != k || memcmp(now, at, k) != 0))
            box_result_left(result, "replaced", path, NULL);
    }
}
