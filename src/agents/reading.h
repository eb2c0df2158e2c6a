/* Reading a definition: what its parts (define.c, renew.c) share. */
#pragma once
#include "agents/agents.h"
#include "policy/text/node.h"

struct definition_reading {
    const char *file;
    struct arena *mem;
    struct err *e;
};
int agent_wrong(const struct definition_reading *r, const struct node *at, const char *what);
/* A key that `of` ("a state") does not have; `keys`: those that it has. */
int agent_unknown(const struct definition_reading *r, const struct node *key, const char *of, const char *keys);
int agent_take_text(const struct definition_reading *r, const struct node *n, const char **ret);
int agent_take_list(const struct definition_reading *r, const struct node *n, const char ***ret);
/* Whether each path of the list, which was taken from `n`, is made of patterns (match/glob.h). */
int agent_take_patterns(const struct definition_reading *r, const struct node *n, const char **list);
int agent_take_flag(const struct definition_reading *r, const struct node *n, bool *ret);
/* renew.c: the mapping `renew` of a login. */
int agent_take_renew(const struct definition_reading *r, const struct node *n, struct agent_renew **ret);
