/*
 * The network of a running box, as seen by the supervisor: changes of rules, questions, identification of refused
 * clients, the host's resolver. Only boxes with an egress proxy have a struct live.
 *
 *     rules.c      the rules and their origins         asker.c      who is asked, timeouts; question.c: answers
 *     network.c    events of the egress proxy          prompt.c     asking at the terminal
 *     who.c        which process owns a socket         control.c    --control-fd; line.c parses its lines
 *     feed.c       resolv.conf and hosts               browser.c    addresses that a person opens outside
 */
#pragma once
#include "user/dialogue.h"
#include "supervisor/parts.h"
#include "match/host.h"
#include "protocol/egress.h"

/* ---- rules.c ---- */

enum rule_from { FROM_POLICY, FROM_CONTROL, FROM_ASKED };
struct live_rule { /* its index is its id, as long as the box lives */
    struct host_rule rule;
    uint32_t hash, origin; /* FROM_POLICY: index into the policy's origins */
    enum rule_from from;
    bool holds;
    char *text; /* as written; owned */
};
#define MAX_LIVE_RULES 32768 /* of a box, including those no longer in force; the policy's come first */

/* Parses `text` into one rule, or the members of a set. Allocated, also on error. */
int rules_parse(struct str text, enum rule_verb verb, struct host_rule **ret, size_t *ret_n, struct err *e);
/* Adds the rules of `text`, or puts them in force again; `ret_new` (or NULL): whether anything changed. */
int rules_add(struct live *l, struct str text, enum rule_verb verb, enum rule_from from, uint32_t origin, bool *ret_new,
              struct err *e);
/* The rules in force, for the egress proxy: allocated, each with its id as origin. NULL without memory. */
struct host_rule *rules_held(const struct live *l, size_t *ret_n);
/* Sends them to the egress proxy; returns the ticket that SAID_RULES will have. -errno: that failed. */
int rules_send(struct box *b, uint32_t *ret_ticket);
/* Origin of rule `id`: "--allow", "file:2:3", "--control-fd", "asked". */
const char *rules_origin(const struct box *b, uint32_t id, char *room, size_t n);
int order_send(struct box *b, const struct egress_order *o, int fd);
/* The same with data in a memfd. */
int order_send_bytes(struct box *b, struct egress_order o, const void *bytes, size_t n);

/* ---- who.c ---- */

struct who {
    uint32_t pid;     /* in the box; 0: unknown */
    uint32_t session; /* session id in the box's numbering; 0: unknown */
    char command[64]; /* the process's name (comm), printable; "" */
};
/* Finds the process whose socket the event is about. Work is bounded per call and per run. */
void who_is(struct box *b, const struct egress_event *v, struct who *ret);

/* ---- network.c ---- */

void network_event(struct box *b, const struct egress_event *v);
/* Processes what the egress proxy has only counted. */
void network_counts(struct box *b, const struct egress_counts *c);
/* "host:port", "[v6]:port", "host". */
void network_target(const struct egress_event *v, char *ret, size_t n);
const char *network_how(unsigned how);

/* ---- question.c, asker.c ---- */

enum question_state { QUESTION_FREE, QUESTION_WAITS };
struct question {
    enum question_state state;
    bool told;     /* sent to the control connection */
    bool filtered; /* of the filter `filter`, whose client is `ticket` */
    enum filter_kind filter;
    uint32_t ticket, id;
    uint64_t until;
    uint16_t port;
    uint8_t how;
    char target[EGRESS_NAME + 64]; /* in the form of a rule */
    char *url;                     /* instead: to be opened in a browser, its answer comes to `port`; owned; or NULL */
    struct who who;
};
struct answer {
    bool allow, run; /* run: for the rest of the run, otherwise once */
};
/* Finds out whether questions can be asked; an error if they are wanted and cannot be. */
int question_begin(struct box *b);
void question_event(struct box *b, const struct egress_event *v);
/* A filter asks: may its client `ticket` have its signature? */
void question_filter(struct box *b, enum filter_kind kind, uint32_t ticket, const char *action, const char *target);
/* A process of a login's box asks for `url` to be opened; `a` says at once whether a person is asked, and never what that one says. */
void question_browser(struct box *b, const char *url, struct inquiry_answer *a);
const char *question_how(const struct question *q);
/* The open question `id`; NULL if there is none (any more). */
struct question *question_find(struct live *l, uint32_t id);
void question_answer(struct box *b, struct question *q, struct answer a);
void question_settle(struct box *b, struct question *q, enum egress_answer answer);
void question_drop_all(struct box *b, enum egress_answer why);
uint64_t question_next(const struct box *b); /* when to call question_due() */
void question_due(struct box *b, uint64_t now);

/* ---- browser.c ---- */

/* The person's answer; the question ends. Words to be shown, or NULL. */
const char *browser_answered(struct box *b, struct question *q, bool yes);

/* ---- prompt.c ---- */

struct prompt {
    struct dialogue d; /* the terminal is opened on first use */
    uint32_t id;       /* of the question shown; 0: none */
    bool off;          /* the user wants no more questions */
    bool opened;       /* opening it was tried */
};
bool prompt_possible(struct box *b);
/* Whether a question occupies the terminal: then no output of the box is shown and it gets no input. */
bool prompt_shown(const struct box *b);
uint64_t prompt_next(const struct box *b);
void prompt_due(struct box *b, uint64_t now);
void prompt_poll(const struct box *b, struct pollfd *p);
void prompt_ready(struct box *b);
void prompt_over(struct box *b, const char *words); /* removes the question shown, which is settled */
void prompt_end(struct box *b);

/* ---- control.c, line.c ---- */

#define CONTROL_LINE_MAX  (256u << 10)
#define CONTROL_HOSTS_MAX 4096
enum control_op { CONTROL_ALLOW, CONTROL_DENY, CONTROL_REPLACE, CONTROL_LIST, CONTROL_ANSWER };
struct control_line {
    enum control_op op;
    struct str *allow, *deny; /* texts of rules, not parsed yet */
    size_t n_allow, n_deny;
    uint32_t id; /* CONTROL_ANSWER */
    struct answer answer;
};
extern const char *const control_ops[];
struct arena;
/* Parses one line without its newline. Error messages are for its sender. */
int control_parse(struct str line, struct arena *mem, struct control_line *ret, struct err *e);

struct control {
    int fd;          /* of the caller; -1: none, or closed */
    struct buf in;   /* an incomplete line */
    struct buf out;  /* output the caller has not read yet */
    bool skipping;   /* ignoring the rest of a line that is too long */
    uint32_t ticket; /* of its last change that is not in force yet; 0 */
    enum control_op op;
};
int control_begin(struct box *b);
bool control_there(const struct box *b);
void control_poll(const struct box *b, struct pollfd *p);
void control_ready(struct box *b);
void control_rules(struct box *b, const struct egress_event *v); /* SAID_RULES */
void control_ask(struct box *b, struct question *q);
void control_asked(struct box *b, const struct question *q); /* it was settled in another way */
void control_end(struct box *b);

/* ---- feed.c ---- */

struct feed {
    int notify;         /* inotify, or -1 */
    uint64_t begins_at; /* when to create it; NEVER: it exists */
};
void feed_read(const char *path, struct buf *out); /* a missing file counts as empty, as for libc */
void feed_begin(struct box *b);
void feed_due(struct box *b, uint64_t now);
void feed_ready(struct box *b);
void feed_end(struct box *b);

struct live {
    struct live_rule *rules;
    size_t n_rules, room;
    bool policy_allows; /* the policy's allow rules are in force (until replaced) */
    uint32_t tickets;
    uint64_t who_us; /* processor time spent on identifying clients, */
    uint64_t who_at; /* as of this time; decays */
    struct question questions[EGRESS_MAX_QUESTIONS];
    uint32_t questions_asked, browser_asked; /* of these, for a browser */
    bool browser_off;                        /* the person has said no to one */
    struct prompt prompt;
    struct control control;
    struct feed feed;
    struct buf resolv, hosts; /* as last sent to the egress proxy */
    size_t last_allowed;      /* index of the last event found */
    /* index (from 1) of the event that the proxy counts in each entry; 0: of one not kept */
    uint16_t counted[EGRESS_COUNTS];
};
struct live *live_new(void);
void live_end(struct box *b);
