/*
 * Serves the shared library's requests about agents. Each function takes a message apart and calls the one of
 * pinfold.h with that name.
 */
#include "client/serving.h"

static struct pinfold_agent_options options_of(const struct message_agent *a)
{
    return (struct pinfold_agent_options){.size = sizeof(struct pinfold_agent_options),
                                          .agent = a->agent,
                                          .state = a->state,
                                          .home = a->home,
                                          .directory = a->directory,
                                          .prompt = a->prompt,
                                          .profile = a->profile,
                                          .model = a->model,
                                          .response = a->response,
                                          .resume = a->resume != 0,
                                          .unattended = a->unattended != 0};
}

int serve_agent_list(struct request *q, const struct message_schema *a, struct message_report *ret)
{
    struct pinfold_report *report = NULL;
    (void)a;
    int r = pinfold_agent_list_report(&report, q->error);
    return serve_report(q, r, report, ret);
}

int serve_agent_prepare(struct request *q, const struct message_agent *a, struct message_prepared *ret)
{
    const struct pinfold_agent_options o = options_of(a);
    struct pinfold_option *list = NULL;
    char *json = NULL;
    int r = pinfold_agent_prepare(&o, &list, &json, q->error);
    q->kept[0] = list;
    q->kept[1] = json;
    *ret = (struct message_prepared){.options = list, .json = json};
    return r;
}

int serve_agent_argv(struct request *q, const struct message_agent *a, struct message_words *ret)
{
    const struct pinfold_agent_options o = options_of(a);
    char **argv = NULL;
    int r = pinfold_agent_argv(&o, &argv, q->error);
    q->kept[0] = argv;
    ret->words = (const char *const *)argv;
    return r;
}
