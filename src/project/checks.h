/*
 * git.verify: what a push moves a protected branch to is judged by the person's own hooks first, in boxes. How it goes: stage.c keeps
 * what was sent; each new commit is judged in a box of its own (hooks.c) by the hooks as they were at the start (freeze.sh); then
 * stage.c carries the push out, if nothing has changed meanwhile that matters. Nothing is locked while hooks run.
 */
#pragma once
#include "project/branch.h"
#include "project/rules.h"

enum { CHECKS_AT_ONCE = 8192, CHECKS_WHY = 1 << 20, CHECKS_WAITED = 'w', CHECKS_BEGUN = 'b' };

struct checks {
    char top[PATH_MAX + PROJECT_WORD + 32]; /* hidden from boxes but for what is mounted */
    char hooks[PATH_MAX];                   /* their directory, in a box */
    const char *real;
    const char *cwd; /* of the options' relative paths */
    bool moves;      /* for a box that can write the repository itself: checks_moves(), not checks_serve() */
    bool more;       /* then: `top` has `more`, objects that the repository does not have */
    const char *git; /* and: the repository, and the policy of the hooks' boxes */
    struct pinfold_policy *policy;
    char name[PROJECT_WORD];
    struct pinfold_option options[PROJECT_OPTIONS + 16]; /* of the session, as far as they hold for a hook's box, too */
    size_t n_options;
    const char *text, *settings_format; /* and what its policy is besides (pinfold.h) */
    int no_layers;
    const struct push_rules *rules;
    bool any; /* hook that judges */
};
/*
 * Copies the hooks of the checkout. `ret` keeps pointers to what it was given. -errno with a sentence in `why`; also if they are required
 * and there are none.
 */
int checks_begin(const struct shelf *s, const char *real, const char *word, const struct pinfold_policy_options *asked,
                 const struct push_rules *rules, struct checks *ret, char *why, size_t room);
/* The same for a box that can write the repository itself, in the existing empty directory `top`. */
int checks_begin_moves(const char *top, const char *real, const char *git, const char *cwd,
                       const struct pinfold_option *options, const struct push_rules *rules, struct checks *ret,
                       char *why, size_t room);
/* Serves a push, or a fetch, from the connection `fd`. -errno: nothing was said to the client, but `error` is. */
int checks_serve(const struct checks *c, int fd, const char *git, struct pinfold_error *error);
/*
 * Has the hooks judge what branches of the repository are to move to, a line "REF ID" for each. Its box is begun at once, and its program
 * reads the lines from `box`, if they are no more than CHECKS_AT_ONCE; otherwise it gets none. The caller gets them from the socket
 * `asked` by one message, behind a byte which is CHECKS_WAITED if the box was begun before anybody asked. Nothing is done until then but
 * to begin. 0: passed; 1: not, with a clause in `why`, a buffer of CHECKS_WHY; -errno: it could not be judged; -ECANCELED: nobody asked.
 */
int checks_moves(const struct checks *c, int box, int asked, struct buf *why, struct pinfold_error *error);
