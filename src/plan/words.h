/*
 * The words that explain uses for people and in JSON alike.
 */
#pragma once
#include "plan/make.h"

const char *word_access(const struct place *p); /* "writable", "hidden", ... */
/* By what the place is as it is; "" when there is nothing to say. */
const char *word_how(const struct place *p);
/* By what connections come to the egress: "nftables, every connection". */
const char *word_catch(enum catch_way way);
const char *word_net(const struct policy *p);
const char *word_guard_mode(enum guard_mode mode);
const char *word_guard_rule(enum guard_rule_kind kind);
const char *word_guard_judge(const struct guard_rule *r);
/* Whether people want to read of it: not what every box has in its private trees. */
bool place_is_telling(const struct place *p);

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
