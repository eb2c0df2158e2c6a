/*
 * The words that explain uses for people and in JSON alike.
 */
#pragma once
#include "plan/make.h"

const char *word_access(const struct plan_place *p); /* "writable", "hidden", ... */
/* By what the place is as it is; "" when there is nothing to say. */
const char *word_how(const struct plan_place *p);
/* By what connections come to the egress: "nftables, every connection". */
const char *word_catch(enum catch_way way);
const char *word_net(const struct policy *p);
const char *word_guard_mode(enum guard_mode mode);
const char *word_guard_rule(enum guard_rule_kind kind);
const char *word_guard_judge(const struct guard_rule *r);
/* Whether people want to read of it: not what every box has in its private trees. */
bool place_is_telling(const struct plan_place *p);

struct named_bit {
    uint32_t bit;
    const char *name;
};
extern const struct named_bit namespace_names[]; /* ended by a NULL name */
extern const struct named_bit filter_names[];

struct named_limit {
    const char *name;
    const struct limit *limit;
    enum { UNIT_BYTES, UNIT_CPUS, UNIT_COUNT, UNIT_MS } unit;
};
enum { N_LIMITS = 8 };
void limits_of(const struct policy *p, struct named_limit ret[N_LIMITS]);
/* "512M", "0.5", "90s": as the policy would say it. */
void put_limit(struct buf *out, const struct named_limit *l);

enum { COLUMNS = 120 };
void pad(struct buf *out, size_t line,
         size_t column); /* from the line's start at `line` to `column`; one space at least */
/* Columns, where the texts let them be: what would pass the right margin goes to a line of its own. */
void put_row(struct buf *out, const char *word, const char *path, const char *how, const char *origin);

/* explain_net.c: which hosts, sets opened, and what a rule that denies takes from one that allows. */
struct json;
void explain_network(const struct plan *p, struct buf *out);
void explain_network_json(const struct plan *p, struct json *j);
