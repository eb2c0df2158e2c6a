/*
 * Named sets of hosts, as in the rule "@npm". They are compiled in from profiles/sets/. A policy keeps the set's name;
 * whoever judges or explains gets the members here.
 */
#pragma once
#include "match/host.h"

struct host_set {
    const char *name; /* without the "@" */
    const char *const *hosts;
    size_t n;
};
extern const struct host_set host_set_table[]; /* generated, in order of names; ends with a NULL name */

/* The set that "@NAME" names; NULL if the text has another form or there is no such set. */
const struct host_set *host_set_of(struct str text);
/* The set whose name this is without its "@": a mistake, as a rule. A host of that name ends in a dot, or has a port. */
const struct host_set *host_set_bare(struct str text);
int host_set_meant(const struct host_set *s, struct err *e); /* the error about it */
/* An error that suggests the nearest set, or lists all. */
int host_set_unknown(struct str text, struct err *e);

/* Number of rules that a text stands for: 1, or the members of its set. */
size_t host_rule_count(struct str text);
/* These rules, parsed with host_rule_parse(); `ret` has room for host_rule_count(text). */
int host_rules_parse(struct str text, enum rule_verb verb, uint32_t origin, struct host_rule *ret, struct err *e);
