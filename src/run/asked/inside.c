/*
 * Questions in a box, to the pinfold outside: of `pinfold why` (run/asked/inquiry.c answers), whose path is resolved here, as the box has
 * it; and for an address to be opened in a browser (supervisor/network/asker.c).
 */
#include "run/asked/inquiry.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "run/nested.h"
#include "supervisor/run.h"

#define INQUIRY_WAIT_MS 10000

/* `target` as the box has it: absolute, links followed as far as something is there. */
static int resolve(const char *target, char path[PATH_MAX], struct err *e)
{
    char whole[2 * PATH_MAX], here[PATH_MAX] = "", rest[PATH_MAX] = "";
    if (target[0] != '/' && !getcwd(here, sizeof here))
        return err_sys(e, ERR_SYSTEM, errno, "cannot find the current directory");
    int n = snprintf(whole, sizeof whole, "%s%s%s", here, here[0] ? "/" : "", target);
    while (n > 0 && n < PATH_MAX && !realpath(whole, path)) {
        char *slash = strrchr(whole, '/'), before[PATH_MAX];
        if (!slash || (errno != ENOENT && errno != EACCES && errno != ENOTDIR && errno != EPERM))
            return err_sys(e, ERR_SYSTEM, errno, "cannot look at '%s'", target);
        snprintf(before, sizeof before, "%s", rest);
        if (same(slash, "/.."))
            return err_say(e, ERR_POLICY, "'%s': '..' follows a name that does not exist", target);
        if (slash[1] && !same(slash, "/.") && snprintf(rest, sizeof rest, "%s%s", slash, before) >= (int)sizeof rest)
            n = -1;
        slash[slash == whole] = 0;
    }
    if (n < 0 || n >= PATH_MAX || strlen(path) + strlen(rest) >= INQUIRY_TARGET)
        return err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot ask about '%.60s...'", target);
    strcpy(path[1] ? path + strlen(path) : path, rest);
    return 0;
}

/* The program that a shell would find; NULL: none. What may not be executed is taken if nothing else is there. */
static const char *command_of(const char *name, char room[PATH_MAX])
{
    char at[PATH_MAX];
    const char *path = getenv("PATH"), *found = NULL;
    while (path && *path) {
        const int n = (int)strcspn(path, ":");
        const bool there = snprintf(at, sizeof at, "%.*s/%s", n ? n : 1, n ? path : ".", name) < PATH_MAX &&
                           access(at, found ? X_OK : F_OK) == 0;
        if (there) {
            found = strcpy(room, at);
            if (access(at, X_OK) == 0)
                return found;
        }
        path += n + (path[n] == ':');
    }
    return found;
}

static int connect_outside(struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = INQUIRY_WAIT_MS / 1000};
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(at.sun_path + 1, INQUIRY_NAME, sizeof INQUIRY_NAME - 1);
    const socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof INQUIRY_NAME);
    if (fd < 0 || connect(fd, (const void *)&at, n) < 0) {
        const bool busy = fd >= 0 && errno == EAGAIN;
        return err_say(e, ERR_CANNOT,
                       busy ? "this box asks too often; ask again in a second"
                            : "this box cannot ask the pinfold outside of it; ask whoever started it");
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return take_fd(&fd);
}

static int put_to_it(int fd, const struct inquiry *asked, struct inquiry_answer *a, struct err *e)
{
    if (send(fd, asked, sizeof *asked, MSG_NOSIGNAL) != sizeof *asked || recv(fd, a, sizeof *a, 0) != sizeof *a)
        return err_say(e, ERR_CANNOT, "the pinfold outside of this box did not answer");
    a->cause[sizeof a->cause - 1] = a->reason[sizeof a->reason - 1] = a->rule[sizeof a->rule - 1] = 0;
    a->origin[sizeof a->origin - 1] = a->mechanism[sizeof a->mechanism - 1] = a->outside[sizeof a->outside - 1] = 0;
    return 0;
}

static void put_inquiry(enum why_act act, const char *asked, const char *target, const struct inquiry_answer *a,
                        struct json *j)
{
    static const char *const verdicts[] = {
        [WHY_ALLOWED] = "allowed", [WHY_REFUSED] = "refused", [WHY_UNKNOWN] = "unknown"};
    json_object(j, NULL);
    json_int(j, "v", 1);
    json_text(j, "action", why_act_name(act));
    json_text(j, "asked", asked);
    json_text(j, "target", target);
    json_text(j, "verdict", verdicts[a->verdict]);
    json_text(j, "reason", a->reason);
    json_text_or_null(j, "rule", a->rule[0] ? a->rule : NULL);
    json_text_or_null(j, "origin", a->origin[0] ? a->origin : NULL);
    json_text(j, "cause", a->cause);
    json_text_or_null(j, "mechanism", a->mechanism[0] ? a->mechanism : NULL);
    json_text_or_null(j, "errno", box_errno_name(a->no));
    json_bool(j, "sandbox", !same(a->cause, "host"));
    if (a->outside[0]) {
        json_object(j, "remedy");
        json_text(j, "outside", a->outside);
        json_object_end(j);
    } else {
        json_null(j, "remedy");
    }
    json_object_end(j);
}

int inquiry_ask(enum why_act act, const char *target, struct json *j, struct err *e)
{
    static struct inquiry asked;
    static struct inquiry_answer a;
    static char path[PATH_MAX], room[PATH_MAX];
    const bool file = act != WHY_SIGNAL && (act != WHY_CONNECT || strchr(target, '/'));
    if (!nested_in_box())
        return err_say(e, ERR_POLICY, "why: no policy was given, and this is not a box");
    if (!target[0] || strlen(target) >= sizeof asked.target)
        return err_say(e, ERR_POLICY, "%s: the target is empty or too long", why_act_name(act));
    const char *wanted = act == WHY_EXEC && !strchr(target, '/') ? command_of(target, room) : target;
    if (!wanted) {
        a = (struct inquiry_answer){.verdict = WHY_REFUSED,
                                    .no = ENOENT,
                                    .cause = "host",
                                    .reason = "no directory of PATH has a program of this name"};
        put_inquiry(act, target, target, &a, j);
        return a.verdict;
    }
    int r = file ? resolve(wanted, path, e) : 0;
    if (r < 0)
        return r;
    auto_fd int fd = connect_outside(e);
    if (fd < 0)
        return fd;
    snprintf(asked.act, sizeof asked.act, "%s", why_act_name(act));
    snprintf(asked.target, sizeof asked.target, "%s", file ? path : target);
    if ((r = put_to_it(fd, &asked, &a, e)) < 0)
        return r;
    if (a.verdict < 0 || a.verdict > WHY_UNKNOWN)
        return err_say(e, ERR_CANNOT, "%s", a.reason);
    put_inquiry(act, target, asked.target, &a, j);
    return a.verdict;
}

int inquiry_open(const char *url, struct err *e)
{
    struct inquiry asked = {.act = INQUIRY_OPEN};
    struct inquiry_answer a;
    auto_fd int fd = strlen(url) < sizeof asked.target ? connect_outside(e) : -E2BIG;
    if (fd == -E2BIG)
        return err_say(e, ERR_POLICY, "the address is too long to be opened outside of this box");
    if (fd < 0)
        return fd;
    snprintf(asked.target, sizeof asked.target, "%s", url);
    int r = put_to_it(fd, &asked, &a, e);
    if (r == 0 && a.verdict != 0)
        r = err_say(e, ERR_REFUSED, "this address is not opened outside of this box: %s; open it yourself", a.reason);
    return r;
}
