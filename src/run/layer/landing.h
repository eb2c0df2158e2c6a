/* Apply and undo, below the library's own functions, which tell a living session what has landed (session/landed.c). */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

#define LAYER_SESSION_NAME 4097

/* The session that writes to the layer meanwhile. */
struct layer_session {
    bool known; /* there is one */
    char name[LAYER_SESSION_NAME], scope[LAYER_SESSION_NAME];
};
/* Whether everything that the layer `id` changes is in its workspace. False also if that cannot be said. */
bool layer_has_landed(const char *id);
/* As pinfold_layer_apply_report() and pinfold_layer_undo_report(). */
int layer_apply_to(const struct pinfold_layer_options *options, struct layer_session *lives,
                   struct pinfold_report **ret, struct pinfold_error *error);
int layer_undo_in(const struct pinfold_layer_options *options, uint64_t number, struct layer_session *lives,
                  struct pinfold_report **ret, struct pinfold_error *error);
