/* Serves the shared library's requests about session files and agents. */
#include <stdlib.h>

#include "base/fd.h"
#include "session/session_files.h"
#include "client/serving.h"

int serve_session_files(struct request *q, struct pinfold_session *session)
{
    struct err e = {0};
    if (q->fds[0] < 0)
        return serve_bad(q);
    return tell_error(q->error, &e, session_files_give(session, q->fds[0], &e));
}

static int take_ask(struct request *q, struct pinfold_agent_options *o)
{
    uint64_t resume, unattended;
    const char **const texts[] = {&o->agent,  &o->state,   &o->home,  &o->directory,
                                  &o->prompt, &o->profile, &o->model, &o->response};
    o->size = sizeof *o;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (serve_text_argument(q, texts[i]) < 0)
            return -EBADMSG;
    if (serve_number(q, &resume) < 0 || serve_number(q, &unattended) < 0)
        return -EBADMSG;
    o->resume = resume != 0;
    o->unattended = unattended != 0;
    return 0;
}

static int prepare_agent(struct request *q, const struct pinfold_agent_options *o)
{
    struct pinfold_option *list = NULL;
    char *json = NULL;
    size_t n = 0;
    int r = pinfold_agent_prepare(o, &list, &json, q->error);
    if (r < 0)
        return r;
    while (list[n].name)
        n++;
    const char **flags = arena_zero(q->mem, (2 * n + 1) * sizeof *flags);
    for (size_t i = 0; flags && i < n; i++) {
        flags[2 * i] = list[i].name;
        flags[2 * i + 1] = list[i].value;
    }
    if (flags) {
        message_list(q->answer, TAG_RESULT, flags);
        message_text(q->answer, TAG_RESULT, json);
    }
    free(list);
    free(json);
    return flags ? 0 : serve_bad(q);
}

int serve_agent(struct request *q, uint64_t op)
{
    struct pinfold_agent_options o = {0};
    char **argv = NULL, *text = NULL;
    if (op == OP_AGENT_LIST) {
        int r = pinfold_agent_list(&text, q->error);
        return serve_answer_text(q, r, text);
    }
    if (take_ask(q, &o) < 0)
        return serve_bad(q);
    if (op == OP_AGENT_PREPARE)
        return prepare_agent(q, &o);
    int r = pinfold_agent_argv(&o, &argv, q->error);
    if (r == 0)
        message_list(q->answer, TAG_RESULT, (const char *const *)argv);
    free(argv);
    return r;
}
