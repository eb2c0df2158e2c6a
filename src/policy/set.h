/*
 * Named sets of hosts: what a rule such as "@npm" stands for. Their names come from profiles/sets/, as data that is compiled
 * in; a policy keeps the set's name, and whoever judges, or explains, asks here for its members.
 */
#pragma once
#include "match/host.h"

struct host_set {
    const char *name; /* without the "@" */
    const char *const *hosts;
    size_t n;
};
extern const struct host_set host_set_table[]; /* generated, in order of names; ends with a NULL name */

/* The set that the text "@NAME" names; NULL when it is no such text, or there is none. */
const struct host_set *host_set_of(struct str text);
/* An error that names the nearest set, or all of them. */
int host_set_unknown(struct str text, struct err *e);

/* How many rules a rule's text stands for: 1, or the members of its set. */
size_t host_rule_count(struct str text);
/* These rules, as host_rule_parse() reads each; `ret` has room for host_rule_count(text). */
int host_rules_parse(struct str text, enum rule_verb verb, uint32_t origin, struct host_rule *ret, struct err *e);
