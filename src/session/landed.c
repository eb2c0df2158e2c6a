/*
 * Apply and undo of a layer that a living session writes to: its box sees the workspace below its layer, which has changed, so the kernel is
 * made to look at it again at once. Each command and file call of the session would do that, too.
 */
#include "base/fd.h"
#include "run/layer/landing.h"
#include "session/session.h"
#include "session/session_files.h"

/* No error of what was done: a session that has ended meanwhile needs nothing. */
static void look_again(const struct layer_session *lives)
{
    const struct pinfold_session_options o = {
        .size = sizeof o, .name = lives->name, .scope = lives->scope[0] ? lives->scope : NULL};
    struct pinfold_session *s = NULL;
    struct pinfold_error ignored;
    struct err e = {0};
    if (!lives->known || pinfold_session_open(&o, &s, &ignored) < 0 || !s)
        return;
    (void)session_files_fresh(s, &e);
    pinfold_session_free(s);
}

int pinfold_layer_apply_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                               struct pinfold_error *error)
{
    struct layer_session lives;
    const int r = layer_apply_to(options, &lives, ret, error);
    look_again(&lives);
    return r;
}

int pinfold_layer_undo_report(const struct pinfold_layer_options *options, uint64_t number, struct pinfold_report **ret,
                              struct pinfold_error *error)
{
    struct layer_session lives;
    const int r = layer_undo_in(options, number, &lives, ret, error);
    look_again(&lives);
    return r;
}
