/* Words for people that explain uses in its text and in JSON. */
#pragma once
#include "plan/make.h"

const char *word_access(const struct plan_place *p); /* "writable", "hidden", ... */
/* What is special about the place; "" for nothing. */
const char *word_how(const struct plan_place *p);
/* How connections reach the egress proxy: "nftables, every connection". */
const char *word_catch(enum catch_way way);
const char *word_net(const struct policy *p);
const char *word_guard_mode(enum guard_mode mode);
const char *word_guard_rule(enum guard_rule_kind kind);
const char *word_guard_judge(const struct guard_rule *r);
/* Whether the place is worth showing to people: not the entries that every box has in its private trees. */
bool place_is_telling(const struct plan_place *p);

struct named_bit {
    uint32_t bit;
    const char *name;
};
extern const struct named_bit namespace_names[]; /* ended by a NULL name */
extern const struct named_bit filter_names[];

struct named_limit {
    const char *name;
    struct limit limit; /* as the box gets it */
    enum { UNIT_BYTES, UNIT_CPUS, UNIT_COUNT, UNIT_MS } unit;
    bool less; /* than the policy says: the caller's own is lower */
};
void limits_of(const struct plan *p, struct named_limit ret[N_LIMITS]);
/* "512M", "0.5", "90s": as in the policy. */
void put_limit(struct buf *out, const struct named_limit *l);

enum { COLUMNS = 120 };
void pad(struct buf *out, size_t line,
         size_t column); /* pads the line that starts at `line` to `column`; at least one space */
/* Prints in columns; what would exceed the right margin goes to a line of its own. */
void put_row(struct buf *out, const char *word, const char *path, const char *how, const char *origin);

/* explain_net.c: the hosts, with sets expanded, and what deny rules take from allow rules. */
struct json;
void explain_network(const struct plan *p, struct buf *out);
void explain_network_json(const struct plan *p, struct json *j);
