/*
 * Files of sessions, and agents, for the shared library. A session's files are accessed from the caller's own process,
 * on a socket whose other end a server passes to the session's guard; so not every call needs a server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "client/remote.h"
#include "session/session_files.h"
#include "supervisor/files/files.h"

void session_files_put_down(struct pinfold_session *s, const char *path)
{
    (void)path;
    if (!s->no_layer && s->files >= 0)
        file_put_down(s->files);
}

int session_files(struct pinfold_session *s, const char *path, bool again, int *ret, struct err *e)
{
    int pair[2];
    (void)path;
    if (again)
        s->files = close_fd(s->files);
    *ret = s->files;
    if (s->files >= 0 && s->no_layer)
        return 0;
    if (s->files >= 0) {
        const struct message_open fresh = {.name = s->name, .scope = s->scope};
        int no = remote_plain(REQUEST_files, &fresh, NULL, e);
        s->no_layer = no == 1;
        return no < 0 ? no : 0;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a socket pair for the session's files");
    const struct message_open ask = {.name = s->name, .scope = s->scope};
    int r = remote_plain(REQUEST_files, &ask, &(struct remote_along){.fds = &pair[1], .n_fds = 1}, e);
    (void)close_fd(pair[1]);
    if (r < 0) {
        (void)close_fd(pair[0]);
        return r;
    }
    *ret = s->files = pair[0];
    return 0;
}

/* ---- agents ---- */

int pinfold_agent_list_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    return remote_report(REQUEST_agent_list, &(struct message_schema){0}, ret, error);
}

static int fields_of(const struct pinfold_agent_options *options, struct message_agent *ret, struct err *e)
{
    struct pinfold_agent_options o;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, e);
    *ret = (struct message_agent){.agent = o.agent,
                                  .state = o.state,
                                  .home = o.home,
                                  .directory = o.directory,
                                  .prompt = o.prompt,
                                  .profile = o.profile,
                                  .model = o.model,
                                  .response = o.response,
                                  .resume = o.resume != 0,
                                  .unattended = o.unattended != 0};
    return r;
}

static size_t count_list(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* One piece of memory: the options, one of zeros, then their texts. */
static struct pinfold_option *copied(const struct pinfold_option *from, struct arena *mem)
{
    const char **words = NULL, **one;
    size_t n = 0;
    for (; from->name; from++) {
        if ((one = arena_push(mem, &words, &n, sizeof *one)))
            *one = from->name;
        if ((one = arena_push(mem, &words, &n, sizeof *one)))
            *one = from->value ? from->value : "";
    }
    _Static_assert(sizeof(struct pinfold_option) == 2 * sizeof(char *), "options must come in pairs of name and value");
    return arena_failed(mem) ? NULL : (struct pinfold_option *)(void *)remote_list(words, n, n + 2);
}

int pinfold_agent_prepare(const struct pinfold_agent_options *options, struct pinfold_option **ret_options, char **ret,
                          struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct message_prepared found;
    struct message_agent ask;
    struct err e = {0};
    int r = fields_of(options, &ask, &e);
    if (r == 0)
        r = remote_call(REQUEST_agent_prepare, &ask, NULL, &answer, &found, &e);
    if (r == 0 && !found.json)
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return tell(error, &e, r);
    struct pinfold_option *list = ret_options ? copied(found.options, answer.mem) : NULL;
    char *text = ret ? strdup(found.json) : NULL;
    if ((ret_options && !list) || (ret && !text)) {
        free(list);
        free(text);
        return tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "agent"));
    }
    if (ret_options)
        *ret_options = list;
    if (ret)
        *ret = text;
    return 0;
}

int pinfold_agent_argv(const struct pinfold_agent_options *options, char ***ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct message_words found;
    struct message_agent ask;
    struct err e = {0};
    int r = fields_of(options, &ask, &e);
    if (r == 0)
        r = remote_call(REQUEST_agent_argv, &ask, NULL, &answer, &found, &e);
    if (r == 0 && !found.words)
        r = remote_broken(&e, -EBADMSG);
    if (r < 0)
        return tell(error, &e, r);
    *ret = remote_list(found.words, count_list(found.words), count_list(found.words) + 1);
    return *ret ? 0 : tell(error, &e, err_sys(&e, ERR_SYSTEM, ENOMEM, "agent"));
}
