/*
 * Copy-on-write layers, as the shared library asks for them. Each function is one message to the program, whose end
 * is serve_layer.c.
 */
#include "client/remote.h"
#include "run/report.h"

static int ask_layer(enum message_op op, const struct pinfold_layer_options *options, uint64_t number, const int *fd,
                     struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    struct pinfold_layer_options o;
    struct message_report found;
    struct err e = {0};
    *ret = NULL;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (r < 0)
        return tell(error, &e, r);
    const struct message_layer ask = {.layer = o.layer,
                                      .cwd = o.cwd,
                                      .paths = o.paths,
                                      .all = o.all != 0,
                                      .number = number,
                                      .to = o.to,
                                      .choices = o.choices,
                                      .chosen = o.chosen != 0,
                                      .branch = o.branch,
                                      .merge = o.merge > 0 ? (uint64_t)o.merge : 0};
    r = remote_call(op, &ask, fd ? &(struct remote_along){.fds = fd, .n_fds = 1} : NULL, &answer, &found, &e);
    if (r >= 0 && !(*ret = report_of_image(found.value)))
        r = remote_broken(&e, -EBADMSG);
    return tell(error, &e, r);
}

int pinfold_layer_diff_report(const struct pinfold_layer_options *options, int count, struct pinfold_report **ret,
                              struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_diff, options, count != 0, NULL, ret, error);
}

int pinfold_layer_patch(const struct pinfold_layer_options *options, int fd, struct pinfold_report **ret,
                        struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_patch, options, 0, &fd, ret, error);
}

int pinfold_layer_tool(const struct pinfold_layer_options *options, const char *tool, struct pinfold_report **ret,
                       struct pinfold_error *error)
{
    struct err e = {0};
    (void)options;
    (void)tool;
    *ret = NULL;
    (void)err_say(&e, ERR_POLICY,
                  "a tool needs the caller's terminal, which a library does not have; run pinfold diff --tool");
    return tell(error, &e, -EOPNOTSUPP);
}

int pinfold_layer_hunks_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                               struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_hunks, options, 0, NULL, ret, error);
}

int pinfold_layer_apply_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                               struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_apply, options, 0, NULL, ret, error);
}

int pinfold_layer_undo_report(const struct pinfold_layer_options *options, uint64_t number, struct pinfold_report **ret,
                              struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_undo, options, number, NULL, ret, error);
}

int pinfold_layer_discard_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                                 struct pinfold_error *error)
{
    return ask_layer(REQUEST_layer_discard, options, 0, NULL, ret, error);
}

int pinfold_layers_report(struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    const struct message_schema ask = {0};
    struct message_report found;
    struct err e = {0};
    *ret = NULL;
    int r = remote_call(REQUEST_layers, &ask, NULL, &answer, &found, &e);
    if (r >= 0 && !(*ret = report_of_image(found.value)))
        r = remote_broken(&e, -EBADMSG);
    return tell(error, &e, r);
}

int pinfold_layers_prune_report(uint64_t older, int look, struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_answer struct remote_answer answer = {.mem = NULL};
    const struct message_sweep ask = {.older = older, .look = look != 0};
    struct message_report found;
    struct err e = {0};
    *ret = NULL;
    int r = remote_call(REQUEST_layers_prune, &ask, NULL, &answer, &found, &e);
    if (r >= 0 && !(*ret = report_of_image(found.value)))
        r = remote_broken(&e, -EBADMSG);
    return tell(error, &e, r);
}
