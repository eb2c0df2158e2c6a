/*
 * The command line: parses argv, calls pinfold.h, prints. Each verb is one function. Policy flags come from the
 * library's table; none is parsed by name here.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "pinfold.h"

/* Exit statuses. `run` passes on the command's; these are pinfold's own. */
enum status {
    STATUS_YES = 0,
    STATUS_NO = 1,
    STATUS_USAGE = 2,  /* usage, or the policy is wrong */
    STATUS_CANNOT = 3, /* this machine cannot enforce the policy */
    STATUS_NO_SESSION = 4,
    STATUS_SANDBOX = 125
};

enum verb_id {
    VERB_RUN = 1,
    VERB_SHELL = 2,
    VERB_EXPLAIN = 4,
    VERB_DOCTOR = 8,
    VERB_POLICY = 16,
    VERB_TRUST = 32,
    VERB_LOG = 64,
    VERB_COMPLETION = 128,
    VERB_VERSION = 256,
    VERB_HELP = 512,
    VERB_SESSION = 1024,
    VERB_EXEC = 2048,
    VERB_JOB = 4096,
    VERB_MCP = 8192,
    VERB_INIT = 1 << 14,
    VERB_PROJECT = 1 << 15, /* start, stop, checkout and the like of projects: which, says verb_said */
    VERB_CAT = 1 << 16,
    VERB_WRITE = 1 << 17,
    VERB_CP = 1 << 18,
    VERB_LS = 1 << 19,
    VERB_SHOW_RUN = 1 << 20,
    VERB_PATH = 1 << 21,
    VERB_AGENT = 1 << 22,
    VERB_START = 1 << 23, /* an agent by its name */
    VERB_WHY = 1 << 24,
    VERB_DIFF = 1 << 25,
    VERB_APPLY = 1 << 26,
    VERB_UNDO = 1 << 27,
    VERB_LAYERS = 1 << 28,
    VERB_DISCARD = 1 << 29,
    VERB_LEARN = 1 << 30,
    VERB_HOOK = -0x7fffffff - 1 /* the last bit of an int */
};
#define VERBS_OF_FILES  (VERB_CAT | VERB_WRITE | VERB_CP | VERB_LS | VERB_PATH)
#define VERBS_OF_LAYERS (VERB_DIFF | VERB_APPLY | VERB_UNDO | VERB_LAYERS | VERB_DISCARD)
#define VERBS_WITH_POLICY                                                                                              \
    (VERB_RUN | VERB_SHELL | VERB_EXPLAIN | VERB_WHY | VERB_SHOW_RUN | VERB_POLICY | VERB_SESSION | VERB_MCP |         \
     VERB_START | VERB_LEARN)

/* What is said of images: for build-base, build, image check and init. */
enum { IMAGE_TOOLS = 4 };
struct image_said {
    const char *engine, *tag, *base_tag, *base_image, *network;
    const char *versions[IMAGE_TOOLS]; /* claude-code, codex, git-delta, ast-grep */
    const char **build_args;
    size_t n_build_args;
    bool build; /* before the project's session is started */
};

/* The parsed command line. Arrays have room for all of argv; strings point into argv. */
struct ask {
    enum verb_id verb;
    struct pinfold_option *policy; /* flags of the policy, ended by a NULL name */
    size_t n_policy;
    const struct learn *learning; /* of the verb learn, for its questions */
    const char *settings_format, *text, *result, *id, *control, *help, *http, *http_token, *http_origin, *sandbox_image,
        *events;
    char **copies; /* of values that no longer stand in the line */
    size_t n_copies;
    const char **agents, **bases; /* NULL-terminated */
    size_t n_agents, n_bases;
    /* Of a command in a session. */
    const char *session, *scope, *dir, *shell, *timeout, *memory, *processes, *terminal, *signal;
    const char *since, *head_was;
    const char **env; /* NAME=VALUE, NULL-terminated */
    size_t n_env;
    const char *older;          /* layers prune: an age */
    const char *cow_from;       /* a layer that the one of `cow` stands on; or NULL */
    const char *cow, *cow_then; /* of run: "" without a name, or NULL; what becomes of the layer, or NULL: it is kept */
    bool sandbox, recreate, detach, all;
    bool as_before;       /* session start: with what it was started with, too */
    const char *start_in; /* where that was; NULL: here */
    const char *mode;     /* of files */
    bool parents;
    bool force;              /* of init, rm and agent-init-config */
    bool auth;               /* agent-init-config: the login, too */
    const char *branch;      /* of a project's verbs; apply: a new branch gets the changes */
    const char *session_dir; /* where commands of a session that is started begin; NULL: as its policy says */
    /* its session was found or started; or NULL */
    void (*ensured)(const struct ask *a, struct pinfold_policy *policy, const struct pinfold_session *session);
    struct image_said image;
    bool managed; /* of hook */
    bool json, names, last, quiet, verbose, show_values, no_layers, origins, verify, head, follow, remove, dry_run;
    const char *agent; /* VERB_START: its name */
    bool unattended, explain;
    bool stat, patch;      /* of a layer's changes */
    bool hunks;            /* apply asks about each */
    const char *into;      /* the file for a patch of apply */
    const char *conflicts; /* apply --merge: mark or leave */
    bool merge, no_pager;
    const char *tool;             /* diff: a person's own */
    const char *to;               /* where apply and undo go instead of the workspace */
    int patch_fd;                 /* where that is put together */
    const char *number;           /* of an apply */
    const char *passes, *answers; /* of learn */
    bool write, shrink;
    unsigned closed_stdio; /* bits of the standard descriptors that were closed at the start */
    char *const *line;     /* all arguments, where no verb was said; NULL */
    char **words;          /* arguments that are no flags: a command, a path, a sub-verb; NULL-terminated */
    int n_words;
};

struct verb {
    enum verb_id id;
    char name[20]; /* no address, and beside the others: looking for one is part of each start */
    const char *usage, *sentence;
    const char *const *parts; /* if the verb has sub-verbs: "usage", "sentence" ..., NULL; otherwise NULL */
};
extern const struct verb verbs[]; /* ended by an empty name */
const struct verb *verb_find(const char *name);
/* Whether the verb of this name takes an option that the verbs of its kind have. */
bool verb_has(const char *verb, const char *option);
/* The same for a project's verbs alone, which are told of any other option that they do not have it. */
bool verb_takes(const char *verb, const char *option);
extern const char *verb_said; /* the word on the command line, where several share an id */

/* A flag of the command line, not of the policy. */
struct own_flag {             /* without pointers, which each running pinfold would have in memory of its own */
    char letter;              /* 'q' for -q, 0 */
    char name[24], value[24]; /* value "": it takes none */
    unsigned verbs;           /* enum verb_id bits */
};
extern const struct own_flag own_flags[];       /* ended by an empty name */
const char *own_help(const struct own_flag *f); /* a sentence */
/* NULL: it takes none. */
static inline const char *own_value(const struct own_flag *f)
{
    return f->value[0] ? f->value : NULL;
}

struct pinfold_result;
/* Checks that only options follow the verb; false with a message on stderr. */
bool no_words(const struct ask *a);
/* Parses what follows the verb; false with a message on stderr. */
bool ask_parse(struct ask *a, int argc, char **argv);
/* What was said of a policy, for the library; it points into `a`. */
struct pinfold_policy_options ask_options(const struct ask *a);
/* Builds the policy from flags and files; false with a message on stderr and `ret_status` set. */
bool ask_policy(const struct ask *a, struct pinfold_policy **ret, int *ret_status);

/* "pinfold: <sentence>" on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether a descriptor is a terminal that obeys escape sequences. */
bool has_sequences(int fd);
/* What a command left of a terminal's sequence or colour would swallow the lines from now on: they begin with a clean terminal. */
void complain_behind_output(void);
/* A command quoted for a shell; control characters appear as numbers. */
void put_command(char *const *words, struct buf *out);
void complain_line(const char *line);
void complain_lines(const char *text); /* each line of it */
/* Prints the error and returns its exit status. */
int fail(const struct pinfold_error *error);
/* Writes all of `text` to descriptor 1; STATUS_YES, or STATUS_NO with a message. */
int print(const char *text);
/* Prints and frees. */
int print_free(char *text);
int print_report(struct pinfold_report *report); /* prints its JSON as one line; does not free it */

int verb_run(struct ask *a);
int verb_shell(struct ask *a);
/* people.c: SHELL, if it is one: NULL where it does not exist, or is one that only refuses logins (accounts of services have it). */
const char *callers_shell(void);
int verb_explain(struct ask *a);
int verb_show_run(struct ask *a);
/* Prints the command line of an engine that is another program. */
int show_engine(struct ask *a);
int verb_why(struct ask *a);
int verb_learn(struct ask *a);
int verb_doctor(struct ask *a);
int verb_policy(struct ask *a);
int verb_trust(struct ask *a);
int verb_hook(struct ask *a);
int verb_log(struct ask *a);
int verb_completion(struct ask *a);
int verb_version(struct ask *a);
int verb_help(struct ask *a);
int verb_mcp(struct ask *a);
int verb_init(struct ask *a);
int verb_project(struct ask *a);
int verb_image(struct ask *a); /* also build-base and build */
/* project/import.c: volumes of the tool agent-sandbox. A line about those of this project on standard output, if there are any. */
int volume_import(struct ask *a);
void tell_volumes(const char *real);
/* project/keys.c: an agent's variables with keys, if `argv` starts one that this session of a project has; false without memory. */
bool keys_for_agent(struct ask *a, const char *session, const char *const *argv);
/* The same for what is started in this shell: the line that starts it, or NULL if there are none. */
const char *const *keys_for_shell(struct ask *a, const char *real, const char *shell);
/* The checkout of the project whose session this process is about. */
const char *shell_checkout(void);
/* Builds the image of the project at this real path; STATUS_YES, or another with a message. */
int image_of_project(const struct ask *a, const char *real);
/* Whether this verb has the options for images that were said; false with a message. */
bool image_said_fits(const struct ask *a);
/* The directory that was named, or the current one, by its real path; false with a message. `words`: how many may be named. */
bool project_directory(const struct ask *a, int first, char real[PATH_MAX]);
/* Makes `a` the session of that project, or of --branch in it, which is prepared first; false with a message. */
bool project_session_of(struct ask *a, const char *real);
/* Makes `a` a run in the box of --branch of the project here, for an agent; false with a message. */
bool project_branch_run(struct ask *a);
/* Makes `a` the shell in the session of the project in which it is asked for. 1; 0: it is an ordinary one; -1 with a message. */
int project_shell(struct ask *a);
/* Finds or starts the session; prints errors. Returns the exit status. */
int start_session(struct ask *a, const char *name);
/*
 * Makes `a` ask for what the session of that name was started with, if it has ended and nothing else is asked for, or with
 * --as-before; false with a message. `ret`, to be freed once it is started, holds the texts; or NULL.
 */
bool again_begin(struct ask *a, const char *name, struct pinfold_report **ret);
int verb_session(struct ask *a);
int verb_exec(struct ask *a);
int verb_job(struct ask *a);
int verb_cat(struct ask *a);
int verb_write(struct ask *a);
int verb_cp(struct ask *a);
int verb_ls(struct ask *a);
int verb_path(struct ask *a);
int verb_agent(struct ask *a);
int verb_login(struct ask *a);
int open_outside(const char *url); /* in a box: login.c */
/* agent.c: the agent's options stand before the person's, which win; its box as --explain shows it. */
bool agent_options(struct ask *a, const struct pinfold_option *first);
struct agent_begun;
int agent_explain(struct ask *a, const struct agent_begun *b);
/* question.c: a key of `choices`, or a value below 0: nobody answers. */
int ask_at_terminal(const char *text, const char *choices, const char *again);
int verb_start(struct ask *a);
/* `pinfold claude`: true, with the verb and the agent in `a`, when a word names an agent. */
bool start_named(struct ask *a, const char *word);
int verb_diff(struct ask *a);
int verb_apply(struct ask *a);
int verb_undo(struct ask *a);
int verb_layers(struct ask *a);
int verb_discard(struct ask *a);
/* layer.c: what a layer changes, as `diff --stat` prints it, on descriptor `fd`. */
int layer_show(const char *id, int fd);
/* tell.c: each entry of `list` with its path and its member `why`, on stderr: STATUS_NO if there is any. */
int complain_left(const struct pinfold_value *list, const char *why);
/* pager.c: whether a terminal is to be painted; prints by way of the pager on a terminal; puts a patch as people read it. */
bool has_colours(int fd);
int print_paged(const struct ask *a, const struct buf *out);
void put_patch(struct str text, bool colours, struct buf *out);
/* hunks.c: asks about hunks and applies what is chosen; *ret is NULL if that is nothing. As the library's functions. */
int apply_hunks(const struct pinfold_layer_options *o, struct pinfold_report **ret, struct pinfold_error *error);
/* then.c: checks --cow and --cow-then; false with a message. */
bool cow_said(const struct ask *a);
/* What --cow-then says about the layer of this result; STATUS_YES, or what prevented it, with a message. */
int cow_then(const struct ask *a, const struct pinfold_result *result);
/* `run --session`: runs the command in the session of that name, which is started if needed. */
/* Runs `argv` as `run` does; the options are a->policy. */
int run_command(struct ask *a, const char *const *argv);
int run_in_session(struct ask *a, const char *const *argv);

/* run.c: messages around a run, and its result. */
struct pinfold_result;
/* result.c: the file for the result, or -1. Opened before the run, so that errors are reported in time. */
/* --events: WHERE as the library takes it, a FILE as fd:N; `room` keeps that. False with a message. */
bool open_events(const struct ask *a, char room[48], const char **ret);
bool open_result(const struct ask *a, int *ret);
/* Opens (or makes) the file `where` that the option `what` names: over no link of a box, so over none at all in `workspace`. A
   descriptor, or -1 with a message. */
int open_honest(const char *what, const char *where, const char *workspace, int flags);
int report_result(const struct ask *a, int result_fd, struct pinfold_result *result);
int report_failure(const struct ask *a, int result_fd, const struct pinfold_error *error);

/* other_words.c: what pinfold has instead of an option of another sandbox ("use --rw PATH"), or NULL; without `is_long` letters. */
const char *other_word(struct str name, bool is_long);
/* The same for a subcommand: "pinfold session list". */
const char *other_verb(struct str name);

/* Help of a verb; `what` "all": every flag. */
int help_print(enum verb_id verb, const char *what);
/* The options as a list for the manual page (scdoc). */
int help_manual(void);
