/*
 * `pinfold learn`: runs a command under a policy in passes, enforcing all the while, and finds the smallest addition with which it
 * would not have been refused. Over pinfold.h only: what would allow a refusal says pinfold_why(), which tries it on a plan.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pinfold.h"

#define LEARN_POLICY ".pinfold/policy.yaml" /* below the workspace */

enum learn_care {
    LEARN_PLAIN,
    LEARN_NAMED, /* a pattern in the answers does not allow it, only its own line, or a person who is asked */
    LEARN_SECRET /* nor is anybody asked: it is not even shown as a rule */
};
enum learn_answer { LEARN_OPEN, LEARN_ALLOW, LEARN_DENY };

struct learn_rule {
    const char *key, *option; /* "files.rw", "rw" */
    const char *value;        /* of the option: a path of the host, a host with its port, a name */
    const char *written;      /* the same as in the project's file: "~/data", "src/x" */
    const char *text;         /* "files.rw: ~/data" */
    const char *act;          /* "write"; "act" if there were several */
    const char *why;          /* why care is taken, or NULL */
    enum learn_care care;
    enum learn_answer answer;
    unsigned pass, count; /* the last pass in which it would have helped; how often there */
    bool tried;           /* a pass ran with it */
    bool still;           /* and was refused the same again */
    bool granted;         /* while the command ran */
    bool gone;            /* another rule stands for it */
    bool guess;           /* from the command's own words */
};

/* A refusal for which there is no rule to propose. */
struct learn_left {
    const char *action, *target, *why;
    const struct learn_rule *rule; /* with care LEARN_SECRET; or NULL */
};

/* A rule of the project's own file, for --shrink. */
struct learn_kept {
    const char *key, *value, *text, *origin;
    enum { LEARN_USED, LEARN_UNUSED, LEARN_NOT_KNOWN } use;
};

struct learn_line { /* of the answers */
    bool allow;
    const char *rule;
};

struct learn_seen { /* a refusal that was looked at */
    const char *kind, *action, *target;
    size_t rule; /* number, or SIZE_MAX */
};

struct learn {
    /* The caller's. */
    struct pinfold_policy_options policy; /* with options of its own, `n_options` of them */
    size_t n_options;
    const char *const *argv;
    unsigned max; /* passes */
    bool shrink, asking;
    enum learn_answer (*ask)(void *ctx, const struct learn_rule *rule); /* a person; or NULL */
    void (*output)(void *ctx, int which, const char *bytes, size_t n);
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence);
    int (*trust)(const char *path, struct str content, struct pinfold_error *error); /* what was just written */
    void *ctx;

    /* What was found; everything lives in `mem`. */
    struct arena *mem;

    const struct pinfold_question *waits; /* while somebody is asked: who waits for that answer; or NULL */
    unsigned asked;                       /* in this pass, while the command ran */
    struct pinfold_policy *policy_now;    /* of the pass */
    const char *workspace, *home, *command;
    const char *before; /* the project's file as it was at the start; NULL: there was none */
    struct learn_line *lines;
    size_t n_lines;
    struct learn_rule **rules;
    size_t n_rules;
    struct learn_left *left;
    size_t n_left;
    struct learn_seen *seen;
    size_t n_seen;
    struct learn_kept *kept;
    size_t n_kept;
    unsigned passes, trials;
    uint64_t not_kept; /* refusals beyond what a result holds */
    bool named_network, untried;
    int status, again; /* the last pass's exit status; the signal that it died of by the terminal, or 0 */
};

/* "cannot learn: out of memory" into `error`; -ENOMEM. */
int learn_memory(struct pinfold_error *error);
int learn_fail(struct pinfold_error *error, int no, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reads the answers: `text` of the file `name`. -EINVAL with a sentence. */
int learn_answers(struct learn *l, const char *name, const char *text, struct pinfold_error *error);
/* What they say about it. */
enum learn_answer learn_answered(const struct learn *l, const struct learn_rule *rule);

/* Loads the policy with what was allowed so far, and `more` if it is not NULL. */
int learn_load(const struct learn *l, const struct pinfold_option *more, size_t n_more, struct pinfold_policy **ret,
               struct pinfold_error *error);
/* Runs the passes. 0, or -errno with `error` if the policy or the box failed. */
int learn_run(struct learn *l, struct pinfold_error *error);
/* One run under this policy; the caller frees the result. */
int learn_pass(struct learn *l, struct pinfold_policy *policy, struct pinfold_result **ret,
               struct pinfold_error *error);

/* asked.c: the run's questions, with a struct learn. */
enum pinfold_answer learn_asked(void *ctx, const struct pinfold_question *question);

/* The rule that would allow this refusal, made the first time; NULL: there is none. */
struct learn_rule *learn_rule_about(struct learn *l, struct pinfold_policy *policy, const struct pinfold_denial *d,
                                    struct pinfold_error *error);
/* Adds rules for what this pass was refused. */
int learn_collect(struct learn *l, struct pinfold_policy *policy, const struct pinfold_result *result,
                  struct pinfold_error *error);
/* The rule of this kind, made if there is none; NULL without memory. */
struct learn_rule *learn_rule_of(struct learn *l, const char *option, const char *value);
/* A path as in a file of the project: relative to the workspace or with ~, so that it holds in a clone elsewhere. */
const char *learn_written(struct learn *l, const char *path);
/* Notes a refusal without a rule, once. */
void learn_leave(struct learn *l, const char *action, const char *target, const char *why,
                 const struct learn_rule *rule);

/* careful.c: how much care a path that becomes writable or readable needs; `ret_why` says what it is. */
enum learn_care learn_care_of_path(const struct learn *l, const char *path, const char **ret_why);
/* Whether it can be written as a rule: no character that means something in a policy, none that a terminal obeys. */
bool learn_can_write(const char *value);
bool learn_below(const char *path, const char *dir); /* or is it */
/* Puts one directory in the place of many files of a cache or a build. -ENOMEM. */
int learn_generalise(struct learn *l, struct pinfold_error *error);

/* shrink.c: which rules of the project's file the passes used. */
int learn_shrink(struct learn *l, struct pinfold_error *error);
/* Before the passes: reads these rules from the policy; and after each one. */
int learn_kept_read(struct learn *l, struct pinfold_policy *policy, struct pinfold_error *error);
void learn_kept_used(struct learn *l, const struct pinfold_result *result);

/* merge.c: the project's file `old` (NULL: none) with the rules that were allowed. -EINVAL with the line that cannot be
   kept as it is. */
int learn_merge(const struct learn *l, const char *old, struct buf *out, struct pinfold_error *error);
/* save.c: reads the file (`before`); writes it with what was allowed, trusted. *ret_path: in `mem`; NULL: nothing was to
   be written. */
int learn_look(struct learn *l, struct pinfold_error *error);
int learn_save(struct learn *l, const char **ret_path, struct pinfold_error *error);

/* say.c: what was found, for people and as one JSON object. */
void learn_words(const struct learn *l, struct buf *out);
void learn_json(const struct learn *l, const char *written, struct buf *out);
/* "3 writes refused (make)" */
void learn_reason(const struct learn *l, const struct learn_rule *rule, struct buf *out);
