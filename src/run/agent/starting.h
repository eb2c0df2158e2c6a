/* What is known of an agent that is being started, shared by agent_start.c, agent_keep.c and agent_login.c. */
#pragma once
#include "agents/agents.h"
#include "run/agent/agent_program.h"
#include "run/agent/agent_start.h"
#include "run/world.h"

struct starting {
    struct arena *mem;
    struct world world;
    struct agent agent;
    struct agent_program program;
    const char *
        opens; /* a directory that comes first on the box's PATH: programs that open an address (agent_login.c); or NULL */
    struct agent_layers layers;
    const char *workspace, *directory; /* the project; where the agent starts in it */
    const char *slug;                  /* of that directory, as agents name its sessions; NULL: too long */
    const char *project;               /* the same by an agent's own register (agent_project.c); NULL: it has none */
    const char *host[AGENT_LAYERS_MAX], *box[AGENT_LAYERS_MAX]; /* the agent's directories outside and inside */
    const char *layer;                                          /* pinfold-agents/NAME/PROJECT */
    bool fresh, look_only, layered, lone; /* lone: a box for a login; nothing of the person's is in its layer */
    bool session;                         /* for a project's session */
    bool renewal_told;                    /* why a login is not renewed stands in the notes */
    int live;
    char brought[65]; /* the sum of what a start would copy (agent_same.c); "": it is not to be relied on */
    struct pinfold_option *options;
    size_t n_options;
    struct buf shared, about, notes;
};

#define STARTING_LOGGED_OUT "logged-out" /* a file in the layer, which no box reaches */

/* starting.c */
struct starting *starting_new(struct arena *mem);
void starting_end(struct starting *s);
int starting_look(struct starting *s, const char *name, const struct pinfold_option *options, struct err *e);
int starting_open(struct starting *s, struct err *e); /* the layers, and the host's files */
int starting_hold(const struct starting *s, const char *name, int how, int *ret, struct err *e);
bool starting_logged_out(const struct starting *s); /* agent-logout: no login is brought */
const char *starting_host_file(const struct starting *s, size_t i, const struct agent_kept *f);
void starting_option(struct starting *s, const char *name, const char *value);
/* agent_first.c: whether the person's options and policies fit, before anything is made; and the lines at a first start. */
int first_check(struct starting *s, const struct agent_begin *ask, struct err *e);
int first_lines(struct starting *s, const struct agent_begin *ask, const char **ret, struct err *e);
/* What the agent gets as it is, in words; nothing where there is nothing. */
void starting_secrets(const struct starting *s, struct buf *to, const char *begin, const char *between,
                      const char *end);
bool starting_below(const char *path, const char *dir);
/* agent_same.c, with `lock` held and the layers open: whether boxes have all settings as they are here, so that nothing is copied; notes that
   they have now; forgets that note. */
bool brought_already(struct starting *s);
void brought_note(const struct starting *s);
void brought_forget(const struct starting *s);
/* agent_carry.c, for agents that keep the sessions of all projects in one place: before a box, with `lock` held; and after it, what went
   wrong in a sentence, in `mem`, or NULL. */
bool carried_at_all(const struct starting *s);
void carry_in(struct starting *s);
const char *carry_out(struct starting *s);
/* agent_project.c: the name that the agent has for this project outside, or will find there: `s->project`. */
int project_find(struct starting *s, size_t layer, struct err *e);

/*
 * agent_keep.c: the logins of the box. Renews those that end soon, before the box gets them; what went wrong is a sentence in the
 * notes. Then a process keeps the box's copies as new as the host's files, and has them renewed in time, until `up` is closed.
 */
void keep_renew(struct starting *s);
int keep_begin(const struct starting *s, struct agent_begun *ret, struct err *e);
/* The same beside a session, until `session` (a pidfd) ends; holds `live` meanwhile. Does one keep them already? */
int keep_session(const struct starting *s, int session, struct err *e);
bool keep_is_kept(const struct starting *s);
/* The owner of the host's login `f` of layer `i`, for one piece of work. */
int keep_owner(const struct starting *s, size_t i, const struct agent_kept *f, const struct agent_renew *renew,
               int new_login, int64_t *ret_expires, struct err *e);
