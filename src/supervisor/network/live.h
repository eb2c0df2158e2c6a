/*
 * What goes on between a box's network and its caller while the box runs: rules that change, questions, who was refused,
 * the host's resolver. All of it exists only where the box has an egress; struct live is its memory.
 *
 *     rules.c      the rules and who said them      asker.c      who is asked, and the clock; question.c: the answer
 *     network.c    events of the egress             prompt.c     asking at the terminal
 *     who.c        whose socket it is               control.c    --control-fd; line.c reads its lines
 *     feed.c       resolv.conf and hosts
 */
#pragma once
#include "sys/dialogue.h"
#include "supervisor/parts.h"
#include "match/host.h"
#include "protocol/egress.h"

/* ---- rules.c ---- */

enum rule_from { FROM_POLICY, FROM_CONTROL, FROM_ASKED };
struct live_rule { /* its index is its id, for as long as the box lives */
    struct host_rule rule;
    uint32_t hash, origin; /* FROM_POLICY: index into the policy's origins */
    enum rule_from from;
    bool holds;
    char *text; /* as said; owned */
};
#define MAX_LIVE_RULES 32768 /* of a box, also those that hold no more; the policy's come first */

/* What `text` stands for: one rule, or the members of a set. Allocated, also when there is an error. */
int rules_parse(struct str text, enum rule_verb verb, struct host_rule **ret, size_t *ret_n, struct err *e);
/* Adds, or lets hold again, what `text` stands for; with `ret_new` (may be NULL) whether anything changed. */
int rules_add(struct live *l, struct str text, enum rule_verb verb, enum rule_from from, uint32_t origin, bool *ret_new,
              struct err *e);
/* Those that hold, for the egress: allocated, each with its id as origin. NULL without memory. */
struct host_rule *rules_held(const struct live *l, size_t *ret_n);
/* Tells the egress; the ticket that its SAID_RULES will bear. -errno: the egress does not take it. */
int rules_send(struct box *b, uint32_t *ret_ticket);
/* Where rule `id` was said: "--allow", "file:2:3", "--control-fd", "asked". */
const char *rules_origin(const struct box *b, uint32_t id, char *room, size_t n);
int order_send(struct box *b, const struct egress_order *o, int fd);
/* The same with a text in a memory file. */
int order_send_bytes(struct box *b, struct egress_order o, const void *bytes, size_t n);

/* ---- who.c ---- */

struct who {
    uint32_t pid;     /* inside; 0: not known */
    uint32_t session; /* of processes, as the box numbers it; 0: not known */
    char command[64]; /* what the kernel calls it (comm), printable; "" */
};
/* Whose socket the event speaks of. Bounded in work for one call and for the run. */
void who_is(struct box *b, const struct egress_event *v, struct who *ret);

/* ---- network.c ---- */

void network_event(struct box *b, const struct egress_event *v);
/* What the egress counted without telling it. */
void network_counts(struct box *b, const struct egress_counts *c);
/* "host:port", "[v6]:port", "host". */
void network_target(const struct egress_event *v, char *ret, size_t n);
const char *network_how(unsigned how);

/* ---- question.c, asker.c ---- */

enum question_state { QUESTION_FREE, QUESTION_WAITS };
struct question {
    enum question_state state;
    bool told; /* to the control connection */
    uint32_t ticket, id;
    uint64_t until;
    uint16_t port;
    uint8_t how;
    char target[EGRESS_NAME + 64]; /* as a rule names it */
    struct who who;
};
struct answer {
    bool allow, run; /* run: for the rest of the run, otherwise once */
};
/* Whether somebody could be asked; a sentence where asking was wanted and nobody can be. */
int question_begin(struct box *b);
void question_event(struct box *b, const struct egress_event *v);
/* The waiting question `id`; NULL when there is none (any more). */
struct question *question_find(struct live *l, uint32_t id);
void question_answer(struct box *b, struct question *q, struct answer a);
void question_settle(struct box *b, struct question *q, enum egress_answer answer);
void question_drop_all(struct box *b, enum egress_answer why);
uint64_t question_next(const struct box *b); /* when question_due() is to be called */
void question_due(struct box *b, uint64_t now);

/* ---- prompt.c ---- */

struct prompt {
    struct dialogue d; /* the terminal is opened when it was first needed */
    uint32_t id;       /* of the question that is shown; 0: none */
    bool off;          /* the person wants no more questions */
    bool opened;       /* it was tried */
};
bool prompt_possible(struct box *b);
/* The person's terminal belongs to a question: nothing of the box is shown, no key goes to it. */
bool prompt_shown(const struct box *b);
uint64_t prompt_next(const struct box *b);
void prompt_due(struct box *b, uint64_t now);
void prompt_poll(const struct box *b, struct pollfd *p);
void prompt_ready(struct box *b);
void prompt_over(struct box *b, const char *words); /* the question that is shown needs no answer any more */
void prompt_end(struct box *b);

/* ---- control.c, line.c ---- */

#define CONTROL_LINE_MAX  (256u << 10)
#define CONTROL_HOSTS_MAX 4096
enum control_op { CONTROL_ALLOW, CONTROL_DENY, CONTROL_REPLACE, CONTROL_LIST, CONTROL_ANSWER };
struct control_line {
    enum control_op op;
    struct str *allow, *deny; /* texts of rules, not read yet */
    size_t n_allow, n_deny;
    uint32_t id; /* CONTROL_ANSWER */
    struct answer answer;
};
extern const char *const control_ops[];
struct arena;
/* One line, without its newline. Sentences are for whoever sent it. */
int control_parse(struct str line, struct arena *mem, struct control_line *ret, struct err *e);

struct control {
    int fd;          /* the caller's, or -1: none, or gone */
    struct buf in;   /* what is no whole line yet */
    struct buf out;  /* what it has not taken yet */
    bool skipping;   /* the rest of a line that is too long */
    uint32_t ticket; /* its last change does not hold yet; 0 */
    enum control_op op;
};
int control_begin(struct box *b);
bool control_there(const struct box *b);
void control_poll(const struct box *b, struct pollfd *p);
void control_ready(struct box *b);
void control_rules(struct box *b, const struct egress_event *v); /* SAID_RULES */
void control_ask(struct box *b, struct question *q);
void control_asked(struct box *b, const struct question *q); /* it was settled otherwise */
void control_end(struct box *b);

/* ---- feed.c ---- */

struct feed {
    int notify;         /* inotify, or -1 */
    uint64_t begins_at; /* when it is made; NEVER: it was */
};
void feed_read(const char *path, struct buf *out); /* a missing file is an empty one, as for the C library */
void feed_begin(struct box *b);
void feed_due(struct box *b, uint64_t now);
void feed_ready(struct box *b);
void feed_end(struct box *b);

struct live {
    struct live_rule *rules;
    size_t n_rules, room;
    bool policy_allows; /* the policy's allow rules hold (until somebody replaces them) */
    uint32_t tickets;
    uint64_t who_us; /* spent on looking who it is, */
    uint64_t who_at; /* until then; forgotten as time goes by */
    struct question questions[EGRESS_MAX_QUESTIONS];
    uint32_t questions_asked;
    struct prompt prompt;
    struct control control;
    struct feed feed;
    struct buf resolv, hosts;        /* as the egress knows them */
    size_t last_allowed;             /* where the last event was found */
    uint16_t counted[EGRESS_COUNTS]; /* of which one (1 ...) the egress counts there; 0: of none that is kept */
};
struct live *live_new(void);
void live_end(struct box *b);
