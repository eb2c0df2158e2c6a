/*
 * The socket of the file API: one end of a pair is sent by way of the session daemon to the guard. It is kept for
 * further calls, and made anew where the guard may have an old view.
 */
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "session/ask.h"
#include "session/replaced.h"
#include "session/session.h"
#include "session/session_files.h"
#include "supervisor/files/files.h"

static bool is_layered(const struct pinfold_session *s)
{
    return s->record.layer && s->record.layer[0];
}

/*
 * Whether names there may stay as the box has looked them up: below a layer, or a mask, which a box of an image has not, and a workspace
 * that can be written neither. Most calls are there, and to ask the daemon takes ten times as long as a call.
 */
static bool goes_stale(const struct pinfold_session *s, const char *path)
{
    const char *workspace = s->record.workspace;
    const size_t n = workspace ? strlen(workspace) : 0;
    const bool in_workspace = path[0] != '/' || (n && strncmp(path, workspace, n) == 0 &&
                                                 (!path[n] || path[n] == '/') && !strstr(path, "/.."));
    if (s->record.image && s->record.image[0])
        return is_layered(s);
    return is_layered(s) || !in_workspace || (s->record.reads && s->record.reads[0]);
}

/* The session daemon looks at who asks, so this process stays until it has: it closes the connection, or says why not. */
int session_files_give(struct pinfold_session *s, int end, struct err *e)
{
    auto_fd int sessiond = -1;
    auto_buf struct buf none = BUF(KEEP_MESSAGE);
    struct keep_answer answer;
    char first;
    int r = session_connect(&s->place, s->mem, &sessiond, e);
    if (r == 0)
        r = ask_send(sessiond, (struct keep_request){.op = KEEP_FILES}, (struct str){0}, &end, 1, e);
    ssize_t n = -1;
    while (r == 0 && (n = recv(sessiond, &first, 1, MSG_PEEK)) < 0 && errno == EINTR)
        ;
    return r < 0 || n <= 0 ? r : ask_answer(sessiond, &answer, &none, e);
}

int session_files_fresh(struct pinfold_session *s, struct err *e)
{
    auto_fd int sessiond = -1;
    auto_buf struct buf none = BUF(KEEP_MESSAGE);
    struct keep_answer answer;
    int r = session_connect(&s->place, s->mem, &sessiond, e);
    if (r == 0)
        r = ask_send(sessiond, (struct keep_request){.op = KEEP_FRESH}, (struct str){0}, NULL, 0, e);
    r = r < 0 ? r : ask_answer(sessiond, &answer, &none, e);
    return r < 0 || is_layered(s) ? r : 1;
}

void session_files_put_down(struct pinfold_session *s, const char *path)
{
    if (s->files >= 0 && goes_stale(s, path))
        file_put_down(s->files);
}

int session_files(struct pinfold_session *s, const char *path, bool again, int *ret, struct err *e)
{
    int pair[2];
    const int moved = replaced_workspace(s, path, NULL, e);
    if (moved < 0)
        return -EREMCHG; /* not -ESTALE, which is tried again */
    if (again)
        s->files = close_fd(s->files);
    *ret = s->files;
    if (s->files >= 0) {
        int r = goes_stale(s, path) ? session_files_fresh(s, e) : 0;
        return r < 0 ? r : 0;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair for the session's files");
    int r = session_files_give(s, pair[1], e);
    (void)close_fd(pair[1]);
    if (r < 0) {
        (void)close_fd(pair[0]);
        return r;
    }
    *ret = s->files = pair[0];
    return 0;
}
